// SPDX-License-Identifier: Apache-2.0
#include "plan_fixture.h"

// ---- tests ----

static void a_chain_of_elementwise_nodes_runs_in_one_memory(void **state)
{
    fixture *f = *state;
    const float x[] = {-1, -2, -3, -4};
    ot_value *vx = input(f, "x", 4);

    node(f, "Neg", NULL, vx, NULL, value(f, "a", 4));
    node(f, "Relu", NULL, value(f, "a", 4), NULL, value(f, "b", 4));
    node(f, "Neg", NULL, value(f, "b", 4), NULL, value(f, "c", 4));
    output(f, "c");
    assert_int_equal(plan(f), OT_OK);
    assert_int_equal(ot__plan_bytes(f->plan), 64);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), ((float[]){-1, -2, -3, -4}), 16);
    assert_memory_equal(x, ((float[]){-1, -2, -3, -4}), 16); // an input is never written
}

static void a_value_that_is_read_again_is_not_replaced_in_place(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2, 3, 4};
    ot_value *a = value(f, "a", 4);

    node(f, "Neg", NULL, input(f, "x", 4), NULL, a);
    node(f, "Relu", NULL, a, NULL, value(f, "b", 4));
    node(f, "Add", NULL, a, value(f, "b", 4), value(f, "c", 4));
    output(f, "c");
    assert_int_equal(plan(f), OT_OK);
    assert_int_equal(ot__plan_bytes(f->plan), 128);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), ((float[]){-1, -2, -3, -4}), 16);
}

static void a_view_shares_memory_and_keeps_it_alive(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2, 3, 4};
    ot_value *a = value(f, "a", 4);
    ot__buf text = {0};

    node(f, "Neg", NULL, input(f, "x", 4), NULL, a);
    node(f, "Identity", NULL, a, NULL, value(f, "b", 4));
    node(f, "Neg", NULL, a, NULL, value(f, "c", 4));
    node(f, "Add", NULL, value(f, "b", 4), value(f, "c", 4), value(f, "d", 4));
    output(f, "d");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), ((float[]){0, 0, 0, 0}), 16);
    assert_int_equal(ot__plan_describe(f->plan, &text), OT_OK);
    assert_null(strstr(text.data, "Identity"));
    ot__buf_deinit(&text);
}

static void an_output_may_be_an_input_a_view_of_one_or_a_constant(void **state)
{
    fixture *f = *state;
    static const float c[] = {5, 6};
    const float x[] = {1, 2};
    float y0[2], y1[2], y2[2];
    ot_value *vx = input(f, "x", 2);

    constant(f, "c", c, 2);
    node(f, "Identity", NULL, vx, NULL, value(f, "y", 2));
    output(f, "x");
    output(f, "y");
    output(f, "c");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    ot__plan_bind_output(f->plan, 0, y0);
    ot__plan_bind_output(f->plan, 1, y1);
    ot__plan_bind_output(f->plan, 2, y2);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(y0, x, sizeof x);
    assert_memory_equal(y1, x, sizeof x);
    assert_memory_equal(y2, c, sizeof c);
}

static void outputs_stay_until_the_next_run(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2};
    ot_value *a = value(f, "a", 2);

    node(f, "Neg", NULL, input(f, "x", 2), NULL, a);
    node(f, "Neg", NULL, a, NULL, value(f, "b", 2));
    node(f, "Neg", NULL, value(f, "b", 2), NULL, value(f, "c", 2));
    output(f, "a");
    output(f, "c");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), ((float[]){-1, -2}), 8);
    assert_memory_equal(result(f, 1), ((float[]){-1, -2}), 8);
}

