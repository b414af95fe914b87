// SPDX-License-Identifier: Apache-2.0
// Whether all ranks are about to take the same: values that each of them has whole, and numbers.
// Where all give a state, nobody else makes them the same.
#include <string.h>

#include "session/ranks.h"
#include "session/set_shards.h"

// What a rank takes under a name, as a number that others compare with theirs.
enum {
    MARK_ANY, // nothing of it is here
    MARK_NOT_GIVEN,
    MARK_ANEW,  // not given, and begins anew
    MARK_GIVEN, // of what is cut: elements differ, as they should
    MARK_FIRST, // the first that stands for elements or numbers
};

// Of all names that the call may take, in the same order on all ranks.
typedef struct mark_list {
    const ot__pending_state *pending;
    int64_t *marks;
    int n, capacity;
    int i_tensor; // of the next one that is pending
    int i_named;  // whose name is wanted; below 0: none
    ot__buf name;
    ot_status status;
} mark_list;

static int64_t mark_of_hash(uint64_t hash)
{
    return (int64_t)(hash >> 2) + MARK_FIRST;
}

static int64_t mark_of_word(uint64_t word)
{
    return mark_of_hash(ot__id_mix_word(0, word));
}

static int64_t mark_of_pair(double first, double second)
{
    const double pair[] = {first, second};

    return mark_of_hash(ot__id_mix(0, pair, sizeof pair));
}

static int64_t mark_of_number(double number)
{
    return mark_of_pair(number, 0);
}

// Parts of a name: `b` and `c` may be NULL.
static void add_mark(mark_list *l, int64_t mark, const char *a, const char *b, const char *c)
{
    if (l->n == l->i_named) {
        ot__buf_printf(&l->name, "%s%s%s%s%s", a, b != NULL ? "." : "", b != NULL ? b : "",
                       c != NULL ? "." : "", c != NULL ? c : "");
        OT_THEN(l->status, ot__buf_status(&l->name));
    }
    OT_THEN(l->status, ot__made(ot__grow(&l->marks, &l->capacity, l->n, sizeof *l->marks)));
    if (l->status == OT_OK)
        l->marks[l->n++] = mark;
}

// ---- tensors ----

static ot_status hash_pending_values(const ot__pending_state *pending, const ot__pending_tensor *t,
                                     uint32_t *out)
{
    ot__pending_tensor whole = *t;
    ot_tensor *made;

    if (t->tensor != NULL) {
        *out = ot__crc32c(0, ot__pending_values(pending, t, t->tensor), t->to->n_bytes);
        return OT_OK;
    }
    OT_TRY(ot_tensor_create(t->to->dtype, &t->to->shape, &made));
    whole.to = made;
    ot__pending_copy_parts(pending, &whole);
    *out = ot__crc32c(0, made->data, made->n_bytes);
    ot_tensor_destroy(made);
    return OT_OK;
}

// The tensor that is pending under a name; NULL: none is.
static const ot__pending_tensor *next_pending(mark_list *l, const ot__state_name *name,
                                              const ot_tensor *to)
{
    const ot__pending_tensor *t =
        l->i_tensor < l->pending->n_tensors ? &l->pending->tensors[l->i_tensor] : NULL;

    if (t == NULL || t->name != name || t->to != to)
        return NULL;
    l->i_tensor++;
    return t;
}

static int64_t mark_of_tensor(mark_list *l, const ot__pending_tensor *t)
{
    uint32_t hash = 0;

    if (t == NULL)
        return MARK_NOT_GIVEN;
    if (t->tensor == NULL && t->shards == NULL)
        return MARK_ANEW;
    if (ot__sharding_cuts(t->sharding))
        return MARK_GIVEN;
    OT_THEN(l->status, hash_pending_values(l->pending, t, &hash));
    return mark_of_word(hash);
}

static void mark_tensor(mark_list *l, const ot__state_name *name, const ot_tensor *to,
                        const ot_sharding *sharding, const char *slot)
{
    const ot__pending_tensor *t = next_pending(l, name, to);
    const bool is_elsewhere = ot__sharding_cuts(sharding) && ot_tensor_count(to) == 0;
    const int64_t mark = is_elsewhere ? MARK_ANY : mark_of_tensor(l, t);

    if (slot == NULL)
        add_mark(l, mark, name->name, NULL, NULL);
    else
        add_mark(l, mark, OT_KEY_STATE, name->name, slot);
}

// ---- sections ----

// In the order in which they become pending.
static void mark_model(mark_list *l)
{
    const ot__state_call *call = l->pending->call;

    for (int i = 0; i < call->n_names; i++) {
        const ot__parameter *p = call->names[i].parameter;

        mark_tensor(l, &call->names[i], p->value, p->value_sharding, NULL);
    }
}

