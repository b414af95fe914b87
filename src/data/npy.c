// SPDX-License-Identifier: Apache-2.0
// One array of NumPy's .npy format (versions 1 to 3):
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <stdlib.h>
#include <string.h>

#include "data/data.h"

static const struct {
    char code[3]; // behind the byte order
    ot_dtype dtype;
} codes[] = {
    {"f4", OT_F32}, {"f8", OT_F64}, {"f2", OT_F16}, {"i1", OT_I8},  {"i2", OT_I16}, {"i4", OT_I32},
    {"i8", OT_I64}, {"u1", OT_U8},  {"u2", OT_U16}, {"u4", OT_U32}, {"u8", OT_U64}, {"b1", OT_BOOL},
};

enum { PREAMBLE_MAX = 12 }; // magic, version, length of the header

typedef struct header {
    char text[1 << 12];
    ot_dtype dtype;
    bool swap_bytes, fortran_order;
    ot_shape shape;
} header;

// The text behind 'key': in the header's dictionary.
static const char *value_of(const header *h, const char *key)
{
    char quoted[32];
    const char *at;

    snprintf(quoted, sizeof(quoted), "'%s'", key);
    at = strstr(h->text, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    if (*at != ':')
        return NULL;
    return at + 1 + strspn(at + 1, " ");
}

static bool parse_descr(header *h)
{
    const char *at = value_of(h, "descr");
    char order;

    if (!at || *at != '\'' || at[1] == '\0')
        return false;
    order = at[1];
    h->swap_bytes = order == '>';
    for (size_t i = 0; i < OT_COUNT(codes); i++)
        if (strncmp(at + 2, codes[i].code, 2) == 0 && at[4] == '\'') {
            h->dtype = codes[i].dtype;
            return order == '<' || order == '>' || order == '|' || order == '=';
        }
    return false;
}

static bool parse_shape(header *h)
{
    const char *at = value_of(h, "shape");

    if (!at || *at++ != '(')
        return false;
    for (;;) {
        char *end;
        long long extent;

        at += strspn(at, " ,");
        if (*at == ')')
            return true;
        extent = strtoll(at, &end, 10);
        if (end == at || extent < 0 || h->shape.ndim == OT_MAX_NDIM)
            return false;
        h->shape.dim[h->shape.ndim++] = extent;
        at = end;
    }
}

// The header of the n_bytes at `at`, of which *data_at are not elements.
static ot_status parse_npy_header(const char *where, const ot__source *source, uint64_t at,
                                  uint64_t n_bytes, header *h, size_t *data_at)
{
    uint8_t bytes[PREAMBLE_MAX + sizeof(h->text)];
    size_t length, start;
    const char *order;

    OT_TRY(ot__file_input_read(&source->input, source->path, at, bytes,
                               (size_t)OT_MIN(n_bytes, (uint64_t)sizeof(bytes))));
    if (n_bytes < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0 || bytes[6] < 1 || bytes[6] > 3)
        return ot__error(OT_ERR_FORMAT, "%s: is not an .npy array", where);
    start = bytes[6] == 1 ? 10 : 12;
    if (n_bytes < start)
        return ot__error(OT_ERR_FORMAT, "%s: ends inside its header", where);
    length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > n_bytes - start || length >= sizeof(h->text))
        return ot__error(OT_ERR_FORMAT, "%s: declares a header of %zu bytes, has %" PRIu64, where,
                         length, n_bytes - start);
    memcpy(h->text, bytes + start, length);
    h->text[length] = '\0';
    if (!parse_descr(h))
        return ot__error(OT_ERR_UNSUPPORTED,
                         "%s: element type is not one of numpy's numeric types: %s", where,
                         h->text);
    order = value_of(h, "fortran_order");
    if (!parse_shape(h) || !order || h->shape.ndim == 0)
        return ot__error(OT_ERR_FORMAT, "%s: the header declares no array of rows: %s", where,
                         h->text);
    h->fortran_order = ot__starts_with(order, "True");
    *data_at = start + length;
    return OT_OK;
}

