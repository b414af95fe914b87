// SPDX-License-Identifier: Apache-2.0
// Options that a trainer hands on: files of graphs, and what the session is told.
#include "session/session_internal.h"
#include "trainer_fixture.h"
#include "unit/base/temporary_folder.h"

// ---- files of graphs ----

static int n_nodes_of(const ot_model *model, const char *op)
{
    int n = 0;

    for (int i = 0; i < ot_model_node_count(model); i++)
        n += strstr(ot_model_node_operator(model, i), op) != NULL;
    return n;
}

static ot_model *read_back(const char *path)
{
    ot_model *model;

    need(ot_model_load(path, NULL, &model));
    return model;
}

static bool takes(const ot_model *model, const char *name)
{
    for (int i = 0; i < ot_model_input_count(model); i++)
        if (strcmp(ot_model_input_name(model, i), name) == 0)
            return true;
    return false;
}

// Accumulators of gradients and optimizers in the file; a training graph has the names that
// artifacts give.
static void assert_graph(const char *path, int n_accumulators, int n_optimizers)
{
    ot_model *model = read_back(path);

    assert_int_equal(n_nodes_of(model, "InPlaceAccumulatorV2"), n_accumulators);
    assert_int_equal(n_nodes_of(model, "SGDOptimizer"), n_optimizers);
    assert_true(takes(model, "x") && takes(model, "w"));
    assert_int_equal(takes(model, "w_grad.accumulation.buffer"), n_accumulators > 0);
    ot_model_destroy(model);
}

// Rows of input x; -1: any number.
static int64_t rows_of_x(const char *path)
{
    ot_model *model = read_back(path);
    ot_dtype dtype;
    ot_shape shape;

    need(ot_model_value_info(model, "x", &dtype, &shape));
    ot_model_destroy(model);
    return shape.dim[0];
}

static void graphs_are_written_where_the_options_say(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;

    options.model_after_graph_transforms_path = in_folder(state, "forward.onnx");
    options.model_with_gradient_graph_path = in_folder(state, "gradient.onnx");
    options.model_with_training_graph_path = in_folder(state, "training.onnxtxt");
    options.model_with_training_graph_after_optimization_path = in_folder(state, "step.onnx");
    trainer = linear_trainer(&options);
    assert_graph(options.model_after_graph_transforms_path, 0, 0);
    assert_graph(options.model_with_gradient_graph_path, 2, 0);
    assert_graph(options.model_with_training_graph_path, 2, 1);
    assert_int_equal(rows_of_x(options.model_with_training_graph_after_optimization_path), -1);
    step_over(trainer, 1);
    assert_int_equal(rows_of_x(options.model_with_training_graph_after_optimization_path), N_ROWS);
    assert_graph(options.model_with_training_graph_after_optimization_path, 2, 0);
    remove(options.model_with_training_graph_after_optimization_path);
    step_over(trainer, 2); // it was the first step's
    assert_int_equal(count_entries(*state), 3);
    ot_trainer_destroy(trainer);
}

// Adam counts the updates of each weight: an input whose size is a symbol.
static void inputs_of_the_optimizer_keep_their_symbols(void **state)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;
    ot_dtype dtype;
    ot_shape shape;

    adam.name = "AdamOptimizer";
    options.model_with_training_graph_path = in_folder(state, "training.onnx");
    need(ot_trainer_create(model, NULL, &adam, &options, &trainer));
    ot_trainer_destroy(trainer);
    ot_model_destroy(model);
    model = read_back(options.model_with_training_graph_path);
    need(ot_model_value_info(model, "step", &dtype, &shape));
    assert_int_equal(dtype, OT_I64);
    assert_int_equal(shape.ndim, 1);
    assert_int_equal(shape.dim[0], -1);
    ot_model_destroy(model);
}

static void a_path_that_cannot_be_written_is_an_error_at_once(void **state)
{
    static const size_t paths[] = {
        offsetof(ot_trainer_options, model_after_graph_transforms_path),
        offsetof(ot_trainer_options, model_with_gradient_graph_path),
        offsetof(ot_trainer_options, model_with_training_graph_path),
        offsetof(ot_trainer_options, model_with_training_graph_after_optimization_path)};
    ot_model *model = linear_model();

    for (size_t i = 0; i < OT_COUNT(paths); i++) {
        ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
        const char *path = in_folder(state, "none/graph.onnx");
        ot_trainer *trainer;

        memcpy((char *)&options + paths[i], &path, sizeof path);
        assert_int_equal(ot_trainer_create(model, NULL, NULL, &options, &trainer), OT_ERR_IO);
        assert_non_null(strstr(ot_error_message(), "debug.graph_save_paths.model_"));
        assert_non_null(strstr(ot_error_message(), path));
    }
    ot_model_destroy(model);
}

// ---- the session ----

static ot_session_options session_options_of(const ot_trainer_options *options)
{
    ot_trainer *trainer = linear_trainer(options);
    const ot_session_options got = ot_trainer_session(trainer)->options;

    ot_trainer_destroy(trainer);
    return got;
}

