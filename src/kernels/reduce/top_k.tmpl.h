// SPDX-License-Identifier: Apache-2.0
// One element type of top_k.c: elements are compared by keys, of type KEY; ORDER(v) is an
// element's.

enum { FN(N_DIGITS) = sizeof(KEY) }; // of a key

// An element of a line: those with the lower keys come first, of equal ones the first does.
typedef struct FN(ranked) {
    KEY key;
    uint32_t index;
} FN(ranked);

// What one line is worked on in: keys (n), and two arrays of ranked elements (n).
typedef struct FN(top_k_scratch) {
    FN(ranked) * best, *spare;
    KEY *keys;
} FN(top_k_scratch);

size_t FN(ot__top_k_bytes)(int64_t n)
{
    const size_t bytes = (size_t)n * (2 * sizeof(FN(ranked)) + sizeof(KEY));

    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static void FN(make_keys)(KEY *keys, const T *x, int64_t n, int64_t step, bool is_largest)
{
    const KEY flip = is_largest ? (KEY)-1 : 0;

    if (step == 1) {
        for (int64_t i = 0; i < n; i++)
            keys[i] = ORDER(x[i]) ^ flip;
    } else {
        for (int64_t i = 0; i < n; i++)
            keys[i] = ORDER(x[i * step]) ^ flip;
    }
}

// ---- few of many: a heap whose root is the worst of the best ----

static bool FN(ranks_before)(FN(ranked) a, FN(ranked) b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

// Puts `element` where the root is, of a heap of n.
static void FN(sink_ranked)(FN(ranked) * heap, int64_t root, int64_t n, FN(ranked) element)
{
    int64_t child;

    while ((child = 2 * root + 1) < n) {
        if (child + 1 < n && FN(ranks_before)(heap[child], heap[child + 1]))
            child++;
        if (!FN(ranks_before)(element, heap[child]))
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = element;
}

static void FN(offer_block)(FN(ranked) * heap, int64_t k, const KEY *keys, int64_t first,
                            int64_t last)
{
    KEY worst = heap[0].key;
    int has_better = 0;

    for (int64_t i = first; i < last; i++)
        has_better |= keys[i] < worst; // an equal one comes later
    if (!has_better)
        return;
    for (int64_t i = first; i < last; i++) {
        if (keys[i] < worst) {
            FN(sink_ranked)(heap, 0, k, (FN(ranked)){keys[i], (uint32_t)i});
            worst = heap[0].key;
        }
    }
}

static void FN(choose_by_heap)(FN(ranked) * best, const KEY *keys, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        best[i] = (FN(ranked)){keys[i], (uint32_t)i};
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        FN(sink_ranked)(best, i, k, best[i]);
    for (int64_t i = k; i < n; i += BLOCK)
        FN(offer_block)(best, k, keys, i, OT_MIN(i + BLOCK, n));
    for (int64_t i = k - 1; i > 0; i--) { // the worst one left goes to the end
        const FN(ranked) last = best[i];

        best[i] = best[0];
        FN(sink_ranked)(best, 0, i, last);
    }
}

// ---- many: those whose first digit may be among the best, sorted digit by digit ----

static uint32_t FN(digit)(KEY key, int place)
{
    return (uint32_t)(key >> (8 * place)) & (RADIX - 1);
}

// At least k elements, in their order; gives how many.
static int64_t FN(choose_by_digit)(FN(ranked) * chosen, const KEY *keys, int64_t n, int64_t k)
{
    uint32_t count[RADIX] = {0}, most = 0;
    int64_t n_chosen = 0, room = k;

    for (int64_t i = 0; i < n; i++)
        count[FN(digit)(keys[i], FN(N_DIGITS) - 1)]++;
    while (room > count[most])
        room -= count[most++];
    for (int64_t i = 0; i < n; i++) {
        chosen[n_chosen] = (FN(ranked)){keys[i], (uint32_t)i}; // n_chosen <= i
        n_chosen += FN(digit)(keys[i], FN(N_DIGITS) - 1) <= most;
    }
    return n_chosen;
}

// Whether it moved anything: elements with the same digit are in order as they are.
static bool FN(sort_by_digit)(FN(ranked) * sorted, const FN(ranked) * x, int64_t n, int place)
{
    uint32_t place_of[RADIX] = {0}, sum = 0;

    for (int64_t i = 0; i < n; i++)
        place_of[FN(digit)(x[i].key, place)]++;
    if (place_of[FN(digit)(x[0].key, place)] == n)
        return false;
    for (int d = 0; d < RADIX; d++) {
        const uint32_t count = place_of[d];

        place_of[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        sorted[place_of[FN(digit)(x[i].key, place)]++] = x[i];
    return true;
}

static void FN(choose_by_sorting)(FN(top_k_scratch) * s, int64_t n, int64_t k)
{
    const int64_t n_chosen = FN(choose_by_digit)(s->best, s->keys, n, k);

    for (int place = 0; place < FN(N_DIGITS); place++) {
        if (FN(sort_by_digit)(s->spare, s->best, n_chosen, place)) {
            FN(ranked) *sorted = s->spare;

            s->spare = s->best;
            s->best = sorted;
        }
    }
}

// ---- all lines ----

static void FN(top_k_line)(const ot__top_k *p, FN(top_k_scratch) s, int64_t line)
{
    const int64_t outer = line / p->inner, inner = line % p->inner;
    const T *x = (const T *)p->x + outer * p->n * p->inner + inner;
    T *values = (T *)p->values + outer * p->k * p->inner + inner;
    int64_t *indices = p->indices + outer * p->k * p->inner + inner;

    FN(make_keys)(s.keys, x, p->n, p->inner, p->is_largest);
    if (p->k < SORTED_MIN || p->k < p->n / SORTED_SHARE)
        FN(choose_by_heap)(s.best, s.keys, p->n, p->k);
    else
        FN(choose_by_sorting)(&s, p->n, p->k);
    for (int64_t i = 0; i < p->k; i++) {
        indices[i * p->inner] = s.best[i].index;
        values[i * p->inner] = x[s.best[i].index * p->inner];
    }
}

static void FN(top_k_parts)(void *context, int64_t first, int64_t last)
{
    const parts_job *j = context;
    const int64_t n = j->p->n, n_lines = j->p->outer * j->p->inner;

    for (int64_t part = first; part < last; part++) {
        char *scratch = (char *)j->scratch + (size_t)part * FN(ot__top_k_bytes)(n);
        FN(ranked) *ranked = (FN(ranked) *)scratch;
        const FN(top_k_scratch) s = {ranked, ranked + n, (KEY *)(ranked + 2 * n)};

        for (int64_t i = n_lines * part / j->n_parts; i < n_lines * (part + 1) / j->n_parts; i++)
            FN(top_k_line)(j->p, s, i);
    }
}

void FN(ot__top_k)(const ot__top_k *p, void *scratch, int n_parts)
{
    const int64_t n_lines = p->outer * p->inner, grain = OT_PAR_MIN / (p->n + 1) + 1;
    parts_job j = {p, scratch, OT_MAX(1, OT_MIN(n_parts, n_lines / grain))};

    if (p->k > 0 && n_lines > 0)
        ot__parallel_for(j.n_parts, 1, FN(top_k_parts), &j);
}
