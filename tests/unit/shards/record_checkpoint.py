#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded/run: a checkpoint directory as docs/checkpoints.md describes it, by the package safetensors and Python's
json, for the tests of readers. Every element is its own place in its whole.

Usage: record_checkpoint.py
"""

import json
import shutil
from pathlib import Path

import numpy
from safetensors.numpy import save_file


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


assert crc32c(b"123456789") == "e3069283"

WEIGHT = numpy.arange(8 * 5, dtype=numpy.float32).reshape(8, 5)
PARTS = [  # per rank: name, whole shape, offsets, elements
    [("model.fc.weight", [8, 5], [0, 0], WEIGHT[:3]), ("model.step", [], [], numpy.array(7))],
    [
        ("model.fc.weight", [8, 5], [3, 0], WEIGHT[3:, :2]),
        ("model.fc.bias", [5], [0], numpy.arange(5, dtype=numpy.float16)),
    ],
    [("model.fc.weight", [8, 5], [3, 2], WEIGHT[3:, 2:])],
]
TYPES = {"float32": "F32", "float16": "F16", "int64": "I64"}


def main():
    folder = Path(__file__).parent / "recorded" / "run" / "step-7"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    files, tensors = [], {}
    for rank, parts in enumerate(PARTS):
        path = folder / f"data-{rank:05}-00000.safetensors"
        save_file({name: numpy.ascontiguousarray(data) if data.ndim else data for name, _, _, data in parts}, path)
        content = path.read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        files.append({"name": path.name, "size": len(content), "data_start": start, "crc32c": crc32c(content[:start])})
        for name, shape, offset, data in parts:
            begin, end = header[name]["data_offsets"]
            tensor = tensors.setdefault(name, {"dtype": TYPES[str(data.dtype)], "shape": shape, "chunks": []})
            chunk = {"f": rank, "o": offset, "s": list(data.shape), "b": begin, "n": end - begin}
            tensor["chunks"].append({**chunk, "c": crc32c(content[start + begin : start + end])})
    index = {
        "tensors": tensors,
        "items": {
            "model": {"fc.weight": ["tensor"], "fc.bias": ["tensor"], "step": ["tensor"]},
            "train": {"lr": 0.25, "names": ["list", "a", None, True], "seed": 12, "odd": ["bytes", "00ff"]},
        },
        "parts": [],
        "files": files,
        "world_size": 3,
        "step": 7,
        "writer": "record_checkpoint.py",
        "created_ns": "1700000000000000000",
        "save_id": "0123456789abcdef",
        "version": [1, 0],
        "format": "onnxtrain-checkpoint",
    }
    (folder / "otckpt.index.json").write_text(json.dumps(index, indent=1) + "\n")
    (folder.parent / "latest").write_text("step-7\n")


if __name__ == "__main__":
    main()
