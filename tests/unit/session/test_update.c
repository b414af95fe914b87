// SPDX-License-Identifier: Apache-2.0
// One update: what the optimizer's graph is fed and what it answers. The graphs are plain SGD whose
// rate is made of the number that is looked at, so that the parameters show it.
#include "session/session.h"
#include "session_fixture.h"

#define SGD_INPUTS "seq(T[]) params, seq(T[]) gradients"
#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1, \"ai.onnxtrain\" : 1]>\n"

static const char divisor_text[] = HEAD
    "sgd (float[1] learning_rate, int64[1] step, float[1] gradient_divisor, " SGD_INPUTS ") => "
    "(bool[1] flag)\n"
    "{\n"
    "  rate = Div(learning_rate, gradient_divisor)\n"
    "  flag = com.microsoft.SGDOptimizerV2(rate, params, gradients)\n"
    "}\n";

// Two nodes read the gradients: neither can divide them alone.
static const char two_readers_text[] =
    HEAD "sgd (float[1] learning_rate, int64[1] step, " SGD_INPUTS
         ") => (bool[1] flag, double[1] gradient_norm)\n"
         "{\n"
         "  gradient_norm = ai.onnxtrain.GradientNorm(gradients)\n"
         "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)\n"
         "}\n";

// N stands for the bound of the norm.
#define CLIP_TEXT(bound)                                                                           \
    HEAD "sgd (float[1] learning_rate, int64[1] step, " SGD_INPUTS ") => (bool[1] flag)\n"         \
         "{\n"                                                                                     \
         "  clipped = com.microsoft.InplaceClipGradNorm<max_norm = " bound ">(gradients)\n"        \
         "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, clipped)\n"                 \
         "}\n"
static const char clip_text[] = CLIP_TEXT("0.0625"), no_clip_text[] = CLIP_TEXT("1.5");

// The rate of the second of three groups.
static const char groups_text[] =
    HEAD "sgd (float[3] learning_rate, " SGD_INPUTS ") => (bool[1] flag)\n"
         "<int64[1] second = {1}>\n"
         "{\n"
         "  rate = Gather(learning_rate, second)\n"
         "  flag = com.microsoft.SGDOptimizerV2(rate, params, gradients)\n"
         "}\n";

// The rate times the sum of the numbers of the update, one per parameter.
static const char steps_text[] =
    HEAD "sgd (float[1] learning_rate, int64[n_params] step, " SGD_INPUTS ") => (bool[1] flag)\n"
         "{\n"
         "  sum = ReduceSum<keepdims = 1>(step)\n"
         "  factor = Cast<to = 1>(sum)\n"
         "  rate = Mul(learning_rate, factor)\n"
         "  flag = com.microsoft.SGDOptimizerV2(rate, params, gradients)\n"
         "}\n";

// Applied for rates below 1 only; what is said of the gradients follows from the rate.
static const char signal_text[] = HEAD
    "sgd (float[1] learning_rate, int64[1] step, " SGD_INPUTS ", seq(T[]) first_order_moments) => "
    "(bool[1] flag, double[1] gradient_norm, bool[1] gradients_finite)\n"
    "<float[1] one = {1}>\n"
    "{\n"
    "  gradient_norm = Cast<to = 11>(learning_rate)\n"
    "  gradients_finite = Less(learning_rate, one)\n"
    "  flag = com.microsoft.SGDOptimizerV2(learning_rate, params, gradients, gradients_finite)\n"
    "}\n";

// Rules name the parameters in the order of the sequences. N stands for the names.
#define NAMING_TEXT(names)                                                                         \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnxtrain\" : 1]>\n"                           \
    "sgd (float[1] learning_rate, int64[n_params] step, float[1] gradient_divisor, " SGD_INPUTS    \
    ") => (bool[1] flag)\n"                                                                        \
    "{\n"                                                                                          \
    "  flag = ai.onnxtrain.SGDOptimizer<names = [" names "]>(learning_rate, step, params, "        \
    "gradients, , , gradient_divisor)\n"                                                           \
    "}\n"
