// SPDX-License-Identifier: Apache-2.0
// Options of `train`, and what they alone show to be wrong.
#include <string.h>

#include "output_files.h"
#include "precision_options.h"
#include "report.h"
#include "train_config.h"

#define AT(member) offsetof(train_values, member)

static const char *const schedules[] = {"constant",    "linear",     "cosine", "step",
                                        "exponential", "polynomial", NULL};

static const char *const checkpoint_formats[] = {
    [OT_CHECKPOINT_FORMAT_AUTO] = "auto",
    [OT_CHECKPOINT_FORMAT_FILE] = "file",
    [OT_CHECKPOINT_FORMAT_DIRECTORY] = "directory",
    NULL,
};

const option_spec train_option_table[] = {
    {.help = "Training"},
    {"epochs", OPTION_INT, AT(epochs), "N", "passes over the data", "10", NULL, 1},
    {"max-steps", OPTION_INT, AT(max_steps), "N", "stop after so many steps; 0: no limit", "0",
     NULL, 0},
    {"accumulate", OPTION_INT, AT(accumulate), "N",
     "batches per step; their gradients are averaged", "1", NULL, 1},
    {"slices", OPTION_INT, AT(slices), "N",
     "parts of a batch that are computed one by one, as by so many processes; 0: as the run that "
     "is resumed, but at least one a process",
     "0", NULL, 0},
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
    PRECISION_OPTION(AT(precision)),
    {"early-stop", OPTION_INT, AT(early_stop), "N",
     "stop after N epochs without a better loss; 0: never", "0", NULL, 0},
    {"keep-best", OPTION_FLAG, AT(keep_best), NULL, "end with the parameters of the best epoch",
     NULL, NULL, 0},
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "FILE", "the trained model, for inference; - is standard output",
     "MODEL-trained.onnx here; with --checkpoint-dir none", NULL, 0},
    {"checkpoint-dir", OPTION_TEXT, AT(checkpoint_dir), "DIR", "where checkpoints are saved", NULL,
     NULL, 0},
    {"checkpoint-format", OPTION_CHOICE, AT(checkpoint_format), "NAME",
     "file: `checkpoint`, which one process writes; directory: `step-<n>`, to which each writes "
     "its "
     "part, and `latest`; auto: directory with --save-async, or where several processes have parts "
     "of the state (--zero)",
     "auto", checkpoint_formats, 0},
    {"save-async", OPTION_FLAG, AT(save_async), NULL,
     "write checkpoint directories while the training goes on, from a copy in memory", NULL, NULL,
     0},
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
    {.help = "Configuration"},
    {"config", OPTION_TEXT, AT(config), "FILE",
     "JSON: model, optimizer, options of the trainer, and under \"train\" options of this command "
     "by their names. Options of the command line go before it, and it goes before the environment "
     "variable OT_SET, which has a PATH=JSON a line",
     NULL, NULL, 0},
    {"set", OPTION_LIST, AT(set), "PATH=JSON",
     "one value of the configuration, as in options.batch.gradient_accumulation_steps=4", NULL,
     NULL, 0},
    {"print-config", OPTION_FLAG, AT(print_config), NULL,
     "print the configuration that counts, for --config, and end", NULL, NULL, 0},
    {.help = "Running"},
    {"comm", OPTION_CHOICE, AT(comm), "KIND",
     "the processes that share the work: auto: all that mpirun has started, if it has; mpi: those; "
     "self: this one",
     "auto", job_kinds, 0},
    {"comm-timeout", OPTION_REAL, AT(comm_timeout), "SECONDS",
     "how long a process waits for another before all end; 0: for ever", NULL, NULL, 0},
    {"zero", OPTION_INT, AT(zero), "STAGE",
     "what each process keeps a part of: 0: nothing; 1: what the optimizer keeps of the "
     "parameters; "
     "2: gradients, too; 3: values, too",
     "0", NULL, 0},
    {"sync-batch-norm", OPTION_FLAG, AT(sync_batch_norm), NULL,
     "batch normalisations take mean and variance of the whole batch, not of each process's part",
     NULL, NULL, 0},
    {"threads", OPTION_INT, AT(threads), "N",
     "0: all processors, or those that this process has of a job", "0", NULL, 0},
    {"reproducible", OPTION_FLAG, AT(reproducible), NULL, "the same bits for any number of threads",
     NULL, NULL, 0},
    MEMORY_MAX_OPTION(AT(memory_max)),
    RECOMPUTE_OPTION(AT(recompute)),
    {"quiet", OPTION_FLAG, AT(quiet), NULL, "print nothing but errors", NULL, NULL, 0},
    {"json", OPTION_FLAG, AT(json), NULL, "print the result as one JSON object", NULL, NULL, 0},
    {0},
};

int train_inputs(const train_values *v, const char *model, const char *inputs[TRAIN_MAX_INPUTS])
{
    const text_list *lists[] = {&v->data.data, &v->data.validation, &v->model.loss};
    int n = 0;

    inputs[n++] = model;
    if (v->config)
        inputs[n++] = v->config;
    for (size_t l = 0; l < sizeof(lists) / sizeof(lists[0]); l++)
        for (int i = 0; i < lists[l]->count && n < TRAIN_MAX_INPUTS; i++)
            inputs[n++] = lists[l]->items[i];
    return n;
}

int train_values_check(const train_values *v, const char *model)
{
    const char *inputs[TRAIN_MAX_INPUTS];
    const int n = train_inputs(v, model, inputs);
    int code = data_values_check(&v->data);

    if (code == EXIT_SUCCESS)
        code = model_values_check(&v->model);
    if (code == EXIT_SUCCESS)
        code = check_output_name("out", v->out, inputs, n);
    if (code == EXIT_SUCCESS)
        code = check_output_name("log", v->log, inputs, n);
    if (code != EXIT_SUCCESS)
        return code;
    if (!ot_config_optimizer(train_config())->name)
        return report_usage("--optimizer: training needs one");
    if (v->checkpoint_dir && !*v->checkpoint_dir)
        return report_usage("--checkpoint-dir: the name is empty");
    if (v->tensorboard && !*v->tensorboard)
        return report_usage("--tensorboard: the name is empty");
    if (v->resume && !v->checkpoint_dir)
        return report_usage("--resume needs --checkpoint-dir");
    if (v->save_async && !v->checkpoint_dir)
        return report_usage("--save-async needs --checkpoint-dir");
    if (v->save_async && v->checkpoint_format == OT_CHECKPOINT_FORMAT_FILE)
        return report_usage("--save-async needs --checkpoint-format directory");
    if (v->json && v->out && strcmp(v->out, "-") == 0)
        return report_usage("--json and --out - would both write to standard output");
    if (v->out && v->log && strcmp(v->out, v->log) == 0)
        return report_usage("--out and --log are the same file '%s'", v->out);
    return EXIT_SUCCESS;
}
