// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/wire_build.h"

enum { UNKNOWN = 1000 }; // no message has this field

static bool holds(const ot__buf *buf, const void *bytes, size_t n)
{
    for (size_t i = 0; i + n <= buf->length; i++)
        if (memcmp(buf->data + i, bytes, n) == 0)
            return true;
    return false;
}

// Writes what was read from the message.
static ot__buf rewritten(const message *m)
{
    ot_model *model_read = read_message(m);
    ot__buf out = {0};

    assert_int_equal(ot__onnx_write(model_read, &out), OT_OK);
    ot_model_destroy(model_read);
    return out;
}

static message typed_info(const char *name)
{
    message info = value_info(name), type = {0}, inner = {0}, shape = {0}, dim = {0};

    put_text(&dim, 2, "N");
    put_text(&dim, 3, "denoted-dim");
    put_text(&dim, UNKNOWN, "in-dim");
    put_message(&shape, 1, &dim);
    put_text(&shape, UNKNOWN, "in-shape");
    put_int(&inner, 1, OT_F32);
    put_message(&inner, 2, &shape);
    put_text(&inner, UNKNOWN, "in-tensor-type");
    put_message(&type, 1, &inner);
    put_text(&type, 6, "denoted-type");
    put_text(&type, UNKNOWN, "in-type");
    put_message(&info, 2, &type);
    put_text(&info, UNKNOWN, "in-value-info");
    return info;
}

// y2 = Op (x) with a tensor attribute, all with unknown fields
static message strange_node(void)
{
    message w = tensor("note", OT_F32, 0, NULL), attr = {0}, op = node("Op", "x", "y2");

    put_bytes(&w, 9, (float[]){1}, 4);
    put_text(&w, 12, "doc-of-attr-tensor");
    put_text(&w, UNKNOWN, "in-attr-tensor");
    put_text(&attr, 1, "value");
    put_message(&attr, 5, &w);
    put_text(&attr, 13, "doc-of-attr");
    put_int(&attr, 20, OT_ATTR_TENSOR);
    put_text(&attr, UNKNOWN, "in-attr");
    put_message(&op, 5, &attr);
    put_text(&op, 6, "doc-of-node");
    put_text(&op, 9, "\x0a\x06in-key");
    put_text(&op, UNKNOWN, "in-node");
    return op;
}

static message strange_function(void)
{
    const message body = node("Abs", "a", "b");
    message f = {0}, opset = {0};

    put_text(&f, 1, "f");
    put_text(&f, 4, "a");
    put_text(&f, 5, "b");
    put_message(&f, 7, &body);
    put_text(&f, 10, "local");
    put_int(&opset, 2, 17);
    put_int(&opset, 200, 7);
    put_text(&opset, UNKNOWN, "in-opset");
    put_message(&f, 9, &opset);
    put_text(&f, UNKNOWN, "in-function");
    return f;
}

static message strange_model(void)
{
    const message info = typed_info("typed"), op = strange_node(), f = strange_function();
    message nobody = {0}, entry = {0};
    message w = tensor("w", OT_F32, 0, NULL), g = graph(), m;

    put_bytes(&w, 9, (float[]){1}, 4);
    put_text(&w, 12, "doc-of-initializer");
    put_text(&w, UNKNOWN, "in-initializer");
    put_message(&g, 1, &op);
    put_message(&g, 5, &w);
    put_message(&g, 11, &info);
    put_text(&nobody, 1, "nobody-makes-it");
    put_text(&nobody, UNKNOWN, "in-info-of-nobody");
    put_message(&g, 13, &nobody);
    put_text(&g, UNKNOWN, "in-graph");
    put_text(&g, 14, "\x0a\x0dquantised-one"); // fields of one kind that do not lie together
    m = model(&g);
    put_text(&m, UNKNOWN, "in-model");
    put_text(&entry, 1, "key-of-entry");
    put_text(&entry, UNKNOWN, "in-metadata-entry");
    put_message(&m, 14, &entry);
    put_text(&m, 20, ""); // an empty TrainingInfoProto
    put_message(&m, 25, &f);
    return m;
}

static void unknown_fields_survive_in_every_message(void **state)
{
    static const char *const kept[] = {
        "in-dim",
        "denoted-dim",
        "in-shape",
        "in-tensor-type",
        "in-type",
        "denoted-type",
        "in-value-info",
        "in-attr-tensor",
        "doc-of-attr-tensor",
        "in-attr",
        "doc-of-attr",
        "in-node",
        "in-key",
        "doc-of-node",
        "in-initializer",
        "doc-of-initializer",
        "in-graph",
        "quantised-one",
        "in-model",
        "in-metadata-entry",
        "nobody-makes-it",
        "in-info-of-nobody",
        "in-function",
        "in-opset",
    };
    const message m = strange_model();
    ot__buf out = rewritten(&m);

    (void)state;
    for (size_t i = 0; i < OT_COUNT(kept); i++)
        if (!holds(&out, kept[i], strlen(kept[i])))
            fail_msg("'%s' is lost", kept[i]);
    ot__buf_deinit(&out);
}

