// SPDX-License-Identifier: Apache-2.0
// State dicts of trainers: where one was taken another goes on, bit for bit.
#include "dropout_fixture.h"
#include "trainer/trainer.h"
#include "unit/base/temporary_folder.h"

enum { SECTIONS = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_OWN };

static ot_trainer *trained(const char *rule, int64_t n_calls)
{
    ot_trainer *trainer = dropout_trainer(rule, 1);

    for (int64_t i = 0; i < n_calls; i++)
        dropout_step(trainer, i, 1);
    return trainer;
}

static ot_dict *shards_of(ot_trainer *trainer)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *dict;

    o.copy = 1;
    need(ot_trainer_get_shards(trainer, SECTIONS, &o, &dict));
    return dict;
}

static void assert_same_shards(ot_trainer *a, ot_trainer *b)
{
    ot_checkpoint *p = ot_session_checkpoint(ot_trainer_session(a));
    ot_checkpoint *q = ot_session_checkpoint(ot_trainer_session(b));
    ot_step_info of_a = OT_STEP_INFO_INIT, of_b = OT_STEP_INFO_INIT;

    need(ot_trainer_info(a, &of_a));
    need(ot_trainer_info(b, &of_b));
    assert_int_equal(of_a.step, of_b.step);
    assert_int_equal(of_a.optimization_step, of_b.optimization_step);
    for (int i = 0; i < ot_checkpoint_parameter_count(p); i++) {
        const char *name = ot_checkpoint_parameter_name(p, i);
        ot_tensor *x, *y;

        need(ot_checkpoint_get_parameter(p, name, &x));
        need(ot_checkpoint_get_parameter(q, name, &y));
        assert_memory_equal(ot_tensor_data(x), ot_tensor_data(y), ot_tensor_bytes(x));
        ot_tensor_destroy(x);
        ot_tensor_destroy(y);
    }
}

static void a_trainer_goes_on_where_another_was(void **state)
{
    static const char *const rules[] = {"LambOptimizer", "AdamOptimizer", "SGDOptimizer"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(rules); i++) {
        ot_trainer *from = trained(rules[i], 4), *to = trained(rules[i], 1);
        ot_dict *dict = shards_of(from);

        need(ot_trainer_check_shards(to, SECTIONS, dict, NULL, NULL));
        need(ot_trainer_set_shards(to, SECTIONS, dict, NULL, NULL));
        assert_same_shards(from, to);
        dropout_step(from, 9, 1); // dropout masks are the same, too
        dropout_step(to, 9, 1);
        assert_same_shards(from, to);
        ot_dict_destroy(dict);
        ot_trainer_destroy(from);
        ot_trainer_destroy(to);
    }
}

// Its session leaves setting to the trainer, which keeps counts of its own.
static void the_session_of_a_trainer_is_set_by_the_trainer(void **state)
{
    ot_trainer *trainer = trained("AdamOptimizer", 1);
    ot_dict *dict = shards_of(trainer);

    (void)state;
    assert_int_equal(ot_session_set_shards(ot_trainer_session(trainer), SECTIONS, dict, NULL, NULL),
                     OT_ERR_STATE);
    ot_dict_destroy(dict);
    ot_trainer_destroy(trainer);
}

static void counts_that_are_none_are_refused(void **state)
{
    ot_trainer *trainer = trained("AdamOptimizer", 2), *same = trained("AdamOptimizer", 2);
    ot_dict *dict = shards_of(trainer), *train;

    (void)state;
    need(ot_dict_get_dict(dict, "train", &train));
    need(ot_dict_set_int(train, "train_step", -4));
    assert_int_equal(ot_trainer_set_shards(trainer, SECTIONS, dict, NULL, NULL), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "train_step of the state is -4"));
    assert_same_shards(trainer, same);
    ot_dict_destroy(dict);
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(same);
}

// ---- checkpoint directories ----

// What trainers, and sessions, write trainers go on from, and the other way round.
static void a_trainer_goes_on_from_a_directory(void **state)
{
    const char *path = in_folder(state, "directory");
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    ot_trainer *from = trained("AdamOptimizer", 4);
    ot_shards_job *job;

    options.replaces = 1;
    need(ot_shards_job_create(&job));
    for (int i = 0; i < 3; i++) {
        ot_trainer *to = trained("AdamOptimizer", 1);

        if (i == 0)
            need(ot_trainer_save_shards(from, path, &options));
        if (i == 1)
            need(ot_trainer_save_shards_async(from, job, path, &options));
        if (i == 2)
            need(ot_session_save_shards(ot_trainer_session(from), path, &options));
        need(ot_shards_job_wait(job));
        need(ot_trainer_load_shards(to, path));
        assert_same_shards(from, to);
        dropout_step(from, i, 1);
        dropout_step(to, i, 1);
        assert_same_shards(from, to);
        ot_trainer_destroy(to);
    }
    ot_shards_job_destroy(job);
    ot_trainer_destroy(from);
}

