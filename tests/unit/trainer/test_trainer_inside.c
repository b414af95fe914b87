// SPDX-License-Identifier: Apache-2.0
// The update inside the backward pass of a trainer's step, against train step and update of a
// session, one after the other: the same bits of parameters and of all that the optimizer keeps.
#include "trainer/trainer.h"
#include "trainer_fixture.h"

enum { N_TOKENS = 24, N_STEPS = 4 };

// A table that is read by rows and, transposed, as the last matrix, so that its gradient is a sum
// and its old value is needed late; a mask that steps draw, statistics that they change, a scalar,
// a parameter in another shape.
static const char tied_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "tied (int64[N] x, int64[N] t) => (float loss, float[N, 48] s)\n"
    "<float[16] mean = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0},\n"
    " float[16] var = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1},\n"
    " int64[2] two = {16, 160}, float scale = {0.75}, float ratio = {0.25}, bool on = {1}>\n"
    "{ table = RandomNormal<shape = [48, 160], seed = 1.0>()\n"
    "  w = RandomNormal<shape = [160, 16], seed = 2.0>() a = RandomNormal<shape = [16], seed = "
    "3.0>()\n"
    "  g = RandomNormal<shape = [16], seed = 4.0>() b = RandomNormal<shape = [16], seed = 5.0>()\n"
    "  c = RandomNormal<shape = [2560], seed = 6.0>()\n"
    "  h0 = Gather(table, x) h1 = MatMul(h0, w) h2 = Add(h1, a)\n"
    "  h3 = BatchNormalization(h2, g, b, mean, var) h4 = Relu(h3)\n"
    "  h5 = Dropout(h4, ratio, on) c2 = Reshape(c, two) h6 = MatMul(h5, c2) h7 = Mul(h6, scale)\n"
    "  back = Transpose(table) s = MatMul(h7, back) loss = SoftmaxCrossEntropyLoss(s, t) }\n";

static ot_artifacts *artifacts_of(const ot_optimizer_options *optimizer,
                                  const ot_trainer_options *options)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    loss.loss = OT_LOSS_NONE;
    loss.input = "loss";
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = optimizer;
    need(ot_model_load_buffer(tied_text, strlen(tied_text), NULL, &model));
    need(ot_trainer_generate_artifacts(model, &how, options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static void tokens_of(int64_t step, int64_t *x, int64_t *t)
{
    for (int i = 0; i < N_TOKENS; i++) {
        x[i] = (i * 7 + step * 5) % 48;
        t[i] = (i * 11 + step * 3) % 48;
    }
}

static void expect_equal_tensors(const ot_tensor *a, const ot_tensor *b, const char *name)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL && memcmp(a->data, b->data, b->n_bytes) != 0)
        fail_msg("'%s' differs", name);
}

// Asked for by name, a parameter and what belongs to it becomes row-major.
static void expect_equal(ot_checkpoint *a, ot_checkpoint *b, bool with_statistics)
{
    assert_int_equal(a->n_parameters, b->n_parameters);
    assert_int_equal(a->step, b->step);
    for (int i = 0; i < b->n_parameters; i++) {
        const ot__parameter *p = a->parameters[i], *q = b->parameters[i];
        ot_tensor *ignored;

        need(ot_checkpoint_get_parameter(a, p->name, &ignored));
        ot_tensor_destroy(ignored);
        need(ot_checkpoint_get_parameter(b, q->name, &ignored));
        ot_tensor_destroy(ignored);
        if (with_statistics || p->trainable)
            expect_equal_tensors(p->value, q->value, p->name);
        for (int k = 0; k < OT_SLOTS; k++)
            expect_equal_tensors(p->slots[k], q->slots[k], p->name);
        assert_int_equal(p->n_updates, q->n_updates);
    }
}

static void expect_equal_states(ot_checkpoint *a, ot_checkpoint *b)
{
    expect_equal(a, b, true);
}

typedef struct both {
    ot_artifacts *a, *b;
    ot_trainer *trainer;
    ot_session *session;
} both;

static both both_of(const ot_optimizer_options *optimizer, ot_trainer_options *options)
{
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    both two;

    options->grad_norm_clip = 0;
    two.a = artifacts_of(optimizer, options);
    two.b = artifacts_of(optimizer, options);
    need(ot_trainer_session_options(options, &how));
    need(ot_trainer_create_from_artifacts(two.a, NULL, options, &two.trainer));
    need(ot_session_create_from_artifacts(two.b, &how, &two.session));
    return two;
}

static void destroy_both(both *two)
{
    ot_trainer_destroy(two->trainer);
    ot_session_destroy(two->session);
    ot_artifacts_destroy(two->a);
    ot_artifacts_destroy(two->b);
}

typedef struct batch {
    int64_t x[N_TOKENS], t[N_TOKENS];
    ot_tensor *inputs[2];
} batch;

