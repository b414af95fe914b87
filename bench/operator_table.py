# SPDX-License-Identifier: Apache-2.0
"""Operators on shapes that models have, as ONNX and as PyTorch, side by side: what ./dev bench operators times and compares.

A new operator is a row. Inputs are written "X f32[8,128,1024]", separated by ";": those whose name begins with a capital letter are
differentiated by. Floats lie in -1 .. 1, or in the range behind the shape ("0.1..2"), and all differ where "distinct" stands there;
integers in 0 .. n - 1 ("< n"). Outputs of the
ONNX nodes begin with Y, of which gradients are taken. PyTorch's side is an expression over the same inputs.
"""

import re
from typing import NamedTuple

ROWS_OF_TRANSFORMER = "f32[8,128,1024]"
IMAGES = "f32[8,64,56,56]"


class Row(NamedTuple):
    name: str  # the operator of docs/operators.md; what tells rows of one operator apart stands behind a comma
    inputs: str
    onnx: str  # nodes, separated by line ends
    torch: str
    gates: str = ""  # recurrent: which of ONNX's gates comes where in PyTorch's weights W, R and B
    random: bool = False  # values are not compared

    def operator(self):
        return self.name.split(",")[0]

    def tensors(self):
        return [Input(*re.fullmatch(r"(\w+) (\w+)\[([\d,]*)\](?: (?:([-\d.e]+)\.\.([-\d.e]+)|< (\d+)|(distinct)))?", text.strip()).groups())
                for text in self.inputs.split(";")]

    def model(self):
        """As ONNX text."""
        inputs = ", ".join(f"{ONNX_TYPES[i.dtype]}[{i.shape}] {i.name}" for i in self.tensors())
        return (f'<ir_version: 10, opset_import: ["" : 28, "com.microsoft" : 1]>\n'
                f"operator ({inputs}) => (float Y) {{\n  " + "\n  ".join(self.onnx.strip().split("\n")) + "\n}\n")


class Input(NamedTuple):
    name: str
    dtype: str
    shape: str
    low: str
    high: str
    bound: str
    distinct: str

    def is_wanted(self):
        return self.name[0].isupper()

    def dims(self):
        return [int(n) for n in self.shape.split(",") if n]


ONNX_TYPES = {"f32": "float", "i64": "int64", "bool": "bool"}


def ints(name, *numbers):
    return f"{name} = Constant <value_ints = [{', '.join(str(n) for n in numbers)}]> ()\n"


def unary(name, torch, span="", shape=ROWS_OF_TRANSFORMER, attributes="", domain=""):
    return Row(name, f"X {shape} {span}".strip(), f"Y = {domain}{name.split(',')[0]} {attributes} (X)", torch)


def binary(name, torch, b=ROWS_OF_TRANSFORMER, span="", b_span=None):
    return Row(name, f"A {ROWS_OF_TRANSFORMER} {span}; B {b} {span if b_span is None else b_span}",
               f"Y = {name.split(',')[0]} (A, B)", torch)


def reduction(name, torch, axes=(-1,), shape=ROWS_OF_TRANSFORMER, span=""):
    return Row(name, f"X {shape} {span}", ints("axes", *axes) + f"Y = {name.split(',')[0]} <keepdims = 0> (X, axes)", torch)


def convolution(name, x, w, attributes, torch, bias=None, op="Conv"):
    b = f"; B f32[{bias}]" if bias else ""
    return Row(f"{op}, {name}", f"X {x}; W {w} -0.1..0.1{b}", f"Y = {op} <{attributes}> (X, W{', B' if bias else ''})", torch)


def resize(name, torch, attributes):
    return Row(f"Resize, {name}", "X f32[8,64,28,28]",
               f'none = Constant <value = float[0] {{}}> ()\ns = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()\nY = Resize {attributes} (X, none, s)', torch)


