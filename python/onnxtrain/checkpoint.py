# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of :class:`onnxtrain.ORTTrainer`: files that it goes on from, bit for bit.

They are written in HDF5, in the layout of ``onnxruntime.training``; read are also those of the library, which sessions
and ``onnxtrain train`` write.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from onnxtrain import _core, _user_dict
from onnxtrain._asserts import expect
from onnxtrain._options import open_path

if TYPE_CHECKING:
    from onnxtrain.orttrainer import ORTTrainer

__all__ = ["load_checkpoint", "save_checkpoint"]

_Path = Union[str, os.PathLike]
_USER_DICT = "onnxtrain.user_dict"  # the property of a file that has it


def save_checkpoint(
    trainer: ORTTrainer,
    path: _Path,
    user_dict: dict[Any, Any] = {},  # noqa: B006
    include_optimizer_states: bool = True,
) -> None:
    """Write a file that a trainer of the same model goes on from.

    Args:
        trainer: whose state it is.
        path: a file that is not there yet, or OSError.
        user_dict: what is handed back by :func:`load_checkpoint`; it is pickled.
        include_optimizer_states: whether moments and counters are saved, too.
    """
    expect(isinstance(user_dict, dict), f"user_dict is {type(user_dict).__name__}, expected a dict")
    text = _user_dict.encode(user_dict) if user_dict else None
    trainer._opened("save_checkpoint").save(os.fspath(path), include_optimizer_states, text, True)


def load_checkpoint(trainer: ORTTrainer, *paths: _Path, strict: bool = True, allow_pickle: bool = False) -> Any:
    """Go on from a file.

    A trainer of a module that has made no step yet goes on from it when it makes the first.

    Args:
        trainer: what takes the state over, all of it or, on failure, nothing.
        *paths: one file.
        strict: whether the file must have all parameters and moments of the trainer and no others.
        allow_pickle: whether the user's dict may have anything in it, which can run any code when it is read; else
            plain values and numpy arrays.

    Returns:
        The user's dict; an empty one where none was saved.
    """
    expect(len(paths) == 1, f"{len(paths)} files, expected 1: no state is in several")
    text = open_path(_user_dict_of, paths[0])
    found = _user_dict.decode(text, allow_pickle) if text is not None else {}  # refused before anything changes
    trainer._restore(lambda library: open_path(lambda path: library.load([path], strict), paths[0]))
    return found


def _user_dict_of(path: str) -> str | None:
    if _core.is_hdf5(path):
        try:
            return str(_core.load_hdf5(path, "user_dict")["user_dict"])
        except _core.NotFound:
            return None
    state = _core.Checkpoint.load(path, False)
    return str(state.get_property(_USER_DICT)) if _USER_DICT in state.property_names() else None
