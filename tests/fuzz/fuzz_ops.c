// SPDX-License-Identifier: Apache-2.0
// Models of one node with hostile attributes, ranks, extents and elements, made from bytes: every
// operator refuses them or computes them, forward, gradient rule and all.
#include <stdlib.h>
#include <string.h>

#include "onnxtrain/runner.h"
#include "passes/passes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_INPUTS = 8, MAX_OUTPUTS = 6, MAX_ELEMENTS = 4096, MAX_OUTPUT_ELEMENTS = 1 << 16 };

typedef struct source {
    const uint8_t *at, *end;
} source;

static unsigned take(source *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

// Small numbers mostly, and the ones that overflow.
static int64_t take_number(source *s)
{
    static const int64_t numbers[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      1,
                                      2,
                                      3,
                                      -1,
                                      -2,
                                      -3,
                                      7,
                                      16,
                                      255,
                                      -17,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX - 1,
                                      INT64_MIN + 1,
                                      INT64_C(1) << 62,
                                      1 << 24,
                                      1 << 30,
                                      INT64_C(1) << 40};

    return numbers[take(s) % OT_COUNT(numbers)];
}

static void take_shape(source *s, ot_shape *shape)
{
    static const int64_t extents[] = {
        1, 2, 3, 4, 5, 2, 3, 1, 0, 7, 1 << 24, INT64_C(1) << 31, INT64_C(1) << 61};
    const unsigned kind = take(s);
    const unsigned n = kind < 32 ? OT_COUNT(extents) : kind < 64 ? 9 : 8; // mostly harmless

    shape->ndim = kind % 16 == 15 ? OT_MAX_NDIM : (int)(kind % 6);
    for (int i = 0; i < shape->ndim; i++)
        shape->dim[i] = extents[take(s) % n];
}

static ot_dtype take_dtype(source *s, uint64_t set)
{
    unsigned skip = take(s) % 16;

    if (skip < 8 && (set >> OT_F32 & 1) != 0)
        return OT_F32;
    for (int round = 0; set != 0 && round < 64 * 16; round++)
        if ((set >> (round % 64) & 1) != 0 && skip-- == 0)
            return (ot_dtype)(round % 64);
    return OT_F32;
}

// NULL where the shape is too large to hold, or the type has no elements to write.
static ot_tensor *take_tensor(source *s, ot_dtype dtype, const ot_shape *shape)
{
    static const ot__cast_rule as_usual = {0};
    ot_tensor *tensor = NULL;
    int64_t count;

    if (!ot__shape_count(shape, &count) || count > MAX_ELEMENTS ||
        ot_tensor_create(dtype, shape, &tensor) != OT_OK)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = i < 16 ? take_number(s) : i % 3;

        (void)ot__convert_range(tensor->data, dtype, i, (ot__elements){&number, OT_I64, 0}, 1,
                                &as_usual);
    }
    return tensor;
}

static void take_attr(source *s, ot_node *node, const ot_attr_spec *spec)
{
    static const char *const words[] = {"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET",   "reflect",
                                        "edge",       "wrap",       "none",  "mean",     "sum",
                                        "tanh",       "add",        "CRD",   "circular", ""};
    int64_t ints[8];
    const unsigned n = take(s) % 7;
    ot_shape shape;
    ot_tensor *tensor;

    if (spec->kind == OT_ATTRIBUTE_INT) {
        (void)ot__node_set_int(node, spec->name, take_number(s));
    } else if (spec->kind == OT_ATTRIBUTE_FLOAT) {
        (void)ot__node_set_float(node, spec->name, (float)take_number(s) / 4);
    } else if (spec->kind == OT_ATTRIBUTE_STRING) {
        (void)ot__node_set_string(node, spec->name, words[take(s) % OT_COUNT(words)]);
    } else if (spec->kind == OT_ATTRIBUTE_INTS) {
        for (unsigned i = 0; i < n; i++)
            ints[i] = take_number(s);
        (void)ot__node_set_ints(node, spec->name, ints, (int)n);
    } else if (spec->kind == OT_ATTRIBUTE_TENSOR) {
        take_shape(s, &shape);
        tensor = take_tensor(s, take(s) % 2 ? OT_F32 : OT_I64, &shape);
        if (tensor && ot__model_hold_tensor(node->graph->model, tensor) == OT_OK)
            (void)ot__node_set_tensor(node, spec->name, tensor);
    }
}

typedef struct one_node {
    ot_model *model;
    ot_tensor *in[MAX_INPUTS]; // of the graph's inputs; NULL: too large
    int n_in;
} one_node;

static void add_input(one_node *one, source *s, const ot_op_def *op, const ot_port *port, int i,
                      ot_shape *shape, ot_value **x)
{
    const unsigned how = take(s);
    ot_graph *graph = one->model->graph;
    const ot_dtype dtype = take_dtype(s, ot__op_type_set(op, port->type));
    ot_tensor *tensor;
    char name[16];

    if ((port->flags & OT_PORT_OPTIONAL) != 0 && how % 3 == 0)
        return;
    if (i == 0 || how % 4 != 1) // else the shape of the input before
        take_shape(s, shape);
    snprintf(name, sizeof name, "x%d", i);
    x[i] = ot__graph_value(graph, name);
    if (!x[i])
        return;
    tensor = take_tensor(s, dtype, shape);
    if (tensor && how % 2 == 0) { // an initializer
        if (ot__model_hold_tensor(one->model, tensor) == OT_OK)
            (void)ot__graph_add_initializer(graph, x[i], tensor);
        return;
    }
    ot__value_set(x[i], dtype, shape);
    (void)ot__graph_add_input(graph, x[i]);
    one->in[one->n_in++] = tensor;
}

