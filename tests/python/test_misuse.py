# SPDX-License-Identifier: Apache-2.0
"""Handles in the wrong order, from several threads, and from callbacks."""

import os
import signal
import threading
import unittest
from pathlib import Path

import numpy as np
from network import START, TEXT, ErrorsTest, batch

import onnxtrain
from onnxtrain import _core
from onnxtrain.api import CheckpointState, LinearLRScheduler, Module, Optimizer

load = CheckpointState.load_checkpoint
save = CheckpointState.save_checkpoint
X, LABELS = batch()


class OrderTest(ErrorsTest):
    """Handles in the wrong order, and after what they work on is gone or taken."""

    def test_a_module_keeps_its_state(self):
        module = self.module
        del self.state
        self.optimizer.step()
        self.assertTrue(np.isfinite(module(X, LABELS)))

    def test_an_optimizer_keeps_its_module(self):
        optimizer = Optimizer("optimizer_model.onnx", self.make())
        optimizer.step()
        self.assertEqual(optimizer.get_learning_rate(), 0.001)

    def test_parameters_keep_their_state(self):
        parameter = load("checkpoint").parameters["w1"]
        np.testing.assert_array_equal(parameter.data, START["w1"])
        self.assertIsNone(parameter.grad)

    def test_a_state_that_another_module_took(self):
        second = Module("training_model.onnx", self.state)
        self.refuse(
            (lambda: self.module(X, LABELS), RuntimeError, "another Module has taken over the state"),
            (lambda: self.module.input_names(), RuntimeError, "taken over"),
            (lambda: self.module.get_contiguous_parameters(), RuntimeError, "taken over"),
            (lambda: self.module.lazy_reset_grad(), RuntimeError, "taken over"),
            (lambda: self.module.export_model_for_inferencing("out.onnx", ["y"]), RuntimeError, "taken over"),
            (lambda: self.optimizer.step(), RuntimeError, "taken over"),
            (lambda: self.optimizer.set_learning_rate(1.0), RuntimeError, "taken over"),
            (lambda: LinearLRScheduler(self.optimizer, 0, 1, 1.0), RuntimeError, "taken over"),
            (lambda: Optimizer("optimizer_model.onnx", self.module), RuntimeError, "taken over"),
        )
        second(X, LABELS)

    def test_a_module_that_cannot_be_made_leaves_the_state_as_it_was(self):
        with self.assertRaises(RuntimeError):
            Module("optimizer_model.onnx", self.state)
        np.testing.assert_array_equal(self.state.parameters["w1"].data, START["w1"])
        Module("training_model.onnx", self.state)(X, LABELS)

    def test_the_library_s_objects_are_not_made_by_hand(self):
        for one in (_core.Session, _core.Checkpoint, _core.Tensor, _core.Model, _core.Runner):
            self.refuse((one, TypeError, "cannot create"))


class ThreadTest(ErrorsTest):
    def test_a_state_in_use_is_refused_to_other_threads(self):
        x, labels = batch(rows=400_000)
        found = {}

        def meanwhile():
            calls = {
                "step": lambda: self.module(X, LABELS),
                "optimizer": self.optimizer.step,
                "value": lambda: self.state.parameters["w1"].data,
                "names": lambda: len(self.state.parameters),
                "property": lambda: self.state.properties.__setitem__("a", 1),
                "save": lambda: save(self.state, "saved"),
                "module": lambda: Module("training_model.onnx", self.state),
            }
            while len(found) < len(calls) and not finished.is_set():
                for name, call in calls.items():
                    try:
                        call()
                    except RuntimeError as error:
                        found[name] = str(error)
                    except BaseException as error:
                        failed.append(error)

        finished, failed = threading.Event(), []
        other = threading.Thread(target=meanwhile)
        self.module(x, labels)
        other.start()
        for _ in range(10):
            try:
                self.module(x, labels)
            except RuntimeError as error:  # the other thread was first, or has made another module
                self.assertRegex(str(error), "one thread at a time|taken over")
        finished.set()
        other.join()
        self.assertEqual(failed, [])
        for error in found.values():
            self.assertRegex(error, "another thread works on this state: one thread at a time|taken over")


class TrainTest(ErrorsTest):
    def setUp(self):
        super().setUp()
        self.data = batch(rows=64)

    def train(self, **options):
        return onnxtrain.train(TEXT, self.data, progress=False, **{"epochs": 3, "batch_size": 16, **options})

    def test_another_thread_cannot_enter_during_a_callback_and_the_run_goes_on(self):
        errors = []

        def enter(state):
            for call in (lambda: state.parameters["w1"].data, lambda: save(state, "other")):
                try:
                    call()
                except RuntimeError as error:
                    errors.append(str(error))

        def callback(event):
            other = threading.Thread(target=enter, args=(event.result.state,))
            other.start()
            other.join()
            event.result.state.parameters["w1"].data  # this thread may

        result = self.train(callbacks=[callback], checkpoint_dir="run", save_every=2)
        self.assertEqual(result.steps, 12)
        self.assertGreaterEqual(len(errors), 2 * 12)
        for error in errors:
            self.assertEqual(error, "another thread works on this state: one thread at a time")
        self.assertTrue(Path("run/checkpoint").exists())
        result.state.parameters["w1"].data  # free again

    def test_a_callback_that_raises_stops_the_run_which_is_saved(self):
        def fail(event):
            if event.step == 5:
                raise KeyError("mine")

        self.refuse((lambda: self.train(callbacks=[fail], checkpoint_dir="run"), KeyError, "mine"))
        result = self.train(checkpoint_dir="run", resume=True)
        self.assertEqual(result.steps, 12)
        expected = self.train()
        np.testing.assert_array_equal(result.state.parameters["w1"].data, expected.state.parameters["w1"].data)

    def test_an_interrupted_run_is_saved_and_says_how_to_go_on(self):
        def interrupt(event):
            if event.step == 5 and event.kind == "step":
                os.kill(os.getpid(), signal.SIGINT)

        # Whoever starts the tests may ignore the signal, as a shell does for what runs in its background.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        with self.assertRaisesRegex(KeyboardInterrupt, "saved in 'run', from where resume=True goes on"):
            self.train(callbacks=[interrupt], checkpoint_dir="run")
        self.assertEqual(self.train(checkpoint_dir="run", resume=True).steps, 12)
        with self.assertRaises(KeyboardInterrupt) as caught:
            self.train(callbacks=[interrupt])
        self.assertNotIn("saved", str(caught.exception))

    def test_calls_of_a_callback_that_would_disturb_the_run_are_refused(self):
        def check(event):
            result = event.result
            self.refuse(
                (lambda: result._run.session.optimizer_step(), RuntimeError, "a training run is under way"),
                (lambda: Module("training_model.onnx", result.state), RuntimeError, "a training run is under way"),
                (lambda: result.evaluate(self.data), RuntimeError, "a training run is under way"),
            )

        self.assertEqual(self.train(callbacks=[check], epochs=1).steps, 4)


if __name__ == "__main__":
    unittest.main()
