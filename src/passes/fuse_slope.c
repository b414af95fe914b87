// SPDX-License-Identifier: Apache-2.0
// Where a product makes the gradient of an activation's result, the activation gives its slope,
// too: its gradient is then the product times that, which the product multiplies by itself
// (fuse_gemm.c). The slope is kept in place of X.
#include <string.h>

#include "passes/fuse.h"

enum { DY, X };            // inputs of the gradient
enum { READERS_OF_X = 2 }; // the activation and its gradient

typedef struct slope_row {
    const char *activation, *gradient; // of com.microsoft
    const char *approximate;           // of ai.onnx's Gelu, which has the same gradient; NULL: none
    bool has_alpha;
} slope_row;

static const slope_row slope_rows[] = {
    {"Gelu", "GeluGrad", "none", false},
    {"FastGelu", "FastGeluGrad", "tanh", false},
    {"QuickGelu", "QuickGeluGrad", NULL, true},
};

static const slope_row *row_of_gradient(const ot_node *node)
{
    for (size_t k = 0; k < OT_COUNT(slope_rows); k++)
        if (ot__node_is(node, "com.microsoft", slope_rows[k].gradient))
            return &slope_rows[k];
    return NULL;
}

static bool is_activation_of(const slope_row *row, const ot_node *node, const ot_node *gradient)
{
    if (ot__node_is(node, "", "Gelu"))
        return row->approximate != NULL &&
               strcmp(ot_attr_string(node, "approximate"), row->approximate) == 0;
    return ot__node_is(node, "com.microsoft", row->activation) && node->n_inputs == 1 &&
           (!row->has_alpha || ot_attr_float(node, "alpha") == ot_attr_float(gradient, "alpha"));
}

// Of the two nodes that alone read X the one that is the activation; NULL: there is none.
static ot_node *find_activation(const ot__fusing *f, const slope_row *row, const ot_node *gradient)
{
    const ot_value *x = gradient->inputs[X];

    if (x->is_output || x->producer == NULL || x->dtype != OT_F32 ||
        ot__uses_count(&f->uses, x) != READERS_OF_X)
        return NULL;
    for (int u = ot__uses_first(&f->uses, x); u < ot__uses_end(&f->uses, x); u++) {
        ot_node *node = f->uses.use[u].node;

        if (node != gradient && node->graph != NULL && is_activation_of(row, node, gradient))
            return node;
    }
    return NULL;
}

static bool is_from_product(const ot__fusing *f, const ot_node *gradient)
{
    const ot_value *dy = gradient->inputs[DY];

    return dy->producer != NULL && ot__fuse_only_reader(f, dy) == gradient &&
           ot__fuse_is_product(dy->producer);
}

static ot_status fuse_slope(ot__fusing *f, ot_node *gradient)
{
    const slope_row *row = row_of_gradient(gradient);
    ot_value *x, *dy, *dx, *outputs[2];
    ot__builder b = {.graph = f->graph};
    ot_node *activation, *node;
    float alpha;

    if (row == NULL || !is_from_product(f, gradient))
        return OT_OK;
    activation = find_activation(f, row, gradient);
    if (activation == NULL)
        return OT_OK;
    x = gradient->inputs[X];
    dy = gradient->inputs[DY];
    dx = gradient->outputs[0];
    outputs[0] = activation->outputs[0];
    outputs[1] = ot__build_value(&b, ot__build_name(&b, "%s_slope", outputs[0]->name));
    alpha = row->has_alpha ? ot_attr_float(gradient, "alpha") : 0;
    ot__node_detach(activation);
    ot__node_detach(gradient);
    node = ot__op_build(&b, "ai.onnxtrain", "ActivationSlope", activation->name, &x, 1, outputs, 2);
    ot__build_string(&b, node, "activation", row->activation);
    if (row->has_alpha)
        ot__build_float(&b, node, "alpha", (double)alpha);
    ot__op_settle(&b, node);
    node = ot__op_build(&b, "", "Mul", gradient->name, (ot_value *[]){dy, outputs[1]}, 2, &dx, 1);
    ot__op_settle(&b, node);
    return b.status;
}

ot_status ot__fuse_slope(ot_model *model)
{
    return ot__fuse_each(model, fuse_slope);
}
