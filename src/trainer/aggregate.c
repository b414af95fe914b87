// SPDX-License-Identifier: Apache-2.0
// One state of those that several processes have saved, each with a part of it: which files there
// must be, and what the whole has.
#include <stdlib.h>
#include <string.h>

#include "trainer/aggregate.h"

// ---- what belongs to one training ----

// Numbers of trainer_options that all processes have.
static const char *const shared_numbers[] = {OT_KEY_WORLD_SIZE, OT_KEY_ZERO_STAGE,
                                             OT_KEY_DATA_PARALLEL, OT_KEY_HORIZONTAL_PARALLEL};
enum { WORLD_SIZE, ZERO_STAGE, DATA_PARALLEL, HORIZONTAL_PARALLEL };
static const char *const shared_steps[] = {OT_KEY_OPTIMIZATION_STEP, OT_KEY_TRAIN_STEP};

typedef struct shard_head {
    const char *path;
    int64_t number[OT_COUNT(shared_numbers)];
    int is_mixed;
    const char *optimizer; // NULL: it is not said
} shard_head;

ot_status ot__shard_section(const ot_dict *state, const char *name, const ot_dict **out)
{
    ot_dict *found = NULL;

    if (ot__state_has(state, name))
        OT_TRY(ot_dict_get_dict((ot_dict *)(uintptr_t)state, name, &found));
    *out = found;
    return OT_OK;
}

static ot_status need_section(const ot_dict *state, const char *name, const ot_dict **out)
{
    OT_TRY(ot__shard_section(state, name, out));
    if (*out != NULL)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "the state has no '%s', expected one of several that belong "
                     "together",
                     name);
}

static ot_status read_sections(const ot_dict *state, ot__shard *out)
{
    const ot_dict *model;

    OT_TRY(need_section(state, OT_KEY_OPTIONS, &out->options));
    OT_TRY(need_section(state, OT_KEY_PARTITION, &out->partition));
    OT_TRY(ot__shard_section(state, OT_KEY_MODEL, &model));
    OT_TRY(ot__shard_section(model, OT_KEY_FULL_PRECISION, &out->weights));
    OT_TRY(ot__shard_section(state, OT_KEY_OPTIMIZER, &out->optimizer));
    OT_TRY(ot__shard_section(state, OT_KEY_STEPS, &out->steps));
    OT_TRY(ot__shard_section(state, OT_KEY_OWN, &out->own));
    OT_TRY(ot__shard_section(out->own, OT_KEY_AVERAGES, &out->averages));
    return ot_dict_get_int(out->options, OT_KEY_WORLD_RANK, &out->rank);
}

static ot_status read_head(const ot__shard *shard, shard_head *out)
{
    *out = (shard_head){.path = shard->path};
    for (size_t i = 0; i < OT_COUNT(shared_numbers); i++)
        OT_TRY(ot_dict_get_int(shard->options, shared_numbers[i], &out->number[i]));
    if (ot__state_has(shard->options, OT_KEY_OPTIMIZER_NAME))
        OT_TRY(ot_dict_get_string(shard->options, OT_KEY_OPTIMIZER_NAME, &out->optimizer));
    return ot_dict_get_bool(shard->options, OT_KEY_MIXED_PRECISION, &out->is_mixed);
}

static ot_status compare_heads(const shard_head *first, const shard_head *other)
{
    const char *mine = first->optimizer != NULL ? first->optimizer : "none",
               *theirs = other->optimizer != NULL ? other->optimizer : "none";

    for (size_t i = 0; i < OT_COUNT(shared_numbers); i++)
        if (first->number[i] != other->number[i])
            return ot__error(OT_ERR_INVALID, "%s is %" PRId64 ", expected %" PRId64 " as in %s",
                             shared_numbers[i], other->number[i], first->number[i], first->path);
    if (first->is_mixed != other->is_mixed)
        return ot__error(OT_ERR_INVALID, "%s is %s, expected %s as in %s", OT_KEY_MIXED_PRECISION,
                         other->is_mixed ? "true" : "false", first->is_mixed ? "true" : "false",
                         first->path);
    if (strcmp(mine, theirs) != 0)
        return ot__error(OT_ERR_INVALID, "%s is %s, expected %s as in %s", OT_KEY_OPTIMIZER_NAME,
                         theirs, mine, first->path);
    return OT_OK;
}

