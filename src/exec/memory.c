// SPDX-License-Identifier: Apache-2.0
// Memory planning: usage records in, offsets out. A pure function; it never sees a graph.
//
// Greedy placement as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020): records are taken in a fixed order, and each goes to the smallest gap that
// fits between the records whose lifetimes meet its own. No one order is best for all graphs, so a
// few are tried and the smallest block is kept. That is quadratic, so only so many records are
// placed that way, and the rest by lists of free places above them.
#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"

enum {
    FITTED_MAX = 8192,  // blocks that are placed among all others
    ROUNDS_MAX = 1000,  // of improvement,
    LITTLE = 100,       // a part of the least there can be
    WORK_MAX = 1 << 22, // and the pairs of blocks that are looked at for it
    N_CLASSES = 64,     // of sizes, by powers of two, for the rest
};

// Records that share memory, placed as one.
typedef struct block {
    int first, last;
    int owner; // record whose offset the others take
    int tail;  // the record that has the memory at the end
    size_t n_bytes, offset;
} block;

typedef struct packing {
    ot__arena *arena;
    block *blocks;
    int n_blocks;
    int *placed; // blocks placed so far, by offset
    size_t *best;
    int *group;   // per record: its block, before the blocks are sorted
    int *owner;   // per record: the owner of its block
    size_t *live; // per step: bytes that begin, bytes that end
    int *next;    // per block: the next of its list, -1: none
    int *ending;  // per step: the first of the blocks whose last step that is
    int n_steps;
} packing;

// An alias is granted when the two lifetimes touch in exactly one step and the sizes agree, to one
// record per memory: two values cannot both replace the same one.
static void make_blocks(const ot__usage *usages, int n_usages, packing *p)
{
    for (int i = 0; i < n_usages; i++) {
        const ot__usage *u = &usages[i];
        const int alias = u->alias_of;
        const size_t n_bytes = ot__align_up(u->n_bytes);

        p->group[i] = -1;
        if (alias >= 0 && alias < i && n_bytes > 0) {
            block *b = &p->blocks[p->group[alias]];

            if (b->tail == alias && b->last == u->first && b->n_bytes == n_bytes &&
                usages[alias].first < u->first) {
                b->last = u->last;
                b->tail = i;
                p->group[i] = p->group[alias];
            }
        }
        if (p->group[i] < 0) {
            p->group[i] = p->n_blocks;
            p->blocks[p->n_blocks++] = (block){u->first, u->last, i, i, n_bytes, 0};
        }
        p->owner[i] = p->blocks[p->group[i]].owner;
    }
}

static int by_owner(const block *a, const block *b)
{
    return (a->owner > b->owner) - (a->owner < b->owner);
}

static int by_size(const void *left, const void *right)
{
    const block *a = left, *b = right;

    if (a->n_bytes != b->n_bytes)
        return a->n_bytes < b->n_bytes ? 1 : -1;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first) : by_owner(a, b);
}

static int by_lifetime(const void *left, const void *right)
{
    const block *a = left, *b = right;
    const int a_length = a->last - a->first, b_length = b->last - b->first;

    return a_length != b_length ? (a_length < b_length) - (a_length > b_length) : by_size(a, b);
}

static int by_area(const void *left, const void *right)
{
    const block *a = left, *b = right;
    const double a_area = (double)a->n_bytes * (a->last - a->first + 1.0);
    const double b_area = (double)b->n_bytes * (b->last - b->first + 1.0);

    return a_area != b_area ? (a_area < b_area) - (a_area > b_area) : by_size(a, b);
}

static int by_first(const void *left, const void *right)
{
    const block *a = left, *b = right;

    return a->first != b->first ? (a->first > b->first) - (a->first < b->first) : by_size(a, b);
}

