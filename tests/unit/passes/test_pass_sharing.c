// SPDX-License-Identifier: Apache-2.0
// What exporters merged is separated, what they untied is joined: rule by rule.
#include <stdio.h>

#include "unit/passes/sharing_model.h"

// ---- copies under names (rule 1) ----

static void a_copy_under_a_parameters_name_is_a_parameter(void **state)
{
    ot_model *model =
        quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                          "    <float[2,2] 'a.weight' = {1, 2, 3, 4}>\n{\n"
                          "    'b.weight' = Identity('a.weight')\n"
                          "    h = MatMul(x, 'a.weight')\n    y = MatMul(h, 'b.weight')\n}");
    const ot__sharings found = run(model);
    const ot__sharing *item = about(&found, OT_SHARING_SEPARATED, "a.weight");

    (void)state;
    assert_input(model, "h", 1, "a.weight");
    assert_input(model, "y", 1, "b.weight");
    assert_int_equal(model->graph->n_nodes, 2);
    assert_non_null(item);
    assert_int_equal(item->n_parts, 2);
    assert_string_equal(item->parts[0], "a.weight");
    assert_string_equal(item->parts[1], "b.weight");
    ot_model_destroy(model);
}

static void a_table_that_is_a_weight_under_another_name_stays_one(void **state)
{
    ot_model *model = quoted_model(
        HEAD "g (int64[N] i) => (float[N,3] y)\n"
             "    <float[3,3] 'e.weight' = {1, 2, 3, 4, 5, 6, 7, 8, 9}>\n{\n"
             "    'h.weight' = Identity('e.weight')\n"
             "    r = Gather('e.weight', i)\n    y = Gemm<transB = 1>(r, 'h.weight')\n}");
    const ot__sharings found = run(model);

    (void)state;
    assert_int_equal(model->graph->n_initializers, 1);
    assert_null(about(&found, OT_SHARING_SEPARATED, "e.weight"));
    assert_non_null(about(&found, OT_SHARING_LEFT, "e.weight"));
    ot_model_destroy(model);
}

static void a_copy_that_nothing_else_shares_stays(void **state)
{
    ot_model *model = quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y, float[2] b)\n"
                                        "    <float[2] a = {1, 2}, float[2] c = {1, 3}>\n{\n"
                                        "    d = Identity(c)\n    h = Mul(x, d)\n"
                                        "    b = Identity(a)\n    y = Mul(h, a)\n}");
    const ot__sharings found = run(model);

    (void)state;
    assert_int_equal(found.n, 0);
    assert_int_equal(model->graph->n_initializers, 2);
    assert_int_equal(model->graph->n_nodes, 4);
    ot_model_destroy(model);
}

// ---- generated names (rule 2) ----

static const char folded[] =
    HEAD "g (float[N,2] x) => (float[N,2] y)\n"
         "    <float[2,2] 'onnx::MatMul_7' = {1, 2, 3, 4}, float[2] 'p.bias' = {1, 2}>\n{\n"
         "    ['Identity_0'] 'onnx::MatMul_8' = Identity('onnx::MatMul_7')\n"
         "    ['/a/MatMul'] h = MatMul(x, 'onnx::MatMul_7')\n"
         "    ['/%s/MatMul'] y = MatMul(h, 'onnx::MatMul_8')\n}";

static ot_model *folded_model(const char *second)
{
    char text[1024];

    snprintf(text, sizeof text, folded, second);
    return quoted_model(text);
}

static void a_folded_weight_of_two_modules_is_two(void **state)
{
    ot_model *model = folded_model("b");
    const ot__sharings found = run(model);

    (void)state;
    assert_input(model, "h", 1, "a.weight");
    assert_input(model, "y", 1, "b.weight");
    assert_string_equal(maker(model, "h")->inputs[1]->alias, "onnx::MatMul_7");
    assert_null(ot__graph_find(model->graph, "onnx::MatMul_7"));
    assert_null(ot__graph_find(model->graph, "onnx::MatMul_8"));
    assert_int_equal(model->graph->n_nodes, 2);
    assert_non_null(about(&found, OT_SHARING_SEPARATED, "onnx::MatMul_7"));
    ot_model_destroy(model);
}

static void a_folded_weight_of_a_module_that_is_called_twice_is_one(void **state)
{
    ot_model *model = folded_model("a_1");
    const ot__sharings found = run(model);

    (void)state;
    assert_int_equal(found.n, 0);
    assert_input(model, "h", 1, "onnx::MatMul_7");
    ot_model_destroy(model);
}

