// SPDX-License-Identifier: Apache-2.0
// Batches in slices, against the same training written down with single steps, gradients and
// updates in f64.
#include <math.h>

#include "slices_fixture.h"

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

static void open_world(world *w, const char *text)
{
    need(open_world_over(w, text, NULL));
}

static ot_status train(world *w, int64_t slices, int64_t accumulation)
{
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;

    options.slices = slices;
    options.epochs = EPOCHS;
    return train_with(w, accumulation, false, &options, 0, NULL);
}

// ---- by hand ----

// All parameters: values as the checkpoint has them.
typedef struct parameters {
    int count;
    bool is_trained[PARAMETERS_MAX];
    int64_t n[PARAMETERS_MAX];
    double at[PARAMETERS_MAX][ELEMENTS_MAX];
} parameters;

static parameters look_at(const world *w)
{
    parameters p = {.count = w->checkpoint->n_parameters};

    assert_true(p.count <= PARAMETERS_MAX);
    for (int i = 0; i < p.count; i++) {
        const ot__parameter *from = w->checkpoint->parameters[i];

        ot__ckpt_unpack(w->checkpoint, w->checkpoint->parameters[i]);
        p.is_trained[i] = from->trainable;
        p.n[i] = ot_tensor_count(from->value);
        assert_true(p.n[i] <= ELEMENTS_MAX);
        memcpy(p.at[i], from->value->data, from->value->n_bytes);
    }
    return p;
}

static void put_back(world *w, const parameters *p, bool trained)
{
    for (int i = 0; i < p->count; i++) {
        const ot__parameter *to = w->checkpoint->parameters[i];
        ot_tensor *value;

        if (p->is_trained[i] != trained)
            continue;
        need(ot_tensor_wrap(OT_F64, &to->value->shape, (void *)(uintptr_t)p->at[i],
                            to->value->n_bytes, &value));
        need(ot_checkpoint_set_parameter(w->checkpoint, to->name, value));
        ot_tensor_destroy(value);
    }
}

// Gradients of rows [first, first + n) into `sums`, times `weight`.
static void add_gradients(world *w, int64_t first, int64_t n, double weight, parameters *sums)
{
    ot_tensor *inputs[2], *loss = NULL;

    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, FEATURES), w->x + first * FEATURES,
                        (size_t)(n * FEATURES) * sizeof(double), &inputs[0]));
    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, 1), w->t + first, (size_t)n * sizeof(double),
                        &inputs[1]));
    ot_session_reset_gradients(w->session);
    need(ot_session_train_step(w->session, (const ot_tensor *const *)inputs, 2, &loss, 1));
    for (int i = 0; i < sums->count; i++) {
        ot__parameter *p = w->checkpoint->parameters[i];

        ot__ckpt_unpack(w->checkpoint, p);
        for (int64_t k = 0; p->trainable && k < sums->n[i]; k++)
            sums->at[i][k] += weight * ((const double *)p->gradient->data)[k];
    }
    ot_tensor_destroy(loss);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
}

// One slice of `n` batches from `row` on; false: it has no rows.
static bool run_slice_by_hand(world *w, int64_t row, int64_t n, int64_t slice, int64_t slices,
                              parameters *sums)
{
    bool has_rows = false;

    for (int64_t a = 0; a < n; a++, row += BATCH) {
        const int64_t all = row + BATCH <= ROWS ? BATCH : ROWS - row;
        const int64_t first = all * slice / slices, rows = all * (slice + 1) / slices - first;

        if (rows > 0)
            add_gradients(w, row + first, rows, (double)rows / (double)all / (double)n, sums);
        has_rows = has_rows || rows > 0;
    }
    return has_rows;
}

static void update_by_hand(world *w, int64_t row, int64_t n, int64_t slices)
{
    const parameters before = look_at(w);
    parameters sums = before, after = before;
    int64_t n_run = 0;

    memset(sums.at, 0, sizeof sums.at);
    for (int64_t slice = 0; slice < slices; slice++) {
        parameters found;

        put_back(w, &before, false);
        if (!run_slice_by_hand(w, row, n, slice, slices, &sums))
            continue;
        found = look_at(w);
        n_run++;
        for (int i = 0; i < sums.count; i++)
            for (int64_t k = 0; !sums.is_trained[i] && k < sums.n[i]; k++)
                sums.at[i][k] += found.at[i][k];
    }
    for (int i = 0; i < sums.count; i++)
        for (int64_t k = 0; k < sums.n[i]; k++)
            after.at[i][k] = sums.is_trained[i] ? before.at[i][k] - rate * sums.at[i][k]
                                                : sums.at[i][k] / (double)n_run;
    put_back(w, &after, true);
    put_back(w, &after, false);
}

