// SPDX-License-Identifier: Apache-2.0
// Norms over several tensors as if they were one: ReduceAllL2 and GradientNorm give it,
// InplaceClipGradNorm scales all gradients together: g *= min(max_norm / (norm + 1e-6), 1), with
// the divisor d that sessions add (optimizer_divisor.c): g *= min(max_norm / (norm / d + 1e-6), 1)
// / d.
#include "ops/optimizer/optimizer.h"

#include <math.h>
#include <string.h>

enum { GRADIENTS, DIVISOR }; // ports of GradientNorm and InplaceClipGradNorm
static const double norm_epsilon = 1e-6;

static double add_squares(const double *sums, int64_t n)
{
    double total = 0;

    for (int64_t i = 0; i < n; i++)
        total += sums[i];
    return total;
}

typedef struct norm_state {
    double max_norm;
    bool is_exact; // f32, where bits must not depend on how tensors are cut over threads and ranks
} norm_state;

static size_t norm_scratch(const ot__pieces *pieces, const norm_state *state)
{
    return (size_t)pieces->n_pieces * (state->is_exact ? sizeof(ot__exact_sum) : sizeof(double));
}

static ot_status prepare_norm(ot_prep *p, double max_norm)
{
    const ot__pieces *pieces = ot__pieces_make(p, GRADIENTS, sizeof(norm_state));
    const int first = p->in_first[GRADIENTS];
    norm_state *state;

    OT_TRY(p->status);
    state = pieces->own;
    state->max_norm = max_norm;
    state->is_exact =
        p->reproducible && p->in_first[GRADIENTS + 1] > first && p->in[first]->dtype == OT_F32;
    ot_prep_scratch(p, norm_scratch(pieces, state));
    return OT_OK;
}

static double divisor_of(const ot_run *r)
{
    const int at = r->in_first[DIVISOR]; // behind the sequence

    return at < r->n_in && r->in[at] != NULL ? ot__scalar_f64(r->in[at]) : 1;
}

// Over all ranks.
static ot_status exact_square_sum(const ot_run *r, double *out)
{
    const ot__pieces *pieces = r->state;
    ot__exact_sum *sums = r->scratch, sum = {.n_not_finite = 0};
    double numbers[OT_EXACT_NUMBERS];

#pragma omp parallel for schedule(static) num_threads(r->n_threads)
    for (int64_t i = 0; i < pieces->n_pieces; i++) {
        sums[i] = (ot__exact_sum){.n_not_finite = 0};
        ot__exact_sum_squares(&sums[i], ot__piece_data(r, GRADIENTS, &pieces->piece[i]),
                              pieces->piece[i].count);
    }
    for (int64_t i = 0; i < pieces->n_pieces; i++)
        ot__exact_sum_add(&sum, &sums[i]);
    OT_TRY(ot__run_exact_sums(r, &sum, 1, numbers));
    *out = ot__exact_sum_value(&sum);
    return OT_OK;
}

#define TEMPLATE "ops/optimizer/gradient_norm.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- ReduceAllL2 ----

static void reduce_all_l2_infer(ot_infer *c)
{
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &OT_SHAPE_SCALAR);
}

static const ot_port reduce_all_l2_in[] = {{"X", "T", OT_PORT_VARIADIC | OT_PORT_F32}, {0}};
static const ot_port reduce_all_l2_out[] = {{"Y", "T", OT_PORT_F32}, {0}};
static const ot_kernel reduce_all_l2_kernels[] = {OT__REF_KERNELS(NULL, reduce_all_l2_run), {0}};
const ot_op_def ot__op_reduce_all_l2[] = {
    {.domain = OT__MS,
     .name = "ReduceAllL2",
     .since = 1,
     .inputs = reduce_all_l2_in,
     .outputs = reduce_all_l2_out,
     .types = "T: f32 f64",
     .infer = reduce_all_l2_infer,
     .kernels = reduce_all_l2_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ORDERED},
    {0},
};

