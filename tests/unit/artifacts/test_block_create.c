// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "block_tests.h"
#include "onnxtrain/session.h"

static const char forward[] = "(float[N, 3] x) => (float[N, 2] y)"
                              "<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0.5, -0.5}>"
                              "{ y = Gemm(x, w, b) }";

// ---- models ----

static void the_model_given_stays_as_it_is(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>"
                                "g (float[3] x) => (float[3] y) { y = Relu(x) }");
    ot_block *b;
    ot_model *built;
    ot_value *z;

    (void)state;
    assert_ok(ot_block_create(model, NULL, &b));
    z = ot_block_neg(b, ot_block_output(b, 0));
    assert_ok(ot_block_status(b));
    built = finished(b, z);
    assert_int_equal(model->graph->n_nodes, 1);
    assert_string_equal(model->graph->outputs[0]->name, "y");
    assert_int_equal(built->graph->n_nodes, 2);
    assert_int_equal(built->graph->n_outputs, 1);
    assert_string_equal(built->graph->outputs[0]->name, "onnx::neg_output::1");
    ot_model_destroy(model);
    ot_model_destroy(built);
}

static void an_empty_model_is_that_of_onnxblock(void **state)
{
    ot_block_options options = OT_BLOCK_OPTIONS_INIT;
    ot_block *b;
    ot_model *model;

    (void)state;
    options.opset = 15;
    assert_ok(ot_block_create_empty(&options, &b));
    model = finished(b, ot_block_neg(b, ot_block_input(b, "x", OT_F32, &OT_SHAPE(-1, 3))));
    assert_string_equal(model->producer_name, "orttraining");
    assert_string_equal(model->graph->name, "graph");
    assert_int_equal(ot__model_opset(model, ""), 15);
    assert_int_equal(ot__model_opset(model, "com.microsoft"), 1);
    assert_string_equal(ot__dim_name(model, find_value(model, "x")->shape.dim[0]), "x_0");
    assert_int_equal(model->graph->outputs[0]->shape.dim[0],
                     find_value(model, "x")->shape.dim[0]); // known to be the same
    ot_model_destroy(model);
    assert_ok(ot_block_create_empty(NULL, &b));
    model = finished(b, ot_block_input(b, NULL, OT_F32, NULL));
    assert_int_equal(ot__model_opset(model, ""), ot__op_newest_opset);
    assert_string_equal(model->graph->inputs[0]->name, "onnx::input::1");
    ot_model_destroy(model);
}

static void names_count_on_where_blocks_have_built_before(void **state)
{
    ot_block *b = block_over(forward), *again;
    ot_model *model = finished(b, ot_block_neg(b, ot_block_output(b, 0)));

    (void)state;
    assert_ok(ot_block_create(model, NULL, &again));
    ot_model_destroy(model);
    model = finished(again, ot_block_neg(again, ot_block_output(again, 0)));
    assert_nodes(model, "   y = Gemm (x, w, b)\n"
                        "   [\"onnx::Neg::2\"] \"onnx::neg_output::1\" = Neg (y)\n"
                        "   [\"onnx::Neg::4\"] \"onnx::neg_output::3\" = Neg "
                        "(\"onnx::neg_output::1\")\n");
    ot_model_destroy(model);
}

static void outputs_replace_the_old_ones_or_stay(void **state)
{
    ot_block *b = block_over(forward);
    ot_value *outputs[2];
    ot_model *model;

    (void)state;
    outputs[1] = ot_block_output(b, 0);
    outputs[0] = ot_block_abs(b, outputs[1]);
    assert_ok(ot_block_finish(b, outputs, 2, &model));
    ot_block_destroy(b);
    assert_int_equal(model->graph->n_outputs, 2);
    assert_string_equal(model->graph->outputs[1]->name, "y");
    ot_model_destroy(model);
    b = block_over(forward);
    assert_ok(ot_block_finish(b, NULL, 0, &model));
    ot_block_destroy(b);
    assert_string_equal(model->graph->outputs[0]->name, "y");
    ot_model_destroy(model);
    b = block_over(forward);
    outputs[0] = outputs[1] = ot_block_output(b, 0);
    assert_fails(ot_block_finish(b, outputs, 2, &model), OT_ERR_INVALID,
                 "outputs: 'y' is there twice");
    ot_block_destroy(b);
    assert_ok(ot_block_create_empty(NULL, &b));
    assert_fails(ot_block_finish(b, NULL, 0, &model), OT_ERR_INVALID,
                 "outputs: the graph has none");
    ot_block_destroy(b);
}

// ---- training ----

static bool has_parameter(ot_artifacts *artifacts, const char *name)
{
    return ot_checkpoint_parameter_trainable(ot_artifacts_checkpoint(artifacts), name) >= 0;
}

