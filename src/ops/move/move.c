// SPDX-License-Identifier: Apache-2.0
// Moving elements: what the records of Transpose, Expand, Reshape and their like share.
#include "ops/move/move.h"

bool ot__all_numbers(const int64_t *values, int n)
{
    for (int i = 0; i < n; i++) {
        if (!ot_dim_is_number(values[i]))
            return false;
    }
    return true;
}

int64_t ot__dims_count(const int64_t *dims, int n)
{
    int64_t count = 1;

    for (int i = 0; i < n; i++) {
        if (ot__mul_overflows(count, dims[i], &count))
            return INT64_MAX;
    }
    return count;
}

int64_t ot__arg_int(const ot_arg *arg, int64_t i)
{
    return ot__ref_index_get(arg->data, ot_dtype_size(arg->dtype), i);
}

ot_status ot__prep_element_size(ot_prep *p, const ot_arg *x, size_t *size)
{
    *size = ot__element_size(x->dtype);
    return *size > 0 ? OT_OK
                     : ot_prep_fail(p, OT_ERR_UNSUPPORTED, "elements of type %s cannot be moved",
                                    ot_dtype_name(x->dtype));
}

void ot__part_strides(ot__strided *s, const ot_layout *layout, const ot_shape *part,
                      const ot_shape *whole, int axis, int64_t from, ot__parts_way way)
{
    int64_t part_stride[OT_MAX_NDIM], whole_stride[OT_MAX_NDIM], unit;
    const int lying_axis = ot__layout_lying_axis(layout, axis, &unit);
    const bool to_whole = way == OT__PART_TO_WHOLE;
    ot_shape lying_part, lying_whole;

    *s = (ot__strided){0};
    ot__layout_lying_shape(layout, part, &lying_part);
    ot__layout_lying_shape(layout, whole, &lying_whole);
    ot__shape_strides(&lying_part, part_stride);
    ot__shape_strides(&lying_whole, whole_stride);
    for (int k = 0; k < lying_part.ndim; k++)
        ot__strided_add_axis(s, lying_part.dim[k], to_whole ? part_stride[k] : whole_stride[k],
                             to_whole ? whole_stride[k] : part_stride[k]);
    *(to_whole ? &s->y_offset : &s->x_offset) = from / unit * whole_stride[lying_axis];
}

void ot__infer_moved(ot_infer *c, int output, const ot__strided *s)
{
    int n;
    const int64_t *x = ot_infer_values(c, 0, &n);
    const int64_t count = ot__dims_count(s->dim, s->ndim);
    ot__strided move = *s;
    int64_t y[OT_MAX_KNOWN];

    if (x == NULL || count == 0 || count > OT_MAX_KNOWN)
        return;
    move.size = sizeof(*x);
    ot__strided_simplify(&move);
    ot__ref_strided_copy(y, x, &move);
    ot_infer_set_values(c, output, y, (int)count);
}

ot_status ot__prep_strided(ot_prep *p, const ot__strided *s)
{
    ot__strided *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    *state = *s;
    ot__strided_simplify(state);
    return ot__prep_element_size(p, ot_prep_in(p, 0), &state->size);
}

ot_status ot__run_strided_simd(const ot_run *r)
{
    ot__simd_strided_copy(r->out[0]->data, r->in[0]->data, r->state);
    return OT_OK;
}

ot_status ot__run_strided_ref(const ot_run *r)
{
    ot__ref_strided_copy(r->out[0]->data, r->in[0]->data, r->state);
    return OT_OK;
}

static ot_status prep_view(ot_prep *p)
{
    size_t n_bytes;
    const ot_arg *x = ot_prep_in(p, 0), *y = ot_prep_out(p, 0);

    if (x->count != y->count) // as where the shape that is declared is not what data say
        return ot_prep_fail(p, OT_ERR_INVALID,
                            "output 0 has room for %" PRId64 " elements, input 0 has %" PRId64,
                            y->count, x->count);
    return ot__element_bytes(x->dtype, x->count, &n_bytes)
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_UNSUPPORTED, "elements of type %s cannot be moved",
                              ot_dtype_name(x->dtype));
}

static ot_status run_view(const ot_run *r)
{
    size_t n_bytes = 0;

    if (ot__element_bytes(r->in[0]->dtype, r->in[0]->count, &n_bytes))
        ot__ref_copy_bytes(r->out[0]->data, r->in[0]->data, n_bytes);
    return OT_OK;
}

const ot_kernel ot__view_kernels[] = {OT__REF_KERNEL(NULL, prep_view, run_view), {0}};

void ot__infer_view(ot_infer *c, const ot_shape *y)
{
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);

    ot_infer_set(c, 0, ot_infer_dtype(c, 0), y);
    if (known != NULL)
        ot_infer_set_values(c, 0, known, n);
}

ot_status ot__index_error(const ot_arg *indices, int64_t position, int64_t extent)
{
    return ot__error(OT_ERR_INVALID,
                     "index %" PRId64 " at position %" PRId64
                     " is outside an axis of size %" PRId64,
                     ot__arg_int(indices, position), position, extent);
}
