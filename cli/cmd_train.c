// SPDX-License-Identifier: Apache-2.0
// onnxtrain train: from a forward model, or a folder of artifacts, to a trained model.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "op_libraries.h"
#include "output_files.h"
#include "recorded.h"
#include "report.h"
#include "train_config.h"

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// A folder's loss and optimizer are in its graphs: options that would change them promise what
// cannot be.
static int load_folder(train_run *r)
{
    const bool syncs = r->values->model.batch_norm == BATCH_NORM_SYNC; // is not built in
    const char *const apply[] = {
        "target", "seed", "ignore-recorded", "op-library", syncs ? "batch-norm" : NULL, NULL};
    const char *given = option_given(model_option_table, apply);

    if (given)
        return report_text("--%s: the artifacts in '%s' have this built in; make them anew with "
                           "`onnxtrain artifacts`",
                           given, r->path);
    if (ot_artifacts_load(r->path, "", &r->artifacts) != OT_OK)
        return report_error();
    return recorded_read(ot_artifacts_training_model(r->artifacts),
                         r->values->model.ignore_recorded, &r->model.record);
}

static bool has_output(const ot_model *model, const char *name)
{
    for (int i = 0; i < ot_model_output_count(model); i++)
        if (strcmp(ot_model_output_name(model, i), name) == 0)
            return true;
    return false;
}

// The output of the model that is described as the loss; NULL: none is.
static const char *described_loss(const train_run *r)
{
    const ot_model_description *d = ot_config_description(train_config());

    for (int i = 0; d && i < d->n_outputs; i++)
        if (d->outputs[i].is_loss && has_output(r->forward, d->outputs[i].name))
            return d->outputs[i].name;
    return NULL;
}

// Where no option says what the loss is, the description may.
static int set_up_model(train_run *r)
{
    static const char prefix[] = "none:";
    model_values own = r->values->model;
    const char *loss = own.loss.count == 0 ? described_loss(r) : NULL, *text = NULL;
    char *said;
    int code;

    if (!loss)
        return model_setup_init(&r->model, &own, r->forward);
    said = malloc(sizeof prefix + strlen(loss));
    if (!said)
        return report_text("out of memory");
    memcpy(said, prefix, sizeof prefix);
    strcat(said, loss);
    text = said;
    own.loss = (text_list){.items = &text, .count = 1};
    code = model_values_check(&own) == EXIT_SUCCESS ? EXIT_SUCCESS : EXIT_FAILED;
    if (code == EXIT_SUCCESS)
        code = model_setup_init(&r->model, &own, r->forward);
    free(said);
    return code;
}

static int make_artifacts(train_run *r)
{
    static const double usual_lr = 0.001;
    int code;

    if (r->from_folder)
        return load_folder(r);
    code = load_model(r->path, &r->forward);
    if (code == EXIT_SUCCESS)
        code = set_up_model(r);
    if (code != EXIT_SUCCESS)
        return code;
    r->model.optimizer.options = r->optimizer;
    r->model.optimizer.options.lr = usual_lr; // the schedule has the run's
    r->model.options.seed = (uint64_t)r->trainer_options.seed;
    if (ot_trainer_generate_artifacts(r->forward, &r->model.options, &r->trainer_options,
                                      &r->artifacts) != OT_OK)
        return report_error();
    return EXIT_SUCCESS;
}

int train_zero(const train_run *r)
{
    return (int)(r->values->zero > 0 ? r->values->zero : r->trainer_options.zero_stage);
}

static void clear_bar(const void *context)
{
    progress_clear(context);
}

// All processes of the job, after all have come so far.
static int make_session(train_run *r)
{
    const train_values *v = r->values;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_checkpoint *checkpoint = r->resumed ? r->resumed : ot_artifacts_checkpoint(r->artifacts);

    if (ot_trainer_session_options(&r->trainer_options, &options) != OT_OK)
        return report_error();
    parallel.comm = r->job.comm;
    parallel.zero = train_zero(r);
    parallel.sync_batch_norm = v->sync_batch_norm || v->model.batch_norm == BATCH_NORM_SYNC;
    options.parallel = &parallel;
    if (ot_session_create(
            ot_artifacts_training_model(r->artifacts), ot_artifacts_eval_model(r->artifacts),
            ot_artifacts_optimizer_model(r->artifacts), checkpoint, &options, &r->session) != OT_OK)
        return r->resumed ? report_text("%s/checkpoint is not of this model and these options: %s",
                                        v->checkpoint_dir, ot_error_message())
                          : report_error();
    return EXIT_SUCCESS;
}

