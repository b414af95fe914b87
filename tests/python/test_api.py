# SPDX-License-Identifier: Apache-2.0
"""Training step by step: onnxtrain.api."""

import gc
import threading
import unittest

import numpy as np
from network import NAMES, START, TEXT, NetworkTest, batch, cross_entropy

import onnxtrain
from onnxtrain import OrtValue, SessionOptions
from onnxtrain.api import CheckpointState, LinearLRScheduler, LRScheduler, Module, Optimizer
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

try:
    import torch
except ImportError:
    torch = None


class StepTest(NetworkTest):
    def test_a_step_gives_loss_and_gradients_of_the_formula(self):
        module, (x, labels) = self.load(), batch()
        loss, gradients = cross_entropy(START, x, labels)
        self.assertAlmostEqual(float(module(x, labels)), loss, places=6)
        for name in NAMES:
            np.testing.assert_allclose(self.state.parameters[name].grad, gradients[name], atol=1e-6)

    def test_steps_follow_the_formula(self):
        module, expected = self.load(), {k: v.astype(np.float64) for k, v in START.items()}
        self.optimizer.set_learning_rate(0.1)
        for number in range(5):
            x, labels = batch(number)
            loss, gradients = cross_entropy(expected, x, labels)
            self.assertAlmostEqual(float(module(x, labels)), loss, places=5)
            self.optimizer.step()
            module.lazy_reset_grad()
            for name in NAMES:
                expected[name] -= 0.1 * gradients[name]
        for name in NAMES:
            np.testing.assert_allclose(self.state.parameters[name].data, expected[name], atol=1e-5)

    def test_gradients_add_up_until_they_are_reset(self):
        module, (x, labels) = self.load(), batch()
        once = cross_entropy(START, x, labels)[1]["w2"]
        module(x, labels)
        module(x, labels)
        np.testing.assert_allclose(self.state.parameters["w2"].grad, 2 * once, atol=1e-6)
        module.lazy_reset_grad()
        module(x, labels)
        np.testing.assert_allclose(self.state.parameters["w2"].grad, once, atol=1e-6)

    def test_an_eval_step_changes_nothing(self):
        module, (x, labels) = self.load(), batch()
        loss = module.eval()(x, labels)
        self.assertAlmostEqual(float(loss), cross_entropy(START, x, labels)[0], places=6)
        self.assertEqual(np.abs(self.state.parameters["w1"].grad).max(), 0)
        self.assertIs(module.train(), module)
        self.assertTrue(module.training)

    def test_results_are_of_the_kind_that_was_given(self):
        module, (x, labels) = self.load(), batch()
        self.assertIsInstance(module(x, labels), np.ndarray)
        values = [OrtValue.ortvalue_from_numpy(a) for a in (x, labels)]
        loss = module(*values)
        self.assertIsInstance(loss, OrtValue)
        self.assertEqual(loss.shape(), [])
        self.assertIsInstance(module(values[0], labels), np.ndarray)
        if torch is not None:
            loss = module(torch.from_numpy(x), torch.from_numpy(labels))
            self.assertIsInstance(loss, torch.Tensor)
            self.assertAlmostEqual(loss.item(), cross_entropy(START, x, labels)[0], places=6)

    def test_names_are_those_of_the_mode(self):
        module = self.load()
        self.assertEqual(module.input_names(), ["x", "labels"])
        self.assertEqual(len(module.output_names()), 1)
        self.assertEqual(module.eval().input_names(), ["x", "labels"])

    def test_inputs_that_do_not_fit_are_named(self):
        module, (x, labels) = self.load(), batch()
        for inputs, text in (
            ((x,), "got 1 inputs, expected 2: 'x', 'labels'"),
            ((x.astype(np.float64), labels), "input 0 'x' is f64, expected f32"),
            ((x[:, :2], labels), "input 0 'x' has shape"),
        ):
            with self.subTest(text), self.assertRaisesRegex(RuntimeError, text):
                module(*inputs)

    def test_labels_outside_the_classes_are_refused(self):
        module, (x, labels) = self.load(), batch()
        with self.assertRaises(ValueError):
            module(x, labels + 2)


