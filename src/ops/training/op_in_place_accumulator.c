// SPDX-License-Identifier: Apache-2.0
// InPlaceAccumulator: the sum so far and a gradient, unless the signal says to leave it out.
#include "ops/move/move.h"

enum { OLD_SUM, VALUE, SIGNAL }; // inputs

static void in_place_accumulator_infer(ot_infer *c)
{
    const ot_shape *sum = ot_infer_shape(c, OLD_SUM), *value = ot_infer_shape(c, VALUE);
    bool fits = sum->ndim == value->ndim;

    for (int k = 0; fits && k < sum->ndim; k++)
        fits = !ot_dim_is_number(sum->dim[k]) || !ot_dim_is_number(value->dim[k]) ||
               sum->dim[k] == value->dim[k];
    if (fits)
        ot_infer_set(c, 0, ot_infer_dtype(c, OLD_SUM), sum);
    else
        ot_infer_fail(c, "old_sum and value have different shapes");
}

static ot_status in_place_accumulator_run(const ot_run *r)
{
    const ot_arg *sum = r->in[OLD_SUM], *value = r->in[VALUE], *y = r->out[0];
    const ot_arg *signal = r->n_in > SIGNAL ? r->in[SIGNAL] : NULL;

    if (r->in[VALUE]->count != sum->count)
        return ot__error(OT_ERR_INVALID, "old_sum has %" PRId64 " elements, value %" PRId64,
                         sum->count, r->in[VALUE]->count);
    if (signal != NULL && signal->count > 0 && *(const uint8_t *)signal->data == 0)
        value = NULL;
    else if (y->data ==
             value->data) // the planner may have put the result there: the other one is added to it
        value = sum;
    if (value != sum)
        ot__ref_copy_bytes(y->data, sum->data, (size_t)y->count * ot_dtype_size(y->dtype));
    if (value != NULL && y->dtype == OT_F32)
        ot__ref_accumulate_f32(y->data, value->data, y->count);
    else if (value != NULL)
        ot__ref_accumulate_f64(y->data, value->data, y->count);
    return OT_OK;
}

static const ot_port in_place_accumulator_in[] = {
    {"old_sum", "T", OT_PORT_F32},
    {"value", "T", 0},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port in_place_accumulator_out[] = {{"new_sum", "T", OT_PORT_F32}, {0}};
static const ot_kernel in_place_accumulator_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .run = in_place_accumulator_run},
    {0},
};
const ot_op_def ot__op_in_place_accumulator[] = {
    {.domain = OT__MS,
     .name = "InPlaceAccumulator",
     .since = 1,
     .inputs = in_place_accumulator_in,
     .outputs = in_place_accumulator_out,
     .types = "T: f32 f64",
     .infer = in_place_accumulator_infer,
     .kernels = in_place_accumulator_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE},
    {0},
};
