// SPDX-License-Identifier: Apache-2.0
// op_tests [--plain|--narrow|--perf|--certify] [NAME ...]: run the cases of all operators, or of
// those named; non-zero when one fails. With --plain as they are, with --narrow in f16 and bf16,
// without either both. With --perf time the kernels instead, preparing included. With --certify as
// with --plain, and print what tools/gen_certificates.py makes src/ops/certificates.def of, against
// which the other runs compare the numbers of cases.
#include "harness_internal.h"

#include <string.h>

static ot_op_test *all_tests;
static ot_op_test *present_test;
static const ot_op_case *present_case;
static int n_failures;

void ot_op_test_register(ot_op_test *test)
{
    test->next = all_tests;
    all_tests = test;
}

void check_begin(ot_op_test *test, const ot_op_case *c)
{
    present_test = test;
    present_case = c;
}

void fail(const char *format, ...)
{
    va_list args;

    n_failures++;
    fprintf(stderr, "%s: %s: ", present_test == NULL ? "table" : present_test->op,
            present_case == NULL ? "" : present_case->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    edges_print();
    fputc('\n', stderr);
}

void note_error(double error)
{
    if (present_test != NULL && error > present_test->worst_error)
        present_test->worst_error = error;
}

int failures(void)
{
    return n_failures;
}

static void check_inferred(const ot_op_case *c, const one_node *one)
{
    for (int i = 0; i < one->node->n_outputs; i++) {
        const ot_value *y = one->node->outputs[i];
        char found[120], expected[120];
        spec s;

        if (y == NULL || c->out[i] == NULL)
            continue;
        if (!spec_parse(c->out[i], &s))
            fail("the case's output '%s' cannot be read", c->out[i]);
        else if (y->dtype != s.dtype || !y->has_shape || !ot__shape_equal(&y->shape, &s.shape))
            fail("output %d is inferred as %s %s, expected %s %s", i, ot_dtype_name(y->dtype),
                 y->has_shape ? ot__shape_text(&y->shape, found, sizeof(found)) : "of unknown rank",
                 ot_dtype_name(s.dtype), ot__shape_text(&s.shape, expected, sizeof(expected)));
    }
}

static void check_error(const ot_op_case *c, const inputs *in, const one_node *one, ot_status st)
{
    ot_tensor *out[OT_CASE_MAX_PORTS] = {NULL};

    if (st == OT_OK) {
        st = run_reference(one, in, out);
        for (int i = 0; i < OT_CASE_MAX_PORTS; i++)
            ot_tensor_destroy(out[i]);
    }
    if (st != c->error)
        fail("%s, expected %s; message: %s", ot_status_name(st), ot_status_name(c->error),
             ot_error_message());
}

static bool is_timed, is_plain_run = true, is_narrow_run = true;

static void check_case_narrow(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                              const one_node *one)
{
    // What an operator is composed of rounds between its nodes: its gradient shows that.
    if (!ot__op_is_composed(one->node->op)) {
        check_narrow(test, c, in);
        check_narrow_kernels(test, c, in);
    }
    if (c->edges == NULL && (c->flags & (OT_CASE_NO_GRAD | OT_CASE_RULE)) != OT_CASE_NO_GRAD)
        check_narrow_gradients(test, c, in);
}

static void check_case(const ot_op_test *test, const ot_op_case *c, const inputs *in,
                       const one_node *one)
{
    check_inferred(c, one);
    if (ot__op_is_composed(one->node->op))
        check_composed(test, c, in, one);
    else
        check_kernels_against_f64(test, c, in, one);
    if ((c->flags & OT_CASE_NO_GRAD) != 0 || c->edges != NULL)
        return;
    check_gradients(test, c, in, STATIC_EXTENTS);
    if ((c->flags & OT_CASE_STATIC) == 0)
        check_gradients(test, c, in,
                        one->node->op->tile != NULL ? SYMBOLIC_EXTENTS : SYMBOLIC_BATCH);
    if ((c->flags & OT_CASE_IMAGE) != 0)
        check_gradients(test, c, in, SYMBOLIC_IMAGE);
    if ((c->flags & OT_CASE_OPEN) != 0)
        check_gradients(test, c, in, SYMBOLIC_EXTENTS);
}

void run_case(const ot_op_test *test, const ot_op_case *c)
{
    one_node one = {0};
    inputs in;
    ot_status st = inputs_make(c, &in);

    if (st != OT_OK) {
        fail("%s", ot_error_message());
        inputs_deinit(&in);
        return;
    }
    st = one_node_make(test, c, &in, STATIC_EXTENTS, &one);
    if (c->error != OT_OK) {
        check_error(c, &in, &one, st);
    } else if (st != OT_OK) {
        fail("%s", ot_error_message());
    } else if (is_timed) {
        time_kernels(test, c, &in, &one);
    } else {
        if (is_plain_run)
            check_case(test, c, &in, &one);
        if (is_narrow_run)
            check_case_narrow(test, c, &in, &one);
    }
    one_node_deinit(&one);
    inputs_deinit(&in);
}

static bool is_end(const ot_op_case *c)
{
    return c->name == NULL && c->in[0] == NULL && c->out[0] == NULL;
}

static int run_test(ot_op_test *test)
{
    int n = 0;

    for (const ot_op_case *c = test->cases; !is_end(c); c++, n++) {
        const int before = n_failures;

        check_begin(test, c);
        if (c->edges == NULL)
            run_case(test, c);
        else
            run_edges(test, c);
        if (n_failures > before)
            fprintf(stderr, "FAILED %s: %s\n", test->op, c->name);
    }
    return n;
}

static bool is_named(const ot_op_test *test, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], test->op) == 0)
            return true;
    return n == 0;
}

