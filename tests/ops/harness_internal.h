// SPDX-License-Identifier: Apache-2.0
// What the files of the harness share.
#ifndef OT_TESTS_OPS_HARNESS_INTERNAL_H
#define OT_TESTS_OPS_HARNESS_INTERNAL_H

#include "harness.h"

// One input or expected output of a case.
typedef struct spec {
    bool is_present, is_const, has_values;
    ot_dtype dtype;
    ot_shape shape;
    double low, high;
    const char *values; // after '{'
} spec;
bool spec_parse(const char *text, spec *out);
bool spec_values(const spec *s, ot_tensor *tensor); // the elements given

// Inputs of a case, with elements.
typedef struct inputs {
    int n;
    spec spec[OT_CASE_MAX_PORTS];
    ot_tensor *tensor[OT_CASE_MAX_PORTS];
} inputs;
ot_status inputs_make(const ot_op_case *c, inputs *out);
// The same with every floating-point tensor in f64 where the operator's record allows it.
ot_status inputs_to_f64(const inputs *from, const ot_op_def *op, inputs *out);
void inputs_deinit(inputs *in);

typedef enum extent_kind {
    STATIC_EXTENTS,
    SYMBOLIC_BATCH,
    SYMBOLIC_IMAGE, // axis 0 of every input, and all but axis 1 of input 0
    SYMBOLIC_EXTENTS,
} extent_kind;

// A model with the one node of a case, checked, raised and inferred.
typedef struct one_node {
    ot_model *model;
    ot_node *node;
} one_node;
ot_status one_node_make(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                        extent_kind extents, one_node *out);
void one_node_deinit(one_node *one);

// Reporting; a failed check makes the program fail.
void check_begin(const ot_op_test *test, const ot_op_case *c);
void fail(const char *format, ...) OT_PRINTF(1, 2);
int failures(void);

// |a - b| within `tolerance` times the table's for the type, relative to the larger of |b| and the
// largest |b|.
bool tensors_agree(const ot_tensor *a, const ot_tensor *b, ot_dtype precision, double tolerance,
                   const char *what);

void check_kernels(const ot_op_case *c, const inputs *in, const one_node *one);
void check_kernels_against_f64(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                               const one_node *one);
void time_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                  const one_node *one);
ot_status run_reference(const one_node *one, const inputs *in, ot_tensor **out);
void check_gradients(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                     extent_kind extents);
void check_table(ot_op_test *tests);

#endif
