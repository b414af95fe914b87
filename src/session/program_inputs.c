// SPDX-License-Identifier: Apache-2.0
// What the inputs and outputs of a program stand for. The format of artifacts knows them by their
// names only.
#include <string.h>

#include "session/session_internal.h"

#define SUFFIX_GRADIENT "_grad"

static const char *const gradient_suffixes[] = {OT_SUFFIX_BUFFER, OT_SUFFIX_ACCUMULATED,
                                                SUFFIX_GRADIENT};

// `name` without the suffix; NULL when it does not end so.
static const char *base_of(const ot__compiled_model *program, const char *name, const char *suffix)
{
    return ot__ends_with(name, suffix)
               ? ot__arena_strndup(program->arena, name, strlen(name) - strlen(suffix))
               : NULL;
}

static ot__parameter *find_gradient(const ot__compiled_model *program,
                                    const ot_checkpoint *checkpoint, const char *name)
{
    ot__parameter *p = NULL;

    for (size_t i = 0; p == NULL && i < OT_COUNT(gradient_suffixes); i++) {
        const char *base = base_of(program, name, gradient_suffixes[i]);

        p = base == NULL ? NULL : ot__ckpt_find(checkpoint, base);
    }
    return p;
}

// The user input that a gradient's buffer or output belongs to; NULL: none. `users`: by name.
static const ot__input *find_user_input(const ot__compiled_model *program, const ot__map *users,
                                        const char *name)
{
    const ot__input *input = NULL;

    for (size_t i = 0; input == NULL && i < 2; i++) { // not the last one
        const char *base = base_of(program, name, gradient_suffixes[i]);

        input = base == NULL ? NULL : ot__map_get(users, base);
    }
    return input;
}

// Type and shape of what is in the checkpoint against what the model declares.
static ot_status check_parameter(const ot__compiled_model *program, const ot_checkpoint *checkpoint,
                                 const ot_value *value, const ot__parameter *p)
{
    const ot_tensor *t = p->value;

    if (t == NULL || value->kind != OT_VALUE_TENSOR)
        return ot__error(OT_ERR_INVALID, "%s: input '%s' is not the tensor of that name",
                         program->what, value->name);
    if (t->dtype == value->dtype && (!value->has_shape || checkpoint->is_nominal ||
                                     ot__shape_may_equal(ot__parameter_shape(p), &value->shape)))
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "%s: input '%s' is %s%s, but %s%s in the checkpoint",
                     program->what, value->name, ot_dtype_name(value->dtype),
                     value->has_shape ? OT_DIMS_TEXT(program->model, &value->shape) : "",
                     ot_dtype_name(t->dtype),
                     checkpoint->is_nominal ? "" : OT_SHAPE_TEXT(ot__parameter_shape(p)));
}

// Inputs that the session feeds itself, one number each.
static const struct {
    const char *name;
    ot_dtype dtype;
    ot__input_role role;
} number_rows[] = {
    {OT_NAME_LAZY_RESET, OT_BOOL, OT_ROLE_LAZY_RESET},
    {OT_NAME_LOSS_SCALE, OT_F32, OT_ROLE_LOSS_SCALE},
};

// OT_ROLE_USER: it is none of them.
static ot_status find_number(const ot__compiled_model *program, const ot_value *value,
                             ot__input_role *role)
{
    const ot_shape one = OT_SHAPE(1);

    *role = OT_ROLE_USER;
    for (size_t i = 0; i < OT_COUNT(number_rows); i++) {
        if (strcmp(value->name, number_rows[i].name) != 0)
            continue;
        if (value->dtype != number_rows[i].dtype ||
            (value->has_shape && !ot__shape_equal(&value->shape, &one)))
            return ot__error(OT_ERR_INVALID, "%s: input '%s' must be %s[1]", program->what,
                             value->name, ot_dtype_name(number_rows[i].dtype));
        *role = number_rows[i].role;
    }
    return OT_OK;
}

static ot_status sort_input(ot__compiled_model *program, const ot_checkpoint *checkpoint,
                            const ot_value *value, ot__input *input)
{
    input->parameter = ot__ckpt_find(checkpoint, value->name);
    if (input->parameter != NULL) {
        input->role = OT_ROLE_PARAMETER;
        return check_parameter(program, checkpoint, value, input->parameter);
    }
    if (value->constant != NULL) {
        input->role = OT_ROLE_CONSTANT;
        return OT_OK;
    }
    OT_TRY(find_number(program, value, &input->role));
    if (input->role != OT_ROLE_USER)
        return OT_OK;
    input->parameter = find_gradient(program, checkpoint, value->name);
    if (input->parameter != NULL) {
        if (!input->parameter->trainable)
            return ot__error(OT_ERR_INVALID,
                             "%s: input '%s' is the gradient of a parameter that is frozen in the "
                             "checkpoint",
                             program->what, value->name);
        input->role = OT_ROLE_GRADIENT;
        return check_parameter(program, checkpoint, value, input->parameter);
    }
    input->role =
        ot__ends_with(value->name, OT_SUFFIX_BUFFER) ? OT_ROLE_INPUT_GRADIENT : OT_ROLE_USER;
    return OT_OK;
}

