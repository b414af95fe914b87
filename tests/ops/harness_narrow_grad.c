// SPDX-License-Identifier: Apache-2.0
// The gradient of a case in mixed precision, against the same graph in f64 on inputs that the
// narrow type holds.
//
// Bound. In mixed precision every value of the graph is rounded to the type, which moves it by at
// most `unit` times its size, and below the normal numbers by `smallest`. What this does to a
// gradient is measured in f64 as in harness_bound.c: SAMPLES times the output of each node is moved
// so much up or down, element by element, and the largest change of the gradient, times SPREAD,
// bounds the error. Arithmetic in f32 between the roundings counts as `ARITHMETIC` roundings of
// f32. Operators that move or choose elements round nothing.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "passes/passes.h"

enum { SAMPLES = 8, MAX_SHOWN = 1024, MAX_ELEMENTS = 1000 };
static const double SPREAD = 4.0, ARITHMETIC = 0x1p-20, CLEAR = 0.5;

static const struct {
    ot_dtype dtype;
    double unit, smallest, largest;
} types[] = {{OT_BF16, 0x1p-8, 1.2e-38, 3.3e38}, {OT_F16, 0x1p-11, 0x1p-25, 65504}};
enum { N_TYPES = sizeof types / sizeof types[0] };

// ---- the records that were shown ----

static struct {
    const ot_op_def *op;
    unsigned types;
} shown[MAX_SHOWN];
static int n_shown;

static void show(const ot_op_def *op, int type)
{
    int i = 0;

    while (i < n_shown && shown[i].op != op)
        i++;
    if (i == MAX_SHOWN) {
        fail("more than %d records", MAX_SHOWN);
        return;
    }
    shown[i].op = op;
    shown[i].types |= 1u << type;
    n_shown = OT_MAX(n_shown, i + 1);
}

bool was_shown_narrow(const ot_op_def *op)
{
    for (int i = 0; i < n_shown; i++)
        if (shown[i].op == op)
            return shown[i].types == (1u << N_TYPES) - 1;
    return false;
}

// ---- roundings in f64 ----

static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return hash;
}

// Numbers that the type holds are not rounded.
static bool is_exact(double x, ot_dtype narrow)
{
    float back = (float)x;
    uint16_t bits;

    (void)ot__convert(&bits, narrow, &back, OT_F32, 1);
    (void)ot__convert(&back, OT_F32, &bits, narrow, 1);
    return (double)back == x;
}

static void move_output(const rounding *r, const ot_node *node, int i_output, ot_tensor *y)
{
    const ot__rng_key key = {r->sample, hash_of(node->outputs[i_output]->name)};

    if (y->dtype != OT_F64 || ot_tensor_count(y) == 1 || only_moves(node->op))
        return;
    for (int64_t k = 0, n = ot_tensor_count(y); k < n; k++) {
        const double u = ot__rng_uniform(key, (uint64_t)k) < 0.5 ? -1 : 1;
        double *at = (double *)y->data + k;

        if (!is_exact(*at, r->narrow))
            *at += u * (r->relative * fabs(*at) + r->absolute);
    }
}

// The gradients of all inputs; those of values that no node makes stay NULL.
typedef struct gradients {
    ot_tensor *of[OT_CASE_MAX_PORTS];
} gradients;

static void gradients_deinit(gradients *g)
{
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        ot_tensor_destroy(g->of[i]);
}

static bool evaluate_gradients(host *h, const inputs *in, ot_tensor *const *dy,
                               const rounding *rounded, gradients *out)
{
    results *r = calloc(1, sizeof *r);
    bool done = r != NULL && host_evaluate(h, in, dy, rounded, r);

    for (int i = 0; done && i < in->n; i++)
        if (h->dx[i] != NULL && h->dx[i]->producer != NULL)
            done = ot_tensor_clone(result_of(r, h->dx[i]), &out->of[i]) == OT_OK;
    if (r != NULL)
        results_deinit(r);
    free(r);
    return done;
}

// ---- comparing ----

typedef struct problem {
    const ot_op_def *op;
    int type;
    bool is_zero; // OT_CASE_ZERO
    inputs wide;
    ot_tensor *dy_wide[OT_CASE_MAX_PORTS];
    host exact;
    gradients want, moved[SAMPLES];
} problem;