ELEMENTWISE = [
    unary("Abs", "X.abs()"),
    unary("Acos", "X.acos()", "-0.9..0.9"),
    unary("Acosh", "X.acosh()", "1.1..3"),
    unary("Asin", "X.asin()", "-0.9..0.9"),
    unary("Asinh", "X.asinh()"),
    unary("Atan", "X.atan()"),
    unary("Atanh", "X.atanh()", "-0.9..0.9"),
    unary("Celu", "F.celu(X)"),
    unary("Cos", "X.cos()", "-3..3"),
    unary("Cosh", "X.cosh()"),
    unary("Elu", "F.elu(X)"),
    unary("Erf", "X.erf()"),
    unary("Exp", "X.exp()"),
    unary("Gelu", "F.gelu(X)", "-3..3"),
    unary("Gelu, tanh", "F.gelu(X, approximate='tanh')", "-3..3", attributes='<approximate = "tanh">'),
    unary("HardSigmoid", "F.hardsigmoid(X)", "-4..4", attributes="<alpha = 0.16666667>"),
    unary("HardSwish", "F.hardswish(X)", "-4..4"),
    unary("LeakyRelu", "F.leaky_relu(X)"),
    unary("Log", "X.log()", "0.1..2"),
    unary("Mish", "F.mish(X)", "-3..3"),
    unary("Neg", "-X"),
    unary("Reciprocal", "X.reciprocal()", "0.5..2"),
    unary("Relu", "F.relu(X)", shape=IMAGES),
    unary("Selu", "F.selu(X)"),
    unary("Shrink", "F.softshrink(X)", attributes="<bias = 0.5, lambd = 0.5>"),
    unary("Sigmoid", "X.sigmoid()", "-3..3"),
    unary("Sin", "X.sin()", "-3..3"),
    unary("Sinh", "X.sinh()"),
    unary("Softplus", "F.softplus(X)", "-3..3"),
    unary("Softsign", "F.softsign(X)"),
    unary("Sqrt", "X.sqrt()", "0.1..2"),
    unary("Swish", "F.silu(X)", "-3..3"),
    unary("Tan", "X.tan()"),
    unary("Tanh", "X.tanh()", "-3..3"),
    unary("ThresholdedRelu", "F.threshold(X, 0.5, 0.0)", attributes="<alpha = 0.5>"),
    unary("QuickGelu", "X * torch.sigmoid(1.702 * X)", "-3..3", domain="com.microsoft."),
    Row("BiasGelu", f"X {ROWS_OF_TRANSFORMER}; B f32[1024]", "Y = com.microsoft.BiasGelu (X, B)", "F.gelu(X + B)"),
    Row("FastGelu", f"X {ROWS_OF_TRANSFORMER}; B f32[1024]", "Y = com.microsoft.FastGelu (X, B)", "F.gelu(X + B, approximate='tanh')"),
    Row("PRelu", f"X {IMAGES}; S f32[64,1,1] 0.1..0.3", "Y = PRelu (X, S)", "F.prelu(X, S.reshape(-1))"),
    binary("Add", "A + B"),
    binary("Add, bias", "A + B", b="f32[1024]"),
    binary("Add, channels", "A + B", b="f32[8,128,1]"),
    binary("Sub", "A - B"),
    binary("Mul", "A * B"),
    binary("Mul, row", "A * B", b="f32[1024]"),
    binary("Mul, gate", "A * B", b="f32[8,128,1]"),
    binary("Div", "A / B", b_span="0.5..2"),
    binary("Pow", "A ** B", span="0.5..2"),
    Row("Pow, square", f"X {ROWS_OF_TRANSFORMER}", "two = Constant <value_float = 2.0> ()\nY = Pow (X, two)", "X ** 2"),
    Row("Mod", f"A {ROWS_OF_TRANSFORMER}; B {ROWS_OF_TRANSFORMER} 0.5..2", "Y = Mod <fmod = 1> (A, B)", "torch.fmod(A, B)"),
    binary("SwiGLU", "F.silu(A) * B"),
    binary("Max", "torch.maximum(A, B)"),
    binary("Min", "torch.minimum(A, B)"),
    Row("Mean", f"A {ROWS_OF_TRANSFORMER}; B {ROWS_OF_TRANSFORMER}", "Y = Mean (A, B)", "(A + B) / 2"),
    Row("Sum", f"A {ROWS_OF_TRANSFORMER}; B {ROWS_OF_TRANSFORMER}; C {ROWS_OF_TRANSFORMER}", "Y = Sum (A, B, C)", "A + B + C"),
    Row("Where", f"c bool[8,128,1024] < 2; A {ROWS_OF_TRANSFORMER}; B {ROWS_OF_TRANSFORMER}", "Y = Where (c, A, B)", "torch.where(c, A, B)"),
    Row("Where, mask", "c bool[1,1,128,128] < 2; A f32[8,8,128,128]",
        "low = Constant <value_float = -10000.0> ()\nY = Where (c, A, low)", "A.masked_fill(~c, -10000.0)"),
    Row("Clip", f"X {IMAGES} -2..8", "low = Constant <value_float = 0.0> ()\nhigh = Constant <value_float = 6.0> ()\nY = Clip (X, low, high)",
        "F.hardtanh(X, 0.0, 6.0)"),
    Row("Cast", f"X {ROWS_OF_TRANSFORMER}", "h = Cast <to = 16> (X)\nY = Cast <to = 1> (h)", "X.bfloat16().float()"),
    Row("Dropout", f"X {ROWS_OF_TRANSFORMER}",
        "ratio = Constant <value_float = 0.1> ()\nt = Constant <value = bool {1}> ()\nY = Dropout (X, ratio, t)",
        "F.dropout(X, 0.1, True)", random=True),
    Row("FakeQuant", f"X {ROWS_OF_TRANSFORMER}",
        "scale = Constant <value_float = 0.0078125> ()\nzero = Constant <value_float = 128.0> ()\n"
        "Y = com.microsoft.FakeQuant (X, scale, zero)",
        "torch.fake_quantize_per_tensor_affine(X, 0.0078125, 128, 0, 255)"),
]

