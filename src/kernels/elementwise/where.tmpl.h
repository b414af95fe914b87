// SPDX-License-Identifier: Apache-2.0
// One element type T of choosing. The including file defines FN(name) and SIMD_LOOP, as for
// tiles.tmpl.h. y may be any operand of its element size.

static void FN(where)(void *to, const uint8_t *condition, const void *x0, const void *x1, int64_t n)
{
    const T *as = x0, *bs = x1;
    T *y = to;

    SIMD_LOOP
    for (int64_t k = 0; k < n; k++) {
        const T a = as[k], b = bs[k]; // loaded in any case, so that there is nothing to branch for

        y[k] = condition[k] ? a : b;
    }
}
