// SPDX-License-Identifier: Apache-2.0
// Derived values: parameters in a narrower type, which plans take as inputs of their own. The
// session keeps one of each, whatever plans read it, and makes it anew before the first step after
// the parameters have changed.
#include "session/session_internal.h"

static ot__derived *derived_find(ot__derived_values *d, const ot__parameter *parameter,
                                 ot_dtype dtype)
{
    for (ot__derived *v = d->of[parameter->number]; v != NULL; v = v->next)
        if (v->value->dtype == dtype)
            return v;
    return NULL;
}

static ot_status derived_add(ot__derived_values *d, const ot__parameter *parameter, ot_dtype dtype)
{
    ot__derived *v;
    ot_status st;

    if (derived_find(d, parameter, dtype) != NULL)
        return OT_OK;
    v = ot__alloc_zero(1, sizeof *v);
    OT_TRY(ot__made(v != NULL));
    st = ot_tensor_create(dtype, &parameter->value->shape, &v->value);
    if (st != OT_OK) {
        ot__free(v);
        return st;
    }
    v->next = d->of[parameter->number];
    d->of[parameter->number] = v;
    d->n_bytes += v->value->n_bytes;
    return OT_OK;
}

ot_status ot__derived_make(ot_session *session, const ot__compiled_model *program,
                           const ot_graph *graph, const ot__hoisted *hoisted)
{
    ot__derived_values *d = &session->derived;

    if (hoisted->n > 0 && d->of == NULL) {
        d->of = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof *d->of);
        OT_TRY(ot__made(d->of != NULL));
    }
    for (int i = 0; i < hoisted->n; i++)
        OT_TRY(derived_add(d, program->inputs[hoisted->of[i]].parameter,
                           graph->inputs[hoisted->first + i]->dtype));
    return OT_OK;
}

void ot__derived_bind(ot_session *session, const ot__compiled_model *program, ot__plan *plan)
{
    const uint64_t n_changes = session->checkpoint->n_changes;
    const ot__hoisted *hoisted = ot__compiled_model_hoisted(program, plan);

    for (int i = 0; i < hoisted->n; i++) {
        const ot__parameter *p = program->inputs[hoisted->of[i]].parameter;
        const ot_tensor *from =
            program == &session->eval ? ot__ckpt_shown(session->checkpoint, p) : p->value;
        const int at = hoisted->first + i;
        ot__derived *v = derived_find(&session->derived, p, ot__plan_input(plan, at, 0)->dtype);

        if (v->from != from || v->n_changes != n_changes)
            ot__convert_floats(v->value->data, v->value->dtype, from->data, from->dtype,
                               ot_tensor_count(from));
        v->from = from;
        v->n_changes = n_changes;
        ot__plan_bind_input(plan, at, 0, v->value->data);
    }
}

void ot__derived_deinit(ot_session *session)
{
    ot__derived_values *d = &session->derived;

    for (int i = 0; d->of != NULL && i < session->n_parameters; i++)
        for (ot__derived *v = d->of[i], *next; v != NULL; v = next) {
            next = v->next;
            ot_tensor_destroy(v->value);
            ot__free(v);
        }
    ot__free(d->of);
    *d = (ot__derived_values){0};
}
