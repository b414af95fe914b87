// SPDX-License-Identifier: Apache-2.0
#include "options_fixture.h"

static void all_violations_of_a_description_are_told_at_once(void **state)
{
    static const struct {
        const char *json, *payload;
    } cases[] = {
        {"{\"inputs\":[[\"x\",[\"batch\",3]],[\"s\",[]]],\"outputs\":[[\"loss\",[],true],[\"y\",[1]"
         "]"
         "]}",
         "{}"},
        {"{\"inputz\":[[\"x\",[]]],\"outputs\":[[\"y\",[]]]}",
         "{\"inputs\":[\"required field\"],\"inputz\":[\"unknown field\"]}"},
        {"{}", "{\"inputs\":[\"required field\"],\"outputs\":[\"required field\"]}"},
        {"{\"inputs\":[[true,[]]],\"outputs\":[[true,[]]]}",
         "{\"inputs\":[{\"0\":[\"the first element of the tuple (aka name) must be a string\"]}],"
         "\"outputs\":[{\"0\":[\"the first element of the tuple (aka name) must be a string\"]}]}"},
        {"{\"inputs\":[],\"outputs\":3}",
         "{\"inputs\":[\"min length is 1\"],\"outputs\":[\"must be of list type\"]}"},
        {"{\"inputs\":[[\"x\"],[\"y\",[],false],7],\"outputs\":[[\"z\"],[\"z\",[],true,1]]}",
         "{\"inputs\":[{\"0\":[\"must be a tuple with size 2\"],\"1\":[\"must be a tuple with size "
         "2\"],\"2\":[\"must be a tuple with size 2\"]}],"
         "\"outputs\":[{\"0\":[\"must be a tuple with size 2 or 3\"],\"1\":[\"must be a tuple with "
         "size 2 or 3\"]}]}"},
        {"{\"inputs\":[[\"x\",\"batch\"]],\"outputs\":[[\"y\",[true,null,\"a\",1.5]]]}",
         "{\"inputs\":[{\"0\":[\"the second element of the tuple (aka shape) must be a list\"]}],"
         "\"outputs\":[{\"0\":[\"each shape must be either a string or integer\","
         "\"each shape must be either a string or integer\","
         "\"each shape must be either a string or integer\"]}]}"},
        {"{\"inputs\":[[\"x\",[]]],\"outputs\":[[\"y\",[],1]]}",
         "{\"outputs\":[{\"0\":[\"the third element of the tuple (aka is_loss) must be a "
         "boolean\"]}]}"},
        {"{\"inputs\":[[\"x\",[]],[1,[]]],\"outputs\":[[\"a\",[],true],[\"b\",[],true],[\"c\",[],"
         "true]]}",
         "{\"inputs\":[{\"1\":[\"the first element of the tuple (aka name) must be a string\"]}],"
         "\"outputs\":[{\"1\":[\"only one is_loss can bet set to True\"],"
         "\"2\":[\"only one is_loss can bet set to True\"]}]}"},
        {"{\"inputs\":[[\"x\",[]],[\"x\",[]]],\"outputs\":[[\"x\",[-1,\"\"]]]}",
         "{\"inputs\":[{\"1\":[\"'x' is described already\"]}],\"outputs\":[{\"0\":["
         "\"axis 0 must be a size of at least 0 or a symbol\","
         "\"axis 1 must be a size of at least 0 or a symbol\"]}]}"},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        reading in;

        read_description(&in, cases[i].json);
        if (strcmp(in.payload, cases[i].payload) != 0)
            fail_msg("%s: %s", cases[i].json, in.payload);
        reading_end(&in);
    }
}

static void a_misspelt_section_tells_the_one_that_was_meant(void **state)
{
    reading in;

    (void)state;
    read_description(&in, "{\"inputz\":[[\"x\",[]]],\"outputs\":[[\"y\",[]]]}");
    assert_int_equal(ot__violations_status(&in.v, "model_desc"), OT_ERR_INVALID);
    assert_string_equal(ot_error_message(),
                        "model_desc: 2 violations: inputs: required field; inputz: unknown field; "
                        "did you mean 'inputs'?");
    reading_end(&in);
}

