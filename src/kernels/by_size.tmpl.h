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
#define FN(name) name##_1
#include TEMPLATE
#undef T
#undef FN
#define T uint16_t
#define FN(name) name##_2
#include TEMPLATE
#undef T
#undef FN
#define T uint32_t
#define FN(name) name##_4
#include TEMPLATE
#undef T
#undef FN
#define T uint64_t
#define FN(name) name##_8
#include TEMPLATE
#undef T
#undef FN
#define T ot__two_words
#define FN(name) name##_16
#include TEMPLATE
#undef T
#undef FN
#undef TEMPLATE
