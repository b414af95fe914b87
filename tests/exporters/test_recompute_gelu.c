// SPDX-License-Identifier: Apache-2.0
// Every form of Gelu is found and made again for the backward pass, to the same bits.
#include "runs.h"

// One after the other, as ONNX Runtime's optimiser and other exporters write it.
static const char forms[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
    "g (float[n, 8, 16] x) => (float[n, 3] y)\n"
    "<float[48] bias = {%s}, float half = {0.5}, float one = {1}, float root = {0.7071067},\n"
    " float a = {0.044715}, float b = {0.7978846}, float three = {3}>\n"
    "{\n"
    "  w1 = RandomNormal<shape = [16, 48], scale = 0.25, seed = 1.0>()\n"
    "  w2 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 2.0>()\n"
    "  w3 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 3.0>()\n"
    "  w4 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 4.0>()\n"
    "  w5 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 5.0>()\n"
    "  w6 = RandomNormal<shape = [48, 3], scale = 0.15, seed = 6.0>()\n"
    "  m1 = MatMul(x, w1)\n"
    "  g1 = com.microsoft.Gelu(m1)\n"
    "  m2 = MatMul(g1, w2)\n"
    "  g2 = com.microsoft.FastGelu(m2)\n"
    "  m3 = MatMul(g2, w3)\n"
    "  g3 = com.microsoft.BiasGelu(m3, bias)\n"
    "  m4 = MatMul(g3, w4)\n"
    "  e1 = Mul(m4, root) e2 = Erf(e1) e3 = Add(one, e2) e4 = Mul(half, m4) g4 = Mul(e3, e4)\n"
    "  m5 = MatMul(g4, w5)\n"
    "  t1 = Mul(m5, m5) t2 = Mul(t1, m5) t3 = Mul(a, t2) t4 = Add(m5, t3) t5 = Mul(b, t4)\n"
    "  t6 = Tanh(t5) t7 = Add(t6, one) t8 = Mul(t7, m5) g5 = Mul(t8, half)\n"
    "  m6 = MatMul(g5, w6)\n"
    "  y = ReduceMean<axes = [1], keepdims = 0>(m6)\n"
    "}\n";

// As models compute that keep values in bf16 and work in f32.
static const char forms_between_casts[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n"
    "g (float[n, 8, 16] x) => (float[n, 3] y)\n"
    "<float half = {0.5}, float one = {1}, float root = {0.7071067}, float a = {0.044715},\n"
    " float b = {0.7978846}, float three = {3}>\n"
    "{\n"
    "  w1 = RandomNormal<shape = [16, 48], scale = 0.25, seed = 1.0>()\n"
    "  w2 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 2.0>()\n"
    "  w3 = RandomNormal<shape = [48, 48], scale = 0.15, seed = 3.0>()\n"
    "  w4 = RandomNormal<shape = [48, 3], scale = 0.15, seed = 4.0>()\n"
    "  m1 = MatMul(x, w1)\n"
    "  n1 = Cast<to = 16>(m1) e0 = Cast<to = 1>(n1) e1 = Mul(e0, root) e2 = Erf(e1)\n"
    "  e3 = Add(e2, one) e4 = Cast<to = 1>(n1) e5 = Mul(e3, e4) e6 = Mul(e5, half)\n"
    "  e7 = Cast<to = 16>(e6) g1 = Cast<to = 1>(e7)\n"
    "  m2 = MatMul(g1, w2)\n"
    "  n2 = Cast<to = 16>(m2) t0 = Cast<to = 1>(n2) t1 = Pow(t0, three) t2 = Mul(t1, a)\n"
    "  t3 = Add(t0, t2) t4 = Mul(t3, b) t5 = Cast<to = 16>(t4) t6 = Tanh(t5)\n"
    "  t7 = Cast<to = 1>(t6) t8 = Add(one, t7) t9 = Mul(half, t0) t10 = Mul(t9, t8)\n"
    "  t11 = Cast<to = 16>(t10) g2 = Cast<to = 1>(t11)\n"
    "  m3 = MatMul(g2, w3)\n"
    "  n3 = Cast<to = 16>(m3) f0 = Cast<to = 1>(n3) f1 = com.microsoft.Gelu(f0)\n"
    "  f2 = Cast<to = 16>(f1) g3 = Cast<to = 1>(f2)\n"
    "  m4 = MatMul(g3, w4)\n"
    "  y = ReduceMean<axes = [1], keepdims = 0>(m4)\n"
    "}\n";

// All but the last at least are not alive at once any more; the last is made again at once. The two
// peaks are at different nodes, whose scratch differs by less than one: a product that copies rows
// of the width of a Gelu has as much. Alive are what the Gelus are made from and at a time one of
// them, a gradient and scratch; and what is small.
static void assert_gelus_are_made_again(const char *text, size_t n_gelus)
{
    const ot_session_options plain = making_again(0, 0), again = making_again(OT_RECOMPUTE_GELU, 0);
    enum { SMALL = 1024 };
    const size_t gelu_bytes = (size_t)ROWS * TOKENS * 48 * sizeof(float);
    const size_t alive = (n_gelus + 3) * gelu_bytes + SMALL;
    run before, after;

    train_text(text, &plain, &before);
    train_text(text, &again, &after);
    assert_string_equal(after.warning, "");
    assert_same_bits("forms", &after, &before);
    if (after.plan_bytes + (n_gelus - 1) * gelu_bytes > before.plan_bytes + gelu_bytes)
        fail_msg("%zu bytes, %zu without", after.plan_bytes, before.plan_bytes);
    if (after.plan_bytes > alive)
        fail_msg("%zu bytes, expected at most %zu", after.plan_bytes, alive);
    forget(&before);
    forget(&after);
}

static void every_form_of_gelu_is_known(void **state)
{
    static char text[sizeof forms + 1000], bias[500];

    (void)state;
    for (int i = 0; i < 48; i++)
        snprintf(bias + strlen(bias), sizeof bias - strlen(bias), "%s%g", i > 0 ? "," : "",
                 0.01 * i);
    snprintf(text, sizeof text, forms, bias);
    assert_gelus_are_made_again(text, 5);
}

static void gelus_between_casts_are_known(void **state)
{
    (void)state;
    assert_gelus_are_made_again(forms_between_casts, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_gelu_is_known),
        cmocka_unit_test(gelus_between_casts_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
