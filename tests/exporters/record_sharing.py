#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models whose parameters PyTorch's exporters merge or untie, and what PyTorch loses when it trains them.

    record_sharing.py [FOLDER]

Needs torch, onnx, onnxscript and numpy (recorded with torch 2.11.0, onnx 1.23.2, onnxscript 0.7.2). Writes into FOLDER,
else tests/exporters/sharing: a file per model and export, of which those that come out the same are one; the arrays of
the data; and cases.txt, a line per case: file, inputs and labels, pattern of what is frozen, tensors and elements that
train, the losses of five steps of plain SGD in f64, and for each how far the same in f32 is away. Stack traces,
types of values and the like are left out of the files.
"""
import copy
import hashlib
import io
import logging
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn

ROWS, WIDTH, CLASSES, STEPS, RATE = 4, 8, 3, 5, 0.1
WORDS, POSITIONS = 20, 5
KEPT = ("name_scopes", "fx_node", "InputSpec.kind", "folded_from", "graph_signature")


class Norms(nn.Module):
    """Two normalisations: equal ones, equal zeros."""

    def __init__(self):
        super().__init__()
        self.a, self.n1 = nn.Linear(6, WIDTH), nn.LayerNorm(WIDTH)
        self.b, self.n2, self.c = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.c(self.n2(self.b(torch.tanh(self.n1(self.a(x))))))


class Twice(nn.Module):
    """A layer that is called twice, on three axes, where its weight is folded."""

    def __init__(self, bias):
        super().__init__()
        self.a, self.l, self.c = nn.Linear(6, WIDTH), nn.Linear(WIDTH, WIDTH, bias=bias), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.c(torch.tanh(self.l(torch.tanh(self.l(self.a(x)))))).mean(1)


class Ranks(nn.Module):
    """A layer that is called on two axes and on three: its weight as it is, and a transposed copy."""

    def __init__(self):
        super().__init__()
        self.a, self.l, self.c = nn.Linear(6, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = torch.tanh(self.l(self.a(x))).mean(1)
        return self.c(torch.tanh(self.l(x)))


class Clones(nn.Module):
    """An encoder whose second layer begins as a copy of the first."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.0, batch_first=True)
        for bias in (layer.self_attn.in_proj_bias, layer.self_attn.out_proj.bias):
            nn.init.normal_(bias, std=0.1)  # of zeros, the newer exporter drops some
        self.a, self.encoder = nn.Linear(6, WIDTH), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.c = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.c(self.encoder(self.a(x)).mean(1))


class Momentum(nn.Module):
    """An encoder and a copy of it, which trains apart or not at all."""

    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(6, WIDTH), nn.LayerNorm(WIDTH), nn.Tanh(), nn.Linear(WIDTH, CLASSES))
        self.mom = copy.deepcopy(self.enc)

    def forward(self, x):
        return self.enc(x) + 0.5 * self.mom(x * 0.9)


