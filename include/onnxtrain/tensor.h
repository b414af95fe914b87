// SPDX-License-Identifier: Apache-2.0
// Element types, shapes and tensors.
#ifndef ONNXTRAIN_TENSOR_H
#define ONNXTRAIN_TENSOR_H

#include "onnxtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types: X(constant, ONNX TensorProto.DataType number, short name, bits per element).
 * String has no fixed size. */
#define OT_DTYPE_LIST(X)                                                                           \
    X(OT_DTYPE_UNDEFINED, 0, "undefined", 0)                                                       \
    X(OT_F32, 1, "f32", 32)                                                                        \
    X(OT_U8, 2, "u8", 8)                                                                           \
    X(OT_I8, 3, "i8", 8)                                                                           \
    X(OT_U16, 4, "u16", 16)                                                                        \
    X(OT_I16, 5, "i16", 16)                                                                        \
    X(OT_I32, 6, "i32", 32)                                                                        \
    X(OT_I64, 7, "i64", 64)                                                                        \
    X(OT_STRING, 8, "string", 0)                                                                   \
    X(OT_BOOL, 9, "bool", 8)                                                                       \
    X(OT_F16, 10, "f16", 16)                                                                       \
    X(OT_F64, 11, "f64", 64)                                                                       \
    X(OT_U32, 12, "u32", 32)                                                                       \
    X(OT_U64, 13, "u64", 64)                                                                       \
    X(OT_C64, 14, "c64", 64)                                                                       \
    X(OT_C128, 15, "c128", 128)                                                                    \
    X(OT_BF16, 16, "bf16", 16)                                                                     \
    X(OT_F8E4M3FN, 17, "f8e4m3fn", 8)                                                              \
    X(OT_F8E4M3FNUZ, 18, "f8e4m3fnuz", 8)                                                          \
    X(OT_F8E5M2, 19, "f8e5m2", 8)                                                                  \
    X(OT_F8E5M2FNUZ, 20, "f8e5m2fnuz", 8)                                                          \
    X(OT_U4, 21, "u4", 4)                                                                          \
    X(OT_I4, 22, "i4", 4)                                                                          \
    X(OT_F4E2M1, 23, "f4e2m1", 4)                                                                  \
    X(OT_F8E8M0, 24, "f8e8m0", 8)                                                                  \
    X(OT_U2, 25, "u2", 2)                                                                          \
    X(OT_I2, 26, "i2", 2)                                                                          \
    X(OT_F6E2M3, 27, "f6e2m3", 6)                                                                  \
    X(OT_F6E3M2, 28, "f6e3m2", 6)

typedef enum ot_dtype {
#define OT_DTYPE_ENUM(name, number, text, bits) name = number,
    OT_DTYPE_LIST(OT_DTYPE_ENUM)
#undef OT_DTYPE_ENUM
} ot_dtype;

/** "f32" for OT_F32; "unknown" for any other number. Static. */
OT_API const char *ot_dtype_name(ot_dtype dtype);

/** Bytes per element; 0 for strings, undefined and types below 8 bits. */
OT_API size_t ot_dtype_size(ot_dtype dtype);

enum { OT_MAX_NDIM = 16 };

/** Dim sizes of a tensor's axes. ndim 0 is a scalar with one element. */
typedef struct ot_shape {
    int ndim;
    int64_t dim[OT_MAX_NDIM];
} ot_shape;

#ifndef __cplusplus
#define OT_SHAPE(...)                                                                              \
    ((ot_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define OT_SHAPE_SCALAR ((ot_shape){0, {0}})
#endif

/** A dense row-major array of one element type. Owns its buffer unless made by ot_tensor_wrap(). */
typedef struct ot_tensor ot_tensor;

/** New zero-filled tensor; the caller destroys it. OT_ERR_INVALID for negative dim sizes, strings
 * or sizes that overflow. */
OT_API ot_status ot_tensor_create(ot_dtype dtype, const ot_shape *shape, ot_tensor **out);

/** New tensor over the caller's buffer, which must hold n_bytes = elements * element size and
 * outlive the tensor. */
OT_API ot_status ot_tensor_wrap(ot_dtype dtype, const ot_shape *shape, void *data, size_t n_bytes,
                                ot_tensor **out);

/**
 * A new tensor of OT_STRING, for inputs that take strings. String outputs of a run are such
 * tensors.
 *
 * @param strings   one per element, row-major; copied. NULL is fine where there are no elements
 * @param n_bytes length of each string, which may contain zero bytes; NULL: each ends with one
 * @param out     the caller destroys it. ot_tensor_string() reads its elements
 */
OT_API ot_status ot_tensor_create_strings(const ot_shape *shape, const char *const *strings,
                                          const size_t *n_bytes, ot_tensor **out);

/** Element `index` of a tensor of OT_STRING, in row-major order: `*n_bytes` bytes, not counting
 * a terminating zero. Owned by the tensor; NULL where there is no such element. */
OT_API const char *ot_tensor_string(const ot_tensor *tensor, int64_t index, size_t *n_bytes);

/** A new tensor with its own copy of the elements. */
OT_API ot_status ot_tensor_clone(const ot_tensor *tensor, ot_tensor **out);

/** NULL is fine. */
OT_API void ot_tensor_destroy(ot_tensor *tensor);

OT_API ot_dtype ot_tensor_dtype(const ot_tensor *tensor);
OT_API const ot_shape *ot_tensor_shape(const ot_tensor *tensor); ///< owned by the tensor
OT_API int64_t ot_tensor_count(const ot_tensor *tensor);         ///< number of elements
OT_API size_t ot_tensor_bytes(const ot_tensor *tensor);
OT_API void *ot_tensor_data(ot_tensor *tensor); ///< owned by the tensor, row-major
OT_API const void *ot_tensor_data_const(const ot_tensor *tensor);

#ifdef __cplusplus
}
#endif
#endif
