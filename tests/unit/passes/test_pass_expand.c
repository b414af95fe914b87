// SPDX-License-Identifier: Apache-2.0
#include "evaluate.h"

#define HEAD(opset)                                                                                \
    "<ir_version: 8, opset_import: [\"\" : " opset ", \"com.microsoft\" : 1, \"ai.acme\" : 3]> "

static void the_outputs_keep_their_names_and_readers(void **state)
{
    ot_model *model =
        read_prepared(HEAD("17") "g (float[N] dy, float[N] x) => (float[N] dx, float[N] z)"
                                 "{ [n] dx = com.microsoft.ReluGrad(dy, x)"
                                 "  z = Neg(dx) }");

    (void)state;
    assert_ok(ot__pass_expand(model));
    assert_ok(ot__graph_verify(model->graph));
    assert_null(find_node(model, "ReluGrad"));
    assert_string_equal(find_value(model, "dx")->producer->op_type, "Where");
    assert_string_equal(find_value(model, "dx")->producer->name, "n/Where_1");
    assert_ptr_equal(find_node(model, "Neg")->inputs[0], find_value(model, "dx"));
    assert_string_equal(model->graph->outputs[0]->name, "dx");
    ot_model_destroy(model);
}

static void imports_that_nothing_needs_go(void **state)
{
    ot_model *model = read_prepared(HEAD("17") "g (float[N] dy, float[N] x) => (float[N] dx)"
                                               "{ dx = com.microsoft.TanhGrad(dy, x) }");

    (void)state;
    assert_ok(ot__pass_expand(model));
    assert_int_equal(model->n_opsets, 1);
    assert_int_equal(ot__model_opset(model, ""), 17);
    ot_model_destroy(model);
}

static void an_expansion_that_needs_a_newer_opset_raises_it(void **state)
{
    ot_model *model = read_prepared(HEAD("13") "g (int64[2] s, int64[N] i, float[N,2] dy)"
                                               " => (float[A,B] dx)"
                                               "{ dx = com.microsoft.GatherGrad(s, i, dy) }");

    (void)state;
    assert_ok(ot__pass_expand(model));
    assert_int_equal(ot__model_opset(model, ""), 16);
    assert_non_null(find_node(model, "ScatterND"));
    ot_model_destroy(model);
}

static void composed_operators_are_written_out(void **state)
{
    ot_model *model = read_prepared(HEAD("28") "g (float[N] a, float[N] b) => (float[N] y)"
                                               "{ [n] y = SwiGLU(a, b) }");
    bool changed;

    (void)state;
    assert_ok(ot__pass_compose(model, &changed));
    assert_true(changed);
    assert_ok(ot__graph_verify(model->graph));
    assert_int_equal(model->graph->n_nodes, 2);
    assert_string_equal(find_value(model, "y")->producer->op_type, "Mul");
    assert_string_equal(model->graph->nodes[0]->op_type, "Swish");
    assert_ok(ot__pass_compose(model, &changed));
    assert_false(changed);
    ot_model_destroy(model);
}

// What cannot be emitted is an error, and nothing reads it.
static void more_groups_than_can_be_are_refused(void **state)
{
    ot_model *model =
        read_prepared("<ir_version: 10, opset_import: [\"\" : 21]> "
                      "g (float[n,c,h] x, float[m] s, float[m] b) => (float[n,c,h] y)"
                      "{ y = GroupNormalization<num_groups = 9223372036854775807>(x, s, b) }");

    (void)state;
    assert_int_not_equal(ot__pass_train(model), OT_OK);
    ot_model_destroy(model);
}

static void what_an_expansion_cannot_express_stays(void **state)
{
    ot_model *model = read_prepared(HEAD(
        "17") "g (float[N,2,H,W] dy, float[N,2,H,W] x, float[2,2,1,1] w) => (float[2,2,1,1] dw)"
              "{ dx, dw = com.microsoft.ConvGrad(dy, x, w) }");

    (void)state;
    assert_ok(ot__pass_expand(model));
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(model->graph->nodes[0]->op_type, "ConvGrad");
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 1);
    assert_int_equal(ot__model_opset(model, "ai.acme"), 0);
    ot_model_destroy(model);
}

static void a_failing_allocation_is_reported(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; st == OT_ERR_NO_MEMORY; n++) {
        ot_model *model =
            read_prepared(HEAD("17") "g (float[N,4] dy, float[N,4] x, float[4] s, float[N,1] m,"
                                     " float[N,1] v) => (float[N,4] a, float[4] b, float[4] c)"
                                     "{ a, b, c = com.microsoft.LayerNormalizationGrad"
                                     "(dy, x, s, m, v) }");

        ot__alloc_fail_after(n);
        st = ot__pass_expand(model);
        ot__alloc_fail_after(-1);
        ot_model_destroy(model);
    }
    assert_int_equal(st, OT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outputs_keep_their_names_and_readers),
        cmocka_unit_test(imports_that_nothing_needs_go),
        cmocka_unit_test(an_expansion_that_needs_a_newer_opset_raises_it),
        cmocka_unit_test(composed_operators_are_written_out),
        cmocka_unit_test(more_groups_than_can_be_are_refused),
        cmocka_unit_test(what_an_expansion_cannot_express_stays),
        cmocka_unit_test(a_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
