// SPDX-License-Identifier: Apache-2.0
// Col2Im: images as the sums of blocks, which are columns of the input; and Im2Col, its gradient,
// which reads blocks of images. Shapes of images and blocks are inputs, so that a block's may be
// known only at run time.
#include "op/expand.h"
#include "ops/conv/window.h"
#include "ops/move/move.h"

enum { INPUT, IMAGE, BLOCK }; // inputs; Im2Col has no second one

// ---- shapes ----

// Strides, dilations and pads for images of so many axes. NULL, or what is wrong.
static const char *read_block_attrs(ot__geometry *g, const ot_node *node, int n_axes)
{
    static const int64_t ones[OT__WINDOW_AXES] = {1, 1, 1};
    const ot_shape image = {.ndim = 2 + n_axes};

    return n_axes < 1 || n_axes > OT__WINDOW_AXES ? "images must have one to three axes"
                                                  : ot__geometry_read(g, node, &image, ones);
}

// The block's shape as far as it is known. False: the context has the error.
static bool infer_block_shape(ot_infer *c, int input, int n_axes, ot__geometry *g, bool *is_known)
{
    const char *wrong = read_block_attrs(g, ot_infer_node(c), n_axes);
    ot_shape block;

    if (wrong != NULL)
        return ot__refuse(c, "%s", wrong);
    *is_known = ot__infer_shape_input(c, input, &block);
    if (ot_infer_shape(c, input)->ndim != 1)
        return false;
    if (ot_dim_is_number(ot_infer_shape(c, input)->dim[0]) &&
        ot_infer_shape(c, input)->dim[0] != n_axes)
        return ot__refuse(c, "block_shape has %" PRId64 " numbers, the image %d axes",
                          ot_infer_shape(c, input)->dim[0], n_axes);
    for (int a = 0; *is_known && a < n_axes; a++) {
        g->kernel[a] = block.dim[a];
        if (!ot_dim_is_number(block.dim[a]))
            *is_known = false;
        else if (block.dim[a] < 1 || block.dim[a] > OT__WINDOW_EXTENT_MAX)
            return ot__refuse(c, "block_shape is %" PRId64 " at %d, expected 1 to %d", block.dim[a],
                              a, OT__WINDOW_EXTENT_MAX);
    }
    return true;
}

// Elements of a block and positions of it in the image, where they are known.
static bool infer_blocks(ot_infer *c, ot__geometry *g, const ot_shape *image, bool is_known,
                         int64_t *n_block, int64_t *n_places)
{
    ot_shape places = {0};

    *n_block = *n_places = is_known ? 1 : ot_dim_unknown();
    if (!is_known)
        return true;
    if (!ot__geometry_infer(c, g, image, &places))
        return false;
    for (int a = 0; a < g->n_axes; a++) {
        *n_block = ot_infer_mul(c, *n_block, g->kernel[a]);
        *n_places = ot_infer_mul(c, *n_places, places.dim[2 + a]);
    }
    return ot_dim_is_number(*n_block) || ot__refuse(c, "block_shape has too many elements");
}

static void col2im_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, INPUT);
    ot_shape image, y = {.ndim = 2};
    ot__geometry g;
    int64_t n_block, n_places;
    bool is_known;

    if (x->ndim != 3) {
        ot_infer_fail(c, "input has %d axes, expected 3: batch, channels of blocks, blocks",
                      x->ndim);
        return;
    }
    if (!ot__infer_shape_input(c, IMAGE, &image)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, INPUT));
        return;
    }
    if (!infer_block_shape(c, BLOCK, image.ndim, &g, &is_known))
        return;
    y.ndim = 2 + image.ndim;
    for (int a = 0; a < image.ndim; a++)
        y.dim[2 + a] = image.dim[a];
    if (!infer_blocks(c, &g, &y, is_known, &n_block, &n_places))
        return;
    if (ot_dim_is_number(x->dim[1]) && is_known && x->dim[1] % n_block != 0)
        ot_infer_fail(c,
                      "input has %" PRId64 " rows, expected a multiple of the %" PRId64
                      " elements of a block",
                      x->dim[1], n_block);
    else if (ot_dim_is_number(x->dim[2]) && ot_dim_is_number(n_places) && x->dim[2] != n_places)
        ot_infer_fail(c, "input has %" PRId64 " columns, the image %" PRId64 " blocks", x->dim[2],
                      n_places);
    y.dim[0] = x->dim[0];
    y.dim[1] = is_known ? ot_infer_div(c, x->dim[1], n_block) : ot_dim_unknown();
    ot_infer_set(c, 0, ot_infer_dtype(c, INPUT), &y);
}

