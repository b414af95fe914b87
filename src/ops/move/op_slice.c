// SPDX-License-Identifier: Apache-2.0
// Slice: a range of some axes, possibly backwards or with steps.
#include "ops/move/move.h"

// What is known of the inputs in infer.
typedef struct slice_inputs {
    int n; // entries; -1: any axis may be cut
    int64_t starts[OT_MAX_NDIM], ends[OT_MAX_NDIM], steps[OT_MAX_NDIM]; // or ot_dim_unknown()
    ot__axes axes;
} slice_inputs;

// The entries of one input; ones when it is absent. False when there are not n.
static bool read_list(ot_infer *c, int input, int n, int64_t *list)
{
    const ot_tensor *constant = ot_infer_constant(c, input);
    int n_known;
    const int64_t *known = ot_infer_values(c, input, &n_known);

    if ((constant != NULL && ot_tensor_count(constant) != n) || (known != NULL && n_known != n))
        return false;
    for (int i = 0; i < n; i++) {
        if (!ot_infer_has(c, input))
            list[i] = 1;
        else if (constant !=
                 NULL) // exact: the lowest numbers, "to the very end", have no other code
            list[i] = OT_MAX(ot__tensor_get_i64(constant, i), OT_DIM_SYMBOL_END);
        else
            list[i] = known == NULL ? ot_dim_unknown() : known[i];
    }
    return true;
}

// The extent of a range of a symbolic axis, as far as it can be proven.
static int64_t symbolic_count(ot_infer *c, int64_t extent, int64_t start, int64_t end, int64_t step)
{
    const bool is_open = ot_dim_is_number(end) && end >= INT32_MAX;
    int64_t last;

    if (ot_dim_is_number(start) && ot_dim_is_number(end) && !ot_dim_is_number(extent) &&
        (start < 0) == (end < 0) && step > 0 && end <= start)
        return 0;
    if (step == -1 && ot_dim_is_number(start) && ot_dim_is_number(end) &&
        (start == -1 || start >= INT32_MAX) && end <= -(int64_t)INT32_MAX)
        return extent; // all of it, backwards
    if (step != 1 || !ot_dim_is_number(start) || start < 0)
        return ot_dim_unknown();
    if (is_open || (end == extent && end != ot_dim_unknown()))
        last = extent;
    else if (ot_dim_is_number(end) && end < 0)
        last = ot_infer_add(c, extent, end);
    else
        return ot_dim_unknown();
    return ot_infer_sub(c, last, start);
}

// One axis; *slice is filled when everything is a number (true).
static bool infer_axis(ot_infer *c, const slice_inputs *in, int i, int64_t *extent,
                       ot__slice *slice)
{
    const int64_t start = in->starts[i], end = in->ends[i], step = in->steps[i];

    if (step == 0) {
        ot_infer_fail(c, "step of entry %d is 0", i);
        return false;
    }
    if (ot_dim_is_number(*extent) && ot_dim_is_number(start) && ot_dim_is_number(end) &&
        ot_dim_is_number(step)) {
        *slice = ot__slice_clamp(*extent, start, end, step);
        *extent = slice->count;
        return true;
    }
    *extent =
        ot_dim_is_number(step) ? symbolic_count(c, *extent, start, end, step) : ot_dim_unknown();
    return false;
}

static bool read_inputs(ot_infer *c, int ndim, slice_inputs *in)
{
    const ot_shape *list = ot_infer_shape(c, 1);
    const int64_t n = list->ndim == 1 ? list->dim[0] : -1;
    const ot__given axes = ot__infer_axes(c, NULL, 3, ndim, &in->axes);

    if (axes == OT__FAILED)
        return false;
    in->n = -1;
    if (axes == OT__UNKNOWN || !ot_dim_is_number(n))
        return true;
    for (int k = 0; axes == OT__ABSENT && k < n && k < ndim; k++) {
        in->axes.axis[k] = k;
        in->axes.n = k + 1;
    }
    in->n = in->axes.n;
    if (n == in->n && read_list(c, 1, in->n, in->starts) && read_list(c, 2, in->n, in->ends) &&
        read_list(c, 4, in->n, in->steps))
        return true;
    ot_infer_fail(c, "starts, ends, axes and steps differ in length, or exceed %d axes", ndim);
    return false;
}