REDUCTIONS = [
    reduction("ReduceSum", "X.sum(-1)"),
    reduction("ReduceSum, rows", "X.sum((0, 1))", axes=(0, 1)),
    reduction("ReduceMean", "X.mean(-1)"),
    reduction("ReduceMean, images", "X.mean((2, 3))", axes=(2, 3), shape=IMAGES),
    reduction("ReduceMax", "X.amax(-1)"),
    reduction("ReduceMin", "X.amin(-1)"),
    reduction("ReduceProd", "X.prod(-1)", span="0.99..1.01"),
    reduction("ReduceL1", "X.abs().sum(-1)"),
    reduction("ReduceL2", "torch.linalg.vector_norm(X, dim=-1)"),
    reduction("ReduceSumSquare", "(X * X).sum(-1)"),
    reduction("ReduceLogSum", "X.sum(-1).log()", span="0.1..2"),
    reduction("ReduceLogSumExp", "X.logsumexp(-1)"),
    Row("CumSum", f"X {ROWS_OF_TRANSFORMER}", ints("axis", -1) + "a = Squeeze (axis)\nY = CumSum (X, a)", "X.cumsum(-1)"),
    Row("CumSum, steps", f"X {ROWS_OF_TRANSFORMER}", ints("axis", 1) + "a = Squeeze (axis)\nY = CumSum (X, a)", "X.cumsum(1)"),
    Row("CumProd", f"X {ROWS_OF_TRANSFORMER} 0.99..1.01", ints("axis", -1) + "a = Squeeze (axis)\nY = CumProd (X, a)", "X.cumprod(-1)"),
    # PyTorch does not say which of equal elements comes first, and so where the gradient goes.
    Row("TopK", "X f32[1024,4096] distinct", ints("k", 8) + "Y, i = TopK (X, k)", "X.topk(8)[0]"),
    Row("TopK, half", "X f32[1024,1024] distinct", ints("k", 512) + "Y, i = TopK (X, k)", "X.topk(512)[0]"),
    Row("Det", "X f32[512,16,16]", "Y = Det (X)", "torch.linalg.det(X)"),
    unary("Softmax", "torch.softmax(X, -1)", shape="f32[8,8,128,128]"),
    unary("Softmax, channels", "torch.softmax(X, 1)", shape="f32[2,21,128,128]", attributes="<axis = 1>"),
    unary("LogSoftmax", "torch.log_softmax(X, -1)", shape="f32[1024,4096]"),
    Row("SoftmaxCrossEntropyLoss", "X f32[1024,4096]; labels i64[1024] < 4096", "Y = SoftmaxCrossEntropyLoss (X, labels)",
        "F.cross_entropy(X, labels)"),
    Row("SoftmaxCrossEntropyLoss, pixels", "X f32[2,21,128,128]; labels i64[2,128,128] < 21", "Y = SoftmaxCrossEntropyLoss (X, labels)",
        "F.cross_entropy(X, labels)"),
    Row("NegativeLogLikelihoodLoss", "X f32[1024,4096]; labels i64[1024] < 4096", "Y = NegativeLogLikelihoodLoss (X, labels)",
        "F.nll_loss(X, labels)"),
]

