// Gradient rules of recurrent layers: back through time over what the forward run kept.
#include "ops/grad.h"
#include "ops/recurrent.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H0, IN_C0, IN_P, N_IN };
enum { OUT_Y, OUT_Y_H, OUT_Y_C };

// A layer's values by steps, whatever the node's layout is.
typedef struct layer {
    ot__recurrent p;
    bool is_plain, batch_first;
    ot_value *in[N_IN];
    ot_value *y, *cells, *gates, *dy, *dy_h, *dy_c;
} layer;

static ot_value *emit_transpose(ot_grad *g, ot_value *v, const int64_t *order, int n)
{
    ot_node *node = v == NULL ? NULL : ot_emit(g, "Transpose", NULL, &v, 1, 1);

    ot_emit_ints(g, node, "perm", order, n);
    return ot_emit_output(g, node, 0);
}

static ot_value *swap_batch(ot_grad *g, const layer *l, ot_value *v)
{
    static const int64_t order[] = {1, 0, 2};

    return l->batch_first && v != NULL ? emit_transpose(g, v, order, 3) : v;
}

static ot_value *steps_first(ot_grad *g, const layer *l, ot_value *y)
{
    static const int64_t order[] = {1, 2, 0, 3};

    return l->batch_first && y != NULL ? emit_transpose(g, y, order, 4) : y;
}

static bool read_layer(ot_grad *g, ot__cell cell, layer *l)
{
    const ot_node *node = ot_grad_node(g);
    const char *why;

    *l = (layer){.p = {.cell = cell}, .batch_first = ot_attr_int(node, "layout") == 1};
    why = ot__recurrent_read(node, &l->p);
    if (why == NULL && !ot__recurrent_has_gradient(&l->p))
        why = "LeakyRelu and Elu have a gradient only where alpha is not below 0";
    if (why != NULL) {
        ot_grad_fail(g, "%s", why);
        return false;
    }
    for (int i = 0; i < N_IN && i < ot_grad_input_count(g); i++)
        l->in[i] = i == IN_X || i == IN_H0 || i == IN_C0 ? swap_batch(g, l, ot_grad_x(g, i))
                                                         : ot_grad_x(g, i);
    l->is_plain = ot__recurrent_is_plain(&l->p) && l->in[IN_LENGTHS] == NULL && l->in[IN_P] == NULL;
    l->dy = steps_first(g, l, ot_grad_dy(g, OUT_Y));
    l->dy_h = swap_batch(g, l, ot_grad_dy(g, OUT_Y_H));
    l->dy_c = cell == OT__CELL_LSTM ? swap_batch(g, l, ot_grad_dy(g, OUT_Y_C)) : NULL;
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
    if (ot_dim_is_number(r->dim[2]))
        ot_emit_int(g, node, "hidden_size", r->dim[2]);
}

static ot_node *emit_back(ot_grad *g, const layer *l)
{
    ot_value *const *in = l->in;
    ot_value *const of_rnn[] = {in[IN_X],  in[IN_W], in[IN_R], in[IN_LENGTHS],
                                in[IN_H0], l->y,     l->dy,    l->dy_h};
    ot_value *const of_gru[] = {in[IN_X],  in[IN_W], in[IN_R], in[IN_B], in[IN_LENGTHS],
                                in[IN_H0], l->y,     l->gates, l->dy,    l->dy_h};
    ot_value *const of_plain[] = {in[IN_X],  in[IN_W],  in[IN_R], in[IN_LENGTHS],
                                  in[IN_H0], in[IN_C0], l->y,     l->cells,
                                  l->gates,  l->dy,     l->dy_h,  l->dy_c};
    ot_value *const of_lstm[] = {in[IN_X],  in[IN_W], in[IN_R], in[IN_LENGTHS], in[IN_H0],
                                 in[IN_C0], in[IN_P], l->y,     l->cells,       l->gates,
                                 l->dy,     l->dy_h,  l->dy_c};

    if (l->p.cell == OT__CELL_RNN)
        return ot_emit(g, "ai.onnxtrain.RNNGrad", NULL, of_rnn, 8, 5);
    if (l->p.cell == OT__CELL_GRU)
        return ot_emit(g, l->is_plain ? "com.microsoft.GRUGrad" : "ai.onnxtrain.GRUGrad", NULL,
                       of_gru, 10, 5);
    return l->is_plain ? ot_emit(g, "com.microsoft.LSTMGrad", NULL, of_plain, 12, 7)
                       : ot_emit(g, "ai.onnxtrain.LSTMGrad", NULL, of_lstm, 13, 7);
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
    for (int i = 0; i < n; i++) {
        const bool has_batch = inputs[i] == IN_X || inputs[i] == IN_H0 || inputs[i] == IN_C0;

        if (inputs[i] < ot_grad_input_count(g) && ot_grad_wants(g, inputs[i])) {
            ot_value *dx = ot_emit_output(g, node, i);
            ot_grad_set_dx(g, inputs[i], has_batch ? swap_batch(g, l, dx) : dx);
        }
    }
}

