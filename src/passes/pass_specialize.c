// SPDX-License-Identifier: Apache-2.0
// One set of input shapes: every extent becomes a number, shape arithmetic becomes constants.
#include "passes/branch.h"

typedef struct specializing {
    ot_model *model;
    ot__map
        first; // symbol of axis 0 -> the first input that has it, whose axis 0 is a number by then
} specializing;

// Inputs have as many rows as each other. That other axes have one name says little: some exporters
// call every open axis the same.
static ot_status bind_rows(specializing *s, ot_value *input, int64_t n_rows)
{
    const char *symbol = ot__dim_name(s->model, input->shape.dim[0]);
    const ot_value *first = symbol ? ot__map_get(&s->first, symbol) : NULL;

    if (first && first->shape.dim[0] != n_rows)
        return ot__error(OT_ERR_INVALID,
                         "input '%s': axis 0 ('%s') has size %" PRId64 ", but %" PRId64
                         " in input '%s'",
                         input->name, symbol, n_rows, first->shape.dim[0], first->name);
    if (!symbol || first)
        return OT_OK;
    return ot__made(ot__map_put(&s->first, symbol, input));
}

static ot_status check_number(const ot_value *input, int axis, int64_t extent)
{
    const int64_t declared = input->shape.dim[axis];

    if (!ot__dim_is_number(declared) || declared == extent)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "input '%s': axis %d has size %" PRId64 ", expected %" PRId64,
                     input->name, axis, extent, declared);
}

static ot_status specialize_input(specializing *s, ot_value *input, const ot_shape *shape)
{
    if (input->kind != OT_VALUE_TENSOR)
        return OT_OK;
    if (input->has_shape && input->shape.ndim != shape->ndim)
        return ot__error(OT_ERR_INVALID, "input '%s' has shape %s, expected %s", input->name,
                         OT_SHAPE_TEXT(shape), OT_DIMS_TEXT(s->model, &input->shape));
    for (int k = 0; input->has_shape && k < shape->ndim; k++)
        OT_TRY(check_number(input, k, shape->dim[k]));
    if (input->has_shape && shape->ndim > 0)
        OT_TRY(bind_rows(s, input, shape->dim[0]));
    ot__value_set(input, input->dtype, shape);
    return OT_OK;
}

static ot_status set_inputs(specializing *s, const ot_shape *shapes, int n_shapes)
{
    const ot_graph *graph = s->model->graph;

    if (n_shapes != graph->n_inputs)
        return ot__error(OT_ERR_INVALID, "%d input shapes for %d inputs", n_shapes,
                         graph->n_inputs);
    for (int i = 0; i < n_shapes; i++)
        OT_TRY(specialize_input(s, graph->inputs[i], &shapes[i]));
    return OT_OK;
}

// What was inferred or declared for any shape is weaker than what follows from this one, and its
// symbols would hide numbers. Declared numbers stay: operators whose shape depends on values, or is
// lost like that of a pool's input, have nothing else.
static void forget_symbols(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n]->n_outputs; i++) {
            ot_value *y = graph->nodes[n]->outputs[i];

            if (!y)
                continue;
            y->n_known = 0;
            y->known = NULL;
            for (int k = 0; y->has_shape && k < y->shape.ndim; k++)
                if (!ot__dim_is_number(y->shape.dim[k]))
                    y->shape.dim[k] = OT_DIM_UNKNOWN;
        }
    }
}

static ot_status decide_again(ot_model *model, const ot__answers *answers, int *n_taken,
                              const char **question)
{
    OT_TRY(ot__pass_fold(model, 0));
    return ot__decide(model, answers, n_taken, question);
}

// What is composed of others, and gradients that waited, are written out where all sizes are
// numbers, and may ask in their turn.
static ot_status decide_all(ot_model *model, const ot__answers *answers, const char **question)
{
    int n_taken = 0;
    bool has_changed = false;

    OT_TRY(ot__decide(model, answers, &n_taken, question));
    if (*question == NULL)
        OT_TRY(ot__pass_compose(model, &has_changed));
    if (has_changed)
        OT_TRY(decide_again(model, answers, &n_taken, question));
    has_changed = false;
    if (*question == NULL && answers->differentiate != NULL)
        OT_TRY(answers->differentiate(model, &has_changed));
    if (!has_changed)
        return OT_OK;
    OT_TRY(ot__pass_compose(model, &has_changed));
    return decide_again(model, answers, &n_taken, question);
}

ot_status ot__pass_specialize_by(ot_model *model, const ot_shape *input_shapes, int n_inputs,
                                 const ot__answers *answers, const char **question)
{
    specializing s = {.model = model};
    ot_status st = set_inputs(&s, input_shapes, n_inputs);

    *question = NULL;
    ot__map_deinit(&s.first);
    OT_TRY(st);
    OT_TRY(ot__pass_prune(model)); // eval models have more than is run
    forget_symbols(model->graph);
    OT_TRY(ot__pass_fold_branches(model)); // infers on its way
    OT_TRY(decide_all(model, answers, question));
    if (*question != NULL)
        return OT_OK;
    OT_TRY(ot__pass_prune(model));
    return ot__pass_finished(model, "specialize");
}

ot_status ot__pass_specialize(ot_model *model, const ot_shape *input_shapes, int n_inputs)
{
    const char *question;

    OT_TRY(ot__pass_specialize_by(model, input_shapes, n_inputs, &(ot__answers){0}, &question));
    return question == NULL ? OT_OK : ot__error(OT_ERR_UNSUPPORTED, "%s", question);
}
