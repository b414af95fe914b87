// SPDX-License-Identifier: Apache-2.0
// .ort files of ours: read back, and looked into where other readers need more than we do.
#include "onnx/ort/ort.h"
#include "unit/onnx/folder.h"

static void write_model(const ot_model *model, ot__buf *out)
{
    if (ot__ort_write(model, out) != OT_OK)
        fail_msg("%s", ot_error_message());
}

static ot_model *written_and_read(const ot_model *model, ot__buf *bytes)
{
    ot_model *again = NULL;

    write_model(model, bytes);
    if (ot__ort_read(bytes->data, bytes->length, NULL, "written", &again) != OT_OK)
        fail_msg("%s", ot_error_message());
    return again;
}

static void assert_same_text(const ot_model *a, const ot_model *b)
{
    const ot__text_options all = {0};
    ot__buf first = {0}, second = {0};

    assert_int_equal(ot__text_write(a, &all, &first), OT_OK);
    assert_int_equal(ot__text_write(b, &all, &second), OT_OK);
    assert_string_equal(first.data, second.data);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
}

// Names of graphs are not kept: here they are those that the reader gives.
static const char *const all_parts =
    "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1], producer_name: \"p\","
    " producer_version: \"v\", domain: \"d\", model_version: 5, doc_string: \"about\","
    " metadata_props: [\"key\": \"value\", \"empty\": \"\"]>\n"
    "main (float[n, 2] x, bool c, seq(float[n, 2]) parts, float[k] free, float[] any)"
    " => (float[n, 2] y, string[2] t, float[n, 2] part, float[3] f)\n"
    "<float top = {6}, string[2] words = {\"one\", \"two\\\"\"}, int64 i = {1}, double[2] d = {1, "
    "2},"
    " uint8[3] bytes = {0, 1, 255}, float16[2] halves = {1, 2}, float[0] nothing = {},"
    " float[n, 2] a, float[m] g, float[3] f2>\n"
    "{\n"
    "  a = Clip (x, \"\", top)\n"
    "  y = If (c) <then_branch: graph = then_branch () => (float[n, 2] p) <float[n, 2] q> {"
    "    q = LeakyRelu <alpha: float = 0.25> (a)\n"
    "    p = If (c) <then_branch: graph = then_branch () => (float[n, 2] r) { r = Add (q, x) },"
    "               else_branch: graph = else_branch () => (float[n, 2] r) { r = Neg (q) }>"
    "  }, else_branch: graph = else_branch () => (float[n, 2] p) { p = Neg (a) }>\n"
    "  t = Identity (words)\n"
    "  part = SequenceAt (parts, i)\n"
    "  g = com.microsoft.FastGelu (free)\n"
    "  f2 = RandomUniform <dtype: int = 1, shape: ints = [3]> ()\n"
    "  f = Relu (f2)\n"
    "}\n";

