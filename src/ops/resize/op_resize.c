// SPDX-License-Identifier: Apache-2.0
// Resize: every axis is resized by itself, so that the result is a sum over lines of lines. The
// gradient goes the same way back, with the sums the other way round.
#include <string.h>

#include "op/grad.h"
#include "ops/move/move.h"
#include "ops/resize/resize.h"

enum { DY, SHAPE }; // inputs of the gradient, then those of Resize behind X

static void resize_infer(ot_infer *c)
{
    ot_shape y;

    if (ot__resize_infer(c, ot_infer_shape(c, OT__RESIZE_X), OT__RESIZE_ROI, &y))
        ot_infer_set(c, 0, ot_infer_dtype(c, OT__RESIZE_X), &y);
}

static void resize_grad_infer(ot_infer *c)
{
    const ot_shape *dy = ot_infer_shape(c, DY);
    ot_shape x, y;

    if (!ot__infer_shape_input(c, SHAPE, &x)) {
        ot_infer_set_unknown(c, 0, ot_infer_dtype(c, DY));
        return;
    }
    if (!ot__resize_infer(c, &x, SHAPE + 1, &y))
        return;
    if (!ot__shape_may_equal(&y, dy))
        ot_infer_fail(c, "dY has not the shape that X is resized to");
    ot_infer_set(c, 0, ot_infer_dtype(c, DY), &x);
}

// ---- preparing ----

// What is known of a node for good: the sums of all lines, or how many there may be at most.
typedef struct resize_state {
    bool is_ready; // else they are made in each run, of the elements that inputs have then
    ot__resize resize;
    int64_t n_pairs[OT_MAX_NDIM];
    ot__resize_passes passes;
    // behind it: what the passes point to
} resize_state;

static const ot_arg *list_arg(const ot_arg *const *in, int n_in, int i)
{
    return i < n_in && in[i] != NULL && in[i]->count > 0 ? in[i] : NULL;
}

static void read_numbers_of(const ot_arg *arg, const void *elements, double *list)
{
    if (arg != NULL)
        (void)ot__convert(list, OT_F64, elements, arg->dtype, OT_MIN(arg->count, OT__RESIZE_LIST));
}

// The lines, by lists of which those that are needed are given; in[first] is roi.
static ot_status read_lines(const ot__resize *r, const ot_arg *const *in, int n_in, int first,
                            const void *const *elements, const ot_shape *x, const ot_shape *y,
                            ot__resize_line *lines)
{
    double lists[3][OT__RESIZE_LIST];
    const double *given[3] = {NULL};

    for (int i = 0; i < 3; i++) {
        const ot_arg *arg = list_arg(in, n_in, first + i);

        if (arg == NULL || elements[i] == NULL || (i == 0 && r->line.place != OT__PLACE_CROP))
            continue;
        read_numbers_of(arg, elements[i], lists[i]);
        given[i] = lists[i];
    }
    ot__resize_lines(r, x, y, given[0], given[1], given[2], lines);
    return ot__resize_check(lines, x->ndim);
}

// Whether all that lines depend on is constant.
static bool lists_are_constant(const ot_prep *p, const ot__resize *r, int first)
{
    const bool needed[] = {r->line.place == OT__PLACE_CROP, true, r->aspect != OT__ASPECT_STRETCH};

    for (int i = 0; i < 3; i++)
        if (needed[i] && list_arg(p->in, p->n_in, first + i) != NULL &&
            ot_prep_constant(p, first + i) == NULL)
            return false;
    return true;
}

// Longer lines are made in a run, for which there must be the memory first.
static bool are_short(const ot_shape *y)
{
    enum { SHORT_LINE = 1 << 22 };

    for (int k = 0; k < y->ndim; k++)
        if (y->dim[k] > SHORT_LINE)
            return false;
    return true;
}

static ot_status prepare_lines(ot_prep *p, const ot_shape *x, const ot_shape *y, int first,
                               bool is_gradient)
{
    const size_t size = ot_dtype_size(ot_prep_in(p, 0)->dtype);
    const void *elements[3] = {NULL};
    ot__resize_line lines[OT_MAX_NDIM];
    int64_t n_pairs[OT_MAX_NDIM];
    resize_state *s;
    ot__resize r;
    bool is_ready;
    size_t n_bytes;

    (void)ot__resize_read(NULL, ot_prep_node(p), x->ndim, &r);
    is_ready = lists_are_constant(p, &r, first) && are_short(y);
    for (int i = 0; is_ready && i < 3; i++)
        elements[i] = first + i < p->n_in ? ot_prep_constant(p, first + i) : NULL;
    if (is_ready) {
        OT_TRY(read_lines(&r, p->in, p->n_in, first, elements, x, y, lines));
        ot__resize_count(lines, x->ndim, n_pairs);
    } else {
        ot__resize_bound(&r, x, y, n_pairs);
    }
    if (!ot__resize_bytes(x, y, n_pairs, is_gradient, &n_bytes))
        return ot_prep_fail(p, OT_ERR_INVALID, "the result is too large");
    s = ot_prep_state(p, sizeof *s + (is_ready ? n_bytes : 0));
    OT_TRY(ot__made(s));
    s->is_ready = is_ready;
    s->resize = r;
    memcpy(s->n_pairs, n_pairs, sizeof n_pairs);
    if (is_ready)
        ot__resize_make(&s->passes, lines, x, y, n_pairs, r.fill, is_gradient, (char *)(s + 1));
    else
        s->passes.most = ot__resize_most(x, y, is_gradient);
    ot_prep_scratch(p, (is_ready ? 0 : n_bytes) + 2 * (size_t)s->passes.most * size);
    return OT_OK;
}

