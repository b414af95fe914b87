// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic stays symbolic: the chains that exporters write for a dynamic batch.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "op/op.h"

static ot_model *model;

static int make_model(void **state)
{
    (void)state;
    assert_int_equal(ot__model_create(&model), OT_OK);
    return ot__model_set_opset(model, "", 18) == OT_OK ? 0 : 1;
}

static int drop_model(void **state)
{
    (void)state;
    ot_model_destroy(model);
    return 0;
}

static int64_t symbol(const char *name)
{
    return ot__dim_symbol(model, name);
}

static ot_value *input(const char *name, ot_dtype dtype, ot_shape shape)
{
    ot_value *value = ot__graph_value(model->graph, name);

    ot__value_set(value, dtype, &shape);
    assert_true(ot__graph_add_input(model->graph, value));
    return value;
}

static ot_value *ints(const ot_shape *shape, const int64_t *numbers)
{
    ot_value *value = ot__graph_new_value(model->graph, "c");
    ot_tensor *tensor = ot__model_tensor_new(model, OT_I64, shape);

    memcpy(tensor->data, numbers, tensor->n_bytes);
    assert_true(ot__graph_add_initializer(model->graph, value, tensor));
    return value;
}

#define LIST(...)                                                                                  \
    ints(&OT_SHAPE((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))),                 \
         (const int64_t[]){__VA_ARGS__})
#define SCALAR(number) ints(&OT_SHAPE_SCALAR, &(const int64_t){number})

static ot_node *add_node(const char *op, const char *attrs, ot_value *a, ot_value *b, ot_value *c,
                         int n_out)
{
    ot_value *in[3] = {a, b, c}, *out[3] = {NULL};
    const int n_in = c != NULL ? 3 : b != NULL ? 2 : 1;
    ot_node *node;

    for (int i = 0; i < n_out; i++)
        out[i] = ot__graph_new_value(model->graph, "y");
    node = ot__graph_add_node(model->graph, "", op, "", in, n_in, out, n_out);
    assert_int_equal(ot__op_lookup(model, node, &node->op), OT_OK);
    if (attrs != NULL)
        assert_int_equal(ot__node_set_attrs_text(node, attrs), OT_OK);
    assert_int_equal(ot__op_infer(node), OT_OK);
    return node;
}

static ot_value *emit(const char *op, const char *attrs, ot_value *a, ot_value *b, ot_value *c)
{
    return add_node(op, attrs, a, b, c, 1)->outputs[0];
}

static void assert_dims(const ot_value *value, ot_shape expected)
{
    assert_true(value->has_shape);
    assert_int_equal(value->shape.ndim, expected.ndim);
    for (int k = 0; k < expected.ndim; k++)
        assert_int_equal(value->shape.dim[k], expected.dim[k]);
}

static void a_batch_read_from_the_shape_survives_flattening(void **state)
{
    ot_value *x = input("x", OT_F32, OT_SHAPE(symbol("batch"), 1, 28, 28));
    ot_value *batch, *y;

    (void)state;
    batch = emit("Gather", "axis = 0", emit("Shape", NULL, x, NULL, NULL), SCALAR(0), NULL);
    batch = emit("Unsqueeze", NULL, batch, LIST(0), NULL);
    y = emit("Reshape", NULL, x, emit("Concat", "axis = 0", batch, LIST(-1), NULL), NULL);
    assert_dims(y, OT_SHAPE(symbol("batch"), 784));
}

static void splitting_and_merging_heads_keeps_both_symbols(void **state)
{
    const int64_t batch = symbol("batch"), length = symbol("length");
    ot_value *x = input("x", OT_F32, OT_SHAPE(batch, length, 64));
    ot_value *two = emit("Shape", "end = 2", x, NULL, NULL), *heads, *merged;

    (void)state;
    heads = emit("Reshape", NULL, x, emit("Concat", "axis = 0", two, LIST(4, -1), NULL), NULL);
    assert_dims(heads, OT_SHAPE(batch, length, 4, 16));
    heads = emit("Transpose", "perm = [0, 2, 1, 3]", heads, NULL, NULL);
    assert_dims(heads, OT_SHAPE(batch, 4, length, 16));
    merged = emit("Transpose", "perm = [0, 2, 1, 3]", heads, NULL, NULL);
    merged = emit("Reshape", NULL, merged, LIST(0, 0, 64), NULL);
    assert_dims(merged, OT_SHAPE(batch, length, 64));
    merged = emit("Reshape", NULL, merged, LIST(-1, 64), NULL);
    assert_int_equal(merged->shape.dim[0], ot__dim_mul(model, batch, length));
}

static void minus_one_finds_an_extent_beside_one_that_is_not_known(void **state)
{
    ot_value *x = input("x", OT_F32, OT_SHAPE(OT_DIM_UNKNOWN, 2, 3));

    (void)state;
    assert_dims(emit("Reshape", NULL, x, LIST(0, -1), NULL), OT_SHAPE(OT_DIM_UNKNOWN, 6));
}

static void a_product_of_extents_is_reduced_to_a_symbol(void **state)
{
    const int64_t batch = symbol("batch");
    ot_value *x = input("x", OT_F32, OT_SHAPE(batch, 3, 5));
    ot_value *shape = emit("Shape", NULL, x, NULL, NULL);
    ot_value *count = emit("ReduceProd", "keepdims = 1", shape, NULL, NULL);
    ot_value *size = emit("Size", NULL, x, NULL, NULL);

    (void)state;
    assert_int_equal(count->n_known, 1);
    assert_int_equal(count->known[0], ot__dim_mul(model, batch, 15));
    assert_int_equal(size->known[0], count->known[0]);
    assert_dims(emit("Reshape", NULL, x, count, NULL), OT_SHAPE(ot__dim_mul(model, batch, 15)));
}

