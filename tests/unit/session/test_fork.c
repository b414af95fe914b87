// SPDX-License-Identifier: Apache-2.0
// A runner that has computed with several threads goes on in a child, and so does the parent's.
#include "evaluate.h"
#include "forked.h"
#include "onnxtrain/runner.h"

enum { CHANNELS = 16, SIDE = 20, TAPS = 9, DONE = 7 };

// Ones everywhere: inside the border an element of the convolution is the number of its products.
static const char conv_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[N,16,20,20] x, float[32,16,3,3] w) => (float[] y)"
    "{ c = Conv<pads = [1, 1, 1, 1]>(x, w) r = Relu(c) y = MatMul(r, r) }";

static ot_tensor *ones(ot_shape shape)
{
    ot_tensor *tensor;
    float *to;

    assert_ok(ot_tensor_create(OT_F32, &shape, &tensor));
    to = ot_tensor_data(tensor);
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++)
        to[i] = 1;
    return tensor;
}

typedef struct computing {
    ot_runner *runner;
    int64_t rows;
} computing;

static int run_once(void *context)
{
    const computing *c = context;
    ot_tensor *x = ones(OT_SHAPE(c->rows, CHANNELS, SIDE, SIDE));
    ot_tensor *w = ones(OT_SHAPE(2 * CHANNELS, CHANNELS, 3, 3)), *y = NULL;
    const ot_tensor *const x_only = x, *const w_only = w;
    const ot_feed feeds[] = {{&x_only, 1}, {&w_only, 1}};
    const int wanted = 0;
    // Row 5 of r: 144 inside, 96 at the two ends; each column of r: the same, in column 5.
    const float inside = CHANNELS * TAPS, edge = CHANNELS * 6;
    const float expected = (SIDE - 2) * inside * inside + 2 * edge * edge;
    int result = 1;

    if (ot_runner_run(c->runner, feeds, 2, &wanted, &y, 1) == OT_OK)
        result = ((const float *)ot_tensor_data_const(y))[5 * SIDE + 5] == expected ? DONE : 2;
    ot_tensor_destroy(x);
    ot_tensor_destroy(w);
    ot_tensor_destroy(y);
    return result;
}

static void a_runner_goes_on_in_a_child_with_old_and_new_shapes(void **state)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_model *model = read_text(conv_text);
    computing c = {.rows = 2};

    (void)state;
    options.n_threads = 4;
    assert_ok(ot_runner_create(model, &options, &c.runner));
    assert_int_equal(run_once(&c), DONE);
    assert_int_equal(in_child(run_once, &c), DONE); // the plan is there
    c.rows = 3;
    assert_int_equal(in_child(run_once, &c), DONE); // the plan is to be made
    assert_int_equal(run_once(&c), DONE);
    ot_runner_destroy(c.runner);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_runner_goes_on_in_a_child_with_old_and_new_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
