// SPDX-License-Identifier: Apache-2.0
// Operators that are composed of others: a node is evaluated, and run as a session runs it; its
// gradient is the one that training builds of what it is written in.
#include "harness_internal.h"

#include <string.h>

#include "autodiff/autodiff.h"
#include "exec/exec.h"
#include "passes/passes.h"

// ---- results ----

static ot_status run_planned(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                             buffers *b)
{
    const ot__plan_options options = {.n_threads = 2};
    ot_shape shapes[OT_CASE_MAX_PORTS];
    ot_tensor *out[OT_CASE_MAX_PORTS] = {NULL};
    one_node one = {0};
    ot_status st = one_node_make(test, c, in, STATIC_EXTENTS, &one);

    b->n = 0;
    if (st == OT_OK && !list_outputs(&one))
        st = OT_ERR_NO_MEMORY;
    for (int i = 0; st == OT_OK && i < one.model->graph->n_inputs; i++)
        shapes[i] = one.model->graph->inputs[i]->shape;
    OT_THEN(st, ot__pass_specialize(one.model, shapes, one.model->graph->n_inputs));
    OT_THEN(st, ot__fuse_regions(one.model));
    OT_THEN(st, ot__pass_fuse(one.model));
    OT_THEN(st, run_graph(one.model->graph, in, NULL, &options, out));
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (out[i] != NULL)
            b->tensor[b->n++] = out[i];
    one_node_deinit(&one);
    return st;
}

static void check_composed_type(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                                const one_node *one, const oracle *expected)
{
    const call evaluated = reference_call(one, in);
    buffers b;

    if (call_run(&evaluated, &b, NULL) == OT_OK) {
        check_expected(c, &b, one, "composed");
        check_against(c, &b, expected, "composed");
    } else {
        fail("evaluated: %s", ot_error_message());
    }
    buffers_deinit(&b);
    if (run_planned(test, c, in, &b) == OT_OK) {
        check_expected(c, &b, one, "composed, in a plan");
        check_against(c, &b, expected, "composed, in a plan");
    } else {
        fail("in a plan: %s", ot_error_message());
    }
    buffers_deinit(&b);
}

void check_composed(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                    const one_node *one)
{
    oracle own;
    wide_case w;

    if (wide_make(&w, test, c, in, one->given)) {
        if (wide_measure(&w, c)) {
            check_composed_type(test, c, in, one, &w.expected);
            check_composed_type(test, c, &w.in, &w.one, &w.expected);
        }
    } else if (oracle_make(&own, c, one, in) == OT_OK) { // no f64 for these types
        check_composed_type(test, c, in, one, &own);
        oracle_deinit(&own);
    } else {
        fail("%s", ot_error_message());
    }
    wide_deinit(&w);
}

// ---- gradients ----

// The sum of all y * dy.
static ot_value *emit_target(host *h)
{
    ot_grad *g = ot__emitter_create(h->one.model->graph, "target");
    ot_value *total = NULL;

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        ot_value *product, *sum;

        if (h->dy[i] == NULL)
            continue;
        product = ot_emit2(g, "Mul", h->y[i], h->dy[i]);
        sum = product == NULL
                  ? NULL
                  : ot_emit_output(g, ot_emit(g, "ReduceSum", "keepdims = 0", &product, 1, 1), 0);
        total = total == NULL ? sum : ot_emit2(g, "Add", total, sum);
    }
    return g != NULL && ot__emitter_destroy(g) == OT_OK ? total : NULL;
}

// What is written for the node must have the shapes that were inferred of it.
static ot_status write_composed(host *h)
{
    ot_node *node = h->one.node;
    ot_graph *graph = h->one.model->graph;

    for (int i = 0; i < node->n_outputs; i++)
        h->y[i] = node->outputs[i];
    OT_TRY(ot__model_set_opset(h->one.model, OT__MS, 1));
    OT_TRY(ot__model_set_opset(h->one.model, "ai.onnxtrain", 1));
    OT_TRY(ot__rewrite_node(node, node->op->train));
    for (int i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i] != NULL)
            return ot__error(OT_ERR_INTERNAL, "output %d is not composed", i);
        if (h->y[i] != NULL)
            OT_TRY(ot__op_infer(h->y[i]->producer));
    }
    ot__node_detach(node);
    ot__graph_drop_detached(graph);
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (h->dy[i] != NULL)
            OT_TRY(ot__made(ot__graph_add_input(graph, h->dy[i])));
    return OT_OK;
}

ot_status host_compose(host *h, int n_inputs)
{
    ot_graph *graph = h->one.model->graph;
    ot_value *from[OT_CASE_MAX_PORTS], *grads[OT_CASE_MAX_PORTS], *target;
    ot_node *blocker[OT_CASE_MAX_PORTS];
    ot__path_status status[OT_CASE_MAX_PORTS];
    int input[OT_CASE_MAX_PORTS], n = 0, kept = 0;

    for (int i = 0; i < n_inputs; i++)
        if (h->wants[i]) {
            from[n] = h->one.node->inputs[i];
            input[n++] = i;
        }
    OT_TRY(write_composed(h));
    if (n == 0)
        return OT_OK;
    target = emit_target(h);
    OT_TRY(ot__made(target));
    OT_TRY(ot__autodiff_paths(graph, target, from, n, ot__edge_passes, status, blocker));
    for (int i = 0; i < n; i++) {
        if (status[i] == OT_PATH_OK) {
            from[kept] = from[i];
            input[kept++] = input[i];
        } else if (status[i] == OT_PATH_UNSUPPORTED) {
            return ot__error(OT_ERR_INTERNAL, "%s has no gradient", OT_LABEL(blocker[i]));
        } else {
            h->is_constant[input[i]] = true;
        }
    }
    if (kept > 0)
        OT_TRY(ot__autodiff_build(graph, target, NULL, from, kept, grads));
    for (int i = 0; i < kept; i++)
        h->dx[input[i]] = grads[i];
    return OT_OK;
}
