// SPDX-License-Identifier: Apache-2.0
// Pad: elements put around a tensor, or (where negative) taken off.
#include "op/expand.h"
#include "ops/move/move.h"

#include <string.h>

enum { DATA, PADS, VALUE, AXES }; // inputs

static bool read_mode(const ot_node *node, ot__pad_mode *mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    const char *name = ot_attr_string(node, "mode");

    for (size_t i = 0; i < OT_COUNT(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *mode = (ot__pad_mode)i;
            return true;
        }
    }
    return false;
}

// Tables of all axes for the given pads, in `map`; false when an axis does not get the extent of y.
static bool fill_maps(ot__pad *pad, int64_t *map, const ot_shape *x, const ot_shape *y,
                      const int64_t *begin, const int64_t *end, ot__pad_mode mode)
{
    ot__shape_strides(x, pad->x_stride);
    pad->ndim = y->ndim;
    for (int k = 0; k < y->ndim; k++) {
        int64_t extent = x->dim[k];
        const bool overflows = __builtin_add_overflow(extent, begin[k], &extent) ||
                               __builtin_add_overflow(extent, end[k], &extent);

        if (overflows || extent != y->dim[k])
            return false;
        pad->dim[k] = extent;
        pad->map[k] = map;
        ot__ref_pad_map(map, x->dim[k], begin[k], end[k], mode);
        for (int64_t i = 0; mode != OT__PAD_CONSTANT && i < extent; i++) {
            if (map[i] < 0)
                return false; // nothing to repeat
        }
        map += extent;
    }
    return true;
}

// Known elements: constant mode pads with a known value or 0.
static void infer_padded(ot_infer *c, const ot_shape *y, const int64_t *begin, const int64_t *end,
                         ot__pad_mode mode)
{
    const ot_shape *x = ot_infer_shape(c, DATA);
    int n, n_value;
    const int64_t *known = ot_infer_values(c, DATA, &n);
    const int64_t *given = ot_infer_has(c, VALUE) ? ot_infer_values(c, VALUE, &n_value) : NULL;
    const int64_t value = given != NULL && n_value == 1 ? given[0]
                          : ot_infer_has(c, VALUE)      ? ot_dim_unknown()
                                                        : 0;
    ot__pad pad = {.size = sizeof(value)};
    int64_t map[OT_MAX_KNOWN + OT_MAX_NDIM]; // so many are extents of that product at most
    int64_t values[OT_MAX_KNOWN], count;

    if (known == NULL || !ot__shape_is_static(y) || !ot__shape_count(y, &count) || count == 0 ||
        count > OT_MAX_KNOWN || !fill_maps(&pad, map, x, y, begin, end, mode))
        return;
    if (y->ndim == 0)
        values[0] = known[0];
    else
        ot__ref_pad(values, known, &value, &pad);
    ot_infer_set_values(c, 0, values, (int)count);
}

// begin and end of every axis; ot_dim_unknown() where not known. False: the context has the error.
static bool infer_pads(ot_infer *c, int ndim, int64_t *begin, int64_t *end)
{
    int n;
    const int64_t *pads = ot_infer_values(c, PADS, &n);
    const ot_shape *list = ot_infer_shape(c, PADS);
    ot__axes axes;
    const ot__given given = ot__infer_axes(c, NULL, AXES, ndim, &axes);
    int n_axes = given == OT__GIVEN ? axes.n : ndim;

    if (given == OT__FAILED)
        return false;
    if (list->ndim != 1 ||
        (given != OT__UNKNOWN && ot_dim_is_number(list->dim[0]) && list->dim[0] != 2 * n_axes))
        return ot__refuse(c, "pads must be a list of %d numbers", 2 * n_axes);
    for (int k = 0; k < ndim; k++)
        begin[k] = end[k] = given == OT__GIVEN ? 0 : ot_dim_unknown();
    if (given == OT__UNKNOWN)
        return true;
    if (pads != NULL && !ot__infer_list_fits(c, PADS, n, pads))
        return false;
    for (int i = 0; i < n_axes; i++) {
        const int axis = given == OT__GIVEN ? axes.axis[i] : i;

        begin[axis] = pads == NULL ? ot_dim_unknown() : pads[i];
        end[axis] = pads == NULL ? ot_dim_unknown() : pads[n_axes + i];
    }
    return true;
}

static void pad_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, DATA);
    int64_t begin[OT_MAX_NDIM], end[OT_MAX_NDIM];
    ot_shape y = {.ndim = x->ndim};
    bool is_known = true;
    ot__pad_mode mode;

    if (!read_mode(ot_infer_node(c), &mode)) {
        ot_infer_fail(c, "mode is '%s', known: constant reflect edge wrap",
                      ot_attr_string(ot_infer_node(c), "mode"));
        return;
    }
    if (!infer_pads(c, x->ndim, begin, end))
        return;
    for (int k = 0; k < y.ndim; k++) {
        const int64_t begun = ot_infer_add(c, x->dim[k], begin[k]);

        y.dim[k] = ot_infer_add(c, begun, end[k]);
        if (!ot__infer_extent(c, k, x->dim[k], begin[k], begun) ||
            !ot__infer_extent(c, k, begun, end[k], y.dim[k]))
            return;
        is_known = is_known && ot_dim_is_number(begin[k]) && ot_dim_is_number(end[k]);
        if (ot_dim_is_number(y.dim[k]) && y.dim[k] < 0) {
            ot_infer_fail(c, "axis %d is left with size %" PRId64, k, y.dim[k]);
            return;
        }
        if (mode != OT__PAD_CONSTANT && x->dim[k] == 0 && ot_dim_is_number(y.dim[k]) &&
            y.dim[k] > 0) {
            ot_infer_fail(c, "axis %d has no elements to repeat", k);
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, DATA), &y);
    if (is_known)
        infer_padded(c, &y, begin, end, mode);
}

