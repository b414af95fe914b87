// SPDX-License-Identifier: Apache-2.0
// Whether a model whose batch was opened computes of twice the rows what it computed of each half.
#include <math.h>
#include <string.h>

#include "artifacts/open_batch.h"
#include "artifacts/parameters.h"
#include "onnxtrain/runner.h"

enum { ANY_EXTENT = 8 }; // of other symbolic axes

typedef struct trial {
    const ot_model *opened;
    const ot__opened *places;
    int n_inputs, n_outputs;
    ot_tensor **x[3], **y[3]; // inputs and outputs: of each half, and of the whole
} trial;

enum { WHOLE = 2 };

void ot__open_shape_of(const ot_value *input, const ot__place *place, int64_t batch, ot_shape *out)
{
    *out = input->shape;
    for (int k = 0; k < out->ndim; k++)
        if (!ot__dim_is_number(out->dim[k]))
            out->dim[k] = ANY_EXTENT;
    if (place->axis == 0)
        out->dim[0] = batch;
}

// ---- parameters ----

static ot_status draw_inputs(ot_model *model, const char *name, const ot_tensor *like,
                             ot_tensor **out)
{
    const ot__rng_key key = ot__rng_key_make(1, 0, 0, name);
    const int64_t n = ot_tensor_count(like);
    const double was = ot__tensor_get_f64(like, 0);
    const double near_zero = like->shape.ndim > 1 ? 0.2 : 0.02; // a bias must not hide the data
    const bool is_small = fabs(was) < 0.01;

    *out = ot__model_tensor_new(model, like->dtype, &like->shape);
    OT_TRY(ot__made(*out));
    for (int64_t i = 0; i < n; i++) {
        const double u = ot__rng_uniform(key, (uint64_t)i) - 0.5;
        const double value = is_small ? near_zero * u : was * (1 + 0.5 * u);

        (void)ot__convert((char *)(*out)->data + (size_t)i * ot_dtype_size(like->dtype),
                          like->dtype, &value, OT_F64, 1);
    }
    return OT_OK;
}

// Parameters as they are before training hide what a model computes: a last layer of zeros, a
// scale of zeros before a residual sum. Where both models have such a one it is drawn, near to what
// it was.
static ot_status draw_uniform_parameters(ot_model *a, ot_model *b)
{
    for (int i = 0; i < a->graph->n_initializers; i++) {
        ot_value *x = a->graph->initializers[i], *y = ot__graph_find(b->graph, x->name);
        ot_tensor *drawn;

        if (!y || y->constant != x->constant || !ot__dtype_is_float(x->constant->dtype) ||
            ot_tensor_count(x->constant) < 2 || !ot__tensor_is_uniform(x->constant))
            continue;
        OT_TRY(draw_inputs(a, x->name, x->constant, &drawn));
        x->constant = drawn;
        OT_TRY(draw_inputs(b, y->name, y->constant, &drawn));
        y->constant = drawn;
    }
    return OT_OK;
}

static ot_status check_repeatable(const ot_model *model)
{
    for (int n = 0; n < model->graph->n_nodes; n++) {
        const ot_node *node = model->graph->nodes[n];

        if ((node->op->flags & OT_OP_RANDOM) != 0 && !ot__is_dropout(node))
            return ot__error(OT_ERR_UNSUPPORTED, "%s draws random numbers", OT_LABEL(node));
    }
    return OT_OK;
}

// ---- rows ----

// Hands on the elements of its first input.
static bool hands_on(const ot_node *node)
{
    return ot__node_rearranges(node) && node->inputs[0] != NULL;
}

