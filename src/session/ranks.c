// SPDX-License-Identifier: Apache-2.0
// A session over several ranks: what all of them agree on, when it is made and in every step.
#include "session/ranks.h"

#include <string.h>

// ---- agreements ----

ot_status ot__ranks_agree(ot_comm *comm, ot_status st, const char *call,
                          const ot_agree_field *fields, int n_fields)
{
    if (comm == NULL)
        return st;
    OT_TRY(ot__comm_check(comm));
    return ot__comm_agree_on(comm, st, call, fields, n_fields);
}

ot_status ot__ranks_compare(ot_comm *comm, uint64_t mine, const char *call, bool *differs)
{
    ot_agreement a = OT_AGREEMENT_INIT;
    uint64_t first = mine;

    OT_TRY(ot__comm_spread(comm, OT_TAG_BROADCAST, 0, &first, sizeof first, call));
    a.call = call;
    a.any = mine != first;
    OT_TRY(ot_comm_agree(comm, &a));
    *differs = a.any != 0;
    return OT_OK;
}

// ---- what must be the same ----

static uint64_t hash_parameters(const ot_session *session)
{
    uint64_t id = 0;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        id = ot__id_mix(id, p->name, strlen(p->name) + 1);
        id = ot__id_mix_word(id, (uint64_t)p->value->dtype * 2 + p->trainable);
        for (int k = 0; k < p->value->shape.ndim; k++)
            id = ot__id_mix_word(id, (uint64_t)p->value->shape.dim[k]);
    }
    return id;
}

static uint64_t hash_tensor(uint64_t id, const ot_tensor *t)
{
    if (t == NULL || t->data == NULL)
        return ot__id_mix_word(id, 0);
    return ot__id_mix_word(id, ot__crc32c(0, t->data, t->n_bytes));
}

// Values and what the optimizer keeps of them.
static uint64_t hash_values(const ot_session *session)
{
    uint64_t id = 0;

    for (int i = 0; i < session->n_parameters && !session->checkpoint->is_nominal; i++) {
        const ot__parameter *p = session->parameters[i];

        id = hash_tensor(id, p->value);
        for (int k = 0; k < OT_SLOTS; k++)
            id = hash_tensor(id, p->slots[k]);
    }
    return id;
}

// Which moments are there, and how often each parameter was updated: with ZeRO a session that
// begins anew has none, and one that goes on has those of its checkpoint.
static uint64_t hash_progress(const ot_session *session)
{
    uint64_t id = 0;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        id = ot__id_mix_word(id, (uint64_t)p->n_updates);
        for (int k = 0; k < OT_SLOTS; k++)
            id = ot__id_mix_word(id, p->slots[k] != NULL ? p->slots[k]->n_bytes + 1 : 0);
    }
    return id;
}

// ---- values that differ become those of rank 0 ----

static ot_status spread_tensor(ot_comm *comm, const ot_tensor *t)
{
    if (t == NULL || t->n_bytes == 0)
        return OT_OK;
    return ot__comm_spread(comm, OT_TAG_BROADCAST, 0, t->data, t->n_bytes, "session");
}

static ot_status spread_values(const ot_session *session)
{
    ot_comm *comm = session->ranks->comm;

    for (int i = 0; i < session->n_parameters; i++) {
        const ot__parameter *p = session->parameters[i];

        OT_TRY(spread_tensor(comm, p->value));
        for (int k = 0; k < OT_SLOTS; k++)
            OT_TRY(spread_tensor(comm, p->slots[k]));
    }
    session->checkpoint->n_changes++;
    return OT_OK;
}

static ot_status bring_values_together(const ot_session *session)
{
    ot_comm *comm = session->ranks->comm;
    bool differ;

    OT_TRY(ot__ranks_compare(comm, hash_values(session), "session", &differ));
    if (!differ)
        return OT_OK;
    if (ot_comm_rank(comm) == 0)
        ot__log(OT_LOG_WARNING, "the ranks began with different values: all take those of rank 0");
    return spread_values(session);
}

