// SPDX-License-Identifier: Apache-2.0
// Recurrent layers by vector code: back through time, a few steps before their weight gradients.
#include <string.h>

#include "kernels/recurrent/back.h"

enum { NO_STEP = -1 };

static int64_t place_back(ot__back_memory *m, const ot__recurrent *p, const ot__recurrent_means *by,
                          float *base)
{
    const int64_t n = p->hidden, pitch = ot__recurrent_state_pitch(n);
    const int64_t steps = ot__recurrent_steps_at_once(p);
    const int64_t panel = ot__recurrent_panel_floats(p, by);
    const bool is_gru = p->cell == OT__CELL_GRU;
    ot__floats_taken at = {base, panel < 0 ? -1 : 0};

    m->pre = ot__floats_take(&at, steps, p->batch, ot__recurrent_state_pitch(p->n_gates * n));
    m->before = ot__floats_take(&at, steps, p->batch, n);
    m->reset = ot__floats_take(&at, is_gru ? steps : 0, p->batch, n);
    m->linear = ot__floats_take(&at, p->resets_after ? steps : 0, p->batch, n);
    m->of_rows = ot__floats_take(&at, p->table, ot__recurrent_state_pitch(p->n_gates * n), 1);
    m->dh = ot__floats_take(&at, p->batch, pitch, 1);
    m->dc = ot__floats_take(&at, p->batch, pitch, 1);
    m->product = ot__floats_take(&at, p->batch, pitch, 1);
    m->zeros = ot__floats_take(&at, n, 1, 1);
    m->panels = ot__floats_take(&at, panel, p->n_gates, 1);
    m->for_gemm = ot__floats_take_for_gemm(&at, by);
    return at.n;
}

int64_t ot__simd_recurrent_grad_scratch(const ot__recurrent *p, const ot__recurrent_means *by)
{
    ot__back_memory m;

    return place_back(&m, p, by, NULL);
}

// ---- where things are ----

static float *gradients_of_step(const ot__back_pass *s, int64_t step)
{
    return s->m.pre + (step - s->first) * s->p->batch * s->pre_pitch;
}

static int64_t states_of_step(const ot__back_pass *s, int64_t step)
{
    return (step - s->first) * s->p->batch * s->p->hidden;
}

static bool was_in_sequence(const ot__back_pass *s, int64_t step, int64_t row)
{
    return s->d->lengths == NULL || step < s->d->lengths[row];
}

// The row of h or c that a step began with.
const float *ot__state_before(const ot__back_pass *s, const float *all, const float *first,
                              int64_t step, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t previous = p->reversed[s->direction] ? step + 1 : step - 1;

    if (previous >= 0 && previous < p->steps && was_in_sequence(s, previous, row))
        return all + ot__kept_row(s, previous, row) * p->hidden;
    return first == NULL ? s->m.zeros : first + (s->direction * p->batch + row) * p->hidden;
}

// ---- before the steps at hand ----

static void collect_states(void *context, int64_t first, int64_t last)
{
    const ot__back_pass *s = context;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;

    for (int64_t i = first; i < last; i++) {
        const int64_t step = s->first + i / p->batch, row = i % p->batch;
        const float *r =
            s->d->gates + ot__kept_row(s, step, row) * p->n_gates * n + ot__gate_of(p, 1);
        float *before = s->m.before + i * n, *reset = s->m.reset + i * n;

        memcpy(before, ot__state_before(s, s->d->y, s->d->h0, step, row),
               (size_t)n * sizeof *before);
        for (int64_t k = 0; p->cell == OT__CELL_GRU && !p->resets_after && k < n; k++)
            reset[k] = r[k] * before[k];
    }
}

// R's product for h, as resets_after multiplies it by r.
static void multiply_linear(const ot__back_pass *s)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    const ot__wide_product w = {
        .g = {.m = s->n_steps * p->batch,
              .n = n,
              .k = n,
              .alpha = 1,
              .beta = 1,
              .a_row = n,
              .a_column = 1,
              .b_row = 1,
              .b_column = n,
              .c_column = 1,
              .y_row = n,
              .b_type = s->by->r_type},
        .y = s->m.linear,
        .a = s->m.before,
        .b = s->d->r,
        .b_at = (s->direction * 3 + 2) * n * n,
        .c = s->d->b == NULL ? NULL : s->d->b + s->direction * 6 * n + 5 * n,
    };

    ot__wide_multiply(&w, s->by, s->m.for_gemm);
}

