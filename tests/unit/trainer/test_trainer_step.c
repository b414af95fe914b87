// SPDX-License-Identifier: Apache-2.0
// What a trainer does in which call, against the same training by hand in f64.
#include "trainer_fixture.h"

#include <math.h>

static const double lr0 = 0.25;

// ---- the step machine ----

// (t - W) / (T - W) of the way down, with W = 2.5 and T = 12.
static double rate_by_hand(int64_t t)
{
    return lr0 * ((double)t < 2.5 ? (double)t / 2.5 : fmax(0, (12 - (double)t) / (12 - 2.5)));
}

static void trace(int64_t accumulation, const char *fetch, int64_t n_calls)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_schedule schedule = OT_SCHEDULE_INIT;
    ot_trainer *trainer;
    hand h = hand_begin();
    int64_t applied = 0;

    schedule.kind = OT_SCHEDULE_LINEAR;
    schedule.initial_lr = lr0;
    schedule.warmup_steps = 2.5;
    schedule.total_steps = 12;
    options.gradient_accumulation_steps = accumulation;
    options.lr_schedule = &schedule;
    trainer = linear_trainer(&options);
    if (fetch != NULL)
        need(ot_trainer_set_fetches(trainer, (const char *const[]){fetch, "loss"}, 2));
    for (int64_t call = 1; call <= n_calls; call++) {
        float x[N_ROWS * N_IN], t[N_ROWS];
        const double loss = step_over(trainer, call);
        const ot_step_info info = info_of(trainer);

        batch_of(call, x, t);
        hand_add(&h, x, t);
        assert_float_equal(loss, h.loss, 1e-5);
        assert_int_equal(info.step, call);
        assert_float_equal(info.learning_rate, rate_by_hand(applied), 1e-12);
        if (call % accumulation == 0)
            hand_update(&h, rate_by_hand(applied++));
        assert_int_equal(info.optimization_step, applied);
        assert_parameters(trainer, &h);
    }
    ot_trainer_destroy(trainer);
}

static void updates_come_after_as_many_calls_as_are_asked_for(void **state)
{
    static const int64_t accumulations[] = {1, 3, 7};

    (void)state;
    for (int i = 0; i < 3; i++)
        trace(accumulations[i], NULL, 2 * accumulations[i] + 1);
}

static void fetches_change_nothing_but_what_is_returned(void **state)
{
    (void)state;
    trace(1, "y", 3);
    trace(3, "y", 7);
}

static void fetches_come_in_their_order_when_training_else_in_that_of_the_description(void **state)
{
    static const char *const fetches[] = {"loss", "y"};
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_tensor *outputs[2] = {NULL, NULL};
    const ot_tensor *inputs[2];
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    batch_of(1, x, t);
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    need(ot_trainer_set_fetches(trainer, fetches, 2));
    need(ot_trainer_train_step(trainer, inputs, 2, outputs, 2));
    assert_int_equal(ot_tensor_count(outputs[0]), 1);
    assert_int_equal(ot_tensor_count(outputs[1]), N_ROWS);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(outputs[i]);
        outputs[i] = NULL;
    }
    need(ot_trainer_eval_step(trainer, inputs, 2, outputs, 2));
    assert_int_equal(ot_tensor_count(outputs[0]), N_ROWS);
    assert_int_equal(ot_tensor_count(outputs[1]), 1);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(outputs[i]);
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    }
    ot_trainer_destroy(trainer);
}

static void a_fetch_that_is_no_output_is_refused_and_all_of_them_are_named(void **state)
{
    static const char *const fetches[] = {"y", "nope", "d"};
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    assert_int_equal(ot_trainer_set_fetches(trainer, fetches, 3), OT_ERR_NOT_FOUND);
    assert_non_null(strstr(ot_error_message(), "'nope', 'd'"));
    ot_trainer_destroy(trainer);
}

static void a_short_group_is_averaged_over_what_it_has(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainer;
    hand h = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];

    (void)state;
    options.gradient_accumulation_steps = 5;
    trainer = linear_trainer(&options);
    for (int64_t call = 1; call <= 3; call++) {
        step_over(trainer, call);
        batch_of(call, x, t);
        hand_add(&h, x, t);
    }
    need(ot_trainer_flush(trainer));
    hand_update(&h, lr0);
    assert_parameters(trainer, &h);
    assert_int_equal(info_of(trainer).optimization_step, 1);
    need(ot_trainer_flush(trainer)); // nothing is there
    assert_parameters(trainer, &h);
    assert_int_equal(info_of(trainer).optimization_step, 1);
    for (int64_t call = 4; call <= 8; call++) { // a whole group follows
        step_over(trainer, call);
        batch_of(call, x, t);
        hand_add(&h, x, t);
    }
    hand_update(&h, lr0);
    assert_parameters(trainer, &h);
    assert_int_equal(info_of(trainer).optimization_step, 2);
    ot_trainer_destroy(trainer);
}

