// SPDX-License-Identifier: Apache-2.0
// Recurrent layers in forms that ONNX Runtime trains: by steps, and each direction a forward layer.
#include <string.h>

#include "op/expand.h"
#include "ops/recurrent/recurrent.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H0, IN_C0, IN_P, N_IN };
enum { OUT_Y, OUT_Y_H, OUT_Y_C, N_OUT };

// What is wanted of a layer that stands for the node, or for a direction of it; else NULL.
static void take_layer_outputs(ot_grad *g, ot_node *layer, ot_value **out)
{
    for (int i = 0; layer != NULL && i < layer->n_outputs; i++)
        if (!ot_expand_wants(g, i))
            ot_emit_omit_output(g, layer, i);
    for (int i = 0; layer != NULL && i < layer->n_outputs; i++)
        out[i] = ot_emit_output(g, layer, i);
}

// ---- layout ----

static ot_value *swap_batch(ot_grad *g, ot_value *v)
{
    static const int64_t order[] = {1, 0, 2};

    return ot__emit_transpose(g, v, order, (int)OT_COUNT(order));
}

void ot__recurrent_steps_first(ot_grad *g)
{
    static const int64_t batch_first[] = {2, 0, 1, 3};
    const ot_node *node = ot_grad_node(g);
    const int n_outputs = ot_grad_output_count(g);
    ot_value *in[N_IN] = {NULL}, *out[N_OUT] = {NULL};
    ot_node *layer;

    if (ot_attr_int(node, "layout") != 1)
        return;
    for (int i = 0; i < ot_grad_input_count(g); i++)
        in[i] = i == IN_X || i == IN_H0 || i == IN_C0 ? swap_batch(g, ot_grad_x(g, i))
                                                      : ot_grad_x(g, i);
    layer = ot_emit(g, node->op_type, NULL, in, ot_grad_input_count(g), n_outputs);
    ot_emit_forward_attrs(g, layer);
    if (layer != NULL)
        ot__node_remove_attr(layer, "layout");
    take_layer_outputs(g, layer, out);
    for (int i = 0; i < n_outputs; i++)
        ot_expand_set(g, i,
                      i == OUT_Y ? ot__emit_transpose(g, out[i], batch_first, 4)
                                 : swap_batch(g, out[i]));
}

// ---- directions ----

static ot_value *backwards(ot_grad *g, ot_value *v)
{
    const int64_t first = -1, end = INT32_MIN, axis = 0, step = -1;
    ot_value *starts = ot_emit_constant_i64(g, &first, 1);
    ot_value *ends = ot_emit_constant_i64(g, &end, 1);
    ot_value *axes = ot_emit_constant_i64(g, &axis, 1);
    ot_value *const in[] = {v, starts, ends, axes, ot_emit_constant_i64(g, &step, 1)};

    return v == NULL ? NULL : ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 5, 1), 0);
}

static void split_directions(ot_grad *g, ot_value *v, ot_value **parts)
{
    static const int64_t sizes[OT__MAX_DIRECTIONS] = {1, 1};
    ot_value *const in[] = {v, ot_emit_constant_i64(g, sizes, OT__MAX_DIRECTIONS)};
    ot_node *split = v == NULL ? NULL : ot_emit(g, "Split", "axis = 0", in, 2, OT__MAX_DIRECTIONS);

    for (int d = 0; d < OT__MAX_DIRECTIONS; d++)
        parts[d] = ot_emit_output(g, split, d);
}

static void emit_forward(ot_grad *g, ot_value *const *in, ot_value **out)
{
    const ot_node *node = ot_grad_node(g);
    const bool is_lstm = ot__recurrent_cell(node->op) == OT__CELL_LSTM;
    ot_node *layer =
        ot_emit(g, node->op_type, NULL, in, is_lstm ? IN_P : IN_C0, ot_grad_output_count(g));

    if (ot_attr_given(node, "hidden_size"))
        ot_emit_int(g, layer, "hidden_size", ot_attr_int(node, "hidden_size"));
    if (!is_lstm)
        ot_emit_int(g, layer, "linear_before_reset", ot_attr_int(node, "linear_before_reset"));
    take_layer_outputs(g, layer, out);
}

// Only what the forward direction of ONNX Runtime's training form has, in another direction.
static bool is_expressible(ot_grad *g, const ot__recurrent *p)
{
    ot__recurrent forward = *p;
    bool is_plain = true;

    for (int d = 0; d < p->n_directions; d++) {
        forward.n_directions = 1;
        forward.reversed[0] = false;
        memcpy(forward.activations[0], p->activations[d], sizeof forward.activations[0]);
        is_plain = is_plain && ot__recurrent_is_plain(&forward);
    }
    return is_plain && (p->n_directions == 2 || p->reversed[0]) &&
           ot_grad_x(g, IN_LENGTHS) == NULL && ot_grad_x(g, IN_P) == NULL;
}

void ot__recurrent_train(ot_grad *g)
{
    ot__recurrent p = {.cell = ot__recurrent_cell(ot_grad_node(g)->op)};
    ot_value *in[OT__MAX_DIRECTIONS][N_IN] = {{NULL}};
    ot_value *out[OT__MAX_DIRECTIONS][N_OUT] = {{NULL}};

    if (ot_attr_int(ot_grad_node(g), "layout") == 1) {
        ot__recurrent_steps_first(g);
        return;
    }
    if (ot__recurrent_read(ot_grad_node(g), &p) != NULL || !is_expressible(g, &p))
        return;
    for (int i = 0; i < ot_grad_input_count(g); i++) {
        ot_value *parts[OT__MAX_DIRECTIONS] = {ot_grad_x(g, i), ot_grad_x(g, i)};

        if (i != IN_X && p.n_directions == OT__MAX_DIRECTIONS)
            split_directions(g, ot_grad_x(g, i), parts);
        for (int d = 0; d < p.n_directions; d++)
            in[d][i] = i == IN_X && p.reversed[d] ? backwards(g, parts[d]) : parts[d];
    }
    for (int d = 0; d < p.n_directions; d++) {
        emit_forward(g, in[d], out[d]);
        if (p.reversed[d])
            out[d][OUT_Y] = backwards(g, out[d][OUT_Y]);
    }
    for (int i = 0; i < ot_grad_output_count(g); i++) {
        ot_value *const parts[] = {out[0][i], out[1][i]};

        ot_expand_set(g, i,
                      p.n_directions == OT__MAX_DIRECTIONS && parts[0] != NULL
                          ? ot__emit_concat(g, parts, OT__MAX_DIRECTIONS, i == OUT_Y ? 1 : 0)
                          : parts[0]);
    }
}
