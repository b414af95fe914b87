// SPDX-License-Identifier: Apache-2.0
// How elements lie in memory.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

enum { FIRST_NDIM = 3, N_NDIM = 3, CHANNELS = 1 };

static const ot_layout channels_last[N_NDIM] = {
    {.ndim = 3, .order = {0, 2, 1}},
    {.ndim = 4, .order = {0, 2, 3, 1}},
    {.ndim = 5, .order = {0, 2, 3, 4, 1}},
};
static const ot_layout blocked[2][N_NDIM] = {
    {{.ndim = 3, .order = {0, 1, 2}, .n_blocks = 1, .block = {{CHANNELS, 8}}},
     {.ndim = 4, .order = {0, 1, 2, 3}, .n_blocks = 1, .block = {{CHANNELS, 8}}},
     {.ndim = 5, .order = {0, 1, 2, 3, 4}, .n_blocks = 1, .block = {{CHANNELS, 8}}}},
    {{.ndim = 3, .order = {0, 1, 2}, .n_blocks = 1, .block = {{CHANNELS, 16}}},
     {.ndim = 4, .order = {0, 1, 2, 3}, .n_blocks = 1, .block = {{CHANNELS, 16}}},
     {.ndim = 5, .order = {0, 1, 2, 3, 4}, .n_blocks = 1, .block = {{CHANNELS, 16}}}},
};

const ot_layout *ot__layout_channels_last(int ndim)
{
    return ndim < FIRST_NDIM || ndim >= FIRST_NDIM + N_NDIM ? NULL
                                                            : &channels_last[ndim - FIRST_NDIM];
}

const ot_layout *ot__layout_blocked(int ndim, int block)
{
    if (ndim < FIRST_NDIM || ndim >= FIRST_NDIM + N_NDIM || (block != 8 && block != 16))
        return NULL;
    return &blocked[block == 16][ndim - FIRST_NDIM];
}

bool ot__layout_is_channels_last(const ot_layout *layout)
{
    return layout != NULL && ot__layout_equal(layout, ot__layout_channels_last(layout->ndim));
}

int ot__layout_channel_block(const ot_layout *layout)
{
    return layout != NULL && layout->n_blocks == 1 && layout->block[0].axis == CHANNELS
               ? layout->block[0].size
               : 1;
}

bool ot__layout_equal(const ot_layout *a, const ot_layout *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    if (a->ndim != b->ndim || a->n_blocks != b->n_blocks)
        return false;
    for (int k = 0; k < a->ndim; k++)
        if (a->order[k] != b->order[k])
            return false;
    for (int k = 0; k < a->n_blocks; k++)
        if (a->block[k].axis != b->block[k].axis || a->block[k].size != b->block[k].size)
            return false;
    return true;
}

// How many elements of an axis stand together: the product of its blocks.
static int64_t block_of(const ot_layout *layout, int axis)
{
    int64_t size = 1;

    for (int k = 0; k < layout->n_blocks; k++)
        if (layout->block[k].axis == axis)
            size *= layout->block[k].size;
    return size;
}

bool ot__layout_fits(const ot_layout *layout, const ot_shape *shape)
{
    if (layout == NULL)
        return true;
    if (layout->ndim != shape->ndim)
        return false;
    for (int k = 0; k < layout->ndim; k++)
        if (shape->dim[k] % block_of(layout, k) != 0)
            return false;
    return true;
}

// Of the loops over all elements in the order of `layout`, first its axes, then its blocks.
static int64_t loop_extent(const ot_layout *layout, const ot_shape *shape, int k)
{
    return k < layout->ndim ? shape->dim[layout->order[k]] / block_of(layout, layout->order[k])
                            : layout->block[k - layout->ndim].size;
}

void ot__layout_lying_shape(const ot_layout *layout, const ot_shape *shape, ot_shape *lying)
{
    *lying = *shape;
    if (layout == NULL)
        return;
    assert(layout->ndim + layout->n_blocks <= OT_MAX_NDIM);
    lying->ndim = layout->ndim + layout->n_blocks;
    for (int k = 0; k < lying->ndim; k++)
        lying->dim[k] = loop_extent(layout, shape, k);
}

