// SPDX-License-Identifier: Apache-2.0
// What a session grants its plans: memory, layouts of parameters, what they may write.
#include "session/ranks.h"

enum { LARGEST_STATES = 3 };

// The parameters that need most, each with what belongs to it.
static ot_status refuse_state(const ot_session *session, const char *what, size_t state)
{
    const ot_checkpoint *c = session->checkpoint;
    const ot__parameter *named[LARGEST_STATES] = {NULL};
    ot__buf line = {0};
    ot_status st;

    for (int k = 0; k < OT_MIN((int)LARGEST_STATES, c->n_parameters); k++) {
        for (int i = 0; i < c->n_parameters; i++) {
            const ot__parameter *p = c->parameters[i];
            bool is_named = false;

            for (int e = 0; e < k; e++)
                is_named = is_named || named[e] == p;
            if (!is_named && (named[k] == NULL || p->value->n_bytes > named[k]->value->n_bytes))
                named[k] = p;
        }
        ot__buf_printf(&line, "%s'%s' %zu", k > 0 ? ", " : "", named[k]->name,
                       named[k]->value->n_bytes);
    }
    st = ot__error(OT_ERR_NO_MEMORY,
                   "%s need %zu bytes, %zu are allowed (memory_max); largest parameters: %s", what,
                   state, session->options.memory_max, line.data != NULL ? line.data : "none");
    ot__buf_deinit(&line);
    return st;
}

// What there is besides plans, while ranks cut it, and afterwards, with what their sums take.
typedef struct kept_bytes {
    size_t now, while_cut, later;
} kept_bytes;

static ot_status measure_kept(const ot_session *session, kept_bytes *kept)
{
    const ot_checkpoint *checkpoint = session->checkpoint;
    const size_t now = ot_session_state_bytes(session) + session->packing.buffer_bytes;
    size_t besides = now, of_ranks;

    *kept = (kept_bytes){now, now, now};
    if (session->ranks == NULL)
        return OT_OK;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        if (ot__ranks_have(session, checkpoint->parameters[i]))
            besides -= ot__parameter_bytes(checkpoint->parameters[i]);
    OT_TRY(ot__ranks_kept_bytes(session, &of_ranks));
    kept->while_cut = besides + ot__ranks_cut_bytes(session);
    kept->later = besides + of_ranks;
    if (session->ranks->comm == NULL) // of ranks that are only thought of there will never be this
        kept->now = kept->later;
    return OT_OK;
}

static ot_status grant(const ot_session *session, size_t kept, ot__plan_options *options)
{
    *options = session->plan_options;
    options->memory_max = OT_MAX(ot__memory_left(session->block_bytes), (size_t)1);
    if (session->options.memory_max == 0)
        return OT_OK;
    if (kept >= session->options.memory_max)
        return refuse_state(session,
                            session->ranks == NULL
                                ? "parameters, gradients and moments"
                                : "parameters, gradients, moments and sums over ranks",
                            kept);
    options->memory_max = OT_MIN(options->memory_max, session->options.memory_max - kept);
    return OT_OK;
}

ot_status ot__plan_budget(const ot_session *session, size_t n_bytes, ot__plan_options *options)
{
    kept_bytes kept;

    OT_TRY(measure_kept(session, &kept));
    return grant(session, OT_MAX(kept.now + n_bytes, kept.later), options);
}

// A training plan that runs when all is cut that will be. There is no plan's block meanwhile.
static ot_status budget_after_cut(const ot_session *session, ot__plan_options *options)
{
    kept_bytes kept;

    OT_TRY(measure_kept(session, &kept));
    if (session->options.memory_max > 0 && kept.while_cut > session->options.memory_max)
        return refuse_state(session,
                            "parameters, which are whole until the first step cuts them over the "
                            "ranks (zero),",
                            kept.while_cut);
    return grant(session, kept.later, options);
}

// Evaluation must change nothing, and in training only parameters and gradients may change.
static ot_status check_written(const ot_session *session, const ot__compiled_model *program,
                               const ot__plan *plan)
{
    for (int i = 0; i < program->n_inputs; i++) {
        const ot__input_role role = program->inputs[i].role;

        if (role != OT_ROLE_CONSTANT && ot__plan_writes_input(plan, i) &&
            (program == &session->eval || (role != OT_ROLE_PARAMETER && role != OT_ROLE_GRADIENT &&
                                           role != OT_ROLE_INPUT_GRADIENT)))
            return ot__error(OT_ERR_UNSUPPORTED, "%s: would change its input '%s'", program->what,
                             program->model->graph->inputs[i]->name);
    }
    return OT_OK;
}

// Over several ranks, from the second plan on.
static ot_status add_sum_starts(const ot_session *session, ot_graph *graph)
{
    ot_status st;
    int *bucket_of;

    if (session->ranks == NULL || session->ranks->joins_steps)
        return OT_OK;
    bucket_of = ot__buckets_of_inputs(session, graph->n_inputs);
    st = ot__made(bucket_of != NULL);
    OT_THEN(st, ot__pass_reduce(graph, bucket_of, session->ranks->n_buckets));
    ot__free(bucket_of);
    return st;
}

