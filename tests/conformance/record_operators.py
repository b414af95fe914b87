#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operators of ONNX's default domain, from the schemas of the installed onnx package.

usage: record_operators.py OUT.txt

A line is an operator and, of those inputs that ONNX tags as differentiable in its newest version, the names. Deprecated ones are there
only if they have such inputs.
"""
import sys

import onnx


def differentiable(schema):
    tag = onnx.defs.OpSchema.DifferentiationCategory.Differentiable
    return [port.name for port in schema.inputs if port.differentiation_category == tag]


def main():
    schemas = {schema.name: schema for schema in onnx.defs.get_all_schemas() if schema.domain == ""}
    lines = [
        " ".join([name, *differentiable(schema)])
        for name, schema in sorted(schemas.items())
        if not schema.deprecated or differentiable(schema)
    ]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f"# By record_operators.py, of onnx {onnx.__version__}: operators, and their inputs that are differentiable.\n")
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
