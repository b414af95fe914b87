// SPDX-License-Identifier: Apache-2.0
// Ten steps are the same bits as five steps, saving, loading in a new session and five more.
#include <unistd.h>

#include "mlp.h"

static const char path[] = "resume_checkpoint";
enum { STEPS = 10, HALF = 5, SEED = 77 };

typedef struct run {
    ot_model *training, *optimizer;
    ot_checkpoint *checkpoint;
    ot_session *session;
} run;

static void begin(run *r, const char *optimizer_text, ot_checkpoint *checkpoint)
{
    r->training = mlp_model(mlp_dropout_text, "float");
    r->optimizer = mlp_model(optimizer_text, "float");
    r->checkpoint = checkpoint;
    if (ot_session_create(r->training, NULL, r->optimizer, r->checkpoint, NULL, &r->session) !=
        OT_OK)
        fail_msg("%s", ot_error_message());
}

static void end(run *r)
{
    ot_session_destroy(r->session);
    ot_checkpoint_destroy(r->checkpoint);
    ot_model_destroy(r->training);
    ot_model_destroy(r->optimizer);
}

static void steps(run *r, int first, int last)
{
    for (int i = first; i < last; i++) {
        ot_tensor *inputs[2];

        mlp_batch(OT_F32, i, ROWS, inputs);

        const ot_tensor *const in[] = {inputs[0], inputs[1]};

        assert_int_equal(ot_session_train_step(r->session, in, 2, NULL, 0), OT_OK);
        assert_int_equal(ot_session_optimizer_step(r->session), OT_OK);
        assert_int_equal(ot_session_schedule_step(r->session), OT_OK);
        ot_session_reset_gradients(r->session);
        for (int k = 0; k < 2; k++)
            ot_tensor_destroy(inputs[k]);
    }
}

static void configure(run *r)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    schedule.kind = OT_SCHEDULE_COSINE;
    schedule.initial_lr = 0.1 / 3.0;
    schedule.warmup_steps = 3;
    schedule.total_steps = 12;
    ot_session_set_seed(r->session, SEED);
    assert_int_equal(ot_session_set_schedule(r->session, &schedule), OT_OK);
}

static void assert_same(const run *a, const run *b)
{
    assert_int_equal(a->checkpoint->step, b->checkpoint->step);
    assert_true(ot_session_learning_rate(a->session) == ot_session_learning_rate(b->session));
    for (int k = 0; k < N_PARTS; k++) {
        const ot__parameter *p = ot__ckpt_find(a->checkpoint, mlp_parts[k].name);
        const ot__parameter *q = ot__ckpt_find(b->checkpoint, mlp_parts[k].name);

        assert_memory_equal(p->value->data, q->value->data, p->value->n_bytes);
        for (int m = 0; m < OT_SLOTS; m++) {
            assert_int_equal(p->slots[m] == NULL, q->slots[m] == NULL);
            if (p->slots[m] != NULL)
                assert_memory_equal(p->slots[m]->data, q->slots[m]->data, p->slots[m]->n_bytes);
        }
    }
}

static void resumes_bit_for_bit(const char *optimizer_text)
{
    run whole, first, second;
    ot_checkpoint *loaded;

    begin(&whole, optimizer_text, mlp_checkpoint(OT_F32));
    configure(&whole);
    steps(&whole, 0, STEPS);

    begin(&first, optimizer_text, mlp_checkpoint(OT_F32));
    configure(&first);
    steps(&first, 0, HALF);
    assert_int_equal(ot_session_save(first.session, path), OT_OK);
    end(&first);

    assert_int_equal(ot_checkpoint_load(path, &loaded), OT_OK);
    begin(&second, optimizer_text, loaded);
    assert_int_equal(ot_session_step_count(second.session), HALF);
    steps(&second, HALF, STEPS);
    assert_same(&whole, &second);
    end(&whole);
    end(&second);
    unlink(path);
}

static void adamw_with_dropout_and_schedule_resumes_bit_for_bit(void **state)
{
    (void)state;
    resumes_bit_for_bit(mlp_adamw_text);
}

static void sgd_with_dropout_and_schedule_resumes_bit_for_bit(void **state)
{
    (void)state;
    resumes_bit_for_bit(mlp_sgd_text);
}