// ---- InplaceClipGradNorm ----

static void clip_norm_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);

    if (ot_infer_has(c, DIVISOR) && !ot__infer_one_element(c, DIVISOR))
        return;
    if (strcmp(ot_attr_string(node, "norm_type"), "fro") != 0)
        ot_infer_fail(c, "norm_type is '%s', expected fro", ot_attr_string(node, "norm_type"));
    else if (!(ot_attr_float(node, "max_norm") > 0.0f))
        ot_infer_fail(c, "max_norm is %g, expected more than 0",
                      (double)ot_attr_float(node, "max_norm"));
    else
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, 0));
}

static ot_status clip_norm_prepare(ot_prep *p)
{
    return prepare_norm(p, (double)ot_attr_float(ot_prep_node(p), "max_norm"));
}

static const ot_port clip_norm_in[] = {
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32},
    {"gradient_divisor", "f32", OT_PORT_F32 | OT_PORT_OPTIONAL},
    {0},
};
static const ot_port clip_norm_out[] = {
    {"clipped_gradients", "T", OT_PORT_SEQUENCE | OT_PORT_STATE | OT_PORT_F32}, {0}};
static const ot_attr_spec clip_norm_attrs[] = {
    OT__FLOAT_ATTR("max_norm", 1.0f),
    OT__STRING_ATTR("norm_type", "fro"),
    {0},
};
static const ot_kernel clip_norm_kernels[] = {OT__REF_KERNELS(clip_norm_prepare, clip_norm_run),
                                              {0}};
const ot_op_def ot__op_inplace_clip_grad_norm[] = {
    {.domain = OT__MS,
     .name = "InplaceClipGradNorm",
     .since = 1,
     .inputs = clip_norm_in,
     .outputs = clip_norm_out,
     .attrs = clip_norm_attrs,
     .types = "T: f32 f64",
     .infer = clip_norm_infer,
     .kernels = clip_norm_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_ANY_LAYOUT | OT_OP_ORDERED},
    {0},
};

// ---- GradientNorm: the norm of all gradients divided by `gradient_divisor`, and whether all of
// their elements are finite ----

static void gradient_norm_infer(ot_infer *c)
{
    if (ot_infer_has(c, DIVISOR) && !ot__infer_one_element(c, DIVISOR))
        return;
    ot_infer_set(c, 0, OT_F64, &OT_SHAPE(1));
    ot_infer_set(c, 1, OT_BOOL, &OT_SHAPE(1));
}

static ot_status gradient_norm_prepare(ot_prep *p)
{
    return prepare_norm(p, 0);
}

static ot_status gradient_norm_run_simd(const ot_run *r)
{
    return gradient_norm_f32(r, ot__updates_best());
}

static const ot_port gradient_norm_in[] = {
    {"gradients", "T", OT_PORT_SEQUENCE | OT_PORT_F32},
    {"gradient_divisor", "f32", OT_PORT_F32 | OT_PORT_OPTIONAL},
    {0},
};
static const ot_port gradient_norm_out[] = {
    {"norm", "f64", 0}, {"finite", "bool", OT_PORT_OPTIONAL}, {0}};
static const ot_kernel gradient_norm_kernels[] = {
    OT__SIMD_KERNEL("T: f32", NULL, gradient_norm_prepare, gradient_norm_run_simd),
    OT__REF_KERNELS(gradient_norm_prepare, gradient_norm_run),
    {0},
};
const ot_op_def ot__op_gradient_norm[] = {
    {.domain = "ai.onnxtrain",
     .name = "GradientNorm",
     .since = 1,
     .inputs = gradient_norm_in,
     .outputs = gradient_norm_out,
     .types = "T: f32 f64",
     .infer = gradient_norm_infer,
     .kernels = gradient_norm_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_ANY_LAYOUT | OT_OP_ORDERED},
    {0},
};
