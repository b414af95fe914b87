# SPDX-License-Identifier: Apache-2.0
"""One of the processes of a job in Python: job.py CASE. What is wrong is an exception."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import numpy as np
from network import NAMES, START, TEXT, batch, cross_entropy

import onnxtrain
from onnxtrain import ORTTrainer, ORTTrainerOptions, SessionOptions, _checkpoint_storage, artifacts, optim
from onnxtrain.api import CheckpointState, Module, Optimizer
from onnxtrain.checkpoint import aggregate_checkpoints
from onnxtrain.distributed import Comm, checkpoint
from onnxtrain.distributed.checkpoint import async_save
from onnxtrain.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)

RATE = 0.1


def with_loss(text):
    text = text.replace(b"(float[N, 3] x)", b"(float[N, 3] x, int64[N] labels)").replace(b"(float[N, 2] y)", b"(float loss, float[N, 2] y)")
    return text.replace(b"y = Add(n, b2)", b"y = Add(n, b2) loss = SoftmaxCrossEntropyLoss(y, labels)")


WITH_LOSS = with_loss(TEXT)


NORMALISED = TEXT.replace(b"h = Relu(a)", b"q = BatchNormalization(a, scale, bias, mean, var) h = Relu(q)").replace(
    b"-0.05}>", b"-0.05}, " + b", ".join(b"float[4] %s = {%s}" % (name, b"1, 1, 1, 1" if name in (b"scale", b"var") else b"0, 0, 0, 0")
                                         for name in (b"scale", b"bias", b"mean", b"var")) + b">")


def same(found, wanted, what):
    assert found == wanted, f"{what}: {found}, expected {wanted}"


def raises(kind, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
        return
    raise AssertionError(f"no {kind.__name__} of {text!r}")


def communicator(comm):
    rank, n = comm.rank, comm.world_size
    same((n, comm.local_size, comm.local_rank), (2, 2, rank), "sizes")
    comm.barrier()
    same(comm.all_reduce(rank + 1), 3, "a sum")
    same(comm.all_reduce(0.25 * rank), 0.25, "a sum of floats")
    same(comm.all_reduce(np.array([rank, -rank], np.int32), "max").tolist(), [1, 0], "maxima")
    same(comm.all_reduce(np.full((2, 1), rank, np.float32), "min").tolist(), [[0.0], [0.0]], "minima")
    same(comm.broadcast(b"one" if rank == 1 else None, root=1), b"one", "bytes")
    same(comm.broadcast([[1.5, 2.5]] if rank == 0 else None).tolist(), [[1.5, 2.5]], "an array")
    same(comm.broadcast(7 if rank == 0 else None), 7, "a number")
    same(comm.broadcast(b""), b"", "no bytes")
    same(comm.all_gather(b"x" * rank), [b"", b"x"], "bytes of all")
    raises(onnxtrain.Mismatch, "differ in the", comm.all_reduce, 1 if rank else 1.0)
    raises(onnxtrain.InvalidArgument, "root is 2", comm.broadcast, b"", root=2)
    if rank == 0:
        raises(onnxtrain.InvalidType, "expected bytes, numbers", comm.broadcast, "text")
    else:
        raises(onnxtrain.InvalidType, "rank 0: the value cannot be sent", comm.broadcast)
    group = comm.split(rank if rank == 0 else -1)
    same(group is None, rank == 1, "whether there is a group")
    if group is not None:
        same((group.rank, group.world_size, group.all_reduce(5)), (0, 1, 5), "a group of one")
        group.close()
    assert comm.counters.bytes_sent > 0
    with Comm("mpi") as other:
        same(other.world_size, 2, "another communicator")
    raises(onnxtrain.StateError, "the communicator is closed", other.barrier)


def why_without_mpi4py():
    """Why what needs mpi4py is left out; None: it is not. Nothing of it is loaded here, where it could be of another MPI."""
    if importlib.util.find_spec("mpi4py") is None:
        return f"{sys.executable} has no mpi4py"
    mpi = "Open MPI" if "OMPI_COMM_WORLD_SIZE" in os.environ else "MPICH"
    os.environ.setdefault("MPI4PY_MPIABI", mpi.replace(" ", "").lower())  # of wheels, which are for several
    script = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    said = (done.stdout or done.stderr or "nothing").strip().splitlines()
    return None if mpi in done.stdout else f"the job is of {mpi}, and mpi4py says: {said[0] if done.stdout else said[-1]}"


def of_mpi4py(comm):
    why = why_without_mpi4py()
    if why is not None:
        if comm.rank == 0:
            print(f"left out: communicators of mpi4py: {why}", flush=True)
        return
    from mpi4py import MPI

    with Comm(MPI.COMM_WORLD) as whole:
        same((whole.rank, whole.all_reduce(1)), (comm.rank, 2), "the communicator of mpi4py")
    with Comm(MPI.COMM_SELF) as own:
        same((own.world_size, own.all_reduce(1)), (1, 1), "the communicator of one")


def points(rows=40):
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32)
    return x, (x[:, 0] + x[:, 1] > 0).astype(np.int64)


def values_of(state):
    return {name: state.parameters[name].data for name in NAMES}


def trained(data=None, model=TEXT, **options):
    how = SessionOptions()
    how.use_deterministic_compute = True
    how.intra_op_num_threads = 1
    options = {"epochs": 2, "batch_size": 7, "split": 0.2, "learning_rate": 0.02, **options}
    return onnxtrain.train(model, data or points(), session_options=how, progress=False, **options)


def training(comm, folder):
    """The short way, against one process with as many slices."""
    one = trained(comm=Comm("self"), slices=2)
    one.export(folder / f"one{comm.rank}.onnx")
    for zero in range(4):
        two = trained(zero=zero, output=folder / "two.onnx")
        for name, value in values_of(one.state).items():
            if zero < 3:  # else each rank has a part of it
                same(values_of(two.state)[name].tobytes(), value.tobytes(), f"{name} with zero {zero}")
        comm.barrier()
        whole = [(folder / name).read_bytes() for name in (f"one{comm.rank}.onnx", "two.onnx")]
        same(whole[1], whole[0], f"the trained model with zero {zero}")
        comm.barrier()
        same({**two.history[-1], "seconds": 0}, {**one.history[-1], "seconds": 0}, "the last epoch")
    comm.barrier()
    same((folder / "two.onnx").exists(), True, "whether the model is written")
    half = {"zero": 1, "checkpoint_dir": folder / "parts"}
    trained(max_steps=3, **half)
    same(values_of(trained(resume=True, **half).state)["w1"].tobytes(), values_of(one.state)["w1"].tobytes(), "w1")
    same(trained(comm=comm, resume=True, **half).steps, one.steps, "steps of a run that is over")


def failures(comm, folder):
    """What fails on one rank fails on all, and the next call works."""
    rank, seen = comm.rank, []

    def break_off(event):
        if rank == 1 and event.step == 2:
            raise KeyError("broken")

    def interrupt(event):
        seen.append(event.step)
        if rank == 1 and event.step == 2:
            signal.raise_signal(number)

    raises(Exception, "none.csv" if rank else "rank 1: ", trained, points() if rank == 0 else "none.csv")
    raises(ValueError, "epochs is 0" if rank else "rank 1: epochs is 0", trained, epochs=rank ^ 1)
    raises(KeyError if rank else onnxtrain.Error, "broken", trained, callbacks=[break_off])
    steps = trained().steps
    for number in (signal.SIGINT, signal.SIGTERM):
        saved, seen[:] = folder / f"stopped{number}", []
        raises(KeyboardInterrupt, "", trained, callbacks=[interrupt], checkpoint_dir=saved)
        comm.barrier()
        same(max(seen), 2, "the step after which all stop")
        same(trained(checkpoint_dir=saved, resume=True).steps, steps, "steps of the run that is gone on with")
    same(signal.getsignal(signal.SIGTERM), signal.SIG_DFL, "what is done about TERM afterwards")


def by_formula(n_steps):
    """Plain gradient descent over the batches of both ranks, in f64."""
    p = {name: value.astype(np.float64) for name, value in START.items()}
    losses = []
    for step in range(n_steps):
        both = [cross_entropy(p, *batch(2 * step + rank)) for rank in (0, 1)]
        losses.append([loss for loss, _ in both])
        for name in p:
            p[name] = p[name] - RATE * (both[0][1][name] + both[1][1][name]) / 2
    return p, losses


def near(found, wanted, what):
    assert np.allclose(found, wanted, rtol=0, atol=2e-6), f"{what}: {found}, expected {wanted}"


def modules(comm, folder):
    """Step by step, against the formula over both batches."""
    parameters, losses = by_formula(3)
    if comm.rank == 0:
        how = {"loss": artifacts.LossType.CrossEntropyLoss, "optimizer": artifacts.OptimType.SGD}
        artifacts.generate_artifacts(TEXT, artifact_directory=folder, **how)
    comm.barrier()
    for zero in (3, 2, 0, 1):
        state = CheckpointState.load_checkpoint(folder / "checkpoint")
        module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx", comm=comm, zero=zero)
        optimizer = Optimizer(folder / "optimizer_model.onnx", module)
        optimizer.set_learning_rate(RATE)
        for step in range(3):
            loss = module(*batch(2 * step + comm.rank))
            near(loss, losses[step][comm.rank], f"the loss of step {step}")
            optimizer.step()
            module.lazy_reset_grad()
        whole = get_model_state_dict(module, options=StateDictOptions(full_state_dict=True)) if zero == 3 else values_of(state)
        for name in whole:
            near(whole[name], parameters[name], name)
    raises(onnxtrain.StateError, "in use by 1 ", comm.close)
    CheckpointState.save_checkpoint(state, folder / f"saved{comm.rank}")
    module.export_model_for_inferencing(folder / f"exported{comm.rank}", ["y"])
    same((folder / "saved1").exists() or (folder / "exported1").exists(), False, "whether rank 1 writes")


def trainers(comm, folder):
    parameters, losses = by_formula(3)
    description = {"inputs": [("x", ["N", 3]), ("labels", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 2])]}
    ranks = {"world_size": 2, "world_rank": comm.rank, "allreduce_post_accumulation": True}
    for distributed in ({}, {**ranks, "deepspeed_zero_optimization": {"stage": 1}}):
        options = ORTTrainerOptions({"distributed": distributed})
        trainer = ORTTrainer(WITH_LOSS, description, optim.SGDConfig(lr=RATE), options=options)
        for step in range(3):
            loss, _ = trainer.train_step(*batch(2 * step + comm.rank))
            near(loss, losses[step][comm.rank], f"the loss of step {step}")
        state = get_model_state_dict(trainer)
        for name in NAMES:
            near(state[name], parameters[name], name)
    raises(ValueError, "world_size is 2, found 1 process", ORTTrainer, WITH_LOSS, description, optim.SGDConfig(),
           options=ORTTrainerOptions({"distributed": ranks}), comm=Comm("self"))
    trainer.save_as_onnx(folder / f"trainer{comm.rank}.onnx")
    same((folder / "trainer1.onnx").exists(), False, "whether rank 1 writes")


def trainers_that_accumulate(comm, folder):
    """Updates of three micro-batches of each rank, by ZeRO: those of one process with the micro-batches of both."""
    description = {"inputs": [("x", ["N", 3]), ("labels", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 2])]}

    def updated(accumulation, numbers, stage=0, **shares):
        options = {"batch": {"gradient_accumulation_steps": accumulation},
                   "distributed": {"deepspeed_zero_optimization": {"stage": stage}} if stage else {}}
        trainer = ORTTrainer(WITH_LOSS, description, optim.AdamConfig(lr=0.01), options=ORTTrainerOptions(options), **shares)
        losses = [float(trainer.train_step(*batch(number))[0]) for number in numbers]
        return losses, trainer.state_dict()

    losses, wanted = updated(6, range(12), comm=Comm("self"))
    for stage in (0, 2, 3):
        own, found = updated(3, range(comm.rank, 12, 2), stage)
        near(own, losses[comm.rank::2], f"losses with stage {stage}")
        for name in NAMES:
            near(found["model"]["full_precision"][name], wanted["model"]["full_precision"][name], f"{name} with stage {stage}")
            for slot in ("Moment_1", "Moment_2"):
                near(found["optimizer"][name][slot], wanted["optimizer"][name][slot], f"{slot} of {name} with stage {stage}")


def artifacts_of_onnx_runtime(comm, folder):
    """Made by ONNX Runtime, each rank with half of the rows: the losses and parameters that it recorded in one process."""
    data = Path(__file__).resolve().parents[1] / "interop" / "data"
    for case, kind in (("cnn-bce-adamw", "onnx"), ("ort-mse-adamw", "ort"), ("transformer-cross-entropy-adamw", "onnx")):
        place = folder / f"{case}{comm.rank}"
        shutil.unpack_archive(data / f"{case}.zip", place)
        theirs = place / "theirs"
        with np.load(place / "values.npz") as values:
            recorded = {name: (values[f"value {i}"], values["allowed"][i]) for i, name in enumerate(values["names"])}
            rows = list(zip(values["x"], values["target"]))
        half = slice(comm.rank * 4, comm.rank * 4 + 4)
        without_zero = {}
        for zero in range(4):
            state = CheckpointState.load_checkpoint(theirs / "checkpoint")
            module = Module(theirs / f"training_model.{kind}", state, zero=zero, sync_batch_norm=True)
            optimizer = Optimizer(theirs / f"optimizer_model.{kind}", module)
            optimizer.set_learning_rate(0.01)
            found = {}
            for step, (x, target) in enumerate(rows):
                loss = module(x[half], target[half])
                loss = loss[0] if isinstance(loss, (list, tuple)) else loss
                found[f"loss of step {step}"] = comm.all_reduce(float(loss)) / 2
                optimizer.step()
                module.lazy_reset_grad()
            whole = get_model_state_dict(module, options=StateDictOptions(full_state_dict=True))
            found.update({f"parameter {name}": value for name, value in whole.items()})
            same(sorted(found), sorted(recorded), f"names of {case}")
            for name, (value, allowed) in recorded.items():
                apart = float(np.linalg.norm(found[name] - value))
                assert apart <= allowed, f"{case} with zero {zero}: {name} is {apart} off, {allowed} allowed"
            without_zero = without_zero or whole
            same_state(whole, without_zero, f"{case} with zero {zero}")


def normalised_values(state):
    return {name: state.parameters[name].data for name in ("w1", "w2", "b2", "scale")}


def stepped(rows, folder, **shares):
    """Three updates of a module."""
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    module = Module(folder / "training_model.onnx", state, **shares)
    optimizer = Optimizer(folder / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(RATE)
    for step in range(3):
        module(*rows(step))
        optimizer.step()
        module.lazy_reset_grad()
    return normalised_values(state)


def stepped_trainer(rows, **shares):
    description = {"inputs": [("x", ["N", 3]), ("labels", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 2])]}
    model = with_loss(NORMALISED)
    trainer = ORTTrainer(model, description, optim.SGDConfig(lr=RATE), **shares)
    for step in range(3):
        trainer.train_step(*rows(step))
    return get_model_state_dict(trainer)


def normalisations(comm, folder):
    """By statistics of both batches: one process with the rows of both; by those of each, another training."""
    alone = Comm("self")

    def own(step):
        return batch(2 * step + comm.rank)

    def both(step):
        return [np.concatenate(parts) for parts in zip(batch(2 * step), batch(2 * step + 1))]

    def compare(way, run, rows_of_one):
        one = run(rows_of_one, comm=alone)
        for is_sync in (True, False):
            found = run(own, comm=comm, sync_batch_norm=is_sync)
            apart = max(float(np.abs(found[name] - one[name]).max()) for name in ("w1", "w2", "b2", "scale"))
            assert apart < 1e-5 if is_sync else apart > 1e-4, f"{way}, sync_batch_norm={is_sync}: {apart} off"

    folder = folder / "normalised"
    if comm.rank == 0:
        folder.mkdir()
        how = {"loss": artifacts.LossType.CrossEntropyLoss, "optimizer": artifacts.OptimType.SGD}
        artifacts.generate_artifacts(NORMALISED, artifact_directory=folder, **how)
    comm.barrier()
    compare("train()", lambda rows, **shares: normalised_values(trained(model=NORMALISED, **shares).state), None)
    named = {True: "sync", False: "batch"}

    def by_name(rows, comm, sync_batch_norm=False):
        return normalised_values(trained(model=NORMALISED, comm=comm, batch_norm=named[sync_batch_norm]).state)

    compare("train(batch_norm=...)", by_name, None)
    compare("Module", lambda rows, **shares: stepped(rows, folder, **shares), both)
    compare("ORTTrainer", stepped_trainer, both)


def same_state(found, wanted, place="state"):
    if isinstance(wanted, dict):
        same(sorted(found), sorted(wanted), place)
        for name in wanted:
            same_state(found[name], wanted[name], f"{place}[{name!r}]")
    elif isinstance(wanted, np.ndarray):
        same(found.tobytes(), wanted.tobytes(), place)
    else:
        same(found, wanted, place)


def files_of_ranks(comm, trainer, paths, whole):
    """What each rank has saved, joined."""
    raises(OSError, "exists already", trainer.save_checkpoint, f"{paths[0]}.new" if comm.rank else paths[0])
    same(paths[0].with_suffix(".ortcp.new").exists(), False, "whether a file of a save that failed stays")
    missing = paths[0].with_name("none") if comm.rank else paths[0]
    raises(FileNotFoundError if comm.rank else onnxtrain.Error, "none", trainer.load_checkpoint, missing, paths[1])
    joined = aggregate_checkpoints(paths, pytorch_format=False)
    for name in ("model", "optimizer", "train_step_info", "onnxtrain"):
        same_state(joined[name], whole[name], name)


def read_by_others(path):
    """An HDF5 file as a dict: by h5py where there is one."""
    if importlib.util.find_spec("h5py") is None:
        return _checkpoint_storage.load(path)
    import h5py

    def values(group):
        return {name: values(item) if isinstance(item, h5py.Group) else item[()] for name, item in group.items()}

    with h5py.File(path) as file:
        return values(file)


def a_weight_in_two_files(comm, folder):
    """Of 128 elements, filled up to 192, each of two ranks has 96, so the last one 32."""
    numbers = ", ".join(f"{0.01 * (k % 13) - 0.05:.2f}" for k in range(128))
    text = f'''<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 8] x, int64[N] labels) => (float loss, float[N, 16] y)
<float[8, 16] w = {{{numbers}}}>
{{ y = MatMul(x, w) loss = SoftmaxCrossEntropyLoss(y, labels) }}'''
    description = {"inputs": [("x", ["N", 8]), ("labels", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 16])]}
    options = ORTTrainerOptions({"distributed": {"deepspeed_zero_optimization": {"stage": 2}}})
    trainer = ORTTrainer(text.encode(), description, optim.AdamConfig(lr=RATE), options=options)
    draw = np.random.default_rng(comm.rank)
    trainer.train_step(draw.normal(size=(5, 8)).astype(np.float32), draw.integers(0, 16, 5))
    whole = trainer.state_dict()
    path = folder / f"cut{comm.rank}.ortcp"
    trainer.save_checkpoint(path)
    file = read_by_others(path)
    own = slice(96) if comm.rank == 0 else slice(96, 128)
    for name in ("Moment_1", "Moment_2"):
        same(file["optimizer"]["w"][name].shape, (own.stop - (own.start or 0),), f"the shape of {name}")
        same(file["optimizer"]["w"][name].tobytes(), whole["optimizer"]["w"][name].reshape(-1)[own].tobytes(), name)
    same(list(file["optimizer"]["w"]["Update_Count"]), [2], "Update_Count")
    same_state(file["model"], whole["model"])
    same({name: list(value) for name, value in file["partition_info"]["w"].items()},
         {"original_dim": [8, 16], "megatron_row_partition": [-1]}, "how w is cut")
    found = {name: int(file["trainer_options"][name]) for name in ("zero_stage", "world_rank", "world_size", "data_parallel_size")}
    same(found, {"zero_stage": 2, "world_rank": comm.rank, "world_size": 2, "data_parallel_size": 2}, "options")


def trainers_with_zero(comm, folder):
    """What each has a part of is one state: the same as without ZeRO."""
    description = {"inputs": [("x", ["N", 3]), ("labels", ["N"])], "outputs": [("loss", [], True), ("y", ["N", 2])]}

    def opened(stage):
        options = ORTTrainerOptions({"distributed": {"deepspeed_zero_optimization": {"stage": stage}}})
        return ORTTrainer(WITH_LOSS, description, optim.AdamConfig(lr=RATE), options=options)

    def step(trainer, number):
        trainer.train_step(*batch(2 * number + comm.rank))

    both = opened(0), opened(1)
    for trainer in both:
        step(trainer, 0)
    wanted, found = (trainer.state_dict() for trainer in both)
    for name in ("model", "optimizer", "train_step_info"):
        same_state(found[name], wanted[name], name)
    loads = [lambda trainer: trainer.load_state_dict(found)]
    each = [folder / f"checkpoint{rank}.ortcp" for rank in (0, 1)]
    try:
        both[1].save_checkpoint(folder / "zero")
        loads.append(lambda trainer: trainer.load_checkpoint(folder / "zero"))
        both[1].save_checkpoint(each[comm.rank], {"rank": comm.rank})
        loads.append(lambda trainer: same(trainer.load_checkpoint(*each), {"rank": 0}, "the user's dict"))
    except onnxtrain.Unsupported:
        pass  # built without HDF5
    else:
        files_of_ranks(comm, both[1], each, found)
        a_weight_in_two_files(comm, folder)
    comm.barrier()
    step(both[0], 1)
    wanted = both[0].state_dict()["model"]
    for stage in (0, 1):
        for take in loads:
            trainer = opened(stage)
            take(trainer)
            step(trainer, 1)
            same_state(trainer.state_dict()["model"], wanted)
    trainer.load_state_dict(found)  # after an update, which has cut its own
    step(trainer, 1)
    same_state(trainer.state_dict()["model"], wanted)


def directories(comm, folder):
    """What two processes save, each a part of it, they and one process load."""

    def opened(**shares):
        state = CheckpointState.load_checkpoint(folder / "checkpoint")
        module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx", **shares)
        optimizer = Optimizer(folder / "optimizer_model.onnx", module)
        return state, module, optimizer

    def step(module, optimizer, number):
        module(*batch(number))
        optimizer.step()
        module.lazy_reset_grad()

    comm.barrier()
    if comm.rank == 0:
        how = {"loss": artifacts.LossType.CrossEntropyLoss, "optimizer": artifacts.OptimType.AdamW}
        artifacts.generate_artifacts(TEXT, artifact_directory=folder, **how)
    comm.barrier()
    state, module, optimizer = opened(zero=1)
    step(module, optimizer, comm.rank)
    model, optim = get_state_dict(module, optimizer)
    save = async_save({"model": model, "optim": optim}, checkpoint_id=folder / "directories" / "step-1")
    step(module, optimizer, 2 + comm.rank)
    save.result()
    wanted = values_of(state)
    for shares in ({"zero": 1}, {"zero": 0}):  # gone on with
        state, module, optimizer = opened(**shares)
        model, optim = get_state_dict(module, optimizer)
        checkpoint.load({"model": model, "optim": optim}, checkpoint_id=folder / "directories" / "step-1")
        set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optim)
        step(module, optimizer, 2 + comm.rank)
        for name, value in values_of(state).items():
            same(value.tobytes(), wanted[name].tobytes(), f"{name} with {shares}")
    alone = {"model": {"w1": np.zeros((3, 4), np.float32)}}
    checkpoint.load(alone, checkpoint_id=folder / "directories" / "step-1", no_dist=True)
    assert not np.array_equal(alone["model"]["w1"], START["w1"]) and alone["model"]["w1"].all()
    raises(onnxtrain.InvalidType if comm.rank else onnxtrain.Error, "object", checkpoint.save,
           {"a": {"x": object() if comm.rank else 1}}, checkpoint_id=folder / "bad")
    for call in (checkpoint.save, async_save, checkpoint.load):
        planner = object() if comm.rank else None
        raises(ValueError, "planner is " if comm.rank else "rank 1: planner is ", call, {"a": {}}, checkpoint_id=folder / "bad", planner=planner)
    raises(onnxtrain.Mismatch, "differ", checkpoint.save, {"a": {"x": comm.rank}}, checkpoint_id=folder / "bad")


def states_of_rank_0(comm, folder):
    """Rank 0 gets all of a state and gives it; what is wrong with it all ranks tell. The artifacts are there."""
    gets = StateDictOptions(full_state_dict=True, cpu_offload=True)
    gives = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    for zero in (0, 3):
        state = CheckpointState.load_checkpoint(folder / "checkpoint")
        module = Module(folder / "training_model.onnx", state, folder / "eval_model.onnx", zero=zero)
        optimizer = Optimizer(folder / "optimizer_model.onnx", module)

        def step(number):
            module(*batch(number + comm.rank))
            optimizer.step()
            module.lazy_reset_grad()

        step(0)
        model, optim = get_state_dict(module, optimizer, options=gets)
        same([bool(model), bool(optim)], [comm.rank == 0] * 2, "who has the state")
        step(2)
        set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optim, options=gives)
        found, _ = get_state_dict(module, optimizer, options=gets)
        for name, value in found.items():
            same(value.tobytes(), model[name].tobytes(), name)
        lacking = {name: value for name, value in model.items() if name != "w1"}
        raises(onnxtrain.NotFound, "missing: 'w1'", set_state_dict, module, optimizer,
               model_state_dict=lacking, optim_state_dict=optim, options=gives)
        odd = {"w1": object()} if comm.rank else {}
        raises(onnxtrain.InvalidType if comm.rank else onnxtrain.Error, "object", set_state_dict, module, optimizer,
               model_state_dict=odd, optim_state_dict={}, options=StateDictOptions(full_state_dict=True))
        step(4)


def wrong_arguments_of_one_rank(comm, folder):
    """What is wrong on one rank alone all are told; names that none of several models has are the same on all."""
    full = StateDictOptions(full_state_dict=True)

    def opened():
        module = Module(folder / "training_model.onnx", CheckpointState.load_checkpoint(folder / "checkpoint"))
        return module, Optimizer(folder / "optimizer_model.onnx", module)

    (module, optimizer), (other, other_optimizer) = opened(), opened()
    model, optim = get_state_dict(module, optimizer, options=full)

    def on_rank_1(kind, text, call):
        raises(kind, text if comm.rank else f"rank 1: {text}", call, comm.rank == 1)

    on_rank_1(TypeError, "submodules: expected beginnings",
              lambda bad: get_model_state_dict(module, submodules=[1] if bad else None, options=full))
    on_rank_1(ValueError, "optimizers are not passed in",
              lambda bad: get_optimizer_state_dict(module, [] if bad else optimizer, options=full))
    on_rank_1(ValueError, "an optimizer is none of the model's",
              lambda bad: get_state_dict(module, other_optimizer if bad else optimizer, options=full))
    on_rank_1(TypeError, "the model is dict", lambda bad: get_model_state_dict({} if bad else module, options=full))
    on_rank_1(TypeError, "options is int", lambda bad: get_model_state_dict(module, options=1 if bad else full))
    on_rank_1(ValueError, "an optimizer is none of the model's",
              lambda bad: set_optimizer_state_dict(module, other_optimizer if bad else optimizer, optim, options=full))
    on_rank_1(TypeError, "models: expected a list of pairs",
              lambda bad: set_model_state_dict([module] if bad else module, model, options=full))
    if comm.rank == 1:  # no other is needed for its own part
        same_state(get_model_state_dict(module), model)

    models, optimizers = [("a", module), ("b", other)], [optimizer, other_optimizer]
    model, optim = get_state_dict(models, optimizers, options=full)
    given = {**model, "c": model["a.w1"]}
    lacking = {name: value for name, value in given.items() if name != "b.b1"}
    for strict in (False, True):
        gives = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=strict)
        each = StateDictOptions(full_state_dict=True, strict=strict)
        rows = ((gives, given if comm.rank == 0 else {"d": model["a.w1"]}), (each, given if comm.rank else model))
        for options, own in rows:
            if strict:
                raises(ValueError, "unexpected: 'c'", set_model_state_dict, models, own, options=options)
            else:
                same(set_model_state_dict(models, own, options=options), ([], ["c"]), "names of no model")
    loose = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True, strict=False)
    same(set_model_state_dict(models, lacking if comm.rank == 0 else {}, options=loose), (["b.b1"], ["c"]), "keys")


def work(folder):
    comm = Comm()
    communicator(comm)
    of_mpi4py(comm)
    training(comm, folder)
    failures(comm, folder)
    modules(comm, folder)
    trainers(comm, folder)
    trainers_that_accumulate(comm, folder)
    artifacts_of_onnx_runtime(comm, folder)
    normalisations(comm, folder)
    trainers_with_zero(comm, folder)
    directories(comm, folder)
    states_of_rank_0(comm, folder)
    wrong_arguments_of_one_rank(comm, folder)
    print(f"rank {comm.rank} ends", flush=True)


def leave(folder):
    if why_without_mpi4py() is None:  # which waits for others at its end
        from mpi4py import MPI

        comm = Comm(MPI.COMM_WORLD)
    else:
        comm = Comm()
    if comm.rank == 1:
        raise RuntimeError("one leaves")
    comm.barrier()


def missing(folder):
    trained()


{"work": work, "leave": leave, "missing": missing}[sys.argv[1]](Path(os.environ.get("OT_JOB_DIRECTORY", ".")))