class BatchNorms(nn.Module):
    """Fresh ones and zeros that are scales, biases and running statistics."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1, self.c2, self.b2 = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.f = nn.Linear(4, CLASSES)

    def forward(self, x):
        return self.f(torch.relu(self.b2(self.c2(torch.relu(self.b1(self.c1(x)))))).mean((2, 3)))


class Tied(nn.Module):
    """An embedding whose table is the weight of the output too."""

    def __init__(self, words):
        super().__init__()
        self.e, self.p = nn.Embedding(words, WIDTH), nn.Parameter(torch.zeros(1, POSITIONS, WIDTH))
        self.n1, self.l, self.n2 = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.h = nn.Linear(WIDTH, words, bias=False)
        self.h.weight = self.e.weight

    def forward(self, x):
        x = self.e(x) + self.p
        return self.h(self.n2(x + torch.tanh(self.l(self.n1(x))))).transpose(1, 2)


class Buffer(nn.Module):
    """A buffer of ones beside a scale of ones."""

    def __init__(self):
        super().__init__()
        self.a, self.n1, self.c = nn.Linear(6, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)
        self.register_buffer("ones", torch.ones(WIDTH))

    def forward(self, x):
        return self.c(self.n1(self.a(x) * self.ones))


# name: (module, inputs, labels)
MODELS = {
    "norms": (Norms, "rows", "labels"),
    "twice": (lambda: Twice(True), "sequences", "labels"),
    "twice_without_bias": (lambda: Twice(False), "sequences", "labels"),
    "ranks": (Ranks, "sequences", "labels"),
    "clones": (Clones, "sequences", "labels"),
    "momentum": (Momentum, "rows", "labels"),
    "batch_norms": (BatchNorms, "images", "labels"),
    "tied": (lambda: Tied(WORDS), "words", "next_words"),
    "tied_large": (lambda: Tied(200), "words", "next_words"),  # above what the newer exporter folds and merges
    "buffer": (Buffer, "rows", "labels"),
}
EXPORTS = {f"{exporter}_{mode}_{how}": (exporter == "newer", mode == "training", how in ("folded", "optimized"))
           for exporter, hows in (("classic", ("folded", "unfolded")), ("newer", ("optimized", "plain")))
           for mode in ("eval", "training") for how in hows}  # fmt: skip
# Where the exporter computes BatchNormalization into Conv, parameters are gone.
WITHOUT_ALL = {"batch_norms": ("classic_eval_folded", "newer_eval_optimized", "newer_training_optimized")}
FROZEN = {"momentum": "mom.*"}  # a second case
BUFFERS = {"buffer": "ones"}  # the classic exporter does not say what they are


def export(module, x, is_newer, is_training, is_whole):
    """The model as bytes."""
    module = copy.deepcopy(module).train(is_training)
    names = {"input_names": ["x"], "output_names": ["scores"]}
    if is_newer:
        program = torch.onnx.export(module, (x,), dynamo=True, optimize=is_whole, verbose=False,
                                    dynamic_shapes=({0: torch.export.Dim("rows")},), **names)
        model = program.model_proto
    else:
        file = io.BytesIO()
        mode = torch.onnx.TrainingMode.TRAINING if is_training else torch.onnx.TrainingMode.EVAL
        torch.onnx.export(module, (x,), file, dynamo=False, training=mode, do_constant_folding=is_whole,
                          dynamic_axes={"x": {0: "rows"}}, **names)
        model = onnx.load_from_string(file.getvalue())
    # What nothing here reads: most of the file.
    for thing in (*model.graph.node, *model.graph.value_info, *model.graph.initializer, model.graph):
        for entry in [entry for entry in thing.metadata_props if not any(key in entry.key for key in KEPT)]:
            thing.metadata_props.remove(entry)
    initializers = {tensor.name for tensor in model.graph.initializer}
    for value in [value for value in model.graph.value_info if value.name not in initializers]:
        model.graph.value_info.remove(value)
    return model.SerializeToString(deterministic=True)


def train(module, x, labels, dtype, frozen):
    """The losses of the steps, and the parameters that train."""
    module = copy.deepcopy(module).train().to(dtype)
    parameters = [p for name, p in module.named_parameters() if not (frozen and name.startswith(frozen))]
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    x = x.to(dtype) if x.is_floating_point() else x
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, parameters


def case(file, inputs, labels, pattern, module, data, frozen):
    exact, parameters = train(module, data[inputs], data[labels], torch.float64, frozen)
    single, _ = train(module, data[inputs], data[labels], torch.float32, frozen)
    distances = [abs(s - e) for s, e in zip(single, exact)]
    numbers = [len(parameters), sum(p.numel() for p in parameters)]
    return " ".join([file, inputs, labels, pattern or "-", *map(str, numbers), *(f"{v:.17g}" for v in exact),
                     *(f"{v:.3g}" for v in distances)])


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "sharing")
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(3)
    torch.set_num_threads(1)
    data = {
        "rows": torch.randn(ROWS, 6), "sequences": torch.randn(ROWS, 2, 6), "images": torch.randn(ROWS, 1, 8, 8),
        "words": torch.randint(0, WORDS, (ROWS, POSITIONS)), "labels": torch.tensor([0, 2, 1, 2]),
        "next_words": torch.randint(0, WORDS, (ROWS, POSITIONS)),
    }  # fmt: skip
    for name, array in data.items():
        np.save(folder / f"{name}.npy", array.numpy())
    lines, files = [], {}
    for name, (make, inputs, labels) in MODELS.items():
        module = make()
        for kind, how in EXPORTS.items():
            if kind in WITHOUT_ALL.get(name, ()):
                continue
            model = export(module, data[inputs], *how)
            key = hashlib.sha256(model).hexdigest()
            if key in files:
                print(f"{name}_{kind} is {files[key]}")
                continue
            files[key] = file = f"{name}_{kind}.onnx"
            (folder / file).write_bytes(model)
            pattern = BUFFERS.get(name) if "classic" in kind else None
            lines.append(case(file, inputs, labels, pattern, module, data, None))
            if name in FROZEN:
                lines.append(case(file, inputs, labels, FROZEN[name], module, data, FROZEN[name].rstrip("*")))
    (folder / "cases.txt").write_text("\n".join(lines) + "\n")


main()
