// SPDX-License-Identifier: Apache-2.0
// One element size of ref_one_hot.c.

static void FN(put_ones)(void *context, int64_t first, int64_t last)
{
    const one_hot_job *j = context;
    const T on = *(const T *)j->on;
    int64_t outer = first / j->inner, inner = first % j->inner;

    for (int64_t i = first; i < last; i++) {
        const int64_t given = j->index[i], at = given < 0 ? given + j->depth : given;

        if (at >= 0 && at < j->depth)
            ((T *)j->y)[(outer * j->depth + at) * j->inner + inner] = on;
        if (++inner == j->inner) {
            inner = 0;
            outer++;
        }
    }
}
