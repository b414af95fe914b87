// SPDX-License-Identifier: Apache-2.0
// Values become entries, one a tensor, and entries that are the same memory get the same root.
#include <string.h>

#include "exec/plan.h"

// ---- entries ----

static ot_status add_entry(ot__plan_builder *b, const ot_value *value, const ot_shape *shape,
                           ot__source source)
{
    ot__plan *plan = b->plan;
    ot__entry *e;

    OT_TRY(ot__made(ot__arena_grow(b->arena, &plan->entries, &b->entries_capacity, plan->n_entries,
                                   sizeof *plan->entries)));
    e = &plan->entries[plan->n_entries];
    *e = (ot__entry){.source = source, .root = plan->n_entries, .next = -1, .usage = -1};
    e->arg.dtype = value->dtype;
    e->arg.shape = *shape;
    e->arg.layout = b->layouts[ot__value_number(&b->numbers, value)];
    if (!ot__shape_count(shape, &e->arg.count) ||
        !ot__element_bytes(value->dtype, e->arg.count, &e->n_bytes))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "value '%s' of type %s and shape %s cannot be computed", value->name,
                         ot_dtype_name(value->dtype), OT_SHAPE_TEXT(shape));
    e->name = ot__arena_strdup(plan->arena, value->name);
    OT_TRY(ot__made(e->name != NULL));
    plan->n_entries++;
    return OT_OK;
}

static ot_status tensor_entry(ot__plan_builder *b, const ot_value *value, ot__source source)
{
    const ot_tensor *constant = value->constant;

    if (value->kind != OT_VALUE_TENSOR || (!value->has_shape && constant == NULL))
        return ot__error(OT_ERR_UNSUPPORTED, "the shape of value '%s' is not known before it runs",
                         value->name);
    b->ranges[ot__value_number(&b->numbers, value)] = (ot__range){b->plan->n_entries, 1};
    OT_TRY(add_entry(b, value, constant != NULL ? &constant->shape : &value->shape, source));
    if (source == OT_SOURCE_CONSTANT)
        b->plan->entries[b->plan->n_entries - 1].arg.data = constant->data;
    return OT_OK;
}

static ot_status input_entry(ot__plan_builder *b, int i_input)
{
    const ot_value *value = b->graph->inputs[i_input];

    if (value->kind != OT_VALUE_SEQUENCE)
        return tensor_entry(b, value,
                            value->constant != NULL ? OT_SOURCE_CONSTANT : OT_SOURCE_INPUT);
    if (b->sequence_lengths == NULL || b->sequence_shapes == NULL)
        return ot__error(OT_ERR_INVALID, "the length of sequence '%s' is not given", value->name);
    b->ranges[ot__value_number(&b->numbers, value)] =
        (ot__range){b->plan->n_entries, b->sequence_lengths[i_input]};
    for (int k = 0; k < b->sequence_lengths[i_input]; k++)
        OT_TRY(add_entry(b, value, &b->sequence_shapes[i_input][k], OT_SOURCE_INPUT));
    return OT_OK;
}

// ---- state: an output port with STATE is the memory of the input port with STATE of the same
// number among those ----

static int state_input(const ot_node *node, int i_output)
{
    int n_before = 0;

    for (int i = 0; i < i_output; i++)
        n_before += (ot__op_output_port(node->op, i)->flags & OT_PORT_STATE) != 0;
    for (int i = 0; i < node->n_inputs; i++)
        if ((ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) != 0 && n_before-- == 0)
            return i;
    return -1;
}

// `with` may be a part of a buffer: then it begins where that does.
static void share(ot__plan *plan, int entry, int with)
{
    const int root = plan->entries[with].root;

    plan->entries[entry].root = root;
    plan->entries[entry].place = plan->entries[with].place;
    plan->entries[entry].source = plan->entries[root].source;
    plan->entries[entry].arg.data = plan->entries[with].arg.data;
    plan->entries[entry].next = plan->entries[root].next;
    plan->entries[root].next = entry;
}

