// SPDX-License-Identifier: Apache-2.0
// What the optimizers share: the elements of all parameters, cut into pieces for the threads, and
// the one function that updates them by any rule. Private to `ops`.
#ifndef OT_OPS_OPTIMIZER_H
#define OT_OPS_OPTIMIZER_H

#include "kernels/kernels.h"
#include "op/op.h"

// ---- pieces (pieces.c) ----

// The elements `first` .. `first + count - 1` of tensor number `tensor`.
typedef struct ot__piece_of {
    int tensor;
    int64_t first, count;
} ot__piece_of;

typedef struct ot__pieces {
    int64_t n_pieces;
    int n_tensors;
    void *own; // memory of the operator's
    ot__piece_of piece[];
} ot__pieces;

// State for the sequence at input port `port`, with `n_own_bytes` of the operator's.
ot__pieces *ot__pieces_make(ot_prep *p, int port, size_t n_own_bytes);
// Whether the sequence at another port has as many tensors of the same sizes; else a failure.
bool ot__pieces_fit(ot_prep *p, int port, int other);
double ot__scalar_f64(const ot_arg *x);
void *ot__piece_data(const ot_run *r, int port,
                     const ot__piece_of *piece); // address of its first element
// Output 0 is a flag, one bool; the sequences behind it are the updated inputs.
void ot__optimizer_set_flag(const ot_run *r, bool updated);

// ---- rules (update.c, rows.c, read_rule.c): what records of optimizers have in common ----

// Places of the ports of a record that has a rule; -1: it has none.
typedef struct ot__rule_ports {
    int lr, step, params, gradients, slots[2], divisor, norm, finite;
} ot__rule_ports;

enum { OT_RULE_MAX_HYPER = 8 };

// The rule of one node, read once.
typedef struct ot__update_state {
    const ot_update_rule *rule;
    ot__rule_ports at; // those that the node leaves out: -1
    int n_groups;
    double max_norm;   // 0: none
    int correct_at;    // which hyper-parameter says that young moments are corrected; -1: none
    int clip_at;       // max_norm_clip; -1: none
    bool is_exact;     // norms of tensors (exact_norms.c)
    const int *group;  // of each tensor; NULL: 0
    double *lr_factor; // of each group
    float (*hyper)[OT_RULE_MAX_HYPER]; // of each group, in the order of the record's attributes
} ot__update_state;

void ot__rule_infer(ot_infer *c);
ot_status ot__rule_prepare(ot_prep *p);
// A row for every tensor.
ot_status ot__rule_fill(const ot_run *r, const ot__update_state *s, ot__update_row *rows);

// ---- exact norms, of f32 (exact_norms.c) ----

enum { OT_EXACT_NUMBERS = OT_EXACT_DIGITS + 1 };
// Over all ranks. `numbers`: room for OT_EXACT_NUMBERS a sum.
ot_status ot__run_exact_sums(const ot_run *r, ot__exact_sum *sums, int n, double *numbers);
// Of every tensor the squares of it and of its direction, over all ranks: *totals, which are in
// `room` of as many bytes.
size_t ot__exact_norms_room(const ot__pieces *pieces);
ot_status ot__exact_norms(const ot_run *r, const ot__updates *table, const ot__update_row *rows,
                          void *room, double **totals);

extern const ot_port ot__rule_in[], ot__rule_out[]; // of those of ai.onnxtrain
extern const ot_kernel ot__rule_kernels[];

#endif
