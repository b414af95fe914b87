// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files, with the order of tensors and the JSON that the makers of the
// format write.
#include <stdlib.h>
#include <string.h>

#include "shards/safetensors.h"

enum { HEADER_LENGTH_BYTES = 8 };

static int compare_for_file(const void *a, const void *b)
{
    const ot__safetensor *x = a, *y = b;
    const int rank_x = ot__safetensors_rank(x->dtype), rank_y = ot__safetensors_rank(y->dtype);

    return rank_x != rank_y ? rank_y - rank_x : strcmp(x->name, y->name);
}

static ot_status check_text(const char *text)
{
    const size_t n_bytes = strlen(text);

    if (ot__utf8_bad_byte(text, n_bytes) < n_bytes)
        return ot__error(OT_ERR_INVALID, "'%s' is not UTF-8", text);
    return OT_OK;
}

static ot_status check_nameable(const ot__safetensor *tensor)
{
    OT_TRY(check_text(tensor->name));
    if (strcmp(tensor->name, "__metadata__") == 0)
        return ot__error(OT_ERR_INVALID, "a tensor cannot have the name '__metadata__'");
    if (ot__safetensors_type(tensor->dtype) == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "tensor '%s': safetensors files have no type %s",
                         tensor->name, ot_dtype_name(tensor->dtype));
    return OT_OK;
}

ot_status ot__safetensors_place(ot__safetensor *tensors, int n_tensors)
{
    ot__map names = {0};
    ot_status st = OT_OK;
    uint64_t at = 0, n_bytes;

    for (int i = 0; i < n_tensors && st == OT_OK; i++) {
        st = check_nameable(&tensors[i]);
        if (st == OT_OK && ot__map_get(&names, tensors[i].name) != NULL)
            st = ot__error(OT_ERR_INVALID, "tensor '%s' is there twice", tensors[i].name);
        OT_THEN(st, ot__made(ot__map_put(&names, tensors[i].name, &names)));
    }
    ot__map_deinit(&names);
    OT_TRY(st);
    if (n_tensors > 0)
        qsort(tensors, (size_t)n_tensors, sizeof *tensors, compare_for_file);
    for (int i = 0; i < n_tensors; i++) {
        OT_TRY(ot__safetensor_bytes(&tensors[i], &n_bytes));
        tensors[i].begin = at;
        tensors[i].end = at += n_bytes;
    }
    return OT_OK;
}

static void write_tensor(ot__buf *out, const ot__safetensor *t)
{
    ot__json_open(out, t->name, '{');
    ot__json_string(out, "dtype", ot__safetensors_type(t->dtype));
    ot__json_open(out, "shape", '[');
    for (int k = 0; k < t->ndim; k++)
        ot__json_int(out, NULL, t->dims[k]);
    ot__json_close(out, ']');
    ot__json_open(out, "data_offsets", '[');
    ot__json_int(out, NULL, (int64_t)t->begin);
    ot__json_int(out, NULL, (int64_t)t->end);
    ot__json_close(out, ']');
    ot__json_close(out, '}');
}

static ot_status write_texts(ot__buf *out, const ot__safetensors_text *texts, int n_texts)
{
    if (n_texts == 0)
        return OT_OK;
    ot__json_open(out, "__metadata__", '{');
    for (int i = 0; i < n_texts; i++) {
        OT_TRY(check_text(texts[i].name));
        OT_TRY(check_text(texts[i].text));
        ot__json_string(out, texts[i].name, texts[i].text);
    }
    ot__json_close(out, '}');
    return OT_OK;
}

ot_status ot__safetensors_header(const ot__safetensor *tensors, int n_tensors,
                                 const ot__safetensors_text *texts, int n_texts, size_t alignment,
                                 ot__buf *out)
{
    const size_t begin = out->length;
    size_t length;

    ot__buf_append(out, (char[HEADER_LENGTH_BYTES]){0}, HEADER_LENGTH_BYTES);
    ot__json_open(out, NULL, '{');
    OT_TRY(write_texts(out, texts, n_texts));
    for (int i = 0; i < n_tensors; i++)
        write_tensor(out, &tensors[i]);
    ot__json_close(out, '}');
    while (!out->failed && (out->length - begin) % alignment != 0)
        ot__buf_append(out, " ", 1);
    OT_TRY(ot__buf_status(out));
    length = out->length - begin - HEADER_LENGTH_BYTES;
    if (length > OT_SAFETENSORS_HEADER_MAX)
        return ot__error(OT_ERR_UNSUPPORTED, "a header of %zu bytes, expected at most %d", length,
                         OT_SAFETENSORS_HEADER_MAX);
    for (int i = 0; i < HEADER_LENGTH_BYTES; i++)
        out->data[begin + (size_t)i] = (char)(length >> (8 * i));
    return OT_OK;
}
