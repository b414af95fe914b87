// SPDX-License-Identifier: Apache-2.0
// One element type of ref_top_k.c.

// Elements of one line of x, and a heap of indices into it; both `step` apart.
typedef struct FN(top_k_line) {
    const T *x;
    int64_t *heap;
    int64_t step;
    bool is_largest;
} FN(top_k_line);

// Whether element a comes before element b; of equal ones the first does, and NaN is greater than
// all.
static bool FN(comes_before)(const FN(top_k_line) * l, int64_t a, int64_t b)
{
    const T va = l->x[a * l->step], vb = l->x[b * l->step];
    const bool a_greater = va > vb || (IS_NAN(va) && !IS_NAN(vb));
    const bool b_greater = vb > va || (IS_NAN(vb) && !IS_NAN(va));

    if (a_greater || b_greater)
        return l->is_largest ? a_greater : b_greater;
    return a < b;
}

// Puts `index` where the root is, of a heap of n.
static void FN(sink)(const FN(top_k_line) * l, int64_t root, int64_t n, int64_t index)
{
    int64_t child;

    while ((child = 2 * root + 1) < n) {
        if (child + 1 < n &&
            FN(comes_before)(l, l->heap[child * l->step], l->heap[(child + 1) * l->step]))
            child++;
        if (!FN(comes_before)(l, index, l->heap[child * l->step]))
            break;
        l->heap[root * l->step] = l->heap[child * l->step];
        root = child;
    }
    l->heap[root * l->step] = index;
}

static void FN(choose_top)(const FN(top_k_line) * l, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        l->heap[i * l->step] = i;
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        FN(sink)(l, i, k, l->heap[i * l->step]);
    for (int64_t i = k; i < n; i++)
        if (FN(comes_before)(l, i, l->heap[0]))
            FN(sink)(l, 0, k, i);
    for (int64_t i = k - 1; i > 0; i--) { // the worst one left goes to the end
        const int64_t last = l->heap[i * l->step];

        l->heap[i * l->step] = l->heap[0];
        FN(sink)(l, 0, i, last);
    }
}

static void FN(top_k_lines)(void *context, int64_t first, int64_t last)
{
    const top_k_job *j = context;

    for (int64_t line = first; line < last; line++) {
        const int64_t outer = line / j->inner, inner = line % j->inner;
        const int64_t to = outer * j->k * j->inner + inner;
        const FN(top_k_line) l = {(const T *)j->x + outer * j->n * j->inner + inner,
                                  j->indices + to, j->inner, j->is_largest};

        FN(choose_top)(&l, j->n, j->k);
        for (int64_t i = 0; i < j->k && j->values != NULL; i++)
            ((T *)j->values)[to + i * j->inner] = l.x[l.heap[i * j->inner] * j->inner];
    }
}

void FN(ot__ref_top_k)(void *values, int64_t *indices, const void *x, int64_t outer, int64_t n,
                       int64_t inner, int64_t k, bool is_largest)
{
    top_k_job j = {values, indices, x, n, inner, k, is_largest};

    if (k > 0)
        ot__parallel_for(outer * inner, OT_PAR_MIN / n + 1, FN(top_k_lines), &j);
}
