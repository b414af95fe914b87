#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every operator and writes src/ops/certificates.def.

usage: gen_certificates.py OP_TESTS RUN_NODE_TESTS TESTS.zip EXPECTED FILE

OP_TESTS runs the cases of tests/ops and says the worst error of each operator, RUN_NODE_TESTS ONNX's node tests in
TESTS.zip (tests/conformance/record.py) with what EXPECTED lists. Nothing is written where one of them fails.
"""
import subprocess
import sys
import tempfile

HEAD = """// OT_CERTIFICATE(domain, name, cases, worst error, node tests) of every operator: what was measured of it, see
// ops/table.h. Written by `./dev certificates`, do not edit. Kernels for {processor} and less.
// SPDX-License-Identifier: Apache-2.0
"""


def split(full):
    domain, _, name = full.rpartition(".")
    return domain, name


def cases_of(program):
    """{operator: (cases, worst error)} and the best instruction set that was measured."""
    done = subprocess.run([program, "--certify"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} --certify: {done.stderr}")
    found, processor = {}, ""
    for line in done.stdout.splitlines():
        word, *rest = line.split()
        if word == "certificate":
            found[split(rest[0])] = (int(rest[1]), float(rest[2]))
        elif word == "processor":
            processor = rest[0]
    return found, processor


def node_tests_of(program, tests, expected):
    with tempfile.NamedTemporaryFile("r", suffix=".txt") as counts:
        done = subprocess.run([program, tests, expected, counts.name], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program}: {done.stdout}{done.stderr}")
        return {split(name): int(n) for name, n in (line.split() for line in counts)}


def main():
    op_tests, run_node_tests, tests, expected, path = sys.argv[1:]
    cases, processor = cases_of(op_tests)
    node_tests = node_tests_of(run_node_tests, tests, expected)
    lines = []
    without_cases = {key: (0, 0.0) for key in node_tests if key not in cases}
    for (domain, name), (n, worst) in sorted({**cases, **without_cases}.items()):
        worst = "0" if worst == 0 else f"{worst:.1e}"
        lines.append(f'OT_CERTIFICATE("{domain}", {name}, {n}, {worst}, {node_tests.get((domain, name), 0)})\n')
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEAD.format(processor=processor) + "".join(lines))
    print(f"{len(lines)} operators")
    return 0


sys.exit(main())