// An optimiser has taken the copies away that had the other names.
static void zeros_of_an_optimised_file_are_one_for_each_module(void **state)
{
    static const char text[] =
        HEAD "g (float[N,2] x) => (float[N,2] y)\n"
             "    <float[2] 'a.bias' = {0, 0}, float[2,2] '%s' = {1, 2, 3, 4}>\n{\n"
             "    m = MatMul(x, '%s')\n    ['/a/Add'] h = Add(m, 'a.bias')\n"
             "    n = MatMul(h, x)\n    ['/b/Add'] i = Add(n, 'a.bias')\n"
             "    o = MatMul(i, x)\n    ['/b_1/Add'] y = Add(o, 'a.bias')\n}";
    static const char *const weights[] = {"c.weight", "/c/Transpose_output_0"};

    (void)state;
    for (int optimised = 0; optimised < 2; optimised++) {
        char filled[sizeof text + 64];
        ot_model *model;

        snprintf(filled, sizeof filled, text, weights[optimised], weights[optimised]);
        model = quoted_model(filled);
        run(model);
        assert_input(model, "h", 1, "a.bias");
        assert_input(model, "i", 1, optimised ? "b.bias" : "a.bias");
        assert_input(model, "y", 1, optimised ? "b.bias" : "a.bias");
        ot_model_destroy(model);
    }
}

// As nn.MultiheadAttention: parts of a bias of zeros have become copies of the output's bias.
static void folded_biases_of_one_module_are_one_for_each_weight(void **state)
{
    ot_model *model = quoted_model(
        HEAD "g (float[N,2] x) => (float[N,2] y)\n"
             "    <float[2] 'a.out.bias' = {0, 0}, float[2,2] 'a.out.weight' = {1, 2, 3, 4},\n"
             "     float[2,2] 'onnx::MatMul_7' = {5, 6, 7, 8}, float[2,2] 'onnx::MatMul_8' = "
             "{2, 1, 4, 3}>\n{\n"
             "    'onnx::Add_5' = Identity('a.out.bias')\n"
             "    'onnx::Add_6' = Identity('a.out.bias')\n"
             "    ['/a/MatMul'] q = MatMul(x, 'onnx::MatMul_7')\n"
             "    ['/a/Add'] h = Add('onnx::Add_5', q)\n"
             "    ['/a/MatMul_1'] k = MatMul(h, 'onnx::MatMul_8')\n"
             "    ['/a/Add_1'] i = Add('onnx::Add_6', k)\n"
             "    ['/a_1/MatMul'] p = MatMul(i, 'onnx::MatMul_7')\n"
             "    ['/a_1/Add'] j = Add('onnx::Add_5', p)\n"
             "    ['/a/Gemm'] y = Gemm(j, 'a.out.weight', 'a.out.bias')\n}");

    (void)state;
    run(model);
    assert_input(model, "y", 2, "a.out.bias");
    assert_input(model, "h", 0, "a.bias_7");
    assert_input(model, "i", 0, "a.bias_8");
    assert_input(model, "j", 0, "a.bias_7");
    ot_model_destroy(model);
}

// Relative positions that two projections read: beside a weight a tensor is what the module is
// given.
static void what_two_modules_compute_with_their_weights_is_one(void **state)
{
    ot_model *model = quoted_model(
        HEAD
        "g (float[N,2] x) => (float[N,2] y)\n"
        "    <float[2,2] 'onnx::MatMul_7' = {1, 2, 3, 4}, float[2,2] 'onnx::MatMul_8' = {5, 6, 7, "
        "8}, float[2,2] 'onnx::MatMul_9' = {2, 1, 4, 3}>\n{\n"
        "    ['Identity_0'] 'onnx::MatMul_6' = Identity('onnx::MatMul_7')\n"
        "    ['Identity_1'] 'onnx::MatMul_5' = Identity('onnx::MatMul_9')\n"
        "    ['/q/MatMul'] a = MatMul('onnx::MatMul_7', 'onnx::MatMul_8')\n"
        "    ['/k/MatMul'] b = MatMul('onnx::MatMul_6', 'onnx::MatMul_5')\n"
        "    ['/k_1/MatMul'] c = MatMul(x, 'onnx::MatMul_9')\n"
        "    h = MatMul(c, a)\n    y = MatMul(h, b)\n}");
    const ot__sharings found = run(model);

    (void)state;
    assert_input(model, "a", 0, "onnx::MatMul_7");
    assert_string_equal(input(model, "onnx::MatMul_6", 0), "onnx::MatMul_7");
    assert_int_equal(model->graph->n_initializers, 3);
    assert_int_equal(found.n, 0);
    ot_model_destroy(model);
}

