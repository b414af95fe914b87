#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HDF5 files of tests/hdf5/data, by h5py 3.16: the same tree in the forms that h5py writes, and files to be refused.

Usage: generate.py FOLDER
"""

import sys
from pathlib import Path

import h5py
import numpy

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def tree(order):
    """What test_files.c expects; `order` is that of the bytes in an element."""
    ends = {f"{t}": numpy.array([numpy.iinfo(t).min, 1, numpy.iinfo(t).max], order + t) for t in INTEGERS}
    return {
        "model": {"full_precision": {"fc.weight": (numpy.arange(6) * 0.5 - 1).reshape(2, 3).astype(order + "f4"),
                                     "half": (numpy.arange(4) * 0.25).astype(order + "f2")}},
        "integers": ends,
        "double": numpy.array([[0.1]], order + "f8"),
        "truth": numpy.array([True, False, True]),
        "empty": numpy.zeros((0, 3), order + "f4"),
        "learned": numpy.array(1.5, order + "f4"),
        "step": -5,
        "rate": 0.1,
        "is_it": True,
        "name": "Größe",
        "list": [3, -1],
        "nothing": {},
    }


def write(group, values, **how):
    for name, value in values.items():
        if isinstance(value, dict):
            write(group.create_group(name, track_order=how.get("track_order")), value, **how)
        elif isinstance(value, numpy.ndarray) and value.ndim > 0 and value.size > 0:
            group.create_dataset(name, data=value, **how)
        else:
            group[name] = value


def good(folder):
    old = ("earliest", "v110")
    for name, file, how in [
        ("default", {"libver": old}, {}),
        ("gzip_shuffle", {"libver": old}, {"compression": "gzip", "shuffle": True}),
        ("v108", {"libver": ("v108", "v108")}, {}),
        ("v110", {"libver": ("v110", "v110")}, {}),
        ("track_order", {"libver": ("v108", "v110"), "track_order": True}, {"track_order": True}),
        ("user_block", {"libver": old, "userblock_size": 1024}, {}),
    ]:
        with h5py.File(folder / f"{name}.h5", "w", **file) as f:
            write(f, tree("<"), **how)
    with h5py.File(folder / "big_endian.h5", "w", libver=old) as f:
        values = tree(">")
        values["name"] = numpy.bytes_("Größe".encode())  # of fixed length
        write(f, values)


def checksum(data):
    """Bob Jenkins' lookup3, which HDF5 checks its metadata with; `data` is longer than 12 bytes."""
    mask = (1 << 32) - 1

    def rotate(x, k):
        return (x << k | x >> (32 - k)) & mask

    a = b = c = (0xDEADBEEF + len(data)) & mask
    while len(data) > 12:
        x, y, z = (int.from_bytes(data[i : i + 4], "little") for i in (0, 4, 8))
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        for k, (p, q, r) in zip((4, 6, 8, 16, 19, 4), ("acb", "bac", "cba") * 2):  # p -= q; p ^= rot(q); q += r
            v = {"a": a, "b": b, "c": c}
            v[p] = ((v[p] - v[q]) & mask) ^ rotate(v[q], k)
            v[q] = (v[q] + v[r]) & mask
            a, b, c = v["a"], v["b"], v["c"]
        data = data[12:]
    x, y, z = (int.from_bytes(data.ljust(12, b"\0")[i : i + 4], "little") for i in (0, 4, 8))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    for p, q, k in (("c", "b", 14), ("a", "c", 11), ("b", "a", 25), ("c", "b", 16), ("a", "c", 4), ("b", "a", 14), ("c", "b", 24)):
        v = {"a": a, "b": b, "c": c}
        v[p] = ((v[p] ^ v[q]) - rotate(v[q], k)) & mask
        a, b, c = v["a"], v["b"], v["c"]
    return c


def user_link(data):
    """The file with its external link made one of a program's own kind."""
    at = data.index(b"\x01\x08\x40\x01b")  # version, flags, kind, length of the name, name
    begin = data.index(b"OHDR")
    end = next(i for i in range(begin + 13, len(data) - 3)
               if int.from_bytes(data[i : i + 4], "little") == checksum(data[begin:i]))
    header = data[begin : at + 2] + b"\x60" + data[at + 3 : end]
    return data[:begin] + header + checksum(header).to_bytes(4, "little") + data[end + 4 :]


def refused(folder):
    def new(name, libver=("v108", "v110")):
        return h5py.File(folder / f"refused_{name}.h5", "w", libver=libver)

    with new("soft_link") as f:
        f["a/w"] = numpy.zeros(2, "f4")
        f["b"] = h5py.SoftLink("/a/w")
    with new("external_link") as f:
        f["b"] = h5py.ExternalLink("other.h5", "/a/w")
    (folder / "refused_user_link.h5").write_bytes(user_link((folder / "refused_external_link.h5").read_bytes()))
    with new("external_storage") as f:
        f.create_dataset("b", (4,), "u1", external=[("/etc/hostname", 0, 4)])
    with new("virtual") as f:
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "w", (4,))
        f.create_virtual_dataset("b", layout)
    with new("lzf") as f:
        f.create_dataset("b", data=numpy.zeros(100, "f4"), compression="lzf")
    with new("scale_offset") as f:
        f.create_dataset("b", data=numpy.arange(100), scaleoffset=0)
    with new("hard_link") as f:
        f["a"] = numpy.zeros(2, "f4")
        f["b"] = f["a"]
    with new("cycle") as f:
        f.create_group("a")["b"] = f["/"]
    with new("deep", ("earliest", "v110")) as f:
        f["/".join(["b"] * 66)] = 1
    with new("huge") as f:
        f.create_dataset("b", (1 << 40,), "f4")
    with new("huge_deflate") as f:
        f.create_dataset("b", (1 << 30,), "f4", chunks=(1 << 16,), compression="gzip")
    with new("huge_chunk") as f:
        f.create_dataset("b", (4,), "f4", maxshape=(None,), chunks=(1 << 29,))
    with new("overflow") as f:
        f.create_dataset("b", (1 << 33, 1 << 33), "f8", chunks=(1, 1))
    with new("compound") as f:
        f["b"] = numpy.zeros(2, [("x", "f4"), ("y", "i8")])
    with new("strings") as f:
        f["b"] = ["x", "y"]
    with new("enumeration") as f:
        f.create_dataset("b", data=numpy.zeros(2, "i1"), dtype=h5py.enum_dtype({"RED": 0, "GREEN": 1}, "i1"))
    with new("null") as f:
        f["b"] = h5py.Empty("f4")
    with new("named_type") as f:
        f["b"] = numpy.dtype("f4")
    with new("axes") as f:
        f.create_dataset("b", (1,) * 17, "f4")


if __name__ == "__main__":
    good(Path(sys.argv[1]))
    refused(Path(sys.argv[1]))
