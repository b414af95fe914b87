# SPDX-License-Identifier: Apache-2.0
"""States of trainers as dicts of dicts: arrays here, tensors of the library there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from onnxtrain import _arrays, _core


# OT_STATE_* of the C headers
MODEL, OPTIMIZER, ALL = 1, 2, 63

_SHARED = "shared_optimizer_state"


def from_library(state: dict[str, Any]) -> dict[str, Any]:
    """The state with numpy arrays."""
    found = {}
    for key, value in state.items():
        if isinstance(value, dict):
            found[key] = from_library(value)
        else:
            found[key] = _arrays.to_numpy(value) if isinstance(value, _core.Tensor) else value
    return found


def weights(state: dict[str, Any]) -> dict[str, Any]:
    """The weights by name; torch tensors where torch is loaded, else numpy arrays."""
    make = _arrays.to_torch if "torch" in sys.modules else _arrays.to_numpy
    groups = state.get("model", {}).values()
    return {name: make(tensor) for group in groups for name, tensor in group.items()}


def to_library(state: Any, where: str = "the state") -> dict[str, Any]:
    """The state with tensors. Arrays may be of any kind; bytes are text, as files in HDF5 give it."""
    if not isinstance(state, dict):
        raise _core.InvalidType(f"{where} is {type(state).__name__}, expected a dict")
    found: dict[str, Any] = {}
    for key, value in state.items():
        place = f"{where}[{key!r}]"
        if isinstance(value, dict):
            found[key] = to_library(value, place)
        elif isinstance(value, (bytes, np.bytes_)):
            found[key] = value.decode()
        elif isinstance(value, (bool, int, float, str)):
            found[key] = value
        elif isinstance(value, (list, tuple)) and all(isinstance(item, (int, np.integer)) for item in value):
            found[key] = [int(item) for item in value]
        elif isinstance(value, np.generic):
            found[key] = value.item()
        else:
            found[key] = _arrays.to_tensor(value, place)
    return found


def by_names(state: dict[str, Any]) -> dict[str, Any]:
    """Parameters, and what the optimizer has of them as "Moment_1_<parameter>"."""
    found = {name: value for group in state["model"].values() for name, value in group.items()}
    for parameter, values in state["optimizer"].items():
        suffix = "" if parameter == _SHARED else f"_{parameter}"
        found.update({f"{key}{suffix}": value for key, value in values.items()})
    return found


def optimizer_name(state: dict[str, Any]) -> str | None:
    """Whose moments the state has; None: it does not say, or has none."""
    options = state.get("trainer_options")
    return options.get("optimizer_name") if "optimizer" in state and isinstance(options, dict) else None