// Artifacts name their inputs; a target that is none of them would leave one without data.
static int check_target(const train_run *r)
{
    const char *target = r->values->model.target;
    const int n = ot_session_input_count(r->session, OT_MODE_TRAIN);
    const char **names = calloc((size_t)n + 1, sizeof(*names));
    bool is_there = false;

    if (!names)
        return report_text("out of memory");
    for (int i = 0; i < n; i++) {
        names[i] = ot_session_input_name(r->session, OT_MODE_TRAIN, i);
        is_there = is_there || strcmp(names[i], target) == 0;
    }
    if (!is_there)
        (void)report_unknown(names, n, target, "--target: there is no input '%s'; inputs are",
                             target);
    free(names);
    return is_there ? EXIT_SUCCESS : EXIT_FAILED;
}

static int make_data(train_run *r)
{
    ot_data_options *data = &r->data_options;
    ot_batches_options *batches = &r->batches_options;

    *data = (ot_data_options)OT_DATA_OPTIONS_INIT;
    *batches = (ot_batches_options)OT_BATCHES_OPTIONS_INIT;
    data->forward = r->forward;
    data->batches = batches;
    batches->shuffle = 1;
    batches->seed = (uint64_t)r->trainer_options.seed;
    if (r->from_folder && r->values->model.target) {
        if (check_target(r) != EXIT_SUCCESS)
            return EXIT_FAILED;
        data->targets = &r->values->model.target;
        data->n_targets = 1;
    }
    if (ot_train_describe(r->artifacts, r->session, data, batches, &r->options) != OT_OK)
        return report_error();
    return data_setup_init(&r->data, &r->values->data, r->model.record, r->session, data, batches);
}

static int make_trainer(train_run *r)
{
    ot_trainer_options options = r->trainer_options;

    options.lr_schedule = NULL; // the run has it, which knows how many steps there are
    options.seed = 0;           // of the session
    return ot_trainer_create_from_session(r->session, ot_config_description(train_config()),
                                          &options, &r->trainer) == OT_OK
               ? EXIT_SUCCESS
               : report_error();
}

// Shown with the first step: what is refused before has nothing to say.
static int make_header(train_run *r)
{
    progress *p = &r->progress;
    size_t length;
    FILE *text = open_memstream(&p->header, &length);

    if (!text)
        return report_text("out of memory");
    // Artifacts have their loss built in, trained or not.
    if (!r->from_folder || recorded_has_data(r->model.record))
        recorded_say(text, r->model.record);
    if (r->is_resumed)
        fprintf(text, "resumed from %s, after step %lld\n", ot_resume_path(r->resume),
                (long long)r->start_step);
    if (r->output.usual_path)
        fprintf(text,
                r->values->dry_run
                    ? "dry run: nothing is written; the trained model would go to %s\n"
                    : "the trained model goes to %s\n",
                r->output.path);
    return fclose(text) == 0 ? EXIT_SUCCESS : report_text("out of memory");
}

// ---- the run ----

static ot_schedule make_schedule(const train_run *r)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    if (r->trainer_options.lr_schedule)
        return *r->trainer_options.lr_schedule;
    schedule.initial_lr = r->optimizer.lr;
    return schedule;
}

static void set_options(train_run *r)
{
    const train_values *v = r->values;
    ot_train_options *options = &r->options;

    options->callback = progress_event;
    options->callback_context = &r->progress;
    r->schedule = make_schedule(r);
    options->schedule = &r->schedule;
    if (v->dry_run) {
        options->max_steps = 1;
        return;
    }
    options->epochs = v->epochs;
    options->max_steps = v->max_steps;
    options->checkpoint_dir = v->checkpoint_dir;
    options->checkpoint_format = (ot_checkpoint_format)v->checkpoint_format;
    options->save_async = v->save_async;
    options->save_every = v->save_every;
    options->slices = v->slices;
    options->resume = v->resume && r->is_resumed;
    options->overwrite = v->overwrite || v->resume;
    options->patience = v->early_stop;
    options->keep_best = v->keep_best;
    options->outputs = r->output.names;
    options->n_outputs = r->output.n_names;
    options->artifacts = r->artifacts;
    options->data = &r->data_options;
    options->log = v->log;
    options->notes = (const char *const *)r->progress.notes;
    options->n_notes = r->progress.n_notes;
    options->tensorboard_dir = v->tensorboard;
    options->config = r->config;
}

