// SPDX-License-Identifier: Apache-2.0
// Attention, around its Softmax: upwards the mask, the scale and the product of queries and keys,
// with what puts these in order; downwards the product with the values, and the order of its
// result.
#include <math.h>
#include <string.h>

#include "passes/attention.h"
#include "passes/view.h"

enum {
    MAX_WAY = 24,   // nodes between a source and a product
    MAX_SCORES = 8, // and between that and the softmax
};

static const double masked = -1e9; // numbers at most this take a score out of a softmax

static bool take_node(ot__attention_match *m, ot_node *node)
{
    return ot__region_add(&m->uses->numbers, m->region, node);
}

// A product of matrices without bias, and what it says of its operands.
typedef struct product {
    ot_node *node;
    bool is_a_transposed, is_b_transposed;
    double alpha;
} product;

static bool is_plain_product(ot_node *node, product *p)
{
    *p = (product){.node = node, .alpha = 1.0};
    if (ot__node_is(node, "", "MatMul"))
        return true;
    if (!ot__node_is(node, OT__MS, "FusedMatMul") || ot__has_batches_inside(node))
        return false;
    p->is_a_transposed = ot_attr_int(node, "transA") != 0;
    p->is_b_transposed = ot_attr_int(node, "transB") != 0;
    p->alpha = (double)ot_attr_float(node, "alpha");
    return true;
}

// ---- operands of products ----

// A node that multiplies by a number: false, or the number.
static bool scales_by(const ot_node *node, ot_value **x, double *factor)
{
    double number;

    if (node == NULL || node->n_inputs != 2)
        return false;
    if (ot__node_is(node, "", "Div") && ot__match_number(node->inputs[1], &number) &&
        number != 0.0) {
        *x = node->inputs[0];
        *factor = 1.0 / number;
        return true;
    }
    if (!ot__node_is(node, "", "Mul"))
        return false;
    for (int i = 0; i < 2; i++)
        if (ot__match_number(node->inputs[i], factor)) {
            *x = node->inputs[1 - i];
            return true;
        }
    return false;
}

// Where operand `operand` of a product comes from: by nodes that order elements or multiply by a
// number, as far up as that is a view. False: not at all.
static bool trace(ot__attention_match *m, int which, ot_value *operand)
{
    ot_node *way[MAX_WAY];
    ot_value *value = operand, *given[MAX_WAY + 1];
    double factor;
    int n = 0;

    given[0] = operand;
    while (n < MAX_WAY && value->producer != NULL && !value->is_output) {
        ot_node *node = value->producer;

        if (which != OT_ATTENTION_V && scales_by(node, &given[n + 1], &factor))
            value = given[n + 1];
        else if (!m->is_short && ot__match_view(node))
            value = given[n + 1] = node->inputs[0];
        else
            break;
        way[n++] = node;
    }
    for (int first = n; first >= 0; first--) { // the farthest source that is one
        int k = first;

        if (!ot__view_of(given[first], &m->views[which]))
            continue;
        for (; k > 0; k--)
            if (!scales_by(way[k - 1], &value, &factor) &&
                !ot__view_apply(way[k - 1], given[k - 1], &m->views[which]))
                break;
        if (k > 0)
            continue;
        for (; k < first; k++) {
            if (scales_by(way[k], &value, &factor))
                m->a->scale *= factor;
            if (!take_node(m, way[k]))
                return false;
        }
        m->has_view[which] = true;
        return operand->shape.ndim >= 2;
    }
    return false;
}

// ---- scores ----

static bool is_fixed(const ot_value *value)
{
    return value->constant != NULL && !value->is_input;
}

// Whether the constant is added to scores to leave those on and below the diagonal, or is true
// there (`kept`) or above it.
static bool is_causal_mask(const ot_value *mask, bool is_bool, bool kept)
{
    const ot_shape *shape = &mask->shape;
    const int ndim = shape->ndim;
    int64_t rows, columns;

    if (!is_fixed(mask) || ndim < 2 ||
        ot_tensor_count(mask->constant) != shape->dim[ndim - 2] * shape->dim[ndim - 1])
        return false;
    rows = shape->dim[ndim - 2];
    columns = shape->dim[ndim - 1];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double x = ot__tensor_get_f64(mask->constant, i * columns + j);

            if (is_bool ? (x != 0.0) != ((j <= i) == kept) : j <= i ? x != 0.0 : x > masked)
                return false;
        }
    return true;
}

