# SPDX-License-Identifier: Apache-2.0
"""What is refused: with which class, and in which words.

The classes are those that ONNX Runtime training 1.19.2 raises in the same place, or subclasses of them; RuntimeError
where it crashes or goes on with nonsense.
"""

import unittest
from pathlib import Path

import numpy as np
from network import NAMES, START, TEXT, ErrorsTest, batch

import onnxtrain
from onnxtrain import InferenceSession, OrtValue, RunOptions, SessionOptions
from onnxtrain.api import CheckpointState, LinearLRScheduler, Module, Optimizer
from onnxtrain.artifacts import LossType, generate_artifacts

load = CheckpointState.load_checkpoint
save = CheckpointState.save_checkpoint
X, LABELS = batch()
BATCH_NORM = b"""<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 2] x) => (float[N, 2] y)
<float[2] scale = {1, 1}, float[2] bias = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1}>
{ y = BatchNormalization(x, scale, bias, mean, var) }"""


class Table:
    """A table of a FlatBuffers file, to change a checkpoint at a place."""

    def __init__(self, content, position):
        self.content, self.position = content, position

    def number(self, position, size=4, signed=False):
        return int.from_bytes(self.content[position : position + size], "little", signed=signed)

    def fields(self):
        return self.position - self.number(self.position, signed=True)

    def place(self, slot):
        return self.position + self.number(self.fields() + 4 + 2 * slot, 2)

    def table(self, slot):
        return Table(self.content, self.place(slot) + self.number(self.place(slot)))

    def put(self, position, value, size=4):
        self.content[position : position + size] = value.to_bytes(size, "little", signed=value < 0)


def of_version(content, version):
    content = bytearray(content)
    root = Table(content, Table(content, 0).number(0))
    root.put(root.place(0), version)
    return bytes(content)


def with_external_data(content):
    """The flag set: the module's table gets a list of fields that has it, over a byte that is not zero."""
    content = bytearray(content)
    module = Table(content, Table(content, 0).number(0)).table(1)
    old, new = module.fields(), len(content) + -len(content) % 4
    content.extend(bytes(new + 12 - len(content)))
    flag = next(i for i in range(4) if content[module.place(0) + i] != 0) + module.place(0) - module.position
    for i, value in enumerate(
        (12, module.number(old + 2, 2), *(module.number(old + 4 + 2 * k, 2) for k in (0, 1)), 0, flag)
    ):
        module.put(new + 2 * i, value, 2)
    module.put(module.position, module.position - new)
    return bytes(content)


class ClassTest(unittest.TestCase):
    def test_each_class_is_the_built_in_one_too(self):
        for cls, base in [
            (onnxtrain.InvalidArgument, ValueError),
            (onnxtrain.FileError, OSError),
            (onnxtrain.NotFound, LookupError),
            (onnxtrain.Mismatch, RuntimeError),
            (onnxtrain.TimedOut, TimeoutError),
        ]:
            with self.subTest(cls.__name__):
                self.assertTrue(issubclass(cls, base) and issubclass(cls, onnxtrain.Error))
                self.assertEqual(str(cls("a message")), "a message")


