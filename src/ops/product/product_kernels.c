// SPDX-License-Identifier: Apache-2.0
// The kernels of all products: oneDNN's matmul where it is ahead, our own vector code, the
// references.
#include <string.h>

#include "ops/elementwise/elementwise.h"
#include "ops/product/product.h"

enum { A, B, C, Z }; // inputs; Z only of FusedGemm

// ---- reading the node ----

static const ot_arg *product_input(const ot_prep *p, int i)
{
    return i < ot_prep_input_count(p) ? ot_prep_in(p, i) : NULL;
}

// What is to be computed, by the attributes that the record has.
static void product_read(const ot_prep *p, ot__product *product)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *c = product_input(p, C);
    const ot_shape *y = &ot_prep_out(p, 0)->shape;
    const bool is_plain = node->op->attrs == NULL; // MatMul
    const ot__product_operand a = ot__product_operand_of(node, A, &ot_prep_in(p, A)->shape),
                              b = ot__product_operand_of(node, B, &ot_prep_in(p, B)->shape);
    int64_t strides[OT_MAX_NDIM];

    ot__product_plan(product, &a, &b, is_plain ? 1.0 : (double)ot_attr_float(node, "alpha"));
    (void)ot__product_activation(node, &product->tile, product->attrs); // inference has checked it
    if (c == NULL)
        return;
    product->gemm.beta = (double)ot_attr_float(node, "beta");
    ot__broadcast_strides(&c->shape, y, strides);
    product->gemm.c_row = strides[y->ndim - 2];
    product->gemm.c_column = strides[y->ndim - 1];
}

static ot_status product_prepare(ot_prep *p)
{
    ot__product *product = ot_prep_state(p, sizeof(*product));

    OT_TRY(ot__made(product));
    product_read(p, product);
    return OT_OK;
}

// ---- references ----

typedef void (*ref_gemm)(void *y, const void *a, const void *b, const void *c, const ot__gemm *g,
                         bool accumulates);

static void ref_gemm_f32(void *y, const void *a, const void *b, const void *c, const ot__gemm *g,
                         bool accumulates)
{
    ot__ref_gemm_f32(y, a, b, c, g, accumulates);
}

static void ref_gemm_f64(void *y, const void *a, const void *b, const void *c, const ot__gemm *g,
                         bool accumulates)
{
    ot__ref_gemm_f64(y, a, b, c, g, accumulates);
}

// The activation in f64 whatever the type, a few elements at a time.
static void activate_ref(const ot__product *p, const ot_arg *y, const void *z)
{
    enum { CHUNK = 64 };
    double value[CHUNK], other[CHUNK];
    const double *x[OT__TILE_INPUTS] = {value, z != NULL ? other : NULL};
    const size_t size = ot_dtype_size(y->dtype);

    for (int64_t at = 0; at < y->count; at += CHUNK) {
        const int64_t n = OT_MIN((int64_t)CHUNK, y->count - at);
        uint8_t *yk = (uint8_t *)y->data + (size_t)at * size;

        ot__convert(value, OT_F64, yk, y->dtype, n);
        if (z != NULL)
            ot__convert(other, OT_F64, (const uint8_t *)z + (size_t)at * size, y->dtype, n);
        p->tile->f64(value, x, n, p->attrs);
        ot__convert(yk, y->dtype, value, OT_F64, n);
    }
}

// An operand without elements has no matrices to go to.
static const uint8_t *matrix_at(const ot_arg *x, int64_t at, size_t size)
{
    const uint8_t *data = x->data;

    return x->count == 0 ? data : data + (size_t)at * size;
}

