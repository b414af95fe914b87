// SPDX-License-Identifier: Apache-2.0
// CausalConvWithState: each channel of X (N, C, L) is convolved with a filter of its own, W
// (C, 1, k), over what comes before: past_state, the k - 1 elements before the first, or zeros.
// present_state is what comes before the elements behind the last.
#include <string.h>

#include "op/expand.h"
#include "ops/conv/conv.h"

enum { X, W, B, PAST };
enum { Y, PRESENT };

static bool has_activation(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "activation"), "none") != 0;
}

// ---- inference ----

static bool check_causal_attrs(ot_infer *c)
{
    const char *given = ot_attr_string(ot_infer_node(c), "activation");

    return strcmp(given, "none") == 0 || strcmp(given, "silu") == 0 ||
           strcmp(given, "swish") == 0 ||
           ot__refuse(c, "activation is '%.20s', expected none, silu or swish", given);
}

static bool check_causal_size(ot_infer *c, int input, int axis, int64_t expected)
{
    const int64_t found = ot_infer_shape(c, input)->dim[axis];

    return !ot__dim_differs(found, expected) ||
           ot__refuse(c, "input %d has size %" PRId64 " along axis %d, expected %" PRId64, input,
                      found, axis, expected);
}

static bool check_causal_ndim(ot_infer *c, int input, const char *name, int ndim)
{
    const int found = ot_infer_shape(c, input)->ndim;

    return found == ndim || ot__refuse(c, "%s has %d axes, expected %d", name, found, ndim);
}

static bool check_causal_inputs(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *w = ot_infer_shape(c, W);
    int64_t kernel;

    if (!check_causal_ndim(c, X, "input", 3) || !check_causal_ndim(c, W, "weight", 3))
        return false;
    kernel = w->dim[2];
    if (!ot_dim_is_number(kernel))
        return ot__refuse(c, "the kernel size, axis 2 of weight, must be a number");
    if (kernel < 1 || kernel > OT__WINDOW_EXTENT_MAX)
        return ot__refuse(c, "weight has size %" PRId64 " along axis 2, expected 1 to %d", kernel,
                          (int)OT__WINDOW_EXTENT_MAX);
    if (!check_causal_size(c, W, 0, x->dim[1]) || !check_causal_size(c, W, 1, 1))
        return false;
    if (ot_infer_has(c, B) &&
        (!check_causal_ndim(c, B, "bias", 1) || !check_causal_size(c, B, 0, x->dim[1]) ||
         !check_causal_size(c, B, 0, w->dim[0])))
        return false;
    return !ot_infer_has(c, PAST) ||
           (check_causal_ndim(c, PAST, "past_state", 3) &&
            check_causal_size(c, PAST, 0, x->dim[0]) && check_causal_size(c, PAST, 1, x->dim[1]) &&
            check_causal_size(c, PAST, 1, w->dim[0]) && check_causal_size(c, PAST, 2, kernel - 1));
}

static void causal_conv_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, X), *w = ot_infer_shape(c, W);
    const ot_dtype dtype = ot_infer_dtype(c, X);
    ot_shape present = *x;

    if (!check_causal_attrs(c) || !check_causal_inputs(c))
        return;
    if (ot_infer_has(c, PAST) && ot_dim_is_number(ot_infer_shape(c, PAST)->dim[0]))
        present.dim[0] = ot_infer_shape(c, PAST)->dim[0];
    if (ot_dim_is_number(w->dim[0]))
        present.dim[1] = w->dim[0];
    present.dim[2] = w->dim[2] - 1;
    ot_infer_set(c, Y, dtype, x);
    ot_infer_set(c, PRESENT, dtype, &present);
}

// ---- what it is composed of ----

// Zeros as a past state.
static ot_value *emit_no_past(ot_grad *g, ot_value *x, int64_t n)
{
    ot_value *sizes[2];

    sizes[0] = ot__emit_extents(g, x, 0, 2);
    sizes[1] = ot_emit_constant_i64(g, &n, 1);
    return ot__emit_zeros(g, ot__emit_concat(g, sizes, 2, 0), x);
}

