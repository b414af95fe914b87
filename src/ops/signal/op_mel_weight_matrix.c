// SPDX-License-Identifier: Apache-2.0
// MelWeightMatrix: the weights by which the points of a spectrum make up bands of equal width on
// the mel scale.
#include <math.h>

#include "ops/signal/signal.h"

enum { BINS, DFT_LENGTH, RATE, LOW, HIGH };

static void mel_infer(ot_infer *c)
{
    int64_t bins, length, rate;
    ot_dtype dtype;

    if (!ot__infer_size(c, BINS, "num_mel_bins", 1, (int64_t)1 << 32, &bins) ||
        !ot__infer_size(c, DFT_LENGTH, "dft_length", 1, (int64_t)1 << 40, &length) ||
        !ot__infer_size(c, RATE, "sample_rate", 1, INT64_MAX, &rate) ||
        !ot__infer_one_element(c, LOW) || !ot__infer_one_element(c, HIGH) ||
        !ot__infer_dtype_attr(c, "output_datatype", "T3", OT_F32, &dtype))
        return;
    ot_infer_set(c, 0, dtype, &OT_SHAPE(ot_infer_add(c, ot_infer_div(c, length, 2), 1), bins));
}

static ot_status mel_prep(ot_prep *p)
{
    ot_prep_scratch(p, (size_t)(ot_prep_out(p, 0)->shape.dim[1] + 2) * sizeof(double));
    return OT_OK;
}

static double arg_real(const ot_arg *arg)
{
    double number = NAN;

    (void)ot__convert(&number, OT_F64, arg->data, arg->dtype, 1);
    return number;
}

static ot_status mel_run(const ot_run *r)
{
    const ot_arg *y = r->out[0];
    const ot__mel m = {.n_mels = ot__arg_int(r->in[BINS], 0),
                       .n_dft = ot__arg_int(r->in[DFT_LENGTH], 0),
                       .rate = (double)ot__arg_int(r->in[RATE], 0),
                       .low = arg_real(r->in[LOW]),
                       .high = arg_real(r->in[HIGH])};
    double *corners = r->scratch;

    OT_TRY(ot__check_planned(m.n_mels, "mel bins", y->shape.dim[1]));
    OT_TRY(ot__check_planned(m.n_dft / 2 + 1, "points of the spectrum", y->shape.dim[0]));
    if (!(m.rate >= 1) || !(m.low >= 0) || !(m.high >= m.low) || !isfinite(m.high))
        return ot__error(OT_ERR_INVALID,
                         "bands from %g to %g hertz at %g samples a second, expected rising "
                         "frequencies from 0",
                         m.low, m.high, m.rate);
    if (!ot__ref_mel_corners(corners, &m))
        return ot__error(OT_ERR_INVALID,
                         "upper_edge_hertz is %g, expected at most half of sample_rate, %g", m.high,
                         m.rate / 2);
    ot__ref_mel(y->data, y->dtype, corners, &m);
    return OT_OK;
}

static const ot_port mel_in[] = {
    {"num_mel_bins", "T1", OT_PORT_NO_GRAD},     {"dft_length", "T1", OT_PORT_NO_GRAD},
    {"sample_rate", "T1", OT_PORT_NO_GRAD},      {"lower_edge_hertz", "T2", OT_PORT_NO_GRAD},
    {"upper_edge_hertz", "T2", OT_PORT_NO_GRAD}, {0},
};
static const ot_port mel_out[] = {{"output", "T3", 0}, {0}};
static const ot_attr_spec mel_attrs[] = {OT__INT_ATTR("output_datatype", OT_F32), {0}};
static const ot_kernel mel_kernels[] = {OT__REF_KERNEL(NULL, mel_prep, mel_run), {0}};
const ot_op_def ot__op_mel_weight_matrix[] = {
    {.name = "MelWeightMatrix",
     .since = 17,
     .inputs = mel_in,
     .outputs = mel_out,
     .attrs = mel_attrs,
     .types = "T1: i32 i64; T2: f32 f64 f16 bf16; T3: " OT__NUMBERS,
     .infer = mel_infer,
     .kernels = mel_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
