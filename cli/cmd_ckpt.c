// SPDX-License-Identifier: Apache-2.0
// onnxtrain ckpt: looks at checkpoint directories.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt_convert.h"
#include "ckpt_summary.h"
#include "commands.h"
#include "model_options.h"
#include "onnxtrain/onnxtrain.h"
#include "op_libraries.h"
#include "report.h"

typedef struct ckpt_values {
    int64_t ranks, memory_max;
    const char *artifacts;
    text_list op_libraries;
    bool replace;
} ckpt_values;

#define AT(member) offsetof(ckpt_values, member)

static const option_spec ckpt_table[] = {
    {.help = "What is written"},
    {"ranks", OPTION_INT, AT(ranks), "N", "reshard: as so many processes would write it", "1", NULL,
     1},
    {"artifacts", OPTION_TEXT, AT(artifacts), "DIRECTORY",
     "convert: artifacts of the model that was trained", NULL, NULL, 0},
    {"replace", OPTION_FLAG, AT(replace), NULL, "a checkpoint that is there is replaced", NULL,
     NULL, 0},
    {.help = "Running"},
    OP_LIBRARY_OPTION(AT(op_libraries)),
    MEMORY_MAX_OPTION(AT(memory_max)),
    {0},
};

// ---- show ----

static void show_value(ot_dict *dict, const char *name, const char *key);

static void show_members(ot_dict *dict, const char *key)
{
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        const size_t size = strlen(key) + strlen(name) + 2;
        char *inner = malloc(size);

        if (inner == NULL)
            return;
        snprintf(inner, size, "%s.%s", key, name);
        show_value(dict, name, inner);
        free(inner);
    }
}

static void show_text(const char *key, const char *text)
{
    printf("  %s = ", key);
    write_json(stdout, text_json(text), JSON_ENCODE_ANY);
}

// Tensors are told by the index.
static void show_value(ot_dict *dict, const char *name, const char *key)
{
    const void *bytes;
    const int64_t *ints;
    const char *text;
    ot_dict *inner;
    ot_dict_kind kind;
    int64_t integer;
    double real;
    size_t n_bytes;
    int n;

    if (ot_dict_kind_of(dict, name, &kind) != OT_OK)
        return;
    if (kind == OT_DICT_DICT && ot_dict_get_dict(dict, name, &inner) == OT_OK)
        show_members(inner, key);
    else if (kind == OT_DICT_LIST && ot_dict_get_list(dict, name, &inner) == OT_OK)
        show_members(inner, key);
    else if (kind == OT_DICT_NULL)
        printf("  %s = null\n", key);
    else if (kind == OT_DICT_BOOL && ot_dict_get_bool(dict, name, &n) == OT_OK)
        printf("  %s = %s\n", key, n ? "true" : "false");
    else if (kind == OT_DICT_INT && ot_dict_get_int(dict, name, &integer) == OT_OK)
        printf("  %s = %" PRId64 "\n", key, integer);
    else if (kind == OT_DICT_FLOAT && ot_dict_get_float(dict, name, &real) == OT_OK)
        printf("  %s = %.17g\n", key, real);
    else if (kind == OT_DICT_STRING && ot_dict_get_string(dict, name, &text) == OT_OK)
        show_text(key, text);
    else if (kind == OT_DICT_INTS && ot_dict_get_ints(dict, name, &ints, &n) == OT_OK)
        printf("  %s = %d integer%s\n", key, n, plural(n));
    else if (kind == OT_DICT_BYTES && ot_dict_get_bytes(dict, name, &bytes, &n_bytes) == OT_OK)
        printf("  %s = %zu bytes\n", key, n_bytes);
}

static void show_tensor(const ot_shards_tensor *t)
{
    printf("  %s %s[", t->key, ot_dtype_name(t->dtype));
    for (int k = 0; k < t->shape->ndim; k++)
        printf("%s%" PRId64, k > 0 ? "," : "", t->shape->dim[k]);
    printf("]%s%d part%s\n", ", ", t->n_chunks, plural(t->n_chunks));
}

