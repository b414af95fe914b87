// SPDX-License-Identifier: Apache-2.0
// Graphs of several nodes, mostly of shape arithmetic, with symbolic and number dim sizes,
// constants and stated shapes, made from bytes: they are prepared, folded, given gradients, made
// for input shapes and run, or refused with a clear line.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/gradients.h"
#include "onnxtrain/runner.h"
#include "passes/passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_VALUES = 48, MAX_NODES = 14, MAX_INPUTS = 3, MAX_RUN_ELEMENTS = 1 << 14 };

typedef struct source {
    const uint8_t *at, *end;
} source;

static unsigned take(source *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

static int64_t take_size(source *s)
{
    static const int64_t sizes[] = {
        1, 2, 3, 4, 1, 2,  0,         -1, -2, 5, 6, 7, 255, INT64_C(1) << 40,
        1, 2, 3, 4, 0, -1, INT64_MAX, 6,  12, 2, 3, 1, 1,   INT64_MIN};

    return sizes[take(s) % OT_COUNT(sizes)];
}

// What nodes are made of: operators with their inputs, of which 'f' is a float, 'i' an integer
// tensor, '-' is left out, '?' makes the next one optional; and their attributes.
static const struct {
    const char *op, *inputs, *attrs;
    bool gives_integers;
} kinds[] = {
    {"Shape", "f", "", true},
    {"Shape", "f", "start = %d, end = %d", true},
    {"Size", "f", "", true},
    {"Gather", "ii", "axis = %d", true},
    {"Gather", "fi", "axis = %d", false},
    {"Concat", "ii", "axis = 0", true},
    {"Concat", "iii", "axis = %d", true},
    {"Concat", "ff", "axis = %d", false},
    {"Slice", "iii", "", true},
    {"Slice", "fii?i?i", "", false},
    {"Reshape", "fi", "allowzero = %d", false},
    {"Reshape", "fi", "", false},
    {"Reshape", "ii", "", true},
    {"Expand", "fi", "", false},
    {"Squeeze", "fi", "", false},
    {"Squeeze", "ii", "", true},
    {"Unsqueeze", "fi", "", false},
    {"Unsqueeze", "ii", "", true},
    {"Add", "ii", "", true},
    {"Mul", "ii", "", true},
    {"Sub", "ii", "", true},
    {"Div", "ii", "", true},
    {"Add", "ff", "", false},
    {"Mul", "ff", "", false},
    {"MatMul", "ff", "", false},
    {"Transpose", "f", "", false},
    {"ReduceSum", "f?i", "keepdims = %d", false},
    {"ReduceProd", "i", "keepdims = 0", true},
    {"ConstantOfShape", "i", "value = i64[1]{%d}", true},
    {"ConstantOfShape", "i", "", false},
    {"Range", "iii", "", true},
    {"Tile", "fi", "", false},
    {"Pad", "fi", "", false},
    {"Cast", "i", "to = 7", true},
    {"Identity", "i", "", true},
    {"Split", "fi", "axis = %d", false},
    {"Flatten", "f", "axis = %d", false},
    {"Softmax", "f", "axis = %d", false},
    {"NonZero", "i", "", true},
    {"Resize", "f--i", "", false},
};

typedef struct graph {
    ot_model *model;
    ot_value *floats[MAX_VALUES], *integers[MAX_VALUES];
    int n_floats, n_integers, n_values;
} graph;

static void keep(graph *g, ot_value *value, bool is_integer)
{
    if (is_integer && g->n_integers < MAX_VALUES)
        g->integers[g->n_integers++] = value;
    else if (!is_integer && g->n_floats < MAX_VALUES)
        g->floats[g->n_floats++] = value;
}

static ot_value *new_value(graph *g, const char *letter)
{
    char name[24];

    snprintf(name, sizeof name, "%s%d", letter, g->n_values++);
    return ot__graph_value(g->model->graph, name);
}

static int64_t take_dim(graph *g, source *s)
{
    static const char *const names[] = {"N", "M", "batch", "2*N"};
    const unsigned how = take(s);

    if (how % 4 == 0)
        return ot__dim_symbol(g->model, names[how / 4 % OT_COUNT(names)]);
    return how % 16 == 1 ? OT_DIM_UNKNOWN : 1 + (int64_t)(how / 16 % 4);
}

static bool add_inputs(graph *g, source *s)
{
    const int n = 1 + (int)(take(s) % MAX_INPUTS);

    for (int i = 0; i < n; i++) {
        ot_value *x = new_value(g, "x");
        const bool is_integer = i > 0 && take(s) % 3 == 0;
        ot_shape shape = {.ndim = (int)(take(s) % 4)};

        for (int k = 0; k < shape.ndim; k++)
            shape.dim[k] = take_dim(g, s);
        if (!x || !ot__graph_add_input(g->model->graph, x))
            return false;
        ot__value_set(x, is_integer ? OT_I64 : OT_F32, take(s) % 16 == 0 ? NULL : &shape);
        keep(g, x, is_integer);
    }
    return true;
}

static ot_value *add_constant(graph *g, source *s, bool is_integer)
{
    ot_shape shape = {.ndim = (int)(take(s) % (is_integer ? 2 : 3))};
    ot_tensor *tensor;
    ot_value *value;

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = take(s) % 5;
    if (ot_tensor_create(is_integer ? OT_I64 : OT_F32, &shape, &tensor) != OT_OK)
        return NULL;
    for (int64_t i = 0; i < ot_tensor_count(tensor); i++) {
        if (is_integer)
            ((int64_t *)tensor->data)[i] = take_size(s);
        else
            ((float *)tensor->data)[i] = (float)(take(s) % 9) - 4;
    }
    value = new_value(g, "c");
    if (ot__model_hold_tensor(g->model, tensor) != OT_OK || !value ||
        !ot__graph_add_initializer(g->model->graph, value, tensor))
        return NULL;
    keep(g, value, is_integer);
    return value;
}

static ot_value *take_value(graph *g, source *s, bool is_integer)
{
    const int n = is_integer ? g->n_integers : g->n_floats;
    const unsigned how = take(s);

    if (n == 0 || how % 3 == 0)
        return add_constant(g, s, is_integer);
    return (is_integer ? g->integers : g->floats)[(unsigned)n - 1 - how / 3 % (unsigned)n];
}

static bool can_be(const graph *g, ot_node *node)
{
    return ot__op_lookup(g->model, node, &node->op) == OT_OK && ot__op_check_node(node) == OT_OK &&
           ot__op_infer(node) == OT_OK;
}

static bool add_node(graph *g, source *s)
{
    const unsigned kind = take(s) % OT_COUNT(kinds);
    ot_value *x[8] = {NULL}, *y[2] = {new_value(g, "y"), NULL};
    char attrs[80];
    ot_node *node;
    int n = 0, n_out = 1;

    for (const char *at = kinds[kind].inputs; *at; at++, n++) {
        const bool is_optional = *at == '?';

        at += is_optional;
        if (*at != '-' && !(is_optional && take(s) % 2 == 0))
            x[n] = take_value(g, s, *at == 'i');
    }
    if (strcmp(kinds[kind].op, "Split") == 0)
        y[n_out++] = new_value(g, "y");
    node = ot__graph_add_node(g->model->graph, "", kinds[kind].op, "", x, n, y, n_out);
    snprintf(attrs, sizeof attrs, kinds[kind].attrs, (int)(take(s) % 5) - 1,
             (int)(take(s) % 5) - 2);
    if (!node || ot__node_set_attrs_text(node, attrs) != OT_OK)
        return false;
    // Most nodes that cannot be would end the graph.
    if (!can_be(g, node) && take(s) % 16 != 0) {
        ot__node_detach(node);
        ot__graph_drop_detached(g->model->graph);
        return true;
    }
    for (int i = 0; i < n_out; i++)
        keep(g, y[i], kinds[kind].gives_integers);
    return true;
}

// What has been inferred on the way goes, but for some: a file's word, true or not.
static void state_shapes(graph *g, source *s)
{
    for (int n = 0; n < g->model->graph->n_nodes; n++)
        for (int i = 0; i < g->model->graph->nodes[n]->n_outputs; i++) {
            ot_value *y = g->model->graph->nodes[n]->outputs[i];
            const unsigned how = take(s) % 8;
            ot_shape stated = {.ndim = (int)(how % 4)};

            y->n_known = 0;
            if (how == 0) // as it is
                continue;
            for (int k = 0; how < 3 && k < stated.ndim; k++)
                stated.dim[k] = take_dim(g, s);
            ot__value_set(y, y->dtype, how < 3 ? &stated : NULL);
        }
}

static bool make(graph *g, source *s)
{
    const int n_nodes = 1 + (int)(take(s) % MAX_NODES);
    ot_value *last;

    if (ot__model_create(&g->model) != OT_OK || ot__model_set_opset(g->model, "", 18) != OT_OK ||
        !add_inputs(g, s))
        return false;
    for (int i = 0; i < n_nodes; i++)
        if (!add_node(g, s))
            return false;
    state_shapes(g, s);
    last = g->n_floats > 0 ? g->floats[g->n_floats - 1] : NULL;
    return last && last->producer && ot__graph_add_output(g->model->graph, last);
}

// ---- what is done with it ----

static void check_message(ot_status st)
{
    const char *message = ot_error_message();

    if (st == OT_OK || (message[0] && !strchr(message, '\n')))
        return;
    fprintf(stderr, "no clear line for %s: '%s'\n", ot_status_name(st), message);
    abort();
}

static bool is_small(const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++)
        for (int i = 0; i < model->graph->nodes[n]->n_outputs; i++) {
            const ot_value *y = model->graph->nodes[n]->outputs[i];
            int64_t count;

            if (y && (!ot__shape_count(&y->shape, &count) || count > MAX_RUN_ELEMENTS))
                return false;
        }
    return true;
}

