// SPDX-License-Identifier: Apache-2.0
// Included by finite.c for every width of elements: T is an unsigned integer, EXPONENT its bits of
// the exponent, all of which are set in what is no number.
static bool FN(is_finite)(const void *data, int64_t n)
{
    T part[PART_ELEMENTS]; // constants may lie at any byte

    for (int64_t first = 0; first < n; first += PART_ELEMENTS) {
        const int64_t count = OT_MIN(n - first, (int64_t)PART_ELEMENTS);
        unsigned found = 0;

        memcpy(part, (const char *)data + (size_t)first * sizeof(T), (size_t)count * sizeof(T));
        for (int64_t i = 0; i < count; i++)
            found |= (part[i] & EXPONENT) == EXPONENT;
        if (found != 0)
            return false;
    }
    return true;
}
