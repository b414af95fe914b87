#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Artifacts, checkpoints, exports and converted models are, byte for byte, what they were when sums.txt was recorded.

usage: check.py [--record] [--keep FOLDER] COMMAND WRITER [CASE...]

COMMAND is onnxtrain, WRITER tests/write_files of the same build; cases are names or patterns, all without any. Each case
(cases.py) runs in a folder of its own, and all that it writes is compared with sums.txt, in the form of sha256sum.

--record   write the sums of these cases instead; all others stay
--keep     leave the files, each model with its text beside it, so that two builds can be compared: diff -r

The bytes are those of any C library, processor and build, for no floating-point kernel and no function of the C library
decides them: nothing is trained, initial values are stored or uniform, and uniform ones are made of whole numbers by
product, sum and square root, which IEEE 754 rounds in one way. Checked by a run with log, exp, cos, pow and others of
the C library made wrong by a thousandth, on the reference kernels: all sums stayed.
"""

import argparse
import fnmatch
import hashlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import COMMAND, WRITER, all_cases

SUMS = Path(__file__).resolve().with_name("sums.txt")
N_WORKERS = 2
TEXTUAL = {".onnx", ".ort"}


def read_sums():
    """{case: {file: sum}}"""
    sums = {}
    for line in SUMS.read_text().splitlines() if SUMS.exists() else []:
        value, path = line.split("  ", 1)
        case, file = path.rsplit("/", 1)
        sums.setdefault(case, {})[file] = value
    return sums


def write_sums(sums):
    SUMS.write_text("".join(f"{value}  {case}/{file}\n" for case in sorted(sums) for file, value in sorted(sums[case].items())))


def run(case, programs, folder):
    """The sum of every file that the case writes; a message where a call fails."""
    folder.mkdir(parents=True)
    for name, data in case.inputs.items():
        (folder / name).write_bytes(data)
    for program, *arguments in case.calls:
        done = subprocess.run([programs[program], *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return f"{program} {' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()}"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir()) if path.name not in case.inputs}


def differences(case, found, expected):
    if not expected:
        yield f"{case}: is not in sums.txt; record it with a build that is known to be right: check.py --record COMMAND WRITER '{case}'"
        return
    for file in sorted({*found, *expected}):
        if file not in found:
            yield f"{case}: {file}: is not written, expected sum {expected[file]}"
        elif file not in expected:
            yield f"{case}: {file}: is written with sum {found[file]}, expected no such file"
        elif found[file] != expected[file]:
            yield f"{case}: {file}: has sum {found[file]}, expected {expected[file]}"


def write_texts(folder, writer):
    for path in sorted(folder.rglob("*")):
        if path.suffix in TEXTUAL:
            subprocess.run([writer, "model", path, f"{path}.onnxtxt"], stderr=subprocess.DEVNULL)  # some have no text


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("command", type=Path)
    parser.add_argument("writer", type=Path)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    programs = {COMMAND: options.command.resolve(), WRITER: options.writer.resolve()}
    cases = [case for case in all_cases() if not options.cases or any(fnmatch.fnmatch(case.name, wanted) for wanted in options.cases)]
    folder = options.keep or Path(tempfile.mkdtemp())
    try:
        with ThreadPoolExecutor(N_WORKERS) as pool:
            results = list(pool.map(lambda case: run(case, programs, folder / case.name), cases))
        if options.keep:
            write_texts(folder, programs[WRITER])
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    return report(options, cases, results)


def report(options, cases, results):
    sums = read_sums()
    messages = []
    for case, found in zip(cases, results):
        if isinstance(found, str):
            messages.append(f"{case.name}: {found}")
        elif options.record:
            sums[case.name] = found
        else:
            messages += differences(case.name, found, sums.get(case.name))
    if not options.cases:
        names = {case.name for case in cases}
        messages += [f"{name}: is in sums.txt, but there is no such case" for name in sorted(sums) if name not in names]
    if options.record and not messages:
        write_sums(sums)
    for message in messages:
        print(message, file=sys.stderr)
    if messages and not options.record:
        print("to see how: `check.py --keep FOLDER COMMAND WRITER CASE` with this build and with one that is known to be right,"
              " then `diff -r` of the two directories", file=sys.stderr)
    print(f"{len(cases)} cases, {sum(len(found) for found in results if isinstance(found, dict))} files, {len(messages)} wrong")
    return 1 if messages or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
