# SPDX-License-Identifier: Apache-2.0
"""The short way: one call from a model and data to a trained model."""

from __future__ import annotations

import inspect
import math
import operator
import os
from typing import Any, Callable, Iterable, Mapping, Sequence

from onnxtrain import _core, _log, _module, _notes, _record
from onnxtrain._options import (
    BATCH_NORMS,
    CHECKPOINT_FORMATS,
    PRECISIONS,
    SCHEDULES,
    SessionOptions,
    choose,
    load_model,
    recomputed,
    set_memory_max,
)
from onnxtrain._prepare import shared_names
from onnxtrain._progress import Progress
from onnxtrain._run import DataOptions, Event, Resume, Run, TrainingResult, listen, make_batches, rows_of
from onnxtrain.distributed import Comm, _comm

# Optimizers with a name of their own here; the others have that of their operator: "adam" is AdamOptimizer.
_NAMED = {"adamw": "AdamWOptimizer", "sgd": "SGDOptimizerV2", "sgd-momentum": "SGDOptimizer"}
# What optimizers call the arguments of train().
_HYPER = {
    "beta1": ("beta1", "alpha"),
    "beta2": ("beta2", "beta"),
    "epsilon": ("epsilon",),
    "weight_decay": ("weight_decay", "lambda"),
    "adam_mode": ("adam_mode", "weight_decay_mode"),
    "momentum": ("momentum",),
    "nesterov": ("nesterov",),
}

# What artifacts have built in, so that it cannot be said of a folder of them.
_BUILT_IN = (
    "loss loss_input reduction class_weights ignore_index class_axis optimizer beta1 beta2 epsilon adam_mode "
    "weight_decay no_decay momentum nesterov clip_norm skip_non_finite precision trainable frozen module batch_norm init shared"
).split()


def _load_folder(folder: str, given: Mapping[str, Any]) -> _core.Artifacts:
    usual = inspect.signature(train).parameters
    for name in _BUILT_IN:
        default = usual[name].default
        if name == "batch_norm" and given[name] == "sync":  # is not built in
            continue
        if given[name] is not default and (default is None or given[name] != default):
            raise _core.InvalidArgument(f"{name}: the artifacts in {folder!r} have this built in")
    return _core.Artifacts.load(folder)


def _optimizer(given: Mapping[str, Any]) -> tuple:
    """As Artifacts.generate() takes it; what is not given is left to the operator."""
    known = _core.optimizers()
    named = {name: name.split("Optimizer")[0].lower() for name in known if name not in _NAMED.values()}
    name = choose("optimizer", given["optimizer"], {**_NAMED, **{text: name for name, text in named.items()}})
    usual = inspect.signature(train).parameters
    called = {
        argument: next((hyper for hyper in names if hyper in known[name]), None) for argument, names in _HYPER.items()
    }
    hyper = [
        (called[argument], float(given[argument]))
        for argument in _HYPER
        if called[argument] and (given[argument] != usual[argument].default or (argument, name) == ("momentum", "SGDOptimizer"))
    ]
    if "max_norm_clip" in known[name]:
        hyper.append(("max_norm_clip", 0.0))  # clip_norm clips
    if not given["no_decay"]:
        return name, hyper, given["clip_norm"]
    if not called["weight_decay"]:
        raise _core.InvalidArgument(f"no_decay: {given['optimizer']} has no weight decay")
    return name, hyper, given["clip_norm"], list(given["no_decay"]), called["weight_decay"]


def _generate(forward: _core.Model, record: _core.Record | None, given: Mapping[str, Any]) -> _core.Artifacts:
    terms, additional = _record.losses(record, given, forward.output_names())
    optimizer = _optimizer(given)
    statistics = choose("batch_norm", given["batch_norm"], BATCH_NORMS | {"sync": BATCH_NORMS["batch"]})
    init = [f"{pattern}={how}" for pattern, how in (given["init"] or {}).items()]
    names = _module.choose(forward, given["trainable"], given["frozen"], given["module"])
    how = (False, False, False, given["module"] is not None, shared_names(given["shared"]), True, False)
    return _core.Artifacts.generate(
        forward,
        terms,
        optimizer,
        *names,
        additional,
        statistics,
        False,
        given["seed"],
        init,
        *how,
        given["skip_non_finite"],
        choose("precision", given["precision"], PRECISIONS),
    )


