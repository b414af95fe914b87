#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of operators' names finds them where they are looked for, and lets those be that are inserted."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_operator_names.py"
LIST = 'OT_OP("", Relu, relu)\nOT_OP("com.microsoft", ReluGrad, relu_grad)\nOT_OP("", Sum, sum)\n'


def check(path, text):
    """Exit status and messages for a repository that has this file and three operators."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in {"src/ops/list.def": LIST, path: text}.items():
            target = Path(root) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
        return done.returncode, done.stderr


class Names(unittest.TestCase):
    def assert_refused(self, path, text, line, name):
        status, messages = check(path, text)
        self.assertEqual(status, 1)
        self.assertIn(f'{path}:{line}: "{name}" is an operator', messages)

    def assert_allowed(self, path, text):
        self.assertEqual(check(path, text), (0, ""))

    def test_comparisons(self):
        self.assert_refused("src/passes/pass_fold.c", '\nif (strcmp(node->op_type, "Relu") == 0)\n', 2, "Relu")
        self.assert_refused("src/exec/order.c", 'is_op(node, "", "Sum")', 1, "Sum")
        self.assert_refused("src/artifacts/loss.c", 'ot__node_is(node, "Relu")', 1, "Relu")

    def test_tables(self):
        self.assert_refused("src/autodiff/build.c", 'static const char *const names[] = {"Sum"};', 1, "Sum")

    def test_domains(self):
        self.assert_refused("src/passes/open.h", 'is(node, "com.microsoft.ReluGrad")', 1, "com.microsoft.ReluGrad")

    def test_a_comparison_inside_an_insertion(self):
        self.assert_refused("src/exec/order.c", 'ot__graph_add_node(graph, "", name(is(node, "Sum")), 1);', 1, "Sum")

    def test_inserted_operators(self):
        self.assert_allowed("src/exec/order.c", 'node = ot__graph_add_node(graph, "", "Sum", at(x), &x, 1);')
        self.assert_allowed("src/passes/open.c", 'ot__open_node(o, f(")"), "Relu");')
        self.assert_allowed("src/passes/open.c", 'node->op_type = "Relu";')

    def test_files_of_patterns(self):
        self.assert_allowed("src/passes/match_copy.c", 'strcmp(node->op_type, "Relu")')
        self.assert_allowed("src/passes/fuse_conv.c", 'strcmp(node->op_type, "Relu")')
        self.assert_refused("src/passes/fuse.c", 'strcmp(node->op_type, "Relu")', 1, "Relu")

    def test_other_strings_and_folders(self):
        self.assert_allowed("src/passes/pass_fold.c", '// "Relu"\n/* "Sum" */ f("Relus", \'"\', "a \\"Sum\\"");')
        self.assert_allowed("src/op/check.c", 'strcmp(node->op_type, "Relu")')


if __name__ == "__main__":
    unittest.main()
