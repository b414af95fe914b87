"""The Python of README.md and docs/python.md does what it says."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import TEXT, batch

import onnxtrain
from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

ROOT = Path(__file__).resolve().parents[2]
NAMES = {b"w1": b'"fc1.weight"', b"b1": b'"fc1.bias"', b"w2": b'"fc2.weight"', b"b2": b'"fc2.bias"'}


class ExampleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        text = TEXT
        for short, name in NAMES.items():
            text = re.sub(rb"\b" + short + rb"\b", name, text)
        Path("model.onnxtxt").write_bytes(text)
        x, labels = batch(rows=100)
        np.savez("train.npz", x=x, labels=labels)
        self.names = {
            "onnxtrain": onnxtrain,
            "CheckpointState": CheckpointState,
            "Module": Module,
            "Optimizer": Optimizer,
            "x": x,
            "labels": labels,
            "batches": [(x[:50], labels[:50]), (x[50:], labels[50:])],
        }
        generate_artifacts(text, None, None, LossType.CrossEntropyLoss, OptimType.AdamW, "artifacts")

    def run_blocks(self, page, at_least):
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
        self.assertGreaterEqual(len(blocks), at_least)
        for block in blocks:
            with self.subTest(block), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block.replace('"model.onnx"', '"model.onnxtxt"'), page, "exec"), self.names)
                self.assertTrue(any(Path().glob("*.onnx")))

    def test_readme(self):
        self.run_blocks("README.md", 2)

    def test_python_page(self):
        self.run_blocks("docs/python.md", 3)


if __name__ == "__main__":
    unittest.main()
