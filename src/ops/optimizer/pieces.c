// SPDX-License-Identifier: Apache-2.0
// The elements of a sequence of tensors in pieces, which threads share.
#include "ops/optimizer/optimizer.h"

enum {
    PIECE = 1 << 14
}; // elements: large enough for vector code, small enough to share among threads

ot__pieces *ot__pieces_make(ot_prep *p, int port, size_t n_own_bytes)
{
    const int *first = p->in_first;
    const int n = first[port + 1] - first[port];
    int64_t n_pieces = 0, at = 0;
    size_t n_bytes;
    ot__pieces *pieces;

    for (int i = 0; i < n; i++)
        n_pieces += (p->in[first[port] + i]->count + PIECE - 1) / PIECE;
    n_bytes = sizeof *pieces + (size_t)n_pieces * sizeof pieces->piece[0];
    pieces = ot_prep_state(p, n_bytes + n_own_bytes);
    if (!pieces)
        return NULL;
    pieces->n_pieces = n_pieces;
    pieces->n_tensors = n;
    pieces->own = (char *)pieces + n_bytes; // pieces are as aligned as any number
    for (int i = 0; i < n; i++) {
        const int64_t count = p->in[first[port] + i]->count;
        for (int64_t start = 0; start < count; start += PIECE)
            pieces->piece[at++] = (ot__piece_of){i, start, OT_MIN(count - start, (int64_t)PIECE)};
    }
    return pieces;
}

bool ot__pieces_fit(ot_prep *p, int port, int other)
{
    const int *first = p->in_first;
    const int n = first[port + 1] - first[port], n_other = first[other + 1] - first[other];

    if (n != n_other) {
        ot_prep_fail(p, OT_ERR_INVALID, "sequences of %d and %d tensors belong together", n,
                     n_other);
        return false;
    }
    for (int i = 0; i < n; i++) {
        const int64_t count = p->in[first[port] + i]->count;
        const int64_t other_count = p->in[first[other] + i]->count;

        if (count != other_count) {
            ot_prep_fail(p, OT_ERR_INVALID,
                         "tensor %d has %" PRId64 " elements in one sequence, %" PRId64
                         " in another",
                         i, count, other_count);
            return false;
        }
    }
    return true;
}

double ot__scalar_f64(const ot_arg *x)
{
    double value = 0;

    ot__convert(&value, OT_F64, x->data, x->dtype, 1);
    return value;
}

void *ot__piece_data(const ot_run *r, int port, const ot__piece_of *piece)
{
    const ot_arg *x = r->in[r->in_first[port] + piece->tensor];

    return (char *)x->data + (size_t)piece->first * ot_dtype_size(x->dtype);
}

void ot__optimizer_set_flag(const ot_run *r, bool updated)
{
    if (r->n_out > 0 && r->out[0])
        *(uint8_t *)r->out[0]->data = updated;
}
