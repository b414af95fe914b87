#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own node tests, written out of the installed onnx package into one zip file for run_node_tests.

usage: record.py [--small BYTES --without EXPECTED] [--older] OUT.zip

Of every test the zip holds

  NAME.onnx         the test's model; sequences that it takes or gives are put together of tensors and taken apart in it
  NAME.data.onnx    inputs in0, in1, ... and expected outputs out0, out1, ... as the initializers of a model without nodes
  NAME.shapes.onnx  the model with symbolic input extents, its outputs typed as onnx.shape_inference infers them; small
                    integer inputs, which shapes depend on, are initializers there
  NAME.tolerance    the test's relative and absolute tolerance

--small BYTES keeps, operator by operator, the smallest tests that together fit; --without leaves out what the file
EXPECTED lists (see run_node_tests.c). --older adds the tests of one node at
every older opset from 7 on at which the operator's contract was another, as far as ONNX's checker accepts the node there;
the expected outputs are then ONNX Runtime's (needs onnxruntime), and the tests are called NAME@OPSET.
"""
import argparse
import copy
import fnmatch
import sys
import warnings
import zipfile
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OLDEST_OPSET = 7
SMALL_INTEGERS = 64  # elements of an input that shapes may depend on
# Tests whose expected values ONNX rounds to 16 bits (complex64: to 24) after each operation and then compares more narrowly than
# their own distance from the exact values: of those that follow one rounding at the end no more can be asked. In the form that
# is expanded into operators the values are rounded after each operation here, too.
ROUNDED_OFTEN = ("test_attention_*bf16*", "test_attention_4d_causal_fp16_expanded", "test_dft_inverse*")
# Where ONNX Runtime differs from ONNX's definition, which is the same at all opsets since; its own tests leave these out.
SAME_AT_OLDER = ("test_resize_downsample_scales_*_align_corners",)
# Where ONNX's inference takes the extents of what is sliced for those of the slice.
NO_SHAPES = ("test_slice*@10",)
HAS_WINDOW = {
    "CausalConvWithState", "Conv", "ConvInteger", "ConvTranspose", "QLinearConv",
}  # their weight's extents are never symbolic
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)  # the same tests give the same bytes


def tensor_of(value, name):
    if isinstance(value, TensorProto):
        tensor = copy.deepcopy(value)
    elif isinstance(value, (list, dict)) or value is None:
        raise TypeError("not a tensor")
    else:
        tensor = numpy_helper.from_array(np.asarray(value))
    tensor.name = name
    return tensor


def one_per_value(values, prefix):
    return [tensor_of(v, f"{prefix}{i}") for i, v in enumerate(values)]


def data_model(inputs, outputs):
    graph = helper.make_graph([], "data", [], [], one_per_value(inputs, "in") + one_per_value(outputs, "out"))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


def is_one_of(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def extent_of(dim):
    """None where a symbol of the test's own stands."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    number = dim.dim_param.removeprefix("d")
    return int(number) if number != dim.dim_param and number.isdigit() else None


def symbolic(model, inputs, outputs):
    """The model as shape inference shall see it; equal dim sizes stay equal, so that elementwise operators fit."""
    model = copy.deepcopy(model)
    graph = model.graph
    kept = []
    windows = any(node.op_type in HAS_WINDOW for node in graph.node)
    for i, (value, array) in enumerate(zip(graph.input, inputs)):
        tensor = tensor_of(array, value.name)
        count = int(np.prod(tensor.dims, dtype=np.int64))
        if tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and count <= SMALL_INTEGERS and len(tensor.dims) < 2:
            graph.initializer.append(tensor)
            continue
        for dim, extent in zip(value.type.tensor_type.shape.dim, tensor.dims):
            if extent > 1 and not (windows and i > 0):
                dim.dim_param = f"d{extent}"
        kept.append(value)
    del graph.input[:]
    graph.input.extend(kept)
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    given = {dim.dim_param for value in graph.input for dim in value.type.tensor_type.shape.dim}
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for value, array in zip(model.graph.output, outputs):
        for dim, extent in zip(value.type.tensor_type.shape.dim, np.shape(array)):
            if dim.dim_param and dim.dim_param not in given:  # a name of ONNX's, or of the type of a sequence
                dim.ClearField("dim_param")
            elif extent_of(dim) not in (None, extent):  # one that the expected value does not have
                dim.Clear()
    return model


