// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

// The example of ONNX Runtime's documentation: 784 - 500 - 10, made by hand because its elements
// would be long in a text.
static ot_model *make_mlp(void)
{
    static const struct {
        const char *name;
        int ndim;
        int64_t rows, columns;
    } rows[] = {{"fc1.weight", 2, 500, 784},
                {"fc1.bias", 1, 500, 0},
                {"fc2.weight", 2, 10, 500},
                {"fc2.bias", 1, 10, 0}};
    ot_model *model;
    ot_graph *graph;
    const ot_tensor *tensor;

    assert_ok(ot__model_create(&model));
    model->ir_version = 8;
    model->producer_name = "pytorch";
    model->producer_version = "2.0";
    assert_ok(ot__model_set_opset(model, "", 14));
    graph = model->graph;
    const int64_t batch = ot__dim_symbol(model, "batch");
    ot_value *x = ot__graph_value(graph, "input"), *h = ot__graph_value(graph, "h");
    ot_value *r = ot__graph_value(graph, "r"), *y = ot__graph_value(graph, "output"), *p[4];
    ot_node *node;

    ot__value_set(x, OT_F32, &OT_SHAPE(batch, 784));
    ot__value_set(y, OT_F32, &OT_SHAPE(batch, 10));
    assert_true(ot__graph_add_input(graph, x));
    for (int i = 0; i < 4; i++) {
        const ot_shape shape = {rows[i].ndim, {rows[i].rows, rows[i].columns}};
        ot_tensor *elements = ot__model_tensor_new(model, OT_F32, &shape);

        p[i] = ot__graph_value(graph, rows[i].name);
        ot__value_set(p[i], OT_F32, &shape);
        assert_true(ot__graph_add_initializer(graph, p[i], elements));
        tensor = elements;
        for (int64_t k = 0; k < ot_tensor_count(tensor); k++)
            ((float *)elements->data)[k] = (float)(k % 17) * 0.01f - 0.08f;
    }
    node = ot__graph_add_node(graph, "", "Gemm", "fc1", (ot_value *[]){x, p[0], p[1]}, 3, &h, 1);
    assert_true(ot__node_set_int(node, "transB", 1));
    ot__graph_add_node(graph, "", "Relu", "relu", &h, 1, &r, 1);
    node = ot__graph_add_node(graph, "", "Gemm", "fc2", (ot_value *[]){r, p[2], p[3]}, 3, &y, 1);
    assert_true(ot__node_set_int(node, "transB", 1));
    assert_true(ot__graph_add_output(graph, y));
    return model;
}

static ot_artifacts *generate(const ot_model *model, ot_artifacts_options options)
{
    static const ot_loss_options cross_entropy = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;

    options.losses = &cross_entropy;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    return artifacts;
}

static void assert_names(ot_value *const *values, int n, const char *const *expected,
                         int n_expected)
{
    assert_int_equal(n, n_expected);
    for (int i = 0; i < n; i++)
        assert_string_equal(values[i]->name, expected[i]);
}

#define NAMES(...)                                                                                 \
    (const char *const[]){__VA_ARGS__}, OT_COUNT(((const char *const[]){__VA_ARGS__}))

