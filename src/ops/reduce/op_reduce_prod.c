// SPDX-License-Identifier: Apache-2.0
// ReduceProd: products over axes.
#include "ops/reduce/reduction.h"

static void reduce_prod_infer(ot_infer *c)
{
    ot__infer_reduce_known(c, ot_infer_mul);
}

static ot_status reduce_prod_prep(ot_prep *p)
{
    return ot__prep_reduce(p, OT__REDUCE_PROD);
}

// Y = x1 x2 ...:  dx1 = dY x2 x3 .... Without dividing by an element that is 0: the product goes
// over those that are not, and counts where no other one is 0.
static void reduce_prod_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0);
    ot_value *zero = ot_emit_constant(g, 0.0, x), *one = ot_emit_constant(g, 1.0, x);
    ot_value *is_zero = ot_emit2(g, "Equal", x, zero);
    ot_value *nonzero = ot_emit3(g, "Where", is_zero, one, x);
    ot_value *mask = ot_emit_cast(g, is_zero, ot_value_dtype(x));
    ot_value *n_zero = ot__reduce_count_where(g, mask);
    ot_value *product = ot__reduce_again(g, "ReduceProd", nonzero);
    ot_value *each = ot_emit2(g, "Mul", ot__reduce_restore(g, ot_grad_dy(g, 0)), product);
    ot_value *dx = ot_emit2(g, "Div", each, nonzero);

    ot_grad_set_dx(g, 0, ot_emit3(g, "Where", ot_emit2(g, "Equal", n_zero, mask), dx, zero));
}

static const ot_kernel reduce_prod_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = reduce_prod_prep,
     .run = ot__run_reduce},
    {0},
};
const ot_op_def ot__op_reduce_prod[] = {
    {.name = "ReduceProd",
     .since = 1,
     .inputs = ot__reduce_in_1,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs_1,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_prod_infer,
     .kernels = reduce_prod_kernels,
     .grad = reduce_prod_grad,
     .raise = ot__reduce_upgrade},
    {.name = "ReduceProd",
     .since = 18,
     .inputs = ot__reduce_in,
     .outputs = ot__reduce_out,
     .attrs = ot__reduce_attrs,
     .types = "T: f32 f64 i32 i64",
     .infer = reduce_prod_infer,
     .kernels = reduce_prod_kernels,
     .grad = reduce_prod_grad},
    {0},
};
