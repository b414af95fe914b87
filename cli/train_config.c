// SPDX-License-Identifier: Apache-2.0
#include "train_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "precision_options.h"
#include "report.h"

static ot_config *config;
static const char *model_argument; // of the command line; NULL: none
static const char *odd_name;       // that is not UTF-8, and recorded with '?'; NULL: none

const ot_config *train_config(void)
{
    return config;
}

const char *train_config_model(void)
{
    return model_argument ? model_argument : ot_config_model(config);
}

void train_config_deinit(void)
{
    ot_config_destroy(config);
    config = NULL;
}

// ---- where options stand ----

// Options of the command that stand outside of "train"; "": on the command line alone.
static const struct place {
    const char *option, *path;
} places[] = {
    {"accumulate", "options.batch.gradient_accumulation_steps"},
    {"schedule", "options.lr_scheduler.type"},
    {"warmup", "options.lr_scheduler.warmup_steps"},
    {"schedule-steps", "options.lr_scheduler.total_steps"},
    {"step-size", "options.lr_scheduler.step_size"},
    {"gamma", "options.lr_scheduler.gamma"},
    {"power", "options.lr_scheduler.power"},
    {"end-factor", "options.lr_scheduler.end_factor"},
    {"precision", "options.onnxtrain.precision"},
    {"threads", "options.onnxtrain.threads"},
    {"reproducible", "options.onnxtrain.reproducible"},
    {"memory-max", "options.onnxtrain.memory_max"},
    {"recompute", "options.graph_transformer"},
    {"seed", "options.onnxtrain.seed"},
    {"lr", "optimizer.lr"},
    {"clip-norm", "optimizer.max_norm"},
    {"optimizer", "optimizer.name"},
    {"no-decay", "optimizer.params"},
    {"beta1", "optimizer"},
    {"beta2", "optimizer"},
    {"epsilon", "optimizer"},
    {"weight-decay", "optimizer"},
    {"adam-mode", "optimizer"},
    {"momentum", "optimizer"},
    {"nesterov", "optimizer"},
    {"config", ""},
    {"set", ""},
    {"print-config", ""},
};
enum { N_PLACES = sizeof places / sizeof places[0], MOST_LETTERS = 64 };
static const char schedule_path[] = "options.lr_scheduler";

// NULL: in "train", by its name.
static const char *place_of(const char *option)
{
    for (int i = 0; i < N_PLACES; i++)
        if (strcmp(places[i].option, option) == 0)
            return places[i].path;
    return NULL;
}

static bool is_given_at(const char *path)
{
    ot_config_source source;
    return ot_config_source_of(config, path, &source) == OT_OK;
}

static const char *check_train_value(void *context, const char *name, const char *value)
{
    static char why[OPTION_WHY_MAX];
    const int index = option_find(name);
    const char *place = place_of(name), *nearest;

    (void)context;
    if (index < 0) {
        nearest = option_nearest(name);
        snprintf(why, sizeof why, "unknown field%s%s%s", nearest ? "; did you mean '" : "",
                 nearest ? nearest : "", nearest ? "'?" : "");
    } else if (place) {
        snprintf(why, sizeof why, *place ? "is an option of the command; it stands in %s" : "%s",
                 *place ? place : "is an option of the command line alone");
    } else if (option_check(index, value, why)) {
        return NULL;
    }
    return why;
}

// ---- options of the command line ----

// Names of files are bytes, and JSON is UTF-8.
static json_t *name_json(const char *name)
{
    json_t *json = json_string(name);

    if (json)
        return json;
    odd_name = name;
    return text_json(name);
}

static json_t *list_json(const text_list *list)
{
    json_t *array = json_array();

    for (int i = 0; i < list->count; i++)
        json_array_append_new(array, name_json(list->items[i]));
    return array;
}

