// SPDX-License-Identifier: Apache-2.0
// onnxtrain eval: loss and metrics of an inference model on data.
#include <stdlib.h>

#include "commands.h"
#include "data_options.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "progress.h"
#include "recorded.h"
#include "report.h"

typedef struct eval_values {
    model_values model;
    data_values data;
    int64_t threads, memory_max;
    bool json;
} eval_values;

#define AT(member) offsetof(eval_values, member)

static const option_spec eval_table[] = {
    {.help = "Running"},
    {"threads", OPTION_INT, AT(threads), "N", "0: all processors", "0", NULL, 0},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {"json", OPTION_FLAG, AT(json), NULL, "print one JSON object", NULL, NULL, 0},
    {0},
};

typedef struct evaluation {
    const eval_values *values;
    ot_model *model;
    model_setup setup;
    ot_artifacts *artifacts;
    ot_session *session;
    data_setup data;
} evaluation;

// The model with its loss behind it, nothing of it trained.
static int prepare(evaluation *e)
{
    static const char *const nothing[] = {""};
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    int code = model_setup_init(&e->setup, &e->values->model, e->model);

    if (code != EXIT_SUCCESS)
        return code;
    e->setup.options.trainable = nothing;
    e->setup.options.n_trainable = 0;
    e->setup.optimizer.options.name = NULL;
    e->setup.options.batch_norm = OT_BATCH_NORM_STORED;
    options.n_threads = (int)e->values->threads;
    if (ot_artifacts_generate(e->model, &e->setup.options, &e->artifacts) != OT_OK ||
        ot_session_create_from_artifacts(e->artifacts, &options, &e->session) != OT_OK)
        return report_error();
    report_notes(e->artifacts);
    return EXIT_SUCCESS;
}

static int read_data(evaluation *e, ot_train_options *options)
{
    ot_data_options data = OT_DATA_OPTIONS_INIT;
    ot_batches_options batches = OT_BATCHES_OPTIONS_INIT;

    data.forward = e->model;
    data.batches = &batches;
    batches.seed = (uint64_t)e->values->model.seed;
    if (ot_train_describe(e->artifacts, e->session, &data, &batches, options) != OT_OK)
        return report_error();
    return data_setup_init(&e->data, &e->values->data, e->setup.record, e->session, &data,
                           &batches);
}

static int evaluate(evaluation *e, const ot_train_options *options)
{
    ot_batches *batches = e->data.validation ? e->data.validation : e->data.training;
    ot_metrics metrics;
    char text[200];

    if (data_left_over(batches, "rows", text, sizeof(text)))
        report_text("note: %s", text);
    if (ot_train_evaluate(e->session, batches, options, &metrics) != OT_OK)
        return report_error();
    if (!e->values->json) {
        recorded_say(stdout, e->setup.record);
        printf("%lld rows: ", (long long)metrics.rows);
        print_metrics(stdout, options->task, &metrics);
        printf("\n");
        return EXIT_SUCCESS;
    }
    write_json(stdout, metrics_json(options->task, &metrics), JSON_COMPACT);
    return EXIT_SUCCESS;
}

static int eval_check(const void *values, const char *const *arguments)
{
    const eval_values *v = values;
    int code = data_values_check(&v->data);

    (void)arguments;
    if (code == EXIT_SUCCESS)
        code = model_values_check(&v->model);
    return code == EXIT_SUCCESS ? check_threads(v->threads) : code;
}

static int eval_run(const void *values, const char *const *arguments)
{
    evaluation e = {.values = values};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    int code = load_op_libraries(&e.values->model.op_libraries);

    set_memory_max(e.values->memory_max);
    if (code == EXIT_SUCCESS)
        code = load_model(arguments[0], &e.model);
    if (code == EXIT_SUCCESS)
        code = prepare(&e);
    if (code == EXIT_SUCCESS)
        code = read_data(&e, &options);
    if (code == EXIT_SUCCESS)
        code = evaluate(&e, &options);
    data_setup_deinit(&e.data);
    ot_session_destroy(e.session);
    ot_artifacts_destroy(e.artifacts);
    model_setup_deinit(&e.setup);
    ot_model_destroy(e.model);
    return code;
}

const command command_eval = {
    .name = "eval",
    .summary = "measure a model on data",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description = "Runs MODEL over --data and prints its loss, and the accuracy or the mean "
                   "absolute error and R2. Loss, scale, "
                   "mean, std and classes are those that the model says it was trained with.",
    .example = "onnxtrain eval trained.onnx --data test.csv --loss cross-entropy",
    .tables = {{eval_table, 0}, {data_option_table, AT(data)}, {model_option_table, AT(model)}},
    .values_size = sizeof(eval_values),
    .check = eval_check,
    .run = eval_run,
};
