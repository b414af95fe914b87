// SPDX-License-Identifier: Apache-2.0
// Steps in which elements decide on shapes and branches.
#include <math.h>
#include <stdlib.h>

#include "evaluate.h"
#include "onnxtrain/onnxtrain.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]> g "

// The chosen rows of x w.
static const char chosen_text[] =
    HEAD "(double[n,2] x, bool[n] mask) => (double[k,2] y)"
         "<double[2,2] w = {0.5, -1, 2, 1.5}, int64[1] axis = {0}>"
         "{ i = NonZero(mask) j = Squeeze(i, axis) h = MatMul(x, w) y = Gather(h, j) }";
static const double w[2][2] = {{0.5, -1}, {2, 1.5}};
static const double x_data[3][2] = {{1, -2}, {0.5, 3}, {-1, 0.25}};

// A decided value decides: 0, 1, 2, ... up to the sum of the chosen elements.
static const char rounds_text[] =
    HEAD "(float[n] x, bool[n] mask) => (int64[k] y)"
         "<int64[1] axis = {0}, int64 zero = {0}, int64 one = {1}>"
         "{ i = NonZero(mask) j = Squeeze(i, axis) c = Gather(x, j)"
         "  s = ReduceSum<keepdims = 0>(c) l = Cast<to = 7>(s) y = Range(zero, l, one) }";

static const char range_text[] =
    HEAD "(int64 n) => (int64[k] y) <int64 zero = {0}, int64 one = {1}>"
         "{ y = Range(zero, n, one) }";

// All that is greater than a half, of numbers that are drawn.
static const char drawn_text[] =
    HEAD "(float[n] x) => (float least, int64 count) <float half = {0.5}>"
         "{ r = RandomUniformLike(x) m = Greater(r, half) i = NonZero(m) t = Transpose(i)"
         "  c = GatherND(r, t) least = ReduceMin<keepdims = 0>(c) count = Size(c) }";

// The branches have parameters of their own; in the one that is not taken nothing is finite, and
// shapes do not fit.
static const char branches_text[] =
    HEAD "(double[n,2] x, bool c) => (double[n,2] y)"
         "<double[2,2] w = {0.5, -1, 2, 1.5}, double[2,2] v = {1, 0, 0, 1}, int64[2] odd = {7, -1}>"
         "{ y = If (c) <then_branch = a () => (double[p,q] t) { t = MatMul(x, w) },"
         "   else_branch = b () => (double[p,q] e) { s = Sqrt(x) m = MatMul(s, v)"
         "     r = Reshape(m, odd) u = ReduceSum<keepdims = 0>(r) e = Add(m, u) }> }";

// h = x * 2^n, and what h was after each turn.
static const char counted_text[] =
    HEAD "(float[2] x, int64 n) => (float[2] y, float[k,2] all)"
         "{ y, all = Loop (n, , x) <body = turn (int64 i, bool go, float[2] h) =>"
         "  (bool goes, float[2] g, float[2] place)"
         "  { goes = Identity(go) g = Add(h, h) place = Identity(g) }> }";

// Doubles as long as the largest element is below the limit.
static const char until_text[] =
    HEAD "(float[2] x, float limit) => (float[2] y, float[k] all)"
         "{ m = ReduceMax<keepdims = 0>(x) below = Less(m, limit)"
         "  y, all = Loop (, below, x) <body = turn (int64 i, bool go, float[2] h) =>"
         "  (bool goes, float[2] g, float place)"
         "  { g = Add(h, h) place = ReduceMax<keepdims = 0>(g) goes = Less(place, limit) }> }";

static const char endless_text[] =
    HEAD "(float[2] x, bool c) => (float[2] y)"
         "{ y = Loop (, c, x) <body = turn (int64 i, bool go, float[2] h) =>"
         "  (bool goes, float[2] g) { goes = Identity(go) g = Add(h, h) }> }";

// y = 2^turns x w, the loss its mean square.
static const char turns_text[] =
    HEAD "(double[n,2] x, int64 turns) => (double[n,2] y) <double[2,2] w = {0.5, -1, 2, 1.5}>"
         "{ m = MatMul(x, w)"
         "  y = Loop (turns, , m) <body = turn (int64 i, bool go, double[p,q] h) =>"
         "  (bool goes, double[p,q] g) { goes = Identity(go) g = Add(h, h) }> }";

static int n_specialized;

