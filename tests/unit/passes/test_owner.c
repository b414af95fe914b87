// SPDX-License-Identifier: Apache-2.0
// Which parameter an input stands for, as PyTorch's exporters say it.
#include "passes/owner.h"
#include <stdio.h>

#include "unit/graph/model_text.h"

#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define SCOPES "pkg.torch.onnx.name_scopes"
#define CALL "pkg.torch.onnx.fx_node"
#define FOLDED_FROM "pkg.onnxscript.optimizer.folded_from"

// ---- the classic exporter ----

static const char classic[] =
    "<ir_version: 8, opset_import: ['': 17]> g (float[N,2] x) => (float[N,2] y)\n"
    "    <float[2] 'q_2.bias' = {1, 1}, float[2] 'l.bias' = {0, 0}, float[2] w = {2, 2}>\n{\n"
    "    ['/Mul'] a = Mul(x, w)\n    ['/l/Add'] b = Add(a, 'l.bias')\n"
    "    ['/l_1/Add'] c = Add(b, 'l.bias')\n    ['/q_2/Add'] d = Add(c, 'q_2.bias')\n"
    "    ['/q/Add'] e = Add(d, w)\n    ['/m_7/Add'] f = Add(e, w)\n"
    "    ['/enc/enc.0/enc.0.1/Add'] h = Add(f, w)\n    ['/e2/layers.1/linear1/Add'] i = Add(h, w)\n"
    "    ['/l_1/part/Add'] j = Add(i, w)\n    ['/l/part/Add'] k = Add(j, w)\n"
    "    ['/l/MatMul/MatMulAddFusion'] r = Add(k, w)\n"
    "    ['/l_1/Mul_1/NormFusion/'] s = Add(r, w)\n    ['/q/Pow/MulFusion//TwoFusion/'] t = Add(s, "
    "w)\n"
    "    ['plain'] o = Add(t, w)\n    ['//x//Add'] p = Add(o, w)\n    y = Add(p, w)\n}";

static void names_of_nodes_tell_the_module(void **state)
{
    static const struct {
        const char *value, *module;
    } cases[] = {
        {"a", ""},
        {"b", "l"},
        {"c", "l"},       // the second call of l
        {"d", "q_2"},     // a module that has parameters
        {"f", "m_7"},     // no first call
        {"h", "enc.0.1"}, // children of a Sequential
        {"i", "e2.layers.1.linear1"},
        {"j", "l.part"},
        {"k", "l.part"},
        {"r", "l"}, // an optimiser's
        {"s", "l"},
        {"t", "q"},
        {"o", NULL},
        {"y", NULL},
    };
    ot_model *model = quoted_model(classic);
    ot__owners owners;

    (void)state;
    assert_int_equal(ot__owners_init(&owners, model->graph), OT_OK);
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot__owner owner;

        assert_int_equal(ot__owner_find(&owners, maker(model, cases[i].value), "bias", &owner),
                         OT_OK);
        assert_int_equal(owner.source, cases[i].module ? OT_OWNER_CLASSIC : OT_OWNER_NONE);
        if (cases[i].module)
            assert_string_equal(owner.module, cases[i].module);
        else
            assert_null(owner.module);
    }
    ot__owners_deinit(&owners);
    ot_model_destroy(model);
}

static void long_names_tell_nothing(void **state)
{
    ot_model *model = quoted_model(classic);
    ot_node *node = maker(model, "a");
    char name[5000];
    ot__owners owners;
    ot__owner owner;

    (void)state;
    memset(name, '/', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t length = 1; length < sizeof name; length *= 2) {
        node->name = name + sizeof name - 1 - length;
        assert_int_equal(ot__owners_init(&owners, model->graph), OT_OK);
        assert_int_equal(ot__owner_find(&owners, node, "", &owner), OT_OK);
        ot__owners_deinit(&owners);
    }
    assert_int_equal(owner.source, OT_OWNER_NONE);
    ot_model_destroy(model);
}

// ---- the newer exporter ----

static const char signature[] =
    "\n# inputs\np_n_weight: PARAMETER target='n.weight'\np_n_bias: PARAMETER target='n.bias'\n"
    "b_ones: BUFFER target=\"ones\" persistent=True\nb_m: BUFFER target='n.running_mean'\n"
    "b_v: BUFFER target='n.running_var'\nx: USER_INPUT\nbroken: PARAMETER target='n.w\n\n# "
    "outputs\n"
    "norm: USER_OUTPUT\n";

static ot__owner newer(const char *scopes, const char *call, const char *leaf)
{
    static ot__owner owner;
    ot_model *model = quoted_model(classic);
    const char *of_graph[] = {SIGNATURE, signature}, *of_node[] = {SCOPES, scopes, CALL, call};
    ot_node *node = maker(model, "a");
    static char module[64], parameter[64];
    ot__owners owners;

    model->graph->metadata = (ot__metadata){of_graph, 1};
    node->metadata = (ot__metadata){of_node, call ? 2 : 1};
    assert_int_equal(ot__owners_init(&owners, model->graph), OT_OK);
    assert_int_equal(ot__owner_find(&owners, node, leaf, &owner), OT_OK);
    snprintf(module, sizeof module, "%s", owner.module ? owner.module : "none");
    snprintf(parameter, sizeof parameter, "%s", owner.parameter ? owner.parameter : "none");
    owner.module = module;
    owner.parameter = parameter;
    ot__owners_deinit(&owners);
    ot_model_destroy(model);
    return owner;
}

