// SPDX-License-Identifier: Apache-2.0
// Roles of initializers.
#include <string.h>

#include "artifacts/parameters.h"

// ---- candidates ----

ot_status ot__candidates_add(ot__candidates *c, ot_value *value)
{
    const ot__candidate item = {.value = value, .reason = ""};

    return ot__made(
        ot__arena_push(c->graph->model->arena, &c->items, &c->capacity, &c->n, &item, sizeof item));
}

ot_status ot__candidates_collect(ot_graph *graph, ot__candidates *out)
{
    *out = (ot__candidates){.graph = graph};
    for (int i = 0; i < graph->n_initializers; i++) {
        OT_TRY(ot__candidates_add(out, graph->initializers[i]));
        graph->initializers[i]->is_input = false;
    }
    ot__graph_relist(graph);
    return OT_OK;
}

// ---- patterns ----

ot_status ot__selection_init(ot__selection *selection, const ot_artifacts_options *options)
{
    *selection = (ot__selection){.options = options};
    OT_TRY(ot__patterns_init(&selection->trainable, options->trainable, options->n_trainable));
    return ot__patterns_init(&selection->frozen, options->frozen, options->n_frozen);
}

void ot__selection_deinit(ot__selection *selection)
{
    ot__patterns_deinit(&selection->trainable);
    ot__patterns_deinit(&selection->frozen);
}

static ot_status roles_unmatched(const ot_graph *graph, const char *list, const char *pattern)
{
    const ot_value *value = ot__graph_find(graph, pattern);
    ot__names names = {.wanted = pattern};

    if (value && value->producer)
        return ot__error(OT_ERR_INVALID,
                         "%s '%s' is computed by %s, so it is not a parameter: an exporter that "
                         "optimizes folds parameters away (torch.onnx.export: optimize=False)",
                         list, pattern, OT_LABEL(value->producer));
    if (value)
        return ot__error(OT_ERR_INVALID, "%s '%s' is an input of the model, not a parameter", list,
                         pattern);
    for (int i = 0; i < graph->n_initializers; i++)
        ot__names_add(&names, graph->initializers[i]->name);
    return ot__error(OT_ERR_NOT_FOUND,
                     "%s '%s' matches no initializer of the model; an exporter that optimizes "
                     "folds parameters away (torch.onnx.export: optimize=False)%s",
                     list, pattern, ot__names_hint(&names));
}

bool ot__has_input(const ot_graph *graph, const char *name)
{
    const ot_value *value = ot__graph_find(graph, name);

    return value && value->is_input;
}

static ot_status check_patterns(const ot__candidates *c, const char *list,
                                const ot__patterns *patterns, bool with_inputs)
{
    const ot__pattern_matches *matches;

    OT_TRY(ot__patterns_matches(patterns, c, &matches));
    for (int p = 0; p < patterns->n; p++)
        if (!matches[p].first && !(with_inputs && ot__has_input(c->graph, patterns->items[p])))
            return roles_unmatched(c->graph, list, patterns->items[p]);
    return OT_OK;
}

static ot_status check_overlap(const ot__selection *selection)
{
    ot__buf text = {0};
    ot_status st;

    for (int t = 0; t < selection->trainable.n; t++)
        if (ot__patterns_name(&selection->frozen, selection->trainable.items[t]))
            ot__buf_printf(&text, "%s'%s'", text.length ? ", " : "", selection->trainable.items[t]);
    st = ot__buf_status(&text);
    if (st == OT_OK && text.length > 0)
        st = ot__error(OT_ERR_INVALID, "trainable and frozen at the same time: %s", text.data);
    ot__buf_deinit(&text);
    return st;
}

// ---- reasons ----

static ot_status explain_role(ot__candidate *item, const char *text)
{
    item->reason = text;
    return ot__made(text);
}

// `numbers`: of the candidates.
static void find_places_at(ot__candidates *c, const ot__numbers *numbers, const ot_node *node)
{
    for (int i = 1; i < node->n_inputs; i++) {
        const ot_value *value = node->inputs[i];

        if (!value || !ot__has_number(numbers, value))
            continue;
        ot__candidate *item = &c->items[ot__value_number(numbers, value)];

        item->place = item->place ? item->place : node;
    }
}

ot_status ot__candidates_find_places(ot__candidates *c)
{
    ot__numbers numbers = {0};
    ot_status st = OT_OK;

    for (int i = 0; i < c->n && st == OT_OK; i++) {
        st = ot__numbers_add(&numbers, c->items[i].value);
        c->items[i].place = NULL;
    }
    for (int n = 0; n < c->graph->n_nodes && st == OT_OK; n++)
        if (ot__constants_of(c->graph->nodes[n]))
            find_places_at(c, &numbers, c->graph->nodes[n]);
    ot__numbers_deinit(&numbers);
    return st;
}

