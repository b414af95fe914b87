// SPDX-License-Identifier: Apache-2.0
// What a trainer says that it takes, against what the library has asked for by then.
#include <math.h>
#include <stdlib.h>

#include "trainer_fixture.h"
#include "unit/base/temporary_folder.h"

// ---- an allocator that counts ----

enum { HEADER = 64, SMALL = 64 * 1024 };

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

// Many nodes over few elements: what it takes is graphs and plans.
enum { N_DEEP = 300 };
static const char *deep_text(void)
{
    static char text[N_DEEP * 64 + 500];
    size_t n =
        (size_t)sprintf(text, HEAD "g (float[N, 8] x, int64[N] t) => (float loss, float[N, 8] s)\n"
                                   "{ w = RandomNormal<shape = [8, 8]>() h0 = MatMul(x, w)\n");

    for (int i = 0; i < N_DEEP; i++)
        n += (size_t)sprintf(text + n, "  h%d = %s(h%d)\n", i + 1, i % 2 == 0 ? "Tanh" : "Softmax",
                             i);
    sprintf(text + n, "  s = Identity(h%d) loss = SoftmaxCrossEntropyLoss(s, t) }", N_DEEP);
    return text;
}

static ot_trainer *trainer_of(const char *text, size_t memory_max, ot_precision precision)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;
    ot_model *model;
    ot_trainer *trainer;

    options.memory_max = memory_max;
    session.precision = precision;
    options.session = &session;
    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    need(ot_trainer_create(model, NULL, &adam, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void three_steps(ot_trainer *trainer, ot_tensor *const *inputs)
{
    ot_tensor *outputs[2] = {NULL, NULL};

    for (int i = 0; i < 3; i++)
        need(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, outputs, 2));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(outputs[i]);
}

// ---- the promise ----

typedef struct problem {
    const char *text;
    ot_shape x;
    int64_t n_parameters;
    size_t largest; // bytes of a parameter
} problem;

static void problems(problem out[4])
{
    const int64_t n_layers = 256 * 512 + 512 + 512 * 512 + 512 * 10;

    out[0] = (problem){layers_text, OT_SHAPE(64, 256), n_layers, 512 * 512 * 4};
    out[1] = (problem){layers_text, OT_SHAPE(1024, 256), n_layers, 512 * 512 * 4};
    out[2] =
        (problem){images_text, OT_SHAPE(64, 3, 32, 32), 16 * 27 + 4096 * 32 + 32, 4096 * 32 * 4};
    out[3] = (problem){deep_text(), OT_SHAPE(4, 8), 64, 64 * 4};
}

typedef struct peaks {
    size_t creation, steps, saving, loading;
    ot_memory memory; // as told before the first step
} peaks;

static size_t peak_since(counter *c)
{
    const size_t found = c->peak;

    c->peak = c->now;
    return found;
}

// What the caller feeds is not counted.
static size_t peak_of_steps(counter *c, ot_trainer *trainer, const ot_shape *shapes)
{
    const size_t before = c->now;
    ot_tensor *inputs[2];
    size_t found, fed;

    need(ot_tensor_create(OT_F32, &shapes[0], &inputs[0]));
    need(ot_tensor_create(OT_I64, &shapes[1], &inputs[1]));
    fed = c->now - before;
    (void)peak_since(c);
    three_steps(trainer, inputs);
    found = peak_since(c) - fed;
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    (void)peak_since(c);
    return found;
}

static peaks measure_in(const problem *p, size_t memory_max, ot_precision precision,
                        ot_format format, const char *path)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;
    const ot_shape shapes[] = {p->x, OT_SHAPE(p->x.dim[0])};
    counter c = {0};
    const ot_allocator allocator = {counting_reallocate, counting_release, &c};
    peaks found = {.memory = OT_MEMORY_INIT};
    ot_trainer *trainer;

    ot_set_allocator(&allocator);
    trainer = trainer_of(p->text, memory_max, precision);
    found.creation = peak_since(&c);
    need(ot_trainer_memory(trainer, shapes, 2, &found.memory));
    found.steps = peak_of_steps(&c, trainer, shapes);
    options.format = format;
    need(ot_trainer_save(trainer, path, &options));
    found.saving = peak_since(&c);
    need(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, NULL));
    found.loading = peak_since(&c);
    ot_trainer_destroy(trainer);
    ot_set_allocator(NULL);
    return found;
}

static peaks measure(const problem *p, size_t memory_max, const char *path)
{
    return measure_in(p, memory_max, OT_PRECISION_F32, OT_FORMAT_CHECKPOINT, path);
}

static void three_steps_take_what_was_promised(void **state)
{
    problem all[4];

    problems(all);
    for (size_t i = 0; i < OT_COUNT(all); i++) {
        const peaks found = measure(&all[i], 0, in_folder(state, "checkpoint"));
        const double distance = (double)found.steps - (double)found.memory.total;

        assert_int_equal(found.memory.gradients, 0); // updates come inside the backward pass
        assert_int_equal(found.memory.moments, all[i].n_parameters * 8);
        if (fabs(distance) > OT_MAX(0.02 * (double)found.steps, 512 * 1024.0))
            fail_msg("problem %zu takes %zu bytes, %zu were promised", i, found.steps,
                     found.memory.total);
    }
}

static void narrow_types_are_promised_with_what_is_derived_of_parameters(void **state)
{
    problem all[4];

    problems(all);
    for (size_t i = 0; i < 3; i++) {
        const peaks found = measure_in(&all[i], 0, OT_PRECISION_BF16, OT_FORMAT_CHECKPOINT,
                                       in_folder(state, "checkpoint"));

        assert_true(found.memory.derived > 0);
        assert_true(found.memory.derived <= (size_t)all[i].n_parameters * 2);
        if (fabs((double)found.steps - (double)found.memory.total) >
            OT_MAX(0.02 * (double)found.steps, 512 * 1024.0))
            fail_msg("problem %zu takes %zu bytes, %zu were promised", i, found.steps,
                     found.memory.total);
    }
}

