// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int ot__utf8_read(const char *text, uint32_t *code)
{
    const unsigned char *bytes = (const unsigned char *)text;
    const int n = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;

    *code = bytes[0];
    if (n == 1)
        return 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
        return 0;
    *code &= 0xffu >> (n + 1);
    for (int i = 1; i < n; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (bytes[i] & 0x3f);
    }
    if ((n == 3 && *code < 0x800) || (n == 4 && (*code < 0x10000 || *code > 0x10ffff)) ||
        (*code >= 0xd800 && *code <= 0xdfff)) // overlong, or half of a pair
        return 0;
    return n;
}

size_t ot__utf8_bad_byte(const char *text, size_t n_bytes)
{
    enum { LONGEST = 4 };
    size_t at = 0;

    while (at < n_bytes) {
        char last[LONGEST + 1] = "";
        const char *here = text + at;
        uint32_t code;
        int n;

        if ((unsigned char)*here < 0x80) {
            at++;
            continue;
        }
        if (n_bytes - at < LONGEST) { // what is after the text is not looked at
            memcpy(last, here, n_bytes - at);
            here = last;
        }
        n = ot__utf8_read(here, &code);
        if (n == 0)
            return at;
        at += (size_t)n;
    }
    return at;
}

void ot__utf8_append(ot__buf *out, uint32_t code)
{
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char bytes[4];

    for (int i = n - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
    ot__buf_append(out, bytes, (size_t)n);
}

int ot__hex4_read(const char *text, size_t n_bytes, uint32_t *code)
{
    int n = 0;

    *code = 0;
    for (; n < 4 && (size_t)n < n_bytes; n++) {
        const char c = text[n];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0)
            break;
        *code = *code << 4 | (uint32_t)digit;
    }
    return n;
}

// Length of the character at `text` where it may be shown, else 0.
static int printable_length(const char *text)
{
    uint32_t code;
    const int n = ot__utf8_read(text, &code);

    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) // control characters
        return 0;
    // Line separators and marks that reorder text would let a name hide what is said about it.
    if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
        return 0;
    return n;
}

// Processors and C libraries disagree on the sign of NaN, which says nothing. Names stand in
// quotes.
static void drop_nan_signs(char *text)
{
    for (char *at = text; (at = strstr(at, "-nan")) != NULL; at++)
        if ((at == text || at[-1] == ' ' || at[-1] == '(') && strchr(" ,;:)", at[4]) != NULL)
            memmove(at, at + 1, strlen(at));
}

void ot__text_printable(char *text)
{
    drop_nan_signs(text);
    while (*text) {
        int n = printable_length(text);

        if (n == 0)
            *text = '?';
        text += OT_MAX(n, 1);
    }
}

bool ot__name_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *retry = NULL;

    while (*name) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern == '?' || *pattern == *name) {
            pattern++;
            name++;
        } else if (star) { // let the last star take one more character
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool ot__starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool ot__ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);

    return n >= m && strcmp(text + n - m, suffix) == 0;
}

char *ot__cut(char *text, char separator)
{
    char *end = strchr(text, separator);

    if (end)
        *end++ = '\0';
    return end;
}

size_t ot__count_char(const char *text, char c)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == c;
    return n;
}

bool ot__parse_int(const char *text, int64_t *value)
{
    char *end;

    long long number;

    *value = 0;
    if (ot__is_space(text[0]))
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0)
        return false;
    *value = number;
    return true;
}

// The C library's numbers follow the process's locale; files never do.
static locale_t c_locale(void)
{
    static _Atomic(locale_t) shared;
    locale_t found = atomic_load(&shared), made;

    if (found)
        return found;
    made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (atomic_compare_exchange_strong(&shared, &found, made))
        return made;
    freelocale(made); // another thread was first
    return found;
}

bool ot__read_float(const char *text, const char **end, double *value)
{
    locale_t locale = c_locale(), before;
    double number;
    bool overflows;
    char *after;

    *value = 0;
    *end = text;
    if (!locale)
        return false;
    before = uselocale(locale);
    errno = 0;
    number = strtod(text, &after);
    overflows = errno == ERANGE && isinf(number);
    uselocale(before);
    if (after == text || overflows)
        return false;
    *end = after;
    *value = number;
    return true;
}

bool ot__parse_float(const char *text, double *value)
{
    const char *end;

    if (!ot__is_space(text[0]) && ot__read_float(text, &end, value) && *end == '\0')
        return true;
    *value = 0;
    return false;
}

void ot__print_float(char *text, size_t size, int digits, double value)
{
    const locale_t before = uselocale(c_locale());

    snprintf(text, size, "%.*g", digits, value);
    uselocale(before);
}

void ot__buf_float(ot__buf *buf, double value, bool is_f32)
{
    locale_t locale = c_locale(), before;
    char text[40];
    int digits = is_f32 ? FLT_DIG : DBL_DIG, max_digits = is_f32 ? 9 : 17;

    if (isnan(value) || isinf(value)) {
        ot__buf_text(buf, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    if (fabs(value) < (is_f32 ? FLT_MIN : DBL_MIN))
        digits = 1; // subnormal: fewer digits may do
    before = uselocale(locale);
    do {
        snprintf(text, sizeof(text), "%.*g", digits, value);
    } while (digits++ < max_digits &&
             (is_f32 ? strtof(text, NULL) != (float)value : strtod(text, NULL) != value));
    uselocale(before);
    ot__buf_text(buf, text);
}
