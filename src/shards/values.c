// SPDX-License-Identifier: Apache-2.0
// Trees as JSON: objects are dicts; null, booleans and strings are themselves, numbers with a
// fraction are floats and others integers. All else is an array that begins with its kind:
// ["list", ...], ["ints", ...], ["bytes", "<hex>"], ["float", "nan"], ["tensor"].
#include <math.h>
#include <string.h>

#include "shards/shards.h"

enum { TREE_DEPTH_MAX = OT_JSON_DEPTH_MAX - 3, NUMBER_LENGTH_MAX = 64 };

// ---- writing ----

typedef struct values_out {
    ot__buf *out;
    int depth;
} values_out;

static ot_status check_value_text(const char *text, const char *what)
{
    const size_t n = strlen(text);

    return ot__utf8_bad_byte(text, n) < n
               ? ot__error(OT_ERR_INVALID, "%s '%s' is not UTF-8", what, text)
               : OT_OK;
}

static void write_kind(ot__buf *out, const char *name, const char *kind)
{
    ot__json_open(out, name, '[');
    ot__json_string(out, NULL, kind);
}

static ot_status write_float_value(ot__buf *out, const char *name, double value)
{
    if (isfinite(value)) {
        ot__json_float(out, name, value);
        return OT_OK;
    }
    write_kind(out, name, "float");
    ot__json_string(out, NULL, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    ot__json_close(out, ']');
    return OT_OK;
}

static ot_status write_ints_value(ot__buf *out, const char *name, const int64_t *ints, int n)
{
    write_kind(out, name, "ints");
    for (int i = 0; i < n; i++)
        ot__json_int(out, NULL, ints[i]);
    ot__json_close(out, ']');
    return OT_OK;
}

static ot_status write_bytes_value(ot__buf *out, const char *name, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    write_kind(out, name, "bytes");
    ot__buf_text(out, ",\"");
    for (size_t i = 0; i < n; i++)
        ot__buf_append(out, (char[]){digits[bytes[i] >> 4], digits[bytes[i] & 15]}, 2);
    ot__buf_text(out, "\"]");
    return OT_OK;
}

static ot_status write_members(values_out *v, ot_dict *dict, bool is_list);

static ot_status write_inner_value(values_out *v, const char *name, ot_dict *inner, bool is_list)
{
    if (is_list)
        write_kind(v->out, name, "list");
    else
        ot__json_open(v->out, name, '{');
    OT_TRY(write_members(v, inner, is_list));
    ot__json_close(v->out, is_list ? ']' : '}');
    return OT_OK;
}

// `name`: of the value in the dict; `member`: what is written of it, NULL in lists.
static ot_status write_value(values_out *v, ot_dict *dict, const char *name, const char *member)
{
    const void *bytes;
    const int64_t *ints;
    const char *text;
    ot_dict *inner;
    ot_dict_kind kind;
    int64_t integer;
    double real;
    size_t n_bytes;
    int n;

    OT_TRY(ot_dict_kind_of(dict, name, &kind));
    switch (kind) {
    case OT_DICT_NULL:
        ot__json_string(v->out, member, NULL);
        return OT_OK;
    case OT_DICT_BOOL:
        OT_TRY(ot_dict_get_bool(dict, name, &n));
        ot__json_bool(v->out, member, n != 0);
        return OT_OK;
    case OT_DICT_INT:
        OT_TRY(ot_dict_get_int(dict, name, &integer));
        ot__json_int(v->out, member, integer);
        return OT_OK;
    case OT_DICT_FLOAT:
        OT_TRY(ot_dict_get_float(dict, name, &real));
        return write_float_value(v->out, member, real);
    case OT_DICT_STRING:
        OT_TRY(ot_dict_get_string(dict, name, &text));
        OT_TRY(check_value_text(text, "the text"));
        ot__json_string(v->out, member, text);
        return OT_OK;
    case OT_DICT_INTS:
        OT_TRY(ot_dict_get_ints(dict, name, &ints, &n));
        return write_ints_value(v->out, member, ints, n);
    case OT_DICT_BYTES:
        OT_TRY(ot_dict_get_bytes(dict, name, &bytes, &n_bytes));
        return write_bytes_value(v->out, member, bytes, n_bytes);
    case OT_DICT_DICT:
        OT_TRY(ot_dict_get_dict(dict, name, &inner));
        return write_inner_value(v, member, inner, false);
    case OT_DICT_LIST:
        OT_TRY(ot_dict_get_list(dict, name, &inner));
        return write_inner_value(v, member, inner, true);
    default: // tensors and shards
        write_kind(v->out, member, "tensor");
        ot__json_close(v->out, ']');
        return OT_OK;
    }
}

static ot_status write_members(values_out *v, ot_dict *dict, bool is_list)
{
    if (v->depth == TREE_DEPTH_MAX)
        return ot__error(OT_ERR_UNSUPPORTED, "more than %d dicts and lists inside each other",
                         TREE_DEPTH_MAX);
    v->depth++;
    for (int i = 0; i < ot_dict_count(dict); i++) {
        const char *name = ot_dict_name(dict, i);
        ot_status st = check_value_text(name, "the name");

        OT_THEN(st, write_value(v, dict, name, is_list ? NULL : name));
        OT_TRY(st == OT_OK || st == OT_ERR_NO_MEMORY ? st : ot__error_prefix(st, "'%s'", name));
    }
    v->depth--;
    return ot__buf_status(v->out);
}

ot_status ot__values_write(const ot_dict *dict, ot__buf *out)
{
    values_out v = {.out = out};

    ot__json_open(out, NULL, '{');
    OT_TRY(write_members(&v, (ot_dict *)(uintptr_t)dict, false));
    ot__json_close(out, '}');
    return ot__buf_status(out);
}

// ---- reading ----

typedef struct values_in {
    ot__json_scan scan;
    const ot__index *index;
    bool whole;
    int n_tensors;
    ot__buf key;
} values_in;

static ot_status read_members(values_in *v, ot_dict *dict, bool is_list);

static ot_status read_value_number(values_in *v, ot_dict *dict, const char *name)
{
    char text[NUMBER_LENGTH_MAX];
    const size_t begin = v->scan.at;
    int64_t integer;
    double real;
    size_t n;

    OT_TRY(ot__json_scan_skip(&v->scan));
    n = v->scan.at - begin;
    if (n >= sizeof text)
        return ot__json_scan_error(&v->scan, "a number of %zu characters", n);
    memcpy(text, v->scan.text + begin, n);
    text[n] = '\0';
    if (strpbrk(text, ".eE") == NULL)
        return ot__parse_int(text, &integer)
                   ? ot_dict_set_int(dict, name, integer)
                   : ot__json_scan_error(&v->scan, "an integer of more than 64 bits");
    return ot__parse_float(text, &real)
               ? ot_dict_set_float(dict, name, real)
               : ot__json_scan_error(&v->scan, "a number beyond those of 64 bits");
}

static ot_status expect_end_of_kind(values_in *v)
{
    const char *none;
    bool has_more;

    OT_TRY(ot__json_scan_next(&v->scan, &none, &has_more));
    return has_more ? ot__json_scan_error(&v->scan, "more than one value") : OT_OK;
}

static ot_status expect_text_of_kind(values_in *v, const char **text)
{
    const char *none;
    bool has_more;

    OT_TRY(ot__json_scan_next(&v->scan, &none, &has_more));
    if (!has_more)
        return ot__json_scan_error(&v->scan, "a value is missing");
    return ot__json_scan_string(&v->scan, text);
}

static ot_status read_float_kind(values_in *v, ot_dict *dict, const char *name)
{
    static const struct {
        const char *text;
        double value;
    } known[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    const char *text;

    OT_TRY(expect_text_of_kind(v, &text));
    for (size_t i = 0; i < OT_COUNT(known); i++)
        if (strcmp(known[i].text, text) == 0) {
            OT_TRY(expect_end_of_kind(v));
            return ot_dict_set_float(dict, name, known[i].value);
        }
    return ot__json_scan_error(&v->scan, "'%s', expected nan, inf or -inf", text);
}

static ot_status read_ints_kind(values_in *v, ot_dict *dict, const char *name)
{
    ot_dict *list; // of the numbers, as they are read
    ot_status st = ot_dict_create(&list);
    int64_t *ints = NULL;
    int n = 0, capacity = 0;
    bool has_more = true;

    while (st == OT_OK) {
        const char *none;

        st = ot__json_scan_next(&v->scan, &none, &has_more);
        if (st != OT_OK || !has_more)
            break;
        if (ot__json_scan_kind(&v->scan) != '0')
            st = ot__json_scan_error(&v->scan, "expected an integer");
        OT_THEN(st, read_value_number(v, list, "n"));
        OT_THEN(st, ot__made(ot__grow(&ints, &capacity, n, sizeof *ints)));
        if (st == OT_OK)
            st = ot_dict_get_int(list, "n", &ints[n++]);
    }
    OT_THEN(st, ot_dict_set_ints(dict, name, ints, n));
    ot__free(ints);
    ot_dict_destroy(list);
    return st == OT_ERR_INVALID ? ot__json_scan_error(&v->scan, "expected an integer") : st;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static ot_status read_bytes_kind(values_in *v, ot_dict *dict, const char *name)
{
    const char *text;
    ot__buf bytes = {0};
    ot_status st = expect_text_of_kind(v, &text);

    for (; st == OT_OK && *text != '\0'; text += 2) {
        const int high = hex_digit(text[0]), low = high >= 0 ? hex_digit(text[1]) : -1;

        if (low < 0)
            st = ot__json_scan_error(&v->scan, "expected pairs of hexadecimal digits");
        else
            ot__buf_append(&bytes, &(char){(char)(high << 4 | low)}, 1);
    }
    OT_THEN(st, ot__buf_status(&bytes));
    OT_THEN(st, ot_dict_set_bytes(dict, name, bytes.data, bytes.length));
    OT_THEN(st, expect_end_of_kind(v));
    ot__buf_deinit(&bytes);
    return st;
}

static ot_status read_tensor_kind(values_in *v, ot_dict *dict, const char *name)
{
    const ot__index_tensor *t = ot__index_find(v->index, v->key.data);
    ot_tensor *tensor;
    ot_status st;

    OT_TRY(expect_end_of_kind(v));
    if (t == NULL)
        return ot__json_scan_error(&v->scan, "there is no tensor '%s'", v->key.data);
    v->n_tensors++;
    if (!v->whole)
        return ot_dict_take_shards(dict, name, t->dtype, &t->shape, NULL, NULL, 0);
    OT_TRY(ot_tensor_create(t->dtype, &t->shape, &tensor));
    st = ot_dict_take_tensor(dict, name, tensor);
    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

static ot_status read_list_kind(values_in *v, ot_dict *dict, const char *name)
{
    ot_dict *inner;

    OT_TRY(ot_dict_set_list(dict, name, &inner));
    return read_members(v, inner, true);
}

static ot_status read_kind(values_in *v, ot_dict *dict, const char *name)
{
    static const struct {
        const char *name;
        ot_status (*read)(values_in *v, ot_dict *dict, const char *name);
    } kinds[] = {{"list", read_list_kind},
                 {"ints", read_ints_kind},
                 {"bytes", read_bytes_kind},
                 {"float", read_float_kind},
                 {"tensor", read_tensor_kind}};
    const char *kind;

    OT_TRY(ot__json_scan_open(&v->scan, '['));
    OT_TRY(expect_text_of_kind(v, &kind));
    for (size_t i = 0; i < OT_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return kinds[i].read(v, dict, name);
    return ot__json_scan_error(&v->scan, "values of the unknown kind '%s'", kind);
}

static ot_status read_value(values_in *v, ot_dict *dict, const char *name)
{
    const char *text;
    ot_dict *inner;

    switch (ot__json_scan_kind(&v->scan)) {
    case '{':
        OT_TRY(ot__json_scan_open(&v->scan, '{'));
        OT_TRY(ot_dict_set_dict(dict, name, &inner));
        return read_members(v, inner, false);
    case '[':
        return read_kind(v, dict, name);
    case '"':
        OT_TRY(ot__json_scan_string(&v->scan, &text));
        return ot_dict_set_string(dict, name, text);
    case '0':
        return read_value_number(v, dict, name);
    case 'n':
        OT_TRY(ot__json_scan_skip(&v->scan));
        return ot_dict_set_null(dict, name);
    case 't':
    case 'f': {
        const bool is_true = ot__json_scan_kind(&v->scan) == 't';

        OT_TRY(ot__json_scan_skip(&v->scan));
        return ot_dict_set_bool(dict, name, is_true);
    }
    default:
        return ot__json_scan_error(&v->scan, "expected a value");
    }
}

static ot_status read_member(values_in *v, ot_dict *dict, const char *read)
{
    const size_t length = v->key.length;
    const int n_before = ot_dict_count(dict);
    char *name = ot__strdup(read);
    ot_status st = ot__made(name != NULL);

    if (st == OT_OK && *name == '\0')
        st = ot__json_scan_error(&v->scan, "an empty name");
    if (st == OT_OK)
        ot__key_append(&v->key, name);
    OT_THEN(st, ot__buf_status(&v->key));
    OT_THEN(st, read_value(v, dict, name));
    if (st == OT_OK && ot_dict_count(dict) == n_before)
        st = ot__json_scan_error(&v->scan, "'%s' is there twice", name);
    if (v->key.data != NULL && v->key.length > length) {
        v->key.length = length;
        v->key.data[length] = '\0';
    }
    ot__free(name);
    return st;
}

// The depth is that of the JSON, which the scan limits.
static ot_status read_members(values_in *v, ot_dict *dict, bool is_list)
{
    for (;;) {
        const char *name = NULL;
        char number[16];
        bool has_more;

        OT_TRY(ot__json_scan_next(&v->scan, &name, &has_more));
        if (!has_more)
            return OT_OK;
        snprintf(number, sizeof number, "%d", ot_dict_count(dict));
        OT_TRY(read_member(v, dict, is_list ? number : name));
    }
}

static ot_status read_item(const ot__index *index, const ot__index_item *item, bool whole,
                           ot_dict *dict, int *n_tensors)
{
    values_in v = {.index = index, .whole = whole};
    ot_status st = ot__json_scan_init(&v.scan, item->json, strlen(item->json));

    ot__buf_text(&v.key, item->name);
    OT_THEN(st, ot__buf_status(&v.key));
    OT_THEN(st, ot__json_scan_open(&v.scan, '{'));
    OT_THEN(st, read_members(&v, dict, false));
    OT_THEN(st, ot__json_scan_end(&v.scan));
    ot__json_scan_deinit(&v.scan);
    ot__buf_deinit(&v.key);
    *n_tensors = v.n_tensors;
    return st == OT_ERR_FORMAT ? ot__error_prefix(st, "item '%s'", item->name) : st;
}

ot_status ot__values_read(const ot__index *index, const ot__index_item *item, bool whole,
                          ot_dict *dict)
{
    int n_tensors;

    return read_item(index, item, whole, dict, &n_tensors);
}

ot_status ot__values_check(const ot__index *index)
{
    int n = 0;

    for (int i = 0; i < index->n_items; i++) {
        ot_dict *dict;
        int n_tensors;
        ot_status st;

        OT_TRY(ot_dict_create(&dict));
        st = read_item(index, &index->items[i], false, dict, &n_tensors);
        ot_dict_destroy(dict);
        OT_TRY(st);
        n += n_tensors;
    }
    return n == index->n_tensors
               ? OT_OK
               : ot__error(OT_ERR_FORMAT, "has %d tensors, and its items %d", index->n_tensors, n);
}
