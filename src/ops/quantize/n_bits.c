// SPDX-License-Identifier: Apache-2.0
// MatMulNBits of ONNX Runtime: Y = A * B^T + bias, of a matrix B (N, K) of integers of 2, 4 or 8
// bits, with a scale and a zero point for every `block_size` elements of a row. It trains A and the
// bias. B becomes numbers by an operator of its own, DequantizeNBits, each time that it is read, or
// once where it is constant and not too large.
#include "kernels/kernels.h"
#include "op/expand.h"

enum { A, B, SCALES, ZERO_POINTS, GROUPS, BIAS };
enum { N_BITS_BLOCK_MIN = 16, EXTENT_MAX = 1 << 24 };

// What the attributes say.
typedef struct n_bits {
    int64_t n, k, bits, block;
    int64_t blocks; // of a row
} n_bits;

static n_bits n_bits_of(const ot_node *node)
{
    n_bits m = {.n = ot_attr_int(node, "N"),
                .k = ot_attr_int(node, "K"),
                .bits = ot_attr_int(node, "bits"),
                .block = ot_attr_int(node, "block_size")};

    if (m.block > 0 && m.block <= EXTENT_MAX && m.k >= 0 && m.k <= EXTENT_MAX)
        m.blocks = (m.k + m.block - 1) / m.block;
    return m;
}

// ---- inference ----

static bool check_n_bits(ot_infer *c, n_bits m)
{
    if (m.n < 1 || m.n > EXTENT_MAX || m.k < 1 || m.k > EXTENT_MAX)
        return ot__refuse(c, "N is %" PRId64 " and K %" PRId64 ", expected 1 to %d", m.n, m.k,
                          EXTENT_MAX);
    if (m.bits != 2 && m.bits != 4 && m.bits != 8)
        return ot__refuse(c, "bits is %" PRId64 ", expected 2, 4 or 8", m.bits);
    if (m.block < N_BITS_BLOCK_MIN || m.block > EXTENT_MAX || (m.block & (m.block - 1)) != 0)
        return ot__refuse(c, "block_size is %" PRId64 ", expected a power of 2 from %d to %d",
                          m.block, N_BITS_BLOCK_MIN, EXTENT_MAX);
    return true;
}

// Whether input i has so many rows of so many elements, in one axis or more.
static bool check_row_elements(ot_infer *c, int i, int64_t rows, int64_t elements)
{
    const ot_shape *shape = ot_infer_shape(c, i);
    int64_t found = 1;

    for (int k = 0; k < shape->ndim; k++)
        found = ot_infer_mul(c, found, shape->dim[k]);
    if (!ot__dim_differs(found, rows * elements))
        return true;
    return ot__refuse(c,
                      "input %d has %" PRId64 " elements, expected %" PRId64 " for each of N, "
                      "%" PRId64,
                      i, found, elements, rows);
}

// Inputs B, scales and zero points, of which B is input `first`.
static bool check_quantized(ot_infer *c, int first, n_bits m)
{
    const int zero = first + ZERO_POINTS - B;

    if (!check_n_bits(c, m) ||
        !check_row_elements(c, first, m.n, m.blocks * m.block * m.bits / 8) ||
        !check_row_elements(c, first + SCALES - B, m.n, m.blocks))
        return false;
    return !ot_infer_has(c, zero) ||
           check_row_elements(c, zero, m.n,
                              ot_infer_dtype(c, zero) == OT_U8 ? (m.blocks * m.bits + 7) / 8
                                                               : m.blocks);
}

static void dequantize_n_bits_infer(ot_infer *c)
{
    const n_bits m = n_bits_of(ot_infer_node(c));

    if (check_quantized(c, 0, m))
        ot_infer_set(c, 0, ot_infer_dtype(c, 1), &OT_SHAPE(m.n, m.k));
}

static void mat_mul_n_bits_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const n_bits m = n_bits_of(node);
    const ot_shape *bias = ot_infer_shape(c, BIAS);
    ot_shape y = *ot_infer_shape(c, A);

    if (!check_quantized(c, B, m))
        return;
    if (y.ndim < 1 || ot__dim_differs(y.dim[y.ndim - 1], m.k)) {
        ot_infer_fail(c, "A has size %" PRId64 " along its last axis, K is %" PRId64,
                      y.ndim < 1 ? 1 : y.dim[y.ndim - 1], m.k);
        return;
    }
    if (ot_infer_has(c, GROUPS)) {
        ot_infer_fail(c, "input g_idx is not supported");
        return;
    }
    if (ot_attr_int(node, "weight_prepacked") != 0) {
        ot_infer_fail(c, "weight_prepacked is %" PRId64 ", expected 0",
                      ot_attr_int(node, "weight_prepacked"));
        return;
    }
    if (ot_infer_has(c, BIAS) && (bias->ndim != 1 || ot__dim_differs(bias->dim[0], m.n))) {
        ot_infer_fail(c, "bias has %d axes and size %" PRId64 ", expected N, %" PRId64, bias->ndim,
                      bias->dim[0], m.n);
        return;
    }
    y.dim[y.ndim - 1] = m.n;
    ot_infer_set(c, 0, ot_infer_dtype(c, A), &y);
}

// ---- the kernel of DequantizeNBits ----

