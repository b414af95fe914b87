// SPDX-License-Identifier: Apache-2.0
// The checkpoint format: a file of ONNX Runtime's byte for byte, round trips, and files cut or
// changed anywhere.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "ckpt/ckpt.h"
#include "unit/ckpt/worked_example.h"

static void a_file_of_onnx_runtime_is_read(void **state)
{
    ot_checkpoint *checkpoint;
    ot_tensor *w;

    (void)state;
    assert_int_equal(ot_checkpoint_load_buffer(worked_example, sizeof(worked_example), &checkpoint),
                     OT_OK);
    assert_int_equal(ot_checkpoint_parameter_count(checkpoint), 1);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "w"), 1);
    assert_int_equal(ot_checkpoint_get_parameter(checkpoint, "w", &w), OT_OK);
    assert_int_equal(ot_tensor_dtype(w), OT_F32);
    assert_int_equal(ot_tensor_count(w), 2);
    assert_true(((const float *)ot_tensor_data(w))[0] == 1.0f);
    assert_true(((const float *)ot_tensor_data(w))[1] == -2.0f);
    ot_tensor_destroy(w);
    ot_checkpoint_destroy(checkpoint);
}

static void put(ot_checkpoint *checkpoint, const char *name, ot_dtype dtype, ot_shape shape,
                int trainable, int fill)
{
    ot_tensor *tensor;

    assert_int_equal(ot_tensor_create(dtype, &shape, &tensor), OT_OK);
    memset(tensor->data, fill, tensor->n_bytes);
    assert_int_equal(ot_checkpoint_add_parameter(checkpoint, name, tensor, trainable), OT_OK);
    ot_tensor_destroy(tensor);
}

// Two trainable and one frozen parameter, AdamW's moments, a group of another tool, properties of
// every kind.
static ot_checkpoint *rich_checkpoint(void)
{
    ot_checkpoint *checkpoint;
    ot__parameter *a;

    assert_int_equal(ot_checkpoint_create(&checkpoint), OT_OK);
    put(checkpoint, "b", OT_F64, OT_SHAPE(3), 1, 1);
    put(checkpoint, "a", OT_F32, OT_SHAPE(2, 3), 1, 2);
    put(checkpoint, "frozen", OT_I64, OT_SHAPE_SCALAR, 0, 3);
    put(checkpoint, "nothing", OT_F32, OT_SHAPE(0, 4), 0, 0);
    a = ot__ckpt_find(checkpoint, "a");
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ot_tensor_create(OT_F32, &a->value->shape, &a->slots[k]), OT_OK);
        memset(a->slots[k]->data, 5 + k, a->slots[k]->n_bytes);
    }
    checkpoint->has_optimizer_state = true;
    checkpoint->step = INT64_C(1) << 40;
    checkpoint->initial_lr = 0.125f;
    assert_int_equal(ot_checkpoint_set_int(checkpoint, "least", INT64_MIN), OT_OK);
    assert_int_equal(ot_checkpoint_set_int(checkpoint, "zero", 0), OT_OK);
    assert_int_equal(ot_checkpoint_set_float(checkpoint, "f", -0.5f), OT_OK);
    assert_int_equal(ot_checkpoint_set_string(checkpoint, "empty", ""), OT_OK);
    assert_int_equal(ot_checkpoint_set_string(checkpoint, "text", "na\xc3\xafve"), OT_OK);
    return checkpoint;
}

static ot_status append(void *context, const void *bytes, size_t n_bytes)
{
    ot__buf_append(context, bytes, n_bytes);
    return OT_OK;
}

static void write_to(ot__buf *buf, const ot_checkpoint *checkpoint,
                     const ot__ckpt_write_options *options)
{
    ot__pieces pieces = {0};

    assert_int_equal(ot__flatbuf_write(checkpoint, options, &pieces), OT_OK);
    assert_int_equal(ot__pieces_each(&pieces, append, buf), OT_OK);
    ot__pieces_deinit(&pieces);
}

