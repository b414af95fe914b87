// SPDX-License-Identifier: Apache-2.0
// What a file of PyTorch's newer exporter calls a buffer, and how far that word holds.
#include "artifacts/artifacts.h"
#include "artifacts/explain/origins.h"
#include "evaluate.h"

#define KIND "pkg.torch.export.graph_signature.InputSpec.kind"
#define SIGNATURE "pkg.torch.export.ExportedProgram.graph_signature"
#define FOLDED "pkg.onnxscript.optimizer.folded_from"
#define SCOPES "pkg.torch.onnx.name_scopes"

enum { MAX_WORDS = 8 };
static const char *words[MAX_WORDS][2];
static int n_words;

static ot__metadata said(const char *key, const char *text)
{
    assert_in_range(n_words, 0, MAX_WORDS - 1);
    words[n_words][0] = key;
    words[n_words][1] = text;
    return (ot__metadata){words[n_words++], 1};
}

// 'a.m' is read by Mul and, unless norm_scopes is NULL, by LayerNormalization as its scale.
static ot_model *model_of(const char *mul_scopes, const char *norm_scopes)
{
    char text[512];
    ot_model *model;

    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17]>\n"
             "g (float[2, 2] x) => (float[2, 2] y)\n"
             "<float[2, 2] w = {1, 2, 3, 4}, float[2] \"a.m\" = {1, 1}>\n"
             "{ q = MatMul(x, w) [mul] p = Mul(q, \"a.m\") [norm] y = %s }",
             norm_scopes ? "LayerNormalization(p, \"a.m\")" : "Relu(p)");
    model = read_text(text);
    n_words = 0;
    if (mul_scopes)
        model->graph->nodes[1]->metadata = said(SCOPES, mul_scopes);
    if (norm_scopes)
        model->graph->nodes[2]->metadata = said(SCOPES, norm_scopes);
    return model;
}

// Frees the model.
static void assert_held(ot_model *model, const char *reason)
{
    ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
    ot_report *report;
    const ot_parameter_report *row;

    options.prepare = OT_PREPARE_NONE; // else readers elsewhere have a tensor of their own
    assert_ok(ot_report_create(model, &options, &report));
    row = ot_report_parameter(report, 1);
    assert_string_equal(row->name, "a.m");
    if (row->frozen != (reason != NULL))
        fail_msg("%s: %s", words[0][1], row->reason);
    assert_int_equal(row->trainable, reason == NULL);
    if (reason)
        assert_string_equal(row->reason, reason);
    ot_report_destroy(report);
    ot_model_destroy(model);
}

static ot_value *buffer_of(ot_model *model)
{
    return ot__graph_find(model->graph, "a.m");
}

static const char plain[] = "a buffer of the exported module";

static void the_word_holds_where_the_buffers_module_reads_it(void **state)
{
    static const struct {
        const char *mul, *norm, *reason;
    } cases[] = {
        {"['', 'a', 'mul']", "['', 'a', 'norm']", plain},
        {NULL, NULL, plain},
        {"['', 'a', 'a.b', 'mul']", NULL, plain},                  // handed on
        {"['', 'a', 'mul']", "['', 'a', 'a.norm', 'norm']", NULL}, // a scale of a module within
        {"['', 'c', 'mul']", NULL, NULL}, // all ones: merged with something of 'c'
        {"['', 'mul']", "['', 'a', 'norm']", NULL},
        {"['', 'a', 'mul']", "['', 'c', 'norm']", NULL},
        {"['', 'aa', 'mul']", "['', 'a', 'norm']", NULL},
        {"[", "['', 'a'", NULL},
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model = model_of(cases[i].mul, cases[i].norm);

        buffer_of(model)->metadata = said(KIND, "BUFFER");
        assert_held(model, cases[i].reason);
    }
}

