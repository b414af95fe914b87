// SPDX-License-Identifier: Apache-2.0
// Defining operators. Experimental until 1.0: the very interface the operators of the library
// itself use. Libraries of others use it too (ot_op_library_load() in onnxtrain/operators.h), so
// every change of this header raises OT_OP_ABI.
//
// An operator is one record (ot_op_def): its ports and attributes, how shapes follow, its gradient
// as ordinary nodes, and its kernels. Graph-time callbacks (infer, grad, upgrade) return nothing:
// their context keeps the first error, and every function on it is a no-op after that, so a rule
// reads like its formula. Contexts and nodes are the library's, for the time of the callback they
// are handed to, and never NULL.
#ifndef ONNXTRAIN_OP_H
#define ONNXTRAIN_OP_H

#include <stdbool.h>

#include "onnxtrain/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OT_OP_LIBRARY_API __attribute__((visibility("default")))
#else
#define OT_OP_LIBRARY_API
#endif

typedef struct ot_op_def ot_op_def;
typedef struct ot_node ot_node;
typedef struct ot_value ot_value;
typedef struct ot_infer ot_infer;
typedef struct ot_grad ot_grad;
typedef struct ot_upgrade ot_upgrade;
typedef struct ot_prep ot_prep;
typedef struct ot_layout ot_layout;
typedef struct ot_update_rule ot_update_rule; ///< optimizers: of the library

/** The version of this header. A library of operators that was compiled with another one is not
 * loaded. */
#define OT_OP_ABI 1

// ---- the record ----

enum {
    OT_PORT_OPTIONAL = 1,       ///< may be absent
    OT_PORT_VARIADIC = 2,       ///< the last port: any number, all of its type variable
    OT_PORT_NO_GRAD = 4,        ///< never receives or passes on a gradient
    OT_PORT_STATE = 8,          ///< written by the node in place (accumulators, running statistics,
                                ///< parameters in optimizers)
    OT_PORT_SEQUENCE = 16,      ///< a sequence of tensors of the type variable
    OT_PORT_HETEROGENEOUS = 32, ///< variadic: each may have another type
    // What a parameter is for its operator; at most one of:
    OT_PORT_TABLE = 64,       ///< indices choose among its rows
    OT_PORT_WEIGHT = 128,     ///< multiplied as matrix or filter
    OT_PORT_BIAS = 256,       ///< added to the result
    OT_PORT_SCALE = 512,      ///< multiplied with the normalised input
    OT_PORT_STATISTIC = 1024, ///< running mean or variance
    OT_PORT_TYPE_ONLY = 4096, ///< its element type is looked at, nothing else
    OT_PORT_F32 = 2048, ///< f32 where other values have a narrower type (mixed precision): state,
                        ///< statistics, scales of normalisations, losses
};

typedef struct ot_port {
    const char *name;
    const char *type; ///< a type variable of `types` ("T") or one element type ("i64")
    unsigned flags;
} ot_port;

/** Attribute kinds, with ONNX's numbers. */
enum {
    OT_ATTRIBUTE_FLOAT = 1,
    OT_ATTRIBUTE_INT = 2,
    OT_ATTRIBUTE_STRING = 3,
    OT_ATTRIBUTE_TENSOR = 4,
    OT_ATTRIBUTE_GRAPH = 5,
    OT_ATTRIBUTE_FLOATS = 6,
    OT_ATTRIBUTE_INTS = 7,
    OT_ATTRIBUTE_STRINGS = 8,
};
enum { OT_ATTR_REQUIRED = 1, OT_ATTR_HAS_DEFAULT = 2 };

typedef struct ot_attr_spec {
    const char *name;
    int kind;
    unsigned flags;
    int64_t i;     ///< the default of an int
    float f;       ///< of a float
    const char *s; ///< of a string
    double low,
        high; ///< bounds of each number, where low < high: low <= number < high, and none above
              ///< where high is infinite
} ot_attr_spec;