static void a_description_reads_back_as_it_was_written(void **state)
{
    static const char text[] = "{\"inputs\":[[\"x\",[\"batch\",3]],[\"y\",[]]],"
                               "\"outputs\":[[\"loss\",[],true],[\"z\",[\"batch\",0]]]}";
    ot__buf out = {0};
    reading in;

    (void)state;
    read_description(&in, text);
    assert_int_equal(in.description.n_inputs, 2);
    assert_string_equal(in.description.inputs[0].dims[0].symbol, "batch");
    assert_null(in.description.inputs[0].dims[1].symbol);
    assert_int_equal(in.description.inputs[0].dims[1].size, 3);
    assert_true(in.description.outputs[0].is_loss);
    ot__description_write_json(&out, NULL, &in.description);
    assert_string_equal(out.data, text);
    ot__buf_deinit(&out);
    reading_end(&in);
}

static void structs_are_checked_as_json_is(void **state)
{
    const ot_dim_description dims[] = {{"batch", 0}, {NULL, -2}};
    const ot_value_description inputs[] = {{"x", dims, 2, 0}, {NULL, NULL, 1, 1}};
    const ot_value_description outputs[] = {{"a", dims, 1, 1}, {"b", NULL, 17, 1}};
    ot_model_description given = OT_MODEL_DESCRIPTION_INIT, own;

    (void)state;
    assert_int_equal(ot__model_description_take(NULL, &own), OT_ERR_INVALID);
    given.inputs = inputs;
    given.n_inputs = 2;
    given.n_outputs = 1;
    assert_int_equal(ot__model_description_take(&given, &own), OT_ERR_INVALID);
    assert_string_equal(
        ot_error_message(),
        "model_desc: 5 violations: inputs.0: axis 1 must be a size of at least 0 or a symbol; "
        "inputs.1: the first element of the tuple (aka name) must be a string; "
        "inputs.1: the second element of the tuple (aka shape) must be a list; "
        "inputs.1: an input cannot be the loss; outputs: 1 values in NULL");
    given.outputs = outputs;
    given.n_inputs = 0;
    given.n_outputs = 2;
    assert_int_equal(ot__model_description_take(&given, &own), OT_ERR_INVALID);
    assert_non_null(strstr(ot_error_message(), "inputs: min length is 1; outputs.1: "));
    assert_non_null(strstr(ot_error_message(), "only one is_loss can bet set to True"));
}

static void every_allocation_may_fail(void **state)
{
    json_t *json = json_of("{\"inputs\":[[\"x\",[\"batch\",3]],[\"x\",[]]],"
                           "\"outputs\":[[\"loss\",[],true],[1,[]]]}");
    bool failed = true;

    (void)state;
    for (int n = 0; failed; n++) {
        ot__violations v;
        ot__reader r = {.v = &v};
        ot_model_description description = OT_MODEL_DESCRIPTION_INIT, own;

        ot__alloc_fail_after(n);
        failed = ot__violations_init(&v) != OT_OK;
        r.arena = ot__arena_create();
        if (!failed && r.arena) {
            ot__description_from_json(&r, json, &description);
            failed = r.status != OT_OK ||
                     ot__violations_status(&v, "model_desc") == OT_ERR_NO_MEMORY ||
                     ot__model_description_take(&description, &own) == OT_ERR_NO_MEMORY;
        } else {
            failed = true;
        }
        ot__alloc_fail_after(-1);
        if (!failed)
            assert_int_equal(v.count, 2);
        ot__arena_destroy(r.arena);
        ot__violations_deinit(&v);
    }
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_violations_of_a_description_are_told_at_once),
        cmocka_unit_test(a_misspelt_section_tells_the_one_that_was_meant),
        cmocka_unit_test(a_description_reads_back_as_it_was_written),
        cmocka_unit_test(structs_are_checked_as_json_is),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