static void the_signature_and_what_was_folded_tell_too(void **state)
{
    static const char signature[] = "\n# inputs\np_w: PARAMETER target='w'\n"
                                    "b_m: BUFFER target='a.m' persistent=True\n"
                                    "b_pe: BUFFER target=\"a.pe\" persistent=False\n"
                                    "c_two: CONSTANT_TENSOR target='two'\nx: USER_INPUT\n: BUFFER\n"
                                    "b: BUFFER target=\nb: BUFFER target='\n";
    static const struct {
        const char *folded, *reason;
    } cases[] = {
        {NULL, plain}, {"['a.pe', 'val_3']", plain}, // its own name goes before
    };
    static const struct {
        const char *folded, *reason;
    } others[] = {
        {"['a.pe', 'val_3']", "made of 'a.pe', a buffer of the exported module"},
        {"['val_1', 'two']", "made of 'two', a buffer of the exported module"},
        {"['a.pe', 'w']", NULL},
        {"['w', 'a.pe']", NULL},
        {"['val_1']", "made of no parameter of the exported module"},
        {"[]", "made of no parameter of the exported module"},
        {"['a.pe'", NULL}, // no list: it says nothing
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model = model_of(NULL, NULL);

        model->graph->metadata = said(SIGNATURE, signature);
        if (cases[i].folded)
            buffer_of(model)->metadata = said(FOLDED, cases[i].folded);
        assert_held(model, cases[i].reason);
    }
    for (size_t i = 0; i < OT_COUNT(others); i++) {
        ot_model *model = model_of(NULL, NULL);

        // The signature knows 'a.m' no more.
        model->graph->metadata = said(SIGNATURE, strstr(signature, "b_pe"));
        if (i == 2 || i == 3)
            model->graph->metadata = said(SIGNATURE, "p: PARAMETER target='w'\n"
                                                     "b: BUFFER target='a.pe'");
        buffer_of(model)->metadata = said(FOLDED, others[i].folded);
        assert_held(model, others[i].reason);
    }
}

// Elements that differ are no other tensor's initial values: the buffer itself was handed on.
static void what_cannot_have_been_merged_is_a_buffer_anywhere(void **state)
{
    static const struct {
        const char *mul, *norm, *reason;
    } cases[] = {
        {"['', 'c', 'mul']", NULL, plain},
        {"['', 'a', 'mul']", "['', 'c', 'norm']", NULL}, // as a scale
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model = model_of(cases[i].mul, cases[i].norm);

        ((float *)buffer_of(model)->constant->data)[0] = 2;
        buffer_of(model)->metadata = said(KIND, "BUFFER");
        assert_held(model, cases[i].reason);
    }
}

// An attention mask of zeros is no parameter; as a LayerNormalization's scale it may be one.
static void what_is_computed_from_nothing_of_the_module_is_frozen(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const bool has_role = i & 1, is_uniform = i & 2;
        ot_model *model = model_of(NULL, has_role ? "['', 'a', 'norm']" : NULL);

        ((float *)buffer_of(model)->constant->data)[0] = is_uniform ? 1 : 2;
        model->graph->metadata = said(SIGNATURE, "p: PARAMETER target='w'");
        buffer_of(model)->metadata = said(FOLDED, "['arange', 'val_1']");
        assert_held(model,
                    has_role && is_uniform ? NULL : "made of no parameter of the exported module");
    }
    // Without a signature nobody knows.
    {
        ot_model *model = model_of(NULL, NULL);

        buffer_of(model)->metadata = said(FOLDED, "['arange', 'val_1']");
        assert_held(model, NULL);
    }
}

static void a_parameter_by_its_file_is_no_mask(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        ot_model *model = read_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                    "g (float[2, 2] x) => (float[2, 2] y)\n"
                                    "<float[2, 2] w = {1, 2, 3, 4}, float[2] \"a.m\" = {0, -1e9}>\n"
                                    "{ q = MatMul(x, w) s = Add(q, \"a.m\") y = Softmax(s) }");

        n_words = 0;
        buffer_of(model)->metadata = said(KIND, i == 0 ? "BUFFER" : "PARAMETER");
        assert_held(model, i == 0 ? "a mask of Softmax of 'y'" : NULL);
    }
}