static void a_loss_built_by_hand_is_the_loss_of_generate(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]> g"
                                "(float[N, 3] x) => (float[N, 2] y)"
                                "<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0.5, -0.5}>"
                                "{ y = Gemm(x, w, b) }");
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *by_hand, *generated;
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_output(b, 0), *t = ot_block_input_like(b, y, "target");
    ot_value *square = ot_block_pow(b, ot_block_sub(b, y, t), 2.0);
    char *strings[2];

    (void)state;
    by_hand = train_with(b, ot_block_reduce_mean(b, square, OT_SCALAR), NULL);
    mse.loss = OT_LOSS_MSE;
    options.losses = &mse;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &generated));
    strings[0] = bytes_of(ot_artifacts_eval_model(by_hand));
    strings[1] = bytes_of(ot_artifacts_eval_model(generated));
    // Only the order in which names are counted differs: the target's, the exponent's.
    assert_int_equal(ot_artifacts_eval_model(by_hand)->graph->n_nodes, 4);
    assert_int_equal(strlen(strings[0]), strlen(strings[1]));
    assert_string_equal(ot_artifacts_eval_model(by_hand)->graph->outputs[0]->name,
                        "onnx::reducemean_output::6");
    ot__free(strings[0]);
    ot__free(strings[1]);
    assert_string_equal(ot_model_input_name(ot_artifacts_training_model(by_hand), 1), "target");
    ot_artifacts_destroy(by_hand);
    ot_artifacts_destroy(generated);
    ot_model_destroy(model);
}

static void constants_of_blocks_never_train_but_initializers_and_linear_do(void **state)
{
    const double ones[] = {1.0, 1.0};
    ot_tensor *tensor = new_tensor(OT_F32, OT_SHAPE(2), ones);
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_output(b, 0);
    ot_artifacts *artifacts;

    (void)state;
    y = ot_block_mul(b, y, ot_block_constant(b, 2.0, OT_F32));
    y = ot_block_mul(b, y, ot_block_constant_tensor(b, tensor));
    y = ot_block_mul(b, y, ot_block_initializer(b, "scale", tensor));
    y = ot_block_linear(b, y, 2, 2, NULL);
    artifacts = train_with(b, mse_of(b, y), NULL);
    assert_int_equal(ot_checkpoint_parameter_count(ot_artifacts_checkpoint(artifacts)), 5);
    assert_true(has_parameter(artifacts, "scale"));
    assert_true(has_parameter(artifacts, "w"));
    assert_true(has_parameter(artifacts, "onnx::linear.weight::9"));
    ot_artifacts_destroy(artifacts);
    ot_tensor_destroy(tensor);
}

static void requires_grad_chooses_what_trains(void **state)
{
    const ot_checkpoint *checkpoint;
    ot_block *b = block_over(forward);
    ot_artifacts *artifacts;

    (void)state;
    ot_block_requires_grad(b, "w", OT_PARAMETER_FROZEN);
    ot_block_requires_grad(b, "b", OT_PARAMETER_TRAINABLE);
    artifacts = train_with(b, mse_of(b, ot_block_output(b, 0)), NULL);
    checkpoint = ot_artifacts_checkpoint(artifacts);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "w"), 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "b"), 1);
    ot_artifacts_destroy(artifacts);
    b = block_over(forward);
    ot_block_requires_grad(b, "w", OT_PARAMETER_FROZEN);
    ot_block_requires_grad(b, "w", OT_PARAMETER_TRAINABLE); // the last word counts
    artifacts = train_with(b, mse_of(b, ot_block_output(b, 0)), NULL);
    checkpoint = ot_artifacts_checkpoint(artifacts);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "w"), 1);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "b"), -1); // a constant
    ot_artifacts_destroy(artifacts);
}

static ot_artifacts *build_all(void)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_linear(b, ot_block_output(b, 0), 2, 3, NULL);
    ot_loss_options bce = OT_LOSS_OPTIONS_INIT;

    bce.loss = OT_LOSS_BCE_WITH_LOGITS;
    bce.target = "positive";
    y = ot_block_clip(b, y, -5.0, 5.0);
    options.optimizer = &optimizer;
    optimizer.max_norm = 1.0;
    return train_with(b, ot_block_add(b, mse_of(b, y), ot_block_loss(b, y, &bce)), &options);
}

static void read_whole(const char *folder, const char *name, ot__file_map *map)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(ot__file_map_open(map, path));
}

