// SPDX-License-Identifier: Apache-2.0
// What the matrix products share: batches of (m, k) * (k, n) with either side transposed. Private
// to `ops`.
#ifndef OT_OPS_PRODUCT_H
#define OT_OPS_PRODUCT_H

#include "kernels/kernels.h"
#include "op/op.h"

// y[b] = f(alpha * op(a[b]) * op(b[b]) + beta * c) for every batch b; batches broadcast. Written by
// prepare.
typedef struct ot__product {
    ot__gemm gemm;
    int n_batch_axes;
    int64_t n_batches;
    int64_t batch_dim[OT_MAX_NDIM], a_stride[OT_MAX_NDIM], b_stride[OT_MAX_NDIM]; // in elements
    int64_t y_stride;
    const ot_tile *tile; // f; NULL: none
    float attrs[OT_TILE_MAX_ATTRS];
    const ot__gemm_kernel *kernel; // vector code only
    ot__gemm_plan plan;
    ot__dnnl_primitives *program, *adding; // oneDNN only; the second adds to what is in y
} ot__product;

// How an operand lies: with its last two axes exchanged, its rows (or then columns) along axis 0
// with the batches between.
typedef struct ot__product_operand {
    const ot_shape *shape;
    bool is_transposed, is_across;
} ot__product_operand;
// Operand i, 0 or 1, of a shape, as far as the node has attributes for it.
ot__product_operand ot__product_operand_of(const ot_node *node, int i, const ot_shape *shape);

// Shape of op(a) * op(b) as numpy's matmul; false and a failure when they do not fit.
bool ot__product_shape(ot_infer *c, const ot__product_operand *a, const ot__product_operand *b,
                       ot_shape *y);
// The same for concrete shapes known to fit.
void ot__product_plan(ot__product *p, const ot__product_operand *a, const ot__product_operand *b,
                      double alpha);
// Where the operands of one batch begin, in elements.
void ot__product_batch_at(const ot__product *p, int64_t batch, int64_t *a, int64_t *b);
// The function that FusedGemm's attribute `activation` names; NULL: none. False when it is not
// known, or gives other bits at the end of a line than inside it: where lines end depends on the
// number of threads.
bool ot__product_activation(const ot_node *node, const ot_tile **tile, float *attrs);

// Inputs A, B, and as far as the record has them C and Z.
extern const ot_kernel ot__product_kernels[];
extern const ot_kernel ot__product_activation_kernels[];

#endif