// A step over ranks among which parameters are cut. A training plan is made before they are.
static bool has_transfers(const ot_session *session, const ot__compiled_model *program)
{
    const struct ot__ranks *ranks = session->ranks;

    if (ranks == NULL)
        return false;
    return program == &session->training ? ranks->joins_steps
                                         : ot__ranks_gather(session, OT_MODE_EVAL) && ranks->is_cut;
}

// Its first run comes after the cut.
static bool is_cut_before(const ot_session *session, const ot__compiled_model *program)
{
    const struct ot__ranks *ranks = session->ranks;

    return program == &session->training && ranks != NULL && ranks->joins_steps && !ranks->is_cut;
}

// Of the training or the eval model.
static ot_status plan_of_session(void *owner, const ot__compiled_model *program, ot_graph *graph,
                                 const ot__input_shapes *shapes, size_t *excess, ot__plan **plan)
{
    ot_session *session = owner;
    ot__plan_options options;
    const ot_layout **layouts;
    ot__casts casts;
    ot_status st;

    if (program->narrow != OT_DTYPE_UNDEFINED) {
        OT_TRY(ot__hoisted_casts(graph, shapes->hoisted, &casts));
        OT_TRY(ot__plan_undo_casts(graph, &session->plan_options, &casts));
        OT_TRY(ot__hoisted_drop_unread(graph, shapes->hoisted));
    }
    if (program == &session->training)
        OT_TRY(ot__packing_choose(session, graph, shapes->hoisted));
    OT_TRY(ot__derived_make(session, program, graph, shapes->hoisted));
    if (program == &session->training)
        OT_TRY(add_sum_starts(session, graph));
    if (has_transfers(session, program))
        OT_TRY(ot__transfers_add(session, program, graph));
    if (program == &session->training)
        OT_TRY(ot__inside_add(session, graph));
    OT_TRY(is_cut_before(session, program) ? budget_after_cut(session, &options)
                                           : ot__plan_budget(session, 0, &options));
    layouts = ot__packing_of_inputs(session, program, graph->n_inputs);
    OT_TRY(ot__made(layouts != NULL));
    if (program == &session->training)
        ot__inside_lay(session, shapes->hoisted, layouts);
    options.input_layouts = layouts;
    options.excess = excess;
    st = ot__plan_create(graph, &options, shapes->lengths, shapes->sequences, plan);
    ot__free(layouts);
    return st == OT_OK ? check_written(session, program, *plan) : st;
}

void ot__session_drop_block(ot_session *session)
{
    ot__free_aligned(session->block);
    session->block = NULL;
    session->block_bytes = 0;
}

static ot_status make_block(ot_session *session, size_t n_bytes)
{
    void *block;

    if (n_bytes <= session->block_bytes)
        return OT_OK;
    ot__session_drop_block(session); // both together might exceed what there is
    block = ot__alloc_aligned(n_bytes);
    OT_TRY(ot__made(block != NULL));
    session->block = block;
    session->block_bytes = n_bytes;
    return OT_OK;
}

ot_status ot__session_take_block(ot_session *session, size_t n_bytes, void **out)
{
    ot__plan_options options;

    *out = NULL;
    OT_TRY(ot__plan_budget(session, 0, &options));
    if (options.memory_max > 0 && n_bytes > options.memory_max)
        return ot__error(OT_ERR_NO_MEMORY,
                         "the buckets of a step in which other ranks compute need %zu bytes, %zu "
                         "are allowed (memory_max)",
                         n_bytes, options.memory_max);
    OT_TRY(make_block(session, n_bytes));
    *out = session->block;
    return OT_OK;
}

// The block is that of a step in the middle: another plan has one of its own for the time.
static ot_status lend_guest_block(ot_session *session, ot__plan *plan)
{
    ot__free_aligned(session->guest_block);
    session->guest_block = ot__alloc_aligned(OT_MAX(ot__plan_bytes(plan), (size_t)1));
    OT_TRY(ot__made(session->guest_block != NULL));
    ot__plan_set_block(plan, session->guest_block);
    return OT_OK;
}

ot_status ot__session_lend_block(ot_session *session, ot__plan *plan)
{
    if (session->is_paused)
        return lend_guest_block(session, plan);
    OT_TRY(make_block(session, OT_MAX(ot__plan_bytes(plan), (size_t)1)));
    ot__plan_set_block(plan, session->block);
    session->plan_bytes = OT_MAX(session->plan_bytes, ot__plan_bytes(plan));
    return OT_OK;
}

static ot_status find_session_plan(ot_session *session, ot__compiled_model *program, ot__plan **out)
{
    if (program == &session->training)
        OT_TRY(ot__inside_prepare(session));
    program->gathers =
        ot__ranks_gather(session, program == &session->training ? OT_MODE_TRAIN : OT_MODE_EVAL);
    return ot__compiled_model_plan(
        program,
        &(ot__plan_owner){session, plan_of_session, ot__question_plan, ot__question_answer}, out);
}

ot_status ot__session_find_plan(ot_session *session, ot__compiled_model *program, ot__plan **out)
{
    const int n_threads = ot__session_take_threads(session); // constants are folded
    const ot_status st = find_session_plan(session, program, out);

    ot__parallel_set(n_threads);
    return st;
}

ot_status ot__session_plan(ot_session *session, ot__compiled_model *program, ot__plan **out)
{
    OT_TRY(ot__session_find_plan(session, program, out));
    return ot__session_lend_block(session, *out);
}
