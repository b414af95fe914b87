// Building nodes as ONNX Runtime's onnxblock does: values, constants and nodes called
// "onnx::<token>::<n>", n counted per build.
#ifndef OT_ARTIFACTS_BLOCK_H
#define OT_ARTIFACTS_BLOCK_H

#include "artifacts/artifacts.h"

// Keeps the first error; after it every function is a no-op that returns NULL, and takes NULL.
typedef struct ot__block {
    ot_graph *graph;
    int counter;
    ot_status status;
} ot__block;

void ot__block_fail(ot__block *block, ot_status status); // the message is set already
char *ot__block_name(ot__block *block, const char *token);
ot_value *ot__block_value(ot__block *block, const char *token);
// An initializer called `name` with the elements of `tensor`, converted to `dtype`.
ot_value *ot__block_tensor(ot__block *block, const char *name, const ot_tensor *tensor,
                           ot_dtype dtype);
// An initializer of shape [1].
ot_value *ot__block_constant(ot__block *block, const char *token, double number, ot_dtype dtype);
// A node called "onnx::<op>::<n>" that writes `outputs`; its types and shapes are inferred.
ot_node *ot__block_node(ot__block *block, const char *domain, const char *op,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs);
void ot__block_infer(ot__block *block, ot_node *node); // once its attributes are set
// One output, called by `token`; no attributes.
ot_value *ot__block_unary(ot__block *block, const char *op, const char *token, ot_value *a);
ot_value *ot__block_binary(ot__block *block, const char *op, const char *token, ot_value *a,
                           ot_value *b);

#endif
