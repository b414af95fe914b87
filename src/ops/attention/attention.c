// SPDX-License-Identifier: Apache-2.0
// Reading and checking the attributes of fused attention. Made by a pass, but checked like those of
// a file: kernels rely on them.
#include "ops/attention/attention.h"

#include <stdio.h>
#include <string.h>

enum { VIEW_NUMBERS = 5, N_SIZES = 6, N_AXES = 4, MAX_SIZE = INT32_MAX };

// ---- reading ----

typedef struct reader {
    const ot_node *node;
    ot__attention *a;
    char *why;
} reader;

static bool read_view_numbers(const reader *r, const char *name, int n, int64_t *to)
{
    int found;
    const int64_t *numbers = ot_attr_ints(r->node, name, &found);

    if (found != n) {
        (void)snprintf(r->why, OT__ATTENTION_TEXT, "%s has %d numbers, expected %d", name, found,
                       n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (numbers[i] < 0) {
            (void)snprintf(r->why, OT__ATTENTION_TEXT, "number %d of %s is %" PRId64, i, name,
                           numbers[i]);
            return false;
        }
        to[i] = numbers[i];
    }
    return true;
}

static bool read_sizes(const reader *r)
{
    int64_t size[N_SIZES];

    if (!read_view_numbers(r, "sizes", N_SIZES, size))
        return false;
    for (int i = 0; i < N_SIZES; i++)
        if (size[i] > MAX_SIZE || (i >= N_AXES && size[i] == 0)) {
            (void)snprintf(r->why, OT__ATTENTION_TEXT, "number %d of sizes is %" PRId64, i,
                           size[i]);
            return false;
        }
    r->a->batch = size[0];
    r->a->heads = size[1];
    r->a->queries = size[2];
    r->a->keys = size[3];
    r->a->head_size = size[4];
    r->a->value_size = size[5];
    return true;
}

typedef struct axis {
    int64_t size, stride;
} axis;

static void axes_of(const ot__attention *a, const ot__attention_view *view, axis *axes)
{
    axes[0] = (axis){a->batch, view->lies->batch};
    axes[1] = (axis){a->heads, view->lies->head};
    axes[2] = (axis){view->positions, view->lies->position};
    axes[3] = (axis){view->size, view->lies->element};
}

int64_t ot__attention_view_count(const ot__attention *a, const ot__attention_view *view)
{
    return a->batch * a->heads * view->positions * view->size;
}

// The offset of the last element; INT64_MAX: it is too large.
static int64_t last_of(const ot__attention *a, const ot__attention_view *view)
{
    int64_t last = view->lies->offset;
    axis axes[N_AXES];

    axes_of(a, view, axes);
    for (int i = 0; i < N_AXES; i++) {
        const int64_t steps = OT_MAX(axes[i].size - 1, (int64_t)0);

        if (axes[i].stride > 0 && steps > (INT64_MAX - 1 - last) / axes[i].stride)
            return INT64_MAX;
        last += steps * axes[i].stride;
    }
    return last;
}

static bool view_is_empty(const ot__attention *a, const ot__attention_view *view)
{
    return a->batch == 0 || a->heads == 0 || view->positions == 0;
}

// ---- overlaps ----

// Axes of more than one element, the longest stride first; their number.
static int sorted_axes(const ot__attention *a, const ot__attention_view *view, axis *axes)
{
    axis all[N_AXES];
    int n = 0;

    axes_of(a, view, all);
    for (int i = 0; i < N_AXES; i++) {
        int at = n;

        if (all[i].size <= 1)
            continue;
        for (; at > 0 && axes[at - 1].stride < all[i].stride; at--)
            axes[at] = axes[at - 1];
        axes[at] = all[i];
        n++;
    }
    return n;
}

static int64_t view_extent(const axis *axes, int n)
{
    int64_t extent = 1;

    for (int i = 0; i < n; i++)
        extent += (axes[i].size - 1) * axes[i].stride;
    return extent;
}

// Whether no two places of the view are the same element, by each stride being longer than all that
// lies within it.
static bool is_injective(const ot__attention *a, const ot__attention_view *view)
{
    axis axes[N_AXES];
    const int n = sorted_axes(a, view, axes);

    for (int i = 0; i < n; i++)
        if (axes[i].stride < view_extent(axes + i + 1, n - i - 1))
            return false;
    return true;
}

// Whether two views have no element in common: their ranges have none, or they go through the
// tensor in equal strides, which are longer than what both have within them, and have none in
// common there.
static bool are_apart(const ot__attention *a, const ot__attention_view *x,
                      const ot__attention_view *z)
{
    const int64_t x_first = x->lies->offset, z_first = z->lies->offset;
    axis x_axes[N_AXES], z_axes[N_AXES];
    const int nx = sorted_axes(a, x, x_axes), nz = sorted_axes(a, z, z_axes);

    for (int i = 0;; i++) {
        const int64_t x_end = x_first + view_extent(x_axes + i, nx - i);
        const int64_t z_end = z_first + view_extent(z_axes + i, nz - i);

        if (x_end <= z_first || z_end <= x_first)
            return true;
        if (i >= nx || i >= nz || x_axes[i].stride != z_axes[i].stride ||
            OT_MAX(x_first + view_extent(x_axes + i + 1, nx - i - 1),
                   z_first + view_extent(z_axes + i + 1, nz - i - 1)) -
                    OT_MIN(x_first, z_first) >
                x_axes[i].stride)
            return false;
    }
}

bool ot__attention_views_are_apart(const ot__attention *a, const ot__attention_view *views, int n)
{
    for (int i = 0; i < n; i++) {
        if (view_is_empty(a, &views[i]))
            continue;
        if (!is_injective(a, &views[i]))
            return false;
        for (int k = i + 1; k < n; k++)
            if (!view_is_empty(a, &views[k]) && !are_apart(a, &views[i], &views[k]))
                return false;
    }
    return true;
}

// ---- views ----

// `count`: elements of the tensor.
static bool read_view(const reader *r, const char *name, ot__heads *lies, int64_t positions,
                      int64_t size, int64_t count)
{
    const ot__attention_view view = {lies, positions, size};
    int64_t number[VIEW_NUMBERS], last;

    if (!read_view_numbers(r, name, VIEW_NUMBERS, number))
        return false;
    *lies = (ot__heads){number[0], number[1], number[2], number[3], number[4]};
    last = last_of(r->a, &view);
    if (last < INT64_MAX && (count < 0 || last < count || view_is_empty(r->a, &view)))
        return true;
    (void)snprintf(r->why, OT__ATTENTION_TEXT,
                   "%s reaches element %" PRId64 " of a tensor that has %" PRId64, name, last,
                   count);
    return false;
}

// Elements of one head of q, k or v are there once, so that sizes are no larger than tensors.
static bool read_operand(const reader *r, const char *name, ot__heads *lies, int64_t positions,
                         int64_t size, int64_t count)
{
    const ot__attention one = {.batch = 1, .heads = 1};

    if (!read_view(r, name, lies, positions, size, count))
        return false;
    if (is_injective(&one, &(ot__attention_view){lies, positions, size}))
        return true;
    (void)snprintf(r->why, OT__ATTENTION_TEXT, "%s has the same element twice in a head", name);
    return false;
}

static bool read_y_view(const reader *r, int64_t count)
{
    const ot__attention *a = r->a;

    if (!read_view(r, "y_view", &r->a->y, a->queries, a->value_size, count))
        return false;
    if (ot__attention_views_are_apart(a, &(ot__attention_view){&a->y, a->queries, a->value_size},
                                      1))
        return true;
    (void)snprintf(r->why, OT__ATTENTION_TEXT, "y_view has the same element twice");
    return false;
}

static bool read_mask(const reader *r, int64_t count, ot_dtype type)
{
    if (type == OT_DTYPE_UNDEFINED)
        return true;
    r->a->mask_kind = type == OT_BOOL ? OT__MASK_KEPT : OT__MASK_ADDED;
    return read_view(r, "mask_view", &r->a->mask, r->a->queries, r->a->keys, count);
}

static bool check_dropout(const reader *r)
{
    const double ratio = (double)ot_attr_float(r->node, "dropout");

    if (ratio >= 0 && ratio < 1)
        return true;
    (void)snprintf(r->why, OT__ATTENTION_TEXT, "dropout is %g, expected at least 0 and below 1",
                   ratio);
    return false;
}

bool ot__attention_read(ot__attention *a, const ot_node *node, const ot__attention_counts *counts,
                        ot_dtype mask_type, char *why)
{
    const reader r = {node, a, why};
    const int64_t offset = ot_attr_int(node, "causal_offset");

    *a = (ot__attention){.scale = ot_attr_float(node, "scale"),
                         .fill = ot_attr_float(node, "fill"),
                         .is_causal = ot_attr_int(node, "causal") != 0,
                         .has_zero_rows = ot_attr_int(node, "zero_rows") != 0};
    if (!read_sizes(&r) || !check_dropout(&r))
        return false;
    a->causal_offset = OT_MAX(OT_MIN(offset, a->keys), -a->queries);
    return read_operand(&r, "q_view", &a->q, a->queries, a->head_size, counts->q) &&
           read_operand(&r, "k_view", &a->k, a->keys, a->head_size, counts->k) &&
           read_operand(&r, "v_view", &a->v, a->keys, a->value_size, counts->v) &&
           read_y_view(&r, counts->y) && read_mask(&r, counts->mask, mask_type);
}

bool ot__attention_is_empty(const ot__attention *a)
{
    return a->batch == 0 || a->heads == 0 || a->queries == 0 || a->keys == 0;
}

bool ot__attention_has_rows(const ot_prep *p)
{
    int n;
    const int64_t *sizes = ot_attr_ints(ot_prep_node(p), "sizes", &n);

    for (int i = 0; i < n; i++)
        if (sizes[i] == 0)
            return false;
    return true;
}

// ---- dropout ----

void *ot__attention_state(ot_prep *p, size_t n_bytes, size_t draws_at)
{
    const ot_node *node = ot_prep_node(p);
    const char *name = ot_attr_string(node, "dropout_name");
    char *state = ot_prep_state(p, n_bytes + strlen(name) + 1);

    if (state != NULL)
        *(ot__attention_draws *)(void *)(state + draws_at) = (ot__attention_draws){
            .ratio = (double)ot_attr_float(node, "dropout"),
            .has_seed = ot_attr_given(node, "dropout_seed"),
            .seed = (uint64_t)ot_attr_int(node, "dropout_seed"),
            .name = strcpy(state + n_bytes, name),
        };
    return state;
}

ot__attention_dropout ot__attention_dropout_of(const ot__attention_draws *draws,
                                               const ot_step *step)
{
    if (draws->ratio == 0)
        return (ot__attention_dropout){0};
    return (ot__attention_dropout){draws->ratio,
                                   ot__rng_key_make(draws->has_seed ? draws->seed : step->seed,
                                                    step->counter, step->rank, draws->name)};
}

// ---- shape inference ----

static int64_t count_of(ot_infer *c, int input)
{
    const ot_shape *shape = ot_infer_shape(c, input);
    int64_t count;

    if (!ot_infer_has(c, input))
        return 0;
    for (int i = 0; i < shape->ndim; i++)
        if (!ot_dim_is_number(shape->dim[i]))
            return -1;
    return ot__shape_count(shape, &count) ? count : 0;
}

bool ot__attention_infer(ot_infer *c, int first, int mask, ot__attention *a, ot_shape *y)
{
    const ot_node *node = ot_infer_node(c);
    const ot_dtype type = ot_infer_dtype(c, first);
    const ot_dtype mask_type = ot_infer_has(c, mask) ? ot_infer_dtype(c, mask) : OT_DTYPE_UNDEFINED;
    ot__attention_counts counts = {.q = count_of(c, first),
                                   .k = count_of(c, first + 1),
                                   .v = count_of(c, first + 2),
                                   .mask = count_of(c, mask)};
    char why[OT__ATTENTION_TEXT];
    int n;
    const int64_t *dims = ot_attr_ints(node, "y_shape", &n);

    *y = (ot_shape){.ndim = OT_MIN(n, (int)OT_MAX_NDIM)};
    for (int i = 0; i < y->ndim; i++)
        y->dim[i] = dims[i];
    if (n > OT_MAX_NDIM || ot__shape_check(y, &counts.y) != OT_OK)
        return ot__refuse(c, "y_shape is not the shape of a tensor");
    if (mask_type != OT_DTYPE_UNDEFINED && mask_type != OT_BOOL &&
        (mask_type == OT_F64) != (type == OT_F64))
        return ot__refuse(c, "the mask is %s, q is %s", ot_dtype_name(mask_type),
                          ot_dtype_name(type));
    return ot__attention_read(a, node, &counts, mask_type, why) || ot__refuse(c, "%s", why);
}

static int64_t given_count(const ot_prep *p, int i)
{
    return i < ot_prep_input_count(p) && ot_prep_in(p, i) != NULL ? ot_prep_in(p, i)->count : 0;
}

ot_status ot__attention_prepare(ot_prep *p, int first, int mask, const ot_arg *y, ot__attention *a)
{
    const ot_arg *m = mask < ot_prep_input_count(p) ? ot_prep_in(p, mask) : NULL;
    const ot__attention_counts counts = {.q = given_count(p, first),
                                         .k = given_count(p, first + 1),
                                         .v = given_count(p, first + 2),
                                         .y = y->count,
                                         .mask = given_count(p, mask)};
    char why[OT__ATTENTION_TEXT];

    if (ot__attention_read(a, ot_prep_node(p), &counts, m == NULL ? OT_DTYPE_UNDEFINED : m->dtype,
                           why))
        return OT_OK;
    return ot_prep_fail(p, OT_ERR_INVALID, "%s", why);
}
