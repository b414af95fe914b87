// SPDX-License-Identifier: Apache-2.0
// Running every kernel of a case's operator: agreement with the reference, guards, in place,
// threads.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 64, GUARD = 0xA5, MAX_RESULTS = 2 * OT_CASE_MAX_PORTS };

// Relative error allowed by element type.
static double tolerance_of(ot_dtype dtype)
{
    switch (dtype) {
    case OT_F64:
        return 1e-12;
    case OT_F32:
        return 3e-6;
    case OT_F16:
        return 2e-3;
    case OT_BF16:
        return 1.6e-2;
    default:
        return 0.0;
    }
}

static double largest(const ot_tensor *t)
{
    double found = 0.0;

    for (int64_t k = 0; k < ot_tensor_count(t); k++) {
        const double v = fabs(ot__tensor_get_f64(t, k));

        if (isfinite(v) && v > found)
            found = v;
    }
    return found;
}

static bool numbers_agree(double a, double b, double allowed)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= allowed;
}

bool tensors_agree(const ot_tensor *a, const ot_tensor *b, ot_dtype precision, double tolerance,
                   const char *what)
{
    const double relative = tolerance_of(precision) * (tolerance == 0.0 ? 1.0 : tolerance);
    const double scale = largest(b);

    if (!ot__shape_equal(&a->shape, &b->shape)) {
        char a_text[100], b_text[100];

        fail("%s: shape %s, expected %s", what, ot__shape_text(&a->shape, a_text, sizeof(a_text)),
             ot__shape_text(&b->shape, b_text, sizeof(b_text)));
        return false;
    }
    for (int64_t k = 0; k < ot_tensor_count(a); k++) {
        const double av = ot__tensor_get_f64(a, k), bv = ot__tensor_get_f64(b, k);

        if (numbers_agree(av, bv, relative * OT_MAX(fabs(bv), scale)))
            continue;
        fail("%s: element %" PRId64 " is %.17g, expected %.17g", what, k, av, bv);
        return false;
    }
    return true;
}

// ---- one run of one kernel ----

// The buffers of a run: outputs, and copies of what STATE ports write, each between guards.
typedef struct buffers {
    int n;
    uint8_t *block[MAX_RESULTS];
    ot_tensor *tensor[MAX_RESULTS]; // views into the blocks
    ot_arg arg[MAX_RESULTS];
} buffers;

static ot_arg *add_buffer(buffers *b, ot_dtype dtype, const ot_shape *shape, int fill,
                          const void *contents)
{
    int64_t count = 0;
    size_t n_bytes = 0;
    const int i = b->n;

    ot__shape_count(shape, &count);
    ot__dtype_bytes(dtype, count, &n_bytes);
    b->block[i] = aligned_alloc(64, (n_bytes + 63) / 64 * 64 + 2 * GUARD_BYTES);
    memset(b->block[i], GUARD, n_bytes + 2 * GUARD_BYTES);
    memset(b->block[i] + GUARD_BYTES, fill, n_bytes);
    if (contents != NULL)
        memcpy(b->block[i] + GUARD_BYTES, contents, n_bytes);
    if (ot_tensor_wrap(dtype, shape, b->block[i] + GUARD_BYTES, n_bytes, &b->tensor[i]) != OT_OK) {
        fail("cannot wrap an output: %s", ot_error_message());
        exit(1);
    }
    b->arg[i] = (ot_arg){
        .data = b->block[i] + GUARD_BYTES, .dtype = dtype, .shape = *shape, .count = count};
    b->n++;
    return &b->arg[i];
}

static void check_guards(const buffers *b, const char *kernel)
{
    for (int i = 0; i < b->n; i++) {
        const uint8_t *end = b->block[i] + GUARD_BYTES + b->tensor[i]->n_bytes;

        for (int k = 0; k < GUARD_BYTES; k++)
            if (b->block[i][k] != GUARD || end[k] != GUARD) {
                fail("kernel '%s' writes outside output %d", kernel, i);
                return;
            }
    }
}

static void buffers_deinit(buffers *b)
{
    for (int i = 0; i < b->n; i++) {
        ot_tensor_destroy(b->tensor[i]);
        free(b->block[i]);
    }
    b->n = 0;
}

static bool is_state(const ot_node *node, int i)
{
    const ot_port *port = ot__op_input_port(node->op, i);

    return port != NULL && (port->flags & OT_PORT_STATE) != 0;
}

