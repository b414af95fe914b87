// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files. Every rule is checked before a byte of the data is looked at; the
// memory that is taken is that of names and shapes, which the header spells out.
#include <stdlib.h>
#include <string.h>

#include "shards/safetensors.h"

enum { LENGTH_BYTES = 8 };
#define NUMBER_MAX ((uint64_t)1 << 48)

static const struct {
    const char *name;
    ot_dtype dtype;
    int bits;
} element_types[] = {
    {"BOOL", OT_BOOL, 8},
    {"F4", OT_F4E2M1, 4},
    {"F6_E2M3", OT_F6E2M3, 6},
    {"F6_E3M2", OT_F6E3M2, 6},
    {"U8", OT_U8, 8},
    {"I8", OT_I8, 8},
    {"F8_E5M2", OT_F8E5M2, 8},
    {"F8_E4M3", OT_F8E4M3FN, 8},
    {"F8_E8M0", OT_F8E8M0, 8},
    {"F8_E4M3FNUZ", OT_F8E4M3FNUZ, 8},
    {"F8_E5M2FNUZ", OT_F8E5M2FNUZ, 8},
    {"I16", OT_I16, 16},
    {"U16", OT_U16, 16},
    {"F16", OT_F16, 16},
    {"BF16", OT_BF16, 16},
    {"I32", OT_I32, 32},
    {"U32", OT_U32, 32},
    {"F32", OT_F32, 32},
    {"C64", OT_C64, 64},
    {"F64", OT_F64, 64},
    {"I64", OT_I64, 64},
    {"U64", OT_U64, 64},
};

int ot__safetensors_rank(ot_dtype dtype)
{
    for (size_t i = 0; i < OT_COUNT(element_types); i++)
        if (element_types[i].dtype == dtype)
            return (int)i;
    return -1;
}

const char *ot__safetensors_type(ot_dtype dtype)
{
    const int rank = ot__safetensors_rank(dtype);

    return rank < 0 ? NULL : element_types[rank].name;
}

ot_dtype ot__safetensors_dtype(const char *name)
{
    for (size_t i = 0; i < OT_COUNT(element_types); i++)
        if (strcmp(element_types[i].name, name) == 0)
            return element_types[i].dtype;
    return OT_DTYPE_UNDEFINED;
}

ot_status ot__safetensor_bytes(const ot__safetensor *tensor, uint64_t *n_bytes)
{
    ot_shape shape = {.ndim = tensor->ndim};
    int64_t count, bits;

    memcpy(shape.dim, tensor->dims, (size_t)tensor->ndim * sizeof *tensor->dims);
    if (!ot__shape_count(&shape, &count) ||
        ot__mul_overflows(count, element_types[ot__safetensors_rank(tensor->dtype)].bits, &bits))
        return ot__error(OT_ERR_FORMAT, "tensor '%s': the size of %s %s overflows", tensor->name,
                         ot__safetensors_type(tensor->dtype), OT_SHAPE_TEXT(&shape));
    if (bits % 8 != 0)
        return ot__error(OT_ERR_FORMAT, "tensor '%s': %" PRId64 " elements of %s end within a byte",
                         tensor->name, count, ot__safetensors_type(tensor->dtype));
    *n_bytes = (uint64_t)bits / 8;
    return OT_OK;
}

// ---- JSON ----

typedef struct header {
    ot__json_scan scan;
    ot__safetensors *file;
    ot__safetensor *tensors;
    ot__safetensors_text *texts;
    int tensors_capacity, texts_capacity;
} header;

static ot_status scan_type(header *h, ot__safetensor *tensor)
{
    const char *name;

    OT_TRY(ot__json_scan_string(&h->scan, &name));
    tensor->dtype = ot__safetensors_dtype(name);
    return tensor->dtype != OT_DTYPE_UNDEFINED
               ? OT_OK
               : ot__json_scan_error(&h->scan, "unknown dtype '%s'", name);
}

static ot_status scan_shape(header *h, ot__safetensor *tensor)
{
    int64_t dims[OT_MAX_NDIM];
    const char *none;
    bool has_more;

    OT_TRY(ot__json_scan_open(&h->scan, '['));
    for (;;) {
        uint64_t size;

        OT_TRY(ot__json_scan_next(&h->scan, &none, &has_more));
        if (!has_more)
            break;
        if (tensor->ndim == OT_MAX_NDIM)
            return ot__json_scan_error(&h->scan, "more than %d axes", OT_MAX_NDIM);
        OT_TRY(ot__json_scan_count(&h->scan, NUMBER_MAX, &size));
        dims[tensor->ndim++] = (int64_t)size;
    }
    tensor->dims =
        ot__arena_memdup(h->file->arena, dims, (size_t)tensor->ndim * sizeof *tensor->dims);
    return ot__made(tensor->dims != NULL);
}

