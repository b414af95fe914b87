// SPDX-License-Identifier: Apache-2.0
// Training steps over ranks, for bench/dist.py:
//
//   [mpirun -n N] bench_ranks train MODEL THREADS STEPS ROWS CLASS_AXIS VOCABULARY N_MICRO ZERO
//   bench_ranks overlap MODEL ROUNDS ROWS CLASS_AXIS VOCABULARY BUCKET_BYTES
//   bench_ranks saves MODEL THREADS ROUNDS ROWS CLASS_AXIS VOCABULARY DIRECTORY
//
// MODEL is as bench_step takes it, ROWS those of a batch of all ranks. `train` prints, as JSON:
// milliseconds of every step (the update of one behind N_MICRO train steps), elements that train,
// bytes that ranks send for an update and how often they agree for it, and bytes on rank 0: that
// the library holds after the steps, of them those of the largest plan, of others' contributions to
// sums, and of graphs and lists, and the most that it has held since the first step, which cuts the
// state, beside what a trainer of one process says of such a rank.
//
// `overlap`: two ranks that are threads, over a network that is modelled such that the sums of the
// gradients alone take half the backward pass. Prints milliseconds of ROUNDS in turn: of an eval
// step, of a step without that network and of the update in it, with sums behind the backward pass,
// and with sums that begin within it; and what the sums and those of the last bucket alone take.
//
// `saves`: one process. Prints milliseconds of ROUNDS in turn: of as many steps as a save takes
// (each, without a save and while one goes on), of an asynchronous save's start, of the processor
// in a save alone, and of a copy of what is saved; and those steps' number.
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "problem.h"
#include "session/ranks.h"

enum { N_INPUTS = 2, ROUNDS_MAX = 1000 };

// ---- what is trained ----

typedef struct problem {
    const char *path;
    int n_threads, class_axis, zero;
    int64_t rows, vocabulary, accumulation;
    size_t bucket_bytes; // 0: the session's own
} problem;

typedef struct training {
    ot_artifacts *artifacts;
    ot_session *session;
    ot_tensor *inputs[N_INPUTS];
} training;

static training make_training(const problem *p, ot_comm *comm)
{
    const int64_t rank = ot_comm_rank(comm), n = ot_comm_world_size(comm);
    const ot_hyper mode = {"adam_mode", 0};
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    training t;
    ot_model *model;
    ot_dtype dtype;
    ot_shape scores;

    loss.class_axis = p->class_axis;
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = &optimizer;
    optimizer.hyper = &mode;
    optimizer.n_hyper = 1;
    parallel.comm = comm;
    parallel.zero = p->zero;
    parallel.bucket_bytes = p->bucket_bytes;
    options.parallel = &parallel;
    options.n_threads = p->n_threads;
    must(ot_model_load(p->path, NULL, &model));
    must(ot_model_value_info(model, ot_model_output_name(model, 0), &dtype, &scores));
    must(ot_artifacts_generate(model, &how, &t.artifacts));
    ot_model_destroy(model);
    must(ot_session_create_from_artifacts(t.artifacts, &options, &t.session));
    make_inputs(t.session, &scores, p->class_axis, p->rows * (rank + 1) / n - p->rows * rank / n,
                p->vocabulary, t.inputs);
    return t;
}

static void drop_training(training *t)
{
    ot_tensor_destroy(t->inputs[0]);
    ot_tensor_destroy(t->inputs[1]);
    ot_session_destroy(t->session);
    ot_artifacts_destroy(t->artifacts);
}

static int64_t count_trained(const ot_session *session)
{
    return ot_session_parameters_size(session, OT_PARAMETERS_TRAINABLE);
}

// ---- steps over processes ----

// What a trainer of one process says that a rank takes, on such inputs.
static size_t predict_rank(const problem *p, int n_ranks, const ot_shape *inputs)
{
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_parallel_ranks ranks = OT_PARALLEL_RANKS_INIT;
    ot_memory memory = OT_MEMORY_INIT;
    problem alone = *p;
    ot_trainer *trainer;
    int64_t ignored;
    ot_comm *comm;
    training t;

    ranks.n_ranks = n_ranks;
    ranks.zero = p->zero;
    ranks.accumulation = (int)p->accumulation;
    ranks.bucket_bytes = p->bucket_bytes;
    options.gradient_accumulation_steps = p->accumulation;
    alone.zero = 0;
    must(ot_comm_open("self", NULL, &comm));
    t = make_training(&alone, comm);
    must(ot_trainer_create_from_session(t.session, NULL, &options, &trainer));
    must(ot_trainer_predict(trainer, &ranks, inputs, N_INPUTS, &memory, &ignored));
    ot_trainer_destroy(trainer);
    drop_training(&t);
    ot_comm_destroy(comm);
    return memory.total;
}

