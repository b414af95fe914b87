// SPDX-License-Identifier: Apache-2.0
// Files of the safetensors package, read and written; and what it, and this reader, refuses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "safetensors_recorded.h"
#include "shards/shards.h"

static void read_good(const void *bytes, size_t n_bytes, ot__safetensors *file)
{
    if (ot__safetensors_read(bytes, n_bytes, file) != OT_OK)
        fail_msg("%s", ot_error_message());
}

// ---- what is refused ----

static const struct {
    const char *name, *message; // NULL: accepted
    bool is_stricter;           // than the package
} verdicts[] = {
    {"empty", "has 0 bytes, fewer than a header's length", false},
    {"seven bytes", "has 7 bytes, fewer", false},
    {"no header", "header: byte 0: ends, expected '{'", false},
    {"header too large", "its header has 100000001 bytes, expected at most 100000000", false},
    {"header larger than the file", "its header has 3 bytes, but the file ends after 2", false},
    {"largest length", "its header has 18446744073709551615 bytes", false},
    {"not UTF-8", "header: byte 0 is not UTF-8", false},
    {"half a character", "header: byte 2 is not UTF-8", false},
    {"an open brace", "header: byte 1: ends, expected '\"'", false},
    {"no object", "header: byte 0: '[', expected '{'", false},
    {"a name without value", "header: byte 4: '}', expected ':'", false},
    {"nothing", NULL, false},
    {"white space before", NULL, false},
    {"white space after", NULL, false},
    {"something after", "header: byte 2: 'x', expected the end", false},
    {"form feed after", "expected the end", false},
    {"one byte missing", "has 65 bytes, its tensors end at 66", false},
    {"one byte too many", "has 67 bytes, its tensors end at 66", false},
    {"trailing byte without tensors", "has 11 bytes, its tensors end at 10", false},
    {"starts at 1", "tensor 'a': its bytes are 1 to 2, expected to begin at 0", false},
    {"hole", "tensor 'b': its bytes are 2 to 4, expected to begin at 1", false},
    {"overlap", "tensor 'b': its bytes are 2 to 4, expected to begin at 3", false},
    {"same range", "tensor 'b': its bytes are 0 to 4, expected to begin at 4", false},
    {"end before begin", "tensor 'a': its bytes are 4 to 0", false},
    {"shape larger than the bytes", "tensor 'a': has 4 bytes, its shape and type 16", false},
    {"shape smaller than the bytes", "tensor 'a': has 8 bytes, its shape and type 4", false},
    {"huge extent", "a number above 281474976710656", false},
    {"number above 2^64", "a number above 281474976710656", false},
    {"number above 2^48", "a number above 281474976710656", true},
    {"product overflows", "tensor 'a': the size of F32 [1099511627776,1099511627776] overflows",
     false},
    {"bytes overflow", "tensor 'a': the size of F32 [1099511627776,2097152] overflows", false},
    {"no elements", NULL, false},
    {"scalar", NULL, false},
    {"half bytes", NULL, false},
    {"odd half bytes", "tensor 'a': 7 elements of F4 end within a byte", false},
    {"six bits", NULL, false},
    {"odd six bits", "tensor 'a': 3 elements of F6_E3M2 end within a byte", false},
    {"duplicate name", "tensor 'a' is there twice", true},
    {"duplicate name, escaped", "tensor 'a' is there twice", true},
    {"duplicate dtype", "dtype is there twice", false},
    {"duplicate metadata", "__metadata__ is there twice", false},
    {"duplicate text", "'a' is there twice", true},
    {"unknown field", NULL, false},
    {"no dtype", "no dtype", false},
    {"no shape", "no shape", false},
    {"no offsets", "no data_offsets", false},
    {"one offset", "data_offsets has 1 numbers, expected 2", false},
    {"three offsets", "data_offsets has more than 2 numbers", false},
    {"negative extent", "expected a whole number from 0 on", false},
    {"negative zero", "expected a whole number from 0 on", false},
    {"fraction", "expected a whole number from 0 on", false},
    {"exponent", "expected a whole number from 0 on", false},
    {"leading zero", "expected a whole number from 0 on", false},
    {"number as text", "expected a whole number from 0 on", false},
    {"trailing comma", "expected a whole number from 0 on", false},
    {"metadata with a number", "__metadata__: byte 21: '1', expected '\"'", false},
    {"metadata is a list", "__metadata__: byte 16: '[', expected '{'", false},
    {"metadata with null", "'n', expected '\"'", false},
    {"metadata alone", NULL, false},
    {"unknown dtype", "tensor 'a': byte 19: unknown dtype 'F33'", false},
    {"dtype in lower case", "unknown dtype 'f32'", false},
    {"NUL in a name", "a NUL in a string", true},
    {"unknown escape", "an escape that JSON does not have", false},
    {"high surrogate alone", "half of a surrogate pair", false},
    {"low surrogate alone", "half of a surrogate pair", false},
    {"surrogate pair", NULL, false},
    {"control character in a name", "a control character in a string", false},
    {"string that ends with the header", "ends within a string", false},
    {"seventeen axes", "more than 16 axes", true},
};

