// SPDX-License-Identifier: Apache-2.0
// Quantising and back. Elements pass through f32 (f64 where x or y is) in pieces.
#include <math.h>

#include "kernels/kernels.h"

enum { PIECE = 256 }; // a multiple of OT__WHOLE_BYTES

typedef struct job {
    const ot__quantized_data *d;
    const ot__quantization *q;
    void (*piece)(const struct job *j, int64_t first, int64_t n);
    double low, high; // of y
    bool is_wide;     // in f64
} job;

bool ot__ref_quantized_range(ot_dtype dtype, double *low, double *high)
{
    static const struct {
        ot_dtype dtype;
        double low, high;
    } ranges[] = {
        {OT_I8, INT8_MIN, INT8_MAX},
        {OT_U8, 0, UINT8_MAX},
        {OT_I16, INT16_MIN, INT16_MAX},
        {OT_U16, 0, UINT16_MAX},
        {OT_I32, INT32_MIN, INT32_MAX},
        {OT_I4, -8, 7},
        {OT_U4, 0, 15},
        {OT_I2, -2, 1},
        {OT_U2, 0, 3},
    };

    for (size_t i = 0; i < OT_COUNT(ranges); i++)
        if (ranges[i].dtype == dtype) {
            *low = ranges[i].low;
            *high = ranges[i].high;
            return true;
        }
    return false;
}

// Which scale and zero point element number `i` has.
static int64_t scale_at(const ot__quantization *q, int64_t i)
{
    const int64_t inner = i % q->inner, along = i / q->inner % q->axis;

    if (q->per_tensor)
        return 0;
    if (q->block == 0)
        return along;
    return (i / q->inner / q->axis * q->blocks + along / q->block) * q->inner + inner;
}

static double number_at(const void *data, ot_dtype dtype, int64_t i)
{
    return dtype == OT_F32 ? (double)((const float *)data)[i] : ot__element_f64(data, dtype, i);
}

// Elements from number `first` on; pieces begin at whole bytes.
static void load_piece(double *piece, const void *x, ot_dtype dtype, int64_t first, int64_t n)
{
    static const ot__cast_rule as_usual = {0};

    (void)ot__convert_range(piece, OT_F64, 0, (ot__elements){x, dtype, first}, n, &as_usual);
}

static void store_piece(const job *j, int64_t first, const void *piece, ot_dtype dtype, int64_t n)
{
    const ot__cast_rule rule = {.unsaturated = !j->q->saturates};

    (void)ot__convert_range(j->d->y, j->d->y_dtype, first, (ot__elements){piece, dtype, 0}, n,
                            &rule);
}

static double zero_point(const ot__quantized_data *d, int64_t i)
{
    return d->zero_point == NULL ? 0 : number_at(d->zero_point, d->zero_point_dtype, i);
}

static double quotient(double x, double scale, bool is_wide)
{
    return is_wide ? x / scale : (double)((float)x / (float)scale);
}

static void quantize_piece(const job *j, int64_t first, int64_t n)
{
    const ot__quantized_data *d = j->d;
    double piece[PIECE];
    int64_t whole[PIECE];

    load_piece(piece, d->x, d->x_dtype, first, n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = scale_at(j->q, first + k);

        piece[k] = quotient(piece[k], number_at(d->scale, d->scale_dtype, at), j->is_wide);
        if (j->high > j->low) {
            const double rounded = rint(piece[k]) + zero_point(d, at);

            whole[k] = (int64_t)fmax(j->low, fmin(j->high, rounded)); // never NaN
        } else {
            piece[k] += zero_point(d, at);
        }
    }
    if (j->high > j->low)
        store_piece(j, first, whole, OT_I64, n);
    else
        store_piece(j, first, piece, OT_F64, n);
}

static void dequantize_piece(const job *j, int64_t first, int64_t n)
{
    const ot__quantized_data *d = j->d;
    double piece[PIECE];

    load_piece(piece, d->x, d->x_dtype, first, n);
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = scale_at(j->q, first + k);
        const double from_zero = piece[k] - zero_point(d, at);
        const double scale = number_at(d->scale, d->scale_dtype, at);

        piece[k] = j->is_wide ? from_zero * scale : (double)((float)from_zero * (float)scale);
    }
    store_piece(j, first, piece, OT_F64, n);
}

static int64_t quantized_count(const ot__quantization *q)
{
    return q->outer * q->axis * q->inner;
}

static void quantize_part(void *context, int64_t first, int64_t last)
{
    const job *j = context;

    for (int64_t i = first; i < last; i++)
        j->piece(j, i * PIECE, OT_MIN((int64_t)PIECE, quantized_count(j->q) - i * PIECE));
}

static void run_job(job j)
{
    const int64_t n = quantized_count(j.q);

    ot__parallel_for(n / PIECE + (n % PIECE != 0), OT_PAR_MIN / PIECE, quantize_part, &j);
}

void ot__ref_quantize(const ot__quantized_data *d, const ot__quantization *q)
{
    job j = {.d = d, .q = q, .piece = quantize_piece, .is_wide = d->x_dtype == OT_F64};

    ot__ref_quantized_range(d->y_dtype, &j.low, &j.high);
    run_job(j);
}

void ot__ref_dequantize(const ot__quantized_data *d, const ot__quantization *q)
{
    run_job((job){.d = d, .q = q, .piece = dequantize_piece, .is_wide = d->y_dtype == OT_F64});
}

#define RINT(v) _Generic((v), float : rintf, double : rint)(v)
#define TEMPLATE "kernels/quantize/ref_quantize.tmpl.h"
#include "kernels/by_float.tmpl.h"
