# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries to and from the library's tensors, without a copy where that is possible."""

from __future__ import annotations

import sys
from typing import Any, Sequence

import numpy as np

from onnxtrain import _core

# ONNX's numbers of element types by numpy's names; those behind bfloat16 are of the package ml_dtypes.
NUMBERS = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}
STRING = 8
_NAMES = {number: name for name, number in NUMBERS.items()}
_FIRST_OF_ML_DTYPES = NUMBERS["bfloat16"]


class _Memory:
    """What numpy needs to make an array over a tensor's elements; the array keeps it, and so the tensor."""

    def __init__(self, tensor: _core.Tensor, typestr: str) -> None:
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "shape": tensor.shape,
            "typestr": typestr,
            "data": (tensor.address, False),
        }


def numpy_dtype(number: int) -> np.dtype:
    """The numpy type of an ONNX element type."""
    if number not in _NAMES:
        raise TypeError(f"numpy has no element type for ONNX's type {number}")
    if number < _FIRST_OF_ML_DTYPES:
        return np.dtype(_NAMES[number])
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"numpy has {_NAMES[number]} only with the package ml_dtypes") from None
    return np.dtype(getattr(ml_dtypes, _NAMES[number]))


def number_of(dtype: Any) -> int:
    """ONNX's number of a numpy type, or of that number itself."""
    if isinstance(dtype, int):
        return dtype
    name = np.dtype(dtype).name
    if np.dtype(dtype).kind in "USO":
        raise _core.InvalidType(
            f"arrays of {name} are not supported, only those of numbers: strings must become numbers first"
        )
    if name not in NUMBERS:
        raise _core.InvalidType(f"arrays of {name} are not supported")
    return NUMBERS[name]


def _texts_of(tensor: _core.Tensor) -> np.ndarray:
    strings = tensor.to_strings()
    array = np.empty(len(strings), object)
    array[:] = strings
    return array.reshape(tensor.shape)


def to_numpy(tensor: _core.Tensor) -> np.ndarray:
    """An array over the tensor's elements; of strings, an array of str."""
    if tensor.dtype == STRING:
        return _texts_of(tensor)
    if tensor.owner is not None and isinstance(tensor.owner, np.ndarray):
        return tensor.owner
    dtype = numpy_dtype(tensor.dtype)
    plain = np.dtype(f"u{dtype.itemsize}") if tensor.dtype >= _FIRST_OF_ML_DTYPES else dtype
    return np.asarray(_Memory(tensor, plain.str)).view(dtype)


def _from_numpy(array: np.ndarray) -> _core.Tensor:
    number = number_of(array.dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    array = np.require(array, requirements=("C", "A"))
    return _core.Tensor.wrap(number, array.shape, array.__array_interface__["data"][0], array.nbytes, array)


def _from_dlpack(array: Any) -> _core.Tensor:
    if hasattr(array, "detach"):  # torch: without its gradient, and in the order of its axes
        array = array.detach().contiguous()
    return _core.Tensor.from_dlpack(array.__dlpack__())


def _from_strings(array: Any, what: str) -> _core.Tensor:
    """Texts, bytes, or objects by what they are as strings; numbers are refused."""
    array = np.asarray(array, None if isinstance(array, np.ndarray) else object)
    if array.dtype.kind not in "USO":
        raise _core.InvalidArgument(f"{what or 'the argument'} is an array of {array.dtype.name}, expected strings")
    items = (one if isinstance(one, bytes) else str(one).encode() for one in array.ravel().tolist())
    return _core.Tensor.strings(array.shape, list(items))


def _foreign_value(array: Any) -> Any:
    """The inner object of an OrtValue of onnxruntime, known by its functions; None: it is none."""
    inner = getattr(array, "_ortvalue", array)
    functions = (getattr(inner, name, None) for name in ("data_type", "device_name", "is_tensor", "numpy"))
    return inner if all(map(callable, functions)) else None


def _from_value(value: Any, what: str) -> _core.Tensor:
    """By DLPack, which shares the memory, where that has the type; onnxruntime's has no bool."""
    if not value.is_tensor():
        raise _core.InvalidType(f"{what or 'the argument'} is {value.data_type()}, expected a tensor")
    shares = hasattr(value, "__dlpack__") and value.device_name().lower() == "cpu"
    if shares and value.data_type() not in ("tensor(bool)", "tensor(string)"):
        return _core.Tensor.from_dlpack(value.__dlpack__())
    array = np.asarray(value.numpy())
    return _from_strings(array, what) if value.data_type() == "tensor(string)" else _from_numpy(array)


def to_tensor(array: Any, what: str = "", number: int | None = None) -> _core.Tensor:
    """A tensor over the array's elements, or over a copy of them when they are not contiguous.

    Args:
        array: an array, an OrtValue, also of onnxruntime, or numbers in lists.
        what: named where it is no array.
        number: ONNX's element type for numbers in lists; else as numpy has it.
    """
    if isinstance(array, _core.Tensor):
        return array
    if number == STRING and isinstance(array, (np.ndarray, np.generic, str, bytes, list, tuple)):
        return _from_strings(array, what)
    if isinstance(array, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(array))
    own = getattr(array, "_tensor", None)  # OrtValue
    if isinstance(own, _core.Tensor):
        return own
    value = _foreign_value(array)
    if value is not None:
        return _from_value(value, what)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array)
    if isinstance(array, (bool, int, float, complex, list, tuple)):
        return _from_numpy(_from_list(array, what, number))
    if hasattr(array, "__array__"):
        return _from_numpy(np.asarray(array))
    raise _core.InvalidType(f"{what or 'the argument'} is {type(array).__name__}, expected an array")


def _from_list(values: Any, what: str, number: int | None) -> np.ndarray:
    try:
        return np.asarray(values, None if number is None else numpy_dtype(number))
    except (TypeError, ValueError) as error:
        raise _core.InvalidArgument(f"{what or 'a list'} cannot be made an array: {error}") from None


def is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, getattr(torch, "Tensor", ()))


def to_torch(tensor: _core.Tensor) -> Any:
    """A torch tensor over the tensor's elements; torch has no strings, which become an array of str."""
    if tensor.dtype == STRING:
        return to_numpy(tensor)
    return sys.modules["torch"].from_dlpack(tensor)


def like(given: Sequence[Any]) -> Any:
    """The function that makes results of the kind of the first array given."""
    for array in given:
        if is_torch(array):
            return to_torch
        if not isinstance(getattr(array, "_tensor", None), _core.Tensor) and _foreign_value(array) is None:
            return to_numpy
    from onnxtrain._ort_value import OrtValue

    return OrtValue
