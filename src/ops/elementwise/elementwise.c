// SPDX-License-Identifier: Apache-2.0
// Planning and running elementwise operators piece by piece.
#include "ops/elementwise/elementwise.h"

#include <string.h>

// ---- planning ----

// Drop axes of extent 1, then merge neighbours along which every operand steps evenly.
static void merge_axes(ot__elementwise *e)
{
    int n = 0;

    for (int k = 0; k < e->ndim; k++) {
        bool merges = n > 0;

        if (e->dim[k] == 1)
            continue;
        for (int i = 0; merges && i < e->n_operands; i++)
            merges = e->operand[i].kind == OT__OPERAND_ABSENT ||
                     e->operand[i].stride[n - 1] == e->operand[i].stride[k] * e->dim[k];
        if (!merges)
            n++;
        e->dim[n - 1] = merges ? e->dim[n - 1] * e->dim[k] : e->dim[k];
        for (int i = 0; i < e->n_operands; i++)
            e->operand[i].stride[n - 1] = e->operand[i].stride[k];
    }
    e->ndim = n;
}

enum { CHANNELS = 1 };

// Extents of axes, or distances along them, as axes lie in the layout.
static void move_channels(int64_t *along, int ndim, const ot_layout *layout, bool is_distance)
{
    const int64_t channels = along[CHANNELS], block = ot__layout_channel_block(layout);

    if (ot__layout_is_channels_last(layout)) {
        memmove(along + CHANNELS, along + CHANNELS + 1,
                (size_t)(ndim - 1 - CHANNELS) * sizeof(*along));
        along[ndim - 1] = channels;
        return;
    }
    along[CHANNELS] = is_distance ? channels * block : channels / block;
    along[ndim] = is_distance ? channels : block;
}

// The axes as y lies in memory. What has its shape lies as it does, the rest row-major.
static void lay_axes(ot__elementwise *e, const ot_layout *layout)
{
    const int ndim = e->ndim + (ot__layout_channel_block(layout) > 1);

    move_channels(e->dim, e->ndim, layout, false);
    for (int i = 0; i < e->n_operands; i++) {
        ot__operand *o = &e->operand[i];
        int64_t distance = 1;

        if (o->kind != OT__OPERAND_FULL) {
            move_channels(o->stride, e->ndim, layout, true);
            continue;
        }
        for (int k = ndim - 1; k >= 0; k--) {
            o->stride[k] = e->dim[k] == 1 ? 0 : distance;
            distance *= e->dim[k];
        }
    }
    e->ndim = ndim;
}

static bool is_full(const ot_arg *x, const ot_arg *y)
{
    return x->count != 1 && ot__shape_equal(&x->shape, &y->shape);
}

// Its channels, which layouts move, are one after the other or all the same, as are those of a
// single element.
static bool stretches_beside(const ot_arg *x, const ot_arg *y)
{
    int64_t distance[OT_MAX_NDIM];

    ot__broadcast_strides(&x->shape, &y->shape, distance);
    return distance[CHANNELS] <= 1;
}

static bool is_of_images(const ot_layout *layout)
{
    return layout != NULL &&
           (ot__layout_is_channels_last(layout) ||
            ot__layout_equal(layout,
                             ot__layout_blocked(layout->ndim, ot__layout_channel_block(layout))));
}

void ot__stretched_layouts(ot_prep *p)
{
    const ot_arg *y = ot_prep_out(p, 0);
    const ot_layout *layout = NULL;

    if (y->shape.ndim <= CHANNELS)
        return;
    for (int i = 0; i < p->n_in; i++) {
        const ot_arg *x = ot_prep_in(p, i);

        if (x != NULL && is_full(x, y) && layout == NULL)
            layout = ot_prep_offered_in(p, i);
        if (x != NULL && !is_full(x, y) && !stretches_beside(x, y))
            return;
    }
    if (!is_of_images(layout) || !ot__layout_fits(layout, &y->shape))
        return;
    for (int i = 0; i < p->n_in; i++)
        if (ot_prep_in(p, i) != NULL && is_full(ot_prep_in(p, i), y))
            ot_prep_want_in(p, i, layout);
    ot_prep_want_out(p, 0, layout);
}

static ot__operand_kind operand_kind_of(const ot_arg *y, const ot_arg *x)
{
    if (x == NULL)
        return OT__OPERAND_ABSENT;
    if (x->count == y->count) // as x broadcasts to y
        return OT__OPERAND_FULL;
    return x->count == 1 ? OT__OPERAND_SCALAR : OT__OPERAND_GATHER;
}

enum {
    VECTOR = 16,        // elements; pieces are multiples of it
    PARTS_OF_PIECE = 4, // a line that is shorter than such a part of a piece shares pieces
    REPEATED = 256,     // elements of a piece, where an operand stays the same along lines
};

