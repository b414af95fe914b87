// SPDX-License-Identifier: Apache-2.0
// One transform of OT__FOURIER_LANES lines: what ref_fourier.c loads and stores.
#ifndef OT_KERNELS_FOURIER_H
#define OT_KERNELS_FOURIER_H

#include "kernels/kernels.h"

// Real and imaginary parts, each (points, OT__FOURIER_LANES).
typedef struct ot__complex_lines {
    double *re, *im;
} ot__complex_lines;

// x, of f->n points, is used up; the result lies in what is given back, x or `other`. Both have
// room for f->length points.
ot__complex_lines ot__fourier_run(const ot__fourier *f, ot__complex_lines x,
                                  ot__complex_lines other);

#endif
