// SPDX-License-Identifier: Apache-2.0
// Scatter: the name ScatterElements had in opsets 9 and 10.
#include "ops/move/move.h"

static void scatter_infer(ot_infer *c)
{
    ot__infer_scatter(c, OT__INDEX_ELEMENTS);
}

static void scatter_upgrade(ot_upgrade *u)
{
    ot_upgrade_rename(u, "ScatterElements");
}

static const ot_port scatter_in[] = {
    {"data", "T", 0},
    {"indices", "I", OT_PORT_NO_GRAD},
    {"updates", "T", 0},
    {0},
};
static const ot_port scatter_out[] = {{"output", "T", 0}, {0}};
static const ot_attr_spec scatter_attrs[] = {
    {.name = "axis", .kind = OT_ATTRIBUTE_INT, .flags = OT_ATTR_HAS_DEFAULT, .i = 0}, {0}};
const ot_op_def ot__op_scatter[] = {
    {.name = "Scatter",
     .since = 9,
     .inputs = scatter_in,
     .outputs = scatter_out,
     .attrs = scatter_attrs,
     .types = "T: any string; I: i32 i64",
     .infer = scatter_infer,
     .upgrade = scatter_upgrade},
    {0},
};