static ot_status check_head(const shard_head *head)
{
    const int64_t n = head->number[WORLD_SIZE], d = head->number[DATA_PARALLEL],
                  h = head->number[HORIZONTAL_PARALLEL];

    if (head->number[ZERO_STAGE] <= 0 && h <= 1)
        return ot__error(OT_ERR_INVALID,
                         "%s is %" PRId64 " and %s %" PRId64
                         ": the state is whole, expected one of several that belong together",
                         OT_KEY_ZERO_STAGE, head->number[ZERO_STAGE], OT_KEY_HORIZONTAL_PARALLEL,
                         h);
    if (n < 1 || d < 1 || h < 1 || n > INT32_MAX || d > n || h > n || d * h != n)
        return ot__error(
            OT_ERR_INVALID,
            "%s is %" PRId64 ", expected the product of %s, %" PRId64 ", and %s, %" PRId64,
            OT_KEY_WORLD_SIZE, n, OT_KEY_DATA_PARALLEL, d, OT_KEY_HORIZONTAL_PARALLEL, h);
    return OT_OK;
}

// ---- all of them, each once ----

static ot_status missing_ranks(const ot__shards *all, const ot__shard *given, int n)
{
    ot__buf text = {0};
    ot_status st;
    int n_named = 0;

    for (int r = 0; r < all->n && n_named < 8; r++) {
        bool is_there = false;

        for (int i = 0; i < n && !is_there; i++)
            is_there = given[i].rank == r;
        if (!is_there)
            ot__buf_printf(&text, "%s%d", n_named++ > 0 ? ", " : "", r);
    }
    st = ot__buf_status(&text);
    if (st == OT_OK)
        st = ot__error(OT_ERR_INVALID, "%d file%s, expected %d: there is none of rank %s", n,
                       n == 1 ? "" : "s", all->n, text.data);
    ot__buf_deinit(&text);
    return st;
}

// Files may be given in any order: the rank that each has is its place.
static ot_status place_shards(ot__shards *all, const ot__shard *given, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            if (given[i].rank == given[k].rank)
                return ot__error(OT_ERR_INVALID,
                                 "%s and %s are both of rank %" PRId64 ", expected each rank once",
                                 given[k].path, given[i].path, given[i].rank);
    for (int i = 0; i < n; i++)
        if (given[i].rank < 0 || given[i].rank >= all->n)
            return ot__error(OT_ERR_INVALID, "%s: %s is %" PRId64 ", expected 0 to %d by %s",
                             given[i].path, OT_KEY_WORLD_RANK, given[i].rank, all->n - 1,
                             OT_KEY_WORLD_SIZE);
    if (n < all->n)
        return missing_ranks(all, given, n);
    all->of_rank = ot__alloc_zero((size_t)all->n, sizeof *all->of_rank);
    OT_TRY(ot__made(all->of_rank != NULL));
    for (int i = 0; i < n; i++)
        all->of_rank[given[i].rank] = given[i];
    return OT_OK;
}

static ot_status read_shards(const ot_dict *const *states, const char *const *paths, int n,
                             ot__shard *given, ot__shards *all)
{
    shard_head first = {0}, head;

    for (int i = 0; i < n; i++) {
        ot_status st;

        given[i].path = paths[i];
        st = read_sections(states[i], &given[i]);
        OT_THEN(st, read_head(&given[i], &head));
        OT_THEN(st, i == 0 ? check_head(&head) : compare_heads(&first, &head));
        OT_TRY(ot__error_prefix(st, "%s", paths[i]));
        if (i == 0)
            first = head;
    }
    all->n = (int)first.number[WORLD_SIZE];
    all->n_columns = (int)first.number[HORIZONTAL_PARALLEL];
    all->n_replicas = (int)first.number[DATA_PARALLEL];
    all->is_zero = first.number[ZERO_STAGE] > 0;
    all->is_mixed = first.is_mixed != 0;
    return place_shards(all, given, n);
}

// ---- the order of the files ----

// ZeRO deals out the weights in the order of their names, so that what a rank has comes after all
// that lower ranks have.
typedef struct owned {
    const char *name;
    int first, last;
} owned;

static int compare_owned(const void *a, const void *b)
{
    return strcmp(((const owned *)a)->name, ((const owned *)b)->name);
}

static ot_status find_owners(const ot__shards *all, const char *name, owned *out)
{
    const ot__shard_value value = {name, ot__moment_keys[0]};
    const ot_tensor *moment;

    *out = (owned){name, -1, -1};
    for (int r = 0; r < all->n; r++) {
        OT_TRY(ot__shards_find(&all->of_rank[r], &value, &moment));
        if (moment == NULL)
            continue;
        out->last = r;
        if (out->first < 0)
            out->first = r;
    }
    return OT_OK;
}

