// SPDX-License-Identifier: Apache-2.0
// A network with one hidden layer, trained over ranks, whose state is saved in a file of each rank.
#ifndef TESTS_UNIT_TRAINER_RANK_FILES_FIXTURE_H
#define TESTS_UNIT_TRAINER_RANK_FILES_FIXTURE_H

#include "dropout_fixture.h"
#include "trainer/state.h"
#include "unit/base/temporary_folder.h"
#include "unit/dist/ranks.h"

enum { MAX_JOB_RANKS = 4, MAX_BATCH = 4 * 784 };

// ---- models ----

typedef struct network_sizes {
    int n_in, n_hidden, n_out;
} network_sizes;

static inline uint32_t next_number(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

static inline void print_weight(ot__buf *text, const char *name, int n_rows, int columns)
{
    uint32_t s = 7;

    ot__buf_text(text, "float[");
    if (n_rows > 0)
        ot__buf_printf(text, "%d,", n_rows);
    ot__buf_printf(text, "%d] \"%s\" = {", columns, name);
    for (int i = 0; i < OT_MAX(n_rows, 1) * columns; i++)
        ot__buf_printf(text, "%s%.4f", i > 0 ? "," : "",
                       (double)next_number(&s) / (1 << 24) / OT_MAX(n_rows, 4) - 0.05);
    ot__buf_text(text, "}");
}

// Of weights 'bias1', 'bias2', 'layer/w1' and 'w2'.
static inline ot_model *network_model(const network_sizes *z)
{
    ot__buf text = {0};
    ot_model *model;

    ot__buf_printf(&text,
                   "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                   "network (float[N,%d] x, float[N,%d] t) => (float loss, float[N,%d] y)\n<",
                   z->n_in, z->n_out, z->n_out);
    print_weight(&text, "layer/w1", z->n_in, z->n_hidden);
    ot__buf_text(&text, ",\n");
    print_weight(&text, "bias1", 0, z->n_hidden);
    ot__buf_text(&text, ",\n");
    print_weight(&text, "w2", z->n_hidden, z->n_out);
    ot__buf_text(&text, ",\n");
    print_weight(&text, "bias2", 0, z->n_out);
    ot__buf_text(&text, ">\n{\n"
                        "  h = MatMul(x, \"layer/w1\")\n  a = Add(h, bias1)\n  r = Tanh(a)\n"
                        "  p = MatMul(r, w2)\n  y = Add(p, bias2)\n  d = Sub(y, t)\n"
                        "  q = Mul(d, d)\n  loss = ReduceMean<keepdims = 0>(q)\n}\n");
    assert_false(text.failed);
    need(ot_model_load_buffer(text.data, text.length, NULL, &model));
    ot__buf_deinit(&text);
    return model;
}

// ---- a training of some ranks, from a state or the beginning, to a state or the end ----

typedef struct job {
    const ot_model *model;
    network_sizes sizes;
    int n_ranks, zero;
    int64_t accumulation;
    ot_precision precision;
    const char *rule;
    double average_decay;
    int64_t begin, end;        // train steps of a rank
    const char *const *loaded; // files; NULL: none
    int n_loaded;
    int loads_own;            // 1: each rank the file of its number alone
    const char *const *saved; // by rank; NULL: nothing is
    int drops_optimizer;      // of what is saved
    int is_free;              // not reproducible: gradients may be cut
    // What ranks find.
    uint64_t hash_before[MAX_JOB_RANKS], hash_after[MAX_JOB_RANKS]; // of the state
    float losses[MAX_JOB_RANKS];                                    // the last ones
} job;

static inline ot_status make_job_trainer(const job *j, ot_comm *comm, ot_trainer **out)
{
    ot_optimizer_options optimizer = dropout_rule(j->rule);
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session_options session = OT_SESSION_OPTIONS_INIT;

    parallel.comm = comm;
    session.parallel = &parallel;
    session.n_threads = 1;
    session.reproducible = !j->is_free;
    options.session = &session;
    options.world_size = j->n_ranks;
    options.allreduce_post_accumulation = 1;
    options.zero_stage = j->zero;
    options.gradient_accumulation_steps = j->accumulation;
    options.precision = j->precision;
    options.average_decay = j->average_decay;
    optimizer.lr = 0.01;
    return ot_trainer_create(j->model, NULL, &optimizer, &options, out);
}

static inline ot_tensor *numbers_tensor(uint32_t *s, int n_columns)
{
    ot_tensor *tensor = NULL;

    RANK_MUST(ot_tensor_create(OT_F32, &OT_SHAPE(N_ROWS, n_columns), &tensor));
    for (int i = 0; tensor != NULL && i < N_ROWS * n_columns; i++)
        ((float *)tensor->data)[i] = (float)((double)next_number(s) / (1 << 24) - 0.5);
    return tensor;
}

static inline float job_step(const job *j, ot_trainer *trainer, int64_t micro_batch)
{
    uint32_t s = (uint32_t)micro_batch * 2654435761u + 12345u;
    const int n_out = OT_MAX(j->sizes.n_out, 1); // 0: targets without that axis
    ot_tensor *inputs[2] = {numbers_tensor(&s, j->sizes.n_in), numbers_tensor(&s, n_out)};
    ot_tensor *outputs[2] = {NULL, NULL};
    float loss = 0;

    if (inputs[1] != NULL && j->sizes.n_out == 0)
        inputs[1]->shape = OT_SHAPE(N_ROWS);
    RANK_MUST(ot_trainer_train_step(trainer, (const ot_tensor *const *)inputs, 2, outputs, 2));
    for (int i = 0; i < 2; i++) {
        if (outputs[i] != NULL && ot_tensor_count(outputs[i]) == 1)
            loss = *(const float *)ot_tensor_data_const(outputs[i]);
        ot_tensor_destroy(inputs[i]);
        ot_tensor_destroy(outputs[i]);
    }
    return loss;
}

static inline uint64_t hash_on_rank(ot_trainer *trainer)
{
    const unsigned sections = OT_STATE_MODEL | OT_STATE_OPTIMIZER | OT_STATE_STEPS | OT_STATE_OWN;
    ot_dict *state = NULL;
    uint64_t hash = 0;

    RANK_MUST(ot_trainer_get_state(trainer, sections, &state));
    if (state != NULL)
        hash = mix_dict(1, state);
    ot_dict_destroy(state);
    return hash;
}

static inline ot_status save_of_rank(const job *j, ot_trainer *trainer, const char *path)
{
    ot_save_options options = OT_SAVE_OPTIONS_INIT;

    options.format = OT_FORMAT_HDF5;
    options.include_optimizer_states = !j->drops_optimizer;
    return ot_trainer_save(trainer, path, &options);
}

static inline void do_job(ot_comm *comm, void *context)
{
    job *j = context;
    const int rank = ot_comm_rank(comm);
    ot_trainer *trainer = NULL;

    RANK_MUST(make_job_trainer(j, comm, &trainer));
    if (trainer == NULL)
        return;
    if (j->loaded != NULL) {
        RANK_MUST(ot_trainer_load(trainer, j->loads_own ? &j->loaded[rank] : j->loaded,
                                  j->loads_own ? 1 : j->n_loaded, OT_STRICTNESS_ALL, NULL));
        j->hash_before[rank] = hash_on_rank(trainer);
    }
    for (int64_t i = j->begin; i < j->end; i++)
        j->losses[rank] = job_step(j, trainer, i * j->n_ranks + rank);
    j->hash_after[rank] = hash_on_rank(trainer);
    if (j->saved != NULL)
        RANK_MUST(save_of_rank(j, trainer, j->saved[rank]));
    ot_trainer_destroy(trainer);
}

static inline void run_job(job *j)
{
    run_ranks(j->n_ranks, do_job, j);
}

// ---- files ----

typedef struct rank_files {
    char text[MAX_JOB_RANKS][PATH_LENGTH_MAX];
    const char *path[MAX_JOB_RANKS];
} rank_files;

static inline void name_rank_files(void **state, const char *name, rank_files *out)
{
    for (int r = 0; r < MAX_JOB_RANKS; r++) {
        snprintf(out->text[r], sizeof out->text[r], "%s/%s%d.ortcp", (const char *)*state, name, r);
        out->path[r] = out->text[r];
        (void)remove(out->path[r]);
    }
}

static inline ot_dict *load_rank_file(const char *path)
{
    ot_dict *dict;

    need(ot__state_load_hdf5(path, false, &dict)); // a '/' in a name has made groups in the file
    return dict;
}

static inline int count_names(void **state)
{
    DIR *entries = opendir(*state);
    int n = 0;

    assert_non_null(entries);
    for (struct dirent *e; (e = readdir(entries)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(entries);
    return n;
}

// ---- what is in them ----

static const network_sizes small = {5, 16, 1};
static const char *const weights[] = {"bias1", "bias2", "layer/w1", "w2"};

static inline const ot_tensor *tensor_in(ot_dict *state, const char *section_name,
                                         const char *weight, const char *key)
{
    const ot_dict *in = ot__state_dict(state, section_name);

    in = ot__state_dict(in, key == NULL ? "full_precision" : weight);
    return ot__state_tensor(in, key == NULL ? weight : key);
}

static inline void assert_options(ot_dict *state, int rank, int n_ranks, int zero, bool is_mixed)
{
    static const char *const names[] = {"zero_stage", "world_rank", "world_size",
                                        "data_parallel_size", "horizontal_parallel_size"};
    const int64_t expected[] = {zero, rank, n_ranks, n_ranks, 1};
    ot_dict *options = section(state, "trainer_options");
    const char *name;
    int64_t found;
    int flag;

    for (size_t i = 0; i < OT_COUNT(names); i++) {
        need(ot_dict_get_int(options, names[i], &found));
        assert_int_equal(found, expected[i]);
    }
    need(ot_dict_get_bool(options, "mixed_precision", &flag));
    assert_int_equal(flag, is_mixed);
    need(ot_dict_get_string(options, "optimizer_name", &name));
    assert_string_equal(name, "AdamOptimizer");
}

#endif