static void count_specialized(const ot_model *model, const char *pass)
{
    (void)model;
    n_specialized += strcmp(pass, "specialize") == 0;
}

static ot_tensor *bools(int n, const unsigned char *elements)
{
    ot_tensor *tensor;

    assert_ok(ot_tensor_create(OT_BOOL, &OT_SHAPE(n), &tensor));
    memcpy(ot_tensor_data(tensor), elements, (size_t)n);
    return tensor;
}

static ot_tensor *rows(int n)
{
    return new_tensor(OT_F64, OT_SHAPE(n, 2), &x_data[0][0]);
}

static ot_runner *runner_of(const char *text)
{
    ot_model *model = read_text(text);
    ot_runner *runner;

    assert_ok(ot_runner_create(model, NULL, &runner));
    ot_model_destroy(model);
    return runner;
}

static ot_status run_pair(ot_runner *runner, const ot_tensor *a, const ot_tensor *b, ot_tensor **y)
{
    const ot_tensor *const in[] = {a, b};
    const ot_feed feeds[] = {{&in[0], 1}, {&in[1], 1}};

    return ot_runner_run(runner, feeds, b != NULL ? 2 : 1, NULL, y, 1);
}

static void assert_chosen(ot_runner *runner, const unsigned char *chosen)
{
    ot_tensor *x = rows(3), *mask = bools(3, chosen), *y;
    int k = 0;

    assert_ok(run_pair(runner, x, mask, &y));
    for (int i = 0; i < 3; i++) {
        if (!chosen[i])
            continue;
        for (int c = 0; c < 2; c++)
            assert_true(fabs(ot__tensor_get_f64(y, 2 * k + c) -
                             (x_data[i][0] * w[0][c] + x_data[i][1] * w[1][c])) < 1e-14);
        k++;
    }
    assert_int_equal(ot_tensor_shape(y)->dim[0], k);
    ot_tensor_destroy(x);
    ot_tensor_destroy(mask);
    ot_tensor_destroy(y);
}

static void elements_of_an_input_decide_on_shapes(void **state)
{
    ot_runner *runner = runner_of(chosen_text);

    (void)state;
    ot__pass_set_observer(count_specialized);
    n_specialized = 0;
    assert_chosen(runner, (const unsigned char[]){1, 0, 1});
    assert_chosen(runner, (const unsigned char[]){0, 1, 0});
    assert_chosen(runner, (const unsigned char[]){0, 0, 0});
    assert_int_equal(n_specialized, 3);
    assert_chosen(runner, (const unsigned char[]){1, 0, 1}); // there are plans for these
    assert_chosen(runner, (const unsigned char[]){0, 1, 0});
    assert_int_equal(n_specialized, 3);
    ot__pass_set_observer(NULL);
    ot_runner_destroy(runner);
}

static void what_is_decided_may_decide(void **state)
{
    ot_runner *runner = runner_of(rounds_text);
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(4), (const double[]){1, 2, 3, 4}), *mask, *y;

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        mask = bools(4, turn == 0 ? (const unsigned char[]){0, 1, 0, 1}
                                  : (const unsigned char[]){1, 0, 0, 1});
        assert_ok(run_pair(runner, x, mask, &y));
        assert_int_equal(ot_tensor_count(y), 6 - turn); // 2 + 4, 1 + 4
        assert_int_equal(ot__tensor_get_i64(y, 4), 4);
        ot_tensor_destroy(mask);
        ot_tensor_destroy(y);
    }
    ot_tensor_destroy(x);
    ot_runner_destroy(runner);
}

static void numbers_that_are_drawn_are_those_of_the_step(void **state)
{
    ot_runner *runner = runner_of(drawn_text);
    const double zeros[40] = {0};
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(40), zeros), *y[2];
    const ot_feed feed_x = {(const ot_tensor *const *)&x, 1};

    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        assert_ok(ot_runner_run(runner, &feed_x, 1, NULL, y, 2));
        assert_true(ot__tensor_get_f64(y[0], 0) > 0.5);
        assert_in_range(ot__tensor_get_i64(y[1], 0), 8, 32);
        ot_tensor_destroy(y[0]);
        ot_tensor_destroy(y[1]);
    }
    ot_tensor_destroy(x);
    ot_runner_destroy(runner);
}

