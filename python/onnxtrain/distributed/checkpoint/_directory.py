# SPDX-License-Identifier: Apache-2.0
"""Checkpoint directories, as ``torch.distributed.checkpoint`` saves and loads them."""

from __future__ import annotations

import atexit
import enum
import os
import re
import sys
from typing import Any

import numpy as np

from onnxtrain import _arrays, _core
from onnxtrain.distributed import Comm, ShardedTensor, _comm
from onnxtrain.distributed.checkpoint.state_dict import _from_dtensor, _is_dtensor, _to_library

_ONLY_ITEM = "state"  # of state dicts that do not consist of dicts


class AsyncCheckpointerType(enum.Enum):
    """What writes while the training goes on: a thread, and nothing else."""

    THREAD = "thread"
    PROCESS = "process"


# ---- what is given ----


def _refuse(**given: Any) -> None:
    """What PyTorch's functions take besides."""
    for name, (value, usual) in given.items():
        if value is not usual:
            raise _core.InvalidArgument(f"{name} is {value!r}, expected {usual!r}: files here have one format")


def _path(checkpoint_id: Any) -> str:
    if not isinstance(checkpoint_id, (str, os.PathLike)):
        raise _core.InvalidType(f"checkpoint_id is {type(checkpoint_id).__name__}, expected the path of a directory")
    return os.path.normpath(os.fspath(checkpoint_id))


def _step(path: str) -> int:
    """The number that the name ends with."""
    digits = re.search(r"\d{1,18}$", path)
    return int(digits[0]) if digits else 0


def _ranks(process_group: Comm | None, no_dist: bool, **given: Any) -> Comm | None:
    """Those of a call, which agree that each can do what it is given."""
    comm = None if no_dist else _comm.several(process_group)
    with _comm.together(comm):
        _refuse(**given)
    return comm


def _is_stateful(value: Any) -> bool:
    return callable(getattr(value, "state_dict", None)) and callable(getattr(value, "load_state_dict", None))


def _states(state_dict: Any) -> dict[str, Any]:
    """The state dict, with the states of the objects that have one."""
    if not isinstance(state_dict, dict):
        raise _core.InvalidType(f"state_dict is {type(state_dict).__name__}, expected a dict")
    return {name: value.state_dict() if _is_stateful(value) else value for name, value in state_dict.items()}


def _items(tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Trees of a directory by their names."""
    return tree if all(isinstance(value, dict) for value in tree.values()) else {_ONLY_ITEM: tree}


# ---- into memory that is there ----


class _Targets:
    """Arrays that are read into; what the library cannot read into directly is copied afterwards."""

    def __init__(self) -> None:
        self._copies: list[tuple[Any, _core.Tensor]] = []

    def tree(self, value: Any, place: str) -> Any:
        """As the library takes it."""
        if isinstance(value, dict):
            return {key: self.tree(one, f"{place}[{key!r}]") for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.tree(one, f"{place}[{i}]") for i, one in enumerate(value)]
        if isinstance(value, ShardedTensor):
            parts = [(at, self._tensor(array, place)) for at, array in value.local_shards]
            return (_arrays.number_of(value.dtype), value.size(), parts)
        if _is_dtensor(value):
            return _from_dtensor(value, place, self._tensor)
        if isinstance(value, np.ndarray) or _arrays.is_torch(value):
            return self._tensor(value, place)
        return _to_library(value, place)

    def _tensor(self, array: Any, place: str) -> _core.Tensor:
        is_torch = _arrays.is_torch(array)
        source = array.detach() if is_torch else array
        if not is_torch and not array.flags.writeable:
            raise _core.InvalidArgument(f"{place} cannot be written")
        tensor = _arrays.to_tensor(source, place)
        if tensor.address != (array.data_ptr() if is_torch else array.ctypes.data):
            self._copies.append((source, tensor))
        return tensor

    def finish(self) -> None:
        for array, tensor in self._copies:
            array[...] = _arrays.like([array])(tensor)


def _merged(old: Any, new: Any) -> Any:
    """What a value of the state dict becomes; its arrays have been read into."""
    if isinstance(new, dict):
        for name, value in new.items():
            old[name] = _merged(old.get(name), value)
        return old
    if isinstance(new, list):
        olds = old if isinstance(old, (list, tuple)) and len(old) == len(new) else [None] * len(new)
        values = [_merged({} if one is None and isinstance(n, dict) else one, n) for one, n in zip(olds, new)]
        return tuple(values) if isinstance(old, tuple) else values
    return old if isinstance(new, (_core.Tensor, tuple)) else new


# ---- public ----


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Comm | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Write a state dict into a directory. Collective: each rank gives the parts that it has.

        model, optim = get_state_dict(module, optimizer)
        save({"model": model, "optim": optim}, checkpoint_id="run/step-100")

    Args:
        state_dict: dicts of dicts with arrays, :class:`onnxtrain.distributed.ShardedTensor`, numbers, texts, bytes, None
            and lists of them; an object with ``state_dict()`` and ``load_state_dict()`` stands for its state.
        checkpoint_id: the directory; one that is there is replaced, at once. A number at the end is its step.
        storage_writer, planner: None.
        process_group: the ranks; None: those that mpirun has started, or this process alone.
        no_dist: this process alone, also under mpirun.
        use_collectives: True.
    """
    given = {"storage_writer": (storage_writer, None), "planner": (planner, None), "use_collectives": (use_collectives, True)}
    _start(state_dict, checkpoint_id, _ranks(process_group, no_dist, **given), True)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Comm | None = None,
    no_dist: bool = False,
) -> None:
    """Fill a state dict from a directory that any number of ranks has written. Collective.

        model, optim = get_state_dict(module, optimizer)
        load({"model": model, "optim": optim}, checkpoint_id="run/step-100")
        set_state_dict(module, optimizer, model_state_dict=model, optim_state_dict=optim)

    Args:
        state_dict: what is wanted: arrays and parts of arrays are read into, other values become those of the directory.
            What it does not name is not read.
        checkpoint_id: the directory, or one whose file ``latest`` names it.
        storage_reader, planner: None.
        process_group, no_dist: as for :func:`save`.
    """
    comm = _ranks(process_group, no_dist, storage_reader=(storage_reader, None), planner=(planner, None))
    with _comm.together(comm):
        states, targets = _states(state_dict), _Targets()
        trees = targets.tree(_items(states), "state_dict")
        found = _core.shards_load(None if comm is None else comm._comm, _path(checkpoint_id), trees)
        targets.finish()
        _merged(_items(states), found)
        for name, value in state_dict.items():
            if _is_stateful(value):
                value.load_state_dict(states[name])
            else:
                state_dict[name] = states[name]