enum {
    OT_OP_NO_GRAD = 1,  ///< not differentiable: stops the gradient
    OT_OP_IN_PLACE = 2, ///< output 0 may share input 0's memory (same type and count), or input 1's
                        ///< when it has the shape
    OT_OP_RANDOM = 4,   ///< draws from the step's generator; never folded
    OT_OP_VIEW = 8, ///< output 0 is input 0's bytes under another shape: no kernel runs when memory
                    ///< is shared
    OT_OP_SHAPE_ONLY = 16,  ///< reads input 0's shape, never its elements
    OT_OP_ANY_LAYOUT = 32,  ///< elementwise: any layout, as long as all full-shape operands share
                            ///< it; with sequences: the tensors at one position share it
    OT_OP_INTERNAL = 64,    ///< made by a fuse pass, never written to a file
    OT_OP_ACCUMULATE = 128, ///< input 0, which is state, becomes itself plus input 1, or input 1
                            ///< where input 2 is true; nothing is left to do where input 1 has
                            ///< been made in the memory of input 0
    OT_OP_REARRANGE = 256,  ///< output 0 is input 0's elements, each once, in another order or of
                            ///< another type; every OT_OP_VIEW is as much
    OT_OP_LATE_PARTS = 512, ///< its part of a value's gradient is numbered after the parts of other
                            ///< nodes, as in ONNX Runtime; generated names depend on it
    OT_OP_FREE_AGAIN = 1024, ///< to make output 0 again by `recompute` costs no more than to keep
                             ///< it: that is done without being asked for
    OT_OP_ORDERED = 2048, ///< takes part in something that all ranks do, so that nodes with it run
                          ///< in the order of the graph, and also after another node has failed
    OT_OP_START = 4096,   ///< begins what goes on while other nodes run: it runs as early as it can
    OT_OP_LATE = 8192,    ///< runs when no other node can
    // In the memory of a buffer, one tensor after the other; the attribute "offsets" says at which
    // element each of them begins.
    OT_OP_PARTS = 16384,       ///< the last outputs lie in the memory of input 0
    OT_OP_JOIN = 32768,        ///< the last inputs may be made in the memory of output 0
    OT_OP_PAUSE = 65536,       ///< a run may stop behind it, and go on later
    OT_OP_TENSORWISE = 131072, ///< what it makes of the tensors at one position of its sequences
                               ///< depends on no others, and a tensor may stand for a sequence
};

/** One tensor as a kernel sees it. */
typedef struct ot_arg {
    void *data; ///< NULL while preparing
    ot_dtype dtype;
    ot_shape shape;          ///< logical, concrete
    int64_t count;           ///< elements (without padding of the layout)
    const ot_layout *layout; ///< NULL: row-major
} ot_arg;

/** What is done with a bucket whose tensors are cut over ranks. */
typedef enum ot_transfer {
    OT_TRANSFER_GATHER_START,
    OT_TRANSFER_GATHER_WAIT,
    OT_TRANSFER_SCATTER_START,
    OT_TRANSFER_SCATTER_WAIT,
} ot_transfer;

/** What nodes do together with the other ranks of a training. A function that is NULL has nothing
 * to do. */
typedef struct ot_exchange {
    void *context; ///< of the functions
    /** Each of n numbers becomes its sum over all ranks, in their order. */
    ot_status (*sum)(void *context, double *numbers, int n);
    /** Begin to sum the gradients of a bucket over all ranks. */
    ot_status (*reduce_start)(void *context, int64_t bucket);
    /** Go on with what has begun, without waiting. */
    ot_status (*poke)(void *context);
    /** Begin or end to gather the values of a bucket in `buffer`, or to sum the gradients there. */
    ot_status (*transfer)(void *context, ot_transfer what, int64_t bucket, void *buffer);
    double weight; ///< by which the loss of this rank counts for that of all
    bool is_ghost; ///< what this rank computes is of no batch: it takes part in sums and adds
                   ///< nothing
} ot_exchange;

