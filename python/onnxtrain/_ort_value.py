# SPDX-License-Identifier: Apache-2.0
"""OrtValue: a tensor that can be passed around and fed without a copy."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from onnxtrain import _arrays, _core

# tensor(...) as ONNX writes its types
_TYPE_NAMES = {"float32": "float", "float64": "double"}


def type_text(number: int) -> str:
    """``"tensor(float)"`` for ONNX's element type 1."""
    name = next((name for name, n in _arrays.NUMBERS.items() if n == number), "string" if number == 8 else str(number))
    return f"tensor({_TYPE_NAMES.get(name, name.replace('_', ''))})"


def check_device(device_type: str) -> None:
    if device_type.lower().split(":")[0] != "cpu":
        raise _core.InvalidArgument(f"device '{device_type}' is not built in; there is: cpu")


class OrtValue:
    """A tensor of the library.

    Made by :meth:`ortvalue_from_numpy`, :meth:`ortvalue_from_shape_and_type` and :meth:`from_dlpack`; also what steps
    give when they are fed with it. ``numpy.asarray(value)`` and ``torch.from_dlpack(value)`` share its memory.
    """

    def __init__(self, tensor: _core.Tensor, numpy_obj: np.ndarray | None = None) -> None:
        if not isinstance(tensor, _core.Tensor):
            raise _core.InvalidArgument(
                f"an OrtValue is made by its functions ortvalue_from_..., not of {type(tensor).__name__}"
            )
        self._tensor = tensor
        self._numpy_obj = numpy_obj

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value over the array's memory, or over a copy when the array is not contiguous."""
        check_device(device_type)
        if isinstance(numpy_obj, (list, tuple, int, float)):
            raise _core.InvalidType(f"numpy_obj is {type(numpy_obj).__name__}, expected an array")
        return OrtValue(_arrays.to_tensor(numpy_obj, "numpy_obj"), numpy_obj)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int] | None = None, element_type: Any = None, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A value full of zeros; `element_type` is a numpy type or ONNX's number of one."""
        check_device(device_type)
        if shape is None or element_type is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocating memory")
        return OrtValue(_core.Tensor.zeros(_arrays.number_of(element_type), tuple(shape)))

    @property
    def _ortvalue(self) -> OrtValue:
        """Itself: in the original some functions take only this inner object, so scripts reach for it."""
        return self

    @staticmethod
    def from_dlpack(array: Any) -> OrtValue:
        """A value over the memory of any object with DLPack, such as a torch tensor; or of a capsule of DLPack."""
        if type(array).__name__ == "PyCapsule":
            return OrtValue(_core.Tensor.from_dlpack(array))
        return OrtValue(_arrays.to_tensor(array))

    def numpy(self) -> np.ndarray:
        """An array over the same memory; of strings, an array of str."""
        return _arrays.to_numpy(self._tensor)

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Overwrite the elements by those of an array of the same type and shape."""
        texts = self._tensor.dtype == _arrays.STRING
        tensor = _arrays.to_tensor(np_arr, "np_arr", self._tensor.dtype if texts else None)
        own, new = self.numpy(), _arrays.to_numpy(tensor)
        if own.dtype != new.dtype or own.shape != new.shape:
            raise _core.InvalidArgument(
                f"the value is {own.dtype}{list(own.shape)}, the array {new.dtype}{list(new.shape)}"
            )
        if texts:
            self._tensor = tensor
        else:
            own[...] = new

    def shape(self) -> list[int]:
        """Extents of the axes."""
        return list(self._tensor.shape)

    def element_type(self) -> int:
        """ONNX's number of the element type: 1 for float."""
        return self._tensor.dtype

    def data_type(self) -> str:
        """The type as ONNX writes it: ``"tensor(float)"``."""
        return type_text(self._tensor.dtype)

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._tensor.address

    def device_name(self) -> str:
        """``"cpu"``."""
        return "cpu"

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the same memory."""
        return self._tensor.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        own = self.numpy()
        if dtype is not None and np.dtype(dtype) != own.dtype:
            return own.astype(dtype)
        return own.copy() if copy else own

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type()}, shape={self.shape()})"
