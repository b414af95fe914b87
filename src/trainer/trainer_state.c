// SPDX-License-Identifier: Apache-2.0
// The state of a trainer as a tree of named values.
#include <string.h>

#include "trainer/state.h"

const char *const ot__moment_keys[OT_SLOT_MOMENTS] = {
    [OT_SLOT_MOMENT1] = "Moment_1",
    [OT_SLOT_MOMENT2] = "Moment_2",
};

// ---- tensors ----

static ot_status take_state_tensor(ot_dict *dict, const char *name, ot_tensor *tensor)
{
    const ot_status st = ot_dict_take_tensor(dict, name, tensor);

    if (st != OT_OK)
        ot_tensor_destroy(tensor);
    return st;
}

static ot_status add_tensor(const ot__state_source *source, ot_dict *dict, const char *name,
                            const ot_tensor *from)
{
    ot_tensor *tensor;

    if (from == NULL) // it is another rank's
        return OT_OK;
    OT_TRY(source->is_view
               ? ot_tensor_wrap(from->dtype, &from->shape, from->data, from->n_bytes, &tensor)
               : ot_tensor_clone(from, &tensor));
    return take_state_tensor(dict, name, tensor);
}

// Of a state of one rank: what it has of them; NULL: nothing.
static const ot_tensor *source_value(const ot__state_source *source, const ot__parameter *p)
{
    if (ot__state_has(source->means, p->name))
        return ot__state_tensor(source->means, p->name);
    if (p->value_sharding == NULL && !(source->deals_weights && p->trainable))
        return p->value;
    return source->whole == NULL
               ? p->value
               : ot__state_tensor(ot__state_dict(source->whole, "model"), p->name);
}

static const ot_tensor *source_slot(const ot__state_source *source, const ot__parameter *p,
                                    int slot)
{
    const char *key = ot__session_slot_key(source->trainer->session, slot);
    const ot_dict *slots;

    if (source->whole == NULL || p->slots[slot] == NULL || key == NULL ||
        (p->state_sharding == NULL && !source->is_dealt))
        return p->slots[slot];
    slots = ot__state_dict(ot__state_dict(source->whole, "optim"), "state");
    return ot__state_tensor(ot__state_dict(slots, p->name), key);
}

static const ot_tensor *source_gradient(const ot__state_source *source, const ot__parameter *p)
{
    return source->gradients == NULL ? p->gradient : ot__state_tensor(source->gradients, p->name);
}

// Counters of a state say which update comes next.
static ot_status add_count(ot_dict *dict, const char *name, int64_t n_done)
{
    ot_tensor *tensor;

    OT_TRY(ot_tensor_create(OT_I64, &OT_SHAPE(1), &tensor));
    *(int64_t *)tensor->data = n_done + 1;
    return take_state_tensor(dict, name, tensor);
}

// ---- the model ----

static bool is_constant(const ot__state_source *source, const ot__uses *uses, const ot_value *value)
{
    return ot__dtype_is_float(value->dtype) && ot__uses_count(uses, value) > 0 &&
           !ot__ckpt_find(ot_session_checkpoint(source->trainer->session), value->name) &&
           !ot__ckpt_find(source->checkpoint, value->name);
}

// Float initializers that are computed with and that nothing can train. Files have none: there are
// those of the model.
static ot_status add_state_constants(const ot__state_source *source, ot_dict *dict)
{
    const ot_model *forward = source->trainer->forward;
    ot__uses uses = {0};
    ot_status st;

    if (forward == NULL)
        return OT_OK;
    st = ot__uses_build(forward->graph, &uses);
    for (int i = 0; st == OT_OK && i < forward->graph->n_initializers; i++) {
        const ot_value *value = forward->graph->initializers[i];
        ot_tensor *copy;

        if (!is_constant(source, &uses, value))
            continue;
        st = ot__constant_clone(forward, value->constant, &copy);
        OT_THEN(st, take_state_tensor(dict, value->name, copy));
    }
    ot__uses_deinit(&uses);
    return st;
}

static ot_status add_model(const ot__state_source *source, ot_dict *state)
{
    ot_dict *model, *full;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_MODEL, &model));
    OT_TRY(ot_dict_set_dict(model, OT_KEY_FULL_PRECISION, &full));
    for (int i = 0; i < source->checkpoint->n_parameters; i++) {
        const ot__parameter *p = source->checkpoint->parameters[i];

        OT_TRY(add_tensor(source, full, p->name, source_value(source, p)));
    }
    return add_state_constants(source, full);
}

// ---- the optimizer ----

