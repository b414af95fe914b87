// SPDX-License-Identifier: Apache-2.0
// Conv + Relu become ConvRelu: what lies between them is never stored. The backward half needs
// Relu's result only, and keeps its own nodes.
#include "passes/fuse.h"

static ot_status fuse_conv(ot__fusing *f, ot_node *conv)
{
    ot_node *relu, *fused;

    if (!ot__node_is(conv, "", "Conv"))
        return OT_OK;
    relu = ot__fuse_only_reader(f, conv->outputs[0]);
    if (!ot__node_is(relu, "", "Relu"))
        return OT_OK;
    ot__node_detach(conv);
    ot__node_detach(relu);
    OT_TRY(ot__fuse_add(f, "ConvRelu", conv->name, conv->inputs, conv->n_inputs, relu->outputs, 1,
                        &fused));
    OT_TRY(ot__made(ot__node_copy_attrs(fused, conv)));
    return ot__op_infer(fused);
}

ot_status ot__fuse_conv(ot_model *model)
{
    return ot__fuse_each(model, fuse_conv);
}
