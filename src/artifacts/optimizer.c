// The optimizer model: sequences of parameters, gradients and moments into one node.
#include "artifacts/block.h"

enum { IR_VERSION_OLDEST = 7 };

// What is not a plain ONNX Runtime artifact says so.
#define METADATA_LOADABLE "onnxtrain.onnxruntime"

// ---- inputs ----

static ot_value *add_input(ot__block *block, const char *name, ot_dtype dtype)
{
    ot_value *value = ot__graph_value(block->graph, name);

    if (!value || !ot__graph_add_input(block->graph, value)) {
        ot__block_fail(block, OT_ERR_NO_MEMORY);
        return NULL;
    }
    ot__value_set(value, dtype, &OT_SHAPE(1));
    return value;
}

static ot_value *add_sequence(ot__block *block, const char *name, ot_dtype dtype)
{
    ot_value *value = add_input(block, name, dtype);

    if (value) {
        value->kind = OT_VALUE_SEQUENCE;
        value->has_shape = false;
    }
    return value;
}

// ---- nodes ----

static void set_float(ot__block *block, ot_node *node, const char *name, double value)
{
    if (node && !ot__node_set_float(node, name, (float)value))
        ot__block_fail(block, OT_ERR_NO_MEMORY);
}

static void set_int(ot__block *block, ot_node *node, const char *name, int64_t value)
{
    if (node && !ot__node_set_int(node, name, value))
        ot__block_fail(block, OT_ERR_NO_MEMORY);
}

static ot_value *clip(ot__block *block, double max_norm, ot_value *gradients, ot_dtype dtype)
{
    ot_value *clipped = ot__block_value(block, "clip_grad_norm_output");
    ot_node *node =
        ot__block_node(block, "com.microsoft", "InplaceClipGradNorm", &gradients, 1, &clipped, 1);

    set_float(block, node, "max_norm", max_norm);
    if (block->status != OT_OK)
        return NULL;
    clipped->kind = OT_VALUE_SEQUENCE;
    clipped->dtype = dtype;
    return clipped;
}

typedef struct optimizer_ends {
    ot_value *lr, *step, *params, *gradients, *moment1, *moment2;
} optimizer_ends;

static ot_value *adamw(ot__block *block, const ot_optimizer_options *o, const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr,        ends->step,    ends->params,
                          ends->gradients, ends->moment1, ends->moment2};
    ot_value *flag = ot__block_value(block, "adamw.updated_flag");
    ot_node *node = ot__block_node(block, "com.microsoft", "AdamWOptimizer", inputs,
                                   (int)OT_COUNT(inputs), &flag, 1);

    set_float(block, node, "alpha", o->beta1);
    set_float(block, node, "beta", o->beta2);
    set_float(block, node, "epsilon", o->epsilon);
    set_float(block, node, "weight_decay", o->weight_decay);
    set_int(block, node, "correct_bias", o->correct_bias);
    set_int(block, node, "adam_mode", o->adam_mode);
    return flag;
}

static ot_value *sgd(ot__block *block, const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients};
    ot_value *flag = ot__block_value(block, "update_completed");

    ot__block_node(block, "com.microsoft", "SGDOptimizerV2", inputs, (int)OT_COUNT(inputs), &flag,
                   1);
    return flag;
}

static ot_value *sgd_momentum(ot__block *block, const ot_optimizer_options *o,
                              const optimizer_ends *ends)
{
    ot_value *inputs[] = {ends->lr, ends->params, ends->gradients, ends->moment1};
    ot_value *flag = ot__block_value(block, "update_completed");
    ot_node *node = ot__block_node(block, "ai.onnxtrain", "SGDMomentumOptimizer", inputs,
                                   (int)OT_COUNT(inputs), &flag, 1);

    set_float(block, node, "momentum", o->momentum);
    set_float(block, node, "weight_decay", o->weight_decay);
    set_int(block, node, "nesterov", o->nesterov);
    return flag;
}