static json_t *value_json(const option_spec *spec, const void *at, const char *no_limit)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        return json_boolean(*(const bool *)at);
    case OPTION_TEXT:
        return name_json(*(const char *const *)at);
    case OPTION_LIST:
        return list_json(at);
    case OPTION_BYTES:
        if (*(const int64_t *)at == INT64_MAX)
            return json_string(no_limit);
        // fall through
    case OPTION_INT:
        return json_integer(*(const int64_t *)at);
    case OPTION_REAL:
    case OPTION_PART:
        return json_real(*(const double *)at);
    case OPTION_CHOICE:
        return json_string(spec->choices[*(const int *)at]);
    }
    return NULL;
}

static int give_option(const option_spec *spec, const void *at, ot_config_source source)
{
    const char *place = place_of(spec->name);
    char path[MOST_LETTERS];

    if (strcmp(spec->name, "recompute") == 0)
        return recompute_give(config, at, source);
    snprintf(path, sizeof path, "train.%s", spec->name);
    return config_give(config, place ? place : path,
                       value_json(spec, at, place ? "unlimited" : "none"), source);
}

static bool is_of_schedule(const char *option)
{
    const char *place = place_of(option);

    return place && strncmp(place, schedule_path, strlen(schedule_path)) == 0;
}

// Of the optimizer only what every one has: others may be called otherwise.
static bool stands_by_itself(const char *option)
{
    const char *place = place_of(option);

    return !place || strcmp(option, "lr") == 0 || strcmp(option, "clip-norm") == 0 ||
           (*place && strncmp(place, "optimizer", strlen("optimizer")) != 0);
}

// Options that are given, but for what depends on the file.
static int give_options(void)
{
    const option_spec *spec;
    const void *at;
    int code = EXIT_SUCCESS;

    for (int i = 0; code == EXIT_SUCCESS && (spec = option_at(i, &at)) != NULL; i++)
        if (option_is_given(spec->name) && stands_by_itself(spec->name) &&
            !is_of_schedule(spec->name))
            code = give_option(spec, at, OT_CONFIG_FLAG);
    return code;
}

static int give_setting(const char *text)
{
    const char *equals = strchr(text, '=');
    char *path;
    ot_status st;

    if (!equals || equals == text)
        return report_usage("--set: '%s' is not PATH=JSON", text);
    path = strndup(text, (size_t)(equals - text));
    if (!path)
        return report_text("out of memory");
    st = ot_config_set(config, path, equals + 1, OT_CONFIG_FLAG);
    free(path);
    return st == OT_OK ? EXIT_SUCCESS : report_usage("--set: %s", ot_error_message());
}

// What a run does where nobody says anything, so that it is said.
static int give_defaults(void)
{
    int code = EXIT_SUCCESS;

    for (const option_spec *spec = train_option_table; !option_is_end(spec); spec++) {
        const void *at;

        if (code == EXIT_SUCCESS && spec->name && spec->fallback && spec->kind == OPTION_INT &&
            !place_of(spec->name)) {
            (void)option_at(option_find(spec->name), &at);
            code = give_option(spec, at, OT_CONFIG_ENVIRONMENT);
        }
    }
    return code;
}

int train_config_take_flags(const train_values *values, const char *model)
{
    int code = EXIT_SUCCESS;

    model_argument = model;
    if (ot_config_create(&config) != OT_OK ||
        ot_config_set_train_function(config, check_train_value, NULL) != OT_OK)
        return report_error();
    for (int i = 0; code == EXIT_SUCCESS && i < values->set.count; i++)
        code = give_setting(values->set.items[i]);
    if (code == EXIT_SUCCESS && model)
        code = config_give(config, "model", name_json(model), OT_CONFIG_FLAG);
    return code == EXIT_SUCCESS ? give_options() : code;
}

// ---- options that depend on what the file says ----

// A kind begins anew; without one, what is given changes the schedule that there is.
static int give_schedule(void)
{
    const bool is_new = option_is_given("schedule") || !is_given_at(schedule_path);
    const option_spec *spec;
    const void *at;
    bool is_given = false;
    int code = EXIT_SUCCESS;

    for (int i = 0; i < N_PLACES; i++)
        is_given |= is_of_schedule(places[i].option) && option_is_given(places[i].option);
    for (int i = 0; is_given && code == EXIT_SUCCESS && i < N_PLACES; i++) {
        if (!is_of_schedule(places[i].option) || (!is_new && !option_is_given(places[i].option)))
            continue;
        spec = option_at(option_find(places[i].option), &at);
        code = give_option(spec, at, OT_CONFIG_FLAG);
    }
    return code;
}