static void evaluation_between_micro_batches_changes_nothing(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    float x[N_ROWS * N_IN], t[N_ROWS];
    const ot_tensor *inputs[2];
    ot_tensor *loss = NULL, *outputs[2] = {NULL, NULL};
    ot_step_info before, after;
    ot_trainer *trainer;
    hand h = hand_begin();

    (void)state;
    options.gradient_accumulation_steps = 2;
    trainer = linear_trainer(&options);
    step_over(trainer, 1);
    before = info_of(trainer);
    batch_of(9, x, t);
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    need(ot_trainer_eval_step(trainer, inputs, 2, outputs, 2));
    loss = outputs[1];
    hand_add(&h, x, t);
    assert_float_equal(*(const float *)ot_tensor_data_const(loss), h.loss, 1e-5);
    after = info_of(trainer);
    assert_int_equal(after.step, before.step);
    h = hand_begin();
    for (int64_t call = 1; call <= 2; call++) {
        batch_of(call, x, t);
        hand_add(&h, x, t);
    }
    step_over(trainer, 2);
    hand_update(&h, lr0);
    assert_parameters(trainer, &h);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(outputs[i]);
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    }
    ot_trainer_destroy(trainer);
}

// ---- schedules of the user ----

typedef struct own_schedule {
    int n_calls;
    int fails_at; // call; 0: never
} own_schedule;

static int halve(void *context, const ot_step_info *info, double *lr, int n_lr)
{
    own_schedule *own = context;

    if (++own->n_calls == own->fails_at)
        return 1;
    for (int i = 0; i < n_lr; i++)
        lr[i] = info->initial_lr * pow(0.5, (double)info->optimization_step);
    return 0;
}

static void a_function_of_the_user_is_asked_in_every_call(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    own_schedule own = {0};
    ot_trainer *trainer;
    hand h = hand_begin();

    (void)state;
    options.gradient_accumulation_steps = 2;
    options.lr_function = halve;
    options.lr_context = &own;
    trainer = linear_trainer(&options);
    for (int64_t call = 1; call <= 6; call++) {
        float x[N_ROWS * N_IN], t[N_ROWS];
        const double lr = lr0 * pow(0.5, (double)((call - 1) / 2));

        step_over(trainer, call);
        assert_float_equal(info_of(trainer).learning_rate, lr, 1e-12);
        batch_of(call, x, t);
        hand_add(&h, x, t);
        if (call % 2 == 0)
            hand_update(&h, lr);
        assert_parameters(trainer, &h);
    }
    assert_int_equal(own.n_calls, 6);
    ot_trainer_destroy(trainer);
}

// ---- calls that fail ----

static ot_status try_step(ot_trainer *trainer, int64_t n_rows_x, int64_t n_rows_t)
{
    float x[2 * N_ROWS * N_IN] = {0}, t[2 * N_ROWS] = {0};
    const ot_tensor *inputs[2] = {tensor_of(t, OT_SHAPE(n_rows_t)),
                                  tensor_of(x, OT_SHAPE(n_rows_x, N_IN))};
    ot_tensor *outputs[2] = {NULL, NULL};
    const ot_status st = ot_trainer_train_step(trainer, inputs, 2, outputs, 2);

    for (int i = 0; i < 2; i++) {
        assert_true(st == OT_OK || outputs[i] == NULL);
        ot_tensor_destroy(outputs[i]);
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    }
    return st;
}

static void a_call_that_is_refused_changes_nothing(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    own_schedule own = {.fails_at = 2};
    ot_trainer *trainer;
    hand h = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];

    (void)state;
    options.gradient_accumulation_steps = 2;
    options.lr_function = halve;
    options.lr_context = &own;
    trainer = linear_trainer(&options);
    step_over(trainer, 1);
    assert_int_equal(try_step(trainer, N_ROWS, N_ROWS), OT_ERR_INTERRUPTED);
    assert_int_equal(try_step(trainer, N_ROWS, N_ROWS + 1), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "'rows'"));
    assert_int_equal(info_of(trainer).step, 1);
    step_over(trainer, 2);
    for (int64_t call = 1; call <= 2; call++) {
        batch_of(call, x, t);
        hand_add(&h, x, t);
    }
    hand_update(&h, lr0);
    assert_parameters(trainer, &h);
    ot_trainer_destroy(trainer);
}

