// SPDX-License-Identifier: Apache-2.0
// What a Resize node says: attributes, and the shape of its result.
#include "ops/resize/resize.h"

#include <math.h>

#include "op/attr_word.h"

static const double largest_size = 4611686018427387904.0; // 2^62

// ---- attributes ----

static bool read_resize_words(ot_infer *c, const ot_node *node, ot__resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const places[] = {"half_pixel",
                                         "half_pixel_symmetric",
                                         "pytorch_half_pixel",
                                         "align_corners",
                                         "asymmetric",
                                         "tf_crop_and_resize",
                                         NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};
    const int mode = ot__attr_word(c, node, "mode", modes);
    const int place = ot__attr_word(c, node, "coordinate_transformation_mode", places);
    const int rounding = ot__attr_word(c, node, "nearest_mode", roundings);
    const int aspect = ot__attr_word(c, node, "keep_aspect_ratio_policy", aspects);

    if (mode < 0 || place < 0 || rounding < 0 || aspect < 0)
        return false;
    r->line.mode = (ot__resize_mode)mode;
    r->line.place = (ot__resize_place)place;
    r->line.rounding =
        ot_attr_given(node, OT__RESIZE_OLD) ? OT__ROUND_BY_SCALE : (ot__resize_rounding)rounding;
    r->aspect = (ot__resize_aspect)aspect;
    return true;
}

static bool read_resize_axes(ot_infer *c, const ot_node *node, int ndim, ot__resize *r)
{
    int n;
    const int64_t *axes = ot_attr_ints(node, "axes", &n);

    for (int k = 0; k < ndim; k++)
        r->position[k] = axes == NULL ? k : -1;
    r->n_listed = axes == NULL ? ndim : n;
    for (int i = 0; axes != NULL && i < n; i++) {
        int axis;

        if (!ot__axis_normalize(axes[i], ndim, &axis) || r->position[axis] >= 0) {
            if (c != NULL)
                ot_infer_fail(c, "axes has %" PRId64 ", expected each of X's %d axes once at most",
                              axes[i], ndim);
            return false;
        }
        r->position[axis] = i;
    }
    return true;
}

bool ot__resize_read(ot_infer *c, const ot_node *node, int ndim, ot__resize *r)
{
    *r = (ot__resize){.line = {.cubic_a = (double)ot_attr_float(node, "cubic_coeff_a"),
                               .antialias = ot_attr_int(node, "antialias") != 0,
                               .exclude_outside = ot_attr_int(node, "exclude_outside") != 0}};
    if (!read_resize_words(c, node, r) || !read_resize_axes(c, node, ndim, r))
        return false;
    if (r->line.place == OT__PLACE_CROP)
        r->fill = (double)ot_attr_float(node, "extrapolation_value");
    if (r->line.antialias && r->line.mode == OT__RESIZE_NEAREST) {
        if (c != NULL)
            ot_infer_fail(c, "antialias is for the modes linear and cubic");
        return false;
    }
    if (!isfinite(r->line.cubic_a)) {
        if (c != NULL)
            ot_infer_fail(c, "cubic_coeff_a is not a finite number");
        return false;
    }
    return true;
}

// ---- lists ----

// Whether input i is given and not an empty list, which stood for none in opset 11.
static bool has_list(const ot_infer *c, int i)
{
    const ot_shape *list = ot_infer_shape(c, i);

    return ot_infer_has(c, i) && !(list->ndim == 1 && list->dim[0] == 0);
}

static bool check_list(ot_infer *c, int i, int64_t n)
{
    const ot_shape *list = ot_infer_shape(c, i);
    const char *name = ot__op_input_port(ot_infer_node(c)->op, i)->name;

    if (list->ndim != 1)
        return ot__refuse(c, "%s has %d axes, expected 1", name, list->ndim);
    if (ot__dim_differs(list->dim[0], n))
        return ot__refuse(c, "%s has %" PRId64 " elements, expected %" PRId64, name, list->dim[0],
                          n);
    return true;
}

// ---- sizes from scales ----

// Of a constant list of scales; roi is NULL where it is not read, or not constant.
static bool scaled_size(ot_infer *c, const ot__resize *r, const ot_tensor *scales,
                        const ot_tensor *roi, int axis, int64_t in, int64_t *out)
{
    const int at = r->position[axis];
    const double scale = ot__tensor_get_f64(scales, at);
    double start = 0, end = 1, size;

    *out = ot_dim_unknown();
    if (!(scale > 0) || !isfinite(scale))
        return ot__refuse(c, "scales has %g, expected a finite number above 0", scale);
    if (r->line.place == OT__PLACE_CROP) {
        if (roi == NULL)
            return true;
        start = ot__tensor_get_f64(roi, at);
        end = ot__tensor_get_f64(roi, at + r->n_listed);
        if (!isfinite(start) || !isfinite(end))
            return ot__refuse(c, "roi has a number that is not finite");
    }
    if (!ot_dim_is_number(in)) {
        if (start == 0 && end == 1 && floor(scale) == scale && scale < largest_size)
            *out = ot_infer_mul(c, in, (int64_t)scale);
        return true;
    }
    // ONNX's own inference computes in f32.
    size = floor((double)((float)in * ((float)end - (float)start) * (float)scale));
    if (!(size < largest_size))
        return ot__refuse(c, "axis %d of size %" PRId64 ", times %g, is too large", axis, in,
                          scale);
    *out = (int64_t)OT_MAX(size, 0.0);
    if (r->line.antialias && scale * (double)in < 1)
        return ot__refuse(c, "a scale of %g leaves nothing of axis %d, of size %" PRId64, scale,
                          axis, in);
    return true;
}

