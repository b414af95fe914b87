# SPDX-License-Identifier: Apache-2.0
"""Train ONNX models.

The short way is :func:`onnxtrain.train`:

    result = onnxtrain.train("model.onnx", (x, labels), loss="cross-entropy", epochs=20)
    result.export("trained.onnx")

:func:`onnxtrain.check` says whether and what of a model can be trained; :func:`onnxtrain.prepare` puts right what
exporters did to its parameters; :func:`onnxtrain.gradients` differentiates any value of any model.

The modules follow ``onnxruntime.training``, so that a script moves over by its imports:

=====================================  ==================================
``onnxruntime.training.api``           :mod:`onnxtrain.api`
``onnxruntime.training.artifacts``     :mod:`onnxtrain.artifacts`
``onnxruntime.training.onnxblock``     :mod:`onnxtrain.onnxblock`
``onnxruntime.training.optim``         :mod:`onnxtrain.optim`
``onnxruntime.training.amp``           :mod:`onnxtrain.amp`
``onnxruntime.training.orttrainer``    :mod:`onnxtrain.orttrainer`
``onnxruntime.InferenceSession``       :class:`onnxtrain.InferenceSession`
``onnxruntime.OrtValue``               :class:`onnxtrain.OrtValue`
``onnxruntime.IOBinding``              :class:`onnxtrain.IOBinding`
``onnxruntime.SessionOptions``         :class:`onnxtrain.SessionOptions`
``onnxruntime.set_seed``               :func:`onnxtrain.set_seed`
=====================================  ==================================

Under ``mpirun`` the processes of the job train together; :mod:`onnxtrain.distributed` has communicators, and
:mod:`onnxtrain.distributed.checkpoint` states and directories of them, as ``torch.distributed.checkpoint``.

Wherever an array is taken, a numpy array, a torch tensor, any other object with DLPack on the CPU, or an
:class:`OrtValue` will do, without a copy when it is contiguous; results are of the kind that was given.

Errors are :class:`Error` (a ``RuntimeError``) and its subclasses, each of which is also the built-in exception that
fits: :class:`InvalidArgument` and :class:`FormatError` are ``ValueError``, :class:`InvalidType` is ``TypeError``,
:class:`FileError` ``OSError`` and its subclass :class:`NoSuchFile` ``FileNotFoundError``, :class:`NoMemory`
``MemoryError``, :class:`Unsupported` ``NotImplementedError``, :class:`NotFound` ``LookupError``, :class:`TimedOut`
``TimeoutError``.

An object is used by one thread at a time; the interpreter's lock is released while the library works.
"""

import importlib
from typing import TYPE_CHECKING, Any

from onnxtrain import _core, _log, api, artifacts
from onnxtrain._check import ParameterReport, Report, check
from onnxtrain._core import (
    Error,
    FileError,
    FormatError,
    Interrupted,
    InvalidArgument,
    InvalidType,
    Mismatch,
    NoMemory,
    NotFinite,
    NotFound,
    StateError,
    TimedOut,
    Unsupported,
)
from onnxtrain._gradients import Gradients, gradients
from onnxtrain._inference import InferenceSession, ModelMetadata, NodeArg
from onnxtrain._io_binding import IOBinding
from onnxtrain._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    NoSuchFile,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_device,
    get_include,
    get_version_string,
    load_op_library,
    set_default_logger_severity,
    set_memory_max,
    set_seed,
)
from onnxtrain._ort_value import OrtValue
from onnxtrain._prepare import prepare
from onnxtrain._run import Event, TrainingResult
from onnxtrain._train import train

if TYPE_CHECKING:
    from onnxtrain import amp, checkpoint, model_desc_validation, optim, orttrainer, orttrainer_options
    from onnxtrain._step_info import TrainStepInfo
    from onnxtrain.orttrainer import ORTTrainer
    from onnxtrain.orttrainer_options import ORTTrainerOptions

__version__: str = _core.version

# What is loaded when it is first asked for: the module, and what of it is meant, or all of it.
_LATER = {
    "ORTTrainer": ("onnxtrain.orttrainer", "ORTTrainer"),
    "ORTTrainerOptions": ("onnxtrain.orttrainer_options", "ORTTrainerOptions"),
    "TrainStepInfo": ("onnxtrain._step_info", "TrainStepInfo"),
    "amp": ("onnxtrain.amp", None),
    "checkpoint": ("onnxtrain.checkpoint", None),
    "model_desc_validation": ("onnxtrain.model_desc_validation", None),
    "optim": ("onnxtrain.optim", None),
    "orttrainer": ("onnxtrain.orttrainer", None),
    "orttrainer_options": ("onnxtrain.orttrainer_options", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'onnxtrain' has no attribute '{name}'")
    module, part = _LATER[name]
    found = importlib.import_module(module)
    globals()[name] = found if part is None else getattr(found, part)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "Error",
    "Event",
    "ExecutionMode",
    "ExecutionOrder",
    "FileError",
    "FormatError",
    "Gradients",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Interrupted",
    "InvalidArgument",
    "InvalidType",
    "Mismatch",
    "ModelMetadata",
    "NoMemory",
    "NoSuchFile",
    "NodeArg",
    "NotFinite",
    "NotFound",
    "ORTTrainer",
    "ORTTrainerOptions",
    "OrtValue",
    "ParameterReport",
    "Report",
    "RunOptions",
    "SessionOptions",
    "StateError",
    "TimedOut",
    "TrainStepInfo",
    "TrainingResult",
    "Unsupported",
    "amp",
    "api",
    "artifacts",
    "check",
    "checkpoint",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_include",
    "get_version_string",
    "gradients",
    "load_op_library",
    "model_desc_validation",
    "optim",
    "orttrainer",
    "orttrainer_options",
    "prepare",
    "set_default_logger_severity",
    "set_memory_max",
    "set_seed",
    "train",
]
