// SPDX-License-Identifier: Apache-2.0
// The four artifacts of a forward model.
#include <string.h>

#include "artifacts/training_model.h"

// ---- checkpoint ----

static ot_status add_parameter(ot_artifacts *artifacts, const ot_model *model,
                               const ot__candidate *item)
{
    const ot_value *value = item->value;
    ot__parameter *parameter;
    ot_tensor *copy;

    if (value->constant->dtype == OT_STRING)
        return ot__error(OT_ERR_UNSUPPORTED, "'%s' holds strings, which no checkpoint keeps",
                         value->name);
    OT_TRY(ot__constant_clone(model, value->constant, &copy));
    OT_TRY(ot__ckpt_add(artifacts->checkpoint, value->name, copy, item->role == OT_ROLE_TRAINABLE,
                        &parameter));
    if (value->tensor_doc) {
        parameter->doc = ot__strdup(value->tensor_doc);
        OT_TRY(ot__made(parameter->doc));
    }
    artifacts->parameter_order[artifacts->n_parameters] =
        ot__arena_strdup(artifacts->arena, value->name);
    OT_TRY(ot__made(artifacts->parameter_order[artifacts->n_parameters]));
    artifacts->n_parameters++;
    return OT_OK;
}

static ot_status fill_checkpoint(ot_artifacts *artifacts, const ot__candidates *c)
{
    OT_TRY(ot_checkpoint_create(&artifacts->checkpoint));
    artifacts->parameter_order =
        ot__arena_alloc(artifacts->arena, (size_t)(c->n + 1) * sizeof(const char *));
    OT_TRY(ot__made(artifacts->parameter_order));
    for (int i = 0; i < c->n; i++)
        if (c->items[i].role != OT_ROLE_CONSTANT)
            OT_TRY(add_parameter(artifacts, c->graph->model, &c->items[i]));
    return OT_OK;
}

// ---- optimizer ----

// The element type of all that train; undefined: nothing does.
static ot_status trained_type(const ot__candidates *c, ot_dtype *dtype)
{
    *dtype = OT_DTYPE_UNDEFINED;
    for (int i = 0; i < c->n; i++) {
        const ot_value *value = c->items[i].value;

        if (c->items[i].role != OT_ROLE_TRAINABLE)
            continue;
        if (*dtype == OT_DTYPE_UNDEFINED)
            *dtype = value->dtype;
        if (value->dtype != *dtype)
            return ot__error(OT_ERR_UNSUPPORTED,
                             "parameter '%s' is %s, but others are %s: an optimizer takes one type",
                             value->name, ot_dtype_name(value->dtype), ot_dtype_name(*dtype));
    }
    return OT_OK;
}

// Groups of what does not train change nothing.
static ot_status note_idle_groups(ot__forward *forward, const ot_optimizer_options *options)
{
    const char *names;

    OT_TRY(ot__optimizer_idle_names(options, &forward->candidates, &names));
    if (names == NULL)
        return OT_OK;
    return ot__forward_note(
        forward, OT_LOG_WARNING,
        ot__arena_printf(forward->model->arena,
                         "groups of the optimizer name %s, of which nothing trains", names));
}

static ot_status generate_optimizer(ot_artifacts *artifacts, ot__forward *forward,
                                    const ot_optimizer_options *options)
{
    ot__optimizer_wiring wiring = forward->wiring;
    ot_dtype dtype;

    OT_TRY(trained_type(&forward->candidates, &dtype));
    if (dtype == OT_DTYPE_UNDEFINED && options->name == NULL)
        return OT_OK;
    if (dtype == OT_DTYPE_UNDEFINED)
        return ot__error(OT_ERR_INVALID, "an optimizer for a model without trainable parameters");
    wiring.candidates = &forward->candidates;
    OT_TRY(ot__optimizer_model(options, &wiring, dtype, ot__model_opset(forward->model, ""),
                               &artifacts->optimizer));
    return note_idle_groups(forward, options);
}

// ---- operators of others ----

