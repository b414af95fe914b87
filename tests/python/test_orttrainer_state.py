# SPDX-License-Identifier: Apache-2.0
"""States, checkpoints and trained models of ORTTrainer."""

import copy
import importlib.util
import os
import pickle
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy as np
from network import NAMES, START
from orttrainer_network import DESCRIPTION, WITH_LOSS, TrainerTest, batches, descent, make, train_by_formula

import onnxtrain
from onnxtrain import InferenceSession, _checkpoint_storage, checkpoint, optim
from onnxtrain.api import CheckpointState

CONFIGS = {
    "AdamOptimizer": lambda: optim.AdamConfig(lr=0.02),
    "LambOptimizer": lambda: optim.LambConfig(lr=0.02),
    "SGDOptimizer": lambda: optim.SGDConfig(lr=0.1),
}


def has_hdf5():
    with tempfile.TemporaryDirectory() as folder:
        try:
            _checkpoint_storage.save({}, os.path.join(folder, "empty"))
        except onnxtrain.Unsupported:
            return False
    return True


HAS_HDF5 = has_hdf5()


def run(trainer, data):
    return [trainer.train_step(*one)[0].item() for one in data]


def trained(name="AdamOptimizer", steps=3, options=None):
    trainer = make(CONFIGS[name](), options)
    run(trainer, batches(steps))
    return trainer


def flatten(state, path=()):
    """Values by their paths."""
    found = {}
    for key, value in state.items():
        found.update(flatten(value, (*path, key)) if isinstance(value, dict) else {(*path, key): value})
    return found