static ot_status product_run_ref(const ot_run *r, ref_gemm gemm, size_t size)
{
    const ot__product *p = r->state;
    const int64_t n_batches = r->out[0]->count == 0 ? 0 : p->n_batches;
    uint8_t *y = r->out[0]->data;

    for (int64_t batch = 0; batch < n_batches; batch++) {
        int64_t a_at, b_at;

        ot__product_batch_at(p, batch, &a_at, &b_at);
        gemm(y + (size_t)(batch * p->y_stride) * size, matrix_at(r->in[A], a_at, size),
             matrix_at(r->in[B], b_at, size), ot__run_in(r, C), &p->gemm, r->accumulates != 0);
    }
    if (p->tile != NULL)
        activate_ref(p, r->out[0], ot__run_in(r, Z));
    return OT_OK;
}

static ot_status product_run_ref_f32(const ot_run *r)
{
    return product_run_ref(r, ref_gemm_f32, sizeof(float));
}

static ot_status product_run_ref_f64(const ot_run *r)
{
    return product_run_ref(r, ref_gemm_f64, sizeof(double));
}

// ---- vector code ----

static bool product_can_simd(const ot_prep *p)
{
    const ot_arg *z = product_input(p, Z);

    return ot_prep_in(p, A)->count > 0 && ot_prep_in(p, B)->count > 0 &&
           (z == NULL || z->dtype == ot_prep_out(p, 0)->dtype);
}

static ot_status product_prepare_simd(ot_prep *p)
{
    const int n_threads = ot_prep_threads(p);
    ot__product *product;

    OT_TRY(product_prepare(p));
    product = p->state;
    product->gemm.a_type = ot_prep_in(p, A)->dtype;
    product->gemm.b_type = ot_prep_in(p, B)->dtype;
    product->gemm.c_type = product_input(p, C) != NULL ? product_input(p, C)->dtype : OT_F32;
    product->gemm.y_type = ot_prep_out(p, 0)->dtype;
    product->kernel = ot__gemm_kernel_best();
    ot__gemm_plan_make(&product->plan, product->kernel, &product->gemm, product->n_batches,
                       n_threads);
    ot_prep_scratch(p, product->plan.scratch_bytes * (size_t)n_threads);
    return OT_OK;
}

typedef struct batches {
    const ot__product *product;
    ot__gemm_data first; // of batch 0
} batches;

static void batch_data(const void *context, int64_t batch, ot__gemm_data *data)
{
    const batches *all = context;
    const ot__gemm *g = &all->product->gemm;
    const int64_t y = batch * all->product->y_stride;
    int64_t a, b;

    ot__product_batch_at(all->product, batch, &a, &b);
    *data = all->first;
    data->y = (uint8_t *)data->y + (size_t)y * ot_dtype_size(g->y_type);
    data->a = (const uint8_t *)data->a + (size_t)a * ot_dtype_size(g->a_type);
    data->b = (const uint8_t *)data->b + (size_t)b * ot_dtype_size(g->b_type);
    if (data->epilogue.other != NULL)
        data->epilogue.other =
            (const uint8_t *)data->epilogue.other + (size_t)y * ot_dtype_size(g->y_type);
}

static ot_status product_run_simd(const ot_run *r)
{
    const ot__product *p = r->state;
    batches all = {p,
                   {.y = r->out[0]->data,
                    .a = r->in[A]->data,
                    .b = r->in[B]->data,
                    .c = ot__run_in(r, C),
                    .accumulates = r->accumulates != 0}};

    if (p->tile != NULL)
        all.first.epilogue = (ot__epilogue){p->tile->f32, p->attrs, ot__run_in(r, Z)};
    ot__gemm_run(p->kernel, &p->plan,
                 &(ot__gemm_batches){.n_batches = p->n_batches, .at = batch_data, .context = &all},
                 r->scratch, r->n_threads);
    return OT_OK;
}

// ---- oneDNN ----

// Elements from one batch to the next, 0 where all share one; false where they do not lie evenly.
static bool even_stride(const ot__product *p, const int64_t *strides, int64_t *stride)
{
    int64_t inner = 1;

    *stride = 0;
    for (int i = p->n_batch_axes - 1; i >= 0; i--) {
        if (p->batch_dim[i] == 1)
            continue;
        if (inner == 1)
            *stride = strides[i];
        else if (strides[i] != *stride * inner)
            return false;
        inner *= p->batch_dim[i];
    }
    return true;
}

