# SPDX-License-Identifier: Apache-2.0
"""Dicts in HDF5 files, as ``onnxruntime.training`` keeps them: a group for every dict, a dataset for every value."""

from __future__ import annotations

import os
from typing import Any, Union

from onnxtrain import _core, _state, _user_dict

__all__ = ["from_serialized_hex", "load", "save", "to_serialized_hex"]

_Path = Union[str, os.PathLike]


def save(save_obj: dict[str, Any], path: _Path) -> None:
    """Write a new file, durably.

    Args:
        save_obj: dicts of dicts, arrays of any kind, numbers, texts and lists of whole numbers.
        path: a file that is not there yet.

    Raises:
        ValueError: it is no dict.
        TypeError: a value that HDF5 cannot hold.
        OSError: there is a file, or it cannot be written.
    """
    if not isinstance(save_obj, dict):
        raise _core.InvalidArgument(f"the object to be saved is {type(save_obj).__name__}, expected a dict")
    _core.save_hdf5(os.fspath(path), _state.to_library(save_obj, "the dict"))


def load(path: _Path, key: str | None = None) -> Any:
    """What a file has.

    Args:
        path: a file, of :func:`save` or of another program.
        key: the group or dataset that is wanted, its path joined by "/". None: all.

    Returns:
        Dicts of dicts with numpy arrays and scalars; texts are bytes. Of a dataset, its value.

    Raises:
        ValueError: there is no such file, or it is no HDF5 file.
        KeyError: it has nothing of that name.
    """
    path = os.fspath(path)
    if not _core.is_hdf5(path):
        raise _core.InvalidArgument(f"{path}: is not an HDF5 file")
    try:
        found = _core.load_hdf5(path, key)
    except _core.NotFound as error:
        raise KeyError(str(error)) from None
    found = _texts_as_bytes(_state.from_library(found))
    return next(iter(found.values())) if key else found


def _texts_as_bytes(values: dict[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if isinstance(value, dict):
            _texts_as_bytes(value)
        elif isinstance(value, str):
            values[name] = value.encode()
    return values


def to_serialized_hex(user_dict: dict[Any, Any]) -> str:
    """A dict as the hexadecimal digits of its pickle."""
    return _user_dict.encode(user_dict)


def from_serialized_hex(serialized_hex: str | bytes, allow_pickle: bool = False) -> Any:
    """What :func:`to_serialized_hex` was given.

    Args:
        serialized_hex: hexadecimal digits.
        allow_pickle: whether anything is read, which can run any code; else plain values and numpy arrays.
    """
    text = serialized_hex.decode() if isinstance(serialized_hex, bytes) else serialized_hex
    return _user_dict.decode(text, allow_pickle)
