// SPDX-License-Identifier: Apache-2.0
// Symbolic extents: polynomials over named dims and opaque quotients and remainders, interned per
// model.
#include <string.h>

#include "graph/dim_internal.h"

ot_status ot__symbols_create(ot_model *model)
{
    model->symbols = ot__arena_alloc(model->arena, sizeof *model->symbols);
    return ot__made(model->symbols);
}

void ot__symbols_deinit(ot_model *model)
{
    if (!model->symbols)
        return;
    ot__map_deinit(&model->symbols->names);
    ot__map_deinit(&model->symbols->expressions);
}

static bool copy_map(const ot__map *from, ot__map *to)
{
    size_t position = 0;
    const char *key;
    void *value;

    while (ot__map_next(from, &position, &key, &value))
        if (!ot__map_put(to, key, value))
            return false;
    return true;
}

ot_status ot__symbols_copy(const ot_model *from, ot_model *to)
{
    const struct ot__symbols *old = from->symbols;
    struct ot__symbols *new = to->symbols;

    if (old->n > 0) {
        new->items = ot__arena_memdup(to->arena, old->items, (size_t)old->n * sizeof *old->items);
        OT_TRY(ot__made(new->items));
    }
    new->n = new->capacity = old->n;
    return ot__made(copy_map(&old->names, &new->names) &&
                    copy_map(&old->expressions, &new->expressions));
}

static int64_t dim_code(int index)
{
    return INT64_MIN + 1 + index;
}

const ot__symbol *ot__symbol_of(const ot_model *model, int64_t dim)
{
    int64_t index;

    if (!ot__dim_is_symbol(dim)) // numbers would overflow below
        return NULL;
    index = dim - (INT64_MIN + 1);
    return index < model->symbols->n ? &model->symbols->items[index] : NULL;
}

// The symbol's code, or unknown when out of memory.
static int64_t add_symbol(ot_model *model, ot__map *map, const char *key, const ot__symbol *item)
{
    struct ot__symbols *symbols = model->symbols;

    if (!ot__arena_grow(model->arena, &symbols->items, &symbols->capacity, symbols->n,
                        sizeof *symbols->items))
        return OT_DIM_UNKNOWN;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the map's values are only carried
    if (!ot__map_put(map, key, (void *)(uintptr_t)(symbols->n + 1)))
        return OT_DIM_UNKNOWN;
    symbols->items[symbols->n] = *item;
    return dim_code(symbols->n++);
}

static int64_t find_symbol(const ot__map *map, const char *key)
{
    uintptr_t found = (uintptr_t)ot__map_get(map, key);

    return found ? dim_code((int)(found - 1)) : OT_DIM_UNKNOWN;
}

int64_t ot__dim_symbol(ot_model *model, const char *name)
{
    ot__symbol item = {.kind = OT_SYMBOL_NAMED};
    int64_t dim;

    if (!name || !*name)
        return OT_DIM_UNKNOWN;
    dim = find_symbol(&model->symbols->names, name);
    if (dim != OT_DIM_UNKNOWN)
        return dim;
    item.text = ot__arena_strdup(model->arena, name);
    if (!item.text)
        return OT_DIM_UNKNOWN;
    return add_symbol(model, &model->symbols->names, item.text, &item);
}

const char *ot__dim_name(const ot_model *model, int64_t dim)
{
    const ot__symbol *s = ot__symbol_of(model, dim);

    return s ? s->text : NULL;
}

const char *ot__dim_text(const ot_model *model, int64_t dim, char *text, size_t size)
{
    const char *name = ot__dim_name(model, dim);

    if (name)
        snprintf(text, size, "%s", name);
    else if (ot__dim_is_number(dim))
        snprintf(text, size, "%" PRId64, dim);
    else
        snprintf(text, size, "?");
    return text;
}

// ---- numbers ----

static int64_t number_or_unknown(int64_t value)
{
    return ot__dim_is_number(value) ? value : OT_DIM_UNKNOWN;
}