static bool has_optimizer_option(void)
{
    for (int i = 0; i < N_PLACES; i++)
        if (option_is_given(places[i].option) && !stands_by_itself(places[i].option) &&
            *places[i].path)
            return true;
    return false;
}

static json_t *groups_json(const ot_optimizer_options *optimizer)
{
    json_t *groups = json_array();

    for (int g = 0; g < optimizer->n_groups; g++) {
        const ot_param_group *group = &optimizer->groups[g];
        json_t *object = json_object(), *params = json_array();

        for (int i = 0; i < group->n_params; i++)
            json_array_append_new(params, text_json(group->params[i]));
        json_object_set_new(object, "params", params);
        for (int i = 0; i < group->n_hyper; i++)
            json_object_set_new(object, group->hyper[i].name, json_real(group->hyper[i].value));
        json_array_append_new(groups, object);
    }
    return groups;
}

// `is_chosen`: the option names the optimizer, and so says all of it.
static int give_hypers(const ot_optimizer_options *optimizer, bool is_chosen)
{
    static const char clip[] = "max_norm_clip"; // --clip-norm clips, unless the file says this
    char path[MOST_LETTERS];
    int code = EXIT_SUCCESS;

    for (int i = 0; code == EXIT_SUCCESS && i < optimizer->n_hyper; i++) {
        const ot_hyper *hyper = &optimizer->hyper[i];

        snprintf(path, sizeof path, "optimizer.%s", hyper->name);
        if (strcmp(hyper->name, clip) != 0 || (is_chosen && !is_given_at(path)))
            code = config_give(config, path, json_real(hyper->value), OT_CONFIG_FLAG);
    }
    if (code == EXIT_SUCCESS && optimizer->n_groups > 0)
        code = config_give(config, "optimizer.params", groups_json(optimizer), OT_CONFIG_FLAG);
    return code;
}

// What the numbers are called depends on the optimizer, which the file may name.
static int give_optimizer(const train_values *values)
{
    model_values own = values->model;
    const bool is_chosen = option_is_given("optimizer");
    optimizer_setup setup;
    char name[MOST_LETTERS];
    int code;

    if (!has_optimizer_option())
        return EXIT_SUCCESS;
    if (!is_chosen && is_given_at("optimizer.name")) {
        if (ot_config_check(config, NULL) != OT_OK)
            return report_error();
        if (!ot_config_optimizer(config)->name)
            return EXIT_SUCCESS;
        snprintf(name, sizeof name, "%s", ot_config_optimizer(config)->name);
        own.optimizer = name;
    }
    code = optimizer_check(&own);
    if (code == EXIT_SUCCESS)
        code = optimizer_setup_init(&setup, &own);
    if (code == EXIT_SUCCESS && is_chosen)
        code = config_give(config, "optimizer.name",
                           setup.options.name ? json_string(setup.options.name) : json_null(),
                           OT_CONFIG_FLAG);
    return code == EXIT_SUCCESS && setup.options.name ? give_hypers(&setup.options, is_chosen)
                                                      : code;
}

// ---- the file and the environment ----

static const char *environment(void)
{
    const char *lines = getenv("OT_SET");

    return lines && *lines ? lines : NULL;
}

bool train_config_is_elsewhere(const train_values *values)
{
    return values->config || environment();
}

