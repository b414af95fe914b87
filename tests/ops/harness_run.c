// SPDX-License-Identifier: Apache-2.0
// Running one kernel as a plan does: prepared once, run more than once.
//
// Everything that the kernel has not been promised is poison, and all memory stands between guards
// of it: bytes 0xFF, which make NaN of floats and -1 of integers, in the first run, and 0x7F, huge
// finite numbers, in the second. A kernel that reads what is undefined, scratch from the run before
// or beyond a tensor, or leaves an element unwritten, computes NaN in the first run or other bits
// in the second. (Loops that sanitizers see are stopped there; code that a library makes is not.)
#include "harness_internal.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define CLOSE(at, n) ASAN_POISON_MEMORY_REGION(at, n)
#define OPEN(at, n) ASAN_UNPOISON_MEMORY_REGION(at, n)
#else
#define CLOSE(at, n) ((void)(at))
#define OPEN(at, n) ((void)(at))
#endif

enum { GUARD_BYTES = 64, FIRST_POISON = 0xFF, SECOND_POISON = 0x7F };

// ---- memory between guards ----

typedef struct guarded {
    uint8_t *block;
    size_t n_bytes;
    int poison;
} guarded;

static uint8_t *guarded_data(const guarded *g)
{
    return g->block + GUARD_BYTES;
}

static void guarded_make(guarded *g, size_t n_bytes, int poison)
{
    const size_t size = (n_bytes + 2 * GUARD_BYTES + 63) / 64 * 64;

    *g = (guarded){aligned_alloc(64, size), n_bytes, poison};
    if (g->block == NULL) {
        fail("no memory for %zu bytes", size);
        exit(1);
    }
    memset(g->block, poison, n_bytes + 2 * GUARD_BYTES);
    CLOSE(g->block, GUARD_BYTES);
    CLOSE(g->block + GUARD_BYTES + n_bytes, GUARD_BYTES);
}

// Whether the guards are as they were; opens them.
static bool guarded_holds(const guarded *g)
{
    const uint8_t *end = guarded_data(g) + g->n_bytes;

    OPEN(g->block, g->n_bytes + 2 * GUARD_BYTES);
    for (int k = 0; k < GUARD_BYTES; k++)
        if (g->block[k] != g->poison || end[k] != g->poison)
            return false;
    return true;
}

// ---- what a call reads and writes ----

typedef struct slot {
    guarded memory;
    ot_arg arg;
} slot;

// One run's memory.
typedef struct memory {
    slot in[OT_CASE_MAX_PORTS], out[OT_CASE_MAX_PORTS];
    const ot_arg *ins[OT_CASE_MAX_PORTS];
    ot_arg *outs[OT_CASE_MAX_PORTS];
    guarded scratch;
} memory;

static const ot_tensor *input_of(const call *c, int i)
{
    const ot_value *x = c->one->node->inputs[i];

    // Raising a node may have made inputs that the case has not.
    return x == NULL                                  ? NULL
           : i < c->in->n && c->in->tensor[i] != NULL ? c->in->tensor[i]
                                                      : x->constant;
}

static void slot_make(slot *s, ot_dtype dtype, const ot_shape *shape, const ot_layout *layout,
                      int poison)
{
    int64_t count = 0;
    size_t n_bytes = 0;

    ot__shape_count(shape, &count);
    ot__dtype_bytes(dtype, count, &n_bytes);
    guarded_make(&s->memory, n_bytes, poison);
    s->arg = (ot_arg){.data = guarded_data(&s->memory),
                      .dtype = dtype,
                      .shape = *shape,
                      .count = count,
                      .layout = layout};
}

static void move_packed(void *to, const ot_layout *to_layout, const void *from,
                        const ot_layout *from_layout, const ot_tensor *like)
{
    const int64_t count = ot_tensor_count(like);
    uint8_t *before = malloc((size_t)count), *after = malloc((size_t)count);

    ot__unpack_bits(before, from, like->dtype, 0, count);
    ot__layout_convert(after, to_layout, before, from_layout, &like->shape, 1);
    ot__pack_bits(to, like->dtype, 0, after, count);
    free(before);
    free(after);
}

