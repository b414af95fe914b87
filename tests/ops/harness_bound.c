// SPDX-License-Identifier: Apache-2.0
// How far single elements may be from the reference in f64, beside the bound for the whole tensor
// (tensors_agree), under which a wrong small element hides among large ones.
//
// A backward stable computation gives the exact result for inputs that are off by a few roundings
// each, but for a few roundings of the result itself:
//
//     |got - want| <= tolerance * (|want| + c * sum over j of |x_j * d want / d x_j|)
//
// For products and sums the last sum is that of the absolute values of the terms: Higham's
// componentwise bound, with `tolerance` in the place of n roundings. For f(x) it is the
// condition |x * f'(x)|. It is estimated for any operator by small-sample statistics (Kenney and
// Laub, 1994): SAMPLES times every floating-point input is moved, element by element, by a
// relative +-STEP, and the largest change of the result over STEP counts. For one term that is
// exact; for n terms it is about the root of their squares' sum, which is also how roundings add up
// (they are independent, Higham and Mary, 2019); SPREAD makes that all samples come out small less
// likely than one in a million elements.
//
// Two kinds of operators allow more to be asked: one that moves or chooses elements gives them bit
// for bit, and a tile that says `rounds_once` may only be off by that rounding.
//
// A result in f16 or bf16 is one in f32, as above, that is rounded to nearest once. Rounding keeps
// order, so it lies between the roundings of the two ends of what f32 allows: half a unit of the
// type (2^-8 of the number in bf16, 2^-11 in f16), and not a term's more. n terms that are added in
// the type itself are off by about the root of n such halves.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 4 };
static const double STEP = 0x1p-20, SPREAD = 4.0, ONE_ROUNDING = 0x1.001p-24; // of f32
static const double SMALLEST[] = {[OT_F32] = 1.2e-38, [OT_F64] = 2.3e-308};

// Results are elements of inputs, zeros, or whole numbers.
static const char *const moving[] = {
    "Abs",
    "BitCast",
    "CenterCropPad",
    "Compress",
    "Concat",
    "ConcatTraining",
    "Constant",
    "ConstantOfShape",
    "DepthToSpace",
    "Expand",
    "EyeLike",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "GlobalMaxPool",
    "Hardmax",
    "Identity",
    "Max",
    "MaxPool",
    "MaxPoolShort",
    "MaxUnpool",
    "Min",
    "Neg",
    "OneHot",
    "Pad",
    "ReduceMax",
    "ReduceMin",
    "Relu",
    "ReluGrad",
    "Reorder",
    "Reshape",
    "ReverseSequence",
    "Round",
    "Sign",
    "Slice",
    "SliceGrad",
    "SpaceToDepth",
    "Split",
    "SplitTraining",
    "Squeeze",
    "TensorScatter",
    "Tile",
    "TopK",
    "Transpose",
    "Trilu",
    "Unique",
    "Unsqueeze",
    "Where",
};

bool only_moves(const ot_op_def *op)
{
    for (size_t k = 0; k < sizeof(moving) / sizeof(moving[0]); k++)
        if (strcmp(moving[k], op->name) == 0)
            return true;
    return false;
}

void oracle_deinit(oracle *o)
{
    for (int i = 0; i < o->results.n; i++)
        free(o->spread[i]);
    buffers_deinit(&o->results);
}

// ---- the spread of results ----

static void move_inputs(inputs *in, uint64_t sample)
{
    for (int i = 0; i < in->n; i++) {
        const ot__rng_key key = {sample, (uint64_t)i};
        ot_tensor *x = in->tensor[i];

        if (x == NULL || x->dtype != OT_F64 || in->spec[i].is_const)
            continue;
        for (int64_t k = 0, n = ot_tensor_count(x); k < n; k++)
            ((double *)x->data)[k] *=
                ot__rng_uniform(key, (uint64_t)k) < 0.5 ? 1.0 - STEP : 1.0 + STEP;
    }
}

static void add_sample(oracle *o, const buffers *moved)
{
    for (int i = 0; i < o->results.n; i++) {
        const ot_tensor *y = o->results.tensor[i];

        if (y->dtype != OT_F64)
            continue;
        for (int64_t k = 0, n = ot_tensor_count(y); k < n; k++) {
            const double change =
                fabs(((double *)moved->tensor[i]->data)[k] - ((double *)y->data)[k]) / STEP;

            // At what is not finite nothing can be said.
            o->spread[i][k] = isnan(change) ? INFINITY : OT_MAX(o->spread[i][k], change);
        }
    }
}

void oracle_measure(oracle *o, const call *reference)
{
    for (int i = 0; i < o->results.n; i++)
        o->spread[i] = calloc((size_t)ot_tensor_count(o->results.tensor[i]) + 1, sizeof(double));
    for (int s = 0; s < SAMPLES; s++) {
        call again = *reference;
        buffers moved;
        inputs in;

        if (inputs_to_f64(reference->in, reference->one->given, &in) == OT_OK) {
            move_inputs(&in, (uint64_t)s);
            again.in = &in;
            if (call_run(&again, &moved, NULL) == OT_OK)
                add_sample(o, &moved);
            else
                fail("reference kernel on inputs that moved: %s", ot_error_message());
            buffers_deinit(&moved);
        }
        inputs_deinit(&in);
    }
}

// ---- the check ----

static double allowed(const oracle *o, int i, int64_t k, double want, ot_dtype dtype,
                      double relative)
{
    if (o->is_exact)
        return 0.0;
    if (o->rounds_once && dtype == OT_F32)
        return ONE_ROUNDING * fabs(want) + SMALLEST[dtype] * ONE_ROUNDING;
    if (o->spread[i] == NULL)
        return INFINITY;
    return relative * (fabs(want) + SPREAD * o->spread[i][k] + o->terms + SMALLEST[dtype]);
}

static double rounded(double x, ot_dtype narrow)
{
    float number = (float)x;
    uint16_t bits;

    (void)ot__convert(&bits, narrow, &number, OT_F32, 1);
    (void)ot__convert(&number, OT_F32, &bits, narrow, 1);
    return (double)number;
}

static bool is_near(double got, double want, double bound, ot_dtype dtype)
{
    if (isnan(want))
        return isnan(got);
    if (fabs(got - want) <= bound)
        return true; // and so in a narrow type, which `got` has: rounding keeps the order
    return ot__dtype_is_narrow(dtype) && got >= rounded(want - bound, dtype) &&
           got <= rounded(want + bound, dtype);
}

void check_elements(const ot_tensor *found, const oracle *o, int i, double tolerance,
                    const char *what)
{
    const ot_tensor *expected = o->results.tensor[i];
    const ot_dtype computed = ot__dtype_is_narrow(found->dtype) ? OT_F32 : found->dtype;
    const double relative = tolerance_of(computed) * (tolerance == 0 ? 1 : tolerance);
    const int64_t count = ot_tensor_count(found);
    double *got, *want;

    if (!ot__dtype_is_float(found->dtype) || !ot__shape_equal(&found->shape, &expected->shape))
        return; // tensors_agree compares integers exactly
    got = values_of(found);
    want = values_of(expected);
    for (int64_t k = 0; k < count; k++) {
        const double bound = allowed(o, i, k, want[k], computed, relative);

        if (got[k] == want[k] || is_near(got[k], want[k], bound, found->dtype))
            continue;
        fail("%s: element %" PRId64 " is %.17g, expected %.17g, off by %.3g where its terms allow "
             "%.3g",
             what, k, got[k], want[k], fabs(got[k] - want[k]), bound);
        break;
    }
    free(got);
    free(want);
}