// The caller frees it.
static int read_file(const char *path, char **out)
{
    enum { MOST = 1 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = malloc(MOST + 2);
    const size_t n = file && text ? fread(text, 1, MOST + 1, file) : 0;
    int code = EXIT_SUCCESS;

    if (!file || !text || ferror(file))
        code = report_text("%s: cannot be read: %s", path, strerror(errno));
    else if (n > MOST)
        code = report_text("%s: has more than %d bytes, which is the most", path, MOST);
    else if (memchr(text, '\0', n))
        code = report_text("%s: has a zero byte, expected JSON", path);
    else
        text[n] = '\0';
    if (file)
        fclose(file);
    if (code != EXIT_SUCCESS)
        free(text);
    else
        *out = text;
    return code;
}

static int merge_file(const char *path)
{
    char *text;
    ot_status st;

    if (read_file(path, &text) != EXIT_SUCCESS)
        return EXIT_FAILED;
    st = ot_config_merge(config, text, OT_CONFIG_FILE);
    free(text);
    return st == OT_OK ? EXIT_SUCCESS : report_text("%s: %s", path, ot_error_message());
}

// What "train" says, where no option of the command line says it.
static int apply_train(void)
{
    for (int i = 0; i < ot_config_train_count(config); i++) {
        const int option = option_find(ot_config_train_name(config, i));

        if (!option_is_on_line(option) && !option_set(option, ot_config_train_value(config, i)))
            return report_text("out of memory");
    }
    return EXIT_SUCCESS;
}

int train_config_read(const train_values *values)
{
    int code = give_defaults();

    if (code == EXIT_SUCCESS && environment() &&
        ot_config_set_lines(config, environment(), OT_CONFIG_ENVIRONMENT) != OT_OK)
        code = report_text("OT_SET: %s", ot_error_message());
    if (code == EXIT_SUCCESS && values->config)
        code = merge_file(values->config);
    if (code == EXIT_SUCCESS)
        code = give_schedule();
    if (code == EXIT_SUCCESS)
        code = give_optimizer(values);
    if (code == EXIT_SUCCESS && ot_config_check(config, NULL) != OT_OK)
        code = report_error();
    return code == EXIT_SUCCESS ? apply_train() : code;
}

// ---- what counts ----

bool train_config_names_optimizer(void)
{
    ot_hyper_info info = OT_HYPER_INFO_INIT;
    bool is_given = is_given_at("optimizer.name") || is_given_at("optimizer.params");
    char path[MOST_LETTERS];

    for (int i = 0;
         !is_given && ot_optimizer_hyper(ot_config_optimizer(config)->name, i, &info) == OT_OK;
         i++) {
        snprintf(path, sizeof path, "optimizer.%s", info.name);
        is_given = is_given_at(path);
    }
    return is_given;
}

static void print_break(int depth)
{
    printf("\n%*s", 2 * depth, "");
}

// The text after `*c`, a bracket or a comma outside of strings.
static void print_between(const char *c, char brackets[], int *depth)
{
    const bool is_open = *c == '{' || *c == '[', is_empty = c[1] == '}' || c[1] == ']';

    if (is_open)
        brackets[++*depth] = *c;
    if (*c == ':' || (*c == ',' && brackets[*depth] == '['))
        putchar(' ');
    else if (*c == ',' || (*c == '{' && !is_empty))
        print_break(*depth);
}

// A member a line, a list on one.
static void print_json(const char *json)
{
    char brackets[64] = "";
    int depth = 0;
    bool is_string = false;

    for (const char *c = json; *c; c++) {
        if (*c == '\\') {
            putchar(*c++);
        } else if (*c == '"') {
            is_string = !is_string;
        } else if (!is_string && (*c == '}' || *c == ']')) {
            depth--;
            if (*c == '}' && c[-1] != '{')
                print_break(depth);
        }
        putchar(*c);
        if (!is_string && strchr("{[,:", *c))
            print_between(c, brackets, &depth);
    }
    putchar('\n');
}

int train_config_print(void)
{
    char *text;

    if (odd_name)
        return report_text("'%s' is not UTF-8, which a configuration is", odd_name);
    if (ot_config_text(config, OT_CONFIG_EFFECTIVE, &text) != OT_OK)
        return report_error();
    print_json(text);
    ot_string_free(text);
    return EXIT_SUCCESS;
}
