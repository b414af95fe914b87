// SPDX-License-Identifier: Apache-2.0
// Losses that are no plain means over rows: runs over slices and ranks, which are threads, make the
// updates of one process that has whole batches.
#include "loop_ranks_fixture.h"

#define SCORES                                                                                     \
    "  w = RandomNormal<shape = [6, 3], dtype = 11>()\n"                                           \
    "  s = MatMul(x, w)\n"                                                                         \
    "  y = ReduceMax<axes = [1]>(s)\n"                                                             \
    "  row = Constant<value_ints = [-1]>()\n"                                                      \
    "  flat = Reshape(t, row)\n"                                                                   \
    "  l = Cast<to = 7>(flat)\n"
#define WEIGHTS "<double[3] k = {0.25, 2, 1}>\n"
#define DIFFERENCES                                                                                \
    "  w = RandomNormal<shape = [6, 1], dtype = 11>()\n"                                           \
    "  y = MatMul(x, w)\n"                                                                         \
    "  d = Sub(y, t)\n"                                                                            \
    "  q = Mul(d, d)\n"

static const char of_class_weights[] = HEAD MODEL WEIGHTS
    "{\n" SCORES "  loss = SoftmaxCrossEntropyLoss<reduction = \"mean\">(s, l, k)\n"
    "}\n";
static const char of_ignored_labels[] = HEAD MODEL
    "<double half = {0.5}>\n"
    "{\n" SCORES "  c = SoftmaxCrossEntropyLoss<reduction = \"mean\", ignore_index = 1>(s, l)\n"
    "  loss = Mul(half, c)\n"
    "}\n";
static const char of_both[] =
    HEAD MODEL WEIGHTS "{\n" SCORES "  g = LogSoftmax<axis = 1>(s)\n"
                       "  loss = NegativeLogLikelihoodLoss<reduction = \"mean\", ignore_index = "
                       "1>(g, l, k)\n"
                       "}\n";
static const char of_a_sum[] = HEAD MODEL "{\n" DIFFERENCES "  loss = ReduceSum<keepdims = 0>(q)\n"
                                          "}\n";
static const char of_summed_labels[] = HEAD MODEL WEIGHTS
    "{\n" SCORES "  loss = SoftmaxCrossEntropyLoss<reduction = \"sum\">(s, l, k)\n"
    "}\n";
static const char of_a_quotient[] =
    HEAD MODEL "{\n" DIFFERENCES "  u = ReduceSum<keepdims = 0>(q)\n"
               "  n = Size(y)\n"
               "  m = Cast<to = 11>(n)\n"
               "  loss = Div(u, m)\n"
               "}\n";
static const char of_a_penalty[] =
    HEAD MODEL "<double p = {0.01}>\n"
               "{\n" DIFFERENCES "  e = ReduceMean<keepdims = 0>(q)\n"
               "  v = Mul(w, w)\n"
               "  u = ReduceSum<keepdims = 0>(v)\n"
               "  f = Mul(p, u)\n"
               "  loss = Add(e, f)\n"
               "}\n";
static const char of_a_root[] = HEAD MODEL "{\n" DIFFERENCES "  e = ReduceMean<keepdims = 0>(q)\n"
                                           "  loss = Sqrt(e)\n"
                                           "}\n";
// The first batches are ignored in a part, which is more than a slice, and the last one is as a
// whole.
static const double labels[ROWS] = {1, 1, 1, 0, 2, 0, 1, 2, 1, 1};

typedef struct losses {
    const char *text;
    int64_t slices, accumulation;
    int zero;
    double values[VALUES_MAX], loss;
    int n_values;
} losses;

static void train_losses(ot_comm *comm, void *context)
{
    losses *run = context;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_train_options training = OT_TRAIN_OPTIONS_INIT;
    ot_metrics last = {0};
    world w;

    parallel.comm = comm;
    parallel.zero = run->zero;
    options.parallel = &parallel;
    options.n_threads = 1;
    training.slices = run->slices;
    training.epochs = EPOCHS;
    RANK_MUST(open_world_over(&w, run->text, &options));
    memcpy(w.t, labels, sizeof labels);
    RANK_MUST(train_with(&w, run->accumulation, false, &training, 0, &last));
    RANK_MUST(make_values_whole(w.session));
    if (ot_comm_rank(comm) == 0) {
        outcome out;

        take_values(&w, &out);
        memcpy(run->values, out.values, sizeof out.values);
        run->n_values = out.n_values;
        run->loss = last.loss;
    }
    close_world(&w);
}

