# SPDX-License-Identifier: Apache-2.0
"""Training in one call a batch, as ``onnxruntime.training.orttrainer``.

    trainer = ORTTrainer(model, model_desc, optim.AdamConfig(lr=0.001), loss_fn, ORTTrainerOptions({...}))
    for x, label in batches:
        loss, scores = trainer.train_step(x, label)
    trainer.save_as_onnx("trained.onnx")
"""

from __future__ import annotations

import inspect
import json
import math
import os
from enum import IntEnum
from typing import Any, Callable, Sequence

from onnxtrain import _arrays, _config, _core, _torch_export
from onnxtrain._asserts import InvalidUse, expect
from onnxtrain._options import ModelLike, SessionOptions, load_model, memory_bytes, present_seed
from onnxtrain._step_info import TrainStepInfo
from onnxtrain.amp.loss_scaler import DynamicLossScaler, LossScaler
from onnxtrain.model_desc_validation import _ORTTrainerModelDesc, dtype_of
from onnxtrain.optim.config import _OptimizerConfig
from onnxtrain.optim.lr_scheduler import _LRScheduler, is_built_in
from onnxtrain.orttrainer_options import ORTTrainerOptions

__all__ = ["ORTTrainer", "TrainStepInfo"]

_LOSS_FN_PARAMETERS = 2  # prediction and label


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
    except _core.InvalidArgument as error:
        if isinstance(error, InvalidUse):
            raise
        raise InvalidUse(str(error)) from None


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
        self._torch_model = model if is_module else None
        self._train_step_info = TrainStepInfo(optim_config)
        self._fetches: list[str] = []
        self._trainer: _core.Trainer | None = None
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

    def _scaler(self) -> _core.LossScaler | None:
        scaler: LossScaler | None = self.options.mixed_precision.loss_scaler
        if scaler is None:
            return None
        if isinstance(scaler, DynamicLossScaler):
            return scaler._scaler
        return _core.LossScaler.create(scaler.loss_scale, False, 1, scaler.loss_scale, scaler.loss_scale)

    def _open(self, model: Any, frozen: Sequence[str]) -> _core.Trainer:
        forward = load_model(model)
        self._describe_types(forward)
        json_text = self._configuration(self._taken_description(), frozen)
        session = _session(self.options.session_options)
        self._trainer = _asserting(
            _core.Trainer.create, forward, json_text, self._schedule(), self._scaler(), session
        )
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

    def eval_step(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate a batch: nothing changes, and Dropout is off.

        Arguments and result are those of :meth:`train_step`; fetches come in the order of the description.
        """
        return self._step(args, kwargs, False)
