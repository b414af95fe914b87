# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked after the library has used several threads, as multiprocessing and data loaders do."""

import multiprocessing
import unittest

import numpy as np
from network import NetworkTest, batch

from onnxtrain import InferenceSession, SessionOptions
from onnxtrain.api import CheckpointState, Module

ROWS = 50_000  # enough for every thread to get some
HUNG = 300  # seconds; a child that computes takes a fraction of one


def make(folder):
    options = SessionOptions()
    options.intra_op_num_threads = 4
    options.use_deterministic_compute = True
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    return Module(folder / "training_model.onnx", state, folder / "eval_model.onnx", session_options=options), options


def work(connection, module, folder):
    """A step of the parent's module, a step of one that is made here, and an inference."""
    x, labels = batch(rows=ROWS)
    module.lazy_reset_grad()
    first = float(module(x, labels))
    second, options = make(folder)
    session = InferenceSession(folder / "eval_model.onnx", options)
    feed = {"x": x, "labels": labels, **{name: p.data for name, p in second._state.parameters}}
    connection.send((first, float(second(x, labels)), float(session.run(None, feed)[0])))
    connection.close()


@unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "there is no fork here")
class ForkTest(NetworkTest):
    def test_children_compute_what_the_parent_does(self):
        module, _ = make(self.folder)
        x, labels = batch(rows=ROWS)
        expected = float(module(x, labels))
        context = multiprocessing.get_context("fork")
        for number in range(2):
            with self.subTest(number):
                ours, theirs = context.Pipe()
                child = context.Process(target=work, args=(theirs, module, self.folder))
                child.start()
                theirs.close()
                self.addCleanup(child.kill)
                self.assertTrue(ours.poll(HUNG), "the child hangs")
                np.testing.assert_array_equal(ours.recv(), [expected] * 3)
                child.join(HUNG)
                self.assertEqual(child.exitcode, 0)
        module.lazy_reset_grad()
        self.assertEqual(float(module(x, labels)), expected)  # the parent goes on


if __name__ == "__main__":
    unittest.main()