void ot__recurrent_training_grad(ot_grad *g)
{
    const bool is_lstm = ot_grad_node(g)->op_type[0] == 'L';
    layer l;

    if (!read_layer(g, is_lstm ? OT__CELL_LSTM : OT__CELL_GRU, &l))
        return;
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
    ot_model *model = g->graph->model;
    const int n = l->p.cell == OT__CELL_LSTM ? N_IN : IN_C0;
    ot_value **inputs = ot__arena_alloc(model->arena, (size_t)n * sizeof *inputs);

    if (!ot__grad_made(g, inputs != NULL))
        return false;
    for (int i = 0; i < n; i++)
        inputs[i] = i < node->n_inputs ? node->inputs[i] : NULL;
    node->inputs = inputs;
    node->n_inputs = n;
    node->op_type = l->p.cell == OT__CELL_LSTM ? "LSTMTraining" : "GRUTraining";
    node->domain = l->is_plain ? "com.microsoft" : "ai.onnxtrain";
    emit_attrs(g, node, l);
    ot__grad_note(g, ot__model_set_opset(model, node->domain, 1));
    ot__grad_note(g, ot__op_lookup(model, node, &node->op));
    return g->status == OT_OK;
}

// Batch first, the layer runs again by steps, keeping its gates.
static void run_again(ot_grad *g, layer *l)
{
    const bool is_lstm = l->p.cell == OT__CELL_LSTM;
    const char *op =
        is_lstm ? (l->is_plain ? "com.microsoft.LSTMTraining" : "ai.onnxtrain.LSTMTraining")
                : (l->is_plain ? "com.microsoft.GRUTraining" : "ai.onnxtrain.GRUTraining");
    ot_node *again = ot_emit(g, op, NULL, l->in, is_lstm ? N_IN : IN_C0, is_lstm ? 5 : 3);

    emit_attrs(g, again, l);
    l->y = ot_emit_output(g, again, OUT_Y);
    l->cells = is_lstm ? ot_emit_output(g, again, 3) : NULL;
    l->gates = ot_emit_output(g, again, is_lstm ? 4 : 2);
}

void ot__recurrent_grad(ot_grad *g)
{
    const char *name = ot_grad_node(g)->op_type;
    const ot__cell cell = name[0] == 'L'   ? OT__CELL_LSTM
                          : name[0] == 'G' ? OT__CELL_GRU
                                           : OT__CELL_RNN;
    layer l;

    if (!read_layer(g, cell, &l))
        return;
    if (cell != OT__CELL_RNN && !l.batch_first) {
        if (become_training(g, &l))
            ot__recurrent_training_grad(g);
        return;
    }
    if (cell == OT__CELL_RNN) // its outputs are all that the gradient needs
        l.y = steps_first(g, &l, ot_grad_y(g, OUT_Y));
    else
        run_again(g, &l);
    emit_gradients(g, &l);
}