static void move_elements(void *to, const ot_layout *to_layout, const void *from,
                          const ot_layout *from_layout, const ot_tensor *like)
{
    if (like->n_bytes == 0)
        return;
    if (ot__dtype_is_packed(like->dtype))
        move_packed(to, to_layout, from, from_layout, like);
    else
        ot__layout_convert(to, to_layout, from, from_layout, &like->shape,
                           ot_dtype_size(like->dtype));
}

static void slot_put(slot *s, const ot_tensor *t)
{
    move_elements(s->arg.data, s->arg.layout, t->data, NULL, t);
}

static const ot_tensor *result_at(const buffers *b, int at)
{
    return b == NULL ? NULL : b->tensor[at];
}

// Outputs first, so that inputs may lie in them.
static void memory_make(memory *m, const call *c, int poison)
{
    const ot_node *node = c->one->node;
    int at = 0;

    memset(m, 0, sizeof(*m));
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];
        slot *s = &m->out[i];

        if (y == NULL)
            continue;
        slot_make(s, y->dtype, &y->shape, c->layouts == NULL ? NULL : c->layouts->out[i], poison);
        m->outs[i] = &s->arg;
        if (c->sums != NULL && (c->kernel->accumulates >> i & 1U) != 0)
            slot_put(s, result_at(c->sums, at));
        if (c->in_place >= 0 && i == 0)
            slot_put(s, c->in->tensor[c->in_place]);
        at++;
    }
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_tensor *t = input_of(c, i);
        slot *s = &m->in[i];

        if (t == NULL)
            continue;
        slot_make(s, t->dtype, &t->shape, c->layouts == NULL ? NULL : c->layouts->in[i], poison);
        slot_put(s, t);
        if (i == c->in_place)
            s->arg.data = m->outs[0]->data;
        m->ins[i] = &s->arg;
    }
}

static void memory_deinit(memory *m)
{
    for (int i = 0; i < OT_CASE_MAX_PORTS; i++) {
        free(m->in[i].memory.block);
        free(m->out[i].memory.block);
    }
    free(m->scratch.block);
}

// ---- results ----

bool is_state(const ot_node *node, int i)
{
    const ot_port *port = ot__op_input_port(node->op, i);

    return port != NULL && (port->flags & OT_PORT_STATE) != 0;
}

static void add_result(buffers *b, const slot *s)
{
    ot_tensor *t = NULL;

    if (ot_tensor_create(s->arg.dtype, &s->arg.shape, &t) != OT_OK) {
        fail("cannot keep a result: %s", ot_error_message());
        exit(1);
    }
    move_elements(t->data, NULL, s->arg.data, s->arg.layout, t);
    b->tensor[b->n++] = t;
}

void buffers_deinit(buffers *b)
{
    for (int i = 0; i < b->n; i++)
        ot_tensor_destroy(b->tensor[i]);
    b->n = 0;
}

static void check_unchanged(const call *c, const slot *s, int i)
{
    const ot_tensor *t = input_of(c, i);
    slot again;

    slot_make(&again, t->dtype, &t->shape, s->arg.layout, s->memory.poison);
    slot_put(&again, t);
    if (memcmp(again.arg.data, guarded_data(&s->memory), s->memory.n_bytes) != 0)
        fail("kernel '%s' writes to input %d", c->kernel->name, i);
    guarded_holds(&again.memory);
    free(again.memory.block);
}

// Also what must not have been written; outputs come first in `b`, then what STATE ports hold.
static void collect(const call *c, memory *m, buffers *b)
{
    const ot_node *node = c->one->node;
    const char *name = c->kernel->name;

    for (int i = 0; i < node->n_outputs; i++) {
        if (m->outs[i] == NULL)
            continue;
        if (!guarded_holds(&m->out[i].memory))
            fail("kernel '%s' writes outside output %d", name, i);
        add_result(b, &m->out[i]);
    }
    for (int i = 0; i < node->n_inputs; i++) {
        if (m->ins[i] == NULL)
            continue;
        if (!guarded_holds(&m->in[i].memory))
            fail("kernel '%s' writes outside input %d", name, i);
        if (is_state(node, i))
            add_result(b, &m->in[i]);
        else
            check_unchanged(c, &m->in[i], i);
    }
    if (!guarded_holds(&m->scratch))
        fail("kernel '%s' writes outside its scratch", name);
}

