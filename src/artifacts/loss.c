// SPDX-License-Identifier: Apache-2.0
// The losses, as nodes behind a forward graph.
#include <string.h>

#include "artifacts/loss.h"

// ---- targets ----

// The input called `name`; made with this type and shape unless the graph has such a value already.
static ot_value *target_input(ot_block *block, const char *name, ot_dtype dtype,
                              const ot_shape *shape)
{
    ot_value *target = ot__graph_find(block->build.graph, name);

    if (block->build.status != OT_OK || target)
        return target;
    target = ot__block_input(block, name);
    if (target)
        ot__value_set(target, dtype, shape);
    return target;
}

const char *ot__loss_target(const ot_loss_options *term)
{
    if (term->target)
        return term->target;
    return term->loss == OT_LOSS_CROSS_ENTROPY ? "labels" : "target";
}

static ot_value *target_like(ot_block *block, const ot_loss_options *options, const ot_value *x)
{
    return target_input(block, ot__loss_target(options), x->dtype, x->has_shape ? &x->shape : NULL);
}

static int class_axis(const ot_loss_options *options, const ot_value *scores)
{
    return options->class_axis < 0 ? scores->shape.ndim - 1 : 1;
}

// Scores [N, C, d...] or [N, d..., C]: labels [N, d...].
static ot_value *labels_of(ot_block *block, const ot_loss_options *options, const ot_value *scores)
{
    ot_shape shape = scores->shape;

    if (scores->has_shape) {
        for (int k = class_axis(options, scores); k + 1 < shape.ndim; k++)
            shape.dim[k] = shape.dim[k + 1];
        shape.ndim--;
    }
    return target_input(block, ot__loss_target(options), OT_I64, scores->has_shape ? &shape : NULL);
}

// ---- reductions ----

static ot_value *reduce_loss(ot_block *block, ot_reduction reduction, ot_value *x)
{
    if (reduction == OT_REDUCTION_NONE)
        return x;
    if (reduction == OT_REDUCTION_MEAN)
        return ot__block_reduce(block, "ReduceMean", "reducemean_output", x, OT_SCALAR);
    return ot__block_reduce(block, "ReduceSum", "reducesum_output", x, OT_SCALAR);
}

// ---- the losses ----

static ot_value *mse(ot_block *block, const ot_loss_options *options, ot_value *x)
{
    ot_value *t = target_like(block, options, x);
    ot_value *d = ot__block_binary(block, "Sub", "sub_output", x, t);
    ot_value *two = ot__block_constant(block, "pow_exponent", 2.0, x->dtype);

    return reduce_loss(block, options->reduction,
                       ot__block_binary(block, "Pow", "pow_output", d, two));
}

static ot_value *l1(ot_block *block, const ot_loss_options *options, ot_value *x)
{
    ot_value *t = target_like(block, options, x);
    ot_value *d = ot__block_binary(block, "Sub", "sub_output", x, t);

    return reduce_loss(block, options->reduction, ot__block_unary(block, "Abs", "abs_output", d));
}

// l = w * ((1 - t) * x + (1 + (p - 1) * t) * softplus(-x)), p the weight of positives: finite for
// every x, and differentiable at 0, which max(x, 0) + log(1 + exp(-|x|)) is not.
static ot_value *bce(ot_block *block, const ot_loss_options *options, ot_value *x)
{
    char *positive_name = ot__block_name(block, "bceloss.pos_weight");
    char *weight_name = ot__block_name(block, "bceloss.weight");
    ot_value *one = ot__block_constant(block, "bceloss.sub_ones", 1.0, x->dtype);
    ot_value *t = target_like(block, options, x);
    ot_value *soft = ot__block_unary(block, "Softplus", "softplus_output",
                                     ot__block_unary(block, "Neg", "neg_output", x));
    ot_value *rest = ot__block_binary(block, "Sub", "sub_output", one, t);
    ot_value *loss;

    rest = ot__block_binary(block, "Mul", "mul_output", rest, x);
    if (options->pos_weight) {
        ot_value *p = ot__block_tensor(block, positive_name, options->pos_weight, x->dtype);

        p = ot__block_binary(block, "Sub", "sub_output", p, one);
        p = ot__block_binary(block, "Mul", "mul_output", p, t);
        p = ot__block_binary(block, "Add", "add_output", p, one);
        soft = ot__block_binary(block, "Mul", "mul_output", p, soft);
    }
    loss = ot__block_binary(block, "Add", "add_output", rest, soft);
    if (options->weight) {
        ot_value *w = ot__block_tensor(block, weight_name, options->weight, x->dtype);

        loss = ot__block_binary(block, "Mul", "mul_output", w, loss);
    }
    return reduce_loss(block, options->reduction, loss);
}

