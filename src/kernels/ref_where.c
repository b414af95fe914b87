// Choosing between two arrays element by element, by element size.
#include "kernels/kernels.h"

typedef struct two_words {
    uint64_t word[2];
} two_words;

#define T uint8_t
#define FN(name) name##_1
#include "ref_where.tmpl.h"
#undef T
#undef FN
#define T uint16_t
#define FN(name) name##_2
#include "ref_where.tmpl.h"
#undef T
#undef FN
#define T uint32_t
#define FN(name) name##_4
#include "ref_where.tmpl.h"
#undef T
#undef FN
#define T uint64_t
#define FN(name) name##_8
#include "ref_where.tmpl.h"
#undef T
#undef FN
#define T two_words
#define FN(name) name##_16
#include "ref_where.tmpl.h"
#undef T
#undef FN

void ot__ref_where(void *y, const uint8_t *condition, const void *a, const void *b, int64_t n,
                   size_t size)
{
    switch (size) {
    case 1:
        where_1(y, condition, a, b, n);
        break;
    case 2:
        where_2(y, condition, a, b, n);
        break;
    case 4:
        where_4(y, condition, a, b, n);
        break;
    case 8:
        where_8(y, condition, a, b, n);
        break;
    default:
        where_16(y, condition, a, b, n);
        break;
    }
}
