// SPDX-License-Identifier: Apache-2.0
// Interface header of `op`: the operator table and what the layers above do with a record: find,
// check, infer, upgrade, evaluate one node, write gradients.
#ifndef OT_OP_H_INTERNAL
#define OT_OP_H_INTERNAL

#include "graph/graph.h"
#include "onnxtrain/op.h"
#include "onnxtrain/optimizer.h"

#define OT__MS "com.microsoft" // the domain of ONNX Runtime's operators

// ---- table (ops/table.c; made from ops/list.def, and of what libraries bring: ops/library.c) ----

// The record for `domain`, `name` at `opset`; NULL when unknown (no error set).
const ot_op_def *ot__op_find(const char *domain, const char *name, int64_t opset);
// As above; OT_ERR_UNSUPPORTED names operator, opset found and those known.
ot_status ot__op_lookup(const ot_model *model, const ot_node *node, const ot_op_def **out);
int ot__op_count(void);                     // operators (names)
const ot_op_def *ot__op_records(int index); // all records of one operator, ended by a zeroed one
extern const int ot__op_newest_opset;       // of ai.onnx that the table knows
enum { OT_OP_BASE_OPSET = 13 };             // graphs below it are raised to it

// ---- optimizers (rule.c): records with a rule ----

struct ot__rule_ports;
struct ot__update_row;
typedef struct ot__hyper_alias {
    const char *name, *general;
} ot__hyper_alias;

struct ot_update_rule {
    const char *state; // what it keeps of a parameter: optimizers of one state can go on from each
                       // other's; "": nothing
    int n_slots;       // tensors of the parameter's shape, at most
    const char *last_slot_for; // the hyper-parameter that the last one is of use for, where it is
                               // not 0; NULL: always
    size_t loop;               // offset of its loop in ot__updates
    size_t norms; // of the loop for two norms of a tensor between two passes; 0: it wants none
    double (*ratio)(const struct ot__update_row *row, double of_w, double of_d); // of the rate
    const struct ot__rule_ports *ports;
    const char *correction; // the hyper-parameter that says that young moments are corrected, by
                            // the first two; NULL: they are not
    bool needs_step;        // counts updates from 1
    bool has_one_counter;   // of all parameters, in states of ONNX Runtime
    bool (*check)(ot_infer *c); // NULL: hyper-parameters agree with each other
    const ot_hyper *artifacts;  // numbers that artifacts have where the attributes have another
                                // default; ended by {0}; NULL: none
    // An optimizer of the same state that has groups, a divisor and the like, and the names of
    // hyper-parameters that it calls otherwise, ended by {0}; NULL: it is one itself.
    const char *general;
    const ot__hyper_alias *general_names;
};
// The newest record of the optimizer `name`, in whatever domain; NULL: there is none (no error
// set).
const ot_op_def *ot__optimizer_find(const char *name);
// The state of an optimizer, also of one that files written before have; NULL: unknown.
const char *ot__optimizer_state(const char *name);
// As above; OT_ERR_NOT_FOUND names those that there are.
ot_status ot__optimizer_lookup(const char *name, const ot_op_def **out);
// The attribute that is the hyper-parameter `name`; OT_ERR_NOT_FOUND names those that there are.
ot_status ot__hyper_lookup(const ot_op_def *op, const char *name, const ot_attr_spec **out);
// From 0; NULL behind the last.
const ot_attr_spec *ot__hyper_at(const ot_op_def *op, int index);
double ot__as_written(float value); // 0.9 for 0.9f: the number that its author wrote
// A value for each of so many groups.
ot_status ot__rule_set_hyper(ot_node *rule, const ot_attr_spec *spec, const double *values, int n);
// Its value where none is given.
double ot__hyper_fallback(const ot_op_def *op, const ot_attr_spec *spec);

// ---- operators without a record (custom.c) ----

// The record of nodes that are carried along: takes and makes anything, has no kernel, no gradient.
extern const ot_op_def ot__op_foreign[];
bool ot__op_is_foreign(const ot_node *node);
// The record of nodes with graphs inside that stand in a prepared model until a step tells how many
// turns they take. Says the types of what they make, and asks for count and condition of a Loop.
extern const ot_op_def ot__op_control[];
// The record of ai.onnxtrain.Backward: the gradients of its first input (from the second on, which
// may be omitted: ones) with respect to its others, where how many turns a node takes that lies
// between them is known only in a step. Written out there (autodiff/late.c).
extern const ot_op_def ot__op_backward[];
enum { OT_BACKWARD_OF, OT_BACKWARD_SEED, OT_BACKWARD_FROM }; // its inputs
bool ot__is_backward(const ot_node *node);
// "Hardmax", "my.domain.Thing".
const char *ot__op_type_text(const ot_node *node, char *text, size_t size);