class ModuleTest(NetworkTest):
    def test_without_an_eval_model_there_is_no_eval_step_and_no_export(self):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = Module(str(self.folder / "training_model.onnx"), state)
        with self.assertRaisesRegex(RuntimeError, "no eval model"):
            module.eval()(*batch())
        with self.assertRaisesRegex(RuntimeError, "no eval model"):
            module.export_model_for_inferencing(self.folder / "out.onnx", ["y"])

    def test_models_may_be_given_as_bytes(self):
        state = CheckpointState.load_checkpoint((self.folder / "checkpoint").read_bytes())
        module = Module((self.folder / "training_model.onnx").read_bytes(), state)
        Optimizer((self.folder / "optimizer_model.onnx").read_bytes(), module)
        module(*batch())

    def test_a_later_module_takes_the_state_over(self):
        first = self.load()
        second = self.load_again()
        second(*batch())
        with self.assertRaisesRegex(RuntimeError, "taken over"):
            first(*batch())

    def load_again(self):
        return Module(self.folder / "training_model.onnx", self.state)

    def test_the_state_outlives_the_module(self):
        module = self.load()
        module(*batch())
        self.optimizer.step()
        del module, self.module, self.optimizer
        gc.collect()
        self.assertEqual(self.state.parameters["w1"].data.shape, (3, 4))
        self.load_again()(*batch())

    def test_another_device_and_prepacking_are_refused(self):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        with self.assertRaisesRegex(RuntimeError, "device 'cuda:0' is not built in"):
            Module(self.folder / "training_model.onnx", state, device="cuda:0")
        options = SessionOptions()
        options.add_session_config_entry("session.disable_prepacking", "0")
        with self.assertRaisesRegex(RuntimeError, "prepacking"):
            Module(self.folder / "training_model.onnx", state, session_options=options)

    def test_a_memory_limit_is_kept(self):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        options = SessionOptions()
        options.memory_max = 100
        module = Module(self.folder / "training_model.onnx", state, session_options=options)
        with self.assertRaises(MemoryError):
            module(*batch())
        for nothing in (None, "none", 0):
            options.memory_max = nothing
            Module(self.folder / "training_model.onnx", CheckpointState.load_checkpoint(self.folder / "checkpoint"),
                   session_options=options)(*batch())
        options.memory_max = "much"
        with self.assertRaisesRegex(ValueError, "neither a number nor 'none'"):
            Module(self.folder / "training_model.onnx", CheckpointState.load_checkpoint(self.folder / "checkpoint"),
                   session_options=options)

    def test_the_process_has_a_ceiling(self):
        onnxtrain.set_memory_max(16)
        try:
            with self.assertRaisesRegex(MemoryError, "16 are allowed"):
                CheckpointState.load_checkpoint(self.folder / "checkpoint")
        finally:
            onnxtrain.set_memory_max(0)
        CheckpointState.load_checkpoint(self.folder / "checkpoint")

    def test_export_writes_a_model_with_the_present_parameters(self):
        module = self.load()
        self.state.parameters["b2"] = np.array([1, 2], np.float32)
        path = self.folder / "out.onnx"
        module.export_model_for_inferencing(path, ["y", "h"])
        model = onnxtrain._core.Model.load(str(path))
        self.assertEqual(model.input_names(), ["x"])
        self.assertEqual(model.output_names(), ["y", "h"])
        with self.assertRaisesRegex(RuntimeError, "no value 'z'"):
            module.export_model_for_inferencing(path, ["z"])
        with self.assertRaises(RuntimeError):
            module.export_model_for_inferencing(path, [])
        with self.assertRaises(TypeError):
            module.export_model_for_inferencing(path, "y")

    def test_the_vector_of_parameters_is_in_the_order_of_the_model(self):
        module = self.load()
        expected = np.concatenate([START[name].ravel() for name in NAMES])
        self.assertEqual(module.get_parameters_size(), 26)
        vector = module.get_contiguous_parameters()
        self.assertIsInstance(vector, OrtValue)
        np.testing.assert_array_equal(vector.numpy(), expected)
        module.copy_buffer_to_parameters(OrtValue.ortvalue_from_numpy(expected * 2))
        np.testing.assert_array_equal(self.state.parameters["w2"].data, START["w2"] * 2)
        with self.assertRaisesRegex(RuntimeError, "3 elements for 26"):
            module.copy_buffer_to_parameters(np.zeros(3, np.float32))
        with self.assertRaisesRegex(ValueError, "f64"):
            module.copy_buffer_to_parameters(np.zeros(26))

    def test_two_threads_in_one_module_are_told(self):
        module = self.load()
        x, labels = batch(rows=200_000)
        errors = []

        def work():
            for _ in range(5):
                try:
                    module(x, labels)
                except RuntimeError as error:
                    errors.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in errors:
            self.assertIn("one thread at a time", error)
        module(*batch())


