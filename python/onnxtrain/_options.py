# SPDX-License-Identifier: Apache-2.0
"""Options of sessions and runs, choices by name, and how models are given."""

from __future__ import annotations

import operator
import os
from enum import Enum
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, TypeVar, Union

from onnxtrain import _core
from onnxtrain._core import InvalidType

if TYPE_CHECKING:
    import onnx

PROVIDER = "CPUExecutionProvider"
ModelLike = Union[str, os.PathLike, bytes, "onnx.ModelProto"]  # a path, the bytes of a file, or the model

# ot_batch_norm, ot_checkpoint_format, ot_precision and ot_schedule_kind of the C headers
BATCH_NORMS = {"auto": 0, "batch": 1, "stored": 2}
CHECKPOINT_FORMATS = {"auto": 0, "file": 1, "directory": 2}
PRECISIONS = {"f32": 0, "bf16": 1, "f16": 2}
RECOMPUTED = ("attn-dropout", "gelu", "layers")
SCHEDULES = {"constant": 0, "linear": 1, "cosine": 2, "step": 3, "exponential": 4, "polynomial": 5}

_UNLIMITED = 2**64 - 1
_PROTO_MAX = 2**31 - 1  # bytes that protobuf writes

_seed: int | None = None
_T = TypeVar("_T")


class NoSuchFile(_core.FileError, FileNotFoundError):
    """There is no file of that name."""

    __module__ = "onnxtrain"


class GraphOptimizationLevel(Enum):
    """For :class:`SessionOptions`."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """For :class:`SessionOptions`."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """For :class:`SessionOptions`."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def set_seed(seed: int) -> None:
    """Seed of Dropout and other random operators, for every module made from now on."""
    global _seed
    _seed = operator.index(seed) % 2**64


def present_seed() -> int | None:
    return _seed


def get_include() -> str:
    """The directory with ``onnxtrain/op.h``, which a library of operators is compiled with."""
    return os.path.join(os.path.dirname(__file__), "include")


def load_op_library(path: str | os.PathLike) -> None:
    """Load a shared library of operators, compiled with ``onnxtrain/op.h``: models may have them from now on.

    The library's code runs in this process, from the moment it is opened; load only files that you trust. It stays
    open until the process ends. All of its operators are taken, or with an error none is. To load a file again is
    fine, and changes nothing.

    Raises:
        NoSuchFile: there is no such file.
        FormatError: it is no shared library, or not one of operators.
        Unsupported: it was compiled with another version of ``op.h``; the message has both numbers.
        InvalidArgument: a record is wrong, or there is an operator of that name already.
    """
    open_path(_core.load_op_library, path)


def get_available_providers() -> list[str]:
    """``["CPUExecutionProvider"]``."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """``["CPUExecutionProvider"]``."""
    return [PROVIDER]


def get_device() -> str:
    """``"CPU"``."""
    return "CPU"


def get_version_string() -> str:
    """The library's version."""
    return _core.version


def set_default_logger_severity(severity: int) -> None:
    """Kept for scripts that call it: what is shown of the log is up to the logger "onnxtrain" of Python's logging."""
    operator.index(severity)


class _Entries:
    """Named texts, for options that have no attribute."""

    __slots__ = ("_entries",)
    _kind = ""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _add(self, key: str, value: str) -> None:
        for text in (key, value):
            if not isinstance(text, str):
                raise InvalidType(f"{self._kind} config entry {key!r}: {text!r} is {type(text).__name__}, expected str")
        self._entries[key] = value

    def _get(self, key: str) -> str:
        if key not in self._entries:
            raise _core.NotFound(f"no {self._kind} config entry '{key}'")
        return self._entries[key]


class SessionOptions(_Entries):
    """How a session runs.

    Attributes:
        intra_op_num_threads: threads; 0: one per processor.
        use_deterministic_compute: the same bits for any number of threads.
        memory_max: bytes that parameters, gradients, moments and activations may take together; 0: what
            :func:`set_memory_max` leaves; None or "none": no limit.
        graph_optimization_level, execution_mode, execution_order, inter_op_num_threads, enable_cpu_mem_arena,
            enable_mem_pattern, enable_mem_reuse, log_severity_level, log_verbosity_level, logid: kept for scripts that
            set them, without effect.
    """

    __slots__ = (
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "execution_mode",
        "execution_order",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "memory_max",
        "use_deterministic_compute",
    )
    _kind = "session"

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads: int = 0
        self.use_deterministic_compute: bool = False
        self.memory_max: int | str | None = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.inter_op_num_threads: int = 0
        self.enable_cpu_mem_arena: bool = True
        self.enable_mem_pattern: bool = True
        self.enable_mem_reuse: bool = True
        self.log_severity_level: int = -1
        self.log_verbosity_level: int = 0
        self.logid: str = ""

    def add_session_config_entry(self, config_key: str, config_value: str) -> None:
        """Remember an entry; ``session.disable_prepacking`` must be "1" for training, as in the original."""
        self._add(config_key, config_value)

    def get_session_config_entry(self, config_key: str) -> str:
        """The entry as it was set."""
        return self._get(config_key)

    def register_custom_ops_library(self, path: str) -> None:
        """As :func:`onnxtrain.load_op_library`, for every session. Libraries made for another runtime are refused."""
        load_op_library(path)


