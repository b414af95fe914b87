// SPDX-License-Identifier: Apache-2.0
// State dicts of sessions that are cut over ranks, set from parts, from wholes, by one rank.
#include "session_shards.h"

static void set_again(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    rank_session s;
    ot_dict *parts = NULL, *whole = NULL;

    begin_rank(&s, comm, t->how);
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &parts));
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &whole));
    for (int scatter = OT_SCATTER_SHARDED; scatter <= OT_SCATTER_ROOT; scatter++) {
        const bool gives = scatter != OT_SCATTER_ROOT || ot_comm_rank(comm) == 0;

        o.scatter = (ot_scatter)scatter;
        clear(&s);
        RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, gives ? whole : NULL, &o, NULL));
        visit(&s, true);
    }
    o.scatter = OT_SCATTER_SHARDED;
    clear(&s);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, parts, &o, NULL));
    visit(&s, true);
    ot_dict_destroy(parts);
    ot_dict_destroy(whole);
    end_rank(&s);
}

static void what_is_set_lies_where_it_belongs(void **state)
{
    (void)state;
    every_scheme(set_again);
}

// From two ranks to three to four to one, cut by rows, by columns, by rows, not at all.
static void take_and_give(ot_comm *comm, void *context)
{
    trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    const bool is_root = ot_comm_rank(comm) == 0;
    ot_name_entry name = OT_NAME_ENTRY_INIT;
    rank_session s;
    ot_dict *next = NULL;

    name.name = "turned";
    name.parameter = "fc1.weight";
    name.transform = OT_NAME_TRANSPOSE;
    name.axes[0] = 1;
    o.names = &name;
    o.n_names = t->is_turned;
    begin_rank(&s, comm, t->how);
    o.scatter = OT_SCATTER_ROOT;
    o.gather = OT_GATHER_ROOT;
    if (t->whole != NULL) {
        clear(&s);
        RANK_MUST(
            ot_session_set_shards(s.f.session, ALL_SECTIONS, is_root ? t->whole : NULL, &o, NULL));
        visit(&s, true);
    }
    clear(&s); // what is taken next is not what was made here
    visit(&s, false);
    o.flat_optimizer = !t->flat;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &next));
    ot_comm_barrier(comm);
    if (is_root) {
        ot_dict_destroy(t->whole);
        t->whole = next;
        t->flat = o.flat_optimizer;
    } else {
        ot_dict_destroy(next);
    }
    end_rank(&s);
}

static void states_go_from_any_ranks_to_any_others(void **state)
{
    static const int counts[] = {2, 3, 4, 8, 1, 2};
    static const scheme schemes[] = {VALUES, COLUMNS, STATE, VALUES, WHOLE, STATE};

    (void)state;
    for (int is_turned = 0; is_turned < 2; is_turned++) {
        trial t = {.window = 64, .is_turned = is_turned};

        for (size_t i = 0; i < OT_COUNT(counts); i++) {
            t.how = schemes[i];
            run_ranks(counts[i], take_and_give, &t);
        }
        ot_dict_destroy(t.whole);
    }
}

// ---- one rank fails, or makes another call ----

static void assert_told(ot_status found, ot_status expected, const char *part)
{
    RANK_CHECK(found == expected && strstr(ot_error_message(), part) != NULL,
               "%s '%s', expected %s '%s'", ot_status_name(found), ot_error_message(),
               ot_status_name(expected), part);
}

static void one_rank_differs(ot_comm *comm, void *context)
{
    const trial *t = context;
    const bool is_last = ot_comm_rank(comm) == ot_comm_world_size(comm) - 1;
    ot_state_dict_options o = options_of(t, comm);
    rank_session s;
    ot_dict *dict = NULL;

    begin_rank(&s, comm, t->how);
    o.gather = OT_GATHER_ALL;
    o.flat_optimizer = is_last;
    assert_told(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &dict), OT_ERR_MISMATCH,
                "differ in the options");
    RANK_CHECK(dict == NULL, "nothing is given");
    o.flat_optimizer = 0;
    assert_told(ot_session_get_shards(s.f.session, is_last ? 0 : ALL_SECTIONS, &o, &dict),
                OT_ERR_INVALID, "rank 2: sections 0x0");
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &dict));
    if (is_last)
        RANK_MUST(ot_dict_remove(dict_in(dict, "model"), "fc1.bias"));
    o.scatter = OT_SCATTER_EACH;
    assert_told(ot_session_set_shards(s.f.session, ALL_SECTIONS, dict, &o, NULL), OT_ERR_NOT_FOUND,
                "rank 2: the state does not fit: missing: 'fc1.bias'");
    visit(&s, true);
    ot_dict_destroy(dict);
    end_rank(&s);
}