class StateTest(NetworkTest):
    def test_parameters_are_a_mapping_sorted_by_name(self):
        self.load()
        parameters = self.state.parameters
        self.assertEqual([name for name, _ in parameters], ["b1", "b2", "w1", "w2"])
        self.assertEqual(len(parameters), 4)
        self.assertIn("w1", parameters)
        self.assertNotIn("w9", parameters)
        with self.assertRaises(KeyError):
            parameters["w9"]
        with self.assertRaises(KeyError):
            parameters["w9"] = np.zeros(1)
        self.assertTrue(parameters["w1"].requires_grad)
        self.assertEqual(repr(parameters["w1"]), "Parameter(name=w1, requires_grad=True)")
        self.assertIn("'w1'", repr(parameters))

    def test_a_value_may_be_set_before_there_is_a_module(self):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        self.assertIsNone(state.parameters["w1"].grad)
        state.parameters["w1"].data = np.ones((3, 4), np.float32)
        self.assertEqual(state.parameters["w1"].data.sum(), 12)
        for wrong in (np.ones((4, 3), np.float32), np.ones((3, 4))):
            with self.assertRaisesRegex(RuntimeError, "w1"):
                state.parameters["w1"].data = wrong

    def test_properties_keep_their_kind(self):
        self.load()
        properties = self.state.properties
        properties["epoch"] = 2**62
        properties["score"] = 0.5
        properties["name"] = "ünïcode"
        properties["empty"] = ""
        CheckpointState.save_checkpoint(self.state, self.folder / "saved", True)
        loaded = CheckpointState.load_checkpoint(self.folder / "saved").properties
        self.assertEqual(list(loaded), [("empty", ""), ("epoch", 2**62), ("name", "ünïcode"), ("score", 0.5)])
        self.assertIsInstance(loaded["score"], float)
        properties["epoch"] = "three"
        self.assertEqual(properties["epoch"], "three")
        del properties["epoch"]
        self.assertEqual(len(properties), 3)
        with self.assertRaises(KeyError):
            properties["epoch"]
        with self.assertRaises(TypeError):
            properties["list"] = [1]
        with self.assertRaises(OverflowError):
            properties["big"] = 2**64
        self.assertIn("score", repr(properties))

    def test_files_that_are_no_checkpoints_are_refused(self):
        (self.folder / "short").write_bytes((self.folder / "checkpoint").read_bytes()[:50])
        with self.assertRaises(onnxtrain.FormatError):
            CheckpointState.load_checkpoint(self.folder / "short")
        with self.assertRaises(OSError):
            CheckpointState.load_checkpoint(self.folder / "missing")
        with self.assertRaises(RuntimeError):
            CheckpointState.load_checkpoint(self.folder)
        with self.assertRaises(TypeError):
            CheckpointState("checkpoint")

    def test_a_frozen_parameter_has_no_gradient(self):
        generate_artifacts(
            TEXT,
            requires_grad=["w2", "b2"],
            frozen_params=["w1"],
            loss=LossType.CrossEntropyLoss,
            optimizer=OptimType.SGD,
            artifact_directory=self.folder,
        )
        self.load()(*batch())
        self.assertIsNone(self.state.parameters["w1"].grad)
        self.assertFalse(self.state.parameters["w1"].requires_grad)
        self.assertNotIn("b1", self.state.parameters)
        self.assertEqual(self.module.get_parameters_size(), 10)
        self.assertEqual(self.module.get_parameters_size(False), 22)


