// SPDX-License-Identifier: Apache-2.0
// ScatterElements (Scatter in opsets 9 and 10) and ScatterND: data with slices, which indices name,
// replaced or combined.
#include "ops/move/move.h"

#include <string.h>

static const char unknown_reduction[] = "reduction is '%s', known: none add mul min max";

// False for a reduction that ONNX does not have.
static bool read_reduction(const ot_node *node, ot__scatter_op *op)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ot_attr_string(node, "reduction");

    *op = OT__SCATTER_NONE;
    if (name[0] == '\0')
        return true;
    for (size_t i = 0; i < OT_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *op = (ot__scatter_op)i;
            return true;
        }
    }
    return false;
}

// Known elements of data with known updates put in.
static void infer_scattered(ot_infer *c, enum ot__index_way way)
{
    int n_x, n_u;
    const int64_t *x = ot_infer_values(c, 0, &n_x), *u = ot_infer_values(c, 2, &n_u);
    ot__indexed indexed = {.way = way};
    int64_t offset[OT_MAX_KNOWN], y[OT_MAX_KNOWN], extent = 0, bad;

    if (x == NULL || u == NULL || n_x == 0 || n_u == 0 ||
        !ot__infer_offsets(c, &indexed, n_u, offset, &bad, &extent) || bad >= 0)
        return; // which index is bad the kernel will say
    memcpy(y, x, (size_t)n_x * sizeof(*y));
    for (int64_t k = 0; k < n_u; k++)
        y[offset[k / indexed.slice] + k % indexed.slice] = u[k];
    ot_infer_set_values(c, 0, y, n_x);
}

static void infer_scatter(ot_infer *c, enum ot__index_way way)
{
    const ot_shape *data = ot_infer_shape(c, 0), *updates = ot_infer_shape(c, 2);
    ot__scatter_op op;
    ot_shape slices;

    if (!read_reduction(ot_infer_node(c), &op))
        ot_infer_fail(c, unknown_reduction, ot_attr_string(ot_infer_node(c), "reduction"));
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), data);
    if (!ot__infer_indexed(c, way, &slices))
        return;
    if (!ot__shape_may_equal(&slices, updates))
        ot_infer_fail(c, "updates do not have the shape that data and indices name");
    else if (op == OT__SCATTER_NONE)
        infer_scattered(c, way);
}

static ot_status refuse_type(ot_prep *p)
{
    return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "reduction '%s' of elements of type %s",
                        ot_attr_string(ot_prep_node(p), "reduction"),
                        ot_dtype_name(ot_prep_in(p, 0)->dtype));
}

static ot_status prep_scatter(ot_prep *p, enum ot__index_way way)
{
    const ot_arg *data = ot_prep_in(p, 0);
    ot__indexed *x = ot__prep_indexed(p, way, data, ot_prep_in(p, 1));

    OT_TRY(p->status);
    read_reduction(ot_prep_node(p), &x->op);
    x->scatter = ot__ref_scatter_find(data->dtype, x->op);
    if (x->scatter == NULL)
        return refuse_type(p);
    return ot__prep_offsets(p, x, ot_prep_in(p, 2)->count);
}

static ot_status run_scatter(const ot_run *r)
{
    const ot__indexed *x = r->state;
    const ot_arg *y = r->out[0];

    OT_TRY(ot__run_offsets(r, r->in[1]));
    x->scatter(y->data, r->in[0]->data, r->scratch, r->in[2]->data, x->n, x->slice, y->count,
               x->op);
    return OT_OK;
}

static ot_status scatter_lines_prepare(ot_prep *p)
{
    const ot__indexed *x;
    ot__scatter_op op;

    read_reduction(ot_prep_node(p), &op);
    x = ot__prep_lines(p, ot_prep_in(p, 0), ot_prep_in(p, 1), op);
    OT_TRY(p->status);
    return x->put == NULL ? refuse_type(p) : OT_OK;
}

static ot_status scatter_lines_run(const ot_run *r)
{
    const ot__indexed *x = r->state;

    return ot__index_lines_status(x, r->in[1],
                                  ot__index_lines_scatter(r->out[0]->data, r->in[0]->data,
                                                          r->in[1]->data, r->in[2]->data, &x->lines,
                                                          x->put, x->op));
}

// ---- gradients of data and updates, by the operator itself and the one that reads what it writes
// ----

typedef struct scatter_rule {
    ot_grad *g;
    const char *scatter, *gather;
    ot_value *data, *indices, *updates, *y, *dy;
} scatter_rule;

static ot_value *emit_with_axis(const scatter_rule *r, ot_node *node)
{
    if (ot_attr_given(ot_grad_node(r->g), "axis"))
        ot_emit_int(r->g, node, "axis", ot_attr_int(ot_grad_node(r->g), "axis"));
    return ot_emit_output(r->g, node, 0);
}

