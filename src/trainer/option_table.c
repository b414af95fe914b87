// SPDX-License-Identifier: Apache-2.0
// All options of a trainer, a row each: what they may be, where they stand and what they do.
// Reading, checking, writing and docs/options.md follow from it.
#include <math.h>
#include <string.h>

#include "trainer/options.h"

#define AT(member) offsetof(ot_trainer_options, member)
#define NO_MEMBER 0
#define INT_IN(least, most) .kind = OT_OPTION_INT, .low = (least), .high = (most)
#define INT_FROM(least) INT_IN(least, INFINITY)
#define HONOURED .effect = OT_EFFECT_HONOURED
#define WITHOUT .effect = OT_EFFECT_WITHOUT
#define REFUSED .effect = OT_EFFECT_REFUSED

static const char *const devices[] = {"cpu", NULL};
static const char *const precisions[] = {"f32", "bf16", "f16", NULL};
static const char *const cast_strategies[] = {"NONE", "INSERT_AND_REDUCE", "FLOOD_FILL", NULL};

const ot__option ot__options[] = {
    {"batch.gradient_accumulation_steps", INT_FROM(1), HONOURED, "1",
     .offset = AT(gradient_accumulation_steps), .help = "train steps per update"},

    {"device.id", OT_OPTION_TEXT, REFUSED, "\"cuda\"", .choices = devices, .offset = AT(device_id),
     .help = "where steps run: `cpu`, also where it is not given"},
    {"device.mem_limit", INT_FROM(0), WITHOUT, "0", .offset = AT(device_mem_limit),
     .help = "bytes for a CUDA device; the limit here is `onnxtrain.memory_max`"},

    {"distributed.world_rank", INT_FROM(0), HONOURED, "0", .offset = AT(world_rank),
     .help = "number of this process: as its launcher has it, or 0"},
    {"distributed.world_size", INT_FROM(1), HONOURED, "1", .offset = AT(world_size),
     .help = "how many processes train together; 1: as many as the session's communicator has"},
    {"distributed.local_rank", INT_FROM(0), HONOURED, "0", .offset = AT(local_rank),
     .help = "number of this process on its machine: as its launcher has it, or 0"},
    {"distributed.data_parallel_size", INT_FROM(1), HONOURED, "1", .offset = AT(data_parallel_size),
     .help = "replicas of the model; what is counted is what the other sizes leave"},
    {"distributed.horizontal_parallel_size", INT_FROM(1), REFUSED, "1",
     .offset = AT(horizontal_parallel_size), .help = "processes that share each layer"},
    {"distributed.pipeline_parallel.pipeline_parallel_size", INT_FROM(1), REFUSED, "1",
     .offset = AT(pipeline_parallel_size), .help = "stages of a pipeline"},
    {"distributed.pipeline_parallel.num_pipeline_micro_batches", INT_FROM(1), REFUSED, "1",
     .offset = AT(num_pipeline_micro_batches), .help = "parts of a batch in a pipeline"},
    {"distributed.pipeline_parallel.pipeline_cut_info_string", OT_OPTION_TEXT, WITHOUT, "\"\"",
     .offset = AT(pipeline_cut_info_string), .help = "where a pipeline is cut"},
    {"distributed.pipeline_parallel.sliced_schema", OT_OPTION_INTS_MAP, WITHOUT, "{}",
     .offset = AT(sliced_schema),
     .help = "shapes of a stage's micro-batches: lists of int by name"},
    {"distributed.pipeline_parallel.sliced_axes", OT_OPTION_INT_MAP, WITHOUT, "{}",
     .offset = AT(sliced_axes), .help = "axes that are cut into micro-batches: int by name"},
    {"distributed.pipeline_parallel.sliced_tensor_names", OT_OPTION_NAMES, WITHOUT, "[]",
     .offset = AT(sliced_tensor_names), .help = "tensors that are cut into micro-batches"},
    {"distributed.allreduce_post_accumulation", OT_OPTION_BOOL, HONOURED, "false",
     .offset = AT(allreduce_post_accumulation),
     .help = "gradients of replicas are summed once an update: must be true where `world_size` "
             "makes several"},
    {"distributed.deepspeed_zero_optimization.stage", INT_IN(0, 3), HONOURED, "0",
     .offset = AT(zero_stage),
     .help = "what is cut over the replicas: from 1 what the optimizer keeps, from 2 gradients, "
             "from 3 parameters"},
    {"distributed.enable_adasum", OT_OPTION_BOOL, WITHOUT, "false", .offset = AT(enable_adasum),
     .help = "how gradients of replicas are combined; refused for several without ZeRO"},

    {"lr_scheduler", OT_OPTION_LR, HONOURED, "null", .offset = AT(lr_schedule),
     .help = "learning rate over the updates, see below", .is_nullable = true},

    {"mixed_precision.enabled", OT_OPTION_BOOL, HONOURED, "false", .offset = AT(mixed_precision),
     .help = "compute in f16, with a loss scale"},
    {"mixed_precision.loss_scaler", OT_OPTION_SCALER, HONOURED, "null", .offset = AT(loss_scaler),
     .help = "the loss scale, see below; with `mixed_precision.enabled` alone",
     .is_nullable = true},

    {"graph_transformer.attn_dropout_recompute", OT_OPTION_BOOL, HONOURED, "false",
     .offset = AT(attn_dropout_recompute),
     .help = "make attention's dropout again in the backward pass from the saved mask"},
    {"graph_transformer.gelu_recompute", OT_OPTION_BOOL, HONOURED, "false",
     .offset = AT(gelu_recompute),
     .help = "make every Gelu before a MatMul again in the backward pass"},
    {"graph_transformer.transformer_layer_recompute", OT_OPTION_BOOL, HONOURED, "false",
     .offset = AT(transformer_layer_recompute),
     .help = "make layers of a transformer again in the backward pass"},
    {"graph_transformer.number_recompute_layers", INT_FROM(0), HONOURED, "0",
     .offset = AT(number_recompute_layers),
     .help = "how many layers, from the first; 0: all but the last"},
    {"graph_transformer.propagate_cast_ops_config.strategy", OT_OPTION_FLAGS, WITHOUT,
     "\"FLOOD_FILL\"", .choices = cast_strategies, .offset = AT(propagate_casts_strategy),
     .help = "how casts move under mixed precision", .is_nullable = true},
    {"graph_transformer.propagate_cast_ops_config.level", INT_FROM(-1), WITHOUT, "1",
     .offset = AT(propagate_casts_level),
     .help = "-1: off; 0: past the operators of `allow`; from 1: past a built-in list"},
    {"graph_transformer.propagate_cast_ops_config.allow", OT_OPTION_NAMES, WITHOUT, "[]",
     .offset = AT(propagate_casts_allow), .help = "operators that casts may pass"},

    {"utils.frozen_weights", OT_OPTION_NAMES, HONOURED, "[]", .offset = AT(frozen_weights),
     .help = "initializers that are not trained"},
    {"utils.grad_norm_clip", OT_OPTION_BOOL, HONOURED, "true", .offset = AT(grad_norm_clip),
     .help = "clip by global norm where the optimizer has `max_norm_clip`"},
    {"utils.memory_efficient_gradient", OT_OPTION_BOOL, WITHOUT, "false",
     .offset = AT(memory_efficient_gradient), .help = "which values gradients read: chosen here"},
    {"utils.run_symbolic_shape_infer", OT_OPTION_BOOL, WITHOUT, "false",
     .offset = AT(run_symbolic_shape_infer), .help = "infer symbolic shapes: always done"},

    {"debug.deterministic_compute", OT_OPTION_BOOL, HONOURED, "false",
     .offset = AT(deterministic_compute), .help = "as `onnxtrain.reproducible`"},
    {"debug.check_model_export", OT_OPTION_BOOL, WITHOUT, "false", .offset = AT(check_model_export),
     .help = "compare an exported model with its module; of modules, in Python"},
    {"debug.graph_save_paths.model_after_graph_transforms_path", OT_OPTION_TEXT, HONOURED, "\"\"",
     .offset = AT(model_after_graph_transforms_path),
     .help = "file for the forward graph, prepared, as evaluation runs it"},
    {"debug.graph_save_paths.model_with_gradient_graph_path", OT_OPTION_TEXT, HONOURED, "\"\"",
     .offset = AT(model_with_gradient_graph_path),
     .help = "file for the training graph: forward, backward, accumulation of gradients"},
    {"debug.graph_save_paths.model_with_training_graph_path", OT_OPTION_TEXT, HONOURED, "\"\"",
     .offset = AT(model_with_training_graph_path),
     .help = "file for the training graph with the optimizer's nodes behind it"},
    {"debug.graph_save_paths.model_with_training_graph_after_optimization_path", OT_OPTION_TEXT,
     HONOURED, "\"\"", .offset = AT(model_with_training_graph_after_optimization_path),
     .help = "file for the training graph as the first train step runs it; the training graph "
             "until then"},

    {"_internal_use.enable_internal_postprocess", OT_OPTION_BOOL, WITHOUT, "true",
     .offset = AT(enable_internal_postprocess),
     .help = "rewrite what old exporters wrote: models are prepared anyway"},
    {"_internal_use.extra_postprocess", OT_OPTION_NONE, WITHOUT, "null", .offset = NO_MEMBER,
     .help = "a function that changes the model first; in Python", .is_nullable = true},
    {"_internal_use.onnx_opset_version", INT_IN(12, 14), WITHOUT, "14",
     .offset = AT(onnx_opset_version), .help = "opset that modules are exported with, in Python"},
    {"_internal_use.enable_onnx_contrib_ops", OT_OPTION_BOOL, WITHOUT, "true",
     .offset = AT(enable_onnx_contrib_ops),
     .help = "operators of ONNX Runtime in exported modules, in Python"},

    {"provider_options", OT_OPTION_MAP, WITHOUT, "{}", .offset = AT(provider_options),
     .help = "options of execution providers, by the provider's name"},
    {"session_options", OT_OPTION_SESSION, HONOURED, "null", .offset = AT(session),
     .help = "an object in Python and C; here the options below", .is_nullable = true},

    {"onnxtrain.precision", OT_OPTION_CHOICE, HONOURED, "\"f32\"", .choices = precisions,
     .offset = AT(precision), .help = "element type that steps compute in"},
    {"onnxtrain.memory_max", OT_OPTION_BYTES, HONOURED, "0", .offset = AT(memory_max),
     .help = "bytes for parameters, gradients, moments and activations, or `\"unlimited\"`; 0: "
             "three quarters of what there is"},
    {"onnxtrain.threads", INT_IN(0, 1024), HONOURED, "0", .offset = AT(n_threads),
     .help = "0: all processors"},
    {"onnxtrain.reproducible", OT_OPTION_BOOL, HONOURED, "false", .offset = AT(reproducible),
     .help = "the same bits for any number of threads"},
    {"onnxtrain.skip_non_finite", OT_OPTION_BOOL, HONOURED, "false", .offset = AT(skip_non_finite),
     .help = "skip updates whose gradients are not finite, also in f32"},
    {"onnxtrain.seed", INT_FROM(0), HONOURED, "0", .offset = AT(seed),
     .help = "of dropout and other random operators"},
    {"onnxtrain.average_decay", OT_OPTION_DECAY, HONOURED, "0.0", .offset = AT(average_decay),
     .help = "of the moving average of the weights; 0: that of the optimizer"},
    {0},
};