static void sizes_and_axes_are_those_of_the_description(void **state)
{
    float data[2 * N_ROWS * N_IN] = {0};
    const ot_shape wrong[] = {OT_SHAPE(N_ROWS, N_IN, 1), OT_SHAPE(N_ROWS, N_IN + 1)};
    static const char *const expected[] = {"has 3 axes", "axis 1 has size 4, expected 3"};
    ot_trainer *trainer = linear_trainer(NULL);

    (void)state;
    for (int i = 0; i < 2; i++) {
        const ot_tensor *inputs[2] = {tensor_of(data, OT_SHAPE(N_ROWS)), tensor_of(data, wrong[i])};
        ot_tensor *outputs[2] = {NULL, NULL};

        assert_int_equal(ot_trainer_train_step(trainer, inputs, 2, outputs, 2), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), expected[i]));
        assert_int_equal(ot_trainer_train_step(trainer, inputs, 1, outputs, 2), OT_ERR_INVALID);
        assert_int_equal(info_of(trainer).step, 0);
        for (int k = 0; k < 2; k++)
            ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[k]);
    }
    ot_trainer_destroy(trainer);
}

// A label out of range is met while the step runs.
static const char classes_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                   "classes (float[N,3] x, int64[N] labels) => (float loss)\n"
                                   "<float[3,2] w = {1, 2, 3, 4, 5, 6}>\n"
                                   "{\n"
                                   "  s = MatMul(x, w)\n"
                                   "  loss = SoftmaxCrossEntropyLoss(s, labels)\n"
                                   "}\n";

static ot_status class_step(ot_trainer *trainer, int64_t label)
{
    float x[3] = {1, -1, 0.5f};
    int64_t labels[1] = {label};
    ot_tensor *label_tensor, *loss = NULL;
    const ot_tensor *inputs[2];
    ot_status st;

    need(ot_tensor_wrap(OT_I64, &OT_SHAPE(1), labels, sizeof labels, &label_tensor));
    inputs[0] = tensor_of(x, OT_SHAPE(1, 3));
    inputs[1] = label_tensor;
    st = ot_trainer_train_step(trainer, inputs, 2, &loss, 1);
    ot_tensor_destroy(loss);
    ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[0]);
    ot_tensor_destroy(label_tensor);
    return st;
}

