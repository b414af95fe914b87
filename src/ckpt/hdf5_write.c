// SPDX-License-Identifier: Apache-2.0
// A dict to an HDF5 file: groups are dicts, datasets are values, in the layout that ONNX Runtime's
// ORTTrainer writes: the oldest form of groups, contiguous data, no attributes.
#include <string.h>

#include "ckpt/hdf5.h"
#include "ckpt/hdf5_library.h"

typedef struct h5_writer {
    const char *path; // for messages
    hid_t file, properties;
    ot__buf names; // of the dicts around, each with its '/'
} h5_writer;

static ot_status refuse_value(const h5_writer *w, const char *name, const char *why)
{
    return ot__error(OT_ERR_UNSUPPORTED, "%s: '%s%s' %s", w->path,
                     w->names.length > 0 ? w->names.data : "", name, why);
}

// ---- one dataset ----

static ot_status write_dataset(const h5_writer *w, hid_t group, const char *link, hid_t type,
                               hid_t space, const void *data)
{
    hid_t dataset = H5I_INVALID_HID;
    ot_status st = OT_OK;

    if (type >= 0 && space >= 0)
        dataset =
            ot__h5.H5Dcreate2(group, link, type, space, H5P_DEFAULT, w->properties, H5P_DEFAULT);
    if (dataset < 0 ||
        (data != NULL && ot__h5.H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0))
        st = ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    if (dataset >= 0 && ot__h5.H5Dclose(dataset) < 0 && st == OT_OK)
        st = ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    if (space >= 0)
        (void)ot__h5.H5Sclose(space);
    if (type >= 0)
        (void)ot__h5.H5Tclose(type);
    return st;
}

static ot_status write_h5_scalar(const h5_writer *w, hid_t group, const char *link, hid_t type,
                                 const void *value)
{
    return write_dataset(w, group, link, type, ot__h5.H5Screate(H5S_SCALAR), value);
}

// `data` NULL: there are no elements.
static ot_status write_h5_array(const h5_writer *w, hid_t group, const char *link, hid_t type,
                                const ot_shape *shape, const void *data)
{
    hsize_t dims[OT_MAX_NDIM] = {0};

    for (int i = 0; i < shape->ndim; i++)
        dims[i] = (hsize_t)shape->dim[i];
    return shape->ndim == 0 ? write_h5_scalar(w, group, link, type, data)
                            : write_dataset(w, group, link, type,
                                            ot__h5.H5Screate_simple(shape->ndim, dims, NULL), data);
}

// There is no such type in HDF5 that others read.
static ot_status write_bf16(const h5_writer *w, hid_t group, const char *link,
                            const ot_tensor *tensor)
{
    ot_tensor *wide;
    ot_status st;

    OT_TRY(ot_tensor_create(OT_F32, &tensor->shape, &wide));
    (void)ot__convert(wide->data, OT_F32, tensor->data, OT_BF16, ot_tensor_count(tensor));
    st = write_h5_array(w, group, link, ot__h5_type(OT_F32), &tensor->shape,
                        wide->n_bytes > 0 ? wide->data : NULL);
    ot_tensor_destroy(wide);
    return st;
}

static ot_status write_h5_tensor(const h5_writer *w, hid_t group, const char *link,
                                 const char *name, const ot_tensor *tensor)
{
    hid_t type;

    if (tensor->dtype == OT_BF16)
        return write_bf16(w, group, link, tensor);
    type = ot__h5_type(tensor->dtype);
    if (type < 0) {
        ot__buf why = {0};
        ot_status st;

        ot__buf_printf(&why, "has elements of %s, which HDF5 files have no type for",
                       ot_dtype_name(tensor->dtype));
        st = ot__buf_status(&why);
        OT_THEN(st, refuse_value(w, name, why.data));
        ot__buf_deinit(&why);
        return st;
    }
    return write_h5_array(w, group, link, type, &tensor->shape,
                          tensor->n_bytes > 0 ? tensor->data : NULL);
}

// ---- one value ----

