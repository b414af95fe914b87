// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/base.h"

// Room for n_bytes more and a NUL.
static bool reserve(ot__buf *buf, size_t n_bytes)
{
    size_t wanted, capacity = OT_MAX(buf->capacity, (size_t)64);
    char *data;

    if (buf->failed)
        return false;
    if (n_bytes >= SIZE_MAX - buf->length) {
        buf->failed = true;
        return false;
    }
    wanted = buf->length + n_bytes + 1;
    if (wanted <= buf->capacity)
        return true;
    while (capacity < wanted)
        capacity = capacity > SIZE_MAX / 2 ? wanted : capacity * 2;
    data = ot__realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void ot__buf_append(ot__buf *buf, const void *bytes, size_t n_bytes)
{
    if (!reserve(buf, n_bytes))
        return;
    if (n_bytes)
        memcpy(buf->data + buf->length, bytes, n_bytes);
    buf->length += n_bytes;
    buf->data[buf->length] = '\0';
}

void ot__buf_text(ot__buf *buf, const char *text)
{
    ot__buf_append(buf, text, strlen(text));
}

void ot__buf_printf(ot__buf *buf, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) { // longer than an int can say
        buf->failed = true;
        return;
    }
    if (!reserve(buf, (size_t)length))
        return;
    va_start(args, format);
    vsnprintf(buf->data + buf->length, (size_t)length + 1, format, args);
    va_end(args);
    buf->length += (size_t)length;
}

void ot__buf_deinit(ot__buf *buf)
{
    ot__free(buf->data);
    *buf = (ot__buf){0};
}

ot_status ot__buf_status(const ot__buf *buf)
{
    return buf->failed ? ot__error_memory(buf->capacity) : OT_OK;
}