class LoadTest(ErrorsTest):
    def test_checkpoints(self):
        content = Path("checkpoint").read_bytes()
        for name, changed in (
            ("short", content[:50]),
            ("other", content[:4] + b"XXXX" + content[8:]),
            ("empty", b""),
            ("version", of_version(content, 7)),
            ("external", with_external_data(content)),
        ):
            Path(name).write_bytes(changed)
        self.refuse(
            (lambda: load("missing"), RuntimeError, "missing: cannot be opened: No such file"),
            (lambda: load("missing"), FileNotFoundError, "missing"),
            (lambda: load("."), RuntimeError, "is a directory"),
            (lambda: load("short"), RuntimeError, "short: .* leaves the file"),
            (lambda: load("other"), RuntimeError, "other: is not a checkpoint: .* 'ODTC'"),
            (lambda: load("empty"), RuntimeError, "empty: has 0 bytes"),
            (lambda: load("version"), RuntimeError, "version: .*version 7"),
            (lambda: load("external"), RuntimeError, "external.data: cannot be opened"),
            (lambda: load(Path("external").read_bytes()), RuntimeError, "external data"),
            (lambda: load(content[:-40]), RuntimeError, "leaves the 416 bytes"),
            (lambda: load(None), TypeError, "NoneType"),
            (lambda: CheckpointState("checkpoint"), TypeError, "the state is str; CheckpointState.load_checkpoint"),
        )

    def test_saving(self):
        self.refuse(
            (lambda: save(self.state, "no/folder"), RuntimeError, "no/folder: cannot be written: No such file"),
            (lambda: save(self.state, None), TypeError, "NoneType"),
            (lambda: save(None, "x"), TypeError, "the state is NoneType, expected CheckpointState"),
        )

    def test_modules(self):
        def prepacking(value):
            options = SessionOptions()
            options.add_session_config_entry("session.disable_prepacking", value)
            return options

        training = Path("training_model.onnx").read_bytes()
        Path("no_buffer.onnx").write_bytes(
            training.replace(b"w1_grad.accumulation.buffer", b"w1_xxxx.accumulation.buffer")
        )
        generate_artifacts(TEXT.replace(b"w1", b"q1"), loss=LossType.CrossEntropyLoss, prefix="q_")
        generate_artifacts(TEXT.replace(b"float[4] b1 = {0.1, 0.2, 0, -0.1}", b"float[1] b1 = {0.1}"), prefix="s_")
        self.refuse(
            (lambda: self.make("no.onnx"), RuntimeError, "no.onnx: cannot be opened: No such file"),
            (lambda: self.make(evaluation="no.onnx"), RuntimeError, "no.onnx: cannot be opened"),
            (lambda: self.make("checkpoint"), RuntimeError, "checkpoint: "),
            (lambda: self.make(None), TypeError, "the model is NoneType, expected a path, bytes or an onnx.ModelProto"),
            (lambda: Module("training_model.onnx", None), TypeError, "the state is NoneType, expected CheckpointState"),
            (lambda: self.make("no_buffer.onnx"), RuntimeError, "w1"),
            (lambda: self.make("q_training_model.onnx", evaluation=None), RuntimeError, "parameter 'w1' .* not among its"),
            (lambda: self.make(checkpoint="s_checkpoint"), RuntimeError, r"'b1'.*\[[14]\].*\[[14]\]"),
            (lambda: self.make("eval_model.onnx"), RuntimeError, "lazy_reset_grad|gradient"),
            (lambda: self.make(evaluation="optimizer_model.onnx"), RuntimeError, ""),
            (lambda: self.make(device="tpu"), RuntimeError, "device 'tpu' is not built in; there is: cpu"),
            (lambda: self.make(device="cuda:1"), RuntimeError, "device 'cuda:1' is not built in"),
            (lambda: self.make(session_options=prepacking("0")), RuntimeError, "disable_prepacking"),
            (lambda: self.make(session_options=5), TypeError, "the session options are int, expected SessionOptions"),
        )
        self.make(device="cpu:0", session_options=prepacking("1"))(X, LABELS)


