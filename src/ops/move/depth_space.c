// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth: channels of an image become blocks of pixels, and back.
#include "op/expand.h"
#include "ops/move/move.h"

#include <math.h>
#include <string.h>

// Axes of the arrangement with blocks: batch, channel, row, row in the block, column, column in it.
enum { BATCH, CHANNEL, ROW, BLOCK_ROW, COLUMN, BLOCK_COLUMN, N_BLOCK_AXES };
typedef enum block_way { TO_SPACE, TO_DEPTH } block_way;

static bool has_channels_first(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "mode"), "CRD") == 0;
}

// The block's size, and how many pixels it has; false: the context has the error.
static bool infer_block(ot_infer *c, int64_t *size, int64_t *count)
{
    const ot_node *node = ot_infer_node(c);
    const char *mode = ot_attr_string(node, "mode");

    *size = ot_attr_int(node, "blocksize");
    if (ot_infer_shape(c, 0)->ndim != 4)
        return ot__refuse(c, "input has %d axes, expected 4: batch, channels, height, width",
                          ot_infer_shape(c, 0)->ndim);
    if (ot_attr_given(node, "mode") && strcmp(mode, "DCR") != 0 && !has_channels_first(node))
        return ot__refuse(c, "mode is '%s', known: DCR CRD", mode);
    if (ot__mul_overflows(*size, *size, count))
        return ot__refuse(c, "blocksize is %" PRId64 ", which is too large", *size);
    return true;
}

static bool infer_divided(ot_infer *c, const char *what, int64_t dim, int64_t by, int64_t *out)
{
    *out = ot_infer_div(c, dim, by);
    return !ot_dim_is_number(dim) || dim % by == 0 ||
           ot__refuse(c, "%s is %" PRId64 ", expected a multiple of %" PRId64, what, dim, by);
}

static bool infer_multiplied(ot_infer *c, int axis, int64_t dim, int64_t by, int64_t *out)
{
    *out = ot_infer_mul(c, dim, by);
    return ot__infer_extent(c, axis, dim, by, *out);
}

static void depth_to_space_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = *x;
    int64_t size, count;

    if (infer_block(c, &size, &count) &&
        infer_divided(c, "the number of channels", x->dim[1], count, &y.dim[1]) &&
        infer_multiplied(c, 2, x->dim[2], size, &y.dim[2]) &&
        infer_multiplied(c, 3, x->dim[3], size, &y.dim[3]))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

static void space_to_depth_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = *x;
    int64_t size, count;

    if (infer_block(c, &size, &count) && infer_multiplied(c, 1, x->dim[1], count, &y.dim[1]) &&
        infer_divided(c, "the height", x->dim[2], size, &y.dim[2]) &&
        infer_divided(c, "the width", x->dim[3], size, &y.dim[3]))
        ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

// ---- kernel: one copy with an axis for each part of a channel, row and column ----

static ot_status prep_blocks(ot_prep *p, block_way way)
{
    const ot_shape *deep = &(way == TO_SPACE ? ot_prep_in(p, 0) : ot_prep_out(p, 0))->shape;
    const ot_shape *wide = &(way == TO_SPACE ? ot_prep_out(p, 0) : ot_prep_in(p, 0))->shape;
    const int64_t size = ot_attr_int(ot_prep_node(p), "blocksize");
    const bool is_crd = has_channels_first(ot_prep_node(p));
    const int64_t pixels = deep->dim[2] * deep->dim[3], channels = wide->dim[1];
    const int64_t block = is_crd ? pixels : channels * pixels; // between pixels of one block
    const int64_t dim[] = {deep->dim[0], channels, deep->dim[2], size, deep->dim[3], size};
    const int64_t deep_stride[] = {deep->dim[1] * pixels,
                                   is_crd ? size * size * pixels : pixels,
                                   deep->dim[3],
                                   size * block,
                                   1,
                                   block};
    const int64_t wide_stride[] = {channels * size * size * pixels,
                                   size * size * pixels,
                                   size * wide->dim[3],
                                   wide->dim[3],
                                   size,
                                   1};
    static const int order[][N_BLOCK_AXES] = {
        {BATCH, CHANNEL, ROW, BLOCK_ROW, COLUMN, BLOCK_COLUMN}, // of wide images
        {BATCH, BLOCK_ROW, BLOCK_COLUMN, CHANNEL, ROW, COLUMN}, // of deep ones, DCR
        {BATCH, CHANNEL, BLOCK_ROW, BLOCK_COLUMN, ROW, COLUMN}, // CRD
    };
    const int *axes = order[way == TO_SPACE ? 0 : is_crd ? 2 : 1];
    ot__strided s = {0};

    for (int k = 0; k < N_BLOCK_AXES; k++)
        ot__strided_add_axis(&s, dim[axes[k]],
                             (way == TO_SPACE ? deep_stride : wide_stride)[axes[k]],
                             (way == TO_SPACE ? wide_stride : deep_stride)[axes[k]]);
    return ot__prep_strided(p, &s);
}

static ot_status depth_to_space_prep(ot_prep *p)
{
    return prep_blocks(p, TO_SPACE);
}

