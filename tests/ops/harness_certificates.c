// SPDX-License-Identifier: Apache-2.0
// Certificates: what was measured of each operator, against what there is. Errors differ from
// processor to processor, so only their kind is looked at; numbers of cases are the same on all.
#include "harness_internal.h"

#include <math.h>
#include <string.h>

#include "ops/table.h"

static void check_certificate(const ot_op_test *tests, const ot_op_def *op)
{
    const bool is_plain = op->domain == NULL || op->domain[0] == '\0';
    const ot__certificate *c = ot__op_certificate(op);
    char name[100];
    int n;

    snprintf(name, sizeof name, "%s%s%s", is_plain ? "" : op->domain, is_plain ? "" : ".",
             op->name);
    n = count_cases(tests, name);
    if (c == NULL)
        fail("%s has no certificate; `./dev certificates` measures it", name);
    else if (c->n_cases != n)
        fail("the certificate of %s is of %d cases, there are %d; `./dev certificates` measures it "
             "anew",
             name, c->n_cases, n);
    else if (!isfinite(c->worst_error) || c->worst_error < 0.0 || c->n_node_tests < 0)
        fail("the certificate of %s has an error of %g and %d node tests", name, c->worst_error,
             c->n_node_tests);
}

void check_certificates(const ot_op_test *tests)
{
    for (int i = 0; i < ot__op_count(); i++)
        check_certificate(tests, ot__op_records(i));
}
