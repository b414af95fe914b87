// SPDX-License-Identifier: Apache-2.0
// Small graphs for the tests of plans, and operators made for them.
#ifndef TESTS_UNIT_EXEC_PLAN_FIXTURE_H
#define TESTS_UNIT_EXEC_PLAN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"

// ---- operators made for these tests ----

// sum += value in place; the flag says it was done
static inline ot_status accumulate_run(const ot_run *r)
{
    float *sum = r->in[0]->data;
    const float *value = r->in[1]->data;

    for (int64_t i = 0; i < r->in[0]->count; i++)
        sum[i] += value[i];
    *(bool *)r->out[0]->data = true;
    return OT_OK;
}

static const ot_port accumulate_in[] = {{"sum", "f32", OT_PORT_STATE}, {"value", "f32", 0}, {0}};
static const ot_port accumulate_out[] = {
    {"done", "bool", 0}, {"new_sum", "f32", OT_PORT_STATE | OT_PORT_OPTIONAL}, {0}};
static const ot_kernel accumulate_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE, .run = accumulate_run}, {0}};
static const ot_op_def accumulate_op = {.name = "Accumulate",
                                        .inputs = accumulate_in,
                                        .outputs = accumulate_out,
                                        .kernels = accumulate_kernels};

// every tensor of the sequence *= factor, in place
static inline ot_status scale_run(const ot_run *r)
{
    const float factor = *(const float *)r->in[r->in_first[1]]->data;

    for (int k = r->in_first[0]; k < r->in_first[1]; k++)
        for (int64_t i = 0; i < r->in[k]->count; i++)
            ((float *)r->in[k]->data)[i] *= factor;
    return OT_OK;
}

static const ot_port scale_in[] = {
    {"xs", "f32", OT_PORT_STATE | OT_PORT_SEQUENCE}, {"factor", "f32", 0}, {0}};
static const ot_port scale_out[] = {{"ys", "f32", OT_PORT_STATE | OT_PORT_SEQUENCE}, {0}};
static const ot_kernel scale_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE, .run = scale_run}, {0}};
static const ot_op_def scale_op = {
    .name = "ScaleAll", .inputs = scale_in, .outputs = scale_out, .kernels = scale_kernels};

// the sum of all elements of all tensors of the sequence
static inline ot_status total_run(const ot_run *r)
{
    float sum = 0;

    for (int k = 0; k < r->n_in; k++)
        for (int64_t i = 0; i < r->in[k]->count; i++)
            sum += ((const float *)r->in[k]->data)[i];
    *(float *)r->out[0]->data = sum;
    return OT_OK;
}

static const ot_port total_in[] = {{"xs", "f32", OT_PORT_SEQUENCE}, {0}};
static const ot_port total_out[] = {{"sum", "f32", 0}, {0}};
static const ot_kernel total_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE, .run = total_run}, {0}};
static const ot_op_def total_op = {
    .name = "Total", .inputs = total_in, .outputs = total_out, .kernels = total_kernels};

// y = x reversed, by way of scratch memory
static inline ot_status reverse_prepare(ot_prep *p)
{
    int *calls = ot_prep_state(p, sizeof *calls);

    if (calls == NULL)
        return OT_ERR_NO_MEMORY;
    ot_prep_scratch(p, (size_t)ot_prep_in(p, 0)->count * sizeof(float));
    return OT_OK;
}

static inline ot_status reverse_run(const ot_run *r)
{
    const float *x = r->in[0]->data;
    float *y = r->out[0]->data, *scratch = r->scratch;
    const int64_t n = r->in[0]->count;

    assert_int_equal((uintptr_t)r->scratch % 64, 0);
    ++*(int *)r->state;
    for (int64_t i = 0; i < n; i++)
        scratch[i] = x[n - 1 - i];
    memcpy(y, scratch, (size_t)n * sizeof(float));
    return OT_OK;
}

static const ot_port unary_in[] = {{"x", "f32", 0}, {0}};
static const ot_port unary_out[] = {{"y", "f32", 0}, {0}};
static const ot_kernel reverse_kernels[] = {
    {.name = "ref", .prepare = reverse_prepare, .run = reverse_run}, {0}};
static const ot_op_def reverse_op = {
    .name = "Reverse", .inputs = unary_in, .outputs = unary_out, .kernels = reverse_kernels};

static inline ot_status fails_run(const ot_run *r)
{
    (void)r;
    return ot__error(OT_ERR_INVALID, "index 7 out of range");
}

static const ot_kernel fails_kernels[] = {
    {.name = "ref", .flags = OT_KERNEL_REFERENCE, .run = fails_run}, {0}};
static const ot_op_def fails_op = {
    .name = "Fails", .inputs = unary_in, .outputs = unary_out, .kernels = fails_kernels};

