// SPDX-License-Identifier: Apache-2.0
// The comparisons of one element type T of ref_compare.c; LOAD brings an element to a type C can
// compare.

static void FN(equal)(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = LOAD(a[k]) == LOAD(b[k]);
}

static void FN(less)(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = LOAD(a[k]) < LOAD(b[k]);
}

static void FN(less_or_equal)(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = LOAD(a[k]) <= LOAD(b[k]);
}

static void FN(greater)(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = LOAD(a[k]) > LOAD(b[k]);
}

static void FN(greater_or_equal)(uint8_t *y, const void *x0, const void *x1, int64_t n)
{
    const T *a = x0, *b = x1;

    for (int64_t k = 0; k < n; k++)
        y[k] = LOAD(a[k]) >= LOAD(b[k]);
}

static const ot__compare_function FN(functions)[OT__N_COMPARISONS] = {
    [OT__EQUAL] = FN(equal),
    [OT__LESS] = FN(less),
    [OT__LESS_OR_EQUAL] = FN(less_or_equal),
    [OT__GREATER] = FN(greater),
    [OT__GREATER_OR_EQUAL] = FN(greater_or_equal),
};
