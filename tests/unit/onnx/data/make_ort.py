# SPDX-License-Identifier: Apache-2.0
"""Write the .ort files that test_ort_read.c reads: each by ONNX Runtime training 1.19.2, beside it what the same runtime
makes of it as .onnx.

Needs onnxruntime-training-cpu==1.19.2, onnx, and tests/interop/theirs.py for its stand-in for torch.
"""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "interop"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from theirs import artifacts, onnxruntime  # noqa: E402

FORWARD = """<ir_version: 8, opset_import: ["" : 14], producer_name: "made by hand">
mlp (float[batch, 4] x) => (float[batch, 2] y)
<float[3, 4] w1 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, float[3] b1 = {1, 2, 3},
 float[2, 3] w2 = {1, -1, 2, -2, 3, -3}, float[2] b2 = {0.5, -0.5}>
{ h = Gemm <transB = 1> (x, w1, b1) r = Relu (h) y = Gemm <transB = 1> (r, w2, b2) }
"""
# A subgraph that reads values around it, an omitted input, texts, attributes of several kinds, an empty list.
PARTS = """<ir_version: 8, opset_import: ["" : 17], model_version: 3, doc_string: "parts",
  metadata_props: ["author" : "nobody"]>
parts (float[n, 2] x, bool c) => (float[n, 2] y, string[2] t, seq(float[n, 2]) s)
<float top = {6}, string[2] words = {"one", "two"}, int64[3] shape = {0, 1, 2}>
{
  a = Clip (x, , top)
  y = If (c) <then_branch = yes () => (float[n, 2] p) { q = LeakyRelu <alpha = 0.25> (a) p = Add (q, x) },
              else_branch = no () => (float[n, 2] p) { p = Neg (a) }>
  t = Identity (words)
  s = SequenceConstruct (y, x)
}
"""


def convert(source, target):
    """By loading `source` and saving what the session holds, without optimising it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options)


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        forward = onnx.parser.parse_model(FORWARD)
        artifacts.generate_artifacts(forward, requires_grad=["w1", "b1", "w2", "b2"],
                                     loss=artifacts.LossType.CrossEntropyLoss, optimizer=artifacts.OptimType.AdamW,
                                     artifact_directory=folder, ort_format=True)
        for name in ("training", "optimizer"):
            (HERE / f"{name}.ort").write_bytes((work / f"{name}_model.ort").read_bytes())
        onnx.save(onnx.parser.parse_model(PARTS), work / "parts.onnx")
        convert(work / "parts.onnx", HERE / "parts.ort")
        sparse = onnx.helper.make_sparse_tensor(
            onnx.helper.make_tensor("k", onnx.TensorProto.FLOAT, [2], np.array([2.5, -1], np.float32)),
            onnx.helper.make_tensor("k_indices", onnx.TensorProto.INT64, [2], [3, 10]), [3, 4])
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "k"], ["y"])], "sparse",
            [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 4])],
            [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 4])], sparse_initializer=[sparse])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8),
                  work / "sparse.onnx")
        convert(work / "sparse.onnx", HERE / "sparse.ort")
    for name in ("training", "optimizer", "parts"):
        convert(HERE / f"{name}.ort", HERE / f"{name}.converted.onnx")


if __name__ == "__main__":
    main()
