// SPDX-License-Identifier: Apache-2.0
// The model with a case's one node.
#include "harness_internal.h"

#include <string.h>

static void split_op(const char *op, char *domain, size_t size, const char **type)
{
    const char *dot = strrchr(op, '.');

    snprintf(domain, size, "%.*s", dot == NULL ? 0 : (int)(dot - op), op);
    *type = dot == NULL ? op : dot + 1;
}

static bool is_symbolic(extent_kind extents, int i, int axis)
{
    switch (extents) {
    case STATIC_EXTENTS:
        return false;
    case SYMBOLIC_BATCH:
        return axis == 0;
    case SYMBOLIC_IMAGE:
        return axis == 0 || (i == 0 && axis >= 2);
    default:
        return true;
    }
}

// Every such extent becomes its own symbol, so that nothing can be proved from names.
static void make_symbolic(ot_model *model, ot_value *x, int i, extent_kind extents)
{
    for (int k = 0; k < x->shape.ndim; k++) {
        char name[32];

        if (!is_symbolic(extents, i, k))
            continue;
        snprintf(name, sizeof(name), "x%d_%d", i, k);
        x->shape.dim[k] = ot__dim_symbol(model, name);
    }
}

static ot_status add_inputs(ot_model *model, const inputs *in, extent_kind extents, ot_value **x)
{
    for (int i = 0; i < in->n; i++) {
        const ot_tensor *t = in->tensor[i];
        char name[16];

        if (t == NULL)
            continue;
        snprintf(name, sizeof(name), "x%d", i);
        x[i] = ot__graph_value(model->graph, name);
        if (x[i] == NULL)
            return OT_ERR_NO_MEMORY;
        if (in->spec[i].is_const) {
            ot_tensor *held = ot__model_tensor_new(model, t->dtype, &t->shape);

            if (held == NULL || !ot__graph_add_initializer(model->graph, x[i], held))
                return OT_ERR_NO_MEMORY;
            memcpy(held->data, t->data, t->n_bytes);
            continue;
        }
        ot__value_set(x[i], t->dtype, &t->shape);
        make_symbolic(model, x[i], i, extents);
        if (!ot__graph_add_input(model->graph, x[i]))
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}

static int count_required(const ot_op_def *op)
{
    int n = 0;

    for (const ot_port *p = op->outputs; p->name != NULL; p++)
        if ((p->flags & OT_PORT_OPTIONAL) == 0 || n == 0)
            n = (int)(p - op->outputs) + 1;
    return n;
}

static ot_status add_outputs(ot_graph *graph, const ot_op_case *c, const ot_op_def *op,
                             ot_value **y, int *n)
{
    *n = 0;
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (c->out[i] != NULL)
            *n = i + 1;
    if (*n == 0)
        *n = count_required(op);
    for (int i = 0; i < *n; i++) {
        char name[16];

        if (c->out[i] != NULL && c->out[i][0] == '\0')
            continue;
        snprintf(name, sizeof(name), "y%d", i);
        y[i] = ot__graph_value(graph, name);
        if (y[i] == NULL)
            return OT_ERR_NO_MEMORY;
    }
    return OT_OK;
}

static ot_status raise_and_infer(ot_node *node)
{
    ot_model *model = node->graph->model;

    OT_TRY(ot__op_check_node(node));
    OT_TRY(ot__op_upgrade_node(node));
    if (ot__model_opset(model, "") < OT_OP_BASE_OPSET)
        OT_TRY(ot__model_set_opset(model, "", OT_OP_BASE_OPSET));
    OT_TRY(ot__op_check_node(node));
    return ot__op_infer(node);
}

ot_status one_node_make(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                        extent_kind extents, one_node *out)
{
    enum { OPSET_BESIDE = 17 }; // of ai.onnx in models that test another domain
    const int opset = c->opset != 0 ? c->opset : test->opset;
    ot_value *x[OT_CASE_MAX_PORTS] = {NULL}, *y[OT_CASE_MAX_PORTS] = {NULL};
    const ot_op_def *op;
    const char *type;
    char domain[64];
    int n_out;

    memset(out, 0, sizeof(*out));
    split_op(test->op, domain, sizeof(domain), &type);
    OT_TRY(ot__model_create(&out->model));
    OT_TRY(ot__model_set_opset(out->model, "", domain[0] == '\0' ? opset : OPSET_BESIDE));
    if (domain[0] != '\0')
        OT_TRY(ot__model_set_opset(out->model, domain, opset));
    op = ot__op_find(domain, type, opset);
    if (op == NULL)
        return ot__error(OT_ERR_NOT_FOUND, "no record of %s at opset %d", test->op, opset);
    OT_TRY(add_inputs(out->model, in, extents, x));
    OT_TRY(add_outputs(out->model->graph, c, op, y, &n_out));
    out->node = ot__graph_add_node(out->model->graph, domain, type, "node", x, in->n, y, n_out);
    if (out->node == NULL)
        return OT_ERR_NO_MEMORY;
    out->node->op = out->given = op;
    if (c->attrs != NULL)
        OT_TRY(ot__node_set_attrs_text(out->node, c->attrs));
    return raise_and_infer(out->node);
}

void one_node_deinit(one_node *one)
{
    ot_model_destroy(one->model);
    one->model = NULL;
}
