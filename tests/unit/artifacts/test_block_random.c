// SPDX-License-Identifier: Apache-2.0
// Random calls on builders: whatever they get, they answer with a graph or an error.
#include <math.h>

#include "block_tests.h"
#include "onnxtrain/session.h"

enum { N_BUILDERS = 1000, MAX_CALLS = 5, MAX_VALUES = 32, N_CALLS = 24 };

typedef struct game {
    ot_block *b;
    ot__rng_key key;
    uint64_t drawn;
    ot_value *values[MAX_VALUES];
    int n_values;
    const ot_tensor *tensors[4];
} game;

static int draw(game *g, int n)
{
    uint32_t words[4];

    ot__rng_block(g->key, g->drawn++, words);
    return (int)(words[0] % (uint32_t)n);
}

static ot_value *any(game *g)
{
    return g->n_values == 0 || draw(g, 200) == 0 ? NULL : g->values[draw(g, g->n_values)];
}

static ot_dtype any_dtype(game *g)
{
    return draw(g, 3) ? OT_F32 : (ot_dtype)draw(g, 30);
}

static double any_number(game *g)
{
    static const double numbers[] = {0, 1, -2, 0.5, 3, 1e300, NAN, INFINITY, -INFINITY};

    return draw(g, 3) ? 0.25 : numbers[draw(g, (int)OT_COUNT(numbers))];
}

static ot_value *new_input(game *g)
{
    ot_shape shape = {.ndim = draw(g, 4)};

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = draw(g, 5) - 1;
    return ot_block_input(g->b, draw(g, 4) ? NULL : "named", draw(g, 2) ? OT_F32 : any_dtype(g),
                          draw(g, 8) ? &shape : NULL);
}

static ot_value *new_node(game *g)
{
    static const char *const ops[] = {"Relu",
                                      "Gemm",
                                      "Concat",
                                      "Softmax",
                                      "MatMul",
                                      "Reshape",
                                      "Transpose",
                                      "Conv",
                                      "Gather",
                                      "Slice",
                                      "Dropout",
                                      "Split",
                                      "com.microsoft.Gelu",
                                      "ReduceSum",
                                      "Where",
                                      "Unknown"};
    static const char *const attrs[] = {NULL, "axis = 1", "perm = [1, 0]", "alpha = 2",
                                        "axis = -9"};
    ot_value *in[] = {any(g), any(g), any(g)}, *out[2];

    ot_block_node(g->b, ops[draw(g, (int)OT_COUNT(ops))], attrs[draw(g, (int)OT_COUNT(attrs))], in,
                  draw(g, 4), out, 1 + draw(g, 2));
    return out[0];
}

static ot_value *new_loss(game *g)
{
    ot_loss_options options = OT_LOSS_OPTIONS_INIT;

    options.loss = (ot_loss)draw(g, OT_LOSS_CUSTOM + 2);
    options.reduction = (ot_reduction)draw(g, OT_REDUCTION_NONE + 1);
    options.weight = g->tensors[draw(g, 4)];
    options.pos_weight = g->tensors[draw(g, 4)];
    options.factor = any_number(g);
    options.has_ignore_index = draw(g, 2);
    options.target = draw(g, 3) ? NULL : ot_block_value_name(any(g));
    return ot_block_loss(g->b, any(g), &options);
}

static ot_value *new_linear(game *g)
{
    return ot_block_linear(g->b, any(g), draw(g, 5) - 1, draw(g, 5) - 1, NULL);
}

static ot_value *new_encoder(game *g)
{
    ot_label_encoder_options options = OT_LABEL_ENCODER_OPTIONS_INIT;

    options.keys = g->tensors[draw(g, 4)];
    options.values = g->tensors[draw(g, 4)];
    return ot_block_label_encoder(g->b, any(g), &options);
}

static ot_value *new_optimizer(game *g)
{
    ot_optimizer_options options = OT_OPTIMIZER_OPTIONS_INIT;

    options.name = ot_optimizer_name(draw(g, ot_optimizer_count() + 1));
    options.max_norm = any_number(g);
    return ot_block_optimizer(g->b, &options, any_dtype(g));
}

