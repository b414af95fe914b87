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
    const ot_op_def *given; // the record that the case's inputs are for, before it is raised
} one_node;
ot_status one_node_make(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                        extent_kind extents, one_node *out);
void one_node_deinit(one_node *one);

// Reporting; a failed check makes the program fail.
void check_begin(ot_op_test *test, const ot_op_case *c);
void fail(const char *format, ...) OT_PRINTF(1, 2);
int failures(void);
void note_error(double error);                            // relative, of a result in f32
int count_cases(const ot_op_test *tests, const char *op); // of all tables of an operator

// ---- running a kernel (harness_run.c) ----

enum { MAX_RESULTS = 2 * OT_CASE_MAX_PORTS };

// What a run made, row-major: outputs, then what STATE ports hold.
typedef struct buffers {
    int n;
    ot_tensor *tensor[MAX_RESULTS];
} buffers;
void buffers_deinit(buffers *b);
bool buffers_same(const buffers *a, const buffers *b); // bits

// The layout of every port; NULL is row-major.
typedef struct layouts {
    const ot_layout *in[OT_CASE_MAX_PORTS], *out[OT_CASE_MAX_PORTS];
} layouts;

typedef struct call {
    const one_node *one;
    const ot_kernel *kernel; // NULL: the operator is composed of others, and evaluated so
    const inputs *in;
    int in_place;        // the input whose memory output 0 takes; -1: none
    const buffers *sums; // what is in outputs that the kernel can add to, and then adds to; NULL:
                         // nothing is
    const layouts *layouts; // NULL: all row-major
} call;

// Prepares the kernel and runs it; `second`, when not NULL, receives a second run's results over
// other memory.
ot_status call_run(const call *c, buffers *first, buffers *second);
bool is_state(const ot_node *node, int i);

// What the kernel sees while it is prepared.
typedef struct preparation {
    ot_prep prep;
    ot_arg arg[2 * OT_CASE_MAX_PORTS];
    const ot_arg *in[OT_CASE_MAX_PORTS], *out[OT_CASE_MAX_PORTS];
    const void *constant[OT_CASE_MAX_PORTS];
    int first[OT_CASE_MAX_PORTS + 1];
} preparation;
void preparation_make(preparation *q, const call *c);

// ---- what is checked ----

// |a - b| within `tolerance` times the table's for the type, relative to the larger of |b| and the
// largest |b|.
// Elements of any numeric type; the caller frees them.
double *values_of(const ot_tensor *t);
// The largest difference, over the largest finite |b|. Of what is not finite in one, nothing.
double relative_error(const ot_tensor *a, const ot_tensor *b);
bool tensors_agree(const ot_tensor *a, const ot_tensor *b, ot_dtype precision, double tolerance,
                   const char *what);

void check_kernels_against_f64(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                               const one_node *one);
// Relative error allowed by element type.
double tolerance_of(ot_dtype dtype);

// What the results should be, and how far each element may move (harness_bound.c).
typedef struct oracle {
    buffers results;
    double *spread[MAX_RESULTS]; // NULL: not known
    bool is_exact;               // every element is moved or chosen, not computed
    bool rounds_once;            // ot_tile.rounds_once, and two operands at most
    double terms;                // ot_op_case.terms
} oracle;
void oracle_measure(oracle *o, const call *reference); // fills `spread`
void oracle_deinit(oracle *o);
bool only_moves(const ot_op_def *op);
// A case in f64, and what it gives.
typedef struct wide_case {
    one_node one;
    inputs in;
    oracle expected;
} wide_case;
// False: the record has no f64 for these types.
bool wide_make(wide_case *w, const ot_op_test *test, const ot_op_case *c, const inputs *in,
               const ot_op_def *op);
bool wide_measure(wide_case *w, const ot_op_case *c); // fills `expected`
void wide_deinit(wide_case *w);
typedef enum check_extent {
    CHECK_RESULTS,
    CHECK_ISAS, // the results for every instruction set
    CHECK_ALL,  // and in place, adding, with other threads and in other layouts
} check_extent;
// False: the kernel declines.
bool check_kernel(const ot_op_case *c, const call *plain, const oracle *expected,
                  check_extent extent);
void check_elements(const ot_tensor *found, const oracle *o, int i, double tolerance,
                    const char *what);

