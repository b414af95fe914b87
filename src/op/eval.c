// SPDX-License-Identifier: Apache-2.0
// Evaluating one node outside any plan: a scratch graph with the given tensors as constants, one
// kernel, once.
#include "op/op.h"

#include <string.h>

typedef struct evaluation {
    ot_model *model; // scratch
    ot_node *node;   // its only node
    ot_arg *args;    // n_in + n_out
    const ot_arg **in;
    ot_arg **out;
    const void **constant;
    ot_tensor **copy; // of what STATE ports write and of what is not aligned, NULL otherwise
    int n_in, n_out;
} evaluation;

static void evaluation_deinit(evaluation *e)
{
    for (int i = 0; e->copy != NULL && i < e->n_in; i++)
        ot_tensor_destroy(e->copy[i]);
    ot__free(e->args);
    ot__free(e->in);
    ot__free(e->out);
    ot__free(e->constant);
    ot__free(e->copy);
    ot_model_destroy(e->model);
}

static ot_status evaluation_alloc(evaluation *e, int n_in, int n_out)
{
    e->n_in = n_in;
    e->n_out = n_out;
    e->args = ot__alloc_zero((size_t)(n_in + n_out) + 1, sizeof(*e->args));
    e->in = ot__alloc_zero((size_t)n_in + 1, sizeof(*e->in));
    e->out = ot__alloc_zero((size_t)n_out + 1, sizeof(*e->out));
    e->constant = ot__alloc_zero((size_t)n_in + 1, sizeof(*e->constant));
    e->copy = ot__alloc_zero((size_t)n_in + 1, sizeof(*e->copy));
    return ot__made(e->args != NULL && e->in != NULL && e->out != NULL && e->constant != NULL &&
                    e->copy != NULL);
}

// Values for the node's outputs under their own names (random operators draw by name) and for its
// inputs.
static ot_status make_scratch_values(evaluation *e, const ot_node *from, const ot_tensor *const *in,
                                     ot_value **inputs, ot_value **outputs)
{
    ot_graph *graph = e->model->graph;

    for (int i = 0; i < e->n_out; i++) {
        if (from->outputs[i] == NULL)
            continue;
        outputs[i] = ot__graph_value(graph, from->outputs[i]->name);
        OT_TRY(ot__made(outputs[i] != NULL));
    }
    for (int i = 0; i < e->n_in; i++) {
        if (in[i] == NULL)
            continue;
        inputs[i] = ot__graph_new_value(graph, "x");
        OT_TRY(ot__made(inputs[i] != NULL));
        ot__value_set(inputs[i], in[i]->dtype, &in[i]->shape);
        inputs[i]->constant = (ot_tensor *)in[i]; // only read
    }
    return OT_OK;
}

static ot_status build_scratch(evaluation *e, const ot_node *from, const ot_tensor *const *in)
{
    ot_value **values;
    const ot_model *model = from->graph->model;

    OT_TRY(ot__model_create(&e->model));
    for (int i = 0; i < model->n_opsets; i++)
        OT_TRY(ot__model_set_opset(e->model, model->opsets[i].domain, model->opsets[i].version));
    values =
        ot__arena_alloc(e->model->arena, (size_t)(e->n_in + e->n_out + 1) * sizeof(ot_value *));
    OT_TRY(ot__made(values != NULL));
    OT_TRY(make_scratch_values(e, from, in, values, values + e->n_in));
    e->node = ot__graph_add_node(e->model->graph, from->domain, from->op_type, from->name, values,
                                 e->n_in, values + e->n_in, e->n_out);
    OT_TRY(ot__made(e->node != NULL && ot__node_copy_attrs(e->node, from)));
    e->node->op = from->op;
    return ot__op_infer(e->node);
}

static ot_status set_input_args(evaluation *e, const ot_tensor *const *in)
{
    for (int i = 0; i < e->n_in; i++) {
        const ot_port *port = ot__op_input_port(e->node->op, i);
        ot_arg *arg = &e->args[i];
        const ot_tensor *x = in[i];

        if (x == NULL)
            continue;
        const bool is_state = port != NULL && (port->flags & OT_PORT_STATE) != 0;

        if (is_state || !ot__tensor_is_aligned(x)) {
            OT_TRY(ot_tensor_clone(x, &e->copy[i]));
            x = e->copy[i];
        }
        if (!is_state)
            e->constant[i] = x->data;
        *arg = (ot_arg){.data = x->data, .dtype = x->dtype, .shape = x->shape};
        arg->count = ot_tensor_count(x);
        e->in[i] = arg;
    }
    return OT_OK;
}

static ot_status make_outputs(evaluation *e, ot_tensor **out)
{
    char label[160];

    for (int i = 0; i < e->n_out; i++) {
        const ot_value *y = e->node->outputs[i];
        ot_arg *arg = &e->args[e->n_in + i];

        if (y == NULL)
            continue;
        if (y->kind != OT_VALUE_TENSOR || !y->has_shape || !ot__shape_is_static(&y->shape))
            return ot__error(OT_ERR_UNSUPPORTED, "%s: the shape of output %d does not follow",
                             ot__node_label(e->node, label, sizeof(label)), i);
        OT_TRY(ot_tensor_create(y->dtype, &y->shape, &out[i]));
        *arg = (ot_arg){.data = out[i]->data, .dtype = y->dtype, .shape = y->shape};
        arg->count = ot_tensor_count(out[i]);
        e->out[i] = arg;
    }
    return OT_OK;
}

