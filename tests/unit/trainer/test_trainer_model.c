// SPDX-License-Identifier: Apache-2.0
// What of a model trains, and in which calls its Dropout drops.
#include "trainer_fixture.h"

typedef struct lines {
    char text[4096];
} lines;

static void note_line(void *context, ot_log_level level, const char *line)
{
    lines *seen = context;
    const size_t length = strlen(seen->text);

    snprintf(seen->text + length, sizeof seen->text - length, "%s %s\n",
             level == OT_LOG_WARNING ? "warning:"
             : level == OT_LOG_INFO  ? "info:"
                                     : "debug:",
             line);
}

// The log has this line.
static void assert_logged(const lines *seen, const char *line)
{
    if (strstr(seen->text, line) == NULL)
        fail_msg("the log is '%s', expected '%s'", seen->text, line);
}

static ot_status create_of(const char *text, const char *frozen, lines *seen, ot_trainer **out)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model;
    ot_status st;

    memset(seen, 0, sizeof *seen);
    options.frozen_weights = &frozen;
    options.n_frozen_weights = frozen != NULL;
    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    ot_set_log(note_line, seen);
    st = ot_trainer_create(model, NULL, NULL, &options, out);
    ot_set_log(NULL, NULL);
    ot_model_destroy(model);
    return st;
}

static int64_t trained_elements(ot_trainer *trainer)
{
    return ot_session_parameters_size(ot_trainer_session(trainer), OT_PARAMETERS_TRAINABLE);
}

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

// ---- initializers ----

static const char apart_text[] = // u and v reach only z
    HEAD "g (float[N, 3] x) => (float loss, float[N] z)\n"
         "<float[3] w = {1, 2, 3}, float[3] u = {1, 2, 3}, float[1] v = {1}>\n"
         "{ y = MatMul(x, w) loss = ReduceMean<keepdims = 0>(y) k = MatMul(x, u) z = Mul(k, v) }";

static void weights_without_a_path_to_the_loss_are_all_named(void **state)
{
    ot_trainer *trainer;
    lines seen;

    (void)state;
    assert_int_equal(create_of(apart_text, NULL, &seen, &trainer), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "initializers 'u', 'v'"));
    assert_non_null(strstr(ot_error_message(), "frozen_weights"));
    assert_int_equal(create_of(apart_text, "[uv]", &seen, &trainer), OT_ERR_INVALID); // no patterns
    assert_int_equal(create_of(apart_text, "u", &seen, &trainer), OT_ERR_INVALID);
    assert_null(strstr(ot_error_message(), "'u'"));
    assert_non_null(strstr(ot_error_message(), "'v'"));
}

static const char still_text[] =
    HEAD "g (float[N, 3] x) => (float loss)\n"
         "<float[3] w = {1, 2, 3}, float two = {2}, float low = {-1}, float[3] step = {1, 1, 1},\n"
         " float lost = {7}, int64[1] no = {1}>\n"
         "{ y = MatMul(x, w) p = Pow(y, two) c = Clip(p, low) f = Floor(step) s = ReduceSum(f)\n"
         "  r = Add(c, s) loss = ReduceMean<keepdims = 0>(r) }";

static void what_only_feeds_inputs_without_gradient_is_frozen_and_told(void **state)
{
    ot_trainer *trainer;
    lines seen;

    (void)state;
    need(create_of(still_text, NULL, &seen, &trainer));
    assert_int_equal(trained_elements(trainer), 3);
    assert_logged(&seen, "info: frozen, since no gradient reaches it: 'two' (exponent of Pow");
    assert_logged(&seen, "'low' (bound of Clip");
    assert_logged(&seen, "'step' (only through input 'X' of Floor");
    assert_logged(&seen, "warning: dropped, since nothing reads it: 'lost', 'no'\n");
    ot_trainer_destroy(trainer);
}

