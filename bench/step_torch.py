# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/run.py: step_torch.py MODEL THREADS STEPS. Channels-last, fused AdamW."""

import json
import os
import resource
import sys
import time


def main():
    name, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    start = float(os.environ["BENCH_START"])
    import torch
    import models
    import modules

    torch.set_num_threads(threads)
    problem = models.problem(name)
    torch.manual_seed(0)
    module, x = modules.module_of(name), modules.input_of(problem)
    if len(problem.row) == 3:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    labels = torch.randint(0, problem.classes, (problem.rows, *problem.labels))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0, fused=True)
    criterion = torch.nn.CrossEntropyLoss()
    times, first = [], 0.0
    for step in range(steps):
        before = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(module(x).movedim(problem.class_axis, 1), labels)
        loss.backward()
        optimizer.step()
        if step == 0:
            first = time.monotonic() - start
        times.append((time.monotonic() - before) * 1e3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"ms": times, "first": first, "peak_mb": peak, "loss": float(loss)}))


main()
