// SPDX-License-Identifier: Apache-2.0
// The gradient of a case against central differences, both in f64 by the reference kernels.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Elements of an input that are compared, about so many: with sanitizers fewer, which look at
// memory that is the same for each; the release build looks at the numbers.
#ifdef __SANITIZE_ADDRESS__
enum { MAX_SAMPLES = 6 };
#else
enum { MAX_SAMPLES = 24 };
#endif
static const double STEP = 1e-4;
static const double TOLERANCE = 1e-6;

static ot_value *host_dy(void *context, const ot_value *y)
{
    const host *h = context;

    for (int i = 0; i < h->one.node->n_outputs && i < OT_CASE_MAX_PORTS; i++)
        if (h->one.node->outputs[i] == y)
            return h->dy[i];
    return NULL;
}

static bool host_wants(void *context, const ot_node *node, int i)
{
    (void)node;
    return i < OT_CASE_MAX_PORTS && ((const host *)context)->wants[i];
}

static ot_status host_set_dx(void *context, const ot_node *node, int i, ot_value *dx)
{
    host *h = context;

    (void)node;
    if (h->dx[i] != NULL)
        return ot__error(OT_ERR_INTERNAL, "the gradient of input %d is set twice", i);
    h->dx[i] = dx;
    return OT_OK;
}

// ---- evaluating the gradient graph ----

const ot_tensor *result_of(results *r, const ot_value *v)
{
    const ot_tensor *t = v == NULL ? NULL : ot__map_get(&r->tensors, v->name);

    return t != NULL || v == NULL ? t : v->constant;
}

static bool evaluate_node(results *r, const ot_node *node, const rounding *rounded)
{
    const ot_tensor *in[64] = {NULL};
    ot_tensor *out[64] = {NULL};

    if (node->n_inputs > 64 || node->n_outputs > 64)
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        in[i] = result_of(r, node->inputs[i]);
    if (ot__op_eval(node, in, node->n_inputs, out, node->n_outputs) != OT_OK) {
        fail("evaluating %s '%s': %s", node->op_type, node->name, ot_error_message());
        return false;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        if (out[i] == NULL)
            continue;
        if (rounded != NULL)
            rounded->move(rounded, node, i, out[i]);
        r->owned[r->n_owned++] = out[i];
        ot__map_put(&r->tensors, node->outputs[i]->name, out[i]);
    }
    return true;
}

void results_deinit(results *r)
{
    for (int i = 0; i < r->n_owned; i++)
        ot_tensor_destroy(r->owned[i]);
    ot__map_deinit(&r->tensors);
}

// ---- central differences ----

static double dot_difference(ot_tensor *const *plus, ot_tensor *const *minus, ot_tensor *const *dy,
                             int n)
{
    double sum = 0.0;

    for (int i = 0; i < n; i++)
        for (int64_t k = 0; dy[i] != NULL && k < ot_tensor_count(dy[i]); k++)
            sum += ((const double *)dy[i]->data)[k] *
                   (((const double *)plus[i]->data)[k] - ((const double *)minus[i]->data)[k]);
    return sum;
}

// What differences are taken of.
typedef struct forward {
    const one_node *one;
    host composed; // of an operator that is composed of others: those, written once
} forward;

static bool run_forward(forward *f, const inputs *in, ot_tensor *const *dy, ot_tensor **y)
{
    results *r;
    bool done;

    if (f->composed.one.model == NULL) {
        done = run_reference(f->one, in, y) == OT_OK;
        if (!done)
            fail("forward in f64: %s", ot_error_message());
        return done;
    }
    r = calloc(1, sizeof(*r));
    done = host_evaluate(&f->composed, in, dy, NULL, r);
    for (int i = 0; done && i < OT_CASE_MAX_PORTS; i++)
        if (f->composed.y[i] != NULL && dy[i] != NULL)
            done = ot_tensor_clone(result_of(r, f->composed.y[i]), &y[i]) == OT_OK;
    results_deinit(r);
    free(r);
    return done;
}

