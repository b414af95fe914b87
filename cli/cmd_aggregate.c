// SPDX-License-Identifier: Apache-2.0
// onnxtrain aggregate: one checkpoint of those that several processes have saved.
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "output_files.h"
#include "report.h"

typedef struct aggregate_values {
    const char *out;
    int format;
    bool quiet, untrusted;
    int64_t memory_max;
} aggregate_values;

#define AT(member) offsetof(aggregate_values, member)

enum { FORMAT_BY_NAME, FORMAT_CHECKPOINT, FORMAT_HDF5 };
static const char *const formats[] = {"name", "checkpoint", "hdf5", NULL};

static const option_spec aggregate_table[] = {
    {.help = "Files"},
    {"out", OPTION_TEXT, AT(out), "FILE", "where the whole state is written", NULL, NULL, 0},
    {"format", OPTION_CHOICE, AT(format), "NAME",
     "of --out; by its name, .ortcp, .h5 and .hdf5 are hdf5, all else a checkpoint", "name",
     formats, 0},
    {.help = "Running"},
    {"untrusted", OPTION_FLAG, AT(untrusted), NULL,
     "read every file in a process of its own, with limits", NULL, NULL, 0},
    MEMORY_MAX_OPTION(AT(memory_max)),
    {"quiet", OPTION_FLAG, AT(quiet), NULL, "print nothing but errors", NULL, NULL, 0},
    {0},
};

static int count_files(const char *const *files)
{
    int n = 0;

    while (files[n])
        n++;
    return n;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool is_hdf5(const aggregate_values *v)
{
    if (v->format != FORMAT_BY_NAME)
        return v->format == FORMAT_HDF5;
    return ends_with(v->out, ".ortcp") || ends_with(v->out, ".h5") || ends_with(v->out, ".hdf5");
}

static int aggregate_check(const void *values, const char *const *arguments)
{
    const aggregate_values *v = values;

    if (!v->out)
        return report_usage("--out is missing");
    return check_output_name("out", v->out, arguments, count_files(arguments));
}

static int write_state(const aggregate_values *v, ot_dict *state)
{
    ot_checkpoint *checkpoint = NULL;
    ot_status st;

    if (is_hdf5(v))
        return ot_dict_save_hdf5(state, v->out) == OT_OK ? EXIT_SUCCESS : report_error();
    st = ot_state_to_checkpoint(state, &checkpoint);
    if (st == OT_OK)
        st = ot_checkpoint_save(checkpoint, v->out, OT_CHECKPOINT_OPTIMIZER_STATE);
    ot_checkpoint_destroy(checkpoint);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

static void tell(const aggregate_values *v, ot_dict *state, int n_files)
{
    ot_dict *model, *full, *steps;
    int64_t n_updates = 0;

    if (v->quiet || ot_dict_get_dict(state, "model", &model) != OT_OK ||
        ot_dict_get_dict(model, "full_precision", &full) != OT_OK)
        return;
    if (ot_dict_get_dict(state, "train_step_info", &steps) == OT_OK)
        (void)ot_dict_get_int(steps, "optimization_step", &n_updates);
    printf("%s: %d weights of %d files, after %lld updates\n", v->out, ot_dict_count(full), n_files,
           (long long)n_updates);
}

static int aggregate_run(const void *values, const char *const *arguments)
{
    const aggregate_values *v = values;
    const int n = count_files(arguments);
    ot_dict *state = NULL;
    int code;

    set_memory_max(v->memory_max);
    code = check_output("out", v->out, arguments, n);
    if (code == EXIT_SUCCESS && (v->untrusted ? ot_state_aggregate_apart(arguments, n, &state)
                                              : ot_state_aggregate(arguments, n, &state)) != OT_OK)
        code = report_error();
    if (code == EXIT_SUCCESS)
        code = write_state(v, state);
    if (code == EXIT_SUCCESS)
        tell(v, state, n);
    ot_dict_destroy(state);
    return code;
}

const command command_aggregate = {
    .name = "aggregate",
    .summary = "join the checkpoints of several processes to one",
    .arguments = "FILE...",
    .n_arguments = 1,
    .may_be_more = true,
    .description = "Joins the checkpoints that the processes of one distributed training have "
                   "saved, HDF5 files as ONNX Runtime's ORTTrainer writes them with ZeRO, with "
                   "layers that are split by rows or columns, or with both. All files are needed, "
                   "in any order. What is whole in several of them must be the same in each.",
    .example = "onnxtrain aggregate checkpoint0.ortcp checkpoint1.ortcp --out whole.ortcp",
    .tables = {{aggregate_table, 0}},
    .values_size = sizeof(aggregate_values),
    .check = aggregate_check,
    .run = aggregate_run,
};
