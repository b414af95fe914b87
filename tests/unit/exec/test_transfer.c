// SPDX-License-Identifier: Apache-2.0
// Buckets that are cut over ranks: the order of what a step does with them, the nodes for it, and a
// plan of these, which asks for it and reads and makes tensors in the memory of buckets.
#include "evaluate.h"
#include "exec/exec.h"

enum { N = 1024, BUCKETS = 3, CALLS_MAX = 32 };

// A gradient of w2 needs no value, that of w1 needs w2, that of w3 both.
static const char text[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
    "g (float[1024] x, float[1024] w1, float[1024] w2, float[1024] w3, float[1024] b1,"
    "   float[1024] b2, float[1024] b3, bool[1] reset) =>"
    "  (float[1024] y, bool[1] done1, bool[1] done2, bool[1] done3) {"
    "  f3 = Flatten <axis = 0> (w3)" // a view, and one of that
    "  v3 = Squeeze (f3)"
    "  x1 = Add (x, v3)"
    "  h = Mul (x1, w1)"
    "  y = Mul (h, w2)"
    "  g2 = Mul (h, y)"
    "  done2 = com.microsoft.InPlaceAccumulatorV2 (b2, g2, reset)"
    "  gh = Mul (y, w2)"
    "  g1 = Mul (x1, gh)"
    "  done1 = com.microsoft.InPlaceAccumulatorV2 (b1, g1, reset)"
    "  g3 = Mul (gh, w1)"
    "  done3 = com.microsoft.InPlaceAccumulatorV2 (b3, g3, reset)"
    "}";
enum { X, W1, W2, W3, B1, B2, B3, RESET, INPUTS };
static const int of_parameter[INPUTS] = {-1, 1, 0, 2, -1, -1, -1, -1};
static const int of_accumulator[INPUTS] = {-1, -1, -1, -1, 1, 0, 2, -1};
static const int64_t offset[INPUTS] = {0, 0, 0, 16, 0, 0, 16, 0}; // of bucket 2: behind a gap
static const int64_t n_elements[BUCKETS] = {N, N, N + 32};
static const int outputs[] = {0};

static const ot__transfer_buckets buckets = {of_parameter, of_accumulator, offset, n_elements,
                                             BUCKETS,      outputs,        1,      false};
// The backward pass begins with bucket 0, which is still there, and gathers bucket 1 again. Sums
// wait for the next gather.
static const ot__transfer expected[] = {
    {OT_TRANSFER_GATHER_START, 2, false},  {OT_TRANSFER_GATHER_START, 1, false},
    {OT_TRANSFER_GATHER_WAIT, 2, false},   {OT_TRANSFER_GATHER_START, 0, false},
    {OT_TRANSFER_GATHER_WAIT, 1, false},   {OT_TRANSFER_GATHER_START, 1, true},
    {OT_TRANSFER_GATHER_WAIT, 0, false},   {OT_TRANSFER_GATHER_WAIT, 1, true},
    {OT_TRANSFER_SCATTER_START, 0, false}, {OT_TRANSFER_SCATTER_START, 1, false},
    {OT_TRANSFER_SCATTER_WAIT, 0, false},  {OT_TRANSFER_SCATTER_START, 2, false},
    {OT_TRANSFER_SCATTER_WAIT, 1, false},  {OT_TRANSFER_SCATTER_WAIT, 2, false},
};

// ---- what a plan asks for ----

typedef struct asked {
    ot_transfer what[CALLS_MAX];
    int64_t bucket[CALLS_MAX];
    int n;
    const float *values[BUCKETS]; // that buckets are gathered with
    float sums[BUCKETS][N + 32];
} asked;

static ot_status answer(void *context, ot_transfer what, int64_t bucket, void *buffer)
{
    asked *a = context;
    const size_t n_bytes = (size_t)n_elements[bucket] * sizeof(float);

    assert_true(a->n < CALLS_MAX);
    a->what[a->n] = what;
    a->bucket[a->n++] = bucket;
    if (what == OT_TRANSFER_GATHER_WAIT) {
        memset(buffer, 0xff, n_bytes); // what no parameter has is not read
        memcpy((float *)buffer + (bucket == 2 ? 16 : 0), a->values[bucket], N * sizeof(float));
    }
    if (what == OT_TRANSFER_SCATTER_START)
        memcpy(a->sums[bucket], buffer, n_bytes);
    return OT_OK;
}

static ot_model *make_model(ot__transfer **transfers, int *n)
{
    ot_model *model = read_prepared(text);

    assert_ok(ot__list_transfers(model->graph, &buckets, transfers, n));
    assert_ok(ot__pass_transfer(model->graph, &buckets, *transfers, *n));
    assert_ok(ot__graph_verify(model->graph));
    return model;
}

// ---- tests ----

static void one_bucket_is_gathered_ahead_and_one_is_summed_behind(void **state)
{
    ot_model *model = read_prepared(text);
    ot__transfer *transfers;
    int n;

    (void)state;
    assert_ok(ot__list_transfers(model->graph, &buckets, &transfers, &n));
    assert_int_equal(n, OT_COUNT(expected));
    for (int k = 0; k < n; k++) {
        assert_int_equal(transfers[k].what, expected[k].what);
        assert_int_equal(transfers[k].bucket, expected[k].bucket);
        assert_int_equal(transfers[k].is_backward, expected[k].is_backward);
    }
    ot__free(transfers);
    ot_model_destroy(model);
}

static void a_plan_asks_in_that_order_and_computes_with_what_it_gets(void **state)
{
    static float x[N], w[BUCKETS][N];
    static asked a;
    const bool reset = true;
    const ot_exchange exchange = {.context = &a, .transfer = answer};
    const ot_step step = {.training = true, .exchange = &exchange};
    const ot__plan_options options = {.n_threads = 1};
    ot__transfer *transfers;
    ot__plan *plan;
    ot_model *model;
    const float *y;
    int n;

    (void)state;
    model = make_model(&transfers, &n);
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i % 7) - 3;
        for (int k = 0; k < BUCKETS; k++)
            w[k][i] = (float)((i + k) % 5) - 2;
    }
    for (int k = 0; k < BUCKETS; k++)
        a.values[k] = w[k];
    assert_ok(ot__plan_create(model->graph, &options, NULL, NULL, &plan));
    for (int i = 0; i < INPUTS; i++) // what is gathered or summed is not read here
        ot__plan_bind_input(plan, i, 0,
                            i == X       ? (const void *)x
                            : i == RESET ? &reset
                                         : (const void *)&a);
    assert_ok(ot__plan_run(plan, &step));
    assert_int_equal(a.n, OT_COUNT(expected));
    for (int k = 0; k < a.n; k++) {
        assert_int_equal(a.what[k], expected[k].what);
        assert_int_equal(a.bucket[k], expected[k].bucket);
    }
    y = ot__plan_output(plan, 0)->data;
    for (int i = 0; i < N; i++) {
        const float x1 = x[i] + w[2][i], h = x1 * w[1][i], gh = h * w[0][i] * w[0][i];

        assert_true(y[i] == h * w[0][i]);
        assert_true(a.sums[0][i] == h * y[i]);
        assert_true(a.sums[1][i] == x1 * gh);
        assert_true(a.sums[2][16 + i] == gh * w[1][i]);
    }
    for (int i = 0; i < 16; i++)
        assert_true(a.sums[2][i] == 0 && a.sums[2][16 + N + i] == 0);
    // y, x1, gh, and two buckets of either kind at most three of which are needed together;
    // gradients have no memory beside them.
    assert_true(ot__plan_bytes(plan) < (6 * N + N / 2) * sizeof(float));
    ot__plan_destroy(plan);
    ot__free(transfers);
    ot_model_destroy(model);
}

