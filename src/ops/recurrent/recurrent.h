// SPDX-License-Identifier: Apache-2.0
// What RNN, GRU and LSTM, their forms that keep what the gradient needs, and their gradients share.
// Private to `ops`.
#ifndef OT_OPS_RECURRENT_H
#define OT_OPS_RECURRENT_H

#include "kernels/kernels.h"
#include "op/op.h"

// What a tensor is to a layer; its shape follows. As an output of a gradient operator a role stands
// for the gradient.
typedef enum ot__recurrent_role {
    OT__RR_NONE, // ends a list
    OT__RR_X,    // or a table, where there are indices
    OT__RR_INDICES,
    OT__RR_W,
    OT__RR_R,
    OT__RR_B,
    OT__RR_LENGTHS,
    OT__RR_H0,
    OT__RR_C0,
    OT__RR_P,
    OT__RR_Y,
    OT__RR_Y_H,
    OT__RR_Y_C,
    OT__RR_CELLS,
    OT__RR_GATES,
    OT__RR_DY,
    OT__RR_DY_H,
    OT__RR_DY_C,
    OT__N_RR,
} ot__recurrent_role;

// An operator: its cell and its ports in order, as its record's names tell.
typedef struct ot__recurrent_op {
    ot__cell cell;
    bool is_plain_only; // of com.microsoft: what ONNX Runtime's kernels cannot compute is refused
    ot__recurrent_role in[OT__N_RR], out[OT__N_RR];
} ot__recurrent_op;

// Of every record here.
void ot__recurrent_infer(ot_infer *c);
extern const ot_kernel ot__recurrent_kernels[], ot__recurrent_grad_kernels[];

// ---- what kernels share (recurrent.c) ----

typedef struct ot__recurrent_state {
    ot__recurrent p;
    ot__recurrent_op op;
    ot__recurrent_means by; // vector code only
    bool batch_first_indices;
    size_t rows_at; // of scratch, in bytes: the rows that indices name
} ot__recurrent_state;
int ot__recurrent_port(const ot__recurrent_role *roles, ot__recurrent_role role); // -1: none
const ot_arg *ot__recurrent_indices(const ot_prep *p); // NULL: X is no table
// State, without scratch.
ot_status ot__recurrent_prepare_state(ot_prep *p);
// Elements of f32, or of X's type where that is wider; -1: more than can be counted. And room for
// the rows that indices name.
ot_status ot__recurrent_ask_for_scratch(ot_prep *p, int64_t n_elements);
ot_status ot__recurrent_check_lengths(const int32_t *lengths, const ot__recurrent *p);

// recurrent_piecewise.c: layers of f16 and bf16
bool ot__recurrent_can_piecewise(const ot_prep *p);
ot_status ot__recurrent_piecewise_prepare(ot_prep *p);
ot_status ot__recurrent_piecewise_run(const ot_run *r);
ot_status ot__recurrent_piecewise_grad_prepare(ot_prep *p);
ot_status ot__recurrent_piecewise_grad_run(const ot_run *r);

// recurrent_attrs.c
void ot__recurrent_op_read(const ot_op_def *def, ot__recurrent_op *op);
ot__cell ot__recurrent_cell(const ot_op_def *def);

// From a node's attributes. NULL, or why the node has no meaning or is not
// supported.
const char *ot__recurrent_read(const ot_node *node, ot__recurrent *p);
// Whether ONNX Runtime's LSTMTraining or GRUTraining, and their gradients, have these attributes;
// they have neither sequence_lens nor peepholes.
bool ot__recurrent_is_plain(const ot__recurrent *p);
bool ot__recurrent_has_gradient(const ot__recurrent *p);

// recurrent_grad.c
void ot__recurrent_grad(ot_grad *g);          // of RNN, GRU and LSTM by steps
void ot__recurrent_training_grad(ot_grad *g); // of GRUTraining and LSTMTraining

// recurrent_train.c: layers that ONNX Runtime trains, in both directions, and those that it runs: a
// layer that has the batch first becomes one by steps between Transposes.
void ot__recurrent_train(ot_grad *g);
void ot__recurrent_steps_first(ot_grad *g);

#endif
