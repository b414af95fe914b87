// SPDX-License-Identifier: Apache-2.0
// What a trainer is told: the description of a model's inputs and outputs, and its options.
#ifndef ONNXTRAIN_TRAINER_OPTIONS_H
#define ONNXTRAIN_TRAINER_OPTIONS_H

#include "onnxtrain/schedule.h"
#include "onnxtrain/session.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- model description ----

typedef struct ot_dim_description {
    const char *symbol; ///< the same symbol is the same size within a step; NULL: `size`
    int64_t size;
} ot_dim_description;

typedef struct ot_value_description {
    const char *name; ///< of an input or output of the graph
    const ot_dim_description *dims;
    int n_dims;
    int is_loss; ///< 1: of outputs, the loss
} ot_value_description;

/** The order is the one in which inputs are given and outputs are returned. Inputs are all that
 * will be fed; outputs may be some of the graph's, one of them the loss. */
typedef struct ot_model_description {
    size_t size; ///< sizeof(ot_model_description)
    const ot_value_description *inputs, *outputs;
    int n_inputs, n_outputs;
} ot_model_description;
#define OT_MODEL_DESCRIPTION_INIT                                                                  \
    {                                                                                              \
        sizeof(ot_model_description), NULL, NULL, 0, 0                                             \
    }

// ---- options ----

/** Where casts move under mixed precision; the strategies may be combined. */
enum {
    OT_PROPAGATE_CASTS_NONE = 0,
    OT_PROPAGATE_CASTS_INSERT_AND_REDUCE = 1,
    OT_PROPAGATE_CASTS_FLOOD_FILL = 2,
    OT_PROPAGATE_CASTS_DEFAULT = -1,
};

/**
 * Options of a trainer. Members have the names that docs/options.md lists, without the section;
 * it also says what they do, which of them have no effect and which are refused unless they have
 * their default. All pointers are borrowed until the trainer has been made, but for `session`,
 * `loss_scaler` and what the functions are called with.
 */
typedef struct ot_trainer_options {
    size_t size; ///< sizeof(ot_trainer_options)
    // batch
    int64_t gradient_accumulation_steps; ///< train steps per update (1)
    // device
    const char *device_id; ///< NULL, "cpu"
    int64_t device_mem_limit;
    // distributed
    /** 0, 1, 0. world_size above 1: a trainer that is given no communicator (session->parallel)
     * opens that of the job, kind "auto", and owns it. Ranks that are not 0 must be its. */
    int64_t world_rank, world_size, local_rank;
    int64_t data_parallel_size, horizontal_parallel_size;
    int64_t pipeline_parallel_size, num_pipeline_micro_batches;
    const char *pipeline_cut_info_string; ///< NULL: empty
    const char *sliced_schema;            ///< JSON: {"name": [sizes], ...}; NULL: {}
    const char *sliced_axes;              ///< JSON: {"name": axis, ...}; NULL: {}
    const char *const *sliced_tensor_names;
    int n_sliced_tensor_names;
    int allreduce_post_accumulation;
    int64_t zero_stage; ///< deepspeed_zero_optimization.stage: ot_parallel_options.zero
    int enable_adasum;
    // lr_scheduler
    /** Its initial_lr is the optimizer's learning rate. NULL: none */
    const ot_schedule *lr_schedule;
    ot_schedule_function lr_function; ///< instead of lr_schedule; NULL: none
    void *lr_context;                 ///< of lr_function
    // mixed_precision
    int mixed_precision; ///< enabled: f16 with a loss scale
    /** Shared, and changed, by all trainers that are given it; NULL: one of the trainer's own. */
    ot_loss_scaler *loss_scaler;
    // graph_transformer
    int attn_dropout_recompute, gelu_recompute, transformer_layer_recompute;
    int64_t number_recompute_layers;
    int propagate_casts_strategy; ///< OT_PROPAGATE_CASTS_*
    int64_t propagate_casts_level;
    const char *const *propagate_casts_allow;
    int n_propagate_casts_allow;
    // utils
    const char *const *frozen_weights; ///< names of initializers that are not trained
    int n_frozen_weights;
    int grad_norm_clip; ///< 1: clip by global norm within the optimizers that have max_norm_clip
    int memory_efficient_gradient;
    int run_symbolic_shape_infer;
    // debug
    int deterministic_compute; ///< as `reproducible`
    int check_model_export;
    /** Where graphs are written, as .onnx or .onnxtxt; NULL: nowhere. */
    const char *model_after_graph_transforms_path, *model_with_gradient_graph_path;
    const char *model_with_training_graph_path;
    const char *model_with_training_graph_after_optimization_path;
    // _internal_use
    int enable_internal_postprocess;
    int64_t onnx_opset_version;
    int enable_onnx_contrib_ops;
    // provider_options, session_options
    const char *provider_options; ///< JSON: {"provider": {"key": value, ...}, ...}; NULL: {}
    const ot_session_options
        *session; ///< what the members below leave at their default; NULL: none
    // onnxtrain: our own
    ot_precision precision;
    size_t memory_max;    ///< as ot_session_options.memory_max
    int64_t n_threads;    ///< 0: all processors
    int reproducible;     ///< 1: the same bits for any number of threads
    int skip_non_finite;  ///< 1: also in f32, an update whose gradients are not finite is skipped
    int64_t seed;         ///< of dropout and other random operators
    double average_decay; ///< of the moving average of the weights; 0: the optimizer's
} ot_trainer_options;
#define OT_TRAINER_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(ot_trainer_options), 1, NULL, 0, 0, 1, 0, 1, 1, 1, 1, NULL, NULL, NULL, NULL, 0, 0, \
            0, 0, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0, OT_PROPAGATE_CASTS_FLOOD_FILL, 1, NULL,   \
            0, NULL, 0, 1, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1, 14, 1, NULL, NULL,               \
            OT_PRECISION_F32, 0, 0, 0, 0, 0, 0.0                                                   \
    }

#ifdef __cplusplus
}
#endif
#endif