static void a_model_is_read_back_as_it_was(void **state)
{
    ot_model *model = model_of(all_parts), *again;
    ot__buf bytes = {0};

    (void)state;
    again = written_and_read(model, &bytes);
    assert_same_text(model, again);
    assert_string_equal(again->doc, "about");
    assert_int_equal(again->model_version, 5);
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void the_same_model_gives_the_same_bytes(void **state)
{
    ot_model *model = model_of(all_parts), *again;
    ot__buf first = {0}, second = {0};

    (void)state;
    again = written_and_read(model, &first);
    write_model(again, &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&first);
    ot__buf_deinit(&second);
}

static void types_that_the_model_does_not_state_are_inferred(void **state)
{
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17]>"
                               "g (float[n, 3] x) => (float[n, 2] y)"
                               "<float[3, 2] w = {1, 2, 3, 4, 5, 6}>"
                               "{ h = MatMul (x, w) y = Relu (h) }");
    ot__buf bytes = {0};
    ot_model *again = written_and_read(model, &bytes);
    ot_dtype dtype;
    ot_shape shape;

    (void)state;
    assert_int_equal(ot_model_value_info(again, "h", &dtype, &shape), OT_OK);
    assert_int_equal(dtype, OT_F32);
    assert_int_equal(shape.dim[1], 2);
    // The model itself is as it was.
    assert_int_equal(ot__graph_find(model->graph, "h")->kind, OT_VALUE_UNTYPED);
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void constant_nodes_become_initializers(void **state)
{
    static const float half = 0.5f;
    static const int64_t two[2] = {3, 4};
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17]>"
                               "g (float[1] x) => (float[1] y, int64[2] z, float[2] t, string s) {"
                               " c = Constant <value_float: float = 0.5> () y = Mul (x, c)"
                               " z = Constant <value_ints: ints = [3, 4]> ()"
                               " t = Constant <value: tensor = float[2] {1, 2}> ()"
                               " s = Constant <value_string: string = \"text\"> () }");
    ot__buf bytes = {0};
    ot_model *again = written_and_read(model, &bytes);
    const ot_value *c = ot__graph_find(again->graph, "c"), *z = ot__graph_find(again->graph, "z"),
                   *s = ot__graph_find(again->graph, "s");

    (void)state;
    assert_int_equal(ot_model_node_count(again), 1);
    assert_int_equal(again->graph->n_initializers, 4);
    assert_int_equal(c->constant->shape.ndim, 0);
    assert_memory_equal(c->constant->data, &half, sizeof half);
    assert_memory_equal(z->constant->data, two, sizeof two);
    assert_int_equal(((const ot__string *)s->constant->data)->size, 4);
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void functions_are_put_in_where_they_are_called(void **state)
{
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17, \"local\" : 1]>"
                               "g (float[2] x) => (float[2] y) { y = local.twice (x) }"
                               "<domain: \"local\", opset_import: [\"\" : 17]>"
                               "twice (a) => (b) { b = Add (a, a) }");
    ot__buf bytes = {0};
    ot_model *again = written_and_read(model, &bytes);

    (void)state;
    assert_int_equal(ot_model_node_count(again), 1);
    assert_string_equal(ot_model_node_operator(again, 0), "Add");
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void operators_without_a_kernel_there_are_written_out(void **state)
{
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>"
                               "g (float[2, 3] dy, float[2, 3] a, float[3] b, double[1] like)"
                               " => (float[2, 3] da, float[3] db, double[3] e) {"
                               " da, db = com.microsoft.DivGrad (dy, a, b)"
                               " e = CastLike (b, like) }");
    ot__buf bytes = {0};
    ot_model *again = written_and_read(model, &bytes);

    (void)state;
    for (int i = 0; i < ot_model_node_count(again); i++)
        assert_string_not_equal(ot_model_node_operator(again, i), "com.microsoft.DivGrad");
    assert_string_equal(maker(again, "da")->op_type, "Reshape");
    assert_string_equal(maker(again, "e")->op_type, "Cast");
    assert_int_equal(ot__node_attr(maker(again, "e"), "to")->i, OT_F64);
    ot_model_destroy(again);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

// ---- what only other readers look at ----

static ot__fb_table element_at(ot__fb *fb, const ot__fb_table *table, int slot, size_t i)
{
    return ot__fb_element(fb, ot__fb_subvector(fb, table, slot, 4), i);
}

static void assert_words(ot__fb *fb, const ot__fb_table *table, int slot, size_t width,
                         const uint32_t *expected, size_t n)
{
    ot__fb_vector list = ot__fb_subvector(fb, table, slot, 4 * width);

    assert_int_equal(fb->status, OT_OK);
    assert_int_equal(list.count * width, n);
    if (n > 0)
        assert_memory_equal(fb->bytes + list.position, expected, n * sizeof *expected);
}

