// SPDX-License-Identifier: Apache-2.0
// Interface of `tensor`: shapes, broadcasting, element conversion, tensors.
#ifndef OT_TENSOR_TENSOR_H
#define OT_TENSOR_TENSOR_H

#include "base/base.h"
#include "onnxtrain/op.h" // ot_layout
#include "onnxtrain/sharding.h"
#include "onnxtrain/tensor.h"

// ---- element types (dtype.c) ----

bool ot__dtype_is_float(ot_dtype dtype);  // f16 bf16 f32 f64
bool ot__dtype_is_narrow(ot_dtype dtype); // f16 bf16
bool ot__dtype_is_int(ot_dtype dtype);    // signed and unsigned of whole bytes, not bool
bool ot__dtype_is_packed(ot_dtype dtype); // below 8 bits: elements share bytes
// Of a packed type: that of one byte which has all its numbers; any other: itself.
ot_dtype ot__dtype_unpacked(ot_dtype dtype);
int ot__dtype_bits(ot_dtype dtype);                          // of an element; 0: none of its own
bool ot__dtype_from_name(const char *name, ot_dtype *dtype); // "f32"
const char *ot__dtype_onnx_name(ot_dtype dtype); // "float", as ONNX's textual syntax spells it
bool ot__dtype_from_onnx_name(const char *name, ot_dtype *dtype); // "float"
// Bytes of `count` elements, sub-byte types packed; false on overflow or for strings.
bool ot__dtype_bytes(ot_dtype dtype, int64_t count, size_t *n_bytes);
// The same of what a tensor's data point to, where a text is its ot__bytes.
size_t ot__element_size(ot_dtype dtype);
bool ot__element_bytes(ot_dtype dtype, int64_t count, size_t *n_bytes);

// ---- shapes (shape.c) ----

// Number of elements; false for a negative extent or when the product of the extents that are not 0
// overflows.
bool ot__shape_count(const ot_shape *shape, int64_t *count);
// The same of a shape that a caller gives: OT_ERR_INVALID says what is wrong.
ot_status ot__shape_check(const ot_shape *shape, int64_t *count);
bool ot__shape_equal(const ot_shape *a, const ot_shape *b);
void ot__shape_strides(const ot_shape *shape,
                       int64_t strides[OT_MAX_NDIM]); // row-major, in elements
// "[2,3]"; extents below 0 print as '?'. Writes at most `size` bytes with the NUL; returns `text`.
char *ot__shape_text(const ot_shape *shape, char *text, size_t size);
// In a buffer of the block around it, for messages.
#define OT_SHAPE_TEXT(...) ot__shape_text(__VA_ARGS__, (char[256]){""}, 256)
// -ndim <= axis < ndim, brought to 0..ndim-1; false when out of range.
bool ot__axis_normalize(int64_t axis, int ndim, int *out);

// ---- boxes (box.c) ----

int64_t ot__box_count(const ot_box *box); // its elements
// Boxes that are within the shape, not empty, and apart from each other; not all of it need be in
// one. OT_ERR_INVALID as of ot_box_check_partition().
ot_status ot__boxes_check(const ot_shape *shape, const ot_box *boxes, int64_t n_boxes);

// ---- shardings (sharding.c) ----

size_t ot__sharding_taken(int n_parts); // bytes of one with a cut by points

// ---- layouts (layout.c): how the elements of a tensor lie in memory ----

enum { OT_FORM_BLOCKS = 2 };
// Axes from the outermost to the innermost, then blocks of some of them: element i of a blocked
// axis is in block i / size, at place i % size. A layout of NULL is row-major. Blocks divide their
// axes, so that no layout needs padding.
struct ot_layout {
    int ndim;
    int order[OT_MAX_NDIM];
    int n_blocks;
    struct {
        int axis, size;
    } block[OT_FORM_BLOCKS]; // outermost first
};
// Images (n, c, spatial ...) of 3 to 5 axes with the channels innermost; NULL for other ndim.
const ot_layout *ot__layout_channels_last(int ndim);
// With blocks of channels innermost; NULL when there is none of that size (8, 16) or ndim.
const ot_layout *ot__layout_blocked(int ndim, int block);
bool ot__layout_is_channels_last(const ot_layout *layout);
int ot__layout_channel_block(const ot_layout *layout); // 1: not blocked
bool ot__layout_equal(const ot_layout *a, const ot_layout *b);
bool ot__layout_fits(const ot_layout *layout,
                     const ot_shape *shape); // axes, and blocks divide them
// The fewest rows, along the first axis of more than one element, of which any multiple from the
// beginning on is one piece of memory; 0: there are none but all.
int64_t ot__layout_row_unit(const ot_layout *layout, const ot_shape *shape);
int64_t ot__layout_offset(const ot_layout *layout, const ot_shape *shape, const int64_t *index);
// The shape that has the elements in their order when it is row-major: axes as they follow each
// other, blocked ones counted in blocks, then the blocks. It has room for those of images.
void ot__layout_lying_shape(const ot_layout *layout, const ot_shape *shape, ot_shape *lying);
// Which axis of that an axis is, and how many elements are one along it.
int ot__layout_lying_axis(const ot_layout *layout, int axis, int64_t *unit);
// The same elements of `element_size` bytes in another layout; the memories do not overlap.
void ot__layout_convert(void *to, const ot_layout *to_layout, const void *from,
                        const ot_layout *from_layout, const ot_shape *shape, size_t element_size);
