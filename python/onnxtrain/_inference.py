# SPDX-License-Identifier: Apache-2.0
"""Running models by hand, as ``onnxruntime.InferenceSession``."""

from __future__ import annotations

import warnings
from typing import Any, Mapping, Sequence

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._io_binding import IOBinding
from onnxtrain._options import (
    PROVIDER,
    ModelLike,
    SessionOptions,
    did_you_mean,
    load_model,
    memory_bytes,
    options_or_default,
)
from onnxtrain._ort_value import OrtValue, type_text


class NodeArg:
    """An input or output of a model.

    Attributes:
        name: its name.
        type: as ONNX writes it: ``"tensor(float)"``, ``"seq(tensor(float))"``.
        shape: extents: a number, the name of a symbol, or None.
    """

    __slots__ = ("_is_sequence", "_number", "name", "shape", "type")

    def __init__(self, model: _core.Model, name: str) -> None:
        is_sequence, self._number, shape = model.value_type(name)
        self._is_sequence = bool(is_sequence)
        self.name: str = name
        self.type: str = f"seq({type_text(self._number)})" if is_sequence else type_text(self._number)
        self.shape: list[int | str | None] = shape if shape is not None else []

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """What a model file says about itself.

    Attributes:
        producer_name, domain, description, graph_name, graph_description: texts, "" where it says nothing.
        version: of the model, as its maker counts.
        custom_metadata_map: further texts by key.
    """

    __slots__ = (
        "custom_metadata_map",
        "description",
        "domain",
        "graph_description",
        "graph_name",
        "producer_name",
        "version",
    )
    producer_name: str
    domain: str
    description: str
    graph_name: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]

    def __init__(self, model: _core.Model) -> None:
        for name, value in model.about().items():
            setattr(self, name, value)
        self.custom_metadata_map = {key: model.metadata(key) or "" for key in model.metadata_keys()}


def _writable(tensor: _core.Tensor) -> _core.Tensor:
    """The graph may change what it is fed, so an array that must not change is copied."""
    array = tensor.owner
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return _arrays.to_tensor(array.copy())
    return tensor


def _check_providers(providers: Sequence[Any] | None) -> None:
    for one in providers or ():
        name = one if isinstance(one, str) else one[0] if isinstance(one, tuple) and one else None
        if not isinstance(name, str) or isinstance(providers, str):
            raise _core.InvalidArgument(f"providers: {one!r}, expected a list of names or (name, options)")
    names = [one if isinstance(one, str) else one[0] for one in providers or [PROVIDER]]
    if PROVIDER not in names:
        warnings.warn(f"providers {', '.join(names)} are not built in; the model runs on {PROVIDER}", stacklevel=4)


class InferenceSession:
    """Runs any model: inference models, and training and optimizer graphs by hand.

    Args:
        path_or_bytes: the model: a path, the bytes of a file or an onnx.ModelProto.
        sess_options: threads, reproducibility, memory limit.
        providers: "CPUExecutionProvider" is the only one there is; a list without it is warned of.
        provider_options: without effect.

    Raises:
        NoSuchFile, FormatError: there is no such file, or it is no model.
        Unsupported: the model has operators, or types, that onnxtrain has not.
    """

    def __init__(
        self,
        path_or_bytes: ModelLike,
        sess_options: SessionOptions | None = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.set_providers(providers, provider_options)
        self._options = options_or_default(sess_options)
        model = load_model(path_or_bytes)
        self._inputs = [NodeArg(model, name) for name in model.input_names()]
        self._outputs = [NodeArg(model, name) for name in model.output_names()]
        self._metadata = ModelMetadata(model)
        self._runner = _core.Runner.create(
            model,
            self._options.intra_op_num_threads,
            self._options.use_deterministic_compute,
            memory_bytes(self._options.memory_max),
        )

    def _feeds(self, input_feed: Mapping[str, Any]) -> list[list[_core.Tensor]]:
        if not isinstance(input_feed, Mapping):
            found = type(input_feed).__name__
            raise _core.InvalidType(f"input_feed is {found}, expected a dict of arrays by the inputs' names")
        missing = [one.name for one in self._inputs if one.name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        unknown = sorted(set(input_feed) - {one.name for one in self._inputs})
        if unknown:
            names = ", ".join(f"'{one.name}'" for one in self._inputs)
            hint = did_you_mean(unknown[0], (one.name for one in self._inputs))
            raise _core.InvalidArgument(
                f"the model has no input '{unknown[0]}', its inputs are {names or 'none'}{hint}"
            )
        return [self._feed(one, input_feed[one.name]) for one in self._inputs]

    def _feed(self, one: NodeArg, value: Any) -> list[_core.Tensor]:
        values = list(value) if one._is_sequence else [value]
        return [_writable(_arrays.to_tensor(item, f"input '{one.name}'", one._number)) for item in values]

    def _run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[_core.Tensor]:
        if isinstance(output_names, str):
            raise _core.InvalidType(f"output_names is '{output_names}', expected a list of names or None")
        names = [one.name for one in self._outputs]
        for name in output_names or ():
            if name not in names:
                known = ", ".join(f"'{one}'" for one in names)
                hint = did_you_mean(name, names)
                raise _core.InvalidArgument(f"the model has no output '{name}', its outputs are {known}{hint}")
        wanted = list(output_names or names)
        distinct = list(dict.fromkeys(wanted))
        tensors = self._runner.run(self._feeds(input_feed), [names.index(name) for name in distinct])
        return [tensors[distinct.index(name)] for name in wanted]

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
            The outputs, in the order of the names: torch tensors when an input is one, else numpy arrays; texts are always
            arrays of str.

        Raises:
            ValueError: an input is missing.
            InvalidArgument: an input or output is not the model's, or does not fit.
            Unsupported: an operator does not take the types of its inputs, such as texts.
        """
        tensors = self._run(output_names, input_feed)
        given = [
            one for value in input_feed.values() for one in (value if isinstance(value, (list, tuple)) else [value])
        ]
        make = _arrays.to_torch if any(map(_arrays.is_torch, given)) else _arrays.to_numpy
        return [make(tensor) for tensor in tensors]

    def run_with_ort_values(
        self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue], run_options: Any = None
    ) -> list[OrtValue]:
        """As :meth:`run`, with values as results."""
        return [OrtValue(tensor) for tensor in self._run(output_names, input_dict_ort_values)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs for :meth:`run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Compute what is bound to `iobinding`, which takes the outputs."""
        iobinding._take(self._run(iobinding._output_names(), iobinding._inputs))

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers cannot be fed."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """What the model file says about itself."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options given."""
        return self._options

    def get_providers(self) -> list[str]:
        """``["CPUExecutionProvider"]``."""
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """``{"CPUExecutionProvider": {}}``."""
        return {PROVIDER: {}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Changes nothing; a list without "CPUExecutionProvider" is warned of."""
        _check_providers(providers)

    def enable_fallback(self) -> None:
        """Changes nothing: there is one provider."""

    def disable_fallback(self) -> None:
        """Changes nothing: there is one provider."""
