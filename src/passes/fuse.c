// SPDX-License-Identifier: Apache-2.0
// What the fusions share: who alone reads a value, and exchanging nodes for a fused one.
#include <string.h>

#include "passes/fuse.h"

ot_node *ot__fuse_only_reader(const ot__fusing *f, const ot_value *value)
{
    const ot__use *use = &f->uses.use[ot__uses_first(&f->uses, value)];

    if (value->is_output || ot__uses_count(&f->uses, value) != 1 || use->i_input < 0 ||
        use->node->graph == NULL)
        return NULL;
    return use->node;
}

const ot_tensor *ot__fuse_constant(const ot_node *node, int i)
{
    return ot__match_constant_value(i < node->n_inputs ? node->inputs[i] : NULL);
}

bool ot__fuse_integer(const ot_node *node, int i, int64_t *number)
{
    const ot_tensor *tensor = ot__fuse_constant(node, i);

    if (tensor == NULL || ot_tensor_count(tensor) != 1 ||
        (tensor->dtype != OT_I64 && tensor->dtype != OT_I32))
        return false;
    *number = ot__tensor_get_i64(tensor, 0);
    return true;
}

bool ot__fuse_range(const ot_node *node, int i, const ot_shape *whole, int *axis, int64_t *first,
                    int64_t *end)
{
    int64_t along = 0, step = 1, extent;

    if (!ot__fuse_integer(node, i, first) || !ot__fuse_integer(node, i + 1, end) ||
        (i + 2 < node->n_inputs && node->inputs[i + 2] != NULL &&
         !ot__fuse_integer(node, i + 2, &along)) ||
        (i + 3 < node->n_inputs && node->inputs[i + 3] != NULL &&
         !ot__fuse_integer(node, i + 3, &step)))
        return false;
    along += along < 0 ? whole->ndim : 0;
    if (step != 1 || along < 0 || along >= whole->ndim)
        return false;
    extent = whole->dim[along];
    *axis = (int)along;
    *first += *first < 0 ? extent : 0;
    *end = OT_MIN(*end < 0 ? *end + extent : *end, extent);
    return *first >= 0 && *first < *end;
}

int ot__fuse_axis(const ot_node *node, const ot_shape *whole)
{
    const int64_t stated = ot_attr_int(node, "axis");
    const int64_t axis = stated < 0 ? stated + whole->ndim : stated;

    return axis >= 0 && axis < whole->ndim ? (int)axis : -1;
}

ot_value *ot__fuse_list(ot__builder *b, const char *name, const int64_t *numbers, int n)
{
    ot_value *list = ot__build_initializer(b, name, OT_I64, &OT_SHAPE(n));

    for (int i = 0; list != NULL && i < n; i++)
        ((int64_t *)ot_tensor_data(list->constant))[i] = numbers[i];
    return list;
}

ot_status ot__fuse_add(ot__fusing *f, const char *op_type, const char *name, ot_value **inputs,
                       int n_inputs, ot_value **outputs, int n_outputs, ot_node **out)
{
    ot__builder b = {.graph = f->graph};

    *out = ot__op_build(&b, "ai.onnxtrain", op_type, name, inputs, n_inputs, outputs, n_outputs);
    return b.status;
}

static ot_status fuse_visit(ot__fusing *f, ot_status (*fuse)(ot__fusing *f, ot_node *node))
{
    for (int n = 0; n < f->uses.numbers.n_nodes; n++)
        if (f->uses.numbers.nodes[n]->graph != NULL)
            OT_TRY(fuse(f, f->uses.numbers.nodes[n]));
    ot__graph_drop_detached(f->graph);
    return ot__graph_sort(f->graph);
}

ot_status ot__fuse_each(ot_model *model, ot_status (*fuse)(ot__fusing *f, ot_node *node))
{
    ot__fusing f = {.graph = model->graph};
    ot_status st;

    if (model->graph->n_nodes == 0)
        return OT_OK;
    OT_TRY(ot__uses_build(model->graph, &f.uses));
    st = fuse_visit(&f, fuse);
    ot__uses_deinit(&f.uses);
    return st;
}

void ot__fuse_write_tile(ot__buf *text, const ot_node *node)
{
    float attrs[OT_TILE_MAX_ATTRS];
    const int n = ot__op_tile_attrs(node, attrs);

    ot__buf_printf(text, "%s%s%s", node->domain, node->domain[0] == '\0' ? "" : ".", node->op_type);
    for (int a = 0; a < n; a++) {
        ot__buf_text(text, a == 0 ? "[" : ",");
        ot__buf_float(text, (double)attrs[a], true);
    }
    if (n > 0)
        ot__buf_text(text, "]");
}
