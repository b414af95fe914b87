#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that function names are unique in src, and that no two files of operators differ in names only.

Usage: check_names.py [repository]

1. A function, static ones included, is defined in one file, so that a profile, a debugger and a search lead to one
   place. Functions of templates (*.tmpl.h) count by what stands in FN(...). Definitions under several branches of #if
   in one file are one, and a header may have a `static inline ot__` beside the definition in one file: what builds
   without a library call.
2. Two files src/ops/**/op_*.c that are the same once comments are gone and every name, string and number is replaced
   by its kind are one file with a table.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*$", re.MULTILINE)
# A definition at the start of a line: type, name, parameters, brace.
DEFINITION = re.compile(r"^(?!typedef\b|struct [\w]+ \{|enum\b)\w[\w \t\n*]*?[ \t\n*](?:FN\((\w+)\)|(\w+))\s*\(((?:[^(){};]|\([^(){};]*\))*)\)\s*\{",
                        re.MULTILINE)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|\d[\w.]*|[A-Za-z_]\w*|\S')
KEYWORDS = {"if", "else", "for", "while", "do", "switch", "case", "return", "break", "continue", "goto", "static", "const",
            "void", "bool", "int", "unsigned", "double", "float", "char", "struct", "enum", "sizeof", "define", "include"}


def without_comments(text):
    return COMMENT.sub(lambda m: m.group(1) or " ", text)


def functions(text):
    """Names of the functions that a file defines."""
    code = DIRECTIVE.sub("", without_comments(text))
    return {f"FN({m.group(1)})" if m.group(1) else m.group(2) for m in DEFINITION.finditer(code)
            if m.group(2) not in KEYWORDS}


def stand_ins(path, text):
    """Those that a header has for builds without a library."""
    return set(re.findall(r"^static inline [^;{}]*?\b(ot__\w+)\(", text, re.MULTILINE)) if path.suffix == ".h" else set()


def kind(token):
    if token[0] in "\"'":
        return "string"
    if token[0].isdigit():
        return "number"
    if (token[0].isalpha() or token[0] == "_") and token not in KEYWORDS:
        return "name"
    return token


def shape(text):
    """What is left of a file without comments, names, strings and numbers; its #include lines do not count."""
    code = re.sub(r"^[ \t]*#[ \t]*include[^\n]*$", "", without_comments(text), flags=re.MULTILINE)
    return " ".join(kind(token) for token in TOKEN.findall(code))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    sources = sorted(path for path in (root / "src").rglob("*.[ch]"))
    places, shapes, problems = defaultdict(list), defaultdict(list), []
    for path in sources:
        text, name = path.read_text(), str(path.relative_to(root))
        for function in functions(text) - stand_ins(path, text):
            places[function].append(name)
        if path.name.startswith("op_") and name.startswith("src/ops/"):
            shapes[shape(text)].append(name)
    for function, files in sorted(places.items()):
        if len(files) > 1:
            problems.append(f"function {function} is defined in {' and '.join(files)}, expected a name of its own in each")
    for files in shapes.values():
        if len(files) > 1:
            problems.append(f"{' and '.join(files)} differ in names only, expected a table")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(sources)} files, {len(places)} functions, {len(problems)} problems")
    return 1 if problems or not places else 0


if __name__ == "__main__":
    sys.exit(main())