def held_type(value):
    return value.type.sequence_type.elem_type.tensor_type.elem_type


def sequence_of(value, arrays, graph):
    """Nodes that put an input together of tensors, which become inputs."""
    names = [f"{value.name}_{i}" for i in range(len(arrays))]
    for name, array in zip(names, arrays):
        graph.input.append(helper.make_tensor_value_info(name, held_type(value), np.asarray(array).shape))
    if names:
        return [helper.make_node("SequenceConstruct", names, [value.name])]
    return [helper.make_node("SequenceEmpty", [], [value.name], dtype=held_type(value))]


def tensors_of(value, arrays, graph):
    """Nodes that take an output apart, whose tensors and their number become outputs."""
    length = f"{value.name}_length"
    graph.output.append(helper.make_tensor_value_info(length, TensorProto.INT64, ()))
    nodes = [helper.make_node("SequenceLength", [value.name], [length])]
    for i, array in enumerate(arrays):
        name, at = f"{value.name}_{i}", f"{value.name}_at_{i}"
        graph.initializer.append(helper.make_tensor(at, TensorProto.INT64, (), [i]))
        graph.output.append(helper.make_tensor_value_info(name, held_type(value), np.asarray(array).shape))
        nodes.append(helper.make_node("SequenceAt", [value.name, at], [name]))
    return nodes


def without_sequences(model, inputs, outputs):
    """The model between tensors: sequences that it takes or gives are put together and taken apart in it."""
    graph = model.graph
    if not any(value.type.HasField("sequence_type") for value in (*graph.input, *graph.output)):
        return model, inputs, outputs
    model = copy.deepcopy(model)
    graph = model.graph
    given, made, before, behind = list(graph.input), list(graph.output), [], []
    new_inputs, new_outputs = [], []
    del graph.input[:], graph.output[:]
    for value, x in zip(given, inputs):
        if value.type.HasField("sequence_type"):
            before += sequence_of(value, x, graph)
            new_inputs += x
        else:
            graph.input.append(value)
            new_inputs.append(x)
    for value, y in zip(made, outputs):
        if value.type.HasField("sequence_type"):
            behind += tensors_of(value, y, graph)
            new_outputs += [np.int64(len(y)), *y]
        else:
            graph.output.append(value)
            new_outputs.append(y)
    nodes = [*before, *graph.node, *behind]
    del graph.node[:]
    graph.node.extend(nodes)
    return model, new_inputs, new_outputs


def in_wider(value):
    """Of 16 bits in f32, of f32 in f64; other types stay."""
    array = np.asarray(value)
    wider = {"bfloat16": np.float32, "float16": np.float32, "float32": np.float64}.get(array.dtype.name)
    return array.astype(wider) if wider else array


def exact_outputs(case):
    """What ONNX's reference gives for the operator itself, not its expansion, in a wider type."""
    model = copy.deepcopy(case.model)
    inputs = [in_wider(x) for x in case.data_sets[0][0]]
    for value, array in zip(model.graph.input, inputs):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    names = [value.name for value in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))


def tolerance_of(case, by_name):
    """The test's own; with ROUNDED_OFTEN, rtol of one rounding to the type and atol of the expected values' distance from the
    exact ones, twice in the expanded form, whose roundings here are as many.
    """
    if not is_one_of(case.name, ROUNDED_OFTEN):
        return case.rtol, case.atol
    itself = case.name.removesuffix("_expanded")
    expected, exact = case.data_sets[0][1], exact_outputs(by_name[itself])
    distance = max(np.abs(np.asarray(y).astype(np.float64) - x).max() for y, x in zip(expected, exact))
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(np.asarray(expected[0]).dtype.name, 0)
    return max(case.rtol, unit), case.atol + distance * (1 if itself == case.name else 2)


class Test:
    def __init__(self, name, model, inputs, outputs, rtol, atol):
        self.name = name
        self.model = model
        self.files = {".onnx": model.SerializeToString(), ".tolerance": f"{rtol:g} {atol:g}\n".encode()}
        self.files[".data.onnx"] = data_model(inputs, outputs).SerializeToString()
        if is_one_of(name, NO_SHAPES):
            return
        try:
            self.files[".shapes.onnx"] = symbolic(model, inputs, outputs).SerializeToString()
        except Exception:  # shape inference refuses symbols that the operator would need to compare
            pass

    def size(self):
        """In the zip file, with the entry's header and its line of the directory."""
        return sum(len(zlib.compress(content, 9)) + 2 * len(self.name) + 110 for content in self.files.values())

    def operators(self):
        return tuple(node.op_type for node in self.model.graph.node)