// Once the user inputs are known.
static ot_status find_inputs_of_gradients(const ot__compiled_model *program, const ot__map *users)
{
    const ot_graph *g = program->model->graph;

    for (int i = 0; i < program->n_inputs; i++) {
        ot__input *input = &program->inputs[i];
        const ot_value *value = g->inputs[i], *of;
        const ot__input *user;

        if (input->role != OT_ROLE_INPUT_GRADIENT)
            continue;
        user = find_user_input(program, users, value->name);
        if (user == NULL)
            return ot__error(OT_ERR_INVALID,
                             "%s: input '%s' is a gradient buffer, but there is no such parameter "
                             "in the checkpoint and no such input",
                             program->what, value->name);
        input->i_user = user->i_user;
        of = ot__user_input(program, input->i_user);
        if (value->kind != OT_VALUE_TENSOR || value->dtype != of->dtype)
            return ot__error(OT_ERR_INVALID, "%s: input '%s' is %s, but '%s' is %s", program->what,
                             value->name, ot_dtype_name(value->dtype), of->name,
                             ot_dtype_name(of->dtype));
    }
    return OT_OK;
}

static void add_user_input(ot__compiled_model *program, int i)
{
    program->inputs[i].i_user = program->n_user_inputs;
    program->user_inputs[program->n_user_inputs++] = i;
}

static ot_status sort_program_inputs(ot__compiled_model *program, const ot_checkpoint *checkpoint,
                                     ot__map *users)
{
    const ot_graph *g = program->model->graph;

    for (int i = 0; i < g->n_inputs; i++) {
        const ot_value *value = g->inputs[i];

        OT_TRY(sort_input(program, checkpoint, value, &program->inputs[i]));
        if (program->inputs[i].role != OT_ROLE_USER)
            continue;
        if (value->kind != OT_VALUE_TENSOR)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: input '%s' is not a tensor", program->what,
                             value->name);
        add_user_input(program, i);
        OT_TRY(ot__made(ot__map_put(users, value->name, &program->inputs[i])));
    }
    return find_inputs_of_gradients(program, users);
}

static ot_status sort_outputs(ot__compiled_model *program, const ot_checkpoint *checkpoint,
                              const ot__map *users)
{
    const ot_graph *g = program->model->graph;

    program->user_outputs =
        ot__arena_alloc(program->arena, ((size_t)g->n_outputs + 1) * sizeof(int));
    OT_TRY(ot__made(program->user_outputs != NULL));
    for (int i = 0; i < g->n_outputs; i++)
        if (find_gradient(program, checkpoint, g->outputs[i]->name) == NULL &&
            find_user_input(program, users, g->outputs[i]->name) == NULL)
            program->user_outputs[program->n_user_outputs++] = i;
    if (program->n_user_outputs > OT_SESSION_OUTPUTS)
        return ot__error(OT_ERR_UNSUPPORTED, "%s: %d outputs, at most %d are handed out",
                         program->what, program->n_user_outputs, OT_SESSION_OUTPUTS);
    return OT_OK;
}

// What the model has inside would be used instead of what is trained.
static ot_status check_initializers(const ot__compiled_model *program,
                                    const ot_checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const char *name = checkpoint->parameters[i]->name;
        const ot_value *value = ot__graph_find(program->model->graph, name);

        if (value != NULL && value->constant != NULL)
            return ot__error(OT_ERR_INVALID,
                             "%s: parameter '%s' of the checkpoint is an initializer too",
                             program->what, name);
    }
    return OT_OK;
}

// The user's tensors are one each.
static ot_status expect_tensors(ot__compiled_model *program)
{
    OT_TRY(ot__compiled_model_reserve(program, program->n_user_inputs));
    for (int i = 0; i < program->n_user_inputs; i++)
        program->given.lengths[i] = 1;
    program->given.n_shapes = program->n_user_inputs;
    return OT_OK;
}

ot_status ot__compiled_model_sort(ot__compiled_model *program, const ot_checkpoint *checkpoint)
{
    ot__map users = {0};
    ot_status st = check_initializers(program, checkpoint);

    OT_THEN(st, sort_program_inputs(program, checkpoint, &users));
    OT_THEN(st, sort_outputs(program, checkpoint, &users));
    ot__map_deinit(&users);
    return st == OT_OK ? expect_tensors(program) : st;
}

ot_status ot__compiled_model_sort_by_hand(ot__compiled_model *program)
{
    const ot_graph *g = program->model->graph;

    for (int i = 0; i < g->n_inputs; i++) {
        if (g->inputs[i]->constant != NULL)
            program->inputs[i].role = OT_ROLE_CONSTANT;
        else
            add_user_input(program, i);
    }
    return OT_OK;
}
