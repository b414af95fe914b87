// SPDX-License-Identifier: Apache-2.0
// A batch size that an exporter fixed is opened, when the model is the same for every other.
#include <string.h>

#include "artifacts/open_batch.h"

// What changes nothing but inputs needs no trial where every output still has the batch as a whole.
static bool is_plain_extent(const ot_graph *graph, const ot__opened *opened)
{
    if (opened->n_changes > 0)
        return false;
    for (int i = 0; i < graph->n_outputs; i++)
        if (opened->outputs[i].axis < 0)
            return false;
    return true;
}

// Twice the batch, by shapes alone.
static ot_status check_shapes(const ot_model *model, const ot__opened *opened)
{
    const ot_graph *graph = model->graph;
    ot_shape *shapes = ot__alloc_zero((size_t)graph->n_inputs + 1, sizeof *shapes);
    ot_model *copy = NULL;
    ot_status st = shapes ? ot__model_clone(model, &copy) : OT_ERR_NO_MEMORY;

    for (int i = 0; st == OT_OK && i < graph->n_inputs; i++)
        ot__open_shape_of(graph->inputs[i], &opened->inputs[i], 2 * opened->batch, &shapes[i]);
    OT_THEN(st, ot__pass_specialize(copy, shapes, graph->n_inputs));
    ot_model_destroy(copy);
    ot__free(shapes);
    return st;
}

static ot_status say_obstacle(ot__buf *line, int64_t batch, const char *obstacle)
{
    ot__buf_printf(line,
                   "the batch size stays %" PRId64 ", which the exporter fixed: %s; export with "
                   "dynamic_axes or dynamic_shapes for another",
                   batch, obstacle);
    return ot__buf_status(line);
}

static ot_status say_opened(ot__buf *line, const ot__opened *opened)
{
    ot__buf_printf(line, "the batch size %" PRId64 ", which the exporter fixed, is open",
                   opened->batch);
    if (opened->n_changes > 0)
        ot__buf_printf(line, ": %d %s held it", opened->n_changes,
                       opened->n_changes == 1 ? "input of a node" : "inputs of nodes");
    return ot__buf_status(line);
}

// One attempt on a copy of `fixed`. *out NULL: `line` says why not.
static ot_status attempt(const ot_model *fixed, ot__choices *choices, ot_model **out, ot__buf *line)
{
    ot_model *copy = NULL;
    ot__opened opened = {0};
    ot_status st = ot__model_clone(fixed, &copy);

    *out = NULL;
    OT_THEN(st, ot__pass_open_batch(copy, choices, &opened));
    if (st == OT_OK && opened.obstacle) {
        st = say_obstacle(line, opened.batch, opened.obstacle);
    } else if (st == OT_OK) {
        st = check_shapes(copy, &opened);
        if (!is_plain_extent(copy->graph, &opened))
            OT_THEN(st, ot__open_try(fixed, copy, &opened));
        if (st == OT_OK) {
            ot__pass_mark_prepared(copy);
            *out = copy;
            return say_opened(line, &opened);
        }
        if (st != OT_ERR_NO_MEMORY)
            st = say_obstacle(line, opened.batch, ot_error_message());
    }
    ot_model_destroy(copy);
    return st;
}

// What stands in the way is what stood there first, when no other choice leads past it.
static ot_status open_prepared(const ot_model *fixed, ot_model **out, ot__buf *line)
{
    enum { MAX_ATTEMPTS = 64 };
    ot__choices *choices = ot__alloc_zero(1, sizeof *choices);
    ot_status st = choices ? attempt(fixed, choices, out, line) : OT_ERR_NO_MEMORY;

    for (int i = 1; st == OT_OK && !*out && i < MAX_ATTEMPTS && ot__choices_next(choices); i++) {
        ot__buf other = {0};

        st = attempt(fixed, choices, out, &other);
        if (st == OT_OK && *out) {
            ot__buf_deinit(line);
            *line = other;
        } else {
            ot__buf_deinit(&other);
        }
    }
    ot__free(choices);
    return st;
}

ot_status ot__open_batch(const ot_model *model, ot_model **out, ot__buf *line)
{
    ot_model *fixed = NULL;
    ot_status st = OT_OK;

    *out = NULL;
    if (ot__pass_fixed_batch(model) == 0)
        return OT_OK;
    st = ot__model_clone(model, &fixed);
    OT_THEN(st, ot__pass_prepare(fixed));
    if (st == OT_OK)
        st = open_prepared(fixed, out, line);
    else if (st == OT_ERR_UNSUPPORTED || st == OT_ERR_INVALID)
        st = OT_OK; // said where the model is taken apart
    ot_model_destroy(fixed);
    if (st != OT_OK) {
        ot_model_destroy(*out);
        *out = NULL;
    }
    return st;
}
