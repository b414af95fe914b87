// SPDX-License-Identifier: Apache-2.0
// A model brought into the form that .ort files have: no functions, every value typed, no Constant
// nodes, nodes in order.
#include <string.h>

#include "onnx/ort/ort.h"

// ---- functions ----
//
// An .ort file has none, and what ONNX Runtime defines as a function without a kernel of its own
// must be written out too.

static const char definitions[] =
    "<ir_version: 8, opset_import: [\"\" : 13, \"com.microsoft\" : 1]> definitions () => () {}\n"
    "<domain: \"com.microsoft\", opset_import: [\"\" : 13, \"com.microsoft\" : 1]>\n"
    "DivGrad (dy, a, b) => (da, db) {\n"
    "  [shapes_a] shape_a = Shape (a)\n"
    "  [shapes_b] shape_b = Shape (b)\n"
    "  [axes] axes_a, axes_b = com.microsoft.BroadcastGradientArgs (shape_a, shape_b)\n"
    "  [da] da_full = Div (dy, b)\n"
    "  [da_sum] da_sum = com.microsoft.ReduceSumTraining <keepdims = 1, noop_with_empty_axes = 1>"
    " (da_full, axes_a)\n"
    "  [da_shape] da = Reshape (da_sum, shape_a)\n"
    "  [square] square = Mul (b, b)\n"
    "  [minus] minus = Neg (a)\n"
    "  [slope] slope = Div (minus, square)\n"
    "  [db] db_full = Mul (dy, slope)\n"
    "  [db_sum] db_sum = com.microsoft.ReduceSumTraining <keepdims = 1, noop_with_empty_axes = 1>"
    " (db_full, axes_b)\n"
    "  [db_shape] db = Reshape (db_sum, shape_b)\n"
    "}\n";

static bool calls_defined(const ot_graph *graph, const ot_model *library)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        for (int f = 0; f < library->n_functions; f++)
            if (strcmp(node->op_type, library->functions[f]->name) == 0 &&
                strcmp(node->domain, library->functions[f]->domain) == 0)
                return true;
        for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
            if (calls_defined(s.graph, library))
                return true;
    }
    return false;
}

static ot_status put_definitions_in(ot_model *model, ot_model *library)
{
    if (!calls_defined(model->graph, library))
        return OT_OK;
    OT_TRY(ot__model_keep(model, library));
    model->functions = library->functions; // its own have been put in
    model->n_functions = library->n_functions;
    return ot__model_inline_functions(model);
}

static ot_status expand_functions(ot_model *model)
{
    ot_model *library;
    ot_status st;

    OT_TRY(ot__model_inline_functions(model));
    OT_TRY(ot__text_read(definitions, sizeof definitions - 1, NULL, "definitions", &library));
    st = put_definitions_in(model, library);
    ot_model_destroy(library);
    return st;
}

// ---- types ----

static bool is_untyped(const ot_value *value)
{
    return value && (value->kind == OT_VALUE_UNTYPED ||
                     (value->kind == OT_VALUE_TENSOR && value->dtype == OT_DTYPE_UNDEFINED));
}

static bool has_untyped(const ot_graph *graph)
{
    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];

        for (int i = 0; i < node->n_outputs; i++)
            if (is_untyped(node->outputs[i]))
                return true;
        for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
            if (has_untyped(s.graph))
                return true;
    }
    return false;
}

// CastLike has no kernel either, but its body depends on the type.
static ot_status name_cast(ot_node *node)
{
    const ot_value *like = node->n_inputs == 2 ? node->inputs[1] : NULL;

    if (strcmp(node->op_type, "CastLike") != 0 || node->domain[0] || !like || is_untyped(like))
        return OT_OK;
    node->op_type = "Cast";
    node->n_inputs = 1;
    return ot__made(ot__node_set_int(node, "to", like->dtype));
}

// ---- Constant nodes become initializers ----

static ot_status ort_constant(ot_model *model, const ot_attr *attr, ot_tensor **out)
{
    static const ot_dtype dtypes[OT_ATTR_KINDS] = {
        [OT_ATTR_FLOAT] = OT_F32, [OT_ATTR_INT] = OT_I64, [OT_ATTR_STRING] = OT_STRING};
    const ot__attr_items items = ot__attr_items_of(attr);

    *out = attr->t;
    if (attr->kind == OT_ATTR_TENSOR)
        return OT_OK;
    if (dtypes[items.element] == OT_DTYPE_UNDEFINED)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "attribute '%s' of kind %s cannot be written to .ort files", attr->name,
                         ot__attr_kind_name(attr->kind));
    *out = ot__model_tensor_new(model, dtypes[items.element],
                                items.is_list ? &OT_SHAPE(items.n) : &OT_SHAPE_SCALAR);
    if (*out && items.n > 0)
        memcpy((*out)->data, items.data, (size_t)items.n * ot__attr_rows[attr->kind].size);
    return ot__made(*out);
}

static ot_status replace_constant(ot_graph *graph, ot_node *node)
{
    ot_value *value = node->n_outputs == 1 ? node->outputs[0] : NULL;
    ot_tensor *tensor = NULL;

    if (!value || node->n_attrs != 1)
        return ot__error(OT_ERR_FORMAT, "%s has %d outputs and %d attributes, expected one of each",
                         OT_LABEL(node), node->n_outputs, node->n_attrs);
    OT_TRY(ort_constant(graph->model, node->attrs[0], &tensor));
    value->producer = NULL;
    return ot__made(ot__graph_add_initializer(graph, value, tensor));
}

// ---- all graphs ----

static ot_status prepare_graph(ot_graph *graph);

static ot_status prepare_subgraphs(const ot_node *node)
{
    for (ot__subgraphs s = {.node = node}; ot__next_subgraph(&s);)
        OT_TRY(prepare_graph(s.graph));
    return OT_OK;
}

static ot_status prepare_graph(ot_graph *graph)
{
    int kept = 0;

    for (int n = 0; n < graph->n_nodes; n++) {
        ot_node *node = graph->nodes[n];

        if (strcmp(node->op_type, "Constant") == 0 && !node->domain[0]) {
            OT_TRY(replace_constant(graph, node));
            continue;
        }
        OT_TRY(name_cast(node));
        OT_TRY(prepare_subgraphs(node));
        graph->nodes[kept++] = node;
    }
    graph->n_nodes = kept;
    return ot__graph_sort(graph);
}

ot_status ot__ort_prepare(ot_model *model)
{
    const int64_t opset = ot__model_opset(model, "");

    if (opset > OT_ORT_OPSET_MAX)
        return ot__error(OT_ERR_UNSUPPORTED,
                         "the model imports opset %" PRId64 ", .ort files are written up to %d",
                         opset, OT_ORT_OPSET_MAX);
    OT_TRY(expand_functions(model));
    if (has_untyped(model->graph))
        OT_TRY(ot_model_infer(model));
    return prepare_graph(model->graph);
}
