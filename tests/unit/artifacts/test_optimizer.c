// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"

static const ot_optimizer_options defaults = OT_OPTIMIZER_OPTIONS_INIT;

static ot_model *make(ot_optimizer_options options)
{
    ot_model *model;

    assert_ok(ot__optimizer_model(&options, NULL, OT_F32, 17, &model));
    return model;
}

static void assert_inputs(const ot_model *model, const char *const *names, int n)
{
    assert_int_equal(model->graph->n_inputs, n);
    for (int i = 0; i < n; i++)
        assert_string_equal(model->graph->inputs[i]->name, names[i]);
}

static void adamw_has_the_inputs_that_the_runtime_checks(void **state)
{
    const char *const names[] = {
        "learning_rate",       "step", "params", "gradients", "first_order_moments",
        "second_order_moments"};
    ot_model *model = make(defaults);
    const ot_node *node = model->graph->nodes[0];

    (void)state;
    assert_inputs(model, names, 6);
    assert_int_equal(model->graph->inputs[0]->dtype, OT_F32);
    assert_int_equal(model->graph->inputs[1]->dtype, OT_I64);
    assert_int_equal(model->graph->inputs[1]->shape.dim[0], 1);
    assert_int_equal(model->graph->inputs[2]->kind, OT_VALUE_SEQUENCE);
    assert_int_equal(model->graph->inputs[2]->dtype, OT_F32);
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(node->op_type, "AdamWOptimizer");
    assert_string_equal(node->domain, "com.microsoft");
    assert_int_equal(node->n_inputs, 6);
    assert_true(ot__node_attr(node, "alpha")->f == 0.9f);
    assert_true(ot__node_attr(node, "beta")->f == 0.999f);
    assert_true(ot__node_attr(node, "epsilon")->f == 1e-6f);
    assert_true(ot__node_attr(node, "weight_decay")->f == 0.0f);
    assert_int_equal(ot__node_attr(node, "correct_bias")->i, 1);
    assert_int_equal(ot__node_attr(node, "adam_mode")->i, 1);
    assert_string_equal(model->graph->outputs[0]->name, "onnx::adamw.updated_flag::1");
    assert_int_equal(model->graph->outputs[0]->dtype, OT_BOOL);
    assert_int_equal(model->graph->outputs[0]->shape.dim[0], 1);
    assert_string_equal(model->producer_name, "orttraining");
    assert_string_equal(model->graph->name, "graph");
    assert_int_equal(ot__model_opset(model, ""), 17);
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 1);
    assert_int_equal(model->n_metadata, 0);
    ot_model_destroy(model);
}

static void sgd_has_step_and_moments_that_its_node_does_not_read(void **state)
{
    const char *const names[] = {"learning_rate", "step", "params", "gradients",
                                 "first_order_moments"};
    ot_optimizer_options options = defaults;
    ot_model *model;

    (void)state;
    options.name = "SGDOptimizerV2";
    model = make(options);
    assert_inputs(model, names, 5);
    assert_string_equal(model->graph->nodes[0]->op_type, "SGDOptimizerV2");
    assert_int_equal(model->graph->nodes[0]->n_inputs, 3);
    assert_int_equal(model->graph->nodes[0]->n_attrs, 0);
    assert_string_equal(model->graph->outputs[0]->name, "onnx::update_completed::1");
    assert_false(model->graph->outputs[0]->has_shape);
    ot_model_destroy(model);
}

static void clipping_stands_between_gradients_and_optimizer(void **state)
{
    ot_optimizer_options options = defaults;
    ot_model *model;
    const ot_node *clip, *adamw;

    (void)state;
    options.max_norm = 2.5;
    model = make(options);
    clip = model->graph->nodes[0];
    adamw = model->graph->nodes[1];
    assert_string_equal(clip->op_type, "InplaceClipGradNorm");
    assert_true(ot__node_attr(clip, "max_norm")->f == 2.5f);
    assert_string_equal(clip->inputs[0]->name, "gradients");
    assert_string_equal(clip->outputs[0]->name, "onnx::clip_grad_norm_output::1");
    assert_int_equal(clip->outputs[0]->kind, OT_VALUE_SEQUENCE);
    assert_ptr_equal(adamw->inputs[3], clip->outputs[0]);
    ot_model_destroy(model);
}

