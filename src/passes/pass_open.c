// SPDX-License-Identifier: Apache-2.0
// A batch size that an exporter wrote as a number becomes a symbol.
//
// The walk infers every node anew with the symbol in the inputs and notes where the batch lies in
// each value. What a node reads that holds the number in that place is changed first.
#include <string.h>

#include "passes/open.h"

// ---- making values and nodes ----

static const char *open_name(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            return node->outputs[i]->name;
    return node->op_type;
}

static ot_value *new_value(ot__opener *o, const ot_node *node, const char *suffix)
{
    char *name = ot__arena_printf(o->model->arena, "%s_%s", open_name(node), suffix);

    return name ? ot__graph_new_value(o->graph, name) : NULL;
}

ot_value *ot__open_list(ot__opener *o, const ot_node *node, const int64_t *numbers, int n)
{
    ot_tensor *tensor = ot__model_tensor_new(o->model, OT_I64, &OT_SHAPE(n));
    ot_value *value = tensor ? new_value(o, node, "numbers") : NULL;

    if (value && n > 0)
        memcpy(tensor->data, numbers, (size_t)n * sizeof *numbers);
    if (value) {
        value->constant = tensor;
        ot__value_set(value, tensor->dtype, &tensor->shape);
    }
    return value;
}

// Its attributes are still to come.
static ot_node *open_add_node(ot__opener *o, ot__builder *b, const char *op_type,
                              const ot_node *named_after, ot_value *const *inputs, int n_inputs)
{
    ot_value *y = new_value(o, named_after, op_type);

    return ot__build_made(b, y != NULL)
               ? ot__op_build(b, "", op_type, y->name, inputs, n_inputs, &y, 1)
               : NULL;
}

static ot_status open_settle(ot__builder *b, ot_node *node, ot_value **out)
{
    ot__op_settle(b, node);
    *out = b->status == OT_OK ? node->outputs[0] : NULL;
    return b->status;
}

ot_status ot__open_node(ot__opener *o, const char *op_type, const ot_node *named_after,
                        const ot_node *like, ot_value *const *inputs, int n_inputs, ot_value **out)
{
    ot__builder b = {.graph = o->graph};
    ot_node *node = open_add_node(o, &b, op_type, named_after, inputs, n_inputs);

    if (node && like)
        ot__build_made(&b, ot__node_copy_attrs(node, like));
    return open_settle(&b, node, out);
}

ot_status ot__open_filled(ot__opener *o, const ot_node *node, ot_value *shape, ot_tensor *element,
                          ot_value **out)
{
    ot__builder b = {.graph = o->graph};
    ot_node *filled = open_add_node(o, &b, "ConstantOfShape", node, &shape, 1);

    if (filled)
        ot__build_made(&b, ot__node_set_tensor(filled, "value", element));
    return open_settle(&b, filled, out);
}

static ot_status make_count(ot__opener *o, const ot_node *node)
{
    const int64_t zero = 0;
    ot_value *pair[2] = {NULL, ot__open_list(o, node, &zero, 1)};

    OT_TRY(ot__made(pair[1]));
    OT_TRY(ot__open_node(o, "Shape", node, NULL, &o->input, 1, &pair[0]));
    return ot__open_node(o, "Gather", node, NULL, pair, 2, &o->count);
}

ot_status ot__open_count(ot__opener *o, const ot_node *node, int64_t factor, ot_value **out)
{
    ot_value *pair[2];

    *out = NULL;
    if (!o->count)
        OT_TRY(make_count(o, node));
    *out = o->count;
    if (factor == 1)
        return OT_OK;
    pair[0] = o->count;
    pair[1] = ot__open_list(o, node, &factor, 1);
    return pair[1] ? ot__open_node(o, "Mul", node, NULL, pair, 2, out) : OT_ERR_NO_MEMORY;
}

ot_status ot__open_shape(ot__opener *o, const ot_node *node, const int64_t *numbers, int n,
                         int axis, ot_value **out)
{
    ot_value *parts[3];
    ot__builder b = {.graph = o->graph};
    ot_node *concat;
    int n_parts = 0;

    *out = NULL;
    if (axis > 0 && !(parts[n_parts++] = ot__open_list(o, node, numbers, axis)))
        return OT_ERR_NO_MEMORY;
    OT_TRY(ot__open_count(o, node, 1, &parts[n_parts++]));
    if (axis + 1 < n &&
        !(parts[n_parts++] = ot__open_list(o, node, numbers + axis + 1, n - axis - 1)))
        return OT_ERR_NO_MEMORY;
    if (n_parts == 1) {
        *out = parts[0];
        return OT_OK;
    }
    concat = open_add_node(o, &b, "Concat", node, parts, n_parts);
    ot__build_int(&b, concat, "axis", 0);
    return open_settle(&b, concat, out);
}

// ---- the walk ----

// Shapes that were only stated may state the number.
static ot_status check_inferred(const ot__opener *o, const ot_node *node, const ot_value *y)
{
    if (y->kind != OT_VALUE_TENSOR || y->has_shape || !ot__open_was(o, y))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s: the shape of '%s' does not follow from its inputs",
                     OT_LABEL(node), y->name);
}

