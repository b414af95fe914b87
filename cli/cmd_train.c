// SPDX-License-Identifier: Apache-2.0
// onnxtrain train: from a forward model, or a folder of artifacts, to a trained model.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "output_files.h"
#include "recorded.h"
#include "report.h"
#include "train.h"

#define AT(member) offsetof(train_values, member)

enum { MAX_INPUTS = 256 };

static const char *const schedules[] = {"constant",    "linear",     "cosine", "step",
                                        "exponential", "polynomial", NULL};

static const option_spec train_table[] = {
    {.help = "Training"},
    {"epochs", OPTION_INT, AT(epochs), "N", "passes over the data", "10", NULL, 1},
    {"max-steps", OPTION_INT, AT(max_steps), "N", "stop after so many steps; 0: no limit", "0",
     NULL, 0},
    {"accumulate", OPTION_INT, AT(accumulate), "N",
     "batches per step; their gradients are averaged", "1", NULL, 1},
    {"lr", OPTION_REAL, AT(lr), "X", "learning rate", "0.001", NULL, 0},
    {"schedule", OPTION_CHOICE, AT(schedule), "NAME", "learning rate over the steps", "constant",
     schedules, 0},
    {"warmup", OPTION_INT, AT(warmup), "N", "steps over which the learning rate rises from 0", "0",
     NULL, 0},
    {"schedule-steps", OPTION_INT, AT(total_steps), "N",
     "steps until the schedule's end; 0: all of this run", "0", NULL, 0},
    {"step-size", OPTION_INT, AT(step_size), "N", "steps between two falls (step)", "1000", NULL,
     1},
    {"gamma", OPTION_REAL, AT(gamma), "X", "factor of a fall (step, exponential)", "0.1", NULL, 0},
    {"power", OPTION_REAL, AT(power), "X", "exponent (polynomial)", "1", NULL, 0},
    {"end-factor", OPTION_REAL, AT(end_factor), "X", "part of the learning rate left at the end",
     "0", NULL, 0},
    {"early-stop", OPTION_INT, AT(early_stop), "N",
     "stop after N epochs without a better loss; 0: never", "0", NULL, 0},
    {"keep-best", OPTION_FLAG, AT(keep_best), NULL, "end with the parameters of the best epoch",
     NULL, NULL, 0},
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "FILE", "the trained model, for inference; - is standard output",
     "MODEL-trained.onnx here; with --checkpoint-dir none", NULL, 0},
    {"checkpoint-dir", OPTION_TEXT, AT(checkpoint_dir), "DIR", "where checkpoints are saved", NULL,
     NULL, 0},
    {"save-every", OPTION_INT, AT(save_every), "N", "steps between checkpoints; 0: once an epoch",
     "0", NULL, 0},
    {"resume", OPTION_FLAG, AT(resume), NULL,
     "go on from the checkpoint in --checkpoint-dir, if there is one", NULL, NULL, 0},
    {"overwrite", OPTION_FLAG, AT(overwrite), NULL,
     "replace MODEL-trained.onnx, or the run in --checkpoint-dir", NULL, NULL, 0},
    {"dry-run", OPTION_FLAG, AT(dry_run), NULL,
     "check options, model and data, make one step, and write nothing", NULL, NULL, 0},
    {"log", OPTION_TEXT, AT(log), "FILE", "a JSON object per step, epoch and save, one a line",
     NULL, NULL, 0},
    {"tensorboard", OPTION_TEXT, AT(tensorboard), "DIR",
     "where an event file of the run is written, for TensorBoard", NULL, NULL, 0},
    {.help = "Running"},
    {"threads", OPTION_INT, AT(threads), "N", "0: all processors", "0", NULL, 0},
    {"reproducible", OPTION_FLAG, AT(reproducible), NULL, "the same bits for any number of threads",
     NULL, NULL, 0},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {"quiet", OPTION_FLAG, AT(quiet), NULL, "print nothing but errors", NULL, NULL, 0},
    {"json", OPTION_FLAG, AT(json), NULL, "print the result as one JSON object", NULL, NULL, 0},
    {0},
};

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// A folder's loss and optimizer are in its graphs: options that would change them promise what
// cannot be.
static int load_folder(train_run *r)
{
    static const char *const apply[] = {"target", "seed", "ignore-recorded", NULL};
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

static int make_artifacts(train_run *r)
{
    int code;

    r->from_folder = is_folder(r->path);
    if (r->from_folder)
        return load_folder(r);
    code = load_model(r->path, &r->forward);
    if (code == EXIT_SUCCESS)
        code = model_setup_init(&r->model, &r->values->model, r->forward);
    if (code != EXIT_SUCCESS)
        return code;
    if (ot_artifacts_generate(r->forward, &r->model.options, &r->artifacts) != OT_OK)
        return report_error();
    return EXIT_SUCCESS;
}

// The session may change whose moments they are.
static void take_owner(train_run *r)
{
    const char *owner;

    if (ot_checkpoint_get_string(r->resumed, "onnxtrain.optimizer", &owner) == OT_OK)
        snprintf(r->moments_of, sizeof(r->moments_of), "%s", owner);
}

static int make_session(train_run *r)
{
    const train_values *v = r->values;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_checkpoint *checkpoint = ot_artifacts_checkpoint(r->artifacts);
    struct stat info;
    char *path;

    if (v->resume) {
        path = path_in(v->checkpoint_dir, "", "checkpoint");
        if (!path)
            return EXIT_FAILED;
        if (stat(path, &info) == 0) {
            ot_checkpoint_destroy(ot_artifacts_take_checkpoint(r->artifacts)); // makes room
            if (ot_checkpoint_load(path, &r->resumed) != OT_OK) {
                free(path);
                return report_error();
            }
            checkpoint = r->resumed;
            take_owner(r);
        }
        free(path);
    }
    options.n_threads = (int)v->threads;
    options.reproducible = v->reproducible;
    options.memory_max = r->memory_max;
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
    batches->seed = (uint64_t)r->values->model.seed;
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
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    options.gradient_accumulation_steps = r->values->accumulate;
    return ot_trainer_create_from_session(r->session, &options, &r->trainer) == OT_OK
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
    if (r->resumed)
        fprintf(text, "resumed from %s/checkpoint, after step %lld\n", r->values->checkpoint_dir,
                (long long)r->start_step);
    if (r->output.usual_path)
        fprintf(text,
                r->values->dry_run
                    ? "dry run: nothing is written; the trained model would go to %s\n"
                    : "the trained model goes to %s\n",
                r->output.path);
    return fclose(text) == 0 ? EXIT_SUCCESS : report_text("out of memory");
}

// ---- what is noted before it begins ----

static bool note_left_over(train_run *r, const ot_batches *batches, const char *rows)
{
    char text[200];

    return !data_left_over(batches, rows, text, sizeof(text)) || progress_note(&r->progress, text);
}

// Plain SGD goes on from any state; every other rule refuses the moments of another, and finds none
// after plain SGD. A checkpoint of another maker does not say.
static bool note_moments(train_run *r)
{
    const bool is_plain = strcmp(optimizer_name(&r->values->model), "sgd") == 0;
    ot_property_kind kind;
    char text[200];

    if (!r->resumed || r->from_folder || is_plain == !r->moments_of[0] ||
        ot_checkpoint_property_kind_of(r->resumed, "onnxtrain.epoch", &kind) != OT_OK)
        return true;
    if (is_plain)
        snprintf(text, sizeof(text),
                 "the run was made with %s: sgd goes on from its parameters and drops its moments",
                 r->moments_of);
    else
        snprintf(text, sizeof(text),
                 "the run was made with sgd: %s goes on from its parameters with new moments, "
                 "after step %lld",
                 optimizer_name(&r->values->model), (long long)ot_session_step_count(r->session));
    return progress_note(&r->progress, text);
}

static int note_all(train_run *r)
{
    for (int i = 0; i < ot_artifacts_note_count(r->artifacts); i++)
        if (!progress_note(&r->progress, ot_artifacts_note(r->artifacts, i, NULL)))
            return report_text("out of memory");
    if (!note_left_over(r, r->data.training, "training rows") ||
        !note_left_over(r, r->data.validation, "validation rows") || !note_moments(r))
        return report_text("out of memory");
    return EXIT_SUCCESS;
}

// ---- the run ----

static ot_schedule make_schedule(const train_values *v)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    schedule.kind = (ot_schedule_kind)v->schedule;
    schedule.initial_lr = v->lr;
    schedule.warmup_steps = (double)v->warmup;
    schedule.total_steps = v->total_steps;
    schedule.step_size = v->step_size;
    schedule.gamma = v->gamma;
    schedule.power = v->power;
    schedule.end_factor = v->end_factor;
    return schedule;
}

