// SPDX-License-Identifier: Apache-2.0
// States that differ between the ranks that give them: what is the same on all ranks afterwards has
// to be given so, and cut values by their own ranks.
#include "session_shards.h"

typedef struct giving {
    scheme how;
    ot_scatter scatter;
} giving;

typedef struct difference {
    void (*change)(ot_dict *state);
    const char *name;
    bool is_whole; // where neither values nor slots are cut
} difference;

enum { N_RANKS = 3, OTHER_RANK = 1 };

// ---- what is another ----

static ot_dict *first_group(ot_dict *state)
{
    ot_dict *list = NULL, *group = NULL;

    RANK_MUST(ot_dict_get_list(dict_in(state, "optim"), "param_groups", &list));
    RANK_MUST(ot_dict_get_dict(list, "0", &group));
    return group;
}

static ot_dict *slots_of(ot_dict *state, const char *name)
{
    return dict_in(dict_in(dict_in(state, "optim"), "state"), name);
}

static void change_tensor(ot_dict *dict, const char *name)
{
    const ot_tensor *t = NULL;

    RANK_MUST(ot_dict_get_tensor(dict, name, &t));
    ((float *)t->data)[ot_tensor_count(t) - 1] += 1;
}

static void change_decay(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(first_group(state), "weight_decay", 0.5));
}

static void change_rate(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(first_group(state), "lr", 0.75));
}

static void change_beta(ot_dict *state)
{
    ot_dict *betas = NULL;

    RANK_MUST(ot_dict_get_list(first_group(state), "betas", &betas));
    RANK_MUST(ot_dict_set_float(betas, "1", 0.5));
}

static void change_custom_number(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(first_group(state), "warmth", 2));
}

static void change_steps(ot_dict *state)
{
    for (int i = 0; i < N_PARTS; i++)
        RANK_MUST(ot_dict_set_int(slots_of(state, mlp_parts[i].name), "step", 9));
}

static void change_seed(ot_dict *state)
{
    RANK_MUST(ot_dict_set_int(dict_in(state, "train"), "seed", 77));
}

static void change_counter(ot_dict *state)
{
    RANK_MUST(ot_dict_set_int(dict_in(state, "train"), "counter", 77));
}

static void change_own_rate(ot_dict *state)
{
    RANK_MUST(ot_dict_set_float(dict_in(state, "train"), "learning_rate", 0.75));
}

static void change_own_step(ot_dict *state)
{
    RANK_MUST(ot_dict_set_int(dict_in(state, "train"), "step", 77));
}

static void forget_seed(ot_dict *state)
{
    RANK_MUST(ot_dict_remove(dict_in(state, "train"), "seed"));
}

static void change_schedule(ot_dict *state)
{
    ot_dict *train = dict_in(state, "train");
    const char *text = "";
    char other[256], *rate;

    RANK_MUST(ot_dict_get_string(train, "schedule", &text));
    snprintf(other, sizeof other, "%s", text);
    rate = strstr(other, "0.25");
    RANK_CHECK(rate != NULL, "%s", text);
    rate[2] = '7';
    RANK_MUST(ot_dict_set_string(train, "schedule", other));
}

static void change_property(ot_dict *state)
{
    RANK_MUST(
        ot_dict_set_int(dict_in(dict_in(state, "train"), "properties"), "epochs", OTHER_RANK));
}

static void change_bytes(ot_dict *state)
{
    RANK_MUST(ot_dict_set_bytes(dict_in(state, "model"), "note", "other", 5));
}

static void change_value(ot_dict *state)
{
    change_tensor(dict_in(state, "model"), "fc1.bias");
}

static void change_slot(ot_dict *state)
{
    change_tensor(slots_of(state, "fc2.weight"), "exp_avg_sq");
}

