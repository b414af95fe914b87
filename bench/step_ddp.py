# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/dist.py: step_ddp.py MODEL THREADS STEPS RANKS RANK MEETING, one rank; the first prints what it measured.

With one rank the module itself, else DDP over gloo, which meets by the file MEETING. As in step_torch.py: channels-last, fused AdamW.
"""

import json
import os
import sys
import time
import warnings


def main():
    name, threads, steps, n_ranks, rank, meeting = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[rank * threads:(rank + 1) * threads] or os.sched_getaffinity(0))
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    warnings.simplefilter("ignore")
    import torch
    import models
    import modules

    torch.set_num_threads(threads)
    problem = models.problem(name)
    torch.manual_seed(0)
    module, x = modules.module_of(name), modules.input_of(problem)
    labels = torch.randint(0, problem.classes, (problem.rows, *problem.labels))
    own = slice(problem.rows * rank // n_ranks, problem.rows * (rank + 1) // n_ranks)
    x, labels = x[own].contiguous(), labels[own].contiguous()
    if len(problem.row) == 3:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if n_ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=n_ranks)
        module = torch.nn.parallel.DistributedDataParallel(module, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0, fused=True)
    criterion, times = torch.nn.CrossEntropyLoss(), []
    for _ in range(steps):
        before = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        criterion(module(x).movedim(problem.class_axis, 1), labels).backward()
        optimizer.step()
        times.append((time.monotonic() - before) * 1e3)
    if rank == 0:
        print(json.dumps({"ms": times}))
    if n_ranks > 1:
        torch.distributed.destroy_process_group()


main()
