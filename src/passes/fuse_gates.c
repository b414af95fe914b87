// SPDX-License-Identifier: Apache-2.0
// PyTorch has the gates of LSTM and GRU in another order than ONNX, so its exporters put W and R
// together of slices of the parameters, and their gradients fall apart again. Here the layer reads
// the parameters as they lie and makes their gradients so: what was copied is neither kept nor
// moved. B, which is small, keeps its slices.
#include <string.h>

#include "passes/fuse_layer.h"

enum { MAX_GATES = 4, MAX_NODES = 2 + 2 * MAX_GATES };
enum { X, W, R };        // inputs of the training forms
enum { DW = 1, DR = 2 }; // outputs of the gradients

// A parameter, and where each gate of ONNX's order is in it.
typedef struct gates {
    ot_value *parameter, *axes; // axes: of the Unsqueeze
    int64_t n_rows, at[MAX_GATES];
} gates;

// ---- forward: Unsqueeze(Concat(Slice(parameter), ...)) ----

// Rows first .. end - 1 of n_rows that a Slice takes, or a SliceGrad gives back, by its inputs from
// `i` on.
static bool gates_range(const ot_node *node, int i, int64_t n_rows, int64_t *first, int64_t *end)
{
    int axis;

    return ot__fuse_range(node, i, &OT_SHAPE(n_rows, 0), &axis, first, end) && axis == 0;
}

static bool has_rows(const ot_value *value)
{
    return value->has_shape && value->shape.ndim == 2 && ot_dim_is_number(value->shape.dim[0]);
}

static bool joins_rows(const ot_node *node)
{
    return ot__node_is(node, "", "Concat") && ot_attr_int(node, "axis") == 0;
}

static bool read_gates(const ot_value *weights, const ot__layer_kind *kind, gates *g)
{
    const ot_node *unsqueeze = weights->producer, *concat;
    int64_t axis, rows_of_gate;
    int n = 0;

    if (!ot__node_is(unsqueeze, "", "Unsqueeze") || !ot__fuse_integer(unsqueeze, 1, &axis) ||
        axis != 0)
        return false;
    concat = unsqueeze->inputs[0]->producer;
    if (!joins_rows(concat) || !has_rows(concat->outputs[0]))
        return false;
    g->axes = unsqueeze->inputs[1];
    g->n_rows = concat->outputs[0]->shape.dim[0];
    g->parameter = NULL;
    rows_of_gate = g->n_rows / kind->n_gates;
    for (int i = 0; i < concat->n_inputs; i++) {
        const ot_node *slice = concat->inputs[i]->producer;
        int64_t first, end;

        if (!ot__node_is(slice, "", "Slice") || !has_rows(slice->inputs[0]) ||
            slice->inputs[0]->shape.dim[0] != g->n_rows ||
            (i > 0 && slice->inputs[0] != g->parameter) ||
            !gates_range(slice, 1, g->n_rows, &first, &end) || first % rows_of_gate != 0 ||
            end % rows_of_gate != 0)
            return false;
        g->parameter = slice->inputs[0];
        for (int64_t at = first / rows_of_gate; at < end / rows_of_gate; at++) {
            if (n == kind->n_gates)
                return false;
            g->at[n++] = at;
        }
    }
    return n == kind->n_gates;
}

static bool is_permutation(const gates *g, const ot__layer_kind *kind)
{
    unsigned seen = 0;

    for (int i = 0; i < kind->n_gates; i++)
        seen |= 1U << g->at[i];
    for (int i = kind->n_gates - kind->n_fixed; i < kind->n_gates; i++)
        if (g->at[i] != i)
            return false;
    return seen == (1U << kind->n_gates) - 1;
}

// ---- back: Sum(SliceGrad(Split(Squeeze(gradient))), ...) ----

// What makes the parameter's gradient of the layer's, in the order in which nodes are found.
typedef struct chain {
    ot_node *nodes[MAX_NODES];
    int n;
    ot_value *gradient; // of the parameter; NULL: there is none
} chain;

static ot_node *chain_next(const ot__fusing *f, chain *c, const ot_value *value, const char *domain,
                           const char *op_type)
{
    ot_node *node = ot__fuse_only_reader(f, value);

    if (!ot__node_is(node, domain, op_type) || c->n == MAX_NODES)
        return NULL;
    c->nodes[c->n++] = node;
    return node;
}

// Part i of the Split goes back to where the gates that it holds are in the parameter; the Sum.
static ot_node *read_part(const ot__fusing *f, chain *c, const ot_node *split, int i,
                          const gates *g, int64_t rows_of_gate, int64_t *row)
{
    const ot_value *part = split->outputs[i];
    const ot_node *back = chain_next(f, c, part, "com.microsoft", "SliceGrad");
    int64_t first, end;

    if (back == NULL || back->inputs[0] != part || !has_rows(part) ||
        !gates_range(back, 2, g->n_rows, &first, &end) || end - first != part->shape.dim[0] ||
        *row % rows_of_gate != 0 || first % rows_of_gate != 0 || end % rows_of_gate != 0)
        return NULL;
    for (int64_t k = 0; k < (end - first) / rows_of_gate; k++)
        if (*row + k * rows_of_gate >= g->n_rows ||
            g->at[*row / rows_of_gate + k] != first / rows_of_gate + k)
            return NULL;
    *row += end - first;
    return ot__fuse_only_reader(f, back->outputs[0]);
}

