#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose training other runtimes get wrong without a word; test_operators.c trains them.

usage: generate_operators.py       writes data/NAME.onnxtxt and data/NAME.txt (needs torch, numpy, onnx, onnxruntime)

NAME.txt holds "batch", "classes" and "words" as generate.py writes them, and "inference loss VALUE": the cross entropy
of the first batch in inference, in f64 by ONNX's reference evaluator, whose scores ONNX Runtime confirms in f32.
"""
import numpy as np
import onnx.parser
import onnx.reference
import onnxruntime

from generate import DATA, Model


class Case(Model):
    rows, classes, x_shape = 5, 4, (6,)
    parameters = {}

    def declare(self):
        for name, (shape, *scale_and_around) in self.parameters.items():
            self.parameter(name, shape, *scale_and_around)

    @property
    def inference_body(self):
        return self.body


class SplitUnused(Case):
    """Two of the three outputs of Split are read by nobody."""

    name = "split"
    parameters = {"w1": ((6, 9),), "w2": ((4, 4),)}
    constants = "   int64[3] sizes = {2, 4, 3}"
    body = """
   a = MatMul (x, w1)
   p, q, r = Split <axis = 1> (a, sizes)
   y = MatMul (q, w2)
"""


class WhereBroadcast(Case):
    """Both branches are trained, each broadcast along another axis; the condition along both."""

    name = "where"
    parameters = {"w": ((6, 4),), "row": ((4,), 1.0), "column": ((5, 1), 1.0), "one": ((1, 1), 1.0)}
    constants = "   float zero = {0}, bool[1,4] some = {1, 0, 1, 1}"
    body = """
   a = MatMul (x, w)
   c = Greater (a, zero)
   b = Where (c, row, a)
   d = Where (some, b, column)
   e = Where (c, d, one)
   y = Add (e, a)
"""


class PowExponent(Case):
    """Base and exponent are trained."""

    name = "pow"
    parameters = {"w": ((6, 4),), "base": ((4,), 0.4, 1.5), "exponent": ((4,), 0.5, 1.5)}
    body = """
   a = MatMul (x, w)
   s = Sigmoid (a)
   b = Pow (s, exponent)
   c = Pow (base, a)
   y = Add (b, c)
"""


class GeluTanh(Case):
    name, opset = "gelu_tanh", 20
    parameters = {"w1": ((6, 7), 1.0), "w2": ((7, 4),)}
    body = """
   a = MatMul (x, w1)
   b = Gelu <approximate = "tanh"> (a)
   y = MatMul (b, w2)
"""


class ConvSame(Case):
    """Paddings that differ at the two ends, at the upper one and at the lower one."""

    name, x_shape = "conv_same", (2, 7, 6)
    parameters = {"w1": ((3, 2, 4, 2),), "b1": ((3,), 0.2), "w2": ((2, 3, 2, 3),), "w3": ((12, 4),)}
    body = """
   a = Conv <auto_pad = "SAME_UPPER", kernel_shape = [4, 2], strides = [2, 1]> (x, w1, b1)
   b = Tanh (a)
   c = Conv <auto_pad = "SAME_LOWER", kernel_shape = [2, 3], strides = [2, 2]> (b, w2)
   d = Flatten (c)
   y = MatMul (d, w3)
"""


class BatchNorm13(Case):
    """The form that exporters write for training at opset 13: five outputs and no attribute."""

    name, opset = "batch_norm_13", 13
    constants = "   float[5] mean = {0.1, -0.2, 0.3, 0, 0.5}, float[5] var = {1.5, 0.5, 1, 2, 0.8}"
    parameters = {"w1": ((6, 5),), "scale": ((5,), 0.3, 1.0), "bias": ((5,), 0.3), "w2": ((5, 4),)}
    body = """
   a = MatMul (x, w1)
   b, mean_out, var_out, saved_mean, saved_var = BatchNormalization (a, scale, bias, mean, var)
   c = Tanh (b)
   y = MatMul (c, w2)
"""

    @property
    def inference_body(self):
        return self.body.replace("b, mean_out, var_out, saved_mean, saved_var", "b")


def inference_loss(case):
    written, case.body = case.body, case.inference_body
    text = case.text()
    case.body = written
    x, labels = case.inputs(0)
    # The reference evaluator moves the statistics in BatchNormalization's old form.
    newer = text.replace("float", "double").replace('"" : 13', '"" : 17')
    exact = onnx.reference.ReferenceEvaluator(onnx.parser.parse_model(newer)).run(None, {"x": x})[0]
    session = onnxruntime.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    confirmed = session.run(None, {"x": x.astype(np.float32)})[0]
    assert np.abs(exact - confirmed).max() < 1e-5, case.name
    shifted = exact - exact.max(1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return -log_p[np.arange(case.rows), labels].mean()


def main():
    onnxruntime.set_default_logger_severity(3)
    for case in (SplitUnused(), WhereBroadcast(), PowExponent(), GeluTanh(), ConvSame(), BatchNorm13()):
        (DATA / f"{case.name}.onnxtxt").write_text(case.text())
        (DATA / f"{case.name}.txt").write_text(
            f"batch {case.rows}\nclasses {case.classes}\nwords 0\ninference loss {inference_loss(case):.17g}\n")


if __name__ == "__main__":
    main()
