// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, RFC 3720): by the instruction of the processor where it has one, else eight
// bytes at a time by tables. The instruction begins one word a cycle and ends it three later, so
// that three stretches go side by side: what precedes one is carried over it as over zeros.
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
enum { N_BITS = 32, STRETCH = 4096 };          // bits of a checksum, bytes
static const uint32_t polynomial = 0x82f63b78; // reflected

// ---- tables: that of byte i is for one that i zeros follow ----

static uint32_t tables[WORD][N_BYTES];
static uint32_t carried[sizeof(uint32_t)][N_BYTES]; // of byte i of a checksum, over a stretch
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

// Of polynomials modulo that of the checksum; x^0 is the highest bit.
static uint32_t multiply_modulo(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (int bit = N_BITS - 1; bit >= 0; bit--) {
        product ^= a >> bit & 1 ? b : 0;
        b = (b >> 1) ^ (b & 1 ? polynomial : 0);
    }
    return product;
}

// x to the 8 n: what a checksum is multiplied by when n zeros follow.
static uint32_t power_of_bytes(uint64_t n)
{
    uint32_t power = (uint32_t)1 << (N_BITS - 1);
    uint32_t square = power >> BITS_OF_BYTE; // of one byte, of two, of four

    for (; n > 0; n >>= 1) {
        power = n & 1 ? multiply_modulo(power, square) : power;
        square = multiply_modulo(square, square);
    }
    return power;
}

uint32_t ot__crc32c_join(uint32_t first, uint32_t second, uint64_t n_second)
{
    return multiply_modulo(power_of_bytes(n_second), first) ^ second;
}

static void make_carried(void)
{
    const uint32_t over = power_of_bytes(STRETCH);

    for (int i = 0; i < (int)sizeof(uint32_t); i++)
        for (uint32_t b = 0; b < N_BYTES; b++)
            carried[i][b] = multiply_modulo(over, b << (BITS_OF_BYTE * i));
}

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
    make_carried();
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

#define CRC_TARGET __attribute__((target("sse4.2")))

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

CRC_TARGET static inline uint32_t add_word(uint32_t crc, const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    return (uint32_t)_mm_crc32_u64(crc, word);
}

CRC_TARGET static inline uint32_t add_byte(uint32_t crc, unsigned char byte)
{
    return _mm_crc32_u8(crc, byte);
}

#elif defined(__aarch64__) && defined(__linux__)

#define CRC_TARGET

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

static inline uint32_t add_word(uint32_t crc, const unsigned char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}

static inline uint32_t add_byte(uint32_t crc, unsigned char byte)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)byte));
    return crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

#define crc_by_instruction crc_by_tables

#endif

#if defined(CRC_TARGET)

static uint32_t carry_over(uint32_t crc)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < sizeof crc; i++)
        sum ^= carried[i][crc >> (BITS_OF_BYTE * i) & LOWEST];
    return sum;
}

CRC_TARGET static uint32_t add_stretches(uint32_t crc, const unsigned char *p)
{
    uint32_t second = 0, third = 0;

    for (int i = 0; i < STRETCH; i += WORD) {
        crc = add_word(crc, p + i);
        second = add_word(second, p + STRETCH + i);
        third = add_word(third, p + 2 * STRETCH + i);
    }
    return carry_over(carry_over(crc) ^ second) ^ third;
}

CRC_TARGET static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *p, size_t n)
{
    enum { AT_ONCE = 3 * STRETCH };

    if (n >= AT_ONCE)
        pthread_once(&tables_once, make_tables);
    for (; n >= AT_ONCE; n -= AT_ONCE, p += AT_ONCE)
        crc = add_stretches(crc, p);
    for (; n >= WORD; n -= WORD, p += WORD)
        crc = add_word(crc, p);
    for (; n > 0; n--, p++)
        crc = add_byte(crc, *p);
    return crc;
}

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