// Rows of the smallest table that takes the input as positions; where none does, two: every mask
// takes 0 and 1.
static int64_t count_choices(const ot_graph *graph, const ot_value *input)
{
    enum { MAX_NAMES = 16 };
    const ot_value *same[MAX_NAMES] = {input};
    int64_t n_choices = 0;
    int n_same = 1;

    for (int n = 0; n < graph->n_nodes; n++) {
        const ot_node *node = graph->nodes[n];
        const bool gathers = ot__op_input_role(node->op, 0) == OT_PORT_ROLE_TABLE;
        const int i_input = gathers ? 1 : 0;
        bool reads = false;

        for (int i = 0; (gathers || hands_on(node)) && i < n_same; i++)
            reads = reads || node->inputs[i_input] == same[i];
        if (reads && gathers && ot_attr_int(node, "axis") == 0) {
            const int64_t rows = node->inputs[0]->shape.dim[0];

            if (ot__dim_is_number(rows))
                n_choices = n_choices == 0 ? rows : OT_MIN(n_choices, rows);
        } else if (reads && !gathers && n_same < MAX_NAMES) {
            same[n_same++] = node->outputs[0];
        }
    }
    return n_choices > 0 ? n_choices : 2;
}

static ot_status fill_trial(ot_tensor *t, const ot_graph *graph, const ot_value *input)
{
    const ot__rng_key key = ot__rng_key_make(2, 0, 0, input->name);
    const int64_t n = ot_tensor_count(t);
    const double n_choices = (double)count_choices(graph, input);
    const size_t size = ot_dtype_size(t->dtype);

    for (int64_t i = 0; i < n; i++) {
        const double u = ot__rng_uniform(key, (uint64_t)i);
        const double value = ot__dtype_is_float(t->dtype) ? 2 * u - 1 : floor(u * n_choices);

        if (size == 0 ||
            !ot__convert((char *)t->data + (size_t)i * size, t->dtype, &value, OT_F64, 1))
            return ot__error(OT_ERR_UNSUPPORTED, "input '%s' takes %s", input->name,
                             ot_dtype_name(t->dtype));
    }
    return OT_OK;
}

static ot_status make_input(trial *t, const ot_value *input, const ot__place *place)
{
    const int64_t batch = t->places->batch;
    const int i = t->n_inputs++;
    ot_shape shape;

    if (input->kind != OT_VALUE_TENSOR || !input->has_shape)
        return ot__error(OT_ERR_UNSUPPORTED, "input '%s' has no shape", input->name);
    ot__open_shape_of(input, place, 2 * batch, &shape);
    OT_TRY(ot_tensor_create(input->dtype, &shape, &t->x[WHOLE][i]));
    OT_TRY(fill_trial(t->x[WHOLE][i], t->opened->graph, input));
    ot__open_shape_of(input, place, batch, &shape);
    for (int h = 0; h < WHOLE; h++) {
        const char *from = t->x[WHOLE][i]->data;

        OT_TRY(ot_tensor_create(input->dtype, &shape, &t->x[h][i]));
        if (place->axis == 0)
            from += (size_t)h * ot_tensor_bytes(t->x[h][i]);
        memcpy(t->x[h][i]->data, from, ot_tensor_bytes(t->x[h][i]));
    }
    return OT_OK;
}

static ot_status make_inputs(trial *t)
{
    const ot_graph *graph = t->opened->graph;

    for (int k = 0; k <= WHOLE; k++) {
        t->x[k] = ot__alloc_zero((size_t)graph->n_inputs + 1, sizeof(ot_tensor *));
        t->y[k] = ot__alloc_zero((size_t)graph->n_outputs + 1, sizeof(ot_tensor *));
        OT_TRY(ot__made(t->x[k] && t->y[k]));
    }
    t->n_outputs = graph->n_outputs;
    for (int i = 0; i < graph->n_inputs; i++)
        if (!graph->inputs[i]->constant)
            OT_TRY(make_input(t, graph->inputs[i], &t->places->inputs[i]));
    return OT_OK;
}

// ---- outputs ----

typedef struct distance {
    double between_halves, to_whole, size; // the largest of each
} distance;

// Element `at` of an output, in the output of twice the batch.
typedef struct layout {
    int64_t batch, outer, inner;
} layout;

