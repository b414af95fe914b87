// SPDX-License-Identifier: Apache-2.0
#include "fuse_fixture.h"

// Rows 0, 1 of a parameter, 6, 7 and 2 to 5, as PyTorch's exporters order an LSTM's gates.
#define ORDERED(to, parameter)                                                                     \
    to "0 = Slice(" parameter ", n0, n2, n0) " to "1 = Slice(" parameter ", n6, n8, n0) " to       \
       "2 = Slice(" parameter ", n2, n6, n0) " to "c = Concat<axis = 0>(" to "0, " to "1, " to     \
       "2) " to " = Unsqueeze(" to "c, n0) "
#define BACK(to, from, shape)                                                                      \
    to "s = Squeeze(" from ", n0) " to "0, " to "1, " to "2 = Split<axis = 0>(" to "s, sizes) " to \
       "g0 = com.microsoft.SliceGrad(" to "0, " shape ", n0, n2, n0) " to                          \
       "g1 = com.microsoft.SliceGrad(" to "1, " shape ", n6, n8, n0) " to                          \
       "g2 = com.microsoft.SliceGrad(" to "2, " shape ", n2, n6, n0) "
#define NUMBERS                                                                                    \
    "<int64[1] n0 = {0}, int64[1] n2 = {2}, int64[1] n6 = {6}, int64[1] n8 = {8},"                 \
    " int64[3] sizes = {2, 2, 4}, int64[2] of_w = {8, 3}, int64[2] of_r = {8, 2}> "
#define IN "g (float[3,2,3] x, float[8,3] pw, float[8,2] pr, float[3,1,2,2] dy) => "
#define LAYER "y, h, c, cells, gates = com.microsoft.LSTMTraining<hidden_size = 2>(x, w, r) "
#define GRADIENT                                                                                   \
    "dx, dw3, dr3 = com.microsoft.LSTMGrad<hidden_size = 2>"                                       \
    "(x, w, r, , , , y, cells, gates, dy) "

static int nodes_left(const char *graph)
{
    ot_model *model = fuse(ot__fuse_gates, graph);
    const int n = model->graph->n_nodes;

    ot_model_destroy(model);
    return n;
}

static void an_lstm_reads_and_writes_parameters_as_they_lie(void **state)
{
    (void)state;
    // The layer and its gradient, an Unsqueeze for W and R, a Squeeze for their gradients.
    assert_int_equal(nodes_left(IN "(float[3,1,2,2] y, float[3,2,3] dx, float[8,3] dw,"
                                   " float[8,2] dr)" NUMBERS "{ " ORDERED("w", "pw") ORDERED(
                                       "r", "pr") LAYER GRADIENT BACK("w_", "dw3", "of_w")
                                       BACK("r_", "dr3", "of_r") "dw = Sum(w_g0, w_g1, w_g2)"
                                                                 " dr = Sum(r_g2, r_g0, r_g1) }"),
                     6);
}

static void so_it_does_where_only_one_is_trained_or_none(void **state)
{
    (void)state;
    assert_int_equal(
        nodes_left(IN "(float[3,1,2,2] y, float[8,2] dr)" NUMBERS "{ " ORDERED("w", "pw") ORDERED(
            "r", "pr") LAYER GRADIENT BACK("r_", "dr3", "of_r") "dr = Sum(r_g2, r_g0, r_g1) }"),
        5);
    assert_int_equal(nodes_left(IN "(float[3,1,2,2] y)" NUMBERS "{ " ORDERED("w", "pw")
                                    ORDERED("r", "pr") LAYER "}"),
                     3);
}

static void so_does_a_gru(void **state)
{
    (void)state;
    assert_int_equal(
        nodes_left("g (float[3,2,3] x, float[6,3] pw, float[6,2] pr, float[3,1,2,2] dy) =>"
                   " (float[3,1,2,2] y, float[6,3] dw)"
                   "<int64[1] n0 = {0}, int64[1] n2 = {2}, int64[1] n4 = {4}, int64[1] n6 = {6},"
                   " int64[2] of_w = {6, 3}>"
                   "{ w0 = Slice(pw, n2, n4, n0) w1 = Slice(pw, n0, n2, n0)"
                   "  w2 = Slice(pw, n4, n6, n0) wc = Concat<axis = 0>(w0, w1, w2)"
                   "  w = Unsqueeze(wc, n0)"
                   "  q0 = Slice(pr, n2, n4, n0) q1 = Slice(pr, n0, n2, n0)"
                   "  q2 = Slice(pr, n4, n6, n0) qc = Concat<axis = 0>(q0, q1, q2)"
                   "  r = Unsqueeze(qc, n0)"
                   "  y, h, gates = com.microsoft.GRUTraining<hidden_size = 2>(x, w, r)"
                   "  dx, dw3 = com.microsoft.GRUGrad<hidden_size = 2>"
                   "(x, w, r, , , , y, gates, dy)"
                   "  s = Squeeze(dw3, n0) s0, s1, s2 = Split<axis = 0>(s)"
                   "  g0 = com.microsoft.SliceGrad(s0, of_w, n2, n4, n0)"
                   "  g1 = com.microsoft.SliceGrad(s1, of_w, n0, n2, n0)"
                   "  g2 = com.microsoft.SliceGrad(s2, of_w, n4, n6, n0)"
                   "  dw = Sum(g0, g1, g2) }"),
        5);
}

static void what_is_not_that_order_stays(void **state)
{
    enum { SLICED = 2 * 5 };

    (void)state;
    // R in another order than W.
    assert_int_equal(nodes_left(IN "(float[3,1,2,2] y)" NUMBERS
                                   "{ " ORDERED("w", "pw") "r = Unsqueeze(pr, n0) " LAYER "}"),
                     SLICED / 2 + 2);
    // Gates that somebody else sees.
    assert_int_equal(nodes_left(IN "(float[3,1,2,2] y, float[3,1,2,8] gates)" NUMBERS
                                   "{ " ORDERED("w", "pw") ORDERED("r", "pr") LAYER "}"),
                     SLICED + 1);
    // A gradient to which something else is added, and one that goes back to other rows.
    assert_int_equal(
        nodes_left(IN "(float[8,3] dw)" NUMBERS "{ " ORDERED("w", "pw") ORDERED("r", "pr")
                       LAYER GRADIENT BACK("w_", "dw3", "of_w") "dw = Sum(w_g0, w_g1, w_g2, pw) }"),
        SLICED + 2 + 6);
    assert_int_equal(
        nodes_left(
            IN "(float[8,3] dw)" NUMBERS "{ " ORDERED("w", "pw") ORDERED("r", "pr")
                LAYER GRADIENT BACK("w_", "dw3",
                                    "of_w") "other = com.microsoft.SliceGrad(w_0, of_w, n6, n8, n0)"
                                            " dw = Sum(other, w_g1, w_g2) }"),
        SLICED + 2 + 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_lstm_reads_and_writes_parameters_as_they_lie),
        cmocka_unit_test(so_it_does_where_only_one_is_trained_or_none),
        cmocka_unit_test(so_does_a_gru),
        cmocka_unit_test(what_is_not_that_order_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
