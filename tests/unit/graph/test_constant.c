// SPDX-License-Identifier: Apache-2.0
// A large constant is freed when the model lets go of it; seen through what the allocator is given.
#include <stdlib.h>
#include <unistd.h>

#include "unit/graph/model_text.h"

enum { LARGE = 1 << 20, SMALL = 16 };

typedef struct watch {
    int n_released; // blocks large enough for LARGE bytes
    void *large[8];
    int n_large;
} watch;

static void *watched_reallocate(void *context, void *block, size_t n_bytes)
{
    watch *w = context;
    void *result = realloc(block, n_bytes);

    if (n_bytes >= LARGE && w->n_large < 8)
        w->large[w->n_large++] = result;
    return result;
}

static void watched_release(void *context, void *block)
{
    watch *w = context;

    for (int i = 0; i < w->n_large; i++)
        if (w->large[i] == block) {
            w->n_released++;
            w->large[i] = NULL;
            break;
        }
    free(block);
}

static int setup(void **state)
{
    watch *w = calloc(1, sizeof *w);
    const ot_allocator allocator = {watched_reallocate, watched_release, w};

    ot_set_allocator(&allocator);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    ot_set_allocator(NULL);
    free(*state);
    return 0;
}

static ot_value *value_with_constant(ot_model *model, const char *name, int64_t n_bytes)
{
    ot_value *value = ot__graph_value(model->graph, name);

    value->constant = ot__model_tensor_new(model, OT_U8, &OT_SHAPE(n_bytes));
    assert_non_null(value->constant);
    return value;
}

static void a_large_constant_is_freed_when_no_value_has_it(void **state)
{
    const watch *w = *state;
    ot_model *model;
    ot_value *value, *kept;

    assert_int_equal(ot__model_create(&model), OT_OK);
    value = value_with_constant(model, "w", LARGE);
    kept = value_with_constant(model, "kept", LARGE);
    assert_int_equal(ot__model_drop_unused(model), OT_OK);
    assert_int_equal(w->n_released, 0);
    value->constant = NULL;
    assert_int_equal(ot__model_drop_unused(model), OT_OK);
    assert_int_equal(w->n_released, 1);
    assert_int_equal(((const uint8_t *)kept->constant->data)[LARGE - 1], 0);
    ot_model_destroy(model);
    assert_int_equal(w->n_released, 2);
}

static void a_clone_keeps_what_its_original_lets_go_of(void **state)
{
    const watch *w = *state;
    ot_model *model, *clone;
    ot_value *value;

    assert_int_equal(ot__model_create(&model), OT_OK);
    value = value_with_constant(model, "w", LARGE);
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    value->constant = NULL;
    assert_int_equal(ot__model_drop_unused(model), OT_OK);
    assert_int_equal(w->n_released, 0);
    ot_model_destroy(model);
    assert_int_equal(ot__graph_find(clone->graph, "w")->constant->n_bytes, LARGE);
    ot_model_destroy(clone);
    assert_int_equal(w->n_released, 1);
}

static void the_tensor_of_an_attribute_is_in_use(void **state)
{
    const watch *w = *state;
    ot_model *model;
    ot_node *node;

    assert_int_equal(ot__model_create(&model), OT_OK);
    node = ot__graph_add_node(model->graph, "", "Constant", "", NULL, 0, NULL, 0);
    assert_non_null(node);
    ot__node_add_attr(node, "value", OT_ATTR_TENSOR)->t =
        ot__model_tensor_new(model, OT_U8, &OT_SHAPE(LARGE));
    assert_int_equal(ot__model_drop_unused(model), OT_OK);
    assert_int_equal(w->n_released, 0);
    ot_model_destroy(model);
}

static void small_constants_stay_in_the_arena(void **state)
{
    ot_model *model;
    ot_value *value;

    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    value = value_with_constant(model, "w", SMALL);
    const uint8_t *data = value->constant->data;
    value->constant = NULL;
    assert_int_equal(ot__model_drop_unused(model), OT_OK);
    assert_int_equal(data[SMALL - 1],
                     0); // still readable: a use after free is an error of the test
    ot_model_destroy(model);
}

static void large_constants_count_against_the_limit_of_the_arena(void **state)
{
    ot_model *model;

    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    ot__arena_limit(model->arena, LARGE / 2);
    assert_null(ot__model_tensor_new(model, OT_U8, &OT_SHAPE(LARGE)));
    ot_model_destroy(model);
}

static void a_constant_in_a_mapped_file_is_copied_with_its_bytes(void **state)
{
    char path[] = "constant-XXXXXX", *bytes = malloc(LARGE);
    const int64_t offset = 4100, count = (LARGE - offset) / 4;
    const int file = mkstemp(path);
    ot_tensor *constant, *copy;
    ot__file_map map;
    ot_model *model;

    (void)state;
    for (int i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 13 + (i >> 9));
    assert_int_equal(write(file, bytes, LARGE), LARGE);
    close(file);
    assert_int_equal(ot__file_map_open(&map, path), OT_OK);
    unlink(path);
    assert_int_equal(ot__model_create(&model), OT_OK);
    constant = ot__model_tensor_over(model, OT_F32, &OT_SHAPE(count), map.data + offset,
                                     (size_t)count * 4);
    assert_int_equal(ot__model_hold_map(model, "data", &map), OT_OK);
    assert_int_equal(ot__constant_clone(model, constant, &copy), OT_OK);
    assert_ptr_not_equal(copy->data, constant->data);
    assert_int_equal(copy->n_bytes, count * 4);
    assert_memory_equal(copy->data, bytes + offset, copy->n_bytes);
    assert_memory_equal(constant->data, bytes + offset, copy->n_bytes); // read again
    ot_tensor_destroy(copy);
    ot_model_destroy(model);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_large_constant_is_freed_when_no_value_has_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_clone_keeps_what_its_original_lets_go_of, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_tensor_of_an_attribute_is_in_use, setup, teardown),
        cmocka_unit_test(a_constant_in_a_mapped_file_is_copied_with_its_bytes),
        cmocka_unit_test_setup_teardown(small_constants_stay_in_the_arena, setup, teardown),
        cmocka_unit_test_setup_teardown(large_constants_count_against_the_limit_of_the_arena, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
