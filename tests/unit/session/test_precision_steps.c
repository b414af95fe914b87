// SPDX-License-Identifier: Apache-2.0
// Whole steps of networks in mixed precision, by the kernels that a session takes and by the
// references.
//
// Bound. In bf16 a value is off by at most 2^-8 of itself after it is rounded, in f16 by 2^-11, or
// by 2^-25 where it is below the normal numbers. What this does to gradients is measured, without
// any kernel for 16 bits: the training graph is computed in f32 by the references, and every
// parameter, every input and every value that a node computes is moved by that much up or down,
// element by element, SAMPLES times; the largest root mean square of a gradient's change is the
// bound of its root mean square error. Numbers are rounded by less than half of the most on
// average, so errors of a correct step are well below it; and a step rounds fewer values, since
// losses, statistics and gradients of parameters stay f32. It does not matter whether a node reads
// a parameter or the parameter rounded.
//
// Both kinds of kernels round the same values and differ in the order of sums, so that they are as
// near to each other as to f32.
#include "session_fixture.h"

#include "evaluate.h"

enum { N_ROWS = 6, SAMPLES = 4, MAX_GRADIENTS = 40 };

static const struct {
    ot_precision precision;
    double unit, smallest;
} types[] = {{OT_PRECISION_BF16, 0x1p-8, 0}, {OT_PRECISION_F16, 0x1p-11, 0x1p-25}};
enum { N_TYPES = sizeof types / sizeof types[0] };

// ---- networks: x of random numbers or below as many words, labels below as many classes ----

typedef struct network {
    const char *text, *file; // one of them
    int64_t n_words, n_classes;
} network;

#define ONES_16 "{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}"
#define ZEROS_16 "{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}"
static const char images_text[] =
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

static const network images = {.text = images_text, .n_classes = 5};
static const network encoder = {.file = "transformer", .n_words = 11, .n_classes = 7};
static const network lstm = {.file = "lstm", .n_classes = 3};
static const network gru = {.file = "gru", .n_classes = 3};

static ot_artifacts *artifacts_of(const network *net)
{
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_model *model;
    char path[1024];

    options.losses = &loss;
    options.n_losses = 1;
    if (net->text != NULL) {
        model = read_text(net->text);
    } else {
        snprintf(path, sizeof path, OT_TEST_DIR "/../../golden/data/%s.onnxtxt", net->file);
        assert_ok(ot_model_load(path, NULL, &model));
    }
    assert_ok(ot_artifacts_generate(model, &options, &artifacts));
    ot_model_destroy(model);
    return artifacts;
}

static ot_tensor *input_of(const network *net, const ot_value *x, int i)
{
    const int64_t below = i == 0 ? net->n_words : net->n_classes;
    ot_shape shape = x->shape;
    ot_tensor *t;

    shape.dim[0] = N_ROWS;
    assert_ok(ot_tensor_create(x->dtype, &shape, &t));
    for (int64_t k = 0; k < ot_tensor_count(t); k++)
        if (x->dtype == OT_F32)
            ((float *)t->data)[k] = (float)(k * 7919 % 2003) / 1001.5F - 1.0F;
        else
            ((int64_t *)t->data)[k] = k * 7919 % below;
    return t;
}

// ---- steps of a session ----

typedef struct gradients {
    size_t state_bytes; // of the session
    int n;
    char name[MAX_GRADIENTS][64];
    ot_tensor *of[MAX_GRADIENTS];
} gradients;

static void gradients_deinit(gradients *g)
{
    for (int i = 0; i < g->n; i++)
        ot_tensor_destroy(g->of[i]);
}

