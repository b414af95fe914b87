// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

// Shape arithmetic: both branches known, the condition too.
static void where_known(ot_infer *c)
{
    int n[3];
    const int64_t *condition = ot_infer_values(c, 0, &n[0]);
    const int64_t *a = ot_infer_values(c, 1, &n[1]), *b = ot_infer_values(c, 2, &n[2]);
    const int count = OT_MAX(n[0], OT_MAX(n[1], n[2]));
    int64_t known[OT_MAX_KNOWN];

    if (condition == NULL || a == NULL || b == NULL || count > OT_MAX_KNOWN)
        return;
    for (int i = 0; i < 3; i++)
        if (ot_infer_shape(c, i)->ndim > 1 || (n[i] != count && n[i] != 1))
            return;
    for (int k = 0; k < count; k++) {
        const int64_t which = condition[n[0] == 1 ? 0 : k];
        const int64_t av = a[n[1] == 1 ? 0 : k], bv = b[n[2] == 1 ? 0 : k];

        known[k] = which == 0 ? bv : which == 1 ? av : av == bv ? av : OT_DIM_UNKNOWN;
    }
    ot_infer_set_values(c, 0, known, count);
}

static void where_infer(ot_infer *c)
{
    ot_shape branches, y;

    if (!ot_infer_broadcast(c, ot_infer_shape(c, 1), ot_infer_shape(c, 2), &branches) ||
        !ot_infer_broadcast(c, &branches, ot_infer_shape(c, 0), &y))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 1), &y);
    where_known(c);
}

static void where_piece(void *y, const void *const *x, int64_t n, const void *context)
{
    ot__ref_where(y, x[0], x[1], x[2], n, *(const size_t *)context);
}

static void where_piece_f32(void *y, const void *const *x, int64_t n, const void *context)
{
    (void)context;
    ot__tiles_best()->where(y, x[0], x[1], x[2], n);
}

// ---- f16 and bf16: chosen as they are, where a condition is given for each element ----

typedef struct where_narrow {
    uint16_t *y;
    const uint8_t *condition;
    const uint16_t *from[2]; // NULL: `single`
    uint16_t single[2];
} where_narrow;

static bool where_chooses_narrow(const ot_run *r)
{
    const ot_arg *y = r->out[0];

    if (!ot__dtype_is_narrow(y->dtype) || r->in[0]->count != y->count)
        return false;
    for (int i = 1; i <= 2; i++)
        if (r->in[i]->count != 1 && (r->in[i]->count != y->count || r->in[i]->dtype != y->dtype))
            return false;
    return true;
}

static void where_narrow_range(void *context, int64_t first, int64_t last)
{
    enum { FEW = 512 };
    const where_narrow *w = context;
    uint16_t single[2][FEW];

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < FEW; k++)
            single[i][k] = w->single[i];
    for (int64_t at = first; at < last; at += FEW)
        ot__tiles_best()->where_16(
            w->y + at, w->condition + at, w->from[0] != NULL ? w->from[0] + at : single[0],
            w->from[1] != NULL ? w->from[1] + at : single[1], OT_MIN(last - at, (int64_t)FEW));
}

static ot_status where_run_narrow(const ot_run *r)
{
    where_narrow w = {.y = r->out[0]->data, .condition = r->in[0]->data};

    for (int i = 0; i < 2; i++) {
        const ot_arg *x = r->in[1 + i];

        if (x->count == r->out[0]->count && x->dtype == r->out[0]->dtype)
            w.from[i] = x->data;
        else
            (void)ot__convert(&w.single[i], r->out[0]->dtype, x->data, x->dtype, 1);
    }
    ot__parallel_for(r->out[0]->count, OT_PAR_MIN, where_narrow_range, &w);
    return OT_OK;
}

static ot_status where_run_simd(const ot_run *r)
{
    if (where_chooses_narrow(r))
        return where_run_narrow(r);
    ot__pieces_run(r, where_piece_f32, NULL);
    return OT_OK;
}

static ot_status where_run(const ot_run *r)
{
    const size_t size = ot__element_size(r->out[0]->dtype);

    ot__pieces_run(r, where_piece, &size);
    return OT_OK;
}

// Y = C ? A : B:  dA = C ? dY : 0 and dB = C ? 0 : dY, each summed over the axes that were
// broadcast.
static void where_grad(ot_grad *g)
{
    ot_value *c = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0), *zero = ot_emit_constant(g, 0.0, dy);

    if (ot_grad_wants(g, 1))
        ot_grad_set_dx(g, 1, ot_emit_sum_to(g, ot_emit3(g, "Where", c, dy, zero), ot_grad_x(g, 1)));
    if (ot_grad_wants(g, 2))
        ot_grad_set_dx(g, 2, ot_emit_sum_to(g, ot_emit3(g, "Where", c, zero, dy), ot_grad_x(g, 2)));
}

static const ot_port where_in[] = {
    {"condition", "bool", OT_PORT_NO_GRAD}, {"X", "T", 0}, {"Y", "T", 0}, {0}};
static const ot_kernel where_kernels[] = {
    OT__SIMD_FLOATS_KERNEL(NULL, ot__pieces_prepare_f32, where_run_simd),
    OT__REF_KERNEL(NULL, ot__pieces_prepare, where_run),
    {0},
};
const ot_op_def ot__op_where[] = {
    {.name = "Where",
     .since = 9,
     .inputs = where_in,
     .outputs = ot__output_out,
     .types = "T: any string",
     .infer = where_infer,
     .kernels = where_kernels,
     .grad = where_grad,
     .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},
    {0},
};
