# SPDX-License-Identifier: Apache-2.0
"""A small network, its artifacts and its mathematics in numpy: what the tests of the package have in common."""

import os
import tempfile
import unittest
from pathlib import Path

import numpy as np

from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

TEXT = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 3] x) => (float[N, 2] y)
<float[3, 4] w1 = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.1, -0.3, 0.2}, float[4] b1 = {0.1, 0.2, 0, -0.1},
 float[4, 2] w2 = {0.5, -0.4, 0.3, 0.2, -0.1, 0.6, 0.7, -0.3}, float[2] b2 = {0.05, -0.05}>
{ m = MatMul(x, w1) a = Add(m, b1) h = Relu(a) n = MatMul(h, w2) y = Add(n, b2) }
"""
NAMES = ["w1", "b1", "w2", "b2"]
START = {
    "w1": np.array([[0.1, -0.2, 0.3, 0.4], [-0.5, 0.6, 0.7, -0.8], [0.9, 0.1, -0.3, 0.2]], np.float32),
    "b1": np.array([0.1, 0.2, 0, -0.1], np.float32),
    "w2": np.array([[0.5, -0.4], [0.3, 0.2], [-0.1, 0.6], [0.7, -0.3]], np.float32),
    "b2": np.array([0.05, -0.05], np.float32),
}


def batch(number=0, rows=5):
    draw = np.random.default_rng(number)
    return draw.normal(size=(rows, 3)).astype(np.float32), draw.integers(0, 2, rows)


def cross_entropy(parameters, x, labels):
    """Loss and gradients of the formula, in f64."""
    p = {name: value.astype(np.float64) for name, value in parameters.items()}
    h = np.maximum(x @ p["w1"] + p["b1"], 0)
    y = h @ p["w2"] + p["b2"]
    probability = np.exp(y - y.max(1, keepdims=True))
    probability /= probability.sum(1, keepdims=True)
    dy = (probability - np.eye(2)[labels]) / len(labels)
    dh = (dy @ p["w2"].T) * (h > 0)
    loss = -np.log(probability[np.arange(len(labels)), labels]).mean()
    return loss, {"w1": x.T @ dh, "b1": dh.sum(0), "w2": h.T @ dy, "b2": dy.sum(0)}


class NetworkTest(unittest.TestCase):
    """Has the artifacts of the network in `self.directory`."""

    options = {"loss": LossType.CrossEntropyLoss, "optimizer": OptimType.SGD}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        generate_artifacts(TEXT, artifact_directory=self.folder, **self.options)

    def load(self):
        self.state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        self.module = Module(self.folder / "training_model.onnx", self.state, self.folder / "eval_model.onnx")
        self.optimizer = Optimizer(self.folder / "optimizer_model.onnx", self.module)
        return self.module


class ErrorsTest(NetworkTest):
    """Works in that directory, with a state, a module and an optimizer; compares what is refused."""

    options = {"loss": LossType.CrossEntropyLoss, "optimizer": OptimType.AdamW, "nominal_checkpoint": True}

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.load()

    def make(self, training="training_model.onnx", checkpoint="checkpoint", evaluation="eval_model.onnx", **options):
        return Module(training, CheckpointState.load_checkpoint(checkpoint), evaluation, **options)

    def refuse(self, *rows):
        """Each row: what is called, the class, what the message says."""
        for call, error, text in rows:
            with self.subTest(text):
                with self.assertRaisesRegex(error, text) as caught:
                    call()
                self.assertNotIn("\n", str(caught.exception))