BATCH_NORM = ", m, v, s, i = com.microsoft.BatchNormInternal (X, S, B, mean, var)"  # the form in which a training model has it
NORMALISATIONS = [
    Row("LayerNormalization", "X f32[1024,768]; S f32[768]; B f32[768]", "Y = LayerNormalization (X, S, B)",
        "F.layer_norm(X, (768,), S, B)"),
    Row("SimplifiedLayerNormalization", "X f32[1024,768]; S f32[768]", "Y = SimplifiedLayerNormalization (X, S)",
        "F.rms_norm(X, (768,), S, 1e-5)"),
    Row("BatchNormalization", f"X {IMAGES}; S f32[64]; B f32[64]; mean f32[64]; var f32[64] 0.5..2",
        f"Y{BATCH_NORM}", "F.batch_norm(X, mean, var, S, B, True)"),
    Row("BatchNormalization, rows", "X f32[1024,512]; S f32[512]; B f32[512]; mean f32[512]; var f32[512] 0.5..2",
        f"Y{BATCH_NORM}", "F.batch_norm(X, mean, var, S, B, True)"),
    Row("BatchNormalization, frozen", f"X {IMAGES}; S f32[64]; B f32[64]; mean f32[64]; var f32[64] 0.5..2",
        "Y = BatchNormalization (X, S, B, mean, var)", "F.batch_norm(X, mean, var, S, B, False)"),
    Row("InstanceNormalization", f"X {IMAGES}; S f32[64]; B f32[64]", "Y = InstanceNormalization (X, S, B)",
        "F.instance_norm(X, weight=S, bias=B)"),
    Row("RMSNormalization", "X f32[1024,768]; S f32[768]", "Y = RMSNormalization (X, S)", "F.rms_norm(X, (768,), S, 1e-5)"),
    Row("GroupNormalization", f"X {IMAGES}; S f32[64]; B f32[64]", "Y = GroupNormalization <num_groups = 8> (X, S, B)",
        "F.group_norm(X, 8, S, B)"),
    Row("MeanVarianceNormalization", f"X {IMAGES}", "Y = MeanVarianceNormalization (X)",
        "(X - X.mean((0, 2, 3), keepdim=True)) / (X.std((0, 2, 3), correction=0, keepdim=True) + 1e-9)"),
    Row("SkipLayerNormalization", "X f32[8,128,768]; R f32[8,128,768]; S f32[768]; B f32[768]",
        "Y = com.microsoft.SkipLayerNormalization <epsilon = 1e-5> (X, R, S, B)", "F.layer_norm(X + R, (768,), S, B)"),
    Row("SkipSimplifiedLayerNormalization", "X f32[8,128,768]; R f32[8,128,768]; S f32[768]",
        "Y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 1e-5> (X, R, S)", "F.rms_norm(X + R, (768,), S, 1e-5)"),
    unary("LpNormalization", "F.normalize(X, dim=-1)"),
    Row("LRN", f"X {IMAGES}", "Y = LRN <size = 5> (X)", "F.local_response_norm(X, 5)"),
]

