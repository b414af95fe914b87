// SPDX-License-Identifier: Apache-2.0
// Several elementwise operators run one after the other on each piece, so that what lies between
// them stays in the first cache. The program names them: "Add x0 x1; LeakyRelu[0.1] r0" applies Add
// to inputs 0 and 1, then LeakyRelu with its one attribute to the result of step 0; the last step
// gives the output.
#include "ops/elementwise/elementwise.h"

#include <string.h>

enum {
    MAX_STEPS = 16,
    INPUT = 0,
    RESULT = 64,
    OMITTED = -1,
    BUFFER = 1792, // elements of results, on a thread's stack
    STRETCH = 64,  // elements: what is computed at once is a multiple of it
};

typedef struct step {
    const ot_tile *tile;
    float attrs[OT_TILE_MAX_ATTRS];
    int n_operands;
    int operand[OT__MAX_OPERANDS]; // INPUT + i, RESULT + i or OMITTED
    int slot;                      // of the buffer, where the result lies
} step;

typedef struct chain {
    ot__elementwise plan;
    int n_steps;
    int64_t stretch; // elements that all steps go over before the next ones
    step step[MAX_STEPS];
} chain;

// ---- reading the program ----

typedef struct program {
    const char *at;
    int n_inputs;
} program;

static void chain_skip_spaces(program *p)
{
    p->at += strspn(p->at, " ");
}

static bool chain_read_operand(program *p, int i_step, int *out)
{
    const char kind = *p->at++;
    int index = 0;

    *out = OMITTED;
    if (kind == '-')
        return true;
    if (*p->at < '0' || *p->at > '9')
        return false;
    for (; *p->at >= '0' && *p->at <= '9' && index < RESULT; p->at++)
        index = index * 10 + (*p->at - '0');
    *out = (kind == 'x' ? INPUT : RESULT) + index;
    return (kind == 'x' && index < p->n_inputs) || (kind == 'r' && index < i_step);
}

static bool chain_read_step(program *p, int i_step, step *s)
{
    chain_skip_spaces(p);
    if (!ot__tile_read(&p->at, &s->tile, s->attrs))
        return false;
    for (chain_skip_spaces(p); *p->at != '\0' && *p->at != ';'; chain_skip_spaces(p))
        if (s->n_operands == OT__MAX_OPERANDS ||
            !chain_read_operand(p, i_step, &s->operand[s->n_operands++]))
            return false;
    return s->n_operands > 0;
}

// False with p->at where it goes wrong.
static bool chain_read_program(program *p, chain *c)
{
    for (c->n_steps = 0; c->n_steps < MAX_STEPS;) {
        if (!chain_read_step(p, c->n_steps, &c->step[c->n_steps]))
            return false;
        c->n_steps++;
        if (*p->at == '\0')
            return true;
        p->at++;
    }
    return false;
}

// ---- running ----

static int chain_last_reader(const chain *c, int i_step)
{
    int last = i_step;

    for (int i = i_step + 1; i < c->n_steps; i++)
        for (int k = 0; k < c->step[i].n_operands; k++)
            if (c->step[i].operand[k] == RESULT + i_step)
                last = i;
    return last;
}

// A result gets the first slot whose owner is read by no step from this one on.
static void chain_choose_slots(chain *c)
{
    int free_from[MAX_STEPS] = {0}, n_slots = 1;

    for (int i = 0; i < c->n_steps; i++) {
        int slot = 0;

        while (free_from[slot] > i)
            slot++;
        c->step[i].slot = slot;
        free_from[slot] = chain_last_reader(c, i) + 1;
        n_slots = OT_MAX(n_slots, slot + 1);
    }
    c->stretch = BUFFER / n_slots / STRETCH * STRETCH;
}

static ot_status chain_prepare(ot_prep *p)
{
    const char *text = ot_attr_string(p->node, "program");
    program read = {text, p->n_in};
    chain *c = ot_prep_state(p, sizeof(*c));

    OT_TRY(p->status);
    if (p->n_in > OT__MAX_OPERANDS)
        return ot_prep_fail(p, OT_ERR_UNSUPPORTED, "%d inputs, at most %d are supported", p->n_in,
                            OT__MAX_OPERANDS);
    if (!chain_read_program(&read, c))
        return ot_prep_fail(p, OT_ERR_INVALID, "the program is not understood from '%.40s'",
                            read.at);
    chain_choose_slots(c);
    ot__elementwise_plan_f32(&c->plan, ot_prep_out(p, 0), p->in, p->n_in);
    return OT_OK;
}