// `in_place`: the input whose memory output 0 takes; -1: none. `sums`: what outputs hold that the
// kernel can add to, and then adds to; NULL: nothing. Results land in `b`, outputs first.
static ot_status run_once(const one_node *one, const ot_kernel *kernel, const inputs *in, int fill,
                          int in_place, const buffers *sums, buffers *b)
{
    const ot_node *node = one->node;
    ot_arg in_arg[OT_CASE_MAX_PORTS];
    const ot_arg *ins[OT_CASE_MAX_PORTS] = {NULL};
    const void *constant[OT_CASE_MAX_PORTS] = {NULL};
    ot_arg *outs[OT_CASE_MAX_PORTS] = {NULL};

    memset(b, 0, sizeof(*b));
    for (int i = 0; i < node->n_outputs; i++) {
        const ot_value *y = node->outputs[i];

        if (y != NULL && (y->kind != OT_VALUE_TENSOR || !ot__shape_is_static(&y->shape)))
            return ot__error(OT_ERR_UNSUPPORTED, "the shape of output %d is not known", i);
        const void *contents = in_place >= 0 && i == 0 ? in->tensor[in_place]->data : NULL;

        if (y == NULL)
            continue;
        if (sums != NULL && (kernel->adds >> i & 1U) != 0)
            contents = sums->tensor[b->n]->data;
        outs[i] = add_buffer(b, y->dtype, &y->shape, fill, contents);
    }
    for (int i = 0; i < node->n_inputs; i++) {
        const ot_value *x = node->inputs[i];
        // Raising a node may have made inputs that the case has not.
        const ot_tensor *t = i < in->n && in->tensor[i] != NULL ? in->tensor[i]
                             : x != NULL                        ? x->constant
                                                                : NULL;

        if (x == NULL || t == NULL)
            continue;
        in_arg[i] = (ot_arg){.data = i == in_place ? outs[0]->data : t->data,
                             .dtype = t->dtype,
                             .shape = t->shape,
                             .count = ot_tensor_count(t)};
        ins[i] = is_state(node, i) ? add_buffer(b, t->dtype, &t->shape, fill, t->data) : &in_arg[i];
        constant[i] = x->constant == NULL ? NULL : t->data;
    }
    return ot__op_run_kernel(node, kernel, ins, constant, node->n_inputs, outs, node->n_outputs,
                             sums == NULL ? 0 : kernel->adds);
}

// ---- what is checked of every kernel ----

static bool same_bits(const buffers *a, const buffers *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->tensor[i]->n_bytes > 0 &&
            memcmp(a->tensor[i]->data, b->tensor[i]->data, a->tensor[i]->n_bytes) != 0)
            return false;
    return true;
}

static void compare_runs(const one_node *one, const ot_kernel *kernel, const inputs *in,
                         const buffers *first, int in_place, const char *what)
{
    buffers again;

    if (run_once(one, kernel, in, 0x11, in_place, NULL, &again) != OT_OK)
        fail("kernel '%s' %s: %s", kernel->name, what, ot_error_message());
    else if (!same_bits(first, &again))
        fail("kernel '%s' gives other bits %s", kernel->name, what);
    check_guards(&again, kernel->name);
    buffers_deinit(&again);
}

static void check_threads(const one_node *one, const ot_kernel *kernel, const inputs *in,
                          const buffers *first)
{
    const int before = ot__parallel_max();

    for (int t = 1; t <= 4; t++) {
        char what[32];

        snprintf(what, sizeof(what), "with %d threads", t);
        ot__parallel_set(t);
        compare_runs(one, kernel, in, first, -1, what);
    }
    ot__parallel_set(before);
}

static void check_in_place(const one_node *one, const ot_kernel *kernel, const inputs *in,
                           const buffers *first)
{
    const ot_value *y = one->node->outputs[0];

    if (y == NULL || (one->node->op->flags & OT_OP_IN_PLACE) == 0 ||
        (one->node->op->flags & OT_OP_VIEW) != 0)
        return;
    for (int i = 0; i < 2 && i < in->n; i++)
        if (in->tensor[i] != NULL && in->tensor[i]->dtype == y->dtype && !is_state(one->node, i) &&
            ot__shape_equal(&in->tensor[i]->shape, &y->shape))
            compare_runs(one, kernel, in, first, i,
                         i == 0 ? "in place of input 0" : "in place of input 1");
}

// What the kernel has made, added to itself.
static void check_adding(const ot_op_case *c, const one_node *one, const ot_kernel *kernel,
                         const inputs *in, const buffers *first)
{
    buffers sums;
    int at = 0;

    if (kernel->adds == 0)
        return;
    if (run_once(one, kernel, in, 0xFF, -1, first, &sums) != OT_OK)
        fail("kernel '%s' adding: %s", kernel->name, ot_error_message());
    check_guards(&sums, kernel->name);
    for (int i = 0; i < one->node->n_outputs; i++) {
        const double times = (kernel->adds >> i & 1U) != 0 ? 2.0 : 1.0;
        ot_tensor *expected = NULL;
        char what[64];

        if (one->node->outputs[i] == NULL)
            continue;
        snprintf(what, sizeof(what), "kernel '%s' adding to output %d", kernel->name, i);
        if (ot_tensor_create(OT_F64, &sums.tensor[at]->shape, &expected) == OT_OK) {
            for (int64_t k = 0; k < ot_tensor_count(expected); k++)
                ((double *)ot_tensor_data(expected))[k] =
                    times * ot__tensor_get_f64(first->tensor[at], k);
            tensors_agree(sums.tensor[at], expected, sums.tensor[at]->dtype, c->tolerance, what);
        }
        ot_tensor_destroy(expected);
        at++;
    }
    buffers_deinit(&sums);
}

static bool should_run(const ot_kernel *kernel, ot_status st)
{
    return st != OT_ERR_UNSUPPORTED || kernel->can_run == NULL;
}