int ot__layout_lying_axis(const ot_layout *layout, int axis, int64_t *unit)
{
    int at = 0;

    *unit = 1;
    if (layout == NULL)
        return axis;
    *unit = block_of(layout, axis);
    while (layout->order[at] != axis)
        at++;
    return at;
}

int64_t ot__layout_row_unit(const ot_layout *layout, const ot_shape *shape)
{
    int axis = 0;
    int64_t count, unit;

    while (axis < shape->ndim && shape->dim[axis] == 1)
        axis++;
    if (axis == shape->ndim || !ot__shape_count(shape, &count) || count == 0)
        return 0;
    if (layout == NULL)
        return 1;
    // The loops over all elements: as far as the outermost ones are over this axis, each of their
    // rounds is one piece.
    unit = shape->dim[axis];
    for (int k = 0; k < layout->ndim + layout->n_blocks; k++) {
        const int b = k - layout->ndim, of = b < 0 ? layout->order[k] : layout->block[b].axis;
        const int64_t extent = loop_extent(layout, shape, k);

        if (extent > 1 && of != axis)
            break;
        unit /= extent;
    }
    return unit < shape->dim[axis] ? unit : 0;
}

int64_t ot__layout_offset(const ot_layout *layout, const ot_shape *shape, const int64_t *index)
{
    int64_t inside[OT_MAX_NDIM], offset = 0;

    if (layout == NULL) {
        for (int k = 0; k < shape->ndim; k++)
            offset = offset * shape->dim[k] + index[k];
        return offset;
    }
    for (int k = 0; k < layout->ndim; k++) {
        const int axis = layout->order[k];

        inside[axis] = block_of(layout, axis);
        offset = offset * (shape->dim[axis] / inside[axis]) + index[axis] / inside[axis];
    }
    for (int k = 0; k < layout->n_blocks; k++) {
        const int axis = layout->block[k].axis;

        inside[axis] /= layout->block[k].size;
        offset =
            offset * layout->block[k].size + index[axis] / inside[axis] % layout->block[k].size;
    }
    return offset;
}

char *ot__layout_text(const ot_layout *layout, char *text, size_t size)
{
    size_t at = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    for (int k = 0; layout != NULL && k < layout->ndim + layout->n_blocks && at < size; k++) {
        const int b = k - layout->ndim;
        const int n = b < 0 ? snprintf(text + at, size - at, "%d", layout->order[k])
                            : snprintf(text + at, size - at, ":%dx%d", layout->block[b].axis,
                                       layout->block[b].size);

        at += n > 0 ? (size_t)n : 0;
    }
    return text;
}

// ---- from one layout to another ----

// The loops over all elements in the order of `layout`: extents, and steps in row-major memory.
typedef struct nest {
    int n;
    int64_t extent[OT_MAX_NDIM + OT_FORM_BLOCKS], step[OT_MAX_NDIM + OT_FORM_BLOCKS];
} nest;

static void make_nest(nest *loops, const ot_layout *layout, const ot_shape *shape)
{
    int64_t inside[OT_MAX_NDIM], strides[OT_MAX_NDIM];

    ot__shape_strides(shape, strides);
    loops->n = layout->ndim + layout->n_blocks;
    for (int k = 0; k < layout->ndim; k++) {
        const int axis = layout->order[k];

        inside[axis] = block_of(layout, axis);
        loops->extent[k] = loop_extent(layout, shape, k);
        loops->step[k] = strides[axis] * inside[axis];
    }
    for (int k = 0; k < layout->n_blocks; k++) {
        const int axis = layout->block[k].axis;

        inside[axis] /= layout->block[k].size;
        loops->extent[layout->ndim + k] = loop_extent(layout, shape, layout->ndim + k);
        loops->step[layout->ndim + k] = strides[axis] * inside[axis];
    }
}

