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

// One recurrent layer. Distances are in elements; gates are kept in the order of W.
typedef struct ot__recurrent {
    ot__cell cell;
    int64_t n_gates; // 1, 3 (z, r, h) or 4 (i, o, f, c)
    int64_t steps, batch, inputs, hidden;
    int n_directions;
    bool reversed[OT__MAX_DIRECTIONS];
    // Of one step, row of the batch and direction, in X, Y and the states.
    int64_t x_step, x_row, y_step, y_row, y_direction, state_row, state_direction;
    ot__activation activations[OT__MAX_DIRECTIONS][OT__CELL_ACTIVATIONS]; // f, g, h
    double clip;       // of what goes into activations; 0: none
    bool couples;      // LSTM: the forget gate is 1 - i
    bool resets_after; // GRU: linear_before_reset
} ot__recurrent;

// All directions' tensors. NULL: absent, or not wanted. `gates` (steps, directions, batch, gates *
// hidden) are kept activated, `cells` (steps, directions, batch, hidden) before h; both are zero
// behind the end of a sequence, as y is. w and r are handed to `product` and not read otherwise.
#define OT_DECLARE(suffix, T)                                                                      \
    typedef struct ot__recurrent_math_##suffix {                                                   \
        /* of b from element b_at on */                                                            \
        void (*product)(const void *context, T *y, const T *a, const T *b, int64_t b_at,           \
                        bool accumulates, const ot__gemm *g);                                      \
        void (*activate)(T * y, int64_t n, const ot__activation *f, double clip);                  \
        const void *context;                                                                       \
    } ot__recurrent_math_##suffix;                                                                 \
    extern const ot__recurrent_math_##suffix ot__ref_recurrent_math_##suffix;                      \
    typedef struct ot__recurrent_data_##suffix {                                                   \
        const T *x, *w, *r, *b, *h0, *c0, *p;                                                      \
        const int32_t *lengths;                                                                    \
        T *y, *y_h, *y_c, *gates, *cells;                                                          \
        T *scratch; /* ot__recurrent_scratch() elements */                                         \
    } ot__recurrent_data_##suffix;                                                                 \
    void ot__ref_recurrent_##suffix(const ot__recurrent_data_##suffix *d, const ot__recurrent *p,  \
                                    const ot__recurrent_math_##suffix *math);                      \
    /* Row-major by steps. RNN: `gates` is y. */                                                   \
    typedef struct ot__recurrent_grad_##suffix {                                                   \
        const T *x, *w, *r, *b, *h0, *c0, *p;                                                      \
        const int32_t *lengths;                                                                    \
        const T *y, *gates, *cells, *dy, *dy_h, *dy_c;                                             \
        T *dx, *dw, *dr, *db, *dh0, *dc0, *dp;                                                     \
        T *scratch;       /* ot__recurrent_grad_scratch() elements */                              \
        bool accumulates; /* dw, dr, db and dp: to what is there */                                \
    } ot__recurrent_grad_##suffix;                                                                 \
    void ot__ref_recurrent_grad_##suffix(const ot__recurrent_grad_##suffix *d,                     \
                                         const ot__recurrent *p,                                   \
                                         const ot__recurrent_math_##suffix *math);
OT_KERNEL_FLOATS(OT_DECLARE)
#undef OT_DECLARE

int64_t ot__recurrent_scratch(const ot__recurrent *p);      // -1: more than can be counted
int64_t ot__recurrent_grad_scratch(const ot__recurrent *p); // the same
// Sigmoid and tanh by vector code where there is no clip, else as the reference.
void ot__simd_activate_f32(float *y, int64_t n, const ot__activation *f, double clip);

#endif
