// SPDX-License-Identifier: Apache-2.0
// A session over the small network: what the tests of `session` have in common.
#ifndef TESTS_UNIT_SESSION_FIXTURE_H
#define TESTS_UNIT_SESSION_FIXTURE_H

#include "base/base.h"
#include "mlp.h"

typedef struct fixture {
    ot_model *training, *eval, *optimizer;
    ot_checkpoint *checkpoint;
    ot_session *session;
    ot_tensor *inputs[2];
    ot_dtype dtype;
} fixture;

static const char *const type_names[] = {[OT_F32] = "float", [OT_F64] = "double"};

static inline void make(fixture *f, ot_dtype dtype, const char *optimizer_text)
{
    f->dtype = dtype;
    f->training = mlp_model(mlp_training_text, type_names[dtype]);
    f->eval = mlp_model(mlp_eval_text, type_names[dtype]);
    f->optimizer = optimizer_text == NULL ? NULL : mlp_model(optimizer_text, type_names[dtype]);
    f->checkpoint = mlp_checkpoint(dtype);
}

static inline void open_session(fixture *f)
{
    if (ot_session_create(f->training, f->eval, f->optimizer, f->checkpoint, NULL, &f->session) !=
        OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline int setup(void **state)
{
    *state = calloc(1, sizeof(fixture));
    return 0;
}

static inline void teardown_of(fixture *f)
{
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(f->inputs[i]);
    ot_session_destroy(f->session);
    ot_checkpoint_destroy(f->checkpoint);
    ot_model_destroy(f->training);
    ot_model_destroy(f->eval);
    ot_model_destroy(f->optimizer);
}

static inline int teardown(void **state)
{
    teardown_of(*state);
    free(*state);
    return 0;
}

static inline void batch(fixture *f, int number, int rows)
{
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(f->inputs[i]);
    mlp_batch(f->dtype, number, rows, f->inputs);
}

static inline double step(fixture *f, ot_mode mode)
{
    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};
    ot_tensor *loss = NULL;
    const ot_status st = mode == OT_MODE_TRAIN
                             ? ot_session_train_step(f->session, inputs, 2, &loss, 1)
                             : ot_session_eval_step(f->session, inputs, 2, &loss, 1);
    double value;

    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(ot_tensor_shape(loss)->ndim, 0);
    value = ot__tensor_get_f64(loss, 0);
    ot_tensor_destroy(loss);
    return value;
}

static inline double train(fixture *f, int number)
{
    batch(f, number, ROWS);
    return step(f, OT_MODE_TRAIN);
}

static inline void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * (1.0 + fabs(expected))))
        fail_msg("%.17g, expected %.17g", found, expected);
}

static inline void assert_tensors(const fixture *f, const double *expected, bool gradients,
                                  double tolerance)
{
    for (int k = 0; k < N_PARTS; k++) {
        ot_tensor *t;
        const ot_status st =
            gradients ? ot_checkpoint_get_gradient(f->checkpoint, mlp_parts[k].name, &t)
                      : ot_checkpoint_get_parameter(f->checkpoint, mlp_parts[k].name, &t);

        assert_int_equal(st, OT_OK);
        for (int64_t i = 0; i < ot_tensor_count(t); i++)
            assert_near(ot__tensor_get_f64(t, i), expected[mlp_parts[k].first + i], tolerance);
        ot_tensor_destroy(t);
    }
}

static inline void optimize(fixture *f)
{
    if (ot_session_optimizer_step(f->session) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static inline void add(ot_checkpoint *checkpoint, const char *name, ot_shape shape, int trainable)
{
    ot_tensor *t = mlp_tensor(OT_F32, shape, NULL);

    assert_int_equal(ot_checkpoint_add_parameter(checkpoint, name, t, trainable), OT_OK);
    ot_tensor_destroy(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
