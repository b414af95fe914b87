// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: products, normalisation over rows, losses, dropout,
// optimizers. Only kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_NN_H
#define OT_KERNELS_KERNELS_NN_H

#include "tensor/tensor.h"

// X(suffix, element type): every loop below exists for both.
#define OT_KERNEL_FLOATS(X)                                                                        \
    X(f32, float)                                                                                  \
    X(f64, double)

// ---- ref_gemm.c ----

// y (m, n; rows y_row apart) = alpha * a (m, k) * b (k, n) + beta * c. a and b are read with any
// strides, c too (0: broadcast); c NULL: none. Sums in f64, to which `adds` adds what is in y.
typedef struct ot__gemm {
    int64_t m, n, k;
    double alpha, beta;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column, y_row;
    ot_dtype a_type, b_type, c_type, y_type; // of vector code: f16 or bf16; else f32
} ot__gemm;
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_gemm_##suffix(T *y, const T *a, const T *b, const T *c, const ot__gemm *g,        \
                               bool accumulates);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- simd_gemm.c, gemm_plan.c, gemm_few.c, gemm.c: the same product, sums in f32 in the order of
// k, or lane by lane ----
//
// Operands that the innermost loop cannot read where they lie are copied block by block into the
// order it reads them in, in f32 whatever they are. Threads share y, never k, so their number does
// not change a bit.

// What is done to each element when its sum is complete: y = function(y, other), as a tile.
typedef struct ot__epilogue {
    void (*function)(float *y, const float *const *x, int64_t n, const float *attrs); // NULL: none
    const float *attrs;
    const void *other; // x[1], where y is and of its type; NULL: none
} ot__epilogue;

// A product ready to run, written by ot__gemm_plan. Transposed where that makes copying cheaper, so
// that y has a stride along both axes.
typedef struct ot__gemm_plan {
    ot__gemm g;
    int64_t y_column;
    bool is_swapped;              // a and b have changed places
    bool by_dots;                 // lanes go along k
    bool by_rows;                 // rows of b are added to y one after the other
    int64_t depth, width;         // of blocks, at most
    int64_t a_rows;               // of a that are copied by columns at a time, at most; 0: none
    int64_t a_floats;             // of the copy of a, where scratch begins; 0: a is read
    bool copies_a_in_tiles;       // by the tiles of the first panel, while they multiply
    bool reads_b, copies_b;       // whole panels of b where it lies; and copies them meanwhile
    bool goes_down;               // tiles are computed panel by panel of b
    bool is_sliced;               // b: blocks of few whole rows are read where they lie
    bool walks_a, walks_b;        // rows of a are fetched by the tiles above them, panels or rows
                                  // of b while those before are multiplied
    bool fetches_lines;           // each tile those of y that it writes, and of a those below
    bool copies_ahead;            // tiles copy the panel of b that comes next
    bool fetches_panels;          // the tile that copies one the next
    bool is_one_panel;            // in the copy of b: at a time, or at the end
    bool takes_widest;            // tiles are of the most vectors where those divide a block of b
    int n_row_parts, n_col_parts; // of y, for threads, in
    int64_t row_cut, col_cut;     // multiples of so many rows and columns
    // Rows whose results are complete in scratch before they are rounded; 0: y is where they sum
    // up.
    int64_t staged_rows, stage_at; // the latter in floats
    size_t scratch_bytes;          // per thread
} ot__gemm_plan;
typedef struct ot__gemm_data {
    void *y;
    const void *a, *b, *c; // as in ot__gemm, in its order
    bool accumulates;      // to what is in y
    ot__epilogue epilogue;
} ot__gemm_data;
typedef struct ot__gemm_part {
    int64_t row, row_end, column, column_end; // of y
} ot__gemm_part;

// A product whose b are panels, one after the other, that were packed before.
typedef struct ot__gemm_panels {
    int64_t rows, columns, depth; // columns: a multiple of panel_columns, or less than that
    bool accumulates;
} ot__gemm_panels;

