#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operator with a gradient beside PyTorch, alone, on a shape that models have (operator_table.py).

    ./dev bench operators --python PYTHON [--threads 1,2] [--only Conv,LSTM] [--out bench/RESULTS.md]

Forward, and forward with the gradients of all inputs, f32: a plan that is run again and again against PyTorch's eager mode with
autograd, in turns, each in a process of its own. PYTHON has torch. Values are compared too. The ratio is PyTorch's time / ours;
operators below 1.0 stand in a list of their own, the slowest first, and a difference in values ends the command with 1.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import operator_table
from results import replace_section
from run import processor

TITLE = "Operators"
WAYS = ("forward", "gradient")
TOLERANCE = 1e-4  # of a value, to its largest element
HEAD = ["| operator | shapes | threads | forward ms: onnxtrain, PyTorch (median) | ratio (median / min) "
        "| with gradients ms: onnxtrain, PyTorch (median) | ratio (median / min) |", "|---" * 7 + "|"]


class Program:
    """A process that answers a line with a line."""

    def __init__(self, command, threads, separator):
        self.separator = separator
        self.process = subprocess.Popen([*command, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS=str(threads)))

    def ask(self, *words):
        self.process.stdin.write(self.separator.join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench: {' '.join(self.process.args)}: ended at {' '.join(str(word) for word in words)}")
        return json.loads(answer)


class Sides:
    """Both programs, which take turns."""

    def __init__(self, build, python, threads, folder):
        self.ours = Program([os.path.join(build, "bench", "bench_operators")], threads, " ")
        self.torch = Program([python, os.path.join(HERE, "operators_torch.py")], threads, "\t")
        self.model, self.data, self.values = (os.path.join(folder, name) for name in ("model.onnxtxt", "data", "values"))

    def measure(self, row, rounds, samples):
        """Seconds by way, ours and PyTorch's, and how far values are apart."""
        with open(self.model, "w") as out:
            out.write(row.model())
        self.torch.ask("row", row.name, self.data)
        self.ours.ask("model", self.model, self.data)
        differences = {}
        if not row.random:
            self.ours.ask("values", self.values)
            differences = self.torch.ask("compare", self.values)
        times = {way: ([], []) for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                for program, seconds in zip((self.ours, self.torch), times[way]):
                    seconds.extend(program.ask("time", way, samples))
        return times, differences


def ratios(times):
    ours, theirs = times
    return statistics.median(theirs) / statistics.median(ours), min(theirs) / min(ours)


def shapes(row):
    return " ".join(f"{i.name}[{i.shape}]" for i in row.tensors())


def line_of(row, threads, times):
    cells = []
    for way in WAYS:
        ours, theirs = times[way]
        median, least = ratios(times[way])
        cells.append(f"{statistics.median(ours) * 1e3:.3f}, {statistics.median(theirs) * 1e3:.3f} | {median:.2f} / {least:.2f}")
    return f"| {row.name} | {shapes(row)} | {threads} | {' | '.join(cells)} |"


def slower_lines(found):
    """Of (name, threads, way, median, least): those whose median is below 1, the slowest first."""
    below = sorted((median, least, name, threads, way) for name, threads, way, median, least in found if median < 1.0)
    if not below:
        return ["No operator is slower than PyTorch's."]
    return [f"{len(below)} of {len(found)} are slower than PyTorch's:", "", "| ratio (median / min) | operator | threads | way |",
            "|---|---|---|---|", *(f"| {median:.2f} / {least:.2f} | {name} | {threads} | {way} |" for median, least, name, threads, way in below)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["operators"])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", required=True, help="one that has torch")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", help="operators, or rows of the table")
    parser.add_argument("--rounds", type=int, default=3, help="in which the programs take turns")
    parser.add_argument("--samples", type=int, default=5, help="of a program in each round")
    parser.add_argument("--out")
    args = parser.parse_args()
    only = args.only.split(",") if args.only else []
    rows = [row for row in operator_table.ROWS if not only or row.operator() in only or row.name in only]
    for name in only:
        if name not in {row.operator() for row in rows}:
            parser.error(f"--only: '{name}' is not in the table (bench/operator_table.py)")
    if args.rounds < 1 or args.samples < 1:
        parser.error("--rounds and --samples: at least 1")
    lines, found, differing = [], [], []
    print("\n".join(HEAD), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for threads in (int(n) for n in args.threads.split(",")):
            sides = Sides(args.build, args.python, threads, folder)
            for row in rows:
                times, differences = sides.measure(row, args.rounds, args.samples)
                found += [(row.name, threads, way, *ratios(times[way])) for way in WAYS]
                differing += [f"bench: {row.name}: {name} differs by {far:.1e} of its largest element"
                              for name, far in differences.items() if not far <= TOLERANCE]
                lines.append(line_of(row, threads, times))
                print(lines[-1], flush=True)
    slower = slower_lines(found)
    print("\n" + "\n".join(slower))
    print("\n".join(differing), file=sys.stderr)
    if args.out:
        said = (f"{processor()}, {os.cpu_count()} processors, `./dev bench operators`, f32. Forward alone, and forward with the gradients of all "
                f"inputs; {args.rounds} rounds of {args.samples} samples in which the programs take turns. The ratio is PyTorch's time / onnxtrain's.")
        replace_section(args.out, TITLE, [said, "", *slower, "", *HEAD, *lines])
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