class BytesTest(NetworkTest):
    options = {"loss": LossType.CrossEntropyLoss, "optimizer": OptimType.AdamW}

    def steps(self, numbers):
        for number in numbers:
            self.module(*batch(number))
            self.optimizer.step()
            self.module.lazy_reset_grad()

    def test_the_bytes_of_a_state_are_those_of_its_file(self):
        self.load()
        self.steps(range(2))
        for with_moments in (False, True):
            CheckpointState.save_checkpoint(self.state, self.folder / "saved", with_moments)
            self.assertEqual(self.state.to_bytes(with_moments), (self.folder / "saved").read_bytes())

    def test_a_state_goes_on_from_bytes_bit_for_bit(self):
        self.load()
        self.steps(range(4))
        expected = self.state.parameters["w1"].data
        self.load()
        self.steps(range(2))
        (self.folder / "checkpoint").write_bytes(self.state.to_bytes(include_optimizer_state=True))
        self.load()
        self.steps(range(2, 4))
        np.testing.assert_array_equal(self.state.parameters["w1"].data, expected)

    def test_moments_may_stay_in_the_file(self):
        self.load()
        self.steps(range(2))
        path = self.folder / "saved"
        CheckpointState.save_checkpoint(self.state, path, True)
        bare = CheckpointState.load_checkpoint(path, include_optimizer_state=False)
        np.testing.assert_array_equal(bare.parameters["w1"].data, self.state.parameters["w1"].data)
        self.assertLess(len(bare.to_bytes(True)), len(CheckpointState.load_checkpoint(path).to_bytes(True)) - 4 * 26)

    def test_gradients_are_scaled_and_given_as_one_vector(self):
        module, (x, labels) = self.load(), batch()
        gradients = cross_entropy(START, x, labels)[1]
        module(x, labels)
        module.scale_grad(0.25)
        expected = np.concatenate([0.25 * gradients[name].ravel() for name in NAMES])
        np.testing.assert_allclose(module.get_contiguous_gradients().numpy(), expected, atol=1e-6)

    def test_memory_is_told(self):
        module = self.load()
        module(*batch())
        state, plan = module.memory()
        self.assertGreaterEqual(state, 4 * 4 * 26)  # value, gradient and two moments of 26 floats
        self.assertGreater(plan, 0)


class FromArraysTest(NetworkTest):
    def test_a_state_of_arrays_trains_as_the_file_does(self):
        arrays = {name: START[name] * 2 for name in NAMES}
        self.load()
        self.state = CheckpointState.from_arrays(arrays)
        self.module = Module(self.folder / "training_model.onnx", self.state)
        x, labels = batch()
        self.assertAlmostEqual(float(self.module(x, labels)), cross_entropy(arrays, x, labels)[0], places=6)
        np.testing.assert_array_equal(arrays["w1"], START["w1"] * 2)

    def test_frozen_arrays_have_no_gradient(self):
        state = CheckpointState.from_arrays({"w": [[1.0]]}, frozen={"b": np.ones(2, np.float32)})
        self.assertTrue(state.parameters["w"].requires_grad)
        self.assertFalse(state.parameters["b"].requires_grad)
        with self.assertRaisesRegex(ValueError, "'w'"):
            CheckpointState.from_arrays({"w": [1.0]}, frozen={"w": [1.0]})


class ScheduleTest(NetworkTest):
    def rates(self, *args, **options):
        self.load()
        scheduler, rates = LRScheduler(self.optimizer, *args, **options), []
        for number in range(4):
            scheduler.step()
            rates.append(self.optimizer.get_learning_rate())
            self.module(*batch(number))
            self.optimizer.step()
        return rates

    def test_schedules_follow_their_formulas(self):
        for args, options, expected in (
            (("constant", 0.5), {}, [0.5] * 4),
            (("linear", 0.4, 8, 2), {}, [0, 0.2, 0.4, 0.4 * 5 / 6]),
            (("cosine", 0.4, 4), {}, [0.2 * (1 + np.cos(np.pi * step / 4)) for step in range(4)]),
            (("step", 0.4), {"step_size": 2, "gamma": 0.5}, [0.4, 0.4, 0.2, 0.2]),
            (("exponential", 0.4), {"gamma": 0.5}, [0.4, 0.2, 0.1, 0.05]),
            (("exponential", 0.4, 0, 2), {"gamma": 0.5}, [0, 0.2, 0.4, 0.2]),
            (("polynomial", 0.4, 4), {"power": 2}, [0.4 * (1 - step / 4) ** 2 for step in range(4)]),
        ):
            with self.subTest(args[0]):
                np.testing.assert_allclose(self.rates(*args, **options), expected, rtol=1e-6, atol=1e-9)

    def test_another_schedule_is_refused(self):
        with self.assertRaisesRegex(ValueError, "schedule 'sine' is not one of"):
            self.rates("sine", 0.5)


