// SPDX-License-Identifier: Apache-2.0
// Initializers that reach the loss and yet are no parameters: masks of attention, and buffers.
#include <math.h>
#include <string.h>

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

static ot_status find_mask(const ot__candidates *c, ot__candidate *item)
{
    // What the file calls a parameter is one, whatever it does.
    if (item->origin == OT_ORIGIN_PARAMETER || !item->softmax || !is_mask(item->value->constant))
        return OT_OK;
    const char *label = OT_LABEL(item->softmax);
    item->held = ot__arena_printf(c->graph->model->arena, "a mask of %s", label);
    return ot__made(item->held);
}

// ---- buffers ----

// A buffer's name may stand for what an exporter merged with it: then others read it, too. Where
// they take it as no parameter is taken, it was made for them, unless its elements are all the
// same.
static ot_status is_read_as_buffer(ot__origins *origins, const ot__uses *uses,
                                   const ot__candidate *item, const char *name, bool *out)
{
    const bool may_be_merged = ot__tensor_is_uniform(item->value->constant);

    *out = true;
    for (int u = ot__uses_first(uses, item->value); u < ot__uses_end(uses, item->value) && *out;
         u++) {
        ot__nearness place;

        OT_TRY(ot__origins_place(origins, uses->use[u].node, name, &place));
        *out = place == OT_PLACE_OWN ||
               (!item->has_role && (place == OT_PLACE_INSIDE || !may_be_merged));
    }
    return OT_OK;
}

// `name` is what the file calls the item, or what it was made of.
static ot_status find_buffer(const ot__candidates *c, ot__origins *origins, const ot__uses *uses,
                             ot__candidate *item, const char *name)
{
    bool holds;

    if (item->held)
        return OT_OK;
    // All the same elements, and read as a parameter: one may have been merged with it.
    if (item->origin == OT_ORIGIN_CODE &&
        !(item->has_role && ot__tensor_is_uniform(item->value->constant)))
        item->held = "made of no parameter of the exported module";
    if (item->origin != OT_ORIGIN_BUFFER)
        return OT_OK;
    OT_TRY(is_read_as_buffer(origins, uses, item, name, &holds));
    if (!holds)
        return OT_OK;
    item->held = strcmp(name, item->value->name) == 0
                     ? "a buffer of the exported module"
                     : ot__arena_printf(c->graph->model->arena,
                                        "made of '%s', a buffer of the exported module", name);
    return ot__made(item->held);
}

// ---- the whole ----

static ot_status hold_fixed(ot__candidates *c, ot__origins *origins, const ot__uses *uses)
{
    OT_TRY(ot__candidates_find_purposes(c, uses));
    for (int i = 0; i < c->n; i++) {
        ot__candidate *item = &c->items[i];
        const char *name;

        if (!ot__dtype_is_float(item->value->dtype))
            continue;
        OT_TRY(ot__origins_find(origins, item->value, &item->origin, &name));
        item->is_original = name == item->value->name;
        OT_TRY(find_mask(c, item));
        if (!item->held && ot__was_constant(item->value))
            item->held = "by its name what a Constant node gave, which never trains";
        OT_TRY(find_buffer(c, origins, uses, item, name));
    }
    return OT_OK;
}

ot_status ot__candidates_hold(ot__candidates *c)
{
    ot__origins origins = {0};
    ot__uses uses = {0};
    ot_status st = ot__origins_init(&origins, c->graph);

    OT_THEN(st, ot__uses_build(c->graph, &uses));
    OT_THEN(st, hold_fixed(c, &origins, &uses));
    ot__uses_deinit(&uses);
    ot__origins_deinit(&origins);
    return st;
}