static ot_status scan_offsets(header *h, ot__safetensor *tensor)
{
    uint64_t *const offsets[] = {&tensor->begin, &tensor->end};
    const char *none;
    bool has_more;

    OT_TRY(ot__json_scan_open(&h->scan, '['));
    for (size_t i = 0; i < OT_COUNT(offsets); i++) {
        OT_TRY(ot__json_scan_next(&h->scan, &none, &has_more));
        if (!has_more)
            return ot__json_scan_error(&h->scan, "data_offsets has %zu numbers, expected 2", i);
        OT_TRY(ot__json_scan_count(&h->scan, NUMBER_MAX, offsets[i]));
    }
    OT_TRY(ot__json_scan_next(&h->scan, &none, &has_more));
    return has_more ? ot__json_scan_error(&h->scan, "data_offsets has more than 2 numbers") : OT_OK;
}

static ot_status scan_field(header *h, const char *name, ot__safetensor *tensor, unsigned *seen)
{
    static const struct {
        const char *name;
        ot_status (*scan)(header *h, ot__safetensor *tensor);
    } fields[] = {{"dtype", scan_type}, {"shape", scan_shape}, {"data_offsets", scan_offsets}};

    for (unsigned i = 0; i < OT_COUNT(fields); i++)
        if (strcmp(fields[i].name, name) == 0) {
            if ((*seen >> i & 1) != 0)
                return ot__json_scan_error(&h->scan, "%s is there twice", name);
            *seen |= 1U << i;
            return fields[i].scan(h, tensor);
        }
    return ot__json_scan_skip(&h->scan); // as the format's makers do
}

static ot_status scan_tensor(header *h, const char *name)
{
    enum { ALL = 7 };
    ot__safetensor tensor = {.name = name};
    unsigned seen = 0;
    bool has_more;

    OT_TRY(ot__json_scan_open(&h->scan, '{'));
    for (;;) {
        const char *field;

        OT_TRY(ot__json_scan_next(&h->scan, &field, &has_more));
        if (!has_more)
            break;
        OT_TRY(scan_field(h, field, &tensor, &seen));
    }
    if (seen != ALL)
        return ot__json_scan_error(&h->scan, "no %s",
                                   (seen & 1) == 0   ? "dtype"
                                   : (seen & 2) == 0 ? "shape"
                                                     : "data_offsets");
    return ot__made(ot__arena_push(h->file->arena, &h->tensors, &h->tensors_capacity,
                                   &h->file->n_tensors, &tensor, sizeof tensor));
}

static ot_status scan_texts(header *h)
{
    ot__map names = {0};
    ot_status st = ot__json_scan_open(&h->scan, '{');
    bool has_more = true;

    while (st == OT_OK) {
        ot__safetensors_text item = {0};
        const char *read;

        st = ot__json_scan_next(&h->scan, &read, &has_more);
        if (st != OT_OK || !has_more)
            break;
        item.name = ot__arena_strdup(h->file->arena, read);
        OT_THEN(st, ot__made(item.name != NULL));
        if (st == OT_OK && ot__map_get(&names, item.name) != NULL)
            st = ot__json_scan_error(&h->scan, "'%s' is there twice", item.name);
        OT_THEN(st, ot__made(ot__map_put(&names, item.name, h)));
        OT_THEN(st, ot__json_scan_string(&h->scan, &read));
        if (st == OT_OK)
            item.text = ot__arena_strdup(h->file->arena, read);
        OT_THEN(st, ot__made(item.text != NULL &&
                             ot__arena_push(h->file->arena, &h->texts, &h->texts_capacity,
                                            &h->file->n_texts, &item, sizeof item)));
    }
    ot__map_deinit(&names);
    return st;
}

static ot_status scan_member(header *h, const char *read, bool *has_texts)
{
    const char *name;
    ot_status st;

    if (strcmp(read, "__metadata__") == 0) {
        if (*has_texts)
            return ot__json_scan_error(&h->scan, "__metadata__ is there twice");
        *has_texts = true;
        st = scan_texts(h);
        return st == OT_ERR_FORMAT ? ot__error_prefix(st, "__metadata__") : st;
    }
    name = ot__arena_strdup(h->file->arena, read);
    OT_TRY(ot__made(name != NULL));
    if (ot__map_get(&h->file->by_name, name) != NULL)
        return ot__json_scan_error(&h->scan, "tensor '%s' is there twice", name);
    OT_TRY(ot__made(ot__map_put(&h->file->by_name, name, h))); // its place is not known yet
    st = scan_tensor(h, name);
    return st == OT_ERR_FORMAT ? ot__error_prefix(st, "tensor '%s'", name) : st;
}