static bool read_chain(const ot__fusing *f, const ot_value *gradient, const ot__layer_kind *kind,
                       const gates *g, chain *c)
{
    const ot_node *squeeze, *split;
    ot_node *sum = NULL;
    int64_t row = 0;

    *c = (chain){.n = 0};
    if (gradient == NULL || (ot__uses_count(&f->uses, gradient) == 0 && !gradient->is_output))
        return true; // nobody asks for it
    squeeze = chain_next(f, c, gradient, "", "Squeeze");
    split = squeeze == NULL ? NULL : chain_next(f, c, squeeze->outputs[0], "", "Split");
    if (split == NULL || ot_attr_int(split, "axis") != 0 || split->inputs[0] != squeeze->outputs[0])
        return false;
    for (int i = 0; i < split->n_outputs; i++) {
        ot_node *reader = read_part(f, c, split, i, g, g->n_rows / kind->n_gates, &row);

        if (reader == NULL || (i > 0 && reader != sum))
            return false;
        sum = reader;
    }
    if (!ot__node_is(sum, "", "Sum") || sum->n_inputs != split->n_outputs || row != g->n_rows ||
        c->n == MAX_NODES)
        return false;
    c->nodes[c->n++] = sum;
    c->gradient = sum->outputs[0];
    return true;
}

// ---- rewriting ----

static ot_value *add_unsqueezed(ot__builder *b, const gates *g, const ot_value *old)
{
    ot_value *value = ot__build_value(b, ot__build_name(b, "%s_as_it_is", old->name));
    ot_value *const inputs[] = {g->parameter, g->axes};
    ot_node *node =
        ot__op_build(b, "", "Unsqueeze", value ? value->name : "", inputs, 2, &value, 1);

    ot__op_settle(b, node);
    return value;
}

static void replace_by_own(ot__builder *b, ot_node *node, ot__own_layer own, const gates *g,
                           int n_gates, ot_value *const *weights)
{
    own.inputs[W] = weights[W];
    own.inputs[R] = weights[R];
    node = ot__own_layer_replace(b, node, &own);
    ot__build_ints(b, node, "gate_order", g->at, n_gates);
    ot__op_settle(b, node);
}

static void replace_chain(ot__builder *b, const chain *c, ot_value *gradient, const gates *g)
{
    ot_value *const inputs[] = {gradient, g->axes};
    ot_value *y = c->gradient;
    const char *name = c->n > 0 ? c->nodes[0]->name : "";

    if (y == NULL)
        return;
    for (int i = 0; i < c->n; i++)
        ot__node_detach(c->nodes[i]);
    ot__op_settle(b, ot__op_build(b, "", "Squeeze", name, inputs, 2, &y, 1));
}

static ot_status fuse_layer(ot__fusing *f, ot_node *layer, const ot__layer_kind *kind)
{
    ot__builder b = {.graph = f->graph};
    ot_value *weights[R + 1] = {NULL}, *dw, *dr;
    gates of_w, of_r;
    chain w_back, r_back;
    ot_node *back;
    bool none;

    if (ot__node_attr(layer, "gate_order") != NULL || !read_gates(layer->inputs[W], kind, &of_w) ||
        !read_gates(layer->inputs[R], kind, &of_r) || !is_permutation(&of_w, kind) ||
        memcmp(of_w.at, of_r.at, (size_t)kind->n_gates * sizeof *of_w.at) != 0)
        return OT_OK;
    back = ot__layer_gradient(f, layer, kind, &none);
    dw = ot__layer_output(back, DW);
    dr = ot__layer_output(back, DR);
    if ((back == NULL && !none) || !read_chain(f, dw, kind, &of_w, &w_back) ||
        !read_chain(f, dr, kind, &of_r, &r_back))
        return OT_OK;
    weights[W] = add_unsqueezed(&b, &of_w, layer->inputs[W]);
    weights[R] = add_unsqueezed(&b, &of_r, layer->inputs[R]);
    if (b.status != OT_OK)
        return b.status;
    replace_by_own(&b, layer, ot__own_layer_of(layer, kind), &of_w, kind->n_gates, weights);
    if (back != NULL)
        replace_by_own(&b, back, ot__own_gradient_of(back, kind), &of_w, kind->n_gates, weights);
    replace_chain(&b, &w_back, dw, &of_w);
    replace_chain(&b, &r_back, dr, &of_r);
    return b.status;
}

static ot_status fuse_gates(ot__fusing *f, ot_node *node)
{
    const ot__layer_kind *kind = ot__layer_kind_of(node);

    return kind == NULL ? OT_OK : fuse_layer(f, node, kind);
}

ot_status ot__fuse_gates(ot_model *model)
{
    OT_TRY(ot__fuse_each(model, fuse_gates));
    return ot__pass_prune(model); // the slices
}
