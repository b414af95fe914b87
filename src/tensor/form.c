// How elements lie in memory.
#include <stdio.h>

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