static void a_call_that_fails_while_it_runs_drops_what_was_accumulated(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_trainer *trainers[2];
    float got[2][6];
    ot_model *model;

    (void)state;
    need(ot_model_load_buffer(classes_text, sizeof classes_text - 1, NULL, &model));
    options.gradient_accumulation_steps = 3;
    for (int i = 0; i < 2; i++)
        need(ot_trainer_create(model, NULL, NULL, &options, &trainers[i]));
    ot_model_destroy(model);
    need(class_step(trainers[0], 0));
    need(class_step(trainers[0], 0));
    assert_int_not_equal(class_step(trainers[0], 7), OT_OK);
    assert_non_null(strstr(ot_error_message(), "2 micro-batches before it are dropped"));
    assert_int_equal(info_of(trainers[0]).step, 0);
    for (int i = 0; i < 2; i++) {
        for (int call = 0; call < 3; call++)
            need(class_step(trainers[i], 1));
        need(ot_session_get_parameters(ot_trainer_session(trainers[i]), OT_PARAMETERS_ALL, got[i],
                                       6));
        ot_trainer_destroy(trainers[i]);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
}

// ---- what is skipped, averaged, and has a rate of its own ----

static ot_trainer *trainer_with(const ot_optimizer_options *optimizer,
                                const ot_trainer_options *options)
{
    ot_model *model = linear_model();
    ot_trainer *trainer;

    need(ot_trainer_create(model, &linear_description, optimizer, options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static void step_over_infinity(ot_trainer *trainer)
{
    float x[N_ROWS * N_IN] = {INFINITY}, t[N_ROWS] = {0};
    const ot_tensor *inputs[2] = {tensor_of(t, OT_SHAPE(N_ROWS)),
                                  tensor_of(x, OT_SHAPE(N_ROWS, N_IN))};

    need(ot_trainer_train_step(trainer, inputs, 2, NULL, 0));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
}

static void parameters_of(ot_trainer *trainer, float got[N_IN + 1])
{
    need(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, got, N_IN + 1));
}

static void an_update_with_gradients_that_are_not_finite_is_skipped_where_asked_for(void **state)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    float before[N_IN + 1], after[N_IN + 1], never[N_IN + 1];

    (void)state;
    adam.name = "AdamOptimizer";
    for (int skips = 0; skips < 2; skips++) {
        ot_trainer *trainer, *other;

        options.skip_non_finite = skips;
        trainer = trainer_with(&adam, &options);
        other = trainer_with(&adam, &options); // never meets one
        step_over(trainer, 1);
        step_over(other, 1);
        parameters_of(trainer, before);
        step_over_infinity(trainer);
        parameters_of(trainer, after);
        assert_int_equal(info_of(trainer).step, 2);
        assert_int_equal(info_of(trainer).optimization_step, skips ? 1 : 2);
        assert_int_equal(info_of(trainer).all_finite, skips ? 0 : 1);
        if (skips) { // moments and counters are as they were: the next update is the other's
            assert_memory_equal(before, after, sizeof before);
            step_over(trainer, 2);
            step_over(other, 2);
            parameters_of(trainer, after);
            parameters_of(other, never);
            assert_memory_equal(never, after, sizeof after);
            assert_int_equal(info_of(trainer).all_finite, 1);
        } else {
            assert_true(isnan(after[0]));
        }
        ot_trainer_destroy(trainer);
        ot_trainer_destroy(other);
    }
}

static double eval_loss(ot_trainer *trainer, const float *x, const float *t)
{
    const ot_tensor *inputs[2] = {tensor_of((float *)(uintptr_t)t, OT_SHAPE(N_ROWS)),
                                  tensor_of((float *)(uintptr_t)x, OT_SHAPE(N_ROWS, N_IN))};
    ot_tensor *outputs[2] = {NULL, NULL};
    double loss;

    need(ot_trainer_eval_step(trainer, inputs, 2, outputs, 2));
    loss = (double)*(const float *)ot_tensor_data_const(outputs[1]);
    for (int i = 0; i < 2; i++) {
        ot_tensor_destroy(outputs[i]);
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    }
    return loss;
}

// average = decay average + (1 - decay) weight after every update, from the initial weights on.
static void evaluation_takes_the_averages_on_request(void **state)
{
    enum { UPDATES = 3 };
    const double decay = 0.75;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    hand h = hand_begin(), average = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_trainer *trainer = linear_trainer(&options);

    (void)state;
    assert_int_equal(ot_session_use_averages(ot_trainer_session(trainer), 1), OT_ERR_STATE);
    ot_trainer_destroy(trainer);
    options.average_decay = decay;
    trainer = linear_trainer(&options);
    for (int64_t call = 1; call <= UPDATES; call++) {
        step_over(trainer, call);
        batch_of(call, x, t);
        hand_add(&h, x, t);
        hand_update(&h, lr0);
        for (int i = 0; i < N_IN; i++)
            average.w[i] = decay * average.w[i] + (1 - decay) * h.w[i];
        average.b = decay * average.b + (1 - decay) * h.b;
    }
    assert_parameters(trainer, &h); // steps train the weights
    batch_of(9, x, t);
    hand_add(&h, x, t);
    hand_add(&average, x, t);
    assert_true(fabs(eval_loss(trainer, x, t) - h.loss) < 1e-6);
    need(ot_session_use_averages(ot_trainer_session(trainer), 1));
    assert_true(fabs(eval_loss(trainer, x, t) - average.loss) < 1e-6);
    assert_true(fabs(average.loss - h.loss) > 1e-4);
    need(ot_session_use_averages(ot_trainer_session(trainer), 0));
    assert_true(fabs(eval_loss(trainer, x, t) - h.loss) < 1e-6);
    ot_trainer_destroy(trainer);
}

static int rates_of_two(void *context, const ot_step_info *info, double *lr, int n_lr)
{
    (void)info;
    *(int *)context = n_lr;
    for (int i = 0; i < n_lr; i++)
        lr[i] = i == 0 ? 0.25 : 0.0625;
    return 0;
}

// The group of w: its own rate, times its factor.
static void a_schedule_gives_a_rate_to_each_group(void **state)
{
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;
    ot_param_group group = OT_PARAM_GROUP_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    const hand start = hand_begin();
    hand h = hand_begin();
    float x[N_ROWS * N_IN], t[N_ROWS];
    ot_trainer *trainer;
    int n_lr = 0;

    (void)state;
    group.params = (const char *const[]){"w"};
    group.n_params = 1;
    group.lr_factor = 0.5;
    sgd.name = "SGDOptimizer";
    sgd.groups = &group;
    sgd.n_groups = 1;
    options.lr_function = rates_of_two;
    options.lr_context = &n_lr;
    trainer = trainer_with(&sgd, &options);
    step_over(trainer, 1);
    assert_int_equal(n_lr, 2);
    batch_of(1, x, t);
    hand_add(&h, x, t);
    hand_update(&h, 0.25);
    for (int i = 0; i < N_IN; i++) // an eighth of the step that the rate 0.25 makes
        h.w[i] = start.w[i] + (h.w[i] - start.w[i]) * 0.5 * 0.25;
    assert_parameters(trainer, &h);
    ot_trainer_destroy(trainer);
}

// ---- making one ----

static ot_status try_create(const ot_model_description *description, const char *const *frozen,
                            int n_frozen)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;
    ot_status st;

    options.frozen_weights = frozen;
    options.n_frozen_weights = n_frozen;
    st = ot_trainer_create(model, description, NULL, &options, &trainer);
    ot_trainer_destroy(trainer);
    ot_model_destroy(model);
    return st;
}

static void names_that_the_model_lacks_are_all_listed(void **state)
{
    static const char *const frozen[] = {"w", "v", "u"};
    ot_value_description inputs[] = {{"X", NULL, 0, 0}, {"t", NULL, 0, 0}};
    ot_value_description outputs[] = {{"loss", NULL, 0, 1}, {"z", NULL, 0, 0}};
    const ot_model_description wrong = {sizeof wrong, inputs, outputs, 2, 2};

    (void)state;
    assert_int_equal(try_create(&wrong, NULL, 0), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "input 'X', output 'z'"));
    assert_int_equal(try_create(&linear_description, frozen, 3), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "initializer 'v', initializer 'u'"));
}