#define IN_ORDER "\"fc1.weight\", \"fc1.bias\", \"fc2.weight\", \"fc2.bias\""
static const char named_text[] = NAMING_TEXT(IN_ORDER);
static const char swapped_text[] =
    NAMING_TEXT("\"fc1.bias\", \"fc1.weight\", \"fc2.weight\", \"fc2.bias\"");
static const char short_text[] = NAMING_TEXT("\"fc1.weight\", \"fc1.bias\", \"fc2.weight\"");

static void assert_message(const char *part)
{
    if (strstr(ot_error_message(), part) == NULL)
        fail_msg("'%s' lacks '%s'", ot_error_message(), part);
}

static ot_update_info update(const fixture *f, int64_t n_micro_batches)
{
    ot_update_info info = OT_UPDATE_INFO_INIT;

    if (ot_session_update(f->session, n_micro_batches, &info) != OT_OK)
        fail_msg("%s", ot_error_message());
    return info;
}

// Two micro-batches of unlike gradients; the reference has their mean.
static void accumulate(fixture *f, mlp_reference *r)
{
    mlp_reference_init(r);
    (void)train(f, 0);
    (void)train(f, 1);
    (void)mlp_step(r, 0, ROWS);
    (void)mlp_step(r, 1, ROWS);
    for (int i = 0; i < N_ELEMENTS; i++)
        r->g[i] /= 2;
}

// ---- the divisor ----

// An update of two micro-batches; the session is left open.
static void update_by(fixture *f, const char *text, mlp_reference *r)
{
    make(f, OT_F64, text);
    open_session(f);
    accumulate(f, r);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.25), OT_OK);
    (void)update(f, 2);
}

static void scale_reference(mlp_reference *r, double factor)
{
    for (int i = 0; i < N_ELEMENTS; i++)
        r->g[i] *= factor;
}

static double norm_of(const mlp_reference *r)
{
    double squares = 0;

    for (int i = 0; i < N_ELEMENTS; i++)
        squares += r->g[i] * r->g[i];
    return sqrt(squares);
}

static void an_update_is_by_the_mean_of_the_micro_batches(void **state)
{
    fixture *f = *state;
    mlp_reference r, sums;

    update_by(f, mlp_sgd_text, &r);
    sums = r;
    scale_reference(&sums, 2);
    assert_tensors(f, sums.g, true, 1e-12);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-12);
}

static void gradients_that_two_nodes_read_are_divided_before(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    update_by(f, two_readers_text, &r);
    assert_tensors(f, r.g, true, 1e-12);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-12);
}

// g *= min(max_norm / (norm + 1e-6), 1), of ONNX Runtime's operator, g the mean.
static void what_is_clipped_is_the_mean(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    update_by(f, clip_text, &r);
    assert_true(norm_of(&r) > 0.0625);
    scale_reference(&r, 0.0625 / (norm_of(&r) + 1e-6));
    assert_tensors(f, r.g, true, 1e-12);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-12);
}

static void the_norm_that_is_not_clipped_is_that_of_the_mean(void **state)
{
    fixture *f = *state;
    mlp_reference r;
    const double bound = 1.5;

    update_by(f, no_clip_text, &r);
    assert_true(norm_of(&r) < bound && bound < 2 * norm_of(&r));
    assert_tensors(f, r.g, true, 1e-12);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-12);
}

static void a_graph_that_divides_leaves_the_sums_as_they_are(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F32, divisor_text);
    open_session(f);
    accumulate(f, &r);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.25), OT_OK);
    (void)update(f, 2);
    scale_reference(&r, 2);
    assert_tensors(f, r.g, true, 1e-5);
    scale_reference(&r, 0.5);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-5);
}

static void an_update_of_no_micro_batches_is_refused(void **state)
{
    fixture *f = *state;

    make(f, OT_F32, mlp_sgd_text);
    open_session(f);
    assert_int_equal(ot_session_update(f->session, 0, NULL), OT_ERR_INVALID);
    assert_message("an update over 0 micro-batches, expected at least 1");
    assert_int_equal(ot_session_step_count(f->session), 0);
}

