// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and their gradients; Hardmax.
#include "kernels/kernels.h"
#include "op/expand.h"
#include "op/op.h"

static void softmax_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int axis;

    if (ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), x->ndim, &axis))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
}

static void softmax_grad_infer(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        softmax_infer(c);
}

// ---- kernels ----

static ot_status lines_prepare_from(ot_prep *p, bool is_flat)
{
    const ot_shape *x = &ot_prep_in(p, 0)->shape;
    ot__lines *lines = ot_prep_state(p, sizeof(*lines));
    int axis = 0;

    OT_TRY(ot__made(lines));
    ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->ndim, &axis);
    *lines = (ot__lines){1, 1, 1};
    for (int i = 0; i < x->ndim; i++)
        *(i < axis ? &lines->outer : i == axis || is_flat ? &lines->n : &lines->inner) *= x->dim[i];
    if (ot_prep_in(p, 0)->count == 0)
        lines->outer = 0; // lines without elements may be very many
    return OT_OK;
}

static ot_status lines_prepare(ot_prep *p)
{
    return lines_prepare_from(p, false);
}

// Before opset 13: everything from `axis` on is one line.
static ot_status lines_prepare_flat(ot_prep *p)
{
    return lines_prepare_from(p, true);
}

static bool lines_are_rows(const ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0);
    int axis = 0;

    if (x->count == 0)
        return false;
    ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->shape.ndim, &axis);
    for (int i = axis + 1; i < x->shape.ndim; i++)
        if (x->shape.dim[i] != 1)
            return false;
    return true;
}

// Rows of f32, f16 or bf16.
typedef struct row_loop {
    void (*rows)(void *context, int64_t first, int64_t last);
    int64_t n;
} row_loop;

static void run_row_loop(const void *context, float *const *at, int64_t first, int64_t n)
{
    const row_loop *loop = context;
    ot__row_lines lines = {.y = at[0], .x = at[1], .z = at[2], .n = loop->n};

    (void)first;
    loop->rows(&lines, 0, n);
}

static ot__float_port row_port(const ot_arg *x, const ot__lines *l, bool is_written)
{
    return (ot__float_port){x->data, x->dtype, l->n, is_written};
}

