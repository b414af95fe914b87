"""The short way: one call from a model and data to a trained model."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Callable, Iterable, Mapping, Sequence

from onnxtrain import _core, _data
from onnxtrain._options import SessionOptions, load_model
from onnxtrain._progress import Progress
from onnxtrain.api import CheckpointState

# ot_loss with the metrics that fit (ot_task), ot_optimizer and ot_schedule_kind of the C headers
_LOSSES = {"none": (0, 0), "cross-entropy": (1, 1), "mse": (2, 2), "l1": (3, 2), "bce-with-logits": (4, 1)}
_OPTIMIZERS = {"adamw": 1, "sgd": 2, "sgd-momentum": 3}
_SCHEDULES = {"constant": 0, "linear": 1, "cosine": 2, "step": 3, "exponential": 4, "polynomial": 5}
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
    result: TrainingResult


class TrainingResult:
    """What :func:`train` returns.

    Attributes:
        history: a dict per epoch: epoch, step, learning_rate, seconds, loss and metrics, and those with ``val_`` before.
        metrics: of the last epoch's validation, or of its training where there is no validation data.
        classes: names of the classes when labels were texts, in the order of their numbers; or None.
        stopped: whether a callback asked to stop.
        state: the parameters, a :class:`onnxtrain.api.CheckpointState`.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self.history: list[dict[str, Any]] = []
        self.metrics: dict[str, float] = {}
        self.classes: list[str] | None = None
        self.stopped = False
        self.state = CheckpointState(run.state)

    @property
    def steps(self) -> int:
        """Optimizer steps done, also before a resume."""
        return self._run.session.step_count()

    def export(self, path: str | os.PathLike, outputs: Sequence[str] | None = None) -> None:
        """Write the trained model, for inference: with the outputs of the forward model, or those that are named."""
        trained = self._run.session.export(list(outputs) if outputs is not None else self._run.outputs)
        if self.classes is not None:
            trained.set_metadata("onnxtrain.classes", json.dumps(self.classes, ensure_ascii=False))
        trained.save(os.fspath(path))

    def evaluate(self, data: Any, batch_size: int = 32) -> dict[str, float]:
        """Loss and metrics of the trained model on other data, given as for :func:`train`."""
        run = self._run
        batches = run.open(data, self.classes).batches(batch_size, classes=self.classes)
        return run.metrics(_core.evaluate(run.session, batches, run.task, run.metric_output, run.metric_input))

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value:.4g}" for name, value in self.metrics.items())
        return f"TrainingResult({len(self.history)} epochs, {self.steps} steps, {words})"


@dataclasses.dataclass
class _Rows:
    """Data with its bindings."""

    data: _data.Data
    bindings: list[tuple]
    n_classes: int

    def batches(
        self,
        size: int,
        *,
        seed: int = 0,
        shuffle: bool = False,
        first: int = 0,
        last: int = 0,
        split_seed: int = 0,
        classes: list[str] | None = None,
    ) -> _core.Batches:
        own = None if self.data.classes is not None else classes
        return self.data.dataset.batches(
            self.bindings, size, shuffle, seed, first, last, split_seed, own, self.n_classes
        )


