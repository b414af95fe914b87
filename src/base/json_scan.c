// SPDX-License-Identifier: Apache-2.0
// JSON that is too large for a tree: one value is read after the other, and nothing is kept.
#include <string.h>

#include "base/base.h"

ot_status ot__json_scan_init(ot__json_scan *scan, const char *text, size_t n_bytes)
{
    const size_t bad = ot__utf8_bad_byte(text, n_bytes);

    *scan = (ot__json_scan){.text = text, .n_bytes = n_bytes};
    return bad < n_bytes ? ot__error(OT_ERR_FORMAT, "byte %zu is not UTF-8", bad) : OT_OK;
}

void ot__json_scan_deinit(ot__json_scan *scan)
{
    ot__buf_deinit(&scan->string);
}

ot_status ot__json_scan_error(const ot__json_scan *scan, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)ot__error_v(OT_ERR_FORMAT, format, args);
    va_end(args);
    return ot__error_prefix(OT_ERR_FORMAT, "byte %zu", scan->at);
}

static int peek_char(const ot__json_scan *scan)
{
    return scan->at < scan->n_bytes ? (unsigned char)scan->text[scan->at] : -1;
}

static int peek_token(ot__json_scan *scan)
{
    int c = peek_char(scan);

    while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        scan->at++;
        c = peek_char(scan);
    }
    return c;
}

static ot_status expect_char(ot__json_scan *scan, char expected)
{
    const int c = peek_token(scan);

    if (c != expected)
        return c < 0 ? ot__json_scan_error(scan, "ends, expected '%c'", expected)
                     : ot__json_scan_error(scan, "'%c', expected '%c'", c, expected);
    scan->at++;
    return OT_OK;
}

// ---- objects and arrays ----

char ot__json_scan_kind(ot__json_scan *scan)
{
    const int c = peek_token(scan);

    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    return c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n' ? (char)c : '\0';
}

ot_status ot__json_scan_open(ot__json_scan *scan, char bracket)
{
    if (scan->depth == OT_JSON_DEPTH_MAX)
        return ot__json_scan_error(scan, "more than %d objects and arrays inside each other",
                                   OT_JSON_DEPTH_MAX);
    OT_TRY(expect_char(scan, bracket));
    scan->close[scan->depth] = bracket == '{' ? '}' : ']';
    scan->has_items[scan->depth++] = false;
    return OT_OK;
}

ot_status ot__json_scan_next(ot__json_scan *scan, const char **name, bool *has_more)
{
    const int level = scan->depth - 1;

    *has_more = peek_token(scan) != scan->close[level];
    if (!*has_more) {
        scan->at++;
        scan->depth--;
        return OT_OK;
    }
    if (scan->has_items[level])
        OT_TRY(expect_char(scan, ','));
    scan->has_items[level] = true;
    if (scan->close[level] == ']')
        return OT_OK;
    OT_TRY(ot__json_scan_string(scan, name));
    return expect_char(scan, ':');
}

ot_status ot__json_scan_end(ot__json_scan *scan)
{
    return peek_token(scan) < 0
               ? OT_OK
               : ot__json_scan_error(scan, "'%c', expected the end", peek_char(scan));
}

// ---- strings ----

static bool take_hex(ot__json_scan *scan, uint32_t *code)
{
    const int n = ot__hex4_read(scan->text + scan->at, scan->n_bytes - scan->at, code);

    scan->at += (size_t)n;
    return n == 4;
}

