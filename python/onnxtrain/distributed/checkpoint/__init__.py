# SPDX-License-Identifier: Apache-2.0
"""States of trainings by names, and directories of them, as ``torch.distributed.checkpoint``."""

from onnxtrain.distributed.checkpoint._directory import AsyncCheckpointerType, SaveFuture, async_save, load, save

__all__ = ["AsyncCheckpointerType", "SaveFuture", "async_save", "load", "save"]
