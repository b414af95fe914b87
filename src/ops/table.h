// SPDX-License-Identifier: Apache-2.0
// What table.c and library.c share: operators that libraries have brought.
#ifndef OT_OPS_TABLE_H
#define OT_OPS_TABLE_H

#include <stdatomic.h>

#include "op/op.h"

// Those of one library. Stays where it is until the process ends: models point to records.
typedef struct ot__loaded_ops {
    const struct ot_op_library *library;
    _Atomic(struct ot__loaded_ops *) next;
    int n;
    const ot_op_def *ops[]; // the records of each operator
} ot__loaded_ops;

ot__loaded_ops *ot__loaded_first(void); // NULL: there are none
// From here on the table has them. One thread at a time; others may look operators up meanwhile.
void ot__loaded_add(ot__loaded_ops *ops);
// All records of an operator; NULL: there is none.
const ot_op_def *ot__op_find_records(const char *domain, const char *name);

// What the tests have measured of an operator (certificates.def).
typedef struct ot__certificate {
    const char *domain, *name;
    int n_cases;        // of tests/ops
    int n_node_tests;   // of ONNX, of this node alone, that pass; of those without records, with it
    double worst_error; // of f32 in the cases, over the largest element of the result
} ot__certificate;
const ot__certificate *ot__op_certificate(const ot_op_def *op); // NULL: there is none

// operators.c: operators of ONNX that have no record, number i; NULL behind the last. Their turns,
// branches and tensors stand in the graph before it runs or is differentiated
// (passes/fuse_control.c, fuse_sequence.c).
const char *ot__op_without_record(int i);

#endif
