// SPDX-License-Identifier: Apache-2.0
// States to HDF5 files: of a trainer that is alone, or of the ranks of one, which write one file or
// one each.
#include <string.h>

#include "onnxtrain/comm.h"
#include "trainer/state.h"

// ---- the state of a file ----

// Without the optimizer's states nothing is left of what the optimizer has done.
static ot_status drop_optimizer(ot_dict *state)
{
    static const char *const names[] = {OT_KEY_OPTIMIZER_STEP, OT_KEY_UPDATES, OT_KEY_AVERAGES};
    ot_dict *own;

    OT_TRY(ot_dict_get_dict(state, OT_KEY_OWN, &own));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        if (ot__state_has(own, names[i]))
            OT_TRY(ot_dict_remove(own, names[i]));
    return OT_OK;
}

static ot_status make_state_to_save(ot__state_source *source, const ot_save_options *options,
                                    ot_dict **out)
{
    const bool has_optimizer = options->include_optimizer_states;
    const unsigned sections =
        has_optimizer ? OT_STATE_ALL : OT_STATE_ALL & ~(unsigned)OT_STATE_OPTIMIZER;

    if (!has_optimizer)
        source->position.n_accumulated = 0;
    OT_TRY(ot__state_make(source, sections, out));
    if (!has_optimizer)
        OT_TRY(drop_optimizer(*out));
    return options->user_dict != NULL
               ? ot_dict_set_string(*out, OT_KEY_USER_DICT, options->user_dict)
               : OT_OK;
}

static ot_status save_alone(ot_trainer *trainer, const char *path, const ot_save_options *options)
{
    ot__state_source source;
    ot_dict *state = NULL;
    ot_status st;

    OT_TRY(ot__state_of_trainer(trainer, true, &source));
    st = make_state_to_save(&source, options, &state);
    OT_THEN(st, ot_dict_save_hdf5(state, path));
    ot_dict_destroy(state);
    ot__state_source_end(&source);
    return st;
}

// ---- who writes what ----

typedef enum written {
    WRITTEN_BY_ROOT, // all of the state, in one file
    WRITTEN_BY_EACH, // all of it, in a file of each rank
    WRITTEN_IN_PARTS,
} written;

typedef struct ranks_save {
    ot_trainer *trainer;
    ot_comm *comm;
    const char *path;
    const ot_save_options *options;
    written how;
} ranks_save;

static ot_status agree_on_save(const ranks_save *s, ot_status st)
{
    return ot__session_agree(s->trainer->session, st, "ot_trainer_save");
}

// All ranks have the same identities of paths, and so the same answer.
static ot_status compare_paths(const uint64_t *ids, int n, bool *is_one)
{
    int other = 1;

    while (other < n && ids[other] == ids[0])
        other++;
    *is_one = other == n;
    for (int a = 0; a < n && !*is_one; a++)
        for (int b = a + 1; b < n; b++)
            if (ids[a] == ids[b])
                return ot__error(OT_ERR_MISMATCH,
                                 "ranks %d and %d save to one path, rank %d to another: expected "
                                 "one path for all ranks, or one of its own for each",
                                 a, b, ids[a] == ids[0] ? other : 0);
    return OT_OK;
}

static ot_status choose_how(ranks_save *s, ot_status st)
{
    const int n = ot_comm_world_size(s->comm);
    uint64_t *ids = ot__alloc_zero((size_t)n, sizeof *ids), own = 0;
    ot_agreement a = OT_AGREEMENT_INIT;
    const ot_agree_field fields[] = {
        {"include_optimizer_states", (uint64_t)(s->options->include_optimizer_states != 0)}};
    bool is_one = false;

    OT_THEN(st, ot__made(ids != NULL));
    a.call = "ot_trainer_save";
    a.status = st;
    a.fields = fields;
    a.n_fields = (int64_t)OT_COUNT(fields);
    st = ot_comm_agree(s->comm, &a);
    if (st == OT_OK) {
        own = ot__id_mix(0, s->path, strlen(s->path));
        st = ot_comm_all_gather(s->comm, &own, sizeof own, ids);
    }
    OT_THEN(st, compare_paths(ids, n, &is_one));
    s->how = is_one                                    ? WRITTEN_BY_ROOT
             : ot__session_is_cut(s->trainer->session) ? WRITTEN_IN_PARTS
                                                       : WRITTEN_BY_EACH;
    ot__free(ids);
    return st;
}

// Collective: what files are made of.
static ot_status gather_source(const ranks_save *s, ot__state_source *out)
{
    const bool has_optimizer = s->options->include_optimizer_states != 0;
    ot_status st = s->how == WRITTEN_IN_PARTS ? ot__state_of_rank(s->trainer, has_optimizer, out)
                                              : ot__state_of_trainer(s->trainer, true, out);

    st = agree_on_save(s, st);
    if (s->how == WRITTEN_BY_EACH)
        return st;
    OT_THEN(st, ot__state_add_means(out));
    // One file has the gradients of all ranks, and so has each where no rank has its own.
    if (has_optimizer && out->gradients == NULL && s->trainer->n_accumulated > 0 &&
        (s->how == WRITTEN_BY_ROOT || ot__session_has_cut_gradients(s->trainer->session)))
        OT_THEN(st, ot__session_gather_gradients(s->trainer->session, &out->gradients));
    return st;
}

// ---- writing ----

static ot_status write_unnamed(const ot_dict *state, const char *path, ot__file_writer **out)
{
    OT_TRY(ot__dict_write_hdf5(state, path, out));
    return ot__file_writer_sync(*out);
}

// Files get their names when all have been written. Where one does not, no other one stays.
static ot_status write_together(const ranks_save *s, ot_status st, const ot_dict *state)
{
    ot__file_writer *file = NULL;
    bool is_named;

    if (state != NULL)
        OT_THEN(st, write_unnamed(state, s->path, &file));
    st = agree_on_save(s, st);
    if (st != OT_OK) {
        ot__file_writer_abort(file);
        return st;
    }
    if (file != NULL)
        st = ot__file_writer_commit(file);
    is_named = file != NULL && st == OT_OK;
    st = agree_on_save(s, st);
    if (st != OT_OK && is_named)
        ot__file_remove(s->path);
    return st;
}

static ot_status save_over_ranks(ranks_save *s, ot_status given)
{
    ot__state_source source = {0};
    ot_dict *state = NULL;
    ot_status st;

    OT_TRY(choose_how(s, given));
    st = gather_source(s, &source);
    if (st == OT_OK) {
        if (s->how != WRITTEN_BY_ROOT || ot_comm_rank(s->comm) == 0)
            st = make_state_to_save(&source, s->options, &state);
        st = write_together(s, st, state);
    }
    ot_dict_destroy(state);
    ot__state_source_end(&source);
    return st;
}

ot_status ot__trainer_save_hdf5(ot_trainer *trainer, ot_status given, const char *path,
                                const ot_save_options *options)
{
    ranks_save s = {.trainer = trainer,
                    .comm = ot__session_comm(trainer->session),
                    .path = path,
                    .options = options};

    if (s.comm != NULL)
        return save_over_ranks(&s, given);
    OT_TRY(given);
    return save_alone(trainer, path, options);
}
