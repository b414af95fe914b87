#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HDF5 files there and back: what h5py writes is read here, and what is written here is read by h5py.

Usage: check.py      with h5py, numpy and onnxtrain
"""

import sys
import tempfile
from pathlib import Path

import generate
import h5py
import numpy

from onnxtrain import _checkpoint_storage

FORMS = ["default", "gzip_shuffle", "v108", "v110", "track_order", "user_block", "big_endian"]


def load(group):
    return {name: load(item) if isinstance(item, h5py.Group) else item[()] for name, item in group.items()}


def compare(found, expected, where):
    if isinstance(expected, dict):
        assert set(found) == set(expected), (where, set(found) ^ set(expected))
        for name, value in expected.items():
            compare(found[name], value, f"{where}/{name}")
    elif isinstance(expected, str):
        assert found == expected.encode(), (where, found)
    else:
        numpy.testing.assert_array_equal(found, expected, where)


def same_kind(ours, theirs, where):
    """Groups, types, shapes and storage are those that h5py gives the same values."""
    assert type(ours) is type(theirs), where
    assert len(ours.attrs) == 0, where
    if isinstance(ours, h5py.Group):
        for name in theirs:
            same_kind(ours[name], theirs[name], f"{where}/{name}")
        return
    assert (ours.shape, ours.dtype, ours.chunks) == (theirs.shape, theirs.dtype, None), where
    assert ours.id.get_type().equal(theirs.id.get_type()), where
    assert h5py.check_string_dtype(ours.dtype) == h5py.check_string_dtype(theirs.dtype), where
    assert h5py.check_enum_dtype(ours.dtype) == h5py.check_enum_dtype(theirs.dtype), where


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate.good(folder)
        for form in FORMS:
            compare(_checkpoint_storage.load(folder / f"{form}.h5"), generate.tree("<"), form)
        generate.refused(folder)
        for path in sorted(folder.glob("refused_*")):
            try:
                _checkpoint_storage.load(path)
                sys.exit(f"{path.name} is read")
            except (ValueError, NotImplementedError) as error:
                assert path.name in str(error), error
        path = folder / "ours.h5"
        _checkpoint_storage.save(generate.tree("<"), path)
        with h5py.File(path) as ours, h5py.File(folder / "default.h5") as theirs:
            compare(load(ours), generate.tree("<"), "ours")
            same_kind(ours, theirs, "")
            version = ours.id.get_create_plist().get_version()
            assert version[0] == 0, version  # of the superblock
    print(f"{len(FORMS)} forms of h5py are read, ours is read by h5py {h5py.__version__}")


if __name__ == "__main__":
    main()
