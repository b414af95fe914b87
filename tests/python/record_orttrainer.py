# SPDX-License-Identifier: Apache-2.0
"""Writes a small encoder as PyTorch exports it, with its loss inside, and the losses of PyTorch's own training.

    python3 tests/python/record_orttrainer.py

Needs torch. test_orttrainer_encoder.py trains the model with ORTTrainer and compares. Clipping is done by hand, since
PyTorch's own divides by another number.
"""

import math
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

FOLDER = Path(__file__).resolve().parent / "orttrainer"
VOCABULARY, WIDTH, HEADS, CLASSES, LENGTH, ROWS, STEPS = 24, 16, 2, 3, 8, 8, 24
LR, DECAY, CLIP = 0.01, 0.05, 1.0


class Layer(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.Dropout(dropout)

    def heads(self, x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = (self.heads(one(x)) for one in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + (1 - mask[:, None, None, :]) * -10000.0
        mixed = (self.dropout(scores.softmax(-1)) @ v).permute(0, 2, 1, 3).reshape(x.shape)
        x = self.norm1(x + self.dropout(self.output(mixed)))
        return self.norm2(x + self.dropout(self.narrow(nn.functional.gelu(self.wide(x)))))


class Encoder(nn.Module):
    """Tokens and a mask to the scores of a classification, and its loss."""

    def __init__(self, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.norm, self.layers = nn.LayerNorm(WIDTH), nn.ModuleList(Layer(dropout) for _ in range(2))
        self.classifier, self.temperature = nn.Linear(WIDTH, CLASSES), nn.Parameter(torch.tensor(1.0))
        self.register_buffer("numbers", torch.arange(LENGTH))

    def forward(self, ids, mask, label):
        x = self.norm(self.words(ids) + self.places(self.numbers[: ids.shape[1]]))
        for layer in self.layers:
            x = layer(x, mask)
        scores = self.classifier(x[:, 0]) * self.temperature
        return nn.functional.cross_entropy(scores, label), scores


def batches():
    """The class is what the first token says, shifted by the last that the mask lets through."""
    draw = np.random.default_rng(5)
    ids = draw.integers(0, VOCABULARY, (STEPS, ROWS, LENGTH))
    lengths = draw.integers(3, LENGTH + 1, (STEPS, ROWS))
    mask = (np.arange(LENGTH) < lengths[..., None]).astype(np.float32)
    last = np.take_along_axis(ids, lengths[..., None] - 1, -1)[..., 0]
    return ids, mask, (ids[..., 0] + last) % CLASSES


def is_decayed(name):
    return not (name.endswith("bias") or "norm" in name)


def rate(schedule, step):
    if schedule is None:
        return LR
    total, warmup = schedule
    return LR * (step / max(1, warmup) if step < warmup else max(0.0, (total - step) / (total - warmup)))


def clip(gradients):
    norm = math.sqrt(sum(float((one.double() ** 2).sum()) for one in gradients))
    if norm > CLIP:
        for one in gradients:
            one.mul_(CLIP / norm)


def train(accumulation=1, schedule=None, frozen=(), decay=0.0):
    """The loss of each step."""
    model = make().train()
    named = [(name, one) for name, one in model.named_parameters() if not name.startswith(frozen or "-")]
    groups = [
        {"params": [one for name, one in named if is_decayed(name) == wanted], "weight_decay": wanted * decay}
        for wanted in (True, False)
    ]
    optimizer, losses = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.999), eps=1e-8), []
    for i, (ids, mask, label) in enumerate(zip(*(map(torch.from_numpy, batches())))):
        loss, _ = model(ids, mask, label)
        (loss / accumulation).backward()
        losses.append(loss.item())
        if (i + 1) % accumulation == 0:
            clip([one.grad for _, one in named])
            for group in optimizer.param_groups:
                group["lr"] = rate(schedule, i // accumulation)
            optimizer.step()
            optimizer.zero_grad()
    return np.array(losses)


def make(dropout=0.0):
    torch.manual_seed(11)
    return Encoder(dropout)


def export(path, dropout):
    example = tuple(torch.from_numpy(one[0]) for one in batches())
    axes = {name: {0: "rows", 1: "length"} for name in ("ids", "mask")} | {"label": {0: "rows"}, "scores": {0: "rows"}}
    torch.onnx.export(
        make(dropout).train(),
        example,
        path,
        input_names=["ids", "mask", "label"],
        output_names=["loss", "scores"],
        dynamic_axes=axes,
        opset_version=14,
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.TRAINING,
        dynamo=False,
    )


def main():
    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    export(FOLDER / "encoder.onnx", 0.0)
    export(FOLDER / "encoder_dropout.onnx", 0.2)
    ids, mask, label = batches()
    runs = {
        "plain": train(),
        "accumulated": train(accumulation=4),
        "linear": train(schedule=(20, 5.0)),
        "frozen": train(frozen=("words", "layers.0.")),
        "groups": train(decay=DECAY),
    }
    np.savez_compressed(FOLDER / "encoder.npz", ids=ids, mask=mask, label=label, **runs)


if __name__ == "__main__":
    main()
