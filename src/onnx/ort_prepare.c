// A model brought into the form that .ort files have: no functions, no Constant nodes, nodes in
// order.
#include <string.h>

#include "onnx/ort.h"

// ---- Constant nodes become initializers ----

static ot_tensor *copy_elements(ot_model *model, ot_dtype dtype, const ot_shape *shape,
                                const void *elements, size_t n_bytes)
{
    ot_tensor *tensor = ot__model_tensor_new(model, dtype, shape);

    if (tensor && n_bytes > 0)
        memcpy(tensor->data, elements, n_bytes);
    return tensor;
}

static ot_status constant_of(ot_model *model, const ot_attr *attr, ot_tensor **out)
{
    const ot_shape scalar = {0}, list = {.ndim = 1, .dim = {attr->n}};
    const size_t n = (size_t)attr->n;

    switch (attr->kind) {
    case OT_ATTR_TENSOR:
        *out = attr->t;
        return OT_OK;
    case OT_ATTR_FLOAT:
        *out = copy_elements(model, OT_F32, &scalar, &attr->f, sizeof attr->f);
        break;
    case OT_ATTR_INT:
        *out = copy_elements(model, OT_I64, &scalar, &attr->i, sizeof attr->i);
        break;
    case OT_ATTR_STRING:
        *out = copy_elements(model, OT_STRING, &scalar, &attr->s, sizeof attr->s);
        break;
    case OT_ATTR_FLOATS:
        *out = copy_elements(model, OT_F32, &list, attr->floats, n * sizeof *attr->floats);
        break;
    case OT_ATTR_INTS:
        *out = copy_elements(model, OT_I64, &list, attr->ints, n * sizeof *attr->ints);
        break;
    case OT_ATTR_STRINGS:
        *out = copy_elements(model, OT_STRING, &list, attr->strings, n * sizeof *attr->strings);
        break;
    default:
        return ot__error(OT_ERR_UNSUPPORTED, "attribute '%s' of kind %s has no form in .ort files",
                         attr->name, ot__attr_kind_name(attr->kind));
    }
    return *out ? OT_OK : OT_ERR_NO_MEMORY;
}

static ot_status replace_constant(ot_graph *graph, ot_node *node)
{
    ot_value *value = node->n_outputs == 1 ? node->outputs[0] : NULL;
    ot_tensor *tensor;
    char label[160];

    if (!value || node->n_attrs != 1)
        return ot__error(OT_ERR_FORMAT, "%s has %d outputs and %d attributes, expected one of each",
                         ot__node_label(node, label, sizeof label), node->n_outputs, node->n_attrs);
    OT_TRY(constant_of(graph->model, node->attrs[0], &tensor));
    value->producer = NULL;
    return ot__graph_add_initializer(graph, value, tensor) ? OT_OK : OT_ERR_NO_MEMORY;
}

// ---- all graphs ----

static ot_status prepare_graph(ot_graph *graph);

static ot_status prepare_subgraphs(const ot_node *node)
{
    for (int a = 0; a < node->n_attrs; a++)
        for (int g = 0; g < ot__attr_n_graphs(node->attrs[a]); g++)
            OT_TRY(prepare_graph(ot__attr_graph(node->attrs[a], g)));
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
    OT_TRY(ot__model_inline_functions(model));
    return prepare_graph(model->graph);
}
