#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Record what PyTorch loses in 50 updates of two transformers on real text; test_curves.c compares.

usage: record_curves.py       writes data/NAME.onnx, data/NAME.txt, data/text.txt (needs torch, onnx)

text.txt is the beginning of four pages of this project's documentation, PAGE_BYTES of ASCII
each. `causal` predicts the next
byte, `classifier` the page that a window is of. Windows begin where `start_of` says, on both sides. NAME.onnx is the
model as it was initialised, its loss inside, as the classic exporter writes it in training mode. NAME.txt has two lines,
"f32 LOSSES" and "f64 LOSSES": PyTorch's loss of every micro-batch in order, in either type, with AdamW, a linear
schedule with warm-up and two micro-batches to an update.
"""
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

HERE = pathlib.Path(__file__).parent
DATA, DOCS = HERE / "data", HERE.parent.parent / "docs"
PAGES = ("architecture", "guide", "coming-from-onnx-runtime", "python")
PAGE_BYTES, WINDOW, BATCH, VOCABULARY = 8192, 32, 8, 128
UPDATES, ACCUMULATION, TOTAL, WARMUP = 50, 2, 60, 4.5
LR, BETA1, BETA2, EPSILON, DECAY = 3e-3, 0.9, 0.999, 1e-8, 0.01
WIDTH, HEADS, LAYERS = 32, 2, 2


def start_of(step: int, row: int) -> int:
    """The row's window in the text: SplitMix64 of their number, so that both sides have the same."""
    z = (step * BATCH + row + 1) * 0x9E3779B97F4A7C15 & (2**64 - 1)
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    z = (z ^ z >> 27) * 0x94D049BB133111EB & (2**64 - 1)
    z ^= z >> 31
    page, offset = z % len(PAGES), (z >> 8) % (PAGE_BYTES - WINDOW)
    return page * PAGE_BYTES + offset


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        mask = torch.full((WINDOW, WINDOW), -1e9).triu(1) if causal else torch.zeros(WINDOW, WINDOW)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(WIDTH, 2)
        q, k, v = (y.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + self.mask
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, WIDTH)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.ModuleList(Block(causal) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("places", torch.arange(WINDOW))
        self.head = nn.Linear(WIDTH, VOCABULARY if causal else len(PAGES))

    def forward(self, tokens, labels):
        x = self.token(tokens) + self.position(self.places)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        scores = self.head(x) if self.causal else self.head(x.mean(1))
        loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))
        return loss, scores


def batch_of(text, step, causal):
    starts = [start_of(step, row) for row in range(BATCH)]
    tokens = torch.tensor([list(text[s : s + WINDOW]) for s in starts])
    if causal:
        return tokens, torch.tensor([list(text[s + 1 : s + WINDOW + 1]) for s in starts])
    return tokens, torch.tensor([s // PAGE_BYTES for s in starts])


def rate(update):
    return LR * (update / WARMUP if update < WARMUP else max(0, (TOTAL - update) / (TOTAL - WARMUP)))


def losses_of(model, text):
    optimizer = torch.optim.AdamW(model.parameters(), LR, (BETA1, BETA2), EPSILON, DECAY)
    losses = []
    for update in range(UPDATES):
        optimizer.param_groups[0]["lr"] = rate(update)
        optimizer.zero_grad()
        for micro in range(ACCUMULATION):
            loss, _ = model(*batch_of(text, update * ACCUMULATION + micro, model.causal))
            (loss / ACCUMULATION).backward()
            losses.append(loss.item())
        optimizer.step()
    return losses


def export(model, batch, path):
    """As it is initialised, by the classic exporter in training mode."""
    torch.onnx.export(
        model,
        batch,
        path,
        dynamo=False,
        opset_version=17,
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
        input_names=["tokens", "labels"],
        output_names=["loss", "scores"],
        dynamic_axes={"tokens": {0: "batch"}, "labels": {0: "batch"}, "scores": {0: "batch"}},
    )


def main():
    DATA.mkdir(exist_ok=True)
    pages = ((DOCS / f"{page}.md").read_bytes() for page in PAGES)
    text = b"".join(bytes(c for c in page if c < VOCABULARY)[:PAGE_BYTES] for page in pages)
    assert len(text) == len(PAGES) * PAGE_BYTES
    (DATA / "text.txt").write_bytes(text)
    for name, causal in (("causal", True), ("classifier", False)):
        torch.manual_seed(7)
        model = Transformer(causal)
        state = {k: v.clone() for k, v in model.state_dict().items()}
        export(model, batch_of(text, 0, causal), DATA / f"{name}.onnx")
        lines = [f"f32 {' '.join(f'{x:.9g}' for x in losses_of(model, text))}"]
        wide = Transformer(causal).double()
        wide.load_state_dict(state)
        lines.append(f"f64 {' '.join(f'{x:.17g}' for x in losses_of(wide, text))}")
        (DATA / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
