// SPDX-License-Identifier: Apache-2.0
// Sessions: making and checking them, and what can be asked of them.
#include <stdlib.h>
#include <string.h>

#include "session/state_dict.h"

static const double default_learning_rate = 0.001; // as ONNX Runtime training starts

// ---- one thread at a time ----

ot_status ot__session_enter(const ot_session *session)
{
    ot_status st;

    OT_TRY(ot__guard_enter(session, OT_KIND_SESSION));
    st = ot__ckpt_enter(session->checkpoint);
    if (st != OT_OK)
        ot__guard_leave(session);
    return st;
}

ot_status ot__session_leave(const ot_session *session, ot_status status)
{
    ot__guard_leave(session->checkpoint);
    ot__guard_leave(session);
    return status;
}

ot_status ot__session_enter_step(const ot_session *session)
{
    OT_TRY(ot__session_enter(session));
    if (!session->has_trainer)
        return OT_OK;
    return ot__session_leave(session, ot__error(OT_ERR_STATE,
                                                "the session belongs to a trainer, which makes its "
                                                "steps"));
}

// ---- checking ----

ot_status ot__session_check_values(const ot_session *session)
{
    if (session->checkpoint->is_nominal)
        return ot__error(OT_ERR_STATE, "the checkpoint is nominal: its parameters have no values");
    if (session->is_half_set)
        return ot__error(OT_ERR_STATE, "the session has a part of a state only: messages failed "
                                       "while it was set, so set one");
    if (session->is_half_updated)
        return ot__error(OT_ERR_STATE, "a part of the parameters has been updated: an update "
                                       "failed while it ran, so load a state");
    return OT_OK;
}

// Every trainable parameter of the checkpoint is trained by the model, or training would silently
// leave it out.
static ot_status check_trainable(const ot_session *session)
{
    const ot__compiled_model *program = &session->training;
    enum { IS_INPUT = 1, HAS_GRADIENT = 2 }; // in ot__parameter.number, which nobody uses yet
    bool has_reset = false, has_gradient = false;

    for (int i = 0; i < session->checkpoint->n_parameters; i++)
        session->checkpoint->parameters[i]->number = 0;
    for (int i = 0; i < program->n_inputs; i++) {
        ot__parameter *p = program->inputs[i].parameter;

        if (program->inputs[i].role == OT_ROLE_PARAMETER)
            p->number |= IS_INPUT;
        if (program->inputs[i].role == OT_ROLE_GRADIENT)
            p->number |= HAS_GRADIENT;
        has_reset = has_reset || program->inputs[i].role == OT_ROLE_LAZY_RESET;
        has_gradient = has_gradient || program->inputs[i].role == OT_ROLE_GRADIENT ||
                       program->inputs[i].role == OT_ROLE_INPUT_GRADIENT;
    }
    for (int i = 0; i < session->checkpoint->n_parameters; i++) {
        const ot__parameter *p = session->checkpoint->parameters[i];

        if (!p->trainable)
            continue;
        if ((p->number & IS_INPUT) == 0)
            return ot__error(OT_ERR_INVALID,
                             "training model: trainable parameter '%s' of the checkpoint is not "
                             "among its inputs",
                             p->name);
        if ((p->number & HAS_GRADIENT) == 0)
            return ot__error(OT_ERR_INVALID,
                             "training model: no input '%s%s' for the gradient of parameter '%s'",
                             p->name, OT_SUFFIX_BUFFER, p->name);
    }
    if (has_gradient && !has_reset)
        return ot__error(OT_ERR_INVALID, "training model: no input '%s'", OT_NAME_LAZY_RESET);
    return OT_OK;
}

// ---- state that belongs to a session ----

static ot_status list_parameters(ot_session *session)
{
    const ot__compiled_model *program = &session->training;

    session->parameters = ot__alloc_zero((size_t)program->n_inputs + 1, sizeof(ot__parameter *));
    OT_TRY(ot__made(session->parameters != NULL));
    for (int i = 0; i < session->checkpoint->n_parameters; i++) {
        session->checkpoint->parameters[i]->number = -1;
        session->checkpoint->parameters[i]->is_undone = false;
    }
    for (int i = 0; i < program->n_inputs; i++) {
        if (program->inputs[i].role != OT_ROLE_PARAMETER)
            continue;
        program->inputs[i].parameter->number = session->n_parameters;
        session->parameters[session->n_parameters++] = program->inputs[i].parameter;
    }
    return OT_OK;
}

