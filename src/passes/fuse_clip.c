// SPDX-License-Identifier: Apache-2.0
// The gradient of Clip is Where(X >= min And X <= max, dY, 0) in files, also in ONNX Runtime's.
// Here Clip makes that mask itself: X, four times as large, need not be kept or read again for it.
#include "passes/fuse.h"

enum { X, MIN, MAX, N_INPUTS }; // of Clip
// Readers of an X that are looked at: many Clips of one value must not cost the square of them.
enum { MAX_READERS = 64 };

// The comparison of X with a bound that is there; NULL: none.
static ot_node *clip_find_comparison(const ot__fusing *f, const ot_node *clip, int bound)
{
    const char *op_type = bound == MIN ? "GreaterOrEqual" : "LessOrEqual";
    const ot_value *x = clip->inputs[X];

    if (ot__uses_count(&f->uses, x) > MAX_READERS)
        return NULL;
    for (int u = ot__uses_first(&f->uses, x); u < ot__uses_end(&f->uses, x); u++) {
        ot_node *node = f->uses.use[u].node;

        if (f->uses.use[u].i_input == 0 && node->graph != NULL && ot__node_is(node, "", op_type) &&
            node->inputs[1] == clip->inputs[bound])
            return node;
    }
    return NULL;
}

// What joins the comparisons, which have no other reader; NULL: nothing.
static ot_node *clip_find_and(const ot__fusing *f, const ot_node *above, const ot_node *below)
{
    ot_node *both = ot__fuse_only_reader(f, above->outputs[0]);

    return ot__node_is(both, "", "And") && ot__fuse_only_reader(f, below->outputs[0]) == both
               ? both
               : NULL;
}

static bool clip_same_shape(const ot_value *a, const ot_value *b)
{
    return a->has_shape && b->has_shape && ot__shape_equal(&a->shape, &b->shape);
}

static bool clip_has_mask(ot_dtype dtype)
{
    return dtype == OT_F32 || dtype == OT_F64 || ot__dtype_is_narrow(dtype);
}

static ot_status fuse_clip(ot__fusing *f, ot_node *clip)
{
    ot_value *inputs[N_INPUTS] = {NULL}, *outputs[2];
    ot_node *compare[N_INPUTS] = {NULL}, *last = NULL, *fused;
    bool is_bounded = true;

    if (!ot__node_is(clip, "", "Clip") || !clip_has_mask(clip->outputs[0]->dtype))
        return OT_OK;
    for (int i = 0; i < clip->n_inputs; i++)
        inputs[i] = clip->inputs[i];
    for (int i = MIN; i <= MAX; i++)
        if (inputs[i] != NULL) {
            compare[i] = clip_find_comparison(f, clip, i);
            is_bounded = is_bounded && compare[i] != NULL && ot__value_has_one_element(inputs[i]);
            last = compare[i];
        }
    if (!is_bounded || last == NULL)
        return OT_OK;
    if (compare[MIN] != NULL && compare[MAX] != NULL)
        last = clip_find_and(f, compare[MIN], compare[MAX]);
    if (last == NULL || !clip_same_shape(last->outputs[0], inputs[X]))
        return OT_OK;
    outputs[0] = clip->outputs[0];
    outputs[1] = last->outputs[0];
    ot__node_detach(clip);
    ot__node_detach(last);
    for (int i = MIN; i <= MAX; i++)
        if (compare[i] != NULL)
            ot__node_detach(compare[i]);
    OT_TRY(ot__fuse_add(f, "ClipMask", clip->name, inputs, clip->n_inputs, outputs, 2, &fused));
    return ot__op_infer(fused);
}

ot_status ot__fuse_clip(ot_model *model)
{
    return ot__fuse_each(model, fuse_clip);
}
