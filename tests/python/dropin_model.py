# SPDX-License-Identifier: Apache-2.0
"""The models of dropin.py, dropin_blocks.py and dropin_edges.py."""

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


_GEMM = """<ir_version: 8, opset_import: ["" : 17]>
gemm (float[batch, 2] x) => (%s) <float[2, 3] w = {0.5, -1, 2, 1.5, 0.25, -0.75}, float[3] b = {0.1, 0, -0.2}>
{ y = Gemm(x, w, b) }"""


# What an exporter writes of two scales that began as ones: one tensor, and a copy under the other's name.
_MERGED = """<ir_version: 8, opset_import: ["" : 17]>
merged (float[batch, 2] x) => (float[batch, 2] y)
<float[2] scale1 = {1, 1}, float[2, 2] w = {0.5, -1, 1.5, 0.25}>
{ scale2 = Identity(scale1) a = Mul(x, scale1) h = MatMul(a, w) y = Mul(h, scale2) }"""


def files():
    """What lies in the directory in which a script runs: texts by name."""
    return {
        "model.onnx": text(),
        "gemm.onnx": _GEMM % "float[batch, 3] y",
        "repeated.onnx": _GEMM % "float[batch, 3] y, float[batch, 3] y",
        "merged.onnx": _MERGED,
        "fixed.onnx": _GEMM.replace("batch", "2") % "float[2, 3] y",
        "dropout.onnx": '''<ir_version: 8, opset_import: ["" : 17]>
dropout (float[batch, 3] x) => (float[batch, 3] y) { y = Dropout(x) }''',
    }


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