static void train(const problem *p, int n_steps)
{
    const ot_allocator allocator = {counting_reallocate, counting_release, NULL};
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_comm_counters before = OT_COMM_COUNTERS_INIT, after = OT_COMM_COUNTERS_INIT;
    ot_memory memory = OT_MEMORY_INIT;
    ot_tensor *loss = NULL;
    ot_trainer *trainer;
    ot_comm *comm;
    training t;
    ot_shape shapes[N_INPUTS];
    size_t held, most, own = 0; // own: inputs, which are the program's
    double sent, agreements;
    bool speaks;

    ot_set_allocator(&allocator);
    must(ot_comm_open("auto", NULL, &comm));
    speaks = ot_comm_rank(comm) == 0;
    t = make_training(p, comm);
    options.gradient_accumulation_steps = p->accumulation;
    must(ot_trainer_create_from_session(t.session, NULL, &options, &trainer));
    if (speaks)
        printf("{\"ms\": [");
    for (int step = 0; step < n_steps; step++) {
        const double began = seconds();

        if (step == 1) { // from then on all is where it stays
            must(ot_comm_get_counters(comm, &before));
            atomic_store(&most_held, atomic_load(&now_held));
        }
        for (int64_t k = 0; k < p->accumulation; k++)
            must(ot_trainer_train_step(trainer, (const ot_tensor *const *)t.inputs, N_INPUTS, &loss,
                                       1));
        if (speaks)
            printf("%s%.4f", step ? ", " : "", (seconds() - began) * 1e3);
    }
    must(ot_comm_get_counters(comm, &after));
    sent = (double)(after.bytes_sent - before.bytes_sent) / (n_steps - 1);
    agreements = (double)(after.agreements - before.agreements) / (n_steps - 1);
    must(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_F64, &sent, 1));
    for (int i = 0; i < N_INPUTS; i++) {
        shapes[i] = *ot_tensor_shape(t.inputs[i]);
        own += ot_tensor_bytes(t.inputs[i]);
    }
    most = atomic_load(&most_held) - own;
    must(ot_trainer_memory(trainer, shapes, N_INPUTS, &memory));
    held = atomic_load(&now_held) - own;
    if (speaks)
        printf("], \"elements\": %" PRId64 ", \"sent\": %.1f, \"agreements\": %.1f, "
               "\"held\": %zu, \"plan\": %zu, \"staging\": %zu, \"structure\": %zu, "
               "\"most\": %zu, \"said\": %zu}\n",
               count_trained(t.session), sent / ot_comm_world_size(comm), agreements, held,
               ot_session_plan_bytes(t.session), memory.staging, memory.structure, most,
               predict_rank(p, ot_comm_world_size(comm), shapes));
    ot_tensor_destroy(loss);
    ot_trainer_destroy(trainer);
    drop_training(&t);
    ot_comm_destroy(comm);
}

// ---- overlap ----

enum { N_RANKS = 2, EVAL = 0, QUICK, BEHIND, WITHIN, UPDATE, N_WAYS }; // UPDATE: of QUICK

typedef struct overlap {
    problem p;
    int n_rounds;
    ot_transport quick[N_RANKS], slow[N_RANKS]; // of the second network
    pthread_barrier_t barrier;
    double seconds_per_byte;
    double ms[N_WAYS][ROUNDS_MAX];
    double bytes, last_bytes; // that a rank sends for all sums, and for those of the last bucket
} overlap;

typedef struct overlap_rank {
    overlap *o;
    int rank;
} overlap_rank;

// One step of a way, by both ranks at once; *update: the part of its update.
static double time_step(overlap *o, training *t, int way, double *update)
{
    ot_tensor *loss = NULL;
    double began, trained;

    pthread_barrier_wait(&o->barrier);
    began = seconds();
    if (way == EVAL) {
        must(ot_session_eval_step(t->session, (const ot_tensor *const *)t->inputs, N_INPUTS, &loss,
                                  1));
    } else {
        ot_session_reset_gradients(t->session);
        if (way != BEHIND)
            ot__session_set_last(t->session);
        must(ot_session_train_step(t->session, (const ot_tensor *const *)t->inputs, N_INPUTS, &loss,
                                   1));
        trained = seconds();
        must(ot_session_update(t->session, 1, NULL));
        *update = (seconds() - trained) * 1e3;
    }
    ot_tensor_destroy(loss);
    pthread_barrier_wait(&o->barrier);
    return (seconds() - began) * 1e3;
}

