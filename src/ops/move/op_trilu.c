// SPDX-License-Identifier: Apache-2.0
// Trilu: the upper or lower triangle of matrices, zeros elsewhere.
#include "ops/move/move.h"

static void trilu_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);

    if (x->ndim < 2)
        ot_infer_fail(c, "input must have at least 2 axes, has %d", x->ndim);
    else
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), x);
}

typedef struct trilu_state {
    bool is_upper;
    size_t size;
} trilu_state;

static ot_status trilu_prep(ot_prep *p)
{
    trilu_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    state->is_upper = ot_attr_int(ot_prep_node(p), "upper") != 0;
    return ot__prep_element_size(p, ot_prep_in(p, 0), &state->size);
}

static ot_status trilu_run(const ot_run *r)
{
    const trilu_state *state = r->state;
    const ot_arg *x = r->in[0], *k = r->n_in > 1 ? r->in[1] : NULL;
    const int n = x->shape.ndim - 2;

    if (k != NULL && k->count != 1)
        return ot__error(OT_ERR_INVALID, "k has %" PRId64 " elements, expected 1", k->count);
    if (x->count > 0)
        ot__ref_trilu(r->out[0]->data, x->data, ot__dims_count(x->shape.dim, n), x->shape.dim[n],
                      x->shape.dim[n + 1], k == NULL ? 0 : ot__arg_int(k, 0), state->is_upper,
                      state->size);
    return OT_OK;
}

// dX = the same triangle of dY.
static void trilu_grad(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_x(g, 1)};
    const bool is_onnx = ot_grad_node(g)->domain[0] == '\0';
    ot_node *node =
        ot_emit(g, is_onnx ? "Trilu" : "com.microsoft.Trilu", NULL, in, in[1] == NULL ? 1 : 2, 1);

    ot_emit_int(g, node, "upper", ot_attr_int(ot_grad_node(g), "upper"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, node, 0));
}

static const ot_port trilu_in[] = {
    {"input", "T", 0}, {"k", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_attr_spec trilu_attrs[] = {OT__INT_ATTR("upper", 1), {0}};
static const ot_kernel trilu_kernels[] = {OT__REF_KERNEL(NULL, trilu_prep, trilu_run), {0}};
#define TRILU                                                                                      \
    .name = "Trilu", .inputs = trilu_in, .outputs = ot__output_out, .attrs = trilu_attrs,          \
    .types = "T: any", .infer = trilu_infer, .kernels = trilu_kernels, .grad = trilu_grad,         \
    .flags = OT_OP_IN_PLACE
const ot_op_def ot__op_trilu[] = {
    {TRILU, .since = 14},
    {0},
};
// ONNX Runtime's own, which its gradients use at any opset.
const ot_op_def ot__op_ms_trilu[] = {
    {TRILU, .domain = OT__MS, .since = 1},
    {0},
};