static void make_batch(int64_t step, batch *b)
{
    tokens_of(step, b->x, b->t);
    need(ot_tensor_wrap(OT_I64, &OT_SHAPE(N_TOKENS), b->x, sizeof b->x, &b->inputs[0]));
    need(ot_tensor_wrap(OT_I64, &OT_SHAPE(N_TOKENS), b->t, sizeof b->t, &b->inputs[1]));
}

static void drop_batch(batch *b)
{
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(b->inputs[i]);
}

static ot_status step_trainer(const both *two, const batch *b, ot_tensor **loss)
{
    return ot_trainer_train_step(two->trainer, (const ot_tensor *const *)b->inputs, 2, loss, 1);
}

static void step_session(const both *two, const batch *b, int64_t step, ot_tensor **loss)
{
    ot_session_set_learning_rate(two->session, 0.125 / (double)(step + 1));
    need(ot_session_train_step(two->session, (const ot_tensor *const *)b->inputs, 2, loss, 1));
    need(ot_session_optimizer_step(two->session));
    ot_session_reset_gradients(two->session);
}

static void step_both(const both *two, int64_t step)
{
    ot_tensor *losses[2] = {NULL, NULL};
    batch b;

    make_batch(step, &b);
    need(step_trainer(two, &b, &losses[0]));
    step_session(two, &b, step, &losses[1]);
    assert_memory_equal(losses[0]->data, losses[1]->data, sizeof(float));
    ot_tensor_destroy(losses[0]);
    ot_tensor_destroy(losses[1]);
    drop_batch(&b);
}

static int falling(void *context, const ot_step_info *info, double *lr, int n_lr)
{
    (void)context;
    for (int i = 0; i < n_lr; i++)
        lr[i] = 0.125 / (double)(info->optimization_step + 1);
    return 0;
}

static bool keeps_gradients(const both *two)
{
    ot_tensor *gradient;
    const ot_status st =
        ot_checkpoint_get_gradient(ot_artifacts_checkpoint(two->a), "table", &gradient);

    if (st == OT_OK)
        ot_tensor_destroy(gradient);
    else
        assert_int_equal(st, OT_ERR_STATE);
    return st == OT_OK;
}

static void expect_same_bits(const ot_optimizer_options *optimizer, ot_trainer_options *options,
                             bool is_inside)
{
    both two;

    options->lr_function = falling;
    two = both_of(optimizer, options);
    for (int64_t step = 0; step < N_STEPS; step++)
        step_both(&two, step);
    assert_int_equal(keeps_gradients(&two), !is_inside);
    expect_equal_states(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b));
    destroy_both(&two);
}

static void every_optimizer_ends_with_the_bits_of_step_and_update(void **state)
{
    (void)state;
    for (int i = 0; i < ot_optimizer_count(); i++)
        for (int threads = 1; threads <= 2; threads++) {
            ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
            ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

            optimizer.name = ot_optimizer_name(i);
            options.n_threads = threads;
            options.reproducible = threads == 2;
            expect_same_bits(&optimizer, &options, true);
        }
}

static void groups_averages_and_frozen_weights_stay_theirs(void **state)
{
    static const char *const frozen[] = {"a"};
    static const char *const of_group[] = {"w", "g"};
    ot_param_group group = OT_PARAM_GROUP_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    (void)state;
    group.params = of_group;
    group.n_params = 2;
    group.lr_factor = 0.5;
    group.hyper = &(const ot_hyper){"momentum", 0.5};
    group.n_hyper = 1;
    optimizer.name = "SGDOptimizer";
    optimizer.hyper = &(const ot_hyper){"momentum", 0.875};
    optimizer.n_hyper = 1;
    optimizer.groups = &group;
    optimizer.n_groups = 1;
    optimizer.average_decay = 0.75;
    options.frozen_weights = frozen;
    options.n_frozen_weights = 1;
    expect_same_bits(&optimizer, &options, true);
}

static void what_needs_all_gradients_first_keeps_them(void **state)
{
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    (void)state;
    optimizer.max_norm = 0.5;
    expect_same_bits(&optimizer, &options, false);
    optimizer.max_norm = 0;
    options.skip_non_finite = 1;
    expect_same_bits(&optimizer, &options, false);
}

static both adam_of(ot_trainer_options *options)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;

    options->lr_function = falling;
    return both_of(&adam, options);
}

// The label is read by the loss, which is far behind the first Gather.
static void a_step_that_fails_changes_nothing(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    both two = adam_of(&options);
    ot_tensor *loss = NULL;
    batch b;

    (void)state;
    step_both(&two, 0);
    make_batch(1, &b);
    b.t[N_TOKENS - 1] = 48;
    assert_int_equal(step_trainer(&two, &b, &loss), OT_ERR_INVALID);
    assert_null(loss);
    expect_equal_states(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b));
    step_both(&two, 1);
    expect_equal_states(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b));
    drop_batch(&b);
    destroy_both(&two);
}

