// SPDX-License-Identifier: Apache-2.0
// What stays f32 in mixed precision: losses of plain operators, what comes before the first layer,
// and what is made of parameters alone; between layers nothing does.
//
// Scores are multiples of 1/4 below 64 and exact in every type, so losses and gradients have
// formulas in f64 of numbers that are known. Targets are not exact in 16 bits.
#include <math.h>

#include "tensor/tensor.h"
#include "unit/trainer/trainer_fixture.h"

enum { ROWS_OF_X = 4, WIDTH = 2, N_SCORES = ROWS_OF_X * WIDTH };

static const ot_precision precisions[] = {OT_PRECISION_BF16, OT_PRECISION_F16};
static const double units[] = {0x1p-8, 0x1p-11};
static const ot_dtype narrow_types[] = {OT_BF16, OT_F16};
enum { N_TYPES = 2 };

static float x_data[] = {1, -2, 0, 2, 1, -1, -1, 0, 2, 0, 2, 1};
static float t_data[N_SCORES] = {0.3F, 0.7F, 0.1F, 0.9F, 0.6F, 0.4F, 0.15F, 0.85F};

// ---- models: y = x w + b, and a loss of y and t ----

#define WEIGHTS "<float[3,2] w = {0.5, -1, 0.25, 0.75, -0.5, 1.5}, float[2] b = {0.25, -0.5}"