static ot_status check_scores(const ot_graph *graph, const ot_loss_options *options,
                              const ot_value *scores)
{
    const ot_tensor *weight = options->weight;
    const bool is_last = options->class_axis == -1;

    if (!is_last && options->class_axis != 1)
        return ot__error(OT_ERR_INVALID,
                         "cross entropy: class axis %d, expected 1, or -1: the last",
                         options->class_axis);
    if (is_last && !scores->has_shape)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "cross entropy: scores '%s' have no known number of axes, which classes "
                         "on the last axis need",
                         scores->name);
    if (scores->has_shape && scores->shape.ndim < 2)
        return ot__error(OT_ERR_INVALID,
                         "cross entropy: scores '%s' have shape %s, expected [N, %s]", scores->name,
                         OT_DIMS_TEXT(graph->model, &scores->shape), is_last ? "..., C" : "C, ...");
    if (!weight)
        return OT_OK;
    if (ot_tensor_shape(weight)->ndim != 1 ||
        (scores->has_shape && ot__dim_is_number(scores->shape.dim[class_axis(options, scores)]) &&
         ot_tensor_count(weight) != scores->shape.dim[class_axis(options, scores)]))
        return ot__error(OT_ERR_INVALID,
                         "cross entropy: class weights have shape %s, expected one per class of "
                         "scores '%s'",
                         OT_SHAPE_TEXT(ot_tensor_shape(weight)), scores->name);
    return OT_OK;
}

// Scores [N, d..., C] are rows [N*d..., C], and labels [N, d...] one of each: nothing is moved.
static ot_value *rows_of_scores(ot_block *block, ot_value *scores)
{
    ot_node *node = ot__block_maker(block, "", "Flatten", "flatten_output", &scores, 1);

    ot__build_int(&block->build, node, "axis", scores->shape.ndim - 1);
    return ot__block_settle(block, node);
}

static ot_value *rows_of_labels(ot_block *block, ot_value *labels)
{
    return ot__block_binary(block, "Reshape", "reshape_output", labels,
                            ot__block_constant(block, "reshape_shape", -1, OT_I64));
}

// Of scores [N, C, ...].
static ot_value *softmax_loss(ot_block *block, const ot_loss_options *options, ot_value *scores,
                              ot_value *labels)
{
    char *weight_name = ot__block_name(block, "celoss.weight");
    ot_value *loss = ot__block_value(block, "loss"), *log_prob = ot__block_value(block, "log_prob");
    ot_value *inputs[3] = {scores, labels}, *outputs[] = {loss, log_prob};
    int n_inputs = 2;
    ot_node *node;

    if (block->build.status != OT_OK)
        return NULL;
    if (options->weight)
        inputs[n_inputs++] = ot__block_tensor(block, weight_name, options->weight, scores->dtype);
    node = ot__block_node(block, "", "SoftmaxCrossEntropyLoss", inputs, n_inputs, outputs, 2);
    if (!node)
        return NULL;
    ot__build_string(&block->build, node, "reduction", ot__reduction_name(options->reduction));
    if (options->has_ignore_index)
        ot__build_int(&block->build, node, "ignore_index", options->ignore_index);
    return ot__block_settle(block, node);
}

static ot_value *cross_entropy(ot_block *block, const ot_loss_options *options, ot_value *scores)
{
    ot_value *labels, *rows, *loss;

    ot__build_note(&block->build, check_scores(block->build.graph, options, scores));
    if (block->build.status != OT_OK)
        return NULL;
    labels = labels_of(block, options, scores);
    if (class_axis(options, scores) == 1)
        return softmax_loss(block, options, scores, labels);
    rows = rows_of_labels(block, labels);
    loss = softmax_loss(block, options, rows_of_scores(block, scores), rows);
    if (options->reduction != OT_REDUCTION_NONE)
        return loss;
    return ot__block_binary(block, "Reshape", "reshape_output", loss,
                            ot__block_unary(block, "Shape", "shape_output", labels));
}

static ot_value *pass_through(ot_block *block, const ot_loss_options *options, ot_value *x)
{
    (void)block;
    (void)options;
    return x;
}

static ot_value *(*const loss_functions[])(ot_block *, const ot_loss_options *, ot_value *) = {
    [OT_LOSS_NONE] = pass_through,
    [OT_LOSS_CROSS_ENTROPY] = cross_entropy,
    [OT_LOSS_MSE] = mse,
    [OT_LOSS_L1] = l1,
    [OT_LOSS_BCE_WITH_LOGITS] = bce,
};

// ---- terms and their sum ----

static ot_status check_loss_options(const ot_loss_options *options)
{
    if ((unsigned)options->loss > OT_LOSS_CUSTOM)
        return ot__error(OT_ERR_INVALID,
                         "unknown loss %d (known: none, cross-entropy, mse, l1, bce-with-logits, "
                         "custom)",
                         (int)options->loss);
    if ((unsigned)options->reduction > OT_REDUCTION_NONE)
        return ot__error(OT_ERR_INVALID, "unknown reduction %d (known: mean, sum, none)",
                         (int)options->reduction);
    if (options->loss == OT_LOSS_CUSTOM && !options->custom)
        return ot__error(OT_ERR_INVALID, "custom loss without a model");
    OT_TRY(OT_OPTIONAL(options->custom, "custom"));
    OT_TRY(OT_OPTIONAL(options->weight, "weight"));
    return OT_OPTIONAL(options->pos_weight, "pos_weight");
}