class StepTest(ErrorsTest):
    def test_inputs(self):
        value = OrtValue.ortvalue_from_numpy
        self.refuse(
            (lambda: self.module(X), RuntimeError, "got 1 inputs, expected 2: 'x', 'labels'"),
            (lambda: self.module(), RuntimeError, "got 0 inputs, expected 2"),
            (lambda: self.module(X, LABELS, X), RuntimeError, "got 3 inputs, expected 2"),
            (lambda: self.module(X, None), RuntimeError, "got 1 inputs, expected 2"),
            (lambda: self.module(X.astype(float), LABELS), RuntimeError, "input 0 'x' is f64, expected f32"),
            (
                lambda: self.module(value(X.astype(float)), value(LABELS)),
                RuntimeError,
                "input 0 'x' is f64, expected f32",
            ),
            (lambda: self.module(X[:, :2], LABELS), RuntimeError, r"input 0 'x' has shape \[5,2\], expected \[N,3\]"),
            (lambda: self.module(X[0], LABELS), RuntimeError, r"input 0 'x' has shape \[3\], expected \[N,3\]"),
            (
                lambda: self.module(X, LABELS[:3]),
                RuntimeError,
                "input 'labels': axis 0 .* size 3, but 5 in input 'x'",
            ),
            (lambda: self.module(X, LABELS.astype(np.int16)), RuntimeError, "input 1 'labels' is i16, expected i64"),
            (lambda: self.module(X, LABELS + 7), RuntimeError, r"label \d at position 0 is outside 0..1"),
            (lambda: self.module("x", LABELS), RuntimeError, "input 0 'x' is str, expected an array"),
            (lambda: self.module(X, object()), RuntimeError, "input 1 'labels' is object, expected an array"),
            (lambda: self.module(X, [["a"]]), RuntimeError, "input 1 'labels' cannot be made an array"),
        )
        self.assertAlmostEqual(float(self.module(X.tolist(), LABELS)), float(self.module(X, LABELS)))

    def test_a_step_that_is_refused_changes_nothing(self):
        before = float(self.module(X, LABELS))
        gradient = self.state.parameters["w1"].grad
        with self.assertRaises(RuntimeError):
            self.module(X[:, :2], LABELS)
        np.testing.assert_array_equal(self.state.parameters["w1"].grad, gradient)
        self.assertEqual(float(self.module(X, LABELS)), before)

    def test_without_an_eval_model(self):
        module = self.make(evaluation=None).eval()
        export = module.export_model_for_inferencing
        self.refuse(
            (lambda: module(X, LABELS), RuntimeError, "no eval model"),
            (lambda: export("out.onnx", ["y"]), RuntimeError, "no eval model to export"),
        )

    def test_a_nominal_state(self):
        vector = self.module.get_contiguous_parameters()
        state = load("nominal_checkpoint")
        module = Module("training_model.onnx", state, "eval_model.onnx")
        optimizer = Optimizer("optimizer_model.onnx", module)
        self.refuse(
            (lambda: module(X, LABELS), RuntimeError, "nominal: its parameters have no values"),
            (lambda: module.eval()(X, LABELS), RuntimeError, "nominal"),
            (lambda: optimizer.step(), RuntimeError, "nominal"),
            (lambda: state.parameters["w1"].data, RuntimeError, "nominal state. Please load the parameter states first"),
            (lambda: state.parameters.__setitem__("w1", START["w1"]), RuntimeError, "nominal state. Please load all the parameter states"),
            (lambda: module.get_contiguous_parameters(), RuntimeError, "nominal"),
            (lambda: module.copy_buffer_to_parameters(vector, True), RuntimeError, "all parameters are needed"),
            (lambda: module.export_model_for_inferencing("out.onnx", ["y"]), RuntimeError, "nominal"),
        )
        self.assertEqual(optimizer.get_learning_rate(), 0.001)


