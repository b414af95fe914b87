// SPDX-License-Identifier: Apache-2.0
// What is made again under a ceiling, against an oracle: every set of nodes of the forward pass is
// tried by hand, and lifetimes are counted anew in the graph that the pass leaves.
#include "evaluate.h"

enum { SIDE = 8, TENSOR = SIDE * SIDE * 4, MAX_LIST = 64, MAX_VALUES = 32, MAX_FORWARD = 8 };

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[8,8] x, float[8,8] w) => (float y, "      \
    "float[8,8] d) { "

// ---- lifetimes in a graph, where every node has an output of its own ----

static int64_t bytes_of(const ot_value *value)
{
    size_t n = 0;
    int64_t count;

    assert_true(ot__shape_count(&value->shape, &count));
    assert_true(ot__dtype_bytes(value->dtype, count, &n));
    return (int64_t)n;
}

static bool reads(const ot_node *node, const ot_value *value)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] == value)
            return true;
    return false;
}

static int64_t peak_of(const ot_graph *graph)
{
    int64_t peak = 0;

    for (int t = 0; t < graph->n_nodes; t++) {
        int64_t live = 0;

        for (int n = 0; n <= t; n++) {
            const ot_value *y = graph->nodes[n]->outputs[0];
            int last = y->is_output ? graph->n_nodes : n;

            for (int k = n + 1; k < graph->n_nodes; k++)
                if (reads(graph->nodes[k], y))
                    last = OT_MAX(last, k);
            if (last >= t)
                live += bytes_of(y);
        }
        peak = OT_MAX(peak, live);
    }
    return peak;
}

// ---- the oracle: a list of nodes by their numbers, in which some stand twice ----

typedef struct tape {
    int input[MAX_LIST][2], size[MAX_LIST], n; // input: a place on the tape; -1: none
    bool is_output[MAX_LIST];
} tape;

// Where the value of node `v` is found from now on; makes it again first where it is chosen.
static int place_of(const tape *from, int v, int n_forward, unsigned chosen, int *place, tape *to)
{
    if (v < 0 || place[v] >= n_forward || (chosen >> v & 1) == 0)
        return v < 0 ? -1 : place[v];
    {
        int in[2];

        for (int i = 0; i < 2; i++)
            in[i] = place_of(from, from->input[v][i], n_forward, chosen, place, to);
        place[v] = to->n;
        to->size[to->n] = from->size[v];
        memcpy(to->input[to->n++], in, sizeof in);
    }
    return place[v];
}

static int64_t peak_of_tape(const tape *t)
{
    int64_t peak = 0;

    for (int now = 0; now < t->n; now++) {
        int64_t live = 0;

        for (int v = 0; v <= now; v++) {
            int last = t->is_output[v] ? t->n : v;

            for (int k = v + 1; k < t->n; k++)
                if (t->input[k][0] == v || t->input[k][1] == v)
                    last = k;
            live += last >= now ? t->size[v] : 0;
        }
        peak = OT_MAX(peak, live);
    }
    return peak;
}

static int64_t peak_with(const tape *from, int n_forward, unsigned chosen)
{
    tape to = {.n = 0};
    int place[MAX_LIST];

    for (int v = 0; v < from->n; v++) {
        int in[2];

        for (int i = 0; i < 2; i++)
            in[i] = v < n_forward
                        ? from->input[v][i]
                        : place_of(from, from->input[v][i], n_forward, chosen, place, &to);
        place[v] = to.n;
        to.size[to.n] = from->size[v];
        to.is_output[to.n] = from->is_output[v];
        memcpy(to.input[to.n++], in, sizeof in);
    }
    return peak_of_tape(&to);
}

static tape tape_of(const ot_graph *graph)
{
    tape t = {.n = graph->n_nodes};

    for (int n = 0; n < t.n; n++) {
        const ot_node *node = graph->nodes[n];

        t.size[n] = (int)bytes_of(node->outputs[0]);
        t.is_output[n] = node->outputs[0]->is_output;
        for (int i = 0; i < 2; i++) {
            t.input[n][i] = -1;
            for (int k = 0; i < node->n_inputs && k < n; k++)
                if (graph->nodes[k]->outputs[0] == node->inputs[i])
                    t.input[n][i] = k;
        }
    }
    return t;
}

// The lowest peak that any set of nodes gives.
static int64_t lowest_peak(const ot_graph *graph, int n_forward)
{
    const tape t = tape_of(graph);
    int64_t lowest = INT64_MAX;

    assert_in_range(n_forward, 1, MAX_FORWARD);
    assert_int_equal(peak_with(&t, n_forward, 0), peak_of(graph));
    for (unsigned chosen = 0; chosen < 1u << (n_forward - 1); chosen++) { // not the output's node
        const int64_t peak = peak_with(&t, n_forward, chosen);

        lowest = OT_MIN(lowest, peak);
    }
    return lowest;
}

// ---- the pass ----

static const int user_outputs[] = {0};

