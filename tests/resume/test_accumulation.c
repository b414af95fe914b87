// SPDX-License-Identifier: Apache-2.0
// Saved and loaded between the micro-batches of an update, training goes on bit for bit.
#include <unistd.h>

#include "mlp.h"
#include "session/session.h"

static const char path[] = "accumulation_checkpoint";
enum { ACCUMULATION = 3, CALLS = 2 * ACCUMULATION + 1, SEED = 77 };

// All that a state may have: a counter per parameter, divided sums, averages.
static const char averaging_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"
    "adam (float[1] learning_rate, int64[n_params] step, float[1] gradient_divisor, seq(T[]) "
    "params, seq(T[]) gradients, seq(T[]) first_order_moments, seq(T[]) second_order_moments, "
    "seq(T[]) averages) => (bool[1] flag)\n"
    "{\n"
    "  flag = ai.onnxtrain.AdamOptimizer(learning_rate, step, params, gradients, "
    "first_order_moments, second_order_moments, gradient_divisor)\n"
    "  averaged = ai.onnxtrain.ParameterAverage<decay = 0.75>(params, averages, flag)\n"
    "}\n";

typedef struct run {
    ot_model *training, *optimizer;
    ot_checkpoint *checkpoint;
    ot_session *session;
    int64_t n_accumulated;
} run;

static run begin(const char *optimizer_text, ot_checkpoint *checkpoint)
{
    run r = {.checkpoint = checkpoint};

    r.training = mlp_model(mlp_dropout_text, "float");
    r.optimizer = mlp_model(optimizer_text, "float");
    if (ot_session_create(r.training, NULL, r.optimizer, r.checkpoint, NULL, &r.session) != OT_OK)
        fail_msg("%s", ot_error_message());
    return r;
}

static run begin_anew(const char *optimizer_text)
{
    run r = begin(optimizer_text, mlp_checkpoint(OT_F32));

    ot_session_set_seed(r.session, SEED);
    assert_int_equal(ot_session_set_learning_rate(r.session, 0.1 / 3), OT_OK);
    if (optimizer_text == averaging_text)
        ot__ckpt_find(r.checkpoint, "fc1.bias")->n_updates = 40; // as if loaded apart
    return r;
}

static run load(const char *optimizer_text)
{
    ot_checkpoint *loaded;
    run r;

    if (ot_checkpoint_load(path, &loaded) != OT_OK)
        fail_msg("%s", ot_error_message());
    r = begin(optimizer_text, loaded);
    r.n_accumulated = ot__session_resume_accumulation(r.session);
    return r;
}

static void end(run *r)
{
    ot_session_destroy(r->session);
    ot_checkpoint_destroy(r->checkpoint);
    ot_model_destroy(r->training);
    ot_model_destroy(r->optimizer);
}

static void calls(run *r, int first, int last)
{
    for (int i = first; i < last; i++) {
        ot_tensor *inputs[2];

        mlp_batch(OT_F32, i, ROWS, inputs);

        const ot_tensor *const in[] = {inputs[0], inputs[1]};

        if (r->n_accumulated == 0)
            ot__session_reset_gradients(r->session);
        assert_int_equal(ot_session_train_step(r->session, in, 2, NULL, 0), OT_OK);
        if (++r->n_accumulated == ACCUMULATION) {
            assert_int_equal(ot__session_update(r->session, OT_OK, ACCUMULATION, NULL), OT_OK);
            r->n_accumulated = 0;
        }
        for (int k = 0; k < 2; k++)
            ot_tensor_destroy(inputs[k]);
    }
}

static void save(const run *r)
{
    if (ot__session_save_accumulating(r->session, path, r->n_accumulated,
                                      OT_CHECKPOINT_OPTIMIZER_STATE) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_int_equal(r->checkpoint->n_accumulated, 0); // of the file alone
}

static void assert_same_tensors(const ot_tensor *a, const ot_tensor *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a != NULL)
        assert_memory_equal(a->data, b->data, a->n_bytes);
}

static void assert_same(const run *a, const run *b)
{
    assert_int_equal(a->n_accumulated, b->n_accumulated);
    assert_int_equal(a->checkpoint->step, b->checkpoint->step);
    for (int k = 0; k < N_PARTS; k++) {
        const ot__parameter *p = ot__ckpt_find(a->checkpoint, mlp_parts[k].name);
        const ot__parameter *q = ot__ckpt_find(b->checkpoint, mlp_parts[k].name);

        assert_same_tensors(p->value, q->value);
        assert_int_equal(p->n_updates, q->n_updates);
        for (int m = 0; m < OT_SLOTS; m++)
            assert_same_tensors(p->slots[m], q->slots[m]);
        if (a->n_accumulated > 0)
            assert_same_tensors(p->gradient, q->gradient);
    }
}

