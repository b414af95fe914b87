// SPDX-License-Identifier: Apache-2.0
// Builders that users make: over a model or from nothing, until they are finished.
#include "artifacts/block.h"

#include <string.h>

#include "artifacts/training_model.h"

enum { IR_VERSION_OLDEST = 7 };

// ---- making ----

// The IR version that came with an opset: the oldest that may state it.
static int64_t ir_version_of(int64_t opset)
{
    static const struct {
        int64_t opset, ir_version;
    } rows[] = {{25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};

    for (size_t i = 0; i < OT_COUNT(rows); i++)
        if (opset >= rows[i].opset)
            return rows[i].ir_version;
    return IR_VERSION_OLDEST;
}

ot_status ot__block_describe(ot_model *model, int64_t opset)
{
    model->ir_version = ir_version_of(opset);
    model->producer_name = "orttraining";
    model->graph->name = "graph";
    OT_TRY(ot__model_set_opset(model, "com.microsoft", 1));
    return ot__model_set_opset(model, "", opset);
}

// The number behind "onnx::<token>::"; 0 for other names.
static int counted_number(const char *name)
{
    const char *number =
        ot__starts_with(name, "onnx::") ? strstr(name + strlen("onnx::"), "::") : NULL;
    int64_t value = 0;

    if (!number || !ot__parse_int(number + 2, &value) || value < 0 || value > INT32_MAX / 2)
        return 0;
    return (int)value;
}

// A model that blocks have built before has their names: count on.
static void count_names(ot_block *block)
{
    const ot_graph *graph = block->build.graph;
    size_t position = 0;
    const char *name;
    void *value;

    while (ot__map_next(&graph->values, &position, &name, &value))
        block->counter = OT_MAX(block->counter, counted_number(name));
    for (int n = 0; n < graph->n_nodes; n++)
        block->counter = OT_MAX(block->counter, counted_number(graph->nodes[n]->name));
}

static ot_status block_options(const ot_block_options *given, ot_block_options *out)
{
    OT_TRY(OT_OPTIONS_READ(ot_block_options, OT_BLOCK_OPTIONS_INIT, given, out));
    if (out->opset == 0)
        out->opset = ot__op_newest_opset;
    if (out->opset < OT_OP_BASE_OPSET || out->opset > ot__op_newest_opset)
        return ot__error(OT_ERR_UNSUPPORTED, "opset %" PRId64 ", expected %d to %d", out->opset,
                         (int)OT_OP_BASE_OPSET, ot__op_newest_opset);
    return OT_OK;
}

static ot_status open_empty(ot__forward *forward, int64_t opset)
{
    OT_TRY(ot__model_create(&forward->model));
    OT_TRY(ot__block_describe(forward->model, opset));
    return ot__candidates_collect(forward->model->graph, &forward->candidates);
}

static ot_status new_block(const ot_model *model, const ot_block_options *given, ot_block **out)
{
    ot_artifacts_options artifacts = OT_ARTIFACTS_OPTIONS_INIT;
    ot_block_options options;
    ot_block *block;
    ot_status st;

    OT_TRY(block_options(given, &options));
    block = ot__alloc_zero(1, sizeof *block);
    OT_TRY(ot__made(block));
    OT_ENTER(block);
    artifacts.seed = block->seed = options.seed;
    artifacts.prepare = OT_PREPARE_NONE; // what is built on a model counts on its names
    st = model ? ot__forward_open(model, &artifacts, OT_FOREIGN_CARRIED, &block->forward)
               : open_empty(&block->forward, options.opset);
    if (st == OT_OK) {
        block->build.graph = block->forward.model->graph;
        block->build.failed = ot__block_failed;
        count_names(block);
    }
    return OT_HAND_OUT(st, out, block, ot_block_destroy);
}

ot_status ot_block_create(const ot_model *model, const ot_block_options *options, ot_block **out)
{
    OT_TRY(OT_OUT(out));
    if (!model)
        return ot__error(OT_ERR_INVALID,
                         "the model is NULL; ot_block_create_empty() begins without one");
    OT_TRY(OT_GIVEN(model));
    return new_block(model, options, out);
}

ot_status ot_block_create_empty(const ot_block_options *options, ot_block **out)
{
    OT_TRY(OT_OUT(out));
    return new_block(NULL, options, out);
}

void ot_block_destroy(ot_block *block)
{
    if (!OT_ENDS(block))
        return;
    ot__forward_deinit(&block->forward);
    ot__free(block);
}

ot_status ot_block_status(const ot_block *block)
{
    if (!block)
        return ot__error(OT_ERR_INVALID, "the builder is NULL");
    OT_TRY(OT_GIVEN(block));
    if (block->build.status != OT_OK)
        return ot__error(block->build.status, "%s", block->message);
    return block->build.graph ? OT_OK : ot__error(OT_ERR_STATE, "the builder is finished");
}

// ---- what trains ----

void ot_block_requires_grad(ot_block *block, const char *name, int trainable)
{
    struct ot__block_wish wish = {.trains = trainable == OT_PARAMETER_TRAINABLE};
    ot__arena *arena;

    if (!ot__block_enter(block, "requires grad"))
        return;
    if (!name || (trainable != OT_PARAMETER_TRAINABLE && trainable != OT_PARAMETER_FROZEN)) {
        ot__build_note(
            &block->build,
            name ? ot__error(OT_ERR_INVALID, "%d is neither trainable nor frozen", trainable)
                 : ot__error(OT_ERR_INVALID, "a name is NULL"));
        return;
    }
    for (int i = 0; i < block->n_wishes; i++)
        if (strcmp(block->wishes[i].name, name) == 0) {
            block->wishes[i].trains = wish.trains;
            return;
        }
    arena = block->forward.model->arena;
    wish.name = ot__arena_strdup(arena, name);
    ot__build_made(&block->build,
                   wish.name && ot__arena_push(arena, &block->wishes, &block->wishes_capacity,
                                               &block->n_wishes, &wish, sizeof wish));
}

// The list of the options and the names of that kind.
static ot_status join_names(const ot_block *block, bool trains, const char *const **list, int *n)
{
    const size_t most = (size_t)*n + (size_t)block->n_wishes;
    const char **joined;
    int first = 0;

    while (first < block->n_wishes && block->wishes[first].trains != trains)
        first++;
    if (first == block->n_wishes)
        return OT_OK; // none: the list stays, also the absence of one
    joined = ot__arena_alloc(block->forward.model->arena, most * sizeof *joined);
    OT_TRY(ot__made(joined));
    if (*n > 0)
        memcpy(joined, *list, (size_t)*n * sizeof *joined);
    for (int i = first; i < block->n_wishes; i++)
        if (block->wishes[i].trains == trains)
            joined[(*n)++] = block->wishes[i].name;
    *list = joined;
    return OT_OK;
}

// ---- finishing ----

// The new list replaces the old one.
static ot_status block_set_outputs(ot_block *block, ot_value *const *outputs, int n_outputs)
{
    ot_graph *graph = block->build.graph;

    block->scope = "outputs";
    if (n_outputs < 0 || (n_outputs > 0 && !outputs))
        return ot__error(OT_ERR_INVALID, "a list of %d outputs%s", n_outputs,
                         outputs ? "" : " is NULL");
    for (int i = 0; i < n_outputs; i++) {
        if (!ot__block_takes(block, outputs[i]))
            return block->build.status;
        for (int k = 0; k < i; k++)
            if (outputs[k] == outputs[i])
                return ot__error(OT_ERR_INVALID, "'%s' is there twice", outputs[i]->name);
    }
    if (n_outputs > 0)
        ot__graph_clear_outputs(graph);
    for (int i = 0; i < n_outputs; i++)
        OT_TRY(ot__made(ot__graph_add_output(graph, outputs[i])));
    if (graph->n_outputs == 0)
        return ot__error(OT_ERR_INVALID, "the graph has none");
    return ot__pass_finished(graph->model, "block");
}

// Checks what was built; the builder is spent from here on.
static ot_status close_graph(ot_block *block, ot_value *const *outputs, int n_outputs)
{
    ot_status st = ot_block_status(block);

    if (st == OT_OK) {
        st = block_set_outputs(block, outputs, n_outputs);
        if (st != OT_OK && block->build.status == OT_OK)
            ot__error_prefix(st, "%s", block->scope);
    }
    if (OT_IS_LIVE(block))
        block->build.graph = NULL;
    return st;
}

ot_status ot_block_finish(ot_block *block, ot_value *const *outputs, int n_outputs, ot_model **out)
{
    OT_TRY(OT_OUT(out));
    OT_TRY(close_graph(block, outputs, n_outputs));
    *out = block->forward.model;
    block->forward.model = NULL;
    return OT_OK;
}

static ot_status finish_training(ot_block *block, ot_artifacts_options *options, ot_artifacts **out)
{
    ot__forward *forward = &block->forward;

    if (options->n_losses > 0)
        return ot__error(OT_ERR_INVALID, "%d losses in the options: the graph has its own",
                         options->n_losses);
    OT_TRY(join_names(block, true, &options->trainable, &options->n_trainable));
    OT_TRY(join_names(block, false, &options->frozen, &options->n_frozen));
    OT_TRY(ot__init_parameters(forward->model, options));
    OT_TRY(ot__forward_close(forward, options));
    return ot__artifacts_finish(forward, options, NULL, out);
}

ot_status ot_block_finish_training(ot_block *block, ot_value *const *outputs, int n_outputs,
                                   const ot_artifacts_options *options, ot_artifacts **out)
{
    ot__options_taken taken;
    ot_status st;

    OT_TRY(OT_OUT(out));
    OT_TRY(close_graph(block, outputs, n_outputs));
    st = ot__options_take(options, &taken);
    OT_THEN(st, finish_training(block, &taken.options, out));
    ot__forward_deinit(&block->forward);
    ot__options_drop(&taken);
    return st;
}