// Constants by their place: exponents of Pow and bounds of Clip. NULL: neither.
static const char *constant_by_place(const ot__candidates *c, const ot__candidate *item)
{
    if (!item->place)
        return NULL;
    return ot__arena_printf(c->graph->model->arena, "%s of %s", ot__constants_of(item->place),
                            OT_LABEL(item->place));
}

static const char *blocked_by(const ot_graph *graph, const ot_value *value, const ot_node *blocker)
{
    const char *label = OT_LABEL(blocker);

    for (int i = 0; i < blocker->n_inputs; i++)
        if (blocker->inputs[i] && strcmp(blocker->inputs[i]->name, value->name) == 0)
            return ot__arena_printf(graph->model->arena, "only through input '%s' of %s",
                                    ot__op_input_port(blocker->op, i)->name, label);
    return ot__arena_printf(graph->model->arena, "its gradient stops at %s", label);
}

// ---- classification ----

// A number of a formula, unless the file calls it a parameter.
static bool is_idle_scalar(const ot__selection *selection, const ot__candidate *item)
{
    const bool is_parameter = item->origin == OT_ORIGIN_PARAMETER && item->is_original;

    return item->value->shape.ndim == 0 && !is_parameter && selection->options->train_scalars == 0;
}

// May it train when nobody names it? Otherwise the reason is set.
static ot_status judge(const ot__candidates *c, ot__candidate *item, const ot__selection *selection,
                       ot__path_status status, const ot_node *blocker, bool *may_train)
{
    ot__arena *arena = c->graph->model->arena;
    const ot_value *value = item->value;
    const char *place;

    *may_train = false;
    if (!ot__dtype_is_float(value->dtype))
        return explain_role(
            item, ot__arena_printf(arena, "element type %s", ot_dtype_name(value->dtype)));
    if (status == OT_PATH_NONE)
        return explain_role(item, "does not reach the loss");
    place = constant_by_place(c, item);
    if (place)
        return explain_role(item, place);
    if (status == OT_PATH_STOPPED)
        return explain_role(item, blocker ? blocked_by(c->graph, value, blocker)
                                          : "reaches the loss through no differentiable input");
    if (is_idle_scalar(selection, item))
        return explain_role(item, "a scalar without dimensions");
    if (item->held)
        return explain_role(item, item->held);
    *may_train = true;
    if (status == OT_PATH_UNSUPPORTED)
        return explain_role(item,
                            ot__arena_printf(arena, "reaches the loss through %s without gradient",
                                             OT_LABEL(blocker)));
    return explain_role(item, "reaches the loss");
}

// What the user's patterns make of an item whose reason is set. reaches: the loss, by a gradient.
static ot_status apply_patterns(const ot__candidates *c, ot__candidate *item,
                                const ot__selection *selection, bool may_train, bool reaches)
{
    ot__arena *arena = c->graph->model->arena;
    const ot_artifacts_options *options = selection->options;
    const char *trained = ot__patterns_match(&selection->trainable, item->value);
    const char *frozen = ot__patterns_match(&selection->frozen, item->value);

    item->role = OT_ROLE_CONSTANT;
    item->could_train = may_train;
    if (trained && options->names_of_module && !reaches)
        return OT_OK; // a framework's optimizer has such parameters, and leaves them alone
    if (trained && ot__pattern_is_name(trained)) { // must reach the loss, which building checks
        item->role = OT_ROLE_TRAINABLE;
        return may_train ? OT_OK : explain_role(item, "trainable by name");
    }
    // Of a module's buffers only those that would train need to be told not to.
    if (frozen && (may_train || !options->names_of_module)) {
        item->role = OT_ROLE_FROZEN;
        return explain_role(item, ot__pattern_is_name(frozen)
                                      ? "frozen by name"
                                      : ot__arena_printf(arena, "frozen by pattern '%s'", frozen));
    }
    if (options->trainable && !trained)
        return may_train ? explain_role(item, "not among the trainable names") : OT_OK;
    if (may_train)
        item->role = OT_ROLE_TRAINABLE;
    else if (item->held && item->reason == item->held)
        item->role = OT_ROLE_FROZEN;
    return OT_OK;
}

static ot_status classify_one(const ot__candidates *c, ot__candidate *item,
                              const ot__selection *selection, ot__path_status status,
                              const ot_node *blocker)
{
    bool may_train;

    OT_TRY(judge(c, item, selection, status, blocker, &may_train));
    item->reaches_loss = status != OT_PATH_NONE;
    item->is_blocked = may_train && status == OT_PATH_UNSUPPORTED;
    return apply_patterns(c, item, selection, may_train,
                          status == OT_PATH_OK || status == OT_PATH_UNSUPPORTED);
}

