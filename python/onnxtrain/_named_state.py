# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint has by names: its parameters, and the user's properties."""

from __future__ import annotations

import operator
from typing import Any, Iterator

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain._core import InvalidType, StateError

_OWN_PROPERTIES = "onnxtrain."  # what the library itself keeps in a checkpoint


def expect(what: str, value: Any, kind: type) -> Any:
    """The value, which is of that kind."""
    if not isinstance(value, kind):
        raise InvalidType(f"{what} is {type(value).__name__}, expected {kind.__name__}")
    return value


class Parameter:
    """A parameter of a :class:`CheckpointState`."""

    def __init__(self, name: str, state: _core.Checkpoint) -> None:
        self._name = name
        self._state = state

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self._name

    @property
    def data(self) -> np.ndarray:
        """A copy of the value. Assigning overwrites the value; type and shape must be the same."""
        return _arrays.to_numpy(self._state.get_parameter(self._name))

    @data.setter
    def data(self, value: Any) -> None:
        self._state.set_parameter(self._name, _arrays.to_tensor(value, f"the value for parameter '{self._name}'"))

    @property
    def grad(self) -> np.ndarray | None:
        """A copy of the accumulated gradient; None for a frozen parameter and before there is a :class:`Module`."""
        gradient = self._state.get_gradient(self._name)
        return None if gradient is None else _arrays.to_numpy(gradient)

    @property
    def requires_grad(self) -> bool:
        """Whether the parameter is trained."""
        return self._state.parameter_trainable(self._name) == 1

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class Parameters:
    """The parameters by name, sorted. Iteration yields ``(name, Parameter)``; assignment copies a value in.

    A nominal state has names, and no parameters before their values are loaded: StateError.
    """

    def __init__(self, state: _core.Checkpoint) -> None:
        self._state = state

    def _find(self, name: str, nominal: str) -> Parameter:
        """The parameter; a state without values says `nominal`."""
        if expect("a parameter's name", name, str) not in self:
            raise KeyError(f"Parameter {name} not found.")
        if self._state.is_nominal():
            raise StateError(nominal)
        return Parameter(name, self._state)

    def __getitem__(self, name: str) -> Parameter:
        return self._find(
            name, "Cannot get parameter from a nominal state. Please load the parameter states first"
        )

    def __setitem__(self, name: str, value: Any) -> None:
        refusal = "Cannot copy parameter to a nominal state. Please load all the parameter states first"
        self._find(name, refusal).data = value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._state.parameter_trainable(name) >= 0

    def __iter__(self) -> Iterator[tuple[str, Parameter]]:
        for name in self.keys():
            yield name, self[name]

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> list[str]:
        """The names."""
        return self._state.parameter_names()

    def values(self) -> list[Parameter]:
        """The parameters in the order of their names."""
        return [self[name] for name in self.keys()]

    def items(self) -> list[tuple[str, Parameter]]:
        """Names and parameters."""
        return list(self)

    def get(self, name: str, default: Any = None) -> Any:
        """The parameter, or `default` when there is none."""
        return self[name] if name in self else default

    def __repr__(self) -> str:
        return f"Parameters({self.keys()})"


class Properties:
    """The user's values by name, saved with the checkpoint: int (64 bits), float (32 bits) or str.

    Iteration yields ``(name, value)``, sorted by name.
    """

    def __init__(self, state: _core.Checkpoint) -> None:
        self._state = state

    def __getitem__(self, name: str) -> int | float | str:
        if expect("a property's name", name, str) not in self:
            raise KeyError(f"Property {name} not found.")
        return self._state.get_property(name)

    def __setitem__(self, name: str, value: int | float | str) -> None:
        if expect("a property's name", name, str).startswith(_OWN_PROPERTIES):
            raise _core.InvalidArgument(f"property '{name}': names under '{_OWN_PROPERTIES}' are the library's")
        if isinstance(value, bytes):
            value = value.decode()
        if "\0" in name or isinstance(value, str) and "\0" in value:
            raise _core.InvalidArgument(f"property {name!r}: a text cannot contain a zero byte")
        if isinstance(value, str):
            self._state.set_string(name, value)
        elif isinstance(value, (float, np.floating)):
            self._state.set_float(name, float(value))
        elif hasattr(value, "__index__"):
            number = operator.index(value)
            if not -(2**63) <= number < 2**63:
                raise OverflowError(f"property '{name}': {number} does not fit into 64 bits")
            self._state.set_int(name, number)
        else:
            raise InvalidType(f"property '{name}' is {type(value).__name__}, expected int, float or str")

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(f"Property {name} not found.")
        self._state.remove_property(name)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __iter__(self) -> Iterator[tuple[str, int | float | str]]:
        for name in self.keys():
            yield name, self._state.get_property(name)

    def __len__(self) -> int:
        return len(self.keys())

    def keys(self) -> list[str]:
        """The names."""
        return [name for name in self._state.property_names() if not name.startswith(_OWN_PROPERTIES)]

    def values(self) -> list[int | float | str]:
        """The values in the order of their names."""
        return [value for _, value in self]

    def items(self) -> list[tuple[str, int | float | str]]:
        """Names and values."""
        return list(self)

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` when there is none."""
        return self[name] if name in self else default

    def __repr__(self) -> str:
        return f"Properties({dict(self.items())})"
