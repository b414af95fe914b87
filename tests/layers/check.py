#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layers check finds every kind of forbidden include, and nothing in a tree without one."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
LAYERS = "base:\ntensor:\nkernels:\ngraph:\nops: kernels graph\nonnx: graph\n"


def check(files):
    """Exit status and messages for a repository of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {"src/layers.txt": LAYERS, **files}.items():
            target = Path(root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
        return done.returncode, done.stderr


class Includes(unittest.TestCase):
    def assert_found(self, path, include, message):
        status, messages = check({path: f'\n#include "{include}"\n'})
        self.assertEqual(status, 1)
        self.assertIn(f"{path}:2: ", messages)
        self.assertIn(message, messages)

    def test_allowed_ones_pass(self):
        text = "".join(f'#include "{name}"\n' for name in
                       ("base/base.h", "tensor/tensor.h", "graph/graph.h", "kernels/elementwise/rows.def", "kernels/by_float.tmpl.h", "ops/private.h", "onnxtrain/op.h"))
        status, messages = check({"src/ops/op_relu.c": text + "#include <math.h>\n", "src/onnx/read.c": '#include "onnx.pb-c.h"\n'})
        self.assertEqual((status, messages), (0, ""))

    def test_upwards(self):
        self.assert_found("src/graph/edit.c", "ops/ops.h", "'graph' includes 'ops', allowed: base tensor")

    def test_sideways(self):
        self.assert_found("src/onnx/read.c", "ops/ops.h", "'onnx' includes 'ops'")

    def test_base_includes_nothing(self):
        self.assert_found("src/base/map.c", "tensor/tensor.h", "'base' includes 'tensor', allowed: nothing")

    def test_private_header_of_another_layer(self):
        self.assert_found("src/ops/op_relu.c", "graph/dim.h", "private to 'graph'")

    def test_table_of_a_layer_that_is_not_allowed(self):
        self.assert_found("src/onnx/read.c", "kernels/rows.def", "'onnx' includes 'kernels'")

    def test_header_of_no_layer(self):
        self.assert_found("src/ops/op_relu.c", "tools/tools.h", "is in no layer")

    def test_generated_header_elsewhere(self):
        self.assert_found("src/ops/op_relu.c", "onnx.pb-c.h", "is for onnx only")

    def test_folder_of_no_layer(self):
        status, messages = check({"src/utils/text.c": "\n"})
        self.assertEqual(status, 1)
        self.assertIn("folder 'utils' is not in layers.txt", messages)

    def test_program_with_internal_header(self):
        self.assert_found("cli/main.c", "base/base.h", "is not a public header")


if __name__ == "__main__":
    unittest.main()
