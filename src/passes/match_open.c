// SPDX-License-Identifier: Apache-2.0
// Which operators have rules for where the batch goes through them.
#include <string.h>

#include "passes/open.h"

static const struct {
    const char *op_type;
    ot__open_kind kind;
} kinds[] = {
    {"AffineGrid", OT_OPEN_SIZES},
    {"Concat", OT_OPEN_CONCAT},
    {"Constant", OT_OPEN_CONSTANT},
    {"ConstantOfShape", OT_OPEN_CONSTANT_OF_SHAPE},
    {"Expand", OT_OPEN_EXPAND},
    {"Flatten", OT_OPEN_VIEW},
    {"GRU", OT_OPEN_RECURRENT},
    {"Gather", OT_OPEN_GATHER},
    {"GatherElements", OT_OPEN_ELEMENTS},
    {"LSTM", OT_OPEN_RECURRENT},
    {"LayerNormalization", OT_OPEN_NORMALIZATION},
    {"LogSoftmax", OT_OPEN_NORMALIZATION},
    {"MatMul", OT_OPEN_PRODUCT},
    {"RNN", OT_OPEN_RECURRENT},
    {"Reshape", OT_OPEN_RESHAPE},
    {"Resize", OT_OPEN_SIZES},
    {"ScatterElements", OT_OPEN_ELEMENTS},
    {"Slice", OT_OPEN_SLICE},
    {"Softmax", OT_OPEN_NORMALIZATION},
    {"Squeeze", OT_OPEN_VIEW},
    {"Tile", OT_OPEN_TILE},
    {"Transpose", OT_OPEN_TRANSPOSE},
    {"Unsqueeze", OT_OPEN_VIEW},
};

ot__open_kind ot__match_open(const ot_node *node)
{
    if (node->domain[0] != '\0' || ot__op_is_foreign(node))
        return OT_OPEN_OTHER;
    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (strcmp(node->op_type, kinds[i].op_type) == 0)
            return kinds[i].kind;
    return (node->op->flags & OT_OP_ANY_LAYOUT) != 0 ? OT_OPEN_ELEMENTWISE : OT_OPEN_OTHER;
}
