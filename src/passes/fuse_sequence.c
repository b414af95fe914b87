// SPDX-License-Identifier: Apache-2.0
// Sequences of known length become tensors: exporters write split, chunk and unbind as
// SplitToSequence and SequenceAt.
#include <string.h>

#include "passes/passes.h"

enum { SPLIT_OPSET = 13, MAX_PARTS = 1 << 16 };

typedef struct splitting {
    ot_graph *graph;
    const ot__uses *uses;
    ot_node *node; // the SplitToSequence
    int axis;
    int64_t *sizes;
    int n_parts;
    bool drops_axis; // parts of extent 1 lose the axis
} splitting;

static int64_t int_attr(const ot_node *node, const char *name, int64_t otherwise)
{
    const ot_attr *attr = ot__node_attr(node, name);

    return attr && attr->kind == OT_ATTR_INT ? attr->i : otherwise;
}

// Elements of an initializer or of a Constant node; before folding, so both occur.
static const ot_tensor *sequence_constant(const ot_value *value)
{
    const ot_tensor *tensor =
        value->constant && !value->is_input ? value->constant : ot__match_constant(value->producer);

    return tensor && (tensor->dtype == OT_I64 || tensor->dtype == OT_I32) ? tensor : NULL;
}

// ---- how the tensor is split ----

static int64_t known_extent(const ot_value *x, int axis)
{
    return x->has_shape && axis < x->shape.ndim && ot__dim_is_number(x->shape.dim[axis])
               ? x->shape.dim[axis]
               : -1;
}

static ot_status alloc_sizes(splitting *s, int64_t n)
{
    if (n < 1 || n > MAX_PARTS)
        return OT_OK; // left as it is
    s->sizes = ot__alloc_zero((size_t)n, sizeof *s->sizes);
    s->n_parts = s->sizes ? (int)n : 0;
    return ot__made(s->sizes);
}

static ot_status sizes_of_chunks(splitting *s, int64_t chunk)
{
    int64_t left = known_extent(s->node->inputs[0], s->axis);

    if (left < 0 || chunk < 1)
        return OT_OK;
    OT_TRY(alloc_sizes(s, left / chunk + (left % chunk != 0)));
    for (int i = 0; i < s->n_parts; i++, left -= chunk)
        s->sizes[i] = OT_MIN(left, chunk);
    return OT_OK;
}

// n_parts stays 0 when the number of parts does not follow.
static ot_status find_sizes(splitting *s)
{
    const ot_node *node = s->node;
    const ot_value *split = node->n_inputs > 1 ? node->inputs[1] : NULL;
    const ot_tensor *sizes = split ? sequence_constant(split) : NULL;
    const int64_t axis = int_attr(node, "axis", 0);
    const ot_value *x = node->inputs[0];

    s->drops_axis = !split && int_attr(node, "keepdims", 1) == 0;
    if (axis >= 0 && axis < OT_MAX_NDIM)
        s->axis = (int)axis;
    else if (!x->has_shape || !ot__axis_normalize(axis, x->shape.ndim, &s->axis))
        return OT_OK;
    if (!split)
        return sizes_of_chunks(s, 1);
    if (!sizes)
        return OT_OK;
    if (ot_tensor_shape(sizes)->ndim == 0)
        return sizes_of_chunks(s, ot__tensor_get_i64(sizes, 0));
    OT_TRY(alloc_sizes(s, ot_tensor_count(sizes)));
    for (int i = 0; i < s->n_parts; i++)
        s->sizes[i] = ot__tensor_get_i64(sizes, i);
    return OT_OK;
}

// Which part a SequenceAt takes; -1 when that does not follow.
static int part_of(const splitting *s, const ot_node *at)
{
    const ot_tensor *position =
        at->n_inputs > 1 && at->inputs[1] ? sequence_constant(at->inputs[1]) : NULL;
    int64_t i;

    if (!position || ot_tensor_count(position) != 1)
        return -1;
    i = ot__tensor_get_i64(position, 0);
    if (i < 0)
        i += s->n_parts;
    return i >= 0 && i < s->n_parts ? (int)i : -1;
}

static bool all_readers_take_parts(const splitting *s)
{
    const ot_value *sequence = s->node->outputs[0];

    if (sequence->is_output)
        return false;
    for (int u = ot__uses_first(s->uses, sequence); u < ot__uses_end(s->uses, sequence); u++) {
        const ot__use *use = &s->uses->use[u];

        if (use->i_input != 0 || !ot__node_is(use->node, "", "SequenceAt") ||
            part_of(s, use->node) < 0)
            return false;
    }
    return true;
}