static void mark_bytes(mark_list *l, ot_dict *state)
{
    uint64_t hash = 0;
    ot_dict *model = NULL;
    bool is_given = false;

    if (ot__dict_has(state, OT_KEY_SECTION_MODEL))
        OT_THEN(l->status, ot_dict_get_dict(state, OT_KEY_SECTION_MODEL, &model));
    for (const ot__named_bytes *b = l->pending->bytes; b != NULL; b = b->next) {
        if (!ot__dict_has(model, b->name))
            continue;
        is_given = true;
        hash = ot__id_mix(hash, b->name, strlen(b->name) + 1);
        hash = ot__id_mix_word(hash, b->n_bytes);
        hash = b->n_bytes > 0 ? ot__id_mix(hash, b->data, b->n_bytes) : hash;
    }
    add_mark(l, is_given ? mark_of_hash(hash) : MARK_NOT_GIVEN, "byte strings", NULL, NULL);
}

static void mark_slots(mark_list *l)
{
    const ot__pending_state *pending = l->pending;
    const ot__optimizer *o = &pending->call->session->optimizer;

    for (int i = 0; i < o->n_parameters; i++) {
        const ot__parameter *p = o->parameters[i];
        const ot__state_name *name = ot__state_name_of(pending->call, p);

        for (int k = 0; k < OT_SLOTS && name != NULL; k++)
            if (ot__slot_key(o, k) != NULL)
                mark_tensor(l, name, p->slots[k], p->state_sharding, ot__slot_key(o, k));
        if (name != NULL && ot__counts_steps(o))
            add_mark(l,
                     pending->updates == NULL ? MARK_NOT_GIVEN
                                              : mark_of_word((uint64_t)pending->updates[i]),
                     OT_KEY_STATE, name->name, OT_KEY_SLOT_STEP);
    }
}

static void mark_group(mark_list *l, const ot__optimizer *o, int group)
{
    const ot__pending_groups *groups = &l->pending->groups;
    ot__hyper_row row;
    char name[32], number[16];

    snprintf(number, sizeof number, "%d", group);
    snprintf(name, sizeof name, OT_KEY_GROUPS ".%d", group);
    add_mark(l, groups->has_rates ? mark_of_number(groups->rates[group]) : MARK_NOT_GIVEN, name,
             OT_KEY_LR, NULL);
    for (int i = 0; ot__hyper_row_at(o->rule->op, i, &row); i++) {
        const double value = ot__hyper_of_group(o->rule, row.attr, group);
        const double second =
            row.second != NULL ? ot__hyper_of_group(o->rule, row.second, group) : 0;

        add_mark(l, groups->is_given ? mark_of_pair(value, second) : MARK_NOT_GIVEN, name, row.key,
                 NULL);
    }
    add_mark(l,
             groups->custom != NULL && ot__dict_has(groups->custom, number)
                 ? mark_of_hash(ot__dict_hash(groups->custom, number))
                 : MARK_NOT_GIVEN,
             name, NULL, NULL);
}

static void mark_optimizer(mark_list *l)
{
    const ot__pending_groups *groups = &l->pending->groups;
    const ot__optimizer *o = groups->optimizer.program.model != NULL
                                 ? &groups->optimizer
                                 : &l->pending->call->session->optimizer;

    mark_slots(l);
    for (int g = 0; g < o->n_groups; g++)
        mark_group(l, o, g);
}

static int64_t mark_of_schedule(mark_list *l, const ot__resume *r)
{
    ot__buf text = {0};
    uint64_t hash = 0;

    if (!r->has_schedule)
        return MARK_NOT_GIVEN;
    ot__schedule_text(&r->schedule, &text);
    OT_THEN(l->status, ot__buf_status(&text));
    if (l->status == OT_OK)
        hash = ot__id_mix(0, text.data, text.length);
    ot__buf_deinit(&text);
    return mark_of_hash(hash);
}

static int64_t mark_of_properties(mark_list *l)
{
    ot_dict *own = NULL;
    uint64_t hash = 0;

    if (l->pending->properties == NULL)
        return MARK_NOT_GIVEN;
    OT_THEN(l->status, ot_dict_create(&own));
    OT_THEN(l->status, ot__properties_write(l->pending->properties, own));
    if (ot__dict_has(own, OT_KEY_TRAIN_PROPERTIES))
        hash = ot__dict_hash(own, OT_KEY_TRAIN_PROPERTIES);
    ot_dict_destroy(own);
    return mark_of_hash(hash);
}

static void mark_own(mark_list *l)
{
    const ot__resume *r = &l->pending->resume;
    const ot__state_owner *owner = l->pending->call->owner;
    const char *name;
    double number;

    add_mark(l, r->has_seed ? mark_of_word(r->seed) : MARK_NOT_GIVEN, OT_KEY_TRAIN_SEED, NULL,
             NULL);
    add_mark(l, r->has_counter ? mark_of_word(r->counter) : MARK_NOT_GIVEN, OT_KEY_TRAIN_COUNTER,
             NULL, NULL);
    add_mark(l, r->has_rate ? mark_of_number(r->learning_rate) : MARK_NOT_GIVEN, OT_KEY_TRAIN_RATE,
             NULL, NULL);
    add_mark(l, mark_of_schedule(l, r), OT_KEY_TRAIN_SCHEDULE, NULL, NULL);
    add_mark(l, l->pending->step >= 0 ? mark_of_word((uint64_t)l->pending->step) : MARK_NOT_GIVEN,
             OT_KEY_SLOT_STEP, NULL, NULL);
    add_mark(l, mark_of_properties(l), OT_KEY_TRAIN_PROPERTIES, NULL, NULL);
    for (int i = 0; owner != NULL && owner->number(owner->context, i, &name, &number); i++)
        add_mark(l, mark_of_number(number), name, NULL, NULL);
}