static ot_value *add_optimizer(ot__block *block, const ot_optimizer_options *o, ot_dtype dtype)
{
    const bool is_adamw = o->optimizer == OT_OPTIMIZER_ADAMW;
    optimizer_ends ends;
    ot_value *flag;

    ends.lr = add_input(block, "learning_rate", OT_F32);
    ends.step = add_input(block, "step", OT_I64);
    ends.params = add_sequence(block, "params", dtype);
    ends.gradients = add_sequence(block, "gradients", dtype);
    ends.moment1 = add_sequence(block, "first_order_moments", dtype);
    ends.moment2 = is_adamw ? add_sequence(block, "second_order_moments", dtype) : NULL;
    if (o->max_norm > 0.0)
        ends.gradients = clip(block, o->max_norm, ends.gradients, dtype);
    flag = is_adamw                           ? adamw(block, o, &ends)
           : o->optimizer == OT_OPTIMIZER_SGD ? sgd(block, &ends)
                                              : sgd_momentum(block, o, &ends);
    // Undeclared for SGD: ONNX Runtime's own schema says scalar, its files [1].
    if (block->status == OT_OK)
        ot__value_set(flag, OT_BOOL, is_adamw ? &OT_SHAPE(1) : NULL);
    return flag;
}

// ---- model ----

static ot_status check_options(const ot_optimizer_options *o)
{
    const struct {
        const char *name;
        double value, low, high; // low <= value < high
    } ranges[] = {
        {"beta1", o->beta1, 0.0, 1.0},        {"beta2", o->beta2, 0.0, 1.0},
        {"epsilon", o->epsilon, 0.0, 1e30},   {"weight_decay", o->weight_decay, 0.0, 1e30},
        {"momentum", o->momentum, 0.0, 1e30}, {"max_norm", o->max_norm, 0.0, 1e30}};

    if (o->size != sizeof *o)
        return ot__error(OT_ERR_INVALID, "optimizer options of %zu bytes, expected %zu", o->size,
                         sizeof *o);
    if ((unsigned)o->optimizer > OT_OPTIMIZER_SGD_MOMENTUM)
        return ot__error(OT_ERR_INVALID, "optimizer %d is none", (int)o->optimizer);
    for (size_t i = 0; i < OT_COUNT(ranges); i++)
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value < ranges[i].high))
            return ot__error(OT_ERR_INVALID, "%s is %g, expected at least %g and below %g",
                             ranges[i].name, ranges[i].value, ranges[i].low, ranges[i].high);
    if (o->adam_mode != 0 && o->adam_mode != 1)
        return ot__error(OT_ERR_INVALID, "adam_mode is %d, expected 0 or 1", o->adam_mode);
    if (o->correct_bias != 0 && o->correct_bias != 1)
        return ot__error(OT_ERR_INVALID, "correct_bias is %d, expected 0 or 1", o->correct_bias);
    if (o->optimizer == OT_OPTIMIZER_ADAMW && o->adam_mode == 0 && o->correct_bias == 0)
        return ot__error(OT_ERR_INVALID, "adam_mode 0 is defined with bias correction only");
    return OT_OK;
}

// The IR version that came with an opset: the oldest that may state it.
static int64_t ir_version_of(int64_t opset)
{
    static const struct {
        int64_t opset, ir_version;
    } rows[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};

    for (size_t i = 0; i < OT_COUNT(rows); i++)
        if (opset >= rows[i].opset)
            return rows[i].ir_version;
    return IR_VERSION_OLDEST;
}

static ot_status describe(ot_model *model, const ot_optimizer_options *o, int64_t opset)
{
    static const char *not_loadable[] = {
        METADATA_LOADABLE, "not loadable: ai.onnxtrain.SGDMomentumOptimizer is no operator of it"};

    model->ir_version = ir_version_of(opset);
    model->producer_name = "orttraining";
    model->graph->name = "graph";
    OT_TRY(ot__model_set_opset(model, "com.microsoft", 1));
    if (o->optimizer == OT_OPTIMIZER_SGD_MOMENTUM) {
        OT_TRY(ot__model_set_opset(model, "ai.onnxtrain", 1));
        model->metadata = not_loadable;
        model->n_metadata = 1;
    }
    return ot__model_set_opset(model, "", opset);
}

ot_status ot__optimizer_model(const ot_optimizer_options *options, ot_dtype dtype, int64_t opset,
                              ot_model **out)
{
    ot_model *model;
    ot__block block = {0};
    ot_value *flag;
    ot_status st;

    *out = NULL;
    OT_TRY(check_options(options));
    if (options->optimizer == OT_OPTIMIZER_NONE)
        return OT_OK;
    OT_TRY(ot__model_create(&model));
    block.graph = model->graph;
    st = describe(model, options, opset);
    if (st == OT_OK) {
        flag = add_optimizer(&block, options, dtype);
        st = block.status;
        if (st == OT_OK && !ot__graph_add_output(model->graph, flag))
            st = OT_ERR_NO_MEMORY;
    }
    if (st == OT_OK)
        *out = model;
    else
        ot_model_destroy(model);
    return st;
}
