// SPDX-License-Identifier: Apache-2.0
// Whole states that do not fit, given by rank 0, by all or by one of them: nothing is changed, and
// all ranks hear and report the same.
#include "session_shards.h"

typedef struct wrong {
    void (*spoil)(ot_dict *state);
    ot_status status;
    const char *message;
    ot_report_category category; // OT_REPORT_CATEGORIES: the report says nothing
    const char *name;
} wrong;

typedef struct giving {
    scheme how;
    ot_scatter scatter;
    int bad_rank; // below 0: all of them
} giving;

// ---- what is wrong ----

static void put(ot_dict *dict, const char *name, ot_dtype dtype, ot_shape shape)
{
    ot_tensor *t = NULL;

    RANK_MUST(ot_tensor_create(dtype, &shape, &t));
    RANK_MUST(ot_dict_take_tensor(dict, name, t));
}

static ot_dict *slots_of(ot_dict *state, const char *name)
{
    return dict_in(dict_in(dict_in(state, "optim"), "state"), name);
}

static ot_dict *first_group(ot_dict *state)
{
    ot_dict *list = NULL, *group = NULL;

    RANK_MUST(ot_dict_get_list(dict_in(state, "optim"), "param_groups", &list));
    RANK_MUST(ot_dict_get_dict(list, "0", &group));
    return group;
}

static void forget_value(ot_dict *state)
{
    RANK_MUST(ot_dict_remove(dict_in(state, "model"), "fc1.bias"));
}

static void add_value(ot_dict *state)
{
    put(dict_in(state, "model"), "extra", OT_F32, OT_SHAPE(2));
}

static void turn_value(ot_dict *state)
{
    put(dict_in(state, "model"), "fc1.weight", OT_F32, OT_SHAPE(HIDDEN, IN));
}

static void widen_value(ot_dict *state)
{
    put(dict_in(state, "model"), "fc1.bias", OT_F64, OT_SHAPE(HIDDEN));
}

static void give_number_for_value(ot_dict *state)
{
    RANK_MUST(ot_dict_set_int(dict_in(state, "model"), "fc2.bias", 1));
}

static void forget_slot(ot_dict *state)
{
    RANK_MUST(ot_dict_remove(slots_of(state, "fc2.weight"), "exp_avg"));
}

static void add_slot(ot_dict *state)
{
    put(slots_of(state, "fc2.weight"), "max_exp_avg_sq", OT_F32, OT_SHAPE(2));
}

static void shorten_slot(ot_dict *state)
{
    put(slots_of(state, "fc2.bias"), "exp_avg", OT_F32, OT_SHAPE(CLASSES - 1));
}

static void narrow_slot(ot_dict *state)
{
    put(slots_of(state, "fc2.bias"), "exp_avg_sq", OT_F16, OT_SHAPE(CLASSES));
}

static void age_one(ot_dict *state)
{
    RANK_MUST(ot_dict_set_int(slots_of(state, "fc1.bias"), "step", 9));
}

static void add_group(ot_dict *state)
{
    ot_dict *list = NULL, *group = NULL, *params = NULL;

    RANK_MUST(ot_dict_get_list(dict_in(state, "optim"), "param_groups", &list));
    RANK_MUST(ot_dict_set_dict(list, "1", &group));
    RANK_MUST(ot_dict_set_list(group, "params", &params));
    RANK_MUST(ot_dict_set_string(params, "0", "fc1.bias"));
}

static void forget_member(ot_dict *state)
{
    ot_dict *list = NULL;

    RANK_MUST(ot_dict_set_list(first_group(state), "params", &list));
    for (int i = 1; i < N_PARTS; i++) {
        char number[16];

        snprintf(number, sizeof number, "%d", i - 1);
        RANK_MUST(ot_dict_set_string(list, number, mlp_parts[i].name));
    }
}

static void add_empty_group(ot_dict *state)
{
    ot_dict *list = NULL, *group = NULL;

    RANK_MUST(ot_dict_get_list(dict_in(state, "optim"), "param_groups", &list));
    RANK_MUST(ot_dict_set_dict(list, "1", &group));
    RANK_MUST(ot_dict_set_list(group, "params", &list));
}

static void turn_rate(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(first_group(state), "lr", -1));
}

static void give_text_for_number(ot_dict *state)
{
    RANK_MUST(ot_dict_set_string(first_group(state), "eps", "small"));
}

static void turn_own_rate(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(dict_in(state, "train"), "learning_rate", (double)NAN));
}

static void take_name_of_library(ot_dict *state)
{
    ot_dict *properties = NULL;

    RANK_MUST(ot_dict_set_dict(dict_in(state, "train"), "properties", &properties));
    RANK_MUST(ot_dict_set_int(properties, "onnxtrain.seed", 1));
}

static void forget_model(ot_dict *state)
{
    RANK_MUST(ot_dict_remove(state, "model"));
}

