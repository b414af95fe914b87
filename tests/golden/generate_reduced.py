#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record how far PyTorch's mixed precision is from its f64; test_reduced.c asks no less of ours.

usage: generate_reduced.py            writes data/reduced.txt (needs torch, numpy, onnx)

The models, optimizers and inputs are those of generate.py, but a trajectory of ten steps is run
from RUNS different streams of inputs: run r takes those of the steps 10 r to 10 r + 9. Parameters
are f32, and in f16 the loss is multiplied with SCALE for the backward pass, and the gradients
divided by it. PyTorch has two ways: torch.autocast, where products read the type and what is beside
them remains in f32 if an operand is, and casts of the input and of the parameters, after which
everything but the loss and running statistics has the type. For every model and optimizer a line
each of

    MODEL OPTIMIZER loss VALUES(10 RUNS)                the losses of PyTorch in f64
    MODEL.TYPE OPTIMIZER loss AUTOCAST CASTS            errors; TYPE is bf16 or f16
    MODEL.TYPE OPTIMIZER PARAMETER AUTOCAST CASTS

The error of losses is the root of the mean over all steps of ((mixed - f64) / f64)^2; of a parameter,
after the last step, the root of the sum over runs of |mixed - f64|^2 over that of |f64|^2, in
Euclidean norms.
"""
import numpy as np
import torch
import torch.nn.functional as F

import generate

RUNS, SCALE = 4, 1024.0
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


def train(model, kind, run, reduced=None, casts=False):
    """Losses and final parameters in f64; `reduced`: under autocast of this type, or with casts to it."""
    wide = torch.float32 if reduced else torch.float64
    scale = SCALE if reduced == torch.float16 else 1.0
    p = {n: torch.tensor(v, dtype=wide, requires_grad=n in model.trained) for n, v in model.initial.items()}
    optimizer = generate.make_optimizer(kind, [p[n] for n in model.trained])
    losses = []
    for step in range(run * generate.STEPS, (run + 1) * generate.STEPS):
        x, labels = map(torch.tensor, model.inputs(step))
        read = {n: v.to(reduced) if casts and n in model.trained else v for n, v in p.items()}
        if x.is_floating_point():
            x = x.to(reduced if casts else wide)
        with torch.autocast("cpu", reduced, enabled=reduced is not None and not casts):
            scores = model.forward(read, x)
            loss = F.cross_entropy(scores.float() if reduced else scores, labels)
        for n in model.trained:
            p[n].grad = None
        (loss * scale).backward()
        for n in model.trained:
            p[n].grad /= scale
            assert torch.isfinite(p[n].grad).all(), f"{model.name}: the scale is too large"
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), {n: v.detach().double().numpy() for n, v in p.items()}


def errors(model, runs, exact):
    yield "loss", np.sqrt(np.mean([((a - b) / b) ** 2 for (a, _), (b, _) in zip(runs, exact)]))
    for n in model.initial:
        off = sum(np.sum((a[n] - b[n]) ** 2) for (_, a), (_, b) in zip(runs, exact))
        yield n, np.sqrt(off / sum(np.sum(b[n] ** 2) for _, b in exact))


def record(model, kind, out):
    exact = [train(model, kind, run) for run in range(RUNS)]
    print(model.name, kind, "loss", " ".join(f"{v:.17g}" for losses, _ in exact for v in losses), file=out)
    for name, dtype in TYPES.items():
        # oneDNN has no LSTM in f16, and PyTorch then no other.
        with torch.backends.mkldnn.flags(enabled=not (model.name == "lstm" and name == "f16")):
            ways = [[train(model, kind, run, dtype, casts) for run in range(RUNS)] for casts in (False, True)]
        for (n, autocast), (_, casts) in zip(*(errors(model, runs, exact) for runs in ways)):
            print(f"{model.name}.{name} {kind} {n} {autocast:.3g} {casts:.3g}", file=out)


def main():
    torch.set_num_threads(1)
    with open(generate.DATA / "reduced.txt", "w") as out:
        print("runs", RUNS, file=out)
        for model in (generate.Mlp(), generate.LeNet(), generate.ResNet(), generate.Transformer(), generate.Lstm(),
                      generate.Gru(), generate.Quantized()):
            for kind in generate.LEARNING_RATES:
                record(model, kind, out)


if __name__ == "__main__":
    main()
