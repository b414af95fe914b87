#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what ONNX Runtime computes for nodes, most of them of its own operators, as recorded_onnxruntime.h, which
lies beside this: a macro of cases for each operator.

Usage: record_onnxruntime.py > recorded_onnxruntime.h

Inputs are numbers of two decimals, drawn by the name of the case. Where ONNX Runtime's CPU has no
kernel for a form, the same node in another form gives the values (`like`).
"""

import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

MS, ML = "com.microsoft", "ai.onnx.ml"
# Products of u8 and i8 saturate in ONNX Runtime where the processor has no instruction for them: these are ONNX's in numpy.
BY_REFERENCE = ["MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv"]
STATED = [("MultiHeadAttention", 3), ("LinearRegressor", 0), ("FeatureVectorizer", 0)]  # outputs whose type is not inferred
NAMES = {np.dtype("float32"): "f32", np.dtype("int32"): "i32", np.dtype("int64"): "i64", np.dtype("uint8"): "u8",
         np.dtype("int8"): "i8", np.dtype("bool"): "bool"}


class Draw:
    """Numbers that follow from the name of a case."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, *shape, low=-2.0, high=2.0):
        return np.asarray(np.round(self.rng.uniform(low, high, shape), 2), np.float32)

    def integers(self, *shape, low=0, high=256, dtype=np.int32):
        return np.asarray(self.rng.integers(low, high, shape), dtype)


def run(op, inputs, attrs, n_outputs, opset, domain):
    named = [(f"x{i}", x) for i, x in enumerate(inputs)]
    node = helper.make_node(op, [name if x is not None else "" for name, x in named],
                            [f"y{i}" if i in n_outputs else "" for i in range(max(n_outputs) + 1)], domain=domain, **attrs)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for name, x in named if x is not None],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) if (op, i) in STATED else
         helper.make_value_info(f"y{i}", onnx.TypeProto()) for i in n_outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(MS, 1), helper.make_opsetid(ML, 3)],
                              ir_version=8)
    feed = {name: x for name, x in named if x is not None}
    if op in BY_REFERENCE:
        return ReferenceEvaluator(model).run(None, feed)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def number(x):
    text = str(x) if np.issubdtype(type(x), np.floating) else str(int(x))
    return text[:-2] if text.endswith(".0") else text


def spec(x):
    if x is None:
        return '""'
    shape = ",".join(str(d) for d in x.shape)
    return f'"{NAMES[x.dtype]}[{shape}]{{{",".join(number(v) for v in x.ravel())}}}"'


def attribute(value):
    if isinstance(value, str):
        return f'\\"{value}\\"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(str(v) for v in value) + "]"
    return repr(value)


def case(name, op, inputs, outputs=(0,), like=None, flags="OT_CASE_OPEN", terms=None, opset=17, domain=MS, **attrs):
    of_op, of_inputs, of_attrs = like or (op, inputs, attrs)
    values = run(of_op, of_inputs, of_attrs, list(outputs), opset, domain)
    out = ['""'] * (max(outputs) + 1)
    for i, value in zip(outputs, values):
        out[i] = spec(value)
    text = f'{{.name = "{name}", .in = {{{", ".join(spec(x) for x in inputs)}}}, .out = {{{", ".join(out)}}}'
    if attrs:
        text += f', .attrs = "{", ".join(f"{k} = {attribute(v)}" for k, v in attrs.items())}"'
    if flags:
        text += f", .flags = {flags}"
    if terms:
        text += f", .terms = {terms}"
    return text + "}"


# ---- operators ----


