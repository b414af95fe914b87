// SPDX-License-Identifier: Apache-2.0
// An update by slices of its micro-batches: each slice is run for all of them before the next one.
// The gradients of slices are summed in the order of a tree over their numbers, so that the sums
// are the same bits whoever computes which of them. While a slice runs, its gradients are those of
// the parameters; sums over slices before it wait in sets of their own.
#include <math.h>
#include <string.h>

#include "session/ranks.h"

// ---- memory ----

static bool is_node(int n_slices, int first, int last)
{
    ot__tree_node nodes[OT_TREE_COVER_MAX];

    return ot__tree_cover(n_slices, first, last, nodes) == 1;
}

// How many of the waiting sums, from the last one on, become one with [first, last), which comes
// after them.
static int count_joined(const ot__slices *s, const ot__tree_node *waiting, int n_waiting, int last)
{
    int n = 0;

    while (n < n_waiting && is_node(s->count, waiting[n_waiting - 1 - n].first, last))
        n++;
    return n;
}

// The most sums that wait at a time.
static int count_waiting(const ot__slices *s)
{
    ot__tree_node waiting[OT_TREE_COVER_MAX];
    int n = 0, most = 0;

    for (int slice = s->first; slice < s->last - 1; slice++) {
        const int joined = count_joined(s, waiting, n, slice + 1);
        const int first = joined > 0 ? waiting[n - joined].first : slice;

        n -= joined;
        waiting[n++] = (ot__tree_node){first, slice + 1};
        most = OT_MAX(most, n);
    }
    return most;
}

// In sums that wait.
static bool keeps_gradient(const ot_session *session, const ot__parameter *p)
{
    return p->trainable && p->gradient != NULL && !ot__ranks_cut_gradients(session);
}

// Bytes of a set, and where in its memory things lie: gradients each aligned, then statistics.
static size_t lay_set(const ot_session *session, ot__gradient_set *set)
{
    const ot__undo *undo = &session->undo;
    const struct ot__ranks *ranks = session->ranks;
    const int n = ranks != NULL ? ranks->n_parameters : session->n_parameters;
    static const ot_dtype types[] = {OT_F32, OT_F64};
    size_t at = 0;

    for (int i = 0; i < n; i++) { // those of a bucket one after the other
        const ot__parameter *p = ranks != NULL ? ranks->parameters[i] : session->parameters[i];

        if (!keeps_gradient(session, p))
            continue;
        if (set != NULL)
            set->gradients[p->number] = set->memory + at;
        at += ot__align_up(p->gradient->n_bytes);
    }
    for (int i = 0; i < (int)OT_COUNT(types) * undo->n; i++) { // one type after the other
        const ot_tensor *value = undo->parameters[i % undo->n]->value;

        if (value->dtype != types[i / undo->n])
            continue;
        if (set != NULL)
            set->statistics[i % undo->n] = set->memory + at;
        at += ot__align_up(value->n_bytes);
    }
    return at;
}

static ot_status make_set(const ot_session *session, ot__gradient_set *set)
{
    set->gradients = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(void *));
    set->statistics = ot__alloc_zero((size_t)session->undo.n + 1, sizeof(void *));
    set->memory = ot__alloc_aligned(OT_MAX(lay_set(session, NULL), (size_t)1));
    OT_TRY(ot__made(set->gradients != NULL && set->statistics != NULL && set->memory != NULL));
    (void)lay_set(session, set);
    return OT_OK;
}

void ot__slices_deinit(ot_session *session)
{
    ot__slices *s = &session->slices;

    for (int k = 0; k < s->n_sets; k++) {
        ot__free_aligned(s->sets[k].memory);
        ot__free(s->sets[k].gradients);
        ot__free(s->sets[k].statistics);
    }
    ot__free(s->sets);
    *s = (ot__slices){.count = 1};
}

size_t ot__slices_bytes(const ot_session *session)
{
    const ot__slices *s = &session->slices;

    return s->count > 1 ? lay_set(session, NULL) * (size_t)count_waiting(s) : 0;
}

// ---- how many ----

static ot_status check_summable(const ot_session *session)
{
    OT_TRY(ot__session_check_values(session));
    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        if ((p->trainable || p->is_undone) && p->value->dtype != OT_F32 &&
            p->value->dtype != OT_F64)
            return ot__error(OT_ERR_UNSUPPORTED,
                             "parameter '%s' is %s: only f32 and f64 are summed over slices",
                             p->name, ot_dtype_name(p->value->dtype));
    }
    return OT_OK;
}