static void assert_same_updates(const losses *run, const losses *whole, int n_ranks)
{
    const double tolerance = 1e-12; // f64, other orders of sums

    assert_int_equal(run->n_values, whole->n_values);
    for (int i = 0; i < run->n_values; i++)
        if (!(fabs(run->values[i] - whole->values[i]) <= tolerance))
            fail_msg("%d ranks, zero %d, %d slices: %.17g, expected %.17g: %s", n_ranks, run->zero,
                     (int)run->slices, run->values[i], whole->values[i], run->text);
    if (!(fabs(run->loss - whole->loss) <= tolerance))
        fail_msg("%d ranks, zero %d: the loss is %.17g, expected %.17g: %s", n_ranks, run->zero,
                 run->loss, whole->loss, run->text);
}

static void assert_slices_do_not_matter(const char *text)
{
    for (int64_t accumulation = 1; accumulation <= 2; accumulation++) {
        losses whole = {.text = text, .slices = 1, .accumulation = accumulation}, run = whole;

        run_ranks(1, train_losses, &whole);
        assert_true(whole.n_values > 0 && whole.loss > 0);
        run.slices = 3;
        run_ranks(1, train_losses, &run);
        assert_same_updates(&run, &whole, 1);
        for (run.zero = 0; run.zero <= 3; run.zero++) {
            const int n_ranks = 2 + (int)(run.zero + accumulation) % 2;

            run.slices = run.zero == 1 ? 5 : 0;
            run_ranks(n_ranks, train_losses, &run);
            assert_same_updates(&run, &whole, n_ranks);
        }
    }
}

static void weights_of_classes_count_over_the_whole_batch(void **state)
{
    (void)state;
    assert_slices_do_not_matter(of_class_weights);
}

static void so_do_labels_that_are_not_ignored(void **state)
{
    (void)state;
    assert_slices_do_not_matter(of_ignored_labels);
    assert_slices_do_not_matter(of_both);
}

static void sums_of_slices_are_those_of_batches(void **state)
{
    (void)state;
    assert_slices_do_not_matter(of_a_sum);
    assert_slices_do_not_matter(of_summed_labels);
}

static void a_quotient_by_the_number_of_rows_is_a_mean(void **state)
{
    (void)state;
    assert_slices_do_not_matter(of_a_quotient);
}

static void what_does_not_depend_on_the_batch_counts_once(void **state)
{
    (void)state;
    assert_slices_do_not_matter(of_a_penalty);
}

static void count_unknown(void *context, ot_log_level level, const char *text)
{
    *(int *)context += level == OT_LOG_WARNING &&
                       strstr(text, "the loss is not known to be a mean or a sum") != NULL;
}

static void of_any_other_loss_there_is_a_warning(void **state)
{
    static const char *const known[] = {of_a_quotient, of_both, of_a_sum};
    losses run = {.text = of_a_root, .slices = 2, .accumulation = 1};
    int n_warnings = 0;

    (void)state;
    ot_set_log(count_unknown, &n_warnings);
    run_ranks(2, train_losses, &run);
    assert_int_equal(n_warnings, 1);
    for (size_t i = 0; i < OT_COUNT(known); i++) {
        run.text = known[i];
        run_ranks(2, train_losses, &run);
    }
    ot_set_log(NULL, NULL);
    assert_int_equal(n_warnings, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_classes_count_over_the_whole_batch),
        cmocka_unit_test(so_do_labels_that_are_not_ignored),
        cmocka_unit_test(sums_of_slices_are_those_of_batches),
        cmocka_unit_test(a_quotient_by_the_number_of_rows_is_a_mean),
        cmocka_unit_test(what_does_not_depend_on_the_batch_counts_once),
        cmocka_unit_test(of_any_other_loss_there_is_a_warning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