static void positions_range_over_a_symbolic_length(void **state)
{
    const int64_t length = symbol("length");
    ot_value *x = input("x", OT_I64, OT_SHAPE(2, length));
    ot_value *n = emit("Gather", NULL, emit("Shape", NULL, x, NULL, NULL), SCALAR(-1), NULL);
    ot_value *range = emit("Range", NULL, SCALAR(0), n, SCALAR(1));
    ot_value *list = emit("Unsqueeze", NULL, n, LIST(0), NULL);

    (void)state;
    assert_dims(range, OT_SHAPE(length));
    assert_dims(emit("ConstantOfShape", NULL, list, NULL, NULL), OT_SHAPE(length));
    assert_dims(emit("Expand", NULL, emit("Unsqueeze", NULL, range, LIST(0), NULL),
                     emit("Shape", NULL, x, NULL, NULL), NULL),
                OT_SHAPE(2, length));
}

static void slices_of_a_symbolic_axis_are_as_long_as_can_be_proven(void **state)
{
    const int64_t length = symbol("length");
    ot_value *x = input("x", OT_F32, OT_SHAPE(length, 4));

    (void)state;
    assert_dims(emit("Slice", NULL, x, LIST(0), LIST(INT64_MAX)), OT_SHAPE(length, 4));
    assert_dims(emit("Slice", NULL, x, LIST(1), LIST(INT64_MAX)),
                OT_SHAPE(ot__dim_sub(model, length, 1), 4));
    assert_dims(emit("Slice", NULL, x, LIST(0), LIST(-1)),
                OT_SHAPE(ot__dim_sub(model, length, 1), 4));
    assert_dims(emit("Slice", NULL, x, LIST(0), LIST(2)), OT_SHAPE(OT_DIM_UNKNOWN, 4));
    assert_dims(emit("Slice", NULL, x, LIST(-1), LIST(INT64_MAX)), OT_SHAPE(OT_DIM_UNKNOWN, 4));
}

static void joining_padding_and_repeating_add_and_multiply_symbols(void **state)
{
    const int64_t batch = symbol("batch");
    ot_value *x = input("x", OT_F32, OT_SHAPE(batch, 3));
    ot_node *split;

    (void)state;
    assert_dims(emit("Concat", "axis = 0", x, x, NULL), OT_SHAPE(ot__dim_mul(model, batch, 2), 3));
    assert_dims(emit("Pad", NULL, x, LIST(1, 0, 2, 0), NULL),
                OT_SHAPE(ot__dim_add(model, batch, 3), 3));
    assert_dims(emit("Tile", NULL, x, LIST(2, 2), NULL), OT_SHAPE(ot__dim_mul(model, batch, 2), 6));
    split = add_node("Split", NULL, emit("Concat", "axis = 0", x, x, NULL), NULL, NULL, 2);
    assert_dims(split->outputs[0], OT_SHAPE(batch, 3));
    assert_dims(split->outputs[1], OT_SHAPE(batch, 3));
}

static void elements_of_a_shape_move_like_any_others(void **state)
{
    const int64_t batch = symbol("batch");
    ot_value *x = input("x", OT_F32, OT_SHAPE(batch, 3, 5, 7));
    ot_value *shape = emit("Shape", NULL, x, NULL, NULL), *y;
    ot_node *split = add_node("Split", NULL, shape, NULL, NULL, 2);

    (void)state;
    y = emit("ScatterND", NULL, shape, ints(&OT_SHAPE(1, 1), &(const int64_t){1}), LIST(9));
    assert_int_equal(y->n_known, 4);
    assert_int_equal(y->known[0], batch);
    assert_int_equal(y->known[1], 9);
    assert_int_equal(split->outputs[0]->known[0], batch);
    assert_int_equal(split->outputs[1]->known[1], 7);
    y = emit("Tile", NULL, shape, LIST(2), NULL);
    assert_int_equal(y->known[4], batch);
    y = emit("Slice", NULL, shape, LIST(1), LIST(3));
    assert_int_equal(y->n_known, 2);
    assert_int_equal(y->known[1], 5);
    y = emit("CumSum", NULL, shape, SCALAR(0), NULL);
    assert_int_equal(y->known[1], ot__dim_add(model, batch, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_batch_read_from_the_shape_survives_flattening, make_model,
                                        drop_model),
        cmocka_unit_test_setup_teardown(splitting_and_merging_heads_keeps_both_symbols, make_model,
                                        drop_model),
        cmocka_unit_test_setup_teardown(minus_one_finds_an_extent_beside_one_that_is_not_known,
                                        make_model, drop_model),
        cmocka_unit_test_setup_teardown(a_product_of_extents_is_reduced_to_a_symbol, make_model,
                                        drop_model),
        cmocka_unit_test_setup_teardown(positions_range_over_a_symbolic_length, make_model,
                                        drop_model),
        cmocka_unit_test_setup_teardown(slices_of_a_symbolic_axis_are_as_long_as_can_be_proven,
                                        make_model, drop_model),
        cmocka_unit_test_setup_teardown(joining_padding_and_repeating_add_and_multiply_symbols,
                                        make_model, drop_model),
        cmocka_unit_test_setup_teardown(elements_of_a_shape_move_like_any_others, make_model,
                                        drop_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
