// SPDX-License-Identifier: Apache-2.0
// The optimizer group "onnxtrain": averages, counters that differ, gradients of an accumulation
// that goes on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"

enum { STEP = 7, N_WEIGHT = 6, CAPACITY = 1 << 14 };

static ot_tensor *filled(ot_dtype dtype, ot_shape shape, uint8_t byte)
{
    ot_tensor *t;

    assert_int_equal(ot_tensor_create(dtype, &shape, &t), OT_OK);
    memset(t->data, byte, t->n_bytes);
    return t;
}

static ot__parameter *add(ot_checkpoint *checkpoint, const char *name, ot_shape shape,
                          bool trainable, uint8_t byte)
{
    ot__parameter *p;

    assert_int_equal(ot__ckpt_add(checkpoint, name, filled(OT_F32, shape, byte), trainable, &p),
                     OT_OK);
    for (int k = 0; trainable && k < OT_SLOT_MOMENTS; k++)
        p->slots[k] = filled(OT_F32, shape, (uint8_t)(byte + 1 + k));
    p->n_updates = trainable ? STEP : 0;
    return p;
}

static ot_checkpoint *make(void)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    add(checkpoint, "bias", OT_SHAPE(2), true, 10);
    add(checkpoint, "mean", OT_SHAPE(2), false, 20);
    add(checkpoint, "weight", OT_SHAPE(N_WEIGHT), true, 30);
    checkpoint->has_optimizer_state = true;
    checkpoint->step = STEP;
    return checkpoint;
}

static void add_gradients(ot_checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        ot__parameter *p = checkpoint->parameters[i];

        if (p->trainable)
            p->gradient = filled(OT_F32, p->value->shape, (uint8_t)(60 + i));
    }
}

static ot_status through_memory(ot_checkpoint *checkpoint, ot_checkpoint **out)
{
    static uint8_t bytes[CAPACITY];
    size_t n;

    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, OT_CHECKPOINT_OPTIMIZER_STATE, bytes,
                                               sizeof bytes, &n),
                     OT_OK);
    return ot_checkpoint_load_buffer(bytes, n, out);
}

static ot_checkpoint *reload(ot_checkpoint *checkpoint)
{
    ot_checkpoint *loaded;

    if (through_memory(checkpoint, &loaded) != OT_OK)
        fail_msg("%s", ot_error_message());
    return loaded;
}

static void assert_same(const ot_tensor *a, const ot_tensor *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (a == NULL)
        return;
    assert_int_equal(a->dtype, b->dtype);
    assert_true(ot__shape_equal(&a->shape, &b->shape));
    assert_memory_equal(a->data, b->data, a->n_bytes);
}

static size_t size_of_file(const ot_checkpoint *checkpoint)
{
    size_t n;

    assert_int_equal(ot_checkpoint_save_buffer((ot_checkpoint *)(uintptr_t)checkpoint,
                                               OT_CHECKPOINT_OPTIMIZER_STATE, NULL, 0, &n),
                     OT_OK);
    return n;
}

// ---- what is kept ----

static void a_state_without_more_than_moments_needs_no_group(void **state)
{
    ot_checkpoint *checkpoint = make();
    const size_t n = size_of_file(checkpoint);

    (void)state;
    add_gradients(checkpoint); // of no accumulation that goes on
    assert_int_equal(size_of_file(checkpoint), n);
    checkpoint->parameters[0]->n_updates = 3;
    assert_true(size_of_file(checkpoint) > n);
    ot_checkpoint_destroy(checkpoint);
}

static void averages_counters_and_gradients_come_back(void **state)
{
    ot_checkpoint *checkpoint = make(), *loaded;

    (void)state;
    ot__ckpt_find(checkpoint, "weight")->slots[OT_SLOT_AVERAGE] =
        filled(OT_F32, OT_SHAPE(N_WEIGHT), 90);
    ot__ckpt_find(checkpoint, "bias")->n_updates = 3;
    add_gradients(checkpoint);
    checkpoint->n_accumulated = 2;
    loaded = reload(checkpoint);
    assert_int_equal(loaded->n_accumulated, 2);
    assert_int_equal(loaded->step, STEP);
    assert_int_equal(loaded->n_other_groups, 0);
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i], *q = loaded->parameters[i];

        for (int k = 0; k < OT_SLOTS; k++)
            assert_same(p->slots[k], q->slots[k]);
        assert_same(p->gradient, q->gradient);
        if (p->trainable)
            assert_int_equal(q->n_updates, p->n_updates);
        assert_int_equal(q->gradient_is_given, p->trainable);
    }
    assert_int_equal(size_of_file(loaded), size_of_file(checkpoint)); // saved again, too
    ot_checkpoint_destroy(loaded);
    ot_checkpoint_destroy(checkpoint);
}

static void without_the_group_every_counter_is_the_step(void **state)
{
    ot_checkpoint *checkpoint = make(), *loaded = reload(checkpoint);

    (void)state;
    assert_int_equal(ot__ckpt_find(loaded, "bias")->n_updates, STEP);
    assert_int_equal(ot__ckpt_find(loaded, "weight")->n_updates, STEP);
    assert_int_equal(loaded->n_accumulated, 0);
    ot_checkpoint_destroy(loaded);
    ot_checkpoint_destroy(checkpoint);
}

static void a_file_without_optimizer_state_has_no_group(void **state)
{
    ot_checkpoint *checkpoint = make(), *loaded;
    uint8_t bytes[CAPACITY];
    size_t n;

    (void)state;
    add_gradients(checkpoint);
    checkpoint->n_accumulated = 2;
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, 0, bytes, sizeof bytes, &n), OT_OK);
    assert_int_equal(ot_checkpoint_load_buffer(bytes, n, &loaded), OT_OK);
    assert_int_equal(loaded->n_accumulated, 0);
    assert_null(ot__ckpt_find(loaded, "weight")->gradient);
    ot_checkpoint_destroy(loaded);
    ot_checkpoint_destroy(checkpoint);
}

