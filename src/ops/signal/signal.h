// SPDX-License-Identifier: Apache-2.0
// What the operators on signals share. Private to `ops`.
#ifndef OT_OPS_SIGNAL_H
#define OT_OPS_SIGNAL_H

#include "kernels/kernels.h"
#include "op/expand.h"
#include "ops/move/move.h"

#define OT__NUMBERS "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"

// The gradient of DFT in ONNX's operators (expand_dft.c).
void ot__dft_grad_expand(ot_grad *g);
// DFT of x in the form of the model's opset; length NULL: that of the axis.
ot_value *ot__emit_dft(ot_grad *g, ot_value *x, ot_value *length, int64_t axis, bool is_inverse,
                       bool is_onesided);
// Elements first .. last - 1 along an axis.
ot_value *ot__emit_slice(ot_grad *g, ot_value *x, int64_t axis, int64_t first, int64_t last);

// Transforms of lines (transform.c), by reference kernels or by those for f32.
typedef struct ot__transform {
    const ot__fouriers *by; // NULL: reference kernels
    ot__fourier exact;      // of these
    ot__fast_fourier fast;
    ot__fourier_lines lines;
    int64_t n, n_parts; // n: points of a line
} ot__transform;
typedef struct ot__transform_sizes {
    size_t tables, work, scratch; // bytes; work: while tables are made
} ot__transform_sizes;

// `by`, `lines` and `n` are set.
ot__transform_sizes ot__transform_plan(ot__transform *t, int n_threads);
void ot__transform_make(ot__transform *t, void *tables, double *work);
void ot__transform_run_f32(const ot__transform *t, void *y, const void *x, void *scratch);
void ot__transform_run_f64(const ot__transform *t, void *y, const void *x, void *scratch);

// A size that scalar input i, an integer, states; one that is not known is no number. False: it is
// not one element, or outside least .. most.
bool ot__infer_size(ot_infer *c, int i, const char *name, int64_t least, int64_t most,
                    int64_t *size);

#endif
