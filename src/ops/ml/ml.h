// SPDX-License-Identifier: Apache-2.0
// What operators of ai.onnx.ml share: numbers that are attributes, and types. X is a matrix of rows
// of features, or one row. Private to `ops`.
#ifndef OT_OPS_ML_H
#define OT_OPS_ML_H

#include "op/expand.h"

#define OT__ML "ai.onnx.ml"
#define OT__ML_NUMBERS "f32 f64 i32 i64"

extern const ot_port ot__ml_in[]; // X of type T

// Whether X has one or two axes; its features are along the last one.
bool ot__ml_check_rows(ot_infer *c);
// Whether a list of `n` entries has one for each feature, or one for all.
bool ot__ml_check_list(ot_infer *c, const char *name, int n);
// f32, as ONNX has it; of X in f64 it is f64, unless the model states f32 for the output.
ot_dtype ot__ml_float_type(ot_infer *c, int output);

// X as floats, and a result in the type that inference has found for the output.
ot_value *ot__ml_emit_x(ot_grad *g);
void ot__ml_set(ot_grad *g, int output, ot_value *y);
// A constant of the type of `like`, from n numbers.
ot_value *ot__ml_emit_floats(ot_grad *g, const float *numbers, const ot_shape *shape,
                             const ot_value *like);

// x / divisor, and x where that is 0, of which *is_zero tells.
ot_value *ot__ml_emit_divided(ot_grad *g, ot_value *x, ot_value *divisor, ot_value **is_zero);

// Scores as attribute post_transform has them: by rows.
bool ot__ml_check_transform(ot_infer *c);
ot_value *ot__ml_emit_transform(ot_grad *g, ot_value *scores);

#endif
