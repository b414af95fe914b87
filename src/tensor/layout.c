// SPDX-License-Identifier: Apache-2.0
// How elements lie in memory.
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

enum { FIRST_NDIM = 3, N_NDIM = 3, CHANNELS = 1 };

static const ot_form channels_last[N_NDIM] = {
    {.ndim = 3, .order = {0, 2, 1}},
    {.ndim = 4, .order = {0, 2, 3, 1}},
    {.ndim = 5, .order = {0, 2, 3, 4, 1}},
};
static const ot_form blocked[2][N_NDIM] = {
    {{.ndim = 3, .order = {0, 1, 2}, .n_blocks = 1, .block = {{CHANNELS, 8}}},
     {.ndim = 4, .order = {0, 1, 2, 3}, .n_blocks = 1, .block = {{CHANNELS, 8}}},
     {.ndim = 5, .order = {0, 1, 2, 3, 4}, .n_blocks = 1, .block = {{CHANNELS, 8}}}},
    {{.ndim = 3, .order = {0, 1, 2}, .n_blocks = 1, .block = {{CHANNELS, 16}}},
     {.ndim = 4, .order = {0, 1, 2, 3}, .n_blocks = 1, .block = {{CHANNELS, 16}}},
     {.ndim = 5, .order = {0, 1, 2, 3, 4}, .n_blocks = 1, .block = {{CHANNELS, 16}}}},
};

const ot_form *ot__form_channels_last(int ndim)
{
    return ndim < FIRST_NDIM || ndim >= FIRST_NDIM + N_NDIM ? NULL
                                                            : &channels_last[ndim - FIRST_NDIM];
}

const ot_form *ot__form_blocked(int ndim, int block)
{
    if (ndim < FIRST_NDIM || ndim >= FIRST_NDIM + N_NDIM || (block != 8 && block != 16))
        return NULL;
    return &blocked[block == 16][ndim - FIRST_NDIM];
}

bool ot__form_is_channels_last(const ot_form *form)
{
    return form != NULL && ot__form_equal(form, ot__form_channels_last(form->ndim));
}

int ot__form_channel_block(const ot_form *form)
{
    return form != NULL && form->n_blocks == 1 && form->block[0].axis == CHANNELS
               ? form->block[0].size
               : 1;
}

bool ot__form_equal(const ot_form *a, const ot_form *b)
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
static int64_t block_of(const ot_form *form, int axis)
{
    int64_t size = 1;

    for (int k = 0; k < form->n_blocks; k++)
        if (form->block[k].axis == axis)
            size *= form->block[k].size;
    return size;
}

bool ot__form_fits(const ot_form *form, const ot_shape *shape)
{
    if (form == NULL)
        return true;
    if (form->ndim != shape->ndim)
        return false;
    for (int k = 0; k < form->ndim; k++)
        if (shape->dim[k] % block_of(form, k) != 0)
            return false;
    return true;
}

int64_t ot__form_offset(const ot_form *form, const ot_shape *shape, const int64_t *index)
{
    int64_t inside[OT_MAX_NDIM], offset = 0;

    if (form == NULL) {
        for (int k = 0; k < shape->ndim; k++)
            offset = offset * shape->dim[k] + index[k];
        return offset;
    }
    for (int k = 0; k < form->ndim; k++) {
        const int axis = form->order[k];

        inside[axis] = block_of(form, axis);
        offset = offset * (shape->dim[axis] / inside[axis]) + index[axis] / inside[axis];
    }
    for (int k = 0; k < form->n_blocks; k++) {
        const int axis = form->block[k].axis;

        inside[axis] /= form->block[k].size;
        offset = offset * form->block[k].size + index[axis] / inside[axis] % form->block[k].size;
    }
    return offset;
}

char *ot__form_text(const ot_form *form, char *text, size_t size)
{
    size_t at = 0;

    if (size == 0)
        return text;
    text[0] = '\0';
    for (int k = 0; form != NULL && k < form->ndim + form->n_blocks && at < size; k++) {
        const int b = k - form->ndim;
        const int n = b < 0 ? snprintf(text + at, size - at, "%d", form->order[k])
                            : snprintf(text + at, size - at, ":%dx%d", form->block[b].axis,
                                       form->block[b].size);

        at += n > 0 ? (size_t)n : 0;
    }
    return text;
}

