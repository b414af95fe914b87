#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md from the operator table.

usage: gen_operators_md.py ONNXTRAIN FILE [--check]

ONNXTRAIN is the command, of which `ops --json` is taken, FILE the page; --check compares instead of writing and fails
when they differ.
"""
import json
import subprocess
import sys
from collections import OrderedDict

HEAD = """# Operators

Made from the operator table by `./dev docs`, as `onnxtrain ops` prints it; do not edit.

*Opsets*: the versions known; each serves up to the next, and operators of an opset below 13 are raised to 13 first. *Gradient*:
`yes` where training passes through, the inputs that have a gradient where others have none, `none` where an operator is not differentiable or is itself part of training, `rewritten`
where it becomes another operator before training ([file-formats.md](file-formats.md)). *Kernels*:
the implementations, the preferred first; `ref` is portable C and always there, the others are taken where they fit the shapes and
the processor; `composed` is written in other operators before it runs or trains, whose kernels and gradients it has. *Types* are those of the newest version; f16 and bf16 are converted on the way in and out.

*Error*, *cases* and *ONNX's tests* are the operator's certificate, which `./dev certificates` measures: the worst error of a result in f32 by any kernel, against the reference in f64, over the largest element of the result; in so many
cases of `tests/ops`, which also hold every gradient against central differences; and how many of ONNX's own tests of the node pass, older opsets included. An operator without cases is checked by unit tests.
"""

# Held by tests/unit/ops/test_kinks.c and the cases of tests/ops; the choices are PyTorch's where it has the function.
POINTS = """## Where there is no derivative

At kinks, ties and singular points the gradient is PyTorch's where it has the function, and the same on every run:

| where | gradient |
|---|---|
| Relu, Abs, Sign and the like at 0 | 0; LeakyRelu and PRelu have the slope of negative numbers, Elu, Celu and Selu that from the left |
| HardSigmoid, Shrink and ThresholdedRelu at their bounds | 0; HardSwish has 0 at -3 and 1 at 3 |
| Clip at its bounds | passes |
| Max and Min of several tensors, ReduceMax and ReduceMin, ScatterElements and ScatterND with `max` or `min` | equal elements have equal shares |
| MaxPool, GlobalMaxPool, MaxRoiPool, RoiAlign with `max`, TopK | the first of equal elements has all |
| ScatterElements and ScatterND without reduction, MaxUnpool, elements written to one place | all have the gradient of the place |
| ReduceProd, CumProd, ScatterElements and ScatterND with `mul`, of elements that are 0 | exact: the product of the others |
| ReduceL1, ReduceL2, LpPool, GlobalLpPool, LpNormalization of nothing but zeros | 0 |
| Pow with base 0 | 0 where the exponent is 0 or more than 1; by an exponent of at least 0, 0 |
| Sqrt, Log, Reciprocal at 0, Asin, Acos at 1 | infinite, as the limit is |
| GridSample at an end that is repeated (`border`, `reflection`) | 0 for what points beyond |
| Ceil, Floor, Round, Sign, comparisons, ArgMax, Hardmax | none passes, or 0 |
| Det of a singular matrix | exact, where PyTorch 2.15 gives 0 |
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
    text = subprocess.run([program, "ops", "--json"], check=True, capture_output=True, text=True).stdout
    for entry in json.loads(text):
        table.setdefault(entry["domain"], []).append(entry)
    return table


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1e}" if value else "0"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def page(table):
    lines = [HEAD, POINTS]
    for domain, text in DOMAINS.items():
        entries = table.get(domain, [])
        lines += ["## %s (%d)\n" % (domain, len(entries)), text + "\n",
                  "| operator | opsets | gradient | kernels | types | error | cases | ONNX's tests |",
                  "|---|---|---|---|---|---|---|---|"]
        for entry in sorted(entries, key=lambda e: e["name"]):
            mark = " (*internal*)" if entry["internal"] else ""
            keys = ("opsets", "gradient", "kernels", "types", "worst_error", "cases", "node_tests")
            lines.append("| %s%s | %s |" % (entry["name"], mark, " | ".join(cell(entry[k]) for k in keys)))
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
