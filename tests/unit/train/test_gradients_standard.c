// SPDX-License-Identifier: Apache-2.0
// Gradients in ONNX's own operators: the same to f64's precision as those that run, which agree
// with central differences.
#include "gradients_fixture.h"

typedef struct graph_case {
    const char *name, *text, *wrt[4];
} graph_case;

static const graph_case cases[] = {
    {"activations",
     HEAD "g (double[N,3] x) => (double[N,3] y) { a = Relu(x) b = Sigmoid(x) c = Tanh(x)"
          " d = LeakyRelu<alpha = 0.2>(x) e = Sum(a, b, c, d) y = Mul(e, e) }",
     {"x"}},
    {"activations whose gradient is an operator of ours",
     HEAD_24 "g (double[N,3] x) => (double[N,3] y) { a = Elu<alpha = 0.5>(x) b = Selu(x)"
             " c = Celu<alpha = 0.5>(x) d = HardSigmoid(x) e = HardSwish(x) f = Mish(x)"
             " h = Softsign(x) i = Shrink<lambd = 0.1, bias = 0.3>(x) j = Swish<alpha = 0.7>(x)"
             " k = ThresholdedRelu<alpha = 0.1>(x) y = Sum(a, b, c, d, e, f, h, i, j, k) }",
     {"x"}},
    {"gelus",
     HEAD "g (double[N,3] x, double[3] b) => (double[N,3] y) { a = com.microsoft.Gelu(x)"
          " c = com.microsoft.FastGelu(x) d = com.microsoft.QuickGelu(x)"
          " e = com.microsoft.BiasGelu(x, b) f = com.microsoft.FastGelu(x, b)"
          " y = Sum(a, c, d, e, f) }",
     {"x", "b"}},
    {"normalisations that are composed",
     HEAD_24 "g (double[N,4,6] x, double[4] s, double[4] b, double[6] w) => (double[N,4,6] y)"
             " { a = GroupNormalization<num_groups = 2>(x, s, b) c = RMSNormalization(a, w)"
             " d = LpNormalization<axis = 1>(c) y = MeanVarianceNormalization<axes = [0, 2]>(d) }",
     {"x", "s", "b", "w"}},
    {"neighbouring channels",
     HEAD "g (double[N,5,H] x) => (double[N,5,H] y) { y = LRN<size = 4, alpha = 0.9>(x) }",
     {"x"}},
    {"attention",
     HEAD_24 "g (double[N,H,8] x, double[8,8] w, double[1,H,2] c, double[1,H,2] s)"
             " => (double[N,H,8] y) { k = MatMul(x, w)"
             " q = RotaryEmbedding<num_heads = 2>(k, c, s)"
             " y = Attention<q_num_heads = 2, kv_num_heads = 2, is_causal = 1>(q, k, x) }",
     {"x", "w"}},
    {"einsum",
     HEAD "g (double[N,3,4] a, double[4,5] b) => (double[N,5,3] y)"
          " { y = Einsum<equation = \"nij,jk->nki\">(a, b) }",
     {"a", "b"}},
    {"softmax",
     HEAD "g (double[N,3,4] x) => (double[N,3,4] y) { y = Softmax<axis = 1>(x) }",
     {"x"}},
    {"log softmax", HEAD "g (double[N,3] x) => (double[N,3] y) { y = LogSoftmax(x) }", {"x"}},
    {"division",
     HEAD "g (double[N,3] a, double[3] b) => (double[N,3] y) { y = Div(a, b) }",
     {"a", "b"}},
    {"division of dim sizes that differ in name",
     HEAD "g (double[N,M] a, double[O,M] b) => (double[Q,M] y) { c = Div(a, b) y = Mul(c, a) }",
     {"a", "b"}},
    {"running products",
     HEAD_26 "g (double[N,3,2] x) => (double[N,3,2] y) { a = Constant<value_int = -2>()"
             " b = CumProd(x, a) c = CumProd<reverse = 1>(x, a) d = CumProd<exclusive = 1>(x, a)"
             " e = CumProd<exclusive = 1, reverse = 1>(x, a) y = Sum(b, c, d, e) }",
     {"x"}},
    {"blocks of images",
     HEAD_24 "g (double[N,12,9] x) => (double[N,2,3,4] y) { s = Constant<value_ints = [3,4]>()"
             " b = Constant<value_ints = [2,3]>() y = Col2Im<pads = [0,1,1,0], dilations = [1,1]>"
             "(x, s, b) }",
     {"x"}},
    {"fourier transforms",
     HEAD_24 "g (double[N,6,2] x, double[N,5,1] r, double[N,4,2] h) => (double[N,M,2] y)"
             " { n = Constant<value_int = 7>() m = Constant<value_int = 3>()"
             " i = Constant<value_int = 1>() a = DFT(x, n) b = DFT<inverse = 1>(x, m, i)"
             " c = DFT<onesided = 1>(r, n) d = DFT<onesided = 1>(r)"
             " e = DFT<onesided = 1, inverse = 1>(h) f = DFT<onesided = 1, inverse = 1>(h, m)"
             " k = Concat<axis = 1>(e, f) l = Concat<axis = 2>(k, k)"
             " y = Concat<axis = 1>(a, b, c, d, l) }",
     {"x", "r", "h"}},
    {"fourier transforms of frames, old opset",
     HEAD "g (double[N,9,1] x, double[4] w) => (double[N,3,O,2] y)"
          " { s = Constant<value_int = 2>() y = STFT(x, s, w) }",
     {"x", "w"}},
    {"products",
     HEAD "g (double[N,2,3,4] a, double[2,4,5] b, double[5] v) => (double[N,2,3] y)"
          " { c = MatMul(a, b) y = MatMul(c, v) }",
     {"a", "b", "v"}},
    {"layer normalisation",
     HEAD "g (double[N,3,4] x, double[3,4] s, double[3,4] b) => (double[N,3,4] y)"
          " { y = LayerNormalization<axis = 1>(x, s, b) }",
     {"x", "s", "b"}},
    {"simplified layer normalisation",
     HEAD "g (double[N,4] x, double[4] s) => (double[N,4] y)"
          " { y = SimplifiedLayerNormalization(x, s) }",
     {"x", "s"}},
    {"batch normalisation",
     HEAD "g (double[N,3,4] x, double[3] s, double[3] b, double[3] m, double[3] w)"
          " => (double[N,3,4] y) { v = Mul(w, w) y = BatchNormalization(x, s, b, m, v) }",
     {"x", "s", "b"}},
    {"convolution",
     HEAD "g (double[N,2,5,5] x, double[3,2,3,3] w, double[3] b) => (double[N,3,5,5] y)"
          " { y = Conv<pads = [1,1,1,1]>(x, w, b) }",
     {"x", "w", "b"}},
    {"convolution with strides that leave a rest",
     HEAD "g (double[N,2,6,6] x, double[2,2,3,2] w) => (double[N,2,2,3] y)"
          " { y = Conv<strides = [3,2], pads = [1,0,0,1]>(x, w) }",
     {"x", "w"}},
    {"convolution with dilations and groups",
     HEAD "g (double[N,4,7] x, double[6,2,2] w) => (double[N,6,5] y)"
          " { y = Conv<dilations = [2], group = 2>(x, w) }",
     {"x", "w"}},
    {"depthwise convolution",
     HEAD "g (double[N,3,4,4] x, double[3,1,2,2] w) => (double[N,3,2,2] y)"
          " { y = Conv<strides = [2,2], group = 3>(x, w) }",
     {"x", "w"}},
    {"convolution of images of any size",
     HEAD "g (double[N,2,H,W] x, double[3,2,3,3] w) => (double[N,3,P,Q] y)"
          " { y = Conv<strides = [2,3], pads = [1,0,1,0]>(x, w) }",
     {"x"}},
    {"max pool",
     HEAD "g (double[N,2,5,5] x) => (double[N,2,3,3] y)"
          " { y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) }",
     {"x"}},
    {"max pool of images of any size, old opset",
     HEAD_13 "g (double[N,2,H,W] x) => (double[N,2,P,Q] y)"
             " { y = MaxPool<kernel_shape = [2,2], strides = [1,2]>(x) }",
     {"x"}},
    {"average pool",
     HEAD "g (double[2,2,5,5] x) => (double[2,2,3,3] y)"
          " { y = AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) }",
     {"x"}},
    {"average pool that counts the padding",
     HEAD "g (double[2,2,5] x) => (double[2,2,3] y) { y = AveragePool<kernel_shape = [3],"
          " strides = [2], pads = [1,1], count_include_pad = 1>(x) }",
     {"x"}},
    {"average pool of images of any size",
     HEAD "g (double[N,2,H,W] x) => (double[N,2,P,Q] y)"
          " { y = AveragePool<kernel_shape = [3,2], strides = [2,3], pads = [1,0,1,1]>(x) }",
     {"x"}},
    {"global pools",
     HEAD "g (double[N,2,H,W] x) => (double[N,2,1,1] y)"
          " { a = GlobalAveragePool(x) b = GlobalMaxPool(x) c = GlobalLpPool<p = 3>(x)"
          " d = Mul(a, b) y = Mul(c, d) }",
     {"x"}},
    {"norms of windows",
     HEAD "g (double[N,2,H,5] x) => (double[N,2,O,P] y)"
          " { y = LpPool<kernel_shape = [3,2], strides = [2,1], pads = [1,0,0,1]>(x) }",
     {"x"}},
    {"norms of windows, p = 3",
     HEAD "g (double[1,2,5,6] x) => (double[1,2,O,P] y)"
          " { y = LpPool<kernel_shape = [3,2], p = 3, ceil_mode = 1, strides = [3,4]>(x) }",
     {"x"}},
    {"norms of windows, p = 1",
     HEAD "g (double[1,2,5] x) => (double[1,2,O] y)"
          " { y = LpPool<kernel_shape = [3], p = 1, auto_pad = \"SAME_UPPER\">(x) }",
     {"x"}},
    {"gather along the first axis",
     HEAD "g (double[4,3] x, int64[N,W] i) => (double[N,W,3] y) { y = Gather(x, i) }",
     {"x"}},
    {"gather along another axis, old opset",
     HEAD_13 "g (double[N,4,3] x, int32[2,2] i) => (double[N,2,2,3] y)"
             " { y = Gather<axis = -2>(x, i) }",
     {"x"}},
    {"gather of one",
     HEAD "g (double[N,4] x) => (double[N] y) <int64 i = {-1}> { y = Gather<axis = 1>(x, i) }",
     {"x"}},
    {"gather elements",
     HEAD "g (double[3,4] x, int64[2,4] i) => (double[2,4] y) { y = GatherElements(x, i) }",
     {"x"}},
    {"gather by tuples",
     HEAD "g (double[3,3,2] x, int64[N,2] i) => (double[N,2] y) { y = GatherND(x, i) }",
     {"x"}},
    {"gather by tuples in batches",
     HEAD "g (double[N,3,2] x, int64[N,4,1] i) => (double[N,4,2] y)"
          " { y = GatherND<batch_dims = 1>(x, i) }",
     {"x"}},
    {"slice with steps",
     HEAD "g (double[N,5,4] x) => (double[N,2,4] y)"
          " <int64[1] s = {4}, int64[1] e = {0}, int64[1] a = {1}, int64[1] d = {-2}>"
          " { y = Slice(x, s, e, a, d) }",
     {"x"}},
    {"reflected padding",
     HEAD "g (double[2,4] x) => (double[2,7] y) <int64[4] p = {0,2,0,1}>"
          " { y = Pad<mode = \"reflect\">(x, p) }",
     {"x"}},
    {"cross entropy",
     HEAD "g (double[N,3] x, int64[N] t) => (double y) { y = SoftmaxCrossEntropyLoss(x, t) }",
     {"x"}},
    {"cross entropy with weights and an ignored label",
     HEAD "g (double[2,3,4] x, int64[2,4] t, double[3] w) => (double[2,4] y)"
          " { y = SoftmaxCrossEntropyLoss<ignore_index = 1, reduction = \"none\">(x, t, w) }",
     {"x"}},
    {"negative log likelihood",
     HEAD "g (double[N,3] x, int32[N] t, double[3] w) => (double y)"
          " { y = NegativeLogLikelihoodLoss<ignore_index = 0>(x, t, w) }",
     {"x"}},
};

