# SPDX-License-Identifier: Apache-2.0
"""What the library logs reaches Python's logging."""

import logging
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

from orttrainer_network import batches, make

from onnxtrain import optim

UNREAD = b"""<ir_version: 8, opset_import: ["" : 17]> net (float[N, 2] x) => (float loss)
<float[2] w = {1, 2}> { y = MatMul(x, w) loss = ReduceMean<keepdims = 0>(y) }"""
NO_EFFECT = {"distributed": {"enable_adasum": True}}


class LogTest(unittest.TestCase):
    def test_an_option_without_effect_is_logged_once(self):
        with self.assertLogs("onnxtrain", "DEBUG") as log:
            make(optim.SGDConfig(), NO_EFFECT)
        found = [r for r in log.records if "enable_adasum" in r.getMessage()]
        self.assertEqual([r.levelno for r in found], [logging.WARNING])
        self.assertIn("has no effect", found[0].getMessage())

    def test_messages_of_other_threads(self):
        def work():
            make(optim.SGDConfig(), NO_EFFECT)

        threads = [threading.Thread(target=work) for _ in range(4)]
        with self.assertLogs("onnxtrain", "WARNING") as log:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        names = {r.threadName for r in log.records if "enable_adasum" in r.getMessage()}
        self.assertEqual(names, {thread.name for thread in threads})

    def test_a_handler_that_fails_does_not_stop_the_library(self):
        class Failing(logging.Handler):
            def handle(self, record):
                raise ValueError("as it is meant")

        handler, logger, seen = Failing(), logging.getLogger("onnxtrain"), []
        logger.addHandler(handler)
        hook, sys.unraisablehook = sys.unraisablehook, lambda found: seen.append(str(found.exc_value))
        try:
            make(optim.SGDConfig(), NO_EFFECT).train_step(*batches(1)[0])
        finally:
            sys.unraisablehook = hook
            logger.removeHandler(handler)
        self.assertIn("as it is meant", seen)

    def test_what_a_checkpoint_lacks_is_a_warning(self):
        trainer = make(optim.AdamConfig())
        trainer.train_step(*batches(1)[0])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            trainer.save_checkpoint(path, include_optimizer_states=False)
            with self.assertNoLogs("onnxtrain") if sys.version_info >= (3, 10) else warnings.catch_warnings():
                with self.assertWarnsRegex(UserWarning, "the state has no 'optimizer'"):
                    make(optim.AdamConfig()).load_checkpoint(path)


class ProcessTest(unittest.TestCase):
    """Programs of their own."""

    PROGRAM = """
import atexit, logging, sys
if "late" in sys.argv:
    atexit.register(lambda: make())  # after what onnxtrain registers
from onnxtrain import ORTTrainer, ORTTrainerOptions, optim
logging.basicConfig(format="%(name)s %(levelname)s %(message)s") if "basic" in sys.argv else None
description = {"inputs": [("x", ["n", 2])], "outputs": [("loss", [], True)]}
def make():
    ORTTrainer(TEXT, description, optim.SGDConfig(), options=ORTTrainerOptions(NO_EFFECT))
if "late" not in sys.argv:
    make()
"""

    def run_program(self, *arguments, **environment):
        program = self.PROGRAM.replace("TEXT", repr(UNREAD)).replace("NO_EFFECT", repr(NO_EFFECT))
        clean = {name: value for name, value in os.environ.items() if name not in ("OT_LOG", "OT_PROFILE")}
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env={**clean, **environment}, capture_output=True, text=True, check=True,
        ).stderr

    def test_python_shows_warnings_unless_it_is_told_otherwise(self):
        self.assertRegex(self.run_program(), r"\Aoptions\.\S+ has no effect .*\n\Z")
        self.assertRegex(self.run_program("basic"), r"\Aonnxtrain WARNING options\.\S+ has no effect .*\n\Z")

    def test_the_environment_goes_before(self):
        self.assertRegex(self.run_program(OT_LOG="warning"), r"\Aonnxtrain: warning: options\.\S+ has no effect .*\n\Z")

    def test_when_the_interpreter_ends_nothing_is_called(self):
        self.assertEqual(self.run_program("late"), "")


if __name__ == "__main__":
    unittest.main()
