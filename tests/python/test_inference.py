# SPDX-License-Identifier: Apache-2.0
"""Running models by hand: onnxtrain.InferenceSession."""

import unittest

import numpy as np
from network import NAMES, START, TEXT, NetworkTest, batch, cross_entropy

from onnxtrain import InferenceSession, OrtValue, SessionOptions

try:
    import torch
except ImportError:
    torch = None


def forward(x):
    h = np.maximum(x @ START["w1"] + START["b1"], 0)
    return h, h @ START["w2"] + START["b2"]


class InferenceTest(unittest.TestCase):
    def test_outputs_are_those_of_the_formula_for_any_shape(self):
        session = InferenceSession(TEXT)
        for rows in (1, 7, 3, 7, 12, 2):
            x = batch(rows, rows)[0]
            (y,) = session.run(None, {"x": x})
            np.testing.assert_allclose(y, forward(x)[1], atol=1e-6)
            self.assertEqual(y.dtype, np.float32)

    def test_inputs_and_outputs_are_described(self):
        session = InferenceSession(TEXT, SessionOptions(), providers=["CPUExecutionProvider"])
        (x,), (y,) = session.get_inputs(), session.get_outputs()
        self.assertEqual((x.name, x.type, x.shape), ("x", "tensor(float)", ["N", 3]))
        self.assertEqual((y.name, y.type, y.shape), ("y", "tensor(float)", ["N", 2]))
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertIn("'x'", repr(x))

    def test_results_are_of_the_kind_that_was_given(self):
        session, x = InferenceSession(TEXT), batch()[0]
        self.assertIsInstance(session.run(["y"], {"x": OrtValue.ortvalue_from_numpy(x)})[0], np.ndarray)
        self.assertIsInstance(session.run_with_ort_values(None, {"x": OrtValue.ortvalue_from_numpy(x)})[0], OrtValue)
        if torch is not None:
            self.assertIsInstance(session.run(None, {"x": torch.from_numpy(x)})[0], torch.Tensor)

    def test_texts_are_fed_and_become_numbers(self):
        """What ONNX Runtime 1.19.2 gives for the same arrays."""
        model = b'''<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml": 2]>
        net (string[N] s) => (int64[N] i) { i = ai.onnx.ml.LabelEncoder<keys_strings: strings = ["b", "a", "ab"],
        values_int64s: ints = [2, 1, 3], default_int64: int = -7>(s) }'''
        session = InferenceSession(model)
        self.assertEqual(session.get_inputs()[0].type, "tensor(string)")
        for given, expected in (
            (np.array(["a", "zz", "b"], object), [1, -7, 2]),
            (np.array(["a", "zz", "b"]), [1, -7, 2]),
            (np.array([b"a", b"zz"]), [1, -7]),
            (["a", "b", "ab", ""], [1, 2, 3, -7]),
            (np.array(["a", 1, None], object), [1, -7, -7]),
            (np.array([], "U1"), []),
            (np.array(["b", "a", "b"])[::-2], [2, 2]),
            (np.array(["\u00e9\u4e00", "a\0b"], object), [-7, -7]),
        ):
            with self.subTest(given):
                self.assertEqual(session.run(None, {"s": given})[0].tolist(), expected)
        for given, error, text in (
            (np.array([1.0, 2.0]), RuntimeError, "input 's' is an array of float64, expected strings"),
            (np.array([["a"]]), RuntimeError, "input 's' has 2 axes|shape"),
            (np.array("a"), RuntimeError, "input 's' has 0 axes|shape"),
            (OrtValue.ortvalue_from_numpy(np.zeros(2, np.int64)), RuntimeError, "'s' is i64, expected string"),
            (["\ud800"], UnicodeEncodeError, ""),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                session.run(None, {"s": given})

    def test_what_does_not_fit_is_told(self):
        session, x = InferenceSession(TEXT), batch()[0]
        for names, feed, error, text in (
            (None, {}, ValueError, r"Required inputs \(\['x'\]\) are missing"),
            (None, {"x": x, "q": x}, RuntimeError, "no input 'q'"),
            (["q"], {"x": x}, RuntimeError, "no output 'q'"),
            (None, {"x": x.astype(np.float64)}, RuntimeError, "f64, expected f32"),
            (None, {"x": x[:, :2]}, RuntimeError, "'x'"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                session.run(names, feed)
        with self.assertRaisesRegex(TypeError, "strings must become numbers"):
            session.run(None, {"x": np.array([["a", "b", "c"]])})
        with self.assertRaises(OSError):
            InferenceSession("/no/such.onnx")

    def test_numbers_in_lists_become_what_the_model_takes(self):
        session, x = InferenceSession(TEXT), batch()[0]
        (y,) = session.run(None, {"x": x.tolist()})
        np.testing.assert_allclose(y, forward(x)[1], atol=1e-6)

    def test_a_provider_that_is_not_there_is_warned_of(self):
        with self.assertWarnsRegex(UserWarning, "CUDAExecutionProvider are not built in"):
            session = InferenceSession(TEXT, providers=["CUDAExecutionProvider"])
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        InferenceSession(TEXT, None, [("CUDAExecutionProvider", {}), "CPUExecutionProvider"])
        for wrong in (["CPUExecutionProvider", 5], "CPUExecutionProvider"):
            with self.assertRaisesRegex(ValueError, "expected a list of names"):
                InferenceSession(TEXT, providers=wrong)

    def test_the_model_says_what_it_is(self):
        text = TEXT.replace(b"<ir_version: 8", b'<ir_version: 8, producer_name: "me", domain: "d.e", model_version: 7')
        text = text.replace(b" : 17]>", b' : 17], metadata_props: ["k": "v", "l": "w"]>')
        about = InferenceSession(text).get_modelmeta()
        self.assertEqual((about.producer_name, about.domain, about.version), ("me", "d.e", 7))
        self.assertEqual((about.graph_name, about.description, about.graph_description), ("net", "", ""))
        self.assertEqual(about.custom_metadata_map, {"k": "v", "l": "w"})


class BindingTest(unittest.TestCase):
    def setUp(self):
        self.session, self.x = InferenceSession(TEXT), batch()[0]
        self.expected = forward(self.x)[1]

    def test_outputs_are_made_where_none_is_bound(self):
        binding = self.session.io_binding()
        binding.bind_cpu_input("x", self.x)
        binding.bind_output("y")
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], self.expected, atol=1e-6)
        self.assertEqual(binding.get_outputs()[0].shape(), [5, 2])

    def test_memory_that_is_bound_is_read_and_written(self):
        y, other = np.zeros((5, 2), np.float32), OrtValue.ortvalue_from_shape_and_type([5, 2], np.float32)
        binding = self.session.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, self.x.shape, self.x.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, [5, 2], y.ctypes.data)
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(y, self.expected, atol=1e-6)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_input("x", OrtValue.ortvalue_from_numpy(-self.x))
        binding.bind_ortvalue_output("y", other)
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(other.numpy(), forward(-self.x)[1], atol=1e-6)

    def test_what_does_not_fit_is_told(self):
        binding = self.session.io_binding()
        with self.assertRaisesRegex(RuntimeError, "no output is bound"):
            self.session.run_with_iobinding(binding)
        with self.assertRaisesRegex(RuntimeError, "no input 'q', its inputs are x"):
            binding.bind_cpu_input("q", self.x)
        with self.assertRaisesRegex(RuntimeError, "input 'x' is str, expected an array"):
            binding.bind_cpu_input("x", "text")
        binding.bind_output("q")
        binding.bind_cpu_input("x", self.x)
        with self.assertRaisesRegex(RuntimeError, "no output 'q'"):
            self.session.run_with_iobinding(binding)
        binding.clear_binding_outputs()
        binding.bind_ortvalue_output("y", OrtValue.ortvalue_from_shape_and_type([4, 2], np.float32))
        with self.assertRaisesRegex(RuntimeError, r"output 'y': the value is float32\[4, 2\]"):
            self.session.run_with_iobinding(binding)
        with self.assertRaises(ValueError):
            binding.bind_output("y", buffer_ptr=1)
        binding.clear_binding_inputs()
        with self.assertRaisesRegex(ValueError, "missing"):
            self.session.run_with_iobinding(binding)