// One table per instruction set.
typedef struct ot__gemm_kernel {
    // One part by one thread. `scratch` is 64-byte aligned.
    void (*run)(const ot__gemm_plan *plan, const ot__gemm_data *data, const ot__gemm_part *part,
                float *scratch);
    // A panel of b (g's k, n, strides and type): at most panel_columns columns in the order in
    // which tiles read them. It takes k * panel_columns floats.
    void (*pack)(float *to, const void *b, const ot__gemm *g);
    // y = a * panels, or added to y; rows of f32.
    void (*multiply)(float *y, int64_t y_row, const float *a, int64_t a_row, const float *panels,
                     const ot__gemm_panels *p);
    int64_t lanes, tile_rows, tile_columns, depth, width; // of the innermost loop and its blocks
    int64_t most_columns;   // of a tile that has all of y's, and of widest tiles, which have
    int64_t rows_of_widest; // at most so many rows
    int64_t panel_columns;
    // Lanes go along k where rows or columns would fill at most so many eighths of those of their
    // vectors; 0: never. Also where they fill one vector and k is at least full_dots_depth.
    int64_t dots_eighths, full_dots_depth;
    int64_t dots_depth, dots_row; // of a block then, and floats of a line of it that is copied
    // Rows of b are added to y one after the other where y has at most so many rows, as many floats
    // of them at a time; or at most rows_passed where b is far and its rows are long, or
    // rows_passed_clashing where they fall on the same lines of the first cache; and on Zen 3 and 4
    // where k is at most rows_depth and y has rows_columns, or twice that and four times as many,
    // and fewer elements than rows_small, elsewhere at most wide_depth and eight times as many.
    int64_t rows_of_y, rows_floats, rows_passed, rows_passed_clashing;
    int64_t rows_depth, rows_columns, rows_small, wide_depth;
    int64_t rows_scratch;               // floats of them while k passes by
    int64_t columns_depth, large_depth; // of blocks where columns of a are contiguous
    int64_t most_depth, depth_of_one;   // where y has fewer columns than a block, or than a tile
    int64_t most_width;                 // where the second cache is large
    int64_t a_row;                      // floats of a row of a tile that is copied by rows
    int64_t few_panels;                 // of y, and
    int64_t few_rows, few_columns;      // of a do not pay for copying it by columns
    int64_t rows_reading;  // that do not pay for copying b, where its rows do not fall on the same
    int64_t rows_clashing; // lines of the second cache, and where they do
    int64_t rows_loose;    // where they do not begin with lines, of a b larger than that cache
    int64_t rows_sliced;   // of a, at most, with which b is sliced
    int64_t rows_down;     // of a, at most, with which tiles go down the panels of a large b
    // With at most so many elements of k, and at least so many columns or twice as many as rows,
    // tiles go along a block of b, else down a block of a, of which so many rows are copied.
    int64_t shallow, shallow_columns, most_copied_rows;
    bool copies_ahead;                 // tiles can copy the panel of b that comes next
    bool fetches_on_zen;               // 3 and 4: tiles fetch their lines there, too
    int64_t staged_rows, staged_width; // at most; the former where k has several blocks
} ot__gemm_kernel;

// m, n and k are at least 1; of the strides of a and b one each is 1. n_batches products are to be
// run: whole ones are shared out before parts of one.
void ot__gemm_plan_make(ot__gemm_plan *plan, const ot__gemm_kernel *kernel, const ot__gemm *g,
                        int64_t n_batches, int n_threads);
// Bytes that no such plan exceeds while y and c are f32, whatever its extents, strides and threads.
size_t ot__gemm_most_scratch(const ot__gemm_kernel *kernel);
// n_batches products at the given distances (in elements), in one parallel region.
typedef struct ot__gemm_batches {
    int64_t n_batches;
    void (*at)(const void *context, int64_t batch, ot__gemm_data *data);
    const void *context;
} ot__gemm_batches;
void ot__gemm_run(const ot__gemm_kernel *kernel, const ot__gemm_plan *plan,
                  const ot__gemm_batches *batches, float *scratch, int n_threads);

// ---- ref_softmax.c ----

typedef struct ot__lines {
    int64_t outer, n, inner; // of a tensor; lines are along the middle axis
} ot__lines;
#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_softmax_##suffix(T *y, const T *x, const ot__lines *l);                           \
    void ot__ref_log_softmax_##suffix(T *y, const T *x, const ot__lines *l);                       \
    /* dx = y * (dy - sum(y * dy)) */                                                              \
    void ot__ref_softmax_grad_##suffix(T *dx, const T *dy, const T *y, const ot__lines *l);        \
    /* dx = dy - exp(y) * sum(dy) */                                                               \
    void ot__ref_log_softmax_grad_##suffix(T *dx, const T *dy, const T *y, const ot__lines *l);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_hardmax.c ----

// 1 at the first of the greatest elements of a line, else 0; NaN is greater than all. y may be x.
#define OT_DECLARE(suffix, T) void ot__ref_hardmax_##suffix(T *y, const T *x, const ot__lines *l);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_nll.c: negative log likelihood of log_prob (n, classes, inner) and labels (n, inner)
// ----

typedef enum ot__loss_reduction { OT__LOSS_NONE, OT__LOSS_SUM, OT__LOSS_MEAN } ot__loss_reduction;
typedef struct ot__nll {
    int64_t n, classes, inner;
    ot__loss_reduction reduction;
    bool has_ignore;
    int64_t ignore;
    size_t label_size; // bytes: labels are i32 or i64
} ot__nll;
static inline int64_t ot__ref_nll_label(const void *labels, const ot__nll *p, int64_t i)
{
    return p->label_size == sizeof(int32_t) ? ((const int32_t *)labels)[i]
                                            : ((const int64_t *)labels)[i];
}

static inline bool ot__ref_nll_ignores(const ot__nll *p, int64_t label)
{
    return p->has_ignore && label == p->ignore;
}

