// SPDX-License-Identifier: Apache-2.0
// Parameters that a file has in f16 or bf16 train in f32, or small updates would be lost: the
// parameter itself becomes f32, and its readers get a Cast of it.
#include "artifacts/forward.h"

static bool is_read_inside(const ot__uses *uses, const ot_value *value)
{
    for (int u = ot__uses_first(uses, value); u < ot__uses_end(uses, value); u++)
        if (uses->use[u].i_input < 0)
            return true;
    return false;
}

static ot_status widen_parameter(ot__builder *b, const ot__uses *uses, ot_value *value)
{
    const ot_tensor *narrow = value->constant;
    ot_tensor *wide = ot__model_tensor_new(b->graph->model, OT_F32, &narrow->shape);
    const char *name = ot__build_name(b, "%s.%s", value->name, ot_dtype_name(narrow->dtype));
    ot_value *cast = ot__build_value(b, name);
    ot_node *node;

    OT_TRY(ot__made(wide != NULL));
    OT_TRY(b->status);
    (void)ot__convert(wide->data, OT_F32, narrow->data, narrow->dtype, ot_tensor_count(narrow));
    for (int u = ot__uses_first(uses, value); u < ot__uses_end(uses, value); u++)
        uses->use[u].node->inputs[uses->use[u].i_input] = cast;
    value->constant = wide;
    ot__value_set(value, OT_F32, &wide->shape);
    node = ot__op_build(b, "", "Cast", name, &value, 1, &cast, 1);
    ot__build_int(b, node, "to", (int64_t)narrow->dtype);
    ot__op_settle(b, node);
    return b->status;
}

ot_status ot__forward_widen(ot__forward *forward)
{
    const ot__candidates *c = &forward->candidates;
    ot__builder b = {.graph = forward->model->graph};
    bool any = false;
    ot__uses uses;
    ot_status st;

    for (int i = 0; i < c->n && !any; i++)
        any =
            c->items[i].role == OT_ROLE_TRAINABLE && ot__dtype_is_narrow(c->items[i].value->dtype);
    if (!any)
        return OT_OK;
    st = ot__uses_build(b.graph, &uses);
    for (int i = 0; i < c->n && st == OT_OK; i++) {
        ot_value *value = c->items[i].value;

        if (c->items[i].role == OT_ROLE_TRAINABLE && ot__dtype_is_narrow(value->dtype) &&
            !value->is_output && !is_read_inside(&uses, value))
            st = widen_parameter(&b, &uses, value);
    }
    ot__uses_deinit(&uses);
    return st == OT_OK ? ot__graph_sort(b.graph) : st;
}
