#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every matrix product of the benchmark's models, by every kernel entry.

    ./dev bench kernels --python PYTHON --models encoder,gpt

Forward, and the gradients of the data and of the weights: our own kernel for each instruction set that the processor has, oneDNN's ways,
and, with --python, one that has torch, what PyTorch ships. GFLOP/s of the median and of the least time; the programs take turns. An entry
is taken by a rule that these figures support: src/kernels/product/dnnl_gemm.c.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import models

ROUNDS = 3  # in which the programs take turns


class Layer(NamedTuple):
    """y (rows, outputs) = x (rows, inputs) * w for every batch; w is stored (outputs, inputs) when it is transposed."""

    what: str
    rows: int
    inputs: int
    outputs: int
    transposed: bool = False
    batches: int = 1


class Product(NamedTuple):
    batches: int
    m: int
    n: int
    k: int
    a_transposed: bool
    b_transposed: bool

    def line(self, samples):
        return " ".join(str(int(number)) for number in (*self, samples))

    def text(self):
        batches = f"{self.batches} of " if self.batches > 1 else ""
        return f"{batches}{self.m} {self.n} {self.k} a{'^T' * self.a_transposed} b{'^T' * self.b_transposed}"

    def operations(self):
        return 2 * self.batches * self.m * self.n * self.k


def attention(rows, heads, tokens, size):
    return [Layer("scores", tokens, size, tokens, batches=rows * heads),
            Layer("context", tokens, tokens, size, batches=rows * heads)]


def transformer(rows, tokens, width, heads):
    n = rows * tokens
    return [Layer("q, k and v", n, width, 3 * width), *attention(rows, heads, tokens, width // heads),
            Layer("out", n, width, width), Layer("dense 1", n, width, 4 * width), Layer("dense 2", n, 4 * width, width)]


def batch(name):
    return models.problem(name).rows


def tokens(name):
    return models.problem(name).row[0]


# The layers that are products; widths are those of modules.py.
LAYERS = {
    "mlp": [Layer("1", batch("mlp"), 784, 512, True), Layer("2", batch("mlp"), 512, 512, True), Layer("3", batch("mlp"), 512, 10, True)],
    "lenet": [Layer("1", batch("lenet"), 400, 120, True), Layer("2", batch("lenet"), 120, 84, True),
              Layer("3", batch("lenet"), 84, 10, True)],
    "resnet18": [Layer("head", batch("resnet18"), 512, 1000, True)],
    "mobilenetv2": [Layer("head", batch("mobilenetv2"), 1280, 1000, True)],
    "resnet50": [Layer("head", batch("resnet50"), 2048, 1000, True)],
    "encoder": [*transformer(batch("encoder"), tokens("encoder"), 256, 8), Layer("out", batch("encoder") * tokens("encoder"), 256, 256, True)],
    "gpt": [*transformer(batch("gpt"), tokens("gpt"), 256, 8), Layer("head", batch("gpt") * tokens("gpt"), 256, models.problem("gpt").classes)],
    "bert": [Layer("q, k, v and out", batch("bert") * tokens("bert"), 768, 768), *attention(batch("bert"), 12, tokens("bert"), 64),
             Layer("dense 1", batch("bert") * tokens("bert"), 768, 3072), Layer("dense 2", batch("bert") * tokens("bert"), 3072, 768),
             Layer("head", batch("bert") * tokens("bert"), 768, models.problem("bert").classes)],
    "lstm": [Layer("input", batch("lstm") * tokens("lstm"), 256, 1024, True), Layer("state", batch("lstm"), 256, 1024, True),
             Layer("head", batch("lstm") * tokens("lstm"), 256, models.problem("lstm").classes)],
}


def products_of(layer):
    """The forward product and those of the gradients of x and of w."""
    b, rows, n_in, n_out = layer.batches, layer.rows, layer.inputs, layer.outputs
    yield "forward", Product(b, rows, n_out, n_in, False, layer.transposed)
    yield "data", Product(b, rows, n_in, n_out, False, not layer.transposed)
    yield "weights", Product(b, n_out, n_in, rows, True, False) if layer.transposed else Product(b, n_in, n_out, rows, True, False)


def products(names):
    """Each once, with where it occurs."""
    found = {}
    for name in names:
        for layer in LAYERS[name]:
            for form, product in products_of(layer):
                found.setdefault(product, []).append(f"{name} {layer.what}, {form}")
    return found


class Program:
    """A process that answers a product with seconds by entry."""

    def __init__(self, command, threads):
        self.process = subprocess.Popen([*command, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS=str(threads)))

    def ask(self, product, samples):
        self.process.stdin.write(product.line(samples) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench: {' '.join(self.process.args)}: ended at the product {product.text()}")
        return json.loads(answer)


def measure(programs, product, samples):
    """Seconds by entry, from all rounds."""
    times = {}
    for _ in range(ROUNDS):
        for program in programs:
            for entry, seconds in program.ask(product, samples).items():
                times.setdefault(entry, []).extend(seconds)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", default=",".join(LAYERS), help=f"of {', '.join(LAYERS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--samples", type=int, default=15, help=f"of an entry in each of {ROUNDS} rounds")
    parser.add_argument("--python", help="one that has torch: also what PyTorch ships")
    parser.add_argument("--json", action="store_true", help="one object a line instead of a table")
    args = parser.parse_args()
    names = args.models.split(",")
    for name in names:
        if name not in LAYERS:
            parser.error(f"--models: '{name}' is none of {', '.join(LAYERS)}")
    if args.threads < 1 or args.samples < 1:
        parser.error("--threads and --samples: at least 1")
    programs = [Program([os.path.join(args.build, "bench", "bench_kernels")], args.threads)]
    if args.python:
        programs.append(Program([args.python, os.path.join(HERE, "kernels_torch.py")], args.threads))
    head = None
    for product, places in products(names).items():
        times = measure(programs, product, args.samples)
        speed = {entry: (product.operations() / statistics.median(seconds) * 1e-9, product.operations() / min(seconds) * 1e-9)
                 for entry, seconds in times.items()}
        if args.json:
            print(json.dumps({**product._asdict(), "threads": args.threads, "where": places, "gflops": speed}), flush=True)
            continue
        if head is None:
            head = list(speed)
            print(f"GFLOP/s, median / best of {ROUNDS * args.samples}, threads {args.threads}\n\n| m n k | {' | '.join(head)} | where |\n"
                  f"{'|---' * (len(head) + 2)}|")
        cells = (f"{speed[entry][0]:.0f} / {speed[entry][1]:.0f}" if entry in speed else "" for entry in head)
        print(f"| {product.text()} | {' | '.join(cells)} | {places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''} |", flush=True)


if __name__ == "__main__":
    main()
