// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/dnnl_conv_parts.h"

#include <string.h>

enum { MAX_SPATIAL = 3, TYPICAL_BATCH = 16 };
// Chunks of a batch, and how many times the images the sums of all chunks may be, beyond the least.
enum { CHUNKS_MIN = 4, CHUNKS_MAX = 16, SUM_SHARE = 2 };
// Input channels up to which their gradient is a product over row-major images: code for blocks
// spends a whole block on them.
enum { FEW_CHANNELS = 4 };

// Channels that stand together in oneDNN's fastest kernels here; 1: it has none with blocks.
static int channel_block(void)
{
#if defined(__x86_64__)
    // The instruction sets are numbered by bits, those with more having more of them.
    const int isa = ot__dnnl_isa();

    if ((isa & dnnl_cpu_isa_avx2) != dnnl_cpu_isa_avx2)
        return 1;
    return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 16 : 8;
#else
    return 1;
#endif
}

bool ot__dnnl_can_conv(const ot__dnnl_conv *c)
{
    const int n = c->x->ndim - SPATIAL;

    if (n < 1 || n > MAX_SPATIAL)
        return false;
    for (int k = 0; k < c->x->ndim; k++)
        if (c->x->dim[k] < 1 || c->y->dim[k] < 1 || c->w->dim[k] < 1 || c->x->dim[k] > INT32_MAX ||
            c->y->dim[k] > INT32_MAX || c->w->dim[k] > INT32_MAX)
            return false;
    for (int k = 0; k < n; k++)
        if (c->pads[k] > INT32_MAX || c->strides[k] > INT32_MAX || c->dilations[k] > INT32_MAX)
            return false;
    return true;
}

// ---- layouts ----

// Whether it has more than reference code for the forward direction in these layouts; the same for
// any number of threads.
static bool has_forward(const ot__dnnl_conv *given, const ot_layout *x, const ot_layout *y)
{
    const int n_threads = ot__parallel_max();
    ot__conv_parts p = {.attr = NULL};
    ot__dnnl_conv c = *given;
    const ot__dnnl_conv *problem;
    ot__conv_raised r;
    bool has;

    c.x_layout = x;
    c.y_layout = y;
    c.w_layout = NULL;
    problem = ot__conv_raise(&c, &r);
    ot__forks_hold();
    ot__parallel_set(1);
    has = ot__conv_describe(problem, &(ot__conv_way){problem->x_layout, problem->y_layout}, &p) ==
              dnnl_success &&
          !ot__conv_is_reference(&p);
    ot__parallel_set(n_threads);
    ot__conv_forget(&p);
    ot__forks_release();
    return has;
}

// Channels per group that are whole blocks, or depthwise with groups in whole blocks.
static bool is_blocked(const ot__dnnl_conv *c, int64_t channels, int block)
{
    return ot__dnnl_conv_is_depthwise(c) ? c->groups % block == 0
                                         : channels / c->groups % block == 0;
}

void ot__dnnl_conv_layouts(const ot__dnnl_conv *c, const ot_layout **x_layout,
                           const ot_layout **y_layout)
{
    const int block = channel_block(), ndim = c->x->ndim;
    const bool few = c->groups == 1 && (c->x->dim[1] == 1 || c->x->dim[1] == 3);
    const ot_layout *blocked = block > 1 ? ot__layout_blocked(ndim, block) : NULL;
    // The kernels for the first layer of image models read colours row-major.
    const ot_layout *x = few ? NULL : blocked;

    *x_layout = *y_layout = NULL;
    if (block == 1)
        return;
    *x_layout = *y_layout = ot__layout_channels_last(ndim);
    if (is_blocked(c, c->y->dim[1], block) && (few || is_blocked(c, c->x->dim[1], block)) &&
        has_forward(c, x, blocked)) {
        *x_layout = x;
        *y_layout = blocked;
    }
}

