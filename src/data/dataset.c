// SPDX-License-Identifier: Apache-2.0
// Opening files together and telling their formats apart.
#include <stdatomic.h>
#include <string.h>

#include "data/data.h"

ot__source *ot__dataset_add_source(ot_dataset *dataset, const char *path)
{
    ot__source *source = ot__alloc_zero(1, sizeof(*source));

    if (!source)
        return NULL;
    source->path = ot__strdup(path);
    if (!source->path || !ot__grow(&dataset->sources, &dataset->sources_capacity,
                                   dataset->n_sources, sizeof(source))) {
        ot__free(source->path);
        ot__free(source);
        return NULL;
    }
    dataset->sources[dataset->n_sources++] = source;
    return source;
}

static ot_status check_rows(ot_dataset *dataset, const char *name, ot__field *field)
{
    const char *path = field->source->path;

    // Without rows a row of any size would fit the file, without elements any number of rows.
    if (field->rows == 0)
        return ot__error(OT_ERR_FORMAT, "%s: field '%s' has no rows", path, name);
    if (!ot__shape_count(&field->row_shape, &field->row_count) || field->row_count == 0)
        return ot__error(OT_ERR_FORMAT, "%s: field '%s' has no elements in a row", path, name);
    if (field->source->is_archive) {
        if (dataset->rows < 0)
            dataset->rows = field->rows;
        return OT_OK;
    }
    if (dataset->rows_are_given && field->rows != dataset->rows)
        return ot__error(OT_ERR_INVALID,
                         "%s: field '%s' has %" PRId64 " rows, others have %" PRId64, path, name,
                         field->rows, dataset->rows);
    dataset->rows = field->rows;
    dataset->rows_are_given = true;
    return OT_OK;
}

ot_status ot__dataset_add(ot_dataset *dataset, const char *name, ot__field field)
{
    ot_status st = OT_OK;

    if (ot__map_get(&dataset->names, name))
        st = ot__error(OT_ERR_FORMAT, "%s: field '%s' is there already", field.source->path, name);
    else if (!field.fault)
        st = check_rows(dataset, name, &field);
    OT_THEN(st, ot__made(ot__grow(&dataset->fields, &dataset->fields_capacity, dataset->n_fields,
                                  sizeof(field))));
    if (st == OT_OK) {
        field.name = ot__strdup(name);
        st = ot__made(field.name && ot__map_put(&dataset->names, field.name, field.name));
    }
    if (st != OT_OK) {
        ot__free(field.name);
        ot__free(field.fault);
        return st;
    }
    dataset->fields[dataset->n_fields++] = field;
    return OT_OK;
}

ot_status ot__dataset_add_array(ot_dataset *dataset, const char *name, const ot_shape *shape,
                                ot__field field)
{
    field.rows = shape->dim[0];
    field.row_shape.ndim = shape->ndim - 1;
    memcpy(field.row_shape.dim, shape->dim + 1, (size_t)field.row_shape.ndim * sizeof(int64_t));
    return ot__dataset_add(dataset, name, field);
}

ot_status ot__dataset_add_fault(ot_dataset *dataset, ot__source *source, const char *name)
{
    ot__field field = {.source = source, .fault = ot__strdup(ot_error_message())};

    return field.fault ? ot__dataset_add(dataset, name, field) : OT_ERR_NO_MEMORY;
}

ot_dataset *ot__dataset_create(void)
{
    ot_dataset *dataset = ot__alloc_zero(1, sizeof(*dataset));

    if (!dataset)
        return NULL;
    ot__guard_init(&dataset->guard, OT_KIND_DATASET);
    dataset->n_owners = 1;
    dataset->rows = -1;
    return dataset;
}

void ot__dataset_retain(const ot_dataset *dataset)
{
    atomic_fetch_add(&((ot_dataset *)(uintptr_t)dataset)->n_owners, 1);
}

static void destroy_dataset(ot_dataset *dataset)
{
    ot__map_deinit(&dataset->names);
    for (int i = 0; i < dataset->n_fields; i++) {
        ot__free(dataset->fields[i].name);
        ot__free(dataset->fields[i].fault);
    }
    ot__free(dataset->fields);
    for (int i = 0; i < dataset->n_sources; i++) {
        ot__file_input_close(&dataset->sources[i]->input);
        ot__file_map_close(&dataset->sources[i]->row_map);
        ot__free(dataset->sources[i]->own_row_start);
        ot__free(dataset->sources[i]->path);
        ot__free(dataset->sources[i]);
    }
    ot__free(dataset->sources);
    ot__free(dataset);
}

void ot__dataset_release(const ot_dataset *dataset)
{
    ot_dataset *mine = (ot_dataset *)(uintptr_t)dataset;

    if (mine && atomic_fetch_sub(&mine->n_owners, 1) == 1)
        destroy_dataset(mine);
}

void ot_dataset_destroy(ot_dataset *dataset)
{
    if (!dataset || ot__guard_check(dataset, OT_KIND_DATASET) != OT_OK)
        return;
    ot__guard_deinit(&dataset->guard);
    ot__dataset_release(dataset);
}

void ot__field_place(ot__field *field, uint64_t offset)
{
    const ot__file_input *input = &field->source->input;

    field->is_array = true;
    field->offset = offset;
    if (!input->is_file)
        field->data = input->memory.data + offset;
}

// "train" for "folder/train.csv.gz".
static char *field_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = ot__strdup(slash ? slash + 1 : path), *dot;

    if (name && (dot = strchr(name, '.')) && dot != name)
        *dot = '\0';
    return name;
}

