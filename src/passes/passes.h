// SPDX-License-Identifier: Apache-2.0
// Interface of `passes`: graph to graph. Each pass leaves a graph that ot__graph_verify accepts.
#ifndef OT_PASSES_PASSES_H
#define OT_PASSES_PASSES_H

#include "graph/graph.h"
#include "op/op.h"

// Called after every pass with its name ("fold"); the layers above set it to dump graphs
// (OT_DUMP_GRAPH).
typedef void (*ot__pass_observer)(const ot_model *model, const char *pass);
void ot__pass_set_observer(ot__pass_observer observer);
// What every rewriting ends with: verifies (debug builds), then tells the observer.
ot_status ot__pass_finished(const ot_model *model, const char *pass);

// ---- match_*.c: find a pattern by the names of operators, and change nothing ----

bool ot__match_copy(const ot_node *node); // an Identity; NULL: no
bool ot__match_cast(const ot_node *node); // a Cast; NULL: no
// fuse_gemm.c: a FusedMatMul whose operands have their batches between rows and columns, as
// optimisers of others write it: no pattern has one.
bool ot__has_batches_inside(const ot_node *product);
// The tensor that a Constant makes; NULL: another node, or a value that is none. `node` may be
// NULL.
ot_tensor *ot__match_constant(const ot_node *node);
// The tensor of an initializer, or what a Constant makes; NULL: another value. `value` may be NULL.
const ot_tensor *ot__match_constant_value(const ot_value *value);
// The number that a constant of one element is. `value` may be NULL; false: none.
bool ot__match_number(const ot_value *value, double *number);
// An integer attribute of a node whose record is not known yet.
int64_t ot__match_int(const ot_node *node, const char *name, int64_t otherwise);
// What exporters normalise by where the module's scale stands elsewhere, or there is none: by ones
// and zeros.
bool ot__match_unit_norm(const ot_node *node);
// The scale and the bias of the normalisation that other operators than its own write out, with
// `node` as its root or its InstanceNormalization; NULL: there are none.
ot_status ot__match_norm_operands(const ot__uses *uses, ot_node *node, ot_value **scale,
                                  ot_value **bias);
// What PyTorch is likely to call a parameter that the node combines its data with: "bias" of an
// Add, "weight" of a Mul; "" otherwise.
const char *ot__match_leaf(const ot_node *node);
// The bias of a product or convolution with constant weights, its input OT_MATCH_BIAS, where it has
// none: how many elements it would have. 0: another node, or one that has it.
enum { OT_MATCH_BIAS = 2 };
int64_t ot__match_missing_bias(const ot_node *node);
// owner.c: "val_12", "slice_1": what PyTorch's newer exporter calls values, not parameters of
// modules.
bool ot__is_value_name(const char *name);
// "encoder.0.weight" is a parameter of a module; "onnx::MatMul_37", "/l/Gemm_output_0" and, with
// the newer exporter, "val_3" are not.
bool ot__is_parameter_name(const ot_graph *graph, const char *name);

// ---- passes ----

// What a reader's model goes through before anything else: inline functions, take apart what ONNX
// Runtime's optimiser has fused, resolve If, Loop and sequences whose way is known, raise the opset
// to 13, resolve and check every node (all unknown operators are named in one message), sort, infer
// types and shapes. A model that is_prepared stays as it is.
ot_status ot__pass_prepare(ot_model *model);
// The same, but nodes whose operator is unknown get the record ot__op_foreign and stay as they are.
ot_status ot__pass_prepare_carrying(ot_model *model);

// A model made of a prepared one, whose nodes were checked and inferred as they were added, is
// prepared too, unless some operator in it is unknown.
void ot__pass_mark_prepared(ot_model *model);

