# SPDX-License-Identifier: Apache-2.0
"""A model with two outputs for the tests of onnxblock, and artifacts of it in a directory."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx.parser

from onnxtrain import artifacts
from onnxtrain.api import CheckpointState, Module

TWO = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 2] x) => (float[N, 2] y, float[N, 2] z)
<float[2, 2] w = {1, 2, 3, 4}, float[2] b = {0.5, -0.5}, float[2] k = {2, 3}>
{ m = MatMul(x, w) y = Add(m, b) z = Mul(y, k) }"""
W = np.array([[1, 2], [3, 4]], np.float64)
B = np.array([0.5, -0.5])
K = np.array([2.0, 3.0])
X = np.array([[1, 2], [-1, 0.5], [0.25, -2]], np.float32)
T1 = np.array([[0.1, -3], [2, 1], [0.5, 0.75]], np.float32)
T2 = np.array([[-1, 1], [0, 4], [2.5, -0.5]], np.float32)


def two():
    return onnx.parser.parse_model(TWO)


def value(name, dims, number=1):
    return onnx.helper.make_tensor_value_info(name, number, dims)


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def generate(self, model=None, **options):
        artifacts.generate_artifacts(two() if model is None else model, artifact_directory=self.folder, **options)

    def module(self):
        self.state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        return Module(self.folder / "training_model.onnx", self.state, self.folder / "eval_model.onnx")

    def step(self, *inputs):
        """Loss and gradients of one step with the artifacts in the directory."""
        module = self.module()
        made = module(*inputs)
        return made, {name: parameter.grad for name, parameter in self.state.parameters if parameter.requires_grad}
