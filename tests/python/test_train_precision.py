# SPDX-License-Identifier: Apache-2.0
"""Element types and values made again, of onnxtrain.train."""

import logging
import os
import tempfile
import unittest

import numpy as np

import onnxtrain
from onnxtrain.api import CheckpointState
from onnxtrain.artifacts import LossType, generate_artifacts


class PrecisionTest(unittest.TestCase):
    """A line through bf16 and f16: the numbers are exact in both, the step of 2^-12 is below their unit at 1."""

    LINE = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 1] x) => (float[N, 1] y)
<float[1, 1] v = {1}> { y = MatMul(x, v) }"""

    def run_in(self, precision, **how):
        scales = []
        x = np.ones((8, 1), np.float32)
        result = onnxtrain.train(
            self.LINE,
            (x, x + np.float32(0.5)),
            progress=False,
            loss="mse",
            optimizer="sgd",
            learning_rate=2**-12,
            batch_size=8,
            epochs=1,
            precision=precision,
            callbacks=[lambda event: scales.append(event.loss_scale) if event.kind == "step" else None],
            **how,
        )
        return float(np.asarray(result.state.parameters["v"].data).item()), result.metrics["loss"], scales

    def test_steps_compute_in_it_and_parameters_stay_f32(self):
        for precision, scale in ("f32", None), ("bf16", None), ("f16", 65536.0):
            with self.subTest(precision):
                self.assertEqual(self.run_in(precision), (1 + 2**-12, 0.25, [scale]))

    def test_rounding_shows(self):
        line = self.LINE.replace(b"{1}", b"{1.001}")  # 1 in bf16
        x = np.ones((8, 1), np.float32)
        how = {"loss": "mse", "optimizer": "sgd", "learning_rate": 0.0, "epochs": 1}
        for precision, loss in ("f32", 1.001**2), ("bf16", 1.0):
            result = onnxtrain.train(line, (x, 0 * x), progress=False, precision=precision, **how)
            self.assertAlmostEqual(result.metrics["loss"], loss, 6)

    def test_a_loss_that_the_least_scale_does_not_help_ends_the_run(self):
        """The state that was saved last is still the one that was good."""
        x = np.ones((64, 1), np.float32)
        x[::2] = 1e30
        scales, saved = [], []

        def look(event):
            if event.kind == "step":
                scales.append(event.loss_scale)
            if event.kind == "saved":
                saved.append(np.asarray(event.result.state.parameters["v"].data).item())

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(onnxtrain.NotFinite):
                onnxtrain.train(
                    self.LINE,
                    (x, x + np.float32(0.5)),
                    progress=False,
                    loss="mse",
                    batch_size=1,
                    epochs=4,
                    precision="f16",
                    checkpoint_dir=folder,
                    save_every=1,
                    callbacks=[look],
                )
            found = CheckpointState.load_checkpoint(os.path.join(folder, "checkpoint"))
        self.assertEqual(scales[-1], 2.0)  # the step at 1 is the error
        self.assertEqual(np.asarray(found.parameters["v"].data).item(), saved[-1])
        self.assertTrue(np.isfinite(saved).all())

    def test_unknown_names_are_refused(self):
        with self.assertRaisesRegex(ValueError, "precision 'fp16' is not one of f32, bf16, f16"):
            self.run_in("fp16")
        with self.assertRaisesRegex(ValueError, "recompute 'gelus' is not one of attn-dropout, gelu, layers"):
            self.run_in("f32", recompute=["gelus"])
        with self.assertRaisesRegex(ValueError, "recompute 'layers=0' is unknown, expected layers=N with N from 1"):
            self.run_in("f32", recompute=["layers=0"])
        with self.assertRaises(TypeError):
            self.run_in("f32", recompute="gelu")

    def test_artifacts_have_it_built_in(self):
        with tempfile.TemporaryDirectory() as folder:
            generate_artifacts(self.LINE, loss=LossType.MSELoss, artifact_directory=folder)
            with self.assertRaisesRegex(ValueError, "precision: the artifacts in .* have this built in"):
                onnxtrain.train(folder, (np.ones((8, 1), np.float32),) * 2, precision="bf16")

    def test_what_is_made_again_makes_the_same_bits(self):
        model = b"""<ir_version: 8, opset_import: ["" : 20]> net (float[N, 4] x) => (float[N, 4] y)
<float[4, 4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> { a = MatMul(x, v) b = Gelu(a) y = MatMul(b, v) }"""
        x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
        log = []
        handler = logging.Handler()
        handler.emit = lambda record: log.append(record.getMessage())
        logging.getLogger("onnxtrain").addHandler(handler)
        self.addCleanup(logging.getLogger("onnxtrain").removeHandler, handler)

        def train(recompute):
            result = onnxtrain.train(model, (x, x), progress=False, loss="mse", epochs=2, recompute=recompute)
            return np.asarray(result.state.parameters["v"].data).tobytes()

        self.assertEqual(train(["gelu"]), train([]))
        self.assertEqual(log, [])
        train(["layers=1", "attn-dropout"])
        self.assertEqual(len(log), 2)  # neither is in the model


if __name__ == "__main__":
    unittest.main()
