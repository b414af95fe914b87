// What a training model says about its loss: a line per term, "weight, loss, value, targets..."
// separated by tabs (a label that does not
// count as "cross-entropy ignoring -1"), so that a run over artifacts alone knows what is a target
// and what to measure.
#include <string.h>

#include "artifacts/training_model.h"

static const char *const loss_names[] = {
    [OT_LOSS_NONE] = "none",
    [OT_LOSS_CROSS_ENTROPY] = "cross-entropy",
    [OT_LOSS_MSE] = "mse",
    [OT_LOSS_L1] = "l1",
    [OT_LOSS_BCE_WITH_LOGITS] = "bce-with-logits",
    [OT_LOSS_CUSTOM] = "custom",
};

static bool is_input_of(const ot_graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i]->name, name) == 0)
            return true;
    return false;
}

static void say_name(ot__buf *text, bool *is_clean, const char *name)
{
    *is_clean = *is_clean && strpbrk(name, "\t\n") == NULL;
    ot__buf_printf(text, "\t%s", name);
}

static void say_term(ot__buf *text, bool *is_clean, const ot__forward *forward,
                     const ot_graph *original, const ot_loss_options *term)
{
    const ot_graph *graph = forward->model->graph;
    const char *output = original->n_outputs > 0 ? original->outputs[0]->name : "";

    ot__buf_printf(text, "%.17g\t%s", term->factor, loss_names[term->loss]);
    if (term->loss == OT_LOSS_CROSS_ENTROPY && term->has_ignore_index)
        ot__buf_printf(text, " ignoring %" PRId64, term->ignore_index);
    if (term->loss != OT_LOSS_CUSTOM) {
        say_name(text, is_clean, term->input ? term->input : output);
        if (term->loss != OT_LOSS_NONE)
            say_name(text, is_clean, ot__loss_target(term));
    } else {
        say_name(text, is_clean, term->input ? term->input : "");
        for (int i = 0; i < graph->n_inputs; i++)
            if (!graph->inputs[i]->is_initializer && !is_input_of(original, graph->inputs[i]->name))
                say_name(text, is_clean, graph->inputs[i]->name);
    }
    ot__buf_text(text, "\n");
}

ot_status ot__loss_note(const ot__forward *forward, const ot_model *original,
                        const ot_artifacts_options *options, char **out)
{
    ot__buf text = {0};
    bool is_clean = true;
    ot_status st;

    *out = NULL;
    for (int i = 0; i < options->n_losses; i++)
        say_term(&text, &is_clean, forward, original->graph, &options->losses[i]);
    st = ot__buf_status(&text);
    // A name with a tab in it would be read as two: better no note than a wrong one.
    if (st == OT_OK && text.length > 0 && is_clean) {
        *out = ot__arena_strdup(forward->model->arena, text.data);
        st = *out ? OT_OK : OT_ERR_NO_MEMORY;
    }
    ot__buf_deinit(&text);
    return st;
}
