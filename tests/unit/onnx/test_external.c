// SPDX-License-Identifier: Apache-2.0
#include "unit/onnx/folder.h"

static const float elements[] = {1, 2, 3, 4};

// A model whose constant w, float[4], is described by these entries.
static void write_model(const char *name, const char *entries)
{
    char text[512];

    snprintf(text, sizeof text,
             "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x) => (float[4] y)"
             " <float[4] w = [%s]> { y = Add (x, w) }",
             entries);
    write_file(name, text, strlen(text));
}

static void assert_refused(const char *entries, ot_status status, const char *part)
{
    ot_model *model;

    write_model("model.onnxtxt", entries);
    assert_int_equal(ot_model_load(in_folder("model.onnxtxt"), NULL, &model), status);
    assert_null(model);
    assert_message_has("model.onnxtxt: ");
    assert_message_has("tensor 'w'");
    assert_message_has(part);
}

static void assert_last_element(const char *entries, double expected)
{
    ot_model *model;

    write_model("model.onnxtxt", entries);
    if (ot_model_load(in_folder("model.onnxtxt"), NULL, &model) != OT_OK)
        fail_msg("%s", ot_error_message());
    assert_true(ot__tensor_get_f64(ot__graph_find(model->graph, "w")->constant, 3) == expected);
    ot_model_destroy(model);
}

static void elements_are_found_in_the_file_beside_the_model(void **state)
{
    char bytes[64] = {0};

    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_last_element("\"location\": \"w.bin\"", 4);
    memcpy(bytes + 21, elements, sizeof elements); // not aligned: copied
    write_file("w.bin", bytes, sizeof bytes);
    assert_last_element("\"location\": \"w.bin\", \"offset\": \"21\", \"length\": \"16\"", 4);
}

static void folders_below_the_models_are_fine(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    write_file("sub/w.bin", elements, sizeof elements);
    assert_last_element("\"location\": \"sub/w.bin\"", 4);
    assert_last_element("\"location\": \"./sub//w.bin\"", 4);
}

static void links_that_stay_in_the_folder_are_fine(void **state)
{
    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_int_equal(symlink("w.bin", in_folder("link.bin")), 0);
    assert_last_element("\"location\": \"link.bin\"", 4);
}

static void links_of_folders_and_upwards_are_followed_within_the_folder(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(mkdir(in_folder("sub/deep"), 0700), 0);
    write_file("w.bin", elements, sizeof elements);
    assert_int_equal(symlink("../../w.bin", in_folder("sub/deep/up.bin")), 0);
    assert_int_equal(symlink("sub/deep", in_folder("short")), 0);
    assert_int_equal(symlink("../short/./up.bin", in_folder("sub/round.bin")), 0);
    assert_last_element("\"location\": \"short/up.bin\"", 4);
    assert_last_element("\"location\": \"sub/round.bin\"", 4);
}

static void links_that_go_up_too_far_or_in_rings_are_refused(void **state)
{
    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_int_equal(mkdir(in_folder("sub"), 0700), 0);
    assert_int_equal(symlink("sub/../../w.bin", in_folder("out.bin")), 0);
    assert_int_equal(symlink("ring.bin", in_folder("ring.bin")), 0);
    assert_refused("\"location\": \"out.bin\"", OT_ERR_FORMAT,
                   "'out.bin' is a link that leaves the model's directory");
    assert_refused("\"location\": \"ring.bin\"", OT_ERR_IO, "'ring.bin' cannot be opened");
}

static void only_regular_files_hold_elements(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0); // without a writer: must not wait
    (void)mkdir(in_folder("sub"), 0700);
    write_file("file", elements, sizeof elements);
    assert_refused("\"location\": \"pipe\"", OT_ERR_IO,
                   "'pipe' is a device, pipe or socket, expected a regular file");
    assert_refused("\"location\": \"sub\"", OT_ERR_IO,
                   "'sub' is a directory, expected a regular file");
    assert_refused("\"location\": \"sub/.\"", OT_ERR_IO, "'sub/.' cannot be opened");
    assert_refused("\"location\": \"file/w.bin\"", OT_ERR_IO, "'file/w.bin' is not there");
}