static ot_status make_sets(ot_session *session)
{
    ot__slices *s = &session->slices;
    const int n = count_waiting(s);
    ot__plan_options ignored;

    s->sets = ot__alloc_zero((size_t)n + 1, sizeof *s->sets);
    OT_TRY(ot__made(s->sets != NULL));
    while (s->n_sets < n)
        OT_TRY(make_set(session, &s->sets[s->n_sets++]));
    return ot__plan_budget(session, 0, &ignored); // what plans are granted is less from now on
}

ot_status ot__session_set_slices(ot_session *session, int n_slices, int first, int last)
{
    const int n_ranks = session->ranks != NULL ? session->ranks->n_ranks : 1;
    ot_status st;

    ot__slices_deinit(session);
    if (session->syncs_norms && n_slices > n_ranks)
        return ot__error(OT_ERR_INVALID,
                         "slices: %d, expected %d, one for each process: batch normalisations take "
                         "the statistics of all together (sync_batch_norm)",
                         n_slices, n_ranks);
    if (n_slices <= 1)
        return OT_OK;
    OT_TRY(check_summable(session));
    OT_TRY(ot__session_keep_gradients(session));
    session->slices.count = n_slices;
    session->slices.first = first;
    session->slices.last = last;
    st = make_sets(session);
    if (st != OT_OK)
        ot__slices_deinit(session);
    return st;
}

// ---- one after the other ----

bool ot__session_has_slices_before(const ot_session *session)
{
    return session->slices.is_under_way && session->slices.n_run > 0;
}

void ot__session_begin_slice(ot_session *session, int slice)
{
    ot__slices *s = &session->slices;

    if (s->count <= 1)
        return;
    if (s->is_under_way) {
        ot__undo_rewind(session);
        session->overwrite_gradients = !ot__ranks_cut_gradients(session);
    } else {
        session->overwrite_gradients = true;
        ot__packing_enter(session);
        ot__undo_keep_first(session);
        s->is_under_way = true;
        s->n_run = s->n_waiting = 0;
        if (session->ranks != NULL)
            session->ranks->is_reduced = session->ranks->is_mean = false;
    }
    s->present = slice;
    s->weight = 1;
    s->has_weights = s->has_steps = s->has_rows = s->is_ghost = false;
}

ot_status ot__session_weigh(ot_session *session, double weight)
{
    ot__slices *s = &session->slices;
    const double before = s->weight;

    if (!s->is_under_way)
        return OT_OK;
    s->weight = weight;
    s->has_weights = fabs(weight - 1) > 0;
    s->is_ghost = false;
    if (!s->has_steps || ot__ranks_cut_gradients(session) || !(fabs(weight - before) > 0))
        return OT_OK;
    return ot__session_scale_parameter_gradients(session, before / weight);
}

// Beside gradients of the same slice, which are brought to its weight, those of a ghost are too
// small to count in any of their digits.
ot_status ot__session_weigh_ghost(ot_session *session)
{
    const double nothing = 0x1p-64;

    OT_TRY(ot__session_weigh(session, nothing));
    session->slices.is_ghost = true;
    return OT_OK;
}

// ---- sums ----

typedef struct joining {
    ot_dtype dtype;
    const ot__tree_add *adds;
    int n_parts;
    void *parts[OT_TREE_COVER_MAX + 1], *out;
} joining;

static void join_range(void *context, int64_t first, int64_t last)
{
    const joining *j = context;
    const size_t at = (size_t)first * ot_dtype_size(j->dtype);
    void *parts[OT_TREE_COVER_MAX + 1];

    for (int i = 0; i < j->n_parts; i++)
        parts[i] = (char *)j->parts[i] + at;
    ot__tree_sum(j->dtype, j->adds, j->n_parts - 1, parts, (char *)j->out + at, last - first);
}

static void join_parts(const ot_session *session, joining *j, ot_dtype dtype, int64_t count,
                       bool is_to_last)
{
    j->dtype = dtype;
    j->out = j->parts[is_to_last ? j->n_parts - 1 : 0];
    ot__session_for(session, count, join_range, j);
}

// Of `n` sets and the present slice.
static joining begin_joining(ot__tree_add *adds, int n)
{
    for (int i = 0; i < n; i++) // from the last one on
        adds[i] = (ot__tree_add){n - 1 - i, n - i};
    return (joining){.adds = adds, .n_parts = n + 1};
}

static void join_gradient(const ot_session *session, joining *j, const ot__parameter *p, int first,
                          bool is_to_last)
{
    const int n = j->n_parts - 1;

    for (int k = 0; k < n; k++)
        j->parts[k] = session->slices.sets[first + k].gradients[p->number];
    j->parts[n] = p->gradient->data;
    join_parts(session, j, p->gradient->dtype, ot_tensor_count(p->gradient), is_to_last);
}