static void state_is_written_where_it_is_bound(void **state)
{
    fixture *f = *state;
    const float g[] = {1, 2};
    float sum[] = {10, 20};
    ot_value *done = ot__graph_value(f->model->graph, "done"), *vsum = input(f, "sum", 2);

    ot__value_set(done, OT_BOOL, &OT_SHAPE(1));
    node(f, "Accumulate", &accumulate_op, vsum, input(f, "g", 2), done);
    output(f, "done");
    assert_int_equal(plan(f), OT_OK);
    assert_true(ot__plan_writes_input(f->plan, 0));
    assert_false(ot__plan_writes_input(f->plan, 1));
    ot__plan_bind_input(f->plan, 0, 0, sum);
    ot__plan_bind_input(f->plan, 1, 0, g);
    assert_int_equal(run(f), OT_OK);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(sum, ((float[]){12, 24}), 8);
}

static void the_old_value_is_read_before_the_node_that_overwrites_it_runs(void **state)
{
    fixture *f = *state;
    const float g[] = {1, 2};
    float sum[] = {10, 20};
    ot_value *done = ot__graph_value(f->model->graph, "done"), *vsum = input(f, "sum", 2);

    ot__value_set(done, OT_BOOL, &OT_SHAPE(1));
    node(f, "Accumulate", &accumulate_op, vsum, input(f, "g", 2), done);
    node(f, "Identity", NULL, vsum, NULL, value(f, "view", 2));
    node(f, "Neg", NULL, value(f, "view", 2), NULL, value(f, "old", 2));
    output(f, "done");
    output(f, "old");
    output(f, "view");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, sum);
    ot__plan_bind_input(f->plan, 1, 0, g);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(sum, ((float[]){11, 22}), 8);
    assert_memory_equal(result(f, 1), ((float[]){-10, -20}), 8);
    assert_memory_equal(result(f, 2), ((float[]){10, 20}), 8);
}

static void a_constant_that_a_node_writes_is_copied_and_lasts(void **state)
{
    fixture *f = *state;
    static const float start[] = {10, 20}; // writing here would be a crash
    const float g[] = {1, 2};
    ot_value *out[2], *in[2];
    ot_node *n;

    in[0] = constant(f, "sum", start, 2);
    in[1] = input(f, "g", 2);
    out[0] = ot__graph_value(f->model->graph, "done");
    ot__value_set(out[0], OT_BOOL, &OT_SHAPE(1));
    out[1] = value(f, "new_sum", 2);
    n = ot__graph_add_node(f->model->graph, "", "Accumulate", "n", in, 2, out, 2);
    n->op = &accumulate_op;
    output(f, "new_sum");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, g);
    assert_int_equal(run(f), OT_OK);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), ((float[]){12, 24}), 8);
    assert_memory_equal(start, ((float[]){10, 20}), 8);
}

static void a_sequence_is_bound_tensor_by_tensor_and_written_in_place(void **state)
{
    fixture *f = *state;
    const ot__plan_options options = {.n_threads = 1};
    const ot_shape shapes[] = {OT_SHAPE(2), OT_SHAPE(1, 3)};
    const ot_shape *const per_input[] = {shapes, NULL};
    const int lengths[] = {2, 0};
    float a[] = {1, 2}, b[] = {3, 4, 5};
    const float factor = 2;
    ot_value *xs = sequence(f, "xs"), *ys = sequence(f, "ys");

    assert_true(ot__graph_add_input(f->model->graph, xs));
    node(f, "ScaleAll", &scale_op, xs, input(f, "factor", 1), ys);
    node(f, "Total", &total_op, ys, NULL, value(f, "sum", 1));
    output(f, "sum");
    assert_int_equal(ot__plan_create(f->model->graph, &options, lengths, per_input, &f->plan),
                     OT_OK);
    assert_int_equal(ot__plan_input_entries(f->plan, 0), 2);
    assert_int_equal(ot__plan_input(f->plan, 0, 1)->count, 3);
    ot__plan_bind_input(f->plan, 0, 0, a);
    ot__plan_bind_input(f->plan, 0, 1, b);
    ot__plan_bind_input(f->plan, 1, 0, &factor);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(a, ((float[]){2, 4}), 8);
    assert_memory_equal(b, ((float[]){6, 8, 10}), 12);
    assert_true(result(f, 0)[0] == 30.0f);
}

