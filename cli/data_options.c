#include "data_options.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

#define AT(member) offsetof(data_values, member)

static const char *const headers[] = {"auto", "no", "yes", NULL};

const option_spec data_option_table[] = {
    {.help = "Data"},
    {"data", OPTION_LIST, AT(data), "[NAME=]FILE",
     ".npz, .npy, CSV or IDX, each also gzipped; several files give their fields together", NULL,
     NULL, 0},
    {"bind", OPTION_LIST, AT(bind), "INPUT=FIELD",
     "field or CSV columns (a,b or first:last) that an input takes; by default the field of its "
     "name, else "
     "what is left, in order",
     NULL, NULL, 0},
    {"label", OPTION_TEXT, AT(label), "FIELD", "field of the target",
     "the one named like the target input, else the last CSV column", NULL, 0},
    {"header", OPTION_CHOICE, AT(header), "HOW", "whether a CSV's first row names its columns",
     "auto", headers, 0},
    {"scale", OPTION_REAL, AT(scale), "X", "factor on the features, applied first", "1", NULL,
     -1e300},
    {"mean", OPTION_TEXT, AT(mean), "X,X,...",
     "subtracted from the features: one, or one a channel", NULL, NULL, 0},
    {"std", OPTION_TEXT, AT(std), "X,X,...", "the features are divided by it", NULL, NULL, 0},
    {"batch-size", OPTION_INT, AT(batch_size), "N", "rows a step", "32", NULL, 1},
    {"split", OPTION_REAL, AT(split), "PART",
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
        if (end == text || (*end != ',' && *end != '\0'))
            return report_usage("--%s: '%s' is no number", option, text);
        text = end + 1;
    }
    *count = n;
    return EXIT_SUCCESS;
}

static bool is_model_input(const ot_model *model, const char *name)
{
    for (int i = 0; i < ot_model_input_count(model); i++)
        if (strcmp(ot_model_input_name(model, i), name) == 0)
            return true;
    return false;
}

static int field_position(const ot_dataset *dataset, const char *name)
{
    for (int i = 0; i < ot_dataset_field_count(dataset); i++)
        if (strcmp(ot_dataset_field_name(dataset, i), name) == 0)
            return i;
    return -1;
}

static bool is_csv(const ot_dataset *dataset)
{
    ot_dtype dtype;
    ot_shape shape;

    for (int i = 0; i < ot_dataset_field_count(dataset); i++)
        if (ot_dataset_field_info(dataset, i, &dtype, &shape) != OT_OK || shape.ndim != 0 ||
            (dtype != OT_F64 && dtype != OT_STRING))
            return false;
    return ot_dataset_field_count(dataset) > 0;
}

// The text behind "input=" among the --bind options.
static const char *bound_by_option(const data_values *values, const char *input)
{
    size_t length = strlen(input);

    for (int i = 0; i < values->bind.count; i++)
        if (strncmp(values->bind.items[i], input, length) == 0 &&
            values->bind.items[i][length] == '=')
            return values->bind.items[i] + length + 1;
    return NULL;
}

static int check_bind_options(const data_values *values, const data_setup *setup)
{
    for (int i = 0; i < values->bind.count; i++) {
        const char *text = values->bind.items[i], *equals = strchr(text, '=');
        bool known = false;
        if (!equals)
            return report_usage("--bind: '%s' is not INPUT=FIELD", text);
        for (int k = 0; k < setup->n_bindings; k++)
            known =
                known || (strlen(setup->bindings[k].input) == (size_t)(equals - text) &&
                          strncmp(setup->bindings[k].input, text, (size_t)(equals - text)) == 0);
        if (!known)
            return report_usage("--bind: there is no input '%.*s'", (int)(equals - text), text);
    }
    return EXIT_SUCCESS;
}

// All columns but the label's, as one list; the caller frees it.
static char *other_columns(const ot_dataset *dataset, int label)
{
    size_t size = 1;
    char *list;

    for (int i = 0; i < ot_dataset_field_count(dataset); i++)
        size += 24;
    list = calloc(1, size);
    for (int i = 0, n = 0; list && i < ot_dataset_field_count(dataset); i++) {
        int last = i;
        if (i == label)
            continue;
        while (last + 1 < ot_dataset_field_count(dataset) && last + 1 != label)
            last++;
        sprintf(list + strlen(list), "%s%d:%d", n++ ? "," : "", i, last);
        i = last;
    }
    return list;
}

typedef struct binder {
    data_setup *setup;
    const data_values *values;
    const data_request *request;
    char *columns; // list made for a CSV; owned
} binder;

