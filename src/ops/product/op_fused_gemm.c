// SPDX-License-Identifier: Apache-2.0
// Y = f(alpha * A' * B' + beta * C, Z): a product whose elements get the addend and go through an
// elementwise operator f, named by `activation`, while they are in the cache. A' and B' are A and B
// or their last two axes transposed, multiplied as by MatMul. Made by passes/fuse_gemm.c.
#include "ops/elementwise/elementwise.h"
#include "ops/product/product.h"

enum { A, B, C, Z }; // inputs

typedef struct fused_gemm {
    ot__product product; // first: the product's kernels see this as their state
    const ot_tile *tile; // NULL: none
    float attrs[OT_TILE_MAX_ATTRS];
} fused_gemm;

// False when the operator is not known, or gives other bits at the end of a line than inside it:
// where lines end depends on the number of threads.
static bool read_activation(const ot_node *node, const ot_tile **tile, float *attrs)
{
    const char *text = ot_attr_string(node, "activation");

    *tile = NULL;
    return *text == '\0' ||
           (ot__tile_read(&text, tile, attrs) && *text == '\0' && (*tile)->rounds_once);
}

static bool fits_exactly(ot_infer *c, const ot_shape *y, const ot_shape *z)
{
    bool fits = y->ndim == z->ndim;

    for (int k = 0; fits && k < y->ndim; k++)
        fits =
            !ot_dim_is_number(y->dim[k]) || !ot_dim_is_number(z->dim[k]) || y->dim[k] == z->dim[k];
    if (!fits)
        ot_infer_fail(c, "Z must have the product's shape");
    return fits;
}

// Batches share C, which is one row then.
static bool addend_fits(ot_infer *c, const ot_shape *y, const ot_shape *addend)
{
    ot_shape with_addend;

    if (!ot_infer_broadcast(c, y, addend, &with_addend))
        return false;
    for (int k = 0; k < with_addend.ndim; k++)
        if (with_addend.ndim != y->ndim ||
            (ot_dim_is_number(y->dim[k]) && with_addend.dim[k] != y->dim[k])) {
            ot_infer_fail(c, "C is larger than the product along axis %d", k);
            return false;
        }
    for (int k = 0; y->ndim > 2 && k + 1 < addend->ndim; k++)
        if (addend->dim[k] != 1) {
            ot_infer_fail(c, "C must be a row, has %" PRId64 " along axis %d", addend->dim[k], k);
            return false;
        }
    return true;
}

static void fused_gemm_infer(ot_infer *c)
{
    const ot_shape *a = ot_infer_shape(c, A), *b = ot_infer_shape(c, B);
    const ot_node *node = ot_infer_node(c);
    float attrs[OT_TILE_MAX_ATTRS];
    const ot_tile *tile;
    ot_shape y;

    if (a->ndim < 2 || b->ndim < 2) {
        ot_infer_fail(c, "A and B must have at least two axes, got %d and %d", a->ndim, b->ndim);
        return;
    }
    if (!read_activation(node, &tile, attrs)) {
        ot_infer_fail(c, "activation '%.40s' is not supported", ot_attr_string(node, "activation"));
        return;
    }
    if (ot__product_shape(c, a, b, ot_attr_int(node, "transA") != 0,
                          ot_attr_int(node, "transB") != 0, &y) &&
        (!ot_infer_has(c, C) || addend_fits(c, &y, ot_infer_shape(c, C))) &&
        (!ot_infer_has(c, Z) || fits_exactly(c, &y, ot_infer_shape(c, Z))))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_status fused_gemm_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const ot_arg *y = ot_prep_out(p, 0), *addend = ot_prep_in(p, C);
    fused_gemm *s = ot_prep_state(p, sizeof(*s));
    int64_t strides[OT_MAX_NDIM];

    if (!s)
        return OT_ERR_NO_MEMORY;
    (void)read_activation(node, &s->tile, s->attrs); // inference has checked it
    ot__product_plan(&s->product, &ot_prep_in(p, A)->shape, &ot_prep_in(p, B)->shape,
                     ot_attr_int(node, "transA") != 0, ot_attr_int(node, "transB") != 0,
                     (double)ot_attr_float(node, "alpha"));
    if (addend) {
        s->product.gemm.beta = (double)ot_attr_float(node, "beta");
        ot__broadcast_strides(&addend->shape, &y->shape, strides);
        s->product.gemm.c_row = strides[y->shape.ndim - 2];
        s->product.gemm.c_column = strides[y->shape.ndim - 1];
    }
    return OT_OK;
}

static ot_status fused_gemm_prepare_simd(ot_prep *p)
{
    OT_TRY(fused_gemm_prepare(p));
    return ot__product_prepare_simd(p, p->state);
}

static const void *data_of(const ot_run *r, int i)
{
    return i < r->n_in && r->in[i] != NULL ? r->in[i]->data : NULL;
}

// f in f64 whatever the type, a few elements at a time.
static ot_status fused_gemm_run_ref(const ot_run *r)
{
    enum { CHUNK = 64 };
    double value[CHUNK], other[CHUNK];
    const double *x[OT__TILE_INPUTS] = {value, data_of(r, Z) != NULL ? other : NULL};
    const fused_gemm *s = r->state;
    const ot_arg *y = r->out[0];
    const size_t size = ot_dtype_size(y->dtype);

    ot__product_compute_ref(&s->product, r, y->data, data_of(r, C));
    for (int64_t at = 0; s->tile != NULL && at < y->count; at += CHUNK) {
        const int64_t n = OT_MIN((int64_t)CHUNK, y->count - at);
        uint8_t *yk = (uint8_t *)y->data + (size_t)at * size;

        ot__convert(value, OT_F64, yk, y->dtype, n);
        if (x[1] != NULL)
            ot__convert(other, OT_F64, (const uint8_t *)data_of(r, Z) + (size_t)at * size, y->dtype,
                        n);
        s->tile->f64(value, x, n, s->attrs);
        ot__convert(yk, y->dtype, value, OT_F64, n);
    }
    return OT_OK;
}

static ot_status fused_gemm_run_simd(const ot_run *r)
{
    const fused_gemm *s = r->state;
    ot__gemm_data first = {.y = r->out[0]->data, .c = data_of(r, C)};

    if (s->tile != NULL)
        first.epilogue = (ot__epilogue){s->tile->f32, s->attrs, data_of(r, Z)};
    ot__product_compute_simd(&s->product, r, &first);
    return OT_OK;
}

static const ot_port fused_gemm_in[] = {{"A", "T", 0},
                                        {"B", "T", OT_PORT_WEIGHT},
                                        {"C", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
                                        {"Z", "T", OT_PORT_OPTIONAL},
                                        {0}};
static const ot_port fused_gemm_out[] = {{"Y", "T", 0}, {0}};
static const ot_attr_spec fused_gemm_attrs[] = {
    {.name = "activation", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = ""},
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.0f},
    {.name = "beta", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.0f},
    {.name = "transA", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {.name = "transB", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {0},
};
static const ot_kernel fused_gemm_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__product_can_simd,
     .prepare = fused_gemm_prepare_simd,
     .run = fused_gemm_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = fused_gemm_prepare,
     .run = fused_gemm_run_ref},
    {0},
};
const ot_op_def ot__op_fused_gemm[] = {
    {.domain = "ai.onnxtrain",
     .name = "FusedGemm",
     .since = 1,
     .inputs = fused_gemm_in,
     .outputs = fused_gemm_out,
     .attrs = fused_gemm_attrs,
     .types = "T: f32 f64",
     .infer = fused_gemm_infer,
     .kernels = fused_gemm_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