static void train_by_hand(world *w, int64_t slices, int64_t accumulation)
{
    const int64_t n_batches = (ROWS + BATCH - 1) / BATCH;

    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t at = 0; at < n_batches; at += accumulation)
            update_by_hand(w, at * BATCH, OT_MIN(accumulation, n_batches - at), slices);
}

static void assert_near(const parameters *found, const parameters *expected, double bound)
{
    assert_int_equal(found->count, expected->count);
    for (int i = 0; i < found->count; i++)
        for (int64_t k = 0; k < found->n[i]; k++)
            if (!(fabs(found->at[i][k] - expected->at[i][k]) <= bound))
                fail_msg("element %d of parameter %d is %.17g, expected %.17g", (int)k, i,
                         found->at[i][k], expected->at[i][k]);
}

static const int64_t numbers_of_slices[] = {1, 2, 3, 4, 8};
static const int64_t accumulations[] = {1, 3};

static void assert_trains_as_by_hand(const char *text)
{
    for (size_t g = 0; g < OT_COUNT(numbers_of_slices); g++)
        for (size_t a = 0; a < OT_COUNT(accumulations); a++) {
            parameters found, expected, start;
            world w;

            open_world(&w, text);
            start = look_at(&w);
            need(train(&w, numbers_of_slices[g], accumulations[a]));
            found = look_at(&w);
            close_world(&w);
            open_world(&w, text);
            train_by_hand(&w, numbers_of_slices[g], accumulations[a]);
            expected = look_at(&w);
            close_world(&w);
            assert_near(&found, &expected, 1e-13);
            assert_memory_not_equal(&found, &start, sizeof found);
        }
}

static void a_perceptron_trains_as_by_hand(void **state)
{
    (void)state;
    assert_trains_as_by_hand(perceptron);
}

static void running_statistics_are_the_mean_over_slices_with_rows(void **state)
{
    (void)state;
    assert_trains_as_by_hand(convolution);
}

static void a_recurrent_layer_trains_as_by_hand(void **state)
{
    (void)state;
    assert_trains_as_by_hand(recurrent);
}

// Without statistics and masks slices change roundings only.
static void a_mean_over_slices_is_that_of_the_batch(void **state)
{
    parameters whole;
    world w;

    (void)state;
    open_world(&w, recurrent);
    need(train(&w, 1, 3));
    whole = look_at(&w);
    close_world(&w);
    for (size_t g = 1; g < OT_COUNT(numbers_of_slices); g++) {
        parameters found;

        open_world(&w, recurrent);
        need(train(&w, numbers_of_slices[g], 3));
        found = look_at(&w);
        close_world(&w);
        assert_near(&found, &whole, 1e-13);
    }
}

// Of a loss that is a sum, so are the gradients and what is reported.
static ot_status train_sum(int64_t slices, ot_reduction reduction, double factor, parameters *out,
                           double *loss)
{
    static const char text[] = HEAD "net (double[N,6] x) => (double[N,1] y)\n"
                                    "{\n"
                                    "  v = RandomNormal<shape = [6, 1], dtype = 11>()\n"
                                    "  y = MatMul(x, v)\n"
                                    "}\n";
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    ot_loss_options losses[2] = {OT_LOSS_OPTIONS_INIT, OT_LOSS_OPTIONS_INIT};
    ot_train_options options = OT_TRAIN_OPTIONS_INIT;
    ot_metrics last = {0};
    ot_model *model;
    world w;
    ot_status st;

    sgd.name = "SGDOptimizerV2";
    losses[0].loss = losses[1].loss = OT_LOSS_MSE;
    losses[0].target = losses[1].target = "t";
    losses[0].reduction = reduction;
    losses[1].factor = factor;
    how.losses = losses;
    how.n_losses = fabs(factor) > 0 ? 2 : 1;
    how.optimizer = &sgd;
    open_world(&w, perceptron);
    ot_session_destroy(w.session);
    ot_artifacts_destroy(w.artifacts);
    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    need(ot_artifacts_generate(model, &how, &w.artifacts));
    ot_model_destroy(model);
    need(ot_session_create_from_artifacts(w.artifacts, NULL, &w.session));
    need(ot_session_set_learning_rate(w.session, rate));
    w.checkpoint = ot_session_checkpoint(w.session);
    options.slices = slices;
    options.artifacts = w.artifacts;
    st = train_with(&w, 2, false, &options, 0, &last);
    *out = look_at(&w);
    *loss = last.loss;
    close_world(&w);
    return st;
}