static void set_options(train_run *r)
{
    const train_values *v = r->values;
    ot_train_options *options = &r->options;

    options->callback = progress_event;
    options->callback_context = &r->progress;
    r->schedule = make_schedule(v);
    options->schedule = &r->schedule;
    if (v->dry_run) {
        options->max_steps = 1;
        return;
    }
    options->epochs = v->epochs;
    options->max_steps = v->max_steps;
    options->checkpoint_dir = v->checkpoint_dir;
    options->save_every = v->save_every;
    options->resume = v->resume && r->resumed != NULL;
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
}

static int finish(train_run *r, const ot_metrics *metrics)
{
    if (r->output.path && !r->values->dry_run &&
        train_output_write(&r->output, r->session, r->artifacts, &r->data_options) != EXIT_SUCCESS)
        return EXIT_FAILED;
    train_report(r, metrics);
    return r->progress.has_lost_log ? EXIT_FAILED : EXIT_SUCCESS;
}

static int train(train_run *r)
{
    ot_metrics metrics;
    ot_status st;
    int code;

    code = note_all(r);
    r->start_step = ot_session_step_count(r->session);
    if (code == EXIT_SUCCESS)
        code = make_header(r);
    if (code != EXIT_SUCCESS)
        return code;
    set_options(r);
    progress_catch_signals();
    st = ot_train_run(r->trainer, r->data.training, r->values->dry_run ? NULL : r->data.validation,
                      &r->options, &metrics);
    if (st == OT_OK) {
        progress_clear(&r->progress);
        code = finish(r, &metrics);
    } else {
        code = train_rescue(r, st, &metrics);
    }
    progress_end_signals();
    return code;
}

