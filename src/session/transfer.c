// SPDX-License-Identifier: Apache-2.0
// Steps over several ranks among which values or gradients are cut: buckets of values are gathered
// in memory of the step before their readers, and the gradients of a bucket are summed as soon as
// they are made, of which each rank keeps its share.
#include <string.h>

#include "session/ranks.h"

// ---- the lists: what happens in a step, in the order of all ranks ----

// What a graph's inputs have to do with buckets.
typedef struct bucket_inputs {
    ot__transfer_buckets buckets;
    int *of_parameter, *of_accumulator;
    int64_t *offset, *n_elements;
} bucket_inputs;

static void fill_bucket_inputs(const ot_session *session, const ot__compiled_model *program,
                               int n_inputs, bucket_inputs *in)
{
    const struct ot__ranks *ranks = session->ranks;
    const bool gathers = program == &session->eval || ranks->cuts_values;

    for (int i = 0; i < n_inputs; i++) {
        const ot__input *input = i < program->n_inputs ? &program->inputs[i] : NULL;
        const ot__parameter *p = input != NULL ? input->parameter : NULL;
        const int bucket = p != NULL && p->number >= 0 ? ranks->bucket_of[p->number] : -1;
        const bool is_value = bucket >= 0 && input->role == OT_ROLE_PARAMETER;
        const bool is_sum = bucket >= 0 && input->role == OT_ROLE_GRADIENT;

        in->of_parameter[i] = is_value && gathers ? bucket : -1;
        in->of_accumulator[i] = is_sum && ranks->cuts_gradients ? bucket : -1;
        in->offset[i] = is_value || is_sum ? ranks->offset_of[p->number] : 0;
    }
    for (int k = 0; k < ranks->n_buckets; k++)
        in->n_elements[k] = ranks->buckets[k].n_elements;
}

static void bucket_inputs_deinit(bucket_inputs *in)
{
    ot__free(in->of_parameter);
    ot__free(in->of_accumulator);
    ot__free(in->offset);
    ot__free(in->n_elements);
}

static ot_status bucket_inputs_init(const ot_session *session, const ot__compiled_model *program,
                                    int n_inputs, bucket_inputs *in)
{
    const size_t n = (size_t)n_inputs + 1;

    in->of_parameter = ot__alloc_zero(n, sizeof *in->of_parameter);
    in->of_accumulator = ot__alloc_zero(n, sizeof *in->of_accumulator);
    in->offset = ot__alloc_zero(n, sizeof *in->offset);
    in->n_elements = ot__alloc_zero((size_t)session->ranks->n_buckets + 1, sizeof *in->n_elements);
    OT_TRY(ot__made(in->of_parameter != NULL && in->of_accumulator != NULL && in->offset != NULL &&
                    in->n_elements != NULL));
    fill_bucket_inputs(session, program, n_inputs, in);
    in->buckets = (ot__transfer_buckets){.of_parameter = in->of_parameter,
                                         .of_accumulator = in->of_accumulator,
                                         .offset = in->offset,
                                         .n_elements = in->n_elements,
                                         .n_buckets = session->ranks->n_buckets,
                                         .outputs = program->user_outputs,
                                         .n_outputs = program->n_user_outputs,
                                         .sums_late = ot__sums_are_late(program)};
    return OT_OK;
}

static ot_status list_of_program(const ot_session *session, const ot__compiled_model *program,
                                 ot_mode mode)
{
    struct ot__ranks *ranks = session->ranks;
    bucket_inputs in = {0};
    ot_status st;

    if (program->model == NULL || ranks->transfers[mode] != NULL)
        return OT_OK;
    st = bucket_inputs_init(session, program, program->n_inputs, &in);
    OT_THEN(st, ot__list_transfers(program->model->graph, &in.buckets, &ranks->transfers[mode],
                                   &ranks->n_transfers[mode]));
    bucket_inputs_deinit(&in);
    return st;
}

