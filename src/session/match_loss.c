// SPDX-License-Identifier: Apache-2.0
// How the loss of a batch is made of those of its slices: whether it is their mean by rows, their
// sum, or their mean by the weights of the labels that they have. Read off the training model: what
// has an axis of as many as the batch has rows is one thing a row, until a node brings it together.
#include <string.h>

#include "session/session_internal.h"

// What a value is to the batch.
typedef enum value_kind {
    OF_NOTHING, // it does not depend on the batch
    OF_EACH,    // it has rows
    A_COUNT,    // of rows, but for a factor
    A_MEAN,     // over rows
    A_SUM,
    A_WEIGHED, // mean over labels
    MEANS_AND_SUMS,
    ELSE,
} value_kind;

typedef struct batch_value {
    value_kind kind;
    const ot_node *node; // A_WEIGHED: the loss over labels
} batch_value;

typedef struct loss_finder {
    const ot_session *session;
    const ot_model *model;
    ot__map values; // by name; absent: OF_NOTHING
    ot__arena *arena;
    int64_t n_rows; // what symbols of the batch's rows stand for
} loss_finder;

// ---- rows ----

static int64_t number_of_symbol(void *context, const char *name)
{
    enum { OTHERS = 7 };
    const loss_finder *f = context;
    const ot__compiled_model *program = &f->session->training;

    for (int i = 0; i < program->n_user_inputs; i++) {
        const ot_value *input = ot__user_input(program, i);
        const char *rows = input->has_shape && input->shape.ndim > 0
                               ? ot__dim_name(f->model, input->shape.dim[0])
                               : NULL;

        if (rows != NULL && strcmp(rows, name) == 0)
            return f->n_rows;
    }
    return OTHERS;
}

// An extent in batches of that many rows.
static int64_t extent_for(loss_finder *f, int64_t dim, int64_t n_rows)
{
    f->n_rows = n_rows;
    return ot__dim_evaluate(f->model, dim, number_of_symbol, f);
}

enum { FEW = 2520, MANY = 2 * FEW }; // which small numbers divide

static bool is_of_rows(loss_finder *f, int64_t dim, bool otherwise)
{
    int64_t few, many;

    if (ot__dim_is_number(dim))
        return false;
    few = extent_for(f, dim, FEW);
    many = extent_for(f, dim, MANY);
    return few == OT_DIM_UNKNOWN || many == OT_DIM_UNKNOWN ? otherwise : few != many;
}

// An axis of which nothing is known has them where it is the first.
static bool value_has_rows(loss_finder *f, const ot_value *value)
{
    for (int k = 0; value->has_shape && k < value->shape.ndim; k++)
        if (is_of_rows(f, value->shape.dim[k], k == 0))
            return true;
    return !value->has_shape;
}

static bool counts_rows(loss_finder *f, const ot_value *value)
{
    return value->n_known == 1 && is_of_rows(f, value->known[0], false) &&
           extent_for(f, value->known[0], MANY) == 2 * extent_for(f, value->known[0], FEW);
}

// ---- kinds ----

static batch_value batch_value_of(const loss_finder *f, const ot_node *node, int input)
{
    const ot_value *value = input < node->n_inputs ? node->inputs[input] : NULL;
    const batch_value *found = value != NULL ? ot__map_get(&f->values, value->name) : NULL;

    return found != NULL ? *found : (batch_value){OF_NOTHING, NULL};
}

static bool is_one_of(const ot_node *node, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(node->op_type, names[i]) == 0)
            return true;
    return false;
}

static const ot_value *loss_input(const ot_node *node, int input)
{
    return input < node->n_inputs ? node->inputs[input] : NULL;
}

enum { LABELS = 1, WEIGHT, IGNORE }; // inputs of losses over labels

static bool ignores_labels(const ot_node *node)
{
    return ot_attr_given(node, "ignore_index") || loss_input(node, IGNORE) != NULL;
}

static batch_value loss_over_labels(const ot_node *node)
{
    const char *reduction = ot_attr_string(node, "reduction");

    if (strcmp(reduction, "sum") == 0)
        return (batch_value){A_SUM, NULL};
    if (strcmp(reduction, "mean") != 0)
        return (batch_value){ELSE, NULL};
    return loss_input(node, WEIGHT) != NULL || ignores_labels(node) ? (batch_value){A_WEIGHED, node}
                                                                    : (batch_value){A_MEAN, NULL};
}

// Both by the weights of the same labels.
static bool weigh_alike(const ot_node *a, const ot_node *b)
{
    return loss_input(a, LABELS) == loss_input(b, LABELS) &&
           loss_input(a, WEIGHT) == loss_input(b, WEIGHT) &&
           loss_input(a, IGNORE) == loss_input(b, IGNORE) &&
           ignores_labels(a) == ignores_labels(b) &&
           (!ot_attr_given(a, "ignore_index") ||
            ot_attr_int(a, "ignore_index") == ot_attr_int(b, "ignore_index"));
}

