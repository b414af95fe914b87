// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/unary.def, and what they share.
#include "op/expand.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/formula.h"

// What a record's tile points to.
typedef struct unary_row {
    ot_tile tile;              // first: ot_op_def.tile
    ot__formula dx;            // of dy, x and y
    const char *gradient_name; // of the operator, when dX is one's
} unary_row;

static const unary_row *unary_row_of(const ot_grad *g)
{
    return (const unary_row *)(const void *)ot_grad_node(g)->op->tile;
}

// ---- gradient rules ----

static void unary_by_formula(ot_grad *g)
{
    const ot__named names[] = {
        {"dy", ot_grad_dy(g, 0)}, {"x", ot_grad_x(g, 0)}, {"y", ot_grad_y(g, 0)}, {NULL, NULL}};

    ot_grad_set_dx(g, 0, ot__emit_formula(g, &unary_row_of(g)->dx, names, NULL));
}

static void unary_by_operator(ot_grad *g, ot_value *of)
{
    ot_value *const inputs[] = {ot_grad_dy(g, 0), of};
    ot_node *node = ot_emit(g, unary_row_of(g)->gradient_name, NULL, inputs, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static void unary_by_x(ot_grad *g)
{
    unary_by_operator(g, ot_grad_x(g, 0));
}

// X need not be kept.
static void unary_by_y(ot_grad *g)
{
    unary_by_operator(g, ot_grad_y(g, 0));
}

static void leaky_relu_by_sign(ot_grad *g);

// ---- gradient operators in ONNX's: dX of dY and X or Y ----

static void unary_gradient_expand(ot_grad *g)
{
    ot_value *of = ot_grad_x(g, 1);
    const ot__named names[] = {{"dy", ot_grad_x(g, 0)}, {"x", of}, {"y", of}, {NULL, NULL}};

    ot_expand_set(g, 0, ot__emit_formula(g, &unary_row_of(g)->dx, names, NULL));
}

static void biased_gradient_expand(ot_grad *g)
{
    ot_value *x = ot_emit2(g, "Add", ot_grad_x(g, 1), ot_grad_x(g, 2));
    const ot__named names[] = {{"dy", ot_grad_x(g, 0)}, {"x", x}, {NULL, NULL}};

    ot_expand_set(g, 0, ot__emit_formula(g, &unary_row_of(g)->dx, names, NULL));
}

// ---- opset 1: `consumed_inputs` said which memory might be reused ----

static void unary_upgrade(ot_upgrade *u)
{
    ot_upgrade_remove_attr(u, "consumed_inputs");
}

static void selu_upgrade(ot_upgrade *u)
{
    ot_upgrade_remove_attr(u, "consumed_inputs");
    if (!ot_attr_given(ot_upgrade_node(u), "alpha"))
        ot_upgrade_set_float(u, "alpha", 1.6732F);
    if (!ot_attr_given(ot_upgrade_node(u), "gamma"))
        ot_upgrade_set_float(u, "gamma", 1.0507F);
}

// ---- the records ----

static const ot_port biased_gradient_in[] = {{"dY", "T", 0}, {"X", "T", 0}, {"B", "T", 0}, {0}};

#define TEXT(...) TEXT_EXPANDED(__VA_ARGS__)
#define TEXT_EXPANDED(...) #__VA_ARGS__

#define TYPES_FLOATS "T: f32 f64"
#define TYPES_SIGNED "T: f32 f64 i32 i64 i8 i16"
#define TYPES_NUMBERS "T: f32 f64 i32 i64 i8 i16 u8 u16 u32"
#define INTEGER_TILES_FLOATS(symbol)
#define INTEGER_TILES_SIGNED INTEGER_TILES_NUMBERS
#define INTEGER_TILES_NUMBERS(symbol) .i32 = ot__ref_##symbol##_i32, .i64 = ot__ref_##symbol##_i64,
#define CODE_VECTOR(symbol) .f64 = ot__ref_##symbol##_f64, .f32 = ot__simd_##symbol##_f32,
#define CODE_CIRCLE CODE_VECTOR
#define CODE_ROUNDED_ONCE(symbol) CODE_VECTOR(symbol).rounds_once = true,

// The first attribute is opset 1's alone.
#define UNPACKED(...) __VA_ARGS__
#define ATTRS(symbol, attributes)                                                                  \
    static const ot_attr_spec symbol##_attrs[] = {                                                 \
        {.name = "consumed_inputs", .kind = OT_ATTRIBUTE_INTS}, UNPACKED attributes{0}};
#define ATTR(attr, value) OT__FLOAT_ATTR(#attr, (value)),

#define RULE_NO_GRADIENT(text)
#define RULE_BY_FORMULA(text) .dx = {"", text},
#define RULE_BY_x(operator) .gradient_name = operator,
#define RULE_BY_y RULE_BY_x
#define RULE_BY_y_LATE RULE_BY_x
#define RULE_BY_SIGN_OF_Y RULE_BY_x
#define FIELDS_NO_GRADIENT .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT | OT_OP_NO_GRAD
#define FIELDS_GRADIENT(rule) .grad = rule, .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT
#define FIELDS_BY_FORMULA FIELDS_GRADIENT(unary_by_formula)
#define FIELDS_BY_x FIELDS_GRADIENT(unary_by_x)
#define FIELDS_BY_y FIELDS_GRADIENT(unary_by_y)
#define FIELDS_BY_y_LATE FIELDS_BY_y | OT_OP_LATE_PARTS
#define FIELDS_BY_SIGN_OF_Y FIELDS_GRADIENT(leaky_relu_by_sign)

#define RECORD_NEW(domain_, name_, symbol)
#define RECORD_OLD(domain, name, symbol) OLD_RECORD(domain, name, symbol, unary_upgrade)
#define RECORD_OLD_SELU(domain, name, symbol) OLD_RECORD(domain, name, symbol, selu_upgrade)
#define OLD_RECORD(domain_, name_, symbol, upgrade_)                                               \
    {.domain = domain_,                                                                            \
     .name = #name_,                                                                               \
     .since = 1,                                                                                   \
     .inputs = ot__unary_in,                                                                       \
     .outputs = ot__unary_out,                                                                     \
     .attrs = symbol##_attrs,                                                                      \
     .types = TYPES_FLOATS,                                                                        \
     .upgrade = upgrade_},
#define OT_FUNCTION(domain_, name_, symbol, since_, age, types_, code, attributes, given, y, rule, \
                    gradient)                                                                      \
    ATTRS(symbol, attributes)                                                                      \
    static const unary_row symbol##_row = {                                                        \
        .tile = {CODE_##code(symbol) INTEGER_TILES_##types_(symbol)}, RULE_##rule(gradient)};      \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORD_##age(domain_, name_, symbol){.domain = domain_,                                    \
                                             .name = #name_,                                       \
                                             .since = since_,                                      \
                                             .inputs = ot__unary_in,                               \
                                             .outputs = ot__unary_out,                             \
                                             .attrs = symbol##_attrs + 1,                          \
                                             .types = TYPES_##types_,                              \
                                             .infer = ot__infer_same_shape,                        \
                                             .kernels = ot__tile_kernels,                          \
                                             .tile = &symbol##_row.tile,                           \
                                             FIELDS_##rule},                                       \
        {0}};

