# SPDX-License-Identifier: Apache-2.0
"""The models of the interchange matrix, and their data.

A model is ONNX text whose inputs behind the first are its parameters; `build` draws their values and makes initializers
of them. Each gives y [n, 4], so that it takes every loss.
"""
import dataclasses
import zlib

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

ROWS, CLASSES, STEPS, RATE = 8, 4, 10, 0.01
LOSSES = ("cross-entropy", "mse", "l1", "bce", "custom")
OPTIMIZERS = ("sgd", "adamw")
OPSET = 17

MLP = """(float[n, 6] x, float[12, 6] w1, float[12] b1, float[8, 12] w2, float[8] b2, float[4, 8] w3, float[4] b3)
  => (float[n, 4] y)
{
  h1 = Gemm <transB = 1> (x, w1, b1)  a1 = Relu (h1)
  h2 = Gemm <transB = 1> (a1, w2, b2)  a2 = Tanh (h2)
  y = Gemm <transB = 1> (a2, w3, b3)
}"""
# The first convolution has no bias: before batch normalisation its gradient is rounding alone.
CNN = """(float[n, 2, 8, 8] x, float[4, 2, 3, 3] k1, float[4] bn_scale, float[4] bn_bias, float[4] bn_mean, float[4] bn_var,
  float[6, 4, 3, 3] k2, float[6] c2, float[4, 6] w, float[4] b) => (float[n, 4] y)
{
  h1 = Conv <pads = [1, 1, 1, 1]> (x, k1)
  m1 = BatchNormalization (h1, bn_scale, bn_bias, bn_mean, bn_var)
  a1 = Relu (m1)  p1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a1)
  h2 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (p1, k2, c2)  a2 = Sigmoid (h2)
  p2 = GlobalAveragePool (a2)  f = Flatten (p2)
  y = Gemm <transB = 1> (f, w, b)
}"""
# Keys have no bias: softmax does not change by it, so its gradient is rounding alone.
TRANSFORMER = """(int64[n, 5] x, float[11, 8] embedding, float[5, 8] position, float[8] n1_scale, float[8] n1_bias,
  float[8, 8] wq, float[8] bq, float[8, 8] wk, float[8, 8] wv, float[8] bv, float[8, 8] wo, float[8] bo,
  float[8] n2_scale, float[8] n2_bias, float[8, 16] up, float[16] up_bias, float[16, 8] down, float[8] down_bias,
  float[8, 4] head, float[4] head_bias) => (float[n, 4] y)
{
  two = Constant <value = float {2}> ()  half = Constant <value = float {0.5}> ()  one = Constant <value = float {1}> ()
  tiny = Constant <value = float {0.00001}> ()  root2 = Constant <value = float {1.4142135}> ()
  split = Constant <value = int64[4] {0, 0, 2, 4}> ()  join = Constant <value = int64[3] {0, 0, 8}> ()
  e0 = Gather (embedding, x)  e = Add (e0, position)
  NORM1
  q0 = MatMul (l1, wq)  q1 = Add (q0, bq)  q2 = Reshape (q1, split)  q = Transpose <perm = [0, 2, 1, 3]> (q2)
  k0 = MatMul (l1, wk)  k1 = Reshape (k0, split)  k = Transpose <perm = [0, 2, 3, 1]> (k1)
  v0 = MatMul (l1, wv)  v1 = Add (v0, bv)  v2 = Reshape (v1, split)  v = Transpose <perm = [0, 2, 1, 3]> (v2)
  s0 = MatMul (q, k)  s1 = Mul (s0, half)  s = Softmax <axis = -1> (s1)
  o0 = MatMul (s, v)  o1 = Transpose <perm = [0, 2, 1, 3]> (o0)  o2 = Reshape (o1, join)  o3 = MatMul (o2, wo)
  o = Add (o3, bo)  r = Add (e, o)
  NORM2
  u0 = MatMul (l2, up)  u1 = Add (u0, up_bias)
  g0 = Div (u1, root2)  g1 = Erf (g0)  g2 = Add (g1, one)  g3 = Mul (u1, g2)  g = Mul (g3, half)
  d0 = MatMul (g, down)  d = Add (d0, down_bias)  z = Add (r, d)
  p = ReduceMean <axes = [1], keepdims = 0> (z)
  y = Gemm (p, head, head_bias)
}"""
NORM_IN_PARTS = """m# = ReduceMean <axes = [-1]> (IN)  c# = Sub (IN, m#)  p# = Pow (c#, two)  v#_ = ReduceMean <axes = [-1]> (p#)
  t# = Add (v#_, tiny)  i# = Sqrt (t#)  f# = Div (c#, i#)  j# = Mul (f#, n#_scale)  l# = Add (j#, n#_bias)"""
