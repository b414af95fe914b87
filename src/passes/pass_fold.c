// SPDX-License-Identifier: Apache-2.0
// Constant nodes, nodes of constant inputs and nodes whose elements inference knows become
// constants.
#include "passes/branch.h"

static const size_t default_max_bytes = (size_t)64 << 20;

// ---- what may be folded ----

// Outputs of the graph keep their node, so that every output of a file is computed by one.
static bool outputs_may_fold(const ot_node *node, size_t max_bytes)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];
        int64_t count;
        size_t n_bytes;

        if (!y)
            continue;
        if (y->is_output || y->kind != OT_VALUE_TENSOR || !y->has_shape ||
            !ot__shape_is_static(&y->shape) || !ot__shape_count(&y->shape, &count) ||
            !ot__dtype_bytes(y->dtype, count, &n_bytes) || n_bytes > max_bytes)
            return false;
    }
    return true;
}

static bool is_read_for_type(const ot_node *node, int i_input)
{
    const ot_port *port = ot__op_input_port(node->op, i_input);

    return port && (port->flags & OT_PORT_TYPE_ONLY) != 0 &&
           node->inputs[i_input]->kind == OT_VALUE_TENSOR;
}

static bool inputs_are_constant(const ot_node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x && (!x->constant || x->is_input) && !is_read_for_type(node, i))
            return false;
    }
    return true;
}

static bool elements_are_known(const ot_value *y)
{
    int64_t count;
    int n;
    const int64_t *known = ot_value_known(y, &n);

    return known && ot__dtype_is_int(y->dtype) && ot__shape_count(&y->shape, &count) &&
           count == n && ot__dims_are_numbers(known, n);
}

static bool outputs_are_known(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !elements_are_known(node->outputs[i]))
            return false;
    return node->n_outputs > 0;
}

// ---- folding one node ----

static void make_constant(ot_value *y, ot_tensor *tensor)
{
    y->constant = tensor;
    y->producer = NULL;
    y->i_producer_output = 0;
    ot__value_set(y, tensor->dtype, &tensor->shape);
}

static ot_status fold_known(ot_model *model, const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        ot_value *y = node->outputs[i];
        ot_tensor *tensor;
        int n;

        if (!y)
            continue;
        tensor = ot__model_tensor_new(model, y->dtype, &y->shape);
        OT_TRY(ot__made(tensor));
        const int64_t *known = ot_value_known(y, &n);
        if (!ot__convert(tensor->data, y->dtype, known, OT_I64, n))
            return ot__error(OT_ERR_INTERNAL, "elements of '%s' cannot be converted to %s", y->name,
                             ot_dtype_name(y->dtype));
        make_constant(y, tensor);
    }
    return OT_OK;
}

// False: stays a node. Its error, if any, is the run's: what it complains of may be conditional on
// inputs that only the run sees.
static ot_status fold_by_kernel(ot_model *model, const ot_node *node, bool *folded)
{
    const ot_tensor **in = ot__alloc_zero((size_t)node->n_inputs, sizeof *in);
    ot_tensor **out = ot__alloc_zero((size_t)node->n_outputs, sizeof *out), *empty = NULL;
    ot_status st = ot__made(in && out);

    *folded = false;
    for (int i = 0; st == OT_OK && i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x && !x->constant && !empty) // of which the type alone is read
            st = ot_tensor_create(x->dtype, &OT_SHAPE(0), &empty);
        in[i] = !x ? NULL : x->constant ? x->constant : empty;
    }
    OT_THEN(st, ot__op_eval(node, in, node->n_inputs, out, node->n_outputs));
    *folded = st == OT_OK;
    for (int i = 0; *folded && i < node->n_outputs; i++) {
        ot_tensor *tensor = out[i];

        out[i] = NULL;
        if (!tensor)
            continue;
        if (!node->outputs[i])
            ot_tensor_destroy(tensor);
        else if (ot__model_hold_tensor(model, tensor) == OT_OK)
            make_constant(node->outputs[i], tensor);
        else
            st = OT_ERR_NO_MEMORY;
    }
    ot_tensor_destroy(empty);
    ot__free(in);
    ot__free(out);
    return st == OT_ERR_NO_MEMORY ? st : OT_OK;
}

