// SPDX-License-Identifier: Apache-2.0
// States by names: what is in them, which are refused at which level and with which words, and that
// a refused one changes nothing.
#include "dropout_fixture.h"
#include "unit/base/temporary_folder.h"

static ot_trainer *trained(const char *rule, int64_t n_calls)
{
    ot_trainer *trainer = dropout_trainer(rule, 3);

    for (int64_t i = 0; i < n_calls; i++)
        dropout_step(trainer, i, 1);
    return trainer;
}

// ---- what is in it ----

static void assert_names(ot_dict *dict, const char *const *names, int n)
{
    ot_dict_kind kind;

    assert_int_equal(ot_dict_count(dict), n);
    for (int i = 0; i < n; i++)
        need(ot_dict_kind_of(dict, names[i], &kind));
}
#define ASSERT_NAMES(dict, ...)                                                                    \
    assert_names(dict, (const char *const[]){__VA_ARGS__},                                         \
                 (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static int64_t int_in(ot_dict *dict, const char *name)
{
    int64_t value;

    need(ot_dict_get_int(dict, name, &value));
    return value;
}

static const ot_tensor *tensor_of_dict(ot_dict *dict, const char *name)
{
    const ot_tensor *tensor;

    need(ot_dict_get_tensor(dict, name, &tensor));
    return tensor;
}

static void sections_and_their_names_are_those_of_the_reference_and_one_more(void **state)
{
    ot_trainer *trainer = trained("LambOptimizer", 7);
    ot_dict *all = state_of(trainer, OT_STATE_ALL), *options;
    const char *name;
    int mixed;

    (void)state;
    ASSERT_NAMES(all, "model", "optimizer", "trainer_options", "train_step_info", "onnxtrain");
    ASSERT_NAMES(section(all, "model"), "full_precision");
    ASSERT_NAMES(section(section(all, "model"), "full_precision"), "w1", "b1", "scale", "bias",
                 "mean", "var", "w2", "factor", "power", "ratio");
    ASSERT_NAMES(section(all, "optimizer"), "w1", "b1", "scale", "bias", "w2",
                 "shared_optimizer_state");
    options = section(all, "trainer_options");
    ASSERT_NAMES(options, "mixed_precision", "zero_stage", "world_rank", "world_size",
                 "optimizer_name", "data_parallel_size", "horizontal_parallel_size");
    need(ot_dict_get_bool(options, "mixed_precision", &mixed));
    need(ot_dict_get_string(options, "optimizer_name", &name));
    assert_int_equal(mixed, 0);
    assert_string_equal(name, "LambOptimizer");
    assert_int_equal(int_in(options, "world_size"), 1);
    assert_int_equal(int_in(section(all, "train_step_info"), "step"), 7);
    assert_int_equal(int_in(section(all, "train_step_info"), "optimization_step"), 2);
    assert_int_equal(int_in(section(all, "onnxtrain"), "accumulated"), 1);
    ASSERT_NAMES(section(section(all, "onnxtrain"), "gradients"), "w1", "b1", "scale", "bias",
                 "w2");
    ot_dict_destroy(all);
    ot_trainer_destroy(trainer);
}

// Counters are one more than the updates that were made.
static void assert_count(ot_dict *dict, const char *name, int64_t expected)
{
    const ot_tensor *count = tensor_of_dict(dict, name);
    const ot_shape *shape = ot_tensor_shape(count);

    assert_int_equal(ot_tensor_dtype(count), OT_I64);
    assert_int_equal(shape->ndim, 1);
    assert_int_equal(shape->dim[0], 1);
    assert_int_equal(*(const int64_t *)ot_tensor_data_const(count), expected);
}

static void moments_have_the_shape_of_their_weight_and_counters_say_the_next_update(void **state)
{
    ot_trainer *trainer = trained("LambOptimizer", 7);
    ot_dict *all = state_of(trainer, OT_STATE_OPTIMIZER),
            *w1 = section(section(all, "optimizer"), "w1");
    const ot_shape *shape;

    (void)state;
    ASSERT_NAMES(w1, "Moment_1", "Moment_2");
    shape = ot_tensor_shape(tensor_of_dict(w1, "Moment_2"));
    assert_int_equal(ot_tensor_dtype(tensor_of_dict(w1, "Moment_2")), OT_F32);
    assert_int_equal(shape->dim[0] * 100 + shape->dim[1], 304);
    assert_count(section(section(all, "optimizer"), "shared_optimizer_state"), "Step", 3);
    ot_dict_destroy(all);
    ot_trainer_destroy(trainer);
}

// The three optimizers of the reference, as it writes them.
static void adam_counts_each_weight_lamb_all_of_them_and_sgd_keeps_nothing(void **state)
{
    static const char *const rules[] = {"AdamOptimizer", "LambOptimizer", "SGDOptimizer"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        ot_trainer *trainer;
        ot_dict *all, *optimizer;

        trainer = i < 2 ? trained(rules[i], 3) : linear_trainer(NULL);
        all = state_of(trainer, OT_STATE_OPTIMIZER);
        optimizer = section(all, "optimizer");
        if (i == 0) {
            ASSERT_NAMES(optimizer, "w1", "b1", "scale", "bias", "w2");
            ASSERT_NAMES(section(optimizer, "b1"), "Moment_1", "Moment_2", "Update_Count");
            assert_count(section(optimizer, "b1"), "Update_Count", 2);
        } else if (i == 1) {
            ASSERT_NAMES(optimizer, "w1", "b1", "scale", "bias", "w2", "shared_optimizer_state");
            ASSERT_NAMES(section(optimizer, "b1"), "Moment_1", "Moment_2");
            assert_count(section(optimizer, "shared_optimizer_state"), "Step", 2);
        } else {
            assert_int_equal(ot_dict_count(optimizer), 0);
        }
        ot_dict_destroy(all);
        ot_trainer_destroy(trainer);
    }
}

static void sections_are_given_as_asked_for(void **state)
{
    ot_trainer *trainer = trained("LambOptimizer", 1);
    ot_dict *some = state_of(trainer, OT_STATE_MODEL | OT_STATE_STEPS), *none;

    (void)state;
    ASSERT_NAMES(some, "model", "train_step_info");
    assert_int_equal(ot_trainer_get_state(trainer, 128, &none), OT_ERR_INVALID);
    assert_null(none);
    ot_dict_destroy(some);
    ot_trainer_destroy(trainer);
}

static void a_view_shows_the_parameters_themselves_a_copy_stays(void **state)
{
    ot_trainer *trainer = trained("LambOptimizer", 2);
    ot_dict *copy = state_of(trainer, OT_STATE_MODEL);
    ot_dict *view = state_of(trainer, OT_STATE_MODEL | OT_STATE_VIEW);
    const ot_tensor *copied =
        tensor_of_dict(section(section(copy, "model"), "full_precision"), "b1");
    const ot_tensor *shown =
        tensor_of_dict(section(section(view, "model"), "full_precision"), "b1");
    const float before = *(const float *)ot_tensor_data_const(copied);

    (void)state;
    assert_ptr_not_equal(ot_tensor_data_const(copied), ot_tensor_data_const(shown));
    dropout_step(trainer, 3, 1); // a bias has one layout
    assert_true(*(const float *)ot_tensor_data_const(copied) == before);
    assert_true(*(const float *)ot_tensor_data_const(shown) != before);
    ot_dict_destroy(copy);
    ot_dict_destroy(view);
    ot_trainer_destroy(trainer);
}

// ---- strictness ----

typedef struct change {
    const char *what;
    const char *path[4]; // of the dict that changes
    const char *removed, *added;
    const char *says[2];
} change;

static const change changes[] = {
    {"no precision group",
     {"model"},
     "full_precision",
     NULL,
     {"Missing keys: 'full_precision'", "state_dict[model]"}},
    {"another group", {"model"}, NULL, "half", {"Unexpected keys: 'half'", "state_dict[model]"}},
    {"no weight",
     {"model", "full_precision"},
     "w2",
     NULL,
     {"Missing keys: 'w2'", "state_dict[model][full_precision]"}},
    {"one more weight",
     {"model", "full_precision"},
     NULL,
     "w3",
     {"Unexpected keys: 'w3'", "state_dict[model][full_precision]"}},
    {"no moments", {"optimizer"}, "b1", NULL, {"Missing keys: 'b1'", "state_dict[optimizer]"}},
    {"moments of another",
     {"optimizer"},
     NULL,
     "w3",
     {"Unexpected keys: 'w3'", "state_dict[optimizer]"}},
    {"one moment less",
     {"optimizer", "b1"},
     "Moment_2",
     NULL,
     {"Missing keys: 'Moment_2'", "state_dict[optimizer][b1]"}},
    {"one moment more",
     {"optimizer", "b1"},
     NULL,
     "Moment_3",
     {"Unexpected keys: 'Moment_3'", "state_dict[optimizer][b1]"}},
    {"no counter",
     {"optimizer", "shared_optimizer_state"},
     "Step",
     NULL,
     {"Missing keys: 'Step'", "state_dict[optimizer][shared_optimizer_state]"}},
};

static ot_dict *dict_at(ot_dict *dict, const char *const *path)
{
    for (int i = 0; i < 4 && path[i] != NULL; i++)
        dict = section(dict, path[i]);
    return dict;
}

static void apply(ot_dict *state, const change *c)
{
    ot_dict *at = dict_at(state, c->path), *added;

    if (c->removed != NULL)
        need(ot_dict_remove(at, c->removed));
    if (c->added != NULL && c->path[1] != NULL) {
        float zeros[N_HIDDEN] = {0};
        ot_tensor *tensor = tensor_of(zeros, OT_SHAPE(N_HIDDEN));

        need(ot_dict_set_tensor(at, c->added, tensor));
        ot_tensor_destroy(tensor);
    } else if (c->added != NULL) {
        need(ot_dict_set_dict(at, c->added, &added));
    }
}

static void refuse_state(ot_trainer *trainer, const ot_dict *state, ot_strictness strictness,
                         ot_status expected, const char *const *says, int n_says)
{
    const uint64_t hash = hash_of(trainer);

    assert_int_equal(ot_trainer_set_state(trainer, state, strictness), expected);
    for (int i = 0; i < n_says; i++)
        if (strstr(ot_error_message(), says[i]) == NULL)
            fail_msg("'%s' does not say '%s'", ot_error_message(), says[i]);
    assert_true(hash_of(trainer) == hash);
}

static void names_are_compared_on_four_levels_unless_a_subset_is_asked_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(changes); i++) {
        ot_trainer *from = trained("LambOptimizer", 6), *to = trained("LambOptimizer", 1);
        ot_dict *all = state_of(from, OT_STATE_ALL);

        apply(all, &changes[i]);
        refuse_state(to, all, OT_STRICTNESS_ALL, OT_ERR_INVALID, changes[i].says, 2);
        need(ot_trainer_set_state(to, all, OT_STRICTNESS_SUBSET));
        assert_int_equal(info_of(to).step, 6);
        ot_dict_destroy(all);
        ot_trainer_destroy(from);
        ot_trainer_destroy(to);
    }
}

