// SPDX-License-Identifier: Apache-2.0
// STFT: the transforms of frames of a signal (batch, length, parts), which begin frame_step apart
// and are multiplied by a window. Kernels read the frames where they lie in the signal.
#include "ops/signal/signal.h"

enum { SIGNAL, STEP, WINDOW, LENGTH };

// ---- inference ----

typedef struct stft_sizes {
    int64_t step, length; // of a frame
} stft_sizes;

static bool check_signal(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, SIGNAL);
    const bool is_onesided = ot_attr_int(ot_infer_node(c), "onesided") != 0;

    if (x->ndim != 3)
        return ot__refuse(c, "signal has %d axes, expected 3", x->ndim);
    if (!ot_dim_is_number(x->dim[2]) || x->dim[2] == 1 || (x->dim[2] == 2 && !is_onesided))
        return true;
    return ot__refuse(c, "signal has size %" PRId64 " along axis 2, expected 1%s", x->dim[2],
                      is_onesided ? ", as onesided takes real signals" : " or 2");
}

static bool read_stft_sizes(ot_infer *c, stft_sizes *s)
{
    const ot_shape *window = ot_infer_shape(c, WINDOW);
    const bool has_window = ot_infer_has(c, WINDOW);
    const int64_t points = ot_infer_shape(c, SIGNAL)->dim[1];

    if (!ot__infer_size(c, STEP, "frame_step", 1, INT64_MAX, &s->step))
        return false;
    if (has_window && window->ndim != 1)
        return ot__refuse(c, "window has %d axes, expected 1", window->ndim);
    s->length = has_window ? window->dim[0] : points;
    if (ot_infer_has(c, LENGTH) &&
        !ot__infer_size(c, LENGTH, "frame_length", 1, OT__FOURIER_MAX, &s->length))
        return false;
    if (has_window && ot__dim_differs(window->dim[0], s->length))
        return ot__refuse(c, "window has size %" PRId64 ", frame_length is %" PRId64,
                          window->dim[0], s->length);
    if (ot_dim_is_number(s->length) && (s->length < 1 || s->length > OT__FOURIER_MAX))
        return ot__refuse(c, "frames have length %" PRId64 ", expected 1 to %" PRId64, s->length,
                          OT__FOURIER_MAX);
    return !ot_dim_is_number(s->length) || !ot_dim_is_number(points) || s->length <= points ||
           ot__refuse(c, "frames have length %" PRId64 ", the signal %" PRId64, s->length, points);
}

static void stft_infer(ot_infer *c)
{
    const ot_shape *x = ot_infer_shape(c, SIGNAL);
    const bool is_onesided = ot_attr_int(ot_infer_node(c), "onesided") != 0;
    stft_sizes s;
    int64_t frames;

    if (!check_signal(c) || !read_stft_sizes(c, &s))
        return;
    frames = ot_infer_add(c, ot_infer_div(c, ot_infer_sub(c, x->dim[1], s.length), s.step), 1);
    ot_infer_set(
        c, 0, ot_infer_dtype(c, SIGNAL),
        &OT_SHAPE(x->dim[0], frames,
                  is_onesided ? ot_infer_add(c, ot_infer_div(c, s.length, 2), 1) : s.length, 2));
}

// ---- kernels ----

// `lines.from.inner` is set in the run: it is of the step.
static ot__fourier_lines stft_lines(const ot_prep *p, int64_t length)
{
    const ot_shape *x = &ot_prep_in(p, SIGNAL)->shape, *y = &ot_prep_out(p, 0)->shape;
    const int64_t frames = y->dim[1], points = y->dim[2], parts = x->dim[2];

    return (ot__fourier_lines){.outer = x->dim[0],
                               .inner = frames,
                               .from = {.outer = x->dim[1] * parts,
                                        .point = parts,
                                        .used = length,
                                        .points = length,
                                        .parts = (int)parts},
                               .to = {.outer = frames * points * 2,
                                      .inner = points * 2,
                                      .point = 2,
                                      .used = points,
                                      .points = points,
                                      .parts = 2},
                               .scale = 1,
                               .is_windowed = ot_prep_in(p, WINDOW) != NULL};
}

// One transform, or where the length of frames is known only in the run one for each that it may
// be: two lengths have a half spectrum of the same size.
enum { MOST_LENGTHS = 2 };
typedef struct stft_state {
    int n;
    ot__transform transform[MOST_LENGTHS];
} stft_state;

