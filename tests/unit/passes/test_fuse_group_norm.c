// SPDX-License-Identifier: Apache-2.0
#include "region_fixture.h"

#define INPUTS "double[2,6,3,4] x, double[6] s, double[6] b, double[2,6,3,4] dy"
#define BY_AXES "double[2,6,3,4] x, double[6,1,1] s, double[1,6,1,1] b, double[2,6,3,4] dy"
// What an exporter makes of nn.GroupNorm(2, 6).
#define GROUPS                                                                                     \
    "ones = Constant<value = double[2] {1.0, 1.0}>() "                                             \
    "zeros = Constant<value = double[2] {0.0, 0.0}>() "                                            \
    "to = Constant<value = int64[3] {0, 2, -1}>() axes = Constant<value = int64[2] {1, 2}>() "     \
    "shape = Shape(x) g = Reshape(x, to) "                                                         \
    "n = InstanceNormalization<epsilon = 0.0078125>(g, ones, zeros) "
#define BACK GROUPS "r = Reshape(n, shape) "

static const char *const all[] = {"x", "s", "b", NULL};

static void expect_groups(const char *graph, const char *const *from, int groups, int n_inputs)
{
    ot_model *model = fuse_regions(graph, from);
    const ot_node *node = find_node(model, "GroupNormTraining");

    assert_non_null(node);
    assert_int_equal(ot_attr_int(node, "num_groups"), groups);
    assert_float_equal(ot_attr_float(node, "epsilon"), 0.0078125, 0);
    assert_int_equal(node->n_inputs, n_inputs);
    assert_int_equal(count_nodes(model, "GroupNormTraining"), 1);
    assert_int_equal(count_nodes(model, "GroupNormGrad"), from != NULL);
    assert_int_equal(count_nodes(model, "InstanceNormalization"), 0);
    assert_int_equal(count_nodes(model, "Sqrt"), 0);
    ot_model_destroy(model);
}

static void a_channel_is_a_group(void **state)
{
    static const char graph[] = "g (" INPUTS ") => (double[2,6,3,4] y) "
                                "{ y = InstanceNormalization<epsilon = 0.0078125>(x, s, b) }";

    (void)state;
    expect_groups(graph, all, 6, 3);
    expect_groups(graph, NULL, 6, 3);
}

static void groups_are_what_an_exporter_reshapes(void **state)
{
    static const char graph[] = "g (" INPUTS ") => (double[2,6,3,4] y) { " BACK
                                "t = Unsqueeze(s, axes) u = Unsqueeze(b, axes) "
                                "p = Mul(r, t) y = Add(u, p) }";

    (void)state;
    expect_groups(graph, all, 2, 3);
    expect_groups(graph, NULL, 2, 3);
}

static void parts_of_it_are_found_too(void **state)
{
    (void)state;
    // Without scale and bias.
    expect_groups("g (double[2,6,3,4] x, double[2,6,3,4] dy) => (double[2,6,3,4] r) { " BACK "}",
                  (const char *const[]){"x", NULL}, 2, 1);
    // Their shapes differ.
    expect_groups("g (" BY_AXES ") => (double[2,6,3,4] y) { " BACK "p = Mul(r, s) y = Add(p, b) }",
                  all, 2, 2);
    // Neither is of the channels.
    expect_groups("g (double[2,6,3,4] x, double[4] s, double[4] b, double[2,6,3,4] dy)"
                  " => (double[2,6,3,4] y) { " BACK "p = Mul(r, s) y = Add(p, b) }",
                  all, 2, 1);
}

// What is between is read by others: the normalisation alone is exchanged.
static void what_others_read_stays(void **state)
{
    ot_model *model = fuse_regions("g (" INPUTS ") => (double[2,6,3,4] y) { " BACK
                                   "t = Unsqueeze(s, axes) p = Mul(r, t) y = Add(p, r) }",
                                   (const char *const[]){"x", "s", NULL});
    const ot_node *node = find_node(model, "GroupNormTraining");

    (void)state;
    assert_non_null(node);
    assert_int_equal(ot_attr_int(node, "num_groups"), 2);
    assert_int_equal(count_nodes(model, "Reshape") > 0, 1);
    assert_int_equal(count_nodes(model, "Mul") > 0, 1);
    ot_model_destroy(model);
}

// Groups of other images: what is reshaped has other axes behind it.
static void other_reshapes_stay(void **state)
{
    ot_model *model =
        fuse_regions("g (double[2,6,3,4] x, double[2,6,3,4] dy) => (double[2,6,12] y) { " GROUPS
                     "flat = Constant<value = int64[3] {2, 6, 12}>() y = Reshape(n, flat) }",
                     NULL);
    const ot_node *node = find_node(model, "GroupNormTraining");

    (void)state;
    assert_non_null(node);
    assert_int_equal(node->n_inputs, 3);
    assert_int_equal(count_nodes(model, "Reshape"), 2);
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_channel_is_a_group),
        cmocka_unit_test(groups_are_what_an_exporter_reshapes),
        cmocka_unit_test(parts_of_it_are_found_too),
        cmocka_unit_test(what_others_read_stays),
        cmocka_unit_test(other_reshapes_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
