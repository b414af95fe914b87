// SPDX-License-Identifier: Apache-2.0
// Transformers that PyTorch's exporters wrote (record_recompute.py) train to the same bits whatever
// is made again for the backward pass, in less memory.
#include <stdlib.h>

#include "losses.h"

enum { ROWS = 4, TOKENS = 8, WIDTH = 16, N_STEPS = 4, MAX_PARAMETERS = 100000 };

typedef struct run {
    float losses[N_STEPS];
    float *parameters;
    size_t n_parameters, plan_bytes, state_bytes;
    char warning[512];
} run;

static char warning[512]; // the last one
static int n_warnings;

static void keep_warning(void *context, ot_log_level level, const char *message)
{
    (void)context;
    if (level != OT_LOG_WARNING)
        return;
    snprintf(warning, sizeof warning, "%s", message);
    n_warnings++;
}

// `model` is destroyed.
static ot_artifacts *artifacts_of_model(ot_model *model)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_model_destroy(model);
    return artifacts;
}

static ot_artifacts *artifacts_of(const char *file)
{
    return artifacts_of_model(load("recompute", file));
}

static void inputs_of(ot_tensor **x, ot_tensor **labels)
{
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(ROWS, TOKENS, WIDTH), x), OT_OK);
    assert_int_equal(ot_tensor_create(OT_I64, &OT_SHAPE(ROWS), labels), OT_OK);
    for (int i = 0; i < ROWS * TOKENS * WIDTH; i++)
        ((float *)ot_tensor_data(*x))[i] = (float)(i * 37 % 101 - 50) / 40;
    for (int i = 0; i < ROWS; i++)
        ((int64_t *)ot_tensor_data(*labels))[i] = i % 3;
}

static void keep_parameters(ot_session *session, run *r)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(session);

    r->parameters = calloc(MAX_PARAMETERS, sizeof *r->parameters);
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        ot_tensor *t;
        size_t n;

        assert_int_equal(ot_checkpoint_get_parameter(
                             checkpoint, ot_checkpoint_parameter_name(checkpoint, i), &t),
                         OT_OK);
        n = (size_t)ot_tensor_count(t);
        assert_true(r->n_parameters + n <= MAX_PARAMETERS);
        memcpy(r->parameters + r->n_parameters, ot_tensor_data(t), n * sizeof(float));
        r->n_parameters += n;
        ot_tensor_destroy(t);
    }
}

static void train_artifacts(ot_artifacts *artifacts, const ot_session_options *how, run *r)
{
    ot_tensor *x, *labels;
    ot_session *session;

    *r = (run){.n_parameters = 0};
    warning[0] = '\0';
    n_warnings = 0;
    ot_set_log(keep_warning, NULL);
    if (ot_session_create_from_artifacts(artifacts, how, &session) != OT_OK)
        fail_msg("%s", ot_error_message());
    inputs_of(&x, &labels);
    for (int step = 0; step < N_STEPS; step++)
        r->losses[step] = (float)train_step(session, x, labels);
    ot_set_log(NULL, NULL);
    memcpy(r->warning, warning, sizeof warning);
    r->plan_bytes = ot_session_plan_bytes(session);
    r->state_bytes = ot_session_state_bytes(session);
    keep_parameters(session, r);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_session_destroy(session);
}

static void train_model(const char *file, const ot_session_options *how, run *r)
{
    ot_artifacts *artifacts = artifacts_of(file);

    train_artifacts(artifacts, how, r);
    ot_artifacts_destroy(artifacts);
}

static void assert_same_bits(const char *file, const run *found, const run *expected)
{
    if (memcmp(found->losses, expected->losses, sizeof found->losses) != 0)
        fail_msg("%s: the losses differ", file);
    assert_int_equal(found->n_parameters, expected->n_parameters);
    if (memcmp(found->parameters, expected->parameters, found->n_parameters * sizeof(float)) != 0)
        fail_msg("%s: the parameters differ", file);
}

static void forget(run *r)
{
    free(r->parameters);
}