// How many lengths a frame may have.
static int prep_frame_lengths(ot_prep *p, int64_t lengths[MOST_LENGTHS])
{
    const void *given = ot_prep_constant(p, LENGTH);
    const int64_t made = ot_prep_out(p, 0)->shape.dim[2];
    int n = 0;

    lengths[0] = ot_prep_in(p, SIGNAL)->shape.dim[1];
    if (ot_prep_in(p, WINDOW) != NULL)
        lengths[0] = ot_prep_in(p, WINDOW)->shape.dim[0];
    else if (given != NULL)
        lengths[0] = ot__ref_index_get(given, ot_dtype_size(ot_prep_in(p, LENGTH)->dtype), 0);
    else if (ot_prep_in(p, LENGTH) != NULL && ot_attr_int(ot_prep_node(p), "onesided") == 0)
        lengths[0] = made;
    else if (ot_prep_in(p, LENGTH) != NULL)
        for (int64_t length = OT_MAX(2 * made - 2, (int64_t)1); length < 2 * made; length++)
            lengths[n++] = length;
    return OT_MAX(n, 1);
}

static ot_status prep_stft(ot_prep *p, const ot__fouriers *by)
{
    stft_state planned = {0}, *s;
    ot__transform_sizes sizes[MOST_LENGTHS] = {{0}}, all = {0};
    int64_t lengths[MOST_LENGTHS];
    double *work;
    char *tables;

    planned.n = prep_frame_lengths(p, lengths);
    for (int k = 0; k < planned.n; k++) {
        ot__transform *t = &planned.transform[k];

        *t = (ot__transform){.by = by, .n = lengths[k], .lines = stft_lines(p, lengths[k])};
        if (t->lines.outer * t->lines.inner > 0)
            sizes[k] = ot__transform_plan(t, ot_prep_threads(p));
        all.tables += sizes[k].tables;
        all.work = OT_MAX(all.work, sizes[k].work);
        all.scratch = OT_MAX(all.scratch, sizes[k].scratch);
    }
    s = ot_prep_state(p, sizeof(*s) + all.tables);
    OT_TRY(ot__made(s));
    *s = planned;
    if (all.work == 0)
        return OT_OK;
    ot_prep_scratch(p, all.scratch);
    work = ot__alloc(all.work);
    OT_TRY(ot__made(work));
    tables = (char *)(s + 1);
    for (int k = 0; k < s->n; k++) {
        ot__transform_make(&s->transform[k], tables, work);
        tables += sizes[k].tables;
    }
    ot__free(work);
    return OT_OK;
}

static ot_status stft_prep(ot_prep *p)
{
    return prep_stft(p, NULL);
}

static ot_status stft_prep_simd(ot_prep *p)
{
    return prep_stft(p, ot__fouriers_best());
}

// The transform of this run, of no parts where there are no frames.
static ot_status read_stft(const ot_run *r, ot__transform *t)
{
    const stft_state *s = r->state;
    const ot_shape *x = &r->in[SIGNAL]->shape, *y = &r->out[0]->shape;
    const int64_t step = ot__arg_int(r->in[STEP], 0);
    const bool has_length = r->n_in > LENGTH && r->in[LENGTH] != NULL;
    const int64_t length = has_length ? ot__arg_int(r->in[LENGTH], 0) : s->transform[0].n;

    *t = s->transform[s->n > 1 && length == s->transform[1].n ? 1 : 0];
    OT_TRY(ot__check_planned(length, "points of a frame", t->n));
    if (step < 1 || t->n > x->dim[1] || (x->dim[1] - t->n) / step + 1 != y->dim[1])
        return ot_run_fail(r, OT_ERR_INVALID, "frame_step is %" PRId64 ", another was planned",
                           step);
    t->lines.from.inner = step * x->dim[2];
    t->lines.window = t->lines.is_windowed ? r->in[WINDOW]->data : NULL;
    return OT_OK;
}

#define RUN(name, suffix)                                                                          \
    static ot_status name(const ot_run *r)                                                         \
    {                                                                                              \
        ot__transform t;                                                                           \
                                                                                                   \
        OT_TRY(read_stft(r, &t));                                                                  \
        if (t.n_parts > 0)                                                                         \
            ot__transform_run_##suffix(&t, r->out[0]->data, r->in[SIGNAL]->data, r->scratch);      \
        return OT_OK;                                                                              \
    }
RUN(stft_run_f32, f32)
RUN(stft_run_f64, f64)
#undef RUN

// ---- gradient ----

// A list of one number.
static ot_value *emit_listed(ot_grad *g, ot_value *number)
{
    static const int64_t one = 1;

    return ot__emit_reshape(g, ot_emit_cast(g, number, OT_I64), &one, 1);
}

static ot_value *emit_frame_length(ot_grad *g)
{
    if (ot_grad_x(g, WINDOW) != NULL)
        return ot__emit_extents(g, ot_grad_x(g, WINDOW), 0, 1);
    if (ot_grad_x(g, LENGTH) != NULL)
        return emit_listed(g, ot_grad_x(g, LENGTH));
    return ot__emit_extents(g, ot_grad_x(g, SIGNAL), 1, 2);
}