static ot_value *emit_scattered(const scatter_rule *r, ot_value *data, ot_value *updates,
                                const char *reduction)
{
    ot_value *in[3] = {data, r->indices, updates};
    ot_node *node = ot_emit(r->g, r->scatter, NULL, in, 3, 1);

    if (reduction != NULL)
        ot_emit_string(r->g, node, "reduction", reduction);
    return emit_with_axis(r, node);
}

static ot_value *emit_gathered(const scatter_rule *r, ot_value *x)
{
    ot_value *in[2] = {x, r->indices};

    return emit_with_axis(r, ot_emit(r->g, r->gather, NULL, in, 2, 1));
}

// Y = data with updates in some places:  d data = dY without those places, d updates = dY there.
static void replace_grad(const scatter_rule *r)
{
    if (ot_grad_wants(r->g, 0))
        ot_grad_set_dx(r->g, 0,
                       emit_scattered(r, r->dy, ot_emit_zeros_like(r->g, r->updates), NULL));
    if (ot_grad_wants(r->g, 2))
        ot_grad_set_dx(r->g, 2, emit_gathered(r, r->dy));
}

// Y = data + updates there:  d data = dY, d updates = dY there.
static void add_grad(const scatter_rule *r)
{
    if (ot_grad_wants(r->g, 0))
        ot_grad_set_dx(r->g, 0, ot_emit1(r->g, "Identity", r->dy));
    if (ot_grad_wants(r->g, 2))
        ot_grad_set_dx(r->g, 2, emit_gathered(r, r->dy));
}

// Y = data * u1 * u2 ...:  d data = dY * u1 * u2 ..., d u1 = dY * data * u2 .... Without dividing
// by an update that is 0: the product goes over those that are not, and counts where another one is
// 0.
static void mul_grad(const scatter_rule *r)
{
    ot_grad *g = r->g;
    ot_value *zero = ot_emit_constant(g, 0.0, r->data), *one = ot_emit_constant(g, 1.0, r->data);
    ot_value *zeros = ot_emit_zeros_like(g, r->data);

    if (ot_grad_wants(g, 0)) {
        ot_value *factors = emit_scattered(r, ot_emit2(g, "Add", zeros, one), r->updates, "mul");

        ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", r->dy, factors));
    }
    if (ot_grad_wants(g, 2)) {
        ot_value *is_zero = ot_emit2(g, "Equal", r->updates, zero);
        ot_value *mask = ot_emit_cast(g, is_zero, ot_value_dtype(r->data));
        ot_value *nonzero = ot_emit3(g, "Where", is_zero, one, r->updates);
        ot_value *n_zero = emit_gathered(r, emit_scattered(r, zeros, mask, "add"));
        ot_value *product = emit_scattered(r, r->data, nonzero, "mul");
        ot_value *each = emit_gathered(r, ot_emit2(g, "Mul", r->dy, product));
        ot_value *others_fine = ot_emit2(g, "Equal", n_zero, mask);

        ot_grad_set_dx(g, 2,
                       ot_emit3(g, "Where", others_fine, ot_emit2(g, "Div", each, nonzero), zero));
    }
}

// Y = min or max of data and updates: dY goes to those equal to Y, in equal shares.
static void extreme_grad(const scatter_rule *r)
{
    ot_grad *g = r->g;
    const ot_dtype dtype = ot_value_dtype(r->data);
    ot_value *data_mask = ot_emit_cast(g, ot_emit2(g, "Equal", r->data, r->y), dtype);
    ot_value *update_mask =
        ot_emit_cast(g, ot_emit2(g, "Equal", r->updates, emit_gathered(r, r->y)), dtype);
    ot_value *count = emit_scattered(r, data_mask, update_mask, "add");
    ot_value *share = ot_emit2(g, "Div", r->dy, count);

    if (ot_grad_wants(g, 0))
        ot_grad_set_dx(g, 0, ot_emit2(g, "Mul", share, data_mask));
    if (ot_grad_wants(g, 2))
        ot_grad_set_dx(g, 2, ot_emit2(g, "Mul", emit_gathered(r, share), update_mask));
}

static void scatter_grad(ot_grad *g, const char *scatter, const char *gather)
{
    scatter_rule r = {.g = g,
                      .scatter = scatter,
                      .gather = gather,
                      .data = ot_grad_x(g, 0),
                      .indices = ot_grad_x(g, 1),
                      .updates = ot_grad_x(g, 2),
                      .dy = ot_grad_dy(g, 0)};
    ot__scatter_op op;

    if (!read_reduction(ot_grad_node(g), &op)) {
        ot_grad_fail(g, unknown_reduction, ot_attr_string(ot_grad_node(g), "reduction"));
    } else if (op == OT__SCATTER_NONE) {
        replace_grad(&r);
    } else if (op == OT__SCATTER_ADD) {
        add_grad(&r);
    } else if (op == OT__SCATTER_MUL) {
        mul_grad(&r);
    } else {
        r.y = ot_grad_y(g, 0);
        extreme_grad(&r);
    }
}

