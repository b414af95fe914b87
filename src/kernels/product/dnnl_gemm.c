// SPDX-License-Identifier: Apache-2.0
// Products by oneDNN's matmul, and where it is ahead of our own kernels.
#include <string.h>

#include "kernels/dnnl_primitives.h"

enum { MAX_AXES = 3 }; // batches, rows, columns

// Everything that the primitive of one problem is made from.
typedef struct gemm_parts {
    dnnl_memory_desc_t a, b, b_any, bias, y;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd;
} gemm_parts;

static bool is_small(int64_t extent)
{
    return extent >= 1 && extent <= INT32_MAX;
}

bool ot__dnnl_can_gemm(const ot__dnnl_gemm *p)
{
    return is_small(p->g->m) && is_small(p->g->n) && is_small(p->g->k) && is_small(p->n_batches);
}

// ---- where it is ahead ----

// Multiplications of the smallest problem: oneDNN takes 1.5 MB once and 0.1 MB for each primitive,
// which must be worth it. Of one product, and of batches, where it is further ahead.
static const double LEAST_WORK = 0x1.8p27, LEAST_WORK_OF_BATCHES = 0x1p25;

// On AMD's processors but Zen 4, where a is transposed: from so many rows of a on, the faster
// kernel pays for packing b, where its rows are so long that they fall on the same lines of the
// cache.
enum { ROWS_TO_PACK = 512, LONG_ROW = 1024 };

// And where it is not, of as many rows, columns and elements of k: blocks of b are then read from
// memory again and again.
enum { LARGE = 3072 };

// With fewer rows of a our own code takes too long to transpose b, but on Intel's processors and
// Zen 4.
enum { ROWS_TO_TRANSPOSE = 1024 };

// With AVX2 oneDNN is ahead in batches of at most so many rows and columns.
enum { FEW_ROWS = 256 };

// GFLOP/s of one thread, the best of many, by ./dev bench kernels, oneDNN 2.6.3:
//
//                           Zen 5, AVX-512             Intel with AMX, AVX-512
//                           own  row-major  packing    own  row-major  packing
//                           before
//   a * b     1024 256 1024 247  251        253        206  204        212
//             1024 768 256  258  263        263        207  203        223
//             512 768 3072  245  213        230        197  184        180
//             512 3072 768                             202  90         179
//   a * b^T   1024 256 768  254  253        254        198  187        198
//             1024 256 1024                            210  205        208
//             1024 1024 256 255  256        257        202  203        202
//             512 768 3072  240  254        231        210  205        182
//             512 3072 768  220  242        228        206  201        180
//             768 768 768                              192  181        179
//             512 768 30522                            160  177        161
//   a^T * b   256 1024 1024 237  248        237        203  194        185
//             1024 256 1024 241  250        250        187  182        175
//             1024 1024 ^T  226  233        239        205  191        194
//             768 3072 512  237  231        245        201  78         185
//   a * b     3072^3        225  180        235
//             4096^3        235  225        252        203  188        195
//   a * b^T   3072^3        223  228        230
//             4096^3        235  237        243        205  200        197
//   64 times  128 128 32    225  257                   143  177
//             128 32 128    242  260                   162  176
//             128 32 128 ^T 240  209                   125  135
//
// Since b is read where it lies, another Intel with AVX-512 (peak 175), medians:
//
//                           own  row-major  packing
//   a * b     1024 256 1024 163  159        155
//             1024 768 256  159  163        156
//             1024 1024 256 159  148        150
//             4096 512 512  159  150        153
//             8192 256 256  151  150        155
//   a * b^T   1024 256 1024 158  153        154
//             1024 1024 256 158  151        153
//
// and Zen 4 (AVX-512, peak 115):
//
//                           own  row-major  packing          own  row-major  packing
//   a^T * b   256 768 1024  108  111        102   768^3      112  112        110
//             256 1024 1024 108  106        101   1024^3     110  108        110
//             1024 256 1024 107  108        107   2048^3     110  102        107
//             256 4096 1024 106  104        98    768 768 512 111 112        109
//             768 3072 512  109  104        105
//   a * b^T   512 768 3072  112  111        103   512 768 768   111 109      105
//             512 3072 768  111  108        102   512 768 30522 109 106      105
//             256 1024 1024 110  112        93
//   a * b     2048^3        113  107        113   3072^3     112  106        113
//   64 times  128 128 32    101  109
//             128 32 128    109  112
//             128 32 128 ^T 108  97
//
// With AVX2 one product is ours unless it is large: 4096^3 85 and 86 on Zen 4 without AVX-512 (peak
// 92), where it is as fast elsewhere, but for a long B that is transposed:
//
//                           own  row-major  packing          own  row-major  packing
//   a^T * b   768 3072 512  86   85               1024^3     84   83
//             256 1024 1024 85   37               2048^3     84   84
//             768 30522 512 87   84               4096 4096 512 86 86
//   a * b     512 768 3072  86   84               1024^3     87   86
//             512 3072 768  86   84               2048^3     86   86
//             1024 768 256  87   86               512 30522 768 85 82
//   a * b^T   512 768 3072  85   83        84     1024^3     86   85         85
//             512 768 768   86   86        85     512 2048 4096 82 84        84
//   64 times  128 128 32    79   79
//             128 32 128    80   83
//             32 128 128 ^T 72   76
//   48 times  128 64 128    83   85
//   32 times  256 64 256 ^T 76   83
//   16 times  512 512 64    82   79
//
// On Zen 3 oneDNN makes half to two thirds of it for a^T * b of some sizes, too; before our code
// had its blocks of now oneDNN was ahead by up to 3 % elsewhere, and by 10 % for 512 2048 4096 a *
// b^T.
static bool answer(ot__dnnl_gemm *p, bool is_ahead, const char *reason)
{
    p->reason = reason;
    return is_ahead;
}