#define SCORES                                                                                     \
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"                                                 \
    "m (float[4,3] x, float[4,2] t) => (float[4,2] y, float loss)\n" WEIGHTS ",\n"                 \
    " float one = {1}, float two = {2}, float half = {0.5}, int64[1] last = {1}>\n"                \
    "{ y = Gemm(x, w, b)\n"

static const double w_data[] = {0.5, -1, 0.25, 0.75, -0.5, 1.5}, b_data[] = {0.25, -0.5};

static void scores_of(double y[N_SCORES])
{
    for (int r = 0; r < ROWS_OF_X; r++)
        for (int c = 0; c < WIDTH; c++) {
            y[r * WIDTH + c] = b_data[c];
            for (int k = 0; k < N_IN; k++)
                y[r * WIDTH + c] += (double)x_data[r * N_IN + k] * w_data[k * WIDTH + c];
        }
}

// The loss, and its gradient by each score.
static double mse(const double *y, const double *t, double *dy)
{
    double sum = 0;

    for (int i = 0; i < N_SCORES; i++) {
        sum += (y[i] - t[i]) * (y[i] - t[i]) / N_SCORES;
        dy[i] = 2 * (y[i] - t[i]) / N_SCORES;
    }
    return sum;
}

static double l1(const double *y, const double *t, double *dy)
{
    double sum = 0;

    for (int i = 0; i < N_SCORES; i++) {
        sum += fabs(y[i] - t[i]) / N_SCORES;
        dy[i] = (y[i] > t[i] ? 1.0 : -1.0) / N_SCORES;
    }
    return sum;
}

static double huber(const double *y, const double *t, double *dy)
{
    double sum = 0;

    for (int i = 0; i < N_SCORES; i++) {
        const double d = y[i] - t[i];

        sum += (fabs(d) < 1 ? d * d / 2 : fabs(d) - 0.5) / N_SCORES;
        dy[i] = (fabs(d) < 1 ? d : d > 0 ? 1.0 : -1.0) / N_SCORES;
    }
    return sum;
}

static double bce(const double *y, const double *t, double *dy)
{
    double sum = 0;

    for (int i = 0; i < N_SCORES; i++) {
        const double p = 1 / (1 + exp(-y[i]));

        sum -= (t[i] * log(p) + (1 - t[i]) * log(1 - p)) / N_SCORES;
        dy[i] = (p - t[i]) / N_SCORES;
    }
    return sum;
}

static double soft_labels(const double *y, const double *t, double *dy)
{
    double loss = 0;

    for (int r = 0; r < ROWS_OF_X; r++) {
        const double *yr = y + r * WIDTH, *tr = t + r * WIDTH;
        const double sum = log(exp(yr[0]) + exp(yr[1]));

        for (int c = 0; c < WIDTH; c++) {
            loss -= tr[c] * (yr[c] - sum) / ROWS_OF_X;
            dy[r * WIDTH + c] = ((tr[0] + tr[1]) * exp(yr[c] - sum) - tr[c]) / ROWS_OF_X;
        }
    }
    return loss;
}

// Of a Gaussian whose logarithm of the variance is y, and of t: as of variational autoencoders.
static double divergence(const double *y, const double *t, double *dy)
{
    double sum = 0;

    for (int i = 0; i < N_SCORES; i++) {
        sum += 0.5 * (t[i] * t[i] + exp(y[i]) - y[i] - 1);
        dy[i] = 0.5 * (exp(y[i]) - 1);
    }
    return sum;
}

static const struct {
    const char *name, *text; // NULL: the library's own
    ot_loss loss;
    double (*formula)(const double *y, const double *t, double *dy);
} losses[] = {
    {"mse", NULL, OT_LOSS_MSE, mse},
    {"l1", NULL, OT_LOSS_L1, l1},
    {"bce with logits", NULL, OT_LOSS_BCE_WITH_LOGITS, bce},
    {"Sub, Mul, ReduceMean",
     SCORES "  d = Sub(y, t)  q = Mul(d, d)  loss = ReduceMean<keepdims = 0>(q) }", 0, mse},
    {"Sub, Pow, ReduceMean",
     SCORES "  d = Sub(y, t)  q = Pow(d, two)  loss = ReduceMean<keepdims = 0>(q) }", 0, mse},
    {"transposed",
     SCORES "  u = Transpose(y)  v = Transpose(t)  d = Sub(u, v)  q = Mul(d, d)\n"
            "  loss = ReduceMean<keepdims = 0>(q) }",
     0, mse},
    {"Huber",
     SCORES "  d = Sub(y, t)  a = Abs(d)  small = Less(a, one)  q = Mul(d, d)  h = Mul(q, half)\n"
            "  s = Sub(a, half)  e = Where(small, h, s)  loss = ReduceMean<keepdims = 0>(e) }",
     0, huber},
    {"Sigmoid and logarithms",
     SCORES "  p = Sigmoid(y)  l = Log(p)  r = Sub(one, p)  k = Log(r)  u = Sub(one, t)\n"
            "  e = Mul(t, l)  f = Mul(u, k)  g = Add(e, f)  m = ReduceMean<keepdims = 0>(g)\n"
            "  loss = Neg(m) }",
     0, bce},
    {"LogSoftmax and soft labels",
     SCORES "  l = LogSoftmax<axis = 1>(y)  m = Mul(l, t)  s = ReduceSum<keepdims = 0>(m, last)\n"
            "  a = ReduceMean<keepdims = 0>(s)  loss = Neg(a) }",
     0, soft_labels},
    {"divergence",
     SCORES "  e = Exp(y)  s = Mul(t, t)  a = Add(e, s)  d = Sub(a, y)  k = Sub(d, one)\n"
            "  h = Mul(k, half)  loss = ReduceSum<keepdims = 0>(h) }",
     0, divergence},
};
enum { N_LOSSES = sizeof losses / sizeof losses[0] };

// ---- trainers ----

static ot_model *load(const char *text)
{
    ot_model *model;

    need(ot_model_load_buffer(text, strlen(text), NULL, &model));
    return model;
}

static ot_trainer *trainer_of(const char *text, const ot_trainer_options *options,
                              const ot_optimizer_options *optimizer)
{
    ot_model *model = load(text);
    ot_trainer *trainer;

    need(ot_trainer_create(model, NULL, optimizer, options, &trainer));
    ot_model_destroy(model);
    return trainer;
}

static ot_trainer *trainer_of_loss(ot_loss which, const ot_trainer_options *options,
                                   const ot_optimizer_options *optimizer)
{
    ot_model *model = load("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "m (float[4,3] x) => (float[4,2] y)\n" WEIGHTS ">\n"
                           "{ y = Gemm(x, w, b) }");
    ot_artifacts_options how = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
    ot_artifacts *artifacts;
    ot_trainer *trainer;

    loss.loss = which;
    how.losses = &loss;
    how.n_losses = 1;
    how.optimizer = optimizer;
    need(ot_trainer_generate_artifacts(model, &how, options, &artifacts));
    need(ot_trainer_create_from_artifacts(artifacts, NULL, options, &trainer));
    need(ot_session_set_learning_rate(ot_trainer_session(trainer), optimizer->lr));
    ot_artifacts_destroy(artifacts);
    ot_model_destroy(model);
    return trainer;
}

static ot_trainer *trainer_in(const char *text, ot_loss which, ot_precision precision)
{
    static ot_loss_scaler scaler;
    ot_trainer_options options = OT_TRAINER_OPTIONS_INIT;
    ot_optimizer_options sgd = OT_OPTIMIZER_OPTIONS_INIT;

    scaler = (ot_loss_scaler)OT_LOSS_SCALER_INIT;
    scaler.automatic_update = 0;
    scaler.loss_scale = 1;
    options.precision = precision;
    options.loss_scaler = &scaler;
    sgd.name = "SGDOptimizerV2";
    sgd.lr = 1;
    return text != NULL ? trainer_of(text, &options, &sgd) : trainer_of_loss(which, &options, &sgd);
}

// A train step; `to` gets the elements of the output `name`.
static void step_of(ot_trainer *trainer, const ot_tensor *const *inputs, int n_inputs,
                    const char *name, float *to, int n)
{
    ot_tensor *output = NULL;

    need(ot_trainer_set_fetches(trainer, &name, 1));
    need(ot_trainer_train_step(trainer, inputs, n_inputs, &output, 1));
    assert_int_equal(ot_tensor_count(output), n);
    memcpy(to, ot_tensor_data_const(output), (size_t)n * sizeof *to);
    ot_tensor_destroy(output);
    for (int i = 0; i < n_inputs; i++)
        ot_tensor_destroy((ot_tensor *)(uintptr_t)inputs[i]);
}

static void parameter_of(ot_trainer *trainer, const char *name, float *to, int n)
{
    ot_tensor *value;

    need(ot_checkpoint_get_parameter(ot_session_checkpoint(ot_trainer_session(trainer)), name,
                                     &value));
    assert_int_equal(ot_tensor_count(value), n);
    memcpy(to, ot_tensor_data_const(value), (size_t)n * sizeof *to);
    ot_tensor_destroy(value);
}

// ---- tests ----

// Each score's gradient is rounded once, and the rounded ones are summed up in f32.
static void compare_bias(ot_trainer *trainer, const double *dy, ot_dtype narrow, const char *name)
{
    float b[WIDTH];

    parameter_of(trainer, "b", b, WIDTH);
    for (int c = 0; c < WIDTH; c++) {
        double db = 0, size = 0;

        for (int r = 0; r < ROWS_OF_X; r++) {
            float rounded = (float)dy[r * WIDTH + c];
            uint16_t bits;

            (void)ot__convert(&bits, narrow, &rounded, OT_F32, 1);
            (void)ot__convert(&rounded, OT_F32, &bits, narrow, 1);
            db += (double)rounded;
            size += fabs((double)rounded);
        }
        if (!(fabs(b_data[c] - (double)b[c] - db) <= 1e-6 * (size + fabs(b_data[c]))))
            fail_msg("%s in %s: the gradient of b[%d] is %.9g, expected %.9g", name,
                     ot_dtype_name(narrow), c, b_data[c] - (double)b[c], db);
    }
}

static void losses_are_f32(void **state)
{
    (void)state;
    for (int i = 0; i < N_LOSSES; i++)
        for (int k = 0; k < N_TYPES; k++) {
            ot_trainer *trainer = trainer_in(losses[i].text, losses[i].loss, precisions[k]);
            const ot_tensor *inputs[] = {tensor_of(x_data, OT_SHAPE(ROWS_OF_X, N_IN)),
                                         tensor_of(t_data, OT_SHAPE(ROWS_OF_X, WIDTH))};
            double y[N_SCORES], t[N_SCORES], dy[N_SCORES], want;
            float found;

            scores_of(y);
            for (int j = 0; j < N_SCORES; j++)
                t[j] = (double)t_data[j];
            want = losses[i].formula(y, t, dy);
            step_of(trainer, inputs, 2,
                    losses[i].text != NULL ? "loss" : ot_trainer_output_name(trainer, 0), &found,
                    1);
            if (!(fabs((double)found - want) <= 1e-6 * fabs(want)))
                fail_msg("%s in %s: the loss is %.9g, expected %.9g", losses[i].name,
                         ot_dtype_name(narrow_types[k]), (double)found, want);
            compare_bias(trainer, dy, narrow_types[k], losses[i].name);
            ot_trainer_destroy(trainer);
        }
}

// The square of 300 is above the largest f16.
static void squares_do_not_overflow(void **state)
{
    float t[N_SCORES] = {300, 300, 300, 300, 300, 300, 300, 300}, loss;
    ot_trainer *trainer = trainer_in(NULL, OT_LOSS_MSE, OT_PRECISION_F16);
    const ot_tensor *inputs[] = {tensor_of(x_data, OT_SHAPE(ROWS_OF_X, N_IN)),
                                 tensor_of(t, OT_SHAPE(ROWS_OF_X, WIDTH))};
    double y[N_SCORES], wide[N_SCORES], dy[N_SCORES], want;

    (void)state;
    scores_of(y);
    for (int j = 0; j < N_SCORES; j++)
        wide[j] = 300;
    want = mse(y, wide, dy);
    step_of(trainer, inputs, 2, ot_trainer_output_name(trainer, 0), &loss, 1);
    assert_true(fabs((double)loss - want) <= 1e-6 * want);
    compare_bias(trainer, dy, OT_F16, "mse");
    ot_trainer_destroy(trainer);
}

// In bf16 whole numbers above 256 have no room: positions would be others.
static void positions_are_f32(void **state)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "m (int64[4,1] p) => (float[4,1] y, float loss)\n"
        "<float[1,1] w = {1}, float f = {0.01}>\n"
        "{ c = Cast<to = 1>(p)  a = Mul(c, f)  s = Sin(a)  y = MatMul(s, w)\n"
        "  q = Mul(y, y)  loss = ReduceMean<keepdims = 0>(q) }";
    int64_t p[] = {1001, 2003, 3001, 4095};
    const ot_shape shape = OT_SHAPE(4, 1);

    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        ot_trainer *trainer = trainer_in(text, OT_LOSS_NONE, precisions[k]);
        const ot_tensor *inputs[1];
        ot_tensor *positions;
        float y[4];

        need(ot_tensor_wrap(OT_I64, &shape, p, sizeof p, &positions));
        inputs[0] = positions;
        step_of(trainer, inputs, 1, "y", y, 4);
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)y[i] - sin(0.01 * (double)p[i])) <= units[k]);
        ot_trainer_destroy(trainer);
    }
}

