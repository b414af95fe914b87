#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models as PyTorch exports them, trained by onnxtrain and by PyTorch.

    architectures.py ONNXTRAIN [--keep FOLDER] [MODEL..]

Needs torch, torchvision, transformers, onnx, onnxscript and numpy. Every model has small sizes, its weights as they are
initialised, and no dropout. It is exported by both exporters with the defaults of torch.onnx.export and in training
mode. Five steps of plain SGD on one batch, with another number of rows than the example that was exported, must then
lose what PyTorch's do, within ten times the difference of its f32 and f64 runs; and as many elements must train in as
many tensors. Where the exporter has computed parameters away, `check` and `train` must say so and how to export
instead, and the losses must be finite.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
import torchvision
import transformers
from torch import nn

EXPORTED_ROWS, ROWS, STEPS = 2, 4, 5
N_CLASSES, N_WORDS, N_POSITIONS = 10, 97, 16
F32 = float(np.finfo(np.float32).eps)


class Logits(nn.Module):
    """A model of transformers without the dict it gives back, and without the search for packed sequences, which the
    classic exporter does not know."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.model.config.use_cache = False

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, attention_mask=torch.ones_like(input_ids)).logits


def images(rows, size=32):
    generator = np.random.default_rng(rows)
    return (generator.standard_normal((rows, 3, size, size)).astype(np.float32),
            generator.integers(N_CLASSES, size=rows).astype(np.int64))


def words(rows):
    generator = np.random.default_rng(rows)
    return tuple(generator.integers(N_WORDS, size=(rows, N_POSITIONS)).astype(np.int64) for _ in range(2))


def bert():
    config = transformers.BertConfig(
        vocab_size=N_WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=N_POSITIONS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return Logits(transformers.BertForMaskedLM(config))


def gpt2():
    config = transformers.GPT2Config(vocab_size=N_WORDS, n_positions=N_POSITIONS, n_embd=32, n_layer=2, n_head=2,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return Logits(transformers.GPT2LMHeadModel(config))


def vit():
    return torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32,
                                                mlp_dim=64, num_classes=N_CLASSES)


# name: (the module, its data, the axis of the scores that has the classes, the learning rate)
MODELS = {
    "mobilenet_v2": (lambda: torchvision.models.mobilenet_v2(width_mult=0.25, num_classes=N_CLASSES, dropout=0.0),
                     images, 1, 0.02),
    "resnet18": (lambda: torchvision.models.resnet18(num_classes=N_CLASSES), images, 1, 0.02),
    "densenet121": (lambda: torchvision.models.DenseNet(8, (6, 12, 24, 16), 16, num_classes=N_CLASSES), images, 1,
                    0.02),
    "vit": (vit, images, 1, 0.1),
    "bert": (bert, words, -1, 0.1),
    "gpt2": (gpt2, words, -1, 0.1),
}


def classic(module, x, path, **options):
    torch.onnx.export(module, (x,), path, dynamo=False, **options)


def newer(module, x, path, **options):
    torch.onnx.export(module, (x,), path, dynamo=True, verbose=False, **options)


TRAINING = torch.onnx.TrainingMode.TRAINING
EXPORTS = {
    "classic": lambda m, x, p: classic(m.eval(), x, p),
    "classic-training": lambda m, x, p: classic(m.train(), x, p, training=TRAINING),
    "classic-training-unfolded": lambda m, x, p: classic(m.train(), x, p, training=TRAINING, do_constant_folding=False),
    "newer": lambda m, x, p: newer(m.eval(), x, p),
    "newer-training": lambda m, x, p: newer(m.train(), x, p),
    "newer-training-unoptimized": lambda m, x, p: newer(m.train(), x, p, optimize=False),
}


def has_all_parameters(module, export):
    """The newer exporter drops zero biases and folds BatchNormalization into convolutions unless told otherwise; the
    classic one does the latter for inference."""
    if export in ("newer", "newer-training"):
        return False
    return export != "classic" or not any(isinstance(m, nn.BatchNorm2d) for m in module.modules())


def losses_of_torch(module, x, labels, class_axis, rate, dtype):
    """The losses of the steps, and the names of the parameters that got gradients."""
    module = copy.deepcopy(module).train().to(dtype)
    optimizer = torch.optim.SGD(module.parameters(), lr=rate)
    x, labels, losses = torch.tensor(x), torch.tensor(labels), []
    x = x.to(dtype) if x.is_floating_point() else x
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = module(x)
        loss = nn.functional.cross_entropy(scores.movedim(class_axis, 1), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p for p in module.parameters() if p.grad is not None]


def run(command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)


def losses_of_onnxtrain(onnxtrain, model, data, class_axis, rate, work):
    log = work / "log.jsonl"
    done = run([onnxtrain, "train", model, "--data", data, "--loss", "cross-entropy", "--class-axis", class_axis,
                "--optimizer", "sgd", "--lr", rate, "--batch-size", ROWS, "--epochs", STEPS, "--log", log, "--out",
                work / "trained.onnx"])
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


def check_one(onnxtrain, work, module, export, x_example, data, class_axis, rate, reference):
    """Problems, and a line that says what was found."""
    model = work / "model.onnx"
    try:
        EXPORTS[export](copy.deepcopy(module), torch.tensor(x_example), model)
    except Exception as error:  # the exporter's own
        return [], f"not exported: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
    problems = []
    report = run([onnxtrain, "check", "--json", "--loss", "cross-entropy", "--class-axis", class_axis, model])
    if report.returncode not in (0, 1) or not report.stdout:
        return [f"check: {report.stderr.strip()}"], "check failed"
    report = json.loads(report.stdout)
    ours, done = losses_of_onnxtrain(onnxtrain, model, data, class_axis, rate, work)
    if ours is None:
        return [f"train: {done.stderr.strip()}"], "train failed"
    exact, single, parameters = reference
    trained = [p for p in report["parameters"] if p["trains"]]
    n_elements = sum(int(np.prod(p["shape"])) for p in trained)
    expected_elements = sum(p.numel() for p in parameters)
    is_same = (len(trained), n_elements) == (len(parameters), expected_elements)
    share = compare(ours, exact, single)
    text = (f"{share:8.3g} of what is allowed, {len(trained)}/{len(parameters)} tensors, "
            f"{n_elements}/{expected_elements} elements")
    if is_same and share <= 1:
        return [], text
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
    n_wrong = n_right = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.models or MODELS:
            make, data_of, class_axis, rate = MODELS[name]
            torch.manual_seed(0)
            module, (x, labels) = make(), data_of(ROWS)
            exact, _ = losses_of_torch(module, x, labels, class_axis, rate, torch.float64)
            single, parameters = losses_of_torch(module, x, labels, class_axis, rate, torch.float32)
            for export in [arguments.only] if arguments.only else EXPORTS:
                work = pathlib.Path(arguments.keep or temporary, f"{name}-{export}")
                work.mkdir(parents=True, exist_ok=True)
                data = work / "data.npz"
                np.savez(data, x=x, labels=labels)
                problems, text = check_one(arguments.onnxtrain, work, module, export, data_of(EXPORTED_ROWS)[0], data,
                                           class_axis, rate, (exact, single, parameters))
                n_wrong, n_right = n_wrong + bool(problems), n_right + (not problems)
                print(f"{name:14} {export:28} {'WRONG' if problems else 'ok':6} {text}", flush=True)
                for problem in problems:
                    print(f"    {problem}", flush=True)
    print(f"{n_right} passed, {n_wrong} failed")
    return 1 if n_wrong or not n_right else 0


if __name__ == "__main__":
    sys.exit(main())