static ot_status write_h5_value(const h5_writer *w, const ot_dict *dict, const char *name,
                                ot_dict_kind kind, hid_t group, const char *link)
{
    const ot_tensor *tensor;
    const int64_t *ints;
    const char *string;
    int64_t integer;
    int8_t truth;
    double real;
    int n;

    switch (kind) {
    case OT_DICT_BOOL:
        OT_TRY(ot_dict_get_bool(dict, name, &n));
        truth = n != 0;
        return write_h5_scalar(w, group, link, ot__h5_type(OT_BOOL), &truth);
    case OT_DICT_INT:
        OT_TRY(ot_dict_get_int(dict, name, &integer));
        return write_h5_scalar(w, group, link, ot__h5_type(OT_I64), &integer);
    case OT_DICT_FLOAT:
        OT_TRY(ot_dict_get_float(dict, name, &real));
        return write_h5_scalar(w, group, link, ot__h5_type(OT_F64), &real);
    case OT_DICT_STRING:
        OT_TRY(ot_dict_get_string(dict, name, &string));
        return write_h5_scalar(w, group, link, ot__h5_string_type(), &string);
    case OT_DICT_INTS:
        OT_TRY(ot_dict_get_ints(dict, name, &ints, &n));
        return write_h5_array(w, group, link, ot__h5_type(OT_I64), &OT_SHAPE(n),
                              n > 0 ? ints : NULL);
    case OT_DICT_TENSOR:
        OT_TRY(ot_dict_get_tensor(dict, name, &tensor));
        return write_h5_tensor(w, group, link, name, tensor);
    case OT_DICT_SHARDS:
        return refuse_value(w, name,
                            "is parts of a tensor, which HDF5 files are not for: see "
                            "ot_shards_save()");
    default:
        return refuse_value(w, name,
                            kind == OT_DICT_NULL    ? "is null, which these HDF5 files have not"
                            : kind == OT_DICT_BYTES ? "is bytes, which these HDF5 files have not"
                                                    : "is a list, which these HDF5 files have not");
    }
}

// ---- names ----

// A '/' in a name makes groups. The group of the name's last part, which the caller closes if it is
// another than `group`.
static ot_status make_groups(const h5_writer *w, hid_t group, const char *name, hid_t *inner,
                             ot__buf *link)
{
    hid_t at = group;

    for (const char *slash; (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        hid_t next = H5I_INVALID_HID;
        H5L_info_t info;

        ot__h5_link_name(name, (size_t)(slash - name), link);
        if (!link->failed && ot__h5.H5Lget_info(at, link->data, &info, H5P_DEFAULT) >= 0)
            next = ot__h5.H5Oopen(at, link->data, H5P_DEFAULT);
        else if (!link->failed)
            next = ot__h5.H5Gcreate2(at, link->data, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (at != group)
            (void)ot__h5.H5Oclose(at);
        OT_TRY(ot__buf_status(link));
        if (next < 0)
            return ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
        at = next;
    }
    ot__h5_link_name(name, strlen(name), link);
    *inner = at;
    if (!link->failed)
        return OT_OK;
    if (at != group)
        (void)ot__h5.H5Oclose(at);
    return OT_ERR_NO_MEMORY;
}

// A part of a name that looks like the link of another part.
static bool has_link_of_another(const char *name)
{
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strcspn(part, "/") == 1 ? *part == '%'
                                    : strncmp(part, "%.", 2) == 0 && strcspn(part, "/") == 2)
            return true;
    }
    return false;
}

// 'a' and 'a/b' would be a dataset, or a dict of its own, and a group with something in it.
static ot_status check_file_names(const h5_writer *w, const ot_dict *dict)
{
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        char *before = ot__strdup(name);
        char *slash = before != NULL ? strrchr(before, '/') : NULL;
        ot_status st = ot__made(before != NULL);

        for (; st == OT_OK && slash != NULL; slash = strrchr(before, '/')) {
            ot_dict_kind kind;

            *slash = '\0';
            if (*before != '\0' && ot_dict_kind_of(dict, before, &kind) == OT_OK)
                st = ot__error(OT_ERR_UNSUPPORTED,
                               "%s: '%s' and '%s' cannot both be in an HDF5 file, where '/' in a "
                               "name makes groups",
                               w->path, before, name);
        }
        ot__free(before);
        OT_TRY(st);
    }
    return OT_OK;
}

// ---- dicts ----

static ot_status write_h5_dict(h5_writer *w, const ot_dict *dict, hid_t group, int depth);

