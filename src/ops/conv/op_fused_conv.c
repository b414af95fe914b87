// SPDX-License-Identifier: Apache-2.0
// FusedConv of ONNX Runtime: Y = f(Conv(X, W, B) + Z), with an elementwise operator f that
// `activation` names and whose attributes are `activation_params`.
#include <string.h>

#include "op/expand.h"
#include "ops/conv/conv.h"

enum { X, W, B, Z };

typedef struct activation {
    const char *name;
    const char *attrs[2]; // of the operator; that of Clip are inputs
    int n_params;
} activation;

static const activation activations[] = {
    {"Relu", {NULL}, 0},
    {"Tanh", {NULL}, 0},
    {"Sigmoid", {NULL}, 0},
    {"LeakyRelu", {"alpha"}, 1},
    {"HardSigmoid", {"alpha", "beta"}, 2},
    {"Clip", {NULL}, 2},
};

// NULL: none of this name.
static const activation *activation_of(const ot_node *node)
{
    const char *name = ot_attr_string(node, "activation");

    for (size_t i = 0; i < OT_COUNT(activations); i++)
        if (strcmp(activations[i].name, name) == 0)
            return &activations[i];
    return NULL;
}

static bool check_activation(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const char *name = ot_attr_string(node, "activation");
    const activation *f = activation_of(node);
    int n;

    (void)ot_attr_floats(node, "activation_params", &n);
    if (f == NULL && name[0] != '\0')
        return ot__refuse(c,
                          "activation '%.40s' is not one of Relu, Tanh, Sigmoid, LeakyRelu, "
                          "HardSigmoid and Clip",
                          name);
    if (f != NULL && n < f->n_params)
        return ot__refuse(c, "activation_params has %d entries, %s needs %d", n, name, f->n_params);
    return true;
}

static void fused_conv_infer(ot_infer *c)
{
    ot_shape y;

    if (!check_activation(c) || !ot__conv_shape(c, X, W, B, &y))
        return;
    if (ot_infer_has(c, Z) && !ot__shape_may_equal(&y, ot_infer_shape(c, Z)))
        ot_infer_fail(c, "Z must have the shape of the convolution");
    ot_infer_set(c, 0, ot_infer_dtype(c, X), &y);
}

// The node's attributes that a Conv has.
static void emit_conv_attrs(ot_grad *g, ot_node *conv)
{
    const ot_node *of = ot_grad_node(g);

    for (const ot_attr_spec *spec = ot__conv_attrs; spec->name != NULL; spec++) {
        const int64_t *values;
        int n;

        if (!ot_attr_given(of, spec->name))
            continue;
        if (spec->kind == OT_ATTRIBUTE_STRING) {
            ot_emit_string(g, conv, spec->name, ot_attr_string(of, spec->name));
        } else if (spec->kind == OT_ATTRIBUTE_INT) {
            ot_emit_int(g, conv, spec->name, ot_attr_int(of, spec->name));
        } else {
            values = ot_attr_ints(of, spec->name, &n);
            ot_emit_ints(g, conv, spec->name, values, n);
        }
    }
}

static ot_value *emit_activation(ot_grad *g, ot_value *x)
{
    const activation *f = activation_of(ot_grad_node(g));
    const float *params;
    ot_node *node;
    int n;

    if (f == NULL || x == NULL)
        return x;
    params = ot_attr_floats(ot_grad_node(g), "activation_params", &n);
    if (f->n_params > 0 && f->attrs[0] == NULL) {
        ot_value *low = ot_emit_constant(g, (double)params[0], x);

        return ot_emit3(g, f->name, x, low, ot_emit_constant(g, (double)params[1], x));
    }
    node = ot_emit(g, f->name, NULL, &x, 1, 1);
    for (int i = 0; i < f->n_params; i++)
        ot_emit_float(g, node, f->attrs[i], params[i]);
    return ot_emit_output(g, node, 0);
}

static void fused_conv_compose(ot_grad *g)
{
    ot_value *const in[] = {ot_grad_x(g, X), ot_grad_x(g, W), ot_grad_x(g, B)};
    ot_node *conv = ot_emit(g, "Conv", NULL, in, in[B] == NULL ? 2 : 3, 1);
    ot_value *y;

    emit_conv_attrs(g, conv);
    y = ot_emit_output(g, conv, 0);
    if (ot_grad_x(g, Z) != NULL)
        y = ot_emit2(g, "Add", y, ot_grad_x(g, Z));
    ot_expand_set(g, 0, emit_activation(g, y));
}

static const ot_port fused_conv_in[] = {
    {"X", "T", 0},
    {"W", "T", OT_PORT_WEIGHT},
    {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {"Z", "T", OT_PORT_OPTIONAL},
    {0},
};
// Those of Conv, and the activation.
static const ot_attr_spec fused_conv_attrs[] = {
    OT__STRING_ATTR("activation", ""),
    {.name = "activation_params", .kind = OT_ATTRIBUTE_FLOATS},
    OT__STRING_ATTR("auto_pad", "NOTSET"),
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("group", 1),
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
const ot_op_def ot__op_fused_conv[] = {
    {.domain = OT__MS,
     .name = "FusedConv",
     .since = 1,
     .inputs = fused_conv_in,
     .outputs = ot__unary_out,
     .attrs = fused_conv_attrs,
     .types = "T: f32 f64",
     .infer = fused_conv_infer,
     .train = fused_conv_compose},
    {0},
};
