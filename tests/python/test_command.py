# SPDX-License-Identifier: Apache-2.0
"""The command as the package has it: `python -m onnxtrain`, and `onnxtrain` where it is installed."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import TEXT

import onnxtrain

MODULE = [sys.executable, "-m", "onnxtrain"]


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "model.onnxtxt").write_bytes(TEXT)
        draw = np.random.default_rng(0)
        x = draw.normal(size=(40, 3)).astype(np.float32)
        np.savez(self.folder / "train.npz", x=x, labels=draw.integers(0, 2, 40))

    def run_command(self, *arguments, command=MODULE, **options):
        return subprocess.run(
            [*command, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300, **options
        )

    def test_it_is_the_command_of_this_version(self):
        done = self.run_command("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(onnxtrain.__version__, done.stdout)

    def test_it_trains_and_its_exit_status_is_the_programs(self):
        done = self.run_command("train", "model.onnxtxt", "--data", "train.npz", "--epochs", "1", "--out", "trained.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(onnxtrain.InferenceSession(self.folder / "trained.onnx").get_inputs()[0].name, "x")
        self.assertEqual(self.run_command("check", "no.onnx").returncode, 1)
        self.assertEqual(self.run_command("train", "--no-such-option").returncode, 2)

    def test_it_takes_names_that_are_not_utf8(self):
        os.rename(self.folder / "model.onnxtxt", os.fsencode(self.folder) + b"/m\xff.onnxtxt")
        done = subprocess.run([*MODULE, "check", b"m\xff.onnxtxt"], cwd=self.folder, capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_reader_that_has_enough_ends_it_quietly(self):
        done = subprocess.Popen(
            [*MODULE, "help", "train"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        done.stdout.close()
        _, said = done.communicate(timeout=300)
        self.assertEqual(said, b"")
        self.assertIn(done.returncode, (0, -signal.SIGPIPE))

    def test_a_program_that_is_missing_is_named(self):
        script = "import onnxtrain.__main__ as m; m.__file__ = '/no/such/place/__main__.py'; m.main()"
        done = self.run_command(command=[sys.executable, "-c", script])
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(
            done.stderr, "onnxtrain: /no/such/place/bin/onnxtrain cannot be run: No such file or directory\n"
        )

    def test_an_installed_package_has_it_on_the_path(self):
        scripts = importlib.metadata.entry_points(group="console_scripts", name="onnxtrain")
        if not list(scripts):
            self.skipTest("the package is not installed")
        done = self.run_command("--version", command=[os.path.join(os.path.dirname(sys.executable), "onnxtrain")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(onnxtrain.__version__, done.stdout)


if __name__ == "__main__":
    unittest.main()