/** What changes from step to step. */
typedef struct ot_step {
    uint64_t seed, counter; ///< of the random generator: seed and micro-batch counter
    uint64_t rank;
    bool training;               ///< false in an eval step
    const ot_exchange *exchange; ///< NULL: there are no other ranks
} ot_step;

/** Arguments of ot_kernel.run; absent optional ports are NULL. Sequences stand expanded, one entry
 * a tensor. */
typedef struct ot_run {
    const ot_arg *const *in;
    ot_arg *const *out;
    int n_in, n_out;
    const int *in_first; ///< in_first[i] .. in_first[i + 1]: entries of input port i (one each
                         ///< unless a sequence)
    void *state;   ///< of ot_prep_state(), written by prepare; read-only in run unless the kernel
                   ///< says otherwise
    void *scratch; ///< of ot_prep_scratch(); undefined contents
    const ot_step *step;
    int n_threads;
    unsigned accumulates; ///< bit i: output i is to be added to what is in its memory; only bits
                          ///< that ot_kernel.accumulates has
} ot_run;

enum {
    OT_KERNEL_THREAD_EXACT = 1, ///< same bits for any number of threads
    OT_KERNEL_LIBRARY = 2,      ///< computed by a library (oneDNN), not by our own loops
    OT_KERNEL_REFERENCE = 4, ///< portable C, the oracle of the others; taken where none of them is
    OT_KERNEL_MIXED = 8,     ///< ports of one type variable may have several of its types
};

/** One implementation, for the element types that it names. */
typedef struct ot_kernel {
    const char *name; ///< "ref", "simd", "dnnl"
    const char
        *types; ///< "T: f32", as ot_op_def.types; variables not named: all types of the record
    unsigned flags;
    unsigned
        accumulates; ///< bit i: output i can be added to what is in its memory (ot_run.accumulates)
    bool (*can_run)(const ot_prep *p); ///< NULL: always
    /**
     * NULL: all ports row-major. Otherwise state with ot_prep_want() the layouts wanted, given the
     * layouts that ot_prep_offered() shows; called before prepare.
     */
    void (*layouts)(ot_prep *p);
    ot_status (*prepare)(ot_prep *p); ///< once per plan; NULL: nothing to prepare
    ot_status (*run)(
        const ot_run *r); ///< allocates nothing; fails only for bad values (index out of range)
    void (*release)(void *state); ///< undo prepare; NULL: nothing
} ot_kernel;

/**
 * One tile of an elementwise operator: y[k] = f(x[0][k], x[1][k], ...) for k in 0..n-1, all
 * contiguous. y may be any x; x[i] is NULL for an omitted input. One function serves the plain
 * kernel, gradients and fused chains. `attrs` are the float attributes of the record, in its order.
 */
typedef void (*ot_tile_f32)(float *y, const float *const *x, int64_t n, const float *attrs);
typedef void (*ot_tile_f64)(double *y, const double *const *x, int64_t n, const float *attrs);
typedef void (*ot_tile_i32)(int32_t *y, const int32_t *const *x, int64_t n, const float *attrs);
typedef void (*ot_tile_i64)(int64_t *y, const int64_t *const *x, int64_t n, const float *attrs);
enum { OT_TILE_MAX_ATTRS = 4 };
typedef struct ot_tile {
    ot_tile_f32 f32; ///< NULL: f64 serves, element by element converted
    ot_tile_f64 f64; ///< also the reference of f32
    ot_tile_i32 i32; ///< NULL unless the record's types have i32
    ot_tile_i64 i64;
    bool rounds_once; ///< f32: at most one rounding an element, so that every loop, vector or not,
                      ///< gives the same bits; what a product may apply to its elements
} ot_tile;

