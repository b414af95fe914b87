// SPDX-License-Identifier: Apache-2.0
// Names of classes as metadata: a JSON list. Labels of a CSV may be any bytes; those that are not
// UTF-8 stand as \udc80 to \udcff, as Python reads and writes them.
#include <string.h>

#include "train/record_internal.h"

enum {
    MAX_CLASSES = 1 << 16, // as many as a label column may have
    ESCAPED_BYTE = 0xdc00,
    SURROGATES = 0xd800,
    LOW_SURROGATES = 0xdc00,
    SURROGATES_END = 0xe000,
};

// ---- writing ----

static void write_class_name(ot__buf *text, const char *name)
{
    ot__buf_text(text, "\"");
    while (*name) {
        const unsigned char first = (unsigned char)*name;
        uint32_t code;
        const int n = ot__utf8_read(name, &code);

        if (n == 0)
            ot__buf_printf(text, "\\u%04x", ESCAPED_BYTE + first);
        else if (first < 0x20)
            ot__buf_printf(text, "\\u%04x", first);
        else if (first == '"' || first == '\\')
            ot__buf_printf(text, "\\%c", first);
        else
            ot__buf_append(text, name, (size_t)n);
        name += OT_MAX(n, 1);
    }
    ot__buf_text(text, "\"");
}

void ot__class_names_write(ot__buf *text, const char *const *names, int n)
{
    ot__buf_text(text, "[");
    for (int i = 0; i < n; i++) {
        ot__buf_text(text, i > 0 ? "," : "");
        write_class_name(text, names[i]);
    }
    ot__buf_text(text, "]");
}

// ---- reading ----

static const char *skip_class_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static bool read_hex(const char *at, uint32_t *code)
{
    return ot__hex4_read(at, 4, code) == 4; // stops at the end
}

// What stands behind \u; NULL when it is no character, or the end of a text in C.
static const char *read_code(const char *at, ot__buf *out)
{
    uint32_t code, low;

    if (!read_hex(at, &code) || code == 0)
        return NULL;
    at += 4;
    if (code > ESCAPED_BYTE + 0x7f && code <= ESCAPED_BYTE + 0xff) {
        const char byte = (char)(code - ESCAPED_BYTE);

        ot__buf_append(out, &byte, 1);
        return at;
    }
    if (code >= SURROGATES && code < SURROGATES_END) {
        if (code >= LOW_SURROGATES || at[0] != '\\' || at[1] != 'u' || !read_hex(at + 2, &low) ||
            low < LOW_SURROGATES || low >= SURROGATES_END)
            return NULL;
        code = 0x10000 + ((code - SURROGATES) << 10 | (low - LOW_SURROGATES));
        at += 6;
    }
    ot__utf8_append(out, code);
    return at;
}

// The text behind a quote; what is behind its closing one, or NULL.
static const char *read_name(const char *at, ot__buf *out)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";

    while (at && *at != '"') {
        const char *escape;

        if ((unsigned char)*at < 0x20) // or the end
            return NULL;
        if (*at != '\\') {
            ot__buf_append(out, at++, 1);
            continue;
        }
        at++;
        escape = *at ? strchr(escapes, *at) : NULL;
        if (escape)
            ot__buf_append(out, &meant[escape - escapes], 1);
        at = escape ? at + 1 : *at == 'u' ? read_code(at + 1, out) : NULL;
    }
    return at ? at + 1 : NULL;
}

static ot_status no_list(void)
{
    return ot__error(OT_ERR_FORMAT, "is not a JSON list of strings");
}

// One name behind those in `names`, which has room for it.
static ot_status add_class_name(ot__arena *arena, const char **at, const char **names, int *n)
{
    ot__buf name = {0};
    ot_status st;

    ot__buf_append(&name, "", 0);
    *at = **at == '"' ? read_name(*at + 1, &name) : NULL;
    st = ot__buf_status(&name);
    if (st == OT_OK && !*at)
        st = no_list();
    if (st == OT_OK) {
        names[*n] = ot__arena_strdup(arena, name.data);
        st = ot__made(names[*n]);
    }
    if (st == OT_OK && *n > 0 && strcmp(names[*n - 1], names[*n]) >= 0)
        st = ot__error(OT_ERR_FORMAT, "has '%s' after '%s', expected different strings in order",
                       names[*n], names[*n - 1]);
    ot__buf_deinit(&name);
    *n += st == OT_OK;
    return st;
}

ot_status ot__class_names_read(ot__arena *arena, const char *text, const char ***names, int *n)
{
    const char *at = skip_class_space(text);
    const size_t most = ot__count_char(text, ',') + 1; // strings there may be

    *n = 0;
    *names = ot__arena_alloc(arena, OT_MIN(most, (size_t)MAX_CLASSES) * sizeof **names);
    OT_TRY(ot__made(*names));
    if (*at != '[')
        return no_list();
    for (at = skip_class_space(at + 1); *at != ']' || *n == 0; at = skip_class_space(at)) {
        if (*n > 0 && *at != ',')
            return no_list();
        if (*n == MAX_CLASSES)
            return ot__error(OT_ERR_FORMAT, "has more than %d strings", MAX_CLASSES);
        at = skip_class_space(at + (*n > 0));
        OT_TRY(add_class_name(arena, &at, *names, n));
    }
    return *skip_class_space(at + 1) == '\0' ? OT_OK : no_list();
}