static int finish(train_run *r, const ot_metrics *metrics)
{
    if (r->output.path && !r->values->dry_run && train_writes(r) &&
        train_output_write(&r->output, r->session, r->artifacts, &r->data_options) != EXIT_SUCCESS)
        return EXIT_FAILED;
    if (r->job.rank > 0)
        return EXIT_SUCCESS;
    train_report(r, metrics);
    return r->progress.has_lost_log ? EXIT_FAILED : EXIT_SUCCESS;
}

static void start_progress(train_run *r)
{
    const train_values *v = r->values;

    r->progress = (progress){.task = r->options.task,
                             .is_quiet = v->quiet || r->job.rank > 0,
                             .is_json = v->json,
                             .out = v->out && strcmp(v->out, "-") == 0 ? stderr : stdout,
                             .is_terminal = r->job.rank == 0 && progress_has_terminal(),
                             .saved_step = -1};
}

// A model that cannot be written is better known before the training than after it.
static int check_outputs(train_run *r)
{
    const train_values *v = r->values;
    const char *inputs[TRAIN_MAX_INPUTS];
    const int n = train_inputs(v, r->path, inputs);
    int code = train_output_init(&r->output, v->out, r->path, v->checkpoint_dir, v->overwrite);

    if (code == EXIT_SUCCESS)
        code = check_output("out", r->output.path, inputs, n);
    if (code == EXIT_SUCCESS)
        code = check_output("log", v->log, inputs, n);
    if (code == EXIT_SUCCESS && v->checkpoint_dir && !v->resume && !v->overwrite)
        code = train_output_check_folder(v->checkpoint_dir);
    return code;
}

// ---- the command ----

static int take_configuration(train_run *r)
{
    const ot_config *config = train_config();

    r->path = train_config_model();
    r->trainer_options = *ot_config_options(config);
    r->optimizer = *ot_config_optimizer(config);
    if (ot_config_text(config, OT_CONFIG_EFFECTIVE, &r->config) != OT_OK)
        return report_error();
    r->from_folder = is_folder(r->path);
    return train_check_honoured(r);
}

// What every process does by itself,
static int prepare_run(train_run *r)
{
    int code = take_configuration(r);

    if (code == EXIT_SUCCESS)
        code = check_outputs(r);
    if (code == EXIT_SUCCESS)
        code = load_op_libraries(&r->values->model.op_libraries);
    ot_set_memory_max(r->trainer_options.memory_max);
    if (code == EXIT_SUCCESS)
        code = make_artifacts(r);
    return code;
}

// and what it does with a session, which is one of all processes.
static int prepare_training(train_run *r)
{
    int code;

    if (!r->is_resumed)
        ot_session_set_seed(r->session, (uint64_t)r->trainer_options.seed);
    code = make_trainer(r);
    if (code == EXIT_SUCCESS)
        code = make_data(r);
    if (code == EXIT_SUCCESS)
        code = train_output_describe(&r->output, r->forward, r->data.training, &r->batches_options);
    if (code != EXIT_SUCCESS)
        return code;
    start_progress(r);
    code = train_note_all(r);
    r->start_step = ot_session_step_count(r->session);
    return code == EXIT_SUCCESS ? make_header(r) : code;
}

static int train(train_run *r)
{
    ot_metrics metrics;
    ot_status st;
    int code;

    set_options(r);
    progress_catch_signals(r->job.comm != NULL);
    st = ot_train_run(r->trainer, r->data.training, r->values->dry_run ? NULL : r->data.validation,
                      &r->options, &metrics);
    if (st == OT_OK) {
        progress_clear(&r->progress);
        code = finish(r, &metrics);
    } else {
        code = train_rescue(r, st, &metrics);
    }
    code = st == OT_ERR_TIMEOUT ? job_abort(&r->job, code) : job_agree(&r->job, code);
    progress_end_signals();
    return code;
}

