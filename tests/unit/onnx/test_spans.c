// SPDX-License-Identifier: Apache-2.0
// Large initializers stay where they lie in the bytes of a model, whatever that does to their
// alignment, and everything that is made of them is as if they were aligned.
#include <math.h>
#include <string.h>

#include "artifacts/artifacts.h"
#include "onnx/onnx.h"
#include "onnxtrain/runner.h"
#include "unit/graph/model_text.h"

enum { ROWS = 130, COLUMNS = 128, N_SHIFTS = 4 };

static const char text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>"
    "g (float[2, 130] x, float[130, 128] w, float[130, 128] f) => (float[2, 128] y) {"
    "  t = Transpose<perm = [1, 0]>(f)" // is folded
    "  a = Gemm<transB = 1>(x, t)"
    "  b = MatMul(x, w)"
    "  y = Add(a, b)"
    "}";

static void fill(ot_model *model, const char *name, int factor)
{
    ot_value *value = ot__graph_find(model->graph, name);
    ot_tensor *tensor = ot__model_tensor_new(model, OT_F32, &OT_SHAPE(ROWS, COLUMNS));

    assert_non_null(tensor);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ((float *)tensor->data)[i] = (float)((i * factor) % 97 - 48) / 64.0f;
    value->is_input = false;
    assert_true(ot__graph_add_initializer(model->graph, value, tensor));
}

// The bytes of a model whose elements lie `shift` bytes further.
static void write_model(ot__buf *out, int shift)
{
    static const char *const producers[N_SHIFTS] = {"a", "ab", "abc", "abcd"};
    ot_model *model = model_of(text);

    fill(model, "w", 7);
    fill(model, "f", 11);
    model->graph->n_inputs = 1;
    model->producer_name = producers[shift];
    assert_int_equal(ot__onnx_write(model, out), OT_OK);
    ot_model_destroy(model);
}

static ot_model *load(int shift)
{
    ot__buf bytes = {0};
    ot_model *model;

    write_model(&bytes, shift);
    assert_int_equal(ot_model_load_buffer(bytes.data, bytes.length, NULL, &model), OT_OK);
    ot__buf_deinit(&bytes);
    return model;
}

static const ot_tensor *constant_of(const ot_model *model, const char *name)
{
    return ot__graph_find(model->graph, name)->constant;
}

static void elements_are_where_the_bytes_have_them(void **state)
{
    int n_aligned = 0;

    (void)state;
    for (int shift = 0; shift < N_SHIFTS; shift++) {
        ot_model *model = load(shift);
        const ot_tensor *w = constant_of(model, "w"), *f = constant_of(model, "f");

        n_aligned += (uintptr_t)w->data % 4 == 0;
        assert_true((const char *)f->data > (const char *)w->data + w->n_bytes);
        assert_true((const char *)f->data < (const char *)w->data + w->n_bytes + 64);
        assert_true(ot__tensor_get_f64(w, 1) == (7 - 48) / 64.0);
        ot_model_destroy(model);
    }
    assert_int_equal(n_aligned, 1); // of four neighbouring places
}

static void they_are_written_as_they_were_read(void **state)
{
    (void)state;
    for (int shift = 0; shift < N_SHIFTS; shift++) {
        ot_model *model = load(shift);
        ot__buf before = {0}, after = {0};

        write_model(&before, shift);
        assert_int_equal(ot__onnx_write(model, &after), OT_OK);
        assert_int_equal(before.length, after.length);
        assert_memory_equal(before.data, after.data, before.length);
        ot__buf_deinit(&before);
        ot__buf_deinit(&after);
        ot_model_destroy(model);
    }
}

// Sums in f64 over what fill() makes.
static double expected(const float *x, int row, int column)
{
    double sum = 0;

    for (int k = 0; k < ROWS; k++) {
        const int i = k * COLUMNS + column;

        sum += (double)x[row * ROWS + k] * ((i * 7) % 97 - 48 + (i * 11) % 97 - 48) / 64.0;
    }
    return sum;
}

static void runs_and_folding_see_aligned_elements(void **state)
{
    ot_tensor *x;

    (void)state;
    assert_int_equal(ot_tensor_create(OT_F32, &OT_SHAPE(2, ROWS), &x), OT_OK);
    for (int i = 0; i < 2 * ROWS; i++)
        ((float *)x->data)[i] = (float)(i % 5) - 2.0f;
    for (int shift = 0; shift < N_SHIFTS; shift++) {
        ot_model *model = load(shift);
        const ot_tensor *inputs[] = {x};
        ot_tensor *y;

        assert_int_equal(ot_model_run(model, NULL, inputs, 1, &y, 1), OT_OK);
        for (int i = 0; i < 2 * COLUMNS; i++)
            assert_true(fabs(((const float *)y->data)[i] -
                             expected(x->data, i / COLUMNS, i % COLUMNS)) < 1e-3);
        ot_tensor_destroy(y);
        ot_model_destroy(model);
    }
    ot_tensor_destroy(x);
}

static void parameters_made_of_them_are_copies(void **state)
{
    (void)state;
    for (int shift = 0; shift < N_SHIFTS; shift++) {
        ot_model *model = load(shift);
        ot_loss_options loss = OT_LOSS_OPTIONS_INIT;
        ot_artifacts_options options = OT_ARTIFACTS_OPTIONS_INIT;
        ot_artifacts *artifacts;
        const ot_tensor *value;

        loss.loss = OT_LOSS_MSE;
        options.losses = &loss;
        options.n_losses = 1;
        assert_int_equal(ot_artifacts_generate(model, &options, &artifacts), OT_OK);
        value = ot__ckpt_find(ot_artifacts_checkpoint(artifacts), "w")->value;
        assert_true(ot__tensor_is_aligned(value));
        assert_memory_equal(value->data, constant_of(model, "w")->data, value->n_bytes);
        ot_artifacts_destroy(artifacts);
        ot_model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_where_the_bytes_have_them),
        cmocka_unit_test(they_are_written_as_they_were_read),
        cmocka_unit_test(runs_and_folding_see_aligned_elements),
        cmocka_unit_test(parameters_made_of_them_are_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
