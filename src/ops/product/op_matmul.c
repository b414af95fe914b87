// SPDX-License-Identifier: Apache-2.0
// Y = A * B as numpy's matmul: batches broadcast, vectors count as a row on the left and as a
// column on the right.
#include "op/expand.h"
#include "ops/product/product.h"

static void matmul_infer(ot_infer *c)
{
    const ot__product_operand a = {.shape = ot_infer_shape(c, 0)},
                              b = {.shape = ot_infer_shape(c, 1)};
    ot_shape y;

    if (ot__product_shape(c, &a, &b, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static ot_value *emit_gradient_product(ot_grad *g, const char *op, ot_value *a, ot_value *b,
                                       bool transpose_a, bool transpose_b)
{
    ot_value *in[] = {a, b};
    ot_node *node = ot_emit(g, op, NULL, in, 2, 1);

    ot_emit_int(g, node, "transA", transpose_a);
    ot_emit_int(g, node, "transB", transpose_b);
    return ot_emit_output(g, node, 0);
}

// All axes but the last become one.
static ot_value *emit_rows(ot_grad *g, ot_value *x)
{
    const ot_shape *shape = ot_value_shape(x);
    int64_t rows[] = {-1, ot_dim_unknown()};
    ot_value *target;

    if (ot_value_has_shape(x))
        rows[1] = shape->dim[shape->ndim - 1];
    if (ot_dim_is_number(rows[1])) {
        target = ot_emit_constant_i64(g, rows, 2);
    } else {
        ot_value *parts[2] = {ot_emit_constant_i64(g, rows, 1), NULL};
        ot_value *last = ot_emit_constant_i64(g, &(int64_t){-1}, 1);

        parts[1] = ot_emit2(g, "Gather", ot_emit_shape(g, x), last);
        target = ot__emit_concat(g, parts, 2, 0);
    }
    return ot_emit2(g, "Reshape", x, target);
}

static ot_value *emit_axis(ot_grad *g, ot_value *x, int64_t axis)
{
    return ot_emit2(g, "Unsqueeze", x, ot_emit_constant_i64(g, &axis, 1));
}

// Of A's rows alone, dB = A^T * dY for a matrix B, nothing needs to be known.
static bool knows_axes(ot_grad *g, const ot_value *a, const ot_value *b)
{
    return ot__grad_knows_axes(g, b) &&
           ((!ot_grad_wants(g, 0) && ot_value_shape(b)->ndim == 2) || ot__grad_knows_axes(g, a));
}

// dA = dY * B^T and dB = A^T * dY, each summed over the batch axes that were broadcast.
static void matmul_grad(ot_grad *g)
{
    ot_value *a = ot_grad_x(g, 0), *b = ot_grad_x(g, 1), *dy = ot_grad_dy(g, 0);
    ot_value *left = a, *right = b;
    const bool a_is_vector = ot_value_shape(a)->ndim == 1,
               b_is_vector = ot_value_shape(b)->ndim == 1;
    bool is_plain;

    if (!knows_axes(g, a, b))
        return;
    if (b_is_vector) {
        right = emit_axis(g, b, 1);
        dy = emit_axis(g, dy, -1);
    }
    if (a_is_vector) {
        left = emit_axis(g, a, 0);
        dy = emit_axis(g, dy, -2);
    }
    if (!left || !right || !dy)
        return;
    is_plain = ot_value_shape(left)->ndim == 2 && ot_value_shape(right)->ndim == 2;
    if (ot_grad_wants(g, 0)) {
        ot_value *da = is_plain
                           ? emit_gradient_product(g, "Gemm", dy, right, false, true)
                           : ot_emit_sum_to(g,
                                            emit_gradient_product(g, "com.microsoft.FusedMatMul",
                                                                  dy, right, false, true),
                                            left);
        ot_grad_set_dx(g, 0, a_is_vector ? ot_emit_reshape_like(g, da, a) : da);
    }
    if (ot_grad_wants(g, 1)) {
        ot_value *db;

        if (is_plain) {
            db = emit_gradient_product(g, "Gemm", left, dy, true, false);
        } else if (ot_value_shape(right)->ndim == 2) {
            ot_value *rows = emit_rows(g, dy);

            db = emit_gradient_product(g, "Gemm", emit_rows(g, left), rows, true, false);
        } else {
            db = ot_emit_sum_to(
                g, emit_gradient_product(g, "com.microsoft.FusedMatMul", left, dy, true, false),
                right);
        }
        ot_grad_set_dx(g, 1, b_is_vector ? ot_emit_reshape_like(g, db, b) : db);
    }
}

static const ot_port matmul_in[] = {{"A", "T", 0}, {"B", "T", OT_PORT_WEIGHT}, {0}};
const ot_op_def ot__op_matmul[] = {
    {.name = "MatMul",
     .since = 1,
     .inputs = matmul_in,
     .outputs = ot__unary_out,
     .types = "T: f32 f64",
     .infer = matmul_infer,
     .kernels = ot__product_kernels,
     .grad = matmul_grad},
    {0},
};