static void give_no_parts(ot_dict *state)
{
    RANK_MUST(ot_dict_take_shards(dict_in(state, "model"), "fc1.weight", OT_F32,
                                  &OT_SHAPE(IN, HIDDEN), NULL, NULL, 0));
}

static void give_slot_without_parts(ot_dict *state)
{
    RANK_MUST(ot_dict_take_shards(slots_of(state, "fc1.weight"), "exp_avg", OT_F32,
                                  &OT_SHAPE(IN, HIDDEN), NULL, NULL, 0));
}

static const wrong wrongs[] = {
    {forget_value, OT_ERR_NOT_FOUND, "missing: 'fc1.bias'", OT_REPORT_MISSING, "fc1.bias"},
    {add_value, OT_ERR_INVALID, "unexpected: 'extra'", OT_REPORT_UNEXPECTED, "extra"},
    {turn_value, OT_ERR_INVALID, "f32[4,3], expected f32[3,4]", OT_REPORT_SHAPE, "fc1.weight"},
    {widen_value, OT_ERR_INVALID, "f64[4], expected f32[4]", OT_REPORT_DTYPE, "fc1.bias"},
    {give_number_for_value, OT_ERR_INVALID, "is not a tensor", OT_REPORT_DTYPE, "fc2.bias"},
    {forget_slot, OT_ERR_NOT_FOUND, "missing: 'state.", OT_REPORT_MISSING,
     "state.fc2.weight.exp_avg"},
    {add_slot, OT_ERR_INVALID, "unexpected: 'state.", OT_REPORT_UNEXPECTED,
     "state.fc2.weight.max_exp_avg_sq"},
    {shorten_slot, OT_ERR_INVALID, "f32[1], expected f32[2]", OT_REPORT_SHAPE,
     "state.fc2.bias.exp_avg"},
    {narrow_slot, OT_ERR_INVALID, "f16[2], expected f32[2]", OT_REPORT_DTYPE,
     "state.fc2.bias.exp_avg_sq"},
    {age_one, OT_ERR_INVALID, "has another number of updates", OT_REPORT_GROUP, NULL},
    {add_group, OT_ERR_INVALID, "is in two groups of the state", OT_REPORT_GROUP, "fc1.bias"},
    {forget_member, OT_ERR_NOT_FOUND, "'fc1.weight' is in no group of the state", OT_REPORT_MISSING,
     "fc1.weight"},
    {add_empty_group, OT_ERR_INVALID, "unexpected: 'param_groups.1' has no parameters",
     OT_REPORT_UNEXPECTED, "param_groups.1"},
    {turn_rate, OT_ERR_INVALID, "'lr' is not a finite number", OT_REPORT_GROUP, "lr"},
    {give_text_for_number, OT_ERR_INVALID, "is not a number", OT_REPORT_DTYPE,
     "param_groups.0.eps"},
    {turn_own_rate, OT_ERR_INVALID, "'learning_rate' of the state", OT_REPORT_CATEGORIES, NULL},
    {take_name_of_library, OT_ERR_INVALID, "is the library's", OT_REPORT_CATEGORIES, NULL},
    {forget_model, OT_ERR_NOT_FOUND, "the state has no 'model'", OT_REPORT_CATEGORIES, NULL},
    {give_no_parts, OT_ERR_INVALID, "'fc1.weight'", OT_REPORT_CATEGORIES, NULL},
    {give_slot_without_parts, OT_ERR_INVALID, "'state.fc1.weight.exp_avg'", OT_REPORT_CATEGORIES,
     NULL},
};

// ---- what becomes of it ----

enum { TOLD = 1024 };

// Message and report, in one text.
static void tell(const ot_shards_report *report, char text[TOLD])
{
    size_t n = (size_t)snprintf(text, TOLD, "%s;", ot_error_message());

    for (int c = 0; c < OT_REPORT_CATEGORIES; c++)
        for (int i = 0; i < ot_shards_report_count(report, (ot_report_category)c) && n < TOLD; i++)
            n += (size_t)snprintf(text + n, TOLD - n, " %d %s %s", c,
                                  ot_shards_report_name(report, (ot_report_category)c, i),
                                  ot_shards_report_detail(report, (ot_report_category)c, i));
}

static void check_told(ot_comm *comm, const wrong *w, ot_status st, const ot_shards_report *report)
{
    char own[TOLD] = "", all[RANKS_MAX][TOLD];

    RANK_CHECK(st == w->status && strstr(ot_error_message(), w->message) != NULL, "%s '%s'",
               ot_status_name(st), ot_error_message());
    tell(report, own);
    if (w->category < OT_REPORT_CATEGORIES)
        RANK_CHECK(ot_shards_report_count(report, w->category) == 1 &&
                       (w->name == NULL ||
                        strcmp(ot_shards_report_name(report, w->category, 0), w->name) == 0),
                   "%s", own);
    RANK_MUST(ot_comm_all_gather(comm, own, sizeof own, all));
    for (int r = 0; r < ot_comm_world_size(comm); r++)
        RANK_CHECK(strcmp(all[r], own) == 0, "'%.500s', on rank %d '%.500s'", own, r, all[r]);
}