static void a_loss_that_is_a_sum_is_summed_over_slices(void **state)
{
    static const ot_reduction reductions[] = {OT_REDUCTION_SUM, OT_REDUCTION_NONE,
                                              OT_REDUCTION_MEAN};
    parameters whole, found;
    double loss, expected;

    (void)state;
    for (size_t i = 0; i < OT_COUNT(reductions); i++) {
        need(train_sum(1, reductions[i], 0, &whole, &expected));
        need(train_sum(3, reductions[i], 0, &found, &loss));
        assert_near(&found, &whole, 1e-13);
        assert_true(fabs(loss - expected) < 1e-12 && loss > 0);
    }
    need(train_sum(1, OT_REDUCTION_SUM, 0.5, &whole, &expected));
    assert_int_equal(train_sum(3, OT_REDUCTION_SUM, 0.5, &found, &loss), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "slices: 3, but the loss has terms that are means"));
}

// ---- a session by itself ----

static double step_over(world *w, int64_t first, int64_t n)
{
    ot_tensor *inputs[2], *output = NULL;
    double loss;

    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, FEATURES), w->x + first * FEATURES,
                        (size_t)(n * FEATURES) * sizeof(double), &inputs[0]));
    need(ot_tensor_wrap(OT_F64, &OT_SHAPE(n, 1), w->t + first, (size_t)n * sizeof(double),
                        &inputs[1]));
    need(ot_session_train_step(w->session, (const ot_tensor *const *)inputs, 2, &output, 1));
    loss = *(const double *)ot_tensor_data_const(output);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    ot_tensor_destroy(output);
    return loss;
}

static void masks_are_those_of_slice_and_micro_batch(void **state)
{
    double of_slice[2], next;
    world w;

    (void)state;
    open_world(&w, dropped);
    need(ot__session_set_slices(w.session, 2, 0, 2));
    for (int slice = 0; slice < 2; slice++) { // of the same rows
        ot__session_begin_slice(w.session, slice);
        of_slice[slice] = step_over(&w, 0, 2);
        if (slice == 0)
            next = step_over(&w, 0, 2);
        else
            need(ot__session_skip_step(w.session, OT_OK));
        need(ot__session_end_slice(w.session));
    }
    assert_int_equal(ot__session_counter(w.session), 2);
    ot__session_drop_steps(w.session);
    assert_int_equal(ot__session_counter(w.session), 0);
    ot__session_begin_slice(w.session, 1);
    assert_memory_equal(&of_slice[1], &(double){step_over(&w, 0, 2)}, sizeof(double));
    ot__session_drop_steps(w.session);
    assert_memory_equal(&of_slice[0], &(double){step_over(&w, 0, 2)}, sizeof(double));
    assert_memory_not_equal(&of_slice[0], &of_slice[1], sizeof(double));
    assert_memory_not_equal(&of_slice[0], &next, sizeof(double));
    close_world(&w);
}

// Gradients of slices [first, last) of five, as session and trainer leave them.
static void sum_slices(const char *text, int first, int last,
                       double out[PARAMETERS_MAX][ELEMENTS_MAX])
{
    world w;

    open_world(&w, text);
    need(ot__session_set_slices(w.session, 5, first, last));
    for (int slice = first; slice < last; slice++) {
        ot__session_begin_slice(w.session, slice);
        (void)step_over(&w, 2 * slice, 2);
        need(ot__session_end_slice(w.session));
    }
    for (int i = 0; i < w.checkpoint->n_parameters; i++) {
        ot__parameter *p = w.checkpoint->parameters[i];

        ot__ckpt_unpack(w.checkpoint, p);
        memcpy(out[i], p->trainable ? p->gradient->data : p->value->data, p->value->n_bytes);
    }
    close_world(&w);
}

// Sessions for 0-3 and 4 sum to the bits of one session for all of them.
static void the_order_of_sums_does_not_depend_on_who_makes_them(void **state)
{
    static double all[PARAMETERS_MAX][ELEMENTS_MAX], one[PARAMETERS_MAX][ELEMENTS_MAX],
        leaves[5][PARAMETERS_MAX][ELEMENTS_MAX], left[PARAMETERS_MAX][ELEMENTS_MAX];

    (void)state;
    sum_slices(perceptron, 0, 5, all);
    sum_slices(perceptron, 0, 4, left);
    for (int slice = 0; slice < 5; slice++)
        sum_slices(perceptron, slice, slice + 1, leaves[slice]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < ELEMENTS_MAX; k++) {
            one[i][k] = ((leaves[0][i][k] + leaves[1][i][k]) + (leaves[2][i][k] + leaves[3][i][k]));
            left[i][k] += leaves[4][i][k];
            one[i][k] += leaves[4][i][k];
        }
    assert_memory_equal(all[0], one[0], 2 * sizeof one[0]);
    assert_memory_equal(all[0], left[0], 2 * sizeof left[0]);
}

