// SPDX-License-Identifier: Apache-2.0
// Shapes that only elements decide on: a plan takes them from constants, or from the shape that a
// model states for them, to which each run holds its elements.
#include "evaluate.h"
#include "onnxtrain/runner.h"

enum { MAX_INPUTS = 3 };

typedef struct planned_case {
    const char *name;
    const char *graph; // behind "g"
    struct {
        ot_dtype dtype;
        ot_shape shape;
        double elements[8];
    } in[MAX_INPUTS];
    const char *error; // in the message; NULL: it runs
} planned_case;

#define LIST(n)                                                                                    \
    {                                                                                              \
        .ndim = 1, .dim = { n }                                                                    \
    }
#define NON_ZERO "(float[4] x) => (int64[1,2] y) { y = NonZero(x) }"
#define COMPRESS                                                                                   \
    "(float[4] x, bool[3] c) => (float[2] y, float[2] z) { y = Compress(x, c) z = Neg(y) }"
#define UNIQUE "(float[4] x) => (float[2] y, int64[2] n) { y, i, j, n = Unique(x) }"
#define TOP_K "(float[4] x, int64[1] k) => (float[2] y) { y, i = TopK(x, k) }"
#define ONE_HOT                                                                                    \
    "(int64[2] i, int64[1] depth, float[2] v) => (float[2,3] y) { y = OneHot(i, depth, v) }"
#define CROP "(float[4] x, int64[1] s) => (float[2] y) { y = CenterCropPad(x, s) }"
#define COL2IM                                                                                     \
    "(float[1,2,2] x, int64[1] s, int64[1] b) => (float[1,1,3] y) { y = Col2Im(x, s, b) }"
#define BOXES                                                                                      \
    "(float[1,2,4] b, float[1,1,2] s) => (int64[1,3] y) <int64[1] most = {2}> "                    \
    "{ y = NonMaxSuppression(b, s, most) }"

