// SPDX-License-Identifier: Apache-2.0
// Range: start, start + delta, ... as long as it stays before limit.
#include "ops/move/move.h"

#include <math.h>

enum { START, LIMIT, DELTA }; // inputs

// Number of elements; -1 when it is no number a tensor can have.
static int64_t count_reals(double start, double limit, double delta)
{
    const double n = ceil((limit - start) / delta);

    return !(n > 0) && n == n ? 0 : n < 9e18 ? (int64_t)n : -1;
}

static int64_t count_ints(int64_t start, int64_t limit, int64_t delta)
{
    uint64_t distance, step;

    if (delta == 0)
        return -1;
    if (delta > 0 ? limit <= start : limit >= start)
        return 0;
    distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    step = delta > 0 ? (uint64_t)delta : (uint64_t)0 - (uint64_t)delta;
    distance = (distance - 1) / step + 1;
    return distance > INT64_MAX ? -1 : (int64_t)distance;
}

// Extent of integers that may be symbols.
static int64_t symbolic_range_count(ot_infer *c, int64_t start, int64_t limit, int64_t delta)
{
    const int64_t distance = ot_infer_sub(c, limit, start);

    if (!ot_dim_is_number(delta) || delta <= 0)
        return ot_dim_unknown();
    return delta == 1 ? distance : ot_infer_div(c, ot_infer_add(c, distance, delta - 1), delta);
}

// The three inputs as numbers, constants also where they are too low for an extent; else false.
static bool read_range_inputs(ot_infer *c, int64_t *number)
{
    for (int i = 0; i < 3; i++) {
        const ot_tensor *constant = ot_infer_constant(c, i);
        int n;
        const int64_t *known = ot_infer_values(c, i, &n);

        if (constant != NULL && ot_tensor_count(constant) == 1)
            number[i] = ot__tensor_get_i64(constant, 0);
        else if (known != NULL && n == 1 && ot_dim_is_number(known[0]))
            number[i] = known[0];
        else
            return false;
    }
    return true;
}

static void infer_ints(ot_infer *c)
{
    int n[3];
    const int64_t *in[3] = {ot_infer_values(c, START, &n[0]), ot_infer_values(c, LIMIT, &n[1]),
                            ot_infer_values(c, DELTA, &n[2])};
    int64_t v[3], number[3], count, values[OT_MAX_KNOWN];

    for (int i = 0; i < 3; i++)
        v[i] = in[i] == NULL || n[i] != 1 ? ot_dim_unknown() : in[i][0];
    if (read_range_inputs(c, number)) {
        count = count_ints(number[START], number[LIMIT], number[DELTA]);
        if (count < 0) {
            ot_infer_fail(c, "from %" PRId64 " to %" PRId64 " by %" PRId64 " has %s", number[START],
                          number[LIMIT], number[DELTA],
                          number[DELTA] == 0 ? "no end" : "too many elements");
            return;
        }
    } else {
        count = symbolic_range_count(c, v[START], v[LIMIT], v[DELTA]);
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, START), &OT_SHAPE(count));
    if (!ot_dim_is_number(count) || count > OT_MAX_KNOWN)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = ot_infer_add(c, v[START], ot_infer_mul(c, i, v[DELTA]));
    ot_infer_set_values(c, 0, values, (int)count);
}

static void infer_reals(ot_infer *c)
{
    int64_t count = ot_dim_unknown();
    const ot_tensor *in[3];

    for (int i = 0; i < 3; i++)
        in[i] = ot_infer_constant(c, i);
    if (in[0] != NULL && in[1] != NULL && in[2] != NULL && ot_tensor_count(in[0]) == 1 &&
        ot_tensor_count(in[1]) == 1 && ot_tensor_count(in[2]) == 1) {
        count = count_reals(ot__tensor_get_f64(in[0], 0), ot__tensor_get_f64(in[1], 0),
                            ot__tensor_get_f64(in[2], 0));
        if (count < 0) {
            ot_infer_fail(c, "from %g to %g by %g has no end", ot__tensor_get_f64(in[0], 0),
                          ot__tensor_get_f64(in[1], 0), ot__tensor_get_f64(in[2], 0));
            return;
        }
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, START), &OT_SHAPE(count));
}

static void range_infer(ot_infer *c)
{
    for (int i = 0; i < 3; i++) {
        const ot_shape *x = ot_infer_shape(c, i);

        if (x->ndim > 1 || (x->ndim == 1 && ot_dim_is_number(x->dim[0]) && x->dim[0] != 1))
            ot_infer_fail(c, "input %d must be a scalar", i);
    }
    if (ot__dtype_is_int(ot_infer_dtype(c, START)))
        infer_ints(c);
    else
        infer_reals(c);
}

static ot_status range_run_ints(const ot_run *r)
{
    const ot_arg *y = r->out[0];
    int64_t in[3];

    for (int i = 0; i < 3; i++)
        ot__convert(&in[i], OT_I64, r->in[i]->data, y->dtype, 1);
    OT_TRY(ot__check_planned(count_ints(in[START], in[LIMIT], in[DELTA]), "elements", y->count));
    ot__ref_range_ints(y->data, y->dtype, in[START], in[DELTA], y->count);
    return OT_OK;
}

static ot_status range_run_reals(const ot_run *r)
{
    const ot_arg *y = r->out[0];
    double in[3];

    for (int i = 0; i < 3; i++)
        ot__convert(&in[i], OT_F64, r->in[i]->data, y->dtype, 1);
    OT_TRY(ot__check_planned(count_reals(in[START], in[LIMIT], in[DELTA]), "elements", y->count));
    ot__ref_range_reals(y->data, y->dtype, in[START], in[DELTA], y->count);
    return OT_OK;
}

static const ot_port range_in[] = {
    {"start", "T", OT_PORT_NO_GRAD},
    {"limit", "T", OT_PORT_NO_GRAD},
    {"delta", "T", OT_PORT_NO_GRAD},
    {0},
};
static const ot_attr_spec range_attrs_27[] = {OT__INT_ATTR("stash_type", 1), {0}};
static const ot_kernel range_kernels[] = {
    OT__REF_KERNEL("T: i16 i32 i64", NULL, range_run_ints),
    OT__REF_KERNEL("T: f32 f64 f16 bf16", NULL, range_run_reals),
    {0},
};
#define RANGE                                                                                      \
    .name = "Range", .inputs = range_in, .outputs = ot__output_out, .infer = range_infer,          \
    .kernels = range_kernels, .flags = OT_OP_NO_GRAD
const ot_op_def ot__op_range[] = {
    {RANGE, .since = 11, .types = "T: f32 f64 i16 i32 i64"},
    {RANGE, .since = 27, .types = "T: f32 f64 i16 i32 i64 f16 bf16", .attrs = range_attrs_27},
    {0},
};
