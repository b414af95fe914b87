// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/window.h"

#include <string.h>

const ot_attr_spec ot__conv_attrs[] = {
    OT__STRING_ATTR("auto_pad", "NOTSET"),
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("group", 1),
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};

static const char *read_window_extents(const ot_node *node, const char *name, int n_axes,
                                       int64_t least, int64_t otherwise, int64_t *to)
{
    int n;
    const int64_t *values = ot_attr_ints(node, name, &n);

    for (int a = 0; a < n_axes; a++)
        to[a] = values && a < n ? values[a] : otherwise;
    if (values && n != n_axes)
        return "an attribute has not one entry a spatial axis";
    for (int a = 0; a < n_axes; a++)
        if (to[a] < least || to[a] > OT__WINDOW_EXTENT_MAX)
            return "a kernel size, stride or dilation is out of range";
    return NULL;
}

static const char *read_pads(ot__geometry *g, const ot_node *node)
{
    const char *automatic = ot_attr_string(node, "auto_pad");
    int n;
    const int64_t *pads = ot_attr_ints(node, "pads", &n);

    g->padding = OT__PAD_GIVEN;
    if (strcmp(automatic, "SAME_UPPER") == 0)
        g->padding = OT__PAD_SAME_UPPER;
    else if (strcmp(automatic, "SAME_LOWER") == 0)
        g->padding = OT__PAD_SAME_LOWER;
    else if (strcmp(automatic, "VALID") == 0)
        pads = NULL;
    else if (strcmp(automatic, "NOTSET") != 0 && automatic[0] != '\0')
        return "auto_pad is not one of NOTSET, SAME_UPPER, SAME_LOWER and VALID";
    if (g->padding != OT__PAD_GIVEN || !pads)
        return NULL;
    if (n != 2 * g->n_axes)
        return "pads has not two entries a spatial axis";
    for (int a = 0; a < g->n_axes; a++) {
        g->pad[a] = pads[a];
        g->pad_end[a] = pads[g->n_axes + a];
        if (pads[a] < 0 || pads[a] > OT__WINDOW_EXTENT_MAX || g->pad_end[a] < 0 ||
            g->pad_end[a] > OT__WINDOW_EXTENT_MAX)
            return "pads are out of range";
    }
    return NULL;
}

const char *ot__geometry_read(ot__geometry *g, const ot_node *node, const ot_shape *x,
                              const int64_t *kernel)
{
    const char *wrong;
    int n;

    *g = (ot__geometry){.n_axes = x->ndim - 2};
    if (g->n_axes < 1 || g->n_axes > OT__WINDOW_AXES)
        return "X must have one to three spatial axes";
    if (kernel) {
        memcpy(g->kernel, kernel, (size_t)g->n_axes * sizeof(int64_t));
        for (int a = 0; a < g->n_axes; a++)
            if (kernel[a] < 1 || kernel[a] > OT__WINDOW_EXTENT_MAX)
                return "a kernel size is out of range";
    } else {
        if (!ot_attr_ints(node, "kernel_shape", &n))
            return "kernel_shape is missing";
        wrong = read_window_extents(node, "kernel_shape", g->n_axes, 1, 1, g->kernel);
        if (wrong)
            return wrong;
    }
    wrong = read_window_extents(node, "strides", g->n_axes, 1, 1, g->stride);
    if (!wrong)
        wrong = read_window_extents(node, "dilations", g->n_axes, 1, 1, g->dilation);
    return wrong ? wrong : read_pads(g, node);
}

static int64_t span(const ot__geometry *g, int a)
{
    return (g->kernel[a] - 1) * g->dilation[a] + 1;
}

int64_t ot__geometry_out(ot__geometry *g, int a, int64_t n)
{
    int64_t reach, out;

    if (g->padding != OT__PAD_GIVEN) {
        int64_t total;
        out = (n + g->stride[a] - 1) / g->stride[a];
        total = OT_MAX((out - 1) * g->stride[a] + span(g, a) - n, 0);
        g->pad[a] = g->padding == OT__PAD_SAME_UPPER ? total / 2 : (total + 1) / 2;
        g->pad_end[a] = total - g->pad[a];
        return out;
    }
    reach = n + g->pad[a] + g->pad_end[a] - span(g, a);
    if (reach < 0)
        return 0;
    out = reach / g->stride[a] + 1;
    if (g->ceil_mode && reach % g->stride[a] != 0 && out * g->stride[a] < n + g->pad[a])
        out++; // but no window starts in the padding at the end
    return out;
}

