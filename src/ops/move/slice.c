// SPDX-License-Identifier: Apache-2.0
// Slice: a range of some axes, possibly backwards or with steps. SliceGrad puts what was taken
// back.
#include "op/expand.h"
#include "ops/move/move.h"

// ---- ranges ----

// One axis: `count` elements from `first` on, `step` apart.
typedef struct axis_slice {
    int64_t first, count, step;
} axis_slice;

static axis_slice clamp_slice(int64_t extent, int64_t start, int64_t end, int64_t step)
{
    axis_slice s = {.step = step == INT64_MIN ? -INT64_MAX : step};
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t distance;

    if (start < 0)
        start += extent;
    if (end < 0)
        end += extent;
    s.first = OT_MAX(OT_MIN(start, high), low);
    end = OT_MAX(OT_MIN(end, high), low); // -1: behind the first, going down
    distance = step > 0 ? end - s.first : s.first - end;
    if (distance > 0)
        s.count = (distance - 1) / (s.step > 0 ? s.step : -s.step) + 1;
    if (s.count <= 1)
        s.step = 1; // never taken, and it may be huge
    if (s.count == 0)
        s.first = 0;
    return s;
}

// The slices of all axes of `shape`, from a kernel's inputs: starts, which is number `first`, ends,
// axes and steps, which may be absent.
static ot_status run_slices(const ot_run *r, const ot_shape *shape, int first,
                            axis_slice slices[OT_MAX_NDIM])
{
    const ot_arg *starts = r->in[first], *ends = r->in[first + 1];
    const ot_arg *axes = first + 2 < r->n_in ? r->in[first + 2] : NULL;
    const ot_arg *steps = first + 3 < r->n_in ? r->in[first + 3] : NULL;
    ot__axes which = {0};

    if (ends->count != starts->count || (axes != NULL && axes->count != starts->count) ||
        (steps != NULL && steps->count != starts->count) || starts->count > shape->ndim)
        return ot__error(OT_ERR_INVALID,
                         "%" PRId64 " starts, %" PRId64 " ends and %d axes do not fit",
                         starts->count, ends->count, shape->ndim);
    if (axes != NULL)
        OT_TRY(ot__run_axes(axes, shape->ndim, &which));
    for (int k = 0; k < shape->ndim; k++)
        slices[k] = (axis_slice){0, shape->dim[k], 1};
    for (int i = 0; i < (int)starts->count; i++) {
        const int axis = axes == NULL ? i : which.axis[i];
        const int64_t step = steps == NULL ? 1 : ot__arg_int(steps, i);

        if (step == 0)
            return ot__error(OT_ERR_INVALID, "step of axis %d is 0", axis);
        slices[axis] =
            clamp_slice(shape->dim[axis], ot__arg_int(starts, i), ot__arg_int(ends, i), step);
    }
    return OT_OK;
}

// The copy between the slices of the whole and a part that has just them.
static void slices_strides(ot__strided *s, const ot_shape *whole, const axis_slice *slices,
                           const ot_shape *part, ot__parts_way way)
{
    const bool to_whole = way == OT__PART_TO_WHOLE;
    int64_t whole_stride[OT_MAX_NDIM], part_stride[OT_MAX_NDIM], offset = 0;

    *s = (ot__strided){0};
    ot__shape_strides(whole, whole_stride);
    ot__shape_strides(part, part_stride);
    for (int k = 0; k < whole->ndim; k++) {
        const int64_t step = whole_stride[k] * slices[k].step;

        offset += slices[k].first * whole_stride[k];
        ot__strided_add_axis(s, slices[k].count, to_whole ? part_stride[k] : step,
                             to_whole ? step : part_stride[k]);
    }
    *(to_whole ? &s->y_offset : &s->x_offset) = offset;
}

// ---- Slice ----

// What is known of the inputs in infer.
typedef struct slice_inputs {
    int n; // entries; -1: any axis may be cut
    int64_t starts[OT_MAX_NDIM], ends[OT_MAX_NDIM], steps[OT_MAX_NDIM]; // or ot_dim_unknown()
    ot__axes axes;
} slice_inputs;

// The entries of one input; ones when it is absent. False when there are not n.
static bool read_slice_list(ot_infer *c, int input, int n, int64_t *list)
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
static int64_t symbolic_slice_count(ot_infer *c, int64_t extent, int64_t start, int64_t end,
                                    int64_t step)
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
                       axis_slice *slice)
{
    const int64_t start = in->starts[i], end = in->ends[i], step = in->steps[i];

    if (step == 0)
        return ot__refuse(c, "step of entry %d is 0", i);
    if (ot_dim_is_number(*extent) && ot_dim_is_number(start) && ot_dim_is_number(end) &&
        ot_dim_is_number(step)) {
        *slice = clamp_slice(*extent, start, end, step);
        *extent = slice->count;
        return true;
    }
    *extent = ot_dim_is_number(step) ? symbolic_slice_count(c, *extent, start, end, step)
                                     : ot_dim_unknown();
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
    if (n == in->n && read_slice_list(c, 1, in->n, in->starts) &&
        read_slice_list(c, 2, in->n, in->ends) && read_slice_list(c, 4, in->n, in->steps))
        return true;
    return ot__refuse(c, "starts, ends, axes and steps differ in length, or exceed %d axes", ndim);
}

