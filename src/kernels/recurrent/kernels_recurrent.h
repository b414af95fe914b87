// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: recurrent layers, forward and back through time. Only
// kernels.h includes this.
#ifndef OT_KERNELS_KERNELS_RECURRENT_H
#define OT_KERNELS_KERNELS_RECURRENT_H

#include "kernels/kernels_nn.h"

typedef enum ot__activation_kind {
    OT__ACTIVATION_AFFINE,
    OT__ACTIVATION_ELU,
    OT__ACTIVATION_HARD_SIGMOID,
    OT__ACTIVATION_LEAKY_RELU,
    OT__ACTIVATION_RELU,
    OT__ACTIVATION_SCALED_TANH,
    OT__ACTIVATION_SIGMOID,
    OT__ACTIVATION_SOFTPLUS,
    OT__ACTIVATION_SOFTSIGN,
    OT__ACTIVATION_TANH,
    OT__ACTIVATION_THRESHOLDED_RELU,
    OT__N_ACTIVATIONS,
} ot__activation_kind;
typedef struct ot__activation {
    ot__activation_kind kind;
    double alpha, beta;
} ot__activation;

typedef enum ot__cell { OT__CELL_RNN, OT__CELL_GRU, OT__CELL_LSTM } ot__cell;
enum { OT__MAX_GATES = 4, OT__MAX_DIRECTIONS = 2, OT__CELL_ACTIVATIONS = 3 };

// One recurrent layer. Distances are in elements; gates are kept in the order of W and R, which may
// be another than that of B and P: gate g of ONNX's order is the gate_at[g]-th of them. Of a GRU
// the candidate is the last.
typedef struct ot__recurrent {
    ot__cell cell;
    int64_t n_gates; // 1, 3 (z, r, h) or 4 (i, o, f, c)
    int64_t gate_at[OT__MAX_GATES];
    int64_t steps, batch, inputs, hidden;
    int64_t table; // rows of X where it is a table of inputs; 0: X is (steps, batch, inputs)
    int n_directions;
    bool reversed[OT__MAX_DIRECTIONS];
    // Of one step, row of the batch and direction, in X, Y and the states.
    int64_t x_step, x_row, y_step, y_row, y_direction, state_row, state_direction;
    ot__activation activations[OT__MAX_DIRECTIONS][OT__CELL_ACTIVATIONS]; // f, g, h
    double clip;       // of what goes into activations; 0: none
    bool couples;      // LSTM: the forget gate is 1 - i
    bool resets_after; // GRU: linear_before_reset
} ot__recurrent;

// What the derivative of an activation is taken from: its values where its input was cut.
typedef struct ot__slope {
    const ot__activation *f;
    double low, high;
    bool is_clipped;
} ot__slope;