static void a_failure_on_one_rank_is_one_on_all(void **state)
{
    trial t = {.how = VALUES};

    (void)state;
    run_ranks(3, one_rank_differs, &t);
}

// Names, types and shapes are the same with each of these; what is called so is not.
typedef struct other_call {
    const char *of_a, *of_b; // the parameters that the names "a" and "b" are of
    bool is_turned;          // "a" is a transposed matrix
    const char *include[2];
    const char *message;
} other_call;

static const other_call other_calls[] = {
    {"b", "a", false, {NULL}, "differ in the names and shapes"},
    {"a", "b", true, {NULL}, "differ in the names and shapes"},
    {"a", "b", false, {"a", "*"}, "differ in the options"},
};

static ot_state_dict_options options_of_call(const other_call *c, ot_name_entry names[2])
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;

    for (int i = 0; i < 2; i++) {
        names[i] = (ot_name_entry)OT_NAME_ENTRY_INIT;
        names[i].name = i == 0 ? "a" : "b";
        names[i].parameter = i == 0 ? c->of_a : c->of_b;
    }
    if (c->is_turned) {
        names[0].transform = OT_NAME_TRANSPOSE;
        names[0].axes[1] = 1;
    }
    o.names = names;
    o.n_names = 2;
    o.include = c->include;
    o.n_include = c->include[0] != NULL ? 2 : 0;
    return o;
}

static void one_rank_names_others(ot_comm *comm, void *context)
{
    static const other_call plain = {"a", "b", false, {NULL}, ""};
    const int last = ot_comm_world_size(comm) - 1;
    fixture f = {0};
    ot_dict *state;

    (void)context;
    make(&f, OT_F32, NULL);
    add(f.checkpoint, "a", OT_SHAPE(2, 2), 0);
    add(f.checkpoint, "b", OT_SHAPE(2, 2), 0);
    open_session(&f);
    for (size_t i = 0; i < OT_COUNT(other_calls); i++) {
        const other_call *c = ot_comm_rank(comm) == last ? &other_calls[i] : &plain;
        ot_name_entry names[2];
        ot_state_dict_options o = options_of_call(c, names);

        o.comm = comm;
        o.gather = OT_GATHER_ALL;
        assert_told(ot_session_get_shards(f.session, OT_STATE_MODEL, &o, &state), OT_ERR_MISMATCH,
                    other_calls[i].message);
        o.comm = NULL;
        o.gather = OT_GATHER_NONE;
        RANK_MUST(ot_session_get_shards(f.session, OT_STATE_MODEL, &o, &state));
        o.comm = comm;
        o.scatter = OT_SCATTER_ROOT;
        assert_told(ot_session_set_shards(f.session, OT_STATE_MODEL, state, &o, NULL),
                    OT_ERR_MISMATCH, other_calls[i].message);
        ot_dict_destroy(state);
    }
    teardown_of(&f);
}

static void ranks_that_call_something_else_so_are_told(void **state)
{
    (void)state;
    run_ranks(3, one_rank_names_others, NULL);
}

// The state of rank 0 alone lacks a name, or has one of another shape: all ranks say so.
static void root_gives_wrong(ot_comm *comm, void *context)
{
    const trial *t = context;
    const bool is_root = ot_comm_rank(comm) == 0;
    ot_state_dict_options o = options_of(t, comm);
    ot_shards_report *report = NULL;
    rank_session s;
    ot_dict *dict = NULL;
    ot_tensor *more = NULL;

    begin_rank(&s, comm, t->how);
    o.gather = OT_GATHER_ROOT;
    o.scatter = OT_SCATTER_ROOT;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &dict));
    if (is_root) {
        RANK_MUST(ot_dict_remove(dict_in(dict, "model"), "fc1.bias"));
        RANK_MUST(ot_tensor_create(OT_F32, &OT_SHAPE(7), &more));
        RANK_MUST(ot_dict_take_tensor(dict_in(dict, "model"), "extra", more));
    }
    assert_told(ot_session_set_shards(s.f.session, ALL_SECTIONS, dict, &o, &report),
                OT_ERR_NOT_FOUND, "missing: 'fc1.bias'; unexpected: 'extra'");
    RANK_CHECK(ot_shards_report_count(report, OT_REPORT_MISSING) == 1 &&
                   strcmp(ot_shards_report_name(report, OT_REPORT_UNEXPECTED, 0), "extra") == 0,
               "the report is the same on all ranks");
    ot_shards_report_destroy(report);
    visit(&s, true);
    assert_told(ot_session_set_shards(s.f.session, ALL_SECTIONS, NULL, &o, NULL), OT_ERR_INVALID,
                "state is NULL on rank 0");
    o.strictness = OT_STRICTNESS_SUBSET;
    clear(&s);
    RANK_MUST(ot_session_set_shards(s.f.session, OT_STATE_OPTIMIZER, dict, &o, NULL));
    ot_dict_destroy(dict);
    end_rank(&s);
}