static void slice_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = *x;
    ot__slice slices[OT_MAX_NDIM];
    slice_inputs in;
    bool is_static = ot__shape_is_static(x);
    int64_t strides[OT_MAX_NDIM], y_strides[OT_MAX_NDIM];
    ot__strided s = {0};
    int n;

    if (!read_inputs(c, x->ndim, &in))
        return;
    for (int k = 0; k < y.ndim; k++) {
        slices[k] = (ot__slice){0, x->dim[k], 1};
        if (in.n < 0)
            y.dim[k] = ot_dim_unknown();
    }
    is_static = is_static && in.n >= 0;
    for (int i = 0; i < in.n; i++) {
        const int axis = in.axes.axis[i];

        if (!infer_axis(c, &in, i, &y.dim[axis], &slices[axis]))
            is_static = false;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    if (is_static && ot_infer_values(c, 0, &n) != NULL) {
        ot__slices_strides(x, slices, &s.x_offset, strides);
        ot__shape_strides(&y, y_strides);
        for (int k = 0; k < y.ndim; k++)
            ot__strided_add_axis(&s, y.dim[k], strides[k], y_strides[k]);
        ot__infer_moved(c, 0, &s);
    }
}

static ot_status slice_prep(ot_prep *p)
{
    size_t size;

    return ot__prep_element_size(p, ot_prep_in(p, 0), &size);
}

static const ot_arg *input_or_null(const ot_run *r, int i)
{
    return i < r->n_in ? r->in[i] : NULL;
}

static ot_status slice_run(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    ot__slice slices[OT_MAX_NDIM];
    int64_t x_strides[OT_MAX_NDIM], y_strides[OT_MAX_NDIM];
    ot__strided s = {.size = ot__element_size(x->dtype)};

    OT_TRY(ot__run_slices(&x->shape, r->in[1], r->in[2], input_or_null(r, 3), input_or_null(r, 4),
                          slices));
    ot__slices_strides(&x->shape, slices, &s.x_offset, x_strides);
    ot__shape_strides(&y->shape, y_strides);
    for (int k = 0; k < x->shape.ndim; k++) {
        if (slices[k].count != y->shape.dim[k])
            return ot__error(OT_ERR_INVALID,
                             "axis %d gives %" PRId64 " elements, %" PRId64 " were planned", k,
                             slices[k].count, y->shape.dim[k]);
        ot__strided_add_axis(&s, slices[k].count, x_strides[k], y_strides[k]);
    }
    ot__strided_simplify(&s);
    ot__ref_strided_copy(y->data, x->data, &s);
    return OT_OK;
}

static bool are_all(ot_grad *g, int input, int64_t low, int64_t high)
{
    const ot_value *list = ot_grad_x(g, input);
    const ot_tensor *constant = list == NULL ? NULL : list->constant;

    for (int64_t i = 0; constant != NULL && i < ot_tensor_count(constant); i++) {
        const int64_t number = ot__tensor_get_i64(constant, i);

        if (number < low || number > high)
            return false;
    }
    return constant != NULL;
}

// From the last element to the first: the same again is the way back.
static bool reverses(ot_grad *g)
{
    return are_all(g, 1, -1, -1) && are_all(g, 2, INT64_MIN, -(int64_t)INT32_MAX) &&
           are_all(g, 4, -1, -1);
}

// dX = dY at its place, zeros elsewhere.
static void slice_grad(ot_grad *g)
{
    ot_value *in[6] = {ot_grad_dy(g, 0)};
    const int n = ot_grad_input_count(g);

    for (int i = 1; i < n; i++)
        in[i + 1] = ot_grad_x(g, i);
    if (reverses(g)) {
        in[1] = in[0];
        ot_grad_set_dx(g, 0, ot_emit_output(g, ot_emit(g, "Slice", NULL, in + 1, n, 1), 0));
        return;
    }
    in[1] = ot_emit_shape(g, ot_grad_x(g, 0));
    ot_grad_set_dx(g, 0,
                   ot_emit_output(g, ot_emit(g, "com.microsoft.SliceGrad", NULL, in, n + 1, 1), 0));
}

static void slice_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "starts", 1);
    ot_upgrade_ints_to_input(u, "ends", 2);
    ot_upgrade_ints_to_input(u, "axes", 3);
}

static const ot_port slice_in_1[] = {{"data", "T", 0}, {0}};
static const ot_port slice_in[] = {
    {"data", "T", 0},
    {"starts", "I", OT_PORT_NO_GRAD},
    {"ends", "I", OT_PORT_NO_GRAD},
    {"axes", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"steps", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port slice_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec slice_attrs_1[] = {
    {.name = "starts", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "ends", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel slice_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = slice_prep,
     .run = slice_run},
    {0},
};
const ot_op_def ot__op_slice[] = {
    {.name = "Slice",
     .since = 1,
     .inputs = slice_in_1,
     .outputs = slice_out,
     .attrs = slice_attrs_1,
     .types = "T: any string",
     .infer = slice_infer,
     .upgrade = slice_upgrade},
    {.name = "Slice",
     .since = 10,
     .inputs = slice_in,
     .outputs = slice_out,
     .types = "T: any string; I: i32 i64",
     .infer = slice_infer,
     .kernels = slice_kernels,
     .grad = slice_grad},
    {0},
};
