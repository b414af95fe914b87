// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/plan.h"

enum { MAX_NODES = 16, MAX_VALUES = 32 };

// A problem written as text-like calls: values are small numbers.
typedef struct drawing {
    ot__order_node nodes[MAX_NODES];
    int numbers[MAX_NODES][16];
    size_t bytes[MAX_VALUES];
    bool kept[MAX_VALUES];
    int n_nodes;
} drawing;

// reads and makes end with -1
static void node(drawing *d, const int *reads, const int *makes, int overwrites)
{
    int *to = d->numbers[d->n_nodes];
    ot__order_node *n = &d->nodes[d->n_nodes++];

    n->reads = to;
    for (; *reads >= 0; reads++, n->n_reads++)
        *to++ = *reads;
    n->makes = to;
    for (; *makes >= 0; makes++, n->n_makes++)
        *to++ = *makes;
    n->overwrites = to;
    if (overwrites >= 0) {
        *to++ = overwrites;
        n->n_overwrites = 1;
        n->becomes = to;
        *to++ = n->n_makes > 0 ? n->makes[0] : -1;
    }
}
#define LIST(...) ((const int[]){__VA_ARGS__, -1})

static ot_status order_of(const drawing *d, int *order, size_t *peak, int *stuck)
{
    const ot__order_problem problem = {d->nodes, d->n_nodes, d->bytes, d->kept, MAX_VALUES};

    return ot__order(&problem, order, peak, stuck);
}

static int position(const int *order, int n, int wanted)
{
    for (int i = 0; i < n; i++)
        if (order[i] == wanted)
            return i;
    fail_msg("node %d is not in the order", wanted);
    return -1;
}

static void a_chain_runs_from_front_to_back(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0), LIST(1), -1);
    node(&d, LIST(1), LIST(2), -1);
    node(&d, LIST(2), LIST(3), -1);
    d.bytes[1] = d.bytes[2] = d.bytes[3] = 10;
    d.kept[3] = true;
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(order[i], i);
    assert_int_equal(peak, 20);
    assert_int_equal(stuck, -1);
}

static void readers_of_an_overwritten_value_run_before_its_writer(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0, 1), LIST(2), 0); // overwrites value 0, which node 1 also reads
    node(&d, LIST(0), LIST(3), -1);
    node(&d, LIST(2), LIST(4), -1); // reads the new value
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 2);
}

static void two_writers_of_one_value_keep_the_order_of_the_file(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(5), LIST(1), -1);
    node(&d, LIST(0, 1), LIST(2), 0); // waits for node 0
    node(&d, LIST(0), LIST(3), 0);    // could run at once
    node(&d, LIST(2), LIST(4), -1);   // reads what the first writer left
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_true(position(order, 4, 1) < position(order, 4, 2));
    assert_true(position(order, 4, 3) < position(order, 4, 2));
}

static void a_reader_of_the_old_value_that_needs_the_new_one_is_named(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0), LIST(1), 0);
    node(&d, LIST(0, 1), LIST(2), -1);
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_ERR_INVALID);
    assert_int_equal(stuck, 0);
}

// Two layers backwards: value 1 and 2 are activations, 10 and 11 weight gradients, 20 and 21 the
// accumulators' flags, 0 the accumulation buffers' stand-ins 30 and 31.
static void a_gradient_is_accumulated_as_soon_as_it_exists(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0), LIST(1), -1);
    node(&d, LIST(1), LIST(2), -1);
    node(&d, LIST(2, 1), LIST(10), -1); // weight gradient of layer 2
    node(&d, LIST(2), LIST(3), -1);     // gradient of value 1
    node(&d, LIST(3, 0), LIST(11), -1); // weight gradient of layer 1
    node(&d, LIST(30, 10), LIST(20), 30);
    node(&d, LIST(31, 11), LIST(21), 31);
    d.bytes[1] = d.bytes[2] = d.bytes[3] = 100;
    d.bytes[10] = d.bytes[11] = 1000;
    d.kept[20] = d.kept[21] = true;
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_int_equal(position(order, 7, 5), position(order, 7, 2) + 1);
    assert_int_equal(position(order, 7, 6), position(order, 7, 4) + 1);
    assert_true(peak < 2000);
}

