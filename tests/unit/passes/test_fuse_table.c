// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

#define IN                                                                                         \
    "g (float[3,5] e, float[1,8,5] w, float[1,8,2] r, float[3,1,2,2] dy)"                          \
    " => "
#define IDS                                                                                        \
    "<int64[3,2] i = {0, 2, 2, -1, 0, 2}, int64[2,3] j = {0, 2, 2, -1, 0, 2}, int64[2] of_e = "    \
    "{3, 5}> "
#define LAYER "y, h, c, cells, gates = com.microsoft.LSTMTraining<hidden_size = 2>(x, w, r) "
#define GRADIENT                                                                                   \
    "dx, dw = com.microsoft.LSTMGrad<hidden_size = 2>(x, w, r, , , , y, cells, gates, dy) "

static const ot_node *node_of(const ot_model *model, const char *op_type)
{
    for (int i = 0; i < model->graph->n_nodes; i++)
        if (ot__node_is(model->graph->nodes[i], "ai.onnxtrain", op_type))
            return model->graph->nodes[i];
    return NULL;
}

static ot_model *fused(const char *graph, int n_nodes)
{
    ot_model *model = fuse(ot__fuse_table, graph);

    assert_int_equal(model->graph->n_nodes, n_nodes);
    return model;
}

static void a_layer_reads_the_table_and_makes_its_gradient(void **state)
{
    ot_model *model = fused(IN "(float[3,1,2,2] y, float[3,5] de, float[1,8,5] dw)" IDS
                               "{ x = Gather(e, i) " LAYER GRADIENT
                               "de = com.microsoft.GatherGrad<axis = 0>(of_e, i, dx) }",
                            2);

    (void)state;
    assert_string_equal(node_of(model, "LSTMTraining")->inputs[0]->name, "e");
    assert_string_equal(node_of(model, "LSTMGrad")->outputs[0]->name, "de");
    ot_model_destroy(model);
}

static void so_it_does_where_the_batch_was_the_first_axis(void **state)
{
    ot_model *model =
        fused(IN "(float[3,1,2,2] y, float[3,5] de, float[1,8,5] dw)" IDS
                 "{ t = Gather(e, j) x = Transpose<perm = [1, 0, 2]>(t) " LAYER GRADIENT
                 "dt = Transpose<perm = [1, 0, 2]>(dx)"
                 " de = com.microsoft.GatherGrad<axis = 0>(of_e, j, dt) }",
              2);

    (void)state;
    assert_string_equal(node_of(model, "LSTMTraining")->inputs[8]->name, "j");
    ot_model_destroy(model);
}

static void so_it_does_where_the_table_is_not_trained(void **state)
{
    (void)state;
    ot_model_destroy(fused(
        IN "(float[3,1,2,2] y, float[1,8,5] dw)" IDS "{ x = Gather(e, i) " LAYER GRADIENT "}", 2));
    ot_model_destroy(fused(IN "(float[3,1,2,2] y)" IDS "{ x = Gather(e, i) " LAYER "}", 1));
}

static void so_it_does_where_nothing_is_trained(void **state)
{
    (void)state;
    ot_model_destroy(fused(IN "(float[3,1,2,2] y, float[1,2,2] c)" IDS
                              "{ x = Gather(e, i) y, h, c = LSTM<hidden_size = 2>(x, w, r) }",
                           1));
    // The batch is the layer's first axis.
    ot_model_destroy(fused(IN "(float[3,2,1,2] y)" IDS "{ x = Gather(e, i)"
                              " y = LSTM<hidden_size = 2, layout = 1>(x, w, r) }",
                           2));
}

static void so_does_a_gru(void **state)
{
    ot_model *model =
        fused("g (float[3,5] e, float[1,6,5] w, float[1,6,2] r, float[3,1,2,2] dy)"
              " => (float[3,1,2,2] y, float[3,5] de)" IDS "{ x = Gather(e, i)"
              "  y, h, gates = com.microsoft.GRUTraining<hidden_size = 2>(x, w, r)"
              "  dx = com.microsoft.GRUGrad<hidden_size = 2>(x, w, r, , , , y, gates, dy)"
              "  de = com.microsoft.GatherGrad<axis = 0>(of_e, i, dx) }",
              2);

    (void)state;
    assert_string_equal(node_of(model, "GRUGrad")->inputs[10]->name, "i");
    ot_model_destroy(model);
}

static void others_may_read_what_is_gathered(void **state)
{
    (void)state;
    ot_model_destroy(fused(IN "(float[3,1,2,2] y, float[3,2,5] z)" IDS
                              "{ x = Gather(e, i) z = Relu(x) " LAYER "}",
                           3));
}

static void what_saves_nothing_or_is_another_gradient_stays(void **state)
{
    (void)state;
    // A table with more rows than half of what is read.
    ot_model_destroy(fused("g (float[4,5] e, float[1,8,5] w, float[1,8,2] r)"
                           " => (float[3,1,2,2] y)" IDS "{ x = Gather(e, i) " LAYER "}",
                           2));
    // Columns of a table, and a table of matrices.
    ot_model_destroy(fused("g (float[3,5] e, float[1,8,2] w, float[1,8,2] r)"
                           " => (float[3,1,3,2] y)" IDS "{ x = Gather<axis = 1>(e, i) " LAYER "}",
                           2));
    ot_model_destroy(fused("g (float[3,2,2] e, float[1,8,2] w, float[1,8,2] r)"
                           " => (float[2,1,3,2] y)"
                           "<int64[3] k = {0, 1, 2}> { t = Gather(e, k)"
                           " x = Transpose<perm = [1, 0, 2]>(t) " LAYER "}",
                           3));
    // The gradient of X is asked for, or something is done to it.
    ot_model_destroy(fused(IN "(float[3,2,5] dx)" IDS "{ x = Gather(e, i) " LAYER GRADIENT "}", 3));
    ot_model_destroy(fused(IN "(float[3,5] de)" IDS "{ x = Gather(e, i) " LAYER GRADIENT
                              "dz = Relu(dx)"
                              " de = com.microsoft.GatherGrad<axis = 0>(of_e, i, dz) }",
                           5));
    // It goes to other rows.
    ot_model_destroy(fused(IN "(float[3,5] de)" IDS "{ x = Gather(e, i) o = Neg(i) " LAYER GRADIENT
                              "de = com.microsoft.GatherGrad<axis = 0>(of_e, o, dx) }",
                           5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_reads_the_table_and_makes_its_gradient),
        cmocka_unit_test(so_it_does_where_the_batch_was_the_first_axis),
        cmocka_unit_test(so_it_does_where_the_table_is_not_trained),
        cmocka_unit_test(so_it_does_where_nothing_is_trained),
        cmocka_unit_test(so_does_a_gru),
        cmocka_unit_test(others_may_read_what_is_gathered),
        cmocka_unit_test(what_saves_nothing_or_is_another_gradient_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
