// SPDX-License-Identifier: Apache-2.0
// Slices of an array that differ from each other. They are compared element by element, NaN as
// equal to itself and greater than all.
#include "kernels/kernels.h"

typedef int (*compare_function)(const ot__slices *s, int64_t a, int64_t b);

#define IS_NAN(v) ((v) != (v))
#define NUMBER T
#define LOAD(v) (v)
#define TEMPLATE "kernels/move/ref_unique.tmpl.h"
#include "kernels/by_float.tmpl.h"
#undef NUMBER
#undef LOAD
#define NUMBER float
#define TEMPLATE "kernels/move/ref_unique.tmpl.h"
#define LOAD(v) ot__f16_to_f32(v)
#define T uint16_t
#define SUFFIX f16
#include "kernels/by_one.tmpl.h"
#undef LOAD
#define LOAD(v) ot__bf16_to_f32(v)
#define T uint16_t
#define SUFFIX bf16
#include "kernels/by_one.tmpl.h"
#undef TEMPLATE
#undef IS_NAN
#undef NUMBER
#undef LOAD
#define IS_NAN(v) false
#define NUMBER T
#define LOAD(v) (v)
#define TEMPLATE "kernels/move/ref_unique.tmpl.h"
#include "kernels/by_integer.tmpl.h"

static compare_function find_compare(ot_dtype dtype)
{
    switch (dtype) {
    case OT_F32:
        return compare_f32;
    case OT_F64:
        return compare_f64;
    case OT_F16:
        return compare_f16;
    case OT_BF16:
        return compare_bf16;
    case OT_I8:
        return compare_i8;
    case OT_I16:
        return compare_i16;
    case OT_I32:
        return compare_i32;
    case OT_I64:
        return compare_i64;
    case OT_U16:
        return compare_u16;
    case OT_U32:
        return compare_u32;
    case OT_U64:
        return compare_u64;
    default:
        return compare_u8; // also bool
    }
}

// The sorted runs from[first .. middle) and from[middle .. last) become one in `to`; of equal ones
// those of the first run stand first.
static void merge_runs(const ot__slices *s, compare_function compare, int64_t *to,
                       const int64_t *from, int64_t first, int64_t middle, int64_t last)
{
    int64_t a = first, b = middle;

    for (int64_t i = first; i < last; i++) {
        const bool takes_a = a < middle && (b == last || compare(s, from[a], from[b]) <= 0);

        to[i] = takes_a ? from[a++] : from[b++];
    }
}

int64_t ot__ref_unique_sort(const ot__slices *s, int64_t *order, int64_t *spare)
{
    const compare_function compare = find_compare(s->dtype);
    int64_t *from = order, *to = spare, count = s->n > 0;

    for (int64_t i = 0; i < s->n; i++)
        order[i] = i;
    for (int64_t run = 1; run < s->n; run *= 2) {
        int64_t *swapped = from;

        for (int64_t i = 0; i < s->n; i += 2 * run)
            merge_runs(s, compare, to, from, i, OT_MIN(i + run, s->n), OT_MIN(i + 2 * run, s->n));
        from = to;
        to = swapped;
    }
    for (int64_t i = 0; from != order && i < s->n; i++)
        order[i] = from[i];
    for (int64_t i = 1; i < s->n; i++)
        count += compare(s, order[i - 1], order[i]) != 0;
    return count;
}

void ot__ref_unique_groups(const ot__slices *s, const int64_t *order, bool is_sorted,
                           int64_t *first, int64_t *group, int64_t *spare)
{
    const compare_function compare = find_compare(s->dtype);
    int64_t n = 0, next = 0;

    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || compare(s, order[i - 1], order[i]) != 0)
            first[n++] = order[i]; // equal ones stand in the order of x
        group[order[i]] = n - 1;
    }
    for (int64_t k = 0; k < n; k++)
        spare[k] = -1; // the number of a group in the order of x
    for (int64_t i = 0; i < s->n && !is_sorted; i++) {
        int64_t *number = &spare[group[i]];

        if (*number < 0) {
            *number = next;
            first[next++] = i;
        }
        group[i] = *number;
    }
}
