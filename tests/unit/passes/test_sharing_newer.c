// SPDX-License-Identifier: Apache-2.0
// What the newer exporter leaves out, and what it says of the module: biases of zeros come back,
// units are no parameters, and what is missing is named.
#include "unit/passes/sharing_model.h"

#define LINEAR(y, x, weight, bias)                                                                 \
    "%" y " : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%" x     \
    ", %p_" weight ", " bias "), kwargs = {})"
#define NORM(kind, arguments)                                                                      \
    "%n : call_function[target=torch.ops.aten." kind ".default](args = (%x, " arguments "), "      \
    "kwargs = {})"

// ---- biases ----

// One Gemm as [in, out], one as [out, in] that is called twice; one that has a bias, and one that
// never had any.
static ot_model *linears(void)
{
    ot_model *model = quoted_model(
        HEAD "g (float[N,2] x) => (float[N,2] y)\n"
             "    <float[2,3] 'a.weight' = {1, 2, 3, 4, 5, 6}, float[3,3] 'b.weight' = {1, 2, 3, 4,"
             " 5, 6, 7, 8, 9}, float[2,3] 'c.weight' = {6, 5, 4, 3, 2, 1}, float[2] 'c.bias' = {1,"
             " 2}, float[2,2] 'd.weight' = {1, 3, 3, 4}>\n{\n"
             "    a = Gemm(x, 'a.weight')\n    b = Gemm <transB = 1> (a, 'b.weight')\n"
             "    b_1 = Gemm <transB = 1, beta = 1.0> (b, 'b.weight')\n"
             "    c = Gemm <transB = 1> (b_1, 'c.weight', 'c.bias')\n"
             "    d = Gemm(c, 'd.weight')\n    y = Gemm <beta = 0.5> (d, 'd.weight')\n}");

    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_a_weight: PARAMETER target='a.weight'\np_a_bias: PARAMETER target='a.bias'\n"
         "p_b_weight: PARAMETER target='b.weight'\np_b_bias: PARAMETER target='b.bias'\n"
         "p_c_weight: PARAMETER target='c.weight'\np_c_bias: PARAMETER target='c.bias'\n"
         "p_d_weight: PARAMETER target='d.weight'\np_d_bias: PARAMETER target='d.bias'\n");
    say(model, "a", "['', 'a', 'linear']", LINEAR("a", "x", "a_weight", "%p_a_bias"));
    say(model, "b", "['', 'b', 'linear_1']", LINEAR("b", "a", "b_weight", "%p_b_bias"));
    say(model, "b_1", "['', 'b', 'linear_2']", LINEAR("b_1", "b", "b_weight", "%p_b_bias"));
    say(model, "c", "['', 'c', 'linear_3']", LINEAR("c", "b_1", "c_weight", "%p_c_bias"));
    say(model, "d", "['', 'd', 'linear_4']", LINEAR("d", "c", "d_weight", "None"));
    say(model, "y", "['', 'd', 'addmm']",
        "%y : call[target=torch.ops.aten.addmm.default](args = (%p_d_bias, %d, %p_d_weight))");
    return model;
}

static void assert_zeros(const ot_model *model, const char *y, const char *name, int n)
{
    const ot_tensor *t;

    assert_int_equal(maker(model, y)->n_inputs, 3);
    assert_input(model, y, 2, name);
    t = maker(model, y)->inputs[2]->constant;
    assert_int_equal(t->dtype, OT_F32);
    assert_int_equal(t->shape.ndim, 1);
    assert_int_equal(t->shape.dim[0], n);
    for (int i = 0; i < n; i++)
        assert_true(ot__tensor_get_f64(t, i) == 0.0);
}

static void biases_that_were_dropped_as_zeros_are_back(void **state)
{
    ot_model *model = linears();
    const ot__sharings found = run(model);
    const ot__sharing *item = about(&found, OT_SHARING_RESTORED, "a.bias");

    (void)state;
    assert_zeros(model, "a", "a.bias", 3);
    assert_zeros(model, "b", "b.bias", 3);
    assert_ptr_equal(maker(model, "b")->inputs[2], maker(model, "b_1")->inputs[2]);
    assert_input(model, "c", 2, "c.bias");
    assert_int_equal(maker(model, "d")->n_inputs, 2);
    assert_int_equal(maker(model, "y")->n_inputs, 2); // half of a bias may be anything
    assert_non_null(item);
    assert_int_equal(item->n_parts, 2);
    assert_string_equal(item->parts[1], "b.bias");
    assert_non_null(about(&found, OT_SHARING_LOST, "d.bias"));
    assert_int_equal(run(model).n, found.n - 1); // they are there now
    ot_model_destroy(model);
}