// Sum of the product and Z is their Add; in f32 our own code is as fast.
static ot__dnnl_gemm_after after_product(const char *activation, ot_dtype type)
{
    if (strcmp(activation, "Relu") == 0)
        return OT__DNNL_GEMM_RELU;
    if (strcmp(activation, "Mul") == 0)
        return OT__DNNL_GEMM_MULTIPLY;
    return strcmp(activation, "Add") == 0 || (type == OT_BF16 && strcmp(activation, "Sum") == 0)
               ? OT__DNNL_GEMM_ADD
               : OT__DNNL_GEMM_ENDS;
}

// False where oneDNN's matmul is not the same problem, or not ahead; d->reason says why.
static bool product_read_dnnl(const ot_prep *p, const ot__product *product, ot__dnnl_gemm *d)
{
    const char *activation = ot_attr_string(ot_prep_node(p), "activation");
    const ot__gemm *g = &product->gemm;

    *d = (ot__dnnl_gemm){
        .g = g,
        .type = ot_prep_in(p, A)->dtype,
        .y_type = ot_prep_out(p, 0)->dtype,
        .bias_type = product_input(p, C) != NULL ? product_input(p, C)->dtype : OT_F32,
        .n_batches = product->n_batches,
        .has_bias = product_input(p, C) != NULL,
        .after = after_product(activation, ot_prep_in(p, A)->dtype),
    };
    if (g->alpha != 1.0 || (d->has_bias && (g->beta != 1.0 || g->c_row != 0 || g->c_column != 1)) ||
        (product->tile != NULL && d->after == OT__DNNL_GEMM_ENDS) ||
        !even_stride(product, product->a_stride, &d->a_stride) ||
        !even_stride(product, product->b_stride, &d->b_stride)) {
        d->reason = "factors, addends, functions or batches that are no product of oneDNN's";
        return false;
    }
    return d->type == OT_BF16 ? ot__dnnl_gemm_bf16_is_ahead(d) : ot__dnnl_gemm_is_ahead(d);
}

// a and b of one type, all else of bf16 or f32.
static bool has_bf16_operands(const ot_prep *p)
{
    for (int i = 0; i < ot_prep_input_count(p); i++) {
        const ot_arg *x = ot_prep_in(p, i);

        if (x != NULL && x->dtype != OT_BF16 && (i <= B || (i == C && x->dtype != OT_F32)))
            return false;
        if (x != NULL && i == Z && x->dtype != ot_prep_out(p, 0)->dtype)
            return false;
    }
    return true;
}

static bool product_can_dnnl(const ot_prep *p)
{
    ot__product product;
    ot__dnnl_gemm d;

    if (!product_can_simd(p))
        return false;
    product_read(p, &product);
    return product_read_dnnl(p, &product, &d) ? ot_prep_takes(p, d.reason)
                                              : ot_prep_declines(p, d.reason);
}

bool ot__products_take(ot_dtype narrow)
{
    return narrow == OT_BF16 && ot__dnnl_has_bf16();
}

// Gradients of weights, the only ones that are summed: a second primitive is memory.
static bool product_can_dnnl_adding(const ot_prep *p)
{
    return ot_attr_int(ot_prep_node(p), "transA") != 0 && product_can_dnnl(p);
}

static bool product_can_bf16(const ot_prep *p)
{
    return has_bf16_operands(p) && product_can_dnnl(p);
}

static bool product_can_bf16_adding(const ot_prep *p)
{
    return has_bf16_operands(p) && ot_prep_out(p, 0)->dtype == OT_F32 && product_can_dnnl_adding(p);
}

static ot_status add_program(ot_prep *p, bool accumulates, ot__dnnl_primitives **out)
{
    ot__dnnl_gemm d;

    (void)product_read_dnnl(p, p->state, &d); // product_can_dnnl has checked it
    d.accumulates = accumulates;
    OT_TRY(ot__dnnl_gemm_create(&d, out));
    ot_prep_scratch(p, OT_MAX(p->scratch_bytes, ot__dnnl_scratch_bytes(*out)));
    return OT_OK;
}