static void a_parameter_by_its_file_is_not_noted(void **state)
{
    ot_report *report;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ot_model *model = read_text(
            "<ir_version: 8, opset_import: [\"\" : 17]>\n"
            "g (float[N, 2] x) => (float[N, 2] y) <float[2] m = {1, 2}> { y = Mul(x, m) }");
        n_words = 0;
        if (i == 1)
            ot__graph_find(model->graph, "m")->metadata = said(KIND, "PARAMETER");
        assert_ok(ot_report_create(model, NULL, &report));
        assert_int_equal(ot_report_note_count(report), 1 - i);
        assert_int_equal(ot_report_parameter(report, 0)->trainable, 1);
        ot_report_destroy(report);
        ot_model_destroy(model);
    }
}

// A number is one of the code, unless the file calls it a parameter. What is computed from a
// parameter is a number again: a penalty on weights must not train.
static void scalars_train_where_the_file_calls_them_parameters(void **state)
{
    static const char unsure[] = "'s', a scalar, stays as it is; train it if it is a parameter "
                                 "(--train, trainable=)",
                      computed[] =
                          "'s', a scalar, is what an exporter computed from parameters, which get "
                          "no gradient through it; to train them by it, too, export with "
                          "torch.onnx.export(model.train(), ..., optimize=False)";
    static const struct {
        const char *key, *text, *signature;
        int trains;
        const char *note;
    } cases[] = {
        {KIND, "PARAMETER", NULL, 1, NULL},
        {KIND, "BUFFER", NULL, 0, NULL},
        {FOLDED, "['w']", "p: PARAMETER target='w'", 0, computed},
        {FOLDED, "['x']", "p: PARAMETER target='w'", 0, NULL},
        {FOLDED, "['w']", NULL, 0, unsure},
        {SIGNATURE, "", "p: PARAMETER target='s'", 1, NULL},
        {SIGNATURE, "", "p: PARAMETER target='w'", 0, NULL},
        {SIGNATURE, "", NULL, 0, unsure}, // of the classic exporter
    };

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot_model *model = read_text(
            "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"pytorch\">\n"
            "g (float[N, 2] x) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}, float s = {2}>\n"
            "{ q = MatMul(x, w) y = Mul(q, s) }");
        ot_report *report;

        n_words = 0;
        ot__graph_find(model->graph, "s")->metadata = said(cases[i].key, cases[i].text);
        if (cases[i].signature)
            model->graph->metadata = said(SIGNATURE, cases[i].signature);
        assert_ok(ot_report_create(model, NULL, &report));
        if (ot_report_parameter(report, 1)->trainable != cases[i].trains)
            fail_msg("case %zu: %s", i, ot_report_parameter(report, 1)->reason);
        assert_int_equal(ot_report_note_count(report), cases[i].note != NULL);
        if (cases[i].note)
            assert_string_equal(ot_report_note(report, 0), cases[i].note);
        ot_report_destroy(report);
        ot_model_destroy(model);
    }
}

// A node may read parameters in very many places.
static void a_path_of_modules_is_parsed_once(void **state)
{
    ot_model *model = model_of("['', 'a', 'mul']", NULL);
    const ot_node *mul = model->graph->nodes[1];
    ot__origins origins;
    ot__nearness place;
    size_t n_bytes = 0;

    (void)state;
    assert_ok(ot__origins_init(&origins, model->graph));
    for (int i = 0; i < 100000; i++) {
        assert_ok(ot__origins_place(&origins, mul, i & 1 ? "a.m" : "b.m", &place));
        assert_int_equal(place, i & 1 ? OT_PLACE_OWN : OT_PLACE_ELSEWHERE);
        if (i == 0)
            n_bytes = ot__arena_bytes(model->arena);
    }
    assert_int_equal(ot__arena_bytes(model->arena), n_bytes);
    ot__origins_deinit(&origins);
    ot_model_destroy(model);
}

