// SPDX-License-Identifier: Apache-2.0
// What artifacts say of their loss: targets, classes and metrics.
#include <string.h>

#include "train/train.h"

static const char *const usual_targets[] = {"labels", "target"};

static ot_task task_of(ot_loss loss)
{
    static const ot_task tasks[] = {
        [OT_LOSS_NONE] = OT_TASK_NONE,
        [OT_LOSS_CROSS_ENTROPY] = OT_TASK_CLASSIFICATION,
        [OT_LOSS_MSE] = OT_TASK_REGRESSION,
        [OT_LOSS_L1] = OT_TASK_REGRESSION,
        [OT_LOSS_BCE_WITH_LOGITS] = OT_TASK_CLASSIFICATION,
        [OT_LOSS_CUSTOM] = OT_TASK_NONE,
    };

    return tasks[loss];
}

static int output_position(const ot_session *session, const char *name)
{
    for (int i = 0; name != NULL && i < ot_session_output_count(session, OT_MODE_TRAIN); i++)
        if (strcmp(ot_session_output_name(session, OT_MODE_TRAIN, i), name) == 0)
            return i;
    return -1;
}

// Extent of the class axis; 0: unknown.
static int class_count(const ot_model *model, const ot__loss_term *term)
{
    ot_dtype dtype;
    ot_shape shape;
    int64_t extent;

    if (term->input == NULL || ot_model_value_info(model, term->input, &dtype, &shape) != OT_OK ||
        shape.ndim < 2)
        return 0;
    extent = shape.dim[term->class_axis < 0 ? shape.ndim - 1 : 1];
    return extent > 0 && extent <= INT32_MAX ? (int)extent : 0;
}

// Classes and ignored label of the cross-entropy terms, where they agree.
static void describe_classes(const ot_artifacts *artifacts, ot_batches_options *out)
{
    int n_terms = 0;

    for (int i = 0; i < artifacts->n_loss_terms; i++) {
        const ot__loss_term *term = &artifacts->loss_terms[i];
        int count;

        if (term->loss != OT_LOSS_CROSS_ENTROPY)
            continue;
        count = class_count(artifacts->training, term);
        out->n_classes = n_terms++ == 0 || count == out->n_classes ? count : 0;
        if (term->has_ignored_label) {
            out->has_ignored_label = 1;
            out->ignored_label = term->ignored_label;
        }
    }
}

static int target_count(const ot_artifacts *artifacts)
{
    int n = 0;

    for (int i = 0; i < artifacts->n_loss_terms; i++)
        n += artifacts->loss_terms[i].n_targets;
    return n;
}

static bool is_class(const ot_session *session, int input)
{
    ot_dtype dtype;
    ot_shape shape;

    return input >= 0 &&
           ot_session_input_info(session, OT_MODE_TRAIN, input, &dtype, &shape) == OT_OK &&
           !ot__dtype_is_float(dtype);
}

static void describe_targets(const ot_artifacts *artifacts, bool is_foreign, ot_data_options *data)
{
    const bool is_told = artifacts->n_loss_terms > 0;

    if (data->n_targets == 0 && (is_told || is_foreign)) {
        data->n_targets = is_told ? target_count(artifacts) : (int)OT_COUNT(usual_targets);
        data->targets = is_told ? artifacts->loss_terms[0].targets : usual_targets;
    }
    data->probabilities = artifacts->probabilities;
    data->n_probabilities = artifacts->n_probabilities;
}

static void describe_metrics(const ot_artifacts *artifacts, const ot_session *session,
                             bool is_foreign, ot_train_options *train)
{
    const ot__loss_term *first = artifacts->n_loss_terms > 0 ? artifacts->loss_terms : NULL;

    if (first != NULL) {
        train->task = task_of(first->loss);
        train->metric_output = output_position(session, first->input);
        train->class_axis = first->class_axis;
    } else {
        const bool is_classified = is_foreign &&
                                   ot_session_output_count(session, OT_MODE_TRAIN) > 1 &&
                                   is_class(session, train->metric_input);

        train->task = is_classified ? OT_TASK_CLASSIFICATION : OT_TASK_NONE;
        train->metric_output = is_classified ? 1 : -1;
    }
}

ot_status ot_train_describe(const ot_artifacts *artifacts, const ot_session *session,
                            ot_data_options *data, ot_batches_options *batches,
                            ot_train_options *train)
{
    ot__data_taken taken;
    ot_batches_options own_batches;
    ot_train_options own_train;
    bool is_foreign; // nothing is known of it

    OT_TRY(OT_GIVEN(artifacts));
    OT_TRY(OT_GIVEN(session));
    OT_TRY(OT_GIVEN(data));
    OT_TRY(OT_GIVEN(train));
    OT_TRY(ot__data_options_take(data, &taken));
    OT_TRY(OT_OPTIONS_READ(ot_batches_options, OT_BATCHES_OPTIONS_INIT, batches, &own_batches));
    OT_TRY(OT_OPTIONS_READ(ot_train_options, OT_TRAIN_OPTIONS_INIT, train, &own_train));
    is_foreign = artifacts->n_loss_terms == 0 && taken.data.forward == NULL;
    describe_targets(artifacts, is_foreign, &taken.data);
    describe_classes(artifacts, &own_batches);
    own_train.metric_input = ot_train_target(session, &taken.data);
    describe_metrics(artifacts, session, is_foreign, &own_train);
    ot__data_options_give(&taken, data);
    if (batches != NULL)
        ot__options_write(batches, &own_batches, sizeof own_batches);
    ot__options_write(train, &own_train, sizeof own_train);
    return OT_OK;
}