class OptimizerTest(NetworkTest):
    options = {"loss": LossType.CrossEntropyLoss, "optimizer": OptimType.AdamW}

    def test_adamw_follows_the_formula(self):
        module = self.load()
        expected = {name: value.astype(np.float64) for name, value in START.items()}
        m, v = ({name: np.zeros_like(value) for name, value in expected.items()} for _ in range(2))
        for t in range(1, 6):
            x, labels = batch(t)
            gradients = cross_entropy(expected, x, labels)[1]
            module(x, labels)
            self.optimizer.step()
            module.lazy_reset_grad()
            rate = 0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            for name, g in gradients.items():
                m[name] = 0.9 * m[name] + 0.1 * g
                v[name] = 0.999 * v[name] + 0.001 * g * g
                expected[name] -= rate * m[name] / (np.sqrt(v[name]) + 1e-6)
        for name in NAMES:
            np.testing.assert_allclose(self.state.parameters[name].data, expected[name], atol=2e-6)

    def test_the_rate_is_a_thousandth_until_it_is_set(self):
        self.load()
        self.assertAlmostEqual(self.optimizer.get_learning_rate(), 0.001)
        self.optimizer.set_learning_rate(0.25)
        self.assertEqual(self.optimizer.get_learning_rate(), 0.25)

    def test_the_linear_schedule_counts_optimizer_steps(self):
        module = self.load()
        scheduler = LinearLRScheduler(self.optimizer, 2, 10, 1.0)
        rates = [self.optimizer.get_learning_rate()]
        for _ in range(6):
            module(*batch())
            self.optimizer.step()
            scheduler.step()
            scheduler.step()
            rates.append(self.optimizer.get_learning_rate())
        np.testing.assert_allclose(rates, [0, 0.5, 1, 0.875, 0.75, 0.625, 0.5], atol=1e-6)

    def train(self, first, last):
        for number in range(first, last):
            self.module(*batch(number))
            self.optimizer.step()
            self.module.lazy_reset_grad()
        return self.module.get_contiguous_parameters().numpy()

    def test_a_saved_state_goes_on_bit_for_bit(self):
        self.load()
        expected = self.train(0, 6)
        self.load()
        self.train(0, 3)
        CheckpointState.save_checkpoint(self.state, self.folder / "checkpoint", include_optimizer_state=True)
        self.load()
        np.testing.assert_array_equal(self.train(3, 6), expected)

    def test_a_model_that_is_no_optimizer_is_refused(self):
        module = self.load()
        with self.assertRaisesRegex(RuntimeError, "its inputs are"):
            Optimizer(self.folder / "eval_model.onnx", module)
        module(*batch())
        self.optimizer.step()


class NominalTest(NetworkTest):
    options = {**NetworkTest.options, "nominal_checkpoint": True}

    def test_a_nominal_state_is_completed_by_all_parameters(self):
        complete = self.load().get_contiguous_parameters()
        state = CheckpointState.load_checkpoint(self.folder / "nominal_checkpoint")
        module = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        optimizer = Optimizer(self.folder / "optimizer_model.onnx", module)
        self.assertEqual(module.get_parameters_size(), 26)
        for attempt in (
            lambda: module(*batch()),
            lambda: state.parameters["w1"].data,
            lambda: module.get_contiguous_parameters(),
            lambda: module.export_model_for_inferencing(self.folder / "out.onnx", ["y"]),
            lambda: module.copy_buffer_to_parameters(complete, trainable_only=True),
        ):
            with self.assertRaisesRegex(RuntimeError, "nominal"):
                attempt()
        module.copy_buffer_to_parameters(complete, trainable_only=False)
        self.assertAlmostEqual(float(module(*batch())), cross_entropy(START, *batch())[0], places=6)
        optimizer.step()


class TextsTest(NetworkTest):
    def test_inputs_may_be_texts(self):
        """Loss and gradient of ONNX Runtime training 1.19.2."""
        model = b'''<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 2]>
        net (string[N] x) => (float[N, 2] y) <float[3, 2] w = {0, 1, 2, 3, 4, 5}>
        { i = ai.onnx.ml.LabelEncoder<keys_strings: strings = ["a", "b"], values_int64s: ints = [1, 2],
          default_int64: int = 0>(x) y = Gather(w, i) }'''
        generate_artifacts(model, loss=LossType.MSELoss, artifact_directory=self.folder)
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        target = np.zeros((3, 2), np.float32)
        for texts in (np.array(["a", "b", "q"]), np.array(["a", "b", "q"], object), ["a", "b", "q"]):
            module.lazy_reset_grad()
            self.assertAlmostEqual(float(module.train()(texts, target)), 9.166667, places=5)
            self.assertAlmostEqual(float(module.eval()(texts, target)), 9.166667, places=5)
        w = np.arange(6).reshape(3, 2)
        np.testing.assert_allclose(state.parameters["w"].grad, w / 3, atol=1e-6)
        with self.assertRaisesRegex(RuntimeError, "expected strings"):
            module(target, target)


if __name__ == "__main__":
    unittest.main()