static void longer_paths_say_nothing(void **state)
{
    ot_model *model = model_of("['', 'a', 'mul']", NULL);
    char text[5000] = "['', 'a', '";
    ot__origins origins;
    ot__nearness place;

    (void)state;
    memset(text + strlen(text), 'm', sizeof text - 3 - strlen(text));
    memcpy(text + sizeof text - 3, "']", 3);
    model->graph->nodes[1]->metadata = said(SCOPES, text);
    assert_ok(ot__origins_init(&origins, model->graph));
    assert_ok(ot__origins_place(&origins, model->graph->nodes[1], "b.m", &place));
    assert_int_equal(place, OT_PLACE_OWN);
    ot__origins_deinit(&origins);
    ot_model_destroy(model);
}

static void notes_are_no_more_than_one_can_read(void **state)
{
    enum { N = 40 };
    const char *notes[33];
    ot__buf text = {0};
    int n = 0;
    ot_report *report;
    ot_model *model;

    (void)state;
    ot__buf_text(&text,
                 "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1, 1] x) => (float s)\n<");
    for (int i = 1; i <= N; i++) {
        ot__buf_printf(&text, "%sfloat[%d] m%d = {1", i > 1 ? ", " : "", i, i);
        for (int k = 1; k < i; k++)
            ot__buf_text(&text, ", 2");
        ot__buf_text(&text, "}");
    }
    ot__buf_text(&text, "> { s0 = ReduceSum<keepdims = 0>(x)");
    for (int i = 1; i <= N; i++)
        ot__buf_printf(&text,
                       " a%d = Mul(x, m%d) r%d = ReduceSum<keepdims = 0>(a%d) s%d = Add(s%d, r%d)",
                       i, i, i, i, i, i - 1, i);
    ot__buf_printf(&text, " s = Identity(s%d) }", N);
    assert_ok(ot__buf_status(&text));
    model = read_text(text.data);
    assert_ok(ot_report_create(model, NULL, &report));
    for (int i = 0; i < ot_report_note_count(report); i++)
        if (strstr(ot_report_note(report, i), " as operand") ||
            strstr(ot_report_note(report, i), " as an operand"))
            notes[n++ % 33] = ot_report_note(report, i);
    assert_int_equal(n, 33);
    assert_non_null(strstr(notes[0], "'m1', f32[1]"));
    assert_non_null(strstr(notes[31], "'m32', f32[32] from 1 to 2, trains"));
    assert_string_equal(notes[32], "8 more groups of tensors train as operands");
    ot_report_destroy(report);
    ot_model_destroy(model);
    ot__buf_deinit(&text);
}

static void failing_allocations_lose_nothing(void **state)
{
    ot_status st = OT_ERR_NO_MEMORY;
    ot_model *model = model_of("['', 'a', 'mul']", "['', 'a', 'norm']");
    ot_report *report = NULL;

    (void)state;
    model->graph->metadata = said(SIGNATURE, "b_pe: BUFFER target='a.pe'");
    buffer_of(model)->metadata = said(FOLDED, "['a.pe']");
    for (int64_t n = 0; st != OT_OK; n++) {
        ot__alloc_fail_after(n);
        st = ot_report_create(model, NULL, &report);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        assert_int_equal(st == OT_OK, report != NULL);
    }
    ot_report_destroy(report);
    assert_held(model, "made of 'a.pe', a buffer of the exported module");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_word_holds_where_the_buffers_module_reads_it),
        cmocka_unit_test(the_signature_and_what_was_folded_tell_too),
        cmocka_unit_test(what_cannot_have_been_merged_is_a_buffer_anywhere),
        cmocka_unit_test(what_is_computed_from_nothing_of_the_module_is_frozen),
        cmocka_unit_test(a_parameter_by_its_file_is_no_mask),
        cmocka_unit_test(a_parameter_by_its_file_is_not_noted),
        cmocka_unit_test(scalars_train_where_the_file_calls_them_parameters),
        cmocka_unit_test(a_path_of_modules_is_parsed_once),
        cmocka_unit_test(longer_paths_say_nothing),
        cmocka_unit_test(notes_are_no_more_than_one_can_read),
        cmocka_unit_test(failing_allocations_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