// The elements from `first` on along the last of three axes.
static ot_value *emit_rest(ot_grad *g, ot_value *x, ot_value *first)
{
    static const int64_t end = INT64_MAX, axis = 2;
    ot_value *in[] = {x, first, NULL, NULL};

    in[2] = ot_emit_constant_i64(g, &end, 1);
    in[3] = ot_emit_constant_i64(g, &axis, 1);
    if (x == NULL || first == NULL || in[2] == NULL || in[3] == NULL)
        return NULL;
    return ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0);
}

// What comes before the elements behind x; `whole`: x with its past, or NULL where that is zeros.
static ot_value *emit_present(ot_grad *g, ot_value *x, ot_value *whole, int64_t n)
{
    const int64_t length = ot_value_shape(x)->dim[2];
    ot_value *parts[2] = {NULL, x};

    if (whole == NULL && ot_dim_is_number(length) && length >= n) {
        const int64_t first = length - n;

        return emit_rest(g, x, ot_emit_constant_i64(g, &first, 1));
    }
    if (whole == NULL) {
        parts[0] = emit_no_past(g, x, n);
        whole = ot__emit_concat(g, parts, 2, 2);
    }
    return emit_rest(g, whole, ot__emit_extents(g, x, 2, 3));
}

// `whole` as in emit_present().
static ot_value *emit_causal_conv(ot_grad *g, ot_value *whole, int64_t channels, int64_t n)
{
    const int64_t pads[] = {whole == NULL ? n : 0, 0};
    ot_value *const in[] = {whole == NULL ? ot_grad_x(g, X) : whole, ot_grad_x(g, W),
                            ot_grad_x(g, B)};
    ot_node *node = in[0] == NULL ? NULL : ot_emit(g, "Conv", NULL, in, in[2] == NULL ? 2 : 3, 1);
    ot_value *y;

    ot_emit_int(g, node, "group", channels);
    ot_emit_ints(g, node, "pads", pads, 2);
    y = ot_emit_output(g, node, 0);
    return has_activation(ot_grad_node(g)) ? ot_emit1(g, "Swish", y) : y;
}

static void causal_conv_compose(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, X), *past = ot_grad_x(g, PAST), *w = ot_grad_x(g, W);
    ot_value *const parts[] = {past, x};
    ot_value *whole = NULL, *y, *present = NULL;
    int64_t channels, n;

    if (!ot_value_has_shape(x) || !ot_value_has_shape(w))
        return;
    n = ot_value_shape(w)->dim[2] - 1;
    channels = ot_value_shape(x)->dim[1];
    if (!ot_dim_is_number(channels))
        channels = ot_value_shape(w)->dim[0];
    if (!ot_dim_is_number(channels))
        return;
    if (past != NULL)
        whole = ot__emit_concat(g, parts, 2, 2);
    y = ot_value_shape(x)->dim[2] == 0 ? x : emit_causal_conv(g, whole, channels, n);
    if (ot_expand_wants(g, PRESENT))
        present = emit_present(g, x, whole, n);
    ot_expand_set(g, Y, y);
    ot_expand_set(g, PRESENT, present);
}

static const ot_port causal_conv_in[] = {
    {"input", "T", 0},
    {"weight", "T", OT_PORT_WEIGHT},
    {"bias", "T", OT_PORT_OPTIONAL | OT_PORT_BIAS},
    {"past_state", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port causal_conv_out[] = {{"output", "T", 0}, {"present_state", "T", 0}, {0}};
static const ot_attr_spec causal_conv_attrs[] = {OT__STRING_ATTR("activation", "none"), {0}};
const ot_op_def ot__op_causal_conv_with_state[] = {
    {.name = "CausalConvWithState",
     .since = 27,
     .inputs = causal_conv_in,
     .outputs = causal_conv_out,
     .attrs = causal_conv_attrs,
     .types = "T: f32 f64",
     .infer = causal_conv_infer,
     .train = causal_conv_compose},
    {0},
};
