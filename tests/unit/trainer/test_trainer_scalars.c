// SPDX-License-Identifier: Apache-2.0
// A parameter without axes ('b' of the linear model) whose state, gradient and value are cut over
// ranks: states and directories say that it has no axis, and any number of ranks takes them.
#include "trainer_ranks_fixture.h"

#include "unit/base/temporary_folder.h"

enum { N_SAVERS = 3, N_VALUES = 3 * (N_IN + 1), STAGES = 4 };
static const unsigned sections = OT_STATE_MODEL | OT_STATE_OPTIMIZER;

typedef struct scalars {
    const ot_model *model;
    const char *path;
    int64_t stage;
    bool is_cut_before;     // by an update, before the state is loaded
    float values[N_VALUES]; // w, b, and their moments
} scalars;

static ot_status make_trainer(const scalars *s, ot_comm *comm, ot_trainer **out)
{
    ot_trainer_options options = of_replicas(ot_comm_world_size(comm));

    options.zero_stage = s->stage;
    return make_by("AdamOptimizer", s->model, comm, &options, out);
}

// ---- what a state has ----

static void read_tensor(ot_dict *of, const char *name, int ndim, float *out)
{
    const ot_tensor *t = NULL;

    RANK_MUST(ot_dict_get_tensor(of, name, &t));
    if (t == NULL)
        return;
    RANK_CHECK(t->shape.ndim == ndim, "%s has %d axes", name, t->shape.ndim);
    memcpy(out, t->data, t->n_bytes);
}

static ot_dict *dict_at(ot_dict *dict, const char *name)
{
    ot_dict *inner = NULL;

    RANK_MUST(ot_dict_get_dict(dict, name, &inner));
    return inner;
}

static void read_whole(ot_dict *state, float values[N_VALUES])
{
    static const char *const keys[] = {"exp_avg", "exp_avg_sq"};
    ot_dict *model = dict_at(state, "model"), *of = dict_at(dict_at(state, "optim"), "state");

    read_tensor(model, "w", 1, values);
    read_tensor(model, "b", 0, values + N_IN);
    for (int i = 0; i < 2; i++) {
        read_tensor(dict_at(of, "w"), keys[i], 1, values + (i + 1) * (N_IN + 1));
        read_tensor(dict_at(of, "b"), keys[i], 0, values + (i + 1) * (N_IN + 1) + N_IN);
    }
}

static ot_dict *get(ot_trainer *trainer, ot_comm *comm, ot_gather gather)
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;
    ot_dict *state = NULL;

    options.comm = comm;
    options.gather = gather;
    options.copy = 1;
    RANK_MUST(ot_trainer_get_shards(trainer, sections, &options, &state));
    return state;
}

static void check_values(ot_trainer *trainer, ot_comm *comm, const float expected[N_VALUES])
{
    ot_dict *state = get(trainer, comm, OT_GATHER_ALL);
    float found[N_VALUES] = {0};

    read_whole(state, found);
    for (int i = 0; i < N_VALUES; i++)
        RANK_CHECK(memcmp(&found[i], &expected[i], sizeof found[i]) == 0,
                   "value %d is %g, expected %g", i, (double)found[i], (double)expected[i]);
    ot_dict_destroy(state);
}

// One rank has the element, in a box without axes.
static void check_part(ot_comm *comm, ot_dict *of, const char *name)
{
    const ot_shards *shards = NULL;
    int64_t n;

    RANK_MUST(ot_dict_get_shards(of, name, &shards));
    if (shards == NULL)
        return;
    n = shards->n_parts;
    RANK_CHECK(shards->shape.ndim == 0, "%d axes", shards->shape.ndim);
    for (int i = 0; i < shards->n_parts; i++)
        RANK_CHECK(shards->boxes[i].ndim == 0 && shards->parts[i]->shape.ndim == 0, "%s", name);
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, &n, 1));
    RANK_CHECK(n == 1, "%d ranks have '%s'", (int)n, name);
}

static void check_parts(const scalars *s, ot_comm *comm, ot_dict *state)
{
    ot_dict *of = dict_at(dict_at(dict_at(state, "optim"), "state"), "b");

    if (s->stage > 0) {
        check_part(comm, of, "exp_avg");
        check_part(comm, of, "exp_avg_sq");
    }
    if (s->stage > 2)
        check_part(comm, dict_at(state, "model"), "b");
}

