// SPDX-License-Identifier: Apache-2.0
// Numbers in cells of a CSV: decimal ones, whatever the locale.
#include <math.h>
#include <string.h>

#include "data/data.h"

enum { NUMBER_MAX = 64 };

// Up to 15 digits and a power of ten up to 10^22 are exact in f64, so one operation rounds once.
static bool fast_number(const char *text, size_t length, double *value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t digits = 0;
    int n_digits = 0, n_behind = 0;
    bool negative = false, is_behind = false;
    size_t i = 0;

    if (length > 0 && (text[0] == '-' || text[0] == '+'))
        negative = text[i++] == '-';
    for (; i < length; i++) {
        if (text[i] == '.' && !is_behind) {
            is_behind = true;
        } else if (ot__is_digit(text[i]) && n_digits < 15) {
            digits = digits * 10 + (uint64_t)(text[i] - '0');
            n_digits++;
            n_behind += is_behind;
        } else {
            return false;
        }
    }
    if (n_digits == 0)
        return false;
    *value = (double)digits / powers[n_behind];
    if (negative)
        *value = -*value;
    return true;
}

static const char *skip_number_digits(const char *text)
{
    while (ot__is_digit(*text))
        text++;
    return text;
}

// C reads hexadecimal numbers, "nan" and "inf" too.
static bool is_decimal(const char *text)
{
    const char *from = text + (*text == '-' || *text == '+'), *to = skip_number_digits(from);
    int64_t n_digits = to - from;

    if (*to == '.') {
        from = to + 1;
        to = skip_number_digits(from);
        n_digits += to - from;
    }
    if (n_digits > 0 && (*to == 'e' || *to == 'E')) {
        from = to + 1 + (to[1] == '-' || to[1] == '+');
        to = skip_number_digits(from);
        n_digits = to - from;
    }
    return n_digits > 0 && *to == '\0';
}

// The text without space around it, with its end; false when it is too long for a number.
static bool copy_trimmed(const ot__cell *cell, char copy[NUMBER_MAX])
{
    const char *text = cell->text;
    size_t length = cell->length;

    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    while (length > 0 &&
           (text[length - 1] == ' ' || text[length - 1] == '\t' || text[length - 1] == '\r'))
        length--;
    if (length >= NUMBER_MAX)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return strlen(copy) == length;
}

bool ot__cell_number(const ot__cell *cell, double *value)
{
    char text[NUMBER_MAX];

    *value = NAN;
    if (fast_number(cell->text, cell->length, value))
        return true;
    if (!copy_trimmed(cell, text))
        return false;
    if (text[0] == '\0')
        return true;
    if (fast_number(text, strlen(text), value))
        return true;
    return is_decimal(text) && ot__parse_float(text, value);
}

// Without regard to case, which only ASCII has here.
static bool is_number_word(const char *text, const char *word)
{
    while (*word && (*text | 0x20) == *word) {
        text++;
        word++;
    }
    return *text == '\0' && *word == '\0';
}

bool ot__cell_is_numeric(const ot__cell *cell)
{
    static const char *const words[] = {"nan", "inf", "infinity"};
    char text[NUMBER_MAX];
    const char *word = text;
    double value;

    if (ot__cell_number(cell, &value))
        return true;
    if (!copy_trimmed(cell, text))
        return false;
    word += *word == '-' || *word == '+';
    for (size_t i = 0; i < OT_COUNT(words); i++)
        if (is_number_word(word, words[i]))
            return true;
    return false;
}
