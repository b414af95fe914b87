// SPDX-License-Identifier: Apache-2.0
// Models are prepared once on their way to the first step, and what artifacts hold is not copied.
#include "artifacts/artifacts.h"
#include "session/session.h"
#include "session_fixture.h"
#include "unit/base/temporary_folder.h"

static const char forward_text[] =
    MLP_HEAD "mlp (float[batch,3] x) => (float[batch,2] y)\n"
             "<float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4,2] v = {1,2,3,4,5,6,7,8}>\n"
             "{\n  h = MatMul(x, w)\n  a = Relu(h)\n  y = MatMul(a, v)\n}\n";

// The batch of the example, which is opened.
static const char fixed_text[] =
    MLP_HEAD "mlp (float[5,3] x) => (float[5,2] y)\n"
             "<float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4,2] v = {1,2,3,4,5,6,7,8}>\n"
             "{\n  h = MatMul(x, w)\n  a = Relu(h)\n  y = MatMul(a, v)\n}\n";

static int n_prepares;

static void count(const ot_model *model, const char *pass)
{
    (void)model;
    n_prepares += strcmp(pass, "prepare") == 0;
}

static void must(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s", ot_error_message());
}

static ot_artifacts *generate(const char *text, const char *path)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    assert_int_equal(ot__file_write(path, text, strlen(text)), OT_OK);
    must(ot_model_load(path, NULL, &model));
    options.losses = &loss;
    options.n_losses = 1;
    must(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

// Training, optimizer and evaluation, once each.
static double first_steps(ot_session *session)
{
    fixture f = {.session = session, .dtype = OT_F32};
    double loss = train(&f, 0);

    optimize(&f);
    loss += step(&f, OT_MODE_EVAL);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(f.inputs[i]);
    return loss;
}

// The three graphs come of one that was prepared.
static void assert_one_prepare(void **state, const char *text)
{
    ot_artifacts *artifacts;
    ot_checkpoint *checkpoint;
    ot_session *session;

    n_prepares = 0;
    artifacts = generate(text, in_folder(state, "mlp.onnxtxt"));
    must(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_ptr_equal(ot__session_graph(session, OT_MODE_TRAIN), artifacts->training->graph);
    assert_ptr_equal(ot__session_graph(session, OT_MODE_EVAL), artifacts->eval->graph);
    checkpoint = ot_artifacts_take_checkpoint(artifacts);
    ot_artifacts_destroy(artifacts); // the session keeps what it needs
    first_steps(session);
    assert_int_equal(n_prepares, 1);
    ot_session_destroy(session);
    ot_checkpoint_destroy(checkpoint);
}

static void a_model_is_prepared_once_for_all_three_graphs(void **state)
{
    assert_one_prepare(state, forward_text);
}

static void a_model_whose_batch_is_opened_is_prepared_once_too(void **state)
{
    assert_one_prepare(state, fixed_text);
}

static void each_model_of_a_folder_is_prepared_once(void **state)
{
    ot_artifacts *artifacts = generate(forward_text, in_folder(state, "mlp.onnxtxt"));
    ot_session *session;
    double loss, loaded;

    must(ot_artifacts_save(artifacts, *state, ""));
    must(ot_session_create_from_artifacts(artifacts, NULL, &session));
    loss = first_steps(session);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    n_prepares = 0;
    must(ot_artifacts_load(*state, "", &artifacts));
    must(ot_session_create_from_artifacts(artifacts, NULL, &session));
    loaded = first_steps(session);
    assert_int_equal(n_prepares, 3);
    assert_true(loaded == loss);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

// Two at a time, each on a checkpoint of its own.
static void sessions_that_share_their_models_do_not_meet(void **state)
{
    ot_artifacts *artifacts = generate(forward_text, in_folder(state, "mlp.onnxtxt"));
    const char *path = in_folder(state, "checkpoint");
    ot_checkpoint *second;
    ot_session *a, *b;
    double first;

    must(ot_checkpoint_save(ot_artifacts_checkpoint(artifacts), path, 0));
    must(ot_checkpoint_load(path, &second));
    must(ot_session_create_from_artifacts(artifacts, NULL, &a));
    must(ot_session_create(artifacts->training, artifacts->eval, artifacts->optimizer, second, NULL,
                           &b));
    first = first_steps(a);
    ot_session_destroy(a);
    assert_true(first_steps(b) == first);
    ot_session_destroy(b);
    ot_checkpoint_destroy(second);
    ot_artifacts_destroy(artifacts);
}

#define IN_FOLDER(name)                                                                            \
    cmocka_unit_test_setup_teardown(name, temporary_folder_make, temporary_folder_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_model_is_prepared_once_for_all_three_graphs),
        IN_FOLDER(a_model_whose_batch_is_opened_is_prepared_once_too),
        IN_FOLDER(each_model_of_a_folder_is_prepared_once),
        IN_FOLDER(sessions_that_share_their_models_do_not_meet),
    };

    ot__pass_set_observer(count);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