static void all_ranks_report_what_rank_0_lacks(void **state)
{
    trial t = {.how = STATE};

    (void)state;
    run_ranks(3, root_gives_wrong, &t);
    t.how = VALUES;
    run_ranks(2, root_gives_wrong, &t);
}

// ---- what is no tensor ----

// What the program keeps beside tensors, and numbers that no rule knows.
static void add_notes(ot_dict *state)
{
    ot_dict *list = NULL, *group = NULL, *properties = NULL;

    RANK_MUST(ot_dict_get_list(dict_in(state, "optim"), "param_groups", &list));
    RANK_MUST(ot_dict_get_dict(list, "0", &group));
    RANK_MUST(ot_dict_set_float(group, "initial_lr", 0.125));
    RANK_MUST(ot_dict_set_null(group, "foreach"));
    RANK_MUST(ot_dict_set_string(group, "mode", "fast"));
    RANK_MUST(ot_dict_set_bytes(dict_in(state, "model"), "note", "\0root", 5));
    RANK_MUST(ot_dict_set_dict(dict_in(state, "train"), "properties", &properties));
    RANK_MUST(ot_dict_set_int(properties, "epochs", 7));
    RANK_MUST(ot_dict_set_string(properties, "run", "first"));
}

static void take_notes(ot_comm *comm, void *context)
{
    static const char *const sections[] = {"model", "optim", "train"};
    const trial *t = context;
    const bool is_root = ot_comm_rank(comm) == 0;
    const char own[] = {'r', (char)('0' + ot_comm_rank(comm))};
    ot_state_dict_options o = options_of(t, comm);
    ot_dict *given = NULL, *found = NULL;
    rank_session s;

    begin_rank(&s, comm, t->how);
    RANK_MUST(ot_session_set_bytes(s.f.session, "note", own, sizeof own));
    o.gather = OT_GATHER_ALL;
    o.scatter = OT_SCATTER_ROOT;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &given));
    add_notes(given);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, is_root ? given : NULL, &o, NULL));
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &found));
    for (size_t i = 0; i < OT_COUNT(sections); i++)
        RANK_CHECK(ot__dict_same(given, sections[i], found, sections[i]), "'%s' is another",
                   sections[i]);
    ot_dict_destroy(given);
    ot_dict_destroy(found);
    end_rank(&s);
}

static void what_rank_0_keeps_beside_tensors_comes_to_all(void **state)
{
    trial t = {.how = STATE};

    (void)state;
    run_ranks(3, take_notes, &t);
}

// ---- cut in another way ----

static void wrong_parts(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    rank_session rows, columns;
    ot_dict *dict = NULL;

    begin_rank(&rows, comm, VALUES);
    begin_rank(&columns, comm, COLUMNS);
    RANK_MUST(ot_session_get_shards(rows.f.session, OT_STATE_MODEL, &o, &dict));
    assert_told(ot_session_set_shards(columns.f.session, OT_STATE_MODEL, dict, &o, NULL),
                OT_ERR_INVALID, "elements that are here");
    visit(&columns, true);
    ot_dict_destroy(dict);
    end_rank(&rows);
    end_rank(&columns);
}

static void parts_that_are_not_those_here_are_refused(void **state)
{
    trial t = {.how = VALUES};

    (void)state;
    run_ranks(2, wrong_parts, &t);
}

// ---- no memory ----

typedef ot_status (*shards_call)(rank_session *s, ot_state_dict_options *o, ot_dict *whole,
                                 bool gives);

static ot_status get_all(rank_session *s, ot_state_dict_options *o, ot_dict *whole, bool gives)
{
    ot_dict *dict;
    const ot_status st = ot_session_get_shards(s->f.session, ALL_SECTIONS, o, &dict);

    (void)whole, (void)gives;
    ot_dict_destroy(dict);
    return st;
}

static ot_status set_from_root(rank_session *s, ot_state_dict_options *o, ot_dict *whole,
                               bool gives)
{
    return ot_session_set_shards(s->f.session, ALL_SECTIONS, gives ? whole : NULL, o, NULL);
}

static ot_status set_from_each(rank_session *s, ot_state_dict_options *o, ot_dict *whole,
                               bool gives)
{
    (void)gives;
    o->scatter = OT_SCATTER_EACH;
    return ot_session_set_shards(s->f.session, ALL_SECTIONS, whole, o, NULL);
}

