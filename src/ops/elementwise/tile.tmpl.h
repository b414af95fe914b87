// SPDX-License-Identifier: Apache-2.0
// One type of elements that tiles have.
static void FN(tile_piece)(void *y, const void *const *x, int64_t n, const void *context)
{
    const tile_state *s = context;
    const T *xs[OT__MAX_OPERANDS];

    for (int i = 0; i < OT__MAX_OPERANDS; i++)
        xs[i] = x[i];
    s->tile->SUFFIX(y, xs, n, s->attrs);
}

ot_status FN(ot__tile_run)(const ot_run *r)
{
    return tile_run_pieces(r, FN(tile_piece));
}
