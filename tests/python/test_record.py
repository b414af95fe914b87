# SPDX-License-Identifier: Apache-2.0
"""A trained model says how it was trained, and train() does the same."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import TEXT

import onnxtrain
from onnxtrain import _core
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts


def points(rows=64, seed=0):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, 3)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(np.int64)


def train(model, data, **options):
    options = {"epochs": 1, "progress": False, **options}
    return onnxtrain.train(model, data, **options)


class RecordTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.trained = self.folder / "trained.onnx"

    def make(self, data, **options):
        result = train(TEXT, data, **options)
        result.export(self.trained)
        return result

    def test_what_was_done_with_the_data_is_done_again(self):
        x, labels = points()
        how = {"scale": 1 / 3, "mean": [0.1], "std": [0.7]}
        self.make((x, labels), **how)
        told = train(self.trained, (x, labels), ignore_recorded=True, loss="cross-entropy", **how)
        again = train(self.trained, (x, labels))
        self.assertEqual(again.history[-1]["loss"], told.history[-1]["loss"])
        self.assertEqual(again.evaluate((x, labels)), told.evaluate((x, labels)))
        model = _core.Model.load(str(self.trained))
        self.assertEqual(model.metadata("onnxtrain.data.scale"), "0.3333333333333333")
        self.assertEqual(_core.Record.read(model).data(), (1 / 3, [0.1], [0.7], None))

    def test_names_that_are_not_utf8_are_shown(self):
        self.make(points(), target="labels")
        self.trained.write_bytes(self.trained.read_bytes().replace(b"labels", b"lab\xffls"))
        record = _core.Record.read(_core.Model.load(str(self.trained)))
        with self.assertRaisesRegex(onnxtrain.FormatError, r"'lab\\xffls' is not UTF-8, which names are in Python"):
            record.losses()

    def test_so_is_the_loss(self):
        x, labels = points()
        options = {"class_weights": [1, 3], "ignore_index": -1, "reduction": "sum"}
        self.make((x, labels), **options)
        told = train(self.trained, (x, labels), ignore_recorded=True, **options)
        again = train(self.trained, (x, labels))
        self.assertEqual(again.history[-1]["loss"], told.history[-1]["loss"])
        said = train(self.trained, (x, labels), class_weights=[1, 3], loss="cross-entropy")
        self.assertEqual(said.history[-1]["loss"], told.history[-1]["loss"])

    def test_what_is_given_must_be_what_is_recorded(self):
        x, labels = points()
        self.make((x, labels), scale=0.5)
        for given, text in [
            ({"scale": 1.0}, "scale: 1 is given, the model was trained with 0.5"),
            ({"mean": [1.0]}, "mean: 1 is given, the model was trained with none"),
            ({"loss": "mse"}, "loss: mse is given, the model was trained with cross-entropy:y=labels"),
            ({"reduction": "sum"}, "reduction: sum is given, the model was trained with mean"),
            ({"class_axis": -1}, "class_axis: -1 is given, the model was trained with 1"),
            ({"target": "kind"}, "loss: cross-entropy=kind is given"),
        ]:
            with self.subTest(given), self.assertRaisesRegex(ValueError, text + ".*ignore_recorded=True"):
                train(self.trained, (x, labels), **given)
        train(self.trained, (x, labels), scale=0.5, loss="cross-entropy")

    def test_texts_are_the_same_classes_also_where_one_is_missing(self):
        x, labels = points()
        texts = np.array(["red", "blue"])[labels]
        self.make((x, texts))
        red = labels == 0
        again = train(self.trained, (x[red], texts[red]))
        self.assertEqual(again.classes, ["blue", "red"])
        again.export(self.folder / "again.onnx")
        self.assertEqual(_core.Record.read(_core.Model.load(str(self.folder / "again.onnx"))).data()[3], ["blue", "red"])
        with self.assertRaisesRegex(ValueError, "'green' is not a known class"):
            train(self.trained, (x, np.array(["red", "green"])[labels]))

    def test_artifacts_as_of_onnxruntime_say_nothing(self):
        x, labels = points()
        self.make((x, labels), scale=0.5)
        self.assertTrue(any(key.startswith("onnxtrain.") for key in _core.Model.load(str(self.trained)).metadata_keys()))
        for model in (TEXT, self.trained):
            generate_artifacts(model, loss=LossType.MSELoss, optimizer=OptimType.SGD, artifact_directory=self.folder)
            for name in ("training", "eval", "optimizer"):
                made = _core.Model.load(str(self.folder / f"{name}_model.onnx"))
                self.assertEqual([key for key in made.metadata_keys() if key.startswith("onnxtrain.")], [], name)

    def test_it_is_said_in_one_line(self):
        x, labels = points()
        self.make((x, labels), scale=0.5)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            train(self.trained, (x, labels), progress=True)
        self.assertIn("as the model was trained: loss cross-entropy:y=labels, scale 0.5\n", printed.getvalue())

    def test_check_takes_the_loss_that_is_recorded(self):
        x, labels = points()
        loss = [{"loss": "mse", "input": "y", "target": "wanted"}]
        self.make({"x": x, "wanted": np.zeros((64, 2), np.float32)}, loss=loss)
        self.assertTrue(onnxtrain.check(self.trained).can_train)
        told = onnxtrain.check(self.trained, loss="mse", target="wanted")
        self.assertEqual(str(onnxtrain.check(self.trained)), str(told))
        text = "loss: l1 is given, the model was trained with mse:y=wanted; ignore_recorded=True takes what is given"
        with self.assertRaisesRegex(ValueError, text):
            onnxtrain.check(self.trained, loss="l1")
        self.assertTrue(onnxtrain.check(self.trained, loss="l1", ignore_recorded=True).can_train)


if __name__ == "__main__":
    unittest.main()
