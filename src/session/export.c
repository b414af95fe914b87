// SPDX-License-Identifier: Apache-2.0
// The trained model: the eval model cut to some of its values, with the parameters inside.
#include <string.h>

#include "session/ranks.h"

// Types of values inside a file's graph need not be there, those of outputs must.
static void take_type(const ot_model *from, ot_model *to, ot_value *value)
{
    const ot_value *known = ot__graph_find(from->graph, value->name);
    ot_shape shape;

    if (known == NULL || known->kind != OT_VALUE_TENSOR)
        return;
    shape = known->shape;
    for (int k = 0; known->has_shape && k < shape.ndim; k++)
        if (!ot__dim_is_number(shape.dim[k]))
            shape.dim[k] = ot__dim_symbol(to, ot__dim_name(from, shape.dim[k]));
    value->kind = OT_VALUE_TENSOR;
    ot__value_set(value, known->dtype, known->has_shape ? &shape : NULL);
}

static ot_status export_set_outputs(const ot__compiled_model *program, ot_model *model,
                                    const char *const *names, int n_names)
{
    ot_graph *g = model->graph;

    ot__graph_clear_outputs(g);
    for (int i = 0; i < n_names; i++) {
        const char *name = names[i] == NULL ? "" : names[i];
        ot_value *value = ot__graph_find(g, name);

        if (value == NULL) // those of the program are whole
            return ot__graph_no_value(program->model->graph, name,
                                      "the eval model computes no value '%s'", name);
        if (value->producer == NULL)
            return ot__error(OT_ERR_NOT_FOUND, "the eval model computes no value '%s'", name);
        if (value->is_output)
            return ot__error(OT_ERR_INVALID, "output '%s' is named twice", name);
        take_type(program->model, model, value);
        OT_TRY(ot__made(ot__graph_add_output(g, value)));
    }
    return OT_OK;
}

// How the parameters get into the model.
typedef ot_status (*embedding)(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out);

static ot_status by_copy(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out)
{
    const ot_tensor *shown = ot__ckpt_shown(checkpoint, p);

    OT_TRY(ot_tensor_create(shown->dtype, &shown->shape, out));
    ot__layout_convert((*out)->data, NULL, shown->data, p->layout, &(*out)->shape,
                       ot_dtype_size((*out)->dtype));
    return OT_OK;
}

static ot_status by_reference(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out)
{
    const ot_tensor *shown = ot__ckpt_shown(checkpoint, p);

    ot__ckpt_unpack(checkpoint, p);
    return ot_tensor_wrap(shown->dtype, &shown->shape, shown->data, shown->n_bytes, out);
}

// What an exported model is made from.
typedef struct source {
    const ot_model *model; // the eval model as given
    const ot__compiled_model *program;
    const ot_checkpoint *checkpoint;
    ot_dict *values; // whole ones of parameters that are cut over ranks
} source;

static ot_status embed(const source *from, ot_model *model, ot_value *value, ot__parameter *p,
                       embedding how)
{
    ot_tensor *tensor;

    if (value->constant != NULL)
        return ot__error(OT_ERR_INVALID, "parameter '%s' is an initializer of the eval model",
                         value->name);
    OT_TRY(ot__ckpt_shown_sharding(from->checkpoint, p) != NULL
               ? ot__session_take_value(from->values, p, &tensor)
               : how(from->checkpoint, p, &tensor));
    OT_TRY(ot__model_hold_tensor(model, tensor));
    return ot__made(ot__graph_add_initializer(model->graph, value, tensor));
}

// Inputs that are still read stay in their order; parameters become initializers.
static ot_status replace_inputs(const source *from, ot_model *model, embedding how)
{
    ot_graph *g = model->graph;
    ot__uses uses;
    ot_status st = ot__uses_build(g, &uses);
    int n = 0;

    for (int i = 0; i < g->n_inputs && st == OT_OK; i++) {
        ot_value *value = g->inputs[i];
        ot__parameter *p = ot__ckpt_find(from->checkpoint, value->name);
        const bool is_read = ot__uses_count(&uses, value) > 0 || value->is_output;

        if (is_read && p == NULL) {
            g->inputs[n++] = value;
            continue;
        }
        value->is_input = false;
        if (is_read)
            st = embed(from, model, value, p, how);
    }
    if (st == OT_OK)
        g->n_inputs = n;
    ot__uses_deinit(&uses);
    return st;
}

// ---- outputs that the model itself names, as that of a run's folder does: one a line ----

static ot_status split_lines(ot_model *model, const char *text, const char ***names, int *n_names)
{
    char *copy = ot__arena_strdup(model->arena, text);
    const char **list = ot__alloc_zero(ot__count_char(text, '\n') + 1, sizeof(*list));

    if (copy == NULL || list == NULL) {
        ot__free(list);
        return OT_ERR_NO_MEMORY;
    }
    *n_names = 0;
    for (char *at = copy, *end; at != NULL; at = end) {
        end = ot__cut(at, '\n');
        list[(*n_names)++] = at;
    }
    *names = list;
    return OT_OK;
}