static void a_value_with_a_doc_and_no_type_keeps_it(void **state)
{
    const message op = node("Op", "x", "inner"), last = node("Op", "inner", "y2");
    message g = graph(), info = {0}, m;
    ot__buf out;

    (void)state;
    put_message(&g, 1, &op);
    put_message(&g, 1, &last);
    put_text(&info, 1, "inner");
    put_text(&info, 3, "doc-of-inner");
    put_message(&g, 13, &info);
    m = model(&g);
    out = rewritten(&m);
    assert_true(holds(&out, "doc-of-inner", 12));
    ot__buf_deinit(&out);
}

// Its type would stand there twice, once wrong.
static void a_kept_type_goes_when_a_node_makes_the_name(void **state)
{
    message g = graph(), info = {0}, m;
    ot__buf out = {0};
    ot_model *changed;
    ot_node *maker;

    (void)state;
    put_text(&info, 1, "later");
    put_text(&info, UNKNOWN, "in-info-of-later");
    put_message(&g, 13, &info);
    m = model(&g);
    changed = read_message(&m);
    maker = ot__graph_add_node(changed->graph, "", "Op", "", NULL, 0,
                               (ot_value *[]){ot__graph_value(changed->graph, "later")}, 1);
    assert_non_null(maker);
    assert_int_equal(ot__onnx_write(changed, &out), OT_OK);
    assert_false(holds(&out, "in-info-of-later", 16));
    ot__buf_deinit(&out);
    ot_model_destroy(changed);
}

static void a_type_that_changed_is_written_anew(void **state)
{
    const message info = typed_info("typed");
    message g = graph(), m;
    ot__buf out = {0};
    ot_model *changed;

    (void)state;
    put_message(&g, 11, &info);
    m = model(&g);
    changed = read_message(&m);
    ot__value_set(ot__graph_find(changed->graph, "typed"), OT_F32, &OT_SHAPE(4));
    assert_int_equal(ot__onnx_write(changed, &out), OT_OK);
    assert_false(holds(&out, "denoted-dim", 11)); // of an extent that is no more
    assert_true(holds(&out, "in-value-info", 13));
    ot__buf_deinit(&out);
    ot_model_destroy(changed);
}

static void writing_is_a_fixed_point(void **state)
{
    const message m = strange_model();
    ot__buf first = rewritten(&m), second;
    message again = {0};

    (void)state;
    assert_true(first.length < WIRE_MAX);
    memcpy(again.bytes, first.data, first.length);
    again.n = first.length;
    second = rewritten(&again);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
}

static void kinds_that_are_not_modelled_keep_their_bytes(void **state)
{
    message attr = {0}, op = node("Op", "x", "y2"), m, sparse = {0};
    ot__buf out;

    (void)state;
    put_int(&sparse, 3, 77);
    put_text(&attr, 1, "value");
    put_message(&attr, 22, &sparse);
    put_int(&attr, 20, OT_ATTR_SPARSE_TENSOR);
    put_message(&op, 5, &attr);
    m = model_with_node(&op);
    out = rewritten(&m);
    assert_true(holds(&out, "\xb2\x01\x02\x18\x4d", 5)); // field 22 with field 3 = 77
    ot__buf_deinit(&out);
}

static void writing_survives_every_failing_allocation(void **state)
{
    const message m = strange_model();
    ot_model *whole = read_message(&m);
    int64_t n = 0;
    ot_status st;

    (void)state;
    do {
        ot__buf out = {0};

        ot__alloc_fail_after(n++);
        st = ot__onnx_write(whole, &out);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot__buf_deinit(&out);
    } while (st != OT_OK);
    assert_true(n > 1);
    ot_model_destroy(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_fields_survive_in_every_message),
        cmocka_unit_test(a_value_with_a_doc_and_no_type_keeps_it),
        cmocka_unit_test(a_kept_type_goes_when_a_node_makes_the_name),
        cmocka_unit_test(a_type_that_changed_is_written_anew),
        cmocka_unit_test(writing_is_a_fixed_point),
        cmocka_unit_test(kinds_that_are_not_modelled_keep_their_bytes),
        cmocka_unit_test(writing_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
