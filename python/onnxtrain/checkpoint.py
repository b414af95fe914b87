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
from onnxtrain.distributed import _comm

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
    """Write a file that a trainer of the same model goes on from.

    Over several ranks all of them call it. With one path for all, rank 0 writes the whole state. With a path for each,
    such as ``checkpoint<rank>.ortcp``, every rank writes a file: with ZeRO, in the layout of ``onnxruntime.training``, what
    is its own of the state, and :func:`load_checkpoint` takes all of the files, on any number of ranks; else the whole
    state. Where one rank cannot write its file, all raise the same error, and no file stays.

    Args:
        trainer: whose state it is.
        path: a file that is not there yet, or OSError.
        user_dict: what is handed back by :func:`load_checkpoint`; it is pickled.
        include_optimizer_states: whether moments and counters are saved, too.
    """
    with _comm.together(trainer._comm):
        expect(isinstance(user_dict, dict), f"user_dict is {type(user_dict).__name__}, expected a dict")
        text = _user_dict.encode(user_dict) if user_dict else None
        trainer._opened("save_checkpoint").save(os.fspath(path), include_optimizer_states, text, True)


def load_checkpoint(trainer: ORTTrainer, *paths: _Path, strict: bool = True, allow_pickle: bool = False) -> Any:
    """Go on from a file, or from all that the ranks of a distributed training have saved, each of which names all.

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
    with _comm.together(trainer._comm):
        expect(len(paths) > 0, "no file is given, expected 1, or all of a state that is in several")
        names = [os.fspath(path) for path in paths]
        text = open_path(_user_dict_of, names[0]) if len(names) == 1 else _user_dict_of_ranks(names)
        found = _user_dict.decode(text, allow_pickle) if text is not None else {}  # refused before anything changes
        trainer._restore(lambda library: open_path(lambda path: library.load(names, strict), names[0]))
    return found


def _user_dict_of_ranks(paths: list[str]) -> str | None:
    """That of the first file that has one."""
    found = None
    for path in paths:
        if os.path.exists(path) and not _core.is_hdf5(path):  # as the library writes files: each of a whole state
            raise InvalidUse(f"{len(paths)} files, expected 1: {path} is not in HDF5, as those of several ranks are")
        try:
            text = open_path(_user_dict_of, path)
        except _core.FormatError as error:
            raise InvalidUse(f"{len(paths)} files, expected 1: {error}") from None
        found = text if found is None else found
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
