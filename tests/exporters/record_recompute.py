#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small transformers with dropout, as PyTorch's exporters write them for training.

    record_recompute.py [FOLDER]

Needs torch, onnx and onnxscript (recorded with torch 2.11.0, onnx 1.23.2, onnxscript 0.7.2). Writes into FOLDER, else
tests/exporters/recompute: `post` normalises behind its sums, as BERT does, `pre` before them, as GPT does; `erf` and `tanh`
are the forms of Gelu; `classic` is the exporter by tracing at opset 15, `newer` the one by torch.export at opset 20. Their
input is x: rows of 8 tokens of 16 floats; their output scores of 3 classes.
"""
import logging
import pathlib
import sys
import warnings

import onnx
import torch
from torch import nn

TOKENS, WIDTH, HEADS, LAYERS, CLASSES, DROPPED = 8, 16, 2, 3, 3, 0.25


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.drop = nn.Dropout(DROPPED)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, HEADS, d // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = self.drop((q @ k.transpose(2, 3) / (d // HEADS) ** 0.5).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, is_post, approximate):
        super().__init__()
        self.is_post = is_post
        self.norm1, self.norm2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu, self.drop1, self.drop2 = nn.GELU(approximate), nn.Dropout(DROPPED), nn.Dropout(DROPPED)

    def forward(self, x):
        if self.is_post:
            x = self.norm1(x + self.drop1(self.attention(x)))
            return self.norm2(x + self.drop2(self.down(self.gelu(self.up(x)))))
        x = x + self.drop1(self.attention(self.norm1(x)))
        return x + self.drop2(self.down(self.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, is_post, approximate):
        super().__init__()
        self.norm, self.drop, self.head = nn.LayerNorm(WIDTH), nn.Dropout(DROPPED), nn.Linear(WIDTH, CLASSES)
        self.layers = nn.Sequential(*(Layer(is_post, approximate) for _ in range(LAYERS)))

    def forward(self, x):
        return self.head(self.layers(self.drop(self.norm(x))).mean(1))


def export(module, path, is_newer):
    x = torch.randn(2, TOKENS, WIDTH)
    names = {"input_names": ["x"], "output_names": ["scores"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_newer:
            torch.onnx.export(module, (x,), path, dynamo=True, opset_version=20, optimize=False, external_data=False,
                              verbose=False, dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, **names)
        else:
            torch.onnx.export(module, (x,), path, dynamo=False, training=torch.onnx.TrainingMode.TRAINING,
                              do_constant_folding=False, opset_version=15, dynamic_axes={"x": {0: "batch"}}, **names)
    model = onnx.load(path)
    for node in model.graph.node:  # stack traces
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output):
        del value.metadata_props[:]
    onnx.save(model, path)


def main(folder):
    folder.mkdir(exist_ok=True)
    logging.disable(logging.WARNING)
    for is_post, is_newer, form in ((True, False, "erf"), (True, True, "erf"), (True, False, "tanh"),
                                    (False, False, "tanh"), (False, True, "tanh")):
        torch.manual_seed(0)
        module = Transformer(is_post, "tanh" if form == "tanh" else "none").train()
        name = f"{'post' if is_post else 'pre'}_{form}_{'newer' if is_newer else 'classic'}.onnx"
        export(module, str(folder / name), is_newer)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "recompute")