class StateTest(TrainerTest):
    def assert_same(self, one, other):
        one, other = flatten(one), flatten(other)
        self.assertEqual(set(one), set(other))
        for path, value in one.items():
            np.testing.assert_array_equal(value, other[path], err_msg=str(path))

    def test_the_layout(self):
        for name in CONFIGS:
            with self.subTest(name):
                state = trained(name).state_dict()
                self.assertEqual(set(state), {"model", "optimizer", "trainer_options", "train_step_info", "onnxtrain"})
                self.assertEqual(list(state["model"]), ["full_precision"])
                self.assertEqual(set(state["model"]["full_precision"]), set(NAMES))
                expected = {
                    "mixed_precision": False,
                    "zero_stage": 0,
                    "world_rank": 0,
                    "world_size": 1,
                    "optimizer_name": name,
                    "data_parallel_size": 1,
                    "horizontal_parallel_size": 1,
                }
                self.assertEqual(state["trainer_options"], expected)
                self.assertEqual(state["train_step_info"], {"optimization_step": 3, "step": 3})

    def test_zero_is_recorded(self):
        state = trained(options={"distributed": {"deepspeed_zero_optimization": {"stage": 1}}}).state_dict()
        self.assertEqual((state["trainer_options"]["zero_stage"], state["partition_info"]), (1, {}))

    def test_moments_and_counters(self):
        adam = trained("AdamOptimizer").state_dict()["optimizer"]
        lamb = trained("LambOptimizer").state_dict()["optimizer"]
        self.assertEqual(set(adam), set(NAMES))
        self.assertEqual(set(lamb), {*NAMES, "shared_optimizer_state"})
        for name in NAMES:
            self.assertEqual(set(adam[name]), {"Moment_1", "Moment_2", "Update_Count"})
            self.assertEqual(set(lamb[name]), {"Moment_1", "Moment_2"})
            for moments in (adam[name], lamb[name]):
                for moment in (moments["Moment_1"], moments["Moment_2"]):
                    self.assertEqual((moment.shape, moment.dtype), (START[name].shape, np.float32))
        for count in (adam["w1"]["Update_Count"], lamb["shared_optimizer_state"]["Step"]):
            self.assertEqual((count.tolist(), count.dtype), ([4], np.int64))
        self.assertEqual(trained("SGDOptimizer").state_dict()["optimizer"], {})

    def test_moments_of_adam(self):
        """Of one step: (1 - alpha) g and (1 - beta) g^2 of a gradient that is not clipped."""
        (x, labels), found = batches(1)[0], trained(steps=1).state_dict()["optimizer"]
        moved = {}
        train_by_formula(lambda parameters, gradients, update: moved.update(gradients), [(x, labels)])
        self.assertLess(sum((one**2).sum() for one in moved.values()), 1)
        for name in NAMES:
            np.testing.assert_allclose(found[name]["Moment_1"], 0.1 * moved[name], rtol=1e-4, atol=1e-7)
            np.testing.assert_allclose(found[name]["Moment_2"], 0.001 * moved[name] ** 2, rtol=1e-3, atol=1e-10)

    def test_flat(self):
        data = batches(5)
        trainer = make(optim.SGDConfig(lr=0.2))
        before = trainer.state_dict(pytorch_format=True)
        run(trainer, data)
        found, (expected, _) = trainer.state_dict(True), train_by_formula(descent(0.2), data)
        self.assertEqual(set(found), set(NAMES))
        for name in NAMES:
            np.testing.assert_array_equal(before[name], START[name])  # a copy
            np.testing.assert_allclose(found[name], expected[name], rtol=2e-5, atol=1e-6)

    def test_frozen_weights_are_in_it_and_stay(self):
        state = trained(options={"utils": {"frozen_weights": ["w1", "b2"]}}).state_dict()
        self.assertEqual(set(state["model"]["full_precision"]), set(NAMES))
        self.assertEqual(set(state["optimizer"]), {"b1", "w2"})
        np.testing.assert_array_equal(state["model"]["full_precision"]["w1"], START["w1"])

    def test_it_is_taken_over(self):
        for name in CONFIGS:
            with self.subTest(name):
                one, other = trained(name), make(CONFIGS[name]())
                other.load_state_dict(one.state_dict())
                self.assert_same(one.state_dict(), other.state_dict())
                info = other._train_step_info
                self.assertEqual((info.step, info.optimization_step), (3, 3))

    def test_resuming_at_every_call(self):
        for name in CONFIGS:
            for accumulation in (1, 3):
                options = {"batch": {"gradient_accumulation_steps": accumulation}}
                data = batches(2 * accumulation + 3)
                expected = run(make(CONFIGS[name](), options), data)
                for n in range(2 * accumulation + 2):
                    with self.subTest(name, accumulation=accumulation, n=n):
                        one, other = make(CONFIGS[name](), options), make(CONFIGS[name](), options)
                        found = run(one, data[:n])
                        other.load_state_dict(one.state_dict())
                        self.assertEqual(found + run(other, data[n:]), expected)

    def test_a_schedule_goes_on_where_it_was(self):
        def scheduled():
            return make(options={"lr_scheduler": optim.LinearWarmupLRScheduler(8, 0.5)})

        data = batches(8)
        one, other = scheduled(), scheduled()
        expected = run(scheduled(), data)
        found = run(one, data[:5])
        other.load_state_dict(one.state_dict())
        self.assertEqual(found + run(other, data[5:]), expected)

    def test_arrays_of_any_kind(self):
        state = trained().state_dict()
        state["model"]["full_precision"]["b2"] = state["model"]["full_precision"]["b2"].tolist()
        state["optimizer"]["b2"]["Update_Count"] = np.array([9])
        state["trainer_options"]["optimizer_name"] = b"AdamOptimizer"
        state["train_step_info"]["step"] = np.int64(7)
        trainer = make(CONFIGS["AdamOptimizer"]())
        state["model"]["full_precision"]["b2"] = np.array(state["model"]["full_precision"]["b2"], np.float32)
        trainer.load_state_dict(state)
        self.assertEqual(trainer.state_dict()["optimizer"]["b2"]["Update_Count"].tolist(), [9])
        self.assertEqual(trainer._train_step_info.step, 7)