static void check_expected(const ot_op_case *c, const buffers *b, const one_node *one,
                           const char *kernel)
{
    enum { SIX_DIGITS = 3 }; // times the table's tolerance, for values written with six digits
    int at = 0;

    for (int i = 0; i < one->node->n_outputs; i++) {
        ot_tensor *expected = NULL;
        spec s;
        char what[64];

        if (one->node->outputs[i] == NULL)
            continue;
        if (c->out[i] != NULL && spec_parse(c->out[i], &s) && s.has_values &&
            ot_tensor_create(b->tensor[at]->dtype, &s.shape, &expected) == OT_OK) {
            snprintf(what, sizeof(what), "kernel '%s', output %d", kernel, i);
            if (!spec_values(&s, expected))
                fail("the elements of '%s' do not fit its shape", c->out[i]);
            else
                tensors_agree(b->tensor[at], expected, OT_F32, SIX_DIGITS, what);
            ot_tensor_destroy(expected);
        }
        at++;
    }
}

static void check_kernel(const ot_op_case *c, const inputs *in, const one_node *one,
                         const ot_kernel *kernel, const buffers *oracle)
{
    buffers b;
    const ot_status st = run_once(one, kernel, in, 0xFF, -1, NULL, &b);

    if (st == OT_OK) {
        check_guards(&b, kernel->name);
        compare_runs(one, kernel, in, &b, -1, "over other memory, so it leaves elements unwritten");
        check_in_place(one, kernel, in, &b);
        check_adding(c, one, kernel, in, &b);
        if ((kernel->flags & OT_KERNEL_THREAD_EXACT) != 0)
            check_threads(one, kernel, in, &b);
        check_expected(c, &b, one, kernel->name);
        for (int i = 0; oracle != NULL && i < b.n; i++) {
            char what[64];

            snprintf(what, sizeof(what), "kernel '%s' against the reference, result %d",
                     kernel->name, i);
            tensors_agree(b.tensor[i], oracle->tensor[i], b.tensor[i]->dtype, c->tolerance, what);
        }
    } else if (should_run(kernel, st)) {
        fail("kernel '%s': %s", kernel->name, ot_error_message());
    }
    buffers_deinit(&b);
}

static const ot_kernel *reference_of(const ot_op_def *op)
{
    const ot_kernel *last = op->kernels;

    while (last[1].name != NULL)
        last++;
    return last;
}

static void check_all(const ot_op_case *c, const inputs *in, const one_node *one,
                      const buffers *oracle)
{
    for (const ot_kernel *k = one->node->op->kernels; k->name != NULL; k++)
        check_kernel(c, in, one, k, oracle);
}

void check_kernels(const ot_op_case *c, const inputs *in, const one_node *one)
{
    buffers oracle;

    if (run_once(one, reference_of(one->node->op), in, 0, -1, NULL, &oracle) != OT_OK)
        fail("reference kernel: %s", ot_error_message());
    else
        check_all(c, in, one, &oracle);
    buffers_deinit(&oracle);
}

void check_kernels_against_f64(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                               const one_node *one)
{
    one_node wide = {0};
    inputs wide_in;
    buffers oracle = {0};

    if (inputs_to_f64(in, one->node->op, &wide_in) != OT_OK ||
        one_node_make(test, c, &wide_in, STATIC_EXTENTS, &wide) != OT_OK) {
        check_kernels(c, in, one); // the record has no f64 for these types
    } else {
        if (run_once(&wide, reference_of(wide.node->op), &wide_in, 0, -1, NULL, &oracle) != OT_OK)
            fail("reference kernel in f64: %s", ot_error_message());
        else
            check_all(c, in, one, &oracle);
        check_kernels(c, &wide_in, &wide);
    }
    buffers_deinit(&oracle);
    one_node_deinit(&wide);
    inputs_deinit(&wide_in);
}

ot_status run_reference(const one_node *one, const inputs *in, ot_tensor **out)
{
    const ot_node *node = one->node;
    const ot_tensor *ins[OT_CASE_MAX_PORTS] = {NULL};

    for (int i = 0; i < node->n_inputs; i++)
        ins[i] = i < in->n && in->tensor[i] != NULL ? in->tensor[i]
                 : node->inputs[i] != NULL          ? node->inputs[i]->constant
                                                    : NULL;
    return ot__op_eval(node, ins, node->n_inputs, out, node->n_outputs);
}

// ---- op_tests --perf ----

void time_kernels(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                  const one_node *one)
{
    enum { RUNS = 7 };

    for (const ot_kernel *k = one->node->op->kernels; k->name != NULL; k++) {
        double best = INFINITY;
        ot_status st = OT_OK;

        for (int i = 0; i < RUNS && st == OT_OK; i++) {
            const double start = ot__clock_seconds();
            buffers b;

            st = run_once(one, k, in, 0, -1, NULL, &b);
            best = OT_MIN(best, ot__clock_seconds() - start);
            buffers_deinit(&b);
        }
        if (st == OT_OK)
            printf("%10.1f us  %s, %s: %s\n", best * 1e6, test->op, c->name, k->name);
    }
}