// ---- checking records (check_record.c) ----

// All of one operator. OT_ERR_INVALID names record, member and what is wrong with it.
ot_status ot__op_check_records(const ot_op_def *records);

// ---- checking one node (check.c): arity, attribute names and kinds, types ----

ot_status ot__op_check_node(const ot_node *node); // structure; node->op must be set
// The port that input number i belongs to (the last one for variadics); NULL when there is none.
const ot_port *ot__op_input_port(const ot_op_def *op, int i);
const ot_port *ot__op_output_port(const ot_op_def *op, int i);
// Whether a number lies within an attribute's bounds; OT_ERR_INVALID says which do.
ot_status ot__attr_check_bounds(const ot_attr_spec *spec, double value);
// What a node's tile takes, at most OT_TILE_MAX_ATTRS; gives their number.
int ot__op_tile_attrs(const ot_node *node, float *attrs);
bool ot__op_writes_state(const ot_node *node); // has a STATE port that is given
// The same inputs give the same outputs, and nothing else changes.
bool ot__op_is_deterministic(const ot_node *node);
bool ot__op_is_differentiable(const ot_op_def *op); // has a gradient rule
// Has no kernels: its nodes are written in other operators (ot_op_def.train) before they run, train
// or are evaluated.
bool ot__op_is_composed(const ot_op_def *op);
// The record of a node that need not have been checked; NULL: unknown.
const ot_op_def *ot__node_record(const ot_node *node);
// Output 0 is input 0's elements, each once (OT_OP_REARRANGE or OT_OP_VIEW); need not have been
// checked.
bool ot__node_rearranges(const ot_node *node);
// Element types of a type variable as a bit set over ot_dtype numbers: by a text as
// ot_op_def.types, which may be NULL; false when it does not name the variable.
bool ot__types_set(const char *types, const char *variable, uint64_t *set);
// As a record says; `type` may also be one element type.
uint64_t ot__op_type_set(const ot_op_def *op, const char *type);
const char *ot__types_text(uint64_t set, char *text, size_t size); // "f32 f64"

// ---- building (build.c): nodes of an ot__builder and their records ----

// A node with its record. Then its attributes, and ot__op_settle.
ot_node *ot__op_build(ot__builder *b, const char *domain, const char *op_type, const char *name,
                      ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                      int n_outputs);
void ot__op_build_attrs(ot__builder *b, ot_node *node, const char *attrs); // as text; NULL: none
// Checks the node and infers types and shapes of its outputs.
void ot__op_settle(ot__builder *b, ot_node *node);
// "com.microsoft.ReluGrad": its operator; the domain is made in the model's arena.
const char *ot__op_split_name(ot__builder *b, const char *op, const char **domain);

// ---- what an input is for its operator (port_role.c) ----

typedef enum ot__port_role {
    OT_PORT_ROLE_OTHER, // data, or nothing that a record says
    OT_PORT_ROLE_TABLE,
    OT_PORT_ROLE_WEIGHT,
    OT_PORT_ROLE_BIAS,
    OT_PORT_ROLE_SCALE,
    OT_PORT_ROLE_STATISTIC,
} ot__port_role;
// Of input number i; `op` NULL: other.
ot__port_role ot__op_input_role(const ot_op_def *op, int i);
// Of a node that need not have been checked: finds its record, and calls what an Add adds to a
// product a bias.
ot__port_role ot__node_input_role(const ot_node *node, int i);

// ---- shape inference of one node (infer.c; rules that records share: infer_rules.c) ----

