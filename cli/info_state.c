// SPDX-License-Identifier: Apache-2.0
#include "info_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/dict.h"
#include "options.h"
#include "report.h"

enum { TEXT_SHOWN = 60 }; // of a string; the user's may be long

static json_t *ints_json(const ot_dict *dict, const char *name)
{
    const int64_t *values = NULL;
    json_t *list = json_array();
    int n = 0;

    (void)ot_dict_get_ints(dict, name, &values, &n);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *tensor_json(const ot_dict *dict, const char *name)
{
    const ot_tensor *tensor = NULL;

    if (ot_dict_get_tensor(dict, name, &tensor) != OT_OK)
        return json_null();
    return json_pack("{s:s,s:o}", "dtype", ot_dtype_name(ot_tensor_dtype(tensor)), "shape",
                     shape_json(ot_tensor_shape(tensor)));
}

static json_t *dict_json(ot_dict *dict);

static json_t *entry_json(ot_dict *dict, const char *name)
{
    const char *text = "";
    ot_dict *inner = NULL;
    ot_dict_kind kind;
    int64_t integer = 0;
    double real = 0;
    int truth = 0;

    if (ot_dict_kind_of(dict, name, &kind) != OT_OK)
        return json_null();
    switch (kind) {
    case OT_DICT_BOOL:
        (void)ot_dict_get_bool(dict, name, &truth);
        return json_boolean(truth);
    case OT_DICT_INT:
        (void)ot_dict_get_int(dict, name, &integer);
        return json_integer(integer);
    case OT_DICT_FLOAT:
        (void)ot_dict_get_float(dict, name, &real);
        return json_real(real);
    case OT_DICT_STRING:
        (void)ot_dict_get_string(dict, name, &text);
        return text_json(text);
    case OT_DICT_INTS:
        return ints_json(dict, name);
    case OT_DICT_TENSOR:
        return tensor_json(dict, name);
    default:
        (void)ot_dict_get_dict(dict, name, &inner);
        return dict_json(inner);
    }
}

static json_t *dict_json(ot_dict *dict)
{
    json_t *object = json_object();

    for (int i = 0; i < ot_dict_count(dict); i++) {
        json_t *name = text_json(ot_dict_name(dict, i));

        json_object_set_new(object, json_string_value(name),
                            entry_json(dict, ot_dict_name(dict, i)));
        json_decref(name);
    }
    return object;
}

static bool is_tensor(const json_t *value)
{
    return json_is_object(value) && json_object_size(value) == 2 &&
           json_is_string(json_object_get(value, "dtype")) &&
           json_is_array(json_object_get(value, "shape"));
}

static void print_tensor(const json_t *value)
{
    const json_t *shape = json_object_get(value, "shape");

    printf("%s[", json_string_value(json_object_get(value, "dtype")));
    for (size_t i = 0; i < json_array_size(shape); i++)
        printf("%s%" JSON_INTEGER_FORMAT, i > 0 ? "," : "",
               json_integer_value(json_array_get(shape, i)));
    printf("]\n");
}

static void print_scalar(const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));

    if (text != NULL && strlen(text) > TEXT_SHOWN)
        printf("%.*s...\n", (int)TEXT_SHOWN, text);
    else
        printf("%s\n", text != NULL ? text : "?");
    free(text);
}

// A name and what is there; names of dicts stand before those within, as in "model/w".
static void print_state(const json_t *object, const char *prefix)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const size_t size = strlen(prefix) + strlen(name) + 2;
        char *path = malloc(size);

        if (path == NULL)
            return;
        snprintf(path, size, "%s%s%s", prefix, *prefix != '\0' ? "/" : "", name);
        if (json_is_object(value) && !is_tensor(value)) {
            if (json_object_size(value) == 0)
                printf("%s/\n", path);
            print_state(value, path);
        } else {
            printf("%s  ", path);
            if (is_tensor(value))
                print_tensor(value);
            else
                print_scalar(value);
        }
        free(path);
    }
}

int info_state(const char *path, bool is_untrusted, bool json)
{
    ot_dict *state;
    json_t *object;

    if ((is_untrusted ? ot_dict_load_hdf5_apart(path, NULL, &state)
                      : ot_dict_load_hdf5(path, NULL, &state)) != OT_OK)
        return report_error();
    object = dict_json(state);
    ot_dict_destroy(state);
    if (json) {
        write_json(stdout, object, JSON_INDENT(1));
    } else {
        print_state(object, "");
        json_decref(object);
    }
    return EXIT_SUCCESS;
}
