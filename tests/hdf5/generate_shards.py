#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of tests/hdf5/shards, by h5py: as two processes save them with ZeRO in mixed precision, and with
layers that are split by columns. The weights' names have a '/', as exporters write them.

Usage: generate_shards.py FOLDER
"""

import sys
from pathlib import Path

import h5py
import numpy

UPDATES = 3
WEIGHT = numpy.arange(1, 13, dtype="f4").reshape(3, 4)  # layer/kernel: [3,4]
BIAS = numpy.array([0.5, -0.5, 0.25], "f4")  # layer/bias: [3]


def moments(first):
    return {"Moment_1": first * 10, "Moment_2": first * 100, "Update_Count": numpy.array([UPDATES + 1])}


def state(rank, parts, partition, zero_stage, columns):
    tree = {
        "model": {"full_precision": parts},
        "optimizer": {name: moments(part) for name, part in parts.items()},
        "trainer_options": {
            "mixed_precision": zero_stage > 0,
            "zero_stage": zero_stage,
            "world_rank": rank,
            "world_size": 2,
            "optimizer_name": "AdamOptimizer",
            "data_parallel_size": 2 // columns,
            "horizontal_parallel_size": columns,
        },
        "train_step_info": {"optimization_step": UPDATES, "step": 2 * UPDATES},
        "partition_info": partition,
    }
    if rank == 1:
        tree["user_dict"] = "80037d71002e"  # a pickled {}
    return tree


def write(group, values):
    for name, value in values.items():
        if isinstance(value, dict):
            write(group.require_group(name), value)
        else:
            group[name] = value


def shares():
    """Of 15 elements, the bias before the kernel, the first process has 8."""
    flat = WEIGHT.reshape(-1)
    cut = {"layer/kernel": {"original_dim": [3, 4], "megatron_row_partition": [-1]}}
    return [({"layer/bias": BIAS, "layer/kernel": flat[:5]}, cut), ({"layer/kernel": flat[5:]}, cut)]


def splits():
    """The kernel by columns, the bias whole."""
    cut = {"layer/kernel": {"original_dim": [3, 4], "megatron_row_partition": [0]}}
    return [({"layer/bias": BIAS, "layer/kernel": WEIGHT[:, 2 * r : 2 * r + 2]}, cut) for r in range(2)]


def main(folder):
    for kind, parts, zero_stage, columns in (("mixed", shares(), 1, 1), ("columns", splits(), 0, 2)):
        for rank, (part, cut) in enumerate(parts):
            with h5py.File(folder / f"{kind}{rank}.ortcp", "w") as file:
                write(file, state(rank, part, cut, zero_stage, columns))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
