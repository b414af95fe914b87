// SPDX-License-Identifier: Apache-2.0
// Recurrent layers by vector code: forward.
#include <string.h>

#include "kernels/recurrent/steps.h"

// Everything in scratch.
typedef struct layer_memory {
    float *pre;   // NULL: the gates that are kept are where they are made
    float *table; // the products of X's rows and W, where X is a table
    float *bias, *panels, *h_before, *h, *c, *product, *for_gemm;
} layer_memory;

// One direction while it runs.
typedef struct layer_pass {
    const ot__recurrent_data_f32 *d;
    const ot__recurrent *p;
    const ot__recurrent_means *by;
    int direction;
    layer_memory m;
    ot__step_cut cut;
    ot__state_product with_r;
    int64_t first, n_steps; // whose products with X are made at once
    int64_t step, pitch;    // pitch: of rows of h_before, h, c and product
} layer_pass;

// Whether rows of the gates that are kept lie as sums of products do.
static bool keeps_in_place(const ot__recurrent *p, bool keeps)
{
    return keeps && p->n_directions == 1 && p->x_step > p->x_row;
}

static int64_t steps_of_input(const ot__recurrent *p, bool keeps)
{
    return keeps_in_place(p, keeps) ? p->steps : ot__recurrent_steps_at_once(p);
}

// Steps whose sums are in `pre`: those of a table are begun step by step.
static int64_t steps_of_sums(const ot__recurrent *p)
{
    return p->table > 0 ? 1 : ot__recurrent_steps_at_once(p);
}

static int64_t place_layer(layer_memory *m, const ot__recurrent *p, const ot__recurrent_means *by,
                           bool keeps, float *base)
{
    const int64_t pitch = ot__recurrent_state_pitch(p->hidden), width = p->n_gates * p->hidden;
    const int64_t panel = ot__recurrent_panel_floats(p, by);
    ot__floats_taken at = {base, panel < 0 ? -1 : 0};

    m->pre =
        keeps_in_place(p, keeps) ? NULL : ot__floats_take(&at, steps_of_sums(p), p->batch, width);
    m->table = ot__floats_take(&at, p->table, width, 1);
    m->bias = ot__floats_take(&at, width, 1, 1);
    m->panels = ot__floats_take(&at, panel, p->n_gates, 1);
    m->h_before = ot__floats_take(&at, p->batch, pitch, 1);
    m->h = ot__floats_take(&at, p->batch, pitch, 1);
    m->c = ot__floats_take(&at, p->batch, pitch, 1);
    m->product = ot__floats_take(&at, p->batch, pitch, 1);
    m->for_gemm = ot__floats_take_for_gemm(&at, by);
    return at.n;
}

int64_t ot__simd_recurrent_scratch(const ot__recurrent *p, const ot__recurrent_means *by,
                                   bool keeps)
{
    layer_memory m;

    return place_layer(&m, p, by, keeps, NULL);
}

// ---- products with X ----

static float *kept_gates(const layer_pass *s, int64_t step)
{
    const ot__recurrent *p = s->p;

    return s->d->gates +
           (step * p->n_directions + s->direction) * p->batch * p->n_gates * p->hidden;
}

static float *sums_of_step(const layer_pass *s, int64_t step)
{
    const ot__recurrent *p = s->p;
    const int64_t i = p->table > 0 ? 0 : step - s->first;

    return s->m.pre == NULL ? kept_gates(s, step)
                            : s->m.pre + i * p->batch * p->n_gates * p->hidden;
}

// A product with W whose operand and result the caller states.
static ot__wide_product product_with_w(const layer_pass *s, int64_t m, int64_t y_row)
{
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden;

    return (ot__wide_product){
        .g = {.m = m,
              .n = width,
              .k = p->inputs,
              .alpha = 1,
              .a_row = p->inputs,
              .a_column = 1,
              .b_row = 1,
              .b_column = p->inputs,
              .y_row = y_row,
              .b_type = s->by->w_type},
        .b = s->d->w,
        .b_at = s->direction * width * p->inputs,
    };
}

// Sums of the steps at hand. Where the batch is x's first axis each of its rows is a product.
static void multiply_input(const layer_pass *s)
{
    const ot__recurrent *p = s->p;
    const int64_t width = p->n_gates * p->hidden;
    const bool by_steps = p->x_step > p->x_row;
    ot__wide_product w = by_steps ? product_with_w(s, s->n_steps * p->batch, width)
                                  : product_with_w(s, s->n_steps, p->batch * width);

    w.y = sums_of_step(s, s->first);
    w.a = s->d->x + s->first * p->x_step;
    w.n_batches = by_steps ? 1 : p->batch;
    w.a_batch = p->x_row;
    w.y_batch = width;
    ot__wide_multiply(&w, s->by, s->m.for_gemm);
}

static void multiply_table(const layer_pass *s)
{
    ot__wide_product w = product_with_w(s, s->p->table, s->p->n_gates * s->p->hidden);

    w.y = s->m.table;
    w.a = s->d->x;
    ot__wide_multiply(&w, s->by, s->m.for_gemm);
}

// ---- a step ----

