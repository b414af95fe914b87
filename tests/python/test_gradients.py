# SPDX-License-Identifier: Apache-2.0
"""Gradients of any value: onnxtrain.gradients."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
from network import START, TEXT, batch, cross_entropy

import onnxtrain
from onnxtrain import InferenceSession, OrtValue

try:
    import torch
except ImportError:
    torch = None

CURVED = b"""<ir_version: 8, opset_import: ["" : 17]>
curved (double[N, 3] x, double[N, 2] offset) => (double[N, 2] y, double total)
<double[3, 2] w = {0.3, -0.7, 0.2, 0.9, -0.4, 0.5}>
{ m = MatMul(x, w) n = Add(m, offset) t = Tanh(n) s = Sigmoid(m) y = Mul(t, s) q = Mul(y, y) total = ReduceSum<keepdims = 0>(q) }"""
LOSS = TEXT.replace(
    b"(float[N, 3] x) => (float[N, 2] y)", b"(float[N, 3] x, int64[N] labels) => (float[N, 2] y, float loss)"
).replace(b"y = Add(n, b2)", b"y = Add(n, b2) loss = SoftmaxCrossEntropyLoss(y, labels)")


def by_differences(value, x, seed, h=1e-6):
    """The product of seed and Jacobian from central differences of `value`, in f64."""
    slope = np.empty(x.shape)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = h
        step = step.reshape(x.shape)
        slope.flat[i] = ((value(x + step) - value(x - step)) * seed).sum() / (2 * h)
    return slope


class GradientsTest(unittest.TestCase):
    def setUp(self):
        draw = np.random.default_rng(3)
        self.x, self.offset, self.seed = (draw.normal(size=(4, n)) for n in (3, 2, 2))
        self.curved = InferenceSession(CURVED)

    def y(self, x):
        return self.curved.run(["y"], {"x": x, "offset": self.offset})[0]

    def test_of_a_loss_by_parameters_and_inputs_as_the_formula_says(self):
        x, labels = batch(1)
        slope = onnxtrain.gradients(LOSS, wrt=["w1", "b2", "x"], of="loss")
        loss, (dw1, db2, dx) = slope.value_and_gradients(x, labels)
        expected_loss, expected = cross_entropy(START, x, labels)
        self.assertAlmostEqual(float(loss), expected_loss, places=6)
        np.testing.assert_allclose(dw1, expected["w1"], atol=1e-6)
        np.testing.assert_allclose(db2, expected["b2"], atol=1e-6)
        by_hand = by_differences(lambda z: np.float64(cross_entropy(START, z, labels)[0]), x.astype(np.float64), 1.0)
        np.testing.assert_allclose(dx, by_hand, atol=1e-6)

    def test_a_seed_weights_the_elements_of_the_value(self):
        slope = onnxtrain.gradients(CURVED, "x")
        self.assertEqual((slope.of, slope.input_names, slope.takes_seed), ("y", ["x", "offset"], True))
        got = slope(self.x, self.offset, seed=self.seed)
        np.testing.assert_allclose(got, by_differences(self.y, self.x, self.seed), atol=1e-8)
        np.testing.assert_array_equal(slope({"offset": self.offset, "x": self.x}, seed=self.seed), got)

    def test_ones_differentiate_the_sum(self):
        slope = onnxtrain.gradients(CURVED, "x", "y", seed="ones")
        got = slope(self.x, self.offset)
        np.testing.assert_allclose(got, by_differences(self.y, self.x, 1.0), atol=1e-8)

    def test_a_value_of_one_element_takes_a_seed_when_asked(self):
        total = onnxtrain.gradients(CURVED, "x", "total")
        twice = onnxtrain.gradients(CURVED, "x", "total", seed="input")
        self.assertFalse(total.takes_seed)
        once = total(self.x, self.offset)
        np.testing.assert_allclose(twice(self.x, self.offset, seed=np.array(2.0)), 2 * once)

    def test_the_saved_model_gives_the_same(self):
        slope = onnxtrain.gradients(CURVED, ["x", "w"], "y")
        self.assertEqual(slope.nonstandard_operators, [])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "slope.onnx"
            slope.save(path)
            session = InferenceSession(path)
        self.assertEqual([one.name for one in session.get_outputs()], ["y", "x_grad", "w_grad"])
        feeds = {"x": self.x, "offset": self.offset, "y_grad": self.seed}
        for got, expected in zip(session.run(None, feeds)[1:], slope(self.x, self.offset, seed=self.seed)):
            np.testing.assert_allclose(got, expected, atol=1e-12)

    def test_gradients_have_gradients(self):
        slope = onnxtrain.gradients(CURVED, "x", "total")
        curvature = onnxtrain.gradients(slope.model, "x", "x_grad")
        direction = np.ones((4, 3))
        expected = by_differences(lambda x: slope(x, self.offset), self.x, direction)
        got = curvature(self.x, self.offset, seed=direction)
        np.testing.assert_allclose(got, expected, atol=1e-7)

    def test_a_model_outlives_the_gradients_it_came_from(self):
        model = onnxtrain.gradients(CURVED, "x", "total").model
        self.assertEqual(model.output_names(), ["total", "x_grad"])

    def test_results_are_of_the_kind_that_was_given(self):
        slope = onnxtrain.gradients(CURVED, "x", "total")
        values = [OrtValue.ortvalue_from_numpy(array) for array in (self.x, self.offset)]
        self.assertIsInstance(slope(*values), OrtValue)
        flat = onnxtrain.gradients(TEXT, "x", seed="ones")
        self.assertEqual(flat([[1, 2, 3]]).dtype, np.float32)  # lists take the type of the input
        if torch is not None:
            tensors = [torch.tensor(array, requires_grad=True) for array in (self.x, self.offset)]
            got = slope(*tensors)
            tensors[0].grad = None
            y = torch.tanh(tensors[0] @ WEIGHT + tensors[1]) * torch.sigmoid(tensors[0] @ WEIGHT)
            (y * y).sum().backward()
            torch.testing.assert_close(got, tensors[0].grad)

    def test_what_cannot_be_is_told(self):
        of_y = onnxtrain.gradients(CURVED, "x")
        of_total = onnxtrain.gradients(CURVED, "x", "total")
        for call, error, text in (
            (lambda: onnxtrain.gradients(CURVED, "z"), onnxtrain.NotFound, "no value 'z'"),
            (lambda: onnxtrain.gradients(CURVED, "x", "z"), LookupError, "no value 'z'"),
            (lambda: onnxtrain.gradients(LOSS, "labels", "loss"), onnxtrain.InvalidArgument, "'labels' is i64"),
            (lambda: onnxtrain.gradients(CURVED, []), ValueError, "at least one"),
            (lambda: onnxtrain.gradients(CURVED, "x", seed="two"), ValueError, "seed 'two' is not one of"),
            (lambda: of_y(self.x, self.offset), ValueError, "a seed of its shape"),
            (lambda: of_total(self.x, self.offset, seed=self.seed), ValueError, "take no seed"),
            (lambda: of_y(self.x, seed=self.seed), ValueError, "1 arrays are given, 'y' depends on x, offset"),
            (lambda: of_y({"x": self.x, "z": self.x}, seed=self.seed), ValueError, "depends on no input 'z'"),
            (lambda: of_y("x", self.offset, seed=self.seed), TypeError, "input 'x' is str, expected an array"),
            (lambda: of_y({"x": self.x}, seed=self.seed), ValueError, "input 'offset' is missing"),
            (lambda: of_y(self.x.astype(np.float32), self.offset, seed=self.seed), ValueError, "f32, expected f64"),
            (lambda: of_y(self.x, self.offset, seed=self.seed[:2]), ValueError, "y_grad"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call()


if torch is not None:
    WEIGHT = torch.tensor([[0.3, -0.7], [0.2, 0.9], [-0.4, 0.5]], dtype=torch.float64)

if __name__ == "__main__":
    unittest.main()