// The files are complete, but training from them takes a runtime that knows these.
static ot_status warn_of_foreign(const ot_model *model)
{
    ot__buf lines = {0};
    ot_status st = ot__pass_unknown_operators(model, &lines);

    // Every line ends with a line feed.
    for (char *line = lines.data, *next; st == OT_OK && line && *line; line = next) {
        next = ot__cut(line, '\n');
        ot__log(OT_LOG_WARNING, "operator %s is unknown here and passed through", line);
    }
    ot__buf_deinit(&lines);
    return st;
}

// ---- notes ----

static ot_status keep_notes(ot_artifacts *artifacts, const ot__forward *forward)
{
    artifacts->notes =
        ot__arena_alloc(artifacts->arena, (size_t)(forward->n_notes + 1) * sizeof *forward->notes);
    OT_TRY(ot__made(artifacts->notes));
    for (int i = 0; i < forward->n_notes; i++) {
        const ot__note *note = &forward->notes[i];
        const char *text = ot__arena_strdup(artifacts->arena, note->text);

        OT_TRY(ot__made(text));
        artifacts->notes[artifacts->n_notes++] = (ot__note){note->level, text};
        ot__log(note->level, "%s", text);
    }
    return OT_OK;
}

// ---- the whole ----

// Sessions take a model over as it is: prepared where all its operators are known.
static ot_status seal(ot_model *model)
{
    if (!model)
        return OT_OK;
    OT_TRY(ot__model_align_constants(model));
    ot__pass_mark_prepared(model);
    model->is_final = true;
    return OT_OK;
}

static ot_status finish_artifacts(ot__forward *forward, const ot_artifacts_options *options,
                                  const ot_model *original, ot_artifacts *artifacts)
{
    if (original)
        OT_TRY(ot__loss_take(artifacts, forward, original, options));
    OT_TRY(generate_optimizer(artifacts, forward, options->optimizer));
    OT_TRY(fill_checkpoint(artifacts, &forward->candidates));
    OT_TRY(ot__parameters_to_inputs(forward));
    OT_TRY(ot__model_align_constants(forward->model)); // both models have the same ones
    OT_TRY(ot__eval_model(forward->model, &forward->given, &artifacts->eval));
    // Models that are exported come of it, trained as nobody knows here.
    OT_TRY(ot__record_drop(artifacts->eval));
    OT_TRY(ot__training_model(forward, options));
    OT_TRY(options->unrecorded ? ot__record_drop(forward->model)
                               : ot__model_drop_metadata(forward->model, OT_METADATA_LOSS));
    if (!options->unrecorded)
        OT_TRY(ot__loss_write(forward->model, artifacts->loss_terms, artifacts->n_loss_terms));
    OT_TRY(warn_of_foreign(forward->model));
    OT_TRY(keep_notes(artifacts, forward));
    artifacts->ort_format = options->ort_format != 0;
    artifacts->training = forward->model;
    forward->model = NULL;
    OT_TRY(seal(artifacts->training));
    OT_TRY(seal(artifacts->eval));
    return seal(artifacts->optimizer);
}

ot_status ot__artifacts_finish(ot__forward *forward, const ot_artifacts_options *options,
                               const ot_model *original, ot_artifacts **out)
{
    ot_artifacts *artifacts;
    ot_status st;

    *out = NULL;
    OT_TRY(ot__artifacts_create(&artifacts));
    st = finish_artifacts(forward, options, original, artifacts);
    return OT_HAND_OUT(st, out, artifacts, ot_artifacts_destroy);
}

ot_status ot__artifacts_generate(const ot_model *model, const ot_artifacts_options *options,
                                 const ot__optimizer_wiring *wiring, ot_artifacts **out)
{
    ot__options_taken taken;
    ot__forward forward = {0};
    ot_status st;

    *out = NULL;
    st = ot__options_take(options, &taken);
    OT_THEN(st, ot__forward_build(model, &taken.options, OT_FOREIGN_CARRIED, &forward));
    if (wiring)
        forward.wiring = *wiring;
    OT_THEN(st, ot__artifacts_finish(&forward, &taken.options, model, out));
    ot__forward_deinit(&forward);
    ot__options_drop(&taken);
    ot__memory_trim(); // a model of many small tensors was taken apart, copied and tried
    return st;
}

ot_status ot_artifacts_generate(const ot_model *model, const ot_artifacts_options *options,
                                ot_artifacts **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(OT_GIVEN(model));
    return ot__artifacts_generate(model, options, NULL, out);
}
