// SPDX-License-Identifier: Apache-2.0
// Lists of axes, given by an attribute or an input.
#include "ops/move/move.h"

bool ot__axes_init(ot__axes *axes, const int64_t *list, int64_t n, int ndim, int64_t *bad)
{
    *axes = (ot__axes){0};
    for (int64_t i = 0; i < n; i++) {
        int axis;

        *bad = list[i];
        if (!ot__axis_normalize(list[i], ndim, &axis) || axes->has[axis])
            return false;
        axes->has[axis] = true;
        axes->axis[axes->n++] = axis; // at most ndim, as none comes twice
    }
    return true;
}

// The list that a node states; *known is the elements of the input, NULL when not known.
static ot__given find_list(const ot_node *node, const char *attr, bool has_input,
                           const int64_t **known, int *n)
{
    if (attr != NULL && ot_attr_given(node, attr)) {
        *known = ot_attr_ints(node, attr, n);
        return OT__GIVEN;
    }
    if (!has_input)
        return OT__ABSENT;
    return *known != NULL && ot__all_numbers(*known, *n) ? OT__GIVEN : OT__UNKNOWN;
}

static const char axes_text[] = "axis %" PRId64 " is outside %d axes or given twice";

ot__given ot__infer_axes(ot_infer *c, const char *attr, int input, int ndim, ot__axes *axes)
{
    int n = 0;
    const int64_t *list = input < 0 ? NULL : ot_infer_values(c, input, &n);
    const bool has_input = input >= 0 && ot_infer_has(c, input);
    const ot__given given = find_list(ot_infer_node(c), attr, has_input, &list, &n);
    int64_t bad = 0;

    *axes = (ot__axes){0};
    if (given != OT__GIVEN || ot__axes_init(axes, list, n, ndim, &bad))
        return given;
    ot_infer_fail(c, axes_text, bad, ndim);
    return OT__FAILED;
}

ot__given ot__grad_axes(ot_grad *g, const char *attr, int input, int ndim, ot__axes *axes)
{
    const ot_value *value = input < 0 ? NULL : ot_grad_x(g, input);
    int n = 0;
    const int64_t *list = value == NULL ? NULL : ot_value_known(value, &n);
    const ot__given given = find_list(ot_grad_node(g), attr, value != NULL, &list, &n);
    int64_t bad = 0;

    *axes = (ot__axes){0};
    if (given != OT__GIVEN || ot__axes_init(axes, list, n, ndim, &bad))
        return given;
    ot_grad_fail(g, axes_text, bad, ndim);
    return OT__FAILED;
}

ot_status ot__run_axes(const ot_arg *list, int ndim, ot__axes *axes)
{
    int64_t values[OT_MAX_NDIM], bad = 0;

    if (list->count > ndim)
        return ot__error(OT_ERR_INVALID, "%" PRId64 " axes given of a tensor with %d", list->count,
                         ndim);
    for (int64_t i = 0; i < list->count; i++)
        values[i] = ot__arg_int(list, i);
    return ot__axes_init(axes, values, list->count, ndim, &bad)
               ? OT_OK
               : ot__error(OT_ERR_INVALID, axes_text, bad, ndim);
}

ot__given ot__prep_axes(ot_prep *p, const char *attr, int input, int ndim, ot__axes *axes)
{
    const ot_arg *arg = input < 0 ? NULL : ot_prep_in(p, input);
    int n = 0;
    const int64_t *list = NULL;
    const ot__given given = find_list(ot_prep_node(p), attr, arg != NULL, &list, &n);
    int64_t bad = 0;

    *axes = (ot__axes){0};
    if (given == OT__GIVEN) {
        if (ot__axes_init(axes, list, n, ndim, &bad))
            return OT__GIVEN;
        ot_prep_fail(p, OT_ERR_INVALID, axes_text, bad, ndim);
        return OT__FAILED;
    }
    if (given == OT__UNKNOWN && ot_prep_constant(p, input) != NULL) {
        ot_arg fixed = *arg;

        fixed.data = (void *)ot_prep_constant(p, input); // only read
        if (ot__run_axes(&fixed, ndim, axes) == OT_OK)
            return OT__GIVEN;
        ot_prep_fail(p, OT_ERR_INVALID, "%s", ot_error_message());
        return OT__FAILED;
    }
    return given;
}
