// SPDX-License-Identifier: Apache-2.0
// For callers who expect every float initializer to train: which do not, and why.
#include "artifacts/forward.h"

typedef enum standing {
    TRAINS, // or is frozen by the caller, or of a type that never trains
    UNREAD,
    APART, // read, but no path leads to the loss
    STILL, // reaches the loss, but without a gradient
    N_STANDINGS,
} standing;

static standing standing_of(const ot__candidate *item, const ot__uses *uses)
{
    if (item->role == OT_ROLE_TRAINABLE || (item->role == OT_ROLE_FROZEN && item->could_train))
        return TRAINS;
    if (ot__uses_count(uses, item->value) == 0 && !item->value->is_output)
        return UNREAD;
    if (!ot__dtype_is_float(item->value->dtype))
        return TRAINS;
    if (item->reaches_loss)
        return STILL;
    return item->role == OT_ROLE_FROZEN ? TRAINS : APART;
}

static void list_standings(const ot__forward *forward, const ot__uses *uses,
                           ot__buf names[N_STANDINGS])
{
    const ot__candidates *c = &forward->candidates;

    for (int i = 0; i < c->n; i++) {
        const standing s = standing_of(&c->items[i], uses);

        if (s == TRAINS)
            continue;
        ot__buf_printf(&names[s], "%s'%s'", names[s].length > 0 ? ", " : "",
                       c->items[i].value->name);
        if (s == STILL)
            ot__buf_printf(&names[s], " (%s)", c->items[i].reason);
    }
}

static ot_status judge_names(ot__forward *forward, const ot__buf names[N_STANDINGS])
{
    ot__arena *arena = forward->model->arena;

    for (int s = 0; s < N_STANDINGS; s++)
        OT_TRY(ot__buf_status(&names[s]));
    if (names[APART].length > 0)
        return ot__error(OT_ERR_INVALID,
                         "no path leads to the loss '%s' from initializers %s: expected one, or "
                         "their names among those that are frozen (frozen_weights)",
                         forward->loss->name, names[APART].data);
    if (names[UNREAD].length > 0)
        OT_TRY(ot__forward_note(
            forward, OT_LOG_WARNING,
            ot__arena_printf(arena, "dropped, since nothing reads it: %s", names[UNREAD].data)));
    if (names[STILL].length > 0)
        OT_TRY(ot__forward_note(forward, OT_LOG_INFO,
                                ot__arena_printf(arena, "frozen, since no gradient reaches it: %s",
                                                 names[STILL].data)));
    return OT_OK;
}

ot_status ot__forward_check_reach(ot__forward *forward)
{
    ot__buf names[N_STANDINGS] = {{0}};
    ot__uses uses = {0};
    ot_status st = ot__uses_build(forward->model->graph, &uses);

    if (st == OT_OK)
        list_standings(forward, &uses, names);
    OT_THEN(st, judge_names(forward, names));
    for (int s = 0; s < N_STANDINGS; s++)
        ot__buf_deinit(&names[s]);
    ot__uses_deinit(&uses);
    return st;
}