struct ot_op_def {
    const char *domain; ///< NULL or "" is ai.onnx
    const char *name;   ///< as ONNX spells it
    int since;          ///< first opset this record is valid for
    const ot_port *inputs, *outputs;
    const ot_attr_spec *attrs; ///< NULL: none
    const char *types;         ///< "T: f32 f64; I: i32 i64"; "any" is every type but string
    void (*infer)(ot_infer *c);
    const ot_kernel *kernels; ///< best first, references last; NULL for records with upgrade, and
                              ///< in a library of operators for those of the tile
    const ot_tile *tile;      ///< elementwise operators
    void (*grad)(ot_grad *g); ///< NULL only with OT_OP_NO_GRAD or upgrade
    void (*upgrade)(ot_upgrade *u);
    unsigned flags;
    void (*expand)(ot_grad *g); ///< operators that ONNX does not have: the same in ONNX's own;
                                ///< NULL: ONNX cannot say it
    void (*train)(ot_grad *g);  ///< as expand, before gradients are built: the node in operators
                                ///< whose gradient there is, here or also in ONNX Runtime; NULL:
                                ///< it stays. A record that has it and no kernels is composed: so
                                ///< its nodes are written wherever they run, too, and kernels and
                                ///< gradients are those of the other operators
    void (*eval)(ot_grad *g);   ///< as expand, in the eval model: the node in operators that also
                                ///< ONNX Runtime runs; NULL: it stays
    ot_value *(*recompute)(ot_grad *g); ///< emits one node that makes output 0 once more, to the
                                        ///< bit, from inputs and other outputs; NULL, or a result
                                        ///< of NULL: a copy of the node does so, unless it is
                                        ///< OT_OP_RANDOM or has state, which then is not made again
    bool (*identity_when)(const ot_node *node); ///< whether output 0 is input 0 unchanged; both are
                                                ///< given; NULL: never
    void (*raise)(
        ot_upgrade *u);         ///< as upgrade, of a record with kernels, where a model is raised
                                ///< to an opset of the next record; NULL: the contract is the same
    const ot_update_rule *rule; ///< optimizers: what they keep of each parameter; NULL: none is
    /** What may be computed a few images at a time, as bits of ports: the inputs and outputs whose
     * axis 0 counts images, each image of the outputs following from that of the inputs, and the
     * outputs that are sums over images. No inputs: all images at once. */
    struct {
        unsigned in, out, sums;
    } by_image;
    unsigned spent; ///< inputs, as bits, that every kernel has read to the end before it writes
                    ///< output 0: where they are converted copies, output 0 may be in their place
};

// ---- libraries of operators ----

/** What a shared library defines. It and all that it points to stay as they are. */
struct ot_op_library {
    int abi;                     ///< OT_OP_ABI; stays the first member
    int n_ops;                   ///< of `ops`
    const ot_op_def *const *ops; ///< the records of each operator, oldest first, ended by {0}; all
                                 ///< of one domain and name
};

/**
 * The one function that a library of operators defines. Its records are as those of onnxtrain
 * itself, but that none is an optimizer. A record that has a `tile` and no kernels gets the
 * kernels of elementwise operators, vector code and threads included: its ports are then of the
 * variable T, of f32, f64, i32 or i64, and it has one output.
 */
OT_OP_LIBRARY_API const struct ot_op_library *ot_op_library(void);

// ---- attributes: the node's, or the default of its record ----

OT_API bool ot_attr_given(const ot_node *node, const char *name);
OT_API int64_t ot_attr_int(const ot_node *node, const char *name);
OT_API float ot_attr_float(const ot_node *node, const char *name);
OT_API const char *ot_attr_string(const ot_node *node, const char *name); ///< "" when absent
OT_API const int64_t *ot_attr_ints(const ot_node *node, const char *name,
                                   int *n); ///< NULL and 0 when absent
OT_API const float *ot_attr_floats(const ot_node *node, const char *name, int *n);
OT_API const ot_tensor *ot_attr_tensor(const ot_node *node, const char *name); ///< NULL when absent