static void slice_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = *x;
    axis_slice slices[OT_MAX_NDIM];
    slice_inputs in;
    bool is_static = ot__shape_is_static(x);
    ot__strided s;
    int n;

    if (!read_inputs(c, x->ndim, &in))
        return;
    for (int k = 0; k < y.ndim; k++) {
        slices[k] = (axis_slice){0, x->dim[k], 1};
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
        slices_strides(&s, x, slices, &y, OT__WHOLE_TO_PART);
        ot__infer_moved(c, 0, &s);
    }
}

static ot_status slice_prepare(ot_prep *p)
{
    size_t size;

    return ot__prep_element_size(p, ot_prep_in(p, 0), &size);
}

static ot_status slice_run(const ot_run *r, ot__strided_function copy)
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    axis_slice slices[OT_MAX_NDIM];
    ot__strided s;

    OT_TRY(run_slices(r, &x->shape, 1, slices));
    for (int k = 0; k < x->shape.ndim; k++)
        if (slices[k].count != y->shape.dim[k])
            return ot__error(OT_ERR_INVALID,
                             "axis %d gives %" PRId64 " elements, %" PRId64 " were planned", k,
                             slices[k].count, y->shape.dim[k]);
    slices_strides(&s, &x->shape, slices, &y->shape, OT__WHOLE_TO_PART);
    s.size = ot__element_size(x->dtype);
    ot__strided_simplify(&s);
    copy(y->data, x->data, &s);
    return OT_OK;
}

static ot_status slice_run_simd(const ot_run *r)
{
    return slice_run(r, ot__simd_strided_copy);
}

static ot_status slice_run_ref(const ot_run *r)
{
    return slice_run(r, ot__ref_strided_copy);
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

static const ot_port slice_in[] = {
    {"data", "T", 0},
    {"starts", "I", OT_PORT_NO_GRAD},
    {"ends", "I", OT_PORT_NO_GRAD},
    {"axes", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"steps", "I", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec slice_attrs_1[] = {
    {.name = "starts", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "ends", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel slice_kernels[] = {OT__STRIDED_KERNELS(slice_prepare, slice_run), {0}};
const ot_op_def ot__op_slice[] = {
    {.name = "Slice",
     .since = 1,
     .inputs = ot__data_in,
     .outputs = ot__output_out,
     .attrs = slice_attrs_1,
     .types = "T: any string",
     .infer = slice_infer,
     .upgrade = slice_upgrade},
    {.name = "Slice",
     .since = 10,
     .inputs = slice_in,
     .outputs = ot__output_out,
     .types = "T: any string; I: i32 i64",
     .infer = slice_infer,
     .kernels = slice_kernels,
     .grad = slice_grad},
    {0},
};

// ---- SliceGrad ----

static void slice_grad_infer(ot_infer *c)
{
    ot__infer_stated(c, 1, ot_infer_dtype(c, 0));
}

static ot_status slice_grad_run(const ot_run *r, ot__strided_function copy)
{
    const ot_arg *dy = r->in[0], *dx = r->out[0];
    const uint64_t zero = 0;
    axis_slice slices[OT_MAX_NDIM];
    ot__strided s;

    OT_TRY(run_slices(r, &dx->shape, 2, slices));
    for (int k = 0; k < dx->shape.ndim; k++)
        if (dy->shape.ndim != dx->shape.ndim || slices[k].count != dy->shape.dim[k])
            return ot__error(OT_ERR_INVALID,
                             "axis %d has %" PRId64 " elements, dY has another shape", k,
                             slices[k].count);
    slices_strides(&s, &dx->shape, slices, &dy->shape, OT__PART_TO_WHOLE);
    s.size = ot_dtype_size(dx->dtype);
    ot__strided_simplify(&s);
    ot__ref_fill(dx->data, &zero, dx->count, s.size);
    copy(dx->data, dy->data, &s);
    return OT_OK;
}

static ot_status slice_grad_run_simd(const ot_run *r)
{
    return slice_grad_run(r, ot__simd_strided_copy);
}

static ot_status slice_grad_run_ref(const ot_run *r)
{
    return slice_grad_run(r, ot__ref_strided_copy);
}

static const ot_port slice_grad_in[] = {
    {"dY", "T", 0},
    {"shape", "i64", 0},
    {"starts", "I", 0},
    {"ends", "I", 0},
    {"axes", "I", OT_PORT_OPTIONAL},
    {"steps", "I", OT_PORT_OPTIONAL},
    {0},
};
static const ot_kernel slice_grad_kernels[] = {OT__STRIDED_KERNELS(NULL, slice_grad_run), {0}};
const ot_op_def ot__op_slice_grad[] = {
    {.domain = OT__MS,
     .name = "SliceGrad",
     .since = 1,
     .inputs = slice_grad_in,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64; I: i32 i64",
     .infer = slice_grad_infer,
     .kernels = slice_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = ot__slice_grad_expand},
    {0},
};
