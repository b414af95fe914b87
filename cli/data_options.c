// SPDX-License-Identifier: Apache-2.0
#include "data_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "recorded.h"
#include "report.h"

#define AT(member) offsetof(data_values, member)

static const char *const headers[] = {"auto", "no", "yes", NULL};

const option_spec data_option_table[] = {
    {.help = "Data"},
    {"data", OPTION_LIST, AT(data), "[NAME=]FILE",
     ".npz, .npy, CSV or IDX, each also gzipped; several files give their fields together", NULL,
     NULL, 0},
    {"bind", OPTION_LIST, AT(bind), "INPUT=FIELD",
     "field or CSV columns (a,b or first:last, by name or position) that an input takes; by "
     "default the field of its name, else what is left",
     NULL, NULL, 0},
    {"label", OPTION_TEXT, AT(label), "FIELD", "field of the target",
     "the one named like the target input, else the last CSV column", NULL, 0},
    {"header", OPTION_CHOICE, AT(header), "HOW", "whether a CSV's first row names its columns",
     "auto", headers, 0},
    {"scale", OPTION_REAL, AT(scale), "X", "factor on the features, applied first", "1", NULL,
     ANY_NUMBER},
    {"mean", OPTION_TEXT, AT(mean), "X,X,...",
     "subtracted from the features: one, or one a channel", NULL, NULL, 0},
    {"std", OPTION_TEXT, AT(std), "X,X,...", "the features are divided by it", NULL, NULL, 0},
    {"max-unpacked", OPTION_BYTES, AT(max_unpacked), "BYTES",
     "what a packed file may become; 0: 1,000 times its size, or 64M", "0", NULL, 0},
    {"batch-size", OPTION_INT, AT(batch_size), "N",
     "rows a batch; where the model takes one number alone, that", "32", NULL, 1},
    {"split", OPTION_PART, AT(split), "PART",
     "part of the rows held out for validation, chosen by the seed; eval measures on these alone",
     "0", NULL, 0},
    {0},
};

const option_spec data_more_option_table[] = {
    {"validation", OPTION_LIST, AT(validation), "[NAME=]FILE",
     "data to validate on after each epoch", NULL, NULL, 0},
    {0},
};

static int parse_numbers(const char *option, const char *text, double **out, int *count)
{
    int n = 1;

    for (const char *p = text; *p; p++)
        n += *p == ',';
    *out = malloc((size_t)n * sizeof(**out));
    if (!*out)
        return report_text("out of memory");
    for (int i = 0; i < n; i++) {
        char *end;
        (*out)[i] = strtod(text, &end);
        if (end == text || (*end != ',' && *end != '\0') || !isfinite((*out)[i]))
            return report_usage("--%s: '%s' is not a number", option, text);
        text = end + 1;
    }
    *count = n;
    return EXIT_SUCCESS;
}

// One number for all channels, or one for each.
static int check_numbers(const data_values *values)
{
    double *mean = NULL, *std = NULL;
    int n_mean = 1, n_std = 1, code = EXIT_SUCCESS;

    if (values->mean)
        code = parse_numbers("mean", values->mean, &mean, &n_mean);
    if (code == EXIT_SUCCESS && values->std)
        code = parse_numbers("std", values->std, &std, &n_std);
    if (code == EXIT_SUCCESS && values->mean && values->std && n_mean != n_std)
        code =
            report_usage("--mean has %d number%s, --std %d", n_mean, n_mean == 1 ? "" : "s", n_std);
    for (int i = 0; code == EXIT_SUCCESS && std && i < n_std; i++)
        if (!(std[i] > 0))
            code = report_usage("--std: %g is not above 0", std[i]);
    free(mean);
    free(std);
    return code;
}

int data_values_check(const data_values *values)
{
    const text_list *files[] = {&values->data, &values->validation};
    const char *const names[] = {"data", "validation"};

    if (values->data.count == 0)
        return report_usage("--data is missing");
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < files[l]->count; i++)
            if (!*files[l]->items[i])
                return report_usage("--%s: the name is empty", names[l]);
    if (values->validation.count > 0 && values->split > 0)
        return report_usage("--validation and --split exclude each other");
    for (int i = 0; i < values->bind.count; i++) {
        const char *text = values->bind.items[i], *equals = strchr(text, '=');
        if (!equals || equals == text || !equals[1])
            return report_usage("--bind: '%s' is not INPUT=FIELD", text);
    }
    return check_numbers(values);
}