// ---- shape inference ----
//
// Called when all inputs' types fit the record and the rank of every input is known. Dim sizes
// below 0 are symbolic or unknown.

OT_API const ot_node *ot_infer_node(const ot_infer *c);
OT_API int ot_infer_input_count(const ot_infer *c);
OT_API int ot_infer_output_count(const ot_infer *c);
OT_API bool ot_infer_has(const ot_infer *c, int input);    ///< present, not omitted
OT_API bool ot_infer_wants(const ot_infer *c, int output); ///< present, not omitted
OT_API ot_dtype ot_infer_dtype(const ot_infer *c, int input);
OT_API const ot_shape *ot_infer_shape(const ot_infer *c,
                                      int input); ///< a scalar's for absent inputs; never NULL
/** Elements when they are constant (initializers and folded values that do not train), else NULL.
 */
OT_API const ot_tensor *ot_infer_constant(const ot_infer *c, int input);
/** Elements of a small integer tensor as far as known: numbers or symbolic dim sizes. NULL: nothing
 * known. */
OT_API const int64_t *ot_infer_values(const ot_infer *c, int input, int *n);
/** Set an output's type and shape. Outputs beyond those present are ignored. */
OT_API void ot_infer_set(ot_infer *c, int output, ot_dtype dtype, const ot_shape *shape);
OT_API void ot_infer_set_unknown(ot_infer *c, int output, ot_dtype dtype); ///< rank unknown
/** Say what is known of an integer output's elements (at most OT_MAX_KNOWN of them are kept). */
OT_API void ot_infer_set_values(ot_infer *c, int output, const int64_t *values, int n);
OT_API OT_COLD void ot_infer_fail(ot_infer *c, const char *format, ...) OT_PRINTF(2, 3);
enum { OT_MAX_KNOWN = 64 };
/** Arithmetic on dim sizes and known elements; works with symbols, gives unknown where nothing can
 * be said. */
OT_API int64_t ot_infer_add(ot_infer *c, int64_t a, int64_t b);
OT_API int64_t ot_infer_sub(ot_infer *c, int64_t a, int64_t b);
OT_API int64_t ot_infer_mul(ot_infer *c, int64_t a, int64_t b);
OT_API int64_t ot_infer_div(ot_infer *c, int64_t a, int64_t b); ///< floor
OT_API int64_t ot_infer_mod(ot_infer *c, int64_t a, int64_t b);
OT_API bool ot_dim_is_number(int64_t dim); ///< a number: for elements also negative ones
OT_API int64_t ot_dim_unknown(void);
/** y = broadcast of inputs a and b, failing with a message when they do not fit. */
OT_API bool ot_infer_broadcast(ot_infer *c, const ot_shape *a, const ot_shape *b, ot_shape *y);
/** axis in -ndim..ndim-1 brought to 0..ndim-1, failing with a message. */
OT_API bool ot_infer_axis(ot_infer *c, int64_t axis, int ndim, int *out);

// ---- gradient rules ----
//
// A rule emits nodes that compute the gradients of the inputs from those of the outputs. Operators
// are named as in ONNX's textual syntax: "Mul", "com.microsoft.ReluGrad". Values emitted have type
// and shape at once. All emit functions return NULL after an error, and accept NULL.

