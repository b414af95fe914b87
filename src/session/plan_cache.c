// SPDX-License-Identifier: Apache-2.0
// Plans by the shapes of the inputs. A new set of shapes specialises and fuses a copy of the model;
// the plan used longest ago makes room.
#include <string.h>

#include "session/session_internal.h"

enum { MAX_PLANS = 8 }; // that are made to keep below a ceiling

static bool is_equal(const ot__given *a, const ot__given *b, int n_inputs)
{
    if (a->n_shapes != b->n_shapes)
        return false;
    for (int i = 0; i < n_inputs; i++)
        if (a->lengths[i] != b->lengths[i])
            return false;
    for (int i = 0; i < a->n_shapes; i++)
        if (!ot__shape_equal(&a->shapes[i], &b->shapes[i]))
            return false;
    return true;
}

static ot_status given_copy(const ot__given *from, int n_inputs, ot__given *to)
{
    to->lengths = ot__alloc_zero((size_t)n_inputs + 1, sizeof *to->lengths);
    to->shapes = ot__alloc_zero((size_t)from->n_shapes + 1, sizeof *to->shapes);
    OT_TRY(ot__made(to->lengths != NULL && to->shapes != NULL));
    to->n_shapes = from->n_shapes;
    to->capacity = from->n_shapes + 1;
    if (n_inputs > 0)
        memcpy(to->lengths, from->lengths, (size_t)n_inputs * sizeof *to->lengths);
    if (from->n_shapes > 0)
        memcpy(to->shapes, from->shapes, (size_t)from->n_shapes * sizeof *to->shapes);
    return OT_OK;
}

static ot__cached_plan *oldest(ot__compiled_model *program)
{
    ot__cached_plan *found = &program->plans[0];

    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        ot__cached_plan *slot = &program->plans[k];

        if (slot->plan == NULL)
            return slot;
        if (slot->last_used < found->last_used)
            found = slot;
    }
    return found;
}

// ---- shapes of all inputs ----

static ot_status input_shapes_init(ot__input_shapes *s, const ot__compiled_model *program)
{
    const size_t n = (size_t)program->n_inputs + 1;

    s->tensors = ot__alloc_zero(n, sizeof *s->tensors);
    s->lengths = ot__alloc_zero(n, sizeof *s->lengths);
    s->sequences = ot__alloc_zero(n, sizeof *s->sequences);
    return ot__made(s->tensors != NULL && s->lengths != NULL && s->sequences != NULL);
}

static void input_shapes_deinit(ot__input_shapes *s)
{
    ot__free(s->tensors);
    ot__free(s->lengths);
    ot__free(s->sequences);
}

// The user's as given, the others as they are in the checkpoint. *at: position among the given.
static void set_shape(ot__input_shapes *s, const ot__compiled_model *program,
                      const ot__given *given, int i, int *at)
{
    const ot__input *input = &program->inputs[i];
    const ot_value *value = program->model->graph->inputs[i];
    const bool is_sequence = value->kind == OT_VALUE_SEQUENCE;

    switch (input->role) {
    case OT_ROLE_USER:
        if (is_sequence) {
            s->lengths[i] = given->lengths[input->i_user];
            s->sequences[i] = &given->shapes[*at];
        } else {
            s->tensors[i] = given->shapes[*at];
        }
        *at += given->lengths[input->i_user];
        break;
    case OT_ROLE_PARAMETER:
    case OT_ROLE_GRADIENT:
        s->tensors[i] = *ot__parameter_shape(input->parameter);
        break;
    case OT_ROLE_INPUT_GRADIENT:
        s->tensors[i] = given->shapes[input->i_user]; // of a tensor, as all are then
        break;
    case OT_ROLE_CONSTANT:
        s->tensors[i] = value->constant->shape;
        break;
    case OT_ROLE_LAZY_RESET:
    case OT_ROLE_LOSS_SCALE:
        s->tensors[i] = OT_SHAPE(1);
        break;
    case OT_ROLE_LEARNING_RATE:
    case OT_ROLE_STEP:
    case OT_ROLE_DIVISOR:
        s->tensors[i] = OT_SHAPE(input->n_numbers);
        break;
    default:
        s->lengths[i] = program->n_entries;
        s->sequences[i] = program->entry_shapes;
        break;
    }
}

