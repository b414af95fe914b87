// SPDX-License-Identifier: Apache-2.0
// Times matrix products by every kernel entry, and attention: the library's side of
// bench/kernels.py.
//
//   bench_kernels THREADS
//
// reads problems, a line each:
//
//   product BATCHES M N K TRANSPOSED_A TRANSPOSED_B SAMPLES
//   attention BATCH HEADS TOKENS SIZE CAUSAL SAMPLES
//
// Answers each with one JSON object: for every entry the seconds of a run in each sample. Of a
// product it names the entry that the library takes; the entries of attention are forward,
// gradients and a product of 1024^3, and its scratch is in bytes per thread. The entries take
// turns, so that what disturbs the machine meets all of them. With one thread they are seconds of
// the processor, which other processes do not add to.
#ifdef _OPENMP
#include <omp.h>
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"
#if OT_WITH_ONEDNN
#include "kernels/dnnl_primitives.h"
#endif

enum { MAX_ENTRIES = 12, MAX_LINE = 256 };
static const double SAMPLE_SECONDS = 1e-3; // that a sample takes at least
static const double ENTRY_SECONDS = 0.5;   // that the samples of an entry take at most

typedef struct problem {
    ot__gemm g;
    int64_t n_batches;
    float *a, *b, *y;
    int n_threads;
    ot__attention attention;
    ot__attention_data data;
} problem;

// cblas_sgemm() of OpenBLAS and BLIS.
typedef void (*blas_product)(int order, int a_transposed, int b_transposed, int m, int n, int k,
                             float alpha, const float *a, int a_row, const float *b, int b_row,
                             float beta, float *y, int y_row);

typedef struct entry {
    const char *name;
    void (*run)(const problem *p, const struct entry *e);
    const ot__gemm_kernel *kernel; // our own
    ot__gemm_plan plan;
    ot__dnnl_primitives *program; // oneDNN's
    int first_step;               // of the program that is run
    void *scratch;
    blas_product blas;
    ot__attention_plan attention;
} entry;

