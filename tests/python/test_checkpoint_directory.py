# SPDX-License-Identifier: Apache-2.0
"""Checkpoint directories by the names of torch.distributed.checkpoint; those of several processes are in tests/mpi."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import NAMES, TEXT

import onnxtrain
from onnxtrain.distributed import Comm, LocalShard, ShardedTensor
from onnxtrain.distributed.checkpoint import AsyncCheckpointerType, async_save, load, save

try:
    import torch
except ImportError:
    torch = None


def numbers(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape) + 1


def state():
    return {
        "model": {"w": numbers(2, 3), "b": numbers(3, dtype=np.int64), "empty": numbers(0, 2), "scalar": numbers()},
        "optim": {
            "state": {"w": {"exp_avg": numbers(2, 3), "step": 7}},
            "param_groups": [{"params": ["w"], "lr": 0.5, "betas": (0.9, 0.999), "maximize": False, "foreach": None}],
        },
        "extra": {"text": "a\u00e4", "bytes": b"\0\xff", "rate": np.float32(0.25)},
    }


def blank(value):
    """The same names, with other values of the same types."""
    if isinstance(value, dict):
        return {key: blank(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(blank(one) for one in value)
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    return value if value is None or isinstance(value, bool) else type(value)()


class DirectoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "run" / "step-12"

    def assert_same(self, found, wanted, place=""):
        self.assertIs(type(found), float if isinstance(wanted, np.generic) else type(wanted), place)
        if isinstance(wanted, dict):
            self.assertEqual(list(found), list(wanted), place)
            for key in wanted:
                self.assert_same(found[key], wanted[key], f"{place}[{key!r}]")
        elif isinstance(wanted, (list, tuple)):
            self.assertEqual(len(found), len(wanted), place)
            for i, (one, other) in enumerate(zip(found, wanted)):
                self.assert_same(one, other, f"{place}[{i}]")
        elif isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(found, wanted, place, strict=True)
        else:
            self.assertEqual(found, wanted, place)

    def test_what_is_saved_is_loaded_in_place(self):
        save(state(), checkpoint_id=self.path)
        found = blank(state())
        w, group = found["model"]["w"], found["optim"]["param_groups"][0]
        load(found, checkpoint_id=str(self.path))
        self.assert_same(found, state())
        self.assertIs(found["model"]["w"], w)
        self.assertIs(found["optim"]["param_groups"][0], group)

    def test_others_read_it(self):
        """The files are of safetensors, whose header is JSON behind its length."""
        save({"model": {"w": numbers(2, 3)}}, checkpoint_id=self.path)
        (file,) = self.path.glob("*.safetensors")
        data = file.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        first, last = header["model.w"]["data_offsets"]
        elements = np.frombuffer(data[8 + size + first : 8 + size + last], np.float32)
        np.testing.assert_array_equal(elements.reshape(header["model.w"]["shape"]), numbers(2, 3))

    def test_a_part_is_enough(self):
        save(state(), checkpoint_id=self.path)
        rows = ShardedTensor(np.float32, (2, 3), [LocalShard((1, 0), np.zeros((1, 3), np.float32))])
        wanted = {"model": {"w": rows}}
        load(wanted, checkpoint_id=self.path)
        np.testing.assert_array_equal(rows.local_shards[0].array, numbers(2, 3)[1:])
        self.assertIs(wanted["model"]["w"], rows)

    def test_arrays_that_are_not_contiguous(self):
        save({"w": numbers(2, 3), "step": 3}, checkpoint_id=self.path)
        whole = np.zeros((3, 2), np.float32)
        swapped = np.zeros((2, 3), np.dtype(">f4"))
        for target in (whole.T, swapped):
            load({"w": target}, checkpoint_id=self.path)
            np.testing.assert_array_equal(target, numbers(2, 3))
        np.testing.assert_array_equal(whole, numbers(2, 3).T)
        flat = {"step": 0}
        load(flat, checkpoint_id=self.path)
        self.assertEqual(flat, {"step": 3})

    def test_objects_with_a_state(self):
        class Counter:
            def __init__(self, n):
                self.n, self.array = n, np.full(2, n, np.float32)

            def state_dict(self):
                return {"n": self.n, "array": self.array.copy()}

            def load_state_dict(self, state_dict):
                self.n, self.array = state_dict["n"], state_dict["array"]

        save({"counter": Counter(5)}, checkpoint_id=self.path)
        found = {"counter": Counter(0)}
        counter = found["counter"]
        load(found, checkpoint_id=self.path)
        self.assertIs(found["counter"], counter)
        self.assertEqual((counter.n, counter.array.tolist()), (5, [5.0, 5.0]))

    def test_a_later_save_takes_the_place(self):
        for value in (1, 2):
            save({"a": {"n": value}}, checkpoint_id=self.path)
        found = {"a": {"n": 0}}
        load(found, checkpoint_id=self.path)
        self.assertEqual(found["a"]["n"], 2)
        self.assertEqual(os.listdir(self.path.parent), ["step-12"])
        index = json.loads((self.path / "otckpt.index.json").read_text())
        self.assertEqual((index["step"], index["world_size"]), (12, 1))

    def test_while_the_caller_goes_on(self):
        with Comm("self") as comm:
            w = numbers(2, 3)
            first = async_save({"model": {"w": w}}, checkpoint_id=self.path, process_group=comm)
            w[:] = 0
            second = async_save({"model": {"w": w}}, checkpoint_id=self.folder / "b", process_group=comm)
            self.assertTrue(self.path.is_dir())
            self.assertIsNone(first.exception())
            while not second.done():
                pass
            self.assertTrue(second.done())
            self.assertIsNone(second.result())
        found = {"model": {"w": w}}
        load(found, checkpoint_id=self.path)
        np.testing.assert_array_equal(w, numbers(2, 3))

    def test_a_save_ends_with_the_process(self):
        script = (
            "import numpy, sys\n"
            "from onnxtrain.distributed.checkpoint import async_save\n"
            "async_save({'model': {'w': numpy.ones(3)}}, checkpoint_id=sys.argv[1])\n"
        )
        for last, there in (("", True), ("raise ValueError", False)):
            path = self.folder / f"at{len(last)}"
            done = subprocess.run([sys.executable, "-c", script + last, path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0 if there else 1, done.stderr)
            self.assertEqual(path.exists(), there, done.stderr)

    def test_a_run_goes_on_from_directories(self):
        x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
        data = (x, (x[:, 0] > 0).astype(np.int64))
        saved = {"checkpoint_dir": self.folder, "checkpoint_format": "directory", "save_async": True}
        expected = onnxtrain.train(TEXT, data, epochs=3, progress=False)
        first = onnxtrain.train(TEXT, data, epochs=3, max_steps=3, progress=False, **saved)
        self.assertEqual(first.steps, 3)
        self.assertIn("step-3", os.listdir(self.folder))
        found = onnxtrain.train(TEXT, data, epochs=3, progress=False, resume=True, checkpoint_dir=self.folder)
        self.assertEqual(found.steps, expected.steps)
        for name in NAMES:
            one, other = found.state.parameters[name].data, expected.state.parameters[name].data
            np.testing.assert_array_equal(one, other, name)
        self.assertEqual(found.notes, first.notes)

    def test_a_damaged_checkpoint_is_passed_over(self):
        x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
        data = (x, (x[:, 0] > 0).astype(np.int64))

        def run(steps, **options):
            return onnxtrain.train(TEXT, data, epochs=9, max_steps=steps, progress=False, checkpoint_dir=self.folder, **options)

        run(2)
        older = (self.folder / "checkpoint").read_bytes()
        run(3, resume=True, checkpoint_format="directory")
        (self.folder / "checkpoint").write_bytes(older)
        index = self.folder / "step-3/otckpt.index.json"
        index.write_text(index.read_text() + "x")
        with self.assertWarnsRegex(UserWarning, "step-3/otckpt.index.json: .*; passed over") as caught:
            found = run(4, resume=True)
        self.assertEqual(len(caught.warnings), 1)
        self.assertEqual((len(found.notes), found.steps), (1, 4))
        np.testing.assert_array_equal(
            found.state.parameters[NAMES[0]].data,
            onnxtrain.train(TEXT, data, epochs=9, max_steps=4, progress=False).state.parameters[NAMES[0]].data,
        )
        (self.folder / "checkpoint").write_bytes(older[:100])
        with self.assertRaisesRegex(ValueError, "checkpoint: .*; there is no other checkpoint to go on from"):
            run(5, resume=True)

    def test_what_a_run_refuses(self):
        saved = {"checkpoint_dir": self.folder, "checkpoint_format": "directory", "save_async": True}
        x = np.zeros((40, 3), np.float32)
        data = (x, (x[:, 0] > 0).astype(np.int64))
        for options, text in (
            ({"save_async": True}, "save_async needs checkpoint_dir"),
            ({**saved, "checkpoint_format": "file"}, "save_async needs checkpoint_format 'directory'"),
            ({**saved, "checkpoint_format": "hdf5"}, "checkpoint_format 'hdf5' is not one of auto, file, directory"),
        ):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                onnxtrain.train(TEXT, data, progress=False, **options)

    def test_what_is_refused(self):
        save(state(), checkpoint_id=self.path)
        (self.folder / "file").touch()
        frozen = numbers(2, 3)
        frozen.flags.writeable = False
        at = {"checkpoint_id": self.path}
        rows = (
            (lambda: save([], **at), TypeError, "state_dict is list, expected a dict"),
            (lambda: save({}), TypeError, "checkpoint_id is NoneType, expected the path of a directory"),
            (lambda: save({}, planner=1, **at), ValueError, "planner is 1, expected None"),
            (lambda: save({}, use_collectives=False, **at), ValueError, "use_collectives is False, expected True"),
            (lambda: async_save({}, async_checkpointer_type=AsyncCheckpointerType.PROCESS, **at), ValueError, "PROCESS"),
            (lambda: save({"a b": {}}, **at), ValueError, "a b"),
            (lambda: save({"a": {1: 2}}, **at), TypeError, ""),
            (lambda: save({"a": {"x": object()}}, **at), TypeError, "state_dict.'a'..'x'. is object, expected an array"),
            (lambda: save({"a": {"x": 1}}, checkpoint_id=self.folder / "file" / "x"), OSError, "file"),
            (lambda: load({"model": {"v": numbers(1)}}, **at), LookupError, "model.v"),
            (lambda: load({"model": {"w": numbers(3)}}, **at), ValueError, "model.w"),
            (lambda: load({"model": {"w": numbers(2, 3, dtype=np.float64)}}, **at), ValueError, "model.w"),
            (lambda: load({"model": {"w": frozen}}, **at), ValueError, "state_dict.'model'..'w'. cannot be written"),
            (lambda: load({}, checkpoint_id=self.folder / "none"), LookupError, "none"),
        )
        for call, kind, text in rows:
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call()
        found = blank(state())
        load(found, **at)
        self.assert_same(found, state())

    @unittest.skipIf(torch is None, "needs torch")
    def test_tensors_of_torch(self):
        save({"model": {"w": torch.arange(6.0).reshape(2, 3), "h": torch.ones(2, dtype=torch.bfloat16)}}, checkpoint_id=self.path)
        w, h = torch.zeros(3, 2).T, torch.zeros(2, dtype=torch.bfloat16)
        load({"model": {"w": w, "h": h}}, checkpoint_id=self.path)
        self.assertEqual(w.tolist(), [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(h.tolist(), [1, 1])


if __name__ == "__main__":
    unittest.main()
