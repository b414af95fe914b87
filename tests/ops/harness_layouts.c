// SPDX-License-Identifier: Apache-2.0
// Every kernel in every combination of layouts that it takes: what it asks for when its inputs are
// offered in each combination of the layouts of images, and, of operators that take any layout, all
// operands in one layout.
#include "harness_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CANDIDATES = 5, MAX_SETS = 64 };

// The layouts that a tensor of this shape may be offered in, row-major first.
static int candidates(const ot_arg *x, const ot_layout **out)
{
    const ot_layout *const all[] = {
        NULL,
        ot__layout_channels_last(x->shape.ndim),
        ot__layout_blocked(x->shape.ndim, 8),
        ot__layout_blocked(x->shape.ndim, 16),
    };
    int n = 0;

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        if ((k == 0 || all[k] != NULL) && ot__layout_fits(all[k], &x->shape))
            out[n++] = all[k];
    return n;
}

// ---- sets of layouts ----

typedef struct sets {
    int n;
    layouts set[MAX_SETS];
} sets;

static bool same_layouts(const layouts *a, const layouts *b)
{
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if (!ot__layout_equal(a->in[i], b->in[i]) || !ot__layout_equal(a->out[i], b->out[i]))
            return false;
    return true;
}

static bool is_plain(const layouts *f)
{
    return same_layouts(f, &(layouts){0});
}

// As a plan takes them: a layout that does not fit its tensor is not taken. All row-major is
// checked anyway.
static void add_set(sets *s, const preparation *q, const layouts *wanted)
{
    layouts f = *wanted;

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        if (q->in[i] == NULL || !ot__layout_fits(f.in[i], &q->in[i]->shape))
            f.in[i] = NULL;
        if (q->out[i] == NULL || !ot__layout_fits(f.out[i], &q->out[i]->shape))
            f.out[i] = NULL;
    }
    if (is_plain(&f))
        return;
    for (int k = 0; k < s->n; k++)
        if (same_layouts(&f, &s->set[k]))
            return;
    if (s->n == MAX_SETS) {
        fail("more than %d combinations of layouts", MAX_SETS);
        return;
    }
    s->set[s->n++] = f;
}

// ---- what a kernel asks for ----

enum { MAX_KERNELS = 1000 };
static const ot_kernel *offered_kernels[MAX_KERNELS]; // other layouts than row-major
static int n_offered;

bool was_offered_layouts(const ot_kernel *kernel)
{
    for (int k = 0; k < n_offered; k++)
        if (offered_kernels[k] == kernel)
            return true;
    return false;
}

static void note_offered(const ot_kernel *kernel)
{
    if (!was_offered_layouts(kernel) && n_offered < MAX_KERNELS)
        offered_kernels[n_offered++] = kernel;
}

static void ask(sets *s, const ot_kernel *kernel, preparation *q, const layouts *offered, bool open)
{
    bool is_open[OT_CASE_MAX_PORTS];
    layouts wanted = {0};

    for (int i = 0; i < q->prep.n_in; i++) {
        is_open[i] = open;
        q->arg[i].layout = offered->in[i];
    }
    q->prep.open = is_open;
    q->prep.want_in = wanted.in;
    q->prep.want_out = wanted.out;
    if (kernel->can_run == NULL || kernel->can_run(&q->prep)) {
        if (!is_plain(offered))
            note_offered(kernel);
        kernel->layouts(&q->prep);
        add_set(s, q, &wanted);
    }
}

// Inputs from number i on in each of their layouts.
static void offer(sets *s, const ot_kernel *kernel, preparation *q, layouts *offered, int i)
{
    const ot_layout *layout[MAX_CANDIDATES];
    int n;

    if (i == q->prep.n_in) {
        ask(s, kernel, q, offered, false);
        ask(s, kernel, q, offered, true);
        return;
    }
    n = q->in[i] == NULL ? 1 : candidates(q->in[i], layout);
    for (int k = 0; k < n; k++) {
        offered->in[i] = q->in[i] == NULL ? NULL : layout[k];
        offer(s, kernel, q, offered, i + 1);
    }
}

