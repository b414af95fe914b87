# SPDX-License-Identifier: Apache-2.0
"""Blocks and losses of onnxtrain.onnxblock."""

import importlib.util
import unittest

import numpy as np

from onnxtrain import InferenceSession

if importlib.util.find_spec("onnx") is None:
    raise unittest.SkipTest("onnx is not installed")

import onnx.numpy_helper  # noqa: E402
from two_outputs import T1, FolderTest, X, two, value  # noqa: E402

from onnxtrain import onnxblock  # noqa: E402
from onnxtrain.onnxblock import _graph_utils, blocks, loss  # noqa: E402


# ---- values of blocks ----


class BlocksTest(unittest.TestCase):
    def run_blocks(self, build, *arrays, **inputs):
        class Built(onnxblock.ForwardBlock):
            def build(self, *names):
                return build(*names)

        with onnxblock.empty_base(17) as accessor:
            for name, array in inputs.items():
                number = onnx.numpy_helper.from_array(array).data_type
                accessor.model.graph.input.append(value(name, array.shape, number))
            made = Built()
            made(*inputs)
        return InferenceSession(made.to_model_proto().SerializeToString()).run(None, inputs)[0]

    def test_blocks_compute_their_formulas(self):
        a, b = np.array([[1.5, -2], [3, 0.5]], np.float32), np.array([0.5, 4], np.float32)
        formulas = {
            "Add": (lambda x, y: blocks.Add()(x, y), a + b),
            "Sub": (lambda x, y: blocks.Sub()(x, y), a - b),
            "Mul": (lambda x, y: blocks.Mul()(x, y), a * b),
            "Div": (lambda x, y: blocks.Div()(x, y), a / b),
            "Pow": (lambda x, y: blocks.Pow(3)(x), a.astype(np.float64) ** 3),
            "ReduceMean": (lambda x, y: blocks.ReduceMean()(x), a.mean(keepdims=True)),
            "ReduceSum": (lambda x, y: blocks.ReduceSum(keepdims=False)(x), a.sum()),
            "Sigmoid": (lambda x, y: blocks.Sigmoid()(x), 1 / (1 + np.exp(-a.astype(np.float64)))),
            "Log": (lambda x, y: blocks.Log()(y), np.log(b.astype(np.float64))),
            "Neg": (lambda x, y: blocks.Neg()(x), -a),
            "Abs": (lambda x, y: blocks.Abs()(x), np.abs(a)),
            "Constant": (lambda x, y: blocks.Add()(x, blocks.Constant(2.5)()), a + 2.5),
            "Clip": (lambda x, y: blocks.Clip(-1, 1)(x), np.clip(a, -1, 1)),
            "Clip from below": (lambda x, y: blocks.Clip(clip_min=0)(x), np.maximum(a, 0)),
            "Clip from above": (lambda x, y: blocks.Clip(clip_max=0)(x), np.minimum(a, 0)),
            "Cast": (lambda x, y: blocks.Cast(onnx.TensorProto.INT64)(x), a.astype(np.int64)),
            "ReduceAllL2": (lambda x, y: blocks.ReduceAllL2()(x, y), np.sqrt((a**2).sum() + (b**2).sum())),
        }
        for name, (build, expected) in formulas.items():
            with self.subTest(name):
                result = self.run_blocks(build, a=a, b=b)
                self.assertEqual(result.shape, np.shape(expected))
                np.testing.assert_allclose(result, expected, rtol=1e-6)

    def test_constants_are_of_the_type_that_they_meet(self):
        a = np.array([1.5, -2])
        np.testing.assert_allclose(self.run_blocks(lambda x: blocks.Clip(-1, 1)(x), a=a), [1, -1])
        np.testing.assert_allclose(self.run_blocks(lambda x: blocks.Pow(2)(blocks.Neg()(x)), a=a), a**2)

    def test_linear_is_a_product_with_new_initializers(self):
        np.random.seed(3)
        a = np.array([[1, 2, 3]], np.float32)
        result = self.run_blocks(lambda x: blocks.Linear(3, 2, alpha=2.0, beta=0.5)(x), a=a)
        np.random.seed(3)
        w, b = np.random.randn(3, 2), np.random.randn(2)
        np.testing.assert_allclose(result, 2 * (a @ w) + 0.5 * b, rtol=1e-5)
        with onnxblock.empty_base(17) as accessor:
            accessor.model.graph.input.append(value("x", ["N", 3]))
            blocks.Linear(3, 2, bias=False)("x")
            self.assertEqual(len(accessor.model.graph.initializer), 1)

    def test_label_encoder_imports_its_domain(self):
        labels = np.array([7, 9, 5])
        result = self.run_blocks(
            lambda x: blocks.LabelEncoder(default_int64=-100, keys_int64s=[5, 7], values_int64s=[0, 1])(x), a=labels
        )
        self.assertEqual(result.tolist(), [1, -100, 0])

    def test_passing_through_gives_a_tuple_and_no_node(self):
        with onnxblock.base(two()) as accessor:
            self.assertEqual(blocks.PassThrough()("y"), ("y",))
            self.assertEqual(len(accessor.model.graph.node), 3)

    def test_a_sequence_is_made_of_tensors(self):
        with onnxblock.base(two()) as accessor:
            name = blocks.SequenceConstruct()("y", "z")
            node = accessor.model.graph.node[-1]
            self.assertEqual(
                (node.op_type, list(node.input), list(node.output)), ("SequenceConstruct", ["y", "z"], [name])
            )

    def test_inputs_are_made_like_values(self):
        with onnxblock.base(two()) as accessor:
            self.assertEqual(blocks.InputLike("x")("other"), "other")
            self.assertEqual(blocks.InputLike("z")(), "onnx::input::1")
            blocks.InputLike("m")("inner")
            for name in ("other", "onnx::input::1", "inner"):
                made = _graph_utils.get_input_from_input_name(accessor.model, name).type.tensor_type
                self.assertEqual([made.shape.dim[0].dim_param, made.shape.dim[1].dim_value], ["N", 2])
            with self.assertRaisesRegex(LookupError, "'q'"):
                blocks.InputLike("q")("never")

    def test_names_are_counted_per_scope(self):
        for _ in range(2):
            with onnxblock.base(two()) as accessor:
                self.assertEqual(blocks.Add()("y", "z"), "onnx::add_output::1")
                self.assertEqual(accessor.model.graph.node[-1].name, "onnx::Add::2")
                built = accessor.model
        with onnxblock.base(built):  # goes on behind the names that are there
            self.assertEqual(blocks.Pow(2.0)("y"), "onnx::pow_output::4")
            self.assertEqual(_graph_utils.generate_graph_name("mine"), "onnx::mine::6")