// three kernels that write which one they are and the number of threads
static inline ot_status write_choice(const ot_run *r, float which)
{
    ((float *)r->out[0]->data)[0] = which;
    ((float *)r->out[0]->data)[1] = (float)r->n_threads;
    return OT_OK;
}

static inline ot_status first_run(const ot_run *r)
{
    return write_choice(r, 1);
}

static inline ot_status second_run(const ot_run *r)
{
    return write_choice(r, 2);
}

static inline ot_status reference_run(const ot_run *r)
{
    return write_choice(r, 3);
}

static inline bool has_four_elements(const ot_prep *p)
{
    return ot_prep_in(p, 0)->count == 4;
}

static const ot_kernel choice_kernels[] = {
    {.name = "first", .can_run = has_four_elements, .run = first_run},
    {.name = "second", .flags = OT_KERNEL_THREAD_EXACT, .run = second_run},
    {.name = "ref", .flags = OT_KERNEL_REFERENCE, .run = reference_run},
    {0},
};
static const ot_op_def choice_op = {
    .name = "Choice", .inputs = unary_in, .outputs = unary_out, .kernels = choice_kernels};
// kernels of one element type each; there is none for f64
static const ot_port typed_in[] = {{"X", "T", 0}, {0}};
static const ot_port typed_out[] = {{"Y", "T", 0}, {0}};
static const ot_kernel typed_kernels[] = {
    {.name = "first", .types = "T: i32 i64", .run = first_run},
    {.name = "second", .types = "T: f32", .run = second_run},
    {.name = "ref", .types = "T: f32 i32", .flags = OT_KERNEL_REFERENCE, .run = reference_run},
    {0},
};
static const ot_op_def typed_op = {.name = "Typed",
                                   .inputs = typed_in,
                                   .outputs = typed_out,
                                   .types = "T: f32 f64 i32 i64",
                                   .kernels = typed_kernels};
static const ot_op_def inexact_op = {
    .name = "Inexact", .inputs = unary_in, .outputs = unary_out, .kernels = &choice_kernels[2]};

// ---- building graphs ----

typedef struct fixture {
    ot_model *model;
    ot__plan *plan;
} fixture;

static inline ot_value *value(fixture *f, const char *name, int64_t n)
{
    ot_value *v = ot__graph_value(f->model->graph, name);

    if (v->kind == OT_VALUE_UNTYPED)
        ot__value_set(v, OT_F32, &OT_SHAPE(n));
    return v;
}

static inline ot_value *input(fixture *f, const char *name, int64_t n)
{
    ot_value *v = value(f, name, n);

    assert_true(ot__graph_add_input(f->model->graph, v));
    return v;
}

static inline void output(fixture *f, const char *name)
{
    assert_true(ot__graph_add_output(f->model->graph, ot__graph_find(f->model->graph, name)));
}

static inline ot_value *sequence(fixture *f, const char *name)
{
    ot_value *v = ot__graph_value(f->model->graph, name);

    v->kind = OT_VALUE_SEQUENCE;
    v->dtype = OT_F32;
    return v;
}

static inline ot_value *constant(fixture *f, const char *name, const float *elements, int64_t n)
{
    ot_value *v = ot__graph_value(f->model->graph, name);
    ot_tensor *t = ot__model_tensor_over(f->model, OT_F32, &OT_SHAPE(n), elements,
                                         (size_t)n * sizeof *elements);

    assert_true(ot__graph_add_initializer(f->model->graph, v, t));
    return v;
}

// op NULL: looked up by name
static inline ot_node *node(fixture *f, const char *op_type, const ot_op_def *op, ot_value *a,
                            ot_value *b, ot_value *y)
{
    ot_value *in[] = {a, b};
    ot_node *n =
        ot__graph_add_node(f->model->graph, "", op_type, "n", in, b == NULL ? 1 : 2, &y, 1);

    n->op = op != NULL ? op : ot__op_find("", op_type, 17);
    assert_non_null(n->op);
    return n;
}

static inline int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    *state = f;
    return ot__model_create(&f->model) == OT_OK ? 0 : -1;
}

static inline int teardown(void **state)
{
    fixture *f = *state;

    ot__plan_destroy(f->plan);
    ot_model_destroy(f->model);
    free(f);
    return 0;
}

static inline ot_status plan(fixture *f)
{
    const ot__plan_options options = {.n_threads = 2};

    return ot__plan_create(f->model->graph, &options, NULL, NULL, &f->plan);
}

static inline ot_status run(fixture *f)
{
    const ot_step step = {.training = true};

    return ot__plan_run(f->plan, &step);
}

static inline const float *result(const fixture *f, int i)
{
    return ot__plan_output(f->plan, i)->data;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