static void write_rich(ot__buf *buf)
{
    ot_checkpoint *checkpoint = rich_checkpoint();

    write_to(buf, checkpoint, &(ot__ckpt_write_options){.flags = OT_CHECKPOINT_OPTIMIZER_STATE});
    ot_checkpoint_destroy(checkpoint);
}

static void everything_survives_a_round_trip(void **state)
{
    ot__buf buf = {0};
    ot_checkpoint *checkpoint;
    const ot__parameter *a;
    int64_t i;
    float f;
    const char *s;

    (void)state;
    write_rich(&buf);
    assert_int_equal(ot_checkpoint_load_buffer(buf.data, buf.length, &checkpoint), OT_OK);
    assert_int_equal(checkpoint->n_parameters, 4);
    assert_string_equal(ot_checkpoint_parameter_name(checkpoint, 0), "a");
    a = ot__ckpt_find(checkpoint, "a");
    assert_int_equal(a->value->shape.dim[1], 3);
    assert_int_equal(((const uint8_t *)a->value->data)[23], 2);
    assert_int_equal(((const uint8_t *)a->slots[0]->data)[0], 5);
    assert_int_equal(((const uint8_t *)a->slots[1]->data)[23], 6);
    assert_int_equal(ot__ckpt_find(checkpoint, "b")->value->dtype, OT_F64);
    assert_int_equal(ot__ckpt_find(checkpoint, "frozen")->value->shape.ndim, 0);
    assert_int_equal(ot_checkpoint_parameter_trainable(checkpoint, "frozen"), 0);
    assert_int_equal(ot__ckpt_find(checkpoint, "nothing")->value->shape.dim[1], 4);
    assert_true(checkpoint->step == INT64_C(1) << 40);
    assert_true(checkpoint->initial_lr == 0.125f);
    assert_int_equal(ot_checkpoint_get_int(checkpoint, "least", &i), OT_OK);
    assert_true(i == INT64_MIN);
    assert_int_equal(ot_checkpoint_get_int(checkpoint, "zero", &i), OT_OK);
    assert_int_equal(i, 0);
    assert_int_equal(ot_checkpoint_get_float(checkpoint, "f", &f), OT_OK);
    assert_true(f == -0.5f);
    assert_int_equal(ot_checkpoint_get_string(checkpoint, "empty", &s), OT_OK);
    assert_string_equal(s, "");
    assert_int_equal(ot_checkpoint_get_string(checkpoint, "text", &s), OT_OK);
    assert_string_equal(s, "na\xc3\xafve");
    ot_checkpoint_destroy(checkpoint);
    ot__buf_deinit(&buf);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    ot__buf buf = {0};

    (void)state;
    write_rich(&buf);
    for (size_t n = 0; n < buf.length; n++) {
        ot_checkpoint *checkpoint;
        uint8_t *cut = ot__alloc(n); // of the exact size, so that a sanitizer sees a read behind it
        ot_status st;

        if (n)
            memcpy(cut, buf.data, n);
        st = ot_checkpoint_load_buffer(cut, n, &checkpoint);
        if (n + 8 < buf.length) // at most seven bytes of padding end the file
            assert_int_equal(st, OT_ERR_FORMAT);
        ot_checkpoint_destroy(checkpoint);
        ot__free(cut);
    }
    ot__buf_deinit(&buf);
}

static void a_changed_byte_never_does_harm(void **state)
{
    ot__buf buf = {0};
    int n_refused = 0;

    (void)state;
    write_rich(&buf);
    for (size_t i = 0; i < buf.length; i++)
        for (int change = 0; change < 4; change++) {
            static const uint8_t changes[4] = {0x01, 0x80, 0xff, 0x10};
            ot_checkpoint *checkpoint;

            buf.data[i] = (char)(buf.data[i] ^ changes[change]);
            n_refused += ot_checkpoint_load_buffer(buf.data, buf.length, &checkpoint) != OT_OK;
            ot_checkpoint_destroy(checkpoint);
            buf.data[i] = (char)(buf.data[i] ^ changes[change]);
        }
    assert_true(n_refused > 0);
    ot__buf_deinit(&buf);
}