# ---- losses ----


def log_softmax(scores):
    scores = scores - scores.max(1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(1, keepdims=True))


class LossTest(FolderTest):
    def loss_of(self, block, x, *targets, **options):
        """Loss and gradient of a parameter that is added to x."""
        dims = ["N", *x.shape[1:]]
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
            "net",
            [value("x", dims)],
            [value("y", dims)],
            [onnx.numpy_helper.from_array(np.zeros(x.shape, np.float32), "w")],
        )
        model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 17)])
        self.generate(model, requires_grad=["w"], loss=block, **options)
        made, gradients = self.step(x, *targets)
        return made, gradients["w"]

    def assert_close(self, made, expected, places=1e-6):
        np.testing.assert_allclose(made, expected, rtol=places, atol=places)

    def test_mean_squares_and_absolutes(self):
        d = X.astype(np.float64) - T1
        for block, each, slope in ((loss.MSELoss, d**2, 2 * d), (loss.L1Loss, np.abs(d), np.sign(d))):
            for reduction, expected, scale in (
                ("mean", each.mean(), 1 / d.size),
                ("sum", each.sum(), 1),
                ("none", each, 1),
            ):
                with self.subTest(block.__name__, reduction=reduction):
                    made, gradient = self.loss_of(block(reduction=reduction), X, T1)
                    self.assertEqual(np.shape(made), np.shape(expected))
                    self.assert_close(made, expected)
                    self.assert_close(gradient, slope * scale)

    def test_cross_entropy_with_weights_and_a_label_that_does_not_count(self):
        draw = np.random.default_rng(5)
        x, labels = draw.normal(size=(6, 3)).astype(np.float32), np.array([0, 2, 1, 1, 0, 2])
        weight = np.array([0.5, 2, 3])
        for ignored in (None, 1):
            w = weight[labels] * (labels != ignored)
            each = -w * log_softmax(x.astype(np.float64))[np.arange(6), labels]
            for reduction, expected in (("mean", each.sum() / w.sum()), ("sum", each.sum()), ("none", each)):
                with self.subTest(reduction, ignored=ignored):
                    block = loss.CrossEntropyLoss(weight=weight, reduction=reduction, ignore_index=ignored)
                    made, gradient = self.loss_of(block, x, labels)
                    self.assert_close(made, expected)
                    slope = (np.exp(log_softmax(x.astype(np.float64))) - np.eye(3)[labels]) * w[:, None]
                    self.assert_close(gradient, slope / w.sum() if reduction == "mean" else slope)

    def test_labels_have_the_shape_of_scores_without_classes(self):
        x = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype(np.float32)
        labels = np.random.default_rng(2).integers(0, 3, (2, 4, 5))
        made, _ = self.loss_of(loss.CrossEntropyLoss(), x, labels)
        picked = np.take_along_axis(log_softmax(x.astype(np.float64)), labels[:, None], 1)
        self.assert_close(made, -picked.mean())
        proto = onnx.load(self.folder / "training_model.onnx")
        dims = _graph_utils.get_input_from_input_name(proto, "labels").type.tensor_type.shape.dim
        self.assertEqual([dim.dim_param or dim.dim_value for dim in dims], ["N", 4, 5])

    def test_binary_cross_entropy_is_finite_for_every_logit(self):
        x = np.array([[0.5, -2], [200, -200], [0, 30]], np.float32)
        t = np.array([[1, 0.25], [0, 1], [0.5, 1]], np.float32)
        weight, positive = np.array([1.0, 0.5]), np.array([2.0, 3.0])
        z = x.astype(np.float64)
        each = weight * ((1 - t) * z + (1 + (positive - 1) * t) * np.logaddexp(0, -z))
        s = 1 / (1 + np.exp(-z))
        slope = weight * ((1 - t) - (1 + (positive - 1) * t) * (1 - s))
        for reduction, expected, scale in (("mean", each.mean(), 1 / 6), ("sum", each.sum(), 1), ("none", each, 1)):
            with self.subTest(reduction):
                block = loss.BCEWithLogitsLoss(weight=weight, pos_weight=positive, reduction=reduction)
                made, gradient = self.loss_of(block, x, t)
                self.assert_close(made, expected)
                self.assert_close(gradient, slope * scale)
        made, _ = self.loss_of(loss.BCEWithLogitsLoss(), x, t)
        self.assert_close(made, ((1 - t) * z + np.logaddexp(0, -z)).mean())

    def test_a_target_that_is_there_is_used(self):
        class Scaled(onnxblock.Block):
            def build(self, name):
                self.base.graph.input.append(value("half", ["N", 2]))
                self.base.graph.node.append(onnx.helper.make_node("Add", ["half", "half"], ["target"], "double"))
                return loss.MSELoss()(name)

        made, _ = self.loss_of(Scaled(), X, T1)
        self.assert_close(made, ((X.astype(np.float64) - 2 * T1) ** 2).mean())

    def test_losses_share_a_target_of_one_name(self):
        class Both(onnxblock.Block):
            def build(self, name):
                return blocks.Add()(loss.MSELoss()(name), loss.L1Loss()(name))

        made, _ = self.loss_of(Both(), X, T1)
        d = X.astype(np.float64) - T1
        self.assert_close(made, (d**2).mean() + np.abs(d).mean())
        self.assertEqual(self.module().input_names(), ["x", "target"])

    def test_another_reduction_is_refused(self):
        for block in (loss.MSELoss, loss.L1Loss, loss.CrossEntropyLoss, loss.BCEWithLogitsLoss):
            with self.assertRaisesRegex(RuntimeError, "median not supported"):
                block(reduction="median")


if __name__ == "__main__":
    unittest.main()
