#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what PyTorch's parameters are after 20 updates; test_trained.c trains over ranks and compares.

usage: record_trained.py      writes data/NAME.txt, data/cnn.onnxtxt, data/gpt.onnxtxt (needs torch, numpy, onnx)

The models are some of ../golden/generate.py, and two of its kind. NAME.txt has "batch ROWS" of a micro-batch, "classes
N", "words N" (integer inputs are below), then for every parameter of every trajectory a line

    OPTIMIZER.ACCUMULATION[.RANKS] PARAMETER ERROR VALUES...

VALUES are those of one process in f64, written as f32. ERROR is PyTorch's own f32 error against them, |f32 - f64| / |f64| of
Euclidean norms: the largest of several runs that differ only in the order of the rows, which changes nothing but the rounding.
A model with batch normalisation depends on the number of ranks: its batches are cut into as many slices, each of which has
statistics of its own rows; the running ones, the mean of what the slices have made of them, begin the next update.
"""
import pathlib
import sys

import numpy as np
import onnx.parser
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
from generate import (BETA1, BETA2, DECAY, MOMENTUM, NORM_EPSILON, Lstm, Mlp, Model, ResNet, Transformer, batch_norm_text, f32,
                      hashed, whole)

UPDATES, ROWS, RUNS_F32 = 20, 24, 8
RANKS = (1, 2, 3, 4, 8)
EPSILON, MAX_NORM = f32(1e-6), f32(0.5)
LEARNING_RATES = {"sgd": 0.1, "momentum": 0.02, "adamw": 0.01, "adam": 0.01, "lamb": 0.02}
CLIPPED = ("adam", "lamb")
TRAJECTORIES = [(kind, accumulation) for kind in LEARNING_RATES for accumulation in (1, 3)]


class Cnn(ResNet):
    """Two convolutions with batch normalisation over 6x6 pictures; no kinks, on whose other side rounding could lead."""

    name, x_shape, classes = "cnn", (2, 6, 6), 5
    body = ("\n"
            '   a0 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, "conv1.weight")\n'
            + batch_norm_text("a1", "a0", "bn1") +
            '   a2 = Tanh (a1)\n'
            '   b0 = Conv <kernel_shape = [3, 3], strides = [2, 2]> (a2, "conv2.weight")\n'
            + batch_norm_text("b1", "b0", "bn2") +
            '   b2 = Tanh (b1)\n'
            '   c = Flatten (b2)\n'
            '   y = Gemm <transB = 1> (c, "fc.weight", "fc.bias")\n')

    def declare(self):
        self.parameter("conv1.weight", (4, 2, 3, 3))
        self.batch_norm("bn1", 4)
        self.parameter("conv2.weight", (6, 4, 3, 3))
        self.batch_norm("bn2", 6)
        self.parameter("fc.weight", (5, 24))
        self.parameter("fc.bias", (5,), 0.2)

    def forward(self, p, x):
        x = torch.tanh(self.norm(p, F.conv2d(x, p["conv1.weight"], padding=1), "bn1"))
        x = torch.tanh(self.norm(p, F.conv2d(x, p["conv2.weight"], stride=2), "bn2"))
        return F.linear(x.flatten(1), p["fc.weight"], p["fc.bias"])


class Gpt(Model):
    """A causal block over 6 tokens, width 8, two heads; scores of the next token by the embedding itself."""

    name, opset, x_type, x_shape, x_below, classes = "gpt", 20, "int64", (6,), 11, 11
    constants = "   int64[4] split = {0, 0, 2, 4}, int64[3] join = {0, 0, 8}, float scale = {0.5}"
    body = """
   e = Gather (embed, x)
   x0 = Add (e, position)
   n1 = LayerNormalization <axis = -1, epsilon = 0.00001> (x0, "ln1.weight", "ln1.bias")
   q0 = MatMul (n1, "q.weight")
   k0 = MatMul (n1, "k.weight")
   v0 = MatMul (n1, "v.weight")
   q2 = Reshape (q0, split)
   k2 = Reshape (k0, split)
   v2 = Reshape (v0, split)
   q3 = Transpose <perm = [0, 2, 1, 3]> (q2)
   k3 = Transpose <perm = [0, 2, 3, 1]> (k2)
   v3 = Transpose <perm = [0, 2, 1, 3]> (v2)
   s0 = MatMul (q3, k3)
   s1 = Mul (s0, scale)
   s2 = Add (s1, mask)
   s3 = Softmax <axis = -1> (s2)
   o0 = MatMul (s3, v3)
   o1 = Transpose <perm = [0, 2, 1, 3]> (o0)
   o2 = Reshape (o1, join)
   o3 = MatMul (o2, "out.weight")
   x1 = Add (x0, o3)
   n2 = LayerNormalization <axis = -1, epsilon = 0.00001> (x1, "ln2.weight", "ln2.bias")
   u0 = MatMul (n2, "up.weight")
   u1 = Add (u0, "up.bias")
   u2 = Gelu (u1)
   d0 = MatMul (u2, "down.weight")
   d1 = Add (d0, "down.bias")
   x2 = Add (x1, d1)
   n3 = LayerNormalization <axis = -1, epsilon = 0.00001> (x2, "ln3.weight", "ln3.bias")
   t = Transpose <perm = [1, 0]> (embed)
   z = MatMul (n3, t)
   y = Transpose <perm = [0, 2, 1]> (z)
