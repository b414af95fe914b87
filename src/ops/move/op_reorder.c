// SPDX-License-Identifier: Apache-2.0
// The same elements in another layout. Put into graphs by the plan only.
#include "kernels/kernels.h"
#include "op/op.h"

typedef struct reorder_state {
    ot__dnnl_primitives *program;
} reorder_state;

static bool reorder_can_dnnl(const ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *y = ot_prep_out(p, 0);

    return x->count > 0 && (ot__dnnl_can_reorder(x->dtype, &x->shape, x->layout, y->layout) ||
                            ot_prep_declines(p, "oneDNN does not know the layout or the type"));
}

static ot_status reorder_prepare_dnnl(ot_prep *p)
{
    const ot_arg *x = ot_prep_in(p, 0), *y = ot_prep_out(p, 0);
    reorder_state *state = ot_prep_state(p, sizeof(*state));

    OT_TRY(ot__made(state));
    OT_TRY(ot__dnnl_reorder_create(x->dtype, &x->shape, x->layout, y->layout, &state->program));
    ot_prep_scratch(p, ot__dnnl_scratch_bytes(state->program));
    return OT_OK;
}

static ot_status reorder_run_dnnl(const ot_run *r)
{
    void *const slots[] = {r->in[0]->data, r->out[0]->data};

    return ot__dnnl_run(((const reorder_state *)r->state)->program, slots, r->scratch);
}

static void reorder_release_dnnl(void *state)
{
    ot__dnnl_destroy(((reorder_state *)state)->program);
}

static ot_status reorder_run_ref(const ot_run *r)
{
    const ot_arg *x = r->in[0], *y = r->out[0];

    ot__layout_convert(y->data, y->layout, x->data, x->layout, &x->shape,
                       ot__element_size(x->dtype));
    return OT_OK;
}

static const ot_kernel reorder_kernels[] = {
    {.name = "dnnl",
     .flags = OT_KERNEL_THREAD_EXACT | OT_KERNEL_LIBRARY,
     .can_run = reorder_can_dnnl,
     .prepare = reorder_prepare_dnnl,
     .run = reorder_run_dnnl,
     .release = reorder_release_dnnl},
    OT__REF_KERNEL(NULL, NULL, reorder_run_ref),
    {0},
};
const ot_op_def ot__op_reorder[] = {
    {.domain = "ai.onnxtrain",
     .name = "Reorder",
     .since = 1,
     .inputs = ot__unary_in,
     .outputs = ot__unary_out,
     .types = "T: any string",
     .infer = ot__infer_same_shape,
     .kernels = reorder_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_INTERNAL,
     .by_image = {.in = 1, .out = 1}},
    {0},
};