static void what_onnx_runtime_cannot_load_says_so(void **state)
{
    static const ot_hyper nesterov = {"nesterov", 1}, mode = {"adam_mode", 0};
    ot_optimizer_options options = defaults;
    ot_model *model;

    (void)state;
    options.name = "SGDOptimizer";
    options.hyper = &nesterov;
    options.n_hyper = 1;
    model = make(options);
    assert_string_equal(model->graph->nodes[0]->domain, "ai.onnxtrain");
    assert_int_equal(model->n_metadata, 1);
    assert_non_null(strstr(model->metadata[1], "not loadable"));
    ot_model_destroy(model);
    options = defaults;
    options.hyper = &mode; // PyTorch's form, which ONNX Runtime knows
    options.n_hyper = 1;
    model = make(options);
    assert_int_equal(model->n_metadata, 0);
    ot_model_destroy(model);
}

static void no_optimizer_is_no_model(void **state)
{
    ot_optimizer_options options = defaults;
    ot_model *model;

    (void)state;
    options.name = NULL;
    assert_ok(ot__optimizer_model(&options, NULL, OT_F32, 17, &model));
    assert_null(model);
}

static void expect_refused(ot_optimizer_options options, const ot_hyper *hyper, int n,
                           ot_status status, const char *message)
{
    ot_model *model;

    options.hyper = hyper;
    options.n_hyper = n;
    assert_fails(ot__optimizer_model(&options, NULL, OT_F32, 17, &model), status, message);
}

static void hyper_parameters_out_of_range_are_refused(void **state)
{
    static const ot_hyper none_corrected[] = {{"adam_mode", 0}, {"correct_bias", 0}};
    static const struct {
        ot_hyper hyper;
        ot_status status;
        const char *message;
    } cases[] = {
        {{"alpha", 1},
         OT_ERR_INVALID,
         "AdamWOptimizer: alpha is 1, expected at least 0 and below 1"},
        {{"alpha", NAN}, OT_ERR_INVALID, "AdamWOptimizer: alpha is "},
        {{"epsilon", -1e-9}, OT_ERR_INVALID, "epsilon is -1e-09, expected at least 0 and below"},
        {{"weight_decay", INFINITY}, OT_ERR_INVALID, "weight_decay is inf"},
        {{"adam_mode", 2}, OT_ERR_INVALID, "adam_mode is 2, expected 0 or 1"},
        {{"correct_bias", 0.5}, OT_ERR_INVALID, "correct_bias is 0.5, expected 0 or 1"},
        {{"bata", 0.5},
         OT_ERR_NOT_FOUND,
         "AdamWOptimizer has no 'bata', it has: alpha, beta, epsilon, weight_decay, correct_bias, "
         "adam_mode; did you mean 'beta'?"},
        {{"momentum", 0.5}, OT_ERR_NOT_FOUND, "AdamWOptimizer has no 'momentum'"},
    };
    ot_optimizer_options options = defaults;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        expect_refused(options, &cases[i].hyper, 1, cases[i].status, cases[i].message);
    expect_refused(options, none_corrected, 2, OT_ERR_INVALID, "adam_mode 0 needs correct_bias 1");
    options.max_norm = -1.0;
    expect_refused(options, NULL, 0, OT_ERR_INVALID, "max_norm is -1");
    options = defaults;
    options.lr = NAN;
    expect_refused(options, NULL, 0, OT_ERR_INVALID, "lr is ");
    options = defaults;
    options.name = "AdamOptimiser";
    expect_refused(options, NULL, 0, OT_ERR_NOT_FOUND,
                   "unknown optimizer 'AdamOptimiser', known: ");
}

