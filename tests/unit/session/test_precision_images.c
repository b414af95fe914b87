// SPDX-License-Identifier: Apache-2.0
// Whole steps of a network on images in mixed precision, by the kernels that a session takes and by
// the references.
//
// Both round the same values to bf16 or f16 but sum in another order, so that here and there they
// round to another neighbour: their distances from f32 are samples of one size. A tensor's root
// mean square over its elements then stays within a factor of a few; four is the factor of golden
// tests.
#include "session_fixture.h"

enum { N_ROWS = 6, N_CLASSES = 5, MAX_GRADIENTS = 40 };
static const double factor = 4.0;

#define ONES_16 "{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}"
#define ZEROS_16 "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}"
static const char network[] =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[batch,3,20,20] x) => (float[batch,5] y) "
    "<float[16] m1 = " ZEROS_16 ", float[16] v1 = " ONES_16 ", float[16] m2 = " ZEROS_16
    ", float[16] v2 = " ONES_16 ", float low = {0}, float high = {6}> {"
    " w1 = RandomNormal<shape = [16, 3, 3, 3], scale = 0.3>()"
    " c1 = Conv<pads = [1, 1, 1, 1]>(x, w1)"
    " s1 = RandomNormal<shape = [16], mean = 1.0, scale = 0.1>()"
    " b1 = RandomNormal<shape = [16], scale = 0.1>()"
    " n1 = BatchNormalization(c1, s1, b1, m1, v1) r1 = Relu(n1)"
    " p1 = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(r1)"
    " w2 = RandomNormal<shape = [16, 1, 3, 3], scale = 0.3>()"
    " c2 = Conv<group = 16, pads = [1, 1, 1, 1]>(p1, w2)"
    " s2 = RandomNormal<shape = [16], mean = 1.0, scale = 0.1>()"
    " b2 = RandomNormal<shape = [16], scale = 0.1>()"
    " n2 = BatchNormalization(c2, s2, b2, m2, v2) r2 = Clip(n2, low, high) a2 = Add(r2, p1)"
    " w3 = RandomNormal<shape = [16, 16, 2, 2], scale = 0.2>()"
    " b3 = RandomNormal<shape = [16], scale = 0.1>()"
    " u3 = ConvTranspose<strides = [2, 2]>(a2, w3, b3) j3 = Concat<axis = 1>(u3, r1)"
    " w4 = RandomNormal<shape = [16, 32, 3, 3], scale = 0.1>()"
    " b4 = RandomNormal<shape = [16], scale = 0.1>()"
    " c4 = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(j3, w4, b4) r4 = Relu(c4)"
    " q4 = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(r4) g4 = GlobalAveragePool(q4)"
    " f4 = Flatten(g4) w5 = RandomNormal<shape = [16, 5], scale = 0.3>() y = MatMul(f4, w5) }";

typedef struct gradients {
    ot_artifacts *artifacts;
    ot_session *session;
    int n;
    ot_tensor *of[MAX_GRADIENTS];
} gradients;

static void must(ot_status status)
{
    if (status != OT_OK)
        fail_msg("%s", ot_error_message());
}

static ot_tensor *images(void)
{
    ot_tensor *x;

    must(ot_tensor_create(OT_F32, &OT_SHAPE(N_ROWS, 3, 20, 20), &x));
    for (int64_t i = 0; i < ot_tensor_count(x); i++)
        ((float *)ot_tensor_data(x))[i] = (float)(i * 7919 % 2003) / 1001.5F - 1.0F;
    return x;
}

static ot_tensor *classes(void)
{
    ot_tensor *y;

    must(ot_tensor_create(OT_I64, &OT_SHAPE(N_ROWS), &y));
    for (int64_t i = 0; i < N_ROWS; i++)
        ((int64_t *)ot_tensor_data(y))[i] = i % N_CLASSES;
    return y;
}

static void take_step(gradients *g, ot_precision precision, int reference_kernels)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options made = OT_ARTIFACTS_OPTIONS_INIT;
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_tensor *inputs[] = {images(), classes()}, *output = NULL;
    const ot_checkpoint *checkpoint;
    ot_model *model;

    made.losses = &loss;
    made.n_losses = 1;
    options.precision = precision;
    options.reference_kernels = reference_kernels;
    options.n_threads = 2;
    must(ot_model_load_buffer(network, sizeof network - 1, NULL, &model));
    must(ot_artifacts_generate(model, &made, &g->artifacts));
    must(ot_session_create_from_artifacts(g->artifacts, &options, &g->session));
    must(ot_session_train_step(g->session, (const ot_tensor *const *)inputs, 2, &output, 1));
    checkpoint = ot_session_checkpoint(g->session);
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);

        assert_in_range(g->n, 0, MAX_GRADIENTS - 1);
        if (ot_checkpoint_parameter_trainable(checkpoint, name) == 1)
            must(ot_checkpoint_get_gradient(checkpoint, name, &g->of[g->n++]));
    }
    ot_tensor_destroy(output);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_model_destroy(model);
}

static void gradients_deinit(gradients *g)
{
    for (int i = 0; i < g->n; i++)
        ot_tensor_destroy(g->of[i]);
    ot_session_destroy(g->session);
    ot_artifacts_destroy(g->artifacts);
}

static double distance(const ot_tensor *a, const ot_tensor *b)
{
    double sum = 0;

    for (int64_t i = 0; i < ot_tensor_count(a); i++) {
        const double d = ot__tensor_get_f64(a, i) - ot__tensor_get_f64(b, i);

        sum += d * d;
    }
    return sqrt(sum / (double)ot_tensor_count(a));
}

static void check_precision(ot_precision precision)
{
    gradients exact = {0}, own = {0}, reference = {0};

    take_step(&exact, OT_PRECISION_F32, 1);
    take_step(&own, precision, 0);
    take_step(&reference, precision, 1);
    for (int i = 0; i < exact.n; i++) {
        const double far = distance(own.of[i], exact.of[i]);
        const double allowed = distance(reference.of[i], exact.of[i]);

        assert_true(allowed > 0); // it is another precision
        if (!(far <= factor * allowed))
            fail_msg("gradient %d is %g off, by the references %g", i, far, allowed);
    }
    gradients_deinit(&exact);
    gradients_deinit(&own);
    gradients_deinit(&reference);
}

static void steps_in_bf16_are_as_near_as_the_references(void **state)
{
    (void)state;
    check_precision(OT_PRECISION_BF16);
}

static void steps_in_f16_are_as_near_as_the_references(void **state)
{
    (void)state;
    check_precision(OT_PRECISION_F16);
}

// No kernel computes convolutions of f16 in f16, so nothing keeps their weights in f16; reference
// kernels compute what the graph says.
static void weights_that_f32_kernels_read_are_not_kept_in_f16(void **state)
{
    const size_t n_weights = 16 * 3 * 3 * 3 + 16 * 3 * 3 + 16 * 16 * 2 * 2 + 16 * 32 * 3 * 3;
    gradients own = {0}, reference = {0};

    (void)state;
    take_step(&own, OT_PRECISION_F16, 0);
    take_step(&reference, OT_PRECISION_F16, 1);
    assert_true(ot_session_state_bytes(own.session) + n_weights * sizeof(uint16_t) <=
                ot_session_state_bytes(reference.session));
    gradients_deinit(&own);
    gradients_deinit(&reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_in_bf16_are_as_near_as_the_references),
        cmocka_unit_test(steps_in_f16_are_as_near_as_the_references),
        cmocka_unit_test(weights_that_f32_kernels_read_are_not_kept_in_f16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
