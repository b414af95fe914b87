// SPDX-License-Identifier: Apache-2.0
// Emitting nodes and constants into the graph a gradient is written to.
#include "op/grad.h"

#include <string.h>

// ---- nodes ----

static ot_value **new_outputs(ot_grad *g, const char *node_name, int n)
{
    ot__arena *arena = g->build.graph->model->arena;
    ot_value **outputs = ot__arena_alloc(arena, ((size_t)n + 1) * sizeof(*outputs));

    ot__build_made(&g->build, outputs != NULL);
    for (int i = 0; g->build.status == OT_OK && i < n; i++) {
        char *name = n == 1 ? ot__arena_printf(arena, "%s_y", node_name)
                            : ot__arena_printf(arena, "%s_y%d", node_name, i);

        if (ot__build_made(&g->build, name != NULL))
            outputs[i] = ot__build_value(&g->build, name);
    }
    return outputs;
}

ot_node *ot_emit(ot_grad *g, const char *op, const char *attrs, ot_value *const *inputs,
                 int n_inputs, int n_outputs)
{
    const char *domain, *type = ot__op_split_name(&g->build, op, &domain);
    ot_value **outputs;
    char *name;
    ot_node *node;

    if (g->build.status != OT_OK)
        return NULL;
    name =
        ot__arena_printf(g->build.graph->model->arena, "%s/%s_%d", g->prefix, type, g->n_emitted++);
    if (!ot__build_made(&g->build, name != NULL))
        return NULL;
    outputs = new_outputs(g, name, n_outputs);
    node = ot__op_build(&g->build, domain, type, name, inputs, n_inputs, outputs, n_outputs);
    ot__op_build_attrs(&g->build, node, attrs);
    return g->build.status == OT_OK ? node : NULL;
}

ot_value *ot_emit_output(ot_grad *g, ot_node *node, int output)
{
    if (g->build.status != OT_OK || node == NULL || output >= node->n_outputs)
        return NULL;
    if (node->outputs[output] != NULL && node->outputs[output]->kind == OT_VALUE_UNTYPED)
        ot__op_settle(&g->build, node);
    return g->build.status == OT_OK ? node->outputs[output] : NULL;
}

void ot_emit_int(ot_grad *g, ot_node *node, const char *name, int64_t value)
{
    ot__build_int(&g->build, node, name, value);
}

void ot_emit_ints(ot_grad *g, ot_node *node, const char *name, const int64_t *values, int n)
{
    ot__build_ints(&g->build, node, name, values, n);
}

void ot_emit_float(ot_grad *g, ot_node *node, const char *name, float value)
{
    ot__build_float(&g->build, node, name, value);
}

void ot_emit_string(ot_grad *g, ot_node *node, const char *name, const char *value)
{
    ot__build_string(&g->build, node, name, value);
}

void ot_emit_forward_attrs(ot_grad *g, ot_node *node)
{
    if (g->build.status == OT_OK && node != NULL)
        ot__build_made(&g->build, ot__node_copy_attrs(node, g->node));
}

void ot_emit_omit_output(ot_grad *g, ot_node *node, int output)
{
    if (g->build.status != OT_OK || node == NULL || output >= node->n_outputs ||
        node->outputs[output] == NULL)
        return;
    ot__graph_forget_value(g->build.graph, node->outputs[output]);
    node->outputs[output] = NULL;
}

ot_value *ot_emit1(ot_grad *g, const char *op, ot_value *a)
{
    return a == NULL ? NULL : ot_emit_output(g, ot_emit(g, op, NULL, &a, 1, 1), 0);
}

ot_value *ot_emit2(ot_grad *g, const char *op, ot_value *a, ot_value *b)
{
    ot_value *const inputs[] = {a, b};

    return a == NULL || b == NULL ? NULL : ot_emit_output(g, ot_emit(g, op, NULL, inputs, 2, 1), 0);
}

ot_value *ot_emit3(ot_grad *g, const char *op, ot_value *a, ot_value *b, ot_value *c)
{
    ot_value *const inputs[] = {a, b, c};

    return a == NULL || b == NULL || c == NULL
               ? NULL
               : ot_emit_output(g, ot_emit(g, op, NULL, inputs, 3, 1), 0);
}

ot_value *ot_emit_cast(ot_grad *g, ot_value *v, ot_dtype dtype)
{
    ot_node *node;

    if (v == NULL || v->dtype == dtype)
        return v;
    node = ot_emit(g, "Cast", NULL, &v, 1, 1);
    ot_emit_int(g, node, "to", (int64_t)dtype);
    return ot_emit_output(g, node, 0);
}

// ---- constants ----

// The numbers that ONNX Runtime has names for keep them.
static const char *number_name(double number)
{
    return number == 0.0 ? "Zero" : number == 0.5 ? "Half" : number == 1.0 ? "One" : NULL;
}

static ot_value *shared_constant(const ot_grad *g, const char *name, ot_dtype dtype, double number)
{
    ot_value *v = ot__graph_find(g->build.graph, name);
    const bool same = v != NULL && v->constant != NULL && v->constant->dtype == dtype &&
                      v->constant->shape.ndim == 0 && ot__tensor_get_f64(v->constant, 0) == number;

    return same ? v : NULL;
}

ot_value *ot_emit_constant(ot_grad *g, double number, const ot_value *like)
{
    const char *word = number_name(number);
    ot__buf text = {0};
    ot_value *v = NULL;
    ot_dtype dtype;
    char *name;

    if (g->build.status != OT_OK || like == NULL)
        return NULL;
    dtype = like->dtype;
    if (word == NULL)
        ot__buf_float(&text, number, false);
    name = ot__arena_printf(g->build.graph->model->arena, "%sConstant_Type%s",
                            word != NULL        ? word
                            : text.data != NULL ? text.data
                                                : "",
                            ot__dtype_onnx_name(dtype));
    ot__buf_deinit(&text);
    if (!ot__build_made(&g->build, name != NULL))
        return NULL;
    v = shared_constant(g, name, dtype, number);
    if (v != NULL)
        return v;
    v = ot__build_initializer(&g->build, name, dtype, &OT_SHAPE_SCALAR);
    if (v != NULL && !ot__convert(v->constant->data, dtype, &number, OT_F64, 1))
        ot_grad_fail(g, "no constant of type %s", ot_dtype_name(dtype));
    return v;
}

ot_value *ot__emit_tensor(ot_grad *g, ot_dtype dtype, const ot_shape *shape)
{
    char *name;

    if (g->build.status != OT_OK)
        return NULL;
    name =
        ot__arena_printf(g->build.graph->model->arena, "%s/Constant_%d", g->prefix, g->n_emitted++);
    return ot__build_made(&g->build, name != NULL)
               ? ot__build_initializer(&g->build, name, dtype, shape)
               : NULL;
}

void ot__set_element(ot_tensor *tensor, int64_t i, double value)
{
    char *to = (char *)tensor->data + (size_t)i * ot_dtype_size(tensor->dtype);

    (void)ot__convert(to, tensor->dtype, &value, OT_F64, 1);
}

ot_value *ot_emit_constant_i64(ot_grad *g, const int64_t *numbers, int n)
{
    ot_value *v = ot__emit_tensor(g, OT_I64, &OT_SHAPE(n));

    if (v == NULL || n == 0)
        return v;
    memcpy(v->constant->data, numbers, (size_t)n * sizeof(*numbers));
    if (n <= OT_MAX_KNOWN) {
        v->known = v->constant->data;
        v->n_known = n;
    }
    return v;
}
