// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdarg.h>

#include "ckpt/hdf5_check.h"

ot_status ot__h5_refuse(const ot__h5_reader *reader, ot_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)ot__error_v(status, format, args);
    va_end(args);
    return ot__error_prefix(status, "%s: '%s'", reader->path,
                            reader->name.length > 0 ? reader->name.data : "/");
}

// ---- objects ----

static bool insert_place(uint64_t *slots, size_t n_slots, uint64_t place)
{
    size_t i = (size_t)((place + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20) % n_slots;

    for (; slots[i] != 0; i = (i + 1) % n_slots)
        if (slots[i] == place + 1)
            return false;
    slots[i] = place + 1;
    return true;
}

static ot_status grow_places(ot__h5_places *seen)
{
    const size_t n_slots = seen->n_slots > 0 ? seen->n_slots * 2 : 64;
    uint64_t *slots = ot__alloc_zero(n_slots, sizeof *slots);

    OT_TRY(ot__made(slots != NULL));
    for (size_t i = 0; i < seen->n_slots; i++)
        if (seen->slots[i] != 0)
            (void)insert_place(slots, n_slots, seen->slots[i] - 1);
    ot__free(seen->slots);
    seen->slots = slots;
    seen->n_slots = n_slots;
    return OT_OK;
}

static ot_status note_object(ot__h5_reader *r, uint64_t place)
{
    if (r->seen.n >= OT_H5_OBJECTS_MAX)
        return ot__h5_refuse(r, OT_ERR_FORMAT, "is one object more than the %d that are read",
                             (int)OT_H5_OBJECTS_MAX);
    if ((size_t)r->seen.n * 2 >= r->seen.n_slots)
        OT_TRY(grow_places(&r->seen));
    if (!insert_place(r->seen.slots, r->seen.n_slots, place))
        return ot__h5_refuse(r, OT_ERR_FORMAT, "is an object that has another name already");
    r->seen.n++;
    return OT_OK;
}

static ot_status refuse_link(const ot__h5_reader *r, H5L_type_t type)
{
    const char *what = type == H5L_TYPE_SOFT       ? "a soft link"
                       : type == H5L_TYPE_EXTERNAL ? "a link to another file"
                                                   : "a user-defined link";

    return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "is %s, which is not followed", what);
}

ot_status ot__h5_unreadable(const ot__h5_reader *r)
{
    char text[OT_H5_MESSAGE_MAX];

    return ot__h5_refuse(r, OT_ERR_FORMAT, "cannot be read: libhdf5: %s", ot__h5_message(text));
}

ot_status ot__h5_open_object(ot__h5_reader *r, hid_t at, const char *name, hid_t *object,
                             H5O_type_t *type)
{
    H5O_info_t about;
    ot_status st;

    *object = ot__h5.H5Oopen(at, name, H5P_DEFAULT);
    if (*object < 0)
        return ot__h5_unreadable(r);
    st = ot__h5.H5Oget_info2(*object, &about, H5O_INFO_BASIC) < 0
             ? ot__h5_unreadable(r)
             : note_object(r, (uint64_t)about.addr);
    *type = about.type;
    if (st != OT_OK)
        (void)ot__h5.H5Oclose(*object);
    return st;
}

ot_status ot__h5_open_link(ot__h5_reader *r, hid_t group, const char *link, hid_t *object,
                           H5O_type_t *type)
{
    H5L_info_t info;

    if (ot__h5.H5Lget_info(group, link, &info, H5P_DEFAULT) < 0)
        return ot__h5_unreadable(r);
    return info.type == H5L_TYPE_HARD ? ot__h5_open_object(r, group, link, object, type)
                                      : refuse_link(r, info.type);
}

// ---- datasets ----

