// SPDX-License-Identifier: Apache-2.0
// MatMulInteger: Y = (A - a_zero_point) * (B - b_zero_point) of integers of 8 bits, in 32 bits, as
// numpy's matmul. QLinearMatMul: the same, scaled and rounded to 8 bits again. Zero points and
// scales are one for all, or one for each row of A and each column of B.
#include "ops/product/product.h"
#include "ops/quantize/integer.h"

// Inputs of an operator; -1: it has none.
typedef struct integer_ports {
    int a, b, a_scale, b_scale, a_zero, b_zero, y_scale, y_zero;
} integer_ports;

static const integer_ports plain_ports = {0, 1, -1, -1, 2, 3, -1, -1};
static const integer_ports scaled_ports = {0, 3, 1, 4, 2, 5, 6, 7};

static const integer_ports *ports_of(const ot_node *node)
{
    return ot__op_input_port(node->op, scaled_ports.y_zero) != NULL ? &scaled_ports : &plain_ports;
}

// ---- scales and zero points ----

bool ot__is_single_shape(const ot_shape *shape)
{
    for (int k = 0; k < shape->ndim; k++)
        if (shape->dim[k] != 1)
            return false;
    return true;
}

bool ot__infer_single(ot_infer *c, int i)
{
    return !ot_infer_has(c, i) || ot__infer_one_element(c, i);
}

ot__zero_points ot__zero_points_of(const ot_run *r, int i)
{
    if (i < 0 || ot__run_in(r, i) == NULL)
        return (ot__zero_points){0};
    return (ot__zero_points){r->in[i]->data, r->in[i]->count};
}

int64_t ot__quantized_scales(const ot_run *r, int i, float *to)
{
    (void)ot__convert(to, OT_F32, r->in[i]->data, r->in[i]->dtype, r->in[i]->count);
    return r->in[i]->count;
}

float ot__quantized_scale(const ot_run *r, int i)
{
    float scale = 0;

    (void)ot__convert(&scale, OT_F32, r->in[i]->data, r->in[i]->dtype, 1);
    return scale;
}

int ot__quantized_zero(const ot_run *r, int i)
{
    int32_t zero = 0;

    if (ot__run_in(r, i) != NULL)
        (void)ot__convert(&zero, OT_I32, r->in[i]->data, r->in[i]->dtype, 1);
    return zero;
}

size_t ot__scratch_place(size_t *end, int64_t count, size_t size)
{
    const size_t at = *end;

    *end += ((size_t)count * size + 63) / 64 * 64;
    return at;
}

// Whether the scales or zero points are one, one for each index of the axis of x that is not summed
// over, or one for each of all matrices.
static bool points_fit(const ot_shape *points, const ot_shape *x, bool is_left)
{
    const int summed = is_left ? x->ndim - 1 : x->ndim - 2, kept = 2 * x->ndim - 3 - summed;

    if (ot__is_single_shape(points))
        return true;
    if (x->ndim < 2)
        return false;
    if (points->ndim == 1)
        return !ot__dim_differs(points->dim[0], x->dim[kept]);
    if (points->ndim != x->ndim)
        return false;
    for (int k = 0; k < x->ndim; k++)
        if (ot__dim_differs(points->dim[k], k == summed ? 1 : x->dim[k]))
            return false;
    return true;
}

static bool check_quantized_points(ot_infer *c, int i, int of, bool is_left)
{
    if (i < 0 || !ot_infer_has(c, i) ||
        points_fit(ot_infer_shape(c, i), ot_infer_shape(c, of), is_left))
        return true;
    return ot__refuse(c, "input %d is neither one for all nor one for each %s of input %d", i,
                      is_left ? "row" : "column", of);
}

// ---- inference ----