// pass_check.c: raise old nodes, resolve node->op, arity, attributes, types.
ot_status ot__pass_check(ot_model *model);
ot_status ot__pass_check_carrying(ot_model *model); // as ot__pass_prepare_carrying
// Operators of the model that have no record, each once: "Foo (opset 21)", "com.acme.Bar"; for
// reports.
ot_status ot__pass_unknown_operators(const ot_model *model, ot__buf *lines);
// pass_raise.c: whether all nodes of ai.onnx have the form that they have at `opset`, and giving
// them that of a later one. OT_ERR_INVALID or OT_ERR_UNSUPPORTED names a node that has none there.
bool ot__pass_is_of_opset(const ot_model *model, int64_t opset);
ot_status ot__pass_raise(ot_model *model, int64_t opset);
// fuse_undo.c: FusedGemm, FusedConv and SkipLayerNormalization of com.microsoft become the
// operators that they stand for.
ot_status ot__fuse_undo(ot_model *model);
// fuse_control.c: an If whose condition is constant, or follows from shapes, becomes the branch
// that it takes; a Loop or Scan whose number of turns does so, and is small, its turns. Others
// stay.
ot_status ot__fuse_control(ot_model *model);
// fuse_sequence.c: SplitToSequence whose parts are taken by constant positions becomes Split.
ot_status ot__fuse_sequence(ot_model *model);
// pass_sharing.c: parameters that an exporter merged into one tensor have tensors of their own
// again. For models that nothing has prepared, since it goes by what nodes and values are called.
typedef enum ot__sharing_kind {
    OT_SHARING_SEPARATED, // `parts` are the names that the tensor's parameters have now
    OT_SHARING_JOINED,    // `parts` are the names of the tensors that have become `name`
    OT_SHARING_LEFT,      // `parts` say who reads the one tensor
    OT_SHARING_RESTORED,  // `parts` are biases that the exporter has dropped as zeros
    OT_SHARING_LOST,      // `parts` are parameters that the exporter has computed away
    OT_SHARING_UNUSED,    // `parts` are parameters that nothing in the file mentions
} ot__sharing_kind;
typedef struct ot__sharing {
    ot__sharing_kind kind;
    const char *name; // in the file
    const char *const *parts;
    int n_parts;
} ot__sharing;
typedef struct ot__sharings { // of the model's arena
    ot__sharing *items;
    int n, capacity;
} ot__sharings;
// What stays as the file has it: patterns over names before and after. The pass marks in `used`,
// which has as many, those that matter.
typedef struct ot__kept_names {
    const char *const *patterns;
    int n;
    bool *used;
} ot__kept_names;
ot_status ot__pass_sharing(ot_model *model, const ot__kept_names *kept, ot__sharings *out);
// pass_infer.c: types, shapes and known elements of every value, with symbolic extents.
ot_status ot__pass_infer(ot_model *model);
ot_status ot__pass_infer_node(ot_node *node); // one of them, on its own
// pass_fold.c: Constant nodes and nodes whose inputs are all constant become constants (never
// inputs: parameters have been made inputs before). Values above `max_bytes` (0: 64 MiB) are left
// as nodes.
ot_status ot__pass_fold(ot_model *model, size_t max_bytes);
// The same, but while branches stand in the graph they need not fit the shapes: of nodes whose
// inputs do not fit nothing is known.
ot_status ot__pass_fold_branches(ot_model *model);
// What folding would make of one value of few nodes, in the model's arena; NULL: no constant.
ot_status ot__pass_known_constant(ot_model *model, const ot_value *value, const ot_tensor **out);
// pass_simplify.c: Identity, Cast to the same type, Dropout in inference, Reshape to the same
// shape: gone.
ot_status ot__pass_simplify(ot_model *model);
// pass_expand.c: operators that ONNX does not have become those it has, where there is such a form;
// imports that nothing needs any more go. For files, not for speed.
ot_status ot__pass_expand(ot_model *model);
// Operators that only training runtimes have go into the metadata (OT_METADATA_NONSTANDARD); NULL:
// there are none.
ot_status ot__pass_note_nonstandard(ot_model *model, const char **names);
// Imports that no node needs go: of this domain, NULL: of any but ai.onnx.
void ot__pass_drop_imports(ot_model *model, const char *domain);
// pass_expand.c: nodes become what gradients are built of (ot_op_def.train): QuantizeLinear and
// DequantizeLinear FakeQuant, recurrent layers those that ONNX Runtime trains.
ot_status ot__pass_train(ot_model *model);
bool ot__pass_has_training_form(const ot_model *model); // whether there is any such node
// pass_expand.c: nodes become what also ONNX Runtime runs (ot_op_def.eval): recurrent layers that
// have the batch first layers by steps between Transposes.
ot_status ot__pass_eval(ot_model *model);
// branch_close.c: for runtimes of others, what belongs to one branch alone goes into a graph of an
// If again. The graph is sorted.
ot_status ot__branches_close(ot_model *model);
// pass_draw.c: nodes that draw numbers of nothing but a constant shape become initializers, of this
// seed where they have none of their own; outputs of the graph stay. The model need not have been
// checked.
ot_status ot__pass_draw(ot_model *model, uint64_t seed);
// pass_expand.c: nodes of operators that have no kernels become others (ot__op_is_composed).
// *changed: there were some; what has been emitted is to be folded.
ot_status ot__pass_compose(ot_model *model, bool *changed);
// pass_prune.c: nodes and constants nothing needs.
ot_status ot__pass_prune(ot_model *model);
// pass_specialize.c: give every graph input its concrete shape (checked against the declared one),
// infer anew, fold the shape arithmetic. Afterwards every value has a static shape, else
// OT_ERR_UNSUPPORTED names the value.
ot_status ot__pass_specialize(ot_model *model, const ot_shape *input_shapes, int n_inputs);
// The same where elements decide on a shape, as far as there are answers: the tensors that models
// of questions have computed, one behind the other. *question NULL: the model is specialised. Else
// it has become the next question, a specialised model whose outputs are the next answers, and
// *question, of its arena, is why it is asked.
typedef struct ot__answers {
    const ot_tensor *const *tensors;
    int n;
    // Writes gradients that waited for the sizes and turns of a step; *changed: there were some.
    // NULL: there are none.
    ot_status (*differentiate)(ot_model *model, bool *changed);
} ot__answers;
ot_status ot__pass_specialize_by(ot_model *model, const ot_shape *input_shapes, int n_inputs,
                                 const ot__answers *answers, const char **question);