CONVOLUTIONS = [
    convolution("3x3", IMAGES, "f32[64,64,3,3]", "pads = [1, 1, 1, 1]", "F.conv2d(X, W, padding=1)"),
    convolution("1x1", "f32[8,256,28,28]", "f32[64,256,1,1]", "group = 1", "F.conv2d(X, W)"),
    convolution("7x7 first", "f32[4,3,224,224]", "f32[64,3,7,7]", "strides = [2, 2], pads = [3, 3, 3, 3]", "F.conv2d(X, W, stride=2, padding=3)"),
    convolution("3x3 dilated", "f32[4,64,28,28]", "f32[64,64,3,3]", "pads = [2, 2, 2, 2], dilations = [2, 2]",
                "F.conv2d(X, W, padding=2, dilation=2)"),
    convolution("3x3 of 32 groups", "f32[8,128,28,28]", "f32[128,4,3,3]", "pads = [1, 1, 1, 1], group = 32", "F.conv2d(X, W, padding=1, groups=32)"),
    convolution("depthwise", "f32[8,144,40,40]", "f32[144,1,3,3]", "pads = [1, 1, 1, 1], group = 144", "F.conv2d(X, W, padding=1, groups=144)"),
    convolution("depthwise, strides", "f32[8,144,40,40]", "f32[144,1,3,3]", "pads = [1, 1, 1, 1], strides = [2, 2], group = 144",
                "F.conv2d(X, W, padding=1, stride=2, groups=144)"),
    convolution("1-D", "f32[8,64,1024]", "f32[64,64,9]", "pads = [4, 4]", "F.conv1d(X, W, B, padding=4)", bias=64),
    convolution("1-D depthwise", "f32[8,256,1024]", "f32[256,1,4]", "pads = [3, 0], group = 256", "F.conv1d(F.pad(X, (3, 0)), W, B, groups=256)",
                bias=256),
    convolution("patches", "f32[4,3,224,224]", "f32[768,3,16,16]", "strides = [16, 16]", "F.conv2d(X, W, stride=16)"),
    convolution("depthwise 7x7", "f32[8,96,56,56]", "f32[96,1,7,7]", "pads = [3, 3, 3, 3], group = 96", "F.conv2d(X, W, padding=3, groups=96)"),
    convolution("1-D causal", "f32[8,64,1024]", "f32[64,64,3]", "pads = [8, 0], dilations = [4]", "F.conv1d(F.pad(X, (8, 0)), W, dilation=4)"),
    convolution("3-D", "f32[2,16,16,28,28]", "f32[32,16,3,3,3]", "pads = [1, 1, 1, 1, 1, 1]", "F.conv3d(X, W, padding=1)"),
    convolution("2x2 up", "f32[4,128,32,32]", "f32[128,64,2,2]", "strides = [2, 2]", "F.conv_transpose2d(X, W, B, stride=2)", bias=64,
                op="ConvTranspose"),
    convolution("4x4 up", "f32[4,64,28,28]", "f32[64,32,4,4]", "strides = [2, 2], pads = [1, 1, 1, 1]",
                "F.conv_transpose2d(X, W, stride=2, padding=1)", op="ConvTranspose"),
    convolution("1-D up", "f32[8,64,256]", "f32[64,32,8]", "strides = [4], pads = [2, 2]",
                "F.conv_transpose1d(X, W, stride=4, padding=2)", op="ConvTranspose"),
    Row("CausalConvWithState", "X f32[8,256,512]; W f32[256,1,4]; B f32[256]", "Y, s = CausalConvWithState (X, W, B)",
        "F.conv1d(F.pad(X, (3, 0)), W, B, groups=256)"),
]

CONVOLUTIONS.append(
    Row("FusedConv", f"X {IMAGES}; W f32[64,64,3,3]; B f32[64]",
        'Y = com.microsoft.FusedConv <activation = "Relu", pads = [1, 1, 1, 1]> (X, W, B)', "F.relu(F.conv2d(X, W, B, padding=1))"))

POOLS = [
    Row("MaxPool", "X f32[8,64,112,112]", "Y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (X)",
        "F.max_pool2d(X, 3, 2, 1)"),
    Row("MaxPool, 2x2", IMAGES.join(["X ", ""]), "Y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (X)", "F.max_pool2d(X, 2)"),
    Row("MaxPool, 1-D", "X f32[8,64,4096]", "Y = MaxPool <kernel_shape = [4], strides = [4]> (X)", "F.max_pool1d(X, 4)"),
    Row("AveragePool", f"X {IMAGES}", "Y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (X)", "F.avg_pool2d(X, 2)"),
    Row("AveragePool, 3x3", f"X {IMAGES}",
        "Y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (X)", "F.avg_pool2d(X, 3, 1, 1)"),
    Row("GlobalAveragePool", "X f32[8,512,14,14]", "Y = GlobalAveragePool (X)", "F.adaptive_avg_pool2d(X, 1)"),
    Row("GlobalMaxPool", "X f32[8,512,14,14]", "Y = GlobalMaxPool (X)", "F.adaptive_max_pool2d(X, 1)"),
    Row("LpPool", f"X {IMAGES}", "Y = LpPool <kernel_shape = [3, 3], strides = [2, 2]> (X)", "F.lp_pool2d(X, 2.0, 3, 2)"),
    Row("GlobalLpPool", "X f32[8,512,14,14]", "Y = GlobalLpPool (X)", "torch.linalg.vector_norm(X, dim=(2, 3), keepdim=True)"),
    Row("MaxUnpool", f"X {IMAGES}", "P, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (X)\n"
        "Y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (P, i)", "F.max_unpool2d(*F.max_pool2d(X, 2, return_indices=True), 2)"),
    Row("GridSample", "X f32[4,64,56,56]; G f32[4,56,56,2]", "Y = GridSample (X, G)", "F.grid_sample(X, G, align_corners=False)"),
    Row("GridSample, cubic", "X f32[4,64,56,56]; G f32[4,56,56,2]", 'Y = GridSample <mode = "cubic"> (X, G)',
        "F.grid_sample(X, G, mode='bicubic', align_corners=False)"),
    Row("GridSample, pictures", "X f32[4,3,224,224]; g f32[4,224,224,2]", 'Y = GridSample <padding_mode = "border"> (X, g)',
        "F.grid_sample(X, g, padding_mode='border', align_corners=False)"),
    Row("GridSample, three axes", "X f32[1,16,16,32,32]; G f32[1,16,32,32,3]", "Y = GridSample (X, G)",
        "F.grid_sample(X, G, align_corners=False)"),
    Row("AffineGrid", "T f32[8,2,3]", ints("size", 8, 3, 224, 224) + "Y = AffineGrid (T, size)",
        "F.affine_grid(T, (8, 3, 224, 224), align_corners=False)"),
    resize("linear", "F.interpolate(X, scale_factor=2, mode='bilinear')", '<mode = "linear">'),
    resize("cubic", "F.interpolate(X, scale_factor=2, mode='bicubic')", '<mode = "cubic">'),
    resize("nearest", "F.interpolate(X, scale_factor=2)", '<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'),
]

