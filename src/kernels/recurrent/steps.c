// SPDX-License-Identifier: Apache-2.0
// What recurrent layers share forward and back: memory, the panels of R, who computes what.
#include <string.h>

#include "kernels/recurrent/steps.h"

enum {
    LINE = 16,           // floats of a line of the cache
    ROWS_AT_ONCE = 512,  // of the batch, of all steps together
    THREAD_MIN = 100000, // multiplications of a step below which a second thread costs more
};

// ---- memory ----

float *ot__floats_take(ot__floats_taken *at, int64_t a, int64_t b, int64_t c)
{
    float *taken = at->base == NULL ? NULL : at->base + at->n;
    int64_t n;

    if (at->n < 0 || ot__mul_overflows(a, b, &n) || ot__mul_overflows(n, c, &n) ||
        ot__add_overflows(n, LINE - 1, &n) || ot__add_overflows(at->n, n / LINE * LINE, &at->n))
        at->n = -1;
    return taken;
}

float *ot__floats_take_for_gemm(ot__floats_taken *at, const ot__recurrent_means *by)
{
    const size_t n_bytes = ot__gemm_most_scratch(by->kernel);

    return ot__floats_take(at, (int64_t)(n_bytes / sizeof(float)), by->n_threads, 1);
}

int64_t ot__recurrent_steps_at_once(const ot__recurrent *p)
{
    return OT_MIN(p->steps, OT_MAX(1, ROWS_AT_ONCE / p->batch));
}

int64_t ot__recurrent_state_pitch(int64_t n)
{
    return (n + LINE - 1) / LINE * LINE + LINE;
}

void ot__copy_states(float *to, int64_t to_row, const float *from, int64_t from_row,
                     const ot__recurrent *p)
{
    const size_t n_bytes = (size_t)p->hidden * sizeof *to;

    for (int64_t row = 0; row < p->batch; row++) {
        if (from == NULL)
            memset(to + row * to_row, 0, n_bytes);
        else
            memcpy(to + row * to_row, from + row * from_row, n_bytes);
    }
}

void ot__simd_activate_f32(float *y, int64_t n, const ot__activation *f, double clip)
{
    const float *const x[OT__TILE_INPUTS] = {y};

    if (clip > 0 || (f->kind != OT__ACTIVATION_SIGMOID && f->kind != OT__ACTIVATION_TANH))
        ot__ref_activate_f32(y, n, f, clip);
    else if (f->kind == OT__ACTIVATION_SIGMOID)
        ot__tiles_best()->sigmoid(y, x, n, NULL);
    else
        ot__tiles_best()->tanh(y, x, n, NULL);
}

// ---- who computes what ----

// Threads that have rows of their own need not meet, and read nothing that another one wrote, but
// each reads all of R in every step: it must stay in their caches, beside as much else. And their
// rows must not make more tiles than the batch as a whole does.
static bool shares_rows(const ot__recurrent *p, const ot__recurrent_means *by, int64_t n_threads)
{
    const int64_t tile = by->kernel->tile_rows, rows = (p->batch + n_threads - 1) / n_threads;
    const int64_t n_tiles = (rows + tile - 1) / tile * n_threads;
    const double r_bytes =
        (double)p->n_gates * (double)p->hidden * (double)p->hidden * sizeof(float);

    return n_threads == 1 ||
           (n_tiles <= (p->batch + tile - 1) / tile && 2 * r_bytes <= (double)ot__second_cache());
}

void ot__step_cut_make(ot__step_cut *c, const ot__recurrent *p, const ot__recurrent_means *by)
{
    const double work =
        (double)p->batch * (double)p->n_gates * (double)p->hidden * (double)p->hidden;
    const int64_t n_threads = (int64_t)OT_MIN((double)by->n_threads, 1 + work / THREAD_MIN);

    c->n_blocks = (p->hidden + by->kernel->panel_columns - 1) / by->kernel->panel_columns;
    c->n_unit_parts = shares_rows(p, by, n_threads) ? 1 : (int)OT_MIN(n_threads, c->n_blocks);
    c->n_row_parts = (int)OT_MAX(1, OT_MIN(n_threads / c->n_unit_parts, p->batch));
}

static void find_step_part(ot__step_part *part, const ot__step_cut *c, const ot__recurrent *p,
                           const ot__recurrent_means *by, int64_t i)
{
    const int64_t column = i / c->n_row_parts, row = i % c->n_row_parts;

    part->block = c->n_blocks * column / c->n_unit_parts;
    part->block_end = c->n_blocks * (column + 1) / c->n_unit_parts;
    part->unit = part->block * by->kernel->panel_columns;
    part->unit_end = OT_MIN(part->block_end * by->kernel->panel_columns, p->hidden);
    part->row = p->batch * row / c->n_row_parts;
    part->row_end = p->batch * (row + 1) / c->n_row_parts;
}

typedef struct share_job {
    const ot__step_cut *cut;
    const ot__recurrent *p;
    const ot__recurrent_means *by;
    void (*run)(const void *context, const ot__step_part *part);
    const void *context;
} share_job;

