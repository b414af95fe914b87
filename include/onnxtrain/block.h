// SPDX-License-Identifier: Apache-2.0
// Building graphs in C: nodes, constants, inputs and losses after a model, or a model from nothing.
//
//     ot_block_create(model, NULL, &b);
//     ot_value *y = ot_block_output(b, 0), *t = ot_block_input_like(b, y, "target");
//     ot_value *loss = ot_block_reduce_mean(b, ot_block_abs(b, ot_block_sub(b, y, t)), OT_SCALAR);
//     status = ot_block_finish_training(b, &loss, 1, NULL, &artifacts);
//
// A builder keeps its first error; after it every call does nothing and returns NULL, so a loss
// reads like its formula. Finishing returns the error, with the block where it happened. Values
// are owned by the builder's model and may be used until the builder is finished or destroyed;
// each builder takes its own only. What the blocks make is called "onnx::<token>::<n>", with n
// counted per builder: the same calls in the same order make the same bytes (C leaves the order
// open in which the arguments of one call are made).
#ifndef ONNXTRAIN_BLOCK_H
#define ONNXTRAIN_BLOCK_H

#include "onnxtrain/artifacts.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ot_block ot_block;
typedef struct ot_value ot_value; ///< an edge of the graph; op.h has its type and shape

typedef struct ot_block_options {
    size_t size;   ///< sizeof(ot_block_options)
    int64_t opset; ///< of an empty model; 0: the newest known
    uint64_t seed; ///< of values drawn by ot_block_linear(), RandomNormal and RandomUniform
} ot_block_options;
#define OT_BLOCK_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(ot_block_options), 0, 0                                                             \
    }

// ---- builders ----

/**
 * A builder over a copy of `model`, whose initializers are what may train.
 *
 * @param options NULL for defaults
 * @param out     the caller destroys it
 * @return errors of the model; unknown operators are errors only where a gradient must pass them
 */
OT_API ot_status ot_block_create(const ot_model *model, const ot_block_options *options,
                                 ot_block **out);

/** A builder over an empty model, which imports opset 1 of com.microsoft too. */
OT_API ot_status ot_block_create_empty(const ot_block_options *options, ot_block **out);

OT_API void ot_block_destroy(ot_block *block); ///< NULL is fine

/** The first error so far, which is then also this thread's message; OT_ERR_STATE once finished. */
OT_API ot_status ot_block_status(const ot_block *block);

/**
 * The model with `outputs` as its outputs, in this order; n_outputs 0 keeps those it has. The
 * builder is spent, whether this succeeds or not: only ot_block_destroy() is left.
 *
 * @param out the caller destroys it
 * @return the first error of the builder, with the block it happened in
 */
OT_API ot_status ot_block_finish(ot_block *block, ot_value *const *outputs, int n_outputs,
                                 ot_model **out);

/**
 * Training, eval and optimizer model and checkpoint, as ot_artifacts_generate() makes them, of the
 * graph with `outputs`, the first of which is the loss; n_outputs 0 keeps those of the model.
 *
 * @param options NULL for defaults; its losses must be none; its lists of names are taken together
 * with those of ot_block_requires_grad()
 * @return as ot_block_finish() and ot_artifacts_generate()
 */
OT_API ot_status ot_block_finish_training(ot_block *block, ot_value *const *outputs, int n_outputs,
                                          const ot_artifacts_options *options, ot_artifacts **out);

/**
 * Let the parameters that `name`, which may be a pattern with * and ?, matches train
 * (OT_PARAMETER_TRAINABLE) or stay as they are (OT_PARAMETER_FROZEN); the last word on a name
 * counts. Once a name is made trainable, only such names train; without, all that can.
 */
OT_API void ot_block_requires_grad(ot_block *block, const char *name, int trainable);

// ---- values ----

/** By name; an unknown one is OT_ERR_NOT_FOUND. */
OT_API ot_value *ot_block_value(ot_block *block, const char *name);
/** Output number `index` of the model, as it was when the builder was made. */
OT_API ot_value *ot_block_output(ot_block *block, int index);
OT_API const char *ot_block_value_name(const ot_value *value); ///< owned by the model; NULL of NULL

/**
 * A new input of the graph.
 *
 * @param name  NULL: one is made
 * @param shape NULL: not even the rank is known; a dim size below 0 may differ from step to step
 */
OT_API ot_value *ot_block_input(ot_block *block, const char *name, ot_dtype dtype,
                                const ot_shape *shape);
/** The same with type and shape of `like`, symbolic dim sizes included. */
OT_API ot_value *ot_block_input_like(ot_block *block, const ot_value *like, const char *name);
/** A sequence of tensors, as optimizer models take them. */
OT_API ot_value *ot_block_input_sequence(ot_block *block, const char *name, ot_dtype dtype);
/** A parameter, with a copy of `tensor`; name NULL: one is made. */
OT_API ot_value *ot_block_initializer(ot_block *block, const char *name, const ot_tensor *tensor);
/** A constant of shape [1], which never trains. */
OT_API ot_value *ot_block_constant(ot_block *block, double number, ot_dtype dtype);
/** A constant with a copy of `tensor`, which never trains. */
OT_API ot_value *ot_block_constant_tensor(ot_block *block, const ot_tensor *tensor);

// ---- any node ----

