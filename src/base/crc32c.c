// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, RFC 3720): by the instruction of the processor where it has one, else eight
// bytes at a time by tables.
#include <pthread.h>
#include <string.h>

#include "base/base.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

enum { WORD = 8, BITS_OF_BYTE = 8, N_BYTES = 256, LOWEST = 0xff };
static const uint32_t polynomial = 0x82f63b78; // reflected

// ---- tables: that of byte i is for one that i zeros follow ----

static uint32_t tables[WORD][N_BYTES];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t b = 0; b < N_BYTES; b++) {
        uint32_t crc = b;

        for (int k = 0; k < BITS_OF_BYTE; k++)
            crc = (crc >> 1) ^ (crc & 1 ? polynomial : 0);
        tables[0][b] = crc;
    }
    for (int i = 1; i < WORD; i++)
        for (int b = 0; b < N_BYTES; b++)
            tables[i][b] =
                (tables[i - 1][b] >> BITS_OF_BYTE) ^ tables[0][tables[i - 1][b] & LOWEST];
}

static uint32_t crc_of_word(uint32_t crc, const unsigned char *p)
{
    uint32_t sum = 0;

    for (int i = 0; i < WORD; i++) {
        const uint32_t byte = i < 4 ? p[i] ^ (crc >> (BITS_OF_BYTE * i) & LOWEST) : p[i];

        sum ^= tables[WORD - 1 - i][byte];
    }
    return sum;
}

static uint32_t crc_by_tables(uint32_t crc, const unsigned char *p, size_t n)
{
    pthread_once(&tables_once, make_tables);
    for (; n >= WORD; n -= WORD, p += WORD)
        crc = crc_of_word(crc, p);
    for (; n > 0; n--, p++)
        crc = (crc >> BITS_OF_BYTE) ^ tables[0][(crc ^ *p) & LOWEST];
    return crc;
}

// ---- instructions ----

#if defined(__x86_64__)

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static uint32_t
crc_by_instruction(uint32_t crc, const unsigned char *p, size_t n)
{
    uint64_t word, wide = crc;

    for (; n >= WORD; n -= WORD, p += WORD) {
        memcpy(&word, p, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n > 0; n--, p++)
        crc = _mm_crc32_u8(crc, *p);
    return crc;
}

#elif defined(__aarch64__) && defined(__linux__)

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *p, size_t n)
{
    uint64_t word;

    for (; n >= WORD; n -= WORD, p += WORD) {
        memcpy(&word, p, sizeof word);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    }
    for (; n > 0; n--, p++)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*p));
    return crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

#define crc_by_instruction crc_by_tables

#endif

// ---- which ----

uint32_t ot__crc32c_by(int way, uint32_t crc, const void *bytes, size_t n_bytes)
{
    return ~(way == 0 ? crc_by_tables : crc_by_instruction)(~crc, bytes, n_bytes);
}

int ot__crc32c_ways(void)
{
    return has_instruction() ? 2 : 1;
}

uint32_t ot__crc32c(uint32_t crc, const void *bytes, size_t n_bytes)
{
    return ot__crc32c_by(ot__crc32c_ways() - 1, crc, bytes, n_bytes);
}
