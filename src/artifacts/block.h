// SPDX-License-Identifier: Apache-2.0
// Building nodes as ONNX Runtime's onnxblock does: values, constants and nodes called
// "onnx::<token>::<n>", n counted per build.
#ifndef OT_ARTIFACTS_BLOCK_H
#define OT_ARTIFACTS_BLOCK_H

#include "artifacts/forward.h"
#include "onnxtrain/block.h"

enum { OT_BLOCK_MESSAGE = 512 };

// A builder with counted names. Losses and optimizers make one over a graph of theirs:
// {.build = {.graph = graph}}.
struct ot_block {
    ot__builder build; // first; its graph is NULL once finished
    int counter;
    char message[OT_BLOCK_MESSAGE]; // of the first error, with ot__block_failed
    const char *scope;              // the block that the user called last; NULL: not by a user
    // of those that users make
    ot__forward forward;
    struct ot__block_wish { // of ot_block_requires_grad
        const char *name;   // in the model's arena, as the list is
        bool trains;
    } * wishes;
    int n_wishes, wishes_capacity;
    uint64_t seed;
};

// For the builders of users: puts what was called last before the message, and keeps it.
void ot__block_failed(ot__builder *build);
// Every public function begins with one of these. False: nothing may be done.
bool ot__block_enter(ot_block *block, const char *scope);
// A value of this very graph; an error otherwise.
bool ot__block_takes(ot_block *block, const ot_value *value);

char *ot__block_name(ot_block *block, const char *token);
ot_value *ot__block_value(ot_block *block, const char *token);
// What the node makes, its first output, once it has its attributes; NULL after an error.
ot_value *ot__block_settle(ot_block *block, ot_node *node);
// An initializer called `name` with the elements of `tensor`, converted to `dtype`.
ot_value *ot__block_tensor(ot_block *block, const char *name, const ot_tensor *tensor,
                           ot_dtype dtype);
// An initializer of shape [1], and one without axes.
ot_value *ot__block_constant(ot_block *block, const char *token, double number, ot_dtype dtype);
ot_value *ot__block_scalar(ot_block *block, const char *token, double number, ot_dtype dtype);
// A node called "onnx::<token>::<n>" that writes `outputs`, with its record.
ot_node *ot__block_node_as(ot_block *block, const char *token, const char *domain, const char *op,
                           ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                           int n_outputs);
// The same called "onnx::<op>::<n>".
ot_node *ot__block_node(ot_block *block, const char *domain, const char *op,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs);
// The same with one output, a new value called by `token`.
ot_node *ot__block_maker(ot_block *block, const char *domain, const char *op, const char *token,
                         ot_value *const *inputs, int n_inputs);
// One output, called by `token`; no attributes.
ot_value *ot__block_unary(ot_block *block, const char *op, const char *token, ot_value *a);
ot_value *ot__block_binary(ot_block *block, const char *op, const char *token, ot_value *a,
                           ot_value *b);
// ReduceMean or ReduceSum over all axes.
ot_value *ot__block_reduce(ot_block *block, const char *op, const char *token, ot_value *x,
                           ot_keepdims keepdims);
// `value`, an initializer, becomes one of those that may train.
ot_value *ot__block_train(ot_block *block, ot_value *value);
// A new input of the graph called exactly `name`; its type is for the caller to set.
ot_value *ot__block_input(ot_block *block, const char *name);

// block_create.c: imports and origin of a model from nothing.
ot_status ot__block_describe(ot_model *model, int64_t opset);

#endif