def skip_layer_normalization():
    def one(name, bias=True, beta=True, skip=(2, 3, 4), x=(2, 3, 4), outputs=(0,), **attrs):
        d = Draw(name)
        inputs = [d(*x), d(*skip), d(x[-1]), d(x[-1]) if beta else None, d(x[-1]) if bias else None]
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "SkipLayerNormalization", inputs, outputs, **attrs)

    return [
        one("all inputs", outputs=(0, 3)),
        one("no bias", bias=False),
        one("no beta", beta=False, bias=False),
        one("bias without beta", beta=False),
        one("one skip for all batches", skip=(1, 3, 4), outputs=(0, 3)),
        one("a skip of two axes", skip=(3, 4)),
        one("two axes", x=(3, 4), skip=(3, 4)),
        one("epsilon", epsilon=0.25),
    ]


def skip_simplified_layer_normalization():
    def one(name, bias=True, x=(2, 3, 4), skip=(2, 3, 4), outputs=(0,), **attrs):
        d = Draw(name)
        inputs = [d(*x), d(*skip), d(x[-1])] + ([d(x[-1])] if bias else [])
        return case(name, "SkipSimplifiedLayerNormalization", inputs, outputs, **attrs)

    return [
        one("all inputs", outputs=(0, 3)),
        one("no bias", bias=False),
        one("two axes", x=(3, 4), skip=(3, 4)),
        one("one skip for all batches", skip=(1, 3, 4)),
        one("epsilon", epsilon=0.25),
    ]


def embed_layer_normalization():
    def one(name, segments=True, mask=None, positions=None, outputs=(0, 1), **attrs):
        d = Draw(name)
        ids = d.integers(2, 3, high=5)
        segment_ids = d.integers(2, 3, high=2) if segments else None
        inputs = [ids, segment_ids, d(5, 4), d(6, 4), d(2, 4) if segments else None, d(4), d(4), mask, positions]
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "EmbedLayerNormalization", inputs, outputs, **attrs)

    mask = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    return [
        one("mask", mask=mask),
        one("mask of other numbers", mask=np.array([[1, 2, 0], [-1, 0, 1]], np.int32)),
        one("no mask"),
        one("no segments", segments=False),
        one("positions", positions=np.array([[2, 0, 5], [1, 1, 3]], np.int32)),
        one("positions for all", positions=np.array([[4, 0, 5]], np.int32), mask=mask),
        one("sum", outputs=(0, 1, 2), epsilon=0.25),
    ]


def fused_conv():
    def one(name, x=(2, 2, 5, 4), w=(3, 2, 3, 3), bias=True, z=None, flags="OT_CASE_IMAGE", **attrs):
        d = Draw(name)
        inputs = [d(*x), d(*w), d(w[0]) if bias or z else None, d(*z) if z else None]
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "FusedConv", inputs, flags=flags, **attrs)

    return [
        one("no activation"),
        one("Relu", activation="Relu", pads=[1, 1, 1, 1]),
        one("Relu of a sum", activation="Relu", z=(2, 3, 3, 2)),
        one("Tanh", activation="Tanh", bias=False, strides=[2, 1]),
        one("Sigmoid", activation="Sigmoid", dilations=[2, 1], group=2, w=(4, 1, 2, 2)),
        one("LeakyRelu", activation="LeakyRelu", activation_params=[0.25]),
        one("HardSigmoid", activation="HardSigmoid", activation_params=[0.125, 0.5]),
        one("Clip", activation="Clip", activation_params=[-1.0, 2.5], auto_pad="SAME_UPPER", flags="OT_CASE_STATIC"),
    ]


def fused_gemm():
    def one(name, a=(2, 3), b=(3, 4), c=(4,), **attrs):
        d = Draw(name)
        return case(name, "FusedGemm", [d(*a), d(*b)] + ([d(*c)] if c else []), **attrs)

    return [
        one("Relu", activation="Relu"),
        one("Sigmoid", activation="Sigmoid", transB=1, b=(4, 3), alpha=0.5, beta=2.0),
        one("Tanh", activation="Tanh", transA=1, a=(3, 2), c=None),
        one("Softplus", activation="Softplus", c=(2, 1)),
        one("Softsign", activation="Softsign"),
        one("LeakyRelu", activation="LeakyRelu", activation_alpha=0.25),
        one("Elu", activation="Elu", activation_alpha=0.5),
        one("ThresholdedRelu", activation="ThresholdedRelu", activation_alpha=0.75),
        one("HardSigmoid", activation="HardSigmoid", activation_alpha=0.125, activation_beta=0.25),
        one("Selu", activation="Selu", activation_alpha=1.5, activation_gamma=1.25),
    ]