static void take_step(const network *net, ot_precision precision, int reference_kernels,
                      gradients *g)
{
    ot_artifacts *artifacts = artifacts_of(net);
    const ot_graph *graph = ot_artifacts_training_model(artifacts)->graph;
    ot_tensor *inputs[] = {input_of(net, graph->inputs[0], 0), input_of(net, graph->inputs[1], 1)};
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    const ot_checkpoint *checkpoint;
    ot_tensor *output = NULL;
    ot_session *session;

    options.precision = precision;
    options.reference_kernels = reference_kernels;
    options.n_threads = 2;
    assert_ok(ot_session_create_from_artifacts(artifacts, &options, &session));
    assert_ok(ot_session_train_step(session, (const ot_tensor *const *)inputs, 2, &output, 1));
    checkpoint = ot_session_checkpoint(session);
    g->n = 0;
    for (int i = 0; i < ot_checkpoint_parameter_count(checkpoint); i++) {
        const char *name = ot_checkpoint_parameter_name(checkpoint, i);

        assert_in_range(g->n, 0, MAX_GRADIENTS - 1);
        if (ot_checkpoint_parameter_trainable(checkpoint, name) != 1)
            continue;
        snprintf(g->name[g->n], sizeof g->name[0], "%s", name);
        assert_ok(ot_checkpoint_get_gradient(checkpoint, name, &g->of[g->n++]));
    }
    g->state_bytes = ot_session_state_bytes(session);
    ot_tensor_destroy(output);
    for (int i = 0; i < 2; i++)
        ot_tensor_destroy(inputs[i]);
    ot_session_destroy(session);
    ot_artifacts_destroy(artifacts);
}

// ---- what roundings do ----

typedef struct rounding {
    double unit, smallest;
    uint64_t sample, n_moved; // tensors so far
} rounding;

static void move(rounding *r, ot_tensor *t)
{
    const ot__rng_key key = {r->sample, r->n_moved++};

    if (t->dtype != OT_F32 || ot_tensor_count(t) == 1)
        return;
    for (int64_t k = 0; k < ot_tensor_count(t); k++) {
        float *x = (float *)t->data + k;
        const double by = fmax(r->unit * fabs((double)*x), r->smallest);

        if (*x != 0) // which is not rounded
            *x += (float)(ot__rng_uniform(key, (uint64_t)k) < 0.5 ? -by : by);
    }
}

static void feed_inputs(evaluation *e, const network *net, ot_artifacts *artifacts, rounding *r)
{
    const ot_graph *graph = ot_artifacts_training_model(artifacts)->graph;
    const ot_checkpoint *checkpoint = ot_artifacts_checkpoint(artifacts);

    for (int i = 0; i < graph->n_inputs; i++) {
        const ot_value *x = graph->inputs[i];
        ot_tensor *t;

        if (i < 2)
            t = input_of(net, x, i);
        else if (ot_checkpoint_get_parameter(checkpoint, x->name, &t) != OT_OK)
            assert_ok(ot_tensor_create(x->dtype, &x->shape, &t)); // sums so far
        if (i < 2 || ot_checkpoint_parameter_trainable(checkpoint, x->name) == 1)
            move(r, t);
        feed(e, x->name, t);
    }
}

static void compute_moved(const network *net, rounding r, const gradients *names, gradients *out)
{
    ot_artifacts *artifacts = artifacts_of(net);
    const ot_graph *graph = ot_artifacts_training_model(artifacts)->graph;
    evaluation e = {0};

    feed_inputs(&e, net, artifacts, &r);
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        compute_node(&e, node);
        if ((node->op->flags & (OT_OP_REARRANGE | OT_OP_VIEW)) != 0)
            continue;
        for (int i = 0; i < node->n_outputs; i++)
            if (node->outputs[i] != NULL)
                move(&r, ot__map_get(&e.tensors, node->outputs[i]->name));
    }
    out->n = names->n;
    for (int i = 0; i < names->n; i++) {
        char name[80];

        snprintf(name, sizeof name, "%s_grad", names->name[i]);
        assert_ok(ot_tensor_clone(result(&e, name), &out->of[i]));
    }
    evaluation_deinit(&e);
    ot_artifacts_destroy(artifacts);
}

