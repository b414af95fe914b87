// SPDX-License-Identifier: Apache-2.0
// What of a session's state is not finite. Forms change the order of elements only, so that all is
// looked at as it lies.
#include "session/session_internal.h"

static bool take_not_finite(const ot_tensor *tensor, const char *what, const char *name,
                            ot__not_finite *found)
{
    const int64_t at = tensor == NULL ? -1 : ot__tensor_find_not_finite(tensor);

    if (at >= 0)
        *found = (ot__not_finite){name, what, ot__tensor_get_f64(tensor, at), false};
    return at >= 0;
}

static bool find_parameter(const ot_session *session, bool is_trained, ot__not_finite *found)
{
    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        if ((p->trainable || p->is_undone) != is_trained)
            continue;
        if (take_not_finite(p->value, is_trained ? "parameter" : "frozen parameter", p->name,
                            found))
            return true;
        for (int k = 0; p->trainable && k < OT_SLOTS; k++)
            if (take_not_finite(p->slots[k],
                                k < OT_SLOT_MOMENTS ? "the optimizer's moment of parameter"
                                                    : "the average of parameter",
                                p->name, found)) {
                found->is_moment = true;
                return true;
            }
    }
    return false;
}

static bool find_constant(const ot_graph *g, ot__map *seen, ot__not_finite *found)
{
    for (int k = 0; k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k]->n_inputs; i++) {
            const ot_value *value = g->nodes[k]->inputs[i];

            if (value == NULL || value->constant == NULL || ot__map_get(seen, value->name))
                continue;
            if (take_not_finite(value->constant, "constant", value->name, found))
                return true;
            // Without memory for it, it is looked at again.
            (void)ot__map_put(seen, value->name, value->constant);
        }
    return false;
}

bool ot__gradients_are_finite(const ot_session *session)
{
    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        if (p->trainable && p->gradient != NULL && !ot__tensor_is_finite(p->gradient))
            return false;
    }
    return true;
}

bool ot__session_find_not_finite(const ot_session *session, bool is_trained, ot__not_finite *found)
{
    ot__map seen = {0};
    bool is_found = find_parameter(session, is_trained, found);

    if (!is_found && !is_trained)
        is_found = find_constant(session->training.model->graph, &seen, found);
    ot__map_deinit(&seen);
    return is_found;
}
