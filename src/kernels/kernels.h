// SPDX-License-Identifier: Apache-2.0
// Interface of `kernels`: loops over raw pointers, grouped by the file they are in. They know no
// graph and cannot fail; sizes and indices are checked before they are called. Portable loops are
// `ref_`, vector code `simd_`, oneDNN `dnnl_`.
#ifndef OT_KERNELS_KERNELS_H
#define OT_KERNELS_KERNELS_H

#include "tensor/tensor.h"

// Elements below which a loop is not worth a second thread.
enum { OT_PAR_MIN = 16384 };

#include "kernels/attention/kernels_attention.h"
#include "kernels/conv/kernels_conv.h"
#include "kernels/elementwise/kernels_elementwise.h"
#include "kernels/kernels_dnnl.h"
#include "kernels/kernels_nn.h"
#include "kernels/move/kernels_move.h"
#include "kernels/norm/kernels_norm.h"
#include "kernels/pool/kernels_pool.h"
#include "kernels/pool/kernels_roi.h"
#include "kernels/quantize/kernels_quantize.h"
#include "kernels/recurrent/kernels_recurrent.h"
#include "kernels/reduce/kernels_reduce.h"
#include "kernels/resize/kernels_resize.h"
#include "kernels/sample/kernels_sample.h"
#include "kernels/signal/kernels_signal.h"
#include "kernels/softmax_loss/kernels_rows.h"

#include "kernels/isa.h" // the tables declared above

#endif
