// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/binary.def, and what they share.
#include "op/grad.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/formula.h"

#define TYPES_NUMBERS "T: f32 f64 i32 i64"
#define TYPES_ANY_NUMBERS "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64 f16 bf16"
#define INTEGER_TILES(symbol) .i32 = ot__ref_##symbol##_i32, .i64 = ot__ref_##symbol##_i64,
#define CODE_VECTOR(symbol) .f64 = ot__ref_##symbol##_f64, .f32 = ot__simd_##symbol##_f32,
#define CODE_ROUNDED_ONCE(symbol) CODE_VECTOR(symbol).rounds_once = true,

// ---- two operands ----

// What a record's tile points to.
typedef struct binary_row {
    ot_tile tile; // first: ot_op_def.tile
    ot__formula d[2];
} binary_row;

static void infer_sum(ot_infer *c)
{
    ot__infer_broadcast_known(c, ot_infer_add);
}

static void infer_difference(ot_infer *c)
{
    ot__infer_broadcast_known(c, ot_infer_sub);
}

static void infer_product(ot_infer *c)
{
    ot__infer_broadcast_known(c, ot_infer_mul);
}

static void binary_grad(ot_grad *g)
{
    const binary_row *row = (const binary_row *)(const void *)ot_grad_node(g)->op->tile;
    const ot__named names[] = {
        {"dy", ot_grad_dy(g, 0)}, {"a", ot_grad_x(g, 0)}, {"b", ot_grad_x(g, 1)}, {NULL, NULL}};

    for (int i = 0; i < 2; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot__emit_formula(g, &row->d[i], names, ot_grad_x(g, i)));
}

#define OT_BINARY(name_, symbol, since_, types_, code, infer_, c, da, db)                          \
    static const binary_row symbol##_row = {.tile = {CODE_##code(symbol) INTEGER_TILES(symbol)},   \
                                            .d = {{"", #da}, {"", #db}}};                          \
    const ot_op_def ot__op_##symbol[] = {{.name = #name_,                                          \
                                          .since = since_,                                         \
                                          .inputs = ot__binary_in,                                 \
                                          .outputs = ot__binary_out,                               \
                                          .types = TYPES_##types_,                                 \
                                          .infer = infer_,                                         \
                                          .kernels = ot__tile_kernels,                             \
                                          .tile = &symbol##_row.tile,                              \
                                          .grad = binary_grad,                                     \
                                          .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},             \
                                         {0}};

// ---- any number of operands ----

// Y = extreme of X0, X1, ...:  dY goes to the inputs that equal Y, in equal parts where several do.
static void share_among_equals(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0), *share;
    const int n = ot_grad_input_count(g);
    ot_value **masks = ot__arena_alloc(g->graph->model->arena, (size_t)n * sizeof(*masks));

    if (n == 1)
        ot_grad_set_dx(g, 0, dy);
    if (n == 1 || !ot__grad_made(g, masks != NULL))
        return;
    for (int i = 0; i < n; i++)
        masks[i] = ot_emit_cast(g, ot_emit2(g, "Equal", ot_grad_x(g, i), y), ot_value_dtype(y));
    share = ot_emit2(g, "Div", dy, ot_emit_output(g, ot_emit(g, "Sum", NULL, masks, n, 1), 0));
    for (int i = 0; i < n; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i,
                           ot_emit_sum_to(g, ot_emit2(g, "Mul", share, masks[i]), ot_grad_x(g, i)));
}

// Y = X0 + X1 + ...:  each dXi = dY, summed over the axes that were broadcast.
static void pass_to_all(ot_grad *g)
{
    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_sum_to(g, ot_grad_dy(g, 0), ot_grad_x(g, i)));
}

static const ot_port variadic_in[] = {{"data_0", "T", OT_PORT_VARIADIC}, {0}};

#define OT_VARIADIC(name_, symbol, types_, code, v, rule)                                          \
    static const ot_port symbol##_out[] = {{#symbol, "T", 0}, {0}};                                \
    static const ot_tile symbol##_tile = {CODE_##code(symbol) INTEGER_TILES(symbol)};              \
    const ot_op_def ot__op_##symbol[] = {{.name = #name_,                                          \
                                          .since = 6,                                              \
                                          .inputs = variadic_in,                                   \
                                          .outputs = symbol##_out,                                 \
                                          .types = TYPES_##types_,                                 \
                                          .infer = ot__infer_broadcast,                            \
                                          .kernels = ot__tile_kernels,                             \
                                          .tile = &symbol##_tile,                                  \
                                          .grad = rule,                                            \
                                          .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},             \
                                         {0}};

#define OT_BINARY_TILE(symbol, c)
#include "kernels/elementwise/binary.def"
