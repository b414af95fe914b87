"""Data for training: what is given becomes a dataset, and its fields are bound to the model's inputs."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from onnxtrain import _arrays, _core

_F64, _STRING = 11, 8
_FLOATS = (1, 10, 11, 16)
_FIND_HEADER = -1


class Input(NamedTuple):
    """An input of the training model; `shape` is of one row."""

    name: str
    dtype: int
    shape: tuple[int, ...]
    is_target: bool


class Data(NamedTuple):
    """A dataset, and the names of the classes that its labels were texts of."""

    dataset: _core.Dataset
    is_csv: bool
    classes: list[str] | None


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def _of_paths(paths: Sequence[Any]) -> Data:
    dataset = _core.Dataset.open([os.fspath(path) for path in paths], _FIND_HEADER)
    fields = dataset.fields()
    is_csv = bool(fields) and all(shape == () and dtype in (_F64, _STRING) for _, dtype, shape in fields)
    return Data(dataset, is_csv, None)


def _named(data: Any, inputs: Sequence[Input]) -> dict[str, Any]:
    """(x, y) or (x, y, ...): the model's inputs in order, the target last."""
    names = [i.name for i in inputs if not i.is_target] + [i.name for i in inputs if i.is_target]
    flat = [a for part in data for a in (part if isinstance(part, (tuple, list)) and len(part) else [part])]
    arrays = list(data) if len(data) == len(names) else flat
    if len(arrays) != len(names):
        raise ValueError(
            f"{len(arrays)} arrays are given, the model and its loss take {len(names)}: {', '.join(names)}"
        )
    return dict(zip(names, arrays))


def _classes_of(array: np.ndarray, classes: list[str] | None) -> tuple[np.ndarray, list[str]]:
    names = sorted({str(text) for text in array.ravel()}) if classes is None else classes
    numbers = {name: i for i, name in enumerate(names)}
    unknown = next((str(text) for text in array.ravel() if str(text) not in numbers), None)
    if unknown is not None:
        raise ValueError(f"'{unknown}' is no known class")
    return np.array([numbers[str(text)] for text in array.ravel()], np.int64).reshape(array.shape), names


def _of_arrays(arrays: Mapping[str, Any], classes: list[str] | None) -> Data:
    tensors = []
    for name, value in arrays.items():
        array = value if hasattr(value, "__dlpack__") or hasattr(value, "_tensor") else np.asarray(value)
        if isinstance(array, np.ndarray) and array.dtype.kind in "OUS":
            array, classes = _classes_of(array, classes)
        tensors.append(_arrays.to_tensor(array))
    return Data(_core.Dataset.from_tensors([str(name) for name in arrays], tensors), False, classes)


def open_data(data: Any, inputs: Sequence[Input], classes: list[str] | None = None) -> Data:
    """A dataset from a path, paths, a mapping of arrays by name, or a tuple of arrays in the order of the inputs."""
    if _is_path(data):
        return _of_paths([data])
    if isinstance(data, Mapping):
        return _of_arrays(data, classes)
    if isinstance(data, (list, tuple)) and data and all(_is_path(item) for item in data):
        return _of_paths(data)
    if isinstance(data, (list, tuple)):
        return _of_arrays(_named(data, inputs), classes)
    raise TypeError(f"data is {type(data).__name__}, expected a path, paths, a dict of arrays or (x, y)")


# ---- which field an input takes ----


def _ranges(positions: Sequence[int]) -> str:
    """Columns as the library takes them: ``"#0:#3,#5:#5"``."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][1] == position - 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ",".join(f"#{first}:#{last}" for first, last in runs)


def _take_rest(taken: dict[str, str], data: Data, inputs: Sequence[Input]) -> None:
    """Inputs without a field: of a CSV, one takes all columns that are left; of arrays, each takes the next."""
    fields = data.dataset.fields()
    left = [i for i, field in enumerate(fields) if field[0] not in taken.values() and field[2] is not None]
    for one in inputs:
        if one.name in taken or not left:
            continue
        taken[one.name] = _ranges(left) if data.is_csv else fields[left[0]][0]
        left = [] if data.is_csv else left[1:]


def fields_of(data: Data, inputs: Sequence[Input], label: str | None, bind: Mapping[str, str] | None) -> dict[str, str]:
    """The field of every input: as `bind` says, by its name, else what is left."""
    names = [name for name, _, _ in data.dataset.fields()]
    taken = dict(bind or {})
    for name in taken:
        if all(name != one.name for one in inputs):
            raise ValueError(f"bind: there is no input '{name}'")
    targets = [one.name for one in inputs if one.is_target]
    if label is not None:
        if not targets:
            raise ValueError("label: the model has no target input")
        if label not in names:
            raise ValueError(f"label: the data has no field '{label}'")
        taken.setdefault(targets[0], label)
    for one in inputs:
        if one.name in names:
            taken.setdefault(one.name, one.name)
    if data.is_csv and len(targets) == 1:
        taken.setdefault(targets[0], names[-1])
    _take_rest(taken, data, inputs)
    for one in inputs:
        if one.name not in taken:
            raise ValueError(f"nothing in the data is left for input '{one.name}'; bind={{'{one.name}': ...}} names it")
    return taken


def bindings(inputs: Sequence[Input], fields: Mapping[str, str], scale: float) -> list[tuple]:
    """What the library takes: name, type and shape of a row, field, factor, whether it is a class."""
    rows = []
    for one in inputs:
        is_float = one.dtype in _FLOATS
        factor = scale if is_float and not one.is_target else 1.0
        rows.append((one.name, one.dtype, one.shape, fields[one.name], factor, one.is_target and not is_float))
    return rows