// Two modules that are called by the same number are none that is called twice.
static void a_number_without_a_first_call_is_a_name(void **state)
{
    ot_model *model = folded_model("q_2");

    (void)state;
    run(model);
    assert_input(model, "y", 1, "q_2.weight");
    ot_model_destroy(model);
}

static void equal_parameters_side_by_side_say_that_nothing_was_merged(void **state)
{
    ot_model *model = quoted_model(
        HEAD
        "g (float[N,2] x) => (float[N,2] y)\n"
        "    <float[2] 'n.weight' = {1, 1}, float[2] 'm.weight' = {1, 1},"
        "     float[2,2] 'a.weight' = {1, 2, 3, 4}>\n{\n"
        "    'b.weight' = Identity('a.weight')\n    h = MatMul(x, 'a.weight')\n"
        "    n = LayerNormalization(h, 'n.weight')\n    k = MatMul(n, 'b.weight')\n"
        "    m = LayerNormalization(k, 'm.weight')\n    y = LayerNormalization(m, 'n.weight')\n}");
    const ot__sharings found = run(model);

    (void)state;
    assert_int_equal(model->graph->n_initializers, 3);
    assert_null(about(&found, OT_SHARING_SEPARATED, "a.weight"));
    assert_null(about(&found, OT_SHARING_SEPARATED, "n.weight"));
    assert_non_null(about(&found, OT_SHARING_LEFT, "n.weight"));
    ot_model_destroy(model);
}

// ---- metadata (rule 2) ----

static ot_model *two_norms(const char *first, const char *second)
{
    ot_model *model = quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                                        "    <float[2] 'enc.n1.weight' = {1, 1}>\n{\n"
                                        "    a = LayerNormalization(x, 'enc.n1.weight')\n"
                                        "    y = LayerNormalization(a, 'enc.n1.weight')\n}");

    n_words = 0;
    say(model, "a", first, NULL);
    say(model, "y", second, NULL);
    return model;
}

static void readers_in_two_modules_have_their_own(void **state)
{
    ot_model *model = two_norms("['', 'enc', 'enc.n1', 'norm']", "['', 'enc', 'enc.n2', 'norm_1']");

    (void)state;
    run(model);
    assert_input(model, "a", 1, "enc.n1.weight");
    assert_input(model, "y", 1, "enc.n2.weight");
    ot_model_destroy(model);
    model = two_norms("['', 'enc', 'norm']", "['', 'dec', 'norm_1']"); // a parameter's name, longer
    run(model);
    assert_input(model, "a", 1, "enc.n1.weight");
    assert_input(model, "y", 1, "dec.n1.weight");
    ot_model_destroy(model);
}

static void a_module_that_is_called_twice_keeps_one(void **state)
{
    ot_model *model = two_norms("['', 'enc', 'enc.n1', 'norm']", "['', 'enc', 'enc.n1', 'norm_1']");
    const ot__sharings found = run(model);

    (void)state;
    assert_int_equal(found.n, 0);
    assert_int_equal(model->graph->n_initializers, 1);
    ot_model_destroy(model);
}

static void the_call_before_the_export_tells_the_parameter_itself(void **state)
{
    ot_model *model = two_norms("['', 'norm']", "['', 'norm_1']");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_g1: PARAMETER target='g1'\np_g2: PARAMETER target='g2'\nb_o: BUFFER target='ones'\n");
    say(model, "a", "['', 'norm']", "%norm : call(args = (%x, %p_g2), kwargs = {})");
    say(model, "y", "['', 'norm_1']", "%norm_1 : call(args = (%norm, %b_o), kwargs = {})");
    run(model);
    assert_input(model, "a", 1, "g2");
    assert_input(model, "y", 1, "ones");
    assert_string_equal(ot__metadata_get(&maker(model, "y")->inputs[1]->metadata,
                                         "pkg.torch.export.graph_signature.InputSpec.kind"),
                        "BUFFER");
    assert_null(ot__graph_find(model->graph, "enc.n1.weight"));
    ot_model_destroy(model);
}