class _Run:
    """A session over a forward model, and what its data must look like."""

    def __init__(
        self,
        model: Any,
        loss: str,
        optimizer: tuple,
        names: dict[str, Any],
        seed: int,
        checkpoint: str | None,
        options: SessionOptions,
    ) -> None:
        forward = load_model(model)
        self.label, self.bind, self.scale = names["label"], names["bind"], names["scale"]
        kind, self.task = _LOSSES[loss]
        self.outputs = forward.output_names()
        scores = names["loss_input"] or self.outputs[0]
        terms = [] if kind == 0 else [(kind, 1.0, scores, names["target"], 0)]
        extra = [] if kind == 0 else [scores, *(name for name in self.outputs if name != scores)]
        built = _core.Artifacts.generate(
            forward, terms, optimizer, names["trainable"], names["frozen"], extra, 0, False, seed, None
        )
        loaded = None if checkpoint is None else _core.Checkpoint.load(checkpoint)
        self.state, self.session = built.session(
            loaded, options.intra_op_num_threads, options.use_deterministic_compute, options.memory_max
        )
        self.inputs = self._list_inputs(built, set(forward.input_names()))
        targets = [i for i, one in enumerate(self.inputs) if one.is_target]
        self.metric_input = targets[0] if targets else _UNKNOWN
        all_outputs = self.session.output_names(True)
        self.metric_output = all_outputs.index(scores) if kind != 0 else _UNKNOWN
        shape = built.value_info(scores)[1]
        self.n_classes = max(shape[1], 0) if loss == "cross-entropy" and shape and len(shape) > 1 else 0

    def _list_inputs(self, built: _core.Artifacts, forward: set[str]) -> list[_data.Input]:
        inputs = []
        for name in self.session.input_names(True):
            dtype, shape = built.value_info(name)
            if not shape:
                raise _core.InvalidArgument(f"input '{name}' has no batch axis")
            inputs.append(_data.Input(name, dtype, shape[1:], name not in forward))
        return inputs

    def open(self, data: Any, classes: list[str] | None = None) -> _Rows:
        opened = _data.open_data(data, self.inputs, classes)
        fields = _data.fields_of(opened, self.inputs, self.label, self.bind)
        return _Rows(opened, _data.bindings(self.inputs, fields, self.scale), self.n_classes)

    def metrics(self, values: tuple) -> dict[str, float]:
        _, loss, accuracy, mae, r2, _ = values
        known = {"accuracy": accuracy, "mae": mae, "r2": r2}
        names = _METRICS_OF_TASK[self.task] if self.metric_output != _UNKNOWN else ()
        return {"loss": loss, **{name: known[name] for name in names}}


def _choose(what: str, name: str, choices: Mapping[str, Any]) -> Any:
    if name not in choices:
        raise ValueError(f"{what} '{name}' is none of {', '.join(choices)}")
    return choices[name]


def _make_batches(
    run: _Run, rows: _Rows, validation: Any, split: float, batch_size: int, seed: int
) -> tuple[_core.Batches, _core.Batches | None]:
    if validation is not None and split:
        raise ValueError("validation and split exclude each other")
    every = rows.batches(batch_size, seed=seed, shuffle=True)
    if validation is not None:
        classes = rows.data.classes or every.class_names
        return every, run.open(validation, classes).batches(batch_size, classes=classes)
    if not split:
        return every, None
    held_out = int(every.rows * split + 0.5)
    if not 0 < held_out < every.rows:
        raise ValueError(f"split: {split:g} of {every.rows} rows leaves none to train or validate on")
    border, order = every.rows - held_out, seed + 1
    training = rows.batches(
        batch_size, seed=seed, shuffle=True, last=border, split_seed=order, classes=every.class_names
    )
    return training, rows.batches(
        batch_size, first=border, last=every.rows, split_seed=order, classes=every.class_names
    )


def _listen(run: _Run, result: TrainingResult, callbacks: Sequence[Callable[[Event], Any]]) -> Callable[[tuple], bool]:
    def on_event(values: tuple) -> bool:
        kind, epoch, epochs, batch, batches, step, rate, training, validation, is_best, path = values
        metrics = run.metrics(training)
        other = run.metrics(validation) if validation[0] > 0 else None
        event = Event(
            _EVENTS[kind], epoch + 1, epochs, batch, batches, step, rate, metrics, other, bool(is_best), path, result
        )
        if event.kind == "epoch":
            row = {"epoch": event.epoch, "step": step, "learning_rate": rate, "seconds": training[5], **metrics}
            row.update({f"val_{name}": value for name, value in (other or {}).items()})
            result.history.append(row)
            result.metrics = other or metrics
        return any([callback(event) is True for callback in callbacks])

    return on_event