static double least_of(const double *ms, int n)
{
    double least = ms[0];

    for (int i = 1; i < n; i++)
        least = OT_MIN(least, ms[i]);
    return least;
}

// By both ranks; what counts is the time of the first.
static void time_ways(overlap *o, int rank, training *quick, training *slow, int last)
{
    for (int round = -1; round < o->n_rounds; round++) // the first one warms up
        for (int way = EVAL; way <= last; way++) {
            double update = 0;
            const double ms = time_step(o, way >= BEHIND ? slow : quick, way, &update);

            if (rank == 0)
                o->ms[way][OT_MAX(round, 0)] = ms;
            if (rank == 0 && way == QUICK)
                o->ms[UPDATE][OT_MAX(round, 0)] = update;
        }
}

static double bytes_of_sum(int64_t n_elements)
{
    return 2.0 * (N_RANKS - 1) / N_RANKS * (double)n_elements * sizeof(float);
}

static void measure_buckets(overlap *o, const ot_session *session)
{
    const struct ot__ranks *ranks = session->ranks;

    for (int k = 0; k < ranks->n_buckets; k++)
        o->bytes += bytes_of_sum(ranks->buckets[k].n_elements);
    o->last_bytes = bytes_of_sum(ranks->buckets[ranks->n_buckets - 1].n_elements);
}

static void *run_overlap_rank(void *argument)
{
    const overlap_rank *r = argument;
    overlap *o = r->o;
    ot_comm *quick, *slow;
    training t, u;

    must(ot_comm_create(&o->quick[r->rank], NULL, &quick));
    t = make_training(&o->p, quick);
    time_ways(o, r->rank, &t, NULL, QUICK);
    pthread_barrier_wait(&o->barrier);
    if (r->rank == 0) {
        const double backward = least_of(o->ms[QUICK], o->n_rounds) -
                                least_of(o->ms[UPDATE], o->n_rounds) -
                                least_of(o->ms[EVAL], o->n_rounds);

        measure_buckets(o, t.session);
        o->seconds_per_byte = backward / 1e3 / 2 / o->bytes;
        must(ot__threads_open(
            N_RANKS, &(ot__network){.seconds_per_byte = o->seconds_per_byte, .slow_rank = -1},
            o->slow));
    }
    pthread_barrier_wait(&o->barrier);
    must(ot_comm_create(&o->slow[r->rank], NULL, &slow));
    u = make_training(&o->p, slow);
    time_ways(o, r->rank, &t, &u, WITHIN);
    drop_training(&t);
    drop_training(&u);
    ot_comm_destroy(quick);
    ot_comm_destroy(slow);
    return NULL;
}

static void measure_overlap(const problem *p, int n_rounds)
{
    static const char *const names[] = {"forward", "quick", "behind", "within", "update"};
    static overlap o;
    overlap_rank ranks[N_RANKS];
    pthread_t threads[N_RANKS];

    o.p = *p;
    o.n_rounds = n_rounds;
    must(ot__threads_open(N_RANKS, NULL, o.quick));
    pthread_barrier_init(&o.barrier, NULL, N_RANKS);
    for (int i = 0; i < N_RANKS; i++) {
        ranks[i] = (overlap_rank){&o, i};
        pthread_create(&threads[i], NULL, run_overlap_rank, &ranks[i]);
    }
    for (int i = 0; i < N_RANKS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&o.barrier);
    printf("{\"sums\": %.4f, \"last\": %.4f", o.bytes * o.seconds_per_byte * 1e3,
           o.last_bytes * o.seconds_per_byte * 1e3);
    for (int way = 0; way < N_WAYS; way++) {
        printf(", \"%s\": [", names[way]);
        for (int i = 0; i < n_rounds; i++)
            printf("%s%.4f", i ? ", " : "", o.ms[way][i]);
        printf("]");
    }
    printf("}\n");
}

// ---- steps while a save goes on ----

enum { ALONE, MEANWHILE, START, PROCESSOR, COPY, N_SAVE_TIMES };

static double processor_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void step(training *t)
{
    ot_tensor *loss = NULL;

    ot_session_reset_gradients(t->session);
    must(
        ot_session_train_step(t->session, (const ot_tensor *const *)t->inputs, N_INPUTS, &loss, 1));
    must(ot_session_update(t->session, 1, NULL));
    ot_tensor_destroy(loss);
}

