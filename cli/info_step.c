// SPDX-License-Identifier: Apache-2.0
#include "info_step.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "report.h"

// ---- its memory and plan ----

// Of the inputs that train steps take: those of a trainer without a description.
static ot_status shape_input(const ot_session *session, int index, int64_t batch_size,
                             ot_shape *shape)
{
    ot_dtype dtype;
    ot_status st;

    *shape = (ot_shape){.ndim = 0};
    st = ot_session_input_info(session, OT_MODE_TRAIN, index, &dtype, shape);
    for (int k = 0; k < shape->ndim; k++)
        if (shape->dim[k] < 0)
            shape->dim[k] = k == 0 ? batch_size : 1;
    return st;
}

// A slice of a batch.
static int64_t rows_of_slice(int64_t batch_size, int n_slices)
{
    return batch_size / n_slices + (batch_size % n_slices != 0);
}

static ot_status predict_rank(ot_trainer *trainer, int64_t batch_size, step_info *out)
{
    const int n = ot_trainer_input_count(trainer);
    ot_shape *shapes = calloc((size_t)n + 1, sizeof(*shapes));
    ot_status st = shapes ? OT_OK : OT_ERR_NO_MEMORY;

    for (int i = 0; st == OT_OK && i < n; i++)
        st = shape_input(ot_trainer_session(trainer), i,
                         rows_of_slice(batch_size, out->ranks.slices), &shapes[i]);
    if (st == OT_OK)
        st = ot_trainer_predict(trainer, &out->ranks, shapes, n, &out->rank_memory, &out->n_sent);
    free(shapes);
    return st;
}

// The plan's memory is not touched, so there may be more of it than the machine has.
static void describe_trainer(ot_trainer *trainer, int64_t batch_size, step_info *out)
{
    ot_session *session = ot_trainer_session(trainer);
    const int n = ot_trainer_input_count(trainer);
    ot_shape *shapes = calloc((size_t)n + 1, sizeof(*shapes));
    ot_status st = shapes ? OT_OK : OT_ERR_NO_MEMORY;

    for (int i = 0; st == OT_OK && i < n; i++)
        st = shape_input(session, i, batch_size, &shapes[i]);
    if (st == OT_OK)
        st = ot_trainer_memory(trainer, shapes, n, &out->memory);
    if (st == OT_OK)
        st = (out->json ? ot_session_plan_json : ot_session_describe_plan)(
            session, OT_MODE_TRAIN, shapes, ot_session_input_count(session, OT_MODE_TRAIN),
            &out->plan);
    if (st == OT_OK) {
        out->state_bytes = ot_session_state_bytes(session);
        out->plan_bytes = ot_session_plan_bytes(session);
    }
    free(shapes);
}

void info_step_measure(const ot_model *model, ot_artifacts *artifacts, int64_t memory_max,
                       int64_t batch_size, const ot_config *config, const model_setup *setup,
                       step_info *out)
{
    ot_trainer_options options = *ot_config_options(config);
    ot_artifacts *made = NULL;
    ot_trainer *trainer = NULL;

    out->memory = out->rank_memory = (ot_memory)OT_MEMORY_INIT;
    options.memory_max = memory_max < INT64_MAX ? (size_t)memory_max : 0;
    if (artifacts ||
        ot_trainer_generate_artifacts(model, &setup->options, &options, &made) == OT_OK) {
        set_memory_max(INT64_MAX);
        if (ot_trainer_create_from_artifacts(artifacts ? artifacts : made, NULL, &options,
                                             &trainer) == OT_OK)
            describe_trainer(trainer, batch_size, out);
    }
    out->has_ranks =
        out->plan && out->ranks.n_ranks > 0 && predict_rank(trainer, batch_size, out) == OT_OK;
    if (!out->plan)
        snprintf(out->problem, sizeof(out->problem), "%s", ot_error_message());
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(made);
}

// ---- its parts ----

