// SPDX-License-Identifier: Apache-2.0
// Interface of `graph`: model, graph, node, value, attribute; symbolic extents; edit, order,
// verify. Knows no operator.
#ifndef OT_GRAPH_GRAPH_H
#define OT_GRAPH_GRAPH_H

#include <assert.h>

#include "base/base.h"
#include "onnxtrain/model.h"
#include "tensor/tensor.h"

typedef struct ot_graph ot_graph;
typedef struct ot_node ot_node;
typedef struct ot_value ot_value;
typedef struct ot_attr ot_attr;
struct ot_op_def; // of `ops`; nodes only point at it

// ---- extents (dim.c) ----
//
// An extent is a number >= 0, a symbol, or unknown. Symbols are products of named dims with a
// coefficient ("batch", "11*batch") or opaque expressions ("(h+1)/2"); equal symbols are equal
// extents, different ones prove nothing. The same coding serves the elements of small integer
// tensors (shape arithmetic), where numbers may be negative.

#define OT_DIM_UNKNOWN INT64_MIN
#define OT_DIM_SYMBOL_END (INT64_MIN + (INT64_C(1) << 32))

static inline bool ot__dim_is_number(int64_t dim)
{
    return dim >= OT_DIM_SYMBOL_END;
}
static inline bool ot__dim_is_symbol(int64_t dim)
{
    return dim < OT_DIM_SYMBOL_END && dim != OT_DIM_UNKNOWN;
}
// Known to be the same: the same number or the same symbol.
static inline bool ot__dim_same(int64_t a, int64_t b)
{
    return a == b && a != OT_DIM_UNKNOWN;
}
// Known to differ: two numbers.
static inline bool ot__dim_differs(int64_t a, int64_t b)
{
    return ot__dim_is_number(a) && ot__dim_is_number(b) && a != b;
}
int64_t ot__dim_symbol(ot_model *model, const char *name); // unknown for "" or NULL
const char *ot__dim_text(const ot_model *model, int64_t dim, char *text,
                         size_t size); // "3", "batch", "?"
const char *ot__dim_name(const ot_model *model,
                         int64_t dim); // symbol's name; NULL for numbers and unknown
// Symbolic arithmetic; unknown when either is, or (numbers) on overflow. div: floor; exact for
// products of symbols, otherwise an opaque symbol. All results are interned: the same expression
// gives the same symbol.
int64_t ot__dim_add(ot_model *model, int64_t a, int64_t b);
int64_t ot__dim_sub(ot_model *model, int64_t a, int64_t b);
int64_t ot__dim_mul(ot_model *model, int64_t a, int64_t b);
int64_t ot__dim_div(ot_model *model, int64_t a, int64_t b);
int64_t ot__dim_mod(ot_model *model, int64_t a, int64_t b);
// The number a dim has when each named symbol has the number `lookup` gives for it; unknown when
// one has none.
int64_t ot__dim_evaluate(const ot_model *model, int64_t dim,
                         int64_t (*lookup)(void *context, const char *name), void *context);
bool ot__shape_is_static(const ot_shape *shape);                // all numbers
bool ot__shape_may_equal(const ot_shape *a, const ot_shape *b); // as many axes, no extents differ
bool ot__dims_are_numbers(const int64_t *dims, int n);
bool ot__value_has_one_element(const ot_value *value); // its shape says so
// Broadcast with symbols: equal symbols stay, a symbol against a number > 1 gives the number,
// against 1 the symbol, two different symbols an unknown extent.
ot_status ot__dims_broadcast(const ot_shape *a, const ot_shape *b, ot_shape *y);
// The least that an extent can be when every symbol is at least 1; 0 when nothing is known.
int64_t ot__dim_least(const ot_model *model, int64_t dim);
char *ot__dims_text(const ot_model *model, const ot_shape *shape, char *text,
                    size_t size); // "[batch,3]"
// The same in a buffer of the block around it, for messages.
#define OT_DIMS_TEXT(model, shape) ot__dims_text(model, shape, (char[256]){""}, 256)

// ---- metadata ----

// What a file says of a node, a value or a graph by metadata_props, for looking it up. It is
// written with the fields that are passed through as they came.
typedef struct ot__metadata {
    const char *const *pairs; // key, value, key, value, ...; of the model's arena
    int n;                    // pairs
} ot__metadata;

// ---- values ----

typedef enum ot_value_kind {
    OT_VALUE_UNTYPED, // nothing known yet
    OT_VALUE_TENSOR,
    OT_VALUE_SEQUENCE, // of tensors of `dtype`
    OT_VALUE_OTHER,    // optional, map, sparse, ...: kept as the bytes of its type, never computed
} ot_value_kind;

