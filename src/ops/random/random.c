// SPDX-License-Identifier: Apache-2.0
// RandomNormal, RandomUniform and those of another tensor's shape; Bernoulli; Multinomial. What
// they draw is that of the step, or of their own seed.
#include "kernels/kernels.h"
#include "ops/move/move.h"
#include "ops/random/stream.h"

#include <math.h>
#include <string.h>

// ---- numbers of a distribution ----

static void random_infer(ot_infer *c)
{
    int n;
    const int64_t *dims = ot_attr_ints(ot_infer_node(c), "shape", &n);
    ot_shape y = {.ndim = n};
    ot_dtype dtype;

    if (n > OT_MAX_NDIM) {
        ot_infer_fail(c, "shape has %d axes, at most %d are possible", n, OT_MAX_NDIM);
        return;
    }
    for (int k = 0; k < n; k++) {
        y.dim[k] = dims[k];
        if (dims[k] < 0) {
            ot_infer_fail(c, "shape is %" PRId64 " at axis %d, expected 0 or more", dims[k], k);
            return;
        }
    }
    if (ot__infer_dtype_attr(c, "dtype", "T", OT_F32, &dtype))
        ot_infer_set(c, 0, dtype, &y);
}

static void random_like_infer(ot_infer *c)
{
    ot_dtype dtype;

    if (ot__infer_dtype_attr(c, "dtype", "T2", ot_infer_dtype(c, 0), &dtype))
        ot_infer_set(c, 0, dtype, ot_infer_shape(c, 0));
}

typedef struct random_state {
    ot__stream stream;
    ot__distribution distribution;
} random_state;

static ot_status random_prep(ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    const bool is_normal = strstr(node->op_type, "Normal") != NULL;
    random_state *state = ot__prep_stream(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->distribution =
        (ot__distribution){is_normal, (double)ot_attr_float(node, is_normal ? "mean" : "low"),
                           (double)ot_attr_float(node, is_normal ? "scale" : "high")};
    return OT_OK;
}

static ot_status random_run(const ot_run *r)
{
    const random_state *state = r->state;
    const ot_arg *y = r->out[0];

    ot__ref_random(y->data, y->dtype, state->distribution, y->count, ot__run_key(r));
    return OT_OK;
}

// ---- Bernoulli ----

typedef struct bernoulli_state {
    ot__stream stream;
    uint64_t one[2]; // the bytes of what stands for true
    size_t size;
} bernoulli_state;

static ot_status bernoulli_prep(ot_prep *p)
{
    const ot_dtype dtype = ot_prep_out(p, 0)->dtype;
    const double one = 1.0;
    bernoulli_state *state = ot__prep_stream(p, sizeof(*state));

    OT_TRY(ot__made(state));
    OT_TRY(ot__prep_element_size(p, ot_prep_out(p, 0), &state->size));
    return ot__convert(state->one, dtype, &one, OT_F64, 1)
               ? OT_OK
               : ot_prep_fail(p, OT_ERR_UNSUPPORTED, "no ones of type %s", ot_dtype_name(dtype));
}

static ot_status bernoulli_run(const ot_run *r)
{
    const bernoulli_state *state = r->state;
    const ot_arg *x = r->in[0];

    for (int64_t i = 0; i < x->count; i++) {
        const double p =
            x->dtype == OT_F64 ? ((double *)x->data)[i] : (double)((float *)x->data)[i];

        if (!(p >= 0 && p <= 1))
            return ot__error(OT_ERR_INVALID,
                             "input is %g at %" PRId64 ", expected a probability from 0 to 1", p,
                             i);
    }
    ot__ref_bernoulli(r->out[0]->data, x->data, x->dtype, state->one, state->size, x->count,
                      ot__run_key(r));
    return OT_OK;
}

// ---- Multinomial ----

static void multinomial_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    const int64_t n_samples = ot_attr_int(ot_infer_node(c), "sample_size");
    ot_dtype dtype;

    if (x->ndim != 2)
        ot_infer_fail(c, "input has %d axes, expected 2: batch, classes", x->ndim);
    else if (x->dim[1] == 0)
        ot_infer_fail(c, "input has no classes");
    else if (ot__infer_dtype_attr(c, "dtype", "T2", OT_I32, &dtype))
        ot_infer_set(c, 0, dtype, &OT_SHAPE(x->dim[0], n_samples));
}

static ot_status multinomial_prep(ot_prep *p)
{
    OT_TRY(ot__made(ot__prep_stream(p, sizeof(ot__stream))));
    ot_prep_scratch(p, (size_t)ot_prep_in(p, 0)->count * sizeof(double));
    return OT_OK;
}