// Elements of a row lie apart in Fortran order: each would be a read of its own.
static ot_status place_npy(ot__field *field, uint64_t start, const ot_dataset_options *options)
{
    if (field->fortran_order && field->source->input.is_file)
        OT_TRY(ot__spill_source(field->source, options));
    ot__field_place(field, start);
    return OT_OK;
}

ot_status ot__npy_add(ot_dataset *dataset, ot__source *source, uint64_t start, uint64_t n_bytes,
                      const char *name, const ot_dataset_options *options)
{
    header h = {.dtype = OT_F32};
    size_t at = 0, needed;
    int64_t count;
    char where[512];
    ot__field field = {.source = source};

    if (source->is_archive)
        snprintf(where, sizeof(where), "%.400s: array '%.80s'", source->path, name);
    else
        snprintf(where, sizeof(where), "%.400s", source->path);
    OT_TRY(parse_npy_header(where, source, start, n_bytes, &h, &at));
    if (!ot__shape_count(&h.shape, &count) || !ot__dtype_bytes(h.dtype, count, &needed) ||
        needed > n_bytes - at)
        return ot__error(OT_ERR_FORMAT,
                         "%s: array '%s' is stated as %s%s but has %" PRIu64 " bytes", source->path,
                         name, ot_dtype_name(h.dtype), OT_SHAPE_TEXT(&h.shape), n_bytes - at);
    field.dtype = h.dtype;
    field.swap_bytes = h.swap_bytes && ot_dtype_size(h.dtype) > 1;
    field.fortran_order = h.fortran_order && h.shape.ndim > 1;
    OT_TRY(place_npy(&field, start + at, options));
    return ot__dataset_add_array(dataset, name, &h.shape, field);
}

// ---- writing ----

enum { HEADER_ALIGNMENT = 64, PREAMBLE = 10 };

static const char *npy_code(ot_dtype dtype)
{
    for (size_t i = 0; i < OT_COUNT(codes); i++)
        if (codes[i].dtype == dtype)
            return codes[i].code;
    return NULL;
}

// Version 1: magic, header length, the header filled up with spaces, elements in this machine's
// order.
ot_status ot__npy_write(const char *name, const ot_tensor *tensor, ot__buf *out)
{
    static const union {
        uint16_t number;
        uint8_t low;
    } order = {1};
    const char *code = npy_code(tensor->dtype);
    ot__buf text = {0};
    size_t length;
    ot_status st;

    if (!code)
        return ot__error(OT_ERR_UNSUPPORTED, "array '%s': NumPy has no element type for %s", name,
                         ot_dtype_name(tensor->dtype));
    ot__buf_printf(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                   ot_dtype_size(tensor->dtype) == 1 ? '|'
                   : order.low                       ? '<'
                                                     : '>',
                   code);
    for (int k = 0; k < tensor->shape.ndim; k++)
        ot__buf_printf(&text, "%s%" PRId64 "%s", k > 0 ? " " : "", tensor->shape.dim[k],
                       k + 1 < tensor->shape.ndim || k == 0 ? "," : "");
    ot__buf_text(&text, "), }");
    while ((PREAMBLE + text.length + 1) % HEADER_ALIGNMENT != 0 && ot__buf_status(&text) == OT_OK)
        ot__buf_text(&text, " ");
    ot__buf_text(&text, "\n");
    st = ot__buf_status(&text);
    if (st == OT_OK) {
        length = text.length;
        ot__buf_append(out, "\x93NUMPY\x01\x00", 8);
        ot__buf_append(out, (const uint8_t[]){(uint8_t)length, (uint8_t)(length >> 8)}, 2);
        ot__buf_append(out, text.data, length);
        ot__buf_append(out, tensor->data, tensor->n_bytes);
        st = ot__buf_status(out);
    }
    ot__buf_deinit(&text);
    return st;
}
