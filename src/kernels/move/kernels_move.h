// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: moving elements, indices. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_MOVE_H
#define OT_KERNELS_KERNELS_MOVE_H

#include "tensor/tensor.h"

// ---- ref_strided.c: copies between strided arrays ----

enum { OT__STRIDED_MAX_NDIM = 2 * OT_MAX_NDIM };
// y[y_offset + sum of i[k] * y_stride[k]] = x[x_offset + sum of i[k] * x_stride[k]] for all 0 <=
// i[k] < dim[k]. Offsets and strides count elements of `size` bytes (1, 2, 4, 8 or 16). No element
// of y is written twice.
typedef struct ot__strided {
    int ndim;
    int64_t dim[OT__STRIDED_MAX_NDIM], x_stride[OT__STRIDED_MAX_NDIM],
        y_stride[OT__STRIDED_MAX_NDIM];
    int64_t x_offset, y_offset;
    size_t size;
} ot__strided;
void ot__strided_add_axis(ot__strided *s, int64_t dim, int64_t x_stride, int64_t y_stride);
void ot__strided_simplify(ot__strided *s); // the same copy with as few axes as possible
typedef void (*ot__strided_function)(void *y, const void *x, const ot__strided *s);
void ot__ref_strided_copy(void *y, const void *x, const ot__strided *s); // s simplified

// ---- strided.c: the same by vector code ----

void ot__simd_strided_copy(void *y, const void *x, const ot__strided *s); // s simplified

// y[r * y_row + c * y_col] = x[r * x_row + c * x_col]: one table per instruction set
// (simd_moves.c), each loop by element size 1, 2, 4, 8 and 16 for one kind of strides, which count
// elements.
typedef struct ot__move {
    void *y;
    const void *x;
    int64_t rows, cols, y_row, y_col, x_row, x_col;
} ot__move;
typedef void (*ot__move_function)(const ot__move *piece);
enum { OT__MOVE_4 = 2, OT__MOVE_8, OT__MOVE_SIZES = 5 };
typedef struct ot__moves {
    ot__move_function copy_rows;                 // y_col = x_col = 1; elements are bytes
    ot__move_function fill_rows[OT__MOVE_SIZES]; // y_col = 1, x_col = 0
    ot__move_function transpose[OT__MOVE_SIZES]; // y_col = 1, x_row = 1
    ot__move_function steps[OT__MOVE_SIZES];     // any
} ot__moves;

// y (rows, y_row floats apart; columns) = columns of x, which are x_column floats apart.
static inline void ot__transpose_floats(const ot__moves *moves, float *y, int64_t y_row,
                                        const float *x, int64_t x_column, int64_t rows,
                                        int64_t columns)
{
    const ot__move move = {.y = y,
                           .x = x,
                           .rows = rows,
                           .cols = columns,
                           .y_row = y_row,
                           .y_col = 1,
                           .x_row = 1,
                           .x_col = x_column};

    moves->transpose[OT__MOVE_4](&move);
}

// ---- ref_fill.c: one value in every element ----

void ot__ref_fill(void *y, const void *value, int64_t n, size_t size);
void ot__ref_copy_bytes(void *y, const void *x, size_t n_bytes); // y may be x

// ---- ref_index.c: indices to offsets ----
//
// offset[i] is the first element, in the indexed array, of the i-th slice that the indices name.
// Indices are i32 or i64 (index_size 4 or 8) and may count from the end. Return -1, or the position
// of the first index out of range.

int64_t ot__ref_index_get(const void *indices, size_t index_size, int64_t i);
// Slices (outer, n) of an array (outer, extent, inner); each has `inner` elements.
int64_t ot__ref_index_axis(int64_t *offset, const void *indices, size_t index_size, int64_t outer,
                           int64_t extent, int64_t n, int64_t inner);
// One element for every element of `index`, whose shape has the rank of `data`.
int64_t ot__ref_index_elements(int64_t *offset, const void *indices, size_t index_size,
                               const ot_shape *data, const ot_shape *index, int axis);