static void what_is_too_large_is_refused(void **state)
{
    static const double counts[] = {5, 4e15, 5, -1};
    ot_runner *runner = runner_of(range_text);

    (void)state;
    for (int turn = 0; turn < 4; turn++) {
        ot_tensor *n = new_tensor(OT_I64, (ot_shape){0}, &counts[turn]), *y = NULL;
        const ot_status st = run_pair(runner, n, NULL, &y);

        assert_int_equal(st, turn == 1 ? OT_ERR_NO_MEMORY : OT_OK);
        if (st == OT_OK)
            assert_int_equal(ot_tensor_count(y), turn == 3 ? 0 : 5);
        ot_tensor_destroy(n);
        ot_tensor_destroy(y);
    }
    ot_runner_destroy(runner);
}

static void run_loop(const char *text, ot_dtype dtype, double number, ot_status expected,
                     ot_tensor **y)
{
    ot_runner *runner = runner_of(text);
    ot_tensor *x = new_tensor(OT_F32, OT_SHAPE(2), (const double[]){1, -3});
    ot_tensor *n = new_tensor(dtype, (ot_shape){0}, &number);
    const ot_tensor *const in[] = {x, n};
    const ot_feed feeds[] = {{&in[0], 1}, {&in[1], 1}};

    if (expected == OT_OK)
        assert_ok(ot_runner_run(runner, feeds, 2, NULL, y, 2));
    else
        assert_fails(ot_runner_run(runner, feeds, 2, NULL, y, 1), expected, "Loop");
    ot_tensor_destroy(x);
    ot_tensor_destroy(n);
    ot_runner_destroy(runner);
}

static void data_decide_how_many_turns_a_loop_takes(void **state)
{
    (void)state;
    for (int n = 0; n <= 5; n++) {
        ot_tensor *y[2];

        run_loop(counted_text, OT_I64, n, OT_OK, y);
        assert_true(ot__tensor_get_f64(y[0], 1) == -3.0 * (1 << n));
        assert_int_equal(ot_tensor_shape(y[1])->dim[0], n);
        for (int i = 0; i < n; i++)
            assert_true(ot__tensor_get_f64(y[1], 2 * i) == 2 << i);
        ot_tensor_destroy(y[0]);
        ot_tensor_destroy(y[1]);
    }
}

static void data_decide_when_a_loop_ends(void **state)
{
    static const struct {
        double limit;
        int n_turns;
    } rows[] = {{0.5, 0}, {2, 1}, {9, 4}, {300, 9}};
    ot_tensor *y[2] = {NULL, NULL};

    (void)state;
    for (size_t k = 0; k < OT_COUNT(rows); k++) {
        run_loop(until_text, OT_F32, rows[k].limit, OT_OK, y);
        assert_true(ot__tensor_get_f64(y[0], 0) == 1 << rows[k].n_turns);
        assert_int_equal(ot_tensor_count(y[1]), rows[k].n_turns);
        for (int i = 0; i < rows[k].n_turns; i++)
            assert_true(ot__tensor_get_f64(y[1], i) == 2 << i);
        ot_tensor_destroy(y[0]);
        ot_tensor_destroy(y[1]);
    }
    y[0] = NULL;
    run_loop(endless_text, OT_BOOL, 1, OT_ERR_UNSUPPORTED, y);
    run_loop(counted_text, OT_I64, 5000, OT_ERR_UNSUPPORTED, y);
}

// ---- sessions ----

typedef struct life {
    ot_artifacts *artifacts;
    ot_session *session;
    ot_runner *runner;
    ot_tensor *inputs[3], *output;
    int n_inputs;
} life;

#include "until_it_works.h"

static int setup(void **state)
{
    *state = calloc(1, sizeof(life));
    return 0;
}

static void drop_inputs(life *l)
{
    for (int i = 0; i < 3; i++) {
        ot_tensor_destroy(l->inputs[i]);
        l->inputs[i] = NULL;
    }
}

static int teardown(void **state)
{
    life *l = *state;

    drop_inputs(l);
    ot_tensor_destroy(l->output);
    ot_runner_destroy(l->runner);
    ot_session_destroy(l->session);
    ot_artifacts_destroy(l->artifacts);
    free(l);
    return 0;
}

static void open_session(life *l, const char *text)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_loss_options mse = OT_LOSS_OPTIONS_INIT;
    ot_model *model = read_text(text);

    mse.loss = OT_LOSS_MSE;
    options.losses = &mse;
    options.n_losses = 1;
    assert_ok(ot_artifacts_generate(model, &options, &l->artifacts));
    assert_ok(ot_session_create_from_artifacts(l->artifacts, NULL, &l->session));
    ot_model_destroy(model);
}