static void a_kernel_gets_its_scratch_and_its_state(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2, 3};

    node(f, "Reverse", &reverse_op, input(f, "x", 3), NULL, value(f, "a", 3));
    node(f, "Reverse", &reverse_op, value(f, "a", 3), NULL, value(f, "b", 3));
    output(f, "b");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_memory_equal(result(f, 0), x, sizeof x);
}

static void an_error_names_the_node(void **state)
{
    fixture *f = *state;
    const float x[] = {1};

    node(f, "Fails", &fails_op, input(f, "x", 1), NULL, value(f, "y", 1));
    output(f, "y");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "Fails 'n': index 7 out of range");
}

// What a plan asked of the other ranks.
typedef struct asked {
    int64_t buckets[4];
    int n_buckets, n_pokes, fails_at; // at which poke; 0: at none
} asked;

static ot_status start_bucket(void *context, int64_t bucket)
{
    asked *a = context;

    a->buckets[a->n_buckets++] = bucket;
    return OT_OK;
}

static ot_status poke(void *context)
{
    asked *a = context;

    return ++a->n_pokes == a->fails_at ? ot__error(OT_ERR_TIMEOUT, "rank 1: silent") : OT_OK;
}

static ot_status run_over_ranks(fixture *f, asked *a)
{
    const ot_exchange exchange = {.context = a, .reduce_start = start_bucket, .poke = poke};
    const ot_step step = {.training = true, .exchange = &exchange};

    return ot__plan_run(f->plan, &step);
}

static void start(fixture *f, ot_value *x, int bucket)
{
    ot_node *n =
        ot__graph_add_node(f->model->graph, "ai.onnxtrain", "ReduceStart", "n", &x, 1, NULL, 0);

    n->op = ot__op_find("ai.onnxtrain", "ReduceStart", 1);
    assert_non_null(n->op);
    assert_true(ot__node_set_int(n, "bucket", bucket));
}

static void ordered_nodes_run_whatever_has_failed_before_them(void **state)
{
    fixture *f = *state;
    const float x[] = {1};
    asked a = {.n_buckets = 0};

    node(f, "Neg", NULL, input(f, "x", 1), NULL, value(f, "a", 1));
    start(f, value(f, "a", 1), 7);
    node(f, "Fails", &fails_op, value(f, "a", 1), NULL, value(f, "b", 1));
    start(f, value(f, "b", 1), 8);
    node(f, "Neg", NULL, value(f, "b", 1), NULL, value(f, "y", 1));
    output(f, "y");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run_over_ranks(f, &a), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "Fails 'n': index 7 out of range");
    assert_int_equal(a.n_buckets, 2);
    assert_int_equal(a.buckets[0], 7);
    assert_int_equal(a.buckets[1], 8);
    assert_int_equal(run(f), OT_ERR_INVALID); // one process: no exchange, and nobody waits
}

static void what_goes_on_meanwhile_is_poked_after_every_step(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2, 3};
    asked a = {.n_pokes = 0};

    node(f, "Reverse", &reverse_op, input(f, "x", 3), NULL, value(f, "a", 3));
    node(f, "Reverse", &reverse_op, value(f, "a", 3), NULL, value(f, "b", 3));
    output(f, "b");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run_over_ranks(f, &a), OT_OK);
    assert_int_equal(a.n_pokes, 2);
    a = (asked){.fails_at = 1};
    assert_int_equal(run_over_ranks(f, &a), OT_ERR_TIMEOUT);
    assert_int_equal(a.n_pokes, 1);
}

static void an_input_that_is_not_bound_is_an_error(void **state)
{
    fixture *f = *state;

    node(f, "Neg", NULL, input(f, "x", 1), NULL, value(f, "y", 1));
    output(f, "y");
    assert_int_equal(plan(f), OT_OK);
    assert_int_equal(run(f), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(), "input 'x' has no memory bound to it");
}