// Sums of gradients of weights with one element a channel, over images that are read in steps, are
// wrong where several threads of AVX2 share channels that fill no blocks (oneDNN 2.6.3).
bool ot__dnnl_can_conv_grad(const ot__dnnl_conv *c)
{
    const int block = channel_block();
    bool is_stepped = false;

    for (int k = SPATIAL; k < c->x->ndim; k++) {
        if (c->w->dim[k] != 1)
            return ot__dnnl_can_conv(c);
        is_stepped = is_stepped || c->strides[k - SPATIAL] > 1;
    }
    return ot__dnnl_can_conv(c) &&
           (!is_stepped || block != 8 ||
            (is_blocked(c, c->x->dim[1], block) && is_blocked(c, c->y->dim[1], block)));
}

// ---- chunks ----

// The smallest number of equal chunks of whole images that is not below `at_least`, or one a image.
static int64_t divide_batch(int64_t batch, int64_t at_least)
{
    int64_t n = OT_MIN(batch, at_least);

    while (batch % n != 0)
        n++;
    return n;
}

static double elements(const ot_shape *shape)
{
    double n = 1;

    for (int k = 0; k < shape->ndim; k++)
        n *= (double)shape->dim[k];
    return n;
}

// For results that each chunk has to itself.
static int64_t chunks_of_images(const ot__dnnl_conv *c)
{
    return c->is_exact ? divide_batch(c->x->dim[0], CHUNKS_MAX) : 0;
}

// For weight gradients, which each chunk makes whole: the larger they are, the fewer.
static int64_t chunks_of_sums(const ot__dnnl_conv *c)
{
    const double most = SUM_SHARE * (elements(c->x) + elements(c->y)) / elements(c->w);

    if (!c->is_exact)
        return 0;
    return divide_batch(c->x->dim[0], most < CHUNKS_MIN   ? CHUNKS_MIN
                                      : most > CHUNKS_MAX ? CHUNKS_MAX
                                                          : (int64_t)most);
}

// ---- programs ----

static dnnl_status_t add_conv(ot__dnnl_primitives *out, const ot__conv_parts *p,
                              dnnl_primitive_desc_t pd)
{
    return p->n_chunks > 0 ? ot__dnnl_add_chunks(out, pd, p->n_chunks) : ot__dnnl_add(out, pd);
}

// Images between a slot, where they are as `given`, and a primitive that has them as `md`.
typedef struct images {
    ot__md given, md;
    ot__dnnl_place slot, place; // place: the slot, or scratch where the layouts differ
    bool is_copied;
} images;

static images images_of(ot__dnnl_primitives *out, const ot__conv_parts *p,
                        const dnnl_memory_desc_t *given, const dnnl_memory_desc_t *md, int slot)
{
    const size_t n_bytes = dnnl_memory_desc_get_size(ot__md_of(md));
    images i = {.given = ot__md_of(given), .md = ot__md_of(md)};

    i.slot = OT__DNNL_SLOT_CHUNKS(slot, dnnl_memory_desc_get_size(i.given));
    i.is_copied = dnnl_memory_desc_equal(i.given, i.md) == 0;
    i.place = !i.is_copied      ? i.slot
              : p->n_chunks > 0 ? ot__dnnl_scratch_chunks(out, n_bytes, p->n_chunks)
                                : ot__dnnl_scratch(out, n_bytes);
    return i;
}

static dnnl_status_t read_images(ot__dnnl_primitives *out, const ot__conv_parts *p, const images *i)
{
    return i->is_copied ? ot__dnnl_reorder(out, i->given, i->slot, i->md, i->place, p->n_chunks)
                        : dnnl_success;
}

static dnnl_status_t write_images(ot__dnnl_primitives *out, const ot__conv_parts *p,
                                  const images *i)
{
    return i->is_copied ? ot__dnnl_reorder(out, i->md, i->place, i->given, i->slot, p->n_chunks)
                        : dnnl_success;
}

static dnnl_status_t add_forward(ot__dnnl_primitives *out, const ot__conv_parts *p)
{
    const ot__md w = dnnl_primitive_desc_query_md(p->forward, dnnl_query_weights_md, 0);
    const images x = images_of(out, p, &p->x_given, &p->x, OT__DNNL_CONV_X),
                 y = images_of(out, p, &p->y_given, &p->y, OT__DNNL_CONV_Y);
    ot__dnnl_place w_place = OT__DNNL_SLOT(OT__DNNL_CONV_W);

    OT__DNNL_TRY(ot__dnnl_packed(out, ot__md_of(&p->w), w, &w_place));
    OT__DNNL_TRY(read_images(out, p, &x));
    OT__DNNL_TRY(add_conv(out, p, p->forward));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_SRC, x.md, x.place));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_WEIGHTS, w, w_place));
    if (p->has_bias)
        OT__DNNL_TRY(
            ot__dnnl_arg(out, DNNL_ARG_BIAS, ot__md_of(&p->b), OT__DNNL_SLOT(OT__DNNL_CONV_B)));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DST, y.md, y.place));
    return write_images(out, p, &y);
}

