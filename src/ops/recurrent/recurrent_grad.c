// SPDX-License-Identifier: Apache-2.0
// Gradient rules of recurrent layers: back through time over what the forward run kept.
#include "op/grad.h"
#include "ops/recurrent/recurrent.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H0, IN_C0, IN_P, N_IN };
enum { OUT_Y, OUT_Y_H, OUT_Y_C };

// A layer's values.
typedef struct layer {
    ot__recurrent p;
    bool is_plain;
    ot_value *in[N_IN], *indices; // indices: NULL, or what X is a table for
    ot_value *y, *cells, *gates, *dy, *dy_h, *dy_c;
} layer;

static bool read_layer(ot_grad *g, layer *l)
{
    const ot_node *node = ot_grad_node(g);
    const ot__cell cell = ot__recurrent_cell(node->op);
    ot__recurrent_op op;
    const char *why;
    int indices;

    *l = (layer){.p = {.cell = cell}};
    why = ot__recurrent_read(node, &l->p);
    if (why == NULL && !ot__recurrent_has_gradient(&l->p))
        why = "LeakyRelu and Elu have a gradient only where alpha is not below 0";
    if (why == NULL && ot_attr_int(node, "layout") == 1) // ot__recurrent_train comes before
        why = "the batch is the first axis";
    if (why != NULL) {
        ot_grad_fail(g, "%s", why);
        return false;
    }
    for (int i = 0; i < N_IN; i++)
        l->in[i] = ot_grad_x(g, i);
    ot__recurrent_op_read(node->op, &op);
    indices = ot__recurrent_port(op.in, OT__RR_INDICES);
    l->indices = indices < 0 ? NULL : ot_grad_x(g, indices);
    l->is_plain = ot__recurrent_is_plain(&l->p) && l->in[IN_LENGTHS] == NULL &&
                  l->in[IN_P] == NULL && l->indices == NULL;
    l->dy = ot_grad_dy(g, OUT_Y);
    l->dy_h = ot_grad_dy(g, OUT_Y_H);
    l->dy_c = cell == OT__CELL_LSTM ? ot_grad_dy(g, OUT_Y_C) : NULL;
    return l->dy != NULL || l->dy_h != NULL || l->dy_c != NULL;
}

// The forward node's attributes; ONNX Runtime wants hidden_size, and has no layout there.
static void emit_attrs(ot_grad *g, ot_node *node, const layer *l)
{
    const ot_shape *r = ot_value_shape(l->in[IN_R]);

    if (node == NULL)
        return;
    if (node != ot_grad_node(g))
        ot_emit_forward_attrs(g, node);
    ot__node_remove_attr(node, "layout");
    if (ot_value_has_shape(l->in[IN_R]) && ot_dim_is_number(r->dim[2]))
        ot_emit_int(g, node, "hidden_size", r->dim[2]);
}

static ot_node *emit_back(ot_grad *g, const layer *l)
{
    ot_value *const *in = l->in;
    ot_value *const of_rnn[] = {in[IN_X],  in[IN_W], in[IN_R], in[IN_LENGTHS],
                                in[IN_H0], l->y,     l->dy,    l->dy_h};
    ot_value *const of_gru[] = {in[IN_X], in[IN_W], in[IN_R], in[IN_B], in[IN_LENGTHS], in[IN_H0],
                                l->y,     l->gates, l->dy,    l->dy_h,  l->indices};
    ot_value *const of_plain[] = {in[IN_X],  in[IN_W],  in[IN_R], in[IN_LENGTHS],
                                  in[IN_H0], in[IN_C0], l->y,     l->cells,
                                  l->gates,  l->dy,     l->dy_h,  l->dy_c};
    ot_value *const of_lstm[] = {in[IN_X],  in[IN_W], in[IN_R], in[IN_LENGTHS], in[IN_H0],
                                 in[IN_C0], in[IN_P], l->y,     l->cells,       l->gates,
                                 l->dy,     l->dy_h,  l->dy_c,  l->indices};
    const int n_more = l->indices != NULL;

    if (l->p.cell == OT__CELL_RNN)
        return ot_emit(g, "ai.onnxtrain.RNNGrad", NULL, of_rnn, 8, 5);
    if (l->p.cell == OT__CELL_GRU)
        return l->is_plain ? ot_emit(g, "com.microsoft.GRUGrad", NULL, of_gru, 10, 5)
                           : ot_emit(g, "ai.onnxtrain.GRUGrad", NULL, of_gru, 10 + n_more, 5);
    return l->is_plain ? ot_emit(g, "com.microsoft.LSTMGrad", NULL, of_plain, 12, 7)
                       : ot_emit(g, "ai.onnxtrain.LSTMGrad", NULL, of_lstm, 13 + n_more, 7);
}