struct ot_value {
    const char *name;
    ot_value_kind kind;
    ot_dtype dtype;
    bool has_shape;
    ot_shape shape;    // extents as in dim.c
    ot_node *producer; // NULL for inputs, initializers and constants
    int i_producer_output;
    bool is_input, is_output;
    bool is_initializer; // in the file's initializer list: may become a parameter
    ot_tensor
        *constant; // elements of an initializer or of a folded value; owned by the model; else NULL
    int n_known;   // > 0: elements of a small integer tensor, numbers or symbols, row-major
    const int64_t *known;
    const char *doc;
    ot__bytes type_bytes;   // OT_VALUE_OTHER: the TypeProto as found
    ot__bytes extra;        // fields of ValueInfoProto that are not understood, passed through
    ot__bytes tensor_extra; // the same of the initializer's TensorProto
    const char *tensor_doc; // the initializer's doc string; NULL when absent
    ot__metadata metadata;  // of its ValueInfoProto, then of its TensorProto; `extra` has them too
    const char *alias;      // an initializer's name in the file, when it has another now; else NULL
    int number;             // numbers.c alone writes it, and ot__value_number() reads it
};

// Elements of OT_STRING constants: ot_tensor.data points to an array of these.
typedef ot__bytes ot__string;

// ---- attributes ----

// Numbers are ONNX's AttributeProto.AttributeType.
typedef enum ot_attr_kind {
    OT_ATTR_UNDEFINED = 0,
    OT_ATTR_FLOAT = 1,
    OT_ATTR_INT = 2,
    OT_ATTR_STRING = 3,
    OT_ATTR_TENSOR = 4,
    OT_ATTR_GRAPH = 5,
    OT_ATTR_FLOATS = 6,
    OT_ATTR_INTS = 7,
    OT_ATTR_STRINGS = 8,
    OT_ATTR_TENSORS = 9,
    OT_ATTR_GRAPHS = 10,
    OT_ATTR_SPARSE_TENSOR = 11,
    OT_ATTR_SPARSE_TENSORS = 12,
    OT_ATTR_TYPE_PROTO = 13,
    OT_ATTR_TYPE_PROTOS = 14,
} ot_attr_kind;

// What a file says about a tensor in an attribute, besides its elements.
typedef struct ot__tensor_note {
    const char *name, *doc; // never NULL
    ot__bytes extra;
} ot__tensor_note;

struct ot_attr {
    const char *name;
    ot_attr_kind kind;
    const char *ref_name; // inside a function: the function's attribute this one copies; else NULL
    float f;
    int64_t i;
    ot__string s;
    ot_tensor *t;
    ot_graph *g;
    int n; // elements of the list kinds
    const float *floats;
    const int64_t *ints;
    const ot__string *strings;
    ot_tensor *const *tensors;
    ot_graph *const *graphs;
    const ot__tensor_note *notes; // of t, or of each of tensors; NULL: nothing to say
    ot__bytes bytes;              // kinds 11 to 14: the fields as found
    ot__bytes extra;
    const char *doc;
};

// ---- nodes, graphs, models ----

struct ot_node {
    const char *name, *op_type, *domain, *overload,
        *doc;           // never NULL; "" when absent; domain "" is ai.onnx
    ot_value **inputs;  // NULL entries are omitted optional inputs
    ot_value **outputs; // NULL entries likewise
    int n_inputs, n_outputs;
    ot_attr **attrs;
    int n_attrs;
    const struct ot_op_def *op; // set by passes/pass_check.c; NULL before
    ot_graph *graph;
    ot__bytes extra;
    ot__metadata metadata; // of its NodeProto; `extra` has it too
    int number;            // numbers.c alone writes it, and ot__node_number() reads it
};

typedef struct ot__kept_info {
    const char *name;
    ot__bytes bytes;
} ot__kept_info;

struct ot_graph {
    ot_model *model;
    ot_graph *parent; // NULL for the main graph
    const char *name, *doc;
    ot_node **nodes; // in the file's order, which need not be topological until ot__graph_sort
    int n_nodes, nodes_capacity;
    ot_value **inputs, **outputs, **initializers; // initializers that are inputs too are in both
    int n_inputs, n_outputs, n_initializers;
    int inputs_capacity, outputs_capacity, initializers_capacity;
    ot__map values; // by name; values of this graph only
    ot__map nested; // of a graph without a parent: names in graphs inside it -> how many have it
    // ValueInfoProtos of names that no node made when they were read: passed through as they came
    ot__kept_info *infos;
    int n_infos, infos_capacity;
    ot__bytes extra;       // quantisation annotations, metadata: passed through
    ot__metadata metadata; // of its GraphProto; `extra` has it too
};

