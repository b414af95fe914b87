// SPDX-License-Identifier: Apache-2.0
// In mixed precision a Cast stands before a port that stays f32 (OT_PORT_F32), and behind one that
// is written. Where an entry of that operator converts row by row, as losses do with scores, the
// port has the narrower type itself: a copy in f32 of the largest value of a language model is
// saved. The numbers are the same.
#include "passes/fuse.h"

static bool is_narrowing(const ot_value *wide, const ot_value *narrow)
{
    return wide->dtype == OT_F32 && ot__dtype_is_narrow(narrow->dtype);
}

static bool takes_beside_f32(const ot_node *node, const ot_port *port, ot_dtype narrow)
{
    uint64_t set;

    if (port == NULL || (port->flags & OT_PORT_F32) == 0 || (port->flags & OT_PORT_STATE) != 0)
        return false;
    for (const ot_kernel *k = node->op->kernels; k != NULL && k->run != NULL; k++)
        if ((k->flags & OT_KERNEL_MIXED) != 0 && ot__types_set(k->types, port->type, &set) &&
            (set >> narrow & 1) != 0)
            return true;
    return false;
}

static int input_that_is(const ot_node *node, const ot_value *v)
{
    int i = 0;

    while (node->inputs[i] != v)
        i++;
    return i;
}

static ot_status fuse_cast(ot__fusing *f, ot_node *cast)
{
    ot_value *from, *to;
    ot_node *node;

    if (!ot__node_is(cast, "", "Cast"))
        return OT_OK;
    from = cast->inputs[0];
    to = cast->outputs[0];
    if (is_narrowing(to, from)) {
        const int i = (node = ot__fuse_only_reader(f, to)) == NULL ? 0 : input_that_is(node, to);

        if (node == NULL || !takes_beside_f32(node, ot__op_input_port(node->op, i), from->dtype))
            return OT_OK;
        ot__node_detach(cast);
        node->inputs[i] = from;
        return OT_OK;
    }
    node = from->producer;
    if (!is_narrowing(from, to) || node == NULL || ot__fuse_only_reader(f, from) != cast ||
        !takes_beside_f32(node, ot__op_output_port(node->op, from->i_producer_output), to->dtype))
        return OT_OK;
    ot__node_detach(cast);
    node->outputs[from->i_producer_output] = to;
    to->producer = node;
    to->i_producer_output = from->i_producer_output;
    return OT_OK;
}

ot_status ot__fuse_cast(ot_model *model)
{
    return model->narrow == OT_DTYPE_UNDEFINED ? OT_OK : ot__fuse_each(model, fuse_cast);
}
