// SPDX-License-Identifier: Apache-2.0
// Handles in the wrong order, after their end, of another kind, from two threads.
#include <pthread.h>

#include "session/session_internal.h"
#include "session_fixture.h"

// ---- order ----

static void a_checkpoint_may_be_destroyed_before_its_session(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    ot_checkpoint_destroy(f->checkpoint);
    ot_checkpoint_destroy(f->checkpoint); // it is still there: once more makes no difference
    (void)train(f, 0);
    optimize(f);
    assert_int_equal(ot_session_step_count(f->session), 1);
    ot_session_destroy(f->session); // and the checkpoint with it, as the leak check sees
    f->session = NULL;
    f->checkpoint = NULL;
}

static void artifacts_may_be_destroyed_before_their_session(void **state)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "f (float[2] x) => (float loss) <float[2] w = {1, 2}>\n"
                               "{ p = Mul(x, w)  loss = ReduceSum<keepdims = 0>(p) }\n";
    const float three[] = {3, 3};
    ot_artifacts *artifacts;
    ot_tensor *x, *loss = NULL;
    ot_session *session;
    ot_model *model;

    (void)state;
    assert_int_equal(ot_model_load_buffer(text, sizeof text - 1, NULL, &model), OT_OK);
    assert_int_equal(ot_artifacts_generate(model, NULL, &artifacts), OT_OK);
    assert_int_equal(ot_session_create_from_artifacts(artifacts, NULL, &session), OT_OK);
    ot_model_destroy(model);
    ot_artifacts_destroy(artifacts);
    x = mlp_tensor(OT_F32, OT_SHAPE(2), NULL);
    memcpy(ot_tensor_data(x), three, sizeof three);
    assert_int_equal(ot_session_train_step(session, (const ot_tensor *[]){x}, 1, &loss, 1), OT_OK);
    assert_near(ot__tensor_get_f64(loss, 0), 9, 0);
    assert_int_equal(ot_session_optimizer_step(session), OT_OK);
    ot_tensor_destroy(loss);
    ot_tensor_destroy(x);
    ot_session_destroy(session);
}

// ---- after the end ----

// Memory that is given back stays readable until the end of the test.
static void *kept[4096];
static size_t n_kept;
static bool is_keeping;

static void *reallocate(void *context, void *block, size_t n_bytes)
{
    size_t *made = malloc(n_bytes + 64);

    (void)context;
    if (made == NULL)
        return NULL;
    made[0] = n_bytes;
    if (block != NULL) {
        const size_t n_old = *(size_t *)(void *)((char *)block - 64);

        memcpy((char *)made + 64, block, n_old < n_bytes ? n_old : n_bytes);
        free((char *)block - 64);
    }
    return (char *)made + 64;
}

static void keep(void *context, void *block)
{
    (void)context;
    if (block == NULL)
        return;
    if (is_keeping && n_kept < OT_COUNT(kept))
        kept[n_kept++] = (char *)block - 64;
    else
        free((char *)block - 64);
}