static void graphs_and_plans_are_promised_as_they_are(void **state)
{
    problem all[4];
    peaks found;

    problems(all);
    found = measure(&all[3], 0, in_folder(state, "checkpoint"));
    assert_true(found.memory.structure > 1024 * 1024); // or it would be within 512 KiB without
    assert_true(fabs((double)found.steps - (double)found.memory.total) < SMALL);
}

static void making_saving_and_loading_take_no_more_than_the_largest_tensor_besides(void **state)
{
    problem all[4];

    problems(all);
    for (size_t i = 0; i < 3; i++) {
        const peaks found = measure(&all[i], 0, in_folder(state, "checkpoint"));
        const size_t most = found.steps + all[i].largest;

        if (found.creation > most || found.saving > most || found.loading > most)
            fail_msg(
                "problem %zu: making, saving and loading take %zu, %zu and %zu bytes, expected "
                "at most %zu",
                i, found.creation, found.saving, found.loading, most);
    }
}

// What lies in the file as it is here is read from there.
static void a_state_in_hdf5_is_in_memory_once_while_it_is_loaded(void **state)
{
    problem all[4];

    if (!OT_WITH_HDF5)
        skip(); // a build without libhdf5
    problems(all);
    for (size_t i = 0; i < 3; i++) {
        const char *path = in_folder(state, "state.h5");
        peaks found;

        (void)unlink(path);
        found = measure_in(&all[i], 0, OT_PRECISION_F32, OT_FORMAT_HDF5, path);
        if (found.saving > found.steps + SMALL || found.loading > found.steps + SMALL)
            fail_msg("problem %zu: saving and loading take %zu and %zu bytes, steps %zu", i,
                     found.saving, found.loading, found.steps);
    }
}

// Memory that counts for memory_max: all but graphs, plans and what is handed out.
static size_t counted(const ot_memory *memory)
{
    return memory->total - memory->structure - memory->outputs;
}

static void a_ceiling_holds_from_making_to_loading(void **state)
{
    problem all[4];

    problems(all);
    // Not the last: loading may copy a graph, which is most of what that one takes.
    for (size_t i = 0; i < 3; i++) {
        const char *path = in_folder(state, "checkpoint");
        const ot_memory free = measure(&all[i], 0, path).memory;
        const size_t ceiling = counted(&free) + 1;
        const peaks found = measure(&all[i], ceiling, path);
        const size_t most = ceiling + free.structure + free.outputs + SMALL;

        assert_true(counted(&found.memory) <= ceiling);
        if (found.creation > most || found.steps > most || found.saving > most ||
            found.loading > most)
            fail_msg("problem %zu: making, steps, saving and loading take %zu, %zu, %zu and %zu "
                     "bytes, expected at most %zu",
                     i, found.creation, found.steps, found.saving, found.loading, most);
    }
}

static void a_ceiling_below_the_step_is_refused_before_it(void **state)
{
    const ot_shape shapes[] = {OT_SHAPE(1024, 256), OT_SHAPE(1024)};
    ot_memory memory = OT_MEMORY_INIT;
    ot_trainer *trainer = trainer_of(layers_text, 0, OT_PRECISION_F32);
    size_t state_bytes;

    (void)state;
    need(ot_trainer_memory(trainer, shapes, 2, &memory));
    ot_trainer_destroy(trainer);
    state_bytes = memory.parameters + memory.gradients + memory.moments;
    trainer = trainer_of(layers_text, state_bytes + 4096, OT_PRECISION_F32);
    assert_int_equal(ot_trainer_memory(trainer, shapes, 2, &memory), OT_ERR_NO_MEMORY);
    assert_non_null(strstr(ot_error_message(), "are allowed"));
    assert_int_equal(info_of(trainer).step, 0);
    ot_trainer_destroy(trainer);
}

static void parts_are_those_of_the_model(void **state)
{
    static const ot_shape shapes[] = {{1, {N_ROWS}}, {2, {N_ROWS, N_IN}}};
    ot_memory memory = OT_MEMORY_INIT;
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    need(ot_trainer_memory(trainer, shapes, 2, &memory));
    assert_int_equal(memory.parameters, (N_IN + 1) * 4);
    assert_int_equal(memory.gradients, 0);
    assert_int_equal(memory.derived, 0);
    assert_int_equal(memory.outputs, 4 + N_ROWS * 4);
    assert_true(memory.activations > 0);
    assert_int_equal(memory.total, memory.parameters + memory.gradients + memory.moments +
                                       memory.activations + memory.scratch + memory.outputs +
                                       memory.structure);
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
        TEST_IN_FOLDER(three_steps_take_what_was_promised),
        TEST_IN_FOLDER(narrow_types_are_promised_with_what_is_derived_of_parameters),
        TEST_IN_FOLDER(graphs_and_plans_are_promised_as_they_are),
        TEST_IN_FOLDER(making_saving_and_loading_take_no_more_than_the_largest_tensor_besides),
        TEST_IN_FOLDER(a_state_in_hdf5_is_in_memory_once_while_it_is_loaded),
        TEST_IN_FOLDER(a_ceiling_holds_from_making_to_loading),
        cmocka_unit_test(a_ceiling_below_the_step_is_refused_before_it),
        cmocka_unit_test(parts_are_those_of_the_model),
        cmocka_unit_test(shapes_are_checked_against_the_description),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