// Of a sum of two. What does not depend on the batch counts once in a mean.
static batch_value added(batch_value a, batch_value b)
{
    if (a.kind == OF_NOTHING && b.kind == A_MEAN)
        return b;
    if (b.kind == OF_NOTHING && a.kind == A_MEAN)
        return a;
    if ((a.kind == A_MEAN && b.kind == A_SUM) || (a.kind == A_SUM && b.kind == A_MEAN))
        return (batch_value){MEANS_AND_SUMS, NULL};
    if (a.kind == MEANS_AND_SUMS || b.kind == MEANS_AND_SUMS)
        return (batch_value){a.kind == ELSE || b.kind == ELSE ? ELSE : MEANS_AND_SUMS, NULL};
    if (a.kind != b.kind || (a.kind == A_WEIGHED && !weigh_alike(a.node, b.node)))
        return (batch_value){ELSE, NULL};
    return a;
}

static batch_value sum_of_inputs(const loss_finder *f, const ot_node *node)
{
    batch_value sum = batch_value_of(f, node, 0);

    for (int i = 1; i < node->n_inputs; i++)
        sum = added(sum, batch_value_of(f, node, i));
    return sum;
}

static batch_value loss_quotient(batch_value a, batch_value b)
{
    if (b.kind == OF_NOTHING)
        return a;
    return (batch_value){a.kind == A_SUM && b.kind == A_COUNT ? A_MEAN : ELSE, NULL};
}

static batch_value loss_product(batch_value a, batch_value b)
{
    if (a.kind == OF_NOTHING)
        return b;
    return b.kind == OF_NOTHING ? a : (batch_value){ELSE, NULL};
}

// Of a value without rows, of inputs that depend on the batch.
static batch_value brought_together(const loss_finder *f, const ot_node *node)
{
    static const char *const losses[] = {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss",
                                         "SoftmaxCrossEntropyLossInternal"};
    static const char *const same[] = {"Identity", "Cast",      "Neg",       "Reshape",
                                       "Squeeze",  "Unsqueeze", "ReduceSum", "ReduceMean"};
    static const char *const sums[] = {"Add", "Sub", "Sum"};
    const batch_value first = batch_value_of(f, node, 0);

    if (is_one_of(node, losses, OT_COUNT(losses)))
        return loss_over_labels(node);
    if (first.kind == OF_EACH && strcmp(node->op_type, "ReduceMean") == 0)
        return (batch_value){A_MEAN, NULL};
    if (first.kind == OF_EACH && strcmp(node->op_type, "ReduceSum") == 0)
        return (batch_value){A_SUM, NULL};
    for (int i = 0; i < node->n_inputs; i++)
        if (batch_value_of(f, node, i).kind == OF_EACH)
            return (batch_value){ELSE, NULL};
    if (is_one_of(node, same, OT_COUNT(same)))
        return first;
    if (is_one_of(node, sums, OT_COUNT(sums)))
        return sum_of_inputs(f, node);
    if (strcmp(node->op_type, "Mul") == 0)
        return loss_product(first, batch_value_of(f, node, 1));
    if (strcmp(node->op_type, "Div") == 0)
        return loss_quotient(first, batch_value_of(f, node, 1));
    return (batch_value){ELSE, NULL};
}

static bool depends_on_batch(const loss_finder *f, const ot_node *node)
{
    ot__subgraphs inside = {.node = node};

    for (int i = 0; i < node->n_inputs; i++)
        if (batch_value_of(f, node, i).kind != OF_NOTHING)
            return true;
    return ot__next_subgraph(&inside); // which may read anything
}

static ot_status keep_kind(loss_finder *f, const ot_value *value, batch_value found)
{
    batch_value *kept = ot__arena_alloc(f->arena, sizeof *kept);

    OT_TRY(ot__made(kept != NULL));
    *kept = found;
    return ot__made(ot__map_put(&f->values, value->name, kept));
}

static ot_status put_outputs(loss_finder *f, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *value = node->outputs[i];
        batch_value found = {ELSE, NULL};

        if (value == NULL)
            continue;
        if (counts_rows(f, value))
            found.kind = A_COUNT;
        else if (value_has_rows(f, value))
            found.kind = OF_EACH;
        else if (value->n_known > 0)
            continue; // an extent of something else
        else if (i == 0)
            found = brought_together(f, node);
        OT_TRY(keep_kind(f, value, found));
    }
    return OT_OK;
}

static ot_status sort_values(loss_finder *f)
{
    const ot__compiled_model *program = &f->session->training;
    const ot_graph *graph = f->model->graph;

    for (int i = 0; i < program->n_user_inputs; i++)
        OT_TRY(keep_kind(f, ot__user_input(program, i), (batch_value){OF_EACH, NULL}));
    for (int i = 0; i < graph->n_nodes; i++)
        if (depends_on_batch(f, graph->nodes[i]))
            OT_TRY(put_outputs(f, graph->nodes[i]));
    return OT_OK;
}