static const planned_case cases[] = {
    {"NonZero", NON_ZERO, {{OT_F32, LIST(4), {0, 5, 0, 3}}}, NULL},
    {"NonZero of more",
     NON_ZERO,
     {{OT_F32, LIST(4), {1, 5, 0, 3}}},
     "3 elements are not 0, 2 were"},
    {"NonZero of fewer",
     NON_ZERO,
     {{OT_F32, LIST(4), {0, 5, 0, 0}}},
     "1 elements are not 0, 2 were"},
    {"NonZero of nothing stated",
     "(float[4] x) => (int64[1,K] y) { y = NonZero(x) }",
     {{OT_F32, LIST(4), {0}}},
     NULL},
    {"Compress", COMPRESS, {{OT_F32, LIST(4), {1, 2, 3, 4}}, {OT_BOOL, LIST(3), {1, 0, 1}}}, NULL},
    {"Compress of more",
     COMPRESS,
     {{OT_F32, LIST(4), {1, 2, 3, 4}}, {OT_BOOL, LIST(3), {1, 1, 1}}},
     "3 elements of condition are true, 2 were planned"},
    {"Unique", UNIQUE, {{OT_F32, LIST(4), {7, 5, 7, 7}}}, NULL},
    {"Unique of more", UNIQUE, {{OT_F32, LIST(4), {7, 5, 6, 7}}}, "3 elements or slices differ, 2"},
    {"Unique of fewer",
     UNIQUE,
     {{OT_F32, LIST(4), {7, 7, 7, 7}}},
     "1 elements or slices differ, 2"},
    {"TopK", TOP_K, {{OT_F32, LIST(4), {7, 5, 6, 8}}, {OT_I64, LIST(1), {2}}}, NULL},
    {"TopK of more",
     TOP_K,
     {{OT_F32, LIST(4), {7, 5, 6, 8}}, {OT_I64, LIST(1), {3}}},
     "3 elements are wanted, 2 were planned"},
    {"OneHot",
     ONE_HOT,
     {{OT_I64, LIST(2), {0, 2}}, {OT_I64, LIST(1), {3}}, {OT_F32, LIST(2), {0, 1}}},
     NULL},
    {"OneHot of more",
     ONE_HOT,
     {{OT_I64, LIST(2), {0, 2}}, {OT_I64, LIST(1), {4}}, {OT_F32, LIST(2), {0, 1}}},
     "4 classes, 3 were planned"},
    {"CenterCropPad", CROP, {{OT_F32, LIST(4), {7, 5, 6, 8}}, {OT_I64, LIST(1), {2}}}, NULL},
    {"CenterCropPad to fewer",
     CROP,
     {{OT_F32, LIST(4), {7, 5, 6, 8}}, {OT_I64, LIST(1), {1}}},
     "1 elements along an axis are wanted, 2 were planned"},
    {"Col2Im",
     COL2IM,
     {{OT_F32, {.ndim = 3, .dim = {1, 2, 2}}, {1, 2, 3, 4}},
      {OT_I64, LIST(1), {3}},
      {OT_I64, LIST(1), {2}}},
     NULL},
    {"Col2Im of another block",
     COL2IM,
     {{OT_F32, {.ndim = 3, .dim = {1, 2, 2}}, {1, 2, 3, 4}},
      {OT_I64, LIST(1), {3}},
      {OT_I64, LIST(1), {1}}},
     "block_shape asks for columns of shape [1,1,3], they have [1,2,2]"},
    {"Col2Im of another image",
     COL2IM,
     {{OT_F32, {.ndim = 3, .dim = {1, 2, 2}}, {1, 2, 3, 4}},
      {OT_I64, LIST(1), {4}},
      {OT_I64, LIST(1), {2}}},
     "4 elements along an axis of the image, 3 were planned"},
    {"NonMaxSuppression",
     BOXES,
     {{OT_F32, {.ndim = 3, .dim = {1, 2, 4}}, {0, 0, 1, 1, 0, 0, 1, 1}},
      {OT_F32, {.ndim = 3, .dim = {1, 1, 2}}, {0.5, 0.6}}},
     NULL},
    {"NonMaxSuppression of more",
     BOXES,
     {{OT_F32, {.ndim = 3, .dim = {1, 2, 4}}, {0, 0, 1, 1, 0, 5, 1, 6}},
      {OT_F32, {.ndim = 3, .dim = {1, 1, 2}}, {0.5, 0.6}}},
     "2 boxes are selected, 1 were planned"},
};

static void run_case(const planned_case *c)
{
    static const char head[] = "<ir_version: 8, opset_import: [\"\" : 24]> g ";
    ot_tensor *in[MAX_INPUTS] = {NULL}, *y = NULL;
    char text[500];
    ot_model *model;
    int n = 0;
    ot_status st;

    snprintf(text, sizeof(text), "%s%s", head, c->graph);
    model = read_text(text);
    while (n < MAX_INPUTS && c->in[n].dtype != OT_DTYPE_UNDEFINED) {
        in[n] = new_tensor(c->in[n].dtype, c->in[n].shape, c->in[n].elements);
        n++;
    }
    st = ot_model_run(model, NULL, (const ot_tensor *const *)in, n, &y, 1);
    if (c->error == NULL && st != OT_OK)
        fail_msg("%s: %s", c->name, ot_error_message());
    if (c->error != NULL && (st == OT_OK || strstr(ot_error_message(), c->error) == NULL))
        fail_msg("%s: '%s', expected '%s'", c->name, st == OT_OK ? "" : ot_error_message(),
                 c->error);
    ot_tensor_destroy(y);
    for (int i = 0; i < n; i++)
        ot_tensor_destroy(in[i]);
    ot_model_destroy(model);
}

static void runs_are_held_to_the_shapes_that_were_planned(void **state)
{
    (void)state;
    for (size_t i = 0; i < OT_COUNT(cases); i++)
        run_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_held_to_the_shapes_that_were_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