static bool is_ahead_with_avx2(ot__dnnl_gemm *p)
{
    const ot__gemm *g = p->g;
    const bool is_large = OT_MIN(OT_MIN(g->m, g->n), g->k) >= (int64_t)LARGE;
    const bool has_few = OT_MAX(g->m, g->n) <= (int64_t)FEW_ROWS;

    if (p->n_batches == 1)
        return answer(p, is_large,
                      is_large ? "large, with AVX2"
                               : "our own code is as fast with AVX2, or faster");
    return answer(p, has_few, has_few ? "small batches, with AVX2" : "large batches, with AVX2");
}

// On processors that are not Intel's nothing was measured but AMD's.
static bool is_one_ahead_with_avx512(ot__dnnl_gemm *p)
{
    const ot__gemm *g = p->g;
    const bool a_transposed = g->a_column != 1, is_tall = g->m >= (int64_t)ROWS_TO_PACK;
    const bool has_few_rows =
        !a_transposed && g->b_column != 1 && g->m < (int64_t)ROWS_TO_TRANSPOSE;

    if (ot__is_zen_3_or_4() || ot__is_intel())
        return answer(p, false, "our own code is as fast with AVX-512, or faster");
    if (has_few_rows)
        return answer(p, true, "B transposed and few rows, with AVX-512");
    if (OT_MIN(OT_MIN(g->m, g->n), g->k) >= (int64_t)LARGE) {
        p->packs = true;
        return answer(p, true, "large, with AVX-512, B packed");
    }
    if (!a_transposed)
        return answer(p, false, "our own code is as fast with AVX-512");
    p->packs = is_tall && g->n >= (int64_t)LONG_ROW;
    return answer(p, true,
                  p->packs ? "A transposed, with AVX-512, B packed" : "A transposed, with AVX-512");
}