static void run_step_parts(void *context, int64_t first, int64_t last)
{
    const share_job *j = context;

    for (int64_t i = first; i < last; i++) {
        ot__step_part part;

        find_step_part(&part, j->cut, j->p, j->by, i);
        j->run(j->context, &part);
    }
}

void ot__step_share(const ot__step_cut *c, const ot__recurrent *p, const ot__recurrent_means *by,
                    void (*run)(const void *context, const ot__step_part *part),
                    const void *context)
{
    share_job j = {c, p, by, run, context};

    ot__parallel_for((int64_t)c->n_unit_parts * c->n_row_parts, 1, run_step_parts, &j);
}

// ---- products with R ----

int64_t ot__recurrent_panel_floats(const ot__recurrent *p, const ot__recurrent_means *by)
{
    const int64_t columns = by->kernel->panel_columns;
    ot__floats_taken at = {NULL, 0};

    if (p->hidden > INT64_MAX - columns)
        return -1;
    (void)ot__floats_take(&at, (p->hidden + columns - 1) / columns * columns, p->hidden, 1);
    return at.n;
}

typedef struct pack_job {
    float *panels;
    const ot__recurrent *p;
    const ot__recurrent_means *by;
    const float *r;
    int direction;
    bool back;
} pack_job;

static const float *weights_at(const float *weights, int64_t at, ot_dtype type)
{
    return ot__dtype_is_narrow(type)
               ? (const float *)(const void *)((const uint16_t *)(const void *)weights + at)
               : weights + at;
}

static void pack_blocks(void *context, int64_t first, int64_t last)
{
    const pack_job *j = context;
    const int64_t n = j->p->hidden, columns = j->by->kernel->panel_columns;
    const int64_t n_blocks = (n + columns - 1) / columns;

    for (int64_t block = first; block < last; block++)
        for (int64_t gate = 0; gate < j->p->n_gates; gate++) {
            const int64_t unit = block * columns;
            const int64_t at = (j->direction * j->p->n_gates + gate) * n * n;
            const ot__gemm g = {.n = OT_MIN(columns, n - unit),
                                .k = n,
                                .b_row = j->back ? n : 1,
                                .b_column = j->back ? 1 : n,
                                .b_type = j->by->r_type};

            j->by->kernel->pack(j->panels + (gate * n_blocks + block) * columns * n,
                                weights_at(j->r, at + unit * (j->back ? 1 : n), j->by->r_type), &g);
        }
}

void ot__recurrent_pack(float *panels, const ot__recurrent *p, const ot__recurrent_means *by,
                        const float *r, int direction, bool back)
{
    pack_job j = {panels, p, by, r, direction, back};
    ot__step_cut cut;

    ot__step_cut_make(&cut, p, by);
    ot__parallel_for(cut.n_blocks, (cut.n_blocks + by->n_threads - 1) / by->n_threads, pack_blocks,
                     &j);
}

// Panels that rows of `a` are multiplied by in turn, so that they stay in the second cache.
enum { PANELS_AT_ONCE = 4 };

void ot__state_multiply(const ot__state_product *s, const ot__step_part *part, int64_t gate,
                        float *y, int64_t y_row, const float *a, int64_t a_row, bool accumulates)
{
    const int64_t n = s->p->hidden, columns = s->by->kernel->panel_columns;
    const float *panels = s->panels + (gate * s->cut->n_blocks + part->block) * columns * n;

    y += part->row * y_row;
    a += part->row * a_row;
    for (int64_t unit = part->unit, width; unit < part->unit_end; unit += width) {
        const int64_t left = part->unit_end - unit;
        ot__gemm_panels shape = {
            .rows = part->row_end - part->row, .depth = n, .accumulates = accumulates};

        width = left < columns ? left : OT_MIN(left / columns, PANELS_AT_ONCE) * columns;
        shape.columns = width;
        s->by->kernel->multiply(y + unit, y_row, a, a_row, panels, &shape);
        panels += width * n;
    }
}

// ---- products of many rows ----

static void batch_of_wide(const void *context, int64_t batch, ot__gemm_data *data)
{
    const ot__wide_product *w = context;

    *data = (ot__gemm_data){.y = w->y + batch * w->y_batch,
                            .a = w->a + batch * w->a_batch,
                            .b = weights_at(w->b, w->b_at, w->g.b_type),
                            .c = w->c,
                            .accumulates = w->accumulates};
}

void ot__wide_multiply(const ot__wide_product *w, const ot__recurrent_means *by, float *scratch)
{
    const ot__gemm_batches batches = {
        .n_batches = OT_MAX(1, w->n_batches), .at = batch_of_wide, .context = w};
    ot__gemm_plan plan;

    ot__gemm_plan_make(&plan, by->kernel, &w->g, batches.n_batches, by->n_threads);
    ot__gemm_run(by->kernel, &plan, &batches, scratch, by->n_threads);
}
