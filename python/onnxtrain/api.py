# SPDX-License-Identifier: Apache-2.0
"""Training step by step over artifacts, as ``onnxruntime.training.api``.

state = CheckpointState.load_checkpoint("artifacts/checkpoint")
module = Module("artifacts/training_model.onnx", state, "artifacts/eval_model.onnx")
optimizer = Optimizer("artifacts/optimizer_model.onnx", module)
for x, labels in batches:
    loss = module(x, labels)
    optimizer.step()
    module.lazy_reset_grad()
module.export_model_for_inferencing("trained.onnx", ["y"])
"""

from __future__ import annotations

import os
from typing import Any, Mapping

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._core import InvalidType
from onnxtrain._named_state import Parameter, Parameters, Properties, expect  # noqa: F401  (Parameter is one of this module)
from onnxtrain._options import (
    SCHEDULES,
    ModelLike,
    SessionOptions,
    check_for_training,
    choose,
    load_model,
    memory_bytes,
    open_path,
    options_or_default,
    present_seed,
)
from onnxtrain._ort_value import OrtValue, check_device
from onnxtrain.distributed import Comm, _comm

__all__ = ["CheckpointState", "LRScheduler", "LinearLRScheduler", "Module", "Optimizer"]

_FLOAT = 1  # ONNX's number of float32


class CheckpointState:
    """Parameters, gradients, optimizer state and properties. Made by :meth:`load_checkpoint`.

    Training changes it in place: saving it at any time saves what has been trained. One :class:`Module` works on it at
    a time; a later one takes it over.
    """

    def __init__(self, state: _core.Checkpoint) -> None:
        if not isinstance(state, _core.Checkpoint):
            raise InvalidType(f"the state is {type(state).__name__}; CheckpointState.load_checkpoint() makes one")
        self._state = state
        self._rank = 0  # of the module that works on it
        self._parameters = Parameters(state)
        self._properties = Properties(state)

    @classmethod
    def load_checkpoint(
        cls, checkpoint_uri: str | os.PathLike | bytes, *, include_optimizer_state: bool = True
    ) -> CheckpointState:
        """Read a checkpoint file, complete or nominal; or its contents, given as bytes.

        Without `include_optimizer_state` a file's moments are not read: export and evaluation need none.

        Raises:
            NoSuchFile, FileError: there is no such file, or it cannot be read.
            FormatError: it is no checkpoint, or malformed.
        """
        if isinstance(checkpoint_uri, (bytes, bytearray, memoryview)):
            return cls(_core.Checkpoint.load_bytes(bytes(checkpoint_uri)))
        return cls(open_path(lambda path: _core.Checkpoint.load(path, include_optimizer_state), checkpoint_uri))

    @classmethod
    def from_arrays(cls, trainable: Mapping[str, Any], frozen: Mapping[str, Any] | None = None) -> CheckpointState:
        """A state with copies of these arrays, by the names that parameters have in the models.

        Numbers in lists become float32.
        """
        state = _core.Checkpoint.create()
        for arrays, trains in ((trainable, True), (frozen or {}, False)):
            for name, array in arrays.items():
                state.add_parameter(name, _arrays.to_tensor(array, f"parameter '{name}'", _FLOAT), trains)
        return cls(state)

    @classmethod
    def save_checkpoint(
        cls, state: CheckpointState, checkpoint_uri: str | os.PathLike, include_optimizer_state: bool = False
    ) -> None:
        """Write the state to a file, durably: the old file stays until the new one is complete.

        With `include_optimizer_state` also all that is needed to go on bit for bit: moments, step, learning rate, seed.
        Under a module over several ranks rank 0 writes it, and the others do nothing.
        """
        if expect("the state", state, CheckpointState)._rank == 0:
            state._state.save(os.fspath(checkpoint_uri), include_optimizer_state)

    def to_bytes(self, include_optimizer_state: bool = False) -> bytes:
        """What :meth:`save_checkpoint` would write, for :meth:`load_checkpoint`."""
        return self._state.to_bytes(include_optimizer_state)

    @property
    def parameters(self) -> Parameters:
        """The parameters by name."""
        return self._parameters

    @property
    def properties(self) -> Properties:
        """The user's properties by name."""
        return self._properties

    def __repr__(self) -> str:
        return f"CheckpointState({len(self.parameters)} parameters, {len(self.properties)} properties)"