// The exporter folds what a GroupNorm of opset 20 normalises by, from numbers of its own.
static void units_of_normalisations_are_no_parameters(void **state)
{
    ot_model *model =
        quoted_model(HEAD "g (float[N,4,2] x) => (float[N,4,2] y)\n"
                          "    <float[4] val_8 = {1, 1, 1, 1}, float[4] val_9 = {0, 0, 0, 0}>\n{\n"
                          "    a = InstanceNormalization(x, val_8, val_9)\n"
                          "    b = InstanceNormalization(a, val_8, val_9)\n"
                          "    y = InstanceNormalization(b, val_8, val_9)\n}");
    ot__sharings found;

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE, "p_w: PARAMETER target='i.weight'\n");
    mark(&ot__graph_find(model->graph, "val_8")->metadata, FOLDED_FROM, "['val_0', 'val_1']");
    mark(&ot__graph_find(model->graph, "val_9")->metadata, FOLDED_FROM, "['val_0', 'val_2']");
    say(model, "a", "['', 'n1', 'group_norm']",
        "%g : call[target=torch.ops.aten.group_norm.default](args = (%x, 2, %p_w, %p_b, 1e-05))");
    say(model, "b", "['', 'n2', 'group_norm_1']",
        "%h : call[target=torch.ops.aten.group_norm.default](args = (%g, 2, %p_w, %p_b, 1e-05))");
    say(model, "y", "['', 'i', 'instance_norm']",
        "%i : call[target=torch.ops.aten.instance_norm.default](args = (%h, None, None, None))");
    found = run(model);
    assert_null(about(&found, OT_SHARING_SEPARATED, "val_8"));
    assert_input(model, "a", 1, "n1.unit_weight");
    assert_input(model, "b", 2, "n2.unit_bias");
    assert_input(model, "y", 1, "i.unit_weight");
    assert_kind(model, "a", "BUFFER");
    assert_kind(model, "b", "BUFFER");
    assert_kind(model, "y", "BUFFER");
    ot_model_destroy(model);
}

// From opset 21 on it takes the module's own parameters, which the exporter may have merged.
static void scales_of_group_normalization_are_parameters(void **state)
{
    ot_model *model = quoted_model(HEAD_21 "g (float[N,4,2] x) => (float[N,4,2] y)\n"
                                           "    <float[4] 'n1.weight' = {1, 1, 1, 1},\n"
                                           "     float[4] 'n1.bias' = {0, 0, 0, 0}>\n{\n"
                                           "    a = GroupNormalization <num_groups = 2>"
                                           " (x, 'n1.weight', 'n1.bias')\n"
                                           "    y = GroupNormalization <num_groups = 2>"
                                           " (a, 'n1.weight', 'n1.bias')\n}");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_w1: PARAMETER target='n1.weight'\np_w2: PARAMETER target='n2.weight'\n");
    say(model, "a", "['', 'n1', 'group_norm']",
        "%g : call[target=torch.ops.aten.group_norm.default](args = (%x, 2, %p_w1))");
    say(model, "y", "['', 'n2', 'group_norm_1']",
        "%h : call[target=torch.ops.aten.group_norm.default](args = (%g, 2, %p_w2))");
    run(model);
    assert_input(model, "a", 1, "n1.weight");
    assert_input(model, "y", 1, "n2.weight");
    assert_kind(model, "a", NULL);
    assert_kind(model, "y", NULL);
    ot_model_destroy(model);
}

static void above_what_the_exporter_merges_everything_stays(void **state)
{
    char text[32768], *to = text;
    ot_model *model;

    (void)state;
    to += sprintf(to, "<ir_version: 8, opset_import: [\"\": 17]> g (float[N,1025] x) => (float y)\n"
                      "<float[1025] \"enc.n1.weight\" = {1");
    for (int i = 1; i < 1025; i++)
        to += sprintf(to, ", 1");
    sprintf(to, "}> {\n a = LayerNormalization(x, \"enc.n1.weight\")\n"
                " y = LayerNormalization(a, \"enc.n1.weight\")\n}");
    model = model_of(text);
    n_words = 0;
    say(model, "a", "['', 'enc', 'enc.n1', 'norm']", NULL);
    say(model, "y", "['', 'enc', 'enc.n2', 'norm_1']", NULL);
    run(model);
    assert_int_equal(model->graph->n_initializers, 1);
    ot_model_destroy(model);
}

