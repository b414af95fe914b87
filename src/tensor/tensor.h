// Face of `tensor`: shapes, broadcasting, element conversion, tensors.
#ifndef OT_TENSOR_TENSOR_H
#define OT_TENSOR_TENSOR_H

#include "base/base.h"
#include "onnxtrain/tensor.h"

// ---- element types (dtype.c) ----

bool ot__dtype_is_float(ot_dtype dtype);                     // f16 bf16 f32 f64
bool ot__dtype_is_int(ot_dtype dtype);                       // signed and unsigned, not bool
bool ot__dtype_from_name(const char *name, ot_dtype *dtype); // "f32"
const char *ot__dtype_onnx_name(ot_dtype dtype); // "float", as ONNX's textual syntax spells it
bool ot__dtype_from_onnx_name(const char *name, ot_dtype *dtype); // "float"
// Bytes of `count` elements, sub-byte types packed; false on overflow or for strings.
bool ot__dtype_bytes(ot_dtype dtype, int64_t count, size_t *n_bytes);

// ---- shapes (shape.c) ----

// Number of elements; false for a negative extent or when the product of the extents that are not 0
// overflows.
bool ot__shape_count(const ot_shape *shape, int64_t *count);
bool ot__shape_equal(const ot_shape *a, const ot_shape *b);
void ot__shape_strides(const ot_shape *shape,
                       int64_t strides[OT_MAX_NDIM]); // row-major, in elements
// "[2,3]"; extents below 0 print as '?'. Writes at most `size` bytes with the NUL; returns `text`.
char *ot__shape_text(const ot_shape *shape, char *text, size_t size);
// -ndim <= axis < ndim, brought to 0..ndim-1; false when out of range.
bool ot__axis_normalize(int64_t axis, int ndim, int *out);

// ---- broadcasting (broadcast.c) ----

// y = numpy broadcast of a and b (concrete extents); OT_ERR_INVALID names both shapes when they do
// not fit.
ot_status ot__shape_broadcast(const ot_shape *a, const ot_shape *b, ot_shape *y);
// Strides that read `x` as if it had shape `y`: 0 along stretched axes.
void ot__broadcast_strides(const ot_shape *x, const ot_shape *y, int64_t strides[OT_MAX_NDIM]);

// ---- conversion (convert.c) ----

float ot__f16_to_f32(uint16_t bits);
uint16_t ot__f32_to_f16(float value); // round to nearest even
float ot__bf16_to_f32(uint16_t bits);
uint16_t ot__f32_to_bf16(float value);
// Convert `count` elements as ONNX's Cast does (float to int truncates, to bool is != 0). False: no
// such conversion.
bool ot__convert(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype, int64_t count);

// ---- tensors (tensor.c) ----

struct ot_tensor {
    ot_dtype dtype;
    ot_shape shape;
    size_t n_bytes;
    void *data;
    bool owns_data;
};
double ot__tensor_get_f64(const ot_tensor *tensor, int64_t index); // any numeric type
int64_t ot__tensor_get_i64(const ot_tensor *tensor, int64_t index);

#endif
