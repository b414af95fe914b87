// SPDX-License-Identifier: Apache-2.0
// A library of operators with one thing wrong in it, which OT_TEST_LIBRARY says.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/op.h"

static void infer(ot_infer *c)
{
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
}

static void grad(ot_grad *g)
{
    ot_grad_set_dx(g, 0, ot_grad_dy(g, 0));
}

static ot_status run(const ot_run *r)
{
    return ot_run_fail(r, OT_ERR_INVALID, "%d is not what it is run for", 7);
}

static void tile(double *y, const double *const *x, int64_t n, const float *attrs)
{
    (void)attrs;
    memcpy(y, x[0], (size_t)n * sizeof *y);
}

static const ot_port in[] = {{"X", "T", 0}, {0}}, out[] = {{"Y", "T", 0}, {0}};
static const ot_port unnamed[] = {{"", "T", 0}, {0}}, untyped[] = {{"X", NULL, 0}, {0}};
static const ot_port other_variable[] = {{"X", "U", 0}, {0}}, integers[] = {{"X", "i64", 0}, {0}};
static const ot_kernel ref[] = {
    {.name = "ref", .types = "T: f32", .flags = OT_KERNEL_REFERENCE, .run = run}, {0}};
static const ot_kernel only_fast[] = {{.name = "fast", .types = "T: f32", .run = run}, {0}};
static const ot_kernel no_run[] = {{.name = "ref", .flags = OT_KERNEL_REFERENCE}, {0}};
static const ot_tile copy_tile = {.f64 = tile}, empty_tile = {0};

static const ot_op_def right = {.domain = "wrong",
                                .name = "Good",
                                .since = 1,
                                .inputs = in,
                                .outputs = out,
                                .types = "T: f32",
                                .infer = infer,
                                .kernels = ref,
                                .grad = grad};

static const char *wanted;

static bool is(const char *what)
{
    return strcmp(wanted, what) == 0;
}

static void spoil_ports(ot_op_def *op)
{
    if (is("port"))
        op->inputs = unnamed;
    if (is("type"))
        op->inputs = untyped;
    if (is("variable"))
        op->inputs = other_variable;
    if (is("types"))
        op->types = "T f32";
    if (is("f64"))
        op->types = "T: f32 f64";
    if (is("outputs"))
        op->outputs = NULL;
}

static void spoil_kernels(ot_op_def *op)
{
    if (is("kernels") || strncmp(wanted, "tile", 4) == 0)
        op->kernels = NULL;
    if (is("reference"))
        op->kernels = only_fast;
    if (is("run"))
        op->kernels = no_run;
    if (strncmp(wanted, "tile", 4) == 0)
        op->tile = is("tile without f64") ? &empty_tile : &copy_tile;
    if (is("tile of i64"))
        op->types = "T: f32 i64";
    if (is("tile of another port"))
        op->inputs = integers;
}

static void spoil_rules(ot_op_def *op)
{
    if (is("infer"))
        op->infer = NULL;
    if (is("gradient"))
        op->grad = NULL;
    if (is("both"))
        op->flags = OT_OP_NO_GRAD;
    if (is("flags"))
        op->flags = 1U << 30;
    if (is("since"))
        op->since = 0;
    if (is("optimizer"))
        op->rule = (const ot_update_rule *)in;
}

static void name_it(ot_op_def *op)
{
    op->name = is("twice") ? "Good" : is("fine") ? "Fine" : "Thing";
    if (is("builtin")) {
        op->domain = "ai.onnx";
        op->name = "Relu";
    }
    if (is("loaded")) {
        op->domain = "example";
        op->name = "Center";
    }
}

const struct ot_op_library *ot_op_library(void)
{
    static ot_op_def good[2], thing[3];
    static const ot_op_def *ops[2];
    static struct ot_op_library library;

    wanted = getenv("OT_TEST_LIBRARY");
    good[0] = thing[0] = thing[1] = right;
    spoil_ports(thing);
    spoil_kernels(thing);
    spoil_rules(thing);
    name_it(thing);
    if (is("order")) {
        thing[0].since = 2;
        thing[1].name = "Thing";
    } else if (is("other")) {
        thing[1].since = 2;
        thing[1].name = "Another";
    } else {
        thing[1].name = NULL;
    }
    ops[0] = good;
    ops[1] = is("missing") ? NULL : thing;
    library = (struct ot_op_library){.abi = is("abi") ? OT_OP_ABI + 41 : OT_OP_ABI,
                                     .n_ops = is("none") ? 0 : 2,
                                     .ops = is("no ops") ? NULL : ops};
    return is("null") ? NULL : &library;
}
