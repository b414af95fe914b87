#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the interchange matrix: check.py FOLDER TRAINING_PYTHON PLAIN_PYTHON BUILD [KIND..]

TRAINING_PYTHON has onnxruntime-training-cpu 1.19.2 and onnx, PLAIN_PYTHON onnxruntime; BUILD is a build folder with the
package and the command. Without KINDs of cases.py: all of them and details.py, and what came out goes into docs/interop.md.
Needs nothing but Python itself.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "interop.md"
BEGIN, END = "<!-- written by ./dev check-interop: begin -->", "<!-- end -->"
SECONDS_MAX = 1800  # of a program; it hangs


def ask(python, code, environment):
    return subprocess.run([python, "-c", code], env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout


def stream(command, environment, log):
    """Exit status of a program whose lines are shown as they come."""
    with open(log, "w") as messages, subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=messages,
                                                      text=True) as child:
        watch = threading.Timer(SECONDS_MAX, child.kill)
        watch.start()
        for line in child.stdout:
            print(line, end="", flush=True)
        watch.cancel()
    return child.returncode


def tail(log):
    lines = [line for line in pathlib.Path(log).read_text(errors="replace").splitlines() if "[I:onnxruntime" not in line]
    return "\n".join(f"    {line}" for line in lines[-8:])


class Check:
    def __init__(self, folder, training_python, plain_python, build, names):
        self.folder, self.python, self.plain_python = pathlib.Path(folder), training_python, plain_python
        self.command = os.path.abspath(f"{build}/cli/onnxtrain")
        self.environment = {**os.environ, "PYTHONPATH": os.path.abspath(f"{build}/python"), "OMP_NUM_THREADS": "1",
                            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
        self.losses, self.kinds = json.loads(ask(
            self.python, f"import sys; sys.path.insert(0, {str(HERE)!r}); import cases, json; "
            "print(json.dumps([cases.LOSSES, {n: [k.title, k.why] for n, k in cases.KINDS.items()}]))", self.environment))
        unknown = set(names) - self.kinds.keys()
        if unknown:
            sys.exit(f"check.py: no model {sorted(unknown)}, expected {list(self.kinds)}")
        self.names, self.is_complete = names or list(self.kinds), not names
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.joinpath("exports").mkdir(parents=True)
        self.results, self.broken = {}, []

    def run_kind(self, name):
        log = self.folder / f"{name}.log"
        command = [self.python, "-X", "faulthandler", str(HERE / "matrix.py"), name, str(self.folder)]
        status = stream(command, self.environment, log)
        path = self.folder / f"{name}.json"
        if path.exists():
            self.results[name] = json.loads(path.read_text())
        else:
            self.broken.append(name)
            print(f"{name}: FAILED, the program ended with {status}:\n{tail(log)}", flush=True)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.run_kind, self.names))
        status = stream([self.plain_python, str(HERE / "exported.py"), str(self.folder)], self.environment,
                        self.folder / "exported.log")
        if self.is_complete:
            status |= stream([self.python, str(HERE / "details.py"), str(self.folder), self.command], self.environment,
                             self.folder / "details.log")
        path = self.folder / "exported.json"
        if not path.exists():
            self.broken.append("exported models")
            print(tail(self.folder / "exported.log"))
        self.exported = json.loads(path.read_text()) if path.exists() else None
        cases = [case for results in self.results.values() for case in results]
        n_failed = sum(bool(case["problems"]) for case in cases)
        n_ways = sum(len(case["shares"]) for case in cases)
        print(f"{len(cases)} cases, {n_ways} ways to train: {n_failed} cases failed"
              + "".join(f"; {name} did not run to its end" for name in self.broken))
        return not (n_failed or self.broken or status)

    # ---- the page ----

    def worst(self, name, loss, optimizer):
        shares = [share for case in self.results[name] if (case["loss"], case["optimizer"]) == (loss, optimizer)
                  for share in case["shares"].values()]
        return f"{max(shares):.1f}" if shares else "-"

    def tables(self):
        versions = ask(self.python, "import onnx, numpy, platform, importlib.metadata as m; print(m.version("
                       "'onnxruntime-training-cpu'), onnx.__version__, numpy.__version__, platform.python_version())",
                       self.environment).split()
        cases = sum(map(len, self.results.values()))
        ways = sum(len(case["shares"]) for results in self.results.values() for case in results)
        yield (f"onnxruntime-training-cpu {versions[0]}, onnx {versions[1]}, numpy {versions[2]}, Python {versions[3]}; "
               f"exported models in onnxruntime {self.exported['version']}. {cases} cases, {ways} ways to train, "
               f"{self.exported['count']} exported models: all agree.")
        yield ""
        yield "| model, variant | " + " | ".join(self.losses) + " | exported |"
        yield "|---|" + "---|" * (len(self.losses) + 1)
        for name, (title, why) in self.kinds.items():
            if not why:
                cells = [f"{self.worst(name, loss, 'sgd')}, {self.worst(name, loss, 'adamw')}" for loss in self.losses]
                cells = ["-" if cell == "-, -" else cell for cell in cells]
                exported = max(share for case, share in self.exported["shares"].items() if case.split()[0] == name)
                yield f"| {title} | {' | '.join(cells)} | {exported:.1f} |"
        yield ""
        yield "| 1.19.2 makes no artifacts that run | because | ours there |"
        yield "|---|---|---|"
        for name, (title, why) in self.kinds.items():
            if why:
                share = self.worst(name, "cross-entropy", "adamw")
                yield f"| {title} | {why} | {'refused' if share == '-' else share} |"

    def write_page(self):
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + "\n".join(self.tables()) + "\n" + END + rest.split(END)[1])


def main():
    check = Check(*sys.argv[1:5], sys.argv[5:])
    fine = check.run()
    if fine and check.is_complete:
        check.write_page()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