static ot_status product_prepare_dnnl(ot_prep *p)
{
    OT_TRY(product_prepare(p));
    return add_program(p, false, &((ot__product *)p->state)->program);
}

static ot_status product_prepare_dnnl_adding(ot_prep *p)
{
    OT_TRY(product_prepare_dnnl(p));
    return add_program(p, true, &((ot__product *)p->state)->adding);
}

static ot_status product_run_dnnl(const ot_run *r)
{
    const ot__product *p = r->state;
    void *const slots[OT__DNNL_GEMM_SLOTS] = {
        [OT__DNNL_GEMM_A] = r->in[A]->data,      [OT__DNNL_GEMM_B] = r->in[B]->data,
        [OT__DNNL_GEMM_BIAS] = ot__run_in(r, C), [OT__DNNL_GEMM_OTHER] = ot__run_in(r, Z),
        [OT__DNNL_GEMM_Y] = r->out[0]->data,
    };

    return ot__dnnl_run(r->accumulates != 0 ? p->adding : p->program, slots, r->scratch);
}

static void product_release_dnnl(void *state)
{
    ot__product *p = state;

    ot__dnnl_destroy(p->program);
    ot__dnnl_destroy(p->adding);
}

// ---- the lists ----

#define ENTRY_BF16(sums, can_run_, prepare_)                                                       \
    {                                                                                              \
        .name = "dnnl", .types = "T: f32 bf16", .flags = OT_KERNEL_LIBRARY | OT_KERNEL_MIXED,      \
        .accumulates = (sums), .can_run = can_run_, .prepare = prepare_, .run = product_run_dnnl,  \
        .release = product_release_dnnl                                                            \
    }
#define ENTRY_DNNL                                                                                 \
    {                                                                                              \
        .name = "dnnl", .types = "T: f32", .flags = OT_KERNEL_LIBRARY,                             \
        .can_run = product_can_dnnl, .prepare = product_prepare_dnnl, .run = product_run_dnnl,     \
        .release = product_release_dnnl                                                            \
    }
#define ENTRY_DNNL_ADDING                                                                          \
    {                                                                                              \
        .name = "dnnl", .types = "T: f32", .flags = OT_KERNEL_LIBRARY, .accumulates = 1,           \
        .can_run = product_can_dnnl_adding, .prepare = product_prepare_dnnl_adding,                \
        .run = product_run_dnnl, .release = product_release_dnnl                                   \
    }
#define ENTRY_SIMD(sums)                                                                           \
    {                                                                                              \
        .name = "simd", .types = "T: f32 f16 bf16",                                                \
        .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED, .accumulates = (sums),                  \
        .can_run = product_can_simd, .prepare = product_prepare_simd, .run = product_run_simd      \
    }
#define ENTRY_REF(type, sums)                                                                      \
    {                                                                                              \
        .name = "ref", .types = "T: " #type,                                                       \
        .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .accumulates = (sums),              \
        .prepare = product_prepare, .run = product_run_ref_##type                                  \
    }

const ot_kernel ot__product_kernels[] = {
    ENTRY_BF16(1, product_can_bf16_adding, product_prepare_dnnl_adding),
    ENTRY_BF16(0, product_can_bf16, product_prepare_dnnl),
    ENTRY_DNNL_ADDING,
    ENTRY_DNNL,
    ENTRY_SIMD(1),
    ENTRY_REF(f32, 1),
    ENTRY_REF(f64, 1),
    {0},
};
const ot_kernel ot__product_activation_kernels[] = {
    ENTRY_BF16(0, product_can_bf16, product_prepare_dnnl),
    ENTRY_DNNL,
    ENTRY_SIMD(0),
    ENTRY_REF(f32, 0),
    ENTRY_REF(f64, 0),
    {0},
};