static bool is_in_sequence(const layer_pass *s, int64_t row)
{
    return s->d->lengths == NULL || s->step < s->d->lengths[row];
}

// What is kept of units of a row.
static void keep_units(const layer_pass *s, const ot__cell_row_f32 *r, int64_t unit, int64_t row,
                       bool active)
{
    const ot__recurrent_data_f32 *d = s->d;
    const ot__recurrent *p = s->p;
    const size_t n_bytes = (size_t)r->n * sizeof *r->h;
    const int64_t kept = (s->step * p->n_directions + s->direction) * p->batch + row;
    float *gates = d->gates == NULL ? NULL : d->gates + kept * p->n_gates * p->hidden + unit;
    float *cells = d->cells == NULL ? NULL : d->cells + kept * p->hidden + unit;
    float *y = d->y == NULL ? NULL
                            : d->y + s->step * p->y_step + s->direction * p->y_direction +
                                  row * p->y_row + unit;

    if (!active)
        memcpy(r->h, r->h_before, n_bytes);
    for (int64_t gate = 0; gates != NULL && gate < p->n_gates; gate++) {
        if (!active)
            memset(gates + gate * p->hidden, 0, n_bytes);
        else if (gates != r->gates)
            memcpy(gates + gate * p->hidden, r->gates + gate * p->hidden, n_bytes);
    }
    if (cells != NULL && active)
        memcpy(cells, r->c, n_bytes);
    else if (cells != NULL)
        memset(cells, 0, n_bytes);
    if (y != NULL && active)
        memcpy(y, r->h, n_bytes);
    else if (y != NULL)
        memset(y, 0, n_bytes);
}

static ot__cell_row_f32 units_of_row(const layer_pass *s, const ot__step_part *part, int64_t row)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, at = row * s->pitch + part->unit;
    const float *b =
        s->d->b == NULL ? NULL : s->d->b + (s->direction * 2 + 1) * p->n_gates * n + 2 * n;

    return (ot__cell_row_f32){
        .p = p,
        .f = p->activations[s->direction],
        .activate = ot__simd_activate_f32,
        .n = part->unit_end - part->unit,
        .gates = sums_of_step(s, s->step) + row * p->n_gates * n + part->unit,
        .bias = s->m.bias + part->unit,
        .h_before = s->m.h_before + at,
        .peephole = s->d->p == NULL ? NULL : s->d->p + s->direction * 3 * n + part->unit,
        .reset_bias = p->resets_after && b != NULL ? b + part->unit : NULL,
        .h = s->m.h + at,
        .c = s->m.c + at,
        .product = s->m.product + at};
}

static void finish_rows(const layer_pass *s, const ot__step_part *part,
                        void (*cell)(const ot__cell_row_f32 *r))
{
    for (int64_t row = part->row; row < part->row_end; row++) {
        const ot__cell_row_f32 r = units_of_row(s, part, row);
        const bool active = is_in_sequence(s, row);

        if (active)
            cell(&r);
        keep_units(s, &r, part->unit, row, active);
    }
}

static void multiply_gates(const layer_pass *s, const ot__step_part *part, int64_t gate,
                           int64_t gate_end)
{
    const int64_t n = s->p->hidden, row = s->p->n_gates * n;
    float *sums = sums_of_step(s, s->step);

    for (; gate < gate_end; gate++)
        ot__state_multiply(&s->with_r, part, gate, sums + gate * n, row, s->m.h_before, s->pitch,
                           true);
}

// What the step's sums begin with: products of all steps at once are there already.
static void begin_sums(const layer_pass *s, const ot__step_part *part)
{
    const ot__recurrent *p = s->p;
    const int64_t n = p->hidden, width = p->n_gates * n;
    const size_t n_bytes = (size_t)(part->unit_end - part->unit) * sizeof *s->m.table;
    float *sums = sums_of_step(s, s->step);

    for (int64_t row = part->row; p->table > 0 && row < part->row_end; row++)
        for (int64_t gate = 0; gate < p->n_gates; gate++) {
            const int64_t at = gate * n + part->unit;

            memcpy(sums + row * width + at,
                   s->m.table + s->d->rows[s->step * p->batch + row] * width + at, n_bytes);
        }
}

static void reset_units(const layer_pass *s, const ot__step_part *part)
{
    for (int64_t row = part->row; row < part->row_end; row++) {
        const ot__cell_row_f32 r = units_of_row(s, part, row);

        s->by->cells->reset(&r);
    }
}

static void lstm_or_rnn_part(const layer_pass *s, const ot__step_part *part)
{
    begin_sums(s, part);
    multiply_gates(s, part, 0, s->p->n_gates);
    finish_rows(s, part, s->p->cell == OT__CELL_LSTM ? s->by->cells->lstm : s->by->cells->rnn);
}

static void gru_resets_after_part(const layer_pass *s, const ot__step_part *part)
{
    begin_sums(s, part);
    multiply_gates(s, part, 0, 2);
    ot__state_multiply(&s->with_r, part, 2, s->m.product, s->pitch, s->m.h_before, s->pitch, false);
    reset_units(s, part);
    finish_rows(s, part, s->by->cells->gru);
}