bool ot__dnnl_gemm_is_ahead(ot__dnnl_gemm *p)
{
    const ot__gemm *g = p->g;
    const bool is_one = p->n_batches == 1;
    const double work = (double)p->n_batches * (double)g->m * (double)g->n * (double)g->k;

    p->packs = false;
    if (!ot__dnnl_can_gemm(p))
        return answer(p, false, "oneDNN has no product of this size");
    if (ot__isa_best() < OT__ISA_AVX2)
        return answer(p, false, "without AVX2 our own code is as fast");
    if (work < (is_one ? LEAST_WORK : LEAST_WORK_OF_BATCHES))
        return answer(p, false, "small: a primitive of oneDNN is not worth its memory");
    if (ot__isa_best() < OT__ISA_AVX512)
        return is_ahead_with_avx2(p);
    if (is_one)
        return is_one_ahead_with_avx512(p);
    if (g->a_column != 1 && !ot__is_intel())
        return answer(p, false, "batches with A transposed, with AVX-512");
    return answer(p, true, "batches, with AVX-512");
}

// bf16, where the processor multiplies it. Without, our own kernel for f32 is as fast, between
// conversions.
bool ot__dnnl_gemm_bf16_is_ahead(ot__dnnl_gemm *p)
{
    const ot__gemm *g = p->g;
    const double work = (double)p->n_batches * (double)g->m * (double)g->n * (double)g->k;

    if (!ot__dnnl_has_bf16())
        return answer(p, false, "the processor does not multiply bf16");
    if (work < LEAST_WORK_OF_BATCHES || !ot__dnnl_can_gemm(p))
        return answer(p, false, "too small for oneDNN, or too large");
    return answer(p, true, "the processor multiplies bf16");
}

// ---- descriptions ----

// A matrix, or batches of them `stride` elements apart; 0: one for all batches.
static dnnl_status_t gemm_md(dnnl_memory_desc_t *md, const ot__dnnl_gemm *p, ot_dtype type,
                             int64_t rows, int64_t columns, int64_t row, int64_t column,
                             int64_t stride)
{
    const int first = p->n_batches == 1; // no axis of batches
    const dnnl_dims_t dims = {stride == 0 ? 1 : p->n_batches, rows, columns};
    const dnnl_dims_t strides = {stride == 0 ? rows * columns : stride, row, column};
    dnnl_dims_t d = {0}, s = {0};

    for (int i = first; i < MAX_AXES; i++) {
        d[i - first] = dims[i];
        s[i - first] = strides[i];
    }
    return ot__md_strided(md, ot__dnnl_type(type), MAX_AXES - first, d, s);
}

static bool has_other(const ot__dnnl_gemm *p)
{
    return p->after == OT__DNNL_GEMM_ADD || p->after == OT__DNNL_GEMM_MULTIPLY;
}