static void integer_product_infer(ot_infer *c)
{
    const integer_ports *p = ports_of(ot_infer_node(c));
    const ot__product_operand a = {.shape = ot_infer_shape(c, p->a)},
                              b = {.shape = ot_infer_shape(c, p->b)};
    ot_shape y;

    if (!ot__product_shape(c, &a, &b, &y) || !check_quantized_points(c, p->a_zero, p->a, true) ||
        !check_quantized_points(c, p->b_zero, p->b, false) ||
        !check_quantized_points(c, p->a_scale, p->a, true) ||
        !check_quantized_points(c, p->b_scale, p->b, false) ||
        (p->y_scale >= 0 && (!ot__infer_single(c, p->y_scale) || !ot__infer_single(c, p->y_zero))))
        return;
    ot_infer_set(c, 0, p->y_zero >= 0 ? ot_infer_dtype(c, p->y_zero) : OT_I32, &y);
}

// ---- the kernel ----

// Scratch: B widened, then sums, then the scales of A and of B.
typedef struct integer_state {
    const integer_ports *ports;
    ot__product product;
    size_t sums_at, row_scales_at, column_scales_at;
} integer_state;

static ot_status check_prepared(ot_prep *p, int i, int of, bool is_left)
{
    const ot_arg *points = i < 0 ? NULL : ot_prep_in(p, i);

    if (points == NULL || points_fit(&points->shape, &ot_prep_in(p, of)->shape, is_left))
        return OT_OK;
    return ot_prep_fail(p, OT_ERR_INVALID,
                        "input %d is neither one for all nor one for each %s of input %d", i,
                        is_left ? "row" : "column", of);
}

static ot_status integer_product_prepare(ot_prep *p)
{
    const integer_ports *ports = ports_of(ot_prep_node(p));
    integer_state *s = ot_prep_state(p, sizeof *s);
    size_t end = 0;

    OT_TRY(ot__made(s));
    OT_TRY(check_prepared(p, ports->a_zero, ports->a, true));
    OT_TRY(check_prepared(p, ports->b_zero, ports->b, false));
    OT_TRY(check_prepared(p, ports->a_scale, ports->a, true));
    OT_TRY(check_prepared(p, ports->b_scale, ports->b, false));
    s->ports = ports;
    ot__product_plan(&s->product, &(ot__product_operand){.shape = &ot_prep_in(p, ports->a)->shape},
                     &(ot__product_operand){.shape = &ot_prep_in(p, ports->b)->shape}, 1);
    (void)ot__scratch_place(&end, s->product.gemm.k * s->product.gemm.n, sizeof(int16_t));
    if (ports->y_scale >= 0) {
        s->sums_at =
            ot__scratch_place(&end, s->product.gemm.m * s->product.gemm.n, sizeof(int32_t));
        s->row_scales_at =
            ot__scratch_place(&end, ot_prep_in(p, ports->a_scale)->count, sizeof(float));
        s->column_scales_at =
            ot__scratch_place(&end, ot_prep_in(p, ports->b_scale)->count, sizeof(float));
    }
    ot_prep_scratch(p, end);
    return OT_OK;
}

// Those of a matrix, of which `n` are for one matrix and `first` stands before it in all of them.
static ot__zero_points points_of_matrix(ot__zero_points all, int64_t first, int64_t n)
{
    if (all.count > 1 && n > 0 && all.count > n) {
        all.data = (const char *)all.data + first;
        all.count = n;
    }
    return all;
}

static int64_t first_point(int64_t elements, int64_t summed)
{
    return summed > 0 ? elements / summed : 0;
}

static void requantize_matrix(const ot_run *r, int64_t batch, int64_t first_row,
                              int64_t first_column)
{
    const integer_state *s = r->state;
    const ot__gemm *g = &s->product.gemm;
    const int64_t n_rows = r->in[s->ports->a_scale]->count,
                  n_columns = r->in[s->ports->b_scale]->count;
    const float *rows = (const float *)((const char *)r->scratch + s->row_scales_at);
    const float *columns = (const float *)((const char *)r->scratch + s->column_scales_at);
    const ot__requantization q = {
        .rows = g->m,
        .columns = g->n,
        .row_scale = n_rows > g->m ? rows + first_row : rows,
        .column_scale = n_columns > g->n ? columns + first_column : columns,
        .rows_differ = n_rows > 1 ? OT_MIN(n_rows, g->m) : 0,
        .columns_differ = n_columns > 1,
        .y_scale = ot__quantized_scale(r, s->ports->y_scale),
        .y_is_signed = r->out[0]->dtype == OT_I8,
        .y_zero = ot__quantized_zero(r, s->ports->y_zero),
    };

    ot__ref_requantize((char *)r->out[0]->data + batch * s->product.y_stride,
                       (const int32_t *)((const char *)r->scratch + s->sums_at), &q);
}

