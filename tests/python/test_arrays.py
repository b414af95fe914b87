# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out."""

import unittest

import numpy as np

import onnxtrain
from onnxtrain import OrtValue

try:
    import torch
except ImportError:
    torch = None


class ValueTest(unittest.TestCase):
    def test_a_value_shares_the_memory_of_a_contiguous_array(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = OrtValue.ortvalue_from_numpy(array)
        array[1, 2] = 50
        self.assertEqual(value.numpy()[1, 2], 50)
        self.assertEqual(value.data_ptr(), array.ctypes.data)

    def test_an_array_that_is_not_contiguous_is_copied_in_the_order_of_its_axes(self):
        array = np.arange(6, dtype=np.int64).reshape(2, 3).T
        value = OrtValue.ortvalue_from_numpy(array)
        np.testing.assert_array_equal(value.numpy(), [[0, 3], [1, 4], [2, 5]])

    def test_bytes_of_the_other_order_are_turned(self):
        value = OrtValue.ortvalue_from_numpy(np.array([1, 2], ">i4"))
        self.assertEqual(value.numpy().tolist(), [1, 2])

    def test_a_value_tells_type_and_shape(self):
        value = OrtValue.ortvalue_from_numpy(np.zeros((4, 0, 2), np.float64))
        self.assertEqual(value.shape(), [4, 0, 2])
        self.assertEqual(value.element_type(), 11)
        self.assertEqual(value.data_type(), "tensor(double)")
        self.assertEqual(value.device_name(), "cpu")
        self.assertTrue(value.is_tensor())

    def test_the_array_of_a_value_outlives_it(self):
        value = OrtValue.ortvalue_from_shape_and_type([1000], np.float32)
        array = value.numpy()
        del value
        self.assertEqual(array.sum(), 0)
        array[:] = 1
        self.assertEqual(array.sum(), 1000)

    def test_every_type_of_numpy_comes_back(self):
        for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
            array = np.ones(3, name)
            with self.subTest(name):
                result = np.asarray(OrtValue.ortvalue_from_numpy(array.copy()))
                self.assertEqual(result.dtype, array.dtype)
                np.testing.assert_array_equal(result, array)

    def test_numpy_reads_a_value_by_dlpack(self):
        value = OrtValue.ortvalue_from_shape_and_type([2], 7)
        value.update_inplace(np.array([3, 4]))
        self.assertEqual(np.from_dlpack(value).tolist(), [3, 4])

    def test_an_array_comes_in_by_dlpack(self):
        class OnlyDlpack:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__()

        array = np.arange(4, dtype=np.float32)
        value = OrtValue.from_dlpack(OnlyDlpack(array))
        array[0] = 7
        self.assertEqual(value.numpy().tolist(), [7, 1, 2, 3])
        empty = OrtValue.from_dlpack(OnlyDlpack(np.zeros((3, 0), np.float32)))
        self.assertEqual(empty.shape(), [3, 0])

    def test_what_is_no_array_is_refused(self):
        for wrong in (object(), np.array(["text"]), np.array([None]), None):
            with self.subTest(repr(wrong)), self.assertRaises(TypeError):
                OrtValue.ortvalue_from_numpy(wrong)

    def test_another_device_is_refused_by_its_name(self):
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, "device 'cuda' is not built in"):
            OrtValue.ortvalue_from_numpy(np.zeros(1), "cuda")

    def test_an_update_of_another_shape_is_refused(self):
        value = OrtValue.ortvalue_from_shape_and_type([2], np.float32)
        with self.assertRaisesRegex(onnxtrain.InvalidArgument, r"float32\[2\]"):
            value.update_inplace(np.zeros(3, np.float32))


class Inner:
    """As onnxruntime's inner OrtValue, over an array of numpy."""

    def __init__(self, array, kind, device="Cpu", with_dlpack=True):
        self.array, self.kind, self.device, self.n_copies = array, kind, device, 0
        if with_dlpack:
            self.__class__ = WithDlpack

    def data_type(self):
        return self.kind

    def device_name(self):
        return self.device

    def is_tensor(self):
        return self.kind.startswith("tensor")

    def numpy(self):
        self.n_copies += 1
        return self.array.copy()


class WithDlpack(Inner):
    def __dlpack__(self, **options):
        # onnxruntime has no bool there
        return (self.array.view(np.uint8) if self.array.dtype == bool else self.array).__dlpack__()


class Outer:
    def __init__(self, array, kind, **options):
        self._ortvalue = Inner(array, kind, **options)


class ForeignTest(unittest.TestCase):
    """OrtValues of onnxruntime, which is not imported."""

    MODEL = b"""<ir_version: 8, opset_import: ["" : 17]>
    m (float[N] x, bool[N] c) => (float[N] y) { n = Neg(x) y = Where(c, x, n) }"""

    def test_they_are_taken_by_their_functions(self):
        x, c = np.array([1, 2, 3], np.float32), np.array([True, False, True])
        session = onnxtrain.InferenceSession(self.MODEL)
        for options in ({}, {"with_dlpack": False}, {"device": "cuda"}):
            given = {"x": Outer(x, "tensor(float)", **options), "c": Outer(c, "tensor(bool)", **options)}
            with self.subTest(options):
                self.assertEqual(session.run(None, given)[0].tolist(), [1, -2, 3])
                result = session.run_with_ort_values(None, given)[0]
                self.assertIsInstance(result, OrtValue)
                self.assertEqual(result.numpy().tolist(), [1, -2, 3])
                self.assertEqual(given["x"]._ortvalue.n_copies, 2 * bool(options))
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", Inner(x, "tensor(float)"))
        binding.bind_ortvalue_input("c", Inner(c, "tensor(bool)"))
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), [1, -2, 3])

    def test_they_may_hold_texts(self):
        model = b'<ir_version: 8, opset_import: ["" : 17]> m (string[N] s) => (string[N] t) { t = Identity(s) }'
        texts = np.array(["a", "\u00e9\0", ""], object)
        session = onnxtrain.InferenceSession(model)
        for wrapper in (Outer, Inner):
            with self.subTest(wrapper):
                given = {"s": wrapper(texts, "tensor(string)")}
                self.assertEqual(session.run(None, given)[0].tolist(), texts.tolist())

    def test_memory_is_shared_where_it_can_be(self):
        x = np.zeros(3, np.float32)
        value = OrtValue.from_dlpack(Outer(x, "tensor(float)"))
        x[1] = 5
        self.assertEqual(value.numpy().tolist(), [0, 5, 0])

    def test_others_are_refused(self):
        with self.assertRaisesRegex(onnxtrain.InvalidType, r"input 'x' is seq\(tensor\(float\)\), expected a tensor"):
            onnxtrain.InferenceSession(self.MODEL).run(None, {"x": Outer(None, "seq(tensor(float))"), "c": [True]})


@unittest.skipIf(torch is None, "torch is not installed")
class TorchTest(unittest.TestCase):
    def test_a_tensor_shares_its_memory_both_ways(self):
        tensor = torch.arange(4, dtype=torch.float32, requires_grad=True)
        value = OrtValue.from_dlpack(tensor)
        self.assertEqual(value.data_ptr(), tensor.data_ptr())
        self.assertEqual(torch.from_dlpack(value).data_ptr(), tensor.data_ptr())

    def test_bfloat16_comes_and_goes(self):
        value = OrtValue.from_dlpack(torch.ones(3, dtype=torch.bfloat16))
        self.assertEqual(value.element_type(), 16)
        self.assertEqual(torch.from_dlpack(value).dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
