// SPDX-License-Identifier: Apache-2.0
// Batches of a dataset for a session: its inputs with their fields, and what is held out.
#include <inttypes.h>
#include <string.h>

#include "train/bind.h"

// ---- inputs ----

static bool is_named_field(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool has_input(const ot_model *model, const char *name)
{
    for (int i = 0; i < ot_model_input_count(model); i++)
        if (strcmp(ot_model_input_name(model, i), name) == 0)
            return true;
    return false;
}

static bool is_target(const ot_session *session, const ot_data_options *options, int index)
{
    const char *name = ot_session_input_name(session, OT_MODE_TRAIN, index);

    return is_named_field(options->targets, options->n_targets, name) ||
           (options->forward != NULL && !has_input(options->forward, name));
}

// Names come first, in their order: the model's own inputs may be targets, too.
static int find_batches_target(const ot_session *session, const ot_data_options *options)
{
    const int n = ot_session_input_count(session, OT_MODE_TRAIN);

    for (int t = 0; t < options->n_targets; t++)
        for (int i = 0; i < n; i++)
            if (strcmp(options->targets[t], ot_session_input_name(session, OT_MODE_TRAIN, i)) == 0)
                return i;
    for (int i = 0; i < n; i++)
        if (is_target(session, options, i))
            return i;
    return -1;
}

static ot_status describe_input(const ot_session *session, int index, bool is_target_input,
                                const ot_data_options *options, ot_binding *binding)
{
    ot_shape shape;

    *binding = (ot_binding){
        .input = ot_session_input_name(session, OT_MODE_TRAIN, index), .scale = 1, .n_channels = 1};
    OT_TRY(ot_session_input_info(session, OT_MODE_TRAIN, index, &binding->dtype, &shape));
    if (shape.ndim < 1)
        return ot__error(OT_ERR_INVALID, "input '%s' has no batch axis", binding->input);
    binding->shape.ndim = shape.ndim - 1;
    memcpy(binding->shape.dim, shape.dim + 1, (size_t)binding->shape.ndim * sizeof(int64_t));
    binding->is_probability =
        is_named_field(options->probabilities, options->n_probabilities, binding->input);
    if (is_target_input) {
        binding->is_class = !ot__dtype_is_float(binding->dtype);
    } else if (ot__dtype_is_float(binding->dtype)) {
        binding->scale = options->scale;
        binding->mean = options->mean;
        binding->std = options->std;
        binding->n_channels = options->n_channels;
    }
    return OT_OK;
}

// A target is not scaled as features are; in artifacts that record no loss, one of a name of its
// own looks like a feature.
static ot_status check_targets_are_known(const ot__inputs *inputs, int n,
                                         const ot_data_options *options)
{
    const bool changes = options->scale != 1 || options->mean != NULL || options->std != NULL;
    const char *names[2];
    int n_real = 0;

    if (options->forward != NULL || inputs->n_targets > 0 || !changes)
        return OT_OK;
    for (int i = 0; i < n && n_real < 2; i++)
        if (ot__dtype_is_float(inputs->bindings[i].dtype))
            names[n_real++] = inputs->bindings[i].input;
    if (n_real < 2)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "scale, mean and std are for features, but nothing says which of '%s' and "
                     "'%s' is the target: name it (target)",
                     names[0], names[1]);
}

static ot_status inputs_init(ot__inputs *inputs, const ot_session *session,
                             const ot_data_options *options)
{
    const int n = ot_session_input_count(session, OT_MODE_TRAIN);

    inputs->bindings = ot__alloc_zero((size_t)n + 1, sizeof(*inputs->bindings));
    inputs->is_target = ot__alloc_zero((size_t)n + 1, sizeof(*inputs->is_target));
    OT_TRY(ot__made(inputs->bindings != NULL && inputs->is_target != NULL));
    inputs->session = session;
    inputs->count = n;
    inputs->target = find_batches_target(session, options);
    for (int i = 0; i < n; i++) {
        inputs->is_target[i] = is_target(session, options, i);
        inputs->n_targets += inputs->is_target[i];
        OT_TRY(describe_input(session, i, inputs->is_target[i], options, &inputs->bindings[i]));
    }
    return check_targets_are_known(inputs, n, options);
}

static void inputs_deinit(ot__inputs *inputs)
{
    ot__free(inputs->bindings);
    ot__free(inputs->is_target);
    ot__buf_deinit(&inputs->columns);
}

// ---- batches ----

// Training and validation data are bound one by one, since arrays may be named after their files.
static ot_status open_batches(ot__inputs *inputs, const ot_dataset *dataset,
                              const ot_data_options *options, const ot_batches_options *how,
                              ot_batches **out)
{
    OT_TRY(ot__inputs_bind(inputs, dataset, options));
    return ot__explain_class_axis(
        ot_batches_create(dataset, inputs->bindings, inputs->count, how, out), inputs->session,
        dataset, inputs);
}

static ot_status check_class_names(const ot_batches *batches, const ot_batches_options *how)
{
    int n;

    if (ot_batches_class_names(batches, &n) == NULL || how->n_classes == 0 || n <= how->n_classes)
        return OT_OK;
    return ot__error(OT_ERR_INVALID,
                     "the labels are %d different strings, the model has %d classes", n,
                     how->n_classes);
}

