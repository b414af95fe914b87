// SPDX-License-Identifier: Apache-2.0
// Steps in few bits: which call updates, by which rate and scale, and what is skipped, against a
// model of it in a few lines; scalers of the program; scales in states and files.
#include <math.h>

#include "dropout_fixture.h"
#include "unit/base/temporary_folder.h"

enum { N_CALLS = 44, BAD_EVERY = 9 };

// ---- trainers ----

static ot_loss_scaler quick_scaler(void)
{
    ot_loss_scaler s = OT_LOSS_SCALER_INIT;

    s.loss_scale = s.initial_loss_scale = 16;
    s.up_scale_window = 3;
    s.min_loss_scale = 4;
    s.max_loss_scale = 64;
    return s;
}

static const ot_schedule falling = {
    sizeof(ot_schedule), OT_SCHEDULE_LINEAR, 0.0625, 0, 1000, 1, 0.1, 1.0, 0.0, 0};

static ot_trainer *trainer_of(const ot_trainer_options *options)
{
    ot_optimizer_options adam = OT_OPTIMIZER_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_trainer *trainer;

    adam.name = "AdamOptimizer";
    need(ot_trainer_create(model, &linear_description, &adam, options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

// A train step whose loss is infinite where it is a bad one.
static ot_status step_of(ot_trainer *trainer, int64_t seed, bool is_bad)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    const ot_tensor *inputs[2];
    ot_status st;

    batch_of(seed, x, t);
    if (is_bad)
        t[1] = INFINITY;
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    st = ot_trainer_train_step(trainer, inputs, 2, NULL, 0);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
    return st;
}

static void eval_of(ot_trainer *trainer, int64_t seed)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    const ot_tensor *inputs[2];

    batch_of(seed, x, t);
    inputs[0] = tensor_of(t, OT_SHAPE(N_ROWS));
    inputs[1] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    need(ot_trainer_eval_step(trainer, inputs, 2, NULL, 0));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
}

static uint64_t hash_of_sections(ot_trainer *trainer, unsigned sections)
{
    ot_dict *state = state_of(trainer, sections);
    const uint64_t hash = mix_dict(1, state);

    ot_dict_destroy(state);
    return hash;
}

// ---- the trace ----

// What is said of a train step, by hand.
typedef struct model_of_steps {
    int64_t step, optimization_step, phase, n_stable;
    double lr, scale, step_scale;
    bool all_finite, is_bad, checks, scales;
} model_of_steps;

static void model_update(model_of_steps *m)
{
    m->all_finite = !(m->is_bad && m->checks);
    m->optimization_step += m->all_finite;
    if (m->scales && !m->all_finite) {
        m->scale = fmax(4, m->scale / 2);
        m->n_stable = 0;
    } else if (m->scales && ++m->n_stable == 3) {
        m->scale = fmin(64, m->scale * 2);
        m->n_stable = 0;
    }
    m->phase = 0;
    m->is_bad = false;
}

static void model_step(model_of_steps *m, int64_t accumulation, bool is_bad)
{
    m->lr = 0.0625 * (1 - (double)m->optimization_step / 1000);
    m->step_scale = m->scale;
    m->step++;
    m->phase++;
    m->is_bad = m->is_bad || is_bad;
    if (m->phase == accumulation)
        model_update(m);
}

typedef struct trace_case {
    ot_precision precision;
    int skips; // f32: asked for
    int64_t accumulation;
    int fetches, clips, evaluates, flushes;
} trace_case;

static void compare_step(const trace_case *c, const model_of_steps *m, const ot_trainer *trainer)
{
    const ot_step_info info = info_of(trainer);

    if (info.step != m->step || info.optimization_step != m->optimization_step ||
        fabs(info.learning_rate - m->lr) > 1e-9 || info.loss_scale != m->step_scale ||
        (info.all_finite != 0) != m->all_finite)
        fail_msg("precision %d, skips %d, A %d, fetches %d, clips %d: step %d (expected %d), "
                 "optimization step %d (%d), rate %g (%g), scale %g (%g), finite %d (%d)",
                 (int)c->precision, c->skips, (int)c->accumulation, c->fetches, c->clips,
                 (int)info.step, (int)m->step, (int)info.optimization_step,
                 (int)m->optimization_step, info.learning_rate, m->lr, info.loss_scale,
                 m->step_scale, info.all_finite, m->all_finite);
}

static void trace(const trace_case *c)
{
    static const char *const fetch[] = {"loss"};
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();
    model_of_steps m = {.all_finite = true,
                        .scales = c->precision == OT_PRECISION_F16,
                        .checks = c->skips || c->precision != OT_PRECISION_F32};
    ot_trainer *trainer;

    options.precision = c->precision;
    options.loss_scaler = m.scales ? &scaler : NULL;
    options.skip_non_finite = c->skips;
    options.gradient_accumulation_steps = c->accumulation;
    options.grad_norm_clip = c->clips;
    options.lr_schedule = &falling;
    m.scale = m.scales ? 16 : 1;
    trainer = trainer_of(&options);
    if (c->fetches)
        need(ot_trainer_set_fetches(trainer, fetch, 1));
    for (int64_t k = 0; k < N_CALLS; k++) {
        const bool is_bad = k % BAD_EVERY == BAD_EVERY - 1 && k < N_CALLS * 2 / 3;

        if (c->evaluates)
            eval_of(trainer, k);
        need(step_of(trainer, k, is_bad));
        model_step(&m, c->accumulation, is_bad);
        if (c->flushes && k % 5 == 4) {
            need(ot_trainer_flush(trainer));
            if (m.phase > 0)
                model_update(&m);
        }
        compare_step(c, &m, trainer);
    }
    ot_trainer_destroy(trainer);
}

static void every_mode_does_what_the_model_says(void **state)
{
    static const int64_t accumulations[] = {1, 3, 7};

    (void)state;
    for (int precision = -1; precision <= OT_PRECISION_F16; precision++)
        for (size_t a = 0; a < OT_COUNT(accumulations); a++)
            for (int bits = 0; bits < 8; bits++)
                trace(&(trace_case){.precision = (ot_precision)OT_MAX(precision, 0),
                                    .skips = precision < 0,
                                    .accumulation = accumulations[a],
                                    .fetches = bits & 1,
                                    .clips = bits >> 1 & 1,
                                    .evaluates = bits >> 2 & 1,
                                    .flushes = (bits >> 2 ^ bits) & 1});
}

// ---- what computes ----

static void steps_compute_in_what_is_asked_for(void **state)
{
    static const float unit[] = {0, 1.0F / 256, 1.0F / 2048};
    float expected[N_IN + 1], got[N_IN + 1];

    (void)state;
    for (int precision = OT_PRECISION_F32; precision <= OT_PRECISION_F16; precision++) {
        ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
        ot_trainer *trainer;
        bool is_same = true;

        options.precision = (ot_precision)precision;
        trainer = trainer_of(&options);
        for (int k = 0; k < 3; k++)
            need(step_of(trainer, k, false));
        need(ot_session_get_parameters(ot_trainer_session(trainer), OT_PARAMETERS_ALL, got,
                                       N_IN + 1));
        if (precision == OT_PRECISION_F32)
            memcpy(expected, got, sizeof expected);
        for (int i = 0; i <= N_IN; i++) {
            is_same = is_same && got[i] == expected[i];
            assert_float_equal(got[i], expected[i], 4 * unit[precision]);
        }
        assert_int_equal(is_same, precision == OT_PRECISION_F32);
        ot_trainer_destroy(trainer);
    }
}

static void a_session_of_another_precision_is_refused(void **state)
{
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_session_options of_session = OT_SESSION_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_artifacts *artifacts;
    ot_session *session;
    ot_trainer *trainer;

    (void)state;
    end_in_loss(&how, &loss);
    options.precision = OT_PRECISION_BF16;
    need(ot_trainer_generate_artifacts(model, &how, &options, &artifacts));
    need(ot_session_create_from_artifacts(artifacts, NULL, &session));
    assert_int_equal(ot_trainer_create_from_session(session, NULL, &options, &trainer),
                     OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "computes in f32, expected bf16"));
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    need(ot_trainer_generate_artifacts(model, &how, &options, &artifacts));
    of_session.precision = OT_PRECISION_BF16;
    need(ot_session_create_from_artifacts(artifacts, &of_session, &session));
    need(ot_trainer_create_from_session(session, NULL, &options, &trainer));
    ot_trainer_destroy(trainer);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

// ---- skipped updates ----

static void a_skipped_update_leaves_every_bit(void **state)
{
    const unsigned sections = OT_STATE_MODEL | OT_STATE_OPTIMIZER;

    (void)state;
    for (int precision = OT_PRECISION_BF16; precision <= OT_PRECISION_F16; precision++) {
        ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
        ot_trainer *trainer;
        uint64_t before;

        options.precision = (ot_precision)precision;
        options.gradient_accumulation_steps = 2;
        options.average_decay = 0.5;
        trainer = trainer_of(&options);
        for (int k = 0; k < 4; k++)
            need(step_of(trainer, k, false));
        before = hash_of_sections(trainer, sections);
        need(step_of(trainer, 4, true));
        need(step_of(trainer, 5, false));
        assert_int_equal(info_of(trainer).all_finite, 0);
        assert_int_equal(info_of(trainer).optimization_step, 2);
        assert_true(hash_of_sections(trainer, sections) == before);
        assert_true(info_of(trainer).loss_scale == (precision == OT_PRECISION_F16 ? 65536 : 1));
        need(step_of(trainer, 6, false));
        assert_true(info_of(trainer).loss_scale == (precision == OT_PRECISION_F16 ? 32768 : 1));
        need(step_of(trainer, 7, false));
        assert_int_equal(info_of(trainer).all_finite, 1);
        assert_true(hash_of_sections(trainer, sections) != before);
        ot_trainer_destroy(trainer);
    }
}

// ---- scalers of the program ----

static void a_scale_that_is_held_fast_stays(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();
    ot_trainer *trainer;

    (void)state;
    scaler.automatic_update = 0;
    options.mixed_precision = 1;
    options.loss_scaler = &scaler;
    trainer = trainer_of(&options);
    for (int k = 0; k < 12; k++) {
        need(step_of(trainer, k, k == 5));
        assert_true(info_of(trainer).loss_scale == 16);
        assert_int_equal(info_of(trainer).all_finite, k != 5);
    }
    scaler.loss_scale = 8; // by the program
    need(step_of(trainer, 12, false));
    assert_true(info_of(trainer).loss_scale == 8);
    ot_trainer_destroy(trainer);
}

// Two trainers share one; gradients under way keep the scale that they have been made with.
static void a_shared_scaler_changes_between_updates_only(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();
    ot_trainer *one, *other, *alone;
    float got[N_IN + 1], expected[N_IN + 1];

    (void)state;
    options.precision = OT_PRECISION_F16;
    options.gradient_accumulation_steps = 2;
    options.loss_scaler = &scaler;
    one = trainer_of(&options);
    other = trainer_of(&options);
    options.loss_scaler = NULL;
    alone = trainer_of(&options);
    need(step_of(one, 0, false));
    need(step_of(other, 0, true));
    need(step_of(other, 1, false)); // halves it
    assert_true(scaler.loss_scale == 8);
    need(step_of(one, 1, false));
    assert_true(info_of(one).loss_scale == 16);
    need(step_of(alone, 0, false));
    need(step_of(alone, 1, false));
    need(ot_session_get_parameters(ot_trainer_session(one), OT_PARAMETERS_ALL, got, N_IN + 1));
    need(ot_session_get_parameters(ot_trainer_session(alone), OT_PARAMETERS_ALL, expected,
                                   N_IN + 1));
    for (int i = 0; i <= N_IN; i++)
        assert_float_equal(got[i], expected[i], 1e-4);
    need(step_of(one, 2, false));
    assert_true(info_of(one).loss_scale == 8);
    ot_trainer_destroy(one);
    ot_trainer_destroy(other);
    ot_trainer_destroy(alone);
}

typedef struct rule {
    int n_calls, fails;
    double gives;
    ot_step_info seen;
} rule;

static int own_rule(void *context, const ot_step_info *info, double *loss_scale)
{
    rule *r = context;

    r->n_calls++;
    r->seen = *info;
    *loss_scale = r->gives;
    return r->fails;
}

static void a_function_of_the_program_is_asked_once_an_update(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();
    rule r = {.gives = 3};
    ot_trainer *trainer;

    (void)state;
    scaler.update = own_rule;
    scaler.context = &r;
    options.mixed_precision = 1;
    options.loss_scaler = &scaler;
    options.gradient_accumulation_steps = 3;
    trainer = trainer_of(&options);
    for (int k = 0; k < 6; k++)
        need(step_of(trainer, k, k == 4));
    assert_int_equal(r.n_calls, 2);
    assert_int_equal(r.seen.all_finite, 0);
    assert_int_equal(r.seen.step, 6);
    assert_int_equal(r.seen.optimization_step, 1); // of before this update
    assert_true(r.seen.loss_scale == 3);
    assert_true(scaler.loss_scale == 3);
    ot_trainer_destroy(trainer);
}

static void a_function_that_fails_or_gives_nonsense_changes_nothing(void **state)
{
    static const rule bad[] = {{.fails = 1, .gives = 2}, {.gives = 0},     {.gives = -1},
                               {.gives = INFINITY},      {.gives = 1e300}, {.gives = 1e-300},
                               {.gives = (double)NAN}};
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;

    (void)state;
    options.mixed_precision = 1;
    options.gradient_accumulation_steps = 2;
    for (size_t i = 0; i < OT_COUNT(bad); i++) {
        ot_loss_scaler scaler = quick_scaler();
        rule r = {.gives = 32};
        ot_trainer *trainer;
        uint64_t before;

        scaler.update = own_rule;
        scaler.context = &r;
        options.loss_scaler = &scaler;
        trainer = trainer_of(&options);
        need(step_of(trainer, 0, false));
        need(step_of(trainer, 1, false));
        before = hash_of_sections(trainer, OT_STATE_ALL);
        r = bad[i];
        need(step_of(trainer, 2, false));
        assert_int_equal(step_of(trainer, 3, false),
                         bad[i].fails ? OT_ERR_INTERRUPTED : OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "the loss scaler's update function"));
        assert_true(scaler.loss_scale == 32);
        assert_true(hash_of_sections(trainer, OT_STATE_ALL) == before); // the first one is dropped
        r = (rule){.gives = 8};
        need(step_of(trainer, 2, false));
        need(step_of(trainer, 3, false));
        assert_int_equal(info_of(trainer).optimization_step, 2);
        ot_trainer_destroy(trainer);
    }
}

