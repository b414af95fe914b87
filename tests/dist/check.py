#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over processes beside PyTorch's DDP and FSDP2 on as many, on the CPU by gloo, live.

usage: check.py BUILD [--ranks 1,2,4]     (needs torch and onnx; BUILD has dist_job, and a plugin for each MPI)

Small models are exported and trained 10 updates on both sides, with 1, 2 and 4 processes and 1 and 3 micro-batches to an
update; in a third round the last update has one micro-batch instead of three, of fewer rows, which the processes share as
they come. The parameters differ from those of DDP and of FSDP2 by at most ten times what DDP in f32 differs from DDP in
f64, by Euclidean norms, tensor by tensor; for zero 0 to 3.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

UPDATES, ROWS, TAIL_ROWS, FACTOR, HALF_UNIT, DECAY = 10, 16, 7, 10.0, 2.0**-24, 0.01
ROUNDS = {"1 micro-batch": 1, "3 micro-batches": 3, "uneven tail": 3}
STAGES = (0, 1, 2, 3)  # of ZeRO
OPTIMIZERS = {"AdamWOptimizer": 2e-3, "SGDOptimizer": 0.05}
WIDTH, TOKENS, WORDS, CLASSES = 16, 8, 13, 5


class Perceptron(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 12), nn.Tanh(), nn.Linear(12, CLASSES))

    rows = staticmethod(lambda n: torch.rand(n, 6) * 2 - 1)
    labels = staticmethod(lambda n: torch.randint(CLASSES, (n,)))


