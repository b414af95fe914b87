// SPDX-License-Identifier: Apache-2.0
// Which kernel runs a node: the first of its record that accepts the problem, so that the same
// inputs choose the same kernels.
#include "exec/plan.h"

static bool accepts(const ot_kernel *kernel, const ot_prep *prep)
{
    return kernel->can_run == NULL || kernel->can_run(prep);
}

const ot_kernel *ot__kernel_select(const ot_op_def *op, const ot__plan_options *options,
                                   ot_prep *prep)
{
    const ot_kernel *reference = op->kernels;

    while (reference[1].run != NULL)
        reference++;
    if (!options->reference_only) {
        for (const ot_kernel *k = op->kernels; k < reference; k++)
            if ((!options->reproducible || (k->flags & OT_KERNEL_THREAD_EXACT) != 0) &&
                accepts(k, prep))
                return k;
    }
    if (!accepts(reference, prep))
        return NULL;
    // One thread gives the same bits whatever number the caller asked for.
    if (options->reproducible && (reference->flags & OT_KERNEL_THREAD_EXACT) == 0)
        prep->n_threads = 1;
    return reference;
}