OT_API const ot_node *ot_grad_node(const ot_grad *g);
OT_API int ot_grad_input_count(const ot_grad *g);
OT_API int ot_grad_output_count(const ot_grad *g);
OT_API ot_value *ot_grad_x(ot_grad *g, int input);  ///< forward input; NULL when omitted
OT_API ot_value *ot_grad_y(ot_grad *g, int output); ///< forward output; made when the node omits it
OT_API ot_value *ot_grad_dy(ot_grad *g, int output); ///< its gradient; NULL when none arrives there
/** As ot_grad_dy(), with zeros of the output's shape when none arrives. */
OT_API ot_value *ot_grad_dy_or_zeros(ot_grad *g, int output);
OT_API bool ot_grad_wants(const ot_grad *g, int input);
OT_API void ot_grad_set_dx(ot_grad *g, int input, ot_value *dx);
OT_API OT_COLD void ot_grad_fail(ot_grad *g, const char *format, ...) OT_PRINTF(2, 3);
OT_API ot_dtype ot_value_dtype(const ot_value *value);
OT_API const ot_shape *
ot_value_shape(const ot_value *value); ///< dim sizes below 0 are symbolic or unknown
OT_API bool ot_value_has_shape(const ot_value *value);
OT_API const ot_tensor *
ot_value_constant(const ot_value *value); ///< elements when constant, else NULL
/** Known elements of a small integer value, as ot_infer_values(). */
OT_API const int64_t *ot_value_known(const ot_value *value, int *n);

/** Append a node; `attrs` in ONNX's textual form without brackets ("transA = 1, alpha = 0.5"),
 * NULL for none. */
OT_API ot_node *ot_emit(ot_grad *g, const char *op, const char *attrs, ot_value *const *inputs,
                        int n_inputs, int n_outputs);
OT_API ot_value *ot_emit_output(ot_grad *g, ot_node *node,
                                int output); ///< also infers shapes (once, with all attributes set)
OT_API void ot_emit_int(ot_grad *g, ot_node *node, const char *name, int64_t value);
OT_API void ot_emit_ints(ot_grad *g, ot_node *node, const char *name, const int64_t *values, int n);
OT_API void ot_emit_float(ot_grad *g, ot_node *node, const char *name, float value);
OT_API void ot_emit_string(ot_grad *g, ot_node *node, const char *name, const char *value);
OT_API void ot_emit_forward_attrs(ot_grad *g,
                                  ot_node *node); ///< copy all attributes of the forward node
OT_API void ot_emit_omit_output(ot_grad *g, ot_node *node,
                                int output); ///< leave this output's name empty
/** One output, no attributes. */
OT_API ot_value *ot_emit1(ot_grad *g, const char *op, ot_value *a);
OT_API ot_value *ot_emit2(ot_grad *g, const char *op, ot_value *a, ot_value *b);
OT_API ot_value *ot_emit3(ot_grad *g, const char *op, ot_value *a, ot_value *b, ot_value *c);
/** A scalar-like constant of shape [] in the element type of `like`. */
OT_API ot_value *ot_emit_constant(ot_grad *g, double number, const ot_value *like);
OT_API ot_value *ot_emit_constant_i64(ot_grad *g, const int64_t *numbers, int n); ///< shape [n]
OT_API ot_value *
ot_emit_shape(ot_grad *g, ot_value *x); ///< i64 [ndim]: a constant when static, else a Shape node
/** Sum `dy` over the axes along which a value of x's shape was broadcast to it; the result has x's
 * shape. */
OT_API ot_value *ot_emit_sum_to(ot_grad *g, ot_value *dy, ot_value *x);
/** Reshape to x's shape; nothing when it has it. */
OT_API ot_value *ot_emit_reshape_like(ot_grad *g, ot_value *v, ot_value *x);
/** Zeros of x's shape and type. */
OT_API ot_value *ot_emit_zeros_like(ot_grad *g, ot_value *x);
OT_API ot_value *ot_emit_cast(ot_grad *g, ot_value *v,
                              ot_dtype dtype); ///< nothing when it has that type

// ---- expansions: write a node in other operators, with the functions above; ot_grad_x() are the
// inputs of the node itself. A callback that sets no output leaves the node as it is; otherwise it
// sets all that are wanted, as the last thing it does. ----

OT_API bool ot_expand_wants(const ot_grad *g, int output);
OT_API void ot_expand_set(ot_grad *g, int output, ot_value *value);