static ot_status rows_prepare(ot_prep *p)
{
    const ot__lines *l;
    ot__float_rows rows = {.rows = 0};

    OT_TRY(lines_prepare(p));
    l = p->state;
    rows.rows = l->outer;
    rows.port[0] = row_port(ot_prep_out(p, 0), l, true);
    for (int i = 0; i < ot_prep_input_count(p); i++)
        rows.port[i + 1] = row_port(ot_prep_in(p, i), l, false);
    ot_prep_scratch(p, ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

static ot_status run_rows(const ot_run *r, void (*rows)(void *context, int64_t first, int64_t last))
{
    const ot__lines *l = r->state;
    const row_loop loop = {rows, l->n};
    ot__float_rows all = {
        .rows = l->outer, .grain = OT_PAR_MIN / l->n + 1, .run = run_row_loop, .context = &loop};

    all.port[0] = row_port(r->out[0], l, true);
    for (int i = 0; i < r->n_in; i++)
        all.port[i + 1] = row_port(r->in[i], l, false);
    ot__float_rows_run(&all, r->scratch, r->n_threads);
    return OT_OK;
}

// ---- f32 along another axis ----

static bool has_elements(const ot_prep *p)
{
    return ot_prep_in(p, 0)->count > 0 || ot_prep_declines(p, "there is nothing to compute");
}

static ot_status run_columns(const ot_run *r,
                             void (*columns)(void *context, int64_t first, int64_t last))
{
    const ot__lines *l = r->state;
    ot__column_lines lines = {.y = r->out[0]->data,
                              .x = r->in[0]->data,
                              .z = r->n_in > 1 ? r->in[1]->data : NULL,
                              .n = l->n,
                              .inner = l->inner};
    const int64_t per_block = l->n * OT_MIN(l->inner, (int64_t)OT__COLUMN_BLOCK);

    ot__parallel_for(l->outer * ot__column_blocks(l->inner), OT_PAR_MIN / per_block + 1, columns,
                     &lines);
    return OT_OK;
}

#define RUN(loop, type, ...)                                                                       \
    static ot_status loop##_run_##type(const ot_run *r)                                            \
    {                                                                                              \
        ot__ref_##loop##_##type(r->out[0]->data, __VA_ARGS__, r->state);                           \
        return OT_OK;                                                                              \
    }
#define KERNELS(loop, ...)                                                                         \
    RUN(loop, f32, __VA_ARGS__)                                                                    \
    RUN(loop, f64, __VA_ARGS__)                                                                    \
    static ot_status loop##_run_simd(const ot_run *r)                                              \
    {                                                                                              \
        return run_rows(r, ot__rows_best()->loop);                                                 \
    }                                                                                              \
    static ot_status loop##_run_columns(const ot_run *r)                                           \
    {                                                                                              \
        return run_columns(r, ot__columns_best()->loop);                                           \
    }                                                                                              \
    static const ot_kernel loop##_kernels[] = {                                                    \
        OT__SIMD_FLOATS_KERNEL(lines_are_rows, rows_prepare, loop##_run_simd),                     \
        OT__SIMD_KERNEL("T: f32", has_elements, lines_prepare, loop##_run_columns),                \
        OT__REF_KERNEL("T: f32", lines_prepare, loop##_run_f32),                                   \
        OT__REF_KERNEL("T: f64", lines_prepare, loop##_run_f64),                                   \
        {0}};
#define FLAT_KERNELS(loop)                                                                         \
    static const ot_kernel loop##_flat_kernels[] = {                                               \
        OT__REF_KERNEL("T: f32", lines_prepare_flat, loop##_run_f32),                              \
        OT__REF_KERNEL("T: f64", lines_prepare_flat, loop##_run_f64),                              \
        {0}};
KERNELS(softmax, r->in[0]->data)
KERNELS(log_softmax, r->in[0]->data)
KERNELS(softmax_grad, r->in[0]->data, r->in[1]->data)
KERNELS(log_softmax_grad, r->in[0]->data, r->in[1]->data)
FLAT_KERNELS(softmax_grad)
FLAT_KERNELS(log_softmax_grad)
RUN(hardmax, f32, r->in[0]->data)
RUN(hardmax, f64, r->in[0]->data)
static const ot_kernel hardmax_kernels[] = {OT__REF_KERNELS(lines_prepare, hardmax_run), {0}};

// ---- gradients ----

static void softmax_emit_grad(ot_grad *g, const char *op)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_grad_y(g, 0)};
    ot_node *node = ot_emit(g, op, NULL, in, 2, 1);

    ot_emit_int(g, node, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

// dX = Y * (dY - sum(Y * dY)).
static void softmax_grad(ot_grad *g)
{
    softmax_emit_grad(g, "com.microsoft.SoftmaxGrad_13");
}

static void softmax_grad_expand(ot_grad *g)
{
    const int64_t axis = ot_attr_int(ot_grad_node(g), "axis");
    ot_value *dy = ot_grad_x(g, 0), *y = ot_grad_x(g, 1);
    ot_value *sum = ot__emit_sum(g, ot_emit2(g, "Mul", dy, y), &axis, 1, true);

    ot_expand_set(g, 0, ot_emit2(g, "Mul", y, ot_emit2(g, "Sub", dy, sum)));
}

// dX = dY - exp(Y) * sum(dY).
static void log_softmax_grad(ot_grad *g)
{
    softmax_emit_grad(g, "com.microsoft.LogSoftmaxGrad_13");
}

static void log_softmax_grad_expand(ot_grad *g)
{
    const int64_t axis = ot_attr_int(ot_grad_node(g), "axis");
    ot_value *dy = ot_grad_x(g, 0), *sum = ot__emit_sum(g, dy, &axis, 1, true);
    ot_value *share = ot_emit2(g, "Mul", ot_emit1(g, "Exp", ot_grad_x(g, 1)), sum);

    ot_expand_set(g, 0, ot_emit2(g, "Sub", dy, share));
}

// Steps: dX = 0.
static void hardmax_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit_zeros_like(g, ot_grad_x(g, 0)));
}

// ---- opset below 13: the node between a Flatten and a Reshape ----

static void softmax_upgrade(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);
    ot_value *x = node->inputs[0], *y = node->outputs[0];
    const int64_t axis = ot_attr_int(node, "axis");
    ot__builder b = {.graph = node->graph};
    ot_value *ends[2], *flat;

    ot_upgrade_set_int(u, "axis", -1);
    if (axis == -1 || (x && x->has_shape && axis == x->shape.ndim - 1) || !x || !y)
        return;
    flat = ot__build_value(&b, "softmax_lines");
    ends[0] = ot__build_value(&b, "softmax_line_result");
    ends[1] = ot__build_value(&b, "softmax_shape");
    ot__build_int(&b, ot__build_node(&b, "", "Flatten", "", &x, 1, &flat, 1), "axis", axis);
    ot__build_node(&b, "", "Shape", "", &x, 1, &ends[1], 1);
    ot__build_node(&b, "", "Reshape", "", ends, 2, &y, 1);
    if (b.status != OT_OK) {
        ot_upgrade_fail(u, "%s", ot_error_message());
        return;
    }
    node->inputs[0] = flat;
    node->outputs[0] = ends[0];
    ends[0]->producer = node;
    ends[0]->i_producer_output = 0;
}

// ---- records ----

static const ot_port softmax_grad_in[] = {{"dY", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_attr_spec axis_last[] = {OT__INT_ATTR("axis", -1), {0}};
static const ot_attr_spec axis_first[] = {OT__INT_ATTR("axis", 1), {0}};

#define OPERATOR(name_, symbol)                                                                    \
    const ot_op_def ot__op_##symbol[] = {{.name = name_,                                           \
                                          .since = 1,                                              \
                                          .inputs = ot__input_in,                                  \
                                          .outputs = ot__output_out,                               \
                                          .attrs = axis_first,                                     \
                                          .types = "T: f32 f64",                                   \
                                          .upgrade = softmax_upgrade},                             \
                                         {.name = name_,                                           \
                                          .since = 13,                                             \
                                          .inputs = ot__input_in,                                  \
                                          .outputs = ot__output_out,                               \
                                          .attrs = axis_last,                                      \
                                          .types = "T: f32 f64",                                   \
                                          .infer = softmax_infer,                                  \
                                          .kernels = symbol##_kernels,                             \
                                          .grad = symbol##_grad,                                   \
                                          .flags = OT_OP_IN_PLACE},                                \
                                         {0}};
#define GRADIENT(name_, symbol, attributes, kernels_, expand_)                                     \
    const ot_op_def ot__op_##symbol[] = {{.domain = OT__MS,                                        \
                                          .name = name_,                                           \
                                          .since = 1,                                              \
                                          .inputs = softmax_grad_in,                               \
                                          .outputs = ot__gradient_out,                             \
                                          .attrs = attributes,                                     \
                                          .types = "T: f32 f64",                                   \
                                          .infer = softmax_grad_infer,                             \
                                          .kernels = kernels_,                                     \
                                          .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE,                 \
                                          .expand = expand_},                                      \
                                         {0}};
OPERATOR("Softmax", softmax)
OPERATOR("LogSoftmax", log_softmax)
OPERATOR("Hardmax", hardmax)
GRADIENT("SoftmaxGrad_13", softmax_grad_13, axis_last, softmax_grad_kernels, softmax_grad_expand)
GRADIENT("LogSoftmaxGrad_13", log_softmax_grad_13, axis_last, log_softmax_grad_kernels,
         log_softmax_grad_expand)
GRADIENT("SoftmaxGrad", softmax_grad, axis_first, softmax_grad_flat_kernels, NULL)
GRADIENT("LogSoftmaxGrad", log_softmax_grad, axis_first, log_softmax_grad_flat_kernels, NULL)
