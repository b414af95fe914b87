// SPDX-License-Identifier: Apache-2.0
// Normalisations that an exporter has written in other operators: their scales and biases.
#include "passes/region.h"

ot_status ot__match_norm_operands(const ot__uses *uses, ot_node *node, ot_value **scale,
                                  ot_value **bias)
{
    const bool is_group_norm = ot__node_is(node, "", "InstanceNormalization");
    ot__region *region = NULL;
    ot__arena *arena;
    ot_status st;

    *scale = *bias = NULL;
    if (!is_group_norm && !ot__node_is(node, "", "Sqrt"))
        return OT_OK;
    arena = ot__arena_create();
    OT_TRY(ot__made(arena));
    st = is_group_norm ? ot__match_group_norm(uses, node, arena, &region)
                       : ot__match_layer_norm(uses, node, arena, &region);
    if (st == OT_OK && region != NULL) {
        *scale = region->inputs[OT_NORM_SCALE];
        *bias = region->inputs[OT_NORM_BIAS];
    }
    ot__arena_destroy(arena);
    return st;
}