def rotary_embedding():
    def one(name, x, positions, cache=(6, 2), **attrs):
        d = Draw(name)
        positions = np.array(positions, np.int64)
        return case(name, "RotaryEmbedding", [d(*x), positions, d(*cache), d(*cache)], **attrs)

    return [
        one("halves", (2, 2, 3, 4), [[0, 4, 2], [1, 1, 3]]),
        one("side by side", (2, 2, 3, 4), [[0, 4, 2], [1, 1, 3]], interleaved=1),
        one("from a position on", (2, 2, 3, 4), [2]),
        one("heads side by side", (2, 3, 8), [[0, 4, 2], [1, 1, 3]]),
        one("heads side by side from a position on", (2, 3, 8), [1], interleaved=1),
        one("a part of each head", (1, 3, 12), [[0, 4, 2]], cache=(5, 2), num_heads=2, rotary_embedding_dim=4),
        one("a part of each head side by side", (1, 3, 12), [[5, 4, 2]], num_heads=2, rotary_embedding_dim=4, interleaved=1),
    ]


def multi_head_attention():
    def one(name, q=(2, 3, 4), k=(2, 5, 4), v=(2, 5, 6), bias=False, mask=None, added=None, past=None, outputs=(0,), heads=2, grad=False, **attrs):
        d = Draw(name)
        inputs = [d(*q), d(*k), d(*v), d(q[2] + k[2] + v[2]) if bias else None,
                  None if mask is None else np.array(mask, np.int32), d(*added) if added else None] + (
                      [d(*past), d(*past)] if past else [])
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "MultiHeadAttention", inputs, outputs, flags="OT_CASE_OPEN" if grad else "OT_CASE_NO_GRAD", num_heads=heads,
                    **attrs)

    def packed(name, n, bias=False, **attrs):
        """Queries, keys and values in one, or keys and values."""
        d = Draw(name)
        b, s, heads, size = 2, 3, 2, 2
        q = d(b, s, heads * size)
        x = d(b, s, heads, n, size)
        parts = [np.ascontiguousarray(x[:, :, :, i]).reshape(b, s, heads * size) for i in range(n)]
        bias = d(3 * heads * size) if bias else None
        plain = ([q] if n == 2 else []) + parts + ([bias] if bias is not None else [])
        inputs = ([x, None, None, bias] if bias is not None else [x]) if n == 3 else [q, x]
        attrs["num_heads"] = heads
        return case(name, "MultiHeadAttention", inputs, like=("MultiHeadAttention", plain, attrs), **attrs)

    def own_axis(name):
        d = Draw(name)
        return case(name, "MultiHeadAttention", [d(2, 3, 4), d(2, 2, 5, 2), d(2, 2, 5, 2)], num_heads=2)

    return [
        one("plain", grad=True),
        one("bias", bias=True),
        one("scale", scale=0.25, heads=1),
        one("lengths", mask=[5, 2]),
        one("keys that stay", mask=[[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], mask_filter_value=-1.5),
        one("no key stays", mask=[[0, 0, 0, 0, 0], [0, 1, 1, 1, 1]], mask_filter_value=-8.0),
        one("keys that stay for each query", mask=[[[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]],
                                                   [[1, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 1, 1, 1, 1]]]),
        one("added to scores", added=(1, 2, 3, 5)),
        one("added to scores beside a mask", added=(2, 2, 3, 5), mask=[3, 4], bias=True, grad=True),
        one("causal", k=(2, 3, 4), v=(2, 3, 4), unidirectional=1, grad=True),
        one("causal with lengths", k=(2, 3, 4), v=(2, 3, 4), mask=[2, 3], unidirectional=1),
        one("past", k=(2, 3, 4), v=(2, 3, 4), past=(2, 2, 2, 2), outputs=(0, 1, 2)),
        one("past and causal, with a mask", k=(2, 3, 4), v=(2, 3, 4), past=(2, 2, 2, 2), bias=True, unidirectional=1,
            mask=[[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]], outputs=(0, 1, 2), grad=True),
        one("present and scores", v=(2, 5, 4), outputs=(0, 1, 2, 3), grad=True),
        packed("packed", 3),
        packed("packed with a bias, causal", 3, bias=True, unidirectional=1),
        packed("packed keys and values", 2),
        own_axis("keys and values with an axis for heads"),
    ]


def attention():
    def one(name, x=(2, 3, 3), sizes=(4, 4, 4), bias=True, mask=None, past=None, added=None, outputs=(0,), heads=2, grad=False, **attrs):
        d = Draw(name)
        if sizes != (4, 4, 4):
            attrs["qkv_hidden_sizes"] = list(sizes)
        inputs = [d(*x), d(x[2], sum(sizes)), d(sum(sizes)) if bias else None,
                  None if mask is None else np.array(mask, np.int32), d(*past) if past else None, d(*added) if added else None]
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "Attention", inputs, outputs, flags="OT_CASE_OPEN" if grad else "OT_CASE_NO_GRAD", num_heads=heads, **attrs)

    return [
        one("plain", grad=True),
        one("sizes", sizes=(4, 4, 6), grad=True),
        one("scale", scale=0.25, heads=1),
        one("lengths", mask=[3, 1], grad=True),
        one("ends and starts", mask=[3, 2, 1, 0], grad=True),
        one("keys that stay", mask=[[1, 0, 1], [0, 1, 1]], mask_filter_value=-1.5),
        one("keys that stay for each query", mask=[[[1, 1, 0], [0, 1, 0], [1, 1, 1]], [[1, 0, 0], [0, 1, 0], [0, 1, 1]]]),
        one("causal", unidirectional=1, outputs=(0, 1)),
        one("causal with lengths", unidirectional=1, mask=[2, 3]),
        one("past, causal", past=(2, 2, 2, 2, 2), unidirectional=1, outputs=(0, 1), grad=True),
        one("past with a mask", past=(2, 2, 2, 2, 2), mask=[[1, 1, 0, 1, 1], [0, 1, 1, 1, 1]], outputs=(0, 1)),
        one("added to scores", added=(1, 2, 3, 3), mask=[3, 2], grad=True),
    ]