static void an_input_that_is_read_must_be_described(void **state)
{
    const ot_model_description few = {sizeof few, linear_inputs, linear_outputs, 1, 2};

    (void)state;
    assert_int_equal(try_create(&few, NULL, 0), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "'x'"));
    assert_null(strstr(ot_error_message(), "unused"));
}

static void one_output_is_the_loss(void **state)
{
    const ot_model_description none = {sizeof none, linear_inputs, linear_outputs, 2, 1};

    (void)state;
    assert_int_equal(try_create(&none, NULL, 0), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "0 outputs of the description are the loss"));
}

static void a_frozen_weight_stays_and_the_rest_trains(void **state)
{
    static const char *const frozen[] = {"w"};
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    float before[N_IN + 1], after[N_IN + 1];
    ot_trainer *trainer;

    (void)state;
    options.frozen_weights = frozen;
    options.n_frozen_weights = 1;
    trainer = linear_trainer(&options);
    need(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, before,
                                   N_IN + 1));
    step_over(trainer, 1);
    need(
        ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, after, N_IN + 1));
    assert_memory_equal(before, after, N_IN * sizeof *before);
    assert_true(before[N_IN] != after[N_IN]);
    ot_trainer_destroy(trainer);
}

static void a_session_that_a_trainer_has_takes_no_steps_of_others(void **state)
{
    ot_trainer *trainer = linear_trainer(NULL);
    ot_session *session = ot_trainer_session(trainer);

    (void)state;
    assert_int_equal(ot_session_optimizer_step(session), OT_ERR_STATE);
    assert_int_equal(ot_session_train_step(session, NULL, 0, NULL, 0), OT_ERR_STATE);
    ot_trainer_destroy(trainer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_come_after_as_many_calls_as_are_asked_for),
        cmocka_unit_test(fetches_change_nothing_but_what_is_returned),
        cmocka_unit_test(fetches_come_in_their_order_when_training_else_in_that_of_the_description),
        cmocka_unit_test(a_fetch_that_is_no_output_is_refused_and_all_of_them_are_named),
        cmocka_unit_test(a_short_group_is_averaged_over_what_it_has),
        cmocka_unit_test(evaluation_between_micro_batches_changes_nothing),
        cmocka_unit_test(a_function_of_the_user_is_asked_in_every_call),
        cmocka_unit_test(a_call_that_is_refused_changes_nothing),
        cmocka_unit_test(sizes_and_axes_are_those_of_the_description),
        cmocka_unit_test(a_call_that_fails_while_it_runs_drops_what_was_accumulated),
        cmocka_unit_test(an_update_with_gradients_that_are_not_finite_is_skipped_where_asked_for),
        cmocka_unit_test(evaluation_takes_the_averages_on_request),
        cmocka_unit_test(a_schedule_gives_a_rate_to_each_group),
        cmocka_unit_test(names_that_the_model_lacks_are_all_listed),
        cmocka_unit_test(an_input_that_is_read_must_be_described),
        cmocka_unit_test(one_output_is_the_loss),
        cmocka_unit_test(a_frozen_weight_stays_and_the_rest_trains),
        cmocka_unit_test(a_session_that_a_trainer_has_takes_no_steps_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