// Fails at the n-th allocation of one rank, for every n until it works: all ranks say so.
static void until_all_have_memory(ot_comm *comm, rank_session *s, const trial *t, ot_dict *whole,
                                  shards_call call, int failing)
{
    ot_state_dict_options o = options_of(t, comm);
    int64_t answers[2];

    o.gather = OT_GATHER_ALL;
    o.scatter = OT_SCATTER_ROOT;
    for (int64_t n = 0; n < 10000; n += 1 + n / 32) {
        ot_status st;

        if (ot_comm_rank(comm) == failing)
            ot__alloc_fail_after(n);
        st = call(s, &o, whole, ot_comm_rank(comm) == 0);
        ot__alloc_fail_after(-1);
        answers[0] = (int64_t)st;
        answers[1] = -(int64_t)st;
        RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_MAX, OT_I64, answers, 2));
        RANK_CHECK(answers[0] == -answers[1], "status %d here, and %d", (int)st, (int)answers[0]);
        visit(s, true);
        if (answers[0] == OT_OK)
            return;
        RANK_CHECK(st == OT_ERR_NO_MEMORY, "%s", ot_error_message());
    }
    RANK_CHECK(false, "it never ends");
}

static void starve(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    rank_session s;
    ot_dict *whole = NULL;

    begin_rank(&s, comm, t->how);
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &whole));
    for (int failing = 0; failing < ot_comm_world_size(comm); failing++) {
        until_all_have_memory(comm, &s, t, whole, get_all, failing);
        until_all_have_memory(comm, &s, t, whole, set_from_root, failing);
        if (t->how == VALUES && failing > 0)
            until_all_have_memory(comm, &s, t, whole, set_from_each, failing);
    }
    ot_dict_destroy(whole);
    end_rank(&s);
}

static void a_lack_of_memory_on_one_rank_is_one_on_all(void **state)
{
    trial t = {.how = VALUES};

    (void)state;
    run_ranks(2, starve, &t);
    t.how = STATE;
    run_ranks(3, starve, &t);
}

// ---- transposed ----

static void transposed_parts(ot_comm *comm, void *context)
{
    const trial *t = context;
    ot_state_dict_options o = options_of(t, comm);
    ot_name_entry name = OT_NAME_ENTRY_INIT;
    const ot_tensor *found = NULL;
    rank_session s;
    ot_dict *parts = NULL, *whole = NULL;

    name.name = "turned";
    name.parameter = "fc1.weight";
    name.transform = OT_NAME_TRANSPOSE;
    name.axes[0] = 1;
    o.names = &name;
    o.n_names = 1;
    begin_rank(&s, comm, t->how);
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &parts));
    o.gather = OT_GATHER_ALL;
    RANK_MUST(ot_session_get_shards(s.f.session, ALL_SECTIONS, &o, &whole));
    RANK_MUST(ot_dict_get_tensor(dict_in(whole, "model"), "turned", &found));
    for (int64_t i = 0; i < HIDDEN; i++)
        for (int64_t j = 0; j < IN; j++)
            RANK_CHECK(fabsf(((float *)found->data)[i * IN + j] - expected_at(0, j * HIDDEN + i)) <=
                           0,
                       "row %d, column %d", (int)i, (int)j);
    clear(&s);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, parts, &o, NULL));
    visit(&s, true);
    for (int scatter = OT_SCATTER_EACH; scatter <= OT_SCATTER_ROOT; scatter++) {
        o.scatter = (ot_scatter)scatter;
        clear(&s);
        RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, whole, &o, NULL));
        visit(&s, true);
    }
    ot_dict_destroy(parts);
    ot_dict_destroy(whole);
    end_rank(&s);
}

static void transposed_names_are_cut_along_the_other_axis(void **state)
{
    (void)state;
    for (int k = WHOLE; k < SCHEMES; k++) {
        trial t = {.how = (scheme)k};

        run_ranks(1, transposed_parts, &t);
        run_ranks(3, transposed_parts, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_set_lies_where_it_belongs),
        cmocka_unit_test(states_go_from_any_ranks_to_any_others),
        cmocka_unit_test(a_failure_on_one_rank_is_one_on_all),
        cmocka_unit_test(ranks_that_call_something_else_so_are_told),
        cmocka_unit_test(all_ranks_report_what_rank_0_lacks),
        cmocka_unit_test(what_rank_0_keeps_beside_tensors_comes_to_all),
        cmocka_unit_test(parts_that_are_not_those_here_are_refused),
        cmocka_unit_test(a_lack_of_memory_on_one_rank_is_one_on_all),
        cmocka_unit_test(transposed_names_are_cut_along_the_other_axis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