class OptimizerTest(ErrorsTest):
    def test_models_and_modules(self):
        optimizer = Path("optimizer_model.onnx").read_bytes()
        self.assertIn(b"second_order_moments", optimizer)
        Path("inputs.onnx").write_bytes(optimizer.replace(b"second_order_moments", b"second_order_xxxxxxx"))
        Path("node.onnx").write_bytes(optimizer.replace(b"AdamWOptimizer", b"AdamQOptimizer"))
        self.refuse(
            (lambda: Optimizer("no.onnx", self.module), RuntimeError, "no.onnx: cannot be opened"),
            (lambda: Optimizer(None, self.module), TypeError, "NoneType"),
            (
                lambda: Optimizer("eval_model.onnx", self.module),
                RuntimeError,
                r"its inputs are \[x, .*expected \[learning_rate",
            ),
            (lambda: Optimizer("inputs.onnx", self.module), RuntimeError, "second_order_xxxxxxx"),
            (lambda: Optimizer("node.onnx", self.module), RuntimeError, "AdamQOptimizer|optimizer"),
            (lambda: Optimizer("optimizer_model.onnx", None), TypeError, "the module is NoneType, expected Module"),
            (lambda: Optimizer("optimizer_model.onnx", self.state), TypeError, "the module is CheckpointState"),
        )

    def test_models_that_do_not_update_once(self):
        def model(*nodes):
            lists = "params, gradients, first_order_moments"
            inputs = "float[1] learning_rate, int64[1] step, " + ", ".join(
                f"seq(float[]) {one}" for one in lists.split(", ")
            )
            outputs = ", ".join(f"bool[1] flag{i}" for i in range(len(nodes)))
            body = " ".join(f"flag{i} = {node}" for i, node in enumerate(nodes))
            return f"""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
                optimizer ({inputs}) => ({outputs}) {{ {body} }}""".encode()

        update = "com.microsoft.SGDOptimizerV2(learning_rate, params, gradients)"
        self.refuse(
            (
                lambda: Optimizer(model(update, update), self.module),
                RuntimeError,
                "SGDOptimizerV2.*another.*expected one",
            ),
            (lambda: Optimizer(model("Greater(step, step)"), self.module), RuntimeError, "none of its 1 nodes updates"),
        )
        Optimizer(model(update), self.module).step()

    def test_a_state_that_lacks_a_moment(self):
        self.optimizer.step()
        save(self.state, "saved", include_optimizer_state=True)
        Path("lacks").write_bytes(Path("saved").read_bytes().replace(b"momentum1", b"momentumX", 1))
        Path("other").write_bytes(Path("saved").read_bytes().replace(b"w1\0", b"z1\0", 1))

        def go_on(name):
            return Optimizer("optimizer_model.onnx", self.make(checkpoint=name))

        go_on("saved").step()
        self.refuse(
            (lambda: go_on("lacks"), RuntimeError, "momentum[1X]"),
            (lambda: go_on("other"), RuntimeError, "optimizer state for 'w1', which is not a parameter"),
        )

    def test_learning_rates_and_schedules(self):
        set_rate, schedule = self.optimizer.set_learning_rate, lambda *counts: LinearLRScheduler(
            self.optimizer, *counts
        )
        self.refuse(
            (lambda: set_rate("x"), TypeError, "str"),
            (lambda: set_rate(None), TypeError, "NoneType"),
            (lambda: set_rate(float("nan")), RuntimeError, "the learning rate is nan"),
            (lambda: set_rate(-1.0), RuntimeError, "the learning rate is -1"),
            (lambda: schedule(-2, 10, 1.0), RuntimeError, "-2 warm-up steps of 10"),
            (lambda: schedule(1.5, 10, 1.0), TypeError, "float"),
            (lambda: LinearLRScheduler(None, 1, 2, 1.0), TypeError, "the optimizer is NoneType, expected Optimizer"),
            (lambda: LinearLRScheduler(self.module, 1, 2, 1.0), TypeError, "the optimizer is Module"),
        )

    def test_without_an_optimizer(self):
        session = self.make()._session
        self.refuse((session.optimizer_step, RuntimeError, "no optimizer"))


