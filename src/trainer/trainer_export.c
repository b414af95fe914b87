// SPDX-License-Identifier: Apache-2.0
// The trained model: the forward model as it was given, with the parameters as they are now.
#include "trainer/trainer.h"

// ---- what the trainer keeps ----

static bool is_trained(const ot__parameter *p)
{
    return p != NULL && (p->trainable || p->is_undone);
}

// Values of parameters are the checkpoint's tensors, which a session changes in place. Those that
// it does change are the last initializers, in their order.
static ot_status refer_to_parameters(ot_graph *graph, const ot_checkpoint *checkpoint)
{
    const size_t n_list = (size_t)graph->n_initializers;
    ot_value **list = ot__arena_alloc(graph->model->arena, (n_list + 1) * sizeof(ot_value *));
    int n = 0;

    OT_TRY(ot__made(list));
    for (int is_last = 0; is_last < 2; is_last++)
        for (int i = 0; i < graph->n_initializers; i++) {
            ot_value *value = graph->initializers[i];
            const ot__parameter *p = ot__ckpt_find(checkpoint, value->name);

            if (is_trained(p) != is_last)
                continue;
            if (p != NULL)
                value->constant = p->value;
            list[n++] = value;
        }
    graph->initializers = list;
    graph->initializers_capacity = n;
    return OT_OK;
}

ot_status ot__trainer_keep_forward(ot_trainer *trainer, const ot_model *model)
{
    OT_TRY(ot__model_clone(model, &trainer->forward));
    OT_TRY(refer_to_parameters(trainer->forward->graph, ot_session_checkpoint(trainer->session)));
    return ot__model_drop_unused(trainer->forward);
}

// ---- what it gives ----

// The initializers are the parameters as they are now; of `values` those that are cut over ranks.
static ot_status refer_to_values(const ot_trainer *trainer, ot_dict *values)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);
    const ot_graph *graph = trainer->forward->graph;

    for (int i = 0; i < graph->n_initializers; i++) {
        ot_value *value = graph->initializers[i];
        ot__parameter *p = ot__ckpt_find(checkpoint, value->name);

        if (p == NULL)
            continue;
        if (ot__ckpt_shown_sharding(checkpoint, p) != NULL && values != NULL) {
            OT_TRY(ot__session_look_up_value(values, p, &value->constant));
            continue;
        }
        ot__ckpt_unpack(checkpoint, p);
        value->constant = ot__ckpt_shown(checkpoint, p);
    }
    return OT_OK;
}

static ot_status copy_parameters(ot_model *model, const ot_checkpoint *checkpoint)
{
    for (int i = 0; i < model->graph->n_initializers; i++) {
        ot_value *value = model->graph->initializers[i];
        ot_tensor *copy;

        if (ot__ckpt_find(checkpoint, value->name) == NULL)
            continue;
        OT_TRY(ot_tensor_clone(value->constant, &copy));
        OT_TRY(ot__model_hold_tensor(model, copy));
        value->constant = copy;
    }
    return OT_OK;
}

static ot_status copy_forward(const ot_trainer *trainer, ot_model **out)
{
    ot_model *model;
    ot_status st;

    OT_TRY(ot__model_clone(trainer->forward, &model));
    st = copy_parameters(model, ot_session_checkpoint(trainer->session));
    return OT_HAND_OUT(st, out, model, ot_model_destroy);
}

// To a file, or as a model; where values are cut over ranks, of rank 0.
static ot_status export_forward(ot_trainer *trainer, const char *path, ot_model **out)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(trainer->session);
    const bool is_cut = ot__session_cuts_shown(trainer->session);
    ot_dict *values = NULL;
    ot_status st;

    if (!is_cut)
        OT_TRY(ot__ckpt_check_whole(checkpoint, checkpoint->shows_averages));
    if (trainer->forward == NULL)
        return ot__error(OT_ERR_STATE, "the trainer was made of artifacts or of a session and has "
                                       "no forward model: use ot_session_export()");
    st = ot__session_gather_shown(trainer->session, &values);
    if (!is_cut || ot__session_is_root(trainer->session)) {
        OT_THEN(st, refer_to_values(trainer, values));
        OT_THEN(st, path != NULL ? ot_model_save(trainer->forward, path, NULL)
                                 : copy_forward(trainer, out));
    }
    if (is_cut) {
        st = ot__session_agree(trainer->session, st, "export");
        (void)refer_to_values(trainer, NULL); // not to what goes now
    }
    ot_dict_destroy(values);
    return st;
}

ot_status ot_trainer_export(ot_trainer *trainer, ot_model **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, export_forward(trainer, NULL, out));
}

ot_status ot_trainer_save_as_onnx(ot_trainer *trainer, const char *path)
{
    OT_TRY(OT_GIVEN(path));
    OT_TRY(ot__trainer_enter(trainer));
    return ot__trainer_leave(trainer, export_forward(trainer, path, NULL));
}