// sum of dY * (Y(x + h) - Y(x - h)) for element k of input i.
static bool difference(forward *f, const inputs *in, ot_tensor *const *dy, int i, int64_t k,
                       double h, double *out)
{
    double *x = (double *)in->tensor[i]->data + k;
    const double kept = *x;
    ot_tensor *plus[OT_CASE_MAX_PORTS] = {NULL}, *minus[OT_CASE_MAX_PORTS] = {NULL};
    bool done;

    *x = kept + h;
    done = run_forward(f, in, dy, plus);
    *x = kept - h;
    done = done && run_forward(f, in, dy, minus);
    *x = kept;
    if (done)
        *out = dot_difference(plus, minus, dy, f->one->node->n_outputs);
    for (int o = 0; o < OT_CASE_MAX_PORTS; o++) {
        ot_tensor_destroy(plus[o]);
        ot_tensor_destroy(minus[o]);
    }
    return done;
}

// Fourth order: the error is far below TOLERANCE for anything smooth.
static bool derivative(forward *f, const inputs *in, ot_tensor *const *dy, int i, int64_t k,
                       double *out)
{
    double near, far;

    if (!difference(f, in, dy, i, k, STEP, &near) || !difference(f, in, dy, i, k, 2 * STEP, &far))
        return false;
    *out = (8 * near - far) / (12 * STEP);
    return true;
}

static double largest(const ot_tensor *t)
{
    double found = 0.0;

    for (int64_t k = 0, n = ot_tensor_count(t); k < n; k++)
        found = OT_MAX(found, fabs(((const double *)t->data)[k]));
    return found;
}

static void compare_input(forward *f, const inputs *in, ot_tensor *const *dy, const ot_tensor *dx,
                          int i, const char *what)
{
    const int64_t count = ot_tensor_count(dx);
    const int64_t step = count / MAX_SAMPLES | 1; // odd, so that not all lie in one column
    const double scale = OT_MAX(largest(dx), 0.01);

    if (!ot__shape_equal(&dx->shape, &in->tensor[i]->shape)) {
        char text[100];

        fail("gradient of input %d (%s) has shape %s", i, what,
             ot__shape_text(&dx->shape, text, sizeof(text)));
        return;
    }
    for (int64_t k = 0; k < count; k += step) {
        const double found = ((const double *)dx->data)[k];
        double expected;

        if (!derivative(f, in, dy, i, k, &expected))
            return;
        if (fabs(found - expected) <= TOLERANCE * OT_MAX(scale, fabs(expected)))
            continue;
        fail("gradient of input %d (%s), element %" PRId64 " is %.12g, central differences %.12g",
             i, what, k, found, expected);
        return;
    }
}

// ---- one gradient graph ----

static bool is_float_output(const ot_node *node, int i, ot_dtype dtype)
{
    const ot_port *port = ot__op_output_port(node->op, i);

    return node->outputs[i] != NULL && node->outputs[i]->dtype == dtype &&
           (port == NULL || (port->flags & OT_PORT_NO_GRAD) == 0);
}

static bool is_float_input(const ot_node *node, const inputs *in, int i, ot_dtype dtype)
{
    const ot_port *port = ot__op_input_port(node->op, i);

    return in->tensor[i] != NULL && in->tensor[i]->dtype == dtype && !in->spec[i].is_const &&
           port != NULL && (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE)) == 0;
}

static void fill_dy(ot_tensor *dy, int i)
{
    const ot__rng_key key = {(uint64_t)i, 7};

    for (int64_t k = 0, n = ot_tensor_count(dy); k < n; k++) {
        const double value = 2 * ot__rng_uniform(key, (uint64_t)k) - 1;

        if (dy->dtype == OT_F64)
            ((double *)dy->data)[k] = value;
        else
            ((float *)dy->data)[k] = (float)value;
    }
}

