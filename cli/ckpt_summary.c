// SPDX-License-Identifier: Apache-2.0
#include "ckpt_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output_files.h"
#include "report.h"

static const char model_prefix[] = "model.";

const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

void ckpt_time_text(int64_t unix_ns, char text[32])
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm at;

    text[0] = '\0';
    if (gmtime_r(&seconds, &at) != NULL)
        (void)strftime(text, 32, "%Y-%m-%d %H:%M:%S UTC", &at);
}

ot_status ckpt_look(const ot_shards_reader *reader, ot_shards_info *info)
{
    *info = (ot_shards_info)OT_SHARDS_INFO_INIT;
    return ot_shards_reader_info(reader, info);
}

void ckpt_print_summary(const ot_shards_reader *reader, const ot_shards_info *info)
{
    char when[32], size[32];

    if (info->is_foreign) {
        printf("%s: safetensors: %d tensor%s, %s in %d file%s\n", ot_shards_reader_path(reader),
               info->n_tensors, plural(info->n_tensors),
               bytes_text((size_t)info->n_bytes, size, sizeof size), info->n_files,
               plural(info->n_files));
        return;
    }
    ckpt_time_text(info->unix_ns, when);
    printf("%s: step %" PRId64 ", %s, written by %d process%s: %d tensor%s in %" PRId64
           " part%s, %s in %d file%s\n",
           ot_shards_reader_path(reader), info->step, when, info->world_size,
           info->world_size == 1 ? "" : "es", info->n_tensors, plural(info->n_tensors),
           info->n_chunks, plural(info->n_chunks),
           bytes_text((size_t)info->n_bytes, size, sizeof size), info->n_files,
           plural(info->n_files));
}

bool ckpt_is_directory(const char *path)
{
    static const char *const names[] = {"otckpt.index.json", "latest",
                                        "model.safetensors.index.json", "model.safetensors"};
    bool is_one = false;

    for (size_t i = 0; !is_one && i < sizeof names / sizeof names[0]; i++) {
        char *name = path_in(path, "", names[i]);

        is_one = name && access(name, F_OK) == 0;
        free(name);
    }
    return is_one;
}

bool ckpt_is_safetensors(const char *path)
{
    static const char *const ends[] = {".safetensors", ".safetensors.index.json"};
    bool is_one = false;

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t n = strlen(path), n_end = strlen(ends[i]);

        is_one = is_one || (n > n_end && strcmp(path + n - n_end, ends[i]) == 0);
    }
    return is_one;
}

// ---- in brief ----

static json_t *summary_json(const ot_shards_reader *reader, const ot_shards_info *info)
{
    json_t *object = json_object(), *items = json_array();
    char when[32];

    ckpt_time_text(info->unix_ns, when);
    for (int i = 0; i < info->n_items; i++)
        json_array_append_new(items, text_json(ot_shards_reader_item(reader, i)));
    json_object_set_new(object, "checkpoint", text_json(ot_shards_reader_path(reader)));
    if (!info->is_foreign) {
        json_object_set_new(object, "step", json_integer(info->step));
        json_object_set_new(object, "time", json_string(when));
        json_object_set_new(object, "processes", json_integer(info->world_size));
    }
    json_object_set_new(object, "tensors", json_integer(info->n_tensors));
    json_object_set_new(object, "parts", json_integer(info->n_chunks));
    json_object_set_new(object, "bytes", json_integer(info->n_bytes));
    json_object_set_new(object, "files", json_integer(info->n_files));
    json_object_set_new(object, "items", items);
    return object;
}

static void print_directory(const ot_shards_reader *reader, const ot_shards_info *info)
{
    ckpt_print_summary(reader, info);
    printf("items:");
    for (int i = 0; i < info->n_items; i++)
        printf(" %s", ot_shards_reader_item(reader, i));
    printf("\n`onnxtrain ckpt show` lists what they have\n");
}

