// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters of groups under the names of state dicts. Private to `session`.
#ifndef OT_SESSION_GROUP_TABLE_H
#define OT_SESSION_GROUP_TABLE_H

#include "session/session_internal.h"

#define OT_KEY_STATE "state"
#define OT_KEY_GROUPS "param_groups"
#define OT_KEY_PARAMS "params"
#define OT_KEY_LR "lr"
#define OT_KEY_INITIAL_LR "initial_lr"
#define OT_KEY_SLOT_STEP "step"

typedef enum ot__hyper_kind {
    OT_HYPER_NUMBER,
    OT_HYPER_BOOL,
    OT_HYPER_WHOLE,
    OT_HYPER_PAIR,
} ot__hyper_kind;

typedef struct ot__hyper_row {
    const char *attr, *second; // of the rule; `second`: of a pair
    const char *key;           // in state dicts
    const char *state;         // of rules for which it holds; NULL: all
    ot__hyper_kind kind;
    bool is_own; // no optimizer of PyTorch has it
} ot__hyper_row;

// From 0; false behind the last.
bool ot__hyper_row_at(const ot_op_def *op, int index, ot__hyper_row *out);
double ot__hyper_of_group(const ot_node *node, const char *attr, int group);
double ot__lr_factor(const ot__optimizer *o, int group);
double ot__group_rate(const ot_session *session, int group); // with the factor

#endif