static void resumes_at_every_call(const char *optimizer_text)
{
    run whole = begin_anew(optimizer_text), saved = begin_anew(optimizer_text);

    calls(&whole, 0, CALLS);
    for (int k = 0; k <= CALLS; k++) {
        run loaded;

        if (k > 0)
            calls(&saved, k - 1, k);
        save(&saved);
        loaded = load(optimizer_text);
        assert_int_equal(loaded.n_accumulated, k % ACCUMULATION);
        calls(&loaded, k, CALLS);
        assert_same(&whole, &loaded);
        end(&loaded);
    }
    assert_same(&whole, &saved);
    end(&whole);
    end(&saved);
    unlink(path);
}

static void adamw_resumes_at_every_micro_batch(void **state)
{
    (void)state;
    resumes_at_every_call(mlp_adamw_text);
}

static void sgd_resumes_at_every_micro_batch(void **state)
{
    (void)state;
    resumes_at_every_call(mlp_sgd_text);
}

static void averages_and_counters_resume_at_every_micro_batch(void **state)
{
    run r = begin_anew(averaging_text);
    const ot__parameter *p = ot__ckpt_find(r.checkpoint, "fc1.bias");

    (void)state;
    calls(&r, 0, ACCUMULATION);
    assert_int_equal(p->n_updates, 41);
    assert_memory_not_equal(p->slots[OT_SLOT_AVERAGE]->data, p->value->data, p->value->n_bytes);
    end(&r);
    resumes_at_every_call(averaging_text);
}

// What is dropped is all that came after the last update, also what came before the file.
static void an_accumulation_that_came_from_a_file_can_be_dropped(void **state)
{
    run whole = begin_anew(mlp_adamw_text), loaded;

    (void)state;
    calls(&whole, 0, ACCUMULATION + 1);
    save(&whole);
    loaded = load(mlp_adamw_text);
    calls(&loaded, ACCUMULATION + 1, ACCUMULATION + 2);
    ot__session_drop_steps(loaded.session);
    loaded.n_accumulated = 0;
    ot__session_drop_steps(whole.session);
    whole.n_accumulated = 0;
    for (run *r = &whole; r != NULL; r = r == &whole ? &loaded : NULL)
        calls(r, ACCUMULATION, 2 * ACCUMULATION + 1);
    assert_same(&whole, &loaded);
    end(&whole);
    end(&loaded);
    unlink(path);
}

// Who uses the session without a trainer begins with new gradients.
static void a_session_that_does_not_ask_for_them_overwrites_the_gradients(void **state)
{
    run saved = begin_anew(mlp_adamw_text), plain;
    ot_checkpoint *loaded;

    (void)state;
    calls(&saved, 0, 2);
    save(&saved);
    assert_int_equal(ot_checkpoint_load(path, &loaded), OT_OK);
    plain = begin(mlp_adamw_text, loaded);
    ot__session_reset_gradients(saved.session);
    for (run *r = &saved; r != NULL; r = r == &saved ? &plain : NULL) {
        r->n_accumulated = 1; // no reset, no update
        calls(r, 2, 3);
    }
    for (int k = 0; k < N_PARTS; k++)
        assert_same_tensors(ot__ckpt_find(plain.checkpoint, mlp_parts[k].name)->gradient,
                            ot__ckpt_find(saved.checkpoint, mlp_parts[k].name)->gradient);
    assert_int_equal(ot_session_save(plain.session, path), OT_OK);
    end(&plain);
    assert_int_equal(ot_checkpoint_load(path, &loaded), OT_OK);
    assert_null(ot__ckpt_find(loaded, mlp_parts[0].name)->gradient);
    ot_checkpoint_destroy(loaded);
    end(&saved);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_resumes_at_every_micro_batch),
        cmocka_unit_test(sgd_resumes_at_every_micro_batch),
        cmocka_unit_test(averages_and_counters_resume_at_every_micro_batch),
        cmocka_unit_test(an_accumulation_that_came_from_a_file_can_be_dropped),
        cmocka_unit_test(a_session_that_does_not_ask_for_them_overwrites_the_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