static ot_status train_step(life *l)
{
    return ot_session_train_step(l->session, (const ot_tensor *const *)l->inputs, l->n_inputs,
                                 &l->output, 1);
}

static ot_status eval_step(life *l)
{
    return ot_session_eval_step(l->session, (const ot_tensor *const *)l->inputs, l->n_inputs,
                                &l->output, 1);
}

static double loss_of(life *l, ot_status st)
{
    double loss;

    assert_ok(st);
    loss = ot__tensor_get_f64(l->output, 0);
    ot_tensor_destroy(l->output);
    l->output = NULL;
    return loss;
}

// Of mean((y - target)^2), the target 0.
typedef struct reference {
    double loss, dw[2][2];
} reference;

static reference expect_rows(int n, const unsigned char *chosen)
{
    reference r = {0};
    int k = 0;

    for (int i = 0; i < n; i++)
        k += chosen[i];
    for (int i = 0; i < n; i++)
        for (int c = 0; c < 2 && chosen[i]; c++) {
            const double y = x_data[i][0] * w[0][c] + x_data[i][1] * w[1][c];

            r.loss += y * y / (2 * k);
            for (int j = 0; j < 2; j++)
                r.dw[j][c] += x_data[i][j] * 2 * y / (2 * k);
        }
    return r;
}

static void assert_gradient(const life *l, const char *name, const double *expected)
{
    ot_tensor *gradient;

    assert_ok(ot_checkpoint_get_gradient(ot_session_checkpoint(l->session), name, &gradient));
    for (int i = 0; i < 4; i++)
        assert_true(fabs(ot__tensor_get_f64(gradient, i) - expected[i]) < 1e-13);
    ot_tensor_destroy(gradient);
}

static void choose(life *l, const unsigned char *chosen)
{
    const double zeros[6] = {0};
    int k = 0;

    drop_inputs(l);
    for (int i = 0; i < 3; i++)
        k += chosen[i];
    l->inputs[0] = rows(3);
    l->inputs[1] = bools(3, chosen);
    l->inputs[2] = new_tensor(OT_F64, OT_SHAPE(k, 2), zeros);
    l->n_inputs = 3;
}

static void a_mask_trains_what_it_chooses(void **state)
{
    static const unsigned char masks[][3] = {{1, 0, 1}, {0, 1, 0}, {1, 1, 1}, {1, 0, 1}};
    life *l = *state;

    open_session(l, chosen_text);
    for (int turn = 0; turn < 4; turn++) {
        const reference r = expect_rows(3, masks[turn]);

        choose(l, masks[turn]);
        ot_session_reset_gradients(l->session);
        assert_true(fabs(loss_of(l, train_step(l)) - r.loss) < 1e-13);
        assert_gradient(l, "w", &r.dw[0][0]);
        assert_true(fabs(loss_of(l, eval_step(l)) - r.loss) < 1e-13);
    }
}

static void without_data_it_is_said_what_decides(void **state)
{
    const ot_shape shapes[] = {OT_SHAPE(3, 2), OT_SHAPE(3), OT_SHAPE(2, 2)};
    life *l = *state;
    char *text;

    open_session(l, chosen_text);
    assert_fails(ot_session_describe_plan(l->session, OT_MODE_TRAIN, shapes, 3, &text),
                 OT_ERR_UNSUPPORTED, "which elements of 'mask' decide: only a step has them");
    assert_null(text);
    choose(l, (const unsigned char[]){1, 0, 1});
    assert_true(loss_of(l, train_step(l)) > 0); // and a step goes on
    assert_fails(ot_session_describe_plan(l->session, OT_MODE_TRAIN, shapes, 3, &text),
                 OT_ERR_UNSUPPORTED, "'mask'");
}

static void branch(life *l, int condition)
{
    const double zeros[6] = {0}, taken = condition;

    drop_inputs(l);
    l->inputs[0] = rows(3);
    l->inputs[1] = new_tensor(OT_BOOL, (ot_shape){0}, &taken);
    l->inputs[2] = new_tensor(OT_F64, OT_SHAPE(3, 2), zeros);
    l->n_inputs = 3;
}

