#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every matrix product of the benchmark's models, and a list of sizes, by every kernel entry; and attention.

    ./dev bench kernels --python PYTHON --models encoder,gpt
    ./dev bench kernels --python PYTHON --models sizes --short
    ./dev bench kernels --python PYTHON --models attention

Forward, and the gradients of the data and of the weights: our own kernel for each instruction set that the processor has; oneDNN row-major,
with b brought into the layout that it chooses each time ("packing") and with b there already ("packed"); OpenBLAS and BLIS where the loader
finds libopenblas.so.0 and libblis.so.4; and, with --python, one that has torch, what PyTorch ships. Beside them the limits: the same
multiply-adds in registers ("FMA peak"), and each operand touched once ("bytes"). GFLOP/s of the median and of the least time; the programs
take turns. An entry is taken by a rule that these figures support: src/kernels/product/dnnl_gemm.c. OT_ISA=avx2 is the same for a processor
that has no more.

Attention is compared with the time in which our own kernel does as many multiply-adds in products of 1024^3: two products forward, five for
the gradients, which compute the scores again; causal, only the pairs that take part count. PyTorch's is scaled_dot_product_attention.
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
        return " ".join(["product", *(str(int(number)) for number in (*self, samples))])

    def text(self):
        batches = f"{self.batches} of " if self.batches > 1 else ""
        return f"{batches}{self.m} {self.n} {self.k} a{'^T' * self.a_transposed} b{'^T' * self.b_transposed}"

    def operations(self):
        return 2 * self.batches * self.m * self.n * self.k

    def kind(self):
        least = min(self.m, self.n, self.k)
        return "large" if least >= 512 else "middle" if least >= 256 else "skinny" if least <= 64 else ""


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
    "sizes": [*(Layer("square", n, n, n) for n in (256, 512, 768, 1024, 2048, 4096)), Layer("square", 1024, 1024, 1024, True),
              Layer("wide", 512, 768, 3072), Layer("deep", 512, 3072, 768, True), Layer("long", 4096, 512, 512),
              *(Layer("few rows", rows, 1024, 1024, transposed) for rows in (1, 8, 16, 32, 64) for transposed in (False, True)),
              Layer("few rows", 16, 256, 1024), Layer("few rows", 8, 128, 512), Layer("few rows", 64, 784, 512, True),
              Layer("few outputs", 1024, 1024, 10), Layer("few outputs", 2048, 512, 64, True), Layer("few inputs", 1024, 32, 1024)],
}



class Attention(NamedTuple):
    batch: int
    heads: int
    tokens: int
    size: int
    causal: bool

    def line(self, samples):
        return " ".join(["attention", *(str(int(number)) for number in (*self, samples))])

    def text(self):
        return f"{self.batch} {self.heads} {self.tokens} {self.size}{' causal' * self.causal}"

    def operations(self):
        """Of one of the products."""
        pairs = self.tokens * (self.tokens + 1) // 2 if self.causal else self.tokens ** 2
        return 2 * self.batch * self.heads * pairs * self.size


ATTENTION = "attention"  # beside the models
ATTENTIONS = [Attention(8, 4, tokens, 64, causal) for tokens in (128, 256, 512, 1024, 2048) for causal in (False, True)]
ATTENTION_PRODUCTS = {"forward": 2, "gradients": 5}
SQUARE = 1024  # of the product that attention is compared with
OF_SQUARE = 0.7  # of its speed is what attention is to reach, forward and gradients together

LIMITS = ("FMA peak", "bytes")
TO_BEST = {"large": 0.97, "middle": 0.95, "skinny": 0.95}  # what the entry taken is to reach of the best library
OF_PEAK = 0.8  # and a large product of the peak


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
    """A process that answers a product with the entry taken and seconds by entry."""

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


class Result(NamedTuple):
    """Of one product: the entry taken, and GFLOP/s of the median and of the least time by entry."""

    product: Product
    chosen: str
    speed: dict

    def best_library(self):
        """The fastest by least time; our own kernels are no library."""
        names = [name for name in self.speed if name not in LIMITS and not name.startswith("own")]
        return max(names, key=lambda name: self.speed[name][1], default=None)

    def ratio(self):
        """Of the entry taken to the best library, by least times."""
        best = self.best_library()
        return None if best is None else self.speed[self.chosen][1] / self.speed[best][1]

    def of_peak(self):
        return self.speed[self.chosen][1] / self.speed["FMA peak"][1]

    def of_bound(self):
        """Of the lower of both limits."""
        return self.speed[self.chosen][1] / min(self.speed[limit][1] for limit in LIMITS)

    def misses(self):
        """What it does not reach, as a mark; nothing is asked of the products of no kind."""
        kind, ratio = self.product.kind(), self.ratio()
        marks = ["library"] if ratio is not None and kind and ratio < TO_BEST[kind] else []
        return ", ".join(marks + (["peak"] if kind == "large" and self.of_peak() < OF_PEAK else []))

    def cells(self):
        best, ratio = self.best_library(), self.ratio()
        library = ["", ""] if best is None else [f"{best}, {self.speed[best][1]:.0f}", f"{ratio:.2f}"]
        return [self.product.text(), self.product.kind(), f"{self.chosen}, {self.speed[self.chosen][1]:.0f}", *library,
                f"{100 * self.of_peak():.0f} %", f"{100 * self.of_bound():.0f} %", self.misses()]