// As the training loop does it. Between the halves somebody may look at parameters, which lie
// row-major then, and evaluate, for which the step's memory must not be taken.
static void the_halves_of_a_step_stand_what_comes_between_them(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    both two = adam_of(&options);
    ot_tensor *losses[3] = {NULL, NULL, NULL};
    batch b, other;

    (void)state;
    step_both(&two, 0);
    make_batch(1, &b);
    make_batch(7, &other);
    need(ot__trainer_accumulate(two.trainer, (const ot_tensor *const *)b.inputs, 2, losses, 1));
    ot__trainer_drop(two.trainer);
    expect_equal_states(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b));
    need(ot__trainer_accumulate(two.trainer, (const ot_tensor *const *)b.inputs, 2, losses, 1));
    expect_equal(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b), false);
    need(ot_trainer_eval_step(two.trainer, (const ot_tensor *const *)other.inputs, 2, &losses[1],
                              1));
    need(ot__trainer_update(two.trainer, OT_OK));
    step_session(&two, &b, 1, &losses[2]);
    assert_memory_equal(losses[0]->data, losses[2]->data, sizeof(float));
    step_both(&two, 2);
    expect_equal_states(ot_artifacts_checkpoint(two.a), ot_artifacts_checkpoint(two.b));
    for (int i = 0; i < 3; i++)
        ot_tensor_destroy(losses[i]);
    drop_batch(&b);
    drop_batch(&other);
    destroy_both(&two);
}

// What a session has added up by itself belongs to the trainer's first update.
static void gradients_that_were_there_before_the_trainer_are_added_to(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    both two = adam_of(&options);
    ot_artifacts *artifacts = artifacts_of(&adam, &options);
    ot_session *session;
    batch b;

    (void)state;
    ot_trainer_destroy(two.trainer);
    need(ot_session_create_from_artifacts(artifacts, NULL, &session));
    make_batch(0, &b);
    need(ot_session_train_step(session, (const ot_tensor *const *)b.inputs, 2, NULL, 0));
    need(ot_session_train_step(two.session, (const ot_tensor *const *)b.inputs, 2, NULL, 0));
    drop_batch(&b);
    need(ot_trainer_create_from_session(session, NULL, &options, &two.trainer));
    step_both(&two, 0);
    step_both(&two, 1);
    expect_equal_states(ot_artifacts_checkpoint(artifacts), ot_artifacts_checkpoint(two.b));
    ot_trainer_destroy(two.trainer);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    two.trainer = NULL;
    destroy_both(&two);
}

static void a_session_keeps_gradients_again_when_its_trainer_has_gone(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    both two = adam_of(&options);
    ot_artifacts *artifacts = artifacts_of(&adam, &options);
    ot_tensor *gradients[2], *loss = NULL;
    ot_session *session;
    float one;
    batch b;

    (void)state;
    ot_trainer_destroy(two.trainer);
    need(ot_session_create_from_artifacts(artifacts, NULL, &session));
    need(ot_trainer_create_from_session(session, NULL, &options, &two.trainer));
    step_both(&two, 0);
    assert_int_equal(ot_session_get_gradients(session, &one, 1), OT_ERR_STATE);
    ot_trainer_destroy(two.trainer);
    make_batch(1, &b);
    need(ot_session_train_step(session, (const ot_tensor *const *)b.inputs, 2, &loss, 1));
    need(ot_session_train_step(two.session, (const ot_tensor *const *)b.inputs, 2, &loss, 1));
    need(ot_checkpoint_get_gradient(ot_artifacts_checkpoint(artifacts), "table", &gradients[0]));
    need(ot_checkpoint_get_gradient(ot_artifacts_checkpoint(two.b), "table", &gradients[1]));
    assert_memory_equal(gradients[0]->data, gradients[1]->data, gradients[1]->n_bytes);
    ot_tensor_destroy(gradients[0]);
    ot_tensor_destroy(gradients[1]);
    ot_tensor_destroy(loss);
    drop_batch(&b);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    two.trainer = NULL;
    destroy_both(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimizer_ends_with_the_bits_of_step_and_update),
        cmocka_unit_test(groups_averages_and_frozen_weights_stay_theirs),
        cmocka_unit_test(what_needs_all_gradients_first_keeps_them),
        cmocka_unit_test(a_step_that_fails_changes_nothing),
        cmocka_unit_test(the_halves_of_a_step_stand_what_comes_between_them),
        cmocka_unit_test(gradients_that_were_there_before_the_trainer_are_added_to),
        cmocka_unit_test(a_session_keeps_gradients_again_when_its_trainer_has_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