static void sums_that_wait_count_as_state(void **state)
{
    static const int expected[][2] = {{1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {8, 3}, {9, 3}};
    const size_t set = ot__align_up(6 * 5 * sizeof(double)) + ot__align_up(5 * sizeof(double));
    size_t before;
    world w;

    (void)state;
    open_world(&w, perceptron);
    before = ot_session_state_bytes(w.session);
    for (size_t i = 0; i < OT_COUNT(expected); i++) {
        need(ot__session_set_slices(w.session, expected[i][0], 0, expected[i][0]));
        assert_int_equal(ot_session_state_bytes(w.session), before + set * (size_t)expected[i][1]);
    }
    need(ot__session_set_slices(w.session, 8, 3, 4)); // one of them needs none
    assert_int_equal(ot_session_state_bytes(w.session), before);
    close_world(&w);
}

static void without_memory_for_the_sums_there_are_no_slices(void **state)
{
    world w;

    (void)state;
    open_world(&w, convolution);
    for (int64_t n = 0;; n++) {
        const size_t before = ot_session_state_bytes(w.session);
        ot_status st;

        ot__alloc_fail_after(n);
        st = ot__session_set_slices(w.session, 4, 0, 4);
        ot__alloc_fail_after(-1);
        if (st == OT_OK)
            break;
        assert_int_equal(st, OT_ERR_NO_MEMORY);
        assert_int_equal(ot_session_state_bytes(w.session), before);
        assert_true(n < 100);
    }
    close_world(&w);
}

// ---- what goes wrong ----

static void a_failure_in_a_later_slice_takes_all_of_the_update_back(void **state)
{
    parameters before, after;
    world w;

    (void)state;
    open_world(&w, convolution);
    before = look_at(&w);
    w.x[2 * FEATURES] = (double)NAN;                   // in the second slice of two
    assert_int_equal(train(&w, 2, 3), OT_ERR_INVALID); // features are checked
    after = look_at(&w);
    assert_memory_equal(&before, &after, sizeof after);
    assert_int_equal(ot__session_counter(w.session), 0);
    w.x[2 * FEATURES] = 0.5;
    w.t[2] = 1e200; // its square is not finite
    assert_int_equal(train(&w, 2, 3), OT_ERR_NOT_FINITE);
    after = look_at(&w);
    assert_memory_equal(&before, &after, sizeof after);
    assert_int_equal(ot__session_counter(w.session), 0);
    close_world(&w);
}

static void wrong_numbers_of_slices_are_refused(void **state)
{
    static const char fixed[] =
        HEAD "net (double[4,6] x, double[4,1] t) => (double[4,1] y, double loss)\n"
             "{\n"
             "  w = RandomNormal<shape = [6, 1], dtype = 11>()\n"
             "  y = MatMul(x, w)\n" LOSS "}\n";
    world w;

    (void)state;
    open_world(&w, fixed);
    assert_int_equal(train(&w, -1, 1), OT_ERR_INVALID);
    assert_int_equal(train(&w, OT_SLICES_MAX + 1, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "slices: 32769, expected 1 to 32768, or 0");
    assert_int_equal(train(&w, 2, 1), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "slices: 2, but input 'x' takes 4 rows and no other number, which cannot "
                        "be cut; export with "
                        "dynamic_axes or dynamic_shapes, or train in one process and one slice");
    close_world(&w);
}

static void count_empty(void *context, ot_log_level level, const char *text)
{
    *(int *)context +=
        level == OT_LOG_WARNING &&
        strcmp(text, "batches of 4 rows have 8 slices, of which some have no row") == 0;
}

static void more_slices_than_rows_are_a_warning(void **state)
{
    int n_warnings = 0;
    world w;

    (void)state;
    open_world(&w, perceptron);
    ot_set_log(count_empty, &n_warnings);
    need(train(&w, 4, 1));
    assert_int_equal(n_warnings, 0);
    need(train(&w, 8, 1));
    ot_set_log(NULL, NULL);
    assert_int_equal(n_warnings, 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perceptron_trains_as_by_hand),
        cmocka_unit_test(running_statistics_are_the_mean_over_slices_with_rows),
        cmocka_unit_test(a_recurrent_layer_trains_as_by_hand),
        cmocka_unit_test(a_mean_over_slices_is_that_of_the_batch),
        cmocka_unit_test(a_loss_that_is_a_sum_is_summed_over_slices),
        cmocka_unit_test(masks_are_those_of_slice_and_micro_batch),
        cmocka_unit_test(the_order_of_sums_does_not_depend_on_who_makes_them),
        cmocka_unit_test(sums_that_wait_count_as_state),
        cmocka_unit_test(without_memory_for_the_sums_there_are_no_slices),
        cmocka_unit_test(a_failure_in_a_later_slice_takes_all_of_the_update_back),
        cmocka_unit_test(wrong_numbers_of_slices_are_refused),
        cmocka_unit_test(more_slices_than_rows_are_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