static bool needs_conversion(const ot_arg *y, const ot_arg *const *x, int n_operands)
{
    for (int i = 0; i < n_operands; i++)
        if (x[i] != NULL && ot__dtype_is_narrow(x[i]->dtype))
            return true;
    return ot__dtype_is_narrow(y->dtype);
}

// Whether an operand is brought into the buffer, where y is, too, when it is converted.
static bool is_buffered(const ot__elementwise *e, const ot__operand *o)
{
    return o->kind == OT__OPERAND_SCALAR || o->kind == OT__OPERAND_GATHER ||
           (e->converts && o->kind == OT__OPERAND_FULL && ot__dtype_is_narrow(o->dtype));
}

// How many parts of at most n elements there are.
static int64_t parts(int64_t count, int64_t n)
{
    return (count + n - 1) / n;
}

static bool stays_along_lines(const ot__elementwise *e, const ot__operand *o)
{
    return o->kind == OT__OPERAND_GATHER && o->stride[e->ndim - 1] == 0;
}

// Whether the last axis of a stretched operand is the same all along the axis before.
static bool comes_again(const ot__elementwise *e, const ot__operand *o)
{
    return o->kind == OT__OPERAND_GATHER && e->ndim >= 2 && o->stride[e->ndim - 2] == 0;
}

// Whether a stretched operand lies in one piece along the last two axes.
static bool lies_in_planes(const ot__elementwise *e, const ot__operand *o)
{
    const int last = e->ndim - 1;

    return o->kind == OT__OPERAND_GATHER && o->stride[last] == 1 &&
           o->stride[last - 1] == e->dim[last];
}

// Elements of the last axis, of at most so many, where what is stretched comes again with each of
// them along the axis before, or lies in one piece along both: short rows and, in the layouts of
// images, channels. Else 0, as where both axes together are short.
static int64_t period_of(const ot__elementwise *e, int64_t most)
{
    const int last = e->ndim - 1;

    if (e->ndim < 2 || e->dim[last] > most || e->dim[last] * e->dim[last - 1] < VECTOR)
        return 0;
    for (int i = 0; i < e->n_operands; i++)
        if (e->operand[i].kind == OT__OPERAND_GATHER && !comes_again(e, &e->operand[i]) &&
            !lies_in_planes(e, &e->operand[i]))
            return 0;
    return e->dim[last];
}

// Where lines of y, along which operands lie in one piece or stay the same, are long enough, pieces
// keep within them. Of what stays the same a few elements are brought once for a whole line.
static void plan_pieces(ot__elementwise *e, int n_buffered)
{
    const int64_t line = e->ndim > 1 ? e->dim[e->ndim - 1] : e->count;
    int64_t most = OT_MAX(OT__PIECE_BYTES / (int64_t)e->gathered_size / OT_MAX(n_buffered, 1), 1);

    if (most > VECTOR)
        most -= most % VECTOR;
    e->piece = most;
    for (int i = 0; i < e->n_operands && e->ndim > 1; i++)
        if (stays_along_lines(e, &e->operand[i]))
            most = OT_MIN(most, REPEATED);
    if (line < most / PARTS_OF_PIECE)
        e->period = period_of(e, OT_MIN(most, REPEATED));
    if (e->period > 0) {
        e->line = e->dim[e->ndim - 2] * line;
        e->piece = OT_MIN(most, REPEATED) / line * line;
        e->n_in_line = parts(e->line, e->piece);
        return;
    }
    e->line = e->ndim > 1 && line >= most / PARTS_OF_PIECE ? line : e->count;
    if (e->line < e->count) // all pieces of a line are about as long
        e->piece = OT_MIN(most, parts(parts(line, parts(line, most)), VECTOR) * VECTOR);
    e->n_in_line = parts(e->line, e->piece);
}

static void plan_elementwise(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                             int n_operands, bool converts)
{
    size_t largest = ot__element_size(converts ? OT_F32 : y->dtype);
    int n_gathered = 0;

    *e = (ot__elementwise){.n_operands = n_operands,
                           .ndim = y->shape.ndim,
                           .count = y->count,
                           .converts = converts,
                           .y_dtype = y->dtype};
    e->y_size = ot__element_size(y->dtype);
    memcpy(e->dim, y->shape.dim, sizeof(e->dim));
    for (int i = 0; i < n_operands; i++) {
        ot__operand *o = &e->operand[i];

        o->kind = operand_kind_of(y, x[i]);
        if (x[i] == NULL)
            continue;
        o->dtype = x[i]->dtype;
        o->size = ot__element_size(x[i]->dtype);
        largest = OT_MAX(largest, o->size);
        ot__broadcast_strides(&x[i]->shape, &y->shape, o->stride);
    }
    for (int i = 0; i < e->n_operands; i++)
        if (is_buffered(e, &e->operand[i]))
            e->operand[i].n_before = n_gathered++;
    if (converts && ot__dtype_is_narrow(y->dtype))
        n_gathered++; // last
    // The gathered operands of a piece share one buffer, which lies on a thread's stack.
    e->gathered_size = OT_MAX(largest, (size_t)1);
    for (int i = 0; i < e->n_operands && y->layout != NULL; i++)
        if (e->operand[i].kind == OT__OPERAND_GATHER) {
            lay_axes(e, y->layout);
            break;
        }
    merge_axes(e);
    plan_pieces(e, n_gathered);
}