// Set types, shapes and known elements of the node's outputs from its inputs. A declared shape that
// contradicts the inferred one is OT_ERR_INVALID with both; otherwise the more precise extent of
// the two is kept.
ot_status ot__op_infer(ot_node *node);
// The same where shapes of outputs are a file's word: an inferred extent wins over a stated one,
// and *was_wrong says that a stated one was wrong. Readers of the outputs must be inferred after
// it.
ot_status ot__op_infer_stated(ot_node *node, bool *was_wrong);
// The inputs whose elements its rule asks for and that are not known, as bits; the first 64.
ot_status ot__op_infer_asked(ot_node *node, uint64_t *asked);
// Helpers for records
// As ot_infer_fail(); false, for checks that return it.
OT_COLD bool ot__refuse(ot_infer *c, const char *format, ...) OT_PRINTF(2, 3);
bool ot__infer_made(ot_infer *c, bool made); // OT_ERR_NO_MEMORY unless it is; gives it back
void ot__infer_same_shape(ot_infer *c);      // output 0 = type and shape of input 0
// Whether inputs a and b may have the same shape, or input i one element (absent ones may); else a
// failure. Kernels rely on it: without, a file could make them read beyond a tensor.
bool ot__infer_matches(ot_infer *c, int a, int b);
bool ot__infer_one_element(ot_infer *c, int i);
// Whether `extent`, a sum or product of extents, is a number where both are; else it has
// overflowed, which is a failure. The same of the entries of a constant list: the lowest numbers
// are none.
bool ot__infer_extent(ot_infer *c, int axis, int64_t a, int64_t b, int64_t extent);
bool ot__infer_list_fits(ot_infer *c, int input, int n, const int64_t *known);
void ot__infer_gradient(ot_infer *c); // output 0 = type and shape of input 0, which input 1 has too
void ot__infer_broadcast(ot_infer *c); // output 0 = broadcast of all inputs, type of input 0
void ot__infer_broadcast_bool(ot_infer *c);

// ---- raising old nodes (upgrade.c) ----

ot_status ot__op_upgrade_node(
    ot_node *node); // until its record has no upgrade; new constants go into the graph
// For callbacks: OT_ERR_NO_MEMORY unless made.
void ot__upgrade_made(ot_upgrade *u, bool made);
// Into the form of `op`, a later record of its operator (ot_op_def.raise), which it has then.
ot_status ot__op_raise_node(ot_node *node, const ot_op_def *op);

// ---- nodes that hand on input 0 unchanged (identity.c): rules for ot_op_def.identity_when ----

bool ot__identity_always(const ot_node *node);
bool ot__identity_of_type(const ot_node *node);  // where the element type stays
bool ot__identity_of_shape(const ot_node *node); // where the shape is known to stay
bool ot__values_same_shape(const ot_value *x, const ot_value *y); // as far as is known
bool ot__node_is_identity(const ot_node *node);                   // by its record

// ---- what a Constant node holds (constant.c) ----

// The value in one of the node's forms (a tensor, a number, a list, texts) as a tensor of its
// model; NULL: another node, or NULL, or a value that is sparse.
ot_tensor *ot__constant_of_node(const ot_node *node);

// ---- evaluating one node with the reference kernel (eval.c) ----

// For folding and tests. Outputs are created (the caller destroys them); in[i] may be NULL for
// omitted inputs.
ot_status ot__op_eval(const ot_node *node, const ot_tensor *const *in, int n_in, ot_tensor **out,
                      int n_out);
// The same with what a step has, such as the seed of random numbers.
ot_status ot__op_eval_in_step(const ot_node *node, const ot_step *step, const ot_tensor *const *in,
                              int n_in, ot_tensor **out, int n_out);

// ---- attributes as text (attr_text.c) ----

// Set attributes from "transA = 1, axes = [0, 1], mode = \"reflect\", value = f32[2]{1, 2}"; commas
// may be left out. An integer becomes a float where the node's record (node->op, when set) says so.
ot_status ot__node_set_attrs_text(ot_node *node, const char *text);

// ---- preparing kernels (prep.c): used by exec and eval ----

// edges.c: what a kernel for f32 sees of a node of f16 and bf16, and one for types of whole bytes
// of a node of packed types.
typedef struct ot__edges {
    ot_arg *args; // converted: of inputs, then outputs
    const ot_arg **in;
    ot_arg **out;          // those of the node where they have another type
    const void **constant; // small ones converted
    int64_t *slot;         // per args: where in the scratch; -1: it is not converted
    bool *is_state;        // per input
    // The kernel runs n_pieces times, with as many images of those args that `is_piece` marks.
    int64_t n_pieces;
    unsigned sums;  // outputs that are sums over pieces
    bool *is_piece; // per args
    int64_t *term;  // per output: where in the scratch a piece leaves what is added; -1: nowhere
} ot__edges;

// reasons.c: why ot__kernel_select() has taken what it takes.
typedef struct ot__reasons {
    const char *said;  // by the can_run that was asked last, or NULL
    const char *taken; // of the kernel that is taken; NULL: it takes all that there is
    struct ot__declined {
        const char *kernel, *reason;
    } declined[8]; // as many as there is room for
    int n_declined;
} ot__reasons;
void ot__reasons_decline(ot__reasons *reasons, const ot_kernel *kernel, const char *reason);
// "few rows; not dnnl (...)"; "" where there is nothing to say.
void ot__reasons_text(const ot__reasons *reasons, const ot_kernel *taken, ot__buf *out);

