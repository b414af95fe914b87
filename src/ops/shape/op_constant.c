// SPDX-License-Identifier: Apache-2.0
// Constant: a value written down in the node. Folded before anything runs; the kernel serves the
// folding.
#include "op/constant.h"
#include "ops/move/move.h"

#include <string.h>

static void infer_constant(ot_infer *c, const ot_tensor *v)
{
    int64_t values[OT_MAX_KNOWN], count;

    if ((v->dtype == OT_I64 || v->dtype == OT_I32) && ot__shape_count(&v->shape, &count) &&
        count <= OT_MAX_KNOWN && ot__convert(values, OT_I64, v->data, v->dtype, count))
        ot_infer_set_values(c, 0, values, ot__all_numbers(values, (int)count) ? (int)count : 0);
}

static void constant_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    ot_tensor v;

    if (ot__constant_view(node, &v)) {
        ot_infer_set(c, 0, v.dtype, &v.shape);
        infer_constant(c, &v);
    } else {
        ot_infer_fail(c, ot_attr_given(node, "sparse_value") ? "sparse values are not supported"
                                                             : "no value is given");
    }
}

typedef struct constant_state {
    size_t n_bytes;
    unsigned char bytes[];
} constant_state;

// A copy: the plan outlives the graph. Texts stay in the model, which the plan keeps.
static ot_status constant_prep(ot_prep *p)
{
    constant_state *state;
    ot_tensor v;

    if (!ot__constant_view(ot_prep_node(p), &v))
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "a value of type %s cannot be computed with",
                            ot_dtype_name(ot_prep_out(p, 0)->dtype));
    state = ot_prep_state(p, sizeof(*state) + v.n_bytes);
    OT_TRY(ot__made(state));
    state->n_bytes = v.n_bytes;
    if (v.n_bytes > 0)
        memcpy(state->bytes, v.data, v.n_bytes);
    return OT_OK;
}

static ot_status constant_run(const ot_run *r)
{
    const constant_state *state = r->state;

    ot__ref_copy_bytes(r->out[0]->data, state->bytes, state->n_bytes);
    return OT_OK;
}

static const ot_port constant_in[] = {{0}};
static const ot_attr_spec constant_attrs[] = {
    {.name = "value", .kind = OT_ATTRIBUTE_TENSOR},
    {.name = "sparse_value", .kind = OT_ATTR_SPARSE_TENSOR},
    {.name = "value_int", .kind = OT_ATTRIBUTE_INT},
    {.name = "value_ints", .kind = OT_ATTRIBUTE_INTS},
    {.name = "value_float", .kind = OT_ATTRIBUTE_FLOAT},
    {.name = "value_floats", .kind = OT_ATTRIBUTE_FLOATS},
    {.name = "value_string", .kind = OT_ATTRIBUTE_STRING},
    {.name = "value_strings", .kind = OT_ATTRIBUTE_STRINGS},
    {0},
};
static const ot_kernel constant_kernels[] = {
    OT__REF_KERNEL("T: any string " OT__PACKED_TYPES, constant_prep, constant_run), {0}};
const ot_op_def ot__op_constant[] = {
    {.name = "Constant",
     .since = 1,
     .inputs = constant_in,
     .outputs = ot__output_out,
     .attrs = constant_attrs,
     .types = "T: any string",
     .infer = constant_infer,
     .kernels = constant_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