// ---- no places (rule 3) ----

static void equal_elements_of_normalisations_are_separated_by_reader(void **state)
{
    ot_model *model = quoted_model(
        HEAD "g (float[N,2] x) => (float[N,2] y)\n"
             "    <float[2] ones = {1, 1}, float[2] some = {1, 2}>\n{\n"
             "    a = LayerNormalization(x, ones)\n    b = LayerNormalization(a, ones)\n"
             "    c = Mul(b, ones)\n    d = LayerNormalization(c, some)\n"
             "    y = LayerNormalization(d, some)\n}");
    const ot__sharings found = run(model);

    (void)state;
    assert_input(model, "a", 1, "ones");
    assert_input(model, "b", 1, "ones_1");
    assert_input(model, "c", 1, "ones");
    assert_input(model, "d", 1, "some");
    assert_input(model, "y", 1, "some");
    assert_non_null(about(&found, OT_SHARING_SEPARATED, "ones"));
    assert_non_null(about(&found, OT_SHARING_LEFT, "some"));
    ot_model_destroy(model);
}

// ---- running statistics (rule 4) ----

static void running_statistics_belong_to_one_node(void **state)
{
    ot_model *model = quoted_model(
        HEAD
        "g (float[N,2] x) => (float[N,2] y)\n"
        "    <float[2] v = {1, 2}, float[2] w = {2, 1}>\n{\n"
        "    k = Identity(v)\n"
        "    a = BatchNormalization(x, v, w, w, k)\n    y = BatchNormalization(a, v, w, w, v)\n}");

    (void)state;
    run(model);
    assert_input(model, "a", 3, "w_running_mean");
    assert_input(model, "y", 3, "w_running_mean_1");
    assert_input(model, "a", 2, "w");
    assert_input(model, "a", 4, "k");
    assert_input(model, "y", 4, "v_running_var");
    assert_input(model, "a", 1, "v");
    assert_input(model, "y", 1, "v");
    ot_model_destroy(model);
}

// ---- transposed copies (rule 5) ----

static const char tied[] =
    HEAD "g (int64[N] i) => (float[N,3] y)\n"
         "    <float[3,2] 'e.weight' = {1, 2, 3, 4, 5, 6}, float[2,3] 'onnx::MatMul_9' = {%s}>\n{\n"
         "    ['/e/Gather'] r = Gather('e.weight', i)\n"
         "    ['/h/MatMul'] y = MatMul(r, 'onnx::MatMul_9')\n}";

static ot_model *tied_model(const char *elements)
{
    char text[1024];

    snprintf(text, sizeof text, tied, elements);
    return quoted_model(text);
}

static void a_transposed_copy_is_the_parameter_again(void **state)
{
    ot_model *model = tied_model("1, 3, 5, 2, 4, 6");
    const ot__sharings found = run(model);
    const ot_node *transpose = maker(model, "y")->inputs[1]->producer;

    (void)state;
    assert_non_null(transpose);
    assert_string_equal(transpose->op_type, "Transpose");
    assert_string_equal(transpose->inputs[0]->name, "e.weight");
    assert_int_equal(model->graph->n_initializers, 1);
    assert_non_null(about(&found, OT_SHARING_JOINED, "e.weight"));
    ot_model_destroy(model);
}

static void what_differs_in_a_bit_or_is_all_equal_stays_two(void **state)
{
    static const char *const elements[] = {"1, 3, 5, 2, 4, 7", "1, 2, 3, 4, 5, 6"};
    ot_model *model;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(elements); i++) {
        model = tied_model(elements[i]);
        assert_int_equal(run(model).n, 0);
        assert_int_equal(model->graph->n_initializers, 2);
        ot_model_destroy(model);
    }
}

static void what_the_exporter_folded_from_another_stays_two(void **state)
{
    ot_model *model = tied_model("1, 3, 5, 2, 4, 6");

    (void)state;
    n_words = 0;
    mark(&ot__graph_find(model->graph, "onnx::MatMul_9")->metadata, FOLDED_FROM,
         "['other.weight']");
    run(model);
    assert_input(model, "y", 1, "other.weight");
    assert_string_equal(maker(model, "y")->inputs[1]->alias, "onnx::MatMul_9");
    assert_int_equal(model->graph->n_initializers, 2);
    ot_model_destroy(model);
}

