// SPDX-License-Identifier: Apache-2.0
// Interface of `artifacts`: loss graphs, optimizer graphs, the four files.
#ifndef OT_ARTIFACTS_ARTIFACTS_H
#define OT_ARTIFACTS_ARTIFACTS_H

#include "autodiff/autodiff.h"
#include "ckpt/ckpt.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "onnxtrain/artifacts.h"
#include "passes/passes.h"

// A term of the loss that artifacts were made with, as their training model says.
typedef struct ot__loss_term {
    ot_loss loss; // OT_LOSS_CUSTOM: a model of the user's
    double factor;
    const char *input;    // value it takes; NULL: those that its own model names
    const char **targets; // inputs it compares with; those of all terms lie one behind the other
    int n_targets;
    ot_reduction reduction;
    int class_axis; // cross entropy: 1 or -1
    bool has_ignored_label;
    int64_t ignored_label;
    double *weights; // of the classes
    int n_weights;
    ot_dtype weights_dtype;
} ot__loss_term;

// What a user should know although the model trains: a warning, or for information.
typedef struct ot__note {
    ot_log_level level;
    const char *text;
} ot__note;

struct ot_artifacts {
    ot_model *training, *eval, *optimizer;
    ot_checkpoint *checkpoint;
    const char *
        *parameter_order; // initializer order of the forward model, trainable and frozen mixed
    int n_parameters;
    ot__loss_term *loss_terms; // none: nothing is known, as of artifacts of another maker
    int n_loss_terms;
    const char **probabilities; // targets among those of loss_terms that must be in 0..1
    int n_probabilities;
    ot__note *notes;
    int n_notes;
    bool ort_format;  // saved as .ort files too
    ot__arena *arena; // of parameter_order, loss_terms and probabilities
};

ot_status ot__artifacts_create(ot_artifacts **out); // store.c: empty
// loss_note.c: "mse", "mean"; "?" for what is none
const char *ot__loss_name(ot_loss loss);
const char *ot__reduction_name(ot_reduction reduction);
// loss_note.c: the training model's metadata into loss_terms; what is malformed is no note.
ot_status ot__loss_read(ot_artifacts *artifacts);
// Terms of a text as OT_METADATA_LOSS has it; OT_ERR_FORMAT naming the line.
ot_status ot__loss_parse(ot__arena *arena, const char *note, ot__loss_term **terms, int *n_terms);
// What a model's metadata say of a training, which train/record.c reads: its loss, numbers of the
// data with commas between, names of classes as a JSON list.
#define OT_METADATA_LOSS "onnxtrain.loss"
#define OT_METADATA_SCALE "onnxtrain.data.scale"
#define OT_METADATA_MEAN "onnxtrain.data.mean"
#define OT_METADATA_STD "onnxtrain.data.std"
#define OT_METADATA_CLASSES "onnxtrain.classes"
ot_status ot__record_drop(ot_model *model); // none of it is left

// eval_model.c: BatchNormalization by its stored statistics, Dropout that drops nothing.
ot_status ot__to_inference(ot_model *model);
// loss.c: append the loss terms to a prepared forward graph; *loss is their sum. New inputs are
// targets.
ot_status ot__loss_attach(ot_graph *graph, const ot_loss_options *losses, int n_losses,
                          ot_value **loss);
// The value that a term takes, unless it is a custom one; NULL: there is none.
ot_value *ot__loss_input(const ot_graph *graph, const ot_loss_options *term);
// Name of the input that a term compares with, unless it is a custom one.
const char *ot__loss_target(const ot_loss_options *term);
// What a trainer asks of an optimizer model besides the user's options, and what groups are made
// of. The inputs and outputs that come of it have the names that stand here.
typedef struct ot__optimizer_wiring {
    bool divides;      // input gradient_divisor, by which gradients are divided within the update
    bool skips;        // where a gradient is not finite nothing changes; output gradients_finite
    bool counts_apart; // `step` is one number for each parameter
    bool clips_none;   // max_norm_clip counts for nothing
    // Those that train are the parameters, in this order; NULL: they are not known.
    const struct ot__candidates *candidates;
} ot__optimizer_wiring;
// optimizer.c: the optimizer model over parameters of element type `dtype`. With a norm it has the
// output gradient_norm. `wiring` NULL: nothing is asked for.
ot_status ot__optimizer_model(const ot_optimizer_options *options,
                              const ot__optimizer_wiring *wiring, ot_dtype dtype, int64_t opset,
                              ot_model **out);
// generate.c: as ot_artifacts_generate(); `wiring` without candidates.
ot_status ot__artifacts_generate(const ot_model *model, const ot_artifacts_options *options,
                                 const ot__optimizer_wiring *wiring, ot_artifacts **out);
// loadable.c: metadata of a model with operators of our own, which ONNX Runtime cannot load.
#define OT_METADATA_LOADABLE "onnxtrain.onnxruntime"
ot_status ot__note_loadable(ot_model *model);
// init.c: values drawn for RandomNormal/RandomUniform nodes of constant shape and for `init`
// patterns.
ot_status ot__init_parameters(ot_model *model, const ot_artifacts_options *options);
// Fill with a standard normal distribution, by the seed and the tensor's name.
ot_status ot__init_normal(ot_tensor *tensor, uint64_t seed, const char *name);

#endif
