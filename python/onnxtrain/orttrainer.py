# SPDX-License-Identifier: Apache-2.0
"""Training in one call a batch, as ``onnxruntime.training.orttrainer``.

    trainer = ORTTrainer(model, model_desc, optim.AdamConfig(lr=0.001), loss_fn, ORTTrainerOptions({...}))
    for x, label in batches:
        loss, scores = trainer.train_step(x, label)
    trainer.save_checkpoint("checkpoint")
    trainer.save_as_onnx("trained.onnx")
"""

from __future__ import annotations

import inspect
import json
import math
import os
import warnings
from enum import IntEnum
from typing import Any, Callable, Sequence

from onnxtrain import _arrays, _config, _core, _log, _state, _torch_export, checkpoint
from onnxtrain._asserts import InvalidUse, expect
from onnxtrain._options import ModelLike, SessionOptions, load_model, memory_bytes, present_seed
from onnxtrain._step_info import TrainStepInfo
from onnxtrain.amp.loss_scaler import DynamicLossScaler, LossScaler
from onnxtrain.distributed import Comm, _comm
from onnxtrain.model_desc_validation import (
    ALL_FINITE_IO_DESCRIPTION_NAME,
    _ORTTrainerModelDesc,
    dtype_of,
)
from onnxtrain.optim.config import _OptimizerConfig
from onnxtrain.optim.lr_scheduler import _LRScheduler, is_built_in
from onnxtrain.orttrainer_options import ORTTrainerOptions

__all__ = ["ORTTrainer", "TrainStepInfo"]

_LOSS_FN_PARAMETERS = 2  # prediction and label
_LOSS_SCALE_INPUT = "onnxtrain.loss_scale"  # of training graphs


def _hyper(values: dict[str, Any]) -> dict[str, Any]:
    """Hyper-parameters for the library. A bound at infinity is none."""
    found = {}
    for name, value in values.items():
        if isinstance(value, float) and math.isinf(value) and name in ("ratio_min", "ratio_max"):
            continue
        found[name] = int(value) if isinstance(value, (bool, IntEnum)) else _config.encodable(value)
    return found


def _optimizer(config: _OptimizerConfig) -> dict[str, Any]:
    groups = [
        {key: value for key, value in group.items() if key not in ("params", "lr")} for group in config.params
    ]
    return {
        "name": config.name,
        **_hyper(config.defaults),
        "params": [{"params": one["params"], **_hyper(group)} for one, group in zip(config.params, groups)],
    }


def _session(options: SessionOptions | None) -> tuple[int, bool, int] | None:
    if options is None:
        return None
    n_bytes = memory_bytes(options.memory_max)
    return options.intra_op_num_threads, options.use_deterministic_compute, n_bytes


def _is_onnx(model: Any) -> bool:
    return isinstance(model, (str, bytes, os.PathLike)) or hasattr(model, "SerializeToString")


def _asserting(step: Callable[..., Any], *arguments: Any) -> Any:
    """What the library refuses is an AssertionError, too."""
    try:
        return step(*arguments)
    except InvalidUse:
        raise
    except _core.InvalidArgument as error:
        raise InvalidUse(str(error)) from None


class _TrainingSession:
    """What trains, for scripts that look at its state."""

    def __init__(self, trainer: _core.Trainer) -> None:
        self._trainer = trainer

    def get_state(self) -> dict[str, Any]:
        """Parameters, moments and counters as numpy arrays, each by a name of its own."""
        return _state.by_names(_state.from_library(self._trainer.get_state(_state.MODEL | _state.OPTIMIZER)))