// ONNX Runtime's artifacts: epsilon 1e-6, weight_decay 0 and adam_mode 1, unlike its schema.
static void every_optimizer_tells_its_hyper_parameters(void **state)
{
    static const ot_hyper_info expected[] = {
        {sizeof *expected, "alpha", 0.9, 0, 1, 0},
        {sizeof *expected, "beta", 0.999, 0, 1, 0},
        {sizeof *expected, "epsilon", 1e-6, 0, 1e30, 0},
        {sizeof *expected, "weight_decay", 0, 0, 1e30, 0},
        {sizeof *expected, "correct_bias", 1, 0, 2, 1},
        {sizeof *expected, "adam_mode", 1, 0, 2, 1},
    };
    ot_hyper_info info = OT_HYPER_INFO_INIT;

    (void)state;
    for (int i = 0; i < (int)OT_COUNT(expected); i++) {
        assert_ok(ot_optimizer_hyper("AdamWOptimizer", i, &info));
        assert_string_equal(info.name, expected[i].name);
        assert_true(info.fallback == expected[i].fallback && info.low == expected[i].low &&
                    info.high == expected[i].high && info.is_whole == expected[i].is_whole);
    }
    assert_fails(ot_optimizer_hyper("AdamWOptimizer", (int)OT_COUNT(expected), &info),
                 OT_ERR_NOT_FOUND, "AdamWOptimizer has no hyper-parameter 6");
    assert_fails(ot_optimizer_hyper("AdamWOptimizer", -1, &info), OT_ERR_NOT_FOUND, "-1");
    assert_fails(ot_optimizer_hyper("Relu", 0, &info), OT_ERR_NOT_FOUND,
                 "unknown optimizer 'Relu'");
    assert_null(ot_optimizer_name(-1));
    assert_null(ot_optimizer_name(ot_optimizer_count()));
    for (int i = 0; i < ot_optimizer_count(); i++)
        for (int k = 0; ot_optimizer_hyper(ot_optimizer_name(i), k, &info) == OT_OK; k++)
            if (!(info.fallback >= info.low && (info.fallback < info.high || isinf(info.high))))
                fail_msg("%s: %s is %g by default", ot_optimizer_name(i), info.name, info.fallback);
}

// ---- groups, averages and what a trainer asks for ----

static const char three_weights[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 2] x) => (float[N, 2] y)"
    "<float[2] w = {1, 2}, float[2] b = {3, 4}, float[2] c = {5, 6}>"
    "{ m = Mul(x, w) n = Add(m, b) y = Mul(n, c) }";

static ot_status generate_by(const ot_optimizer_options *optimizer,
                             const ot__optimizer_wiring *wiring, ot_artifacts **out)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_model *model = read_text(three_weights);
    ot_status st;

    options.optimizer = optimizer;
    st = ot__artifacts_generate(model, &options, wiring, out);
    ot_model_destroy(model);
    return st;
}

static const ot_node *node_of(const ot_artifacts *artifacts, const char *op)
{
    const ot_graph *g = ot_artifacts_optimizer_model(artifacts)->graph;

    for (int i = 0; i < g->n_nodes; i++)
        if (strcmp(g->nodes[i]->op_type, op) == 0)
            return g->nodes[i];
    fail_msg("no node %s", op);
    return NULL;
}

static void assert_floats(const ot_node *node, const char *name, const float *expected, int n)
{
    const ot_attr *a = ot__node_attr(node, name);

    assert_non_null(a);
    assert_int_equal(a->n, n);
    for (int i = 0; i < n; i++)
        assert_true(a->floats[i] == expected[i]);
}

