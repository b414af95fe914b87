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

// ---- what a Constant node holds ----

typedef struct constant_form {
    const char *name; // of the attribute
    ot_attr_kind kind;
    ot_dtype dtype;
} constant_form;

static const constant_form forms[] = {
    {"value", OT_ATTR_TENSOR, OT_DTYPE_UNDEFINED}, {"value_int", OT_ATTR_INT, OT_I64},
    {"value_ints", OT_ATTR_INTS, OT_I64},          {"value_float", OT_ATTR_FLOAT, OT_F32},
    {"value_floats", OT_ATTR_FLOATS, OT_F32},      {"value_string", OT_ATTR_STRING, OT_STRING},
    {"value_strings", OT_ATTR_STRINGS, OT_STRING},
};

static const void *data_of_attr(const ot_attr *attr)
{
    switch (attr->kind) {
    case OT_ATTR_INT:
        return &attr->i;
    case OT_ATTR_INTS:
        return attr->ints;
    case OT_ATTR_FLOAT:
        return &attr->f;
    case OT_ATTR_FLOATS:
        return attr->floats;
    case OT_ATTR_STRING:
        return &attr->s;
    default:
        return attr->strings;
    }
}

static bool is_constant_node(const ot_node *node)
{
    return node != NULL && strcmp(node->op_type, "Constant") == 0 && node->domain[0] == '\0';
}

// The first form that there is.
static const ot_attr *attr_of_constant(const ot_node *node, ot_dtype *dtype)
{
    for (size_t i = 0; i < OT_COUNT(forms); i++) {
        const ot_attr *attr = ot__node_attr(node, forms[i].name);

        *dtype = forms[i].dtype;
        if (attr != NULL && attr->kind == forms[i].kind)
            return attr;
    }
    return NULL;
}

bool ot__constant_view(const ot_node *node, ot_tensor *view)
{
    const ot_attr *attr = attr_of_constant(node, &view->dtype);
    const bool is_list =
        attr != NULL && (attr->kind == OT_ATTR_INTS || attr->kind == OT_ATTR_FLOATS ||
                         attr->kind == OT_ATTR_STRINGS);
    int64_t count;

    if (attr == NULL)
        return false;
    if (attr->kind == OT_ATTR_TENSOR) {
        *view = *attr->t;
        view->owns_data = false;
        return true;
    }
    *view = (ot_tensor){.dtype = view->dtype,
                        .shape = is_list ? OT_SHAPE(attr->n) : OT_SHAPE_SCALAR,
                        .data = (void *)(uintptr_t)data_of_attr(attr)}; // is never written
    return ot__shape_count(&view->shape, &count) &&
           ot__element_bytes(view->dtype, count, &view->n_bytes);
}

ot_tensor *ot__constant_of_node(const ot_node *node)
{
    const ot_attr *value = is_constant_node(node) ? ot__node_attr(node, "value") : NULL;
    ot_tensor view;

    if (value != NULL)
        return value->t;
    return is_constant_node(node) && ot__constant_view(node, &view)
               ? ot__model_tensor_over(node->graph->model, view.dtype, &view.shape, view.data,
                                       view.n_bytes)
               : NULL;
}

// ---- what is computed of constants ----

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
    return is_constant_node(x->producer) ? ot__constant_of_node(x->producer)
                                         : evaluate_constants(q, x->producer);
}

ot_status ot__op_known_constant(ot_model *model, const ot_value *x, const ot_tensor **out)
{
    question q = {.model = model, .n_left = MAX_NODES};

    *out = constant_of(&q, x);
    return q.status;
}
