// SPDX-License-Identifier: Apache-2.0
// The order in which slices are summed: a binary tree over their numbers, which depends on how many
// there are and on nothing else. A node of n slices splits at the largest power of two below n.
#include <assert.h>
#include <string.h>

#include "dist/dist.h"

static int middle_of(int first, int last)
{
    int half = 1;

    while (half < (last - first + 1) / 2)
        half *= 2;
    return first + half;
}

// Nodes of [first, last) that lie within [from, to), and are in no other that does.
static void cover_node(int first, int last, int from, int to, ot__tree_node *nodes, int *count)
{
    if (from >= last || to <= first)
        return;
    if (from <= first && last <= to) {
        nodes[(*count)++] = (ot__tree_node){first, last};
        return;
    }
    cover_node(first, middle_of(first, last), from, to, nodes, count);
    cover_node(middle_of(first, last), last, from, to, nodes, count);
}

int ot__tree_cover(int n_slices, int from, int to, ot__tree_node nodes[OT_TREE_COVER_MAX])
{
    int count = 0;

    if (from < to)
        cover_node(0, n_slices, from, to, nodes, &count);
    assert(count <= OT_TREE_COVER_MAX);
    return count;
}

// Sums the nodes that [first, last) is made of, from *at on, into the first of them.
static int plan_node(int first, int last, const ot__tree_node *nodes, int *at, ot__tree_add *adds,
                     int *n_adds)
{
    int left, right;

    if (nodes[*at].first == first && nodes[*at].last == last)
        return (*at)++;
    left = plan_node(first, middle_of(first, last), nodes, at, adds, n_adds);
    right = plan_node(middle_of(first, last), last, nodes, at, adds, n_adds);
    adds[(*n_adds)++] = (ot__tree_add){left, right};
    return left;
}

int ot__tree_plan(int n_slices, const ot__tree_node *nodes, ot__tree_add *adds)
{
    int at = 0, n_adds = 0;

    (void)plan_node(0, n_slices, nodes, &at, adds, &n_adds);
    return n_adds;
}

// ---- sums ----

static void add_f32(float *out, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

static void add_f64(double *out, const double *a, const double *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

enum { BLOCK_BYTES = 8192 }; // of every operand, so that what one sum leaves the next finds near

void ot__tree_sum(ot_dtype dtype, const ot__tree_add *adds, int n_adds, void *const *parts,
                  void *out, int64_t n)
{
    const int64_t size = dtype == OT_F32 ? (int64_t)sizeof(float) : (int64_t)sizeof(double);
    const int64_t block = BLOCK_BYTES / size;

    if (n_adds == 0 && parts[0] != out)
        memcpy(out, parts[0], (size_t)(n * size));
    for (int64_t at = 0; at < n && n_adds > 0; at += block) {
        const int64_t count = OT_MIN(block, n - at), offset = at * size;

        for (int i = 0; i < n_adds; i++) {
            char *a = (char *)parts[adds[i].left] + offset;
            char *b = (char *)parts[adds[i].right] + offset;
            char *to = i == n_adds - 1 ? (char *)out + offset : a;

            if (dtype == OT_F32)
                add_f32((float *)(void *)to, (float *)(void *)a, (float *)(void *)b, count);
            else
                add_f64((double *)(void *)to, (double *)(void *)a, (double *)(void *)b, count);
        }
    }
}
