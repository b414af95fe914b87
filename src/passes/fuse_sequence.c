// SPDX-License-Identifier: Apache-2.0
// Sequences of known length become tensors: exporters write split, chunk and unbind as
// SplitToSequence and SequenceAt, and lists that are stacked as SequenceInsert or SequenceConstruct
// and ConcatFromSequence.
#include <string.h>

#include "passes/passes.h"

enum { SPLIT_OPSET = 13, MAX_PARTS = 1 << 16, MAX_ITEMS = 1 << 20 };

typedef struct splitting {
    ot_node *node; // the SplitToSequence
    int axis;
    int64_t *sizes;
    int n_parts;
    bool drops_axis; // parts of extent 1 lose the axis
} splitting;

// A tensor of a sequence: a value, or a part of a splitting.
typedef struct item {
    ot_value *value;
    int splitting, part;
} item;

typedef struct sequence {
    ot_value *value;
    item *items;
    int n;
    int from;     // the sequence that it was made of; -1: none
    bool is_kept; // somebody needs it as a sequence
} sequence;

typedef struct sequences {
    ot_graph *graph;
    ot__uses uses;
    ot__map by_name; // of values: index + 1 in `of`
    sequence *of;
    int n, capacity;
    splitting *splittings;
    int n_splittings, splittings_capacity;
    int64_t n_items;
} sequences;

bool ot__is_sequence_node(const ot_node *node)
{
    static const char *const types[] = {"SplitToSequence",    "SequenceConstruct", "SequenceEmpty",
                                        "SequenceInsert",     "SequenceErase",     "SequenceAt",
                                        "ConcatFromSequence", "SequenceLength"};

    if (ot__node_is(node, "", "Identity"))
        return node->n_inputs > 0 && node->inputs[0] && node->inputs[0]->kind == OT_VALUE_SEQUENCE;
    for (size_t i = 0; i < OT_COUNT(types); i++)
        if (ot__node_is(node, "", types[i]))
            return true;
    return false;
}

bool ot__gives_sequence(const ot_node *node)
{
    return ot__is_sequence_node(node) && !ot__node_is(node, "", "SequenceAt") &&
           !ot__node_is(node, "", "SequenceLength") && !ot__node_is(node, "", "ConcatFromSequence");
}

int ot__sequence_decider(const ot_node *node)
{
    const int i = ot__node_is(node, "", "SequenceInsert") ? 2
                  : ot__node_is(node, "", "SplitToSequence") ||
                          ot__node_is(node, "", "SequenceErase") ||
                          ot__node_is(node, "", "SequenceAt")
                      ? 1
                      : -1;

    return i >= 0 && i < node->n_inputs && node->inputs[i] ? i : -1;
}

