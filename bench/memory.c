// SPDX-License-Identifier: Apache-2.0
// What a trainer says that it takes, against what the library asks for: the peak of its allocations
// over three steps, and when the trainer is made of a file, saved and loaded.
//
//   bench_memory MODEL THREADS ROWS CLASS_AXIS VOCABULARY CEILING PRECISION FOLDER
//
// MODEL is as bench_step takes it. CEILING: memory_max in percent of what training takes without
// one; 0: none. PRECISION: f32, bf16 or f16. FOLDER is for the model with its loss and a
// checkpoint. Prints one JSON object.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "onnxtrain/onnxtrain.h"

enum { N_INPUTS = 2, N_OUTPUTS = 2, STEPS = 3 };

static void must(ot_status status)
{
    if (status == OT_OK)
        return;
    fprintf(stderr, "bench_memory: %s\n", ot_error_message());
    exit(1);
}

// The most since the last question.
static size_t take_peak(void)
{
    const size_t found = atomic_load(&most_held);

    atomic_store(&most_held, atomic_load(&now_held));
    return found;
}

// ---- the trainer ----

typedef struct problem {
    char path[4096], checkpoint[4096];
    int threads, class_axis;
    ot_precision precision;
    int64_t rows, vocabulary;
    ot_shape shapes[N_INPUTS];
    ot_dtype types[N_INPUTS];
    size_t largest; // bytes of the largest parameter
} problem;

// The model with its loss in front of the scores, as a file of its own.
static void attach_loss(problem *p, const char *path)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_value *outputs[N_OUTPUTS];
    ot_model *model, *with_loss;
    ot_block *block;
    ot_dtype dtype;
    ot_shape scores;

    loss.class_axis = p->class_axis;
    must(ot_model_load(path, NULL, &model));
    must(ot_block_create(model, NULL, &block));
    outputs[1] = ot_block_output(block, 0);
    outputs[0] = ot_block_loss(block, outputs[1], &loss);
    must(ot_block_finish(block, outputs, N_OUTPUTS, &with_loss));
    must(ot_model_save(with_loss, p->path, NULL));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    ot_block_destroy(block);
    ot_model_destroy(with_loss);
    ot_model_destroy(model);
}

static ot_trainer *make_trainer(const problem *p, size_t memory_max)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model;
    ot_trainer *trainer;

    options.n_threads = p->threads;
    options.memory_max = memory_max;
    options.precision = p->precision;
    must(ot_model_load(p->path, NULL, &model));
    must(ot_trainer_create(model, NULL, &adam, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void describe_inputs(problem *p, ot_trainer *trainer)
{
    const ot_session *session = ot_trainer_session(trainer);

    if (ot_trainer_input_count(trainer) != N_INPUTS) {
        fprintf(stderr, "bench_memory: %d inputs\n", ot_trainer_input_count(trainer));
        exit(1);
    }
    for (int i = 0; i < N_INPUTS; i++) {
        must(ot_session_input_info(session, OT_MODE_TRAIN, i, &p->types[i], &p->shapes[i]));
        p->shapes[i].dim[0] = p->rows;
    }
}

static void find_largest(problem *p, ot_trainer *trainer)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(ot_trainer_session(trainer));

    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        ot_tensor *t;

        must(ot_checkpoint_get_parameter(checkpoint, ot_checkpoint_parameter_name(checkpoint, i),
                                         &t));
        if (ot_tensor_bytes(t) > p->largest)
            p->largest = ot_tensor_bytes(t);
        ot_tensor_destroy(t);
    }
}

// Zeros: what is trained on does not count. They are not the trainer's.
static size_t make_inputs(const problem *p, ot_tensor **inputs)
{
    const size_t before = atomic_load(&now_held);

    for (int i = 0; i < N_INPUTS; i++)
        must(ot_tensor_create(p->types[i], &p->shapes[i], &inputs[i]));
    return atomic_load(&now_held) - before;
}

static size_t peak_of_steps(const problem *p, ot_trainer *trainer)
{
    ot_tensor *inputs[N_INPUTS], *outputs[N_OUTPUTS] = {NULL};
    const size_t fed = make_inputs(p, inputs);
    size_t found;

    (void)take_peak();
    for (int i = 0; i < STEPS; i++)
        must(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, N_INPUTS, outputs,
                                   N_OUTPUTS));
    found = take_peak() - fed;
    for (int i = 0; i < N_INPUTS; i++)
        ot_tensor_destroy(inputs[i]);
    for (int i = 0; i < N_OUTPUTS; i++)
        ot_tensor_destroy(outputs[i]);
    (void)take_peak();
    return found;
}

static void measure(problem *p, size_t memory_max)
{
    ot_memory memory = OT_MEMORY_INIT;
    const char *path = p->checkpoint;
    size_t creation, steps, saving, loading;
    ot_trainer *trainer;

    (void)take_peak();
    trainer = make_trainer(p, memory_max);
    creation = take_peak();
    must(ot_trainer_memory(trainer, p->shapes, N_INPUTS, &memory));
    steps = peak_of_steps(p, trainer);
    must(ot_trainer_save(trainer, path, NULL));
    saving = take_peak();
    must(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, NULL));
    loading = take_peak();
    ot_trainer_destroy(trainer);
    printf("{\"parameters\": %zu, \"gradients\": %zu, \"moments\": %zu, \"derived\": %zu, "
           "\"activations\": %zu, \"scratch\": %zu, \"outputs\": %zu, \"structure\": %zu, ",
           memory.parameters, memory.gradients, memory.moments, memory.derived, memory.activations,
           memory.scratch, memory.outputs, memory.structure);
    printf("\"total\": %zu, \"ceiling\": %zu, \"creation\": %zu, \"steps\": %zu, \"saving\": %zu, "
           "\"loading\": %zu, \"largest\": %zu}\n",
           memory.total, memory_max, creation, steps, saving, loading, p->largest);
}

static ot_precision precision_of(const char *name)
{
    if (strcmp(name, "bf16") == 0)
        return OT_PRECISION_BF16;
    return strcmp(name, "f16") == 0 ? OT_PRECISION_F16 : OT_PRECISION_F32;
}

int main(int argc, char **argv)
{
    static const ot_allocator counting = {counting_reallocate, counting_release, NULL};
    ot_memory memory = OT_MEMORY_INIT;
    problem p = {0};
    ot_trainer *trainer;
    int percent;

    if (argc != 9)
        return 2;
    ot_set_allocator(&counting);
    p.threads = atoi(argv[2]);
    p.rows = atoi(argv[3]);
    p.class_axis = atoi(argv[4]);
    p.vocabulary = atoi(argv[5]);
    percent = atoi(argv[6]);
    p.precision = precision_of(argv[7]);
    snprintf(p.path, sizeof p.path, "%s/model.onnx", argv[8]);
    snprintf(p.checkpoint, sizeof p.checkpoint, "%s/checkpoint", argv[8]);
    attach_loss(&p, argv[1]);
    trainer = make_trainer(&p, 0);
    describe_inputs(&p, trainer);
    find_largest(&p, trainer);
    if (percent > 0)
        must(ot_trainer_memory(trainer, p.shapes, N_INPUTS, &memory));
    ot_trainer_destroy(trainer);
    measure(&p, memory.total * (size_t)percent / 100);
    return 0;
}
