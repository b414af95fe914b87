# SPDX-License-Identifier: Apache-2.0
"""Training steps of the same models in onnxtrain, PyTorch and ONNX Runtime training 1.19.2, alternating, each in its own process.

    python3 bench/run.py --build build/release [--models mlp,lenet,resnet18] [--threads 1,2] [--rounds 5] [--out bench/RESULTS.md]
    python3 bench/run.py --build build/release --against COMMIT [--models ..] [--threads 1,2] [--pairs 15]

With --against the library is compared with itself at an earlier commit instead (against.py).

The peers come from PyPI into a virtual environment of the benchmark's own (Python 3.8 to 3.11, which ONNX Runtime training's last
release supports). Prints milliseconds a step (median of the processes' medians, and the least step), the seconds from process start to the
first finished step, peak resident memory, and the ratios to the faster and the smaller peer.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import against
import models
import process

HERE = os.path.dirname(os.path.abspath(__file__))


def make_environment(folder):
    """The interpreter of the peers' virtual environment."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "ready")):
        if not (3, 8) <= sys.version_info[:2] <= (3, 11):
            sys.exit("bench: ONNX Runtime training 1.19.2 needs Python 3.8 to 3.11")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        packages = ["numpy<2", "onnx<1.17", "torch", "onnxruntime-training-cpu==1.19.2"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        open(os.path.join(folder, "ready"), "w").close()
    return python


def model_files(names, work):
    """The models as files, by name."""
    os.makedirs(work, exist_ok=True)
    paths = {}
    for name in names:
        paths[name] = os.path.join(work, name + ".onnxtxt")
        with open(paths[name], "w") as out:
            out.write(models.onnx_text(name))
    return paths


def make_artifacts(paths, build):
    """ONNX Runtime's side trains from artifacts. Every program draws initial values of its own."""
    for name, path in paths.items():
        subprocess.run([os.path.join(build, "cli", "onnxtrain"), "artifacts", path, "--output", "scores", "--adam-mode", "1",
                        "--class-axis", str(models.problem(name).class_axis), "--out", artifacts_of(path)], check=True)


def artifacts_of(path):
    return os.path.splitext(path)[0]


def commands(name, threads, build, path, python):
    problem = models.problem(name)
    steps = str(problem.steps + problem.warm_up)
    program = os.path.join(build, "bench", "bench_step")
    return {
        "onnxtrain": process.library_command(program, path, problem, threads),
        "PyTorch": [python, os.path.join(HERE, "step_torch.py"), name, str(threads), steps],
        "ONNX Runtime": [python, os.path.join(HERE, "step_ort.py"), artifacts_of(path), name, str(threads), steps],
    }


def measure(name, threads, args, path, python):
    """For every program, its runs in turn: a disturbance of the machine meets all of them."""
    runs = {}
    for _ in range(args.rounds):
        for program, command in commands(name, threads, args.build, path, python).items():
            result = process.run_once(command, threads)
            if "error" in result:
                sys.exit(f"bench: {program}, {name}: {result['error']}")
            runs.setdefault(program, []).append(result)
    table = {}
    for program, results in runs.items():
        steps = [r["ms"][models.problem(name).warm_up:] for r in results]
        table[program] = {
            "median": statistics.median(statistics.median(s) for s in steps),
            "min": min(min(s) for s in steps),
            "first": min(r["first"] for r in results),
            "peak": min(r["peak_mb"] for r in results),
        }
    return table


def processor():
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def lines_of(name, threads, table):
    peers = [table[p] for p in table if p != "onnxtrain"]
    ours = table["onnxtrain"]
    for program, row in table.items():
        ratios = "| | |"
        if program == "onnxtrain":
            ratios = (f"| {min(p['median'] for p in peers) / ours['median']:.2f} / {min(p['min'] for p in peers) / ours['min']:.2f} "
                      f"| {ours['peak'] / min(p['peak'] for p in peers):.2f} |")
        yield (f"| {name} | {threads} | {program} | {row['median']:.2f} | {row['min']:.2f} | {row['peak']:.0f} "
               f"| {row['first']:.2f} {ratios}")


def measure_peers(names, threads, args):
    python = make_environment(os.path.join(args.work, "venv"))
    paths = model_files(names, args.work)
    make_artifacts(paths, args.build)
    head = ["| model | threads | program | ms/step, median | ms/step, min | peak MB | first step, s "
            "| times faster (median / min) | memory of the smaller peer |", "|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(head), flush=True)
    rows = []
    for name in names:
        for n_threads in threads:
            for line in lines_of(name, n_threads, measure(name, n_threads, args, paths[name], python)):
                rows.append(line)
                print(line, flush=True)
    if args.out:
        with open(args.out, "w") as out:
            out.write(f"# Measured\n\n{processor()}, {os.cpu_count()} processors, {args.rounds} processes of each program in turn, "
                      f"`./dev bench`.\n\n" + "\n".join(head + rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", default=",".join(models.PROBLEMS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", metavar="COMMIT", help="compare with the library at that commit instead of with the peers")
    parser.add_argument("--pairs", type=int, default=15, help="processes of each build, with --against")
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    args = parser.parse_args()
    names, threads = args.models.split(","), [int(n) for n in args.threads.split(",")]
    for name in names:
        if name not in models.PROBLEMS:
            parser.error(f"--models: '{name}' is none of {', '.join(models.PROBLEMS)}")
    if args.pairs < 1:
        parser.error(f"--pairs: {args.pairs} is less than 1")
    if args.against:
        return against.compare(args.against, args.build, args.work, model_files(names, args.work), threads, args.pairs)
    return measure_peers(names, threads, args)


try:
    sys.exit(main())
except KeyboardInterrupt:
    print("\nbench: stopped; with --against, the same command goes on with what has been measured", file=sys.stderr)
    sys.exit(130)
