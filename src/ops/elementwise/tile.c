// SPDX-License-Identifier: Apache-2.0
// The kernels that all operators with a tile share.
#include "ops/elementwise/elementwise.h"

// What prepare leaves for run: the tile, its attributes, and one plan per OT__MAX_OPERANDS inputs.
typedef struct tile_state {
    const ot_tile *tile;
    ot_dtype dtype;
    float attrs[OT_TILE_MAX_ATTRS];
    int n_plans;
    ot__elementwise plan[];
} tile_state;

enum { MORE_OPERANDS = OT__MAX_OPERANDS - 1 }; // beside the result so far

static int tile_count_plans(int n_in)
{
    return n_in <= OT__MAX_OPERANDS
               ? 1
               : 1 + (n_in - OT__MAX_OPERANDS + MORE_OPERANDS - 1) / MORE_OPERANDS;
}

// First input of plan k, not counting the result so far.
static int tile_first_input(int k)
{
    return k == 0 ? 0 : OT__MAX_OPERANDS + (k - 1) * MORE_OPERANDS;
}

typedef void (*tile_planner)(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                             int n_operands);

static void tile_plan_more(tile_state *s, const ot_prep *p, int k, tile_planner plan)
{
    const ot_arg *x[OT__MAX_OPERANDS] = {p->out[0]};
    const int first = tile_first_input(k), n = OT_MIN(MORE_OPERANDS, p->n_in - first);

    for (int i = 0; i < n; i++)
        x[i + 1] = p->in[first + i];
    plan(&s->plan[k], p->out[0], x, n + 1);
}

static ot_status prepare_tile(ot_prep *p, const ot_tile *tile, tile_planner plan)
{
    const int n_plans = tile_count_plans(p->n_in);
    tile_state *s = ot_prep_state(p, sizeof(*s) + (size_t)n_plans * sizeof(s->plan[0]));

    OT_TRY(p->status);
    s->tile = tile;
    s->dtype = p->out[0]->dtype;
    s->n_plans = n_plans;
    ot__op_tile_attrs(p->node, s->attrs);
    plan(&s->plan[0], p->out[0], p->in, OT_MIN(p->n_in, OT__MAX_OPERANDS));
    for (int k = 1; k < n_plans; k++)
        tile_plan_more(s, p, k, plan);
    return OT_OK;
}

ot_status ot__tile_prepare_as(ot_prep *p, const ot_tile *tile)
{
    return prepare_tile(p, tile, ot__elementwise_plan_f32);
}

ot_status ot__tile_prepare(ot_prep *p)
{
    return ot__tile_prepare_as(p, p->node->op->tile);
}

static ot_status tile_prepare_integers(ot_prep *p)
{
    return prepare_tile(p, p->node->op->tile, ot__elementwise_plan);
}

enum { CHUNK = 64 }; // elements on a thread's stack, of each operand
static const uint64_t top_bit = UINT64_C(1) << 63;

// Moves the unsigned 64-bit integers to the signed ones in order, and back, for operators that
// compare and choose.
static void tile_flip_top_bits(int64_t *values, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        values[k] = (int64_t)((uint64_t)values[k] ^ top_bit);
}

// The other integers through the tile of i64: what does not fit wraps around.
static void run_chunks(void *y, const void *const *x, int64_t n, const tile_state *s, bool is_moved)
{
    const size_t size = ot_dtype_size(s->dtype);
    int64_t buffer[OT__MAX_OPERANDS][CHUNK], result[CHUNK];
    const int64_t *xs[OT__MAX_OPERANDS] = {NULL};

    for (int64_t start = 0; start < n; start += CHUNK) {
        const int64_t m = OT_MIN(CHUNK, n - start);

        for (int i = 0; i < OT__MAX_OPERANDS; i++) {
            if (x[i] == NULL)
                continue;
            ot__convert(buffer[i], OT_I64, (const uint8_t *)x[i] + (size_t)start * size, s->dtype,
                        m);
            if (is_moved)
                tile_flip_top_bits(buffer[i], m);
            xs[i] = buffer[i];
        }
        s->tile->i64(result, xs, m, s->attrs);
        if (is_moved)
            tile_flip_top_bits(result, m);
        ot__convert((uint8_t *)y + (size_t)start * size, s->dtype, result, OT_I64, m);
    }
}

static void tile_piece_integers(void *y, const void *const *x, int64_t n, const void *context)
{
    const tile_state *s = context;

    run_chunks(y, x, n, s, s->dtype == OT_U64);
}

// Sums, differences and products have the same bits with and without a sign.
static void tile_piece_wrapping(void *y, const void *const *x, int64_t n, const void *context)
{
    run_chunks(y, x, n, context, false);
}

// f32 through the f64 tile, a few elements at a time.
static void tile_piece_f32_ref(void *y, const void *const *x, int64_t n, const void *context)
{
    double buffer[OT__MAX_OPERANDS][CHUNK], result[CHUNK];
    const double *xs[OT__MAX_OPERANDS] = {NULL};
    const tile_state *s = context;

    for (int64_t start = 0; start < n; start += CHUNK) {
        const int64_t m = OT_MIN(CHUNK, n - start);

        for (int i = 0; i < OT__MAX_OPERANDS; i++) {
            if (x[i] == NULL)
                continue;
            for (int64_t k = 0; k < m; k++)
                buffer[i][k] = (double)((const float *)x[i])[start + k];
            xs[i] = buffer[i];
        }
        s->tile->f64(result, xs, m, s->attrs);
        for (int64_t k = 0; k < m; k++)
            ((float *)y)[start + k] = (float)result[k];
    }
}