int64_t ot__number_add(int64_t a, int64_t b)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < OT_DIM_SYMBOL_END - b))
        return OT_DIM_UNKNOWN;
    return number_or_unknown(a + b);
}

int64_t ot__number_mul(int64_t a, int64_t b)
{
    int64_t product;

    // Numbers are above INT64_MIN, so that their magnitudes fit.
    if (ot__mul_overflows(a < 0 ? -a : a, b < 0 ? -b : b, &product))
        return OT_DIM_UNKNOWN;
    return number_or_unknown((a < 0) != (b < 0) ? -product : product);
}

int64_t ot__number_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t ot__number_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// ---- polynomials ----

static int compare_atoms(const ot_model *model, int64_t a, int64_t b)
{
    int order = strcmp(ot__symbol_of(model, a)->text, ot__symbol_of(model, b)->text);

    if (order != 0)
        return order;
    return a < b ? -1 : a > b;
}

// Higher degree first, the constant last: the order that the text shows.
static int compare_terms(const ot_model *model, const ot__term *a, const ot__term *b)
{
    if (a->n_atoms != b->n_atoms)
        return b->n_atoms - a->n_atoms;
    for (int i = 0; i < a->n_atoms; i++) {
        int order = compare_atoms(model, a->atoms[i], b->atoms[i]);

        if (order != 0)
            return order;
    }
    return 0;
}

// sum += t; false when the result is too large to be kept.
static bool add_term(const ot_model *model, ot__polynomial *sum, const ot__term *t)
{
    int at = 0;

    while (at < sum->n_terms && compare_terms(model, &sum->terms[at], t) < 0)
        at++;
    if (at < sum->n_terms && compare_terms(model, &sum->terms[at], t) == 0) {
        int64_t total = ot__number_add(sum->terms[at].coefficient, t->coefficient);

        if (total == OT_DIM_UNKNOWN)
            return false;
        sum->terms[at].coefficient = total;
        if (total == 0) {
            sum->n_terms--;
            memmove(&sum->terms[at], &sum->terms[at + 1],
                    (size_t)(sum->n_terms - at) * sizeof sum->terms[0]);
        }
        return true;
    }
    if (t->coefficient == 0)
        return true;
    if (sum->n_terms == OT_DIM_MAX_TERMS)
        return false;
    memmove(&sum->terms[at + 1], &sum->terms[at],
            (size_t)(sum->n_terms - at) * sizeof sum->terms[0]);
    sum->terms[at] = *t;
    sum->n_terms++;
    return true;
}

static bool multiply_terms(const ot_model *model, const ot__term *a, const ot__term *b,
                           ot__term *out)
{
    *out = *a;
    out->coefficient = ot__number_mul(a->coefficient, b->coefficient);
    if (out->coefficient == OT_DIM_UNKNOWN || a->n_atoms + b->n_atoms > OT_DIM_MAX_DEGREE)
        return false;
    for (int i = 0; i < b->n_atoms; i++) {
        int at = out->n_atoms++;

        for (; at > 0 && compare_atoms(model, out->atoms[at - 1], b->atoms[i]) > 0; at--)
            out->atoms[at] = out->atoms[at - 1];
        out->atoms[at] = b->atoms[i];
    }
    return true;
}

static ot__polynomial polynomial_of(const ot_model *model, int64_t dim)
{
    const ot__symbol *s = ot__symbol_of(model, dim);
    ot__polynomial p = {0};

    if (s && s->kind == OT_SYMBOL_POLYNOMIAL)
        return *s->sum;
    if (s)
        p.terms[p.n_terms++] = (ot__term){1, 1, {dim}};
    else if (dim != 0)
        p.terms[p.n_terms++] = (ot__term){dim, 0, {0}};
    return p;
}

static bool is_plain_name(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")] ==
           '\0';
}

