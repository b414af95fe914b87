// SPDX-License-Identifier: Apache-2.0
// What a recorded model loses in steps of plain SGD.
#ifndef OT_TESTS_EXPORTERS_LOSSES_H
#define OT_TESTS_EXPORTERS_LOSSES_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "onnxtrain/onnxtrain.h"

enum { STEPS = 5, PATH_MAX_LENGTH = 1024 };

static inline const char *path_of(const char *folder, const char *file)
{
    static char path[PATH_MAX_LENGTH];

    snprintf(path, sizeof path, OT_TEST_DIR "/%s/%s", folder, file);
    return path;
}

static inline ot_model *load(const char *folder, const char *file)
{
    ot_model *model;

    if (ot_model_load(path_of(folder, file), NULL, &model) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    return model;
}

static inline ot_tensor *array(const char *folder, const char *file)
{
    ot_dataset *data;
    ot_batches *batches;
    ot_batches_options options = OT_BATCHES_OPTIONS_INIT;
    ot_binding binding = {.input = "array", .scale = 1, .n_channels = 1};
    const char *path = path_of(folder, file);
    const ot_tensor *batch;
    ot_tensor *copy;

    assert_int_equal(ot_dataset_open(&path, 1, NULL, &data), OT_OK);
    assert_int_equal(ot_dataset_field_info(data, 0, &binding.dtype, &binding.shape), OT_OK);
    binding.fields = ot_dataset_field_name(data, 0);
    assert_int_equal(ot_batches_create(data, &binding, 1, &options, &batches), OT_OK);
    assert_int_equal(ot_batches_next(batches, &batch, 1), OT_OK);
    assert_int_equal(ot_tensor_clone(batch, &copy), OT_OK);
    ot_batches_destroy(batches);
    ot_dataset_destroy(data);
    return copy;
}

static inline void assert_trained(const char *file, const ot_checkpoint *checkpoint, int n_tensors,
                                  int n_elements)
{
    int tensors = 0, elements = 0;

    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);
        ot_tensor *parameter;

        if (!ot_checkpoint_parameter_trainable(checkpoint, name))
            continue;
        assert_int_equal(ot_checkpoint_get_parameter(checkpoint, name, &parameter), OT_OK);
        tensors++;
        elements += (int)ot_tensor_count(parameter);
        ot_tensor_destroy(parameter);
    }
    if (tensors != n_tensors || elements != n_elements)
        fail_msg("%s: %d elements in %d tensors train, PyTorch's are %d in %d", file, elements,
                 tensors, n_elements, n_tensors);
}

static inline double train_step(ot_session *session, const ot_tensor *const *batch, int n_batch)
{
    ot_tensor *loss = NULL;
    double value;

    if (ot_session_train_step(session, batch, n_batch, &loss, 1) != OT_OK ||
        ot_session_optimizer_step(session) != OT_OK)
        fail_msg("%s", ot_error_message());
    ot_session_reset_gradients(session);
    value = (double)*(const float *)ot_tensor_data(loss);
    ot_tensor_destroy(loss);
    return value;
}

// The losses are `expected`, each within its tolerance. The batch ends with the labels.
static inline void assert_losses_of(ot_artifacts *artifacts, const char *file,
                                    const ot_tensor *const *batch, int n_batch, double rate,
                                    const double *expected, const double *tolerance)
{
    ot_session *session;

    if (ot_session_create_from_artifacts(artifacts, NULL, &session) != OT_OK)
        fail_msg("%s: %s", file, ot_error_message());
    assert_int_equal(ot_session_set_learning_rate(session, rate), OT_OK);
    for (int step = 0; step < STEPS; step++) {
        const double found = train_step(session, batch, n_batch);

        if (!(fabs(found - expected[step]) <= tolerance[step]))
            fail_msg("%s: loss %d is %.9g, PyTorch's %.9g", file, step, found, expected[step]);
    }
    ot_session_destroy(session);
}

static inline void assert_losses(ot_artifacts *artifacts, const char *file, const ot_tensor *x,
                                 const ot_tensor *labels, double rate, const double *expected,
                                 const double *tolerance)
{
    assert_losses_of(artifacts, file, (const ot_tensor *const[]){x, labels}, 2, rate, expected,
                     tolerance);
}

#endif
