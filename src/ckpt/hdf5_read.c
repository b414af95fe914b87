// SPDX-License-Identifier: Apache-2.0
// A dict from an HDF5 file of whatever maker: all of it is checked, then it is read.
#include <stdlib.h>
#include <string.h>

#include "ckpt/hdf5_check.h"

// ---- names of a group's links ----

typedef struct link_list {
    ot__buf text; // each with its NUL
    const char **names;
    int n;
} link_list;

static herr_t add_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    link_list *list = context;

    (void)group;
    (void)info;
    ot__buf_append(&list->text, name, strlen(name) + 1);
    list->n++;
    return list->text.failed || list->n > OT_H5_OBJECTS_MAX ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void link_list_deinit(link_list *list)
{
    ot__buf_deinit(&list->text);
    ot__free(list->names);
    *list = (link_list){0};
}

// In the order of the alphabet, whatever that of the file is.
static ot_status list_links(const ot__h5_reader *r, hid_t group, link_list *list)
{
    hsize_t at = 0;
    int n = 0;

    if (ot__h5.H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &at, add_link, list) < 0) {
        OT_TRY(ot__buf_status(&list->text));
        return list->n > OT_H5_OBJECTS_MAX
                   ? ot__h5_refuse(r, OT_ERR_FORMAT, "has more than the %d objects that are read",
                                   (int)OT_H5_OBJECTS_MAX)
                   : ot__h5_unreadable(r);
    }
    list->names = ot__alloc((size_t)list->n * sizeof *list->names);
    OT_TRY(ot__made(list->names != NULL));
    for (size_t i = 0; i < list->text.length; i += strlen(list->text.data + i) + 1)
        list->names[n++] = list->text.data + i;
    if (n > 0)
        qsort(list->names, (size_t)n, sizeof *list->names, by_name);
    return OT_OK;
}

// ---- datasets ----

static ot_status read_variable_string(const ot__h5_reader *r, const ot__h5_dataset *dataset,
                                      ot_dict *into, const char *name)
{
    char *string = NULL;
    ot_status st;

    if (ot__h5.H5Dread(dataset->id, dataset->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &string) < 0)
        return ot__h5_unreadable(r);
    st = ot_dict_set_string(into, name, string != NULL ? string : "");
    if (string != NULL)
        (void)ot__h5.H5free_memory(string);
    return st;
}

static ot_status read_fixed_string(const ot__h5_reader *r, const ot__h5_dataset *dataset,
                                   ot_dict *into, const char *name)
{
    char *string = ot__alloc_zero(ot__h5.H5Tget_size(dataset->type) + 1, 1);
    ot_status st;

    OT_TRY(ot__made(string != NULL));
    st = ot__h5.H5Dread(dataset->id, dataset->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, string) < 0
             ? ot__h5_unreadable(r)
             : ot_dict_set_string(into, name, string);
    ot__free(string);
    return st;
}

