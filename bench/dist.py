# SPDX-License-Identifier: Apache-2.0
"""Sums and training over processes, for every MPI that the build has found.

    ./dev bench dist [--only sums,agreements,train,state,overlap,saves] [--models encoder,gpt,resnet18] [--python PYTHON] [--ranks 2]
                     [--out bench/RESULTS.md]

sums     agreement, and sums from 16 KiB to 32 MiB beside MPI_Allreduce of the same MPI, in turn: medians and the least, in
         microseconds, of the slowest rank; the ratio is that of throughputs, so that above 1 ours is faster; --rounds of each
agreements  of an update of the MLP by --ranks processes: how many there are, and what they take of its time
train    steps of --ranks processes with a thread each, which are bound to a core, and of one process with as many threads, on
         the same batch; as many processes with a rank's rows that know nothing of each other (no sums); PyTorch's DDP over gloo
         likewise, if --python has torch; with the first MPI every stage of ZeRO; --repeats processes of each, in turn
state    bytes that a rank sends for an update against (D - 1) / D x (2, 2, A + 1, 3 A) x 4 of an element, and what it keeps, less the
         plan, others' contributions to sums and graphs, against 16, 8 + 8 / D, 4 + 12 / D or 16 / D bytes of an element, by zero
         and micro-batches, for 2, 4 and 8 processes; and the most that it holds after the first step, which cuts the state, beside what
         `onnxtrain info --parallel` says
overlap  two ranks, over a network that is modelled such that sums take half the backward pass: how much of them the backward
         pass hides, but for the last bucket; three times --repeats in turn
saves    one process, with a core that is free and with none: steps while a checkpoint directory is written beside as many without,
         how long a save holds them, and what the processor works in a save alone; --repeats in turn

Every rank wants a core of its own. With --out a table replaces its section of that file.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models
from results import replace_section
from run import model_files, processor

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(HERE), "build", "release")
APART = "no sums"  # processes that know nothing of each other: what any sum would be added to
PARTS = ["sums", "agreements", "train", "state", "overlap", "saves"]
TITLES = {"sums": "Sums over processes", "agreements": "What agreements take", "train": "Training over processes",
          "state": "What processes send and keep", "overlap": "Sums that the backward pass hides", "saves": "Steps while a checkpoint is written"}
HEADS = {
    "sums": ["MPI", "ranks", "what", "ours, median / least, us", "MPI_Allreduce, median / least, us", "ratio, median / least"],
    "agreements": ["MPI", "ranks", "of an update", "each, median / least, us", "update, median / least, us", "of it, median / least"],
    "train": ["model", "program", "one process, median / least, ms", "processes, median / least, ms", "ratio, median / least"],
    "state": ["model", "ranks", "zero", "micro-batches", "sent, MB", "must, MB", "above it", "kept, MB", "sums of others, MB",
              "graphs, MB", "elements, MB", "the rest above them", "at most, MB", "said, MB", "off"],
    "overlap": ["model", "forward, median / least, ms", "step, ms", "sums behind it, ms", "sums within it, ms", "sums, ms", "last bucket, ms",
                "hidden, by pairs / least"],
    "saves": ["model", "threads", "step, median / least, ms", "meanwhile, ms", "ratio", "steps of a save", "hold, ms", "copy of the state, ms",
              "added by a save, ms", "processor of a save, ms"],
}
STAGES = [0, 1, 2, 3]  # of ZeRO
UPDATES = 1000  # of the MLP


def table_head(part):
    return ["| " + " | ".join(HEADS[part]) + " |", "|---" * len(HEADS[part]) + "|"]


def run_program(command, **environment):
    """The JSON objects that it prints, one a line."""
    done = subprocess.run(command, env=dict(os.environ, **environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def run_job(mpi, ranks, command):
    """Each rank on a core of its own, where there are as many."""
    launcher = "mpirun" if mpi == "mpi" else f"mpirun.{mpi}"
    where = "core" if ranks <= len(os.sched_getaffinity(0)) else "none"
    more = ["--oversubscribe"] if mpi == "openmpi" and where == "none" else []
    return run_program([launcher, "-bind-to" if mpi == "mpich" else "--bind-to", where, *more, "-n", str(ranks), *map(str, command)],
                       OMP_NUM_THREADS="1", OT_COMM_PLUGIN=os.path.join(BUILD, "mpi", mpi, "libonnxtrain_mpi.so"),
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def program(name):
    return os.path.join(BUILD, "bench", name)


# ---- sums ----


def sums_row(mpi, ranks, found):
    if "agree" in found:
        return f"| {mpi} | {ranks} | agree | {found['agree'][0]:.1f} / {found['agree'][1]:.1f} | | |"
    ours, theirs = found["ours"], found["mpi"]
    return (f"| {mpi} | {ranks} | sum of {found['kib']} KiB | {ours[0]:.1f} / {ours[1]:.1f} | {theirs[0]:.1f} / {theirs[1]:.1f} "
            f"| {theirs[0] / ours[0]:.2f} / {theirs[1] / ours[1]:.2f} |")


def sums(options, mpis):
    for mpi in mpis:
        for found in run_job(mpi, options.ranks, [program("bench_dist"), program(f"libbench_{mpi}.so"), options.rounds]):
            yield sums_row(mpi, options.ranks, found)


# ---- agreements ----


def agreements(options, mpis):
    path = model_files(["mlp"], options.work, options.python)["mlp"]
    for mpi in mpis:
        each = next(found["agree"] for found in run_job(mpi, options.ranks, [program("bench_dist"), program(f"libbench_{mpi}.so"), 1])
                    if "agree" in found)
        found = run_job(mpi, options.ranks, train_command(path, "mlp", 1, UPDATES))[0]
        n, times = found["agreements"], [ms * 1e3 for ms in found["ms"][models.problem("mlp").warm_up:]]
        update = statistics.median(times), min(times)
        yield (f"| {mpi} | {options.ranks} | {n:.1f} | {each[0]:.1f} / {each[1]:.1f} | {update[0]:.0f} / {update[1]:.0f} "
               f"| {100 * n * each[0] / update[0]:.2f} % / {100 * n * each[1] / update[1]:.2f} % |")


# ---- training ----


def train_command(path, name, threads, steps, accumulation=1, zero=0, ranks=1):
    """With ranks: of a process that trains by itself on the rows of one of as many."""
    p = models.problem(name)
    return [program("bench_ranks"), "train", path, threads, steps, p.rows // ranks, p.class_axis, p.vocabulary, accumulation, zero]


def run_at_once(who, commands, **environment):
    """The JSON object that each of the commands has printed, all of which run at the same time; without those that have none."""
    environment = dict(os.environ, **environment)
    running = [subprocess.Popen(c, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in commands]
    outcomes = [p.communicate() for p in running]
    for p, (_, messages) in zip(running, outcomes):
        if p.returncode != 0:
            sys.exit(f"bench: {who}: {(messages.strip().splitlines() or ['no message'])[-1]}")
    return [json.loads(printed.splitlines()[-1]) for printed, _ in outcomes if printed]


def run_apart(path, name, steps, ranks):
    """Processes that know nothing of each other, each on its core and with the rows that a rank has."""
    cores = sorted(os.sched_getaffinity(0))
    commands = [["taskset", "-c", str(cores[rank]), *map(str, train_command(path, name, 1, steps, ranks=ranks))] for rank in range(ranks)]
    return run_at_once(f"{name}, apart", commands, OMP_NUM_THREADS="1")


def run_ddp(python, name, threads, steps, ranks):
    """All ranks, of which the first prints; they choose their cores."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [[python, os.path.join(HERE, "step_ddp.py"), name, *map(str, (threads, steps, ranks, rank)), os.path.join(folder, "meet")]
                    for rank in range(ranks)]
        return run_at_once(f"DDP, {name}", commands, OMP_NUM_THREADS=str(threads))[0]