// After "\u": one character, or both halves of one.
static ot_status take_code(ot__json_scan *scan)
{
    uint32_t code, low = 0;

    if (!take_hex(scan, &code))
        return ot__json_scan_error(scan, "expected 4 hexadecimal digits");
    if (code >= 0xd800 && code < 0xdc00) {
        if (scan->n_bytes - scan->at < 2 || memcmp(scan->text + scan->at, "\\u", 2) != 0)
            return ot__json_scan_error(scan, "half of a surrogate pair");
        scan->at += 2;
        if (!take_hex(scan, &low) || low < 0xdc00 || low > 0xdfff)
            return ot__json_scan_error(scan, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
        return ot__json_scan_error(scan, "half of a surrogate pair");
    }
    if (code == 0)
        return ot__json_scan_error(scan, "a NUL in a string");
    ot__utf8_append(&scan->string, code);
    return OT_OK;
}

static ot_status take_escape(ot__json_scan *scan)
{
    static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const int c = peek_char(scan);
    const char *found = c > 0 ? strchr(escapes, c) : NULL;

    if (c == 'u') {
        scan->at++;
        return take_code(scan);
    }
    if (found == NULL)
        return ot__json_scan_error(scan, "an escape that JSON does not have");
    scan->at++;
    ot__buf_append(&scan->string, &meanings[found - escapes], 1);
    return OT_OK;
}

ot_status ot__json_scan_string(ot__json_scan *scan, const char **out)
{
    OT_TRY(expect_char(scan, '"'));
    scan->string.length = 0;
    for (;;) {
        const size_t begin = scan->at;
        int c = peek_char(scan);

        while (c >= ' ' && c != '"' && c != '\\') {
            scan->at++;
            c = peek_char(scan);
        }
        ot__buf_append(&scan->string, scan->text + begin, scan->at - begin);
        if (c < 0)
            return ot__json_scan_error(scan, "ends within a string");
        if (c < ' ')
            return ot__json_scan_error(scan, "a control character in a string");
        scan->at++;
        if (c == '"')
            break;
        OT_TRY(take_escape(scan));
    }
    OT_TRY(ot__buf_status(&scan->string));
    *out = scan->string.data;
    return OT_OK;
}

// ---- numbers, and what is not wanted ----

static size_t skip_digits(ot__json_scan *scan)
{
    const size_t begin = scan->at;

    while (peek_char(scan) >= '0' && peek_char(scan) <= '9')
        scan->at++;
    return scan->at - begin;
}

ot_status ot__json_scan_count(ot__json_scan *scan, uint64_t max, uint64_t *value)
{
    const bool is_zero = peek_token(scan) == '0';
    const size_t begin = scan->at;
    int c;

    *value = 0;
    for (c = peek_char(scan); c >= '0' && c <= '9'; c = peek_char(scan)) {
        const uint64_t digit = (uint64_t)(c - '0');

        if (*value > max / 10 || digit > max - *value * 10)
            return ot__json_scan_error(scan, "a number above %" PRIu64, max);
        *value = *value * 10 + digit;
        scan->at++;
    }
    if (scan->at == begin || (is_zero && scan->at > begin + 1) || c == '.' || c == 'e' || c == 'E')
        return ot__json_scan_error(scan, "expected a whole number from 0 on");
    return OT_OK;
}

static ot_status skip_number(ot__json_scan *scan)
{
    bool is_right;

    if (peek_char(scan) == '-')
        scan->at++;
    is_right = peek_char(scan) == '0' ? scan->at++ < scan->n_bytes : skip_digits(scan) > 0;
    if (is_right && peek_char(scan) == '.') {
        scan->at++;
        is_right = skip_digits(scan) > 0;
    }
    if (is_right && (peek_char(scan) == 'e' || peek_char(scan) == 'E')) {
        scan->at++;
        if (peek_char(scan) == '+' || peek_char(scan) == '-')
            scan->at++;
        is_right = skip_digits(scan) > 0;
    }
    return is_right ? OT_OK : ot__json_scan_error(scan, "expected a number");
}

static ot_status skip_word(ot__json_scan *scan, const char *word)
{
    const size_t n = strlen(word);

    if (scan->n_bytes - scan->at < n || memcmp(scan->text + scan->at, word, n) != 0)
        return ot__json_scan_error(scan, "expected %s", word);
    scan->at += n;
    return OT_OK;
}

static ot_status skip_items(ot__json_scan *scan, char bracket)
{
    const char *name;
    bool has_more;

    OT_TRY(ot__json_scan_open(scan, bracket));
    for (;;) {
        OT_TRY(ot__json_scan_next(scan, &name, &has_more));
        if (!has_more)
            return OT_OK;
        OT_TRY(ot__json_scan_skip(scan));
    }
}

ot_status ot__json_scan_skip(ot__json_scan *scan)
{
    const char kind = ot__json_scan_kind(scan);
    const char *text;

    switch (kind) {
    case '{':
    case '[':
        return skip_items(scan, kind);
    case '"':
        return ot__json_scan_string(scan, &text);
    case '0':
        return skip_number(scan);
    case 't':
        return skip_word(scan, "true");
    case 'f':
        return skip_word(scan, "false");
    case 'n':
        return skip_word(scan, "null");
    default:
        return ot__json_scan_error(scan, "expected a value");
    }
}
