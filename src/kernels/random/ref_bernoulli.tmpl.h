// SPDX-License-Identifier: Apache-2.0
// One size of what ref_random.c writes for true.

static void FN(bernoulli_part)(void *context, int64_t first, int64_t last)
{
    const bernoulli_job *j = context;
    const T zero = {0};

    for (int64_t i = first; i < last; i++)
        ((T *)j->y)[i] = is_drawn(j, i) ? *(const T *)j->one : zero;
}