static void check(const graph_case *c)
{
    int n_wrt = 0;
    char *left;

    while (n_wrt < 4 && c->wrt[n_wrt])
        n_wrt++;
    print_message("%s\n", c->name);
    left = check_gradients(c->text, c->wrt, n_wrt);
    // Forward operators that the model brings along stay.
    if (left && !strstr(c->text, "com.microsoft.") && !strstr(c->text, "Simplified"))
        fail_msg("left: %s", left);
    if (left && strstr(left, "Grad"))
        fail_msg("left: %s", left);
    free(left);
}

static void expansions_compute_the_same_as_what_they_stand_for(void **state)
{
    (void)state;
    for (size_t k = 0; k < OT_COUNT(cases); k++)
        check(&cases[k]);
}

static void what_has_no_expansion_stays_and_is_named(void **state)
{
    // A convolution wants to know the extents of its kernel, here those of dY.
    char *left = check_gradients(HEAD "g (double[N,2,H,W] x, double[3,2,3,3] w)"
                                      " => (double[N,3,P,Q] y) { y = Conv(x, w) }",
                                 (const char *const[]){"w"}, 1);

    (void)state;
    assert_non_null(left);
    assert_string_equal(left, "com.microsoft.ConvGrad");
    free(left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expansions_compute_the_same_as_what_they_stand_for),
        cmocka_unit_test(what_has_no_expansion_stays_and_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
