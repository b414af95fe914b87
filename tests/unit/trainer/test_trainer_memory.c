// SPDX-License-Identifier: Apache-2.0
// What a trainer says that it takes, against what the library has asked for by then.
#include <stdlib.h>

#include "trainer_fixture.h"

// ---- an allocator that counts ----

enum { HEADER = 64 };

typedef struct counter {
    size_t now, peak;
} counter;

static void *counting_reallocate(void *context, void *block, size_t n_bytes)
{
    counter *c = context;
    char *start = block == NULL ? NULL : (char *)block - HEADER;
    size_t before = 0;

    if (start != NULL)
        memcpy(&before, start, sizeof before);
    start = realloc(start, n_bytes + HEADER);
    if (start == NULL)
        return NULL;
    memcpy(start, &n_bytes, sizeof n_bytes);
    c->now += n_bytes - before;
    c->peak = OT_MAX(c->peak, c->now);
    return start + HEADER;
}

static void counting_release(void *context, void *block)
{
    counter *c = context;
    char *start = (char *)block - HEADER;
    size_t n_bytes;

    memcpy(&n_bytes, start, sizeof n_bytes);
    c->now -= n_bytes;
    free(start);
}

// ---- models ----

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> "

static const char layers_text[] =
    HEAD "g (float[N, 256] x, int64[N] t) => (float loss, float[N, 10] s)\n"
         "{ a = RandomNormal<shape = [256, 512]>() b = RandomNormal<shape = [512]>()\n"
         "  c = RandomNormal<shape = [512, 512]>() d = RandomNormal<shape = [512, 10]>()\n"
         "  h1 = MatMul(x, a) h2 = Add(h1, b) h3 = Relu(h2) h4 = MatMul(h3, c) h5 = Tanh(h4)\n"
         "  s = MatMul(h5, d) loss = SoftmaxCrossEntropyLoss(s, t) }";
static const char images_text[] = HEAD
    "g (float[N, 3, 32, 32] x, int64[N] t) => (float loss, float[N, 32] s)\n"
    "<float[16] one = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, float[16] zero = "
    "{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}>\n"
    "{ k = RandomNormal<shape = [16, 3, 3, 3]>()\n"
    "  w = RandomNormal<shape = [4096, 32]>() g = RandomNormal<shape = [16]>()\n"
    "  b = RandomNormal<shape = [16]>()\n"
    "  h1 = Conv<pads = [1, 1, 1, 1]>(x, k) h2 = BatchNormalization(h1, g, b, zero, one)\n"
    "  h3 = Relu(h2) h4 = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(h3) h5 = Flatten(h4)\n"
    "  s = MatMul(h5, w) loss = SoftmaxCrossEntropyLoss(s, t) }";

static ot_trainer *trainer_of(const char *text)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model;
    ot_trainer *trainer;

    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    need(ot_trainer_create(model, NULL, &adam, NULL, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void step_of(ot_trainer *trainer, const ot_shape *shapes)
{
    ot_tensor *inputs[2], *outputs[2] = {NULL, NULL};

    need(ot_tensor_create(OT_F32, &shapes[0], &inputs[0]));
    need(ot_tensor_create(OT_I64, &shapes[1], &inputs[1]));
    need(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, outputs, 2));
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
}

static size_t bytes_of(const ot_shape *shapes)
{
    size_t n = sizeof(float);

    for (int k = 0; k < shapes[0].ndim; k++)
        n *= (size_t)shapes[0].dim[k];
    return n + sizeof(int64_t) * (size_t)shapes[1].dim[0];
}

// Within 2 % or 512 KiB of the peak over three steps, without what the caller feeds.
static void assert_kept(const char *text, ot_shape x, int64_t n_parameters)
{
    const ot_shape shapes[] = {x, OT_SHAPE(x.dim[0])};
    counter c = {0};
    const ot_allocator allocator = {counting_reallocate, counting_release, &c};
    ot_memory memory = OT_MEMORY_INIT;
    ot_trainer *trainer;
    double distance;

    ot_set_allocator(&allocator);
    trainer = trainer_of(text);
    need(ot_trainer_memory(trainer, shapes, 2, &memory));
    c.peak = c.now;
    for (int i = 0; i < 3; i++)
        step_of(trainer, shapes);
    ot_trainer_destroy(trainer);
    ot_set_allocator(NULL);
    distance = (double)(c.peak - bytes_of(shapes)) - (double)memory.total;
    assert_int_equal(memory.gradients, n_parameters * 4);
    assert_int_equal(memory.moments, n_parameters * 8);
    assert_true(distance < OT_MAX(0.02 * (double)memory.total, 512 * 1024.0));
    assert_true(-distance < OT_MAX(0.02 * (double)memory.total, 512 * 1024.0));
}

static void three_steps_take_what_was_promised(void **state)
{
    (void)state;
    assert_kept(layers_text, OT_SHAPE(64, 256), 256 * 512 + 512 + 512 * 512 + 512 * 10);
    assert_kept(layers_text, OT_SHAPE(1024, 256), 256 * 512 + 512 + 512 * 512 + 512 * 10);
    assert_kept(images_text, OT_SHAPE(64, 3, 32, 32), 16 * 27 + 4096 * 32 + 32);
}

static void parts_are_those_of_the_model(void **state)
{
    static const ot_shape shapes[] = {{1, {N_ROWS}}, {2, {N_ROWS, N_IN}}};
    ot_memory memory = OT_MEMORY_INIT;
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    need(ot_trainer_memory(trainer, shapes, 2, &memory));
    assert_int_equal(memory.parameters, (N_IN + 1) * 4);
    assert_int_equal(memory.gradients, (N_IN + 1) * 4);
    assert_int_equal(memory.derived, 0);
    assert_int_equal(memory.outputs, 4 + N_ROWS * 4);
    assert_true(memory.activations > 0);
    assert_int_equal(memory.total, memory.parameters + memory.gradients + memory.moments +
                                       memory.activations + memory.scratch + memory.outputs);
    assert_int_equal(info_of(trainer).step, 0);
    ot_trainer_destroy(trainer);
}

static void shapes_are_checked_against_the_description(void **state)
{
    static const struct {
        ot_shape t, x;
        const char *expected;
    } cases[] = {
        {{1, {N_ROWS}}, {2, {N_ROWS, N_IN + 1}}, "axis 1 has size 4, expected 3"},
        {{1, {N_ROWS}}, {2, {N_ROWS + 1, N_IN}}, "'rows'"},
        {{1, {-1}}, {2, {-1, N_IN}}, "expected sizes from 0"},
        {{40, {N_ROWS}}, {2, {N_ROWS, N_IN}}, "has 40 axes"},
        {{2, {N_ROWS, 1}}, {2, {N_ROWS, N_IN}}, "has 2 axes"},
    };
    ot_trainer *trainer = linear_trainer(NULL);
    ot_memory memory = OT_MEMORY_INIT;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        const ot_shape shapes[] = {cases[i].t, cases[i].x};

        assert_int_equal(ot_trainer_memory(trainer, shapes, 2, &memory), OT_ERR_INVALID);
        if (strstr(ot_error_message(), cases[i].expected) == NULL)
            fail_msg("'%s', expected '%s'", ot_error_message(), cases[i].expected);
        assert_int_equal(memory.total, 0);
        assert_int_equal(ot_trainer_memory(trainer, shapes, 1, &memory), OT_ERR_INVALID);
    }
    ot_trainer_destroy(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_take_what_was_promised),
        cmocka_unit_test(parts_are_those_of_the_model),
        cmocka_unit_test(shapes_are_checked_against_the_description),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
