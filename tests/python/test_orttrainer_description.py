# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a model's inputs and outputs: what they become, and what is refused and how that is said."""

import ast
import unittest

from onnxtrain import model_desc_validation
from onnxtrain.model_desc_validation import _ORTTrainerModelDesc

NAME = "the first element of the tuple (aka name) must be a string"
SHAPE = "the second element of the tuple (aka shape) must be a list"
DIM = "each shape must be either a string or integer"
LOSS = "the third element of the tuple (aka is_loss) must be a boolean"
INPUT = ("in0", [])
OUTPUT = ("out0", [], True)


class ValidTest(unittest.TestCase):
    def test_inputs_and_outputs(self):
        for given in (
            {"inputs": [("in0", [])], "outputs": [("out0", []), ("out1", [])]},
            {"inputs": [("in0", ["batch", 2, 3])], "outputs": [("out0", [], True)]},
            {"inputs": [("in0", []), ("in1", [1])], "outputs": [("out0", [], False), ("out1", ["dyn"], True)]},
        ):
            with self.subTest(given=given):
                found = _ORTTrainerModelDesc(given)
                self.assertTrue(all(isinstance(one, found._InputDescription) for one in found.inputs))
                self.assertTrue(all(isinstance(one, found._OutputDescription) for one in found.outputs))
                self.assertEqual(found.inputs, given["inputs"])
                self.assertEqual([one[:2] for one in found.outputs], [one[:2] for one in given["outputs"]])
                are_losses = [one[2:] == (True,) for one in given["outputs"]]
                self.assertEqual([one.is_loss for one in found.outputs], are_losses)

    def test_what_training_adds(self):
        found = _ORTTrainerModelDesc({"inputs": [INPUT], "outputs": [OUTPUT]})
        name = model_desc_validation.LEARNING_RATE_IO_DESCRIPTION_NAME
        self.assertEqual((name, found.learning_rate.name, found.learning_rate.shape), ("__learning_rate", name, [1]))
        self.assertIn("float32", str(found.learning_rate.dtype))
        self.assertEqual((found.all_finite, found.loss_scale_input, found.gradient_accumulation), (None, None, None))
        found.all_finite = model_desc_validation.ALL_FINITE_IO_DESCRIPTION_NAME
        self.assertEqual((found.all_finite.name, found.all_finite.shape), ("__all_finite", [1]))
        self.assertIn("bool", str(found.all_finite.dtype))
        found.loss_scale_input = model_desc_validation.LOSS_SCALE_INPUT_IO_DESCRIPTION_NAME
        self.assertEqual((found.loss_scale_input.name, found.loss_scale_input.shape), ("__loss_scale_input", []))
        found.gradient_accumulation = model_desc_validation.GRADIENT_ACCUMULATION_IO_DESCRIPTION_NAME
        self.assertEqual(found.gradient_accumulation.shape, [1])

    def test_types_replace_each_other(self):
        found = _ORTTrainerModelDesc({"inputs": [INPUT, ("in1", [2])], "outputs": [OUTPUT]})
        for dtype in (int, float):
            found.add_type_to_input_description(1, dtype)
            self.assertEqual(found.inputs[1], found._InputDescriptionTyped("in1", [2], dtype))
            found.add_type_to_output_description(0, dtype, int)
            self.assertEqual(found.outputs[0], found._OutputDescriptionTyped("out0", [], True, dtype, int))
        self.assertIsInstance(found.inputs[0], found._InputDescription)
        for index in (-1, 2, "0", True):
            with self.subTest(index=index), self.assertRaises(AssertionError):
                found.add_type_to_input_description(index, int)

    def test_descriptions_that_are_added(self):
        found = _ORTTrainerModelDesc({"inputs": [("input", [])], "outputs": [OUTPUT]})
        found.add_input_description("in", ["batch", 3])  # part of another's name
        found.add_output_description("out1", [3])
        self.assertEqual(found.inputs[1], ("in", ["batch", 3]))
        self.assertEqual(found.outputs[1], ("out1", [3], False))
        for add, arguments in (
            (found.add_input_description, ("", [])),
            (found.add_input_description, (3, [])),
            (found.add_input_description, ("in", [])),
            (found.add_input_description, ("in2", (1,))),
            (found.add_input_description, ("in2", [""])),
            (found.add_input_description, ("in2", [1.0])),
            (found.add_output_description, ("out0", [])),
            (found.add_output_description, ("out2", [], 1)),
            (found.add_output_description, ("out2", [], True)),
        ):
            with self.subTest(arguments=arguments), self.assertRaises(AssertionError):
                add(*arguments)


class InvalidTest(unittest.TestCase):
    def refuse(self, description, payload):
        with self.assertRaises(ValueError) as caught:
            _ORTTrainerModelDesc(description)
        title, _, found = str(caught.exception).partition(": ")
        self.assertEqual((title, ast.literal_eval(found)), ("Invalid model_desc", payload))

    def test_first_elements(self):
        self.refuse(
            {"inputs": [(True, [])], "outputs": [(3, [])]},
            {"inputs": [{0: [NAME]}], "outputs": [{0: [NAME]}]},
        )

    def test_second_elements(self):
        self.refuse(
            {"inputs": [("in1", (1, 2))], "outputs": [("out1", "shape")]},
            {"inputs": [{0: [SHAPE]}], "outputs": [{0: [SHAPE]}]},
        )
        self.refuse(
            {"inputs": [("in1", [True, 2, 1.5])], "outputs": [("out0", []), ("out1", [None])]},
            {"inputs": [{0: [DIM, DIM]}], "outputs": [{1: [DIM]}]},
        )

    def test_third_elements(self):
        self.refuse(
            {"inputs": [INPUT], "outputs": [("out0", [], 1), ("out1", [], "True")]},
            {"outputs": [{0: [LOSS], 1: [LOSS]}]},
        )

    def test_elements_that_are_no_tuples(self):
        self.refuse(
            {"inputs": ["in0", ("in1",), INPUT], "outputs": [["out0", []], ("out1", [], True, 1)]},
            {
                "inputs": [{0: ["must be a tuple with size 2"], 1: ["must be a tuple with size 2"]}],
                "outputs": [{0: ["must be a tuple with size 2 or 3"], 1: ["must be a tuple with size 2 or 3"]}],
            },
        )

    def test_two_losses(self):
        self.refuse(
            {"inputs": [INPUT], "outputs": [OUTPUT, ("out1", []), ("out2", [], True), ("out3", [], True)]},
            {
                "outputs": [
                    {2: ["only one is_loss can bet set to True"], 3: ["only one is_loss can bet set to True"]}
                ]
            },
        )

    def test_sections(self):
        self.refuse(
            {"inputz": [INPUT], "outputs": [OUTPUT]},
            {"inputs": ["required field"], "inputz": ["unknown field"]},
        )
        self.refuse({"inputs": [INPUT]}, {"outputs": ["required field"]})
        self.refuse({"inputs": [], "outputs": [OUTPUT]}, {"inputs": ["min length is 1"]})


if __name__ == "__main__":
    unittest.main()
