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


def seconds(run, repeats):
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    before = clock()
    for _ in range(repeats):
        run()
    return (clock() - before) / repeats


def times(run, samples):
    seconds(run, 1)
    first = seconds(run, 1)
    repeats = 1 + int(SAMPLE_SECONDS / first)
    return [seconds(run, repeats) for _ in range(min(samples, 1 + int(ENTRY_SECONDS / (first * repeats))))]


def time_product(batches, m, n, k, a_transposed, b_transposed, samples):
    a, b, y = matrix(batches, m, k, a_transposed), matrix(batches, k, n, b_transposed), matrix(batches, m, n, False)
    product = torch.bmm if batches > 1 else torch.mm
    return {"PyTorch": times(lambda: product(a, b, out=y), samples)}


def time_attention(batch, heads, tokens, size, causal, samples):
    """Heads lie side by side in each row."""
    q, k, v, dy = (torch.rand(batch, tokens, heads, size).transpose(1, 2) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_()

    def attend():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal != 0)

    y = attend()
    return {"PyTorch forward": times(attend, samples),
            "PyTorch gradients": times(lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True), samples)}


torch.set_num_threads(int(sys.argv[1]))
for line in sys.stdin:
    what, *numbers = line.split()
    print(json.dumps((time_attention if what == "attention" else time_product)(*(int(number) for number in numbers))), flush=True)
