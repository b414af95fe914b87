# SPDX-License-Identifier: Apache-2.0
"""Names, parameters and defaults are those that record_signatures.py wrote down of ONNX Runtime training 1.19.2."""

import importlib
import importlib.util
import inspect
import json
import re
import unittest
from pathlib import Path

from record_signatures import RECORD, describe_class, describe_function

import onnxtrain

# where the recorded modules' names are found
MODULES = {
    "onnxruntime": "onnxtrain",
    "onnxruntime.training.api": "onnxtrain.api",
    "onnxruntime.training.api.checkpoint_state": "onnxtrain.api",
    "onnxruntime.training.artifacts": "onnxtrain.artifacts",
}
BLOCKS = {
    f"onnxruntime.training.onnxblock{module}": f"onnxtrain.onnxblock{module}"
    for module in ("", ".blocks", ".loss", ".optim")
}
if importlib.util.find_spec("onnx") is not None:
    MODULES |= BLOCKS
# What is not there, and why. A key covers what is below it.
_DEVICE = "there is one device, the CPU"
_ALLOCATOR = "memory is the library's own affair"
_SPARSE = "sparse tensors are no inputs or outputs of the operators here"
_PROFILE = "the environment variable OT_PROFILE gives a table instead"
_INTERNAL = "a part of its inner workings"
MISSING = {
    "onnxruntime.InferenceSession.end_profiling": _PROFILE,
    "onnxruntime.InferenceSession.get_profiling_start_time_ns": _PROFILE,
    "onnxruntime.InferenceSession.get_tuning_results": "kernels are chosen by a fixed rule",
    "onnxruntime.InferenceSession.run_async": "a thread of one's own does it; the lock is released",
    "onnxruntime.InferenceSession.run_with_ortvaluevector": _INTERNAL,
    "onnxruntime.InferenceSession.set_tuning_results": "kernels are chosen by a fixed rule",
    "onnxruntime.OrtAllocatorType": _ALLOCATOR,
    "onnxruntime.OrtArenaCfg": _ALLOCATOR,
    "onnxruntime.OrtDevice": _DEVICE,
    "onnxruntime.OrtMemType": _ALLOCATOR,
    "onnxruntime.OrtMemoryInfo": _ALLOCATOR,
    "onnxruntime.OrtSparseFormat": _SPARSE,
    "onnxruntime.OrtValue.as_sparse_tensor": _SPARSE,
    "onnxruntime.OrtValue.ort_value_from_sparse_tensor": _SPARSE,
    "onnxruntime.RunOptions.terminate": "a run cannot be ended from outside",
    "onnxruntime.SessionIOBinding": _INTERNAL,
    "onnxruntime.SessionOptions.add_external_initializers": "files beside the model are read from its directory",
    "onnxruntime.SessionOptions.add_free_dimension_override_by_denotation": "any shape is planned when it comes",
    "onnxruntime.SessionOptions.add_free_dimension_override_by_name": "any shape is planned when it comes",
    "onnxruntime.SessionOptions.add_initializer": "a model that is run by hand has its initializers inside",
    "onnxruntime.SessionOptions.enable_profiling": _PROFILE,
    "onnxruntime.SessionOptions.optimized_model_filepath": "OT_DUMP_GRAPH writes what is run",
    "onnxruntime.SessionOptions.profile_file_prefix": _PROFILE,
    "onnxruntime.SparseTensor": _SPARSE,
    "onnxruntime.create_and_register_allocator": _ALLOCATOR,
    "onnxruntime.create_and_register_allocator_v2": _ALLOCATOR,
    "onnxruntime.disable_telemetry_events": "there is no telemetry",
    "onnxruntime.enable_telemetry_events": "there is no telemetry",
    "onnxruntime.get_build_info": _INTERNAL,
    "onnxruntime.has_collective_ops": _INTERNAL,
    "onnxruntime.set_default_logger_verbosity": "OT_LOG says what is logged",
}
# What takes other parameters, and why: scripts do not make these objects.
OTHER = {
    "onnxruntime.IOBinding.__init__": "InferenceSession.io_binding makes it",
    "onnxruntime.ModelMetadata.__init__": "InferenceSession.get_modelmeta makes it",
    "onnxruntime.NodeArg.__init__": "InferenceSession.get_inputs makes it",
    "onnxruntime.OrtValue.__init__": "its static methods make it",
    "onnxruntime.training.api.checkpoint_state.Parameter.__init__": "a state makes it",
}


PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from-onnx-runtime.md"
# whose members the page need not list
ENUMERATIONS = {"LossType", "OptimType", "GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "ModelMetadata"}
ABSENT_CLASSES = {path.split(".")[1] for path in MISSING if path.count(".") == 1}


def agree(recorded, ours):
    """Whether a call that fits the recorded function fits ours, which may have more parameters with defaults."""
    if not str(recorded).endswith(")"):
        return recorded == ours
    kind, names = recorded.rstrip(")").split("(", 1)
    our_kind, our_names = ours.rstrip(")").split("(", 1)
    names, our_names = names.split(", "), our_names.split(", ")
    if re.match(r"arg\d+", names[0]):  # functions in C++ have no names of parameters
        return len(names) == len(our_names)
    return (
        kind == our_kind and names == our_names[: len(names)] and all("=" in name for name in our_names[len(names) :])
    )


class SignatureTest(unittest.TestCase):
    def setUp(self):
        self.recorded = json.loads(RECORD.read_text())["modules"]
        self.excused = set()

    def excuse(self, path, table):
        if path in table:
            self.excused.add(path)
        return path in table

    def compare_class(self, path, recorded, ours):
        described = describe_class(ours)
        for name, expected in recorded.items():
            member = f"{path}.{name}"
            if self.excuse(member, MISSING):
                self.assertNotIn(name, described, member)
            elif not self.excuse(member, OTHER):
                self.assertIn(name, described, member)
                self.assertTrue(agree(expected, described[name]), f"{member}{expected}, ours {described[name]}")

    def test_a_call_that_fits_there_fits_here(self):
        for module_name, place in MODULES.items():
            module = importlib.import_module(place)
            for name, recorded in self.recorded[module_name].items():
                path = f"{module_name}.{name}"
                if self.excuse(path, MISSING):
                    self.assertFalse(hasattr(module, name), path)
                    continue
                self.assertTrue(hasattr(module, name), path)
                ours = getattr(module, name)
                if isinstance(recorded, dict):
                    self.compare_class(path, recorded, ours)
                else:
                    self.assertTrue(agree(recorded, describe_function(ours)), f"{path}{recorded}")
        self.assertEqual(self.excused, {*MISSING, *OTHER}, "an exception is listed that is none")

    def test_names_are_exported(self):
        for module_name in ("onnxruntime.training.api", "onnxruntime.training.artifacts", *BLOCKS):
            if module_name not in MODULES:
                continue
            ours = importlib.import_module(MODULES[module_name]).__all__
            self.assertLessEqual(set(self.recorded[module_name]), set(ours))
        for name in self.recorded["onnxruntime"]:
            self.assertTrue(name in onnxtrain.__all__ or f"onnxruntime.{name}" in MISSING, name)

    def test_the_page_for_those_who_come_has_every_name(self):
        words = set(re.findall(r"\w+", PAGE.read_text()))
        for module_name in MODULES:
            for name, recorded in self.recorded[module_name].items():
                members = list(recorded) if isinstance(recorded, dict) and name not in ENUMERATIONS else []
                for word in [name, *members]:
                    if not word.startswith("__") and name not in ABSENT_CLASSES:
                        self.assertTrue(word in words, f"{module_name}.{name}: {word}")

    def test_everything_public_says_what_it_does(self):
        for place in set(MODULES.values()):
            module = importlib.import_module(place)
            for name in module.__all__:
                value = getattr(module, name)
                self.assertTrue((value.__doc__ or "").strip(), f"{place}.{name}")
                if isinstance(value, type):
                    for member, one in vars(value).items():
                        if not member.startswith("_") and (callable(one) or isinstance(one, (property, staticmethod))):
                            told = inspect.getdoc(getattr(value, member))  # or what it overrides
                            self.assertTrue((told or "").strip(), f"{place}.{name}.{member}")


if __name__ == "__main__":
    unittest.main()
