#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what PyTorch does in ten training steps; test_golden.c compares.

usage: generate.py            writes data/NAME.onnxtxt and data/NAME.txt (needs torch, numpy, onnx)

NAME.onnxtxt is the forward model in f32 with its initial values. NAME.txt has a line per recorded
thing: "batch ROWS", "classes N", "words N" (integer inputs are below), then for every optimizer

    OPTIMIZER loss ERROR(10) VALUES(10)
    OPTIMIZER PARAMETER ERROR VALUES...

VALUES are PyTorch's in f64: the losses of the ten steps, and the parameter after them. ERROR is
PyTorch's own f32 error against its f64 values: for the loss of a step |f32 - f64| / |f64|, for a
parameter the same of Euclidean norms, the largest of several runs in f32 that differ only in the
order of the rows within a batch, which changes nothing but the rounding.

Attributes of ONNX and the learning rate are f32, so PyTorch gets those values. The inputs are not
stored: both sides compute them, see `uniform`.
"""
import pathlib

import numpy as np
import onnx.parser
import torch
import torch.nn.functional as F

STEPS, RUNS_F32 = 10, 8
LEARNING_RATES = {"sgd": 0.1, "momentum": 0.02, "adamw0": 0.01, "adamw1": 0.01}
DATA = pathlib.Path(__file__).parent / "data"


def f32(x):
    return float(np.float32(x))


BETA1, BETA2, EPSILON, DECAY, MOMENTUM = f32(0.9), f32(0.999), f32(1e-6), f32(0.01), f32(0.9)
NORM_EPSILON, STATISTICS_MOMENTUM = f32(1e-5), f32(0.9)


def hashed(seed, n):
    """n words of 64 bits: SplitMix64 from `seed`."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(seed, shape):
    """In [-1, 1), exact in f32."""
    words = hashed(seed, int(np.prod(shape)))
    return ((words >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1).reshape(shape)


def whole(seed, shape, below):
    return ((hashed(seed, int(np.prod(shape))) >> np.uint64(40)) % np.uint64(below)).astype(np.int64).reshape(shape)


class Model:
    """A model twice: as ONNX text and as a function of PyTorch tensors over the same parameters."""

    opset, rows, classes = 17, 8, 10
    x_type, x_shape, x_below = "float", (), 0

    def __init__(self):
        self.initial, self.trained = {}, []
        self.declare()

    def parameter(self, name, shape, scale=None, around=0.0, trained=True):
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else shape[0]
        scale = (3.0 / fan_in) ** 0.5 if scale is None else scale
        values = around + scale * uniform(1000 + len(self.initial), shape)
        self.initial[name] = values.astype(np.float32).astype(np.float64)
        if trained:
            self.trained.append(name)

    def batch_norm(self, name, width):
        self.parameter(f"{name}.weight", (width,), 0.3, 1.0)
        self.parameter(f"{name}.bias", (width,), 0.3)
        self.parameter(f"{name}.mean", (width,), 0.1, trained=False)
        self.parameter(f"{name}.var", (width,), 0.3, 1.0, trained=False)

    def inputs(self, step):
        shape = (self.rows, *self.x_shape)
        x = whole(2 * step, shape, self.x_below) if self.x_below else uniform(2 * step, shape)
        return x, whole(2 * step + 1, (self.rows,), self.classes)

    def text(self):
        def tensor(name, values):
            elements = ", ".join(f"{v:.17g}" for v in values.reshape(-1))
            return f'   float[{",".join(map(str, values.shape))}] "{name}" = {{{elements}}}'

        dims = ",".join(["N", *map(str, self.x_shape)])
        return (f'<ir_version: 8, opset_import: ["" : {self.opset}]>\n'
                f"{self.name} ({self.x_type}[{dims}] x) => (float[N,{self.classes}] y)\n<\n"
                + ",\n".join(tensor(n, v) for n, v in self.initial.items())
                + (",\n" + self.constants if self.constants else "") + "\n>\n{" + self.body + "}\n")

    constants = ""


class Mlp(Model):
    name, x_shape, classes = "mlp", (6,), 4
    body = """
   a = Gemm <transB = 1> (x, "fc1.weight", "fc1.bias")
   b = Relu (a)
   c = Gemm <transB = 1> (b, "fc2.weight", "fc2.bias")
   d = Tanh (c)
   y = Gemm <transB = 1> (d, "fc3.weight", "fc3.bias")
"""

    def declare(self):
        for i, (a, b) in enumerate([(6, 16), (16, 12), (12, 4)], 1):
            self.parameter(f"fc{i}.weight", (b, a))
            self.parameter(f"fc{i}.bias", (b,), 0.2)

    def forward(self, p, x):
        x = F.relu(F.linear(x, p["fc1.weight"], p["fc1.bias"]))
        x = torch.tanh(F.linear(x, p["fc2.weight"], p["fc2.bias"]))
        return F.linear(x, p["fc3.weight"], p["fc3.bias"])


class LeNet(Model):
    name, x_shape, classes = "lenet", (1, 12, 12), 10
    body = """
   a = Conv <kernel_shape = [5, 5], pads = [2, 2, 2, 2]> (x, "conv1.weight", "conv1.bias")
   b = Relu (a)
   c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
   d = Conv <kernel_shape = [3, 3]> (c, "conv2.weight", "conv2.bias")
   e = Relu (d)
   f = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (e)
   g = Flatten <axis = 1> (f)
   h = Gemm <transB = 1> (g, "fc1.weight", "fc1.bias")
   i = Relu (h)
   y = Gemm <transB = 1> (i, "fc2.weight", "fc2.bias")
"""

    def declare(self):
        self.parameter("conv1.weight", (4, 1, 5, 5))
        self.parameter("conv1.bias", (4,), 0.2)
        self.parameter("conv2.weight", (6, 4, 3, 3))
        self.parameter("conv2.bias", (6,), 0.2)
        self.parameter("fc1.weight", (16, 24))
        self.parameter("fc1.bias", (16,), 0.2)
        self.parameter("fc2.weight", (10, 16))
        self.parameter("fc2.bias", (10,), 0.2)

    def forward(self, p, x):
        x = F.max_pool2d(F.relu(F.conv2d(x, p["conv1.weight"], p["conv1.bias"], padding=2)), 2)
        x = F.avg_pool2d(F.relu(F.conv2d(x, p["conv2.weight"], p["conv2.bias"])), 2).flatten(1)
        x = F.relu(F.linear(x, p["fc1.weight"], p["fc1.bias"]))
        return F.linear(x, p["fc2.weight"], p["fc2.bias"])


def batch_norm_text(y, x, name):
    return (f'   {y} = BatchNormalization <epsilon = 0.00001, momentum = 0.9> '
            f'({x}, "{name}.weight", "{name}.bias", "{name}.mean", "{name}.var")\n')


class ResNet(Model):
    """A plain block, and one that halves the picture; 8x8 pictures."""

    name, x_shape, classes = "resnet", (3, 8, 8), 5
    body = ("\n"
            '   a0 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, "stem.weight")\n'
            + batch_norm_text("a1", "a0", "stem.bn") +
            '   a2 = Relu (a1)\n'
            '   b0 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a2, "block1.conv1.weight")\n'
            + batch_norm_text("b1", "b0", "block1.bn1") +
            '   b2 = Relu (b1)\n'
            '   b3 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (b2, "block1.conv2.weight")\n'
            + batch_norm_text("b4", "b3", "block1.bn2") +
            '   b5 = Add (b4, a2)\n'
            '   b6 = Relu (b5)\n'
            '   c0 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (b6, "block2.conv1.weight")\n'
            + batch_norm_text("c1", "c0", "block2.bn1") +
            '   c2 = Relu (c1)\n'
            '   c3 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (c2, "block2.conv2.weight")\n'
            + batch_norm_text("c4", "c3", "block2.bn2") +
            '   s0 = Conv <kernel_shape = [1, 1], strides = [2, 2]> (b6, "block2.short.weight")\n'
            + batch_norm_text("s1", "s0", "block2.bn3") +
            '   c5 = Add (c4, s1)\n'
            '   c6 = Relu (c5)\n'
            '   d = GlobalAveragePool (c6)\n'
            '   e = Flatten (d)\n'
            '   y = Gemm <transB = 1> (e, "fc.weight", "fc.bias")\n')

    def declare(self):
        self.parameter("stem.weight", (4, 3, 3, 3))
        self.batch_norm("stem.bn", 4)
        for conv, bn, shape in [("block1.conv1", "block1.bn1", (4, 4, 3, 3)),
                                ("block1.conv2", "block1.bn2", (4, 4, 3, 3)),
                                ("block2.conv1", "block2.bn1", (8, 4, 3, 3)),
                                ("block2.conv2", "block2.bn2", (8, 8, 3, 3)),
                                ("block2.short", "block2.bn3", (8, 4, 1, 1))]:
            self.parameter(f"{conv}.weight", shape)
            self.batch_norm(bn, shape[0])
        self.parameter("fc.weight", (5, 8))
        self.parameter("fc.bias", (5,), 0.2)

    def norm(self, p, x, name):
        """Running statistics by the formula of ONNX: the biased variance, where PyTorch's own
        module takes the unbiased one."""
        with torch.no_grad():
            var, mean = torch.var_mean(x, dim=(0, 2, 3), unbiased=False)
            for key, now in (("mean", mean), ("var", var)):
                old = p[f"{name}.{key}"]
                old.copy_(old * STATISTICS_MOMENTUM + now * (1 - STATISTICS_MOMENTUM))
        return F.batch_norm(x, None, None, p[f"{name}.weight"], p[f"{name}.bias"], True, 0.0, NORM_EPSILON)

    def forward(self, p, x):
        x = F.relu(self.norm(p, F.conv2d(x, p["stem.weight"], padding=1), "stem.bn"))
        y = F.relu(self.norm(p, F.conv2d(x, p["block1.conv1.weight"], padding=1), "block1.bn1"))
        y = self.norm(p, F.conv2d(y, p["block1.conv2.weight"], padding=1), "block1.bn2")
        x = F.relu(y + x)
        y = F.relu(self.norm(p, F.conv2d(x, p["block2.conv1.weight"], stride=2, padding=1), "block2.bn1"))
        y = self.norm(p, F.conv2d(y, p["block2.conv2.weight"], padding=1), "block2.bn2")
        x = F.relu(y + self.norm(p, F.conv2d(x, p["block2.short.weight"], stride=2), "block2.bn3"))
        return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


class Transformer(Model):
    """A block over 6 tokens, width 8, two heads. Queries and keys have no bias: that of the keys
    has no influence, so its gradient is nothing but rounding, which AdamW would make steps of."""

    name, opset, x_type, x_shape, x_below, classes = "transformer", 20, "int64", (6,), 11, 7
    constants = ("   int64[4] split = {0, 0, 2, 4}, int64[3] join = {0, 0, 8}, int64[1] tokens = {1},\n"
                 "   float scale = {0.5}")
    body = """
   e = Gather (embed, x)
   x0 = Add (e, position)
   n1 = LayerNormalization <axis = -1, epsilon = 0.00001> (x0, "ln1.weight", "ln1.bias")
   q0 = MatMul (n1, "q.weight")
   k0 = MatMul (n1, "k.weight")
   v0 = MatMul (n1, "v.weight")
   v1 = Add (v0, "v.bias")
   q2 = Reshape (q0, split)
   k2 = Reshape (k0, split)
   v2 = Reshape (v1, split)
   q3 = Transpose <perm = [0, 2, 1, 3]> (q2)
   k3 = Transpose <perm = [0, 2, 3, 1]> (k2)
   v3 = Transpose <perm = [0, 2, 1, 3]> (v2)
   s0 = MatMul (q3, k3)
   s1 = Mul (s0, scale)
   s2 = Softmax <axis = -1> (s1)
   o0 = MatMul (s2, v3)
   o1 = Transpose <perm = [0, 2, 1, 3]> (o0)
   o2 = Reshape (o1, join)
   o3 = MatMul (o2, "out.weight")
   o4 = Add (o3, "out.bias")
   x1 = Add (x0, o4)
   n2 = LayerNormalization <axis = -1, epsilon = 0.00001> (x1, "ln2.weight", "ln2.bias")
   u0 = MatMul (n2, "up.weight")
   u1 = Add (u0, "up.bias")
   u2 = Gelu (u1)
   d0 = MatMul (u2, "down.weight")
   d1 = Add (d0, "down.bias")
   x2 = Add (x1, d1)
   m = ReduceMean <keepdims = 0> (x2, tokens)
   y = Gemm (m, "head.weight", "head.bias")
"""

    def declare(self):
        c, up = 8, 24
        self.parameter("embed", (self.x_below, c), 1.0)
        self.parameter("position", (*self.x_shape, c), 0.3)
        for name in ("ln1", "ln2"):
            self.parameter(f"{name}.weight", (c,), 0.3, 1.0)
            self.parameter(f"{name}.bias", (c,), 0.3)
        for name, a, b in [("q", c, c), ("k", c, c), ("v", c, c), ("out", c, c), ("up", c, up), ("down", up, c),
                           ("head", c, self.classes)]:
            self.parameter(f"{name}.weight", (a, b), (3.0 / a) ** 0.5)
            if name not in ("q", "k"):
                self.parameter(f"{name}.bias", (b,), 0.2)

    def forward(self, p, x):
        def heads(t):
            return t.reshape(*t.shape[:2], 2, 4).transpose(1, 2)

        x = p["embed"][x] + p["position"]
        n = F.layer_norm(x, (8,), p["ln1.weight"], p["ln1.bias"], NORM_EPSILON)
        q, k, v = n @ p["q.weight"], n @ p["k.weight"], n @ p["v.weight"] + p["v.bias"]
        s = torch.softmax(heads(q) @ heads(k).transpose(2, 3) * 0.5, dim=-1)
        o = (s @ heads(v)).transpose(1, 2).reshape(x.shape)
        x = x + o @ p["out.weight"] + p["out.bias"]
        n = F.layer_norm(x, (8,), p["ln2.weight"], p["ln2.bias"], NORM_EPSILON)
        x = x + F.gelu(n @ p["up.weight"] + p["up.bias"]) @ p["down.weight"] + p["down.bias"]
        return x.mean(1) @ p["head.weight"] + p["head.bias"]


class Recurrent(Model):
    """Five steps of four features; the scores come from the last state of each direction."""

    x_shape, classes, hidden, gates, directions = (5, 4), 3, 5, (), 1

    def declare(self):
        n, h, d = len(self.gates), self.hidden, self.directions
        self.parameter("w", (d, n * h, 4), 0.6)
        self.parameter("r", (d, n * h, h), 0.6)
        self.parameter("b", (d, 2 * n * h), 0.3)
        self.parameter("h0", (d, 1, h), 0.5)
        self.parameter("fc.weight", (self.classes, d * h))
        self.parameter("fc.bias", (self.classes,), 0.2)

    def torch_weights(self, p):
        """ONNX's gates in PyTorch's order, one tensor for each direction and kind."""
        def reordered(t):
            parts = t.split(self.hidden)
            return torch.cat([parts[i] for i in self.gates])

        for d in range(self.directions):
            bias_w, bias_r = p["b"][d].chunk(2)
            yield from map(reordered, (p["w"][d], p["r"][d], bias_w, bias_r))

    def initial_state(self, p, name, x):
        return p[name].expand(-1, x.shape[0], -1).contiguous()

    def scores(self, p, last):
        return F.linear(last.transpose(0, 1).flatten(1), p["fc.weight"], p["fc.bias"])


class Lstm(Recurrent):
    """Both directions; i, o, f, c in ONNX are i, f, c, o in PyTorch."""

    name, gates, directions = "lstm", (0, 2, 3, 1), 2
    constants = "   int64[1] one = {1}, int64[1] zero = {0}"
    body = """
   t = Transpose <perm = [1, 0, 2]> (x)
   s = Shape (x)
   n = Gather <axis = 0> (s, zero)
   d = Concat <axis = 0> (one, n, one)
   h = Expand (h0, d)
   c = Expand (c0, d)
   a, last, cells = LSTM <direction = "bidirectional", hidden_size = 5> (t, w, r, b, , h, c)
   l = Transpose <perm = [1, 0, 2]> (last)
   f = Flatten (l)
   y = Gemm <transB = 1> (f, "fc.weight", "fc.bias")
"""

    def declare(self):
        super().declare()
        self.parameter("c0", (2, 1, self.hidden), 0.5)

    def forward(self, p, x):
        start = self.initial_state(p, "h0", x), self.initial_state(p, "c0", x)
        _, last, _ = torch._VF.lstm(x.transpose(0, 1), start, list(self.torch_weights(p)), True, 1, 0.0, True, True, False)
        return self.scores(p, last)


class Gru(Recurrent):
    """z, r, h in ONNX are r, z, h in PyTorch, whose r multiplies the product with R."""

    name, gates = "gru", (1, 0, 2)
    constants = "   int64[1] one = {1}, int64[1] zero = {0}"
    body = """
   t = Transpose <perm = [1, 0, 2]> (x)
   s = Shape (x)
   n = Gather <axis = 0> (s, zero)
   d = Concat <axis = 0> (one, n, one)
   h = Expand (h0, d)
   a, last = GRU <hidden_size = 5, linear_before_reset = 1> (t, w, r, b, , h)
   l = Squeeze (last, zero)
   y = Gemm <transB = 1> (l, "fc.weight", "fc.bias")
"""

    def forward(self, p, x):
        _, last = torch._VF.gru(x.transpose(0, 1), self.initial_state(p, "h0", x), list(self.torch_weights(p)), True, 1,
                                0.0, True, False, False)
        return self.scores(p, last)


class Straight(torch.autograd.Function):
    """Quantised and back; the gradient passes where the value was in the range."""

    @staticmethod
    def forward(ctx, x, scale, zero, low, high):
        q = torch.round(x / scale) + zero
        ctx.save_for_backward((q >= low) & (q <= high))
        return (q.clamp(low, high) - zero) * scale

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.saved_tensors[0], None, None, None, None


class Quantized(Model):
    """Weights by row and as a whole, activations around a zero point and from 0 on; some of all are out of range."""

    name, x_shape, classes = "quantized", (6,), 4
    x_scale, a_scale, w2_scale, row_scale = 31 / 4096, 19 / 4096, 11 / 4096, [(13 + i) / 4096 for i in range(16)]  # exact
    constants = (f"   float x_scale = {{{x_scale}}}, uint8 x_zero = {{128}}, float a_scale = {{{a_scale}}},\n"
                 f"   float w2_scale = {{{w2_scale}}}, float[16] w1_scale = {{{', '.join(map(str, row_scale))}}},\n"
                 f'   int8[16] w1_zero = {{{", ".join("0" * 16)}}}, int8 w2_zero = {{0}}')
    body = """
   xq = QuantizeLinear (x, x_scale, x_zero)
   xd = DequantizeLinear (xq, x_scale, x_zero)
   w1q = QuantizeLinear <axis = 0> ("fc1.weight", w1_scale, w1_zero)
   w1d = DequantizeLinear <axis = 0> (w1q, w1_scale, w1_zero)
   a = Gemm <transB = 1> (xd, w1d, "fc1.bias")
   b = Relu (a)
   bq = QuantizeLinear (b, a_scale)
   bd = DequantizeLinear (bq, a_scale)
   w2q = QuantizeLinear ("fc2.weight", w2_scale, w2_zero)
   w2d = DequantizeLinear (w2q, w2_scale, w2_zero)
   y = Gemm <transB = 1> (bd, w2d, "fc2.bias")
"""

    def declare(self):
        for i, (a, b) in enumerate([(6, 16), (16, 4)], 1):
            self.parameter(f"fc{i}.weight", (b, a))
            self.parameter(f"fc{i}.bias", (b,), 0.2)

    def forward(self, p, x):
        rows = torch.tensor([[s] for s in self.row_scale], dtype=x.dtype)
        x = Straight.apply(x, self.x_scale, 128, 0, 255)
        a = F.relu(F.linear(x, Straight.apply(p["fc1.weight"], rows, 0, -128, 127), p["fc1.bias"]))
        a = Straight.apply(a, self.a_scale, 0, 0, 255)
        return F.linear(a, Straight.apply(p["fc2.weight"], self.w2_scale, 0, -128, 127), p["fc2.bias"])


class AdamW1:
    """AdamW with the decay after the update, as ONNX Runtime defines adam_mode 1."""

    def __init__(self, parameters, lr):
        self.parameters, self.lr, self.step_count = parameters, lr, 0
        self.moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    @torch.no_grad()
    def step(self):
        self.step_count += 1
        c1, c2 = 1 - BETA1**self.step_count, 1 - BETA2**self.step_count
        for p, (m, v) in zip(self.parameters, self.moments):
            m.mul_(BETA1).add_(p.grad, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(p.grad, p.grad, value=1 - BETA2)
            p.sub_(self.lr * c2**0.5 / c1 * m / (v.sqrt() + EPSILON))
            p.sub_(self.lr * DECAY * p)


def make_optimizer(kind, parameters):
    lr = f32(LEARNING_RATES[kind])
    if kind == "sgd":
        return torch.optim.SGD(parameters, lr=lr)
    if kind == "momentum":
        return torch.optim.SGD(parameters, lr=lr, momentum=MOMENTUM, nesterov=True, weight_decay=DECAY)
    if kind == "adamw0":
        return torch.optim.AdamW(parameters, lr=lr, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY)
    return AdamW1(parameters, lr)


def train(model, kind, dtype, order):
    """Losses and final parameters in f64; `order` permutes the rows of every batch."""
    p = {n: torch.tensor(v, dtype=dtype, requires_grad=n in model.trained) for n, v in model.initial.items()}
    optimizer = make_optimizer(kind, [p[n] for n in model.trained])
    losses = []
    for step in range(STEPS):
        x, labels = (torch.tensor(a[order]) for a in model.inputs(step))
        scores = model.forward(p, x.to(dtype) if x.is_floating_point() else x)
        loss = F.cross_entropy(scores, labels)
        for n in model.trained:
            p[n].grad = None
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses), {n: v.detach().double().numpy() for n, v in p.items()}


def record(model, kind, out):
    rows = np.arange(model.rows)
    losses, parameters = train(model, kind, torch.float64, rows)
    loss_errors = np.zeros(STEPS)
    errors = dict.fromkeys(parameters, 0.0)
    for i in range(RUNS_F32):
        order = rows if i == 0 else np.argsort(hashed(100 + i, model.rows))
        losses_f32, parameters_f32 = train(model, kind, torch.float32, order)
        loss_errors = np.maximum(loss_errors, np.abs(losses_f32 - losses) / np.abs(losses))
        for n, v in parameters.items():
            errors[n] = max(errors[n], np.linalg.norm(parameters_f32[n] - v) / np.linalg.norm(v))

    def words(values):
        return " ".join(f"{v:.17g}" for v in np.ravel(values))

    print(kind, "loss", " ".join(f"{e:.3g}" for e in loss_errors), words(losses), file=out)
    for n, v in parameters.items():
        print(kind, n, f"{errors[n]:.3g}", words(v), file=out)
    print(f"{model.name} {kind}: loss {losses[0]:.4f} .. {losses[-1]:.4f}, f32 errors of losses up to "
          f"{loss_errors.max():.1e}, of parameters {min(errors.values()):.1e} .. {max(errors.values()):.1e}")


def main():
    torch.set_num_threads(1)
    for model in (Mlp(), LeNet(), ResNet(), Transformer(), Lstm(), Gru(), Quantized()):
        text = model.text()
        onnx.checker.check_model(onnx.parser.parse_model(text), full_check=True)
        (DATA / f"{model.name}.onnxtxt").write_text(text)
        with open(DATA / f"{model.name}.txt", "w") as out:
            print("batch", model.rows, file=out)
            print("classes", model.classes, file=out)
            print("words", model.x_below, file=out)
            for kind in LEARNING_RATES:
                record(model, kind, out)


if __name__ == "__main__":
    main()