def group_query_attention():
    def one(name, past=0, packed=False, rotary=0, added=None, outputs=(0,), heads=2, kv_heads=1, size=8, s=3, positions=None, **attrs):
        d = Draw(name)
        b = 1 if past else 2  # of several tokens behind a past ONNX Runtime takes one batch
        q, k, v = d(b, s, heads * size), d(b, s, kv_heads * size), d(b, s, kv_heads * size)
        inputs = [np.concatenate((q, k, v), 2), None, None] if packed else [q, k, v]
        old = [d(b, kv_heads, past, size), d(b, kv_heads, past, size)]
        tail = [np.full(b, past + s - 1, np.int32), np.array(past + s, np.int32), *([d(8, rotary), d(8, rotary)] if rotary else [None, None]),
                None if positions is None else np.array(positions, np.int64), d(*added) if added else None]
        while tail[-1] is None:
            tail.pop()
        attrs.update(num_heads=heads, kv_num_heads=kv_heads)
        if rotary:
            attrs["do_rotary"] = 1
        # Its kernel wants a past, of which here is none.
        return case(name, "GroupQueryAttention", inputs + (old if past else [None, None]) + tail, outputs,
                    like=("GroupQueryAttention", inputs + old + tail, attrs), flags="OT_CASE_NO_GRAD", **attrs)

    return [
        one("plain"),
        one("scale, four heads", scale=0.25, heads=4, kv_heads=2),
        one("packed", packed=True, outputs=(0, 1, 2)),
        one("rotary", size=16, s=2, rotary=8),
        one("rotary of pairs side by side, packed", size=16, s=2, packed=True, rotary=8, rotary_interleaved=1),
        one("rotary of a part of each head", size=32, s=2, rotary=8),
        one("past", past=2, outputs=(0, 1, 2)),
        one("rotary behind a past", size=16, s=2, past=2, rotary=8, outputs=(0, 1, 2)),
        one("window", s=5, local_window_size=2),
        one("softcap", softcap=0.75),
        one("softcap, and added to", softcap=0.75, added=(1, 2, 3, 3)),
        one("added to scores", added=(1, 1, 3, 3)),
    ]


