// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.h"
#include "ops/move/move.h"

static const char extents_attr[] = "__input_extents";

const ot_attr_spec ot__pool_attrs[] = {
    {.name = "auto_pad", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_HAS_DEFAULT, .s = "NOTSET"},
    {.name = "ceil_mode", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {.name = "count_include_pad", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "kernel_shape", .kind = OT_ATTRIBUTE_INTS, .flags = OT_ATTR_REQUIRED},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "storage_order", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
const ot_port ot__pool_in[] = {{"X", "T", 0}, {0}};
const ot_port ot__pool_out[] = {{"Y", "T", 0}, {0}};

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

static void describe(ot_prep *p, const ot_arg *x, const ot_arg *y, ot__pool *pool)
{
    const ot_node *node = ot_prep_node(p);
    ot__geometry g;

    (void)ot__pool_read(NULL, node, &x->shape, &g);
    for (int a = 0; a < g.n_axes; a++)
        (void)ot__geometry_out(&g, a, x->shape.dim[2 + a]); // settles SAME padding
    *pool = (ot__pool){.n = x->shape.dim[0] * x->shape.dim[1],
                       .window = ot__window_make(&g, &x->shape, &y->shape),
                       .count_pads = ot_attr_int(node, "count_include_pad") != 0,
                       .column_major = ot_attr_int(node, "storage_order") != 0};
    for (int a = 0; a < g.n_axes; a++)
        pool->pad_end[OT__WINDOW_AXES - g.n_axes + a] = g.pad_end[a];
}

ot_status ot__pool_prepare(ot_prep *p, const ot_arg *x, const ot_arg *y)
{
    ot__pool *pool = ot_prep_state(p, sizeof(*pool));

    if (!pool)
        return OT_ERR_NO_MEMORY;
    describe(p, x, y, pool);
    return OT_OK;
}

bool ot__pool_has_any_form(const ot_arg *x, const ot_arg *y)
{
    return x->dtype == OT_F32 && x->count > 0 && y->count > 0 &&
           ot__plane_elements(&x->shape) <= INT32_MAX;
}

ot_status ot__any_pool_prepare(ot_prep *p, const ot_arg *x, const ot_arg *y)
{
    ot__any_pool *state = ot_prep_state(p, sizeof(*state));

    if (!state)
        return OT_ERR_NO_MEMORY;
    describe(p, x, y, &state->pool);
    if (!ot__channels_of(&x->shape, x->form, &state->channels))
        return ot_prep_fail(p, OT_ERR_INTERNAL, "the layout of X is not one of images");
    return OT_OK;
}

ot__maxima ot__pool_maxima(const ot_arg *at)
{
    return (ot__maxima){
        .indices = at != NULL && at->dtype == OT_I64 ? at->data : NULL,
        .positions = at != NULL && at->dtype == OT_I32 ? at->data : NULL,
        .cells = at != NULL && at->dtype == OT_U8 ? at->data : NULL,
    };
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

ot_status ot__average_pool_grad_run(const ot_run *r)
{
    const ot__pool *p = r->state;

    if (r->in[0]->dtype == OT_F32)
        ot__ref_average_pool_grad_f32(r->out[0]->data, r->in[0]->data, p);
    else
        ot__ref_average_pool_grad_f64(r->out[0]->data, r->in[0]->data, p);
    return OT_OK;
}

// ---- global pools ----

void ot__global_pool_infer(ot_infer *c)
{
    ot_shape y = *ot_infer_shape(c, 0);

    if (y.ndim < 3) {
        ot_infer_fail(c, "X has %d axes, expected at least 3", y.ndim);
        return;
    }
    for (int i = 2; i < y.ndim; i++) {
        if (y.dim[i] == 0) {
            ot_infer_fail(c, "X has no elements along axis %d", i);
            return;
        }
        y.dim[i] = 1;
    }
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

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

static bool is_narrow(const ot_arg *x)
{
    return x->dtype != OT_F32 && x->dtype != OT_F64;
}

void ot__pool_scratch_narrow(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *y = ot_prep_out(p, 0);

    if (is_narrow(x))
        ot_prep_scratch(p, (size_t)(x->count + y->count) * sizeof(float));
}

void ot__pool_run_narrow(const ot_run *r, ot__narrow_pool pool)
{
    const ot_arg *from = r->in[0];
    ot_arg *to = r->out[0];
    float *x = r->scratch, *y = x + from->count;

    ot__convert(x, OT_F32, from->data, from->dtype, from->count);
    pool(r, y, x);
    ot__convert(to->data, to->dtype, y, OT_F32, to->count);
}