static ot_session_options making_again(unsigned what, int n_layers)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.n_threads = 1;
    options.recompute = what;
    options.recompute_layers = n_layers;
    return options;
}

static void assert_saves(const char *file, unsigned what)
{
    const ot_session_options plain = making_again(0, 0), again = making_again(what, 0);
    run before, after;

    train_model(file, &plain, &before);
    train_model(file, &again, &after);
    assert_same_bits(file, &after, &before);
    if (after.plan_bytes >= before.plan_bytes)
        fail_msg("%s: recompute %u takes %zu bytes, %zu without it", file, what, after.plan_bytes,
                 before.plan_bytes);
    assert_string_equal(after.warning, "");
    forget(&before);
    forget(&after);
}

static const char *const post[] = {"post_erf_classic.onnx", "post_erf_newer.onnx",
                                   "post_tanh_classic.onnx"};
static const char *const pre[] = {"pre_tanh_classic.onnx", "pre_tanh_newer.onnx"};

static void dropout_of_attention_is_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_saves(post[i], OT_RECOMPUTE_ATTN_DROPOUT);
    for (int i = 0; i < 2; i++)
        assert_saves(pre[i], OT_RECOMPUTE_ATTN_DROPOUT);
}

static void gelu_is_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_saves(post[i], OT_RECOMPUTE_GELU);
    for (int i = 0; i < 2; i++)
        assert_saves(pre[i], OT_RECOMPUTE_GELU);
}

static void layers_are_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_saves(post[i], OT_RECOMPUTE_LAYER);
}

static void all_together_are_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_saves(post[i], OT_RECOMPUTE_ALL);
}

// ---- a ceiling ----

static ot_session_options below(size_t memory_max)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;

    options.n_threads = 1;
    options.memory_max = memory_max;
    return options;
}

static void assert_fits(const char *file, double share)
{
    const ot_session_options plain = below(0);
    ot_session_options tight;
    run before, after;

    train_model(file, &plain, &before);
    tight = below(before.state_bytes + (size_t)((double)before.plan_bytes * share));
    train_model(file, &tight, &after);
    assert_same_bits(file, &after, &before);
    if ((double)after.plan_bytes > (double)before.plan_bytes * share)
        fail_msg("%s: %zu bytes, more than %g of %zu", file, after.plan_bytes, share,
                 before.plan_bytes);
    forget(&before);
    forget(&after);
}

static void a_ceiling_that_only_values_made_again_can_meet_changes_no_bit(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_fits(post[i], 0.9);
    for (int i = 0; i < 2; i++)
        assert_fits(pre[i], 0.9);
    assert_fits("post_erf_classic.onnx", 0.6);
    assert_fits("pre_tanh_classic.onnx", 0.65);
}

static void assert_refused(size_t memory_max, const char *reason)
{
    ot_artifacts *artifacts = artifacts_of("post_erf_classic.onnx");
    const ot_session_options tight = below(memory_max);
    ot_session *session = NULL;
    ot_tensor *x, *labels;
    ot_status st = ot_session_create_from_artifacts(artifacts, &tight, &session);

    inputs_of(&x, &labels);
    if (st == OT_OK)
        st = ot_session_train_step(session, (const ot_tensor *const[]){x, labels}, 2, NULL, 0);
    assert_int_equal(st, OT_ERR_NO_MEMORY);
    if (strstr(ot_error_message(), reason) == NULL)
        fail_msg("'%s', expected '%s' in it", ot_error_message(), reason);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

static void what_cannot_fit_is_refused_with_the_least_that_was_found(void **state)
{
    const ot_session_options plain = below(0);
    run before;

    (void)state;
    train_model("post_erf_classic.onnx", &plain, &before);
    assert_refused(before.state_bytes + before.plan_bytes / 8,
                   "this is the least that was found with values made again");
    assert_refused(before.state_bytes + before.plan_bytes / 8, "largest: ");
    assert_refused(before.state_bytes / 2, "parameters, gradients and moments need");
    forget(&before);
}

// ---- patterns ----

static void layers_are_counted_from_the_first(void **state)
{
    const ot_session_options all = making_again(OT_RECOMPUTE_LAYER, 0);
    const ot_session_options one = making_again(OT_RECOMPUTE_LAYER, 1);
    const ot_session_options two = making_again(OT_RECOMPUTE_LAYER, 2);
    const ot_session_options five = making_again(OT_RECOMPUTE_LAYER, 5);
    run r[4];

    (void)state;
    train_model(post[0], &all, &r[0]);
    train_model(post[0], &one, &r[1]);
    train_model(post[0], &two, &r[2]);
    train_model(post[0], &five, &r[3]);
    assert_true(r[1].plan_bytes > r[2].plan_bytes);
    assert_int_equal(r[2].plan_bytes, r[0].plan_bytes); // of three layers
    assert_int_equal(r[3].plan_bytes, r[0].plan_bytes);
    assert_string_equal(r[2].warning, "");
    assert_non_null(strstr(r[3].warning, "number_recompute_layers is 5, the model has 3 layers"));
    for (int i = 0; i < 4; i++)
        forget(&r[i]);
}

static const char tanh_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 8, 16] x) => (float[n, 3] y)\n"
    "{ w = RandomNormal<shape = [16, 3]>() t = Tanh(x) h = MatMul(t, w)\n"
    "  y = ReduceMean<axes = [1], keepdims = 0>(h) }";