// Every layout that the kernel takes (harness_layouts.c).
void check_layouts(const ot_op_case *c, const call *plain, const oracle *expected);
// Whether that has offered the kernel another layout than row-major.
bool was_offered_layouts(const ot_kernel *kernel);
void check_against(const ot_op_case *c, const buffers *found, const oracle *expected,
                   const char *what);
// The values that the case states.
void check_expected(const ot_op_case *c, const buffers *b, const one_node *one, const char *kernel);
call reference_call(const one_node *one, const inputs *in);
ot_status oracle_make(oracle *o, const ot_op_case *c, const one_node *one, const inputs *in);
void time_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                  const one_node *one);
ot_status run_reference(const one_node *one, const inputs *in, ot_tensor **out);
// Sizes around tiles and instruction sets (harness_edges.c).
void run_edges(const ot_op_test *test, const ot_op_case *c);
void edges_print(void);         // what letters stand for now, to stderr
int64_t edge_extent(char name); // of a letter in a case's shapes; -1: it has none
bool next_isa(int *isa);        // limits kernels to each set in turn, from -1 on
int present_isa(void);          // the best that kernels are not kept from
void limit_isa(int isa);
const char *isa_name(int isa);
void run_case(const ot_op_test *test, const ot_op_case *c);
void check_gradients(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                     extent_kind extents);
// ---- gradients (harness_grad.c) ----

enum { ALL = -1, NONE = -2 };

// What a gradient rule sees of the graph around it.
typedef struct host {
    one_node one;
    ot_dtype dtype;                  // of inputs and outputs that have gradients
    ot_value *dy[OT_CASE_MAX_PORTS]; // gradient of output i, NULL when none arrives
    ot_value *dx[OT_CASE_MAX_PORTS]; // what the rule sets
    bool wants[OT_CASE_MAX_PORTS];
    // Of an operator that is composed of others: its outputs, NULL otherwise, and the inputs that
    // they do not depend on.
    ot_value *y[OT_CASE_MAX_PORTS];
    bool is_constant[OT_CASE_MAX_PORTS];
} host;
// `h->dtype` is set; random dY come with it, which the caller destroys.
bool host_make(host *h, const ot_op_test *test, const ot_op_case *c, const inputs *in,
               const one_node *concrete, extent_kind extents, int want, int only, ot_tensor **dy);

typedef struct results {
    ot__map tensors; // by value name; borrowed ones too
    int n_owned;
    ot_tensor *owned[1024];
} results;
// What is done to the outputs of nodes before others read them.
typedef struct rounding {
    void (*move)(const struct rounding *r, const ot_node *node, int i_output, ot_tensor *y);
    ot_dtype narrow;
    double relative, absolute;
    uint64_t sample;
} rounding;
// All nodes by their reference kernels; `rounded` NULL: as they are.
bool host_evaluate(host *h, const inputs *in, ot_tensor *const *dy, const rounding *rounded,
                   results *r);
const ot_tensor *result_of(results *r, const ot_value *v);
void results_deinit(results *r);

// ---- operators that are composed of others (harness_composed.c) ----

void check_composed(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                    const one_node *one);
// Writes the node in other operators, and the gradients that are wanted.
ot_status host_compose(host *h, int n_inputs);

// ---- mixed precision (harness_narrow.c, harness_narrow_kernels.c, harness_narrow_grad.c) ----

void check_narrow(const ot_op_test *test, const ot_op_case *c, const inputs *in);
void check_narrow_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in);
// Whether the kernel names the type at a port.
bool kernel_names(const ot_op_def *op, const ot_kernel *kernel, ot_dtype dtype);
bool was_run_narrow(const ot_kernel *kernel, ot_dtype narrow); // by that
// The inputs again, each f32 rounded to `narrow`.
bool inputs_round(const inputs *from, ot_dtype narrow, inputs *out);
bool list_outputs(one_node *one); // as those of the graph
// Runs a graph on the inputs and, behind them, those of `more` that are there.
struct ot__plan_options;
ot_status run_graph(ot_graph *graph, const inputs *in, ot_tensor *const *more,
                    const struct ot__plan_options *options, ot_tensor **out);
void check_narrow_gradients(const ot_op_test *test, const ot_op_case *c, const inputs *in);
bool was_shown_narrow(const ot_op_def *op); // its gradient, in each type
void check_table(ot_op_test *tests, bool is_plain_run, bool is_narrow_run);
// Whether src/ops/certificates.def has every operator, with as many cases as there are.
void check_certificates(const ot_op_test *tests);

#endif
