// SPDX-License-Identifier: Apache-2.0
// What the matrix products share: batches of (m, k) * (k, n) with either side transposed. Private
// to `ops`.
#ifndef OT_OPS_PRODUCT_H
#define OT_OPS_PRODUCT_H

#include "kernels/kernels.h"
#include "op/op.h"

// y[b] = alpha * op(a[b]) * op(b[b]) + beta * c for every batch b; batches broadcast. Written by
// prepare.
typedef struct ot__product {
    ot__gemm gemm;
    int n_batch_axes;
    int64_t n_batches;
    int64_t batch_dim[OT_MAX_NDIM], a_stride[OT_MAX_NDIM], b_stride[OT_MAX_NDIM]; // in elements
    int64_t y_stride;
    const ot__gemm_kernel *kernel; // vector code only
    ot__gemm_plan plan;
} ot__product;

// Shape of op(a) * op(b) as numpy's matmul; false and a failure when they do not fit.
bool ot__product_shape(ot_infer *c, const ot_shape *a, const ot_shape *b, bool a_transposed,
                       bool b_transposed, ot_shape *y);
// The same for concrete shapes known to fit.
void ot__product_plan(ot__product *p, const ot_shape *a, const ot_shape *b, bool a_transposed,
                      bool b_transposed, double alpha);
// Operands from inputs 0 and 1, the result (row-major) to `y`, or added there where r->adds says
// so; c as in ot__gemm, or NULL.
void ot__product_compute_ref(const ot__product *p, const ot_run *r, void *y, const void *c);
ot_status ot__product_run_ref(const ot_run *r); // state: ot__product; in: a, b[, c]

// f32 by vector code: as above, and after ot__product_plan also ot__product_prepare_simd.
bool ot__product_can_simd(const ot_prep *p);
ot_status ot__product_prepare_simd(ot_prep *p, ot__product *product);
// `first` says where the result goes; its operands are filled in.
void ot__product_compute_simd(const ot__product *p, const ot_run *r, ot__gemm_data *first);
ot_status ot__product_run_simd(const ot_run *r);

#endif
