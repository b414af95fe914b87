#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models with masks, buffers and parameters that look like them, as PyTorch's exporters write them.

    record_buffers.py [FOLDER]

Needs torch, onnx, onnxscript and numpy (recorded with torch 2.11.0, onnx 1.23.2, onnxscript 0.7.2). Writes into FOLDER,
else tests/exporters/buffers, a file per model and exporter, x.npy and labels.npy, and the losses of five steps of plain
SGD in f64 by PyTorch. Stack traces are left out of the files.
"""
import logging
import math
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from torch import nn

ROWS, WORDS, WIDTH, CLASSES, STEPS, RATE = 4, 6, 8, 3, 5, 0.1
MASKS = {"infinite": -math.inf, "huge": -1e9, "hundred": -100.0}


class Attention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.triu(torch.full((WORDS, WORDS), hidden), 1))
        self.register_buffer("gain", torch.ones(WIDTH))

    def forward(self, x):
        rows, words, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(rows, words, 3, 2, width // 2).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // 2) + self.mask[:words, :words]
        return x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, words, width)) * self.gain


class Words(nn.Module):
    """Positions that are a buffer, a mask, a factor that is a buffer of ones; a token that trains."""

    def __init__(self, hidden):
        super().__init__()
        self.register_buffer("positions", torch.randn(1, WORDS, WIDTH))
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.attention, self.head = Attention(hidden), nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.head(self.attention(x + self.positions[:, : x.shape[1]]).mean(1) + self.token[:, 0])


class Windows(nn.Module):
    """Attention in shifted windows: a table of relative positions that trains, and a mask."""

    def __init__(self, side=2, windows=2, heads=2):
        super().__init__()
        self.heads, self.windows = heads, windows
        self.qkv, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, CLASSES)
        self.table = nn.Parameter(0.02 * torch.randn((2 * side - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")).flatten(1)
        offset = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + side - 1
        self.register_buffer("relative", offset[..., 0] * (2 * side - 1) + offset[..., 1])
        mask = torch.zeros(windows, side * side, side * side)
        mask[1, : side, side:] = mask[1, side:, : side] = -100.0
        self.register_buffer("mask", mask)

    def forward(self, x):
        rows, cells, width = x.shape
        q, k, v = self.qkv(x).reshape(rows, cells, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table[self.relative.view(-1)].view(cells, cells, -1).permute(2, 0, 1).contiguous()
        scores = (q @ k.transpose(-2, -1) + bias.unsqueeze(0)).view(-1, self.windows, self.heads, cells, cells)
        scores = (scores + self.mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, cells, cells)
        return self.head((scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, cells, width)).mean(1)


def write(model, folder, name):
    for thing in (*model.graph.node, *model.graph.value_info, *model.graph.initializer, model.graph):
        for entry in [entry for entry in thing.metadata_props if "stack_trace" in entry.key]:
            thing.metadata_props.remove(entry)
    onnx.save(model, folder / f"{name}.onnx")


def export(module, x, folder, name, with_newer=True):
    module.eval()
    names = {"input_names": ["x"], "output_names": ["scores"]}
    for kind, options in (
        ("classic", {}),
        ("training", {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}),
    ):
        path = folder / f"{name}_{kind}.onnx"
        torch.onnx.export(module, (x,), path, dynamo=False, opset_version=17, **names,
                          dynamic_axes={"x": {0: "rows"}}, **options)
        write(onnx.load(path), folder, f"{name}_{kind}")
    module.eval()
    for kind, optimize in (("newer", True), ("plain", False)) if with_newer else ():
        shapes = None if isinstance(module, Windows) else ({0: torch.export.Dim("rows", min=1)},)
        program = torch.onnx.export(module, (x,), dynamo=True, optimize=optimize, verbose=False, dynamic_shapes=shapes,
                                    **names)
        write(program.model_proto, folder, f"{name}_{kind}")


def losses(module, x, labels):
    module = module.double()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    values = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(x.double()), labels)
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return np.array(values)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "buffers")
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(1)
    x, labels = torch.randn(ROWS, WORDS, WIDTH), torch.tensor([0, 2, 1, 2])
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "labels.npy", labels.numpy())
    for name, hidden in MASKS.items():
        module = Words(hidden)
        export(module, x, folder, f"words_{name}", hidden == -math.inf)
        np.save(folder / f"words_{name}_losses.npy", losses(module, x, labels))
    module = Windows()
    cells = x[:, :4]
    export(module, cells, folder, "windows")
    np.save(folder / "windows_losses.npy", losses(module, cells, labels))


main()