// indices (batch, n, depth): each tuple names a slice of the batch's array, from axis batch_dims of
// `data` on.
int64_t ot__ref_index_nd(int64_t *offset, const int64_t *indices, const ot_shape *data,
                         int batch_dims, int64_t batch, int64_t n, int depth);

// ---- ref_select.c: what a condition chooses ----

// Slices of (outer, extent, inner) where the condition is true; its n elements are for the first
// ones along `extent`.
int64_t ot__ref_count_true(const void *condition, int64_t n);
void ot__ref_true_offsets(int64_t *offset, const void *condition, int64_t n, int64_t outer,
                          int64_t extent, int64_t inner);
// y (axes, count): indices of the elements of x that are not 0, of which there are `count`; numbers
// of 1 to 8 bytes and bool.
int64_t ot__ref_count_nonzero(const void *x, ot_dtype dtype, int64_t n);
void ot__ref_nonzero(int64_t *y, const void *x, ot_dtype dtype, const ot_shape *shape,
                     int64_t count);

// ---- ref_unique.c: which slices differ ----

// The n slices of x (outer, n, inner) along the middle axis; numbers and bool.
typedef struct ot__slices {
    const void *x;
    ot_dtype dtype;
    int64_t outer, n, inner;
} ot__slices;
// Sorts them: order (n). Gives how many differ from each other; `spare` (n) is overwritten.
int64_t ot__ref_unique_sort(const ot__slices *s, int64_t *order, int64_t *spare);
// Then, as is_sorted says or in the order of x: first (count), the first of each group of equal
// ones, and group (n), which one each is in. `spare` (n) is overwritten.
void ot__ref_unique_groups(const ot__slices *s, const int64_t *order, bool is_sorted,
                           int64_t *first, int64_t *group, int64_t *spare);

// ---- ref_nms.c ----

// Boxes of four numbers (batch, n_boxes), scores (batch, n_classes, n_boxes).
typedef struct ot__nms {
    int64_t batch, n_classes, n_boxes;
    int64_t most;          // boxes of a class
    float iou_threshold;   // what overlaps a better box by more is left out
    float score_threshold; // and so is what is not above this
    bool is_center;        // boxes are center x, y, width, height, not y, x, y, x of two corners
} ot__nms;
// selected (room, 3): batch, class and box, as far as there is room. Gives how many there are;
// scratch has 2 * n_boxes.
int64_t ot__ref_nms(int64_t *selected, int64_t room, const float *boxes, const float *scores,
                    const ot__nms *p, int64_t *scratch);

// ---- ref_gather.c: reading slices ----

// y (n, slice) = x[offset[i] ...]; slice in elements of `size` bytes.
void ot__ref_gather(void *y, const void *x, const int64_t *offset, int64_t n, int64_t slice,
                    size_t size);

// ---- ref_scatter.c: writing slices, in the order of i wherever two meet; the same bits for any
// number of threads ----

typedef enum ot__scatter_op {
    OT__SCATTER_NONE,
    OT__SCATTER_ADD,
    OT__SCATTER_MUL,
    OT__SCATTER_MIN,
    OT__SCATTER_MAX,
} ot__scatter_op;
// y = x, then y[offset[i] + j] = op(y[offset[i] + j], u[i * slice + j]); y and x have `count`
// elements. y may be x.
typedef void (*ot__scatter_function)(void *y, const void *x, const int64_t *offset, const void *u,
                                     int64_t n, int64_t slice, int64_t count, ot__scatter_op op);
ot__scatter_function ot__ref_scatter_find(ot_dtype dtype,
                                          ot__scatter_op op); // NULL: not for this type

// ---- index_sums.c: slices along one axis, added up where indices name them; the same bits for any
// number of threads ----

// Elements of slices that follow each other both in a line of y, from `to` on, and in one of u.
typedef struct ot__index_run {
    int64_t to, from, n;
} ot__index_run;
typedef struct ot__index_sum {
    void *y;       // (lines, y_line)
    const void *u; // (lines, u_line)
    const ot__index_run *runs;
    int64_t n_runs, y_line, u_line;
    bool adds; // to what is in y, which is replaced otherwise
} ot__index_sum;
// All but y, u and adds, for n indices to an axis of `extent` slices with `inner` elements each;
// `runs` has room for n. Returns -1, or the position of the first index out of range.
int64_t ot__index_sum_runs(ot__index_sum *s, ot__index_run *runs, const void *indices,
                           size_t index_size, int64_t n, int64_t extent, int64_t inner);