// ---- rates ----

static void every_group_has_its_rate(void **state)
{
    static const double rates[] = {1, 0.5, 2}, odd[] = {1, -1, 2};
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F32, groups_text);
    open_session(f);
    assert_int_equal(ot_session_group_count(f->session), 3);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    assert_int_equal(ot_session_set_learning_rates(f->session, rates, 3), OT_OK);
    assert_near(ot_session_learning_rate(f->session), 1, 0);
    optimize(f);
    mlp_sgd(&r, 0.5f);
    assert_tensors(f, r.p, false, 1e-5);

    assert_int_equal(ot_session_set_learning_rates(f->session, rates, 2), OT_ERR_INVALID);
    assert_message("2 learning rates for the 3 groups of the optimizer");
    assert_int_equal(ot_session_set_learning_rates(f->session, odd, 3), OT_ERR_INVALID);
    assert_message("learning rate 1 is -1, expected a finite number of at least 0");
    optimize(f); // with the rates of before
    mlp_sgd(&r, 0.5f);
    assert_tensors(f, r.p, false, 1e-5);

    assert_int_equal(ot_session_set_learning_rate(f->session, 0.125), OT_OK); // of all groups
    optimize(f);
    mlp_sgd(&r, 0.125f);
    assert_tensors(f, r.p, false, 1e-5);
}

static void rates_of_groups_need_an_optimizer(void **state)
{
    static const double rate = 1;
    fixture *f = *state;

    make(f, OT_F32, NULL);
    open_session(f);
    assert_int_equal(ot_session_group_count(f->session), 0);
    assert_int_equal(ot_session_set_learning_rates(f->session, &rate, 1), OT_ERR_STATE);
}

// ---- counters ----

static void every_parameter_has_a_counter_of_its_own(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F32, steps_text);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.0625), OT_OK);
    optimize(f); // 4 parameters, each its first
    mlp_sgd(&r, 0.0625f * 4);
    ot__ckpt_find(f->checkpoint, "fc2.bias")->n_updates = 10;
    optimize(f); // 2 + 2 + 2 + 11
    mlp_sgd(&r, 0.0625f * 17);
    assert_tensors(f, r.p, false, 1e-5);
    assert_int_equal(ot__ckpt_find(f->checkpoint, "fc1.bias")->n_updates, 2);
    assert_int_equal(ot__ckpt_find(f->checkpoint, "fc2.bias")->n_updates, 11);
    assert_int_equal(ot_session_step_count(f->session), 2);
}

static void an_update_that_the_graph_skips_changes_nothing(void **state)
{
    fixture *f = *state;
    ot_update_info info;
    mlp_reference r;

    make(f, OT_F32, signal_text);
    open_session(f);
    mlp_reference_init(&r);
    (void)train(f, 0);
    (void)mlp_step(&r, 0, ROWS);
    assert_int_equal(ot_session_set_learning_rate(f->session, 2), OT_OK);
    info = update(f, 1);
    assert_int_equal(info.applied, 0);
    assert_int_equal(info.finite, 0);
    assert_near(info.norm, 2, 0);
    assert_int_equal(ot_session_step_count(f->session), 0);
    assert_int_equal(ot__ckpt_find(f->checkpoint, "fc1.bias")->n_updates, 0);
    assert_tensors(f, r.p, false, 1e-7);
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.5), OT_OK);
    info = update(f, 1);
    assert_int_equal(info.applied, 1);
    assert_int_equal(info.finite, 1);
    assert_near(info.norm, 0.5, 0);
    assert_int_equal(ot_session_step_count(f->session), 1);
    assert_int_equal(ot__ckpt_find(f->checkpoint, "fc1.bias")->n_updates, 1);
    mlp_sgd(&r, 0.5f);
    assert_tensors(f, r.p, false, 1e-5);
}