// The square of 1e-4 is 0 in f16.
static void penalties_of_parameters_are_f32(void **state)
{
    static const double penalties[] = {5e-8, 10e-8, 5e-8};
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "m (float[4,3] x) => (float[4,2] y, float[3,1] penalty, float loss)\n"
        "<float[3,2] w = {1e-4, 2e-4, -1e-4, 3e-4, -2e-4, 1e-4}, float hundred = {100}, int64[1] "
        "last = {1}>\n"
        "{ y = MatMul(x, w)  s = Mul(w, w)  penalty = ReduceSum(s, last)  l = ReduceMean<keepdims "
        "= "
        "0>(y)\n"
        "  m = ReduceSum<keepdims = 0>(penalty)  k = Mul(m, hundred)  loss = Add(l, k) }";

    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        ot_trainer *trainer = trainer_in(text, OT_LOSS_NONE, precisions[k]);
        const ot_tensor *inputs[] = {tensor_of(x_data, OT_SHAPE(ROWS_OF_X, N_IN))};
        float found[3];

        step_of(trainer, inputs, 1, "penalty", found, 3);
        for (int i = 0; i < 3; i++)
            assert_true(fabs((double)found[i] - penalties[i]) <= 1e-6 * penalties[i]);
        ot_trainer_destroy(trainer);
    }
}