static dnnl_status_t add_dx(ot__dnnl_primitives *out, const ot__conv_parts *p)
{
    const ot__md w = dnnl_primitive_desc_query_md(p->backward, dnnl_query_weights_md, 0);
    const images dy = images_of(out, p, &p->y_given, &p->y, OT__DNNL_CONV_GRAD_DY),
                 dx = images_of(out, p, &p->x_given, &p->x, OT__DNNL_CONV_GRAD_DX);
    ot__dnnl_place w_place = OT__DNNL_SLOT(OT__DNNL_CONV_GRAD_W);

    OT__DNNL_TRY(ot__dnnl_packed(out, ot__md_of(&p->w), w, &w_place));
    OT__DNNL_TRY(read_images(out, p, &dy));
    OT__DNNL_TRY(add_conv(out, p, p->backward));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DIFF_DST, dy.md, dy.place));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_WEIGHTS, w, w_place));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DIFF_SRC, dx.md, dx.place));
    return write_images(out, p, &dx);
}

// Where a primitive leaves a gradient of weights, and whether that is where it is wanted.
static ot__dnnl_place place_of_sums(ot__dnnl_primitives *out, const ot__conv_parts *p,
                                    size_t n_bytes, int slot, bool is_final)
{
    if (p->n_chunks > 1)
        return ot__dnnl_scratch_chunks(out, n_bytes, p->n_chunks);
    return is_final ? OT__DNNL_SLOT(slot) : ot__dnnl_scratch(out, n_bytes);
}

// From where the primitive left `n_bytes` at `from` to slot `slot`, the chunks added up.
static dnnl_status_t add_sums(ot__dnnl_primitives *out, const ot__conv_parts *p,
                              ot__dnnl_place from, size_t n_bytes, ot__dnnl_place to)
{
    return p->n_chunks > 1 ? ot__dnnl_add_sum(out, from, p->n_chunks, n_bytes, to) : dnnl_success;
}

// dw is made where it is wanted when the primitive writes the layout that w has, else in scratch.
static dnnl_status_t add_dw(ot__dnnl_primitives *out, const ot__conv_parts *p)
{
    const ot__md dw = dnnl_primitive_desc_query_md(p->backward, dnnl_query_diff_weights_md, 0);
    const ot__md w = ot__md_of(&p->dw), b = ot__md_of(&p->db);
    const size_t dw_bytes = dnnl_memory_desc_get_size(dw), db_bytes = dnnl_memory_desc_get_size(b);
    const bool is_final = p->wants_dw && dnnl_memory_desc_equal(dw, w) != 0;
    const ot__dnnl_place dw_slot = OT__DNNL_SLOT(OT__DNNL_CONV_GRAD_DW),
                         db_slot = OT__DNNL_SLOT(OT__DNNL_CONV_GRAD_DB);
    const images x = images_of(out, p, &p->x_given, &p->x, OT__DNNL_CONV_GRAD_X),
                 dy = images_of(out, p, &p->y_given, &p->y, OT__DNNL_CONV_GRAD_DY);
    const ot__dnnl_place at = place_of_sums(out, p, dw_bytes, OT__DNNL_CONV_GRAD_DW, is_final);
    ot__dnnl_place db_at = db_slot;

    OT__DNNL_TRY(read_images(out, p, &x));
    OT__DNNL_TRY(read_images(out, p, &dy));
    OT__DNNL_TRY(add_conv(out, p, p->backward));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_SRC, x.md, x.place));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DIFF_DST, dy.md, dy.place));
    OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DIFF_WEIGHTS, dw, at));
    if (p->wants_db) {
        db_at = place_of_sums(out, p, db_bytes, OT__DNNL_CONV_GRAD_DB, true);
        OT__DNNL_TRY(ot__dnnl_arg(out, DNNL_ARG_DIFF_BIAS, b, db_at));
        OT__DNNL_TRY(add_sums(out, p, db_at, db_bytes, db_slot));
    }
    if (!p->wants_dw)
        return dnnl_success;
    OT__DNNL_TRY(add_sums(out, p, at, dw_bytes, is_final ? dw_slot : at));
    return is_final ? dnnl_success : ot__dnnl_reorder(out, dw, at, w, dw_slot, 0);
}

