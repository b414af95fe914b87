// SPDX-License-Identifier: Apache-2.0
// One good object of every public kind, for calls that lack one thing at a time.
#ifndef TESTS_NULL_WORLD_H
#define TESTS_NULL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"
#include "unit/base/temporary_folder.h"

static const char model_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "f (float[2] x) => (float w_loss) <float[2] w = {1, 2}>\n"
                                 "{\n"
                                 "  p = Mul(x, w)\n"
                                 "  s = Mul(p, p)\n"
                                 "  w_loss = ReduceSum<keepdims = 0>(s)\n"
                                 "}\n";

typedef struct world {
    // good
    ot_model *model;
    ot_artifacts *artifacts, *more; // `more` lends a session what it works on
    ot_checkpoint *checkpoint;
    ot_session *session;
    ot_trainer *trainer;
    ot_runner *runner;
    ot_gradients *gradients;
    ot_report *report;
    ot_record *record;
    ot_model *prepared;
    ot_findings *findings;
    ot_config *config;
    ot_dict *dict;
    ot_comm *comm;
    ot_transport transport;
    ot_agreement agreement;
    ot_comm_counters counters;
    ot_sharding *sharding;
    ot_shards_report *shards_report;
    ot_cut cut;
    ot_box box;
    ot_shards_item item;
    ot_shards_info shards_info;
    ot_shards_tensor shards_tensor;
    ot_shards_reader *reader;
    ot_shards_job *job;
    ot_resume *resume;
    ot_dataset *dataset;
    ot_batches *batches;
    ot_block *block;
    ot_value *value;
    ot_tensor *tensor;
    const ot_tensor *tensors[1];
    ot_feed feed;
    ot_bytes bytes;
    ot_binding binding;
    ot_schedule schedule;
    ot_step_info step_info;
    ot_memory memory;
    ot_parallel_ranks ranks;
    ot_session_options session_options;
    ot_loss_scaler loss_scaler;
    ot_data_options data;
    ot_batches_options batches_options;
    ot_record_given given;
    ot_train_options train;
    ot_shape shape;
    const char *names[2];
    size_t sizes[2]; // of names
    const char *path;
    float numbers[2];
    double rates[1];
    ot_update_info update;
    int64_t n_floats;
    int positions[OT_MAX_CUT_GROUPS];
    int64_t integers[1];
    // received
    ot_model *out_model;
    ot_artifacts *out_artifacts;
    ot_checkpoint *out_checkpoint;
    ot_session *out_session;
    ot_trainer *out_trainer;
    ot_runner *out_runner;
    ot_gradients *out_gradients;
    ot_report *out_report;
    ot_record *out_record;
    ot_findings *out_findings;
    ot_config *out_config;
    double out_double;
    ot_config_source out_source;
    ot_dict *out_dict;
    ot_comm *out_comm;
    ot_sharding *out_sharding;
    ot_box out_boxes[OT_MAX_RANGE_BOXES];
    ot_shard_box out_shard_box;
    ot_dict_kind out_dict_kind;
    const int64_t *out_integers;
    const ot_shards *out_shards;
    ot_shards_reader *out_reader;
    ot_shards_job *out_job;
    ot_resume *out_resume;
    const void *out_bytes;
    ot_shards_report *out_shards_report;
    ot_dataset *out_dataset;
    ot_batches *out_batches, *out_more_batches;
    ot_block *out_block;
    ot_value *out_value;
    ot_tensor *out_tensor;
    const ot_tensor *out_borrowed;
    ot_shape out_shape;
    ot_dtype out_dtype;
    size_t out_size;
    ot_property_kind out_kind;
    ot_log_level out_level;
    ot_metrics out_metrics;
    ot_hyper_info out_hyper;
    char *out_text;
    const char *out_name;
} world;

static char *folder;
static char path_in_folder[PATH_LENGTH_MAX];