PRODUCTS = [
    Row("Gemm", "X f32[1024,768]; W f32[768,768]; B f32[768]", "Y = Gemm <transB = 1> (X, W, B)", "F.linear(X, W, B)"),
    Row("Gemm, few rows", "X f32[64,784]; W f32[512,784]; B f32[512]", "Y = Gemm <transB = 1> (X, W, B)", "F.linear(X, W, B)"),
    Row("MatMul", "X f32[8,128,256]; W f32[256,1024]", "Y = MatMul (X, W)", "X @ W"),
    Row("MatMul, batches", "A f32[8,8,128,32]; B f32[8,8,32,128]", "Y = MatMul (A, B)", "A @ B"),
    Row("FusedMatMul", "A f32[8,8,128,64]; B f32[8,8,128,64]", "Y = com.microsoft.FusedMatMul <alpha = 0.125, transB = 1> (A, B)",
        "0.125 * (A @ B.mT)"),
    Row("Einsum", "A f32[8,128,8,64]; B f32[8,128,8,64]", 'Y = Einsum <equation = "bqhd,bkhd->bhqk"> (A, B)',
        "torch.einsum('bqhd,bkhd->bhqk', A, B)"),
    Row("Attention", "Q f32[8,8,128,64]; K f32[8,8,128,64]; V f32[8,8,128,64]", "Y = Attention (Q, K, V)",
        "F.scaled_dot_product_attention(Q, K, V)"),
    Row("Attention, causal", "Q f32[8,8,128,64]; K f32[8,8,128,64]; V f32[8,8,128,64]", "Y = Attention <is_causal = 1> (Q, K, V)",
        "F.scaled_dot_product_attention(Q, K, V, is_causal=True)"),
    Row("FusedGemm", "X f32[1024,768]; W f32[768,768]; B f32[768]",
        'Y = com.microsoft.FusedGemm <activation = "Relu", transB = 1> (X, W, B)', "F.relu(F.linear(X, W, B))"),
    Row("MultiHeadAttention", "Q f32[8,128,512]; K f32[8,128,512]; V f32[8,128,512]",
        "Y = com.microsoft.MultiHeadAttention <num_heads = 8> (Q, K, V)",
        "(lambda q, k, v: F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(8, 128, 512))"
        "(*(x.reshape(8, 128, 8, 64).transpose(1, 2) for x in (Q, K, V)))"),
    Row("RotaryEmbedding", "X f32[8,8,128,64]; c f32[1,128,32]; s f32[1,128,32]", "Y = RotaryEmbedding (X, c, s)",
        "(lambda a, b, c, s: torch.cat((a * c - b * s, a * s + b * c), -1))(*X.chunk(2, -1), c[:, None], s[:, None])"),
]