// ---- ways ----

static bool has_few_channels(const ot__dnnl_conv *c)
{
    return c->groups == 1 && c->x->dim[1] <= FEW_CHANNELS;
}

// The layouts to try, the best first. Copies cost little beside what reference code does.
enum { N_WAYS = 3 };
static void list_ways(const ot__dnnl_conv *c, ot__dnnl_direction direction,
                      ot__conv_way ways[N_WAYS])
{
    const ot__conv_way given = {c->x_layout, c->y_layout}, rows = {NULL, NULL};
    const ot_layout *last = ot__layout_channels_last(c->x->ndim);
    const bool few = has_few_channels(c), rows_first = few && direction == OT__DNNL_BACKWARD_DATA;

    ways[0] = rows_first ? rows : given;
    ways[1] = rows_first ? given : few ? rows : (ot__conv_way){last, last};
    ways[2] = few ? (ot__conv_way){last, last} : rows;
}

// Why images are copied, behind the names of what was chosen.
static void note_copies(ot__dnnl_primitives *out, const ot__dnnl_conv *c,
                        ot__dnnl_direction direction, const ot__conv_way *taken)
{
    static const char *const results[] = {"Y", "dX", "dW"};
    const bool by_channels =
        has_few_channels(c) && direction == OT__DNNL_BACKWARD_DATA && taken->y == NULL;
    char text[OT__DNNL_NAMES];

    if (taken->x == c->x_layout && taken->y == c->y_layout)
        return;
    snprintf(text, sizeof(text), ", %s by way of %s copies (%s)", results[direction],
             taken->y == NULL ? "row-major" : "channels-last",
             by_channels ? "few input channels" : "else reference code");
    ot__dnnl_note(out, text);
}

// The first way for which oneDNN has more than reference code; what comes, where there is none.
static dnnl_status_t build_conv(ot__dnnl_primitives *out, const ot__dnnl_conv *given,
                                ot__conv_parts wanted, ot__dnnl_direction direction,
                                dnnl_status_t (*add)(ot__dnnl_primitives *, const ot__conv_parts *))
{
    dnnl_status_t st = dnnl_unimplemented;
    bool is_taken = false;
    ot__conv_way ways[N_WAYS + 1];
    ot__conv_raised r;
    const ot__dnnl_conv *c = ot__conv_raise(given, &r);

    list_ways(c, direction, ways);
    ways[N_WAYS] = (ot__conv_way){c->x_layout, c->y_layout};
    ot__forks_hold();
    for (int k = 0; k <= N_WAYS && !is_taken; k++) {
        ot__conv_parts p = wanted;

        st = ot__conv_describe_direction(c, &ways[k], direction, &p);
        is_taken = st == dnnl_success && (k == N_WAYS || !ot__conv_is_reference(&p));
        if (is_taken) {
            st = add(out, &p);
            note_copies(out, c, direction, &ways[k]);
        }
        ot__conv_forget(&p);
    }
    ot__forks_release();
    return st;
}

static ot_status finish_conv(dnnl_status_t st, ot__dnnl_primitives **out)
{
    if (st != dnnl_success) {
        ot__dnnl_destroy(*out);
        *out = NULL;
    }
    return ot__dnnl_error(st, "convolution");
}

ot_status ot__dnnl_conv_create(const ot__dnnl_conv *c, ot__dnnl_primitives **out)
{
    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out));
    return finish_conv(
        build_conv(*out, c,
                   (ot__conv_parts){.n_chunks = chunks_of_images(c), .has_bias = c->has_bias},
                   OT__DNNL_FORWARD, add_forward),
        out);
}

