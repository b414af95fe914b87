// SPDX-License-Identifier: Apache-2.0
// In every configuration - rule, element type, accumulation, format - n calls, a save, a load and m
// calls give the same bits as n + m calls, whichever call of an update is the n-th.
#include "dropout_fixture.h"
#include "unit/base/temporary_folder.h"

#include <unistd.h>

enum { CALLS_MAX = 9 };

// A scale that changes within a few updates: too large for f16 at first, and raised soon.
static ot_loss_scaler restless_scaler(void)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    s.loss_scale = s.initial_loss_scale = 1 << 16;
    s.up_scale_window = 1;
    s.min_loss_scale = 1;
    s.max_loss_scale = 1 << 16;
    return s;
}

typedef struct configuration {
    const char *rule;
    ot_precision precision;
    int accumulation;
    ot_format format;
} configuration;

// The scaler is there as long as the trainer.
static ot_trainer *trainer_of(const configuration *c, ot_loss_scaler *scaler)
{
    const ot_optimizer_options rule = dropout_rule(c->rule);
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_trainer *trainer;

    options.gradient_accumulation_steps = c->accumulation;
    options.n_threads = 1;
    options.precision = c->precision;
    *scaler = restless_scaler();
    if (c->precision != OT_PRECISION_F32)
        options.loss_scaler = scaler;
    need(ot_trainer_create(model, NULL, &rule, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

// What a training without a break gives, and the file that each call leaves.
typedef struct course {
    float loss[CALLS_MAX];
    uint64_t hash[CALLS_MAX];
    char paths[CALLS_MAX][512];
    int n;
} course;

static void save_as(ot_trainer *trainer, const char *path, ot_format format)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;

    options.format = format;
    (void)unlink(path); // HDF5 files are always new ones
    need(ot_trainer_save(trainer, path, &options));
}

static void train_without_a_break(const configuration *c, void **state, course *expected)
{
    ot_loss_scaler scaler;
    ot_trainer *trainer = trainer_of(c, &scaler);

    expected->n = 2 * c->accumulation + 2;
    for (int i = 0; i < expected->n; i++) {
        char name[32];

        snprintf(name, sizeof name, "after%d", i);
        snprintf(expected->paths[i], sizeof expected->paths[i], "%s", in_folder(state, name));
        expected->loss[i] = dropout_step(trainer, i, 1);
        save_as(trainer, expected->paths[i], c->format);
        expected->hash[i] = hash_of(trainer);
    }
    ot_trainer_destroy(trainer);
}

// `trainer` has gone further, or elsewhere.
static void go_on_after(const configuration *c, const course *expected, int at, ot_trainer *trainer)
{
    const char *path = expected->paths[at];

    need(ot_trainer_load(trainer, &path, 1, OT_STRICTNESS_ALL, NULL));
    assert_true(hash_of(trainer) == expected->hash[at]);
    for (int i = at + 1; i < expected->n; i++) {
        const float loss = dropout_step(trainer, i, 1);

        if (loss != expected->loss[i] || hash_of(trainer) != expected->hash[i])
            fail_msg("%s, precision %d, %d micro-batches an update, format %d: loaded after call "
                     "%d, call %d differs (loss %g, expected %g)",
                     c->rule, (int)c->precision, c->accumulation, (int)c->format, at + 1, i + 1,
                     (double)loss, (double)expected->loss[i]);
    }
}

static void go_on_everywhere(const configuration *c, void **state)
{
    static course expected;
    ot_loss_scaler scaler;
    ot_trainer *trainer = trainer_of(c, &scaler);

    dropout_step(trainer, 1000, 1);
    train_without_a_break(c, state, &expected);
    for (int at = 0; at < expected.n; at++)
        go_on_after(c, &expected, at, trainer);
    ot_trainer_destroy(trainer);
}

static void every_configuration(void **state, ot_precision precision, ot_format format)
{
    for (int i = 0; i < ot_optimizer_count(); i++)
        for (int accumulation = 1; accumulation <= 3; accumulation += 2)
            go_on_everywhere(
                &(configuration){ot_optimizer_name(i), precision, accumulation, format}, state);
}

static void f32_goes_on(void **state)
{
    every_configuration(state, OT_PRECISION_F32, OT_FORMAT_CHECKPOINT);
}

static void bf16_goes_on(void **state)
{
    every_configuration(state, OT_PRECISION_BF16, OT_FORMAT_CHECKPOINT);
}

static void f16_goes_on(void **state)
{
    every_configuration(state, OT_PRECISION_F16, OT_FORMAT_CHECKPOINT);
}

static void skip_without_hdf5(void)
{
    if (!OT_WITH_HDF5)
        skip(); // a build without libhdf5
}

static void f32_goes_on_from_hdf5(void **state)
{
    skip_without_hdf5();
    every_configuration(state, OT_PRECISION_F32, OT_FORMAT_HDF5);
}

static void bf16_goes_on_from_hdf5(void **state)
{
    skip_without_hdf5();
    every_configuration(state, OT_PRECISION_BF16, OT_FORMAT_HDF5);
}

static void f16_goes_on_from_hdf5(void **state)
{
    skip_without_hdf5();
    every_configuration(state, OT_PRECISION_F16, OT_FORMAT_HDF5);
}

// The tests above mean something only where the scale moves and updates are skipped.
static void a_training_in_f16_skips_updates_and_moves_its_scale(void **state)
{
    const configuration c = {"AdamOptimizer", OT_PRECISION_F16, 1, OT_FORMAT_CHECKPOINT};
    ot_loss_scaler scaler;
    ot_trainer *trainer = trainer_of(&c, &scaler);
    int n_skipped = 0, n_updates = 0;

    (void)state;
    for (int i = 0; i < 2 * c.accumulation + 2; i++) {
        const int64_t before = info_of(trainer).optimization_step;

        dropout_step(trainer, i, 1);
        n_updates += info_of(trainer).optimization_step > before;
        n_skipped += info_of(trainer).optimization_step == before;
    }
    ot_trainer_destroy(trainer);
    assert_in_range(n_skipped, 1, 3);
    assert_in_range(n_updates, 1, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(f32_goes_on),
        TEST_IN_FOLDER(bf16_goes_on),
        TEST_IN_FOLDER(f16_goes_on),
        TEST_IN_FOLDER(f32_goes_on_from_hdf5),
        TEST_IN_FOLDER(bf16_goes_on_from_hdf5),
        TEST_IN_FOLDER(f16_goes_on_from_hdf5),
        cmocka_unit_test(a_training_in_f16_skips_updates_and_moves_its_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