// The file computes two large values before either is reduced; reducing each at once halves the
// peak.
static void the_order_with_the_lower_peak_is_taken(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0), LIST(1), -1);
    node(&d, LIST(0), LIST(2), -1);
    node(&d, LIST(1), LIST(3), -1);
    node(&d, LIST(2), LIST(4), -1);
    node(&d, LIST(3, 4), LIST(5), -1);
    d.bytes[1] = d.bytes[2] = 1000;
    d.bytes[3] = d.bytes[4] = d.bytes[5] = 1;
    d.kept[5] = true;
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_int_equal(peak, 1002);
}

// Nodes 1 and 3 need nothing of one another; without their order the cheaper one would run first.
static void ordered_nodes_keep_the_order_of_the_file_whatever_it_costs(void **state)
{
    int order[MAX_NODES], stuck;
    drawing d = {.bytes = {[1] = 100, [2] = 8, [3] = 8}};
    size_t peak;

    (void)state;
    node(&d, LIST(-1), LIST(0), -1);
    node(&d, LIST(0), LIST(1), -1); // much memory, until its reader at the end
    node(&d, LIST(0), LIST(2), -1);
    node(&d, LIST(2), LIST(3), -1);
    node(&d, LIST(3, 1), LIST(4), -1);
    d.nodes[3].is_ordered = d.nodes[1].is_ordered = true;
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_true(position(order, d.n_nodes, 1) < position(order, d.n_nodes, 3));
    d.nodes[0].is_ordered = true; // before both anyway
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_int_equal(order[0], 0);
}

static void an_early_node_runs_as_soon_as_it_can(void **state)
{
    int order[MAX_NODES], stuck;
    drawing d = {.bytes = {[0] = 8, [1] = 8, [2] = 8}};
    size_t peak;

    (void)state;
    node(&d, LIST(-1), LIST(0), -1);
    node(&d, LIST(0), LIST(1), -1);
    node(&d, LIST(1), LIST(2), -1); // frees memory
    node(&d, LIST(2), LIST(3), -1);
    node(&d, LIST(0), LIST(-1), -1); // frees none
    d.nodes[4].is_early = true;
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
    assert_int_equal(order[1], 4);
}

static void a_failing_allocation_is_reported_and_nothing_leaks(void **state)
{
    drawing d = {0};
    int order[MAX_NODES], stuck;
    size_t peak;

    (void)state;
    node(&d, LIST(0), LIST(1), -1);
    for (int64_t n = 0; n < 2; n++) { // the arena and its first block
        ot__alloc_fail_after(n);
        assert_int_equal(order_of(&d, order, &peak, &stuck), OT_ERR_NO_MEMORY);
    }
    ot__alloc_fail_after(-1);
    assert_int_equal(order_of(&d, order, &peak, &stuck), OT_OK);
}

// They wait for one another in a row: each for each would be more than an int can count.
static void very_many_writers_of_one_value_keep_the_order_of_the_file(void **state)
{
    enum { N_WRITERS = 70000 };
    const int value[] = {0}, becomes[] = {-1};
    ot__order_node *nodes = calloc(N_WRITERS, sizeof *nodes);
    int *order = calloc(N_WRITERS, sizeof *order), stuck;
    size_t bytes[1] = {8}, peak;
    bool kept[1] = {true};
    const ot__order_problem problem = {nodes, N_WRITERS, bytes, kept, 1};

    (void)state;
    assert_non_null(nodes);
    assert_non_null(order);
    for (int i = 0; i < N_WRITERS; i++)
        nodes[i] = (ot__order_node){.reads = value,
                                    .n_reads = 1,
                                    .overwrites = value,
                                    .becomes = becomes,
                                    .n_overwrites = 1};
    assert_int_equal(ot__order(&problem, order, &peak, &stuck), OT_OK);
    for (int i = 0; i < N_WRITERS; i++)
        assert_int_equal(order[i], i);
    free(nodes);
    free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_runs_from_front_to_back),
        cmocka_unit_test(readers_of_an_overwritten_value_run_before_its_writer),
        cmocka_unit_test(two_writers_of_one_value_keep_the_order_of_the_file),
        cmocka_unit_test(a_reader_of_the_old_value_that_needs_the_new_one_is_named),
        cmocka_unit_test(a_gradient_is_accumulated_as_soon_as_it_exists),
        cmocka_unit_test(the_order_with_the_lower_peak_is_taken),
        cmocka_unit_test(ordered_nodes_keep_the_order_of_the_file_whatever_it_costs),
        cmocka_unit_test(an_early_node_runs_as_soon_as_it_can),
        cmocka_unit_test(a_failing_allocation_is_reported_and_nothing_leaks),
        cmocka_unit_test(very_many_writers_of_one_value_keep_the_order_of_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
