// SPDX-License-Identifier: Apache-2.0
// Gradients of the weights of a depthwise convolution, shared out among threads.
#include "kernels/kernels.h"

// Positions of a row of dy at once; what is shared out, about; floats of x that are copied at once,
// at most.
enum { OUTPUTS = 64, ITEMS = 32, SEGMENT = 1 << 14 };

// Sums of all chunks take no more than the images, unless there is one chunk.
static bool plan_items(ot__depthwise *d, const ot__depthwise_kernel *kernel)
{
    const int64_t n_taps = d->kernel[0] * d->kernel[1];
    const double images = (double)d->batch * ((double)d->in[0] * (double)d->in[1] +
                                              (double)d->out[0] * (double)d->out[1]);
    const double most = OT_MAX(images / (double)n_taps, 1);
    int64_t segment;

    d->lanes = kernel->lanes;
    d->outputs = OT_MIN(d->out[1], (int64_t)OUTPUTS);
    segment =
        ((d->outputs - 1) * d->stride[1] + (d->kernel[1] - 1) * d->dilation[1] + 1) * d->lanes;
    d->n_blocks = (d->channels + d->lanes - 1) / d->lanes;
    d->n_chunks = OT_MIN(d->batch, (ITEMS + d->n_blocks - 1) / d->n_blocks);
    d->n_chunks = (int64_t)OT_MIN((double)d->n_chunks, most);
    d->item_floats = (n_taps + 1) * d->lanes + segment;
    d->scratch_bytes = (size_t)(d->n_chunks * d->n_blocks * d->item_floats) * sizeof(float);
    return d->channels >= d->lanes && segment <= SEGMENT;
}

static bool find_images(ot__depthwise_images *out, const ot_shape *shape, const ot_layout *layout,
                        int64_t lanes)
{
    const int64_t channels = shape->dim[1], width = shape->dim[shape->ndim - 1];
    const int64_t positions = width * (shape->ndim > 3 ? shape->dim[2] : 1);

    if (layout == NULL)
        return false;
    if (ot__layout_is_channels_last(layout))
        *out = (ot__depthwise_images){.block = lanes, .position = channels};
    else if (ot__layout_channel_block(layout) == lanes)
        *out = (ot__depthwise_images){.block = positions * lanes, .position = lanes};
    else
        return false;
    out->image = positions * channels;
    out->row = width * out->position;
    return true;
}

bool ot__depthwise_make(ot__depthwise *d, const ot__dnnl_conv *c,
                        const ot__depthwise_kernel *kernel)
{
    const int n_axes = c->x->ndim - 2;

    *d = (ot__depthwise){.batch = c->x->dim[0],
                         .channels = c->x->dim[1],
                         .in = {1},
                         .out = {1},
                         .kernel = {1},
                         .stride = {1},
                         .dilation = {1}};
    if (c->type != OT_F32 || n_axes < 1 || n_axes > 2 || !ot__dnnl_conv_is_depthwise(c) ||
        c->w_layout != NULL || !find_images(&d->x, c->x, c->x_layout, kernel->lanes) ||
        !find_images(&d->dy, c->y, c->y_layout, kernel->lanes))
        return false;
    for (int a = 0, to = 2 - n_axes; a < n_axes; a++, to++) {
        d->in[to] = c->x->dim[2 + a];
        d->out[to] = c->y->dim[2 + a];
        d->kernel[to] = c->w->dim[2 + a];
        d->stride[to] = c->strides[a];
        d->dilation[to] = c->dilations[a];
        d->pad[to] = c->pads[a];
    }
    return plan_items(d, kernel);
}

// The last block begins before the end of the one before it, so that it is whole.
static int64_t first_channel(const ot__depthwise *d, int64_t block)
{
    return OT_MIN(block * d->lanes, d->channels - d->lanes);
}

typedef struct depthwise_job {
    const ot__depthwise *d;
    const ot__depthwise_kernel *kernel;
    const float *x, *dy;
    float *dw, *db, *scratch;
} depthwise_job;

// A chunk of the images for a block of channels.
static void sum_items(void *context, int64_t first, int64_t last)
{
    const depthwise_job *j = context;
    const ot__depthwise *d = j->d;

    for (int64_t item = first; item < last; item++) {
        const int64_t chunk = item % d->n_chunks, c = first_channel(d, item / d->n_chunks);
        const int64_t image = d->batch * chunk / d->n_chunks;
        const int64_t end = d->batch * (chunk + 1) / d->n_chunks;

        j->kernel->sum(d, j->x + image * d->x.image + c / d->lanes * d->x.block + c % d->lanes,
                       j->dy + image * d->dy.image + c / d->lanes * d->dy.block + c % d->lanes,
                       end - image, j->db != NULL, j->scratch + item * d->item_floats);
    }
}

static float sum_of_chunks(const depthwise_job *j, int64_t block, int64_t at)
{
    const ot__depthwise *d = j->d;
    const float *items = j->scratch + block * d->n_chunks * d->item_floats;
    float sum = 0;

    for (int64_t chunk = 0; chunk < d->n_chunks; chunk++)
        sum += items[chunk * d->item_floats + at];
    return sum;
}

void ot__depthwise_run(const ot__depthwise *d, const ot__depthwise_kernel *kernel, const float *x,
                       const float *dy, float *dw, float *db, float *scratch)
{
    const int64_t n_taps = d->kernel[0] * d->kernel[1];
    depthwise_job j = {d, kernel, x, dy, dw, db, scratch};

    ot__parallel_for(d->n_blocks * d->n_chunks, 1, sum_items, &j);
    for (int64_t c = 0; c < d->channels; c++) {
        const int64_t block = c / d->lanes, lane = c - first_channel(d, block);

        for (int64_t k = 0; dw != NULL && k < n_taps; k++)
            dw[c * n_taps + k] = sum_of_chunks(&j, block, k * d->lanes + lane);
        if (db != NULL)
            db[c] = sum_of_chunks(&j, block, n_taps * d->lanes + lane);
    }
}
