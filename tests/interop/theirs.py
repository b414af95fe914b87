# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime training 1.19.2 as a module: api, artifacts, onnxruntime."""
import importlib.machinery
import sys
import types


class Anything(type):
    def __getattr__(cls, name):
        return anything(name)


class Stub(metaclass=Anything):
    pass


def anything(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Stub


def stand_in_for_torch():
    """The package imports torch without declaring it, and needs none of it for this."""
    torch = types.ModuleType("torch")
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.__getattr__ = anything
    sys.modules["torch"] = torch


stand_in_for_torch()

import onnxruntime  # noqa: E402
from onnxruntime.training import api, artifacts, onnxblock  # noqa: E402, F401

SessionOptions = onnxruntime.SessionOptions
onnxruntime.set_default_logger_severity(3)