static void assert_choice(fixture *f, const ot_op_def *op, const ot__plan_options *options,
                          int64_t n, float which, float threads)
{
    const float x[8] = {0};

    node(f, op->name, op, input(f, "x", n), NULL, value(f, "y", n));
    output(f, "y");
    assert_int_equal(ot__plan_create(f->model->graph, options, NULL, NULL, &f->plan), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    assert_int_equal(run(f), OT_OK);
    assert_true(result(f, 0)[0] == which);
    assert_true(result(f, 0)[1] == threads);
}

static void the_first_kernel_that_can_run_is_taken(void **state)
{
    assert_choice(*state, &choice_op, &(ot__plan_options){.n_threads = 2}, 4, 1, 2);
}

static void a_kernel_that_cannot_run_is_passed_over(void **state)
{
    assert_choice(*state, &choice_op, &(ot__plan_options){.n_threads = 2}, 5, 2, 2);
}

static void reproducible_takes_a_kernel_that_is_exact_for_any_threads(void **state)
{
    assert_choice(*state, &choice_op, &(ot__plan_options){.n_threads = 2, .reproducible = true}, 4,
                  2, 2);
}

static void reproducible_runs_an_inexact_reference_on_one_thread(void **state)
{
    assert_choice(*state, &inexact_op, &(ot__plan_options){.n_threads = 2, .reproducible = true}, 4,
                  3, 1);
}

static void reference_only_takes_the_reference(void **state)
{
    assert_choice(*state, &choice_op, &(ot__plan_options){.n_threads = 2, .reference_only = true},
                  4, 3, 2);
}

static void a_kernel_runs_only_the_element_types_that_it_takes(void **state)
{
    assert_choice(*state, &typed_op, &(ot__plan_options){.n_threads = 2}, 4, 2, 2);
}

static void an_element_type_that_no_kernel_takes_is_refused_with_those_taken(void **state)
{
    fixture *f = *state;
    ot_value *x = input(f, "x", 4), *y = value(f, "y", 4);

    x->dtype = y->dtype = OT_F64;
    node(f, "Typed", &typed_op, x, NULL, y);
    output(f, "y");
    assert_int_equal(plan(f), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "input 0 (X) is f64, kernels take: f32 i32 i64"));
}

static void a_plan_above_its_ceiling_names_its_largest_values(void **state)
{
    fixture *f = *state;
    const ot__plan_options options = {.n_threads = 1, .memory_max = 1000};

    node(f, "Neg", NULL, input(f, "x", 1000), NULL, value(f, "large", 1000));
    node(f, "Neg", NULL, input(f, "z", 10), NULL, value(f, "small", 10));
    output(f, "large");
    output(f, "small");
    assert_int_equal(ot__plan_create(f->model->graph, &options, NULL, NULL, &f->plan),
                     OT_ERR_NO_MEMORY);
    assert_null(f->plan);
    assert_string_equal(ot_error_message(),
                        "a step needs 4096 bytes for activations, 1000 are allowed; largest: "
                        "'large' 4000, 'small' 40");
}

static void a_value_without_shape_is_refused_by_name(void **state)
{
    fixture *f = *state;
    ot_value *y = ot__graph_value(f->model->graph, "y");

    ot__value_set(y, OT_F32, NULL);
    node(f, "Neg", NULL, input(f, "x", 1), NULL, y);
    output(f, "y");
    assert_int_equal(plan(f), OT_ERR_UNSUPPORTED);
    assert_non_null(strstr(ot_error_message(), "'y'"));
}

static void running_allocates_nothing(void **state)
{
    fixture *f = *state;
    const float x[] = {1, 2, 3};
    int64_t before;

    node(f, "Reverse", &reverse_op, input(f, "x", 3), NULL, value(f, "a", 3));
    node(f, "Neg", NULL, value(f, "a", 3), NULL, value(f, "b", 3));
    output(f, "b");
    assert_int_equal(plan(f), OT_OK);
    ot__plan_bind_input(f->plan, 0, 0, x);
    before = ot__alloc_count();
    assert_int_equal(run(f), OT_OK);
    assert_int_equal(ot__alloc_count(), before);
}

