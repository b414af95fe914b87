// SPDX-License-Identifier: Apache-2.0
// Buckets of gradients, in the order in which the training model makes them: those of one bucket
// lie one after the other in one memory, so that a sum over the ranks takes them as they are.
#include "session/ranks.h"

// ---- the order ----

// Parameters by the names of their gradients, as accumulators add them up.
static ot_status map_gradients(const ot_session *session, ot__map *of)
{
    enum { BUFFER, VALUE }; // inputs of an accumulator
    const ot__compiled_model *program = &session->training;
    const ot_graph *g = program->model->graph;
    ot__map buffers = {0};
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < program->n_inputs; i++)
        if (program->inputs[i].role == OT_ROLE_GRADIENT)
            st = ot__made(ot__map_put(&buffers, g->inputs[i]->name, program->inputs[i].parameter));
    for (int k = 0; st == OT_OK && k < g->n_nodes; k++) {
        const ot_node *node = g->nodes[k];

        if ((node->op->flags & OT_OP_ACCUMULATE) != 0 && node->n_inputs > VALUE &&
            node->inputs[BUFFER] != NULL && node->inputs[VALUE] != NULL)
            st = ot__made(ot__map_put(of, node->inputs[VALUE]->name,
                                      ot__map_get(&buffers, node->inputs[BUFFER]->name)));
    }
    ot__map_deinit(&buffers);
    return st;
}

static void add_in_order(struct ot__ranks *ranks, ot__parameter *p)
{
    if (p == NULL || p->number < 0 || ranks->bucket_of[p->number] >= 0)
        return;
    ranks->bucket_of[p->number] = 0; // that of the buckets comes later
    ranks->parameters[ranks->n_parameters++] = p;
}

// That of the nodes that make the gradients in the training model, which all ranks have alike.
static ot_status order_gradients(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const ot_graph *g = session->training.model->graph;
    ot__map of = {0};
    ot_status st;

    ranks->parameters = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(ot__parameter *));
    ranks->bucket_of = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(int));
    ranks->offset_of = ot__alloc_zero((size_t)session->n_parameters + 1, sizeof(int64_t));
    OT_TRY(ot__made(ranks->parameters != NULL && ranks->bucket_of != NULL &&
                    ranks->offset_of != NULL));
    for (int i = 0; i < session->n_parameters; i++)
        ranks->bucket_of[i] = -1;
    st = map_gradients(session, &of);
    for (int k = 0; st == OT_OK && k < g->n_nodes; k++)
        for (int i = 0; i < g->nodes[k]->n_outputs; i++)
            if (g->nodes[k]->outputs[i] != NULL)
                add_in_order(ranks, ot__map_get(&of, g->nodes[k]->outputs[i]->name));
    ot__map_deinit(&of);
    for (int i = 0; st == OT_OK && i < session->n_parameters; i++) // that no node makes
        if (session->parameters[i]->trainable)
            add_in_order(ranks, session->parameters[i]);
    return st;
}

// ---- the buckets ----

int64_t ot__bucket_count(const ot_tensor *t)
{
    return (int64_t)(ot__align_up(t->n_bytes) / ot_dtype_size(t->dtype));
}

size_t ot__bucket_share_bytes(const struct ot__ranks *ranks, const ot__bucket *b)
{
    return (size_t)(b->starts[ranks->rank + 1] - b->starts[ranks->rank]) * ot_dtype_size(b->dtype);
}

static bool fits_into(const ot__bucket *b, const ot_tensor *t, size_t most)
{
    const size_t element = ot_dtype_size(t->dtype);

    return b->n_parameters > 0 && b->dtype == t->dtype &&
           ((size_t)b->n_elements + (size_t)ot__bucket_count(t)) * element <= most;
}

static void add_to_bucket(ot__bucket *b, ot__parameter **parameters, const ot_tensor *t)
{
    if (b->n_parameters == 0)
        b->parameters = parameters;
    b->dtype = t->dtype;
    b->n_parameters++;
    b->n_elements += ot__bucket_count(t);
}