// ---- plans ----

// Behind the inputs of the model come derived ones, none of them a sequence.
static ot_status input_shapes_extend(ot__input_shapes *s, const ot__compiled_model *program,
                                     ot__hoisted *hoisted)
{
    const size_t n = (size_t)program->n_inputs + 1, more = n + (size_t)hoisted->n;
    int *lengths = ot__alloc_zero(more, sizeof *lengths);
    const ot_shape **sequences = ot__alloc_zero(more, sizeof *sequences);

    if (lengths != NULL)
        memcpy(lengths, s->lengths, n * sizeof *lengths);
    if (sequences != NULL)
        memcpy(sequences, s->sequences, n * sizeof *sequences);
    ot__free(s->lengths);
    ot__free(s->sequences);
    s->lengths = lengths;
    s->sequences = sequences;
    s->hoisted = hoisted;
    return ot__made(lengths != NULL && sequences != NULL);
}

static ot_status lower_precision(const ot__compiled_model *program, ot__cached_plan *slot,
                                 ot__input_shapes *shapes)
{
    const size_t n_inputs = (size_t)program->n_inputs + 1;
    bool *is_parameter, *is_trained;
    ot_status st;

    slot->hoisted.first = program->n_inputs;
    shapes->hoisted = &slot->hoisted;
    if (program->narrow == OT_DTYPE_UNDEFINED)
        return OT_OK;
    is_parameter = ot__alloc_zero(n_inputs, sizeof *is_parameter);
    is_trained = ot__alloc_zero(n_inputs, sizeof *is_trained); // of the training model too
    st = ot__made(is_parameter != NULL && is_trained != NULL);
    for (int i = 0; st == OT_OK && i < program->n_inputs; i++) {
        is_parameter[i] = program->inputs[i].role == OT_ROLE_PARAMETER;
        is_trained[i] =
            is_parameter[i] && program->inputs[i].parameter->number >= 0 && !program->gathers;
    }
    OT_THEN(st, ot__pass_precision(slot->model, is_parameter, program->narrow));
    OT_THEN(st, ot__pass_hoist(slot->model, is_trained, &slot->hoisted));
    ot__free(is_parameter);
    ot__free(is_trained);
    return st == OT_OK ? input_shapes_extend(shapes, program, &slot->hoisted) : st;
}

// One plan under way: as long as it takes more than is granted, it is made anew, with more of the
// forward pass made again for the backward pass.
typedef struct planning {
    const ot__compiled_model *program;
    ot__planner planner;
    void *owner;
    ot__input_shapes shapes;
    ot__cached_plan *slot;
    int64_t reduction, fell; // bytes: what is wanted by making values again, and what that gives
    size_t excess, least;    // above what is granted: of this plan and of the best one
    ot__buf reason;          // why the best one is refused
} planning;

// The model for the shapes.
static ot_status specialise_model(planning *p)
{
    const ot__compiled_model *program = p->program;
    const int *outputs = program->user_outputs, n_outputs = program->n_user_outputs;
    ot_model **model = &p->slot->model;
    ot__recompute_regions regions = {0};
    // What is gathered for the forward pass is gone, and for the backward pass not there yet.
    const bool spares_readers = program->gathers && !ot__sums_are_late(program);

    OT_TRY(ot__model_clone(program->model, model));
    OT_TRY(ot__pass_specialize(*model, p->shapes.tensors, program->n_inputs));
    OT_TRY(ot__fuse_regions(*model));
    OT_TRY(lower_precision(program, p->slot, &p->shapes));
    OT_TRY(ot__pass_recompute_match(*model, &program->recompute, outputs, n_outputs, &regions));
    OT_TRY(ot__pass_fuse(*model));
    if (regions.n > 0 || p->reduction > 0)
        OT_TRY(ot__plan_sort((*model)->graph, p->shapes.lengths, p->shapes.sequences));
    OT_TRY(ot__pass_recompute_forced(*model, &regions, outputs, n_outputs));
    if (p->reduction > 0)
        OT_TRY(ot__pass_recompute_choose(*model, outputs, n_outputs, spares_readers, p->reduction,
                                         &p->fell));
    return ot__pass_recompute(*model, spares_readers);
}

