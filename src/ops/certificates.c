// SPDX-License-Identifier: Apache-2.0
// What the tests have measured of each operator: certificates.def, which `./dev certificates`
// writes.
#include <string.h>

#include "ops/table.h"

static const ot__certificate certificates[] = {
#define OT_CERTIFICATE(domain, name, n_cases, worst_error, n_node_tests)                           \
    {domain, #name, n_cases, n_node_tests, worst_error},
#include "ops/certificates.def"
#undef OT_CERTIFICATE
};

const ot__certificate *ot__op_certificate(const ot_op_def *op)
{
    const char *domain = op->domain == NULL ? "" : op->domain;

    for (size_t i = 0; i < OT_COUNT(certificates); i++)
        if (strcmp(certificates[i].name, op->name) == 0 &&
            strcmp(certificates[i].domain, domain) == 0)
            return &certificates[i];
    return NULL;
}
