// SPDX-License-Identifier: Apache-2.0
// Activations that an exporter has written in other operators become one operator each, whose
// gradient needs x alone: x * (1 + erf(x / sqrt(2))) / 2, x * (1 + tanh(sqrt(2 / pi) * (x +
// 0.044715
// * x^3))) / 2 and x * sigmoid(alpha * x), whatever the order of the factors.
#include <math.h>
#include <string.h>

#include "passes/region.h"

enum {
    MAX_POWER = 3,
    MAX_TERMS = 16, // nodes of a polynomial
    MAX_FACTORS = 3,
    MAX_CANDIDATES = 8,
};

static const double nearly = 1e-6; // of numbers that exporters round to f32

typedef struct activation {
    const char *domain, *op_type, *gradient; // of ai.onnx or com.microsoft
    ot_value *x;
    double alpha;
    bool has_alpha;
} activation;

// c[0] + c[1] * x + ...
typedef struct polynomial {
    double c[MAX_POWER + 1];
} polynomial;

typedef struct reading {
    const ot__uses *uses;
    ot__region *region;
    const ot_value *x;
    int n_nodes;
} reading;

// ---- arguments ----

static bool multiply_polynomials(const polynomial *a, const polynomial *b, polynomial *y)
{
    *y = (polynomial){{0}};
    for (int i = 0; i <= MAX_POWER; i++)
        for (int j = 0; j <= MAX_POWER; j++) {
            const double term = a->c[i] * b->c[j];

            if (term != 0.0 && i + j > MAX_POWER)
                return false;
            if (term != 0.0)
                y->c[i + j] += term;
        }
    return true;
}

static bool read_polynomial(reading *r, const ot_value *value, polynomial *y);

static bool read_power(reading *r, const ot_node *node, polynomial *y)
{
    polynomial x;
    double power;

    if (!ot__match_number(node->inputs[1], &power) || power < 1.0 || power > MAX_POWER ||
        power != floor(power) || !read_polynomial(r, node->inputs[0], &x))
        return false;
    *y = x;
    for (int k = 1; k < (int)power; k++) {
        const polynomial before = *y;

        if (!multiply_polynomials(&before, &x, y))
            return false;
    }
    return true;
}

static bool read_pair(reading *r, const ot_node *node, polynomial *y)
{
    polynomial a, b;

    if (!read_polynomial(r, node->inputs[0], &a) || !read_polynomial(r, node->inputs[1], &b))
        return false;
    if (ot__node_is(node, "", "Mul"))
        return multiply_polynomials(&a, &b, y);
    if (ot__node_is(node, "", "Add")) {
        for (int k = 0; k <= MAX_POWER; k++)
            y->c[k] = a.c[k] + b.c[k];
        return true;
    }
    for (int k = 1; k <= MAX_POWER; k++)
        if (b.c[k] != 0.0)
            return false;
    for (int k = 0; k <= MAX_POWER; k++)
        y->c[k] = a.c[k] / b.c[0];
    return ot__node_is(node, "", "Div") && b.c[0] != 0.0;
}

// `value` as a polynomial of x; its nodes belong to the region.
static bool read_polynomial(reading *r, const ot_value *value, polynomial *y)
{
    ot_node *node = value->producer;

    *y = (polynomial){{0}};
    if (value == r->x) {
        y->c[1] = 1.0;
        return true;
    }
    if (ot__match_number(value, &y->c[0]))
        return true;
    if (node == NULL || node->n_inputs != 2 || r->n_nodes++ == MAX_TERMS ||
        !(ot__node_is(node, "", "Pow") || ot__node_is(node, "", "Mul") ||
          ot__node_is(node, "", "Add") || ot__node_is(node, "", "Div")) ||
        !ot__region_add(&r->uses->numbers, r->region, node))
        return false;
    return ot__node_is(node, "", "Pow") ? read_power(r, node, y) : read_pair(r, node, y);
}

static bool is_nearly(double a, double b)
{
    return fabs(a - b) <= nearly * fabs(b);
}

// ---- factors ----

// How often `value` has x, and how often a half of it, as factors; nodes go into the region. False:
// it has others.
static bool read_factor(reading *r, const ot_value *value, int *n_x, double *number)
{
    polynomial p;

    if (!read_polynomial(r, value, &p) || p.c[2] != 0.0 || p.c[3] != 0.0 ||
        (p.c[0] != 0.0 && p.c[1] != 0.0))
        return false;
    if (p.c[1] != 0.0)
        ++*n_x;
    *number *= p.c[1] != 0.0 ? p.c[1] : p.c[0];
    return true;
}

// From `value` on, what multiplies it until x is there once and the numbers make `wanted`; NULL:
// they do not.
static ot_value *read_factors(reading *r, ot_value *value, double wanted)
{
    double number = 1.0;
    int n_x = 0;

    for (int k = 0; k < MAX_FACTORS && !(n_x == 1 && is_nearly(number, wanted)); k++) {
        ot_node *next = NULL;
        const ot__use *use;

        for (int u = 0; next == NULL && (use = ot__region_reader(r->uses, value, u)) != NULL; u++) {
            const ot_value *other;
            const ot__region before = *r->region;
            double factor = number, divisor = 1.0;
            int n = n_x;

            if (use->i_input < 0 || use->node->n_inputs != 2)
                continue;
            other = use->node->inputs[1 - use->i_input];
            r->n_nodes = 0;
            if ((ot__node_is(use->node, "", "Mul") && other != value &&
                 read_factor(r, other, &n, &factor)) ||
                (ot__node_is(use->node, "", "Div") && use->i_input == 0 &&
                 ot__match_number(other, &divisor) && divisor != 0.0)) {
                next = use->node;
                n_x = n;
                number = factor / divisor;
            } else {
                *r->region = before;
            }
        }
        if (next == NULL || !ot__region_add(&r->uses->numbers, r->region, next))
            return NULL;
        value = next->outputs[0];
    }
    return n_x == 1 && is_nearly(number, wanted) ? value : NULL;
}

