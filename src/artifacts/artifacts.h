// Face of `artifacts`: loss graphs, optimizer graphs, the four files.
#ifndef OT_ARTIFACTS_ARTIFACTS_H
#define OT_ARTIFACTS_ARTIFACTS_H

#include "autodiff/autodiff.h"
#include "ckpt/ckpt.h"
#include "graph/graph.h"
#include "onnx/onnx.h"
#include "onnxtrain/artifacts.h"
#include "passes/passes.h"

struct ot_artifacts {
    ot_model *training, *eval, *optimizer;
    ot_checkpoint *checkpoint;
    const char *
        *parameter_order; // initializer order of the forward model, trainable and frozen mixed
    int n_parameters;
    bool ort_format;  // saved as .ort files too
    ot__arena *arena; // of parameter_order
};

ot_status ot__artifacts_create(ot_artifacts **out); // store.c: empty

// eval_model.c: BatchNormalization by its stored statistics, Dropout that drops nothing.
ot_status ot__to_inference(ot_model *model);
// loss.c: append the loss terms to a prepared forward graph; *loss is their sum. New inputs are
// targets.
ot_status ot__loss_attach(ot_graph *graph, const ot_loss_options *losses, int n_losses,
                          ot_value **loss);
// Name of the input that a term compares with, unless it is a custom one.
const char *ot__loss_target(const ot_loss_options *term);
// optimizer.c: the optimizer model over `n` parameters of element type `dtype`.
ot_status ot__optimizer_model(const ot_optimizer_options *options, ot_dtype dtype, int64_t opset,
                              ot_model **out);
// init.c: values drawn for RandomNormal/RandomUniform nodes of constant shape and for `init`
// patterns.
ot_status ot__init_parameters(ot_model *model, const ot_artifacts_options *options);
// Fill with a standard normal distribution, by the seed and the tensor's name.
ot_status ot__init_normal(ot_tensor *tensor, uint64_t seed, const char *name);

#endif
