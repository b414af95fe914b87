# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module names what the module has."""

import ast
import unittest
from pathlib import Path

from onnxtrain import _core

STUB = Path(__file__).resolve().parents[2] / "python/onnxtrain/_core.pyi"


def names_in(body):
    named = [node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    fields = [node.target.id for node in body if isinstance(node, ast.AnnAssign)]
    return {node.name for node in named} | set(fields)


def names_of(thing):
    return {name for name in vars(thing) if not name.startswith("__") or name.startswith("__dlpack")}


class StubTest(unittest.TestCase):
    def test_names_are_those_of_the_module(self):
        tree = ast.parse(STUB.read_text())
        self.assertEqual(names_in(tree.body), names_of(_core))
        for node in tree.body:
            thing = getattr(_core, getattr(node, "name", ""), None)
            if isinstance(node, ast.ClassDef) and not issubclass(thing, Exception):
                with self.subTest(node.name):
                    self.assertEqual(names_in(node.body), names_of(thing))


if __name__ == "__main__":
    unittest.main()
