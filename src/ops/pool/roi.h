// SPDX-License-Identifier: Apache-2.0
// What pools of regions share. Private to `ops`.
#ifndef OT_OPS_POOL_ROI_H
#define OT_OPS_POOL_ROI_H

#include "kernels/kernels.h"
#include "op/op.h"

// Whether x has images of two axes, which are not empty unless there are no images, and `rois` is a
// list of `width` numbers a region.
bool ot__infer_rois(ot_infer *c, const ot_shape *x, const ot_shape *rois, int64_t width);
// The shape of the result with extents out[0] and out[1]; false where they are out of range.
bool ot__infer_roi_pool(ot_infer *c, const ot_shape *x, const ot_shape *rois, const int64_t *out,
                        ot_shape *y);
// Whether dY may have the shape `y`.
bool ot__infer_roi_gradient(ot_infer *c, const ot_shape *y);

#endif