static int read_numbers(data_setup *setup, const data_values *values, const ot_record *record,
                        ot_data_options *options, ot_batches_options *batches)
{
    int n_mean = 1, n_std = 1, code = EXIT_SUCCESS;

    if (values->mean)
        code = parse_numbers("mean", values->mean, &setup->mean, &n_mean);
    if (code == EXIT_SUCCESS && values->std)
        code = parse_numbers("std", values->std, &setup->std, &n_std);
    options->mean = setup->mean;
    options->std = setup->std;
    options->n_channels = values->mean ? n_mean : n_std;
    options->scale = values->scale;
    if (code != EXIT_SUCCESS)
        return code;
    return recorded_take_data(record, values, n_mean, n_std, options, batches);
}

// The library's messages on what an option says begin with its name, and may name another one by
// its field.
static int report_option(void)
{
    static const char *const options[] = {"bind: ", "label: ", "split: ", "batch-size: "};
    static const char *const named[][2] = {{"class_axis=", "--class-axis "},
                                           {"; bind ", "; --bind "}};
    const char *message = ot_error_message();

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        const char *at = strstr(message, named[i][0]);
        if (at)
            return report_text("%.*s%s%s", (int)(at - message), message, named[i][1],
                               at + strlen(named[i][0]));
    }
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strncmp(message, options[i], strlen(options[i])) == 0)
            return report_text("--%s", message);
    return report_error();
}

// The library calls the option as its C and Python interface do.
static int report_open(void)
{
    static const char name[] = "max_unpacked";
    const char *message = ot_error_message(), *at = strstr(message, name);

    return at ? report_text("%.*s--max-unpacked%s", (int)(at - message), message, at + strlen(name))
              : report_error();
}

static int open_files(data_setup *setup, const data_values *values)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;

    options.csv_header = values->header - 1;
    options.max_unpacked = (uint64_t)values->max_unpacked;
    if (ot_dataset_open(values->data.items, values->data.count, &options, &setup->dataset) != OT_OK)
        return report_open();
    if (values->validation.count > 0 &&
        ot_dataset_open(values->validation.items, values->validation.count, &options,
                        &setup->validation_dataset) != OT_OK)
        return report_open();
    return EXIT_SUCCESS;
}

int data_setup_init(data_setup *setup, const data_values *values, const ot_record *record,
                    const ot_session *session, ot_data_options *options,
                    ot_batches_options *batches)
{
    int code;

    *setup = (data_setup){0};
    code = open_files(setup, values);
    if (code == EXIT_SUCCESS)
        code = read_numbers(setup, values, record, options, batches);
    if (code != EXIT_SUCCESS)
        return code;
    options->label = values->label;
    options->bind = values->bind.items;
    options->n_bind = values->bind.count;
    options->split = values->split;
    if (option_is_given("batch-size"))
        batches->batch_size = values->batch_size;
    if (ot_train_batches(session, setup->dataset, setup->validation_dataset, options,
                         &setup->training, &setup->validation) != OT_OK)
        return report_option();
    return EXIT_SUCCESS;
}

bool data_left_over(const ot_batches *batches, const char *rows, char *text, size_t size)
{
    const long long all = (long long)ot_batches_rows(batches);
    const long long left = (long long)ot_batches_left_over(batches);

    if (left == 0)
        return false;
    snprintf(text, size,
             "%lld of the %lld %s are left over and not used: the model takes "
             "batches of %lld rows and no others",
             left, all, rows, (all - left) / (long long)ot_batches_count(batches));
    return true;
}

void data_setup_deinit(data_setup *setup)
{
    ot_batches_destroy(setup->training);
    ot_batches_destroy(setup->validation);
    ot_dataset_destroy(setup->dataset);
    ot_dataset_destroy(setup->validation_dataset);
    free(setup->mean);
    free(setup->std);
}