// Random dY for the outputs in `only` (or all), from their concrete shapes.
static bool make_dy(host *h, const one_node *concrete, int only, ot_tensor **dy)
{
    ot_node *node = h->one.node;

    for (int i = 0; i < node->n_outputs; i++) {
        char name[16];

        if (!is_float_output(concrete->node, i, h->dtype) || (only != ALL && i != only))
            continue;
        if (ot_tensor_create(h->dtype, &concrete->node->outputs[i]->shape, &dy[i]) != OT_OK)
            return false;
        fill_dy(dy[i], i);
        snprintf(name, sizeof(name), "dy%d", i);
        h->dy[i] = ot__graph_value(node->graph, name);
        if (h->dy[i] == NULL)
            return false;
        ot__value_set(h->dy[i], h->dtype,
                      node->outputs[i]->has_shape ? &node->outputs[i]->shape : NULL);
    }
    return true;
}

bool host_evaluate(host *h, const inputs *in, ot_tensor *const *dy, const rounding *rounded,
                   results *r)
{
    const ot_graph *graph = h->one.model->graph;

    if (graph->n_nodes > 500) {
        fail("the gradient has %d nodes", graph->n_nodes);
        return false;
    }
    for (int i = 0; i < in->n; i++)
        if (in->tensor[i] != NULL && h->one.node->inputs[i] != NULL) // raising may move constants
            ot__map_put(&r->tensors, h->one.node->inputs[i]->name, in->tensor[i]);
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (dy[i] != NULL)
            ot__map_put(&r->tensors, h->dy[i]->name, dy[i]);
    for (int i = 0; i < graph->n_nodes; i++)
        if (!evaluate_node(r, graph->nodes[i], rounded))
            return false;
    return true;
}

static const char *const extent_names[] = {"static", "symbolic batch", "symbolic image",
                                           "symbolic"};

// The gradient of the inputs `want` (or all, or none) from outputs `only` (or all).
bool host_make(host *h, const ot_op_test *test, const ot_op_case *c, const inputs *in,
               const one_node *concrete, extent_kind extents, int want, int only, ot_tensor **dy)
{
    const ot__grad_host callbacks = {h, host_dy, host_wants, host_set_dx};

    if (one_node_make(test, c, in, extents, &h->one) != OT_OK) {
        fail("with %s dim sizes: %s", extent_names[extents], ot_error_message());
        return false;
    }
    for (int i = 0; i < in->n; i++)
        h->wants[i] = (want == ALL || want == i) && is_float_input(concrete->node, in, i, h->dtype);
    if (!make_dy(h, concrete, only, dy))
        return false;
    if ((ot__op_is_composed(h->one.node->op) ? host_compose(h, in->n)
                                             : ot__op_grad(h->one.node, &callbacks)) == OT_OK)
        return true;
    fail("gradient rule with %s dim sizes: %s", extent_names[extents], ot_error_message());
    return false;
}

// What the operator is composed of for these extents, against what it is for numbers.
static void check_composed_outputs(const host *h, const one_node *concrete, const inputs *in,
                                   results *r)
{
    ot_tensor *expected[OT_CASE_MAX_PORTS] = {NULL};

    if (!ot__op_is_composed(concrete->node->op))
        return;
    if (run_reference(concrete, in, expected) != OT_OK)
        fail("forward: %s", ot_error_message());
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        if (expected[i] != NULL)
            tensors_agree(result_of(r, h->y[i]), expected[i], expected[i]->dtype, 1,
                          "output with other extents");
        ot_tensor_destroy(expected[i]);
    }
}

// No way leads from the input to the outputs: then none of its elements changes them.
static void check_constant(forward *f, const inputs *in, ot_tensor *const *dy, int i,
                           const char *what)
{
    ot_tensor *zeros = NULL;

    if (ot_tensor_create(OT_F64, &in->tensor[i]->shape, &zeros) == OT_OK) {
        memset(zeros->data, 0, zeros->n_bytes);
        compare_input(f, in, dy, zeros, i, what);
    }
    ot_tensor_destroy(zeros);
}