// pass_decide.c: takes answers from *n_taken on, as long as there is something to decide.
ot_status ot__decide(ot_model *model, const ot__answers *answers, int *n_taken,
                     const char **question);
// pass_open.c: a batch size that an exporter wrote as a number.
//
// Where the batch lies in a value: on `axis`, whose extent is outer * batch * inner.
typedef struct ot__place {
    int axis; // -1: nowhere; -2: somewhere, but not on one axis alone
    int64_t outer, inner;
} ot__place;
typedef struct ot__opened {
    int64_t batch;           // the number; 0: there is none, and the model stayed as it was
    int n_changes;           // of nodes, besides the inputs' shapes
    const char *obstacle;    // of the model's arena: what holds the number; NULL: the batch is open
    const ot__place *inputs; // of the model's arena: per graph input,
    const ot__place *outputs; // and per graph output
} ot__opened;
// The number that the first input has at axis 0; 0: none, or it is open.
int64_t ot__pass_fixed_batch(const ot_model *model);
// Axis 0 of all inputs that have the first input's number there becomes symbolic, and what holds
// the number where the batch comes to follows it. `model`: prepared; where an obstacle is left, it
// may only be destroyed. Whether it computes what it did is the caller's to try.
//
// A batch of 1 may lie on several axes of a view. `choices` are what to take at such nodes, in
// order (0: the likeliest, also where none is given); the pass notes how many there were.
enum { OT_MAX_CHOICES = 256 };
typedef struct ot__choices {
    int n_given, n; // the pass sets n
    unsigned char taken[OT_MAX_CHOICES], possible[OT_MAX_CHOICES];
} ot__choices;
ot_status ot__pass_open_batch(ot_model *model, ot__choices *choices, ot__opened *out);
// The next combination to try, the last choice first; false: there is none.
bool ot__choices_next(ot__choices *choices);
// pass_precision.c: floats that were f32 become `narrow` (OT_BF16 or OT_F16) where records allow
// it; inputs and outputs of the graph stay f32. On a specialised copy, before fusions.
// `is_parameter`, per graph input, tells layers from what comes before and behind them; NULL: all
// nodes are taken to lie between layers.
ot_status ot__pass_precision(ot_model *model, const bool *is_parameter, ot_dtype narrow);
// pass_hoist.c: casts of parameters (per graph input) become inputs behind the others.
typedef struct ot__hoisted {
    int first, n; // graph inputs first .. first + n - 1
    int *of;      // the input that each is a cast of; of the model's arena
} ot__hoisted;
ot_status ot__pass_hoist(ot_model *model, const bool *is_parameter, ot__hoisted *out);
// Casts of the graph's inputs to narrower types, those that have become inputs among them. The
// second lets those go that nothing reads any more.
ot_status ot__hoisted_casts(ot_graph *graph, const ot__hoisted *hoisted, ot__casts *out);
ot_status ot__hoisted_drop_unread(ot_graph *graph, ot__hoisted *hoisted);
// fuse_region.c: several forward nodes and their gradient become one operator and its gradient:
// attention, normalisations. On a specialised copy, before its precision changes.
ot_status ot__fuse_regions(ot_model *model);
// fuse_*.c: all other fusions, forward and backward, for the CPU; run on a specialised copy only.
ot_status ot__pass_fuse(ot_model *model);
// fuse_sync_norm.c, before all others: batch normalisations in training whose statistics are those
// of all ranks. The nodes are in their order. OT_ERR_UNSUPPORTED naming one that cannot be so.
ot_status ot__fuse_sync_norm(ot_model *model);
// What the nodes of such a graph sum over the ranks in a step: numbers of all nodes, and of the one
// that has most.
void ot__count_sync_norms(const ot_graph *graph, int64_t *all, int64_t *most);
// pass_recompute_forced.c: what options name is made again for the backward pass. The first looks
// for the patterns in a specialised graph that is not fused yet; `outputs` are the user's, by
// position, and what they need is the forward pass. The second makes what was found, after all
// fusions.
typedef struct ot__recompute_options {
    unsigned what; // of ot_recompute; 0: nothing
    int n_layers;  // as ot_session_options.recompute_layers
    bool warns;    // of what is not there
} ot__recompute_options;
typedef struct ot__recompute_region { // between two values
    ot_value *first, *last;
    bool has_last; // the node that makes `last` belongs to it
} ot__recompute_region;
typedef struct ot__recompute_regions { // of the model's arena
    ot__recompute_region *items;
    int n, capacity;
} ot__recompute_regions;
ot_status ot__pass_recompute_match(ot_model *model, const ot__recompute_options *options,
                                   const int *outputs, int n_outputs, ot__recompute_regions *out);
