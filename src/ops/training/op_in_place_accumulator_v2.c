// SPDX-License-Identifier: Apache-2.0
// InPlaceAccumulatorV2: add a gradient to its accumulation buffer, or replace what is there.
#include "ops/move/move.h"

enum { BUFFER, VALUE, OVERWRITE }; // inputs

static void in_place_accumulator_v2_infer(ot_infer *c)
{
    const ot_shape *buffer = ot_infer_shape(c, BUFFER), *value = ot_infer_shape(c, VALUE);
    bool fits = buffer->ndim == value->ndim;

    for (int k = 0; fits && k < buffer->ndim; k++)
        fits = !ot_dim_is_number(buffer->dim[k]) || !ot_dim_is_number(value->dim[k]) ||
               buffer->dim[k] == value->dim[k];
    if (!fits) {
        ot_infer_fail(c, "buffer and value have different shapes");
        return;
    }
    ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
    ot_infer_set(c, 1, ot_infer_dtype(c, BUFFER), buffer);
}

// The buffer stays as it is: what is added takes its form.
static void in_place_accumulator_v2_forms(ot_prep *p)
{
    const ot_form *form = ot_prep_offered_in(p, BUFFER);

    ot_prep_want_in(p, BUFFER, form);
    ot_prep_want_in(p, VALUE, form);
    ot_prep_want_out(p, 1, form);
}

static ot_status in_place_accumulator_v2_prep(ot_prep *p)
{
    return ot_prep_in(p, BUFFER)->count == ot_prep_in(p, VALUE)->count
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_INVALID, "buffer has %" PRId64 " elements, value %" PRId64,
                              ot_prep_in(p, BUFFER)->count, ot_prep_in(p, VALUE)->count);
}

static void accumulate(const ot_run *r, size_t n_bytes)
{
    const ot_arg *buffer = r->in[BUFFER], *value = r->in[VALUE];
    const ot_arg *flag = r->n_in > OVERWRITE ? r->in[OVERWRITE] : NULL;

    if (value != buffer && value->data == buffer->data)
        return; // it was made there
    if (flag != NULL && flag->count > 0 && *(const uint8_t *)flag->data != 0)
        ot__ref_copy_bytes(buffer->data, value->data, n_bytes);
    else if (buffer->dtype == OT_F32)
        ot__ref_accumulate_f32(buffer->data, value->data, buffer->count);
    else
        ot__ref_accumulate_f64(buffer->data, value->data, buffer->count);
}

static ot_status in_place_accumulator_v2_run(const ot_run *r)
{
    const ot_arg *buffer = r->in[BUFFER];
    const size_t n_bytes = (size_t)buffer->count * ot_dtype_size(buffer->dtype);

    accumulate(r, n_bytes);
    if (r->out[0] != NULL)
        *(uint8_t *)r->out[0]->data = 1;
    if (r->n_out > 1 && r->out[1] != NULL)
        ot__ref_copy_bytes(r->out[1]->data, buffer->data, n_bytes);
    return OT_OK;
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
static const ot_kernel in_place_accumulator_v2_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .forms = in_place_accumulator_v2_forms,
     .prepare = in_place_accumulator_v2_prep,
     .run = in_place_accumulator_v2_run},
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