typedef struct ot__opset {
    const char *domain;
    int64_t version;
    ot__bytes extra;
} ot__opset;

typedef struct ot__function { // a model-local function
    const char *name, *domain, *overload, *doc;
    const char **inputs, **outputs, **attrs;
    int n_inputs, n_outputs, n_attrs;
    ot_attr **attr_defaults;
    int n_attr_defaults;
    ot_graph *body; // values by name; inputs and outputs are in it
    ot__opset *opsets;
    int n_opsets;
    ot__bytes extra;
} ot__function;

struct ot_model {
    ot__arena *arena;
    struct ot__holdings *holdings; // mapped files and tensors, shared with clones (model.c)
    int64_t ir_version, model_version;
    const char *producer_name, *producer_version, *domain, *doc;
    ot__opset *opsets;
    int n_opsets, opsets_capacity;
    const char **metadata;           // key, value, key, value, ...
    int n_metadata;                  // pairs
    const ot__bytes *metadata_extra; // fields that are not understood of the first pairs
    int n_metadata_extra;
    ot__function **functions;
    int n_functions;
    ot_graph *graph;
    ot__bytes extra;
    struct ot__symbols *symbols; // dim.c
    const char *folder;          // where external data is looked for; NULL when there is none
    bool is_prepared; // passes/pass_prepare.c has been over it, and what came since keeps to that
    bool is_final;    // nobody changes it any more: owners may share it
    // OT_BF16 or OT_F16: f32 and this type meet in nodes, since each float value has the type that
    // passes/pass_precision.c chose for it; else OT_DTYPE_UNDEFINED.
    ot_dtype narrow;
};

// model.c: everything comes from the model's arena; NULL (and the error) when out of memory
ot_status ot__model_create(ot_model **out); // empty, with a main graph
// A deep copy of the structure, neither prepared nor final; constants are shared and stay alive as
// long as either model.
ot_status ot__model_clone(const ot_model *model, ot_model **out);
// The model for one more owner, who destroys it too: itself where it is final, else a clone.
ot_status ot__model_acquire(const ot_model *model, ot_model **out);
// model_bytes.c: what models take of ot__alloc; constants with memory of their own are apart.
ot_status ot__models_measure(const ot_model *const *models, int n_models, size_t *structure,
                             size_t *constants);
// What `other` holds (strings, attributes, constants) stays alive as long as `model`, for parts
// taken over from it.
ot_status ot__model_keep(ot_model *model, const ot_model *other);
int64_t ot__model_opset(const ot_model *model, const char *domain); // 0 when not imported
ot_status ot__model_set_opset(ot_model *model, const char *domain, int64_t version);
// Closed with the last model; *map is taken over, also on failure. `name` (copied; NULL: none) is
// what ot__model_find_map finds it by.
ot_status ot__model_hold_map(ot_model *model, const char *name, ot__file_map *map);
const ot__file_map *ot__model_find_map(const ot_model *model, const char *name); // NULL when absent
// Destroyed with the last model; taken over, also on failure.
ot_status ot__model_hold_tensor(ot_model *model, ot_tensor *tensor);
ot_graph *ot__graph_create(ot_model *model, ot_graph *parent, const char *name);

// constant.c
// A tensor that the model holds, over bytes that live in its arena or a held map.
ot_tensor *ot__model_tensor_over(ot_model *model, ot_dtype dtype, const ot_shape *shape,
                                 const void *data, size_t n_bytes);
// A tensor that the model holds, with fresh zeroed elements.
ot_tensor *ot__model_tensor_new(ot_model *model, ot_dtype dtype, const ot_shape *shape);
// From this size on a constant is never copied when it is read: it may lie at any byte of a file.
#define OT_SPAN_MIN ((size_t)64 << 10)
// Gives such constants of the model that kernels cannot take as they are memory of their own. For
// who makes plans.
ot_status ot__model_align_constants(ot_model *model);
// A copy of a constant of the model. What was read of a mapped file for it is given back.
ot_status ot__constant_clone(const ot_model *model, const ot_tensor *constant, ot_tensor **out);
// Large tensors of ot__model_tensor_new that no value and no attribute of the model refers to any
// more are freed, unless a clone holds them; pages of mapped files are given back until they are
// read again. Whoever keeps such a tensor elsewhere must not call it.
ot_status ot__model_drop_unused(ot_model *model);

