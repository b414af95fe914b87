// SPDX-License-Identifier: Apache-2.0
// Normalisations that an exporter has written in other operators: their scales and biases.
#include "passes/region.h"

ot_status ot__match_norm_operands(const ot__uses *uses, ot_node *node, ot__arena *arena,
                                  ot_value **scale, ot_value **bias)
{
    enum { SCALE = 1, BIAS = 2 }; // inputs of both regions
    ot__region *region = NULL;

    OT_TRY(ot__match_layer_norm(uses, node, arena, &region));
    if (region == NULL)
        OT_TRY(ot__match_group_norm(uses, node, arena, &region));
    *scale = region != NULL && region->n_inputs > SCALE ? region->inputs[SCALE] : NULL;
    *bias = region != NULL && region->n_inputs > BIAS ? region->inputs[BIAS] : NULL;
    return OT_OK;
}
