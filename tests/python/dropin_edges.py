# SPDX-License-Identifier: Apache-2.0
"""What artifacts and the training API do at the edges: nothing that trains, gradients of inputs, checkpoints without
values, outputs that are named twice, OrtValues. test_dropin.py runs it with its imports changed; record_signatures.py
runs it as it is.

Takes the models of dropin_model.files() in the current folder; leaves what it saw in `results`.
"""

import os

import numpy as np
from onnxruntime import InferenceSession, OrtValue
from onnxruntime.training import artifacts
from onnxruntime.training.api import CheckpointState, Module, Optimizer

results = {}
X = np.array([[1, -2], [0.5, 3]], np.float32)
TARGET = np.array([[1, 0, -1], [0.5, 2, 0]], np.float32)


def generate(folder, model, **options):
    os.makedirs(folder, exist_ok=True)
    options.setdefault("loss", artifacts.LossType.MSELoss)
    artifacts.generate_artifacts(model, artifact_directory=folder, **options)
    return folder


def names_of(values):
    """Without those of the loss, which every maker numbers as it likes."""
    return [[one.name, one.type, one.shape] for one in values if not one.name.startswith("onnx::")]


def files(folder, which="training_model"):
    session = InferenceSession(f"{folder}/{which}.onnx", providers=["CPUExecutionProvider"])
    state = CheckpointState.load_checkpoint(f"{folder}/checkpoint")
    parameters = [[name, parameter.requires_grad, parameter.data.tolist()] for name, parameter in state.parameters]
    return {
        "inputs": names_of(session.get_inputs()),
        "outputs": names_of(session.get_outputs()),
        "parameters": sorted(parameters),
        "files": sorted(os.listdir(folder)),
    }


def refused(call):
    """Is it a RuntimeError, and the last sentence of its text."""
    try:
        call()
    except RuntimeError as error:
        return str(error).strip().split(". ")[-1]
    return None


# ---- nothing trains ----

generate("frozen", "gemm.onnx", requires_grad=[], frozen_params=["w"])
results["frozen"] = files("frozen")
state = CheckpointState.load_checkpoint("frozen/checkpoint")
module = Module("frozen/training_model.onnx", state, "frozen/eval_model.onnx")
results["frozen_loss"] = float(module(X, TARGET))
generate("dropout", "dropout.onnx")
results["dropout_parameters"] = files("dropout")["parameters"]
results["dropout_files"] = files("dropout")["files"]

# ---- gradients of inputs ----

generate("inputs", "gemm.onnx", requires_grad=["w", "x"], frozen_params=["b"], optimizer=artifacts.OptimType.SGD)
results["inputs"] = files("inputs")
results["inputs_eval"] = files("inputs", "eval_model")
generate("target", "gemm.onnx", requires_grad=["target", "x"])
results["target"] = files("target")
session = InferenceSession("target/training_model.onnx", providers=["CPUExecutionProvider"])
feed = {"x": X, "target": TARGET}
buffers = {"x_grad.accumulation.buffer": np.zeros_like(X), "target_grad.accumulation.buffer": np.zeros_like(TARGET)}
for reset in (True, False):
    session.run(None, {**feed, **buffers, "lazy_reset_grad": np.array([reset])})
    results[f"x_gradient_{reset}"] = buffers["x_grad.accumulation.buffer"].tolist()
    results[f"target_gradient_{reset}"] = buffers["target_grad.accumulation.buffer"].tolist()

# ---- a checkpoint without values ----

generate("nominal", "gemm.onnx", requires_grad=["w"], frozen_params=["b"], nominal_checkpoint=True)
nominal = CheckpointState.load_checkpoint("nominal/nominal_checkpoint")
nominal_module = Module("nominal/training_model.onnx", nominal, "nominal/eval_model.onnx")
results["nominal"] = {
    "count": len(nominal.parameters),
    "has": "w" in nominal.parameters,
    "get": refused(lambda: nominal.parameters["w"]),
    "iterate": refused(lambda: list(nominal.parameters)),
    "set": refused(lambda: nominal.parameters.__setitem__("w", np.zeros((2, 3), np.float32))),
    "size": nominal_module.get_parameters_size(False),
    "vector": refused(lambda: nominal_module.get_contiguous_parameters()) is not None,
    "step": refused(lambda: nominal_module(X, TARGET)) is not None,
}
vector = OrtValue.ortvalue_from_numpy(np.arange(9, dtype=np.float32))
nominal_module.copy_buffer_to_parameters(vector._ortvalue, False)
results["completed"] = {name: parameter.data.tolist() for name, parameter in nominal.parameters}

# ---- outputs that are named twice ----

generate("twice", "gemm.onnx", requires_grad=["w"], additional_output_names=["y", "y"])
results["twice"] = files("twice")
twice = Module(
    "twice/training_model.onnx", CheckpointState.load_checkpoint("twice/checkpoint"), "twice/eval_model.onnx"
)
results["twice_outputs"] = [np.asarray(value).tolist() for value in twice(X, TARGET)]
repeated = InferenceSession("repeated.onnx", providers=["CPUExecutionProvider"])
results["repeated"] = [one.name for one in repeated.get_outputs()]
results["repeated_outputs"] = [value.tolist() for value in repeated.run(None, {"x": X})]
results["repeated_once"] = [value.tolist() for value in repeated.run(["y"], {"x": X})]
generate("repeated", "repeated.onnx", requires_grad=["w"], loss_input_names=["y"])
results["repeated_artifacts"] = files("repeated")

# ---- models are taken as they are ----

generate("merged", "merged.onnx", requires_grad=["scale1", "w"], optimizer=artifacts.OptimType.SGD)
results["merged"] = files("merged")
state = CheckpointState.load_checkpoint("merged/checkpoint")
module = Module("merged/training_model.onnx", state, "merged/eval_model.onnx")
optimizer = Optimizer("merged/optimizer_model.onnx", module)
optimizer.set_learning_rate(0.1)
results["merged_losses"] = []
for _ in range(3):
    results["merged_losses"].append(float(module(X, TARGET[:, :2])))
    optimizer.step()
    module.lazy_reset_grad()
results["merged_vector"] = np.asarray(module.get_contiguous_parameters().numpy(), np.float64).tolist()
generate("fixed", "fixed.onnx", requires_grad=["w"])
results["fixed"] = files("fixed")

# ---- OrtValues ----

state = CheckpointState.load_checkpoint("inputs/checkpoint")
generate("plain", "gemm.onnx", requires_grad=["w", "b"], optimizer=artifacts.OptimType.SGD)
plain = Module("plain/training_model.onnx", CheckpointState.load_checkpoint("plain/checkpoint"), "plain/eval_model.onnx")
loss = plain(OrtValue.ortvalue_from_numpy(X), OrtValue.ortvalue_from_numpy(TARGET))
results["ort_value_loss"] = [type(loss).__name__, loss.data_type(), float(loss.numpy())]
optimizer = Optimizer("plain/optimizer_model.onnx", plain)
optimizer.step()
loss = plain.eval()(OrtValue.ortvalue_from_numpy(X), OrtValue.ortvalue_from_numpy(TARGET))
results["ort_value_eval"] = float(loss.numpy())
