// SPDX-License-Identifier: Apache-2.0
// Where the heads of attention lie in what it reads and makes: batches, heads and positions as
// strides.
#include <stdlib.h>
#include <string.h>

#include "passes/attention.h"

// The view says where what comes last lies in what the product makes; wanted is where the axes of
// that lie in what comes last, which is dense.
static void turn_view(ot__view *view, const ot_shape *made)
{
    int64_t from[OT_VIEW_ATOMS], dense = 1; // strides in what the product makes
    ot__view turned = *view;

    turned.n = 0;
    turned.shape = *made;
    for (int k = view->n - 1; k >= 0; k--) {
        const ot__atom *atom = &view->atoms[k];
        int64_t inner = 1;
        int axis = made->ndim - 1, at = turned.n++;

        for (; axis > 0 && atom->stride >= inner * made->dim[axis]; axis--)
            inner *= made->dim[axis];
        for (; at > 0 && from[at - 1] < atom->stride; at--) {
            from[at] = from[at - 1];
            turned.atoms[at] = turned.atoms[at - 1];
        }
        from[at] = atom->stride;
        turned.atoms[at] = (ot__atom){atom->size, dense, axis};
        dense *= atom->size;
    }
    *view = turned;
}

// ---- batches and heads ----

// The axes before the last two, of all views, cut into parts that all of them have.
typedef struct leading {
    int64_t size[OT_VIEW_ATOMS], stride[OT_VIEW_ATOMS][OT_ATTENTION_VIEWS];
    int n;
} leading;

static bool cut_leading(const ot__attention_match *m, leading *l)
{
    ot__atom left[OT_ATTENTION_VIEWS]; // of the atom at hand
    int at[OT_ATTENTION_VIEWS] = {0};

    l->n = 0;
    for (int v = 0; v < OT_ATTENTION_VIEWS; v++)
        left[v] = (ot__atom){.size = 1};
    for (;;) {
        int64_t size = 0;
        int n_ended = 0, n_views = 0;

        for (int v = 0; v < OT_ATTENTION_VIEWS; v++) {
            const ot__view *view = &m->views[v];

            if (!m->has_view[v])
                continue;
            n_views++;
            if (left[v].size == 1 && at[v] < view->n &&
                view->atoms[at[v]].axis < view->shape.ndim - 2)
                left[v] = view->atoms[at[v]++];
            n_ended += left[v].size == 1;
            size = size == 0 ? left[v].size : OT_MIN(size, left[v].size);
        }
        if (n_ended > 0)
            return n_ended == n_views;
        if (l->n == OT_VIEW_ATOMS)
            return false;
        l->size[l->n] = size;
        for (int v = 0; v < OT_ATTENTION_VIEWS; v++) {
            if (!m->has_view[v])
                continue;
            if (left[v].size % size != 0)
                return false;
            left[v].size /= size;
            l->stride[l->n][v] = left[v].stride * left[v].size;
        }
        l->n++;
    }
}

static bool is_one_part(const ot__attention_match *m, const leading *l, int k)
{
    for (int v = 0; v < OT_ATTENTION_VIEWS; v++)
        if (m->has_view[v] && l->stride[k - 1][v] != l->stride[k][v] * l->size[k])
            return false;
    return true;
}

static void join_leading(const ot__attention_match *m, leading *l)
{
    int kept = l->n > 0;

    for (int k = 1; k < l->n; k++) {
        if (is_one_part(m, l, k)) {
            l->size[k] *= l->size[k - 1];
            kept--;
        }
        l->size[kept] = l->size[k];
        memcpy(l->stride[kept], l->stride[k], sizeof l->stride[k]);
        kept++;
    }
    l->n = kept;
}

static bool place_heads(const ot__attention_match *m, int which, const leading *l, ot__heads *heads)
{
    ot__view view = m->views[which];

    if (!m->has_view[which])
        return true;
    ot__view_join(&view);
    *heads = (ot__heads){.offset = view.offset,
                         .batch = l->n == 2 ? l->stride[0][which] : 0,
                         .head = l->n > 0 ? l->stride[l->n - 1][which] : 0};
    return ot__view_stride(&view, view.shape.ndim - 2, &heads->position) &&
           ot__view_stride(&view, view.shape.ndim - 1, &heads->element);
}