int ckpt_summary(const char *path, bool json)
{
    ot_shards_reader *reader;
    ot_shards_info info;
    ot_status st = ot_shards_open(path, &reader);

    if (st == OT_OK)
        st = ckpt_look(reader, &info);
    if (st == OT_OK && json)
        write_json(stdout, summary_json(reader, &info), JSON_INDENT(1));
    else if (st == OT_OK)
        print_directory(reader, &info);
    ot_shards_reader_destroy(reader);
    return st == OT_OK ? EXIT_SUCCESS : report_error();
}

// ---- parameters ----

// Whatever was trained: that is nothing to who only wants the values.
static ot_status add_tensor(const ot_shards_reader *reader, const ot_shards_tensor *t,
                            ot_checkpoint *checkpoint)
{
    ot_box box = {.ndim = t->shape->ndim};
    ot_tensor *value;
    ot_status st = ot_tensor_create(t->dtype, t->shape, &value);

    for (int k = 0; k < box.ndim; k++)
        box.size[k] = t->shape->dim[k];
    if (st == OT_OK)
        st = ot_shards_reader_read_box(reader, t->key, &box, value);
    if (st == OT_OK)
        st = ot_checkpoint_add_parameter(checkpoint, t->key + strlen(model_prefix), value, 0);
    ot_tensor_destroy(value);
    return st;
}

static ot_status add_model(const ot_shards_reader *reader, ot_checkpoint *checkpoint)
{
    ot_shards_tensor t = OT_SHARDS_TENSOR_INIT;
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && ot_shards_reader_tensor(reader, i, &t) == OT_OK; i++)
        if (strncmp(t.key, model_prefix, strlen(model_prefix)) == 0)
            st = add_tensor(reader, &t, checkpoint);
    return st;
}

// Tensors of the parameters' names, types and shapes.
static ot_status list_wanted(const ot_checkpoint *checkpoint, ot_dict *wanted)
{
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        ot_tensor *value = NULL;

        st = ot_checkpoint_get_parameter(checkpoint, name, &value);
        if (st == OT_OK)
            st = ot_dict_take_tensor(wanted, name, value);
        if (st != OT_OK)
            ot_tensor_destroy(value);
    }
    return st;
}

static ot_status put_found(const ot_dict *found, ot_checkpoint *checkpoint)
{
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < ot_dict_count(found); i++) {
        const ot_tensor *value = NULL;

        st = ot_dict_get_tensor(found, ot_dict_name(found, i), &value);
        if (st == OT_OK)
            st = ot_checkpoint_set_parameter(checkpoint, ot_dict_name(found, i), value);
    }
    return st;
}

// Another tool's tensors are those of the parameters, in whatever type floats are kept. What the
// model lacks is left out.
static ot_status load_over(const char *path, const char *base, ot_checkpoint **out)
{
    ot_shards_load_options options = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_shards_item item = OT_SHARDS_ITEM_INIT;
    ot_status st = ot_checkpoint_load_parameters(base, out);

    item.name = "model";
    options.casts = options.allows_unexpected = 1;
    if (st == OT_OK)
        st = ot_dict_create(&item.dict);
    if (st == OT_OK)
        st = list_wanted(*out, item.dict);
    if (st == OT_OK)
        st = ot_shards_load(NULL, path, &item, 1, &options);
    if (st == OT_OK)
        st = put_found(item.dict, *out);
    ot_dict_destroy(item.dict);
    return st;
}

ot_status ckpt_load_parameters(const char *path, const char *base, ot_checkpoint **out)
{
    ot_shards_info info;
    ot_shards_reader *reader;
    ot_status st = ot_shards_open(path, &reader);

    *out = NULL;
    if (st == OT_OK)
        st = ckpt_look(reader, &info);
    if (st == OT_OK && info.is_foreign) {
        st = load_over(path, base, out);
    } else if (st == OT_OK) {
        st = ot_checkpoint_create(out);
        if (st == OT_OK)
            st = add_model(reader, *out);
    }
    ot_shards_reader_destroy(reader);
    return st;
}

bool ckpt_is_foreign(const char *path)
{
    ot_shards_info info = {0};
    ot_shards_reader *reader;

    if (ot_shards_open(path, &reader) != OT_OK || ckpt_look(reader, &info) != OT_OK)
        info.is_foreign = 0;
    ot_shards_reader_destroy(reader);
    return info.is_foreign != 0;
}