static void biases_stay_away_where_the_user_keeps_the_file(void **state)
{
    static const char *const patterns[] = {"a.*"};
    bool used[OT_COUNT(patterns)] = {false};
    const ot__kept_names kept = {patterns, 1, used};
    ot_model *model = linears();
    ot__sharings found;

    (void)state;
    run_keeping(model, &kept, &found);
    assert_true(used[0]);
    assert_int_equal(maker(model, "a")->n_inputs, 2);
    assert_zeros(model, "b", "b.bias", 3);
    ot_model_destroy(model);
}

// A tensor of that name that is not zeros cannot be what was dropped.
static void a_bias_that_the_file_has_elsewhere_is_not_given_again(void **state)
{
    ot_model *model = quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                                        "    <float[2,2] 'a.weight' = {1, 2, 3, 4},"
                                        " float[2] 'a.bias' = {0, 1}>\n{\n"
                                        "    h = Gemm(x, 'a.weight')\n    y = Mul(h, 'a.bias')\n}");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE, "p_a_bias: PARAMETER target='a.bias'\n");
    say(model, "h", "['', 'a', 'linear']", LINEAR("h", "x", "a_weight", "%p_a_bias"));
    run(model);
    assert_int_equal(maker(model, "h")->n_inputs, 2);
    ot_model_destroy(model);
}

static void biases_of_convolutions_have_a_number_for_each_channel(void **state)
{
    ot_model *model = quoted_model(HEAD "g (float[N,4,5] x) => (float[N,6,5] y)\n"
                                        "    <float[2,2,1] 'c.weight' = {1, 2, 3, 4},"
                                        " float[2,3,1] 't.weight' = {1, 2, 3, 4, 5, 6}>\n{\n"
                                        "    c = Conv <group = 2> (x, 'c.weight')\n"
                                        "    y = ConvTranspose <group = 2> (c, 't.weight')\n}");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_c_b: PARAMETER target='c.bias'\np_t_b: PARAMETER target='t.bias'\n");
    say(model, "c", "['', 'c', 'conv1d']",
        "%c : call[target=torch.ops.aten.conv1d.default](args = (%x, %p_c_w, %p_c_b, [1], [0]))");
    say(model, "y", "['', 't', 'conv_transpose1d']",
        "%y : call[target=torch.ops.aten.conv_transpose1d.default](args = (%c, %p_t_w, %p_t_b))");
    run(model);
    assert_zeros(model, "c", "c.bias", 2);
    assert_zeros(model, "y", "t.bias", 6);
    ot_model_destroy(model);
}

// What no convolution can have is left to those who check it.
static void absurd_groups_get_no_bias(void **state)
{
    ot_model *model =
        quoted_model(HEAD "g (float[N,2,5] x) => (float[N,6,5] y)\n"
                          "    <float[2,3,1] 't.weight' = {1, 2, 3, 4, 5, 6}>\n{\n"
                          "    y = ConvTranspose <group = 4611686018427387904> (x, 't.weight')\n}");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE, "p_t_b: PARAMETER target='t.bias'\n");
    say(model, "y", "['', 't', 'conv_transpose1d']",
        "%y : call[target=torch.ops.aten.conv_transpose1d.default](args = (%c, %p_t_w, %p_t_b))");
    run(model);
    assert_int_equal(maker(model, "y")->n_inputs, 2);
    ot_model_destroy(model);
}

// ---- units ----

