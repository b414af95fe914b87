// SPDX-License-Identifier: Apache-2.0
// Det: determinants of square matrices, which are the last two axes; and its gradient.
#include "ops/move/move.h"

// Whether the last two axes of an input are square; false: the context has the error.
static bool infer_square(ot_infer *c, int input)
{
    const ot_shape *x = ot_infer_shape(c, input);

    if (x->ndim < 2)
        return ot__refuse(c, "X has %d axes, expected 2 or more", x->ndim);
    return !ot__dim_differs(x->dim[x->ndim - 2], x->dim[x->ndim - 1]) ||
           ot__refuse(c, "X has matrices of %" PRId64 " by %" PRId64 ", expected square ones",
                      x->dim[x->ndim - 2], x->dim[x->ndim - 1]);
}

static void det_infer(ot_infer *c)
{
    ot_shape y = *ot_infer_shape(c, 0);

    if (!infer_square(c, 0))
        return;
    y.ndim -= 2;
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void det_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0), *x = ot_infer_shape(c, 1);
    ot_shape batch = *x;

    if (!infer_square(c, 1))
        return;
    batch.ndim -= 2;
    if (!ot__shape_may_equal(&batch, dy))
        ot_infer_fail(c, "dY does not have the batch axes of X");
    ot_infer_set(c, 0, ot_infer_dtype(c, 1), x);
}

// ---- kernels ----

typedef struct det_state {
    int64_t batch, n;
    int n_parts;
} det_state;

static bool det_suits_lanes(const ot_prep *p, const ot_arg *x)
{
    enum { USED = 4 }; // one of so many lanes at least
    const int last = x->shape.ndim - 1;
    const int64_t n = x->shape.dim[last], batch = ot__dims_count(x->shape.dim, last - 1);

    if (n == 0 || batch < ot__dets_best()->lanes / USED)
        return ot_prep_declines(p, "there are few matrices");
    return n <= OT__DET_SIDE_MAX || ot_prep_declines(p, "matrices are large");
}

static bool det_can_simd(const ot_prep *p)
{
    return det_suits_lanes(p, ot_prep_in(p, 0));
}

static bool det_grad_can_simd(const ot_prep *p)
{
    return det_suits_lanes(p, ot_prep_in(p, 1));
}

// What a thread is worth, in multiplications of whole matrices: those of lanes take less time.
enum { REF_WORK = OT_PAR_MIN, SIMD_WORK = 4 * OT_PAR_MIN };

static int choose_det_parts(const det_state *s, int n_threads, int64_t work)
{
    const int64_t n = OT_MIN(s->n, 1000), least = work / OT_MAX(n * n * n, 1) + 1;

    return (int)OT_MAX(OT_MIN(s->batch / least, n_threads), 1);
}

static ot_status prep_det(ot_prep *p, const ot_arg *x, size_t (*bytes)(int64_t n, int n_parts),
                          int64_t work)
{
    const int last = x->shape.ndim - 1;
    det_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->n = x->shape.dim[last];
    state->batch = ot__dims_count(x->shape.dim, last - 1);
    state->n_parts = choose_det_parts(state, ot_prep_threads(p), work);
    if (state->batch > 0)
        ot_prep_scratch(p, bytes(state->n, state->n_parts));
    return OT_OK;
}

static ot_status det_prep(ot_prep *p)
{
    return prep_det(p, ot_prep_in(p, 0), ot__ref_det_bytes, REF_WORK);
}

static ot_status det_grad_prep(ot_prep *p)
{
    return prep_det(p, ot_prep_in(p, 1), ot__ref_det_bytes, REF_WORK);
}

static ot_status det_prep_simd(ot_prep *p)
{
    return prep_det(p, ot_prep_in(p, 0), ot__simd_det_bytes, SIMD_WORK);
}

static ot_status det_grad_prep_simd(ot_prep *p)
{
    return prep_det(p, ot_prep_in(p, 1), ot__simd_det_bytes, SIMD_WORK);
}

static ot_status det_run_simd(const ot_run *r)
{
    const det_state *s = r->state;

    if (s->batch > 0)
        ot__simd_det(r->out[0]->data, r->in[0]->data, s->batch, s->n, s->n_parts, r->scratch);
    return OT_OK;
}

static ot_status det_grad_run_simd(const ot_run *r)
{
    const det_state *s = r->state;

    if (s->batch > 0)
        ot__simd_det_grad(r->out[0]->data, r->in[0]->data, r->in[1]->data, s->batch, s->n,
                          s->n_parts, r->scratch);
    return OT_OK;
}

#define RUN(symbol, type)                                                                          \
    static ot_status det_run_##type(const ot_run *r)                                               \
    {                                                                                              \
        const det_state *s = r->state;                                                             \
                                                                                                   \
        if (s->batch > 0)                                                                          \
            ot__ref_det_##type(r->out[0]->data, r->in[0]->data, s->batch, s->n, s->n_parts,        \
                               r->scratch);                                                        \
        return OT_OK;                                                                              \
    }                                                                                              \
    static ot_status det_grad_run_##type(const ot_run *r)                                          \
    {                                                                                              \
        const det_state *s = r->state;                                                             \
                                                                                                   \
        if (r->out[0]->count > 0)                                                                  \
            ot__ref_det_grad_##type(r->out[0]->data, r->in[0]->data, r->in[1]->data, s->batch,     \
                                    s->n, s->n_parts, r->scratch);                                 \
        return OT_OK;                                                                              \
    }
OT_REDUCE_FLOATS(RUN, )

static void det_grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_emit2(g, "ai.onnxtrain.DetGrad", ot_grad_dy(g, 0), ot_grad_x(g, 0)));
}

static const ot_port det_grad_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {0}};
static const ot_kernel det_kernels[] = {
    OT__SIMD_KERNEL("T: f32", det_can_simd, det_prep_simd, det_run_simd),
    OT__REF_KERNELS(det_prep, det_run),
    {0}};
static const ot_kernel det_grad_kernels[] = {
    OT__SIMD_KERNEL("T: f32", det_grad_can_simd, det_grad_prep_simd, det_grad_run_simd),
    OT__REF_KERNELS(det_grad_prep, det_grad_run),
    {0}};
const ot_op_def ot__op_det[] = {
    {.name = "Det",
     .since = 11,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = det_infer,
     .kernels = det_kernels,
     .grad = det_grad},
    {0},
};
// ONNX has no inverse or solution of equations to say it in.
const ot_op_def ot__op_det_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "DetGrad",
     .since = 1,
     .inputs = det_grad_in,
     .outputs = ot__gradient_out,
     .types = "T: f32 f64",
     .infer = det_grad_infer,
     .kernels = det_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