static void a_scalar_that_reaches_the_loss_trains(void **state)
{
    static const char text[] = HEAD "g (float[N, 3] x) => (float loss) <float s = {2}>\n"
                                    "{ y = Mul(x, s) loss = ReduceMean<keepdims = 0>(y) }";
    ot_trainer *trainer;
    lines seen;

    (void)state;
    need(create_of(text, NULL, &seen, &trainer));
    assert_int_equal(trained_elements(trainer), 1);
    assert_string_equal(seen.text, "");
    ot_trainer_destroy(trainer);
}

// ---- Dropout ----

#define DROPOUT(more, constant, inputs)                                                            \
    HEAD "g (float[N, 64] x) => (float loss, float[N, 64] d) <float half = {0.5}" more             \
         "> { " constant "w = RandomNormal<shape = [64]>() y = Mul(x, w) d = Dropout(y, " inputs   \
         ") q = Mul(d, d) loss = ReduceMean<keepdims = 0>(q) }"

// How many of 64 ones are dropped in a step.
static int n_dropped(ot_trainer *trainer, ot_mode mode)
{
    static float ones[64];
    const ot_tensor *inputs[1];
    ot_tensor *outputs[2] = {NULL, NULL};
    int n = 0;

    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    inputs[0] = tensor_of(ones, OT_SHAPE(1, 64));
    need(mode == OT_MODE_TRAIN ? ot_trainer_train_step(trainer, inputs, 1, outputs, 2)
                               : ot_trainer_eval_step(trainer, inputs, 1, outputs, 2));
    for (int i = 0; i < 64; i++)
        n += ((const float *)ot_tensor_data_const(outputs[1]))[i] == 0.0f;
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(outputs[i]);
    ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[0]);
    return n;
}

static void dropout_follows_the_step_where_its_mode_is_an_initializer(void **state)
{
    static const struct {
        const char *text;
        int drops;
        const char *line;
    } cases[] = {
        {DROPOUT(", bool mode = {1}", "", "half, mode"), 1, ""},
        {DROPOUT(", bool mode = {0}", "", "half, mode"), 1, ""},
        {DROPOUT("", "mode = Constant<value = bool {1}>() ", "half, mode"), 1, ""},
        {DROPOUT("", "mode = Constant<value = bool {0}>() ", "half, mode"), 0,
         "warning: Dropout of 'd' drops nothing in training either: 'mode' is a Constant"},
        {DROPOUT("", "", "half"), 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_trainer *trainer;
        float w[64];
        lines seen;

        need(create_of(cases[i].text, NULL, &seen, &trainer));
        for (int k = 0; k < 64; k++)
            w[k] = 1;
        need(
            ot_session_set_parameters(ot_trainer_session(trainer), OT_PARAMETERS_TRAINABLE, w, 64));
        assert_int_equal(n_dropped(trainer, OT_MODE_EVAL), 0);
        assert_int_equal(n_dropped(trainer, OT_MODE_TRAIN) > 0, cases[i].drops);
        assert_int_equal(n_dropped(trainer, OT_MODE_EVAL), 0);
        assert_logged(&seen, cases[i].line);
        assert_null(strstr(seen.text, "dropped, since"));
        ot_trainer_destroy(trainer);
    }
}

// ---- options ----

static void an_option_without_effect_warns_once_a_trainer(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;
    lines seen = {0};
    const char *warning;

    (void)state;
    options.device_mem_limit = 5;
    ot_set_log(note_line, &seen);
    need(ot_trainer_create(model, &linear_description, NULL, &options, &trainer));
    ot_set_log(NULL, NULL);
    warning = strstr(seen.text, "options.device.mem_limit has no effect");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "options.device.mem_limit"));
    ot_trainer_destroy(trainer);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_without_a_path_to_the_loss_are_all_named),
        cmocka_unit_test(what_only_feeds_inputs_without_gradient_is_frozen_and_told),
        cmocka_unit_test(a_scalar_that_reaches_the_loss_trains),
        cmocka_unit_test(an_option_without_effect_warns_once_a_trainer),
        cmocka_unit_test(dropout_follows_the_step_where_its_mode_is_an_initializer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