ot_status ot__session_make_gradients(ot_session *session)
{
    for (int i = 0; i < session->n_parameters; i++) {
        ot__parameter *p = session->parameters[i];

        if (!p->trainable)
            continue;
        if (ot__ranks_cut_gradients(session)) {
            ot_tensor_destroy(p->gradient);
            p->gradient = NULL;
            continue;
        }
        if (p->gradient != NULL && ot__shape_equal(&p->gradient->shape, &p->value->shape) &&
            p->gradient->dtype == p->value->dtype) {
            if (!p->gradient_is_given && session->checkpoint->n_accumulated == 0)
                memset(p->gradient->data, 0, p->gradient->n_bytes);
            continue;
        }
        ot_tensor_destroy(p->gradient);
        OT_TRY(ot_tensor_create(p->value->dtype, &p->value->shape, &p->gradient));
    }
    return OT_OK;
}

// ---- life ----

ot_dtype ot__session_narrow(const ot_session_options *options)
{
    return options->precision == OT_PRECISION_BF16  ? OT_BF16
           : options->precision == OT_PRECISION_F16 ? OT_F16
                                                    : OT_DTYPE_UNDEFINED;
}

// Mixed precision is one of f32 and something narrower.
static ot_status check_session_precision(const ot_session *session)
{
    const ot_dtype narrow = ot__session_narrow(&session->options);

    for (int i = 0; i < session->n_parameters && narrow != OT_DTYPE_UNDEFINED; i++)
        if (session->parameters[i]->value->dtype == OT_F64)
            return ot__error(OT_ERR_UNSUPPORTED,
                             "parameter '%s' is f64, precision %s is for models of f32",
                             session->parameters[i]->name, ot_dtype_name(narrow));
    if (narrow != OT_DTYPE_UNDEFINED && !ot__products_take(narrow))
        ot__log(OT_LOG_INFO,
                "precision %s saves memory, but no time: this processor multiplies f32 (oneDNN "
                "multiplies bf16 on those with AVX512_BF16 or AMX)",
                ot_dtype_name(narrow));
    return OT_OK;
}

ot_status ot__session_options_take(const ot_session_options *options, ot_session_options *own,
                                   ot__plan_options *plan_options)
{
    const char *kernels = getenv("OT_KERNELS");

    OT_TRY(OT_OPTIONS_READ(ot_session_options, OT_SESSION_OPTIONS_INIT, options, own));
    if (own->n_threads < 0)
        return ot__error(OT_ERR_INVALID, "%d threads", own->n_threads);
    if ((own->recompute & ~(unsigned)OT_RECOMPUTE_ALL) != 0)
        return ot__error(OT_ERR_INVALID, "recompute is %u, expected a sum of 1, 2 and 4",
                         own->recompute);
    if (own->recompute_layers < 0)
        return ot__error(OT_ERR_INVALID, "recompute_layers is %d, expected at least 0",
                         own->recompute_layers);
    if (own->precision != OT_PRECISION_F32 && own->precision != OT_PRECISION_BF16 &&
        own->precision != OT_PRECISION_F16)
        return ot__error(OT_ERR_INVALID, "precision %d is unknown, expected f32, bf16 or f16",
                         (int)own->precision);
    ot__memory_admit(own->memory_max);
    *plan_options =
        (ot__plan_options){.n_threads = own->n_threads,
                           .reproducible = own->reproducible != 0,
                           .reference_only = own->reference_kernels != 0 ||
                                             (kernels != NULL && strcmp(kernels, "ref") == 0),
                           .borrow_block = true};
    return OT_OK;
}

static ot_model *take_artifacts(ot_model **model)
{
    ot_model *taken = *model;

    *model = NULL;
    return taken;
}

static ot_status make_program(ot_session *session, ot__compiled_model *program, const char *what,
                              ot_model *model)
{
    const bool syncs =
        program == &session->training && session->syncs_norms && session->ranks != NULL;

    OT_TRY(ot__compiled_model_create(program, what, model, syncs ? ot__fuse_sync_norm : NULL));
    program->narrow = ot__session_narrow(&session->options);
    return ot__compiled_model_sort(program, session->checkpoint);
}

