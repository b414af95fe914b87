// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/bits.def, and BitShift.
#include "ops/elementwise/elementwise.h"

#include <string.h>

// ---- kernels ----

typedef struct bits_state {
    ot__elementwise plan; // first: ot__pieces_run
    ot__bits_function function;
} bits_state;

static ot_status bits_prepare_as(ot_prep *p, ot__bits bits)
{
    bits_state *s = ot_prep_state(p, sizeof(*s));

    if (s == NULL)
        return p->status;
    ot__elementwise_plan(&s->plan, p->out[0], p->in, p->n_in);
    s->function = ot__ref_bits_find(bits, p->in[0]->dtype);
    return OT_OK;
}

static ot_status bits_prepare(ot_prep *p)
{
    static const char *const names[OT__N_BITS] = {
#define OT_BITS(name, symbol, since, operands, y) [OT__BITS_##symbol] = #name,
#define OT_BITS_TILE(symbol, y) [OT__BITS_##symbol] = #symbol,
#include "kernels/elementwise/bits.def"
    };
    int i = 0;

    while (strcmp(names[i], p->node->op->name) != 0)
        i++;
    return bits_prepare_as(p, (ot__bits)i);
}

static bool is_left(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "direction"), "LEFT") == 0;
}

static ot_status shift_prepare(ot_prep *p)
{
    return bits_prepare_as(p, is_left(p->node) ? OT__BITS_shift_left : OT__BITS_shift_right);
}

static void bits_piece(void *y, const void *const *x, int64_t n, const void *context)
{
    ((const bits_state *)context)->function(y, x[0], x[1], n);
}

static ot_status bits_run(const ot_run *r)
{
    ot__pieces_run(r, bits_piece, r->state);
    return OT_OK;
}

static const ot_kernel bits_kernels[] = {OT__REF_KERNEL(NULL, bits_prepare, bits_run), {0}};
static const ot_kernel shift_kernels[] = {OT__REF_KERNEL(NULL, shift_prepare, bits_run), {0}};

// ---- records ----

#define INTEGERS "T: i8 i16 i32 i64 u8 u16 u32 u64"
#define OT_BITS(name_, symbol, since_, operands, y)                                                \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        {.name = #name_,                                                                           \
         .since = since_,                                                                          \
         .inputs = ot__##operands##_in,                                                            \
         .outputs = ot__##operands##_out,                                                          \
         .types = INTEGERS,                                                                        \
         .infer = ot__infer_broadcast,                                                             \
         .kernels = bits_kernels,                                                                  \
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