static void start_progress(train_run *r)
{
    const train_values *v = r->values;

    r->progress = (progress){.task = r->options.task,
                             .is_quiet = v->quiet,
                             .is_json = v->json,
                             .out = v->out && strcmp(v->out, "-") == 0 ? stderr : stdout,
                             .is_terminal = progress_has_terminal(),
                             .saved_step = -1};
}

static int list_inputs(const train_values *v, const char *model, const char *inputs[MAX_INPUTS])
{
    const text_list *lists[] = {&v->data.data, &v->data.validation, &v->model.loss};
    int n = 1;

    inputs[0] = model;
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (int i = 0; i < lists[l]->count && n < MAX_INPUTS; i++)
            inputs[n++] = lists[l]->items[i];
    return n;
}

static int train_check(const void *values, const char *const *arguments)
{
    const train_values *v = values;
    const char *inputs[MAX_INPUTS];
    const int n = list_inputs(v, arguments[0], inputs);
    int code = data_values_check(&v->data);

    if (code == EXIT_SUCCESS)
        code = model_values_check(&v->model);
    if (code == EXIT_SUCCESS)
        code = check_threads(v->threads);
    if (code == EXIT_SUCCESS)
        code = check_output_name("out", v->out, inputs, n);
    if (code == EXIT_SUCCESS)
        code = check_output_name("log", v->log, inputs, n);
    if (code != EXIT_SUCCESS)
        return code;
    if (optimizer_is_none(&v->model))
        return report_usage("--optimizer: training needs one");
    if (v->checkpoint_dir && !*v->checkpoint_dir)
        return report_usage("--checkpoint-dir: the name is empty");
    if (v->tensorboard && !*v->tensorboard)
        return report_usage("--tensorboard: the name is empty");
    if (v->resume && !v->checkpoint_dir)
        return report_usage("--resume needs --checkpoint-dir");
    if (v->json && v->out && strcmp(v->out, "-") == 0)
        return report_usage("--json and --out - would both write to standard output");
    if (v->out && v->log && strcmp(v->out, v->log) == 0)
        return report_usage("--out and --log are the same file '%s'", v->out);
    return EXIT_SUCCESS;
}

