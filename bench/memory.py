# SPDX-License-Identifier: Apache-2.0
"""What a trainer says that it takes, against what the library asks for.

    ./dev bench memory [--models mlp,gpt] [--ways f32,bf16,f32:90] [--python PYTHON] [--out bench/RESULTS.md]

A way is an element type, behind a colon a memory_max in percent of what training takes without one. For every model and way: what ot_trainer_memory() says before the first step, and the peak of the library's allocations over steps 1 to 3; then
the peaks while the trainer is made of the file, saved and loaded. The first must lie within 2 % or 512 KiB, whichever is more, the
others at most the largest parameter above the peak of the steps: else the figure is marked and the exit status is 1. A ceiling below the
least that a step can do with is refused, which the row says. With --out the
table replaces its section of that file.
"""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models
import process
from results import replace_section
from run import model_files, processor

PARTS = ["parameters", "gradients", "moments", "derived", "activations", "scratch", "outputs", "structure"]
SHARE, LEAST = 0.02, 512 << 10


def megabytes(n):
    return f"{n / 1e6:.2f}"


def measure(program, path, problem, threads, way):
    precision, _, ceiling = way.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        numbers = threads, problem.rows, problem.class_axis, problem.vocabulary, int(ceiling or 0)
        command = [program, path, *(str(n) for n in numbers), precision, folder]
        return process.run_once(command, threads)


def line_of(name, way, found, first):
    """A row of the table, and whether all that was promised holds; `first`: the bytes of activations of the model's first way."""
    steps, limit = found["steps"], found["steps"] + found["largest"]
    is_near = abs(found["total"] - steps) <= max(SHARE * steps, LEAST)
    marks = {"total": is_near, **{phase: found[phase] <= limit for phase in ("creation", "saving", "loading")}}
    cells = [megabytes(found[part]) for part in PARTS]
    cells += [megabytes(found["total"]) + ("" if is_near else " !"), megabytes(steps), f"{100 * (found['total'] / steps - 1):+.2f} %"]
    cells += [megabytes(found[phase]) + ("" if marks[phase] else " !") for phase in ("creation", "saving", "loading")]
    cells[PARTS.index("activations")] += f" ({found['activations'] / first:.2f})"
    return f"| {name} | {way} | {' | '.join(cells)} | {megabytes(limit)} |", all(marks.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", default=",".join(models.NAMES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ways", default="f32")
    parser.add_argument("--python", help="exports models that are not there; bench/run.py says what it needs")
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    args = parser.parse_args()
    names = args.models.split(",")
    for name in names:
        if name not in models.NAMES:
            parser.error(f"--models: '{name}' is none of {', '.join(models.NAMES)}")
    paths = model_files(names, args.work, args.python)
    head = [f"| model | way | {' | '.join(PARTS)} | total | peak of steps | total to it | making | saving | loading | at most |",
            "|---" * (len(PARTS) + 9) + "|"]
    print("\n".join(head), flush=True)
    rows, all_hold = [], True
    for name in names:
        first = None
        for way in args.ways.split(","):
            found = measure(os.path.join(args.build, "bench", "bench_memory"), paths[name], models.problem(name), args.threads, way)
            first = first or found.get("activations")
            if "error" in found:
                line, holds = f"| {name} | {way} | {found['error'].replace('bench_memory', 'refused').split(';')[0].replace('|', '/')} |", ":" in way
            else:
                line, holds = line_of(name, way, found, first)
            all_hold = all_hold and holds
            rows.append(line)
            print(line, flush=True)
    if args.out:
        said = [f"{processor()}, `./dev bench memory --ways {args.ways} --threads {args.threads}`, MB; behind the activations their part of those of the first way."]
        replace_section(args.out, "Memory", [*said, "", *head, *rows])
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
