// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"

enum { PIECE_FLOATS = 8192, ALIGNED_FLOATS = 16 }; // converted at once, unless a row has more

static bool is_converted(const ot__float_port *p)
{
    return ot__dtype_is_narrow(p->type);
}

// Elements of a row that are converted.
static int64_t converted_width(const ot__float_rows *r)
{
    int64_t width = 0;

    for (int i = 0; i < OT__FLOAT_PORTS; i++)
        if (is_converted(&r->port[i]))
            width += r->port[i].width;
    return width;
}

static int64_t rows_at_once(const ot__float_rows *r)
{
    return OT_MAX(1, OT_MIN(r->rows, PIECE_FLOATS / OT_MAX(converted_width(r), 1)));
}

static int64_t port_floats(const ot__float_rows *r, const ot__float_port *p)
{
    return (rows_at_once(r) * p->width + ALIGNED_FLOATS - 1) / ALIGNED_FLOATS * ALIGNED_FLOATS;
}

// Floats of one thread's buffer.
static int64_t buffer_floats(const ot__float_rows *r)
{
    int64_t n = 0;

    for (int i = 0; i < OT__FLOAT_PORTS; i++)
        if (is_converted(&r->port[i]))
            n += port_floats(r, &r->port[i]);
    return n;
}

size_t ot__float_rows_bytes(const ot__float_rows *r, int n_threads)
{
    return (size_t)buffer_floats(r) * (size_t)n_threads * sizeof(float);
}

typedef struct float_rows_job {
    const ot__float_rows *r;
    float *buffer;
    int64_t n_parts;
} float_rows_job;

// Rows first .. first + n - 1 by way of `buffer`.
static void run_piece(const ot__float_rows *r, float *buffer, int64_t first, int64_t n)
{
    float *at[OT__FLOAT_PORTS] = {NULL};

    for (int i = 0; i < OT__FLOAT_PORTS; i++) {
        const ot__float_port *p = &r->port[i];

        if (!is_converted(p)) {
            at[i] = p->data == NULL ? NULL : (float *)p->data + first * p->width;
            continue;
        }
        at[i] = buffer;
        buffer += port_floats(r, p);
        if (!p->is_written)
            ot__floats_best()->widen[p->type](at[i], (const uint16_t *)p->data + first * p->width,
                                              n * p->width);
    }
    r->run(r->context, at, first, n);
    for (int i = 0; i < OT__FLOAT_PORTS; i++) {
        const ot__float_port *p = &r->port[i];

        if (is_converted(p) && p->is_written)
            ot__floats_best()->narrow[p->type]((uint16_t *)p->data + first * p->width, at[i],
                                               n * p->width);
    }
}

static void run_parts(void *context, int64_t first, int64_t last)
{
    const float_rows_job *j = context;
    const ot__float_rows *r = j->r;
    const int64_t step = rows_at_once(r);

    for (int64_t part = first; part < last; part++) {
        const int64_t end = r->rows * (part + 1) / j->n_parts;

        for (int64_t row = r->rows * part / j->n_parts; row < end; row += step)
            run_piece(r, j->buffer + part * buffer_floats(r), row, OT_MIN(step, end - row));
    }
}

static void run_in_place(void *context, int64_t first, int64_t last)
{
    const float_rows_job *j = context;

    run_piece(j->r, NULL, first, last - first);
}

void ot__float_rows_run(const ot__float_rows *r, void *buffer, int n_threads)
{
    float_rows_job j = {.r = r, .buffer = buffer};

    if (converted_width(r) == 0) {
        ot__parallel_for(r->rows, r->grain, run_in_place, &j);
        return;
    }
    j.n_parts = OT_MAX(1, OT_MIN((int64_t)n_threads, r->rows / r->grain));
    if (r->rows > 0)
        ot__parallel_for(j.n_parts, 1, run_parts, &j);
}