static ot_status n_bits_prepare(ot_prep *p)
{
    const n_bits m = n_bits_of(ot_prep_node(p));
    ot__n_bits *state = ot_prep_state(p, sizeof *state);

    OT_TRY(ot__made(state));
    *state = (ot__n_bits){
        .rows = m.n, .columns = m.k, .bits = (int)m.bits, .block = m.block, .blocks = m.blocks};
    return OT_OK;
}

static ot__n_bits_data n_bits_data(const ot_run *r)
{
    const ot_arg *zero = r->n_in > 2 ? r->in[2] : NULL;
    const bool is_packed = zero != NULL && zero->dtype == OT_U8;

    return (ot__n_bits_data){.packed = r->in[0]->data,
                             .packed_zeros = is_packed ? zero->data : NULL,
                             .zeros = zero != NULL && !is_packed ? zero->data : NULL};
}

static ot_status n_bits_run_f32(const ot_run *r)
{
    const ot__n_bits_data data = n_bits_data(r);

    ot__ref_n_bits_f32(r->out[0]->data, &data, r->in[1]->data, r->state);
    return OT_OK;
}

static ot_status n_bits_run_f64(const ot_run *r)
{
    const ot__n_bits_data data = n_bits_data(r);

    ot__ref_n_bits_f64(r->out[0]->data, &data, r->in[1]->data, r->state);
    return OT_OK;
}

// ---- what MatMulNBits is composed of ----

static void mat_mul_n_bits_compose(ot_grad *g)
{
    static const char *const attrs[] = {"K", "N", "bits", "block_size"};
    const ot_node *of = ot_grad_node(g);
    ot_value *const quantized[] = {ot_grad_x(g, B), ot_grad_x(g, SCALES),
                                   ot_grad_x(g, ZERO_POINTS)};
    ot_value *product[2] = {ot_grad_x(g, A), NULL}, *y;
    ot_node *node;

    if (!ot_value_has_shape(product[0]))
        return;
    node = ot_emit(g, "ai.onnxtrain.DequantizeNBits", NULL, quantized, quantized[2] == NULL ? 2 : 3,
                   1);
    for (size_t i = 0; i < OT_COUNT(attrs); i++)
        ot_emit_int(g, node, attrs[i], ot_attr_int(of, attrs[i]));
    product[1] = ot_emit_output(g, node, 0);
    if (product[1] == NULL)
        return;
    if (ot_value_shape(product[0])->ndim == 1) {
        product[1] = ot__emit_transpose(g, product[1], (const int64_t[]){1, 0}, 2);
        y = ot_emit2(g, "MatMul", product[0], product[1]);
    } else {
        node = ot_emit(g, "com.microsoft.FusedMatMul", "transB = 1", product, 2, 1);
        y = ot_emit_output(g, node, 0);
    }
    if (ot_grad_x(g, BIAS) != NULL)
        y = ot_emit2(g, "Add", y, ot_grad_x(g, BIAS));
    ot_expand_set(g, 0, y);
}

// ---- records ----

static const ot_port n_bits_in[] = {
    {"B", "T2", OT_PORT_NO_GRAD},
    {"scales", "T", OT_PORT_NO_GRAD},
    {"zero_points", "T3", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port mat_mul_n_bits_in[] = {
    {"A", "T", 0},
    {"B", "T2", OT_PORT_NO_GRAD},
    {"scales", "T", OT_PORT_NO_GRAD},
    {"zero_points", "T3", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"g_idx", "T4", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {0},
};
static const ot_attr_spec mat_mul_n_bits_attrs[] = {
    {.name = "K", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {.name = "N", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    OT__INT_ATTR("accuracy_level", 0),
    OT__INT_ATTR("bits", 4),
    {.name = "block_size", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    OT__INT_ATTR("weight_prepacked", 0),
    {0},
};
static const ot_attr_spec n_bits_attrs[] = {
    {.name = "K", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {.name = "N", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    OT__INT_ATTR("bits", 4),
    {.name = "block_size", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_kernel n_bits_kernels[] = {
    OT__REF_KERNEL("T: f32; T3: u8 f32", n_bits_prepare, n_bits_run_f32),
    OT__REF_KERNEL("T: f64; T3: u8 f64", n_bits_prepare, n_bits_run_f64),
    {0},
};
const ot_op_def ot__op_dequantize_n_bits[] = {
    {.domain = "ai.onnxtrain",
     .name = "DequantizeNBits",
     .since = 1,
     .inputs = n_bits_in,
     .outputs = ot__output_out,
     .attrs = n_bits_attrs,
     .types = "T: f32 f64; T2: u8; T3: u8 f32 f64",
     .infer = dequantize_n_bits_infer,
     .kernels = n_bits_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
const ot_op_def ot__op_mat_mul_n_bits[] = {
    {.domain = OT__MS,
     .name = "MatMulNBits",
     .since = 1,
     .inputs = mat_mul_n_bits_in,
     .outputs = ot__unary_out,
     .attrs = mat_mul_n_bits_attrs,
     .types = "T: f32 f64; T2: u8; T3: u8 f32 f64; T4: i32",
     .infer = mat_mul_n_bits_infer,
     .train = mat_mul_n_bits_compose},
    {0},
};