class BufferTest(ErrorsTest):
    def test_buffers(self):
        copy = self.module.copy_buffer_to_parameters
        self.refuse(
            (lambda: copy(None), TypeError, "the buffer is NoneType, expected an array"),
            (lambda: copy("text"), TypeError, "the buffer is str"),
            (lambda: copy(np.zeros(26)), RuntimeError, "f64 .* expected f32"),
            (lambda: copy(np.zeros(3, np.float32)), RuntimeError, "3 elements for 26"),
            (lambda: copy(OrtValue.ortvalue_from_numpy(np.zeros(27, np.float32))._ortvalue), RuntimeError, "27 .* 26"),
        )

    def test_parameters_that_are_no_floats(self):
        text = TEXT.replace(b"<float[3, 4] w1", b"<int64[1] c = {5}, float[3, 4] w1").replace(
            b"{ m =", b"{ k = Add(c, c) m ="
        )
        text = text.replace(b"(float[N, 2] y)", b"(float[N, 2] y, int64[1] k)")
        generate_artifacts(
            text,
            NAMES,
            ["c"],
            LossType.CrossEntropyLoss,
            loss_input_names=["y"],
            additional_output_names=["k"],
            prefix="n_",
        )
        module = self.make("n_training_model.onnx", "n_checkpoint", None)
        self.assertEqual(module.get_contiguous_parameters(True).shape(), [26])
        self.refuse((lambda: module.get_contiguous_parameters(), RuntimeError, "'c' .*i64"))

    def test_values(self):
        value, shaped = OrtValue.ortvalue_from_numpy, OrtValue.ortvalue_from_shape_and_type
        self.refuse(
            (lambda: value(None), RuntimeError, "numpy_obj is NoneType, expected an array"),
            (lambda: value([1.0]), RuntimeError, "numpy_obj is list, expected an array"),
            (lambda: value(np.array(["a"])), RuntimeError, "not supported"),
            (lambda: value(np.array([None])), RuntimeError, "arrays of object are not supported"),
            (lambda: value(X, "tpu"), RuntimeError, "device 'tpu' is not built in"),
            (lambda: OrtValue(X), ValueError, "made by its functions"),
            (lambda: shaped(), ValueError, "element_type"),
            (lambda: shaped([-1], np.float32), RuntimeError, "axis 0 of a tensor has size -1"),
            (lambda: shaped([1.5], np.float32), TypeError, "float"),
            (lambda: shaped([2**60], np.float32), RuntimeError, "more bytes than can be addressed"),
            (lambda: shaped([2], "U1"), RuntimeError, "not supported"),
            (lambda: value(X).update_inplace(X[:1]), RuntimeError, r"float32\[5, 3\], the array float32\[1, 3\]"),
        )


class ExportTest(ErrorsTest):
    def test_an_eval_model_that_has_a_parameter_inside(self):
        evaluation = TEXT.replace(
            b"(float[N, 3] x) => (float[N, 2] y)", b"(float[N, 3] x, int64[N] labels) => (float l)"
        )
        evaluation = evaluation.replace(b"y = Add(n, b2)", b"y = Add(n, b2) l = SoftmaxCrossEntropyLoss(y, labels)")
        self.refuse(
            (lambda: self.make(evaluation=evaluation), RuntimeError, "eval model: parameter 'b1' .* initializer")
        )

    def test_exports(self):
        def export(names, path="out.onnx"):
            self.module.export_model_for_inferencing(path, names)

        self.refuse(
            (lambda: export([]), RuntimeError, "needs an output"),
            (lambda: export(None), TypeError, "graph_output_names is None, expected a list of names"),
            (lambda: export("y"), TypeError, "graph_output_names is 'y', expected a list of names"),
            (lambda: export([5]), TypeError, "name 0 of a list is 5, expected str"),
            (lambda: export(["q"]), RuntimeError, "computes no value 'q'"),
            (lambda: export([""]), RuntimeError, "computes no value ''"),
            (lambda: export(["y"], "no/out.onnx"), RuntimeError, "no/out.onnx: cannot be written"),
            (lambda: export(["y"], None), TypeError, "NoneType"),
        )
        self.assertFalse(Path("out.onnx").exists())