// Position of the first label outside 0..classes-1 that is not ignored, or -1.
int64_t ot__ref_nll_check(const void *labels, const ot__nll *p);
#define OT_DECLARE(suffix, T)                                                                      \
    /* loss (n, inner) or one element; weight (classes) or NULL */                                 \
    void ot__ref_nll_##suffix(T *loss, const T *log_prob, const void *labels, const T *weight,     \
                              const ot__nll *p);                                                   \
    /* what of dy each label gets in a reduced loss, before its weight */                          \
    double ot__ref_nll_share_##suffix(const T *dy, const void *labels, const T *weight,            \
                                      const ot__nll *p);                                           \
    /* dx = (softmax ? exp(log_prob) : 0 minus one-hot) * weight * share of dy; log_prob is not    \
     * read without softmax */                                                                     \
    void ot__ref_nll_grad_##suffix(T *dx, const T *dy, const T *log_prob, const void *labels,      \
                                   const T *weight, bool softmax, const ot__nll *p);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_random.c: element i of y from draw i of the key ----

// Mean and standard deviation, or lower and upper bound.
typedef struct ot__distribution {
    bool is_normal;
    double a, b;
} ot__distribution;
void ot__ref_random(void *y, ot_dtype dtype, ot__distribution distribution, int64_t count,
                    ot__rng_key key); // y of any float type
#define OT_DECLARE(suffix, T)                                                                      \
    /* sums (batch, n): running sums of exp(x), over that of the greatest of a row; n >= 1 */      \
    void ot__ref_weight_sums_##suffix(double *sums, const void *x, int64_t batch, int64_t n);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE
// y = `one`, of `size` bytes, with the probability x (f32 or f64), else 0.
void ot__ref_bernoulli(void *y, const void *x, ot_dtype dtype, const void *one, size_t size,
                       int64_t count, ot__rng_key key);
// y (batch, n_samples), of i32 or i64: classes drawn by their weights, whose sums are above 0.
void ot__ref_multinomial(void *y, ot_dtype dtype, const double *sums, int64_t batch,
                         int64_t n_classes, int64_t n_samples, ot__rng_key key);

// ---- ref_dropout.c ----

// mask[i] = draw first + i of the key is kept, with probability 1 - ratio: on all threads; on one.
void ot__ref_dropout_mask(uint8_t *mask, int64_t count, double ratio, ot__rng_key key);
void ot__dropout_draw(uint8_t *mask, int64_t first, int64_t count, double ratio, ot__rng_key key);
#define OT_DECLARE(suffix, T)                                                                      \
    /* y = mask ? x * scale : 0 */                                                                 \
    void ot__ref_mask_scale_##suffix(T *y, const T *x, const uint8_t *mask, double scale,          \
                                     int64_t count);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_accumulate.c: gradients of one tensor ----

#define OT_DECLARE(suffix, T)                                                                      \
    void ot__ref_scale_##suffix(T *x, int64_t n, double factor);                                   \
    void ot__ref_accumulate_##suffix(T *buffer, const T *value, int64_t n); /* buffer += value */
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- ref_optimizer.c: updates of n elements of one tensor, f32 also per instruction set
// (simd_optimizer.c) ----

// What is the same for all elements of a tensor.
typedef struct ot__update_row {
    double lr, scale;   // scale: what the gradient is multiplied by
    double step;        // number of this update
    double c1, c2;      // corrections of young moments, 1 - beta^step, or 1
    const float *hyper; // in the order of the record's attributes
} ot__update_row;

// A loop for each formula: parameter, what the optimizer keeps (NULL: nothing), gradient.
#define OT_UPDATE_LOOPS(X, type)                                                                   \
    X(type, adagrad)                                                                               \
    X(type, adam)                                                                                  \
    X(type, average)                                                                               \
    X(type, lamb)                                                                                  \
    X(type, lion)                                                                                  \
    X(type, rmsprop)                                                                               \
    X(type, sgd)
#define OT_UPDATE_MEMBER(type, name) type name;
#define OT_DECLARE(suffix, T)                                                                      \
    typedef void (*ot__update_##suffix)(T * w, T * slot0, T * slot1, const T *g, int64_t n,        \
                                        const ot__update_row *row);                                \
    /* sums[0] of squares of w, sums[1] of those of the direction */                               \
    typedef void (*ot__update_norms_##suffix)(const T *w, const T *slot0, const T *slot1,          \
                                              const T *g, int64_t n, const ot__update_row *row,    \
                                              double *sums);                                       \
    /* d: the direction, 0 where it is not finite */                                               \
    typedef void (*ot__update_direction_##suffix)(T * d, const T *w, const T *slot0,               \
                                                  const T *slot1, const T *g, int64_t n,           \
                                                  const ot__update_row *row);                      \
    typedef struct ot__updates_##suffix {                                                          \
        OT_UPDATE_LOOPS(OT_UPDATE_MEMBER, ot__update_##suffix)                                     \
        ot__update_norms_##suffix lamb_norms;                                                      \
        ot__update_direction_##suffix lamb_direction;                                              \
        double (*sum_square)(const T *x, int64_t n);                                               \
    } ot__updates_##suffix;                                                                        \
    extern const ot__updates_##suffix ot__ref_updates_##suffix;
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE
#undef OT_UPDATE_MEMBER
typedef ot__updates_f32 ot__updates;

#endif