const ot__option *ot__option_find(const char *path)
{
    for (const ot__option *o = ot__options; o->path; o++)
        if (strcmp(o->path, path) == 0)
            return o;
    return NULL;
}

const char *ot__option_effect_text(ot__option_effect effect)
{
    static const char *const texts[] = {"honoured", "accepted without effect",
                                        "refused unless default"};

    return texts[effect];
}

bool ot__option_is_ours(const ot__option *option)
{
    return ot__starts_with(option->path, "onnxtrain.");
}

_Static_assert(AT(n_frozen_weights) == AT(frozen_weights) + sizeof(char **) &&
                   AT(n_sliced_tensor_names) == AT(sliced_tensor_names) + sizeof(char **) &&
                   AT(n_propagate_casts_allow) == AT(propagate_casts_allow) + sizeof(char **),
               "the count of a list stands behind it");

size_t ot__option_count_offset(const ot__option *option)
{
    return option->offset + sizeof(char **);
}

static bool is_text_default(const ot__option *option, const char *text)
{
    if (!text || !*text)
        return true;
    for (const char *const *choice = option->choices; choice && *choice; choice++)
        if (strcmp(text, *choice) == 0)
            return true;
    return false;
}

bool ot__option_is_default(const ot__option *option, const ot_trainer_options *options)
{
    static const ot_trainer_options init = OT_TRAINER_OPTIONS_INIT;
    const void *at = (const char *)options + option->offset;
    const void *usual = (const char *)&init + option->offset;

    switch (option->kind) {
    case OT_OPTION_BOOL:
        return (*(const int *)at != 0) == (*(const int *)usual != 0);
    case OT_OPTION_CHOICE:
    case OT_OPTION_FLAGS:
        return *(const int *)at == *(const int *)usual;
    case OT_OPTION_INT:
        return *(const int64_t *)at == *(const int64_t *)usual;
    case OT_OPTION_BYTES:
        return *(const size_t *)at == *(const size_t *)usual;
    case OT_OPTION_DECAY:
        return *(const double *)at == *(const double *)usual;
    case OT_OPTION_TEXT:
        return is_text_default(option, *(const char *const *)at);
    case OT_OPTION_NAMES:
        return *(const int *)((const char *)options + ot__option_count_offset(option)) == 0;
    case OT_OPTION_MAP:
    case OT_OPTION_INT_MAP:
    case OT_OPTION_INTS_MAP:
        return !*(const char *const *)at || strcmp(*(const char *const *)at, "{}") == 0;
    case OT_OPTION_LR:
        return !options->lr_schedule && !options->lr_function;
    case OT_OPTION_SCALER:
        return !options->loss_scaler;
    case OT_OPTION_SESSION:
        return !options->session;
    case OT_OPTION_NONE:
        break;
    }
    return true;
}