class ParameterTest(ErrorsTest):
    def test_parameters(self):
        parameters = self.state.parameters
        put = parameters.__setitem__
        self.refuse(
            (lambda: parameters["q"], KeyError, "Parameter q not found"),
            (lambda: put("q", X), KeyError, "Parameter q not found"),
            (lambda: parameters[5], TypeError, "a parameter's name is int, expected str"),
            (lambda: put("w1", np.zeros((4, 3), np.float32)), RuntimeError, r"'w1' is f32\[3,4\], got f32\[4,3\]"),
            (lambda: put("w1", np.zeros((3, 4))), RuntimeError, r"'w1' is f32\[3,4\], got f64\[3,4\]"),
            (lambda: put("w1", None), RuntimeError, "the value for parameter 'w1' is NoneType, expected an array"),
            (lambda: setattr(parameters["w1"], "data", "text"), RuntimeError, "is str, expected an array"),
            (lambda: setattr(parameters["w1"], "grad", X), AttributeError, ""),
            (lambda: setattr(parameters["w1"], "name", "z"), AttributeError, ""),
        )
        np.testing.assert_array_equal(parameters["w1"].data, START["w1"])

    def test_properties(self):
        properties = self.state.properties
        put = properties.__setitem__
        self.refuse(
            (lambda: properties["q"], KeyError, "Property q not found"),
            (lambda: put("a", [1]), TypeError, "property 'a' is list, expected int, float or str"),
            (lambda: put("a", None), TypeError, "property 'a' is NoneType"),
            (lambda: put(5, 1), TypeError, "a property's name is int, expected str"),
            (lambda: put("a", 2**64), OverflowError, "property 'a': 18446744073709551616 does not fit into 64 bits"),
            (lambda: put("a", "b\0c"), RuntimeError, "property 'a': a text cannot contain a zero byte"),
            (lambda: put("onnxtrain.epoch", 1), RuntimeError, "are the library's"),
        )
        put("bytes", b"abc")
        self.assertEqual(dict(properties), {"bytes": "abc"})


class InferenceTest(ErrorsTest):
    def test_sessions(self):
        self.refuse(
            (lambda: InferenceSession("no.onnx"), FileNotFoundError, "no.onnx: cannot be opened"),
            (lambda: InferenceSession("checkpoint"), RuntimeError, "checkpoint: "),
            (lambda: InferenceSession(b""), RuntimeError, "is empty, expected a model"),
            (lambda: InferenceSession(None), TypeError, "NoneType"),
            (lambda: InferenceSession(TEXT, "options"), TypeError, "the session options are str"),
            (lambda: setattr(SessionOptions(), "enable_profiling", True), AttributeError, "enable_profiling"),
            (lambda: SessionOptions().get_session_config_entry("q"), RuntimeError, "no session config entry 'q'"),
            (lambda: SessionOptions().add_session_config_entry("q", 1), TypeError, "'q': 1 is int, expected str"),
            (lambda: SessionOptions().register_custom_ops_library("/no/such.so"), RuntimeError, "/no/such.so"),
            (lambda: RunOptions().get_run_config_entry("q"), RuntimeError, "no run config entry 'q'"),
            (lambda: onnxtrain.set_seed("a"), TypeError, "str"),
            (lambda: onnxtrain.set_seed(1.5), TypeError, "float"),
        )

    def test_runs(self):
        run = InferenceSession(TEXT).run
        self.refuse(
            (lambda: run(None, {}), ValueError, r"Required inputs \(\['x'\]\) are missing"),
            (lambda: run(None, {"x": X, "q": X}), RuntimeError, "no input 'q', its inputs are 'x'"),
            (lambda: run(["q"], {"x": X}), RuntimeError, "no output 'q', its outputs are 'y'"),
            (lambda: run("y", {"x": X}), TypeError, "output_names is 'y', expected a list"),
            (lambda: run(None, [X]), TypeError, "input_feed is list, expected a dict"),
            (lambda: run(None, {"x": X.astype(float)}), RuntimeError, "'x' is f64, expected f32"),
            (lambda: run(None, {"x": X[:, :2]}), RuntimeError, "input 'x': axis 1 has size 2, expected 3"),
            (lambda: run(None, {"x": X[0]}), RuntimeError, r"input 'x' has shape \[3\], expected \[N,3\]"),
            (lambda: run(None, {"x": None}), RuntimeError, "input 'x' is NoneType, expected an array"),
            (lambda: run(None, {"x": "a"}), RuntimeError, "input 'x' is str, expected an array"),
        )
        twice = run(["y", "y"], {"x": X})
        np.testing.assert_array_equal(*twice)


