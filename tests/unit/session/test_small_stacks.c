// SPDX-License-Identifier: Apache-2.0
// Plans are made and run on stacks of 128 KiB: that of the calling thread and those of OpenMP's.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "evaluate.h"
#include "onnxtrain/runner.h"

enum { STACK_BYTES = 128 << 10, ROWS = 64, COLUMNS = 512, THREADS = 4 };

// Sixteen operators in one chain, with operands that are stretched along every axis.
static const char chain_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 512] x, float[512] a, float[64, 1] b, float[1] c) => (float[N, 512] y)"
    "{ t1 = Add(x, a) t2 = Mul(t1, b) t3 = Sub(t2, c) t4 = Relu(t3) t5 = Add(t4, x) t6 = Neg(t5)"
    " t7 = Mul(t6, t2) t8 = Abs(t7) t9 = Add(t8, t4) t10 = Sub(t9, a) t11 = Mul(t10, b)"
    " t12 = Relu(t11) t13 = Add(t12, t1) t14 = Neg(t13) t15 = Abs(t14) y = Add(t15, t9) }";
// The types that go through a wider one, and other kernels that keep something on the stack.
static const char others_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N, 512] x, float[512] a, float[64, 1] b, float[1] c) => (float[N, 512] y)"
    "{ h = Cast<to = 10>(x) k = Cast<to = 10>(a) m = Max(h, k) f = Cast<to = 1>(m)"
    " l = LayerNormalization(f, a, a) s = Softmax(l) e = ReduceSum<keepdims = 1>(s)"
    " z = LogSoftmax<axis = 0>(s) u = Mul(z, e) v = Mul(u, b) y = Add(v, c) }";

static ot_tensor *filled(ot_shape shape)
{
    ot_tensor *tensor;
    float *to;

    assert_ok(ot_tensor_create(OT_F32, &shape, &tensor));
    to = ot_tensor_data(tensor);
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++)
        to[i] = (float)(i % 7) - 3;
    return tensor;
}

typedef struct work {
    const char *text;
    ot_status status;
    ot_tensor *y;
} work;

static void *run_model(void *context)
{
    work *w = context;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_model *model = read_text(w->text);
    ot_tensor *in[] = {filled(OT_SHAPE(ROWS, COLUMNS)), filled(OT_SHAPE(COLUMNS)),
                       filled(OT_SHAPE(ROWS, 1)), filled(OT_SHAPE(1))};
    const ot_tensor *const inputs[] = {in[0], in[1], in[2], in[3]};

    options.n_threads = THREADS;
    w->status = ot_model_run(model, &options, inputs, 4, &w->y, 1);
    for (int i = 0; i < 4; i++)
        ot_tensor_destroy(in[i]);
    ot_model_destroy(model);
    return NULL;
}

static void run_on_small_stack(const char *text)
{
    work small = {.text = text}, large = {.text = text};
    pthread_attr_t attributes;
    pthread_t thread;

    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_model, &small), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_ok(small.status);
    run_model(&large);
    assert_ok(large.status);
    assert_memory_equal(ot_tensor_data(small.y), ot_tensor_data(large.y), ot_tensor_bytes(large.y));
    ot_tensor_destroy(small.y);
    ot_tensor_destroy(large.y);
}

static void a_chain_of_sixteen_operators_runs(void **state)
{
    (void)state;
    run_on_small_stack(chain_text);
}

static void other_kernels_run(void **state)
{
    (void)state;
    run_on_small_stack(others_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_of_sixteen_operators_runs),
        cmocka_unit_test(other_kernels_run),
    };

    // OpenMP reads it when the program starts.
    if (getenv("OMP_STACKSIZE") == NULL) {
        setenv("OMP_STACKSIZE", "128k", 1);
        execl("/proc/self/exe", "tests", "unit_session_small_stacks", (char *)NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
