#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Some of the models of zoo.py as PyTorch exports them, and what it loses when it trains them.

    record.py [FOLDER]

Needs what check.py needs. Writes into FOLDER, else tests/models/recorded, a file per model, <model>_x0.npy and so on,
<model>_labels.npy, and cases.txt: in a line the model, its inputs, its loss, the axis of the classes, the learning rate,
tensors and elements that train, the losses of PyTorch's steps in f64, and how far those in f32 are from them. Stack
traces are left out of the files.
"""
import copy
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch

from check import EXPORTED_ROWS, EXPORTS, losses_of_torch, names_of, tensors_of
from zoo import MODELS

ROWS = 3
RECORDED = {
    "llama": "classic-training-unfolded",
    "super-resolution": "classic-training-unfolded",
    "vae": "newer-training-unoptimized",
    "gru": "classic-training-unfolded",
}


def without_stack_traces(path):
    model = onnx.load(path)
    for thing in (*model.graph.node, *model.graph.value_info, *model.graph.initializer, model.graph):
        for entry in [entry for entry in thing.metadata_props if "stack_trace" in entry.key]:
            thing.metadata_props.remove(entry)
    onnx.save(model, path)
    pathlib.Path(f"{path}.data").unlink(missing_ok=True)


def record(folder, name):
    entry, generator = MODELS[name], np.random.default_rng(ROWS)
    torch.manual_seed(0)
    module, inputs = entry.make(), [make(ROWS, generator) for make in entry.inputs]
    labels = entry.labels(ROWS, generator)
    example = tensors_of([make(EXPORTED_ROWS, generator) for make in entry.inputs])
    path = str(folder / f"{name}.onnx")
    EXPORTS[RECORDED[name]](copy.deepcopy(module), example, path)
    without_stack_traces(path)
    for x, array in zip(names_of(inputs), inputs):
        np.save(folder / f"{name}_{x}.npy", array)
    np.save(folder / f"{name}_labels.npy", labels)
    exact, _ = losses_of_torch(module, entry, inputs, labels, torch.float64)
    single, gradients = losses_of_torch(module, entry, inputs, labels, torch.float32)
    numbers = exact + [abs(s - e) for s, e in zip(single, exact)]
    return (f"{name} {len(inputs)} {entry.loss} {entry.class_axis} {entry.rate} {len(gradients)} "
            f"{sum(g.size for g in gradients.values())} " + " ".join(f"{n:.17g}" for n in numbers))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "recorded"
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    (folder / "cases.txt").write_text("".join(record(folder, name) + "\n" for name in RECORDED))


if __name__ == "__main__":
    main()