static ot_status read_h5_elements(const ot__h5_reader *r, const ot__h5_dataset *dataset, void *to)
{
    const hid_t type = ot__h5_type(dataset->dtype);
    ot_status st = OT_OK;

    if (type < 0 || ot__h5.H5Dread(dataset->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
        st = ot__h5_unreadable(r);
    if (type >= 0)
        (void)ot__h5.H5Tclose(type);
    return st;
}

static ot_status view_h5_elements(const ot__h5_reader *r, const ot__h5_dataset *dataset,
                                  ot_tensor **out)
{
    size_t n_bytes = 0;
    int64_t count = 0;

    if (!ot__shape_count(&dataset->shape, &count) ||
        !ot__dtype_bytes(dataset->dtype, count, &n_bytes))
        return ot__h5_unreadable(r);
    return ot_tensor_wrap(dataset->dtype, &dataset->shape,
                          (void *)(uintptr_t)(r->view->data + dataset->at), n_bytes, out);
}

static ot_status read_h5_tensor(const ot__h5_reader *r, const ot__h5_dataset *dataset,
                                ot_dict *into, const char *name)
{
    ot_tensor *tensor;
    ot_status st;

    if (dataset->is_view)
        OT_TRY(view_h5_elements(r, dataset, &tensor));
    else
        OT_TRY(ot_tensor_create(dataset->dtype, &dataset->shape, &tensor));
    st = tensor->n_bytes > 0 && !dataset->is_view ? read_h5_elements(r, dataset, tensor->data)
                                                  : OT_OK;
    OT_THEN(st, ot_dict_take_tensor(into, name, tensor));
    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

// What Python's int, float and bool are written as; other scalars are tensors.
static ot_status read_h5_scalar(const ot__h5_reader *r, const ot__h5_dataset *dataset,
                                ot_dict *into, const char *name)
{
    int64_t integer;
    double real;
    int8_t truth;

    switch ((int)dataset->dtype) {
    case OT_I64:
        OT_TRY(read_h5_elements(r, dataset, &integer));
        return ot_dict_set_int(into, name, integer);
    case OT_F64:
        OT_TRY(read_h5_elements(r, dataset, &real));
        return ot_dict_set_float(into, name, real);
    case OT_BOOL:
        OT_TRY(read_h5_elements(r, dataset, &truth));
        return ot_dict_set_bool(into, name, truth);
    default:
        return read_h5_tensor(r, dataset, into, name);
    }
}

static ot_status read_dataset(ot__h5_reader *r, hid_t id, ot_dict *into, const char *name)
{
    ot__h5_dataset dataset;
    ot_status st = ot__h5_check_dataset(r, id, &dataset);

    if (st == OT_OK && r->reads) {
        if (dataset.is_string)
            st = ot__h5.H5Tis_variable_str(dataset.type) > 0
                     ? read_variable_string(r, &dataset, into, name)
                     : read_fixed_string(r, &dataset, into, name);
        else
            st = dataset.shape.ndim == 0 ? read_h5_scalar(r, &dataset, into, name)
                                         : read_h5_tensor(r, &dataset, into, name);
    }
    if (dataset.type >= 0)
        (void)ot__h5.H5Tclose(dataset.type);
    return st;
}

// ---- groups ----

static ot_status read_h5_group(ot__h5_reader *r, hid_t group, ot_dict *into, int depth);

// `into` NULL: nothing is read yet.
static ot_status read_h5_object(ot__h5_reader *r, hid_t id, H5O_type_t type, ot_dict *into,
                                const char *name, int depth)
{
    ot_dict *inner = NULL;

    if (type == H5O_TYPE_DATASET)
        return read_dataset(r, id, into, name);
    if (type != H5O_TYPE_GROUP)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "is neither a group nor a dataset");
    if (depth >= OT_H5_DEPTH_MAX)
        return ot__h5_refuse(r, OT_ERR_FORMAT, "is a group within %d others, which is too deep",
                             depth);
    if (r->reads)
        OT_TRY(ot_dict_set_dict(into, name, &inner));
    return read_h5_group(r, id, inner, depth + 1);
}

static ot_status read_h5_link(ot__h5_reader *r, hid_t group, const char *link, ot_dict *into,
                              int depth)
{
    const size_t length = r->name.length;
    H5O_type_t type;
    hid_t object;
    ot_status st;

    ot__buf_printf(&r->name, "%s%s", length > 0 ? "/" : "", link);
    st = ot__buf_status(&r->name);
    OT_THEN(st, ot__h5_open_link(r, group, link, &object, &type));
    if (st == OT_OK) {
        st = read_h5_object(r, object, type, into, link, depth);
        (void)ot__h5.H5Oclose(object);
    }
    r->name.length = length;
    if (r->name.data != NULL)
        r->name.data[length] = '\0';
    return st;
}

static ot_status read_h5_group(ot__h5_reader *r, hid_t group, ot_dict *into, int depth)
{
    link_list links = {0};
    ot_status st = list_links(r, group, &links);

    for (int i = 0; st == OT_OK && i < links.n; i++)
        st = read_h5_link(r, group, links.names[i], into, depth);
    link_list_deinit(&links);
    return st;
}

// ---- the part that is asked for ----

static bool has_link(const link_list *links, const char *name)
{
    for (int i = 0; i < links->n; i++)
        if (strcmp(links->names[i], name) == 0)
            return true;
    return false;
}

// From *object, which is closed, to what has that name in it.
static ot_status enter_part(ot__h5_reader *r, const char *part, const char *key, hid_t *object,
                            H5O_type_t *type)
{
    link_list links = {0};
    hid_t found = H5I_INVALID_HID;
    ot_status st = *type == H5O_TYPE_GROUP ? list_links(r, *object, &links) : OT_OK;

    if (st == OT_OK && !has_link(&links, part))
        st = ot__error(OT_ERR_NOT_FOUND, "%s: has no '%s'", r->path, key);
    ot__buf_printf(&r->name, "%s%s", r->name.length > 0 ? "/" : "", part);
    OT_THEN(st, ot__buf_status(&r->name));
    OT_THEN(st, ot__h5_open_link(r, *object, part, &found, type));
    link_list_deinit(&links);
    (void)ot__h5.H5Oclose(*object);
    *object = st == OT_OK ? found : H5I_INVALID_HID;
    return st;
}

// The last part of the key is in *last, which is all that is left of `parts`.
static ot_status find_key(ot__h5_reader *r, const char *key, char *parts, hid_t *object,
                          H5O_type_t *type, const char **last)
{
    ot_status st = OT_OK;

    for (const char *part = strsep(&parts, "/"); st == OT_OK && part != NULL;
         part = strsep(&parts, "/")) {
        if (*part == '\0')
            continue;
        *last = part;
        st = enter_part(r, part, key, object, type);
    }
    return st;
}

// `into` NULL: only checks.
static ot_status read_h5_part(ot__h5_reader *r, hid_t file, const char *key, ot_dict *into)
{
    char *parts = ot__strdup(key);
    const char *last = NULL;
    H5O_type_t type;
    hid_t object = H5I_INVALID_HID;
    ot_status st = ot__made(parts != NULL);

    ot__free(r->seen.slots);
    r->seen = (ot__h5_places){0};
    r->name.length = 0;
    r->reads = into != NULL;
    OT_THEN(st, ot__h5_open_object(r, file, "/", &object, &type));
    OT_THEN(st, find_key(r, key, parts, &object, &type, &last));
    OT_THEN(st, last == NULL ? read_h5_group(r, object, into, 0)
                             : read_h5_object(r, object, type, into, last, 0));
    if (object >= 0)
        (void)ot__h5.H5Oclose(object);
    ot__free(parts);
    return st;
}

// ---- the file ----

static ot_status read_open_file(ot__h5_reader *r, hid_t file, const char *key, ot_dict **out)
{
    ot_dict *dict;
    ot_status st;

    OT_TRY(read_h5_part(r, file, key, NULL));
    OT_TRY(ot_dict_create(&dict));
    st = read_h5_part(r, file, key, dict);
    return OT_HAND_OUT(st, out, dict, ot_dict_destroy);
}

static ot_status read_h5_file(ot__h5_reader *r, const char *key, ot_dict **out)
{
    const hid_t access = ot__h5_access();
    const hid_t file =
        access < 0 ? H5I_INVALID_HID : ot__h5.H5Fopen(r->path, OT_H5_READ_ONLY, access);
    ot_status st = file < 0 ? ot__h5_error(OT_ERR_FORMAT, r->path, "cannot be read")
                            : read_open_file(r, file, key, out);

    if (file >= 0)
        (void)ot__h5.H5Fclose(file);
    if (access >= 0)
        (void)ot__h5.H5Pclose(access);
    ot__buf_deinit(&r->name);
    ot__free(r->seen.slots);
    return st;
}

static ot_status load_h5(ot__h5_reader *r, const char *key, ot_dict **out)
{
    ot__h5_visit visit;
    ot_status st;

    OT_TRY(ot__h5_enter(&visit));
    st = read_h5_file(r, key, out);
    ot__h5_leave(&visit);
    return st;
}

// On failure nothing is left open.
static ot_status open_h5_map(const char *path, ot__file_map *map)
{
    ot_status st;

    OT_TRY(ot__file_map_open(map, path));
    st = ot__file_kind_check(map->data, map->size, path, OT_FILE_HDF5);
    if (st == OT_OK && !ot__hdf5_has_signature(map))
        st = ot__error(OT_ERR_FORMAT, "%s: is not an HDF5 file", path);
    if (st == OT_OK && !map->is_mapped)
        st = ot__error(OT_ERR_UNSUPPORTED, "%s: is read as it comes, HDF5 needs a file", path);
    if (st != OT_OK)
        ot__file_map_close(map);
    return st;
}

ot_status ot__hdf5_load(const char *path, const char *key, ot_dict **out)
{
    ot__h5_reader r = {.path = path};
    ot__file_map map;

    OT_TRY(open_h5_map(path, &map));
    r.file_bytes = map.size;
    ot__file_map_close(&map);
    return load_h5(&r, key != NULL ? key : "", out);
}

ot_status ot__hdf5_view(const char *path, ot__file_map *map, ot_dict **out)
{
    ot__h5_reader r = {.path = path, .view = map};
    ot_status st;

    OT_TRY(open_h5_map(path, map));
    r.file_bytes = map->size;
    st = ot__file_map_check(map, path);
    OT_THEN(st, load_h5(&r, "", out));
    if (st != OT_OK)
        ot__file_map_close(map);
    return st;
}
