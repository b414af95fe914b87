// SPDX-License-Identifier: Apache-2.0
// Part of the interface of `kernels`: the processor at hand, the instruction sets that vector code
// is compiled for, and the choice among them. Only kernels.h includes this.
//
// A simd_*.c is compiled once per instruction set and defines a table of its functions. OT_ISA is
// the suffix of the table's name, OT_ISA_LEVEL the number of the set. On arm64 the base is NEON.
#ifndef OT_KERNELS_ISA_H
#define OT_KERNELS_ISA_H

typedef enum ot__isa {
    OT__ISA_BASE,
    OT__ISA_AVX2,
    OT__ISA_AVX512,
    OT__ISA_AVX512_BF16, // has products of bf16; the tables have none of it
    OT__ISA_LAST = OT__ISA_AVX512_BF16,
} ot__isa;
const char *ot__isa_name(ot__isa isa); // "avx2"
// What the environment variable OT_ISA allows, a name; all of them without it.
ot__isa ot__isa_wanted(void);
// The best set that this processor has, the library is compiled for and OT_ISA allows.
ot__isa ot__isa_best(void);
// None above `isa` from now on; for tests, between runs of kernels.
void ot__isa_limit(ot__isa isa);

// Who made the processor, where its kind decides which of two kernels is faster. Zen 4 is the one
// of both that has AVX-512.
bool ot__is_intel(void);
bool ot__is_zen_3_or_4(void);

// Rows a multiple of so many floats apart fall on the same lines of the first cache, which has
// places for eight or twelve, and lie on different pages of memory.
enum { OT__CLASH = 4096 / sizeof(float) };

// Bytes of the second cache that each core has; 0: not known.
int64_t ot__second_cache(void);

// X(name): a table ot__<name> per instruction set. ot__<name>_best() is the one for this processor,
// ot__<name>_at(i) every one that it can run: the best is the last, then comes NULL.
#define OT_ISA_TABLES(X)                                                                           \
    X(attentions)                                                                                  \
    X(cells)                                                                                       \
    X(columns)                                                                                     \
    X(depthwise_kernel)                                                                            \
    X(dets)                                                                                        \
    X(floats)                                                                                      \
    X(fouriers)                                                                                    \
    X(gemm_kernel)                                                                                 \
    X(index_sums)                                                                                  \
    X(linear_attentions)                                                                           \
    X(moves)                                                                                       \
    X(norms)                                                                                       \
    X(pools)                                                                                       \
    X(reducers)                                                                                    \
    X(row_pools)                                                                                   \
    X(rows)                                                                                        \
    X(samplers)                                                                                    \
    X(tiles)                                                                                       \
    X(updates)

#define OT_DECLARE(name)                                                                           \
    extern const ot__##name ot__##name##_base, ot__##name##_avx2, ot__##name##_avx512;             \
    const ot__##name *ot__##name##_best(void);                                                     \
    const ot__##name *ot__##name##_at(int i);
OT_ISA_TABLES(OT_DECLARE)
#undef OT_DECLARE

// const ot__rows OT_ISA_NAME(ot__rows) = {...}; in a simd_*.c
#define OT_ISA_NAME(name) OT_ISA_NAME_2(name, OT_ISA)
#define OT_ISA_NAME_2(name, isa) OT_ISA_NAME_3(name, isa)
#define OT_ISA_NAME_3(name, isa) name##_##isa

#endif
