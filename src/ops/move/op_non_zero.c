// SPDX-License-Identifier: Apache-2.0
// NonZero: the indices of all elements that are not 0, a row for each axis. How many there are only
// the elements say.
#include "ops/move/move.h"

static void non_zero_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const ot_tensor *constant = ot_infer_constant(c, 0);
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);
    int64_t count = ot_dim_unknown();

    if (constant != NULL) {
        count = ot__ref_count_nonzero(ot_tensor_data_const(constant), ot_tensor_dtype(constant),
                                      ot_tensor_count(constant));
    } else if (known != NULL && ot__all_numbers(known, n)) {
        count = 0;
        for (int i = 0; i < n; i++)
            count += known[i] != 0;
    }
    ot_infer_set(c, 0, OT_I64, &OT_SHAPE(x->ndim, count));
}

static ot_status non_zero_run(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    const int64_t count = ot__ref_count_nonzero(x->data, x->dtype, x->count);

    OT_TRY(ot__check_planned(count, "elements are not 0", y->shape.dim[1]));
    if (x->shape.ndim > 0)
        ot__ref_nonzero(y->data, x->data, x->dtype, &x->shape, count);
    return OT_OK;
}

static const ot_port non_zero_in[] = {{"X", "T", OT_PORT_NO_GRAD}, {0}};
static const ot_port non_zero_out[] = {{"Y", "i64", 0}, {0}};
static const ot_kernel non_zero_kernels[] = {OT__REF_KERNEL(NULL, NULL, non_zero_run), {0}};
const ot_op_def ot__op_non_zero[] = {
    {.name = "NonZero",
     .since = 9,
     .inputs = non_zero_in,
     .outputs = non_zero_out,
     .types = "T: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool",
     .infer = non_zero_infer,
     .kernels = non_zero_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