static ot_value *call(game *g)
{
    ot_value *some[] = {any(g), any(g)};
    ot_keepdims keepdims = draw(g, 2) ? OT_SCALAR : OT_KEEPDIMS;

    switch (draw(g, N_CALLS)) {
    case 0:
        return new_optimizer(g);
    case 1:
        return ot_block_input_like(g->b, any(g), NULL);
    case 2:
        return ot_block_input_sequence(g->b, NULL, any_dtype(g));
    case 3:
        return ot_block_initializer(g->b, NULL, g->tensors[draw(g, 4)]);
    case 4:
        return ot_block_constant(g->b, any_number(g), draw(g, 3) ? OT_F32 : any_dtype(g));
    case 5:
        return ot_block_pow(g->b, any(g), any_number(g));
    case 6:
        return ot_block_clip(g->b, any(g), any_number(g), any_number(g));
    case 7:
        return ot_block_cast(g->b, any(g), any_dtype(g));
    case 8:
        return ot_block_reduce_all_l2(g->b, some, draw(g, 3));
    case 9:
        return ot_block_sequence_construct(g->b, some, draw(g, 3));
    case 10:
        return new_linear(g);
    case 11:
        return new_encoder(g);
    case 12:
        return ot_block_clip_grad_norm(g->b, any(g), any_number(g));
    case 13:
        return ot_block_sgd(g->b, any(g), any(g), any(g));
    case 14:
        return ot_block_reduce_mean(g->b, any(g), keepdims);
    case 15:
        return ot_block_div(g->b, any(g), any(g));
    case 16:
    case 17:
        return new_loss(g);
    case 18:
    case 19:
        return new_node(g);
    case 20:
        return ot_block_sub(g->b, any(g), any(g));
    default:
        return new_input(g);
    }
}

// A session may refuse what was built, with an error.
static void use(ot_artifacts *artifacts)
{
    ot_session *session;

    if (ot_session_create_from_artifacts(artifacts, NULL, &session) == OT_OK)
        ot_session_destroy(session);
    else
        assert_true(ot_error_message()[0] != '\0');
}

static bool finish(game *g)
{
    ot_artifacts *artifacts = NULL;
    ot_model *model = NULL;
    ot_value *last[] = {g->n_values ? g->values[g->n_values - 1] : NULL, any(g)};
    const int n = draw(g, 5) ? 1 : draw(g, 3);
    ot_status st;

    ot_block_requires_grad(g->b, draw(g, 4) ? "*" : "w", draw(g, 4) != 0);
    if (draw(g, 3) == 0)
        st = ot_block_finish(g->b, last, n, &model);
    else
        st = ot_block_finish_training(g->b, last, n, NULL, &artifacts);
    assert_int_equal(st == OT_OK, model || artifacts);
    assert_true(st != OT_ERR_INTERNAL);
    if (st != OT_OK)
        assert_true(ot_error_message()[0] != '\0');
    if (artifacts)
        use(artifacts);
    ot_model_destroy(model);
    ot_artifacts_destroy(artifacts);
    return st == OT_OK;
}

static bool play(int number, const ot_tensor *const *tensors)
{
    game g = {.key = ot__rng_key_make(1, (uint64_t)number, 0, "blocks")};
    const int n_calls = 1 + draw(&g, MAX_CALLS);
    bool done;

    memcpy(g.tensors, tensors, sizeof g.tensors);
    if (number % 4 == 0)
        assert_ok(ot_block_create_empty(NULL, &g.b));
    else
        g.b = block_over("(float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}>"
                         "{ y = Mul(x, w) }");
    if (number % 4 != 0)
        g.values[g.n_values++] = ot_block_output(g.b, 0);
    for (int i = 0; i < n_calls; i++) {
        ot_value *made = call(&g);

        if (made)
            g.values[g.n_values++] = made;
        assert_int_equal(made == NULL, ot_block_status(g.b) != OT_OK);
    }
    done = finish(&g);
    ot_block_destroy(g.b);
    return done;
}

static void random_calls_end_in_a_graph_or_an_error(void **state)
{
    const double numbers[] = {1, 2, 3};
    ot_tensor *floats = new_tensor(OT_F32, OT_SHAPE(3), numbers);
    ot_tensor *ints = new_tensor(OT_I64, OT_SHAPE(3), numbers);
    ot_tensor *one = new_tensor(OT_F64, OT_SHAPE(1, 1), numbers);
    const ot_tensor *const tensors[4] = {NULL, floats, ints, one};
    int n_done = 0;

    (void)state;
    for (int i = 0; i < N_BUILDERS; i++)
        n_done += play(i, tensors);
    assert_true(n_done > N_BUILDERS / 20); // else the calls test nothing but errors
    ot_tensor_destroy(floats);
    ot_tensor_destroy(ints);
    ot_tensor_destroy(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_calls_end_in_a_graph_or_an_error)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