static void a_norm_that_no_node_computes_is_no_number(void **state)
{
    fixture *f = *state;
    ot_update_info info;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    (void)train(f, 0);
    info = update(f, 1);
    assert_int_equal(info.applied, 1);
    assert_int_equal(info.finite, 1);
    assert_true(isnan(info.norm));
}

// ---- names ----

static void assert_no_optimizer(fixture *f, const char *text, const char *message)
{
    ot_model *model = mlp_model(text, "float");

    assert_int_equal(ot_session_set_optimizer(f->session, model), OT_ERR_INVALID);
    assert_message(message);
    ot_model_destroy(model);
}

static void a_rule_of_another_order_of_parameters_is_refused(void **state)
{
    fixture *f = *state;
    mlp_reference r;

    make(f, OT_F32, named_text);
    open_session(f);
    assert_no_optimizer(f, swapped_text,
                        "is 'fc1.bias', expected 'fc1.weight', in the order of the training model");
    assert_no_optimizer(f, short_text, "names 3 parameters, 4 train");
    accumulate(f, &r); // with the rule that it had
    assert_int_equal(ot_session_set_learning_rate(f->session, 0.25), OT_OK);
    assert_int_equal(update(f, 2).applied, 1);
    mlp_sgd(&r, 0.25f);
    assert_tensors(f, r.p, false, 1e-5);
}

// ---- a trainer's session ----

static void a_session_of_a_trainer_makes_no_steps_of_its_own(void **state)
{
    fixture *f = *state;
    const ot_tensor *inputs[2];
    float gradients[N_ELEMENTS] = {0};
    bool has_run;

    make(f, OT_F32, mlp_adamw_text);
    open_session(f);
    batch(f, 0, ROWS);
    inputs[0] = f->inputs[0];
    inputs[1] = f->inputs[1];
    assert_int_equal(
        ot__session_step(f->session, OT_OK, OT_MODE_TRAIN, inputs, 2, NULL, 0, &has_run), OT_OK);
    ot__session_set_trainer(f->session, true);
    assert_int_equal(ot_session_train_step(f->session, inputs, 2, NULL, 0), OT_ERR_STATE);
    assert_message("the session belongs to a trainer, which makes its steps");
    assert_int_equal(ot_session_update(f->session, 1, NULL), OT_ERR_STATE);
    assert_int_equal(ot_session_optimizer_step(f->session), OT_ERR_STATE);
    assert_int_equal(ot_session_scale_gradients(f->session, 0.5), OT_ERR_STATE);
    assert_int_equal(ot_session_set_gradients(f->session, gradients, N_ELEMENTS), OT_ERR_STATE);
    assert_int_equal(ot_session_set_optimizer(f->session, NULL), OT_ERR_STATE);
    ot_session_reset_gradients(f->session); // does nothing: the next step adds
    assert_int_equal(
        ot__session_step(f->session, OT_OK, OT_MODE_TRAIN, inputs, 2, NULL, 0, &has_run), OT_OK);
    assert_int_equal(ot_session_eval_step(f->session, inputs, 2, NULL, 0), OT_OK);
    assert_int_equal(ot__session_update(f->session, OT_OK, 2, NULL), OT_OK);
    assert_int_equal(ot_session_step_count(f->session), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_update_is_by_the_mean_of_the_micro_batches),
        TEST(gradients_that_two_nodes_read_are_divided_before),
        TEST(what_is_clipped_is_the_mean),
        TEST(the_norm_that_is_not_clipped_is_that_of_the_mean),
        TEST(a_graph_that_divides_leaves_the_sums_as_they_are),
        TEST(an_update_of_no_micro_batches_is_refused),
        TEST(every_group_has_its_rate),
        TEST(rates_of_groups_need_an_optimizer),
        TEST(every_parameter_has_a_counter_of_its_own),
        TEST(an_update_that_the_graph_skips_changes_nothing),
        TEST(a_norm_that_no_node_computes_is_no_number),
        TEST(a_rule_of_another_order_of_parameters_is_refused),
        TEST(a_session_of_a_trainer_makes_no_steps_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
