// SPDX-License-Identifier: Apache-2.0
#include "tensor/tensor.h"

bool ot__shape_count(const ot_shape *shape, int64_t *count)
{
    int64_t product = 1; // of the extents that are not 0, so that any partial product fits too
    bool is_empty = false;

    *count = 0;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 0 || ot__mul_overflows(product, OT_MAX(shape->dim[i], 1), &product))
            return false;
        is_empty = is_empty || shape->dim[i] == 0;
    }
    *count = is_empty ? 0 : product;
    return true;
}

ot_status ot__shape_check(const ot_shape *shape, int64_t *count)
{
    if (shape->ndim < 0 || shape->ndim > OT_MAX_NDIM)
        return ot__error(OT_ERR_INVALID, "a tensor has 0 to %d axes, got %d", OT_MAX_NDIM,
                         shape->ndim);
    for (int i = 0; i < shape->ndim; i++)
        if (shape->dim[i] < 0)
            return ot__error(OT_ERR_INVALID, "axis %d of a tensor has size %" PRId64, i,
                             shape->dim[i]);
    if (!ot__shape_count(shape, count))
        return ot__error(OT_ERR_INVALID,
                         "a tensor of shape %s has more elements than can be counted",
                         OT_SHAPE_TEXT(shape));
    return OT_OK;
}

bool ot__shape_equal(const ot_shape *a, const ot_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

void ot__shape_strides(const ot_shape *shape, int64_t strides[OT_MAX_NDIM])
{
    int64_t stride = 1;

    for (int i = shape->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        // Wraps only for shapes that ot__shape_count refuses.
        (void)ot__mul_overflows(stride, OT_MAX(shape->dim[i], 1), &stride);
    }
}

char *ot__shape_text(const ot_shape *shape, char *text, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    for (int i = 0; i <= shape->ndim && used < size; i++) {
        const char *before = i == 0 ? "[" : i < shape->ndim ? "," : "";
        int n;
        if (i == shape->ndim)
            n = snprintf(text + used, size - used, "%s]", before);
        else if (shape->dim[i] < 0)
            n = snprintf(text + used, size - used, "%s?", before);
        else
            n = snprintf(text + used, size - used, "%s%" PRId64, before, shape->dim[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

bool ot__axis_normalize(int64_t axis, int ndim, int *out)
{
    if (axis < -(int64_t)ndim || axis >= ndim)
        return false;
    *out = (int)(axis < 0 ? axis + ndim : axis);
    return true;
}
