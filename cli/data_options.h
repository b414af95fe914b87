// Options that say what data a session gets, and the batches made of it.
#ifndef CLI_DATA_OPTIONS_H
#define CLI_DATA_OPTIONS_H

#include "onnxtrain/artifacts.h"
#include "onnxtrain/data.h"
#include "onnxtrain/session.h"
#include "onnxtrain/train.h"
#include "options.h"

typedef struct data_values {
    text_list data, validation, bind;
    double split;
    const char *label;
    int64_t batch_size;
    double scale;
    const char *mean, *std;
    int header;
} data_values;

extern const option_spec data_option_table[];      // of one set of files: eval
extern const option_spec data_more_option_table[]; // what training adds

// What the inputs of a session want.
typedef struct data_request {
    ot_session *session;
    const ot_model *forward;    // inputs it lacks are targets too; NULL: it is not known
    const char *const *targets; // inputs that are targets, the one for metrics first
    int n_targets;
    int64_t n_classes;      // 0: unknown
    bool has_ignored_label; // it may be among the labels
    int64_t ignored_label;
    const char *const *class_names; // of text labels, as trained; NULL: found in the data
    int n_class_names;
    uint64_t seed;
    bool is_shuffled; // but for what is held out
} data_request;

typedef struct data_setup {
    ot_dataset *dataset, *validation_dataset;
    ot_batches *training, *validation; // validation NULL: none
    double *mean, *std;
    int target; // the one for metrics, and for --label: its position; -1: none
} data_setup;

// The exit code: EXIT_SUCCESS, or another after a message.
int data_setup_init(data_setup *setup, const data_values *values, const data_request *request);
void data_setup_deinit(data_setup *setup);

#endif
