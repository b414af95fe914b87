// SPDX-License-Identifier: Apache-2.0
// TensorScatter: a cache of sequences, in which an update replaces some steps in a row; where they
// begin is given for each sequence.
#include "op/expand.h"
#include "ops/move/move.h"

#include <string.h>

enum { CACHE, UPDATE, BEGINS }; // inputs

static bool is_circular(const ot_node *node)
{
    return strcmp(ot_attr_string(node, "mode"), "circular") == 0;
}

static bool infer_update(ot_infer *c, int axis)
{
    const ot_shape *cache = ot_infer_shape(c, CACHE), *update = ot_infer_shape(c, UPDATE);
    const ot_shape *begins = ot_infer_shape(c, BEGINS);

    for (int k = 0; k < cache->ndim; k++) {
        const int64_t has = cache->dim[k], gets = update->dim[k];

        if (k != axis && ot__dim_differs(has, gets))
            return ot__refuse(c, "update has size %" PRId64 " at axis %d, past_cache %" PRId64,
                              gets, k, has);
        if (k == axis && ot_dim_is_number(has) && ot_dim_is_number(gets) && gets > has)
            return ot__refuse(c, "update has %" PRId64 " steps, past_cache %" PRId64, gets, has);
    }
    if (ot_infer_has(c, BEGINS) &&
        (begins->ndim != 1 || ot__dim_differs(begins->dim[0], cache->dim[0])))
        return ot__refuse(c, "write_indices must be a list of as many numbers as past_cache has "
                             "sequences");
    return true;
}

static void tensor_scatter_infer(ot_infer *c)
{
    const ot_node *node = ot_infer_node(c);
    const ot_shape *cache = ot_infer_shape(c, CACHE), *update = ot_infer_shape(c, UPDATE);
    const char *mode = ot_attr_string(node, "mode");
    int axis;

    if (strcmp(mode, "linear") != 0 && !is_circular(node)) {
        ot_infer_fail(c, "mode is '%s', known: linear circular", mode);
        return;
    }
    if (!ot_infer_axis(c, ot_attr_int(node, "axis"), cache->ndim, &axis))
        return;
    if (axis == 0)
        ot_infer_fail(c, "axis is 0, which counts sequences");
    else if (update->ndim != cache->ndim)
        ot_infer_fail(c, "update has %d axes, past_cache has %d", update->ndim, cache->ndim);
    else if (infer_update(c, axis))
        ot_infer_set(c, 0, ot_infer_dtype(c, CACHE), cache);
}

typedef struct cache_state {
    int64_t n_batch, n_between; // axis 0, and those between it and the steps
    int64_t n_steps, n_new, inner;
    bool is_circular;
    size_t size;
    ot__scatter_function put;
} cache_state;

static ot_status tensor_scatter_prep(ot_prep *p)
{
    const ot_arg *cache = ot_prep_in(p, CACHE), *update = ot_prep_in(p, UPDATE);
    const ot_shape *x = &cache->shape;
    cache_state *state = ot_prep_state(p, sizeof(*state));
    int axis = 0;

    OT_TRY(ot__made(state));
    (void)ot__axis_normalize(ot_attr_int(ot_prep_node(p), "axis"), x->ndim, &axis);
    state->is_circular = is_circular(ot_prep_node(p));
    state->n_batch = x->dim[0];
    state->n_steps = x->dim[axis];
    state->n_new = update->shape.dim[axis];
    if (update->count > 0) {
        state->n_between = ot__dims_count(x->dim + 1, axis - 1);
        state->inner = ot__dims_count(x->dim + axis + 1, x->ndim - axis - 1);
        ot_prep_scratch(p, (size_t)(update->count / state->inner) * sizeof(int64_t));
    }
    state->put = ot__ref_scatter_find(cache->dtype, OT__SCATTER_NONE);
    return ot__prep_element_size(p, cache, &state->size);
}

// Where the update of a sequence begins.
static ot_status find_begin(const ot_run *r, int64_t sequence, int64_t *begin)
{
    const cache_state *s = r->state;
    const ot_arg *begins = r->n_in > BEGINS ? r->in[BEGINS] : NULL;
    const int64_t given = begins == NULL ? 0 : ot__arg_int(begins, sequence);

    if (s->is_circular && s->n_steps > 0) {
        *begin = given % s->n_steps + (given % s->n_steps < 0 ? s->n_steps : 0);
        return OT_OK;
    }
    *begin = given;
    return given >= 0 && given <= s->n_steps - s->n_new
               ? OT_OK
               : ot__error(OT_ERR_INVALID,
                           "write_indices is %" PRId64 " at %" PRId64 ", expected 0 to %" PRId64
                           ": the update has %" PRId64 " steps, the cache %" PRId64,
                           given, sequence, s->n_steps - s->n_new, s->n_new, s->n_steps);
}

static ot_status tensor_scatter_run(const ot_run *r)
{
    const cache_state *s = r->state;
    const ot_arg *y = r->out[0];
    int64_t *offset = r->scratch, n = 0, begin = 0;

    for (int64_t b = 0; b < s->n_batch; b++) {
        OT_TRY(find_begin(r, b, &begin));
        for (int64_t k = b * s->n_between; k < (b + 1) * s->n_between; k++)
            for (int64_t i = 0; i < s->n_new; i++) {
                const int64_t at = begin + i;

                offset[n++] =
                    (k * s->n_steps + (at < s->n_steps ? at : at - s->n_steps)) * s->inner;
            }
    }
    s->put(y->data, r->in[CACHE]->data, offset, r->in[UPDATE]->data, n, s->inner, y->count,
           OT__SCATTER_NONE);
    return OT_OK;
}