ot_status ot__pass_recompute_forced(ot_model *model, const ot__recompute_regions *regions,
                                    const int *outputs, int n_outputs);
// pass_recompute_choose.c: chooses by itself what is made again, so that `reduction` bytes fewer
// are alive at once; *fell: how many fewer are. After all fusions and what is forced, on nodes in
// the order in which they run.
ot_status ot__pass_recompute_choose(ot_model *model, const int *outputs, int n_outputs,
                                    bool spares_readers, int64_t reduction, int64_t *fell);
// pass_recompute.c: make cheap values again for the backward pass instead of keeping them, as far
// as that lowers the bytes alive at once. After all fusions, on a specialised copy.
// `spares_readers`, here and above: nodes that read inputs of the graph are not made again.
ot_status ot__pass_recompute(ot_model *model, bool spares_readers);
// pass_reduce.c: the sums of gradients over ranks begin where those of a bucket are complete, by a
// node behind the last of their accumulators. bucket_of[i]: of the gradient whose buffer graph
// input i is; -1: none. After all other passes.
ot_status ot__pass_reduce(ot_graph *graph, const int *bucket_of, int n_buckets);

// Buckets of parameters, or of their gradients, that are cut over ranks: a whole one is a buffer in
// which they lie one after the other.
typedef struct ot__transfer_buckets {
    const int *of_parameter;   // per graph input: the bucket that its value is in; -1: none
    const int *of_accumulator; // per graph input: the one that the gradient is in; -1: none
    const int64_t *offset;     // per graph input: its first element in the buffer
    const int64_t *n_elements; // per bucket: of the buffer
    int n_buckets;
    const int *outputs; // of the graph that are the user's
    int n_outputs;
    bool sums_late; // they begin after all gathers
} ot__transfer_buckets;
typedef struct ot__transfer {
    ot_transfer what;
    int bucket;
    bool is_backward; // gathered for the backward pass
} ot__transfer;
// list_transfers.c: what a step does with buckets, in an order that all ranks keep whatever shapes
// their inputs have: that of the nodes of the model, which is sorted. A bucket is gathered for the
// forward pass and again for the backward pass, while the one before it is used, and its gradients
// are summed while those of the next one are made. The caller frees *out.
ot_status ot__list_transfers(const ot_graph *graph, const ot__transfer_buckets *buckets,
                             ot__transfer **out, int *n_out);
// pass_transfer.c: puts nodes that do this into a specialised copy. After all other passes.
ot_status ot__pass_transfer(ot_graph *graph, const ot__transfer_buckets *buckets,
                            const ot__transfer *transfers, int n_transfers);

// pass_update.c: the optimizer in the place of the accumulators, for each tensor by itself. What
// takes the place of its inputs: values[i * n + t] for input i and tensor t, NULL for its gradient.
typedef struct ot__update_ends {
    const ot_graph *update;   // the optimizer's
    int n;                    // tensors
    ot_value *const *values;  // of the training graph
    ot_value *const *buffers; // for each tensor its gradient's: read by one node, ot__is_only_sum()
    const int *outputs;       // of the training graph: they are there before anything is updated
    int n_outputs;
} ot__update_ends;
// After all other passes, on a specialised copy.
ot_status ot__pass_update(ot_graph *graph, const ot__update_ends *ends);
// Whether an optimizer's graph can be taken apart so, and whether what the node does with its input
// is nothing but adding a gradient of its type.
bool ot__update_is_tensorwise(const ot_graph *update);
bool ot__is_only_sum(const ot_node *node, int i_input);

#endif
