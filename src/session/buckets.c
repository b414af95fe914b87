// SPDX-License-Identifier: Apache-2.0
// Buckets of gradients, in the order in which a train step completes them: those of one bucket lie
// one after the other in one memory, so that a sum over the ranks takes them as they are.
#include "session/ranks.h"

#include <stdlib.h>
#include <string.h>

// ---- the order ----

typedef struct completed {
    int step, number; // of the plan; of the parameter
} completed;

static int compare_completed(const void *a, const void *b)
{
    const completed *x = a, *y = b;

    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->number > y->number) - (x->number < y->number);
}

// Numbers of the parameters that have gradients; returns how many.
static int list_completed(const ot_session *session, const ot__plan *plan, completed *out)
{
    const ot__compiled_model *program = &session->training;
    int n = 0;

    for (int i = 0; i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_GRADIENT)
            out[n++] =
                (completed){ot__plan_input_last(plan, i), program->inputs[i].parameter->number};
    qsort(out, (size_t)n, sizeof *out, compare_completed);
    return n;
}

// The order of rank 0, whose plan may be another than this rank's.
static ot_status agree_on_order(ot_session *session, const ot__plan *plan)
{
    struct ot__ranks *ranks = session->ranks;
    const size_t room = (size_t)session->training.n_inputs + 1;
    completed *order = ot__alloc_zero(room, sizeof *order);
    ot_status st = ot__made(order != NULL);
    int n = 0;

    ranks->parameters = ot__alloc_zero(room, sizeof(ot__parameter *));
    ranks->bucket_of = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(int));
    OT_THEN(st, ot__made(ranks->parameters != NULL && ranks->bucket_of != NULL));
    if (st == OT_OK)
        n = list_completed(session, plan, order);
    st = ot__ranks_agree(ranks->comm, st, "buckets",
                         &(ot_agree_field){"the number of gradients", (uint64_t)n}, 1);
    OT_THEN(st, ot__comm_spread(ranks->comm, OT_TAG_BROADCAST, 0, order, (size_t)n * sizeof *order,
                                "buckets"));
    for (int i = 0; st == OT_OK && i < n; i++)
        ranks->parameters[i] = session->parameters[order[i].number];
    ranks->n_parameters = st == OT_OK ? n : 0;
    ot__free(order);
    return st;
}

// ---- the buckets ----

// Elements that a tensor takes in a bucket.
static int64_t padded_count(const ot_tensor *t)
{
    return (int64_t)(ot__align_up(t->n_bytes) / ot_dtype_size(t->dtype));
}

static bool fits_into(const ot__bucket *b, const ot_tensor *t, size_t most)
{
    const size_t element = ot_dtype_size(t->dtype);

    return b->n_parameters > 0 && b->dtype == t->dtype &&
           ((size_t)b->n_elements + (size_t)padded_count(t)) * element <= most;
}

static void add_to_bucket(ot__bucket *b, ot__parameter **parameters, const ot_tensor *t)
{
    if (b->n_parameters == 0)
        b->parameters = parameters;
    b->dtype = t->dtype;
    b->n_parameters++;
    b->n_elements += padded_count(t);
}

static ot_status fill_buckets(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    ranks->buckets = ot__alloc_zero((size_t)ranks->n_parameters + 1, sizeof *ranks->buckets);
    OT_TRY(ot__made(ranks->buckets != NULL));
    for (int i = 0; i < session->n_parameters; i++)
        ranks->bucket_of[i] = -1;
    for (int i = 0; i < ranks->n_parameters; i++) {
        const ot_tensor *t = ranks->parameters[i]->gradient;
        int k = ranks->n_buckets - 1;

        if (k < 0 || !fits_into(&ranks->buckets[k], t, ranks->bucket_bytes))
            k = ranks->n_buckets++;
        add_to_bucket(&ranks->buckets[k], &ranks->parameters[i], t);
        ranks->bucket_of[ranks->parameters[i]->number] = k;
    }
    return OT_OK;
}

// One bucket after the other, so that no more than one is there twice.
static ot_status lay_buckets(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    for (int k = 0; k < ranks->n_buckets; k++) {
        const ot__bucket *b = &ranks->buckets[k];
        const size_t n_bytes = (size_t)b->n_elements * ot_dtype_size(b->dtype);
        void *memory;
        char *at;

        OT_TRY(ot__ckpt_add_block(session->checkpoint, n_bytes, &memory));
        at = memory;
        for (int i = 0; i < b->n_parameters; i++) {
            ot_tensor *t = b->parameters[i]->gradient;

            ot__tensor_move(t, at);
            at += ot__align_up(t->n_bytes);
        }
    }
    ot__ckpt_drop_blocks(session->checkpoint);
    return OT_OK;
}