static ot_status check_filters(const ot__h5_reader *r, hid_t properties, uint64_t *factor)
{
    const int n = ot__h5.H5Pget_nfilters(properties);

    for (int i = 0; i < n; i++) {
        size_t n_values = 0;
        unsigned flags, config;
        char name[64] = "";
        const H5Z_filter_t filter = ot__h5.H5Pget_filter2(
            properties, (unsigned)i, &flags, &n_values, NULL, sizeof name, name, &config);

        if (filter == H5Z_FILTER_DEFLATE)
            *factor = OT_H5_DEFLATE_FACTOR;
        else if (filter != H5Z_FILTER_SHUFFLE)
            return ot__h5_refuse(r, OT_ERR_UNSUPPORTED,
                                 "goes through filter %d (%s), known are deflate and shuffle",
                                 (int)filter, name[0] != '\0' ? name : "no name");
    }
    return n < 0 ? ot__h5_unreadable(r) : OT_OK;
}

// The library makes a whole chunk in memory.
static ot_status check_chunk(const ot__h5_reader *r, hid_t properties, size_t element,
                             uint64_t n_bytes_max)
{
    hsize_t dims[OT_MAX_NDIM] = {0};
    const int ndim = ot__h5.H5Pget_chunk(properties, OT_MAX_NDIM, dims);
    size_t n_bytes = element;
    bool overflows = ndim > OT_MAX_NDIM;

    if (ndim < 0)
        return ot__h5_unreadable(r);
    for (int i = 0; i < ndim && !overflows; i++)
        overflows =
            dims[i] > SIZE_MAX || ot__size_mul_overflows(n_bytes, (size_t)dims[i], &n_bytes);
    if (overflows || n_bytes > OT_H5_CHUNK_FREE + n_bytes_max)
        return ot__h5_refuse(r, OT_ERR_FORMAT,
                             "has chunks larger than the file of %" PRIu64 " bytes can hold",
                             r->file_bytes);
    return OT_OK;
}

static ot_status check_storage(ot__h5_reader *r, hid_t properties, size_t element, size_t n_bytes)
{
    const H5D_layout_t layout = ot__h5.H5Pget_layout(properties);
    uint64_t factor = 1, n_bytes_max;

    if (layout == H5D_VIRTUAL)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED,
                             "is a virtual dataset, whose data are in other files");
    if (layout < 0)
        return ot__h5_unreadable(r);
    if (ot__h5.H5Pget_external_count(properties) != 0)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "has its data in other files");
    OT_TRY(check_filters(r, properties, &factor));
    n_bytes_max = r->file_bytes > UINT64_MAX / factor ? UINT64_MAX : r->file_bytes * factor;
    if (n_bytes > n_bytes_max)
        return ot__h5_refuse(r, OT_ERR_FORMAT,
                             "has %zu bytes, more than the file of %" PRIu64 " bytes can hold",
                             n_bytes, r->file_bytes);
    return layout == H5D_CHUNKED ? check_chunk(r, properties, element, n_bytes_max) : OT_OK;
}

static ot_status read_shape(const ot__h5_reader *r, hid_t space, ot_shape *shape)
{
    hsize_t dims[OT_MAX_NDIM];
    const int ndim = ot__h5.H5Sget_simple_extent_ndims(space);

    if (ot__h5.H5Sget_simple_extent_type(space) == H5S_NULL)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "has no value (a null dataspace)");
    if (ndim > OT_MAX_NDIM)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "has %d axes, at most %d are read", ndim,
                             (int)OT_MAX_NDIM);
    if (ndim < 0 || ot__h5.H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return ot__h5_unreadable(r);
    *shape = (ot_shape){.ndim = ndim};
    for (int i = 0; i < ndim; i++) {
        if (dims[i] > INT64_MAX)
            return ot__h5_refuse(r, OT_ERR_FORMAT, "has an axis of size %" PRIu64,
                                 (uint64_t)dims[i]);
        shape->dim[i] = (int64_t)dims[i];
    }
    return OT_OK;
}

static const char *class_name(H5T_class_t class)
{
    static const char *const names[] = {
        [H5T_INTEGER] = "integers",    [H5T_FLOAT] = "floats",
        [H5T_TIME] = "times",          [H5T_STRING] = "strings",
        [H5T_BITFIELD] = "bit fields", [H5T_OPAQUE] = "opaque bytes",
        [H5T_COMPOUND] = "compounds",  [H5T_REFERENCE] = "references",
        [H5T_ENUM] = "an enumeration", [H5T_VLEN] = "lists of any length",
        [H5T_ARRAY] = "arrays",
    };

    return class >= 0 && (size_t) class < OT_COUNT(names) ? names[class] : "an unknown class";
}