// ---- kernel ----

typedef struct pad_state {
    ot__pad_mode mode;
    size_t size;
} pad_state;

static ot_status pad_prep(ot_prep *p)
{
    const ot_arg *y = ot_prep_out(p, 0);
    pad_state *state = ot_prep_state(p, sizeof(*state));
    int64_t n = 0;

    OT_TRY(ot__made(state));
    read_mode(ot_prep_node(p), &state->mode);
    if (y->count > 0) {
        for (int k = 0; k < y->shape.ndim; k++)
            n += y->shape.dim[k]; // each at most y's count
    }
    ot_prep_scratch(p, (size_t)n * sizeof(int64_t));
    return ot__prep_element_size(p, y, &state->size);
}

static ot_status run_pads(const ot_run *r, int64_t *begin, int64_t *end)
{
    const int ndim = r->in[DATA]->shape.ndim;
    const ot_arg *pads = r->in[PADS], *list = r->n_in > AXES ? r->in[AXES] : NULL;
    ot__axes axes = {.n = ndim};

    for (int k = 0; k < ndim; k++) {
        begin[k] = end[k] = 0;
        axes.axis[k] = k;
    }
    if (list != NULL)
        OT_TRY(ot__run_axes(list, ndim, &axes));
    if (pads->count != 2 * axes.n)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " pads given for %d axes", pads->count, axes.n);
    for (int i = 0; i < axes.n; i++) {
        begin[axes.axis[i]] = ot__arg_int(pads, i);
        end[axes.axis[i]] = ot__arg_int(pads, axes.n + i);
    }
    return OT_OK;
}

static ot_status pad_run(const ot_run *r)
{
    const pad_state *state = r->state;
    const ot_arg *x = r->in[DATA], *y = r->out[0];
    const ot_arg *given = r->n_in > VALUE ? r->in[VALUE] : NULL;
    const uint64_t zero[2] = {0, 0};
    int64_t begin[OT_MAX_NDIM], end[OT_MAX_NDIM];
    ot__pad pad = {.size = state->size};

    OT_TRY(run_pads(r, begin, end));
    if (y->count == 0)
        return OT_OK;
    if (!fill_maps(&pad, r->scratch, &x->shape, &y->shape, begin, end, state->mode))
        return ot__error(OT_ERR_INVALID, "pads do not give the planned shape");
    if (y->shape.ndim == 0)
        ot__ref_copy_bytes(y->data, x->data, state->size);
    else
        ot__ref_pad(y->data, x->data, given != NULL && given->count > 0 ? given->data : zero, &pad);
    return OT_OK;
}

// ---- gradient ----

// dValue = the part of dY's sum that did not go to dX.
static void value_grad(ot_grad *g, ot_value *dx)
{
    ot_value *dy = ot_grad_dy(g, 0);
    ot_value *all = ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 0", &dy, 1, 1), 0);
    ot_value *inside = ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 0", &dx, 1, 1), 0);

    ot_grad_set_dx(g, VALUE,
                   ot_emit_reshape_like(g, ot_emit2(g, "Sub", all, inside), ot_grad_x(g, VALUE)));
}

// dX = dY with the pads taken off again, zeros where X was cropped.
static void constant_grad(ot_grad *g)
{
    ot_value *in[4] = {ot_grad_dy(g, 0), ot_emit1(g, "Neg", ot_grad_x(g, PADS)), NULL,
                       ot_grad_x(g, AXES)};
    ot_value *dx = ot_emit_output(g, ot_emit(g, "Pad", NULL, in, in[3] == NULL ? 2 : 4, 1), 0);

    if (ot_grad_wants(g, DATA))
        ot_grad_set_dx(g, DATA, dx);
    if (ot_grad_wants(g, VALUE))
        value_grad(g, dx);
}

// Indices 0 .. extent-1 of X along `axis`, padded as X was: where each element of Y came from.
static ot_value *emit_sources(ot_grad *g, ot_value *extent, ot_value *pads, int i, int n_axes)
{
    const int64_t at[2] = {i, n_axes + i};
    ot_value *in[2], *step;
    ot_node *pad;

    extent = ot_emit2(g, "Squeeze", extent, ot_emit_constant_i64(g, &(int64_t){0}, 1));
    step = ot_emit_constant(g, 1.0, pads);
    in[0] = ot_emit3(g, "Range", ot_emit_constant(g, 0.0, pads), extent, step);
    in[1] = ot_emit2(g, "Gather", pads, ot_emit_constant_i64(g, at, 2));
    pad = ot_emit(g, "Pad", NULL, in, 2, 1);
    ot_emit_string(g, pad, "mode", ot_attr_string(ot_grad_node(g), "mode"));
    return ot_emit_output(g, pad, 0);
}

