// SPDX-License-Identifier: Apache-2.0
// Which of oneDNN's implementations convolutions run by: none of them by its reference code.
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct problem {
    ot_shape x, w, y;
    int64_t groups, strides[3], dilations[3], pads[3];
} problem;

static const problem problems[] = {
    // the first layer of images, and patches
    {OT_SHAPE(4, 3, 30, 30),
     OT_SHAPE(64, 3, 7, 7),
     OT_SHAPE(4, 64, 15, 15),
     1,
     {2, 2},
     {1, 1},
     {3, 3}},
    {OT_SHAPE(4, 3, 32, 32),
     OT_SHAPE(64, 3, 8, 8),
     OT_SHAPE(4, 64, 4, 4),
     1,
     {8, 8},
     {1, 1},
     {0, 0}},
    {OT_SHAPE(4, 1, 400), OT_SHAPE(64, 1, 10), OT_SHAPE(4, 64, 79), 1, {5}, {1}, {0}},
    // a channel a group: over one axis, dilated, of large windows, over three axes; two outputs
    {OT_SHAPE(4, 32, 40), OT_SHAPE(32, 1, 4), OT_SHAPE(4, 32, 40), 32, {1}, {1}, {3}},
    {OT_SHAPE(4, 32, 9, 9),
     OT_SHAPE(32, 1, 5, 5),
     OT_SHAPE(4, 32, 9, 9),
     32,
     {1, 1},
     {2, 2},
     {4, 4}},
    {OT_SHAPE(4, 32, 9, 9),
     OT_SHAPE(32, 1, 7, 7),
     OT_SHAPE(4, 32, 9, 9),
     32,
     {1, 1},
     {1, 1},
     {3, 3}},
    {OT_SHAPE(2, 32, 5, 9, 9),
     OT_SHAPE(32, 1, 3, 3, 3),
     OT_SHAPE(2, 32, 5, 9, 9),
     32,
     {1, 1, 1},
     {1, 1, 1},
     {1, 1, 1}},
    {OT_SHAPE(4, 32, 9, 9),
     OT_SHAPE(64, 1, 3, 3),
     OT_SHAPE(4, 64, 9, 9),
     32,
     {1, 1},
     {1, 1},
     {1, 1}},
    // few channels a group
    {OT_SHAPE(4, 32, 9, 9),
     OT_SHAPE(32, 4, 3, 3),
     OT_SHAPE(4, 32, 9, 9),
     8,
     {1, 1},
     {1, 1},
     {1, 1}},
    {OT_SHAPE(4, 50, 9, 9),
     OT_SHAPE(50, 25, 3, 3),
     OT_SHAPE(4, 50, 9, 9),
     2,
     {1, 1},
     {1, 1},
     {1, 1}},
    // dilated in steps; more padding than the window reaches; causal
    {OT_SHAPE(4, 32, 12, 12),
     OT_SHAPE(32, 32, 3, 3),
     OT_SHAPE(4, 32, 6, 6),
     1,
     {2, 2},
     {2, 2},
     {2, 2}},
    {OT_SHAPE(4, 32, 8, 8),
     OT_SHAPE(32, 32, 3, 3),
     OT_SHAPE(4, 32, 10, 8),
     1,
     {1, 1},
     {1, 1},
     {4, 0}},
    {OT_SHAPE(4, 32, 40), OT_SHAPE(32, 32, 3), OT_SHAPE(4, 32, 40), 1, {1}, {4}, {8}},
};

static void check_names(const ot__dnnl_primitives *program)
{
    assert_string_not_equal(ot__dnnl_names(program), "");
    assert_null(strstr(ot__dnnl_names(program), "ref:any"));
}

static void check_directions(const ot__dnnl_conv *c)
{
    ot__dnnl_primitives *program;

    assert_int_equal(ot__dnnl_conv_create(c, &program), OT_OK);
    check_names(program);
    ot__dnnl_destroy(program);
    assert_int_equal(ot__dnnl_conv_grad_create(c, true, true, true, &program), OT_OK);
    check_names(program);
    ot__dnnl_destroy(program);
}

static void no_convolution_runs_by_reference_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(problems); i++) {
        const problem *p = &problems[i];
        ot__dnnl_conv c = {.type = OT_F32,
                           .bias_type = OT_F32,
                           .x = &p->x,
                           .w = &p->w,
                           .y = &p->y,
                           .groups = p->groups,
                           .strides = p->strides,
                           .dilations = p->dilations,
                           .pads = p->pads};

        if (!ot__dnnl_can_conv_grad(&c)) // built without oneDNN
            skip();
        check_directions(&c);
        ot__dnnl_conv_layouts(&c, &c.x_layout, &c.y_layout);
        check_directions(&c);
        c.is_exact = true;
        check_directions(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_convolution_runs_by_reference_code)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
