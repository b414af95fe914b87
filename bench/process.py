# SPDX-License-Identifier: Apache-2.0
"""One process of training steps: what it is started with, and what it prints."""

import json
import os
import subprocess
import time


def library_command(program, path, problem, threads):
    steps = problem.warm_up + problem.steps
    return [program, path, *(str(n) for n in (threads, steps, problem.rows, problem.class_axis, problem.vocabulary))]


def run_once(command, threads):
    """What the process prints, or {"error": the last line of its messages}."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), BENCH_START=repr(time.monotonic()))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {"error": (done.stderr.strip().splitlines() or [f"exit status {done.returncode} without a message"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])
