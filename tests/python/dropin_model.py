"""The model of dropin.py, in ONNX's textual syntax."""

import math


def _values(name, count, scale):
    seed = sum(name.encode())
    return ", ".join(f"{scale * math.sin(0.7 * k * k + seed):.6f}" for k in range(count))


def text():
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
