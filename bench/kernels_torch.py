# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/kernels.py: kernels_torch.py THREADS. Reads and answers as kernels.c does."""

import json
import sys
import time

import torch

SAMPLE_SECONDS = 1e-3
ENTRY_SECONDS = 0.5


def matrix(batches, rows, columns, transposed):
    x = torch.rand((batches, columns, rows) if transposed else (batches, rows, columns))
    x = x.transpose(1, 2) if transposed else x
    return x if batches > 1 else x[0]


def seconds(product, a, b, y, repeats):
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    before = clock()
    for _ in range(repeats):
        product(a, b, out=y)
    return (clock() - before) / repeats


torch.set_num_threads(int(sys.argv[1]))
for line in sys.stdin:
    batches, m, n, k, a_transposed, b_transposed, samples = (int(word) for word in line.split())
    a, b, y = matrix(batches, m, k, a_transposed), matrix(batches, k, n, b_transposed), matrix(batches, m, n, False)
    product = torch.bmm if batches > 1 else torch.mm
    seconds(product, a, b, y, 1)
    first = seconds(product, a, b, y, 1)
    repeats = 1 + int(SAMPLE_SECONDS / first)
    samples = min(samples, 1 + int(ENTRY_SECONDS / (first * repeats)))
    print(json.dumps({"PyTorch": [seconds(product, a, b, y, repeats) for _ in range(samples)]}), flush=True)