// Field names that count as positions in `other_columns` must not be column names that are numbers
// in another order; CSVs without a header name their columns by position, so both agree.
static void bind_csv(binder *b, int label)
{
    for (int i = 0; i < b->setup->n_bindings; i++) {
        ot_binding *binding = &b->setup->bindings[i];
        if (binding->fields)
            continue;
        if (i == b->setup->target) {
            binding->fields = ot_dataset_field_name(b->setup->dataset, label);
        } else if (!b->columns) {
            b->columns = other_columns(b->setup->dataset, b->setup->target >= 0 ? label : -1);
            binding->fields = b->columns;
        }
    }
}

static void bind_in_order(binder *b)
{
    const ot_dataset *dataset = b->setup->dataset;

    for (int f = 0; f < ot_dataset_field_count(dataset); f++) {
        const char *name = ot_dataset_field_name(dataset, f);
        bool is_used = false;
        for (int i = 0; i < b->setup->n_bindings; i++)
            is_used = is_used || (b->setup->bindings[i].fields &&
                                  strcmp(b->setup->bindings[i].fields, name) == 0);
        for (int i = 0; !is_used && i < b->setup->n_bindings; i++)
            if (!b->setup->bindings[i].fields) {
                b->setup->bindings[i].fields = name;
                is_used = true;
            }
    }
}

static int find_label(const binder *b)
{
    const ot_dataset *dataset = b->setup->dataset;
    int n = ot_dataset_field_count(dataset), label;

    if (b->values->label) {
        char *end;
        long position = strtol(b->values->label, &end, 10);
        label = field_position(dataset, b->values->label);
        if (label < 0 && *end == '\0' && position >= -n && position < n)
            label = (int)(position < 0 ? position + n : position);
        return label;
    }
    label = b->setup->target >= 0
                ? field_position(dataset, b->setup->bindings[b->setup->target].input)
                : -1;
    return label >= 0 ? label : n - 1;
}

static int bind_fields(binder *b)
{
    data_setup *setup = b->setup;
    int label = find_label(b);

    if (label < 0)
        return report_usage("--label: the data has no field '%s'", b->values->label);
    for (int i = 0; i < setup->n_bindings; i++) {
        ot_binding *binding = &setup->bindings[i];
        int position = field_position(setup->dataset, binding->input);
        binding->fields = bound_by_option(b->values, binding->input);
        if (!binding->fields && i == setup->target && b->values->label)
            binding->fields = ot_dataset_field_name(setup->dataset, label);
        if (!binding->fields && position >= 0)
            binding->fields = ot_dataset_field_name(setup->dataset, position);
    }
    if (is_csv(setup->dataset))
        bind_csv(b, label);
    bind_in_order(b);
    for (int i = 0; i < setup->n_bindings; i++)
        if (!setup->bindings[i].fields)
            return report_text(
                "nothing in the data is left for input '%s'; --bind %s=FIELD names it",
                setup->bindings[i].input, setup->bindings[i].input);
    return EXIT_SUCCESS;
}

static int describe_inputs(data_setup *setup, const data_values *values,
                           const data_request *request)
{
    int n_channels = 1, n_std = 1, code = EXIT_SUCCESS;

    setup->n_bindings = ot_session_input_count(request->session, OT_MODE_TRAIN);
    setup->bindings = calloc((size_t)setup->n_bindings + 1, sizeof(*setup->bindings));
    if (!setup->bindings)
        return report_text("out of memory");
    if (values->mean)
        code = parse_numbers("mean", values->mean, &setup->mean, &n_channels);
    if (code == EXIT_SUCCESS && values->std)
        code = parse_numbers("std", values->std, &setup->std, &n_std);
    if (code != EXIT_SUCCESS)
        return code;
    if (values->mean && values->std && n_channels != n_std)
        return report_usage("--mean has %d numbers, --std %d", n_channels, n_std);
    for (int i = 0; i < setup->n_bindings; i++) {
        ot_binding *binding = &setup->bindings[i];
        ot_shape shape;

        binding->input = ot_session_input_name(request->session, OT_MODE_TRAIN, i);
        if (ot_session_input_info(request->session, OT_MODE_TRAIN, i, &binding->dtype, &shape) !=
            OT_OK)
            return report_error();
        if (shape.ndim < 1)
            return report_text("input '%s' has no batch axis", binding->input);
        binding->shape.ndim = shape.ndim - 1;
        memcpy(binding->shape.dim, shape.dim + 1, (size_t)binding->shape.ndim * sizeof(int64_t));
        binding->scale = 1;
        binding->n_channels = 1;
        if (request->forward
                ? !is_model_input(request->forward, binding->input)
                : strcmp(binding->input, "labels") == 0 || strcmp(binding->input, "target") == 0)
            setup->target = i;
    }
    for (int i = 0; i < setup->n_bindings; i++) {
        ot_binding *binding = &setup->bindings[i];
        bool is_float = binding->dtype == OT_F32 || binding->dtype == OT_F64;
        if (i == setup->target) {
            binding->is_class = !is_float;
        } else if (is_float) {
            binding->scale = values->scale;
            binding->mean = setup->mean;
            binding->std = setup->std;
            binding->n_channels = values->mean ? n_channels : n_std;
        }
    }
    return EXIT_SUCCESS;
}