// What is added to `scores`, or decides which of them stay; every mask but the first is too many.
static bool take_mask(ot__attention_match *m, ot_value *mask, const ot_value *scores, bool is_bool,
                      bool kept)
{
    const int ndim = scores->shape.ndim;
    ot_shape shape = {.ndim = ndim};

    if (m->a->mask != NULL || m->a->is_causal || !mask->has_shape || mask->shape.ndim > ndim ||
        !ot__shape_is_static(&mask->shape))
        return false;
    if (ndim >= 2 && mask->shape.ndim >= 2 && (!is_bool || m->a->fill <= masked) &&
        mask->shape.dim[mask->shape.ndim - 2] == scores->shape.dim[ndim - 2] &&
        mask->shape.dim[mask->shape.ndim - 1] == scores->shape.dim[ndim - 1] &&
        is_causal_mask(mask, is_bool, kept)) {
        m->a->is_causal = true;
        return true;
    }
    m->a->mask = mask;
    m->a->is_inverted = is_bool && !kept;
    if (!ot__view_of(mask, &m->views[OT_ATTENTION_MASK]))
        return false;
    for (int k = 0; k < ndim; k++)
        shape.dim[k] =
            k < ndim - mask->shape.ndim ? 1 : mask->shape.dim[k - ndim + mask->shape.ndim];
    if (!ot__view_reshape(&m->views[OT_ATTENTION_MASK], &shape))
        return false;
    for (int k = 0; k < ndim; k++) // stretched axes have atoms too, of stride 0
        if (shape.dim[k] == 1 && scores->shape.dim[k] > 1) {
            ot__view *view = &m->views[OT_ATTENTION_MASK];
            int at = 0;

            if (view->n == OT_VIEW_ATOMS)
                return false;
            while (at < view->n && view->atoms[at].axis < k)
                at++;
            memmove(&view->atoms[at + 1], &view->atoms[at],
                    (size_t)(view->n - at) * sizeof *view->atoms);
            view->atoms[at] = (ot__atom){scores->shape.dim[k], 0, k};
            view->n++;
        }
    m->has_view[OT_ATTENTION_MASK] = true;
    return true;
}

static bool take_scores(ot__attention_match *m, ot_value *scores);

// Whether `value` comes from a product by way of what scores go through.
static bool leads_to_product(const ot_value *value, int n_nodes)
{
    product p;
    ot_node *node = value->producer;
    ot_value *x;
    double factor;

    if (node == NULL || n_nodes == MAX_SCORES)
        return false;
    if (is_plain_product(node, &p))
        return true;
    if (scales_by(node, &x, &factor))
        return leads_to_product(x, n_nodes + 1);
    if (ot__node_is(node, "", "Where"))
        return leads_to_product(node->inputs[1], n_nodes + 1) ||
               leads_to_product(node->inputs[2], n_nodes + 1);
    return (node->op->flags & OT_OP_VIEW) != 0 && leads_to_product(node->inputs[0], n_nodes + 1);
}

// scores + mask, in either order.
static bool take_sum(ot__attention_match *m, ot_node *add)
{
    const int i = leads_to_product(add->inputs[0], 0) ? 0 : 1;
    ot_value *scores = add->inputs[i];

    return scores->has_shape && ot__shape_equal(&scores->shape, &add->outputs[0]->shape) &&
           take_node(m, add) && take_mask(m, add->inputs[1 - i], scores, false, true) &&
           take_scores(m, scores);
}

static bool take_where(ot__attention_match *m, ot_node *where)
{
    for (int i = 1; i <= 2; i++) {
        ot_value *scores = where->inputs[i];

        if (ot__match_number(where->inputs[3 - i], &m->a->fill))
            return ot__shape_equal(&scores->shape, &where->outputs[0]->shape) &&
                   take_node(m, where) && take_mask(m, where->inputs[0], scores, true, i == 1) &&
                   take_scores(m, scores);
    }
    return false;
}

// Exchanges the last two axes, of an operand that a product reads the other way round.
static void swap_axes(ot__view *view)
{
    const int ndim = view->shape.ndim;
    const int64_t extent = view->shape.dim[ndim - 1];

    view->shape.dim[ndim - 1] = view->shape.dim[ndim - 2];
    view->shape.dim[ndim - 2] = extent;
    for (int k = 0; k < view->n; k++)
        if (view->atoms[k].axis >= ndim - 2)
            view->atoms[k].axis = 2 * ndim - 3 - view->atoms[k].axis;
}