static void copy_line(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step,
                      int64_t n, size_t element_size)
{
    if (element_size == sizeof(float)) {
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_step * 4, from + i * from_step * 4, sizeof(float));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step * (int64_t)element_size,
               from + i * from_step * (int64_t)element_size, element_size);
}

// One of the two is row-major, the other in `layout`.
static void convert_plain(uint8_t *to, const uint8_t *from, bool to_plain, const ot_layout *layout,
                          const ot_shape *shape, size_t element_size)
{
    int64_t index[OT_MAX_NDIM + OT_FORM_BLOCKS] = {0}, plain = 0, formed = 0, lines = 1, line;
    nest loops;
    int last;

    make_nest(&loops, layout, shape);
    last = loops.n - 1;
    line = loops.extent[last];
    for (int k = 0; k < last; k++)
        lines *= loops.extent[k];
    for (int64_t i = 0; i < lines; i++, formed += line) {
        uint8_t *y = to + (to_plain ? plain : formed) * (int64_t)element_size;
        const uint8_t *x = from + (to_plain ? formed : plain) * (int64_t)element_size;

        if (to_plain)
            copy_line(y, loops.step[last], x, 1, line, element_size);
        else
            copy_line(y, 1, x, loops.step[last], line, element_size);
        for (int k = last - 1; k >= 0; k--) {
            plain += loops.step[k];
            if (++index[k] < loops.extent[k])
                break;
            plain -= loops.extent[k] * loops.step[k];
            index[k] = 0;
        }
    }
}

void ot__layout_convert(void *to, const ot_layout *to_layout, const void *from,
                        const ot_layout *from_layout, const ot_shape *shape, size_t element_size)
{
    int64_t index[OT_MAX_NDIM] = {0}, count;

    if (!ot__shape_count(shape, &count) || count == 0)
        return;
    if (ot__layout_equal(to_layout, from_layout)) {
        memcpy(to, from, (size_t)count * element_size);
        return;
    }
    if (to_layout == NULL || from_layout == NULL) {
        convert_plain(to, from, to_layout == NULL, to_layout == NULL ? from_layout : to_layout,
                      shape, element_size);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy((uint8_t *)to + (size_t)ot__layout_offset(to_layout, shape, index) * element_size,
               (const uint8_t *)from +
                   (size_t)ot__layout_offset(from_layout, shape, index) * element_size,
               element_size);
        for (int k = shape->ndim - 1; k >= 0 && ++index[k] == shape->dim[k]; k--)
            index[k] = 0;
    }
}

// Indices of axis 0 that lie in one piece of memory in the layout and in row-major memory.
static int64_t rows_of_part(const ot_layout *layout, const ot_shape *shape)
{
    return layout->order[0] == 0 ? block_of(layout, 0) : shape->dim[0];
}

size_t ot__layout_part_bytes(const ot_layout *layout, const ot_shape *shape, size_t element_size)
{
    ot_shape part = *shape;
    int64_t count;

    part.dim[0] = rows_of_part(layout, shape);
    return ot__shape_count(&part, &count) ? (size_t)count * element_size : 0;
}

void ot__layout_convert_in_place(void *data, const ot_layout *to_layout,
                                 const ot_layout *from_layout, const ot_shape *shape,
                                 size_t element_size, void *buffer)
{
    const ot_layout *layout = to_layout == NULL ? from_layout : to_layout;
    ot_shape part = *shape;
    uint8_t *at = data;
    size_t n_bytes;

    assert(to_layout == NULL || from_layout == NULL);
    n_bytes = layout == NULL ? 0 : ot__layout_part_bytes(layout, shape, element_size);
    if (n_bytes == 0)
        return;
    part.dim[0] = rows_of_part(layout, shape);
    for (int64_t i = 0; i < shape->dim[0]; i += part.dim[0], at += n_bytes) {
        memcpy(buffer, at, n_bytes);
        ot__layout_convert(at, to_layout, buffer, from_layout, &part, element_size);
    }
}
