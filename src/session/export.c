// SPDX-License-Identifier: Apache-2.0
// The trained model: the eval model cut to some of its values, with the parameters inside.
#include <string.h>

#include "session/session_internal.h"

// Types of values inside a file's graph need not be there, those of outputs must.
static ot_status take_type(const ot_model *from, ot_model *to, ot_value *value)
{
    const ot_value *known = ot__graph_find(from->graph, value->name);
    ot_shape shape;

    if (known == NULL || known->kind != OT_VALUE_TENSOR)
        return OT_OK;
    shape = known->shape;
    for (int k = 0; known->has_shape && k < shape.ndim; k++)
        if (!ot__dim_is_number(shape.dim[k]))
            shape.dim[k] = ot__dim_symbol(to, ot__dim_name(from, shape.dim[k]));
    value->kind = OT_VALUE_TENSOR;
    ot__value_set(value, known->dtype, known->has_shape ? &shape : NULL);
    return OT_OK;
}

// The outputs of `model` are being replaced, those of the program are whole.
static ot_status unknown_output(const ot__program *program, const char *name)
{
    return ot__graph_no_value(program->model->graph, name, "the eval model computes no value '%s'",
                              name);
}

static ot_status set_outputs(const ot__program *program, ot_model *model, const char *const *names,
                             int n_names)
{
    ot_graph *g = model->graph;

    for (int i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = false;
    g->n_outputs = 0;
    for (int i = 0; i < n_names; i++) {
        ot_value *value = names[i] == NULL ? NULL : ot__graph_find(g, names[i]);

        if (value == NULL)
            return unknown_output(program, names[i] == NULL ? "" : names[i]);
        if (value->producer == NULL)
            return ot__error(OT_ERR_NOT_FOUND, "the eval model computes no value '%s'", names[i]);
        if (value->is_output)
            return ot__error(OT_ERR_INVALID, "output '%s' is named twice", names[i]);
        OT_TRY(take_type(program->model, model, value));
        if (!ot__graph_add_output(g, value))
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}

// How the parameters get into the model.
typedef ot_status (*embedding)(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out);

static ot_status by_copy(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out)
{
    (void)checkpoint;
    OT_TRY(ot_tensor_create(p->value->dtype, &p->value->shape, out));
    ot__form_convert((*out)->data, NULL, p->value->data, p->form, &(*out)->shape,
                     ot_dtype_size((*out)->dtype));
    return OT_OK;
}

static ot_status by_reference(const ot_checkpoint *checkpoint, ot__parameter *p, ot_tensor **out)
{
    ot__ckpt_unpack(checkpoint, p);
    return ot_tensor_wrap(p->value->dtype, &p->value->shape, p->value->data, p->value->n_bytes,
                          out);
}

static ot_status embed(const ot_checkpoint *checkpoint, ot_model *model, ot_value *value,
                       ot__parameter *p, embedding how)
{
    ot_tensor *tensor;

    if (value->constant != NULL)
        return ot__error(OT_ERR_INVALID, "parameter '%s' is an initializer of the eval model",
                         value->name);
    OT_TRY(how(checkpoint, p, &tensor));
    OT_TRY(ot__model_hold_tensor(model, tensor));
    return ot__graph_add_initializer(model->graph, value, tensor) ? OT_OK : OT_ERR_NO_MEMORY;
}

// Inputs that are still read stay in their order; parameters become initializers.
static ot_status replace_inputs(const ot_checkpoint *checkpoint, ot_model *model, embedding how)
{
    ot_graph *g = model->graph;
    ot__uses uses;
    ot_status st = ot__uses_build(g, &uses);
    int n = 0;

    for (int i = 0; i < g->n_inputs && st == OT_OK; i++) {
        ot_value *value = g->inputs[i];
        ot__parameter *p = ot__ckpt_find(checkpoint, value->name);
        const bool is_read = ot__uses_count(&uses, value) > 0 || value->is_output;

        if (is_read && p == NULL) {
            g->inputs[n++] = value;
            continue;
        }
        value->is_input = false;
        if (is_read)
            st = embed(checkpoint, model, value, p, how);
    }
    if (st == OT_OK)
        g->n_inputs = n;
    ot__uses_deinit(&uses);
    return st;
}

static ot_status cut(const ot_session *session, const char *const *names, int n_names,
                     embedding how, ot_model **out)
{
    ot_model *model;
    ot_status st;

    OT_TRY(ot__model_clone(session->eval_source, &model));
    st = set_outputs(&session->eval, model, names, n_names);
    if (st == OT_OK)
        st = ot__graph_prune(model->graph, NULL);
    if (st == OT_OK)
        st = replace_inputs(session->checkpoint, model, how);
    if (st == OT_OK)
        st = ot__graph_verify(model->graph);
    if (st != OT_OK) {
        ot_model_destroy(model);
        return st;
    }
    *out = model;
    return OT_OK;
}

static ot_status export(ot_session *session, const char *const *output_names, int n_outputs,
                        embedding how, ot_model **out)
{
    const char **found = NULL;
    ot_status st = OT_OK;

    if (session->eval.model == NULL)
        return ot__error(OT_ERR_STATE, "the session has no eval model to export");
    OT_TRY(ot__session_check_values(session));
    if (output_names != NULL && n_outputs < 1)
        return ot__error(OT_ERR_INVALID, "an exported model needs an output");
    if (output_names == NULL)
        st = ot__export_outputs(&session->eval, &found, &n_outputs);
    if (st == OT_OK)
        st = cut(session, output_names != NULL ? output_names : found, n_outputs, how, out);
    ot__free(found);
    return st;
}

ot_status ot_session_export(ot_session *session, const char *const *output_names, int n_outputs,
                            ot_model **out)
{
    OT_TRY(OT_GIVEN(out));
    *out = NULL;
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, export(session, output_names, n_outputs, by_copy, out));
}

ot_status ot_session_export_view(ot_session *session, const char *const *output_names,
                                 int n_outputs, ot_model **out)
{
    OT_TRY(OT_GIVEN(out));
    *out = NULL;
    OT_TRY(ot__session_enter(session));
    return ot__session_leave(session, export(session, output_names, n_outputs, by_reference, out));
}

ot_status ot__session_copy_eval_model(const ot_session *session, ot_model **out)
{
    *out = NULL;
    return session->eval_source == NULL ? OT_OK : ot__model_clone(session->eval_source, out);
}