static ot_status open_visit(ot__opener *o, ot_node *node)
{
    OT_TRY(ot__open_mend(o, node));
    OT_TRY(ot__op_infer(node));
    for (int i = 0; i < node->n_outputs; i++) {
        ot_value *y = node->outputs[i];

        if (!y)
            continue;
        OT_TRY(check_inferred(o, node, y));
        o->places[ot__value_number(o->numbers, y)] = ot__open_find_place(o, node, y);
    }
    return OT_OK;
}

static bool has_batch(const ot__opener *o, const ot_value *input)
{
    return input->kind == OT_VALUE_TENSOR && input->has_shape && !input->constant &&
           input->shape.ndim > 0 && input->shape.dim[0] == o->batch;
}

// A name that no input has yet: equal names would be equal extents.
static ot_status choose_symbol(ot__opener *o)
{
    const ot_graph *graph = o->graph;
    const char *name = "batch";
    bool taken = true;

    for (int n = 1; taken; n++) {
        taken = false;
        for (int i = 0; i < graph->n_inputs; i++) {
            const ot_value *input = graph->inputs[i];

            for (int k = 0; input->has_shape && k < input->shape.ndim; k++) {
                const char *other = ot__dim_name(o->model, input->shape.dim[k]);

                taken = taken || (other && strcmp(other, name) == 0);
            }
        }
        if (taken)
            name = ot__arena_printf(o->model->arena, "batch_%d", n);
        OT_TRY(ot__made(name));
    }
    o->symbol = ot__dim_symbol(o->model, name);
    return o->symbol == OT_DIM_UNKNOWN ? OT_ERR_NO_MEMORY : OT_OK;
}

static void open_inputs(ot__opener *o)
{
    for (int i = 0; i < o->graph->n_inputs; i++) {
        ot_value *input = o->graph->inputs[i];

        if (!has_batch(o, input))
            continue;
        if (!o->input)
            o->input = input;
        input->shape.dim[0] = o->symbol;
        o->places[ot__value_number(o->numbers, input)] =
            (ot__place){.axis = 0, .outer = 1, .inner = 1};
    }
}

static ot_status open_remember(ot__opener *o, const ot__uses *uses)
{
    const int n_values = uses->numbers.n_values;

    o->numbers = &uses->numbers;
    o->was = ot__arena_alloc(o->model->arena, (size_t)(n_values + 1) * sizeof *o->was);
    o->places = ot__arena_alloc(o->model->arena, (size_t)(n_values + 1) * sizeof *o->places);
    OT_TRY(ot__made(o->was && o->places));
    for (int i = 0; i < n_values; i++) {
        ot_value *value = uses->numbers.values[i];

        o->places[i] = *ot__open_place(o, NULL);
        o->was[i] = (ot__was){value->has_shape, value->shape};
        if (!value->producer)
            continue;
        value->has_shape = false;
        value->known = NULL;
        value->n_known = 0;
    }
    return OT_OK;
}

static ot_status walk(ot__opener *o, const ot__uses *uses)
{
    const int n_nodes = o->graph->n_nodes; // what the walk adds is inferred where it is made

    OT_TRY(choose_symbol(o));
    OT_TRY(open_remember(o, uses));
    open_inputs(o);
    for (int n = 0; n < n_nodes; n++)
        OT_TRY(open_visit(o, o->graph->nodes[n]));
    return OT_OK;
}

// ---- afterwards ----

static bool lost_its_readers(const ot__uses *before, const ot__uses *after, int i)
{
    const ot_value *value = before->numbers.values[i];

    return ot__uses_count(after, value) == 0 && !value->is_output &&
           before->first[i + 1] > before->first[i];
}

// What becomes of a value.
typedef struct fate {
    bool is_needed;  // it was there before, and did not lose its readers
    bool is_gone;    // an initializer that is dropped, or stands in the place of such a one
    ot_value *row;   // one row that is made of it
    ot_value *place; // who takes its place among the initializers
} fate;

typedef struct left_over {
    ot__uses after;
    fate *fates; // by number in `after`
} left_over;

static fate *fate_of(const left_over *l, const ot_value *value)
{
    return &l->fates[ot__value_number(&l->after.numbers, value)];
}

static ot_status left_over_init(left_over *l, const ot__opener *o, const ot__uses *before)
{
    OT_TRY(ot__uses_build(o->graph, &l->after));
    l->fates = ot__alloc_zero((size_t)l->after.numbers.n_values, sizeof *l->fates);
    OT_TRY(ot__made(l->fates));
    for (int i = 0; i < before->numbers.n_values; i++)
        if (ot__has_number(&l->after.numbers, before->numbers.values[i]))
            fate_of(l, before->numbers.values[i])->is_needed =
                !lost_its_readers(before, &l->after, i);
    for (int i = o->n_rows - 1; i >= 0; i--)
        if (ot__has_number(&l->after.numbers, o->rows[i].from))
            fate_of(l, o->rows[i].from)->row = o->rows[i].to;
    return OT_OK;
}