// Where the points of each frame are in the signal: (frames, length).
static ot_value *emit_frame_places(ot_grad *g)
{
    static const int64_t numbers[] = {1, 0};
    ot_value *one = ot_emit_constant_i64(g, numbers, 1), *step = emit_listed(g, ot_grad_x(g, STEP));
    ot_value *length = emit_frame_length(g), *points, *frames, *starts;

    points = ot__emit_extents(g, ot_grad_x(g, SIGNAL), 1, 2);
    frames = ot_emit2(g, "Div", ot_emit2(g, "Sub", points, length), step);
    frames = ot_emit2(g, "Add", frames, one);
    starts = ot__emit_count_up(g, ot__emit_at(g, frames, 0));
    starts = ot_emit2(g, "Unsqueeze", ot_emit2(g, "Mul", starts, step), one);
    return ot_emit2(g, "Add", starts, ot__emit_count_up(g, ot__emit_at(g, length, 0)));
}

// The gradient of the frames, of the shape that they have once they are gathered.
static ot_value *emit_frames_grad(ot_grad *g, ot_value *frames)
{
    static const int64_t axis = 2;
    ot_value *const in[] = {ot_grad_dy(g, 0), ot_emit_shape(g, frames)};
    ot_node *node = ot_emit(g, "ai.onnxtrain.DFTGrad", NULL, in, 2, 1);

    ot_emit_int(g, node, "axis", axis);
    ot_emit_int(g, node, "inverse", 0);
    ot_emit_int(g, node, "onesided", ot_attr_int(ot_grad_node(g), "onesided"));
    return ot_emit_output(g, node, 0);
}

// Y = DFT(window * frames):  dframes = window * DFTGrad(dY), summed where frames overlap, and
// dwindow = frames * DFTGrad(dY), summed over all frames.
static void stft_grad(ot_grad *g)
{
    static const int64_t behind = 1;
    ot_value *const in[] = {ot_grad_x(g, SIGNAL), emit_frame_places(g)};
    ot_value *window = ot_grad_x(g, WINDOW), *frames, *dframes, *dwindow;

    if (in[1] == NULL)
        return;
    frames = ot_emit_output(g, ot_emit(g, "Gather", "axis = 1", in, 2, 1), 0);
    dframes = emit_frames_grad(g, frames);
    if (window != NULL)
        window = ot_emit2(g, "Unsqueeze", window, ot_emit_constant_i64(g, &behind, 1));
    if (window != NULL && ot_grad_wants(g, WINDOW)) {
        dwindow = ot_emit_sum_to(g, ot_emit2(g, "Mul", dframes, frames), window);
        ot_grad_set_dx(g, WINDOW,
                       ot_emit2(g, "Squeeze", dwindow, ot_emit_constant_i64(g, &behind, 1)));
    }
    if (ot_grad_wants(g, SIGNAL)) {
        ot_value *shape = ot_emit_shape(g, in[0]);
        ot_value *const of_gather[] = {
            shape, in[1], window == NULL ? dframes : ot_emit2(g, "Mul", dframes, window)};

        ot_grad_set_dx(
            g, SIGNAL,
            ot_emit_output(g, ot_emit(g, "com.microsoft.GatherGrad", "axis = 1", of_gather, 3, 1),
                           0));
    }
}

static const ot_port stft_in[] = {
    {"signal", "T1", 0},
    {"frame_step", "T2", OT_PORT_NO_GRAD},
    {"window", "T1", OT_PORT_OPTIONAL},
    {"frame_length", "T2", OT_PORT_OPTIONAL | OT_PORT_NO_GRAD},
    {0},
};
static const ot_port stft_out[] = {{"output", "T1", 0}, {0}};
static const ot_attr_spec stft_attrs[] = {OT__FLAG_ATTR("onesided", 1), {0}};
static const ot_kernel stft_kernels[] = {
    OT__SIMD_KERNEL("T1: f32", NULL, stft_prep_simd, stft_run_f32),
    OT__REF_KERNEL("T1: f32", stft_prep, stft_run_f32),
    OT__REF_KERNEL("T1: f64", stft_prep, stft_run_f64),
    {0},
};
const ot_op_def ot__op_stft[] = {
    {.name = "STFT",
     .since = 17,
     .inputs = stft_in,
     .outputs = stft_out,
     .attrs = stft_attrs,
     .types = "T1: f32 f64; T2: i32 i64",
     .infer = stft_infer,
     .kernels = stft_kernels,
     .grad = stft_grad},
    {0},
};