static void the_same_calls_make_the_same_bytes(void **state)
{
    static const char *const files[] = {"training_model.onnx", "eval_model.onnx",
                                        "optimizer_model.onnx", "checkpoint"};
    char folders[2][32] = {"/tmp/ot_block_XXXXXX", "/tmp/ot_block_XXXXXX"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        ot_artifacts *artifacts = build_all();

        assert_non_null(mkdtemp(folders[i]));
        assert_ok(ot_artifacts_save(artifacts, folders[i], NULL));
        ot_artifacts_destroy(artifacts);
    }
    for (size_t f = 0; f < OT_COUNT(files); f++) {
        ot__file_map maps[2];
        char path[128];

        for (int i = 0; i < 2; i++)
            read_whole(folders[i], files[f], &maps[i]);
        assert_int_equal(maps[0].size, maps[1].size);
        assert_memory_equal(maps[0].data, maps[1].data, maps[0].size);
        for (int i = 0; i < 2; i++) {
            ot__file_map_close(&maps[i]);
            snprintf(path, sizeof path, "%s/%s", folders[i], files[f]);
            unlink(path);
        }
    }
    rmdir(folders[0]);
    rmdir(folders[1]);
}

// ---- errors ----

static void the_first_error_is_what_finishing_reports(void **state)
{
    ot_block *b = block_over(forward);
    ot_value *y = ot_block_value(b, "nope");

    (void)state;
    assert_int_equal(ot_block_status(b), OT_ERR_NOT_FOUND);
    ot_block_requires_grad(b, NULL, 7);
    y = ot_block_add(b, y, ot_block_linear(b, y, -1, -1, NULL));
    assert_refused(b, y, OT_ERR_NOT_FOUND, "value: 'nope' is not a value of the graph");
}

static void what_training_refuses_is_reported_as_by_generate(void **state)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_block *b = block_over(forward);
    ot_value *y = mse_of(b, ot_block_output(b, 0));

    (void)state;
    ot_block_requires_grad(b, "nope", OT_PARAMETER_TRAINABLE);
    assert_fails(ot_block_finish_training(b, &y, 1, NULL, &artifacts), OT_ERR_NOT_FOUND, "'nope'");
    assert_null(artifacts);
    ot_block_destroy(b);
    b = block_over(forward);
    y = mse_of(b, ot_block_output(b, 0));
    options.losses = &loss;
    options.n_losses = 1;
    assert_fails(ot_block_finish_training(b, &y, 1, &options, &artifacts), OT_ERR_INVALID,
                 "1 losses in the options");
    ot_block_destroy(b);
    b = block_over(forward);
    y = ot_block_output(b, 0);
    y = ot_block_reduce_all_l2(b, &y, 1); // no gradient passes
    assert_fails(ot_block_finish_training(b, &y, 1, NULL, &artifacts), OT_ERR_INVALID,
                 "nothing to train");
    ot_block_destroy(b);
}

static void a_finished_builder_refuses_everything(void **state)
{
    ot_block *b = block_over(forward);
    ot_artifacts *artifacts;
    ot_model *model, *second;

    (void)state;
    assert_ok(ot_block_finish(b, NULL, 0, &model));
    assert_null(ot_block_output(b, 0));
    assert_string_equal(ot_error_message(), "output: the builder is finished");
    assert_null(ot_block_constant(b, 1.0, OT_F32));
    ot_block_requires_grad(b, "w", OT_PARAMETER_TRAINABLE);
    assert_int_equal(ot_block_finish(b, NULL, 0, &second), OT_ERR_STATE);
    assert_null(second);
    assert_int_equal(ot_block_finish_training(b, NULL, 0, NULL, &artifacts), OT_ERR_STATE);
    ot_block_destroy(b);
    ot_model_destroy(model);
}

static void null_handles_and_wrong_options_are_errors(void **state)
{
    ot_block_options options = OT_BLOCK_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;
    ot_block *b;

    (void)state;
    assert_fails(ot_block_create(NULL, NULL, &b), OT_ERR_INVALID, "ot_block_create_empty");
    assert_null(b);
    assert_int_equal(ot_block_create_empty(NULL, NULL), OT_ERR_INVALID);
    options.opset = 7;
    assert_fails(ot_block_create_empty(&options, &b), OT_ERR_UNSUPPORTED, "opset 7, expected 13");
    options.size = 2;
    assert_fails(ot_block_create_empty(&options, &b), OT_ERR_INVALID,
                 "ot_block_options: size is 2");
    ot_block_destroy(NULL);
    assert_int_equal(ot_block_status(NULL), OT_ERR_INVALID);
    assert_int_equal(ot_block_finish(NULL, NULL, 0, &model), OT_ERR_INVALID);
    assert_int_equal(ot_block_finish_training(NULL, NULL, 0, NULL, &artifacts), OT_ERR_INVALID);
    assert_null(ot_block_add(NULL, NULL, NULL));
    assert_null(ot_block_op(NULL, "Relu", NULL, NULL, 0));
    assert_null(ot_block_loss(NULL, NULL, NULL));
    assert_null(ot_block_optimizer(NULL, NULL, OT_F32));
    assert_null(ot_block_value_name(NULL));
    ot_block_requires_grad(NULL, "w", OT_PARAMETER_TRAINABLE);
    b = block_over(forward);
    assert_int_equal(ot_block_finish(b, NULL, 0, NULL), OT_ERR_INVALID);
    assert_refused(b, ot_block_loss(b, NULL, NULL), OT_ERR_INVALID, "loss: its options are NULL");
    b = block_over(forward);
    assert_refused(b, ot_block_optimizer(b, NULL, OT_F32), OT_ERR_INVALID,
                   "optimizer: its options are NULL");
}