// ---- the check ----

// The root mean square of a - b; `b` NULL: of a.
static double distance(const ot_tensor *a, const ot_tensor *b)
{
    double sum = 0;

    for (int64_t i = 0; i < ot_tensor_count(a); i++) {
        const double d = ot__tensor_get_f64(a, i) - (b == NULL ? 0 : ot__tensor_get_f64(b, i));

        sum += d * d;
    }
    return sqrt(sum / (double)ot_tensor_count(a));
}

static void assert_within(double found, double bound, const char *what, const char *name)
{
    if (!(found <= bound)) // NaN must fail
        fail_msg("the gradient of '%s' %s is off by %g, roundings allow %g", name, what, found,
                 bound);
}

static void check_type(const network *net, int type, const gradients *exact)
{
    gradients own, reference, moved[SAMPLES];

    for (int s = 0; s < SAMPLES; s++)
        compute_moved(net, (rounding){types[type].unit, types[type].smallest, (uint64_t)s, 0},
                      exact, &moved[s]);
    take_step(net, types[type].precision, 0, &own);
    take_step(net, types[type].precision, 1, &reference);
    for (int i = 0; i < exact->n; i++) {
        double bound = 0;

        for (int s = 0; s < SAMPLES; s++)
            bound = fmax(bound, distance(moved[s].of[i], exact->of[i]));
        assert_true(distance(own.of[i], exact->of[i]) > 0); // it is another precision
        assert_within(distance(own.of[i], exact->of[i]), bound, "from that in f32", exact->name[i]);
        assert_within(distance(reference.of[i], exact->of[i]), bound,
                      "by the references from that in f32", exact->name[i]);
        assert_within(distance(own.of[i], reference.of[i]), bound, "from the references'",
                      exact->name[i]);
    }
    for (int s = 0; s < SAMPLES; s++)
        gradients_deinit(&moved[s]);
    gradients_deinit(&own);
    gradients_deinit(&reference);
}

static void is_as_near_as_roundings_allow(void **state)
{
    const network *net = *state;
    gradients exact, computed;

    take_step(net, OT_PRECISION_F32, 1, &exact);
    compute_moved(net, (rounding){.unit = 0}, &exact, &computed);
    for (int i = 0; i < exact.n; i++) // what is moved is what the session computes
        assert_within(distance(computed.of[i], exact.of[i]), 1e-5 * distance(exact.of[i], NULL),
                      "node by node", exact.name[i]);
    for (int type = 0; type < N_TYPES; type++)
        check_type(net, type, &exact);
    gradients_deinit(&exact);
    gradients_deinit(&computed);
}

// No kernel computes convolutions of f16 in f16, so nothing keeps their weights in f16; reference
// kernels compute what the graph says.
static void weights_that_f32_kernels_read_are_not_kept_in_f16(void **state)
{
    const size_t n_weights = 16 * 3 * 3 * 3 + 16 * 3 * 3 + 16 * 16 * 2 * 2 + 16 * 32 * 3 * 3;
    gradients own, reference;

    (void)state;
    take_step(&images, OT_PRECISION_F16, 0, &own);
    take_step(&images, OT_PRECISION_F16, 1, &reference);
    assert_true(own.state_bytes + n_weights * sizeof(uint16_t) <= reference.state_bytes);
    gradients_deinit(&own);
    gradients_deinit(&reference);
}

#define TEST_OF(net)                                                                               \
    {                                                                                              \
        "a step of the network '" #net "' is as near as roundings allow in bf16 and f16",          \
            is_as_near_as_roundings_allow, NULL, NULL, (void *)(uintptr_t) & (net)                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_OF(images),
        TEST_OF(encoder),
        TEST_OF(lstm),
        TEST_OF(gru),
        cmocka_unit_test(weights_that_f32_kernels_read_are_not_kept_in_f16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
