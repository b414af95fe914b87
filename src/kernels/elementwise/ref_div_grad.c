// SPDX-License-Identifier: Apache-2.0
// Both gradients of a / b, each summed over the axes along which its operand was stretched.
#include "kernels/kernels.h"

#include <string.h>

#define TEMPLATE "kernels/elementwise/ref_div_grad.tmpl.h"
#include "kernels/by_float.tmpl.h"

void ot__ref_div_grad(void *da, void *db, const void *dy, const void *a, const void *b,
                      const ot__div_grad *p, ot_dtype dtype)
{
    if (p->da_sum != NULL)
        memset(p->da_sum, 0, (size_t)p->a_count * sizeof(*p->da_sum));
    if (p->db_sum != NULL)
        memset(p->db_sum, 0, (size_t)p->b_count * sizeof(*p->db_sum));
    if (dtype == OT_F32)
        div_grad_f32(da, db, dy, a, b, p);
    else
        div_grad_f64(da, db, dy, a, b, p);
}