static layout layout_of(const ot_tensor *half, const ot__place *place, int64_t batch)
{
    layout l = {batch, place->outer, place->inner};

    for (int k = 0; k < half->shape.ndim; k++) {
        if (k < place->axis)
            l.outer *= half->shape.dim[k];
        else if (k > place->axis)
            l.inner *= half->shape.dim[k];
    }
    return l;
}

static void measure_pair(double half, double whole, distance *d)
{
    if (isfinite(half))
        d->size = OT_MAX(d->size, fabs(half));
    if (!(half == whole || (isnan(half) && isnan(whole))))
        d->to_whole = OT_MAX(d->to_whole, isfinite(half - whole) ? fabs(half - whole) : INFINITY);
}

enum { PIECE = 256 }; // elements compared at once

// `n` elements of each half from `at` on, and those of the whole, from `base` and a block later on.
static void measure_piece(const ot_tensor *y, const ot_tensor *const half[2], int64_t at,
                          int64_t base, int64_t block, int n, distance *d)
{
    double halves[2][PIECE], wholes[2][PIECE];

    for (int h = 0; h < WHOLE; h++) {
        ot__tensor_read_f64(half[h], at, n, halves[h]);
        ot__tensor_read_f64(y, base + h * block, n, wholes[h]);
        for (int i = 0; i < n; i++)
            measure_pair(halves[h][i], wholes[h][i], d);
    }
    for (int i = 0; i < n; i++)
        if (isfinite(halves[0][i]) && isfinite(halves[1][i]))
            d->between_halves = OT_MAX(d->between_halves, fabs(halves[0][i] - halves[1][i]));
}

static void measure_trial(const ot_tensor *y, const ot_tensor *const half[2], const layout *l,
                          distance *d)
{
    const int64_t block = l->batch * l->inner;

    for (int64_t outer = 0; outer < l->outer; outer++)
        for (int64_t i = 0; i < block; i += PIECE)
            measure_piece(y, half, outer * block + i, 2 * outer * block + i, block,
                          (int)OT_MIN(block - i, PIECE), d);
}

// Rounding that a kernel may do in another order for another batch.
static double rounding(ot_dtype dtype)
{
    return dtype == OT_F16 || dtype == OT_BF16 ? 1e-2 : dtype == OT_F64 ? 1e-9 : 1e-5;
}

// Between 1 and the next number.
static double spacing(ot_dtype dtype)
{
    return dtype == OT_F16    ? 0x1p-10
           : dtype == OT_BF16 ? 0x1p-7
           : dtype == OT_F64  ? 0x1p-52
                              : 0x1p-23;
}

static ot_status trial_differs(const char *name)
{
    return ot__error(OT_ERR_INVALID,
                     "'%s' of twice as many rows is not what the model gives of each half", name);
}

// Scalars, such as a loss: the mean of both halves, or their sum.
static ot_status compare_scalar(const char *name, const ot_tensor *y,
                                const ot_tensor *const half[2], bool *tells)
{
    const double a = ot__tensor_get_f64(half[0], 0), b = ot__tensor_get_f64(half[1], 0);
    const double value = ot__tensor_get_f64(y, 0);
    const double slack = 1e-3 * fabs(a - b) + rounding(y->dtype) * (fabs(a) + fabs(b));

    if (!(fabs(value - (a + b) / 2) <= slack) && !(fabs(value - (a + b)) <= slack))
        return trial_differs(name);
    *tells = *tells || fabs(a - b) > 10 * rounding(y->dtype) * (fabs(a) + fabs(b));
    return OT_OK;
}