static ot_status count_held_out(int64_t rows, double split, int64_t *out)
{
    *out = split < 1 ? (int64_t)((double)rows * split + 0.5) : rows;
    if (*out > 0 && *out < rows)
        return OT_OK;
    return ot__error(OT_ERR_INVALID, "split: %g of %" PRId64 " rows leaves none to %s on", split,
                     rows, *out == 0 ? "validate" : "train");
}

// Classes that were found once are the same everywhere; other data may lack one.
static void keep_classes(const ot_batches *found, ot_batches_options *how)
{
    int n;
    const char *const *classes = ot_batches_class_names(found, &n);

    if (classes == NULL)
        return;
    how->class_names = classes;
    how->n_classes = n;
}

static ot_status open_parts(ot__inputs *inputs, const ot_dataset *dataset,
                            const ot_data_options *options, const ot_batches *all,
                            ot_batches **training, ot_batches **validation)
{
    const int64_t rows = ot_batches_rows(all);
    ot_batches_options how = *options->batches;
    int64_t held_out;

    OT_TRY(count_held_out(rows, options->split, &held_out));
    keep_classes(all, &how);
    how.split_seed = how.seed + 1;
    how.first = 0;
    how.last = rows - held_out;
    OT_TRY(open_batches(inputs, dataset, options, &how, training));
    how.shuffle = 0;
    how.first = rows - held_out;
    how.last = rows;
    return open_batches(inputs, dataset, options, &how, validation);
}

// Of all rows in an order of their own, the last are held out.
static ot_status open_split(ot__inputs *inputs, const ot_dataset *dataset,
                            const ot_data_options *options, ot_batches **training,
                            ot_batches **validation)
{
    ot_batches *all;
    ot_status st;

    // Arrays of an archive may differ in length, so the rows are those of what is bound.
    OT_TRY(open_batches(inputs, dataset, options, options->batches, &all));
    st = open_parts(inputs, dataset, options, all, training, validation);
    ot_batches_destroy(all);
    return st;
}

static ot_status open_validation(ot__inputs *inputs, const ot_dataset *dataset,
                                 const ot_data_options *options, const ot_batches *training,
                                 ot_batches **out)
{
    ot_batches_options how = *options->batches;

    how.shuffle = 0;
    keep_classes(training, &how);
    return open_batches(inputs, dataset, options, &how, out);
}

static ot_status open_all(ot__inputs *inputs, const ot_dataset *dataset,
                          const ot_dataset *validation_dataset, const ot_data_options *options,
                          ot_batches **training, ot_batches **validation)
{
    if (options->split > 0)
        OT_TRY(open_split(inputs, dataset, options, training, validation));
    else
        OT_TRY(open_batches(inputs, dataset, options, options->batches, training));
    if (validation_dataset != NULL)
        OT_TRY(open_validation(inputs, validation_dataset, options, *training, validation));
    return options->batches->class_names != NULL ? OT_OK
                                                 : check_class_names(*training, options->batches);
}

// ---- the interface ----

static ot_status check_batches_options(const ot_data_options *options, bool has_validation)
{
    if (!(options->split >= 0))
        return ot__error(OT_ERR_INVALID, "split: %g, expected 0 to 1", options->split);
    if (options->split > 0 && has_validation)
        return ot__error(OT_ERR_INVALID, "validation and split exclude each other");
    if (options->split > 0 && (options->batches->first != 0 || options->batches->last != 0))
        return ot__error(OT_ERR_INVALID,
                         "split: takes its part of all rows, not of %" PRId64 " to %" PRId64,
                         options->batches->first, options->batches->last);
    return OT_OK;
}

ot_status ot_train_batches(const ot_session *session, const ot_dataset *dataset,
                           const ot_dataset *validation_dataset, const ot_data_options *options,
                           ot_batches **training, ot_batches **validation)
{
    ot__inputs inputs = {0};
    ot__data_taken taken;
    int64_t fixed;
    ot_status st;

    OT_TRY(OT_OUT(training));
    OT_TRY(OT_OUT(validation));
    OT_TRY(OT_GIVEN(session));
    OT_TRY(OT_GIVEN(dataset));
    OT_TRY(OT_OPTIONAL(validation_dataset, "validation_dataset"));
    OT_TRY(ot__data_options_take(options, &taken));
    OT_TRY(check_batches_options(&taken.data, validation_dataset != NULL));
    OT_TRY(ot__batch_size_settle(session, &taken.batches, &fixed));
    st = inputs_init(&inputs, session, &taken.data);
    OT_THEN(st, open_all(&inputs, dataset, validation_dataset, &taken.data, training, validation));
    inputs_deinit(&inputs);
    OT_THEN(st, ot__batch_size_check(*training, fixed));
    OT_THEN(st, ot__batch_size_check(*validation, fixed));
    if (st == OT_OK)
        return OT_OK;
    ot_batches_destroy(*training);
    ot_batches_destroy(*validation);
    *training = *validation = NULL;
    return st;
}

int ot_train_target(const ot_session *session, const ot_data_options *options)
{
    ot__data_taken taken;

    if (!OT_IS_LIVE(session) || ot__data_options_take(options, &taken) != OT_OK)
        return -1;
    return find_batches_target(session, &taken.data);
}
