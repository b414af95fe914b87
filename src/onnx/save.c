// SPDX-License-Identifier: Apache-2.0
// Models to files, large constants beside them when asked for or needed.
#include <stdlib.h>
#include <string.h>

#include "onnx/protobuf/write.h"

static const size_t data_alignment = 4096; // so that other runtimes can map each constant alone
static const uint64_t max_embedded = UINT64_C(1932735283); // 1.8 GiB: protobuf ends at 2
static const size_t default_external_from = 1024;

#define DATA_SUFFIX ".data"

typedef struct saving {
    const ot_model *model;
    size_t external_from;
    ot__placement *placements;
    int n_placements, capacity;
    uint64_t n_data;
} saving;

// ---- what goes to the other file ----

static ot_status place_external(saving *s, const ot_value *value)
{
    uint64_t offset = (s->n_data + data_alignment - 1) / data_alignment * data_alignment;

    if (value->constant->dtype == OT_STRING || value->constant->n_bytes < s->external_from ||
        value->constant->n_bytes == 0)
        return OT_OK;
    OT_TRY(
        ot__made(ot__grow(&s->placements, &s->capacity, s->n_placements, sizeof *s->placements)));
    s->placements[s->n_placements++] = (ot__placement){value, offset};
    s->n_data = offset + value->constant->n_bytes;
    return OT_OK;
}

static ot_status place_graph(saving *s, const ot_graph *graph)
{
    for (int i = 0; i < graph->n_initializers; i++)
        OT_TRY(place_external(s, graph->initializers[i]));
    for (int n = 0; n < graph->n_nodes; n++)
        for (ot__subgraphs inner = {.node = graph->nodes[n]}; ot__next_subgraph(&inner);)
            OT_TRY(place_graph(s, inner.graph));
    return OT_OK;
}

static ot_status write_external(const saving *s, ot__file_writer *file)
{
    static const char zeros[4096];
    uint64_t at = 0;

    for (int i = 0; i < s->n_placements; i++) {
        const ot_tensor *tensor = s->placements[i].value->constant;

        OT_TRY(ot__file_writer_write(file, zeros, (size_t)(s->placements[i].offset - at)));
        OT_TRY(ot__file_writer_write(file, tensor->data, tensor->n_bytes));
        at = s->placements[i].offset + tensor->n_bytes;
    }
    return OT_OK;
}

// ---- the files ----

// Fields are a few bytes each: they are gathered before they go to the system.
typedef struct gathered {
    ot__file_writer *file;
    size_t n;
    char bytes[1 << 16];
} gathered;

static ot_status pass_on(gathered *g)
{
    size_t n = g->n;

    g->n = 0;
    return ot__file_writer_write(g->file, g->bytes, n);
}

static ot_status write_to_file(void *context, const void *bytes, size_t n_bytes)
{
    gathered *g = context;

    if (n_bytes > sizeof g->bytes - g->n)
        OT_TRY(pass_on(g));
    if (n_bytes >= sizeof g->bytes)
        return ot__file_writer_write(g->file, bytes, n_bytes);
    memcpy(g->bytes + g->n, bytes, n_bytes);
    g->n += n_bytes;
    return OT_OK;
}

static ot_status write_model_file(const saving *s, const char *location, ot__file_writer *file)
{
    gathered *g = ot__alloc_zero(1, sizeof *g);
    const ot__placements placements = {s->placements, s->n_placements, location};
    ot__wire wire = {.write = write_to_file, .context = g, .extra = &placements};

    OT_TRY(ot__made(g));
    g->file = file;
    ot__write_model(&wire, s->model);
    if (wire.status == OT_OK)
        wire.status = pass_on(g);
    ot__free(g);
    return wire.status;
}

static const char *saved_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

// ---- two files ----
//
// Readers take the name of the data file from the model as it stands, so new data get a new name,
// made from what they are; the model that refers to it comes after it.

static uint64_t data_id(const saving *s)
{
    uint64_t id = 0;

    for (int i = 0; i < s->n_placements; i++) {
        const ot_tensor *tensor = s->placements[i].value->constant;

        id = ot__id_mix_word(id, s->placements[i].offset);
        id = ot__id_mix(id, tensor->data, tensor->n_bytes);
    }
    return id;
}

typedef struct data_names {
    const char *model, *present; // names without folder
} data_names;

// "<model>.<id>.data" of another id.
static bool is_old_data(const void *context, const char *name)
{
    const data_names *names = context;
    const size_t n = strlen(names->model);

    return strcmp(name, names->present) != 0 && strncmp(name, names->model, n) == 0 &&
           name[n] == '.' && ot__is_hex_id(name + n + 1) &&
           strcmp(name + n + 1 + OT_HEX_ID_LENGTH, DATA_SUFFIX) == 0;
}

