# SPDX-License-Identifier: Apache-2.0
"""Communicators: the processes of a job."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
from typing import Any, Iterator, NamedTuple

import numpy as np

from onnxtrain import _arrays, _core, _log

_OPERATIONS = {"sum": 0, "min": 1, "max": 2}  # ot_comm_op of the C headers
_KINDS = ("auto", "self", "mpi")
_AS_THE_ENVIRONMENT_SAYS = -1.0
_NOTHING = -1  # the length of what a rank has not
_TEXT_MAX = 2048  # bytes of a message to other ranks
_TURNS = 8  # calls of others, at most, that one of ours meets after a failure


class Counters(NamedTuple):
    """What went through a communicator on this rank."""

    messages_sent: int
    bytes_sent: int
    seconds_waited: float
    agreements: int


def _open(communicator: Any, timeout: float | None) -> _core.Comm:
    seconds = _AS_THE_ENVIRONMENT_SAYS if timeout is None else float(timeout)
    if timeout is not None and not seconds >= 0:
        raise _core.InvalidArgument(f"timeout is {timeout}, expected seconds, 0 for no limit, or None")
    try:
        if isinstance(communicator, str):
            return _core.Comm.open(communicator, seconds, None, None)
        if hasattr(communicator, "py2f"):
            from mpi4py import MPI

            library = MPI.Get_library_version().partition("\0")[0]
            return _core.Comm.open("mpi", seconds, communicator.py2f(), library)
    except _core.NotFound as error:
        alone = "with comm=Comm('self') a process is alone"
        raise _core.NotFound(f"{error}; python -m onnxtrain.distributed.build does both; {alone}") from None
    kind = type(communicator).__name__
    raise _core.InvalidType(f"communicator is {kind}, expected {', '.join(map(repr, _KINDS))} or one of mpi4py")


class Comm:
    """The ranks of a job, or a group of them. The thread that makes one uses it, and no other.

    Making one and all methods but the questions and :meth:`close` are collective: all ranks call them, in the same
    order. They end in the same way on all of them.

        with Comm() as comm:
            mean = comm.all_reduce(loss) / comm.world_size

    Args:
        communicator: "auto": the processes that mpirun has started, or this one alone where it has not; "mpi"; "self":
            this process alone; or a communicator of mpi4py, which is duplicated.
        timeout: seconds that a rank waits for another, 0: for ever; None: as the environment variable OT_COMM_TIMEOUT
            says, else 1800.

    Raises:
        NotFound: mpirun has started several processes, and there is no plugin for MPI.
        StateError: mpirun, or mpi4py, is of another MPI than the plugin.
    """

    def __init__(self, communicator: Any = "auto", *, timeout: float | None = None) -> None:
        global _process
        self._comm = _open(communicator, timeout)
        _process = os.getpid()

    @classmethod
    def _of(cls, comm: _core.Comm) -> Comm:
        made = cls.__new__(cls)
        made._comm = comm
        return made

    def __repr__(self) -> str:
        try:
            return f"Comm(rank {self.rank} of {self.world_size})"
        except _core.StateError:
            return "Comm(closed)"

    def __enter__(self) -> Comm:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:  # after an error it may be in use
            self.close()

    def close(self) -> None:
        """Give it up; after what trains over it, else StateError. Its groups stay."""
        self._comm.close()

    @property
    def rank(self) -> int:
        """From 0."""
        return self._comm.rank()

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self._comm.world_size()

    @property
    def local_rank(self) -> int:
        """Among the ranks on this machine, from 0."""
        return self._comm.local_rank()

    @property
    def local_size(self) -> int:
        """How many of the ranks are on this machine."""
        return self._comm.local_size()

    @property
    def threads(self) -> int:
        """Threads for this rank: the processors that it may run on, divided by the ranks that share them."""
        return self._comm.threads()

    @property
    def counters(self) -> Counters:
        """What went through it on this rank; its groups count for themselves."""
        return Counters(*self._comm.counters())

    def split(self, color: int, key: int = 0) -> Comm | None:
        """A communicator of the ranks that give the same colour, in the order of their keys, then of their ranks here;
        None where the colour is below 0."""
        group = self._comm.split(color, key)
        return None if group is None else Comm._of(group)

    def barrier(self) -> None:
        """Nobody goes on before all have come."""
        self._comm.barrier()

    def all_reduce(self, value: Any, op: str = "sum") -> Any:
        """A number, or an array element by element, over all ranks, in their order: all get the same bits.

        Args:
            value: whole numbers are computed in int64, others in float64; an array has the same size on all ranks.
            op: "sum", "min" or "max".

        Returns:
            A number, or an array of int64 or float64.
        """
        if op not in _OPERATIONS:
            raise _core.InvalidArgument(f"op is {op!r}, expected {', '.join(map(repr, _OPERATIONS))}")
        array = np.asarray(value)
        if array.dtype.kind not in "iubf":
            raise _core.InvalidType(f"value is of {array.dtype}, expected whole numbers or floats")
        if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
            raise _core.InvalidArgument("value has numbers that int64 has not")
        own = np.array(array, np.float64 if array.dtype.kind == "f" else np.int64, order="C")
        self._comm.all_reduce(_OPERATIONS[op], _arrays.to_tensor(own, "value"))
        return own.item() if own.ndim == 0 else own

    def broadcast(self, value: Any = None, root: int = 0) -> Any:
        """What rank `root` gives: bytes, or an array or a number; what others give is not looked at.

        Returns:
            The bytes, the array or the number.
        """
        own = None
        length = np.full(2, _NOTHING, np.int64)  # and whether it is bytes
        try:
            if self.rank == root:
                own = _encode(value)
                length[:] = len(own), isinstance(value, bytes)
        finally:  # others wait for it
            self._comm.broadcast(_arrays.to_tensor(length, "length"), root)
        n_bytes, is_bytes = length.tolist()
        if n_bytes == _NOTHING:
            raise _core.InvalidType(f"rank {root}: the value cannot be sent")
        buffer = np.frombuffer(own, np.uint8).copy() if own is not None else np.empty(n_bytes, np.uint8)
        if n_bytes > 0:
            self._comm.broadcast(_arrays.to_tensor(buffer, "value"), root)
        return buffer.tobytes() if is_bytes else _decode(buffer.tobytes())

    def all_gather(self, value: bytes) -> list[bytes]:
        """The bytes of every rank, which may differ in length, in the order of the ranks."""
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _core.InvalidType(f"value is {type(value).__name__}, expected bytes")
        own = bytes(value)
        sizes = np.frombuffer(self._comm.all_gather(np.int64(len(own)).tobytes()), np.int64).tolist()
        width = max(sizes)
        if width == 0:
            return [b""] * len(sizes)
        joined = self._comm.all_gather(own.ljust(width, b"\0"))
        return [joined[i * width : i * width + size] for i, size in enumerate(sizes)]

    def abort(self, code: int = 1) -> None:
        """End all processes of the job with this exit code. Returns where there are no others."""
        self._comm.abort(code)

    def _tell(self, error: BaseException | None) -> None:
        """Whether something has failed on any rank; then all fail. Raises this rank's own error, else that of the first
        rank that has one."""
        told = self._told(b"" if error is None else f"{type(error).__name__}\0{error}".encode()[:_TEXT_MAX], error)
        failures = [_failure(rank, text.decode(errors="replace")) for rank, text in enumerate(told) if text]
        # ranks that meet others in other calls than their own are not to blame
        reasons = [one for one in failures if not isinstance(one, _core.Mismatch)] or failures
        if error is not None and (not isinstance(error, _core.Mismatch) or reasons is failures):
            raise error
        if reasons:
            raise reasons[0]

    def _told(self, own: bytes, error: BaseException | None) -> list[bytes]:
        # Others may be in calls that this rank left out: all of these fail on all ranks until they come here, too.
        for turn in range(_TURNS):
            try:
                return self.all_gather(own)
            except _core.Error as reason:
                if not isinstance(reason, _core.Mismatch) or turn == _TURNS - 1:
                    raise error if error is not None else reason
        raise AssertionError


def _failure(rank: int, told: str) -> BaseException:
    """What another rank has failed with, as it told."""
    name, _, text = told.partition("\0")
    if name == "KeyboardInterrupt":
        return KeyboardInterrupt(text)
    found = getattr(_core, name, _core.Error)
    return found(text if text.startswith("rank") else f"rank {rank}: {text or name}")


def _encode(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "iubfc":
        raise _core.InvalidType(f"value is {type(value).__name__}, expected bytes, numbers or an array of numbers")
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(value, order="C"), allow_pickle=False)
    return out.getvalue()


def _decode(data: bytes) -> Any:
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return array.item() if array.ndim == 0 else array


# ---- the job that this process is part of ----

_job: Comm | None = None  # of several ranks; for the life of the process
_process = os.getpid()  # that has made a communicator


def several(comm: Comm | None) -> Comm | None:
    """What a training is over: the communicator, or the job's; None: it is one process."""
    global _job
    if comm is not None:
        if not isinstance(comm, Comm):
            raise _core.InvalidType(f"comm is {type(comm).__name__}, expected onnxtrain.distributed.Comm or None")
        return comm if comm.world_size > 1 else None
    if _job is None:
        found = Comm()
        if found.world_size == 1:
            found.close()
            return None
        _job = found
    return _job