class ArtifactsTest(ErrorsTest):
    def generate(self, model=TEXT, **options):
        generate_artifacts(model, **{"requires_grad": ["w1"], "loss": LossType.MSELoss, "prefix": "new_", **options})

    def test_arguments(self):
        make = self.generate
        self.refuse(
            (lambda: make(5), RuntimeError, "path, bytes or an ONNX ModelProto .* got <class 'int'>"),
            (lambda: make("no.onnx"), FileNotFoundError, "no.onnx"),
            (lambda: make(loss="mse"), RuntimeError, "Unknown loss provided <class 'str'>"),
            (lambda: make(optimizer="sgd"), TypeError, "Unknown optimizer provided <class 'str'>"),
            (lambda: make(frozen_params=["w1"]), RuntimeError, r"frozen and require gradient .*\['w1'\]"),
            (lambda: make(requires_grad="w1"), RuntimeError, "'w1' is a str, expected a list of names"),
            (lambda: make(requires_grad=[5]), TypeError, "name 0 of a list is 5, expected str"),
            (lambda: make(custom_op_library="/no/such.so"), RuntimeError, "/no/such.so' does not exist"),
            (lambda: make(additional_output_names="y"), RuntimeError, "additional output names <class 'str'>"),
            (lambda: make(additional_output_names=["q"]), LookupError, "'q'"),
            (lambda: make(loss_input_names=["q"]), LookupError, "'q'"),
            (lambda: make(loss_input_names=["y", "t", "u"]), TypeError, "3 names"),
            (lambda: LossType(9), ValueError, "9 is not a valid LossType"),
        )
        self.assertEqual(list(Path().glob("new_*")), [])

    def test_gradients_that_cannot_be_built(self):
        def changed(old, new, **options):
            return lambda: self.generate(TEXT.replace(old, new), **options)

        self.refuse(
            (lambda: self.generate(requires_grad=["q"]), RuntimeError, "'q' matches no initializer"),
            (changed(b"y = Add(n, b2)", b"y = Add(n, n)", requires_grad=["b2"]), RuntimeError, "'b2'"),
            (
                changed(b"y = Add(n, b2)", b"y = Add(n, n) z = Add(n, b2)", requires_grad=["b2"]),
                RuntimeError,
                "no gradient reaches .* 'b2' .no path",
            ),
            (
                changed(b"h = Relu(a)", b"i = Cast<to = 7>(a) h = Cast<to = 1>(i)"),
                RuntimeError,
                "no gradient reaches .* 'w1'",
            ),
            (changed(b"h = Relu(a)", b"h = Nothing(a)"), RuntimeError, "without gradient: Nothing of 'h'"),
            (changed(b"h = Relu(a)", b"h = ImageDecoder(a)"), RuntimeError, "without gradient: ImageDecoder of 'h'"),
            (
                changed(b"float[2] b2 = {0.05, -0.05}", b"float[3] b2 = {1, 2, 3}"),
                RuntimeError,
                "Add of 'y': .*2.*3",
            ),
            (
                lambda: self.generate(BATCH_NORM, requires_grad=["mean"]),
                RuntimeError,
                "'mean' holds running statistics",
            ),
        )

    def test_a_model_that_is_too_large_to_be_handed_over(self):
        class Proto:
            def ByteSize(self):
                return 2**31

            def SerializeToString(self):
                raise AssertionError("asked for")

        self.refuse((lambda: self.generate(Proto()), RuntimeError, "2147483648 bytes, .* pass its path"))

    def test_every_operator_in_the_way_is_named(self):
        text = TEXT.replace(b"h = Relu(a)", b"g = Nothing(a) h = Never(g)")
        self.refuse((lambda: self.generate(text), RuntimeError, "Nothing.*Never|Never.*Nothing"))


if __name__ == "__main__":
    unittest.main()