ot_value *ot__loss_input(const ot_graph *graph, const ot_loss_options *term)
{
    return term->input            ? ot__graph_find(graph, term->input)
           : graph->n_outputs > 0 ? graph->outputs[0]
                                  : NULL;
}

static ot_status find_loss_input(const ot_graph *graph, const ot_loss_options *options,
                                 ot_value **x)
{
    char op[160];

    *x = ot__loss_input(graph, options);
    if (!*x && options->input)
        return ot__graph_no_value(graph, options->input,
                                  "loss input '%s' is not a value of the model", options->input);
    if (!*x)
        return ot__error(OT_ERR_INVALID, "the model has no output to take a loss of");
    if ((*x)->kind == OT_VALUE_UNTYPED && (*x)->producer && ot__op_is_foreign((*x)->producer))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "operator %s is not supported: it makes '%s', which the loss takes",
                         ot__op_type_text((*x)->producer, op, sizeof op), (*x)->name);
    if ((*x)->kind != OT_VALUE_TENSOR || !ot__dtype_is_float((*x)->dtype))
        return ot__error(
            OT_ERR_INVALID, "loss input '%s' is %s, expected a tensor of a float type", (*x)->name,
            (*x)->kind != OT_VALUE_TENSOR ? "not a tensor" : ot_dtype_name((*x)->dtype));
    return OT_OK;
}

static ot_status attach_term(ot_block *block, const ot_loss_options *options, ot_value **term)
{
    ot_value *x;

    OT_TRY(check_loss_options(options));
    if (options->loss == OT_LOSS_CUSTOM) {
        OT_TRY(ot__loss_custom(block, options, term));
    } else {
        OT_TRY(find_loss_input(block->build.graph, options, &x));
        *term = loss_functions[options->loss](block, options, x);
        OT_TRY(block->build.status);
    }
    if (options->factor != 1.0) {
        ot_value *factor =
            ot__block_constant(block, "initializer", options->factor, (*term)->dtype);

        *term = ot__block_binary(block, "Mul", "mul_output", *term, factor);
    }
    return block->build.status;
}

// Broadcasting would multiply elements: [N] and [N, 1] sum to [N, N].
static ot_status check_same_shape(const ot_model *model, const ot_value *a, const ot_value *b)
{
    if (!a->has_shape || !b->has_shape || ot__value_has_one_element(a) ||
        ot__value_has_one_element(b) || ot__shape_may_equal(&a->shape, &b->shape))
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "loss terms have shapes %s and %s: only equal ones, or scalars, are summed",
                     OT_DIMS_TEXT(model, &a->shape), OT_DIMS_TEXT(model, &b->shape));
}

ot_status ot__loss_attach(ot_graph *graph, const ot_loss_options *losses, int n_losses,
                          ot_value **loss)
{
    static const ot_loss_options none = {.size = sizeof none, .loss = OT_LOSS_NONE, .factor = 1.0};
    ot_block block = {.build = {.graph = graph}};

    *loss = NULL;
    if (n_losses == 0)
        return attach_term(&block, &none, loss);
    for (int i = 0; i < n_losses; i++) {
        ot_value *term;

        OT_TRY(attach_term(&block, &losses[i], &term));
        if (*loss)
            OT_TRY(check_same_shape(graph->model, *loss, term));
        *loss = *loss ? ot__block_binary(&block, "Add", "add_output", *loss, term) : term;
        OT_TRY(block.build.status);
    }
    return ot__pass_finished(graph->model, "loss");
}

// ---- public ----

ot_value *ot_block_loss(ot_block *block, ot_value *x, const ot_loss_options *options)
{
    static const char *const scopes[] = {
        [OT_LOSS_NONE] = "loss",
        [OT_LOSS_CROSS_ENTROPY] = "cross entropy",
        [OT_LOSS_MSE] = "mse",
        [OT_LOSS_L1] = "l1",
        [OT_LOSS_BCE_WITH_LOGITS] = "bce with logits",
        [OT_LOSS_CUSTOM] = "custom loss",
    };
    ot_loss_options term;
    ot_value *loss = NULL;

    if (!ot__block_enter(block, "loss") || (x && !ot__block_takes(block, x)))
        return NULL;
    ot__build_note(&block->build,
                   options ? OT_OPTIONS_READ(ot_loss_options, OT_LOSS_OPTIONS_INIT, options, &term)
                           : ot__error(OT_ERR_INVALID, "its options are NULL"));
    if (block->build.status == OT_OK)
        ot__build_note(&block->build, check_loss_options(&term));
    if (block->build.status != OT_OK)
        return NULL;
    block->scope = scopes[term.loss];
    if (x)
        term.input = x->name;
    ot__build_note(&block->build, attach_term(block, &term, &loss));
    return block->build.status == OT_OK ? loss : NULL;
}
