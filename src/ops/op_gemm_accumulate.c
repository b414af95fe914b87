// A weight's gradient straight into its accumulation buffer: buffer = [buffer +] alpha * A' * B',
// with A' = A or its transpose. Made of Gemm and InPlaceAccumulatorV2 by
// passes/fuse_gemm_accumulate.c.
#include "ops/product.h"

enum { A, B, BUFFER, OVERWRITE }; // inputs

static void gemm_accumulate_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *a = ot_infer_shape(c, A), *b = ot_infer_shape(c, B),
                   *buffer = ot_infer_shape(c, BUFFER);
    ot_shape y;

    if (a->ndim != 2 || b->ndim != 2 || buffer->ndim != 2) {
        ot_infer_fail(c, "A, B and the buffer must be matrices, got %d, %d and %d axes", a->ndim,
                      b->ndim, buffer->ndim);
        return;
    }
    if (!ot__product_shape(c, a, b, ot_attr_int(node, "transA") != 0,
                           ot_attr_int(node, "transB") != 0, &y))
        return;
    for (int i = 0; i < 2; i++)
        if (ot_dim_is_number(y.dim[i]) && ot_dim_is_number(buffer->dim[i]) &&
            y.dim[i] != buffer->dim[i]) {
            ot_infer_fail(c, "axis %d of the buffer is %" PRId64 ", the product's %" PRId64, i,
                          buffer->dim[i], y.dim[i]);
            return;
        }
    ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
    ot_infer_set(c, 1, ot_infer_dtype(c, BUFFER), buffer);
}

static ot_status gemm_accumulate_prepare(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    ot__product *product = ot_prep_state(p, sizeof(*product));

    if (!product)
        return OT_ERR_NO_MEMORY;
    ot__product_plan(product, &ot_prep_in(p, A)->shape, &ot_prep_in(p, B)->shape,
                     ot_attr_int(node, "transA") != 0, ot_attr_int(node, "transB") != 0,
                     (double)ot_attr_float(node, "alpha"));
    return OT_OK;
}

static ot_status gemm_accumulate_prepare_simd(ot_prep *p)
{
    OT_TRY(gemm_accumulate_prepare(p));
    return ot__product_prepare_simd(p, p->state);
}

static bool overwrites(const ot_run *r)
{
    const ot_arg *flag = r->n_in > OVERWRITE ? r->in[OVERWRITE] : NULL;

    return flag != NULL && flag->count > 0 && *(const uint8_t *)flag->data != 0;
}

static ot_status done(const ot_run *r)
{
    if (r->out[0] != NULL)
        *(uint8_t *)r->out[0]->data = 1;
    if (r->n_out > 1 && r->out[1] != NULL)
        ot__ref_copy_bytes(r->out[1]->data, r->in[BUFFER]->data,
                           (size_t)r->in[BUFFER]->count * ot_dtype_size(r->in[BUFFER]->dtype));
    return OT_OK;
}

static ot_status gemm_accumulate_run_ref(const ot_run *r)
{
    ot__product product = *(const ot__product *)r->state;
    void *y = r->in[BUFFER]->data;

    product.gemm.beta = 1;
    product.gemm.c_row = product.gemm.y_row;
    product.gemm.c_column = 1;
    ot__product_compute_ref(&product, r, y, overwrites(r) ? NULL : y);
    return done(r);
}

static ot_status gemm_accumulate_run_simd(const ot_run *r)
{
    ot__product_compute_simd(r->state, r,
                             &(ot__gemm_data){.y = r->in[BUFFER]->data, .adds = !overwrites(r)});
    return done(r);
}

static const ot_port gemm_accumulate_in[] = {
    {"A", "T", 0},
    {"B", "T", 0},
    {"accumulation_buffer", "T", OT_PORT_STATE},
    {"overwrite_flag", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port gemm_accumulate_out[] = {
    {"updated_flag", "bool", 0},
    {"accumulation_buffer_out", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec gemm_accumulate_attrs[] = {
    {.name = "alpha", .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = 1.0f},
    {.name = "transA", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {.name = "transB", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {0},
};
static const ot_kernel gemm_accumulate_kernels[] = {
    {.name = "simd",
     .flags = OT_KERNEL_THREAD_EXACT,
     .can_run = ot__product_can_simd,
     .prepare = gemm_accumulate_prepare_simd,
     .run = gemm_accumulate_run_simd},
    {.name = "ref",
     .flags = OT_KERNEL_THREAD_EXACT,
     .prepare = gemm_accumulate_prepare,
     .run = gemm_accumulate_run_ref},
    {0},
};
const ot_op_def ot__op_gemm_accumulate[] = {
    {.domain = "ai.onnxtrain",
     .name = "GemmAccumulate",
     .since = 1,
     .inputs = gemm_accumulate_in,
     .outputs = gemm_accumulate_out,
     .attrs = gemm_accumulate_attrs,
     .types = "T: f32 f64",
     .infer = gemm_accumulate_infer,
     .kernels = gemm_accumulate_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL},
    {0},
};
