// SPDX-License-Identifier: Apache-2.0
// Split: parts side by side along one axis.
#include "ops/move/move.h"

// Extents of the parts when no list is given: equal ones, the last may be smaller with num_outputs.
static bool even_sizes(ot_infer *c, int64_t extent, int n, bool is_last_smaller, int64_t *sizes)
{
    int64_t part, rest;

    if (!is_last_smaller && ot_dim_is_number(extent) && extent % n != 0) {
        ot_infer_fail(c, "size %" PRId64 " cannot be split into %d equal parts", extent, n);
        return false;
    }
    part = ot_infer_div(c, is_last_smaller ? ot_infer_add(c, extent, n - 1) : extent, n);
    for (int i = 0; i < n; i++)
        sizes[i] = part;
    if (is_last_smaller) {
        rest = ot_infer_sub(c, extent, ot_infer_mul(c, part, n - 1));
        if (ot_dim_is_number(rest) && rest < 0) {
            ot_infer_fail(c, "size %" PRId64 " is too small for %d parts", extent, n);
            return false;
        }
        sizes[n - 1] = rest;
    }
    return true;
}

static bool listed_sizes(ot_infer *c, int64_t extent, int n, int64_t *sizes)
{
    int n_listed;
    const int64_t *list = ot_infer_values(c, 1, &n_listed);
    int64_t sum = 0;

    for (int i = 0; i < n; i++)
        sizes[i] = ot_dim_unknown();
    if (list == NULL)
        return true;
    if (n_listed != n) {
        ot_infer_fail(c, "%d sizes for %d outputs", n_listed, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        sizes[i] = list[i];
        if (ot_dim_is_number(list[i]) && list[i] < 0) {
            ot_infer_fail(c, "split %d has size %" PRId64, i, list[i]);
            return false;
        }
        sum = ot_infer_add(c, sum, list[i]);
    }
    if (ot_dim_is_number(sum) && ot_dim_is_number(extent) && sum != extent) {
        ot_infer_fail(c, "the sizes in split add up to %" PRId64 ", the axis has %" PRId64, sum,
                      extent);
        return false;
    }
    return true;
}

static void split_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const int n = ot_infer_output_count(c);
    int64_t *sizes = ot__arena_alloc(node->graph->model->arena, (size_t)n * sizeof(*sizes));
    int64_t extent;
    int axis;

    if (sizes == NULL) {
        ot_infer_fail(c, "%s", ot_error_message());
        return;
    }
    if (!ot_infer_axis(c, ot_attr_int(node, "axis"), ot_infer_shape(c, 0)->ndim, &axis))
        return;
    extent = ot_infer_shape(c, 0)->dim[axis];
    if (ot_attr_given(node, "num_outputs") && ot_attr_int(node, "num_outputs") != n) {
        ot_infer_fail(c, "num_outputs is %" PRId64 ", there are %d outputs",
                      ot_attr_int(node, "num_outputs"), n);
        return;
    }
    if (ot_infer_has(c, 1) ? listed_sizes(c, extent, n, sizes)
                           : even_sizes(c, extent, n, ot_attr_given(node, "num_outputs"), sizes))
        ot__infer_split(c, axis, sizes);
}

// dX = the parts' gradients side by side, zeros where none arrives.
static void split_grad(ot_grad *g)
{
    const int n = ot_grad_output_count(g);
    ot_value **parts =
        ot__arena_alloc(ot_grad_node(g)->graph->model->arena, (size_t)n * sizeof(ot_value *));
    ot_node *concat;

    if (parts == NULL) {
        ot_grad_fail(g, "%s", ot_error_message());
        return;
    }
    for (int i = 0; i < n; i++)
        parts[i] = ot_grad_dy_or_zeros(g, i);
    concat = ot_emit(g, "Concat", NULL, parts, n, 1);
    ot_emit_int(g, concat, "axis", ot_attr_int(ot_grad_node(g), "axis"));
    ot_grad_set_dx(g, 0, ot_emit_output(g, concat, 0));
}

static void split_upgrade(ot_upgrade *u)
{
    ot_upgrade_ints_to_input(u, "split", 1);
}

// Equal parts are told by the number of outputs alone, which the later form wants to be said.
static void split_raise(ot_upgrade *u)
{
    const ot_node *node = ot_upgrade_node(u);

    if (node->n_inputs < 2 || node->inputs[1] == NULL)
        ot_upgrade_set_int(u, "num_outputs", node->n_outputs);
}

static const ot_port split_in_2[] = {{"input", "T", 0}, {0}};
static const ot_port split_in[] = {
    {"input", "T", 0}, {"split", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD}, {0}};
static const ot_port split_out[] = {{"outputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_attr_spec split_attrs_2[] = {
    {.name = "split", .kind = OT_ATTRIBUTE_INTS},
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {0},
};
static const ot_attr_spec split_attrs_18[] = {
    {.name = "num_outputs", .kind = OT_ATTRIBUTE_INT},
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0},
    {0},
};
static const ot_kernel split_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__prep_split,
     .run = ot__run_split},
    {0},
};
const ot_op_def ot__op_split[] = {
    {.name = "Split",
     .since = 2,
     .inputs = split_in_2,
     .outputs = split_out,
     .attrs = split_attrs_2,
     .types = "T: any string",
     .infer = split_infer,
     .upgrade = split_upgrade},
    {.name = "Split",
     .since = 13,
     .inputs = split_in,
     .outputs = split_out,
     .attrs = split_attrs_18 + 1,
     .types = "T: any string",
     .infer = split_infer,
     .kernels = split_kernels,
     .grad = split_grad,
     .raise = split_raise},
    {.name = "Split",
     .since = 18,
     .inputs = split_in,
     .outputs = split_out,
     .attrs = split_attrs_18,
     .types = "T: any string",
     .infer = split_infer,
     .kernels = split_kernels,
     .grad = split_grad},
    {0},
};
