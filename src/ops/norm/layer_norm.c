// SPDX-License-Identifier: Apache-2.0
// Layer normalisations: Y = (X - mean) * inv_std * scale + B over the axes from `axis` on. Outputs
// behind Y: the mean, where there is one, and the factor before the scale.
#include "ops/norm/layer_norm.h"

enum { X, SCALE, BIAS };
enum { Y, MEAN, INV_STD };

const ot_attr_spec ot__layer_norm_attrs[] = {
    OT__INT_ATTR("axis", -1),
    OT__FLOAT_ATTR("epsilon", 1e-5f),
    OT__INT_ATTR("stash_type", OT_F32),
    {0},
};

static bool check_normalised(ot_infer *c, const ot_shape *x, int axis, int input)
{
    ot_shape normalised = {.ndim = x->ndim - axis};

    for (int i = axis; i < x->ndim; i++)
        normalised.dim[i - axis] = x->dim[i];
    if (ot__shape_may_equal(ot_infer_shape(c, input), &normalised))
        return true;
    return ot__refuse(c, "input %d must have the shape of the normalised axes %d to %d", input,
                      axis, x->ndim - 1);
}

bool ot__layer_norm_check(ot_infer *c, int x, int scale, int bias, ot_shape *stats)
{
    const ot_shape *shape = ot_infer_shape(c, x);
    const int64_t stash = ot_attr_int(ot_infer_node(c), "stash_type");
    int axis;

    // Means are kept in the type of X, which is f32 or wider.
    if (stash != OT_F32 && stash != (int64_t)ot_infer_dtype(c, x))
        return ot__refuse(c, "stash_type is %" PRId64 ", expected %d", stash, OT_F32);
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), shape->ndim, &axis) ||
        !check_normalised(c, shape, axis, scale) ||
        (bias >= 0 && ot_infer_has(c, bias) && !check_normalised(c, shape, axis, bias)))
        return false;
    *stats = *shape;
    for (int i = axis; i < shape->ndim; i++)
        stats->dim[i] = 1;
    return true;
}

ot__layer_norm *ot__layer_norm_state(ot_prep *p, int x)
{
    const ot_shape *shape = &ot_prep_in(p, x)->shape;
    const ot_node *node = ot_prep_node(p);
    ot__layer_norm *norm = ot_prep_state(p, sizeof(*norm));
    int axis;

    if (!norm)
        return NULL;
    (void)ot__axis_normalize(ot_attr_int(node, "axis"), shape->ndim, &axis);
    *norm = (ot__layer_norm){
        .rows = 1, .columns = 1, .epsilon = (double)ot_attr_float(node, "epsilon")};
    for (int i = 0; i < shape->ndim; i++)
        *(i < axis ? &norm->rows : &norm->columns) *= shape->dim[i];
    return norm;
}

bool ot__layer_norm_others_are_f32(const ot_prep *p, int last_narrow, int narrow_output)
{
    for (int i = last_narrow + 1; i < ot_prep_input_count(p); i++)
        if (ot_prep_in(p, i) != NULL && ot_prep_in(p, i)->dtype != OT_F32)
            return false;
    for (int i = 0; i < ot_prep_output_count(p); i++)
        if (i != narrow_output && ot_prep_out(p, i) != NULL && ot_prep_out(p, i)->dtype != OT_F32)
            return false;
    return true;
}

// ---- forward ----

static bool is_centered(const ot_op_def *op)
{
    return ot__op_output_port(op, INV_STD) != NULL;
}

static void layer_norm_infer(ot_infer *c)
{
    ot_shape stats;

    if (!ot__layer_norm_check(c, X, SCALE, BIAS, &stats))
        return;
    ot_infer_set(c, Y, ot_infer_dtype(c, X), ot_infer_shape(c, X));
    for (int i = MEAN; i <= INV_STD; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, X), &stats);
}

static ot_status layer_norm_prepare(ot_prep *p)
{
    ot__layer_norm *norm = ot__layer_norm_state(p, X);

    OT_TRY(ot__made(norm));
    norm->is_centered = is_centered(ot_prep_node(p)->op);
    return OT_OK;
}

static void *mean_of(const ot_run *r)
{
    return ((const ot__layer_norm *)r->state)->is_centered ? ot__run_out(r, MEAN) : NULL;
}

static void *inv_std_of(const ot_run *r)
{
    return ot__run_out(r, ((const ot__layer_norm *)r->state)->is_centered ? INV_STD : MEAN);
}

#define TEMPLATE "ops/norm/layer_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"

