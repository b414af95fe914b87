#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of zoo.py as PyTorch exports them, trained by onnxtrain and by PyTorch.

    check.py ONNXTRAIN [--keep FOLDER] [--only EXPORT] [MODEL..]

Needs torch, torchvision, transformers, onnx, onnxscript and numpy. Every model is exported by both exporters, as they do
by default and in training mode, at several opsets. `check` must say that it trains. Five steps of plain SGD on one
batch, with another number of rows than the example that was exported where the exporter allows it, must then lose what
PyTorch's do, within ten times the difference of its f32 and f64 runs; and as many elements must train in as many
tensors. Where the exporter has computed parameters away, `check` and `train` must say so and how to export instead, and
the losses must be finite. What an exporter itself cannot do is listed, and no failure.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
from torch import nn

from zoo import MODELS

EXPORTED_ROWS, ROWS, STEPS = 2, 4, 5
F32 = float(np.finfo(np.float32).eps)


def names_of(inputs):
    return [f"x{i}" for i in range(len(inputs))]


def classic(module, inputs, path, **options):
    torch.onnx.export(module, inputs, path, dynamo=False, input_names=names_of(inputs), **options)


def newer(module, inputs, path, **options):
    torch.onnx.export(module, inputs, path, dynamo=True, verbose=False, input_names=names_of(inputs), **options)


TRAINING = torch.onnx.TrainingMode.TRAINING
EXPORTS = {
    "classic": lambda m, x, p: classic(m.eval(), x, p),
    "classic-13": lambda m, x, p: classic(m.eval(), x, p, opset_version=13),
    "classic-training": lambda m, x, p: classic(m.train(), x, p, training=TRAINING),
    "classic-training-unfolded": lambda m, x, p: classic(m.train(), x, p, training=TRAINING, do_constant_folding=False,
                                                         opset_version=20),
    "newer": lambda m, x, p: newer(m.eval(), x, p),
    "newer-training": lambda m, x, p: newer(m.train(), x, p),
    "newer-training-unoptimized": lambda m, x, p: newer(m.train(), x, p, optimize=False),
    "newer-23": lambda m, x, p: newer(m.train(), x, p, optimize=False, opset_version=23),
}


def has_all_parameters(module, export):
    """The newer exporter drops zero biases and folds BatchNormalization into convolutions unless told otherwise; the
    classic one does the latter for inference."""
    if export in ("newer", "newer-training"):
        return False
    return export not in ("classic", "classic-13") or not any(isinstance(m, nn.BatchNorm2d) for m in module.modules())


def tensors_of(arrays, dtype=torch.float32):
    tensors = [torch.tensor(array) for array in arrays]
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in tensors)


def losses_of_torch(module, entry, inputs, labels, dtype):
    """The losses of the steps, and the parameters that got gradients."""
    module = copy.deepcopy(module).train().to(dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=entry.rate)
    inputs, (labels,), losses = tensors_of(inputs, dtype), tensors_of([labels], dtype), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = module(*inputs)
        if entry.loss == "mse":
            loss = nn.functional.mse_loss(scores, labels)
        else:
            loss = nn.functional.cross_entropy(scores.movedim(entry.class_axis, 1), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p for p in module.parameters() if p.grad is not None]


def run(command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)


def options_of(entry):
    frozen = ["--freeze", entry.frozen] if entry.frozen else []
    if entry.loss == "mse":
        return [*frozen, "--loss", "mse"]
    return [*frozen, "--loss", "cross-entropy", "--class-axis", entry.class_axis]


def losses_of_onnxtrain(onnxtrain, entry, model, data, work):
    log = work / "log.jsonl"
    done = run([onnxtrain, "train", model, "--data", data, *options_of(entry), "--optimizer", "sgd", "--lr", entry.rate,
                "--batch-size", ROWS, "--epochs", STEPS, "--log", log, "--out", work / "trained.onnx"])
    if done.returncode != 0:
        return None, done
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["training"]["loss"] for line in lines if line["event"] == "step"], done