static const struct {
    const char *name;
    size_t offset;
} memory_parts[] = {
    {"parameters", offsetof(ot_memory, parameters)},
    {"gradients", offsetof(ot_memory, gradients)},
    {"moments", offsetof(ot_memory, moments)},
    {"derived", offsetof(ot_memory, derived)},
    {"activations", offsetof(ot_memory, activations)},
    {"scratch", offsetof(ot_memory, scratch)},
    {"outputs", offsetof(ot_memory, outputs)},
    {"structure", offsetof(ot_memory, structure)},
    {"staging", offsetof(ot_memory, staging)},
};
enum { N_PARTS = sizeof memory_parts / sizeof memory_parts[0] };

static size_t memory_part(const ot_memory *memory, int i)
{
    size_t n_bytes;

    memcpy(&n_bytes, (const char *)memory + memory_parts[i].offset, sizeof n_bytes);
    return n_bytes;
}

static json_t *memory_json(const ot_memory *memory)
{
    json_t *object = json_object();

    for (int i = 0; i < N_PARTS; i++)
        json_object_set_new(object, memory_parts[i].name,
                            json_integer((json_int_t)memory_part(memory, i)));
    json_object_set_new(object, "total", json_integer((json_int_t)memory->total));
    return object;
}

static void print_memory(const char *title, const ot_memory *memory)
{
    const char *before = ": ";
    char text[32];

    printf("%-10s %s", title, bytes_text(memory->total, text, sizeof text));
    for (int i = 0; i < N_PARTS; i++) {
        if (memory_part(memory, i) == 0)
            continue;
        printf("%s%s %s", before, memory_parts[i].name,
               bytes_text(memory_part(memory, i), text, sizeof text));
        before = ", ";
    }
    printf("\n");
}

static json_t *ranks_json(const step_info *step)
{
    return json_pack("{s:i,s:i,s:i,s:i,s:b,s:b,s:o,s:I}", "ranks", step->ranks.n_ranks, "zero",
                     step->ranks.zero, "slices", step->ranks.slices, "accumulate",
                     step->ranks.accumulation, "sync_batch_norm", step->ranks.sync_batch_norm,
                     "reproducible", step->ranks.reproducible, "memory",
                     memory_json(&step->rank_memory), "sent_bytes", (json_int_t)step->n_sent);
}

static void print_ranks(const step_info *step)
{
    char text[32];

    printf("parallel   D=%d zero=%d slices=%d accumulate=%d%s%s: each process sends %s for an "
           "update\n",
           step->ranks.n_ranks, step->ranks.zero, step->ranks.slices, step->ranks.accumulation,
           step->ranks.sync_batch_norm != 0 ? " sync-batch-norm=1" : "",
           step->ranks.reproducible != 0 ? " reproducible=1" : "",
           bytes_text((size_t)step->n_sent, text, sizeof text));
    print_memory("of each", &step->rank_memory);
}

// ---- what is told ----

void info_step_add(const step_info *step, int64_t batch_size, json_t *object)
{
    if (step->plan)
        json_object_set_new(object, "step",
                            json_pack("{s:I,s:I,s:I,s:o}", "batch_size", (json_int_t)batch_size,
                                      "state_bytes", (json_int_t)step->state_bytes, "plan_bytes",
                                      (json_int_t)step->plan_bytes, "memory",
                                      memory_json(&step->memory)));
    if (step->has_ranks)
        json_object_set_new(object, "parallel", ranks_json(step));
}

void info_step_print(const step_info *step, int64_t batch_size)
{
    char state[32], plan[32];

    if (step->plan)
        printf("step       %s of parameters, gradients and moments, %s of activations at batch "
               "size %lld\n",
               bytes_text(step->state_bytes, state, sizeof(state)),
               bytes_text(step->plan_bytes, plan, sizeof(plan)), (long long)batch_size);
    else
        printf("step       none: %s\n", step->problem);
    if (step->plan)
        print_memory("memory", &step->memory);
    if (step->has_ranks)
        print_ranks(step);
}

// As text or as JSON, which are many lines.
int info_step_print_plan(const step_info *step)
{
    json_t *plan;

    if (!step->plan)
        return report_error();
    if (!step->json) {
        fputs(step->plan, stdout);
        print_memory("memory", &step->memory);
        return EXIT_SUCCESS;
    }
    plan = json_loads(step->plan, 0, NULL);
    json_object_set_new(plan, "memory", memory_json(&step->memory));
    write_json(stdout, plan, JSON_INDENT(1));
    return EXIT_SUCCESS;
}
