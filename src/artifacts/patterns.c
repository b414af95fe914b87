// SPDX-License-Identifier: Apache-2.0
// Lists of patterns that name parameters. There may be as many whole names as parameters, so these
// are looked up; there are few wildcards.
#include <string.h>

#include "artifacts/parameters.h"

bool ot__pattern_is_name(const char *pattern)
{
    return strpbrk(pattern, "*?") == NULL;
}

bool ot__pattern_has(const char *pattern, const ot_value *value)
{
    return ot__name_matches(pattern, value->name) ||
           (value->alias && ot__name_matches(pattern, value->alias));
}

ot_status ot__patterns_init(ot__patterns *p, const char *const *items, int n)
{
    *p = (ot__patterns){.items = items, .n = n};
    p->wildcards = ot__alloc_zero((size_t)n, sizeof *p->wildcards);
    OT_TRY(ot__made(p->wildcards));
    for (int i = 0; i < n; i++) {
        if (!ot__pattern_is_name(items[i]))
            p->wildcards[p->n_wildcards++] = i;
        else if (!ot__map_get(&p->names, items[i]) &&
                 !ot__map_put(&p->names, items[i], (void *)&items[i]))
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}

void ot__patterns_deinit(ot__patterns *p)
{
    ot__map_deinit(&p->names);
    ot__free(p->wildcards);
    *p = (ot__patterns){0};
}

// The place of a whole name among the items, NULL: it is not there.
static const char *const *find_pattern(const ot__patterns *p, const char *name)
{
    return name ? ot__map_get(&p->names, name) : NULL;
}

bool ot__patterns_name(const ot__patterns *p, const char *name)
{
    return find_pattern(p, name) != NULL;
}

const char *ot__patterns_match(const ot__patterns *p, const ot_value *value)
{
    const char *const *by_name = find_pattern(p, value->name), *const *by_alias =
                                                                   find_pattern(p, value->alias);

    if (by_name || by_alias)
        return !by_alias || (by_name && by_name < by_alias) ? *by_name : *by_alias;
    for (int i = 0; i < p->n_wildcards; i++)
        if (ot__pattern_has(p->items[p->wildcards[i]], value))
            return p->items[p->wildcards[i]];
    return NULL;
}

static void add_match(ot__pattern_matches *m, const ot__candidate *item)
{
    m->first = m->first ? m->first : item;
    m->any_parameter = m->any_parameter || item->role != OT_ROLE_CONSTANT;
}

ot_status ot__patterns_matches(const ot__patterns *p, const ot__candidates *c,
                               const ot__pattern_matches **out)
{
    ot__pattern_matches *matches =
        ot__arena_alloc(c->graph->model->arena, ((size_t)p->n + 1) * sizeof *matches);

    *out = matches;
    OT_TRY(ot__made(matches));
    for (int i = 0; i < c->n; i++) {
        const ot__candidate *item = &c->items[i];
        const char *const *by_name = find_pattern(p, item->value->name);
        const char *const *by_alias = find_pattern(p, item->value->alias);

        if (by_name)
            add_match(&matches[by_name - p->items], item);
        if (by_alias)
            add_match(&matches[by_alias - p->items], item);
        for (int k = 0; k < p->n_wildcards; k++)
            if (ot__pattern_has(p->items[p->wildcards[k]], item->value))
                add_match(&matches[p->wildcards[k]], item);
    }
    for (int i = 0; i < p->n; i++) // of a name that stands there twice
        if (find_pattern(p, p->items[i]))
            matches[i] = matches[find_pattern(p, p->items[i]) - p->items];
    return OT_OK;
}