bool ot__attention_place(ot__attention_match *m, const ot_shape *made)
{
    ot__attention *a = m->a;
    const ot_shape *q = &m->views[OT_ATTENTION_Q].shape, *k = &m->views[OT_ATTENTION_K].shape,
                   *v = &m->views[OT_ATTENTION_V].shape;
    leading l;

    turn_view(&m->views[OT_ATTENTION_Y], made);
    if (!cut_leading(m, &l))
        return false;
    join_leading(m, &l);
    if (l.n > 2)
        return false;
    a->batch = l.n == 2 ? l.size[0] : 1;
    a->n_heads = l.n > 0 ? l.size[l.n - 1] : 1;
    a->queries = q->dim[q->ndim - 2];
    a->keys = k->dim[k->ndim - 2];
    a->head_size = q->dim[q->ndim - 1];
    a->value_size = v->dim[v->ndim - 1];
    a->q_source = m->views[OT_ATTENTION_Q].source;
    a->k_source = m->views[OT_ATTENTION_K].source;
    a->v_source = m->views[OT_ATTENTION_V].source;
    return k->dim[k->ndim - 1] == a->head_size && v->dim[v->ndim - 2] == a->keys &&
           place_heads(m, OT_ATTENTION_Q, &l, &a->q) && place_heads(m, OT_ATTENTION_K, &l, &a->k) &&
           place_heads(m, OT_ATTENTION_V, &l, &a->v) && place_heads(m, OT_ATTENTION_Y, &l, &a->y) &&
           place_heads(m, OT_ATTENTION_MASK, &l, &a->mask_at);
}

// ---- one source for several ----

static void list_axes(const ot__attention *a, const ot__heads *heads, int64_t positions,
                      int64_t size, int64_t *extents, int64_t *strides)
{
    const int64_t n[] = {a->batch, a->n_heads, positions, size};
    const int64_t s[] = {heads->batch, heads->head, heads->position, heads->element};

    memcpy(extents, n, sizeof n);
    memcpy(strides, s, sizeof s);
}

// Whether two views of the same strides have no element in common: the distance between them is
// more than the axes of small strides span and leaves as much below the larger strides, of which
// each is a multiple of the least.
static bool are_disjoint(const int64_t *extents, const int64_t *strides, int64_t distance)
{
    for (int cut = 0; cut < 4; cut++) { // axes of at least the stride of this one are large
        int64_t span = 1, least = extents[cut] > 1 ? strides[cut] : INT64_MAX;
        bool nested = true;

        for (int k = 0; k < 4; k++) {
            if (extents[k] > 1 && strides[k] < least)
                span += (extents[k] - 1) * strides[k];
            else if (extents[k] > 1)
                nested = nested && strides[k] % least == 0;
        }
        if (nested && span <= distance && distance <= least - span)
            return true;
    }
    return 1 + (extents[0] - 1) * strides[0] + (extents[1] - 1) * strides[1] +
               (extents[2] - 1) * strides[2] + (extents[3] - 1) * strides[3] <=
           distance;
}

bool ot__attention_sources_differ(const ot__attention *a)
{
    const ot_value *const sources[] = {a->q_source, a->k_source, a->v_source};
    const ot__heads *const heads[] = {&a->q, &a->k, &a->v};
    const int64_t positions[] = {a->queries, a->keys, a->keys};
    const int64_t sizes[] = {a->head_size, a->head_size, a->value_size};

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++) {
            int64_t n[2][4], s[2][4];

            list_axes(a, heads[i], positions[i], sizes[i], n[0], s[0]);
            list_axes(a, heads[j], positions[j], sizes[j], n[1], s[1]);
            if (sources[i] == sources[j] &&
                (memcmp(n[0], n[1], sizeof n[0]) != 0 || memcmp(s[0], s[1], sizeof s[0]) != 0 ||
                 !are_disjoint(n[0], s[0], llabs(heads[i]->offset - heads[j]->offset))))
                return false;
        }
    return true;
}
