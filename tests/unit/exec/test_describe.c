// SPDX-License-Identifier: Apache-2.0
// What a plan says of itself: which kernels run, and why those.
#include "plan_fixture.h"

// ---- operators whose kernels say why ----

static bool has_few_elements(const ot_prep *p)
{
    return ot_prep_in(p, 0)->count <= 4 ? ot_prep_takes(p, "few elements")
                                        : ot_prep_declines(p, "more than four elements");
}

static bool is_never_wanted(const ot_prep *p)
{
    (void)p;
    return false;
}

static ot_status says_its_name(ot_prep *p)
{
    (void)ot_prep_takes(p, "by eight");
    return OT_OK;
}

static ot_status no_run(const ot_run *r)
{
    (void)r;
    return OT_OK;
}

static const ot_port explained_in[] = {{"X", "T", 0}, {0}};
static const ot_port explained_out[] = {{"Y", "T", 0}, {0}};
#define EXPLAINED(op_name, kernel_list)                                                            \
    {                                                                                              \
        .name = op_name, .inputs = explained_in, .outputs = explained_out, .types = "T: f32 f64",  \
        .kernels = kernel_list                                                                     \
    }
static const ot_kernel explained_kernels[] = {
    {.name = "few", .types = "T: f32", .can_run = has_few_elements, .run = no_run},
    {.name = "mute", .can_run = is_never_wanted, .run = no_run},
    {.name = "ref", .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT, .run = no_run},
    {0},
};
static const ot_op_def explained_op = EXPLAINED("Explained", explained_kernels);
// two entries of one name, of which the second takes the node, and says more when it is prepared
static const ot_kernel prepared_kernels[] = {
    {.name = "fast", .types = "T: f64", .run = no_run},
    {.name = "fast", .can_run = has_few_elements, .prepare = says_its_name, .run = no_run},
    {0},
};
static const ot_op_def prepared_op = EXPLAINED("Prepared", prepared_kernels);

// ---- tests ----

static void assert_contains(ot__buf *text, const char *expected)
{
    if (strstr(text->data, expected) == NULL)
        fail_msg("expected %s in:\n%s", expected, text->data);
    ot__buf_deinit(text);
}

static void assert_says(fixture *f, const ot_op_def *op, ot_dtype dtype, int64_t n,
                        const ot__plan_options *options, const char *expected)
{
    ot_value *x = input(f, "x", n), *y = value(f, "y", n);
    ot__buf text = {0};

    x->dtype = y->dtype = dtype;
    node(f, op->name, op, x, NULL, y);
    output(f, "y");
    assert_int_equal(ot__plan_create(f->model->graph, options, NULL, NULL, &f->plan), OT_OK);
    assert_int_equal(ot__plan_describe(f->plan, &text), OT_OK);
    assert_contains(&text, expected);
}

static const ot__plan_options plain = {.n_threads = 2};

static void a_kernel_says_why_it_takes_a_node(void **state)
{
    assert_says(*state, &explained_op, OT_F32, 4, &plain, "[few: few elements] f32[4]");
}

static void those_that_decline_say_why_before_the_one_that_takes_it(void **state)
{
    assert_says(*state, &explained_op, OT_F32, 5, &plain,
                "[ref: not few (more than four elements); not mute (not for this problem)]");
}

static void an_element_type_is_a_reason(void **state)
{
    assert_says(*state, &explained_op, OT_F64, 4, &plain,
                "[ref: not few (not for these element types); not mute (not for this problem)]");
}

static void reproducible_is_a_reason(void **state)
{
    assert_says(*state, &explained_op, OT_F32, 4,
                &(ot__plan_options){.n_threads = 2, .reproducible = true},
                "[ref: not few (its bits depend on the number of threads); not mute (");
}

static void reference_kernels_are_a_reason_when_asked_for(void **state)
{
    assert_says(*state, &explained_op, OT_F32, 4,
                &(ot__plan_options){.n_threads = 2, .reference_only = true},
                "[ref: reference kernels are asked for]");
}

static void prepare_has_the_last_word_and_other_entries_of_the_name_have_none(void **state)
{
    assert_says(*state, &prepared_op, OT_F32, 4, &plain, "[fast: by eight] f32[4]");
}

static void a_first_kernel_that_takes_all_says_nothing(void **state)
{
    assert_says(*state, &reverse_op, OT_F32, 4, &plain, "[ref] f32[4]");
}

static void operators_that_run_reference_kernels_are_counted(void **state)
{
    fixture *f = *state;
    ot__buf text = {0};

    node(f, "Explained", &explained_op, input(f, "x", 5), NULL, value(f, "a", 5));
    node(f, "Fails", &fails_op, value(f, "a", 5), NULL, value(f, "b", 5));
    node(f, "Explained", &explained_op, value(f, "b", 5), NULL, value(f, "c", 5));
    node(f, "Prepared", &prepared_op, input(f, "z", 4), NULL, value(f, "d", 4));
    output(f, "c");
    output(f, "d");
    assert_int_equal(plan(f), OT_OK);
    assert_int_equal(ot__plan_describe(f->plan, &text), OT_OK);
    assert_contains(&text, "\nreference kernels: Explained 2, Fails 1\n");
}

static void a_plan_is_written_as_json(void **state)
{
    fixture *f = *state;
    ot__buf text = {0};

    node(f, "Explained", &explained_op, input(f, "x", 4), NULL, value(f, "y", 4));
    output(f, "y");
    assert_int_equal(plan(f), OT_OK);
    assert_int_equal(ot__plan_write_json(f->plan, &text), OT_OK);
    assert_contains(&text, "\"steps\":[{\"node\":\"Explained 'n'\",\"kernel\":\"few\",\"reason\":"
                           "\"few elements\",\"reference\":false,\"inputs\":[{\"dtype\":\"f32\","
                           "\"shape\":[4]}],\"outputs\":[{\"dtype\":\"f32\",\"shape\":[4]}],"
                           "\"scratch_bytes\":0}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_kernel_says_why_it_takes_a_node),
        TEST(those_that_decline_say_why_before_the_one_that_takes_it),
        TEST(an_element_type_is_a_reason),
        TEST(reproducible_is_a_reason),
        TEST(reference_kernels_are_a_reason_when_asked_for),
        TEST(prepare_has_the_last_word_and_other_entries_of_the_name_have_none),
        TEST(a_first_kernel_that_takes_all_says_nothing),
        TEST(operators_that_run_reference_kernels_are_counted),
        TEST(a_plan_is_written_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