static const difference differences[] = {
    {change_decay, "param_groups.0.weight_decay", false},
    {change_rate, "param_groups.0.lr", false},
    {change_beta, "param_groups.0.betas", false},
    {change_custom_number, "param_groups.0", false},
    {change_steps, "state.fc1.weight.step", false},
    {change_seed, "seed", false},
    {change_counter, "counter", false},
    {change_own_rate, "learning_rate", false},
    {change_own_step, "step", false},
    {forget_seed, "seed", false},
    {change_schedule, "schedule", false},
    {change_property, "properties", false},
    {change_bytes, "byte strings", false},
    {change_value, "fc1.bias", true},
    {change_slot, "state.fc2.weight.exp_avg_sq", true},
};

// ---- what becomes of it ----

static void begin_with_notes(rank_session *s, ot_comm *comm, scheme how)
{
    ot_schedule schedule = OT_SCHEDULE_INIT;

    begin_rank(s, comm, how);
    schedule.initial_lr = 0.25;
    RANK_MUST(ot_session_set_schedule(s->f.session, &schedule));
    RANK_MUST(ot_session_set_bytes(s->f.session, "note", "one", 3));
    RANK_MUST(ot_checkpoint_set_int(s->f.checkpoint, "epochs", 7));
}

static ot_dict *given_state(rank_session *s, ot_comm *comm, ot_gather gather, int flat)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *state = NULL;

    o.comm = comm;
    o.copy = 1;
    o.gather = gather;
    o.flat_optimizer = flat;
    RANK_MUST(ot_session_get_shards(s->f.session, ALL_SECTIONS, &o, &state));
    return state;
}

static void check_same_state(rank_session *s, ot_comm *comm, ot_dict *before)
{
    static const char *const sections[] = {"model", "optim", "train"};
    ot_dict *after = given_state(s, comm, OT_GATHER_ALL, 0);

    for (size_t i = 0; i < OT_COUNT(sections); i++)
        RANK_CHECK(ot__dict_same(before, sections[i], after, sections[i]), "'%s' has changed",
                   sections[i]);
    ot_dict_destroy(after);
}

static void give_differences(ot_comm *comm, void *context)
{
    const giving *g = context;
    const ot_gather gather = g->scatter == OT_SCATTER_EACH ? OT_GATHER_ALL : OT_GATHER_NONE;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    rank_session s;
    ot_dict *before, *given;

    begin_with_notes(&s, comm, g->how);
    o.comm = comm;
    o.scatter = g->scatter;
    before = given_state(&s, comm, OT_GATHER_ALL, 0);
    for (size_t i = 0; i < OT_COUNT(differences); i++) {
        const difference *d = &differences[i];
        char message[128];
        ot_status st;

        if (d->is_whole && g->how != WHOLE)
            continue;
        given = given_state(&s, comm, gather, 0);
        if (ot_comm_rank(comm) == OTHER_RANK)
            d->change(given);
        snprintf(message, sizeof message, "ranks 0 and 1 differ in '%s' of the state", d->name);
        st = ot_session_set_shards(s.f.session, ALL_SECTIONS, given, &o, NULL);
        RANK_CHECK(st == OT_ERR_MISMATCH && strstr(ot_error_message(), message) != NULL,
                   "%s: %s '%s'", d->name, ot_status_name(st), ot_error_message());
        ot_dict_destroy(given);
    }
    check_same_state(&s, comm, before);
    given = given_state(&s, comm, gather, 0);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, given, &o, NULL));
    ot_dict_destroy(given);
    ot_dict_destroy(before);
    end_rank(&s);
}

static void what_is_the_same_on_all_ranks_is_given_so(void **state)
{
    static const giving givings[] = {{WHOLE, OT_SCATTER_EACH}, {STATE, OT_SCATTER_SHARDED}};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(givings); i++)
        run_ranks(N_RANKS, give_differences, (void *)(uintptr_t)&givings[i]);
}

// ---- the same, given in another way ----