static ot_status tile_run_pieces(const ot_run *r, ot__piece piece)
{
    const tile_state *s = r->state;
    void *y = r->out[0]->data;

    for (int k = 0; k < s->n_plans; k++) {
        const void *x[OT__MAX_OPERANDS] = {NULL};
        const int own = k > 0; // the result so far comes first

        x[0] = y;
        for (int i = own; i < s->plan[k].n_operands; i++) {
            const ot_arg *arg = r->in[tile_first_input(k) + i - own];

            x[i] = arg == NULL ? NULL : arg->data;
        }
        ot__elementwise_run(&s->plan[k], y, x, piece, s);
    }
    return OT_OK;
}

#define TEMPLATE "ops/elementwise/tile.tmpl.h"
#include "kernels/by_float.tmpl.h"
#define TEMPLATE "ops/elementwise/tile.tmpl.h"
#define T int32_t
#define SUFFIX i32
#include "kernels/by_one.tmpl.h"
#define T int64_t
#define SUFFIX i64
#include "kernels/by_one.tmpl.h"

ot_status ot__tile_run_f32_ref(const ot_run *r)
{
    return tile_run_pieces(r, tile_piece_f32_ref);
}

static ot_status tile_run_integers(const ot_run *r)
{
    return tile_run_pieces(r, tile_piece_integers);
}

static ot_status tile_run_wrapping(const ot_run *r)
{
    return tile_run_pieces(r, tile_piece_wrapping);
}

// ---- division ----

// The first 0 among n elements of so many bits, or n.
#define FIND_ZERO(bits)                                                                            \
    static int64_t find_zero_##bits(const uint##bits##_t *x, int64_t n)                            \
    {                                                                                              \
        int64_t k = 0;                                                                             \
                                                                                                   \
        while (k < n && x[k] != 0)                                                                 \
            k++;                                                                                   \
        return k;                                                                                  \
    }
FIND_ZERO(8)
FIND_ZERO(16)
FIND_ZERO(32)
FIND_ZERO(64)
#undef FIND_ZERO

static int64_t find_zero(const ot_arg *x)
{
    switch (ot_dtype_size(x->dtype)) {
    case sizeof(uint8_t):
        return find_zero_8(x->data, x->count);
    case sizeof(uint16_t):
        return find_zero_16(x->data, x->count);
    case sizeof(uint32_t):
        return find_zero_32(x->data, x->count);
    default:
        return find_zero_64(x->data, x->count);
    }
}

ot_status ot__tile_run_divided(const ot_run *r)
{
    const ot_arg *divisor = r->in[1];
    const int64_t zero = find_zero(divisor);

    if (zero < divisor->count)
        return ot__error(OT_ERR_INVALID,
                         "integer division by zero at element %" PRId64 " of the divisor", zero);
    switch (divisor->dtype) {
    case OT_I32:
        return ot__tile_run_i32(r);
    case OT_I64:
        return ot__tile_run_i64(r);
    case OT_U64:
        return ot__pairs_run(r);
    default:
        return tile_run_wrapping(r);
    }
}

void ot__divide_u64(void *y, const void *a, const void *b, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        ((uint64_t *)y)[k] = ((const uint64_t *)a)[k] / ((const uint64_t *)b)[k];
}

void ot__remainder_u64(void *y, const void *a, const void *b, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        ((uint64_t *)y)[k] = ((const uint64_t *)a)[k] % ((const uint64_t *)b)[k];
}

// ---- entries ----

// Sums of more operands than that go through y, which must hold them.
static bool tile_fits(const ot_prep *p)
{
    return p->n_in <= OT__MAX_OPERANDS || p->out[0]->dtype == OT_F32 ||
           ot_prep_declines(p, "sums of that many operands would be rounded on the way");
}

static bool tile_has_vector_code(const ot_prep *p)
{
    if (p->node->op->tile->f32 == NULL)
        return ot_prep_declines(p, "the function has no vector code");
    return tile_fits(p);
}

#define REF(types, run) OT__REF_KERNEL(types, ot__tile_prepare, run)

#define TILE_KERNELS(run_integers)                                                                 \
    OT__SIMD_FLOATS_LAYOUTS_KERNEL(tile_has_vector_code, ot__stretched_layouts, ot__tile_prepare,  \
                                   ot__tile_run_f32),                                              \
        REF("T: f32", ot__tile_run_f32_ref), REF("T: f64", ot__tile_run_f64),                      \
        REF("T: i32", ot__tile_run_i32), REF("T: i64", ot__tile_run_i64),                          \
        OT__REF_KERNEL("T: i8 i16 u8 u16 u32 u64", tile_prepare_integers, run_integers)

const ot_kernel ot__tile_kernels[] = {TILE_KERNELS(tile_run_integers), {0}};
const ot_kernel ot__wrapping_kernels[] = {TILE_KERNELS(tile_run_wrapping), {0}};
