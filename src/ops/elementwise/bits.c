// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/bits.def, and BitShift.
#include "ops/elementwise/elementwise.h"

#include <string.h>

// ---- kernels ----

static ot_status bits_prepare(ot_prep *p, ot__bits bits)
{
    return ot__pairs_prepare(p, ot__ref_bits_find(bits, p->in[0]->dtype));
}

static bool is_left(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "direction"), "LEFT") == 0;
}

static ot_status shift_prepare(ot_prep *p)
{
    return bits_prepare(p, is_left(p->node) ? OT__BITS_shift_left : OT__BITS_shift_right);
}

static const ot_kernel shift_kernels[] = {OT__REF_KERNEL(NULL, shift_prepare, ot__pairs_run), {0}};

// ---- records ----

#define INTEGERS "T: i8 i16 i32 i64 u8 u16 u32 u64"
#define OT_BITS(name_, symbol, since_, operands, y)                                                \
    static ot_status symbol##_prepare(ot_prep *p)                                                  \
    {                                                                                              \
        return bits_prepare(p, OT__BITS_##symbol);                                                 \
    }                                                                                              \
    static const ot_kernel symbol##_kernels[] = {                                                  \
        OT__REF_KERNEL(NULL, symbol##_prepare, ot__pairs_run), {0}};                               \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        {.name = #name_,                                                                           \
         .since = since_,                                                                          \
         .inputs = ot__##operands##_in,                                                            \
         .outputs = ot__##operands##_out,                                                          \
         .types = INTEGERS,                                                                        \
         .infer = ot__infer_broadcast,                                                             \
         .kernels = symbol##_kernels,                                                              \
         .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},                              \
        {0}};
#define OT_BITS_TILE(symbol, y)
#include "kernels/elementwise/bits.def"

static void shift_infer(ot_infer *c)
{
    const char *direction = ot_attr_string(ot_infer_node(c), "direction");

    if (!is_left(ot_infer_node(c)) && strcmp(direction, "RIGHT") != 0)
        ot_infer_fail(c, "direction must be LEFT or RIGHT, found '%s'", direction);
    ot__infer_broadcast(c);
}

static const ot_attr_spec shift_attrs[] = {
    {.name = "direction", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_REQUIRED}, {0}};
#define BIT_SHIFT(since_, types_)                                                                  \
    {                                                                                              \
        .name = "BitShift", .since = since_, .inputs = ot__binary_in, .outputs = ot__binary_out,   \
        .attrs = shift_attrs, .types = types_, .infer = shift_infer, .kernels = shift_kernels,     \
        .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT                                 \
    }
const ot_op_def ot__op_bit_shift[] = {
    BIT_SHIFT(11, "T: u8 u16 u32 u64"), BIT_SHIFT(28, INTEGERS), {0}};
