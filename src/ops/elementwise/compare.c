// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/compare.def, IsNaN and IsInf.
#include "ops/elementwise/elementwise.h"

#define TYPES_BOOL "T: bool"
#define TYPES_NUMBERS "T: f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"
#define TYPES_ALL TYPES_NUMBERS " bool string"

// Extents are never negative, so a symbol differs from -1, which shape arithmetic likes to compare
// with.
static int64_t equal_known(ot_infer *c, int64_t a, int64_t b)
{
    (void)c;
    if (a == OT_DIM_UNKNOWN || b == OT_DIM_UNKNOWN)
        return OT_DIM_UNKNOWN;
    if (a == b)
        return 1;
    if (ot_dim_is_number(a) && ot_dim_is_number(b))
        return 0;
    return (ot_dim_is_number(a) && a < 0) || (ot_dim_is_number(b) && b < 0) ? 0 : OT_DIM_UNKNOWN;
}

static void infer_equal(ot_infer *c)
{
    ot__infer_broadcast_bool(c);
    ot__infer_known(c, equal_known);
}

static void infer_float_test(ot_infer *c)
{
    ot_infer_set(c, 0, OT_BOOL, ot_infer_shape(c, 0));
}

// ---- kernels ----

static ot_status compare_prepare(ot_prep *p, ot__comparison comparison)
{
    return ot__pairs_prepare(p, ot__ref_compare_find(comparison, p->in[0]->dtype));
}

static ot_status is_inf_prepare(ot_prep *p)
{
    static const ot__comparison tests[2][2] = {
        {OT__COMPARE_is_neither_inf, OT__COMPARE_is_negative_inf},
        {OT__COMPARE_is_positive_inf, OT__COMPARE_is_inf}};
    const bool positive = ot_attr_int(p->node, "detect_positive") != 0;

    return compare_prepare(p, tests[positive][ot_attr_int(p->node, "detect_negative") != 0]);
}

static ot_status is_nan_prepare(ot_prep *p)
{
    return compare_prepare(p, OT__COMPARE_is_nan);
}

static const ot_kernel is_nan_kernels[] = {OT__REF_KERNEL(NULL, is_nan_prepare, ot__pairs_run),
                                           {0}};
static const ot_kernel is_inf_kernels[] = {OT__REF_KERNEL(NULL, is_inf_prepare, ot__pairs_run),
                                           {0}};

// ---- opset 1 ----

static void compare_upgrade(ot_upgrade *u)
{
    if (ot_attr_given(ot_upgrade_node(u), "axis"))
        ot_upgrade_fail(u, "opset 1 with axis = %" PRId64 " is not supported, raise the model to 7",
                        ot_attr_int(ot_upgrade_node(u), "axis"));
    ot_upgrade_remove_attr(u, "broadcast");
}

static const ot_attr_spec broadcast_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT},
    OT__INT_ATTR("broadcast", 0),
    {0},
};

// ---- records ----

#define RECORD_NEW(name_, types_)
#define RECORD_OLD(name_, types_)                                                                  \
    {.name = #name_,                                                                               \
     .since = 1,                                                                                   \
     .inputs = ot__binary_in,                                                                      \
     .outputs = ot__bool_out,                                                                      \
     .attrs = broadcast_attrs,                                                                     \
     .types = TYPES_##types_,                                                                      \
     .upgrade = compare_upgrade},

#define OT_COMPARISON(name_, symbol, since_, age, operands, types_, infer_, more_flags, y)         \
    static ot_status symbol##_prepare(ot_prep *p)                                                  \
    {                                                                                              \
        return compare_prepare(p, OT__COMPARE_##symbol);                                           \
    }                                                                                              \
    static const ot_kernel symbol##_kernels[] = {                                                  \
        OT__REF_KERNEL(NULL, symbol##_prepare, ot__pairs_run), {0}};                               \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORD_##age(name_, types_){.name = #name_,                                                \
                                    .since = since_,                                               \
                                    .inputs = ot__##operands##_in,                                 \
                                    .outputs = ot__bool_out,                                       \
                                    .types = TYPES_##types_,                                       \
                                    .infer = infer_,                                               \
                                    .kernels = symbol##_kernels,                                   \
                                    .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | (more_flags)},     \
        {0}};
#define OT_FLOAT_TEST(symbol, y)
#include "kernels/elementwise/compare.def"

const ot_op_def ot__op_is_nan[] = {
    {.name = "IsNaN",
     .since = 9,
     .inputs = ot__unary_in,
     .outputs = ot__bool_out,
     .types = "T: f32 f64 f16 bf16",
     .infer = infer_float_test,
     .kernels = is_nan_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};

static const ot_attr_spec is_inf_attrs[] = {
    OT__INT_ATTR("detect_negative", 1),
    OT__INT_ATTR("detect_positive", 1),
    {0},
};
const ot_op_def ot__op_is_inf[] = {
    {.name = "IsInf",
     .since = 10,
     .inputs = ot__unary_in,
     .outputs = ot__bool_out,
     .attrs = is_inf_attrs,
     .types = "T: f32 f64 f16 bf16",
     .infer = infer_float_test,
     .kernels = is_inf_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT},
    {0},
};
