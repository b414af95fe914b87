// SPDX-License-Identifier: Apache-2.0
// Normalisations over the last axes that an exporter has written in other operators become
// LayerNormalization, (x - mean(x)) / sqrt(variance(x) + epsilon) * scale + bias, or
// SimplifiedLayerNormalization, which leaves out the mean and the bias.
#include "passes/region.h"

typedef struct layer_norm {
    ot_value *x, *scale, *bias; // the last two may be NULL
    double epsilon;
    int axis; // the first that is normalised
    bool is_centered;
} layer_norm;

// The node, of ai.onnx, that makes `value`; NULL: another makes it.
static ot_node *made_by_norm(const ot_value *value, const char *op_type)
{
    return value != NULL && ot__node_is(value->producer, "", op_type) ? value->producer : NULL;
}

static ot_value *other_operand(const ot_node *node, const ot_value *value)
{
    return node->n_inputs == 2 ? node->inputs[node->inputs[0] == value] : NULL;
}

static bool is_number(const ot_value *value, double number)
{
    double found;

    return ot__match_number(value, &found) && found == number;
}

// The first axis over which `mean` is that of `x`, whose rank it keeps; -1: those are not the last
// ones.
static int mean_axis(const ot_value *mean, const ot_value *x)
{
    int axis = x->shape.ndim;

    if (mean->shape.ndim != x->shape.ndim)
        return -1;
    while (axis > 0 && mean->shape.dim[axis - 1] == 1)
        axis--;
    while (axis < x->shape.ndim && x->shape.dim[axis] == 1)
        axis++;
    for (int k = 0; k < axis; k++)
        if (mean->shape.dim[k] != x->shape.dim[k])
            return -1;
    return axis < x->shape.ndim ? axis : -1;
}

// `square` is d * d; NULL: it is not.
static ot_value *root_of_square(const ot_value *square)
{
    const ot_node *node = made_by_norm(square, "Pow");

    if (node != NULL)
        return is_number(node->inputs[1], 2.0) ? node->inputs[0] : NULL;
    node = made_by_norm(square, "Mul");
    return node != NULL && node->inputs[0] == node->inputs[1] ? node->inputs[0] : NULL;
}

// d = x - mean(x), or x itself where nothing else is meant.
static void take_center(const ot_value *d, int axis, layer_norm *norm)
{
    const ot_node *sub = made_by_norm(d, "Sub");
    const ot_node *mean = sub != NULL ? made_by_norm(sub->inputs[1], "ReduceMean") : NULL;

    norm->is_centered = mean != NULL && mean->inputs[0] == sub->inputs[0] &&
                        mean_axis(mean->outputs[0], mean->inputs[0]) == axis;
    if (norm->is_centered)
        norm->x = sub->inputs[0];
}

// Whether `value` has the shape of the axes that are normalised.
static bool is_along(const ot_value *value, const layer_norm *norm)
{
    const ot_shape *x = &norm->x->shape;

    if (value == NULL || !value->has_shape || value->dtype != norm->x->dtype ||
        value->shape.ndim != x->ndim - norm->axis || value->shape.ndim == x->ndim)
        return false;
    for (int k = 0; k < value->shape.ndim; k++)
        if (value->shape.dim[k] != x->dim[norm->axis + k])
            return false;
    return true;
}

// ---- walking on from the root ----

// The first node of this type that reads `value` and for which `accepts`, if given, holds.
static ot_node *norm_reader(const ot__uses *uses, const ot_value *value, const char *op_type,
                            bool (*accepts)(const ot_value *other, const layer_norm *norm),
                            const layer_norm *norm)
{
    const ot__use *use;

    for (int u = 0; (use = ot__region_reader(uses, value, u)) != NULL; u++) {
        ot_node *node = use->node;

        if (ot__node_is(node, "", op_type) &&
            (accepts == NULL || accepts(other_operand(node, value), norm)))
            return node;
    }
    return NULL;
}

static bool is_one(const ot_value *other, const layer_norm *norm)
{
    (void)norm;
    return is_number(other, 1.0);
}

// The node that divides d by the root, and what it needs besides, put into the region.
static ot_node *find_quotient(const ot__uses *uses, ot_value *d, ot_value *root, ot__region *region)
{
    ot_node *node = NULL, *inverse;
    const ot__use *use;

    for (int u = 0; (use = ot__region_reader(uses, root, u)) != NULL; u++) {
        node = use->node;
        if (ot__node_is(node, "", "Div") && node->inputs[0] == d && node->inputs[1] == root)
            return ot__region_add(&uses->numbers, region, node) ? node : NULL;
    }
    inverse = norm_reader(uses, root, "Reciprocal", NULL, NULL);
    if (inverse == NULL)
        inverse = norm_reader(uses, root, "Div", is_one, NULL);
    if (inverse == NULL || !ot__region_add(&uses->numbers, region, inverse))
        return NULL;
    for (int u = 0; (use = ot__region_reader(uses, d, u)) != NULL; u++) {
        node = use->node;
        if (ot__node_is(node, "", "Mul") && other_operand(node, d) == inverse->outputs[0])
            return ot__region_add(&uses->numbers, region, node) ? node : NULL;
    }
    return NULL;
}

static bool add_all(const ot__uses *uses, ot__region *region, ot_node *const *nodes, int n)
{
    for (int k = 0; k < n; k++)
        if (!ot__region_add(&uses->numbers, region, nodes[k]))
            return false;
    return true;
}