// ---- a step ----

static ot__cell_row_back_f32 units_back(const ot__back_pass *s, const ot__step_part *part,
                                        int64_t row)
{
    const ot__recurrent_grad_f32 *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, kept = ot__kept_row(s, s->step, row), unit = part->unit;
    const int64_t at = row * s->pitch + unit, state = states_of_step(s, s->step) + row * n + unit;
    const bool has_cell = p->cell == OT__CELL_LSTM;

    return (ot__cell_row_back_f32){
        .p = p,
        .slopes = s->slopes,
        .activate = ot__simd_activate_f32,
        .n = part->unit_end - unit,
        .gates = d->gates + kept * p->n_gates * n + unit,
        .c = has_cell ? d->cells + kept * n + unit : NULL,
        .c_before = has_cell ? ot__state_before(s, d->cells, d->c0, s->step, row) + unit : NULL,
        .h_before = s->m.before + state,
        .peephole = d->p == NULL ? NULL : d->p + s->direction * 3 * n + unit,
        .linear = p->resets_after ? s->m.linear + state : NULL,
        .product = s->m.product + at,
        .pre = gradients_of_step(s, s->step) + row * s->pre_pitch + unit,
        .dh = s->m.dh + at,
        .dc = s->m.dc + at,
        .reset = p->cell == OT__CELL_GRU ? s->m.reset + state : NULL};
}

static void clear_units(const ot__back_pass *s, const ot__cell_row_back_f32 *r)
{
    const size_t n_bytes = (size_t)r->n * sizeof *r->pre;

    for (int64_t gate = 0; gate < s->p->n_gates; gate++)
        memset(r->pre + gate * s->p->hidden, 0, n_bytes);
    if (s->p->resets_after)
        memset(r->reset, 0, n_bytes);
}

static void rows_back(const ot__back_pass *s, const ot__step_part *part)
{
    const ot__cells *cells = s->by->cells;
    const ot__cell cell = s->p->cell;

    for (int64_t row = part->row; row < part->row_end; row++) {
        const ot__cell_row_back_f32 r = units_back(s, part, row);
        const float *dy =
            s->d->dy == NULL ? NULL
                             : s->d->dy + ot__kept_row(s, s->step, row) * s->p->hidden + part->unit;

        if (!was_in_sequence(s, s->step, row)) {
            clear_units(s, &r);
            continue;
        }
        for (int64_t k = 0; dy != NULL && k < r.n; k++)
            r.dh[k] += dy[k];
        (cell == OT__CELL_LSTM  ? cells->lstm_back
         : cell == OT__CELL_GRU ? cells->gru_back
                                : cells->rnn_back)(&r);
    }
}

// What of the gradients of a step reaches the state before it through R.
static void multiply_pending(const ot__back_pass *s, const ot__step_part *part)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden;
    const int64_t gate_end = p->cell == OT__CELL_GRU ? 2 : p->n_gates;

    if (s->pending == NO_STEP)
        return;
    for (int64_t gate = 0; gate < gate_end; gate++)
        ot__state_multiply(&s->with_r, part, gate, s->m.dh, s->pitch,
                           gradients_of_step(s, s->pending) + gate * n, s->pre_pitch, true);
    if (p->resets_after)
        ot__state_multiply(&s->with_r, part, 2, s->m.dh, s->pitch,
                           s->m.reset + states_of_step(s, s->pending), n, true);
}

static void step_back_part(const ot__back_pass *s, const ot__step_part *part)
{
    multiply_pending(s, part);
    rows_back(s, part);
}

// The product is the gradient of r * before.
static void reset_back_part(const ot__back_pass *s, const ot__step_part *part)
{
    ot__state_multiply(&s->with_r, part, 2, s->m.product, s->pitch,
                       gradients_of_step(s, s->step) + 2 * s->p->hidden, s->pre_pitch, false);
    for (int64_t row = part->row; row < part->row_end; row++) {
        const ot__cell_row_back_f32 r = units_back(s, part, row);

        if (was_in_sequence(s, s->step, row))
            s->by->cells->reset_back(&r);
    }
}

