// SPDX-License-Identifier: Apache-2.0
// An If without graphs inside: the nodes of both branches stand in the graph around it, and
// BranchOutput hands on what the branch makes that is taken. Where gradients are built, BranchInput
// stands where a value enters a branch. Once the condition is known, the branch that is not taken
// goes from the graph before anything in it is computed (passes/fuse_branch.c); so these kernels
// run only where both branches are.
#include <string.h>

#include "op/op.h"

enum { CONDITION, THEN, ELSE }; // inputs

static bool is_condition(ot_infer *c)
{
    return ot__infer_one_element(c, CONDITION);
}

static bool is_true(const ot_run *r)
{
    return *(const unsigned char *)r->in[CONDITION]->data != 0;
}

static void hand_on_elements(const ot_arg *y, const void *x)
{
    const size_t size = ot__element_size(y->dtype);

    if (y->count > 0)
        memcpy(y->data, x, (size_t)y->count * size);
}

// ---- BranchOutput ----

static void branch_known(ot_infer *c, int input)
{
    int n;
    const int64_t *known = ot_infer_values(c, input, &n);

    if (known != NULL)
        ot_infer_set_values(c, 0, known, n);
}

// What both branches agree on.
static void meet_branches(ot_infer *c)
{
    const ot_shape *a = ot_infer_shape(c, THEN), *b = ot_infer_shape(c, ELSE);
    ot_shape y = *a;

    if (a->ndim != b->ndim) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, THEN));
        return;
    }
    for (int k = 0; k < y.ndim; k++)
        if (a->dim[k] != b->dim[k])
            y.dim[k] = ot_dim_unknown();
    ot_infer_set(c, 0, ot_infer_dtype(c, THEN), &y);
}

static void branch_output_infer(ot_infer *c)
{
    int n;
    const int64_t *condition;

    if (!is_condition(c))
        return;
    condition = ot_infer_values(c, CONDITION, &n);
    if (condition != NULL && n == 1 && ot_dim_is_number(condition[0])) {
        const int taken = condition[0] != 0 ? THEN : ELSE;

        ot_infer_set(c, 0, ot_infer_dtype(c, taken), ot_infer_shape(c, taken));
        branch_known(c, taken);
    } else {
        meet_branches(c);
    }
}

static ot_status branch_output_run(const ot_run *r)
{
    hand_on_elements(r->out[0], r->in[is_true(r) ? THEN : ELSE]->data);
    return OT_OK;
}

static ot_value *enter_branch(ot_grad *g, ot_value *condition, ot_value *x, int branch)
{
    ot_value *const in[] = {condition, x};
    ot_node *node = ot_emit(g, "ai.onnxtrain.BranchInput", NULL, in, 2, 1);

    ot_emit_int(g, node, "branch", branch);
    return ot_emit_output(g, node, 0);
}

// Y = C ? A : B:  dA is dY where C, dB is dY where not C; nothing arrives at the other.
static void branch_output_grad(ot_grad *g)
{
    ot_value *c = ot_grad_x(g, CONDITION), *dy = ot_grad_dy(g, 0);

    if (ot_grad_wants(g, THEN))
        ot_grad_set_dx(g, THEN, enter_branch(g, c, dy, 1));
    if (ot_grad_wants(g, ELSE))
        ot_grad_set_dx(g, ELSE, enter_branch(g, c, dy, 0));
}

// ---- BranchInput ----

static void branch_input_infer(ot_infer *c)
{
    if (!is_condition(c))
        return;
    ot_infer_set(c, 0, ot_infer_dtype(c, 1), ot_infer_shape(c, 1));
    branch_known(c, 1);
}

// Of a branch that is not taken nothing is read; zeros are as good as anything.
static ot_status branch_input_run(const ot_run *r)
{
    const bool *then = r->state;
    const ot_arg *y = r->out[0];

    if (*then == is_true(r))
        hand_on_elements(y, r->in[1]->data);
    else if (y->count > 0)
        memset(y->data, 0, (size_t)y->count * ot__element_size(y->dtype));
    return OT_OK;
}

static ot_status branch_input_prepare(ot_prep *p)
{
    bool *then = ot_prep_state(p, sizeof *then);

    OT_TRY(ot__made(then != NULL));
    *then = ot_attr_int(ot_prep_node(p), "branch") != 0;
    return OT_OK;
}

// Y = X within the branch:  dX = dY where it is taken, else 0.
static void branch_input_grad(ot_grad *g)
{
    const bool then = ot_attr_int(ot_grad_node(g), "branch") != 0;
    ot_value *c = ot_grad_x(g, CONDITION), *dy = ot_grad_dy(g, 0);
    ot_value *zeros = ot_emit_zeros_like(g, ot_grad_x(g, 1));

    ot_grad_set_dx(
        g, 1, ot_emit3(g, "ai.onnxtrain.BranchOutput", c, then ? dy : zeros, then ? zeros : dy));
}

// ---- records ----

static const ot_port branch_output_in[] = {
    {"condition", "bool", OT_PORT_NO_GRAD}, {"then", "T", 0}, {"else", "T", 0}, {0}};
static const ot_port branch_input_in[] = {
    {"condition", "bool", OT_PORT_NO_GRAD}, {"X", "T", 0}, {0}};
static const ot_port branch_out[] = {{"Y", "T", 0}, {0}};
static const ot_attr_spec branch_attrs[] = {OT__FLAG_ATTR("branch", 1), {0}};
static const ot_kernel branch_output_kernels[] = {OT__REF_KERNEL(NULL, NULL, branch_output_run),
                                                  {0}};
static const ot_kernel branch_input_kernels[] = {
    OT__REF_KERNEL(NULL, branch_input_prepare, branch_input_run), {0}};
const ot_op_def ot__op_branch_output[] = {
    {.domain = "ai.onnxtrain",
     .name = "BranchOutput",
     .since = 1,
     .inputs = branch_output_in,
     .outputs = branch_out,
     .types = "T: any",
     .infer = branch_output_infer,
     .kernels = branch_output_kernels,
     .grad = branch_output_grad},
    {0},
};
const ot_op_def ot__op_branch_input[] = {
    {.domain = "ai.onnxtrain",
     .name = "BranchInput",
     .since = 1,
     .inputs = branch_input_in,
     .outputs = branch_out,
     .attrs = branch_attrs,
     .types = "T: any",
     .infer = branch_input_infer,
     .kernels = branch_input_kernels,
     .grad = branch_input_grad},
    {0},
};
