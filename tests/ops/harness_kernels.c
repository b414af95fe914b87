// SPDX-License-Identifier: Apache-2.0
// What is checked of every kernel of a case's operator: agreement with the reference, in place,
// adding, threads.
#include "harness_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool buffers_same(const buffers *a, const buffers *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->tensor[i]->n_bytes > 0 &&
            memcmp(a->tensor[i]->data, b->tensor[i]->data, a->tensor[i]->n_bytes) != 0)
            return false;
    return true;
}

static void compare_runs(const call *again, const buffers *first, const char *what)
{
    buffers b;

    if (call_run(again, &b, NULL) != OT_OK)
        fail("kernel '%s' %s: %s", again->kernel->name, what, ot_error_message());
    else if (!buffers_same(first, &b))
        fail("kernel '%s' gives other bits %s", again->kernel->name, what);
    buffers_deinit(&b);
}

static void check_threads(const call *plain, const buffers *first)
{
    const int before = ot__parallel_max();

    for (int t = 1; t <= 4; t++) {
        char what[32];

        snprintf(what, sizeof(what), "with %d threads", t);
        ot__parallel_set(t);
        compare_runs(plain, first, what);
    }
    ot__parallel_set(before);
}

static void check_in_place(const call *plain, const buffers *first)
{
    const ot_node *node = plain->one->node;
    const ot_value *y = node->outputs[0];

    if (y == NULL || (node->op->flags & OT_OP_IN_PLACE) == 0 || (node->op->flags & OT_OP_VIEW) != 0)
        return;
    for (int i = 0; i < 2 && i < plain->in->n; i++) {
        const ot_tensor *x = plain->in->tensor[i];
        call again = *plain;

        again.in_place = i;
        if (x != NULL && x->dtype == y->dtype && !is_state(node, i) &&
            ot__shape_equal(&x->shape, &y->shape))
            compare_runs(&again, first, i == 0 ? "in place of input 0" : "in place of input 1");
    }
}