static void im2col_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, 0);
    ot_shape y = {.ndim = 3};
    ot__geometry g;
    bool is_known;

    if (x->ndim < 3) {
        ot_infer_fail(c, "input has %d axes, expected 3 or more", x->ndim);
        return;
    }
    if (!infer_block_shape(c, 1, x->ndim - 2, &g, &is_known) ||
        !infer_blocks(c, &g, x, is_known, &y.dim[1], &y.dim[2]))
        return;
    y.dim[0] = x->dim[0];
    y.dim[1] = ot_infer_mul(c, y.dim[1], x->dim[1]);
    ot_infer_set(c, 0, ot_infer_dtype(c, 0), &y);
}

// ---- kernels ----

typedef struct block_state {
    ot__geometry geometry; // but the block's shape
} block_state;

static ot_status prep_block_state(ot_prep *p, const ot_arg *image)
{
    block_state *state = ot_prep_state(p, sizeof(*state));
    const char *wrong;

    OT_TRY(ot__made(state));
    wrong = read_block_attrs(&state->geometry, ot_prep_node(p), image->shape.ndim - 2);
    return wrong == NULL ? OT_OK : ot_prep_fail(p, OT_ERR_INVALID, "%s", wrong);
}

static ot_status col2im_prep(ot_prep *p)
{
    return prep_block_state(p, ot_prep_out(p, 0));
}

static ot_status im2col_prep(ot_prep *p)
{
    return prep_block_state(p, ot_prep_in(p, 0));
}

// The window for the block's shape as this run has it, checked against images and columns.
static ot_status run_block_window(const ot_run *r, const ot_arg *image, const ot_arg *columns,
                                  const ot_arg *block, ot__window *window)
{
    ot__geometry g = ((const block_state *)r->state)->geometry;
    ot_shape places = {.ndim = image->shape.ndim};
    int64_t rows = image->shape.dim[1];

    if (block->count != g.n_axes)
        return ot__error(OT_ERR_INVALID, "block_shape has %" PRId64 " numbers, the image %d axes",
                         block->count, g.n_axes);
    for (int a = 0; a < g.n_axes; a++) {
        g.kernel[a] = ot__arg_int(block, a);
        if (g.kernel[a] < 1 || g.kernel[a] > OT__WINDOW_EXTENT_MAX)
            return ot__error(OT_ERR_INVALID, "block_shape is %" PRId64 " at %d, expected 1 to %d",
                             g.kernel[a], a, OT__WINDOW_EXTENT_MAX);
        places.dim[2 + a] = ot__geometry_out(&g, a, image->shape.dim[2 + a]);
        if (ot__mul_overflows(rows, g.kernel[a], &rows))
            return ot__error(OT_ERR_INVALID, "block_shape has too many elements");
    }
    if (rows != columns->shape.dim[1] ||
        ot__dims_count(places.dim + 2, g.n_axes) != columns->shape.dim[2])
        return ot__error(OT_ERR_INVALID,
                         "block_shape asks for columns of shape [%" PRId64 ",%" PRId64 ",%" PRId64
                         "], they have %s",
                         columns->shape.dim[0], rows, ot__dims_count(places.dim + 2, g.n_axes),
                         OT_SHAPE_TEXT(&columns->shape));
    *window = ot__window_make(&g, &image->shape, &places);
    return OT_OK;
}

#define TEMPLATE "ops/conv/col2im.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- gradient ----

static void col2im_grad(ot_grad *g)
{
    ot_value *in[2] = {ot_grad_dy(g, 0), ot_grad_x(g, BLOCK)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.Im2Col", NULL, in, 2, 1);

    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, INPUT, ot_emit_output(g, node, 0));
}