static ot_status compare_output(const trial *t, int i, bool *tells)
{
    const char *name = t->opened->graph->outputs[i]->name;
    const ot__place *place = &t->places->outputs[i];
    const ot_tensor *const half[2] = {t->y[0][i], t->y[1][i]};
    const ot_tensor *y = t->y[WHOLE][i];
    distance d = {0};
    layout l;

    if (ot_tensor_count(y) == 1 && ot_tensor_count(half[0]) == 1 && ot__dtype_is_float(y->dtype))
        return compare_scalar(name, y, half, tells);
    if (place->axis < 0)
        return ot__error(OT_ERR_INVALID, "output '%s' has no axis of the batch", name);
    l = layout_of(half[0], place, t->places->batch);
    if (ot_tensor_count(half[0]) != l.outer * l.batch * l.inner ||
        ot_tensor_count(y) != 2 * ot_tensor_count(half[0]))
        return trial_differs(name);
    measure_trial(y, half, &l, &d);
    if (!ot__dtype_is_float(y->dtype))
        return d.to_whole == 0 ? OT_OK : trial_differs(name);
    if (!(d.to_whole <= 1e-3 * d.between_halves + rounding(y->dtype) * d.size))
        return trial_differs(name);
    // However little rows change, as with biases that are far larger: it is far more than what is
    // off.
    *tells = *tells || (d.between_halves > 5 * d.to_whole &&
                        d.between_halves > 2 * spacing(y->dtype) * d.size);
    return OT_OK;
}

// *tells: some output is another one for other rows.
static ot_status compare_trials(const trial *t, bool *tells)
{
    *tells = false;
    for (int i = 0; i < t->n_outputs; i++)
        OT_TRY(compare_output(t, i, tells));
    return OT_OK;
}

// ---- the whole ----

// Runs of the model from `first` to `last`, which are of one batch size.
static ot_status run_model(trial *t, const ot_model *model, int first, int last)
{
    ot_feed *feeds = ot__alloc_zero((size_t)t->n_inputs + 1, sizeof *feeds);
    ot_runner *runner = NULL;
    ot_status st = feeds ? ot_runner_create(model, NULL, &runner) : OT_ERR_NO_MEMORY;

    for (int k = first; st == OT_OK && k <= last; k++) {
        for (int i = 0; i < t->n_inputs; i++)
            feeds[i] = (ot_feed){(const ot_tensor *const *)&t->x[k][i], 1};
        st = ot_runner_run(runner, feeds, t->n_inputs, NULL, t->y[k], t->n_outputs);
    }
    ot_runner_destroy(runner);
    ot__free(feeds);
    return st;
}

static ot_status run_trial(trial *t, const ot_model *fixed, const ot_model *opened, bool *tells)
{
    OT_TRY(make_inputs(t));
    OT_TRY(run_model(t, opened, WHOLE, WHOLE));
    OT_TRY(run_model(t, fixed, 0, WHOLE - 1));
    return compare_trials(t, tells);
}

static void destroy_all(ot_tensor **list, int n)
{
    for (int i = 0; list && i < n; i++)
        ot_tensor_destroy(list[i]);
    ot__free(list);
}

static ot_status try_once(const ot_model *fixed, const ot_model *opened, const ot__opened *places,
                          bool draws, bool *tells)
{
    const int n_in = opened->graph->n_inputs, n_out = opened->graph->n_outputs;
    trial t = {.opened = opened, .places = places};
    ot_model *a = NULL, *b = NULL;
    ot_status st = ot__eval_model(fixed, NULL, &a);

    OT_THEN(st, ot__eval_model(opened, NULL, &b));
    OT_THEN(st, check_repeatable(b));
    if (st == OT_OK && draws)
        st = draw_uniform_parameters(a, b);
    OT_THEN(st, run_trial(&t, a, b, tells));
    for (int k = 0; k <= WHOLE; k++) {
        destroy_all(t.x[k], n_in);
        destroy_all(t.y[k], n_out);
    }
    ot_model_destroy(a);
    ot_model_destroy(b);
    return st;
}

ot_status ot__open_try(const ot_model *fixed, const ot_model *opened, const ot__opened *places)
{
    bool tells;

    OT_TRY(try_once(fixed, opened, places, true, &tells));
    if (!tells)
        OT_TRY(try_once(fixed, opened, places, false, &tells));
    return tells ? OT_OK
                 : ot__error(OT_ERR_INVALID, "its outputs are the same for other rows, so that a "
                                             "trial shows nothing");
}
