// SPDX-License-Identifier: Apache-2.0
// Runs over several ranks, which are threads, against one process with as many slices: the same
// bits.
#include <dirent.h>

#include "loop_ranks_fixture.h"

// ---- bits ----

static void assert_ranks_do_not_matter(const char *text)
{
    static const int64_t slices[] = {4, 5, 8}, accumulations[] = {1, 3};
    static const int ranks[] = {2, 3, 4};

    for (size_t g = 0; g < OT_COUNT(slices); g++)
        for (size_t a = 0; a < OT_COUNT(accumulations); a++) {
            plan p = {.text = text,
                      .slices = slices[g],
                      .accumulation = accumulations[a],
                      .epochs = EPOCHS,
                      .bad_rank = -1};
            outcome one;

            run_plan(&p, 1);
            assert_runs_well(&p);
            one = p.outcomes[0];
            assert_true(one.n_values > 10 && one.losses[0] > 0 && one.losses[1] > 0);
            for (size_t n = 0; n < OT_COUNT(ranks); n++) {
                run_plan(&p, ranks[n]);
                assert_runs_well(&p);
                assert_same_outcome(&p.outcomes[0], &one);
            }
        }
}

static void a_perceptron_has_the_same_bits_on_any_number_of_ranks(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(perceptron);
}

static void so_have_running_statistics(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(convolution);
}

static double largest_difference(const outcome *a, const outcome *b)
{
    double most = 0;

    for (int i = 0; i < a->n_values; i++)
        most = fmax(most, fabs(a->values[i] - b->values[i]));
    return most;
}

// With uneven slices, too, and several batches a step.
static void statistics_of_all_ranks_are_those_of_whole_batches(void **state)
{
    static const struct {
        int64_t batch_size, accumulation;
        int n_ranks;
    } runs[] = {
        {4, 1, 2}, {4, 3, 2}, {5, 1, 2}, {5, 2, 3}, {10, 1, 4},
        {4, 1, 3}, {4, 3, 4}, {3, 2, 4}}; // ranks without a row of the last batch, or of any
    const double tolerance = 1e-12;       // f64, other orders of sums

    (void)state;
    for (size_t i = 0; i < OT_COUNT(runs); i++)
        for (int zero = 0; zero <= 3; zero++) {
            plan p = {.text = convolution,
                      .slices = 1,
                      .accumulation = runs[i].accumulation,
                      .epochs = EPOCHS,
                      .batch_size = runs[i].batch_size,
                      .bad_rank = -1};
            outcome one;

            run_plan(&p, 1);
            assert_runs_well(&p);
            one = p.outcomes[0];
            p.slices = 0;
            p.zero = zero;
            run_plan(&p, runs[i].n_ranks);
            assert_runs_well(&p);
            assert_true(largest_difference(&p.outcomes[0], &one) > 1e-4);
            p.syncs_norms = true;
            run_plan(&p, runs[i].n_ranks);
            assert_runs_well(&p);
            assert_int_equal(p.outcomes[0].n_values, one.n_values);
            if (!(largest_difference(&p.outcomes[0], &one) <= tolerance))
                fail_msg("run %d, zero %d: a parameter is off by %g", (int)i, zero,
                         largest_difference(&p.outcomes[0], &one));
            assert_float_equal(p.outcomes[0].losses[0], one.losses[0], tolerance);
        }
}

static void so_has_a_recurrent_layer(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(recurrent);
}

static void so_have_masks(void **state)
{
    (void)state;
    assert_ranks_do_not_matter(dropped);
}

static void unless_said_there_are_as_many_slices_as_ranks(void **state)
{
    plan p = {.text = dropped, .slices = 3, .accumulation = 1, .epochs = EPOCHS, .bad_rank = -1};
    outcome one;

    (void)state;
    run_plan(&p, 1);
    one = p.outcomes[0];
    p.slices = 0;
    run_plan(&p, 3);
    assert_runs_well(&p);
    assert_same_outcome(&p.outcomes[0], &one);
}

// ---- what goes wrong on one rank ----

static void an_error_on_one_rank_is_that_of_all(void **state)
{
    plan p = {.text = convolution, .slices = 3, .accumulation = 3, .epochs = 2, .bad_rank = 1};

    (void)state;
    p.bad_target = (double)NAN;
    assert_fails(&p, 3, OT_ERR_INVALID, "rank 1: ");
    p.bad_target = 1e200;
    assert_fails(&p, 3, OT_ERR_NOT_FINITE, "rank 1: the loss is inf at batch 1 of epoch 1");
    assert_int_equal(p.outcomes[0].n_steps, 0);
    // In a slice before the last one of the rank, while others begin sums in theirs.
    p = (plan){.text = perceptron, .slices = 4, .accumulation = 1, .epochs = 2};
    for (p.bad_rank = 0; p.bad_rank < 2; p.bad_rank++) {
        p.bad_row = BATCH + 2 * p.bad_rank;
        p.bad_target = (double)NAN;
        assert_fails(&p, 2, OT_ERR_INVALID, p.bad_rank == 0 ? "rank 0: " : "rank 1: ");
        p.bad_target = 1e200;
        assert_fails(&p, 2, OT_ERR_NOT_FINITE, "the loss is inf at batch 2 of epoch 1");
    }
}