static ot_status write_both(saving *s, const char *location, ot__file_writer *data,
                            ot__file_writer *file)
{
    OT_TRY(write_external(s, data));
    // From here on they are looked up.
    qsort(s->placements, (size_t)s->n_placements, sizeof *s->placements, ot__compare_placements);
    return write_model_file(s, location, file);
}

static ot_status save_files(saving *s, const char *path)
{
    ot__file_writer *data = NULL, *file = NULL;
    ot__buf data_path = {0};
    char id[OT_HEX_ID_LENGTH + 1];
    data_names names = {saved_base_name(path), ""}; // of a model before
    ot_status st = ot__file_writer_open(&file, path);

    if (s->n_placements == 0) {
        OT_THEN(st, write_model_file(s, NULL, file));
    } else {
        ot__id_text(data_id(s), id);
        ot__buf_printf(&data_path, "%s.%s" DATA_SUFFIX, path, id);
        OT_THEN(st, ot__buf_status(&data_path));
        OT_THEN(st, ot__file_writer_open(&data, data_path.data));
        names.present = st == OT_OK ? saved_base_name(data_path.data) : "";
        OT_THEN(st, write_both(s, names.present, data, file));
    }
    if (st == OT_OK) {
        st = ot__file_pair_commit(path, data, file, &(ot__file_names){is_old_data, &names});
    } else {
        ot__file_writer_abort(data);
        ot__file_writer_abort(file);
    }
    ot__buf_deinit(&data_path);
    return st;
}

static uint64_t embedded_size(const ot_model *model)
{
    ot__wire wire = {.is_counting = true};

    ot__write_model(&wire, model);
    return wire.count;
}

static ot_status save_protobuf(const ot_model *model, const char *path,
                               const ot_model_options *options)
{
    saving s = {.model = model, .external_from = options->external_from};
    uint64_t size = embedded_size(model);
    ot_status st = OT_OK;

    if (s.external_from == 0)
        s.external_from = size > max_embedded ? default_external_from : SIZE_MAX;
    if (s.external_from != SIZE_MAX && strcmp(path, "-") == 0)
        return ot__error(
            OT_ERR_UNSUPPORTED,
            "a model of %" PRIu64 " bytes with external data cannot go to standard output", size);
    if (s.external_from != SIZE_MAX)
        st = place_graph(&s, model->graph);
    OT_THEN(st, save_files(&s, path));
    ot__free(s.placements);
    return st;
}

// Of the other forms.
static ot_status save_whole(const ot_model *model, const char *path, bool is_text)
{
    ot__buf bytes = {0};
    ot_status st = is_text ? ot__text_write(model, NULL, &bytes) : ot__ort_write(model, &bytes);

    OT_THEN(st, ot__file_write(path, bytes.data, bytes.length));
    ot__buf_deinit(&bytes);
    return st;
}

ot_status ot_model_save(const ot_model *model, const char *path, const ot_model_options *options)
{
    ot_model_options own;
    bool is_text;

    OT_TRY(OT_GIVEN(model));
    OT_TRY(OT_GIVEN(path));
    OT_TRY(OT_OPTIONS_READ(ot_model_options, OT_MODEL_OPTIONS_INIT, options, &own));
    is_text = ot__ends_with(path, ".onnxtxt");
    if (is_text || ot__ends_with(path, ".ort"))
        return save_whole(model, path, is_text);
    return save_protobuf(model, path, &own);
}

ot_status ot_model_to_bytes(const ot_model *model, ot_tensor **out)
{
    ot__buf bytes = {0};
    uint64_t size;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    size = embedded_size(model);
    if (size > INT32_MAX)
        return ot__error(OT_ERR_INVALID,
                         "a model of %" PRIu64 " bytes, protobuf holds 2 GiB: save it to a file",
                         size);
    st = ot__onnx_write(model, &bytes);
    OT_THEN(st, ot_tensor_create(OT_U8, &OT_SHAPE((int64_t)bytes.length), out));
    if (st == OT_OK)
        memcpy(ot_tensor_data(*out), bytes.data, bytes.length);
    ot__buf_deinit(&bytes);
    return st;
}

ot_status ot_model_to_text(const ot_model *model, char **out)
{
    const ot__text_options shortened = {.max_elements = 16};
    ot__buf text = {0};
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    st = ot__text_write(model, &shortened, &text);
    if (st == OT_OK)
        *out = text.data; // never NULL: every model has text
    else
        ot__buf_deinit(&text);
    return st;
}

void ot_string_free(char *text)
{
    ot__free(text);
}