static ot_status build_session(ot_session *session, ot__models *m)
{
    OT_TRY(
        make_program(session, &session->training, "training model", take_artifacts(&m->training)));
    session->training.may_recompute = true;
    session->training.recompute =
        (ot__recompute_options){.what = session->options.recompute,
                                .n_layers = session->options.recompute_layers,
                                .warns = true};
    OT_TRY(check_trainable(session));
    OT_TRY(list_parameters(session));
    OT_TRY(check_session_precision(session));
    OT_TRY(ot__undo_create(session));
    if (!session->checkpoint->is_nominal && !(m->without_gradients && session->ranks == NULL))
        OT_TRY(ot__session_make_gradients(session));
    session->eval.what = "eval model";
    if (m->eval != NULL) {
        ot_model *model;

        if (!m->eval->is_final)
            m->eval->is_final = true; // exported models are made of it
        session->eval_source = take_artifacts(&m->eval);
        OT_TRY(ot__model_acquire(session->eval_source, &model));
        OT_TRY(make_program(session, &session->eval, "eval model", model));
    }
    if (m->optimizer != NULL)
        OT_TRY(ot__optimizer_create(session, take_artifacts(&m->optimizer)));
    OT_TRY(ot__ranks_prepare(session));
    return ot__session_resume(session);
}

static void destroy_session(ot_session *session)
{
    ot__packing_leave(session);
    ot__compiled_model_deinit(&session->training);
    ot__compiled_model_deinit(&session->eval);
    ot__optimizer_deinit(&session->optimizer);
    ot__slices_deinit(session);
    ot__ranks_deinit(session);
    ot__undo_deinit(&session->undo);
    ot__derived_deinit(session);
    ot_model_destroy(session->eval_source);
    ot_dict_destroy(session->custom_hyper);
    ot__bytes_free(session->bytes);
    ot__free(session->parameters);
    ot__free_aligned(session->block);
    ot__free_aligned(session->guest_block);
    ot__guard_deinit(&session->guard);
    ot__free(session);
}

static ot_status create_session(ot__models *m, ot_checkpoint *checkpoint,
                                const ot_session_options *options,
                                const ot_parallel_options *parallel, ot_session **out)
{
    ot_session *session;
    ot_status st;
    int n_threads;

    if (checkpoint->session != NULL)
        return ot__error(OT_ERR_STATE, "another session works on the checkpoint");
    if (checkpoint->n_shardings > 0) // which a session has left
        OT_TRY(ot__ckpt_check_whole(checkpoint, true));
    session = ot__alloc_zero(1, sizeof *session);
    OT_TRY(ot__made(session != NULL));
    ot__dump_start();
    ot__guard_init(&session->guard, OT_KIND_SESSION);
    session->checkpoint = checkpoint;
    session->overwrite_gradients = true;
    session->learning_rate = default_learning_rate;
    session->loss_scale = 1;
    st = ot__session_options_take(options, &session->options, &session->plan_options);
    OT_THEN(st, ot__ranks_create(session, parallel));
    n_threads = ot__session_take_threads(session); // constants are folded
    OT_THEN(st, build_session(session, m));
    ot__parallel_set(n_threads);
    return OT_HAND_OUT(st, out, session, destroy_session);
}

static ot_status create_and_join(ot__models *m, ot_status st, ot_checkpoint *checkpoint,
                                 const ot_session_options *options, ot_session **out)
{
    ot_session *session = NULL;
    ot_parallel_options parallel;

    OT_TRY(ot__ranks_read(options, &parallel));
    OT_THEN(st, create_session(m, checkpoint, options, &parallel, &session));
    st = ot__ranks_join(&parallel, session, st);
    if (st != OT_OK) {
        if (session != NULL)
            destroy_session(session);
        return st;
    }
    for (int i = 0; i < checkpoint->n_parameters; i++)
        checkpoint->parameters[i]->gradient_is_given = false;
    checkpoint->session = session;
    *out = session;
    return OT_OK;
}

