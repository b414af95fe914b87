# SPDX-License-Identifier: Apache-2.0
"""What is said of slips: one line that names what was probably meant."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import TEXT

import onnxtrain
from onnxtrain.api import CheckpointState
from onnxtrain.artifacts import LossType, generate_artifacts

TOKENS = b"""<ir_version: 8, opset_import: ["" : 17]>
tokens (float[N, S, 2] x) => (float[N, S, 3] scores) <float[2, 3] w = {1, 2, 3, 4, 5, 6}> { scores = MatMul(x, w) }"""


class MessagesTest(unittest.TestCase):
    def setUp(self):
        self.x = np.zeros((8, 3), np.float32)
        self.labels = np.zeros(8, np.int64)

    def train(self, **options):
        onnxtrain.train(TEXT, (self.x, self.labels), progress=False, **options)

    def test_names_that_were_probably_meant_are_told(self):
        session = onnxtrain.InferenceSession(TEXT)
        gradients = onnxtrain.gradients(TOKENS, "x", seed="ones")
        x = np.zeros((1, 1, 2), np.float32)
        cases = [
            (lambda: self.train(loss="crossentropy"), "did you mean 'cross-entropy'?"),
            (lambda: self.train(loss="bce"), "did you mean 'bce-with-logits'?"),
            (lambda: self.train(optimizer="rmspop"), "did you mean 'rmsprop'?"),
            (lambda: self.train(schedule="consine"), "did you mean 'cosine'?"),
            (lambda: self.train(label="lables"), "the data has no field 'lables', but x, labels; did you mean 'labels'?"),
            (lambda: self.train(bind={"X": "x"}), "there is no input 'X', but x, labels; did you mean 'x'?"),
            (lambda: self.train(trainable=["W1"]), "did you mean 'w1'?"),
            (lambda: self.train(init={"w1": "kaiming"}), "did you mean 'kaiming_uniform'?"),
            (lambda: self.train(loss_input="Y"), "did you mean 'y'?"),
            (lambda: session.run(["Y"], {"x": self.x}), "did you mean 'y'?"),
            (lambda: gradients({"X": x}), "did you mean 'x'?"),
        ]
        for call, text in cases:
            with self.subTest(text), self.assertRaises(onnxtrain.Error) as caught:
                call()
            self.assertTrue(str(caught.exception).endswith(text), caught.exception)

    def test_other_names_are_not_guessed(self):
        with self.assertRaises(onnxtrain.Error) as caught:
            self.train(loss="hinge")
        self.assertEqual(str(caught.exception), "loss 'hinge' is not one of none, cross-entropy, mse, l1, bce-with-logits")

    def test_arrays_that_are_no_numbers_are_refused(self):
        labels = np.array(["a", "b"] * 4, object)
        cases = [
            ((np.full((8, 3), "a"), self.labels), "array 'x' holds <U1, the model takes numbers there"),
            ((self.x.astype(np.complex64), self.labels), "array 'x' is c64, expected real numbers"),
            ((self.x, np.where(np.arange(8) == 2, None, labels)), "array 'labels', row 3: is missing"),
            ((self.x, np.where(np.arange(8) == 5, "", labels)), "array 'labels', row 6: is missing"),
            ((self.x, self.labels + 0.5), "label 0.5 is not a whole number; the loss mse takes such targets"),
        ]
        for data, text in cases:
            with self.subTest(text), self.assertRaises(onnxtrain.Error) as caught:
                onnxtrain.train(TEXT, data, progress=False)
            self.assertTrue(str(caught.exception).endswith(text), caught.exception)

    def test_options_of_the_wrong_kind_are_named(self):
        with self.assertRaisesRegex(ValueError, "^epochs is -1, expected at least 1$"):
            self.train(epochs=-1)
        with self.assertRaisesRegex(TypeError, "^init is str, expected a dict of patterns and kinds$"):
            self.train(init="zeros")

    def test_the_axis_of_the_classes_is_told(self):
        x, tags = np.zeros((4, 2, 2), np.float32), np.zeros((4, 2), np.int64)
        with self.assertRaisesRegex(ValueError, "have their classes on the last axis: class_axis=-1$"):
            onnxtrain.train(TOKENS, (x, tags), progress=False)
        onnxtrain.train(TOKENS, (x, tags), progress=False, epochs=1, class_axis=-1)

    def test_files_of_another_kind_are_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "model.onnxtxt").write_bytes(TEXT)
            generate_artifacts(
                str(folder / "model.onnxtxt"), requires_grad=["w1"], loss=LossType.CrossEntropyLoss, artifact_directory=name
            )
            np.save(folder / "x.npy", self.x)
            checkpoint, model = str(folder / "checkpoint"), str(folder / "eval_model.onnx")
            cases = [
                (lambda: onnxtrain.check(checkpoint), f"{checkpoint}: is a checkpoint, not a model"),
                (lambda: onnxtrain.check(name), f"{name}: is a directory of artifacts, not a model"),
                (lambda: onnxtrain.InferenceSession(folder / "x.npy"), f"{folder}/x.npy: is an .npy array, not a model"),
                (lambda: CheckpointState.load_checkpoint(model), f"{model}: is an ONNX model, not a checkpoint"),
                (
                    lambda: onnxtrain.train(TEXT, checkpoint, progress=False),
                    f"{checkpoint}: is a checkpoint, not data: .npz, .npy, CSV or IDX",
                ),
            ]
            for call, text in cases:
                with self.subTest(text), self.assertRaises(onnxtrain.Error) as caught:
                    call()
                self.assertEqual(str(caught.exception), text)


if __name__ == "__main__":
    unittest.main()