// The gradient is in a sum over the ranks that has begun.
static bool is_joined(const ot_session *session, const ot__parameter *p)
{
    const struct ot__ranks *ranks = session->ranks;
    const int bucket = ranks != NULL ? ranks->bucket_of[p->number] : -1;

    return bucket >= 0 && ranks->buckets[bucket].is_started;
}

// The sets from `first` on and the present slice become one, in the place of that slice or of set
// `first`.
static void join_sets(ot_session *session, int first, bool is_to_last)
{
    const ot__slices *s = &session->slices;
    const int n = s->n_waiting - first;
    ot__tree_add adds[OT_TREE_COVER_MAX];
    joining j = begin_joining(adds, n);

    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        if (keeps_gradient(session, p) && !is_joined(session, p))
            join_gradient(session, &j, p, first, is_to_last);
    }
    for (int i = 0; i < session->undo.n; i++) {
        const ot_tensor *value = session->undo.parameters[i]->value;

        for (int k = 0; k < n; k++)
            j.parts[k] = s->sets[first + k].statistics[i];
        j.parts[n] = value->data;
        join_parts(session, &j, value->dtype, ot_tensor_count(value), is_to_last);
    }
}

static void keep(void *to, const ot_tensor *from)
{
    if (from->n_bytes > 0)
        memcpy(to, from->data, from->n_bytes);
}

// The present slice waits as set `k`.
static void fill_set(ot_session *session, int k)
{
    const ot__gradient_set *set = &session->slices.sets[k];

    for (int i = 0; i < session->n_parameters; i++)
        if (keeps_gradient(session, session->parameters[i]))
            keep(set->gradients[i], session->parameters[i]->gradient);
    for (int i = 0; i < session->undo.n; i++)
        keep(set->statistics[i], session->undo.parameters[i]->value);
}

// What a slice without rows adds.
static void make_zero(ot_session *session)
{
    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];
        const ot_tensor *t = keeps_gradient(session, p) ? p->gradient
                             : p->is_undone             ? p->value
                                                        : NULL;

        if (t != NULL && t->n_bytes > 0)
            memset(t->data, 0, t->n_bytes);
    }
}

void ot__slices_divide_statistics(ot_session *session, int64_t n)
{
    for (int i = 0; i < session->undo.n; i++) {
        const ot_tensor *value = session->undo.parameters[i]->value;
        const int64_t count = ot_tensor_count(value);

        for (int64_t k = 0; k < count; k++)
            if (value->dtype == OT_F32)
                ((float *)value->data)[k] /= (float)n;
            else
                ((double *)value->data)[k] /= (double)n;
    }
}

// The first set of those that become one with the present slice.
static int first_joined(const ot__slices *s)
{
    ot__tree_node waiting[OT_TREE_COVER_MAX];

    for (int i = 0; i < s->n_waiting; i++)
        waiting[i] = s->sets[i].node;
    return s->n_waiting - count_joined(s, waiting, s->n_waiting, s->present + 1);
}

int ot__slices_join_early(ot_session *session, ot__parameter *const *parameters, int n)
{
    const int first = first_joined(&session->slices);
    ot__tree_add adds[OT_TREE_COVER_MAX];
    joining j = begin_joining(adds, session->slices.n_waiting - first);

    for (int i = 0; i < n && j.n_parts > 1; i++)
        join_gradient(session, &j, parameters[i], first, true);
    return first;
}

static void add_slice(ot_session *session)
{
    ot__slices *s = &session->slices;
    const bool is_last = s->present == s->last - 1;
    const int first = first_joined(s);
    const int begin = first < s->n_waiting ? s->sets[first].node.first : s->present;

    if (first < s->n_waiting)
        join_sets(session, first, is_last);
    else if (!is_last)
        fill_set(session, first);
    s->n_waiting = first;
    if (!is_last)
        s->sets[s->n_waiting++].node = (ot__tree_node){begin, s->present + 1};
}

ot_status ot__session_end_slice(ot_session *session)
{
    ot__slices *s = &session->slices;

    if (s->count <= 1)
        return OT_OK;
    ot__packing_enter(session); // sets lie as steps leave gradients
    if (!s->has_rows) {
        make_zero(session);
    } else {
        s->n_run++;
        if (s->has_weights && !ot__ranks_cut_gradients(session))
            OT_TRY(ot__session_scale_parameter_gradients(session, s->weight));
    }
    add_slice(session);
    if (s->present < s->last - 1)
        return OT_OK;
    if (session->ranks == NULL)
        ot__slices_divide_statistics(session, s->n_run);
    if (!ot__ranks_cut_gradients(session)) // else the steps have said so
        session->overwrite_gradients = false;
    return OT_OK;
}