ot_status ot__session_create(ot__models *models, ot_status status, ot_checkpoint *checkpoint,
                             const ot_session_options *options, ot_session **out)
{
    const ot_status entered = ot__ckpt_enter(checkpoint);
    ot_status st = status != OT_OK ? status : entered;

    st = create_and_join(models, st, checkpoint, options, out);
    if (entered == OT_OK)
        st = ot__ckpt_leave(checkpoint, st);
    ot_model_destroy(models->training);
    ot_model_destroy(models->eval);
    ot_model_destroy(models->optimizer);
    return st;
}

void ot_session_destroy(ot_session *session)
{
    ot_checkpoint *checkpoint;

    if (session == NULL || ot__session_enter(session) != OT_OK)
        return;
    checkpoint = session->checkpoint;
    destroy_session(session);
    ot__guard_leave(checkpoint);
    ot__ckpt_release(checkpoint);
}

// ---- questions ----

uint64_t ot__session_counter(const ot_session *session)
{
    return session->counter;
}

bool ot__session_has_trainer(const ot_session *session)
{
    return session->has_trainer;
}

ot_checkpoint *ot_session_checkpoint(ot_session *session)
{
    return OT_IS_LIVE(session) ? session->checkpoint : NULL;
}

ot_status ot__session_check_mode(ot_mode mode)
{
    if (mode == OT_MODE_TRAIN || mode == OT_MODE_EVAL)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "mode %d is neither training nor evaluation", (int)mode);
}

static const ot__compiled_model *program_of(const ot_session *session, ot_mode mode)
{
    static const ot__compiled_model none = {.what = "the session"};

    if (!OT_IS_LIVE(session) || (mode != OT_MODE_TRAIN && mode != OT_MODE_EVAL))
        return &none;
    return mode == OT_MODE_TRAIN ? &session->training : &session->eval;
}

const ot_graph *ot__session_graph(const ot_session *session, ot_mode mode)
{
    const ot_model *model = program_of(session, mode)->model;

    return model ? model->graph : NULL;
}

const ot_graph *ot__session_optimizer_graph(const ot_session *session)
{
    const ot_model *model = session->optimizer.program.model;

    return model ? model->graph : NULL;
}

int ot_session_input_count(const ot_session *session, ot_mode mode)
{
    return program_of(session, mode)->n_user_inputs;
}

const char *ot_session_input_name(const ot_session *session, ot_mode mode, int index)
{
    const ot__compiled_model *program = program_of(session, mode);

    if (index < 0 || index >= program->n_user_inputs)
        return NULL;
    return ot__user_input(program, index)->name;
}

int ot_session_output_count(const ot_session *session, ot_mode mode)
{
    return program_of(session, mode)->n_user_outputs;
}

const char *ot_session_output_name(const ot_session *session, ot_mode mode, int index)
{
    const ot__compiled_model *program = program_of(session, mode);

    if (index < 0 || index >= program->n_user_outputs)
        return NULL;
    return program->model->graph->outputs[program->user_outputs[index]]->name;
}

ot_status ot_session_input_info(const ot_session *session, ot_mode mode, int index, ot_dtype *dtype,
                                ot_shape *shape)
{
    const char *name = ot_session_input_name(session, mode, index);

    OT_TRY(OT_GIVEN(session));
    OT_TRY(OT_GIVEN(dtype));
    OT_TRY(OT_GIVEN(shape));
    OT_TRY(ot__session_check_mode(mode));
    if (name == NULL)
        return ot__error(OT_ERR_NOT_FOUND, "%s: no input %d", program_of(session, mode)->what,
                         index);
    return ot_model_value_info(program_of(session, mode)->model, name, dtype, shape);
}

size_t ot_session_state_bytes(const ot_session *session)
{
    const ot_checkpoint *checkpoint = OT_IS_LIVE(session) ? session->checkpoint : NULL;
    size_t sum = 0;

    if (!OT_IS_LIVE(session))
        return 0;
    for (int i = 0; i < checkpoint->n_parameters; i++)
        sum += ot__parameter_bytes(checkpoint->parameters[i]);
    return sum + session->derived.n_bytes + ot__input_gradients_bytes(&session->training) +
           ot__slices_bytes(session);
}

size_t ot_session_plan_bytes(const ot_session *session)
{
    return OT_IS_LIVE(session) ? session->plan_bytes : 0;
}
