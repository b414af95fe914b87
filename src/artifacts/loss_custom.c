// SPDX-License-Identifier: Apache-2.0
// A loss that is a model of its own.
#include <string.h>

#include "artifacts/loss.h"

typedef struct merging {
    ot_graph *graph;  // receives
    ot_model *custom; // our own copy, prepared
    ot__map values;   // name in the custom graph -> value of `graph`
} merging;

// ---- inputs ----

static ot_status check_binding(const ot_value *inner, const ot_value *outer)
{
    if (inner->dtype == OT_DTYPE_UNDEFINED || outer->dtype == inner->dtype)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "custom loss: input '%s' is %s, but the model's '%s' is %s",
                     inner->name, ot_dtype_name(inner->dtype), outer->name,
                     ot_dtype_name(outer->dtype));
}

// The shape in the symbols of the receiving model.
static ot_shape translate(const merging *m, const ot_shape *shape)
{
    ot_shape to = *shape;

    for (int k = 0; k < to.ndim; k++)
        if (!ot__dim_is_number(to.dim[k]))
            to.dim[k] = ot__dim_symbol(m->graph->model, ot__dim_name(m->custom, shape->dim[k]));
    return to;
}

static ot_status add_target(merging *m, const ot_value *inner, const char *name, ot_value **out)
{
    ot_value *target = ot__graph_value(m->graph, name);
    const ot_shape shape = translate(m, &inner->shape);

    *out = target;
    OT_TRY(ot__made(target && ot__graph_add_input(m->graph, target)));
    if (inner->kind != OT_VALUE_TENSOR)
        return ot__error(OT_ERR_INVALID, "custom loss: input '%s' has no declared tensor type",
                         inner->name);
    ot__value_set(target, inner->dtype, inner->has_shape ? &shape : NULL);
    return OT_OK;
}

static ot_status no_binding(const merging *m)
{
    ot__buf text = {0};
    ot_status st;

    ot__buf_text(&text, "custom loss: none of its inputs (");
    for (int i = 0; i < m->custom->graph->n_inputs; i++)
        ot__buf_printf(&text, "%s%s", i ? ", " : "", m->custom->graph->inputs[i]->name);
    ot__buf_text(&text, ") is an output of the model (");
    for (int i = 0; i < m->graph->n_outputs; i++)
        ot__buf_printf(&text, "%s%s", i ? ", " : "", m->graph->outputs[i]->name);
    ot__buf_text(&text, ")");
    st = ot__buf_status(&text);
    OT_THEN(st, ot__error(OT_ERR_INVALID, "%s", text.data));
    ot__buf_deinit(&text);
    return st;
}

static ot_status bind_loss_inputs(merging *m, const ot_loss_options *options)
{
    const ot_graph *custom = m->custom->graph;
    const char *next_target = options->target;
    ot_value *given = options->input ? ot__graph_find(m->graph, options->input) : NULL;
    int n_bound = 0;

    if (options->input && !given)
        return ot__graph_no_value(m->graph, options->input,
                                  "loss input '%s' is not a value of the model", options->input);
    for (int i = 0; i < custom->n_inputs; i++) {
        const ot_value *inner = custom->inputs[i];
        ot_value *outer = ot__graph_find(m->graph, inner->name);

        if (inner->is_initializer)
            continue;
        if (!outer && given) {
            outer = given;
            given = NULL;
        }
        if (outer) {
            OT_TRY(check_binding(inner, outer));
            n_bound++;
        } else {
            OT_TRY(add_target(m, inner, next_target ? next_target : inner->name, &outer));
            next_target = NULL;
        }
        OT_TRY(ot__made(ot__map_put(&m->values, inner->name, outer)));
    }
    return n_bound > 0 ? OT_OK : no_binding(m);
}

// ---- nodes ----