void ot__geometry_settle(ot__geometry *g, const ot_shape *x)
{
    for (int a = 0; a < g->n_axes; a++)
        (void)ot__geometry_out(g, a, x->dim[2 + a]);
}

bool ot__geometry_infer(ot_infer *c, ot__geometry *g, const ot_shape *x, ot_shape *y)
{
    y->ndim = x->ndim;
    for (int a = 0; a < g->n_axes; a++) {
        const int64_t n = x->dim[2 + a];
        if (ot_dim_is_number(n)) {
            y->dim[2 + a] = ot__geometry_out(g, a, n);
            if (y->dim[2 + a] < 1 && n > 0)
                return ot__refuse(c,
                                  "the window spans %" PRId64
                                  " along spatial axis %d, X has %" PRId64 " with padding",
                                  span(g, a), a, n + g->pad[a] + g->pad_end[a]);
        } else if (g->padding != OT__PAD_GIVEN && g->stride[a] == 1) {
            y->dim[2 + a] = n;
        } else if (g->padding == OT__PAD_GIVEN && !g->ceil_mode) {
            const int64_t reach = ot_infer_add(c, n, g->pad[a] + g->pad_end[a] - span(g, a));
            y->dim[2 + a] = ot_infer_add(c, ot_infer_div(c, reach, g->stride[a]), 1);
        } else {
            y->dim[2 + a] = ot_dim_unknown();
        }
    }
    return true;
}

ot__window ot__window_make(const ot__geometry *g, const ot_shape *x, const ot_shape *y)
{
    ot__window w = {.n_in = 1, .n_out = 1, .n_kernel = 1};

    for (int a = 0; a < OT__WINDOW_AXES; a++) {
        const int from = a - (OT__WINDOW_AXES - g->n_axes); // missing axes stand in front
        const bool is_missing = from < 0;

        w.in[a] = is_missing ? 1 : x->dim[2 + from];
        w.out[a] = is_missing ? 1 : y->dim[2 + from];
        w.kernel[a] = is_missing ? 1 : g->kernel[from];
        w.stride[a] = is_missing ? 1 : g->stride[from];
        w.dilation[a] = is_missing ? 1 : g->dilation[from];
        w.pad[a] = is_missing ? 0 : g->pad[from];
        w.n_in *= w.in[a];
        w.n_out *= w.out[a];
        w.n_kernel *= w.kernel[a];
    }
    return w;
}

void ot__geometry_emit_pads(ot_grad *g, ot_node *node, const ot__geometry *geometry)
{
    int64_t pads[2 * OT__WINDOW_AXES];
    const int n = geometry->n_axes;

    for (int a = 0; a < n; a++) {
        pads[a] = geometry->pad[a];
        pads[n + a] = geometry->pad_end[a];
    }
    ot_emit_ints(g, node, "pads", pads, 2 * n);
}

bool ot__geometry_emit(ot_grad *g, ot_node *node, ot__geometry *geometry, const ot_shape *x,
                       bool with_kernel)
{
    const int n = geometry->n_axes;

    for (int a = 0; a < n; a++) {
        if (geometry->padding != OT__PAD_GIVEN) {
            if (!ot_dim_is_number(x->dim[2 + a])) {
                ot_grad_fail(g, "auto_pad SAME needs spatial dim sizes that are numbers");
                return false;
            }
            (void)ot__geometry_out(geometry, a, x->dim[2 + a]);
        }
    }
    ot_emit_ints(g, node, "strides", geometry->stride, n);
    ot_emit_ints(g, node, "dilations", geometry->dilation, n);
    ot__geometry_emit_pads(g, node, geometry);
    if (with_kernel)
        ot_emit_ints(g, node, "kernel_shape", geometry->kernel, n);
    return true;
}

ot__conv ot__conv_make(const ot__geometry *g, const ot_shape *x, const ot_shape *w,
                       const ot_shape *y, int64_t groups)
{
    return (ot__conv){.batch = x->dim[0],
                      .groups = groups,
                      .c_in = x->dim[1] / groups,
                      .c_out = w->dim[0] / groups,
                      .window = ot__window_make(g, x, y)};
}

size_t ot__conv_scratch_bytes(const ot__conv *p, ot_dtype dtype)
{
    return (size_t)(p->c_in * p->window.n_kernel * p->window.n_out) * ot_dtype_size(dtype);
}
