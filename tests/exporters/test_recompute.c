// SPDX-License-Identifier: Apache-2.0
// Transformers that PyTorch's exporters wrote (record_recompute.py) train to the same bits whatever
// is made again for the backward pass, in less memory.
#include "runs.h"

// What is there to be made again in each.
typedef struct exported {
    const char *file;
    unsigned what;
} exported;

static const exported all_exported[] = {
    {"post_erf_classic.onnx", OT_RECOMPUTE_ALL},
    {"post_erf_newer.onnx", OT_RECOMPUTE_ALL},
    {"post_tanh_classic.onnx", OT_RECOMPUTE_ALL},
    {"pre_tanh_classic.onnx", OT_RECOMPUTE_ALL},
    {"pre_tanh_newer.onnx", OT_RECOMPUTE_ALL},
    {"layer_classic.onnx", OT_RECOMPUTE_ALL}, // torch.nn.TransformerEncoderLayer
    {"layer_newer.onnx", OT_RECOMPUTE_ALL},
    {"decoder_newer.onnx", OT_RECOMPUTE_ATTN_DROPOUT | OT_RECOMPUTE_LAYER}, // with Relu
    {"bert_classic.onnx", OT_RECOMPUTE_ALL},
    {"gpt2_classic.onnx", OT_RECOMPUTE_ALL},
    {"vit_newer.onnx", OT_RECOMPUTE_ALL},
    {0},
};

static void assert_saves(const exported *model, ot_precision precision)
{
    const unsigned alone[] = {OT_RECOMPUTE_ATTN_DROPOUT, OT_RECOMPUTE_GELU, OT_RECOMPUTE_LAYER,
                              model->what};
    ot_session_options plain = making_again(0, 0);
    run before, after;

    plain.precision = precision;
    train_model(model->file, &plain, &before);
    for (size_t k = 0; k < sizeof alone / sizeof alone[0]; k++) {
        ot_session_options again = making_again(alone[k] & model->what, 0);

        if (again.recompute == 0)
            continue;
        again.precision = precision;
        train_model(model->file, &again, &after);
        assert_same_bits(model->file, &after, &before);
        // Fused attention draws again anyway.
        if (again.recompute == OT_RECOMPUTE_ATTN_DROPOUT ? after.plan_bytes != before.plan_bytes
                                                         : after.plan_bytes >= before.plan_bytes)
            fail_msg("%s: recompute %u takes %zu bytes, %zu without it", model->file, alone[k],
                     after.plan_bytes, before.plan_bytes);
        assert_string_equal(after.warning, "");
        forget(&after);
    }
    forget(&before);
}

static void what_exporters_write_is_made_again_in_f32(void **state)
{
    (void)state;
    for (const exported *model = all_exported; model->file != NULL; model++)
        assert_saves(model, OT_PRECISION_F32);
}

static void what_exporters_write_is_made_again_in_bf16(void **state)
{
    (void)state;
    for (const exported *model = all_exported; model->file != NULL; model++)
        assert_saves(model, OT_PRECISION_BF16);
}

static void what_exporters_write_is_made_again_in_f16(void **state)
{
    (void)state;
    for (const exported *model = all_exported; model->file != NULL; model++)
        assert_saves(model, OT_PRECISION_F16);
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
    for (const exported *model = all_exported; model->file != NULL; model++)
        assert_fits(model->file, 0.9);
    assert_fits("post_erf_classic.onnx", 0.6);
    assert_fits("pre_tanh_classic.onnx", 0.65);
}

static void assert_refused(size_t memory_max, const char *reason)
{
    ot_artifacts *artifacts = artifacts_of("post_erf_classic.onnx");
    const ot_session_options tight = below(memory_max);
    ot_session *session = NULL;
    ot_tensor *inputs[MAX_INPUTS];
    ot_status st = ot_session_create_from_artifacts(artifacts, &tight, &session);
    int n_inputs = 0;

    if (st == OT_OK) {
        inputs_of(session, inputs, &n_inputs);
        st = ot_session_train_step(session, (const ot_tensor *const *)inputs, n_inputs, NULL, 0);
    }
    assert_int_equal(st, OT_ERR_NO_MEMORY);
    if (strstr(ot_error_message(), reason) == NULL)
        fail_msg("'%s', expected '%s' in it", ot_error_message(), reason);
    destroy_inputs(inputs, n_inputs);
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

static void assert_three_layers(const char *file)
{
    const ot_session_options all = making_again(OT_RECOMPUTE_LAYER, 0);
    const ot_session_options one = making_again(OT_RECOMPUTE_LAYER, 1);
    const ot_session_options two = making_again(OT_RECOMPUTE_LAYER, 2);
    const ot_session_options five = making_again(OT_RECOMPUTE_LAYER, 5);
    run r[4];

    train_model(file, &all, &r[0]);
    train_model(file, &one, &r[1]);
    train_model(file, &two, &r[2]);
    train_model(file, &five, &r[3]);
    assert_true(r[1].plan_bytes > r[2].plan_bytes);
    assert_int_equal(r[2].plan_bytes, r[0].plan_bytes); // of three layers
    assert_int_equal(r[3].plan_bytes, r[0].plan_bytes);
    assert_string_equal(r[2].warning, "");
    assert_non_null(strstr(r[3].warning, "number_recompute_layers is 5, the model has 3 layers"));
    for (int i = 0; i < 4; i++)
        forget(&r[i]);
}

static void layers_are_counted_from_the_first(void **state)
{
    (void)state;
    assert_three_layers("post_erf_classic.onnx");
    assert_three_layers("pre_tanh_classic.onnx");
}

static const char tanh_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 8, 16] x) => (float[n, 3] y)\n"
    "{ w = RandomNormal<shape = [16, 3]>() t = Tanh(x) h = MatMul(t, w)\n"
    "  y = ReduceMean<axes = [1], keepdims = 0>(h) }";

