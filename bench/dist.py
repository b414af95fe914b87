# SPDX-License-Identifier: Apache-2.0
"""How long processes take to agree and to sum, beside MPI_Allreduce of the same MPI, in turn.

    ./dev bench dist [--ranks 2] [--rounds 100] [--out bench/RESULTS.md]

For every MPI that the build has found. Times are medians and the least, in microseconds, of the slowest rank; the ratio is that of
throughputs, so that above 1 ours is faster. Every rank wants a core of its own. With --out the table replaces its section of that file.
"""

import argparse
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from results import replace_section
from run import processor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TITLE = "Sums over processes"
HEAD = ["| MPI | ranks | what | ours, median / least, us | MPI_Allreduce, median / least, us | ratio, median / least |", "|---" * 6 + "|"]


def measure(mpi, ranks, rounds):
    build = os.path.join(ROOT, "build", "release")
    launcher = "mpirun" if mpi == "mpi" else f"mpirun.{mpi}"
    environment = dict(os.environ, OMP_NUM_THREADS="1", OT_COMM_PLUGIN=os.path.join(build, "mpi", mpi, "libonnxtrain_mpi.so"),
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = [launcher, "-bind-to" if mpi == "mpich" else "--bind-to", "core", "-n", str(ranks), os.path.join(build, "bench", "bench_dist"),
               os.path.join(build, "bench", f"libbench_{mpi}.so"), str(rounds)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def row(mpi, ranks, found):
    if "agree" in found:
        return f"| {mpi} | {ranks} | agree | {found['agree'][0]:.1f} / {found['agree'][1]:.1f} | | |"
    ours, theirs = found["ours"], found["mpi"]
    return (f"| {mpi} | {ranks} | sum of {found['kib']} KiB | {ours[0]:.1f} / {ours[1]:.1f} | {theirs[0]:.1f} / {theirs[1]:.1f} "
            f"| {theirs[0] / ours[0]:.2f} / {theirs[1] / ours[1]:.2f} |")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench dist")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out")
    options = parser.parse_args()
    folder = os.path.join(ROOT, "build", "release", "bench")
    names = sorted(m.group(1) for m in (re.fullmatch(r"libbench_(\w+)\.so", name) for name in os.listdir(folder)) if m)
    if not names:
        sys.exit("bench: the build has found no MPI (Debian: libopenmpi-dev openmpi-bin)")
    lines = list(HEAD)
    for mpi in names:
        lines += [row(mpi, options.ranks, found) for found in measure(mpi, options.ranks, options.rounds)]
    print("\n".join(lines))
    if options.out:
        load = os.getloadavg()[0]
        replace_section(options.out, TITLE, [f"`./dev bench dist`; {processor()}; load {load:.1f} at the end.", "", *lines])


if __name__ == "__main__":
    main()
