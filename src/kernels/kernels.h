// SPDX-License-Identifier: Apache-2.0
// Face of `kernels`: loops over raw pointers, grouped by the file they are in. They know no graph
// and cannot fail; sizes and indices are checked before they are called. Portable loops are `ref_`,
// vector code `simd_`, oneDNN `dnnl_`.
#ifndef OT_KERNELS_KERNELS_H
#define OT_KERNELS_KERNELS_H

#include "tensor/tensor.h"

// Elements below which a loop is not worth a second thread.
enum { OT_PAR_MIN = 16384 };

#include "kernels/kernels_conv.h"
#include "kernels/kernels_dnnl.h"
#include "kernels/kernels_elementwise.h"
#include "kernels/kernels_move.h"
#include "kernels/kernels_nn.h"
#include "kernels/kernels_norm.h"
#include "kernels/kernels_quantize.h"
#include "kernels/kernels_recurrent.h"
#include "kernels/kernels_rows.h"

#endif
