// SPDX-License-Identifier: Apache-2.0
// Integers that count the rows of the batch, 0, 1, 2 and so on or multiples of them: the number of
// its row in each, as where an element is picked from every row.
#include "passes/open.h"

// How much element i is larger than element k; what overflows wraps around.
static int64_t step_between(const ot_tensor *t, int64_t k, int64_t i)
{
    return (int64_t)((uint64_t)ot__tensor_get_i64(t, i) - (uint64_t)ot__tensor_get_i64(t, k));
}

// Is every row along `axis` by the same number larger than the one before?
static bool is_row_number(const ot_tensor *t, int axis, int64_t *step)
{
    int64_t outer = 1, inner = 1;

    for (int k = 0; k < t->shape.ndim; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : t->shape.dim[k];
    if ((t->dtype != OT_I64 && t->dtype != OT_I32) || outer * inner == 0)
        return false;
    *step = step_between(t, 0, inner);
    for (int64_t i = 0; i < ot_tensor_count(t); i++)
        if (i / inner % t->shape.dim[axis] > 0 && step_between(t, i - inner, i) != *step)
            return false;
    return *step > 0;
}

static ot_value *open_scalar(ot__opener *o, const ot_node *node, int64_t number)
{
    ot_value *value = ot__open_list(o, node, &number, 1);

    if (value) {
        ot_tensor *tensor = ot__model_tensor_new(o->model, OT_I64, &(ot_shape){0});

        if (!tensor)
            return NULL;
        *(int64_t *)tensor->data = number;
        value->constant = tensor;
        ot__value_set(value, OT_I64, &tensor->shape);
    }
    return value;
}

// i64[batch, 1, ..., 1]: `ndim` axes behind the first are 1.
static ot_status number_rows(ot__opener *o, const ot_node *node, int64_t step, int n_behind,
                             ot_value **out)
{
    int64_t axes[OT_MAX_NDIM];
    ot_value *range[3] = {NULL}, *count, *pair[2];

    range[0] = open_scalar(o, node, 0);
    range[2] = open_scalar(o, node, 1);
    OT_TRY(ot__made(range[0] && range[2]));
    OT_TRY(ot__open_count(o, node, 1, &count));
    OT_TRY(ot__open_node(o, "Squeeze", node, NULL, &count, 1, &range[1]));
    OT_TRY(ot__open_node(o, "Range", node, NULL, range, 3, &pair[0]));
    pair[1] = open_scalar(o, node, step);
    OT_TRY(ot__made(pair[1]));
    OT_TRY(ot__open_node(o, "Mul", node, NULL, pair, 2, &pair[0]));
    *out = pair[0];
    if (n_behind == 0)
        return OT_OK;
    for (int k = 0; k < n_behind; k++)
        axes[k] = k + 1;
    pair[1] = ot__open_list(o, node, axes, n_behind);
    OT_TRY(ot__made(pair[1]));
    return ot__open_node(o, "Unsqueeze", node, NULL, pair, 2, out);
}

ot_status ot__open_counted(ot__opener *o, const ot_node *node, const ot_tensor *t,
                           const ot_tensor *first, int axis, ot_value **out)
{
    int64_t step;
    ot_value *pair[2];

    *out = NULL;
    if (o->batch < 2 || t->shape.dim[axis] != o->batch || !is_row_number(t, axis, &step))
        return OT_OK;
    OT_TRY(number_rows(o, node, step, t->shape.ndim - axis - 1, &pair[0]));
    pair[1] = open_scalar(o, node, 0);
    OT_TRY(ot__made(pair[1]));
    pair[1]->constant = (ot_tensor *)first;
    ot__value_set(pair[1], first->dtype, &first->shape);
    if (first->dtype != OT_I64)
        OT_TRY(ot__open_node(o, "CastLike", node, NULL, pair, 2, &pair[0]));
    return ot__open_node(o, "Add", node, NULL, pair, 2, out);
}
