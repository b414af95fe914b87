// SPDX-License-Identifier: Apache-2.0
// Kernels for f32 run nodes of f16 and bf16, and kernels for types of whole bytes those of packed
// types: arguments of these types are converted in scratch, the kernel runs on that, and what it
// has written is converted back. Where the record says what it does by image, that is done a few
// images at a time: so little scratch stays in the caches.
#include "op/op.h"

enum { NOT_CONVERTED = -1, NOWHERE = -1, MAX_CONSTANT = 4096, SUM_SPAN = 1 << 14 };
// Bytes of a piece in f32: at least so many, and so many times those of what all pieces read or add
// to (weights and their gradients), which each of them goes through once more.
static const double PIECE_BYTES = 0x1p21, PIECE_SHARE = 2;

ot_dtype ot__edges_type(ot_dtype dtype)
{
    return ot__dtype_is_narrow(dtype) ? OT_F32 : ot__dtype_unpacked(dtype);
}

static bool edge_converts(const ot_arg *arg)
{
    return arg != NULL && ot__edges_type(arg->dtype) != arg->dtype;
}

bool ot__edges_wanted(const ot_prep *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (edge_converts(p->in[i]))
            return true;
    for (int i = 0; i < p->n_out; i++)
        if (edge_converts(p->out[i]))
            return true;
    return false;
}

// ---- pieces ----

static bool has_port(unsigned ports, int i)
{
    return i < 32 && (ports >> i & 1) != 0;
}

static bool lies_image_by_image(const ot_arg *arg)
{
    if (arg->layout == NULL)
        return true;
    for (int k = 0; k < arg->layout->n_blocks; k++)
        if (arg->layout->block[k].axis == 0)
            return false;
    return arg->layout->order[0] == 0;
}

typedef struct batch {
    int64_t n_images;     // -1: they do not all have as many, or lie otherwise
    double whole, images; // bytes in f32 of what every piece needs, and of the images
} batch;

static void count_arg(batch *b, const ot_arg *arg, bool by_image)
{
    if (arg == NULL)
        return;
    if (!by_image) {
        b->whole += (double)arg->count * sizeof(float);
        return;
    }
    b->images += (double)arg->count * sizeof(float);
    if (arg->shape.ndim == 0 || !lies_image_by_image(arg) ||
        (b->n_images != 0 && b->n_images != arg->shape.dim[0]))
        b->n_images = -1;
    else
        b->n_images = arg->shape.dim[0];
}

// Pieces of it need not begin at whole bytes.
static bool has_packed(const ot_prep *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (p->in[i] != NULL && ot__dtype_is_packed(p->in[i]->dtype))
            return true;
    for (int i = 0; i < p->n_out; i++)
        if (p->out[i] != NULL && ot__dtype_is_packed(p->out[i]->dtype))
            return true;
    return false;
}

// How often the kernel runs: equal pieces, which shapes and records decide alone.
static int64_t pieces_of_batch(const ot_prep *p)
{
    const ot_op_def *op = p->node->op;
    batch b = {.n_images = 0};
    double most;
    int64_t n = 1;

    if (op->by_image.in == 0 || has_packed(p))
        return 1;
    for (int i = 0; i < p->n_in; i++)
        count_arg(&b, p->in[i], has_port(op->by_image.in, i));
    for (int i = 0; i < p->n_out; i++)
        count_arg(&b, p->out[i], has_port(op->by_image.out, i));
    most = PIECE_BYTES > PIECE_SHARE * b.whole ? PIECE_BYTES : PIECE_SHARE * b.whole;
    while (n < b.n_images && (b.images / (double)n > most || b.n_images % n != 0))
        n++;
    return n;
}

// ---- arguments in another type ----

// `is_piece`: a piece of it; `is_sum`: every piece adds to it.
static const ot_arg *widened(ot__edges *e, int at, const ot_arg *arg, bool is_piece, bool is_sum)
{
    if (arg == NULL || e->n_pieces == 1)
        is_piece = is_sum = false;
    if (!edge_converts(arg) && !is_piece && !is_sum)
        return arg;
    e->args[at] = *arg;
    e->args[at].data = NULL;
    if (edge_converts(arg)) {
        e->args[at].dtype = ot__edges_type(arg->dtype);
        e->slot[at] = 0; // its place comes with the scratch
    }
    if (is_piece) {
        e->args[at].shape.dim[0] /= e->n_pieces;
        e->args[at].count /= e->n_pieces;
    }
    e->is_piece[at] = is_piece;
    return &e->args[at];
}

