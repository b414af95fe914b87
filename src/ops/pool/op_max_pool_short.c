// SPDX-License-Identifier: Apache-2.0
// MaxPool whose indices take as little memory as the window allows: a byte, the number of the cell
// in the window, or an i32, the position in the plane. Made of MaxPool by passes/fuse_pool.c.
#include "ops/pool/pool.h"

static void max_pool_short_infer(ot_infer *c)
{
    const int64_t *kernel;
    int64_t n_cells = 1;
    ot_shape y;
    int n;

    if (!ot__pool_infer(c, &y))
        return;
    kernel = ot_attr_ints(ot_infer_node(c), "kernel_shape", &n);
    for (int a = 0; a < n && n_cells <= OT__NO_CELL; a++)
        n_cells = kernel[a] > OT__NO_CELL ? kernel[a] : n_cells * kernel[a];
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
    ot_infer_set(c, 1, n_cells <= OT__NO_CELL ? OT_U8 : OT_I32, &y);
}

// Scratch for indices as MaxPool has them.
static ot_status max_pool_short_prepare(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)ot_prep_out(p, 0)->count * sizeof(int64_t));
    return ot__pool_prepare(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

static ot_status max_pool_short_run(const ot_run *r)
{
    const ot__pool *p = r->state;
    const ot__maxima at = ot__pool_maxima(r->out[1]);

    if (r->in[0]->dtype == OT_F32)
        ot__ref_max_pool_f32(r->out[0]->data, r->scratch, r->in[0]->data, p);
    else
        ot__ref_max_pool_f64(r->out[0]->data, r->scratch, r->in[0]->data, p);
    ot__ref_max_pool_shorten(at.cells, at.positions, r->scratch, p);
    return OT_OK;
}

static const ot_port max_pool_short_out[] = {{"Y", "T", 0}, {"Maxima", "M", 0}, {0}};
static const ot_kernel max_pool_short_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__max_pool_can_simd,
     .forms = ot__max_pool_forms,
     .prepare = ot__max_pool_prepare_simd,
     .run = ot__max_pool_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = max_pool_short_prepare,
     .run = max_pool_short_run},
    {0},
};
const ot_op_def ot__op_max_pool_short[] = {
    {.domain = "ai.onnxtrain",
     .name = "MaxPoolShort",
     .since = 1,
     .inputs = ot__pool_in,
     .outputs = max_pool_short_out,
     .attrs = ot__pool_attrs,
     .types = "T: f32 f64; M: u8 i32",
     .infer = max_pool_short_infer,
     .kernels = max_pool_short_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