static ot_session *session_of(ot_artifacts **artifacts)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_session *session;

    end_in_loss(&how, &loss);
    how.optimizer = &adam;
    options.n_threads = 1;
    need(ot_artifacts_generate(model, &how, artifacts));
    need(ot_session_create_from_artifacts(*artifacts, &options, &session));
    ot_model_destroy(model);
    return session;
}

static void a_session_goes_on_from_a_directory_of_a_trainer(void **state)
{
    enum { MOST = 256 };
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    float values[2][MOST] = {{0}};
    ot_artifacts *artifacts[2];
    ot_session *sessions[2];
    ot_trainer *trainer;

    for (int i = 0; i < 2; i++)
        sessions[i] = session_of(&artifacts[i]);
    need(ot_trainer_create_from_session(sessions[0], NULL, &options, &trainer));
    for (int i = 0; i < 3; i++)
        dropout_step(trainer, i, 1);
    need(ot_trainer_save_shards(trainer, in_folder(state, "directory"), NULL));
    ot_trainer_destroy(trainer);
    need(ot_session_load_shards(sessions[1], in_folder(state, "directory")));
    assert_int_equal(ot_session_step_count(sessions[1]), 3);
    for (int i = 0; i < 2; i++) {
        const int64_t n = ot_session_parameters_size(sessions[i], OT_PARAMETERS_ALL);

        assert_in_range(n, 1, MOST);
        need(ot_session_get_parameters(sessions[i], OT_PARAMETERS_ALL, values[i], n));
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    for (int i = 0; i < 2; i++) {
        ot_session_destroy(sessions[i]);
        ot_artifacts_destroy(artifacts[i]);
    }
}

static ot_trainer *scaled_trainer(const ot_optimizer_options *rule, ot_loss_scaler *scaler)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_trainer *trainer;

    options.precision = OT_PRECISION_F16;
    options.loss_scaler = scaler;
    options.n_threads = 1;
    need(ot_trainer_create(model, NULL, rule, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

// From what a trainer saves, and from what the training loop does: a property of its session.
static void a_loss_scale_goes_on_from_a_directory(void **state)
{
    const ot_optimizer_options rule = dropout_rule("AdamOptimizer");
    const char *path = in_folder(state, "directory");
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;

    options.replaces = 1;
    for (int is_loop = 0; is_loop < 2; is_loop++) {
        ot_loss_scaler scalers[] = {OT_LOSS_SCALER_INIT, OT_LOSS_SCALER_INIT};
        ot_trainer *trainers[2];

        for (int i = 0; i < 2; i++) {
            scalers[i].loss_scale = 16;
            scalers[i].up_scale_window = 2;
            trainers[i] = scaled_trainer(&rule, &scalers[i]);
        }
        for (int i = 0; i < 3; i++)
            dropout_step(trainers[0], i, 1);
        assert_true(scalers[0].loss_scale > scalers[1].loss_scale);
        if (is_loop) {
            need(ot__trainer_put_scale(trainers[0]));
            need(ot_session_save_shards(ot_trainer_session(trainers[0]), path, &options));
        } else {
            need(ot_trainer_save_shards(trainers[0], path, &options));
        }
        need(ot_trainer_load_shards(trainers[1], path));
        for (int i = 0; i < 2; i++)
            dropout_step(trainers[i], 7, 1);
        assert_true(memcmp(&scalers[0].loss_scale, &scalers[1].loss_scale, sizeof(double)) == 0);
        assert_same_shards(trainers[0], trainers[1]);
        ot_trainer_destroy(trainers[0]);
        ot_trainer_destroy(trainers[1]);
    }
}

static void a_directory_says_whose_function_takes_it(void **state)
{
    ot_trainer *trainer = trained("AdamOptimizer", 2), *same = trained("AdamOptimizer", 2);
    const char *path = in_folder(state, "directory");
    ot_trainer *between = dropout_trainer("AdamOptimizer", 2);

    need(ot_trainer_save_shards(trainer, path, NULL));
    assert_int_equal(ot_session_load_shards(ot_trainer_session(trainer), path), OT_ERR_STATE);
    assert_string_equal(ot_error_message(), "the session belongs to a trainer, whose state "
                                            "ot_trainer_load_shards() takes over");
    assert_int_equal(ot_trainer_load_shards(trainer, in_folder(state, "none")), OT_ERR_NOT_FOUND);
    assert_same_shards(trainer, same);
    dropout_step(between, 1, 1);
    assert_int_equal(ot_trainer_save_shards(between, in_folder(state, "between"), NULL),
                     OT_ERR_STATE);
    assert_non_null(strstr(ot_error_message(), "in an accumulation of 1 micro-batches"));
    ot_trainer_destroy(trainer);
    ot_trainer_destroy(same);
    ot_trainer_destroy(between);
}

// ---- names ----

// A Gelu that can be made again, and a buffer that the exporter has made a constant.
static const char gelu_text[] = "<ir_version: 8, opset_import: [\"\" : 20]>\n"
                                "net (float[N,3] x, float[N] t) => (float[N] y, float loss)\n"
                                "<float[3,4] w1 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3},\n"
                                " float[4] w2 = {0.5, -0.5, 0.25, 1}>\n"
                                "{\n"
                                "  buffer = Constant<value = float[1] {0.125}>()\n"
                                "  h = MatMul(x, w1)\n"
                                "  m = Mul(h, buffer)\n"
                                "  g = Gelu(m)\n"
                                "  y = MatMul(g, w2)\n"
                                "  e = Sub(y, t)\n"
                                "  q = Mul(e, e)\n"
                                "  loss = ReduceMean<keepdims = 0>(q)\n"
                                "}\n";

static void add_names(ot_dict *dict, const char *path, ot__buf *out)
{
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        const ot_tensor *tensor;
        char inner_path[128];
        ot_dict_kind kind;
        ot_dict *inner;

        need(ot_dict_kind_of(dict, name, &kind));
        (void)snprintf(inner_path, sizeof inner_path, "%s/%s", path, name);
        if (kind == OT_DICT_DICT) {
            need(ot_dict_get_dict(dict, name, &inner));
            add_names(inner, inner_path, out);
        } else if (kind == OT_DICT_TENSOR) {
            need(ot_dict_get_tensor(dict, name, &tensor));
            ot__buf_printf(out, "%s %s\n", inner_path, ot_dtype_name(tensor->dtype));
        }
    }
}

// Also how a step computes leaves names and types of a state what they are.
static void names_and_types_are_those_of_the_plain_model(void **state)
{
    static const char expected[] = "/model/w1 f32\n/model/w2 f32\n"
                                   "/optim/state/w1/exp_avg f32\n"
                                   "/optim/state/w1/exp_avg_sq f32\n"
                                   "/optim/state/w2/exp_avg f32\n"
                                   "/optim/state/w2/exp_avg_sq f32\n";
    const ot_optimizer_options rule = dropout_rule("AdamOptimizer");
    static const struct {
        int gelu_recompute;
        ot_precision precision;
    } ways[] = {{0, OT_PRECISION_F32},
                {1, OT_PRECISION_F32},
                {0, OT_PRECISION_BF16},
                {1, OT_PRECISION_F16}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(ways); i++) {
        ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
        ot__buf names = {0};
        ot_trainer *trainer;
        ot_model *model;
        ot_dict *dict;

        options.gelu_recompute = ways[i].gelu_recompute;
        options.precision = ways[i].precision;
        need(ot_model_load_buffer(gelu_text, sizeof gelu_text - 1, NULL, &model));
        need(ot_trainer_create(model, NULL, &rule, &options, &trainer));
        (void)dropout_step(trainer, 1, 1);
        dict = shards_of(trainer);
        add_names(dict, "", &names);
        assert_string_equal(names.data, expected);
        need(ot_trainer_set_shards(trainer, SECTIONS, dict, NULL, NULL));
        ot__buf_deinit(&names);
        ot_dict_destroy(dict);
        ot_trainer_destroy(trainer);
        ot_model_destroy(model);
    }
}

#define FOLDER_TEST(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, temporary_folder_make, temporary_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_goes_on_where_another_was),
        cmocka_unit_test(the_session_of_a_trainer_is_set_by_the_trainer),
        cmocka_unit_test(counts_that_are_none_are_refused),
        cmocka_unit_test(names_and_types_are_those_of_the_plain_model),
        FOLDER_TEST(a_trainer_goes_on_from_a_directory),
        FOLDER_TEST(a_session_goes_on_from_a_directory_of_a_trainer),
        FOLDER_TEST(a_loss_scale_goes_on_from_a_directory),
        FOLDER_TEST(a_directory_says_whose_function_takes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