// How many of the rows --split holds out; below 0 after a message.
static int64_t count_held_out(int64_t rows, double split)
{
    const int64_t held_out = (int64_t)((double)rows * split + 0.5);

    if (split == 0 || (split < 1 && held_out > 0 && held_out < rows))
        return held_out;
    report_usage("--split: %g of %lld rows leaves none to %s", split, (long long)rows,
                 split < 1 && held_out == 0 ? "validate on" : "train on");
    return -1;
}

// Batches over the rows that are trained on, or in eval those that are measured on.
static int make_main_batches(data_setup *setup, const ot_batches_options *options)
{
    return ot_batches_create(setup->dataset, setup->bindings, setup->n_bindings, options,
                             &setup->training) == OT_OK
               ? EXIT_SUCCESS
               : report_error();
}

static int make_validation(data_setup *setup, ot_batches_options *options)
{
    int n_found;

    options->shuffle = 0;
    if (!options->class_names) { // validation data may lack a class
        options->class_names = ot_batches_class_names(setup->training, &n_found);
        if (options->class_names)
            options->n_classes = n_found;
    }
    return ot_batches_create(setup->validation_dataset ? setup->validation_dataset : setup->dataset,
                             setup->bindings, setup->n_bindings, options,
                             &setup->validation) == OT_OK
               ? EXIT_SUCCESS
               : report_error();
}

static int make_batches(data_setup *setup, const data_values *values, const data_request *request,
                        bool is_training)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    const int64_t rows = ot_dataset_rows(setup->dataset);
    const int64_t held_out = count_held_out(rows, values->split);
    int code;

    if (held_out < 0)
        return EXIT_USAGE;
    options.batch_size = values->batch_size;
    options.seed = request->seed;
    options.n_classes = (int)request->n_classes;
    options.class_names = request->class_names;
    if (request->class_names)
        options.n_classes = request->n_class_names;
    if (held_out > 0) {
        options.split_seed = request->seed + 1;
        options.first = is_training ? 0 : rows - held_out;
        options.last = is_training ? rows - held_out : rows;
    }
    options.shuffle = is_training;
    code = make_main_batches(setup, &options);
    if (code != EXIT_SUCCESS || !is_training || (held_out == 0 && !setup->validation_dataset))
        return code;
    options.first = held_out > 0 ? rows - held_out : 0;
    options.last = held_out > 0 ? rows : 0;
    return make_validation(setup, &options);
}

int data_setup_init(data_setup *setup, const data_values *values, const data_request *request,
                    bool is_training)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;
    binder b = {.setup = setup, .values = values, .request = request};
    int code;

    *setup = (data_setup){.target = -1};
    options.csv_header = values->header - 1;
    if (values->data.count == 0)
        return report_usage("--data is missing");
    if (values->validation.count > 0 && values->split > 0)
        return report_usage("--validation and --split exclude each other");
    if (ot_dataset_open(values->data.items, values->data.count, &options, &setup->dataset) != OT_OK)
        return report_error();
    if (values->validation.count > 0 &&
        ot_dataset_open(values->validation.items, values->validation.count, &options,
                        &setup->validation_dataset) != OT_OK)
        return report_error();
    code = describe_inputs(setup, values, request);
    if (code == EXIT_SUCCESS)
        code = check_bind_options(values, setup);
    if (code == EXIT_SUCCESS)
        code = bind_fields(&b);
    if (code == EXIT_SUCCESS)
        code = make_batches(setup, values, request, is_training);
    free(b.columns);
    return code;
}

void data_setup_deinit(data_setup *setup)
{
    ot_batches_destroy(setup->training);
    ot_batches_destroy(setup->validation);
    ot_dataset_destroy(setup->dataset);
    ot_dataset_destroy(setup->validation_dataset);
    free(setup->bindings);
    free(setup->mean);
    free(setup->std);
}
