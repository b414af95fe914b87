// SPDX-License-Identifier: Apache-2.0
// An embedding before a recurrent layer: where the layer has many more inputs than the table has
// rows, their products with W are those of the rows, and so are their gradients. The layer reads
// the table itself then, and makes the table's gradient. Nothing is gathered or added up outside.
#include "passes/fuse_layer.h"

enum { X = 0, DX = 0 };
enum { TABLE, INDICES };             // inputs of Gather
enum { SHAPE, GRAD_INDICES, DY };    // and of its gradient
enum { LAYOUT_STEPS, LAYOUT_BATCH }; // indices_layout

// Of so many rows of X each row of the table must be read on average. A row read costs a copy of
// its products, and back a sum of theirs; each is a small part of what the products cost, whatever
// their extents: twice is enough.
enum { LEAST_READS = 2 };

// What stands before and behind a layer.
typedef struct lookup {
    ot_value *table, *indices;
    bool is_turned; // a Transpose is between the embedding and the layer
    // What makes the table's gradient of dX; NULL: nobody asks for it. turn: NULL: none.
    ot_node *turn, *gather_grad;
} lookup;

static bool swaps_first_axes(const ot_node *node)
{
    int n;
    const int64_t *axes;

    if (!ot__node_is(node, "", "Transpose"))
        return false;
    axes = ot_attr_ints(node, "perm", &n);
    return n == 3 && axes[0] == 1 && axes[1] == 0 && axes[2] == 2;
}

static bool is_known(const ot_value *value, int ndim)
{
    return value->has_shape && value->shape.ndim == ndim && ot__shape_is_static(&value->shape);
}

static bool read_lookup(const ot_value *x, lookup *l)
{
    const ot_node *gather;

    *l = (lookup){.is_turned = swaps_first_axes(x->producer)};
    gather = l->is_turned ? x->producer->inputs[0]->producer : x->producer;
    if (!ot__node_is(gather, "", "Gather") || ot_attr_int(gather, "axis") != 0)
        return false;
    l->table = gather->inputs[TABLE];
    l->indices = gather->inputs[INDICES];
    return l->table->dtype == OT_F32 && is_known(l->table, 2) && is_known(l->indices, 2) &&
           l->indices->shape.dim[0] * l->indices->shape.dim[1] >=
               LEAST_READS * l->table->shape.dim[0];
}

// Where dX goes: nowhere, or to the table alone.
static bool read_lookup_gradient(const ot__fusing *f, const ot_value *dx, lookup *l)
{
    ot_node *node;

    if (dx == NULL || (ot__uses_count(&f->uses, dx) == 0 && !dx->is_output))
        return true;
    node = ot__fuse_only_reader(f, dx);
    if (l->is_turned && swaps_first_axes(node)) {
        l->turn = node;
        node = ot__fuse_only_reader(f, node->outputs[0]);
    }
    if ((l->turn != NULL) != l->is_turned || !ot__node_is(node, "com.microsoft", "GatherGrad") ||
        ot_attr_int(node, "axis") != 0 || node->inputs[GRAD_INDICES] != l->indices ||
        node->inputs[DY] != (l->turn == NULL ? dx : l->turn->outputs[0]) ||
        !is_known(node->outputs[0], 2) ||
        !ot__shape_equal(&node->outputs[0]->shape, &l->table->shape))
        return false;
    l->gather_grad = node;
    return true;
}

static void replace_by_lookup(ot__builder *b, ot_node *node, ot__own_layer own, int indices,
                              const lookup *l)
{
    own.inputs[X] = l->table;
    own.inputs[indices] = l->indices;
    own.n_inputs = indices + 1;
    node = ot__own_layer_replace(b, node, &own);
    ot__build_int(b, node, "indices_layout", l->is_turned ? LAYOUT_BATCH : LAYOUT_STEPS);
    ot__op_settle(b, node);
}

static ot_status fuse_lookup(ot__fusing *f, ot_node *layer)
{
    const ot__layer_kind *kind = ot__layer_kind_of(layer);
    ot__builder b = {.graph = f->graph};
    ot_node *back;
    lookup l;
    bool none;

    if (kind == NULL || layer->n_inputs > kind->indices || !read_lookup(layer->inputs[X], &l))
        return OT_OK;
    back = ot__layer_gradient(f, layer, kind, &none);
    if (back == NULL ? !none
                     : back->n_inputs > kind->grad_indices || back->inputs[X] != layer->inputs[X] ||
                           !read_lookup_gradient(f, ot__layer_output(back, DX), &l))
        return OT_OK;
    replace_by_lookup(&b, layer, ot__own_layer_of(layer, kind), kind->indices, &l);
    if (back == NULL)
        return b.status;
    if (back->n_outputs > DX)
        back->outputs[DX] = l.gather_grad == NULL ? NULL : l.gather_grad->outputs[0];
    if (l.gather_grad != NULL)
        ot__node_detach(l.gather_grad);
    if (l.turn != NULL)
        ot__node_detach(l.turn);
    replace_by_lookup(&b, back, ot__own_gradient_of(back, kind), kind->grad_indices, &l);
    return b.status;
}

ot_status ot__fuse_table(ot_model *model)
{
    OT_TRY(ot__fuse_each(model, fuse_lookup));
    return ot__pass_prune(model); // the Gather
}
