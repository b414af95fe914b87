# SPDX-License-Identifier: Apache-2.0
"""Scripts written for ONNX Runtime training run after changing only their imports, with the numbers they have there."""

import importlib.util
import json
import os
import runpy
import tempfile
import unittest
from pathlib import Path

import dropin_model
from record_signatures import NUMBERS

from onnxtrain import _core

IMPORTS = (("onnxruntime.training", "onnxtrain"), ("onnxruntime", "onnxtrain"))


def with_imports_changed(script):
    changed = []
    for line in script.splitlines():
        if line.startswith(("import ", "from ")):
            for old, new in IMPORTS:
                line = line.replace(old, new)
            line = line.replace("import onnxtrain", "import onnxtrain as onnxruntime")
        changed.append(line)
    return "\n".join(changed)


class Script:
    """Runs the script of this name in a directory of its own; its results are compared with those it has there."""

    name = ""

    @classmethod
    def setUpClass(cls):
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                for file, text in dropin_model.files().items():
                    _core.Model.load_bytes(text.encode()).save(file)
                script = Path(__file__).with_name(f"{cls.name}.py").read_text()
                Path("script.py").write_text(with_imports_changed(script))
                cls.ours = json.loads(json.dumps(runpy.run_path("script.py")["results"]))
            finally:
                os.chdir(here)
        cls.theirs = json.loads(NUMBERS.read_text())[cls.name]

    def compare(self, ours, theirs, where):
        if isinstance(theirs, dict):
            self.assertEqual(sorted(ours), sorted(theirs), where)
            for name, value in theirs.items():
                self.compare(ours[name], value, f"{where} {name}")
        elif isinstance(theirs, list):
            self.assertEqual(len(ours), len(theirs), where)
            for i, value in enumerate(theirs):
                self.compare(ours[i], value, f"{where} {i}")
        elif isinstance(theirs, float):  # f32, rounded elsewhere, over forty steps
            self.assertIsInstance(ours, float, where)
            self.assertLessEqual(abs(ours - theirs), 2e-5 * max(1.0, abs(theirs)), f"{where}: {ours}, there {theirs}")
        else:
            self.assertEqual(ours, theirs, where)

    def test_every_number_is_that_of_the_original(self):
        self.assertEqual(list(self.ours), list(self.theirs))
        for name, value in self.theirs.items():
            with self.subTest(name):
                self.compare(self.ours[name], value, name)


class DropInTest(Script, unittest.TestCase):
    name = "dropin"

    def test_the_script_learns(self):
        self.assertLess(max(self.ours["losses_of_the_mean"]), 0.5 * self.ours["losses"][0])
        self.assertGreater(self.ours["accuracies"][-1], 0.7)


@unittest.skipIf(importlib.util.find_spec("onnx") is None, "onnx is not installed")
class BlocksTest(Script, unittest.TestCase):
    name = "dropin_blocks"

    def test_the_script_learns(self):
        for losses in (self.ours["sum_losses"], self.ours["hand_losses"]):
            self.assertLess(losses[-1], 0.7 * losses[0])


class EdgesTest(Script, unittest.TestCase):
    name = "dropin_edges"


if __name__ == "__main__":
    unittest.main()