def mat_mul_n_bits():
    def one(name, a=(3, 20), n=3, bits=4, block=16, zeros=None, bias=False, **attrs):
        d = Draw(name)
        k = a[-1]
        blocks = -(-k // block)
        inputs = [d(*a), d.integers(n, blocks, block * bits // 8, dtype=np.uint8), d(n, blocks, low=-0.2, high=0.2)]
        if zeros == "packed":
            inputs.append(d.integers(n, (blocks * bits + 7) // 8, dtype=np.uint8))
        elif zeros == "numbers":
            inputs.append(d(n, blocks, low=0, high=2.0**bits))
        if bias:
            inputs += [None] * (5 - len(inputs)) + [d(n)]
        # Only A may have other sizes.
        return case(name, "MatMulNBits", inputs, K=k, N=n, bits=bits, block_size=block, flags="OT_CASE_OPEN", **attrs)

    return [
        one("4 bits"),
        one("4 bits, zero points", zeros="packed", a=(3, 40)),
        one("4 bits, zero points that are numbers", zeros="numbers"),
        one("4 bits, bias, three axes", bias=True, a=(2, 2, 32), block=32),
        one("8 bits", bits=8),
        one("8 bits, zero points", bits=8, zeros="packed", a=(3, 40), bias=True),
    ]


def numbers_of(dtype, d, *shape):
    low, high = (-128, 128) if dtype == np.int8 else (0, 256)
    return d.integers(*shape, low=low, high=high, dtype=dtype)


def dynamic_quantize_linear():
    def one(name, x):
        return case(name, "DynamicQuantizeLinear", [x], (0, 1, 2), domain="")

    return [
        one("both signs", Draw("both signs")(3, 5)),
        one("positive", Draw("positive")(2, 2, 3, low=0.5, high=7)),
        one("negative", Draw("negative")(7, low=-3, high=-0.25)),
        one("zeros", np.zeros((2, 2), np.float32)),
        one("one", np.array(-1.5, np.float32)),
    ]


def mat_mul_integer():
    def one(name, a=(3, 5), b=(5, 4), types=(np.uint8, np.int8), a_zero=True, b_zero=True):
        d = Draw(name)
        inputs = [numbers_of(types[0], d, *a), numbers_of(types[1], d, *b), numbers_of(types[0], d) if a_zero else None,
                  numbers_of(types[1], d, *([b[-1]] if b_zero == "columns" else [])) if b_zero else None]
        while inputs[-1] is None:
            inputs.pop()
        return case(name, "MatMulInteger", inputs, domain="")

    return [
        one("u8 and i8"),
        one("u8", types=(np.uint8, np.uint8)),
        one("i8", types=(np.int8, np.int8)),
        one("no zero points", a_zero=False, b_zero=False),
        one("a zero point of B alone", a_zero=False),
        one("zero points of columns", b_zero="columns"),
        one("batches", a=(2, 3, 5), b=(2, 5, 4)),
        one("batches that share B", a=(2, 3, 5)),
        one("batches that share A", b=(2, 5, 4)),
    ]


def q_linear_mat_mul():
    def one(name, a=(3, 5), b=(5, 4), types=(np.uint8, np.int8, np.uint8), columns=False, y_scale=0.7, opset=17):
        d = Draw(name)
        scale = lambda *shape: d(*shape, low=0.02, high=0.2)
        inputs = [numbers_of(types[0], d, *a), scale(), numbers_of(types[0], d), numbers_of(types[1], d, *b),
                  scale(*([b[-1]] if columns else [])), numbers_of(types[1], d, *([b[-1]] if columns else [])),
                  np.array(y_scale, np.float32), numbers_of(types[2], d)]
        return case(name, "QLinearMatMul", inputs, domain="", opset=opset)

    return [
        one("u8 and i8"),
        one("u8", types=(np.uint8, np.uint8, np.uint8)),
        one("i8", types=(np.int8, np.int8, np.int8)),
        one("scales of columns", types=(np.uint8, np.int8, np.uint8), columns=True, y_scale=2.0),
        one("batches", a=(2, 3, 5), b=(2, 5, 4), y_scale=2.0),
        one("batches that share B", a=(2, 3, 5), opset=21, y_scale=3.0),
    ]


def conv_integer():
    def one(name, x=(2, 2, 5, 4), w=(3, 2, 3, 3), types=(np.uint8, np.uint8), zeros=True, flags="OT_CASE_IMAGE", **attrs):
        d = Draw(name)
        inputs = [numbers_of(types[0], d, *x), numbers_of(types[1], d, *w)] + (
            [numbers_of(types[0], d), numbers_of(types[1], d)] if zeros else [])
        return case(name, "ConvInteger", inputs, domain="", flags=flags, **attrs)

    return [
        one("plain"),
        one("no zero points", zeros=False),
        one("padding is the zero point", pads=[1, 0, 2, 1]),
        one("strides and dilations", strides=[2, 1], dilations=[1, 2], x=(1, 2, 7, 7)),
        one("groups", w=(4, 1, 2, 2), group=2),
        one("auto_pad", auto_pad="SAME_LOWER", flags="OT_CASE_STATIC"),
        one("along one axis", x=(2, 3, 7), w=(2, 3, 3), pads=[1, 1]),
        one("along three axes", x=(1, 1, 3, 4, 3), w=(2, 1, 2, 2, 2)),
    ]


def q_linear_conv():
    def one(name, x=(2, 2, 5, 4), w=(3, 2, 3, 3), types=(np.uint8, np.uint8, np.uint8), channels=False, bias=False, y_scale=1.5,
            flags="OT_CASE_IMAGE", **attrs):
        d = Draw(name)
        n = [w[0]] if channels else []
        scale = lambda *shape: d(*shape, low=0.02, high=0.2)
        zero = np.zeros(n, types[1]) if channels else numbers_of(types[1], d)
        inputs = [numbers_of(types[0], d, *x), scale(), numbers_of(types[0], d), numbers_of(types[1], d, *w), scale(*n), zero,
                  np.array(y_scale, np.float32), numbers_of(types[2], d)] + ([d.integers(w[0], low=-900, high=900)] if bias else [])
        return case(name, "QLinearConv", inputs, domain="", flags=flags, **attrs)

    return [
        one("plain"),
        one("i8", types=(np.int8, np.int8, np.int8)),
        one("a bias", types=(np.uint8, np.int8, np.uint8), bias=True, pads=[1, 1, 1, 1]),
        one("scales of channels", types=(np.uint8, np.int8, np.uint8), channels=True, bias=True),
        one("groups", w=(4, 1, 2, 2), group=2, strides=[2, 1], types=(np.uint8, np.int8, np.uint8), channels=True),
        one("along one axis", x=(2, 3, 7), w=(2, 3, 3), pads=[1, 1]),
    ]


def ml(name, op, inputs, outputs=(0,), flags="OT_CASE_OPEN", **attrs):
    return case(name, op, inputs, outputs, domain=ML, flags=flags, **attrs)


def scaler():
    d = Draw("scaler")
    return [
        ml("features", "Scaler", [d(3, 4)], offset=[1.0, -0.5, 0.25, 0.0], scale=[2.0, 0.5, -1.5, 0.25]),
        ml("one for all", "Scaler", [d(2, 3)], offset=[0.5], scale=[1.25]),
        ml("one row", "Scaler", [d(3)], offset=[1.0, -0.5, 0.25], scale=[2.0, 0.5, -1.5]),
        ml("integers", "Scaler", [d.integers(2, 2, low=-9, high=9, dtype=np.int64)], offset=[1.0, -0.5], scale=[0.5, 0.25]),
    ]


def normalizer():
    d = Draw("normalizer")
    zeros = np.array([[1, -2, 0.5], [0, 0, 0]], np.float32)
    return [case for norm in ("MAX", "L1", "L2") for case in (
        ml(norm, "Normalizer", [d(3, 4)], norm=norm),
        ml(f"{norm} of zeros", "Normalizer", [zeros], flags="OT_CASE_NO_GRAD", norm=norm),
        ml(f"{norm} of one row", "Normalizer", [d(3)], norm=norm),
        ml(f"{norm} of integers", "Normalizer", [d.integers(2, 3, low=-9, high=9, dtype=np.int32)], norm=norm))]


def imputer():
    d = Draw("imputer")
    x = d(3, 3)
    x[0, 1] = x[2, 2] = 0.5
    return [
        ml("a number", "Imputer", [x], imputed_value_floats=[9.0, 8.0, -7.0], replaced_value_float=0.5, flags="OT_CASE_NO_GRAD"),
        ml("one for all", "Imputer", [x], imputed_value_floats=[9.0], replaced_value_float=0.5, flags="OT_CASE_NO_GRAD"),
        ml("none", "Imputer", [x], imputed_value_floats=[9.0, 8.0, -7.0], replaced_value_float=17.0),
        ml("integers", "Imputer", [np.array([[1, 2, 3], [2, 2, 0]], np.int64)], imputed_value_int64s=[4, 5, 6], replaced_value_int64=2),
    ]


def array_feature_extractor():
    d = Draw("array_feature_extractor")
    return [
        ml("columns", "ArrayFeatureExtractor", [d(3, 4), np.array([2, 0, 2], np.int64)]),
        ml("a row of indices", "ArrayFeatureExtractor", [d(3, 4), np.array([[3]], np.int64)]),
        ml("one axis", "ArrayFeatureExtractor", [d(4), np.array([1, 3], np.int64)]),
        ml("three axes", "ArrayFeatureExtractor", [d(2, 2, 3), np.array([[2, 1]], np.int64)]),
        ml("integers", "ArrayFeatureExtractor", [d.integers(2, 3, dtype=np.int32), np.array([2, 2], np.int64)]),
    ]


def feature_vectorizer():
    d = Draw("feature_vectorizer")
    return [
        ml("two", "FeatureVectorizer", [d(3, 2), d(3, 1)], inputdimensions=[2, 1]),
        ml("cut and padded", "FeatureVectorizer", [d(3, 3), d(3, 1), d(3, 2)], inputdimensions=[2, 3, 2]),
        ml("one axis", "FeatureVectorizer", [d(3), d(2)], inputdimensions=[3, 2]),
        ml("integers", "FeatureVectorizer", [d.integers(2, 2, dtype=np.int64), d.integers(2, 1, dtype=np.int64)], inputdimensions=[2, 1]),
    ]


def linear_regressor():
    d = Draw("linear_regressor")
    two = dict(coefficients=[0.5, -0.25, 1.5, 0.75, 0.125, -1.0], intercepts=[0.5, -1.5], targets=2)
    near = dict(coefficients=[0.03, -0.01, 0.05, 0.04, 0.01, -0.04], intercepts=[0.25, 0.75], targets=2)
    return [
        ml("one target", "LinearRegressor", [d(3, 3)], coefficients=[0.5, -0.25, 1.5], intercepts=[0.125]),
        ml("no intercepts", "LinearRegressor", [d(3, 3)], coefficients=[0.5, -0.25, 1.5]),
        ml("two targets", "LinearRegressor", [d(4, 3)], **two),
        ml("softmax", "LinearRegressor", [d(4, 3)], post_transform="SOFTMAX", **two),
        ml("logistic", "LinearRegressor", [d(4, 3)], post_transform="LOGISTIC", **two),
        ml("softmax without zeros", "LinearRegressor", [d(4, 3)], post_transform="SOFTMAX_ZERO", **two),
        ml("softmax with a zero", "LinearRegressor", [np.array([[1, 2, 0], [2, 0, 1.5]], np.float32)], post_transform="SOFTMAX_ZERO",
           coefficients=[0.5, -0.25, 1.5, 0.75, 0.125, -1.0], targets=2, flags="OT_CASE_NO_GRAD"),
        ml("probit", "LinearRegressor", [d(4, 3)], post_transform="PROBIT", terms=2, **near),
    ]


def linear_classifier():
    d = Draw("linear_classifier")
    three = dict(coefficients=[0.5, -0.25, 1.5, 0.75, 0.125, -1.0], intercepts=[0.5, -0.25, 0.125])
    one = dict(coefficients=[0.5, -0.75], intercepts=[0.125])
    both = (0, 1)
    return [
        ml("three classes", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[7, -2, 5], **three),
        ml("softmax", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[7, -2, 5], post_transform="SOFTMAX", **three),
        ml("logistic", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[7, -2, 5], post_transform="LOGISTIC", **three),
        ml("integers", "LinearClassifier", [d.integers(3, 2, low=-9, high=9, dtype=np.int64)], both, classlabels_ints=[7, -2, 5], **three),
        ml("two classes of one score", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[3, 8], **one),
        ml("two classes of one score, logistic", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[3, 8], post_transform="LOGISTIC", **one),
        ml("two classes of one score, softmax", "LinearClassifier", [d(4, 2)], both, classlabels_ints=[3, 8], post_transform="SOFTMAX", **one),
        ml("one score", "LinearClassifier", [d(4, 2)], both, **one),
    ]


def binarizer():
    d = Draw("binarizer")
    return [
        ml("numbers", "Binarizer", [d(3, 4)], threshold=0.25),
        ml("no threshold", "Binarizer", [np.array([-1, 0, 2], np.float32)]),
    ]


def one_hot_encoder():
    return [
        ml("integers", "OneHotEncoder", [np.array([[3, 1], [7, 2]], np.int64)], cats_int64s=[1, 2, 3]),
        ml("floats are cut", "OneHotEncoder", [np.array([1.75, -2.5, 9], np.float32)], cats_int64s=[-2, 1]),
        ml("the last of equal categories", "OneHotEncoder", [np.array([1, 2], np.int64)], cats_int64s=[1, 2, 1], zeros=0),
    ]


OPERATORS = [skip_layer_normalization, skip_simplified_layer_normalization, embed_layer_normalization, fused_conv, fused_gemm, rotary_embedding,
             multi_head_attention, attention, group_query_attention, mat_mul_n_bits, dynamic_quantize_linear, mat_mul_integer, q_linear_mat_mul,
             conv_integer, q_linear_conv, scaler, normalizer, imputer, array_feature_extractor, feature_vectorizer, linear_regressor,
             linear_classifier, binarizer, one_hot_encoder]


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by record_onnxruntime.py with ONNX Runtime {onnxruntime.__version__}.")
    print("#ifndef OT_TESTS_RECORDED_ONNXRUNTIME_H\n#define OT_TESTS_RECORDED_ONNXRUNTIME_H")
    print("// clang-format off")
    for operator in OPERATORS:
        cases = operator()
        print(f"#define RECORDED_{operator.__name__.upper()} \\")
        for text in cases[:-1]:
            print(f"    {text}, \\")
        print(f"    {cases[-1]}")
    print("#endif")


if __name__ == "__main__":
    main()
