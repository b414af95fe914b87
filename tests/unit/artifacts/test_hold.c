// SPDX-License-Identifier: Apache-2.0
// What reaches the loss and is no parameter: masks of attention, however they get to Softmax.
#include <math.h>

#include "artifacts/artifacts.h"
#include "evaluate.h"

// A score matrix of 2 x 2 that trains by `w`; `nodes` make `s` of the scores `q` and of `m`.
static ot_report *report_of(const char *elements, const char *nodes,
                            const ot_artifacts_options *options)
{
    char text[1024];
    ot_model *model;
    ot_report *report;

    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17]>\n"
             "g (float[2, 2] x) => (float[2, 2] y)\n"
             "<float[2, 2] w = {1, 2, 3, 4}, float[2, 2] m = {%s}, int64[1] zero = {0},\n"
             " int64[1] one = {1}, int64[1] two = {2}, int64[3] cube = {1, 2, 2},\n"
             " int64[2] square = {2, 2}, float half = {0.5}>\n"
             "{ q = MatMul(x, w) %s y = Mul(s, x) }",
             elements, nodes);
    model = read_text(text);
    assert_ok(ot_report_create(model, options, &report));
    ot_model_destroy(model);
    return report;
}

static const ot_parameter_report *row_of(const ot_report *report, const char *name)
{
    for (int i = 0; i < ot_report_parameter_count(report); i++)
        if (strcmp(ot_report_parameter(report, i)->name, name) == 0)
            return ot_report_parameter(report, i);
    fail_msg("no row '%s'", name);
    return NULL;
}

static void assert_role(const char *elements, const char *nodes, bool is_mask)
{
    ot_report *report = report_of(elements, nodes, NULL);
    const ot_parameter_report *row = row_of(report, "m");

    if (row->frozen != is_mask || row->trainable == is_mask)
        fail_msg("{%s} %s: '%s'", elements, nodes, row->reason);
    if (is_mask)
        assert_string_equal(row->reason, "a mask of Softmax 'soft'");
    assert_int_equal(row_of(report, "w")->trainable, 1);
    ot_report_destroy(report);
}

#define CAUSAL "0, -10000, 0, 0"
#define ADDED "a = Add(q, m) [soft] s = Softmax(a)"

static void elements_tell_a_mask(void **state)
{
    (void)state;
    assert_role("0, -10000, 0, 0", ADDED, true);
    assert_role("0, -1e9, 0, 0", ADDED, true);
    assert_role("0, -3.4028235e38, 0.5, -2", ADDED, true);
    assert_role("0, -100, -100, 0", ADDED, true); // two values alone
    assert_role("-50, 0, 0, 0", ADDED, true);
    assert_role("0, -9999, 0, 1", ADDED, false);
    assert_role("0, -100, -101, 0", ADDED, false);
    assert_role("0, -49, -49, 0", ADDED, false);
    assert_role("0, 100, 100, 0", ADDED, false);
    assert_role("0, 0, 0, 0", ADDED, false); // a bias as it is initialised
    assert_role("-100, -100, -100, -100", ADDED, true);
}

static void what_is_moved_before_and_after_the_addition_stays_a_mask(void **state)
{
    static const char *const ways[] = {
        "a = Add(m, q) [soft] s = Softmax(a)",
        "c = Slice(m, zero, two, zero) a = Add(q, c) [soft] s = Softmax(a)",
        "u = Unsqueeze(m, zero) v = Squeeze(u, zero) a = Add(q, v) [soft] s = Softmax(a)",
        "u = Expand(m, square) a = Add(q, u) [soft] s = Softmax(a)",
        "g = Gather(m, one) a = Add(q, g) [soft] s = Softmax(a)",
        "d = Cast<to = 11>(m) f = Cast<to = 1>(d) a = Add(q, f) [soft] s = Softmax(a)",
        "a = Add(q, m) b = Reshape(a, cube) c = Reshape(b, square) [soft] s = Softmax(c)",
        "t = Transpose(m) i = Identity(t) a = Add(q, i) b = Add(a, q) [soft] s = Softmax(b)",
        "a = Sum(q, m, x) [soft] s = Softmax(a)",
        "a = Add(q, m) [soft] s = LogSoftmax(a)",
        "a = Add(q, m) [soft] p = Softmax(a) b = Add(x, m) r = Softmax(b) s = Add(p, r)",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(ways); i++) {
        ot_report *report = report_of(CAUSAL, ways[i], NULL);
        const ot_parameter_report *row = row_of(report, "m");

        if (!row->frozen || !strstr(row->reason, "a mask of "))
            fail_msg("%s: '%s'", ways[i], row->reason);
        ot_report_destroy(report);
    }
}

