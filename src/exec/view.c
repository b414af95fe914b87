// SPDX-License-Identifier: Apache-2.0
// What the kernel of a node would like its arguments' layouts to be.
#include "exec/plan.h"

static bool set_arg(const ot__plan_builder *b, const ot_value *value, ot_arg *arg)
{
    const ot_shape *shape;

    if (value->kind != OT_VALUE_TENSOR || (!value->has_shape && value->constant == NULL))
        return false;
    shape = value->constant != NULL ? &value->constant->shape : &value->shape;
    *arg = (ot_arg){.dtype = value->dtype,
                    .shape = *shape,
                    .layout = b->layouts[ot__value_number(&b->numbers, value)]};
    return ot__shape_count(shape, &arg->count);
}

static bool fill_view(const ot__plan_builder *b, const ot_node *node, ot__view *v)
{
    for (int i = 0; i < node->n_inputs; i++) {
        v->first[i] = i;
        if (node->inputs[i] == NULL)
            continue;
        v->in[i] = &v->args[i];
        v->open[i] = b->open != NULL && b->open[ot__value_number(&b->numbers, node->inputs[i])];
        if (!set_arg(b, node->inputs[i], &v->args[i]))
            return false;
        if (node->inputs[i]->constant != NULL)
            v->constant[i] = node->inputs[i]->constant->data;
    }
    v->first[node->n_inputs] = node->n_inputs;
    for (int i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] == NULL)
            continue;
        v->out[i] = &v->args[node->n_inputs + i];
        if (!set_arg(b, node->outputs[i], &v->args[node->n_inputs + i]))
            return false;
    }
    return true;
}

ot_status ot__view_make(const ot__plan_builder *b, const ot_node *node, ot__view *v)
{
    const size_t n_in = (size_t)node->n_inputs + 1, n_out = (size_t)node->n_outputs + 1;
    ot__arena *arena = b->arena;

    *v = (ot__view){.args = ot__arena_alloc(arena, (n_in + n_out) * sizeof *v->args),
                    .in = ot__arena_alloc(arena, n_in * sizeof *v->in),
                    .out = ot__arena_alloc(arena, n_out * sizeof *v->out),
                    .constant = ot__arena_alloc(arena, n_in * sizeof *v->constant),
                    .want_in = ot__arena_alloc(arena, n_in * sizeof *v->want_in),
                    .want_out = ot__arena_alloc(arena, n_out * sizeof *v->want_out),
                    .first = ot__arena_alloc(arena, n_in * sizeof *v->first),
                    .open = ot__arena_alloc(arena, n_in * sizeof *v->open)};
    OT_TRY(ot__made(v->args != NULL && v->in != NULL && v->out != NULL && v->constant != NULL &&
                    v->want_in != NULL && v->want_out != NULL && v->first != NULL &&
                    v->open != NULL));
    v->is_complete = fill_view(b, node, v);
    return OT_OK;
}

ot_status ot__view_ask(const ot__plan_builder *b, const ot_node *node, ot__view *v)
{
    ot_prep prep = {.node = node,
                    .in = v->in,
                    .out = v->out,
                    .constant = v->constant,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in_first = v->first,
                    .n_threads = b->plan->n_threads,
                    .reproducible = b->options->reproducible,
                    .open = v->open,
                    .want_in = v->want_in,
                    .want_out = v->want_out};
    const ot_kernel *kernel;
    ot__edges edges;

    if (ot__edges_wanted(&prep)) {
        OT_TRY(ot__edges_make(b->arena, &prep, &edges));
        prep.edges = &edges;
    }
    kernel = ot__kernel_select(&prep, b->options->reference_only);
    if (kernel != NULL && kernel->layouts != NULL)
        kernel->layouts(&prep);
    v->is_widened = prep.is_widened;
    return OT_OK;
}