// Otherwise the test above would pass without any seed or counter being saved.
static void another_seed_and_another_counter_drop_other_elements(void **state)
{
    run a, b, c;

    (void)state;
    begin(&a, mlp_sgd_text, mlp_checkpoint(OT_F32));
    begin(&b, mlp_sgd_text, mlp_checkpoint(OT_F32));
    begin(&c, mlp_sgd_text, mlp_checkpoint(OT_F32));
    for (int i = 0; i < 3; i++) {
        run *r = (run *[]){&a, &b, &c}[i];

        configure(r);
        assert_int_equal(ot_session_set_learning_rate(r->session, 0), OT_OK);
    }
    ot_session_set_seed(b.session, SEED + 1);
    steps(&a, 0, 1);
    steps(&b, 0, 1);
    steps(&c, 1, 2); // one step more of the counter, then the same batch
    ot_session_reset_gradients(c.session);
    steps(&c, 0, 1);
    for (int i = 1; i < 3; i++) {
        const run *r = (run *[]){&a, &b, &c}[i];
        const ot__parameter *p = ot__ckpt_find(a.checkpoint, "fc2.weight");
        const ot__parameter *q = ot__ckpt_find(r->checkpoint, "fc2.weight");

        assert_memory_not_equal(p->gradient->data, q->gradient->data, p->gradient->n_bytes);
    }
    end(&a);
    end(&b);
    end(&c);
}

static double rate_after_save(const ot_schedule *schedule, const char *text, int64_t step)
{
    const char *saved;
    ot_checkpoint *loaded;
    double rate;
    run r;

    begin(&r, mlp_sgd_text, mlp_checkpoint(OT_F32));
    assert_int_equal(ot_session_set_schedule(r.session, schedule), OT_OK);
    assert_int_equal(ot_session_save(r.session, path), OT_OK);
    end(&r);
    assert_int_equal(ot_checkpoint_load(path, &loaded), OT_OK);
    assert_int_equal(ot_checkpoint_get_string(loaded, "onnxtrain.schedule", &saved), OT_OK);
    assert_string_equal(saved, text);
    loaded->step = step;
    begin(&r, mlp_sgd_text, loaded);
    assert_int_equal(ot_session_schedule_step(r.session), OT_OK);
    rate = ot_session_learning_rate(r.session);
    end(&r);
    unlink(path);
    return rate;
}

// What the version before writes, and reads, has neither fractions nor cycles.
static void schedules_are_saved_exactly(void **state)
{
    ot_schedule s = OT_SCHEDULE_INIT;

    (void)state;
    s.kind = OT_SCHEDULE_COSINE;
    s.warmup_steps = 2;
    s.total_steps = 12;
    assert_true(rate_after_save(&s, "cosine 0.001 2 12 1 0.1 1 0", 7) == ot_schedule_value(&s, 7));
    s.warmup_steps = 0.002 * 97;
    assert_true(rate_after_save(&s, "cosine 0.001 0.194 12 1 0.1 1 0", 7) ==
                ot_schedule_value(&s, 7));
    s.warmup_steps = 1.0 / 3.0;
    s.cycles = 1.5;
    assert_true(rate_after_save(&s, "cosine 0.001 0.3333333333333333 12 1 0.1 1 0 1.5", 14) ==
                ot_schedule_value(&s, 14));
}

static void assert_refused(const char *name, const char *text, const char *message)
{
    ot_model *training = mlp_model(mlp_training_text, "float");
    ot_checkpoint *checkpoint = mlp_checkpoint(OT_F32);
    ot_session *session;

    assert_int_equal(ot_checkpoint_set_string(checkpoint, name, text), OT_OK);
    assert_int_equal(ot_session_create(training, NULL, NULL, checkpoint, NULL, &session),
                     OT_ERR_FORMAT);
    assert_string_equal(ot_error_message(), message);
    ot_checkpoint_destroy(checkpoint);
    ot_model_destroy(training);
}

static void properties_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    assert_refused("onnxtrain.learning_rate", "fast",
                   "property 'onnxtrain.learning_rate' is not a learning rate: 'fast'");
    assert_refused("onnxtrain.schedule", "cosine 0.1",
                   "property 'onnxtrain.schedule' is not a schedule: 'cosine 0.1'");
    assert_refused("onnxtrain.schedule", "round 0.1 0 1 1 0.1 1 0",
                   "property 'onnxtrain.schedule' is not a schedule: 'round 0.1 0 1 1 0.1 1 0'");
    assert_refused("onnxtrain.schedule", "step 0.1 0 1 0 0.1 1 0",
                   "property 'onnxtrain.schedule' is not a schedule: 'step 0.1 0 1 0 0.1 1 0'");
    assert_refused("onnxtrain.schedule", "cosine 0.1 0 1 1 0.1 1 0 -1",
                   "property 'onnxtrain.schedule' is not a schedule: "
                   "'cosine 0.1 0 1 1 0.1 1 0 -1'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_with_dropout_and_schedule_resumes_bit_for_bit),
        cmocka_unit_test(sgd_with_dropout_and_schedule_resumes_bit_for_bit),
        cmocka_unit_test(another_seed_and_another_counter_drop_other_elements),
        cmocka_unit_test(schedules_are_saved_exactly),
        cmocka_unit_test(properties_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