static ot_status scan_members(header *h)
{
    bool has_more, has_texts = false;
    const char *name;

    OT_TRY(ot__json_scan_open(&h->scan, '{'));
    for (;;) {
        OT_TRY(ot__json_scan_next(&h->scan, &name, &has_more));
        if (!has_more)
            return ot__json_scan_end(&h->scan);
        OT_TRY(scan_member(h, name, &has_texts));
    }
}

// ---- places ----

static int compare_begins(const void *a, const void *b)
{
    const ot__safetensor *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static ot_status check_tensor_places(const header *h)
{
    uint64_t at = 0, n_bytes;

    for (int i = 0; i < h->file->n_tensors; at = h->tensors[i++].end) {
        const ot__safetensor *t = &h->tensors[i];

        if (t->begin != at || t->end < at)
            return ot__error(OT_ERR_FORMAT,
                             "tensor '%s': its bytes are %" PRIu64 " to %" PRIu64
                             ", expected to begin at %" PRIu64,
                             t->name, t->begin, t->end, at);
    }
    for (int i = 0; i < h->file->n_tensors; i++) {
        const ot__safetensor *t = &h->tensors[i];

        OT_TRY(ot__safetensor_bytes(t, &n_bytes));
        if (t->end - t->begin != n_bytes)
            return ot__error(OT_ERR_FORMAT,
                             "tensor '%s': has %" PRIu64 " bytes, its shape and type %" PRIu64,
                             t->name, t->end - t->begin, n_bytes);
    }
    return OT_OK;
}

static ot_status check_end_of_data(const header *h, size_t n_bytes)
{
    const int n = h->file->n_tensors;
    const uint64_t expected = h->file->data_start + (n > 0 ? h->tensors[n - 1].end : 0);

    return expected == n_bytes
               ? OT_OK
               : ot__error(OT_ERR_FORMAT, "has %zu bytes, its tensors end at %" PRIu64, n_bytes,
                           expected);
}

// The map has the tensors from here on.
static ot_status enter_tensors(header *h)
{
    for (int i = 0; i < h->file->n_tensors; i++)
        OT_TRY(ot__made(ot__map_put(&h->file->by_name, h->tensors[i].name, &h->tensors[i])));
    return OT_OK;
}

// ---- the file ----

static ot_status find_header(const uint8_t *bytes, size_t n_bytes, uint64_t *length)
{
    *length = 0;
    if (n_bytes < LENGTH_BYTES)
        return ot__error(OT_ERR_FORMAT, "has %zu bytes, fewer than a header's length", n_bytes);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        *length = *length << 8 | bytes[i];
    if (*length > OT_SAFETENSORS_HEADER_MAX)
        return ot__error(OT_ERR_FORMAT, "its header has %" PRIu64 " bytes, expected at most %d",
                         *length, OT_SAFETENSORS_HEADER_MAX);
    if (*length > n_bytes - LENGTH_BYTES)
        return ot__error(OT_ERR_FORMAT,
                         "its header has %" PRIu64 " bytes, but the file ends after %zu", *length,
                         n_bytes - LENGTH_BYTES);
    return OT_OK;
}

static ot_status read_header(header *h, const uint8_t *bytes, size_t n_bytes, uint64_t length)
{
    ot__safetensors *file = h->file;
    ot_status st = ot__json_scan_init(&h->scan, (const char *)bytes + LENGTH_BYTES, (size_t)length);

    OT_THEN(st, scan_members(h));
    ot__json_scan_deinit(&h->scan);
    if (st != OT_OK)
        return st == OT_ERR_FORMAT ? ot__error_prefix(st, "header") : st;
    file->data_start = LENGTH_BYTES + length;
    file->data = bytes + file->data_start;
    file->texts = h->texts;
    file->tensors = h->tensors;
    if (file->n_tensors > 0)
        qsort(h->tensors, (size_t)file->n_tensors, sizeof *h->tensors, compare_begins);
    OT_TRY(check_tensor_places(h));
    OT_TRY(check_end_of_data(h, n_bytes));
    return enter_tensors(h);
}

ot_status ot__safetensors_read(const void *bytes, size_t n_bytes, ot__safetensors *out)
{
    header h = {.file = out};
    uint64_t length;
    ot_status st;

    *out = (ot__safetensors){0};
    OT_TRY(find_header(bytes, n_bytes, &length));
    out->arena = ot__arena_create();
    OT_TRY(ot__made(out->arena != NULL));
    st = read_header(&h, bytes, n_bytes, length);
    if (st != OT_OK)
        ot__safetensors_deinit(out);
    return st;
}

void ot__safetensors_deinit(ot__safetensors *file)
{
    ot__map_deinit(&file->by_name);
    ot__arena_destroy(file->arena);
    *file = (ot__safetensors){0};
}

const ot__safetensor *ot__safetensors_find(const ot__safetensors *file, const char *name)
{
    return ot__map_get(&file->by_name, name);
}