static ot_status check_order(const ot__shards *all, const ot_dict *optimizer)
{
    const int n = ot_dict_count(optimizer);
    owned *list = ot__alloc_zero((size_t)n, sizeof *list);
    ot_status st = ot__made(list != NULL);
    int n_owned = 0;

    for (int i = 0; st == OT_OK && i < n; i++) {
        st = find_owners(all, ot_dict_name(optimizer, i), &list[n_owned]);
        n_owned += list[n_owned].first >= 0;
    }
    if (n_owned > 1)
        qsort(list, (size_t)n_owned, sizeof *list, compare_owned);
    for (int i = 1; st == OT_OK && i < n_owned; i++)
        if (list[i].first < list[i - 1].last)
            st = ot__error(OT_ERR_INVALID,
                           "%s has a part of '%s' and %s of '%s': the ranks of the files do not go "
                           "with their contents",
                           all->of_rank[list[i - 1].last].path, list[i - 1].name,
                           all->of_rank[list[i].first].path, list[i].name);
    ot__free(list);
    return st;
}

// ---- the whole ----

ot_status ot__shards_take(const ot__shards *all, const ot__shard_value *value, ot_dict *to)
{
    const bool is_average = value->state != NULL && strcmp(value->state, OT_KEY_AVERAGES) == 0;
    const char *name = value->state != NULL && !is_average ? value->state : value->name;
    ot_tensor *joined;
    ot_status st;

    if (ot__state_has(to, name))
        return OT_OK; // of an earlier file
    OT_TRY(ot__shards_join(all, value, &joined));
    st = ot_dict_take_tensor(to, name, joined);
    if (st != OT_OK)
        ot_tensor_destroy(joined);
    return st;
}

static ot_status join_model(const ot__shards *all, ot_dict *state)
{
    ot_dict *model, *full;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_MODEL, &model));
    OT_TRY(ot_dict_set_dict(model, OT_KEY_FULL_PRECISION, &full));
    for (int r = 0; r < all->n; r++)
        for (int i = 0; i < ot_dict_count(all->of_rank[r].weights); i++)
            OT_TRY(ot__shards_take(
                all, &(ot__shard_value){ot_dict_name(all->of_rank[r].weights, i), NULL}, full));
    return OT_OK;
}

static ot_status join_states(const ot__shards *all, const ot__shard *shard, const char *name,
                             ot_dict *optimizer)
{
    const ot_dict *of = NULL;
    ot_dict *to;

    OT_TRY(ot__error_prefix(ot__shard_section(shard->optimizer, name, &of), "%s", shard->path));
    OT_TRY(ot__state_has(optimizer, name) ? ot_dict_get_dict(optimizer, name, &to)
                                          : ot_dict_set_dict(optimizer, name, &to));
    for (int i = 0; i < ot_dict_count(of); i++)
        OT_TRY(ot__shards_take(all, &(ot__shard_value){name, ot_dict_name(of, i)}, to));
    return OT_OK;
}

// All have the optimizer's state, or none has.
static ot_status check_optimizers(const ot__shards *all)
{
    const ot__shard *first = &all->of_rank[0];

    for (int r = 1; r < all->n; r++)
        if ((all->of_rank[r].optimizer != NULL) != (first->optimizer != NULL))
            return ot__error(OT_ERR_INVALID, "%s: has %s '%s', %s has %s", all->of_rank[r].path,
                             first->optimizer != NULL ? "no" : "the section", OT_KEY_OPTIMIZER,
                             first->path, first->optimizer != NULL ? "it" : "none");
    return OT_OK;
}

static ot_status join_optimizer(const ot__shards *all, ot_dict *state)
{
    ot_dict *optimizer;

    OT_TRY(check_optimizers(all));
    if (all->of_rank[0].optimizer == NULL)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(state, OT_KEY_OPTIMIZER, &optimizer));
    for (int r = 0; r < all->n; r++)
        for (int i = 0; i < ot_dict_count(all->of_rank[r].optimizer); i++)
            OT_TRY(join_states(all, &all->of_rank[r], ot_dict_name(all->of_rank[r].optimizer, i),
                               optimizer));
    return all->is_zero && all->n_columns == 1 ? check_order(all, optimizer) : OT_OK;
}