// Every symbol is `size`.
static bool input_shapes(const ot_model *model, int64_t size, ot_shape *shapes)
{
    for (int i = 0; i < model->graph->n_inputs; i++) {
        const ot_value *x = model->graph->inputs[i];

        shapes[i] = x->shape;
        for (int k = 0; k < x->shape.ndim; k++)
            if (!ot__dim_is_number(shapes[i].dim[k]))
                shapes[i].dim[k] = size;
        if (!x->has_shape)
            shapes[i] = OT_SHAPE(size);
    }
    return model->graph->n_inputs <= MAX_INPUTS;
}

static void run(const ot_model *model, const ot_shape *shapes)
{
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    ot_tensor *in[MAX_INPUTS] = {NULL}, *out[1] = {NULL};
    bool is_made = true;

    options.n_threads = 1;
    for (int i = 0; i < model->graph->n_inputs; i++) {
        is_made = is_made &&
                  ot_tensor_create(model->graph->inputs[i]->dtype, &shapes[i], &in[i]) == OT_OK;
        if (is_made && in[i]->n_bytes > 0)
            memset(in[i]->data, 0, in[i]->n_bytes);
    }
    if (is_made)
        check_message(ot_model_run(model, &options, (const ot_tensor *const *)in,
                                   model->graph->n_inputs, out, 1));
    for (int i = 0; i < MAX_INPUTS; i++)
        ot_tensor_destroy(in[i]);
    ot_tensor_destroy(out[0]);
}