static void the_training_model_has_the_names_and_order_of_onnx_runtime(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot_artifacts *artifacts = generate(model, options);
    const ot_graph *graph = artifacts->training->graph;

    (void)state;
    assert_names(graph->inputs, graph->n_inputs,
                 NAMES("input", "labels", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
                       "fc1.weight_grad.accumulation.buffer", "fc1.bias_grad.accumulation.buffer",
                       "fc2.weight_grad.accumulation.buffer", "fc2.bias_grad.accumulation.buffer",
                       "lazy_reset_grad"));
    assert_names(graph->outputs, graph->n_outputs,
                 NAMES("onnx::loss::2", "fc1.weight_grad.accumulation.out",
                       "fc1.bias_grad.accumulation.out", "fc2.weight_grad.accumulation.out",
                       "fc2.bias_grad.accumulation.out"));
    assert_int_equal(graph->inputs[1]->dtype, OT_I64);
    assert_string_equal(ot__dim_name(artifacts->training, graph->inputs[1]->shape.dim[0]), "batch");
    assert_int_equal(graph->inputs[6]->dtype, OT_F32);
    assert_int_equal(graph->inputs[6]->shape.dim[0], 500);
    assert_int_equal(graph->inputs[6]->shape.dim[1], 784);
    assert_int_equal(graph->inputs[10]->dtype, OT_BOOL);
    assert_int_equal(graph->inputs[10]->shape.dim[0], 1);
    assert_int_equal(graph->outputs[1]->dtype, OT_BOOL);
    assert_int_equal(ot__model_opset(artifacts->training, "com.microsoft"), 1);
    assert_int_equal(ot__model_opset(artifacts->training, "ai.onnxtrain"), 0);
    assert_string_equal(artifacts->training->producer_name, "pytorch");
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void the_training_model_has_the_nodes_of_onnx_runtime(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot_artifacts *artifacts = generate(model, options);
    const ot_model *training = artifacts->training;
    const ot_value *grad;
    const ot_node *node;

    (void)state;
    assert_string_equal(training->graph->nodes[3]->op_type, "SoftmaxCrossEntropyLoss");
    assert_true(find_value(training, "onnx::loss::2_grad")->is_initializer);
    grad = find_value(training, "output_grad");
    assert_string_equal(grad->producer->op_type, "SoftmaxCrossEntropyLossGrad");
    assert_string_equal(grad->producer->domain, "com.microsoft");
    assert_string_equal(grad->producer->name,
                        "onnx::SoftmaxCrossEntropyLoss::4_Grad/SoftmaxCrossEntropyLossGrad_0");
    assert_string_equal(grad->producer->inputs[0]->name, "onnx::loss::2_grad");
    assert_string_equal(grad->producer->inputs[1]->name, "onnx::log_prob::3");
    assert_string_equal(grad->producer->inputs[2]->name, "labels");
    node = find_value(training, "r_grad")->producer;
    assert_string_equal(node->op_type, "Gemm");
    assert_string_equal(node->name, "fc2_Grad/Gemm_0");
    node = find_value(training, "fc2.weight_grad")->producer;
    assert_string_equal(node->op_type, "Gemm");
    assert_string_equal(node->name, "fc2_Grad/Gemm_1");
    node = find_value(training, "h_grad")->producer;
    assert_string_equal(node->op_type, "ReluGrad");
    assert_string_equal(node->name, "relu_Grad/ReluGrad_0");
    assert_string_equal(find_value(training, "fc1.weight_grad")->producer->name, "fc1_Grad/Gemm_0");
    assert_int_equal(count_nodes(training, "InPlaceAccumulatorV2"), 4);
    node = training->graph->nodes[training->graph->n_nodes - 1];
    assert_string_equal(node->name, "GradientAccumulator4");
    assert_string_equal(node->inputs[0]->name, "fc2.bias_grad.accumulation.buffer");
    assert_string_equal(node->inputs[1]->name, "fc2.bias_grad");
    assert_string_equal(node->inputs[2]->name, "lazy_reset_grad");
    assert_string_equal(node->outputs[0]->name, "fc2.bias_grad.accumulation.out");
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void the_training_model_says_what_its_loss_is(void **state)
{
    static const ot_loss_options term = OT_LOSS_OPTIONS_INIT;
    ot_loss_options losses[] = {term, term};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;

    (void)state;
    losses[0].has_ignore_index = 1;
    losses[0].ignore_index = -1;
    losses[1].loss = OT_LOSS_MSE;
    losses[1].factor = 0.5;
    losses[1].input = "h";
    losses[1].target = "wanted";
    options.losses = losses;
    options.n_losses = 2;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_string_equal(ot_model_metadata(artifacts->training, "onnxtrain.loss"),
                        "1\tcross-entropy ignoring -1\toutput\tlabels\n0.5\tmse\th\twanted\n");
    assert_null(ot_model_metadata(artifacts->eval, "onnxtrain.loss")); // exported models come of it
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void the_eval_model_is_forward_and_loss(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot_artifacts *artifacts = generate(model, options);
    const ot_graph *graph = artifacts->eval->graph;

    (void)state;
    assert_names(graph->inputs, graph->n_inputs,
                 NAMES("input", "labels", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
    assert_names(graph->outputs, graph->n_outputs, NAMES("onnx::loss::2"));
    assert_int_equal(graph->n_nodes, 4);
    assert_int_equal(ot__model_opset(artifacts->eval, "com.microsoft"), 0);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void the_forward_model_stays_as_it_is(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot__buf before = {0}, after = {0};

    (void)state;
    assert_ok(ot__onnx_write(model, &before));
    ot_artifacts_destroy(generate(model, options));
    assert_ok(ot__onnx_write(model, &after));
    assert_int_equal(before.length, after.length);
    assert_memory_equal(before.data, after.data, before.length);
    ot__buf_deinit(&before);
    ot__buf_deinit(&after);
    ot_model_destroy(model);
}

static void the_checkpoint_holds_trainable_and_frozen_parameters(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const frozen[] = {"fc1.*"};
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;

    (void)state;
    options.frozen = frozen;
    options.n_frozen = 1;
    artifacts = generate(model, options);
    assert_int_equal(ot_checkpoint_parameter_count(artifacts->checkpoint), 4);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "fc1.weight"), 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(artifacts->checkpoint, "fc2.weight"), 1);
    assert_string_equal(artifacts->parameter_order[0], "fc1.weight");
    assert_string_equal(artifacts->parameter_order[3], "fc2.bias");
    assert_null(ot__graph_find(artifacts->training->graph, "h_grad"));
    assert_int_equal(count_nodes(artifacts->training, "InPlaceAccumulatorV2"), 2);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void initializers_that_are_no_parameters_stay_embedded(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const trainable[] = {"fc2.weight", "fc2.bias"};
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;

    (void)state;
    options.trainable = trainable;
    options.n_trainable = 2;
    artifacts = generate(model, options);
    assert_true(find_value(artifacts->training, "fc1.weight")->is_initializer);
    assert_true(find_value(artifacts->eval, "fc1.weight")->is_initializer);
    assert_int_equal(artifacts->n_parameters, 2);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void without_trainable_parameters_there_are_no_gradients(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    static const char *const none[] = {NULL};
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;

    (void)state;
    options.trainable = none;
    options.n_trainable = 0;
    options.optimizer = &optimizer;
    optimizer.name = NULL;
    artifacts = generate(model, options);
    assert_int_equal(artifacts->training->graph->n_nodes, 4);
    assert_string_equal(
        artifacts->training->graph->inputs[artifacts->training->graph->n_inputs - 1]->name,
        "lazy_reset_grad");
    assert_null(ot_artifacts_optimizer_model(artifacts));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void additional_outputs_follow_the_loss(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const outputs[] = {"output", "r"};
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;
    const ot_graph *graph;

    (void)state;
    options.additional_outputs = outputs;
    options.n_additional_outputs = 2;
    artifacts = generate(model, options);
    graph = artifacts->training->graph;
    assert_string_equal(graph->outputs[1]->name, "output");
    assert_string_equal(graph->outputs[2]->name, "r");
    assert_string_equal(graph->nodes[graph->n_nodes - 1]->name, "GradientAccumulator6");
    assert_int_equal(artifacts->eval->graph->n_outputs, 3);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void an_additional_output_that_is_none_is_refused(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const char *const outputs[] = {"nope"};
    ot_model *model = make_mlp();
    ot_artifacts *artifacts;

    (void)state;
    options.additional_outputs = outputs;
    options.n_additional_outputs = 1;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_NOT_FOUND,
                 "additional output 'nope'");
    ot_model_destroy(model);
}

static void the_same_input_gives_the_same_bytes(void **state)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = make_mlp();
    ot__buf bytes[2] = {{0}, {0}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        ot_artifacts *artifacts = generate(model, options);

        assert_ok(ot__onnx_write(artifacts->training, &bytes[i]));
        assert_ok(ot__onnx_write(artifacts->eval, &bytes[i]));
        assert_ok(ot__onnx_write(artifacts->optimizer, &bytes[i]));
        ot_artifacts_destroy(artifacts);
    }
    assert_int_equal(bytes[0].length, bytes[1].length);
    assert_memory_equal(bytes[0].data, bytes[1].data, bytes[0].length);
    ot__buf_deinit(&bytes[0]);
    ot__buf_deinit(&bytes[1]);
    ot_model_destroy(model);
}

static void inputs_that_look_like_gradients_are_refused(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[2] x_grad) => (float[2] y) <float[2] w = {1, 2}>"
                                "{ y = Mul(x_grad, w) }");
    ot_artifacts *artifacts;

    (void)state;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_INVALID,
                 "input 'x_grad' has a name that training uses");
    ot_model_destroy(model);
}

static void initializers_among_the_inputs_are_taken_for_parameters(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 3, opset_import: [\"\" : 17]>"
                                "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}>"
                                "{ y = Mul(x, w) }");
    ot_artifacts *artifacts;

    (void)state;
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    assert_names(artifacts->eval->graph->inputs, artifacts->eval->graph->n_inputs, NAMES("x", "w"));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static void parameters_of_two_types_are_refused(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[2] x) => (float[2] y)"
                                "<float[2] w = {1, 2}, double[2] v = {1, 2}>"
                                "{ c = Cast<to = 1>(v) a = Mul(x, w) y = Mul(a, c) }");
    ot_artifacts *artifacts;

    (void)state;
    assert_fails(ot_artifacts_generate(model, &options, &artifacts), OT_ERR_UNSUPPORTED,
                 "parameter 'v' is f64, but others are f32");
    ot_model_destroy(model);
}

// Every allocation may fail; nothing may be left behind (the sanitizer looks).
static void running_out_of_memory_anywhere_is_an_error(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[N, 2] x) => (float[N, 2] y)"
                                "<float[2, 2] w = {1, 2, 3, 4}, float[2] b = {0, 0}> {"
                                "  s = Constant<value = float {2.0}>() d = Neg(s)"
                                "  h = MatMul(x, w) i = Add(h, b) j = Mul(i, d) y = Tanh(j) }");
    ot_status st = OT_ERR_NO_MEMORY;
    ot_artifacts *artifacts = NULL;
    int64_t n = 0;

    (void)state;
    loss.loss = OT_LOSS_MSE;
    options.losses = &loss;
    options.n_losses = 1;
    for (; st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = ot_artifacts_generate(model, &options, &artifacts);
        ot__alloc_fail_after(-1);
        assert_true((artifacts != NULL) == (st == OT_OK));
    }
    assert_int_equal(st, OT_OK);
    assert_true(n > 50);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_training_model_has_the_names_and_order_of_onnx_runtime),
        cmocka_unit_test(the_training_model_has_the_nodes_of_onnx_runtime),
        cmocka_unit_test(the_training_model_says_what_its_loss_is),
        cmocka_unit_test(the_eval_model_is_forward_and_loss),
        cmocka_unit_test(the_forward_model_stays_as_it_is),
        cmocka_unit_test(the_checkpoint_holds_trainable_and_frozen_parameters),
        cmocka_unit_test(initializers_that_are_no_parameters_stay_embedded),
        cmocka_unit_test(without_trainable_parameters_there_are_no_gradients),
        cmocka_unit_test(additional_outputs_follow_the_loss),
        cmocka_unit_test(an_additional_output_that_is_none_is_refused),
        cmocka_unit_test(the_same_input_gives_the_same_bytes),
        cmocka_unit_test(inputs_that_look_like_gradients_are_refused),
        cmocka_unit_test(initializers_among_the_inputs_are_taken_for_parameters),
        cmocka_unit_test(parameters_of_two_types_are_refused),
        cmocka_unit_test(running_out_of_memory_anywhere_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
