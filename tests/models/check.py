#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The models of zoo.py as PyTorch exports them, trained by onnxtrain and by PyTorch.

    check.py ONNXTRAIN [--keep FOLDER] [--only EXPORT] [MODEL..]

Needs torch, torchvision, transformers, onnx, onnxruntime, onnxscript and numpy, and the package onnxtrain. Every model
is exported by both exporters, as they do by default and in training mode, at several opsets, with and without folding,
and optimised by onnxscript and ONNX Runtime. `check` must say that it trains. Five steps of plain SGD on one batch, with
another number of rows than the example that was exported, must then lose what PyTorch's do, within ten times the
difference of its f32 and f64 runs; as many elements must train; and in the first step the gradient of every parameter
that the file has, by its name or its values, must be as near to PyTorch's in f64. Where the exporter has computed
parameters away, `check` and `train` must say so and how to export instead, and the losses must be finite; where it has
made one of the batch size, too, so must be those of the steps that this size gives. What an exporter itself cannot do
is listed, and no failure; so is a file of which ONNX Runtime, too, computes something else than the module. With
--keep, files that are there are taken instead of exporting anew.
"""
import argparse
import copy
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from torch import nn

from onnxtrain.api import CheckpointState, Module
from zoo import MODELS

EXPORTED_ROWS, ROWS, STEPS = 2, 4, 5
F32 = float(np.finfo(np.float32).eps)


def names_of(inputs):
    return [f"x{i}" for i in range(len(inputs))]


def classic(module, inputs, path, **options):
    torch.onnx.export(module, inputs, path, dynamo=False, input_names=names_of(inputs), **options)


def newer(module, inputs, path, **options):
    torch.onnx.export(module, inputs, path, dynamo=True, verbose=False, input_names=names_of(inputs), **options)


def by_onnxruntime(module, inputs, path):
    """Fused as far as its optimiser goes for the processor without other layouts."""
    plain = path.with_name("plain.onnx")
    classic(module.eval(), inputs, plain, opset_version=17, do_constant_folding=False)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(plain), options)


def with_plain_attention(module):
    """Models of transformers with attention written in products: opset 13 has no other."""
    for part in module.modules():
        if isinstance(part, transformers.PreTrainedModel):
            part.set_attn_implementation("eager")
    return module


TRAINING = torch.onnx.TrainingMode.TRAINING
EXPORTS = {
    "classic": lambda m, x, p: classic(m.eval(), x, p),
    "classic-13": lambda m, x, p: classic(with_plain_attention(m.eval()), x, p, opset_version=13),
    "classic-unfolded": lambda m, x, p: classic(m.eval(), x, p, opset_version=17, do_constant_folding=False),
    "classic-training": lambda m, x, p: classic(m.train(), x, p, training=TRAINING),
    "classic-training-unfolded": lambda m, x, p: classic(m.train(), x, p, training=TRAINING, do_constant_folding=False,
                                                         opset_version=20),
    "onnxruntime": lambda m, x, p: by_onnxruntime(m, x, p),
    "newer": lambda m, x, p: newer(m.eval(), x, p),
    "newer-training": lambda m, x, p: newer(m.train(), x, p),
    "newer-training-unoptimized": lambda m, x, p: newer(m.train(), x, p, optimize=False),
    "newer-23": lambda m, x, p: newer(m.train(), x, p, optimize=False, opset_version=23),
}


def has_all_parameters(module, export):
    """The newer exporter drops zero biases and folds BatchNormalization into convolutions unless told otherwise; the
    classic one does the latter for inference, and ONNX Runtime also slices tables."""
    if export in ("newer", "newer-training", "onnxruntime"):
        return False
    return (export not in ("classic", "classic-13", "classic-unfolded")
            or not any(isinstance(m, nn.BatchNorm2d) for m in module.modules()))


def tensors_of(arrays, dtype=torch.float32):
    tensors = [torch.tensor(array) for array in arrays]
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in tensors)


def losses_of_torch(module, entry, inputs, labels, dtype):
    """The losses of the steps, and the gradients of the first one by parameters' names."""
    module = copy.deepcopy(module).train().to(dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=entry.rate)
    inputs, (labels,), losses, gradients = tensors_of(inputs, dtype), tensors_of([labels], dtype), [], {}
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = module(*inputs)
        if entry.loss == "mse":
            loss = nn.functional.mse_loss(scores, labels)
        else:
            loss = nn.functional.cross_entropy(scores.movedim(entry.class_axis, 1), labels)
        loss.backward()
        gradients = gradients or {name: p.grad.numpy().copy() for name, p in module.named_parameters()
                                  if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def run(command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)


def frozen_in(model, module, entry):
    """Names that the parameters have in the file that the module does not train, found by their elements."""
    wanted = {name: p.detach().numpy() for name, p in module.named_parameters()
              if entry.frozen and fnmatch.fnmatch(name, entry.frozen)}
    return [i.name for i in onnx.load(model).graph.initializer if wanted and any(
        i.name == name or np.array_equal(onnx.numpy_helper.to_array(i), array) for name, array in wanted.items())]


def options_of(entry, frozen):
    frozen = [option for name in frozen for option in ("--freeze", name)]
    if entry.loss == "mse":
        return [*frozen, "--loss", "mse"]
    return [*frozen, "--loss", "cross-entropy", "--class-axis", entry.class_axis]


def losses_of_onnxtrain(onnxtrain, entry, options, model, data, work, rows):
    log = work / "log.jsonl"
    done = run([onnxtrain, "train", model, "--data", data, *options, "--optimizer", "sgd", "--lr", entry.rate,
                "--batch-size", rows, "--epochs", STEPS, "--log", log, "--out", work / "trained.onnx"])
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


def gradients_of_onnxtrain(onnxtrain, options, model, inputs, labels, work):
    """Value and gradient of every tensor that trains, by name."""
    folder = work / "artifacts"
    done = run([onnxtrain, "artifacts", model, *options, "--optimizer", "none", "--out", folder])
    if done.returncode != 0:
        return {"artifacts": done.stderr}
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    module = Module(folder / "training_model.onnx", state)
    module(*inputs, labels)
    return {name: (p.data, p.grad) for name, p in state.parameters if p.requires_grad}


def of_module(name, value, values):
    """The parameter of the module that a tensor is, and whether it is transposed: by its name and values, or by
    either."""
    def fits(key, is_transposed, by_values):
        other = values[key].T if is_transposed else values[key]
        return np.array_equal(value, other) and np.ptp(other) > 0 if by_values else value.shape == other.shape

    for by_values in (True, False):
        for is_transposed in (False, True):
            if name in values and fits(name, is_transposed, by_values):
                return name, is_transposed
    for is_transposed in (False, True):
        same = [key for key in values if fits(key, is_transposed, True)]
        if len(same) == 1 and value.ndim > 0:
            return same[0], is_transposed
    return None, False


def compare_gradients(ours, values, exact, single):
    """The largest distance to f64 in units of ten times that of PyTorch's f32, where, and how many were compared."""
    worst, where, n = 0.0, "", 0
    largest = max(np.abs(g).max() for g in exact.values())
    for name, (value, gradient) in ours.items():
        key, is_transposed = of_module(name, value, values)
        if key not in exact:
            continue
        gradient = gradient.T if is_transposed else gradient
        # What is zero but for rounding is as near as its parts, which are not known: as a millionth of the largest.
        allowed = max(np.abs(single[key] - exact[key]).max(), F32 * np.abs(exact[key]).max(), 0.1 * F32 * largest)
        share = np.abs(gradient - exact[key]).max() / (10 * allowed)
        n += 1
        if not share <= worst:
            worst, where = share, key
    return worst, where, n


def is_of_module(model, module, example):
    """Whether ONNX Runtime computes of the file what the module does, in inference."""
    session = onnxruntime.InferenceSession(str(model))
    given = {name: x.numpy() for name, x in zip(names_of(example), example)}
    theirs = session.run(None, {i.name: given[i.name] for i in session.get_inputs()})[0]
    wanted = copy.deepcopy(module).eval()(*example).detach().numpy()
    return theirs.shape == wanted.shape and np.abs(theirs - wanted).max() <= 1e-3 * np.abs(wanted).max()


def export_to(model, name, module, export, example):
    """None, or why there is no file."""
    refused = model.with_name("refused.txt")
    if model.exists():
        return None
    if not refused.exists():
        try:
            EXPORTS[export](copy.deepcopy(module), example, model)
            return None
        except Exception as error:  # the exporter's own
            refused.write_text(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}")
            model.unlink(missing_ok=True)
    return refused.read_text()


def problems_of_computed(losses, n_steps, notes, done):
    """Of a file in which an exporter computed parameters away."""
    problems = []
    if not all(np.isfinite(losses)) or len(losses) != n_steps:
        problems.append(f"losses {losses}")
    for what, said in (("check", notes), ("train", done.stdout + done.stderr)):
        if "optimize=False" not in said and "do_constant_folding=False" not in said:
            problems.append(f"{what} does not say how to export instead")
    return problems


def check_one(onnxtrain, work, name, module, export, data, reference):
    """Problems, and a line that says what was found. No line: the exporter refused."""
    model, entry = work / "model.onnx", MODELS[name]
    generator = np.random.default_rng(EXPORTED_ROWS)
    example = tensors_of([make(EXPORTED_ROWS, generator) for make in entry.inputs])
    refusal = export_to(model, name, module, export, example)
    if refusal:
        return [], f"not exported: {refusal}"
    problems = []
    options = options_of(entry, frozen_in(model, module, entry))
    report = run([onnxtrain, "check", "--json", *options, model])
    if report.returncode not in (0, 1) or not report.stdout:
        return [f"check: {report.stderr.strip()}"], "check failed"
    status, report = report.returncode, json.loads(report.stdout)
    notes, has_all = json.dumps(report["notes"]), has_all_parameters(module, export)
    keeps_rows = not has_all and "the batch size stays" in notes
    ours, done = losses_of_onnxtrain(onnxtrain, entry, options, model, data, work, EXPORTED_ROWS if keeps_rows else ROWS)
    if ours is None:
        return [f"train: {done.stderr.strip()}"], "train failed"
    if status != 0:
        problems.append(f"trains, but check ends with {status}")
    exact, single, exact_gradients, single_gradients = reference
    trained = [p for p in report["parameters"] if p["trains"]]
    n_elements = sum(int(np.prod(p["shape"])) for p in trained)
    expected_elements = sum(g.size for g in exact_gradients.values())
    if keeps_rows:
        text = f"{len(trained)}/{len(exact_gradients)} tensors, {n_elements}/{expected_elements} elements, of its batch size"
        return problems + problems_of_computed(ours, STEPS * ROWS // EXPORTED_ROWS, notes, done), text + "; computed away"
    share = compare(ours, exact, single)
    arrays = np.load(data)
    gradients = gradients_of_onnxtrain(onnxtrain, options, model, [arrays[n] for n in names_of(example)],
                                       arrays["labels"], work)
    values = {key: p.detach().numpy() for key, p in module.named_parameters()}
    gradient_share, where, n_compared = compare_gradients(gradients, values, exact_gradients, single_gradients)
    text = (f"{share:8.3g} of what is allowed, {len(trained)}/{len(exact_gradients)} tensors, "
            f"{n_elements}/{expected_elements} elements; gradients {gradient_share:.3g} ({n_compared}, {where})")
    if n_elements == expected_elements and share <= 1 and gradient_share <= 1:
        if export.endswith("unfolded") and has_all and n_compared != len(exact_gradients):
            problems.append(f"gradients of {len(exact_gradients) - n_compared} parameters were not compared")
        return problems, text
    if "training" not in export and export != "newer-23" and not is_of_module(model, module, example):
        return [], "not exported: ONNX Runtime computes something else of the file than the module"
    if has_all:
        return [text + f": {ours} instead of {exact}"], text
    return problems + problems_of_computed(ours, STEPS, notes, done), text + "; computed away"


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
            exact, exact_gradients = losses_of_torch(module, entry, inputs, labels, torch.float64)
            single, single_gradients = losses_of_torch(module, entry, inputs, labels, torch.float32)
            for export in [arguments.only] if arguments.only else EXPORTS:
                work = pathlib.Path(arguments.keep or temporary, f"{name}-{export}")
                work.mkdir(parents=True, exist_ok=True)
                data = work / "data.npz"
                np.savez(data, **dict(zip(names_of(inputs), inputs)), labels=labels)
                began = time.monotonic()
                problems, text = check_one(arguments.onnxtrain, work, name, module, export, data,
                                           (exact, single, exact_gradients, single_gradients))
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