static double largest_of(const ot_tensor *t)
{
    double largest = 0;

    for (int64_t k = 0, n = ot_tensor_count(t); k < n; k++)
        if (isfinite(((const double *)t->data)[k]))
            largest = fmax(largest, fabs(((const double *)t->data)[k]));
    return largest;
}

static double bound_of(const problem *p, int i, int64_t k, double largest)
{
    const double want = ((const double *)p->want.of[i]->data)[k];
    double change = 0;

    for (int s = 0; s < SAMPLES; s++) {
        const double moved = ((const double *)p->moved[s].of[i]->data)[k];

        change = isnan(moved) ? INFINITY : fmax(change, fabs(moved - want));
    }
    return SPREAD * change + ARITHMETIC * largest + types[p->type].unit * fabs(want) +
           types[p->type].smallest;
}

static bool compare_gradient(const problem *p, const ot_tensor *found, int i)
{
    const ot_tensor *want = p->want.of[i];
    const double largest = largest_of(want);
    bool is_clear = p->is_zero && largest == 0 && ot_tensor_count(want) > 0, is_near = true;
    double *values;

    if (!ot__shape_equal(&found->shape, &want->shape)) {
        fail("in %s: the gradient of input %d has another shape",
             ot_dtype_name(types[p->type].dtype), i);
        return false;
    }
    values = values_of(found);
    for (int64_t k = 0, n = ot_tensor_count(want); k < n && is_near; k++) {
        const double w = ((const double *)want->data)[k], bound = bound_of(p, i, k, largest);
        const double f = values[k];

        if (!isfinite(w) || fabs(w) + bound > types[p->type].largest)
            continue;
        is_clear = is_clear || bound < CLEAR * fabs(w);
        if (f == w || fabs(f - w) <= bound)
            continue;
        fail("in %s: the gradient of input %d, element %" PRId64
             ", is %.9g, in f64 %.9g, off by %.3g where roundings allow %.3g",
             ot_dtype_name(types[p->type].dtype), i, k, f, w, fabs(f - w), bound);
        is_near = false;
    }
    free(values);
    return is_clear && is_near;
}

// The graph in f32, lowered and planned as a session does it.
static void check_lowered(problem *p, host *f32, const inputs *in, ot_tensor *const *dy)
{
    ot_graph *graph = f32->one.model->graph;
    const ot__plan_options options = {.n_threads = 2};
    // Of nodes of a branch the condition is asked for.
    const ot__answers condition = {.tensors = (const ot_tensor *const *)in->tensor, .n = 1};
    ot_shape shapes[2 * OT_CASE_MAX_PORTS];
    const char *question;
    ot_tensor *found[OT_CASE_MAX_PORTS] = {NULL};
    int of_output[OT_CASE_MAX_PORTS], n = 0;
    ot_status st = OT_OK;

    for (int i = 0; st == OT_OK && i < OT_CASE_MAX_PORTS; i++)
        if (dy[i] != NULL && !f32->dy[i]->is_input)
            st = ot__made(ot__graph_add_input(graph, f32->dy[i]));
    for (int i = 0; st == OT_OK && i < in->n; i++)
        if (f32->dx[i] != NULL && f32->dx[i]->producer != NULL && !f32->dx[i]->is_output) {
            of_output[n++] = i;
            st = ot__made(ot__graph_add_output(graph, f32->dx[i]));
        }
    for (int i = 0; st == OT_OK && i < graph->n_inputs; i++)
        shapes[i] = graph->inputs[i]->shape;
    OT_THEN(st,
            ot__pass_specialize_by(f32->one.model, shapes, graph->n_inputs, &condition, &question));
    if (st == OT_OK && question != NULL)
        st = ot__error(OT_ERR_INTERNAL, "%s", question);
    OT_THEN(st, ot__pass_precision(f32->one.model, NULL, types[p->type].dtype));
    OT_THEN(st, run_graph(graph, in, dy, &options, found));
    if (st != OT_OK)
        fail("gradients in %s: %s", ot_dtype_name(types[p->type].dtype), ot_error_message());
    for (int o = 0; st == OT_OK && o < n; o++)
        if (compare_gradient(p, found[o], of_output[o]))
            show(p->op, p->type);
    for (int o = 0; o < n; o++)
        ot_tensor_destroy(found[o]);
}

