// SPDX-License-Identifier: Apache-2.0
// SplitTraining: Split as ONNX Runtime writes it in training graphs, with the extents always an
// input.
#include "ops/move/move.h"

static void split_training_infer(ot_infer *c)
{
    const int n = ot_infer_output_count(c);
    int n_sizes, axis;
    const int64_t *known = ot_infer_values(c, 1, &n_sizes);
    int64_t *sizes =
        ot__arena_alloc(ot_infer_node(c)->graph->model->arena, (size_t)n * sizeof(*sizes));

    if (sizes == NULL) {
        ot_infer_fail(c, "%s", ot_error_message());
        return;
    }
    if (!ot_infer_axis(c, ot_attr_int(ot_infer_node(c), "axis"), ot_infer_shape(c, 0)->ndim, &axis))
        return;
    if (known != NULL && n_sizes != n) {
        ot_infer_fail(c, "%d sizes for %d outputs", n_sizes, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        sizes[i] = known == NULL ? ot_dim_unknown() : known[i];
        if (ot_dim_is_number(sizes[i]) && sizes[i] < 0) {
            ot_infer_fail(c, "split %d has size %" PRId64, i, sizes[i]);
            return;
        }
    }
    ot__infer_split(c, axis, sizes);
}

// dX = the parts' gradients side by side, zeros where none arrives.
static void split_training_grad(ot_grad *g)
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

static const ot_port split_training_in[] = {
    {"input", "T", 0}, {"split", "i64", OT_PORT_NO_GRAD}, {0}};
static const ot_port split_training_out[] = {{"outputs", "T", OT_PORT_VARIADIC}, {0}};
static const ot_attr_spec split_training_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0}, {0}};
static const ot_kernel split_training_kernels[] = {
    {.name = "ref",
     .flags = OT_KERNEL_REFERENCE | OT_KERNEL_THREAD_EXACT,
     .prepare = ot__prep_split,
     .run = ot__run_split},
    {0},
};
const ot_op_def ot__op_split_training[] = {
    {.domain = OT__MS,
     .name = "SplitTraining",
     .since = 1,
     .inputs = split_training_in,
     .outputs = split_training_out,
     .attrs = split_training_attrs,
     .types = "T: any string",
     .infer = split_training_infer,
     .kernels = split_training_kernels,
     .grad = split_training_grad},
    {0},
};
