// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/base.h"

static void *standard_reallocate(void *context, void *block, size_t n_bytes)
{
    (void)context;
    return realloc(block, n_bytes);
}

static void standard_release(void *context, void *block)
{
    (void)context;
    free(block);
}

static const ot_allocator standard = {standard_reallocate, standard_release, NULL};
static ot_allocator current = {standard_reallocate, standard_release, NULL};
static _Atomic int64_t n_allocations;
static _Thread_local int64_t n_left = -1; // allocations until they fail; below 0: no limit

void ot_set_allocator(const ot_allocator *allocator)
{
    current = allocator ? *allocator : standard;
}

void ot__alloc_fail_after(int64_t n)
{
    n_left = n;
}

int64_t ot__alloc_count(void)
{
    return atomic_load(&n_allocations);
}

// False when a test wants this allocation to fail, and with it every later one.
static bool is_allowed(void)
{
    if (n_left > 0)
        n_left--;
    else if (n_left == 0)
        return false;
    return true;
}

static void *counted_alloc(void *block, size_t n_bytes)
{
    if (!block)
        ot__error_memory(n_bytes);
    else
        atomic_fetch_add_explicit(&n_allocations, 1, memory_order_relaxed);
    return block;
}

void *ot__realloc(void *block, size_t n_bytes)
{
    void *result = NULL;

    if (is_allowed())
        result = current.reallocate(current.context, block, n_bytes ? n_bytes : 1);
    return counted_alloc(result, n_bytes);
}

void *ot__alloc(size_t n_bytes)
{
    return ot__realloc(NULL, n_bytes);
}

void *ot__alloc_zero(size_t count, size_t size)
{
    size_t n_bytes;
    void *block;

    if (ot__size_mul_overflows(count, size, &n_bytes))
        return ot__no_memory(SIZE_MAX);
    // calloc does not touch fresh pages: what is never used costs nothing.
    if (current.reallocate == standard_reallocate)
        return counted_alloc(is_allowed() ? calloc(1, n_bytes ? n_bytes : 1) : NULL, n_bytes);
    block = ot__alloc(n_bytes);
    if (block)
        memset(block, 0, n_bytes);
    return block;
}

bool ot__grow(void *array_pointer, int *capacity, int count, size_t item_size)
{
    const size_t wanted = *capacity > 0 ? (size_t)*capacity * 2 : 16;
    size_t n_bytes;
    void *old, *grown;

    if (count < *capacity)
        return true;
    if (wanted > INT32_MAX || ot__size_mul_overflows(wanted, item_size, &n_bytes)) {
        ot__error_memory(SIZE_MAX);
        return false;
    }
    memcpy(&old, array_pointer, sizeof(old));
    grown = ot__realloc(old, n_bytes);
    if (!grown)
        return false;
    memcpy(array_pointer, &grown, sizeof(grown));
    *capacity = (int)wanted;
    return true;
}

void ot__free(void *block)
{
    if (block)
        current.release(current.context, block);
}

// Large blocks are used whole and at random: pages of 2 MiB, where they lie inside, take less
// looking up and are not faulted in one by one.
static void use_huge_pages(char *block, size_t n_bytes)
{
#if defined(__linux__)
    const uintptr_t page = (uintptr_t)1 << 21, start = (uintptr_t)block;
    const size_t before = (size_t)((page - start % page) % page);

    if (current.reallocate == standard_reallocate && n_bytes >= before + page)
        (void)madvise(block + before, (n_bytes - before) / page * page, MADV_HUGEPAGE);
#else
    (void)block;
    (void)n_bytes;
#endif
}

// What stands before the aligned address.
typedef struct prefix {
    void *start;
    size_t n_bytes; // that were asked for
} prefix;

size_t ot__aligned_taken(size_t n_bytes)
{
    return n_bytes + OT_ALIGNMENT + sizeof(prefix);
}

void *ot__alloc_aligned(size_t n_bytes)
{
    const size_t total = ot__aligned_taken(n_bytes);
    prefix before = {.n_bytes = n_bytes};
    char *aligned;

    if (total < n_bytes)
        return ot__no_memory(n_bytes);
    if (!ot__memory_take(n_bytes))
        return NULL;
    before.start = ot__alloc_zero(1, total);
    if (!before.start) {
        ot__memory_give_back(n_bytes);
        return NULL;
    }
    aligned = (char *)before.start + sizeof before;
    aligned += (OT_ALIGNMENT - (uintptr_t)aligned % OT_ALIGNMENT) % OT_ALIGNMENT;
    memcpy(aligned - sizeof before, &before, sizeof before);
    use_huge_pages(aligned, n_bytes);
    return aligned;
}

void ot__free_aligned(void *block)
{
    prefix before;

    if (!block)
        return;
    memcpy(&before, (char *)block - sizeof before, sizeof before);
    ot__memory_give_back(before.n_bytes);
    ot__free(before.start);
}

char *ot__strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = ot__alloc(n);

    if (copy)
        memcpy(copy, text, n);
    return copy;
}

void ot__memory_trim(void)
{
    // Sanitizers have an allocator of their own, and glibc's, first called by several threads at
    // once, would take itself to be that of each.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    malloc_trim(0);
#endif
}