// ---- sizes as they are given ----

// The scale that all axes listed have, where the ratio of sizes stays; false: it is not known.
static bool common_scale(const ot__resize *r, const ot_shape *x, const int64_t *sizes,
                         double *scale)
{
    *scale = r->aspect == OT__ASPECT_NOT_LARGER ? INFINITY : 0;
    for (int k = 0; k < x->ndim; k++) {
        const int at = r->position[k];
        double own;

        if (at < 0)
            continue;
        if (!ot_dim_is_number(x->dim[k]) || !ot_dim_is_number(sizes[at]) || x->dim[k] < 1)
            return false;
        own = (double)sizes[at] / (double)x->dim[k];
        *scale = r->aspect == OT__ASPECT_NOT_LARGER ? OT_MIN(*scale, own) : OT_MAX(*scale, own);
    }
    return r->n_listed > 0;
}

static bool given_sizes(ot_infer *c, const ot__resize *r, int sizes, const ot_shape *x, ot_shape *y)
{
    int n;
    const int64_t *known = ot_infer_values(c, sizes, &n);
    double scale = NAN;
    const bool is_common = r->aspect != OT__ASPECT_STRETCH;
    const bool has_scale =
        is_common && known != NULL && n == r->n_listed && common_scale(r, x, known, &scale);

    for (int k = 0; k < x->ndim; k++) {
        const int at = r->position[k];

        if (at < 0)
            continue;
        y->dim[k] = ot_dim_unknown();
        if (known == NULL || n != r->n_listed)
            continue;
        if (ot_dim_is_number(known[at]) && known[at] < 0)
            return ot__refuse(c, "sizes has %" PRId64 " for axis %d", known[at], k);
        if (!is_common) {
            y->dim[k] = known[at];
        } else if (has_scale) {
            const double size = floor(scale * (double)x->dim[k] + 0.5);

            if (!(size < largest_size))
                return ot__refuse(c, "axis %d of size %" PRId64 ", times %g, is too large", k,
                                  x->dim[k], scale);
            y->dim[k] = (int64_t)size;
        }
    }
    return true;
}

static bool given_scales(ot_infer *c, const ot__resize *r, int first, const ot_shape *x,
                         ot_shape *y)
{
    const ot_tensor *scales = ot_infer_constant(c, first + 1);
    const ot_tensor *roi = r->line.place == OT__PLACE_CROP ? ot_infer_constant(c, first) : NULL;

    for (int k = 0; k < x->ndim; k++) {
        if (r->position[k] < 0)
            continue;
        if (scales == NULL)
            y->dim[k] = ot_dim_unknown();
        else if (!scaled_size(c, r, scales, roi, k, x->dim[k], &y->dim[k]))
            return false;
    }
    return true;
}

bool ot__resize_infer(ot_infer *c, const ot_shape *x, int first, ot_shape *y)
{
    const int roi = first, scales = first + 1, sizes = first + 2;
    const bool has_scales = has_list(c, scales), has_sizes = has_list(c, sizes);
    ot__resize r;

    *y = *x;
    if (!ot__resize_read(c, ot_infer_node(c), x->ndim, &r))
        return false;
    if (has_scales == has_sizes)
        return ot__refuse(c, "one of scales and sizes is to be given, %s",
                          has_scales ? "both are" : "none is");
    if (!check_list(c, has_scales ? scales : sizes, r.n_listed))
        return false;
    if (r.line.place == OT__PLACE_CROP &&
        (!has_list(c, roi) || !check_list(c, roi, 2 * (int64_t)r.n_listed)))
        return ot__refuse(c, "tf_crop_and_resize needs roi with two numbers for each of %d axes",
                          r.n_listed);
    if (has_scales && !given_scales(c, &r, first, x, y))
        return false;
    if (has_sizes && !given_sizes(c, &r, sizes, x, y))
        return false;
    for (int k = 0; k < x->ndim; k++)
        if (x->dim[k] == 0 && ot_dim_is_number(y->dim[k]) && y->dim[k] != 0)
            return ot__refuse(c, "axis %d has no elements to make %" PRId64 " of", k, y->dim[k]);
    return true;
}

// ---- lines ----

void ot__resize_lines(const ot__resize *r, const ot_shape *x, const ot_shape *y, const double *roi,
                      const double *scales, const double *sizes, ot__resize_line *lines)
{
    double common = r->aspect == OT__ASPECT_NOT_LARGER ? INFINITY : 0;

    for (int k = 0; k < x->ndim; k++) {
        const int at = r->position[k];
        ot__resize_line *l = &lines[k];

        *l = r->line;
        l->in = x->dim[k];
        l->out = y->dim[k];
        l->start = roi != NULL && at >= 0 ? roi[at] : 0;
        l->end = roi != NULL && at >= 0 ? roi[at + r->n_listed] : 1;
        l->scale = at < 0           ? 1
                   : scales != NULL ? scales[at]
                                    : (double)l->out / (double)OT_MAX(l->in, 1);
        if (at >= 0 && sizes != NULL && r->aspect != OT__ASPECT_STRETCH) {
            const double own = sizes[at] / (double)OT_MAX(l->in, 1);

            common = r->aspect == OT__ASPECT_NOT_LARGER ? OT_MIN(common, own) : OT_MAX(common, own);
        }
    }
    for (int k = 0; sizes != NULL && r->aspect != OT__ASPECT_STRETCH && k < x->ndim; k++)
        if (r->position[k] >= 0)
            lines[k].scale = common;
}
