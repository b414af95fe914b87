# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/operators.py: operators_torch.py THREADS. Reads requests, a line each, and answers each with a line:

    row NAME DATA          another row of the table; writes what its inputs are and the gradient of Y
    time WAY SAMPLES       "forward" (no gradient is recorded) or "gradient": seconds of a run in each sample
    compare FILE           how far Y and its gradients there are from PyTorch's, by value: to the largest of each
"""

import json
import math
import os
import sys
import time
import zlib

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import operator_table

SAMPLE_SECONDS, MOST_SECONDS = 2e-3, 0.5  # as in operators.c


def draw(spec, generator):
    if spec.distinct:
        half = math.prod(spec.dims()) / 2  # below 2^23: whole numbers that f32 tells apart
        return ((torch.randperm(int(2 * half), generator=generator) - half) / half).reshape(spec.dims())
    if spec.dtype == "f32":
        low, high = float(spec.low or -1), float(spec.high or 1)
        return torch.rand(spec.dims(), generator=generator) * (high - low) + low
    numbers = torch.randint(int(spec.bound), spec.dims(), generator=generator)
    return numbers.bool() if spec.dtype == "bool" else numbers


def in_order_of_torch(x, gates):
    """Weights of all gates, one gate after the other, the gates in PyTorch's order."""
    if not gates:
        return x
    parts = x.unflatten(1, (-1, len(gates), x.shape[1] // len(gates) // (1 if x.dim() == 3 else 2)))
    return parts[:, :, [int(gate) for gate in gates]].flatten(1, 3).contiguous()


class Case:
    """A row with its inputs."""

    def __init__(self, row, path):
        generator = torch.Generator().manual_seed(zlib.crc32(row.name.encode()))
        specs = row.tensors()
        inputs = [draw(spec, generator) for spec in specs]
        self.row = row
        self.leaves = [in_order_of_torch(x, row.gates if spec.name in "WRB" else "") for x, spec in zip(inputs, specs)]
        self.wanted = [x.requires_grad_() for x, spec in zip(self.leaves, specs) if spec.is_wanted()]
        self.names = [spec.name for spec in specs if spec.is_wanted()]
        self.call = eval(f"lambda {', '.join(spec.name for spec in specs)}: {row.torch}", {"torch": torch, "F": F})
        y = self.forward()
        self.dy = torch.rand(y.shape, generator=generator) * 2 - 1
        with open(path, "wb") as out:
            for x in [*inputs, self.dy]:
                out.write(x.detach().contiguous().numpy().tobytes())

    def forward(self):
        with torch.no_grad():
            return self.call(*self.leaves)

    def gradient(self):
        y = self.call(*self.leaves)
        return y, torch.autograd.grad(y, self.wanted, self.dy)

    def differences(self, path):
        y, gradients = self.gradient()
        theirs = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.float32)
        found = {}
        for name, x in zip(["Y", *self.names], [y.detach(), *gradients]):
            ours, theirs = theirs[:x.numel()].reshape(x.shape), theirs[x.numel():]
            if name in ("W", "R", "B"):
                ours = in_order_of_torch(ours, self.row.gates)
            found[name] = float((ours - x).abs().max() / x.abs().max())
        return found


def sample(run, repeats):
    before = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - before) / repeats


def times(run, n_samples):
    sample(run, 1)
    once = sample(run, 1)
    return [sample(run, 1 + int(SAMPLE_SECONDS / once)) for _ in range(min(n_samples, 1 + int(MOST_SECONDS / once)))]


def main():
    torch.set_num_threads(int(sys.argv[1]))
    rows = {row.name: row for row in operator_table.ROWS}
    case = None
    for line in sys.stdin:
        words = line.rstrip("\n").split("\t")
        answer = {}
        if words[0] == "row":
            case = Case(rows[words[1]], words[2])
        elif words[0] == "time":
            answer = times(getattr(case, words[1]), int(words[2]))
        else:
            answer = case.differences(words[1])
        print(json.dumps(answer), flush=True)


main()