static void what_is_not_there_is_said_once(void **state)
{
    const ot_session_options layers = making_again(OT_RECOMPUTE_LAYER, 0);
    const ot_session_options all = making_again(OT_RECOMPUTE_ALL, 0);
    ot_model *model;
    ot_artifacts *artifacts;
    run r;

    (void)state;
    train_model(pre[0], &layers, &r);
    assert_non_null(strstr(r.warning, "0 values begin a layer"));
    assert_non_null(strstr(r.warning, "and 2 end one"));
    assert_int_equal(n_warnings, 1);
    forget(&r);
    assert_int_equal(ot_model_load_buffer(tanh_text, sizeof tanh_text - 1, NULL, &model), OT_OK);
    artifacts = artifacts_of_model(model);
    train_artifacts(artifacts, &all, &r);
    assert_int_equal(n_warnings, 3); // one for each
    forget(&r);
    ot_artifacts_destroy(artifacts);
}

// One after the other, as ONNX Runtime's optimiser and other exporters write it.
static const char forms[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
    "g (float[n, 8, 16] x) => (float[n, 3] y)\n"
    "<float[48] bias = {%s}, float half = {0.5}, float one = {1}, float root = {0.7071067},\n"
    " float a = {0.044715}, float b = {0.7978846}, float three = {3}>\n"
    "{\n"
    "  w1 = RandomNormal<shape = [16, 48], scale = 0.25, seed = 1.0>()\n"
    "  w2 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 2.0>()\n"
    "  w3 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 3.0>()\n"
    "  w4 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 4.0>()\n"
    "  w5 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 5.0>()\n"
    "  w6 = RandomNormal<shape = [48, 3], scale = 0.15, seed = 6.0>()\n"
    "  m1 = MatMul(x, w1)\n"
    "  g1 = com.microsoft.Gelu(m1)\n"
    "  m2 = MatMul(g1, w2)\n"
    "  g2 = com.microsoft.FastGelu(m2)\n"
    "  m3 = MatMul(g2, w3)\n"
    "  g3 = com.microsoft.BiasGelu(m3, bias)\n"
    "  m4 = MatMul(g3, w4)\n"
    "  e1 = Mul(m4, root) e2 = Erf(e1) e3 = Add(one, e2) e4 = Mul(half, m4) g4 = Mul(e3, e4)\n"
    "  m5 = MatMul(g4, w5)\n"
    "  t1 = Mul(m5, m5) t2 = Mul(t1, m5) t3 = Mul(a, t2) t4 = Add(m5, t3) t5 = Mul(b, t4)\n"
    "  t6 = Tanh(t5) t7 = Add(t6, one) t8 = Mul(t7, m5) g5 = Mul(t8, half)\n"
    "  m6 = MatMul(g5, w6)\n"
    "  y = ReduceMean<axes = [1], keepdims = 0>(m6)\n"
    "}\n";

static void every_form_of_gelu_is_known(void **state)
{
    const ot_session_options plain = making_again(0, 0), again = making_again(OT_RECOMPUTE_GELU, 0);
    const size_t gelu_bytes = (size_t)ROWS * TOKENS * 48 * sizeof(float);
    static char text[sizeof forms + 1000], bias[500];
    ot_artifacts *artifacts;
    ot_model *model;
    run before, after;

    (void)state;
    for (int i = 0; i < 48; i++)
        snprintf(bias + strlen(bias), sizeof bias - strlen(bias), "%s%g", i > 0 ? "," : "",
                 0.01 * i);
    snprintf(text, sizeof text, forms, bias);
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_OK);
    artifacts = artifacts_of_model(model);
    train_artifacts(artifacts, &plain, &before);
    ot_artifacts_destroy(artifacts);
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_OK);
    artifacts = artifacts_of_model(model);
    train_artifacts(artifacts, &again, &after);
    ot_artifacts_destroy(artifacts);
    assert_same_bits("forms", &after, &before);
    // Four of five at least are not alive at once any more; the last is made again at once.
    if (after.plan_bytes + 4 * gelu_bytes > before.plan_bytes)
        fail_msg("%zu bytes, %zu without", after.plan_bytes, before.plan_bytes);
    forget(&before);
    forget(&after);
}

