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
     "field or CSV columns (a,b or first:last, by name or position) that an input takes; by "
     "default the field of its name, else what is left",
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
    {"batch-size", OPTION_INT, AT(batch_size), "N", "rows a batch", "32", NULL, 1},
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

typedef struct binder {
    data_setup *setup;
    const data_values *values;
    const ot_dataset *dataset;
    const char **fields; // of every binding; NULL: not found yet
    char *columns;       // list made for a CSV
} binder;

// A field by name, else by position (-1 is the last, "#3" always a position); -1: there is none.
static int find_field(const ot_dataset *dataset, const char *text, size_t length)
{
    const int n = ot_dataset_field_count(dataset);
    char copy[24], *end;
    long position;

    for (int i = 0; i < n; i++)
        if (strlen(ot_dataset_field_name(dataset, i)) == length &&
            memcmp(ot_dataset_field_name(dataset, i), text, length) == 0)
            return i;
    if (length == 0 || length >= sizeof(copy))
        return -1;
    memcpy(copy, text, length);
    copy[length] = '\0';
    position = strtol(copy[0] == '#' ? copy + 1 : copy, &end, 10);
    if (*end != '\0' || position < -n || position >= n)
        return -1;
    return (int)(position < 0 ? position + n : position);
}

// Marks the fields that an input has, alone or in a list as "a,b" or "first:last".
static void mark_taken(const ot_dataset *dataset, const char *spec, bool *taken)
{
    const int whole = field_position(dataset, spec);

    if (whole >= 0) {
        taken[whole] = true;
        return;
    }
    while (*spec) {
        size_t length = strcspn(spec, ","), first_length = strcspn(spec, ",:");
        int first = find_field(dataset, spec, first_length), last = first;
        if (first_length < length)
            last = find_field(dataset, spec + first_length + 1, length - first_length - 1);
        for (int i = first; first >= 0 && i <= last; i++)
            taken[i] = true;
        spec += length + (spec[length] == ',');
    }
}

// A flag for every field: whether an input has it already. The caller frees them; NULL after a
// message.
static bool *find_taken(const binder *b)
{
    bool *taken = calloc((size_t)ot_dataset_field_count(b->dataset) + 1, sizeof(*taken));

    if (!taken)
        report_text("out of memory");
    for (int i = 0; taken && i < b->setup->n_bindings; i++)
        if (b->fields[i])
            mark_taken(b->dataset, b->fields[i], taken);
    return taken;
}

// The first input without fields that is no target; -1: none.
static int first_unbound(const binder *b)
{
    for (int i = 0; i < b->setup->n_bindings; i++)
        if (!b->fields[i] && !b->setup->is_target[i])
            return i;
    return -1;
}

// All columns that no input has, as ranges of positions: "#0:#63".
static int other_columns(binder *b, const bool *taken)
{
    const int n = ot_dataset_field_count(b->dataset);
    char *end;

    b->columns = calloc((size_t)n + 1, 32);
    if (!b->columns)
        return report_text("out of memory");
    end = b->columns;
    for (int i = 0; i < n; i++) {
        int last = i;
        if (taken[i])
            continue;
        while (last + 1 < n && !taken[last + 1])
            last++;
        end += sprintf(end, "%s#%d:#%d", end > b->columns ? "," : "", i, last);
        i = last;
    }
    return EXIT_SUCCESS;
}

// One input takes what is left of a CSV's columns; several must say which.
static int bind_csv(binder *b, const bool *taken)
{
    const int input = first_unbound(b);

    if (input < 0)
        return EXIT_SUCCESS;
    if (other_columns(b, taken) != EXIT_SUCCESS)
        return EXIT_FAILED;
    if (b->columns[0])
        b->fields[input] = b->columns;
    return EXIT_SUCCESS;
}