static void the_last_group_that_names_a_parameter_is_its_group(void **state)
{
    static const char *const both[] = {"b", "c"}, *const pattern[] = {"c*"};
    static const ot_hyper decay = {"weight_decay", 0.5}, no_decay = {"weight_decay", 0};
    ot_param_group groups[] = {OT_PARAM_GROUP_INIT, OT_PARAM_GROUP_INIT};
    ot_optimizer_options options = defaults;
    ot_artifacts *artifacts;
    const ot_node *node;
    const ot_attr *a;

    (void)state;
    groups[0].params = both;
    groups[0].n_params = 2;
    groups[0].hyper = &no_decay;
    groups[0].n_hyper = 1;
    groups[1].params = pattern;
    groups[1].n_params = 1;
    groups[1].lr_factor = 0.5;
    options.hyper = &decay;
    options.n_hyper = 1;
    options.groups = groups;
    options.n_groups = 2;
    assert_ok(generate_by(&options, NULL, &artifacts));
    node = node_of(artifacts, "AdamOptimizer"); // AdamWOptimizer has no groups
    assert_string_equal(node->domain, "ai.onnxtrain");
    assert_floats(node, "lambda", (const float[]){0.5f, 0, 0.5f}, 3);
    assert_floats(node, "alpha", (const float[]){0.9f}, 1);
    assert_floats(node, "epsilon", (const float[]){1e-6f}, 1);
    assert_floats(node, "lr_factor", (const float[]){1, 1, 0.5f}, 3);
    assert_floats(node, "max_norm_clip", (const float[]){0}, 1);
    assert_int_equal(ot__node_attr(node, "weight_decay_mode")->ints[0], 1);
    a = ot__node_attr(node, "group");
    assert_int_equal(a->n, 3);
    assert_true(a->ints[0] == 0 && a->ints[1] == 1 && a->ints[2] == 2);
    a = ot__node_attr(node, "names");
    assert_memory_equal(a->strings[1].data, "b", 2);
    assert_int_equal(ot_artifacts_optimizer_model(artifacts)->graph->inputs[0]->shape.dim[0], 3);
    assert_non_null(
        ot_model_metadata(ot_artifacts_optimizer_model(artifacts), "onnxtrain.onnxruntime"));
    ot_artifacts_destroy(artifacts);
}

static void groups_name_what_there_is(void **state)
{
    static const char *const names[] = {"w", "nope", "d*"};
    static const ot_hyper ratio = {"ratio_max", 2}, unknown = {"momentum", 0.5};
    ot_param_group group = OT_PARAM_GROUP_INIT;
    ot_optimizer_options options = defaults;
    ot_artifacts *artifacts;

    (void)state;
    group.params = names;
    group.n_params = 3;
    options.groups = &group;
    options.n_groups = 1;
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_NOT_FOUND, "name 'nope', 'd*'");
    group.n_params = 1;
    group.hyper = &unknown;
    group.n_hyper = 1;
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_NOT_FOUND,
                 "group 0: AdamWOptimizer has no 'momentum'");
    group.hyper = &ratio;
    options.name = "LambOptimizer";
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_INVALID,
                 "group 0: ratio_max is 2 and inf for others: LambOptimizer has one for all");
    group.n_hyper = 0;
    group.lr_factor = -1;
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_INVALID,
                 "group 0: lr_factor is -1");
}