static void term_text(const ot_model *model, const ot__term *t, bool is_first, ot__buf *text)
{
    int64_t magnitude = t->coefficient < 0 ? -t->coefficient : t->coefficient;

    if (t->coefficient < 0)
        ot__buf_text(text, "-");
    else if (!is_first)
        ot__buf_text(text, "+");
    if (t->n_atoms == 0 || magnitude != 1)
        ot__buf_printf(text, "%" PRId64 "%s", magnitude, t->n_atoms ? "*" : "");
    for (int i = 0; i < t->n_atoms; i++) {
        const char *atom = ot__symbol_of(model, t->atoms[i])->text;

        ot__buf_printf(text, is_plain_name(atom) ? "%s%s" : "%s(%s)", i ? "*" : "", atom);
    }
}

// The symbol with this key, made with the text's present content when new; both buffers are
// released.
static int64_t intern(ot_model *model, ot__buf *key, ot__buf *text, ot__symbol item)
{
    int64_t dim = OT_DIM_UNKNOWN;

    if (ot__buf_status(key) == OT_OK && ot__buf_status(text) == OT_OK) {
        dim = find_symbol(&model->symbols->expressions, key->data);
        if (dim == OT_DIM_UNKNOWN && text->length <= OT_DIM_MAX_TEXT) {
            const char *kept_key = ot__arena_strdup(model->arena, key->data);

            item.text = ot__arena_strdup(model->arena, text->data);
            if (item.sum)
                item.sum = ot__arena_memdup(model->arena, item.sum, sizeof *item.sum);
            if (kept_key && item.text && (item.sum || item.kind != OT_SYMBOL_POLYNOMIAL))
                dim = add_symbol(model, &model->symbols->expressions, kept_key, &item);
        }
    }
    ot__buf_deinit(key);
    ot__buf_deinit(text);
    return dim;
}

static int64_t intern_polynomial(ot_model *model, const ot__polynomial *p)
{
    ot__buf key = {0}, text = {0};
    ot__symbol item = {.kind = OT_SYMBOL_POLYNOMIAL, .sum = p}; // copied when it is kept

    if (p->n_terms == 0)
        return 0;
    if (p->n_terms == 1 && p->terms[0].n_atoms == 0)
        return p->terms[0].coefficient;
    if (p->n_terms == 1 && p->terms[0].n_atoms == 1 && p->terms[0].coefficient == 1)
        return p->terms[0].atoms[0];
    for (int i = 0; i < p->n_terms; i++) {
        const ot__term *t = &p->terms[i];

        ot__buf_printf(&key, "+%" PRId64, t->coefficient);
        for (int a = 0; a < t->n_atoms; a++)
            ot__buf_printf(&key, "*%" PRId64, t->atoms[a] - INT64_MIN);
        term_text(model, t, i == 0, &text);
    }
    return intern(model, &key, &text, item);
}

static void operand_text(const ot_model *model, int64_t dim, ot__buf *text)
{
    const char *name = ot__dim_name(model, dim);

    if (!name)
        ot__buf_printf(text, "%" PRId64, dim);
    else
        ot__buf_printf(text, is_plain_name(name) ? "%s" : "(%s)", name);
}

static int64_t intern_opaque(ot_model *model, ot__symbol_kind kind, int64_t a, int64_t b)
{
    const char *sign = kind == OT_SYMBOL_QUOTIENT ? "/" : "%";
    ot__buf key = {0}, text = {0};

    ot__buf_printf(&key, "%" PRId64 "%s%" PRId64, a, sign, b);
    operand_text(model, a, &text);
    ot__buf_text(&text, sign);
    operand_text(model, b, &text);
    return intern(model, &key, &text, (ot__symbol){.kind = kind, .a = a, .b = b});
}

// ---- arithmetic ----

static bool both_numbers(int64_t a, int64_t b)
{
    return ot__dim_is_number(a) && ot__dim_is_number(b);
}