static ot_status output_entry(ot__plan_builder *b, const ot_node *node, int i_output)
{
    const ot_value *value = node->outputs[i_output];
    const ot_port *port = ot__op_output_port(node->op, i_output);
    const ot_value *from = NULL;
    ot__range range;

    if ((port->flags & OT_PORT_STATE) != 0) {
        const int i = state_input(node, i_output);

        from = i < 0 ? NULL : node->inputs[i];
    }
    if (value->kind != OT_VALUE_SEQUENCE) {
        OT_TRY(tensor_entry(b, value, OT_SOURCE_PLANNED));
        if (from == NULL)
            return OT_OK;
        range = ot__builder_range(b, from);
        if (b->plan->entries[range.first].n_bytes ==
            b->plan->entries[b->plan->n_entries - 1].n_bytes)
            share(b->plan, b->plan->n_entries - 1, range.first);
        return OT_OK;
    }
    if (from == NULL || from->kind != OT_VALUE_SEQUENCE)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: the length of sequence '%s' is not known",
                         OT_LABEL(node), value->name);
    range = ot__builder_range(b, from);
    b->ranges[ot__value_number(&b->numbers, value)] = (ot__range){b->plan->n_entries, range.count};
    for (int k = 0; k < range.count; k++) {
        const ot_shape shape = b->plan->entries[range.first + k].arg.shape;

        OT_TRY(add_entry(b, value, &shape, OT_SOURCE_PLANNED));
        share(b->plan, b->plan->n_entries - 1, range.first + k);
    }
    return OT_OK;
}

static ot_status value_entries(ot__plan_builder *b)
{
    const ot_graph *g = b->graph;

    for (int i = 0; i < g->n_inputs; i++)
        OT_TRY(input_entry(b, i));
    for (int n = 0; n < g->n_nodes; n++) {
        const ot_node *node = g->nodes[n];

        for (int i = 0; i < node->n_inputs; i++) {
            const ot_value *value = node->inputs[i];

            if (value == NULL || b->ranges[ot__value_number(&b->numbers, value)].first >= 0)
                continue;
            if (value->constant == NULL)
                return ot__error(OT_ERR_INVALID, "%s: nothing makes its input '%s'", OT_LABEL(node),
                                 value->name);
            OT_TRY(tensor_entry(b, value, OT_SOURCE_CONSTANT));
        }
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i] != NULL)
                OT_TRY(output_entry(b, node, i));
    }
    for (int i = 0; i < g->n_outputs; i++) {
        if (b->ranges[ot__value_number(&b->numbers, g->outputs[i])].first >= 0)
            continue;
        if (g->outputs[i]->constant == NULL)
            return ot__error(OT_ERR_INVALID, "nothing makes output '%s'", g->outputs[i]->name);
        OT_TRY(tensor_entry(b, g->outputs[i], OT_SOURCE_CONSTANT));
    }
    return OT_OK;
}

// ---- who shares memory ----

// The model's memory may be a mapped file, so what a node writes into is a copy of the plan's own.
static ot_status mark_written(ot__plan *plan, int entry, bool is_update)
{
    ot__entry *root = ot__plan_root(plan, entry);
    void *copy;

    root->is_updated = is_update && (root->is_updated || !root->is_written);
    root->is_written = true;
    if (root->source != OT_SOURCE_CONSTANT)
        return OT_OK;
    copy = ot__arena_alloc(plan->arena, OT_MAX(root->n_bytes, (size_t)1));
    OT_TRY(ot__made(copy != NULL));
    if (root->n_bytes > 0)
        memcpy(copy, root->arg.data, root->n_bytes);
    for (int k = plan->entries[entry].root; k >= 0; k = plan->entries[k].next) {
        plan->entries[k].source = OT_SOURCE_STATE;
        plan->entries[k].arg.data = (char *)copy + plan->entries[k].place;
    }
    return OT_OK;
}

static ot_status mark_state(ot__plan_builder *b)
{
    for (int n = 0; n < b->graph->n_nodes; n++) {
        const ot_node *node = b->graph->nodes[n];

        for (int i = 0; i < node->n_inputs; i++) {
            ot__range range;

            if (node->inputs[i] == NULL ||
                (ot__op_input_port(node->op, i)->flags & OT_PORT_STATE) == 0)
                continue;
            range = ot__builder_range(b, node->inputs[i]);
            for (int k = 0; k < range.count; k++)
                OT_TRY(mark_written(b->plan, range.first + k,
                                    (node->op->flags & OT_OP_TENSORWISE) != 0));
        }
    }
    return OT_OK;
}