struct ot_prep {
    const ot_node *node;
    const ot_arg *const *in;
    const ot_arg *const *out;
    const void *const *constant; // per input entry
    int n_in, n_out;
    const int *in_first; // entries of each input port, as in ot_run
    int n_threads;
    bool reproducible;
    const bool *open; // per input entry: its form is still to be chosen; NULL: none is
    // Where some argument is f16, bf16 or packed (ot__edges_wanted): lets select take a kernel for
    // what these are converted to, which is then shown in, out and constant of `edges`; NULL: only
    // exact types.
    ot__edges *edges;
    ot__reasons *reasons; // receives them; NULL: nobody asks
    // results
    const ot_layout **want_in, **want_out; // NULL arrays while layouts are not asked for
    bool is_widened;                       // select has taken a kernel by `edges`
    size_t scratch_bytes;
    void *state; // owned by whoever prepares; ot__prep_release frees it
    ot_status status;
    size_t state_bytes; // of `state`
};
// select.c: the kernel for a node whose arguments are in `p`, the first of its record that takes
// the element types and accepts the problem, so that the same inputs choose the same kernels. With
// p->reproducible n_threads becomes 1 when only that makes the result independent of their number.
// NULL: there is none (no error set).
const ot_kernel *ot__kernel_select(ot_prep *p, bool reference_only);
bool ot__kernel_takes(const ot_kernel *kernel, const ot_node *node); // its element types
// Why ot__kernel_select() gives NULL: OT_ERR_UNSUPPORTED, naming the element types that are taken.
ot_status ot__kernel_refused(const ot_node *node);
ot_status ot__kernel_prepare(const ot_kernel *kernel, ot_prep *p); // fills state and scratch_bytes
void ot__kernel_release(const ot_kernel *kernel, void *state);

// edges.c
ot_dtype ot__edges_type(ot_dtype dtype); // what it is converted to; itself: it is not
bool ot__edges_wanted(const ot_prep *p);
ot_status ot__edges_make(ot__arena *arena, const ot_prep *p, ot__edges *edges);
// Where converted arguments of `kernel` go: the bytes of the scratch, whose first `kernel_bytes`
// are the kernel's.
size_t ot__edges_place(const ot_op_def *op, const ot_kernel *kernel, ot__edges *edges, int n_in,
                       int n_out, size_t kernel_bytes);
bool ot__edges_convert_output(const ot__edges *edges, int n_in, int i); // `edges` may be NULL
// Runs a kernel that was prepared with the arguments of `edges`; `r` has those of the node.
ot_status ot__edges_run(const ot_kernel *kernel, const ot_run *r, ot__edges *edges);
// Whether this processor multiplies `narrow` itself (ops/product/product_kernels.c); else only
// memory is gained by it.
bool ot__products_take(ot_dtype narrow);
// Between f32 and f16 or bf16, in parallel (ops/elementwise/cast.c).
void ot__convert_floats(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                        int64_t count);
// Between any numeric types, as Cast converts them, in parallel (the same).
void ot__convert_elements(void *to, ot_dtype to_dtype, const void *from, ot_dtype from_dtype,
                          int64_t count);
#define OT__PACKED_TYPES "u4 i4 f4e2m1 u2 i2 f6e2m3 f6e3m2" // ot__dtype_is_packed

// ---- ports of many records (infer_rules.c), each of type T ----

extern const ot_port ot__unary_in[], ot__unary_out[];   // X -> Y
extern const ot_port ot__input_in[], ot__output_out[];  // input -> output
extern const ot_port ot__data_in[], ot__gradient_out[]; // data; dX

// ---- memory of an input or output in ot_kernel.run; NULL where it is absent ----

static inline void *ot__run_in(const ot_run *r, int i)
{
    return i < r->n_in && r->in[i] != NULL ? r->in[i]->data : NULL;
}

static inline void *ot__run_out(const ot_run *r, int i)
{
    return i < r->n_out && r->out[i] != NULL ? r->out[i]->data : NULL;
}

// ---- sums over ranks in ot_kernel.run, of operators with OT_OP_ORDERED: of what a rank has of
// tensors that are cut over them ----

