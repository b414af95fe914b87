// SPDX-License-Identifier: Apache-2.0
// Y = X * mask / (1 - ratio) where training_mode is true, else X.
#include "kernels/kernels.h"
#include "ops/random/stream.h"

static void dropout_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);

    for (int i = 1; i <= 2; i++) { // exporters and ONNX Runtime's blocks write [1] too
        const ot_shape *scalar = ot_infer_shape(c, i);
        if (scalar->ndim > 1 ||
            (scalar->ndim == 1 && ot_dim_is_number(scalar->dim[0]) && scalar->dim[0] != 1))
            ot_infer_fail(c, "%s must have one element", i == 1 ? "ratio" : "training_mode");
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
    ot_infer_set(c, 1, OT_BOOL, x);
}

static ot_status dropout_prepare(ot_prep *p)
{
    OT_TRY(ot__made(ot__prep_stream(p, sizeof(ot__stream))));
    if (ot_prep_output_count(p) < 2 || !ot_prep_out(p, 1))
        ot_prep_scratch(p, (size_t)ot_prep_in(p, 0)->count);
    return OT_OK;
}

static const ot_arg *dropout_input(const ot_run *r, int port)
{
    return port < r->n_in ? r->in[port] : NULL;
}

static double dropout_ratio(const ot_run *r, int port)
{
    const ot_arg *given = dropout_input(r, port);
    double ratio = 0.5;

    if (given)
        ot__convert(&ratio, OT_F64, given->data, given->dtype, 1);
    return ratio;
}

static ot_status check_ratio(double ratio)
{
    return ratio >= 0 && ratio < 1
               ? OT_OK
               : ot__error(OT_ERR_INVALID, "ratio is %g, expected at least 0 and below 1", ratio);
}

// Draws the mask; *scale is what kept elements are multiplied by.
static ot_status dropout_draw(const ot_run *r, uint8_t **mask, double *scale)
{
    const ot_arg *training = dropout_input(r, 2);
    double ratio = dropout_ratio(r, 1);

    OT_TRY(check_ratio(ratio));
    if (!training || *(const uint8_t *)training->data == 0)
        ratio = 0;
    *mask = r->n_out > 1 && r->out[1] ? r->out[1]->data : r->scratch;
    *scale = 1 / (1 - ratio);
    ot__ref_dropout_mask(*mask, r->in[0]->count, ratio, ot__run_key(r));
    return OT_OK;
}

// dX = mask ? dY / (1 - ratio) : 0; without training_mode true, nothing was dropped: dX = dY.
static ot_status dropout_grad_scale(const ot_run *r, double *scale)
{
    const ot_arg *training = dropout_input(r, 3);
    const bool drops = !training || *(const uint8_t *)training->data != 0;
    const double ratio = drops ? dropout_ratio(r, 2) : 0;

    *scale = 1 / (1 - ratio);
    return check_ratio(ratio);
}

#define TEMPLATE "ops/random/dropout.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void dropout_grad(ot_grad *g)
{
    ot_value *training_mode = ot_grad_x(g, 2), *ratio = ot_grad_x(g, 1);
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_y(g, 1), ratio, training_mode};
    int n_in = training_mode ? 4 : ratio ? 3 : 2;
    ot_node *node;

    if (!training_mode ||
        (ot_value_constant(training_mode) &&
         *(const uint8_t *)ot_tensor_data_const(ot_value_constant(training_mode)) == 0)) {
        ot_grad_set_dx(g, 0, ot_emit1(g, "Identity", in[0])); // not training: nothing was dropped
        return;
    }
    node = ot_emit(g, "com.microsoft.DropoutGrad", NULL, in, n_in, 1);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// The saved mask says what is kept, and to multiply by it is what the gradient does, too.
static ot_value *dropout_recompute(ot_grad *g)
{
    ot_value *in[] = {ot_grad_x(g, 0), NULL, ot_grad_x(g, 1), ot_grad_x(g, 2)};

    if (!ot_expand_wants(g, 1) || in[3] == NULL)
        return NULL;
    in[1] = ot_grad_y(g, 1);
    return ot_emit_output(
        g, ot_emit(g, "com.microsoft.DropoutGrad", NULL, in, (int)OT_COUNT(in), 1), 0);
}