static ot_status multinomial_run(const ot_run *r, void (*weight_sums)(double *sums, const void *x,
                                                                      int64_t batch, int64_t n))
{
    const ot_arg *x = r->in[0], *y = r->out[0];
    const int64_t batch = x->shape.dim[0], n = x->shape.dim[1];
    double *sums = r->scratch;

    if (n < 1 || y->count == 0)
        return OT_OK;
    weight_sums(sums, x->data, batch, n);
    for (int64_t b = 0; b < batch; b++)
        if (!(sums[b * n + n - 1] > 0 && isfinite(sums[b * n + n - 1])))
            return ot__error(OT_ERR_INVALID,
                             "row %" PRId64 " gives no probabilities: NaN, an infinite logarithm, "
                             "or none above 0",
                             b);
    ot__ref_multinomial(y->data, y->dtype, sums, batch, n, y->shape.dim[1], ot__run_key(r));
    return OT_OK;
}

// ---- records ----

#define RUN(symbol, type)                                                                          \
    static ot_status multinomial_run_##type(const ot_run *r)                                       \
    {                                                                                              \
        return multinomial_run(r, ot__ref_weight_sums_##type);                                     \
    }
OT_REDUCE_FLOATS(RUN, )

#define NUMBERS "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool"
#define SEED                                                                                       \
    {                                                                                              \
        .name = "seed", .kind = OT_ATTRIBUTE_FLOAT                                                 \
    }
#define DTYPE                                                                                      \
    {                                                                                              \
        .name = "dtype", .kind = OT_ATTRIBUTE_INT                                                  \
    }
static const ot_port random_in[] = {{0}};
static const ot_port random_like_in[] = {{"input", "T1", OT_PORT_NO_GRAD}, {0}};
static const ot_port random_like_out[] = {{"output", "T2", 0}, {0}};
#define SHAPE                                                                                      \
    {                                                                                              \
        .name = "shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED                      \
    }
#define NORMAL OT__FLOAT_ATTR("mean", 0.0F), OT__FLOAT_ATTR("scale", 1.0F)
#define UNIFORM OT__FLOAT_ATTR("low", 0.0F), OT__FLOAT_ATTR("high", 1.0F)
static const ot_attr_spec random_normal_attrs[] = {DTYPE, NORMAL, SEED, SHAPE, {0}};
static const ot_attr_spec random_uniform_attrs[] = {DTYPE, UNIFORM, SEED, SHAPE, {0}};
static const ot_attr_spec random_normal_like_attrs[] = {DTYPE, NORMAL, SEED, {0}};
static const ot_attr_spec random_uniform_like_attrs[] = {DTYPE, UNIFORM, SEED, {0}};
static const ot_attr_spec bernoulli_attrs[] = {DTYPE, SEED, {0}};
static const ot_attr_spec multinomial_attrs[] = {
    DTYPE,
    {.name = "sample_size",
     .kind = OT_ATTRIBUTE_INT,
     .flags = OT_ATTR_HAS_DEFAULT,
     .i = 1,
     .low = 0,
     .high = INFINITY},
    SEED,
    {0},
};
static const ot_kernel random_kernels[] = {OT__REF_KERNEL(NULL, random_prep, random_run), {0}};
static const ot_kernel bernoulli_kernels[] = {
    OT__REF_KERNEL("T1: f32 f64", bernoulli_prep, bernoulli_run), {0}};
static const ot_kernel multinomial_kernels[] = {
    OT__REF_KERNEL("T1: f32", multinomial_prep, multinomial_run_f32),
    OT__REF_KERNEL("T1: f64", multinomial_prep, multinomial_run_f64),
    {0},
};
#define RANDOM(name_, symbol, since_, rule, way, ports, output, types_, flags_)                    \
    const ot_op_def ot__op_##symbol[] = {{.name = name_,                                           \
                                          .since = since_,                                         \
                                          .inputs = ports,                                         \
                                          .outputs = output,                                       \
                                          .attrs = symbol##_attrs,                                 \
                                          .types = types_,                                         \
                                          .infer = rule##_infer,                                   \
                                          .kernels = way##_kernels,                                \
                                          .flags = OT_OP_NO_GRAD | OT_OP_RANDOM | (flags_)},       \
                                         {0}};
RANDOM("RandomNormal", random_normal, 1, random, random, random_in, ot__output_out,
       "T: f32 f64 f16 bf16", 0)
RANDOM("RandomUniform", random_uniform, 1, random, random, random_in, ot__output_out,
       "T: f32 f64 f16 bf16", 0)
RANDOM("RandomNormalLike", random_normal_like, 1, random_like, random, random_like_in,
       random_like_out, "T1: any string; T2: f32 f64 f16 bf16", OT_OP_SHAPE_ONLY)
RANDOM("RandomUniformLike", random_uniform_like, 1, random_like, random, random_like_in,
       random_like_out, "T1: any string; T2: f32 f64 f16 bf16", OT_OP_SHAPE_ONLY)
RANDOM("Bernoulli", bernoulli, 15, random_like, bernoulli, random_like_in, random_like_out,
       "T1: f32 f64; T2: " NUMBERS, 0)
RANDOM("Multinomial", multinomial, 7, multinomial, multinomial, random_like_in, random_like_out,
       "T1: f32 f64; T2: i32 i64", 0)
