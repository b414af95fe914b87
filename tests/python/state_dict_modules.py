# SPDX-License-Identifier: Apache-2.0
"""Modules of the small network, with AdamW: what the tests of state dicts have in common."""

import numpy as np
from network import NAMES, NetworkTest, batch

from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts


# Adam over two groups with weight decays of their own: which of them w1, b1, w2 and b2 are in.
GROUPS = """<ir_version: 8, opset_import: ["" : 17, "ai.onnxtrain" : 1]>
adam (float[2] learning_rate, int64[1] step, seq(float[]) params, seq(float[]) gradients,
      seq(float[]) first_order_moments, seq(float[]) second_order_moments) => (bool[1] flag)
{ flag = ai.onnxtrain.AdamOptimizer<lambda = [0.25, 0.5], group = %s, names = ["w1", "b1", "w2", "b2"]>
    (learning_rate, step, params, gradients, first_order_moments, second_order_moments) }"""


class ModulesTest(NetworkTest):
    options = {"loss": LossType.CrossEntropyLoss, "optimizer": OptimType.AdamW}

    def generate(self, model, **options):
        """The artifacts of another model, or by other options."""
        generate_artifacts(model, artifact_directory=self.folder, **self.options, **options)

    def open(self, n_steps, groups=None):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        rule = self.folder / "optimizer_model.onnx" if groups is None else (GROUPS % groups).encode()
        optimizer = Optimizer(rule, module)
        for number in range(n_steps):
            self.step(module, optimizer, number)
        return state, module, optimizer

    def step(self, module, optimizer, number):
        module.train()
        module(*batch(number))
        optimizer.step()
        module.lazy_reset_grad()

    def assert_same(self, one, other):
        for name in NAMES:
            np.testing.assert_array_equal(one.parameters[name].data, other.parameters[name].data)
