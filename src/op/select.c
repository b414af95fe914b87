// SPDX-License-Identifier: Apache-2.0
// Which kernel runs a node.
#include "op/op.h"

static bool takes_port(const ot_kernel *kernel, const ot_port *port, const ot_value *value)
{
    uint64_t set;

    return port == NULL || value == NULL || !ot__types_set(kernel->types, port->type, &set) ||
           (set >> value->dtype & 1) != 0;
}

bool ot__kernel_takes(const ot_kernel *kernel, const ot_node *node)
{
    if (kernel->types == NULL)
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (!takes_port(kernel, ot__op_input_port(node->op, i), node->inputs[i]))
            return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (!takes_port(kernel, ot__op_output_port(node->op, i), node->outputs[i]))
            return false;
    return true;
}

const ot_kernel *ot__kernel_select(ot_prep *p, bool reference_only)
{
    for (const ot_kernel *k = p->node->op->kernels; k != NULL && k->run != NULL; k++) {
        const bool is_reference = (k->flags & OT_KERNEL_REFERENCE) != 0;
        const bool is_exact = (k->flags & OT_KERNEL_THREAD_EXACT) != 0;

        if ((!is_reference && (reference_only || (p->reproducible && !is_exact))) ||
            !ot__kernel_takes(k, p->node) || (k->can_run != NULL && !k->can_run(p)))
            continue;
        if (p->reproducible && !is_exact) // one thread gives the same bits whatever was asked for
            p->n_threads = 1;
        return k;
    }
    return NULL;
}

// The types of `variable` that some kernel of the record takes.
static uint64_t taken(const ot_op_def *op, const char *variable)
{
    uint64_t all = 0, set;

    for (const ot_kernel *k = op->kernels; k != NULL && k->run != NULL; k++)
        all |= ot__types_set(k->types, variable, &set) ? set : ot__op_type_set(op, variable);
    return all;
}

ot_status ot__kernel_refused(const ot_node *node)
{
    char label[160], types[200];

    for (int i = 0; i < node->n_inputs; i++) {
        const ot_port *port = ot__op_input_port(node->op, i);
        const uint64_t set = port == NULL ? 0 : taken(node->op, port->type);

        if (port != NULL && node->inputs[i] != NULL && (set >> node->inputs[i]->dtype & 1) == 0)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: input %d (%s) is %s, kernels take: %s",
                             ot__node_label(node, label, sizeof(label)), i, port->name,
                             ot_dtype_name(node->inputs[i]->dtype),
                             ot__types_text(set, types, sizeof(types)));
    }
    return ot__error(OT_ERR_UNSUPPORTED, "%s: no kernel for these types and shapes",
                     ot__node_label(node, label, sizeof(label)));
}
