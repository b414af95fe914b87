// SPDX-License-Identifier: Apache-2.0
// What oneDNN's primitives of a convolution are made from, and their descriptions.
#include "kernels/conv/dnnl_conv_parts.h"

#include <string.h>

// ---- problems that oneDNN has fast code for ----

bool ot__conv_is_raised(const ot__dnnl_conv *c)
{
    return c->x->ndim == SPATIAL + 1 && ot__dnnl_conv_is_depthwise(c);
}

static ot_shape with_axis(const ot_shape *shape)
{
    return OT_SHAPE(shape->dim[0], shape->dim[1], 1, shape->dim[2]);
}

static const ot_layout *layout_with_axis(const ot_layout *layout)
{
    if (layout == NULL)
        return NULL;
    return ot__layout_is_channels_last(layout)
               ? ot__layout_channels_last(SPATIAL + 2)
               : ot__layout_blocked(SPATIAL + 2, ot__layout_channel_block(layout));
}

const ot__dnnl_conv *ot__conv_raise(const ot__dnnl_conv *c, ot__conv_raised *r)
{
    if (!ot__conv_is_raised(c))
        return c;
    *r = (ot__conv_raised){.c = *c,
                           .x = with_axis(c->x),
                           .w = with_axis(c->w),
                           .y = with_axis(c->y),
                           .strides = {1, c->strides[0]},
                           .dilations = {1, c->dilations[0]},
                           .pads = {0, c->pads[0]}};
    r->c.x = &r->x;
    r->c.w = &r->w;
    r->c.y = &r->y;
    r->c.x_layout = layout_with_axis(c->x_layout);
    r->c.y_layout = layout_with_axis(c->y_layout);
    r->c.strides = r->strides;
    r->c.dilations = r->dilations;
    r->c.pads = r->pads;
    return &r->c;
}

// ---- descriptions ----

static void describe_window(const ot__dnnl_conv *c, ot__conv_parts *p)
{
    for (int k = 0; k < c->x->ndim - SPATIAL; k++) {
        const int64_t reach = (c->w->dim[k + SPATIAL] - 1) * c->dilations[k] + 1;

        p->strides[k] = c->strides[k];
        p->dilations[k] = c->dilations[k] - 1;
        p->pads[k] = c->pads[k];
        // What the last window reads behind the input; negative where it leaves some out.
        p->pads_end[k] = (c->y->dim[k + SPATIAL] - 1) * c->strides[k] + reach -
                         c->x->dim[k + SPATIAL] - c->pads[k];
    }
}

ot__dnnl_convolution ot__conv_problem(const ot__conv_parts *p, ot__dnnl_direction direction,
                                      bool has_bias)
{
    const bool makes_w = direction == OT__DNNL_BACKWARD_WEIGHTS;

    return (ot__dnnl_convolution){.direction = direction,
                                  .x = ot__md_of(&p->x),
                                  .w = ot__md_of(makes_w ? &p->dw_any : &p->w_any),
                                  .b = has_bias ? ot__md_of(makes_w ? &p->db : &p->b) : NULL,
                                  .y = ot__md_of(&p->y),
                                  .strides = p->strides,
                                  .dilations = p->dilations,
                                  .pads = p->pads,
                                  .pads_end = p->pads_end};
}

dnnl_status_t ot__conv_describe_primitive(const ot__conv_parts *p,
                                          const ot__dnnl_convolution *problem,
                                          const_dnnl_primitive_attr_t attr,
                                          dnnl_primitive_desc_t *pd)
{
    const int n_threads = ot__parallel_max();
    const_dnnl_primitive_desc_t hint = problem->direction == OT__DNNL_FORWARD ? NULL : p->forward;
    dnnl_status_t st;

    if (p->n_chunks > 0)
        ot__parallel_set(1);
    st = ot__dnnl_pd_convolution(pd, p->engine, problem, hint, attr);
    ot__parallel_set(n_threads);
    return st;
}

