# SPDX-License-Identifier: Apache-2.0
"""ORTTrainer over a small encoder that PyTorch exported: the losses are those of PyTorch's own training, which
record_orttrainer.py wrote down."""

import tempfile
import unittest
from pathlib import Path

import numpy as np

from onnxtrain import ORTTrainer, ORTTrainerOptions, _core, optim
from onnxtrain.optim.lr_scheduler import _LRScheduler

FOLDER = Path(__file__).resolve().parent / "orttrainer"
RECORDED = np.load(FOLDER / "encoder.npz")
LR, DECAY = 0.01, 0.05
SYMBOLIC = {
    "inputs": [("ids", ["rows", "length"]), ("mask", ["rows", "length"]), ("label", ["rows"])],
    "outputs": [("loss", [], True), ("scores", ["rows", 3])],
}
FIXED = {
    "inputs": [("ids", [8, 8]), ("mask", [8, 8]), ("label", [8])],
    "outputs": [("loss", [], True), ("scores", [8, 3])],
}


def batches():
    return zip(RECORDED["ids"], RECORDED["mask"], RECORDED["label"])


def make(config=None, options=None, description=SYMBOLIC, file="encoder.onnx"):
    config = config or optim.AdamConfig(lr=LR)
    return ORTTrainer(FOLDER / file, description, config, None, ORTTrainerOptions(options or {}))


def losses(trainer, n=None):
    return np.array([trainer.train_step(*one)[0].item() for one in list(batches())[:n]])


class EncoderTest(unittest.TestCase):
    def assert_recorded(self, found, name):
        np.testing.assert_allclose(found, RECORDED[name], rtol=2e-3)

    def test_training(self):
        for description in (SYMBOLIC, FIXED):
            with self.subTest(description=description["inputs"][0]):
                self.assert_recorded(losses(make(description=description)), "plain")

    def test_accumulation(self):
        trainer = make(options={"batch": {"gradient_accumulation_steps": 4}})
        self.assert_recorded(losses(trainer), "accumulated")
        self.assertEqual(trainer._train_step_info.optimization_step, 6)

    def test_a_schedule(self):
        self.assert_recorded(losses(make(options={"lr_scheduler": optim.LinearWarmupLRScheduler(20, 0.25)})), "linear")

    def test_a_schedule_of_ones_own(self):
        class Linear(_LRScheduler):
            def get_lr(self, train_step_info):
                step = train_step_info.optimization_step
                return [LR * (step / 5 if step < 5 else max(0, 20 - step) / 15)]

        self.assert_recorded(losses(make(options={"lr_scheduler": Linear()})), "linear")

    def test_frozen_weights(self):
        names = _core.Model.load(str(FOLDER / "encoder.onnx")).initializer_names()
        frozen = [name for name in names if name.startswith(("words", "layers.0."))]
        self.assertEqual(len(frozen), 17)
        self.assert_recorded(losses(make(options={"utils": {"frozen_weights": frozen}})), "frozen")

    def test_groups_of_weights(self):
        names = _core.Model.load(str(FOLDER / "encoder.onnx")).initializer_names()
        plain = [name for name in names if name.endswith("bias") or "norm" in name]
        config = optim.AdamConfig([{"params": plain, "lambda_coef": 0.0}], lr=LR, lambda_coef=DECAY)
        self.assert_recorded(losses(make(config)), "groups")

    def test_shapes_may_change(self):
        trainer = make()
        for rows, length in ((8, 8), (3, 5), (1, 8), (8, 4)):
            ids, mask, label = next(batches())
            loss, scores = trainer.train_step(ids[:rows, :length], mask[:rows, :length], label[:rows])
            self.assertEqual((loss.shape, scores.shape), ((), (rows, 3)))
        with self.assertRaisesRegex(AssertionError, "length|mask"):
            trainer.train_step(ids, mask[:, :5], label)
        with self.assertRaisesRegex(AssertionError, "ids"):
            make(description=FIXED).train_step(ids[:3], mask[:3], label[:3])

    def test_dropout_is_the_same_twice(self):
        options = {"debug": {"deterministic_compute": True}, "onnxtrain": {"seed": 3}}
        one, other = (losses(make(options=options, file="encoder_dropout.onnx"), 8) for _ in range(2))
        np.testing.assert_array_equal(one, other)
        options["onnxtrain"]["seed"] = 4
        self.assertGreater(np.abs(losses(make(options=options, file="encoder_dropout.onnx"), 8) - one).max(), 1e-3)

    def test_recompute(self):
        expected = losses(make(options={"onnxtrain": {"seed": 3}}, file="encoder_dropout.onnx"), 8)
        for recompute in (
            {"attn_dropout_recompute": True},
            {"gelu_recompute": True},
            {"transformer_layer_recompute": True},
            {"transformer_layer_recompute": True, "number_recompute_layers": 1},
            {"attn_dropout_recompute": True, "gelu_recompute": True, "transformer_layer_recompute": True},
        ):
            with self.subTest(recompute=recompute):
                options = {"onnxtrain": {"seed": 3}, "graph_transformer": recompute}
                np.testing.assert_array_equal(losses(make(options=options, file="encoder_dropout.onnx"), 8), expected)

    def test_going_on_from_a_checkpoint(self):
        options = {"batch": {"gradient_accumulation_steps": 4}, "lr_scheduler": optim.LinearWarmupLRScheduler(20, 0.25)}
        with tempfile.TemporaryDirectory() as folder:
            for file in ("encoder.onnx", "encoder_dropout.onnx"):
                with self.subTest(file):
                    expected = losses(make(options=options, file=file))
                    one, other = make(options=options, file=file), make(options=options, file=file)
                    found = losses(one, 10)
                    one.save_checkpoint(Path(folder) / file)
                    other.load_checkpoint(Path(folder) / file)
                    rest = [other.train_step(*data)[0].item() for data in list(batches())[10:]]
                    np.testing.assert_array_equal([*found, *rest], expected)

    def test_the_trained_model(self):
        trainer, one = make(), next(batches())
        losses(trainer)
        expected = trainer.eval_step(*one)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trained.onnx"
            trainer.save_as_onnx(path)
            again = ORTTrainer(path, SYMBOLIC, optim.SGDConfig())
        for found, wanted in zip(again.eval_step(*one), expected):
            np.testing.assert_array_equal(found, wanted)

    def test_evaluation_drops_nothing(self):
        one = next(batches())
        expected = make().eval_step(*one)[0].item()
        self.assertAlmostEqual(make(file="encoder_dropout.onnx").eval_step(*one)[0].item(), expected, places=5)
        self.assertAlmostEqual(expected, RECORDED["plain"][0], places=4)


if __name__ == "__main__":
    unittest.main()
