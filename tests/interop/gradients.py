# SPDX-License-Identifier: Apache-2.0
"""Gradient models against ONNX Runtime and PyTorch, on request: gradients.py ONNXTRAIN

For an MLP, a LeNet, a residual block and a transformer block, exported by PyTorch: the arrays that `onnxtrain grad --data` writes,
the model that `onnxtrain grad` writes, run by plain onnxruntime, and PyTorch's autograd agree. So do, for the MLP and the LeNet,
loss and gradients of the training model that `onnxtrain artifacts --standard-ops` writes, run by plain onnxruntime.
Needs torch, onnx, onnxruntime and numpy. Not part of the normal tests: nothing here is installed by them.
"""
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
import torch
from torch import nn

from models import Block, Residual


def models():
    mlp = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 5))
    lenet = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                          nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16 * 4, 20), nn.Sigmoid(), nn.Linear(20, 10),
                          nn.LogSoftmax(dim=-1))
    residual = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.LeakyReLU(0.1), Residual(8),
                             nn.Conv2d(8, 8, 3, groups=4, dilation=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Dropout(0.5), nn.Linear(8, 5))
    yield "mlp", mlp, torch.randn(4, 12)
    yield "lenet", lenet, torch.randn(3, 1, 16, 16)
    yield "residual", residual, torch.randn(3, 3, 16, 15)
    yield "block", Block(), torch.randint(50, (4, 16))


def run(command, *arguments):
    subprocess.run([command, "grad", *arguments], check=True, stdout=subprocess.DEVNULL)


def compare(what, name, found, expected):
    error = numpy.abs(found - expected).max() / max(1.0, numpy.abs(expected).max())
    print(f"{what:14} {name:28} {error:.1e}")
    return found.shape == expected.shape and error < 2e-5


def check(command, folder, name, module, example):
    module.eval()
    with torch.no_grad():  # the exporter makes one of parameters that are equal
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        for buffer in module.buffers():
            if buffer.dtype.is_floating_point:
                buffer += 0.3 * torch.rand_like(buffer)
    path = f"{folder}/{name}.onnx"
    torch.onnx.export(module, (example,), path, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE)
    known = {initializer.name for initializer in onnx.load(path).graph.initializer}
    parameters = {key: value for key, value in module.named_parameters() if key in known}
    wanted = list(parameters)
    if example.dtype.is_floating_point:
        example.requires_grad_(True)
        parameters["x"] = example
        wanted.append("x")
    y = module(example)
    seed = torch.randn_like(y)
    gradients = torch.autograd.grad(y, [parameters[key] for key in wanted], seed)
    x = example.detach().numpy()
    numpy.save(f"{folder}/x.npy", x)
    numpy.save(f"{folder}/seed.npy", seed.numpy())
    options = [path, "--of", "y"] + [part for key in wanted for part in ("--wrt", key)]
    run(command, *options, "--out", f"{folder}/gradients.onnx")
    run(command, *options, "--data", f"{folder}/x.npy", "--seed", f"{folder}/seed.npy", "--out", f"{folder}/gradients.npz")
    onnx.checker.check_model(f"{folder}/gradients.onnx", full_check=True)
    session = onnxruntime.InferenceSession(f"{folder}/gradients.onnx", providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    theirs = dict(zip(names, session.run(None, {"x": x, "y_grad": seed.numpy()})))
    ours = numpy.load(f"{folder}/gradients.npz")
    fine = compare(name, "y (onnxruntime)", theirs["y"], y.detach().numpy())
    for key, expected in zip(wanted, gradients):
        fine = compare(name, key, ours[f"{key}_grad"], expected.numpy()) and fine
        fine = compare(name, f"{key} (onnxruntime)", theirs[f"{key}_grad"], expected.numpy()) and fine
    return fine


ACCUMULATOR = "InPlaceAccumulatorV2"  # changes its buffer in place, which only training runtimes do


def without_accumulators(path):
    """A training model whose outputs are the loss and the gradients, which accumulators would have taken."""
    model = onnx.load(path)
    graph = model.graph
    others = {node.op_type for node in graph.node if node.domain not in ("", "ai.onnx")}
    if others - {ACCUMULATOR}:
        raise SystemExit(f"{path}: has {others}, expected ONNX's own operators and {ACCUMULATOR}")
    types = {value.name: value.type for value in graph.input}
    gradients = {node.input[1]: types[node.input[0]] for node in graph.node if node.op_type == ACCUMULATOR}
    kept = [node for node in graph.node if node.op_type != ACCUMULATOR]
    del graph.node[:], graph.output[1:]
    graph.node.extend(kept)
    read = {name for node in kept for name in node.input}
    inputs = [value for value in graph.input if value.name in read]
    del graph.input[:]
    graph.input.extend(inputs)
    graph.output.extend(onnx.helper.make_value_info(name, kind) for name, kind in gradients.items())
    imports = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    del model.opset_import[:]
    model.opset_import.extend(imports)
    return model, list(gradients)


def check_training(command, folder, name, module, example):
    """The training model of artifacts in ONNX's own operators."""
    path, labels = f"{folder}/{name}.onnx", torch.arange(len(example)) % 5
    subprocess.run([command, "artifacts", path, "--standard-ops", "--loss", "cross-entropy", "--out", f"{folder}/{name}"],
                   check=True, stderr=subprocess.DEVNULL)
    model, gradients = without_accumulators(f"{folder}/{name}/training_model.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    parameters = dict(module.named_parameters())
    feeds = {"x": example.detach().numpy(), "labels": labels.numpy()}
    feeds |= {key: value.detach().numpy() for key, value in parameters.items() if f"{key}_grad" in gradients}
    loss, *found = session.run(None, feeds)
    module.zero_grad()
    expected = torch.nn.functional.cross_entropy(module(example), labels)
    expected.backward()
    fine = compare(name, "loss (onnxruntime)", loss, expected.detach().numpy()) and len(gradients) == len(parameters)
    for key, gradient in zip(gradients, found):
        fine = compare(name, f"{key} (onnxruntime)", gradient, parameters[key.removesuffix("_grad")].grad.numpy()) and fine
    return fine


def main():
    torch.manual_seed(0)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for name, module, example in models():
            fine = check(sys.argv[1], folder, name, module, example) and fine
            if name in ("mlp", "lenet"):
                fine = check_training(sys.argv[1], folder, name, module, example) and fine
    print("all agree" if fine else "NOT ALL AGREE")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