static int count_entry_outputs(const ot_node *node)
{
    int n = 0;

    for (int i = 0; i < node->n_outputs; i++)
        n += node->outputs[i] != NULL;
    return n;
}

// A view of memory that changes would show the change too early, so it stays a copy; but of what
// is updated, which waits for all who read it.
static bool may_show(const ot__plan *plan, int x, const ot_value *y)
{
    const ot__entry *root = ot__plan_root(plan, x);

    return !root->is_written || (root->is_updated && !y->is_output &&
                                 (plan->entries[x].root == x || plan->entries[x].is_old));
}

static void share_views(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;

    for (int n = 0; n < b->graph->n_nodes; n++) {
        const ot_node *node = b->graph->nodes[n];
        ot__range x, y;

        if ((node->op->flags & OT_OP_VIEW) == 0 || node->n_inputs == 0 || node->inputs[0] == NULL ||
            node->n_outputs == 0 || node->outputs[0] == NULL || count_entry_outputs(node) != 1)
            continue;
        x = ot__builder_range(b, node->inputs[0]);
        y = ot__builder_range(b, node->outputs[0]);
        if (x.count != 1 || y.count != 1 || !may_show(plan, x.first, node->outputs[0]) ||
            plan->entries[y.first].is_written || plan->entries[y.first].root != y.first ||
            plan->entries[x.first].n_bytes != plan->entries[y.first].n_bytes)
            continue;
        plan->entries[y.first].is_old = ot__plan_root(plan, x.first)->is_updated;
        share(plan, y.first, x.first);
        b->is_view[n] = true;
    }
}

// Tensors of a buffer.
static ot_status share_parts(ot__plan_builder *b)
{
    ot__plan *plan = b->plan;

    for (int n = 0; n < b->graph->n_nodes; n++) {
        const ot_node *node = b->graph->nodes[n];
        const ot_attr *offsets = ot__node_attr(node, "offsets");

        if ((node->op->flags & OT_OP_PARTS) == 0)
            continue;
        for (int k = 0; k < offsets->n; k++) {
            const ot_value *y = node->outputs[node->n_outputs - offsets->n + k];
            const int buffer = ot__builder_range(b, node->inputs[0]).first;
            const int part = y != NULL ? ot__builder_range(b, y).first : -1;

            if (part < 0)
                continue;
            share(plan, part, buffer);
            plan->entries[part].place =
                (size_t)offsets->ints[k] * ot_dtype_size(plan->entries[part].arg.dtype);
            if (plan->entries[part].place > plan->entries[buffer].n_bytes ||
                plan->entries[part].n_bytes >
                    plan->entries[buffer].n_bytes - plan->entries[part].place)
                return ot__error(OT_ERR_INVALID, "%s: output '%s' exceeds the buffer",
                                 OT_LABEL(node), y->name);
            if (plan->entries[part].arg.data != NULL) // of a constant
                plan->entries[part].arg.data =
                    (char *)plan->entries[part].arg.data + plan->entries[part].place;
        }
    }
    return OT_OK;
}

ot_status ot__build_entries(ot__plan_builder *b)
{
    const ot_graph *g = b->graph;

    b->ranges = ot__arena_alloc(b->arena, ((size_t)b->numbers.n_values + 1) * sizeof *b->ranges);
    b->is_view = ot__arena_alloc(b->arena, (size_t)g->n_nodes + 1);
    OT_TRY(ot__made(b->ranges != NULL && b->is_view != NULL));
    for (int v = 0; v < b->numbers.n_values; v++)
        b->ranges[v] = (ot__range){-1, 0};
    OT_TRY(value_entries(b));
    // The list has grown in the builder's memory: the plan keeps no more than there is.
    b->plan->entries = ot__arena_memdup(b->plan->arena, b->plan->entries,
                                        (size_t)b->plan->n_entries * sizeof *b->plan->entries);
    OT_TRY(ot__made(b->plan->entries != NULL));
    OT_TRY(share_parts(b));
    OT_TRY(mark_state(b));
    share_views(b);
    return OT_OK;
}