// ---- weights of labels ----

// What a value is but for its form.
static const ot_value *without_views(const ot_value *value)
{
    static const char *const views[] = {"Identity", "Cast",    "Reshape",
                                        "Squeeze",  "Flatten", "Unsqueeze"};

    while (value != NULL && value->producer != NULL &&
           is_one_of(value->producer, views, OT_COUNT(views)))
        value = value->producer->inputs[0];
    return value;
}

static int user_input_at(const ot__compiled_model *program, const ot_value *value)
{
    for (int i = 0; i < program->n_user_inputs; i++)
        if (ot__user_input(program, i) == value)
            return i;
    return -1;
}

// The elements of a constant or of a parameter that stays as it is; NULL: it is neither.
static const ot_tensor *lasting_tensor(const ot__compiled_model *program, const ot_value *value)
{
    if (value == NULL || value->constant != NULL)
        return value != NULL ? value->constant : NULL;
    for (int i = 0; i < program->n_inputs; i++)
        if (program->model->graph->inputs[i] == value &&
            program->inputs[i].role == OT_ROLE_PARAMETER &&
            !program->inputs[i].parameter->trainable)
            return program->inputs[i].parameter->value;
    return NULL;
}

static void find_label_weights(const ot__compiled_model *program, const ot_node *node,
                               ot__batch_loss *out)
{
    const ot_value *weight = loss_input(node, WEIGHT), *ignored = loss_input(node, IGNORE);
    const ot_tensor *ignored_label = lasting_tensor(program, without_views(ignored));

    out->labels = user_input_at(program, without_views(loss_input(node, LABELS)));
    out->weights = lasting_tensor(program, without_views(weight));
    out->has_ignored_label = ignores_labels(node);
    if (ignored != NULL && ignored_label != NULL)
        out->ignored_label = ot__tensor_get_i64(ignored_label, 0);
    else if (out->has_ignored_label)
        out->ignored_label = ot_attr_int(node, "ignore_index");
    if (out->labels < 0 || (weight != NULL && out->weights == NULL) ||
        (ignored != NULL && ignored_label == NULL))
        out->kind = OT_BATCH_LOSS_UNKNOWN;
}

double ot__batch_loss_weight(const ot__batch_loss *loss, const ot_tensor *labels)
{
    const int64_t n_classes = loss->weights != NULL ? ot_tensor_count(loss->weights) : 0;
    double sum = 0;

    for (int64_t i = 0; i < ot_tensor_count(labels); i++) {
        const int64_t label = ot__tensor_get_i64(labels, i);

        if (loss->has_ignored_label && label == loss->ignored_label)
            continue;
        if (loss->weights == NULL)
            sum += 1;
        else if (label >= 0 && label < n_classes) // else the step refuses it
            sum += ot__tensor_get_f64(loss->weights, label);
    }
    return sum;
}

// ---- the loss ----

static void describe_loss(const loss_finder *f, const ot_value *loss, ot__batch_loss *out)
{
    static const ot__batch_loss_kind kinds[] = {
        [OF_NOTHING] = OT_BATCH_LOSS_UNKNOWN,
        [OF_EACH] = OT_BATCH_LOSS_SUM,
        [A_COUNT] = OT_BATCH_LOSS_UNKNOWN,
        [A_MEAN] = OT_BATCH_LOSS_MEAN,
        [A_SUM] = OT_BATCH_LOSS_SUM,
        [A_WEIGHED] = OT_BATCH_LOSS_WEIGHED,
        [MEANS_AND_SUMS] = OT_BATCH_LOSS_MIXED,
        [ELSE] = OT_BATCH_LOSS_UNKNOWN,
    };
    const batch_value *found = ot__map_get(&f->values, loss->name);

    out->kind = found == NULL || !loss->has_shape ? OT_BATCH_LOSS_UNKNOWN : kinds[found->kind];
    out->is_reduced = found != NULL && found->kind != OF_EACH;
    if (out->kind == OT_BATCH_LOSS_WEIGHED)
        find_label_weights(&f->session->training, found->node, out);
}

ot_status ot__session_find_loss(const ot_session *session, ot__batch_loss *out)
{
    const ot__compiled_model *program = &session->training;
    loss_finder f = {.session = session, .model = program->model, .arena = ot__arena_create()};
    ot_status st = ot__made(f.arena != NULL);

    *out = (ot__batch_loss){.kind = OT_BATCH_LOSS_UNKNOWN, .labels = -1};
    OT_THEN(st, sort_values(&f));
    if (st == OT_OK && program->n_user_outputs > 0)
        describe_loss(&f, program->model->graph->outputs[program->user_outputs[0]], out);
    ot__map_deinit(&f.values);
    ot__arena_destroy(f.arena);
    return st;
}