static void what_is_not_there_is_said_once(void **state)
{
    const ot_session_options all = making_again(OT_RECOMPUTE_ALL, 0);
    run r;

    (void)state;
    train_text(tanh_text, &all, &r);
    assert_int_equal(n_warnings, 3); // one for each
    assert_non_null(strstr(r.warning, "transformer_layer_recompute: 0 layers are found"));
    forget(&r);
}

// Tanh between the product and Softmax: attention stays in operators of its own.
#define CAPPED(x, i)                                                                               \
    "k" i " = Transpose<perm = [0, 2, 1]>(" x ") s" i " = MatMul(" x ", k" i ") c" i " = Tanh(s" i \
    ") p" i " = Softmax(c" i ") d" i " = Dropout(p" i ", ratio, on) h" i " = MatMul(d" i ", " x    \
    ")\n"
static const char capped_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 32, 4] x) => (float[n, 3] y)\n"
    "{ w = RandomNormal<shape = [4, 3]>() v = RandomNormal<shape = [4, 4]>() x1 = MatMul(x, v) "
    "ratio = Constant<value = float {0.25}>()\n"
    "on = Constant<value = bool {1}>()\n" CAPPED("x1", "1") CAPPED("h1", "2")
        CAPPED("h2", "3") "z = MatMul(h3, w) y = ReduceMean<axes = [1], keepdims = 0>(z) }";

static void dropout_of_attention_in_several_operators_is_made_again(void **state)
{
    const ot_session_options plain = making_again(0, 0),
                             again = making_again(OT_RECOMPUTE_ATTN_DROPOUT, 0);
    run before, after;

    (void)state;
    train_text(capped_text, &plain, &before);
    train_text(capped_text, &again, &after);
    assert_string_equal(after.warning, "");
    assert_true(after.plan_bytes < before.plan_bytes);
    assert_same_bits("capped_text", &after, &before);
    forget(&before);
    forget(&after);
}

static void odd_options_are_refused(void **state)
{
    ot_artifacts *artifacts = artifacts_of("post_erf_classic.onnx");
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
    ot_tensor *inputs[MAX_INPUTS], *loss = NULL;
    ot_session *session;
    ot_status st = OT_ERR_NO_MEMORY;
    int n_inputs;
    run before;

    (void)state;
    train_model("post_erf_newer.onnx", &plain, &before);
    how.memory_max = before.state_bytes + before.plan_bytes / 4 * 3;
    how.recompute = OT_RECOMPUTE_ATTN_DROPOUT;
    assert_int_equal(ot_session_create_from_artifacts(artifacts, &how, &session), OT_OK);
    inputs_of(session, inputs, &n_inputs);
    for (int64_t n = 0; st != OT_OK && n < 1000000; n += 1 + n / 24) {
        ot__alloc_fail_after(n);
        st = ot_session_train_step(session, (const ot_tensor *const *)inputs, n_inputs, &loss, 1);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
    }
    assert_int_equal(st, OT_OK);
    assert_true(*(const float *)ot_tensor_data(loss) == before.losses[0]);
    ot_tensor_destroy(loss);
    destroy_inputs(inputs, n_inputs);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    forget(&before);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_exporters_write_is_made_again_in_f32),
        TEST(what_exporters_write_is_made_again_in_bf16),
        TEST(what_exporters_write_is_made_again_in_f16),
        TEST(a_ceiling_that_only_values_made_again_can_meet_changes_no_bit),
        TEST(what_cannot_fit_is_refused_with_the_least_that_was_found),
        TEST(layers_are_counted_from_the_first),
        TEST(what_is_not_there_is_said_once),
        TEST(dropout_of_attention_in_several_operators_is_made_again),
        TEST(odd_options_are_refused),
        TEST(a_step_survives_every_failing_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
