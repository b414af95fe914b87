// SPDX-License-Identifier: Apache-2.0
// Face of `kernels`: loops over raw pointers, grouped by the file they are in. They know no graph
// and cannot fail; sizes and indices are checked before they are called. Portable loops are `ref_`,
// vector code `simd_`, oneDNN `dnnl_`.
#ifndef OT_KERNELS_KERNELS_H
#define OT_KERNELS_KERNELS_H

#include "tensor/tensor.h"

// Elements below which a loop is not worth a second thread.
enum { OT_PAR_MIN = 16384 };

// ---- isa.c: instruction sets that vector code is compiled for ----

typedef enum ot__isa { OT__ISA_BASE, OT__ISA_AVX2, OT__ISA_AVX512 } ot__isa;
// The best set that this processor has and the library is compiled for.
ot__isa ot__isa_best(void);
// None above `isa` from now on; for tests, between runs of kernels.
void ot__isa_limit(ot__isa isa);

#include "kernels/conv/kernels_conv.h"
#include "kernels/elementwise/kernels_elementwise.h"
#include "kernels/kernels_dnnl.h"
#include "kernels/kernels_nn.h"
#include "kernels/move/kernels_move.h"
#include "kernels/norm/kernels_norm.h"
#include "kernels/quantize/kernels_quantize.h"
#include "kernels/recurrent/kernels_recurrent.h"
#include "kernels/softmax_loss/kernels_rows.h"

#endif
