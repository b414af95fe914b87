// SPDX-License-Identifier: Apache-2.0
// What inference asks of images and regions.
#include "ops/pool/roi.h"

#include "ops/conv/window.h"

bool ot__infer_rois(ot_infer *c, const ot_shape *x, const ot_shape *rois, int64_t width)
{
    if (x->ndim != 4)
        return ot__refuse(c, "X has %d axes, expected 4: batch, channels, height, width", x->ndim);
    if (rois->ndim != 2 || ot__dim_differs(rois->dim[1], width))
        return ot__refuse(c, "rois must have shape [regions,%" PRId64 "]", width);
    for (int a = 2; a < 4; a++)
        if (ot_dim_is_number(x->dim[a]) && (x->dim[a] < 1 || x->dim[a] > OT__WINDOW_EXTENT_MAX))
            return ot__refuse(c, "axis %d of X has size %" PRId64 ", expected 1 to %d", a,
                              x->dim[a], OT__WINDOW_EXTENT_MAX);
    return true;
}

bool ot__infer_roi_pool(ot_infer *c, const ot_shape *x, const ot_shape *rois, const int64_t *out,
                        ot_shape *y)
{
    *y = OT_SHAPE(rois->dim[0], x->dim[1], out[0], out[1]);
    for (int a = 0; a < OT__ROI_AXES; a++)
        if (out[a] < 1 || out[a] > OT__WINDOW_EXTENT_MAX)
            return ot__refuse(c, "the result has %s %" PRId64 ", expected 1 to %d",
                              a == 0 ? "height" : "width", out[a], OT__WINDOW_EXTENT_MAX);
    return true;
}

bool ot__infer_roi_gradient(ot_infer *c, const ot_shape *y)
{
    return ot__shape_may_equal(y, ot_infer_shape(c, 0)) ||
           ot__refuse(c, "dY does not have the shape of the pooled regions");
}
