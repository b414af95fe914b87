// SPDX-License-Identifier: Apache-2.0
// The gradient of batch normalisations as nodes.
#include "op/expand.h"
#include "ops/norm/batch_norm.h"

ot_value *ot__emit_channels(ot_grad *g, ot_value *v, const ot_value *x)
{
    int64_t axes[OT_MAX_NDIM];
    int n;

    if (x == NULL || !ot__grad_knows_axes(g, x))
        return NULL;
    n = ot_value_shape(x)->ndim - 2;
    for (int i = 0; i < n; i++)
        axes[i] = i + 1;
    return n == 0 ? v : ot_emit2(g, "Unsqueeze", v, ot_emit_constant_i64(g, axes, n));
}

ot_value *ot__emit_channel_sum(ot_grad *g, ot_value *v, bool keep_axes)
{
    int64_t axes[OT_MAX_NDIM];
    int n = 0;

    if (!v || !ot__grad_knows_axes(g, v))
        return NULL;
    for (int i = 0; i < ot_value_shape(v)->ndim; i++)
        if (i != 1)
            axes[n++] = i;
    return ot__emit_sum(g, v, axes, n, keep_axes);
}

// Y = (X - mean) * inv * scale + B with inv = 1 / sqrt(var + epsilon), which does not depend on X:
// dX = dY * scale * inv, dscale = inv * sum(dY * (X - mean)), dB = sum(dY),
// dmean = -scale * inv * sum(dY), dvar = -scale * inv^3 * sum(dY * (X - mean)) / 2.
static void stored_grad(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, OT__BN_X), *dy = ot_grad_dy(g, OT__BN_Y);
    ot_value *scale = ot_grad_x(g, OT__BN_SCALE), *var = ot_grad_x(g, OT__BN_VAR);
    const double epsilon = (double)ot_attr_float(ot_grad_node(g), "epsilon");
    const bool wants_mean = ot_grad_wants(g, OT__BN_MEAN), wants_var = ot_grad_wants(g, OT__BN_VAR);
    const bool wants_scale = ot_grad_wants(g, OT__BN_SCALE);
    ot_value *sum = NULL, *product = NULL, *inv = NULL, *factor = NULL;

    if (!dy)
        return;
    if (ot_grad_wants(g, OT__BN_X) || wants_scale || wants_mean || wants_var)
        inv = ot_emit1(
            g, "Reciprocal",
            ot_emit1(g, "Sqrt", ot_emit2(g, "Add", var, ot_emit_constant(g, epsilon, var))));
    if (ot_grad_wants(g, OT__BN_X) || wants_mean || wants_var)
        factor = ot_emit2(g, "Mul", scale, inv);
    if (ot_grad_wants(g, OT__BN_X))
        ot_grad_set_dx(g, OT__BN_X, ot_emit2(g, "Mul", dy, ot__emit_channels(g, factor, x)));
    if (wants_scale || wants_var) {
        ot_value *mean = ot__emit_channels(g, ot_grad_x(g, OT__BN_MEAN), x);

        product =
            ot__emit_channel_sum(g, ot_emit2(g, "Mul", dy, ot_emit2(g, "Sub", x, mean)), false);
    }
    if (wants_scale)
        ot_grad_set_dx(g, OT__BN_SCALE, ot_emit2(g, "Mul", product, inv));
    if (ot_grad_wants(g, OT__BN_BIAS) || wants_mean)
        sum = ot__emit_channel_sum(g, dy, false);
    if (ot_grad_wants(g, OT__BN_BIAS))
        ot_grad_set_dx(g, OT__BN_BIAS, sum);
    if (wants_mean)
        ot_grad_set_dx(g, OT__BN_MEAN, ot_emit1(g, "Neg", ot_emit2(g, "Mul", factor, sum)));
    if (wants_var) {
        ot_value *squared = ot_emit2(g, "Mul", inv, inv);
        ot_value *scaled = ot_emit2(g, "Mul", factor, product);

        ot_grad_set_dx(g, OT__BN_VAR, ot__emit_times(g, ot_emit2(g, "Mul", scaled, squared), -0.5));
    }
}

// Where the batch's statistics are taken, the others change nothing of Y.
static void unread_statistics(ot_grad *g)
{
    for (int i = OT__BN_MEAN; i <= OT__BN_VAR; i++)
        if (ot_grad_wants(g, i)) {
            ot_value *statistic = ot_grad_x(g, i);

            ot_grad_set_dx(g, i, ot__emit_zeros(g, ot_emit1(g, "Shape", statistic), statistic));
        }
}

static void batch_grad(ot_grad *g, ot_value *mean, ot_value *inv_std)
{
    ot_value *const in[] = {ot_grad_dy(g, OT__BN_Y), ot_grad_x(g, OT__BN_X),
                            ot_grad_x(g, OT__BN_SCALE), mean, inv_std};
    ot_node *node;

    if (!in[0] || !mean || !inv_std)
        return;
    node = ot_emit(g, "com.microsoft.BatchNormalizationGrad", NULL, in, 5, 3);
    ot_emit_float(g, node, "epsilon", ot_attr_float(ot_grad_node(g), "epsilon"));
    for (int i = OT__BN_X; i <= OT__BN_BIAS; i++)
        if (ot_grad_wants(g, i))
            ot_grad_set_dx(g, i, ot_emit_output(g, node, i));
}

static ot_value *emit_channel_mean(ot_grad *g, ot_value *x, ot_value *count)
{
    return ot_emit2(g, "Div", ot__emit_channel_sum(g, x, true), count);
}

// The batch's statistics are not among the outputs, so the gradient computes them again.
static void own_batch_grad(ot_grad *g)
{
    const int64_t all = -1;
    ot_value *x = ot_grad_x(g, OT__BN_X), *scale = ot_grad_x(g, OT__BN_SCALE);
    const ot_dtype dtype = ot_value_dtype(x);
    const double epsilon = (double)ot_attr_float(ot_grad_node(g), "epsilon");
    ot_value *channels = ot_emit_cast(g, ot_emit1(g, "Size", scale), dtype);
    ot_value *count = ot_emit2(g, "Div", ot_emit_cast(g, ot_emit1(g, "Size", x), dtype), channels);
    ot_value *mean = emit_channel_mean(g, x, count), *centred = ot_emit2(g, "Sub", x, mean);
    ot_value *var = emit_channel_mean(g, ot_emit2(g, "Mul", centred, centred), count);
    ot_value *spread =
        ot_emit1(g, "Sqrt", ot_emit2(g, "Add", var, ot_emit_constant(g, epsilon, x)));
    ot_value *factor = ot__emit_reshape(g, ot_emit1(g, "Reciprocal", spread), &all, 1);

    batch_grad(g, ot__emit_reshape(g, mean, &all, 1), factor);
}

void ot__batch_norm_rule(ot_grad *g)
{
    const ot_node *node = ot_grad_node(g);

    if (!ot__batch_norm_is_training(node)) {
        stored_grad(g);
        return;
    }
    unread_statistics(g);
    if (ot__batch_norm_is_internal(node->op)) {
        ot_value *spread = ot_grad_y(g, OT__BN_SAVED_SPREAD);

        batch_grad(g, ot_grad_y(g, OT__BN_SAVED_MEAN), spread);
    } else {
        own_batch_grad(g);
    }
}