static ot_status join_options(const ot__shards *all, ot_dict *state)
{
    const ot_dict *options = all->of_rank[0].options;
    const char *optimizer;
    ot_dict *to;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_OPTIONS, &to));
    OT_TRY(ot_dict_set_bool(to, OT_KEY_MIXED_PRECISION, all->is_mixed));
    OT_TRY(ot_dict_set_int(to, OT_KEY_ZERO_STAGE, 0));
    OT_TRY(ot_dict_set_int(to, OT_KEY_WORLD_RANK, 0));
    OT_TRY(ot_dict_set_int(to, OT_KEY_WORLD_SIZE, 1));
    if (ot__state_has(options, OT_KEY_OPTIMIZER_NAME)) {
        OT_TRY(ot_dict_get_string(options, OT_KEY_OPTIMIZER_NAME, &optimizer));
        OT_TRY(ot_dict_set_string(to, OT_KEY_OPTIMIZER_NAME, optimizer));
    }
    OT_TRY(ot_dict_set_int(to, OT_KEY_DATA_PARALLEL, 1));
    return ot_dict_set_int(to, OT_KEY_HORIZONTAL_PARALLEL, 1);
}

static ot_status read_step(const ot__shard *shard, const char *name, int64_t *out)
{
    *out = 0;
    if (!ot__state_has(shard->steps, name))
        return ot__error(OT_ERR_INVALID, "%s: has no '%s' in '%s', others have", shard->path, name,
                         OT_KEY_STEPS);
    return ot__error_prefix(ot_dict_get_int(shard->steps, name, out), "%s", shard->path);
}

static ot_status join_steps(const ot__shards *all, ot_dict *state)
{
    bool is_there = false;
    ot_dict *to;

    for (int r = 0; r < all->n; r++)
        is_there = is_there || all->of_rank[r].steps != NULL;
    if (!is_there)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(state, OT_KEY_STEPS, &to));
    for (size_t i = 0; i < OT_COUNT(shared_steps); i++) {
        int64_t first, other;

        OT_TRY(read_step(&all->of_rank[0], shared_steps[i], &first));
        for (int r = 1; r < all->n; r++) {
            OT_TRY(read_step(&all->of_rank[r], shared_steps[i], &other));
            if (other != first)
                return ot__error(
                    OT_ERR_INVALID, "%s: %s is %" PRId64 ", expected %" PRId64 " as in %s",
                    all->of_rank[r].path, shared_steps[i], other, first, all->of_rank[0].path);
        }
        OT_TRY(ot_dict_set_int(to, shared_steps[i], first));
    }
    return OT_OK;
}

static ot_status copy_user_dict(const ot_dict *const *states, const char *const *paths, int n,
                                ot_dict *to)
{
    const char *text;

    for (int i = 0; i < n; i++)
        if (ot__state_has(states[i], OT_KEY_USER_DICT)) {
            OT_TRY(ot__error_prefix(ot_dict_get_string(states[i], OT_KEY_USER_DICT, &text), "%s",
                                    paths[i]));
            return ot_dict_set_string(to, OT_KEY_USER_DICT, text);
        }
    return OT_OK;
}

static ot_status aggregate(const ot_dict *const *states, const char *const *paths, int n,
                           const ot__shards *all, int rank, ot_dict *out)
{
    OT_TRY(join_model(all, out));
    OT_TRY(join_optimizer(all, out));
    OT_TRY(join_options(all, out));
    OT_TRY(join_steps(all, out));
    OT_TRY(ot__shards_join_own(all, rank, out));
    return copy_user_dict(states, paths, n, out);
}

ot_status ot__state_aggregate(const ot_dict *const *states, const char *const *paths, int n,
                              int rank, ot_dict **out)
{
    ot__shard *given = ot__alloc_zero((size_t)OT_MAX(n, 1), sizeof *given);
    ot__shards all = {0};
    ot_dict *whole = NULL;
    ot_status st = ot__made(given != NULL);

    *out = NULL;
    if (st == OT_OK && n < 1)
        st = ot__error(OT_ERR_INVALID, "%d files, expected all of a state that is in several", n);
    OT_THEN(st, read_shards(states, paths, n, given, &all));
    OT_THEN(st, ot_dict_create(&whole));
    OT_THEN(st, aggregate(states, paths, n, &all, rank, whole));
    ot__free(all.of_rank);
    ot__free(given);
    return OT_HAND_OUT(st, out, whole, ot_dict_destroy);
}
