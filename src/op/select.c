// SPDX-License-Identifier: Apache-2.0
// Which kernel runs a node.
#include <string.h>

#include "op/op.h"

// What a port of a node has, or what that is converted to.
static ot_dtype seen(const ot_value *value, bool widened)
{
    return widened ? ot__edges_type(value->dtype) : value->dtype;
}

static bool takes_port(const ot_kernel *kernel, const ot_op_def *op, const ot_port *port,
                       const ot_value *value, bool widened)
{
    uint64_t set;

    if (port == NULL || value == NULL)
        return true;
    if (!ot__types_set(kernel->types, port->type, &set) &&
        !ot__types_set(op->types, port->type, &set))
        return true;
    return (set >> seen(value, widened) & 1) != 0;
}

// Whether the ports of each type variable have one type, of which one may be `first`.
static bool is_uniform(const ot_op_def *op, const ot_port *port, const ot_value *value,
                       const ot_port *other, const ot_value *first)
{
    uint64_t set;

    return port == NULL || other == NULL || value == NULL || first == NULL ||
           value->dtype == first->dtype || (port->flags & OT_PORT_HETEROGENEOUS) != 0 ||
           strcmp(port->type, other->type) != 0 || !ot__types_set(op->types, port->type, &set);
}

// f32 beside f16 or bf16 in one variable: few kernels take that as it is.
static bool mixes_types(const ot_node *node)
{
    const ot_op_def *op = node->op;
    const int n = node->n_inputs + node->n_outputs;
    bool has_narrow = false;

    for (int i = 0; i < n && !has_narrow; i++) {
        const ot_value *v =
            i < node->n_inputs ? node->inputs[i] : node->outputs[i - node->n_inputs];

        has_narrow = v != NULL && ot__dtype_is_narrow(v->dtype);
    }
    for (int i = 0; has_narrow && i < n; i++)
        for (int k = 0; k < i; k++) {
            const int io = i - node->n_inputs, ko = k - node->n_inputs;

            if (!is_uniform(op, io < 0 ? ot__op_input_port(op, i) : ot__op_output_port(op, io),
                            io < 0 ? node->inputs[i] : node->outputs[io],
                            ko < 0 ? ot__op_input_port(op, k) : ot__op_output_port(op, ko),
                            ko < 0 ? node->inputs[k] : node->outputs[ko]))
                return true;
        }
    return false;
}

static bool kernel_takes(const ot_kernel *kernel, const ot_node *node, bool widened)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (!takes_port(kernel, node->op, ot__op_input_port(node->op, i), node->inputs[i], widened))
            return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (!takes_port(kernel, node->op, ot__op_output_port(node->op, i), node->outputs[i],
                        widened))
            return false;
    return widened || (kernel->flags & OT_KERNEL_MIXED) != 0 || !mixes_types(node);
}

bool ot__kernel_takes(const ot_kernel *kernel, const ot_node *node)
{
    return kernel_takes(kernel, node, false);
}

enum { FAST = 1, PORTABLE = 2 }; // kernels, by OT_KERNEL_REFERENCE

// Why an entry cannot run the node; NULL: it can.
static const char *refusal(const ot_prep *p, const ot_kernel *k, bool widened)
{
    ot__reasons ignored, *reasons = p->reasons != NULL ? p->reasons : &ignored;

    reasons->said = NULL;
    if ((k->flags & (OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT)) == 0 && p->reproducible)
        return "its bits depend on the number of threads";
    if (!kernel_takes(k, p->node, widened))
        return "not for these element types";
    if (k->can_run == NULL || k->can_run(p))
        return NULL;
    return reasons->said != NULL ? reasons->said : "not for this problem";
}

static const ot_kernel *select_among(ot_prep *p, int which, bool widened)
{
    for (const ot_kernel *k = p->node->op->kernels; k != NULL && k->run != NULL; k++) {
        const bool is_reference = (k->flags & OT_KERNEL_REFERENCE) != 0;
        const bool is_exact = (k->flags & OT_KERNEL_THREAD_EXACT) != 0;
        const char *refused;

        if ((which & (is_reference ? PORTABLE : FAST)) == 0)
            continue;
        refused = refusal(p, k, widened);
        if (refused != NULL) {
            if (!is_reference)
                ot__reasons_decline(p->reasons, k, refused);
            continue;
        }
        if (p->reasons != NULL)
            p->reasons->taken = p->reasons->said;
        if (p->reproducible && !is_exact) // one thread gives the same bits whatever was asked for
            p->n_threads = 1;
        return k;
    }
    return NULL;
}

// By a kernel for the types that those of the node are converted to, which its `can_run` sees.
static const ot_kernel *select_widened(ot_prep *p, int which)
{
    const ot_arg *const *in = p->in, *const *out = p->out;
    const void *const *constant = p->constant;
    const ot_kernel *kernel;

    p->in = p->edges->in;
    p->out = (const ot_arg *const *)p->edges->out;
    p->constant = p->edges->constant;
    kernel = select_among(p, which, true);
    p->is_widened = kernel != NULL;
    if (kernel != NULL)
        return kernel;
    p->in = in;
    p->out = out;
    p->constant = constant;
    return NULL;
}

static const ot_kernel *select_kernel(ot_prep *p, bool reference_only)
{
    const ot_kernel *kernel = NULL;

    p->is_widened = false;
    if (p->edges == NULL)
        return select_among(p, reference_only ? PORTABLE : FAST | PORTABLE, false);
    for (int which = reference_only ? PORTABLE : FAST; which <= PORTABLE && kernel == NULL;
         which++) {
        kernel = select_among(p, which, false);
        if (kernel == NULL)
            kernel = select_widened(p, which);
    }
    return kernel;
}

const ot_kernel *ot__kernel_select(ot_prep *p, bool reference_only)
{
    const ot_kernel *kernel = select_kernel(p, reference_only);

    if (reference_only && p->reasons != NULL)
        p->reasons->taken = "reference kernels are asked for";
    return kernel;
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
