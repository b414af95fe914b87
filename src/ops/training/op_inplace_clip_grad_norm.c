// SPDX-License-Identifier: Apache-2.0
// Scales all gradients together: g *= min(max_norm / (norm + 1e-6), 1), norm over all of them.
#include "ops/optimizer/optimizer.h"

#include <math.h>
#include <string.h>

enum { MAX_NORM }; // ot__pieces.numbers
static const double norm_epsilon = 1e-6;

static void clip_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (strcmp(ot_attr_string(node, "norm_type"), "fro") != 0)
        ot_infer_fail(c, "norm_type is '%s', expected fro", ot_attr_string(node, "norm_type"));
    else if (!(ot_attr_float(node, "max_norm") > 0.0f))
        ot_infer_fail(c, "max_norm is %g, expected more than 0",
                      (double)ot_attr_float(node, "max_norm"));
    else
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
}

static ot_status clip_prepare(ot_prep *p)
{
    ot__pieces *pieces = ot__pieces_make(p, 0, 0);

    if (!pieces)
        return p->status;
    pieces->numbers[MAX_NORM] = (double)ot_attr_float(ot_prep_node(p), "max_norm");
    ot_prep_scratch(p, (size_t)pieces->n_pieces * sizeof(double));
    return OT_OK;
}

// One sum a piece, added up in order: the same bits for any number of threads.
static ot_status clip_run(const ot_run *r)
{
    const ot__pieces *pieces = r->state;
    const bool is_f32 = r->n_in > 0 && r->in[0]->dtype == OT_F32;
    double *sums = r->scratch, total = 0, factor;

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        const void *g = ot__piece_data(r, 0, &pieces->piece[i]);
        sums[i] = is_f32 ? ot__ref_square_sum_f32(g, pieces->piece[i].count)
                         : ot__ref_square_sum_f64(g, pieces->piece[i].count);
    }
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        total += sums[i];
    factor = pieces->numbers[MAX_NORM] / (sqrt(total) + norm_epsilon);
    if (factor >= 1)
        return OT_OK;
#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        void *g = ot__piece_data(r, 0, &pieces->piece[i]);
        if (is_f32)
            ot__ref_scale_f32(g, pieces->piece[i].count, factor);
        else
            ot__ref_scale_f64(g, pieces->piece[i].count, factor);
    }
    return OT_OK;
}

static const ot_port clip_in[] = {
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, {0}};
static const ot_port clip_out[] = {
    {"clipped_gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, {0}};
static const ot_attr_spec clip_attrs[] = {
    {.name = "max_norm", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.0f},
    {.name = "norm_type", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "fro"},
    {0},
};
static const ot_kernel clip_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = clip_prepare,
     .run = clip_run},
    {0},
};
const ot_op_def ot__op_inplace_clip_grad_norm[] = {
    {.domain = "com.microsoft",
     .name = "InplaceClipGradNorm",
     .since = 1,
     .inputs = clip_in,
     .outputs = clip_out,
     .attrs = clip_attrs,
     .types = "T: f32 f64",
     .infer = clip_infer,
     .kernels = clip_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
