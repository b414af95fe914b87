// SPDX-License-Identifier: Apache-2.0
// The records of kernels/elementwise/binary.def, what they share, and Mean.
#include "op/grad.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/formula.h"

#define TYPES_NUMBERS "T: f32 f64 i32 i64"
#define TYPES_ANY_INTEGERS "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64"
#define TYPES_ANY_NUMBERS "T: f32 f64 i32 i64 i8 i16 u8 u16 u32 u64 f16 bf16"
#define KERNELS_NUMBERS ot__tile_kernels
#define KERNELS_ANY_INTEGERS ot__wrapping_kernels
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

// Before opset 7 a slope of several elements ran along the channels, not along the last axis.
static void prelu_upgrade(ot_upgrade *u)
{
    const ot_node *node = ot_upgrade_node(u);
    const ot_value *slope = node->n_inputs > 1 ? node->inputs[1] : NULL;
    const ot_tensor *known = slope == NULL ? NULL : ot_value_constant(slope);

    ot_upgrade_remove_attr(u, "consumed_inputs");
    if (slope != NULL && (known == NULL || ot_tensor_count(known) != 1))
        ot_upgrade_fail(u, "a slope for each channel is not supported before opset 7");
}

static const ot_attr_spec consumed_attrs[] = {
    {.name = "consumed_inputs", .kind = OT_ATTRIBUTE_INTS},
    {0},
};

static const ot_port prelu_in[] = {{"X", "T", 0}, {"slope", "T", OT_PORT_WEIGHT}, {0}};

#define PORTS_NEW ot__binary_in
#define PORTS_PRELU prelu_in
#define RECORDS_NEW(name_)
#define RECORDS_PRELU(name_)                                                                       \
    {.name = #name_,                                                                               \
     .since = 1,                                                                                   \
     .inputs = PORTS_PRELU,                                                                        \
     .outputs = ot__binary_out,                                                                    \
     .attrs = consumed_attrs,                                                                      \
     .types = "T: f32 f64",                                                                        \
     .upgrade = prelu_upgrade},                                                                    \
        {.name = #name_,                                                                           \
         .since = 6,                                                                               \
         .inputs = PORTS_PRELU,                                                                    \
         .outputs = ot__binary_out,                                                                \
         .types = "T: f32 f64",                                                                    \
         .upgrade = prelu_upgrade},
#define OT_BINARY(name_, symbol, since_, age, types_, code, infer_, c, da, db)                     \
    static const binary_row symbol##_row = {.tile = {CODE_##code(symbol) INTEGER_TILES(symbol)},   \
                                            .d = {{"", #da}, {"", #db}}};                          \
    const ot_op_def ot__op_##symbol[] = {                                                          \
        RECORDS_##age(name_){.name = #name_,                                                       \
                             .since = since_,                                                      \
                             .inputs = PORTS_##age,                                                \
                             .outputs = ot__binary_out,                                            \
                             .types = TYPES_##types_,                                              \
                             .infer = infer_,                                                      \
                             .kernels = KERNELS_##types_,                                          \
                             .tile = &symbol##_row.tile,                                           \
                             .grad = binary_grad,                                                  \
                             .flags = OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT},                          \
        {0}};

// ---- any number of operands ----

// Y = extreme of X0, X1, ...:  dY goes to the inputs that equal Y, in equal parts where several do.
static void share_among_equals(ot_grad *g)
{
    ot_value *y = ot_grad_y(g, 0), *dy = ot_grad_dy(g, 0), *share;
    const int n = ot_grad_input_count(g);
    ot_value **masks = ot__arena_alloc(g->build.graph->model->arena, (size_t)n * sizeof(*masks));

    if (n == 1)
        ot_grad_set_dx(g, 0, dy);
    if (n == 1 || !ot__build_made(&g->build, masks != NULL))
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
#define OT_BOUNDED_TILE(symbol, is_within, c, beyond)
#include "kernels/elementwise/binary.def"

// ---- Mean: the sum, divided ----

static ot_status mean_prepare(ot_prep *p)
{
    return ot__tile_prepare_as(p, &sum_tile);
}

typedef struct mean_job {
    const ot_arg *y;
    int count;
} mean_job;

// A power of two divides exactly as its reciprocal multiplies.
static void divide_f32(float *y, int64_t n, float count, bool is_power_of_two)
{
    const float part = 1 / count;

    if (is_power_of_two)
        for (int64_t k = 0; k < n; k++)
            y[k] *= part;
    else
        for (int64_t k = 0; k < n; k++)
            y[k] /= count;
}

static void divide_piece(void *context, int64_t first, int64_t last)
{
    const mean_job *job = context;
    float *f32 = job->y->data;
    double *f64 = job->y->data;

    if (job->y->dtype == OT_F32)
        divide_f32(f32 + first, last - first, (float)job->count,
                   (job->count & (job->count - 1)) == 0);
    else
        for (int64_t k = first; k < last; k++)
            f64[k] /= job->count;
}

static ot_status mean_divide(const ot_run *r)
{
    mean_job job = {r->out[0], r->n_in};

    ot__parallel_for(r->out[0]->count, OT_PAR_MIN, divide_piece, &job);
    return OT_OK;
}

static ot_status mean_run_f32(const ot_run *r)
{
    OT_TRY(ot__tile_run_f32(r));
    return mean_divide(r);
}

static ot_status mean_run_f32_ref(const ot_run *r)
{
    OT_TRY(ot__tile_run_f32_ref(r));
    return mean_divide(r);
}

static ot_status mean_run_f64(const ot_run *r)
{
    OT_TRY(ot__tile_run_f64(r));
    return mean_divide(r);
}

// Y = (X0 + X1 + ...) / n:  each dXi = dY / n, summed over the axes that were broadcast.
static void mean_grad(ot_grad *g)
{
    ot_value *dy = ot_grad_dy(g, 0);
    ot_value *n = ot_emit_constant(g, (double)ot_grad_input_count(g), dy);
    ot_value *share = ot_emit2(g, "Div", dy, n);

    for (int i = 0; i < ot_grad_input_count(g); i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_sum_to(g, share, ot_grad_x(g, i)));
}

static void mean_upgrade(ot_upgrade *u)
{
    ot_upgrade_remove_attr(u, "consumed_inputs");
}

static const ot_port mean_out[] = {{"mean", "T", 0}, {0}};
static const ot_kernel mean_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, mean_prepare, mean_run_f32),
    OT__REF_KERNEL("T: f32", mean_prepare, mean_run_f32_ref),
    OT__REF_KERNEL("T: f64", mean_prepare, mean_run_f64),
    {0},
};
const ot_op_def ot__op_mean[] = {
    {.name = "Mean",
     .since = 1,
     .inputs = variadic_in,
     .outputs = mean_out,
     .attrs = consumed_attrs,
     .types = "T: f32 f64",
     .upgrade = mean_upgrade},
    {.name = "Mean",
     .since = 6,
     .inputs = variadic_in,
     .outputs = mean_out,
     .types = "T: f32 f64",
     .infer = ot__infer_broadcast,
     .kernels = mean_kernels,
     .grad = mean_grad,
     .flags = OT_OP_IN_PLACE},
    {0},
};