static ot_status add_moments(const ot__state_source *source, const ot__optimizer_info *optimizer,
                             const ot__parameter *p, ot_dict *of_optimizer)
{
    ot_dict *dict;

    if (source->is_dealt && !ot__deal_find(&source->deal, p->name)->is_mine)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(of_optimizer, p->name, &dict));
    for (int k = 0; k < OT_SLOT_MOMENTS; k++)
        if (p->slots[k] != NULL)
            OT_TRY(add_tensor(source, dict, ot__moment_keys[k], source_slot(source, p, k)));
    return optimizer->counts_each ? add_count(dict, OT_KEY_UPDATE_COUNT, p->n_updates) : OT_OK;
}

static ot_status add_optimizer_state(const ot__state_source *source, ot_dict *state)
{
    const ot__optimizer_info optimizer = ot__session_optimizer(source->trainer->session);
    const ot_checkpoint *checkpoint = source->checkpoint;
    ot_dict *dict, *shared;

    if (!checkpoint->has_optimizer_state)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(state, OT_KEY_OPTIMIZER, &dict));
    for (int i = 0; optimizer.keeps_moments && i < checkpoint->n_parameters; i++)
        if (checkpoint->parameters[i]->trainable)
            OT_TRY(add_moments(source, &optimizer, checkpoint->parameters[i], dict));
    if (!optimizer.counts)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(dict, OT_KEY_SHARED, &shared));
    return add_count(shared, OT_KEY_STEP, checkpoint->step);
}

// ---- numbers ----

static ot_status add_options(const ot__state_source *source, ot_dict *state)
{
    const ot__recorded_options *o = &source->trainer->recorded;
    const int64_t zero_stage =
        source->is_dealt ? ot__session_zero(source->trainer->session) : o->zero_stage;
    ot_dict *dict;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_OPTIONS, &dict));
    OT_TRY(ot_dict_set_bool(dict, OT_KEY_MIXED_PRECISION, o->mixed_precision));
    OT_TRY(ot_dict_set_int(dict, OT_KEY_ZERO_STAGE, zero_stage));
    OT_TRY(ot_dict_set_int(dict, OT_KEY_WORLD_RANK, o->world_rank));
    OT_TRY(ot_dict_set_int(dict, OT_KEY_WORLD_SIZE, o->world_size));
    if (source->optimizer != NULL)
        OT_TRY(ot_dict_set_string(dict, OT_KEY_OPTIMIZER_NAME, source->optimizer));
    OT_TRY(ot_dict_set_int(dict, OT_KEY_DATA_PARALLEL, o->data_parallel_size));
    return ot_dict_set_int(dict, OT_KEY_HORIZONTAL_PARALLEL, o->horizontal_parallel_size);
}

static ot_status add_steps(const ot__state_source *source, ot_dict *state)
{
    ot_dict *dict;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_STEPS, &dict));
    OT_TRY(ot_dict_set_int(dict, OT_KEY_OPTIMIZATION_STEP, source->position.optimization_step));
    return ot_dict_set_int(dict, OT_KEY_TRAIN_STEP, source->position.step);
}

static ot_status add_cut_weight(const ot__parameter *p, ot_dict *partition)
{
    const int64_t split = OT_SPLIT_NONE;
    const ot_shape *shape = ot__parameter_shape(p);
    ot_dict *dict;

    OT_TRY(ot_dict_set_dict(partition, p->name, &dict));
    OT_TRY(ot_dict_set_ints(dict, OT_KEY_ORIGINAL_DIM, shape->dim, shape->ndim));
    return ot_dict_set_ints(dict, OT_KEY_ROW_PARTITION, &split, 1);
}

// Of a whole state it is empty: where ONNX Runtime would say how it is divided, it is not.
static ot_status add_partition(const ot__state_source *source, ot_dict *state)
{
    const ot_checkpoint *checkpoint = source->checkpoint;
    ot_dict *dict;

    if (!source->is_dealt && source->trainer->recorded.zero_stage == 0)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(state, OT_KEY_PARTITION, &dict));
    for (int i = 0; source->is_dealt && i < checkpoint->n_parameters; i++) {
        const ot__dealt *dealt = ot__deal_find(&source->deal, checkpoint->parameters[i]->name);

        if (dealt != NULL && dealt->is_cut)
            OT_TRY(add_cut_weight(checkpoint->parameters[i], dict));
    }
    return OT_OK;
}

// ---- what is our own ----

static ot_status add_schedule(const ot_schedule *schedule, ot_dict *own)
{
    ot__buf text = {0};
    ot_status st;

    ot__schedule_text(schedule, &text);
    st = ot__buf_status(&text);
    OT_THEN(st, ot_dict_set_string(own, OT_KEY_SCHEDULE, text.data));
    ot__buf_deinit(&text);
    return st;
}