void ot__elementwise_plan(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                          int n_operands)
{
    plan_elementwise(e, y, x, n_operands, false);
}

void ot__elementwise_plan_f32(ot__elementwise *e, const ot_arg *y, const ot_arg *const *x,
                              int n_operands)
{
    plan_elementwise(e, y, x, n_operands, needs_conversion(y, x, n_operands));
}

// ---- running ----

typedef struct job {
    const ot__elementwise *e;
    uint8_t *y;
    const void *const *x;
    ot__piece piece;
    const void *context;
} job;

// A piece: elements start .. start + n - 1 of y, the `part`-th of a line.
typedef struct span {
    int64_t line, part, start, n;
} span;

static span span_of(const ot__elementwise *e, int64_t line, int64_t part)
{
    const int64_t at = part * e->piece;

    return (span){line, part, line * e->line + at, OT_MIN(e->piece, e->line - at)};
}

static span next_span(const ot__elementwise *e, span p)
{
    return p.part + 1 < e->n_in_line ? span_of(e, p.line, p.part + 1) : span_of(e, p.line + 1, 0);
}

// Where the operand's element `start` of y lies.
static const void *element_of(const ot__elementwise *e, const ot__operand *o, const void *x,
                              int64_t start)
{
    return (const uint8_t *)x +
           (size_t)ot__reduction_offset(start, e->dim, o->stride, e->ndim) * o->size;
}

static bool keeps_within_line(const ot__elementwise *e)
{
    return e->line < e->count;
}

// Whether the operand is one element along a line of y.
static bool is_one_element(const ot__elementwise *e, const ot__operand *o)
{
    return o->kind == OT__OPERAND_SCALAR || (keeps_within_line(e) && stays_along_lines(e, o));
}

// Whether as many elements are brought as the longest piece of a line has, for all of them.
static bool is_whole_piece(const ot__elementwise *e, const ot__operand *o)
{
    return is_one_element(e, o) || (e->period > 0 && comes_again(e, o));
}

// Whether what was brought for the piece before this one still holds.
static bool is_brought(const ot__elementwise *e, const ot__operand *o, span p)
{
    return o->kind == OT__OPERAND_SCALAR || (p.part > 0 && is_whole_piece(e, o));
}

// A period of the operand again and again, as often as the longest piece has it.
static void bring_periods(const ot__elementwise *e, const ot__operand *o, const void *x, void *to)
{
    const size_t n_bytes = (size_t)e->piece * o->size;
    size_t n = (size_t)e->period * o->size;

    ot__ref_stretch(to, x, 1, &e->period, &o->stride[e->ndim - 1], 0, e->period, o->size);
    for (; n < n_bytes; n *= 2)
        memcpy((uint8_t *)to + n, to, OT_MIN(n, n_bytes - n));
}

// The stretched operand's elements for a piece, where they lie or brought to `to`.
static const void *bring(const ot__elementwise *e, const ot__operand *o, const void *x, span p,
                         void *to)
{
    if (e->period > 0 && comes_again(e, o))
        bring_periods(e, o, element_of(e, o, x, p.line * e->line), to);
    else if (is_one_element(e, o))
        ot__ref_stretch(to, element_of(e, o, x, p.start), 0, NULL, NULL, 0, e->piece, o->size);
    else if (keeps_within_line(e))
        return element_of(e, o, x, p.start);
    else
        ot__ref_stretch(to, x, e->ndim, e->dim, o->stride, p.start, p.n, o->size);
    return to;
}

static void run_pieces(void *context, int64_t first, int64_t last)
{
    _Alignas(64) uint8_t buffer[OT__PIECE_BYTES];
    const void *x[OT__MAX_OPERANDS] = {NULL};
    const job *j = context;
    const ot__elementwise *e = j->e;
    span p = span_of(e, first / e->n_in_line, first % e->n_in_line);

    for (int64_t k = first; k < last; k++, p = next_span(e, p)) {
        for (int i = 0; i < e->n_operands; i++) {
            const ot__operand *o = &e->operand[i];

            if (o->kind == OT__OPERAND_FULL)
                x[i] = (const uint8_t *)j->x[i] + (size_t)p.start * o->size;
            else if (o->kind != OT__OPERAND_ABSENT && (k == first || !is_brought(e, o, p)))
                x[i] = bring(e, o, j->x[i], p,
                             buffer + (size_t)(o->n_before * e->piece) * e->gathered_size);
        }
        j->piece(j->y + (size_t)p.start * e->y_size, x, p.n, j->context);
    }
}