static void no_descriptor_stays_open(void **state)
{
    const int before = dup(0);

    (void)state;
    close(before);
    elements_are_found_in_the_file_beside_the_model(state);
    folders_below_the_models_are_fine(state);
    only_regular_files_hold_elements(state);
    const int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

static void paths_that_leave_the_folder_are_refused(void **state)
{
    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_refused("\"location\": \"../w.bin\"", OT_ERR_FORMAT,
                   "'../w.bin' leaves the model's directory");
    assert_refused("\"location\": \"sub/../../w.bin\"", OT_ERR_FORMAT,
                   "leaves the model's directory");
    assert_refused("\"location\": \"..\"", OT_ERR_FORMAT, "leaves the model's directory");
    assert_refused("\"location\": \"/etc/passwd\"", OT_ERR_FORMAT, "leaves the model's directory");
    assert_refused("\"location\": \"\"", OT_ERR_FORMAT, "leaves the model's directory");
}

static void links_that_leave_the_folder_are_refused(void **state)
{
    (void)state;
    assert_int_equal(symlink("/etc/passwd", in_folder("link.bin")), 0);
    assert_refused("\"location\": \"link.bin\"", OT_ERR_FORMAT,
                   "'link.bin' is a link that leaves the model's directory");
    assert_int_equal(symlink("/etc", in_folder("sub")), 0);
    assert_refused("\"location\": \"sub/passwd\"", OT_ERR_FORMAT, "leaves the model's directory");
}

static void a_folder_whose_name_goes_on_is_outside(void **state)
{
    char sibling[256], target[300];

    (void)state;
    snprintf(sibling, sizeof sibling, "%s_more", folder);
    snprintf(target, sizeof target, "%s/w.bin", sibling);
    assert_int_equal(mkdir(sibling, 0700), 0);
    assert_int_equal(ot__file_write(target, elements, sizeof elements), OT_OK);
    assert_int_equal(symlink(target, in_folder("link.bin")), 0);
    assert_refused("\"location\": \"link.bin\"", OT_ERR_FORMAT, "leaves the model's directory");
    remove_all(sibling);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    assert_refused("\"location\": \"none.bin\"", OT_ERR_IO, "'none.bin' is not there");
    assert_refused("\"offset\": \"0\"", OT_ERR_FORMAT, "external data without a location");
}

static void ranges_past_the_end_are_refused(void **state)
{
    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_refused("\"location\": \"w.bin\", \"offset\": \"1\"", OT_ERR_FORMAT,
                   "external data ends at byte 1 + 16, but 'w.bin' has 16 bytes");
    assert_refused("\"location\": \"w.bin\", \"offset\": \"9223372036854775807\"", OT_ERR_FORMAT,
                   "but 'w.bin' has 16 bytes");
}

static void offsets_and_lengths_must_be_numbers_that_fit(void **state)
{
    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_refused("\"location\": \"w.bin\", \"offset\": \"-4\"", OT_ERR_FORMAT,
                   "offset of external data is '-4'");
    assert_refused("\"location\": \"w.bin\", \"offset\": \"4x\"", OT_ERR_FORMAT,
                   "offset of external data is '4x'");
    assert_refused("\"location\": \"w.bin\", \"length\": \"12\"", OT_ERR_FORMAT,
                   "external data has length 12, expected 16");
}

// The digits are those of sha1sum over the file.
static void a_checksum_is_compared_with_the_whole_file(void **state)
{
    char bytes[20] = "onnx";

    (void)state;
    memcpy(bytes + 4, elements, sizeof elements);
    write_file("w.bin", bytes, sizeof bytes);
    assert_last_element("\"location\": \"w.bin\", \"offset\": \"4\", \"checksum\": "
                        "\"f1f81d09c8e8107416f572c4744a919178f57949\"",
                        4);
    assert_refused("\"location\": \"w.bin\", \"offset\": \"4\", \"checksum\": \"1234\"",
                   OT_ERR_FORMAT, "is f1f81d09c8e8107416f572c4744a919178f57949, expected 1234");
}

static void files_of_several_names_are_refused(void **state)
{
    (void)state;
    write_file("other.bin", elements, sizeof elements);
    assert_int_equal(link(in_folder("other.bin"), in_folder("w.bin")), 0);
    assert_refused("\"location\": \"w.bin\"", OT_ERR_FORMAT,
                   "external data file 'w.bin' has 2 names (hard links)");
    assert_int_equal(unlink(in_folder("other.bin")), 0);
    assert_last_element("\"location\": \"w.bin\"", 4);
}

static ot_status load_two(const char *a, const char *b)
{
    char text[512];
    ot_model *model;
    ot_status st;

    snprintf(text, sizeof text,
             "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x) => (float[4] y)"
             " <float[4] a = [\"location\": \"w.bin\", \"offset\": \"%s\"],"
             " float[4] b = [\"location\": \"w.bin\", \"offset\": \"%s\"]>"
             " { s = Add (x, a) y = Add (s, b) }",
             a, b);
    write_file("model.onnxtxt", text, strlen(text));
    st = ot_model_load(in_folder("model.onnxtxt"), NULL, &model);
    ot_model_destroy(model);
    return st;
}

static void ranges_are_apart_or_the_same(void **state)
{
    char bytes[64] = {0};

    (void)state;
    write_file("w.bin", bytes, sizeof bytes);
    assert_int_equal(load_two("0", "16"), OT_OK);
    assert_int_equal(load_two("16", "16"), OT_OK); // one tensor under two names
    assert_int_equal(load_two("24", "16"), OT_ERR_FORMAT);
    assert_message_has("model.onnxtxt: external data file 'w.bin': 16 bytes from byte 16 on and 16 "
                       "from byte 24 overlap");
    assert_int_equal(load_two("31", "16"), OT_ERR_FORMAT);
    assert_int_equal(load_two("32", "16"), OT_OK);
}

static void a_model_in_memory_has_no_external_data(void **state)
{
    const char *text = "g (float[4] x) => (float[4] y) <float[4] w = [\"location\": \"w.bin\"]> { "
                       "y = Add (x, w) }";
    ot_model *model;

    (void)state;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), NULL, &model), OT_ERR_FORMAT);
    assert_message_has("of a model that was not read from a directory");
}