class Module:
    """Train and eval steps over a training and an eval model.

    Args:
        train_model_uri: the training model: a path, the bytes of the file or an onnx.ModelProto.
        state: the parameters; used by one module at a time.
        eval_model_uri: the eval model, likewise; needed for eval steps and export.
        device: "cpu".
        session_options: threads, reproducibility, memory limit.
        comm: the ranks that train together, each on batches of its own; None: those that mpirun has started. Making the
            module, train steps and the optimizer's steps are then collective: all ranks make them, in the same order.
        zero: what of the state is cut over the ranks; 0: nothing.
        bucket_bytes: how many bytes of gradients are summed at once; 0: chosen.
        sync_batch_norm: batch normalisations take mean and variance of the batches of all ranks together, else of the
            rank's own.

    Attributes:
        training: whether a call is a train step (True at first) or an eval step.

    Raises:
        InvalidArgument: models and checkpoint do not fit together.
    """

    training: bool

    def __init__(
        self,
        train_model_uri: ModelLike,
        state: CheckpointState,
        eval_model_uri: ModelLike | None = None,
        device: str = "cpu",
        session_options: SessionOptions | None = None,
        comm: Comm | None = None,
        zero: int = 0,
        bucket_bytes: int = 0,
        sync_batch_norm: bool = False,
    ) -> None:
        options = options_or_default(session_options)
        self._comm = _comm.several(comm)
        check_device(device)
        check_for_training(options)
        self.training = True
        self._state = expect("the state", state, CheckpointState)
        model = load_model(train_model_uri)
        self._numbers = {name: model.value_info(name)[0] for name in model.input_names()}
        self._session = _core.Session.create(
            model,
            None if eval_model_uri is None else load_model(eval_model_uri),
            state._state,
            options.intra_op_num_threads,
            options.use_deterministic_compute,
            memory_bytes(options.memory_max),
            _comm.parallel(self._comm, zero, bucket_bytes, sync_batch_norm),
        )
        state._rank = 0 if self._comm is None else self._comm.rank
        self._writes = _comm.writes(self._comm, zero)
        seed = present_seed()
        if seed is not None:
            self._session.set_seed(seed)

    def __call__(self, *user_inputs: Any) -> Any:
        """Run a train step (forward and backward; gradients add up until :meth:`lazy_reset_grad`) or an eval step.

        Args:
            *user_inputs: arrays in the order of :meth:`input_names`.

        Returns:
            The outputs, of the kind of the inputs: one is returned bare, several as a tuple. The loss is first.
        """
        given = [value for value in user_inputs if value is not None]
        make = _arrays.like(given)
        names = self.input_names() + [""] * len(given)  # those that are too many are counted by the step
        tensors = [
            _arrays.to_tensor(value, f"input {i} '{name}'", self._numbers.get(name))
            for i, (name, value) in enumerate(zip(names, given))
        ]
        outputs = [make(tensor) for tensor in self._session.step(tensors, self.training)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def train(self, mode: bool = True) -> Module:
        """From now on calls are train steps (or eval steps). Returns the module."""
        self.training = mode
        return self

    def eval(self) -> Module:
        """From now on calls are eval steps. Returns the module."""
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """The next train step overwrites the gradients instead of adding to them."""
        self._session.reset_gradients()

    def scale_grad(self, factor: float) -> None:
        """Multiply the gradients: by 1 / n after n train steps, they are those of the mean of n batches."""
        self._session.scale_gradients(factor)

    def get_contiguous_gradients(self) -> OrtValue:
        """The gradients as one vector of float, in the order of the trainable parameters."""
        return OrtValue(self._session.get_gradients())

    def get_input_gradient(self, name: str) -> np.ndarray:
        """A copy of the accumulated gradient of an input that ``requires_grad`` of the artifacts named."""
        return _arrays.to_numpy(self._session.get_input_gradient(name))

    def memory(self) -> tuple[int, int]:
        """Bytes of parameters, gradients and moments, and of the largest working memory of a step so far."""
        return self._session.memory()

    def get_contiguous_parameters(self, trainable_only: bool = False) -> OrtValue:
        """The parameters as one vector of float, in the order of the training model's inputs."""
        return OrtValue(self._session.get_parameters(trainable_only))

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        """How many elements the parameters have together."""
        return self._session.parameters_size(trainable_only)

    def copy_buffer_to_parameters(self, buffer: Any, trainable_only: bool = True) -> None:
        """The reverse of :meth:`get_contiguous_parameters`. Completes a nominal state when all parameters are given."""
        self._session.set_parameters(_arrays.to_tensor(buffer, "the buffer"), trainable_only)

    def export_model_for_inferencing(
        self, inference_model_uri: str | os.PathLike, graph_output_names: list[str]
    ) -> None:
        """Write the eval model, cut to the named values, with the present parameters inside. Over several ranks rank 0
        writes it, and the others do nothing.

        Args:
            inference_model_uri: where to.
            graph_output_names: the outputs of the written model: any values of the eval model.
        """
        if not isinstance(graph_output_names, (list, tuple)):
            raise InvalidType(f"graph_output_names is {graph_output_names!r}, expected a list of names")
        if self._writes:
            self._session.export(list(graph_output_names), os.fspath(inference_model_uri), None)

    def input_names(self) -> list[str]:
        """Names of the inputs that a call takes in the present mode."""
        return self._session.input_names(self.training)

    def output_names(self) -> list[str]:
        """Names of the outputs that a call gives in the present mode."""
        return self._session.output_names(self.training)


class Optimizer:
    """Updates the parameters of a module from their gradients.

    Args:
        optimizer_uri: the optimizer model: a path, the bytes of the file or an onnx.ModelProto.
        module: whose parameters are trained.

    Moments that the checkpoint has are gone on with.
    """

    def __init__(self, optimizer_uri: ModelLike, module: Module) -> None:
        self._session = expect("the module", module, Module)._session
        self._comm = module._comm
        self._session.set_optimizer(load_model(optimizer_uri))

    def step(self) -> None:
        """Update the parameters. The gradients stay; see :meth:`Module.lazy_reset_grad`."""
        self._session.optimizer_step()

    def set_learning_rate(self, learning_rate: float) -> None:
        """The learning rate from the next step on."""
        self._session.set_learning_rate(learning_rate)

    def get_learning_rate(self) -> float:
        """The present learning rate: 0.001 until it is set."""
        return self._session.learning_rate()


class LRScheduler:
    """A learning rate as a function of the optimizer's steps, also those before a checkpoint was loaded.

    :meth:`step` may be called any number of times.

    Args:
        optimizer: whose learning rate it sets, at once and at every :meth:`step`.
        schedule: "constant", "linear", "cosine", "step", "exponential" or "polynomial".
        initial_lr: the highest learning rate.
        total_step_count: steps of the whole training, of linear, cosine and polynomial.
        warmup_step_count: steps over which the rate rises from 0, of every schedule.
        step_size, gamma: steps between two falls (step), and the factor of a fall (step, exponential).
        power: exponent of polynomial.
        end_factor: part of the learning rate that is left at the end.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedule: str,
        initial_lr: float,
        total_step_count: int = 0,
        warmup_step_count: int = 0,
        *,
        step_size: int = 1000,
        gamma: float = 0.1,
        power: float = 1.0,
        end_factor: float = 0.0,
    ) -> None:
        kind = choose("schedule", schedule, SCHEDULES)
        self._session = expect("the optimizer", optimizer, Optimizer)._session
        numbers = (initial_lr, warmup_step_count, total_step_count, step_size, gamma, power, end_factor)
        _core.set_schedule(self._session, (kind, *numbers))

    def step(self) -> None:
        """Set the learning rate for the next optimizer step."""
        self._session.schedule_step()


class LinearLRScheduler(LRScheduler):
    """A learning rate that rises from 0 to `initial_lr` over the warm-up, then falls to 0 at `total_step_count`.

    Args:
        optimizer: whose learning rate it sets, at once and at every :meth:`step`.
        warmup_step_count: steps of the warm-up.
        total_step_count: steps of the whole training.
        initial_lr: the highest learning rate.
    """

    def __init__(self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float) -> None:
        super().__init__(optimizer, "linear", initial_lr, total_step_count, warmup_step_count)
