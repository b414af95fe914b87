# SPDX-License-Identifier: Apache-2.0
"""Data for training: what is given becomes a dataset, and its fields are bound to the model's inputs."""

from __future__ import annotations

import os
from typing import Any, Container, Mapping, NamedTuple, Sequence

import numpy as np

from onnxtrain import _arrays, _core


class Data(NamedTuple):
    """A dataset, and the names of the classes that its labels were texts of."""

    dataset: _core.Dataset
    classes: list[str] | None


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def _named(data: Any, names: Sequence[str]) -> dict[str, Any]:
    """(x, y) or (x, y, ...): the model's inputs in order, the targets last."""
    flat = [a for part in data for a in (part if isinstance(part, (tuple, list)) and len(part) else [part])]
    arrays = list(data) if len(data) == len(names) else flat
    if len(arrays) != len(names):
        raise _core.InvalidArgument(
            f"{len(arrays)} arrays are given, the model and its loss take {len(names)}: {', '.join(names)}"
        )
    return dict(zip(names, arrays))


def _is_missing(label: Any) -> bool:
    return label is None or label != label or str(label).strip() == ""  # NaN is not itself


def _classes_of(name: str, array: np.ndarray, classes: list[str] | None) -> tuple[np.ndarray, list[str]]:
    missing = next((i for i, label in enumerate(array.ravel()) if _is_missing(label)), None)
    if missing is not None:
        row = missing // max(array.size // len(array), 1)
        raise _core.InvalidArgument(f"data: array '{name}', row {row + 1}: is missing")
    names = sorted({str(text) for text in array.ravel()}) if classes is None else classes
    numbers = {name: i for i, name in enumerate(names)}
    unknown = next((str(text) for text in array.ravel() if str(text) not in numbers), None)
    if unknown is not None:
        raise _core.InvalidArgument(f"'{unknown}' is not a known class")
    return np.array([numbers[str(text)] for text in array.ravel()], np.int64).reshape(array.shape), names


def _of_arrays(arrays: Mapping[str, Any], features: Container[str], classes: list[str] | None) -> Data:
    tensors = []
    for name, value in arrays.items():
        array = value if hasattr(value, "__dlpack__") or hasattr(value, "_tensor") else np.asarray(value)
        if isinstance(array, np.ndarray) and array.dtype.kind in "OUS":
            if name in features:
                raise _core.InvalidArgument(f"data: array '{name}' holds {array.dtype}, the model takes numbers there")
            array, classes = _classes_of(name, array, classes)
        tensors.append(_arrays.to_tensor(array))
    return Data(_core.Dataset.from_tensors([str(name) for name in arrays], tensors), classes)


def open_data(
    data: Any,
    names: Sequence[str],
    features: Container[str],
    header: int,
    max_unpacked: int,
    classes: list[str] | None = None,
) -> Data:
    """A dataset from a path, paths, a mapping of arrays by name, or a tuple of arrays in the order of the inputs.

    Args:
        names: of the inputs, those of targets last.
        features: of the inputs that are no targets, which take no texts.
        header: whether a CSV's first row names its columns: -1, 0 or 1 as ot_dataset_options says.
        max_unpacked: bytes a packed file may become; 0: a thousand times its size.
        classes: of labels that are texts.
    """
    paths = [data] if _is_path(data) else data
    if isinstance(data, Mapping):
        return _of_arrays(data, features, classes)
    if isinstance(paths, (list, tuple)) and paths and all(_is_path(item) for item in paths):
        return Data(_core.Dataset.open([os.fspath(path) for path in paths], header, max_unpacked), None)
    if isinstance(data, (list, tuple)):
        return _of_arrays(_named(data, names), features, classes)
    raise _core.InvalidType(f"data is {type(data).__name__}, expected a path, paths, a dict of arrays or (x, y)")
