#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# onnxtrain check: for every float initializer whether it trains, and why; what an exporter did to parameters.
. "$(dirname "$0")/cli.inc"

# Every reason there is, in the forms that exporters write.
cat >reasons.onnxtxt <<'END'
<ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
reasons (float[batch, 4] x) => (float[batch, 3] scores)
<float[4, 4] "layer1.weight" = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] "layer1.bias" = {1,2,3,4}, float[4, 3] "layer2.weight" = {1,2,3,4,5,6,7,8,9,10,11,12},
 float scale = {2.0}, float[1] power = {2.0}, float low = {-9.0}, float high = {9.0}, float[3] unused = {1,2,3},
 int64[1] axes = {0}, float[2, 3] shaped = {1,2,3,4,5,6}, float[4] steps = {1,2,3,4}, float[3] bound = {1,2,3},
 float[4] "onnx::Mul_36" = {1,2,3,4}, float[4] "layer1.weight_bias" = {1,2,3,5}, float[4] val_12 = {2,2,3,4},
 float[4, 3] "tied.weight" = {1,2,3,4,5,6,7,8,9,10,11,12}>
{
    held = Constant <value = float[4] {1.0, 1.0, 1.0, 1.0}> ()
    small = Constant <value = float {0.5}> ()
    h0 = MatMul (x, "layer1.weight")
    h1 = Add (h0, "layer1.bias")
    h2 = Mul (h1, held)
    h3 = Mul (h2, small)
    h4 = Mul (h3, scale)
    h5 = Pow (h4, power)
    h6 = Clip (h5, low, high)
    [step] floored = Floor (steps)
    h7 = Add (h6, floored)
    h8 = Mul (h7, "onnx::Mul_36")
    h9 = Add (h8, "layer1.weight_bias")
    h10 = Add (h9, val_12)
    s0 = MatMul (h10, "layer2.weight")
    s1 = MatMul (h10, "tied.weight")
    s2 = Add (s0, s1)
    rows = Shape (shaped)
    wide = Cast <to = 1> (rows)
    sum = ReduceSum (wide, axes)
    scores = Mul (s2, sum)
    other = Mul (unused, bound)
}
END
run 0 check reasons.onnxtxt
out "trains   layer1.weight f32[4,4]: reaches the loss"
out "trains   layer2.weight f32[4,3]: reaches the loss"
out "constant scale f32[]: a scalar without dimensions"
out "constant power f32[1]: exponent of Pow"
out "constant low f32[]: bound of Clip"
out "constant high f32[]: bound of Clip"
out "constant unused f32[3]: does not reach the loss"
out "constant bound f32[3]: does not reach the loss"
out "constant axes i64[1]: element type i64"
out "constant shaped f32[2,3]: only through input 'data' of Shape"
out "constant steps f32[4]: only through input 'X' of Floor 'step'"
out "constant held f32[4]: value of a Constant node, which never trains"
grep -q "small" out && fail "$ran: a scalar of a Constant node is not worth a line"
out "trains   onnx::Mul_36 f32[4]: reaches the loss, folded by an exporter"
out "trains   layer1.weight_bias f32[4]: reaches the loss, folded by an exporter"
out "trains   val_12 f32[4]: reaches the loss, folded by an exporter"
out "note     'layer1.weight_bias' and 'val_12', f32[4] from 1 to 5, train as operands of Add, the first one of Add of 'h9', not as weight"
out "freeze those that are buffers (--freeze, frozen=)"
out "note     'onnx::Mul_36' and others are by name what an exporter computed from parameters that are gone"
out "optimize=False"
out "note     'scale', a scalar, stays as it is; train it if it is a parameter (--train, trainable=)"
out "note     'layer2.weight' and 'tied.weight' hold the same elements"
out "the model can be trained"
run 0 check reasons.onnxtxt --freeze 'layer1.*' --freeze val_12 --json
json parameters '{p["name"]: p["reason"] for p in v}["layer1.weight"] == "frozen by pattern '"'layer1.*'"'"'
json parameters '{p["name"]: p["role"] for p in v}["val_12"] == "frozen"'
json parameters '{p["name"]: p["folded"] for p in v}["onnx::Mul_36"] is True'
json parameters '{p["name"]: p["initializer"] for p in v}["held"] is False'
json notes 'len(v) == 4'
json notes "v[0].startswith(\"'onnx::Mul_36', f32[4] from 1 to 4, trains as an operand of Mul of 'h8', not as weight, bias\")"
json problems 'v == []'
run 0 check reasons.onnxtxt --train 'layer2.*'
out "constant layer1.bias f32[4]: not among the trainable names"
# Constants are no parameters of `info`.
run 0 info reasons.onnxtxt --json
json parameters 'v["tensors"] == 16'

# Operators that are missing: what lies behind them is told, the rest is examined.
cat >missing.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
missing (float[batch, 4] x) => (float[batch, 3] scores)
<float[4, 4] w1 = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4] b1 = {1,2,3,4}, float[4, 3] w2 = {1,2,3,4,5,6,7,8,9,10,11,12},
 float[4] mixed = {1,2,3,4}, float[3] lost = {1,2,3}, float[4] steps = {1,2,3,4}, float[1] power = {2.0}, int64[1] axes = {0}>
{
    h0 = MatMul (x, w1)
    h1 = Add (h0, b1)
    [roll] h2 = com.acme.Roll (h1, mixed, axes)
    h3 = Add (h2, mixed)
    floored = Floor (steps)
    h4 = Add (h3, floored)
    h5 = Pow (h4, power)
    scores = MatMul (h5, w2)
    [fold] dropped = Folding (lost)
}
END
run 1 check missing.onnxtxt --freeze b1
out "blocked  w1 f32[4,4]: reaches the loss only through Roll 'roll', which is not supported"
out "frozen   b1 f32[4]: frozen by name"
out "trains   w2 f32[4,3]: reaches the loss"
out "trains   mixed f32[4]: reaches the loss"
out "constant lost f32[3]: does not reach the loss"
out "constant steps f32[4]: only through inputs of Floor"
out "constant power f32[1]: exponent of Pow"
out "constant axes i64[1]: element type i64"
out "problem  operator com.acme.Roll is not supported"
out "problem  operator Folding (opset 17) is not supported"
out "the model cannot be trained as it is"
run 1 check missing.onnxtxt --json
json parameters '{p["name"]: p["role"] for p in v}["w1"] == "blocked"'
json parameters '{p["name"]: p["trains"] for p in v}["w1"] is False'
json problems 'len(v) == 2'