// The offset of the smallest gap that holds blocks[i] among the placed blocks alive with it.
static size_t find_offset(const packing *p, int i, int n_placed)
{
    const block *b = &p->blocks[i];
    size_t end = 0, best_gap = SIZE_MAX, offset = 0;

    for (int k = 0; k < n_placed; k++) {
        const block *q = &p->blocks[p->placed[k]];

        if (q->last < b->first || b->last < q->first)
            continue;
        if (q->offset > end && q->offset - end >= b->n_bytes && q->offset - end < best_gap) {
            best_gap = q->offset - end;
            offset = end;
        }
        end = OT_MAX(end, q->offset + q->n_bytes);
    }
    return best_gap < SIZE_MAX ? offset : end;
}

// Place the first `n` blocks in their present order; the size that takes.
static size_t place_fitted(packing *p, int n)
{
    size_t total = 0;

    for (int i = 0; i < n; i++) {
        block *b = &p->blocks[i];
        int at = i;

        b->offset = find_offset(p, i, i);
        while (at > 0 && p->blocks[p->placed[at - 1]].offset > b->offset) {
            p->placed[at] = p->placed[at - 1];
            at--;
        }
        p->placed[at] = i;
        total = OT_MAX(total, b->offset + b->n_bytes);
    }
    return total;
}

static int class_of(size_t n_bytes)
{
    int class = 0;

    while (class < N_CLASSES - 1 && n_bytes >> class > 1)
        class ++;
    return class;
}

static void push(packing *p, int *list, int i)
{
    p->next[i] = *list;
    *list = i;
}

// Place blocks[from] and those behind it above `total`, as time goes by: each takes a place of its
// class of sizes that is free, or a new one that holds the largest of the class.
static size_t place_rest(packing *p, int from, size_t total)
{
    size_t largest[N_CLASSES] = {0};
    int free_places[N_CLASSES], step = 0;

    qsort(&p->blocks[from], (size_t)(p->n_blocks - from), sizeof *p->blocks, by_first);
    for (int c = 0; c < N_CLASSES; c++)
        free_places[c] = -1;
    for (int s = 0; s < p->n_steps; s++)
        p->ending[s] = -1;
    for (int i = from; i < p->n_blocks; i++) {
        size_t *most = &largest[class_of(p->blocks[i].n_bytes)];

        *most = OT_MAX(*most, p->blocks[i].n_bytes);
    }
    for (int i = from; i < p->n_blocks; i++) {
        block *b = &p->blocks[i];
        const int class = class_of(b->n_bytes);

        for (; step < b->first; step++)
            for (int k = p->ending[step], next; k >= 0; k = next) {
                next = p->next[k];
                push(p, &free_places[class_of(p->blocks[k].n_bytes)], k);
            }
        if (free_places[class] >= 0) {
            b->offset = p->blocks[free_places[class]].offset;
            free_places[class] = p->next[free_places[class]];
        } else {
            b->offset = total;
            total += largest[class];
        }
        push(p, &p->ending[b->last], i);
    }
    return total;
}

static size_t place_all(packing *p)
{
    const int n = OT_MIN(p->n_blocks, FITTED_MAX);
    const size_t total = place_fitted(p, n);

    return n < p->n_blocks ? place_rest(p, n, total) : total;
}

static size_t peak(const packing *p)
{
    size_t most = 0, now = 0;

    for (int i = 0; i < p->n_blocks; i++) {
        p->live[2 * p->blocks[i].first] += p->blocks[i].n_bytes;
        p->live[2 * p->blocks[i].last + 1] += p->blocks[i].n_bytes;
    }
    for (int s = 0; s < p->n_steps; s++) {
        now += p->live[2 * s];
        most = OT_MAX(most, now);
        now -= p->live[2 * s + 1];
    }
    return most;
}

static bool sizes_fit(const ot__usage *usages, int n_usages)
{
    const size_t most = SIZE_MAX / 2;
    size_t sum = 0;

    for (int i = 0; i < n_usages; i++) {
        if (usages[i].n_bytes > most - OT_ALIGNMENT || ot__align_up(usages[i].n_bytes) > most - sum)
            return false;
        sum += ot__align_up(usages[i].n_bytes);
    }
    return true;
}

