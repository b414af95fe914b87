# SPDX-License-Identifier: Apache-2.0
"""onnxtrain.prepare(), and what the functions of ONNX Runtime training make of models that it would change."""

import sys
import unittest
from unittest import mock

import numpy as np
from network import NetworkTest

import onnxtrain
from onnxtrain.api import CheckpointState, Module
from onnxtrain.artifacts import LossType, generate_artifacts

try:
    import onnx.parser
except ImportError:
    onnx = None

# Two scales and two biases that began as ones and zeros, as an exporter writes them.
MERGED = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 3] x) => (float[N, 2] y)
<float[3] norm1_scale = {1, 1, 1}, float[3] norm1_bias = {0, 0, 0}, float[3, 2] w = {0.5, -1, 2, 1.5, 0.25, -0.75}>
{
  norm2_scale = Identity(norm1_scale)
  norm2_bias = Identity(norm1_bias)
  a = LayerNormalization<axis = -1>(x, norm1_scale, norm1_bias)
  b = LayerNormalization<axis = -1>(a, norm2_scale, norm2_bias)
  y = MatMul(b, w)
}"""
NAMES = ["norm1_bias", "norm1_scale", "norm2_bias", "norm2_scale", "w"]
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def names_of(folder):
    return CheckpointState.load_checkpoint(folder / "checkpoint").parameters.keys()


def trained(model, **options):
    return [one.name for one in onnxtrain.check(model, loss="mse", **options).parameters if one.role == "trains"]


class PrepareTest(NetworkTest):
    def generate(self, model=MERGED, **options):
        options.setdefault("loss", LossType.MSELoss)
        with self.assertLogs("onnxtrain", "INFO") as log:
            generate_artifacts(model, artifact_directory=self.folder, **options)
        return [record.getMessage() for record in log.records]

    def test_a_model_is_written_with_its_parameters_apart(self):
        path = self.folder / "right.onnx"
        with self.assertLogs("onnxtrain", "INFO") as log:
            self.assertIsNone(onnxtrain.prepare(MERGED, output=path))
        self.assertRegex("\n".join(log.output), "norm1_scale.*norm2_scale")
        with self.assertNoLogs("onnxtrain", "WARNING") if hasattr(self, "assertNoLogs") else mock.MagicMock():
            generate_artifacts(path, loss=LossType.MSELoss, artifact_directory=self.folder)
        self.assertEqual(names_of(self.folder), NAMES)
        before, after = (onnxtrain.InferenceSession(one).run(None, {"x": X})[0] for one in (MERGED, path))
        np.testing.assert_array_equal(before, after)

    @unittest.skipIf(onnx is None, "onnx is not installed")
    def test_a_model_proto_gives_a_model_proto(self):
        given = onnx.parser.parse_model(MERGED.decode())
        size = len(given.graph.initializer)
        right = onnxtrain.prepare(given)
        self.assertIsInstance(right, onnx.ModelProto)
        onnx.checker.check_model(right, full_check=True)
        self.assertEqual(sorted(tensor.name for tensor in right.graph.initializer), NAMES)
        self.assertEqual(len(given.graph.initializer), size)
        path = self.folder / "model.onnx"
        onnx.save(given, path)
        self.assertEqual(onnxtrain.prepare(path), right)
        with mock.patch.dict(sys.modules, {"onnx": None}), self.assertRaisesRegex(ImportError, "or name an output"):
            onnxtrain.prepare(path)

    def test_names_that_are_shared_stay_so(self):
        path = self.folder / "right.onnx"
        onnxtrain.prepare(MERGED, shared=["*_scale"], output=path)
        self.assertEqual(sorted(trained(path, shared="keep")), ["norm1_bias", "norm1_scale", "norm2_bias", "w"])
        self.assertEqual(sorted(trained(MERGED)), NAMES)
        self.assertEqual(sorted(trained(MERGED, shared="keep")), ["norm1_bias", "norm1_scale", "w"])
        with self.assertRaisesRegex(onnxtrain.NotFound, "shared 'nothing'"):
            onnxtrain.prepare(MERGED, shared="nothing", output=path)

    def test_artifacts_take_the_model_as_it_is_and_log_what_would_change(self):
        messages = self.generate()
        self.assertEqual(names_of(self.folder), ["norm1_bias", "norm1_scale", "w"])
        self.assertRegex("\n".join(messages), "(?s)norm1_(scale|bias).*norm2_.*norm1_")

    def test_training_puts_right_unless_told(self):
        data = X, np.zeros((4, 2), np.float32)
        options = {"loss": "mse", "epochs": 1, "progress": False}
        result = onnxtrain.train(MERGED, data, **options)
        self.assertEqual(result.state.parameters.keys(), NAMES)
        result = onnxtrain.train(MERGED, data, shared="keep", **options)
        self.assertEqual(result.state.parameters.keys(), ["norm1_bias", "norm1_scale", "w"])

    def test_a_copy_that_is_named_is_a_parameter(self):
        """Of the copies that `requires_grad` and `frozen_params` name, initializers are made."""
        self.generate(requires_grad=["norm2_scale", "w"], frozen_params=["norm2_bias"])
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        self.assertEqual(
            [(name, p.requires_grad) for name, p in state.parameters],
            [("norm2_bias", False), ("norm2_scale", True), ("w", True)],
        )
        module = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        module(X, np.zeros((4, 2), np.float32))
        self.assertTrue(np.any(state.parameters["norm2_scale"].grad))


if __name__ == "__main__":
    unittest.main()
