#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of the order of calls finds what C leaves open, and lets pass what it orders."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_order.py"
EMIT = """
// emit(emit(g), emit(g)) in a comment
ot_value *emit(ot_grad *g, ot_value *a)
{
    return ot__graph_new_value(g->graph, "y(");
}
"""
FIRST = 4  # line of the first statement of rule()


def check(files):
    """Exit status and messages for a repository with these files of src/ and one that defines emit()."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {"emit.c": EMIT, **files}.items():
            target = Path(root) / "src" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
        return done.returncode, done.stderr


def rule(body):
    return f"static void rule(ot_grad *g)\n{{\n    int n;\n    {body}\n}}\n"


class Order(unittest.TestCase):
    def assert_refused(self, body, line=FIRST):
        status, messages = check({"ops/rule.c": rule(body)})
        self.assertEqual(status, 1)
        self.assertIn(f"src/ops/rule.c:{line}: rule: the order", messages)
        self.assertEqual(messages.count("\n"), 1)

    def assert_allowed(self, body):
        self.assertEqual(check({"ops/rule.c": rule(body)}), (0, ""))

    def test_arguments(self):
        self.assert_refused("use(emit(g, x), emit(g, y));")
        self.assert_refused("use(g, emit(g, x),\n        wrap(emit(g, y)));", FIRST + 1)
        self.assert_refused("if (n)\n        use(emit(g, x), n, n ? emit(g, y) : x);", FIRST + 1)
        self.assert_refused("while (use(emit(g, x), emit(g, y)))\n        n++;")

    def test_elements_of_initialisers(self):
        self.assert_refused("ot_value *in[] = {emit(g, x), emit(g, y)};")
        self.assert_refused("use((ot_value *[]){emit(g, x), emit(g, y)});")

    def test_operands(self):
        self.assert_refused("n = emit(g, x) == emit(g, y);")
        self.assert_refused("n = 1;\n    if (n && emit(g, x) != emit(g, y))\n        n = 0;", FIRST + 1)

    def test_functions_that_add_through_others(self):
        half = "ot_value *half(ot_grad *g)\n{\n    return emit(g, 0);\n}\n"
        status, messages = check({"half.c": half, "rule.c": rule("use(half(g), half(g));")})
        self.assertEqual(status, 1)
        self.assertIn("src/rule.c:4: rule", messages)

    def test_functions_through_pointers(self):
        self.assert_refused("use(g->host->set_dx(g), emit(g, x));")

    def test_static_functions_of_other_files(self):
        half = "static ot_value *half(ot_grad *g)\n{\n    return emit(g, 0);\n}\n"
        self.assertEqual(check({"half.c": half, "rule.c": rule("use(half(g), half(g));")}), (0, ""))

    def test_one_call_inside_another(self):
        self.assert_allowed("use(emit(g, emit(g, wrap(emit(g, x)))), x, y);")

    def test_what_has_an_order(self):
        self.assert_allowed("ot_value *x = emit(g, 0), *y = emit(g, x);")
        self.assert_allowed("use(n ? emit(g, x) : emit(g, y));")
        self.assert_allowed("n = emit(g, x) != NULL && emit(g, y) != NULL || emit(g, z);")
        self.assert_allowed("if (emit(g, x))\n        emit(g, y);\n    else\n        emit(g, z);")
        self.assert_allowed("for (x = emit(g, 0), n = 0; emit(g, x); n++)\n        emit(g, x);")
        self.assert_allowed("if (n) {\n        if (emit(g, x)) {\n            n = 0;\n        }\n"
                            "        if (emit(g, y)) {\n            n = 1;\n        }\n    }")

    def test_text_that_is_no_code(self):
        self.assert_allowed('use("emit(", emit(g, x)); // use(emit(g, x), emit(g, y))')
        self.assert_allowed("/* use(emit(g, x), emit(g, y)) */ use(emit, emit(g, x), ')');")


if __name__ == "__main__":
    unittest.main()
