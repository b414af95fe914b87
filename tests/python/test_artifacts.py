# SPDX-License-Identifier: Apache-2.0
"""From a forward model to files: onnxtrain.artifacts."""

import unittest

import numpy as np
from network import START, TEXT, NetworkTest, batch

import onnxtrain
from onnxtrain import _core
from onnxtrain.api import CheckpointState, Module
from onnxtrain.artifacts import LossType, OptimType, generate_artifacts

try:
    import onnx.parser
except ImportError:
    onnx = None

TWO_OUTPUTS = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 2] x) => (float[N, 2] y, float[N, 2] z) <float[2] w = {1, 2}>
{ y = Mul(x, w) z = Sub(y, x) }"""

BATCH_NORM = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 2] x) => (float[N, 2] y)
<float[2] scale = {1, 1}, float[2] bias = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1}>
{ y = BatchNormalization<epsilon = 0.0, momentum = 0.75>(x, scale, bias, mean, var) }"""


class ArtifactsTest(NetworkTest):
    def generate(self, model=TEXT, **options):
        options.setdefault("loss", LossType.MSELoss)
        generate_artifacts(model, artifact_directory=self.folder, **options)

    def training_step(self, *inputs):
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        module = Module(self.folder / "training_model.onnx", state, self.folder / "eval_model.onnx")
        return module, module(*inputs)

    def test_files_are_named_with_the_prefix(self):
        for path in self.folder.iterdir():
            path.unlink()
        self.generate(prefix="my_", optimizer=OptimType.AdamW, nominal_checkpoint=True)
        names = ["checkpoint", "eval_model.onnx", "nominal_checkpoint", "optimizer_model.onnx", "training_model.onnx"]
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["my_" + name for name in names])

    def test_losses_are_those_of_the_formula(self):
        x, target = batch()[0], np.random.default_rng(1).random((5, 2)).astype(np.float32)
        self.generate(loss=LossType.MSELoss, additional_output_names=["y"])
        _, (_, y) = self.training_step(x, target)
        formulas = {
            LossType.MSELoss: np.mean((y - target) ** 2),
            LossType.L1Loss: np.mean(np.abs(y - target)),
            LossType.BCEWithLogitsLoss: np.mean(np.logaddexp(0, y) - y * target),
        }
        for loss, expected in formulas.items():
            with self.subTest(loss.name):
                self.generate(loss=loss)
                self.assertAlmostEqual(float(self.training_step(x, target)[1]), float(expected), places=5)

    def test_standard_operators_train_to_the_same_values(self):
        x, target = batch()[0], np.zeros((5, 2), np.float32)
        gradients = []
        for standard in (False, True):
            self.generate(standard_ops=standard)
            module, _ = self.training_step(x, target)
            gradients.append(module.get_contiguous_gradients().numpy())
            left = _core.Model.load(str(self.folder / "training_model.onnx")).metadata("onnxtrain.nonstandard_operators")
            self.assertEqual(left, "com.microsoft.InPlaceAccumulatorV2" if standard else None)
        self.assertGreater(np.abs(gradients[0]).max(), 0.01)
        np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5, atol=1e-7)

    def test_without_a_loss_named_values_are_taken_as_they_are(self):
        model = TEXT.replace(b"(float[N, 2] y)", b"(float[N, 2] y, float l)").replace(
            b"y = Add(n, b2)", b"y = Add(n, b2) l = ReduceMean<keepdims = 0>(y)"
        )
        self.generate(model, loss=None, loss_input_names=["l", "y"])
        module, (loss, y) = self.training_step(batch()[0])
        self.assertEqual(module.output_names(), ["l", "y"])
        self.assertAlmostEqual(float(loss), float(np.mean(y)), places=6)

    def test_without_a_loss_the_first_output_is_it(self):
        model = TEXT.replace(b"(float[N, 2] y)", b"(float l, float[N, 2] y)").replace(
            b"y = Add(n, b2)", b"y = Add(n, b2) l = ReduceMean<keepdims = 0>(y)"
        )
        self.generate(model, loss=None)
        loss, y = self.training_step(batch()[0])[1]
        self.assertAlmostEqual(float(loss), float(y.mean()), places=6)

    def test_the_loss_takes_what_is_named(self):
        self.generate(TWO_OUTPUTS, loss_input_names=["z"], additional_output_names=["y"])
        x = np.array([[1, 2]], np.float32)
        loss, y = self.training_step(x, np.zeros((1, 2), np.float32))[1]
        self.assertEqual(float(loss), 2.0)  # z = (0, 2)
        self.assertEqual(y.tolist(), [[1, 4]])
        self.generate(TWO_OUTPUTS, loss_input_names=["z", "goal"])
        self.assertEqual(self.training_step(x, x)[0].input_names(), ["x", "goal"])
        with self.assertRaises(TypeError):
            self.generate(TWO_OUTPUTS, loss_input_names=["z", "goal", "more"])

    def test_batch_statistics_are_used_and_kept_as_frozen_parameters(self):
        self.generate(BATCH_NORM, requires_grad=["scale", "bias"], frozen_params=["mean", "var"])
        x = np.array([[1, 2], [3, 6]], np.float32)
        module, loss = self.training_step(x, np.zeros_like(x))
        self.assertAlmostEqual(float(loss), 1.0, places=5)  # normalised to -1 and 1
        state = module._state
        np.testing.assert_allclose(state.parameters["mean"].data, [0.5, 1.0], atol=1e-6)
        np.testing.assert_allclose(state.parameters["var"].data, [1.0, 1.75], atol=1e-6)
        self.assertFalse(state.parameters["mean"].requires_grad)

    def test_frozen_names_that_the_model_lacks_do_not_matter(self):
        self.generate(frozen_params=["w1", "bn.num_batches_tracked"])

    def test_nothing_need_train(self):
        dropout = b'''<ir_version: 8, opset_import: ["" : 17]>
        net (float[N, 2] x) => (float[N, 2] y) { y = Dropout(x) }'''
        x = np.array([[1, 2]], np.float32)
        for model, options in ((dropout, {}), (dropout, {"requires_grad": []}), (TEXT, {"requires_grad": []})):
            with self.subTest(options), self.assertWarnsRegex(UserWarning, "nothing trains"):
                self.generate(model, **options)
        with self.assertWarns(UserWarning):
            self.generate(dropout)
        module, _ = self.training_step(x, np.zeros_like(x))
        self.assertEqual(float(module.eval()(x, np.zeros_like(x))), 2.5)
        self.assertEqual(len(module._state.parameters), 0)
        with self.assertRaisesRegex(RuntimeError, "nothing to train"):
            self.generate(dropout, optimizer=OptimType.SGD)

    def test_inputs_have_gradients_when_they_are_named(self):
        self.generate(requires_grad=["x", "w2"], optimizer=OptimType.SGD)
        x, target = batch()[0], np.random.default_rng(1).random((5, 2)).astype(np.float32)
        module, _ = self.training_step(x, target)
        p = {name: value.astype(np.float64) for name, value in START.items()}
        h = np.maximum(x @ p["w1"] + p["b1"], 0)
        dy = 2 * (h @ p["w2"] + p["b2"] - target) / target.size
        dx = ((dy @ p["w2"].T) * (h > 0)) @ p["w1"].T
        np.testing.assert_allclose(module.get_input_gradient("x"), dx, atol=1e-6)
        self.assertEqual(module.input_names(), ["x", "target"])
        with self.assertRaisesRegex(RuntimeError, r"shape \[2,3\].*reset the gradients first"):
            module(x[:2], target[:2])
        module.lazy_reset_grad()
        module(x[:2], target[:2])
        np.testing.assert_allclose(module.get_input_gradient("x"), dx[:2] * 2.5, atol=1e-6)
        with self.assertRaisesRegex(LookupError, "no gradient of an input 'target'"):
            module.get_input_gradient("target")

    def test_what_is_wrong_is_told(self):
        for options, error, text in (
            ({"requires_grad": ["w1"], "frozen_params": ["w1"]}, RuntimeError, "Overlap.*w1"),
            ({"requires_grad": ["w9"]}, LookupError, "w9"),
            ({"loss": "mse"}, RuntimeError, "Unknown loss"),
            ({"optimizer": "sgd"}, TypeError, "Unknown optimizer"),
            ({"additional_output_names": "y"}, RuntimeError, "additional output names"),
            ({"additional_output_names": ["q"]}, LookupError, "'q'"),
            ({"custom_op_library": "/no/such.so"}, RuntimeError, "does not exist"),
            ({"model": 5}, RuntimeError, "Please pass"),
            ({"model": "/no/such.onnx"}, OSError, "no/such.onnx"),
            ({"model": b"\x08"}, onnxtrain.FormatError, ""),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                self.generate(**options)

    def test_an_operator_without_gradient_is_named(self):
        model = TEXT.replace(b"h = Relu(a)", b"h = Det2(a)")
        with self.assertRaisesRegex(RuntimeError, "Det2"):
            self.generate(model)

    @unittest.skipIf(onnx is None, "onnx is not installed")
    def test_the_model_may_be_a_model_proto(self):
        self.generate(onnx.parser.parse_model(TEXT.decode()))
        proto = onnx.load(self.folder / "training_model.onnx")
        onnx.checker.check_model(onnx.load(self.folder / "eval_model.onnx"))
        names = [value.name for value in proto.graph.input]
        self.assertEqual(names[:6], ["x", "target", "w1", "b1", "w2", "b2"])
        self.assertEqual(names[-1], "lazy_reset_grad")

    def test_ort_files_stand_beside_the_others(self):
        self.generate(optimizer=OptimType.AdamW, ort_format=True)
        for name in ("training", "eval", "optimizer"):
            names = [_core.Model.load(str(self.folder / f"{name}_model.{end}")).input_names() for end in ("onnx", "ort")]
            self.assertEqual(*names)

    def test_the_same_model_gives_the_same_bytes(self):
        first = (self.folder / "training_model.onnx").read_bytes()
        generate_artifacts(TEXT, artifact_directory=self.folder, **self.options)
        self.assertEqual((self.folder / "training_model.onnx").read_bytes(), first)
        self.assertEqual(_core.Model.load(str(self.folder / "eval_model.onnx")).input_names()[:2], ["x", "labels"])


if __name__ == "__main__":
    unittest.main()