static ot_status resize_prepare(ot_prep *p)
{
    return prepare_lines(p, &ot_prep_in(p, OT__RESIZE_X)->shape, &ot_prep_out(p, 0)->shape,
                         OT__RESIZE_ROI, false);
}

static ot_status resize_grad_prepare(ot_prep *p)
{
    return prepare_lines(p, &ot_prep_out(p, 0)->shape, &ot_prep_in(p, DY)->shape, SHAPE + 1, true);
}

// There is no scratch where nothing is needed of it.
static void *behind(void *scratch, size_t n_bytes)
{
    return n_bytes > 0 ? (char *)scratch + n_bytes : scratch;
}

// The passes of this run; made at `memory` where prepare could not make them.
static ot_status passes_of_run(const ot_run *r, bool is_gradient, char *memory,
                               ot__resize_passes *passes)
{
    const resize_state *s = r->state;
    const int first = is_gradient ? SHAPE + 1 : OT__RESIZE_ROI;
    const ot_shape *x = is_gradient ? &r->out[0]->shape : &r->in[0]->shape;
    const ot_shape *y = is_gradient ? &r->in[0]->shape : &r->out[0]->shape;
    ot__resize_line lines[OT_MAX_NDIM];
    int64_t n_pairs[OT_MAX_NDIM];
    const void *elements[3] = {NULL};

    *passes = s->passes;
    if (s->is_ready)
        return OT_OK;
    for (int i = 0; i < 3; i++)
        elements[i] = ot__run_in(r, first + i);
    OT_TRY(read_lines(&s->resize, r->in, r->n_in, first, elements, x, y, lines));
    ot__resize_count(lines, x->ndim, n_pairs);
    for (int k = 0; k < x->ndim; k++)
        if (n_pairs[k] > s->n_pairs[k])
            return ot__error(OT_ERR_INVALID,
                             "Resize: a scale of %g does not make %" PRId64 " of %" PRId64
                             " elements along axis %d",
                             lines[k].scale, lines[k].out, lines[k].in, k);
    ot__resize_make(passes, lines, x, y, n_pairs, s->resize.fill, is_gradient, memory);
    return OT_OK;
}

#define TEMPLATE "ops/resize/resize.tmpl.h"
#include "kernels/by_float.tmpl.h"

// ---- gradient ----

static void resize_grad(ot_grad *g)
{
    ot_value *in[] = {ot_grad_dy(g, 0), ot_emit_shape(g, ot_grad_x(g, OT__RESIZE_X)), NULL, NULL,
                      NULL};
    const int n = ot_grad_input_count(g);
    ot_node *node;

    for (int i = OT__RESIZE_ROI; i < n; i++)
        in[1 + i] = ot_grad_x(g, i);
    node = ot_emit(g, "ai.onnxtrain.ResizeGrad", NULL, in, n + 1, 1);
    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, OT__RESIZE_X, ot_emit_output(g, node, 0));
}

// ---- older contracts ----

// (X, scales) becomes (X, roi, scales).
static void move_scales(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);
    ot_value **in = ot__arena_alloc(node->graph->model->arena, 3 * sizeof *in);

    ot__upgrade_made(u, in != NULL);
    if (in == NULL)
        return;
    in[OT__RESIZE_X] = node->inputs[0];
    in[OT__RESIZE_ROI] = NULL;
    in[OT__RESIZE_SCALES] = node->inputs[1];
    node->inputs = in;
    node->n_inputs = 3;
}

static void resize_upgrade_10(ot_upgrade *u)
{
    move_scales(u);
    ot_upgrade_set_string(u, "coordinate_transformation_mode", "asymmetric");
    ot_upgrade_set_string(u, "nearest_mode", "floor");
    ot_upgrade_set_int(u, OT__RESIZE_OLD, 1);
}

static void upsample_upgrade_9(ot_upgrade *u)
{
    resize_upgrade_10(u);
    ot_upgrade_rename(u, "Resize");
}