static bool round_dy(ot_tensor *const *dy, ot_dtype narrow, ot_tensor **wide)
{
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        if (dy[i] == NULL)
            continue;
        if (ot_tensor_create(OT_F64, &dy[i]->shape, &wide[i]) != OT_OK)
            return false;
        for (int64_t k = 0, n = ot_tensor_count(dy[i]); k < n; k++) {
            float *at = (float *)dy[i]->data + k;
            uint16_t bits;

            (void)ot__convert(&bits, narrow, at, OT_F32, 1);
            (void)ot__convert(at, OT_F32, &bits, narrow, 1);
            ((double *)wide[i]->data)[k] = (double)*at;
        }
    }
    return true;
}

static void check_type(const ot_op_test *test, const ot_op_case *c, const inputs *given, int type)
{
    problem p = {
        .type = type, .is_zero = (c->flags & OT_CASE_ZERO) != 0, .exact = {.dtype = OT_F64}};
    host f32 = {.dtype = OT_F32};
    ot_tensor *dy[OT_CASE_MAX_PORTS] = {NULL}, *unused[OT_CASE_MAX_PORTS] = {NULL};
    one_node narrow = {0}, wide = {0};
    inputs in = {0};
    bool done = inputs_round(given, types[type].dtype, &in) &&
                one_node_make(test, c, &in, STATIC_EXTENTS, &narrow) == OT_OK;

    p.op = done ? narrow.node->op : NULL;
    done = done && inputs_to_f64(&in, narrow.given, &p.wide) == OT_OK &&
           one_node_make(test, c, &p.wide, STATIC_EXTENTS, &wide) == OT_OK &&
           host_make(&f32, test, c, &in, &narrow, STATIC_EXTENTS, ALL, ALL, dy) &&
           host_make(&p.exact, test, c, &p.wide, &wide, STATIC_EXTENTS, ALL, ALL, unused) &&
           round_dy(dy, types[type].dtype, p.dy_wide) &&
           evaluate_gradients(&p.exact, &p.wide, p.dy_wide, NULL, &p.want);
    for (int s = 0; done && s < SAMPLES; s++) {
        const rounding moved = {move_output, types[type].dtype, types[type].unit,
                                types[type].smallest, (uint64_t)s};

        done = evaluate_gradients(&p.exact, &p.wide, p.dy_wide, &moved, &p.moved[s]);
    }
    if (done)
        check_lowered(&p, &f32, &in, dy);
    else
        fail("gradients in %s: %s", ot_dtype_name(types[type].dtype), ot_error_message());
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        ot_tensor_destroy(dy[i]);
        ot_tensor_destroy(unused[i]);
        ot_tensor_destroy(p.dy_wide[i]);
    }
    gradients_deinit(&p.want);
    for (int s = 0; s < SAMPLES; s++)
        gradients_deinit(&p.moved[s]);
    one_node_deinit(&f32.one);
    one_node_deinit(&p.exact.one);
    one_node_deinit(&narrow);
    one_node_deinit(&wide);
    inputs_deinit(&p.wide);
    inputs_deinit(&in);
}

static bool has_gradient(const ot_op_test *test, const ot_op_case *c, const inputs *in)
{
    one_node one = {0};
    bool found = one_node_make(test, c, in, STATIC_EXTENTS, &one) == OT_OK &&
                 (one.node->op->grad != NULL || ot__op_is_composed(one.node->op));
    bool has_x = false, has_y = false;
    int64_t n = 0;

    for (int i = 0; found && i < in->n; i++)
        n += in->tensor[i] != NULL ? ot_tensor_count(in->tensor[i]) : 0;
    for (int i = 0; found && i < in->n; i++) {
        const ot_port *port = ot__op_input_port(one.node->op, i);

        has_x = has_x ||
                (in->tensor[i] != NULL && in->tensor[i]->dtype == OT_F32 && !in->spec[i].is_const &&
                 port != NULL && (port->flags & (OT_PORT_NO_GRAD | OT_PORT_STATE)) == 0);
    }
    for (int i = 0; found && i < one.node->n_outputs; i++)
        has_y = has_y || (one.node->outputs[i] != NULL && one.node->outputs[i]->dtype == OT_F32);
    one_node_deinit(&one);
    return found && has_x && has_y && n <= MAX_ELEMENTS;
}

void check_narrow_gradients(const ot_op_test *test, const ot_op_case *c, const inputs *in)
{
    for (int type = 0; has_gradient(test, c, in) && type < N_TYPES; type++)
        check_type(test, c, in, type);
}