// `code`: how it went on this rank before.
static int train_in_job(train_run *r, int code)
{
    code = job_agree(&r->job, code == EXIT_SUCCESS ? prepare_run(r) : code);
    if (code != EXIT_SUCCESS)
        return code; // nothing follows on a rank whose command line is wrong
    if (r->job.rank == 0)
        report_warnings(clear_bar, &r->progress);
    code = train_take_resumed(r);
    if (code == EXIT_SUCCESS)
        code = make_session(r);
    if (code == EXIT_SUCCESS)
        code = train_load_resumed(r);
    if (code == EXIT_SUCCESS)
        code = prepare_training(r);
    code = job_agree(&r->job, code);
    return code == EXIT_SUCCESS ? train(r) : code;
}

static int open_job(const train_values *v, job *j)
{
    return job_open(j, job_kinds[v->comm], option_is_given("comm-timeout") ? v->comm_timeout : -1);
}

static int run_training(const train_values *values, int code)
{
    train_run r = {.values = values, .options = OT_TRAIN_OPTIONS_INIT};
    const int opened = open_job(values, &r.job);

    code = opened == EXIT_SUCCESS ? train_in_job(&r, code) : opened;
    report_no_warnings();
    progress_deinit(&r.progress);
    train_output_deinit(&r.output);
    data_setup_deinit(&r.data);
    ot_trainer_destroy(r.trainer);
    ot_session_destroy(r.session);
    ot_checkpoint_destroy(r.resumed);
    ot_resume_destroy(r.resume);
    ot_artifacts_destroy(r.artifacts);
    model_setup_deinit(&r.model);
    ot_model_destroy(r.forward);
    ot_string_free(r.config);
    job_close(&r.job);
    return code;
}

// All that is given, and what of it is wrong.
static int read_all(const train_values *v)
{
    int code = train_config_read(v);
    const char *model = train_config_model();

    if (code != EXIT_SUCCESS || v->print_config)
        return code;
    return model ? train_values_check(v, model) : report_arguments(&command_train, 0);
}

static int train_check(const void *values, const char *const *arguments)
{
    const train_values *v = values;
    int code = check_threads(v->threads);

    if (code == EXIT_SUCCESS)
        code = train_config_take_flags(v, arguments[0]);
    if (code == EXIT_SUCCESS && !train_config_is_elsewhere(v))
        code = read_all(v) == EXIT_SUCCESS ? EXIT_SUCCESS : EXIT_USAGE;
    if (code != EXIT_SUCCESS)
        train_config_deinit();
    return code;
}

static int train_refused(const void *values, int code)
{
    job j;

    if (open_job(values, &j) != EXIT_SUCCESS)
        return code;
    code = job_agree(&j, code);
    job_close(&j);
    return code;
}

static int run_command(const void *values, const char *const *arguments)
{
    const train_values *v = values;
    int code = EXIT_SUCCESS;

    (void)arguments;
    if (train_config_is_elsewhere(v) && read_all(v) != EXIT_SUCCESS)
        code = EXIT_FAILED;
    code = code == EXIT_SUCCESS && v->print_config ? train_config_print() : run_training(v, code);
    train_config_deinit();
    return code;
}

const command command_train = {
    .name = "train",
    .summary = "train a model and write it for inference",
    .arguments = "MODEL",
    .n_arguments = 1,
    .is_file_enough = true,
    .description = "Trains MODEL, an ONNX forward model (.onnx, or .onnxtxt in ONNX's textual "
                   "syntax) or a directory of "
                   "training artifacts, on --data and writes the trained model to --out. Ctrl-C "
                   "finishes the step, saves a checkpoint where --checkpoint-dir says, else the "
                   "model as it is, and ends with 130.",
    .example = "onnxtrain train model.onnx --data train.csv --loss cross-entropy --epochs 20 --out "
               "trained.onnx",
    .tables = {{train_option_table, 0},
               {data_option_table, offsetof(train_values, data)},
               {data_more_option_table, offsetof(train_values, data)},
               {model_option_table, offsetof(train_values, model)}},
    .values_size = sizeof(train_values),
    .check = train_check,
    .refused = train_refused,
    .run = run_command,
};