def train(
    model: Any,
    data: Any,
    *,
    loss: str = "cross-entropy",
    optimizer: str = "adamw",
    learning_rate: float = 1e-3,
    epochs: int = 10,
    batch_size: int = 32,
    validation: Any = None,
    split: float = 0.0,
    label: str | None = None,
    bind: Mapping[str, str] | None = None,
    scale: float = 1.0,
    loss_input: str | None = None,
    target: str | None = None,
    trainable: Sequence[str] | None = None,
    frozen: Sequence[str] | None = None,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    clip_norm: float = 0.0,
    accumulate: int = 1,
    schedule: str = "constant",
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
    session_options: SessionOptions | None = None,
    progress: bool = True,
    callbacks: Iterable[Callable[[Event], Any]] = (),
) -> TrainingResult:
    """Train a model on data.

        result = onnxtrain.train("model.onnx", (x, labels), loss="cross-entropy", epochs=20, split=0.1)
        result.export("trained.onnx")

    Args:
        model: the forward model: a path, the bytes of a file or an onnx.ModelProto.
        data: a path or paths (.npz, .npy, CSV, IDX, each also gzipped), arrays by field name, or ``(x, target)`` in the
            order of the model's inputs. Labels may be texts.
        loss: "cross-entropy", "mse", "l1", "bce-with-logits", or "none": the first output is the loss.
        optimizer: "adamw", "sgd" or "sgd-momentum".
        learning_rate: the highest of the schedule.
        epochs: passes over the data.
        batch_size: rows of a batch.
        validation: data to validate on after each epoch, given as `data` is.
        split: part of the rows that is held out for validation instead, chosen by the seed.
        label: field of the target; else that of its name, or the last column of a CSV.
        bind: fields of other inputs: ``{"input": "field"}``; columns of a CSV as "a,b" or "first:last".
        scale: factor on the features, as 1/255 for images.
        loss_input: value of the model that the loss takes; else its first output.
        target: name for the target's input; else "labels" or "target".
        trainable, frozen: names of parameters, with * and ?; else all that can train.
        weight_decay: of adamw and sgd-momentum.
        momentum: of sgd-momentum.
        clip_norm: bound of the norm of all gradients together; 0: none.
        accumulate: batches a step; their gradients are averaged.
        schedule: "constant", "linear", "cosine", "step", "exponential" or "polynomial".
        warmup: steps over which the learning rate rises, of linear, cosine and polynomial.
        step_size, gamma: steps between two falls (step), and the factor of a fall (step, exponential).
        power: exponent of polynomial.
        end_factor: part of the learning rate that is left at the end.
        max_steps: stop after so many steps; 0: no limit.
        patience: stop after so many epochs without a better loss; 0: never.
        keep_best: end with the parameters of the best epoch.
        seed: of the order of the data, Dropout and values drawn.
        output: where the trained model is written.
        checkpoint_dir: where checkpoints are saved, every `save_every` steps or once an epoch.
        resume: go on from the checkpoint in `checkpoint_dir`, if there is one.
        session_options: threads, reproducibility, memory limit.
        progress: show how far it is.
        callbacks: functions that get each :class:`Event`; one that returns True stops the training.

    Returns:
        A :class:`TrainingResult`.
    """
    _choose("loss", loss, _LOSSES)
    kind = _choose("schedule", schedule, _SCHEDULES)
    optimizer_options = (
        _choose("optimizer", optimizer, _OPTIMIZERS),
        0.9,
        0.999,
        1e-6,
        weight_decay,
        1,
        1,
        momentum,
        0,
        clip_norm,
    )
    folder = os.fspath(checkpoint_dir) if checkpoint_dir is not None else ""
    if resume and not folder:
        raise ValueError("resume needs checkpoint_dir")
    saved = os.path.join(folder, "checkpoint") if resume else ""
    is_resumed = bool(saved) and os.path.exists(saved)
    names = {
        "loss_input": loss_input,
        "target": target,
        "trainable": trainable,
        "frozen": frozen,
        "label": label,
        "bind": bind,
        "scale": scale,
    }
    checkpoint = saved if is_resumed else None
    run = _Run(model, loss, optimizer_options, names, seed, checkpoint, session_options or SessionOptions())
    rows = run.open(data)
    training, validating = _make_batches(run, rows, validation, split, batch_size, seed)
    result = TrainingResult(run)
    result.classes = rows.data.classes or training.class_names
    updates = ((training.count - 1) // accumulate + 1) * epochs if accumulate > 0 else 0
    total = min(updates, max_steps) if max_steps > 0 else updates
    if not is_resumed:
        run.session.set_seed(seed)
    _core.set_schedule(run.session, kind, learning_rate, warmup, total, step_size, gamma, power, end_factor)
    listeners = ([Progress()] if progress else []) + list(callbacks)
    last, result.stopped = _core.train(
        run.session,
        training,
        validating,
        epochs,
        max_steps,
        accumulate,
        run.task,
        run.metric_output,
        run.metric_input,
        folder,
        save_every,
        is_resumed,
        patience,
        keep_best,
        _listen(run, result, listeners),
    )
    if not result.stopped:
        result.metrics = run.metrics(last)
    if output is not None:
        result.export(output)
    return result