def train_row(name, who, runs, warm_up):
    """runs: for one process and for several, lists of what each process has printed."""
    times = [[run["ms"][warm_up:] for run in way] for way in runs]
    medians = [statistics.median(statistics.median(t) for t in way) for way in times]
    least = [min(min(t) for t in way) for way in times]
    return (f"| {name} | {who} | {medians[0]:.1f} / {least[0]:.1f} | {medians[1]:.1f} / {least[1]:.1f} "
            f"| {medians[1] / medians[0]:.2f} / {least[1] / least[0]:.2f} |")


def train(options, mpis):
    for name in options.models:
        p = models.problem(name)
        steps, path = p.steps + p.warm_up, options.paths[name]
        staged = {f"{mpis[0]}, zero {zero}": zero for zero in STAGES[1:]}
        runs = {who: ([], []) for who in [*mpis, *staged, APART, *(["DDP"] if options.python else [])]}
        for _ in range(options.repeats):
            for who, (alone, together) in runs.items():
                if who == "DDP":
                    alone.append(run_ddp(options.python, name, options.ranks, steps, 1))
                    together.append(run_ddp(options.python, name, 1, steps, options.ranks))
                    continue
                alone += run_program(list(map(str, train_command(path, name, options.ranks, steps))), OMP_NUM_THREADS=str(options.ranks))
                if who == APART:
                    together += run_apart(path, name, steps, options.ranks)
                else:
                    together += run_job(who.split(",")[0], options.ranks, train_command(path, name, 1, steps, zero=staged.get(who, 0)))
        for who, found in runs.items():
            yield train_row(name, who if who == "DDP" else f"onnxtrain, {who}", found, p.warm_up)


# ---- what is sent and kept ----


def must_send(zero, accumulation):
    """Times that (D - 1) / D of all elements are sent for an update."""
    return (2, 2, accumulation + 1, 3 * accumulation)[zero]


def must_keep(zero, ranks):
    """Bytes of an element: its value, its gradient, two moments, in f32."""
    return (16, 8 + 8 / ranks, 4 + 12 / ranks, 16 / ranks)[zero]