class Convolution(nn.Sequential):
    """Every process has the batch statistics of its own rows; running statistics are not compared: DDP takes one process's."""

    def __init__(self):
        super().__init__(nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.Tanh(), nn.Flatten(),
                         nn.Linear(150, CLASSES))

    rows = staticmethod(lambda n: torch.rand(n, 2, 5, 5) * 2 - 1)
    labels = staticmethod(Perceptron.labels)


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        # That of the keys has no influence: its gradient is rounding alone.
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.v, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)
        self.register_buffer("mask", torch.full((TOKENS, TOKENS), -1e9).triu(1) if causal else None)

    def forward(self, x):
        b, t, _ = x.shape
        n = self.norm1(x)
        q, k, v = (y.view(b, t, 2, WIDTH // 2).transpose(1, 2) for y in (self.q(n), self.k(n), self.v(n)))
        scores = q @ k.transpose(2, 3) / (WIDTH // 2) ** 0.5
        y = F.softmax(scores if self.mask is None else scores + self.mask, -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.token, self.position = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.rand(TOKENS, WIDTH) - 0.5)
        self.blocks = nn.ModuleList(Block(causal) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS if causal else CLASSES)

    def forward(self, tokens):
        x = self.token(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x).transpose(1, 2) if self.causal else self.head(x.mean(1))

    rows = staticmethod(lambda n: torch.randint(WORDS, (n, TOKENS)))

    def labels(self, n):
        return self.rows(n) if self.causal else Perceptron.labels(n)


MODELS = {"perceptron": Perceptron, "convolution": Convolution, "encoder": lambda: Transformer(False), "gpt": lambda: Transformer(True)}


def batches_of(name):
    """Rows of the micro-batches, by updates."""
    accumulation = ROUNDS[name]
    updates = [[ROWS] * accumulation for _ in range(UPDATES)]
    if name == "uneven tail":
        updates[-1] = [TAIL_ROWS]
    return updates


def make(model):
    torch.manual_seed(3)
    return MODELS[model]()


def data_of(model, name):
    n = sum(map(sum, batches_of(name)))
    torch.manual_seed(11)
    module = make(model)
    return module.rows(n), module.labels(n)


def optimizer_of(kind, module):
    if kind == "AdamWOptimizer":
        return torch.optim.AdamW(module.parameters(), OPTIMIZERS[kind], eps=1e-6, weight_decay=DECAY)
    return torch.optim.SGD(module.parameters(), OPTIMIZERS[kind], momentum=0.9, weight_decay=DECAY)


# ---- PyTorch ----


def train_torch(way, dtype, model, kind, name, rank, n_ranks):
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    module = make(model).to(dtype)
    if way == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        trained = fully_shard(module, mesh=init_device_mesh("cpu", (n_ranks,)))
    else:
        trained = DistributedDataParallel(module)
    optimizer = optimizer_of(kind, trained)
    x, labels = data_of(model, name)
    at = 0
    for update in batches_of(name):
        optimizer.zero_grad()
        for i, rows in enumerate(update):
            first, last = at + rows * rank // n_ranks, at + rows * (rank + 1) // n_ranks
            at += rows
            is_last = i == len(update) - 1
            if way == "fsdp":
                trained.set_requires_gradient_sync(is_last)
            else:
                trained.require_backward_grad_sync = is_last
            own = x[first:last]
            scores = trained(own.to(dtype) if own.is_floating_point() else own)
            # The mean over all rows: the processes' gradients are averaged.
            (F.cross_entropy(scores, labels[first:last]) * ((last - first) * n_ranks / rows) / len(update)).backward()
        optimizer.step()
    names = {n for n, _ in module.named_parameters()}
    state = {n: t for n, t in module.state_dict().items() if n in names}
    return {n: (t.full_tensor() if way == "fsdp" else t).detach().double().numpy() for n, t in state.items()}


def cases():
    return [(model, kind, name) for model in MODELS for kind in OPTIMIZERS for name in ROUNDS]


def has_fsdp(model):
    return model != "convolution"  # whose buffers it leaves to each process


def work(rank, n_ranks, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{n_ranks}", rank=rank, world_size=n_ranks)
    for model, kind, name in cases():
        ways = [("ddp", torch.float32), ("ddp", torch.float64)] + [("fsdp", torch.float32)] * has_fsdp(model)
        for way, dtype in ways:
            values = train_torch(way, dtype, model, kind, name, rank, n_ranks)
            if rank == 0:
                np.savez(pathlib.Path(folder) / f"{n_ranks}-{model}-{kind}-{name}-{way}{dtype.itemsize}.npz", **values)
    dist.destroy_process_group()


# ---- onnxtrain ----


def export(model, path):
    module = make(model)
    batch = (module.rows(4),)
    torch.onnx.export(module, batch, path, dynamo=False, opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


def launchers(build):
    found = [(name, shutil.which(f"mpirun.{name}"), build / "mpi" / name / "libonnxtrain_mpi.so") for name in ("openmpi", "mpich")]
    found = [f for f in found if f[1] and f[2].exists()]
    return found or [("mpi", shutil.which("mpirun"), build / "mpi" / "mpi" / "libonnxtrain_mpi.so")]


def train_ours(build, launcher, n_ranks, folder, model, kind, name, zero):
    out, data = folder / "out.onnx", folder / f"{model}-{name}.npz"
    if not data.exists():
        x, labels = data_of(model, name)
        np.savez(data, x=x.numpy(), labels=labels.numpy())
    _, mpirun, plugin = launcher
    environment = dict(os.environ, OT_COMM_PLUGIN=str(plugin), OT_COMM_TIMEOUT="60", OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                       PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe")
    environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # MPI's own are not ours
    command = [mpirun, "-n", str(n_ranks)] if n_ranks > 1 else []
    command += map(str, [build / "tests" / "dist_job", folder / f"{model}.onnx", data, out, kind, OPTIMIZERS[kind], DECAY, ROWS,
                         ROUNDS[name], zero])
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"check.py: {' '.join(command)}: {done.stderr}")
    return {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in onnx.load(out).graph.initializer}


# ---- comparing ----


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def compare(what, ours, theirs, exact, limits):
    """The largest part of what is allowed."""
    worst = 0.0
    missing = set(theirs) - set(ours)
    if missing:
        sys.exit(f"check.py: {what}: the trained model lacks {sorted(missing)}")
    for name, value in theirs.items():
        found = distance(ours[name], value)
        allowed = FACTOR * max(limits[name], HALF_UNIT)
        if not found <= allowed:
            sys.exit(f"check.py: {what}: {name} differs by {found:.2g}, allowed are {allowed:.2g}; from f64 ours differs by "
                     f"{distance(ours[name], exact[name]):.2g}, theirs by {distance(value, exact[name]):.2g}")
        worst = max(worst, found / allowed)
    return worst


def check_case(build, n_ranks, folder, case):
    model, kind, name = case
    values = {way: dict(np.load(path)) for way in ("ddp4", "ddp8", "fsdp4")
              if (path := folder / f"{n_ranks}-{model}-{kind}-{name}-{way}.npz").exists()}
    exact = values.pop("ddp8")
    limits = {n: distance(v, exact[n]) for n, v in values["ddp4"].items()}
    worst = 0.0
    for launcher in launchers(build)[: None if n_ranks > 1 else 1]:
        for zero in STAGES[: None if n_ranks > 1 else 1]:
            ours = train_ours(build, launcher, n_ranks, folder, model, kind, name, zero)
            for way, theirs in values.items():
                what = f"{model}, {kind}, {name}, {n_ranks} processes of {launcher[0]}, zero {zero}, {way[:-1]}"
                worst = max(worst, compare(what, ours, theirs, exact, limits))
    print(f"{n_ranks} processes, {model}, {kind}, {name}: up to {100 * worst:.0f} % of what is allowed", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--ranks", default="1,2,4")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as work_folder:
        folder = pathlib.Path(work_folder)
        for model in MODELS:
            export(model, folder / f"{model}.onnx")
        for n_ranks in map(int, options.ranks.split(",")):
            torch.multiprocessing.spawn(work, (n_ranks, work_folder), n_ranks)
            for case in cases():
                check_case(options.build, n_ranks, folder, case)


if __name__ == "__main__":
    main()