class SaveFuture:
    """A save that goes on. Its methods are collective."""

    def __init__(self, save: _core.Save, comm: Comm | None) -> None:
        self._save: _core.Save | None = save
        self._comm = comm
        self._failure: Exception | None = None

    def _end(self, step: Any) -> bool:
        if self._save is None:
            return True
        try:
            if step(self._save) is False:
                return False
        except _core.Error as error:
            self._failure = error
        self._save = None
        _under_way.remove(self)
        return True

    def done(self) -> bool:
        """Whether the directory is there, or the save has failed."""
        return self._end(_core.Save.poll)

    def exception(self) -> Exception | None:
        """Wait for the end; why it has failed, or None."""
        self._end(_core.Save.wait)
        return self._failure

    def result(self) -> None:
        """Wait for the end; raises what it has failed with."""
        failure = self.exception()
        if failure is not None:
            raise failure


_under_way: list[SaveFuture] = []


def _start(state_dict: dict[str, Any], checkpoint_id: Any, comm: Comm | None, waits: bool) -> _core.Save:
    for earlier in [one for one in _under_way if one._comm is comm]:
        earlier.exception()  # one after the other; who has it is told
    with _comm.together(comm):
        path, trees = _path(checkpoint_id), _to_library(_items(_states(state_dict)), "state_dict")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        return _core.Save.start(None if comm is None else comm._comm, path, trees, _step(path), waits)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Comm | None = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> SaveFuture:
    """As :func:`save`, while the caller goes on: what this rank writes is copied before it returns.

    The directory appears with ``done()`` or ``result()`` of what is returned, with the next save, or when the process
    ends. A save that is under way then comes to its end first.
    """
    comm = _ranks(
        process_group,
        no_dist,
        storage_writer=(storage_writer, None),
        planner=(planner, None),
        async_checkpointer_type=(async_checkpointer_type, AsyncCheckpointerType.THREAD),
        async_stager=(async_stager, None),
        use_collectives=(use_collectives, True),
    )
    future = SaveFuture(_start(state_dict, checkpoint_id, comm, False), comm)
    _under_way.append(future)
    return future


def _at_exit() -> None:
    """Before communicators end: this comes first, since it was registered later."""
    if _comm.has_failed():
        return
    for future in list(_under_way):
        failure = future.exception()
        if failure is not None:
            print(f"onnxtrain: a checkpoint was not saved: {failure}", file=sys.stderr)


atexit.register(_at_exit)
