# SPDX-License-Identifier: Apache-2.0
"""Training steps of the same models in onnxtrain, PyTorch and ONNX Runtime training 1.19.2, alternating, each in its own process.

    python3 bench/run.py --build build/release [--models mlp,lenet,resnet18] [--threads 1,2] [--rounds 5] [--out bench/RESULTS.md]

The peers come from PyPI into a virtual environment of the benchmark's own (Python 3.8 to 3.11, which ONNX Runtime training's last
release supports). Prints milliseconds a step (median of the processes' medians, and the least step), the seconds from process start to the
first finished step, peak resident memory, and the ratios to the faster and the smaller peer.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = {"mlp": 200, "lenet": 200, "resnet18": 6}
WARM_UP = {"mlp": 20, "lenet": 20, "resnet18": 1}


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


def prepare_models(names, build, folder):
    os.makedirs(folder, exist_ok=True)
    for name in names:
        text = os.path.join(folder, name + ".onnxtxt")
        with open(text, "w") as out:
            out.write(models.onnx_text(name))
        subprocess.run([os.path.join(build, "cli", "onnxtrain"), "artifacts", text, "--output", "scores", "--adam-mode", "1",
                        "--out", os.path.join(folder, name)], check=True)
        # The initial values are drawn once; onnxtrain reads the same numbers from the checkpoint's model as the others draw their own.


def commands(name, threads, build, folder, python):
    rows = str(models.PROBLEMS[name][0])
    steps = str(STEPS[name] + WARM_UP[name])
    return {
        "onnxtrain": [os.path.join(build, "bench", "bench_step"), os.path.join(folder, name + ".onnxtxt"), str(threads), steps, rows],
        "PyTorch": [python, os.path.join(HERE, "step_torch.py"), name, str(threads), steps],
        "ONNX Runtime": [python, os.path.join(HERE, "step_ort.py"), os.path.join(folder, name), name, str(threads), steps],
    }


def run_once(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), BENCH_START=repr(time.monotonic()))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(name, threads, args, python):
    """For every program, its runs in turn: a disturbance of the machine meets all of them."""
    runs = {}
    for _ in range(args.rounds):
        for program, command in commands(name, threads, args.build, args.work, python).items():
            result = run_once(command, threads)
            if "error" in result:
                sys.exit(f"bench: {program}, {name}: {result['error']}")
            runs.setdefault(program, []).append(result)
    table = {}
    for program, results in runs.items():
        steps = [r["ms"][WARM_UP[name]:] for r in results]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", default=",".join(models.PROBLEMS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    args = parser.parse_args()
    names = args.models.split(",")
    python = make_environment(os.path.join(args.work, "venv"))
    prepare_models(names, args.build, args.work)
    head = ["| model | threads | program | ms/step, median | ms/step, min | peak MB | first step, s "
            "| times faster (median / min) | memory of the smaller peer |", "|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(head), flush=True)
    rows = []
    for name in names:
        for threads in (int(t) for t in args.threads.split(",")):
            for line in lines_of(name, threads, measure(name, threads, args, python)):
                rows.append(line)
                print(line, flush=True)
    if args.out:
        with open(args.out, "w") as out:
            out.write(f"# Measured\n\n{processor()}, {os.cpu_count()} processors, {args.rounds} processes of each program in turn, "
                      f"`./dev bench`.\n\n" + "\n".join(head + rows) + "\n")


main()
