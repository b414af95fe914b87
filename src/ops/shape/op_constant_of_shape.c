// SPDX-License-Identifier: Apache-2.0
// ConstantOfShape: one value, 0 of f32 by default, in a tensor of a given shape.
#include "ops/move/move.h"

#include <string.h>

static ot_dtype value_type(const ot_node *node)
{
    const ot_tensor *value = ot_attr_tensor(node, "value");

    return value == NULL ? OT_F32 : ot_tensor_dtype(value);
}

static void constant_of_shape_infer(ot_infer *c)
{
    const ot_tensor *value = ot_attr_tensor(ot_infer_node(c), "value");
    const ot_dtype dtype = value_type(ot_infer_node(c));
    int64_t values[OT_MAX_KNOWN], count;
    ot_shape y;

    if (value != NULL && (ot_tensor_count(value) != 1 || ot__dtype_bits(dtype) == 0)) {
        ot_infer_fail(c, "value has %" PRId64 " elements of type %s, expected one number",
                      ot_tensor_count(value), ot_dtype_name(dtype));
        return;
    }
    if (!ot__infer_shape_input(c, 0, &y)) {
        ot_infer_set_unknown(c, 0, dtype);
        return;
    }
    ot_infer_set(c, 0, dtype, &y);
    if (!ot__dtype_is_int(dtype) || !ot__shape_is_static(&y) || !ot__shape_count(&y, &count) ||
        count > OT_MAX_KNOWN)
        return;
    for (int64_t i = 0; i < count; i++)
        values[i] = ot__tensor_get_i64(value, 0);
    ot_infer_set_values(c, 0, values, (int)count);
}

typedef struct fill_state {
    size_t size;
    uint64_t value[2]; // the bytes of one element
} fill_state;

static ot_status constant_of_shape_prep(ot_prep *p)
{
    const ot_tensor *value = ot_attr_tensor(ot_prep_node(p), "value");
    fill_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    OT_TRY(ot__prep_element_size(p, ot_prep_out(p, 0), &state->size));
    if (value != NULL && ot__dtype_is_packed(value->dtype))
        (void)ot__convert(state->value, ot_prep_out(p, 0)->dtype, value->data, value->dtype, 1);
    else if (value != NULL)
        memcpy(state->value, ot_tensor_data_const(value), state->size);
    return OT_OK;
}

static ot_status constant_of_shape_run(const ot_run *r)
{
    const fill_state *state = r->state;

    ot__ref_fill(r->out[0]->data, state->value, r->out[0]->count, state->size);
    return OT_OK;
}

static const ot_port constant_of_shape_in[] = {{"input", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec constant_of_shape_attrs[] = {
    {.name = "value", .kind = OT_ATTRIBUTE_TENSOR}, {0}};
static const ot_kernel constant_of_shape_kernels[] = {
    OT__REF_KERNEL(NULL, constant_of_shape_prep, constant_of_shape_run), {0}};
const ot_op_def ot__op_constant_of_shape[] = {
    {.name = "ConstantOfShape",
     .since = 9,
     .inputs = constant_of_shape_in,
     .outputs = ot__output_out,
     .attrs = constant_of_shape_attrs,
     .types = "T: any",
     .infer = constant_of_shape_infer,
     .kernels = constant_of_shape_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