static void handles_that_were_destroyed_are_refused(void **state)
{
    const ot_allocator allocator = {reallocate, keep, NULL};
    fixture f = {0};
    ot_tensor *t = NULL;

    (void)state;
    ot_set_allocator(&allocator);
    make(&f, OT_F32, NULL);
    open_session(&f);
    is_keeping = true;
    ot_session_destroy(f.session);
    assert_int_equal(ot_session_optimizer_step(f.session), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed session handle");
    ot_session_destroy(f.session); // a second time is no crash
    ot_checkpoint_destroy(f.checkpoint);
    assert_int_equal(ot_checkpoint_get_parameter(f.checkpoint, "fc1.bias", &t), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed checkpoint handle");
    assert_int_equal(ot_session_create(f.training, NULL, NULL, f.checkpoint, NULL, &f.session),
                     OT_ERR_INVALID);
    assert_null(f.session);
    ot_checkpoint_destroy(f.checkpoint);
    ot_model_destroy(f.training);
    ot_model_destroy(f.eval);
    for (size_t i = 0; i < n_kept; i++)
        free(kept[i]);
    ot_set_allocator(NULL);
}

static void a_handle_of_another_kind_is_refused(void **state)
{
    fixture *f = *state;
    ot_runner *runner;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_int_equal(ot_session_optimizer_step((ot_session *)(void *)f->checkpoint),
                     OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed session handle");
    assert_int_equal(ot_checkpoint_set_int((ot_checkpoint *)(void *)f->session, "a", 1),
                     OT_ERR_INVALID);
    assert_int_equal(ot_runner_create(f->eval, NULL, &runner), OT_OK);
    assert_int_equal(ot_runner_run((ot_runner *)(void *)f->session, NULL, 0, NULL, NULL, 0),
                     OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "invalid or destroyed runner handle");
    ot_runner_destroy(runner);
}

// ---- two threads ----

typedef struct other {
    fixture *f;
    ot_status step, optimizer, get, set, schedule, save, export, flat, rate;
} other;

static void *use_everything(void *context)
{
    other *o = context;
    ot_session *session = o->f->session;
    const ot_tensor *const inputs[] = {o->f->inputs[0], o->f->inputs[1]};
    const ot_schedule schedule = OT_SCHEDULE_INIT;
    float all[N_ELEMENTS];
    ot_tensor *t = NULL;
    ot_model *model = NULL;

    o->step = ot_session_train_step(session, inputs, 2, NULL, 0);
    o->optimizer = ot_session_optimizer_step(session);
    o->get = ot_checkpoint_get_parameter(o->f->checkpoint, "fc1.bias", &t);
    o->set = ot_checkpoint_set_int(o->f->checkpoint, "n", 1);
    o->schedule = ot_session_set_schedule(session, &schedule);
    o->save = ot_session_save(session, "never-written");
    o->export = ot_session_export(session, NULL, 0, &model);
    o->flat = ot_session_get_parameters(session, OT_PARAMETERS_ALL, all, N_ELEMENTS);
    o->rate = ot_session_set_learning_rate(session, 0.5);
    ot_session_set_seed(session, 77);
    ot_session_destroy(session);
    ot_tensor_destroy(t);
    ot_model_destroy(model);
    return NULL;
}

static other from_another_thread(fixture *f)
{
    other o = {.f = f};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, use_everything, &o), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return o;
}

static void a_second_thread_gets_an_error_and_changes_nothing(void **state)
{
    fixture *f = *state;
    other o;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    batch(f, 0, ROWS);
    assert_int_equal(ot__session_enter(f->session), OT_OK); // as every call does
    o = from_another_thread(f);
    (void)ot__session_leave(f->session, OT_OK);
    assert_int_equal(o.step, OT_ERR_STATE);
    assert_int_equal(o.optimizer, OT_ERR_STATE);
    assert_int_equal(o.get, OT_ERR_STATE);
    assert_int_equal(o.set, OT_ERR_STATE);
    assert_int_equal(o.schedule, OT_ERR_STATE);
    assert_int_equal(o.save, OT_ERR_STATE);
    assert_int_equal(o.export, OT_ERR_STATE);
    assert_int_equal(o.flat, OT_ERR_STATE);
    assert_int_equal(o.rate, OT_ERR_STATE);
    assert_int_equal(f->session->seed, 0);
    assert_false(ot_session_has_schedule(f->session));
    (void)train(f, 0); // the session is still there, and free again
    optimize(f);
}

enum { N_RACING = 200 };

// How many of its steps were done; -1: there was another error than the right one.
static void *race(void *context)
{
    fixture *f = context;
    const ot_tensor *const inputs[] = {f->inputs[0], f->inputs[1]};
    intptr_t n_done = 0;

    for (int i = 0; i < N_RACING; i++) {
        const ot_status st = ot_session_train_step(f->session, inputs, 2, NULL, 0);

        if (st != OT_OK && st != OT_ERR_STATE)
            return (void *)(intptr_t)-1;
        n_done += st == OT_OK;
    }
    return (void *)n_done;
}

static void threads_that_race_do_steps_one_at_a_time_or_none(void **state)
{
    fixture *f = *state;
    pthread_t thread;
    void *there;
    intptr_t n_here, n_there;

    make(f, OT_F32, NULL);
    open_session(f);
    batch(f, 0, ROWS);
    assert_int_equal(pthread_create(&thread, NULL, race, f), 0);
    n_here = (intptr_t)race(f);
    assert_int_equal(pthread_join(thread, &there), 0);
    n_there = (intptr_t)there;
    assert_true(n_here >= 0 && n_there >= 0 && n_here + n_there > 0);
    assert_int_equal(f->session->counter, n_here + n_there);
}

static void *train_there(void *context)
{
    fixture *f = context;

    (void)step(f, OT_MODE_TRAIN);
    return NULL;
}

static void a_session_may_go_from_thread_to_thread(void **state)
{
    fixture *f = *state;
    pthread_t thread;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    assert_int_equal(pthread_create(&thread, NULL, train_there, f), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    optimize(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_checkpoint_may_be_destroyed_before_its_session),
        TEST(artifacts_may_be_destroyed_before_their_session),
        TEST(handles_that_were_destroyed_are_refused),
        TEST(a_handle_of_another_kind_is_refused),
        TEST(a_second_thread_gets_an_error_and_changes_nothing),
        TEST(threads_that_race_do_steps_one_at_a_time_or_none),
        TEST(a_session_may_go_from_thread_to_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
