// SPDX-License-Identifier: Apache-2.0
// Parameters that an exporter merged have tensors of their own again, one that it made two is one,
// and those that it dropped are back.
#include "passes/sharing.h"

typedef ot_status (*step)(ot__separation *s);

// Each sees the readers that the one before has left.
static ot_status run_sharing(ot__separation *s, step change)
{
    ot_status st = ot__uses_build(s->graph, &s->uses);

    OT_THEN(st, change(s));
    ot__uses_deinit(&s->uses);
    return st;
}

static ot_status say_parameters(ot__separation *s, ot__sharing_kind kind, const char *const *names,
                                int n)
{
    return n == 0 ? OT_OK : ot__sharing_say(s, kind, names[0], names, n);
}

static ot_status say_missing(ot__separation *s)
{
    ot__missing missing;

    OT_TRY(ot__owners_missing(&s->owners, &missing));
    OT_TRY(say_parameters(s, OT_SHARING_LOST, missing.lost, missing.n_lost));
    return say_parameters(s, OT_SHARING_UNUSED, missing.unused, missing.n_unused);
}

ot_status ot__pass_sharing(ot_model *model, const ot__kept_names *kept, ot__sharings *out)
{
    ot__separation s = {.graph = model->graph, .kept = kept, .out = out};
    ot_status st;

    *out = (ot__sharings){0};
    st = ot__owners_init(&s.owners, model->graph);
    OT_THEN(st, run_sharing(&s, ot__sharing_find_equal));
    OT_THEN(st, ot__sharing_restore(&s)); // behind it: zeros that come back are equal, too
    OT_THEN(st, run_sharing(&s, ot__sharing_join));
    OT_THEN(st, run_sharing(&s, ot__sharing_separate));
    OT_THEN(st, run_sharing(&s, ot__sharing_statistics));
    OT_THEN(st, say_missing(&s));
    ot__owners_deinit(&s.owners);
    return st == OT_OK ? ot__pass_finished(model, "sharing") : st;
}