SUMMARY = ["m n k", "kind", "taken", "best library", "taken to it", "of FMA peak", "of the bound", "below"]


def measure(programs, product, samples):
    times, chosen = {}, None
    for _ in range(ROUNDS):
        for program in programs:
            answer = program.ask(product, samples)
            chosen = answer.pop("chosen", chosen)
            for entry, seconds in answer.items():
                times.setdefault(entry, []).extend(seconds)
    return Result(product, chosen, {entry: (product.operations() / statistics.median(seconds) * 1e-9, product.operations() / min(seconds) * 1e-9)
                                    for entry, seconds in times.items()})


def row(cells):
    return f"| {' | '.join(cells)} |"


def measure_attention(programs, attention, samples):
    """Least seconds by entry, and bytes of scratch per thread of forward and gradients."""
    times, scratch = {}, None
    for _ in range(ROUNDS):
        for program in programs:
            answer = program.ask(attention, samples)
            scratch = answer.pop("scratch", scratch)
            for entry, seconds in answer.items():
                times[entry] = min([times.get(entry, float("inf")), *seconds])
    return times, scratch


def attention_cells(attention, times, scratch, threads):
    rate = 2 * SQUARE ** 3 / times["product"]
    speed = {way: n * attention.operations() / times[way] for way, n in ATTENTION_PRODUCTS.items()}
    both = sum(times[way] for way in ATTENTION_PRODUCTS)
    reached = sum(ATTENTION_PRODUCTS.values()) * attention.operations() / both / rate
    torch = f"{(times['PyTorch forward'] + times['PyTorch gradients']) / both:.2f}" if "PyTorch forward" in times else ""
    return [attention.text(), str(threads), *(f"{speed[way] * 1e-9:.0f}, {speed[way] / rate:.2f}" for way in ATTENTION_PRODUCTS),
            f"{rate * 1e-9:.0f}", f"{reached:.2f}", torch, " + ".join(f"{n / 1024:.0f}" for n in scratch),
            "product" if reached < OF_SQUARE else ""]


def print_attention(programs, args):
    if not args.json:
        head = ["batch heads tokens size", "threads", "forward GFLOP/s, to the product", "gradients", "product", "both to the product",
                "PyTorch's time / ours", "scratch KiB a thread", "below"]
        print(f"\n{row(head)}\n{'|---' * len(head)}|")
    for attention in ATTENTIONS:
        times, scratch = measure_attention(programs, attention, args.samples)
        if args.json:
            print(json.dumps({**attention._asdict(), "threads": args.threads, "seconds": times, "scratch": scratch}), flush=True)
        else:
            print(row(attention_cells(attention, times, scratch, args.threads)), flush=True)


class Table:
    """Markdown. The head names the entries of the first product."""

    def __init__(self, short, threads):
        self.short, self.threads, self.entries = short, threads, None

    def add(self, result, places):
        if self.entries is None:
            self.entries = [] if self.short else list(result.speed)
            head = [*SUMMARY, *self.entries, "where"]
            print(f"GFLOP/s, least time{'' if self.short else ', of entries median / least'}; threads {self.threads}\n\n{row(head)}\n"
                  f"{'|---' * len(head)}|")
        entries = (f"{result.speed[entry][0]:.0f} / {result.speed[entry][1]:.0f}" if entry in result.speed else "" for entry in self.entries)
        where = f"{places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''}"
        print(row([*result.cells(), *entries, where]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", default=",".join([*LAYERS, ATTENTION]), help=f"of {', '.join([*LAYERS, ATTENTION])}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--samples", type=int, default=15, help=f"of an entry in each of {ROUNDS} rounds, fewer where they take long")
    parser.add_argument("--python", help="one that has torch: also what PyTorch ships")
    parser.add_argument("--short", action="store_true", help="without the columns of all entries")
    parser.add_argument("--json", action="store_true", help="one object a line instead of a table")
    args = parser.parse_args()
    names = args.models.split(",")
    for name in names:
        if name not in LAYERS and name != ATTENTION:
            parser.error(f"--models: '{name}' is none of {', '.join([*LAYERS, ATTENTION])}")
    if args.threads < 1 or args.samples < 1:
        parser.error("--threads and --samples: at least 1")
    programs = [Program([os.path.join(args.build, "bench", "bench_kernels")], args.threads)]
    if args.python:
        programs.append(Program([args.python, os.path.join(HERE, "kernels_torch.py")], args.threads))
    table, below = Table(args.short, args.threads), 0
    wanted = products([name for name in names if name != ATTENTION])
    for product, places in wanted.items():
        result = measure(programs, product, args.samples)
        below += result.misses() != ""
        if args.json:
            print(json.dumps({**product._asdict(), "threads": args.threads, "where": places, "chosen": result.chosen, "gflops": result.speed}),
                  flush=True)
        else:
            table.add(result, places)
    if wanted and not args.json:
        print(f"\n{below} of {len(wanted)} below")
    if ATTENTION in names:
        print_attention(programs, args)


if __name__ == "__main__":
    main()
