#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnxtrain grad: the gradient model, gradients of data, and what is refused.
. "$(dirname "$0")/cli.inc"

# y = x * w with 3 rows, whose gradients can be written down: dx = seed * w^T, dw = x^T * seed.
cat >line.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
line (float[batch, 2] x, int64[batch] row) => (float[batch, 2] y, float total, int64[batch] place, float[batch, 2] rough)
<float[2, 2] w = {1.0, 2.0, 3.0, 4.0}, float[2] table = {1.0, 2.0}>
{
    h = MatMul (x, w)
    y = Relu (h)
    total = ReduceSum <keepdims = 0> (y)
    place = ArgMax <axis = 1, keepdims = 0> (y)
    [level] floored = Floor (h)
    rough = Mul (floored, h)
    unrelated = Mul (table, table)
}
END
python3 - <<'END'
import struct, zipfile

def npy(shape, values, code="<f4"):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (code, shape)
    header += " " * (117 - len(header)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + struct.pack("<%d%s" % (len(values), "f" if code == "<f4" else "q"), *values)

open("x.npy", "wb").write(npy("(3, 2)", [1, 2, 3, 4, 5, 6]))
open("seed.npy", "wb").write(npy("(3, 2)", [1, 0, 0, 1, 1, 2]))
open("short.npy", "wb").write(npy("(2, 2)", [1, 0, 0, 1]))
open("wide.npy", "wb").write(npy("(3, 5)", [0] * 15))
with zipfile.ZipFile("both.npz", "w") as archive:
    archive.writestr("x.npy", npy("(3, 2)", [1, 2, 3, 4, 5, 6]))
    archive.writestr("other.npy", npy("(7,)", [0] * 7))
open("x.csv", "w").write("a,b\n1,2\n3,4\n5,6\n")
END

# arrays FILE TEST: the arrays of an .npz as lists of numbers in `v`, their shapes in `s`, by name.
arrays() {
    python3 -c 'import ast, struct, sys, zipfile
v, s = {}, {}
def read(name, data):
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    assert (10 + size) % 64 == 0 and not header["fortran_order"]
    s[name] = header["shape"]
    v[name] = list(struct.unpack("<%d%s" % ((len(data) - 10 - size) // 4, {"<f4": "f"}[header["descr"]]), data[10 + size:]))
path = sys.argv[1]
if path.endswith(".npy"):
    read("", open(path, "rb").read())
else:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            read(name[:-4], archive.read(name))
sys.exit(0 if eval(sys.argv[2]) else "%r %r" % (v, s))' "$1" "$2" || fail "$ran: not $2"
}

# The model.
run 0 grad line.onnxtxt --of y --wrt x --wrt w --out grad.onnxtxt
out "grad.onnxtxt: 2 inputs, 3 outputs; ONNX's own operators only"
grep -q "com.microsoft" grad.onnxtxt && fail "$ran: wrote operators that ONNX does not have"
run 0 info grad.onnxtxt --json
json inputs '[i["name"] for i in v] == ["x", "y_grad"]'
json outputs '[i["name"] for i in v] == ["y", "x_grad", "w_grad"]'
json outputs 'v[1]["shape"][1] == 2 and v[1]["shape"][0] is None'
run 0 grad line.onnxtxt --of total --wrt w --out grad.onnx --json
json inputs 'v == ["x"]'
json outputs 'v == ["total", "w_grad"]'
json nonstandard_operators 'v is None'
run 0 grad line.onnxtxt --of y --wrt x --keep-operators --out grad.onnx --json
json nonstandard_operators 'v == "com.microsoft.ReluGrad"'
run 0 grad line.onnxtxt --of y --wrt x --keep-operators --out grad.onnx
out "other runtimes lack com.microsoft.ReluGrad"

# The arrays.
run 0 grad line.onnxtxt --of y --wrt x --wrt w --data x.npy --seed seed.npy --out grad.npz
out "x_grad f32[3,2]"
arrays grad.npz 'v["y"] == [7, 10, 15, 22, 23, 34] and v["x_grad"] == [1, 3, 2, 4, 5, 11] and v["w_grad"] == [6, 13, 8, 16]'
arrays grad.npz 's["w_grad"] == (2, 2)'
run 0 grad line.onnxtxt --of y --wrt x --wrt w --data both.npz --seed seed.npy --out again.npz --json
json arrays 'v["x_grad"] == {"dtype": "f32", "shape": [3, 2]}'
same again.npz grad.npz
run 0 grad line.onnxtxt --of y --wrt x --data x.csv --bind x=a,b --ones --out grad.npy
arrays grad.npy 'v[""] == [3, 7, 3, 7, 3, 7]'
run 0 grad line.onnxtxt --of total --wrt w --data x.npy --scale 2 --rows 2 --out grad.npz
arrays grad.npz 'v["total"] == [2 * (7 + 10 + 15 + 22)] and s["total"] == () and v["w_grad"] == [8, 8, 12, 12]'

# What is refused: one line, nothing written.
rm -f grad.npz grad.onnx
refuses 2 "--of is missing" grad line.onnxtxt --wrt x --out grad.onnx
refuses 2 "--wrt is missing" grad line.onnxtxt --of y --out grad.onnx
refuses 2 "--out is missing" grad line.onnxtxt --of y --wrt x
refuses 2 "to .npz or .npy" grad line.onnxtxt --of y --wrt x --data x.npy --out grad.onnx
refuses 2 "arrays need --data" grad line.onnxtxt --of y --wrt x --out grad.npz
refuses 2 "holds one array, 2 are wanted" grad line.onnxtxt --of y --wrt x --wrt w --data x.npy --ones --out grad.npy
refuses 2 "--seed needs --data" grad line.onnxtxt --of y --wrt x --seed seed.npy --out grad.onnx
refuses 2 "exclude each other" grad line.onnxtxt --of y --wrt x --data x.npy --seed seed.npy --ones --out grad.npz
refuses 2 "it would be lost" grad line.onnxtxt --of y --wrt x --out line.onnxtxt
refuses 2 "it would be lost" grad line.onnxtxt --of y --wrt x --data x.npy --ones --out x.npy
refuses 1 "'y' has more than one element: --seed FILE or --ones" grad line.onnxtxt --of y --wrt x --data x.npy --out grad.npz
refuses 1 "of: the model has no value 'z'" grad line.onnxtxt --of z --wrt x --out grad.onnx
refuses 1 "wrt: the model has no value 'z'" grad line.onnxtxt --of y --wrt z --out grad.onnx
refuses 1 "of: 'place' is i64, expected f32 or f64" grad line.onnxtxt --of place --wrt x --out grad.onnx
refuses 1 "wrt: 'row' is i64, expected f32 or f64" grad line.onnxtxt --of y --wrt row --out grad.onnx
refuses 1 "no path from 'table' to 'y'" grad line.onnxtxt --of y --wrt table --out grad.onnx
refuses 1 "from 'h' to 'floored': Floor 'level' passes on no gradient" grad line.onnxtxt --of floored --wrt h --out grad.onnx
refuses 1 "wrt: 'x' is named twice" grad line.onnxtxt --of y --wrt x --wrt x --out grad.onnx
refuses 1 "batch" grad line.onnxtxt --of y --wrt x --data x.npy --seed short.npy --out grad.npz
refuses 1 "wide" grad line.onnxtxt --of y --wrt x --data wide.npy --ones --out grad.npz
refuses 1 "no array 'x' in the data" grad line.onnxtxt --of y --wrt x --data x.csv --ones --out grad.npz
refuses 1 "missing.npy" grad line.onnxtxt --of y --wrt x --data missing.npy --ones --out grad.npz
refuses 1 "nowhere/grad.onnx" grad line.onnxtxt --of y --wrt x --out nowhere/grad.onnx
[ ! -e grad.npz ] && [ ! -e grad.onnx ] || fail "a refusal has written something"
echo ok