// Constants that nodes read, as folding leaves them, become initializers: in a file they must be.
ot_status ot__graph_list_constants(ot_graph *graph);

// metadata.c: `text` as what the model says under `key`; it is freed, also on failure
ot_status ot__model_set_metadata_text(ot_model *model, const char *key, ot__buf *text);
// metadata.c: the model's without what it says under `key`
ot_status ot__model_drop_metadata(ot_model *model, const char *key);
// metadata.c: what the file says under `key`; NULL when absent
const char *ot__metadata_get(const ot__metadata *metadata, const char *key);
// metadata_list.c: the strings of a list as Python prints it: "['', 'enc', 'enc.0']". *n: how many;
// -1 when `text` is no such list, and then nothing is allocated for it. Of the arena; NULL when out
// of memory.
const char *const *ot__metadata_list(ot__arena *arena, const char *text, int *n);
// metadata_list.c: cut a line of an exported program's signature, "b_m: BUFFER target='l.m' ...",
// into what is before the colon, "BUFFER target=" and "l.m". False: it is no such line, unchanged.
bool ot__metadata_input(char *line, const char **kind, const char **target);

// node.c: building
ot_value *ot__graph_find(const ot_graph *graph, const char *name); // this graph only
ot_value *ot__graph_find_visible(const ot_graph *graph,
                                 const char *name); // this graph, then its parents
// OT_ERR_NOT_FOUND with the text, the outputs there are, and the value that was probably meant by
// `name` (inspect.c).
ot_status ot__graph_no_value(const ot_graph *graph, const char *name, const char *format, ...)
    OT_PRINTF(3, 4);
// The value called `name` (copied), made untyped when new.
ot_value *ot__graph_value(ot_graph *graph, const char *name);
// A new value with a name not in the graph yet: `base`, else base_1, base_2, ...
ot_value *ot__graph_new_value(ot_graph *graph, const char *base);
// The name is free again; lists and nodes that have the value keep it.
void ot__graph_forget_value(ot_graph *graph, const ot_value *value);
void ot__value_set(ot_value *value, ot_dtype dtype,
                   const ot_shape *shape); // tensor; shape NULL: unknown
bool ot__graph_add_input(ot_graph *graph, ot_value *value);
bool ot__graph_add_output(ot_graph *graph, ot_value *value);
bool ot__graph_add_initializer(ot_graph *graph, ot_value *value, ot_tensor *constant);
// Append a node; strings are copied; entries of inputs and outputs may be NULL. Outputs get this
// node as producer.
ot_node *ot__graph_add_node(ot_graph *graph, const char *domain, const char *op_type,
                            const char *name, ot_value *const *inputs, int n_inputs,
                            ot_value *const *outputs, int n_outputs);
// Input i becomes `value`; inputs before it that the node has not are omitted ones.
bool ot__node_put_input(ot_node *node, int i, ot_value *value);
bool ot__node_is(const ot_node *node, const char *domain, const char *op_type); // NULL: no
ot_attr *ot__node_attr(const ot_node *node, const char *name);                  // NULL when absent
ot_attr *ot__node_add_attr(ot_node *node, const char *name,
                           ot_attr_kind kind); // replaces one of that name
bool ot__node_set_int(ot_node *node, const char *name, int64_t value);
bool ot__node_set_float(ot_node *node, const char *name, float value);
bool ot__node_set_ints(ot_node *node, const char *name, const int64_t *values, int n);
bool ot__node_set_floats(ot_node *node, const char *name, const float *values, int n);
bool ot__node_set_strings(ot_node *node, const char *name, const char *const *values, int n);
bool ot__node_set_string(ot_node *node, const char *name, const char *value);
bool ot__node_set_tensor(ot_node *node, const char *name, ot_tensor *value); // held by the model
void ot__node_remove_attr(ot_node *node, const char *name);
bool ot__node_copy_attrs(ot_node *to, const ot_node *from);
const char *ot__node_label(const ot_node *node, char *text,
                           size_t size);                          // "Gemm 'fc1'", for messages
#define OT_LABEL(node) ot__node_label(node, (char[160]){""}, 160) // in the block around it