static void a_scale_that_f32_does_not_hold_is_refused(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();
    ot_trainer *trainer;
    uint64_t before;

    (void)state;
    scaler.automatic_update = 0;
    options.mixed_precision = 1;
    options.loss_scaler = &scaler;
    trainer = trainer_of(&options);
    need(step_of(trainer, 0, false));
    before = hash_of_sections(trainer, OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_STEPS);
    scaler.loss_scale = 1e300;
    assert_int_equal(step_of(trainer, 1, false), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "the loss scale is 1e+300"));
    assert_true(hash_of_sections(trainer, OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_STEPS) ==
                before);
    scaler.loss_scale = 16;
    need(step_of(trainer, 1, false));
    ot_trainer_destroy(trainer);
}

// ---- where it does not fit ----

static void assert_refused(const ot_trainer_options *options, const char *message)
{
    ot_model *model = linear_model();
    ot_trainer *trainer;

    assert_int_equal(ot_trainer_create(model, &linear_description, NULL, options, &trainer),
                     OT_ERR_INVALID);
    if (strstr(ot_error_message(), message) == NULL)
        fail_msg("the message is: %s, expected: %s", ot_error_message(), message);
    ot_model_destroy(model);
}

static void scalers_out_of_bounds_are_refused(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_loss_scaler scaler = quick_scaler();

    (void)state;
    options.loss_scaler = &scaler;
    assert_refused(&options, "needs mixed_precision.enabled");
    options.precision = OT_PRECISION_F16;
    scaler.loss_scale = 0;
    assert_refused(&options, "loss_scale is 0, expected a finite number above 0");
    scaler = quick_scaler();
    scaler.min_loss_scale = 0;
    assert_refused(&options, "min_loss_scale is 0, expected a finite number above 0");
    scaler.min_loss_scale = (double)NAN;
    assert_refused(&options, "min_loss_scale is nan");
    scaler.min_loss_scale = 128;
    assert_refused(&options,
                   "max_loss_scale is 64, expected at least min_loss_scale, which is 128");
    scaler = quick_scaler();
    scaler.max_loss_scale = (double)NAN;
    assert_refused(&options, "max_loss_scale is nan");
}

