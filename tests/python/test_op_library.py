# SPDX-License-Identifier: Apache-2.0
"""Operators of a shared library, which is compiled here."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnxtrain

ROOT = Path(__file__).resolve().parents[2]
CC = shutil.which("cc")
MODEL = b"""<ir_version: 8, opset_import: ["" : 17, "example" : 1]> net (float[N, 2] x) => (float[N, 1] y)
<float[2, 3] w1 = {0.5, -0.3, 0.8, 0.1, 0.9, -0.4}, float[3, 1] w2 = {0.3, -0.2, 0.5}>
{ h = MatMul(x, w1) c = example.Center(h) a = example.Squareplus(c) y = MatMul(a, w2) }"""


@unittest.skipIf(CC is None, "there is no C compiler")
class OpLibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.library = Path(folder.name) / "operators.so"
        cls.other = Path(folder.name) / "other.so"
        source = ROOT / "examples" / "op_library" / "operators.c"
        subprocess.run([CC, "-shared", "-fPIC", "-I", onnxtrain.get_include(), source, "-o", cls.library, "-lm"], check=True)
        (Path(folder.name) / "other.c").write_text("int other = 1;\n")
        subprocess.run([CC, "-shared", "-fPIC", Path(folder.name) / "other.c", "-o", cls.other], check=True)

    def test_its_operators_run_and_train(self):
        onnxtrain.load_op_library(self.library)
        onnxtrain.load_op_library(str(self.library))  # once more changes nothing
        x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
        y = x.sum(axis=1, keepdims=True)
        h = x @ np.array([[0.5, -0.3, 0.8], [0.1, 0.9, -0.4]], np.float32)
        h -= h.mean(axis=1, keepdims=True)
        a = (h + np.sqrt(h * h + 4)) / 2
        (found,) = onnxtrain.InferenceSession(MODEL).run(None, {"x": x})
        np.testing.assert_allclose(found, a @ np.array([[0.3], [-0.2], [0.5]], np.float32), rtol=1e-5, atol=1e-6)
        result = onnxtrain.train(MODEL, (x, y), loss="mse", epochs=200, learning_rate=0.02, batch_size=4, progress=False)
        self.assertLess(result.history[-1]["loss"], result.history[0]["loss"] / 20)

    def test_what_is_no_library_of_operators(self):
        onnxtrain.SessionOptions().register_custom_ops_library(str(self.library))
        with self.assertRaisesRegex(FileNotFoundError, "/no/such.so: cannot be opened"):
            onnxtrain.load_op_library("/no/such.so")
        with self.assertRaisesRegex(onnxtrain.FormatError, r"other.so: it does not define ot_op_library\(\)"):
            onnxtrain.load_op_library(self.other)
        with self.assertRaises(TypeError):
            onnxtrain.load_op_library(3)


if __name__ == "__main__":
    unittest.main()
