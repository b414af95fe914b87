// SPDX-License-Identifier: Apache-2.0
// One element type of ref_accumulate.c.

typedef struct FN(job) {
    T *buffer;
    const T *value;
} FN(job);

static void FN(add_part)(void *context, int64_t first, int64_t last)
{
    const FN(job) *j = context;

    for (int64_t i = first; i < last; i++)
        j->buffer[i] += j->value[i];
}

void FN(ot__ref_accumulate)(T *buffer, const T *value, int64_t n)
{
    FN(job) j = {buffer, value};

    ot__parallel_for(n, OT_PAR_MIN, FN(add_part), &j);
}

void FN(ot__ref_scale)(T *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (T)((double)x[i] * factor);
}
