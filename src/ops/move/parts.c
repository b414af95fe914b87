// SPDX-License-Identifier: Apache-2.0
// Parts side by side along one axis: what Concat and Split, and the forms of them in training
// graphs, share.
#include "ops/move/move.h"

void ot__part_strides(ot__strided *s, const ot_shape *part, const ot_shape *whole, int axis,
                      int64_t from, ot__parts_way way)
{
    int64_t part_stride[OT_MAX_NDIM], whole_stride[OT_MAX_NDIM];
    const bool to_whole = way == OT__PART_TO_WHOLE;

    *s = (ot__strided){0};
    ot__shape_strides(part, part_stride);
    ot__shape_strides(whole, whole_stride);
    for (int k = 0; k < part->ndim; k++)
        ot__strided_add_axis(s, part->dim[k], to_whole ? part_stride[k] : whole_stride[k],
                             to_whole ? whole_stride[k] : part_stride[k]);
    *(to_whole ? &s->y_offset : &s->x_offset) = from * whole_stride[axis];
}

// ---- Concat ----

// Two extents that must be the same: the more precise one; false when they differ.
static bool merge_extent(int64_t *y, int64_t x)
{
    if (ot_dim_is_number(*y) && ot_dim_is_number(x))
        return *y == x;
    if (ot_dim_is_number(x) || *y == ot_dim_unknown())
        *y = x;
    return true;
}

// Known elements: those of the inputs, where they have some.
static void infer_concat_values(ot_infer *c, int axis, const ot_shape *y)
{
    int64_t values[OT_MAX_KNOWN], count, from = 0;
    int n;

    if (!ot__shape_is_static(y) || !ot__shape_count(y, &count) || count == 0 ||
        count > OT_MAX_KNOWN)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = ot_dim_unknown();
    for (int i = 0; i < ot_infer_input_count(c); i++) {
        const ot_shape *x = ot_infer_shape(c, i);
        const int64_t *known = ot_infer_values(c, i, &n);
        ot__strided s;

        if (known != NULL && n > 0) {
            ot__part_strides(&s, x, y, axis, from, OT__PART_TO_WHOLE);
            s.size = sizeof(*known);
            ot__strided_simplify(&s);
            ot__ref_strided_copy(values, known, &s);
        }
        from += x->dim[axis];
    }
    ot_infer_set_values(c, 0, values, (int)count);
}

bool ot__infer_concat(ot_infer *c, int axis, ot_shape *y)
{
    *y = *ot_infer_shape(c, 0);
    for (int i = 1; i < ot_infer_input_count(c); i++) {
        const ot_shape *x = ot_infer_shape(c, i);

        if (x->ndim != y->ndim) {
            ot_infer_fail(c, "input %d has %d axes, input 0 has %d", i, x->ndim, y->ndim);
            return false;
        }
        for (int k = 0; k < y->ndim; k++) {
            if (k == axis) {
                const int64_t sum = ot_infer_add(c, y->dim[k], x->dim[k]);

                if (!ot__infer_extent(c, k, y->dim[k], x->dim[k], sum))
                    return false;
                y->dim[k] = sum;
            } else if (!merge_extent(&y->dim[k], x->dim[k])) {
                ot_infer_fail(c,
                              "input %d has size %" PRId64 " at axis %d, the ones before %" PRId64,
                              i, x->dim[k], k, y->dim[k]);
                return false;
            }
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), y);
    infer_concat_values(c, axis, y);
    return true;
}

typedef struct concat_state {
    int axis;
    ot__strided parts[]; // one per input
} concat_state;

ot_status ot__prep_concat(ot_prep *p)
{
    const int n = ot_prep_input_count(p);
    const ot_arg *y = ot_prep_out(p, 0);
    concat_state *state = ot_prep_state(p, sizeof(*state) + (size_t)n * sizeof(ot__strided));
    int64_t from = 0;

    if (state == NULL)
        return OT_ERR_NO_MEMORY;
    if (!ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), y->shape.ndim, &state->axis))
        return ot_prep_fail(p, OT_ERR_INVALID, "the axis is out of range");
    for (int i = 0; i < n; i++) {
        const ot_arg *x = ot_prep_in(p, i);
        ot__strided *s = &state->parts[i];

        ot__part_strides(s, &x->shape, &y->shape, state->axis, from, OT__PART_TO_WHOLE);
        ot__strided_simplify(s);
        OT_TRY(ot__prep_element_size(p, x, &s->size));
        from += x->shape.dim[state->axis];
    }
    return OT_OK;
}

