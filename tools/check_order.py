#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that src/ leaves no compiler a choice of the order in which nodes and values are added to a graph.

Usage: check_order.py [repository]

C does not say in which order the arguments of a call, the elements of an initialiser or the operands of an operator
are evaluated, and compilers differ. So at most one of them may have a call that adds to a graph: a function of ADDS, or
one that calls such a function, directly or through others. The other values are made before, in locals. Operands of
&&, ||, ?: and the comma operator have an order.
"""

import re
import sys
from pathlib import Path

# set_dx: a function of ot__grad_host, called through a pointer.
ADDS = {"ot__graph_new_value", "ot__graph_add_node", "ot__graph_add_initializer", "ot__graph_add_input",
        "ot__graph_add_output", "ot__graph_rename_value", "set_dx"}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else"}
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
                     re.DOTALL | re.MULTILINE)
FUNCTION = re.compile(r"^(static )?[^\n;{}#=]*?\b(\w+)\([^;{}]*?\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"\w+|&&|\|\||[^\w\s]")
CALL = re.compile(r"\b(\w+)\s*\(")
ENDS = {")": "(", "]": "[", "}": "{"}


def blank(match):
    """What a comment, a string or a directive is replaced by: its line ends stay."""
    return "0" * match.group().startswith(('"', "'")) + re.sub(r"[^\n]", "", match.group())


class Function:
    def __init__(self, path, text, match):
        self.path, self.name = path, match.group(2)
        self.is_static = match.group(1) is not None
        self.line = text.count("\n", 0, match.start(3)) + 1
        self.body = match.group(3)
        self.calls = set(CALL.findall(self.body)) - KEYWORDS


def read_functions(path):
    text = SKIPPED.sub(blank, path.read_text())
    return [Function(path, text, match) for match in FUNCTION.finditer(text)]


def find_adders(functions):
    """{file: names of the functions that add to a graph when they are called in this file}"""
    shared, local = set(ADDS), {function.path: set() for function in functions}
    static = {path: {f.name for f in functions if f.is_static and f.path == path} for path in local}
    n_before = -1
    while n_before != (n_before := len(shared) + sum(map(len, local.values()))):
        for f in functions:
            if f.calls & (local[f.path] | (shared - static[f.path])):
                (local[f.path] if f.is_static else shared).add(f.name)
    return {path: local[path] | (shared - static[path]) for path in local}


def parse(body, line):
    """Nested groups: [opening bracket, tokens], a token being (line, text) or (line, group)."""
    stack = [["{", []]]
    position = 0
    for match in TOKEN.finditer(body):
        line += body.count("\n", position, match.start())
        position = match.start()
        token = match.group()
        if token in "([{":
            stack.append([token, [], line])
        elif token in ENDS and len(stack) > 1:
            opening, tokens, start = stack.pop()
            stack[-1][1].append((start, [opening, tokens]))
        else:
            stack[-1][1].append((line, token))
    return stack[0]


def is_block(group):
    """Statements between braces, not an initialiser."""
    return group[0] == "{" and any(token == ";" or isinstance(token, list) and is_block(token) for _, token in group[1])


def examine(group, adders, is_list, problems):
    """True when the group adds to a graph; lists the lines of calls that do so beside another in no order."""
    n_adding = n_elements = 0  # since the last operator that has an order; elements of this list
    adds = element_adds = False
    previous = None
    for line, token in group[1]:
        if isinstance(token, list):
            is_call = token[0] == "(" and previous is not None and re.fullmatch(r"\w+", previous) and previous not in KEYWORDS
            inner = examine(token, adders, bool(is_call) or token[0] == "{" and not is_block(token), problems)
            if inner or is_call and previous in adders:
                n_adding += 1
                n_elements += not element_adds
                adds = element_adds = True
                if n_adding == 2 or is_list and n_elements == 2:
                    problems.append(line)
            if is_block(token) or previous in KEYWORDS:
                n_adding = 0
            previous = None
        else:
            if token in ("&&", "||", "?", ":", ",", ";") or token in KEYWORDS:
                n_adding = 0
            if token == ",":
                element_adds = False
            previous = token
    return adds


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = sorted((root / "src").rglob("*.[ch]"))
    functions = [function for path in files for function in read_functions(path)]
    adders = find_adders(functions)
    n_problems = 0
    for f in functions:
        lines = []
        examine(parse(f.body, f.line), adders[f.path], False, lines)
        for line in sorted(set(lines)):
            print(f"{f.path.relative_to(root)}:{line}: {f.name}: the order of two calls that add to a graph is the "
                  "compiler's choice, expected all but one of them in locals made before", file=sys.stderr)
            n_problems += 1
    print(f"{len(functions)} functions, {n_problems} problems")
    return 1 if n_problems else 0


if __name__ == "__main__":
    sys.exit(main())
