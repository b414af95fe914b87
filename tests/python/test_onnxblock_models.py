# SPDX-License-Identifier: Apache-2.0
"""Models and artifacts built of blocks: onnxtrain.onnxblock."""

import importlib.util
import threading
import unittest

import numpy as np

import onnxtrain
from onnxtrain import InferenceSession, artifacts
from onnxtrain.api import CheckpointState, Optimizer

if importlib.util.find_spec("onnx") is None:
    raise unittest.SkipTest("onnx is not installed")

import onnx.numpy_helper  # noqa: E402
from two_outputs import T1, T2, TWO, B, FolderTest, K, W, X, two, value  # noqa: E402

from onnxtrain import onnxblock  # noqa: E402
from onnxtrain.onnxblock import blocks, loss, optim  # noqa: E402


class WeightedLosses(onnxblock.Block):
    """The loss of the pages on ONNX Runtime training: a weighted average of two losses with a target each."""

    def __init__(self):
        super().__init__()
        self._loss1 = loss.MSELoss()
        self._loss2 = loss.L1Loss(reduction="sum")
        self._weight1 = blocks.Constant(0.4)
        self._weight2 = blocks.Constant(0.6)
        self._mul = blocks.Mul()
        self._add = blocks.Add()

    def build(self, first, second):
        first = self._mul(self._weight1(), self._loss1(first, target_name="target1"))
        second = self._mul(self._weight2(), self._loss2(second, target_name="target2"))
        return self._add(first, second)


class SumOfTwo(onnxblock.TrainingBlock):
    def build(self, first, second):
        mse, l1 = loss.MSELoss(), loss.L1Loss()
        return blocks.Add()(mse(first, target_name="target1"), l1(second, "target2")), first


# ---- losses and optimizers of generate_artifacts ----


