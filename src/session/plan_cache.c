// SPDX-License-Identifier: Apache-2.0
// Plans by the shapes of the inputs. A new set of shapes specialises and fuses a copy of the model;
// the plan used longest ago makes room. Where elements decide on shapes, such a copy may be a
// question: its plan is kept likewise, and computes in each step what the next one is found by.
#include <string.h>

#include "autodiff/autodiff.h"
#include "session/session_internal.h"

enum { MAX_PLANS = 8 }; // that are made to keep below a ceiling

static ot__cached_plan *oldest(ot__cached_plan *slots, int n)
{
    ot__cached_plan *found = &slots[0];

    for (int k = 0; k < n; k++) {
        ot__cached_plan *slot = &slots[k];

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
    const ot__plan_owner *owner;
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
    const ot__given *given = &p->slot->given;
    const ot__answers answers = {(const ot_tensor *const *)given->answers, given->n_answers,
                                 ot__autodiff_late};
    ot__recompute_regions regions = {0};
    // What is gathered for the forward pass is gone, and for the backward pass not there yet.
    const bool spares_readers = program->gathers && !ot__sums_are_late(program);

    OT_TRY(ot__model_clone(program->model, model));
    OT_TRY(ot__pass_specialize_by(*model, p->shapes.tensors, program->n_inputs, &answers,
                                  &p->slot->question));
    if (p->slot->question != NULL)
        return ot__pass_fuse(*model);
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
    if (p->slot->question == NULL)
        return p->owner->plan(p->owner->owner, p->program, p->slot->model->graph, &p->shapes,
                              &p->excess, &p->slot->plan);
    return p->owner->question(p->owner->owner, p->program, p->slot->model->graph, &p->shapes,
                              &p->excess, &p->slot->plan);
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
        if (p->slot->question != NULL || !p->program->may_recompute || p->fell == fell ||
            p->excess > INT64_MAX / 2)
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

static ot_status build_cached(const ot__compiled_model *program, const ot__plan_owner *owner,
                              ot__cached_plan *slot)
{
    planning p = {.program = program, .owner = owner, .slot = slot};
    ot_status st = ot__given_copy(&program->given, program->n_user_inputs, &slot->given);
    int at = 0;

    OT_THEN(st, input_shapes_init(&p.shapes, program));
    for (int i = 0; st == OT_OK && i < program->n_inputs; i++)
        set_shape(&p.shapes, program, &slot->given, i, &at);
    OT_THEN(st, find_plan(&p));
    input_shapes_deinit(&p.shapes);
    return st;
}

static ot__cached_plan *find_cached(ot__compiled_model *program, ot__cached_plan *slots, int n)
{
    for (int k = 0; k < n; k++) {
        ot__cached_plan *slot = &slots[k];

        if (slot->plan == NULL || slot->is_inside != program->is_inside ||
            !ot__given_equal(&slot->given, &program->given, program->n_user_inputs))
            continue;
        slot->last_used = ++program->clock;
        return slot;
    }
    return NULL;
}

static ot__cached_plan *keep_cached(ot__compiled_model *program, ot__cached_plan *made)
{
    ot__cached_plan *slot = made->question != NULL ? oldest(program->questions, OT_QUESTION_CACHE)
                                                   : oldest(program->plans, OT_PLAN_CACHE);

    if (slot->plan == program->paused)
        program->paused = NULL;
    ot__cached_plan_deinit(slot);
    *slot = *made;
    slot->is_inside = program->is_inside;
    slot->last_used = ++program->clock;
    return slot;
}

// A plan, or the next question.
static ot_status make_cached(ot__compiled_model *program, const ot__plan_owner *owner,
                             ot__cached_plan **out)
{
    ot__cached_plan made = {0};
    const ot_status st = build_cached(program, owner, &made);

    if (st != OT_OK) {
        ot__cached_plan_deinit(&made);
        return st;
    }
    if (made.question == NULL)
        program->recompute.warns = false;
    *out = keep_cached(program, &made);
    return OT_OK;
}

static ot_status take_answers(ot__given *given, ot__plan *plan, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        ot_tensor *answer = NULL;
        const ot_arg *y = ot__plan_output(plan, i);

        if (y->dtype == OT_STRING) {
            OT_TRY(ot__output_take(plan, i, &answer));
        } else {
            OT_TRY(ot_tensor_create(y->dtype, &y->shape, &answer));
            if (answer->n_bytes > 0)
                memcpy(answer->data, y->data, answer->n_bytes);
        }
        OT_TRY(ot__given_add_answer(given, answer));
    }
    return OT_OK;
}

static ot_status answer_question(ot__compiled_model *program, const ot__plan_owner *owner,
                                 const ot__cached_plan *question)
{
    const int n_outputs = question->model->graph->n_outputs;

    if (!program->given.has_tensors || owner->answer == NULL)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: only a step has them", question->question);
    for (int i = 0; i < n_outputs; i++)
        ot__plan_bind_output(question->plan, i, NULL);
    OT_TRY(owner->answer(owner->owner, program, question->plan));
    return take_answers(&program->given, question->plan, n_outputs);
}

ot_status ot__compiled_model_plan(ot__compiled_model *program, const ot__plan_owner *owner,
                                  ot__plan **out)
{
    ot__cached_plan *found;

    *out = NULL;
    ot__given_forget_answers(&program->given);
    for (;;) { // each question leaves a node less whose shape is open
        found = find_cached(program, program->plans, OT_PLAN_CACHE);
        if (found == NULL)
            found = find_cached(program, program->questions, OT_QUESTION_CACHE);
        if (found == NULL)
            OT_TRY(make_cached(program, owner, &found));
        if (found->question == NULL)
            break;
        OT_TRY(answer_question(program, owner, found));
    }
    *out = found->plan;
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
