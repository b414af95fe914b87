// SPDX-License-Identifier: Apache-2.0
// BitCast: the bytes of elements read as elements of another type of the same size.
#include <string.h>

#include "ops/move/move.h"

static void bit_cast_infer(ot_infer *c)
{
    enum { EIGHT = 8 }; // elements of any type fill whole bytes
    const ot_dtype from = ot_infer_dtype(c, 0);
    size_t n_from = 0, n_to = 0;
    ot_dtype to;

    if (!ot__infer_dtype_attr(c, "to", "T2", OT_DTYPE_UNDEFINED, &to))
        return;
    if (!ot__dtype_bytes(from, EIGHT, &n_from) || !ot__dtype_bytes(to, EIGHT, &n_to) ||
        n_from != n_to)
        ot_infer_fail(c, "to is %s, which has another size than %s", ot_dtype_name(to),
                      ot_dtype_name(from));
    else
        ot_infer_set(c, 0, to, ot_infer_shape(c, 0));
}

static void copy_bytes(void *context, int64_t first, int64_t last)
{
    const ot_run *r = context;

    memcpy((char *)r->out[0]->data + first, (const char *)r->in[0]->data + first,
           (size_t)(last - first));
}

static ot_status bit_cast_run(const ot_run *r)
{
    size_t n_bytes;

    if (ot__dtype_bytes(r->in[0]->dtype, r->in[0]->count, &n_bytes) &&
        r->in[0]->data != r->out[0]->data)
        ot__parallel_for((int64_t)n_bytes, OT_PAR_MIN, copy_bytes, (void *)r);
    return OT_OK;
}

// What the bits stand for is known to those that wrote them: they are not rounded on the way.
static const ot_port bit_cast_in[] = {{"input", "T1", OT_PORT_NO_GRAD | OT_PORT_F32}, {0}};
static const ot_port bit_cast_out[] = {{"output", "T2", OT_PORT_F32}, {0}};
static const ot_attr_spec bit_cast_attrs[] = {
    {.name = "to", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED}, {0}};
static const ot_kernel bit_cast_kernels[] = {
    OT__REF_KERNEL("T1: any " OT__PACKED_TYPES "; T2: any " OT__PACKED_TYPES, NULL, bit_cast_run),
    {0}};
const ot_op_def ot__op_bit_cast[] = {
    {.name = "BitCast",
     .since = 26,
     .inputs = bit_cast_in,
     .outputs = bit_cast_out,
     .attrs = bit_cast_attrs,
     .types = "T1: any; T2: any",
     .infer = bit_cast_infer,
     .kernels = bit_cast_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