ot_comm *ot__session_comm(const ot_session *session)
{
    return session->ranks != NULL ? session->ranks->comm : NULL;
}

// ---- making ----

static ot_status agree_on_session(ot_comm *comm, const ot_session *session, ot_status st)
{
    const ot__optimizer *o = session != NULL ? &session->optimizer : NULL;
    ot_agree_field fields[12];

    if (st != OT_OK)
        return ot__ranks_agree(comm, st, "session", NULL, 0);
    fields[0] = (ot_agree_field){"sync_batch_norm", session->syncs_norms};
    fields[1] =
        (ot_agree_field){"the training model", ot__ranks_hash_model(session->training.model)};
    fields[2] = (ot_agree_field){"the optimizer model", ot__ranks_hash_model(o->program.model)};
    fields[3] = (ot_agree_field){"the parameters", hash_parameters(session)};
    fields[4] = (ot_agree_field){"precision", (uint64_t)session->options.precision};
    fields[5] = (ot_agree_field){"reproducible", (uint64_t)session->options.reproducible};
    fields[6] = (ot_agree_field){"bucket_bytes", session->ranks->bucket_bytes};
    fields[7] = (ot_agree_field){"the state of the optimizer",
                                 (uint64_t)o->has_slot[OT_SLOT_MOMENT1] +
                                     2 * (uint64_t)o->has_slot[OT_SLOT_MOMENT2] +
                                     4 * (uint64_t)o->has_slot[OT_SLOT_AVERAGE]};
    fields[8] = (ot_agree_field){"zero", (uint64_t)session->ranks->zero};
    fields[9] = (ot_agree_field){
        "recompute", session->ranks->joins_steps ? (uint64_t)session->options.recompute : 0};
    fields[10] = (ot_agree_field){"the number of updates that the checkpoint has seen",
                                  (uint64_t)session->checkpoint->step};
    fields[11] = (ot_agree_field){"which moments the checkpoint has", hash_progress(session)};
    return ot__ranks_agree(comm, OT_OK, "session", fields, (int)OT_COUNT(fields));
}

ot_status ot__ranks_agree_on_optimizer(const ot_session *session, ot_status st)
{
    const ot_agree_field field = {"the optimizer model",
                                  ot__ranks_hash_model(session->optimizer.program.model)};

    return ot__ranks_agree(ot__session_comm(session), st, "set_optimizer", &field, 1);
}

static ot_status poke_ranks(void *context)
{
    return ot__comm_poke(((ot_session *)context)->ranks->comm);
}

// In the order of the ranks.
static ot_status sum_over_ranks(void *context, double *numbers, int n)
{
    ot_comm *comm = ((ot_session *)context)->ranks->comm;

    return ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, numbers, n);
}

ot_status ot__ranks_read(const ot_session_options *options, ot_parallel_options *out)
{
    ot_session_options own;

    *out = (ot_parallel_options)OT_PARALLEL_OPTIONS_INIT;
    OT_TRY(OT_OPTIONS_READ(ot_session_options, OT_SESSION_OPTIONS_INIT, options, &own));
    if (own.parallel == NULL)
        return OT_OK;
    OT_TRY(OT_OPTIONS_READ(ot_parallel_options, OT_PARALLEL_OPTIONS_INIT, own.parallel, out));
    return out->comm != NULL ? ot__comm_check(out->comm) : OT_OK;
}

// The parameters and their gradients are there.
ot_status ot__ranks_prepare(ot_session *session)
{
    if (session->ranks == NULL)
        return OT_OK;
    if (session->checkpoint->is_nominal)
        return ot__error(OT_ERR_UNSUPPORTED, "the checkpoint is nominal: a session over several "
                                             "ranks begins with values");
    OT_TRY(ot__buckets_make(session));
    return ot__transfers_list(session);
}

// Those of an accumulation that goes on are whole.
ot_status ot__ranks_check_zero(const ot_session *session, int zero)
{
    enum { MOST = 3 };

    if (zero < 0 || zero > MOST)
        return ot__error(OT_ERR_INVALID, "zero is %d, expected 0 to %d", zero, MOST);
    if (zero > 1 && session->checkpoint->n_accumulated > 0)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the checkpoint has gradients of an update that goes on, which zero %d "
                         "cuts over the ranks: expected zero 0 or 1",
                         zero);
    return OT_OK;
}

