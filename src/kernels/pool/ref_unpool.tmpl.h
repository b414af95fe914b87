// SPDX-License-Identifier: Apache-2.0
// One element size of ref_unpool.c.

static void FN(unpool_planes)(void *context, int64_t first, int64_t last)
{
    job *j = context;
    bool is_foreign = false;

    for (int64_t plane = first; plane < last; plane++) {
        T *y = (T *)(void *)j->y + plane * j->n_out;
        const T *x = (const T *)(const void *)j->x + plane * j->n_in;
        const int64_t *indices = j->indices + plane * j->n_in;
        const int64_t start = plane * j->n_out;

        memset(y, 0, (size_t)j->n_out * sizeof(T));
        for (int64_t i = 0; i < j->n_in; i++) {
            const uint64_t at = (uint64_t)indices[i] - (uint64_t)start;

            if (at < (uint64_t)j->n_out)
                y[at] = x[i];
            else
                is_foreign = true;
        }
    }
    if (is_foreign)
        atomic_store(&j->is_foreign, true);
}
