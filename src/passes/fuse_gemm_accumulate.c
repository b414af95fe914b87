// A Gemm whose result only goes into an accumulation buffer writes there itself: the gradient of a
// weight is neither stored twice nor copied.
#include "passes/fuse.h"

#include <string.h>

static bool is_node(const ot_node *node, const char *domain, const char *op)
{
    return node != NULL && strcmp(node->domain, domain) == 0 && strcmp(node->op_type, op) == 0;
}

// The Gemm without C that makes what `node` accumulates, when nothing else needs it.
static ot_node *product_of(const ot__uses *uses, const ot_node *node)
{
    ot_value *value;
    ot_node *gemm;

    if (!is_node(node, "com.microsoft", "InPlaceAccumulatorV2") ||
        (node->n_outputs > 1 && node->outputs[1] != NULL))
        return NULL;
    value = node->inputs[1];
    gemm = value->producer;
    if (!is_node(gemm, "", "Gemm") || value->is_output || ot__uses_count(uses, value) != 1 ||
        (gemm->n_inputs > 2 && gemm->inputs[2] != NULL) || gemm->inputs[0] == node->inputs[0] ||
        gemm->inputs[1] == node->inputs[0])
        return NULL;
    return gemm;
}

static ot_status replace(ot_graph *graph, ot_node *node, ot_node *gemm)
{
    ot_value *in[] = {gemm->inputs[0], gemm->inputs[1], node->inputs[0],
                      node->n_inputs > 2 ? node->inputs[2] : NULL};
    ot_value *flag = node->outputs[0];
    ot_node *fused;

    ot__graph_remove_node(graph, node);
    ot__graph_remove_node(graph, gemm);
    fused = ot__graph_add_node(graph, "ai.onnxtrain", "GemmAccumulate", gemm->name, in,
                               in[3] != NULL ? 4 : 3, &flag, 1);
    if (fused == NULL || !ot__node_set_float(fused, "alpha", ot_attr_float(gemm, "alpha")) ||
        !ot__node_set_int(fused, "transA", ot_attr_int(gemm, "transA")) ||
        !ot__node_set_int(fused, "transB", ot_attr_int(gemm, "transB")))
        return OT_ERR_NO_MEMORY;
    OT_TRY(ot__op_lookup(graph->model, fused, &fused->op));
    return ot__op_infer(fused);
}

// The accumulators found and, behind each, its Gemm.
static int collect(const ot_graph *graph, const ot__uses *uses, ot_node **found)
{
    int n_found = 0;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *gemm = product_of(uses, graph->nodes[n]);

        if (gemm == NULL)
            continue;
        found[n_found++] = graph->nodes[n];
        found[n_found++] = gemm;
    }
    return n_found;
}

static ot_status replace_all(ot_model *model, ot_node *const *found, int n_found)
{
    if (n_found > 0 && ot__model_opset(model, "ai.onnxtrain") == 0)
        OT_TRY(ot__model_set_opset(model, "ai.onnxtrain", 1));
    for (int i = 0; i < n_found; i += 2)
        OT_TRY(replace(model->graph, found[i], found[i + 1]));
    return n_found > 0 ? ot__graph_sort(model->graph) : OT_OK;
}

ot_status ot__fuse_gemm_accumulate(ot_model *model)
{
    const size_t n_nodes = (size_t)model->graph->n_nodes;
    ot_node **found = ot__alloc_zero(2 * n_nodes + 1, sizeof(ot_node *));
    ot__uses uses = {0};
    ot_status st = found == NULL ? OT_ERR_NO_MEMORY : ot__uses_build(model->graph, &uses);

    if (st == OT_OK)
        st = replace_all(model, found, collect(model->graph, &uses, found));
    ot__uses_deinit(&uses);
    ot__free(found);
    return st;
}