NORM_OPERATOR = "l# = LayerNormalization <axis = -1> (IN, n#_scale, n#_bias)"
LSTM = """(float[n, 5, 3] x, float[1, 24, 3] w, float[1, 24, 6] r, float[1, 48] b, float[4, 6] head, float[4] head_bias)
  => (float[n, 4] y)
{
  axes = Constant <value = int64[1] {0}> ()
  xt = Transpose <perm = [1, 0, 2]> (x)
  ys, yh, yc = LSTM <hidden_size = 6> (xt, w, r, b, , ,)
  f = Squeeze (yh, axes)  y = Gemm <transB = 1> (f, head, head_bias)
}"""
GRU = """(float[n, 5, 3] x, float[1, 18, 3] w, float[1, 18, 6] r, float[1, 36] b, float[4, 6] head, float[4] head_bias)
  => (float[n, 4] y)
{
  axes = Constant <value = int64[1] {0}> ()
  xt = Transpose <perm = [1, 0, 2]> (x)
  ys, yh = GRU <hidden_size = 6, linear_before_reset = 1> (xt, w, r, b, ,)
  f = Squeeze (yh, axes)  y = Gemm <transB = 1> (f, head, head_bias)
}"""


def with_norms(text, norm):
    for number, value in (("1", "e"), ("2", "r")):
        text = text.replace(f"NORM{number}", norm.replace("#", number).replace("IN", value))
    return text


@dataclasses.dataclass(frozen=True)
class Kind:
    """A row of the matrix."""

    text: str
    title: str
    frozen: tuple = ()  # parameters without gradient
    constant: tuple = ()  # initializers in neither list
    additional: tuple = ()
    outputs_before: tuple = ()  # outputs of the model before the one that the loss takes
    batches: int = 1  # to a step
    blocks: bool = False  # loss and optimizer are built of onnxblock's
    nominal: bool = False
    external: bool = False
    ort: bool = False
    refused: str = ""  # what 1.19.2 says about it or about the artifacts that it makes of it, a regular expression
    why: str = ""

    @property
    def ending(self):
        return ".ort" if self.ort else ".onnx"
    losses: tuple = LOSSES
    optimizers: tuple = OPTIMIZERS


BOTH_WAYS = """(float[n, 5, 3] x, float[3, 3] u, float[2, 24, 3] w, float[2, 24, 6] r, float[2, 48] b, float[4, 12] head,
  float[4] head_bias)
  => (float[n, 4] y)
{
  split = Constant <value = int64[2] {0, 12}> ()
  xu = MatMul (x, u)  xt = Transpose <perm = [1, 0, 2]> (xu)
  ys, yh, yc = LSTM <hidden_size = 6, direction = "bidirectional"> (xt, w, r, b, , ,)
  ht = Transpose <perm = [1, 0, 2]> (yh)
  f = Reshape (ht, split)  y = Gemm <transB = 1> (f, head, head_bias)
}"""


def refused(text, title, message, why, **parts):
    return Kind(text, title, refused=message, why=why, losses=("cross-entropy",), optimizers=("adamw",), **parts)