enum { CONVERTED_BYTES = 2048 }; // of the longest piece before it is converted

// An operand's elements for a piece in f32; of one element as many as the longest piece has.
static const void *bring_converted(const ot__elementwise *e, const ot__operand *o, const void *x,
                                   span p, float *to)
{
    _Alignas(64) uint16_t stretched[CONVERTED_BYTES / sizeof(uint16_t)];
    const bool is_narrow = ot__dtype_is_narrow(o->dtype);
    const void *from = (const uint8_t *)x + (size_t)p.start * o->size;

    if (o->kind == OT__OPERAND_FULL && !is_narrow)
        return from;
    if (o->kind != OT__OPERAND_FULL)
        from = bring(e, o, x, p, is_narrow ? (void *)stretched : (void *)to);
    if (!is_narrow)
        return from;
    ot__floats_best()->widen[o->dtype](to, from, is_whole_piece(e, o) ? e->piece : p.n);
    return to;
}

static void run_converted_pieces(void *context, int64_t first, int64_t last)
{
    _Alignas(64) uint8_t buffer[OT__PIECE_BYTES];
    const void *x[OT__MAX_OPERANDS] = {NULL};
    const job *j = context;
    const ot__elementwise *e = j->e;
    const bool is_narrow = ot__dtype_is_narrow(e->y_dtype);
    span p = span_of(e, first / e->n_in_line, first % e->n_in_line);

    for (int64_t k = first; k < last; k++, p = next_span(e, p)) {
        uint8_t *y = j->y + (size_t)p.start * e->y_size;
        int n_buffered = 0;

        for (int i = 0; i < e->n_operands; i++) {
            const ot__operand *o = &e->operand[i];
            float *to = (float *)(void *)buffer + o->n_before * e->piece;

            if (o->kind == OT__OPERAND_ABSENT)
                continue;
            n_buffered += is_buffered(e, o);
            if (k == first || !is_brought(e, o, p))
                x[i] = bring_converted(e, o, j->x[i], p, to);
        }
        float *result = (float *)(void *)buffer + n_buffered * e->piece;

        j->piece(is_narrow ? (void *)result : (void *)y, x, p.n, j->context);
        if (is_narrow)
            ot__floats_best()->narrow[e->y_dtype]((uint16_t *)(void *)y, result, p.n);
    }
}

void ot__elementwise_run(const ot__elementwise *e, void *y, const void *const *x, ot__piece piece,
                         const void *context)
{
    job j = {e, y, x, piece, context};

    ot__parallel_for(e->count == 0 ? 0 : e->count / e->line * e->n_in_line,
                     OT_PAR_MIN / e->piece + 1, e->converts ? run_converted_pieces : run_pieces,
                     &j);
}

// ---- one plan per node ----

ot_status ot__pieces_prepare(ot_prep *p)
{
    ot__elementwise *e = ot_prep_state(p, sizeof(*e));

    if (e != NULL)
        ot__elementwise_plan(e, p->out[0], p->in, p->n_in);
    return p->status;
}

ot_status ot__pieces_prepare_f32(ot_prep *p)
{
    ot__elementwise *e = ot_prep_state(p, sizeof(*e));

    if (e != NULL)
        ot__elementwise_plan_f32(e, p->out[0], p->in, p->n_in);
    return p->status;
}

void ot__pieces_run(const ot_run *r, ot__piece piece, const void *context)
{
    const ot__elementwise *e = r->state;
    const void *x[OT__MAX_OPERANDS];

    for (int i = 0; i < r->n_in; i++)
        x[i] = r->in[i] == NULL ? NULL : r->in[i]->data;
    ot__elementwise_run(e, r->out[0]->data, x, piece, context);
}

typedef struct pairs {
    ot__elementwise plan; // first: ot__pieces_run
    ot__pair_function function;
} pairs;

ot_status ot__pairs_prepare(ot_prep *p, ot__pair_function function)
{
    pairs *s = ot_prep_state(p, sizeof(*s));

    OT_TRY(p->status);
    ot__elementwise_plan(&s->plan, p->out[0], p->in, p->n_in);
    s->function = function;
    return OT_OK;
}

static void pairs_piece(void *y, const void *const *x, int64_t n, const void *context)
{
    ((const pairs *)context)->function(y, x[0], x[1], n);
}

ot_status ot__pairs_run(const ot_run *r)
{
    ot__pieces_run(r, pairs_piece, r->state);
    return OT_OK;
}
