// SPDX-License-Identifier: Apache-2.0
// The gradient of Clip is Where(X >= min And X <= max, dY, 0) in files, also in ONNX Runtime's:
// four operators, of which three make and read masks. Here it becomes one.
#include "passes/fuse.h"

enum { DY, X, MIN, MAX, N_INPUTS }; // of ClipGrad

typedef struct clip_mask {
    ot_value *input[N_INPUTS]; // NULL: no such bound
    ot_node *node[3];          // the comparisons and what joins them
    int n_nodes;
} clip_mask;

static bool clip_is_zero(const ot_value *value)
{
    const ot_tensor *number = ot_value_constant(value);

    return number != NULL && ot_tensor_count(number) == 1 && ot__tensor_get_f64(number, 0) == 0.0;
}

static bool clip_same_shape(const ot_value *a, const ot_value *b)
{
    return a->has_shape && b->has_shape && ot__shape_equal(&a->shape, &b->shape);
}

// Whether `mask`, which only `reader` reads, is a bound of the same X.
static bool clip_take_bound(const ot__fusing *f, clip_mask *m, const ot_value *mask,
                            const ot_node *reader)
{
    ot_node *compare = mask->producer;
    const int bound = ot__node_is(compare, "", "GreaterOrEqual") ? MIN
                      : ot__node_is(compare, "", "LessOrEqual")  ? MAX
                                                                 : 0;

    if (bound == 0 || m->input[bound] != NULL || ot__fuse_only_reader(f, mask) != reader ||
        (m->input[X] != NULL && m->input[X] != compare->inputs[0]) ||
        !ot__value_has_one_element(compare->inputs[1]))
        return false;
    m->input[X] = compare->inputs[0];
    m->input[bound] = compare->inputs[1];
    m->node[m->n_nodes++] = compare;
    return true;
}

static bool clip_find_mask(const ot__fusing *f, const ot_node *where, clip_mask *m)
{
    const ot_value *mask = where->inputs[0];
    ot_node *both = mask->producer;

    if (!ot__node_is(both, "", "And"))
        return clip_take_bound(f, m, mask, where);
    if (ot__fuse_only_reader(f, mask) != where || !clip_take_bound(f, m, both->inputs[0], both) ||
        !clip_take_bound(f, m, both->inputs[1], both))
        return false;
    m->node[m->n_nodes++] = both;
    return true;
}

static ot_status fuse_clip(ot__fusing *f, ot_node *where)
{
    clip_mask m = {{NULL}, {NULL}, 0};
    ot_node *fused;

    if (!ot__node_is(where, "", "Where") || !clip_is_zero(where->inputs[2]) ||
        !ot__dtype_is_float(where->outputs[0]->dtype) || !clip_find_mask(f, where, &m) ||
        !clip_same_shape(m.input[X], where->outputs[0]) ||
        !clip_same_shape(where->inputs[1], where->outputs[0]) ||
        m.input[X]->dtype != where->outputs[0]->dtype ||
        (where->outputs[0]->dtype != OT_F32 && where->outputs[0]->dtype != OT_F64))
        return OT_OK;
    m.input[DY] = where->inputs[1];
    ot__node_detach(where);
    for (int i = m.n_nodes - 1; i >= 0; i--)
        ot__node_detach(m.node[i]);
    OT_TRY(ot__fuse_add(f, "ClipGrad", where->name, m.input, m.input[MAX] != NULL ? N_INPUTS : MAX,
                        where->outputs, 1, &fused));
    return ot__op_infer(fused);
}

ot_status ot__fuse_clip(ot_model *model)
{
    return ot__fuse_each(model, fuse_clip);
}