dnnl_status_t ot__conv_describe(const ot__dnnl_conv *c, const ot__conv_way *images,
                                ot__conv_parts *p)
{
    const ot_shape bias = OT_SHAPE(c->y->dim[1]);
    ot_shape x = *c->x, y = *c->y;
    ot__dnnl_convolution forward;

    if (p->n_chunks > 0)
        x.dim[0] = y.dim[0] = c->x->dim[0] / p->n_chunks;

    OT__DNNL_TRY(ot__dnnl_engine(&p->engine));
    OT__DNNL_TRY(ot__dnnl_attr(c->relu, &p->attr));
    OT__DNNL_TRY(ot__dnnl_attr(false, &p->plain_attr));
    OT__DNNL_TRY(ot__dnnl_md(&p->x, c->type, &x, images->x));
    OT__DNNL_TRY(ot__dnnl_md(&p->y, c->type, &y, images->y));
    OT__DNNL_TRY(ot__dnnl_md(&p->x_given, c->type, &x, c->x_layout));
    OT__DNNL_TRY(ot__dnnl_md(&p->y_given, c->type, &y, c->y_layout));
    OT__DNNL_TRY(ot__dnnl_md(&p->b, c->bias_type, &bias, NULL));
    OT__DNNL_TRY(ot__dnnl_md(&p->db, OT_F32, &bias, NULL));
    OT__DNNL_TRY(ot__dnnl_weights_md(&p->w, c->type, c->w, c->groups, c->w_layout));
    OT__DNNL_TRY(ot__dnnl_weights_md(&p->dw, OT_F32, c->w, c->groups, c->w_layout));
    OT__DNNL_TRY(ot__dnnl_weights_any(&p->w_any, c->type, c->w, c->groups));
    OT__DNNL_TRY(ot__dnnl_weights_any(&p->dw_any, OT_F32, c->w, c->groups));
    describe_window(c, p);
    forward = ot__conv_problem(p, OT__DNNL_FORWARD, c->has_bias);
    return ot__conv_describe_primitive(p, &forward, p->attr, &p->forward);
}

dnnl_status_t ot__conv_describe_direction(const ot__dnnl_conv *c, const ot__conv_way *images,
                                          ot__dnnl_direction direction, ot__conv_parts *p)
{
    ot__dnnl_convolution problem;

    OT__DNNL_TRY(ot__conv_describe(c, images, p));
    if (direction == OT__DNNL_FORWARD)
        return dnnl_success;
    problem = ot__conv_problem(p, direction, direction == OT__DNNL_BACKWARD_WEIGHTS && p->wants_db);
    return ot__conv_describe_primitive(p, &problem, p->plain_attr, &p->backward);
}

void ot__conv_forget(ot__conv_parts *p)
{
    dnnl_primitive_desc_destroy(p->backward);
    dnnl_primitive_desc_destroy(p->forward);
    dnnl_primitive_attr_destroy(p->attr);
    dnnl_primitive_attr_destroy(p->plain_attr);
    ot__md_release(&p->x);
    ot__md_release(&p->y);
    ot__md_release(&p->x_given);
    ot__md_release(&p->y_given);
    ot__md_release(&p->b);
    ot__md_release(&p->db);
    ot__md_release(&p->w_any);
    ot__md_release(&p->w);
    ot__md_release(&p->dw_any);
    ot__md_release(&p->dw);
}

bool ot__conv_is_called(const ot__conv_parts *p, const char *start)
{
    const_dnnl_primitive_desc_t pd = p->backward != NULL ? p->backward : p->forward;
    const char *name = NULL;

    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) ==
               dnnl_success &&
           name != NULL && strncmp(name, start, strlen(start)) == 0;
}

bool ot__conv_is_reference(const ot__conv_parts *p)
{
    return ot__conv_is_called(p, "ref");
}