STATISTICS = ("bn_mean", "bn_var")
KINDS = {
    "mlp": Kind(MLP, "MLP"),
    "cnn": Kind(CNN, "CNN with batch normalisation", frozen=STATISTICS),
    "transformer": Kind(with_norms(TRANSFORMER, NORM_IN_PARTS), "transformer block"),
    "lstm": Kind(LSTM, "LSTM"),
    "gru": Kind(GRU, "GRU"),
    "frozen": Kind(MLP, "frozen parts and constants", frozen=("w1", "b1"), constant=("b2",)),
    "additional": Kind(MLP, "additional outputs", additional=("y", "a1")),
    "loss-inputs": Kind(MLP, "`loss_input_names`", outputs_before=("a1",)),
    "accumulated": Kind(MLP, "gradients of two batches", batches=2),
    "blocks": Kind(MLP, "loss and optimizer as blocks, with clipping", blocks=True, losses=("custom",)),
    "nominal": Kind(CNN, "nominal checkpoint", frozen=STATISTICS, nominal=True),
    "external": Kind(MLP, "external data", external=True),
    # y as an output, so that the optimiser of 1.19.2 leaves it there to be exported.
    "ort": Kind(CNN, "`.ort` files", frozen=STATISTICS, additional=("y",), ort=True),
    "ort-transformer": Kind(with_norms(TRANSFORMER, NORM_IN_PARTS), "`.ort` files of the transformer block", additional=("y",),
                            ort=True),
    "ort-lstm": Kind(LSTM, "`.ort` files of the LSTM", additional=("y",), ort=True),
    # What 1.19.2 makes no artifacts of, or none that run; ours train in both.
    "layer-norm": refused(
        with_norms(TRANSFORMER, NORM_OPERATOR), "LayerNormalization as one operator", r"OutputDefs\(\)\.size\(\) was false",
        "its gradient there needs the outputs mean and inverse deviation, which exporters leave out"),
    "lstm-short": refused(
        LSTM.replace("(xt, w, r, b, , ,)", "(xt, w, r, b)"), "LSTM without its optional inputs",
        r"input parameter \(ys\) of operator \(LSTMGrad\)", "its gradient there takes inputs by position"),
    "gru-short": refused(
        GRU.replace("(xt, w, r, b, ,)", "(xt, w, r, b)"), "GRU without its optional inputs",
        r"input parameter \(ys\) of operator \(GRUGrad\)", "the same"),
    "lstm-both-ways": refused(
        BOTH_WAYS, "LSTM in both directions", "only supports the forward direction", "no kernel there for other directions"),
    "gru-backward": refused(
        GRU.replace("linear_before", 'direction = "reverse", linear_before'), "GRU backward",
        "only supports the forward direction", "the same"),
    "lstm-batch-first": refused(
        LSTM.replace("Transpose <perm = [1, 0, 2]> (x)", "Identity (x)").replace("hidden_size", "layout = 1, hidden_size")
        .replace("int64[1] {0}", "int64[1] {1}"),
        "LSTM with the batch first", r"Node \(Squeeze", "layout 1 is lost there"),
    "lstm-clip": refused(
        LSTM.replace("hidden_size", "clip = 0.5, hidden_size"), "LSTM with clip", "Clip is not supported", "no kernel there for it"),
    "bn-training": refused(
        CNN.replace("m1 = BatchNormalization", "m1, bn_m, bn_v = BatchNormalization <training_mode = 1>"),
        "BatchNormalization exported in training mode", "should be 1 when Training_mode = False",
        "the eval model keeps the outputs that only training has", frozen=STATISTICS),
    "average-pool": refused(
        CNN.replace("MaxPool", "AveragePool"), "AveragePool with a symbolic batch", "ended by signal",
        "its gradient there takes the batch for 0 rows", frozen=STATISTICS),
    "conv-transpose": refused(
        CNN.replace("float[6, 4, 3, 3] k2", "float[4, 6, 3, 3] k2").replace("h2 = Conv ", "h2 = ConvTranspose "),
        "ConvTranspose", "Could not find an implementation for ConvTransposeGrad", "no kernel there for its gradient",
        frozen=STATISTICS),
    "sum": refused(
        MLP.replace("y = Gemm <transB = 1> (a2, w3, b3)", "y0 = Gemm <transB = 1> (a2, w3, b3)  y = Sum (y0, y0)"),
        "operators without gradient there, as Sum", "gradient builder has not been registered", "no gradient"),
}


