# SPDX-License-Identifier: Apache-2.0
"""The Python of README.md, docs/python.md and examples/python does what it says; the commands of docs/recipes.md and
docs/tutorial.md run."""

import contextlib
import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from network import TEXT, batch
from orttrainer_network import with_loss

import onnxtrain
from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

ROOT = Path(__file__).resolve().parents[2]
NAMES = {b"w1": b'"fc1.weight"', b"b1": b'"fc1.bias"', b"w2": b'"fc2.weight"', b"b2": b'"fc2.bias"'}


def digit_score(weights, image, digit):
    """The score of examples/digits/digits.onnxtxt, without dropout, in f64."""

    def convolve(x, name):
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
        return np.einsum("chwij,ocij->ohw", windows, weights[name + "_weight"]) + weights[name + "_bias"][:, None, None]

    x = np.maximum(convolve(np.maximum(convolve(image, "conv1"), 0), "conv2"), 0)
    x = x.reshape(len(x), 4, 2, 4, 2).max((2, 4)).ravel()
    x = np.maximum(weights["fc1_weight"] @ x + weights["fc1_bias"], 0)
    return weights["fc2_weight"][digit] @ x + weights["fc2_bias"][digit]


class AdversarialTest(unittest.TestCase):
    def test_the_digits_mislead_along_the_slope_of_the_network(self):
        digits = str(ROOT / "examples/digits/digits.csv.gz")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "trained.onnx")
            trained = onnxtrain.train(
                ROOT / "examples/digits/digits.onnxtxt",
                digits,
                scale=1 / 16,
                max_steps=80,
                learning_rate=4e-3,
                output=path,
                progress=False,
            )
            script, printed = str(ROOT / "examples/python/adversarial.py"), io.StringIO()
            with mock.patch.object(sys, "argv", [script, path, digits]), contextlib.redirect_stdout(printed):
                names = runpy.run_path(script)
        before, after = (int(percent) for percent in re.findall(r"(\d+)%", printed.getvalue()))
        self.assertGreater(before, 80)
        self.assertLess(after, before - 40)

        weights = {name: one.data.astype(np.float64) for name, one in trained.state.parameters}
        image, digit = names["images"][0].astype(np.float64), names["labels"][0]
        slope = names["slope"](names["images"][:1], seed=names["right_score"][:1])[0]
        for row, column in ((2, 3), (4, 4), (5, 2)):
            step = np.zeros(image.shape)
            step[0, row, column] = 1e-6
            difference = digit_score(weights, image + step, digit) - digit_score(weights, image - step, digit)
            self.assertAlmostEqual(slope[0, row, column], difference / 2e-6, places=3)


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
        Path("loss_model.onnxtxt").write_bytes(with_loss(text))
        x, labels = batch(rows=100)
        np.savez("train.npz", x=x, labels=labels)
        self.names = {
            "np": np,
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
            needed = ["onnx"] * ("onnxblock" in block) + ["onnx", "torch"] * ("import torch" in block)
            if any(importlib.util.find_spec(name) is None for name in needed):
                continue
            with self.subTest(block), contextlib.redirect_stdout(io.StringIO()):
                text = re.sub(r'"(model|loss_model)\.onnx"', r'"\1.onnxtxt"', block)
                exec(compile(text, page, "exec"), self.names)
                self.assertTrue(any(Path().glob("*.onnx")))

    def test_readme(self):
        self.run_blocks("README.md", 2)

    def test_python_page(self):
        self.run_blocks("docs/python.md", 5)


class PageTest(unittest.TestCase):
    """The blocks of a page run in its order, in one directory. Those that begin with the name of a file become that file."""

    def make_program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)

    def run_page(self, page):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root, python = Path(folder.name), sys.executable
        (root / "examples").symlink_to(ROOT / "examples")
        # Whether it runs, not how well it learns; the best epoch needs a whole one.
        few_steps = 'case "$*" in *--keep-best*) ;; train*) set -- "$@" --max-steps 12 ;; esac\n'
        self.make_program(root / "bin/onnxtrain", few_steps + f'exec "{python}" -m onnxtrain "$@"\n')
        self.make_program(root / "bin/python3", f'exec "{python}" "$@"\n')
        environment = os.environ | {"PATH": f"{root}/bin:{os.environ['PATH']}", "OMP_WAIT_POLICY": "passive"}
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
        self.assertGreater(len(blocks), 10)
        for kind, text in blocks:
            name = re.match(r"# (\w+\.py)\n", text)
            if name:
                (root / name[1]).write_text(text)
                continue
            if "pkg-config" in text:  # for a library that is installed
                continue
            command = ["sh", "-ec", text] if kind == "sh" else [python, "-c", text]
            done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, text + done.stdout + done.stderr)

    def test_recipes(self):
        self.run_page("docs/recipes.md")

    @unittest.skipIf(
        any(importlib.util.find_spec(name) is None for name in ("torch", "onnxscript", "onnxruntime")),
        "needs torch, onnxscript and onnxruntime",
    )
    def test_tutorial(self):
        self.run_page("docs/tutorial.md")


if __name__ == "__main__":
    unittest.main()