static dnnl_status_t gemm_attr(const ot__dnnl_gemm *p, gemm_parts *parts)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st;

    OT__DNNL_TRY(ot__dnnl_attr(p->after == OT__DNNL_GEMM_RELU, &parts->attr));
    if (!p->accumulates && !has_other(p))
        return dnnl_success;
    OT__DNNL_TRY(dnnl_post_ops_create(&ops));
    st = p->accumulates
             ? ot__dnnl_append_sum(ops)
             : dnnl_post_ops_append_binary(
                   ops, p->after == OT__DNNL_GEMM_ADD ? dnnl_binary_add : dnnl_binary_mul,
                   ot__md_of(&parts->y));
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_post_ops(parts->attr, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

static dnnl_status_t describe_gemm(const ot__dnnl_gemm *p, gemm_parts *parts)
{
    const ot__gemm *g = p->g;
    const int64_t y_stride = g->m * g->n;
    const int ndim = p->n_batches == 1 ? MAX_AXES - 1 : MAX_AXES;
    dnnl_dims_t row = {1, 1, 1}, row_strides = {g->n, g->n, g->n}, b_dims = {0};

    row[ndim - 1] = g->n;
    row_strides[ndim - 1] = 1;
    OT__DNNL_TRY(ot__dnnl_engine(&parts->engine));
    OT__DNNL_TRY(gemm_md(&parts->a, p, p->type, g->m, g->k, g->a_row, g->a_column, p->a_stride));
    OT__DNNL_TRY(gemm_md(&parts->b, p, p->type, g->k, g->n, g->b_row, g->b_column, p->b_stride));
    OT__DNNL_TRY(gemm_md(&parts->y, p, p->y_type, g->m, g->n, g->y_row, 1, y_stride));
    OT__DNNL_TRY(ot__md_strided(&parts->bias, ot__dnnl_type(p->bias_type), ndim, row, row_strides));
    if (ndim == MAX_AXES)
        b_dims[0] = p->b_stride == 0 ? 1 : p->n_batches;
    b_dims[ndim - 2] = g->k;
    b_dims[ndim - 1] = g->n;
    OT__DNNL_TRY(
        ot__md_tagged(&parts->b_any, ot__dnnl_type(p->type), ndim, b_dims, dnnl_format_tag_any));
    OT__DNNL_TRY(gemm_attr(p, parts));
    return ot__dnnl_pd_matmul(&parts->pd, parts->engine, ot__md_of(&parts->a),
                              ot__md_of(p->packs ? &parts->b_any : &parts->b),
                              p->has_bias ? ot__md_of(&parts->bias) : NULL, ot__md_of(&parts->y),
                              parts->attr);
}

static void forget_gemm(gemm_parts *parts)
{
    dnnl_primitive_desc_destroy(parts->pd);
    dnnl_primitive_attr_destroy(parts->attr);
    ot__md_release(&parts->a);
    ot__md_release(&parts->b);
    ot__md_release(&parts->b_any);
    ot__md_release(&parts->bias);
    ot__md_release(&parts->y);
}

// ---- the program ----

static dnnl_status_t add_gemm(ot__dnnl_primitives *out, const ot__dnnl_gemm *p,
                              const gemm_parts *parts)
{
    const ot__md b = dnnl_primitive_desc_query_md(parts->pd, dnnl_query_weights_md, 0);
    ot__dnnl_place b_place = OT__DNNL_SLOT(OT__DNNL_GEMM_B);

    OT__DNNL_TRY(ot__dnnl_packed(out, ot__md_of(&parts->b), b, &b_place));
    OT__DNNL_TRY(ot__dnnl_add(out, parts->pd));
    OT__DNNL_TRY(
        ot__dnnl_arg(out, DNNL_ARG_SRC, ot__md_of(&parts->a), OT__DNNL_SLOT(OT__DNNL_GEMM_A)));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_WEIGHTS, b, b_place));
    if (p->has_bias)
        OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_BIAS, ot__md_of(&parts->bias),
                                  OT__DNNL_SLOT(OT__DNNL_GEMM_BIAS)));
    if (has_other(p))
        OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                                  ot__md_of(&parts->y), OT__DNNL_SLOT(OT__DNNL_GEMM_OTHER)));
    return ot__dnnl_arg(out, DNNL_ARG_DST, ot__md_of(&parts->y), OT__DNNL_SLOT(OT__DNNL_GEMM_Y));
}

ot_status ot__dnnl_gemm_create(const ot__dnnl_gemm *p, ot__dnnl_primitives **out)
{
    gemm_parts parts;
    dnnl_status_t st;

    memset(&parts, 0, sizeof(parts));
    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out));
    ot__forks_hold();
    st = describe_gemm(p, &parts);
    if (st == dnnl_success)
        st = add_gemm(*out, p, &parts);
    forget_gemm(&parts);
    ot__forks_release();
    if (st != dnnl_success) {
        ot__dnnl_destroy(*out);
        *out = NULL;
    }
    return ot__dnnl_error(st, "product");
}