static inline ot_status ot__run_sum(const ot_run *r, double *numbers, int n)
{
    const ot_exchange *exchange = r->step != NULL ? r->step->exchange : NULL;

    return exchange != NULL && exchange->sum != NULL ? exchange->sum(exchange->context, numbers, n)
                                                     : OT_OK;
}

// ---- can_run of kernels that want something to compute (prep.c) ----

bool ot__prep_has_elements(const ot_prep *p); // input 0 is not empty

// ---- attributes that have a default ----

#define OT__INT_ATTR(name_, otherwise)                                                             \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = (otherwise)    \
    }
#define OT__FLOAT_ATTR(name_, otherwise)                                                           \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = (otherwise)  \
    }
// The same with bounds: low <= value < high.
#define OT__FLOAT_IN(name_, otherwise, low_, high_)                                                \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_FLOAT, .flags = OT_ATTR_HAS_DEFAULT, .f = (otherwise), \
        .low = (low_), .high = (high_)                                                             \
    }
#define OT__FLAG_ATTR(name_, otherwise)                                                            \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = (otherwise),   \
        .low = 0, .high = 2                                                                        \
    }
#define OT__STRING_ATTR(name_, otherwise)                                                          \
    {                                                                                              \
        .name = name_, .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = (otherwise) \
    }

// ---- entries of kernel lists that give the same bits for any number of threads ----

#define OT__SIMD_KERNEL(types_, can_run_, prepare_, run_)                                          \
    {                                                                                              \
        .name = "simd", .types = types_, .flags = OT_KERNEL_THREAD_EXACT, .can_run = can_run_,     \
        .prepare = prepare_, .run = run_                                                           \
    }
// Of f32, f16 and bf16, which meet in a node.
#define OT__SIMD_FLOATS_LAYOUTS_KERNEL(can_run_, layouts_, prepare_, run_)                         \
    {                                                                                              \
        .name = "simd", .types = "T: f32 f16 bf16",                                                \
        .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_MIXED, .can_run = can_run_,                    \
        .layouts = layouts_, .prepare = prepare_, .run = run_                                      \
    }
#define OT__SIMD_FLOATS_KERNEL(can_run_, prepare_, run_)                                           \
    OT__SIMD_FLOATS_LAYOUTS_KERNEL(can_run_, NULL, prepare_, run_)
#define OT__LAYOUTS_KERNEL(types_, can_run_, layouts_, prepare_, run_)                             \
    {                                                                                              \
        .name = "simd", .types = types_, .flags = OT_KERNEL_THREAD_EXACT, .can_run = can_run_,     \
        .layouts = layouts_, .prepare = prepare_, .run = run_                                      \
    }
#define OT__REF_KERNEL(types_, prepare_, run_)                                                     \
    {                                                                                              \
        .name = "ref", .types = types_, .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,     \
        .prepare = prepare_, .run = run_                                                           \
    }
// Of both types that a template was included for.
#define OT__REF_KERNELS(prepare_, run_)                                                            \
    OT__REF_KERNEL("T: f32", prepare_, run_##_f32), OT__REF_KERNEL("T: f64", prepare_, run_##_f64)

// ---- writing gradients (grad.c): used by autodiff ----

// Calls the node's rule. The callbacks connect it to the gradient graph being built.
typedef struct ot__grad_host {
    void *context;
    ot_value *(*dy)(void *context,
                    const ot_value *y); // gradient of a forward output, NULL when none
    bool (*wants)(void *context, const ot_node *node, int i); // is the gradient of input i needed
    ot_status (*set_dx)(void *context, const ot_node *node, int i, ot_value *dx);
} ot__grad_host;
// Appends the rule's nodes to node->graph with names "<node>_Grad/<OpType>_<k>".
ot_status ot__op_grad(ot_node *node, const ot__grad_host *host);
// expand.c: write the node in other operators, as `rewrite` does, one of its record's callbacks
// (NULL: it stays). Its outputs then belong to nodes behind all others, and it has none left. May
// raise the model's opset, after which ot__pass_check is due.
ot_status ot__rewrite_node(ot_node *node, void (*rewrite)(ot_grad *g));
// expand.c: emit a node that makes output 0 again (ot_op_def.recompute), named after `node`, last
// in the graph. *y NULL: it cannot be made again, and the graph is as it was.
ot_status ot__op_recompute(ot_node *node, ot_value **y);
// For artifacts/loss.c and passes that build nodes: a context that emits into a graph with names
// "<prefix>/<OpType>_<k>".
ot_grad *ot__emitter_create(ot_graph *graph, const char *prefix);
ot_status ot__emitter_destroy(ot_grad *emitter); // the first error

#endif