static void all_missing_names_are_listed(void **state)
{
    static const char *const says[] = {"'b1'", "'w2'"};
    ot_trainer *trainer = trained("LambOptimizer", 1);
    ot_dict *all = state_of(trainer, OT_STATE_ALL),
            *full = section(section(all, "model"), "full_precision");

    (void)state;
    need(ot_dict_remove(full, "b1"));
    need(ot_dict_remove(full, "w2"));
    refuse_state(trainer, all, OT_STRICTNESS_ALL, OT_ERR_INVALID, says, 2);
    ot_dict_destroy(all);
    ot_trainer_destroy(trainer);
}

// ---- parts ----

static char warned[512];

static void note(void *context, ot_log_level level, const char *line)
{
    (void)context;
    if (level == OT_LOG_WARNING)
        snprintf(warned + strlen(warned), sizeof warned - strlen(warned), "%s\n", line);
}

static uint64_t hash_of_section(ot_trainer *trainer, unsigned which)
{
    ot_dict *state = state_of(trainer, which);
    const uint64_t hash = mix_dict(1, state);

    ot_dict_destroy(state);
    return hash;
}

static void a_section_that_is_missing_warns_and_its_part_stays(void **state)
{
    static const struct {
        unsigned given, kept;
        const char *warning;
    } cases[] = {
        {OT_STATE_OPTIMIZER | OT_STATE_STEPS, OT_STATE_MODEL, "'model'"},
        {OT_STATE_MODEL | OT_STATE_STEPS, OT_STATE_OPTIMIZER, "'optimizer'"},
        {OT_STATE_MODEL | OT_STATE_OPTIMIZER, OT_STATE_STEPS, "'train_step_info'"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_trainer *from = trained("LambOptimizer", 6), *to = trained("LambOptimizer", 3);
        ot_dict *some = state_of(from, cases[i].given);
        const uint64_t kept = hash_of_section(to, cases[i].kept);

        warned[0] = '\0';
        ot_set_log(note, NULL);
        need(ot_trainer_set_state(to, some, OT_STRICTNESS_ALL));
        ot_set_log(NULL, NULL);
        assert_non_null(strstr(warned, cases[i].warning));
        assert_true(hash_of_section(to, cases[i].kept) == kept);
        assert_true(hash_of_section(to, cases[i].given) == hash_of_section(from, cases[i].given));
        ot_dict_destroy(some);
        ot_trainer_destroy(from);
        ot_trainer_destroy(to);
    }
}

static void a_subset_takes_what_is_given_and_keeps_the_rest(void **state)
{
    ot_trainer *from = trained("LambOptimizer", 6), *to = trained("LambOptimizer", 3);
    ot_dict *given, *model, *full, *before = state_of(to, OT_STATE_MODEL), *after;
    ot_dict *whole = state_of(from, OT_STATE_MODEL);

    (void)state;
    need(ot_dict_create(&given));
    need(ot_dict_set_dict(given, "model", &model));
    need(ot_dict_set_dict(model, "full_precision", &full));
    need(ot_dict_set_tensor(
        full, "b1", tensor_of_dict(section(section(whole, "model"), "full_precision"), "b1")));
    need(ot_trainer_set_state(to, given, OT_STRICTNESS_SUBSET));
    after = state_of(to, OT_STATE_MODEL);
    need(ot_dict_set_tensor(section(section(before, "model"), "full_precision"), "b1",
                            tensor_of_dict(full, "b1")));
    assert_true(mix_dict(1, before) == mix_dict(1, after));
    ot_dict_destroy(given);
    ot_dict_destroy(before);
    ot_dict_destroy(after);
    ot_dict_destroy(whole);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

// As the reference writes it: at an update, since it carries no gradients.
static void a_state_without_our_section_goes_on_from_an_update(void **state)
{
    (void)state;
    for (int i = 0; i < ot_optimizer_count(); i++) {
        ot_trainer *from = trained(ot_optimizer_name(i), 6);
        ot_trainer *to = trained(ot_optimizer_name(i), 1);
        ot_dict *given = state_of(from, OT_STATE_ALL & ~(unsigned)OT_STATE_OWN);
        const unsigned parts = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_STEPS;

        need(ot_trainer_set_state(to, given, OT_STRICTNESS_ALL));
        for (int64_t call = 6; call < 9; call++) {
            assert_true(dropout_step(from, call, 1) == dropout_step(to, call, 1));
            assert_true(hash_of_section(from, parts) == hash_of_section(to, parts));
        }
        ot_dict_destroy(given);
        ot_trainer_destroy(from);
        ot_trainer_destroy(to);
    }
}

static void gradients_of_a_part_are_refused_or_dropped_with_a_warning(void **state)
{
    static const char *const says[] = {"'w2'", "2 micro-batches"};
    ot_trainer *from = trained("LambOptimizer", 5), *to = trained("LambOptimizer", 1);
    ot_dict *all = state_of(from, OT_STATE_ALL);

    (void)state;
    need(ot_dict_remove(section(section(all, "onnxtrain"), "gradients"), "w2"));
    refuse_state(to, all, OT_STRICTNESS_ALL, OT_ERR_INVALID, says, 2);
    warned[0] = '\0';
    ot_set_log(note, NULL);
    need(ot_trainer_set_state(to, all, OT_STRICTNESS_SUBSET));
    ot_set_log(NULL, NULL);
    assert_non_null(strstr(warned, "dropped"));
    ot_dict_destroy(all);
    all = state_of(to, OT_STATE_OWN);
    assert_int_equal(int_in(section(all, "onnxtrain"), "accumulated"), 0);
    ot_dict_destroy(all);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

// ---- what does not fit ----

static void set_wrong(ot_dict *dict, const char *name, ot_dtype dtype, const ot_shape *shape)
{
    ot_tensor *tensor;

    need(ot_tensor_create(dtype, shape, &tensor));
    need(ot_dict_take_tensor(dict, name, tensor));
}

static void types_and_shapes_are_checked_with_both_in_the_message(void **state)
{
    static const struct {
        const char *path[4], *name;
        ot_dtype dtype;
        ot_shape shape;
        const char *says[3];
    } cases[] = {
        {{"model", "full_precision"}, "w1", OT_F32, {2, {4, 3}}, {"'w1'", "f32[4,3]", "f32[3,4]"}},
        {{"model", "full_precision"}, "w2", OT_F64, {1, {4}}, {"'w2'", "f64[4]", "f32[4]"}},
        {{"optimizer", "b1"},
         "Moment_1",
         OT_F32,
         {1, {5}},
         {"'Moment_1' of 'b1'", "f32[5]", "f32[4]"}},
        {{"optimizer", "shared_optimizer_state"},
         "Step",
         OT_I32,
         {1, {1}},
         {"'Step'", "i32[1]", "i64[1]"}},
        {{"optimizer", "shared_optimizer_state"},
         "Step",
         OT_I64,
         {1, {1}},
         {"Step", "is 0", "at least 1"}},
        {{"onnxtrain", "gradients"}, "b1", OT_F32, {1, {3}}, {"gradient 'b1'", "f32[3]", "f32[4]"}},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_trainer *from = trained("LambOptimizer", 5), *to = trained("LambOptimizer", 1);
        ot_dict *all = state_of(from, OT_STATE_ALL);

        set_wrong(dict_at(all, cases[i].path), cases[i].name, cases[i].dtype, &cases[i].shape);
        refuse_state(to, all, OT_STRICTNESS_ALL, OT_ERR_INVALID, cases[i].says, 3);
        refuse_state(to, all, OT_STRICTNESS_SUBSET, OT_ERR_INVALID, cases[i].says, 3);
        ot_dict_destroy(all);
        ot_trainer_destroy(from);
        ot_trainer_destroy(to);
    }
}

static void numbers_that_count_nothing_are_refused(void **state)
{
    static const struct {
        const char *section, *name;
        int64_t value;
    } cases[] = {
        {"train_step_info", "step", -1},     {"train_step_info", "optimization_step", -2},
        {"onnxtrain", "accumulated", -1},    {"onnxtrain", "phase", -1},
        {"onnxtrain", "optimizer_step", -3},
    };
    ot_trainer *trainer = trained("LambOptimizer", 5);

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_dict *all = state_of(trainer, OT_STATE_ALL);

        need(ot_dict_set_int(section(all, cases[i].section), cases[i].name, cases[i].value));
        refuse_state(trainer, all, OT_STRICTNESS_SUBSET, OT_ERR_INVALID, &cases[i].name, 1);
        ot_dict_destroy(all);
    }
    ot_trainer_destroy(trainer);
}

static void moments_of_another_optimizer_are_refused_with_both_names(void **state)
{
    static const char *const says[] = {"LambOptimizer", "SGDOptimizer"};
    ot_trainer *from = trained("SGDOptimizer", 5), *to = trained("LambOptimizer", 1);
    ot_dict *all = state_of(from, OT_STATE_ALL);

    (void)state;
    refuse_state(to, all, OT_STRICTNESS_SUBSET, OT_ERR_STATE, says, 2);
    need(ot_dict_remove(all, "optimizer")); // what is left is taken
    need(ot_trainer_set_state(to, all, OT_STRICTNESS_SUBSET));
    ot_dict_destroy(all);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
}

static void a_strictness_that_a_trainer_does_not_know_is_refused(void **state)
{
    static const char *const says[] = {"strictness 7"};
    ot_trainer *trainer = trained("LambOptimizer", 1);
    ot_dict *all = state_of(trainer, OT_STATE_ALL);

    (void)state;
    refuse_state(trainer, all, (ot_strictness)7, OT_ERR_INVALID, says, 1);
    ot_dict_destroy(all);
    ot_trainer_destroy(trainer);
}

// ---- what the program has said ----

static void schedule_rate_and_seed_of_the_program_stay(void **state)
{
    ot_optimizer_options rule = dropout_rule("LambOptimizer");
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_model *model = dropout_model();
    ot_trainer *from = trained("LambOptimizer", 6), *to;
    ot_dict *all = state_of(from, OT_STATE_ALL), *after;
    double rate;

    (void)state;
    rule.lr = 0.25;
    options.seed = 99;
    need(ot_dict_remove(section(section(all, "model"), "full_precision"), "factor"));
    need(ot_trainer_create(model, NULL, &rule, &options, &to));
    need(ot_trainer_set_state(to, all, OT_STRICTNESS_SUBSET));
    after = state_of(to, OT_STATE_OWN);
    need(ot_dict_get_float(section(after, "onnxtrain"), "learning_rate", &rate));
    assert_true(rate == 0.25);
    assert_int_equal(int_in(section(after, "onnxtrain"), "seed"), 99);
    ot_dict_destroy(all);
    ot_dict_destroy(after);
    ot_trainer_destroy(from);
    ot_trainer_destroy(to);
    ot_model_destroy(model);
}

// ---- memory ----

typedef struct try_out {
    ot_trainer *trainer;
    ot_dict *given, *got;
    ot_model *model;
    char *text;
    const char *path;
} try_out;

static ot_status get(try_out *t)
{
    return ot_trainer_get_state(t->trainer, OT_STATE_ALL, &t->got);
}

static ot_status set(try_out *t)
{
    return ot_trainer_set_state(t->trainer, t->given, OT_STRICTNESS_ALL);
}

static ot_status save(try_out *t)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;

    options.user_dict = "text";
    return ot_trainer_save(t->trainer, t->path, &options);
}

static ot_status load(try_out *t)
{
    return ot_trainer_load(t->trainer, &t->path, 1, OT_STRICTNESS_ALL, &t->text);
}

static ot_status export(try_out *t)
{
    return ot_trainer_export(t->trainer, &t->model);
}

static ot_status save_as_onnx(try_out *t)
{
    return ot_trainer_save_as_onnx(t->trainer, t->path);
}

// Fails at each allocation until it succeeds, and changes nothing until then.
static void until_it_works(try_out *t, ot_status (*act)(try_out *))
{
    const uint64_t hash = hash_of(t->trainer);
    int n_failures = 0;

    for (int64_t n = 0; n < 100000; n++) {
        ot_status st;

        ot__alloc_fail_after(n);
        st = act(t);
        ot__alloc_fail_after(-1);
        if (st == OT_OK) {
            assert_true(n_failures > 3);
            return;
        }
        if (st != OT_ERR_NO_MEMORY)
            fail_msg("%s: %s", ot_status_name(st), ot_error_message());
        assert_true(hash_of(t->trainer) == hash);
        n_failures++;
    }
    fail_msg("it never works");
}

static void without_memory_nothing_changes(void **state)
{
    ot_trainer *from = trained("LambOptimizer", 5);
    try_out t = {.trainer = trained("LambOptimizer", 2), .given = state_of(from, OT_STATE_ALL)};
    const uint64_t expected = hash_of(from);

    t.path = in_folder(state, "checkpoint");
    until_it_works(&t, get);
    until_it_works(&t, save);
    until_it_works(&t, export);
    until_it_works(&t, set);
    assert_true(hash_of(t.trainer) == expected);
    until_it_works(&t, load);
    assert_string_equal(t.text, "text");
    t.path = in_folder(state, "model.onnx");
    until_it_works(&t, save_as_onnx);
    ot_string_free(t.text);
    ot_dict_destroy(t.given);
    ot_dict_destroy(t.got);
    ot_model_destroy(t.model);
    ot_trainer_destroy(t.trainer);
    ot_trainer_destroy(from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_and_their_names_are_those_of_the_reference_and_one_more),
        cmocka_unit_test(moments_have_the_shape_of_their_weight_and_counters_say_the_next_update),
        cmocka_unit_test(adam_counts_each_weight_lamb_all_of_them_and_sgd_keeps_nothing),
        cmocka_unit_test(sections_are_given_as_asked_for),
        cmocka_unit_test(a_view_shows_the_parameters_themselves_a_copy_stays),
        cmocka_unit_test(names_are_compared_on_four_levels_unless_a_subset_is_asked_for),
        cmocka_unit_test(all_missing_names_are_listed),
        cmocka_unit_test(a_section_that_is_missing_warns_and_its_part_stays),
        cmocka_unit_test(a_subset_takes_what_is_given_and_keeps_the_rest),
        cmocka_unit_test(a_state_without_our_section_goes_on_from_an_update),
        cmocka_unit_test(gradients_of_a_part_are_refused_or_dropped_with_a_warning),
        cmocka_unit_test(types_and_shapes_are_checked_with_both_in_the_message),
        cmocka_unit_test(numbers_that_count_nothing_are_refused),
        cmocka_unit_test(moments_of_another_optimizer_are_refused_with_both_names),
        cmocka_unit_test(a_strictness_that_a_trainer_does_not_know_is_refused),
        cmocka_unit_test(schedule_rate_and_seed_of_the_program_stay),
        TEST_IN_FOLDER(without_memory_nothing_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
