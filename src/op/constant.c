// SPDX-License-Identifier: Apache-2.0
// Constants that rules of inference ask for: exporters put scales and sizes together of several.
#include "op/constant.h"

#include <string.h>

enum { MAX_INPUTS = 8, MAX_NODES = 32 }; // of a node; evaluated for one question

typedef struct question {
    ot_model *model;
    ot_status status;
    int n_left; // nodes that may still be evaluated
} question;

// What a Constant node holds, as far as rules need it: tensors and lists of numbers.
static const ot_tensor *tensor_of_node(ot_model *model, const ot_node *node)
{
    const ot_attr *value = ot__node_attr(node, "value");
    const ot_attr *ints = ot__node_attr(node, "value_ints");
    const ot_attr *floats = ot__node_attr(node, "value_floats");

    if (value != NULL)
        return value->t;
    if (ints != NULL && ints->kind == OT_ATTR_INTS)
        return ot__model_tensor_over(model, OT_I64, &OT_SHAPE(ints->n), ints->ints,
                                     (size_t)ints->n * sizeof(*ints->ints));
    return floats == NULL || floats->kind != OT_ATTR_FLOATS
               ? NULL
               : ot__model_tensor_over(model, OT_F32, &OT_SHAPE(floats->n), floats->floats,
                                       (size_t)floats->n * sizeof(*floats->floats));
}

static bool has_few_elements(const ot_value *x)
{
    int64_t count;

    return x->kind == OT_VALUE_TENSOR && x->has_shape && ot__shape_is_static(&x->shape) &&
           ot__shape_count(&x->shape, &count) && count <= OT_MAX_KNOWN;
}

static bool may_be_evaluated(const ot_node *node)
{
    return node->op != NULL && node->n_inputs > 0 && node->n_inputs <= MAX_INPUTS &&
           node->n_outputs == 1 && ot__op_is_deterministic(node) &&
           has_few_elements(node->outputs[0]);
}

static const ot_tensor *constant_of(question *q, const ot_value *x);

static const ot_tensor *evaluate_constants(question *q, const ot_node *node)
{
    const ot_tensor *in[MAX_INPUTS] = {0};
    ot_tensor *out = NULL;
    ot_status st;

    if (q->n_left == 0 || !may_be_evaluated(node))
        return NULL;
    q->n_left--;
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];

        if (x == NULL)
            continue;
        in[i] = x->is_input || !has_few_elements(x) ? NULL : constant_of(q, x);
        if (in[i] == NULL)
            return NULL;
    }
    st = ot__op_eval(node, in, node->n_inputs, &out, 1);
    if (st == OT_OK)
        st = ot__model_hold_tensor(q->model, out);
    if (st == OT_ERR_NO_MEMORY)
        q->status = st;
    return st == OT_OK ? out : NULL;
}

static const ot_tensor *constant_of(question *q, const ot_value *x)
{
    if (x->constant != NULL || x->producer == NULL)
        return x->constant;
    return strcmp(x->producer->op_type, "Constant") == 0 && x->producer->domain[0] == '\0'
               ? tensor_of_node(q->model, x->producer)
               : evaluate_constants(q, x->producer);
}

ot_status ot__op_known_constant(ot_model *model, const ot_value *x, const ot_tensor **out)
{
    question q = {.model = model, .n_left = MAX_NODES};

    *out = constant_of(&q, x);
    return q.status;
}