// ---- rewriting ----

static ot_value *new_i64(ot_graph *graph, const char *base, const int64_t *numbers, int n)
{
    ot_tensor *tensor = ot__model_tensor_new(graph->model, OT_I64, &OT_SHAPE(n));
    ot_value *value = tensor ? ot__graph_new_value(graph, base) : NULL;

    if (!value || !ot__graph_add_initializer(graph, value, tensor))
        return NULL;
    memcpy(tensor->data, numbers, (size_t)n * sizeof *numbers);
    return value;
}

static bool set_ends(ot_node *node, const char *op_type, ot_value *a, ot_value *b)
{
    ot_value **inputs = ot__arena_alloc(node->graph->model->arena, 2 * sizeof *inputs);

    if (!inputs)
        return false;
    inputs[0] = a;
    inputs[1] = b;
    node->inputs = inputs;
    node->n_inputs = b ? 2 : 1;
    node->op_type = op_type;
    return true;
}

static ot_status to_split(splitting *s)
{
    ot_node *node = s->node;
    ot_graph *graph = s->graph;
    ot_value *sequence = node->outputs[0];
    ot__arena *arena = graph->model->arena;
    char *sizes_name = ot__arena_printf(arena, "%s_sizes", sequence->name);
    char *part_name = ot__arena_printf(arena, "%s_part", sequence->name);
    ot_value **outputs = ot__arena_alloc(arena, (size_t)s->n_parts * sizeof *outputs);
    ot_value *sizes = sizes_name ? new_i64(graph, sizes_name, s->sizes, s->n_parts) : NULL;

    OT_TRY(ot__made(sizes && outputs && part_name &&
                    set_ends(node, "Split", node->inputs[0], sizes) &&
                    ot__node_set_int(node, "axis", s->axis)));
    ot__node_remove_attr(node, "keepdims");
    for (int i = 0; i < s->n_parts; i++) {
        outputs[i] = ot__graph_new_value(graph, part_name);
        OT_TRY(ot__made(outputs[i]));
        outputs[i]->producer = node;
        outputs[i]->i_producer_output = i;
    }
    node->outputs = outputs;
    node->n_outputs = s->n_parts;
    ot__graph_forget_value(graph, sequence);
    return OT_OK;
}

static ot_status to_tensors(splitting *s)
{
    const ot_value *sequence = s->node->outputs[0];
    const int64_t axis = s->axis;

    OT_TRY(to_split(s));
    for (int u = ot__uses_first(s->uses, sequence); u < ot__uses_end(s->uses, sequence); u++) {
        ot_node *at = s->uses->use[u].node;
        ot_value *part = s->node->outputs[part_of(s, at)], *axes = NULL;

        if (s->drops_axis) {
            char *name = ot__arena_printf(s->graph->model->arena, "%s_axes", at->outputs[0]->name);

            axes = name ? new_i64(s->graph, name, &axis, 1) : NULL;
            OT_TRY(ot__made(axes));
        }
        OT_TRY(ot__made(set_ends(at, s->drops_axis ? "Squeeze" : "Identity", part, axes)));
    }
    return OT_OK;
}

static bool has_form(const ot_node *node)
{
    return ot__node_is(node, "", "SplitToSequence") && node->n_inputs > 0 && node->inputs[0] &&
           node->n_outputs == 1 && node->outputs[0];
}

ot_status ot__fuse_sequence(ot_model *model)
{
    ot_graph *graph = model->graph;
    ot__uses uses;
    ot_status st = OT_OK;

    // Before opset 13 Split and Squeeze have another form, and no exporter writes this one.
    if (ot__model_opset(model, "") < SPLIT_OPSET)
        return OT_OK;
    OT_TRY(ot__uses_build(graph, &uses));
    for (int n = 0; n < graph->n_nodes && st == OT_OK; n++) {
        splitting s = {.graph = graph, .uses = &uses, .node = graph->nodes[n]};

        if (!has_form(s.node))
            continue;
        st = find_sizes(&s);
        if (st == OT_OK && s.n_parts > 0 && all_readers_take_parts(&s))
            st = to_tensors(&s);
        ot__free(s.sizes);
    }
    ot__uses_deinit(&uses);
    return st == OT_OK ? ot__pass_finished(model, "sequence") : st;
}
