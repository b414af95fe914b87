# SPDX-License-Identifier: Apache-2.0
"""What users put into checkpoints besides the state: pickles, of which only plain values and arrays are read."""

from __future__ import annotations

import io
import pickle
from typing import Any

from onnxtrain import _core

# What a pickle may name: values without behaviour, and how numpy makes arrays again.
_PLAIN = {
    "builtins": {"bytearray", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"OrderedDict"},
    "_codecs": {"encode"},
}
_ARRAYS = {
    "numpy": {"dtype", "ndarray"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "numpy._core.numeric": {"_frombuffer"},
}
_ALLOWED = {**_PLAIN, **_ARRAYS}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name in _ALLOWED.get(module, ()):
            return super().find_class(module, name)
        raise _core.FormatError(
            f"user_dict has a {module}.{name}, expected plain values and arrays; a file that you trust is read with "
            "allow_pickle=True"
        )


def encode(user_dict: dict[Any, Any]) -> str:
    """As a checkpoint has it."""
    return pickle.dumps(user_dict).hex()


def decode(text: str, allow_pickle: bool) -> Any:
    """What :func:`encode` was given.

    Args:
        text: hexadecimal digits.
        allow_pickle: whether anything is read, which can run any code.
    """
    try:
        data = bytes.fromhex(text)
        return (pickle.Unpickler if allow_pickle else _Unpickler)(io.BytesIO(data)).load()
    except _core.FormatError:
        raise
    except Exception as error:
        raise _core.FormatError(f"user_dict is no pickle: {error}") from None
