// SPDX-License-Identifier: Apache-2.0
// Channels of images, in any layout.
#include "kernels/kernels.h"

bool ot__channels_of(const ot_shape *shape, const ot_layout *layout, ot__channels *c)
{
    const int block = ot__layout_channel_block(layout);

    if (shape->ndim < 2)
        return false;
    *c = (ot__channels){.outer = shape->dim[0], .blocks = shape->dim[1], .inner = 1, .width = 1};
    for (int k = 2; k < shape->ndim; k++)
        c->inner *= shape->dim[k];
    if (layout == NULL)
        return true;
    if (ot__layout_is_channels_last(layout)) {
        c->width = c->blocks;
        c->blocks = 1;
        return true;
    }
    c->width = block;
    c->blocks /= block;
    return ot__layout_equal(layout, ot__layout_blocked(shape->ndim, block));
}

size_t ot__norm_scratch_bytes(const ot__channels *c)
{
    enum { NUMBERS = 3 }; // per image and channel

    return (size_t)(c->outer * c->blocks * c->width) * NUMBERS * sizeof(double);
}
