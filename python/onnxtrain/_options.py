"""Options of sessions, choices by name, and how models are given."""

from __future__ import annotations

import os
from typing import Any, Mapping

from onnxtrain import _core

# ot_batch_norm and ot_schedule_kind of the C headers
BATCH_NORMS = {"auto": 0, "batch": 1, "stored": 2}
SCHEDULES = {"constant": 0, "linear": 1, "cosine": 2, "step": 3, "exponential": 4, "polynomial": 5}

_seed: int | None = None


def set_seed(seed: int) -> None:
    """Seed of Dropout and other random operators, for every module made from now on."""
    global _seed
    _seed = seed % 2**64


def present_seed() -> int | None:
    return _seed


class SessionOptions:
    """How a session runs.

    Attributes:
        intra_op_num_threads: threads; 0: one per processor.
        use_deterministic_compute: the same bits for any number of threads.
        memory_max: bytes that parameters, gradients, moments and activations may take together; 0: no limit.
        graph_optimization_level, execution_mode, inter_op_num_threads, log_severity_level, enable_mem_pattern,
            enable_cpu_mem_arena: kept for scripts that set them, without effect.
    """

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.use_deterministic_compute = False
        self.memory_max = 0
        self.graph_optimization_level: Any = None
        self.execution_mode: Any = None
        self.inter_op_num_threads = 0
        self.log_severity_level = -1
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, config_key: str, config_value: str) -> None:
        """Remember an entry; ``session.disable_prepacking`` must be "1" for training, as in the original."""
        self._entries[config_key] = config_value

    def get_session_config_entry(self, config_key: str) -> str:
        """The entry as it was set."""
        if config_key not in self._entries:
            raise _core.NotFound(f"no session config entry '{config_key}'")
        return self._entries[config_key]

    def register_custom_ops_library(self, path: str) -> None:
        """Not supported: operators cannot be loaded from libraries made for another runtime."""
        raise _core.Unsupported(f"custom operators of '{path}' cannot be loaded")


def choose(what: str, name: Any, choices: Mapping[str, Any]) -> Any:
    """The choice of that name."""
    if not isinstance(name, str) or name not in choices:
        raise ValueError(f"{what} {name!r} is none of {', '.join(choices)}")
    return choices[name]


def check_for_training(options: SessionOptions) -> None:
    if options._entries.get("session.disable_prepacking", "1") != "1":
        raise _core.InvalidArgument("session.disable_prepacking: prepacking is not supported for training")


def load_model(model: Any) -> _core.Model:
    """A model given as a path, as the bytes of a file or as an onnx.ModelProto."""
    if isinstance(model, _core.Model):
        return model
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _core.Model.load_bytes(bytes(model))
    if hasattr(model, "SerializeToString"):
        return _core.Model.load_bytes(model.SerializeToString())
    return _core.Model.load(os.fspath(model))
