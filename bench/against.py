# SPDX-License-Identifier: Apache-2.0
"""run.py --against COMMIT: whether this build is slower than that of a commit, or takes more memory.

The commit is built in a work tree of its own, with the step.c and problem.h of today, so that both builds run the same program. For every model and
number of threads, processes of both builds run in turn; paired.py says what counts. What has been measured is kept in the work folder,
for as long as the programs and the model stay the same: a comparison that was interrupted goes on.
"""

import filecmp
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys

import models
import paired
import process

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
HEAD = ["| model | threads | pairs | ms/step | before | peak MB | before | time (median / least) | memory | |",
        "|---|---|---|---|---|---|---|---|---|---|"]


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def build_commit(commit, work):
    """The program of step.c over the library of that commit."""
    name = commit[:12]
    tree = os.path.join(work, "against", name)
    if not os.path.exists(os.path.join(tree, ".git")):
        output_of("git", "worktree", "add", "--force", "--detach", os.path.abspath(tree), commit)
    if not os.path.exists(os.path.join(tree, "bench", "CMakeLists.txt")):
        sys.exit(f"bench: --against: commit {name} has no bench/CMakeLists.txt: it is from before the benchmark; name a later one")
    for source in ("step.c", "problem.h"):
        ours, theirs = os.path.join(HERE, source), os.path.join(tree, "bench", source)
        if not os.path.exists(theirs) or not filecmp.cmp(ours, theirs, shallow=False):
            shutil.copyfile(ours, theirs)
    build, log = os.path.join(tree, "build", "release"), os.path.join(work, "against", name + ".log")
    generator = [] if shutil.which("ninja") else ["-G", "Unix Makefiles"]
    show(f"building {name}: {log}")
    with open(log, "w") as messages:
        for command in (["cmake", "--preset", "release", *generator, "-DOT_BUILD_TESTS=OFF", "-DOT_BUILD_PYTHON=OFF"],
                        ["cmake", "--build", "build/release", "-j", str(os.cpu_count()), "--target", "bench_step"]):
            if subprocess.run(command, cwd=tree, stdout=messages, stderr=messages).returncode != 0:
                sys.exit(f"bench: --against: commit {name} with the step.c of today: {' '.join(command)} fails; see {log}")
    return os.path.join(build, "bench", "bench_step")


def show(line):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()


def digest(path):
    result = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            result.update(block)
    return result.hexdigest()


class Kept:
    """Pairs by what was measured, in a file that is whole at any moment."""

    def __init__(self, path, programs):
        self.path, self.state = path, {"programs": programs, "measured": {}}
        if os.path.exists(path):
            with open(path) as file:
                state = json.load(file)
            if state["programs"] == programs:
                self.state = state

    def pairs(self, key):
        return self.state["measured"].setdefault(key, [])

    def save(self):
        with open(self.path + ".new", "w") as file:
            json.dump(self.state, file)
        os.replace(self.path + ".new", self.path)


class Refused(Exception):
    """A build does not run the model; `build` is "new" or "old"."""

    def __init__(self, build, message):
        super().__init__(message)
        self.build = build


def one_process(program, build, path, problem, threads):
    result = process.run_once(process.library_command(program, path, problem, threads), threads)
    if "error" in result:
        raise Refused(build, result["error"])
    timed = result["ms"][problem.warm_up:]
    return {"ms": statistics.median(timed), "least": min(timed), "peak": result["peak_mb"]}


def measure(programs, kept, key, name, path, threads, n_pairs):
    pairs, problem = kept.pairs(f"{key}, {n_pairs} pairs"), models.problem(name)
    while len(pairs) < n_pairs:
        so_far = f": time {paired.ratios(pairs).time:.3f}, memory {paired.ratios(pairs).memory:.3f}" if pairs else ""
        show(f"{name}, threads {threads}: pair {len(pairs) + 1} of {n_pairs}{so_far}")
        order = ("new", "old") if paired.new_goes_first(len(pairs)) else ("old", "new")
        both = {build: one_process(programs[build], build, path, problem, threads) for build in order}
        pairs.append((both["new"], both["old"]))
        kept.save()
    return pairs


def line_of(name, threads, pairs, result):
    figures = [statistics.median(run[figure] for run in runs) for figure in ("ms", "peak") for runs in zip(*pairs)]
    verdict = ", ".join(f"{what} above {limit}" for what, limit in
                        (("time", paired.TIME_LIMIT), ("memory", paired.MEMORY_LIMIT)) if what in paired.above(result))
    return (f"| {name} | {threads} | {result.n_pairs} | {figures[0]:.2f} | {figures[1]:.2f} | {figures[2]:.1f} | {figures[3]:.1f} "
            f"| {result.time:.3f} / {result.least:.3f} | {result.memory:.3f} | {verdict or 'not slower'} |")


def copies(programs, folder):
    """Both written anew, alike: how much of a program's code counts as resident memory depends on how its file came into the
    system's cache. One that a linker had just written took 0.4 MB more than a copy of it."""
    fresh = {key: os.path.join(folder, f"bench_step.{key}") for key in programs}
    for key, path in programs.items():
        shutil.copy(path, fresh[key])
    os.sync()
    return fresh


def compare(commit, build, work, paths, threads, n_pairs):
    """Print the table of all models, whose files are `paths`. The exit status."""
    commit = output_of("git", "rev-parse", "--verify", "--end-of-options", commit + "^{commit}")
    os.makedirs(os.path.join(work, "against"), exist_ok=True)
    programs = copies({"new": os.path.join(build, "bench", "bench_step"), "old": build_commit(commit, work)}, os.path.join(work, "against"))
    kept = Kept(os.path.join(work, "against", commit[:12] + ".json"), {key: digest(path) for key, path in programs.items()})
    counts = {"compared": 0, "above": 0, "refused": 0}
    show("")
    print("\n".join(HEAD), flush=True)
    for name, path in paths.items():
        file = digest(path)[:12]
        for n_threads in threads:
            key = f"{name} {file}, {models.problem(name).steps} steps, threads {n_threads}"
            try:
                pairs, result = paired.decide(lambda n: measure(programs, kept, key, name, path, n_threads, n), n_pairs)
                counts["compared"] += 1
                counts["above"] += bool(paired.above(result))
                line = line_of(name, n_threads, pairs, result)
            except Refused as refused:
                counts["refused"] += refused.build == "new"
                line = f"| {name} | {n_threads} | 0 | | | | | | | the {refused.build} build does not run it: {refused} |"
            show("")
            print(line, flush=True)
    print(f"\n{counts['compared']} compared with {commit[:12]}, {counts['above']} above the limits (time {paired.TIME_LIMIT}, "
          f"memory {paired.MEMORY_LIMIT}), {counts['refused']} refused by the new build")
    return 1 if counts["above"] or counts["refused"] else 0