static void the_session_has_the_options_of_the_trainer(void **state)
{
    ot_session_options session = OT_SESSION_OPTIONS_INIT, got;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    (void)state;
    options.n_threads = 3;
    options.memory_max = 123456;
    got = session_options_of(&options);
    assert_int_equal(got.n_threads, 3);
    assert_int_equal(got.memory_max, 123456);
    assert_int_equal(got.reproducible, 0);
    options.deterministic_compute = 1;
    assert_int_equal(session_options_of(&options).reproducible, 1);
    options.deterministic_compute = 0;
    options.reproducible = 1;
    assert_int_equal(session_options_of(&options).reproducible, 1);
    options.reproducible = 0;
    session.reproducible = session.reference_kernels = 1;
    session.n_threads = 2;
    session.memory_max = 654321;
    options.session = &session;
    got = session_options_of(&options);
    assert_int_equal(got.n_threads, 3); // the trainer's own go first
    assert_int_equal(got.memory_max, 123456);
    assert_int_equal(got.reproducible, 1);
    assert_int_equal(got.reference_kernels, 1);
}

static void artifacts_get_them_too(void **state)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_trainer *trainer;
    ot_model *model = linear_model();

    (void)state;
    end_in_loss(&how, &loss);
    need(ot_artifacts_generate(model, &how, &artifacts));
    ot_model_destroy(model);
    options.n_threads = 3;
    options.reproducible = 1;
    need(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer));
    assert_int_equal(ot_trainer_session(trainer)->options.n_threads, 3);
    assert_int_equal(ot_trainer_session(trainer)->options.reproducible, 1);
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(artifacts);
}

static void programs_that_make_the_session_get_them(void **state)
{
    ot_session_options session = OT_SESSION_OPTIONS_INIT, found = OT_SESSION_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    (void)state;
    session.n_threads = 5;
    session.memory_max = 1000;
    session.recompute_layers = 4;
    options.session = &session;
    options.n_threads = 3;
    options.deterministic_compute = 1;
    options.mixed_precision = 1;
    options.gelu_recompute = 1;
    options.transformer_layer_recompute = 1;
    need(ot_trainer_session_options(&options, &found));
    assert_int_equal(found.n_threads, 3);
    assert_int_equal(found.memory_max, 1000);
    assert_int_equal(found.reproducible, 1);
    assert_int_equal(found.precision, OT_PRECISION_F16);
    assert_int_equal(found.recompute, OT_RECOMPUTE_GELU | OT_RECOMPUTE_LAYER);
    assert_int_equal(found.recompute_layers, 4);
    options.number_recompute_layers = 2;
    need(ot_trainer_session_options(&options, &found));
    assert_int_equal(found.recompute_layers, 2);
    options.n_threads = -1;
    assert_int_equal(ot_trainer_session_options(&options, &found), OT_ERR_INVALID);
    assert_int_equal(found.n_threads, 3);
}

// w and b with gradients are 32 bytes.
static void less_memory_than_the_state_is_refused_naming_the_largest_weights(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;

    (void)state;
    options.memory_max = 31;
    assert_int_equal(ot_trainer_create(model, NULL, NULL, &options, &trainer), OT_ERR_NO_MEMORY);
    assert_null(trainer);
    assert_non_null(strstr(ot_error_message(), "31 are allowed"));
    assert_non_null(strstr(ot_error_message(), "largest parameters: 'w' 12, 'b' 4"));
    ot_model_destroy(model);
}

// ---- the seed ----

static const char dropout_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                   "g (float[N, 64] x) => (float loss)\n"
                                   "<float[1] w = {1}, float half = {0.5}, bool on = {1}>\n"
                                   "{ y = Mul(x, w) d = Dropout(y, half, on) p = Mul(d, x)\n"
                                   "  loss = ReduceSum<keepdims = 0>(p) }";

// The sum of what is kept.
static double loss_with_seed(int64_t seed)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model;
    ot_trainer *trainer;
    float x[64];
    const ot_tensor *inputs[1];
    ot_tensor *loss = NULL;
    double got;

    options.seed = seed;
    need(ot_model_load_buffer(dropout_text, sizeof dropout_text - 1, NULL, &model));
    need(ot_trainer_create(model, NULL, NULL, &options, &trainer));
    for (int i = 0; i < 64; i++)
        x[i] = (float)(1 + i % 7) / 8;
    inputs[0] = tensor_of(x, OT_SHAPE(1, 64));
    need(ot_trainer_train_step(trainer, inputs, 1, &loss, 1));
    got = (double)*(const float *)ot_tensor_data_const(loss);
    ot_tensor_destroy(loss);
    ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[0]);
    ot_trainer_destroy(trainer);
    ot_model_destroy(model);
    return got;
}

static void the_seed_decides_what_dropout_drops(void **state)
{
    (void)state;
    assert_true(loss_with_seed(1) == loss_with_seed(1));
    assert_true(loss_with_seed(1) != loss_with_seed(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(graphs_are_written_where_the_options_say),
        TEST_IN_FOLDER(inputs_of_the_optimizer_keep_their_symbols),
        TEST_IN_FOLDER(a_path_that_cannot_be_written_is_an_error_at_once),
        cmocka_unit_test(the_session_has_the_options_of_the_trainer),
        cmocka_unit_test(artifacts_get_them_too),
        cmocka_unit_test(programs_that_make_the_session_get_them),
        cmocka_unit_test(less_memory_than_the_state_is_refused_naming_the_largest_weights),
        cmocka_unit_test(the_seed_decides_what_dropout_drops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