// Kernels may want the elements while they are prepared, of small constants.
static ot_status widen_constant(ot__arena *arena, const ot_prep *p, ot__edges *e, int i)
{
    const ot_arg *x = p->in[i];
    void *elements;

    e->constant[i] = NULL;
    if (p->constant == NULL || p->constant[i] == NULL || x == NULL || e->is_piece[i])
        return OT_OK;
    if (e->slot[i] == NOT_CONVERTED) {
        e->constant[i] = p->constant[i];
        return OT_OK;
    }
    if (x->count > MAX_CONSTANT)
        return OT_OK;
    elements = ot__arena_alloc(arena, ((size_t)x->count + 1) * ot_dtype_size(e->args[i].dtype));
    OT_TRY(ot__made(elements != NULL));
    (void)ot__convert(elements, e->args[i].dtype, p->constant[i], x->dtype, x->count);
    e->constant[i] = e->args[i].data = elements;
    e->slot[i] = NOT_CONVERTED; // for good
    return OT_OK;
}

static void mark_states(const ot_prep *p, ot__edges *e)
{
    for (int port = 0; port < p->node->n_inputs; port++) {
        const ot_port *of = ot__op_input_port(p->node->op, port);

        for (int i = p->in_first[port]; i < p->in_first[port + 1]; i++)
            e->is_state[i] = of != NULL && (of->flags & OT_PORT_STATE) != 0;
    }
}

ot_status ot__edges_make(ot__arena *arena, const ot_prep *p, ot__edges *e)
{
    const size_t n_in = (size_t)p->n_in + 1, n_out = (size_t)p->n_out + 1;
    const ot_op_def *op = p->node->op;

    *e = (ot__edges){.args = ot__arena_alloc(arena, (n_in + n_out) * sizeof *e->args),
                     .in = ot__arena_alloc(arena, n_in * sizeof *e->in),
                     .out = ot__arena_alloc(arena, n_out * sizeof *e->out),
                     .constant = ot__arena_alloc(arena, n_in * sizeof *e->constant),
                     .slot = ot__arena_alloc(arena, (n_in + n_out) * sizeof *e->slot),
                     .is_state = ot__arena_alloc(arena, n_in),
                     .n_pieces = pieces_of_batch(p),
                     .sums = op->by_image.sums,
                     .is_piece = ot__arena_alloc(arena, n_in + n_out),
                     .term = ot__arena_alloc(arena, n_out * sizeof *e->term)};
    OT_TRY(ot__made(e->args != NULL && e->in != NULL && e->out != NULL && e->constant != NULL &&
                    e->slot != NULL && e->is_state != NULL && e->is_piece != NULL &&
                    e->term != NULL));
    for (size_t i = 0; i < n_in + n_out; i++)
        e->slot[i] = NOT_CONVERTED;
    for (size_t i = 0; i < n_out; i++)
        e->term[i] = NOWHERE;
    for (int i = 0; i < p->n_in; i++) {
        e->in[i] = widened(e, i, p->in[i], has_port(op->by_image.in, i), false);
        OT_TRY(widen_constant(arena, p, e, i));
    }
    for (int i = 0; i < p->n_out; i++)
        e->out[i] =
            (ot_arg *)(void *)widened(e, p->n_in + i, p->out[i], has_port(op->by_image.out, i),
                                      has_port(op->by_image.sums, i));
    mark_states(p, e);
    return OT_OK;
}

// The converted input in whose place output 0 may be: as the plan may put it in place, and what
// kernels have read before they write it; -1: none.
static int replaceable_input(const ot_op_def *op, const ot__edges *e, int n_in, int n_out)
{
    const unsigned ports = op->spent | ((op->flags & OT_OP_IN_PLACE) != 0 ? 3U : 0U);

    if (n_out == 0 || e->slot[n_in] == NOT_CONVERTED)
        return -1;
    for (int i = 0; i < n_in; i++)
        if (has_port(ports, i) && e->slot[i] != NOT_CONVERTED && !e->is_state[i] &&
            e->args[i].dtype == e->args[n_in].dtype &&
            ot__shape_equal(&e->args[i].shape, &e->args[n_in].shape) &&
            ot__layout_equal(e->args[i].layout, e->args[n_in].layout))
            return i;
    return -1;
}

size_t ot__edges_place(const ot_op_def *op, const ot_kernel *kernel, ot__edges *e, int n_in,
                       int n_out, size_t kernel_bytes)
{
    const int shared = replaceable_input(op, e, n_in, n_out);
    size_t at = ot__align_up(kernel_bytes);

    for (int i = 0; i < n_in + n_out; i++)
        if (e->slot[i] != NOT_CONVERTED && !(i == n_in && shared >= 0)) {
            e->slot[i] = (int64_t)at;
            at += ot__align_up((size_t)e->args[i].count * ot_dtype_size(e->args[i].dtype));
        }
    if (shared >= 0)
        e->slot[n_in] = e->slot[shared];
    for (int i = 0; i < n_out && e->n_pieces > 1; i++)
        if (e->out[i] != NULL && has_port(op->by_image.sums, i) &&
            !has_port(kernel->accumulates, i)) {
            e->term[i] = (int64_t)at;
            at += ot__align_up((size_t)e->args[n_in + i].count * sizeof(float));
        }
    return at;
}

bool ot__edges_convert_output(const ot__edges *e, int n_in, int i)
{
    return e != NULL && e->slot[n_in + i] != NOT_CONVERTED;
}