static bool is_known_zero(const ot_value *value)
{
    return value->constant && ot_tensor_count(value->constant) == 1 &&
           ot__tensor_get_f64(value->constant, 0) == 0.0;
}

static bool drops_nothing(const ot_node *node)
{
    const ot_value *ratio = node->n_inputs > 1 ? node->inputs[1] : NULL;
    const ot_value *training = node->n_inputs > 2 ? node->inputs[2] : NULL;

    return !training || is_known_zero(training) || (ratio && is_known_zero(ratio));
}

// The mask of a Dropout that drops nothing, and nothing to scale by.
static bool passes_all(const ot_node *node)
{
    const ot_value *mask = node->inputs[1], *ratio = node->n_inputs > 2 ? node->inputs[2] : NULL;

    return mask->producer != NULL && mask->producer->op != NULL &&
           (mask->producer->op->flags & OT_OP_RANDOM) != 0 &&
           ot__node_is_identity(mask->producer) && ratio != NULL && is_known_zero(ratio);
}

static void ratio_to_input(ot_upgrade *u)
{
    ot_upgrade_float_to_input(u, "ratio", 0.5f, 1);
}

static const ot_port dropout_in[] = {{"data", "T", 0},
                                     {"ratio", "T1", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                     {"training_mode", "bool", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
                                     {0}};
static const ot_port dropout_out[] = {{"output", "T", 0}, {"mask", "bool", OT_PORT_OPTIONAL}, {0}};
static const ot_attr_spec dropout_attrs_7[] = {OT__FLOAT_ATTR("ratio", 0.5f), {0}};
static const ot_attr_spec dropout_attrs[] = {{.name = "seed", .kind = OT_ATTRIBUTE_INT}, {0}};
static const ot_kernel dropout_kernels[] = {OT__REF_KERNELS(dropout_prepare, dropout_run), {0}};
const ot_op_def ot__op_dropout[] = {
    {.name = "Dropout",
     .since = 7,
     .inputs = ot__data_in,
     .outputs = dropout_out,
     .attrs = dropout_attrs_7,
     .types = "T: f32 f64 f16",
     .infer = dropout_infer,
     .upgrade = ratio_to_input},
    {.name = "Dropout",
     .since = 12,
     .inputs = dropout_in,
     .outputs = dropout_out,
     .attrs = dropout_attrs,
     .types = "T: f32 f64; T1: f16 f32 f64 bf16",
     .infer = dropout_infer,
     .kernels = dropout_kernels,
     .grad = dropout_grad,
     .flags = OT_OP_RANDOM,
     .recompute = dropout_recompute,
     .identity_when = drops_nothing},
    {0},
};

// ---- the gradient ----

static void dropout_grad_infer(ot_infer *c)
{
    if (ot__infer_one_element(c, 2) && ot__infer_one_element(c, 3))
        ot__infer_gradient(c);
}

static const ot_port dropout_grad_in[] = {{"dy", "T", 0},
                                          {"mask", "bool", 0},
                                          {"ratio", "T1", OT_PORT_OPTIONAL},
                                          {"training_mode", "bool", OT_PORT_OPTIONAL},
                                          {0}};
static const ot_port dropout_grad_out[] = {{"dx", "T", 0}, {0}};
static const ot_kernel dropout_grad_kernels[] = {OT__REF_KERNELS(NULL, dropout_grad_run), {0}};
const ot_op_def ot__op_dropout_grad[] = {
    {.domain = "com.microsoft",
     .name = "DropoutGrad",
     .since = 1,
     .inputs = dropout_grad_in,
     .outputs = dropout_grad_out,
     .attrs = dropout_attrs,
     .types = "T: f32 f64; T1: f16 f32 f64 bf16",
     .infer = dropout_grad_infer,
     .kernels = dropout_grad_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE,
     .identity_when = passes_all},
    {0},
};