static void emit_gradients(ot_grad *g, const layer *l)
{
    // Outputs of the gradient: as the inputs, without sequence_lens.
    static const int inputs[] = {IN_X, IN_W, IN_R, IN_B, IN_H0, IN_C0, IN_P};
    const int n = l->p.cell == OT__CELL_LSTM ? 7 : 5;
    ot_node *node = emit_back(g, l);

    emit_attrs(g, node, l);
    for (int i = 0; i < n; i++)
        if (inputs[i] >= ot_grad_input_count(g) || !ot_grad_wants(g, inputs[i]))
            ot_emit_omit_output(g, node, i);
    for (int i = 0; i < n; i++)
        if (inputs[i] < ot_grad_input_count(g) && ot_grad_wants(g, inputs[i]))
            ot_grad_set_dx(g, inputs[i], ot_emit_output(g, node, i));
}

void ot__recurrent_training_grad(ot_grad *g)
{
    layer l;
    bool is_lstm;

    if (!read_layer(g, &l))
        return;
    is_lstm = l.p.cell == OT__CELL_LSTM;
    // ONNX Runtime's kernels write every output before these, too.
    for (int i = OUT_Y; i <= (is_lstm ? OUT_Y_C : OUT_Y_H); i++)
        (void)ot_grad_y(g, i);
    l.y = ot_grad_y(g, OUT_Y);
    l.cells = is_lstm ? ot_grad_y(g, 3) : NULL;
    l.gates = ot_grad_y(g, is_lstm ? 4 : 2);
    emit_gradients(g, &l);
}

// The node itself keeps its gates from now on. ONNX Runtime counts its inputs: omitted ones stand
// there.
static bool become_training(ot_grad *g, const layer *l)
{
    ot_node *node = g->node;
    ot_model *model = g->build.graph->model;
    const int n = l->p.cell == OT__CELL_LSTM ? N_IN : IN_C0;
    ot_value **inputs = ot__arena_alloc(model->arena, (size_t)n * sizeof *inputs);

    if (!ot__build_made(&g->build, inputs != NULL))
        return false;
    for (int i = 0; i < n; i++)
        inputs[i] = i < node->n_inputs ? node->inputs[i] : NULL;
    node->inputs = inputs;
    node->n_inputs = n;
    node->op_type = l->p.cell == OT__CELL_LSTM ? "LSTMTraining" : "GRUTraining";
    node->domain = l->is_plain ? "com.microsoft" : "ai.onnxtrain";
    emit_attrs(g, node, l);
    ot__build_note(&g->build, ot__model_set_opset(model, node->domain, 1));
    ot__build_note(&g->build, ot__op_lookup(model, node, &node->op));
    return g->build.status == OT_OK;
}

void ot__recurrent_grad(ot_grad *g)
{
    layer l;

    if (!read_layer(g, &l))
        return;
    if (l.p.cell != OT__CELL_RNN) {
        if (become_training(g, &l))
            ot__recurrent_training_grad(g);
        return;
    }
    l.y = ot_grad_y(g, OUT_Y); // its outputs are all that the gradient needs
    emit_gradients(g, &l);
}