// ---- gradients ----

// d past_cache = dY with zeros where the update is.
static void cache_grad(ot_grad *g)
{
    ot_value *in[3] = {ot_grad_dy(g, 0), NULL, ot_grad_x(g, BEGINS)};
    ot_node *node;

    in[1] = ot_emit_zeros_like(g, ot_grad_x(g, UPDATE));
    node = ot_emit(g, "TensorScatter", NULL, in, in[2] == NULL ? 2 : 3, 1);
    ot_emit_forward_attrs(g, node);
    ot_grad_set_dx(g, CACHE, ot_emit_output(g, node, 0));
}

static ot_value *emit_mod(ot_grad *g, ot_value *steps, int axis)
{
    return ot_emit2(g, "Mod", steps, ot__emit_extents(g, ot_grad_x(g, CACHE), axis, axis + 1));
}

// The steps that were replaced: a row of them for each sequence.
static ot_value *emit_steps(ot_grad *g, ot_value *n_new, int axis)
{
    const bool wraps = is_circular(ot_grad_node(g));
    const int64_t last = -1;
    ot_value *steps = ot__emit_count_up(g, ot__emit_at(g, n_new, 0)), *begins;

    begins = wraps ? emit_mod(g, ot_grad_x(g, BEGINS), axis) : ot_grad_x(g, BEGINS);
    begins = ot_emit2(g, "Unsqueeze", begins, ot_emit_constant_i64(g, &last, 1));
    steps = ot_emit2(g, "Add", begins, steps);
    steps = wraps ? emit_mod(g, steps, axis) : steps;
    return ot_emit2(g, "Unsqueeze", steps, ot_emit_constant_i64(g, &last, 1));
}

// d update = the steps of dY that it has replaced, found with the steps as axis 1.
static void update_grad(ot_grad *g, int ndim, int axis)
{
    ot_value *dy = ot_grad_dy(g, 0), *n_new, *in[4];
    int64_t front[OT_MAX_NDIM], back[OT_MAX_NDIM];
    const int64_t zero = 0, along = axis;

    if (ot_value_shape(ot_grad_x(g, CACHE))->dim[axis] == 0) { // a step counts modulo their number
        ot_grad_set_dx(g, UPDATE, ot_emit_zeros_like(g, ot_grad_x(g, UPDATE)));
        return;
    }
    n_new = ot__emit_extents(g, ot_grad_x(g, UPDATE), axis, axis + 1);
    if (ot_grad_x(g, BEGINS) == NULL) {
        in[0] = dy;
        in[1] = ot_emit_constant_i64(g, &zero, 1);
        in[2] = n_new;
        in[3] = ot_emit_constant_i64(g, &along, 1);
        if (in[1] != NULL && in[2] != NULL && in[3] != NULL)
            ot_grad_set_dx(g, UPDATE, ot_emit_output(g, ot_emit(g, "Slice", NULL, in, 4, 1), 0));
        return;
    }
    for (int k = 0; k < ndim; k++)
        front[k] = k == 1 ? axis : k > 1 && k <= axis ? k - 1 : k;
    for (int k = 0; k < ndim; k++)
        back[front[k]] = k;
    in[0] = axis == 1 ? dy : ot__emit_transpose(g, dy, front, ndim);
    in[1] = emit_steps(g, n_new, axis);
    if (in[0] == NULL || in[1] == NULL)
        return;
    dy = ot_emit_output(g, ot_emit(g, "GatherND", "batch_dims = 1", in, 2, 1), 0);
    ot_grad_set_dx(g, UPDATE, axis == 1 ? dy : ot__emit_transpose(g, dy, back, ndim));
}

static void tensor_scatter_grad(ot_grad *g)
{
    int ndim, axis = 0;

    if (!ot__grad_has_rank(g))
        return;
    ndim = ot_value_shape(ot_grad_x(g, CACHE))->ndim;
    (void)ot__axis_normalize(ot_attr_int(ot_grad_node(g), "axis"), ndim, &axis);
    if (ot_grad_wants(g, CACHE))
        cache_grad(g);
    if (ot_grad_wants(g, UPDATE))
        update_grad(g, ndim, axis);
}

static const ot_port tensor_scatter_in[] = {
    {"past_cache", "T", 0},
    {"update", "T", 0},
    {"write_indices", "i64", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port tensor_scatter_out[] = {{"present_cache", "T", 0}, {0}};
static const ot_attr_spec tensor_scatter_attrs[] = {
    OT__STRING_ATTR("mode", "linear"),
    OT__INT_ATTR("axis", -2),
    {0},
};
static const ot_kernel tensor_scatter_kernels[] = {
    OT__REF_KERNEL(NULL, tensor_scatter_prep, tensor_scatter_run), {0}};
const ot_op_def ot__op_tensor_scatter[] = {
    {.name = "TensorScatter",
     .since = 24,
     .inputs = tensor_scatter_in,
     .outputs = tensor_scatter_out,
     .attrs = tensor_scatter_attrs,
     .types = "T: any string",
     .infer = tensor_scatter_infer,
     .kernels = tensor_scatter_kernels,
     .grad = tensor_scatter_grad},
    {0},
};
