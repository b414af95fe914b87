// SPDX-License-Identifier: Apache-2.0
// Recurrent layers stored in f16 or bf16, in one direction: a few steps at a time are a layer in
// f32 of their own, which begins with the states that the steps before it left. Products read W and
// R as they are stored.
#include <string.h>

#include "ops/recurrent/recurrent.h"

enum { ROWS_AT_ONCE = 128, ALIGNED_FLOATS = 16 }; // rows: of the batch, of all steps together

bool ot__recurrent_can_piecewise(const ot_prep *p)
{
    const ot_node *node = ot_prep_node(p);
    ot__recurrent layer = {.cell = ot__recurrent_cell(node->op)};

    return ot_prep_in(p, 0)->count > 0 && ot_prep_in(p, 2)->count > 0 && // X and R
           ot__recurrent_indices(p) == NULL && ot__recurrent_read(node, &layer) == NULL &&
           layer.n_directions == 1 && ot_attr_int(node, "layout") != 1;
}

static int64_t steps_at_once(const ot__recurrent *p)
{
    return OT_MIN(p->steps, OT_MAX(1, ROWS_AT_ONCE / p->batch));
}

static bool has_steps(ot__recurrent_role role)
{
    return role == OT__RR_X || role == OT__RR_Y || role == OT__RR_CELLS || role == OT__RR_GATES ||
           role == OT__RR_DY;
}

// ---- tensors in f32: as they are, or in scratch ----

typedef struct tensors {
    const ot_arg *in[OT__N_RR];
    ot_arg *out[OT__N_RR];
    float *in_f32[OT__N_RR], *out_f32[OT__N_RR]; // in scratch; NULL: not converted
    float *h, *c, *h_before, *c_before;          // states, or gradients of them
    int32_t *lengths;                            // within the steps at hand
    float *rest;                                 // scratch of the layer in f32
} tensors;

// Scratch that is handed out, or only counted.
typedef struct share {
    float *base; // NULL: only counted
    int64_t n;
} share;

static float *take(share *at, int64_t n)
{
    float *taken = at->base == NULL ? NULL : at->base + at->n;

    at->n += (n + ALIGNED_FLOATS - 1) / ALIGNED_FLOATS * ALIGNED_FLOATS;
    return taken;
}

static float *take_converted(share *at, const ot__recurrent *p, const ot_arg *x,
                             ot__recurrent_role role)
{
    if (x == NULL || !ot__dtype_is_narrow(x->dtype))
        return NULL;
    return take(at, has_steps(role) ? x->count / p->steps * steps_at_once(p) : x->count);
}

// Everything in scratch from `base` on (NULL: nowhere yet); the floats that takes.
static int64_t place_tensors(tensors *t, const ot__recurrent_state *state, float *base)
{
    const ot__recurrent *p = &state->p;
    share at = {.base = base};

    for (int role = 0; role < OT__N_RR; role++) {
        if (role != OT__RR_W && role != OT__RR_R)
            t->in_f32[role] = take_converted(&at, p, t->in[role], (ot__recurrent_role)role);
        t->out_f32[role] = take_converted(&at, p, t->out[role], (ot__recurrent_role)role);
    }
    t->h = take(&at, p->batch * p->hidden);
    t->c = take(&at, p->batch * p->hidden);
    t->h_before = take(&at, p->batch * p->hidden);
    t->c_before = take(&at, p->batch * p->hidden);
    t->lengths = (int32_t *)(void *)take(&at, p->batch);
    t->rest = take(&at, 0);
    return at.n;
}

static void list_tensors(tensors *t, const ot__recurrent_op *op, const ot_arg *const *in, int n_in,
                         ot_arg *const *out, int n_out)
{
    *t = (tensors){.h = NULL};
    for (int i = 0; i < n_in && op->in[i] != OT__RR_NONE; i++)
        t->in[op->in[i]] = in[i];
    for (int i = 0; i < n_out && op->out[i] != OT__RR_NONE; i++)
        t->out[op->out[i]] = out[i];
}