// ---- building (builder.c) ----
//
// The one way in which code writes nodes: gradient rules and expansions (op/emit.c), losses,
// optimizers and what users build (artifacts/block.c), seeds, sums and accumulators of gradients.
// A builder keeps the first error; after it every function does nothing, returns NULL or false, and
// takes NULL, so nobody checks on the way. What things are called is its user's affair: each has
// rules of its own for names. `op` finds the record of a new node and infers what the node makes:
// ot__op_build and ot__op_settle.
typedef struct ot__builder {
    ot_graph *graph;
    ot_status status;                            // the first error; its message is the thread's
    void (*failed)(struct ot__builder *builder); // told of the first error; NULL: nobody
} ot__builder;
bool ot__build_note(ot__builder *b, ot_status status); // keep it, if the first; false after one
bool ot__build_made(ot__builder *b, bool made);        // OT_ERR_NO_MEMORY unless made
// A text of the model's arena, as values and nodes are called.
const char *ot__build_name(ot__builder *b, const char *format, ...) OT_PRINTF(2, 3);
ot_value *ot__build_value(ot__builder *b, const char *name); // new: `name`, else name_1, ...
// A new initializer of zeros, whose elements (value->constant) are the caller's to set.
ot_value *ot__build_initializer(ot__builder *b, const char *name, ot_dtype dtype,
                                const ot_shape *shape);
void ot__build_input(ot__builder *b, ot_value *value);
void ot__build_output(ot__builder *b, ot_value *value);
// A node as of ot__graph_add_node, without record; its domain is imported if it is not.
ot_node *ot__build_node(ot__builder *b, const char *domain, const char *op_type, const char *name,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs);
void ot__build_int(ot__builder *b, ot_node *node, const char *name, int64_t value);
void ot__build_float(ot__builder *b, ot_node *node, const char *name, double value);
void ot__build_ints(ot__builder *b, ot_node *node, const char *name, const int64_t *values, int n);
void ot__build_string(ot__builder *b, ot_node *node, const char *name, const char *value);
// A tensor of one element, as ConstantOfShape takes it.
void ot__build_number(ot__builder *b, ot_node *node, const char *name, ot_dtype dtype,
                      double number);

// Appends "com.acme.Foo, Bar": operators of the graph, each once, of the nodes that `is_listed`
// accepts.
void ot__graph_list_operators(const ot_graph *graph, bool (*is_listed)(const ot_node *node),
                              ot__buf *text);

// edit.c: changing
// Inputs, outputs and initializers that are none any more, as the values say, leave the lists.
void ot__graph_relist(ot_graph *graph);
void ot__graph_clear_outputs(ot_graph *graph);
// Removing nodes takes two steps, so that removing many takes one walk: a detached node's outputs
// lose their producer, and it belongs to no graph, but stays in the list until those are dropped.
void ot__node_detach(ot_node *node);
void ot__node_remove(ot_node *node); // detached, and the names of its outputs are free again
// Into a graph inside that of the node, with what it makes; its former graph still lists it.
ot_status ot__node_move(ot_node *node, ot_graph *to);
void ot__graph_drop_detached(ot_graph *graph);
// Give `value` the name `base`, or base_1, base_2, ... when that is taken. False when out of
// memory.
bool ot__graph_rename_value(ot_graph *graph, ot_value *value, const char *base);
// The subgraphs in the attributes of a node, each in its turn:
// for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
typedef struct ot__subgraphs {
    const ot_node *node;
    ot_graph *graph; // the one at hand
    int i_attr, i;   // where the next one is
} ot__subgraphs;
bool ot__next_subgraph(ot__subgraphs *subgraphs);
// Calls visit(context, value) for every value that the subgraphs of `node` read, at any depth.
void ot__node_visit_captures(const ot_node *node, void (*visit)(void *context, ot_value *value),
                             void *context);
// Drop nodes that no output needs and for which `keep` (may be NULL) does not return true; then
// unused initializers.
typedef bool (*ot__keep_function)(const ot_node *node);
ot_status ot__graph_prune(ot_graph *graph, ot__keep_function keep);
ot_status ot__graph_sort(
    ot_graph *graph); // topological, stable; a cycle is OT_ERR_FORMAT naming a node on it
// Insert model-local functions where they are called, until none is left; recursion is an error.
// After an error the model may only be destroyed.
ot_status ot__model_inline_functions(ot_model *model);

// inline_body.c: appends copies of the nodes of `body`, which is inside a node of `graph`, to
// `graph`. `given` stand for the body's inputs; *made: what its outputs are there.
ot_status ot__graph_inline_body(ot_graph *graph, const ot_graph *body, ot_value *const *given,
                                ot_value **made);

#include "graph/numbers.h"

// verify.c
// Whole structure: defined before use, unique names, no cycle, producers consistent, outputs
// defined. What the operators demand is ot__pass_check's business.
ot_status ot__graph_verify(const ot_graph *graph);
ot_status ot__model_verify(const ot_model *model); // the main graph and the bodies of the functions

#endif