static void nodes_carry_what_small_readers_do_not_derive(void **state)
{
    // Clip's lower bound is omitted; Max is variadic; the If reads `a` within.
    ot_model *model = model_of(
        "<ir_version: 8, opset_import: [\"\" : 17]>"
        "g (float[2] x, bool c) => (float[2] y) <float top = {6}, float[2] a, float[2] b> {"
        " a = Clip (x, \"\", top) b = Max (a, x, a)"
        " y = If (c) <then_branch: graph = t () => (float[2] p) { p = Add (a, b) },"
        "             else_branch: graph = e () => (float[2] p) { p = Neg (a) }> }");
    ot__buf bytes = {0};
    ot__fb fb = {.where = "written"};
    ot__fb_table root, graph, node, edge;
    ot__fb_vector implicit;

    (void)state;
    write_model(model, &bytes);
    fb.bytes = (const uint8_t *)bytes.data;
    fb.size = bytes.length;
    root = ot__fb_root(&fb, "ORTM", "model");
    root = ot__fb_subtable(&fb, &root, 1);
    graph = ot__fb_subtable(&fb, &root, 7);
    assert_int_equal(ot__fb_int(&fb, &graph, 3, 4, 0), 3); // max_node_index
    node = element_at(&fb, &graph, 2, 0);
    assert_int_equal(ot__fb_int(&fb, &node, 3, 4, 0), 13); // Clip of opset 17 is that of 13
    assert_words(&fb, &node, 11, 1, (const uint32_t[]){1, 1, 1}, 3);
    node = element_at(&fb, &graph, 2, 1);
    assert_int_equal(ot__fb_int(&fb, &node, 4, 4, 0), 1); // index
    assert_words(&fb, &node, 11, 1, (const uint32_t[]){3}, 1);
    node = element_at(&fb, &graph, 2, 2);
    implicit = ot__fb_subvector(&fb, &node, 12, 4);
    assert_int_equal(implicit.count, 2);
    assert_string_equal(ot__fb_string_element(&fb, implicit, 0), "a");
    assert_string_equal(ot__fb_string_element(&fb, implicit, 1), "b");
    // Other node, output of the maker, input of the reader; implicit inputs count on.
    edge = element_at(&fb, &graph, 4, 0);
    assert_words(&fb, &edge, 1, 3, NULL, 0);
    assert_words(&fb, &edge, 2, 3, (const uint32_t[]){1, 0, 0, 1, 0, 2, 2, 0, 1}, 9);
    edge = element_at(&fb, &graph, 4, 2);
    assert_words(&fb, &edge, 1, 3, (const uint32_t[]){0, 0, 1, 1, 0, 2}, 6);
    assert_int_equal(fb.status, OT_OK);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void every_operator_called_has_its_types_in_the_resolver(void **state)
{
    // From ONNX's definitions: Gather-13, ReduceSum-13 (in a subgraph), and Gemm-13.
    static const char *const ids[] = {":Gather:13", ":Gemm:13", ":If:16", ":ReduceSum:13"};
    ot_model *model = model_of(
        "<ir_version: 8, opset_import: [\"\" : 17]>"
        "g (float[2, 2] x, bool c) => (float[] y) <int64[1] i = {0}, float[1, 2] a,"
        " float[2, 2] b> { a = Gather (x, i) b = Gemm (x, x)"
        " y = If (c) <then_branch: graph = t () => (float[] p) { p = ReduceSum (a, i) },"
        "             else_branch: graph = e () => (float[] p) { p = ReduceSum (b, i) }> }");
    ot__buf bytes = {0};
    ot__fb fb = {.where = "written"};
    ot__fb_table root, resolver, entry, types;

    (void)state;
    write_model(model, &bytes);
    fb.bytes = (const uint8_t *)bytes.data;
    fb.size = bytes.length;
    root = ot__fb_root(&fb, "ORTM", "model");
    resolver = ot__fb_subtable(&fb, &root, 3);
    assert_int_equal(ot__fb_subvector(&fb, &resolver, 0, 4).count, 4);
    for (size_t i = 0; i < OT_COUNT(ids); i++) {
        entry = element_at(&fb, &resolver, 0, i);
        assert_string_equal(ot__fb_string(&fb, &entry, 0), ids[i]);
    }
    entry = element_at(&fb, &resolver, 0, 0);
    types = element_at(&fb, &entry, 1, 1); // of Gather: T = i0 o0, Tind = i1
    assert_string_equal(ot__fb_string(&fb, &types, 0), "Tind");
    types = element_at(&fb, &types, 1, 0);
    assert_int_equal(ot__fb_int(&fb, &types, 0, 1, 0), 0);
    assert_int_equal(ot__fb_int(&fb, &types, 1, 4, 0), 1);
    assert_int_equal(fb.status, OT_OK);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

// ---- what cannot be written ----

static void assert_refused(const char *text, ot_status status, const char *message)
{
    ot_model *model = model_of(text);
    ot__buf bytes = {0};

    assert_int_equal(ot__ort_write(model, &bytes), status);
    assert_message_has(message);
    ot_model_destroy(model);
    ot__buf_deinit(&bytes);
}

static void every_operator_of_the_table_can_be_written(void **state)
{
    static const ot__ort_operator operators[] = {
#define OT_ORT_OPERATOR(domain, name, versions, arguments) {domain, name, versions, arguments},
#include "onnx/ort/operators.def"
#undef OT_ORT_OPERATOR
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(operators); i++) {
        int n_inputs = 0;

        for (const char *at = operators[i].arguments; (at = strpbrk(at, "= ")) != NULL; at++)
            if (at[1] == 'i')
                n_inputs = OT_MAX(n_inputs, atoi(at + 2) + 1);
        assert_int_equal(ot__ort_formal_inputs(&operators[i]), n_inputs);
    }
}

static void what_the_format_cannot_hold_is_refused(void **state)
{
    (void)state;
    assert_refused("<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 2]>"
                   "g (float[2] x) => (float[2] y) { y = acme.Op (x) }",
                   OT_ERR_UNSUPPORTED, "no kernel for acme.Op (opset 2)");
    assert_refused("<ir_version: 8, opset_import: [\"\" : 17]>"
                   "g (float[2] x) => (float[2] y) { y = HardSwish (x) }",
                   OT_ERR_UNSUPPORTED, "HardSwish of 'y': ONNX Runtime 1.19.2 has no kernel");
    assert_refused("<ir_version: 8, opset_import: [\"\" : 22]>"
                   "g (float[2] x) => (float[2] y) { y = Relu (x) }",
                   OT_ERR_UNSUPPORTED, "imports opset 22, .ort files are written up to 21");
    assert_refused("<ir_version: 8, opset_import: [\"\" : 17]>"
                   "g (optional(float[2]) x) => (float[2] y) { y = OptionalGetElement (x) }",
                   OT_ERR_UNSUPPORTED, "value 'x': is neither tensor nor sequence nor map");
}

static void saving_by_that_ending_writes_the_format(void **state)
{
    ot_model *model = model_of("<ir_version: 8, opset_import: [\"\" : 17]>"
                               "main (float[2] x) => (float[2] y) { y = Relu (x) }"),
             *again;

    (void)state;
    assert_int_equal(ot_model_save(model, in_folder("m.ort"), NULL), OT_OK);
    assert_int_equal(ot_model_load(in_folder("m.ort"), NULL, &again), OT_OK);
    assert_same_text(model, again);
    ot_model_destroy(again);
    ot_model_destroy(model);
}

static void failing_allocations_lose_nothing(void **state)
{
    ot_model *model = model_of(all_parts);
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    for (int64_t n = 0; st != OT_OK; n++) {
        ot__buf bytes = {0};

        assert_true(n < 5000);
        ot__alloc_fail_after(n);
        st = ot__ort_write(model, &bytes);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot__buf_deinit(&bytes);
    }
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_read_back_as_it_was),
        cmocka_unit_test(the_same_model_gives_the_same_bytes),
        cmocka_unit_test(types_that_the_model_does_not_state_are_inferred),
        cmocka_unit_test(constant_nodes_become_initializers),
        cmocka_unit_test(functions_are_put_in_where_they_are_called),
        cmocka_unit_test(operators_without_a_kernel_there_are_written_out),
        cmocka_unit_test(nodes_carry_what_small_readers_do_not_derive),
        cmocka_unit_test(every_operator_called_has_its_types_in_the_resolver),
        cmocka_unit_test(every_operator_of_the_table_can_be_written),
        cmocka_unit_test(what_the_format_cannot_hold_is_refused),
        cmocka_unit_test(saving_by_that_ending_writes_the_format),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
