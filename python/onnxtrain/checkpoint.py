# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of :class:`onnxtrain.ORTTrainer`: files that it goes on from, bit for bit.

They are written in HDF5, in the layout of ``onnxruntime.training``; read are also those of the library, which sessions
and ``onnxtrain train`` write.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Sequence, Union

from onnxtrain import _core, _state, _user_dict
from onnxtrain._asserts import InvalidUse, expect
from onnxtrain._options import open_path

if TYPE_CHECKING:
    from onnxtrain.orttrainer import ORTTrainer

__all__ = ["aggregate_checkpoints", "load_checkpoint", "save_checkpoint"]

_Path = Union[str, os.PathLike]
_USER_DICT = "onnxtrain.user_dict"  # the property of a file that has it


def save_checkpoint(
    trainer: ORTTrainer,
    path: _Path,
    user_dict: dict[Any, Any] = {},  # noqa: B006
    include_optimizer_states: bool = True,
) -> None:
    """Write a file that a trainer of the same model goes on from. Over several ranks rank 0 writes it, and the others do
    nothing; with ZeRO all call it, since each has a part.

    Args:
        trainer: whose state it is.
        path: a file that is not there yet, or OSError.
        user_dict: what is handed back by :func:`load_checkpoint`; it is pickled.
        include_optimizer_states: whether moments and counters are saved, too.
    """
    expect(isinstance(user_dict, dict), f"user_dict is {type(user_dict).__name__}, expected a dict")
    text = _user_dict.encode(user_dict) if user_dict else None
    opened = trainer._opened("save_checkpoint")
    if trainer._rank == 0 or trainer._is_cut():
        opened.save(os.fspath(path), include_optimizer_states, text, True)


def load_checkpoint(trainer: ORTTrainer, *paths: _Path, strict: bool = True, allow_pickle: bool = False) -> Any:
    """Go on from a file, or from all that the processes of a distributed training have saved.

    A trainer of a module that has made no step yet goes on from it when it makes the first.

    Args:
        trainer: what takes the state over, all of it or, on failure, nothing.
        *paths: one file, or several as :func:`aggregate_checkpoints` takes them.
        strict: whether the file must have all parameters and moments of the trainer and no others.
        allow_pickle: whether the user's dict may have anything in it, which can run any code when it is read; else
            plain values and numpy arrays.

    Returns:
        The user's dict; an empty one where none was saved.
    """
    expect(len(paths) > 0, "no file is given, expected 1, or all of a state that is in several")
    if len(paths) > 1:
        return _load_shards(trainer, [os.fspath(path) for path in paths], strict, allow_pickle)
    text = open_path(_user_dict_of, paths[0])
    found = _user_dict.decode(text, allow_pickle) if text is not None else {}  # refused before anything changes
    trainer._restore(lambda library: open_path(lambda path: library.load([path], strict), paths[0]))
    return found


def _load_shards(trainer: ORTTrainer, paths: list[str], strict: bool, allow_pickle: bool) -> Any:
    try:
        state = _core.aggregate(paths)
    except _core.FormatError as error:  # as the library writes files: each of a whole state
        raise InvalidUse(f"{len(paths)} files, expected 1: {error}") from None
    text = state.pop("user_dict", None)
    found = _user_dict.decode(text, allow_pickle) if text is not None else {}
    trainer._restore(lambda library: library.set_state(state, strict))
    return found


def aggregate_checkpoints(paths: Sequence[_Path], pytorch_format: bool = True) -> dict[str, Any]:
    """One state of the files that the processes of a distributed training have saved, in any order.

    They are HDF5 files as ``onnxruntime.training`` writes them with ZeRO, with layers that are split by rows or
    columns, or with both.

    Args:
        paths: all of the files.
        pytorch_format: whether only the parameters are given, by their names: torch tensors where torch is loaded,
            else numpy arrays.

    Returns:
        As :meth:`onnxtrain.ORTTrainer.state_dict` gives it.
    """
    state = _core.aggregate([os.fspath(path) for path in paths])
    return _state.weights(state) if pytorch_format else _state.from_library(state)


def _user_dict_of(path: str) -> str | None:
    if _core.is_hdf5(path):
        try:
            return str(_core.load_hdf5(path, "user_dict")["user_dict"])
        except _core.NotFound:
            return None
    state = _core.Checkpoint.load(path, False)
    return str(state.get_property(_USER_DICT)) if _USER_DICT in state.property_names() else None
