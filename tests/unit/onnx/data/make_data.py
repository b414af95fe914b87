# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this directory with the onnx package (1.23): python make_data.py"""
import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser, printer

# ---- storage.onnx: for every element type the same elements twice, in the typed field and as raw bytes ----

VALUES = {
    TensorProto.FLOAT: [0.0, -1.5, 3.25e10], TensorProto.DOUBLE: [0.1, -2.0, 1e300],
    TensorProto.FLOAT16: [0.5, -2.0, 65504.0], TensorProto.BFLOAT16: [1.0, -0.5, 256.0],
    TensorProto.INT8: [-128, 0, 127], TensorProto.UINT8: [0, 1, 255],
    TensorProto.INT16: [-32768, 0, 32767], TensorProto.UINT16: [0, 1, 65535],
    TensorProto.INT32: [-2**31, 0, 2**31 - 1], TensorProto.UINT32: [0, 1, 2**32 - 1],
    TensorProto.INT64: [-2**63, 0, 2**63 - 1], TensorProto.UINT64: [0, 1, 2**64 - 1],
    TensorProto.BOOL: [False, True, True], TensorProto.COMPLEX64: [1 + 2j, -1j, 3],
    TensorProto.COMPLEX128: [1 + 2j, -1j, 3], TensorProto.FLOAT8E4M3FN: [0.5, -2.0, 448.0],
    TensorProto.FLOAT8E4M3FNUZ: [0.5, -2.0, 240.0], TensorProto.FLOAT8E5M2: [0.5, -2.0, 57344.0],
    TensorProto.FLOAT8E5M2FNUZ: [0.5, -2.0, 57344.0], TensorProto.FLOAT8E8M0: [1.0, 2.0, 4.0],
    TensorProto.UINT4: [1, 15, 7], TensorProto.INT4: [-8, 7, -1], TensorProto.FLOAT4E2M1: [0.5, -6.0, 3.0],
    TensorProto.UINT2: [1, 3, 2], TensorProto.INT2: [-2, 1, -1], TensorProto.FLOAT6E2M3: [0.5, -7.5, 1.0],
    TensorProto.FLOAT6E3M2: [0.5, -28.0, 1.0],
}
tensors = []
for dtype, values in VALUES.items():
    name = TensorProto.DataType.Name(dtype).lower()
    typed = helper.make_tensor("typed_" + name, dtype, [3], values)
    raw = numpy_helper.from_array(numpy_helper.to_array(typed), "raw_" + name)
    assert raw.HasField("raw_data") and raw.data_type == dtype
    tensors += [typed, raw]
graph = helper.make_graph([helper.make_node("Identity", ["typed_float"], ["y"])], "storage", [],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])], tensors)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13), "storage.onnx")

# ---- printed.onnxtxt and parsed.onnx: what onnx.printer writes, and what onnx.parser reads from it ----

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1], producer_name: "a \\"quoted\\" name", model_version: 7,
 metadata_props: ["key": "value", "other": ""]>
agraph (float[N, 128, "M+1"] X, float[128,?] W, int64 scalar, bool[] any, seq(float[N]) s,
        map(int64, seq(string)) m, optional(float[2]) o) => (float[N] Y, Z)
  <float[2] b = {1, -2.5}, int64[3] shape = {-1, 0, 9223372036854775807}, bool t = {1}, string[2] names = {"a", "b\\\\c"},
   double[1] d = {1e-300}, float16[1] half = {15360}, uint64[1] u = {18446744073709551615}, float[N] T>
{
  [first] T = MatMul (X, W)
  Q = Op <i = -3, f = 0.5, s = "x y", li = [1, 2], lf = [0.5, 1.5], ls = ["p", "q"], t = float[2] {1, 2},
          none: ints = [], typed: float = 1> (T, "", b)
  Y = local.f <alpha = 2.0> (Q, b)
  Z = If (any) <then_branch = tg () => (float[N] r) { r = Neg (Y) }, else_branch = eg () => (e) <float k = {3}> { e = Add (Y, k) }>
}
<domain: "local", opset_import: ["" : 21]> f <alpha> (a, b) => (c) {
  k = Constant <value_float: float = @alpha> ()
  ab = Mul (a, k)
  c = Add (ab, b)
}
"""
model = parser.parse_model(TEXT)
printed = printer.to_text(model)
with open("printed.onnxtxt", "w") as file:
    file.write(printed)
onnx.save(parser.parse_model(printed), "parsed.onnx")

# ---- sparse.onnx: one sparse initializer by linear indices, one by a coordinate per axis ----

def sparse(name, indices, dims):
    values = helper.make_tensor(name, TensorProto.FLOAT, [2], [2.5, -1.0])
    places = helper.make_tensor(name + "_indices", TensorProto.INT64, list(indices.shape), indices.ravel())
    return helper.make_sparse_tensor(values, places, dims)


graph = helper.make_graph(
    [helper.make_node("Add", ["linear", "placed"], ["y"])], "sparse", [],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4])],
    sparse_initializer=[sparse("linear", np.array([3, 10]), [3, 4]), sparse("placed", np.array([[0, 1], [2, 3]]), [3, 4])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "sparse.onnx")