def compare(ours, exact, single):
    """The largest of: distance to PyTorch's f64 run, in units of ten times its f32 run's distance so far."""
    worst, allowed = 0.0, 0.0
    for a, e, s in zip(ours, exact, single):
        allowed = max(allowed, abs(s - e), F32 * abs(e))
        worst = max(worst, abs(a - e) / (10 * allowed))
    return worst if len(ours) == len(exact) else float("inf")


def check_one(onnxtrain, work, name, module, export, data, reference):
    """Problems, and a line that says what was found. No line: the exporter refused."""
    model, entry = work / "model.onnx", MODELS[name]
    n_rows = ROWS if entry.is_fixed else EXPORTED_ROWS
    generator = np.random.default_rng(n_rows)
    example = tensors_of([make(n_rows, generator) for make in entry.inputs])
    try:
        EXPORTS[export](copy.deepcopy(module), example, model)
    except Exception as error:  # the exporter's own
        return [], f"not exported: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"
    problems = []
    report = run([onnxtrain, "check", "--json", *options_of(entry), model])
    if report.returncode not in (0, 1) or not report.stdout:
        return [f"check: {report.stderr.strip()}"], "check failed"
    status, report = report.returncode, json.loads(report.stdout)
    ours, done = losses_of_onnxtrain(onnxtrain, entry, model, data, work)
    if ours is None:
        return [f"train: {done.stderr.strip()}"], "train failed"
    if status != 0:
        problems.append(f"trains, but check ends with {status}")
    exact, single, parameters = reference
    trained = [p for p in report["parameters"] if p["trains"]]
    n_elements = sum(int(np.prod(p["shape"])) for p in trained)
    expected_elements = sum(p.numel() for p in parameters)
    is_same = (len(trained), n_elements) == (len(parameters), expected_elements)
    share = compare(ours, exact, single)
    text = (f"{share:8.3g} of what is allowed, {len(trained)}/{len(parameters)} tensors, "
            f"{n_elements}/{expected_elements} elements")
    if is_same and share <= 1:
        return problems, text
    if has_all_parameters(module, export):
        return [text + f": {ours} instead of {exact}"], text
    if not all(np.isfinite(ours)) or len(ours) != STEPS:
        problems.append(f"losses {ours}")
    said = json.dumps(report["notes"])
    for where, what in (("check", said), ("train", done.stdout + done.stderr)):
        if "optimize=False" not in what and "do_constant_folding=False" not in what:
            problems.append(f"{where} does not say how to export instead")
    return problems, text + "; computed away"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("onnxtrain")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--keep", help="a directory for the exported files, data and logs")
    parser.add_argument("--only", help="one kind of export", choices=list(EXPORTS))
    arguments = parser.parse_intermixed_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    n_wrong = n_right = n_refused = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.models or MODELS:
            entry = MODELS[name]
            torch.manual_seed(0)
            generator = np.random.default_rng(ROWS)
            module, inputs = entry.make(), [make(ROWS, generator) for make in entry.inputs]
            labels = entry.labels(ROWS, generator)
            exact, _ = losses_of_torch(module, entry, inputs, labels, torch.float64)
            single, parameters = losses_of_torch(module, entry, inputs, labels, torch.float32)
            for export in [arguments.only] if arguments.only else EXPORTS:
                work = pathlib.Path(arguments.keep or temporary, f"{name}-{export}")
                work.mkdir(parents=True, exist_ok=True)
                data = work / "data.npz"
                np.savez(data, **dict(zip(names_of(inputs), inputs)), labels=labels)
                began = time.monotonic()
                problems, text = check_one(arguments.onnxtrain, work, name, module, export, data,
                                           (exact, single, parameters))
                is_refused = text.startswith("not exported")
                n_refused += is_refused
                n_wrong, n_right = n_wrong + bool(problems), n_right + (not problems and not is_refused)
                verdict = "WRONG" if problems else "-" if is_refused else "ok"
                print(f"{name:16} {export:26} {verdict:5} {time.monotonic() - began:5.0f} s {text}", flush=True)
                for problem in problems:
                    print(f"    {problem}", flush=True)
    print(f"{n_right} passed, {n_wrong} failed, {n_refused} that the exporter does not export")
    return 1 if n_wrong or not n_right else 0


if __name__ == "__main__":
    sys.exit(main())