// ---- what the user keeps ----

static void names_of_before_and_after_keep_a_tensor_shared(void **state)
{
    static const char *const patterns[] = {"onnx::*", "b.weight", "e.*"};
    bool used[OT_COUNT(patterns)] = {false};
    const ot__kept_names before = {patterns, 1, used}, after = {patterns + 1, 1, used + 1},
                         none = {patterns + 2, 1, used + 2};
    ot_model *model = folded_model("b");
    ot__sharings found;

    (void)state;
    run_keeping(model, &before, &found);
    assert_input(model, "h", 1, "onnx::MatMul_7");
    assert_true(used[0]);
    ot_model_destroy(model);
    model = folded_model("b");
    run_keeping(model, &after, &found);
    assert_true(used[1]);
    assert_string_equal(input(model, "h", 1), "a.weight");
    assert_int_equal(model->graph->n_initializers, 3);
    ot_model_destroy(model);
    model = folded_model("b");
    run_keeping(model, &none, &found);
    assert_false(used[2]);
    ot_model_destroy(model);
    model = tied_model("1, 3, 5, 2, 4, 6");
    run_keeping(model, &before, &found);
    assert_int_equal(model->graph->n_initializers, 2);
    ot_model_destroy(model);
}

// ---- trouble ----

static void every_allocation_may_fail(void **state)
{
    int n_failures = 0;

    (void)state;
    for (int64_t n = 0;; n++) {
        ot_model *models[] = {folded_model("b"), tied_model("1, 3, 5, 2, 4, 6"),
                              two_norms("['', 'a', 'norm']", "['', 'b', 'norm']")};
        ot_status st = OT_OK;

        ot__alloc_fail_after(n);
        for (size_t i = 0; i < OT_COUNT(models) && st == OT_OK; i++) {
            ot__sharings found;

            st = ot__pass_sharing(models[i], &nothing_kept, &found);
        }
        ot__alloc_fail_after(-1);
        for (size_t i = 0; i < OT_COUNT(models); i++)
            ot_model_destroy(models[i]);
        if (st == OT_OK)
            break;
        assert_int_equal(st, OT_ERR_NO_MEMORY);
        n_failures++;
    }
    assert_in_range(n_failures, 10, 10000);
}

static void the_pass_changes_nothing_twice(void **state)
{
    ot_model *model = folded_model("b");

    (void)state;
    assert_int_equal(run(model).n, 1);
    assert_int_equal(run(model).n, 0);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_under_a_parameters_name_is_a_parameter),
        cmocka_unit_test(a_table_that_is_a_weight_under_another_name_stays_one),
        cmocka_unit_test(a_copy_that_nothing_else_shares_stays),
        cmocka_unit_test(a_folded_weight_of_two_modules_is_two),
        cmocka_unit_test(a_folded_weight_of_a_module_that_is_called_twice_is_one),
        cmocka_unit_test(zeros_of_an_optimised_file_are_one_for_each_module),
        cmocka_unit_test(folded_biases_of_one_module_are_one_for_each_weight),
        cmocka_unit_test(what_two_modules_compute_with_their_weights_is_one),
        cmocka_unit_test(a_number_without_a_first_call_is_a_name),
        cmocka_unit_test(equal_parameters_side_by_side_say_that_nothing_was_merged),
        cmocka_unit_test(readers_in_two_modules_have_their_own),
        cmocka_unit_test(a_module_that_is_called_twice_keeps_one),
        cmocka_unit_test(the_call_before_the_export_tells_the_parameter_itself),
        cmocka_unit_test(units_of_normalisations_are_no_parameters),
        cmocka_unit_test(scales_of_group_normalization_are_parameters),
        cmocka_unit_test(above_what_the_exporter_merges_everything_stays),
        cmocka_unit_test(equal_elements_of_normalisations_are_separated_by_reader),
        cmocka_unit_test(running_statistics_belong_to_one_node),
        cmocka_unit_test(a_transposed_copy_is_the_parameter_again),
        cmocka_unit_test(what_differs_in_a_bit_or_is_all_equal_stays_two),
        cmocka_unit_test(what_the_exporter_folded_from_another_stays_two),
        cmocka_unit_test(names_of_before_and_after_keep_a_tensor_shared),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_pass_changes_nothing_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
