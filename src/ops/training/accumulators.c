// SPDX-License-Identifier: Apache-2.0
// Gradients added up: InPlaceAccumulator gives the sum so far and a gradient, unless the signal
// says to leave it out; InPlaceAccumulatorV2 adds a gradient to its accumulation buffer, or
// replaces what is there.
#include "ops/move/move.h"

enum { SUM, VALUE, SIGNAL }; // inputs; SUM: the sum so far, or the buffer; SIGNAL: or to overwrite

static bool accumulator_fits(ot_infer *c)
{
    return ot__shape_may_equal(ot_infer_shape(c, SUM), ot_infer_shape(c, VALUE));
}

static size_t accumulator_bytes(const ot_arg *x)
{
    return (size_t)x->count * ot_dtype_size(x->dtype);
}

static bool says(const ot_run *r, bool yes)
{
    const ot_arg *signal = r->n_in > SIGNAL ? r->in[SIGNAL] : NULL;

    return signal != NULL && signal->count > 0 && (*(const uint8_t *)signal->data != 0) == yes;
}

#define TEMPLATE "ops/training/accumulators.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- InPlaceAccumulator ----

static void in_place_accumulator_infer(ot_infer *c)
{
    if (accumulator_fits(c))
        ot_infer_set(c, 0, ot_infer_dtype(c, SUM), ot_infer_shape(c, SUM));
    else
        ot_infer_fail(c, "old_sum and value have different shapes");
}

static const ot_port in_place_accumulator_in[] = {
    {"old_sum", "T", OT_PORT_F32},
    {"value", "T", 0},
    {"update_signal", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port in_place_accumulator_out[] = {{"new_sum", "T", OT_PORT_F32}, {0}};
static const ot_kernel in_place_accumulator_kernels[] = {
    OT__REF_KERNELS(NULL, in_place_accumulator_run), {0}};
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

// ---- InPlaceAccumulatorV2 ----

static void in_place_accumulator_v2_infer(ot_infer *c)
{
    if (!accumulator_fits(c))
        ot_infer_fail(c, "buffer and value have different shapes");
    ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
    ot_infer_set(c, 1, ot_infer_dtype(c, SUM), ot_infer_shape(c, SUM));
}

// The buffer stays as it is: what is added takes its layout.
static void in_place_accumulator_v2_layouts(ot_prep *p)
{
    const ot_layout *layout = ot_prep_offered_in(p, SUM);

    ot_prep_want_in(p, SUM, layout);
    ot_prep_want_in(p, VALUE, layout);
    ot_prep_want_out(p, 1, layout);
}

static ot_status in_place_accumulator_v2_prep(ot_prep *p)
{
    return ot_prep_in(p, SUM)->count == ot_prep_in(p, VALUE)->count
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_INVALID, "buffer has %" PRId64 " elements, value %" PRId64,
                              ot_prep_in(p, SUM)->count, ot_prep_in(p, VALUE)->count);
}

static const ot_port in_place_accumulator_v2_in[] = {
    {"accumulation_buffer", "T", OT_PORT_STATE | OT_PORT_F32},
    {"value", "T", 0},
    {"overwrite_flag", "bool", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port in_place_accumulator_v2_out[] = {
    {"updated_flag", "bool", 0},
    {"accumulation_buffer_out", "T", OT_PORT_OPTIONAL | OT_PORT_F32},
    {0},
};
#define ACCUMULATOR_V2(types_, run_)                                                               \
    {                                                                                              \
        .name = "ref", .types = types_, .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,     \
        .layouts = in_place_accumulator_v2_layouts, .prepare = in_place_accumulator_v2_prep,       \
        .run = run_                                                                                \
    }
static const ot_kernel in_place_accumulator_v2_kernels[] = {
    ACCUMULATOR_V2("T: f32", in_place_accumulator_v2_run_f32),
    ACCUMULATOR_V2("T: f64", in_place_accumulator_v2_run_f64),
    {0},
};
const ot_op_def ot__op_in_place_accumulator_v2[] = {
    {.domain = OT__MS,
     .name = "InPlaceAccumulatorV2",
     .since = 1,
     .inputs = in_place_accumulator_v2_in,
     .outputs = in_place_accumulator_v2_out,
     .types = "T: f32 f64",
     .infer = in_place_accumulator_v2_infer,
     .kernels = in_place_accumulator_v2_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ACCUMULATE},
    {0},
};