// ---- cells: `n` units of one row of the batch in one step ----
//
// Gates of a unit are p->hidden elements apart (ot__gate_of), as the parts of `peephole` are. NULL:
// absent.
#define OT_DECLARE(suffix, T)                                                                      \
    typedef struct ot__cell_row_##suffix {                                                         \
        const ot__recurrent *p;                                                                    \
        const ot__activation *f;                                                                   \
        void (*activate)(T * y, int64_t n, const ot__activation *f, double clip);                  \
        int64_t n;                                                                                 \
        T *gates; /* sums of products, which become activated when `bias` is added */              \
        const T *bias, *h_before, *peephole, *reset_bias;                                          \
        T *h, *c, *product; /* c: of the step before, becomes this one's */                        \
    } ot__cell_row_##suffix;                                                                       \
    typedef struct ot__cell_row_back_##suffix {                                                    \
        const ot__recurrent *p;                                                                    \
        const ot__slope *slopes;                                                                   \
        void (*activate)(T * y, int64_t n, const ot__activation *f, double clip);                  \
        int64_t n;                                                                                 \
        const T *gates, *c, *c_before, *h_before, *peephole, *linear, *product;                    \
        T *pre, *dh, *dc, *reset; /* pre: gradients of what was activated */                       \
    } ot__cell_row_back_##suffix;                                                                  \
    typedef struct ot__cells_##suffix {                                                            \
        void (*lstm)(const ot__cell_row_##suffix *r);                                              \
        /* GRU: z and r, and then either `product` = r * h_before or, where that is R's product    \
         * for the candidate, r times it is added to the candidate's gate. */                      \
        void (*reset)(const ot__cell_row_##suffix *r);                                             \
        void (*gru)(const ot__cell_row_##suffix *r); /* the candidate and h */                     \
        void (*rnn)(const ot__cell_row_##suffix *r);                                               \
        /* dh and dc: of h and c after the step become what reaches those before it without R. */  \
        void (*lstm_back)(const ot__cell_row_back_##suffix *r);                                    \
        /* r and its gradient wait for R's product, unless it is there (`linear`). */              \
        void (*gru_back)(const ot__cell_row_back_##suffix *r);                                     \
        void (*reset_back)(const ot__cell_row_back_##suffix *r); /* by the gradient `product` */   \
        void (*rnn_back)(const ot__cell_row_back_##suffix *r);   /* `gates` is y */                \
        /* y (columns) [+]= sums over the rows of x, which are x_row apart, in f64 */              \
        void (*sum_columns)(T * y, const T *x, int64_t x_row, int64_t rows, int64_t columns,       \
                            bool accumulates);                                                     \
    } ot__cells_##suffix;                                                                          \
    extern const ot__cells_##suffix ot__ref_cells_##suffix;
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// ---- layers ----
//
// All directions' tensors. NULL: absent, or not wanted. `gates` (steps, directions, batch, gates *
// hidden) are kept activated, `cells` (steps, directions, batch, hidden) before h; both are zero
// behind the end of a sequence, as y is. Where X is a table (table, inputs), `rows` (steps, batch)
// are those of its rows that the steps read, and dx is of the table.
#define OT_DECLARE(suffix, T)                                                                      \
    typedef struct ot__recurrent_data_##suffix {                                                   \
        const T *x, *w, *r, *b, *h0, *c0, *p;                                                      \
        const int64_t *rows;                                                                       \
        const int32_t *lengths;                                                                    \
        T *y, *y_h, *y_c, *gates, *cells;                                                          \
        T *scratch; /* ot__recurrent_scratch() elements */                                         \
    } ot__recurrent_data_##suffix;                                                                 \
    void ot__ref_recurrent_##suffix(const ot__recurrent_data_##suffix *d, const ot__recurrent *p); \
    /* Row-major by steps. RNN: `gates` is y. */                                                   \
    typedef struct ot__recurrent_grad_##suffix {                                                   \
        const T *x, *w, *r, *b, *h0, *c0, *p;                                                      \
        const int64_t *rows;                                                                       \
        const int32_t *lengths;                                                                    \
        const T *y, *gates, *cells, *dy, *dy_h, *dy_c;                                             \
        T *dx, *dw, *dr, *db, *dh0, *dc0, *dp;                                                     \
        T *scratch;       /* ot__recurrent_grad_scratch() elements */                              \
        bool accumulates; /* dw, dr, db and dp: to what is there */                                \
    } ot__recurrent_grad_##suffix;                                                                 \
    void ot__ref_recurrent_grad_##suffix(const ot__recurrent_grad_##suffix *d,                     \
                                         const ot__recurrent *p);                                  \
    /* y = f(y), the input cut to -clip .. clip; 0: not cut. */                                    \
    void ot__ref_activate_##suffix(T *y, int64_t n, const ot__activation *f, double clip);         \
    ot__slope ot__ref_slope_##suffix(const ot__activation *f, double clip);                        \
    /* The bias of all gates, in W's order, of one direction's part of B. */                       \
    void ot__ref_join_bias_##suffix(T *bias, const T *b, const ot__recurrent *p);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

// Where ONNX's gate g of units is, in elements from W's first.
static inline int64_t ot__gate_of(const ot__recurrent *p, int64_t gate)
{
    return p->gate_at[gate] * p->hidden;
}
int64_t ot__recurrent_scratch(const ot__recurrent *p);      // -1: more than can be counted
int64_t ot__recurrent_grad_scratch(const ot__recurrent *p); // the same

// ---- recurrent.c, recurrent_grad.c: the same by vector code ----
//
// The products with X and W are made for many steps at once, as those of weight gradients are; of a
// table once for each of its rows, however many steps read them.
// R is packed once; the units of the state are shared out among the threads, which meet once a
// step. Sums do not depend on the number of threads.

typedef ot__cells_f32 ot__cells; // simd_recurrent.c: where the options are the usual ones

typedef struct ot__recurrent_means {
    const ot__gemm_kernel *kernel;
    const ot__cells *cells;
    int n_threads;
    ot_dtype w_type, r_type; // f32, f16 or bf16, whatever the pointers say
} ot__recurrent_means;

// Floats; -1: more than can be counted. `keeps`: gates are asked for.
int64_t ot__simd_recurrent_scratch(const ot__recurrent *p, const ot__recurrent_means *by,
                                   bool keeps);
int64_t ot__simd_recurrent_grad_scratch(const ot__recurrent *p, const ot__recurrent_means *by);
void ot__simd_recurrent(const ot__recurrent_data_f32 *d, const ot__recurrent *p,
                        const ot__recurrent_means *by);
void ot__simd_recurrent_grad(const ot__recurrent_grad_f32 *d, const ot__recurrent *p,
                             const ot__recurrent_means *by);

#endif
