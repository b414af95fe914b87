// SPDX-License-Identifier: Apache-2.0
// Prints the operator table, a line an operator record: domain, name, since, "raised" or "",
// kernels, gradient, types, "internal" or "", separated by tabs. gen_operators_md.py makes
// docs/operators.md of it.
#include <string.h>

#include "op/op.h"

static const char *gradient_of(const ot_op_def *op)
{
    if (op->flags & OT_OP_NO_GRAD)
        return op->train ? "rewritten" : "none";
    return ot__op_is_differentiable(op) || ot__op_is_composed(op) ? "yes" : "";
}

int main(void)
{
    for (int i = 0; i < ot__op_count(); i++)
        for (const ot_op_def *op = ot__op_records(i); op->name; op++) {
            printf("%s\t%s\t%d\t%s\t", op->domain && op->domain[0] ? op->domain : "ai.onnx",
                   op->name, op->since, op->upgrade ? "raised" : "");
            if (ot__op_is_composed(op))
                printf("composed");
            for (const ot_kernel *k = op->kernels; k && k->name; k++)
                if (k == op->kernels || strcmp(k->name, k[-1].name) != 0)
                    printf("%s%s", k == op->kernels ? "" : " ", k->name);
            printf("\t%s\t%s\t%s\n", gradient_of(op), op->types ? op->types : "",
                   op->flags & OT_OP_INTERNAL ? "internal" : "");
        }
    return 0;
}
