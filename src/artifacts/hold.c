// SPDX-License-Identifier: Apache-2.0
// Initializers that reach the loss and yet are no parameters: masks of attention.
#include <math.h>

#include "artifacts/parameters.h"

// ---- masks ----

// What is added to scores so that Softmax leaves nothing of some of them.
static bool is_mask(const ot_tensor *t)
{
    const double surely = -1e4, perhaps = -50; // the second where all others are 0
    const int64_t n = t ? ot_tensor_count(t) : 0;
    double hiding = 0;
    bool is_two_valued = true;

    for (int64_t i = 0; i < n; i++) {
        const double x = ot__tensor_get_f64(t, i);

        if (x <= surely || isinf(x))
            return true;
        if (x == 0)
            continue;
        is_two_valued = is_two_valued && x <= perhaps && (hiding == 0 || x == hiding);
        hiding = x;
    }
    return is_two_valued && hiding != 0;
}

// ---- the whole ----

ot_status ot__candidates_hold(ot__candidates *c)
{
    char label[160];

    OT_TRY(ot__candidates_find_purposes(c));
    for (int i = 0; i < c->n; i++) {
        ot__candidate *item = &c->items[i];

        if (!ot__dtype_is_float(item->value->dtype) || !item->softmax ||
            !is_mask(item->value->constant))
            continue;
        ot__node_label(item->softmax, label, sizeof label);
        item->held = ot__arena_printf(c->graph->model->arena, "a mask of %s", label);
        if (!item->held)
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}