// Bytes of a bucket. The sum of the last one is hidden by nothing, so that it shall be a small part
// of all; messages of many ranks shall stay large enough.
static size_t choose_bucket_bytes(const struct ot__ranks *ranks)
{
    enum { PER_RANK = 64 << 10, LEAST = 1 << 20, MOST = 4 << 20, PART = 16 };
    size_t all = 0;

    for (int i = 0; i < ranks->n_parameters; i++)
        all += ranks->parameters[i]->value->n_bytes;
    all = OT_MIN(OT_MAX(all / PART, (size_t)LEAST), (size_t)MOST);
    return ranks->bucket_bytes > 0 ? ranks->bucket_bytes
                                   : OT_MAX(all, (size_t)PER_RANK * (size_t)ranks->n_ranks);
}

static ot_status fill_buckets(ot_session *session)
{
    struct ot__ranks *ranks = session->ranks;
    const size_t bytes = choose_bucket_bytes(ranks);

    ranks->buckets = ot__alloc_zero((size_t)ranks->n_parameters + 1, sizeof *ranks->buckets);
    OT_TRY(ot__made(ranks->buckets != NULL));
    for (int i = 0; i < ranks->n_parameters; i++) {
        const ot_tensor *t = ranks->parameters[i]->value; // as its gradient
        int k = ranks->n_buckets - 1;

        if (k < 0 || !fits_into(&ranks->buckets[k], t, bytes))
            k = ranks->n_buckets++;
        ranks->offset_of[ranks->parameters[i]->number] = ranks->buckets[k].n_elements;
        add_to_bucket(&ranks->buckets[k], &ranks->parameters[i], t);
        ranks->bucket_of[ranks->parameters[i]->number] = k;
    }
    return OT_OK;
}

// The tensors of a bucket, one after the other in memory of the checkpoint's.
static ot_status lay_bucket(ot_checkpoint *checkpoint, const ot__bucket *b, bool are_values)
{
    void *memory;
    char *at;

    OT_TRY(
        ot__ckpt_add_block(checkpoint, (size_t)b->n_elements * ot_dtype_size(b->dtype), &memory));
    at = memory;
    for (int i = 0; i < b->n_parameters; i++) {
        ot_tensor *t = are_values ? b->parameters[i]->value : b->parameters[i]->gradient;

        ot__tensor_move(t, at);
        at += ot__align_up(t->n_bytes);
    }
    return OT_OK;
}

// One bucket after the other, so that no more than one is there twice.
static ot_status lay_buckets(ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    for (int k = 0; k < ranks->n_buckets; k++) {
        if (!ranks->cuts_gradients)
            OT_TRY(lay_bucket(session->checkpoint, &ranks->buckets[k], false));
        if (ranks->zero > 0)
            OT_TRY(lay_bucket(session->checkpoint, &ranks->buckets[k], true));
    }
    ot__ckpt_drop_blocks(session->checkpoint);
    return OT_OK;
}

// ---- running statistics ----

// Those of one element type; as slices.c lays them, each at the beginning of a line.
static void fill_statistics(ot_session *session, ot_dtype dtype)
{
    struct ot__ranks *ranks = session->ranks;
    ot__bucket *b = &ranks->statistics[ranks->n_statistics];

    *b = (ot__bucket){.dtype = dtype};
    for (int i = 0; i < session->undo.n; i++)
        if (session->undo.parameters[i]->value->dtype == dtype)
            b->n_elements += ot__bucket_count(session->undo.parameters[i]->value);
    ranks->n_statistics += b->n_elements > 0;
}

static ot_status make_sums(struct ot__ranks *ranks)
{
    for (int k = 0; k < ranks->n_statistics; k++) {
        const ot__bucket *b = &ranks->statistics[k];

        ranks->sums[k] = ot__alloc_aligned((size_t)b->n_elements * ot_dtype_size(b->dtype));
        OT_TRY(ot__made(ranks->sums[k] != NULL));
    }
    return OT_OK;
}

// ---- reductions ----

