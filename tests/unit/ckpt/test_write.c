// SPDX-License-Identifier: Apache-2.0
// What is written, byte for byte: large tensors go from where they are to the file, and the files
// are those that a builder in memory made, whose ids are recorded here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../base/temporary_folder.h"
#include "ckpt/ckpt.h"

// Small, large, and large of a length that no alignment divides; also without elements.
static const int64_t counts[] = {3, 70001, 40000, 0, 33333, 5};
static const ot_dtype types[] = {OT_F32, OT_U8, OT_F64, OT_F32, OT_F16, OT_I64};
static const char *const names[] = {"a", "weight", "wide", "empty", "half", "steps"};

static ot_tensor *make_tensor(ot_dtype dtype, int64_t count, uint8_t seed)
{
    ot_tensor *tensor;
    uint8_t *bytes;

    assert_int_equal(ot_tensor_create(dtype, &OT_SHAPE(count), &tensor), OT_OK);
    bytes = tensor->data;
    for (size_t i = 0; i < tensor->n_bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
    return tensor;
}

static ot_checkpoint *make(void)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    for (int i = 0; i < (int)OT_COUNT(names); i++) {
        ot__parameter *parameter;

        assert_int_equal(ot__ckpt_add(checkpoint, names[i],
                                      make_tensor(types[i], counts[i], (uint8_t)i), i != 2,
                                      &parameter),
                         OT_OK);
        if (i == 1)
            parameter->doc = ot__strdup("what it is");
        parameter->n_updates = 7;
        for (int k = 0; i != 2 && k < 2; k++)
            parameter->slots[k] = make_tensor(types[i], counts[i], (uint8_t)(i + 10 * k + 20));
    }
    checkpoint->has_optimizer_state = true;
    checkpoint->step = 7;
    checkpoint->initial_lr = 0.5f;
    assert_int_equal(ot_checkpoint_set_int(checkpoint, "count", 12), OT_OK);
    assert_int_equal(ot_checkpoint_set_float(checkpoint, "ratio", 0.25f), OT_OK);
    assert_int_equal(ot_checkpoint_set_string(checkpoint, "text", "words"), OT_OK);
    return checkpoint;
}

static void add_foreign_group(ot_checkpoint *checkpoint)
{
    ot__optimizer_group *group = ot__alloc_zero(1, sizeof *group);

    *group = (ot__optimizer_group){.name = ot__strdup("other"), .step = 3, .n_states = 1};
    group->states = ot__alloc_zero(1, sizeof *group->states);
    group->states[0].param_name = ot__strdup("weight");
    group->states[0].n_moments = 1;
    group->states[0].moments = ot__alloc_zero(1, sizeof(ot__moment));
    group->states[0].moments[0] =
        (ot__moment){.name = ot__strdup("speed"), .value = make_tensor(OT_U8, 70001, 99)};
    ot__free(checkpoint->other_groups);
    checkpoint->other_groups = group;
    checkpoint->n_other_groups = 1;
}

// The id of a file's bytes, "size id".
static const char *id_of(const char *path)
{
    static char text[64];
    char id[OT_HEX_ID_LENGTH + 1];
    ot__file_map map;

    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    ot__id_text(ot__id_mix(0, map.data, map.size), id);
    snprintf(text, sizeof text, "%zu %s", map.size, id);
    ot__file_map_close(&map);
    return text;
}

static void parameters_alone(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make();

    assert_int_equal(ot_checkpoint_save(checkpoint, path, 0), OT_OK);
    assert_string_equal(id_of(path), "457432 76650f128911c763");
    ot_checkpoint_destroy(checkpoint);
}

static void parameters_with_moments_and_a_group_of_another_program(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make();

    add_foreign_group(checkpoint);
    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE), OT_OK);
    assert_string_equal(id_of(path), "802088 16a9b175a6b6ef8b");
    ot_checkpoint_destroy(checkpoint);
}

