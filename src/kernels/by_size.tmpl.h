// SPDX-License-Identifier: Apache-2.0
// Includes TEMPLATE once for each size an element may have: with FN(name) as name_1, name_2,
// name_4, name_8 and name_16, and T a type of that size. For what moves elements and does not look
// into them. Includable again and again.

#ifndef OT__KERNELS_BY_SIZE
#define OT__KERNELS_BY_SIZE
typedef struct ot__two_words {
    uint64_t word[2];
} ot__two_words;

// The function `name` of a template for elements of `size` bytes.
#define OT__BY_SIZE(name, size)                                                                    \
    ((size) == 1   ? name##_1                                                                      \
     : (size) == 2 ? name##_2                                                                      \
     : (size) == 4 ? name##_4                                                                      \
     : (size) == 8 ? name##_8                                                                      \
                   : name##_16)
#endif

#define T uint8_t
#define SUFFIX 1
#include "kernels/by_one.tmpl.h"
#define T uint16_t
#define SUFFIX 2
#include "kernels/by_one.tmpl.h"
#define T uint32_t
#define SUFFIX 4
#include "kernels/by_one.tmpl.h"
#define T uint64_t
#define SUFFIX 8
#include "kernels/by_one.tmpl.h"
#define T ot__two_words
#define SUFFIX 16
#include "kernels/by_one.tmpl.h"
#undef TEMPLATE