void ot__index_sum_add(const ot__index_sum *s, int64_t lines, ot_dtype dtype); // f32 or f64

// Elements [first, last) of y: one table per instruction set (simd_index_sums.c). The context is an
// ot__index_sum.
typedef struct ot__index_sums {
    void (*f32)(void *context, int64_t first, int64_t last);
    void (*f64)(void *context, int64_t first, int64_t last);
} ot__index_sums;

// ---- index_lines.c: single elements that indices along one axis name ----

// The indices' shape, and that of what they index, with as few axes as possible.
typedef struct ot__index_lines {
    int ndim, axis;
    int64_t data[OT_MAX_NDIM], index[OT_MAX_NDIM];
    size_t size, index_size; // bytes of an element, of an index (4 or 8)
} ot__index_lines;
// No axis of `index` but `axis` is longer than that of `data`. Leaves the sizes to the caller.
void ot__index_lines_init(ot__index_lines *e, const ot_shape *data, const ot_shape *index,
                          int axis);
// Both return -1, or the position of the first index out of range; then y is not complete.
int64_t ot__index_lines_gather(void *y, const void *x, const void *indices,
                               const ot__index_lines *e);
// u's elements are put into y in their order wherever two meet. y is a copy of x, or zeros where x
// is NULL; it may be x.
typedef void (*ot__put_function)(void *y, const void *u, const int64_t *offset, int64_t n,
                                 ot__scatter_op op);
ot__put_function ot__index_lines_find_put(ot_dtype dtype,
                                          ot__scatter_op op); // NULL: not for this type
int64_t ot__index_lines_scatter(void *y, const void *x, const void *indices, const void *u,
                                const ot__index_lines *e, ot__put_function put, ot__scatter_op op);

// ---- ref_pad.c ----

// y (dim[0], ..., dim[ndim - 1]) from x by one table an axis: map[axis][i] is the index in x, or -1
// for `value`.
typedef struct ot__pad {
    int ndim;
    int64_t dim[OT_MAX_NDIM], x_stride[OT_MAX_NDIM];
    const int64_t *map[OT_MAX_NDIM];
    size_t size;
} ot__pad;
typedef enum ot__pad_mode {
    OT__PAD_CONSTANT,
    OT__PAD_REFLECT,
    OT__PAD_EDGE,
    OT__PAD_WRAP,
} ot__pad_mode;
// The table of one axis: begin, then (after cropping where negative) the `extent` elements of x,
// then end.
void ot__ref_pad_map(int64_t *map, int64_t extent, int64_t begin, int64_t end, ot__pad_mode mode);
void ot__ref_pad(void *y, const void *x, const void *value, const ot__pad *pad);

// ---- ref_trilu.c ----

// y, x (batch, rows, cols): x where col - row >= k (upper) or <= k (lower), else 0. y may be x.
void ot__ref_trilu(void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k,
                   bool is_upper, size_t size);

// ---- ref_one_hot.c: elements of `size` bytes ----

// y (outer, depth, inner): `on` where depth is index (outer, inner), else `off`; an index below 0
// counts from the end, and one out of range has no `on`.
void ot__ref_one_hot(void *y, const int64_t *index, const void *off, const void *on, int64_t outer,
                     int64_t depth, int64_t inner, size_t size);
// y (rows, cols): `one` where col - row is `diagonal`, which is in -rows .. cols, else 0.
void ot__ref_eye(void *y, const void *one, int64_t rows, int64_t cols, int64_t diagonal,
                 size_t size);

// ---- ref_range.c ----

// y[i] = start + i * delta, of an integer or floating-point type
void ot__ref_range_ints(void *y, ot_dtype dtype, int64_t start, int64_t delta, int64_t n);
void ot__ref_range_reals(void *y, ot_dtype dtype, double start, double delta, int64_t n);

#endif