static void odd_options_are_refused(void **state)
{
    ot_artifacts *artifacts = artifacts_of(post[0]);
    ot_session_options odd = making_again(OT_RECOMPUTE_ALL + 1, 0);
    ot_session *session;

    (void)state;
    assert_int_equal(ot_session_create_from_artifacts(artifacts, &odd, &session), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "recompute is 8, expected a sum of 1, 2 and 4");
    odd = making_again(0, -1);
    assert_int_equal(ot_session_create_from_artifacts(artifacts, &odd, &session), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "recompute_layers is -1, expected at least 0");
    ot_artifacts_destroy(artifacts);
}

// ---- memory that runs out ----

void ot__alloc_fail_after(int64_t n); // base

static void a_step_survives_every_failing_allocation(void **state)
{
    const ot_session_options plain = below(0);
    ot_artifacts *artifacts = artifacts_of("post_erf_newer.onnx");
    ot_session_options how = making_again(OT_RECOMPUTE_ALL, 0);
    ot_tensor *x, *labels, *loss = NULL;
    ot_session *session;
    ot_status st = OT_ERR_NO_MEMORY;
    run before;

    (void)state;
    train_model("post_erf_newer.onnx", &plain, &before);
    how.memory_max = before.state_bytes + before.plan_bytes / 4 * 3;
    how.recompute = OT_RECOMPUTE_ATTN_DROPOUT;
    inputs_of(&x, &labels);
    assert_int_equal(ot_session_create_from_artifacts(artifacts, &how, &session), OT_OK);
    for (int64_t n = 0; st != OT_OK && n < 1000000; n += 1 + n / 24) {
        ot__alloc_fail_after(n);
        st = ot_session_train_step(session, (const ot_tensor *const[]){x, labels}, 2, &loss, 1);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
    }
    assert_int_equal(st, OT_OK);
    assert_true(*(const float *)ot_tensor_data(loss) == before.losses[0]);
    ot_tensor_destroy(loss);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    forget(&before);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dropout_of_attention_is_made_again),
        TEST(gelu_is_made_again),
        TEST(layers_are_made_again),
        TEST(all_together_are_made_again),
        TEST(a_ceiling_that_only_values_made_again_can_meet_changes_no_bit),
        TEST(what_cannot_fit_is_refused_with_the_least_that_was_found),
        TEST(layers_are_counted_from_the_first),
        TEST(what_is_not_there_is_said_once),
        TEST(every_form_of_gelu_is_known),
        TEST(odd_options_are_refused),
        TEST(a_step_survives_every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
