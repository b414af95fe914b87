// SPDX-License-Identifier: Apache-2.0
// Who takes options: a function for every struct, and for every way that it is given.
#ifndef TESTS_OPTIONS_USERS_H
#define TESTS_OPTIONS_USERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "onnxtrain/onnxtrain.h"
#include "unit/base/temporary_folder.h"

static const char net[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "net (float[N, 2] x) => (float[N, 3] y)\n"
                          "<float[2, 3] w = {1, 2, 3, 4, 5, 6}>\n"
                          "{ y = MatMul(x, w) }";

typedef struct world {
    ot_model *model;
    ot_artifacts *artifacts;
    ot_session *session;
    ot_tensor *x, *labels, *keys;
    ot_dataset *dataset;
    ot_batches *batches;
    void *folder;
    char csv[PATH_LENGTH_MAX];
} world;

static ot_label_encoder_options label_encoder_init = OT_LABEL_ENCODER_OPTIONS_INIT; // with `keys`

static inline void must(ot_status status)
{
    if (status != OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline ot_batches *make_batches(const world *w, const ot_batches_options *options,
                                       ot_status *st)
{
    const ot_binding bindings[] = {
        {.input = "x", .dtype = OT_F32, .shape = OT_SHAPE(2), .fields = "x", .scale = 1},
        {.input = "labels", .dtype = OT_I64, .fields = "labels", .scale = 1, .is_class = 1},
    };
    ot_batches *batches;

    *st = ot_batches_create(w->dataset, bindings, 2, options, &batches);
    return batches;
}

static inline int setup(void **state)
{
    static const float numbers[] = {1, 2, 3, 4};
    static const int64_t classes[] = {0, 2}, keys[] = {7, 8};
    static const char *const names[] = {"x", "labels"};
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    world *w = calloc(1, sizeof *w);
    FILE *csv;
    ot_status st;

    options.losses = &loss;
    options.n_losses = 1;
    must(ot_model_load_buffer(net, sizeof net - 1, NULL, &w->model));
    must(ot_artifacts_generate(w->model, &options, &w->artifacts));
    must(ot_session_create_from_artifacts(w->artifacts, NULL, &w->session));
    must(
        ot_tensor_wrap(OT_F32, &OT_SHAPE(2, 2), (void *)(uintptr_t)numbers, sizeof numbers, &w->x));
    must(ot_tensor_wrap(OT_I64, &OT_SHAPE(2), (void *)(uintptr_t)classes, sizeof classes,
                        &w->labels));
    must(ot_tensor_wrap(OT_I64, &OT_SHAPE(2), (void *)(uintptr_t)keys, sizeof keys, &w->keys));
    must(ot_dataset_from_tensors(names, (const ot_tensor *[]){w->x, w->labels}, 2, &w->dataset));
    w->batches = make_batches(w, NULL, &st);
    must(st);
    label_encoder_init.keys = label_encoder_init.values = w->keys;
    if (temporary_folder_make(&w->folder) != 0)
        return -1;
    snprintf(w->csv, sizeof w->csv, "%s/data.csv", (char *)w->folder);
    csv = fopen(w->csv, "w");
    if (!csv || fputs("a,b\n1,2\n", csv) < 0 || fclose(csv) != 0)
        return -1;
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    world *w = *state;
    const int failed = temporary_folder_remove(&w->folder);

    ot_session_destroy(w->session);
    ot_batches_destroy(w->batches);
    ot_dataset_destroy(w->dataset);
    ot_tensor_destroy(w->x);
    ot_tensor_destroy(w->labels);
    ot_tensor_destroy(w->keys);
    ot_artifacts_destroy(w->artifacts);
    ot_model_destroy(w->model);
    free(w);
    return failed;
}

// ---- who takes them ----

static inline ot_status use_model(world *w, void *options)
{
    ot_model *model;
    const ot_status st = ot_model_load_buffer(net, sizeof net - 1, options, &model);

    (void)w;
    ot_model_destroy(model);
    return st;
}

static inline ot_status use_model_save(world *w, void *options)
{
    return ot_model_save(w->model, "/dev/null", options);
}

static inline ot_status use_artifacts(world *w, void *options)
{
    ot_artifacts *artifacts;
    const ot_status st = ot_artifacts_generate(w->model, options, &artifacts);

    ot_artifacts_destroy(artifacts);
    return st;
}

static inline ot_status use_report(world *w, void *options)
{
    ot_report *report;
    const ot_status st = ot_report_create(w->model, options, &report);

    ot_report_destroy(report);
    return st;
}

static inline ot_status use_optimizer(world *w, void *options)
{
    ot_artifacts_options artifacts = OT_ARTIFACTS_OPTIONS_INIT;

    artifacts.optimizer = options;
    return use_artifacts(w, &artifacts);
}

static inline ot_status use_loss(world *w, void *options)
{
    ot_artifacts_options artifacts = OT_ARTIFACTS_OPTIONS_INIT;

    artifacts.losses = options;
    artifacts.n_losses = 1;
    return use_artifacts(w, &artifacts);
}

static inline ot_status use_prepare(world *w, void *options)
{
    ot_model *model;
    const ot_status st = ot_model_prepare_training(w->model, options, &model, NULL);

    ot_model_destroy(model);
    return st;
}

static inline ot_status use_block(world *w, void *options)
{
    ot_block *block;
    const ot_status st = ot_block_create(w->model, options, &block);

    ot_block_destroy(block);
    return st;
}

static inline ot_status add_linear(ot_block *block, world *w, void *options)
{
    (void)w;
    ot_block_linear(block, ot_block_value(block, "y"), 3, 2, options);
    return ot_block_status(block);
}

static inline ot_status add_loss(ot_block *block, world *w, void *options)
{
    (void)w;
    ot_block_loss(block, NULL, options);
    return ot_block_status(block);
}

static inline ot_status add_encoder(ot_block *block, world *w, void *options)
{
    (void)w;
    ot_block_label_encoder(block, ot_block_input(block, "n", OT_I64, &OT_SHAPE(2)), options);
    return ot_block_status(block);
}

static inline ot_status in_block(world *w, void *options,
                                 ot_status (*add)(ot_block *block, world *w, void *options))
{
    ot_block *block;
    ot_status st;

    must(ot_block_create(w->model, NULL, &block));
    st = add(block, w, options);
    ot_block_destroy(block);
    return st;
}

static inline ot_status use_linear(world *w, void *options)
{
    return in_block(w, options, add_linear);
}

static inline ot_status use_block_loss(world *w, void *options)
{
    return in_block(w, options, add_loss);
}

static inline ot_status use_encoder(world *w, void *options)
{
    return in_block(w, options, add_encoder);
}

static inline ot_status use_group(world *w, void *group)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_status st;

    options.optimizer = &optimizer;
    optimizer.groups = group;
    optimizer.n_groups = 1;
    st = ot_artifacts_generate(w->model, &options, &artifacts);
    ot_artifacts_destroy(artifacts);
    return st;
}

static inline ot_status fill_hyper(world *w, void *options)
{
    (void)w;
    return ot_optimizer_hyper("AdamWOptimizer", 0, options);
}

static inline ot_status use_block_optimizer(world *w, void *options)
{
    ot_block *block;
    ot_status st;

    (void)w;
    must(ot_block_create_empty(NULL, &block));
    ot_block_optimizer(block, options, OT_F32);
    st = ot_block_status(block);
    ot_block_destroy(block);
    return st;
}

static inline ot_status use_dataset(world *w, void *options)
{
    ot_dataset *dataset;
    const ot_status st = ot_dataset_open((const char *const[]){w->csv}, 1, options, &dataset);

    ot_dataset_destroy(dataset);
    return st;
}

static inline ot_status use_batches(world *w, void *options)
{
    ot_status st;

    ot_batches_destroy(make_batches(w, options, &st));
    return st;
}

static inline ot_status use_data(world *w, void *options)
{
    ot_batches *training, *validation;
    const ot_status st =
        ot_train_batches(w->session, w->dataset, NULL, options, &training, &validation);

    ot_batches_destroy(training);
    ot_batches_destroy(validation);
    return st;
}

static inline ot_status use_data_batches(world *w, void *options)
{
    ot_data_options data = OT_DATA_OPTIONS_INIT;

    data.batches = options;
    return use_data(w, &data);
}

static inline ot_status use_data_record(world *w, void *options)
{
    ot_model *model;
    ot_status st;

    must(ot_model_load_buffer(net, sizeof net - 1, NULL, &model));
    st = ot_record_write(model, w->artifacts, options);
    ot_model_destroy(model);
    return st;
}

static inline ot_status describe(world *w, ot_data_options *data, ot_batches_options *batches,
                                 ot_train_options *train)
{
    ot_data_options usual_data = OT_DATA_OPTIONS_INIT;
    ot_train_options usual_train = OT_TRAIN_OPTIONS_INIT;

    return ot_train_describe(w->artifacts, w->session, data ? data : &usual_data, batches,
                             train ? train : &usual_train);
}

static inline ot_status fill_data(world *w, void *options)
{
    return describe(w, options, NULL, NULL);
}

static inline ot_status fill_batches(world *w, void *options)
{
    return describe(w, NULL, options, NULL);
}

static inline ot_status fill_train(world *w, void *options)
{
    return describe(w, NULL, NULL, options);
}

static inline ot_status fill_recorded(world *w, void *options)
{
    (void)w;
    return ot_record_data(NULL, options, NULL);
}

static inline ot_status use_train(world *w, void *options)
{
    ot_trainer *trainer;
    ot_status st;

    must(ot_trainer_create_from_session(w->session, NULL, NULL, &trainer));
    st = ot_train_run(trainer, w->batches, NULL, options, NULL);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status use_evaluate(world *w, void *options)
{
    ot_metrics metrics;

    return ot_train_evaluate(w->session, w->batches, options, &metrics);
}

static inline ot_status use_gradients(world *w, void *options)
{
    ot_gradients *gradients;
    const ot_status st =
        ot_gradients_create(w->model, "y", (const char *const[]){"w"}, 1, options, &gradients);

    ot_gradients_destroy(gradients);
    return st;
}

static inline ot_status use_session(world *w, void *options)
{
    ot_runner *runner;
    const ot_status st = ot_runner_create(w->model, options, &runner);

    ot_runner_destroy(runner);
    return st;
}

static inline ot_status fill_update(world *w, void *options)
{
    return ot_session_update(w->session, 1, options);
}

static inline ot_status use_save(world *w, void *options)
{
    ot_trainer *trainer;
    char path[PATH_LENGTH_MAX];
    ot_status st;

    snprintf(path, sizeof path, "%s/saved", (const char *)w->folder);
    must(ot_trainer_create_from_session(w->session, NULL, NULL, &trainer));
    st = ot_trainer_save(trainer, path, options);
    ot_trainer_destroy(trainer);
    return st;
}

static inline ot_status use_schedule(world *w, void *options)
{
    return ot_session_set_schedule(w->session, options);
}

static inline ot_status use_cut(world *w, void *options)
{
    ot_sharding *sharding;
    ot_status st = ot_sharding_create(OT_F32, &OT_SHAPE(4), options, 1, -1, &sharding);

    (void)w;
    ot_sharding_destroy(sharding);
    return st;
}

static inline ot_status use_state_dict(world *w, void *options)
{
    ot_dict *dict;
    ot_status st = ot_session_get_shards(w->session, OT_STATE_MODEL, options, &dict);

    ot_dict_destroy(dict);
    return st;
}

static const ot_name_entry name_entry_init = {sizeof(ot_name_entry), "other", "w",
                                              OT_NAME_SAME,          {0, 0},  NULL};

static inline ot_status use_name_entry(world *w, void *entry)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    options.names = entry;
    options.n_names = 1;
    return use_state_dict(w, &options);
}

static inline ot_status use_train_schedule(world *w, void *options)
{
    ot_train_options train = OT_TRAIN_OPTIONS_INIT;

    train.schedule = options;
    return use_train(w, &train);
}

static inline ot_status use_loss_scaler(world *w, void *options)
{
    const ot_step_info info = OT_STEP_INFO_INIT;

    (void)w;
    return ot_loss_scaler_update(options, &info) > 0 ? OT_OK : OT_ERR_INVALID;
}

static inline ot_status use_step_info(world *w, void *options)
{
    ot_loss_scaler scaler = OT_LOSS_SCALER_INIT;

    (void)w;
    return ot_loss_scaler_update(&scaler, options) > 0 ? OT_OK : OT_ERR_INVALID;
}

static inline ot_status use_given(world *w, void *options)
{
    (void)w;
    return ot_record_check(NULL, options);
}

#endif