static ot_status run_reference(const ot_node *node, const ot_step *step, const ot_arg *const *in,
                               const void *const *constant, int n_in, ot_arg *const *out, int n_out)
{
    ot_prep p = {.node = node,
                 .in = in,
                 .out = (const ot_arg *const *)out,
                 .constant = constant,
                 .n_in = n_in,
                 .n_out = n_out,
                 .n_threads = ot__parallel_max()};
    ot_run r = {.in = in, .out = out, .n_in = n_in, .n_out = n_out, .step = step};
    int *first = ot__arena_alloc(node->graph->model->arena, ((size_t)n_in + 1) * sizeof(*first));
    const ot_kernel *kernel;
    ot__edges edges;
    void *scratch = NULL;
    ot_status st;

    OT_TRY(ot__made(first));
    for (int i = 0; i <= n_in; i++)
        first[i] = i;
    p.in_first = r.in_first = first;
    r.n_threads = p.n_threads;
    if (ot__edges_wanted(&p)) {
        OT_TRY(ot__edges_make(node->graph->model->arena, &p, &edges));
        p.edges = &edges;
    }
    kernel = ot__kernel_select(&p, true);
    st = kernel == NULL ? ot__kernel_refused(node) : ot__kernel_prepare(kernel, &p);
    if (st == OT_OK) {
        if (p.is_widened)
            p.scratch_bytes =
                ot__edges_place(node->op, kernel, &edges, n_in, n_out, p.scratch_bytes);
        scratch = ot__alloc_aligned(p.scratch_bytes);
        r.scratch = scratch;
        r.state = p.state;
        st = scratch == NULL ? OT_ERR_NO_MEMORY
             : p.is_widened  ? ot__edges_run(kernel, &r, &edges)
                             : kernel->run(&r);
        ot__free_aligned(scratch);
        ot__kernel_release(kernel, p.state);
    }
    return st;
}

// ---- operators that are composed of others: these, each in its turn ----

// What the node makes become constants of its graph.
static ot_status evaluate_into_graph(ot_node *node)
{
    ot_model *model = node->graph->model;
    const size_t n_in = (size_t)node->n_inputs + 1, n_out = (size_t)node->n_outputs + 1;
    const ot_tensor **in = ot__arena_alloc(model->arena, n_in * sizeof(ot_tensor *));
    ot_tensor **out = ot__arena_alloc(model->arena, n_out * sizeof(ot_tensor *));
    ot_status st;

    OT_TRY(ot__made(in != NULL && out != NULL));
    for (int i = 0; i < node->n_inputs; i++)
        in[i] = node->inputs[i] == NULL ? NULL : node->inputs[i]->constant;
    st = ot__op_eval(node, in, node->n_inputs, out, node->n_outputs);
    for (int i = 0; i < node->n_outputs; i++) {
        ot_value *y = node->outputs[i];

        if (out[i] == NULL)
            continue;
        if (st != OT_OK) {
            ot_tensor_destroy(out[i]);
            continue;
        }
        st = ot__model_hold_tensor(model, out[i]); // destroys it where it cannot
        if (st != OT_OK)
            continue;
        y->constant = out[i];
        ot__value_set(y, out[i]->dtype, &out[i]->shape);
    }
    return st;
}

static ot_status evaluate_composed(evaluation *e, ot_tensor **out)
{
    ot_graph *graph = e->model->graph;
    ot_value **y =
        ot__arena_memdup(e->model->arena, e->node->outputs, (size_t)e->n_out * sizeof(ot_value *));
    char label[160];

    OT_TRY(ot__made(y != NULL));
    OT_TRY(ot__rewrite_node(e->node, e->node->op->train));
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n] != e->node)
            OT_TRY(evaluate_into_graph(graph->nodes[n]));
    for (int i = 0; i < e->n_out; i++) {
        if (y[i] == NULL)
            continue;
        if (y[i]->constant == NULL)
            return ot__error(OT_ERR_UNSUPPORTED, "%s: output %d does not follow",
                             ot__node_label(e->node, label, sizeof(label)), i);
        OT_TRY(ot_tensor_clone(y[i]->constant, &out[i]));
    }
    return OT_OK;
}

static ot_status evaluate_node(const ot_node *node, const ot_step *step, const ot_tensor *const *in,
                               int n_in, ot_tensor **out, int n_out)
{
    evaluation e = {0};
    ot_status st = evaluation_alloc(&e, n_in, n_out);

    OT_THEN(st, build_scratch(&e, node, in));
    if (ot__op_is_composed(node->op)) {
        OT_THEN(st, evaluate_composed(&e, out));
    } else {
        OT_THEN(st, set_input_args(&e, in));
        OT_THEN(st, make_outputs(&e, out));
        OT_THEN(st, run_reference(e.node, step, e.in, e.constant, n_in, e.out, n_out));
    }
    evaluation_deinit(&e);
    return st;
}

ot_status ot__op_eval_in_step(const ot_node *node, const ot_step *step, const ot_tensor *const *in,
                              int n_in, ot_tensor **out, int n_out)
{
    ot_status st;

    for (int i = 0; i < n_out; i++)
        out[i] = NULL;
    st = n_in == node->n_inputs && n_out == node->n_outputs
             ? evaluate_node(node, step, in, n_in, out, n_out)
             : ot__error(OT_ERR_INVALID,
                         "evaluating '%s' with %d inputs and %d outputs of %d and %d", node->name,
                         n_in, n_out, node->n_inputs, node->n_outputs);
    for (int i = 0; st != OT_OK && i < n_out; i++) {
        ot_tensor_destroy(out[i]);
        out[i] = NULL;
    }
    return st;
}

ot_status ot__op_eval(const ot_node *node, const ot_tensor *const *in, int n_in, ot_tensor **out,
                      int n_out)
{
    return ot__op_eval_in_step(node, &(ot_step){.training = true}, in, n_in, out, n_out);
}