class ArtifactsTest(FolderTest):
    def expected(self):
        y = X.astype(np.float64) @ W + B
        first, second = y - T1, y * K - T2
        dy = 0.4 * 2 * first / first.size + 0.6 * np.sign(second) * K
        return 0.4 * (first**2).mean() + 0.6 * np.abs(second).sum(), {"w": X.T @ dy, "b": dy.sum(0)}

    def test_a_block_is_the_loss_of_all_outputs(self):
        self.generate(requires_grad=["w", "b"], loss=WeightedLosses(), additional_output_names=["y"])
        (made, y), gradients = self.step(X, T1, T2)
        expected, slopes = self.expected()
        np.testing.assert_allclose(made, expected, rtol=1e-6)
        np.testing.assert_allclose(y, X @ W + B, rtol=1e-6)
        for name, slope in slopes.items():
            np.testing.assert_allclose(gradients[name], slope, rtol=1e-5, err_msg=name)
        self.assertEqual(self.module().input_names(), ["x", "target1", "target2"])
        self.assertEqual([name for name, _ in self.state.parameters], ["b", "w"])

    def test_what_a_loss_brings_along_trains_only_when_it_is_named(self):
        class Scaled(onnxblock.Block):
            def build(self, name, _):
                scale = onnx.numpy_helper.from_array(np.array([2, 3], np.float32), "scale")
                self.base.graph.initializer.append(scale)
                return WeightedLosses()(blocks.Mul()(name, "scale"), name)

        for names, expected in ((None, ["b", "w"]), (["w", "scale"], ["scale", "w"])):
            self.generate(requires_grad=names, loss=Scaled())
            self.module()
            self.assertEqual([name for name, _ in self.state.parameters], expected)

    def test_arguments_of_the_loss_may_be_named(self):
        self.generate(requires_grad=["w"], loss=loss.MSELoss(), loss_input_names=["z", "goal"])
        made, _ = self.step(X, T2)
        np.testing.assert_allclose(made, (((X @ W + B) * K - T2) ** 2).mean(), rtol=1e-6)
        self.assertEqual(self.module().input_names(), ["x", "goal"])
        with self.assertRaises(TypeError):  # the language's own
            self.generate(loss=WeightedLosses(), loss_input_names=["z"])

    def test_models_come_as_paths_bytes_and_objects(self):
        onnx.save(two(), self.folder / "model.onnx")
        (self.folder / "model.onnxtxt").write_text(TWO)
        written = []
        for model in (str(self.folder / "model.onnx"), self.folder / "model.onnxtxt", two().SerializeToString(), two()):
            self.generate(model, requires_grad=["w"], loss=WeightedLosses(), optimizer=artifacts.OptimType.SGD)
            written.append((self.folder / "training_model.onnx").read_bytes())
        self.assertEqual(len(set(written)), 1)  # the same program makes the same bytes

    def test_external_data_stay_where_they_are_until_the_library_reads_them(self):
        model = two()
        w = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
        model.graph.input[0].CopyFrom(value("x", ["N", 64]))
        model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(w, "w"))
        path = self.folder / "model.onnx"
        onnx.save(model, str(path), save_as_external_data=True, location="model.bin", size_threshold=64)
        self.generate(str(path), requires_grad=["w"], loss=loss.MSELoss(), loss_input_names=["y"])
        x = np.ones((3, 64), np.float32)
        made, _ = self.step(x, T1)
        np.testing.assert_allclose(made, ((x @ w.astype(np.float64) + B - T1) ** 2).mean(), rtol=1e-5)

    def test_a_block_is_the_optimizer(self):
        block = optim.AdamW(betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1, clip_grad=optim.ClipGradNorm(0.5))
        self.generate(
            requires_grad=["w"], frozen_params=["b"], loss=loss.MSELoss(), loss_input_names=["y"], optimizer=block
        )
        module = self.module()
        optimizer = Optimizer(self.folder / "optimizer_model.onnx", module)
        w, m, v = W.copy(), 0, 0
        for t in (1, 2, 3):
            module(X, T1)
            optimizer.step()
            module.lazy_reset_grad()
            g = X.T.astype(np.float64) @ (2 * (X @ w + B - T1) / T1.size)
            g *= min(0.5 / (np.sqrt((g**2).sum()) + 1e-6), 1)
            m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g**2
            lr = 1e-3 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
            w = w - lr * m / (np.sqrt(v) + 1e-4)
            w = w - 1e-3 * 0.1 * w
        np.testing.assert_allclose(self.state.parameters["w"].data, w, rtol=1e-6)
        np.testing.assert_array_equal(self.state.parameters["b"].data, B)

    def test_the_optimizer_models_have_the_form_that_runtimes_expect(self):
        inputs = ["learning_rate", "step", "params", "gradients", "first_order_moments"]
        for block, more in ((optim.AdamW(), ["second_order_moments"]), (optim.SGD(), [])):
            self.generate(requires_grad=["w"], loss=artifacts.LossType.MSELoss, optimizer=block)
            proto = onnx.load(self.folder / "optimizer_model.onnx")
            self.assertEqual([one.name for one in proto.graph.input], inputs + more)
            self.assertEqual(len(proto.graph.node), 1)
            self.assertEqual({one.domain: one.version for one in proto.opset_import}, {"": 17, "com.microsoft": 1})
            self.assertLessEqual(proto.ir_version, 10)  # the newest that 1.19.2 reads
        self.assertEqual(list(proto.graph.node[0].input), ["learning_rate", "params", "gradients"])
        self.assertFalse(proto.graph.output[0].type.tensor_type.HasField("shape"))

    def test_ort_files_have_the_optimizer_of_the_block(self):
        self.generate(requires_grad=["w"], loss=WeightedLosses(), optimizer=optim.SGD(), ort_format=True)
        self.assertTrue((self.folder / "optimizer_model.ort").exists())

    def test_classes_and_other_objects_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "Unknown loss"):
            self.generate(loss=loss.MSELoss)
        with self.assertRaisesRegex(TypeError, "Unknown optimizer"):
            self.generate(loss=loss.MSELoss(), optimizer=optim.AdamW)

    def test_custom_operators_before_the_parameters_are_carried(self):
        model = two()
        model.opset_import.append(onnx.helper.make_opsetid("acme", 1))
        model.graph.node.insert(0, onnx.helper.make_node("Clean", ["x"], ["c"], "clean", domain="acme", strength=3))
        model.graph.node[1].input[0] = "c"
        library = self.folder / "libacme.so"
        library.touch()
        for given in (loss.MSELoss(), artifacts.LossType.MSELoss):
            self.generate(model, requires_grad=["w"], loss=given, loss_input_names=["y"], custom_op_library=library)
            node = next(n for n in onnx.load(self.folder / "training_model.onnx").graph.node if n.op_type == "Clean")
            self.assertEqual((node.domain, node.attribute[0].i), ("acme", 3))
        model.graph.node[0].input[0], model.graph.node[0].output[0] = "w", "v"
        model.graph.node[1].input[0], model.graph.node[1].input[1] = "x", "v"
        with self.assertRaisesRegex(onnxtrain.Unsupported, "acme.Clean 'clean' .from 'w'"):
            self.generate(model, requires_grad=["w"], loss=loss.MSELoss(), loss_input_names=["y"])


