// Vector mathematics for f32: plain functions the compiler turns into vector code inside loops.
#ifndef OT_KERNELS_SIMD_H
#define OT_KERNELS_SIMD_H

#include <math.h>

// ---- instruction sets ----

// The suffix of functions and tables that are compiled once per instruction set.
#define OT_ISA_NAME(name) OT_ISA_NAME_2(name, OT_ISA)
#define OT_ISA_NAME_2(name, isa) OT_ISA_NAME_3(name, isa)
#define OT_ISA_NAME_3(name, isa) name##_##isa

#if defined(__x86_64__)
#define OT_HAS_X86_ISAS 1
#else
#define OT_HAS_X86_ISAS 0
#endif

typedef enum ot__isa { OT__ISA_BASE, OT__ISA_AVX2, OT__ISA_AVX512 } ot__isa;

// The best set that this processor has and the library is compiled for.
static inline ot__isa ot__isa_best(void)
{
#if OT_HAS_X86_ISAS
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return OT__ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return OT__ISA_AVX2;
#endif
    return OT__ISA_BASE;
}

// Stands before a loop whose iterations do not depend on each other although the compiler cannot
// know it.
#if defined(__clang__)
#define OT_SIMD_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define OT_SIMD_LOOP _Pragma("GCC ivdep")
#else
#define OT_SIMD_LOOP
#endif

// ---- mathematics ----

static inline float ot__vexp(float x)
{
    return expf(x);
}
static inline float ot__vlog(float x)
{
    return logf(x);
}
static inline float ot__vlog1p(float x)
{
    return log1pf(x);
}
static inline float ot__verf(float x)
{
    return erff(x);
}
static inline float ot__vtanh(float x)
{
    return tanhf(x);
}

#endif
