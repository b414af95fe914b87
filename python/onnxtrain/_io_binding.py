# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs bound to memory, as ``onnxruntime.IOBinding``."""

from __future__ import annotations

import math
from typing import Any, Sequence

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._ort_value import OrtValue, check_device


def _over(element_type: Any, shape: Sequence[int], buffer_ptr: int) -> OrtValue:
    """A value over memory that the caller keeps."""
    number = _arrays.number_of(element_type)
    n_bytes = math.prod(shape) * _arrays.numpy_dtype(number).itemsize
    return OrtValue(_core.Tensor.wrap(number, tuple(shape), buffer_ptr, n_bytes, None))


class IOBinding:
    """What a run reads and writes. Made by :meth:`InferenceSession.io_binding`."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}  # None: made by the run
        self._results: list[OrtValue] = []

    def _input_number(self, name: str) -> int:
        """ONNX's element type of an input."""
        numbers = {one.name: one._number for one in self._session.get_inputs()}
        if name not in numbers:
            raise _core.InvalidArgument(f"the model has no input '{name}', its inputs are {', '.join(numbers)}")
        return numbers[name]

    def _bind_input(self, name: str, value: OrtValue) -> None:
        self._input_number(name)
        self._inputs[name] = value

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Feed an array."""
        number = self._input_number(name)
        self._bind_input(name, OrtValue(_arrays.to_tensor(arr_on_cpu, f"input '{name}'", number)))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Feed a value."""
        self._bind_input(name, OrtValue(_arrays.to_tensor(ortvalue, f"input '{name}'")))

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Feed memory by its address; it must stay until the last run."""
        check_device(device_type)
        self._bind_input(name, _over(element_type, shape, buffer_ptr))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Want an output, written to memory by its address if that is given."""
        check_device(device_type)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._outputs[name] = None if buffer_ptr is None else _over(element_type, shape or (), buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Want an output, written to a value."""
        self._outputs[name] = OrtValue(_arrays.to_tensor(ortvalue, f"output '{name}'"))

    def synchronize_inputs(self) -> None:
        """Nothing: memory of the CPU is always ready."""

    def synchronize_outputs(self) -> None:
        """Nothing: memory of the CPU is always ready."""

    def _output_names(self) -> list[str]:
        if not self._outputs:
            raise _core.InvalidArgument("no output is bound")
        return list(self._outputs)

    def _take(self, results: list[_core.Tensor]) -> None:
        self._results = []
        for (name, bound), tensor in zip(self._outputs.items(), results):
            value = OrtValue(tensor)
            if bound is not None:
                try:
                    bound.update_inplace(value.numpy())
                except _core.InvalidArgument as error:
                    raise _core.InvalidArgument(f"output '{name}': {error}") from None
            self._results.append(value if bound is None else bound)

    def get_outputs(self) -> list[OrtValue]:
        """What the last run computed, in the order of binding."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The same."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The same as arrays of their own."""
        return [value.numpy().copy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forget the outputs."""
        self._outputs.clear()
        self._results.clear()