ot_status ot__transfers_list(ot_session *session)
{
    if (!session->ranks->joins_steps)
        return OT_OK;
    OT_TRY(list_of_program(session, &session->training, OT_MODE_TRAIN));
    return session->ranks->cuts_values ? list_of_program(session, &session->eval, OT_MODE_EVAL)
                                       : OT_OK;
}

ot_status ot__transfers_list_averages(ot_session *session)
{
    return list_of_program(session, &session->eval, OT_MODE_EVAL);
}

ot_status ot__transfers_add(const ot_session *session, const ot__compiled_model *program,
                            ot_graph *graph)
{
    const ot_mode mode = program == &session->training ? OT_MODE_TRAIN : OT_MODE_EVAL;
    bucket_inputs in = {0};
    ot_status st = bucket_inputs_init(session, program, graph->n_inputs, &in);

    OT_THEN(st, ot__pass_transfer(graph, &in.buckets, session->ranks->transfers[mode],
                                  session->ranks->n_transfers[mode]));
    bucket_inputs_deinit(&in);
    return st;
}

// ---- a bucket ----

// Numbers of a share, a thread's part of them at a time.
typedef struct share_work {
    ot_dtype dtype;
    void *to;
    const void *from; // NULL: `to` is multiplied
    double factor;
} share_work;

static void add_share_range(void *context, int64_t first, int64_t last)
{
    const share_work *w = context;

    for (int64_t i = first; i < last; i++)
        if (w->dtype == OT_F32)
            ((float *)w->to)[i] += ((const float *)w->from)[i];
        else
            ((double *)w->to)[i] += ((const double *)w->from)[i];
}

static void weigh_share_range(void *context, int64_t first, int64_t last)
{
    const share_work *w = context;

    for (int64_t i = first; i < last; i++)
        if (w->dtype == OT_F32)
            ((float *)w->to)[i] *= (float)w->factor;
        else
            ((double *)w->to)[i] *= w->factor;
}

// The share of this rank in the memory of a whole bucket.
static char *own_share(const ot_session *session, const ot__bucket *b, void *buffer)
{
    return (char *)buffer + (size_t)b->starts[session->ranks->rank] * ot_dtype_size(b->dtype);
}

// What is here of the averages of a bucket; of a parameter that has none yet, of its value.
static ot_status put_averages(const ot_session *session, const ot__bucket *b, char *buffer)
{
    const struct ot__ranks *ranks = session->ranks;

    for (int i = 0; i < b->n_parameters; i++) {
        const ot__parameter *p = b->parameters[i];
        const ot_tensor *from = ot__ckpt_shown(session->checkpoint, p);
        const size_t element = ot_dtype_size(b->dtype);
        const size_t first = (size_t)ranks->first_here[p->number] * element;
        const bool is_whole = from == p->value && !ranks->cuts_values;
        ot_shape part;
        size_t n_bytes;

        OT_TRY(ot__ckpt_state_shape(session->checkpoint, p, &part));
        OT_TRY(ot__tensor_sizes(b->dtype, &part, &n_bytes));
        if (n_bytes > 0)
            memcpy(buffer + (size_t)ranks->offset_of[p->number] * element + first,
                   (const char *)from->data + (is_whole ? first : 0), n_bytes);
    }
    return OT_OK;
}

// Of values that are whole nothing is gathered but what was updated, or averages: by the reduction
// of their gradients.
static ot__reduce *gather_of(const ot__bucket *b)
{
    return b->gather != NULL ? b->gather : b->reduce;
}

static ot_status start_gather_of(const ot_session *session, const ot__bucket *b, void *buffer)
{
    void *buffers[OT_TREE_COVER_MAX] = {buffer};
    const size_t n_bytes = ot__bucket_share_bytes(session->ranks, b);

    if (session->ranks->gathers_averages)
        OT_TRY(put_averages(session, b, buffer));
    else if (n_bytes > 0)
        memcpy(own_share(session, b, buffer), b->value_share, n_bytes);
    return ot__reduce_start(gather_of(b), OT_REDUCE_GATHER, buffers);
}

