// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.h"

// The state of both kernels.
typedef struct conv_state {
    ot__dnnl_program *program;
} conv_state;

// What oneDNN is asked for; `geometry` keeps the numbers that it points to.
static bool read_problem(const ot_prep *p, const ot_arg *x, const ot_arg *w, const ot_arg *y,
                         ot__geometry *geometry, ot__dnnl_conv *c)
{
    if (x->dtype != OT_F32 || x->shape.ndim != w->shape.ndim || x->shape.ndim != y->shape.ndim ||
        ot__geometry_read(geometry, ot_prep_node(p), &x->shape, w->shape.dim + 2) != NULL)
        return false;
    for (int a = 0; a < geometry->n_axes; a++) // settles SAME padding
        if (ot__geometry_out(geometry, a, x->shape.dim[2 + a]) != y->shape.dim[2 + a])
            return false;
    *c = (ot__dnnl_conv){.x = &x->shape,
                         .w = &w->shape,
                         .y = &y->shape,
                         .x_form = x->form,
                         .w_form = w->form,
                         .y_form = y->form,
                         .groups = ot_attr_int(ot_prep_node(p), "group"),
                         .strides = geometry->stride,
                         .dilations = geometry->dilation,
                         .pads = geometry->pad};
    return c->groups >= 1 && w->shape.dim[0] % c->groups == 0 &&
           x->shape.dim[1] == w->shape.dim[1] * c->groups && y->shape.dim[1] == w->shape.dim[0] &&
           y->shape.dim[0] == x->shape.dim[0];
}

static ot_status keep(ot_prep *p, ot__dnnl_program *program)
{
    conv_state *state = ot_prep_state(p, sizeof(*state));

    if (!state) {
        ot__dnnl_destroy(program);
        return OT_ERR_NO_MEMORY;
    }
    state->program = program;
    ot_prep_scratch(p, ot__dnnl_scratch_bytes(program));
    return OT_OK;
}

void ot__conv_release_dnnl(void *state)
{
    ot__dnnl_destroy(((conv_state *)state)->program);
}

static void *data_of(const ot_arg *const *args, int n, int i)
{
    return i < n && args[i] ? args[i]->data : NULL;
}

// The form of the weights, which are input i: what they have, where that is settled. What is
// fastest may follow from the number of threads.
static const ot_form *weights_form(const ot_prep *p, int i, const ot__dnnl_conv *c)
{
    if (ot_prep_is_open(p, i))
        return ot_prep_reproducible(p) ? NULL : ot__dnnl_conv_weights_form(c);
    return ot__dnnl_conv_accepts_weights(c) ? ot_prep_offered_in(p, i) : NULL;
}

// ---- forward ----

bool ot__conv_can_dnnl(const ot_prep *p)
{
    ot__geometry geometry;
    ot__dnnl_conv c;

    return read_problem(p, ot_prep_in(p, 0), ot_prep_in(p, 1), ot_prep_out(p, 0), &geometry, &c) &&
           ot__dnnl_can_conv(&c);
}

void ot__conv_forms_dnnl(ot_prep *p)
{
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!read_problem(p, ot_prep_in(p, 0), ot_prep_in(p, 1), ot_prep_out(p, 0), &geometry, &c))
        return;
    ot__dnnl_conv_forms(&c, &c.x_form, &c.y_form);
    ot_prep_want_in(p, 0, c.x_form);
    ot_prep_want_in(p, 1, weights_form(p, 1, &c));
    ot_prep_want_out(p, 0, c.y_form);
}

static ot_status prepare(ot_prep *p, bool relu, bool is_exact)
{
    ot__dnnl_program *program;
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!read_problem(p, ot_prep_in(p, 0), ot_prep_in(p, 1), ot_prep_out(p, 0), &geometry, &c))
        return ot_prep_fail(p, OT_ERR_INVALID, "X, W and Y do not belong to one convolution");
    c.has_bias = ot_prep_in(p, 2) != NULL;
    c.relu = relu;
    c.is_exact = is_exact;
    OT_TRY(ot__dnnl_conv_create(&c, &program));
    return keep(p, program);
}

