#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dropout here and in PyTorch: a causal language model on TEXT, 300 updates with twenty seeds of dropout on each side.

usage: PYTHONPATH=build/release/python check_dropout.py TEXT [bf16|f16]     (needs torch, onnx and the package)

Initial values, batches and their order are the same, only the masks differ. With a second argument both compute in
that type: PyTorch by autocast, with its GradScaler for f16, onnxtrain by the option `precision`. The mean of the last
50 losses over the seeds may differ by three times the standard error of the difference. Exits with 1 when it differs
by more.
"""
import math
import pathlib
import statistics
import sys
import tempfile

import onnx
import record_curves as curves
import torch
from torch import nn

from onnxtrain import ORTTrainer, ORTTrainerOptions, optim

SEEDS, UPDATES, LAST, RATIO = 20, 300, 50, 0.1


class Dropping(curves.Transformer):
    """The same with dropout behind every part of a block."""

    def __init__(self):
        super().__init__(True)
        for block in self.blocks:
            block.out = nn.Sequential(block.out, nn.Dropout(RATIO))
            block.down = nn.Sequential(block.down, nn.Dropout(RATIO))


def batches(text):
    """The same windows for every run: starts by the recorder's hash, over the whole text."""
    span = curves.PAGE_BYTES * len(curves.PAGES)
    for update in range(UPDATES):
        starts = [curves.start_of(update, row) * (len(text) - curves.WINDOW - 1) // span for row in range(curves.BATCH)]
        yield (
            torch.tensor([list(text[s : s + curves.WINDOW]) for s in starts]),
            torch.tensor([list(text[s + 1 : s + curves.WINDOW + 1]) for s in starts]),
        )


def in_torch(state, text, precision, seed):
    model = Dropping()
    model.load_state_dict(state)
    optimizer = torch.optim.AdamW(model.parameters(), curves.LR, eps=curves.EPSILON, weight_decay=curves.DECAY)
    dtype = {"f32": None, "bf16": torch.bfloat16, "f16": torch.float16}[precision]
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "f16")
    torch.manual_seed(seed)
    losses = []
    for tokens, labels in batches(text):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype, enabled=dtype is not None):
            loss, _ = model(tokens, labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def here(model, frozen, text, precision, seed):
    rows = ["batch", curves.WINDOW]
    description = {"inputs": [("tokens", rows), ("labels", rows)], "outputs": [("loss", [], True)]}
    options = {"device": {"id": "cpu"}, "utils": {"frozen_weights": frozen, "grad_norm_clip": False}}
    options["onnxtrain"] = {"seed": seed + 1, "precision": precision}
    config = optim.AdamConfig(lr=curves.LR, epsilon=curves.EPSILON, lambda_coef=curves.DECAY)
    trainer = ORTTrainer(model, description, config, options=ORTTrainerOptions(options))
    return [float(trainer.train_step(tokens, labels)) for tokens, labels in batches(text)]


def main(path, precision="f32"):
    text = bytes(c for c in pathlib.Path(path).read_bytes() if c < curves.VOCABULARY)
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = Dropping()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "model.onnx"
        curves.export(model, next(batches(text)), file)
        exported = onnx.load(file)
    frozen = [f"blocks.{i}.mask" for i in range(curves.LAYERS)]
    ends = []
    sides = (
        ("PyTorch", lambda seed: in_torch(state, text, precision, seed)),
        ("onnxtrain", lambda seed: here(exported, frozen, text, precision, seed)),
    )
    for name, run in sides:
        means = [statistics.fmean(run(seed)[-LAST:]) for seed in range(SEEDS)]
        ends.append((statistics.fmean(means), statistics.variance(means) / SEEDS))
        print(f"{name}: {ends[-1][0]:.5f}, of the seeds {' '.join(f'{m:.4f}' for m in means)}", flush=True)
    difference, error = abs(ends[0][0] - ends[1][0]), math.sqrt(ends[0][1] + ends[1][1])
    print(f"difference {difference:.5f}, {difference / error:.2f} standard errors of it, allowed 3")
    return difference > 3 * error


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["bf16"], ["f16"]):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
