// SPDX-License-Identifier: Apache-2.0
// Texts to numbers and numbers to strings, as ONNX Runtime does: a text may go on behind its
// number, and a float is written with 8 digits.
#include "ops/elementwise/cast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONGEST_NUMBER = 256,
    DIGITS = 8,
    ROOM = 24
}; // ROOM: "-9223372036854775808", "-1.2345678e-308"

// The characters of strings that are made: they last as long as the plan, and so as the strings.
typedef struct room {
    char text[ROOM];
} room;

ot_status ot__cast_run_strings(const ot_run *r)
{
    const ot_arg *x = r->in[0];

    if (x->count > 0)
        memcpy(r->out[0]->data, x->data, (size_t)x->count * sizeof(ot__string));
    return OT_OK;
}

// ---- to numbers ----

static bool read_int(const char *text, bool is_unsigned, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = is_unsigned ? (uint64_t)strtoull(text, &end, 10) : (uint64_t)strtoll(text, &end, 10);
    return end != text && errno == 0;
}

// The number that a text begins with, as element `to`.
static bool read_number_text(const ot__string *from, ot_dtype dtype, void *to)
{
    char text[LONGEST_NUMBER];
    const char *end;
    uint64_t number;
    double real;

    if (from->size >= sizeof(text))
        return false;
    if (from->size > 0)
        memcpy(text, from->data, from->size);
    text[from->size] = '\0';
    if (ot__dtype_is_int(dtype) || dtype == OT_BOOL) {
        const bool is_unsigned = dtype == OT_U64 || dtype == OT_BOOL;

        return read_int(text, is_unsigned, &number) &&
               ot__convert(to, dtype, &number, is_unsigned ? OT_U64 : OT_I64, 1);
    }
    return ot__read_float(text, &end, &real) && ot__convert(to, dtype, &real, OT_F64, 1);
}

static ot_status no_number(const ot__string *text, int64_t k, ot_dtype dtype)
{
    char shown[40];
    const size_t n = OT_MIN(text->size, sizeof(shown) - 1);

    if (n > 0)
        memcpy(shown, text->data, n);
    shown[n] = '\0';
    ot__text_printable(shown);
    return ot__error(OT_ERR_INVALID,
                     "string '%s' at element %" PRId64 " is not a number, expected %s", shown, k,
                     ot_dtype_name(dtype));
}

ot_status ot__cast_prepare_to_numbers(ot_prep *p)
{
    return ot__cast_check(p, ot_prep_out(p, 0)->dtype, OT_F64);
}

ot_status ot__cast_run_to_numbers(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    const ot__string *strings = x->data;
    const size_t size = ot_dtype_size(y->dtype);

    for (int64_t k = 0; k < x->count; k++)
        if (!read_number_text(&strings[k], y->dtype, (char *)y->data + (size_t)k * size))
            return no_number(&strings[k], k, y->dtype);
    return OT_OK;
}

// ---- to strings ----

static void write_number(char *text, ot_dtype dtype, const void *from)
{
    int64_t number;
    uint64_t large;
    double real;

    if (dtype == OT_U64) {
        memcpy(&large, from, sizeof(large));
        snprintf(text, ROOM, "%" PRIu64, large);
    } else if (ot__dtype_is_int(dtype) || dtype == OT_BOOL) {
        (void)ot__convert(&number, OT_I64, from, dtype, 1);
        snprintf(text, ROOM, "%" PRId64, number);
    } else {
        (void)ot__convert(&real, OT_F64, from, dtype, 1);
        if (isnan(real) || isinf(real))
            snprintf(text, ROOM, "%s", isnan(real) ? "NaN" : real > 0 ? "INF" : "-INF");
        else
            ot__print_float(text, ROOM, DIGITS, real);
    }
}

ot_status ot__cast_prepare_to_strings(ot_prep *p)
{
    const ot_arg *y = ot_prep_out(p, 0);
    size_t n_bytes;

    OT_TRY(ot__cast_check(p, ot_prep_in(p, 0)->dtype, OT_F64));
    if ((uint64_t)y->count >= SIZE_MAX ||
        ot__size_mul_overflows((size_t)y->count + 1, sizeof(room), &n_bytes))
        return ot_prep_fail(p, OT_ERR_NO_MEMORY,
                            "%" PRId64 " strings are more than can be addressed", y->count);
    return ot_prep_state(p, n_bytes) != NULL ? OT_OK : OT_ERR_NO_MEMORY;
}

ot_status ot__cast_run_to_strings(const ot_run *r)
{
    const ot_arg *x = r->in[0];
    const size_t size = ot_dtype_size(x->dtype);
    ot__string *strings = r->out[0]->data;
    room *rooms = r->state;

    for (int64_t k = 0; k < x->count; k++) {
        write_number(rooms[k].text, x->dtype, (const char *)x->data + (size_t)k * size);
        strings[k] = (ot__string){(const uint8_t *)rooms[k].text, strlen(rooms[k].text)};
    }
    return OT_OK;
}
