// SPDX-License-Identifier: Apache-2.0
// Clip and its mask for one floating-point type T. The including file defines FN(name), LINKAGE
// and SIMD_LOOP, as for tiles.tmpl.h.

// Elements `first` to `last` - 1 of the ot__clip_mask at `context`. Where the bounds cross, the
// upper one holds.
LINKAGE void FN(clip_mask)(void *context, int64_t first, int64_t last)
{
    const ot__clip_mask *p = context;
    const T low = p->low == NULL ? -(T)INFINITY : *(const T *)p->low;
    const T high = p->high == NULL ? (T)INFINITY : *(const T *)p->high;
    const T *x = p->x;
    T *y = p->y;
    uint8_t *mask = p->mask;

    SIMD_LOOP
    for (int64_t k = first; k < last; k++) {
        const T v = x[k], at_least = v < low ? low : v;

        y[k] = at_least > high ? high : at_least;
        mask[k] = (uint8_t)((v >= low) & (v <= high));
    }
}