static void statistics_of_all_ranks_need_one_slice_of_each(void **state)
{
    plan p = {.text = convolution,
              .slices = 4,
              .accumulation = 1,
              .epochs = 1,
              .batch_size = 10,
              .bad_rank = 1,
              .syncs_norms = true};

    (void)state;
    assert_fails(&p, 2, OT_ERR_INVALID, "slices: 4, expected 2, one for each process");
    assert_fails(&p, 1, OT_ERR_INVALID, "slices: 4, expected 1");
    p.slices = 0;
    p.batch_size = 5;
    p.bad_target = (double)NAN;
    assert_fails(&p, 3, OT_ERR_INVALID, "rank 1: ");
    p.bad_target = 1e200;
    assert_fails(&p, 3, OT_ERR_NOT_FINITE, "rank 1: the loss is inf");
}

static void ranks_that_would_not_do_the_same_are_told(void **state)
{
    plan p = {.text = perceptron, .slices = 3, .accumulation = 1, .epochs = 2, .bad_rank = 1};

    (void)state;
    p.has_other_row = true;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in the training rows");
    p.has_other_row = false;
    p.bad_epochs = 3;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in epochs: 2 and 3 (training)");
    p.bad_epochs = 0;
    p.bad_slices = 4;
    assert_fails(&p, 2, OT_ERR_MISMATCH, "ranks 0 and 1 differ in slices: 3 and 4 (training)");
    p.bad_slices = 1;
    assert_fails(&p, 2, OT_ERR_INVALID,
                 "rank 1: slices: 1, expected at least 1 for each of the 2 processes");
    p.bad_slices = 100000;
    assert_fails(&p, 2, OT_ERR_INVALID, "rank 1: slices: 100000, expected 1 to 32768, or 0");
    p.bad_slices = 0;
    p.batch_size = 5; // two batches of ten rows, as with 6
    p.bad_batch_size = 6;
    assert_fails(&p, 2, OT_ERR_MISMATCH,
                 "ranks 0 and 1 differ in the batch size: 5 and 6 (training)");
}

static void without_memory_on_one_rank_all_fail_alike(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++)
        for (int64_t slices = 2; slices <= 5; slices += 3) { // sums begin in last slices
            plan p = {.text = convolution,
                      .slices = slices,
                      .accumulation = slices == 2 ? 2 : 1,
                      .epochs = 1,
                      .batch_size = slices == 2 ? 0 : 5,
                      .zero = zero};

            lack_memory(&p);
            p.syncs_norms = slices == 2;
            if (p.syncs_norms)
                lack_memory(&p);
        }
}

// ---- threads ----

// Of this process; 0: the system does not say.
static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    for (const struct dirent *e; tasks != NULL && (e = readdir(tasks)) != NULL;)
        n += e->d_name[0] != '.';
    if (tasks != NULL)
        closedir(tasks);
    return n;
}

typedef struct threads_plan {
    int n_expected, zero;
} threads_plan;

static void train_wide(ot_comm *comm, void *context)
{
    static const char wide[] = HEAD MODEL "{\n"
                                          "  w = RandomNormal<shape = [6, 20000], dtype = 11>()\n"
                                          "  v = RandomNormal<shape = [20000, 1], dtype = 11>()\n"
                                          "  a = MatMul(x, w)\n"
                                          "  h = Tanh(a)\n"
                                          "  y = MatMul(h, v)\n" LOSS "}\n";
    const threads_plan *p = context;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_train_options training = OT_TRAIN_OPTIONS_INIT;
    world w;

    ot__parallel_set(4); // what the machine would have
    parallel.comm = comm;
    parallel.zero = p->zero;
    options.parallel = &parallel;
    options.n_threads = 1;
    training.slices = 4; // sums wait, and a slice of some batches has no row
    training.epochs = 1;
    RANK_MUST(open_world_over(&w, wide, &options));
    w.batch_size = 5;
    RANK_MUST(train_with(&w, 1, false, &training, 0, NULL));
    RANK_CHECK(count_threads() <= p->n_expected, "%d threads, expected %d", count_threads(),
               p->n_expected);
    RANK_CHECK(ot__parallel_max() == (OT_WITH_OPENMP ? 4 : 1), "%d", ot__parallel_max());
    close_world(&w);
}

