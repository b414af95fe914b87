// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.h"
#include "op/grad.h"

static const char extents_attr[] = "__input_extents";

const ot_attr_spec ot__pool_attrs[] = {
    OT__STRING_ATTR("auto_pad", "NOTSET"),
    OT__INT_ATTR("ceil_mode", 0),
    OT__INT_ATTR("count_include_pad", 0),
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    OT__INT_ATTR("storage_order", 0),
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};

bool ot__pool_read(ot_infer *c, const ot_node *node, const ot_shape *x, ot__geometry *g)
{
    const char *wrong = ot__geometry_read(g, node, x, NULL);

    g->ceil_mode = ot_attr_int(node, "ceil_mode") != 0;
    for (int a = 0; !wrong && a < g->n_axes; a++)
        if (OT_MAX(g->pad[a], g->pad_end[a]) >= g->kernel[a])
            wrong = "a pad is not smaller than the window";
    if (wrong && c)
        ot_infer_fail(c, "%s", wrong);
    return wrong == NULL;
}

bool ot__pool_infer(ot_infer *c, ot_shape *y)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot__geometry g;

    if (!ot__pool_read(c, ot_infer_node(c), x, &g))
        return false;
    *y = *x;
    return ot__geometry_infer(c, &g, x, y);
}

static ot_status pool_describe(ot_prep *p, const ot_arg *x, const ot_arg *y)
{
    const ot_node *node = ot_prep_node(p);
    ot__pool_state *state = ot_prep_state(p, sizeof(*state));
    ot__geometry g;

    OT_TRY(ot__made(state));
    (void)ot__pool_read(NULL, node, &x->shape, &g);
    ot__geometry_settle(&g, &x->shape);
    state->pool = (ot__pool){.n = x->shape.dim[0] * x->shape.dim[1],
                             .window = ot__window_make(&g, &x->shape, &y->shape),
                             .count_pads = ot_attr_int(node, "count_include_pad") != 0,
                             .column_major = ot_attr_int(node, "storage_order") != 0,
                             .p = (double)ot_attr_int(node, "p")};
    for (int a = 0; a < g.n_axes; a++)
        state->pool.pad_end[OT__WINDOW_AXES - g.n_axes + a] = g.pad_end[a];
    if (!ot__channels_of(&x->shape, x->layout, &state->channels))
        return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
    return OT_OK;
}

ot_status ot__pool_prepare(ot_prep *p)
{
    return pool_describe(p, ot_prep_in(p, 0), ot_prep_out(p, 0));
}

ot_status ot__pool_grad_prepare(ot_prep *p)
{
    return pool_describe(p, ot_prep_out(p, 0), ot_prep_in(p, 0));
}

// ---- gradients ----

void ot__pool_infer_input(ot_infer *c, const ot_shape *y, ot_shape *x)
{
    const ot_node *node = ot_infer_node(c);
    int n;
    const int64_t *extents = ot_attr_ints(node, extents_attr, &n);
    ot__geometry g;

    *x = *y;
    if (!ot__pool_read(c, node, y, &g))
        return;
    for (int a = 0; a < g.n_axes; a++) {
        const int64_t beyond =
            (g.kernel[a] - 1) * g.dilation[a] - g.pad[a] - g.pad_end[a]; // one window's beyond 1
        int64_t *to = &x->dim[a + 2], made;

        if (extents && n == g.n_axes)
            *to = extents[a];
        else if (g.stride[a] == 1 && g.padding == OT__PAD_GIVEN)
            *to = ot_infer_add(c, y->dim[a + 2], beyond);
        else
            *to = ot_dim_unknown();
        if (!ot_dim_is_number(*to))
            continue;
        made = *to < 1 || *to > INT32_MAX ? 0 : ot__geometry_out(&g, a, *to);
        if (made < 1 || (ot_dim_is_number(y->dim[a + 2]) && made != y->dim[a + 2])) {
            ot_infer_fail(c, "size %" PRId64 " along axis %d does not make dY", *to, a + 2);
            return;
        }
    }
}

void ot__pool_emit_extents(ot_grad *g, ot_node *node, const ot_value *x)
{
    const ot_shape *shape = ot_value_shape(x);

    ot_emit_ints(g, node, extents_attr, shape->dim + 2, shape->ndim - 2);
}

ot_value *ot__pool_emit_window(ot_grad *g, const ot__geometry *window, int64_t channels,
                               double weight, ot_dtype dtype)
{
    ot_shape shape = {2 + window->n_axes, {channels, 1}};
    ot_value *w;

    for (int a = 0; a < window->n_axes; a++)
        shape.dim[2 + a] = window->kernel[a];
    w = ot__emit_tensor(g, dtype, &shape);
    for (int64_t i = 0; w && i < ot_tensor_count(w->constant); i++)
        ot__set_element(w->constant, i, weight);
    return w;
}

// ---- planes ----

bool ot__spatial_is_static(const ot_value *x)
{
    const ot_shape *shape = ot_value_shape(x);

    for (int i = 2; i < shape->ndim; i++)
        if (!ot_dim_is_number(shape->dim[i]))
            return false;
    return ot_value_has_shape(x);
}

int64_t ot__plane_elements(const ot_shape *x)
{
    int64_t n = 1;

    for (int i = 2; i < x->ndim; i++)
        n *= x->dim[i];
    return n;
}

ot_value *ot__emit_plane_elements(ot_grad *g, ot_value *x, ot_value *y)
{
    const ot_dtype dtype = ot_value_dtype(x);
    ot_value *planes;

    if (ot__spatial_is_static(x))
        return ot_emit_constant(g, (double)ot__plane_elements(ot_value_shape(x)), x);
    planes = ot_emit_cast(g, ot_emit1(g, "Size", y), dtype);
    return ot_emit2(g, "Div", ot_emit_cast(g, ot_emit1(g, "Size", x), dtype), planes);
}

ot_value *ot__emit_spatial_axes(ot_grad *g, const ot_value *x)
{
    int64_t axes[OT_MAX_NDIM];
    const int n = ot_value_shape(x)->ndim - 2;

    if (!ot__grad_knows_axes(g, x))
        return NULL;
    for (int i = 0; i < n; i++)
        axes[i] = i + 2;
    return ot_emit_constant_i64(g, axes, n);
}

// ---- narrow types ----

void ot__pool_scratch_narrow(ot_prep *p)
{
    ot_prep_scratch(p,
                    (size_t)(ot_prep_in(p, 0)->count + ot_prep_out(p, 0)->count) * sizeof(float));
}

ot_status ot__pool_run_narrow(const ot_run *r, ot_status (*run)(const ot_run *r))
{
    ot_arg x = *r->in[0], y = *r->out[0];
    const ot_arg *const in[] = {&x};
    ot_arg *const out[] = {&y, r->n_out > 1 ? r->out[1] : NULL};
    ot_run copies = *r;

    x.data = r->scratch;
    // Where both are empty there is no scratch.
    y.data = x.count > 0 ? (float *)x.data + x.count : x.data;
    x.dtype = y.dtype = OT_F32;
    copies.in = in;
    copies.out = out;
    (void)ot__convert(x.data, OT_F32, r->in[0]->data, r->in[0]->dtype, x.count);
    OT_TRY(run(&copies));
    (void)ot__convert(r->out[0]->data, r->out[0]->dtype, y.data, OT_F32, y.count);
    return OT_OK;
}