static ot_node *plus_one(const ot__uses *uses, const ot_value *value)
{
    const ot__use *use;
    double one;

    for (int u = 0; (use = ot__region_reader(uses, value, u)) != NULL; u++) {
        if (ot__node_is(use->node, "", "Add") && use->i_input >= 0 &&
            ot__match_number(use->node->inputs[1 - use->i_input], &one) && one == 1.0)
            return use->node;
    }
    return NULL;
}

// ---- activations ----

typedef struct candidates {
    ot_value *x[MAX_CANDIDATES];
    int n;
} candidates;

// What the argument of a function may be a polynomial of, itself first.
static void list_arguments(ot_value *value, candidates *c)
{
    const ot_node *node = value->producer;
    double number;

    for (int k = 0; k < c->n; k++)
        if (c->x[k] == value)
            return;
    if (c->n == MAX_CANDIDATES || ot__match_number(value, &number))
        return;
    c->x[c->n++] = value;
    if (node == NULL || node->n_inputs != 2 ||
        !(ot__node_is(node, "", "Mul") || ot__node_is(node, "", "Div") ||
          ot__node_is(node, "", "Pow") || ot__node_is(node, "", "Add")))
        return;
    list_arguments(node->inputs[0], c);
    list_arguments(node->inputs[1], c);
}

static bool take_gelu(reading *r, ot_node *node, activation *a, double linear, double cubic)
{
    ot_node *sum = plus_one(r->uses, node->outputs[0]);
    polynomial p;

    if (sum == NULL || !read_polynomial(r, node->inputs[0], &p) || p.c[0] != 0.0 || p.c[2] != 0.0 ||
        !is_nearly(p.c[1], linear) || !is_nearly(p.c[3], cubic) ||
        !ot__region_add(&r->uses->numbers, r->region, node) ||
        !ot__region_add(&r->uses->numbers, r->region, sum))
        return false;
    r->region->output = read_factors(r, sum->outputs[0], 0.5);
    a->domain = OT__MS;
    a->op_type = cubic == 0.0 ? "Gelu" : "FastGelu";
    a->gradient = cubic == 0.0 ? "GeluGrad" : "FastGeluGrad";
    return r->region->output != NULL;
}

static bool take_swish(reading *r, ot_node *node, activation *a)
{
    polynomial p;

    if (!read_polynomial(r, node->inputs[0], &p) || p.c[0] != 0.0 || p.c[2] != 0.0 ||
        p.c[3] != 0.0 || p.c[1] == 0.0 || !ot__region_keeps(a->x, p.c[1]) ||
        !ot__region_add(&r->uses->numbers, r->region, node))
        return false;
    r->region->output = read_factors(r, node->outputs[0], 1.0);
    a->domain = OT__MS;
    a->op_type = "QuickGelu";
    a->gradient = "QuickGeluGrad";
    a->alpha = p.c[1];
    a->has_alpha = true;
    return r->region->output != NULL;
}

static bool take_activation_of(reading *r, ot_node *node, activation *a)
{
    static const double half_root = 0.70710678118654752440; // sqrt(1 / 2)
    static const double root = 0.79788456080286535588;      // sqrt(2 / pi)

    r->x = a->x;
    r->n_nodes = 0;
    r->region->n_nodes = 0;
    if (ot__node_is(node, "", "Erf"))
        return take_gelu(r, node, a, half_root, 0.0);
    if (ot__node_is(node, "", "Tanh"))
        return take_gelu(r, node, a, root, root * 0.044715);
    return take_swish(r, node, a);
}

// ---- replacing ----

static ot_status write_activation(ot__fusing *f, const ot__region *region)
{
    const activation *a = region->what;
    ot__builder b = {.graph = f->graph};
    ot_value *y = region->output, *x = a->x;
    ot_node *node = ot__op_build(&b, a->domain, a->op_type, y->name, &x, 1, &y, 1);

    if (a->has_alpha)
        ot__build_float(&b, node, "alpha", a->alpha);
    ot__op_settle(&b, node);
    if (!ot__region_has_gradients(region) || b.status != OT_OK)
        return b.status;
    node = ot__op_build(&b, a->domain, a->gradient, y->name, (ot_value *[]){region->dy, x}, 2,
                        (ot_value *const *)region->gradients, 1);
    if (a->has_alpha)
        ot__build_float(&b, node, "alpha", a->alpha);
    ot__op_settle(&b, node);
    return b.status;
}

ot_status ot__match_activation(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out)
{
    ot__region *region;
    activation *a;
    candidates c = {.n = 0};
    reading r;

    if (!(ot__node_is(node, "", "Erf") || ot__node_is(node, "", "Tanh") ||
          ot__node_is(node, "", "Sigmoid")) ||
        !node->inputs[0]->has_shape || ot__uses_count(uses, node->outputs[0]) == 0)
        return OT_OK;
    region = ot__arena_alloc(arena, sizeof *region);
    a = ot__arena_alloc(arena, sizeof *a);
    OT_TRY(ot__made(region != NULL && a != NULL));
    *region = (ot__region){.write = write_activation, .what = a};
    *a = (activation){0};
    r = (reading){.uses = uses, .region = region};
    list_arguments(node->inputs[0], &c);
    for (int k = 0; k < c.n; k++) {
        a->x = c.x[k];
        if (!take_activation_of(&r, node, a))
            continue;
        region->inputs[0] = a->x;
        region->n_inputs = 1;
        *out = region;
        break;
    }
    return OT_OK;
}