static bool is_left_over(const left_over *l, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && fate_of(l, node->outputs[i])->is_needed)
            return false;
    return true;
}

// One row in place of an initializer that nobody reads any more takes its name and its place.
static ot_status drop_initializer(left_over *l, ot_graph *graph, ot_value *value)
{
    fate *f = fate_of(l, value);

    f->is_gone = true;
    f->place = f->row;
    ot__graph_forget_value(graph, value);
    if (!f->row)
        return OT_OK;
    fate_of(l, f->row)->is_gone = true;
    return ot__made(ot__graph_rename_value(graph, f->row, value->name));
}

static void list_initializers(const left_over *l, ot_graph *graph)
{
    int kept = 0;

    for (int i = 0; i < graph->n_initializers; i++) {
        const fate *f = fate_of(l, graph->initializers[i]);

        if (f->place || !f->is_gone)
            graph->initializers[kept++] = f->place ? f->place : graph->initializers[i];
    }
    graph->n_initializers = kept;
}

static ot_status drop_left_over(ot__opener *o, const ot__uses *before, bool *any)
{
    left_over l = {0};
    ot_status st = left_over_init(&l, o, before);

    *any = false;
    for (int i = 0; st == OT_OK && i < before->numbers.n_values; i++) {
        ot_value *value = before->numbers.values[i];

        if (!value->producer && !value->is_initializer)
            continue;
        if (ot__graph_find(o->graph, value->name) != value ||
            !lost_its_readers(before, &l.after, i))
            continue;
        if (value->is_initializer && !value->is_input) {
            st = drop_initializer(&l, o->graph, value);
            *any = true;
        } else if (value->producer && is_left_over(&l, value->producer)) {
            ot__node_remove(value->producer);
            *any = true;
        }
    }
    if (st == OT_OK)
        list_initializers(&l, o->graph);
    ot__graph_drop_detached(o->graph);
    ot__uses_deinit(&l.after);
    ot__free(l.fates);
    return st;
}

static ot_status list_places(const ot__opener *o, ot_value *const *values, int n,
                             const ot__place **out)
{
    ot__place *places = ot__arena_alloc(o->model->arena, (size_t)(n + 1) * sizeof *places);

    *out = places;
    for (int i = 0; places && i < n; i++)
        places[i] = *ot__open_place(o, values[i]);
    return ot__made(places);
}

static ot_status finish_open(ot__opener *o, const ot__uses *before, ot__opened *out)
{
    bool any = o->n_changes > 0;

    OT_TRY(list_places(o, o->graph->inputs, o->graph->n_inputs, &out->inputs));
    OT_TRY(list_places(o, o->graph->outputs, o->graph->n_outputs, &out->outputs));
    while (any)
        OT_TRY(drop_left_over(o, before, &any));
    OT_TRY(ot__graph_sort(o->graph));
    out->n_changes = o->n_changes;
    return ot__pass_finished(o->model, "open_batch");
}

int64_t ot__pass_fixed_batch(const ot_model *model)
{
    const ot_graph *graph = model->graph;

    for (int i = 0; i < graph->n_inputs; i++) {
        const ot_value *input = graph->inputs[i];

        if (input->constant)
            continue;
        if (input->kind != OT_VALUE_TENSOR || !input->has_shape || input->shape.ndim == 0 ||
            !ot__dim_is_number(input->shape.dim[0]))
            return 0;
        return input->shape.dim[0];
    }
    return 0;
}

static ot_status open_model_batch(ot__opener *o, ot__opened *out)
{
    ot__uses before;
    ot_status st = ot__uses_build(o->graph, &before);

    OT_THEN(st, walk(o, &before));
    OT_THEN(st, finish_open(o, &before, out));
    ot__uses_deinit(&before);
    if (st != OT_ERR_INVALID && st != OT_ERR_UNSUPPORTED)
        return st;
    out->obstacle = ot__arena_strdup(o->model->arena, ot_error_message());
    return ot__made(out->obstacle);
}

bool ot__choices_next(ot__choices *choices)
{
    for (int i = choices->n; i-- > 0;) {
        if (choices->taken[i] + 1 >= choices->possible[i])
            continue;
        choices->taken[i]++;
        choices->n_given = i + 1;
        return true;
    }
    return false;
}

ot_status ot__pass_open_batch(ot_model *model, ot__choices *choices, ot__opened *out)
{
    ot__opener o = {.model = model, .graph = model->graph, .choices = choices};
    ot_status st;

    *out = (ot__opened){0};
    o.batch = ot__pass_fixed_batch(model);
    if (o.batch <= 0)
        return OT_OK;
    out->batch = o.batch;
    OT_TRY(ot__model_clone(model, &o.before));
    st = open_model_batch(&o, out);
    choices->n = o.n_choices;
    ot__map_deinit(&o.made);
    ot_model_destroy(o.before);
    return st;
}