int count_cases(const ot_op_test *tests, const char *op)
{
    int n = 0;

    for (const ot_op_test *t = tests; t != NULL; t = t->next)
        if (strcmp(t->op, op) == 0)
            for (const ot_op_case *c = t->cases; !is_end(c); c++)
                n++;
    return n;
}

static void print_certificates(void)
{
    for (const ot_op_test *t = all_tests; t != NULL; t = t->next) {
        const ot_op_test *same = all_tests;
        double worst = 0.0;

        while (strcmp(same->op, t->op) != 0)
            same = same->next;
        if (same != t)
            continue; // is in the sum of an earlier table
        for (; same != NULL; same = same->next)
            if (strcmp(same->op, t->op) == 0)
                worst = OT_MAX(worst, same->worst_error);
        printf("certificate %s %d %.1e\n", t->op, count_cases(all_tests, t->op), worst);
    }
    printf("processor %s\n", isa_name(present_isa()));
}

int main(int argc, char **argv)
{
    int n_tests = 0, n_cases = 0;
    bool is_certified = false;

    argv++;
    argc--;
    if (argc > 0 && strncmp(argv[0], "--", 2) == 0) {
        is_timed = strcmp(argv[0], "--perf") == 0;
        is_narrow_run = strcmp(argv[0], "--narrow") == 0;
        is_certified = strcmp(argv[0], "--certify") == 0;
        is_plain_run = is_certified || strcmp(argv[0], "--plain") == 0;
        if (!is_timed && !is_narrow_run && !is_plain_run)
            fail("unknown option '%s' (known: --plain, --narrow, --perf, --certify)", argv[0]);
        argv++;
        argc--;
    }
    for (ot_op_test *t = all_tests; t != NULL; t = t->next)
        if (is_named(t, argv, argc)) {
            n_cases += run_test(t);
            n_tests++;
        }
    check_begin(NULL, NULL);
    if (argc == 0 && !is_timed)
        check_table(all_tests, is_plain_run, is_narrow_run);
    if (argc == 0 && !is_timed && !is_certified)
        check_certificates(all_tests);
    if (n_tests == 0)
        fail("no operator of that name has cases");
    if (is_certified)
        print_certificates();
    printf("%d cases in %d tables, %d failures\n", n_cases, n_tests, n_failures);
    return n_failures == 0 ? 0 : 1;
}