static void a_parameter_that_is_an_output_cannot_be_gathered(void **state)
{
    ot_model *model = read_prepared(text);
    ot__transfer *transfers;
    int n;

    (void)state;
    assert_ok(ot__list_transfers(model->graph, &buckets, &transfers, &n));
    assert_true(ot__graph_add_output(model->graph, model->graph->inputs[W3]));
    assert_fails(ot__pass_transfer(model->graph, &buckets, transfers, n), OT_ERR_UNSUPPORTED,
                 "parameter 'w3' is an output of the model");
    ot__free(transfers);
    ot_model_destroy(model);
}

static void every_failing_allocation_is_reported_and_nothing_leaks(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t k = 0; k < 400 && st == OT_ERR_NO_MEMORY; k++) {
        ot_model *model = read_prepared(text);
        ot__transfer *transfers;
        int n;

        ot__alloc_fail_after(k);
        st = ot__list_transfers(model->graph, &buckets, &transfers, &n);
        OT_THEN(st, ot__pass_transfer(model->graph, &buckets, transfers, n));
        ot__alloc_fail_after(-1);
        ot__free(transfers);
        ot_model_destroy(model);
    }
    assert_ok(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bucket_is_gathered_ahead_and_one_is_summed_behind),
        cmocka_unit_test(a_plan_asks_in_that_order_and_computes_with_what_it_gets),
        cmocka_unit_test(a_parameter_that_is_an_output_cannot_be_gathered),
        cmocka_unit_test(every_failing_allocation_is_reported_and_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
