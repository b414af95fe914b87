// SPDX-License-Identifier: Apache-2.0
// ReverseSequence: of each sequence of a batch the first elements, as many as its length says, in
// reverse order.
#include "ops/move/move.h"

enum { INPUT, LENGTHS }; // inputs

static void reverse_sequence_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, INPUT), *lengths = ot_infer_shape(c, LENGTHS);
    const int64_t batch = ot_attr_int(ot_infer_node(c), "batch_axis");
    const int64_t time = ot_attr_int(ot_infer_node(c), "time_axis");

    if (x->ndim < 2)
        ot_infer_fail(c, "input has %d axes, expected 2 or more", x->ndim);
    else if (batch == time)
        ot_infer_fail(
            c, "batch_axis and time_axis are both %" PRId64 ", expected 0 and 1 or 1 and 0", batch);
    else if (lengths->ndim != 1)
        ot_infer_fail(c, "sequence_lens has %d axes, expected 1", lengths->ndim);
    else if (ot__dim_differs(lengths->dim[0], x->dim[batch]))
        ot_infer_fail(c, "sequence_lens has %" PRId64 " lengths, input %" PRId64 " sequences",
                      lengths->dim[0], x->dim[batch]);
    else
        ot_infer_set(c, 0, ot_infer_dtype(c, INPUT), x);
}

typedef struct reverse_state {
    int64_t n_batch, n_time, batch_step, time_step; // in slices
    int64_t inner;
    size_t size;
} reverse_state;

static ot_status reverse_sequence_prep(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, INPUT);
    const int batch = ot_attr_int(ot_prep_node(p), "batch_axis") != 0;
    reverse_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->n_batch = x->shape.dim[batch];
    state->n_time = x->shape.dim[1 - batch];
    state->batch_step = batch == 0 ? state->n_time : 1;
    state->time_step = batch == 0 ? 1 : state->n_batch;
    if (x->count > 0) {
        state->inner = ot__dims_count(x->shape.dim + 2, x->shape.ndim - 2);
        ot_prep_scratch(p, (size_t)(state->n_batch * state->n_time) * sizeof(int64_t));
    }
    return ot__prep_element_size(p, x, &state->size);
}

static ot_status reverse_sequence_run(const ot_run *r)
{
    const reverse_state *s = r->state;
    const ot_arg *lengths = r->in[LENGTHS];
    int64_t *offset = r->scratch;

    for (int64_t b = 0; b < s->n_batch; b++) {
        const int64_t length = ot__arg_int(lengths, b);

        if (length < 0 || length > s->n_time)
            return ot__error(OT_ERR_INVALID,
                             "sequence_lens is %" PRId64 " at %" PRId64 ", expected 0 to %" PRId64
                             ", the size of the time axis",
                             length, b, s->n_time);
        for (int64_t t = 0; t < s->n_time && s->inner > 0; t++) {
            const int64_t from = t < length ? length - 1 - t : t;

            offset[b * s->batch_step + t * s->time_step] =
                (b * s->batch_step + from * s->time_step) * s->inner;
        }
    }
    if (s->inner > 0)
        ot__ref_gather(r->out[0]->data, r->in[INPUT]->data, offset, s->n_batch * s->n_time,
                       s->inner, s->size);
    return OT_OK;
}

// dX = dY reversed in the same way.
static void reverse_sequence_grad(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_x(g, LENGTHS)};
    ot_node *node = ot_emit(g, "ReverseSequence", NULL, in, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, INPUT, ot_emit_output(g, node, 0));
}

static const ot_port reverse_sequence_in[] = {
    {"input", "T", 0}, {"sequence_lens", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec reverse_sequence_attrs[] = {
    OT__FLAG_ATTR("batch_axis", 1),
    OT__FLAG_ATTR("time_axis", 0),
    {0},
};
static const ot_kernel reverse_sequence_kernels[] = {
    OT__REF_KERNEL(NULL, reverse_sequence_prep, reverse_sequence_run), {0}};
const ot_op_def ot__op_reverse_sequence[] = {
    {.name = "ReverseSequence",
     .since = 10,
     .inputs = reverse_sequence_in,
     .outputs = ot__unary_out,
     .attrs = reverse_sequence_attrs,
     .types = "T: any string",
     .infer = reverse_sequence_infer,
     .kernels = reverse_sequence_kernels,
     .grad = reverse_sequence_grad,
     .flags = OT_OP_REARRANGE},
    {0},
};