typedef void back_run(const ot__back_pass *s, const ot__step_part *part);

typedef struct back_job {
    const ot__back_pass *s;
    back_run *run;
} back_job;

static void run_part_back(const void *job, const ot__step_part *part)
{
    const back_job *j = job;

    j->run(j->s, part);
}

// Of these rows, or NULL: of all, shared out.
static void run_back(const ot__back_pass *s, const ot__step_part *rows, back_run *run)
{
    const back_job j = {s, run};

    if (rows != NULL)
        run(s, rows);
    else
        ot__step_share(&s->cut, s->p, s->by, run_part_back, &j);
}

static void steps_back(ot__back_pass *s, const ot__step_part *rows)
{
    const bool resets_before = s->p->cell == OT__CELL_GRU && !s->p->resets_after;

    s->pending = NO_STEP;
    for (int64_t k = s->n_steps - 1; k >= 0; k--) {
        s->step = s->first + (s->p->reversed[s->direction] ? s->n_steps - 1 - k : k);
        run_back(s, rows, step_back_part);
        if (resets_before)
            run_back(s, rows, reset_back_part);
        s->pending = s->step;
    }
    run_back(s, rows, multiply_pending);
}

static void rows_back_through_steps(const void *pass, const ot__step_part *rows)
{
    ot__back_pass own = *(const ot__back_pass *)pass;

    steps_back(&own, rows);
}

static void share_steps_back(ot__back_pass *s)
{
    if (s->cut.n_unit_parts > 1)
        steps_back(s, NULL);
    else
        ot__step_share(&s->cut, s->p, s->by, rows_back_through_steps, s);
}

// ---- a layer ----

static void direction_back(ot__back_pass *s)
{
    const ot__recurrent_grad_f32 *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, at = s->direction * p->batch * n;
    const int64_t at_once = ot__recurrent_steps_at_once(p);
    const int64_t n_pieces = (p->steps + at_once - 1) / at_once;

    memset(s->m.zeros, 0, (size_t)n * sizeof *s->m.zeros);
    memset(s->m.of_rows, 0, (size_t)(p->table * s->pre_pitch) * sizeof *s->m.of_rows);
    ot__recurrent_pack(s->m.panels, p, s->by, d->r, s->direction, true);
    ot__copy_states(s->m.dh, s->pitch, d->dy_h ? d->dy_h + at : NULL, n, p);
    ot__copy_states(s->m.dc, s->pitch, d->dy_c ? d->dy_c + at : NULL, n, p);
    for (int64_t i = 0; i < n_pieces; i++) {
        s->first = (p->reversed[s->direction] ? i : n_pieces - 1 - i) * at_once;
        s->n_steps = OT_MIN(at_once, p->steps - s->first);
        s->accumulates = d->accumulates || i > 0;
        ot__parallel_for(s->n_steps * p->batch, OT_PAR_MIN / n + 1, collect_states, s);
        if (p->resets_after)
            multiply_linear(s);
        share_steps_back(s);
        ot__weights_back(s);
    }
    if (p->table > 0)
        ot__table_back(s);
    if (d->dh0 != NULL)
        ot__copy_states(d->dh0 + at, n, s->m.dh, s->pitch, p);
    if (d->dc0 != NULL)
        ot__copy_states(d->dc0 + at, n, s->m.dc, s->pitch, p);
}

void ot__simd_recurrent_grad(const ot__recurrent_grad_f32 *d, const ot__recurrent *p,
                             const ot__recurrent_means *by)
{
    for (int direction = 0; direction < p->n_directions; direction++) {
        const ot__activation *f = p->activations[direction];
        ot__back_pass s = {.d = d,
                           .p = p,
                           .by = by,
                           .direction = direction,
                           .pitch = ot__recurrent_state_pitch(p->hidden),
                           .pre_pitch = ot__recurrent_state_pitch(p->n_gates * p->hidden)};

        for (int i = 0; i < OT__CELL_ACTIVATIONS; i++)
            s.slopes[i] = ot__ref_slope_f32(&f[i], i == 2 ? 0 : p->clip);
        (void)place_back(&s.m, p, by, d->scratch);
        ot__step_cut_make(&s.cut, p, by);
        s.with_r = (ot__state_product){p, by, s.m.panels, &s.cut};
        direction_back(&s);
    }
}
