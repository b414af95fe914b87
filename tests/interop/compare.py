"""Run artifacts in ONNX Runtime training 1.19.2 and compare with what steps.c did with them.

usage: compare.py FOLDER STEPS BATCH CLASSES LEARNING_RATE

FOLDER holds the artifacts, `losses` (what steps printed) and `trained` (its checkpoint). Exit 1
when losses or parameters differ, or when the eval model does not run. Models are .onnx files or,
where there are none, .ort files.
"""
import importlib.machinery
import os
import sys
import types


class Anything(type):
    def __getattr__(cls, name):
        return anything(name)


class Stub(metaclass=Anything):
    pass


def anything(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Stub


def stand_in_for_torch():
    """The package imports torch without declaring it, and needs none of it for this."""
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.__getattr__ = anything
    sys.modules["torch"] = torch


stand_in_for_torch()

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnxruntime.training.api import CheckpointState, Module, Optimizer  # noqa: E402

LOSSES_AGREE = 1e-4  # relative; f32 sums in another order, carried through the steps
PARAMETERS_AGREE = 1e-3


onnxruntime.set_default_logger_severity(3)


def make_inputs(inputs, step, batch, classes):
    values = []
    for i, value in enumerate(inputs):
        dims = [d if isinstance(d, int) else batch for d in value.shape]
        k = np.arange(int(np.prod(dims)), dtype=np.int64)
        if value.type == "tensor(float)":
            array = np.sin(0.37 * k + i + 0.1 * step).astype(np.float32)
        else:
            array = (7 * k + 3 + step) % classes
        values.append(array.reshape(dims))
    return values


def user_inputs(path, parameters):
    return [v for v in onnxruntime.InferenceSession(path).get_inputs()
            if v.name not in parameters and v.name != "lazy_reset_grad"
            and not v.name.endswith("_grad.accumulation.buffer")]


def model_path(folder, name):
    path = f"{folder}/{name}_model.onnx"
    return path if os.path.exists(path) else f"{folder}/{name}_model.ort"


def first(outputs):
    outputs = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
    return float(np.asarray(outputs).reshape(-1)[0])


def main():
    folder, (steps, batch, classes) = sys.argv[1], map(int, sys.argv[2:5])
    ours = [float(line) for line in open(folder + "/losses")]
    state = CheckpointState.load_checkpoint(folder + "/checkpoint")
    module = Module(model_path(folder, "training"), state, model_path(folder, "eval"))
    optimizer = Optimizer(model_path(folder, "optimizer"), module)
    optimizer.set_learning_rate(float(sys.argv[5]))
    names = [name for name, _ in state.parameters]
    inputs = user_inputs(model_path(folder, "training"), set(names))
    worst = 0.0
    module.train()
    for step in range(steps):
        loss = first(module(*make_inputs(inputs, step, batch, classes)))
        optimizer.step()
        module.lazy_reset_grad()
        worst = max(worst, abs(loss - ours[step]) / max(1.0, abs(loss)))
    module.eval()
    evaluated = first(module(*make_inputs(inputs, 0, batch, classes)))
    trained = CheckpointState.load_checkpoint(folder + "/trained")
    apart, where = 0.0, "-"
    for name in names:
        theirs = np.asarray(state.parameters[name].data, dtype=np.float64)
        mine = np.asarray(trained.parameters[name].data, dtype=np.float64)
        distance = float(np.max(np.abs(theirs - mine), initial=0.0))
        distance /= max(1.0, float(np.max(np.abs(theirs), initial=0.0)))
        if distance > apart:
            apart, where = distance, name
    print(f"{steps} steps, {len(names)} parameters: losses differ by {worst:.1e}, parameters by "
          f"{apart:.1e} ({where}), eval loss {evaluated:.6g}")
    return 0 if worst < LOSSES_AGREE and apart < PARAMETERS_AGREE and evaluated == evaluated else 1


if __name__ == "__main__":
    sys.exit(main())
