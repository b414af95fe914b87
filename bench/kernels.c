// SPDX-License-Identifier: Apache-2.0
// Times matrix products by every kernel entry: the library's side of bench/kernels.py.
//
//   bench_kernels THREADS
//
// reads products, a line each: BATCHES M N K TRANSPOSED_A TRANSPOSED_B SAMPLES. Answers each with
// one JSON object: for every entry, the seconds of a product in each sample. The entries take
// turns, so that what disturbs the machine meets all of them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/kernels.h"

enum { MAX_ENTRIES = 8, ALIGNMENT = 4096 };
static const double SAMPLE_SECONDS = 1e-3; // that a sample takes at least

typedef struct problem {
    ot__gemm g;
    int64_t n_batches;
    float *a, *b, *y;
    int n_threads;
} problem;

typedef struct entry {
    const char *name;
    const ot__gemm_kernel *kernel; // NULL: oneDNN's
    ot__gemm_plan plan;
    ot__dnnl_primitives *program;
    void *scratch;
} entry;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(size_t n_bytes)
{
    void *p = aligned_alloc(ALIGNMENT, (n_bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);

    if (p == NULL) {
        fprintf(stderr, "bench_kernels: no memory for %zu bytes\n", n_bytes);
        exit(1);
    }
    return p;
}

static float *numbers(int64_t count)
{
    float *x = memory((size_t)count * sizeof(*x));

    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i % 7) - 3.0F;
    return x;
}

// ---- entries ----

static void batch_data(const void *context, int64_t batch, ot__gemm_data *data)
{
    const problem *p = context;

    *data = (ot__gemm_data){.y = p->y + batch * p->g.m * p->g.n,
                            .a = p->a + batch * p->g.m * p->g.k,
                            .b = p->b + batch * p->g.k * p->g.n};
}

static void run(const problem *p, const entry *e)
{
    void *const slots[OT__DNNL_GEMM_SLOTS] = {
        [OT__DNNL_GEMM_A] = p->a, [OT__DNNL_GEMM_B] = p->b, [OT__DNNL_GEMM_Y] = p->y};
    const ot__gemm_batches batches = {.n_batches = p->n_batches, .at = batch_data, .context = p};

    if (e->kernel != NULL)
        ot__gemm_run(e->kernel, &e->plan, &batches, e->scratch, p->n_threads);
    else if (ot__dnnl_run(e->program, slots, e->scratch) != OT_OK)
        exit(1);
}

static int own_entries(const problem *p, entry *entries)
{
    static const char *const names[] = {"own base", "own avx2", "own avx512"};
    int n = 0;

    for (const ot__gemm_kernel *k = ot__gemm_kernel_at(0); k != NULL; k = ot__gemm_kernel_at(n)) {
        entries[n] = (entry){.name = names[n], .kernel = k};
        ot__gemm_plan_make(&entries[n].plan, k, &p->g,
                           p->n_batches >= p->n_threads ? 1 : p->n_threads);
        entries[n].scratch = memory(entries[n].plan.scratch_bytes * (size_t)p->n_threads);
        if (++n == (int)OT_COUNT(names))
            break;
    }
    return n;
}

static int library_entries(const problem *p, entry *entries)
{
    int n = 0;

    for (int packs = 0; packs < 2; packs++) {
        const ot__dnnl_gemm product = {.g = &p->g,
                                       .n_batches = p->n_batches,
                                       .a_stride = p->g.m * p->g.k,
                                       .b_stride = p->g.k * p->g.n,
                                       .packs = packs != 0};

        entries[n] = (entry){.name = packs ? "oneDNN packing" : "oneDNN"};
        if (!ot__dnnl_can_gemm(&product) ||
            ot__dnnl_gemm_create(&product, &entries[n].program) != OT_OK)
            continue;
        entries[n].scratch = memory(ot__dnnl_scratch_bytes(entries[n].program));
        n++;
    }
    return n;
}

// ---- measuring ----

static double seconds(const problem *p, const entry *e, int repeats)
{
    const double before = now();

    for (int i = 0; i < repeats; i++)
        run(p, e);
    return (now() - before) / repeats;
}

static void measure(const problem *p, const entry *entries, int n_entries, int n_samples)
{
    double *all = memory((size_t)(n_samples * n_entries) * sizeof(*all));
    int repeats[MAX_ENTRIES];

    for (int i = 0; i < n_entries; i++) {
        run(p, &entries[i]);
        repeats[i] = 1 + (int)(SAMPLE_SECONDS / seconds(p, &entries[i], 1));
    }
    for (int s = 0; s < n_samples; s++)
        for (int i = 0; i < n_entries; i++)
            all[s * n_entries + i] = seconds(p, &entries[i], repeats[i]);
    printf("{");
    for (int i = 0; i < n_entries; i++) {
        printf("%s\"%s\": [", i > 0 ? ", " : "", entries[i].name);
        for (int s = 0; s < n_samples; s++)
            printf("%s%.9f", s > 0 ? ", " : "", all[s * n_entries + i]);
        printf("]");
    }
    printf("}\n");
    fflush(stdout);
    free(all);
}

static void answer(problem *p, int n_samples)
{
    entry entries[MAX_ENTRIES];
    int n;

    p->a = numbers(p->n_batches * p->g.m * p->g.k);
    p->b = numbers(p->n_batches * p->g.k * p->g.n);
    p->y = numbers(p->n_batches * p->g.m * p->g.n);
    n = own_entries(p, entries);
    n += library_entries(p, entries + n);
    measure(p, entries, n, n_samples);
    for (int i = 0; i < n; i++) {
        ot__dnnl_destroy(entries[i].program);
        free(entries[i].scratch);
    }
    free(p->a);
    free(p->b);
    free(p->y);
}

int main(int argc, char **argv)
{
    int64_t batches, m, n, k;
    int a_transposed, b_transposed, n_samples;

    if (argc != 2 || atoi(argv[1]) < 1)
        return 2;
    ot__parallel_set(atoi(argv[1]));
    while (scanf("%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%d%d%d", &batches, &m, &n, &k,
                 &a_transposed, &b_transposed, &n_samples) == 7) {
        problem p = {.g = {.m = m,
                           .n = n,
                           .k = k,
                           .alpha = 1,
                           .a_row = a_transposed ? 1 : k,
                           .a_column = a_transposed ? m : 1,
                           .b_row = b_transposed ? 1 : n,
                           .b_column = b_transposed ? k : 1,
                           .y_row = n},
                     .n_batches = batches,
                     .n_threads = atoi(argv[1])};

        answer(&p, n_samples);
    }
    return 0;
}
