// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tensor/tensor.h"

ot_status ot__tensor_sizes(ot_dtype dtype, const ot_shape *shape, size_t *n_bytes)
{
    int64_t count;
    size_t none;

    if (!ot__dtype_bytes(dtype, 0, &none))
        return ot__error(OT_ERR_INVALID, "elements of type %s have no fixed size",
                         ot_dtype_name(dtype));
    OT_TRY(ot__shape_check(shape, &count));
    if (!ot__dtype_bytes(dtype, count, n_bytes))
        return ot__error(OT_ERR_INVALID, "%s%s has more bytes than can be addressed",
                         ot_dtype_name(dtype), OT_SHAPE_TEXT(shape));
    return OT_OK;
}

static ot_status make_over(ot_dtype dtype, const ot_shape *shape, size_t n_bytes, void *data,
                           ot_tensor **out)
{
    ot_tensor *tensor = ot__alloc_zero(1, sizeof(*tensor));

    *out = NULL;
    OT_TRY(ot__made(tensor));
    *tensor = (ot_tensor){.dtype = dtype, .shape = *shape, .n_bytes = n_bytes, .data = data};
    OT_ENTER(tensor);
    *out = tensor;
    return OT_OK;
}

static ot_status new_tensor(ot_dtype dtype, const ot_shape *shape, size_t n_bytes, ot_tensor **out)
{
    void *data = ot__alloc_aligned(n_bytes);
    ot_status st;

    *out = NULL;
    OT_TRY(ot__made(data));
    st = make_over(dtype, shape, n_bytes, data, out);
    if (st == OT_OK)
        (*out)->owns_data = true;
    else
        ot__free_aligned(data);
    return st;
}

ot_status ot_tensor_create(ot_dtype dtype, const ot_shape *shape, ot_tensor **out)
{
    size_t n_bytes;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(ot__tensor_sizes(dtype, shape, &n_bytes));
    return new_tensor(dtype, shape, n_bytes, out);
}

ot_status ot_tensor_wrap(ot_dtype dtype, const ot_shape *shape, void *data, size_t n_bytes,
                         ot_tensor **out)
{
    size_t expected;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(shape));
    if (n_bytes > 0)
        OT_TRY(OT_GIVEN(data));
    OT_TRY(ot__tensor_sizes(dtype, shape, &expected));
    if (n_bytes != expected)
        return ot__error(OT_ERR_INVALID, "%s%s needs %zu bytes, got %zu", ot_dtype_name(dtype),
                         OT_SHAPE_TEXT(shape), expected, n_bytes);
    return make_over(dtype, shape, n_bytes, data, out);
}

// ---- strings: the array of them, and behind it their bytes ----

static ot_status text_sizes(const ot_shape *shape, const ot__bytes *strings, int64_t count,
                            size_t *n_array, size_t *n_all)
{
    if (!ot__element_bytes(OT_STRING, count, n_array))
        return ot__error(OT_ERR_INVALID, "%s%s has more bytes than can be addressed",
                         ot_dtype_name(OT_STRING), OT_SHAPE_TEXT(shape));
    *n_all = *n_array;
    for (int64_t i = 0; i < count; i++) {
        if (strings[i].size > SIZE_MAX - *n_all)
            return ot__error_memory(SIZE_MAX);
        *n_all += strings[i].size;
    }
    return OT_OK;
}

static ot_status make_strings(const ot_shape *shape, const ot__bytes *strings, int64_t count,
                              ot_tensor **out)
{
    size_t n_array = 0, n_all = 0;
    ot__bytes *copies;
    uint8_t *to;

    OT_TRY(text_sizes(shape, strings, count, &n_array, &n_all));
    OT_TRY(new_tensor(OT_STRING, shape, n_all, out));
    (*out)->n_bytes = n_array;
    copies = (*out)->data;
    to = (uint8_t *)(*out)->data + n_array;
    for (int64_t i = 0; i < count; i++) {
        copies[i] = (ot__bytes){to, strings[i].size};
        if (strings[i].size > 0)
            memcpy(to, strings[i].data, strings[i].size);
        to += strings[i].size;
    }
    return OT_OK;
}

ot_status ot__tensor_copy_strings(const ot_shape *shape, const ot__bytes *strings, ot_tensor **out)
{
    int64_t count;

    *out = NULL;
    return ot__shape_count(shape, &count) ? make_strings(shape, strings, count, out)
                                          : OT_ERR_INVALID;
}

static ot_status check_extents(const ot_shape *shape, int64_t *count)
{
    size_t n_bytes;

    OT_TRY(ot__tensor_sizes(OT_U8, shape, &n_bytes));
    return ot__shape_count(shape, count) ? OT_OK : OT_ERR_INVALID;
}

ot_status ot_tensor_create_strings(const ot_shape *shape, const char *const *strings,
                                   const size_t *n_bytes, ot_tensor **out)
{
    ot__bytes *list;
    int64_t count;
    ot_status st = OT_OK;

    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(check_extents(shape, &count));
    if (count > 0)
        OT_TRY(OT_GIVEN(strings));
    list = ot__alloc_zero((size_t)count + 1, sizeof *list);
    OT_TRY(ot__made(list));
    for (int64_t i = 0; i < count && st == OT_OK; i++) {
        if (!strings[i])
            st = ot__error(OT_ERR_INVALID, "text %" PRId64 " of a tensor is NULL", i);
        else
            list[i] =
                (ot__bytes){(const uint8_t *)strings[i], n_bytes ? n_bytes[i] : strlen(strings[i])};
    }
    OT_THEN(st, make_strings(shape, list, count, out));
    ot__free(list);
    return st;
}