MOVES = [
    Row("Gather", "T f32[30522,256]; i i64[8,128] < 30522", "Y = Gather (T, i)", "F.embedding(i, T)"),
    Row("Gather, axis 1", "X f32[8,128,1024]; i i64[64] < 128", "Y = Gather <axis = 1> (X, i)", "X.index_select(1, i)"),
    Row("GatherElements", "X f32[1024,4096]; i i64[1024,256] < 4096", "Y = GatherElements <axis = 1> (X, i)", "X.gather(1, i)"),
    Row("GatherND", "X f32[256,16,64]; i i64[1024,1] < 256", "Y = GatherND (X, i)", "X[i[:, 0]]"),
    Row("ScatterElements", "X f32[1024,1024]; i i64[1024,256] < 1024; U f32[1024,256]",
        'Y = ScatterElements <axis = 1, reduction = "add"> (X, i, U)', "X.scatter_add(1, i, U)"),
    Row("ScatterND", "X f32[4096,256]; i i64[1024,1] < 4096; U f32[1024,256]", 'Y = ScatterND <reduction = "add"> (X, i, U)',
        "X.index_add(0, i[:, 0], U)"),
    Row("Concat", "A f32[8,64,56,56]; B f32[8,64,56,56]", "Y = Concat <axis = 1> (A, B)", "torch.cat((A, B), 1)"),
    Row("Concat, columns", "A f32[1024,512]; B f32[1024,512]", "Y = Concat <axis = 1> (A, B)", "torch.cat((A, B), 1)"),
    Row("Split", "X f32[8,128,1536]", "a, b, c = Split <axis = 2, num_outputs = 3> (X)\nd = Mul (a, b)\nY = Add (d, c)",
        "(lambda a, b, c: a * b + c)(*X.chunk(3, 2))"),
    Row("Slice", f"X {ROWS_OF_TRANSFORMER}", ints("from", 256) + ints("to", 768) + ints("axes", 2) + "Y = Slice (X, from, to, axes)",
        "X[:, :, 256:768].contiguous()"),
    Row("Slice, images", f"X {IMAGES}", ints("from", 1, 1) + ints("to", 55, 55) + ints("axes", 2, 3) + "Y = Slice (X, from, to, axes)",
        "X[:, :, 1:55, 1:55].contiguous()"),
    Row("Transpose", "X f32[8,128,8,64]", "Y = Transpose <perm = [0, 2, 1, 3]> (X)", "X.transpose(1, 2).contiguous()"),
    Row("Transpose, matrix", "X f32[1024,1024]", "Y = Transpose (X)", "X.t().contiguous()"),
    Row("Transpose, channels last", f"X {IMAGES}", "Y = Transpose <perm = [0, 2, 3, 1]> (X)", "X.permute(0, 2, 3, 1).contiguous()"),
    Row("Expand", "X f32[1,128,1024]", ints("shape", 8, 128, 1024) + "Y = Expand (X, shape)", "X.expand(8, 128, 1024).contiguous()"),
    Row("Tile", "X f32[8,128,256]", ints("times", 1, 1, 4) + "Y = Tile (X, times)", "X.tile((1, 1, 4))"),
    Row("Pad", f"X {IMAGES}", ints("pads", 0, 0, 1, 1, 0, 0, 1, 1) + "Y = Pad (X, pads)", "F.pad(X, (1, 1, 1, 1))"),
    Row("Pad, reflect", f"X {IMAGES}", ints("pads", 0, 0, 2, 2, 0, 0, 2, 2) + 'Y = Pad <mode = "reflect"> (X, pads)',
        "F.pad(X, (2, 2, 2, 2), mode='reflect')"),
    Row("Pad, edge", f"X {IMAGES}", ints("pads", 0, 0, 2, 2, 0, 0, 2, 2) + 'Y = Pad <mode = "edge"> (X, pads)',
        "F.pad(X, (2, 2, 2, 2), mode='replicate')"),
    Row("DepthToSpace", f"X {IMAGES}", 'Y = DepthToSpace <blocksize = 2, mode = "CRD"> (X)', "F.pixel_shuffle(X, 2)"),
    Row("SpaceToDepth", f"X {IMAGES}", "Y = SpaceToDepth <blocksize = 2> (X)",
        "X.reshape(8, 64, 28, 2, 28, 2).permute(0, 3, 5, 1, 2, 4).reshape(8, 256, 28, 28)"),
    Row("Compress", "X f32[8,128,1024]", f"c = Constant <value = bool[128] {{{', '.join(['1', '0'] * 64)}}}> ()\nY = Compress <axis = 1> (X, c)",
        "X[:, torch.arange(128) % 2 == 0]"),
    Row("OneHot", "i i64[1024] < 1000; V f32[2]", ints("depth", 1000) + "Y = OneHot (i, depth, V)",
        "torch.where(F.one_hot(i, 1000).bool(), V[1], V[0])"),
    Row("Col2Im", "X f32[4,576,784]", ints("image", 28, 28) + ints("block", 3, 3) + "Y = Col2Im <pads = [1, 1, 1, 1]> (X, image, block)",
        "F.fold(X, 28, 3, padding=1)"),
    Row("Trilu", "X f32[64,128,128]", "Y = Trilu <upper = 0> (X)", "X.tril()"),
]


