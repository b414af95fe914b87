// SPDX-License-Identifier: Apache-2.0
// ConvGrad in ONNX's operators: dX is a transposed convolution of dY, dW a convolution of X by dY.
#include "op/expand.h"
#include "ops/conv/conv.h"
#include "ops/norm/batch_norm.h"

enum { DY, X, W };
enum { DX, DW, DB };

static ot_value *slice_spatial(ot_grad *g, ot_value *v, int n_axes, ot_value *ends)
{
    int64_t starts[OT__WINDOW_AXES] = {0}, axes[OT__WINDOW_AXES];
    ot_value *in[4] = {v, NULL, ends, NULL};

    for (int a = 0; a < n_axes; a++)
        axes[a] = 2 + a;
    in[1] = ot_emit_constant_i64(g, starts, n_axes);
    in[3] = ot_emit_constant_i64(g, axes, n_axes);
    if (!v || !ends || !in[1] || !in[3])
        return NULL;
    return ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0);
}

static bool spatial_is_known(const ot_shape *shape, int n_axes)
{
    for (int a = 0; a < n_axes; a++)
        if (!ot_dim_is_number(shape->dim[2 + a]))
            return false;
    return true;
}

// What a window has not reached at the end of an axis is below its stride, so where the extents are
// not known a stride less one more is made, and cut.
ot_value *ot__emit_spread(ot_grad *g, const ot__geometry *s, int64_t groups, ot_value *dy,
                          ot_value *w, const ot_shape *x, ot_value *extents)
{
    int64_t pads[2 * OT__WINDOW_AXES], extra[OT__WINDOW_AXES];
    ot_value *const in[] = {dy, w};
    const int n = s->n_axes;
    bool known, cut = false;
    ot_node *node;
    ot_value *dx;

    if (!dy || !w)
        return NULL;
    known = spatial_is_known(x, n) && spatial_is_known(ot_value_shape(dy), n);
    for (int a = 0; a < n; a++) {
        int64_t end = s->pad_end[a] - (s->stride[a] - 1);

        if (known) {
            const int64_t covered = (ot_value_shape(dy)->dim[2 + a] - 1) * s->stride[a] +
                                    (s->kernel[a] - 1) * s->dilation[a] + 1;
            end = covered - s->pad[a] - x->dim[2 + a];
        } else {
            cut = cut || s->stride[a] > 1;
        }
        pads[a] = s->pad[a];
        pads[n + a] = OT_MAX(end, 0);
        extra[a] = OT_MAX(-end, 0);
    }
    node = ot_emit(g, "ConvTranspose", NULL, in, 2, 1);
    ot_emit_ints(g, node, "kernel_shape", s->kernel, n);
    ot_emit_ints(g, node, "strides", s->stride, n);
    ot_emit_ints(g, node, "dilations", s->dilation, n);
    ot_emit_ints(g, node, "pads", pads, 2 * n);
    ot_emit_ints(g, node, "output_padding", extra, n);
    ot_emit_int(g, node, "group", groups);
    dx = ot_emit_output(g, node, 0);
    return cut ? slice_spatial(g, dx, n, extents) : dx;
}

// Channels and batch exchanged; with groups each group's channels side by side in the batch:
// (N, G * C, spatial...) becomes (C, G * N, spatial...).
static ot_value *exchange(ot_grad *g, ot_value *v, int64_t groups, int64_t channels)
{
    const int ndim = ot_value_shape(v)->ndim;
    int64_t perm[OT_MAX_NDIM] = {1, 0};
    const int64_t split[] = {0, groups, channels, -1}, joined[] = {channels, -1};
    ot_value *parts[2], *apart;

    for (int k = 2; k < ndim; k++)
        perm[k] = k;
    if (groups == 1)
        return ot__emit_transpose(g, v, perm, ndim);
    apart = ot__emit_transpose(g, ot__emit_reshape(g, v, split, 4), (int64_t[]){2, 1, 0, 3}, 4);
    parts[0] = ot_emit_constant_i64(g, joined, 2);
    parts[1] = ot__emit_extents(g, v, 2, ndim);
    return ot_emit2(g, "Reshape", apart, ot__emit_concat(g, parts, 2, 0));
}

// dW[m, c, k] = sum over n and o of dY[n, m, o] * X[n, c, o * stride + k * dilation - pad]: the
// batch takes the channels' part, and strides and dilations change places.
static ot_value *emit_dw(ot_grad *g, const ot__geometry *window, int64_t groups, ot_value *dy,
                         ot_value *x, const ot_value *w)
{
    const int n = window->n_axes, ndim = n + 2;
    int64_t perm[OT_MAX_NDIM] = {1, 0};
    ot_value *in[] = {exchange(g, x, groups, ot_value_shape(w)->dim[1]), NULL}, *dw;
    bool is_longer = false;
    ot_node *node;

    for (int k = 2; k < ndim; k++)
        perm[k] = k;
    in[1] = ot__emit_transpose(g, dy, perm, ndim);
    if (!in[0] || !in[1])
        return NULL;
    for (int a = 0; a < n; a++) {
        const int64_t rest = ot_value_shape(x)->dim[2 + a] + window->pad[a] + window->pad_end[a] -
                             (ot_value_shape(dy)->dim[2 + a] - 1) * window->stride[a] - 1;

        is_longer = is_longer || rest / window->dilation[a] + 1 > window->kernel[a];
    }
    node = ot_emit(g, "Conv", NULL, in, 2, 1);
    ot_emit_ints(g, node, "strides", window->dilation, n);
    ot_emit_ints(g, node, "dilations", window->stride, n);
    ot__geometry_emit_pads(g, node, window);
    ot_emit_int(g, node, "group", groups);
    dw = ot_emit_output(g, node, 0);
    if (is_longer)
        dw = slice_spatial(g, dw, n, ot_emit_constant_i64(g, window->kernel, n));
    return ot__emit_transpose(g, dw, perm, ndim);
}

void ot__conv_grad_expand(ot_grad *g)
{
    ot_value *dy = ot_grad_x(g, DY), *x = ot_grad_x(g, X), *w = ot_grad_x(g, W);
    const ot_shape *w_shape = ot_value_shape(w);
    const int64_t groups = ot_attr_int(ot_grad_node(g), "group");
    ot_value *out[3] = {NULL};
    ot__geometry window;

    if (!ot_value_has_shape(x) || !ot_value_has_shape(w) || !ot_value_has_shape(dy))
        return;
    for (int k = 1; k < w_shape->ndim; k++)
        if (!ot_dim_is_number(w_shape->dim[k]))
            return;
    if (ot__geometry_read(&window, ot_grad_node(g), ot_value_shape(x), w_shape->dim + 2) ||
        window.padding != OT__PAD_GIVEN)
        return;
    // A convolution wants the extents of its kernel, which dY would be, as numbers.
    if (ot_expand_wants(g, DW) && !(spatial_is_known(ot_value_shape(x), window.n_axes) &&
                                    spatial_is_known(ot_value_shape(dy), window.n_axes)))
        return;
    if (ot_expand_wants(g, DX))
        out[DX] = ot__emit_spread(g, &window, groups, dy, w, ot_value_shape(x),
                                  ot__emit_extents(g, x, 2, 2 + window.n_axes));
    if (ot_expand_wants(g, DW))
        out[DW] = emit_dw(g, &window, groups, dy, x, w);
    if (ot_expand_wants(g, DB))
        out[DB] = ot__emit_channel_sum(g, dy, false);
    for (int i = DX; i <= DB; i++)
        ot_expand_set(g, i, out[i]);
}