// Shares of the ranks begin where a line of the cache does.
static ot_status cut_evenly(ot__bucket *b, int n_ranks)
{
    const int64_t line = OT_ALIGNMENT / (int64_t)ot_dtype_size(b->dtype);

    b->starts = ot__alloc_zero((size_t)n_ranks + 1, sizeof *b->starts);
    OT_TRY(ot__made(b->starts != NULL));
    for (int i = 0; i < n_ranks; i++)
        b->starts[i] = b->n_elements / line * i / n_ranks * line;
    b->starts[n_ranks] = b->n_elements;
    return OT_OK;
}

static ot_status cut_buckets(struct ot__ranks *ranks)
{
    for (int k = 0; k < ranks->n_buckets; k++)
        OT_TRY(cut_evenly(&ranks->buckets[k], ranks->n_ranks));
    for (int k = 0; k < ranks->n_statistics; k++)
        OT_TRY(cut_evenly(&ranks->statistics[k], ranks->n_ranks));
    return OT_OK;
}

static ot_status make_reduction(const struct ot__ranks *ranks, ot__bucket *b, int n_slices)
{
    const ot__reduce_options options = {
        .dtype = b->dtype, .n_slices = n_slices, .starts = b->starts};

    ot__reduce_destroy(b->reduce);
    b->reduce = NULL;
    return ot__reduce_create(ranks->comm, &options, &b->reduce);
}

static ot_status make_gather(const struct ot__ranks *ranks, ot__bucket *b)
{
    const ot__reduce_options options = {
        .dtype = b->dtype, .n_slices = ranks->n_ranks, .starts = b->starts};

    return !ranks->cuts_values || b->gather != NULL
               ? OT_OK
               : ot__reduce_create(ranks->comm, &options, &b->gather);
}

// Gradients that are cut are summed in every step, to which each rank contributes once.
int ot__buckets_terms(const struct ot__ranks *ranks, int n_slices)
{
    return ranks->cuts_gradients ? ranks->n_ranks : n_slices;
}

ot_status ot__buckets_set_slices(ot_session *session, int n_slices)
{
    struct ot__ranks *ranks = session->ranks;
    const int n_terms = ot__buckets_terms(ranks, n_slices);

    ranks->n_slices = 0;
    for (int k = 0; k < ranks->n_buckets && (ranks->zero == 0 || ranks->is_cut); k++) {
        OT_TRY(make_reduction(ranks, &ranks->buckets[k], n_terms));
        OT_TRY(make_gather(ranks, &ranks->buckets[k]));
    }
    for (int k = 0; k < ranks->n_statistics; k++)
        OT_TRY(make_reduction(ranks, &ranks->statistics[k], n_slices));
    ranks->n_slices = n_slices;
    return OT_OK;
}

// ---- making and ending ----

void ot__buckets_deinit(struct ot__ranks *ranks)
{
    for (int k = 0; k < ranks->n_buckets; k++) {
        ot__reduce_destroy(ranks->buckets[k].reduce);
        ot__reduce_destroy(ranks->buckets[k].gather);
        ot__free(ranks->buckets[k].starts);
    }
    for (int k = 0; k < (int)OT_COUNT(ranks->statistics); k++) {
        ot__reduce_destroy(ranks->statistics[k].reduce);
        ot__free(ranks->statistics[k].starts);
        ot__free_aligned(ranks->sums[k]);
    }
    ot__free(ranks->first_here);
    ot__free(ranks->buckets);
    ot__free(ranks->parameters);
    ot__free(ranks->bucket_of);
    ot__free(ranks->offset_of);
    for (int k = 0; k < (int)OT_COUNT(ranks->transfers); k++)
        ot__free(ranks->transfers[k]);
}

ot_status ot__buckets_find(ot_session *session)
{
    OT_TRY(order_gradients(session));
    OT_TRY(fill_buckets(session));
    fill_statistics(session, OT_F32);
    fill_statistics(session, OT_F64);
    return cut_buckets(session->ranks);
}

ot_status ot__buckets_make(ot_session *session)
{
    OT_TRY(ot__buckets_find(session));
    OT_TRY(lay_buckets(session));
    return make_sums(session->ranks);
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