static ot_status integer_product_run(const ot_run *r)
{
    const integer_state *s = r->state;
    const integer_ports *ports = s->ports;
    const ot__gemm *g = &s->product.gemm;
    const ot_arg *a = r->in[ports->a], *b = r->in[ports->b];
    const ot__zero_points a_zero = ot__zero_points_of(r, ports->a_zero);
    const ot__zero_points b_zero = ot__zero_points_of(r, ports->b_zero);
    int64_t a_at, b_at, widened = -1;

    if (ports->y_scale >= 0) {
        (void)ot__quantized_scales(r, ports->a_scale,
                                   (float *)((char *)r->scratch + s->row_scales_at));
        (void)ot__quantized_scales(r, ports->b_scale,
                                   (float *)((char *)r->scratch + s->column_scales_at));
    }
    for (int64_t batch = 0; batch < s->product.n_batches; batch++) {
        ot__integer_product p = {.m = g->m, .n = g->n, .k = g->k, .b = r->scratch};
        int64_t first_row, first_column;
        int32_t *sums;

        ot__product_batch_at(&s->product, batch, &a_at, &b_at);
        first_row = first_point(a_at, g->k);
        first_column = first_point(b_at, g->k);
        if (widened != b_at) {
            const ot__zero_points zero = points_of_matrix(b_zero, first_column, g->n);

            ot__ref_integer_widen(r->scratch, (const char *)b->data + b_at, b->dtype == OT_I8,
                                  &zero, g->k, g->n);
            widened = b_at;
        }
        p.a = (const char *)a->data + a_at;
        p.a_is_signed = a->dtype == OT_I8;
        p.a_zero = points_of_matrix(a_zero, first_row, g->m);
        sums = ports->y_scale >= 0 ? (int32_t *)((char *)r->scratch + s->sums_at)
                                   : (int32_t *)r->out[0]->data + batch * s->product.y_stride;
        ot__ref_integer_product(sums, &p);
        if (ports->y_scale >= 0)
            requantize_matrix(r, batch, first_row, first_column);
    }
    return OT_OK;
}

// ---- records ----

static const ot_port matmul_integer_in[] = {
    {"A", "T1", 0},
    {"B", "T2", 0},
    {"a_zero_point", "T1", OT_PORT_OPTIONAL},
    {"b_zero_point", "T2", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port matmul_integer_out[] = {{"Y", "i32", 0}, {0}};
static const ot_port qlinear_matmul_in[] = {
    {"a", "T1", 0},       {"a_scale", "TS", 0},      {"a_zero_point", "T1", 0},
    {"b", "T2", 0},       {"b_scale", "TS", 0},      {"b_zero_point", "T2", 0},
    {"y_scale", "TS", 0}, {"y_zero_point", "T3", 0}, {0},
};
static const ot_port qlinear_matmul_out[] = {{"y", "T3", 0}, {0}};
static const ot_kernel integer_product_kernels[] = {
    OT__REF_KERNEL(NULL, integer_product_prepare, integer_product_run),
    {0},
};
const ot_op_def ot__op_matmul_integer[] = {
    {.name = "MatMulInteger",
     .since = 10,
     .inputs = matmul_integer_in,
     .outputs = matmul_integer_out,
     .types = "T1: i8 u8; T2: i8 u8",
     .infer = integer_product_infer,
     .kernels = integer_product_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
const ot_op_def ot__op_qlinear_matmul[] = {
    {.name = "QLinearMatMul",
     .since = 10,
     .inputs = qlinear_matmul_in,
     .outputs = qlinear_matmul_out,
     .types = "T1: i8 u8; T2: i8 u8; T3: i8 u8; TS: f32",
     .infer = integer_product_infer,
     .kernels = integer_product_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