static ot_dict *whole_state(rank_session *s, ot_comm *comm)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *state = NULL;

    o.comm = comm;
    o.copy = 1;
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s->f.session, ALL_SECTIONS, &o, &state));
    return state;
}

static void check_same_state(ot_dict *a, ot_dict *b)
{
    static const char *const sections[] = {"model", "optim", "train"};

    for (size_t i = 0; i < OT_COUNT(sections); i++)
        RANK_CHECK(ot__dict_same(a, sections[i], b, sections[i]), "'%s' has changed", sections[i]);
}

static void give_wrong(ot_comm *comm, void *context)
{
    const giving *g = context;
    const int rank = ot_comm_rank(comm);
    const bool gives = g->scatter != OT_SCATTER_ROOT || rank == 0;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *before, *after;
    rank_session s;

    begin_rank(&s, comm, g->how);
    o.comm = comm;
    o.scatter = g->scatter;
    before = whole_state(&s, comm);
    for (size_t i = 0; i < OT_COUNT(wrongs); i++) {
        ot_dict *given = whole_state(&s, comm);
        ot_shards_report *report = NULL;
        ot_status st;

        if (g->bad_rank < 0 || g->bad_rank == rank)
            wrongs[i].spoil(given);
        st = ot_session_set_shards(s.f.session, ALL_SECTIONS, gives ? given : NULL, &o, &report);
        check_told(comm, &wrongs[i], st, report);
        ot_shards_report_destroy(report);
        ot_dict_destroy(given);
        after = whole_state(&s, comm);
        check_same_state(before, after);
        ot_dict_destroy(after);
    }
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, gives ? before : NULL, &o, NULL));
    ot_dict_destroy(before);
    end_rank(&s);
}

static void a_state_that_does_not_fit_changes_nothing_and_all_report_the_same(void **state)
{
    static const giving givings[] = {{STATE, OT_SCATTER_ROOT, 0},   {VALUES, OT_SCATTER_ROOT, 0},
                                     {STATE, OT_SCATTER_EACH, -1},  {VALUES, OT_SCATTER_EACH, 0},
                                     {VALUES, OT_SCATTER_EACH, 2},  {WHOLE, OT_SCATTER_EACH, 1},
                                     {STATE, OT_SCATTER_SHARDED, 1}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(givings); i++)
        run_ranks(3, give_wrong, (void *)(uintptr_t)&givings[i]);
}

static void check_names(const ot_shards_report *report, ot_report_category category,
                        const char *const names[3])
{
    RANK_CHECK(ot_shards_report_count(report, category) == 3, "%d names",
               ot_shards_report_count(report, category));
    for (int i = 0; i < ot_shards_report_count(report, category); i++)
        RANK_CHECK(strcmp(ot_shards_report_name(report, category, i), names[i]) == 0, "%s",
                   ot_shards_report_name(report, category, i));
}

// Each rank has a name too many, which is no error; then each lacks one that others give.
static void give_other_names(ot_comm *comm, void *context)
{
    static const char *const more[] = {"more", "still more", "too much"}, *const missing[] = {
                                                                              "fc1.bias",
                                                                              "fc1.weight",
                                                                              "fc2.bias"};
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_shards_report *report = NULL;
    ot_dict *given;
    rank_session s;

    (void)context;
    begin_rank(&s, comm, VALUES);
    given = whole_state(&s, comm);
    put(dict_in(given, "model"), more[ot_comm_rank(comm)], OT_F32, OT_SHAPE(2));
    o.comm = comm;
    o.scatter = OT_SCATTER_EACH;
    o.strictness = OT_STRICTNESS_SUBSET;
    RANK_MUST(ot_session_check_shards(s.f.session, ALL_SECTIONS, given, &o, &report));
    check_names(report, OT_REPORT_UNEXPECTED, more);
    ot_shards_report_destroy(report);
    RANK_MUST(ot_dict_remove(dict_in(given, "model"), missing[ot_comm_rank(comm)]));
    RANK_CHECK(ot_session_check_shards(s.f.session, ALL_SECTIONS, given, &o, &report) ==
                       OT_ERR_MISMATCH &&
                   strstr(ot_error_message(), "ranks 0 and 1 differ in 'fc1.bias' of the state, "
                                              "which rank 0 does not give") != NULL,
               "%s", ot_error_message());
    check_names(report, OT_REPORT_MISSING, missing);
    ot_shards_report_destroy(report);
    ot_dict_destroy(given);
    end_rank(&s);
}

static void a_report_has_what_does_not_fit_on_any_rank(void **state)
{
    (void)state;
    run_ranks(3, give_other_names, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_that_does_not_fit_changes_nothing_and_all_report_the_same),
        cmocka_unit_test(a_report_has_what_does_not_fit_on_any_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
