// SPDX-License-Identifier: Apache-2.0
// Element types of one node: which dtype each type variable of its record stands for.
#ifndef OT_OP_CHECK_H
#define OT_OP_CHECK_H

#include "op/op.h"

enum { OT__MAX_TYPE_VARIABLES = 8 };

typedef struct ot__op_types {
    int n;
    const char *variable[OT__MAX_TYPE_VARIABLES];
    ot_dtype dtype[OT__MAX_TYPE_VARIABLES];
} ot__op_types;

// Check the inputs whose type is known against the record and each other; bind the type variables.
ot_status ot__op_check_types(const ot_node *node, ot__op_types *types);
// What a port's type is under these bindings; undefined when nothing says so.
ot_dtype ot__op_bound_type(const ot_op_def *op, const ot__op_types *types, const ot_port *port);

// Whether a port may have `dtype` where its type variable, or what is inferred, stands for `other`.
bool ot__op_types_meet(const ot_model *model, const ot_port *port, ot_dtype dtype, ot_dtype other);

// custom.c: inputs that a foreign operator makes and that no file declares get the type that the
// other inputs give them; an error when none does.
ot_status ot__op_settle_foreign(const ot_node *node, const ot__op_types *types);

#endif