@dataclasses.dataclass
class Case:
    kind: Kind
    loss: str
    optimizer: str
    model: onnx.ModelProto
    trained: list
    frozen: list
    loss_inputs: list  # None: all outputs of the model are the loss's arguments

    def tensors(self, names):
        return [tensor for tensor in self.model.graph.initializer if tensor.name in names]


def initial_value(name, dims):
    random = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith(("scale", "var")):
        return random.uniform(0.5, 1.5, dims).astype(np.float32)
    fan_in = int(np.prod(dims[1:])) if len(dims) > 1 else 8
    return (random.uniform(-1, 1, dims) / np.sqrt(fan_in)).astype(np.float32)


def append_loss(model):
    """A loss inside the model: mean (y - t)^2 + 0.5 mean |y - t|."""
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "loss_half"))
    for op, inputs, output, attributes in (
            ("Sub", ["y", "t"], "loss_d", {}), ("Mul", ["loss_d", "loss_d"], "loss_dd", {}),
            ("ReduceMean", ["loss_dd"], "loss_m2", {"keepdims": 0}), ("Abs", ["loss_d"], "loss_a", {}),
            ("ReduceMean", ["loss_a"], "loss_m1", {"keepdims": 0}), ("Mul", ["loss_m1", "loss_half"], "loss_h", {}),
            ("Add", ["loss_m2", "loss_h"], "loss", {})):
        graph.node.append(helper.make_node(op, inputs, [output], **attributes))
    graph.input.append(helper.make_tensor_value_info("t", TensorProto.FLOAT, ["n", CLASSES]))
    graph.output.pop()
    graph.output.append(helper.make_tensor_value_info("loss", TensorProto.FLOAT, []))


def build(kind, loss, optimizer):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {OPSET}]> model {kind.text}')
    graph = model.graph
    for value in graph.input[1:]:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        graph.initializer.append(numpy_helper.from_array(initial_value(value.name, dims), value.name))
    parameters = [value.name for value in graph.input[1:]]
    del graph.input[1:]
    for number, node in enumerate(graph.node):
        node.name = f"{node.op_type}_{number}"
    if loss == "custom" and not kind.blocks:
        append_loss(model)
    inferred = onnx.shape_inference.infer_shapes(model)
    for name in reversed(kind.outputs_before):
        graph.output.insert(0, next(v for v in inferred.graph.value_info if v.name == name))
    loss_inputs = ["loss" if loss == "custom" else "y"] if kind.outputs_before else None
    trained = [name for name in parameters if name not in kind.frozen + kind.constant]
    return Case(kind, loss, optimizer, model, trained, list(kind.frozen), loss_inputs)


def in_double(model):
    """The same model in f64, with the same values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    tensors = list(copy.graph.initializer)
    tensors += [a.t for node in copy.graph.node for a in node.attribute if a.type == onnx.AttributeProto.TENSOR]
    for tensor in tensors:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*copy.graph.input, *copy.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return copy


def make_data(case, step):
    """Input and target of a step, in f32."""
    random = np.random.default_rng(1000 + step)
    value = case.model.graph.input[0].type.tensor_type
    dims = [ROWS] + [d.dim_value for d in value.shape.dim][1:]
    x = (random.integers(0, 11, dims) if value.elem_type == TensorProto.INT64
         else (random.integers(-32, 33, dims) / 16).astype(np.float32))
    if case.loss == "cross-entropy":
        return x, random.integers(0, CLASSES, ROWS)
    if case.loss == "bce":
        return x, random.integers(0, 2, (ROWS, CLASSES)).astype(np.float32)
    return x, random.standard_normal((ROWS, CLASSES)).astype(np.float32)