static ot_status show_checkpoint(const ot_shards_reader *reader, const ot_shards_info *info)
{
    ckpt_print_summary(reader, info);
    for (int i = 0; i < info->n_tensors; i++) {
        ot_shards_tensor tensor = OT_SHARDS_TENSOR_INIT;
        const ot_status st = ot_shards_reader_tensor(reader, i, &tensor);

        if (st != OT_OK)
            return st;
        show_tensor(&tensor);
    }
    for (int i = 0; i < info->n_items; i++) {
        const char *item = ot_shards_reader_item(reader, i);
        ot_dict *dict;
        const ot_status st = ot_shards_reader_describe(reader, item, &dict);

        if (st != OT_OK)
            return st;
        show_members(dict, item);
        ot_dict_destroy(dict);
    }
    return OT_OK;
}

// ---- verify ----

static ot_status verify_checkpoint(const ot_shards_reader *reader, const ot_shards_info *info)
{
    ot_status st;

    report_warnings(NULL, NULL);
    st = ot_shards_reader_verify(reader);
    report_no_warnings();
    if (st == OT_OK) {
        ckpt_print_summary(reader, info);
        printf(info->is_foreign ? "all files are whole; they have no checksums\n"
                                : "all checksums are right\n");
    }
    return st;
}

// ---- ls ----

typedef struct listed {
    char *path;
    ot_shards_info info;
} listed;

static int compare_listed(const void *a, const void *b)
{
    const listed *x = a, *y = b;

    if (x->info.step != y->info.step)
        return x->info.step < y->info.step ? -1 : 1;
    return strcmp(x->path, y->path);
}

// 1: an entry; 0: there is no checkpoint; -1: it cannot be read, which is told.
static int look_into(const char *folder, const char *name, listed *entry)
{
    const size_t size = strlen(folder) + strlen(name) + sizeof "//otckpt.index.json";
    char *path = malloc(size), *index = malloc(size);
    ot_shards_reader *reader = NULL;
    struct stat info;
    int found = 0;

    if (path != NULL && index != NULL) {
        snprintf(path, size, "%s/%s", folder, name);
        snprintf(index, size, "%s/%s/otckpt.index.json", folder, name);
        if (stat(index, &info) == 0)
            found =
                ot_shards_open(path, &reader) == OT_OK && ckpt_look(reader, &entry->info) == OT_OK
                    ? 1
                    : -1;
        if (found < 0)
            (void)report_error();
    }
    ot_shards_reader_destroy(reader);
    free(index);
    entry->path = path;
    if (found <= 0)
        free(path);
    return found;
}