// Writing the operators anew for every difference takes most of a test's time.
static bool forward_make(forward *f, const ot_op_test *test, const ot_op_case *c, const inputs *in,
                         int only)
{
    ot_tensor *dy[OT_CASE_MAX_PORTS] = {NULL};
    const bool done = host_make(&f->composed, test, c, in, f->one, STATIC_EXTENTS, NONE, only, dy);

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        ot_tensor_destroy(dy[i]);
    return done;
}

static void check_one(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                      const one_node *concrete, extent_kind extents, int want, int only)
{
    host h = {.dtype = OT_F64};
    forward f = {concrete, {.dtype = OT_F64}};
    ot_tensor *dy[OT_CASE_MAX_PORTS] = {NULL};
    results *r = calloc(1, sizeof(*r));

    if (!host_make(&h, test, c, in, concrete, extents, want, only, dy) ||
        !host_evaluate(&h, in, dy, NULL, r))
        goto done;
    if (ot__op_is_composed(concrete->node->op) && !forward_make(&f, test, c, in, only))
        goto done;
    check_composed_outputs(&h, concrete, in, r);
    for (int i = 0; i < in->n; i++) {
        const ot_tensor *dx = h.dx[i] == NULL ? NULL : result_of(r, h.dx[i]);

        if (h.is_constant[i])
            check_constant(&f, in, dy, i, extent_names[extents]);
        else if (!h.wants[i] && h.dx[i] != NULL)
            fail("the rule sets a gradient of input %d that is not wanted", i);
        else if (h.wants[i] && dx == NULL)
            fail("no gradient of input %d (%s dim sizes)", i, extent_names[extents]);
        else if (h.wants[i])
            compare_input(&f, in, dy, dx, i, extent_names[extents]);
    }
done:
    results_deinit(r);
    free(r);
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        ot_tensor_destroy(dy[i]);
    one_node_deinit(&f.composed.one);
    one_node_deinit(&h.one);
}

static int count_float(const one_node *one, const inputs *in, bool of_inputs)
{
    int n = 0;

    for (int i = 0; of_inputs && i < in->n; i++)
        n += is_float_input(one->node, in, i, OT_F64);
    for (int i = 0; !of_inputs && i < one->node->n_outputs; i++)
        n += is_float_output(one->node, i, OT_F64);
    return n;
}

void check_gradients(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                     extent_kind extents)
{
    inputs wide = {0};
    one_node concrete = {0};
    int n_in, n_out;
    const ot_status st = one_node_make(test, c, in, STATIC_EXTENTS, &concrete);
    const ot_op_def *op = st == OT_OK ? concrete.node->op : NULL;

    one_node_deinit(&concrete); // but not its records
    if (op == NULL || (op->grad == NULL && !ot__op_is_composed(op)) ||
        inputs_to_f64(in, concrete.given, &wide) != OT_OK ||
        one_node_make(test, c, &wide, STATIC_EXTENTS, &concrete) != OT_OK)
        goto done;
    n_in = count_float(&concrete, &wide, true);
    n_out = count_float(&concrete, &wide, false);
    if (n_in == 0 || n_out == 0)
        goto done;
    check_one(test, c, &wide, &concrete, extents, ALL, ALL);
    if (extents != STATIC_EXTENTS)
        goto done;
    for (int i = 0; n_in > 1 && i < wide.n; i++)
        if (is_float_input(concrete.node, &wide, i, OT_F64))
            check_one(test, c, &wide, &concrete, extents, i, ALL);
    for (int i = 0; n_out > 1 && i < concrete.node->n_outputs; i++)
        if (is_float_output(concrete.node, i, OT_F64))
            check_one(test, c, &wide, &concrete, extents, ALL, i);
done:
    one_node_deinit(&concrete);
    inputs_deinit(&wide);
}