static ot_status add_resume(const ot__resume *resume, ot_dict *own)
{
    if (resume->has_seed)
        OT_TRY(ot_dict_set_int(own, OT_KEY_SEED, (int64_t)resume->seed));
    if (resume->has_counter)
        OT_TRY(ot_dict_set_int(own, OT_KEY_COUNTER, (int64_t)resume->counter));
    if (resume->has_rate)
        OT_TRY(ot_dict_set_float(own, OT_KEY_LEARNING_RATE, resume->learning_rate));
    return resume->has_schedule ? add_schedule(&resume->schedule, own) : OT_OK;
}

// How often each parameter was updated, where that is not how often the optimizer was.
static ot_status add_updates(const ot_checkpoint *checkpoint, ot_dict *own)
{
    ot_dict *dict;

    OT_TRY(ot_dict_set_int(own, OT_KEY_OPTIMIZER_STEP, checkpoint->step));
    OT_TRY(ot_dict_set_dict(own, OT_KEY_UPDATES, &dict));
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        if (p->trainable && p->n_updates != checkpoint->step)
            OT_TRY(ot_dict_set_int(dict, p->name, p->n_updates));
    }
    return OT_OK;
}

static ot_status add_averages(const ot__state_source *source, ot_dict *own)
{
    ot_dict *dict;

    OT_TRY(ot_dict_set_dict(own, OT_KEY_AVERAGES, &dict));
    for (int i = 0; i < source->checkpoint->n_parameters; i++) {
        const ot__parameter *p = source->checkpoint->parameters[i];

        if (p->slots[OT_SLOT_AVERAGE] != NULL)
            OT_TRY(add_tensor(source, dict, p->name, source_slot(source, p, OT_SLOT_AVERAGE)));
    }
    return OT_OK;
}

static ot_status add_gradients(const ot__state_source *source, ot_dict *own)
{
    ot_dict *dict;

    OT_TRY(ot_dict_set_int(own, OT_KEY_ACCUMULATED, source->position.n_accumulated));
    if (source->position.n_accumulated == 0)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(own, OT_KEY_GRADIENTS, &dict));
    for (int i = 0; i < source->checkpoint->n_parameters; i++) {
        const ot__parameter *p = source->checkpoint->parameters[i];

        if (p->trainable && p->gradient != NULL)
            OT_TRY(add_tensor(source, dict, p->name, source_gradient(source, p)));
    }
    return OT_OK;
}

// Where the state has the means over the ranks, this rank's beside them.
static ot_status add_statistics(const ot__state_source *source, ot_dict *own)
{
    ot_dict *dict;

    if (!source->is_dealt || source->position.n_accumulated == 0)
        return OT_OK;
    OT_TRY(ot_dict_set_dict(own, OT_KEY_STATISTICS, &dict));
    for (int i = 0; i < source->checkpoint->n_parameters; i++) {
        const ot__parameter *p = source->checkpoint->parameters[i];

        if (ot__state_has(source->means, p->name))
            OT_TRY(add_tensor(source, dict, p->name, p->value));
    }
    return OT_OK;
}

static ot_status add_scale(const ot__scale_position *scale, ot_dict *own)
{
    if (!scale->is_there)
        return OT_OK;
    OT_TRY(ot_dict_set_float(own, OT_KEY_LOSS_SCALE, scale->loss_scale));
    OT_TRY(ot_dict_set_int(own, OT_KEY_STABLE_UPDATES, scale->n_stable));
    return scale->of_gradients > 0
               ? ot_dict_set_float(own, OT_KEY_GRADIENT_SCALE, scale->of_gradients)
               : OT_OK;
}

static ot_status add_own(const ot__state_source *source, ot_dict *state)
{
    ot_dict *own;

    OT_TRY(ot_dict_set_dict(state, OT_KEY_OWN, &own));
    OT_TRY(add_resume(&source->position.session, own));
    OT_TRY(add_scale(&source->position.scale, own));
    OT_TRY(ot_dict_set_int(own, OT_KEY_PHASE, source->position.phase));
    OT_TRY(add_updates(source->checkpoint, own));
    OT_TRY(add_averages(source, own));
    OT_TRY(add_statistics(source, own));
    return add_gradients(source, own);
}

// ---- the whole ----

static const struct {
    unsigned section;
    ot_status (*add)(const ot__state_source *source, ot_dict *state);
} sections_of_state[] = {
    {OT_STATE_MODEL, add_model},         {OT_STATE_OPTIMIZER, add_optimizer_state},
    {OT_STATE_OPTIONS, add_options},     {OT_STATE_STEPS, add_steps},
    {OT_STATE_PARTITION, add_partition}, {OT_STATE_OWN, add_own},
};