static ot_status check_type(const ot__h5_reader *r, ot__h5_dataset *dataset)
{
    const H5T_class_t class = ot__h5.H5Tget_class(dataset->type);

    dataset->is_string = class == H5T_STRING && dataset->shape.ndim == 0;
    if (dataset->is_string)
        return OT_OK;
    dataset->dtype = ot__h5_dtype(dataset->type);
    if (dataset->dtype == OT_DTYPE_UNDEFINED)
        return ot__h5_refuse(r, OT_ERR_UNSUPPORTED, "is of %s%s of %zu bytes%s, which are not read",
                             dataset->shape.ndim > 0 ? "an array of " : "", class_name(class),
                             ot__h5.H5Tget_size(dataset->type),
                             class == H5T_ENUM ? " other than FALSE 0, TRUE 1" : "");
    return OT_OK;
}

// In one piece and with our element type and byte order. Where something of the user's comes before
// the file proper, versions of the library count places differently.
static bool lies_as_here(const ot__h5_reader *r, ot__h5_dataset *dataset, size_t n_bytes)
{
    const haddr_t at = r->view == NULL || dataset->is_string || n_bytes == 0
                           ? HADDR_UNDEF
                           : ot__h5.H5Dget_offset(dataset->id);
    hid_t type;
    bool is_same;

    if (at == HADDR_UNDEF || at % ot_dtype_size(dataset->dtype) != 0 || at > r->view->size ||
        n_bytes > r->view->size - at || r->view->data[0] != 0x89)
        return false;
    type = ot__h5_type(dataset->dtype);
    is_same = type >= 0 && ot__h5.H5Tequal(type, dataset->type) > 0;
    if (type >= 0)
        (void)ot__h5.H5Tclose(type);
    dataset->at = at;
    return is_same;
}

static ot_status check_size(ot__h5_reader *r, hid_t properties, ot__h5_dataset *dataset)
{
    const size_t element = ot__h5.H5Tget_size(dataset->type); // in the file
    size_t n_bytes = element, n_bytes_here = element;
    int64_t count;

    if (!ot__shape_count(&dataset->shape, &count) ||
        ot__size_mul_overflows(element, (size_t)count, &n_bytes) ||
        (!dataset->is_string && !ot__dtype_bytes(dataset->dtype, count, &n_bytes_here)))
        return ot__h5_refuse(r, OT_ERR_FORMAT, "is %s, which is too large",
                             OT_SHAPE_TEXT(&dataset->shape));
    OT_TRY(check_storage(r, properties, element, n_bytes));
    dataset->is_view = dataset->shape.ndim > 0 && lies_as_here(r, dataset, n_bytes_here);
    if (r->reads || dataset->is_view) // all has been added up before
        return OT_OK;
    if (ot__size_add_overflows(r->n_bytes, n_bytes_here, &r->n_bytes) ||
        r->n_bytes > ot__memory_left(0))
        return ot__h5_refuse(r, OT_ERR_NO_MEMORY,
                             "and what comes before it need %zu bytes, more than are left of the "
                             "memory limit",
                             r->n_bytes);
    return OT_OK;
}

ot_status ot__h5_check_dataset(ot__h5_reader *r, hid_t id, ot__h5_dataset *out)
{
    const hid_t space = ot__h5.H5Dget_space(id);
    const hid_t properties = ot__h5.H5Dget_create_plist(id);
    ot_status st;

    *out = (ot__h5_dataset){.id = id, .type = ot__h5.H5Dget_type(id)};
    st = space < 0 || properties < 0 || out->type < 0 ? ot__h5_unreadable(r)
                                                      : read_shape(r, space, &out->shape);
    OT_THEN(st, check_type(r, out));
    OT_THEN(st, check_size(r, properties, out));
    if (space >= 0)
        (void)ot__h5.H5Sclose(space);
    if (properties >= 0)
        (void)ot__h5.H5Pclose(properties);
    return st;
}