// What the kernel has made, added to itself.
static void check_adding(const ot_op_case *c, const call *plain, const buffers *first)
{
    const ot_kernel *kernel = plain->kernel;
    const ot_node *node = plain->one->node;
    call adding = *plain;
    buffers sums;
    int at = 0;

    if (kernel->accumulates == 0)
        return;
    adding.sums = first;
    if (call_run(&adding, &sums, NULL) != OT_OK) {
        fail("kernel '%s' adding: %s", kernel->name, ot_error_message());
        buffers_deinit(&sums);
        return;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        const double times = (kernel->accumulates >> i & 1U) != 0 ? 2.0 : 1.0;
        ot_tensor *expected = NULL;
        char what[64];

        if (node->outputs[i] == NULL)
            continue;
        snprintf(what, sizeof(what), "kernel '%s' adding to output %d", kernel->name, i);
        if (ot_tensor_create(OT_F64, &sums.tensor[at]->shape, &expected) == OT_OK) {
            double *once = values_of(first->tensor[at]);

            for (int64_t k = 0, n = ot_tensor_count(expected); k < n; k++)
                ((double *)expected->data)[k] = times * once[k];
            free(once);
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

void check_expected(const ot_op_case *c, const buffers *b, const one_node *one, const char *kernel)
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

void check_against(const ot_op_case *c, const buffers *found, const oracle *expected,
                   const char *what)
{
    for (int i = 0; i < found->n; i++) {
        char text[200];

        snprintf(text, sizeof(text), "%s against the reference, result %d", what, i);
        if (found->tensor[i]->dtype == OT_F32)
            note_error(relative_error(found->tensor[i], expected->results.tensor[i]));
        if ((ot__dtype_is_narrow(found->tensor[i]->dtype) && expected->spread[i] != NULL) ||
            tensors_agree(found->tensor[i], expected->results.tensor[i], found->tensor[i]->dtype,
                          c->tolerance, text))
            check_elements(found->tensor[i], expected, i, c->tolerance, text);
    }
}

// As it runs on lesser processors.
static void check_isas(const ot_op_case *c, const call *plain, const oracle *expected)
{
    const int best = present_isa();

    if ((plain->kernel->flags & (OT_KERNEL_REFERENCE | OT_KERNEL_LIBRARY)) != 0)
        return;
    for (int isa = 0; isa < best; isa++) {
        buffers first, second;
        char what[80];

        limit_isa(isa);
        snprintf(what, sizeof(what), "kernel '%s' for %s", plain->kernel->name, isa_name(isa));
        if (call_run(plain, &first, &second) != OT_OK)
            fail("%s: %s", what, ot_error_message());
        else
            check_against(c, &first, expected, what);
        if (!buffers_same(&first, &second))
            fail("%s gives other bits over other memory", what);
        buffers_deinit(&first);
        buffers_deinit(&second);
    }
    limit_isa(best);
}

bool check_kernel(const ot_op_case *c, const call *plain, const oracle *expected,
                  check_extent extent)
{
    const ot_kernel *kernel = plain->kernel;
    buffers b, second;
    const ot_status st = call_run(plain, &b, &second);
    char what[64];

    if (st == OT_OK) {
        snprintf(what, sizeof(what), "kernel '%s'", kernel->name);
        if (!buffers_same(&b, &second))
            fail("kernel '%s' gives other bits over other memory: it reads what is undefined, "
                 "leaves elements unwritten or changes its state",
                 kernel->name);
        check_expected(c, &b, plain->one, kernel->name);
        check_against(c, &b, expected, what);
        if (extent != CHECK_RESULTS)
            check_isas(c, plain, expected);
        if (extent == CHECK_ALL) {
            check_in_place(plain, &b);
            check_adding(c, plain, &b);
            if ((kernel->flags & OT_KERNEL_THREAD_EXACT) != 0)
                check_threads(plain, &b);
            check_layouts(c, plain, expected);
        }
    } else if (should_run(kernel, st)) {
        fail("kernel '%s': %s", kernel->name, ot_error_message());
    }
    buffers_deinit(&b);
    buffers_deinit(&second);
    return st == OT_OK;
}

// The first reference kernel that takes the node's element types; NULL: it is composed.
static const ot_kernel *reference_kernel(const ot_node *node)
{
    for (const ot_kernel *k = node->op->kernels; k != NULL && k->run != NULL; k++)
        if ((k->flags & OT_KERNEL_REFERENCE) != 0 && ot__kernel_takes(k, node))
            return k;
    return NULL;
}

call reference_call(const one_node *one, const inputs *in)
{
    return (call){.one = one, .kernel = reference_kernel(one->node), .in = in, .in_place = -1};
}

ot_status oracle_make(oracle *o, const ot_op_case *c, const one_node *one, const inputs *in)
{
    const ot_op_def *op = one->node->op;
    const call reference = reference_call(one, in);

    memset(o, 0, sizeof(*o));
    o->is_exact = only_moves(op);
    o->rounds_once = op->tile != NULL && op->tile->rounds_once && one->node->n_inputs <= 2;
    o->terms = c->terms;
    return call_run(&reference, &o->results, NULL);
}

static void check_all(const ot_op_case *c, const inputs *in, const one_node *one,
                      const oracle *expected)
{
    for (const ot_kernel *k = one->node->op->kernels; k->name != NULL; k++)
        if (ot__kernel_takes(k, one->node))
            check_kernel(c, &(call){.one = one, .kernel = k, .in = in, .in_place = -1}, expected,
                         CHECK_ALL);
}

static void check_kernels(const ot_op_case *c, const inputs *in, const one_node *one)
{
    oracle expected;

    if (oracle_make(&expected, c, one, in) != OT_OK)
        fail("reference kernel: %s", ot_error_message());
    else
        check_all(c, in, one, &expected);
    oracle_deinit(&expected);
}

bool wide_make(wide_case *w, const ot_op_test *test, const ot_op_case *c, const inputs *in,
               const ot_op_def *op)
{
    memset(w, 0, sizeof(*w));
    return inputs_to_f64(in, op, &w->in) == OT_OK &&
           one_node_make(test, c, &w->in, STATIC_EXTENTS, &w->one) == OT_OK;
}

void wide_deinit(wide_case *w)
{
    oracle_deinit(&w->expected);
    one_node_deinit(&w->one);
    inputs_deinit(&w->in);
}

bool wide_measure(wide_case *w, const ot_op_case *c)
{
    const call reference = reference_call(&w->one, &w->in);

    if (oracle_make(&w->expected, c, &w->one, &w->in) != OT_OK) {
        fail("reference kernel in f64: %s", ot_error_message());
        return false;
    }
    if (!w->expected.is_exact)
        oracle_measure(&w->expected, &reference);
    return true;
}

void check_kernels_against_f64(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                               const one_node *one)
{
    wide_case w;

    if (!wide_make(&w, test, c, in, one->given)) {
        check_kernels(c, in, one); // the record has no f64 for these types
    } else if (wide_measure(&w, c)) {
        check_all(c, in, one, &w.expected);
        check_all(c, &w.in, &w.one, &w.expected);
    }
    wide_deinit(&w);
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

    for (const ot_kernel *k = one->node->op->kernels; k != NULL && k->name != NULL; k++) {
        if (!ot__kernel_takes(k, one->node))
            continue;
        double best = INFINITY;
        ot_status st = OT_OK;

        for (int i = 0; i < RUNS && st == OT_OK; i++) {
            const double start = ot__clock_seconds();
            buffers b;

            st = call_run(&(call){.one = one, .kernel = k, .in = in, .in_place = -1}, &b, NULL);
            best = OT_MIN(best, ot__clock_seconds() - start);
            buffers_deinit(&b);
        }
        if (st == OT_OK)
            printf("%10.1f us  %s, %s: %s\n", best * 1e6, test->op, c->name, k->name);
    }
}