static ot_status write_inner(h5_writer *w, const ot_dict *dict, const char *name, hid_t group,
                             const char *link, int depth)
{
    const size_t length = w->names.length;
    const hid_t made = ot__h5.H5Gcreate2(group, link, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ot_dict *inner;
    ot_status st;

    if (made < 0)
        return ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    ot__buf_printf(&w->names, "%s/", name);
    st = ot__buf_status(&w->names);
    OT_THEN(st, ot_dict_get_dict((ot_dict *)(uintptr_t)dict, name, &inner));
    OT_THEN(st, write_h5_dict(w, inner, made, depth + 1));
    w->names.length = length;
    if (w->names.data != NULL)
        w->names.data[length] = '\0';
    if (ot__h5.H5Gclose(made) < 0 && st == OT_OK)
        st = ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    return st;
}

static int name_depth(const char *name)
{
    int depth = 0;

    for (; *name != '\0'; name++)
        depth += *name == '/';
    return depth;
}

static ot_status write_h5_entry(h5_writer *w, const ot_dict *dict, const char *name, hid_t group,
                                int depth)
{
    const int inner_depth = depth + name_depth(name);
    ot__buf link = {0};
    ot_dict_kind kind;
    hid_t inner = group;
    ot_status st;

    if (inner_depth >= OT_H5_DEPTH_MAX)
        return refuse_value(w, name, "is nested too deeply for an HDF5 file");
    if (has_link_of_another(name))
        return refuse_value(w, name,
                            "has a part '%' or '%.', which HDF5 files have for '' and '.'");
    OT_TRY(ot_dict_kind_of(dict, name, &kind));
    st = make_groups(w, group, name, &inner, &link);
    if (st == OT_OK) {
        st = kind == OT_DICT_DICT ? write_inner(w, dict, name, inner, link.data, inner_depth)
                                  : write_h5_value(w, dict, name, kind, inner, link.data);
        if (inner != group)
            (void)ot__h5.H5Oclose(inner);
    }
    ot__buf_deinit(&link);
    return st;
}

static ot_status write_h5_dict(h5_writer *w, const ot_dict *dict, hid_t group, int depth)
{
    OT_TRY(check_file_names(w, dict));
    for (int i = 0; i < ot_dict_count(dict); i++)
        OT_TRY(write_h5_entry(w, dict, ot_dict_name(dict, i), group, depth));
    return OT_OK;
}

// ---- the file ----

static ot_status write_open_file(h5_writer *w, const ot_dict *dict)
{
    ot_status st = write_h5_dict(w, dict, w->file, 0);

    if (st == OT_OK && ot__h5.H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0)
        st = ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    if (ot__h5.H5Fclose(w->file) < 0 && st == OT_OK)
        st = ot__h5_error(OT_ERR_IO, w->path, "cannot be written");
    return st;
}

static ot_status write_h5_file(const ot_dict *dict, const char *path, const char *place)
{
    h5_writer w = {.path = path};
    const hid_t access = ot__h5_access();
    ot_status st = OT_OK;

    w.properties = ot__h5.H5Pcreate(*ot__h5.H5P_CLS_DATASET_CREATE_ID_g);
    if (access < 0 || w.properties < 0 ||
        ot__h5.H5Pset_obj_track_times(w.properties, false) < 0 || // the same bytes at any time
        (w.file = ot__h5.H5Fcreate(place, OT_H5_TRUNCATE, H5P_DEFAULT, access)) < 0)
        st = ot__h5_error(OT_ERR_IO, path, "cannot be written");
    OT_THEN(st, write_open_file(&w, dict));
    if (w.properties >= 0)
        (void)ot__h5.H5Pclose(w.properties);
    if (access >= 0)
        (void)ot__h5.H5Pclose(access);
    ot__buf_deinit(&w.names);
    return st;
}

ot_status ot__hdf5_write(const ot_dict *dict, const char *path, ot__file_writer **out)
{
    ot__file_writer *file;
    ot__h5_visit visit;
    ot_status st;

    OT_TRY(ot__file_writer_open_new(&file, path));
    st = ot__h5_enter(&visit);
    if (st == OT_OK) {
        st = write_h5_file(dict, path, ot__file_writer_place(file));
        ot__h5_leave(&visit);
    }
    return OT_HAND_OUT(st, out, file, ot__file_writer_abort);
}