static void layer_norm_piece(const void *context, float *const *at, int64_t first, int64_t n)
{
    ot__row_norm rows = *(const ot__row_norm *)context;

    rows.y = at[Y];
    rows.x = at[1];
    rows.mean = rows.mean == NULL ? NULL : rows.mean + first;
    rows.inv = rows.inv == NULL ? NULL : rows.inv + first;
    ot__rows_best()->layer_norm(&rows, 0, n);
}

static ot__float_rows layer_norm_rows(const ot__layer_norm *p, const ot_arg *y, const ot_arg *x)
{
    return (ot__float_rows){
        .port = {{y->data, y->dtype, p->columns, true}, {x->data, x->dtype, p->columns, false}},
        .rows = p->rows,
        .grain = OT_PAR_MIN / p->columns + 1,
        .run = layer_norm_piece};
}

static bool layer_norm_can_simd(const ot_prep *p)
{
    if (!ot__layer_norm_others_are_f32(p, X, Y))
        return ot_prep_declines(p, "types that do not meet in training");
    return ot__prep_has_elements(p);
}

static ot_status layer_norm_prepare_simd(ot_prep *p)
{
    ot__float_rows rows;

    OT_TRY(layer_norm_prepare(p));
    rows = layer_norm_rows(p->state, ot_prep_out(p, Y), ot_prep_in(p, X));
    ot_prep_scratch(p, ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

static ot_status layer_norm_run_simd(const ot_run *r)
{
    const ot__layer_norm *p = r->state;
    const ot__row_norm norm = {.mean = mean_of(r),
                               .inv = inv_std_of(r),
                               .scale = r->in[SCALE]->data,
                               .b = ot__run_in(r, BIAS),
                               .epsilon = p->epsilon,
                               .centered = p->is_centered,
                               .columns = p->columns};
    ot__float_rows rows = layer_norm_rows(p, r->out[Y], r->in[X]);

    rows.context = &norm;
    ot__float_rows_run(&rows, r->scratch, r->n_threads);
    return OT_OK;
}

// Mean and factor are kept by the forward node, also where its outputs were omitted.
static void layer_norm_grad(ot_grad *g)
{
    const int n_inputs = is_centered(ot_grad_node(g)->op) ? 3 : 2, n_stats = n_inputs - 1;
    ot_value *in[] = {ot_grad_dy(g, Y), ot_grad_x(g, X), ot_grad_x(g, SCALE), NULL, NULL};
    ot_node *node;

    if (!in[0])
        return;
    for (int i = 0; i < n_stats; i++)
        in[3 + i] = ot_grad_y(g, MEAN + i);
    node = ot_emit(g,
                   n_stats == 2 ? "com.microsoft.LayerNormalizationGrad"
                                : "com.microsoft.SimplifiedLayerNormalizationGrad",
                   NULL, in, 3 + n_stats, n_inputs);
    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    for (int i = 0; i < n_inputs; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

// ---- records ----

enum { KEPT = OT_PORT_OPTIONAL | OT_PORT_NO_GRAD | OT_PORT_F32 };
static const ot_port layer_norm_in[] = {{"X", "T", 0},
                                        {"Scale", "T", OT_PORT_SCALE | OT_PORT_F32},
                                        {"B", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS | OT_PORT_F32},
                                        {0}};
static const ot_port simplified_in[] = {
    {"X", "T", 0}, {"scale", "T", OT_PORT_SCALE | OT_PORT_F32}, {0}};
static const ot_port layer_norm_out[] = {
    {"Y", "T", 0}, {"Mean", "T", KEPT}, {"InvStdDev", "T", KEPT}, {0}};
static const ot_port simplified_out[] = {{"Y", "T", 0}, {"inv_std_var", "T", KEPT}, {0}};
static const ot_kernel layer_norm_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(layer_norm_can_simd, layer_norm_prepare_simd, layer_norm_run_simd),
    OT__REF_KERNELS(layer_norm_prepare, layer_norm_run),
    {0},
};
// ONNX has it from opset 17 on, ONNX Runtime at any.
const ot_op_def ot__op_layer_normalization[] = {
    {.name = "LayerNormalization",
     .since = 1,
     .inputs = layer_norm_in,
     .outputs = layer_norm_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = layer_norm_infer,
     .kernels = layer_norm_kernels,
     .grad = layer_norm_grad,
     .flags = OT_OP_LATE_PARTS},
    {0},
};
// Without mean and B. An operator of ONNX Runtime in ONNX's own domain.
const ot_op_def ot__op_simplified_layer_normalization[] = {
    {.name = "SimplifiedLayerNormalization",
     .since = 1,
     .inputs = simplified_in,
     .outputs = simplified_out,
     .attrs = ot__layer_norm_attrs,
     .types = "T: f32 f64",
     .infer = layer_norm_infer,
     .kernels = layer_norm_kernels,
     .grad = layer_norm_grad},
    {0},
};