ot_status ot__state_make(const ot__state_source *source, unsigned sections, ot_dict **out)
{
    ot_dict *state;
    ot_status st;

    OT_TRY(ot_dict_create(&state));
    st = OT_OK;
    for (size_t i = 0; i < OT_COUNT(sections_of_state); i++)
        if ((sections & sections_of_state[i].section) != 0)
            OT_THEN(st, sections_of_state[i].add(source, state));
    return OT_HAND_OUT(st, out, state, ot_dict_destroy);
}

static bool has_parts(const ot_checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        if (p->value_sharding != NULL || p->state_sharding != NULL)
            return true;
    }
    return false;
}

// With ZeRO the ranks do it together, and learn how it went; without, each by itself.
static ot_status agree_with_zero(const ot_trainer *trainer, ot_status st)
{
    return ot__session_is_cut(trainer->session)
               ? ot__session_agree(trainer->session, st, "ot_trainer_get_state")
               : st;
}

// On all ranks alike.
static ot_status gather_state(const ot_trainer *trainer, ot_dict **out)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    *out = NULL;
    if (!has_parts(ot_session_checkpoint(trainer->session)))
        return agree_with_zero(trainer, ot__session_make_slots(trainer->session));
    options.gather = OT_GATHER_ALL;
    return ot__session_get_shards(trainer->session, OT_STATE_MODEL | OT_STATE_OPTIMIZER, &options,
                                  NULL, out);
}

void ot__state_source_begin(ot_trainer *trainer, ot_dict *whole, bool is_view,
                            ot__state_source *out)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);

    for (int i = 0; i < checkpoint->n_parameters; i++)
        ot__ckpt_unpack(checkpoint, checkpoint->parameters[i]);
    *out = (ot__state_source){
        .trainer = trainer,
        .checkpoint = checkpoint,
        .optimizer = ot__session_optimizer(trainer->session).name,
        .position = {.session = ot__session_position(trainer->session),
                     .optimization_step = trainer->info.optimization_step,
                     .step = trainer->info.step,
                     .scale = ot__trainer_scale_position(trainer),
                     .phase = trainer->phase,
                     .n_accumulated = trainer->n_accumulated},
        .whole = whole,
        .is_view = is_view,
    };
}

ot_status ot__state_of_trainer(ot_trainer *trainer, bool is_view, ot__state_source *out)
{
    ot_dict *whole, *gradients = NULL;

    *out = (ot__state_source){0};
    if (ot_session_checkpoint(trainer->session)->is_nominal)
        return ot__error(OT_ERR_STATE, "the checkpoint is nominal: its parameters have no values");
    OT_TRY(gather_state(trainer, &whole));
    if (ot__session_is_cut(trainer->session) && trainer->n_accumulated > 0) {
        const ot_status st = ot__session_gather_gradients(trainer->session, &gradients);

        if (st != OT_OK)
            ot_dict_destroy(whole);
        OT_TRY(st);
    }
    ot__state_source_begin(trainer, whole, is_view, out);
    out->gradients = gradients;
    return OT_OK;
}

void ot__state_source_end(ot__state_source *source)
{
    ot_dict_destroy(source->whole);
    ot_dict_destroy(source->gradients);
    ot_dict_destroy(source->means);
    ot__deal_drop(&source->deal);
    source->whole = source->gradients = source->means = NULL;
}

static ot_status check_sections(unsigned sections)
{
    const unsigned known = OT_STATE_ALL | OT_STATE_VIEW;

    return (sections & ~known) == 0
               ? OT_OK
               : ot__error(OT_ERR_INVALID, "sections 0x%x of a state, known are 0x%x", sections,
                           known);
}

static ot_status get_trainer_state(ot_trainer *trainer, unsigned sections, ot_dict **out)
{
    ot__state_source source;
    ot_dict *state = NULL;
    ot_status st;

    OT_TRY(agree_with_zero(trainer, check_sections(sections)));
    OT_TRY(ot__state_of_trainer(trainer, (sections & OT_STATE_VIEW) != 0, &source));
    // What is gathered is not the trainer's.
    source.is_view = source.is_view && source.whole == NULL && source.gradients == NULL;
    st = agree_with_zero(trainer, ot__state_make(&source, sections, &state));
    ot__state_source_end(&source);
    return OT_HAND_OUT(st, out, state, ot_dict_destroy);
}

ot_status ot_trainer_get_state(ot_trainer *trainer, unsigned sections, ot_dict **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, get_trainer_state(trainer, sections, out));
}
