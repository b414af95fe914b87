// SPDX-License-Identifier: Apache-2.0
// Dropout in a trainer: on in training, off in evaluation, whatever an initializer says of it.
// Evaluation is the eval model's affair.
#include "passes/passes.h"
#include "trainer/trainer.h"

enum { TRAINING_MODE = 2 };

static const ot_value *mode_of(const ot_node *node)
{
    const bool has_mode =
        ot__node_is(node, "", "Dropout") && node->n_inputs > TRAINING_MODE && node->inputs[2];

    return has_mode ? node->inputs[TRAINING_MODE] : NULL;
}

static bool is_false(const ot_tensor *t)
{
    return t != NULL && t->dtype == OT_BOOL && ot_tensor_count(t) == 1 &&
           *(const uint8_t *)t->data == 0;
}

static bool is_held_off(const ot_node *node)
{
    const ot_value *mode = mode_of(node);

    return mode != NULL && mode->is_initializer && is_false(mode->constant);
}

static bool warn_of_constants(const ot_graph *graph)
{
    bool any_held_off = false;

    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_value *mode = mode_of(graph->nodes[n]);

        any_held_off = any_held_off || is_held_off(graph->nodes[n]);
        if (mode != NULL && is_false(ot__match_constant(mode->producer)))
            ot__log(OT_LOG_WARNING,
                    "%s drops nothing in training either: '%s' is a Constant that is false, and "
                    "not an initializer",
                    OT_LABEL(graph->nodes[n]), mode->name);
    }
    return any_held_off;
}

// What nobody reads any more is not told to the user either.
static ot_status drop_modes(ot_graph *graph)
{
    ot__uses uses = {0};
    ot_status st = ot__uses_build(graph, &uses);

    for (int i = 0; st == OT_OK && i < graph->n_initializers; i++) {
        ot_value *value = graph->initializers[i];

        if (is_false(value->constant) && ot__uses_count(&uses, value) == 0 && !value->is_output)
            value->is_initializer = value->is_input = false;
    }
    ot__uses_deinit(&uses);
    ot__graph_relist(graph);
    return st;
}

static ot_status turn_on(ot_graph *graph)
{
    ot__builder b = {.graph = graph};
    ot_value *on = ot__build_initializer(&b, "training_mode", OT_BOOL, &OT_SHAPE_SCALAR);

    if (on == NULL)
        return b.status;
    *(uint8_t *)on->constant->data = 1;
    for (int n = 0; n < graph->n_nodes; n++)
        if (is_held_off(graph->nodes[n]))
            graph->nodes[n]->inputs[TRAINING_MODE] = on;
    return drop_modes(graph);
}

ot_status ot__trainer_follow_step(const ot_model *model, ot_model **out)
{
    ot_model *copy;
    ot_status st;

    *out = NULL;
    if (!warn_of_constants(model->graph))
        return OT_OK;
    OT_TRY(ot__model_clone(model, &copy));
    st = turn_on(copy->graph);
    return OT_HAND_OUT(st, out, copy, ot_model_destroy);
}