// In memory of its own, so that a read past its end shows.
static void *copy_of(const char *bytes, size_t n_bytes)
{
    void *copy = malloc(n_bytes + (n_bytes == 0));

    memcpy(copy, bytes, n_bytes);
    return copy;
}

static void every_malformed_file_is_refused_with_its_own_message(void **state)
{
    (void)state;
    assert_int_equal(OT_COUNT(verdicts), OT_COUNT(judged));
    for (size_t i = 0; i < OT_COUNT(verdicts); i++) {
        const bool accepts = verdicts[i].message == NULL;
        void *bytes = copy_of(judged[i].bytes, judged[i].n_bytes);
        ot__safetensors file;
        ot_status st;

        assert_string_equal(verdicts[i].name, judged[i].name);
        ot__error_clear();
        st = ot__safetensors_read(bytes, judged[i].n_bytes, &file);
        if (st != (accepts ? OT_OK : OT_ERR_FORMAT) ||
            (!accepts && strstr(ot_error_message(), verdicts[i].message) == NULL))
            fail_msg("%s: %s '%s', expected '%s'", judged[i].name, ot_status_name(st),
                     ot_error_message(), accepts ? "" : verdicts[i].message);
        assert_int_equal(judged[i].is_accepted, accepts || verdicts[i].is_stricter);
        ot__safetensors_deinit(&file);
        free(bytes);
    }
}

static void a_length_that_the_file_does_not_have_takes_no_memory(void **state)
{
    static const char lies[][10] = {"\xff\xff\xff\xff\xff\xff\xff\xff{}",
                                    "\x00\xe1\xf5\x05\x00\x00\x00\x00{}"};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(lies); i++) {
        const int64_t before = ot__alloc_count();
        ot__safetensors file;

        assert_int_equal(ot__safetensors_read(lies[i], sizeof lies[i], &file), OT_ERR_FORMAT);
        assert_int_equal(ot__alloc_count(), before);
    }
}

// ---- what the package writes ----

static const ot__safetensor *expect_tensor(const ot__safetensors *file, const char *name,
                                           ot_dtype dtype, const ot_shape *shape)
{
    const ot__safetensor *t = ot__safetensors_find(file, name);

    assert_non_null(t);
    assert_string_equal(t->name, name);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->ndim, shape->ndim);
    assert_memory_equal(t->dims, shape->dim, (size_t)t->ndim * sizeof *t->dims);
    return t;
}

