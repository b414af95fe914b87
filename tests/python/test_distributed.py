# SPDX-License-Identifier: Apache-2.0
"""Communicators of one process, and what is refused; jobs of several are in tests/mpi."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from network import NetworkTest, batch

import onnxtrain
from onnxtrain.api import CheckpointState, Module
from onnxtrain.distributed import Comm

MPICC = ("mpicc", "mpicc.openmpi", "mpicc.mpich")  # that the build looks for, too


def mpi_compilers():
    """Of every MPI that is here, by their programs: one may have several names."""
    found = [path for path in map(shutil.which, MPICC) if path is not None]
    return list({os.path.realpath(path): path for path in reversed(found)}.values())


class CommTest(unittest.TestCase):
    def setUp(self):
        self.comm = Comm("self")
        self.addCleanup(self.comm.close)

    def test_questions(self):
        comm = self.comm
        self.assertEqual((comm.rank, comm.world_size, comm.local_rank, comm.local_size), (0, 1, 0, 1))
        self.assertGreaterEqual(comm.threads, 1)
        self.assertEqual(comm.counters[:3], (0, 0, 0.0))
        self.assertEqual(repr(comm), "Comm(rank 0 of 1)")

    def test_numbers_stay_what_they_are(self):
        for value, wanted in ((3, int), (2.5, float), (True, int), (np.float32(1.5), float)):
            with self.subTest(value):
                found = self.comm.all_reduce(value)
                self.assertEqual(found, value)
                self.assertIs(type(found), wanted)

    def test_arrays_become_wide_and_stay_whole(self):
        for dtype, wanted in ((np.int8, np.int64), (np.uint32, np.int64), (np.float16, np.float64)):
            array = np.arange(6, dtype=dtype).reshape(2, 3).T
            found = self.comm.all_reduce(array, "max")
            self.assertEqual(found.dtype, wanted)
            np.testing.assert_array_equal(found, array)
            self.assertEqual(array.dtype, dtype)
        self.assertEqual(self.comm.all_reduce(np.empty((0, 2))).shape, (0, 2))

    def test_what_is_sent_comes_back(self):
        self.assertEqual(self.comm.broadcast(b"\0text"), b"\0text")
        self.assertEqual(self.comm.broadcast(1 + 2j), 1 + 2j)
        self.assertEqual(self.comm.broadcast(np.ones((2, 0), np.int8)).shape, (2, 0))
        self.assertEqual(self.comm.all_gather(b"abc"), [b"abc"])
        self.comm.barrier()

    def test_groups_outlive_the_whole(self):
        with Comm("self") as comm:
            group = comm.split(0, key=5)
            self.assertIsNone(comm.split(-1))
        self.assertEqual(group.all_reduce(4), 4)
        group.close()

    def test_after_the_end_nothing_works(self):
        with Comm("self") as comm:
            pass
        comm.close()
        self.assertEqual(repr(comm), "Comm(closed)")
        for call in (lambda: comm.rank, comm.barrier, lambda: comm.all_gather(b""), lambda: comm.counters):
            with self.assertRaisesRegex(onnxtrain.StateError, "the communicator is closed"):
                call()

    def test_what_is_refused(self):
        comm, huge = self.comm, np.array([2**63], np.uint64)
        rows = (
            (lambda: Comm("gloo"), ValueError, "unknown kind of communicator 'gloo', expected 'auto', 'self' or 'mpi'"),
            (lambda: Comm(3), TypeError, "communicator is int, expected 'auto', 'self', 'mpi' or one of mpi4py"),
            (lambda: Comm(timeout=-1), ValueError, "timeout is -1, expected seconds"),
            (lambda: Comm(timeout=float("nan")), ValueError, "timeout is nan, expected seconds"),
            (lambda: comm.all_reduce(1, "mean"), ValueError, "op is 'mean', expected 'sum', 'min', 'max'"),
            (lambda: comm.all_reduce("one"), TypeError, "value is of <U3, expected whole numbers or floats"),
            (lambda: comm.all_reduce(huge), ValueError, "value has numbers that int64 has not"),
            (lambda: comm.all_gather("text"), TypeError, "value is str, expected bytes"),
            (lambda: comm.broadcast("text"), TypeError, "value is str, expected bytes, numbers or an array of numbers"),
            (lambda: comm.broadcast(b"", root=1), ValueError, "root is 1, expected 0 to 0"),
            (lambda: onnxtrain.train(b"", (), comm="self"), TypeError, "comm is str, expected onnxtrain.distributed.Comm"),
            (lambda: onnxtrain.train(b"", (), bucket_bytes=-1), ValueError, ""),
        )
        for call, kind, text in rows:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()


class LaunchTest(NetworkTest):
    """Processes of a job never train apart."""

    def refuse(self, call):
        with mock.patch.dict(os.environ, {"OMPI_COMM_WORLD_SIZE": "2", "OT_COMM_PLUGIN": "/nowhere.so"}):
            with self.assertRaises(onnxtrain.NotFound) as caught:
                call()
        for text in ("2 processes", "/nowhere.so", "python -m onnxtrain.distributed.build", "OT_COMM_PLUGIN"):
            self.assertIn(text, str(caught.exception))

    def test_without_a_plugin_nothing_trains(self):
        self.refuse(Comm)
        self.refuse(lambda: onnxtrain.train(self.folder, batch()))
        self.refuse(self.load)

    def test_alone_on_purpose(self):
        with mock.patch.dict(os.environ, {"OMPI_COMM_WORLD_SIZE": "2", "OT_COMM_PLUGIN": "/nowhere.so"}), Comm("self") as own:
            state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
            module = Module(self.folder / "training_model.onnx", state, comm=own, bucket_bytes=1 << 20)
            self.assertGreater(module(*batch()), 0)

    def test_shares_that_are_unknown(self):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        for named, text in (({"zero": 9}, "zero is 9, expected"), ({"bucket_bytes": -1}, "bucket_bytes is -1")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                Module(self.folder / "training_model.onnx", state, **named)


class BuildTest(unittest.TestCase):
    """python -m onnxtrain.distributed.build"""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def build(self, *arguments):
        command = [sys.executable, "-m", "onnxtrain.distributed.build", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True)

    @unittest.skipUnless(mpi_compilers(), f"no MPI has its compiler on the path: {', '.join(MPICC)}")
    def test_the_plugin_is_made_and_found(self):
        for mpicc in mpi_compilers():
            with self.subTest(mpicc):
                self.check_plugin(mpicc, self.folder / Path(mpicc).name / "libonnxtrain_mpi.so")

    def check_plugin(self, mpicc, plugin):
        done = self.build("--mpicc", mpicc, "--out", plugin.parent)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = done.stdout.splitlines()
        self.assertIn(f"{plugin}: the plugin for ", said[0])
        self.assertEqual(said[1], f"export OT_COMM_PLUGIN={plugin}")
        self.assertEqual(os.listdir(plugin.parent), [plugin.name])
        script = "from onnxtrain.distributed import Comm; print(Comm('mpi').world_size)"
        environment = {**os.environ, "OT_COMM_PLUGIN": str(plugin), "OMPI_MCA_btl_base_warn_component_unused": "0"}
        alone = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
        self.assertEqual((alone.returncode, alone.stdout), (0, "1\n"), alone.stderr)

    def test_what_fails_is_told(self):
        broken, useless = self.folder / "broken", self.folder / "useless"
        broken.write_text("#!/bin/sh\necho no mpi.h >&2\nexit 3\n")
        useless.write_text('#!/bin/sh\nfor out; do :; done\necho nothing >"$out"\n')
        for script in (broken, useless):
            script.chmod(0o755)
        (self.folder / "file").touch()
        rows = (
            (("--mpicc", "no-such-mpicc"), "no-such-mpicc: not found"),
            (("--mpicc", broken, "--out", self.folder), "exit status 3\nno mpi.h"),
            (("--mpicc", useless, "--out", self.folder), "the plugin cannot be loaded"),
            (("--mpicc", broken, "--out", self.folder / "file"), "name another directory with --out"),
        )
        for arguments, text in rows:
            with self.subTest(text):
                done = self.build(*arguments)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(text, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
        self.assertFalse((self.folder / "libonnxtrain_mpi.so").exists())


class EndTest(unittest.TestCase):
    def test_open_communicators_do_not_keep_a_process_from_ending(self):
        lines = (
            "from onnxtrain.distributed import Comm",
            "comm = Comm('self')",
            "group = comm.split(0)",
            "print(comm.all_reduce(2))",
        )
        for last in ("", "raise ValueError"):
            done = subprocess.run([sys.executable, "-c", "\n".join((*lines, last))], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1 if last else 0, "2\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
