// SPDX-License-Identifier: Apache-2.0
// Loops from one of the types that C has to every other: the including file (convert_plain.c)
// defines FROM, its name there, and KIND, FLOAT, INT or BOOL.

#define PASTE_NAMES(from, to) convert_##from##_to_##to
#define NAME_OF(from, to) PASTE_NAMES(from, to)
#define TYPE_OF_NAME(name) any_##name
#define TYPE_OF(name) TYPE_OF_NAME(name)
#define PASTE_KINDS(from, to) FROM_##from##_TO_##to
#define KINDS_OF(from, to) PASTE_KINDS(from, to)

#define PLAIN_LOOP(dtype, name, type, kind, least, most, above)                                    \
    static void NAME_OF(FROM, name)(void *to, const void *from, int64_t n)                         \
    {                                                                                              \
        const TYPE_OF(FROM) *x = from;                                                             \
        TYPE_OF(name) *y = to;                                                                     \
                                                                                                   \
        for (int64_t k = 0; k < n; k++)                                                            \
            y[k] = KINDS_OF(KIND, kind)(x[k], TYPE_OF(name), least, most, above);                  \
    }
PLAIN_TYPES(PLAIN_LOOP)

#define PLAIN_ENTRY(dtype, name, type, kind, least, most, above) [dtype] = NAME_OF(FROM, name),
static const ot__plain_loop NAME_OF(FROM, each)[PLAIN_END] = {PLAIN_TYPES(PLAIN_ENTRY)};

#undef PASTE_NAMES
#undef NAME_OF
#undef TYPE_OF_NAME
#undef TYPE_OF
#undef PASTE_KINDS
#undef KINDS_OF
#undef PLAIN_LOOP
#undef PLAIN_ENTRY
#undef FROM
#undef KIND