// From sqrt(mean(d * d) + epsilon) to what the normalisation makes; false: there is none.
static bool take_layer_norm(const ot__uses *uses, ot_node *root, ot__region *region,
                            layer_norm *norm)
{
    ot_node *add = made_by_norm(root->inputs[0], "Add"), *mean, *last, *next;
    ot_value *variance, *d;

    if (add == NULL)
        return false;
    variance = add->inputs[ot__match_number(add->inputs[0], &norm->epsilon)];
    mean = made_by_norm(variance, "ReduceMean");
    if (!ot__match_number(other_operand(add, variance), &norm->epsilon) || mean == NULL ||
        norm->epsilon < 0.0 || !ot__region_keeps(variance, norm->epsilon))
        return false;
    d = root_of_square(mean->inputs[0]);
    if (d == NULL || !d->has_shape)
        return false;
    norm->axis = mean_axis(variance, d);
    norm->x = d;
    take_center(d, norm->axis, norm);
    if (norm->axis < 0 ||
        !add_all(uses, region, (ot_node *[]){mean->inputs[0]->producer, mean, add, root}, 4) ||
        (norm->is_centered &&
         !add_all(uses, region, (ot_node *[]){d->producer->inputs[1]->producer, d->producer}, 2)))
        return false;
    last = find_quotient(uses, d, root->outputs[0], region);
    if (last == NULL)
        return false;
    next = norm_reader(uses, last->outputs[0], "Mul", is_along, norm);
    if (next != NULL && ot__region_add(&uses->numbers, region, next)) {
        norm->scale = other_operand(next, last->outputs[0]);
        last = next;
    }
    next = norm->is_centered ? norm_reader(uses, last->outputs[0], "Add", is_along, norm) : NULL;
    if (next != NULL && ot__region_add(&uses->numbers, region, next)) {
        norm->bias = other_operand(next, last->outputs[0]);
        last = next;
    }
    region->output = last->outputs[0];
    return true;
}

// ---- replacing ----

static ot_value *make_ones(ot__builder *b, const layer_norm *norm)
{
    ot_shape shape = {.ndim = norm->x->shape.ndim - norm->axis};
    const double one = 1.0;
    ot_value *ones;
    int64_t count;

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = norm->x->shape.dim[norm->axis + k];
    ones = ot__build_initializer(b, ot__build_name(b, "%s_scale", norm->x->name), norm->x->dtype,
                                 &shape);
    if (ones == NULL || !ot__shape_count(&shape, &count))
        return NULL;
    for (int64_t k = 0; k < count; k++)
        (void)ot__convert((char *)ones->constant->data + (size_t)k * ot_dtype_size(norm->x->dtype),
                          norm->x->dtype, &one, OT_F64, 1);
    return ones;
}

static ot_status write_layer_norm(ot__fusing *f, const ot__region *region)
{
    const layer_norm *norm = region->what;
    const int n_stats = norm->is_centered ? 2 : 1;
    ot__builder b = {.graph = f->graph};
    const char *name = region->output->name;
    ot_value *scale = norm->scale != NULL ? norm->scale : make_ones(&b, norm);
    ot_value *in[] = {norm->x, scale, norm->bias}, *out[] = {region->output, NULL, NULL};
    ot_value *grad_in[] = {region->dy, norm->x, scale, NULL, NULL};
    ot_node *node;

    for (int i = 1; i <= n_stats; i++) {
        out[i] = ot__build_value(&b, ot__build_name(&b, "%s_%d", name, i));
        grad_in[2 + i] = out[i];
    }
    node = ot__op_build(&b, "",
                        norm->is_centered ? "LayerNormalization" : "SimplifiedLayerNormalization",
                        name, in, norm->bias != NULL ? 3 : 2, out, 1 + n_stats);
    ot__build_int(&b, node, "axis", norm->axis);
    ot__build_float(&b, node, "epsilon", norm->epsilon);
    ot__op_settle(&b, node);
    if (!ot__region_has_gradients(region) || b.status != OT_OK)
        return b.status;
    node = ot__op_build(&b, OT__MS,
                        norm->is_centered ? "LayerNormalizationGrad"
                                          : "SimplifiedLayerNormalizationGrad",
                        name, grad_in, 3 + n_stats, region->gradients, 1 + n_stats);
    ot__build_int(&b, node, "axis", norm->axis);
    ot__op_settle(&b, node);
    return b.status;
}

ot_status ot__match_layer_norm(const ot__uses *uses, ot_node *node, ot__arena *arena,
                               ot__region **out)
{
    ot__region *region;
    layer_norm *norm;

    if (!ot__node_is(node, "", "Sqrt"))
        return OT_OK;
    region = ot__arena_alloc(arena, sizeof *region);
    norm = ot__arena_alloc(arena, sizeof *norm);
    OT_TRY(ot__made(region != NULL && norm != NULL));
    *region = (ot__region){.write = write_layer_norm, .what = norm};
    *norm = (layer_norm){0};
    if (!take_layer_norm(uses, node, region, norm))
        return OT_OK;
    region->inputs[OT_NORM_X] = norm->x;
    region->inputs[OT_NORM_SCALE] = norm->scale;
    region->inputs[OT_NORM_BIAS] = norm->bias;
    region->n_inputs = OT_NORM_BIAS + 1;
    *out = region;
    return OT_OK;
}