static void specialize(const ot_model *prepared, const ot_model *plain, int64_t size)
{
    ot_shape shapes[MAX_INPUTS];
    ot_model *special = NULL;
    ot_status st;

    if (!input_shapes(prepared, size, shapes) || ot__model_clone(prepared, &special) != OT_OK)
        return;
    st = ot__pass_specialize(special, shapes, special->graph->n_inputs);
    check_message(st);
    if (st == OT_OK && is_small(special))
        run(plain, shapes);
    ot_model_destroy(special);
}

static void build_gradient(const ot_model *model)
{
    const char *const x = model->graph->inputs[0]->name;
    ot_gradients *gradients = NULL;

    check_message(
        ot_gradients_create(model, model->graph->outputs[0]->name, &x, 1, NULL, &gradients));
    ot_gradients_destroy(gradients);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    source s = {bytes, bytes + n_bytes};

    while (s.at < s.end) {
        graph g = {0};
        ot_model *prepared = NULL;

        if (make(&g, &s) && ot__model_clone(g.model, &prepared) == OT_OK) {
            const ot_status st = ot__pass_prepare(prepared);

            check_message(st);
            if (st == OT_OK) {
                specialize(prepared, g.model, 2);
                specialize(prepared, g.model, 1);
                build_gradient(g.model);
                check_message(ot__pass_fold(prepared, 1 << 20));
            }
        }
        ot_model_destroy(prepared);
        ot_model_destroy(g.model);
    }
    return 0;
}
