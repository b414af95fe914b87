// SPDX-License-Identifier: Apache-2.0
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"

static void div_grad_op_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, 0);
    ot_shape y;

    if (!ot_infer_broadcast(c, ot_infer_shape(c, 1), ot_infer_shape(c, 2), &y))
        return;
    if (!ot__shape_may_equal(dy, &y))
        ot_infer_fail(c, "dY has not the shape to which A and B broadcast");
    for (int i = 0; i < 2; i++)
        ot_infer_set(c, i, ot_infer_dtype(c, 0), ot_infer_shape(c, i + 1));
}

static ot_status div_grad_op_prepare(ot_prep *p)
{
    ot__div_grad *s = ot_prep_state(p, sizeof(*s));
    const ot_arg *dy = ot_prep_in(p, 0), *a = ot_prep_in(p, 1), *b = ot_prep_in(p, 2);

    OT_TRY(p->status);
    s->ndim = dy->shape.ndim;
    for (int k = 0; k < s->ndim; k++)
        s->dim[k] = dy->shape.dim[k];
    ot__broadcast_strides(&a->shape, &dy->shape, s->a_stride);
    ot__broadcast_strides(&b->shape, &dy->shape, s->b_stride);
    s->count = dy->count;
    s->a_count = a->count;
    s->b_count = b->count;
    ot_prep_scratch(p, (size_t)(a->count + b->count) * sizeof(double));
    return OT_OK;
}

static ot_status div_grad_op_run(const ot_run *r)
{
    ot__div_grad p = *(const ot__div_grad *)r->state;
    ot_arg *da = r->out[0], *db = r->n_out > 1 ? r->out[1] : NULL;

    if (da != NULL)
        p.da_sum = r->scratch;
    if (db != NULL)
        p.db_sum = p.a_count > 0 ? (double *)r->scratch + p.a_count : r->scratch;
    ot__ref_div_grad(da == NULL ? NULL : da->data, db == NULL ? NULL : db->data, r->in[0]->data,
                     r->in[1]->data, r->in[2]->data, &p, r->in[0]->dtype);
    return OT_OK;
}

// ---- one divisor a row, as in a normalisation ----

// B has the first axes of dY, then none or ones, and A has all.
static bool div_grad_can_rows(const ot_prep *p)
{
    const ot_shape *dy = &ot_prep_in(p, 0)->shape, *b = &ot_prep_in(p, 2)->shape;
    const ot_shape *a = &ot_prep_in(p, 1)->shape;
    int axis = 0;

    if (a->ndim != dy->ndim || b->ndim != dy->ndim || ot_prep_in(p, 2)->count == 0 ||
        ot_prep_in(p, 1)->count != ot_prep_in(p, 0)->count)
        return ot_prep_declines(p, "A is broadcast, or B has other axes");
    while (axis < dy->ndim && b->dim[axis] == dy->dim[axis])
        axis++;
    while (axis < dy->ndim && b->dim[axis] == 1)
        axis++;
    return axis == dy->ndim || ot_prep_declines(p, "B does not have one divisor a row");
}

static void div_grad_piece(const void *context, float *const *at, int64_t first, int64_t n)
{
    const int64_t *columns = context;

    (void)first;
    ot__div_grad_rows(at[0], at[1], at[2], at[3], at[4], n, *columns);
}

static ot__float_rows div_grad_rows_of(const int64_t *columns, const ot_arg *da, const ot_arg *db,
                                       const ot_arg *const *in)
{
    ot__float_rows rows = {.rows = in[2]->count,
                           .grain = OT_PAR_MIN / OT_MAX(*columns, 1) + 1,
                           .run = div_grad_piece,
                           .context = columns};

    if (da != NULL)
        rows.port[0] = (ot__float_port){da->data, da->dtype, *columns, true};
    if (db != NULL)
        rows.port[1] = (ot__float_port){db->data, db->dtype, 1, true};
    for (int i = 0; i < 3; i++)
        rows.port[2 + i] =
            (ot__float_port){in[i]->data, in[i]->dtype, i == 2 ? 1 : *columns, false};
    return rows;
}

static ot_status div_grad_prepare_rows(ot_prep *p)
{
    int64_t *columns = ot_prep_state(p, sizeof *columns);
    const ot_arg *in[3] = {ot_prep_in(p, 0), ot_prep_in(p, 1), ot_prep_in(p, 2)};
    ot__float_rows rows;

    OT_TRY(ot__made(columns));
    *columns = in[0]->count / in[2]->count;
    rows = div_grad_rows_of(columns, ot_prep_out(p, 0), ot_prep_out(p, 1), in);
    ot_prep_scratch(p, ot__float_rows_bytes(&rows, ot_prep_threads(p)));
    return OT_OK;
}

static ot_status div_grad_run_rows(const ot_run *r)
{
    const ot__float_rows rows =
        div_grad_rows_of(r->state, r->out[0], r->n_out > 1 ? r->out[1] : NULL, r->in);

    ot__float_rows_run(&rows, r->scratch, r->n_threads);
    return OT_OK;
}

// dA = dC / B and dB = -dC * A / B^2
static void div_grad_expand(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, 1), *b = ot_grad_x(g, 2), *da = NULL, *db = NULL;
    ot_value *share = ot_emit2(g, "Div", ot_grad_x(g, 0), b);

    if (ot_expand_wants(g, 0))
        da = ot_emit_sum_to(g, share, a);
    if (ot_expand_wants(g, 1))
        db = ot_emit_sum_to(
            g, ot_emit1(g, "Neg", ot_emit2(g, "Mul", share, ot_emit2(g, "Div", a, b))), b);
    ot_expand_set(g, 0, da);
    ot_expand_set(g, 1, db);
}

static const ot_port div_grad_in[] = {{"dY", "T", 0}, {"A", "T", 0}, {"B", "T", 0}, {0}};
static const ot_port div_grad_out[] = {
    {"dA", "T", OT_PORT_OPTIONAL}, {"dB", "T", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel div_grad_kernels[] = {
    {.name = "rows",
     .types = "T: f32 f16 bf16",
     .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED,
     .can_run = div_grad_can_rows,
     .prepare = div_grad_prepare_rows,
     .run = div_grad_run_rows},
    OT__REF_KERNEL(NULL, div_grad_op_prepare, div_grad_op_run),
    {0},
};
const ot_op_def ot__op_div_grad[] = {
    {.domain = "com.microsoft",
     .name = "DivGrad",
     .since = 1,
     .inputs = div_grad_in,
     .outputs = div_grad_out,
     .types = "T: f32 f64",
     .infer = div_grad_op_infer,
     .kernels = div_grad_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = div_grad_expand},
    {0},
};
