#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes exact_sums.h: sums of squares of floats, added as fractions and rounded once.

Usage: record_exact_sums.py > exact_sums.h
"""

import random
import struct
from fractions import Fraction


def of_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def power(exponent):
    return 127 + exponent << 23


def cases():
    draw = random.Random(5)
    yield "nothing", []
    yield "the least number", [1]
    yield "the largest number", [0x7F7FFFFF] * 3
    yield "ones", [0x3F800000] * 9
    yield "signs do not matter", [0xBF800000, 0x40000000, 0x80000000]
    half = [power(26)] * 2  # of the last place of 2^106
    yield "half of the last place is dropped from an even number", [power(53), *half]
    yield "half of the last place is added to an odd number", [power(53), *half, *half, *half]
    yield "more than half of the last place is added", [power(53), *half, 1]
    for i in range(12):
        low = draw.randrange(1, 254)
        high = draw.randrange(low, 254)
        n = draw.randrange(1, 40)
        yield f"random {i}", [
            draw.randrange(2) << 31 | draw.randrange(low, high + 1) << 23 | draw.randrange(1 << 23) for _ in range(n)
        ]
    yield "all subnormal", [draw.randrange(1, 1 << 23) for _ in range(30)]


print("// SPDX-License-Identifier: Apache-2.0")
print("// By record_exact_sums.py.")
print("static const struct {\n    const char *name;\n    int n;\n    uint32_t bits[40];\n    double sum;\n} recorded[] = {")
for name, bits in cases():
    total = sum((Fraction(of_bits(b)) ** 2 for b in bits), Fraction(0))
    values = ", ".join(f"{b:#x}" for b in bits) or "0"
    print(f'    {{"{name}", {len(bits)}, {{{values}}}, {float(total).hex()}}},')
print("};")
