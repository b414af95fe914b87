// SPDX-License-Identifier: Apache-2.0
// Parameters are gathered for the time in which they are read, and gradients summed as soon as they
// are complete: also where the backward pass makes values again, of parameters far from those whose
// gradients are made then. What comes out is that of ranks that have all values whole.
#include "trained.h"

enum { N_RANKS = 2, ROWS = 4, CHANNELS = 6, UPDATES = 2, SGD = 0 };

// Blocks with a sum around them, whose activations are most of what is alive.
#define BLOCK(x, y, k)                                                                             \
    "  w" k "a = RandomNormal<shape = [6, 6, 3, 3], scale = 0.1, seed = 1" k ".0, dtype = 1>()\n"  \
    "  w" k "b = RandomNormal<shape = [6, 6, 3, 3], scale = 0.1, seed = 2" k ".0, dtype = 1>()\n"  \
    "  w" k "c = RandomNormal<shape = [6, 6, 1, 1], scale = 0.5, seed = 3" k ".0, dtype = 1>()\n"  \
    "  c" k "a = Conv<pads = [1, 1, 1, 1]>(" x ", w" k "a)\n"                                      \
    "  n" k "a = BatchNormalization(c" k "a, scale" k "a, shift" k "a, mean" k "a, var" k "a)\n"   \
    "  r" k "a = Relu(n" k "a)\n"                                                                  \
    "  c" k "b = Conv<pads = [1, 1, 1, 1]>(r" k "a, w" k "b)\n"                                    \
    "  n" k "b = BatchNormalization(c" k "b, scale" k "b, shift" k "b, mean" k "b, var" k "b)\n"   \
    "  c" k "c = Conv(" x ", w" k "c)\n"                                                           \
    "  n" k "c = BatchNormalization(c" k "c, scale" k "c, shift" k "c, mean" k "c, var" k "c)\n"   \
    "  s" k " = Add(n" k "b, n" k "c)\n"                                                           \
    "  " y " = Relu(s" k ")\n"
#define NORM(k)                                                                                    \
    "float[6] scale" k " = {1, 1, 1, 1, 1, 1}, float[6] shift" k " = {0, 0.1, 0.2, 0, 0.1, 0},\n"  \
    " float[6] mean" k " = {0, 0, 0, 0, 0, 0}, float[6] var" k " = {1, 1, 1, 1, 1, 1}"

static const char network[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "net (float[N,6,8,8] x) => (float[N,6] y)\n"
    "<" NORM("0") ", " NORM("1a") ", " NORM("1b") ", " NORM("1c") ", " NORM("2a") ", " NORM(
        "2b") ", " NORM("2c") ", " NORM("3a") ", " NORM("3b") ", " NORM("3c") ">\n"
                                                                              "{\n"
                                                                              "  w0 = "
                                                                              "RandomNormal<shape "
                                                                              "= [6, 6, 1, 1], "
                                                                              "scale = 0.5, seed = "
                                                                              "7.0, dtype = 1>()\n"
                                                                              "  c0 = Conv(x, w0)\n"
                                                                              "  n0 = "
                                                                              "BatchNormalization("
                                                                              "c0, scale0, shift0, "
                                                                              "mean0, var0)\n"
                                                                              "  x1 = "
                                                                              "Relu(n0)\n" BLOCK(
                                                                                  "x1", "x2",
                                                                                  "1") BLOCK("x2",
                                                                                             "x3",
                                                                                             "2")
                                                                                  BLOCK(
                                                                                      "x3", "x4",
                                                                                      "3") "  p = "
                                                                                           "GlobalA"
                                                                                           "verageP"
                                                                                           "ool(x4)"
                                                                                           "\n"
                                                                                           "  y = "
                                                                                           "Flatten"
                                                                                           "(p)\n"
                                                                                           "}\n";

typedef struct run {
    int zero;
    ot_artifacts *artifacts[N_RANKS];
} run;

static ot_status train_batch(ot_session *session, int rank, int batch)
{
    ot_tensor *inputs[2] = {NULL, NULL}, *loss = NULL;
    ot_status st = make_rows(session, 0, batch, rank * ROWS, ROWS, 0, &inputs[0]);

    OT_THEN(st, make_rows(session, 1, batch, rank * ROWS, ROWS, CHANNELS, &inputs[1]));
    OT_THEN(st, ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &loss, 1));
    OT_THEN(st, ot_session_optimizer_step(session));
    ot_session_reset_gradients(session);
    ot_tensor_destroy(inputs[0]);
    ot_tensor_destroy(inputs[1]);
    ot_tensor_destroy(loss);
    return st;
}

static void train_rank(ot_comm *comm, void *context)
{
    const run *r = context;
    const int rank = ot_comm_rank(comm);
    ot_session_options how = OT_SESSION_OPTIONS_INIT;
    ot_parallel_options parallel = OT_PARALLEL_OPTIONS_INIT;
    ot_session *session = NULL;

    parallel.comm = comm;
    parallel.bucket_bytes = 512; // several buckets
    parallel.zero = r->zero;
    how.parallel = &parallel;
    how.n_threads = 1;
    RANK_MUST(ot_session_create_from_artifacts(r->artifacts[rank], &how, &session));
    for (int i = 0; session != NULL && i < UPDATES; i++)
        RANK_MUST(train_batch(session, rank, i));
    if (session != NULL)
        RANK_MUST(make_values_whole(session));
    ot_session_destroy(session);
}

static ot_artifacts *train(const ot_model *model, int zero)
{
    run r = {.zero = zero};

    for (int i = 0; i < N_RANKS; i++)
        r.artifacts[i] = make_artifacts(model, SGD);
    run_ranks(N_RANKS, train_rank, &r);
    ot_artifacts_destroy(r.artifacts[1]);
    return r.artifacts[0];
}

static void compare_parameters(const ot_artifacts *a, const ot_artifacts *b)
{
    const ot_checkpoint *x = ot_artifacts_checkpoint((ot_artifacts *)(uintptr_t)a),
                        *y = ot_artifacts_checkpoint((ot_artifacts *)(uintptr_t)b);

    for (int i = 0; i < ot_checkpoint_parameter_count(x); i++) {
        const char *name = ot_checkpoint_parameter_name(x, i);
        ot_tensor *found, *expected;

        assert_int_equal(ot_checkpoint_get_parameter(x, name, &found), OT_OK);
        assert_int_equal(ot_checkpoint_get_parameter(y, name, &expected), OT_OK);
        for (int64_t k = 0; k < ot_tensor_count(found); k++)
            if (!(fabs(element(found, k) - element(expected, k)) < 1e-5))
                fail_msg("%s[%" PRId64 "] is %g, expected %g", name, k, element(found, k),
                         element(expected, k));
        ot_tensor_destroy(found);
        ot_tensor_destroy(expected);
    }
}

static void blocks_of_a_residual_network(void **state)
{
    ot_artifacts *expected, *found;
    ot_model *model;

    (void)state;
    if (ot_model_load_buffer(network, strlen(network), NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    expected = train(model, 0);
    for (int zero = 2; zero <= 3; zero++) {
        found = train(model, zero);
        compare_parameters(found, expected);
        ot_artifacts_destroy(found);
    }
    ot_artifacts_destroy(expected);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_of_a_residual_network)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