static bool any_unknown(const ot_model *model, int64_t a, int64_t b)
{
    return (!ot__dim_is_number(a) && !ot__symbol_of(model, a)) ||
           (!ot__dim_is_number(b) && !ot__symbol_of(model, b));
}

int64_t ot__dim_add(ot_model *model, int64_t a, int64_t b)
{
    ot__polynomial sum, other;

    if (any_unknown(model, a, b))
        return OT_DIM_UNKNOWN;
    if (both_numbers(a, b))
        return ot__number_add(a, b);
    sum = polynomial_of(model, a);
    other = polynomial_of(model, b);
    for (int i = 0; i < other.n_terms; i++)
        if (!add_term(model, &sum, &other.terms[i]))
            return OT_DIM_UNKNOWN;
    return intern_polynomial(model, &sum);
}

int64_t ot__dim_sub(ot_model *model, int64_t a, int64_t b)
{
    return ot__dim_add(model, a, ot__dim_mul(model, b, -1));
}

int64_t ot__dim_mul(ot_model *model, int64_t a, int64_t b)
{
    ot__polynomial product = {0}, x, y;

    if (any_unknown(model, a, b))
        return OT_DIM_UNKNOWN;
    if (both_numbers(a, b))
        return ot__number_mul(a, b);
    x = polynomial_of(model, a);
    y = polynomial_of(model, b);
    for (int i = 0; i < x.n_terms; i++) {
        for (int j = 0; j < y.n_terms; j++) {
            ot__term t;

            if (!multiply_terms(model, &x.terms[i], &y.terms[j], &t) ||
                !add_term(model, &product, &t))
                return OT_DIM_UNKNOWN;
        }
    }
    return intern_polynomial(model, &product);
}

// *out = t / by when that has no remainder.
static bool divide_term(const ot__term *t, const ot__term *by, ot__term *out)
{
    int left = 0, i_by = 0;

    if (t->coefficient % by->coefficient != 0)
        return false;
    *out = (ot__term){t->coefficient / by->coefficient, 0, {0}};
    for (int i = 0; i < t->n_atoms; i++) {
        if (i_by < by->n_atoms && t->atoms[i] == by->atoms[i_by])
            i_by++;
        else
            out->atoms[left++] = t->atoms[i];
    }
    out->n_atoms = left;
    return i_by == by->n_atoms;
}

// a / b when every term of a is a multiple of the single term b; a symbol that divides is taken to
// be no zero.
static bool divide_exactly(const ot_model *model, int64_t a, int64_t b, ot__polynomial *quotient)
{
    ot__polynomial x = polynomial_of(model, a), y = polynomial_of(model, b);

    *quotient = (ot__polynomial){0};
    if (y.n_terms != 1)
        return false;
    for (int i = 0; i < x.n_terms; i++) {
        ot__term t;

        if (!divide_term(&x.terms[i], &y.terms[0], &t) || !add_term(model, quotient, &t))
            return false;
    }
    return true;
}

int64_t ot__dim_div(ot_model *model, int64_t a, int64_t b)
{
    ot__polynomial quotient;

    if (any_unknown(model, a, b) || b == 0)
        return OT_DIM_UNKNOWN;
    if (both_numbers(a, b))
        return ot__number_div(a, b);
    if (a == b)
        return 1;
    if (divide_exactly(model, a, b, &quotient))
        return intern_polynomial(model, &quotient);
    return intern_opaque(model, OT_SYMBOL_QUOTIENT, a, b);
}

int64_t ot__dim_mod(ot_model *model, int64_t a, int64_t b)
{
    ot__polynomial quotient;

    if (any_unknown(model, a, b) || b == 0)
        return OT_DIM_UNKNOWN;
    if (both_numbers(a, b))
        return ot__number_mod(a, b);
    if (a == b || divide_exactly(model, a, b, &quotient))
        return 0;
    return intern_opaque(model, OT_SYMBOL_REMAINDER, a, b);
}
