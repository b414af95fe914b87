// SPDX-License-Identifier: Apache-2.0
// Part of recurrent.c and recurrent_grad.c: a layer's steps shared out among threads, and memory.
#ifndef OT_KERNELS_RECURRENT_STEPS_H
#define OT_KERNELS_RECURRENT_STEPS_H

#include "kernels/kernels.h"

// Scratch that is handed out, or only counted; whole lines of the cache.
typedef struct ot__floats_taken {
    float *base; // NULL: only counted
    int64_t n;   // -1: more than can be counted
} ot__floats_taken;
float *ot__floats_take(ot__floats_taken *at, int64_t a, int64_t b, int64_t c); // a * b * c
// Of the products with many rows at once.
float *ot__floats_take_for_gemm(ot__floats_taken *at, const ot__recurrent_means *by);

// Steps whose products are made at once: enough rows for them to be as fast as any.
int64_t ot__recurrent_steps_at_once(const ot__recurrent *p);
// Floats from one row of a state to the next: not a power of two, by which rows would fall on the
// same lines of the cache.
int64_t ot__recurrent_state_pitch(int64_t n);

// How a step is shared out: units of the state in whole panels, then rows of the batch. Rows do not
// depend on each other: with one part of units a thread runs all steps of its rows.
typedef struct ot__step_cut {
    int64_t n_blocks; // panels of a gate
    int n_unit_parts, n_row_parts;
} ot__step_cut;
typedef struct ot__step_part {
    int64_t block, block_end, unit, unit_end, row, row_end;
} ot__step_part;
void ot__step_cut_make(ot__step_cut *c, const ot__recurrent *p, const ot__recurrent_means *by);
// `run` of every part, by all threads.
void ot__step_share(const ot__step_cut *c, const ot__recurrent *p, const ot__recurrent_means *by,
                    void (*run)(const void *context, const ot__step_part *part),
                    const void *context);

// R of one direction: a panel for each gate and block of units.
int64_t ot__recurrent_panel_floats(const ot__recurrent *p, const ot__recurrent_means *by);
// `back`: to multiply gradients of the gates; else states.
void ot__recurrent_pack(float *panels, const ot__recurrent *p, const ot__recurrent_means *by,
                        const float *r, int direction, bool back);
// The part's elements of y (batch, hidden) [+]= a (batch, hidden) * the panels of a gate.
typedef struct ot__state_product {
    const ot__recurrent *p;
    const ot__recurrent_means *by;
    const float *panels;
    const ot__step_cut *cut;
} ot__state_product;
void ot__state_multiply(const ot__state_product *s, const ot__step_part *part, int64_t gate,
                        float *y, int64_t y_row, const float *a, int64_t a_row, bool accumulates);

// A product of many rows by all threads; b from element b_at on. c: a row that is added; or NULL.
typedef struct ot__wide_product {
    ot__gemm g;
    float *y;
    const float *a, *b, *c;
    int64_t b_at;
    bool accumulates;
    int64_t n_batches, a_batch, y_batch; // and the distances between them; 0 batches: one
} ot__wide_product;
void ot__wide_multiply(const ot__wide_product *w, const ot__recurrent_means *by, float *scratch);

// Sigmoid and tanh by vector code where there is no clip, else as the reference.
void ot__simd_activate_f32(float *y, int64_t n, const ot__activation *f, double clip);
// (batch, hidden) between rows of different distances; from NULL: zeros.
void ot__copy_states(float *to, int64_t to_row, const float *from, int64_t from_row,
                     const ot__recurrent *p);

#endif