ot_status ot__dnnl_conv_grad_create(const ot__dnnl_conv *c, bool wants_dx, bool wants_dw,
                                    bool wants_db, ot__dnnl_primitives **out)
{
    dnnl_status_t st = dnnl_success;

    *out = ot__alloc_zero(1, sizeof **out);
    OT_TRY(ot__made(*out));
    if (wants_dw || wants_db) {
        st = build_conv(*out, c,
                        (ot__conv_parts){.n_chunks = chunks_of_sums(c),
                                         .wants_dw = wants_dw,
                                         .wants_db = wants_db},
                        OT__DNNL_BACKWARD_WEIGHTS, add_dw);
        ot__dnnl_scratch_reuse(*out);
    }
    if (st == dnnl_success && wants_dx) // last: it may be in the place of x
        st = build_conv(*out, c, (ot__conv_parts){.n_chunks = chunks_of_images(c)},
                        OT__DNNL_BACKWARD_DATA, add_dx);
    return finish_conv(st, out);
}

// Elsewhere it takes each channel for a block of them. Forward and all gradients by bench
// operators, Intel with AVX-512, ms with its code and with ours (simd_depthwise.c):
//
//   8 96 28 28 by 5 5       5.0 1.9    8 96 28 28 by 3 3, dilated  4.9  3.2
//   8 96 56 56 by 7 7      33.4 9.1    8 256 1024 by 4            16.2  4.2
//   8 384 14 14 by 7 7      9.7 2.6    8 256 1024 by 31           96.9 16.3
bool ot__dnnl_conv_sums_channels(const ot__dnnl_conv *given)
{
    ot__conv_parts p = {.n_chunks = chunks_of_sums(given)};
    bool has;
    ot__conv_raised r;
    const ot__dnnl_conv *c = ot__conv_raise(given, &r);

    ot__forks_hold();
    has = ot__conv_describe_direction(c, &(ot__conv_way){c->x_layout, c->y_layout},
                                      OT__DNNL_BACKWARD_WEIGHTS, &p) == dnnl_success &&
          ot__conv_is_called(&p, "jit_dw");
    ot__conv_forget(&p);
    ot__forks_release();
    return has;
}

// ---- the layout of weights ----

static const ot_layout *agreed_layout(const ot__dnnl_conv *c, const ot__conv_parts *p)
{
    const ot__dnnl_convolution gradient = ot__conv_problem(p, OT__DNNL_BACKWARD_WEIGHTS, false);
    const ot__md w = dnnl_primitive_desc_query_md(p->forward, dnnl_query_weights_md, 0);
    dnnl_primitive_desc_t pd = NULL;
    const ot_layout *layout = NULL;

    if (ot__conv_describe_primitive(p, &gradient, p->plain_attr, &pd) != dnnl_success)
        return NULL;
    if (dnnl_memory_desc_equal(w, dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0)))
        layout = ot__dnnl_weights_layout(w, c->w, c->groups);
    dnnl_primitive_desc_destroy(pd);
    return layout;
}

const ot_layout *ot__dnnl_conv_weights_layout(const ot__dnnl_conv *c)
{
    ot_shape x = *c->x, y = *c->y;
    ot__dnnl_conv typical = *c;
    ot__conv_parts p = {.attr = NULL};
    const ot_layout *layout = NULL;

    if (ot__conv_is_raised(c))
        return NULL;
    x.dim[0] = y.dim[0] = TYPICAL_BATCH;
    typical.x = &x;
    typical.y = &y;
    typical.w_layout = NULL;
    ot__forks_hold();
    if (ot__conv_describe(&typical, &(ot__conv_way){c->x_layout, c->y_layout}, &p) == dnnl_success)
        layout = agreed_layout(&typical, &p);
    ot__conv_forget(&p);
    ot__forks_release();
    return layout;
}

bool ot__dnnl_conv_accepts_weights(const ot__dnnl_conv *c)
{
    dnnl_memory_desc_t md;

    if (ot__conv_is_raised(c))
        return c->w_layout == NULL;
    if (ot__dnnl_weights_md(&md, c->type, c->w, c->groups, c->w_layout) != dnnl_success)
        return false;
    ot__md_release(&md);
    return true;
}
