// SPDX-License-Identifier: Apache-2.0
// Y = f(X) and Slope = f'(X), of an activation f: what its gradient multiplies dY by. Made by
// passes/fuse_slope.c.
#include "ops/elementwise/elementwise.h"

#include <string.h>

typedef struct slope_row {
    const char *activation; // of com.microsoft
    ot__slope_tile_f32 *f32;
    ot__slope_tile_f64 *f64;
} slope_row;

static const slope_row slope_rows[] = {
    {"Gelu", ot__simd_gelu_slope_f32, ot__ref_gelu_slope_f64},
    {"FastGelu", ot__simd_fast_gelu_slope_f32, ot__ref_fast_gelu_slope_f64},
    {"QuickGelu", ot__simd_quick_gelu_slope_f32, ot__ref_quick_gelu_slope_f64},
};

static const slope_row *find_slope_row(const ot_node *node)
{
    for (size_t k = 0; k < OT_COUNT(slope_rows); k++)
        if (strcmp(slope_rows[k].activation, ot_attr_string(node, "activation")) == 0)
            return &slope_rows[k];
    return NULL;
}

static void activation_slope_infer(ot_infer *c)
{
    if (find_slope_row(ot_infer_node(c)) == NULL)
        ot_infer_fail(c, "activation '%.40s' has no slope",
                      ot_attr_string(ot_infer_node(c), "activation"));
    ot__infer_same_shape(c);
    ot_infer_set(c, 1, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

// ---- kernels ----

typedef struct slope_state {
    const slope_row *row;
    float alpha;
} slope_state;

static ot_status activation_slope_prepare(ot_prep *p)
{
    slope_state *s = ot_prep_state(p, sizeof *s);

    OT_TRY(p->status);
    s->row = find_slope_row(p->node);
    s->alpha = ot_attr_float(p->node, "alpha");
    return OT_OK;
}

// Elements first .. last - 1 of the node at `r`.
static void slopes_f32(const ot_run *r, int64_t first, int64_t last)
{
    const slope_state *s = r->state;

    s->row->f32((float *)r->out[0]->data + first, (float *)r->out[1]->data + first,
                (const float *)r->in[0]->data + first, last - first, &s->alpha);
}

static void slopes_f64(const ot_run *r, int64_t first, int64_t last)
{
    const slope_state *s = r->state;

    s->row->f64((double *)r->out[0]->data + first, (double *)r->out[1]->data + first,
                (const double *)r->in[0]->data + first, last - first, &s->alpha);
}

static void slopes_f32_ref(const ot_run *r, int64_t first, int64_t last)
{
    const slope_state *s = r->state;
    const float *x = r->in[0]->data;
    float *y = r->out[0]->data, *slope = r->out[1]->data;

    for (int64_t k = first; k < last; k++) {
        const double wide = (double)x[k];
        double y_wide, slope_wide;

        s->row->f64(&y_wide, &slope_wide, &wide, 1, &s->alpha);
        y[k] = (float)y_wide;
        slope[k] = (float)slope_wide;
    }
}

typedef struct slope_job {
    const ot_run *r;
    void (*range)(const ot_run *r, int64_t first, int64_t last);
} slope_job;

// Pieces begin at the same elements for any number of threads: the end of a loop may round in
// another way than the rest of it.
enum { SLOPE_PIECE = OT__PIECE_BYTES / sizeof(float) };

static void run_slope_pieces(void *context, int64_t first, int64_t last)
{
    const slope_job *j = context;

    j->range(j->r, first * SLOPE_PIECE, OT_MIN(last * SLOPE_PIECE, j->r->out[0]->count));
}

static ot_status run_slopes(const ot_run *r,
                            void (*range)(const ot_run *r, int64_t first, int64_t last))
{
    slope_job j = {r, range};

    ot__parallel_for((r->out[0]->count + SLOPE_PIECE - 1) / SLOPE_PIECE, OT_PAR_MIN / SLOPE_PIECE,
                     run_slope_pieces, &j);
    return OT_OK;
}

static ot_status activation_slope_run(const ot_run *r)
{
    return run_slopes(r, slopes_f32);
}

static ot_status activation_slope_run_f32(const ot_run *r)
{
    return run_slopes(r, slopes_f32_ref);
}

static ot_status activation_slope_run_f64(const ot_run *r)
{
    return run_slopes(r, slopes_f64);
}

static const ot_port activation_slope_out[] = {{"Y", "T", 0}, {"Slope", "T", 0}, {0}};
static const ot_attr_spec activation_slope_attrs[] = {
    OT__STRING_ATTR("activation", ""), OT__FLOAT_ATTR("alpha", 1.702F), {0}};
static const ot_kernel activation_slope_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, activation_slope_prepare, activation_slope_run),
    OT__REF_KERNEL("T: f32", activation_slope_prepare, activation_slope_run_f32),
    OT__REF_KERNEL("T: f64", activation_slope_prepare, activation_slope_run_f64),
    {0},
};
const ot_op_def ot__op_activation_slope[] = {
    {.domain = "ai.onnxtrain",
     .name = "ActivationSlope",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = activation_slope_out,
     .attrs = activation_slope_attrs,
     .types = "T: f32 f64",
     .infer = activation_slope_infer,
     .kernels = activation_slope_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL | OT_OP_ANY_LAYOUT},
    {0},
};
