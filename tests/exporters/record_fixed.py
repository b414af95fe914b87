#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models as PyTorch's exporters write them when they are told nothing of a batch that may vary.

    record_fixed.py [FOLDER]

Needs torch, onnx, onnxscript and numpy (recorded with torch 2.11.0, onnx 1.23.2, onnxscript 0.7.2). Writes into FOLDER,
else tests/exporters/fixed, a file per model, exporter and batch size of the example (1 and 2), and per model, computed by
PyTorch in f64: <model>_x.npy (5 rows), <model>_y.npy (their outputs), <model>_losses.npy (three steps of plain SGD on the
mean of the squares of the outputs). Stack traces are left out of the files.
"""
import logging
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn

ROWS, STEPS, RATE, WORDS, WIDTH = 5, 3, 0.05, 4, 8


class Perceptron(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


class Images(nn.Module):
    """view(b, -1)"""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(16, 3)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.head(x.view(x.shape[0], -1))


class Attention(nn.Module):
    """view(b, t, h, d)"""

    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        b, t, d = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(b, t, self.heads, d // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        hidden = ~torch.tril(torch.ones(t, t)).bool()
        scores = (q @ k.transpose(-1, -2)).masked_fill(hidden, float("-inf")).softmax(-1)
        return x + self.out((scores @ v).transpose(1, 2).contiguous().view(b, t, d))


class Token(nn.Module):
    """A class token, zero as initialised, for every image."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 2, 2)
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(0.1 * torch.randn(1, 5, WIDTH))
        self.attention, self.head = Attention(), nn.Linear(WIDTH, 3)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.attention(x)[:, -1])


class Encoder(nn.Module):
    """nn.MultiheadAttention works with the words first."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, WIDTH)
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, 0.0, batch_first=True)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.layer(self.words(x)).mean(1))


class Writer(nn.Module):
    """Positions for every row; scores of all words of all rows in one axis."""

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(11, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.attention, self.head = Attention(), nn.Linear(WIDTH, 11)

    def forward(self, x):
        b, t = x.shape
        y = self.words(x) + self.positions(torch.arange(t).unsqueeze(0).expand(b, t))
        return self.head(self.attention(y)).view(b * t, -1)


class Steps(nn.Module):
    """A recurrent layer from the states that it has when it is given none."""

    def __init__(self, kind, **options):
        super().__init__()
        self.layer = getattr(nn, kind)(3, 4, batch_first=True, **options)
        self.head = nn.Linear(8 if "bidirectional" in options else 4, 3)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


class Windows(nn.Module):
    """Windows of images in the axis of the batch, and a mask for each window."""

    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.patches, self.qkv = nn.Conv2d(1, WIDTH, 2, 2), nn.Linear(WIDTH, 3 * WIDTH)
        self.out, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        mask = torch.zeros(4, 4, 4)
        mask[1, 0] = mask[3, :, 2] = -100.0
        self.register_buffer("mask", mask)

    def forward(self, x):
        x = self.patches(x).permute(0, 2, 3, 1)
        b, h, w, c = x.shape
        y = x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 4, c)
        n, t, _ = y.shape
        q, k, v = self.qkv(y).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)).view(n // 4, 4, self.heads, t, t) + self.mask.unsqueeze(1).unsqueeze(0)
        y = self.out((scores.view(-1, self.heads, t, t).softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))
        y = y.view(b, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(b, h, w, c)
        return self.head((x + y).mean((1, 2)))


def images(side):
    return lambda rows: torch.randn(rows, 1, side, side)


def words(rows):
    return torch.randint(0, 11, (rows, WORDS))


def series(rows):
    return torch.randn(rows, WORDS, 3)


MODELS = {
    "perceptron": (Perceptron, lambda rows: torch.randn(rows, 6)),
    "images": (Images, images(4)),
    "token": (Token, images(4)),
    "encoder": (Encoder, words),
    "writer": (Writer, words),
    "lstm": (lambda: Steps("LSTM"), series),
    "gru": (lambda: Steps("GRU", num_layers=2, bidirectional=True), series),
    "windows": (Windows, images(8)),
}


def write(model, path):
    for thing in (*model.graph.node, *model.graph.value_info, *model.graph.initializer, model.graph):
        for entry in [entry for entry in thing.metadata_props if "stack_trace" in entry.key]:
            thing.metadata_props.remove(entry)
    onnx.save(model, path)


def export(module, example, folder, name):
    path = folder / f"{name}_classic_{len(example)}.onnx"
    torch.onnx.export(module, (example,), path, dynamo=False, input_names=["x"], output_names=["y"])
    write(onnx.load(path), path)
    program = torch.onnx.export(module, (example,), dynamo=True, verbose=False, input_names=["x"], output_names=["y"])
    write(program.model_proto, folder / f"{name}_newer_{len(example)}.onnx")


def record(module, x, folder, name):
    module = module.double()
    x = x.double() if x.is_floating_point() else x
    np.save(folder / f"{name}_x.npy", x.numpy().astype(np.float32) if x.is_floating_point() else x.numpy())
    np.save(folder / f"{name}_y.npy", module(x).detach().numpy())
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.save(folder / f"{name}_losses.npy", np.array(losses))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixed")
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.ERROR)
    for name, (make, draw) in MODELS.items():
        torch.manual_seed(1)
        module = make().eval()
        for rows in (1, 2):
            export(module, draw(rows), folder, name)
        record(module, draw(ROWS), folder, name)


main()
