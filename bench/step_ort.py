# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime training's side of bench/run.py: step_ort.py ARTIFACTS MODEL THREADS STEPS.

Its package imports torch without needing it here: an empty module stands in, so that its memory and start-up are its own.
"""

import importlib.machinery
import json
import os
import resource
import sys
import time
import types


class Anything(type):
    """Every attribute of the stand-in is a class like it."""

    def __getattr__(cls, name):
        return attribute(name)


class Nothing(metaclass=Anything):
    pass


def attribute(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing


def stand_in():
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.__getattr__ = attribute
    sys.modules["torch"] = torch


def main():
    folder, name, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    start = float(os.environ["BENCH_START"])
    stand_in()
    import numpy
    import onnxruntime
    from onnxruntime.training import api
    import models

    problem = models.problem(name)
    random = numpy.random.default_rng(0)
    if problem.vocabulary:
        x = random.integers(0, problem.vocabulary, (problem.rows, *problem.row)).astype(numpy.int64)
    else:
        x = (random.random((problem.rows, *problem.row)) - 0.5).astype(numpy.float32)
    labels = random.integers(0, problem.classes, (problem.rows, *problem.labels)).astype(numpy.int64)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    state = api.CheckpointState.load_checkpoint(os.path.join(folder, "checkpoint"))
    module = api.Module(os.path.join(folder, "training_model.onnx"), state, session_options=options)
    optimizer = api.Optimizer(os.path.join(folder, "optimizer_model.onnx"), module)
    times, first = [], 0.0
    for step in range(steps):
        before = time.monotonic()
        loss = module(x, labels)
        optimizer.step()
        module.lazy_reset_grad()
        if step == 0:
            first = time.monotonic() - start
        times.append((time.monotonic() - before) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    loss = loss[0] if isinstance(loss, tuple) else loss
    print(json.dumps({"ms": times, "first": first, "peak_mb": peak, "loss": float(loss)}))


main()