# ---- models by hand ----


class ModelsTest(FolderTest):
    def build(self):
        block = SumOfTwo()
        block.requires_grad("w")
        block.requires_grad("b")
        block.requires_grad("b", False)
        with onnxblock.base(two()) as accessor:
            self.returned = block("y", "z")
            self.scope_inputs = [one.name for one in accessor.model.graph.input]
        return block

    def test_a_training_block_makes_training_and_eval_model(self):
        block = self.build()
        training, evaluation = block.to_model_proto()
        names = [one.name for one in training.graph.input]
        self.assertEqual(names, ["x", "target1", "target2", "w", "b", "w_grad.accumulation.buffer", "lazy_reset_grad"])
        self.assertEqual(self.scope_inputs, names)  # the scope's model is the training model
        self.assertEqual([one.name for one in evaluation.graph.input], names[:5])
        outputs = [one.name for one in training.graph.output]
        self.assertEqual(outputs, [*self.returned, "w_grad.accumulation.out"])
        self.assertEqual([one.name for one in evaluation.graph.output], outputs[:2])
        self.assertEqual((len(training.metadata_props), len(evaluation.metadata_props)), (0, 0))
        trained, frozen = block.parameters()
        self.assertEqual(([one.name for one in trained], [one.name for one in frozen]), (["w"], ["b"]))
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(trained[0]), W)

    def test_what_a_training_block_made_trains(self):
        block = self.build()
        for name, proto in zip(("training_model", "eval_model"), block.to_model_proto()):
            onnx.save(proto, self.folder / f"{name}.onnx")
        onnxblock.save_checkpoint(block.parameters(), self.folder / "checkpoint")
        (made, y), gradients = self.step(X, T1, T2)
        first, second = X @ W + B - T1, (X @ W + B) * K - T2
        np.testing.assert_allclose(made, (first**2).mean() + np.abs(second).mean(), rtol=1e-6)
        np.testing.assert_allclose(y, X @ W + B, rtol=1e-6)
        slope = X.T @ (2 * first / first.size + np.sign(second) * K / second.size)
        np.testing.assert_allclose(gradients["w"], slope, rtol=1e-5)

    def test_nothing_trains_that_was_not_named(self):
        block = SumOfTwo()
        with onnxblock.base(two()):
            block("y", "z")
        self.assertEqual(block.parameters(), ([], []))
        self.assertEqual([one.name for one in block.to_model_proto()[0].graph.input][-1], "lazy_reset_grad")

    def test_results_exist_only_after_the_call(self):
        class Nothing(onnxblock.ForwardBlock):
            def build(self):
                return "y"

        for ask in (SumOfTwo().parameters, SumOfTwo().to_model_proto, Nothing().to_model_proto):
            with self.assertRaisesRegex(RuntimeError, "Please build"):
                ask()

    def test_a_model_is_built_from_nothing(self):
        class Net(onnxblock.ForwardBlock):
            def __init__(self):
                super().__init__()
                self.first, self.second = blocks.Linear(2, 3), blocks.Linear(3, 2)

            def build(self, name):
                self.base.graph.input.append(value(name, ["batch", 2]))
                return self.second(blocks.Sigmoid()(self.first(name)))

        class Training(onnxblock.TrainingBlock):
            def build(self, *names):
                return loss.MSELoss()(*names)

        np.random.seed(1)
        net, training = Net(), Training()
        with onnxblock.empty_base():
            output = net("x")
            self.assertEqual([one.name for one in net.to_model_proto().graph.output], [output])
            for tensor in net.to_model_proto().graph.initializer:
                training.requires_grad(tensor.name)
            training(output)
        self.assertEqual(len(training.parameters()[0]), 4)
        proto = net.to_model_proto()
        self.assertEqual((proto.producer_name, proto.graph.name), ("orttraining", "graph"))
        w1, b1, w2, b2 = (onnx.numpy_helper.to_array(t).astype(np.float64) for t in proto.graph.initializer)
        y = InferenceSession(proto.SerializeToString()).run(None, {"x": X})[0]
        np.testing.assert_allclose(y, 1 / (1 + np.exp(-(X @ w1 + b1))) @ w2 + b2, rtol=1e-5)

    def test_outputs_must_be_values_with_a_type(self):
        class Custom(onnxblock.ForwardBlock):
            def __init__(self, stated):
                super().__init__()
                self.stated = stated

            def build(self, name):
                if all(one.domain != "acme" for one in self.base.opset_import):
                    self.base.opset_import.append(onnx.helper.make_opsetid("acme", 1))
                self.base.graph.node.append(onnx.helper.make_node("Odd", [name], ["odd"], domain="acme"))
                if self.stated:
                    self.base.graph.value_info.append(value("odd", ["N"]))
                return "odd"

        class Named(onnxblock.ForwardBlock):
            def build(self, name):
                return name

        with onnxblock.base(two()), self.assertRaisesRegex(LookupError, "'nope'"):
            Named()("nope")
        with onnxblock.base(two()), self.assertRaisesRegex(LookupError, "'odd'"):
            Custom(False)("y")
        with onnxblock.base(two()) as accessor:
            Custom(True)("y")
            self.assertEqual([one.name for one in accessor.model.graph.output], ["odd"])
        with onnxblock.base(two()) as accessor:  # the library infers what the package onnx does not
            made = Named()(blocks.ReduceAllL2()("y", "z"))
            self.assertEqual(accessor.model.graph.output[0].name, made)

    def test_an_invalid_model_fails_at_the_block_that_made_it(self):
        with onnxblock.base(two()):
            blocks.Add()("y", "z")
            with self.assertRaisesRegex(onnx.checker.ValidationError, "missing"):
                blocks.Add()("y", "missing")

    def test_a_loss_that_is_not_reached_is_told(self):
        block = SumOfTwo()
        block.requires_grad("nothing")
        with onnxblock.base(two()), self.assertRaisesRegex(RuntimeError, "nothing"):
            block("y", "z")


