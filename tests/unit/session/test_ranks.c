// SPDX-License-Identifier: Apache-2.0
// Sessions over several ranks, which are threads, against one process with the rows of all.
#include "ranks_fixture.h"

// A parameter of one element, and one without axes, which cannot be cut.
static const char scaled[] = HEAD MODEL "<double once = {0.5}>\n"
                                        "{\n"
                                        "  w = RandomNormal<shape = [6, 5], dtype = 11>()\n"
                                        "  v = RandomNormal<shape = [5, 1], dtype = 11>()\n"
                                        "  b = RandomNormal<shape = [1], dtype = 11>()\n"
                                        "  a = MatMul(x, w)\n"
                                        "  h = Tanh(a)\n"
                                        "  s = Mul(h, once)\n"
                                        "  z = MatMul(s, v)\n"
                                        "  y = Add(z, b)\n" LOSS "}\n";

static const char wider[] = HEAD MODEL "{\n"
                                       "  w = RandomNormal<shape = [6, 9], dtype = 11>()\n"
                                       "  v = RandomNormal<shape = [9, 1], dtype = 11>()\n"
                                       "  a = MatMul(x, w)\n"
                                       "  h = Tanh(a)\n"
                                       "  y = MatMul(h, v)\n" LOSS "}\n";

static const char normalised[] =
    HEAD MODEL "<double[6] scale = {1, 1, 1, 1, 1, 1}, double[6] bias = {0, 0, 0, 0, 0, 0},\n"
               " double[6] mean = {0, 0, 0, 0, 0, 0}, double[6] var = {1, 1, 1, 1, 1, 1}>\n"
               "{\n"
               "  v = RandomNormal<shape = [6, 1], dtype = 11>()\n"
               "  n = BatchNormalization<momentum = 0.5>(x, scale, bias, mean, var)\n"
               "  y = MatMul(n, v)\n" LOSS "}\n";

static const char choosing[] =
    HEAD "net (double[N,6] x, int64[N] t) => (double[N,3] y, double loss)\n"
         "{\n"
         "  v = RandomNormal<shape = [6, 3], dtype = 11>()\n"
         "  y = MatMul(x, v)\n"
         "  p, logs = SoftmaxCrossEntropyLoss(y, t)\n"
         "  loss = Identity(p)\n"
         "}\n";

// What a rank does, and what becomes of it.
typedef struct training {
    const char *text;
    int n_ranks, accumulation, zero;
    bool overlaps;
    double expected[ELEMENTS_MAX];
    int64_t n;
} training;

static ot_status train_own(own *w, const training *t, int first, int n)
{
    double loss;

    for (int update = 0; update < STEPS; update++) {
        for (int a = 0; a < t->accumulation; a++) {
            if (t->overlaps && a == t->accumulation - 1)
                ot__session_set_last(w->session);
            OT_TRY(step_own(w, update * t->accumulation + a, first, n, &loss));
        }
        OT_TRY(ot_session_update(w->session, t->accumulation, NULL));
        ot_session_reset_gradients(w->session);
    }
    return OT_OK;
}

// ---- what is cut ----

// What ranks have of every parameter and its gradient, the sum over them.
static void check_parts(ot_comm *comm, const own *w, int64_t n)
{
    const ot_checkpoint *checkpoint = ot_session_checkpoint(w->session);
    int64_t sums[3] = {0}; // values, gradients, moments

    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot__parameter *p = checkpoint->parameters[i];

        sums[0] += ot_tensor_count(p->value);
        sums[1] += ot_tensor_count(p->gradient);
        sums[2] += ot_tensor_count(p->slots[0]);
    }
    RANK_MUST(ot_comm_all_reduce(comm, OT_COMM_SUM, OT_I64, sums, 3));
    for (int k = 0; k < 3; k++) {
        const int64_t expected = zero >= 3 - k ? n : n * ot_comm_world_size(comm);

        RANK_CHECK(sums[k] == expected, "%d: %d elements, expected %d", k, (int)sums[k],
                   (int)expected);
    }
}

// ---- against one process ----

static void train_like_one(ot_comm *comm, void *context)
{
    const training *t = context;
    double found[ELEMENTS_MAX], all[8 * 2];
    double sum = 0;
    own w;

    zero = t->zero;
    RANK_MUST(open_own(&w, t->text, comm, 7));
    RANK_MUST(train_own(&w, t, ROWS * ot_comm_rank(comm), ROWS));
    RANK_CHECK(values_of(&w, found) == t->n, "another number of values");
    for (int64_t i = 0; i < t->n; i++) {
        RANK_CHECK(fabs(found[i] - t->expected[i]) < 1e-9, "value %d is %.17g, expected %.17g",
                   (int)i, found[i], t->expected[i]);
        sum = sum * 1.0000001 + found[i];
    }
    if (ot_comm_world_size(comm) > 1 && !syncs_norms) // there all parameters train
        check_parts(comm, &w, t->n);
    RANK_MUST(ot_comm_all_gather(comm, &sum, sizeof sum, all));
    for (int i = 0; i < ot_comm_world_size(comm); i++)
        RANK_CHECK(memcmp(&all[i], &sum, sizeof sum) == 0, "rank %d has other bits", i);
    close_own(&w);
}