def collect():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.data_sets]


def make_test(case, by_name):
    """None where a value may be absent (optionals)."""
    try:
        model, inputs, outputs = without_sequences(case.model, *case.data_sets[0])
        return Test(case.name, model, inputs, outputs, *tolerance_of(case, by_name))
    except TypeError:
        return None


def older_opsets(node, opset):
    """The first opset of every older contract from OLDEST_OPSET on."""
    found = set()
    for version in range(OLDEST_OPSET, opset):
        try:
            since = onnx.defs.get_schema(node.op_type, version, "").since_version
        except onnx.defs.SchemaError:
            continue
        found.add(max(since, OLDEST_OPSET))
    newest = onnx.defs.get_schema(node.op_type, opset, "").since_version
    return sorted(version for version in found if version < newest)


def older_tests(case, onnxruntime):
    model = case.model
    if len(model.graph.node) != 1 or [o.domain for o in model.opset_import] != [""]:
        return
    inputs = case.data_sets[0][0]
    is_same = is_one_of(case.name, SAME_AT_OLDER)
    for version in older_opsets(model.graph.node[0], model.opset_import[0].version):
        older = copy.deepcopy(model)
        older.opset_import[0].version = version
        older.ir_version = min(older.ir_version, 8)
        try:
            onnx.checker.check_model(older, full_check=True)
            session = onnxruntime.InferenceSession(older.SerializeToString(), providers=["CPUExecutionProvider"])
            fed = {value.name: np.asarray(array) for value, array in zip(older.graph.input, inputs)}
            outputs = case.data_sets[0][1] if is_same else session.run(None, fed)
            yield Test(f"{case.name}@{version}", older, inputs, outputs, case.rtol, case.atol)
        except Exception:  # the older contract has no such node, or ONNX Runtime no kernel for it
            continue


def without_listed(tests, path):
    operators, names = set(), []
    for line in open(path, encoding="utf-8"):
        kind, _, rest = line.strip().partition(" ")
        if kind == "operators":
            operators.update(rest.split())
        elif kind in ("test", "shape"):
            names.append(rest.split()[0])
    return [
        test
        for test in tests
        if not operators.intersection(test.operators()) and not is_one_of(test.name, names)
    ]


def smallest(tests, limit):
    """Rounds over the operators, each giving its next smallest test of one node."""
    by_operator = {}
    for test in sorted((t for t in tests if len(t.operators()) == 1), key=lambda t: (t.size(), t.name)):
        by_operator.setdefault(test.operators(), []).append(test)
    chosen, total = [], 0
    while by_operator:
        for operators in sorted(by_operator):
            test = by_operator[operators].pop(0)
            if not by_operator[operators]:
                del by_operator[operators]
            if total + test.size() <= limit:
                chosen.append(test)
                total += test.size()
    return chosen


def write(tests, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for test in sorted(tests, key=lambda t: t.name):
            for ending, content in sorted(test.files.items()):
                out.writestr(zipfile.ZipInfo(test.name + ending, ENTRY_TIME), content, zipfile.ZIP_DEFLATED, 9)


def main():
    parser = argparse.ArgumentParser(description="ONNX's node tests as one zip file")
    parser.add_argument("--small", type=int, metavar="BYTES")
    parser.add_argument("--without", metavar="EXPECTED")
    parser.add_argument("--older", action="store_true")
    parser.add_argument("out")
    options = parser.parse_args()
    cases = collect()
    by_name = {case.name: case for case in cases}
    tests = [test for test in (make_test(case, by_name) for case in cases) if test]
    left_out = len(cases) - len(tests)
    if options.older:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        tests += [test for case in cases for test in older_tests(case, onnxruntime)]
    if options.without:
        tests = without_listed(tests, options.without)
    if options.small:
        tests = smallest(tests, options.small)
    write(tests, options.out)
    print(f"{options.out}: {len(tests)} tests of onnx {onnx.__version__}; {left_out} with optionals left out")


if __name__ == "__main__":
    sys.exit(main())
