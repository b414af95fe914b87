// SPDX-License-Identifier: Apache-2.0
// Names in messages: which one a misspelt one was meant to be, and which there are.
#include <string.h>

#include "base/base.h"

int ot__index_of(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

void ot__buf_names(ot__buf *text, const char *const *names, int n)
{
    const int n_named = n <= OT_NAMES_SHOWN ? n : OT_NAMES_SHOWN - 1;

    for (int i = 0; i < n_named; i++)
        ot__buf_printf(text, "%s'%s'", i == 0 ? "" : i == n - 1 ? " and " : ", ", names[i]);
    if (n > n_named)
        ot__buf_printf(text, " and %d more", n - n_named);
}

enum { MOST_LETTERS = 128 }; // of names that are compared letter by letter

// People mix up cases, and the signs between words.
static char folded(char c)
{
    return c >= 'A' && c <= 'Z'               ? (char)(c - 'A' + 'a')
           : c == '_' || c == ' ' || c == '.' ? '-'
                                              : c;
}

static bool is_same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (folded(a[i]) != folded(b[i]))
            return false;
    return true;
}

// Letters to insert, remove, replace or exchange with their neighbour: d[i][j] of the first i and
// j.
static int count_edits(const char *a, size_t n, const char *b, size_t m)
{
    int rows[3][MOST_LETTERS + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= m; j++)
        now[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *free_row = before;

        before = last;
        last = now;
        now = free_row;
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const bool differs = folded(a[i - 1]) != folded(b[j - 1]);

            now[j] = OT_MIN(OT_MIN(last[j], now[j - 1]) + 1, last[j - 1] + differs);
            if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                folded(a[i - 2]) == folded(b[j - 1]))
                now[j] = OT_MIN(now[j], before[j - 2] + 1);
        }
    }
    return now[m];
}

// 0 for the same but for case and signs; -1: not near.
static int distance(const char *name, const char *candidate)
{
    enum { LEAST = 2, CUT_SHORT = 1, TOO_LONG = 2 };
    const size_t n = strlen(name), m = strlen(candidate), longer = OT_MAX(n, m);
    const int allowed = longer > LEAST ? (int)((longer + 1) / 3) : 0;
    int edits = -1;

    if (n == m && is_same(name, candidate, n))
        return 0;
    if (n >= LEAST && n < m &&
        (is_same(name, candidate, n) || // "bce" for "bce-with-logits", "weight" for "fc1.weight"
         (strchr("./", candidate[m - n - 1]) != NULL && is_same(name, candidate + m - n, n))))
        return CUT_SHORT;
    if (longer <= MOST_LETTERS && longer - OT_MIN(n, m) <= (size_t)allowed)
        edits = count_edits(name, n, candidate, m);
    if (edits >= 0 && edits <= allowed)
        return edits;
    if (m > LEAST && m < n && is_same(name, candidate, m) && folded(name[m]) == '-')
        return TOO_LONG; // "mse_loss" for "mse"
    return -1;
}

void ot__names_add(ot__names *names, const char *name)
{
    enum { SHOWN = 6 };
    const int found = distance(names->wanted, name);

    if (found >= 0 && (names->nearest == NULL || found < names->distance)) {
        names->nearest = name;
        names->distance = found;
    }
    if (names->count == 0)
        names->first = name;
    if (names->count < SHOWN && names->length < sizeof names->list)
        names->length +=
            (size_t)snprintf(names->list + names->length, sizeof names->list - names->length,
                             "%s%s", names->count > 0 ? ", " : "", name);
    names->last = name;
    names->count++;
    names->is_long = names->count > SHOWN || names->length >= sizeof names->list;
}

const char *ot__names_list(ot__names *names, const char *unit)
{
    if (names->is_long)
        snprintf(names->list, sizeof names->list, "%.64s to %.64s (%d %s)", names->first,
                 names->last, names->count, unit);
    return names->count > 0 ? names->list : "none";
}

const char *ot__names_hint(ot__names *names)
{
    if (names->nearest == NULL)
        return "";
    snprintf(names->hint, sizeof names->hint, "; did you mean '%s'?", names->nearest);
    return names->hint;
}

const char *ot_nearest_name(const char *name, const char *const *names, int n_names)
{
    ot__names all = {.wanted = name};

    for (int i = 0; name != NULL && names != NULL && i < n_names; i++)
        if (names[i] != NULL)
            ot__names_add(&all, names[i]);
    return all.nearest;
}
