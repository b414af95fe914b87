// SPDX-License-Identifier: Apache-2.0
// One element type of accumulators.c.

static ot_status FN(in_place_accumulator_run)(const ot_run *r)
{
    const ot_arg *sum = r->in[SUM], *value = r->in[VALUE], *y = r->out[0];

    if (value->count != sum->count)
        return ot__error(OT_ERR_INVALID, "old_sum has %" PRId64 " elements, value %" PRId64,
                         sum->count, value->count);
    if (says(r, false))
        value = NULL;
    else if (y->data == value->data) // the planner may have put the result there: the other one is
        value = sum;                 // added to it
    if (value != sum)
        ot__ref_copy_bytes(y->data, sum->data, accumulator_bytes(y));
    if (value != NULL)
        FN(ot__ref_accumulate)(y->data, value->data, y->count);
    return OT_OK;
}

static ot_status FN(in_place_accumulator_v2_run)(const ot_run *r)
{
    const ot_arg *buffer = r->in[SUM], *value = r->in[VALUE];
    const bool is_there = value != buffer && value->data == buffer->data; // it was made there

    if (!is_there && says(r, true))
        ot__ref_copy_bytes(buffer->data, value->data, accumulator_bytes(buffer));
    else if (!is_there)
        FN(ot__ref_accumulate)(buffer->data, value->data, buffer->count);
    if (r->out[0] != NULL)
        *(uint8_t *)r->out[0]->data = 1;
    if (r->n_out > 1 && r->out[1] != NULL)
        ot__ref_copy_bytes(r->out[1]->data, buffer->data, accumulator_bytes(buffer));
    return OT_OK;
}
