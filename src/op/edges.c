// SPDX-License-Identifier: Apache-2.0
// Kernels for f32 run nodes of f16 and bf16: their arguments of those types are converted to f32 in
// scratch, the kernel runs on that, and what it has written is converted back.
#include "op/op.h"

enum { NOT_CONVERTED = -1, MAX_CONSTANT = 4096 };

static bool is_narrow(const ot_arg *arg)
{
    return arg != NULL && ot__dtype_is_narrow(arg->dtype);
}

bool ot__edges_wanted(const ot_prep *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (is_narrow(p->in[i]))
            return true;
    for (int i = 0; i < p->n_out; i++)
        if (is_narrow(p->out[i]))
            return true;
    return false;
}

static const ot_arg *widened(ot__edges *e, int at, const ot_arg *arg)
{
    if (!is_narrow(arg))
        return arg;
    e->args[at] = *arg;
    e->args[at].data = NULL;
    e->args[at].dtype = OT_F32;
    e->slot[at] = 0; // its place comes with the scratch
    return &e->args[at];
}

// Kernels may want the elements while they are prepared, of small constants.
static ot_status widen_constant(ot__arena *arena, const ot_prep *p, ot__edges *e, int i)
{
    const ot_arg *x = p->in[i];
    float *elements;

    e->constant[i] = NULL;
    if (p->constant == NULL || p->constant[i] == NULL || x == NULL)
        return OT_OK;
    if (e->slot[i] == NOT_CONVERTED) {
        e->constant[i] = p->constant[i];
        return OT_OK;
    }
    if (x->count > MAX_CONSTANT)
        return OT_OK;
    elements = ot__arena_alloc(arena, ((size_t)x->count + 1) * sizeof *elements);
    OT_TRY(ot__made(elements != NULL));
    (void)ot__convert(elements, OT_F32, p->constant[i], x->dtype, x->count);
    e->constant[i] = e->args[i].data = elements;
    e->slot[i] = NOT_CONVERTED; // for good
    return OT_OK;
}

static void mark_states(const ot_prep *p, ot__edges *e)
{
    for (int port = 0; port < p->node->n_inputs; port++) {
        const ot_port *of = ot__op_input_port(p->node->op, port);

        for (int i = p->in_first[port]; i < p->in_first[port + 1]; i++)
            e->is_state[i] = of != NULL && (of->flags & OT_PORT_STATE) != 0;
    }
}

ot_status ot__edges_make(ot__arena *arena, const ot_prep *p, ot__edges *e)
{
    const size_t n_in = (size_t)p->n_in + 1, n_out = (size_t)p->n_out + 1;

    *e = (ot__edges){.args = ot__arena_alloc(arena, (n_in + n_out) * sizeof *e->args),
                     .in = ot__arena_alloc(arena, n_in * sizeof *e->in),
                     .out = ot__arena_alloc(arena, n_out * sizeof *e->out),
                     .constant = ot__arena_alloc(arena, n_in * sizeof *e->constant),
                     .slot = ot__arena_alloc(arena, (n_in + n_out) * sizeof *e->slot),
                     .is_state = ot__arena_alloc(arena, n_in)};
    OT_TRY(ot__made(e->args != NULL && e->in != NULL && e->out != NULL && e->constant != NULL &&
                    e->slot != NULL && e->is_state != NULL));
    for (size_t i = 0; i < n_in + n_out; i++)
        e->slot[i] = NOT_CONVERTED;
    for (int i = 0; i < p->n_in; i++) {
        e->in[i] = widened(e, i, p->in[i]);
        OT_TRY(widen_constant(arena, p, e, i));
    }
    for (int i = 0; i < p->n_out; i++)
        e->out[i] = (ot_arg *)(void *)widened(e, p->n_in + i, p->out[i]);
    mark_states(p, e);
    return OT_OK;
}

static size_t edges_round_up(size_t n_bytes)
{
    return (n_bytes + 63) / 64 * 64;
}

// The converted input in whose place output 0 may be, as the plan may put it in place; -1: none.
static int replaceable_input(const ot_op_def *op, const ot__edges *e, int n_in, int n_out)
{
    if ((op->flags & OT_OP_IN_PLACE) == 0 || n_out == 0 || e->slot[n_in] == NOT_CONVERTED)
        return -1;
    for (int i = 0; i < n_in && i < 2; i++)
        if (e->slot[i] != NOT_CONVERTED && !e->is_state[i] &&
            ot__shape_equal(&e->args[i].shape, &e->args[n_in].shape) &&
            ot__layout_equal(e->args[i].layout, e->args[n_in].layout))
            return i;
    return -1;
}

size_t ot__edges_place(const ot_op_def *op, ot__edges *e, int n_in, int n_out, size_t kernel_bytes)
{
    const int shared = replaceable_input(op, e, n_in, n_out);
    size_t at = edges_round_up(kernel_bytes);

    for (int i = 0; i < n_in + n_out; i++)
        if (e->slot[i] != NOT_CONVERTED && !(i == n_in && shared >= 0)) {
            e->slot[i] = (int64_t)at;
            at += edges_round_up((size_t)e->args[i].count * sizeof(float));
        }
    if (shared >= 0)
        e->slot[n_in] = e->slot[shared];
    return at;
}

bool ot__edges_convert_output(const ot__edges *e, int n_in, int i)
{
    return e != NULL && e->slot[n_in + i] != NOT_CONVERTED;
}

// The input whose memory an output is: state, and what is replaced in place.
static int replaced_input(const ot_run *r, const ot__edges *e, int i_out)
{
    for (int i = 0; i < r->n_in; i++)
        if (e->slot[i] != NOT_CONVERTED && r->in[i]->count > 0 &&
            r->in[i]->data == r->out[i_out]->data)
            return i;
    return -1;
}

static void give_back(const ot_run *r, const ot__edges *e)
{
    for (int i = 0; i < r->n_in; i++)
        if (e->slot[i] != NOT_CONVERTED && e->is_state[i])
            ot__convert_floats(r->in[i]->data, r->in[i]->dtype, e->args[i].data, OT_F32,
                               r->in[i]->count);
    for (int i = 0; i < r->n_out; i++)
        if (e->slot[r->n_in + i] != NOT_CONVERTED)
            ot__convert_floats(r->out[i]->data, r->out[i]->dtype, e->args[r->n_in + i].data, OT_F32,
                               r->out[i]->count);
}

ot_status ot__edges_run(const ot_kernel *kernel, const ot_run *r, ot__edges *e)
{
    ot_run run = *r;

    for (int i = 0; i < r->n_in; i++)
        if (e->slot[i] != NOT_CONVERTED) {
            e->args[i].data = (unsigned char *)r->scratch + e->slot[i];
            ot__convert_floats(e->args[i].data, OT_F32, r->in[i]->data, r->in[i]->dtype,
                               r->in[i]->count);
        }
    for (int i = 0; i < r->n_out; i++)
        if (e->slot[r->n_in + i] != NOT_CONVERTED) {
            const int shared = replaced_input(r, e, i);

            e->args[r->n_in + i].data = shared >= 0
                                            ? e->args[shared].data
                                            : (unsigned char *)r->scratch + e->slot[r->n_in + i];
        }
    run.in = e->in;
    run.out = e->out;
    OT_TRY(kernel->run(&run));
    give_back(r, e);
    return OT_OK;
}