static void running_out_of_memory_at_any_allocation_is_an_error_and_no_leak(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]> g"
                                "(float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts = NULL;
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n;

    (void)state;
    mse.loss = OT_LOSS_MSE;
    for (n = 0; st == OT_ERR_NO_MEMORY && n < 20000; n++) {
        ot_value *loss = NULL;
        ot_block *b;

        ot__alloc_fail_after(n);
        st = ot_block_create(model, NULL, &b);
        if (st == OT_OK) {
            loss = ot_block_linear(b, ot_block_output(b, 0), 3, 4, NULL);
            loss = ot_block_loss(b, ot_block_clip(b, loss, -1.0, 1.0), &mse);
            ot_block_requires_grad(b, "onnx::linear.weight::1", OT_PARAMETER_TRAINABLE);
            st = ot_block_finish_training(b, &loss, 1, NULL, &artifacts);
            ot_block_destroy(b);
        }
        ot__alloc_fail_after(-1);
    }
    assert_int_equal(st, OT_OK);
    assert_true(n > 20);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

static ot_value *build_many(ot_block *b, const ot_tensor *keys, const ot_tensor *list)
{
    ot_label_encoder_options encoder = OT_LABEL_ENCODER_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_value *x = ot_block_input(b, NULL, OT_I64, &OT_SHAPE(-1, 2)), *y, *both[2];

    encoder.keys = encoder.values = keys;
    optimizer.max_norm = 1.0;
    y = ot_block_label_encoder(b, x, &encoder);
    y = ot_block_op(b, "Concat", "axis = 0", (ot_value *[]){x, y}, 2);
    both[0] = both[1] = ot_block_cast(b, y, OT_F32);
    ot_block_sequence_construct(b, both, 2);
    y = ot_block_add(b, both[0], ot_block_initializer(b, "v", list));
    ot_block_input_like(b, y, "t");
    return ot_block_optimizer(b, &optimizer, OT_F32);
}

static void every_piece_survives_a_lack_of_memory(void **state)
{
    const double elements[] = {4, 5};
    ot_tensor *list = new_tensor(OT_F32, OT_SHAPE(2), elements);
    ot_tensor *keys = new_tensor(OT_I64, OT_SHAPE(2), elements);
    ot_model *model = NULL;
    ot_status st = OT_ERR_NO_MEMORY;
    int64_t n;

    (void)state;
    for (n = 0; st == OT_ERR_NO_MEMORY && n < 20000; n++) {
        ot_value *flag;
        ot_block *b;

        ot__alloc_fail_after(n);
        st = ot_block_create_empty(NULL, &b);
        if (st == OT_OK) {
            flag = build_many(b, keys, list);
            st = ot_block_finish(b, &flag, 1, &model);
            ot_block_destroy(b);
        }
        ot__alloc_fail_after(-1);
    }
    assert_ok(st);
    assert_true(n > 5);
    ot_model_destroy(model);
    ot_tensor_destroy(list);
    ot_tensor_destroy(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_given_stays_as_it_is),
        cmocka_unit_test(an_empty_model_is_that_of_onnxblock),
        cmocka_unit_test(names_count_on_where_blocks_have_built_before),
        cmocka_unit_test(outputs_replace_the_old_ones_or_stay),
        cmocka_unit_test(a_loss_built_by_hand_is_the_loss_of_generate),
        cmocka_unit_test(constants_of_blocks_never_train_but_initializers_and_linear_do),
        cmocka_unit_test(requires_grad_chooses_what_trains),
        cmocka_unit_test(the_same_calls_make_the_same_bytes),
        cmocka_unit_test(the_first_error_is_what_finishing_reports),
        cmocka_unit_test(what_training_refuses_is_reported_as_by_generate),
        cmocka_unit_test(a_finished_builder_refuses_everything),
        cmocka_unit_test(null_handles_and_wrong_options_are_errors),
        cmocka_unit_test(running_out_of_memory_at_any_allocation_is_an_error_and_no_leak),
        cmocka_unit_test(every_piece_survives_a_lack_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