void ot__ranks_init(struct ot__ranks *ranks, ot_session *session, int n_ranks, int zero,
                    size_t bucket_bytes)
{
    ranks->n_ranks = n_ranks;
    ranks->bucket_bytes = bucket_bytes;
    ranks->zero = zero;
    // The same bits for any number of ranks take sums over slices before those over ranks.
    ranks->cuts_gradients = zero > 1 && session->options.reproducible == 0;
    ranks->cuts_values = zero > 2;
    ranks->joins_steps = ranks->cuts_gradients || ranks->cuts_values;
    session->ranks = ranks;
}

ot_status ot__ranks_create(ot_session *session, const ot_parallel_options *options)
{
    const int n = options->comm != NULL ? ot_comm_world_size(options->comm) : 1;
    struct ot__ranks *ranks;

    OT_TRY(ot__ranks_check_zero(session, options->zero));
    session->syncs_norms = options->sync_batch_norm != 0;
    if (n < 2)
        return OT_OK;
    ranks = ot__alloc_zero(1, sizeof *ranks);
    OT_TRY(ot__made(ranks != NULL));
    ranks->comm = options->comm;
    ranks->rank = ot_comm_rank(options->comm);
    ot__ranks_init(ranks, session, n, options->zero, options->bucket_bytes);
    if (options->zero > 1 && !ranks->cuts_gradients && ranks->rank == 0)
        ot__log(
            OT_LOG_WARNING,
            "zero %d with reproducible: gradients stay whole on every rank, so that their sums do "
            "not depend on how many there are",
            options->zero);
    ranks->exchange = (ot_exchange){.context = session,
                                    .sum = session->syncs_norms ? sum_over_ranks : NULL,
                                    .reduce_start = ot__ranks_reduce_start,
                                    .poke = poke_ranks,
                                    .transfer = ot__transfer_run};
    ranks->update_exchange = (ot_exchange){
        .context = session, .sum = options->zero > 0 ? sum_over_ranks : NULL, .poke = poke_ranks};
    if (session->plan_options.n_threads == 0)
        session->plan_options.n_threads = ot_comm_threads(options->comm);
    return OT_OK;
}

ot_status ot__ranks_join(const ot_parallel_options *options, ot_session *session, ot_status st)
{
    if (options->comm == NULL || ot_comm_world_size(options->comm) < 2)
        return st;
    OT_TRY(agree_on_session(options->comm, session, st));
    OT_TRY(bring_values_together(session));
    return ot__buckets_set_slices(session, ot_comm_world_size(options->comm));
}

bool ot__session_syncs_norms(const ot_session *session)
{
    return session->syncs_norms;
}

int ot__session_zero(const ot_session *session)
{
    return session->ranks != NULL ? session->ranks->zero : 0;
}

bool ot__session_is_cut(const ot_session *session)
{
    return ot__session_zero(session) > 0;
}

// Averages are cut over the ranks, and evaluation takes them.
static bool shows_cut_averages(const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks->zero > 0 && ranks->is_half_cut && session->checkpoint->shows_averages;
}

bool ot__ranks_gather(const ot_session *session, ot_mode mode)
{
    const struct ot__ranks *ranks = session->ranks;

    return ranks != NULL &&
           (ranks->cuts_values || (mode == OT_MODE_EVAL && shows_cut_averages(session)));
}

bool ot__ranks_cut_gradients(const ot_session *session)
{
    return session->ranks != NULL && session->ranks->cuts_gradients;
}

bool ot__ranks_cut_later(const ot_session *session)
{
    return session->ranks != NULL && session->ranks->zero > 0 && !session->ranks->is_cut;
}

void ot__ranks_deinit(ot_session *session)
{
    if (session->ranks == NULL)
        return;
    ot__buckets_deinit(session->ranks);
    ot__free(session->ranks);
    session->ranks = NULL;
}
