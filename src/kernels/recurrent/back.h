// SPDX-License-Identifier: Apache-2.0
// Part of recurrent_grad.c and weights_back.c: one direction of a layer while it goes back.
#ifndef OT_KERNELS_RECURRENT_BACK_H
#define OT_KERNELS_RECURRENT_BACK_H

#include "kernels/recurrent/steps.h"

// Everything in scratch; what has steps, of those at hand.
typedef struct ot__back_memory {
    float *pre;             // gradients of what was activated (steps, batch, gates)
    float *before;          // the states that the steps began with (steps, batch, hidden)
    float *reset;           // GRU: r * before; with resets_after the gradient of R's product
    float *linear;          // GRU with resets_after: R's product for h
    float *of_rows;         // `pre` of all steps, summed by rows of the table (table, gates)
    float *dh, *dc;         // (batch, hidden)
    float *product, *zeros; // the same; (hidden)
    float *panels, *for_gemm;
} ot__back_memory;

// One direction while it goes back.
typedef struct ot__back_pass {
    const ot__recurrent_grad_f32 *d;
    const ot__recurrent *p;
    const ot__recurrent_means *by;
    int direction;
    ot__slope slopes[OT__CELL_ACTIVATIONS];
    ot__back_memory m;
    ot__step_cut cut;
    ot__state_product with_r;
    int64_t pitch, pre_pitch; // of rows of states and of `pre`
    int64_t first, n_steps;   // the steps at hand
    bool accumulates;         // weight gradients: to those of the steps after them
    int64_t step;
    int64_t pending; // the step whose gradients have not reached dh through R; or NO_STEP
} ot__back_pass;

// Where the step's row is in what is kept of all steps.
static inline int64_t ot__kept_row(const ot__back_pass *s, int64_t step, int64_t row)
{
    return (step * s->p->n_directions + s->direction) * s->p->batch + row;
}

// The row of h or c that a step began with.
const float *ot__state_before(const ot__back_pass *s, const float *all, const float *first,
                              int64_t step, int64_t row);
// weights_back.c: the gradients of weights and of X, of the steps at hand.
void ot__weights_back(ot__back_pass *s);
// Where X is a table they wait until all steps have been: then of all at once.
void ot__table_back(ot__back_pass *s);

#endif
