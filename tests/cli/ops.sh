#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The list of operators, as text and as JSON.
. "$(dirname "$0")/cli.inc"

run 0 ops --help
out "onnxtrain ops "
awk 'length > 100 { exit 1 }' out || fail "ops --help has a line above 100 characters"
run 0 help --man ops
out ".TH ONNXTRAIN-ops 1"
refuses 2 "unknown option '--nonsense'" ops --nonsense
refuses 1 "there is no operator 'Convv'; did you mean 'Conv'?" ops Convv
refuses 1 "none.so: cannot be opened" ops --op-library none.so

run 0 ops
out "com.microsoft"
grep -q '^  Conv  *1  *yes  *.*ref ' out || fail "ops lacks the row of Conv"
grep -q '^  Gather  *1  *data ' out || fail "ops does not say which input of Gather has a gradient"
awk 'NR > 1 && /^[a-z]/ && before != "" { exit 1 } { before = $0 }' out || fail "domains do not stand apart"

run 0 ops Relu --json
python3 -c 'import json
(op,) = json.load(open("out"))
assert set(op) == {"name", "domain", "gradient", "opsets", "types", "kernels", "worst_error", "cases", "node_tests", "internal"}
assert op["name"] == "Relu" and op["domain"] == "ai.onnx" and op["gradient"] == "yes" and op["kernels"][-1] == "ref"
assert op["cases"] > 3 and op["node_tests"] >= 1 and op["worst_error"] == 0, op' || fail "ops Relu --json is another"

# Every operator has a certificate, and one that trains in f32 has been compared with f64.
run 0 ops --json
python3 -c 'import json
ops = json.load(open("out"))
assert len(ops) > 250 and len({(op["domain"], op["name"]) for op in ops}) == len(ops)
for op in ops:
    assert op["cases"] is not None and op["node_tests"] >= 0 and 0 <= op["worst_error"] < 1e-3, op
assert [op["gradient"] for op in ops if op["name"] == "ArgMax"] == ["none"]
assert [op["gradient"] for op in ops if op["name"] == "DequantizeLinear"] == ["rewritten"]
assert sum(op["worst_error"] > 0 for op in ops) > 100' || fail "ops --json lacks certificates"
