#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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

bool ot__parse_int(const char *text, int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && text[0] != ' ';
}

// The C library's numbers follow the process's locale; files never do.
static locale_t c_locale(void)
{
    static locale_t locale; // made once; a race makes two equal ones
    locale_t found = __atomic_load_n(&locale, __ATOMIC_ACQUIRE);

    if (!found) {
        found = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        __atomic_store_n(&locale, found, __ATOMIC_RELEASE);
    }
    return found;
}

bool ot__parse_float(const char *text, double *value)
{
    locale_t locale = c_locale(), before;
    char *end;

    *value = 0;
    if (!locale || text[0] == ' ')
        return false;
    before = uselocale(locale);
    *value = strtod(text, &end);
    uselocale(before);
    return end != text && *end == '\0';
}

void ot__buf_float(ot__buf *buf, double value, bool is_f32)
{
    locale_t locale = c_locale(), before;
    char text[40];
    int digits = is_f32 ? 6 : 15, max_digits = is_f32 ? 9 : 17;

    if (isnan(value) || isinf(value)) {
        ot__buf_text(buf, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    before = uselocale(locale);
    do {
        snprintf(text, sizeof(text), "%.*g", digits, value);
    } while (digits++ < max_digits &&
             (is_f32 ? strtof(text, NULL) != (float)value : strtod(text, NULL) != value));
    uselocale(before);
    ot__buf_text(buf, text);
}