// Gradients of a slice count as its rows do.
static ot_status start_scatter_of(const ot_session *session, const ot__bucket *b, void *buffer)
{
    void *buffers[OT_TREE_COVER_MAX] = {buffer};
    share_work w = {.dtype = b->dtype, .to = buffer, .factor = session->slices.weight};

    if (session->slices.is_under_way && session->slices.is_ghost)
        memset(buffer, 0, (size_t)b->n_elements * ot_dtype_size(b->dtype));
    else if (session->slices.is_under_way && session->slices.has_weights)
        ot__session_for(session, b->n_elements, weigh_share_range, &w);
    return ot__reduce_start(b->reduce, OT_REDUCE_SCATTER, buffers);
}

static ot_status end_scatter_of(const ot_session *session, const ot__bucket *b, void *buffer)
{
    const size_t n_bytes = ot__bucket_share_bytes(session->ranks, b);
    share_work w = {
        .dtype = b->dtype, .to = b->gradient_share, .from = own_share(session, b, buffer)};

    OT_TRY(ot__reduce_wait(b->reduce));
    if (!session->overwrite_gradients)
        ot__session_for(session, (int64_t)(n_bytes / ot_dtype_size(b->dtype)), add_share_range, &w);
    else if (n_bytes > 0)
        memcpy(w.to, w.from, n_bytes);
    return OT_OK;
}

ot_status ot__transfer_run(void *context, ot_transfer what, int64_t bucket, void *buffer)
{
    const ot_session *session = context;
    const ot__bucket *b = &session->ranks->buckets[bucket];

    switch (what) {
    case OT_TRANSFER_GATHER_START:
        return start_gather_of(session, b, buffer);
    case OT_TRANSFER_GATHER_WAIT:
        return ot__reduce_wait(gather_of(b));
    case OT_TRANSFER_SCATTER_START:
        return start_scatter_of(session, b, buffer);
    default:
        return end_scatter_of(session, b, buffer);
    }
}

// ---- a rank that has nothing to compute ----

// Of each kind two are under way at a time.
enum { KINDS = 2, UNDER_WAY = 2 };

static size_t largest_bucket(const struct ot__ranks *ranks)
{
    size_t most = 1;

    for (int k = 0; k < ranks->n_buckets; k++)
        most = OT_MAX(most, ot__align_up((size_t)ranks->buckets[k].n_elements *
                                         ot_dtype_size(ranks->buckets[k].dtype)));
    return most;
}

static bool sums_gradients(const ot_session *session, ot_mode mode)
{
    return mode == OT_MODE_TRAIN && session->ranks->cuts_gradients;
}

ot_status ot__transfers_make_room(ot_session *session, ot_mode mode, void **out)
{
    const size_t n_kinds =
        (size_t)ot__ranks_gather(session, mode) + (size_t)sums_gradients(session, mode);

    return ot__session_take_block(session, largest_bucket(session->ranks) * n_kinds * UNDER_WAY,
                                  out);
}

ot_status ot__transfers_join(ot_session *session, ot_mode mode, void *room)
{
    const struct ot__ranks *ranks = session->ranks;
    const size_t n_bytes = largest_bucket(ranks);
    int n_started[KINDS] = {0}, n_ended[KINDS] = {0};
    ot_status st = OT_OK;

    for (int k = 0; k < ranks->n_transfers[mode]; k++) {
        const ot__transfer *t = &ranks->transfers[mode][k];
        const bool is_start =
            t->what == OT_TRANSFER_GATHER_START || t->what == OT_TRANSFER_SCATTER_START;
        const int kind =
            t->what == OT_TRANSFER_SCATTER_START || t->what == OT_TRANSFER_SCATTER_WAIT;
        const int turn = (is_start ? n_started[kind]++ : n_ended[kind]++) % UNDER_WAY;
        const int before = kind > 0 && ot__ranks_gather(session, mode) ? UNDER_WAY : 0;
        char *buffer = (char *)room + (size_t)(before + turn) * n_bytes;

        if (t->what == OT_TRANSFER_SCATTER_START)
            memset(buffer, 0, n_bytes);
        OT_THEN(st, ot__transfer_run(session, t->what, t->bucket, buffer));
    }
    return st;
}