class RefusalTest(TrainerTest):
    """A state that is refused changes nothing."""

    def setUp(self):
        self.state = trained().state_dict()
        self.trainer = make(CONFIGS["AdamOptimizer"]())
        self.before = self.trainer.state_dict(True)

    def refuse(self, change, text, error=RuntimeError, strict=True):
        state = copy.deepcopy(self.state)
        change(state)
        with self.subTest(text), self.assertRaisesRegex(error, text):
            self.trainer.load_state_dict(state, strict)
        for name, value in self.trainer.state_dict(True).items():
            np.testing.assert_array_equal(value, self.before[name])
        self.assertEqual(self.trainer._train_step_info.step, 0)

    def test_keys_on_all_levels(self):
        def weights(state):
            return state["model"]["full_precision"]

        self.refuse(lambda s: s["model"].clear(), "(?i)missing.*full_precision.*state_dict\\[model\\]")
        self.refuse(lambda s: s["model"].update(half={}), "(?i)unexpected.*half.*state_dict\\[model\\]")
        self.refuse(lambda s: weights(s).pop("b1"), "(?i)missing.*b1.*state_dict\\[model\\]\\[full_precision\\]")
        self.refuse(lambda s: weights(s).update(z=s["optimizer"]), "(?i)z")
        self.refuse(lambda s: weights(s).update(z=weights(s)["b1"]), "(?i)unexpected.*z.*\\[full_precision\\]")
        self.refuse(lambda s: s["optimizer"].pop("w2"), "(?i)missing.*w2.*state_dict\\[optimizer\\]")
        self.refuse(lambda s: s["optimizer"].update(z=s["optimizer"]["b1"]), "(?i)unexpected.*z.*\\[optimizer\\]")
        self.refuse(lambda s: s["optimizer"]["w2"].pop("Moment_1"), "(?i)missing.*Moment_1.*\\[optimizer\\]\\[w2\\]")
        self.refuse(
            lambda s: s["optimizer"]["w2"].update(Moment_3=s["optimizer"]["w2"]["Moment_1"]),
            "(?i)unexpected.*Moment_3.*\\[optimizer\\]\\[w2\\]",
        )

    def test_values(self):
        def put(section, name, value):
            return lambda s: section(s).update({name: value})

        for strict in (True, False):
            for value, text in ((np.zeros(5, np.float32), "b1.*5.*4"), (np.zeros(4), "b1.*f64.*f32")):
                self.refuse(put(lambda s: s["model"]["full_precision"], "b1", value), text, strict=strict)
            moment = np.zeros((2, 4), np.float32)
            self.refuse(put(lambda s: s["optimizer"]["w2"], "Moment_2", moment), "w2", strict=strict)
        self.refuse(put(lambda s: s["train_step_info"], "step", -1), "-1")

    def test_another_optimizer(self):
        def rename(state):
            state["trainer_options"]["optimizer_name"] = "LambOptimizer"

        self.refuse(rename, "LambOptimizer.*AdamOptimizer", AssertionError)
        self.refuse(rename, "LambOptimizer.*AdamOptimizer", AssertionError, strict=False)

    def test_what_is_no_state(self):
        for state, text in (([], "list"), ({"model": {"full_precision": {"b1": object()}}}, "b1"), ({3: {}}, "3")):
            with self.subTest(text), self.assertRaisesRegex(TypeError, text), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.trainer.load_state_dict(state)

    def test_sections_that_are_missing(self):
        for section in ("model", "optimizer", "train_step_info"):
            state = {key: value for key, value in self.state.items() if key not in (section, "onnxtrain")}
            trainer = make(CONFIGS["AdamOptimizer"]())
            with self.subTest(section), self.assertWarnsRegex(UserWarning, section):
                trainer.load_state_dict(state)
            moved = np.abs(np.asarray(trainer.state_dict(True)["w1"]) - START["w1"]).max()
            self.assertEqual(moved > 0, section != "model")
            self.assertEqual(trainer._train_step_info.step, 0 if section == "train_step_info" else 3)

    def test_parts_that_are_not_strict(self):
        state = {"model": {"full_precision": {"w1": np.ones((3, 4), np.float32), "other": np.ones(2, np.float32)}}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trainer.load_state_dict(state, strict=False)
        found = self.trainer.state_dict(True)
        self.assertTrue((found["w1"] == 1).all())
        np.testing.assert_array_equal(found["w2"], START["w2"])


@unittest.skipUnless(HAS_HDF5, "the library was built without HDF5")
class CheckpointTest(TrainerTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "checkpoint"

    def test_going_on_from_a_file(self):
        options = {"batch": {"gradient_accumulation_steps": 3}}
        for name in CONFIGS:
            data = batches(9)
            expected = run(make(CONFIGS[name](), options), data)
            for n in (0, 3, 4, 5):
                with self.subTest(name, n=n):
                    path = self.path.with_name(f"{name}{n}")
                    one, other = make(CONFIGS[name](), options), make(CONFIGS[name](), options)
                    found = run(one, data[:n])
                    one.save_checkpoint(path)
                    self.assertEqual(other.load_checkpoint(path), {})
                    self.assertEqual(other._train_step_info.step, n)
                    self.assertEqual(found + run(other, data[n:]), expected)

    def test_what_the_user_adds(self):
        given = {"epoch": 3, "rates": [0.1, (0.2, None)], 1: {"set": {1, 2}}, "one": np.float32(2)}
        given["array"] = np.arange(3.0)
        trained().save_checkpoint(self.path, given)
        found = trained().load_checkpoint(self.path)
        self.assertEqual(found.pop("array").tolist(), [0, 1, 2])
        self.assertEqual(found, {key: value for key, value in given.items() if key != "array"})

    def test_pickles_that_call_are_refused(self):
        class Bomb:
            def __reduce__(self):
                return os.mkdir, (str(marker),)

        marker = self.path.with_name("marker")
        trained().save_checkpoint(self.path, {"bomb": Bomb()})
        trainer = make(CONFIGS["AdamOptimizer"]())
        with self.assertRaisesRegex(onnxtrain.FormatError, r"\.mkdir.*allow_pickle"):
            trainer.load_checkpoint(self.path)
        self.assertFalse(marker.exists())
        self.assertEqual(trainer._train_step_info.step, 0)
        trainer.load_checkpoint(self.path, allow_pickle=True)
        self.assertTrue(marker.exists())

    def test_pickles_that_are_none(self):
        from onnxtrain import _user_dict

        for text in ("", "zz", "80", pickle.dumps({})[:-2].hex()):
            with self.subTest(text), self.assertRaises(onnxtrain.FormatError):
                _user_dict.decode(text, False)

    def test_without_the_optimizer(self):
        trained().save_checkpoint(self.path, include_optimizer_states=False)
        trainer = make(CONFIGS["AdamOptimizer"]())
        trainer.load_checkpoint(self.path)
        state = trainer.state_dict()
        self.assertEqual(state["optimizer"]["w1"]["Update_Count"].tolist(), [1])
        self.assertEqual(state["train_step_info"], {"optimization_step": 3, "step": 3})
        np.testing.assert_array_equal(state["model"]["full_precision"]["w1"], trained().state_dict(True)["w1"])

    def test_files_that_are_refused(self):
        trainer = trained()
        trainer.save_checkpoint(self.path)
        before = self.path.read_bytes()
        with self.assertRaisesRegex(OSError, "exists"):
            trainer.save_checkpoint(self.path)
        self.assertEqual(self.path.read_bytes(), before)
        with self.assertRaises(FileNotFoundError):
            trainer.load_checkpoint(self.path.with_name("other"))
        with self.assertRaises(OSError):
            trainer.save_checkpoint(self.path / "below")
        self.path.write_bytes(before[:100])
        with self.assertRaises(onnxtrain.FormatError):
            trainer.load_checkpoint(self.path)
        for paths in ((), (self.path, self.path)):
            with self.assertRaises(AssertionError):
                trainer.load_checkpoint(*paths)
        with self.assertRaises(AssertionError):
            trainer.save_checkpoint(self.path.with_name("new"), [1])
        with self.assertRaises(RuntimeError):
            make(model=WITH_LOSS.replace(b"w1", b"v1")).load_checkpoint(self.saved(trained("SGDOptimizer")))
        with self.assertRaises(RuntimeError):
            make(CONFIGS["AdamOptimizer"]()).load_checkpoint(self.path.with_name("SGDOptimizer"))

    def saved(self, trainer):
        path = self.path.with_name(trainer.optim_config.name)
        checkpoint.save_checkpoint(trainer, path)
        return path

    def test_the_functions_of_the_module(self):
        trainer = make(CONFIGS["AdamOptimizer"]())
        path = self.saved(trained("AdamOptimizer"))
        self.assertEqual(checkpoint.load_checkpoint(trainer, path, strict=True), {})
        self.assertEqual(trainer._train_step_info.step, 3)
        self.assertEqual(path.read_bytes()[:8], b"\x89HDF\r\n\x1a\n")

    def test_files_of_sessions(self):
        trainer, other = trained(), make(CONFIGS["AdamOptimizer"]())
        trainer._trainer.save(str(self.path), True, None, False)
        names = [name for name, _ in CheckpointState.load_checkpoint(self.path).parameters]
        self.assertEqual(sorted(names), sorted(NAMES))
        self.assertEqual(other.load_checkpoint(self.path), {})
        self.assertEqual(run(other, batches(5)[3:]), run(trainer, batches(5)[3:]))


@unittest.skipUnless(HAS_HDF5, "the library was built without HDF5")
class StorageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "values"

    def test_values_come_back(self):
        given = {
            "int": -3,
            "float": 0.1,
            "bool": True,
            "text": "Größe",
            "bytes": b"abc",
            "ints": [1, -2],
            "empty": {},
            "group": {"inner": {"a.b": 1}},
        }
        for dtype in ("f4", "f2", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"):
            for shape in ((), (3,), (2, 3), (0, 2)):
                given[f"{dtype} {len(shape)} {0 in shape}"] = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        _checkpoint_storage.save(given, self.path)
        found = _checkpoint_storage.load(self.path)
        self.assertEqual(set(found), set(given))
        for name, value in given.items():
            with self.subTest(name):
                if isinstance(value, np.ndarray):
                    np.testing.assert_array_equal(found[name], value)
                    self.assertEqual(np.shape(found[name]), value.shape)
                    if value.ndim > 0:
                        self.assertEqual(found[name].dtype, value.dtype)
                elif name == "ints":
                    self.assertEqual(found[name].tolist(), value)
                else:
                    self.assertEqual(found[name], value.encode() if isinstance(value, str) else value)

    def test_keys(self):
        _checkpoint_storage.save({"a": {"b": {"c": 5}, "d": np.ones(2)}, "e": {}}, self.path)
        self.assertEqual(_checkpoint_storage.load(self.path, "a/b"), {"c": 5})
        self.assertEqual(_checkpoint_storage.load(self.path, key="a/b/c"), 5)
        self.assertEqual(_checkpoint_storage.load(self.path, "a/d").tolist(), [1, 1])
        self.assertEqual(_checkpoint_storage.load(self.path, "e"), {})
        with self.assertRaises(KeyError):
            _checkpoint_storage.load(self.path, "a/x")

    def test_what_is_refused(self):
        for value in (None, {1, 2}, [1, "a"], object()):
            with self.subTest(value), self.assertRaises(TypeError):
                _checkpoint_storage.save({"a": value}, self.path)
        for value in (None, [1], "text"):
            with self.subTest(value), self.assertRaises(ValueError):
                _checkpoint_storage.save(value, self.path)
        self.assertFalse(self.path.exists())
        with self.assertRaisesRegex(ValueError, "values: is not an HDF5 file"):
            _checkpoint_storage.load(self.path)
        self.path.write_text("text")
        with self.assertRaisesRegex(ValueError, "values: is not an HDF5 file"):
            _checkpoint_storage.load(self.path)
        with self.assertRaisesRegex(OSError, "exists already"):
            _checkpoint_storage.save({}, self.path)
        self.assertEqual(self.path.read_text(), "text")

    def test_dicts_of_the_user(self):
        text = _checkpoint_storage.to_serialized_hex({"epoch": 3})
        self.assertEqual(_checkpoint_storage.from_serialized_hex(text), {"epoch": 3})
        self.assertEqual(_checkpoint_storage.from_serialized_hex(text.encode()), {"epoch": 3})

    def test_the_layout_of_a_checkpoint(self):
        trained().save_checkpoint(self.path, {"epoch": 3})
        found = _checkpoint_storage.load(self.path)
        self.assertEqual(found["trainer_options"]["optimizer_name"], b"AdamOptimizer")
        self.assertEqual(found["train_step_info"], {"optimization_step": 3, "step": 3})
        self.assertEqual(set(found["optimizer"]["w1"]), {"Moment_1", "Moment_2", "Update_Count"})
        self.assertEqual(_checkpoint_storage.from_serialized_hex(found["user_dict"]), {"epoch": 3})
        again = make(CONFIGS["AdamOptimizer"]())
        del found["user_dict"]
        again.load_state_dict(found)
        self.assertEqual(run(again, batches(5)[3:]), run(trained(), batches(5)[3:]))


class ModelTest(TrainerTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "trained.onnx"

    def test_the_model_that_is_saved_is_the_trained_one(self):
        trainer, one = trained(), batches(1)[0]
        for path in (self.path, str(self.path)):
            trainer.save_as_onnx(path)
            session = InferenceSession(path)
            self.assertEqual([node.name for node in session.get_inputs()], ["x", "label"])
            loss, scores = session.run(None, {"x": one[0], "label": one[1]})
            expected = trainer.eval_step(*one)
            np.testing.assert_allclose(loss, expected[0], rtol=1e-6)
            np.testing.assert_allclose(scores, expected[1], rtol=1e-6)

    def test_it_trains_again(self):
        trainer, data = trained("SGDOptimizer", 2), batches(4)
        trainer.save_as_onnx(self.path)
        again = make(CONFIGS["SGDOptimizer"](), model=self.path)
        self.assertEqual(run(again, data[2:]), run(trainer, data[2:]))

    def test_paths_that_are_refused(self):
        trainer = trained()
        for path in (3, None):
            with self.assertRaises(AssertionError):
                trainer.save_as_onnx(path)
        for path in (self.path.parent / "none" / "model.onnx", self.path.parent):
            with self.assertRaises(OSError):
                trainer.save_as_onnx(path)

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
    def test_the_model_in_memory(self):
        from onnx import numpy_helper

        trainer = trained("SGDOptimizer")
        found = {one.name: numpy_helper.to_array(one) for one in trainer._onnx_model.graph.initializer}
        expected = trainer.state_dict(True)
        self.assertEqual(set(found), set(NAMES))
        for name in NAMES:
            np.testing.assert_array_equal(found[name], expected[name])
        kept = trainer._onnx_model
        run(trainer, batches(1))
        self.assertIs(trainer._onnx_model, kept)
        trainer.save_as_onnx(self.path)
        self.assertIsNot(trainer._onnx_model, kept)

    def test_the_state_of_the_session(self):
        state = trained("LambOptimizer")._training_session.get_state()
        moments = {f"Moment_{i}_{name}" for name in NAMES for i in (1, 2)}
        self.assertEqual(set(state), {*NAMES, *moments, "Step"})
        state = trained("AdamOptimizer")._training_session.get_state()
        self.assertEqual(state["Update_Count_w1"].tolist(), [4])


if __name__ == "__main__":
    unittest.main()
