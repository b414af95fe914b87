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
            (lambda: self.train(optimizer="adam"), "none of adamw, sgd, sgd-momentum; did you mean 'adamw'?"),
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
        self.assertEqual(str(caught.exception), "loss 'hinge' is none of none, cross-entropy, mse, l1, bce-with-logits")

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
                (lambda: onnxtrain.check(name), f"{name}: is a folder of artifacts, not a model"),
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