// Im2Col as a convolution of each channel by itself, of which each output channel sees one element
// of the block.
static void im2col_expand(ot_grad *g)
{
    ot_value *x = ot_grad_x(g, 0), *block = ot_grad_x(g, 1), *in[2], *sides[3];
    int n_known;
    const int64_t *known = ot_value_known(block, &n_known), one = 1, open = -1;
    int64_t weights[2 + OT__WINDOW_AXES] = {0, 1}, rows = 1;
    ot_node *conv;

    if (known == NULL || !ot_value_has_shape(x) || n_known > OT__WINDOW_AXES ||
        ot_value_shape(x)->ndim != 2 + n_known || !ot_dim_is_number(ot_value_shape(x)->dim[1]))
        return;
    for (int a = 0; a < n_known; a++) {
        if (!ot_dim_is_number(known[a]) || ot__mul_overflows(rows, known[a], &rows))
            return;
        weights[2 + a] = known[a];
    }
    weights[0] = rows;
    sides[0] = sides[1] = ot_emit_constant_i64(g, &rows, 1);
    in[1] = ot_emit1(g, "EyeLike", ot__emit_zeros(g, ot__emit_concat(g, sides, 2, 0), x));
    in[1] = ot__emit_reshape(g, in[1], weights, 2 + n_known);
    sides[0] = ot_emit_constant_i64(g, &open, 1);
    sides[1] = ot_emit_constant_i64(g, &one, 1);
    sides[2] = ot__emit_extents(g, x, 2, 2 + n_known);
    in[0] = ot_emit2(g, "Reshape", x, ot__emit_concat(g, sides, 3, 0));
    if (in[0] == NULL || in[1] == NULL)
        return;
    conv = ot_emit(g, "Conv", NULL, in, 2, 1);
    ot_emit_forward_attrs(g, conv);
    rows *= ot_value_shape(x)->dim[1];
    sides[0] = ot__emit_extents(g, x, 0, 1);
    sides[1] = ot_emit_constant_i64(g, &rows, 1);
    sides[2] = ot_emit_constant_i64(g, &open, 1);
    in[0] = ot_emit_output(g, conv, 0);
    ot_expand_set(g, 0, ot_emit2(g, "Reshape", in[0], ot__emit_concat(g, sides, 3, 0)));
}

// ---- records ----

static const ot_port col2im_in[] = {{"input", "T", 0},
                                    {"image_shape", "i64", OT_PORT_NO_GRAD},
                                    {"block_shape", "i64", OT_PORT_NO_GRAD},
                                    {0}};
static const ot_port im2col_in[] = {{"input", "T", 0}, {"block_shape", "i64", 0}, {0}};
static const ot_attr_spec block_attrs[] = {
    {.name = "dilations", .kind = OT_ATTRIBUTE_INTS},
    {.name = "pads", .kind = OT_ATTRIBUTE_INTS},
    {.name = "strides", .kind = OT_ATTRIBUTE_INTS},
    {0},
};
static const ot_kernel col2im_kernels[] = {OT__REF_KERNELS(col2im_prep, col2im_run), {0}};
static const ot_kernel im2col_kernels[] = {OT__REF_KERNELS(im2col_prep, im2col_run), {0}};
const ot_op_def ot__op_col2im[] = {
    {.name = "Col2Im",
     .since = 18,
     .inputs = col2im_in,
     .outputs = ot__output_out,
     .attrs = block_attrs,
     .types = "T: f32 f64",
     .infer = col2im_infer,
     .kernels = col2im_kernels,
     .grad = col2im_grad},
    {0},
};
const ot_op_def ot__op_im2col[] = {
    {.domain = "ai.onnxtrain",
     .name = "Im2Col",
     .since = 1,
     .inputs = im2col_in,
     .outputs = ot__output_out,
     .attrs = block_attrs,
     .types = "T: f32 f64",
     .infer = im2col_infer,
     .kernels = im2col_kernels,
     .flags = OT_OP_NO_GRAD,
     .expand = im2col_expand},
    {0},
};
