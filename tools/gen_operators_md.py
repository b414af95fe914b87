#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md from the operator table.

usage: gen_operators_md.py PROGRAM FILE [--check]

PROGRAM is list_operators, FILE the page; --check compares instead of writing and fails when they differ.
"""
import subprocess
import sys
from collections import OrderedDict

HEAD = """# Operators

Made from the operator table by `./dev docs`; do not edit.

*Opsets*: the versions known; each serves up to the next, and operators of an opset below 13 are raised to 13 first. *Gradient*:
`yes` where training passes through, `none` where an operator is not differentiable or is itself part of training, `rewritten`
where it becomes another operator before training ([file-formats.md](file-formats.md)). *Kernels*:
the implementations, the preferred first; `ref` is portable C and always there, the others are taken where they fit the shapes and
the processor; `composed` is written in other operators before it runs or trains, whose kernels and gradients it has. *Types* are those of the newest version; f16 and bf16 are converted on the way in and out.
"""

DOMAINS = OrderedDict([
    ("ai.onnx", "The operators of the ONNX standard."),
    ("com.microsoft", "Operators that ONNX Runtime defines: gradients, optimizers and fused operators, with its contracts."),
    ("ai.onnx.ml", "Of ONNX's operators for classical models, what prepares features and labels, and linear models."),
    ("ai.onnxtrain", "This project's own. In a file they keep ONNX Runtime from loading it; those marked *internal* are never "
                     "written to one."),
])


def read_table(program):
    table = OrderedDict()
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        domain, name, since, raised, kernels, gradient, types, internal = line.split("\t")
        entry = table.setdefault(domain, OrderedDict()).setdefault(name, {"since": []})
        entry["since"].append(int(since))
        if not raised and int(since) == max(entry["since"]):
            entry.update(kernels=kernels, gradient=gradient, types=types, internal=internal)
    return table


def page(table):
    lines = [HEAD]
    for domain, text in DOMAINS.items():
        entries = table.get(domain, {})
        lines += ["## %s (%d)\n" % (domain, len(entries)), text + "\n",
                  "| operator | opsets | gradient | kernels | types |", "|---|---|---|---|---|"]
        for name, entry in sorted(entries.items()):
            mark = " (*internal*)" if entry.get("internal") else ""
            lines.append("| %s%s | %s | %s | %s | %s |" % (
                name, mark, ", ".join(map(str, sorted(entry["since"]))), entry.get("gradient", ""),
                ", ".join(entry.get("kernels", "").split()), entry.get("types", "")))
        lines.append("")
    return "\n".join(lines)


def main():
    program, path = sys.argv[1:3]
    text = page(read_table(program))
    if "--check" not in sys.argv[3:]:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    with open(path, encoding="utf-8") as file:
        if file.read() == text:
            return 0
    print("%s is not what the operator table says; `./dev docs` writes it anew" % path, file=sys.stderr)
    return 1


sys.exit(main())