static void tensors_and_texts_are_those_that_were_written(void **state)
{
    const float values[] = {1, 2, 3, 4};
    const uint16_t halves[] = {0x3c00, 0x4000, 0x4200};
    const ot__safetensor *t;
    ot__safetensors file;

    (void)state;
    assert_int_equal(written[0].n_bytes, 174);
    assert_int_equal(ot__crc32c(0, written[0].bytes, 174), 0x404deb75);
    read_good(written[0].bytes, written[0].n_bytes, &file);
    assert_int_equal(file.n_tensors, 2);
    assert_int_equal(file.data_start, 152);
    assert_ptr_equal(file.data, written[0].bytes + 152);
    t = expect_tensor(&file, "w", OT_F32, &OT_SHAPE(2, 2));
    assert_memory_equal(file.data + t->begin, values, sizeof values);
    t = expect_tensor(&file, "b", OT_F16, &OT_SHAPE(3));
    assert_memory_equal(file.data + t->begin, halves, sizeof halves);
    assert_null(ot__safetensors_find(&file, "c"));
    assert_int_equal(file.n_texts, 1);
    assert_string_equal(file.texts[0].name, "format");
    assert_string_equal(file.texts[0].text, "pt");
    ot__safetensors_deinit(&file);
    ot__safetensors_deinit(&file);
}

// Of record_safetensors.py: byte j of tensor k of type i is 7 i + 3 k + j.
static void all_types_scalars_and_empty_tensors_are_read(void **state)
{
    static const ot_dtype types[] = {OT_BOOL, OT_U8,  OT_I8,   OT_F8E5M2, OT_F8E4M3FN, OT_I16,
                                     OT_U16,  OT_F16, OT_BF16, OT_I32,    OT_U32,      OT_F32,
                                     OT_C64,  OT_F64, OT_I64,  OT_U64};
    const ot_shape shapes[] = {OT_SHAPE_SCALAR, OT_SHAPE(3), OT_SHAPE(2, 0), OT_SHAPE(1, 2, 2)};
    ot__safetensors file;

    (void)state;
    read_good(written[1].bytes, written[1].n_bytes, &file);
    assert_int_equal(file.n_tensors, OT_COUNT(types) * OT_COUNT(shapes));
    for (size_t i = 0; i < OT_COUNT(types); i++)
        for (size_t k = 0; k < OT_COUNT(shapes); k++) {
            const ot__safetensor *t;
            int64_t count;
            char name[16];

            snprintf(name, sizeof name, "%c.%d.%d", "zyx"[k % 3], (int)i, (int)k);
            t = expect_tensor(&file, name, types[i], &shapes[k]);
            assert_true(ot__shape_count(&shapes[k], &count));
            assert_int_equal(t->end - t->begin, (size_t)count * ot_dtype_size(types[i]));
            for (size_t j = 0; j < t->end - t->begin; j++)
                assert_int_equal(file.data[t->begin + j], (7 * i + 3 * k + j) % 256);
        }
    ot__safetensors_deinit(&file);
}

// ---- what is written here ----

// The tensors of a file in another order, without their places.
static ot__safetensor *shuffled(const ot__safetensors *file)
{
    ot__safetensor *tensors = malloc(((size_t)file->n_tensors + 1) * sizeof *tensors);

    for (int i = 0; i < file->n_tensors; i++) {
        tensors[i] = file->tensors[file->n_tensors - 1 - i];
        tensors[i].begin = tensors[i].end = 0;
    }
    return tensors;
}

static void headers_are_those_of_the_package_byte_by_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(written); i++) {
        ot__safetensors file;
        ot__safetensor *tensors;
        ot__buf out = {0};

        read_good(written[i].bytes, written[i].n_bytes, &file);
        tensors = shuffled(&file);
        assert_int_equal(ot__safetensors_place(tensors, file.n_tensors), OT_OK);
        assert_int_equal(ot__safetensors_header(tensors, file.n_tensors, file.texts, file.n_texts,
                                                OT_SAFETENSORS_ALIGNMENT, &out),
                         OT_OK);
        assert_int_equal(out.length, file.data_start);
        assert_memory_equal(out.data, written[i].bytes, out.length);
        for (int k = 0; k < file.n_tensors; k++)
            assert_int_equal(tensors[k].begin, file.tensors[k].begin);
        ot__buf_deinit(&out);
        free(tensors);
        ot__safetensors_deinit(&file);
    }
}