# A loss that does not fit: the parameters are examined all the same.
run 1 check missing.onnxtxt --loss mse:nothing
grep -q "not examined" out && fail "$ran: parameters are not examined"
sed 's/\[roll\] h2 = com.acme.Roll (h1, mixed, axes)/h2 = Add (h1, mixed)/; s/\[fold\] dropped = Folding (lost)//' missing.onnxtxt >whole.onnxtxt
run 1 check whole.onnxtxt --loss mse:nothing
out "problem  loss input 'nothing' is not a value of the model"
run 0 check whole.onnxtxt
out "trains   w1 f32[4,4]: reaches the loss"

# A broken file is refused as such.
sed 's/(h5, w2)/(h9, w2)/' whole.onnxtxt >broken.onnxtxt
run 1 check broken.onnxtxt
# Scale and bias of a normalisation that an exporter wrote in other operators are what they are of LayerNormalization:
# nothing to note, unless what is divided by is no standard deviation.
cat >normalised.onnxtxt <<'END'
<ir_version: 8, producer_name: "pytorch", opset_import: ["" : 17]>
normalised (float[batch, 4] x) => (float[batch, 3] scores)
<float[4] "norm.weight" = {1,1,1,1}, float[4] "norm.bias" = {0,0,0,0}, float[4, 3] "head.weight" = {1,2,3,4,5,6,7,8,9,10,11,12}>
{
    two = Constant <value = float {2.0}> ()
    epsilon = Constant <value = float {0.00001}> ()
    mean = ReduceMean <axes = [-1]> (x)
    d = Sub (x, mean)
    square = Pow (d, two)
    variance = ReduceMean <axes = [-1]> (square)
    sum = Add (variance, epsilon)
    deviation = Sqrt (sum)
    n = Div (d, deviation)
    scaled = Mul (n, "norm.weight")
    h = Add (scaled, "norm.bias")
    scores = MatMul (h, "head.weight")
}
END
run 0 check normalised.onnxtxt
grep -q "note" out && fail "$ran: a normalisation's scale and bias are worth no note"
sed 's/deviation = Sqrt/deviation = Abs/' normalised.onnxtxt >divided.onnxtxt
run 0 check divided.onnxtxt
out "note     'norm.weight', f32[4], all 1, trains as an operand of Mul"
out "note     'norm.bias', f32[4], all 0, trains as an operand of Add"

# Equal tensors are told together.
cat >twins.onnxtxt <<'END'
<ir_version: 8, opset_import: ["" : 17]>
twins (float[batch, 2] x) => (float[batch, 2] scores)
<float[2, 2] a = {1,2,3,4}, float[2, 2] b = {5,6,7,8}, float[2, 2] c = {1,2,3,4}, float[2, 2] d = {5,6,7,8}, float[2, 2] e = {1,2,3,4}>
{
    h1 = MatMul (x, a)
    h2 = MatMul (h1, b)
    h3 = MatMul (h2, c)
    h4 = MatMul (h3, d)
    scores = MatMul (h4, e)
}
END
run 0 check twins.onnxtxt
out "note     'a', 'c' and 'e' hold the same elements"
out "note     'b' and 'd' hold the same elements"
[ "$(grep -c note out)" = 2 ] || fail "$ran: more than a note for each group of equal tensors"

# What training refuses, `check` refuses in the same words: constants that overflow.
. "$here/models.inc"
overflowing() {
    cat >overflowing.onnxtxt <<END
<ir_version: 8, opset_import: ["" : 17]>
overflowing (float[batch, 4] x) => (float[batch, 3] scores)
<float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, $1>
{
    y = $2
    f = Cast <to = 1> (y)
    s = ReduceSum <keepdims = 0> (f)
    z = MatMul (x, w)
    scores = Add (z, s)
}
END
    refuses 1 "$3" train overflowing.onnxtxt --data plain.csv --epochs 1 --threads 1
    run 1 check overflowing.onnxtxt --loss cross-entropy
    out "$3"
}
overflowing 'int64[4] pads = {0, 0, 0, 9223372036854775807}' 'Pad (x, pads)' 'size of axis 1'
overflowing 'int64[4] pads = {0, 0, 0, -9223372036854775807}' 'Pad (x, pads)' 'pads is -9223372036854775807 at 3'
overflowing 'int64 a = {-9223372036854775807}, int64 b = {9223372036854775807}, int64 d = {1}' 'Range (a, b, d)' 'too many elements'
overflowing 'int64 a = {0}, int64 b = {9223372036854775807}, int64 d = {1}' 'Range (a, b, d)' 'too many elements'
overflowing 'int64[2] t = {4611686018427387904, 4}' 'Tile (x, t)' 'too many elements'
overflowing 'int64[2] t = {1, 9223372036854775807}' 'Tile (x, t)' 'size of axis 1'
echo ok