static void artifacts_that_lack_what_it_takes_are_refused(void **state)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_model *model = linear_model();
    ot_artifacts *artifacts;
    ot_trainer *trainer;

    (void)state;
    end_in_loss(&how, &loss);
    need(ot_artifacts_generate(model, &how, &artifacts));
    options.precision = OT_PRECISION_F16;
    assert_int_equal(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer),
                     OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "no input 'onnxtrain.loss_scale'"));
    options.precision = OT_PRECISION_BF16;
    assert_int_equal(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer),
                     OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "does not skip updates"));
    ot_artifacts_destroy(artifacts);
    options.precision = OT_PRECISION_F16;
    need(ot_trainer_generate_artifacts(model, &how, &options, &artifacts));
    need(ot_trainer_create_from_artifacts(artifacts, NULL, &options, &trainer));
    ot_trainer_destroy(trainer);
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
}

// ---- states and files ----

static ot_trainer *resumable(ot_precision precision, int64_t accumulation, ot_loss_scaler *scaler,
                             const char *rule_name)
{
    ot_optimizer_options optimizer = dropout_rule(rule_name);
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_trainer *trainer;

    *scaler = quick_scaler();
    options.precision = precision;
    options.loss_scaler = precision == OT_PRECISION_F16 ? scaler : NULL;
    options.gradient_accumulation_steps = accumulation;
    options.lr_schedule = &falling;
    options.n_threads = 1;
    need(ot_trainer_create(model, NULL, &optimizer, &options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

// In the course of which the scale goes up, and down at a bad batch.
static void course_step(ot_trainer *trainer, int64_t k)
{
    float x[N_ROWS * N_IN], t[N_ROWS];
    const ot_tensor *inputs[2];

    batch_of(k, x, t);
    if (k == 4)
        t[0] = INFINITY;
    inputs[0] = tensor_of(x, OT_SHAPE(N_ROWS, N_IN));
    inputs[1] = tensor_of(t, OT_SHAPE(N_ROWS));
    need(ot_trainer_train_step(trainer, inputs, 2, NULL, 0));
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
}

static void carry(ot_trainer *from, ot_trainer *to, const char *path)
{
    ot_dict *own;

    if (path != NULL) {
        need(ot_trainer_save(from, path, NULL));
        need(ot_trainer_load(to, &path, 1, OT_STRICTNESS_ALL, NULL));
        return;
    }
    own = state_of(from, OT_STATE_ALL);
    need(ot_trainer_set_state(to, own, OT_STRICTNESS_ALL));
    ot_dict_destroy(own);
}

static void resume_at(ot_precision precision, int64_t accumulation, const char *rule_name, int at,
                      const uint64_t *expected, int n, const char *path)
{
    ot_loss_scaler of_one, of_other;
    ot_trainer *from = resumable(precision, accumulation, &of_one, rule_name);
    ot_trainer *to = resumable(precision, accumulation, &of_other, rule_name);

    for (int k = 0; k < at; k++)
        course_step(from, k);
    course_step(to, 4);
    carry(from, to, path);
    for (int k = at; k < n; k++) {
        course_step(to, k);
        if (hash_of(to) != expected[k])
            fail_msg("%s, precision %d, A %d: carried over after call %d, call %d differs",
                     rule_name, (int)precision, (int)accumulation, at, k + 1);
    }
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void resume_everywhere(ot_precision precision, int64_t accumulation, const char *rule_name,
                              const char *path)
{
    const int n = (int)(2 * accumulation + 6);
    uint64_t expected[16];
    ot_loss_scaler scaler;
    ot_trainer *trainer = resumable(precision, accumulation, &scaler, rule_name);

    for (int k = 0; k < n; k++) {
        course_step(trainer, k);
        expected[k] = hash_of(trainer);
    }
    ot_trainer_destroy(trainer);
    for (int at = 0; at < n; at++)
        resume_at(precision, accumulation, rule_name, at, expected, n, path);
}

static void resume_every_way(void **state, ot_precision precision)
{
    static const char *const rules[] = {"AdamOptimizer", "LambOptimizer", "SGDOptimizer"};

    for (size_t i = 0; i < OT_COUNT(rules); i++)
        for (int64_t accumulation = 1; accumulation <= 3; accumulation += 2) {
            resume_everywhere(precision, accumulation, rules[i], NULL);
            resume_everywhere(precision, accumulation, rules[i], in_folder(state, "checkpoint"));
        }
}

static void bf16_goes_on_bit_for_bit_at_every_call(void **state)
{
    resume_every_way(state, OT_PRECISION_BF16);
}

static void f16_goes_on_bit_for_bit_at_every_call(void **state)
{
    resume_every_way(state, OT_PRECISION_F16);
}

static void a_state_with_a_bad_scale_changes_nothing(void **state)
{
    static const double bad[] = {0, -1, 1e300, INFINITY};
    ot_loss_scaler scaler;
    ot_trainer *trainer = resumable(OT_PRECISION_F16, 1, &scaler, "AdamOptimizer");
    const uint64_t before = hash_of(trainer);

    (void)state;
    for (size_t i = 0; i < OT_COUNT(bad); i++) {
        ot_dict *other = state_of(trainer, OT_STATE_ALL);

        need(ot_dict_set_float(section(other, "onnxtrain"), "loss_scale", bad[i]));
        assert_int_equal(ot_trainer_set_state(trainer, other, OT_STRICTNESS_ALL), OT_ERR_INVALID);
        assert_non_null(strstr(ot_error_message(), "the loss scale of the state is"));
        assert_true(hash_of(trainer) == before);
        ot_dict_destroy(other);
    }
    ot_trainer_destroy(trainer);
}

// A scale that the program holds fast is the program's; without one in the state it stays.
static void what_the_program_holds_fast_is_not_taken_from_a_state(void **state)
{
    ot_loss_scaler scaler, other_scaler;
    ot_trainer *from = resumable(OT_PRECISION_F16, 1, &scaler, "AdamOptimizer");
    ot_trainer *to = resumable(OT_PRECISION_F16, 1, &other_scaler, "AdamOptimizer");
    ot_dict *own = state_of(from, OT_STATE_ALL);

    (void)state;
    other_scaler.automatic_update = 0;
    other_scaler.loss_scale = 2;
    need(ot_trainer_set_state(to, own, OT_STRICTNESS_ALL));
    assert_true(other_scaler.loss_scale == 2);
    other_scaler.automatic_update = 1;
    need(ot_trainer_set_state(to, own, OT_STRICTNESS_ALL));
    assert_true(other_scaler.loss_scale == 16);
    need(ot_dict_remove(own, "onnxtrain"));
    other_scaler.loss_scale = 4;
    need(ot_trainer_set_state(to, own, OT_STRICTNESS_ALL));
    assert_true(other_scaler.loss_scale == 4);
    ot_dict_destroy(own);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mode_does_what_the_model_says),
        cmocka_unit_test(steps_compute_in_what_is_asked_for),
        cmocka_unit_test(a_session_of_another_precision_is_refused),
        cmocka_unit_test(a_skipped_update_leaves_every_bit),
        cmocka_unit_test(a_scale_that_is_held_fast_stays),
        cmocka_unit_test(a_shared_scaler_changes_between_updates_only),
        cmocka_unit_test(a_function_of_the_program_is_asked_once_an_update),
        cmocka_unit_test(a_function_that_fails_or_gives_nonsense_changes_nothing),
        cmocka_unit_test(a_scale_that_f32_does_not_hold_is_refused),
        cmocka_unit_test(scalers_out_of_bounds_are_refused),
        cmocka_unit_test(artifacts_that_lack_what_it_takes_are_refused),
        cmocka_unit_test_setup_teardown(bf16_goes_on_bit_for_bit_at_every_call,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test_setup_teardown(f16_goes_on_bit_for_bit_at_every_call,
                                        temporary_folder_make, temporary_folder_remove),
        cmocka_unit_test(a_state_with_a_bad_scale_changes_nothing),
        cmocka_unit_test(what_the_program_holds_fast_is_not_taken_from_a_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