static void plans_that_borrow_share_a_block(void **state)
{
    fixture *f = *state;
    const ot__plan_options options = {.n_threads = 1, .borrow_block = true};
    const float x[] = {1, 2, 3};
    ot__plan *other;
    void *block;
    float y[3];

    node(f, "Reverse", &reverse_op, input(f, "x", 3), NULL, value(f, "a", 3));
    node(f, "Neg", NULL, value(f, "a", 3), NULL, value(f, "b", 3));
    output(f, "b");
    assert_int_equal(ot__plan_create(f->model->graph, &options, NULL, NULL, &f->plan), OT_OK);
    assert_int_equal(ot__plan_create(f->model->graph, &options, NULL, NULL, &other), OT_OK);
    block = ot__alloc_aligned(ot__plan_bytes(f->plan));
    ot__plan_set_block(f->plan, block);
    ot__plan_set_block(other, block);
    ot__plan_bind_input(f->plan, 0, 0, x);
    ot__plan_bind_input(other, 0, 0, x);
    ot__plan_bind_output(f->plan, 0, y);
    assert_int_equal(run(f), OT_OK);
    assert_int_equal(ot__plan_run(other, &(ot_step){0}), OT_OK);
    assert_memory_equal(y, ((float[]){-3, -2, -1}), 12);
    assert_memory_equal(ot__plan_output(other, 0)->data, y, 12);
    ot__plan_destroy(other);
    ot__free_aligned(block);
}

static void every_failing_allocation_is_reported_and_nothing_leaks(void **state)
{
    fixture *f = *state;
    ot_status st = OT_ERR_NO_MEMORY;

    node(f, "Reverse", &reverse_op, input(f, "x", 3), NULL, value(f, "a", 3));
    node(f, "Neg", NULL, value(f, "a", 3), NULL, value(f, "b", 3));
    output(f, "b");
    for (int64_t n = 0; n < 200 && st == OT_ERR_NO_MEMORY; n++) {
        ot__alloc_fail_after(n);
        st = plan(f);
        ot__alloc_fail_after(-1);
    }
    assert_int_equal(st, OT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_chain_of_elementwise_nodes_runs_in_one_memory),
        TEST(a_value_that_is_read_again_is_not_replaced_in_place),
        TEST(a_view_shares_memory_and_keeps_it_alive),
        TEST(an_output_may_be_an_input_a_view_of_one_or_a_constant),
        TEST(outputs_stay_until_the_next_run),
        TEST(state_is_written_where_it_is_bound),
        TEST(the_old_value_is_read_before_the_node_that_overwrites_it_runs),
        TEST(a_constant_that_a_node_writes_is_copied_and_lasts),
        TEST(a_sequence_is_bound_tensor_by_tensor_and_written_in_place),
        TEST(a_kernel_gets_its_scratch_and_its_state),
        TEST(an_error_names_the_node),
        TEST(ordered_nodes_run_whatever_has_failed_before_them),
        TEST(what_goes_on_meanwhile_is_poked_after_every_step),
        TEST(an_input_that_is_not_bound_is_an_error),
        TEST(the_first_kernel_that_can_run_is_taken),
        TEST(a_kernel_that_cannot_run_is_passed_over),
        TEST(reproducible_takes_a_kernel_that_is_exact_for_any_threads),
        TEST(reproducible_runs_an_inexact_reference_on_one_thread),
        TEST(reference_only_takes_the_reference),
        TEST(a_kernel_runs_only_the_element_types_that_it_takes),
        TEST(an_element_type_that_no_kernel_takes_is_refused_with_those_taken),
        TEST(a_plan_above_its_ceiling_names_its_largest_values),
        TEST(a_value_without_shape_is_refused_by_name),
        TEST(running_allocates_nothing),
        TEST(plans_that_borrow_share_a_block),
        TEST(every_failing_allocation_is_reported_and_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
