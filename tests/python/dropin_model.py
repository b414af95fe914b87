# SPDX-License-Identifier: Apache-2.0
"""The models of dropin.py and dropin_blocks.py."""

import math


def _values(name, count, scale):
    seed = sum(name.encode())
    return ", ".join(f"{scale * math.sin(0.7 * k * k + seed):.6f}" for k in range(count))


def text():
    """In ONNX's textual syntax."""
    parameters = [("fc1_weight", (16, 64)), ("fc1_bias", (16,)), ("fc2_weight", (4, 16)), ("fc2_bias", (4,))]
    initializers = ",\n".join(
        f'float[{", ".join(map(str, shape))}] {name} = {{{_values(name, math.prod(shape), 0.2)}}}'
        for name, shape in parameters
    )
    return f"""<ir_version: 8, opset_import: ["" : 17]>
digits (float[batch, 64] input) => (float[batch, 4] output)
<{initializers}>
{{
  fc1 = Gemm<transB = 1>(input, fc1_weight, fc1_bias)
  relu = Relu(fc1)
  output = Gemm<transB = 1>(relu, fc2_weight, fc2_bias)
}}
"""


def two_outputs(onnx):
    """As an object of the package onnx."""
    parameters = [("w1", (6, 8)), ("b1", (8,)), ("w2", (8, 2)), ("w3", (8, 3))]
    initializers = ", ".join(
        f'float[{", ".join(map(str, shape))}] {name} = {{{_values(name, math.prod(shape), 0.3)}}}'
        for name, shape in parameters
    )
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
two (float[batch, 6] input) => (float[batch, 2] position, float[batch, 3] scores) <{initializers}>
{{
  m1 = MatMul(input, w1)
  s1 = Add(m1, b1)
  h1 = Tanh(s1)
  position = MatMul(h1, w2)
  scores = MatMul(h1, w3)
}}"""
    )