static ot_status try_plan(planning *p)
{
    ot_model_destroy(p->slot->model);
    p->slot->model = NULL;
    p->excess = 0;
    OT_TRY(specialise_model(p));
    return p->planner(p->owner, p->program, p->slot->model->graph, &p->shapes, &p->excess,
                      &p->slot->plan);
}

static void keep_reason(planning *p)
{
    if (p->least > 0 && p->excess >= p->least)
        return;
    p->least = p->excess;
    ot__buf_deinit(&p->reason);
    p->reason = (ot__buf){0};
    ot__buf_text(&p->reason, ot_error_message());
}

// A plan that exceeds what is granted by some bytes is made again with as many less, as long as
// that helps.
static ot_status find_plan(planning *p)
{
    ot_status st = try_plan(p);
    int64_t fell = -1;

    for (int k = 0; k < MAX_PLANS && st == OT_ERR_NO_MEMORY && p->excess > 0; k++) {
        keep_reason(p);
        if (!p->program->may_recompute || p->fell == fell || p->excess > INT64_MAX / 2)
            break;
        fell = p->fell;
        p->reduction += (int64_t)p->excess;
        st = try_plan(p);
    }
    if (st == OT_ERR_NO_MEMORY && p->excess > 0 && p->fell > 0) {
        keep_reason(p);
        st = ot__error(OT_ERR_NO_MEMORY,
                       "%s; this is the least that was found with values made again in the "
                       "backward pass",
                       p->reason.data != NULL ? p->reason.data : "");
    }
    ot__buf_deinit(&p->reason);
    return st;
}

static ot_status build_cached(const ot__compiled_model *program, ot__planner planner, void *owner,
                              ot__cached_plan *slot)
{
    planning p = {.program = program, .planner = planner, .owner = owner, .slot = slot};
    ot_status st = given_copy(&program->given, program->n_user_inputs, &slot->given);
    int at = 0;

    OT_THEN(st, input_shapes_init(&p.shapes, program));
    for (int i = 0; st == OT_OK && i < program->n_inputs; i++)
        set_shape(&p.shapes, program, &slot->given, i, &at);
    OT_THEN(st, find_plan(&p));
    input_shapes_deinit(&p.shapes);
    return st;
}

ot_status ot__compiled_model_plan(ot__compiled_model *program, ot__planner planner, void *owner,
                                  ot__plan **out)
{
    ot__cached_plan made = {0}, *slot;
    ot_status st;

    *out = NULL;
    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        slot = &program->plans[k];
        if (slot->plan != NULL && slot->is_inside == program->is_inside &&
            is_equal(&slot->given, &program->given, program->n_user_inputs)) {
            slot->last_used = ++program->clock;
            *out = slot->plan;
            return OT_OK;
        }
    }
    st = build_cached(program, planner, owner, &made);
    if (st != OT_OK) {
        ot__cached_plan_deinit(&made);
        return st;
    }
    program->recompute.warns = false;
    slot = oldest(program);
    if (slot->plan == program->paused)
        program->paused = NULL;
    ot__cached_plan_deinit(slot);
    *slot = made;
    slot->is_inside = program->is_inside;
    slot->last_used = ++program->clock;
    *out = slot->plan;
    return OT_OK;
}

const ot__hoisted *ot__compiled_model_hoisted(const ot__compiled_model *program,
                                              const ot__plan *plan)
{
    static const ot__hoisted none = {0};

    for (int k = 0; k < OT_PLAN_CACHE; k++)
        if (program->plans[k].plan == plan)
            return &program->plans[k].hoisted;
    return &none;
}

const ot_model *ot__session_step_model(const ot_session *session)
{
    const ot__cached_plan *latest = NULL;

    for (int k = 0; k < OT_PLAN_CACHE; k++) {
        const ot__cached_plan *slot = &session->training.plans[k];

        if (slot->plan != NULL && (latest == NULL || slot->last_used > latest->last_used))
            latest = slot;
    }
    return latest != NULL ? latest->model : NULL;
}

// Where it is given out in another type, the value that was computed has the output's name still.
ot_dtype ot__session_computed_in(const ot_session *session, const char *output)
{
    const ot_model *model = ot__session_step_model(session);
    const ot_value *value = model != NULL ? ot__graph_find(model->graph, output) : NULL;

    return value != NULL ? value->dtype : OT_DTYPE_UNDEFINED;
}