// ---- the records ----

static void scatter_elements_infer(ot_infer *c)
{
    infer_scatter(c, OT__INDEX_ELEMENTS);
}

static void scatter_nd_infer(ot_infer *c)
{
    infer_scatter(c, OT__INDEX_ND);
}

static ot_status scatter_elements_prepare(ot_prep *p)
{
    return prep_scatter(p, OT__INDEX_ELEMENTS);
}

static ot_status scatter_nd_prepare(ot_prep *p)
{
    return prep_scatter(p, OT__INDEX_ND);
}

static void scatter_elements_grad(ot_grad *g)
{
    scatter_grad(g, "ScatterElements", "GatherElements");
}

static void scatter_nd_grad(ot_grad *g)
{
    scatter_grad(g, "ScatterND", "GatherND");
}

static void scatter_upgrade(ot_upgrade *u)
{
    ot_upgrade_rename(u, "ScatterElements");
}

static const ot_port scatter_elements_in[] = {
    {"data", "T", 0}, {"indices", "I", OT_PORT_NO_GRAD}, {"updates", "T", 0}, {0}};
static const ot_port scatter_nd_in[] = {
    {"data", "T", 0}, {"indices", "i64", OT_PORT_NO_GRAD}, {"updates", "T", 0}, {0}};
static const ot_attr_spec scatter_attrs[] = {
    OT__INT_ATTR("axis", 0),
    OT__STRING_ATTR("reduction", "none"),
    {0},
};
static const ot_attr_spec axis_attrs[] = {OT__INT_ATTR("axis", 0), {0}};
// Elements of all types are moved; f16 and bf16 are combined in f32.
static bool only_replaces(const ot_prep *p)
{
    ot__scatter_op op;

    return read_reduction(ot_prep_node(p), &op) && op == OT__SCATTER_NONE;
}

#define NOT_NARROW                                                                                 \
    "T: f32 u8 i8 u16 i16 i32 i64 string bool f64 u32 u64 c64 c128 f8e4m3fn f8e4m3fnuz f8e5m2"     \
    " f8e5m2fnuz f8e8m0"
#define SCATTER_KERNELS(prepare_)                                                                  \
    {.name = "move",                                                                               \
     .flags = OT_KERNEL_THREAD_EXACT,                                                              \
     .can_run = only_replaces,                                                                     \
     .prepare = (prepare_),                                                                        \
     .run = run_scatter},                                                                          \
        OT__REF_KERNEL(NOT_NARROW, prepare_, run_scatter),                                         \
    {                                                                                              \
        0                                                                                          \
    }
// ScatterElements' own: elements are written line by line.
#define LINES_KERNEL(types_, can_run_)                                                             \
    {                                                                                              \
        .name = "lines", .types = types_, .flags = OT_KERNEL_THREAD_EXACT, .can_run = can_run_,    \
        .prepare = scatter_lines_prepare, .run = scatter_lines_run                                 \
    }
static const ot_kernel scatter_elements_kernels[] = {LINES_KERNEL(NULL, only_replaces),
                                                     LINES_KERNEL(NOT_NARROW, NULL),
                                                     SCATTER_KERNELS(scatter_elements_prepare)};
static const ot_kernel scatter_nd_kernels[] = {SCATTER_KERNELS(scatter_nd_prepare)};
#define SCATTER(name_, symbol, since_, attrs_, types_)                                             \
    {                                                                                              \
        .name = name_, .since = since_, .inputs = symbol##_in, .outputs = ot__output_out,          \
        .attrs = attrs_, .types = types_, .infer = symbol##_infer, .kernels = symbol##_kernels,    \
        .grad = symbol##_grad, .flags = OT_OP_IN_PLACE                                             \
    }
#define TYPES "T: any string; I: i32 i64"
const ot_op_def ot__op_scatter[] = {
    {.name = "Scatter",
     .since = 9,
     .inputs = scatter_elements_in,
     .outputs = ot__output_out,
     .attrs = axis_attrs,
     .types = TYPES,
     .infer = scatter_elements_infer,
     .upgrade = scatter_upgrade},
    {0},
};
const ot_op_def ot__op_scatter_elements[] = {
    SCATTER("ScatterElements", scatter_elements, 11, axis_attrs, TYPES),
    SCATTER("ScatterElements", scatter_elements, 16, scatter_attrs, TYPES),
    {0},
};
const ot_op_def ot__op_scatter_nd[] = {
    SCATTER("ScatterND", scatter_nd, 11, NULL, "T: any string"),
    SCATTER("ScatterND", scatter_nd, 16, scatter_attrs + 1, "T: any string"),
    {0},
};