ot_status ot__conv_prepare_dnnl(ot_prep *p)
{
    return prepare(p, false, false);
}

ot_status ot__conv_prepare_dnnl_exact(ot_prep *p)
{
    return prepare(p, false, true);
}

ot_status ot__conv_relu_prepare_dnnl(ot_prep *p)
{
    return prepare(p, true, false);
}

ot_status ot__conv_relu_prepare_dnnl_exact(ot_prep *p)
{
    return prepare(p, true, true);
}

ot_status ot__conv_run_dnnl(const ot_run *r)
{
    void *const slots[] = {
        [OT__DNNL_CONV_X] = r->in[0]->data,
        [OT__DNNL_CONV_W] = r->in[1]->data,
        [OT__DNNL_CONV_B] = data_of(r->in, r->n_in, 2),
        [OT__DNNL_CONV_Y] = r->out[0]->data,
    };

    return ot__dnnl_run(((const conv_state *)r->state)->program, slots, r->scratch);
}

// ---- backward ----

bool ot__conv_grad_can_dnnl(const ot_prep *p)
{
    ot__geometry geometry;
    ot__dnnl_conv c;

    return read_problem(p, ot_prep_in(p, 1), ot_prep_in(p, 2), ot_prep_in(p, 0), &geometry, &c) &&
           ot__dnnl_can_conv(&c);
}

void ot__conv_grad_forms_dnnl(ot_prep *p)
{
    const ot_form *w_form;
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!read_problem(p, ot_prep_in(p, 1), ot_prep_in(p, 2), ot_prep_in(p, 0), &geometry, &c))
        return;
    ot__dnnl_conv_forms(&c, &c.x_form, &c.y_form);
    w_form = weights_form(p, 2, &c);
    ot_prep_want_in(p, 0, c.y_form);
    ot_prep_want_in(p, 1, c.x_form);
    ot_prep_want_in(p, 2, w_form);
    ot_prep_want_out(p, 0, c.x_form);
    ot_prep_want_out(p, 1, w_form);
}

static ot_status prepare_grad(ot_prep *p, bool is_exact)
{
    ot__dnnl_program *program;
    ot__geometry geometry;
    ot__dnnl_conv c;

    if (!read_problem(p, ot_prep_in(p, 1), ot_prep_in(p, 2), ot_prep_in(p, 0), &geometry, &c))
        return ot_prep_fail(p, OT_ERR_INVALID, "dY, X and W do not belong to one convolution");
    c.is_exact = is_exact;
    OT_TRY(ot__dnnl_conv_grad_create(&c, ot_prep_out(p, 0) != NULL, ot_prep_out(p, 1) != NULL,
                                     ot_prep_out(p, 2) != NULL, &program));
    return keep(p, program);
}

ot_status ot__conv_grad_prepare_dnnl(ot_prep *p)
{
    return prepare_grad(p, false);
}

ot_status ot__conv_grad_prepare_dnnl_exact(ot_prep *p)
{
    return prepare_grad(p, true);
}

ot_status ot__conv_grad_run_dnnl(const ot_run *r)
{
    const ot_arg *const *out = (const ot_arg *const *)r->out;
    void *const slots[] = {
        [OT__DNNL_CONV_GRAD_DY] = r->in[0]->data,
        [OT__DNNL_CONV_GRAD_X] = r->in[1]->data,
        [OT__DNNL_CONV_GRAD_W] = r->in[2]->data,
        [OT__DNNL_CONV_GRAD_DX] = data_of(out, r->n_out, 0),
        [OT__DNNL_CONV_GRAD_DW] = data_of(out, r->n_out, 1),
        [OT__DNNL_CONV_GRAD_DB] = data_of(out, r->n_out, 2),
    };

    return ot__dnnl_run(((const conv_state *)r->state)->program, slots, r->scratch);
}