static void give_flat(ot_comm *comm, void *context)
{
    const bool is_other = ot_comm_rank(comm) == OTHER_RANK;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    rank_session s;
    ot_dict *nested, *flat;

    (void)context;
    begin_with_notes(&s, comm, STATE);
    nested = given_state(&s, comm, OT_GATHER_ALL, 0);
    flat = given_state(&s, comm, OT_GATHER_ALL, 1);
    clear(&s);
    o.comm = comm;
    o.scatter = OT_SCATTER_EACH;
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, is_other ? flat : nested, &o, NULL));
    visit(&s, true);
    ot_dict_destroy(nested);
    ot_dict_destroy(flat);
    end_rank(&s);
}

static void one_rank_may_give_the_flat_form(void **state)
{
    (void)state;
    run_ranks(N_RANKS, give_flat, NULL);
}

// fc1.bias, which has four elements, in two parts.
static void give_in_parts(ot_dict *state, float last)
{
    const ot_box boxes[] = {{.ndim = 1, .offset = {1}, .size = {HIDDEN - 1}},
                            {.ndim = 1, .size = {1}}};
    ot_tensor *parts[2] = {NULL};

    for (int i = 0; i < 2; i++) {
        const ot_shape shape = {.ndim = 1, .dim = {boxes[i].size[0]}};

        RANK_MUST(ot_tensor_create(OT_F32, &shape, &parts[i]));
        for (int64_t k = 0; k < shape.dim[0]; k++)
            ((float *)parts[i]->data)[k] = expected_at(3, boxes[i].offset[0] + k);
    }
    ((float *)parts[0]->data)[HIDDEN - 2] += last;
    RANK_MUST(ot_dict_take_shards(dict_in(state, "model"), "fc1.bias", OT_F32, &OT_SHAPE(HIDDEN),
                                  boxes, parts, 2));
}

static void cut_on_one_rank(ot_comm *comm, void *context)
{
    const bool is_other = ot_comm_rank(comm) == OTHER_RANK;
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    rank_session s;
    ot_dict *given;

    (void)context;
    begin_with_notes(&s, comm, STATE);
    given = given_state(&s, comm, OT_GATHER_NONE, 0);
    o.comm = comm;
    if (is_other)
        give_in_parts(given, 0);
    clear(&s);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, given, &o, NULL));
    visit(&s, true);
    if (is_other)
        give_in_parts(given, 1);
    RANK_CHECK(ot_session_set_shards(s.f.session, ALL_SECTIONS, given, &o, NULL) ==
                       OT_ERR_MISMATCH &&
                   strstr(ot_error_message(), "differ in 'fc1.bias'") != NULL,
               "%s", ot_error_message());
    visit(&s, true);
    ot_dict_destroy(given);
    end_rank(&s);
}

static void parts_of_a_whole_value_are_compared_by_elements(void **state)
{
    (void)state;
    run_ranks(N_RANKS, cut_on_one_rank, NULL);
}

// Of a cut tensor of which a rank has nothing, it need not say anything.
static void lack_what_is_elsewhere(ot_comm *comm, void *context)
{
    ot_state_dict_options o = OT_STATE_DICT_OPTIONS_INIT;
    rank_session s;
    ot_dict *given;

    (void)context;
    begin_with_notes(&s, comm, VALUES);
    given = given_state(&s, comm, OT_GATHER_NONE, 0);
    o.comm = comm;
    o.strictness = OT_STRICTNESS_SUBSET;
    if (ot_comm_rank(comm) == N_RANKS - 1) // of two elements
        RANK_MUST(ot_dict_remove(dict_in(given, "model"), "fc2.bias"));
    clear(&s);
    RANK_MUST(ot_session_set_shards(s.f.session, ALL_SECTIONS, given, &o, NULL));
    visit(&s, true);
    ot_dict_destroy(given);
    end_rank(&s);
}

static void a_rank_need_not_give_what_is_elsewhere(void **state)
{
    (void)state;
    run_ranks(N_RANKS, lack_what_is_elsewhere, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_the_same_on_all_ranks_is_given_so),
        cmocka_unit_test(one_rank_may_give_the_flat_form),
        cmocka_unit_test(parts_of_a_whole_value_are_compared_by_elements),
        cmocka_unit_test(a_rank_need_not_give_what_is_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