def state_row(name, ranks, zero, accumulation, found):
    n = found["elements"]
    sent, wanted = found["sent"], (ranks - 1) / ranks * must_send(zero, accumulation) * 4 * n
    kept, least = found["held"] - found["plan"], must_keep(zero, ranks) * n
    staging, structure = found["staging"], found["structure"]
    return (f"| {name} | {ranks} | {zero} | {accumulation} | {sent / 1e6:.3f} | {wanted / 1e6:.3f} | {100 * (sent / wanted - 1):+.3f} % "
            f"| {kept / 1e6:.2f} | {staging / 1e6:.2f} | {structure / 1e6:.2f} | {least / 1e6:.2f} "
            f"| {100 * ((kept - staging - structure) / least - 1):+.1f} % "
            f"| {found['most'] / 1e6:.2f} | {found['said'] / 1e6:.2f} | {100 * (found['said'] / found['most'] - 1):+.2f} % |")


def state(options, mpis):
    for name in options.models:
        for ranks in (2, 4, 8):
            for zero in STAGES:
                for accumulation in (1, 3) if ranks == 2 else (1,):
                    command = train_command(options.paths[name], name, 1, 3, accumulation, zero)
                    yield state_row(name, ranks, zero, accumulation, run_job(mpis[0], ranks, command)[0])


# ---- overlap ----


def hidden(t, of):
    """The part of the sums but for the last bucket by which a step is not longer."""
    return 1 - max(0, of([w - q for w, q in zip(t["within"], t["quick"])]) - t["last"]) / (t["sums"] - t["last"])


def overlap(options, _):
    for name in options.models:
        p = models.problem(name)
        command = [program("bench_ranks"), "overlap", options.paths[name], options.repeats * 3, p.rows, p.class_axis, p.vocabulary,
                   options.bucket_bytes]
        t = run_program(list(map(str, command)), OMP_NUM_THREADS="1")[0]
        ways = " | ".join(f"{statistics.median(t[way]):.1f} / {min(t[way]):.1f}" for way in ("forward", "quick", "behind", "within"))
        least = min(t["within"]) - min(t["quick"])
        yield (f"| {name} | {ways} | {t['sums']:.1f} | {t['last']:.1f} | {100 * hidden(t, statistics.median):.0f} % "
               f"/ {100 * hidden(t, lambda _: least):.0f} % |")


# ---- saves ----


def saves(options, _):
    for name in options.models:
        p = models.problem(name)
        for threads in (1, 2):
            command = [program("bench_ranks"), "saves", options.paths[name], threads, options.repeats, p.rows, p.class_axis, p.vocabulary, options.work]
            t = run_program(list(map(str, command)), OMP_NUM_THREADS=str(threads))[0]
            alone, meanwhile = t["alone"], t["meanwhile"]
            ratios = [m / a for m, a in zip(meanwhile, alone)]
            added = [(m - a) * n + s for m, a, n, s in zip(meanwhile, alone, t["steps"], t["start"])]
            yield (f"| {name} | {threads} | {statistics.median(alone):.1f} / {min(alone):.1f} | {statistics.median(meanwhile):.1f} / {min(meanwhile):.1f} "
                   f"| {statistics.median(ratios):.2f} / {min(meanwhile) / min(alone):.2f} | {statistics.median(t['steps']):.0f} "
                   f"| {statistics.median(t['start']):.1f} / {min(t['start']):.1f} | {statistics.median(t['copy']):.1f} / {min(t['copy']):.1f} "
                   f"| {statistics.median(added):.0f} | {statistics.median(t['processor']):.0f} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench dist", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--models", default="encoder,gpt,resnet18")
    parser.add_argument("--python", help="one that has torch: is PyTorch's side, and exports models that are not there")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--bucket-bytes", type=int, default=0, help="of overlap; 0: as a session chooses")
    parser.add_argument("--work", default="build/bench")
    parser.add_argument("--out")
    options = parser.parse_args()
    parts, options.models = options.only.split(","), options.models.split(",")
    for part in parts:
        if part not in PARTS:
            parser.error(f"--only: '{part}' is none of {', '.join(PARTS)}")
    for name in options.models:
        if name not in models.NAMES:
            parser.error(f"--models: '{name}' is none of {', '.join(models.NAMES)}")
    mpis = sorted(m.group(1) for m in (re.fullmatch(r"libbench_(\w+)\.so", name) for name in os.listdir(program(""))) if m)
    if not mpis and not set(parts) <= {"overlap", "saves"}:
        sys.exit("bench: the build has found no MPI (Debian: libopenmpi-dev openmpi-bin)")
    options.paths = model_files(options.models, options.work, options.python) if set(parts) - {"sums", "agreements"} else {}
    for part in parts:
        lines = table_head(part)
        print(f"\n{TITLES[part]}\n\n" + "\n".join(lines), flush=True)
        for line in {"sums": sums, "agreements": agreements, "train": train, "state": state, "overlap": overlap, "saves": saves}[part](options, mpis):
            lines.append(line)
            print(line, flush=True)
        if options.out:
            said = f"`./dev bench dist --only {part}`; {processor()}; load {os.getloadavg()[0]:.1f} at the end."
            replace_section(options.out, TITLES[part], [said, "", *lines])


if __name__ == "__main__":
    main()
