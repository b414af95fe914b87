// SPDX-License-Identifier: Apache-2.0
// Transformers that PyTorch's exporters wrote (record_recompute.py) train to the same bits whatever
// is made again for the backward pass, in less memory.
#include <stdlib.h>

#include "losses.h"

enum { ROWS = 4, TOKENS = 8, WIDTH = 16, N_STEPS = 4, MAX_PARAMETERS = 100000 };

typedef struct run {
    float losses[N_STEPS];
    float *parameters;
    size_t n_parameters, plan_bytes;
    char warning[512];
} run;

static char warning[512];

static void keep_warning(void *context, ot_log_level level, const char *message)
{
    (void)context;
    if (level == OT_LOG_WARNING)
        snprintf(warning, sizeof warning, "%s", message);
}

static ot_artifacts *artifacts_of(const char *file)
{
    ot_model *model = load("recompute", file);
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    if (ot_artifacts_generate(model, &options, &artifacts) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    ot_model_destroy(model);
    return artifacts;
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

static void train_model(const char *file, const ot_session_options *how, run *r)
{
    ot_artifacts *artifacts = artifacts_of(file);
    ot_tensor *x, *labels;
    ot_session *session;

    *r = (run){.n_parameters = 0};
    warning[0] = '\0';
    ot_set_log(keep_warning, NULL);
    if (ot_session_create_from_artifacts(artifacts, how, &session) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    inputs_of(&x, &labels);
    for (int step = 0; step < N_STEPS; step++)
        r->losses[step] = (float)train_step(session, x, labels);
    ot_set_log(NULL, NULL);
    memcpy(r->warning, warning, sizeof warning);
    r->plan_bytes = ot_session_plan_bytes(session);
    keep_parameters(session, r);
    ot_tensor_destroy(x);
    ot_tensor_destroy(labels);
    ot_session_destroy(session);
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

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dropout_of_attention_is_made_again),
        TEST(gelu_is_made_again),
        TEST(layers_are_made_again),
        TEST(all_together_are_made_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
