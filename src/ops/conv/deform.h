// SPDX-License-Identifier: Apache-2.0
// What DeformConv and its columns share. Private to `ops`.
#ifndef OT_OPS_CONV_DEFORM_H
#define OT_OPS_CONV_DEFORM_H

#include "ops/conv/window.h"

// Whether the inputs of these numbers, of which the mask may be absent, fit the window; `places`
// gets the axes of the output, symbolic where X's are.
bool ot__infer_deform(ot_infer *c, const ot__geometry *window, int x, int offset, int mask,
                      ot_shape *places);

#endif