// A model that cannot be written is better known before the training than after it.
static int check_outputs(train_run *r)
{
    const train_values *v = r->values;
    const char *inputs[MAX_INPUTS];
    const int n = list_inputs(v, r->path, inputs);
    int code = train_output_init(&r->output, v->out, r->path, v->checkpoint_dir, v->overwrite);

    if (code == EXIT_SUCCESS)
        code = check_output("out", r->output.path, inputs, n);
    if (code == EXIT_SUCCESS)
        code = check_output("log", v->log, inputs, n);
    if (code == EXIT_SUCCESS && v->checkpoint_dir && !v->resume && !v->overwrite)
        code = train_output_check_folder(v->checkpoint_dir);
    return code;
}

static int run_command(const void *values, const char *const *arguments)
{
    train_run r = {.values = values, .path = arguments[0], .options = OT_TRAIN_OPTIONS_INIT};
    int code = check_outputs(&r);

    r.memory_max = set_memory_max(r.values->memory_max);
    if (code == EXIT_SUCCESS)
        code = make_artifacts(&r);
    if (code == EXIT_SUCCESS)
        code = make_session(&r);
    if (code == EXIT_SUCCESS) {
        if (!r.resumed)
            ot_session_set_seed(r.session, (uint64_t)r.values->model.seed);
        code = make_data(&r);
    }
    if (code == EXIT_SUCCESS)
        code = make_trainer(&r);
    if (code == EXIT_SUCCESS)
        code = train_output_describe(&r.output, r.forward, r.data.training, &r.batches_options);
    if (code == EXIT_SUCCESS) {
        start_progress(&r);
        code = train(&r);
    }
    progress_deinit(&r.progress);
    train_output_deinit(&r.output);
    data_setup_deinit(&r.data);
    ot_trainer_destroy(r.trainer);
    ot_session_destroy(r.session);
    ot_checkpoint_destroy(r.resumed);
    ot_artifacts_destroy(r.artifacts);
    model_setup_deinit(&r.model);
    ot_model_destroy(r.forward);
    return code;
}

const command command_train = {
    .name = "train",
    .summary = "train a model and write it for inference",
    .arguments = "MODEL",
    .n_arguments = 1,
    .description = "Trains MODEL, an ONNX forward model (.onnx, or .onnxtxt in ONNX's textual "
                   "syntax) or a directory of "
                   "training artifacts, on --data and writes the trained model to --out. Ctrl-C "
                   "finishes the step, saves a checkpoint where --checkpoint-dir says, else the "
                   "model as it is, and ends with 130.",
    .example = "onnxtrain train model.onnx --data train.csv --loss cross-entropy --epochs 20 --out "
               "trained.onnx",
    .tables = {{train_table, 0},
               {data_option_table, AT(data)},
               {data_more_option_table, AT(data)},
               {model_option_table, AT(model)}},
    .values_size = sizeof(train_values),
    .check = train_check,
    .run = run_command,
};