static void what_a_trainer_asks_for_are_inputs_and_outputs(void **state)
{
    static const char *const inputs[] = {"learning_rate",       "step",
                                         "gradient_divisor",    "params",
                                         "gradients",           "first_order_moments",
                                         "second_order_moments"};
    const ot__optimizer_wiring wiring = {.divides = true, .skips = true, .counts_apart = true};
    ot_optimizer_options options = defaults;
    const ot_model *model;
    ot_artifacts *artifacts;
    const ot_node *node;

    (void)state;
    options.max_norm = 2;
    assert_ok(generate_by(&options, &wiring, &artifacts));
    model = ot_artifacts_optimizer_model(artifacts);
    assert_inputs(model, inputs, 7);
    assert_false(ot_dim_is_number(model->graph->inputs[1]->shape.dim[0]));
    assert_int_equal(model->graph->n_outputs, 3);
    assert_int_equal(model->graph->outputs[0]->dtype, OT_BOOL);
    assert_string_equal(model->graph->outputs[1]->name, "gradient_norm");
    assert_int_equal(model->graph->outputs[1]->dtype, OT_F64);
    assert_string_equal(model->graph->outputs[2]->name, "gradients_finite");
    node = node_of(artifacts, "AdamOptimizer");
    assert_true(ot__node_attr(node, "max_norm")->f == 2);
    assert_int_equal(node->n_inputs, 9);
    assert_string_equal(node->inputs[7]->name, "gradient_norm");
    ot_artifacts_destroy(artifacts);
}

static void gradients_are_clipped_in_one_way(void **state)
{
    static const ot_hyper clip = {"max_norm_clip", 1};
    const ot__optimizer_wiring unclipped = {.clips_none = true};
    ot_optimizer_options options = defaults;
    ot_artifacts *artifacts;

    (void)state;
    options.name = "AdamOptimizer"; // by default, like ONNX Runtime's, it clips to a norm of 1
    assert_ok(generate_by(&options, NULL, &artifacts));
    assert_int_equal(node_of(artifacts, "AdamOptimizer")->n_inputs, 8);
    assert_floats(node_of(artifacts, "AdamOptimizer"), "max_norm_clip", (const float[]){1}, 1);
    ot_artifacts_destroy(artifacts);
    assert_ok(generate_by(&options, &unclipped, &artifacts));
    assert_int_equal(node_of(artifacts, "AdamOptimizer")->n_inputs, 6);
    ot_artifacts_destroy(artifacts);
    options.max_norm = 3;
    assert_ok(generate_by(&options, NULL, &artifacts));
    assert_floats(node_of(artifacts, "AdamOptimizer"), "max_norm_clip", (const float[]){0}, 1);
    ot_artifacts_destroy(artifacts);
    options.hyper = &clip;
    options.n_hyper = 1;
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_INVALID,
                 "max_norm and max_norm_clip clip the same gradients");
}

static void an_average_follows_the_update(void **state)
{
    ot_optimizer_options options = defaults;
    ot_artifacts *artifacts;
    const ot_node *average;

    (void)state;
    options.average_decay = 0.75;
    assert_ok(generate_by(&options, NULL, &artifacts));
    average = node_of(artifacts, "ParameterAverage");
    assert_true(ot__node_attr(average, "decay")->f == 0.75f);
    assert_string_equal(average->inputs[1]->name, "averages");
    assert_ptr_equal(average->inputs[2], node_of(artifacts, "AdamOptimizer")->outputs[0]);
    ot_artifacts_destroy(artifacts);
    options.average_decay = 1;
    assert_fails(generate_by(&options, NULL, &artifacts), OT_ERR_INVALID, "average_decay is 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_has_the_inputs_that_the_runtime_checks),
        cmocka_unit_test(sgd_has_step_and_moments_that_its_node_does_not_read),
        cmocka_unit_test(clipping_stands_between_gradients_and_optimizer),
        cmocka_unit_test(what_onnx_runtime_cannot_load_says_so),
        cmocka_unit_test(no_optimizer_is_no_model),
        cmocka_unit_test(hyper_parameters_out_of_range_are_refused),
        cmocka_unit_test(every_optimizer_tells_its_hyper_parameters),
        cmocka_unit_test(the_last_group_that_names_a_parameter_is_its_group),
        cmocka_unit_test(groups_name_what_there_is),
        cmocka_unit_test(what_a_trainer_asks_for_are_inputs_and_outputs),
        cmocka_unit_test(gradients_are_clipped_in_one_way),
        cmocka_unit_test(an_average_follows_the_update),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
