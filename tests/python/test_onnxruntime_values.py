# SPDX-License-Identifier: Apache-2.0
"""Values of the real onnxruntime as inputs, where it is installed."""

import tempfile
import unittest

import numpy as np
from network import TEXT, batch

from onnxtrain import InferenceSession
from onnxtrain.api import CheckpointState, Module
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

X, LABELS = batch()


def value(array):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


@unittest.skipIf(onnxruntime is None, "onnxruntime is not installed")
class OnnxruntimeValuesTest(unittest.TestCase):
    def test_a_module_takes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            generate_artifacts(
                TEXT, loss=LossType.CrossEntropyLoss, optimizer=OptimType.AdamW, artifact_directory=folder
            )
            state = CheckpointState.load_checkpoint(f"{folder}/checkpoint")
            module = Module(f"{folder}/training_model.onnx", state, f"{folder}/eval_model.onnx")
        module.eval()
        expected = module(X, LABELS)
        np.testing.assert_array_equal(module(value(X), value(LABELS)).numpy(), expected)
        module.train()
        np.testing.assert_array_equal(module(value(X), value(LABELS)).numpy(), module(X, LABELS))

    def test_a_session_takes_them(self):
        session = InferenceSession(TEXT)
        name, output = session.get_inputs()[0].name, session.get_outputs()[0].name
        expected = session.run(None, {name: X})[0]
        np.testing.assert_array_equal(session.run(None, {name: value(X)})[0], expected)
        np.testing.assert_array_equal(session.run_with_ort_values([output], {name: value(X)})[0].numpy(), expected)
        binding, result = session.io_binding(), value(np.zeros_like(expected))
        binding.bind_ortvalue_input(name, value(X))
        binding.bind_ortvalue_output(output, result)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(result.numpy(), expected)


if __name__ == "__main__":
    unittest.main()