// Until the save's end; its number of steps.
static int step_meanwhile(training *t, ot_shards_job *job)
{
    int n = 0;

    for (int done = 0; !done; n++) {
        step(t);
        must(ot_shards_job_poll(job, &done));
    }
    return n;
}

static double time_copy_of_state(size_t n_bytes)
{
    static char *from, *to;
    double began;

    if (from == NULL) {
        from = malloc(n_bytes);
        to = malloc(n_bytes);
        if (from == NULL || to == NULL)
            exit(1);
        memset(from, 1, n_bytes);
        memset(to, 1, n_bytes);
    }
    began = seconds();
    memcpy(to, from, n_bytes);
    return seconds() - began;
}

static int time_saves(training *t, ot_shards_job *job, const char *path, double *took)
{
    enum { COPIES = 3 }; // values and moments
    ot_shards_save_options options = OT_SHARDS_SAVE_OPTIONS_INIT;
    double began;
    int n;

    options.replaces = 1;
    began = processor_seconds();
    must(ot_session_save_shards(t->session, path, &options));
    took[PROCESSOR] = processor_seconds() - began;
    took[COPY] = time_copy_of_state((size_t)count_trained(t->session) * sizeof(float) * COPIES);
    step(t);
    began = seconds();
    must(ot_session_save_shards_async(t->session, job, path, &options));
    took[START] = seconds() - began;
    n = step_meanwhile(t, job);
    took[MEANWHILE] = (seconds() - began - took[START]) / n;
    began = seconds();
    for (int i = 0; i < n; i++)
        step(t);
    took[ALONE] = (seconds() - began) / n;
    return n;
}

static void measure_saves(const problem *p, int n_rounds, const char *folder)
{
    static const char *const names[] = {"alone", "meanwhile", "start", "processor", "copy"};
    static double took[ROUNDS_MAX][N_SAVE_TIMES];
    static int n_steps[ROUNDS_MAX];
    char *path = ot__path_join(folder, "bench-saves");
    ot_shards_job *job;
    ot_comm *comm;
    training t;

    must(ot_comm_open("self", NULL, &comm));
    t = make_training(p, comm);
    must(ot_shards_job_create(&job));
    step(&t);
    for (int round = -1; round < n_rounds; round++) // the first one warms up
        n_steps[OT_MAX(round, 0)] = time_saves(&t, job, path, took[OT_MAX(round, 0)]);
    printf("{\"steps\": [");
    for (int i = 0; i < n_rounds; i++)
        printf("%s%d", i ? ", " : "", n_steps[i]);
    for (int what = 0; what < N_SAVE_TIMES; what++) {
        printf("], \"%s\": [", names[what]);
        for (int i = 0; i < n_rounds; i++)
            printf("%s%.4f", i ? ", " : "", took[i][what] * 1e3);
    }
    printf("]}\n");
    ot_shards_job_destroy(job);
    drop_training(&t);
    ot_comm_destroy(comm);
    (void)ot__directory_remove(path, NULL);
    ot__free(path);
}

int main(int argc, char **argv)
{
    problem p = {.n_threads = 1, .accumulation = 1};

    if (argc == 10 && strcmp(argv[1], "train") == 0) {
        p.path = argv[2];
        p.n_threads = atoi(argv[3]);
        p.rows = atoi(argv[5]);
        p.class_axis = atoi(argv[6]);
        p.vocabulary = atoi(argv[7]);
        p.accumulation = atoi(argv[8]);
        p.zero = atoi(argv[9]);
        train(&p, OT_MAX(atoi(argv[4]), 2));
        return 0;
    }
    if (argc == 8 && strcmp(argv[1], "overlap") == 0) {
        p.path = argv[2];
        p.rows = atoi(argv[4]);
        p.class_axis = atoi(argv[5]);
        p.vocabulary = atoi(argv[6]);
        p.bucket_bytes = (size_t)atol(argv[7]);
        measure_overlap(&p, OT_MIN(OT_MAX(atoi(argv[3]), 1), (int)ROUNDS_MAX));
        return 0;
    }
    if (argc == 9 && strcmp(argv[1], "saves") == 0) {
        p.path = argv[2];
        p.n_threads = atoi(argv[3]);
        p.rows = atoi(argv[5]);
        p.class_axis = atoi(argv[6]);
        p.vocabulary = atoi(argv[7]);
        measure_saves(&p, OT_MIN(OT_MAX(atoi(argv[4]), 1), (int)ROUNDS_MAX), argv[8]);
        return 0;
    }
    fprintf(stderr, "usage: bench_ranks train|overlap|saves MODEL ...\n");
    return 2;
}