static void gru_first_part(const layer_pass *s, const ot__step_part *part)
{
    begin_sums(s, part);
    multiply_gates(s, part, 0, 2);
    reset_units(s, part);
}

static void gru_second_part(const layer_pass *s, const ot__step_part *part)
{
    const int64_t n = s->p->hidden;

    ot__state_multiply(&s->with_r, part, 2, sums_of_step(s, s->step) + 2 * n, s->p->n_gates * n,
                       s->m.product, s->pitch, true);
    finish_rows(s, part, s->by->cells->gru);
}

// A step has up to so many runs, after each of which those who share it meet.
enum { MOST_RUNS = 2 };
typedef void part_run(const layer_pass *s, const ot__step_part *part);

static int runs_of_step(const ot__recurrent *p, part_run *runs[MOST_RUNS])
{
    const bool in_two = p->cell == OT__CELL_GRU && !p->resets_after;

    runs[0] = p->cell != OT__CELL_GRU ? lstm_or_rnn_part
              : p->resets_after       ? gru_resets_after_part
                                      : gru_first_part;
    runs[1] = gru_second_part;
    return in_two ? 2 : 1;
}

typedef struct part_job {
    const layer_pass *s;
    part_run *run;
} part_job;

static void run_part_of_step(const void *job, const ot__step_part *part)
{
    const part_job *j = job;

    j->run(j->s, part);
}

static void swap_states(layer_pass *s)
{
    float *h = s->m.h;

    s->m.h = s->m.h_before;
    s->m.h_before = h;
}

// The steps at hand: of these rows, or NULL: of all, each step shared out.
static void run_steps(layer_pass *s, const ot__step_part *rows)
{
    const bool reversed = s->p->reversed[s->direction];
    part_run *runs[MOST_RUNS];
    part_job j = {s, NULL};
    const int n_runs = runs_of_step(s->p, runs);

    for (int64_t k = 0; k < s->n_steps; k++) {
        s->step = s->first + (reversed ? s->n_steps - 1 - k : k);
        for (int i = 0; i < n_runs; i++) {
            j.run = runs[i];
            if (rows != NULL)
                j.run(s, rows);
            else
                ot__step_share(&s->cut, s->p, s->by, run_part_of_step, &j);
        }
        swap_states(s);
    }
}

static void run_steps_of_rows(const void *pass, const ot__step_part *rows)
{
    layer_pass own = *(const layer_pass *)pass;

    run_steps(&own, rows);
}

static void share_steps(layer_pass *s)
{
    if (s->cut.n_unit_parts > 1) {
        run_steps(s, NULL);
        return;
    }
    ot__step_share(&s->cut, s->p, s->by, run_steps_of_rows, s);
    if (s->n_steps % 2 == 1)
        swap_states(s);
}

// ---- a layer ----

static void run_direction(layer_pass *s)
{
    const ot__recurrent_data_f32 *d = s->d;
    const ot__recurrent *p = s->p;
    const int64_t at = s->direction * p->state_direction;
    const int64_t at_once = steps_of_input(p, d->gates != NULL);
    const int64_t n_pieces = (p->steps + at_once - 1) / at_once;
    const bool reversed = p->reversed[s->direction];

    if (d->b != NULL)
        ot__ref_join_bias_f32(s->m.bias, d->b + s->direction * 2 * p->n_gates * p->hidden, p);
    else
        memset(s->m.bias, 0, (size_t)(p->n_gates * p->hidden) * sizeof *s->m.bias);
    ot__recurrent_pack(s->m.panels, p, s->by, d->r, s->direction, false);
    ot__copy_states(s->m.h_before, s->pitch, d->h0 ? d->h0 + at : NULL, p->state_row, p);
    ot__copy_states(s->m.c, s->pitch, d->c0 ? d->c0 + at : NULL, p->state_row, p);
    if (p->table > 0)
        multiply_table(s);
    for (int64_t i = 0; i < n_pieces; i++) {
        s->first = (reversed ? n_pieces - 1 - i : i) * at_once;
        s->n_steps = OT_MIN(at_once, p->steps - s->first);
        if (p->table == 0)
            multiply_input(s);
        share_steps(s);
    }
    if (d->y_h != NULL)
        ot__copy_states(d->y_h + at, p->state_row, s->m.h_before, s->pitch, p);
    if (d->y_c != NULL)
        ot__copy_states(d->y_c + at, p->state_row, s->m.c, s->pitch, p);
}

void ot__simd_recurrent(const ot__recurrent_data_f32 *d, const ot__recurrent *p,
                        const ot__recurrent_means *by)
{
    for (int direction = 0; direction < p->n_directions; direction++) {
        layer_pass s = {.d = d,
                        .p = p,
                        .by = by,
                        .direction = direction,
                        .pitch = ot__recurrent_state_pitch(p->hidden)};

        (void)place_layer(&s.m, p, by, d->gates != NULL, d->scratch);
        ot__step_cut_make(&s.cut, p, by);
        s.with_r = (ot__state_product){p, by, s.m.panels, &s.cut};
        run_direction(&s);
    }
}