static ot_status list_marks(mark_list *l, ot_dict *state)
{
    const ot__state_call *call = l->pending->call;

    if ((call->sections & OT_STATE_MODEL) != 0) {
        mark_model(l);
        mark_bytes(l, state);
    }
    if ((call->sections & OT_STATE_OPTIMIZER) != 0 && ot__session_has_optimizer(call->session))
        mark_optimizer(l);
    if ((call->sections & OT_STATE_OWN) != 0)
        mark_own(l);
    return l->status;
}

// ---- which of them differ ----

// The first mark that is not the same on all ranks that have one; below 0: none. `low`, `high`: the
// least and the largest there.
static ot_status find_difference(const ot__state_call *call, const mark_list *l, int *out,
                                 int64_t *low, int64_t *high)
{
    const int n = l->n;
    int64_t *most = ot__alloc_zero((size_t)n * 2 + 1, sizeof *most);
    ot_status st = ot__state_agree(call, ot__made(most != NULL));

    for (int i = 0; i < n && st == OT_OK; i++) {
        most[i] = l->marks[i];
        most[n + i] = l->marks[i] == MARK_ANY ? -INT64_MAX : -l->marks[i];
    }
    OT_THEN(st, ot_comm_all_reduce(call->options.comm, OT_COMM_MAX, OT_I64, most, 2 * (int64_t)n));
    *out = -1;
    for (int i = n - 1; i >= 0 && st == OT_OK; i--)
        if (most[i] != MARK_ANY && most[i] != -most[n + i]) {
            *out = i;
            *low = -most[n + i];
            *high = most[i];
        }
    ot__free(most);
    return st;
}

static ot_status tell_difference(const ot__state_call *call, const mark_list *l, int64_t low,
                                 int64_t high)
{
    ot_comm *comm = call->options.comm;
    const int64_t own = l->marks[l->i_named], mine = ot_comm_world_size(comm) - ot_comm_rank(comm);
    int64_t first[2] = {own == low ? mine : 0, own == high ? mine : 0};
    int ranks[2];

    OT_TRY(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_I64, first, 2));
    for (int i = 0; i < 2; i++)
        ranks[i] = ot__comm_member(comm, ot_comm_world_size(comm) - (int)first[i]);
    if (low == MARK_NOT_GIVEN || low == MARK_ANEW)
        return ot__error(OT_ERR_MISMATCH,
                         "ranks %d and %d differ in '%s' of the state, which rank %d does not give",
                         OT_MIN(ranks[0], ranks[1]), OT_MAX(ranks[0], ranks[1]), l->name.data,
                         ranks[0]);
    return ot__error(OT_ERR_MISMATCH,
                     "ranks %d and %d differ in '%s' of the state, which is the same on all ranks",
                     OT_MIN(ranks[0], ranks[1]), OT_MAX(ranks[0], ranks[1]), l->name.data);
}

static ot_status name_difference(const mark_list *l, ot_dict *state)
{
    const ot__state_call *call = l->pending->call;
    mark_list again = {.pending = l->pending};
    int64_t low = 0, high = 0;
    ot_status st = find_difference(call, l, &again.i_named, &low, &high);

    if (st == OT_OK && again.i_named >= 0) {
        st = ot__state_agree(call, list_marks(&again, state));
        OT_THEN(st, tell_difference(call, &again, low, high));
    }
    ot__free(again.marks);
    ot__buf_deinit(&again.name);
    return st;
}

ot_status ot__pending_agree(const ot__pending_state *pending, ot_dict *state)
{
    const ot__state_call *call = pending->call;
    mark_list l = {.pending = pending, .i_named = -1};
    ot_agree_field field = {.name = "what the optimizers keep"};
    bool differ = false;
    ot_status st;

    if (call->options.comm == NULL || call->options.scatter == OT_SCATTER_ROOT)
        return OT_OK;
    st = list_marks(&l, state);
    field.value = (uint64_t)l.n;
    st = ot__comm_agree_on(call->options.comm, st, call->what, &field, 1);
    OT_THEN(st, ot__ranks_compare(call->options.comm,
                                  ot__id_mix(0, l.marks, (size_t)l.n * sizeof *l.marks), call->what,
                                  &differ));
    if (st == OT_OK && differ)
        st = name_difference(&l, state);
    ot__free(l.marks);
    return st;
}