// The same in one memory, where one of the layouts is row-major, by way of a buffer for a part of
// it.
void ot__layout_convert_in_place(void *data, const ot_layout *to_layout,
                                 const ot_layout *from_layout, const ot_shape *shape,
                                 size_t element_size, void *buffer);
size_t ot__layout_part_bytes(const ot_layout *layout, const ot_shape *shape, size_t element_size);
// "0231", "0123:1x16"; "" for NULL. As ot__shape_text().
char *ot__layout_text(const ot_layout *layout, char *text, size_t size);

// ---- boxes (box.c) ----

// The elements of a box from one row-major tensor to another of as many axes; the memories do not
// overlap.
void ot__box_copy(void *to, const ot_shape *to_shape, const int64_t *to_offset, const void *from,
                  const ot_shape *from_shape, const int64_t *from_offset, const int64_t *size,
                  size_t element_size);

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

// convert_plain.c: n elements of one type that C has (f32, f64, integers of 8 to 64 bits, bool) in
// another, or the same. NULL: not both types are such.
typedef void (*ot__plain_loop)(void *to, const void *from, int64_t n);
ot__plain_loop ot__plain_loop_of(ot_dtype to, ot_dtype from);

// How Cast says that numbers become 8-bit floats; all zero: as it does when it says nothing.
typedef enum ot__rounding { OT__ROUND_UP, OT__ROUND_DOWN, OT__ROUND_NEAREST } ot__rounding;
typedef struct ot__cast_rule {
    bool unsaturated;      // what is beyond the type becomes infinity, or NaN where it has none
    ot__rounding rounding; // to f8e8m0; of a tie up
} ot__cast_rule;

// Packed types (packed.c): the first element lies in the lowest bits. Any number of elements, a
// multiple of OT__WHOLE_BYTES, fills whole bytes.
enum { OT__WHOLE_BYTES = 8 };
// The bits of elements first .. first + n - 1, each in a byte.
void ot__unpack_bits(uint8_t *to, const void *from, ot_dtype packed, int64_t first, int64_t n);
// The other way. What the last byte has behind the last of them becomes 0, so that elements are
// written in order, and what is written at the same time begins at whole bytes.
void ot__pack_bits(void *to, ot_dtype packed, int64_t first, const uint8_t *from, int64_t n);

// Where the elements of a conversion lie: from number `first` of them on.
typedef struct ot__elements {
    const void *data;
    ot_dtype dtype;
    int64_t first;
} ot__elements;
// ot__convert() of elements in the middle, of packed types too; writes as ot__pack_bits().
bool ot__convert_range(void *to, ot_dtype to_dtype, int64_t to_first, ot__elements from,
                       int64_t count, const ot__cast_rule *rule);
double ot__element_f64(const void *data, ot_dtype dtype, int64_t index); // of a numeric type

// ---- tensors (tensor.c) ----

typedef struct ot__bytes {
    const uint8_t *data;
    size_t size;
} ot__bytes;

// The data of OT_STRING is an array of ot__bytes, each of which points to the characters wherever
// they are: a tensor that owns its data has them too, what a plan computes has not.
struct ot_tensor {
    ot_dtype dtype;
    ot_shape shape;
    size_t n_bytes;
    void *data;
    bool owns_data;
    const ot_layout *layout; // NULL: row-major, as all are but views in ot__session_get_packed()
};
// OT_ERR_INVALID for what no tensor has: strings, negative extents, sizes that overflow.
ot_status ot__tensor_sizes(ot_dtype dtype, const ot_shape *shape, size_t *n_bytes);
// A new tensor with its own copy of the strings and of their characters.
ot_status ot__tensor_copy_strings(const ot_shape *shape, const ot__bytes *strings, ot_tensor **out);
size_t ot__tensor_taken(const ot_tensor *tensor); // of ot__alloc; 0 for NULL
// Its elements, which are no strings, go to `data`, which is not its own.
void ot__tensor_move(ot_tensor *tensor, void *data);
// From now on it is what lies at `data`, which is not its own, in another shape of the same type.
void ot__tensor_become(ot_tensor *tensor, const ot_shape *shape, void *data);
// Constants of model files may lie at any byte; kernels want their type's alignment.
bool ot__tensor_is_aligned(const ot_tensor *tensor);
bool ot__tensor_is_uniform(const ot_tensor *tensor); // all elements are the same; NULL: yes
double ot__tensor_get_f64(const ot_tensor *tensor, int64_t index); // any numeric type
// `n` elements from `first` on; far less an element than one by one.
void ot__tensor_read_f64(const ot_tensor *tensor, int64_t first, int n, double *to);
int64_t ot__tensor_get_i64(const ot_tensor *tensor, int64_t index);
// finite.c: of 16, 32 and 64 bit floats; elements of other types are taken to be finite.
bool ot__tensor_is_finite(const ot_tensor *tensor);
int64_t ot__tensor_find_not_finite(const ot_tensor *tensor); // the first one; -1: none

#endif