// Whether the pads are known and put nothing before or behind entry i of the axes.
static bool is_unpadded(ot_grad *g, int i, int n_axes)
{
    int n;
    const int64_t *pads = ot_value_known(ot_grad_x(g, PADS), &n);

    return pads != NULL && n == 2 * n_axes && pads[i] == 0 && pads[n_axes + i] == 0;
}

// The elements of d along `axis`, entry i of the axes, added up where they came from.
static ot_value *emit_axis_sums(ot_grad *g, ot_value *d, int64_t axis, int i, int n_axes)
{
    ot_value *x_shape = ot_emit_shape(g, ot_grad_x(g, DATA));
    ot_value *extent = ot_emit2(g, "Gather", x_shape, ot_emit_constant_i64(g, &axis, 1));
    ot_value *shape[2] = {ot_emit_shape(g, d), extent}, *in[3], *list;
    const int ndim = ot_value_shape(ot_grad_x(g, DATA))->ndim;
    int64_t order[OT_MAX_NDIM];
    ot_node *node;

    for (int k = 0; k < ndim; k++)
        order[k] = k == axis ? ndim : k; // the shape of d, but X's extent along the axis
    list = ot_emit_constant_i64(g, order, ndim);
    in[0] = ot_emit2(g, "Gather", ot__emit_concat(g, shape, 2, 0), list);
    in[1] = emit_sources(g, extent, ot_grad_x(g, PADS), i, n_axes);
    in[2] = d;
    node = ot_emit(g, "com.microsoft.GatherGrad", NULL, in, 3, 1);
    ot_emit_int(g, node, "axis", axis);
    return ot_emit_output(g, node, 0);
}

// dX: axis by axis.
static void repeating_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0), *d = dy;
    const int ndim = ot_value_shape(ot_grad_x(g, DATA))->ndim;
    ot__axes axes;
    const ot__given given = ot__grad_axes(g, NULL, AXES, ndim, &axes);
    const int n = given == OT__GIVEN ? axes.n : ndim;

    if (given == OT__UNKNOWN)
        ot_grad_fail(g, "the gradient of mode '%s' needs constant axes",
                     ot_attr_string(ot_grad_node(g), "mode"));
    for (int i = 0; i < n && given != OT__UNKNOWN; i++)
        if (!is_unpadded(g, i, n))
            d = emit_axis_sums(g, d, given == OT__GIVEN ? axes.axis[i] : i, i, n);
    if (ot_grad_wants(g, DATA))
        ot_grad_set_dx(g, DATA, d == dy ? ot_emit1(g, "Identity", d) : d);
    if (ot_grad_wants(g, VALUE))
        ot_grad_set_dx(g, VALUE, ot_emit_zeros_like(g, ot_grad_x(g, VALUE)));
}

static void pad_grad(ot_grad *g)
{
    if (strcmp(ot_attr_string(ot_grad_node(g), "mode"), "constant") == 0)
        constant_grad(g);
    else if (ot__grad_has_rank(g))
        repeating_grad(g);
}

static void pad_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "pads", PADS);
    ot_upgrade_float_to_input(u, "value", 0.0F, VALUE);
}

static const ot_port pad_in_11[] = {
    {"data", "T", 0},
    {"pads", "i64", OT_PORT_NO_GRAD},
    {"constant_value", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port pad_in_18[] = {
    {"data", "T", 0},
    {"pads", "i64", OT_PORT_NO_GRAD},
    {"constant_value", "T", OT_PORT_OPTIONAL},
    {"axes", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec pad_attrs[] = {OT__STRING_ATTR("mode", "constant"), {0}};
static const ot_attr_spec pad_attrs_2[] = {
    OT__STRING_ATTR("mode", "constant"),
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    OT__FLOAT_ATTR("value", 0.0F),
    {0},
};
static const ot_kernel pad_kernels[] = {OT__REF_KERNEL(NULL, pad_prep, pad_run), {0}};
const ot_op_def ot__op_pad[] = {
    {.name = "Pad",
     .since = 2,
     .inputs = ot__data_in,
     .outputs = ot__output_out,
     .attrs = pad_attrs_2,
     .types = "T: f16 f32 f64",
     .infer = pad_infer,
     .upgrade = pad_upgrade},
    {.name = "Pad",
     .since = 11,
     .inputs = pad_in_11,
     .outputs = ot__output_out,
     .attrs = pad_attrs,
     .types = "T: any",
     .infer = pad_infer,
     .kernels = pad_kernels,
     .grad = pad_grad},
    {.name = "Pad",
     .since = 18,
     .inputs = pad_in_18,
     .outputs = ot__output_out,
     .attrs = pad_attrs,
     .types = "T: any; I: i32 i64",
     .infer = pad_infer,
     .kernels = pad_kernels,
     .grad = pad_grad},
    {0},
};
