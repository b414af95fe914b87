#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that src/passes, src/autodiff, src/exec, src/artifacts, src/session and src/train know no operator by its name.

Usage: check_operator_names.py [repository]

A string that is the name of an operator (src/ops/list.def) may stand there in two places only: in files fuse_*.c and
match_*.c, each of which looks for one pattern, and as an argument of a function of INSERTS, which makes a node or
finds the record of one that is to be made, or as what a node becomes (op_type = "Split"). What else must be known of operators is a field of their records.
"""

import re
import sys
from pathlib import Path

FOLDERS = ("passes", "autodiff", "exec", "artifacts", "session", "train")
PATTERNS = ("fuse_", "match_")
INSERTS = {"ot__graph_add_node", "ot__build_node", "ot__op_build", "ot__op_find", "ot__open_node", "open_add_node", "ot_emit", "ot_emit1", "ot_emit2", "ot_emit3",
           "ot__block_node", "ot__block_node_as", "ot__block_maker", "ot__block_name", "ot__block_unary", "ot__block_binary", "ot__block_reduce", "ot__block_enter",
           "unary", "binary", "block_reduce", "takes_all"}
BECOMES = re.compile(r'\bop_type = \Z')
OPERATOR = re.compile(r'^OT_OP\("[^"]*", (\w+),', re.MULTILINE)
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\]|\\.)*)"|\'(?:[^\'\\]|\\.)*\'|(\w+)\s*\(|[(){};]', re.DOTALL)


def literals(text):
    """(line, string, innermost function whose arguments it stands among or None) of every string literal."""
    calls = []
    for match in TOKEN.finditer(text):
        token = match.group()
        if match.group(1) is not None and not BECOMES.search(text, 0, match.start()):
            yield text.count("\n", 0, match.start()) + 1, match.group(1), calls[-1] if calls else None
        elif match.group(2) is not None:
            calls.append(match.group(2))
        elif token == "(":
            calls.append(None)
        elif token == ")" and calls:
            calls.pop()
        elif token in ("{", "}", ";"):
            calls.clear()


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    operators = set(OPERATOR.findall((root / "src/ops/list.def").read_text()))
    if not operators:
        sys.exit("src/ops/list.def names no operator")
    files = sorted(path for folder in FOLDERS for path in (root / "src" / folder).rglob("*.[ch]")
                   if not path.name.startswith(PATTERNS))
    n_problems = 0
    for path in files:
        for line, name, call in literals(path.read_text()):
            if name.rpartition(".")[2] in operators and call not in INSERTS:
                print(f"{path.relative_to(root)}:{line}: \"{name}\" is an operator, expected a field of its record (op.h) "
                      "or a file fuse_*.c or match_*.c", file=sys.stderr)
                n_problems += 1
    print(f"{len(operators)} operators, {len(files)} files, {n_problems} problems")
    return 1 if n_problems else 0


if __name__ == "__main__":
    sys.exit(main())