ot_status ot__candidate_judge_structure(const ot__candidates *c, ot__candidate *item,
                                        const ot__selection *selection)
{
    ot__arena *arena = c->graph->model->arena;
    const ot_value *value = item->value;
    const bool reaches = item->role == OT_ROLE_TRAINABLE || item->is_blocked;
    bool may_train = reaches;
    const char *other = NULL;

    if (!ot__dtype_is_float(value->dtype))
        other = ot__arena_printf(arena, "element type %s", ot_dtype_name(value->dtype));
    else
        other = constant_by_place(c, item);
    if (!other && may_train && is_idle_scalar(selection, item))
        other = "a scalar without dimensions";
    if (!other && may_train)
        other = item->held;
    if (other)
        item->reason = other;
    may_train = may_train && !other;
    OT_TRY(apply_patterns(c, item, selection, may_train, reaches));
    item->is_blocked = item->is_blocked && item->role == OT_ROLE_TRAINABLE;
    return OT_OK;
}

// A pattern all of whose matches turn out to be constants promises what does not happen.
static ot_status check_effect(const ot__candidates *c, const ot__patterns *trainable)
{
    const ot__pattern_matches *matches;

    OT_TRY(ot__patterns_matches(trainable, c, &matches));
    for (int p = 0; p < trainable->n; p++) {
        const ot__candidate *first = matches[p].first;

        if (first && !matches[p].any_parameter)
            return ot__error(OT_ERR_INVALID,
                             "trainable '%s' matches nothing that can train: '%s': %s",
                             trainable->items[p], first->value->name, first->reason);
    }
    return OT_OK;
}

// `trained` is the model as it is to train: what has a gradient there decides.
static ot_status classify_all(ot__candidates *c, ot_model *trained, const char *loss,
                              const ot__selection *selection, ot_value **values,
                              ot__path_status *status, ot_node **blocker)
{
    ot_graph *graph = trained->graph;

    for (int i = 0; i < c->n; i++)
        values[i] = ot__graph_find(graph, c->items[i].value->name);
    OT_TRY(ot__autodiff_paths(graph, ot__graph_find(graph, loss), values, c->n, ot__edge_trains,
                              status, blocker));
    for (int i = 0; i < c->n; i++)
        OT_TRY(classify_one(c, &c->items[i], selection, status[i], blocker[i]));
    return selection->options->names_of_module ? ot__candidates_check_module(c, selection)
                                               : check_effect(c, &selection->trainable);
}

// The model itself where training rewrites nothing, else a copy; *copy: for the caller to destroy.
static ot_status has_training_form(ot_model *model, ot_model **copy, ot_model **out)
{
    *out = model;
    if (!ot__pass_has_training_form(model))
        return OT_OK;
    OT_TRY(ot__model_clone(model, copy));
    *out = *copy;
    return ot__pass_train(*copy);
}

static ot_status classify_candidate(ot__candidates *c, ot_value *loss,
                                    const ot__selection *selection)
{
    const ot_artifacts_options *options = selection->options;
    ot__arena *arena = c->graph->model->arena;
    const size_t n = (size_t)c->n + 1;
    ot_value **values = ot__arena_alloc(arena, n * sizeof *values);
    ot__path_status *status = ot__arena_alloc(arena, n * sizeof *status);
    ot_node **blocker = ot__arena_alloc(arena, n * sizeof *blocker);
    ot_model *copy = NULL, *trained;
    ot_status st;

    OT_TRY(ot__made(values && status && blocker));
    OT_TRY(check_overlap(selection));
    if (!options->train_buffers)
        OT_TRY(ot__candidates_hold(c));
    if (options->names_of_module == 0)
        OT_TRY(
            check_patterns(c, "trainable", &selection->trainable, options->input_gradients != 0));
    if (options->names_of_module == 0 && options->ignore_unknown_frozen == 0)
        OT_TRY(check_patterns(c, "frozen", &selection->frozen, false));
    OT_TRY(ot__candidates_find_places(c));
    st = has_training_form(c->graph->model, &copy, &trained);
    OT_THEN(st, classify_all(c, trained, loss->name, selection, values, status, blocker));
    ot_model_destroy(copy);
    return st;
}

ot_status ot__candidates_classify(ot__candidates *c, ot_value *loss,
                                  const ot_artifacts_options *options)
{
    ot__selection selection;
    ot_status st = ot__selection_init(&selection, options);

    OT_THEN(st, classify_candidate(c, loss, &selection));
    ot__selection_deinit(&selection);
    return st;
}
