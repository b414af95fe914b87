// SPDX-License-Identifier: Apache-2.0
// Tests of operators as tables of cases: a file cases_<op>.c gives the data, the harness does the
// rest.
//
// From one case the harness checks: the node fits its record; the inferred types and shapes are
// those stated; every kernel agrees with the reference kernel computed in f64, in every combination
// of layouts that it takes, reads nothing that is undefined, writes every element of its outputs
// and nothing else, gives the same in place, and the same bits at 1 to 4 threads when it says so;
// and the gradient of every differentiable input agrees with central differences in f64, with
// static and with symbolic extents.
#ifndef OT_TESTS_OPS_HARNESS_H
#define OT_TESTS_OPS_HARNESS_H

#include "op/op.h"

enum { OT_CASE_MAX_PORTS = 40 };

enum {
    OT_CASE_NO_GRAD = 1, // no gradient check: at a kink, or too large
    OT_CASE_STATIC = 2,  // the operator needs extents that are numbers
    OT_CASE_RULE = 8,    // with NO_GRAD: the gradient is by definition not that of Y
    OT_CASE_ZERO = 16,   // the gradient is 0 by definition
    OT_CASE_IMAGE = 4,   // input 0's spatial extents (axis 2 and on) may be symbolic too
    OT_CASE_OPEN = 16,   // all extents may be symbolic
};

// Tensors are written "f32[3,4]" (random, all elements of all inputs well apart, default -2 .. 2
// and -5 .. 5 for integers), "f32[3] in 0.1..2", "f32[3]{1,2,nan}", each with " const" behind for
// an initializer. "" or NULL is an omitted one.
typedef struct ot_op_case {
    const char *name;
    const char *in[OT_CASE_MAX_PORTS];
    const char *attrs; // "axis = 1, alpha = 0.5"
    // Expected; elements only where they are given. Without any `out` the required outputs are
    // asked for.
    const char *out[OT_CASE_MAX_PORTS];
    int opset;        // 0: the test's
    ot_status error;  // expected from checking, inferring, preparing or running
    unsigned flags;   // OT_CASE_...
    double tolerance; // times the table's; 0 is 1
    double terms;     // size of terms inside the formula that cancel: the bound of every element
                      // grows by it
    // Letters that stand for extents in the shapes, "M gemm_rows, C pool_channels+": each is 1, the
    // named tile less and plus 1, twice the tile plus 1 and, without the plus, 0
    // (harness_edges.c). No gradients are checked.
    const char *edges;
} ot_op_case;

typedef struct ot_op_test {
    const char *op; // as ONNX's textual syntax has it: "Gemm", "com.microsoft.ReluGrad"
    int opset;
    const ot_op_case *cases; // ended by a case without inputs, outputs and name
    struct ot_op_test *next;
    double worst_error; // of all results in f32 so far
} ot_op_test;

void ot_op_test_register(ot_op_test *test);

// Adds a table of cases to the program; one that several operators share, under a name for each.
#define OT_OP_TEST_SHARED(op_name, op_opset, op_cases, symbol)                                     \
    static ot_op_test test_of_##symbol = {.op = op_name, .opset = op_opset, .cases = op_cases};    \
    __attribute__((constructor)) static void register_##symbol(void)                               \
    {                                                                                              \
        ot_op_test_register(&test_of_##symbol);                                                    \
    }
#define OT_OP_TEST(op_name, op_opset, op_cases)                                                    \
    OT_OP_TEST_SHARED(op_name, op_opset, op_cases, op_cases)
// An operator that no case can state (sequences, state over steps): a unit test covers it.
#define OT_OP_TESTED_BY_UNIT(op_name, symbol)                                                      \
    static const ot_op_case symbol##_cases[] = {{0}};                                              \
    OT_OP_TEST(op_name, 0, symbol##_cases)

#endif
