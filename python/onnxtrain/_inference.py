"""Running models by hand, as ``onnxruntime.InferenceSession``."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._options import SessionOptions, load_model
from onnxtrain._ort_value import OrtValue, type_text

_PROVIDER = "CPUExecutionProvider"


class NodeArg:
    """An input or output of a model.

    Attributes:
        name: its name.
        type: as ONNX writes it: ``"tensor(float)"``, ``"seq(tensor(float))"``.
        shape: extents: a number, the name of a symbol, or None.
    """

    def __init__(self, model: _core.Model, name: str) -> None:
        is_sequence, dtype, shape = model.value_type(name)
        self.name: str = name
        self.type: str = f"seq({type_text(dtype)})" if is_sequence else type_text(dtype)
        self.shape: list[int | str | None] = shape if shape is not None else []

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def _writable(value: Any) -> Any:
    """The graph may change what it is fed, so an array that must not change is copied."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return value


class InferenceSession:
    """Runs any model: inference models, and training and optimizer graphs by hand.

    Args:
        path_or_bytes: the model: a path, the bytes of a file or an onnx.ModelProto.
        sess_options: threads, reproducibility, memory limit.
        providers: if given, "CPUExecutionProvider" must be among them; there is no other.
        provider_options: without effect.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        names = [p if isinstance(p, str) else p[0] for p in providers or [_PROVIDER]]
        if _PROVIDER not in names:
            raise _core.InvalidArgument(f"providers {', '.join(names)} are not built in; there is: {_PROVIDER}")
        self._options = sess_options if sess_options is not None else SessionOptions()
        model = load_model(path_or_bytes)
        self._inputs = [NodeArg(model, name) for name in model.input_names()]
        self._outputs = [NodeArg(model, name) for name in model.output_names()]
        self._runner = _core.Runner.create(
            model,
            self._options.intra_op_num_threads,
            self._options.use_deterministic_compute,
            self._options.memory_max,
        )

    def _feeds(self, input_feed: Mapping[str, Any]) -> tuple[list[list[_core.Tensor]], list[Any]]:
        missing = [one.name for one in self._inputs if one.name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        unknown = sorted(set(input_feed) - {one.name for one in self._inputs})
        if unknown:
            raise _core.InvalidArgument(f"the model has no input '{unknown[0]}'")
        feeds, given = [], []
        for one in self._inputs:
            value = input_feed[one.name]
            if "string" in one.type:
                raise _core.Unsupported(f"input '{one.name}' is {one.type}: tensors of texts cannot be run")
            values = list(value) if one.type.startswith("seq(") else [value]
            feeds.append([_arrays.to_tensor(_writable(item)) for item in values])
            given.extend(values)
        return feeds, given

    def _positions(self, output_names: Sequence[str] | None) -> list[int]:
        names = [one.name for one in self._outputs]
        for name in output_names or ():
            if name not in names:
                raise _core.InvalidArgument(f"the model has no output '{name}'")
        return [names.index(name) for name in output_names] if output_names else list(range(len(names)))

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """Compute outputs.

        Args:
            output_names: the wanted outputs; None: all.
            input_feed: arrays by the inputs' names; a list of arrays for a sequence. What the graph changes in place
                (gradient buffers, running statistics, an optimizer's params) is changed in contiguous arrays given.
            run_options: without effect.

        Returns:
            The outputs, of the kind of the inputs.

        Raises:
            ValueError: an input is missing.
            InvalidArgument: an input or output is not the model's, or does not fit.
            Unsupported: an input is of texts, or a value that cannot be computed is asked for.
        """
        feeds, given = self._feeds(input_feed)
        make = _arrays.like(given) if given else _arrays.to_numpy
        return [make(tensor) for tensor in self._runner.run(feeds, self._positions(output_names))]

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As :meth:`run`, with values as results."""
        feeds, _ = self._feeds(input_dict_ort_values)
        return [OrtValue(tensor) for tensor in self._runner.run(feeds, self._positions(output_names))]

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return self._outputs

    def get_session_options(self) -> SessionOptions:
        """The options given."""
        return self._options

    def get_providers(self) -> list[str]:
        """``["CPUExecutionProvider"]``."""
        return [_PROVIDER]