// False when out of memory; the arena is for the caller to destroy.
static bool packing_init(packing *p, const ot__usage *usages, int n_usages)
{
    const size_t n = (size_t)n_usages + 1;

    *p = (packing){.arena = ot__arena_create(), .n_steps = 1};
    if (p->arena == NULL)
        return false;
    for (int i = 0; i < n_usages; i++)
        p->n_steps = OT_MAX(p->n_steps, usages[i].last + 1);
    p->blocks = ot__arena_alloc(p->arena, n * sizeof *p->blocks);
    p->placed = ot__arena_alloc(p->arena, n * sizeof *p->placed);
    p->best = ot__arena_alloc(p->arena, n * sizeof *p->best);
    p->group = ot__arena_alloc(p->arena, n * sizeof *p->group);
    p->owner = ot__arena_alloc(p->arena, n * sizeof *p->owner);
    p->next = ot__arena_alloc(p->arena, n * sizeof *p->next);
    p->live = ot__arena_alloc(p->arena, (size_t)p->n_steps * 2 * sizeof *p->live);
    p->ending = ot__arena_alloc(p->arena, (size_t)p->n_steps * sizeof *p->ending);
    if (p->blocks == NULL || p->placed == NULL || p->best == NULL || p->group == NULL ||
        p->owner == NULL || p->next == NULL || p->live == NULL || p->ending == NULL)
        return false;
    make_blocks(usages, n_usages, p);
    return true;
}

static void keep_offsets(packing *p)
{
    for (int i = 0; i < p->n_blocks; i++)
        p->best[p->blocks[i].owner] = p->blocks[i].offset;
}

// The first block becomes the one that ends highest, so that it finds its place before the others.
static void promote_highest(packing *p)
{
    int highest = 0;
    block b;

    for (int i = 1; i < p->n_blocks; i++)
        if (p->blocks[i].offset + p->blocks[i].n_bytes >
            p->blocks[highest].offset + p->blocks[highest].n_bytes)
            highest = i;
    b = p->blocks[highest];
    memmove(&p->blocks[1], &p->blocks[0], (size_t)highest * sizeof *p->blocks);
    p->blocks[0] = b;
}

// From the present order on, while there is more than a little to gain and it takes little time.
static size_t improve(packing *p, size_t bound, size_t total)
{
    const int64_t pairs = (int64_t)p->n_blocks * p->n_blocks;

    for (int k = 1; k <= ROUNDS_MAX && total - bound > bound / LITTLE && k * pairs <= WORK_MAX;
         k++) {
        size_t size;

        promote_highest(p);
        size = place_all(p);
        if (size >= total)
            continue;
        total = size;
        keep_offsets(p);
    }
    return total;
}

// Try the orders, and what promoting blocks makes of each; best[record] is the offset of the
// record's block.
static size_t pack_memory(packing *p, size_t bound)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_area, by_lifetime,
                                                                by_first};

    size_t total = SIZE_MAX;

    for (size_t k = 0; k < OT_COUNT(orders) && total > bound; k++) {
        size_t size;

        qsort(p->blocks, (size_t)p->n_blocks, sizeof *p->blocks, orders[k]);
        size = place_all(p);
        if (size < total) {
            total = size;
            keep_offsets(p);
        }
        if (p->n_blocks <= FITTED_MAX)
            total = improve(p, bound, total);
    }
    return total;
}

ot_status ot__memory_plan(ot__usage *usages, int n_usages, size_t *total)
{
    packing p;
    ot_status st;

    *total = 0;
    if (!sizes_fit(usages, n_usages))
        return ot__error(OT_ERR_NO_MEMORY, "the values of a step exceed the address space");
    st = ot__made(packing_init(&p, usages, n_usages));
    if (st == OT_OK)
        *total = pack_memory(&p, peak(&p));
    for (int i = 0; st == OT_OK && i < n_usages; i++)
        usages[i].offset = p.best[p.owner[i]];
    ot__arena_destroy(p.arena);
    return st;
}

size_t ot__memory_lower_bound(const ot__usage *usages, int n_usages)
{
    packing p;
    const size_t bound = packing_init(&p, usages, n_usages) ? peak(&p) : 0;

    ot__arena_destroy(p.arena);
    return bound;
}
