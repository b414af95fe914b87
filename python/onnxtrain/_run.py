# SPDX-License-Identifier: Apache-2.0
"""A run of training: the session and its data, what callbacks see of it, and what is left at its end."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable, NamedTuple, Sequence

import numpy as np

from onnxtrain import _arrays, _core, _data, _log
from onnxtrain._options import SessionOptions, memory_bytes
from onnxtrain.api import CheckpointState
from onnxtrain.distributed import Comm, _comm

# ot_event_kind and ot_task of the C headers
_EVENTS = ("step", "epoch", "saved", "early-stop")
_METRICS_OF_TASK = {0: (), 1: ("accuracy",), 2: ("mae", "r2")}
_UNKNOWN = -1


@dataclasses.dataclass
class Event:
    """What callbacks of :func:`train` get.

    Attributes:
        kind: "step" after an optimizer step, "epoch" after an epoch and its validation, "saved", "early-stop".
        epoch, epochs: the epoch, from 1, and how many there are to be.
        batch, batches: batches of the epoch done, and how many there are.
        step: optimizer steps done.
        learning_rate: of the next step.
        metrics: loss and what goes with it, over the epoch so far.
        validation: the same on the validation data, at the end of an epoch; None where there is none.
        is_best: whether the epoch is the best so far.
        path: of the checkpoint that was saved.
        n_skipped: updates of this run that were skipped, since gradients were not finite.
        loss_scale: what the loss of the last step was multiplied with for its gradient; None: it was not.
        result: what :func:`train` will return; its state may be looked at, saved and exported.
    """

    kind: str
    epoch: int
    epochs: int
    batch: int
    batches: int
    step: int
    learning_rate: float
    metrics: dict[str, float]
    validation: dict[str, float] | None
    is_best: bool
    path: str | None
    n_skipped: int
    loss_scale: float | None
    result: TrainingResult


class TrainingResult:
    """What :func:`train` returns.

    Attributes:
        history: a dict per epoch: epoch, step, learning_rate, seconds, loss and metrics, and those with ``val_`` before.
        metrics: of the last epoch's validation, or of its training where there is no validation data.
        classes: names of the classes when labels were texts, in the order of their numbers; or None.
        stopped: whether a callback asked to stop.
        state: the parameters, a :class:`onnxtrain.api.CheckpointState`.
        notes: what one should know of the model although it trains, a line each; what is most likely wrong is a Python
            warning, too.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.history: list[dict[str, Any]] = []
        self.metrics: dict[str, float] = {}
        self.classes: list[str] | None = None
        self.stopped = False
        self.state = CheckpointState(run.state)
        self.state._rank = run.rank
        self.notes = [text for _, text in run.notes]

    @property
    def steps(self) -> int:
        """Optimizer steps done, also before a resume."""
        return self._run.session.step_count()

    def export(self, path: str | os.PathLike, outputs: Sequence[str] | None = None) -> None:
        """Write the trained model, for inference: with the outputs of the forward model (from
        artifacts: those that need no target), or those that are named. Over several ranks rank 0 writes it, and the
        others do nothing."""
        if not self._run.writes:
            return
        names = list(outputs) if outputs is not None else self._run.outputs
        self._run.session.export(names, os.fspath(path), self._run.trained(self.classes))

    def evaluate(self, data: Any, batch_size: int | None = None) -> dict[str, float]:
        """Loss and metrics of the trained model on other data, given as for :func:`train`. Over several ranks all of
        them call it."""
        run = self._run
        batches, _ = run.batches(run.open(data, self.classes), rows_of(batch_size), classes=self.classes)
        return run.metrics(_core.evaluate(run.session, batches, *run.measured))

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value:.4g}" for name, value in self.metrics.items())
        return f"TrainingResult({len(self.history)} epochs, {self.steps} steps, {words})"


class Resume:
    """What a run goes on from: the newest checkpoint of a directory that is whole.

    Attributes:
        checkpoint: of the file, if there is one.
        passed_over: what warnings say of others.
    """

    def __init__(self, folder: str, comm: Comm | None) -> None:
        with _log.told_otherwise() as told:
            self._found, self.checkpoint = _core.resume_find(None if comm is None else comm._comm, folder)
        self.passed_over = _log.warnings_of(told)

    def load(self, session: _core.Session) -> bool:
        """Into the session, which was made over the checkpoint of the file; whether there is anything."""
        with _log.told_otherwise() as told:
            path = _core.resume_load(self._found, session)
        self.passed_over += _log.warnings_of(told)
        return path is not None


class DataOptions(NamedTuple):
    """What train() is told of its data."""

    target: str | None
    label: str | None
    bind: list[str]
    scale: float
    mean: Sequence[float] | None
    std: Sequence[float] | None
    header: int
    max_unpacked: int