// What lies between layers takes the memory, and is narrow; so is what only moves scores.
static void values_between_layers_are_narrow(void **state)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "m (float[4,3] x, int64[8] labels)\n"
        " => (float[4,2] h, float[4,2] r, float[4,2,1] g, float[8,1] z, float[8,1] v, float loss)\n"
        "<float[3,2] w = {0.5, -1, 0.25, 0.75, -0.5, 1.5}, float[2,2] u = {1, 2, 3, 4},\n"
        " int64[1] last = {2}, int64[2] rows = {8, 1}, float half = {0.5}>\n"
        "{ a = MatMul(x, w)  h = Tanh(a)  k = MatMul(h, u)  r = Add(h, k)  y = MatMul(r, u)\n"
        "  g = Unsqueeze(y, last)  z = Reshape(g, rows)  v = Mul(z, half)\n"
        "  loss = SoftmaxCrossEntropyLoss(v, labels) }";
    static const struct {
        const char *name;
        bool is_narrow;
    } outputs[] = {{"h", true}, {"r", true},  {"g", true},
                   {"z", true}, {"v", false}, {"loss", false}};

    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        ot_trainer *trainer = trainer_in(text, OT_LOSS_NONE, precisions[k]);
        const ot_tensor *inputs[2] = {tensor_of(x_data, OT_SHAPE(ROWS_OF_X, N_IN))};
        int64_t zeros[8] = {0};
        const ot_shape shape = OT_SHAPE(8);
        ot_tensor *labels;
        float loss;

        need(ot_tensor_wrap(OT_I64, &shape, zeros, sizeof zeros, &labels));
        inputs[1] = labels;
        step_of(trainer, inputs, 2, "loss", &loss, 1);
        need(ot_trainer_set_fetches(trainer, NULL, 0));
        for (int i = 0; i < 6; i++) {
            int at = 0;

            while (strcmp(ot_trainer_output_name(trainer, at), outputs[i].name) != 0)
                at++;
            if (ot_trainer_output_computed_in(trainer, at) !=
                (outputs[i].is_narrow ? narrow_types[k] : OT_F32))
                fail_msg("%s is %s", outputs[i].name,
                         ot_dtype_name(ot_trainer_output_computed_in(trainer, at)));
        }
        ot_trainer_destroy(trainer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_f32),
        cmocka_unit_test(squares_do_not_overflow),
        cmocka_unit_test(positions_are_f32),
        cmocka_unit_test(penalties_of_parameters_are_f32),
        cmocka_unit_test(values_between_layers_are_narrow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
