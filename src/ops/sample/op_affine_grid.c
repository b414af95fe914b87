// SPDX-License-Identifier: Apache-2.0
// AffineGrid: the positions of a grid, mapped by a matrix a batch element: a sum of the matrix's
// columns times coordinates, over one axis of the grid each.
#include "op/expand.h"
#include "ops/move/move.h"

enum { THETA, SIZE }; // inputs
enum { GRID_AXES_MIN = 2, GRID_AXES_MAX = 3 };

// Axes of the grid: 2 or 3, or 0 where that is not known; -1 after a failure.
static int infer_grid_axes(ot_infer *c, const ot_shape *theta, const ot_shape *size)
{
    const int64_t rows = theta->ndim == 3 ? theta->dim[1] : 0;
    const bool has_rows = ot_dim_is_number(rows);
    const int64_t n = has_rows          ? rows
                      : size->ndim == 1 ? ot_infer_sub(c, size->dim[0], 2)
                                        : ot_dim_unknown();

    if (theta->ndim != 3 || (ot_dim_is_number(n) && (n < GRID_AXES_MIN || n > GRID_AXES_MAX ||
                                                     ot__dim_differs(theta->dim[2], n + 1)))) {
        ot_infer_fail(c, "theta must have shape [N,2,3] or [N,3,4]");
        return -1;
    }
    if (size->ndim != 1 || (ot_dim_is_number(n) && ot__dim_differs(size->dim[0], n + 2))) {
        ot_infer_fail(c, "size must be a list of the batch, the channels and each axis of theta");
        return -1;
    }
    return ot_dim_is_number(n) ? (int)n : 0;
}

static void affine_grid_infer(ot_infer *c)
{
    const ot_shape *theta = ot_infer_shape(c, THETA);
    const int n = infer_grid_axes(c, theta, ot_infer_shape(c, SIZE));
    ot_shape stated, y = {.ndim = n + 2};
    bool is_stated;

    if (n < 0)
        return;
    is_stated = ot__infer_shape_input(c, SIZE, &stated);
    if (n == 0) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, THETA));
        return;
    }
    y.dim[0] = theta->dim[0];
    if (is_stated && ot__dim_differs(stated.dim[0], y.dim[0]))
        ot_infer_fail(c, "size has batch size %" PRId64 ", theta %" PRId64, stated.dim[0],
                      y.dim[0]);
    if (is_stated && !ot_dim_is_number(y.dim[0]))
        y.dim[0] = stated.dim[0];
    for (int a = 0; a < n; a++)
        y.dim[1 + a] = is_stated ? stated.dim[2 + a] : ot_dim_unknown();
    y.dim[1 + n] = n;
    ot_infer_set(c, 0, ot_infer_dtype(c, THETA), &y);
}

// ---- in other operators ----

// Coordinates i of 0 .. extent - 1 lie at (2 i - (extent - 1)) / span: the middles of equal parts
// of -1 .. 1, or with align_corners from -1 to 1.
static ot_value *emit_known_coordinates(ot_grad *g, int64_t extent, const ot_shape *shape,
                                        bool is_aligned, ot_dtype dtype)
{
    ot_value *list = ot__emit_tensor(g, dtype, shape);
    const int64_t span = is_aligned ? OT_MAX(extent - 1, 1) : extent;

    for (int64_t i = 0; list != NULL && i < extent; i++)
        ot__set_element(list->constant, i, (double)(2 * i - (extent - 1)) / (double)span);
    return list;
}

static ot_value *emit_open_coordinates(ot_grad *g, ot_value *extent, const ot_shape *shape,
                                       bool is_aligned, ot_dtype dtype)
{
    ot_value *count = ot__emit_count_up(g, extent);
    ot_value *one = ot_emit_constant(g, 1, extent), *two = ot_emit_constant(g, 2, extent);
    ot_value *rest = ot_emit2(g, "Sub", extent, one);
    ot_value *span = is_aligned ? ot_emit2(g, "Max", rest, one) : extent;
    ot_value *number = ot_emit2(g, "Sub", ot_emit2(g, "Mul", count, two), rest);

    number = ot_emit_cast(g, number, dtype);
    number = ot_emit2(g, "Div", number, ot_emit_cast(g, span, dtype));
    return ot__emit_reshape(g, number, shape->dim, shape->ndim);
}

