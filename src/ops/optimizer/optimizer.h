// SPDX-License-Identifier: Apache-2.0
// What the optimizers share: the elements of all parameters, cut into pieces for the threads.
// Private to `ops`.
#ifndef OT_OPS_OPTIMIZER_H
#define OT_OPS_OPTIMIZER_H

#include "kernels/kernels.h"
#include "op/op.h"

// The elements `first` .. `first + count - 1` of tensor number `tensor`.
typedef struct ot__piece_of {
    int tensor;
    int64_t first, count;
} ot__piece_of;

typedef struct ot__pieces {
    int64_t n_pieces;
    double numbers[8]; // attributes, read once; which is which is the operator's business
    ot__piece_of piece[];
} ot__pieces;

// State for the sequence at input port `port`, whose lengths the ports n_others behind it must
// share.
ot__pieces *ot__pieces_make(ot_prep *p, int port, int n_others);
// Whether the optional update signal at input port `port` says to leave everything as it is.
bool ot__update_is_off(const ot_run *r, int port);
double ot__scalar_f64(const ot_arg *x);
void *ot__piece_data(const ot_run *r, int port,
                     const ot__piece_of *piece); // address of its first element

// Output 0 is the flag "updated", one bool; the sequences behind it are the updated inputs.
void ot__optimizer_infer(ot_infer *c);
void ot__optimizer_set_flag(const ot_run *r, bool updated);

#endif