static void metadata_tell_the_module(void **state)
{
    (void)state;
    assert_string_equal(newer("['', 'e', 'e.l', 'linear_1']", NULL, "bias").module, "e.l");
    assert_string_equal(newer("['', 'mul']", NULL, "").module, "");
    assert_string_equal(newer("['mul']", NULL, "").module, "");
    assert_int_equal(newer("['', 'e', 'mul']", NULL, "").source, OT_OWNER_SCOPES);
    assert_int_equal(newer("[]", NULL, "").source, OT_OWNER_NONE);
    assert_int_equal(newer("e, l", NULL, "").source, OT_OWNER_NONE);
}

static void metadata_tell_the_parameter(void **state)
{
    static const char norm[] = "%norm : [num_users=1] = call_function[target=aten.norm](args = "
                               "(%x, %p_n_weight, %p_n_bias, %b_m, %b_v), kwargs = {})";
    static const char ones[] = "%mul : [num_users=1] = call_function[](args = (%x, %b_ones))";

    (void)state;
    assert_string_equal(newer("['', 'n', 'norm']", norm, "weight").parameter, "n.weight");
    assert_string_equal(newer("['', 'n', 'norm']", norm, "bias").parameter, "n.bias");
    assert_string_equal(newer("['', 'n', 'norm']", norm, "running_mean").parameter,
                        "n.running_mean");
    assert_string_equal(newer("['', 'n', 'norm']", norm, "running_var").parameter, "n.running_var");
    assert_string_equal(newer("['', 'mul']", ones, "").parameter, "ones");
    assert_true(newer("['', 'mul']", ones, "").is_buffer);
    assert_int_equal(newer("['', 'mul']", ones, "").source, OT_OWNER_EXACT);
}

static void calls_that_tell_nothing_leave_the_module(void **state)
{
    static const char *const calls[] = {"",
                                        "(",
                                        "(%",
                                        "(%%%",
                                        "%p_n_weight",
                                        "(%unknown)",
                                        "(%p_n_weight_and_what_is_no_name_of_the_signature)",
                                        "(%broken)",
                                        "()"};
    char longest[400];

    (void)state;
    for (size_t i = 0; i < OT_COUNT(calls); i++)
        assert_int_equal(newer("['', 'n', 'norm']", calls[i], "weight").source, OT_OWNER_SCOPES);
    memset(longest, 'a', sizeof longest - 1);
    memcpy(longest, "(%", 2);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(newer("['', 'n', 'norm']", longest, "weight").source, OT_OWNER_SCOPES);
}

// A node may read parameters in very many places.
static void a_node_is_looked_through_once_for_each_leaf(void **state)
{
    const char *of_node[] = {SCOPES, "['', 'e', 'e.l', 'linear_1']"};

    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        ot_model *model = quoted_model(classic);
        ot_node *node = maker(model, "h");
        ot__owners owners;
        ot__owner owner;
        size_t n_bytes = 0;

        if (newer)
            node->metadata = (ot__metadata){of_node, 1};
        assert_int_equal(ot__owners_init(&owners, model->graph), OT_OK);
        for (int i = 0; i < 100000; i++) {
            assert_int_equal(ot__owner_find(&owners, node, i & 1 ? "bias" : "weight", &owner),
                             OT_OK);
            assert_string_equal(owner.module, newer ? "e.l" : "enc.0.1");
            if (i == 1)
                n_bytes = ot__arena_bytes(model->arena);
        }
        assert_int_equal(ot__arena_bytes(model->arena), n_bytes);
        ot__owners_deinit(&owners);
        ot_model_destroy(model);
    }
}

static void parameters_that_operators_took_and_the_file_lacks_are_lost(void **state)
{
    static const char of_file[] =
        "p_a: PARAMETER target='a.bias'\np_q: PARAMETER target='q_2.bias'\n"
        "b_o: BUFFER target='ones'\np_unused: PARAMETER target='unused'\n"
        "p_z: PARAMETER target='z'\np_table: PARAMETER target='table'\n"
        "p_tied: PARAMETER target='tied'\n";
    const char *of_graph[] = {SIGNATURE, of_file},
               *of_node[] = {CALL, "%f : f(args = (%x, %p_z, %p_q, %b_o, %p_a, %p_z))"},
               *of_two[] = {FOLDED_FROM, "['table', 'val_3', 'ones']"},
               *of_one[] = {FOLDED_FROM, "['tied']"};
    ot_model *model = quoted_model(classic);
    ot__missing missing;
    ot__owners owners;

    (void)state;
    model->graph->metadata = (ot__metadata){of_graph, 1};
    maker(model, "a")->metadata = (ot__metadata){of_node, 1};
    ot__graph_find(model->graph, "w")->metadata = (ot__metadata){of_two, 1};
    ot__graph_find(model->graph, "l.bias")->metadata = (ot__metadata){of_one, 1}; // still itself
    assert_int_equal(ot__owners_init(&owners, model->graph), OT_OK);
    assert_int_equal(ot__owners_missing(&owners, &missing), OT_OK);
    assert_int_equal(missing.n_lost, 3);
    assert_string_equal(missing.lost[0], "a.bias");
    assert_string_equal(missing.lost[1], "z");
    assert_string_equal(missing.lost[2], "table");
    assert_int_equal(missing.n_unused, 1);
    assert_string_equal(missing.unused[0], "unused");
    ot__owners_deinit(&owners);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_nodes_tell_the_module),
        cmocka_unit_test(long_names_tell_nothing),
        cmocka_unit_test(metadata_tell_the_module),
        cmocka_unit_test(metadata_tell_the_parameter),
        cmocka_unit_test(calls_that_tell_nothing_leave_the_module),
        cmocka_unit_test(a_node_is_looked_through_once_for_each_leaf),
        cmocka_unit_test(parameters_that_operators_took_and_the_file_lacks_are_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