static void failing_allocations_lose_nothing(void **state)
{
    ot__buf buf = {0};
    ot_status st = OT_ERR_NO_MEMORY;

    (void)state;
    write_rich(&buf);
    for (int64_t n = 0; st != OT_OK; n++) {
        ot_checkpoint *checkpoint;

        assert_true(n < 1000);
        ot__alloc_fail_after(n);
        st = ot_checkpoint_load_buffer(buf.data, buf.length, &checkpoint);
        ot__alloc_fail_after(-1);
        assert_true(st == OT_OK || st == OT_ERR_NO_MEMORY);
        ot_checkpoint_destroy(checkpoint);
    }
    ot__buf_deinit(&buf);
}

static void expect_refusal(const uint8_t *bytes, size_t n, const char *fragment)
{
    ot_checkpoint *checkpoint;

    assert_int_equal(ot_checkpoint_load_buffer(bytes, n, &checkpoint), OT_ERR_FORMAT);
    assert_null(checkpoint);
    if (!strstr(ot_error_message(), fragment))
        fail_msg("'%s' does not say '%s'", ot_error_message(), fragment);
}

static void refusals_say_what_is_wrong(void **state)
{
    uint8_t bytes[sizeof(worked_example)];

    (void)state;
    expect_refusal(worked_example, 0, "too few");
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[4] = 'X';
    expect_refusal(bytes, sizeof(bytes), "is not a checkpoint");
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[0x1c] = 3;
    expect_refusal(bytes, sizeof(bytes), "version 3, expected 1 to 2");
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[0x78] = 3; // dims [3], but 8 bytes of elements
    expect_refusal(bytes, sizeof(bytes), "tensor 'w' has 8 bytes of elements, its shape needs 12");
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[0x7f] = 0xff; // a negative extent
    expect_refusal(bytes, sizeof(bytes), "tensor 'w' has size -");
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[0x64] = 99;
    expect_refusal(bytes, sizeof(bytes), "element type 99");
}

static void version_1_is_read(void **state)
{
    uint8_t bytes[sizeof(worked_example)];
    ot_checkpoint *checkpoint;

    (void)state;
    memcpy(bytes, worked_example, sizeof(bytes));
    bytes[0x1c] = 1;
    assert_int_equal(ot_checkpoint_load_buffer(bytes, sizeof(bytes), &checkpoint), OT_OK);
    ot_checkpoint_destroy(checkpoint);
}

static void a_nominal_checkpoint_has_names_but_no_values(void **state)
{
    ot_checkpoint *checkpoint = rich_checkpoint(), *nominal;
    const char *names[] = {"b", "a", "frozen"};
    ot__buf buf = {0};
    ot_tensor *tensor;

    (void)state;
    write_to(&buf, checkpoint,
             &(ot__ckpt_write_options){
                 .names = names, .n_names = 3, .as_artifact = true, .nominal = true});
    assert_int_equal(ot_checkpoint_load_buffer(buf.data, buf.length, &nominal), OT_OK);
    assert_int_equal(ot_checkpoint_parameter_count(nominal), 3);
    assert_int_equal(ot_checkpoint_get_parameter(nominal, "a", &tensor), OT_ERR_STATE);
    ot_checkpoint_destroy(nominal);
    ot_checkpoint_destroy(checkpoint);
    ot__buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_onnx_runtime_is_read),
        cmocka_unit_test(everything_survives_a_round_trip),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_changed_byte_never_does_harm),
        cmocka_unit_test(failing_allocations_lose_nothing),
        cmocka_unit_test(refusals_say_what_is_wrong),
        cmocka_unit_test(version_1_is_read),
        cmocka_unit_test(a_nominal_checkpoint_has_names_but_no_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