static double now(int n_threads)
{
    struct timespec t;

    clock_gettime(n_threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// As values lie in a session: in one block, which has pages of 2 MiB. Those of a problem are taken
// from its start.
static struct {
    char *block;
    size_t used;
} arena;

static const size_t ARENA_BYTES = (size_t)1 << 30;

static void *memory(size_t n_bytes)
{
    const size_t whole = ot__align_up(n_bytes);
    void *p;

    if (arena.block == NULL)
        arena.block = ot__alloc_aligned(ARENA_BYTES);
    if (arena.block == NULL || whole > ARENA_BYTES - arena.used) {
        fprintf(stderr, "bench_kernels: no memory for %zu bytes\n", n_bytes);
        exit(1);
    }
    p = arena.block + arena.used;
    arena.used += whole;
    return p;
}

static float *numbers(int64_t count)
{
    float *x = memory((size_t)count * sizeof(*x));

    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(i % 7) - 3.0F;
    return x;
}

// ---- limits ----

enum { MULTIPLY_ADDS = 12 }; // that do not wait for each other, more than a processor has under way

#define TARGET
#define LANES 4
#define FN(name) name##_base
#include "fma.tmpl.h"
#if defined(__x86_64__)
#define TARGET __attribute__((target("avx2,fma")))
#define LANES 8
#define FN(name) name##_avx2
#include "fma.tmpl.h"
#define TARGET __attribute__((target("avx512f")))
#define LANES 16
#define FN(name) name##_avx512
#include "fma.tmpl.h"
#endif

typedef struct limit {
    float (*multiply_adds)(int64_t n);
    float (*touch)(float *y, int64_t n_y, const float *x, int64_t n);
    int64_t lanes;
} limit;

static const limit *limits(void)
{
    static const limit all[] = {
        {multiply_adds_base, touch_base, 4},
#if defined(__x86_64__)
        {multiply_adds_avx2, touch_avx2, 8},
        {multiply_adds_avx512, touch_avx512, 16},
#endif
    };

    return &all[OT_MIN((size_t)ot__isa_best(), OT_COUNT(all) - 1)];
}

static volatile float unused; // what the loops below make

// As many multiply-adds as the product has, in registers.
static void run_multiply_adds(const problem *p, const entry *e)
{
    const limit *l = limits();
    const int64_t count = p->n_batches * p->g.m * p->g.n * p->g.k;
    const int64_t n = count / (l->lanes * MULTIPLY_ADDS * p->n_threads);

    (void)e;
#ifdef _OPENMP
#pragma omp parallel num_threads(p->n_threads)
#endif
    unused = l->multiply_adds(n);
}

static void touch_part(const limit *l, float *y, int64_t n_y, const float *x, int64_t n, int part,
                       int n_parts)
{
    const int64_t at = n * part / n_parts, at_y = n_y * part / n_parts;

    unused = l->touch(n_y > 0 ? y + at_y : NULL, n_y * (part + 1) / n_parts - at_y, x + at,
                      n * (part + 1) / n_parts - at);
}

// Each element of a and b read, and of y written, once.
static void run_touch(const problem *p, const entry *e)
{
    const limit *l = limits();
    const ot__gemm *g = &p->g;

    (void)e;
#ifdef _OPENMP
#pragma omp parallel for num_threads(p->n_threads)
#endif
    for (int t = 0; t < p->n_threads; t++) {
        touch_part(l, p->y, p->n_batches * g->m * g->n, p->a, p->n_batches * g->m * g->k, t,
                   p->n_threads);
        touch_part(l, NULL, 0, p->b, p->n_batches * g->k * g->n, t, p->n_threads);
    }
}

static int limit_entries(entry *entries)
{
    entries[0] = (entry){.name = "FMA peak", .run = run_multiply_adds};
    entries[1] = (entry){.name = "bytes", .run = run_touch};
    return 2;
}

// ---- our own kernels ----

static void batch_data(const void *context, int64_t batch, ot__gemm_data *data)
{
    const problem *p = context;

    *data = (ot__gemm_data){.y = p->y + batch * p->g.m * p->g.n,
                            .a = p->a + batch * p->g.m * p->g.k,
                            .b = p->b + batch * p->g.k * p->g.n};
}

static void run_own(const problem *p, const entry *e)
{
    const ot__gemm_batches batches = {.n_batches = p->n_batches, .at = batch_data, .context = p};

    ot__gemm_run(e->kernel, &e->plan, &batches, e->scratch, p->n_threads);
}

static int own_entries(const problem *p, entry *entries)
{
    static const char *const names[] = {"own base", "own avx2", "own avx512"};
    int n = 0;

    for (const ot__gemm_kernel *k = ot__gemm_kernel_at(0); k != NULL; k = ot__gemm_kernel_at(n)) {
        entries[n] = (entry){.name = names[n], .run = run_own, .kernel = k};
        ot__gemm_plan_make(&entries[n].plan, k, &p->g, p->n_batches, p->n_threads);
        entries[n].scratch = memory(entries[n].plan.scratch_bytes * (size_t)p->n_threads);
        if (++n == (int)OT_COUNT(names))
            break;
    }
    return n;
}

// ---- oneDNN ----

static ot__dnnl_gemm library_product(const problem *p)
{
    return (ot__dnnl_gemm){.g = &p->g,
                           .n_batches = p->n_batches,
                           .a_stride = p->g.m * p->g.k,
                           .b_stride = p->g.k * p->g.n};
}

#if OT_WITH_ONEDNN
static void run_steps(const problem *p, const entry *e)
{
    void *const slots[OT__DNNL_GEMM_SLOTS] = {
        [OT__DNNL_GEMM_A] = p->a, [OT__DNNL_GEMM_B] = p->b, [OT__DNNL_GEMM_Y] = p->y};
    ot__dnnl_primitives rest = *e->program;

    rest.n_steps -= e->first_step;
    for (int s = 0; s < rest.n_steps; s++)
        rest.step[s] = e->program->step[s + e->first_step];
    if (ot__dnnl_run(&rest, slots, e->scratch) != OT_OK)
        exit(1);
}

// Row-major; b brought into the layout that oneDNN chooses, each time; there from an earlier run.
static int library_entries(const problem *p, entry *entries)
{
    static const char *const names[] = {"oneDNN", "oneDNN packing", "oneDNN packed"};
    int n = 0;

    for (int way = 0; way < (int)OT_COUNT(names); way++) {
        ot__dnnl_gemm product = library_product(p);
        entry *e = &entries[n];

        product.packs = way > 0;
        *e = (entry){.name = names[way], .run = run_steps};
        if (!ot__dnnl_can_gemm(&product) || ot__dnnl_gemm_create(&product, &e->program) != OT_OK)
            continue;
        if (way > 0 && e->program->n_steps == 1) { // it chooses the layout that b has
            ot__dnnl_destroy(e->program);
            continue;
        }
        e->scratch = memory(ot__dnnl_scratch_bytes(e->program));
        run_steps(p, e);
        e->first_step = way == 2;
        n++;
    }
    return n;
}
#else
static int library_entries(const problem *p, entry *entries)
{
    (void)p, (void)entries;
    return 0;
}
#endif

// ---- OpenBLAS and BLIS, where the loader finds them ----

static void run_blas(const problem *p, const entry *e)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
    const ot__gemm *g = &p->g;
    const bool a_transposed = g->a_column != 1, b_transposed = g->b_column != 1;

    for (int64_t i = 0; i < p->n_batches; i++)
        e->blas(ROW_MAJOR, a_transposed ? TRANSPOSED : AS_IT_IS,
                b_transposed ? TRANSPOSED : AS_IT_IS, (int)g->m, (int)g->n, (int)g->k, 1.0F,
                p->a + i * g->m * g->k, (int)(a_transposed ? g->a_column : g->a_row),
                p->b + i * g->k * g->n, (int)(b_transposed ? g->b_column : g->b_row), 0.0F,
                p->y + i * g->m * g->n, (int)g->y_row);
}

static int blas_entries(entry *entries)
{
    static const struct {
        const char *name, *file;
    } libraries[] = {{"OpenBLAS", "libopenblas.so.0"}, {"BLIS", "libblis.so.4"}};
    int n = 0;

    for (int i = 0; i < (int)OT_COUNT(libraries); i++) {
        void *library = dlopen(libraries[i].file, RTLD_NOW | RTLD_LOCAL);
        void *found = library == NULL ? NULL : dlsym(library, "cblas_sgemm");

        if (found == NULL)
            continue;
        entries[n] = (entry){.name = libraries[i].name, .run = run_blas};
        memcpy(&entries[n].blas, &found, sizeof(found)); // C has no cast from data to functions
        n++;
    }
    return n;
}

// ---- measuring ----

static double seconds(const problem *p, const entry *e, int repeats)
{
    const double before = now(p->n_threads);

    for (int i = 0; i < repeats; i++)
        e->run(p, e);
    return (now(p->n_threads) - before) / repeats;
}

static void print_samples(const char *name, const double *samples, int n)
{
    printf(", \"%s\": [", name);
    for (int s = 0; s < n; s++)
        printf("%s%.9f", s > 0 ? ", " : "", samples[s]);
    printf("]");
}

static void measure(const problem *p, const entry *entries, int n_entries, int n_samples)
{
    double *all = memory((size_t)(n_samples * n_entries) * sizeof(*all));
    int repeats[MAX_ENTRIES], wanted[MAX_ENTRIES];

    for (int i = 0; i < n_entries; i++) {
        double first;

        entries[i].run(p, &entries[i]);
        first = seconds(p, &entries[i], 1);
        repeats[i] = 1 + (int)(SAMPLE_SECONDS / first);
        wanted[i] = (int)OT_MIN((double)n_samples, 1 + ENTRY_SECONDS / (first * repeats[i]));
    }
    for (int s = 0; s < n_samples; s++)
        for (int i = 0; i < n_entries; i++)
            if (s < wanted[i])
                all[i * n_samples + s] = seconds(p, &entries[i], repeats[i]);
    for (int i = 0; i < n_entries; i++)
        print_samples(entries[i].name, &all[i * n_samples], wanted[i]);
}

// The name of the entry that products of this size run by.
static const char *chosen(const problem *p, const entry *own, int n_own)
{
    ot__dnnl_gemm product = library_product(p);

    if (!ot__dnnl_gemm_is_ahead(&product))
        return own[n_own - 1].name;
    return product.packs ? "oneDNN packing" : "oneDNN";
}

static void answer(problem *p, int n_samples)
{
    entry entries[MAX_ENTRIES], *own;
    int n, n_own;

    p->a = numbers(p->n_batches * p->g.m * p->g.k);
    p->b = numbers(p->n_batches * p->g.k * p->g.n);
    p->y = numbers(p->n_batches * p->g.m * p->g.n);
    n = limit_entries(entries);
    own = &entries[n];
    n += n_own = own_entries(p, own);
    n += library_entries(p, entries + n);
    n += blas_entries(entries + n);
    printf("{\"chosen\": \"%s\"", chosen(p, own, n_own));
    measure(p, entries, n, n_samples);
    printf("}\n");
    fflush(stdout);
    for (int i = 0; i < n; i++)
        ot__dnnl_destroy(entries[i].program);
}

// ---- attention ----

static void run_attention(const problem *p, const entry *e)
{
    ot__attention_run(&e->attention, ot__attentions_best(), &p->data, e->scratch, p->n_threads);
}

static void run_attention_grad(const problem *p, const entry *e)
{
    ot__attention_grad_run(&e->attention, ot__attentions_best(), &p->data, e->scratch,
                           p->n_threads);
}

// Heads lie side by side in each row.
static ot__attention attention_of(int64_t batch, int64_t heads, int64_t tokens, int64_t size,
                                  int causal)
{
    const ot__heads lies = {0, tokens * heads * size, size, heads * size, 1};

    return (ot__attention){.batch = batch,
                           .heads = heads,
                           .queries = tokens,
                           .keys = tokens,
                           .head_size = size,
                           .value_size = size,
                           .q = lies,
                           .k = lies,
                           .v = lies,
                           .y = lies,
                           .scale = 1.0F / 8,
                           .is_causal = causal != 0};
}

static void attention_entries(const problem *p, entry *entries)
{
    entries[0] = (entry){.name = "forward", .run = run_attention};
    entries[1] = (entry){.name = "gradients", .run = run_attention_grad};
    for (int i = 0; i < 2; i++) {
        ot__attention_plan_make(&entries[i].attention, ot__attentions_best(), &p->attention,
                                p->n_threads, i == 1);
        entries[i].scratch = memory(entries[i].attention.scratch_bytes * (size_t)p->n_threads);
    }
}

static void answer_attention(const ot__attention *a, int n_threads, int n_samples)
{
    enum { PRODUCT = 1024, N_TENSORS = 8 };
    const int64_t count = a->batch * a->heads * a->queries * a->head_size;
    const int64_t elements = OT_MAX(count, (int64_t)PRODUCT * PRODUCT);
    const int64_t n_lse = a->batch * a->heads * a->queries;
    float *x[N_TENSORS], *lse = numbers(n_lse);
    entry entries[MAX_ENTRIES];
    problem p = {.g = {.m = PRODUCT,
                       .n = PRODUCT,
                       .k = PRODUCT,
                       .alpha = 1,
                       .a_row = PRODUCT,
                       .a_column = 1,
                       .b_row = PRODUCT,
                       .b_column = 1,
                       .y_row = PRODUCT},
                 .n_batches = 1,
                 .n_threads = n_threads,
                 .attention = *a};
    int n;

    for (int i = 0; i < N_TENSORS; i++)
        x[i] = numbers(elements);
    p.data = (ot__attention_data){.q = x[0],
                                  .k = x[1],
                                  .v = x[2],
                                  .y = x[3],
                                  .lse = lse,
                                  .dy = x[4],
                                  .dq = x[5],
                                  .dk = x[6],
                                  .dv = x[7]};
    p.a = x[5];
    p.b = x[6];
    p.y = x[7];
    attention_entries(&p, entries);
    n = 3 + own_entries(&p, entries + 3);
    entries[2] = entries[n - 1];
    entries[2].name = "product";
    printf("{\"scratch\": [%zu, %zu]", entries[0].attention.scratch_bytes,
           entries[1].attention.scratch_bytes);
    measure(&p, entries, 3, n_samples);
    printf("}\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char line[MAX_LINE];
    int64_t batches, m, n, k, size;
    int a_transposed, b_transposed, causal, n_samples, n_threads;

    if (argc != 2 || atoi(argv[1]) < 1)
        return 2;
    n_threads = atoi(argv[1]);
    ot__parallel_set(n_threads);
    while (fgets(line, sizeof line, stdin) != NULL) {
        arena.used = 0;
        if (sscanf(line, "product %" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%d%d%d", &batches, &m,
                   &n, &k, &a_transposed, &b_transposed, &n_samples) == 7) {
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
                         .n_threads = n_threads};

            answer(&p, n_samples);
        } else if (sscanf(line, "attention %" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%d%d",
                          &batches, &m, &n, &size, &causal, &n_samples) == 6) {
            const ot__attention a = attention_of(batches, m, n, size, causal);

            answer_attention(&a, n_threads, n_samples);
        } else {
            return 2;
        }
    }
    return 0;
}