def recurrent(name, op, n_gates, torch, attributes="", gates="", x="f32[64,16,256]", directions=1):
    return Row(name, f"X {x}; W f32[{directions},{256 * n_gates},256] -0.06..0.06; R f32[{directions},{256 * n_gates},256] -0.06..0.06; "
               f"B f32[{directions},{512 * n_gates}] -0.06..0.06",
               f"Y = {op} <hidden_size = 256{attributes}> (X, W, R, B)", torch, gates)


H0 = "torch.zeros(1, 16, 256)"
RECURRENT = [
    recurrent("LSTM", "LSTM", 4, f"torch.lstm(X, ({H0}, {H0}), [W[0], R[0], B[0, :1024], B[0, 1024:]], True, 1, 0.0, True, False, False)[0]",
              gates="0231"),
    recurrent("GRU", "GRU", 3, f"torch.gru(X, {H0}, [W[0], R[0], B[0, :768], B[0, 768:]], True, 1, 0.0, True, False, False)[0]",
              ", linear_before_reset = 1", "102"),
    recurrent("RNN", "RNN", 1, f"torch.rnn_tanh(X, {H0}, [W[0], R[0], B[0, :256], B[0, 256:]], True, 1, 0.0, True, False, False)[0]"),
]

SIGNALS = [
    Row("DFT", "X f32[64,1024,2]", "Y = DFT (X)", "torch.view_as_real(torch.fft.fft(torch.view_as_complex(X)))"),
    Row("DFT, onesided", "X f32[64,1024,1]", "Y = DFT <onesided = 1> (X)", "torch.view_as_real(torch.fft.rfft(X[:, :, 0]))"),
    Row("STFT", "X f32[8,16000,1]; W f32[400]", "s = Constant <value_int = 160> ()\nY = STFT (X, s, W)",
        "torch.view_as_real(torch.stft(X[:, :, 0], 400, 160, window=W, center=False, return_complex=True)).transpose(1, 2)"),
]

ROWS = [*ELEMENTWISE, *REDUCTIONS, *NORMALISATIONS, *CONVOLUTIONS, *POOLS, *PRODUCTS, *MOVES, *RECURRENT, *SIGNALS]

VIEW = "moves nothing, here and there"
ANOTHER = "another form of one that is compared: "
NONE = "PyTorch has no such operator"
APART = "other operators stand for it when it runs"
NOT_COMPARED = {
    "Reshape": VIEW, "Flatten": VIEW, "Squeeze": VIEW, "Unsqueeze": VIEW, "Identity": VIEW,
    "CastLike": ANOTHER + "Cast",
    "BatchNormInternal": ANOTHER + "BatchNormalization",
    "ConcatTraining": ANOTHER + "Concat", "SplitTraining": ANOTHER + "Split", "ReduceSumTraining": ANOTHER + "ReduceSum",
    "LSTMTraining": ANOTHER + "LSTM", "GRUTraining": ANOTHER + "GRU",
    "SoftmaxCrossEntropyLossInternal": ANOTHER + "SoftmaxCrossEntropyLoss",
    "Scale": ANOTHER + "Mul",
    "EmbedLayerNormalization": ANOTHER + "Gather and LayerNormalization", "GroupQueryAttention": ANOTHER + "Attention",
    "MatMulNBits": ANOTHER + "MatMul", "Scaler": ANOTHER + "Mul", "Normalizer": ANOTHER + "LpNormalization",
    "Imputer": ANOTHER + "Where", "ArrayFeatureExtractor": ANOTHER + "Gather", "FeatureVectorizer": ANOTHER + "Concat",
    "LinearRegressor": ANOTHER + "Gemm", "LinearClassifier": ANOTHER + "Gemm",
    "Hardmax": NONE, "ReverseSequence": NONE, "CenterCropPad": NONE, "TensorScatter": NONE,
    "DeformColumns": NONE, "DeformConv": NONE, "MaxRoiPool": NONE, "RoiAlign": NONE, "LinearAttention": NONE,
    "BranchInput": NONE, "BranchOutput": NONE, "NodeGradient": NONE,
    "If": APART, "Loop": APART, "Scan": APART, "SequenceMap": APART, "SequenceConstruct": APART, "SequenceAt": APART,
    "SequenceInsert": APART, "SequenceErase": APART, "SplitToSequence": APART, "ConcatFromSequence": APART,
    "Scatter": ANOTHER + "ScatterElements", "Upsample": ANOTHER + "Resize",
    "BatchScale": NONE, "ScaledSum": NONE, "FlattenAndUnpad": NONE, "PadAndUnflatten": NONE,
}