// ---- running statistics ----

static ot_status add_statistic(struct ot__ranks *ranks, ot__parameter *p)
{
    int k = 0;

    if (p->value->dtype != OT_F32 && p->value->dtype != OT_F64)
        return OT_OK; // counts of batches, which all ranks have alike
    while (k < ranks->n_statistics && ranks->statistics[k].dtype != p->value->dtype)
        k++;
    ranks->n_statistics = OT_MAX(ranks->n_statistics, k + 1);
    ranks->statistics[k].dtype = p->value->dtype;
    ranks->statistics[k].n_elements += ot_tensor_count(p->value);
    return OT_OK;
}

static ot_status fill_statistics(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;

    for (int i = 0; i < session->undo.n; i++)
        OT_TRY(add_statistic(ranks, session->undo.parameters[i]));
    for (int k = 0; k < ranks->n_statistics; k++) {
        const ot__bucket *b = &ranks->statistics[k];

        ranks->sums[k] = ot__alloc_aligned((size_t)b->n_elements * ot_dtype_size(b->dtype));
        OT_TRY(ot__made(ranks->sums[k] != NULL));
    }
    return OT_OK;
}

// ---- reductions ----

// Shares of the ranks begin where a line of the cache does.
static void cut_evenly(const ot__bucket *b, int n_ranks, int64_t *starts)
{
    const int64_t line = OT_ALIGNMENT / (int64_t)ot_dtype_size(b->dtype);

    for (int i = 0; i < n_ranks; i++)
        starts[i] = b->n_elements / line * i / n_ranks * line;
    starts[n_ranks] = b->n_elements;
}

static ot_status make_reductions(struct ot__ranks *ranks, ot__bucket *buckets, int n)
{
    const int n_ranks = ot_comm_world_size(ranks->comm);
    int64_t *starts = ot__alloc_zero((size_t)n_ranks + 1, sizeof *starts);
    ot_status st = ot__ranks_agree(ranks->comm, ot__made(starts != NULL), "buckets", NULL, 0);

    for (int k = 0; st == OT_OK && k < n; k++) {
        ot__reduce_options options = {
            .dtype = buckets[k].dtype, .n_slices = n_ranks, .starts = starts};

        cut_evenly(&buckets[k], n_ranks, starts);
        st = ot__reduce_create(ranks->comm, &options, &buckets[k].reduce);
    }
    ot__free(starts);
    return st;
}

// ---- making and ending ----

void ot__buckets_deinit(struct ot__ranks *ranks)
{
    for (int k = 0; k < ranks->n_buckets; k++)
        ot__reduce_destroy(ranks->buckets[k].reduce);
    for (int k = 0; k < (int)OT_COUNT(ranks->statistics); k++) {
        ot__reduce_destroy(ranks->statistics[k].reduce);
        ot__free_aligned(ranks->sums[k]);
        ranks->statistics[k] = (ot__bucket){0};
        ranks->sums[k] = NULL;
    }
    ot__free(ranks->buckets);
    ot__free(ranks->parameters);
    ot__free(ranks->bucket_of);
    ranks->buckets = NULL;
    ranks->parameters = NULL;
    ranks->bucket_of = NULL;
    ranks->n_buckets = ranks->n_parameters = ranks->n_statistics = 0;
}

ot_status ot__buckets_make(ot_session *session, const ot__plan *plan)
{
    struct ot__ranks *ranks = session->ranks;
    ot_status st = agree_on_order(session, plan);

    if (st == OT_OK) {
        st = fill_buckets(session);
        OT_THEN(st, lay_buckets(session));
        OT_THEN(st, fill_statistics(session));
        st = ot__ranks_agree(ranks->comm, st, "buckets", NULL, 0);
    }
    OT_THEN(st, make_reductions(ranks, ranks->buckets, ranks->n_buckets));
    OT_THEN(st, make_reductions(ranks, ranks->statistics, ranks->n_statistics));
    if (st != OT_OK)
        ot__buckets_deinit(ranks);
    return st;
}

int *ot__buckets_of_inputs(const ot_session *session, int n_inputs)
{
    const ot__compiled_model *program = &session->training;
    int *out = ot__alloc_zero((size_t)n_inputs + 1, sizeof *out);

    for (int i = 0; out != NULL && i < n_inputs; i++) {
        const ot__input *input = i < program->n_inputs ? &program->inputs[i] : NULL;

        out[i] = input != NULL && input->role == OT_ROLE_GRADIENT
                     ? session->ranks->bucket_of[input->parameter->number]
                     : -1;
    }
    return out;
}