class Run:
    """A session over artifacts, and what its data must look like."""

    def __init__(
        self,
        forward: _core.Model | None,
        built: _core.Artifacts,
        data_options: DataOptions,
        loaded: _core.Checkpoint | None,
        options: SessionOptions,
        steps: tuple = (),
        comm: Comm | None = None,
        zero: int = 0,
        bucket_bytes: int = 0,
        sync_batch_norm: bool = False,
    ) -> None:
        self.rank = 0 if comm is None else comm.rank
        self.writes = _comm.writes(comm, zero)
        self.has_parts = _comm.cuts_values(comm, zero)
        self._forward, self._built, self._options = forward, built, data_options
        # a model names its target itself
        self._targets = [data_options.target] if forward is None and data_options.target is not None else None
        self.notes = built.notes()
        self.outputs = None if forward is None else forward.output_names()
        self.resumed: dict[str, Any] = {}  # properties of the checkpoint, before the session changes them
        if loaded is not None:
            built.take_checkpoint()  # and drop it: makes room
            self.resumed = {name: loaded.get_property(name) for name in loaded.property_names()}
        self.state, self.session = built.session(
            loaded,
            options.intra_op_num_threads,
            options.use_deterministic_compute,
            memory_bytes(options.memory_max),
            _comm.parallel(comm, zero, bucket_bytes, sync_batch_norm),
            *steps,
        )
        self.measured = (0, _UNKNOWN, _UNKNOWN, 1)  # task, output, input and class axis of the metrics

    def is_finite(self) -> bool:
        """Whether all parameters are, if they are here."""
        return self.has_parts or bool(np.isfinite(_arrays.to_numpy(self.session.get_parameters(True))).all())

    def open(self, data: Any, classes: list[str] | None = None) -> _data.Data:
        """`classes`: of labels that are texts."""
        names = self.session.input_names(True)
        own = names if self._forward is None else self._forward.input_names()
        told = _core.target_names(self.session, self._built, self._forward, self._targets)
        targets = [name for name in names if name in told or name not in own]
        features = [name for name in names if name not in targets]
        how = self._options
        return _data.open_data(data, features + targets, features, how.header, how.max_unpacked, classes)

    def batches(
        self,
        data: _data.Data,
        size: int,
        *,
        shuffle: bool = False,
        split: float = 0.0,
        seed: int = 0,
        classes: list[str] | None = None,
    ) -> tuple[_core.Batches, _core.Batches | None]:
        """Batches of the data, and of the part that is held out; from now on metrics are those of this data."""
        o = self._options
        how = (o.label, o.bind, o.scale, o.mean, o.std, split, size, shuffle, seed, classes)
        training, held_out, self.measured = _core.batches(
            self.session, self._built, data.dataset, (self._forward, self._targets, *how)
        )
        return training, held_out

    def trained(self, classes: list[str] | None) -> tuple:
        """What is recorded in models that are exported."""
        o = self._options
        return self._built, self._forward, o.scale, o.mean, o.std, classes

    def metrics(self, values: tuple) -> dict[str, float]:
        _, loss, accuracy, mae, r2, _ = values
        known = {"accuracy": accuracy, "mae": mae, "r2": r2}
        task, output, *_ = self.measured
        names = _METRICS_OF_TASK[task] if output != _UNKNOWN else ()
        return {"loss": loss, **{name: known[name] for name in names}}


def rows_of(batch_size: int | None) -> int:
    """As the library takes it: 0 is its own choice."""
    if batch_size is None:
        return 0
    if batch_size < 1:
        raise ValueError(f"batch_size: {batch_size}, expected at least 1")
    return batch_size


def make_batches(
    run: Run,
    data: _data.Data,
    validation: Any,
    split: float,
    batch_size: int,
    seed: int,
    classes: list[str] | None,
) -> tuple[_core.Batches, _core.Batches | None]:
    if validation is not None and split:
        raise _core.InvalidArgument("validation and split exclude each other")
    training, held_out = run.batches(data, batch_size, shuffle=True, split=split, seed=seed, classes=classes)
    if validation is None:
        return training, held_out
    classes = data.classes or training.class_names or classes
    return training, run.batches(run.open(validation, classes), batch_size, classes=classes)[0]


def listen(
    run: Run, result: TrainingResult, callbacks: Sequence[Callable[[Event], Any]]
) -> Callable[[tuple], bool]:
    def on_event(values: tuple) -> bool:
        kind, epoch, epochs, batch, batches, step, rate, training, validation, is_best, path, skipped, scale = values
        metrics = run.metrics(training)
        other = run.metrics(validation) if validation[0] > 0 else None
        where = (_EVENTS[kind], epoch + 1, epochs, batch, batches, step, rate)
        event = Event(*where, metrics, other, bool(is_best), path, skipped, scale or None, result)
        if event.kind == "epoch":
            row = {"epoch": event.epoch, "step": step, "learning_rate": rate, "seconds": training[5], **metrics}
            row.update({f"val_{name}": value for name, value in (other or {}).items()})
            result.history.append(row)
            result.metrics = other or metrics
        return any([callback(event) is True for callback in callbacks])

    return on_event
