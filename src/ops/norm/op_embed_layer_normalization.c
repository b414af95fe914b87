// SPDX-License-Identifier: Apache-2.0
// EmbedLayerNormalization of ONNX Runtime: the rows of words, positions and segments, added and
// normalised. Without position_ids the position is that along axis 1.
#include "op/expand.h"
#include "ops/norm/layer_norm.h"

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };
enum { Y, MASK_INDEX, SUM };

// ---- inference ----

static bool check_table(ot_infer *c, int i, int64_t size)
{
    const ot_shape *table = ot_infer_shape(c, i);

    if (!ot_infer_has(c, i))
        return true;
    if (table->ndim != 2)
        return ot__refuse(c, "input %d has %d axes, expected 2", i, table->ndim);
    if (ot__dim_differs(table->dim[1], size))
        return ot__refuse(c, "input %d has rows of %" PRId64 ", word_embedding of %" PRId64, i,
                          table->dim[1], size);
    return true;
}

// Shape of input_ids; one row may stand for all where `may_be_one`.
static bool check_ids(ot_infer *c, int i, bool may_be_one)
{
    const ot_shape *ids = ot_infer_shape(c, IDS), *found = ot_infer_shape(c, i);

    if (!ot_infer_has(c, i))
        return true;
    if (found->ndim != 2)
        return ot__refuse(c, "input %d has %d axes, expected 2", i, found->ndim);
    for (int k = 0; k < 2; k++)
        if (ot__dim_differs(found->dim[k], ids->dim[k]) &&
            !(may_be_one && k == 0 && found->dim[0] == 1))
            return ot__refuse(
                c, "input %d has size %" PRId64 " along axis %d, expected input_ids' %" PRId64, i,
                found->dim[k], k, ids->dim[k]);
    return true;
}

static void embed_infer(ot_infer *c)
{
    const ot_shape *ids = ot_infer_shape(c, IDS), *words = ot_infer_shape(c, WORDS);
    const ot_shape *positions = ot_infer_shape(c, POSITIONS);
    const ot_dtype dtype = ot_infer_dtype(c, WORDS);
    int64_t size;

    if (ids->ndim != 2 || words->ndim != 2) {
        ot_infer_fail(c, "input_ids and word_embedding have %d and %d axes, expected 2", ids->ndim,
                      words->ndim);
        return;
    }
    if (ot_infer_has(c, SEGMENT_IDS) != ot_infer_has(c, SEGMENTS)) {
        ot_infer_fail(c, "segment_ids and segment_embedding are given together or not at all");
        return;
    }
    size = words->dim[1];
    if (!check_ids(c, SEGMENT_IDS, false) || !check_ids(c, MASK, false) ||
        !check_ids(c, POSITION_IDS, true) || !check_table(c, POSITIONS, size) ||
        !check_table(c, SEGMENTS, size) || !ot__infer_is_row(c, GAMMA, size) ||
        !ot__infer_is_row(c, BETA, size))
        return;
    if (!ot_infer_has(c, POSITION_IDS) && ot_dim_is_number(positions->dim[0]) &&
        ot_dim_is_number(ids->dim[1]) && positions->dim[0] < ids->dim[1]) {
        ot_infer_fail(c, "position_embedding has %" PRId64 " rows for %" PRId64 " positions",
                      positions->dim[0], ids->dim[1]);
        return;
    }
    ot_infer_set(c, Y, dtype, &OT_SHAPE(ids->dim[0], ids->dim[1], size));
    ot_infer_set(c, MASK_INDEX, OT_I32, &OT_SHAPE(ids->dim[0]));
    ot_infer_set(c, SUM, dtype, &OT_SHAPE(ids->dim[0], ids->dim[1], size));
}

// ---- what it is composed of ----

static ot_value *emit_positions(ot_grad *g)
{
    ot_value *table = ot_grad_x(g, POSITIONS), *ids = ot_grad_x(g, POSITION_IDS), *first;

    if (ids != NULL)
        return ot_emit2(g, "Gather", table, ids);
    first = ot_emit_constant_i64(g, &(int64_t){0}, 1);
    return ot_emit3(g, "Slice", table, first, ot__emit_extents(g, ot_grad_x(g, IDS), 1, 2));
}

// How many elements of each row of the mask are 1; without a mask 0.
static ot_value *emit_mask_index(ot_grad *g)
{
    ot_value *mask = ot_grad_x(g, MASK), *rows, *kept;
    ot_node *node;

    if (mask == NULL) {
        rows = ot__emit_extents(g, ot_grad_x(g, IDS), 0, 1);
        node = rows == NULL ? NULL : ot_emit(g, "ConstantOfShape", NULL, &rows, 1, 1);
        if (node != NULL)
            ot__build_number(&g->build, node, "value", OT_I32, 0);
        return ot_emit_output(g, node, 0);
    }
    kept = ot_emit2(g, "Equal", mask, ot_emit_constant(g, 1, mask));
    return ot__emit_sum(g, ot_emit_cast(g, kept, OT_I32), &(int64_t){1}, 1, false);
}

static void embed_compose(ot_grad *g)
{
    ot_value *sum = ot_emit2(g, "Gather", ot_grad_x(g, WORDS), ot_grad_x(g, IDS)), *y, *index;

    sum = ot_emit2(g, "Add", sum, emit_positions(g));
    if (ot_grad_x(g, SEGMENTS) != NULL)
        sum = ot_emit2(g, "Add", sum,
                       ot_emit2(g, "Gather", ot_grad_x(g, SEGMENTS), ot_grad_x(g, SEGMENT_IDS)));
    y = ot_emit_output(g, ot__emit_layer_norm(g, sum, ot_grad_x(g, GAMMA), ot_grad_x(g, BETA), 1),
                       0);
    index = ot_expand_wants(g, MASK_INDEX) ? emit_mask_index(g) : NULL;
    ot_expand_set(g, Y, y);
    ot_expand_set(g, MASK_INDEX, index);
    ot_expand_set(g, SUM, sum);
}

static const ot_port embed_in[] = {
    {"input_ids", "T1", OT_PORT_NO_GRAD},
    {"segment_ids", "T1", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"word_embedding", "T", OT_PORT_TABLE},
    {"position_embedding", "T", OT_PORT_TABLE},
    {"segment_embedding", "T", OT_PORT_OPTIONAL | OT_PORT_TABLE},
    {"gamma", "T", OT_PORT_SCALE | OT_PORT_F32},
    {"beta", "T", OT_PORT_BIAS | OT_PORT_F32},
    {"mask", "T1", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {"position_ids", "T1", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port embed_out[] = {
    {"output", "T", 0},
    {"mask_index", "T1", OT_PORT_OPTIONAL},
    {"embedding_sum", "T", OT_PORT_OPTIONAL},
    {0},
};
static const ot_attr_spec embed_attrs[] = {
    OT__FLOAT_ATTR("epsilon", 1e-12F),
    OT__FLAG_ATTR("mask_index_type", 0),
    {0},
};
const ot_op_def ot__op_embed_layer_normalization[] = {
    {.domain = OT__MS,
     .name = "EmbedLayerNormalization",
     .since = 1,
     .inputs = embed_in,
     .outputs = embed_out,
     .attrs = embed_attrs,
     .types = "T1: i32; T: f32 f64",
     .infer = embed_infer,
     .train = embed_compose},
    {0},
};
