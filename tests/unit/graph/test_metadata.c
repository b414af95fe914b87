// SPDX-License-Identifier: Apache-2.0
#include "unit/graph/model_text.h"

static ot_model *described(void)
{
    return model_of(
        "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"maker\", producer_version: "
        "\"1.2\", domain: \"a.b\", model_version: 7, doc_string: \"about\", metadata_props: "
        "[\"k\": \"v\", \"empty\": \"\"]>\n"
        "net (float[2] x) => (float[2] y) { y = Relu(x) }");
}

static void a_model_says_what_its_file_says(void **state)
{
    ot_model *model = described();

    (void)state;
    assert_string_equal(ot_model_text(model, OT_MODEL_PRODUCER_NAME), "maker");
    assert_string_equal(ot_model_text(model, OT_MODEL_PRODUCER_VERSION), "1.2");
    assert_string_equal(ot_model_text(model, OT_MODEL_DOMAIN), "a.b");
    assert_string_equal(ot_model_text(model, OT_MODEL_DESCRIPTION), "about");
    assert_string_equal(ot_model_text(model, OT_MODEL_GRAPH_NAME), "net");
    assert_string_equal(ot_model_text(model, OT_MODEL_GRAPH_DESCRIPTION), "");
    assert_string_equal(ot_model_text(model, (ot_model_field)99), "");
    assert_int_equal(ot_model_version(model), 7);
    ot_model_destroy(model);
}

static void metadata_is_listed_in_its_order(void **state)
{
    ot_model *model = described();

    (void)state;
    assert_int_equal(ot_model_metadata_count(model), 2);
    assert_string_equal(ot_model_metadata_key(model, 0), "k");
    assert_string_equal(ot_model_metadata_key(model, 1), "empty");
    assert_null(ot_model_metadata_key(model, 2));
    assert_null(ot_model_metadata_key(model, -1));
    assert_null(ot_model_metadata(model, "other"));
    ot_model_destroy(model);
}

static void a_key_that_is_there_is_replaced(void **state)
{
    ot_model *model = described();

    (void)state;
    assert_int_equal(ot_model_set_metadata(model, "k", "w"), OT_OK);
    assert_int_equal(ot_model_set_metadata(model, "new", "one"), OT_OK);
    assert_int_equal(ot_model_metadata_count(model), 3);
    assert_string_equal(ot_model_metadata(model, "k"), "w");
    assert_string_equal(ot_model_metadata(model, "new"), "one");
    ot_model_destroy(model);
}

// A list that two models share is not changed under the other's hands.
static void a_clone_has_metadata_of_its_own(void **state)
{
    ot_model *model = described(), *clone;

    (void)state;
    assert_int_equal(ot__model_clone(model, &clone), OT_OK);
    assert_int_equal(ot_model_set_metadata(clone, "k", "other"), OT_OK);
    assert_int_equal(ot__model_drop_metadata(clone, "empty"), OT_OK);
    assert_string_equal(ot_model_metadata(clone, "k"), "other");
    ot_model_destroy(clone);
    assert_string_equal(ot_model_metadata(model, "k"), "v");
    assert_string_equal(ot_model_metadata(model, "empty"), "");
    ot_model_destroy(model);
}

static void an_entry_is_removed(void **state)
{
    ot_model *model = described();

    (void)state;
    assert_int_equal(ot__model_drop_metadata(model, "none"), OT_OK);
    assert_int_equal(ot_model_metadata_count(model), 2);
    assert_int_equal(ot__model_drop_metadata(model, "k"), OT_OK);
    assert_int_equal(ot_model_metadata_count(model), 1);
    assert_string_equal(ot_model_metadata_key(model, 0), "empty");
    ot_model_destroy(model);
}

// Of a file that has a key many times, each entry has fields of its own.
static void all_entries_of_a_key_are_removed_at_once(void **state)
{
    enum { MANY = 10000 };
    static const char *pairs[2 * MANY];
    static ot__bytes extra[MANY - 1];
    ot_model *model = described();
    size_t before;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        pairs[2 * i] = i % 100 == 7 ? "kept" : "k";
        pairs[2 * i + 1] = "";
        if (i < MANY - 1)
            extra[i].size = i;
    }
    model->metadata = pairs;
    model->n_metadata = MANY;
    model->metadata_extra = extra;
    model->n_metadata_extra = MANY - 1;
    before = ot__arena_bytes(model->arena);
    assert_int_equal(ot__model_drop_metadata(model, "k"), OT_OK);
    assert_in_range(ot__arena_bytes(model->arena) - before, 0, 4 * MANY * sizeof *pairs + 4096);
    assert_int_equal(ot_model_metadata_count(model), MANY / 100);
    assert_int_equal(model->n_metadata_extra, MANY / 100);
    assert_string_equal(ot_model_metadata_key(model, 1), "kept");
    assert_int_equal(model->metadata_extra[1].size, 107);
    assert_string_equal(pairs[0], "k"); // others may share the list
    ot_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_says_what_its_file_says),
        cmocka_unit_test(metadata_is_listed_in_its_order),
        cmocka_unit_test(a_key_that_is_there_is_replaced),
        cmocka_unit_test(a_clone_has_metadata_of_its_own),
        cmocka_unit_test(an_entry_is_removed),
        cmocka_unit_test(all_entries_of_a_key_are_removed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
