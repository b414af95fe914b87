// SPDX-License-Identifier: Apache-2.0
// Ports and inference that many elementwise records share.
#include "ops/elementwise/elementwise.h"

#include <string.h>

const ot_port ot__binary_in[] = {{"A", "T", 0}, {"B", "T", 0}, {0}};
const ot_port ot__binary_out[] = {{"C", "T", 0}, {0}};
const ot_port ot__bool_out[] = {{"Y", "bool", 0}, {0}};
const ot_port ot__gradient_in_x[] = {{"dY", "T", 0}, {"X", "T", 0}, {0}};
const ot_port ot__gradient_in_y[] = {{"dY", "T", 0}, {"Y", "T", 0}, {0}};

// Shape arithmetic works on vectors and scalars: equal counts, or one of them 1. Its types hold all
// sizes; others wrap around.
void ot__infer_known(ot_infer *c, int64_t (*f)(ot_infer *c, int64_t a, int64_t b))
{
    const ot_dtype dtype = ot_infer_dtype(c, 0);
    const bool has_b = ot_infer_has(c, 1);
    int64_t known[OT_MAX_KNOWN], none = OT_DIM_UNKNOWN;
    int n_a, n_b = 1, n;
    const int64_t *a = ot_infer_values(c, 0, &n_a), *b = &none;

    if (has_b)
        b = ot_infer_values(c, 1, &n_b);
    if ((dtype != OT_I32 && dtype != OT_I64) || a == NULL || b == NULL ||
        ot_infer_shape(c, 0)->ndim > 1 || ot_infer_shape(c, 1)->ndim > 1)
        return;
    n = OT_MAX(n_a, n_b);
    if (n > OT_MAX_KNOWN || n_a == 0 || n_b == 0 || (n_a != n && n_a != 1) ||
        (n_b != n && n_b != 1))
        return;
    for (int k = 0; k < n; k++)
        known[k] = f(c, a[n_a == 1 ? 0 : k], b[n_b == 1 ? 0 : k]);
    ot_infer_set_values(c, 0, known, n);
}

void ot__infer_broadcast_known(ot_infer *c, int64_t (*f)(ot_infer *c, int64_t a, int64_t b))
{
    ot__infer_broadcast(c);
    ot__infer_known(c, f);
}

// Whether input `bias` broadcasts to input 0 without making it larger.
static bool bias_fits(ot_infer *c, int bias)
{
    const ot_shape *x = ot_infer_shape(c, 0), *b = ot_infer_shape(c, bias);
    ot_shape y;

    if (!ot_infer_has(c, bias))
        return true;
    if (!ot_infer_broadcast(c, x, b, &y))
        return false;
    for (int k = 0; k < y.ndim; k++)
        if (y.ndim != x->ndim || (x->dim[k] == 1 && y.dim[k] != 1))
            return ot__refuse(c, "input %d is larger than input 0", bias);
    return true;
}

void ot__infer_bias(ot_infer *c)
{
    if (bias_fits(c, 1))
        ot__infer_same_shape(c);
}

void ot__infer_bias_gradient(ot_infer *c)
{
    if (bias_fits(c, 2))
        ot__infer_gradient(c);
}

// ---- tiles by name ----

static bool read_tile_name(const char **at, const ot_tile **tile)
{
    const size_t length = strcspn(*at, " [;");
    const ot_op_def *op;
    char name[80], *dot;

    if (length >= sizeof(name))
        return false;
    memcpy(name, *at, length);
    name[length] = '\0';
    *at += length;
    dot = strrchr(name, '.');
    if (dot != NULL)
        *dot = '\0';
    op = ot__op_find(dot == NULL ? "" : name, dot == NULL ? name : dot + 1, INT64_MAX);
    *tile = op == NULL ? NULL : op->tile;
    return *tile != NULL;
}

bool ot__tile_read(const char **at, const ot_tile **tile, float *attrs)
{
    if (!read_tile_name(at, tile))
        return false;
    if (**at != '[')
        return true;
    for (int k = 0; **at != ']'; k++) {
        const size_t length = strcspn(++*at, ",]");
        double value;
        char text[40];

        if (k == OT_TILE_MAX_ATTRS || length >= sizeof(text))
            return false;
        memcpy(text, *at, length);
        text[length] = '\0';
        *at += length;
        if (!ot__parse_float(text, &value) || **at == '\0')
            return false;
        attrs[k] = (float)value;
    }
    ++*at;
    return true;
}