static ot_status prepare_piecewise(ot_prep *p, bool back)
{
    const ot__recurrent_state *state;
    ot__recurrent piece;
    tensors t;
    int64_t n;

    OT_TRY(ot__recurrent_prepare_state(p));
    state = p->state;
    list_tensors(&t, &state->op, p->in, p->n_in, (ot_arg *const *)(const void *)p->out, p->n_out);
    piece = state->p;
    piece.steps = steps_at_once(&state->p);
    n = back ? ot__simd_recurrent_grad_scratch(&piece, &state->by)
             : ot__simd_recurrent_scratch(&piece, &state->by, t.out[OT__RR_GATES] != NULL);
    return ot__recurrent_ask_for_scratch(p, n < 0 ? n : place_tensors(&t, state, NULL) + n);
}

ot_status ot__recurrent_piecewise_prepare(ot_prep *p)
{
    return prepare_piecewise(p, false);
}

ot_status ot__recurrent_piecewise_grad_prepare(ot_prep *p)
{
    return prepare_piecewise(p, true);
}

// ---- pieces ----

typedef struct piece {
    int64_t first, n; // steps
    ot__recurrent p;  // the layer of these steps
} piece;

static size_t stored_bytes(const ot_arg *x, int64_t n)
{
    return (size_t)n * ot_dtype_size(x->dtype);
}

// The elements of a tensor that belong to the piece.
static void *piece_data(const ot__recurrent *p, const piece *s, const ot_arg *x, int64_t *count)
{
    *count = x->count / p->steps * s->n;
    return (char *)x->data + stored_bytes(x, x->count / p->steps * s->first);
}

// An input with steps, in f32; NULL: absent.
static float *read_piece(const tensors *t, const ot__recurrent *p, const piece *s,
                         ot__recurrent_role role)
{
    const ot_arg *x = t->in[role];
    int64_t count;
    void *data;

    if (x == NULL)
        return NULL;
    data = piece_data(p, s, x, &count);
    if (t->in_f32[role] == NULL)
        return data;
    ot__convert_floats(t->in_f32[role], OT_F32, data, x->dtype, count);
    return t->in_f32[role];
}

// Where an output with steps is to be written.
static float *piece_out(const tensors *t, const ot__recurrent *p, const piece *s,
                        ot__recurrent_role role)
{
    int64_t count;

    if (t->out[role] == NULL)
        return NULL;
    return t->out_f32[role] != NULL ? t->out_f32[role] : piece_data(p, s, t->out[role], &count);
}

static void write_piece(const tensors *t, const ot__recurrent *p, const piece *s,
                        ot__recurrent_role role)
{
    int64_t count;
    void *data;

    if (t->out_f32[role] == NULL)
        return;
    data = piece_data(p, s, t->out[role], &count);
    ot__convert_floats(data, t->out[role]->dtype, t->out_f32[role], OT_F32, count);
}

// ---- tensors without steps ----

static float *read_whole(const tensors *t, ot__recurrent_role role)
{
    const ot_arg *x = t->in[role];

    if (x == NULL)
        return NULL;
    if (t->in_f32[role] == NULL)
        return x->data;
    ot__convert_floats(t->in_f32[role], OT_F32, x->data, x->dtype, x->count);
    return t->in_f32[role];
}

static float *whole_out(const tensors *t, ot__recurrent_role role)
{
    if (t->out[role] == NULL)
        return NULL;
    return t->out_f32[role] != NULL ? t->out_f32[role] : t->out[role]->data;
}

static void write_whole(const tensors *t, ot__recurrent_role role, const float *from)
{
    ot_arg *y = t->out[role];

    if (y == NULL || from == y->data)
        return;
    if (ot__dtype_is_narrow(y->dtype))
        ot__convert_floats(y->data, y->dtype, from, OT_F32, y->count);
    else
        memcpy(y->data, from, stored_bytes(y, y->count));
}

