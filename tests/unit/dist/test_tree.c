// SPDX-License-Identifier: Apache-2.0
#include "unit/dist/ranks.h"

static void assert_cover(int n_slices, int from, int to, const char *expected)
{
    ot__tree_node nodes[OT_TREE_COVER_MAX];
    const int count = ot__tree_cover(n_slices, from, to, nodes);
    char text[256] = "";

    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d-%d", i > 0 ? " " : "",
                 nodes[i].first, nodes[i].last);
    assert_string_equal(text, expected);
}

// By hand: 5 slices are 0-4 and 4, 7 are 0-4 and 4-7, which is 4-6 and 6.
static void a_range_of_slices_is_as_few_nodes_as_there_are(void **state)
{
    (void)state;
    assert_cover(1, 0, 1, "0-1");
    assert_cover(8, 0, 8, "0-8");
    assert_cover(8, 2, 6, "2-4 4-6");
    assert_cover(8, 1, 7, "1-2 2-4 4-6 6-7");
    assert_cover(5, 0, 4, "0-4");
    assert_cover(5, 2, 5, "2-4 4-5");
    assert_cover(7, 4, 7, "4-7");
    assert_cover(7, 3, 7, "3-4 4-7");
    assert_cover(8, 3, 3, "");
}

static void every_range_is_covered_once_in_order(void **state)
{
    (void)state;
    for (int n = 1; n <= 33; n++)
        for (int from = 0; from < n; from++)
            for (int to = from + 1; to <= n; to++) {
                ot__tree_node nodes[OT_TREE_COVER_MAX];
                const int count = ot__tree_cover(n, from, to, nodes);

                assert_int_equal(nodes[0].first, from);
                assert_int_equal(nodes[count - 1].last, to);
                for (int i = 1; i < count; i++)
                    assert_int_equal(nodes[i].first, nodes[i - 1].last);
            }
}

static void the_most_slices_fit(void **state)
{
    ot__tree_node nodes[OT_TREE_COVER_MAX];

    (void)state;
    assert_true(ot__tree_cover(OT_SLICES_MAX, 1, OT_SLICES_MAX - 1, nodes) <= OT_TREE_COVER_MAX);
    assert_true(ot__tree_cover(OT_SLICES_MAX - 1, 1, OT_SLICES_MAX - 2, nodes) <=
                OT_TREE_COVER_MAX);
}

// ((a + b) + (c + d)) + e, of numbers for which every other order gives another sum.
static void sums_have_the_order_of_the_tree(void **state)
{
    const float a = 1e8f, b = 3.0f, c = -1e8f, d = 5.0f, e = 0.25f;
    const float expected = ((a + b) + (c + d)) + e;
    float values[5] = {a, b, c, d, e}, out = 0.0f;
    void *parts[5];
    ot__tree_node nodes[5];
    ot__tree_add adds[5];
    int n_adds;

    (void)state;
    for (int i = 0; i < 5; i++) {
        parts[i] = &values[i];
        nodes[i] = (ot__tree_node){i, i + 1};
    }
    n_adds = ot__tree_plan(5, nodes, adds);
    assert_int_equal(n_adds, 4);
    ot__tree_sum(OT_F32, adds, n_adds, parts, &out, 1);
    assert_memory_equal(&out, &expected, sizeof out);
}

static void one_part_is_copied(void **state)
{
    double values[3] = {1, 2, 3}, out[3] = {0};
    void *part = values;

    (void)state;
    ot__tree_sum(OT_F64, NULL, 0, &part, out, 3);
    assert_memory_equal(out, values, sizeof out);
    ot__tree_sum(OT_F64, NULL, 0, &part, values, 3);
    assert_memory_equal(out, values, sizeof out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_of_slices_is_as_few_nodes_as_there_are),
        cmocka_unit_test(every_range_is_covered_once_in_order),
        cmocka_unit_test(the_most_slices_fit),
        cmocka_unit_test(sums_have_the_order_of_the_tree),
        cmocka_unit_test(one_part_is_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