static void an_artifact_in_the_order_of_its_model(void **state)
{
    static const char *const order[] = {"wide", "weight", "a", "steps", "half", "empty"};
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make();

    assert_int_equal(ot__ckpt_save_artifact(checkpoint, path, order, OT_COUNT(order), false),
                     OT_OK);
    assert_string_equal(id_of(path), "457432 cffbfd21dacc552a");
    assert_int_equal(ot__ckpt_save_artifact(checkpoint, path, order, OT_COUNT(order), true), OT_OK);
    assert_string_equal(id_of(path), "672 2c49fa4dae1e3446");
    ot_checkpoint_destroy(checkpoint);
}

static void external_data_and_their_checkpoint(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make();

    checkpoint->has_external_data = true;
    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE), OT_OK);
    assert_string_equal(id_of(path), "275280 d9250caecd12855a");
    path = in_folder(state, "checkpoint.data");
    assert_string_equal(id_of(path), "456762 d17d8e22d9898db8");
    ot_checkpoint_destroy(checkpoint);
}

static void put(const char *path, const ot__pieces *pieces)
{
    ot__file_writer *file;

    assert_int_equal(ot__file_writer_open(&file, path), OT_OK);
    assert_int_equal(ot__pieces_write(pieces, file), OT_OK);
    assert_int_equal(ot__file_writer_commit(file), OT_OK);
}

static void assert_same(const ot_tensor *a, const ot_tensor *b)
{
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->n_bytes, b->n_bytes);
    assert_memory_equal(a->data, b->data, a->n_bytes);
}

static void moments_that_lie_beside_the_file_are_read_from_there(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make(), *found;
    ot__pieces file = {0}, data = {0};
    const ot__ckpt_write_options options = {
        .flags = OT_CHECKPOINT_OPTIMIZER_STATE, .external = &data, .external_moments = true};

    add_foreign_group(checkpoint);
    assert_int_equal(ot__flatbuf_write(checkpoint, &options, &file), OT_OK);
    assert_true(ot__pieces_size(&file) < 8192);
    put(path, &file);
    put(in_folder(state, "checkpoint.data"), &data);
    assert_int_equal(ot_checkpoint_load(path, &found), OT_OK);
    assert_int_equal(found->n_parameters, checkpoint->n_parameters);
    for (int i = 0; i < found->n_parameters; i++) {
        assert_same(found->parameters[i]->value, checkpoint->parameters[i]->value);
        for (int k = 0; k < 2 && checkpoint->parameters[i]->slots[k]; k++)
            assert_same(found->parameters[i]->slots[k], checkpoint->parameters[i]->slots[k]);
    }
    assert_int_equal(found->n_other_groups, 1);
    assert_same(found->other_groups[0].states[0].moments[0].value,
                checkpoint->other_groups[0].states[0].moments[0].value);
    ot__pieces_deinit(&file);
    ot__pieces_deinit(&data);
    ot_checkpoint_destroy(found);
    ot_checkpoint_destroy(checkpoint);
}

static void parameters_are_read_alone_when_only_they_are_wanted(void **state)
{
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *checkpoint = make(), *found;

    assert_int_equal(ot_checkpoint_save(checkpoint, path, OT_CHECKPOINT_OPTIMIZER_STATE), OT_OK);
    assert_int_equal(ot_checkpoint_load_parameters(path, &found), OT_OK);
    assert_int_equal(found->n_parameters, checkpoint->n_parameters);
    assert_false(found->has_optimizer_state);
    for (int i = 0; i < found->n_parameters; i++) {
        assert_same(found->parameters[i]->value, checkpoint->parameters[i]->value);
        assert_null(found->parameters[i]->slots[0]);
    }
    ot_checkpoint_destroy(found);
    ot_checkpoint_destroy(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters_alone, temporary_folder_make,
                                        temporary_folder_remove),
        cmocka_unit_test_setup_teardown(parameters_with_moments_and_a_group_of_another_program,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(an_artifact_in_the_order_of_its_model,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(moments_that_lie_beside_the_file_are_read_from_there,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(parameters_are_read_alone_when_only_they_are_wanted,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(external_data_and_their_checkpoint, temporary_folder_make,
                                        temporary_folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