// The size of axis a of the grid: by the elements of `size`, or as the model states it of the grid.
static int64_t known_grid_extent(ot_grad *g, int a, int n)
{
    const ot_value *grid = ot_grad_node(g)->outputs[0];
    int n_known;
    const int64_t *known = ot_value_known(ot_grad_x(g, SIZE), &n_known);

    if (known != NULL && n_known == n + 2 && ot_dim_is_number(known[2 + a]))
        return known[2 + a];
    return ot_value_has_shape(grid) ? ot_value_shape(grid)->dim[1 + a] : ot_dim_unknown();
}

// The coordinates along axis a of n of the grid, with extent 1 along its other axes.
static ot_value *emit_coordinates(ot_grad *g, int a, int n)
{
    enum { MOST = 65536 }; // that are written down
    const bool is_aligned = ot_attr_int(ot_grad_node(g), "align_corners") != 0;
    const ot_dtype dtype = ot_value_dtype(ot_grad_x(g, THETA));
    const int64_t extent = known_grid_extent(g, a, n);
    ot_shape shape = {.ndim = n + 2};
    ot_value *limit;

    for (int k = 0; k < shape.ndim; k++)
        shape.dim[k] = 1;
    shape.dim[1 + a] = -1;
    if (ot_dim_is_number(extent) && extent <= MOST) {
        shape.dim[1 + a] = extent;
        return emit_known_coordinates(g, extent, &shape, is_aligned, dtype);
    }
    limit = ot__emit_at(g, ot_grad_x(g, SIZE), 2 + a);
    return emit_open_coordinates(g, limit, &shape, is_aligned, dtype);
}

// Column k of all matrices, as one vector a batch element.
static ot_value *emit_column(ot_grad *g, ot_node *columns, int k, int n)
{
    int64_t dims[OT_MAX_NDIM];

    for (int i = 0; i < n + 2; i++)
        dims[i] = 1;
    dims[0] = -1;
    dims[n + 1] = n;
    return ot__emit_reshape(g, ot_emit_output(g, columns, k), dims, n + 2);
}

// From the first axis of the grid on, so that the sums are small until the last one.
static void affine_grid_compose(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_x(g, THETA)}, *grid;
    const ot_shape *theta = ot_value_shape(in[0]);
    const int64_t ones[] = {1, 1, 1, 1};
    ot_node *columns;
    int n;

    if (!ot_value_has_shape(in[0]) || !ot_dim_is_number(theta->dim[1]))
        return;
    n = (int)theta->dim[1];
    in[1] = ot_emit_constant_i64(g, ones, n + 1);
    columns = ot_emit(g, "Split", "axis = 2", in, 2, n + 1);
    grid = emit_column(g, columns, n, n);
    for (int a = 0; a < n; a++) {
        ot_value *column = emit_column(g, columns, n - 1 - a, n);
        ot_value *coordinates = emit_coordinates(g, a, n);

        grid = ot_emit2(g, "Add", grid, ot_emit2(g, "Mul", coordinates, column));
    }
    ot_expand_set(g, 0, grid);
}

static const ot_port affine_grid_in[] = {{"theta", "T", 0}, {"size", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port affine_grid_out[] = {{"grid", "T", 0}, {0}};
static const ot_attr_spec affine_grid_attrs[] = {OT__FLAG_ATTR("align_corners", 0), {0}};
const ot_op_def ot__op_affine_grid[] = {
    {.name = "AffineGrid",
     .since = 20,
     .inputs = affine_grid_in,
     .outputs = affine_grid_out,
     .attrs = affine_grid_attrs,
     .types = "T: f32 f64",
     .infer = affine_grid_infer,
     .train = affine_grid_compose},
    {0},
};