// ---- upgrades: rewrite a node of an older opset into the next contract ----

OT_API ot_node *ot_upgrade_node(ot_upgrade *u); ///< edit attributes through the functions below
OT_API OT_COLD void ot_upgrade_fail(ot_upgrade *u, const char *format, ...) OT_PRINTF(2, 3);
/** Turn an ints (or int) attribute into input number `input`, a constant of shape [n]; nothing when
 * absent. */
OT_API void ot_upgrade_ints_to_input(ot_upgrade *u, const char *attr, int input);
/** Turn a float attribute (or, when absent, `otherwise` unless NaN) into input number `input`, a
 * scalar of the type of input 0. */
OT_API void ot_upgrade_float_to_input(ot_upgrade *u, const char *attr, float otherwise, int input);
OT_API void ot_upgrade_set_int(ot_upgrade *u, const char *attr, int64_t value);
OT_API void ot_upgrade_set_float(ot_upgrade *u, const char *attr, float value);
OT_API void ot_upgrade_set_string(ot_upgrade *u, const char *attr, const char *value);
OT_API void ot_upgrade_remove_attr(ot_upgrade *u, const char *attr);
OT_API void ot_upgrade_keep_outputs(ot_upgrade *u, int n_outputs); ///< drop the outputs behind
/** Rename the operator: the node becomes another one's call. */
OT_API void ot_upgrade_rename(ot_upgrade *u, const char *op);

// ---- kernels: preparing ----

OT_API const ot_node *ot_prep_node(const ot_prep *p);
OT_API int ot_prep_input_count(const ot_prep *p); ///< entries, sequences expanded
OT_API int ot_prep_output_count(const ot_prep *p);
OT_API const ot_arg *ot_prep_in(const ot_prep *p, int i);  ///< NULL: omitted
OT_API const ot_arg *ot_prep_out(const ot_prep *p, int i); ///< NULL: omitted
/** Elements of an input that is the same in every run of this plan, row-major; else NULL. */
OT_API const void *ot_prep_constant(const ot_prep *p, int i);
OT_API int ot_prep_threads(const ot_prep *p);
/** What can_run returns together with the reason, which ot_session_describe_plan() shows: true, or
 * false. `reason` lives until the kernel is prepared; prepare, too, may say why it takes the node.
 */
OT_API bool ot_prep_takes(const ot_prep *p, const char *reason);
OT_API bool ot_prep_declines(const ot_prep *p, const char *reason);
OT_API bool ot_prep_reproducible(const ot_prep *p); ///< same bits wanted for any number of threads
/** Memory that lives with the plan, zeroed; the run's `state`. Call once; NULL (and the error) when
 * out of memory. */
OT_API void *ot_prep_state(ot_prep *p, size_t n_bytes);
/** Bytes that run needs as scratch, 64-byte aligned. */
OT_API void ot_prep_scratch(ot_prep *p, size_t n_bytes);
/** The tensor that input or output port is offered in, before layouts are settled. */
OT_API const ot_layout *ot_prep_offered_in(const ot_prep *p, int i);
/** Input i is a parameter whose layout is chosen now, for all kernels that read it and for its
 * gradient: want what is fastest. Else want, of an input that is a parameter, the layout it is
 * offered in if the kernel can do with it. */
OT_API bool ot_prep_is_open(const ot_prep *p, int i);
OT_API void ot_prep_want_in(ot_prep *p, int i, const ot_layout *layout);
OT_API void ot_prep_want_out(ot_prep *p, int i, const ot_layout *layout);
OT_API OT_COLD ot_status ot_prep_fail(ot_prep *p, ot_status status, const char *format, ...)
    OT_PRINTF(3, 4);

// ---- kernels: running ----

/** Say what is wrong with a value, on the thread that has called run. Returns `status`. */
OT_API OT_COLD ot_status ot_run_fail(const ot_run *r, ot_status status, const char *format, ...)
    OT_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