// ---- operators that take any layout ----

static bool is_elementwise(const preparation *q)
{
    const ot_arg *y = q->out[0];

    if (y == NULL || y->shape.ndim < 2)
        return false;
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
        if ((q->in[i] != NULL && q->in[i]->count != 1 &&
             !ot__shape_equal(&q->in[i]->shape, &y->shape)) ||
            (q->out[i] != NULL && !ot__shape_equal(&q->out[i]->shape, &y->shape)))
            return false;
    return true;
}

static void add_elementwise(sets *s, const preparation *q, const ot_layout *layout)
{
    layouts f = {0};

    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        f.in[i] = q->in[i] == NULL || q->in[i]->count == 1 ? NULL : layout;
        f.out[i] = q->out[i] == NULL ? NULL : layout;
    }
    add_set(s, q, &f);
}

// ---- the operator that changes layouts ----

static void add_reorders(sets *s, const preparation *q)
{
    const ot_layout *layout[MAX_CANDIDATES];
    const int n = candidates(q->in[0], layout);

    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            add_set(s, q, &(layouts){.in = {layout[from]}, .out = {layout[to]}});
}

// ---- running ----

static void find_sets(sets *s, const call *plain, preparation *q, const ot_layout *reversed)
{
    const ot_op_def *op = plain->one->node->op;
    const ot_layout *layout[MAX_CANDIDATES];
    layouts offered = {0};

    if (plain->kernel->layouts != NULL)
        offer(s, plain->kernel, q, &offered, 0);
    if ((op->flags & OT_OP_ANY_LAYOUT) != 0 && is_elementwise(q)) {
        note_offered(plain->kernel);
        add_elementwise(s, q, reversed);
        for (int k = candidates(q->out[0], layout) - 1; k > 0; k--)
            add_elementwise(s, q, layout[k]);
    }
    if (strcmp(op->name, "Reorder") == 0)
        add_reorders(s, q);
}

static void describe(const call *c, const layouts *f, char *text, size_t size)
{
    const ot_node *node = c->one->node;
    size_t at = (size_t)snprintf(text, size, "kernel '%s' with layouts", c->kernel->name);

    for (int i = 0; i < node->n_inputs + node->n_outputs && at < size; i++) {
        const bool is_in = i < node->n_inputs;
        const ot_layout *layout = is_in ? f->in[i] : f->out[i - node->n_inputs];
        char name[64];

        if (layout != NULL)
            at += (size_t)snprintf(text + at, size - at, " %s%d=%s", is_in ? "x" : "y",
                                   is_in ? i : i - node->n_inputs,
                                   ot__layout_text(layout, name, sizeof(name)));
    }
}

void check_layouts(const ot_op_case *c, const call *plain, const oracle *expected)
{
    const ot_value *y = plain->one->node->outputs[0];
    ot_layout reversed = {.ndim = y == NULL ? 0 : y->shape.ndim};
    preparation *q = malloc(sizeof(*q));
    sets *s = calloc(1, sizeof(*s));

    for (int k = 0; k < reversed.ndim; k++)
        reversed.order[k] = reversed.ndim - 1 - k;
    preparation_make(q, plain);
    find_sets(s, plain, q, &reversed);
    for (int k = 0; k < s->n; k++) {
        call formed = *plain;
        buffers first, second;
        char what[160];

        formed.layouts = &s->set[k];
        describe(plain, formed.layouts, what, sizeof(what));
        // Also one that declines what it asked for: a plan gives it to the next kernel then, which
        // knows nothing of layouts.
        if (call_run(&formed, &first, &second) != OT_OK)
            fail("%s: %s", what, ot_error_message());
        else
            check_against(c, &first, expected, what);
        if (!buffers_same(&first, &second))
            fail("%s gives other bits over other memory", what);
        buffers_deinit(&first);
        buffers_deinit(&second);
    }
    free(s);
    free(q);
}
