// SPDX-License-Identifier: Apache-2.0
#include "base/base.h"

bool ot__mul_overflows(int64_t a, int64_t b, int64_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

bool ot__add_overflows(int64_t a, int64_t b, int64_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

bool ot__size_add_overflows(size_t a, size_t b, size_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

bool ot__size_mul_overflows(size_t a, size_t b, size_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}
