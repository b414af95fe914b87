// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_CKPT_WORKED_EXAMPLE_H
#define TESTS_UNIT_CKPT_WORKED_EXAMPLE_H

#include <stdint.h>

// One trainable parameter `w`, f32 [2], 1.0 and -2.0; ONNX Runtime 1.19.2 loads these bytes.
static const uint8_t worked_example[144] = {
    0x18, 0, 0,    0, 'O',  'D', 'T',  'C',  0x0a, 0, 0x0c, 0,    4,    0, 8, 0, //
    0,    0, 0,    0, 0,    0,   0,    0,    0x10, 0, 0,    0,    2,    0, 0, 0, //
    0x10, 0, 0,    0, 0,    0,   0,    0,    8,    0, 0x0c, 0,    4,    0, 8, 0, //
    8,    0, 0,    0, 8,    0,   0,    0,    0x54, 0, 0,    0,    1,    0, 0, 0, //
    0x18, 0, 0,    0, 0,    0,   0,    0,    0x0e, 0, 0x14, 0,    4,    0, 0, 0, //
    8,    0, 0x0c, 0, 0x10, 0,   0,    0,    0x10, 0, 0,    0,    0x10, 0, 0, 0, //
    0x14, 0, 0,    0, 1,    0,   0,    0,    0x18, 0, 0,    0,    1,    0, 0, 0, //
    0x77, 0, 0,    0, 1,    0,   0,    0,    2,    0, 0,    0,    0,    0, 0, 0, //
    8,    0, 0,    0, 0,    0,   0x80, 0x3f, 0,    0, 0,    0xc0, 0,    0, 0, 0,
};

#endif
