# SPDX-License-Identifier: Apache-2.0
"""Models in which the elements of an input decide on shapes and branches."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

from onnxtrain import InferenceSession
from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

# As decoders with and without a past are merged: the keys of the past stand before those of x.
DECODER = b"""<ir_version: 8, opset_import: ["" : 17]>
decoder (float[B, S, 2] x, float[B, P, 2] past, bool[1] use_cache_branch) => (float[B, S, 2] y, float[B, K, 2] present)
<float[2, 2] w = {1, 2, 3, 4}>
{
    k = MatMul(x, w)
    present = If (use_cache_branch) <then_branch = with_past () => (float[b, k, 2] t) { t = Concat<axis = 1>(past, k) },
        else_branch = no_past () => (float[b, k, 2] e) { e = Identity(k) }>
    c = Transpose<perm = [0, 2, 1]>(present)
    s = MatMul(x, c)
    p = Softmax(s)
    y = MatMul(p, present)
}
"""
# Only the chosen rows have a loss.
CHOSEN = b"""<ir_version: 8, opset_import: ["" : 17]>
chosen (float[N, 2] x, bool[N] mask) => (float[K, 1] y)
<float[2, 1] w = {0.5, -1}, float[1] b = {0.25}, int64[1] axis = {0}>
{ g = Gemm(x, w, b) i = NonZero(mask) j = Squeeze(i, axis) y = Gather(g, j) }
"""
W = np.array([[1, 2], [3, 4]], np.float32)


def decode(x, keys):
    scores = x @ keys.transpose(0, 2, 1)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ keys


class DecidedTest(unittest.TestCase):
    def test_a_decoder_takes_the_branch_that_its_input_says(self):
        draw = np.random.default_rng(3)
        session = InferenceSession(DECODER)
        for uses, length in ((False, 1), (True, 3), (False, 3), (True, 1)):
            x = draw.normal(size=(2, 2, 2)).astype(np.float32)
            past = draw.normal(size=(2, length, 2)).astype(np.float32)
            keys = np.concatenate([past, x @ W], 1) if uses else x @ W
            y, present = session.run(None, {"x": x, "past": past, "use_cache_branch": np.array([uses])})
            np.testing.assert_allclose(present, keys, atol=1e-5)
            np.testing.assert_allclose(y, decode(x, keys), atol=1e-4)

    def test_a_mask_that_differs_in_each_step_trains(self):
        draw = np.random.default_rng(5)
        w, b = np.array([[0.5], [-1]]), 0.25
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            generate_artifacts(CHOSEN, loss=LossType.MSELoss, optimizer=OptimType.SGD, artifact_directory=folder)
            state = CheckpointState.load_checkpoint(folder / "checkpoint")
            module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx")
            optimizer = Optimizer(folder / "optimizer_model.onnx", module)
            optimizer.set_learning_rate(0.1)
            for mask in ([1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1], [1, 0, 1, 1]):
                mask = np.array(mask, bool)
                x = draw.normal(size=(4, 2)).astype(np.float32)
                target = draw.normal(size=(int(mask.sum()), 1)).astype(np.float32)
                residual = x[mask] @ w + b - target
                self.assertAlmostEqual(float(module(x, mask, target)), float((residual**2).mean()), places=5)
                optimizer.step()
                module.lazy_reset_grad()
                slope = 2 * residual / len(residual)
                w, b = w - 0.1 * x[mask].T @ slope, b - 0.1 * slope.sum()
            np.testing.assert_allclose(state.parameters["w"].data, w, atol=1e-5)
            np.testing.assert_allclose(state.parameters["b"].data, [b], atol=1e-5)


if __name__ == "__main__":
    unittest.main()