static void train_alone(training *t)
{
    own w;

    assert_int_equal(open_own(&w, t->text, NULL, 7), OT_OK);
    assert_int_equal(train_own(&w, t, 0, ROWS * t->n_ranks), OT_OK);
    t->n = values_of(&w, t->expected);
    close_own(&w);
}

static void compare_with_one(const char *text, int zero_of_ranks)
{
    for (size_t i = 0; i < OT_COUNT(rank_counts); i++)
        for (int accumulation = 1; accumulation <= 3; accumulation += 2)
            for (int overlaps = 0; overlaps < 2; overlaps++) {
                training t = {.text = text,
                              .n_ranks = rank_counts[i],
                              .accumulation = accumulation,
                              .zero = zero_of_ranks,
                              .overlaps = overlaps};

                train_alone(&t);
                run_ranks(t.n_ranks, train_like_one, &t);
            }
}

static void updates_are_those_of_one_process_with_the_rows_of_all(void **state)
{
    (void)state;
    compare_with_one(perceptron, 0);
}

static void with_zero_each_rank_updates_its_share(void **state)
{
    (void)state;
    for (int k = 1; k <= 3; k++) {
        compare_with_one(perceptron, k);
        compare_with_one(scaled, k);
    }
}

static void with_sync_batch_norm_statistics_are_those_of_all_rows(void **state)
{
    (void)state;
    syncs_norms = 1;
    for (int k = 0; k <= 3; k++)
        compare_with_one(normalised, k);
    syncs_norms = 0;
}

// ---- running statistics ----

// Both ranks make one step; the mean of what they make of the statistics is what both have then.
static void average(ot_comm *comm, void *context)
{
    const int rank = ot_comm_rank(comm);
    double before[2][ELEMENTS_MAX], after[ELEMENTS_MAX], found[2][ELEMENTS_MAX], loss;
    int64_t n;
    own w;

    (void)context;
    RANK_MUST(open_own(&w, normalised, comm, 7));
    RANK_MUST(step_own(&w, 0, ROWS * rank, ROWS, &loss));
    n = values_of(&w, before[0]);
    RANK_MUST(ot_comm_all_gather(comm, before[0], sizeof before[0], found));
    RANK_MUST(ot_session_update(w.session, 1, NULL));
    RANK_CHECK(values_of(&w, after) == n, "another number of values");
    for (int i = 0, at = 0; i < ot_session_checkpoint(w.session)->n_parameters; i++) {
        const ot__parameter *p = ot_session_checkpoint(w.session)->parameters[i];

        for (int64_t k = 0; k < ot_tensor_count(p->value); k++, at++)
            RANK_CHECK(p->trainable || fabs(after[at] - (found[0][at] + found[1][at]) / 2) < 1e-15,
                       "%s is %g of %g and %g", p->name, after[at], found[0][at], found[1][at]);
    }
    RANK_CHECK(memcmp(found[0], found[1], (size_t)n * sizeof(double)) != 0, "nothing to average");
    close_own(&w);
}

static void running_statistics_are_averaged(void **state)
{
    (void)state;
    run_ranks(2, average, NULL);
}

// ---- failures ----

static ot_status choose_step(own *w, int64_t label)
{
    int64_t labels[ROWS] = {0, label};
    ot_tensor *inputs[2], *out = NULL;
    ot_status st;

    for (int i = 0; i < ROWS * FEATURES; i++)
        w->x[i] = number_at((uint32_t)i);
    OT_TRY(ot_tensor_wrap(OT_F64, &OT_SHAPE(ROWS, FEATURES), w->x, ROWS * FEATURES * sizeof(double),
                          &inputs[0]));
    OT_TRY(ot_tensor_wrap(OT_I64, &OT_SHAPE(ROWS), labels, sizeof labels, &inputs[1]));
    st = ot_session_train_step(w->session, (const ot_tensor *const *)inputs, 2, &out, 1);
    ot_tensor_destroy(out);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    return st;
}

// A bad label is found while the step runs, a bad shape before.
static void fail_on_one(ot_comm *comm, void *context)
{
    const bool is_last = ot_comm_rank(comm) == ot_comm_world_size(comm) - 1;
    const char *expected = "rank 2: ";
    ot_status st;
    own w;

    zero = *(const int *)context;
    RANK_MUST(open_own(&w, choosing, comm, 7));
    for (int k = 0; k < 3; k++) {
        ot__session_set_last(w.session);
        st = choose_step(&w, is_last ? 3 : 1);
        RANK_CHECK(st == OT_ERR_INVALID, "%s", ot_status_name(st));
        RANK_CHECK(strncmp(ot_error_message(), expected, strlen(expected)) == 0, "%s",
                   ot_error_message());
        RANK_CHECK(strstr(ot_error_message(), "3") != NULL, "%s", ot_error_message());
        st = ot_session_train_step(w.session, NULL, is_last ? 2 : 0, NULL, 0);
        RANK_CHECK(st == OT_ERR_INVALID, "%s", ot_status_name(st));
        RANK_MUST(choose_step(&w, 1));
        RANK_MUST(ot_session_update(w.session, 1, NULL));
        st = ot_session_update(w.session, is_last ? 0 : 1, NULL);
        RANK_CHECK(st == OT_ERR_INVALID, "%s", ot_status_name(st));
        st = ot_session_update(w.session, is_last ? 2 : 1, NULL);
        RANK_CHECK(st == OT_ERR_MISMATCH, "%s", ot_status_name(st));
        RANK_CHECK(strstr(ot_error_message(), "the number of micro-batches: 1 and 2") != NULL, "%s",
                   ot_error_message());
    }
    close_own(&w);
}