// ---- saving, and setting what was given ----

static void set_again(ot_trainer *trainer, ot_comm *comm, ot_dict *state, ot_scatter scatter,
                      const float expected[N_VALUES])
{
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    options.comm = comm;
    options.scatter = scatter;
    RANK_MUST(step_of_rank(trainer, 50 + ot_comm_rank(comm)));
    RANK_MUST(ot_trainer_set_shards(trainer, sections, state, &options, NULL));
    check_values(trainer, comm, expected);
}

static void save_on_rank(ot_comm *comm, void *context)
{
    scalars *s = context;
    ot_trainer *trainer = NULL;
    ot_dict *whole, *parts;
    float values[N_VALUES] = {0};

    RANK_MUST(make_trainer(s, comm, &trainer));
    if (trainer == NULL)
        return;
    for (int i = 0; i < 2; i++)
        RANK_MUST(step_of_rank(trainer, N_SAVERS * i + ot_comm_rank(comm)));
    whole = get(trainer, comm, OT_GATHER_ALL);
    parts = get(trainer, comm, OT_GATHER_NONE);
    read_whole(whole, values);
    check_parts(s, comm, parts);
    RANK_MUST(ot_session_save_shards(ot_trainer_session(trainer), s->path, NULL));
    set_again(trainer, comm, parts, OT_SCATTER_SHARDED, values);
    set_again(trainer, comm, whole, OT_SCATTER_EACH, values);
    set_again(trainer, comm, whole, OT_SCATTER_ROOT, values);
    if (ot_comm_rank(comm) == 0)
        memcpy(s->values, values, sizeof values);
    ot_dict_destroy(whole);
    ot_dict_destroy(parts);
    ot_trainer_destroy(trainer);
}

// ---- loading ----

static void load_directory(ot_trainer *trainer, ot_comm *comm, const char *path)
{
    ot_dict *state = get(trainer, comm, OT_GATHER_NONE);
    ot_shards_item items[] = {OT_SHARDS_ITEM_INIT, OT_SHARDS_ITEM_INIT};
    ot_shards_load_options load = OT_SHARDS_LOAD_OPTIONS_INIT;
    ot_state_dict_options options = OT_STATE_DICT_OPTIONS_INIT;

    items[0].name = "model";
    items[0].dict = dict_at(state, "model");
    items[1].name = "optim";
    items[1].dict = dict_at(state, "optim");
    load.allows_unexpected = 1;
    options.comm = comm;
    RANK_MUST(ot_shards_load(comm, path, items, 2, &load));
    RANK_MUST(ot_trainer_set_shards(trainer, sections, state, &options, NULL));
    ot_dict_destroy(state);
}

static void load_on_rank(ot_comm *comm, void *context)
{
    const scalars *s = context;
    ot_trainer *trainer = NULL;

    RANK_MUST(make_trainer(s, comm, &trainer));
    if (trainer == NULL)
        return;
    if (s->is_cut_before)
        RANK_MUST(step_of_rank(trainer, ot_comm_rank(comm)));
    if (ot_comm_world_size(comm) % 2 == 0)
        load_directory(trainer, comm, s->path);
    else
        RANK_MUST(ot_trainer_load_shards(trainer, s->path));
    check_values(trainer, comm, s->values);
    RANK_MUST(step_of_rank(trainer, ot_comm_rank(comm)));
    ot_trainer_destroy(trainer);
}

static void any_ranks_take_the_state_of_others(void **state)
{
    ot_model *model = linear_model();

    for (int64_t stage = 0; stage < STAGES; stage++) {
        scalars s = {.model = model, .stage = stage, .path = in_folder(state, "directory")};
        char path[PATH_LENGTH_MAX];

        snprintf(path, sizeof path, "%s-%d", s.path, (int)stage);
        s.path = path;
        run_ranks(N_SAVERS, save_on_rank, &s);
        for (int n = 1; n <= 4; n++)
            for (s.stage = 0; s.stage < STAGES; s.stage++) {
                s.is_cut_before = (n + s.stage) % 2 == 0;
                run_ranks(n, load_on_rank, &s);
            }
    }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_ranks_take_the_state_of_others, temporary_folder_make,
                                        temporary_folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