class GraphTest(NetworkTest):
    def test_training_and_optimizer_graph_run_by_hand(self):
        training = InferenceSession(self.folder / "training_model.onnx")
        optimizer = InferenceSession(self.folder / "optimizer_model.onnx")
        params = {name: value.copy() for name, value in START.items()}
        buffers = {name: np.zeros_like(value) for name, value in START.items()}
        x, labels = batch()
        feed = {"x": x, "labels": labels, **params, "lazy_reset_grad": np.array([True])}
        feed.update({f"{name}_grad.accumulation.buffer": buffer for name, buffer in buffers.items()})
        outputs = training.run(None, feed)
        loss, gradients = cross_entropy(START, x, labels)
        self.assertAlmostEqual(float(outputs[0]), loss, places=6)
        for name in NAMES:
            np.testing.assert_allclose(buffers[name], gradients[name], atol=1e-6)
        self.assertEqual(optimizer.get_inputs()[2].type, "seq(tensor(float))")
        (done,) = optimizer.run(
            None,
            {
                "learning_rate": np.array([0.5], np.float32),
                "step": np.array([1]),
                "params": list(params.values()),
                "gradients": list(buffers.values()),
                "first_order_moments": [np.zeros_like(value) for value in params.values()],
            },
        )
        self.assertTrue(done.all())
        for name in NAMES:
            np.testing.assert_allclose(params[name], START[name] - 0.5 * gradients[name], atol=1e-6)

    def test_an_array_that_must_not_change_does_not(self):
        training = InferenceSession(self.folder / "training_model.onnx")
        feed = {}
        for one in training.get_inputs():
            number = 7 if one.type == "tensor(int64)" else 9 if one.type == "tensor(bool)" else 1
            shape = [5 if isinstance(extent, str) or extent is None else extent for extent in one.shape]
            feed[one.name] = np.ones(shape, {7: np.int64, 9: bool, 1: np.float32}[number])
            feed[one.name].flags.writeable = False
        training.run(None, feed)
        training.run_with_ort_values(None, {name: OrtValue.ortvalue_from_numpy(value) for name, value in feed.items()})
        for value in feed.values():
            self.assertTrue((value == 1).all())

    def test_an_exported_model_gives_what_the_eval_model_gives(self):
        module, (x, _) = self.load(), batch()
        module.export_model_for_inferencing(self.folder / "out.onnx", ["h", "y"])
        h, y = InferenceSession(self.folder / "out.onnx").run(["h", "y"], {"x": x})
        np.testing.assert_allclose(h, forward(x)[0], atol=1e-6)
        np.testing.assert_allclose(y, forward(x)[1], atol=1e-6)


if __name__ == "__main__":
    unittest.main()
