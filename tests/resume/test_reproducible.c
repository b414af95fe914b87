// SPDX-License-Identifier: Apache-2.0
// The same bits for one to four threads in a reproducible session, and from run to run with the
// same number of threads in any session, in f32, bf16 and f16: losses, parameters and moments after
// some steps.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "onnxtrain/onnxtrain.h"

enum { STEPS = 3, BATCH = 24, CLASSES = 10 };

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\n"

static const char mlp[] = HEAD "mlp (float[N,60] x) => (float[N,10] y)\n"
                               "<float ratio = {0.3}, bool on = {1}>\n"
                               "{\n"
                               "  w1 = RandomNormal<shape = [60, 130], scale = 0.1>()\n"
                               "  b1 = RandomNormal<shape = [130], scale = 0.1>()\n"
                               "  w2 = RandomNormal<shape = [130, 10], scale = 0.1>()\n"
                               "  a = Gemm(x, w1, b1)\n"
                               "  b = Relu(a)\n"
                               "  c = Dropout(b, ratio, on)\n"
                               "  y = MatMul(c, w2)\n"
                               "}\n";

static const char lenet[] = HEAD "lenet (float[N,1,20,20] x) => (float[N,10] y)\n"
                                 "{\n"
                                 "  w1 = RandomNormal<shape = [6, 1, 5, 5], scale = 0.2>()\n"
                                 "  b1 = RandomNormal<shape = [6], scale = 0.1>()\n"
                                 "  w2 = RandomNormal<shape = [16, 6, 5, 5], scale = 0.1>()\n"
                                 "  b2 = RandomNormal<shape = [16], scale = 0.1>()\n"
                                 "  w3 = RandomNormal<shape = [144, 84], scale = 0.1>()\n"
                                 "  b3 = RandomNormal<shape = [84], scale = 0.1>()\n"
                                 "  w4 = RandomNormal<shape = [84, 10], scale = 0.1>()\n"
                                 "  a = Conv<pads = [2, 2, 2, 2]>(x, w1, b1)\n"
                                 "  b = Tanh(a)\n"
                                 "  c = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(b)\n"
                                 "  d = Conv(c, w2, b2)\n"
                                 "  e = Relu(d)\n"
                                 "  f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e)\n"
                                 "  g = Flatten(f)\n"
                                 "  h = Gemm(g, w3, b3)\n"
                                 "  i = Relu(h)\n"
                                 "  y = MatMul(i, w4)\n"
                                 "}\n";

static const char batch_norm[] =
    HEAD "batch_norm (float[N,3,12,12] x) => (float[N,10] y)\n"
         "<float[8] s1 = {1, 2, 1, 1, 1, 1, 1, 1}, float[8] b1 = {0, 0, 0, 0, 1, 0, 0, 0},\n"
         " float[8] m1 = {0, 0, 0, 0, 0, 0, 0, 0}, float[8] v1 = {1, 1, 1, 1, 1, 1, 1, 1},\n"
         " float[8] s2 = {1, 2, 1, 1, 1, 1, 1, 1}, float[8] b2 = {0, 0, 0, 0, 1, 0, 0, 0},\n"
         " float[8] m2 = {0, 0, 0, 0, 0, 0, 0, 0}, float[8] v2 = {1, 1, 1, 1, 1, 1, 1, 1}>\n"
         "{\n"
         "  w1 = RandomNormal<shape = [8, 3, 3, 3], scale = 0.2>()\n"
         "  w2 = RandomNormal<shape = [8, 8, 3, 3], scale = 0.1>()\n"
         "  w3 = RandomNormal<shape = [8, 8, 1, 1], scale = 0.3>()\n"
         "  w4 = RandomNormal<shape = [8, 10], scale = 0.3>()\n"
         "  a = Conv<pads = [1, 1, 1, 1]>(x, w1)\n"
         "  b = BatchNormalization(a, s1, b1, m1, v1)\n"
         "  c = Relu(b)\n"
         "  d = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(c, w2)\n"
         "  e = BatchNormalization(d, s2, b2, m2, v2)\n"
         "  f = Conv<strides = [2, 2]>(c, w3)\n"
         "  g = Add(e, f)\n"
         "  h = Relu(g)\n"
         "  i = GlobalAveragePool(h)\n"
         "  j = Flatten(i)\n"
         "  y = MatMul(j, w4)\n"
         "}\n";