class ScopeTest(unittest.TestCase):
    def test_blocks_need_a_scope(self):
        with self.assertRaisesRegex(RuntimeError, "no model"):
            blocks.Add()("a", "b")

    def test_there_is_one_scope_at_a_time(self):
        for enter in (lambda: onnxblock.base(two()), onnxblock.empty_base):
            with onnxblock.base(two()), self.assertRaisesRegex(RuntimeError, "already exists"), enter():
                pass
        with self.assertRaisesRegex(RuntimeError, "empty_base"), onnxblock.base(None):
            pass

    def test_scopes_end_with_an_exception(self):
        with self.assertRaises(ZeroDivisionError), onnxblock.base(two()):
            raise ZeroDivisionError
        with onnxblock.base(two()), onnxblock.custom_op_library(__file__):
            pass

    def test_the_given_model_stays_as_it_is(self):
        model = two()
        before = model.SerializeToString()
        with onnxblock.base(model):
            blocks.Add()("y", "z")
        self.assertEqual(model.SerializeToString(), before)

    def test_the_path_is_known_when_it_was_given(self):
        with onnxblock.base(two(), "folder/model.onnx") as accessor:
            self.assertEqual((accessor.path, accessor.has_path), ("folder/model.onnx", True))
        with onnxblock.base(two()) as accessor, self.assertRaisesRegex(RuntimeError, "path"):
            self.assertFalse(accessor.has_path)
            accessor.path

    def test_every_thread_has_a_scope_of_its_own(self):
        made = []

        def build():
            with onnxblock.base(two()):
                made.append(blocks.Add()("y", "z"))

        with onnxblock.base(two()):
            blocks.Add()("y", "z")
            thread = threading.Thread(target=build)
            thread.start()
            thread.join()
        self.assertEqual(made, ["onnx::add_output::1"])

    def test_a_library_of_custom_operators_must_exist(self):
        with self.assertRaisesRegex(RuntimeError, "does not exist"), onnxblock.custom_op_library("/no/such.so"):
            pass
        with onnxblock.custom_op_library(__file__), self.assertRaisesRegex(RuntimeError, "already"):
            with onnxblock.custom_op_library(__file__):
                pass

    def test_temporary_files_are_not_made_anywhere_else(self):
        class Named(onnxblock.Block):
            def build(self):
                return "y"

        with self.assertRaisesRegex(RuntimeError, "relative path"):
            Named("/tmp/elsewhere.onnx")
        Named("here.onnx")


