# SPDX-License-Identifier: Apache-2.0
"""Training steps of the same models in onnxtrain, PyTorch and ONNX Runtime training 1.19.2, alternating, each in its own process.

    python3 bench/run.py --build build/release [--models mlp,gpt] [--threads 1,2] [--rounds 5] [--out bench/RESULTS.md]
    python3 bench/run.py --build build/release --against COMMIT [--models ..] [--threads 1,2] [--pairs 15]

With --against the library is compared with itself at an earlier commit instead (against.py).

The peers come from PyPI into virtual environments of the benchmark's own (Python 3.8 to 3.11, which ONNX Runtime training's last
release supports). PyTorch's exports most of the models, once, into the work folder; --python names another. Prints milliseconds a
step (median of the processes' medians, and the least step), the seconds from process start to the first finished step, peak resident
memory, and the ratios to the faster and the smaller peer.
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
REASON = 120  # characters of a refusal that are shown


# Two environments: the exporters want an onnx that ONNX Runtime training does not take.
TORCH = ["numpy", "torch", "torchvision", "transformers", "onnx", "onnxscript"]
ONNX_RUNTIME = ["numpy<2", "onnx<1.17", "onnxruntime-training-cpu==1.19.2"]


def make_environment(folder, packages):
    """The interpreter of a virtual environment with the packages."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(os.path.join(folder, "ready")):
        if packages is ONNX_RUNTIME and not (3, 8) <= sys.version_info[:2] <= (3, 11):
            sys.exit("bench: ONNX Runtime training 1.19.2 needs Python 3.8 to 3.11")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        open(os.path.join(folder, "ready"), "w").close()
    return python


def model_files(names, work, python):
    """The models as files, by name. What `python` has exported once stays."""
    os.makedirs(work, exist_ok=True)
    paths = {name: os.path.join(work, name + (".onnxtxt" if name in models.TEXTS else ".onnx")) for name in names}
    for name in set(names) & set(models.TEXTS):
        with open(paths[name], "w") as out:
            out.write(models.onnx_text(name))
    missing = [name for name in names if not os.path.exists(paths[name])]
    if missing and not python:
        sys.exit(f"bench: {', '.join(paths[name] for name in missing)}: not there; --python PYTHON exports what is missing by a Python "
                 f"that has {', '.join(TORCH)}; without --against, an environment with these is made")
    for name in missing:
        print(f"exporting {paths[name]}", file=sys.stderr)
        newer = ["--newer"] if name.endswith(models.NEWER) else []
        subprocess.run([python, os.path.join(HERE, "modules.py"), models.base(name), paths[name], *newer], check=True,
                       stdout=subprocess.DEVNULL)
    return paths


def make_artifacts(paths, build):
    """ONNX Runtime's side trains from artifacts. Every program draws initial values of its own."""
    for name, path in paths.items():
        subprocess.run([os.path.join(build, "cli", "onnxtrain"), "artifacts", path, "--output", "scores", "--adam-mode", "1",
                        "--class-axis", str(models.problem(name).class_axis), "--out", artifacts_of(path)], check=True)


def artifacts_of(path):
    return os.path.splitext(path)[0]


def commands(name, threads, build, path, pythons):
    problem = models.problem(name)
    steps = str(problem.steps + problem.warm_up)
    program = os.path.join(build, "bench", "bench_step")
    return {
        "onnxtrain": process.library_command(program, path, problem, threads),
        "PyTorch": [pythons["PyTorch"], os.path.join(HERE, "step_torch.py"), name, str(threads), steps],
        "ONNX Runtime": [pythons["ONNX Runtime"], os.path.join(HERE, "step_ort.py"), artifacts_of(path), name, str(threads), steps],
    }