class ORTTrainer:
    """A training: a model, an optimizer, and one call a batch.

    Args:
        model: the model with its loss: a path, the bytes of a file or an ``onnx.ModelProto``; or a
            ``torch.nn.Module``, which is exported with the batch of the first step, and whose parameters that require
            a gradient train.
        model_desc: ``{"inputs": [(name, shape), ...], "outputs": [(name, shape, is_loss), ...]}`` in the order in which
            steps take and give them.
        optim_config: an optimizer of :mod:`onnxtrain.optim`.
        loss_fn: of a module that does not compute its loss: a function of prediction and label, the last input. The
            loss is then the first output.
        options: None: the defaults.
        comm: the ranks that train together, each on batches of its own; None: those that mpirun has started. Making the
            trainer, train steps and what changes or saves the state are then collective: all ranks make these calls, in
            the same order. Rank 0 writes files.
        sync_batch_norm: batch normalisations take mean and variance of the batches of all ranks together, else of the
            rank's own.

    Attributes:
        model_desc: the description, with types once they are known.
        optim_config, loss_fn, options: as given.
    """

    def __init__(
        self,
        model: ModelLike | Any,
        model_desc: dict[str, Any],
        optim_config: _OptimizerConfig,
        loss_fn: Callable[[Any, Any], Any] | None = None,
        options: ORTTrainerOptions | None = None,
        comm: Comm | None = None,
        sync_batch_norm: bool = False,
    ) -> None:
        expect(model is not None, "model is None, expected an ONNX model or a torch.nn.Module")
        expect(isinstance(model_desc, dict), f"model_desc is {type(model_desc).__name__}, expected a dict")
        is_config = isinstance(optim_config, _OptimizerConfig)
        expect(is_config, f"optim_config is {type(optim_config).__name__}, expected an optimizer of onnxtrain.optim")
        if loss_fn is not None:
            takes_two = callable(loss_fn) and len(inspect.signature(loss_fn).parameters) == _LOSS_FN_PARAMETERS
            expect(takes_two, f"loss_fn is {loss_fn!r}, expected a function of prediction and label")
        is_options = options is None or isinstance(options, ORTTrainerOptions)
        expect(is_options, f"options is {type(options).__name__}, expected ORTTrainerOptions")
        is_module = _torch_export.is_module(model)
        has_own_loss = not is_module and _is_onnx(model)
        expect(not has_own_loss or loss_fn is None, "loss_fn is for modules: an ONNX model has its loss inside")
        if not is_module and not has_own_loss:
            raise _core.InvalidArgument(f"model is {type(model).__name__}, expected an ONNX model or a torch.nn.Module")
        self.model_desc = _ORTTrainerModelDesc(model_desc)
        self.optim_config = optim_config
        self.loss_fn = loss_fn
        self.options = options if options is not None else ORTTrainerOptions()
        ranks = _comm.several(comm)
        self._comm = ranks if comm is None else comm
        self._sync_batch_norm = sync_batch_norm
        self._torch_model = model if is_module else None
        self._train_step_info = TrainStepInfo(optim_config)
        self._fetches: list[str] = []
        self._trainer: _core.Trainer | None = None
        self._scaler: _core.LossScaler | None = None
        self._is_mixed = False  # and outputs are to be described by what computes them
        self._deferred: Callable[[_core.Trainer], Any] | None = None  # takes a state over
        self._deferred_state: dict[str, Any] = {}
        self._proto: Any = None
        self._numbers: dict[str, int] = {}  # ONNX's of the types of inputs and outputs
        self._taken: list[int] = list(range(len(self.model_desc.inputs)))
        if not is_module:
            self._open(self._postprocessed(model), [])

    # ---- from the model to the library's trainer ----

    def _postprocessed(self, model: Any) -> Any:
        """The model after a function of the user's, if there is one."""
        function = self.options._internal_use.extra_postprocess
        if function is None:
            return model
        if not hasattr(model, "SerializeToString"):
            import onnx

            model = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        changed = function(model)
        is_model = hasattr(changed, "SerializeToString")
        expect(is_model, f"extra_postprocess gave {type(changed).__name__}, expected an ONNX model")
        return changed

    def _configuration(self, description: dict[str, Any], frozen: Sequence[str]) -> str:
        options = self.options._set_options()
        schedule = self.options.lr_scheduler
        if is_built_in(schedule):
            options["lr_scheduler"] = schedule._options()
        if frozen:
            named = options.setdefault("utils", {}).get("frozen_weights", [])
            options["utils"]["frozen_weights"] = [*named, *(name for name in frozen if name not in named)]
        if self._torch_model is not None:
            options.get("debug", {}).pop("check_model_export", None)  # it has been honoured here
        seed = present_seed()
        if seed is not None:
            options.setdefault("onnxtrain", {}).setdefault("seed", seed % 2**63)
        whole = {"model_desc": description, "optimizer": _optimizer(self.optim_config), "options": options}
        return json.dumps(whole)

    def _schedule(self) -> Callable[[], list[float]] | None:
        """Of a schedule that the library does not compute by itself."""
        schedule, info = self.options.lr_scheduler, self._train_step_info
        if not isinstance(schedule, _LRScheduler) or is_built_in(schedule):
            return None

        def rates() -> list[float]:
            schedule._step(info)
            return schedule.get_last_lr()

        return rates

    def _precision(self) -> str:
        precision = getattr(getattr(self.options, "onnxtrain", None), "precision", "f32")
        return "f16" if precision == "f32" and self.options.mixed_precision.enabled is True else precision

    def _make_scaler(self) -> _core.LossScaler | None:
        """What the library scales losses with: the scaler's own, or one that asks it."""
        if self._precision() == "f16" and self.options.mixed_precision.loss_scaler is None:
            self.options.mixed_precision.loss_scaler = DynamicLossScaler()  # whoever has the options shares it
        scaler: LossScaler | None = self.options.mixed_precision.loss_scaler
        if scaler is None:
            return None
        scaler.input_name = _LOSS_SCALE_INPUT
        self.model_desc.loss_scale_input = _LOSS_SCALE_INPUT
        self.model_desc.all_finite = ALL_FINITE_IO_DESCRIPTION_NAME
        if isinstance(scaler, DynamicLossScaler) and type(scaler).update is DynamicLossScaler.update:
            return scaler._scaler
        info = self._train_step_info

        def update(all_finite: bool) -> float:
            info.all_finite = all_finite
            scaler.update(info)
            return scaler.loss_scale

        return _core.LossScaler.of(update, scaler.loss_scale)

    def _open(self, model: Any, frozen: Sequence[str]) -> _core.Trainer:
        forward = load_model(model)
        self._describe_types(forward)
        self._scaler = self._make_scaler()
        self._is_mixed = self._precision() != "f32"
        json_text = self._configuration(self._taken_description(), frozen)
        session = _session(self.options.session_options)
        shares = _comm.parallel(self._comm, 0, 0, self._sync_batch_norm)
        self._trainer = _asserting(
            _core.Trainer.create, forward, json_text, self._schedule(), self._scaler, session, shares
        )
        if self._deferred is not None:
            self._restore(self._deferred)
        return self._trainer

    def _taken_description(self) -> dict[str, Any]:
        """Without the inputs that an exporter dropped, since nothing reads them."""
        description = self.model_desc._options()
        return {**description, "inputs": [description["inputs"][i] for i in self._taken]}

    def _describe_types(self, forward: _core.Model) -> None:
        description = self.model_desc
        names = (*forward.input_names(), *forward.output_names())
        self._numbers = {name: forward.value_info(name)[0] for name in names}
        for i, one in enumerate(description.inputs):
            if one.name in self._numbers:
                description.add_type_to_input_description(i, dtype_of(self._numbers[one.name]))
        for i, one in enumerate(description.outputs):
            if one.name in self._numbers:
                description.add_type_to_output_description(i, dtype_of(self._numbers[one.name]))

    def _open_module(self, inputs: Sequence[Any]) -> _core.Trainer:
        """Export the module with a batch."""
        expect(len(inputs) == len(self.model_desc.inputs), self._count_message(len(inputs)))
        opset = self.options._internal_use.onnx_opset_version
        exported = _torch_export.export(self._torch_model, self.loss_fn, self.model_desc, inputs, opset)
        frozen = self.options.utils.frozen_weights
        frozen += [name for name in exported.buffers if name not in frozen]
        model = self._postprocessed(exported.model)
        present = {one.name for one in model.graph.input}
        self._taken = [i for i, one in enumerate(self.model_desc.inputs) if one.name in present]
        if self.options.debug.check_model_export:
            _torch_export.check(self._torch_model, self.loss_fn, self.model_desc, inputs, exported.model)
        return self._open(model, exported.others)

    # ---- steps ----

    def _count_message(self, found: int) -> str:
        names = ", ".join(one.name for one in self.model_desc.inputs)
        return f"{found} inputs, expected {len(self.model_desc.inputs)}: {names}"

    def _inputs(self, given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Arrays in the order of the description."""
        if len(given) == 1 and isinstance(given[0], list):
            given = given[0]
        described = [one.name for one in self.model_desc.inputs]
        unknown = [name for name in named if name not in described]
        expect(not unknown, f"no input is called {', '.join(unknown)}; they are {', '.join(described)}")
        inputs = [*given, *(named[name] for name in described if name in named)]
        expect(len(inputs) == len(described), self._count_message(len(inputs)))
        return inputs

    def _step(self, given: Sequence[Any], named: dict[str, Any], is_training: bool) -> Any:
        inputs = self._inputs(given, named)
        trainer = self._trainer if self._trainer is not None else self._open_module(inputs)
        fetches = list(self._train_step_info.fetches)
        if fetches != self._fetches:
            trainer.set_fetches(fetches)
            self._fetches = fetches
        names = [self.model_desc.inputs[i].name for i in self._taken]
        tensors = [_arrays.to_tensor(inputs[i], name, self._numbers[name]) for i, name in zip(self._taken, names)]
        result = list(map(_arrays.like(inputs), _asserting(trainer.step, tensors, is_training)))
        return result[0] if len(result) == 1 else result

    def train_step(self, *args: Any, **kwargs: Any) -> Any:
        """Train on a batch.

        With ``batch.gradient_accumulation_steps`` the parameters change in every so manieth call, by the mean of the
        gradients.

        Args:
            *args: arrays in the order of the description, or one list of them.
            **kwargs: further ones by their names.

        Returns:
            The outputs as a list in the order of the description, or of the fetches; a single one by itself. The loss
            is that of this batch.
        """
        info = self._train_step_info
        info.step += 1  # schedules see the step that is under way
        scaler = self.options.mixed_precision.loss_scaler
        if scaler is not None and self._scaler is not None:
            self._scaler.loss_scale = scaler.loss_scale
        try:
            return self._step(args, kwargs, True)
        finally:
            self._look(info)

    def _look(self, info: TrainStepInfo) -> None:
        """Take over where the library stands."""
        if self._trainer is None:
            info.step = 0
            return
        info.all_finite, info.optimization_step, info.step, rate, _, _ = self._trainer.info()
        schedule = self.options.lr_scheduler
        if is_built_in(schedule) and not math.isnan(rate):
            schedule._last_lr = [rate]
        if self._is_mixed and info.step > 0:
            self._describe_computed(self._trainer)

    def _describe_computed(self, trainer: _core.Trainer) -> None:
        """Say of outputs in which type they are computed, where it is not the one that they have."""
        self._is_mixed = False  # once
        for i, one in enumerate(self.model_desc.outputs):
            number = trainer.computed_in(i)
            if number not in (0, self._numbers.get(one.name, number)):
                self.model_desc.add_type_to_output_description(i, one.dtype, self._type_of(number))

    @staticmethod
    def _type_of(number: int) -> Any:
        try:
            return dtype_of(number)
        except TypeError:  # numpy has bfloat16 only with another package
            return "bfloat16"

    def eval_step(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate a batch: nothing changes, and Dropout is off.

        Arguments and result are those of :meth:`train_step`; fetches come in the order of the description.
        """
        return self._step(args, kwargs, False)

    # ---- state ----

    def _opened(self, what: str) -> _core.Trainer:
        if self._trainer is None:
            raise _core.StateError(f"{what}() needs a trainer that has made a step: the module is exported with it")
        return self._trainer

    def _restore(self, take: Callable[[_core.Trainer], Any]) -> None:
        """Take a state over, now or when there is a model."""
        self._deferred = take
        if self._trainer is None:
            return
        self._deferred = None
        self._proto = None
        try:
            with _log.as_warnings():
                take(self._trainer)
        except _core.StateError as error:  # of another optimizer
            raise InvalidUse(str(error)) from None
        self._look(self._train_step_info)
        scaler = self.options.mixed_precision.loss_scaler
        if scaler is not None and self._scaler is not None:
            scaler.loss_scale = self._scaler.loss_scale

    def state_dict(self, pytorch_format: bool = False) -> dict[str, Any]:
        """The state: parameters, moments, counters and options.

        Before the first step of a module there is none: with a warning it is what :meth:`load_state_dict` was given.

        Args:
            pytorch_format: whether only the parameters are given, by their names: torch tensors where torch is loaded,
                else numpy arrays.

        Returns:
            Dicts of dicts with copies of the values, in the layout of ``onnxruntime.training``: "model", "optimizer",
            "trainer_options" and "train_step_info"; "onnxtrain" has what exact resuming needs besides.
        """
        if self._trainer is None:
            warnings.warn("the module has made no step yet: there is no state", stacklevel=2)
            return self._deferred_state
        if pytorch_format:
            return _state.weights(self._trainer.get_state(_state.MODEL))
        return _state.from_library(self._trainer.get_state(_state.ALL))

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take a state over, all of it or, on failure, nothing; with what it has not, the present stays.

        A trainer of a module that has made no step yet takes it when it makes the first.

        Args:
            state_dict: as :meth:`state_dict` gives it.
            strict: whether it must have all parameters and moments of the trainer and no others.
        """
        taken = _state.to_library(state_dict)
        theirs, own = _state.optimizer_name(taken), self.optim_config.name
        expect(theirs in (None, own), f"the state is that of {theirs}, the trainer has {own}")
        self._deferred_state = state_dict if self._trainer is None else {}
        self._restore(lambda trainer: trainer.set_state(taken, strict))

    def save_checkpoint(
        self,
        path: str | os.PathLike,
        user_dict: dict[Any, Any] = {},  # noqa: B006
        include_optimizer_states: bool = True,
    ) -> None:
        """Write a file to go on from: :func:`onnxtrain.checkpoint.save_checkpoint`."""
        checkpoint.save_checkpoint(self, path, user_dict, include_optimizer_states)

    def load_checkpoint(self, *paths: str | os.PathLike, strict: bool = True, allow_pickle: bool = False) -> Any:
        """Go on from a file; gives the user's dict: :func:`onnxtrain.checkpoint.load_checkpoint`."""
        return checkpoint.load_checkpoint(self, *paths, strict=strict, allow_pickle=allow_pickle)

    # ---- the trained model ----

    @property
    def _onnx_model(self) -> Any:
        """The forward model as an ``onnx.ModelProto``, as it was when it was first asked for since it was saved or
        loaded; None: there is none."""
        if self._proto is None and self._trainer is not None:
            import onnx

            model = self._trainer.export()
            self._proto = None if model is None else onnx.load_from_string(model.to_bytes().to_bytes())
        return self._proto

    @property
    def _training_session(self) -> _TrainingSession | None:
        """What trains; None before the first step of a module."""
        return None if self._trainer is None else _TrainingSession(self._trainer)

    def save_as_onnx(self, path: str | os.PathLike) -> None:
        """Write the forward model as it was given, with the parameters and running statistics as they are now.

        Before the first step of a module there is none: with a warning nothing is written.

        Args:
            path: a file; one that exists is replaced.
        """
        expect(isinstance(path, (str, os.PathLike)), f"path is {type(path).__name__}, expected a path")
        if self._trainer is None:
            warnings.warn("the module has made no step yet: there is no model", stacklevel=2)
            return
        self._proto = None
        stage = self.options.distributed.deepspeed_zero_optimization.stage
        if _comm.writes(self._comm, stage):
            self._trainer.save_as_onnx(os.fspath(path))