static void what_fails_on_one_rank_fails_on_all_and_the_next_call_works(void **state)
{
    (void)state;
    for (int k = 0; k <= 3; k++)
        run_ranks(3, fail_on_one, &k);
}

static void differ(ot_comm *comm, void *context)
{
    const int rank = ot_comm_rank(comm);
    double mine[ELEMENTS_MAX], all[2][ELEMENTS_MAX];
    ot_status st;
    own w;

    (void)context;
    st = open_own(&w, rank == 0 ? perceptron : wider, comm, 7);
    RANK_CHECK(st == OT_ERR_MISMATCH, "%s", ot_status_name(st));
    RANK_CHECK(strstr(ot_error_message(), "ranks 0 and 1 differ in the training model") != NULL,
               "%s", ot_error_message());
    close_own(&w);
    n_threads = rank == 0 ? 1 : -1;
    st = open_own(&w, perceptron, comm, 7);
    n_threads = 1;
    RANK_CHECK(st == OT_ERR_INVALID, "%s", ot_status_name(st));
    RANK_CHECK(strcmp(ot_error_message(), "rank 1: -1 threads") == 0, "%s", ot_error_message());
    close_own(&w);
    RANK_MUST(open_own(&w, perceptron, comm, 7 + (uint64_t)rank)); // other values
    memset(mine, 0, sizeof mine);
    (void)values_of(&w, mine);
    RANK_MUST(ot_comm_all_gather(comm, mine, sizeof mine, all));
    RANK_CHECK(memcmp(all[0], all[1], sizeof mine) == 0, "the values stayed different");
    close_own(&w);
}

static void sessions_that_differ_are_refused_and_values_are_those_of_rank_0(void **state)
{
    (void)state;
    run_ranks(2, differ, NULL);
}

// ---- gradients that go on ----

// Gradients that no update resets, as one process has them; the learning rate is 0.
static ot_status accumulate_on(own *w, int first, int n, double *out)
{
    ot_checkpoint *checkpoint = ot_session_checkpoint(w->session);
    double loss;

    OT_TRY(ot_session_set_learning_rate(w->session, 0));
    for (int i = 0; i < 3; i++) {
        OT_TRY(step_own(w, i, first, n, &loss));
        OT_TRY(ot_session_update(w->session, i + 1, NULL));
        OT_TRY(ot_session_update(w->session, 1, NULL));
    }
    for (int i = 0; i < checkpoint->n_parameters; i++) {
        const ot_tensor *gradient = checkpoint->parameters[i]->gradient;

        for (int64_t k = 0; gradient != NULL && k < ot_tensor_count(gradient); k++)
            *out++ = ot__tensor_get_f64(gradient, k);
    }
    return OT_OK;
}

static void go_on(ot_comm *comm, void *context)
{
    const double *expected = context;
    double found[ELEMENTS_MAX] = {0};
    own w;

    RANK_MUST(open_own(&w, wider, comm, 7));
    RANK_MUST(accumulate_on(&w, ROWS * ot_comm_rank(comm), ROWS, found));
    for (int i = 0; i < ELEMENTS_MAX; i++)
        RANK_CHECK(fabs(found[i] - expected[i]) < 1e-12, "element %d is %g, expected %g", i,
                   found[i], expected[i]);
    close_own(&w);
}

static void gradients_that_are_not_reset_go_on_after_an_update(void **state)
{
    double expected[ELEMENTS_MAX] = {0};
    own w;

    (void)state;
    assert_int_equal(open_own(&w, wider, NULL, 7), OT_OK);
    assert_int_equal(accumulate_on(&w, 0, 3 * ROWS, expected), OT_OK);
    close_own(&w);
    run_ranks(3, go_on, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_one_process_with_the_rows_of_all),
        cmocka_unit_test(with_zero_each_rank_updates_its_share),
        cmocka_unit_test(with_sync_batch_norm_statistics_are_those_of_all_rows),
        cmocka_unit_test(running_statistics_are_averaged),
        cmocka_unit_test(what_fails_on_one_rank_fails_on_all_and_the_next_call_works),
        cmocka_unit_test(sessions_that_differ_are_refused_and_values_are_those_of_rank_0),
        cmocka_unit_test(gradients_that_are_not_reset_go_on_after_an_update),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
