# SPDX-License-Identifier: Apache-2.0
"""Training over several processes: communicators, and tensors of which each process has a part."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from onnxtrain.distributed._comm import Comm, Counters

__all__ = ["Comm", "Counters", "LocalShard", "ShardedTensor"]


class LocalShard(NamedTuple):
    """Elements of a tensor that are here: an array, and where in the whole it begins."""

    offsets: tuple[int, ...]
    array: np.ndarray


class ShardedTensor:
    """A tensor of which this process has some elements."""

    def __init__(self, dtype: Any, size: Sequence[int], local_shards: Sequence[LocalShard]) -> None:
        self._dtype = np.dtype(dtype)
        self._size = tuple(int(n) for n in size)
        self.local_shards = [LocalShard(tuple(int(n) for n in at), array) for at, array in local_shards]

    def __repr__(self) -> str:
        return f"ShardedTensor({self._dtype}, {list(self._size)}, {len(self.local_shards)} local)"

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self._dtype

    def size(self) -> tuple[int, ...]:
        """Of the whole tensor."""
        return self._size

    def full(self) -> np.ndarray:
        """The whole tensor, where this process has all of it; else an error."""
        whole = np.empty(self._size, self._dtype)
        n_elements = 0
        for at, array in self.local_shards:
            whole[tuple(slice(first, first + n) for first, n in zip(at, array.shape))] = array
            n_elements += array.size
        if n_elements != whole.size:
            raise ValueError(f"{n_elements} of {whole.size} elements are here: get the state with full_state_dict")
        return whole
