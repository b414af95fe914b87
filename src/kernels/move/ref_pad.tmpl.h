// SPDX-License-Identifier: Apache-2.0
// One element size of ref_pad.c.

static void FN(pad_all)(const job *j, char *row)
{
    const T value = *(const T *)(const void *)j->value;
    T *y = (T *)(void *)row;

    for (int64_t i = 0; i < j->pad->dim[j->pad->ndim - 1]; i++)
        y[i] = value;
}

static void FN(pad_border)(const job *j, T *y, const T *x, int64_t first, int64_t last)
{
    const int64_t *map = j->pad->map[j->pad->ndim - 1];

    for (int64_t i = first; i < last; i++)
        y[i] = map[i] < 0 ? *(const T *)(const void *)j->value : x[map[i]];
}

static void FN(pad_row)(const job *j, char *row, const char *from)
{
    const int64_t *map = j->pad->map[j->pad->ndim - 1], n = j->pad->dim[j->pad->ndim - 1];
    const T *x = (const T *)(const void *)from;
    T *y = (T *)(void *)row;

    FN(pad_border)(j, y, x, 0, j->run_from);
    if (j->run_to > j->run_from)
        memcpy(y + j->run_from, x + map[j->run_from],
               (size_t)(j->run_to - j->run_from) * sizeof *y);
    FN(pad_border)(j, y, x, j->run_to, n);
}
