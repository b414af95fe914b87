// SPDX-License-Identifier: Apache-2.0
// Writing a graph: values, initializers, nodes and attributes, with the first error kept.
#include <stdarg.h>
#include <string.h>

#include "graph/graph_internal.h"

// ---- errors ----

bool ot__build_note(ot__builder *b, ot_status status)
{
    if (b->status != OT_OK || status == OT_OK)
        return b->status == OT_OK;
    b->status = status;
    if (b->failed)
        b->failed(b);
    return false;
}

bool ot__build_made(ot__builder *b, bool made)
{
    return ot__build_note(b, made ? OT_OK : OT_ERR_NO_MEMORY);
}

// ---- values ----

const char *ot__build_name(ot__builder *b, const char *format, ...)
{
    va_list args;
    char *name;

    if (b->status != OT_OK)
        return NULL;
    va_start(args, format);
    name = ot__arena_vprintf(b->graph->model->arena, format, args);
    va_end(args);
    return ot__build_made(b, name != NULL) ? name : NULL;
}

ot_value *ot__build_value(ot__builder *b, const char *name)
{
    ot_value *value = b->status == OT_OK ? ot__graph_new_value(b->graph, name) : NULL;

    return ot__build_made(b, value != NULL) ? value : NULL;
}

ot_value *ot__build_initializer(ot__builder *b, const char *name, ot_dtype dtype,
                                const ot_shape *shape)
{
    ot_tensor *tensor =
        b->status == OT_OK ? ot__model_tensor_new(b->graph->model, dtype, shape) : NULL;
    ot_value *value = tensor ? ot__graph_new_value(b->graph, name) : NULL;

    return ot__build_made(b, value && ot__graph_add_initializer(b->graph, value, tensor)) ? value
                                                                                          : NULL;
}

void ot__build_input(ot__builder *b, ot_value *value)
{
    if (b->status == OT_OK)
        ot__build_made(b, ot__graph_add_input(b->graph, value));
}

void ot__build_output(ot__builder *b, ot_value *value)
{
    if (b->status == OT_OK)
        ot__build_made(b, ot__graph_add_output(b->graph, value));
}

// ---- nodes ----

// Versions of what is known of these domains; models need not have imported them.
static ot_status import_domain(ot_model *model, const char *domain)
{
    enum { ONNX_VERSION = 13, ML_VERSION = 3 };
    const int64_t version = domain[0] == '\0'                   ? ONNX_VERSION
                            : strcmp(domain, "ai.onnx.ml") == 0 ? ML_VERSION
                                                                : 1;

    if (ot__model_opset(model, domain) != 0)
        return OT_OK;
    return ot__model_set_opset(model, domain, version);
}

ot_node *ot__build_node(ot__builder *b, const char *domain, const char *op_type, const char *name,
                        ot_value *const *inputs, int n_inputs, ot_value *const *outputs,
                        int n_outputs)
{
    ot_node *node;

    if (b->status != OT_OK || !ot__build_note(b, import_domain(b->graph->model, domain)))
        return NULL;
    node =
        ot__graph_add_node(b->graph, domain, op_type, name, inputs, n_inputs, outputs, n_outputs);
    return ot__build_made(b, node != NULL) ? node : NULL;
}

void ot__build_int(ot__builder *b, ot_node *node, const char *name, int64_t value)
{
    if (b->status == OT_OK && node)
        ot__build_made(b, ot__node_set_int(node, name, value));
}

void ot__build_float(ot__builder *b, ot_node *node, const char *name, double value)
{
    if (b->status == OT_OK && node)
        ot__build_made(b, ot__node_set_float(node, name, (float)value));
}

void ot__build_ints(ot__builder *b, ot_node *node, const char *name, const int64_t *values, int n)
{
    if (b->status == OT_OK && node)
        ot__build_made(b, ot__node_set_ints(node, name, values, n));
}

void ot__build_string(ot__builder *b, ot_node *node, const char *name, const char *value)
{
    if (b->status == OT_OK && node)
        ot__build_made(b, ot__node_set_string(node, name, value));
}

void ot__build_number(ot__builder *b, ot_node *node, const char *name, ot_dtype dtype,
                      double number)
{
    ot_tensor *tensor;

    if (b->status != OT_OK || !node)
        return;
    tensor = ot__model_tensor_new(b->graph->model, dtype, &OT_SHAPE(1));
    ot__build_made(b, tensor && ot__convert(tensor->data, dtype, &number, OT_F64, 1) &&
                          ot__node_set_tensor(node, name, tensor));
}
