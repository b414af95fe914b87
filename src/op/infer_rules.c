// SPDX-License-Identifier: Apache-2.0
// Ports and rules of shape inference that many records share.
#include "op/check.h"

const ot_port ot__unary_in[] = {{"X", "T", 0}, {0}};
const ot_port ot__unary_out[] = {{"Y", "T", 0}, {0}};
const ot_port ot__input_in[] = {{"input", "T", 0}, {0}};
const ot_port ot__output_out[] = {{"output", "T", 0}, {0}};
const ot_port ot__data_in[] = {{"data", "T", 0}, {0}};
const ot_port ot__gradient_out[] = {{"dX", "T", 0}, {0}};

void ot__infer_same_shape(ot_infer *c)
{
    int n;
    const int64_t *known = ot_infer_values(c, 0, &n);

    ot_infer_set(c, 0, ot_infer_dtype(c, 0), ot_infer_shape(c, 0));
    if (known != NULL && n > 0 && (ot_infer_node(c)->op->flags & OT_OP_VIEW) != 0)
        ot_infer_set_values(c, 0, known, n);
}

bool ot__infer_matches(ot_infer *c, int a, int b)
{
    const ot_shape *x = ot_infer_shape(c, a), *y = ot_infer_shape(c, b);
    const bool fits = ot__shape_may_equal(x, y);
    char x_text[120], y_text[120];

    if (!fits)
        ot_infer_fail(c, "inputs %d and %d have shapes %s and %s, expected the same", a, b,
                      ot__dims_text(ot_infer_node(c)->graph->model, x, x_text, sizeof(x_text)),
                      ot__dims_text(ot_infer_node(c)->graph->model, y, y_text, sizeof(y_text)));
    return fits;
}

bool ot__infer_one_element(ot_infer *c, int i)
{
    const ot_shape *x = ot_infer_shape(c, i);
    char text[120];

    for (int k = 0; k < x->ndim; k++)
        if (ot__dim_is_number(x->dim[k]) && x->dim[k] != 1)
            return ot__refuse(c, "input %d has shape %s, expected one element", i,
                              ot__dims_text(ot_infer_node(c)->graph->model, x, text, sizeof(text)));
    return true;
}

void ot__infer_gradient(ot_infer *c)
{
    if (ot__infer_matches(c, 0, 1))
        ot__infer_same_shape(c);
}

static bool broadcast_all(ot_infer *c, ot_shape *y)
{
    *y = *ot_infer_shape(c, 0);
    for (int i = 1; i < ot_infer_input_count(c); i++) {
        const ot_shape so_far = *y;

        if (ot_infer_has(c, i) && !ot_infer_broadcast(c, &so_far, ot_infer_shape(c, i), y))
            return false;
    }
    return true;
}

void ot__infer_broadcast(ot_infer *c)
{
    ot_shape y;

    if (broadcast_all(c, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

void ot__infer_broadcast_bool(ot_infer *c)
{
    ot_shape y;

    if (broadcast_all(c, &y))
        ot_infer_set(c, 0, OT_BOOL, &y);
}