ot_status ot__run_concat(const ot_run *r)
{
    const concat_state *state = r->state;
    const ot_arg *lengths = r->n_out > 1 ? r->out[1] : NULL;

    for (int i = 0; i < r->n_in; i++) {
        ot__ref_strided_copy(r->out[0]->data, r->in[i]->data, &state->parts[i]);
        if (lengths != NULL)
            ((int64_t *)lengths->data)[i] = r->in[i]->shape.dim[state->axis];
    }
    return OT_OK;
}

// ---- Split ----

void ot__infer_split(ot_infer *c, int axis, const int64_t *sizes)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    int64_t from = 0;
    int n;
    const bool is_known = ot_infer_values(c, 0, &n) != NULL;

    for (int i = 0; i < ot_infer_output_count(c); i++) {
        ot_shape y = *x;

        y.dim[axis] = sizes[i];
        ot_infer_set(c, i, ot_infer_dtype(c, 0), &y);
        if (is_known && ot_dim_is_number(sizes[i])) {
            ot__strided s;

            ot__part_strides(&s, &y, x, axis, from, OT__WHOLE_TO_PART);
            ot__infer_moved(c, i, &s);
        }
        from = ot_infer_add(c, from, sizes[i]);
        if (is_known && !ot_dim_is_number(from))
            return; // where the next part begins is not known
    }
}

typedef struct split_state {
    int axis;
    int64_t inner, even; // elements behind the axis; extent of a part when no list is given
    ot__strided parts[]; // one per output; x_offset depends on the list
} split_state;

ot_status ot__prep_split(ot_prep *p)
{
    const int n = ot_prep_output_count(p);
    const ot_arg *x = ot_prep_in(p, 0);
    split_state *state = ot_prep_state(p, sizeof(*state) + (size_t)n * sizeof(ot__strided));
    int64_t stride[OT_MAX_NDIM];

    if (state == NULL)
        return OT_ERR_NO_MEMORY;
    if (!ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->shape.ndim, &state->axis))
        return ot_prep_fail(p, OT_ERR_INVALID, "the axis is out of range");
    ot__shape_strides(&x->shape, stride);
    state->inner = stride[state->axis];
    state->even = (x->shape.dim[state->axis] + n - 1) / n;
    for (int i = 0; i < n; i++) {
        const ot_arg *y = ot_prep_out(p, i);
        ot__strided *s = &state->parts[i];

        if (y == NULL)
            continue; // nobody reads it
        ot__part_strides(s, &y->shape, &x->shape, state->axis, 0, OT__WHOLE_TO_PART);
        ot__strided_simplify(s);
        OT_TRY(ot__prep_element_size(p, x, &s->size));
    }
    return OT_OK;
}

ot_status ot__run_split(const ot_run *r)
{
    const split_state *state = r->state;
    const int64_t extent = r->in[0]->shape.dim[state->axis];
    const ot_arg *list = r->n_in > 1 ? r->in[1] : NULL;
    int64_t from = 0;

    for (int i = 0; i < r->n_out; i++) {
        const ot_arg *y = r->out[i];
        const int64_t size =
            list != NULL ? ot__arg_int(list, i) : OT_MAX(OT_MIN(state->even, extent - from), 0);

        if (size < 0 || size > extent - from || (y != NULL && size != y->shape.dim[state->axis]))
            return ot__error(OT_ERR_INVALID,
                             "split %d has size %" PRId64 " from %" PRId64 " on, of %" PRId64, i,
                             size, from, extent);
        if (y != NULL) {
            ot__strided s = state->parts[i];

            s.x_offset = from * state->inner;
            ot__ref_strided_copy(y->data, r->in[0]->data, &s);
        }
        from += size;
    }
    return OT_OK;
}