// Elements of an initializer or of a Constant node; before folding, so both occur.
static const ot_tensor *sequence_constant(const ot_value *value)
{
    const ot_tensor *tensor = ot__match_constant_value(value);

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
    const int64_t axis = ot__match_int(node, "axis", 0);
    const ot_value *x = node->inputs[0];

    s->drops_axis = !split && ot__match_int(node, "keepdims", 1) == 0;
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

// ---- what sequences hold ----

static int sequence_index(const sequences *s, const ot_value *value)
{
    const uintptr_t found = value ? (uintptr_t)ot__map_get(&s->by_name, value->name) : 0;

    return found > 0 && s->of[found - 1].value == value ? (int)found - 1 : -1;
}

// One more, with room for n items; NULL in *out where it would be too many.
static ot_status begin_sequence(sequences *s, ot_node *node, int n, int from, sequence **out)
{
    sequence made = {.value = node->outputs[0], .n = n, .from = from};

    *out = NULL;
    if (n < 0 || n > MAX_PARTS || s->n_items + n > MAX_ITEMS)
        return OT_OK;
    OT_TRY(ot__made(ot__grow(&s->of, &s->capacity, s->n, sizeof *s->of)));
    made.items = ot__alloc_zero((size_t)n + 1, sizeof *made.items);
    OT_TRY(ot__made(made.items));
    s->of[s->n++] = made;
    s->n_items += n;
    OT_TRY(ot__made(ot__map_put(&s->by_name, made.value->name, (void *)(uintptr_t)s->n)));
    *out = &s->of[s->n - 1];
    return OT_OK;
}

static ot_status collect_split(sequences *s, ot_node *node)
{
    splitting split = {.node = node};
    sequence *made;

    OT_TRY(ot__made(
        ot__grow(&s->splittings, &s->splittings_capacity, s->n_splittings, sizeof *s->splittings)));
    s->splittings[s->n_splittings] = split;
    OT_TRY(find_sizes(&s->splittings[s->n_splittings++]));
    if (s->splittings[s->n_splittings - 1].n_parts == 0)
        return OT_OK;
    OT_TRY(begin_sequence(s, node, s->splittings[s->n_splittings - 1].n_parts, -1, &made));
    for (int i = 0; made && i < made->n; i++)
        made->items[i] = (item){.splitting = s->n_splittings - 1, .part = i};
    return OT_OK;
}

static ot_status collect_list(sequences *s, ot_node *node)
{
    sequence *made;

    OT_TRY(begin_sequence(s, node, node->n_inputs, -1, &made));
    for (int i = 0; made && i < made->n; i++)
        made->items[i].value = node->inputs[i];
    return OT_OK;
}

// The place that input i names, of 0 to n - 1; without the input the last. -1: it does not follow.
static int place_of(const ot_node *node, int i, int n)
{
    const bool is_given = node->n_inputs > i && node->inputs[i];
    const ot_tensor *place = is_given ? sequence_constant(node->inputs[i]) : NULL;
    int64_t at;

    if (!is_given)
        return n - 1;
    if (!place || ot_tensor_count(place) != 1)
        return -1;
    at = ot__tensor_get_i64(place, 0);
    if (at < 0)
        at += n;
    return at >= 0 && at < n ? (int)at : -1;
}

// Of the sequence `from`: without the item at `erased`, with `inserted` before `at`.
static ot_status collect_changed(sequences *s, ot_node *node, int from, int erased, int at,
                                 ot_value *inserted)
{
    const int n = s->of[from].n - (erased >= 0) + (inserted != NULL);
    const item *items;
    sequence *made;
    int k = 0;

    OT_TRY(begin_sequence(s, node, n, from, &made));
    if (!made)
        return OT_OK;
    items = s->of[from].items;
    for (int i = 0; i <= s->of[from].n; i++) {
        if (inserted && i == at)
            made->items[k++].value = inserted;
        if (i < s->of[from].n && i != erased)
            made->items[k++] = items[i];
    }
    return OT_OK;
}

static bool makes_one(const ot_node *node, const char *op_type, int n_inputs)
{
    bool are_given = ot__node_is(node, "", op_type) && node->n_inputs >= n_inputs &&
                     node->n_outputs == 1 && node->outputs[0];

    for (int i = 0; are_given && i < n_inputs; i++)
        are_given = node->inputs[i] != NULL;
    return are_given;
}

static ot_status collect_sequence(sequences *s, ot_node *node)
{
    const int from = node->n_inputs > 0 ? sequence_index(s, node->inputs[0]) : -1;
    int place;

    if (makes_one(node, "SplitToSequence", 1))
        return collect_split(s, node);
    if (makes_one(node, "SequenceConstruct", node->n_inputs))
        return collect_list(s, node);
    if (makes_one(node, "SequenceEmpty", 0))
        return collect_list(s, node);
    if (from < 0)
        return OT_OK;
    if (makes_one(node, "Identity", 1))
        return collect_changed(s, node, from, -1, -1, NULL);
    if (makes_one(node, "SequenceInsert", 2)) {
        place = place_of(node, 2, s->of[from].n + 1);
        return place < 0 ? OT_OK : collect_changed(s, node, from, -1, place, node->inputs[1]);
    }
    if (makes_one(node, "SequenceErase", 1)) {
        place = place_of(node, 1, s->of[from].n);
        return place < 0 ? OT_OK : collect_changed(s, node, from, place, -1, NULL);
    }
    return OT_OK;
}

// ---- which may go ----

static bool can_do_without(const sequences *s, const sequence *of, const ot__use *use)
{
    const ot_node *node = use->node;

    if (use->i_input != 0)
        return false;
    if (makes_one(node, "SequenceAt", 2))
        return place_of(node, 1, of->n) >= 0;
    if (makes_one(node, "SequenceLength", 1))
        return true;
    if (makes_one(node, "ConcatFromSequence", 1))
        return of->n > 0;
    return sequence_index(s, node->n_outputs > 0 ? node->outputs[0] : NULL) >= 0;
}

static void find_kept(sequences *s)
{
    for (int i = 0; i < s->n; i++) {
        sequence *of = &s->of[i];

        of->is_kept = of->value->is_output;
        for (int u = ot__uses_first(&s->uses, of->value); u < ot__uses_end(&s->uses, of->value);
             u++)
            of->is_kept = of->is_kept || !can_do_without(s, of, &s->uses.use[u]);
    }
    // One that is made of another keeps it, and stays where that stays.
    for (int i = s->n - 1; i >= 0; i--)
        if (s->of[i].is_kept && s->of[i].from >= 0)
            s->of[s->of[i].from].is_kept = true;
    for (int i = 0; i < s->n; i++)
        if (s->of[i].from >= 0 && s->of[s->of[i].from].is_kept)
            s->of[i].is_kept = true;
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

static bool set_ends(ot_node *node, const char *op_type, ot_value *const *ends, int n)
{
    ot_value **inputs =
        ot__arena_alloc(node->graph->model->arena, (size_t)OT_MAX(n, 1) * sizeof *inputs);

    if (!inputs)
        return false;
    for (int i = 0; i < n; i++)
        inputs[i] = ends[i];
    node->inputs = inputs;
    node->n_inputs = n;
    node->op_type = op_type;
    node->op = NULL; // for who looks records up
    return true;
}

static ot_status to_split(const sequences *s, splitting *split)
{
    ot_node *node = split->node;
    ot_graph *graph = s->graph;
    ot_value *whole = node->outputs[0], *ends[2] = {node->inputs[0], NULL};
    ot__arena *arena = graph->model->arena;
    char *sizes_name = ot__arena_printf(arena, "%s_sizes", whole->name);
    char *part_name = ot__arena_printf(arena, "%s_part", whole->name);
    ot_value **outputs = ot__arena_alloc(arena, (size_t)split->n_parts * sizeof *outputs);

    ends[1] = sizes_name ? new_i64(graph, sizes_name, split->sizes, split->n_parts) : NULL;
    OT_TRY(ot__made(ends[1] && outputs && part_name && set_ends(node, "Split", ends, 2) &&
                    ot__node_set_int(node, "axis", split->axis)));
    ot__node_remove_attr(node, "keepdims");
    for (int i = 0; i < split->n_parts; i++) {
        outputs[i] = ot__graph_new_value(graph, part_name);
        OT_TRY(ot__made(outputs[i]));
        outputs[i]->producer = node;
        outputs[i]->i_producer_output = i;
    }
    node->outputs = outputs;
    node->n_outputs = split->n_parts;
    ot__graph_forget_value(graph, whole);
    return OT_OK;
}

// `op_type` with one axis, as Squeeze and Unsqueeze take it.
static ot_status add_axis_node(ot_graph *graph, const char *op_type, ot_value *x, int64_t axis,
                               ot_value **out)
{
    char *axes_name = ot__arena_printf(graph->model->arena, "%s_axes", x->name);
    ot_value *ends[] = {x, axes_name ? new_i64(graph, axes_name, &axis, 1) : NULL};

    *out = ends[1] ? ot__graph_new_value(graph, x->name) : NULL;
    return ot__made(*out && ot__graph_add_node(graph, "", op_type, "", ends, 2, out, 1));
}

static ot_status value_of_item(sequences *s, item *i, ot_value **out)
{
    if (!i->value) {
        const splitting *split = &s->splittings[i->splitting];

        i->value = split->node->outputs[i->part];
        if (split->drops_axis)
            OT_TRY(add_axis_node(s->graph, "Squeeze", i->value, split->axis, &i->value));
    }
    *out = i->value;
    return OT_OK;
}

static ot_status take_item(sequences *s, sequence *of, ot_node *at)
{
    ot_value *value;

    OT_TRY(value_of_item(s, &of->items[place_of(at, 1, of->n)], &value));
    return ot__made(set_ends(at, "Identity", &value, 1));
}

static ot_status take_length(const sequences *s, const sequence *of, ot_node *node)
{
    ot_tensor *tensor = ot__model_tensor_new(s->graph->model, OT_I64, &OT_SHAPE_SCALAR);

    OT_TRY(ot__made(tensor && set_ends(node, "Constant", NULL, 0) &&
                    ot__node_set_tensor(node, "value", tensor)));
    *(int64_t *)tensor->data = of->n;
    return OT_OK;
}

static ot_status take_joined(sequences *s, sequence *of, ot_node *node)
{
    const bool has_new_axis = ot__match_int(node, "new_axis", 0) != 0;
    ot_value **ends = ot__alloc_zero((size_t)of->n, sizeof(ot_value *));
    ot_status st = ot__made(ends);

    for (int i = 0; i < of->n && st == OT_OK; i++) {
        st = value_of_item(s, &of->items[i], &ends[i]);
        if (has_new_axis)
            OT_THEN(st, add_axis_node(s->graph, "Unsqueeze", ends[i],
                                      ot__match_int(node, "axis", 0), &ends[i]));
    }
    OT_THEN(st, ot__made(set_ends(node, "Concat", ends, of->n)));
    ot__node_remove_attr(node, "new_axis");
    ot__free(ends);
    return st;
}

static ot_status to_tensors(sequences *s, sequence *of)
{
    for (int u = ot__uses_first(&s->uses, of->value); u < ot__uses_end(&s->uses, of->value); u++) {
        ot_node *node = s->uses.use[u].node;

        if (ot__node_is(node, "", "SequenceAt"))
            OT_TRY(take_item(s, of, node));
        else if (ot__node_is(node, "", "SequenceLength"))
            OT_TRY(take_length(s, of, node));
        else if (ot__node_is(node, "", "ConcatFromSequence"))
            OT_TRY(take_joined(s, of, node));
    }
    return OT_OK;
}

static ot_status rewrite_sequences(sequences *s)
{
    for (int i = 0; i < s->n; i++) { // the parts first, which others hold
        const sequence *of = &s->of[i];

        if (!of->is_kept && of->n > 0 && ot__node_is(of->value->producer, "", "SplitToSequence"))
            OT_TRY(to_split(s, &s->splittings[of->items[0].splitting]));
    }
    for (int i = 0; i < s->n; i++)
        if (!s->of[i].is_kept)
            OT_TRY(to_tensors(s, &s->of[i]));
    for (int i = 0; i < s->n; i++) {
        ot_node *node = s->of[i].value->producer;

        if (!s->of[i].is_kept && node && !ot__node_is(node, "", "Split"))
            ot__node_remove(node);
    }
    ot__graph_drop_detached(s->graph);
    return ot__graph_sort(s->graph);
}

static ot_status resolve_sequences(sequences *s)
{
    const ot_graph *graph = s->graph;

    for (int n = 0; n < graph->n_nodes; n++)
        OT_TRY(collect_sequence(s, graph->nodes[n]));
    if (s->n == 0)
        return OT_OK;
    OT_TRY(ot__uses_build(s->graph, &s->uses));
    find_kept(s);
    return rewrite_sequences(s);
}

ot_status ot__fuse_sequence(ot_model *model)
{
    sequences s = {.graph = model->graph};
    ot_status st;

    // Before opset 13 Split, Squeeze and Unsqueeze have another form.
    if (ot__model_opset(model, "") < SPLIT_OPSET)
        return OT_OK;
    st = resolve_sequences(&s);
    for (int i = 0; i < s.n; i++)
        ot__free(s.of[i].items);
    for (int i = 0; i < s.n_splittings; i++)
        ot__free(s.splittings[i].sizes);
    ot__free(s.of);
    ot__free(s.splittings);
    ot__map_deinit(&s.by_name);
    ot__uses_deinit(&s.uses);
    return st == OT_OK ? ot__pass_finished(model, "sequence") : st;
}
