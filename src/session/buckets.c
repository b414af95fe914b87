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
    OT_TRY(ot__made(ranks->parameters != NULL && ranks->bucket_of != NULL));
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

// Those of one element type; as slices.c lays them, each at the beginning of a line.
static ot_status fill_statistics(ot_session *session, ot_dtype dtype)
{
    struct ot__ranks *ranks = session->ranks;
    ot__bucket *b = &ranks->statistics[ranks->n_statistics];

    *b = (ot__bucket){.dtype = dtype};
    for (int i = 0; i < session->undo.n; i++)
        if (session->undo.parameters[i]->value->dtype == dtype)
            b->n_elements += padded_count(session->undo.parameters[i]->value);
    if (b->n_elements == 0)
        return OT_OK;
    ranks->sums[ranks->n_statistics] =
        ot__alloc_aligned((size_t)b->n_elements * ot_dtype_size(dtype));
    OT_TRY(ot__made(ranks->sums[ranks->n_statistics] != NULL));
    ranks->n_statistics++;
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

static ot_status make_reductions(struct ot__ranks *ranks, ot__bucket *buckets, int n, int n_slices)
{
    const int n_ranks = ot_comm_world_size(ranks->comm);
    int64_t *starts = ot__alloc_zero((size_t)n_ranks + 1, sizeof *starts);
    ot_status st = ot__ranks_agree(ranks->comm, ot__made(starts != NULL), "buckets", NULL, 0);

    for (int k = 0; st == OT_OK && k < n; k++) {
        ot__reduce_options options = {
            .dtype = buckets[k].dtype, .n_slices = n_slices, .starts = starts};

        cut_evenly(&buckets[k], n_ranks, starts);
        ot__reduce_destroy(buckets[k].reduce);
        st = ot__reduce_create(ranks->comm, &options, &buckets[k].reduce);
    }
    ot__free(starts);
    return st;
}

ot_status ot__buckets_set_slices(ot_session *session, int n_slices)
{
    struct ot__ranks *ranks = session->ranks;

    ranks->n_slices = 0;
    OT_TRY(make_reductions(ranks, ranks->buckets, ranks->n_buckets, n_slices));
    OT_TRY(make_reductions(ranks, ranks->statistics, ranks->n_statistics, n_slices));
    ranks->n_slices = n_slices;
    return OT_OK;
}

// ---- making and ending ----

void ot__buckets_deinit(struct ot__ranks *ranks)
{
    for (int k = 0; k < ranks->n_buckets; k++)
        ot__reduce_destroy(ranks->buckets[k].reduce);
    for (int k = 0; k < (int)OT_COUNT(ranks->statistics); k++) {
        ot__reduce_destroy(ranks->statistics[k].reduce);
        ot__free_aligned(ranks->sums[k]);
    }
    ot__free(ranks->buckets);
    ot__free(ranks->parameters);
    ot__free(ranks->bucket_of);
}

ot_status ot__buckets_make(ot_session *session)
{
    OT_TRY(order_gradients(session));
    OT_TRY(fill_buckets(session));
    OT_TRY(lay_buckets(session));
    OT_TRY(fill_statistics(session, OT_F32));
    return fill_statistics(session, OT_F64);
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
