#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime gives for models that carry texts, for test_texts.py; needs onnx and onnxruntime.

usage: record_texts.py [OUT.json]

Every case is a model in ONNX's textual syntax, what it is fed with and what it gives, or null where onnxruntime has an error.
"""
import json
import pathlib
import sys

import numpy as np
import onnx.parser
import onnxruntime

TEXTS = ["string", [2, 3], ["a", "bb", "", "d\u00e9", "e\0f", "a"]]
KEYS = 'keys_strings=["a", "bb"]'
HEAD = "net (string[A,B] s) => (string[C,D] t) "
LIST = "net (string[N] s) => (string[M] t) "

# name, opset, graph, feeds besides s. onnxruntime 1.32 gathers only the first text of slices of several, so here they have one.
CASES = [
    ("Identity", 17, HEAD + "{ t = Identity(s) }", {}),
    ("an input that is an output", 17, "net (string[A,B] s) => (string[A,B] s) {}", {}),
    ("Reshape", 17, HEAD + "<int64[2] h = {3, -1}> { t = Reshape(s, h) }", {}),
    ("Flatten", 17, HEAD + "{ t = Flatten<axis=0>(s) }", {}),
    ("Unsqueeze", 17, "net (string[A,B] s) => (string[C,D,E] t) <int64[1] h = {1}> { t = Unsqueeze(s, h) }", {}),
    ("Squeeze", 17, HEAD + "<int64[1] h = {1}> { u = Unsqueeze(s, h) t = Squeeze(u, h) }", {}),
    ("Transpose", 17, HEAD + "{ t = Transpose(s) }", {}),
    ("Gather", 17, "net (string[A,B] s, int64[N] i) => (string[C,D] t) { t = Gather<axis=1>(s, i) }",
     {"i": ["int64", [2], [-1, 1]]}),
    ("Gather beyond", 17, "net (string[A,B] s, int64[N] i) => (string[C,D] t) { t = Gather(s, i) }",
     {"i": ["int64", [1], [2]]}),
    ("Gather of a constant", 17,
     'net (string[A,B] s, int64[N] i) => (string[C] t) <string[3] names = {"x", "", "z"}> { t = Gather(names, i) }',
     {"i": ["int64", [3], [2, 1, 2]]}),
    ("GatherElements", 17,
     "net (string[A,B] s, int64[N,M] i) => (string[C,D] t) { t = GatherElements<axis=1>(s, i) }",
     {"i": ["int64", [2, 2], [2, 0, 1, -1]]}),
    ("GatherElements beyond", 17,
     "net (string[A,B] s, int64[N,M] i) => (string[C,D] t) { t = GatherElements<axis=1>(s, i) }",
     {"i": ["int64", [1, 1], [3]]}),
    ("GatherND", 17, "net (string[A,B] s, int64[N,M] i) => (string[C] t) { t = GatherND(s, i) }",
     {"i": ["int64", [2, 2], [1, 0, 0, 1]]}),
    ("GatherND beyond", 17, "net (string[A,B] s, int64[N,M] i) => (string[C] t) { t = GatherND(s, i) }",
     {"i": ["int64", [1, 2], [0, 3]]}),
    ("Slice", 17, HEAD + "<int64[2] b = {1, 2}, int64[2] e = {-9, 0}, int64[2] a = {0, 1}, int64[2] p = {-1, -1}>"
     "{ t = Slice(s, b, e, a, p) }", {}),
    ("Slice of nothing", 17, HEAD + "<int64[1] b = {1}, int64[1] e = {1}> { t = Slice(s, b, e) }", {}),
    ("Concat", 17, HEAD + "{ t = Concat<axis=1>(s, s) }", {}),
    ("Split", 17, "net (string[A,B] s) => (string[C,D] t, string[E,F] u) <int64[2] h = {1, 2}>"
     "{ t, u = Split<axis=1>(s, h) }", {}),
    ("Expand", 17, "net (string[A,B] s) => (string[C,D,E] t) <int64[3] h = {2, 2, 3}> { t = Expand(s, h) }", {}),
    ("Tile", 17, HEAD + "<int64[2] h = {1, 2}> { t = Tile(s, h) }", {}),
    ("Where", 17, "net (string[A,B] s, bool[B] c, string u) => (string[C,D] t) { t = Where(c, s, u) }",
     {"c": ["bool", [3], [True, False, True]], "u": ["string", [], ["no"]]}),
    ("ScatterElements", 17,
     "net (string[A,B] s, int64[N,M] i, string[N,M] u) => (string[C,D] t) { t = ScatterElements<axis=1>(s, i, u) }",
     {"i": ["int64", [1, 2], [2, 0]], "u": ["string", [1, 2], ["x", "y"]]}),
    ("ScatterElements beyond", 17,
     "net (string[A,B] s, int64[N,M] i, string[N,M] u) => (string[C,D] t) { t = ScatterElements<axis=1>(s, i, u) }",
     {"i": ["int64", [1, 1], [-4]], "u": ["string", [1, 1], ["x"]]}),
    ("Scatter", 10, "net (string[A,B] s, int64[N,M] i, string[N,M] u) => (string[C,D] t) { t = Scatter<axis=1>(s, i, u) }",
     {"i": ["int64", [1, 2], [2, 0]], "u": ["string", [1, 2], ["x", "y"]]}),
    ("ScatterND", 17, "net (string[A,B] s, int64[N,M] i, string[N] u) => (string[C,D] t) { t = ScatterND(s, i, u) }",
     {"i": ["int64", [2, 2], [1, 0, 0, 1]], "u": ["string", [2], ["x", ""]]}),
    ("Equal", 19, "net (string[A,B] s, string[B] u) => (bool[C,D] t) { t = Equal(s, u) }",
     {"u": ["string", [3], ["a", "e\0f", "a"]]}),
    ("Shape and Size", 17, "net (string[A,B] s) => (int64[C] t, int64 u) { t = Shape(s) u = Size(s) }", {}),
    ("CastLike", 17, "net (string[A,B] s, string u) => (string[C,D] t) { t = CastLike(s, u) }",
     {"u": ["string", [], ["no"]]}),
    ("texts to texts", 17, HEAD + "{ t = Cast<to=8>(s) }", {}),
    ("f32 to texts", 17, "net (string[A,B] s, float[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["float32", [13], [1.5, -0.0, 0, "nan", "inf", "-inf", 1e10, 1e-7, 3.14159274, 16777216, 1e38, 0.1, 123456.789]]}),
    ("f64 to texts", 17, "net (string[A,B] s, double[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["float64", [5], [1.5, 1 / 3, -1.2345678e-300, 1e300, 3.14159265358979]]}),
    ("f16 to texts", 17, "net (string[A,B] s, float16[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["float16", [3], [1.5, 0.1, 65504]]}),
    ("i64 to texts", 17, "net (string[A,B] s, int64[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["int64", [3], [-5, 2**63 - 1, -(2**63)]]}),
    ("u64 to texts", 17, "net (string[A,B] s, uint64[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["uint64", [1], [2**64 - 1]]}),
    ("i8 to texts", 17, "net (string[A,B] s, int8[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["int8", [2], [-5, 65]]}),
    ("bool to texts", 17, "net (string[A,B] s, bool[N] x) => (string[M] t) { t = Cast<to=8>(x) }",
     {"x": ["bool", [2], [True, False]]}),
    ("an index by way of strings", 17,
     "net (string[A,B] s, int64[N] x) => (string[M] t, int64[K] u) { v = Cast<to=8>(x) w = Concat<axis=0>(v, v)"
     "t = Transpose(w) u = Cast<to=7>(w) }", {"x": ["int64", [2], [7, -1]]}),
    ("constants", 17, 'net (string[A,B] s) => (string[C] t, string u, string[2] v) { t = Constant<value_strings=["x", ""]>()'
     'u = Constant<value_string="y">() v = Constant<value=string[2] {"p", "q"}>() }', {}),
    ("a chain", 17, "net (string[A,B] s, int64[N] i) => (string[C,D] t) <int64[2] h = {2, 1}>"
     "{ a = Transpose(s) b = Gather<axis=1>(s, i) d = Transpose(b) c = Concat<axis=0>(d, a, d) t = Tile(c, h) }",
     {"i": ["int64", [2], [2, 0]]}),
    ("words of words", 17, HEAD + f'{{ t = ai.onnx.ml.LabelEncoder<{KEYS}, values_strings=["one", ""]>(s) }}', {}),
    ("words of words, another default", 17,
     HEAD + f'{{ t = ai.onnx.ml.LabelEncoder<{KEYS}, values_strings=["one", ""], default_string="?">(s) }}', {}),
    ("words of numbers", 17, "net (string[A,B] s, int64[N] x) => (string[M] t)"
     '{ t = ai.onnx.ml.LabelEncoder<keys_int64s=[0, 1], values_strings=["no", "yes"]>(x) }',
     {"x": ["int64", [3], [1, 7, 0]]}),
    ("words of floats", 17, "net (string[A,B] s, float[N] x) => (string[M] t)"
     '{ t = ai.onnx.ml.LabelEncoder<keys_floats=[0.5, 1.0], values_strings=["half", "one"]>(x) }',
     {"x": ["float32", [3], [1, 7, 0.5]]}),
    ("Pad", 17, HEAD + "<int64[4] h = {1, 0, 0, 1}> { t = Pad(s, h) }", {}),
    ("Trilu", 17, HEAD + "{ t = Trilu(s) }", {}),
    ("ConstantOfShape", 17, 'net (string[A,B] s, int64[N] i) => (string[C] t)'
     '{ t = ConstantOfShape<value=string[1] {"p"}>(i) }', {"i": ["int64", [1], [2]]}),
]  # fmt: skip
NUMBERS = ["1", " 7", "7 ", "-2.5", "1e3", "NaN", "-inf", "INF", "+3", "abc", "", "0x10", "300", "1\0", "9" * 20, "1e400", "-1"]
TO = {"float": 1, "double": 11, "float16": 10, "int64": 7, "int32": 6, "int8": 3, "uint8": 2, "uint64": 13, "bool": 9}
CASES += [
    (f"{text!r} to {name}", 17, f"net (string[N] s) => ({name}[N] t) {{ t = Cast<to={number}>(s) }}",
     {"s": ["string", [1], [text]]})
    for name, number in TO.items() for text in NUMBERS
]  # fmt: skip


def array_of(dtype, shape, values):
    return np.array(values, object if dtype == "string" else dtype).reshape(shape)


def plain(array):
    array = np.asarray(array)
    values = array.ravel().tolist()
    if array.dtype.kind == "f":
        values = [value if np.isfinite(value) else str(value) for value in values]
    return ["string" if array.dtype == object else array.dtype.name, list(array.shape), values]


def model_text(opset, graph):
    return f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 2]> {graph}'


def record(opset, graph, feeds):
    model = onnx.parser.parse_model(model_text(opset, graph))
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = {one.name for one in session.get_inputs()}
        return [plain(one) for one in session.run(None, {n: array_of(*v) for n, v in feeds.items() if n in names})]
    except Exception:
        return None


def main():
    onnxruntime.set_default_logger_severity(4)
    out = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("onnxruntime_texts.json")
    cases = []
    for name, opset, graph, more in CASES:
        feeds = {"s": TEXTS, **more}
        cases.append({"name": name, "model": model_text(opset, graph), "feeds": feeds, "out": record(opset, graph, feeds)})
    with open(out, "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")


if __name__ == "__main__":
    main()