static void the_branch_that_is_taken_trains_alone(void **state)
{
    static const double nothing[4] = {0};
    const reference r = expect_rows(3, (const unsigned char[]){1, 1, 1});
    life *l = *state;

    open_session(l, branches_text);
    for (int turn = 0; turn < 2; turn++) {
        branch(l, 1);
        ot_session_reset_gradients(l->session);
        assert_true(fabs(loss_of(l, train_step(l)) - r.loss) < 1e-13);
        assert_gradient(l, "w", &r.dw[0][0]);
        assert_gradient(l, "v", nothing);
        assert_true(fabs(loss_of(l, eval_step(l)) - r.loss) < 1e-13);
    }
    branch(l, 0);
    assert_fails(train_step(l), OT_ERR_INVALID, "Reshape");
}

static void a_gradient_passes_the_turns_that_data_decide(void **state)
{
    static const int turns[] = {2, 0, 1, 2};
    const reference r = expect_rows(3, (const unsigned char[]){1, 1, 1});
    const double zeros[6] = {0};
    life *l = *state;

    open_session(l, turns_text);
    l->inputs[0] = rows(3);
    l->inputs[2] = new_tensor(OT_F64, OT_SHAPE(3, 2), zeros);
    l->n_inputs = 3;
    for (size_t k = 0; k < OT_COUNT(turns); k++) {
        const double n = turns[k], scale = 1 << 2 * turns[k];
        double dw[4];

        for (int i = 0; i < 4; i++)
            dw[i] = scale * (&r.dw[0][0])[i];
        ot_tensor_destroy(l->inputs[1]);
        l->inputs[1] = new_tensor(OT_I64, (ot_shape){0}, &n);
        ot_session_reset_gradients(l->session);
        assert_true(fabs(loss_of(l, train_step(l)) - scale * r.loss) < 1e-12);
        assert_gradient(l, "w", dw);
        assert_true(fabs(loss_of(l, eval_step(l)) - scale * r.loss) < 1e-12);
    }
}

static ot_status run_chosen(life *l)
{
    return run_pair(l->runner, l->inputs[0], l->inputs[1], &l->output);
}

static ot_status run_loop_again(life *l)
{
    const ot_tensor *const in[] = {l->inputs[0], l->inputs[1]};
    const ot_feed feeds[] = {{&in[0], 1}, {&in[1], 1}};

    return ot_runner_run(l->runner, feeds, 2, NULL, &l->output, 1);
}

static void out_of_memory_in_a_loop(void **state)
{
    const double limit = 9;
    life *l = *state;

    l->runner = runner_of(until_text);
    l->inputs[0] = new_tensor(OT_F32, OT_SHAPE(2), (const double[]){1, -3});
    l->inputs[1] = new_tensor(OT_F32, (ot_shape){0}, &limit);
    assert_true(until_it_works(l, run_loop_again) > 50);
    assert_true(ot__tensor_get_f64(l->output, 0) == 16);
}

static void out_of_memory(void **state)
{
    life *l = *state;

    l->runner = runner_of(chosen_text);
    choose(l, (const unsigned char[]){1, 0, 1});
    assert_true(until_it_works(l, run_chosen) > 20);
    assert_int_equal(ot_tensor_shape(l->output)->dim[0], 2);
    ot_tensor_destroy(l->output);
    l->output = NULL;
    open_session(l, branches_text);
    branch(l, 1);
    assert_true(until_it_works(l, train_step) > 20);
}

static void out_of_memory_in_a_gradient_that_waits(void **state)
{
    const double zeros[6] = {0}, turns = 2;
    life *l = *state;

    open_session(l, turns_text);
    l->inputs[0] = rows(3);
    l->inputs[1] = new_tensor(OT_I64, (ot_shape){0}, &turns);
    l->inputs[2] = new_tensor(OT_F64, OT_SHAPE(3, 2), zeros);
    l->n_inputs = 3;
    assert_true(until_it_works(l, train_step) > 50);
}

#define LIFE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_an_input_decide_on_shapes),
        cmocka_unit_test(what_is_decided_may_decide),
        cmocka_unit_test(numbers_that_are_drawn_are_those_of_the_step),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(data_decide_how_many_turns_a_loop_takes),
        cmocka_unit_test(data_decide_when_a_loop_ends),
        LIFE(a_mask_trains_what_it_chooses),
        LIFE(without_data_it_is_said_what_decides),
        LIFE(the_branch_that_is_taken_trains_alone),
        LIFE(a_gradient_passes_the_turns_that_data_decide),
        LIFE(out_of_memory_in_a_loop),
        LIFE(out_of_memory),
        LIFE(out_of_memory_in_a_gradient_that_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