static void all_of_a_rank_runs_in_its_number_of_threads(void **state)
{
    (void)state;
    for (int zero = 0; zero <= 3; zero++)
        run_ranks(2, train_wide, &(threads_plan){count_threads() + 2, zero});
}

// ---- when sums begin ----

static void step_of_slice(ot_comm *comm, void *context)
{
    const double *weights = context;
    const int rank = ot_comm_rank(comm);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_tensor *loss = NULL;
    world w;

    parallel.comm = comm;
    parallel.bucket_bytes = 1; // one for each parameter
    options.parallel = &parallel;
    RANK_MUST(open_world_over(&w, perceptron, &options));
    RANK_MUST(ot__session_set_slices(w.session, 2, rank, rank + 1));
    RANK_CHECK(ot__session_overlaps(w.session), "rank %d", rank);
    for (int n = 0; n < 2; n++) { // the first update finds how parameters lie on all ranks
        ot__session_begin_slice(w.session, rank);
        RANK_MUST(ot__session_weigh(w.session, weights[rank]));
        ot__session_set_last(w.session);
        RANK_MUST(
            ot_session_train_step(w.session, (const ot_tensor *const *)w.tensors, 2, &loss, 1));
        for (int k = 0; k < w.session->ranks->n_buckets; k++)
            RANK_CHECK(w.session->ranks->buckets[k].is_started == (n > 0 && weights[rank] > 0.75),
                       "rank %d, bucket %d, update %d", rank, k, n);
        RANK_MUST(ot__session_end_slice(w.session));
        RANK_MUST(ot__session_update(w.session, OT_OK, 1, NULL));
        ot__session_reset_gradients(w.session);
    }
    ot_tensor_destroy(loss);
    close_world(&w);
}

static void sums_begin_in_the_last_step_of_a_slice_that_counts_once(void **state)
{
    static double weights[][2] = {{1, 1}, {1, 0.5}};

    (void)state;
    run_ranks(2, step_of_slice, weights[0]);
    run_ranks(2, step_of_slice, weights[1]);
}

// Of five slices three are of one rank: the sums of the first two wait meanwhile.
static void steps_of_slices(ot_comm *comm, void *context)
{
    const int first = ot_comm_rank(comm) == 0 ? 0 : 2, last = first == 0 ? 2 : 5;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_tensor *loss = NULL;
    world w;

    (void)context;
    parallel.comm = comm;
    parallel.bucket_bytes = 1;
    options.parallel = &parallel;
    RANK_MUST(open_world_over(&w, perceptron, &options));
    RANK_MUST(ot__session_set_slices(w.session, 5, first, last));
    for (int n = 0; n < 2; n++) {
        RANK_CHECK(ot__session_overlaps(w.session) == (n > 0), "rank %d", ot_comm_rank(comm));
        for (int slice = first; slice < last; slice++) {
            const bool starts = n > 0 && slice == last - 1;

            ot__session_begin_slice(w.session, slice);
            if (starts)
                ot__session_set_last(w.session);
            RANK_MUST(
                ot_session_train_step(w.session, (const ot_tensor *const *)w.tensors, 2, &loss, 1));
            for (int k = 0; k < w.session->ranks->n_buckets; k++)
                RANK_CHECK(w.session->ranks->buckets[k].is_started == starts, "slice %d, update %d",
                           slice, n);
            RANK_MUST(ot__session_end_slice(w.session));
        }
        RANK_MUST(ot__session_update(w.session, OT_OK, 1, NULL));
        ot__session_reset_gradients(w.session);
    }
    ot_tensor_destroy(loss);
    close_world(&w);
}

static void sums_begin_in_the_last_slice_of_a_rank(void **state)
{
    (void)state;
    run_ranks(2, steps_of_slices, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perceptron_has_the_same_bits_on_any_number_of_ranks),
        cmocka_unit_test(so_have_running_statistics),
        cmocka_unit_test(statistics_of_all_ranks_are_those_of_whole_batches),
        cmocka_unit_test(statistics_of_all_ranks_need_one_slice_of_each),
        cmocka_unit_test(so_has_a_recurrent_layer),
        cmocka_unit_test(so_have_masks),
        cmocka_unit_test(unless_said_there_are_as_many_slices_as_ranks),
        cmocka_unit_test(an_error_on_one_rank_is_that_of_all),
        cmocka_unit_test(ranks_that_would_not_do_the_same_are_told),
        cmocka_unit_test(without_memory_on_one_rank_all_fail_alike),
        cmocka_unit_test(all_of_a_rank_runs_in_its_number_of_threads),
        cmocka_unit_test(sums_begin_in_the_last_step_of_a_slice_that_counts_once),
        cmocka_unit_test(sums_begin_in_the_last_slice_of_a_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