static inline void must(ot_status status)
{
    if (status != OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline ot_status world_sink(void *context, const char *const *path, int n_path,
                                   const ot_dict *leaf)
{
    (void)context, (void)path, (void)n_path, (void)leaf;
    return OT_OK;
}

static inline void make_trained(world *w)
{
    const ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;

    must(ot_artifacts_generate(w->model, &options, &w->artifacts));
    must(ot_artifacts_generate(w->model, &options, &w->more));
    must(ot_session_create_from_artifacts(w->more, NULL, &w->session));
    must(ot_checkpoint_create(&w->checkpoint));
    must(ot_checkpoint_add_parameter(w->checkpoint, "w", w->tensor, OT_PARAMETER_TRAINABLE));
}

static inline void make_data(world *w)
{
    must(ot_dataset_from_tensors(w->names, w->tensors, 1, &w->dataset));
    w->binding = (ot_binding){.input = "w", .dtype = OT_F32, .fields = "w", .scale = 1};
    must(ot_batches_create(w->dataset, &w->binding, 1, NULL, &w->batches));
}

// The first world saves what all of them read.
static inline void make_shards(world *w)
{
    char path[PATH_LENGTH_MAX];

    snprintf(path, sizeof path, "%.200s/shards", folder);
    w->item = (ot_shards_item)OT_SHARDS_ITEM_INIT;
    w->item.name = "w";
    w->item.dict = w->dict;
    w->shards_info = (ot_shards_info)OT_SHARDS_INFO_INIT;
    w->shards_tensor = (ot_shards_tensor)OT_SHARDS_TENSOR_INIT;
    must(ot_shards_job_create(&w->job));
    if (ot_shards_open(path, &w->reader) != OT_OK) {
        must(ot_shards_save(NULL, path, &w->item, 1, NULL));
        must(ot_shards_open(path, &w->reader));
    }
}

static inline void world_make(world *w)
{
    ot_set_memory_max(0); // the case before may have been a call of this
    *w = (world){.shape = OT_SHAPE(2),
                 .names = {"w", "w"},
                 .sizes = {1, 1},
                 .numbers = {1, 2},
                 .n_floats = 2};
    w->path = path_in_folder;
    w->bytes = (ot_bytes){model_text, sizeof model_text - 1};
    w->schedule = (ot_schedule)OT_SCHEDULE_INIT;
    w->step_info = (ot_step_info)OT_STEP_INFO_INIT;
    w->memory = (ot_memory)OT_MEMORY_INIT;
    w->ranks = (ot_parallel_ranks)OT_PARALLEL_RANKS_INIT;
    w->session_options = (ot_session_options)OT_SESSION_OPTIONS_INIT;
    w->loss_scaler = (ot_loss_scaler)OT_LOSS_SCALER_INIT;
    w->data = (ot_data_options)OT_DATA_OPTIONS_INIT;
    w->out_hyper = (ot_hyper_info)OT_HYPER_INFO_INIT;
    w->batches_options = (ot_batches_options)OT_BATCHES_OPTIONS_INIT;
    w->given = (ot_record_given)OT_RECORD_GIVEN_INIT;
    w->update = (ot_update_info)OT_UPDATE_INFO_INIT;
    w->transport.size = sizeof w->transport;
    w->agreement = (ot_agreement)OT_AGREEMENT_INIT;
    w->counters = (ot_comm_counters)OT_COMM_COUNTERS_INIT;
    w->train = (ot_train_options)OT_TRAIN_OPTIONS_INIT;
    must(ot_tensor_wrap(OT_F32, &w->shape, w->numbers, sizeof w->numbers, &w->tensor));
    w->tensors[0] = w->tensor;
    w->feed = (ot_feed){w->tensors, 1};
    must(ot_model_load_buffer(model_text, sizeof model_text - 1, NULL, &w->model));
    make_trained(w);
    make_data(w);
    must(ot_config_create(&w->config));
    must(ot_dict_create(&w->dict));
    make_shards(w);
    must(ot_resume_create(NULL, folder, &w->resume));
    must(ot_comm_open("self", NULL, &w->comm));
    w->cut = (ot_cut)OT_CUT_INIT;
    w->box = (ot_box){.ndim = 1, .size = {2}};
    must(ot_sharding_create(OT_F32, &w->shape, &w->cut, 1, -1, &w->sharding));
    (void)ot_session_check_shards(w->session, OT_STATE_MODEL, w->dict, NULL, &w->shards_report);
    must(ot_trainer_create(w->model, NULL, NULL, NULL, &w->trainer));
    must(ot_runner_create(w->model, NULL, &w->runner));
    must(ot_gradients_create(w->model, "w_loss", w->names, 1, NULL, &w->gradients));
    must(ot_report_create(w->model, NULL, &w->report));
    must(ot_model_prepare_training(w->model, NULL, &w->prepared, &w->findings));
    must(ot_block_create(w->model, NULL, &w->block));
    w->value = ot_block_output(w->block, 0);
    must(ot_record_write(w->prepared, w->artifacts, &w->data));
    must(ot_record_read(w->prepared, &w->record));
}

static inline void world_free(world *w)
{
    ot_record_destroy(w->out_record);
    ot_record_destroy(w->record);
    ot_model_destroy(w->out_model);     // may show parameters of the session
    ot_trainer_destroy(w->out_trainer); // may be over the session
    ot_session_destroy(w->out_session);
    ot_artifacts_destroy(w->out_artifacts);
    ot_checkpoint_destroy(w->out_checkpoint);
    ot_runner_destroy(w->out_runner);
    ot_gradients_destroy(w->out_gradients);
    ot_report_destroy(w->out_report);
    ot_findings_destroy(w->out_findings);
    ot_batches_destroy(w->out_batches);
    ot_batches_destroy(w->out_more_batches);
    ot_dataset_destroy(w->out_dataset);
    ot_config_destroy(w->out_config);
    ot_dict_destroy(w->out_dict);
    ot_comm_destroy(w->out_comm);
    ot_resume_destroy(w->out_resume);
    ot_resume_destroy(w->resume);
    ot_shards_job_destroy(w->out_job);
    ot_shards_job_destroy(w->job);
    ot_shards_reader_destroy(w->out_reader);
    ot_shards_reader_destroy(w->reader);
    ot_comm_destroy(w->comm);
    ot_sharding_destroy(w->out_sharding);
    ot_shards_report_destroy(w->out_shards_report);
    ot_block_destroy(w->out_block);
    ot_tensor_destroy(w->out_tensor);
    ot_string_free(w->out_text);
    ot_trainer_destroy(w->trainer);
    ot_session_destroy(w->session);
    ot_artifacts_destroy(w->artifacts);
    ot_artifacts_destroy(w->more);
    ot_checkpoint_destroy(w->checkpoint);
    ot_runner_destroy(w->runner);
    ot_gradients_destroy(w->gradients);
    ot_report_destroy(w->report);
    ot_findings_destroy(w->findings);
    ot_model_destroy(w->prepared);
    ot_batches_destroy(w->batches);
    ot_dataset_destroy(w->dataset);
    ot_config_destroy(w->config);
    ot_dict_destroy(w->dict);
    ot_sharding_destroy(w->sharding);
    ot_shards_report_destroy(w->shards_report);
    ot_block_destroy(w->block);
    ot_tensor_destroy(w->tensor);
    ot_model_destroy(w->model);
}

// All of it is destroyed again; the message is another one than of a destroyed handle.
static inline void world_make_dead(world *dead)
{
    world_make(dead);
    world_free(dead);
    dead->tensors[0] = dead->tensor;
    dead->feed.tensors = dead->tensors;
    (void)ot_tensor_clone(NULL, NULL);
}

static inline void check_dead(const char *what)
{
    if (strstr(ot_error_message(), "invalid or destroyed ") == NULL)
        fail_msg("%s: '%s'", what, ot_error_message());
}

static inline void check_message(ot_status status, const char *what)
{
    if (status != OT_OK && ot_error_message()[0] == '\0')
        fail_msg("%s: %s without a message", what, ot_status_name(status));
}

// A pointer that is needed is NULL.
static inline void check_null(ot_status status, const char *what)
{
    if (status != OT_ERR_INVALID || strstr(ot_error_message(), "NULL") == NULL)
        fail_msg("%s: %s (%s)", what, ot_status_name(status), ot_error_message());
}

// A number is none that there is.
static inline void check_refused(ot_status status, const char *what)
{
    if (status != OT_ERR_INVALID && status != OT_ERR_NOT_FOUND)
        fail_msg("%s: %s (%s)", what, ot_status_name(status), ot_error_message());
    check_message(status, what);
}

static inline int make_folder(void **state)
{
    void *made = NULL;

    (void)state;
    if (temporary_folder_make(&made) != 0)
        return -1;
    folder = made;
    snprintf(path_in_folder, sizeof path_in_folder, "%s/file.onnx", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    void *made = folder;

    (void)state;
    return temporary_folder_remove(&made);
}

#endif