def _rescue(result: TrainingResult, output: str | os.PathLike, error: BaseException) -> None:
    """Write the model as it is when a run without checkpoints breaks off, unless it is ruined."""
    if isinstance(error, _core.NotFinite) or not result._run.is_finite():
        return
    result.export(output)
    if isinstance(error, KeyboardInterrupt):
        raise KeyboardInterrupt(f"interrupted; {os.fspath(output)!r} has the parameters after step {result.steps}")


def train(
    model: Any,
    data: Any,
    *,
    loss: Any = None,
    optimizer: str = "adamw",
    learning_rate: float = 1e-3,
    epochs: int = 10,
    batch_size: int | None = None,
    validation: Any = None,
    split: float = 0.0,
    label: str | None = None,
    bind: Mapping[str, str] | None = None,
    scale: float | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    header: bool | None = None,
    max_unpacked: int = 0,
    loss_input: str | None = None,
    target: str | None = None,
    reduction: str | None = None,
    class_weights: Sequence[float] | None = None,
    ignore_index: int | None = None,
    class_axis: int | None = None,
    trainable: Sequence[str] | None = None,
    frozen: Sequence[str] | None = None,
    module: Any = None,
    shared: str | Sequence[str] | None = None,
    batch_norm: str = "auto",
    init: Mapping[str, str] | None = None,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    adam_mode: int = 1,
    weight_decay: float = 0.0,
    no_decay: Sequence[str] | None = None,
    momentum: float = 0.9,
    nesterov: bool = False,
    clip_norm: float = 0.0,
    accumulate: int = 1,
    slices: int = 0,
    schedule: str = "constant",
    schedule_steps: int = 0,
    warmup: int = 0,
    step_size: int = 1000,
    gamma: float = 0.1,
    power: float = 1.0,
    end_factor: float = 0.0,
    max_steps: int = 0,
    patience: int = 0,
    keep_best: bool = False,
    seed: int = 0,
    output: str | os.PathLike | None = None,
    checkpoint_dir: str | os.PathLike | None = None,
    save_every: int = 0,
    resume: bool = False,
    overwrite: bool = False,
    log: str | os.PathLike | None = None,
    tensorboard: str | os.PathLike | None = None,
    session_options: SessionOptions | None = None,
    progress: bool = True,
    callbacks: Iterable[Callable[[Event], Any]] = (),
    ignore_recorded: bool = False,
    skip_non_finite: bool = False,
    precision: str = "f32",
    recompute: Sequence[str] = (),
    comm: Comm | None = None,
    zero: int = 0,
    bucket_bytes: int = 0,
    checkpoint_format: str = "auto",
    save_async: bool = False,
    sync_batch_norm: bool = False,
) -> TrainingResult:
    """Train a model on data.

        result = onnxtrain.train("model.onnx", (x, labels), loss="cross-entropy", epochs=20, split=0.1)
        result.export("trained.onnx")

    A model that was trained here says with what loss, and what was done with its data; all that is not given is then
    done as it says: loss, scale, mean, std and the numbers of classes.

    Several losses are summed with their weights; a term says what it takes and compares with:

        onnxtrain.train("heads.onnx", data, loss=[
            {"loss": "cross-entropy", "input": "scores"},
            {"loss": "mse", "weight": 0.3, "input": "depth", "target": "depth_target"},
        ])

    Args:
        model: the forward model: a path, the bytes of a file or an onnx.ModelProto; or a folder of artifacts, which
            have loss, optimizer and parameters built in.
        data: a path or paths (.npz, .npy, CSV, IDX, each also gzipped), arrays by field name, or ``(x, target)`` in the
            order of the model's inputs. Labels may be texts.
        loss: "cross-entropy", "mse", "l1", "bce-with-logits", or "none": the first output is the loss; or a model (path
            ending in .onnx or .onnxtxt, bytes or onnx.ModelProto) whose inputs are outputs of the model, by name, and
            targets. None: as the model was trained, else "cross-entropy". Or a list of terms, each a loss, a pair (loss,
            weight) or a dict with "loss" and perhaps "weight", "input" and "target". Metrics are those of the first
            term.
        optimizer: "adamw", "sgd", "sgd-momentum", or one of the others in docs/operators.md: "adam", "lamb", "adagrad",
            "rmsprop", "lion".
        learning_rate: the highest of the schedule.
        epochs: passes over the data.
        batch_size: rows of a batch; None: 32, or the only number that the model takes.
        validation: data to validate on after each epoch, given as `data` is.
        split: part of the rows that is held out for validation instead, chosen by the seed.
        label: field of the target; else that of its name, or the last column of a CSV.
        bind: fields of other inputs: ``{"input": "field"}``; columns of a CSV as "a,b" or "first:last".
        scale: factor on the features, as 1/255 for images. None: as the model was trained, else 1.
        mean, std: subtracted from the features after that, and what they are divided by: one number, or one a channel.
        header: whether a CSV's first row names its columns; None: found out.
        max_unpacked: bytes that a packed file may become; 0: a thousand times its own, or 64 MiB where that is more.
        loss_input: value of the model that a single loss takes; else its first output.
        target: name for a single loss's target input; else "labels" or "target".
        reduction: of the loss over the batch: "mean", "sum" or "none". None: as the model was trained, else "mean".
        class_weights: weight of each class, of cross-entropy.
        ignore_index: label that does not count, of cross-entropy.
        class_axis: axis of the scores that has the classes, of cross-entropy: 1, or -1: the last. None: as the model was
            trained, else 1.
        trainable, frozen: names of parameters, with * and ?; else all that can train.
        module: the torch.nn.Module that the model was exported from, instead: exactly its parameters train that require
            a gradient, and nothing else does. One that the exporter computed into something else is an error, unless
            that has its elements.
        shared: names of tensors, with * and ?, that stay one where :func:`onnxtrain.prepare` would separate or join
            them; "keep": all.
        batch_norm: statistics of BatchNormalization: "batch", "stored" or "auto": of the batch where its scale or bias
            is trained; "sync": "batch", with `sync_batch_norm`.
        init: initial values to draw: ``{"fc*.weight": "kaiming_uniform"}``, or kaiming_normal, xavier_uniform,
            xavier_normal, zeros, ones.
        beta1, beta2, epsilon: of adamw.
        adam_mode: adamw decays weights before the update as PyTorch (0) or after it as ONNX Runtime's artifacts (1).
        weight_decay: of all optimizers but sgd.
        no_decay: names, or patterns with * and ?, of parameters without decay, such as ["*bias", "*norm*"].
        momentum, nesterov: of sgd-momentum; momentum of rmsprop.
        clip_norm: bound of the norm of all gradients together; 0: none.
        accumulate: batches a step; their gradients are averaged.
        slices: parts of a batch that are computed one by one, as by so many processes; 0: as the run that is resumed,
            else 1.
        schedule: "constant", "linear", "cosine", "step", "exponential" or "polynomial".
        schedule_steps: steps until the schedule's end; 0: all of this run.
        warmup: steps over which the learning rate rises from 0, before the schedule.
        step_size, gamma: steps between two falls (step), and the factor of a fall (step, exponential).
        power: exponent of polynomial.
        end_factor: part of the learning rate that is left at the end.
        max_steps: stop after so many steps; 0: no limit.
        patience: stop after so many epochs without a better loss; 0: never.
        keep_best: end with the parameters of the best epoch.
        seed: of the order of the data, Dropout and values drawn.
        output: where the trained model is written; without `checkpoint_dir` also when Control-C or an error breaks
            the run off after a step, unless the parameters are not finite.
        checkpoint_dir: where checkpoints are saved, every `save_every` steps or once an epoch.
        resume: go on from the checkpoint in `checkpoint_dir`, if there is one. One that is damaged is passed over with
            a warning where an older one is whole.
        overwrite: begin anew where `checkpoint_dir` has the checkpoint of another run, which is refused otherwise.
        log: a file that gets a JSON object per step, epoch and save, one a line. When it cannot be written any more, a
            warning says so, and the training goes on.
        tensorboard: a directory that gets an event file of the run, for TensorBoard.
        session_options: threads, reproducibility, memory limit.
        progress: show how far it is.
        callbacks: functions that get each :class:`Event`; one that returns True stops the training.
        ignore_recorded: take no notice of what the model says of its training; else what is given must be the same.
        skip_non_finite: skip updates whose gradients are not finite, and count them (`n_skipped` of events), instead of
            ending with an error.
        precision: element type that steps compute in, "f32", "bf16" or "f16", the last one with a loss scale;
            parameters and what is saved stay f32.
        recompute: what of transformers is made again in the backward pass instead of kept: "attn-dropout", "gelu",
            "layers", "layers=N".
        comm: the ranks that make this training together: each computes slices of every batch. All of them call this
            function with the same arguments; rank 0 prints and writes files, and what fails on one fails on all. None:
            those that mpirun has started.
        zero: what of the state is cut over the ranks; 0: nothing.
        bucket_bytes: how many bytes of gradients are summed at once; 0: chosen.
        checkpoint_format: "file": `checkpoint`, which one process writes; "directory": `step-<n>`, to which each process
            writes its part, and `latest`; "auto": directories with `save_async`, or where processes have parts (`zero`).
        save_async: write checkpoint directories while the training goes on, from a copy in memory.
        sync_batch_norm: batch normalisations take mean and variance of the batches of all ranks together, which make
            every step together then, with a slice each; else of a slice.

    Returns:
        A :class:`TrainingResult`.
    """
    given = dict(locals())
    comm = _comm.several(comm)
    with _comm.stopped_by_launcher(comm), _comm.together(comm):
        kind = choose("schedule", schedule, SCHEDULES)
        steps = (choose("precision", precision, PRECISIONS), *recomputed(recompute))
        if operator.index(epochs) < 1:
            raise _core.InvalidArgument(f"epochs is {epochs}, expected at least 1")
        if not (math.isfinite(learning_rate) and learning_rate >= 0):
            raise _core.InvalidArgument(f"learning_rate is {learning_rate}, expected a finite number of at least 0")
        if init is not None and not isinstance(init, Mapping):
            raise _core.InvalidType(f"init is {type(init).__name__}, expected a dict of patterns and kinds")
        forward: _core.Model | None = None
        options = session_options or SessionOptions()
        if options.memory_max != 0:
            set_memory_max(options.memory_max)  # the artifacts are made before there is a session
        if isinstance(model, (str, os.PathLike)) and os.path.isdir(model):
            built = _load_folder(os.fspath(model), given)
            record = None if ignore_recorded else _core.Record.read(built)
        else:
            forward = load_model(model)
            record = None if ignore_recorded else _core.Record.read(forward)
            with _log.told_otherwise():  # notes of the artifacts
                built = _generate(forward, record, given)
        prepared = _record.preparation(record, scale, mean, std)
        folder = os.fspath(checkpoint_dir) if checkpoint_dir is not None else ""
        if resume and not folder:
            raise _core.InvalidArgument("resume needs checkpoint_dir")
        if save_async and not folder:
            raise _core.InvalidArgument("save_async needs checkpoint_dir")
        if save_async and checkpoint_format == "file":
            raise _core.InvalidArgument("save_async needs checkpoint_format 'directory'")
        found = Resume(folder, comm) if resume else None
        bindings = [f"{name}={fields}" for name, fields in (bind or {}).items()]
        first_row = -1 if header is None else int(header)
        data_options = DataOptions(target, label, bindings, *prepared[:3], first_row, max_unpacked)
        shares = (comm, zero, bucket_bytes, sync_batch_norm or batch_norm == "sync")
        run = Run(forward, built, data_options, found.checkpoint if found else None, options, steps, *shares)
        is_resumed = found is not None and found.load(run.session)
        run.notes += [(True, text) for text in found.passed_over] if found else []
        progress = progress and run.rank == 0
        opened = run.open(data, prepared.classes)
        rows = rows_of(batch_size)
        training, validating = make_batches(run, opened, validation, split, rows, seed, prepared.classes)
        run.notes += _notes.left_over(training, "training") + _notes.left_over(validating, "validation")
        if is_resumed and forward is not None:
            run.notes += _notes.moments(run.resumed, optimizer, run.session.step_count())
        result = TrainingResult(run)
        if run.rank == 0:
            _notes.tell(run.notes, progress)
        result.classes = opened.classes or training.class_names or prepared.classes
        if not is_resumed:
            run.session.set_seed(seed)
        rates = (kind, learning_rate, warmup, schedule_steps, step_size, gamma, power, end_factor)
        # artifacts have their loss built in, trained or not
        if progress and record is not None and (forward is not None or any(record.data())):
            print(f"as the model was trained: {record.text()}")
        listeners = ([Progress()] if progress else []) + list(callbacks)
        before = result.steps
        try:
            last, result.stopped = _core.train(
                run.session,
                training,
                validating,
                epochs,
                max_steps,
                accumulate,
                slices,
                rates,
                *run.measured,
                folder,
                choose("checkpoint_format", checkpoint_format, CHECKPOINT_FORMATS),
                save_async,
                save_every,
                is_resumed,
                patience,
                keep_best,
                overwrite or resume,
                run.outputs,
                run.trained(result.classes),
                os.fspath(log) if log is not None else "",
                os.fspath(tensorboard) if tensorboard is not None else "",
                result.notes,
                listen(run, result, listeners),
            )
        except BaseException as error:
            if output is not None and not folder and result.steps > before:
                _rescue(result, output, error)
            raise
        if not result.stopped:
            result.metrics = run.metrics(last)
        if output is not None:
            result.export(output)
        return result