static bool make(one_node *one, source *s)
{
    const unsigned at = take(s) << 8; // there are more than 256
    const ot_op_def *op = ot__op_records((int)((at | take(s)) % (unsigned)ot__op_count()));
    const bool is_onnx = !op->domain || !op->domain[0];
    const int64_t opset = is_onnx ? 7 + (int64_t)take(s) % (ot__op_newest_opset - 6) : 1;
    ot_value *x[MAX_INPUTS] = {NULL}, *y[MAX_OUTPUTS] = {NULL};
    ot_shape shape = {0};
    ot_node *node;
    int n_in = 0, n_out = 0;

    if (ot__model_create(&one->model) != OT_OK ||
        ot__model_set_opset(one->model, "", is_onnx ? opset : 17) != OT_OK ||
        (!is_onnx && ot__model_set_opset(one->model, op->domain, 1) != OT_OK))
        return false;
    op = ot__op_find(op->domain, op->name, opset);
    if (!op)
        return false;
    for (const ot_port *p = op->inputs; p->name && n_in < MAX_INPUTS; p++) {
        const unsigned n = (p->flags & OT_PORT_VARIADIC) ? take(s) % 4 : 1;

        for (unsigned k = 0; k < n && n_in < MAX_INPUTS; k++, n_in++)
            add_input(one, s, op, p, n_in, &shape, x);
    }
    for (const ot_port *p = op->outputs; p->name && n_out < MAX_OUTPUTS; p++) {
        const unsigned n = (p->flags & OT_PORT_VARIADIC) ? take(s) % 4 : 1;
        char name[16];

        for (unsigned k = 0; k < n && n_out < MAX_OUTPUTS; k++, n_out++) {
            snprintf(name, sizeof name, "y%d", n_out);
            y[n_out] = ot__graph_value(one->model->graph, name);
            if (!y[n_out] || !ot__graph_add_output(one->model->graph, y[n_out]))
                return false;
        }
    }
    node = ot__graph_add_node(one->model->graph, op->domain ? op->domain : "", op->name, "node", x,
                              n_in, y, n_out);
    for (const ot_attr_spec *a = op->attrs; node && a && a->name; a++)
        if ((a->flags & OT_ATTR_REQUIRED) != 0 || take(s) % 2 == 0)
            take_attr(s, node, a);
    return node != NULL;
}

// ---- what is done with it ----

static ot_value *host_dy(void *context, const ot_value *y)
{
    ot_value *dy = ot__graph_new_value(context, "dy");

    if (dy)
        ot__value_set(dy, y->dtype, y->has_shape ? &y->shape : NULL);
    return dy;
}

static bool host_wants(void *context, const ot_node *node, int i)
{
    (void)context;
    return node->inputs[i] && ot__dtype_is_float(node->inputs[i]->dtype);
}

static ot_status host_set_dx(void *context, const ot_node *node, int i, ot_value *dx)
{
    (void)context;
    (void)node;
    (void)i;
    (void)dx;
    return OT_OK;
}

static void write_gradients(ot_model *model)
{
    const ot__grad_host host = {model->graph, host_dy, host_wants, host_set_dx};
    bool was_composed;
    int n;

    if (ot__pass_compose(model, &was_composed) != OT_OK)
        return;
    n = model->graph->n_nodes; // without those that rules append
    for (int i = 0; i < n; i++)
        if (ot__op_is_differentiable(model->graph->nodes[i]->op))
            (void)ot__op_grad(model->graph->nodes[i], &host);
}

// Whether every output has few elements, so that running it takes little time and memory.
static bool is_small(const ot_model *model)
{
    for (int i = 0; i < model->graph->n_nodes; i++)
        for (int o = 0; o < model->graph->nodes[i]->n_outputs; o++) {
            const ot_value *y = model->graph->nodes[i]->outputs[o];
            int64_t count;

            if (y && (!y->has_shape || !ot__shape_is_static(&y->shape) ||
                      !ot__shape_count(&y->shape, &count) || count > MAX_OUTPUT_ELEMENTS))
                return false;
        }
    return true;
}

static void run(const one_node *one)
{
    ot_tensor *out[MAX_OUTPUTS] = {NULL};
    ot_session_options options = OT_SESSION_OPTIONS_INIT;
    const int n_out = one->model->graph->n_outputs;

    for (int i = 0; i < one->n_in; i++)
        if (!one->in[i])
            return;
    for (int reference = 0; reference < 2; reference++) {
        options.reference_kernels = reference;
        options.n_threads = 1;
        (void)ot_model_run(one->model, &options, (const ot_tensor *const *)one->in, one->n_in, out,
                           n_out);
        for (int i = 0; i < n_out; i++) {
            ot_tensor_destroy(out[i]);
            out[i] = NULL;
        }
    }
}

static void check_message(ot_status st)
{
    const char *message = ot_error_message();

    if (st == OT_OK || (message[0] && !strchr(message, '\n')))
        return;
    fprintf(stderr, "no clear line for %s: '%s'\n", ot_status_name(st), message);
    abort();
}

// As many nodes as the bytes last for.
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    source s = {bytes, bytes + n_bytes};

    while (s.at < s.end) {
        one_node one = {0};
        ot_model *prepared = NULL;

        if (make(&one, &s) && ot__model_clone(one.model, &prepared) == OT_OK) {
            const ot_status st = ot__pass_prepare(prepared);

            check_message(st);
            if (st == OT_OK && is_small(prepared)) {
                run(&one);
                write_gradients(prepared);
            } else if (st == OT_OK) {
                write_gradients(prepared);
            }
        }
        ot_model_destroy(prepared);
        ot_model_destroy(one.model);
        for (int i = 0; i < one.n_in; i++)
            ot_tensor_destroy(one.in[i]);
    }
    return 0;
}
