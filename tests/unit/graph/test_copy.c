// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static const char *const everything =
    "<ir_version: 9, opset_import: [\"\" : 18, \"local\" : 1], producer_name: \"p\", "
    "metadata_props: [\"k\": \"v\"]>"
    " g (bool c, float[N,2] x) => (float[N,2] y) <float[2] w = {1, 2}, float[N,2] h> {"
    " h = Add (x, w)"
    " y = If (c) <then_branch = t () => (r) <float k = {3}> { r = Mul (h, k) }, else_branch = e () "
    "=> (s) { s = local.f (h) }> }"
    " <domain: \"local\", opset_import: [\"\" : 18]> f (a) => (b) { b = Abs (a) }";

static char *text_of(const ot_model *model)
{
    char *text;

    assert_int_equal(ot_model_to_text(model, &text), OT_OK);
    return text;
}

static void a_clone_is_the_same_model(void **state)
{
    ot_model *model = model_of(everything), *clone;
    char *before = text_of(model), *after;

    (void)state;
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    ot_model_destroy(model); // the clone stands alone
    assert_int_equal(ot__model_verify(clone), OT_OK);
    after = text_of(clone);
    assert_string_equal(before, after);
    ot_string_free(before);
    ot_string_free(after);
    ot_model_destroy(clone);
}

static void changing_a_clone_leaves_the_original(void **state)
{
    ot_model *model = model_of(everything), *clone;
    char *before = text_of(model), *after;

    (void)state;
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    ot__node_set_int(clone->graph->nodes[0], "k", 1);
    ot__node_detach(clone->graph->nodes[1]);
    ot__graph_drop_detached(clone->graph);
    ot__graph_value(clone->graph, "new");
    ot__value_set(ot__graph_find(clone->graph, "x"), OT_F64, NULL);
    ot_model_destroy(clone);
    after = text_of(model);
    assert_string_equal(before, after);
    ot_string_free(before);
    ot_string_free(after);
    ot_model_destroy(model);
}

static void constants_are_shared_and_symbols_keep_their_coding(void **state)
{
    ot_model *model = model_of(everything), *clone;
    int64_t n = ot__dim_symbol(model, "N");
    int64_t half = ot__dim_div(model, n, 2);

    (void)state;
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    assert_ptr_equal(ot__graph_find(model->graph, "w")->constant->data,
                     ot__graph_find(clone->graph, "w")->constant->data);
    assert_true(ot__dim_symbol(clone, "N") == n);
    assert_true(ot__dim_div(clone, n, 2) == half);
    ot_model_destroy(model);
    assert_true(ot__tensor_get_f64(ot__graph_find(clone->graph, "w")->constant, 1) == 2.0);
    ot_model_destroy(clone);
}

static void cloning_survives_every_failing_allocation(void **state)
{
    ot_model *model = model_of(everything), *clone;
    int64_t n = 0;
    ot_status st;

    (void)state;
    do {
        ot__alloc_fail_after(n++);
        st = ot__model_clone(model, &clone);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && !clone));
    } while (st != OT_OK);
    assert_true(n > 4);
    ot_model_destroy(clone);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_is_the_same_model),
        cmocka_unit_test(changing_a_clone_leaves_the_original),
        cmocka_unit_test(constants_are_shared_and_symbols_keep_their_coding),
        cmocka_unit_test(cloning_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
