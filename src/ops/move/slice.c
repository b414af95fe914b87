// SPDX-License-Identifier: Apache-2.0
// Ranges of Slice and its gradient.
#include "ops/move/move.h"

ot__slice ot__slice_clamp(int64_t extent, int64_t start, int64_t end, int64_t step)
{
    ot__slice s = {.step = step == INT64_MIN ? -INT64_MAX : step};
    const int64_t low = step > 0 ? 0 : -1; // where a range may end, going down
    int64_t distance;

    if (start < 0)
        start += extent;
    if (end < 0)
        end += extent;
    s.first = OT_MAX(OT_MIN(start, step > 0 ? extent : extent - 1), step > 0 ? 0 : low);
    end = OT_MAX(OT_MIN(end, step > 0 ? extent : extent - 1), low);
    distance = step > 0 ? end - s.first : s.first - end;
    if (distance > 0)
        s.count = (distance - 1) / (s.step > 0 ? s.step : -s.step) + 1;
    if (s.count <= 1)
        s.step = 1; // never taken, and it may be huge
    if (s.count == 0)
        s.first = 0;
    return s;
}

ot_status ot__run_slices(const ot_shape *shape, const ot_arg *starts, const ot_arg *ends,
                         const ot_arg *axes, const ot_arg *steps, ot__slice slices[OT_MAX_NDIM])
{
    ot__axes which = {0};

    if (ends->count != starts->count || (axes != NULL && axes->count != starts->count) ||
        (steps != NULL && steps->count != starts->count) || starts->count > shape->ndim)
        return ot__error(OT_ERR_INVALID,
                         "%" PRId64 " starts, %" PRId64 " ends and %d axes do not fit",
                         starts->count, ends->count, shape->ndim);
    if (axes != NULL)
        OT_TRY(ot__run_axes(axes, shape->ndim, &which));
    for (int k = 0; k < shape->ndim; k++)
        slices[k] = (ot__slice){0, shape->dim[k], 1};
    for (int i = 0; i < (int)starts->count; i++) {
        const int axis = axes == NULL ? i : which.axis[i];
        const int64_t step = steps == NULL ? 1 : ot__arg_int(steps, i);

        if (step == 0)
            return ot__error(OT_ERR_INVALID, "step of axis %d is 0", axis);
        slices[axis] =
            ot__slice_clamp(shape->dim[axis], ot__arg_int(starts, i), ot__arg_int(ends, i), step);
    }
    return OT_OK;
}

void ot__slices_strides(const ot_shape *shape, const ot__slice *slices, int64_t *offset,
                        int64_t *strides)
{
    ot__shape_strides(shape, strides);
    *offset = 0;
    for (int k = 0; k < shape->ndim; k++) {
        *offset += slices[k].first * strides[k];
        strides[k] *= slices[k].step;
    }
}