enum { HEAD_BYTES = 4096 }; // by which formats are told apart

static ot_status add_by_format(ot_dataset *dataset, ot__source *source, const char *name,
                               const ot_dataset_options *options, const uint8_t *head, size_t n)
{
    OT_TRY(ot__file_kind_check(head, n, source->path, OT_FILE_DATA));
    if (n >= 6 && memcmp(head, "\x93NUMPY", 6) == 0)
        return ot__npy_add(dataset, source, 0, source->input.size, name, options);
    if (n >= 4 && memcmp(head, "PK", 2) == 0)
        return ot__npz_add(dataset, source, options);
    if (n >= 4 && head[0] == 0 && head[1] == 0)
        return ot__idx_add(dataset, source, name);
    if (n > 0 && memchr(head, '\0', n))
        return ot__error(OT_ERR_FORMAT, "%s: is not one of .npz, .npy, CSV and IDX", source->path);
    return ot__csv_add(dataset, source, options);
}

static ot_status read_dataset_head(const ot__source *source, uint8_t *head, size_t *n)
{
    *n = (size_t)OT_MIN(source->input.size, (uint64_t)HEAD_BYTES);
    return ot__file_input_read(&source->input, source->path, 0, head, *n);
}

// The fields of a source, packed or not.
static ot_status add_source(ot_dataset *dataset, ot__source *source, const char *name,
                            const ot_dataset_options *options)
{
    uint8_t head[HEAD_BYTES];
    size_t n;

    OT_TRY(read_dataset_head(source, head, &n));
    if (n >= 2 && head[0] == 0x1f && head[1] == 0x8b) {
        OT_TRY(ot__unpack_gzip(source, options));
        OT_TRY(read_dataset_head(source, head, &n));
    }
    return add_by_format(dataset, source, name, options, head, n);
}

// `spec` is a path or "name=path".
static ot_status open_one(ot_dataset *dataset, const char *spec, const ot_dataset_options *options)
{
    const char *equals = strchr(spec, '=');
    const char *path = equals && !ot__path_exists(spec) ? equals + 1 : spec;
    char *name = path == spec ? field_name_of(spec) : ot__strdup(spec);
    ot__source *source = ot__dataset_add_source(dataset, path);
    ot_status st = ot__made(name && source);

    if (name && path != spec)
        name[equals - spec] = '\0';
    OT_THEN(st, ot__file_input_open(&source->input, path));
    OT_THEN(st, add_source(dataset, source, name, options));
    ot__free(name);
    return st;
}

ot_status ot_dataset_open(const char *const *paths, int n_paths, const ot_dataset_options *options,
                          ot_dataset **out)
{
    ot_dataset_options own;
    ot_dataset *dataset;
    ot_status st = OT_OK;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN_MANY(paths, n_paths));
    if (n_paths < 1)
        return ot__error(OT_ERR_INVALID, "no data file is given");
    OT_TRY(OT_OPTIONS_READ(ot_dataset_options, OT_DATASET_OPTIONS_INIT, options, &own));
    dataset = ot__dataset_create();
    OT_TRY(ot__made(dataset));
    for (int i = 0; st == OT_OK && i < n_paths; i++)
        st = paths[i] ? open_one(dataset, paths[i], &own)
                      : ot__error(OT_ERR_INVALID, "path %d is NULL", i);
    return OT_HAND_OUT(st, out, dataset, ot_dataset_destroy);
}

ot_status ot__dataset_open_bytes(const void *bytes, size_t n_bytes,
                                 const ot_dataset_options *options, ot_dataset **out)
{
    const ot_dataset_options defaults = OT_DATASET_OPTIONS_INIT;
    ot_dataset *dataset = ot__dataset_create();
    ot__source *source;
    ot__file_map copy = {.data = ot__alloc(n_bytes), .size = n_bytes};
    ot_status st = OT_ERR_NO_MEMORY;

    *out = NULL;
    source = dataset && copy.data ? ot__dataset_add_source(dataset, "data") : NULL;
    if (source) {
        memcpy((void *)(uintptr_t)copy.data, bytes, n_bytes);
        ot__file_input_of(&source->input, &copy);
        st = add_source(dataset, source, "data", options ? options : &defaults);
    }
    ot__file_map_close(&copy);
    return OT_HAND_OUT(st, out, dataset, ot_dataset_destroy);
}

int64_t ot_dataset_rows(const ot_dataset *dataset)
{
    return OT_IS_LIVE(dataset) ? dataset->rows : 0;
}

int ot_dataset_field_count(const ot_dataset *dataset)
{
    return OT_IS_LIVE(dataset) ? dataset->n_fields : 0;
}

const char *ot_dataset_field_name(const ot_dataset *dataset, int index)
{
    return OT_IS_LIVE(dataset) && index >= 0 && index < dataset->n_fields
               ? dataset->fields[index].name
               : NULL;
}

ot_status ot_dataset_field_info(const ot_dataset *dataset, int index, ot_dtype *dtype,
                                ot_shape *row_shape)
{
    OT_TRY(OT_GIVEN(dataset));
    OT_TRY(OT_GIVEN(dtype));
    OT_TRY(OT_GIVEN(row_shape));
    if (index < 0 || index >= dataset->n_fields)
        return ot__error(OT_ERR_NOT_FOUND, "there is no field number %d of %d", index,
                         dataset->n_fields);
    if (dataset->fields[index].fault)
        return ot__error(OT_ERR_UNSUPPORTED, "%s", dataset->fields[index].fault);
    *dtype = dataset->fields[index].dtype;
    *row_shape = dataset->fields[index].row_shape;
    return OT_OK;
}