class RunOptions(_Entries):
    """Kept for scripts that pass one: a run has no options here.

    Attributes:
        log_severity_level, log_verbosity_level, logid, only_execute_path_to_fetches, training_mode: without effect;
            what no wanted output needs is not computed and training graphs train, in any case.
    """

    __slots__ = (
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "only_execute_path_to_fetches",
        "training_mode",
    )
    _kind = "run"

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level: int = -1
        self.log_verbosity_level: int = 0
        self.logid: str = ""
        self.only_execute_path_to_fetches: bool = False
        self.training_mode: bool = True

    def add_run_config_entry(self, config_key: str, config_value: str) -> None:
        """Remember an entry."""
        self._add(config_key, config_value)

    def get_run_config_entry(self, config_key: str) -> str:
        """The entry as it was set."""
        return self._get(config_key)


def memory_bytes(memory_max: int | str | None) -> int:
    """A ceiling as the library takes it."""
    if memory_max is None or memory_max == "none":
        return _UNLIMITED
    if isinstance(memory_max, str):
        raise _core.InvalidArgument(f"memory_max {memory_max!r} is neither a number nor 'none'")
    return memory_max


def set_memory_max(memory_max: int | str | None) -> None:
    """The most bytes that this process may take for models; what needs more raises :class:`NoMemory`.

    Args:
        memory_max: bytes; 0, the default: three quarters of the smaller of physical memory and the limit of the
            control group, divided by the processes of a job on this machine; None or "none": no limit.
    """
    _core.set_memory_max(memory_bytes(memory_max))


def options_or_default(options: SessionOptions | None) -> SessionOptions:
    if options is None:
        return SessionOptions()
    if not isinstance(options, SessionOptions):
        raise InvalidType(f"the session options are {type(options).__name__}, expected SessionOptions")
    return options


def did_you_mean(name: Any, names: Iterable[str]) -> str:
    """"; did you mean 'mse'?" where one of the names is near, else nothing."""
    nearest = _core.nearest(name, list(names)) if isinstance(name, str) else None
    return f"; did you mean '{nearest}'?" if nearest else ""


def choose(what: str, name: Any, choices: Mapping[str, Any]) -> Any:
    """The choice of that name."""
    if not isinstance(name, str) or name not in choices:
        hint = did_you_mean(name, choices)
        raise _core.InvalidArgument(f"{what} {name!r} is not one of {', '.join(choices)}{hint}")
    return choices[name]


def recomputed(recompute: Any) -> tuple[bool, bool, bool, int]:
    """What is made again: attention's Dropout, Gelu, layers, and how many of them."""
    if isinstance(recompute, str) or not isinstance(recompute, Iterable):
        raise _core.InvalidType(f"recompute is {type(recompute).__name__}, expected a list of names")
    chosen, number = set(), 0
    for name in recompute:
        part, equals, count = str(name).partition("=")
        if not equals:
            choose("recompute", name, dict.fromkeys(RECOMPUTED))
        elif part != "layers" or not count.isdecimal() or not 0 < int(count) < 2**31:
            raise _core.InvalidArgument(f"recompute {name!r} is unknown, expected layers=N with N from 1")
        else:
            number = int(count)
        chosen.add(part)
    return *(name in chosen for name in RECOMPUTED), number


def check_for_training(options: SessionOptions) -> None:
    if options._entries.get("session.disable_prepacking", "1") != "1":
        raise _core.InvalidArgument("session.disable_prepacking: prepacking is not supported for training")


def open_path(load: Callable[[str], _T], path: str | os.PathLike) -> _T:
    """What `load` makes of a file; a file that is not there is an error of its own."""
    path = os.fspath(path)
    try:
        return load(path)
    except _core.FileError as error:
        if os.path.exists(path):
            raise
        raise NoSuchFile(str(error)) from None


def load_model(model: ModelLike | _core.Model) -> _core.Model:
    """A model given as a path, as the bytes of a file or as an onnx.ModelProto."""
    if isinstance(model, _core.Model):
        return model
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _core.Model.load_bytes(bytes(model))
    if isinstance(model, (str, os.PathLike)):
        return open_path(_core.Model.load, model)
    if hasattr(model, "SerializeToString"):
        if model.ByteSize() > _PROTO_MAX:
            raise _core.InvalidArgument(
                f"the model has {model.ByteSize()} bytes, a ModelProto can be handed over up to {_PROTO_MAX}: pass its path"
            )
        return _core.Model.load_bytes(model.SerializeToString())
    raise InvalidType(f"the model is {type(model).__name__}, expected a path, bytes or an onnx.ModelProto")