// ---- the call ----

static ot_status run_prepared(const call *c, const ot_prep *p, const int *first, int poison,
                              buffers *b)
{
    const ot_step step = {.training = true};
    memory *m = malloc(sizeof(*m));
    ot_status st;

    memory_make(m, c, poison);
    guarded_make(&m->scratch, p->scratch_bytes, poison);
    st = c->kernel->run(&(ot_run){.in = m->ins,
                                  .out = m->outs,
                                  .n_in = p->n_in,
                                  .n_out = p->n_out,
                                  .in_first = first,
                                  .state = p->state,
                                  .scratch = guarded_data(&m->scratch),
                                  .step = &step,
                                  .n_threads = p->n_threads,
                                  .accumulates = c->sums == NULL ? 0 : c->kernel->accumulates});
    collect(c, m, b);
    memory_deinit(m);
    free(m);
    return st;
}

void preparation_make(preparation *q, const call *c)
{
    const ot_node *node = c->one->node;

    memset(q, 0, sizeof(*q));
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_tensor *t = input_of(c, i);

        q->first[i] = i;
        if (t == NULL)
            continue;
        q->arg[i] = (ot_arg){.dtype = t->dtype,
                             .shape = t->shape,
                             .count = ot_tensor_count(t),
                             .layout = c->layouts == NULL ? NULL : c->layouts->in[i]};
        q->in[i] = &q->arg[i];
        q->constant[i] = node->inputs[i]->constant == NULL ? NULL : t->data;
    }
    q->first[node->n_inputs] = node->n_inputs;
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];
        ot_arg *arg = &q->arg[node->n_inputs + i];

        if (y == NULL)
            continue;
        *arg = (ot_arg){.dtype = y->dtype,
                        .shape = y->shape,
                        .layout = c->layouts == NULL ? NULL : c->layouts->out[i]};
        ot__shape_count(&y->shape, &arg->count);
        q->out[i] = arg;
    }
    q->prep = (ot_prep){.node = node,
                        .in = q->in,
                        .out = q->out,
                        .constant = q->constant,
                        .n_in = node->n_inputs,
                        .n_out = node->n_outputs,
                        .in_first = q->first,
                        .n_threads = ot__parallel_max()};
}

static ot_status check_shapes(const ot_node *node)
{
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y != NULL && (y->kind != OT_VALUE_TENSOR || !ot__shape_is_static(&y->shape)))
            return ot__error(OT_ERR_UNSUPPORTED, "the shape of output %d is not known", i);
    }
    return OT_OK;
}

// Of an operator without kernels.
static ot_status call_evaluate(const call *c, buffers *b)
{
    const ot_node *node = c->one->node;
    const ot_tensor *in[OT_CASE_MAX_PORTS] = {NULL};
    ot_tensor *out[OT_CASE_MAX_PORTS] = {NULL};

    for (int i = 0; i < node->n_inputs; i++)
        in[i] = input_of(c, i);
    OT_TRY(ot__op_eval(node, in, node->n_inputs, out, node->n_outputs));
    for (int i = 0; i < node->n_outputs; i++)
        if (out[i] != NULL)
            b->tensor[b->n++] = out[i];
    return OT_OK;
}

ot_status call_run(const call *c, buffers *first, buffers *second)
{
    preparation *q;
    ot_status st;

    first->n = 0;
    if (second != NULL)
        second->n = 0;
    if (c->kernel == NULL)
        return call_evaluate(c, first);
    OT_TRY(check_shapes(c->one->node));
    q = malloc(sizeof(*q));
    preparation_make(q, c);
    if (c->kernel->can_run != NULL && !c->kernel->can_run(&q->prep))
        st = ot__error(OT_ERR_UNSUPPORTED, "kernel '%s' cannot run this", c->kernel->name);
    else
        st = ot__kernel_prepare(c->kernel, &q->prep);
    if (st == OT_OK) {
        st = run_prepared(c, &q->prep, q->first, FIRST_POISON, first);
        if (st == OT_OK && second != NULL)
            st = run_prepared(c, &q->prep, q->first, SECOND_POISON, second);
        ot__kernel_release(c->kernel, q->prep.state);
    }
    free(q);
    return st;
}