static bool take_product(ot__attention_match *m, const product *p)
{
    ot_value *a = p->node->inputs[0], *b = p->node->inputs[1];

    if (p->is_a_transposed || !take_node(m, p->node))
        return false;
    m->a->scale *= p->alpha;
    if (a->shape.ndim != b->shape.ndim || !trace(m, OT_ATTENTION_Q, a) ||
        !trace(m, OT_ATTENTION_K, b))
        return false;
    if (!p->is_b_transposed) // a row of keys is a column of the operand
        swap_axes(&m->views[OT_ATTENTION_K]);
    return true;
}

// Upwards from what the softmax reads to the product.
static bool take_scores(ot__attention_match *m, ot_value *scores)
{
    ot_node *node = scores->producer;
    ot_value *x;
    double factor;
    product p;

    if (node == NULL || scores->is_output || !scores->has_shape || scores->shape.ndim < 2)
        return false;
    if (m->n_scores++ == MAX_SCORES)
        return false;
    if (is_plain_product(node, &p))
        return take_product(m, &p);
    if (ot__node_is(node, "", "Add"))
        return take_sum(m, node);
    if (ot__node_is(node, "", "Where"))
        return take_where(m, node);
    // A mask is added to scores that are scaled already.
    if (scales_by(node, &x, &factor) && take_node(m, node)) {
        const bool has_mask = m->a->mask != NULL || m->a->is_causal;
        const bool taken = take_scores(m, x);

        m->a->scale *= factor;
        return taken && (has_mask || (m->a->mask == NULL && !m->a->is_causal));
    }
    // Heads that are an axis of their own for the mask alone.
    return (node->op->flags & OT_OP_VIEW) != 0 && node->inputs[0]->shape.ndim >= 2 &&
           memcmp(&node->inputs[0]->shape.dim[node->inputs[0]->shape.ndim - 2],
                  &scores->shape.dim[scores->shape.ndim - 2], 2 * sizeof(int64_t)) == 0 &&
           take_node(m, node) && take_scores(m, node->inputs[0]);
}

// ---- downwards ----

// Where(IsNaN(p), 0, p), by which newer exporters make rows without a score 0.
static ot_value *take_zero_rows(ot__attention_match *m, ot_value *p)
{
    ot_node *is_nan = NULL, *where = NULL;
    const ot__use *use;
    double zero;

    for (int u = 0; (use = ot__region_reader(m->uses, p, u)) != NULL; u++)
        if (ot__node_is(use->node, "", "IsNaN"))
            is_nan = use->node;
    if (is_nan == NULL)
        return p;
    for (int u = 0; (use = ot__region_reader(m->uses, is_nan->outputs[0], u)) != NULL; u++) {
        ot_node *node = use->node;

        if (ot__node_is(node, "", "Where") && node->inputs[2] == p &&
            ot__match_number(node->inputs[1], &zero) && zero == 0.0)
            where = node;
    }
    if (where == NULL || !take_node(m, is_nan) || !take_node(m, where))
        return NULL;
    m->a->has_zero_rows = true;
    return where->outputs[0];
}

// A Dropout of the probabilities, as they are or in another shape.
static bool take_dropout(ot__attention_match *m, const ot_node *node)
{
    double training;

    if (!ot__node_is(node, "", "Dropout") || m->a->dropout != NULL || node->n_inputs != 3 ||
        node->inputs[1] == NULL || node->inputs[2] == NULL ||
        !ot__match_number(node->inputs[1], &m->a->dropout_ratio) ||
        !ot__match_number(node->inputs[2], &training) || training == 0.0 ||
        m->a->dropout_ratio < 0 || m->a->dropout_ratio >= 1 ||
        (double)(float)m->a->dropout_ratio != m->a->dropout_ratio)
        return false;
    m->a->dropout = node;
    return true;
}

// The forward node that reads probabilities: another shape of them, some of them, or the product
// with the values.
static ot_node *reader_of_probabilities(const ot__attention_match *m, const ot_value *p,
                                        product *of_values)
{
    const ot__use *use;

    *of_values = (product){0};
    for (int u = 0; (use = ot__region_reader(m->uses, p, u)) != NULL; u++) {
        if (use->i_input != 0)
            continue;
        if (is_plain_product(use->node, of_values) && !of_values->is_a_transposed)
            return use->node;
        *of_values = (product){0};
        if ((use->node->op->flags & OT_OP_VIEW) != 0 || ot__node_is(use->node, "", "Dropout"))
            return use->node;
    }
    return NULL;
}

