#include "evaluate.h"
#include "passes/fuse.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
#define ACCUMULATE "flag = com.microsoft.InPlaceAccumulatorV2(buffer, dw, lazy) "
#define INPUTS "float[6,2] dy, float[6,3] x, float[2,3] buffer, bool[1] lazy"

static ot_model *fuse(const char *text)
{
    ot_model *model = read_prepared(text);

    assert_ok(ot__fuse_gemm_accumulate(model));
    assert_ok(ot__graph_verify(model->graph));
    return model;
}

static void a_gradient_is_written_where_it_is_accumulated(void **state)
{
    ot_model *model = fuse(HEAD "g (" INPUTS ") => (bool[1] flag)"
                                "{ dw = Gemm<transA = 1, alpha = 0.5>(dy, x) " ACCUMULATE "}");
    const ot_node *node = find_node(model, "GemmAccumulate");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 1);
    assert_non_null(node);
    assert_string_equal(node->inputs[0]->name, "dy");
    assert_string_equal(node->inputs[1]->name, "x");
    assert_string_equal(node->inputs[2]->name, "buffer");
    assert_string_equal(node->inputs[3]->name, "lazy");
    assert_int_equal(ot_attr_int(node, "transA"), 1);
    assert_int_equal(ot_attr_int(node, "transB"), 0);
    assert_float_equal(ot_attr_float(node, "alpha"), 0.5, 0);
    ot_model_destroy(model);
}

static void a_gradient_that_something_else_reads_stays(void **state)
{
    ot_model *model = fuse(HEAD "g (" INPUTS ") => (bool[1] flag, float[2,3] dw)"
                                "{ dw = Gemm<transA = 1>(dy, x) " ACCUMULATE "}");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
    model = fuse(HEAD "g (" INPUTS ") => (bool[1] flag, float[2,3] n)"
                      "{ dw = Gemm<transA = 1>(dy, x) n = Neg(dw) " ACCUMULATE "}");
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
}

static void a_product_with_an_addend_stays(void **state)
{
    ot_model *model = fuse(HEAD "g (" INPUTS ", float[3] c) => (bool[1] flag)"
                                "{ dw = Gemm<transA = 1>(dy, x, c) " ACCUMULATE "}");

    (void)state;
    assert_int_equal(model->graph->n_nodes, 2);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_is_written_where_it_is_accumulated),
        cmocka_unit_test(a_gradient_that_something_else_reads_stays),
        cmocka_unit_test(a_product_with_an_addend_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