static void what_is_also_read_otherwise_is_no_mask(void **state)
{
    static const char *const ways[] = {
        "s = Add(q, m)",
        "[soft] p = Softmax(m) s = Add(p, q)",
        "a = Mul(q, m) [soft] s = Softmax(a)",
        "a = Add(q, m) b = Mul(a, half) [soft] s = Softmax(b)",
        "a = Add(q, m) [soft] p = Softmax(a) s = Add(p, m)",
        "a = Add(q, m) [soft] p = Softmax(a) s = MatMul(p, m)",
        "a = Add(q, m) [soft] p = Softmax(a) s = Add(p, a)",
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(ways); i++)
        assert_role(CAUSAL, ways[i], false);
}

static void a_mask_trains_when_it_is_named_or_all_do(void **state)
{
    static const char *const name[] = {"m", "w"}, *const pattern[] = {"*"};
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_report *report;

    (void)state;
    options.trainable = name;
    options.n_trainable = 2;
    report = report_of(CAUSAL, ADDED, &options);
    assert_int_equal(row_of(report, "m")->trainable, 1);
    ot_report_destroy(report);
    options.trainable = pattern;
    options.n_trainable = 1;
    report = report_of(CAUSAL, ADDED, &options);
    assert_int_equal(row_of(report, "m")->frozen, 1);
    ot_report_destroy(report);
    options.trainable = NULL;
    options.train_buffers = 1;
    report = report_of(CAUSAL, ADDED, &options);
    assert_int_equal(row_of(report, "m")->trainable, 1);
    ot_report_destroy(report);
}

// Where operators are missing the structure alone decides, and decides the same.
static void a_mask_is_one_in_a_model_that_cannot_be_trained(void **state)
{
    ot_report *report =
        report_of(CAUSAL, "a = Add(q, m) [soft] p = Softmax(a) r = Foo(p) s = Add(p, r)", NULL);

    (void)state;
    assert_int_equal(ot_report_trainable(report), 0);
    assert_int_equal(row_of(report, "m")->frozen, 1);
    assert_string_equal(row_of(report, "m")->reason, "a mask of Softmax 'soft'");
    assert_int_equal(row_of(report, "w")->trainable, 1);
    ot_report_destroy(report);
}

// -inf is no text of ONNX's syntax.
static void an_infinite_element_makes_a_mask(void **state)
{
    ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "g (float[2, 2] x) => (float[2, 2] s)\n"
                                "<float[2, 2] w = {1, 2, 3, 4}, float[2, 2] m = {0, 1, 2, 3}>\n"
                                "{ q = MatMul(x, w) a = Add(q, m) s = Softmax(a) }");
    float *m = ot__graph_find(model->graph, "m")->constant->data;
    ot_report *report;

    (void)state;
    m[1] = -INFINITY;
    assert_ok(ot_report_create(model, NULL, &report));
    assert_int_equal(row_of(report, "m")->frozen, 1);
    ot_report_destroy(report);
    ot_model_destroy(model);
}

// An optimiser makes initializers of Constant nodes, and keeps their names.
static void what_a_constant_node_gave_before_an_optimiser_does_not_train(void **state)
{
    static const struct {
        const char *name;
        int trains;
    } cases[] = {
        {"/enc/Constant_1_output_0", 0}, {"/Constant_output_0", 0},
        {"/l/Transpose_output_0", 1},    {"l.Constant_output_0", 1},
        {"/Constants/Mul_output_0", 1},  {"/Constant_2_output_1", 1},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                    "g (float[2, 2] x) => (float[2, 2] y)\n"
                                    "<float[2, 2] w = {1, 2, 3, 4}, float[2, 2] m = {1, 1, 2, 1}>"
                                    "{ q = MatMul(x, w) y = Mul(q, m) }");
        ot_report *report;

        assert_non_null(
            ot__graph_rename_value(model->graph, find_value(model, "m"), cases[i].name));
        assert_ok(ot_report_create(model, NULL, &report));
        assert_int_equal(row_of(report, cases[i].name)->trainable, cases[i].trains);
        ot_report_destroy(report);
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_tell_a_mask),
        cmocka_unit_test(what_a_constant_node_gave_before_an_optimiser_does_not_train),
        cmocka_unit_test(what_is_moved_before_and_after_the_addition_stays_a_mask),
        cmocka_unit_test(what_is_also_read_otherwise_is_no_mask),
        cmocka_unit_test(a_mask_trains_when_it_is_named_or_all_do),
        cmocka_unit_test(a_mask_is_one_in_a_model_that_cannot_be_trained),
        cmocka_unit_test(an_infinite_element_makes_a_mask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