// Channels in whole blocks of any processor, so that images are not row-major between convolutions.
static const char blocked[] = HEAD "blocked (float[N,3,12,12] x) => (float[N,10] y)\n"
                                   "{\n"
                                   "  w1 = RandomNormal<shape = [32, 3, 3, 3], scale = 0.2>()\n"
                                   "  b1 = RandomNormal<shape = [32], scale = 0.1>()\n"
                                   "  w2 = RandomNormal<shape = [32, 1, 3, 3], scale = 0.3>()\n"
                                   "  w3 = RandomNormal<shape = [64, 32, 1, 1], scale = 0.2>()\n"
                                   "  w4 = RandomNormal<shape = [64, 64, 3, 3], scale = 0.05>()\n"
                                   "  w5 = RandomNormal<shape = [64, 10], scale = 0.3>()\n"
                                   "  a = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w1, b1)\n"
                                   "  b = Relu(a)\n"
                                   "  c = Conv<group = 32, pads = [1, 1, 1, 1]>(b, w2)\n"
                                   "  d = Relu(c)\n"
                                   "  e = Conv(d, w3)\n"
                                   "  f = Relu(e)\n"
                                   "  g = Conv<pads = [1, 1, 1, 1]>(f, w4)\n"
                                   "  h = Add(f, g)\n"
                                   "  i = GlobalAveragePool(h)\n"
                                   "  j = Flatten(i)\n"
                                   "  y = MatMul(j, w5)\n"
                                   "}\n";

static const char attention[] =
    HEAD "attention (float[N,12,32] x) => (float[N,10] y)\n"
         "<float[32] s1 = {1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,"
         "                 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},\n"
         " float ratio = {0.3}, float half = {0.5}, float one = {1}, float root = {1.41421}, bool "
         "on = {1},\n"
         " int64[4] heads = {0, 12, 2, 16}, int64[3] joined = {0, 12, 32}>\n"
         "{\n"
         "  b1 = RandomNormal<shape = [32], scale = 0.1>()\n"
         "  wq = RandomNormal<shape = [32, 32], scale = 0.2>()\n"
         "  wk = RandomNormal<shape = [32, 32], scale = 0.2>()\n"
         "  wv = RandomNormal<shape = [32, 32], scale = 0.2>()\n"
         "  w1 = RandomNormal<shape = [32, 128], scale = 0.1>()\n"
         "  w2 = RandomNormal<shape = [128, 10], scale = 0.1>()\n"
         "  ln = LayerNormalization(x, s1, b1)\n"
         "  qp = MatMul(ln, wq)\n"
         "  kp = MatMul(ln, wk)\n"
         "  vp = MatMul(ln, wv)\n"
         "  q4 = Reshape(qp, heads)\n"
         "  k4 = Reshape(kp, heads)\n"
         "  v4 = Reshape(vp, heads)\n"
         "  q = Transpose<perm = [0, 2, 1, 3]>(q4)\n"
         "  k = Transpose<perm = [0, 2, 3, 1]>(k4)\n"
         "  v = Transpose<perm = [0, 2, 1, 3]>(v4)\n"
         "  scores = MatMul(q, k)\n"
         "  p = Softmax(scores)\n"
         "  kept = Dropout(p, ratio, on)\n"
         "  c4 = MatMul(kept, v)\n"
         "  ct = Transpose<perm = [0, 2, 1, 3]>(c4)\n"
         "  c = Reshape(ct, joined)\n"
         "  r = Add(c, x)\n"
         "  h = MatMul(r, w1)\n"
         "  g1 = Div(h, root)\n"
         "  g2 = Erf(g1)\n"
         "  g3 = Add(g2, one)\n"
         "  g4 = Mul(h, g3)\n"
         "  g = Mul(g4, half)\n"
         "  o = MatMul(g, w2)\n"
         "  y = ReduceMean<axes = [1], keepdims = 0>(o)\n"
         "}\n";

static const char lstm[] = HEAD "lstm (float[N,8,12] x) => (float[N,10] y)\n"
                                "{\n"
                                "  w = RandomNormal<shape = [1, 64, 12], scale = 0.3>()\n"
                                "  r = RandomNormal<shape = [1, 64, 16], scale = 0.3>()\n"
                                "  b = RandomNormal<shape = [1, 128], scale = 0.1>()\n"
                                "  w2 = RandomNormal<shape = [16, 10], scale = 0.3>()\n"
                                "  t = Transpose<perm = [1, 0, 2]>(x)\n"
                                "  all, last = LSTM<hidden_size = 16>(t, w, r, b)\n"
                                "  f = Flatten<axis = 2>(last)\n"
                                "  y = MatMul(f, w2)\n"
                                "}\n";

static void need(ot_status st)
{
    if (st != OT_OK)
        fail_msg("%s: %s", ot_status_name(st), ot_error_message());
}