// `to` (batch, hidden) begins as an input, or as zeros.
static void begin_state(float *to, const tensors *t, const ot__recurrent *p,
                        ot__recurrent_role role)
{
    const float *from = read_whole(t, role);
    const size_t n_bytes = (size_t)(p->batch * p->hidden) * sizeof *to;

    if (from == NULL)
        memset(to, 0, n_bytes);
    else
        memcpy(to, from, n_bytes);
}

static const int32_t *piece_lengths(const tensors *t, const ot__recurrent *p, const piece *s)
{
    const ot_arg *lengths = t->in[OT__RR_LENGTHS];

    if (lengths == NULL)
        return NULL;
    for (int64_t row = 0; row < p->batch; row++) {
        const int64_t left = ((const int32_t *)lengths->data)[row] - s->first;

        t->lengths[row] = (int32_t)OT_MAX(0, OT_MIN(left, s->n));
    }
    return t->lengths;
}

// Piece number i of all in the direction that steps are computed in, or back.
static piece piece_at(const ot__recurrent *p, int64_t i, bool back)
{
    const int64_t at_once = steps_at_once(p), n = (p->steps + at_once - 1) / at_once;
    const int64_t k = p->reversed[0] != back ? n - 1 - i : i;
    piece s = {.first = k * at_once, .p = *p};

    s.n = s.p.steps = OT_MIN(at_once, p->steps - s.first);
    return s;
}

static int64_t count_pieces(const ot__recurrent *p)
{
    return (p->steps + steps_at_once(p) - 1) / steps_at_once(p);
}

static const float *as_stored(const ot_arg *weights)
{
    return weights->data; // products know its type
}

static ot_status begin_run(const ot_run *r, tensors *t)
{
    const ot__recurrent_state *state = r->state;

    list_tensors(t, &state->op, r->in, r->n_in, r->out, r->n_out);
    (void)place_tensors(t, state, r->scratch);
    return ot__recurrent_check_lengths(
        t->in[OT__RR_LENGTHS] == NULL ? NULL : t->in[OT__RR_LENGTHS]->data, &state->p);
}

// ---- forward ----

ot_status ot__recurrent_piecewise_run(const ot_run *r)
{
    const ot__recurrent_state *state = r->state;
    const ot__recurrent *p = &state->p;
    const bool has_cell = p->cell == OT__CELL_LSTM;
    const float *b, *peephole;
    tensors t;

    OT_TRY(begin_run(r, &t));
    b = read_whole(&t, OT__RR_B);
    peephole = read_whole(&t, OT__RR_P);
    begin_state(t.h, &t, p, OT__RR_H0);
    begin_state(t.c, &t, p, OT__RR_C0);
    for (int64_t i = 0; i < count_pieces(p); i++) {
        const piece s = piece_at(p, i, false);
        const ot__recurrent_data_f32 data = {.x = read_piece(&t, p, &s, OT__RR_X),
                                             .w = as_stored(t.in[OT__RR_W]),
                                             .r = as_stored(t.in[OT__RR_R]),
                                             .b = b,
                                             .h0 = t.h,
                                             .c0 = has_cell ? t.c : NULL,
                                             .p = peephole,
                                             .lengths = piece_lengths(&t, p, &s),
                                             .y = piece_out(&t, p, &s, OT__RR_Y),
                                             .y_h = t.h,
                                             .y_c = has_cell ? t.c : NULL,
                                             .gates = piece_out(&t, p, &s, OT__RR_GATES),
                                             .cells = piece_out(&t, p, &s, OT__RR_CELLS),
                                             .scratch = t.rest};

        ot__simd_recurrent(&data, &s.p, &state->by);
        write_piece(&t, p, &s, OT__RR_Y);
        write_piece(&t, p, &s, OT__RR_GATES);
        write_piece(&t, p, &s, OT__RR_CELLS);
    }
    write_whole(&t, OT__RR_Y_H, t.h);
    write_whole(&t, OT__RR_Y_C, t.c);
    return OT_OK;
}

// ---- back ----

