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

static bool is_kept(const ot_port *port)
{
    const unsigned kept = OT_PORT_STATE | OT_PORT_SCALE | OT_PORT_STATISTIC;

    return (port->flags & kept) != 0 && (port->flags & OT_PORT_F32) == 0;
}

static void state_statistics_and_scales_stay_f32(void **state)
{
    (void)state;
    for (int i = 0; i < ot__op_count(); i++)
        for (const ot_op_def *op = ot__op_records(i); op->name; op++) {
            for (const ot_port *port = op->inputs; port->name; port++)
                if (is_kept(port))
                    fail_msg("input %s of %s may be narrower than f32", port->name, op->name);
            for (const ot_port *port = op->outputs; port->name; port++)
                if (is_kept(port))
                    fail_msg("output %s of %s may be narrower than f32", port->name, op->name);
        }
}

static unsigned flags_of(const char *op_type)
{
    return ot__op_find("", op_type, ot__op_newest_opset)->outputs[0].flags;
}

static void losses_stay_f32(void **state)
{
    (void)state;
    assert_true(flags_of("SoftmaxCrossEntropyLoss") & OT_PORT_F32);
    assert_true(flags_of("NegativeLogLikelihoodLoss") & OT_PORT_F32);
    assert_false(flags_of("MatMul") & OT_PORT_F32);
}

// In order and type at most: the sum of the elements is what it was.
static void nodes_that_rearrange_are_told_without_being_checked(void **state)
{
    ot_model *m =
        model_of("<ir_version: 8, opset_import: [\"\": 17]> g (float x, int64 i) => (float y)\n{\n"
                 "    t = Transpose(x)\n    c = Cast <to = 11> (x)\n    s = Squeeze(x)\n"
                 "    r = Gather(x, i)\n    y = Relu(x)\n}");

    (void)state;
    assert_true(ot__node_rearranges(maker(m, "t")));
    assert_true(ot__node_rearranges(maker(m, "c")));
    assert_true(ot__node_rearranges(maker(m, "s")));
    assert_false(ot__node_rearranges(maker(m, "r")));
    assert_false(ot__node_rearranges(maker(m, "y")));
    ot_model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_say_what_an_input_is),
        cmocka_unit_test(what_is_added_to_a_product_is_a_bias),
        cmocka_unit_test(unknown_operators_say_nothing),
        cmocka_unit_test(state_statistics_and_scales_stay_f32),
        cmocka_unit_test(losses_stay_f32),
        cmocka_unit_test(nodes_that_rearrange_are_told_without_being_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
