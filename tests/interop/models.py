# SPDX-License-Identifier: Apache-2.0
"""Export the models that run.sh compares: models.py FOLDER writes NAME.onnx and `list`.

`list` has a line per model: name, loss, batch size, number of classes.
"""
import sys

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False),
                                  nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1, bias=False),
                                  nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Block(nn.Module):
    """A transformer block over token ids, with layers that exporters write in full."""

    def __init__(self, vocabulary=50, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(16, width) * 0.1)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.embed(ids) + self.position
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5, dim=-1)
        x = x + self.out((weights @ v).permute(0, 2, 1, 3).reshape(n, t, c))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x).mean(dim=1)


def models():
    mlp = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 5))
    cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                        Residual(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    plain = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1),
                          nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128, 16), nn.Sigmoid(), nn.Linear(16, 5))
    yield "mlp", mlp, torch.randn(4, 12), "cross-entropy", 5
    yield "mse", mlp, torch.randn(4, 12), "mse", 5
    yield "bce", mlp, torch.randn(4, 12), "bce", 5
    yield "cnn", cnn, torch.randn(4, 3, 8, 8), "cross-entropy", 5
    yield "plain", plain, torch.randn(4, 3, 8, 8), "cross-entropy", 5
    yield "block", Block(), torch.randint(50, (4, 16)), "cross-entropy", 50


def main():
    folder = sys.argv[1]
    torch.manual_seed(0)
    with open(f"{folder}/list", "w") as lines:
        for name, module, example, loss, classes in models():
            module.train()
            torch.onnx.export(module, (example,), f"{folder}/{name}.onnx", dynamo=False, opset_version=17,
                              input_names=["x"], output_names=["y"],
                              dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
                              do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)
            print(name, loss, 4, classes, file=lines)
            if name == "block":  # layer normalisation in parts, which ONNX Runtime's own artifacts need
                module.eval()
                torch.onnx.export(module, (example,), f"{folder}/{name}-14.onnx", dynamo=False, opset_version=14,
                                  input_names=["x"], output_names=["y"],
                                  dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}}, do_constant_folding=False)
                print(f"{name}-14", loss, 4, classes, file=lines)
                module.train()
            try:
                import onnxscript  # noqa: F401
            except ImportError:
                continue
            torch.onnx.export(module, (example,), f"{folder}/{name}-dynamo.onnx", dynamo=True,
                              optimize=False, input_names=["x"], output_names=["y"],
                              dynamic_shapes=({0: torch.export.Dim("batch")},))
            print(f"{name}-dynamo", loss, 4, classes, file=lines)


if __name__ == "__main__":
    main()