const char *ot_tensor_string(const ot_tensor *tensor, int64_t index, size_t *n_bytes)
{
    const ot__bytes *text;

    if (n_bytes != NULL)
        *n_bytes = 0;
    if (!OT_IS_LIVE(tensor) || n_bytes == NULL || tensor->dtype != OT_STRING || index < 0 ||
        index >= ot_tensor_count(tensor))
        return NULL;
    text = (const ot__bytes *)tensor->data + index;
    *n_bytes = text->size;
    return text->size > 0 ? (const char *)text->data : "";
}

ot_status ot_tensor_clone(const ot_tensor *tensor, ot_tensor **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(tensor));
    if (tensor->dtype == OT_STRING)
        return make_strings(&tensor->shape, tensor->data, ot_tensor_count(tensor), out);
    OT_TRY(new_tensor(tensor->dtype, &tensor->shape, tensor->n_bytes, out));
    if (tensor->n_bytes)
        memcpy((*out)->data, tensor->data, tensor->n_bytes);
    return OT_OK;
}

void ot_tensor_destroy(ot_tensor *tensor)
{
    if (!OT_ENDS(tensor))
        return;
    if (tensor->owns_data)
        ot__free_aligned(tensor->data);
    ot__free(tensor);
}

void ot__tensor_move(ot_tensor *tensor, void *data)
{
    if (tensor->n_bytes > 0)
        memcpy(data, tensor->data, tensor->n_bytes);
    if (tensor->owns_data)
        ot__free_aligned(tensor->data);
    tensor->data = data;
    tensor->owns_data = false;
}

void ot__tensor_become(ot_tensor *tensor, const ot_shape *shape, void *data)
{
    if (tensor->owns_data)
        ot__free_aligned(tensor->data);
    tensor->shape = *shape;
    (void)ot__tensor_sizes(tensor->dtype, shape, &tensor->n_bytes);
    tensor->data = data;
    tensor->owns_data = false;
}

ot_dtype ot_tensor_dtype(const ot_tensor *tensor)
{
    return OT_IS_LIVE(tensor) ? tensor->dtype : OT_DTYPE_UNDEFINED;
}

const ot_shape *ot_tensor_shape(const ot_tensor *tensor)
{
    return OT_IS_LIVE(tensor) ? &tensor->shape : NULL;
}

int64_t ot_tensor_count(const ot_tensor *tensor)
{
    int64_t count;

    return OT_IS_LIVE(tensor) && ot__shape_count(&tensor->shape, &count) ? count : 0;
}

size_t ot_tensor_bytes(const ot_tensor *tensor)
{
    return OT_IS_LIVE(tensor) ? tensor->n_bytes : 0;
}

void *ot_tensor_data(ot_tensor *tensor)
{
    return OT_IS_LIVE(tensor) ? tensor->data : NULL;
}

const void *ot_tensor_data_const(const ot_tensor *tensor)
{
    return OT_IS_LIVE(tensor) ? tensor->data : NULL;
}

bool ot__tensor_is_aligned(const ot_tensor *tensor)
{
    const size_t largest = 8;
    const size_t size = ot_dtype_size(tensor->dtype);

    return (uintptr_t)tensor->data % OT_MIN(OT_MAX(size, (size_t)1), largest) == 0;
}

size_t ot__tensor_taken(const ot_tensor *tensor)
{
    if (!tensor)
        return 0;
    return sizeof *tensor + (tensor->owns_data ? ot__aligned_taken(tensor->n_bytes) : 0);
}

bool ot__tensor_is_uniform(const ot_tensor *t)
{
    const int64_t n = t ? ot_tensor_count(t) : 0;
    const size_t n_bytes = n > 0 ? ot_tensor_bytes(t) : 0;
    const size_t element = n > 0 ? n_bytes / (size_t)n : 0;
    const char *data = t ? t->data : NULL;

    if (n > 0 && ot__dtype_is_packed(t->dtype)) {
        for (int64_t k = 1; k < n; k++)
            if (ot__tensor_get_f64(t, k) != ot__tensor_get_f64(t, 0))
                return false;
        return true;
    }
    return n == 0 || memcmp(data, data + element, n_bytes - element) == 0;
}

double ot__tensor_get_f64(const ot_tensor *tensor, int64_t index)
{
    return ot__element_f64(tensor->data, tensor->dtype, index);
}

void ot__tensor_read_f64(const ot_tensor *tensor, int64_t first, int n, double *to)
{
    static const ot__cast_rule as_usual = {0};

    (void)ot__convert_range(to, OT_F64, 0, (ot__elements){tensor->data, tensor->dtype, first}, n,
                            &as_usual);
}

int64_t ot__tensor_get_i64(const ot_tensor *tensor, int64_t index)
{
    static const ot__cast_rule as_usual = {0};
    int64_t value = 0;

    (void)ot__convert_range(&value, OT_I64, 0, (ot__elements){tensor->data, tensor->dtype, index},
                            1, &as_usual);
    return value;
}