// The exporter merges the ones of modules without scale with scales that are still ones.
static void normalisations_without_scale_or_bias_have_units(void **state)
{
    ot_model *model =
        quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                          "    <float[2] 'n.weight' = {1, 1}, float[2] 'n.bias' = {0, 0}>\n{\n"
                          "    a = LayerNormalization(x, 'n.weight', 'n.bias')\n"
                          "    b = LayerNormalization(a, 'n.weight', 'n.bias')\n"
                          "    c = LayerNormalization(b, 'n.weight', 'n.bias')\n"
                          "    y = Mul(c, 'n.weight')\n}");

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_w: PARAMETER target='n.weight'\np_b: PARAMETER target='n.bias'\n"
         "p_m: PARAMETER target='m.weight'\n");
    say(model, "a", "['', 'n', 'layer_norm']", NORM("layer_norm", "[2], %p_w, %p_b, 1e-05"));
    say(model, "b", "['', 'm', 'layer_norm_1']", NORM("layer_norm", "[2], %p_m, None, 1e-05"));
    say(model, "c", "['', 'k', 'layer_norm_2']", NORM("layer_norm", "[2]"));
    say(model, "y", "['', 'rms_norm']", NORM("rms_norm", "[2], None, 1e-05"));
    run(model);
    assert_input(model, "a", 1, "n.weight");
    assert_input(model, "a", 2, "n.bias");
    assert_input(model, "b", 1, "m.weight");
    assert_input(model, "b", 2, "m.unit_bias");
    assert_input(model, "c", 1, "k.unit_weight");
    assert_input(model, "c", 2, "k.unit_bias");
    assert_input(model, "y", 1, "unit_factor");
    assert_kind(model, "a", NULL);
    assert_kind(model, "b", NULL);
    assert_kind(model, "c", "BUFFER");
    assert_kind(model, "y", "BUFFER");
    ot_model_destroy(model);
}

// A GroupNorm without scale has two kinds of units, also where it is called twice.
static void units_of_one_module_have_names_of_their_own(void **state)
{
    static const char call[] = NORM("group_norm", "2, None, None, 1e-05");
    ot_model *model =
        quoted_model(HEAD "g (float[N,2,2] x) => (float[N,2,2] y)\n"
                          "    <float[2] val_1 = {1, 1}, float[2] val_2 = {0, 0},"
                          " float[2,1] val_3 = {1, 1}, float[2] val_4 = {1, 1}>\n{\n"
                          "    a = InstanceNormalization(x, val_1, val_2)\n    b = Mul(a, val_3)\n"
                          "    y = InstanceNormalization(b, val_4, val_2)\n}");
    static const char *const folded[] = {"val_1", "val_2", "val_3", "val_4"};

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE, "p_w: PARAMETER target='w'\n");
    for (size_t i = 0; i < OT_COUNT(folded); i++)
        mark(&ot__graph_find(model->graph, folded[i])->metadata, FOLDED_FROM, "['val_0']");
    say(model, "a", "['', 'n', 'group_norm']", call);
    say(model, "b", "['', 'n', 'group_norm']", call);
    say(model, "y", "['', 'n', 'group_norm_1']", call);
    run(model);
    assert_input(model, "a", 1, "n.unit_weight");
    assert_input(model, "a", 2, "n.unit_bias");
    assert_input(model, "b", 1, "n.unit_factor");
    assert_input(model, "y", 1, "n.unit_weight_1");
    assert_input(model, "y", 2, "n.unit_bias");
    assert_kind(model, "a", "BUFFER");
    assert_kind(model, "b", "BUFFER");
    assert_kind(model, "y", "BUFFER");
    ot_model_destroy(model);
}

// ---- what has no metadata of its own ----

// A packed bias of a module that reads it in parts; the one that it was merged with is read whole.
static void what_a_part_is_given_to_tells_whose_it_is(void **state)
{
    ot_model *model =
        quoted_model(HEAD "g (float[N,4] x) => (float[N,2] y)\n"
                          "    <float[4] 's.packed' = {0, 0, 0, 0}>\n{\n"
                          "    a = Add(x, 's.packed')\n    p, q = Split('s.packed')\n"
                          "    k, l = Split(a)\n    b = Add(k, p)\n    y = Add(b, q)\n}");
    ot__sharings found;

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_s: PARAMETER target='s.packed'\np_m: PARAMETER target='m.packed'\n");
    say(model, "a", "['', 's', 'linear']", LINEAR("a", "x", "w", "%p_s"));
    say(model, "b", "['', 'm', 'linear_1']", LINEAR("b", "k", "w", "%getitem"));
    found = run(model);
    assert_input(model, "a", 1, "s.packed");
    assert_input(model, "p", 0, "m.packed");
    assert_non_null(about(&found, OT_SHARING_SEPARATED, "s.packed"));
    ot_model_destroy(model);
}