/**
 * Append a node of any operator that docs/operators.md lists.
 *
 * @param op      as in ONNX's textual syntax: "Gemm", "com.microsoft.Gelu"
 * @param attrs   likewise, without brackets: "transB = 1, alpha = 0.5"; NULL: none
 * @param inputs  NULL entries are omitted inputs
 * @param outputs receives n_outputs new values; after an error NULLs
 */
OT_API void ot_block_node(ot_block *block, const char *op, const char *attrs,
                          ot_value *const *inputs, int n_inputs, ot_value **outputs, int n_outputs);
/** The same of a node with one output. */
OT_API ot_value *ot_block_op(ot_block *block, const char *op, const char *attrs,
                             ot_value *const *inputs, int n_inputs);

// ---- blocks: one node each, unless stated ----

OT_API ot_value *ot_block_add(ot_block *block, ot_value *a, ot_value *b); ///< these broadcast
OT_API ot_value *ot_block_sub(ot_block *block, ot_value *a, ot_value *b);
OT_API ot_value *ot_block_mul(ot_block *block, ot_value *a, ot_value *b);
OT_API ot_value *ot_block_div(ot_block *block, ot_value *a, ot_value *b);
OT_API ot_value *ot_block_pow(ot_block *block, ot_value *x, double exponent);
OT_API ot_value *ot_block_sigmoid(ot_block *block, ot_value *x);
OT_API ot_value *ot_block_log(ot_block *block, ot_value *x);
OT_API ot_value *ot_block_neg(ot_block *block, ot_value *x);
OT_API ot_value *ot_block_abs(ot_block *block, ot_value *x);
OT_API ot_value *ot_block_cast(ot_block *block, ot_value *x, ot_dtype to);

typedef enum ot_keepdims {
    OT_SCALAR,   ///< the result has no axes
    OT_KEEPDIMS, ///< the result has the axes of the argument, of size 1
} ot_keepdims;
/** Over all axes. */
OT_API ot_value *ot_block_reduce_mean(ot_block *block, ot_value *x, ot_keepdims keepdims);
OT_API ot_value *ot_block_reduce_sum(ot_block *block, ot_value *x, ot_keepdims keepdims);

/** min(max(x, low), high); -INFINITY and INFINITY: no bound. */
OT_API ot_value *ot_block_clip(ot_block *block, ot_value *x, double low, double high);
/** com.microsoft ReduceAllL2: the norm of all elements of all values; passes on no gradient. */
OT_API ot_value *ot_block_reduce_all_l2(ot_block *block, ot_value *const *values, int n_values);
/** For models that another runtime runs: this one has no kernel for it. */
OT_API ot_value *ot_block_sequence_construct(ot_block *block, ot_value *const *values,
                                             int n_values);
/** No node: the first value, once all are known to be this builder's. */
OT_API ot_value *ot_block_pass_through(ot_block *block, ot_value *const *values, int n_values);

typedef struct ot_linear_options {
    size_t size; ///< sizeof(ot_linear_options)
    int has_bias;
    float alpha, beta; ///< y = alpha * x * W + beta * B
} ot_linear_options;
#define OT_LINEAR_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(ot_linear_options), 1, 1.0f, 1.0f                                                   \
    }
/** Gemm with new parameters in x's type: W [in, out] and B [out], drawn from a standard normal
 * distribution. `options` NULL: defaults. */
OT_API ot_value *ot_block_linear(ot_block *block, ot_value *x, int64_t in_features,
                                 int64_t out_features, const ot_linear_options *options);

/** ai.onnx.ml LabelEncoder of numbers. */
typedef struct ot_label_encoder_options {
    size_t size;                    ///< sizeof(ot_label_encoder_options)
    const ot_tensor *keys, *values; ///< f32 or i64, as many of either
    float default_float;            ///< of what is no key: 0 ...
    int64_t default_int64;          ///< ... or -1, by the type of `values`
} ot_label_encoder_options;
#define OT_LABEL_ENCODER_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(ot_label_encoder_options), NULL, NULL, 0.0f, -1                                     \
    }
OT_API ot_value *ot_block_label_encoder(ot_block *block, ot_value *x,
                                        const ot_label_encoder_options *options);

// ---- losses ----

/**
 * The loss that `options` describes, of `x` (NULL: `options->input`). Its target, or labels, is the
 * value of that name, or a new input.
 */
OT_API ot_value *ot_block_loss(ot_block *block, ot_value *x, const ot_loss_options *options);

// ---- optimizers: a model has one, with the inputs of ot_block_optimizer() ----

/** Scales all gradients together, in place, to a norm of `max_norm` at most. */
OT_API ot_value *ot_block_clip_grad_norm(ot_block *block, ot_value *gradients, double max_norm);
/** A flag: updated. Of `options`, which name AdamWOptimizer, the hyper-parameters count. */
OT_API ot_value *ot_block_adamw(ot_block *block, ot_value *lr, ot_value *step, ot_value *params,
                                ot_value *gradients, ot_value *moments1, ot_value *moments2,
                                const ot_optimizer_options *options);
/** A flag: updated. */
OT_API ot_value *ot_block_sgd(ot_block *block, ot_value *lr, ot_value *params, ot_value *gradients);
/** Inputs, clipping and node of the optimizer that `options` describes, over parameters of element
 * type `dtype`; the flag, which is the only output of an optimizer model. */
OT_API ot_value *ot_block_optimizer(ot_block *block, const ot_optimizer_options *options,
                                    ot_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