// From what the product makes to the last value that only puts it in another order.
static ot_value *take_order(ot__attention_match *m, ot_value *y)
{
    ot__view *view = &m->views[OT_ATTENTION_Y];

    if (!ot__view_of(y, view))
        return NULL;
    while (!m->is_short && !y->is_output && ot__uses_count(m->uses, y) == 1) {
        const ot__use *use = &m->uses->use[ot__uses_first(m->uses, y)];
        ot__view next = *view;

        if (use->i_input != 0 ||
            !(ot__node_is(use->node, "", "Transpose") ||
              (use->node->op->flags & OT_OP_VIEW) != 0) ||
            !ot__view_apply(use->node, use->node->outputs[0], &next) || !take_node(m, use->node))
            break;
        *view = next;
        y = use->node->outputs[0];
    }
    m->has_view[OT_ATTENTION_Y] = true;
    return y;
}

// ---- the region ----

static void add_region_input(ot__region *region, ot_value *source)
{
    for (int i = 0; i < region->n_inputs; i++)
        if (region->inputs[i] == source)
            return;
    if (!is_fixed(source))
        region->inputs[region->n_inputs++] = source;
}

static bool take_attention(ot__attention_match *m, ot_node *softmax)
{
    ot_value *p = softmax->outputs[0];
    ot_node *node;
    product values;
    ot_shape made;

    if (!take_node(m, softmax) || !take_scores(m, softmax->inputs[0]))
        return false;
    p = take_zero_rows(m, p);
    while (p != NULL && (node = reader_of_probabilities(m, p, &values)) != NULL &&
           values.node != node) {
        if ((ot__node_is(node, "", "Dropout") && !take_dropout(m, node)) || !take_node(m, node) ||
            m->n_scores++ == MAX_SCORES)
            return false;
        p = node->outputs[0];
    }
    if (p == NULL || node == NULL || values.alpha != 1.0 || !take_node(m, node) ||
        !trace(m, OT_ATTENTION_V, node->inputs[1]))
        return false;
    if (values.is_b_transposed)
        swap_axes(&m->views[OT_ATTENTION_V]);
    made = node->outputs[0]->shape;
    if (node->inputs[0]->shape.ndim != node->inputs[1]->shape.ndim)
        return false;
    m->region->output = take_order(m, node->outputs[0]);
    if (m->region->output == NULL)
        return false;
    return ot__attention_place(m, &made) && ot__attention_sources_differ(m->a) &&
           ot__region_keeps(m->region->output, m->a->scale);
}

static ot_status match_attention(const ot__uses *uses, ot_node *softmax, bool is_short,
                                 ot__arena *arena, ot__region **out)
{
    ot__attention_match *m = ot__arena_alloc(arena, sizeof *m);
    ot__region *region = ot__arena_alloc(arena, sizeof *region);
    ot__attention *a = ot__arena_alloc(arena, sizeof *a);

    OT_TRY(ot__made(m != NULL && region != NULL && a != NULL));
    *region = (ot__region){.write = ot__write_attention, .what = a};
    *a = (ot__attention){.scale = 1.0, .fill = -INFINITY};
    *m = (ot__attention_match){.uses = uses, .region = region, .a = a, .is_short = is_short};
    if (!take_attention(m, softmax))
        return OT_OK;
    add_region_input(region, a->q_source);
    add_region_input(region, a->k_source);
    add_region_input(region, a->v_source);
    *out = region;
    return OT_OK;
}

ot_status ot__match_attention(const ot__uses *uses, ot_node *node, ot__arena *arena,
                              ot__region **out)
{
    const ot_value *x = ot__node_is(node, "", "Softmax") ? node->inputs[0] : NULL;
    int axis;

    if (x == NULL || !x->has_shape || !ot__dtype_is_float(x->dtype) ||
        !ot__axis_normalize(ot_attr_int(node, "axis"), x->shape.ndim, &axis) ||
        axis != x->shape.ndim - 1)
        return OT_OK;
    OT_TRY(match_attention(uses, node, false, arena, out));
    if (*out == NULL)
        return match_attention(uses, node, true, arena, out);
    return match_attention(uses, node, true, arena, &(*out)->otherwise);
}
