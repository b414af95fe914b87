// SPDX-License-Identifier: Apache-2.0
// Tokens of ONNX's textual syntax.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/text/parse.h"

// ASCII only, whatever the locale.
static bool is_word_start(char c)
{
    return ot__is_letter(c) || c == '_';
}

static void skip_lex_space(ot__parser *p)
{
    while (p->at < p->end) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n')
                p->at++;
        else if (ot__is_space(*p->at))
            p->at++;
        else
            return;
    }
}

bool ot__parse_at_end(ot__parser *p)
{
    skip_lex_space(p);
    return p->at == p->end;
}

char ot__parse_peek(ot__parser *p)
{
    return ot__parse_at_end(p) ? '\0' : *p->at;
}

bool ot__parse_accept(ot__parser *p, char c)
{
    if (ot__parse_at_end(p) || *p->at != c)
        return false;
    p->at++;
    return true;
}

ot_status ot__parse_locate(ot__parser *p, ot_status status)
{
    int line = 1, column = 1;

    if (status == OT_OK)
        return OT_OK;
    skip_lex_space(p);
    for (const char *c = p->begin; c < p->at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    return ot__error_prefix(status, "line %d, column %d", line, column);
}

ot_status ot__parse_error(ot__parser *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    ot__error_v(OT_ERR_FORMAT, format, args);
    va_end(args);
    return ot__parse_locate(p, OT_ERR_FORMAT);
}

// What stands at the present position, for messages; in a buffer of the block around it.
#define FOUND(p) found((p), (char[64]){""}, 64)
static const char *found(ot__parser *p, char *text, size_t size)
{
    ot__bytes word = ot__parse_peek_word(p);

    if (ot__parse_at_end(p))
        snprintf(text, size, "the end");
    else if (word.size > 0)
        snprintf(text, size, "'%.*s'", (int)OT_MIN(word.size, (size_t)40), (const char *)word.data);
    else
        snprintf(text, size, "'%c'", *p->at);
    return text;
}

ot_status ot__parse_expect(ot__parser *p, char c)
{
    if (ot__parse_accept(p, c))
        return OT_OK;
    return ot__parse_error(p, "expected '%c', found %s", c, FOUND(p));
}

ot_status ot__parse_arrow(ot__parser *p)
{
    if (ot__parse_peek(p) == '=' && p->end - p->at >= 2 && p->at[1] == '>') {
        p->at += 2;
        return OT_OK;
    }
    return ot__parse_error(p, "expected '=>', found %s", FOUND(p));
}

ot_status ot__parse_enter(ot__parser *p)
{
    if (++p->n_items > p->reader.limits.nodes)
        return ot__error(OT_ERR_NO_MEMORY, "more than %" PRId64 " nodes, values and attributes",
                         p->reader.limits.nodes);
    if (++p->depth > p->reader.limits.depth)
        return ot__error(OT_ERR_NO_MEMORY, "nested more than %d deep", p->reader.limits.depth);
    return OT_OK;
}

// ---- words and names ----

ot__bytes ot__parse_peek_word(ot__parser *p)
{
    const char *at;

    skip_lex_space(p);
    at = p->at;
    if (at < p->end && is_word_start(*at))
        while (at < p->end && (is_word_start(*at) || ot__is_digit(*at)))
            at++;
    return (ot__bytes){(const uint8_t *)p->at, (size_t)(at - p->at)};
}

bool ot__word_is(ot__bytes word, const char *text)
{
    return word.size == strlen(text) && memcmp(word.data, text, word.size) == 0;
}

static ot_status lex_word(ot__parser *p, const char **out)
{
    ot__bytes word = ot__parse_peek_word(p);

    *out = ot__arena_strndup(p->model->arena, (const char *)word.data, word.size);
    p->at += word.size;
    return ot__made(*out);
}

ot_status ot__parse_word(ot__parser *p, const char **out)
{
    if (ot__parse_peek_word(p).size == 0)
        return ot__parse_error(p, "expected a name, found %s", FOUND(p));
    return lex_word(p, out);
}

ot_status ot__parse_name(ot__parser *p, const char **out)
{
    return ot__parse_peek(p) == '"' ? ot__parse_text(p, out) : ot__parse_word(p, out);
}

ot_status ot__parse_optional_name(ot__parser *p, const char **out)
{
    *out = "";
    if (ot__parse_peek(p) == '"')
        return ot__parse_text(p, out);
    return ot__parse_peek_word(p).size > 0 ? lex_word(p, out) : OT_OK;
}

ot_status ot__parse_quoted(ot__parser *p, ot__string *out)
{
    const char *start, *at;
    char *copy;
    size_t n = 0;

    *out = (ot__string){0};
    if (ot__parse_peek(p) != '"')
        return ot__parse_error(p, "expected a string, found %s", FOUND(p));
    start = p->at + 1;
    for (at = start; at < p->end && *at != '"'; at++)
        at += *at == '\\';
    if (at >= p->end)
        return ot__parse_error(p, "the string has no end");
    copy = ot__arena_alloc(p->model->arena, (size_t)(at - start) + 1);
    OT_TRY(ot__made(copy));
    for (const char *c = start; c < at; c++) {
        c += *c == '\\'; // stands for the character behind it, whatever that is
        copy[n++] = *c;
    }
    p->at = at + 1;
    *out = (ot__string){(const uint8_t *)copy, n};
    return OT_OK;
}

ot_status ot__parse_text(ot__parser *p, const char **out)
{
    ot__string string;

    OT_TRY(ot__parse_quoted(p, &string));
    if (memchr(string.data, 0, string.size))
        return ot__parse_error(p, "zero byte in a text");
    *out = (const char *)string.data;
    return OT_OK;
}

// ---- numbers ----

bool ot__parse_is_float_word(ot__parser *p)
{
    static const char *const words[] = {"inf", "infinity", "nan"};
    ot__bytes word = ot__parse_peek_word(p);

    for (size_t w = 0; w < OT_COUNT(words); w++) {
        size_t same = 0;

        if (word.size != strlen(words[w]))
            continue;
        while (same < word.size && (word.data[same] | 0x20) == (uint8_t)words[w][same])
            same++;
        if (same == word.size)
            return true;
    }
    return false;
}

static const char *skip_lex_digits(const char *at, const char *end)
{
    while (at < end && ot__is_digit(*at))
        at++;
    return at;
}

// The end of the number that starts at `at`; `at` itself when there is none.
static const char *end_of_number(const char *at, const char *end, bool *is_float)
{
    const char *start = at;

    *is_float = false;
    at = skip_lex_digits(at, end);
    if (at == start)
        return start;
    if (at < end && *at == '.') {
        *is_float = true;
        at = skip_lex_digits(at + 1, end);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        *is_float = true;
        at++;
        at += at < end && (*at == '+' || *at == '-');
        at = skip_lex_digits(at, end);
    }
    return at;
}

ot_status ot__parse_number(ot__parser *p, ot__number *out)
{
    bool is_negative = ot__parse_accept(p, '-');
    const char *end;
    int n;

    *out = (ot__number){0};
    skip_lex_space(p);
    if (ot__parse_is_float_word(p)) {
        end = p->at + ot__parse_peek_word(p).size;
        out->is_float = true;
    } else {
        end = end_of_number(p->at, p->end, &out->is_float);
    }
    if (end == p->at)
        return ot__parse_error(p, "expected a number, found %s", FOUND(p));
    n = snprintf(out->text, sizeof out->text, "%s%.*s", is_negative ? "-" : "",
                 (int)OT_MIN(end - p->at, (ptrdiff_t)sizeof out->text), p->at);
    if (n < 0 || (size_t)n >= sizeof out->text)
        return ot__parse_error(p, "the number has too many digits");
    p->at = end;
    return OT_OK;
}

ot_status ot__number_as_integer(ot__parser *p, const ot__number *number, int64_t *out)
{
    char *end;

    if (number->is_float)
        return ot__parse_error(p, "expected an integer, found %s", number->text);
    errno = 0;
    // Up to the largest unsigned number: uint64 elements need them, others check their range.
    if (number->text[0] == '-')
        *out = strtoll(number->text, &end, 10);
    else
        *out = (int64_t)strtoull(number->text, &end, 10);
    if (errno != 0)
        return ot__parse_error(p, "%s does not fit 64 bits", number->text);
    return OT_OK;
}

ot_status ot__parse_integer(ot__parser *p, int64_t *out)
{
    ot__number number;

    OT_TRY(ot__parse_number(p, &number));
    OT_TRY(ot__number_as_integer(p, &number, out));
    if (*out < 0 && number.text[0] != '-')
        return ot__parse_error(p, "%s does not fit 64 bits with a sign", number.text);
    return OT_OK;
}

ot_status ot__number_as_float(ot__parser *p, const ot__number *number, double *out)
{
    if (!ot__parse_float(number->text, out))
        return ot__parse_error(p, "expected a number, found %s", number->text);
    return OT_OK;
}

ot_status ot__number_as_f32(ot__parser *p, const ot__number *number, double *out)
{
    const double first_infinite = 0x1.ffffffp127; // rounds up; what is below has a nearest float

    OT_TRY(ot__number_as_float(p, number, out));
    if (isfinite(*out) && fabs(*out) >= first_infinite)
        return ot__parse_error(p, "%s does not fit float", number->text);
    return OT_OK;
}