static void bind_in_order(binder *b, const bool *taken)
{
    int f = 0;
    ot_dtype dtype;
    ot_shape shape;

    for (int i = 0; i < b->setup->n_bindings; i++) {
        if (b->fields[i])
            continue;
        // What cannot be used (text, say) is passed over.
        while (f < ot_dataset_field_count(b->dataset) &&
               (taken[f] || ot_dataset_field_info(b->dataset, f, &dtype, &shape) != OT_OK))
            f++;
        if (f < ot_dataset_field_count(b->dataset))
            b->fields[i] = ot_dataset_field_name(b->dataset, f++);
    }
}

// The target's field; -1: there is no such field. Of several targets none is the last column.
static int find_label(const binder *b)
{
    const int n = ot_dataset_field_count(b->dataset);
    int label;

    if (b->values->label)
        return find_field(b->dataset, b->values->label, strlen(b->values->label));
    label = field_position(b->dataset, b->setup->bindings[b->setup->target].input);
    return label < 0 && is_csv(b->dataset) && b->setup->n_targets == 1 ? n - 1 : label;
}

static int bind_target(binder *b)
{
    const int target = b->setup->target;
    int label;

    if (target < 0)
        return b->values->label ? report_usage("--label: the model has no target input")
                                : EXIT_SUCCESS;
    if (b->fields[target])
        return EXIT_SUCCESS;
    label = find_label(b);
    if (label < 0 && b->values->label)
        return report_usage("--label: the data has no field '%s'", b->values->label);
    if (label >= 0)
        b->fields[target] = ot_dataset_field_name(b->dataset, label);
    return EXIT_SUCCESS;
}

static int bind_fields(binder *b)
{
    data_setup *setup = b->setup;
    bool *taken;
    int code;

    for (int i = 0; i < setup->n_bindings; i++)
        b->fields[i] = bound_by_option(b->values, setup->bindings[i].input);
    code = bind_target(b);
    for (int i = 0; i < setup->n_bindings; i++) {
        int position = field_position(b->dataset, setup->bindings[i].input);
        if (!b->fields[i] && position >= 0)
            b->fields[i] = ot_dataset_field_name(b->dataset, position);
    }
    taken = code == EXIT_SUCCESS ? find_taken(b) : NULL;
    if (!taken)
        return code != EXIT_SUCCESS ? code : EXIT_FAILED;
    if (is_csv(b->dataset))
        code = bind_csv(b, taken);
    else
        bind_in_order(b, taken);
    free(taken);
    for (int i = 0; code == EXIT_SUCCESS && i < setup->n_bindings; i++)
        if (!b->fields[i])
            code =
                report_text("nothing in the data is left for input '%s'; --bind %s=FIELD names it",
                            setup->bindings[i].input, setup->bindings[i].input);
    return code;
}

// Finds the fields of a dataset and opens batches over them. Training and validation data are bound
// one by one, since arrays may be named after their files.
static int open_batches(data_setup *setup, const data_values *values, const ot_dataset *dataset,
                        const ot_batches_options *options, ot_batches **out)
{
    binder b = {.setup = setup, .values = values, .dataset = dataset};
    int code;

    b.fields = calloc((size_t)setup->n_bindings + 1, sizeof(*b.fields));
    code = b.fields ? bind_fields(&b) : report_text("out of memory");
    if (code == EXIT_SUCCESS) {
        for (int i = 0; i < setup->n_bindings; i++)
            setup->bindings[i].fields = b.fields[i];
        if (ot_batches_create(dataset, setup->bindings, setup->n_bindings, options, out) != OT_OK)
            code = report_error();
    }
    free(b.fields);
    free(b.columns);
    return code;
}

static int input_position(const data_setup *setup, const char *name)
{
    for (int i = 0; i < setup->n_bindings; i++)
        if (strcmp(setup->bindings[i].input, name) == 0)
            return i;
    return -1;
}

static void add_target(data_setup *setup, int i)
{
    if (i < 0 || setup->is_target[i])
        return;
    setup->is_target[i] = true;
    if (setup->n_targets++ == 0)
        setup->target = i;
}