class CheckpointTest(FolderTest):
    def save(self, **options):
        trained, frozen = two().graph.initializer[:2], [onnx.numpy_helper.from_array(np.arange(3), "steps")]
        onnxblock.save_checkpoint((list(trained), frozen), self.folder / "checkpoint", **options)

    def test_parameters_are_kept_with_their_kind(self):
        self.save()
        state = CheckpointState.load_checkpoint(self.folder / "checkpoint")
        np.testing.assert_array_equal(state.parameters["w"].data, W)
        np.testing.assert_array_equal(state.parameters["steps"].data, [0, 1, 2])
        self.assertEqual([state.parameters[name].requires_grad for name in ("w", "b", "steps")], [True, True, False])

    def test_values_come_back_into_a_model(self):
        self.save()
        model = two()
        for tensor in model.graph.initializer:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.zeros((4,), np.float64), tensor.name))
        onnxblock.load_checkpoint_to_model(self.folder / "checkpoint", model)
        w, b, k = (onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
        np.testing.assert_array_equal(w, W)
        np.testing.assert_array_equal(b, B)
        self.assertEqual((w.dtype, k.tolist()), (np.float32, [0, 0, 0, 0]))

    def test_a_nominal_checkpoint_has_no_values(self):
        self.save(nominal_checkpoint=True)
        with self.assertRaisesRegex(RuntimeError, "nominal"):
            onnxblock.load_checkpoint_to_model(self.folder / "checkpoint", two())

    def test_nothing_and_names_twice_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "No checkpoint parameters"):
            onnxblock.save_checkpoint(None, self.folder / "checkpoint")
        w = two().graph.initializer[0]
        with self.assertRaisesRegex(RuntimeError, "'w'"):
            onnxblock.save_checkpoint(([w], [w]), self.folder / "checkpoint")


if __name__ == "__main__":
    unittest.main()