def job() -> Comm | None:
    """Of several ranks, once something is trained over it."""
    return _job


def parallel(
    comm: Comm | None, zero: int, bucket_bytes: int, sync_batch_norm: bool
) -> tuple[_core.Comm | None, int, int, bool]:
    """How a session shares its work, as the library takes it."""
    if bucket_bytes < 0:
        raise _core.InvalidArgument(f"bucket_bytes is {bucket_bytes}, expected bytes, or 0")
    return None if comm is None else comm._comm, bucket_bytes, zero, sync_batch_norm


def cuts_values(comm: Comm | None, zero: int) -> bool:
    """Whether each rank has a part of the values of the parameters."""
    return comm is not None and zero > 2


def writes(comm: Comm | None, zero: int) -> bool:
    """Whether this rank has a part in writing a trained model: rank 0 does it, of which others give it parts."""
    return comm is None or comm.rank == 0 or cuts_values(comm, zero)


@contextlib.contextmanager
def together(comm: Comm | None) -> Iterator[None]:
    """What fails on one rank meanwhile fails on all. Rank 0 logs for all."""
    if comm is None:
        yield
        return
    error = None
    try:
        with contextlib.nullcontext() if comm.rank == 0 else _log.told_otherwise():
            yield
    except BaseException as reason:
        error = reason
    comm._tell(error)


@contextlib.contextmanager
def stopped_by_launcher(comm: Comm | None) -> Iterator[None]:
    """What launchers send when they are told to stop is Control-C meanwhile, unless the program has handlers of its own
    for it."""
    numbers = (signal.SIGTERM, signal.SIGUSR1) if comm is not None else ()
    if threading.current_thread() is not threading.main_thread():
        numbers = ()  # handlers are the main thread's
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def has_failed() -> bool:
    """Whether the process ends by an exception, or is a copy of the one that is part of the job."""
    return os.getpid() != _process or getattr(sys, "last_value", None) is not None


def _at_exit() -> None:
    """MPI ends with the process. After a failure it does not: the others may be waiting, and the launcher ends them.
    But mpi4py ends it in any case, and would wait for them."""
    has_own_end = "mpi4py.MPI" in sys.modules and os.getpid() == _process
    _core.end_comms(has_failed(), has_failed() and has_own_end)


atexit.register(_at_exit)
