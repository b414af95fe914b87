#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint directories read by others: by the package safetensors and by PyTorch's HuggingFaceStorageReader.

Usage: check_shards.py ONNXTRAIN

ONNXTRAIN writes the recorded checkpoint anew for several numbers of ranks; every element is its own place in its whole.
Needs torch and safetensors.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from safetensors import safe_open
from torch.distributed.checkpoint import HuggingFaceStorageReader

RECORDED = Path(__file__).parents[1] / "unit" / "shards" / "recorded" / "run"
EXPECTED = {
    "model.fc.weight": torch.arange(40, dtype=torch.float32).reshape(8, 5),
    "model.fc.bias": torch.arange(5, dtype=torch.float16),
    "model.step": torch.tensor(7),
}


def check_files(folder):
    """The files one by one, with what they say of themselves."""
    found = {name: 0 for name in EXPECTED}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            places = json.loads(file.metadata()["DCP_SHARDING_INFO"])
            for name in file.keys():
                part = file.get_tensor(name)
                begins = places[name]["saved_offsets"]
                whole = EXPECTED[name][tuple(slice(b, b + s) for b, s in zip(begins, part.shape))]
                assert torch.equal(part, whole), (path, name)
                found[name] += part.numel()
    assert found == {name: tensor.numel() for name, tensor in EXPECTED.items()}, found


def check_torch(folder):
    state = {name: torch.zeros_like(tensor) for name, tensor in EXPECTED.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.load(state, storage_reader=HuggingFaceStorageReader(str(folder)), no_dist=True)
    for name, tensor in EXPECTED.items():
        assert torch.equal(state[name], tensor), name


def main():
    command = sys.argv[1]
    with tempfile.TemporaryDirectory() as work:
        for n in (1, 2, 3, 8):
            folder = Path(work) / f"of-{n}"
            subprocess.run([command, "ckpt", "reshard", str(RECORDED), str(folder), "--ranks", str(n)], check=True)
            check_files(folder)
            check_torch(folder)
    print("check_shards: files of 1, 2, 3 and 8 ranks are read by safetensors and torch", torch.__version__)


if __name__ == "__main__":
    main()