static int list_entries(DIR *entries, const char *folder)
{
    const struct dirent *entry;
    listed *all = NULL;
    int n = 0, n_unreadable = 0;

    while ((entry = readdir(entries)) != NULL) {
        listed *more = realloc(all, (size_t)(n + 1) * sizeof *all);
        int found;

        if (more == NULL)
            break;
        all = more;
        found = entry->d_name[0] != '.' ? look_into(folder, entry->d_name, &all[n]) : 0;
        n += found > 0;
        n_unreadable += found < 0;
    }
    if (n > 0)
        qsort(all, (size_t)n, sizeof *all, compare_listed);
    for (int i = 0; i < n; i++) {
        char when[32], size[32];

        ckpt_time_text(all[i].info.unix_ns, when);
        printf("%s: step %" PRId64 ", %s, %d process%s, %s\n", all[i].path, all[i].info.step, when,
               all[i].info.world_size, all[i].info.world_size == 1 ? "" : "es",
               bytes_text((size_t)all[i].info.n_bytes, size, sizeof size));
        free(all[i].path);
    }
    free(all);
    if (n + n_unreadable == 0)
        return report_text("%s: no checkpoint directories", folder);
    return n_unreadable == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int list_checkpoints(const char *folder)
{
    DIR *entries = opendir(folder);
    int code;

    if (entries == NULL)
        return report_text("%s: cannot be read: %s", folder, strerror(errno));
    code = list_entries(entries, folder);
    closedir(entries);
    return code;
}

// ---- the command ----

static const char *const actions[] = {"ls", "show", "verify", "reshard", "convert"};
enum { LS, SHOW, VERIFY, RESHARD, CONVERT, N_ACTIONS };

static int action_of(const char *name)
{
    for (int i = 0; i < N_ACTIONS; i++)
        if (strcmp(actions[i], name) == 0)
            return i;
    return -1;
}

static int ckpt_check(const void *values, const char *const *arguments)
{
    const ckpt_values *v = values;
    const int action = action_of(arguments[0]);
    int n = 0;

    while (arguments[n] != NULL)
        n++;
    if (action < 0)
        return report_unknown(actions, N_ACTIONS, arguments[0], "'%s' is none of", arguments[0]);
    if (n != (action >= RESHARD ? 3 : 2))
        return report_usage("%s takes %s, got %d argument%s", arguments[0],
                            action >= RESHARD ? "two paths" : "one directory", n - 1,
                            plural(n - 1));
    if (option_is_given("ranks") && action != RESHARD)
        return report_usage("--ranks is for reshard");
    if (option_is_given("replace") && action < RESHARD)
        return report_usage("--replace is for reshard and convert");
    if ((v->artifacts != NULL) != (action == CONVERT))
        return report_usage(action == CONVERT ? "--artifacts is missing"
                                              : "--artifacts is for convert");
    if (v->op_libraries.count > 0 && action != CONVERT)
        return report_usage("--op-library is for convert");
    return EXIT_SUCCESS;
}

static int reshard(const ckpt_values *v, const char *from, const char *to)
{
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;

    options.replaces = v->replace;
    if (v->ranks > INT32_MAX)
        return report_text("--ranks %" PRId64 " is too large", v->ranks);
    return ot_shards_reshard(from, to, (int)v->ranks, &options) == OT_OK ? EXIT_SUCCESS
                                                                         : report_error();
}

static int look_at(int action, const char *path)
{
    ot_shards_reader *reader;
    ot_shards_info info;
    ot_status st = ot_shards_open(path, &reader);

    if (st == OT_OK)
        st = ckpt_look(reader, &info);
    if (st == OT_OK)
        st = action == SHOW ? show_checkpoint(reader, &info) : verify_checkpoint(reader, &info);
    ot_shards_reader_destroy(reader);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

static int ckpt_run(const void *values, const char *const *arguments)
{
    const ckpt_values *v = values;
    const int action = action_of(arguments[0]);
    const int code = load_op_libraries(&v->op_libraries);

    if (code != EXIT_SUCCESS)
        return code;
    set_memory_max(v->memory_max);
    if (action == LS)
        return list_checkpoints(arguments[1]);
    if (action == CONVERT)
        return convert_checkpoint(arguments[1], arguments[2], v->artifacts, v->replace);
    return action == RESHARD ? reshard(v, arguments[1], arguments[2])
                             : look_at(action, arguments[1]);
}

const command command_ckpt = {
    .name = "ckpt",
    .summary = "look at checkpoint directories, and write them for other numbers of processes",
    .arguments = "ls|show|verify|reshard|convert PATH [NEW]",
    .n_arguments = 2,
    .may_be_more = true,
    .description = "Looks at checkpoint directories, which trainings over several processes "
                   "write: ls lists those in a directory, show tells what one has, verify reads "
                   "all of it and compares its checksums, reshard writes it again as another "
                   "number of processes would, convert makes one of a checkpoint file, or such a "
                   "file of one. All but ls also take safetensors files of other tools: one, a "
                   "list of several, or a directory with model.safetensors[.index.json]. A "
                   "directory with a file `latest` stands for the "
                   "checkpoint that is named there.",
    .example = "onnxtrain ckpt reshard run/step-1200 whole --ranks 1",
    .tables = {{ckpt_table, 0}},
    .values_size = sizeof(ckpt_values),
    .check = ckpt_check,
    .run = ckpt_run,
};