static ot_status space_to_depth_prep(ot_prep *p)
{
    return prep_blocks(p, TO_DEPTH);
}

// ---- gradient: dY arranged the other way, by Reshape and Transpose, since SpaceToDepth has its
// modes from opset 28 on only ----

static int64_t dim_of(const ot_value *v, int axis)
{
    return ot_value_has_shape(v) && axis < ot_value_shape(v)->ndim ? ot_value_shape(v)->dim[axis]
                                                                   : ot_dim_unknown();
}

// An axis of the six: so many, or axis `axis` of `of`.
typedef struct block_axis {
    int64_t number;
    ot_value *of;
    int axis;
} block_axis;

static block_axis axis_of(ot_value *of, int axis)
{
    return (block_axis){dim_of(of, axis), of, axis};
}

// v with six axes. One that is not known is left to Reshape.
static ot_value *emit_six_axes(ot_grad *g, ot_value *v, const block_axis *axes)
{
    int64_t dims[N_BLOCK_AXES];
    ot_value *parts[N_BLOCK_AXES];
    int n_open = 0;

    for (int k = 0; k < N_BLOCK_AXES; k++) {
        const bool is_number = ot_dim_is_number(axes[k].number);

        dims[k] = is_number ? axes[k].number : -1;
        n_open += !is_number;
    }
    if (n_open <= 1)
        return ot__emit_reshape(g, v, dims, N_BLOCK_AXES);
    for (int k = 0; k < N_BLOCK_AXES; k++)
        parts[k] = dims[k] >= 0 ? ot_emit_constant_i64(g, &dims[k], 1)
                                : ot__emit_extents(g, axes[k].of, axes[k].axis, axes[k].axis + 1);
    return ot_emit2(g, "Reshape", v, ot__emit_concat(g, parts, N_BLOCK_AXES, 0));
}

static void arrange_back(ot_grad *g, block_way way)
{
    static const int64_t to_deep[][N_BLOCK_AXES] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
    static const int64_t to_wide[][N_BLOCK_AXES] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    ot_value *x = ot_grad_x(g, 0), *dy = ot_grad_dy(g, 0);
    ot_value *deep = way == TO_SPACE ? x : dy, *wide = way == TO_SPACE ? dy : x;
    const bool is_crd = has_channels_first(ot_grad_node(g));
    const block_axis size = {.number = ot_attr_int(ot_grad_node(g), "blocksize")};
    const block_axis batch = {.number = 0}; // as it is
    const block_axis channel = axis_of(wide, 1), row = axis_of(deep, 2), column = axis_of(deep, 3);
    const block_axis of_wide[] = {batch, channel, row, size, column, size};
    const block_axis of_deep[][N_BLOCK_AXES] = {{batch, size, size, channel, row, column},
                                                {batch, channel, size, size, row, column}};
    ot_value *six;

    if (channel.number == 0 || row.number == 0 || column.number == 0) {
        ot_grad_set_dx(g, 0, ot_emit_zeros_like(g, x)); // 0 stands for "as it is" in Reshape
        return;
    }
    six = emit_six_axes(g, dy, way == TO_SPACE ? of_wide : of_deep[is_crd]);
    six = ot__emit_transpose(g, six, (way == TO_SPACE ? to_deep : to_wide)[is_crd], N_BLOCK_AXES);
    ot_grad_set_dx(g, 0, ot_emit_reshape_like(g, six, x));
}

static void depth_to_space_grad(ot_grad *g)
{
    arrange_back(g, TO_SPACE);
}

static void space_to_depth_grad(ot_grad *g)
{
    arrange_back(g, TO_DEPTH);
}

#define BLOCKSIZE                                                                                  \
    {                                                                                              \
        .name = "blocksize", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_REQUIRED, .low = 1,        \
        .high = INFINITY                                                                           \
    }
static const ot_attr_spec size_attrs[] = {BLOCKSIZE, {0}};
static const ot_attr_spec mode_attrs[] = {BLOCKSIZE, OT__STRING_ATTR("mode", "DCR"), {0}};
static const ot_kernel depth_to_space_kernels[] = {
    OT__STRIDED_KERNELS(depth_to_space_prep, ot__run_strided), {0}};
static const ot_kernel space_to_depth_kernels[] = {
    OT__STRIDED_KERNELS(space_to_depth_prep, ot__run_strided), {0}};
#define BLOCKS(name_, symbol, since_, attrs_)                                                      \
    {                                                                                              \
        .name = name_, .since = since_, .inputs = ot__input_in, .outputs = ot__output_out,         \
        .attrs = attrs_, .types = "T: any string", .infer = symbol##_infer,                        \
        .kernels = symbol##_kernels, .grad = symbol##_grad, .flags = OT_OP_REARRANGE               \
    }
const ot_op_def ot__op_depth_to_space[] = {
    BLOCKS("DepthToSpace", depth_to_space, 1, size_attrs),
    BLOCKS("DepthToSpace", depth_to_space, 11, mode_attrs),
    {0},
};
const ot_op_def ot__op_space_to_depth[] = {
    BLOCKS("SpaceToDepth", space_to_depth, 1, size_attrs),
    BLOCKS("SpaceToDepth", space_to_depth, 28, mode_attrs),
    {0},
};
