// SPDX-License-Identifier: Apache-2.0
// Kernels for f32 that run nodes of f16 and bf16 a few images at a time.
#include "plan_fixture.h"

enum { N_IMAGES = 6, SIZE = 200000, SUMS = 2 };

// y = x * w and mark = x > 0 for each image of SIZE elements, and the sum of the images
static int n_runs;

static ot_status images_run(const ot_run *r)
{
    const float *x = r->in[0]->data, *w = r->in[1]->data;
    float *y = r->out[0]->data, *sum = r->out[SUMS]->data;
    uint8_t *mark = r->out[1]->data;

    n_runs++;
    assert_int_equal(r->in[0]->count, r->in[0]->shape.dim[0] * SIZE);
    assert_int_equal(r->out[0]->count, r->in[0]->count);
    for (int64_t k = 0; k < SIZE && (r->accumulates & 1U << SUMS) == 0; k++)
        sum[k] = 0;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        y[i] = x[i] * w[i % SIZE];
        mark[i] = x[i] > 0;
        sum[i % SIZE] += x[i];
    }
    return OT_OK;
}

// The same, y last: it may be in the place of x.
static ot_status images_run_last(const ot_run *r)
{
    const float *x = r->in[0]->data, *w = r->in[1]->data;
    float *y = r->out[0]->data, *sum = r->out[SUMS]->data;
    uint8_t *mark = r->out[1]->data;

    n_runs++;
    for (int64_t k = 0; k < SIZE; k++)
        sum[k] = 0;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        mark[i] = x[i] > 0;
        sum[i % SIZE] += x[i];
    }
    for (int64_t i = 0; i < r->in[0]->count; i++)
        y[i] = x[i] * w[i % SIZE];
    return OT_OK;
}

static const ot_port images_in[] = {{"X", "T", 0}, {"W", "T", 0}, {0}};
static const ot_port images_out[] = {{"Y", "T", 0}, {"mark", "u8", 0}, {"sum", "T", 0}, {0}};
static const ot_kernel writing[] = {{.name = "f32", .types = "T: f32", .run = images_run}, {0}};
static const ot_kernel adding[] = {
    {.name = "f32", .types = "T: f32", .accumulates = 1U << SUMS, .run = images_run}, {0}};
#define IMAGES                                                                                     \
    .name = "Images", .inputs = images_in, .outputs = images_out, .types = "T: f32 f64",           \
    .by_image = {.in = 1, .out = 1 << 0 | 1 << 1, .sums = 1 << SUMS}
static const ot_kernel writing_last[] = {{.name = "f32", .types = "T: f32", .run = images_run_last},
                                         {0}};
static const ot_op_def writing_op = {IMAGES, .kernels = writing};
static const ot_op_def adding_op = {IMAGES, .kernels = adding};
static const ot_op_def spending_op = {IMAGES, .kernels = writing_last, .spent = 1};

static void put(void *to, ot_dtype dtype, int64_t i, double number)
{
    ot__convert((char *)to + (size_t)i * ot_dtype_size(dtype), dtype, &number, OT_F64, 1);
}

static double get(const void *from, ot_dtype dtype, int64_t i)
{
    double number;

    ot__convert(&number, OT_F64, (const char *)from + (size_t)i * ot_dtype_size(dtype), dtype, 1);
    return number;
}

static double image_element(int64_t i)
{
    return (double)(i / SIZE + 1) * (double)(i % SIZE % 3 - 1);
}

static double weight_element(int64_t k)
{
    return k % 2 == 0 ? 0.5 : 2;
}

static ot_value *typed(ot_graph *g, const char *name, ot_dtype dtype, ot_shape shape)
{
    ot_value *v = ot__graph_value(g, name);

    ot__value_set(v, dtype, &shape);
    return v;
}

static void plan_images(fixture *f, const ot_op_def *op, ot_dtype narrow, ot_dtype sum)
{
    ot_graph *g = f->model->graph;
    const ot_shape images = OT_SHAPE(N_IMAGES, SIZE);
    ot_value *in[] = {typed(g, "x", narrow, images), typed(g, "w", narrow, OT_SHAPE(SIZE))};
    ot_value *out[] = {typed(g, "y", narrow, images), typed(g, "mark", OT_U8, images),
                       typed(g, "sum", sum, OT_SHAPE(SIZE))};

    for (int i = 0; i < 2; i++)
        assert_true(ot__graph_add_input(g, in[i]));
    ot__graph_add_node(g, "", "Images", "n", in, 2, out, 3)->op = op;
    for (int i = 0; i < 3; i++)
        assert_true(ot__graph_add_output(g, out[i]));
    assert_int_equal(plan(f), OT_OK);
}

// `n_places`: of SIZE elements in f32.
static void check_images(fixture *f, const ot_op_def *op, ot_dtype narrow, ot_dtype sum,
                         size_t n_places)
{
    void *x = calloc((size_t)N_IMAGES * SIZE, sizeof(uint16_t));
    void *w = calloc(SIZE, sizeof(uint16_t));

    plan_images(f, op, narrow, sum);
    for (int64_t i = 0; i < (int64_t)N_IMAGES * SIZE; i++)
        put(x, narrow, i, image_element(i));
    for (int64_t k = 0; k < SIZE; k++)
        put(w, narrow, k, weight_element(k));
    ot__plan_bind_input(f->plan, 0, 0, x);
    ot__plan_bind_input(f->plan, 1, 0, w);
    n_runs = 0;
    assert_int_equal(run(f), OT_OK);
    assert_true(n_runs > 1);
    assert_true(ot__plan_scratch_bytes(f->plan) <= n_places * (SIZE + 16) * sizeof(float));
    for (int64_t i = 0; i < (int64_t)N_IMAGES * SIZE; i++) {
        assert_true(get(result(f, 0), narrow, i) == image_element(i) * weight_element(i % SIZE));
        assert_int_equal(((const uint8_t *)(const void *)result(f, 1))[i], image_element(i) > 0);
    }
    for (int64_t k = 0; k < SIZE; k++) // 1 + 2 + ... + 6
        assert_true(get(result(f, 2), sum, k) == 21.0 * (double)(k % 3 - 1));
    free(x);
    free(w);
}

static void images_are_converted_a_few_at_a_time(void **state)
{
    // one image of X and Y, W, and what is added to the sum
    check_images(*state, &writing_op, OT_F16, OT_F32, 4);
}

static void sums_over_images_of_a_narrow_type_are_rounded_once(void **state)
{
    check_images(*state, &writing_op, OT_BF16, OT_BF16, 5);
}

static void a_kernel_that_adds_needs_no_place_for_terms(void **state)
{
    check_images(*state, &adding_op, OT_BF16, OT_F32, 3);
}

static void a_sum_that_a_kernel_adds_to_is_converted_behind_the_last_piece(void **state)
{
    check_images(*state, &adding_op, OT_F16, OT_F16, 4);
}

static void an_output_is_made_in_the_place_of_a_copy_that_is_spent(void **state)
{
    check_images(*state, &spending_op, OT_F16, OT_F32, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(images_are_converted_a_few_at_a_time),
        TEST(sums_over_images_of_a_narrow_type_are_rounded_once),
        TEST(a_kernel_that_adds_needs_no_place_for_terms),
        TEST(a_sum_that_a_kernel_adds_to_is_converted_behind_the_last_piece),
        TEST(an_output_is_made_in_the_place_of_a_copy_that_is_spent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