static ot_artifacts *make_artifacts(const char *text)
{
    const ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_optimizer_options optimizer = OT_OPTIMIZER_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;

    options.losses = &loss;
    options.n_losses = 1;
    options.optimizer = &optimizer;
    optimizer.max_norm = 1.0; // the norm is a sum over everything
    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    need(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static ot_tensor *make_input(const ot_session *session, int i, int step)
{
    ot_tensor *tensor;
    ot_dtype dtype;
    ot_shape shape;

    need(ot_session_input_info(session, OT_MODE_TRAIN, i, &dtype, &shape));
    shape.dim[0] = BATCH;
    need(ot_tensor_create(dtype, &shape, &tensor));
    for (int64_t k = 0; k < ot_tensor_count(tensor); k++) {
        const uint32_t word = (uint32_t)(k + 31 * step) * 2654435761u >> 12; // without pattern

        if (dtype == OT_F32)
            ((float *)tensor->data)[k] = (float)word / 524288.0f - 1.0f;
        else
            ((int64_t *)tensor->data)[k] = word % CLASSES;
    }
    return tensor;
}

// The artifacts hold the state after the steps; `losses` receives theirs.
static ot_artifacts *train(const char *text, ot_precision precision, int n_threads,
                           int reproducible, float losses[STEPS])
{
    ot_artifacts *artifacts = make_artifacts(text);
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_session *session;

    options.n_threads = n_threads;
    options.reproducible = reproducible;
    options.precision = precision;
    need(ot_session_create_from_artifacts(artifacts, &options, &session));
    ot_session_set_seed(session, 9);
    for (int step = 0; step < STEPS; step++) {
        ot_tensor *inputs[2], *loss = NULL;

        for (int i = 0; i < 2; i++)
            inputs[i] = make_input(session, i, step);
        need(ot_session_train_step(session, (const ot_tensor *const[]){inputs[0], inputs[1]}, 2,
                                   &loss, 1));
        need(ot_session_optimizer_step(session));
        ot_session_reset_gradients(session);
        losses[step] = *(const float *)loss->data;
        ot_tensor_destroy(loss);
        for (int i = 0; i < 2; i++)
            ot_tensor_destroy(inputs[i]);
    }
    ot_session_destroy(session); // brings the checkpoint up to date
    return artifacts;
}

static void assert_same_tensor(const char *name, const ot_tensor *a, const ot_tensor *b)
{
    if (a->n_bytes != b->n_bytes || memcmp(a->data, b->data, a->n_bytes) != 0)
        fail_msg("'%s' differs", name);
}

static void assert_same(ot_artifacts *a_artifacts, ot_artifacts *b_artifacts)
{
    const ot_checkpoint *a = ot_artifacts_checkpoint(a_artifacts);
    const ot_checkpoint *b = ot_artifacts_checkpoint(b_artifacts);

    assert_int_equal(a->n_parameters, b->n_parameters);
    for (int i = 0; i < a->n_parameters; i++) {
        const ot__parameter *p = a->parameters[i], *q = b->parameters[i];

        assert_same_tensor(p->name, p->value, q->value);
        for (int k = 0; k < OT_SLOT_MOMENTS; k++)
            if (p->trainable)
                assert_same_tensor(p->name, p->slots[k], q->slots[k]);
    }
}

static void compare_runs(const char *text, int n_threads_a, int n_threads_b, int reproducible)
{
    static const ot_precision precisions[] = {OT_PRECISION_F32, OT_PRECISION_BF16,
                                              OT_PRECISION_F16};

    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++) {
        float a_losses[STEPS], b_losses[STEPS];
        ot_artifacts *a = train(text, precisions[i], n_threads_a, reproducible, a_losses);
        ot_artifacts *b = train(text, precisions[i], n_threads_b, reproducible, b_losses);

        assert_memory_equal(a_losses, b_losses, sizeof a_losses);
        assert_true(a_losses[0] > 0 && a_losses[0] != a_losses[STEPS - 1]);
        assert_same(a, b);
        ot_artifacts_destroy(a);
        ot_artifacts_destroy(b);
    }
}

static void a_reproducible_run_has_the_same_bits_for_any_number_of_threads(void **state)
{
    for (int n_threads = 2; n_threads <= 4; n_threads++)
        compare_runs(*state, 1, n_threads, 1);
}

static void every_run_has_the_same_bits_as_another_with_as_many_threads(void **state)
{
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        compare_runs(*state, n_threads, n_threads, 0);
}

#define TESTS_OF(model)                                                                            \
    {#model ": a reproducible run has the same bits for any number of threads",                    \
     a_reproducible_run_has_the_same_bits_for_any_number_of_threads, NULL, NULL,                   \
     (void *)(uintptr_t)model},                                                                    \
    {                                                                                              \
#model ": every run has the same bits as another with as many threads",                    \
            every_run_has_the_same_bits_as_another_with_as_many_threads, NULL, NULL,               \
            (void *)(uintptr_t)model                                                               \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {TESTS_OF(mlp),     TESTS_OF(lenet),     TESTS_OF(batch_norm),
                                       TESTS_OF(blocked), TESTS_OF(attention), TESTS_OF(lstm)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