// The input whose memory an output is: state, and what is replaced in place.
static int replaced_input(const ot_run *r, const ot__edges *e, int i_out)
{
    for (int i = 0; i < r->n_in; i++)
        if (e->slot[i] != NOT_CONVERTED && r->in[i]->count > 0 &&
            r->in[i]->data == r->out[i_out]->data)
            return i;
    return -1;
}

// ---- running ----

static void *edges_scratch(const ot_run *r, int64_t slot)
{
    return slot == 0 ? r->scratch : (unsigned char *)r->scratch + slot; // there may be none
}

// Where piece `k` of the node's argument `arg` begins, of which e->args[at] is a piece.
static void *piece_of(const ot__edges *e, int at, const ot_arg *arg, int64_t k)
{
    return (unsigned char *)arg->data + (size_t)(k * e->args[at].count) * ot_dtype_size(arg->dtype);
}

// Inputs of piece k, or, with `pieces` false, those that all pieces read.
static void bring_inputs(const ot_run *r, ot__edges *e, bool pieces, int64_t k)
{
    for (int i = 0; i < r->n_in; i++) {
        ot_arg *x = &e->args[i];
        const ot_arg *from = r->in[i];

        if (from == NULL || e->is_piece[i] != pieces)
            continue;
        if (e->slot[i] != NOT_CONVERTED) {
            x->data = edges_scratch(r, e->slot[i]);
            ot__convert_elements(x->data, x->dtype, piece_of(e, i, from, k), from->dtype, x->count);
        } else if (pieces)
            x->data = piece_of(e, i, from, k);
    }
}

// Where the outputs of piece k go.
static void place_outputs(const ot_run *r, ot__edges *e, int64_t k)
{
    for (int i = 0; i < r->n_out; i++) {
        const int at = r->n_in + i;

        if (e->out[i] != &e->args[at])
            continue;
        if (k > 0 && e->term[i] != NOWHERE)
            e->args[at].data = edges_scratch(r, e->term[i]);
        else if (e->slot[at] != NOT_CONVERTED) {
            const int shared = replaced_input(r, e, i);

            e->args[at].data = shared >= 0 ? e->args[shared].data : edges_scratch(r, e->slot[at]);
        } else
            e->args[at].data = e->is_piece[at] ? piece_of(e, at, r->out[i], k) : r->out[i]->data;
    }
}

typedef struct edges_sum {
    float *to;
    const float *from;
} edges_sum;

static void add_range(void *context, int64_t first, int64_t last)
{
    const edges_sum *s = context;

    for (int64_t i = first; i < last; i++)
        s->to[i] += s->from[i];
}

// What piece k has made: converted back, or added to what the pieces before it have made.
static void take_outputs(const ot_run *r, const ot__edges *e, int64_t k)
{
    for (int i = 0; i < r->n_out; i++) {
        const int at = r->n_in + i;
        const ot_arg *y = &e->args[at];

        if (e->is_piece[at] && e->slot[at] != NOT_CONVERTED)
            ot__convert_elements(piece_of(e, at, r->out[i], k), r->out[i]->dtype, y->data, y->dtype,
                                 y->count);
        if (k > 0 && e->term[i] != NOWHERE) {
            edges_sum sum = {.from = y->data};

            sum.to = e->slot[at] != NOT_CONVERTED ? edges_scratch(r, e->slot[at]) : r->out[i]->data;
            ot__parallel_for(y->count, SUM_SPAN, add_range, &sum);
        }
    }
}

// What all pieces have made together.
static void give_back(const ot_run *r, const ot__edges *e)
{
    for (int i = 0; i < r->n_in; i++)
        if (e->slot[i] != NOT_CONVERTED && e->is_state[i])
            ot__convert_elements(r->in[i]->data, r->in[i]->dtype, e->args[i].data, e->args[i].dtype,
                                 r->in[i]->count);
    for (int i = 0; i < r->n_out; i++) {
        const int at = r->n_in + i;
        const int64_t slot = e->slot[at];

        if (slot != NOT_CONVERTED && !e->is_piece[at])
            ot__convert_elements(r->out[i]->data, r->out[i]->dtype,
                                 e->term[i] != NOWHERE ? edges_scratch(r, slot) : e->args[at].data,
                                 e->args[at].dtype, r->out[i]->count);
    }
}

ot_status ot__edges_run(const ot_kernel *kernel, const ot_run *r, ot__edges *e)
{
    ot_run run = *r;

    run.in = e->in;
    run.out = e->out;
    bring_inputs(r, e, false, 0);
    for (int64_t k = 0; k < e->n_pieces; k++) {
        bring_inputs(r, e, true, k);
        place_outputs(r, e, k);
        OT_TRY(kernel->run(&run));
        take_outputs(r, e, k);
        run.accumulates |= e->sums & kernel->accumulates;
    }
    give_back(r, e);
    return OT_OK;
}