// torch.Tensor.t() of a parameter is called "t", which could be a parameter's name.
static void a_folded_copy_is_joined_whatever_it_is_called(void **state)
{
    ot_model *model = quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                                        "    <float[3,2] 'l.weight' = {1, 2, 3, 4, 5, 6},"
                                        " float[2,3] t = {1, 3, 5, 2, 4, 6}>\n{\n"
                                        "    h = Gemm <transB = 1> (x, 'l.weight')\n"
                                        "    y = Gemm <transB = 1> (h, t)\n}");
    ot__sharings found;

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE, "p_l_weight: PARAMETER target='l.weight'\n");
    mark(&ot__graph_find(model->graph, "t")->metadata, FOLDED_FROM, "['l.weight']");
    found = run(model);
    assert_int_equal(model->graph->n_initializers, 1);
    assert_string_equal(maker(model, "t")->inputs[0]->name, "l.weight");
    assert_non_null(about(&found, OT_SHARING_JOINED, "l.weight"));
    ot_model_destroy(model);
}

// ---- what is missing ----

static void what_the_file_does_not_mention_is_named(void **state)
{
    ot_model *model = quoted_model(HEAD "g (float[N,2] x) => (float[N,2] y)\n"
                                        "    <float[2] w = {1, 2}, float s = {3}>\n{\n"
                                        "    a = Mul(x, w)\n    y = Mul(a, s)\n}");
    ot__sharings found;
    const ot__sharing *lost;

    (void)state;
    n_words = 0;
    mark(&model->graph->metadata, SIGNATURE,
         "p_w: PARAMETER target='w'\np_spare: PARAMETER target='spare'\n"
         "b_spare: BUFFER target='table'\np_t: PARAMETER target='temperature'\n"
         "b_m: BUFFER target='n.running_mean'\nb_k: BUFFER target='k.running_mean'\n"
         "p_k: PARAMETER target='k.weight'\n");
    mark(&ot__graph_find(model->graph, "s")->metadata, FOLDED_FROM, "['temperature']");
    say(model, "a", "['', 'n', 'batch_norm']",
        "%n : call[target=torch.ops.aten.batch_norm.default](args = (%x, None, None, %b_m, %b_k))");
    found = run(model);
    assert_int_equal(about(&found, OT_SHARING_UNUSED, "spare")->n_parts, 2);
    assert_string_equal(about(&found, OT_SHARING_UNUSED, "spare")->parts[1], "k.weight");
    lost = about(&found, OT_SHARING_LOST, "temperature");
    assert_int_equal(lost->n_parts, 2);
    assert_string_equal(lost->parts[1], "n.running_mean");
    ot_model_destroy(model);
}

static void every_allocation_of_restoring_may_fail(void **state)
{
    int n_failures = 0;

    (void)state;
    for (int64_t n = 0;; n++) {
        ot_model *model = linears();
        ot__sharings found;
        ot_status st;

        ot__alloc_fail_after(n);
        st = ot__pass_sharing(model, &nothing_kept, &found);
        ot__alloc_fail_after(-1);
        ot_model_destroy(model);
        if (st == OT_OK)
            break;
        assert_int_equal(st, OT_ERR_NO_MEMORY);
        n_failures++;
    }
    assert_in_range(n_failures, 5, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(biases_that_were_dropped_as_zeros_are_back),
        cmocka_unit_test(biases_stay_away_where_the_user_keeps_the_file),
        cmocka_unit_test(a_bias_that_the_file_has_elsewhere_is_not_given_again),
        cmocka_unit_test(biases_of_convolutions_have_a_number_for_each_channel),
        cmocka_unit_test(absurd_groups_get_no_bias),
        cmocka_unit_test(normalisations_without_scale_or_bias_have_units),
        cmocka_unit_test(units_of_one_module_have_names_of_their_own),
        cmocka_unit_test(what_a_part_is_given_to_tells_whose_it_is),
        cmocka_unit_test(a_folded_copy_is_joined_whatever_it_is_called),
        cmocka_unit_test(what_the_file_does_not_mention_is_named),
        cmocka_unit_test(every_allocation_of_restoring_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