static void chain_stretch_f32(const chain *c, float *y, const void *const *x, int64_t start,
                              int64_t n)
{
    float buffer[BUFFER];

    for (int i = 0; i < c->n_steps; i++) {
        const step *s = &c->step[i];
        const float *xs[OT__MAX_OPERANDS] = {NULL};

        for (int k = 0; k < s->n_operands; k++)
            xs[k] = s->operand[k] >= RESULT
                        ? buffer + c->step[s->operand[k] - RESULT].slot * c->stretch
                    : s->operand[k] != OMITTED ? (const float *)x[s->operand[k]] + start
                                               : NULL;
        s->tile->f32(i + 1 == c->n_steps ? y + start : buffer + s->slot * c->stretch, xs, n,
                     s->attrs);
    }
}

static void chain_piece_f32(void *y, const void *const *x, int64_t n, const void *context)
{
    const chain *c = context;

    for (int64_t start = 0; start < n; start += c->stretch)
        chain_stretch_f32(c, y, x, start, OT_MIN(c->stretch, n - start));
}

// In f64 whatever the type of x and y, a few elements at a time.
static void chain_piece_ref(void *y, const void *const *x, int64_t n, const ot_run *r,
                            const chain *c)
{
    enum { CHUNK = 32 };
    double input[OT__MAX_OPERANDS][CHUNK], result[MAX_STEPS][CHUNK];
    const ot_dtype dtype = r->out[0]->dtype;
    const size_t size = ot_dtype_size(dtype);

    for (int64_t start = 0; start < n; start += CHUNK) {
        const int64_t m = OT_MIN(CHUNK, n - start);

        for (int i = 0; i < r->n_in; i++)
            ot__convert(input[i], OT_F64, (const uint8_t *)x[i] + (size_t)start * size, dtype, m);
        for (int i = 0; i < c->n_steps; i++) {
            const step *s = &c->step[i];
            const double *xs[OT__MAX_OPERANDS] = {NULL};

            for (int k = 0; k < s->n_operands; k++)
                xs[k] = s->operand[k] >= RESULT    ? result[s->operand[k] - RESULT]
                        : s->operand[k] != OMITTED ? input[s->operand[k]]
                                                   : NULL;
            s->tile->f64(result[i], xs, m, s->attrs);
        }
        ot__convert((uint8_t *)y + (size_t)start * size, dtype, result[c->n_steps - 1], OT_F64, m);
    }
}

static void chain_piece_of_run(void *y, const void *const *x, int64_t n, const void *context)
{
    const ot_run *r = context;

    chain_piece_ref(y, x, n, r, r->state);
}

static ot_status chain_run_ref(const ot_run *r)
{
    ot__pieces_run(r, chain_piece_of_run, r);
    return OT_OK;
}

static ot_status chain_run(const ot_run *r)
{
    ot__pieces_run(r, chain_piece_f32, r->state);
    return OT_OK;
}

// Every step must have vector code. A program that is not understood is left to prepare, which says
// so.
static bool chain_can_simd(const ot_prep *p)
{
    program read = {ot_attr_string(p->node, "program"), p->n_in};
    chain c = {.n_steps = 0};

    if (!chain_read_program(&read, &c))
        return false;
    for (int i = 0; i < c.n_steps; i++)
        if (c.step[i].tile->f32 == NULL)
            return false;
    return true;
}

static const ot_port chain_in[] = {{"X", "T", OT_PORT_VARIADIC}, {0}};
static const ot_attr_spec chain_attrs[] = {
    {.name = "program", .kind = OT_ATTRIBUTE_STRING, .flags = OT_ATTR_REQUIRED},
    {0},
};
static const ot_kernel chain_kernels[] = {
    OT__SIMD_FLOATS_LAYOUTS_KERNEL(chain_can_simd, ot__stretched_layouts, chain_prepare, chain_run),
    OT__REF_KERNEL(NULL, chain_prepare, chain_run_ref),
    {0},
};
const ot_op_def ot__op_elementwise_chain[] = {
    {.domain = "ai.onnxtrain",
     .name = "ElementwiseChain",
     .since = 1,
     .inputs = chain_in,
     .outputs = ot__unary_out,
     .attrs = chain_attrs,
     .types = "T: f32 f64",
     .infer = ot__infer_broadcast,
     .kernels = chain_kernels,
     .flags = OT_OP_NO_GRAD | OT_OP_IN_PLACE | OT_OP_INTERNAL | OT_OP_ANY_LAYOUT},
    {0},
};