static void assert_same_outputs(const ot_model *model, const ot_model *changed)
{
    static double numbers[2 * SIDE * SIDE];
    evaluation before = {0}, after = {0};

    for (int k = 0; k < 2 * SIDE * SIDE; k++)
        numbers[k] = (k * 7 % 11 - 4) * 0.125;
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        feed(&before, x->name, new_tensor(x->dtype, x->shape, numbers + i));
        feed(&after, x->name, new_tensor(x->dtype, x->shape, numbers + i));
    }
    compute(&before, model);
    compute(&after, changed);
    for (int o = 0; o < model->graph->n_outputs; o++) {
        const char *name = model->graph->outputs[o]->name;

        for (int64_t k = 0; k < ot_tensor_count(result(&before, name)); k++)
            assert_true(element(&after, name, k) == element(&before, name, k));
    }
    evaluation_deinit(&before);
    evaluation_deinit(&after);
}

// As many bytes less as are wanted, where any set of nodes gives them; what is said to have fallen
// has fallen. The least that is wanted, and all that can be had.
static void assert_reaches(const char *text, int n_forward)
{
    ot_model *model = read_prepared(text);
    const int64_t before = peak_of(model->graph);
    const int64_t most = before - lowest_peak(model->graph, n_forward);

    assert_true(most > 0);
    for (int64_t wanted = TENSOR; wanted <= most; wanted += TENSOR) {
        ot_model *changed = read_prepared(text);
        int64_t fell;

        assert_ok(ot__pass_recompute_choose(changed, user_outputs, 1, false, wanted, &fell));
        assert_ok(ot__graph_verify(changed->graph));
        if (fell < wanted)
            fail_msg("fell by %d of %d bytes, %d of them can be had\n%s", (int)fell, (int)before,
                     (int)most, text);
        assert_int_equal(peak_of(changed->graph), before - fell);
        assert_same_outputs(model, changed);
        ot_model_destroy(changed);
    }
    ot_model_destroy(model);
}

static void a_chain_is_made_again_down_to_what_any_set_gives(void **state)
{
    (void)state;
    assert_reaches(HEAD "a = MatMul(x, w) b = MatMul(a, w) c = MatMul(b, w)"
                        " y = ReduceSum<keepdims = 0>(c)"
                        " e = MatMul(c, w) f = MatMul(e, b) h = MatMul(f, a) d = MatMul(h, x) }",
                   4);
}

static void two_branches_are_made_again_down_to_what_any_set_gives(void **state)
{
    (void)state;
    assert_reaches(HEAD "a = Transpose(x) b = MatMul(a, w) c = Transpose(b) e = MatMul(x, w)"
                        " f = MatMul(e, c) y = ReduceSum<keepdims = 0>(f)"
                        " i = MatMul(f, w) j = MatMul(i, e) k = MatMul(j, c) l = MatMul(k, b)"
                        " d = MatMul(l, a) }",
                   6);
}

static void something_wide_in_the_middle_is_not_kept(void **state)
{
    (void)state;
    assert_reaches(HEAD "a = MatMul(x, w) b = Concat<axis = 0>(a, a) c = Transpose(b)"
                        " e = MatMul(c, b) y = ReduceSum<keepdims = 0>(e)"
                        " f = MatMul(e, w) h = MatMul(f, w) i = MatMul(h, c) j = MatMul(i, b)"
                        " d = MatMul(j, a) }",
                   5);
}

// Both would take as much off the peak; a transpose is less work than a product.
static void what_is_cheaper_goes_first(void **state)
{
    ot_model *model =
        read_prepared(HEAD "a = MatMul(x, w) b = Transpose(x) c = MatMul(a, b)"
                           " y = ReduceSum<keepdims = 0>(c) e = MatMul(c, w) f = MatMul(e, w)"
                           " h = MatMul(f, a) d = MatMul(h, b) }");
    int64_t fell;
    int n_products = 0, n_transposes = 0;

    (void)state;
    assert_ok(ot__pass_recompute_choose(model, user_outputs, 1, false, TENSOR, &fell));
    assert_true(fell >= TENSOR);
    for (int n = 0; n < model->graph->n_nodes; n++) {
        n_products += strcmp(model->graph->nodes[n]->op_type, "MatMul") == 0;
        n_transposes += strcmp(model->graph->nodes[n]->op_type, "Transpose") == 0;
    }
    assert_int_equal(n_products, 6);
    assert_int_equal(n_transposes, 2);
    ot_model_destroy(model);
}

static void nothing_is_made_again_that_does_not_help(void **state)
{
    ot_model *model = read_prepared(HEAD "a = MatMul(x, w) y = ReduceSum<keepdims = 0>(a)"
                                         " d = MatMul(a, w) }");
    int64_t fell;

    (void)state;
    assert_int_equal(lowest_peak(model->graph, 2), peak_of(model->graph));
    assert_ok(ot__pass_recompute_choose(model, user_outputs, 1, false, TENSOR, &fell));
    assert_int_equal(fell, 0);
    assert_int_equal(model->graph->n_nodes, 3);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_made_again_down_to_what_any_set_gives),
        cmocka_unit_test(two_branches_are_made_again_down_to_what_any_set_gives),
        cmocka_unit_test(something_wide_in_the_middle_is_not_kept),
        cmocka_unit_test(what_is_cheaper_goes_first),
        cmocka_unit_test(nothing_is_made_again_that_does_not_help),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
