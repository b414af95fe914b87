#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check that onnxtrain/op.h, and tensor.h on which it stands, are those that OT_OP_ABI was given to.

Usage: check_op_abi.py [repository] [--write]

tests/headers/op_abi.txt has the number and a SHA-256 of both headers without comments and blanks. Whoever changes them
raises OT_OP_ABI and records both anew with --write, which does not give one number to two headers.
"""

import hashlib
import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
NUMBER = re.compile(r"^#define OT_OP_ABI (\d+)$", re.MULTILINE)


def present(root):
    headers = [(root / "include/onnxtrain" / name).read_text() for name in ("op.h", "tensor.h")]
    number = NUMBER.search(headers[0])
    if not number:
        sys.exit("include/onnxtrain/op.h: there is no '#define OT_OP_ABI NUMBER'")
    code = NUMBER.sub("", "\n".join(COMMENT.sub(" ", text) for text in headers))
    return int(number.group(1)), hashlib.sha256(" ".join(code.split()).encode()).hexdigest()


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    root = Path(arguments[0] if arguments else ".")
    recorded = root / "tests/headers/op_abi.txt"
    number, code = present(root)
    was_number, was_code = recorded.read_text().split() if recorded.exists() else ("0", "")
    was_number = int(was_number)
    if code != was_code and number <= was_number:
        sys.exit(f"include/onnxtrain/op.h or tensor.h has changed: raise OT_OP_ABI, which is {number}, and run "
                 "`tools/check_op_abi.py --write`")
    if "--write" in sys.argv[1:]:
        recorded.write_text(f"{number} {code}\n")
    elif (number, code) != (was_number, was_code):
        sys.exit(f"OT_OP_ABI is {number}, recorded is {was_number}: run `tools/check_op_abi.py --write`")
    print(f"OT_OP_ABI {number}")
    return 0


sys.exit(main())
