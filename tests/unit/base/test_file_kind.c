// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define BYTES(text) text, sizeof(text) - 1

// Beginnings as the formats' own descriptions state them.
static const struct {
    const char *bytes;
    size_t n_bytes;
    ot__file_kind kind;
    const char *text;
} files[] = {
    {BYTES("\x18\0\0\0ODTC\0\0"), OT_FILE_CHECKPOINT, "a checkpoint"},
    {BYTES("\x18\0\0\0ORTM\0\0"), OT_FILE_MODEL, "a model in .ort format"},
    {BYTES("\x18\0\0\0TFL3\0\0"), OT_FILE_OTHER, "a TensorFlow Lite model"},
    {BYTES("\x08\x08\x12\x07pytorch"), OT_FILE_MODEL, "an ONNX model"},
    {BYTES("<ir_version: 8, opset_import: [\"\" : 17]>"), OT_FILE_MODEL,
     "a model in ONNX's textual syntax"},
    {BYTES("\x93NUMPY\x01\0"), OT_FILE_DATA, "an .npy array"},
    {BYTES("PK\3\4\x14\0\0\0\0\0x.npy"), OT_FILE_DATA, "an .npz or other zip archive"},
    {BYTES("PK\3\4\0\0\x08\x08\0\0archive/data.pkl"), OT_FILE_OTHER, "a PyTorch file"},
    {BYTES("\x80\x02}q\0."), OT_FILE_OTHER, "a Python pickle"},
    {BYTES("\x1f\x8b\x08\0"), OT_FILE_DATA, "a gzip file"},
    {BYTES("\0\0\x08\x03\0\0\0\x01"), OT_FILE_DATA, "an IDX array"},
    {BYTES("\x89HDF\r\n\x1a\n"), OT_FILE_OTHER, "an HDF5 file"},
    {BYTES("\x12\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"}}"), OT_FILE_OTHER, "a safetensors file"},
    {BYTES("version https://git-lfs.github.com/spec/v1\n"), OT_FILE_OTHER,
     "a pointer of Git LFS, whose file `git lfs pull` fetches"},
    {BYTES("<!DOCTYPE html><html>"), OT_FILE_OTHER, "an HTML page"},
    {BYTES("a,b,c\n1,2,3\n"), OT_FILE_DATA, "a text"},
};

static void a_file_of_another_kind_is_named(void **state)
{
    static const char *const wanted[] = {[OT_FILE_MODEL] = "a model",
                                         [OT_FILE_CHECKPOINT] = "a checkpoint",
                                         [OT_FILE_DATA] = "data: .npz, .npy, CSV or IDX"};
    char message[200];

    (void)state;
    for (size_t i = 0; i < OT_COUNT(files); i++)
        for (ot__file_kind kind = OT_FILE_MODEL; kind <= OT_FILE_DATA; kind++) {
            const ot_status st =
                ot__file_kind_check(files[i].bytes, files[i].n_bytes, "path", kind);

            if (kind == files[i].kind) {
                assert_int_equal(st, OT_OK);
                continue;
            }
            snprintf(message, sizeof message, "path: is %s, not %s", files[i].text, wanted[kind]);
            assert_int_equal(st, OT_ERR_FORMAT);
            assert_string_equal(ot_error_message(), message);
        }
}

// Files are mapped: nothing beyond their end may be read, which the sanitizers see.
static void the_beginning_of_any_length_is_enough(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(files); i++)
        for (size_t n = 0; n <= files[i].n_bytes; n++) {
            uint8_t *copy = malloc(n + (n == 0));

            assert_non_null(copy);
            memcpy(copy, files[i].bytes, n);
            (void)ot__file_kind_check(copy, n, "path", OT_FILE_MODEL);
            free(copy);
        }
}

static void what_is_not_known_is_left_to_its_reader(void **state)
{
    static const char bytes[] = {'\x7e', '\x01', '\x02', '\x03', '\0', '\x05', '\x06', '\x07'};

    (void)state;
    assert_int_equal(ot__file_kind_check(bytes, sizeof bytes, "path", OT_FILE_MODEL), OT_OK);
    assert_int_equal(ot__file_kind_check(bytes, sizeof bytes, "path", OT_FILE_DATA), OT_OK);
    assert_int_equal(ot__file_kind_check(NULL, 0, "path", OT_FILE_MODEL), OT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_another_kind_is_named),
        cmocka_unit_test(the_beginning_of_any_length_is_enough),
        cmocka_unit_test(what_is_not_known_is_left_to_its_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
