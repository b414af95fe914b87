# SPDX-License-Identifier: Apache-2.0
"""What a narrower type gains, and what training in less memory costs: steps of one model in several ways, which take turns.

    ./dev bench precision [--models encoder,gpt] [--threads 1,2] [--rounds 15] [--isa avx2,avx512_bf16] [--out bench/RESULTS.md]
    ./dev bench ceiling [--models gpt] [--ways f32,f32:60,bf16,bf16:60] [--threads 1,2] [--rounds 15] [--out bench/RESULTS.md]

Every row is a way: an element type, behind a colon a ceiling in percent of the bytes of activations and scratch that the first way takes.
Its time is the median of its steps; that to the first is the median of the ratios of steps of one round, and the ratio of the least steps.
--isa keeps to an instruction set (the environment variable OT_ISA), one process for each. With --out the table replaces its section of
that file.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models
from results import replace_section
from run import model_files, processor

TITLES = {"precision": "Precision", "ceiling": "Training under a ceiling"}
WAYS = {"precision": "f32,bf16,f16", "ceiling": "f32,f32:60,f32:45"}
MODELS = {"precision": ",".join(models.NAMES), "ceiling": "gpt"}
HEAD = ["| model | instruction set | threads | way | ms/step, median | ms/step, min | to the first (median / min) | activations and scratch, MB | to the first "
        "| state, MB | losses |", "|---" * 11 + "|"]


def measure(program, path, problem, threads, rounds, isa, ways):
    command = [program, path, *(str(n) for n in (threads, rounds, problem.rows, problem.class_axis, problem.vocabulary)), *ways]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), **({"OT_ISA": isa} if isa else {}))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: {(done.stderr.strip().splitlines() or [f'exit status {done.returncode}'])[-1]}")
    return json.loads(done.stdout)


def losses(found, first):
    """Ways of one type must agree in every bit."""
    if found["way"].split(":")[0] == first["way"].split(":")[0]:
        return "the same bits" if found["losses"] == first["losses"] else "differ"
    return f"{found['losses'][-1]:.4f} for {first['losses'][-1]:.4f}"


def lines_of(name, isa, threads, table):
    first = table[0]
    for found in table:
        pairs = statistics.median(a / b for a, b in zip(found["ms"], first["ms"]))
        yield (f"| {name} | {isa or 'all'} | {threads} | {found['way']} | {statistics.median(found['ms']):.2f} | {min(found['ms']):.2f} "
               f"| {pairs:.2f} / {min(found['ms']) / min(first['ms']):.2f} | {found['activations'] / 1e6:.2f} "
               f"| {found['activations'] / first['activations']:.2f} | {found['state'] / 1e6:.2f} | {losses(found, first)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(TITLES))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", help=f"of {', '.join(models.NAMES)}")
    parser.add_argument("--ways")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--isa", default="", help="of base, avx2, avx512, avx512_bf16")
    parser.add_argument("--python", help="exports models that are not there; bench/run.py says what it needs")
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    args = parser.parse_args()
    names = (args.models or MODELS[args.what]).split(",")
    for name in names:
        if name not in models.NAMES:
            parser.error(f"--models: '{name}' is none of {', '.join(models.NAMES)}")
    ways = (args.ways or WAYS[args.what]).split(",")
    paths = model_files(names, args.work, args.python)
    program = os.path.join(args.build, "bench", "bench_turns")
    rows = []
    print("\n".join(HEAD), flush=True)
    for name in names:
        for isa in args.isa.split(","):
            for threads in (int(n) for n in args.threads.split(",")):
                for line in lines_of(name, isa, threads, measure(program, paths[name], models.problem(name), threads, args.rounds, isa, ways)):
                    rows.append(line)
                    print(line, flush=True)
    if args.out:
        said = f"{processor()}, {os.cpu_count()} processors, `./dev bench {args.what}`, {args.rounds} rounds in which the ways take turns."
        replace_section(args.out, TITLES[args.what], [said, "", *HEAD, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