static void data_can_begin_at_a_page(void **state)
{
    const int64_t dims[] = {3};
    ot__safetensor tensors[] = {{"a", OT_F16, 1, dims, 0, 0}};
    const ot__safetensors_text texts[] = {{"b", "x\"\n"}, {"a", "y"}};
    ot__safetensors file;
    ot__buf out = {0};

    (void)state;
    assert_int_equal(ot__safetensors_place(tensors, 1), OT_OK);
    assert_int_equal(ot__safetensors_header(tensors, 1, texts, 2, 4096, &out), OT_OK);
    assert_int_equal(out.length, 4096);
    ot__buf_append(&out, "123456", 6);
    read_good(out.data, out.length, &file);
    assert_int_equal(file.data_start, 4096);
    assert_string_equal(file.texts[0].text, "x\"\n"); // in the order in which they were given
    assert_string_equal(file.texts[1].name, "a");
    ot__safetensors_deinit(&file);
    ot__buf_deinit(&out);
}

static void what_cannot_be_written_is_refused(void **state)
{
    const int64_t dims[] = {3}, large[] = {INT64_MAX / 2};
    static const struct {
        const char *names[2];
        ot_dtype dtype;
        ot_status status;
        const char *message;
    } cases[] = {
        {{"a", "a"}, OT_F32, OT_ERR_INVALID, "tensor 'a' is there twice"},
        {{"a", "b\xff"}, OT_F32, OT_ERR_INVALID, "is not UTF-8"},
        {{"a", "__metadata__"}, OT_F32, OT_ERR_INVALID, "cannot have the name '__metadata__'"},
        {{"a", "b"}, OT_C128, OT_ERR_UNSUPPORTED, "safetensors files have no type c128"},
        {{"a", "b"}, OT_STRING, OT_ERR_UNSUPPORTED, "no type string"},
        {{"a", "b"}, OT_F4E2M1, OT_ERR_FORMAT, "3 elements of F4 end within a byte"},
    };
    ot__safetensor wide = {"a", OT_F64, 1, large, 0, 0};
    const ot__safetensors_text bad = {"a", "\xc0\x80"};
    ot__buf out = {0};

    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++) {
        ot__safetensor tensors[] = {{cases[i].names[0], OT_F32, 1, dims, 0, 0},
                                    {cases[i].names[1], cases[i].dtype, 1, dims, 0, 0}};

        assert_int_equal(ot__safetensors_place(tensors, 2), cases[i].status);
        assert_non_null(strstr(ot_error_message(), cases[i].message));
    }
    assert_int_equal(ot__safetensors_place(&wide, 1), OT_ERR_FORMAT);
    assert_int_equal(ot__safetensors_header(NULL, 0, &bad, 1, 8, &out), OT_ERR_INVALID);
    ot__buf_deinit(&out);
}

static void every_allocation_may_fail(void **state)
{
    bool has_failed = true;

    (void)state;
    for (int64_t fail_at = 0; has_failed; fail_at++) {
        ot__safetensors file = {0};
        ot__safetensor *tensors = NULL;
        ot__buf out = {0};
        ot_status st;

        ot__alloc_fail_after(fail_at);
        st = ot__safetensors_read(written[1].bytes, written[1].n_bytes, &file);
        if (st == OT_OK)
            tensors = shuffled(&file);
        OT_THEN(st, ot__safetensors_place(tensors, file.n_tensors));
        OT_THEN(st,
                ot__safetensors_header(tensors, file.n_tensors, file.texts, file.n_texts, 8, &out));
        ot__alloc_fail_after(-1);
        has_failed = st == OT_ERR_NO_MEMORY;
        assert_true(has_failed || st == OT_OK);
        ot__buf_deinit(&out);
        free(tensors);
        ot__safetensors_deinit(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_malformed_file_is_refused_with_its_own_message),
        cmocka_unit_test(a_length_that_the_file_does_not_have_takes_no_memory),
        cmocka_unit_test(tensors_and_texts_are_those_that_were_written),
        cmocka_unit_test(all_types_scalars_and_empty_tensors_are_read),
        cmocka_unit_test(headers_are_those_of_the_package_byte_by_byte),
        cmocka_unit_test(data_can_begin_at_a_page),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