// Attribute `scales` becomes an input.
static void upsample_upgrade_7(ot_upgrade *u)
{
    ot_node *node = ot_upgrade_node(u);
    ot__builder b = {.graph = node->graph};
    int n;
    const float *scales = ot_attr_floats(node, "scales", &n);
    ot_value **in = ot__arena_alloc(node->graph->model->arena, 2 * sizeof *in), *list;

    ot__upgrade_made(u, in != NULL);
    list = ot__build_initializer(&b, ot__build_name(&b, "%s_scales", node->outputs[0]->name),
                                 OT_F32, &OT_SHAPE(n));
    ot__upgrade_made(u, list != NULL);
    if (in == NULL || list == NULL)
        return;
    if (n > 0)
        memcpy(list->constant->data, scales, (size_t)n * sizeof *scales);
    in[0] = node->inputs[0];
    in[1] = list;
    node->inputs = in;
    node->n_inputs = 2;
    ot_upgrade_remove_attr(u, "scales");
}

// ---- records ----

static const ot_port resize_in[] = {
    {"X", "T1", 0},
    {"roi", "T2", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"scales", "f32", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"sizes", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port resize_grad_in[] = {
    {"dY", "T1", 0},
    {"shape", "i64", 0},
    {"roi", "T2", OT_PORT_OPTIONAL},
    {"scales", "f32", OT_PORT_OPTIONAL},
    {"sizes", "i64", OT_PORT_OPTIONAL},
    {0},
};
static const ot_port resize_in_10[] = {{"X", "T1", 0}, {"scales", "f32", OT_PORT_NO_GRAD}, {0}};
static const ot_port upsample_in_7[] = {{"X", "T1", 0}, {0}};
static const ot_port resize_out[] = {{"Y", "T1", 0}, {0}};
static const ot_port resize_grad_out[] = {{"dX", "T1", 0}, {0}};
// Those of all opsets, and first those of the oldest.
static const ot_attr_spec upsample_attrs_7[] = {
    OT__STRING_ATTR("mode", "nearest"),
    {.name = "scales", .kind = OT_ATTRIBUTE_FLOATS, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_attr_spec resize_attrs_10[] = {OT__STRING_ATTR("mode", "nearest"), {0}};
static const ot_attr_spec resize_attrs[] = {
    OT__FLAG_ATTR("antialias", 0),
    {.name = "axes", .kind = OT_ATTRIBUTE_INTS},
    OT__STRING_ATTR("coordinate_transformation_mode", "half_pixel"),
    OT__FLOAT_ATTR("cubic_coeff_a", -0.75F),
    OT__FLAG_ATTR("exclude_outside", 0),
    OT__FLOAT_ATTR("extrapolation_value", 0.0F),
    OT__STRING_ATTR("keep_aspect_ratio_policy", "stretch"),
    OT__STRING_ATTR("mode", "nearest"),
    OT__STRING_ATTR("nearest_mode", "round_prefer_floor"),
    {0},
};
static const ot_kernel resize_kernels[] = {
    OT__REF_KERNEL("T1: f32", resize_prepare, resize_run_f32),
    OT__REF_KERNEL("T1: f64", resize_prepare, resize_run_f64),
    {0},
};
static const ot_kernel resize_grad_kernels[] = {
    OT__REF_KERNEL("T1: f32", resize_grad_prepare, resize_grad_run_f32),
    OT__REF_KERNEL("T1: f64", resize_grad_prepare, resize_grad_run_f64),
    {0},
};
#define RESIZE .outputs = resize_out, .types = "T1: f32 f64; T2: f32 f64"
const ot_op_def ot__op_resize[] = {
    {RESIZE, .name = "Resize", .since = 10, .inputs = resize_in_10, .attrs = resize_attrs_10,
     .infer = resize_infer, .upgrade = resize_upgrade_10},
    {RESIZE, .name = "Resize", .since = 11, .inputs = resize_in, .attrs = resize_attrs,
     .infer = resize_infer, .kernels = resize_kernels, .grad = resize_grad},
    {0},
};
const ot_op_def ot__op_upsample[] = {
    {RESIZE, .name = "Upsample", .since = 7, .inputs = upsample_in_7, .attrs = upsample_attrs_7,
     .infer = resize_infer, .upgrade = upsample_upgrade_7},
    {RESIZE, .name = "Upsample", .since = 9, .inputs = resize_in_10, .attrs = resize_attrs_10,
     .infer = resize_infer, .upgrade = upsample_upgrade_9},
    {0},
};
const ot_op_def ot__op_resize_grad[] = {
    {.domain = "ai.onnxtrain",
     .name = "ResizeGrad",
     .since = 1,
     .inputs = resize_grad_in,
     .outputs = resize_grad_out,
     .attrs = resize_attrs,
     .types = "T1: f32 f64; T2: f32 f64",
     .infer = resize_grad_infer,
     .kernels = resize_grad_kernels,
     .flags = OT_OP_NO_GRAD},
    {0},
};