// The names are the model's or the program's, the list is the caller's.
static ot_status usual_outputs(const ot__compiled_model *program, ot_model *model,
                               const char ***names, int *n_names)
{
    const char *stated = ot_model_metadata(model, OT_METADATA_OUTPUTS);

    return stated != NULL ? split_lines(model, stated, names, n_names)
                          : ot__export_outputs(program, names, n_names);
}

// ---- the exported model ----

static ot_status cut_export(const source *from, ot_model *model, const char *const *names,
                            int n_names, embedding how)
{
    const char **found = NULL;
    ot_status st = OT_OK;

    if (names == NULL) {
        st = usual_outputs(from->program, model, &found, &n_names);
        names = found;
    }
    OT_THEN(st, export_set_outputs(from->program, model, names, n_names));
    OT_THEN(st, ot__graph_prune(model->graph, NULL));
    OT_THEN(st, replace_inputs(from, model, how));
    OT_THEN(st, ot__branches_close(model));
    OT_THEN(st, ot__graph_verify(model->graph));
    ot__free(found);
    return st == OT_OK ? ot__model_drop_metadata(model, OT_METADATA_OUTPUTS) : st;
}

static ot_status export_from(const source *from, const char *const *output_names, int n_outputs,
                             embedding how, ot_model **out)
{
    ot_model *model;
    ot_status st;

    if (output_names != NULL && n_outputs < 1)
        return ot__error(OT_ERR_INVALID, "an exported model needs an output");
    OT_TRY(ot__model_clone(from->model, &model));
    st = cut_export(from, model, output_names, n_outputs, how);
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}

static ot_status export(ot_session *session, const char *const *output_names, int n_outputs,
                        embedding how, ot_model **out)
{
    const bool is_cut = ot__session_cuts_shown(session);
    source from = {session->eval_source, &session->eval, session->checkpoint, NULL};
    ot_status st;

    if (session->eval.model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no eval model to export");
    OT_TRY(ot__session_check_values(session));
    if (!is_cut)
        OT_TRY(ot__ckpt_check_whole(session->checkpoint, session->checkpoint->shows_averages));
    st = ot__session_gather_shown(session, &from.values);
    if (st == OT_OK && (!is_cut || ot__session_is_root(session)))
        st = export_from(&from, output_names, n_outputs, how, out);
    ot_dict_destroy(from.values);
    return is_cut ? ot__session_agree(session, st, "export") : st;
}

ot_status ot_session_export(ot_session *session, const char *const *output_names, int n_outputs,
                            ot_model **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, export(session, output_names, n_outputs, by_copy, out));
}

ot_status ot_session_export_view(ot_session *session, const char *const *output_names,
                                 int n_outputs, ot_model **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, export(session, output_names, n_outputs, by_reference, out));
}

// Else all parameters would stay inputs. A checkpoint may lack some, which its training model did
// not have.
static ot_status check_is_of_model(const ot__compiled_model *program,
                                   const ot_checkpoint *checkpoint)
{
    const ot_graph *g = program->model->graph;

    if (checkpoint->n_parameters == 0 || program->n_user_inputs < g->n_inputs || g->n_inputs == 0)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "the checkpoint is another model's: none of its %d parameters ('%s', ...) is "
                     "among the %d inputs of the eval model ('%s', ...)",
                     checkpoint->n_parameters, checkpoint->parameters[0]->name, g->n_inputs,
                     g->inputs[g->n_inputs - 1]->name);
}

static ot_status export_model(const ot_model *eval, const ot_checkpoint *checkpoint,
                              const char *const *output_names, int n_outputs, ot_model **out)
{
    ot__compiled_model program;
    const source from = {eval, &program, checkpoint, NULL};
    ot_model *model;
    ot_status st;

    if (checkpoint->is_nominal)
        return ot__error(OT_ERR_STATE, "the checkpoint is nominal: its parameters have no values");
    OT_TRY(ot__ckpt_check_whole(checkpoint, checkpoint->shows_averages));
    OT_TRY(ot__model_acquire(eval, &model));
    st = ot__compiled_model_create(&program, "eval model", model, NULL);
    OT_THEN(st, ot__compiled_model_sort(&program, checkpoint));
    OT_THEN(st, check_is_of_model(&program, checkpoint));
    OT_THEN(st, export_from(&from, output_names, n_outputs, by_reference, out));
    ot__compiled_model_deinit(&program);
    return st;
}

ot_status ot_model_export_view(const ot_model *eval, ot_checkpoint *checkpoint,
                               const char *const *output_names, int n_outputs, ot_model **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(eval));
    OT_TRY(ot__ckpt_enter(checkpoint));
    return ot__ckpt_leave(checkpoint, export_model(eval, checkpoint, output_names, n_outputs, out));
}

ot_status ot__session_copy_eval_model(const ot_session *session, ot_model **out)
{
    *out = NULL;
    return session->eval_source == NULL ? OT_OK : ot__model_clone(session->eval_source, out);
}
