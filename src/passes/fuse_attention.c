// SPDX-License-Identifier: Apache-2.0
// Attention as exporters write it becomes one operator that never has all scores in memory and
// reads heads where they lie: softmax(scale * q * k^T + mask) * v, with whatever puts the heads in
// order before and after it. match_attention.c finds it.
#include "passes/attention.h"

static void set_view(ot__builder *b, ot_node *node, const char *name, const ot__heads *heads)
{
    const int64_t numbers[] = {heads->offset, heads->batch, heads->head, heads->position,
                               heads->element};

    ot__build_ints(b, node, name, numbers, 5);
}

static void set_attention(ot__builder *b, ot_node *node, const ot__attention *a)
{
    const int64_t sizes[] = {a->batch, a->n_heads,   a->queries,
                             a->keys,  a->head_size, a->value_size};

    ot__build_ints(b, node, "sizes", sizes, 6);
    set_view(b, node, "q_view", &a->q);
    set_view(b, node, "k_view", &a->k);
    set_view(b, node, "v_view", &a->v);
    set_view(b, node, "y_view", &a->y);
    if (a->mask != NULL) {
        set_view(b, node, "mask_view", &a->mask_at);
        ot__build_float(b, node, "fill", a->fill);
    }
    ot__build_float(b, node, "scale", a->scale);
    ot__build_int(b, node, "causal", a->is_causal);
    ot__build_int(b, node, "zero_rows", a->has_zero_rows);
    if (a->dropout == NULL)
        return;
    ot__build_float(b, node, "dropout", a->dropout_ratio);
    ot__build_string(b, node, "dropout_name", a->dropout->outputs[0]->name);
    if (ot_attr_given(a->dropout, "seed"))
        ot__build_int(b, node, "dropout_seed", ot_attr_int(a->dropout, "seed"));
}

// The mask as the operator takes it: true where a score stays.
static ot_value *make_mask(ot__builder *b, const ot__attention *a)
{
    ot_value *kept;
    ot_node *node;

    if (a->mask == NULL || !a->is_inverted)
        return a->mask;
    kept = ot__build_value(b, ot__build_name(b, "%s_kept", a->mask->name));
    node = ot__op_build(b, "", "Not", kept != NULL ? kept->name : "", &a->mask, 1, &kept, 1);
    ot__op_settle(b, node);
    return kept;
}

// The gradients that are made, and which of them those of queries, keys and values go to; -1:
// nowhere. Gives their number.
static int number_gradients(const ot__region *region, ot_value *const *sources, ot_value **made,
                            int64_t *to)
{
    int n = 0;

    for (int k = 0; k < 3; k++)
        to[k] = -1;
    for (int i = 0; i < region->n_inputs; i++) {
        if (region->gradients[i] == NULL)
            continue;
        for (int k = 0; k < 3; k++)
            if (sources[k] == region->inputs[i])
                to[k] = n;
        made[n++] = region->gradients[i];
    }
    return n;
}

ot_status ot__write_attention(ot__fusing *f, const ot__region *region)
{
    const ot__attention *a = region->what;
    ot__builder b = {.graph = f->graph};
    const char *name = region->output->name;
    ot_value *mask = make_mask(&b, a), *out[2] = {region->output};
    ot_value *in[] = {a->q_source, a->k_source, a->v_source, mask};
    const int n_mask = mask != NULL ? 1 : 0;
    ot_value *made[OT_REGION_INPUTS];
    int64_t gradients[3];
    int n_gradients;
    ot_node *node;

    if (region->dy != NULL)
        out[1] = ot__build_value(&b, ot__build_name(&b, "%s_lse", name));
    node = ot__op_build(&b, "ai.onnxtrain", "FusedAttention", name, in, 3 + n_mask, out,
                        region->dy != NULL ? 2 : 1);
    set_attention(&b, node, a);
    ot__build_ints(&b, node, "y_shape", region->output->shape.dim, region->output->shape.ndim);
    ot__op_settle(&b, node);
    if (!ot__region_has_gradients(region) || b.status != OT_OK)
        return b.status;
    n_gradients = number_gradients(region, in, made, gradients);
    node =
        ot__op_build(&b, "ai.onnxtrain", "FusedAttentionGrad", name,
                     (ot_value *[]){region->dy, in[0], in[1], in[2], region->output, out[1], mask},
                     6 + n_mask, made, n_gradients);
    set_attention(&b, node, a);
    ot__build_ints(&b, node, "y_shape", region->output->shape.dim, region->output->shape.ndim);
    ot__build_ints(&b, node, "gradients", gradients, 3);
    ot__op_settle(&b, node);
    return b.status;
}