#define GRADIENT_RECORD(domain_, name_, symbol, in, infer_, expand_)                               \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        {.domain = domain_,                                                                        \
         .name = name_,                                                                            \
         .since = 1,                                                                               \
         .inputs = in,                                                                             \
         .outputs = ot__gradient_out,                                                              \
         .attrs = symbol##_attrs + 1,                                                              \
         .types = TYPES_FLOATS,                                                                    \
         .infer = infer_,                                                                          \
         .kernels = ot__tile_kernels,                                                              \
         .tile = &symbol##_row.tile,                                                               \
         .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT,                               \
         .expand = expand_},                                                                       \
        {0},                                                                                       \
    };
#define OT_GRADIENT(domain, name, symbol, code, attributes, given, from, formula)                  \
    ATTRS(symbol, attributes)                                                                      \
    static const unary_row symbol##_row = {.tile = {CODE_##code(symbol)},                          \
                                           .dx = {TEXT(given), TEXT(formula)}};                    \
    GRADIENT_RECORD(domain, #name, symbol, ot__gradient_in_##from, ot__infer_gradient,             \
                    unary_gradient_expand)
#define OT_BIASED(name, symbol, given, y, formula) BIASED(#name, symbol##_grad, given, formula)
#define BIASED(name, symbol, given, formula)                                                       \
    ATTRS(symbol, ())                                                                              \
    static const unary_row symbol##_row = {.tile = {CODE_VECTOR(symbol)},                          \
                                           .dx = {TEXT(given), TEXT(formula)}};                    \
    GRADIENT_RECORD("com.microsoft", name "Grad_dX", symbol, biased_gradient_in,                   \
                    ot__infer_bias_gradient, biased_gradient_expand)
#define OT_SLOPE(symbol, attributes, parts, given, y, formula)
#include "kernels/elementwise/unary.def"

// Y has the sign of X where alpha is positive; else X tells.
static void leaky_relu_by_sign(ot_grad *g)
{
    const float alpha = ot_attr_float(ot_grad_node(g), "alpha");
    ot_value *const inputs[] = {ot_grad_dy(g, 0), ot_grad_y(g, 0)};
    const ot__named names[] = {{"dy", ot_grad_dy(g, 0)}, {"y", ot_grad_x(g, 0)}, {NULL, NULL}};
    ot_node *node;

    if (alpha > 0.0F) {
        node = ot_emit(g, "com.microsoft.LeakyReluGrad", NULL, inputs, 2, 1);
        ot_emit_float(g, node, "alpha", alpha);
        ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
    } else {
        ot_grad_set_dx(g, 0, ot__emit_formula(g, &leaky_relu_grad_row.dx, names, NULL));
    }
}