"""

    def text(self):
        return super().text().replace(f"(float[N,{self.classes}] y)", f"(float[N,{self.classes},6] y)")

    def inputs(self, step):
        return whole(2 * step, (self.rows, 6), self.x_below), whole(2 * step + 1, (self.rows, 6), self.classes)

    def declare(self):
        c, up = 8, 24
        self.parameter("embed", (self.x_below, c), 1.0)
        self.parameter("position", (*self.x_shape, c), 0.3)
        self.initial["mask"] = np.triu(np.full((6, 6), -1e9), 1)
        for name in ("ln1", "ln2", "ln3"):
            self.parameter(f"{name}.weight", (c,), 0.3, 1.0)
            self.parameter(f"{name}.bias", (c,), 0.3)
        for name, a, b in [("q", c, c), ("k", c, c), ("v", c, c), ("out", c, c), ("up", c, up), ("down", up, c)]:
            self.parameter(f"{name}.weight", (a, b), (3.0 / a) ** 0.5)
            if name in ("up", "down"):
                self.parameter(f"{name}.bias", (b,), 0.2)

    def forward(self, p, x):
        def heads(t):
            return t.reshape(*t.shape[:2], 2, 4).transpose(1, 2)

        x = p["embed"][x] + p["position"]
        n = F.layer_norm(x, (8,), p["ln1.weight"], p["ln1.bias"], NORM_EPSILON)
        q, k, v = n @ p["q.weight"], n @ p["k.weight"], n @ p["v.weight"]
        s = torch.softmax(heads(q) @ heads(k).transpose(2, 3) * 0.5 + p["mask"], dim=-1)
        x = x + (s @ heads(v)).transpose(1, 2).reshape(x.shape) @ p["out.weight"]
        n = F.layer_norm(x, (8,), p["ln2.weight"], p["ln2.bias"], NORM_EPSILON)
        x = x + F.gelu(n @ p["up.weight"] + p["up.bias"]) @ p["down.weight"] + p["down.bias"]
        n = F.layer_norm(x, (8,), p["ln3.weight"], p["ln3.bias"], NORM_EPSILON)
        return (n @ p["embed"].T).transpose(1, 2)


class Lamb:
    """With decay in the direction, corrected moments, and the ratio of the norms of every tensor."""

    def __init__(self, parameters, lr):
        self.parameters, self.lr, self.step_count = parameters, lr, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    @torch.no_grad()
    def step(self):
        self.step_count += 1
        c1, c2 = 1 - BETA1**self.step_count, 1 - BETA2**self.step_count
        for p, (m, v) in zip(self.parameters, self.moments):
            m.mul_(BETA1).add_(p.grad, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(p.grad, p.grad, value=1 - BETA2)
            d = DECAY * p + (m / c1) / ((v / c2).sqrt() + EPSILON)
            p.sub_(self.lr * p.norm() / d.norm() * d)


def make_optimizer(kind, parameters):
    lr = f32(LEARNING_RATES[kind])
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    if kind == "momentum":
        return torch.optim.SGD(parameters, lr=lr, momentum=MOMENTUM, nesterov=True, weight_decay=DECAY)
    if kind == "lamb":
        return Lamb(parameters, lr)
    return torch.optim.AdamW(parameters, lr=lr, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY)


def train(model, kind, accumulation, n_slices, dtype, order):
    """Final parameters in f64; `order` permutes the rows of a slice."""
    p = {n: torch.tensor(v, dtype=dtype, requires_grad=n in model.trained) for n, v in model.initial.items()}
    trained, statistics = [p[n] for n in model.trained], [n for n in p if n not in model.trained]
    optimizer = make_optimizer(kind, trained)
    for update in range(UPDATES):
        made = {n: torch.zeros_like(p[n]) for n in statistics}
        for t in trained:
            t.grad = None
        for part in np.split(np.arange(model.rows), n_slices):
            own = {n: p[n].clone() if n in made else p[n] for n in p}
            for a in range(accumulation):
                x, labels = (torch.tensor(i[part][order]) for i in model.inputs(update * accumulation + a))
                scores = model.forward(own, x.to(dtype) if x.is_floating_point() else x)
                (F.cross_entropy(scores, labels) / (accumulation * n_slices)).backward()
            for n in statistics:
                made[n] += own[n] / n_slices
        p.update(made)
        if kind in CLIPPED:
            torch.nn.utils.clip_grad_norm_(trained, MAX_NORM)
        optimizer.step()
    return {n: v.detach().double().numpy() for n, v in p.items()}


def record(model, kind, accumulation, n_slices, out):
    rows = model.rows // n_slices
    values = train(model, kind, accumulation, n_slices, torch.float64, np.arange(rows))
    errors = dict.fromkeys(values, 0.0)
    for i in range(RUNS_F32):
        order = np.arange(rows) if i == 0 else np.argsort(hashed(100 + i, rows))
        found = train(model, kind, accumulation, n_slices, torch.float32, order)
        for n, v in values.items():
            errors[n] = max(errors[n], np.linalg.norm(found[n] - v) / np.linalg.norm(v))
    trajectory = f"{kind}.{accumulation}" + (f".{n_slices}" if isinstance(model, Cnn) else "")
    for n, v in values.items():
        print(trajectory, n, f"{errors[n]:.3g}", " ".join(f"{x:.9g}" for x in v.ravel()), file=out)
    print(f"{model.name} {trajectory}: f32 errors {min(errors.values()):.1e} .. {max(errors.values()):.1e}")


def main():
    torch.set_num_threads(1)
    new = Cnn(), Gpt()
    for model in new:
        onnx.checker.check_model(onnx.parser.parse_model(model.text()), full_check=True)
        (HERE / "data" / f"{model.name}.onnxtxt").write_text(model.text())
    for model in (Mlp(), Lstm(), Transformer(), *new):
        model.rows = ROWS
        with open(HERE / "data" / f"{model.name}.txt", "w") as out:
            print("batch", model.rows, file=out)
            print("classes", model.classes, file=out)
            print("words", model.x_below, file=out)
            for kind, accumulation in TRAJECTORIES:
                for n_slices in RANKS if isinstance(model, Cnn) else (1,):
                    record(model, kind, accumulation, n_slices, out)


if __name__ == "__main__":
    main()