static ot_status copy_constants(merging *m)
{
    const ot_graph *custom = m->custom->graph;

    for (int i = 0; i < custom->n_initializers; i++) {
        const ot_value *inner = custom->initializers[i];
        ot_value *outer = ot__graph_new_value(m->graph, inner->name);

        OT_TRY(ot__made(outer && ot__graph_add_initializer(m->graph, outer, inner->constant) &&
                        ot__map_put(&m->values, inner->name, outer)));
    }
    return OT_OK;
}

// Both graphs speak of operators in the form of their own opset: the earlier one is raised to the
// later one.
static ot_status meet_shape(ot_model *model, ot_model *custom)
{
    const int64_t opset = ot__model_opset(model, ""), other = ot__model_opset(custom, "");

    if (other < opset)
        return ot__pass_raise(custom, opset);
    if (other == opset || ot__pass_is_of_opset(custom, opset))
        return OT_OK;
    return ot__pass_raise(model, other);
}

// Of other domains a node may move only when it has the same form.
static ot_status check_form(const merging *m, const ot_node *node)
{
    const int64_t opset = ot__model_opset(m->graph->model, node->domain);

    if (opset == 0)
        return ot__model_set_opset(m->graph->model, node->domain,
                                   ot__model_opset(m->custom, node->domain));
    if (ot__op_find(node->domain, node->op_type, opset) == node->op)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "custom loss: %s has another signature at opset %" PRId64
                     " than at the model's opset %" PRId64,
                     OT_LABEL(node), ot__model_opset(m->custom, node->domain), opset);
}

static ot_status copy_node(merging *m, const ot_node *node)
{
    const size_t n = (size_t)(node->n_inputs + node->n_outputs);
    ot_value **ends = ot__arena_alloc(m->graph->model->arena, (n + 1) * sizeof *ends);
    ot__builder b = {.graph = m->graph};
    ot_node *copy;

    OT_TRY(check_form(m, node));
    OT_TRY(ot__made(ends));
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            ends[i] = ot__map_get(&m->values, node->inputs[i]->name);
    for (int i = 0; i < node->n_outputs; i++) {
        ot_value **y = &ends[node->n_inputs + i];

        if (!node->outputs[i])
            continue;
        *y = ot__build_value(&b, node->outputs[i]->name);
        OT_TRY(ot__made(*y && ot__map_put(&m->values, node->outputs[i]->name, *y)));
    }
    copy = ot__op_build(&b, node->domain, node->op_type, node->name, ends, node->n_inputs,
                        ends + node->n_inputs, node->n_outputs);
    if (!copy || !ot__node_copy_attrs(copy, node))
        return copy ? OT_ERR_NO_MEMORY : b.status;
    return ot__op_infer(copy);
}

static ot_status merge_model(merging *m, const ot_loss_options *options, ot_value **loss)
{
    const ot_graph *custom = m->custom->graph;

    if (custom->n_outputs < 1)
        return ot__error(OT_ERR_INVALID, "custom loss: its model has no output");
    OT_TRY(ot__model_keep(m->graph->model, m->custom)); // attributes and constants stay there
    OT_TRY(bind_loss_inputs(m, options));
    OT_TRY(copy_constants(m));
    for (int n = 0; n < custom->n_nodes; n++)
        OT_TRY(copy_node(m, custom->nodes[n]));
    *loss = ot__map_get(&m->values, custom->outputs[0]->name);
    return OT_OK;
}

ot_status ot__loss_custom(ot_block *block, const ot_loss_options *options, ot_value **loss)
{
    merging m = {.graph = block->build.graph};
    ot_status st;

    *loss = NULL;
    OT_TRY(ot__model_clone(options->custom, &m.custom));
    st = ot__pass_prepare(m.custom);
    OT_THEN(st, meet_shape(block->build.graph->model, m.custom));
    if (st != OT_OK)
        ot__error_prefix(st, "custom loss");
    else
        st = merge_model(&m, options, loss);
    ot__map_deinit(&m.values);
    ot_model_destroy(m.custom);
    return st;
}
