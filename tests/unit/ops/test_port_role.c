// SPDX-License-Identifier: Apache-2.0
// What inputs are for their operators.
#include "op/op.h"
#include "unit/graph/model_text.h"

static ot__port_role role(const ot_model *model, const char *y, int i)
{
    return ot__node_input_role(maker(model, y), i);
}

static void records_say_what_an_input_is(void **state)
{
    ot_model *m = model_of(
        "<ir_version: 8, opset_import: [\"\": 17]> g (float x, int64 i, float r, float seq, float "
        "w, "
        "float b, float s, float b2, float m, float v, float t, float w2, float b3, float w3, "
        "float s2, float b4, float w4, float r4, float b5, float h0, float c0, float p, float g2)\n"
        "    => (float y)\n{\n"
        "    conv = Conv(x, w, b)\n    norm = BatchNormalization(conv, s, b2, m, v)\n"
        "    rows = Gather(t, i)\n    full = Gemm(r, w2, b3)\n    prod = MatMul(full, w3)\n"
        "    layer = LayerNormalization(prod, s2, b4)\n"
        "    h = LSTM(seq, w4, r4, b5, \"\", h0, c0, p)\n    y = Mul(layer, g2)\n}");

    (void)state;
    assert_int_equal(role(m, "conv", 0), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "conv", 1), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "conv", 2), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "conv", 3), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "norm", 1), OT_PORT_ROLE_SCALE);
    assert_int_equal(role(m, "norm", 2), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "norm", 3), OT_PORT_ROLE_STATISTIC);
    assert_int_equal(role(m, "norm", 4), OT_PORT_ROLE_STATISTIC);
    assert_int_equal(role(m, "rows", 0), OT_PORT_ROLE_TABLE);
    assert_int_equal(role(m, "rows", 1), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "full", 1), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "full", 2), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "prod", 1), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "layer", 1), OT_PORT_ROLE_SCALE);
    assert_int_equal(role(m, "layer", 2), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "h", 1), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "h", 2), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "h", 3), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "h", 5), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "h", 7), OT_PORT_ROLE_WEIGHT);
    assert_int_equal(role(m, "y", 1), OT_PORT_ROLE_OTHER);
    ot_model_destroy(m);
}

static void what_is_added_to_a_product_is_a_bias(void **state)
{
    ot_model *m = model_of(
        "<ir_version: 8, opset_import: [\"\": 17]> g (float x, float w, float b, float b2, "
        "float r, float b3) => (float y)\n{\n"
        "    p = MatMul(x, w)\n    a = Add(p, b)\n    c = Add(b2, p)\n    d = Add(a, r)\n"
        "    y = Sub(p, b3)\n}");

    (void)state;
    assert_int_equal(role(m, "a", 1), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "c", 0), OT_PORT_ROLE_BIAS);
    assert_int_equal(role(m, "c", 1), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "d", 1), OT_PORT_ROLE_OTHER);
    assert_int_equal(role(m, "y", 1), OT_PORT_ROLE_OTHER);
    ot_model_destroy(m);
}

static void unknown_operators_say_nothing(void **state)
{
    ot_model *m =
        model_of("<ir_version: 8, opset_import: [\"\": 17, \"acme\": 1]> g (float x, float w) "
                 "=> (float y)\n{\n    y = acme.Foo(x, w)\n}");

    (void)state;
    assert_int_equal(role(m, "y", 1), OT_PORT_ROLE_OTHER);
    assert_int_equal(ot__op_input_role(NULL, 0), OT_PORT_ROLE_OTHER);
    ot_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_say_what_an_input_is),
        cmocka_unit_test(what_is_added_to_a_product_is_a_bias),
        cmocka_unit_test(unknown_operators_say_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