static void models_in_memory_find_them_in_the_folder_that_is_told(void **state)
{
    ot_model_options options = OT_MODEL_OPTIONS_INIT;
    const char *text = "<ir_version: 10, opset_import: [\"\" : 21]> g (float[4] x) => (float[4] y)"
                       " <float[4] w = [\"location\": \"w.bin\"]> { y = Add (x, w) }";
    ot_model *model;

    (void)state;
    write_file("w.bin", elements, sizeof elements);
    assert_int_equal(ot_model_load_buffer(text, strlen(text), &options, &model), OT_ERR_FORMAT);
    assert_null(model);
    options.directory = folder;
    assert_int_equal(ot_model_load_buffer(text, strlen(text), &options, &model), OT_OK);
    assert_true(ot__tensor_get_f64(ot__graph_find(model->graph, "w")->constant, 3) == 4);
    ot_model_destroy(model);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(elements_are_found_in_the_file_beside_the_model),
        TEST(folders_below_the_models_are_fine),
        TEST(links_that_stay_in_the_folder_are_fine),
        TEST(links_of_folders_and_upwards_are_followed_within_the_folder),
        TEST(links_that_go_up_too_far_or_in_rings_are_refused),
        TEST(only_regular_files_hold_elements),
        TEST(no_descriptor_stays_open),
        TEST(paths_that_leave_the_folder_are_refused),
        TEST(links_that_leave_the_folder_are_refused),
        TEST(a_folder_whose_name_goes_on_is_outside),
        TEST(a_missing_file_is_named),
        TEST(ranges_past_the_end_are_refused),
        TEST(offsets_and_lengths_must_be_numbers_that_fit),
        TEST(a_checksum_is_compared_with_the_whole_file),
        TEST(files_of_several_names_are_refused),
        TEST(ranges_are_apart_or_the_same),
        TEST(a_model_in_memory_has_no_external_data),
        TEST(models_in_memory_find_them_in_the_folder_that_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
