// SPDX-License-Identifier: Apache-2.0
// What an input is for its operator: from the ports of the records.
#include <string.h>

#include "op/op.h"

static const struct {
    unsigned flag;
    ot__port_role role;
} roles[] = {
    {OT_PORT_TABLE, OT_PORT_ROLE_TABLE},         {OT_PORT_WEIGHT, OT_PORT_ROLE_WEIGHT},
    {OT_PORT_BIAS, OT_PORT_ROLE_BIAS},           {OT_PORT_SCALE, OT_PORT_ROLE_SCALE},
    {OT_PORT_STATISTIC, OT_PORT_ROLE_STATISTIC},
};

ot__port_role ot__op_input_role(const ot_op_def *op, int i)
{
    const ot_port *port = op ? ot__op_input_port(op, i) : NULL;

    for (size_t r = 0; port && r < OT_COUNT(roles); r++)
        if (port->flags & roles[r].flag)
            return roles[r].role;
    return OT_PORT_ROLE_OTHER;
}

static bool reads_weight(const ot_node *node)
{
    const ot_op_def *op = node ? ot__node_record(node) : NULL;

    for (int i = 0; op && i < node->n_inputs; i++)
        if (ot__op_input_role(op, i) == OT_PORT_ROLE_WEIGHT)
            return true;
    return false;
}

static bool adds_to_product(const ot_node *node, int i)
{
    const int other = 1 - i;

    return node->domain[0] == '\0' && strcmp(node->op_type, "Add") == 0 && i <= 1 &&
           node->n_inputs == 2 && node->inputs[other] &&
           reads_weight(node->inputs[other]->producer);
}

ot__port_role ot__node_input_role(const ot_node *node, int i)
{
    if (adds_to_product(node, i))
        return OT_PORT_ROLE_BIAS;
    return ot__op_input_role(ot__node_record(node), i);
}
