#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes safetensors_recorded.h: files that the safetensors package writes, and what it says of malformed ones.

Usage: record_safetensors.py > safetensors_recorded.h

Needs numpy and safetensors (0.8.0 was used).
"""

import ctypes
import json
import struct

import safetensors
from safetensors import TensorSpec

VECTOR = {
    "w": ("float32", [2, 2], struct.pack("<4f", 1, 2, 3, 4)),
    "b": ("float16", [3], struct.pack("<3e", 1, 2, 3)),
}
TYPES = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e5m2": 1, "float8_e4m3fn": 1, "int16": 2, "uint16": 2, "float16": 2,
    "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "complex64": 8, "float64": 8, "int64": 8, "uint64": 8,
}  # fmt: skip


def many():
    tensors = {}
    for i, (dtype, size) in enumerate(TYPES.items()):
        for k, shape in enumerate([[], [3], [2, 0], [1, 2, 2]]):
            count = 1
            for extent in shape:
                count *= extent
            data = bytes((7 * i + 3 * k + j) % 256 for j in range(count * size))
            tensors[f"{'zyx'[k % 3]}.{i}.{k}"] = (dtype, shape, data)
    return tensors


def odd_names():
    return {name: ("uint8", [1], b"x") for name in ["", "a\"b", "a\\b", "line\nfeed", "tab\t", "größe", "名前", "😀", "a/b.c:0"]}


def serialize(tensors, metadata):
    buffers = {name: ctypes.create_string_buffer(data, max(len(data), 1)) for name, (_, _, data) in tensors.items()}
    specs = {
        name: TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffers[name]), data_len=len(data))
        for name, (dtype, shape, data) in tensors.items()
    }
    return bytes(safetensors.serialize(specs, metadata=metadata))


def file(header, data=b""):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header)) + header + data


def one(dtype="F32", shape="[1]", offsets="[0,4]", name="a", data=b"1234"):
    return file(f'{{"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}', data)


def two(first, second, data):
    return file(json.dumps({k: {"dtype": "U8", "shape": [v[1] - v[0]], "data_offsets": v} for k, v in (("a", first), ("b", second))}), data)


WHITE = " \n\t\r"
MALFORMED = {
    "empty": b"",
    "seven bytes": b"1234567",
    "no header": file(""),
    "header too large": struct.pack("<Q", 100_000_001) + b"{}",
    "header larger than the file": struct.pack("<Q", 3) + b"{}",
    "largest length": struct.pack("<Q", 2**64 - 1) + b"{}",
    "not UTF-8": file(b"\xff"),
    "half a character": file(b'{"\xc3"'),
    "an open brace": file("{"),
    "no object": file("[]"),
    "a name without value": file('{"a"}'),
    "nothing": file("{}"),
    "white space before": file(WHITE + "{}"),
    "white space after": file("{}" + WHITE),
    "something after": file("{}x"),
    "form feed after": file("{}\f"),
    "one byte missing": one(data=b"123"),
    "one byte too many": one(data=b"12345"),
    "trailing byte without tensors": file("{}", b"1"),
    "starts at 1": two([1, 2], [2, 4], b"1234"),
    "hole": two([0, 1], [2, 4], b"1234"),
    "overlap": two([0, 3], [2, 4], b"1234"),
    "same range": two([0, 4], [0, 4], b"1234"),
    "end before begin": one(offsets="[4,0]"),
    "shape larger than the bytes": one(shape="[2,2]"),
    "shape smaller than the bytes": one(shape="[1]", offsets="[0,8]", data=b"12345678"),
    "huge extent": one(shape=f"[2,{2**64 - 2}]"),
    "number above 2^64": one(shape=f"[2,{2**70}]"),
    "number above 2^48": one(shape=f"[0,{2**48 + 1}]", offsets="[0,0]", data=b""),
    "product overflows": one(shape=f"[{2**40},{2**40}]"),
    "bytes overflow": one(shape=f"[{2**40},{2**21}]"),
    "no elements": one(shape="[2,0]", offsets="[0,0]", data=b""),
    "scalar": one("I32", "[]"),
    "half bytes": one("F4", "[8]"),
    "odd half bytes": one("F4", "[7]"),
    "six bits": one("F6_E2M3", "[4]", "[0,3]", data=b"123"),
    "odd six bits": one("F6_E3M2", "[3]", "[0,3]", data=b"123"),
    "duplicate name": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "duplicate name, escaped": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "duplicate dtype": file('{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "duplicate metadata": file('{"__metadata__":{},"__metadata__":{}}'),
    "duplicate text": file('{"__metadata__":{"a":"1","a":"2"}}'),
    "unknown field": file('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}', b"1"),
    "no dtype": file('{"a":{"shape":[1],"data_offsets":[0,1]}}', b"1"),
    "no shape": file('{"a":{"dtype":"U8","data_offsets":[0,1]}}', b"1"),
    "no offsets": file('{"a":{"dtype":"U8","shape":[1]}}', b"1"),
    "one offset": one(offsets="[0]"),
    "three offsets": one(offsets="[0,4,4]"),
    "negative extent": one(shape="[-1]"),
    "negative zero": one("U8", "[-0]", "[0,0]", data=b""),
    "fraction": one(shape="[1.0]"),
    "exponent": one(shape="[1e0]"),
    "leading zero": one(shape="[01]"),
    "number as text": one(shape='["1"]'),
    "trailing comma": one(shape="[1,]"),
    "metadata with a number": file('{"__metadata__":{"a":1}}'),
    "metadata is a list": file('{"__metadata__":[]}'),
    "metadata with null": file('{"__metadata__":{"a":null}}'),
    "metadata alone": file('{"__metadata__":{"a":"b"}}'),
    "unknown dtype": one("F33"),
    "dtype in lower case": one("f32"),
    "NUL in a name": one(name="a\\u0000b"),
    "unknown escape": one(name="a\\xb"),
    "high surrogate alone": one(name="\\ud800"),
    "low surrogate alone": one(name="\\udc00"),
    "surrogate pair": one(name="\\ud83d\\ude00"),
    "control character in a name": one(name="a\nb"),
    "string that ends with the header": file('{"a'),
    "seventeen axes": one(shape="[" + ",".join(["1"] * 17) + "]"),
}  # fmt: skip


def is_accepted(data):
    try:
        safetensors.deserialize(data)
    except Exception:  # noqa: BLE001 - of the package's own class, and others
        return 0
    return 1


def literal(data):
    lines = [data[i : i + 16] for i in range(0, len(data), 16)]
    return "\n        ".join('"' + "".join(f"\\x{b:02x}" for b in line) + '"' for line in lines) or '""'


def write(kind, name, data, extra=""):
    print(f'    {{"{name}", {len(data)}{extra},\n        {literal(data)}}},')


print("// SPDX-License-Identifier: Apache-2.0")
print("// By record_safetensors.py, from safetensors", safetensors.__version__ + ".")
print("// clang-format off")
print("static const struct {\n    const char *name;\n    size_t n_bytes;\n    const char *bytes;\n} written[] = {")
write(0, "vector", serialize(VECTOR, {"format": "pt"}))
write(0, "many", serialize(many(), {"format": "pt"}))
write(0, "odd names", serialize(odd_names(), None))
write(0, "nothing", serialize({}, None))
print("};\n")
print("static const struct {\n    const char *name;\n    size_t n_bytes;\n    int is_accepted;\n    const char *bytes;\n} judged[] = {")
for name, data in MALFORMED.items():
    write(0, name, data, f", {is_accepted(data)}")
print("};")
