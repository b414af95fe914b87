#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of names finds functions that stand twice and operators' files that differ in names only."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_names.py"
RECORD = """static const ot_port {0}_in[] = {{{{"X", "T", 0}}, {{0}}}};
const ot_op_def ot__op_{0}[] = {{{{.name = "{0}", .since = {1}, .inputs = {0}_in}}, {{0}}}};
"""


def check(**files):
    """Exit status and messages for a repository that has these files in src ('__' is '/')."""
    with tempfile.TemporaryDirectory() as root:
        for name, content in {"base__anchor_c": "int ot__anchor(void)\n{\n    return 0;\n}\n", **files}.items():
            target = Path(root) / "src" / (name[:-2].replace("__", "/") + "." + name[-1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)
        return done.returncode, done.stderr


class Names(unittest.TestCase):
    def test_a_static_function_in_two_files(self):
        status, messages = check(data__csv_c="static ot_status append(const char *text, int n)\n{\n}\n",
                                 onnx__text_c="static void\nappend(void (*each)(int), int n)\n{\n}\n")
        self.assertEqual(status, 1)
        self.assertEqual(messages, "function append is defined in src/data/csv.c and src/onnx/text.c, expected a name of "
                                   "its own in each\n")

    def test_functions_of_templates(self):
        template = "static void FN(sum)(T *y, int n)\n{\n}\n"
        status, messages = check(kernels__a_h=template, kernels__b_h=template)
        self.assertEqual(status, 1)
        self.assertIn("function FN(sum) is defined in src/kernels/a.h and src/kernels/b.h", messages)

    def test_what_is_no_definition(self):
        calls = "// append(x)\n{\nstatic int append(int n);\nint x = append(1);\n#define append(x) { x }\nwhile (append(x)) {\n}\n"
        self.assertEqual(check(data__csv_c=calls, onnx__text_c=calls), (0, ""))

    def test_branches_of_one_file(self):
        both = "#ifdef A\nint ot__get(void)\n{\n}\n#else\nint ot__get(void)\n{\n}\n#endif\n"
        self.assertEqual(check(base__memory_c=both), (0, ""))

    def test_records_that_differ_in_names_only(self):
        status, messages = check(ops__a__op_tan_c="// Tan\n" + RECORD.format("tan", 7), ops__b__op_sin_c=RECORD.format("sin", 13))
        self.assertEqual(status, 1)
        self.assertEqual(messages, "src/ops/a/op_tan.c and src/ops/b/op_sin.c differ in names only, expected a table\n")

    def test_records_that_differ(self):
        other = RECORD.format("sin", 13).replace(".since", ".flags = OT_OP_NO_GRAD, .since")
        self.assertEqual(check(ops__a__op_tan_c=RECORD.format("tan", 7), ops__a__op_sin_c=other), (0, ""))


if __name__ == "__main__":
    unittest.main()