static void groups_of_others_stand_around_ours_by_name(void **state)
{
    static const char *const names[] = {"a", "m", "z"};
    ot_checkpoint *checkpoint = make(), *loaded;

    (void)state;
    checkpoint->other_groups = ot__alloc_zero(OT_COUNT(names), sizeof(ot__optimizer_group));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        checkpoint->other_groups[checkpoint->n_other_groups++] =
            (ot__optimizer_group){.name = ot__strdup(names[i]), .step = (int64_t)i};
    checkpoint->parameters[0]->n_updates = 3;
    loaded = reload(checkpoint);
    assert_int_equal(loaded->n_other_groups, OT_COUNT(names));
    for (size_t i = 0; i < OT_COUNT(names); i++)
        assert_string_equal(loaded->other_groups[i].name, names[i]);
    assert_int_equal(loaded->parameters[0]->n_updates, 3);
    ot_checkpoint_destroy(loaded);
    ot_checkpoint_destroy(checkpoint);
}

// ---- what is refused ----

// A group of that name with one tensor, and as many micro-batches.
static void assert_refused(const char *parameter, const char *tensor, ot_tensor *value,
                           int64_t n_micro_batches, const char *message)
{
    ot_checkpoint *checkpoint = make(), *loaded;
    ot__optimizer_group *group = ot__alloc_zero(1, sizeof *group);

    *group = (ot__optimizer_group){
        .name = ot__strdup(OT_GROUP_OWN), .step = n_micro_batches, .n_states = 1};
    group->states = ot__alloc_zero(1, sizeof *group->states);
    group->states[0].param_name = ot__strdup(parameter);
    group->states[0].n_moments = 1;
    group->states[0].moments = ot__alloc_zero(1, sizeof(ot__moment));
    group->states[0].moments[0] = (ot__moment){.name = ot__strdup(tensor), .value = value};
    checkpoint->other_groups = group;
    checkpoint->n_other_groups = 1;
    assert_int_equal(through_memory(checkpoint, &loaded), OT_ERR_FORMAT);
    assert_null(loaded);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("'%s' lacks '%s'", ot_error_message(), message);
    ot_checkpoint_destroy(checkpoint);
}

static void what_does_not_fit_is_refused(void **state)
{
    const ot_shape weight = OT_SHAPE(N_WEIGHT), one = OT_SHAPE(1);

    (void)state;
    assert_refused("nobody", "average", filled(OT_F32, weight, 0), 0,
                   "has optimizer state for 'nobody', which is not a parameter");
    assert_refused("weight", "average", filled(OT_F32, OT_SHAPE(5), 0), 0,
                   "optimizer state of 'weight': average differs from it in type or shape");
    assert_refused("weight", "speed", filled(OT_F32, weight, 0), 0,
                   "optimizer state of 'weight': 'speed' is there twice, or unknown here");
    assert_refused("mean", "gradient", filled(OT_F32, OT_SHAPE(2), 0), 1,
                   "optimizer state of 'mean': 'gradient' is there twice, or unknown here");
    assert_refused("weight", "updates", filled(OT_F32, one, 0), 0,
                   "optimizer state of 'weight': updates is f32[1], expected i64[1]");
    assert_refused("weight", "updates", filled(OT_I64, OT_SHAPE(0), 0), 0,
                   "optimizer state of 'weight': updates is i64[0], expected i64[1]");
    assert_refused("weight", "updates", filled(OT_I64, one, 0xff), 0,
                   "optimizer state of 'weight': updates is -1, expected at least 0");
}

static void an_accumulation_has_the_gradients_of_all_parameters_or_none(void **state)
{
    const ot_shape weight = OT_SHAPE(N_WEIGHT);

    (void)state;
    assert_refused("weight", "gradient", filled(OT_F32, weight, 0), 3,
                   "has no gradient of parameter 'bias', but those of 3 micro-batches");
    assert_refused("weight", "gradient", filled(OT_F32, weight, 0), 0,
                   "has a gradient of parameter 'weight', but those of 0 micro-batches");
}

static void reading_survives_every_failure_of_memory(void **state)
{
    ot_checkpoint *checkpoint = make(), *loaded;
    uint8_t bytes[CAPACITY];
    size_t n;
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    add_gradients(checkpoint);
    checkpoint->n_accumulated = 2;
    checkpoint->parameters[0]->n_updates = 3;
    assert_int_equal(ot_checkpoint_save_buffer(checkpoint, OT_CHECKPOINT_OPTIMIZER_STATE, bytes,
                                               sizeof bytes, &n),
                     OT_OK);
    for (int k = 0; st != OT_OK; k++) {
        ot__alloc_fail_after(k);
        st = ot_checkpoint_load_buffer(bytes, n, &loaded);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || (st == OT_ERR_NO_MEMORY && loaded == NULL));
    }
    assert_int_equal(loaded->n_accumulated, 2);
    ot_checkpoint_destroy(loaded);
    ot_checkpoint_destroy(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_without_more_than_moments_needs_no_group),
        cmocka_unit_test(averages_counters_and_gradients_come_back),
        cmocka_unit_test(without_the_group_every_counter_is_the_step),
        cmocka_unit_test(a_file_without_optimizer_state_has_no_group),
        cmocka_unit_test(groups_of_others_stand_around_ours_by_name),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(an_accumulation_has_the_gradients_of_all_parameters_or_none),
        cmocka_unit_test(reading_survives_every_failure_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