// The states that the piece began with: what the step before it left, or the layer's first.
static void find_state_before(float *to, const tensors *t, const ot__recurrent *p, const piece *s,
                              ot__recurrent_role all, const float *first)
{
    const ot_arg *x = t->in[all], *lengths = t->in[OT__RR_LENGTHS];
    const int64_t step = p->reversed[0] ? s->first + s->n : s->first - 1, n = p->hidden;

    for (int64_t row = 0; row < p->batch; row++, to += n) {
        const bool is_there = step >= 0 && step < p->steps &&
                              (lengths == NULL || step < ((const int32_t *)lengths->data)[row]);
        const int64_t at = (step * p->batch + row) * n;

        if (is_there && ot__dtype_is_narrow(x->dtype))
            ot__floats_best()->widen[x->dtype](to, (const uint16_t *)x->data + at, n);
        else if (is_there)
            memcpy(to, (const float *)x->data + at, (size_t)n * sizeof *to);
        else if (first != NULL)
            memcpy(to, first + row * n, (size_t)n * sizeof *to);
        else
            memset(to, 0, (size_t)n * sizeof *to);
    }
}

ot_status ot__recurrent_piecewise_grad_run(const ot_run *r)
{
    static const ot__recurrent_role sums[] = {OT__RR_W, OT__RR_R, OT__RR_B, OT__RR_P};
    const ot__recurrent_state *state = r->state;
    const ot__recurrent *p = &state->p;
    const bool has_cell = p->cell == OT__CELL_LSTM;
    const float *b, *peephole, *h0, *c0;
    tensors t;

    OT_TRY(begin_run(r, &t));
    b = read_whole(&t, OT__RR_B);
    peephole = read_whole(&t, OT__RR_P);
    h0 = read_whole(&t, OT__RR_H0);
    c0 = read_whole(&t, OT__RR_C0);
    begin_state(t.h, &t, p, OT__RR_DY_H);
    begin_state(t.c, &t, p, OT__RR_DY_C);
    for (int64_t i = 0; i < count_pieces(p); i++) {
        const piece s = piece_at(p, i, true);
        ot__recurrent_grad_f32 data = {.x = read_piece(&t, p, &s, OT__RR_X),
                                       .w = as_stored(t.in[OT__RR_W]),
                                       .r = as_stored(t.in[OT__RR_R]),
                                       .b = b,
                                       .h0 = t.h_before,
                                       .c0 = has_cell ? t.c_before : NULL,
                                       .p = peephole,
                                       .lengths = piece_lengths(&t, p, &s),
                                       .y = read_piece(&t, p, &s, OT__RR_Y),
                                       .gates = read_piece(&t, p, &s, OT__RR_GATES),
                                       .cells = read_piece(&t, p, &s, OT__RR_CELLS),
                                       .dy = read_piece(&t, p, &s, OT__RR_DY),
                                       .dy_h = t.h,
                                       .dy_c = has_cell ? t.c : NULL,
                                       .dx = piece_out(&t, p, &s, OT__RR_X),
                                       .dw = whole_out(&t, OT__RR_W),
                                       .dr = whole_out(&t, OT__RR_R),
                                       .db = whole_out(&t, OT__RR_B),
                                       .dh0 = t.h,
                                       .dc0 = has_cell ? t.c : NULL,
                                       .dp = whole_out(&t, OT__RR_P),
                                       .scratch = t.rest,
                                       .accumulates = i > 0};

        if (p->cell == OT__CELL_RNN)
            data.gates = data.y;
        find_state_before(t.h_before, &t, p, &s, OT__RR_Y, h0);
        if (has_cell)
            find_state_before(t.c_before, &t, p, &s, OT__RR_CELLS, c0);
        ot__simd_recurrent_grad(&data, &s.p, &state->by);
        write_piece(&t, p, &s, OT__RR_X);
    }
    for (size_t i = 0; i < OT_COUNT(sums); i++)
        write_whole(&t, sums[i], whole_out(&t, sums[i]));
    write_whole(&t, OT__RR_H0, t.h);
    write_whole(&t, OT__RR_C0, t.c);
    return OT_OK;
}
