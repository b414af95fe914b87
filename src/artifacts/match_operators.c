// SPDX-License-Identifier: Apache-2.0
// What is known of operators by their names before training, where records say nothing of it.
#include <string.h>

#include "artifacts/parameters.h"

static bool is_any(const ot_node *node, const char *const *names)
{
    if (node->domain[0] != '\0')
        return false;
    while (*names && strcmp(node->op_type, *names) != 0)
        names++;
    return *names != NULL;
}

bool ot__is_batch_norm(const ot_node *node)
{
    return ot__node_is(node, "", "BatchNormalization");
}

bool ot__is_constant(const ot_node *node)
{
    return ot__node_is(node, "", "Constant");
}

// Optimisers keep the name of a Constant node's output, "/enc/Constant_1_output_0", for the
// initializer that they make of it.
bool ot__was_constant(const ot_value *value)
{
    static const char op_type[] = "Constant";
    const char *slash = value->name[0] == '/' ? strrchr(value->name, '/') : NULL;
    const char *p;

    if (!slash || !ot__starts_with(slash + 1, op_type))
        return false;
    p = slash + sizeof op_type;
    if (*p == '_' && ot__is_digit(p[1]))
        for (p++; ot__is_digit(*p);)
            p++;
    return strcmp(p, "_output_0") == 0;
}

bool ot__is_dropout(const ot_node *node)
{
    return ot__node_is(node, "", "Dropout");
}

bool ot__node_moves(const ot_node *node, int i_input)
{
    static const char *const first[] = {
        "Identity",  "Cast",      "CastLike",       "Reshape", "Flatten", "Squeeze",
        "Unsqueeze", "Transpose", "Expand",         "Tile",    "Slice",   "Split",
        "Gather",    "GatherND",  "GatherElements", "Pad",     "Trilu",   NULL};
    static const char *const all[] = {"Concat", NULL};

    return (i_input == 0 && is_any(node, first)) || is_any(node, all);
}

bool ot__node_adds(const ot_node *node)
{
    static const char *const names[] = {"Add", "Sum", NULL};

    return is_any(node, names);
}

bool ot__node_takes_scores(const ot_node *node, int i_input)
{
    static const char *const names[] = {"Softmax", "LogSoftmax", "SoftmaxCrossEntropyLoss", NULL};

    return i_input == 0 && is_any(node, names);
}

// Softmax of LogSoftmax is Softmax again, so that one does no harm.
bool ot__node_makes_probabilities(const ot_node *node)
{
    static const char *const names[] = {"Softmax", "Sigmoid", NULL};

    return is_any(node, names);
}

const char *ot__loss_applies(ot_loss loss)
{
    return loss == OT_LOSS_CROSS_ENTROPY     ? "Softmax"
           : loss == OT_LOSS_BCE_WITH_LOGITS ? "Sigmoid"
                                             : NULL;
}

const char *ot__constants_of(const ot_node *node)
{
    return ot__node_is(node, "", "Pow")    ? "exponent"
           : ot__node_is(node, "", "Clip") ? "bound"
                                           : NULL;
}

bool ot__holds_inputs_first(const ot_node *node)
{
    const ot_attr *transposed = ot__node_attr(node, "transB");

    return ot__node_is(node, "", "MatMul") ||
           (ot__node_is(node, "", "Gemm") && (!transposed || transposed->i == 0));
}
