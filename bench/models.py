# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmark: what each is trained on, and some of them as ONNX text.

    python3 bench/models.py mlp > mlp.onnxtxt

The others are exported by PyTorch from modules.py, which has all of them as PyTorch modules. Initial weights are drawn
(RandomNormal), Kaiming-scaled; the benchmark compares time and memory, not values.
"""

import math
import sys
from typing import NamedTuple


class Problem(NamedTuple):
    """What a model is trained on, and for how many steps a process does so."""

    rows: int  # of a batch
    row: list  # shape of a row of the input
    classes: int
    steps: int  # that are timed
    warm_up: int  # steps before them
    labels: tuple = ()  # shape of a row of the labels
    class_axis: int = 1  # of the scores
    vocabulary: int = 0  # the input has tokens below it; 0: the input has floats


PROBLEMS = {
    "mlp": Problem(64, [784], 10, 200, 20),
    "lenet": Problem(64, [1, 28, 28], 10, 200, 20),
    "resnet18": Problem(8, [3, 224, 224], 1000, 6, 1),
    "mobilenetv2": Problem(8, [3, 160, 160], 1000, 8, 1),
    "encoder": Problem(8, [128], 16, 8, 1, vocabulary=4096),
    "gpt": Problem(8, [128], 4096, 8, 1, labels=(128,), class_axis=-1, vocabulary=4096),
    "lstm": Problem(16, [64], 256, 20, 2, labels=(64,), class_axis=-1, vocabulary=256),
    "unet": Problem(2, [3, 128, 128], 4, 8, 1, labels=(128, 128)),
    "bert": Problem(4, [128], 30522, 4, 1, labels=(128,), class_axis=-1, vocabulary=30522),
    "resnet50": Problem(8, [3, 224, 224], 1000, 4, 1),
}
TEXTS = ["mlp", "lenet", "resnet18"]  # written here
NEWER = "-newer"  # behind the name of an exported model: by PyTorch's newer exporter, else by the classic one


def pictures(rows, size):
    return Problem(rows, [3, size, size], 100, 6, 1)


def language(rows=8, tokens=128, vocabulary=2000):
    return Problem(rows, [tokens], vocabulary, 6, 1, labels=(tokens,), class_axis=-1, vocabulary=vocabulary)


# Of transformers.
LANGUAGE = ["albert", "deberta", "electra", "gemma2", "gpt2", "gptneox", "llama", "modernbert", "phi", "qwen3"]
# Of torchvision, of transformers, and recurrent ones: `--models wider`, by the exporter that they are used with.
WIDER = {
    "densenet121": pictures(4, 128),
    "efficientnet_b0": pictures(8, 160),
    "efficientnet_v2_s": pictures(4, 160),
    "convnext_tiny": pictures(2, 160),
    "googlenet": pictures(4, 160),
    "maxvit_t": pictures(1, 224),
    "mnasnet1_0": pictures(8, 160),
    "mobilenet_v3_large": pictures(8, 160),
    "regnet_y_400mf": pictures(8, 160),
    "resnext50_32x4d": pictures(4, 128),
    "shufflenet_v2_x1_0": pictures(8, 160),
    "squeezenet1_1": pictures(8, 160),
    "swin_t": pictures(2, 224),
    "vgg11_bn": pictures(1, 224),
    "vit_b_16": pictures(2, 224),
    "wide_resnet50_2": pictures(2, 160),
    **{name: language() for name in LANGUAGE},
    "gru": language(16, 64),
    "rnn": language(16, 64),
    "bilstm": language(16, 64),
    "lstmcell": language(16, 64),
    "tcn": language(16, 512, 64),
}
ALL = {**PROBLEMS, **WIDER}
WIDER_NAMES = [name + NEWER if name in LANGUAGE else name for name in WIDER]
NAMES = [*PROBLEMS, *(name + NEWER for name in PROBLEMS if name not in TEXTS)]


def base(name):
    """The name without the exporter."""
    return name[:-len(NEWER)] if name.endswith(NEWER) else name


def problem(name):
    return ALL[base(name)]


class Text:
    """Writes a graph node by node."""

    def __init__(self, name):
        self.lines, self.count, self.name = [], 0, name

    def value(self, text):
        self.count += 1
        self.lines.append(f"  v{self.count} = {text}")
        return f"v{self.count}"

    def weight(self, shape, fan_in):
        scale = math.sqrt(2.0 / fan_in)
        return self.value(f"RandomNormal <shape = {shape}, scale = {scale:.6f}> ()")

    def filled(self, n, number):
        return self.value(f"RandomNormal <shape = [{n}], mean = {number:.1f}, scale = 0.000001> ()")

    def linear(self, x, n_in, n_out):
        w, b = self.weight([n_out, n_in], n_in), self.filled(n_out, 0)
        return self.value(f"Gemm <transB = 1> ({x}, {w}, {b})")

    def conv(self, x, n_in, n_out, kernel, stride=1, pad=0, bias=False):
        w = self.weight([n_out, n_in, kernel, kernel], n_in * kernel * kernel)
        inputs = [x, w] + ([self.filled(n_out, 0)] if bias else [])
        return self.value(
            f"Conv <kernel_shape = [{kernel}, {kernel}], strides = [{stride}, {stride}],"
            f" pads = [{pad}, {pad}, {pad}, {pad}]> ({', '.join(inputs)})")

    def batch_norm(self, x, n):
        names = [self.filled(n, v) for v in (1, 0)]
        mean, var = (self.constant(n, v) for v in (0, 1))
        return self.value(f"BatchNormalization ({x}, {', '.join(names)}, {mean}, {var})")

    def constant(self, n, number):
        self.count += 1
        name = f"s{self.count}"
        self.initializers.append(f"float[{n}] {name} = {{{', '.join([str(number)] * n)}}}")
        return name

    initializers: list


def mlp(t):
    h = t.value(f"Relu ({t.linear('x', 784, 512)})")
    h = t.value(f"Relu ({t.linear(h, 512, 512)})")
    return t.linear(h, 512, 10)


def lenet(t):
    h = t.value(f"Relu ({t.conv('x', 1, 6, 5, pad=2, bias=True)})")
    h = t.value(f"MaxPool <kernel_shape = [2, 2], strides = [2, 2]> ({h})")
    h = t.value(f"Relu ({t.conv(h, 6, 16, 5, bias=True)})")
    h = t.value(f"MaxPool <kernel_shape = [2, 2], strides = [2, 2]> ({h})")
    h = t.value(f"Flatten ({h})")
    h = t.value(f"Relu ({t.linear(h, 400, 120)})")
    h = t.value(f"Relu ({t.linear(h, 120, 84)})")
    return t.linear(h, 84, 10)


def resnet18(t):
    h = t.value(f"Relu ({t.batch_norm(t.conv('x', 3, 64, 7, 2, 3), 64)})")
    h = t.value(f"MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> ({h})")
    n_in = 64
    for n_out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = t.value(f"Relu ({t.batch_norm(t.conv(h, n_in, n_out, 3, stride, 1), n_out)})")
        y = t.batch_norm(t.conv(y, n_out, n_out, 3, 1, 1), n_out)
        if stride != 1 or n_in != n_out:
            h = t.batch_norm(t.conv(h, n_in, n_out, 1, stride), n_out)
        h = t.value(f"Relu ({t.value(f'Add ({y}, {h})')})")
        n_in = n_out
    h = t.value(f"Flatten ({t.value(f'GlobalAveragePool ({h})')})")
    return t.linear(h, 512, 1000)


def onnx_text(name):
    t = Text(name)
    t.initializers = []
    scores = globals()[name](t)
    row = ", ".join(str(n) for n in problem(name).row)
    initializers = f"\n<{', '.join(t.initializers)}>" if t.initializers else ""
    body = "\n".join(t.lines)
    return (f'<ir_version: 8, opset_import: ["" : 17]>\n'
            f"{name} (float[batch, {row}] x) => (float[batch, {problem(name).classes}] scores){initializers} {{\n{body}\n"
            f"  scores = Identity ({scores})\n}}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TEXTS:
        sys.exit(f"usage: models.py {'|'.join(TEXTS)}")
    sys.stdout.write(onnx_text(sys.argv[1]))