// Targets are the inputs that the loss brought, or names.
static void find_targets(data_setup *setup, const data_request *request)
{
    for (int t = 0; t < request->n_targets; t++)
        add_target(setup, input_position(setup, request->targets[t]));
    for (int i = 0; request->forward && i < setup->n_bindings; i++)
        if (!is_model_input(request->forward, setup->bindings[i].input))
            add_target(setup, i);
}

static int describe_inputs(data_setup *setup, const data_values *values,
                           const data_request *request)
{
    int n_channels = 1, n_std = 1, code = EXIT_SUCCESS;

    setup->n_bindings = ot_session_input_count(request->session, OT_MODE_TRAIN);
    setup->bindings = calloc((size_t)setup->n_bindings + 1, sizeof(*setup->bindings));
    setup->is_target = calloc((size_t)setup->n_bindings + 1, sizeof(*setup->is_target));
    if (!setup->bindings || !setup->is_target)
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
    }
    find_targets(setup, request);
    for (int i = 0; i < setup->n_bindings; i++) {
        ot_binding *binding = &setup->bindings[i];
        bool is_float = binding->dtype == OT_F32 || binding->dtype == OT_F64;
        if (setup->is_target[i]) {
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

static int make_validation(data_setup *setup, const data_values *values,
                           ot_batches_options *options)
{
    int n_found;

    options->shuffle = 0;
    if (!options->class_names) { // validation data may lack a class
        options->class_names = ot_batches_class_names(setup->training, &n_found);
        if (options->class_names)
            options->n_classes = n_found;
    }
    return open_batches(setup, values,
                        setup->validation_dataset ? setup->validation_dataset : setup->dataset,
                        options, &setup->validation);
}

// Arrays of an archive may differ in length, so the rows are those of what is bound.
static int count_rows(data_setup *setup, const data_values *values,
                      const ot_batches_options *options, int64_t *rows)
{
    ot_batches *all = NULL;
    const int code = open_batches(setup, values, setup->dataset, options, &all);

    *rows = all ? ot_batches_rows(all) : 0;
    ot_batches_destroy(all);
    return code;
}

static int make_batches(data_setup *setup, const data_values *values, const data_request *request,
                        bool is_training)
{
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    int64_t rows = 0, held_out = 0;
    int code;

    options.batch_size = values->batch_size;
    options.seed = request->seed;
    options.n_classes = (int)request->n_classes;
    options.class_names = request->class_names;
    if (request->class_names)
        options.n_classes = request->n_class_names;
    options.has_ignored_label = request->has_ignored_label;
    options.ignored_label = request->ignored_label;
    if (values->split > 0) {
        code = count_rows(setup, values, &options, &rows);
        held_out = code == EXIT_SUCCESS ? count_held_out(rows, values->split) : 0;
        if (code != EXIT_SUCCESS || held_out < 0)
            return code != EXIT_SUCCESS ? code : EXIT_USAGE;
    }
    if (held_out > 0) {
        options.split_seed = request->seed + 1;
        options.first = is_training ? 0 : rows - held_out;
        options.last = is_training ? rows - held_out : rows;
    }
    options.shuffle = is_training;
    code = open_batches(setup, values, setup->dataset, &options, &setup->training);
    if (code != EXIT_SUCCESS || !is_training || (held_out == 0 && !setup->validation_dataset))
        return code;
    options.first = held_out > 0 ? rows - held_out : 0;
    options.last = held_out > 0 ? rows : 0;
    return make_validation(setup, values, &options);
}

int data_setup_init(data_setup *setup, const data_values *values, const data_request *request,
                    bool is_training)
{
    ot_dataset_options options = OT_DATASET_OPTIONS_INIT;
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
        code = make_batches(setup, values, request, is_training);
    return code;
}

void data_setup_deinit(data_setup *setup)
{
    ot_batches_destroy(setup->training);
    ot_batches_destroy(setup->validation);
    ot_dataset_destroy(setup->dataset);
    ot_dataset_destroy(setup->validation_dataset);
    free(setup->bindings);
    free(setup->is_target);
    free(setup->mean);
    free(setup->std);
}
