// SPDX-License-Identifier: Apache-2.0
#include "artifacts/artifacts.h"
#include "evaluate.h"

static ot_report *report_of(const char *text, const ot_artifacts_options *options)
{
    ot_model *model = read_text(text);
    ot_report *report;

    assert_ok(ot_report_create(model, options, &report));
    ot_model_destroy(model);
    return report;
}

static void a_model_that_trains_has_no_problems(void **state)
{
    ot_report *report = report_of("<ir_version: 8, opset_import: [\"\" : 17]>"
                                  "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>"
                                  "{ y = Mul(x, w) }",
                                  NULL);
    const ot_parameter_report *row = ot_report_parameter(report, 0);

    (void)state;
    assert_int_equal(ot_report_trainable(report), 1);
    assert_int_equal(ot_report_problem_count(report), 0);
    assert_null(ot_report_problem(report, 0));
    assert_int_equal(ot_report_parameter_count(report), 1);
    assert_string_equal(row->name, "w");
    assert_int_equal(row->dtype, OT_F32);
    assert_int_equal(row->shape.dim[0], 2);
    assert_null(ot_report_parameter(report, 1));
    assert_null(ot_report_parameter(report, -1));
    ot_report_destroy(report);
}

static void every_unknown_operator_is_a_problem_of_its_own(void **state)
{
    ot_report *report = report_of("<ir_version: 8, opset_import: [\"\" : 17, \"com.acme\" : 1]>"
                                  "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>"
                                  "{ a = Mul(x, w) b = Foo(a) y = com.acme.Bar(b) }",
                                  NULL);

    (void)state;
    assert_int_equal(ot_report_trainable(report), 0);
    assert_int_equal(ot_report_problem_count(report), 2);
    assert_string_equal(ot_report_problem(report, 0), "operator Foo (opset 17) is not supported");
    assert_string_equal(ot_report_problem(report, 1), "operator com.acme.Bar is not supported");
    assert_int_equal(ot_report_parameter_count(report), 1);
    assert_string_equal(ot_report_parameter(report, 0)->reason,
                        "reaches the loss only through Foo of 'b', which is not supported");
    assert_int_equal(ot_report_parameter(report, 0)->blocked, 1);
    assert_int_equal(ot_report_parameter(report, 0)->trainable, 0);
    ot_report_destroy(report);
}

static void what_stops_everything_is_a_problem(void **state)
{
    ot_report *report = report_of("<ir_version: 8, opset_import: [\"\" : 17]>"
                                  "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>"
                                  "{ [step] s = Floor(w) y = Mul(x, s) }",
                                  NULL);

    (void)state;
    assert_int_equal(ot_report_trainable(report), 0);
    assert_string_equal(
        ot_report_problem(report, 0),
        "nothing to train: no parameter reaches 'y' ('w': only through input 'X' of "
        "Floor 'step')");
    assert_int_equal(ot_report_parameter(report, 0)->trainable, 0);
    ot_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_that_trains_has_no_problems),
        cmocka_unit_test(every_unknown_operator_is_a_problem_of_its_own),
        cmocka_unit_test(what_stops_everything_is_a_problem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