def measure(name, threads, args, path, pythons):
    """For every program, its runs in turn: a disturbance of the machine meets all of them. A peer may refuse the model."""
    runs, refused = {}, {}
    for _ in range(args.rounds):
        for program, command in commands(name, threads, args.build, path, pythons).items():
            if program in refused:
                continue
            result = process.run_once(command, threads)
            if "error" not in result:
                runs.setdefault(program, []).append(result)
            elif program == "onnxtrain":
                sys.exit(f"bench: {program}, {name}: {result['error']}")
            else:
                refused[program] = result["error"]
    table = {}
    for program, results in runs.items():
        steps = [r["ms"][models.problem(name).warm_up:] for r in results]
        table[program] = {
            "median": statistics.median(statistics.median(s) for s in steps),
            "min": min(min(s) for s in steps),
            "first": min(r["first"] for r in results),
            "peak": min(r["peak_mb"] for r in results),
        }
    return table, refused


def processor():
    try:
        with open("/proc/cpuinfo") as info:
            return next(line.split(":")[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def lines_of(name, threads, table, refused):
    peers = [table[p] for p in table if p != "onnxtrain"]
    ours = table["onnxtrain"]
    for program, row in table.items():
        ratios = "| | |"
        if program == "onnxtrain" and peers:
            ratios = (f"| {min(p['median'] for p in peers) / ours['median']:.2f} / {min(p['min'] for p in peers) / ours['min']:.2f} "
                      f"| {ours['peak'] / min(p['peak'] for p in peers):.2f} |")
        yield (f"| {name} | {threads} | {program} | {row['median']:.2f} | {row['min']:.2f} | {row['peak']:.0f} "
               f"| {row['first']:.2f} {ratios}")
    for program, error in refused.items():
        reason = error if len(error) <= REASON else "..." + error[3 - REASON:]  # ONNX Runtime's stands at the end
        yield f"| {name} | {threads} | {program} | does not run it: {reason.replace('|', '/')} | | | | | |"


def measure_peers(names, threads, args):
    pythons = {"PyTorch": args.python or make_environment(os.path.join(args.work, "torch"), TORCH),
               "ONNX Runtime": make_environment(os.path.join(args.work, "onnxruntime"), ONNX_RUNTIME)}
    paths = model_files(names, args.work, pythons["PyTorch"])
    make_artifacts(paths, args.build)
    head = ["| model | threads | program | ms/step, median | ms/step, min | peak MB | first step, s "
            "| times faster (median / min) | memory of the smaller peer |", "|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(head), flush=True)
    rows = []
    for name in names:
        for n_threads in threads:
            for line in lines_of(name, n_threads, *measure(name, n_threads, args, paths[name], pythons)):
                rows.append(line)
                print(line, flush=True)
    if args.out:
        rest = other_sections(args.out)
        with open(args.out, "w") as out:
            out.write(f"# Measured\n\n{processor()}, {os.cpu_count()} processors, {args.rounds} processes of each program in turn, "
                      f"`./dev bench`.\n\n" + "\n".join(head + rows) + "\n" + rest)


def other_sections(path):
    """What other benchmarks have found stands behind the table, and stays."""
    text = open(path).read() if os.path.exists(path) else ""
    at = text.find("\n## ")
    return text[at:] if at >= 0 else ""


def main():
    known = models.NAMES + models.WIDER_NAMES
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--models", help=f"of {', '.join(known)}, or wider, which is all from "
                                         f"{models.WIDER_NAMES[0]} on; default: those before it, without --against by the classic exporter")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", metavar="COMMIT", help="compare with the library at that commit instead of with the peers")
    parser.add_argument("--pairs", type=int, default=15, help="processes of each build, with --against")
    parser.add_argument("--python", help=f"one that has {', '.join(TORCH)}; exports models, and is PyTorch's side")
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    args = parser.parse_args()
    names = args.models.split(",") if args.models else models.NAMES if args.against else list(models.PROBLEMS)
    names = models.WIDER_NAMES if names == ["wider"] else names
    threads = [int(n) for n in args.threads.split(",")]
    for name in names:
        if name not in known:
            parser.error(f"--models: '{name}' is none of {', '.join(known)}")
    if args.pairs < 1:
        parser.error(f"--pairs: {args.pairs} is less than 1")
    if args.against:
        return against.compare(args.against, args.build, args.work, model_files(names, args.work, args.python), threads,
                               args.pairs)
    return measure_peers(names, threads, args)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nbench: stopped; with --against, the same command goes on with what has been measured", file=sys.stderr)
        sys.exit(130)
