#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every operator that this project promises has a row in `onnxtrain ops`, and a gradient for each input that ONNX tags.

usage: check_operators.py ONNXTRAIN OPERATORS EXPECTED

OPERATORS is what record_operators.py wrote, EXPECTED the list of run_node_tests, whose lines "operators NAME ..." are left out.
"""
import json
import subprocess
import sys

# Values that may be absent, which are left out as a type.
OPTIONALS = {"Optional"}
OTHERS = {
    "ai.onnx.ml": "Scaler Normalizer OneHotEncoder Imputer ArrayFeatureExtractor LinearRegressor LinearClassifier",
    "com.microsoft": "QuickGelu FusedConv SkipLayerNormalization SkipSimplifiedLayerNormalization Attention MultiHeadAttention "
    "EmbedLayerNormalization RotaryEmbedding MatMulNBits",
}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file if line.strip() and not line.startswith("#")]


def missing(row, inputs):
    """Of the inputs those without a gradient."""
    if row["gradient"] == "yes":
        return []
    return inputs if isinstance(row["gradient"], str) else [name for name in inputs if name not in row["gradient"]]


def problems(rows, operators, left_out):
    for name, *inputs in operators:
        row = rows.get(("ai.onnx", name))
        if row is None:
            if name not in left_out:
                yield f"{name}: has no row"
        elif missing(row, inputs):
            yield f"{name}: no gradient of {', '.join(missing(row, inputs))}"
        elif name in left_out:
            yield f"{name}: is left out, and has a row"
    for domain, names in OTHERS.items():
        for name in names.split():
            if (domain, name) not in rows:
                yield f"{domain}.{name}: has no row"


def main():
    text = subprocess.run([sys.argv[1], "ops", "--json"], check=True, capture_output=True, text=True).stdout
    rows = {(row["domain"], row["name"]): row for row in json.loads(text)}
    operators = lines_of(sys.argv[2])
    left_out = {name for kind, *names in lines_of(sys.argv[3]) if kind == "operators" for name in names} | OPTIONALS
    found = list(problems(rows, operators, left_out))
    print("\n".join(found + [f"{len(operators)} operators, {sum(len(line) > 1 for line in operators)} of them tagged, "
                             f"{len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