static ot_status fold_node(ot_model *model, const ot_node *node, size_t max_bytes, bool *folded)
{
    ot_tensor *constant = ot__match_constant(node);

    *folded = false;
    if (!ot__op_is_deterministic(node) || !outputs_may_fold(node, max_bytes))
        return OT_OK;
    // The tensor of a Constant is shared, not copied.
    if (constant) {
        make_constant(node->outputs[0], constant);
        *folded = true;
        return OT_OK;
    }
    if (outputs_are_known(node)) {
        *folded = true;
        return fold_known(model, node);
    }
    return inputs_are_constant(node) ? fold_by_kernel(model, node, folded) : OT_OK;
}

// What is wrong in a branch need not be so in the one that is taken.
static ot_status infer_again(ot_node *node, bool is_tolerant)
{
    bool was_wrong; // a number that was stated for a shape that only data decide on
    const ot_status st = ot__op_infer_stated(node, &was_wrong);

    if (st == OT_OK || st == OT_ERR_NO_MEMORY || !is_tolerant)
        return st;
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] != NULL)
            node->outputs[i]->has_shape = false;
    return OT_OK;
}

static ot_status fold_all(ot_model *model, size_t max_bytes, bool is_tolerant)
{
    ot_graph *graph = model->graph;
    int kept = 0;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];
        bool folded = false;
        // Anew, because the constants made so far say more about shapes than inference could.
        ot_status st = infer_again(node, is_tolerant);

        OT_THEN(st, fold_node(model, node, max_bytes ? max_bytes : default_max_bytes, &folded));
        if (!folded)
            graph->nodes[kept++] = node;
        if (st == OT_OK)
            continue;
        while (++n < graph->n_nodes)
            graph->nodes[kept++] = graph->nodes[n];
        graph->n_nodes = kept;
        return st;
    }
    graph->n_nodes = kept;
    return ot__pass_finished(model, "fold");
}

ot_status ot__pass_fold(ot_model *model, size_t max_bytes)
{
    return fold_all(model, max_bytes, false);
}

ot_status ot__pass_fold_branches(ot_model *model)
{
    return fold_all(model, 0, ot__has_branches(model->graph));
}

// ---- one value ----

enum { KNOWN_INPUTS = 8, KNOWN_DEPTH = 8, KNOWN_ELEMENTS = 1 << 20 };

static bool is_evaluable(const ot_value *value)
{
    const ot_node *node = value->producer;
    int64_t count;

    return node != NULL && node->op != NULL && node->n_outputs == 1 &&
           node->n_inputs <= KNOWN_INPUTS && ot__op_is_deterministic(node) &&
           !ot__op_is_foreign(node) && value->has_shape && ot__shape_is_static(&value->shape) &&
           ot__shape_count(&value->shape, &count) && count <= KNOWN_ELEMENTS;
}

static ot_status evaluate_known(ot_model *model, const ot_value *value, int depth,
                                const ot_tensor **out)
{
    const ot_tensor *in[KNOWN_INPUTS + 1] = {NULL};
    const ot_node *node = value->producer;
    ot_tensor *made = NULL;
    ot_status st;

    *out = value->is_input ? NULL : value->constant;
    if (*out != NULL || depth == 0 || !is_evaluable(value))
        return OT_OK;
    for (int i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] == NULL)
            continue;
        OT_TRY(evaluate_known(model, node->inputs[i], depth - 1, &in[i]));
        if (in[i] == NULL)
            return OT_OK;
    }
    st = ot__op_eval(node, in, node->n_inputs, &made, 1);
    if (st != OT_OK) // whoever runs the node says why
        return st == OT_ERR_NO_MEMORY ? st : OT_OK;
    OT_TRY(ot__model_hold_tensor(model, made)); // destroys it where it cannot
    *out = made;
    return OT_OK;
}

ot_status ot__pass_known_constant(ot_model *model, const ot_value *value, const ot_tensor **out)
{
    return evaluate_known(model, value, KNOWN_DEPTH, out);
}
