// SPDX-License-Identifier: Apache-2.0
#include "ops/optimizer/optimizer.h"

enum {
    PIECE = 1 << 14
}; // elements: large enough for vector code, small enough to share among threads

ot__pieces *ot__pieces_make(ot_prep *p, int port, int n_others)
{
    const int *first = p->in_first;
    const int n = first[port + 1] - first[port];
    int64_t n_pieces = 0, at = 0;
    ot__pieces *pieces;

    for (int i = 0; i < n; i++)
        n_pieces += (p->in[first[port] + i]->count + PIECE - 1) / PIECE;
    for (int k = 1; k <= n_others; k++) {
        if (first[port + k + 1] - first[port + k] != n) {
            ot_prep_fail(p, OT_ERR_INVALID, "sequences of %d and %d tensors belong together", n,
                         first[port + k + 1] - first[port + k]);
            return NULL;
        }
        for (int i = 0; i < n; i++)
            if (p->in[first[port + k] + i]->count != p->in[first[port] + i]->count) {
                ot_prep_fail(p, OT_ERR_INVALID,
                             "tensor %d has %" PRId64 " elements in one sequence, %" PRId64
                             " in another",
                             i, p->in[first[port] + i]->count, p->in[first[port + k] + i]->count);
                return NULL;
            }
    }
    pieces = ot_prep_state(p, sizeof(*pieces) + (size_t)n_pieces * sizeof(pieces->piece[0]));
    if (!pieces)
        return NULL;
    pieces->n_pieces = n_pieces;
    for (int i = 0; i < n; i++) {
        const int64_t count = p->in[first[port] + i]->count;
        for (int64_t start = 0; start < count; start += PIECE)
            pieces->piece[at++] = (ot__piece_of){i, start, OT_MIN(count - start, (int64_t)PIECE)};
    }
    return pieces;
}

double ot__scalar_f64(const ot_arg *x)
{
    double value = 0;

    ot__convert(&value, OT_F64, x->data, x->dtype, 1);
    return value;
}

bool ot__update_is_off(const ot_run *r, int port)
{
    const int at = r->in_first[port];

    return at < r->n_in && r->in[at] && *(const uint8_t *)r->in[at]->data == 0;
}

void *ot__piece_data(const ot_run *r, int port, const ot__piece_of *piece)
{
    const ot_arg *x = r->in[r->in_first[port] + piece->tensor];

    return (char *)x->data + (size_t)piece->first * ot_dtype_size(x->dtype);
}

void ot__optimizer_infer(ot_infer *c)
{
    for (int i = 0; i < ot_infer_input_count(c); i++)
        if ((ot__op_input_port(ot_infer_node(c)->op, i)->flags & OT_PORT_SEQUENCE) == 0 &&
            !ot__infer_one_element(c, i))
            return;
    ot_infer_set(c, 0, OT_BOOL, &OT_SHAPE(1));
}

void ot__optimizer_set_flag(const ot_run *r, bool updated)
{
    if (r->n_out > 0 && r->out[0])
        *(uint8_t *)r->out[0]->data = updated;
}
