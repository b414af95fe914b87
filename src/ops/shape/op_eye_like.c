// SPDX-License-Identifier: Apache-2.0
// EyeLike: ones on a diagonal of a matrix of the input's shape, zeros elsewhere.
#include "ops/move/move.h"

static void eye_like_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_dtype dtype;

    if (x->ndim != 2)
        ot_infer_fail(c, "input has %d axes, expected 2", x->ndim);
    else if (ot__infer_dtype_attr(c, "dtype", "T2", ot_infer_dtype(c, 0), &dtype))
        ot_infer_set(c, 0, dtype, x);
}

typedef struct eye_state {
    size_t size;
    uint64_t one[2]; // the bytes of one element
    int64_t diagonal;
} eye_state;

static ot_status eye_like_prep(ot_prep *p)
{
    const ot_arg *y = ot_prep_out(p, 0);
    const double one = 1.0;
    eye_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    OT_TRY(ot__prep_element_size(p, y, &state->size));
    // Within the matrix or next to it, so that sums with it cannot overflow.
    state->diagonal =
        OT_MAX(OT_MIN(ot_attr_int(ot_prep_node(p), "k"), y->shape.dim[1]), -y->shape.dim[0]);
    return ot__convert(state->one, y->dtype, &one, OT_F64, 1)
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_UNSUPPORTED, "no ones of type %s", ot_dtype_name(y->dtype));
}

static ot_status eye_like_run(const ot_run *r)
{
    const eye_state *state = r->state;
    const ot_arg *y = r->out[0];

    if (y->count > 0)
        ot__ref_eye(y->data, state->one, y->shape.dim[0], y->shape.dim[1], state->diagonal,
                    state->size);
    return OT_OK;
}

#define NUMBERS "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool"
static const ot_port eye_like_in[] = {{"input", "T1", OT_PORT_NO_GRAD}, {0}};
static const ot_port eye_like_out[] = {{"output", "T2", 0}, {0}};
static const ot_attr_spec eye_like_attrs[] = {
    {.name = "dtype", .kind = OT_ATTRIBUTE_INT},
    OT__INT_ATTR("k", 0),
    {0},
};
static const ot_kernel eye_like_kernels[] = {OT__REF_KERNEL(NULL, eye_like_prep, eye_like_run),
                                             {0}};
const ot_op_def ot__op_eye_like[] = {
    {.name = "EyeLike",
     .since = 9,
     .inputs = eye_like_in,
     .outputs = eye_like_out,
     .attrs = eye_like_attrs,
     .types = "T1: " NUMBERS "; T2: " NUMBERS,
     .infer = eye_like_infer,
     .kernels = eye_like_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_SHAPE_ONLY},
    {0},
};