// ---- from one form to another ----

// The loops over all elements in the order of `form`: extents, and steps in row-major memory.
typedef struct nest {
    int n;
    int64_t extent[OT_MAX_NDIM + OT_FORM_BLOCKS], step[OT_MAX_NDIM + OT_FORM_BLOCKS];
} nest;

static void make_nest(nest *loops, const ot_form *form, const ot_shape *shape)
{
    int64_t inside[OT_MAX_NDIM], strides[OT_MAX_NDIM];

    ot__shape_strides(shape, strides);
    loops->n = form->ndim + form->n_blocks;
    for (int k = 0; k < form->ndim; k++) {
        const int axis = form->order[k];

        inside[axis] = block_of(form, axis);
        loops->extent[k] = shape->dim[axis] / inside[axis];
        loops->step[k] = strides[axis] * inside[axis];
    }
    for (int k = 0; k < form->n_blocks; k++) {
        const int axis = form->block[k].axis;

        inside[axis] /= form->block[k].size;
        loops->extent[form->ndim + k] = form->block[k].size;
        loops->step[form->ndim + k] = strides[axis] * inside[axis];
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

// One of the two is row-major, the other in `form`.
static void convert_plain(uint8_t *to, const uint8_t *from, bool to_plain, const ot_form *form,
                          const ot_shape *shape, size_t element_size)
{
    int64_t index[OT_MAX_NDIM + OT_FORM_BLOCKS] = {0}, plain = 0, formed = 0, lines = 1, line;
    nest loops;
    int last;

    make_nest(&loops, form, shape);
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

static int64_t layout_count(const ot_shape *shape)
{
    int64_t count = 1;

    for (int k = 0; k < shape->ndim; k++)
        count *= shape->dim[k];
    return count;
}

void ot__form_convert(void *to, const ot_form *to_form, const void *from, const ot_form *from_form,
                      const ot_shape *shape, size_t element_size)
{
    const int64_t count = layout_count(shape);
    int64_t index[OT_MAX_NDIM] = {0};

    if (count == 0)
        return;
    if (ot__form_equal(to_form, from_form)) {
        memcpy(to, from, (size_t)count * element_size);
        return;
    }
    if (to_form == NULL || from_form == NULL) {
        convert_plain(to, from, to_form == NULL, to_form == NULL ? from_form : to_form, shape,
                      element_size);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy((uint8_t *)to + (size_t)ot__form_offset(to_form, shape, index) * element_size,
               (const uint8_t *)from +
                   (size_t)ot__form_offset(from_form, shape, index) * element_size,
               element_size);
        for (int k = shape->ndim - 1; k >= 0 && ++index[k] == shape->dim[k]; k--)
            index[k] = 0;
    }
}

// Indices of axis 0 that lie in one piece of memory in the form and in row-major memory.
static int64_t rows_of_part(const ot_form *form, const ot_shape *shape)
{
    return form->order[0] == 0 ? block_of(form, 0) : shape->dim[0];
}

size_t ot__form_part_bytes(const ot_form *form, const ot_shape *shape, size_t element_size)
{
    ot_shape part = *shape;

    part.dim[0] = rows_of_part(form, shape);
    return (size_t)layout_count(&part) * element_size;
}

void ot__form_convert_in_place(void *data, const ot_form *to_form, const ot_form *from_form,
                               const ot_shape *shape, size_t element_size, void *buffer)
{
    const ot_form *form = to_form == NULL ? from_form : to_form;
    ot_shape part = *shape;
    uint8_t *at = data;
    size_t n_bytes;

    assert(to_form == NULL || from_form == NULL);
    if (form == NULL || layout_count(shape) == 0)
        return;
    n_bytes = ot__form_part_bytes(form, shape, element_size);
    part.dim[0] = rows_of_part(form, shape);
    for (int64_t i = 0; i < shape->dim[0]; i += part.dim[0], at += n_bytes) {
        memcpy(buffer, at, n_bytes);
        ot__form_convert(at, to_form, buffer, from_form, &part, element_size);
    }
}
