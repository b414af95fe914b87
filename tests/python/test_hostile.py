# SPDX-License-Identifier: Apache-2.0
"""Arrays, models and functions that mean harm. Each ends in an exception that says what is wrong, or in the right
result: never in a crash, which the sanitizers of the dev build would see earlier than anybody."""

import ctypes
import gc
import threading
import unittest
from pathlib import Path

import numpy as np
from network import TEXT, ErrorsTest, batch

import onnxtrain
from onnxtrain import InferenceSession, OrtValue, _core
from onnxtrain.api import CheckpointState, Module

X, LABELS = batch()

# ---- DLPack by hand ----


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array of 24 f32 that describes itself as it is told."""

    def __init__(self, shape=(2, 3), strides=None, name=b"dltensor", offset=0, **fields):
        self.memory = np.arange(24, dtype=np.float32)
        self.n_deleted = 0
        self.deleter = DELETER(self._delete)
        self.shape = None if shape is None else (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(1, len(strides)))(*strides)
        values = {"data": self.memory.ctypes.data + offset, "device_type": 1, "ndim": len(shape or ()), "code": 2}
        self.managed = DLManagedTensor(DLTensor(**{**values, "bits": 32, "lanes": 1, **fields}), None, self.deleter)
        if shape is not None:
            self.managed.tensor.shape = self.shape
        if strides is not None:
            self.managed.tensor.strides = self.strides
        self.name = name

    def _delete(self, managed):
        self.n_deleted += 1

    def __dlpack__(self, **options):
        return _new_capsule(ctypes.addressof(self.managed), self.name, None)

    def __dlpack_device__(self):
        return 1, 0


class DlpackTest(unittest.TestCase):
    def test_what_a_producer_says_is_checked(self):
        many = (1,) * 99
        for producer, text in (
            (Producer((-2, 3)), "negative|size"),
            (Producer((2**62, 3)), "large|overflow|bytes|more elements"),
            (Producer((2**40, 2**40)), "large|overflow|bytes|more elements"),
            (Producer(many), "an array of 99 axes, at most"),
            (Producer(ndim=-1), "an array of -1 axes"),
            (Producer(None, ndim=2), "no shape"),
            (Producer(strides=(1, 2)), "not contiguous"),
            (Producer(strides=(-3, 1)), "not contiguous"),
            (Producer(strides=(0, 0)), "not contiguous"),
            (Producer(strides=(2**62, 1)), "not contiguous"),
            (Producer(device_type=2), "device type 2, expected 1, the CPU"),
            (Producer(code=9), "type code 9"),
            (Producer(bits=7), "with 7 bits"),
            (Producer(lanes=4), "4 lanes"),
            (Producer(data=None), "no memory|is NULL|missing"),
            (Producer(offset=1), "not aligned"),
            (Producer(byte_offset=2), "not aligned"),
            (Producer(name=b"other"), "no capsule of DLPack"),
            (Producer(name=b"used_dltensor"), "taken already"),
        ):
            with self.subTest(text), self.assertRaisesRegex(onnxtrain.Error, text) as caught:
                OrtValue.from_dlpack(producer)
            self.assertNotIn("\n", str(caught.exception))
            gc.collect()
            self.assertEqual(producer.n_deleted, int(producer.name == b"dltensor"), text)

    def test_a_good_one_is_kept_as_long_as_the_value(self):
        producer = Producer(strides=(3, 1))
        value = OrtValue.from_dlpack(producer)
        array = value.numpy()
        del value
        self.assertEqual((producer.n_deleted, array.tolist()), (0, [[0, 1, 2], [3, 4, 5]]))
        del array
        gc.collect()
        self.assertEqual(producer.n_deleted, 1)

    def test_a_capsule_is_taken_once(self):
        capsule = OrtValue.ortvalue_from_shape_and_type([2], np.float32).to_dlpack()
        self.assertEqual(OrtValue.from_dlpack(capsule).shape(), [2])
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "taken already"):
            OrtValue.from_dlpack(capsule)

    def test_what_is_no_capsule_is_refused(self):
        class Odd:
            def __init__(self, what):
                self.what = what

            def __dlpack__(self, **options):
                if isinstance(self.what, Exception):
                    raise self.what
                return self.what

        for wrong in (None, 5, b"dltensor", object()):
            with self.subTest(repr(wrong)), self.assertRaisesRegex(onnxtrain.Error, "no capsule of DLPack"):
                OrtValue.from_dlpack(Odd(wrong))
        with self.assertRaisesRegex(BufferError, "mine"):
            OrtValue.from_dlpack(Odd(BufferError("mine")))


# ---- arrays ----


class Lying(np.ndarray):
    """Says that its memory is somewhere else, and larger."""

    @property
    def __array_interface__(self):
        return {"version": 3, "shape": (1 << 40,), "typestr": "<f4", "data": (16, False)}

    nbytes = 1 << 42
    shape = (1 << 40,)


class ArrayTest(ErrorsTest):
    def test_arrays_that_lie_about_their_memory(self):
        x = X.copy().view(Lying)
        self.assertEqual(float(self.module(x, LABELS)), float(self.make()(X, LABELS)))

    def test_strides_of_any_kind_give_what_a_copy_gives(self):
        rows = np.repeat(X, 2, axis=0)
        base = np.zeros((5, 7), np.float32)
        base[:, 1:4] = X
        misaligned = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape)
        expected = float(self.module.eval()(X, LABELS))
        for name, x in (
            ("negative", X[::-1].copy()[::-1]),
            ("every second", rows[::2]),
            ("part of a larger one", base[:, 1:4]),
            ("by columns", np.asfortranarray(X)),
            ("not aligned", misaligned),
            ("other order of bytes", X.astype(">f4")),
            ("read only", np.frombuffer(X.tobytes(), np.float32).reshape(X.shape)),
            ("with a mask", np.ma.masked_array(X)),
        ):
            with self.subTest(name):
                self.assertEqual(float(self.module(x, LABELS)), expected)
        repeated = np.broadcast_to(X[0], (5, 3))
        self.assertEqual(float(self.module(repeated, LABELS)), float(self.module(repeated.copy(), LABELS)))

    def test_what_is_no_array_of_numbers(self):
        step = self.module
        self.refuse(
            (lambda: step(X.astype(object), LABELS), TypeError, "arrays of object"),
            (lambda: step(X.astype("U8"), LABELS), TypeError, "arrays of str"),
            (lambda: step(np.zeros((5, 3), "M8[s]"), LABELS), TypeError, "arrays of datetime64"),
            (lambda: step(np.zeros((5, 3), [("a", "f4")]), LABELS), TypeError, "arrays of void"),
            (lambda: step(X.astype(np.longdouble), LABELS), TypeError, "arrays of (float128|longdouble)"),
            (lambda: step(X.astype(np.float64), LABELS), RuntimeError, "input 0 'x' is f64, expected f32"),
            (lambda: step(X, LABELS.astype(np.float32)), RuntimeError, "input 1 'labels' is f32"),
            (lambda: step(X[:, :2], LABELS), RuntimeError, r"input 0 'x' has shape \[5,2\]"),
            (lambda: step(X.reshape((1,) * 14 + (5, 3)), LABELS), RuntimeError, "shape|axes"),
            (lambda: step(np.float32(1), LABELS), RuntimeError, "input 0 'x' has shape"),
            (lambda: step(X[:0], LABELS), RuntimeError, "labels|rows|shape"),
            (lambda: step(object(), LABELS), TypeError, "input 0 'x' is object, expected an array"),
            (lambda: step([[1, 2], [3]], LABELS), RuntimeError, "cannot be made an array"),
            (lambda: step(X, LABELS + 1000), RuntimeError, "1000|label"),
            (lambda: step(X, LABELS - 1000), RuntimeError, "label"),
        )

    def test_a_broadcast_array_of_any_size_is_no_crash(self):
        with self.assertRaises((MemoryError, RuntimeError)):
            self.module(np.broadcast_to(X[0], (1 << 45, 3)), LABELS)

    def test_bytes_that_are_neither_true_nor_false(self):
        text = b"""<ir_version: 8, opset_import: ["" : 17]>
        logic (bool[N] a, float[N] x) => (bool[N] n, bool[N] c, float[N] w, float[N] f)
        { n = Not(a) c = And(a, a) w = Where(a, x, x) f = Cast<to = 1>(a) }"""
        a = np.array([0, 1, 2, 255], np.uint8).view(bool)
        x = np.arange(4, dtype=np.float32)
        n, c, w, f = InferenceSession(text).run(None, {"a": a, "x": x})
        self.assertEqual(n.tolist(), [True, False, False, False])
        self.assertEqual(c.tolist(), [False, True, True, True])
        self.assertEqual(w.tolist(), x.tolist())
        self.assertEqual(f.tolist(), [0, 1, 1, 1])

    def test_values_of_any_shape_and_type(self):
        make = OrtValue.ortvalue_from_shape_and_type
        self.refuse(
            (lambda: make([-1], np.float32), RuntimeError, "negative|size"),
            (lambda: make([1 << 40, 1 << 40], np.float32), RuntimeError, "large|overflow|bytes|more elements"),
            (lambda: make([1 << 60], np.float32), (RuntimeError, MemoryError), "bytes|memory"),
            (lambda: make([1] * 99, np.float32), RuntimeError, "99 axes"),
            (lambda: make([2], 8), RuntimeError, "string"),
            (lambda: make([2], 0), RuntimeError, "type"),
            (lambda: make([2], 4711), RuntimeError, "type unknown"),
            (lambda: make([1 << 70], np.float32), OverflowError, ""),
            (lambda: make(["a"], np.float32), TypeError, ""),
        )

    def test_parameters_of_any_kind(self):
        w1 = self.state.parameters["w1"]
        for value, error, text in (
            (np.zeros((3, 4)), RuntimeError, "w1"),
            (np.zeros((4, 3), np.float32), RuntimeError, "w1"),
            ("text", TypeError, "w1"),
            (None, TypeError, "w1"),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                w1.data = value
        w1.data = np.zeros((4, 3), np.float32).T
        self.assertEqual(w1.data.sum(), 0)


# ---- what runs while an argument is read ----


class Truth:
    """Runs a function where its truth, its number or its array is wanted."""

    def __init__(self, function, answer=1):
        self.function, self.answer = function, answer

    def _act(self):
        self.function()
        return self.answer

    def __bool__(self):
        return bool(self._act())

    def __float__(self):
        return float(self._act())

    def __index__(self):
        return int(self._act())

    def __array__(self, dtype=None, copy=None):
        self._act()
        return X


class ArgumentTest(ErrorsTest):
    def test_arguments_that_take_the_state_away(self):
        def take():
            taken.append(Module("training_model.onnx", self.state, "eval_model.onnx"))

        taken = []
        calls = (
            lambda m: m.get_contiguous_parameters(Truth(take)),
            lambda m: m.get_parameters_size(Truth(take)),
            lambda m: m.copy_buffer_to_parameters(np.zeros(26, np.float32), Truth(take)),
            lambda m: m.scale_grad(Truth(take)),
            lambda m: m.train(Truth(take)).input_names(),
            lambda m: m.train(Truth(take)).output_names(),
            lambda m: m.train(Truth(take))(X, LABELS),
            lambda m: m(Truth(take), LABELS),
            lambda m: m._session.set_learning_rate(Truth(take)),
        )
        for number, call in enumerate(calls):
            with self.subTest(number):
                self.load()
                with self.assertRaisesRegex(RuntimeError, "taken over"):
                    call(self.module)
        self.assertGreaterEqual(len(taken), len(calls))

    def test_arguments_that_call_the_module_again(self):
        inner = []
        again = Truth(lambda: inner.append(float(self.module(X, LABELS))))
        self.assertEqual(float(self.module(again, LABELS)), inner[0])

    def test_garbage_that_takes_the_state_away(self):
        class Cycle:
            def __init__(self, state):
                self.itself, self.state = self, state

            def __del__(self):
                try:
                    Module("training_model.onnx", self.state)
                except RuntimeError:
                    pass

        threshold = gc.get_threshold()
        self.addCleanup(gc.set_threshold, *threshold)
        for _ in range(30):
            self.load()
            Cycle(self.state)
            gc.set_threshold(1)
            try:
                self.assertEqual(self.module.input_names(), ["x", "labels"])
                len(self.state.parameters)
            except RuntimeError as error:
                self.assertRegex(str(error), "taken over|one thread at a time")
            gc.set_threshold(*threshold)


# ---- models ----


class ModelTest(ErrorsTest):
    def test_models_cut_short_at_every_length(self):
        data = Path("training_model.onnx").read_bytes()
        for length in range(0, len(data) - 1, max(1, len(data) // 300)):
            for make in (lambda: InferenceSession(data[:length]), lambda: Module(data[:length], self.state)):
                try:
                    make()
                except onnxtrain.Error as error:
                    self.assertNotIn("\n", str(error))
                else:
                    self.assertGreater(length, 0)  # a field less may still be a model

    def test_models_with_one_bit_changed(self):
        data = bytearray(Path("eval_model.onnx").read_bytes())
        feed = {"x": X, "labels": LABELS, **{name: p.data for name, p in self.state.parameters}}
        for position in range(0, len(data), max(1, len(data) // 400)):
            data[position] ^= 1 << position % 8
            try:
                InferenceSession(bytes(data)).run(None, feed)
            except (onnxtrain.Error, ValueError) as error:
                self.assertNotIn("\n", str(error))
            data[position] ^= 1 << position % 8

    def test_checkpoints_cut_short_and_changed(self):
        data = Path("checkpoint").read_bytes()
        for length in range(0, len(data) - 8, max(1, len(data) // 100)):
            with self.assertRaises(onnxtrain.Error) as caught:
                CheckpointState.load_checkpoint(data[:length])
            self.assertNotIn("\n", str(caught.exception))
        changed = bytearray(data)
        for position in range(0, len(data), max(1, len(data) // 300)):
            changed[position] ^= 1 << position % 8
            try:
                state = CheckpointState.load_checkpoint(bytes(changed))
                [p.data for _, p in state.parameters]
            except onnxtrain.Error as error:
                self.assertNotIn("\n", str(error))
            changed[position] ^= 1 << position % 8

    def test_models_of_other_kinds(self):
        class Proto:
            def __init__(self, data):
                self.data = data

            def ByteSize(self):
                return 1

            def SerializeToString(self):
                return self.data

        self.refuse(
            (lambda: InferenceSession(Proto("text")), TypeError, "str"),
            (lambda: InferenceSession(Proto(None)), TypeError, "None"),
            (lambda: InferenceSession(Proto(b"")), RuntimeError, "empty|ir_version|no "),
            (lambda: InferenceSession(5), TypeError, "the model is int"),
            (lambda: InferenceSession("a\0b"), (ValueError, TypeError), "null"),
            (lambda: InferenceSession("/dev/null"), RuntimeError, "/dev/null"),
            (lambda: InferenceSession("."), RuntimeError, "is a directory"),
            (lambda: Module("training_model.onnx", self.state, "optimizer_model.onnx"), RuntimeError, "eval model"),
        )


# ---- functions ----


class CallbackTest(ErrorsTest):
    def train(self, *callbacks, **options):
        options.setdefault("epochs", 3)
        x, labels = self.data = batch(rows=64)
        options = {"loss": "cross-entropy", "batch_size": 16, "seed": 1, "progress": False, **options}
        return onnxtrain.train(TEXT, (x, labels), callbacks=list(callbacks), **options)

    def test_functions_that_raise(self):
        class Odd(BaseException):
            pass

        for error in (ValueError("mine"), SystemExit(3), KeyboardInterrupt("mine"), Odd("mine"), StopIteration("mine")):

            def fail(event, error=error):
                raise error

            with self.subTest(repr(error)), self.assertRaises(type(error)):
                self.train(fail)
        self.assertEqual(self.train().steps, 12)

    def test_answers_of_any_kind(self):
        def fail():
            raise ZeroDivisionError("mine")

        for answer in (object(), "text", [], np.zeros(2), 5, Truth(fail)):  # only True stops a run
            self.assertEqual(self.train(lambda event: answer).steps, 12)

    def test_functions_that_change_what_is_trained_with(self):
        def spoil_labels(event):
            self.data[1][:] = 1_000_000

        with self.assertRaisesRegex(RuntimeError, "label 1e.06 is outside 0..1"):
            self.train(spoil_labels)

        def reshape(event):
            self.data[0].shape = (3, 64)

        self.assertEqual(self.train(reshape).steps, 12)

    def test_functions_that_call_back(self):
        refused = []

        def again(event):
            result = event.result
            if event.kind != "step":
                return
            for call in (
                lambda: Module("training_model.onnx", result.state),
                lambda: result.evaluate(batch(rows=8)),
                lambda: result._run.session.optimizer_step(),
                lambda: result._run.session.step([], True),
            ):
                try:
                    call()
                except RuntimeError as error:
                    refused.append(str(error))
            result.export("now.onnx")
            result.state.to_bytes(True)
            result.state.parameters["w1"].data

        self.assertEqual(self.train(again).steps, 12)
        self.assertEqual(len(refused), 4 * 12, refused[:4])
        self.assertEqual(set(refused), {"a training run is under way"})

    def test_functions_that_let_go_of_everything(self):
        def drop(event):
            event.result._run.__dict__.clear()
            self.data = None
            gc.collect()

        with self.assertRaises(AttributeError):
            self.train(drop)

    def test_functions_with_threads(self):
        errors = []

        def other(event):
            def work():
                try:
                    event.result.state.parameters["w1"].data
                except RuntimeError as error:
                    errors.append(str(error))

            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

        self.assertEqual(self.train(other).steps, 12)
        self.assertEqual(set(errors), {"another thread works on this state: one thread at a time"})

    def test_runs_within_runs(self):
        inner = []
        self.train(lambda event: inner.append(self.train(epochs=1).steps) if event.kind == "epoch" else None, epochs=2)
        self.assertEqual(inner, [4, 4])


class ObjectTest(unittest.TestCase):
    def test_the_library_s_objects_cannot_be_forged(self):
        for one in (_core.Session, _core.Checkpoint, _core.Tensor, _core.Model, _core.Runner):
            with self.subTest(one.__name__):
                with self.assertRaises(TypeError):
                    object.__new__(one)
                with self.assertRaises(TypeError):
                    type("Sub", (one,), {})
        value = OrtValue.ortvalue_from_shape_and_type([2], np.float32)
        for copy in ("copy", "deepcopy"):
            with self.assertRaises(TypeError):
                getattr(__import__("copy"), copy)(value._tensor)

    def test_calls_with_other_objects_are_refused(self):
        tensor, model = _core.Tensor.zeros(1, (2,)), _core.Model.load_bytes(TEXT)
        for call in (
            lambda: _core.Runner.create(tensor, 0, 0, 0),
            lambda: _core.Runner.create(model, 0, 0, 0).run([[model]], [0]),
            lambda: _core.Runner.create(model, 0, 0, 0).run([[tensor]], [-1]),
            lambda: _core.Runner.create(model, 0, 0, 0).run([[tensor]], [7]),
            lambda: _core.Runner.create(model, 0, 0, 0).run([], [0]),
            lambda: _core.Runner.create(model, 0, 0, 0).run([[]], [0]),
            lambda: _core.Tensor.wrap(1, (2,), 0, 8, None),
            lambda: _core.Tensor.wrap(1, (2,), 64, 4, None),
            lambda: _core.Tensor.zeros(1, (-5,)),
            lambda: _core.Session.create(model, None, _core.Checkpoint.create(), -1, False, 0),
        ):
            with self.assertRaises((onnxtrain.Error, TypeError)):
                call()


if __name__ == "__main__":
    unittest.main()
