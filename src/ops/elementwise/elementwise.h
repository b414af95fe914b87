// SPDX-License-Identifier: Apache-2.0
// The engine of elementwise operators: broadcasting operands are brought into contiguous pieces of
// a few KiB, each computed by one call, in parallel. Pieces are the same for any number of threads,
// hence so are the bits.
#ifndef OT_OPS_ELEMENTWISE_H
#define OT_OPS_ELEMENTWISE_H

#include "kernels/kernels.h"
#include "op/op.h"

enum { OT__PIECE_BYTES = 4096, OT__MAX_OPERANDS = OT__TILE_INPUTS };

// y[k] = f(x[0][k], x[1][k], ...) for k in 0..n-1. x[i] is NULL for an absent operand; y may be any
// x of its element size.
typedef void (*ot__piece)(void *y, const void *const *x, int64_t n, const void *context);

typedef enum ot__operand_kind {
    OT__OPERAND_ABSENT,
    OT__OPERAND_FULL,   // contiguous, of y's shape
    OT__OPERAND_SCALAR, // one element
    OT__OPERAND_GATHER, // stretched along some axes
} ot__operand_kind;

typedef struct ot__operand {
    ot__operand_kind kind;
    ot_dtype dtype;
    size_t size;                 // bytes of an element
    int n_before;                // operands that are brought together before this one
    int64_t stride[OT_MAX_NDIM]; // along the plan's axes, in elements; the last is 0 or 1
} ot__operand;

typedef struct ot__elementwise {
    int n_operands, ndim;
    int64_t dim[OT_MAX_NDIM]; // y's axes, neighbours merged where all operands allow it
    int64_t count;            // elements in all
    int64_t line;             // elements from whose start pieces begin anew
    int64_t piece;            // elements of a piece; the last of a line may have fewer
    int64_t period;           // elements after which what is stretched comes again along a line,
                              // and which divide a piece; 0: it does not
    int64_t n_in_line;        // pieces
    size_t y_size, gathered_size; // bytes of an element of y, and of the largest operand
    bool converts;                // pieces are f32, and some operand or y is f16 or bf16
    ot_dtype y_dtype;
    ot__operand operand[OT__MAX_OPERANDS];
} ot__elementwise;

void ot__elementwise_plan(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                          int n_operands);
// The same for pieces of f32: operands of f16 and bf16 are converted piece by piece, and y is.
void ot__elementwise_plan_f32(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                              int n_operands);
// The layouts of a kernel that plans so, where operands are stretched: full ones share a layout of
// images, stretched ones are row-major.
void ot__stretched_layouts(ot_prep *p);
void ot__elementwise_run(const ot__elementwise *e, void *y, const void *const *x, ot__piece piece,
                         const void *context);

// Kernels of every operator whose record has a tile: "simd" for f32 by ot_tile.f32, "ref" for all.
// The reference computes f32 by the f64 tile, and the types that tiles lack by converting. With
// more inputs than OT__MAX_OPERANDS the tile is applied again to its own result, as sums and
// extremes allow.
extern const ot_kernel ot__tile_kernels[];
// The same of sums, differences and products, which wrap around: the others compare and choose.
extern const ot_kernel ot__wrapping_kernels[];
ot_status ot__tile_prepare(ot_prep *p);
ot_status ot__tile_prepare_as(ot_prep *p,
                              const ot_tile *tile); // with another tile than the record's
ot_status ot__tile_run_f32(const ot_run *r);
ot_status ot__tile_run_f32_ref(const ot_run *r); // by the f64 tile
ot_status ot__tile_run_f64(const ot_run *r);
ot_status ot__tile_run_i32(const ot_run *r);
ot_status ot__tile_run_i64(const ot_run *r);
// Of every integer type; OT_ERR_INVALID when input 1 has a 0. u64 is prepared by
// ot__pairs_prepare(), with one of the functions.
ot_status ot__tile_run_divided(const ot_run *r);
void ot__divide_u64(void *y, const void *a, const void *b, int64_t n);
void ot__remainder_u64(void *y, const void *a, const void *b, int64_t n);

// Kernels for operators with another element type out than in: `prepare` plans, with the plan first
// in the state, `run` calls ot__pieces_run.
ot_status ot__pieces_prepare(ot_prep *p);
ot_status ot__pieces_prepare_f32(ot_prep *p); // ot__elementwise_plan_f32
void ot__pieces_run(const ot_run *r, ot__piece piece, const void *context);
// The same by a function of one or two operands.
ot_status ot__pairs_prepare(ot_prep *p, ot__pair_function function);
ot_status ot__pairs_run(const ot_run *r);

// ---- what many records share (elementwise_shared.c) ----

extern const ot_port ot__binary_in[], ot__binary_out[]; // A, B -> C, type T
extern const ot_port ot__bool_out[];
extern const ot_port ot__gradient_in_x[], ot__gradient_in_y[]; // dY, X or Y

// The tile of "Add" or "com.microsoft.LeakyReluGrad[0.1]" and its attributes (at most
// OT_TILE_MAX_ATTRS; those not given stay); *at moves behind what is understood.
bool ot__tile_read(const char **at, const ot_tile **tile, float *attrs);
// Known elements of output 0 from those of inputs 0 and 1 (or 0 alone: b is unknown); f works on
// numbers and symbols.
void ot__infer_known(ot_infer *c, int64_t (*f)(ot_infer *c, int64_t a, int64_t b));
// Both: shape and known elements.
void ot__infer_broadcast_known(ot_infer *c, int64_t (*f)(ot_infer *c, int64_t a, int64_t b));
// Output 0 has the shape of input 0, to which input 1, a bias, broadcasts.
void ot__infer_bias(ot_infer *c);
void ot__infer_bias_gradient(ot_infer *c); // inputs dY, X, bias

#endif
