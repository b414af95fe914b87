# SPDX-License-Identifier: Apache-2.0
"""Writes small data sets in every format the command reads, in the present directory. Plain Python: no numpy."""
import gzip
import random
import struct
import zipfile

ROWS, FEATURES, CLASSES = 60, 4, 3
CODES = {"<f4": "f", "<f8": "d", "<i8": "q", "|u1": "B", ">f4": "f", "<i4": "i"}


def npy(descr, shape, values, fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, tuple(shape))
    header += " " * ((64 - (10 + len(header) + 1) % 64) % 64) + "\n"
    order = ">" if descr[0] == ">" else "<"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack("%s%d%s" % (order, len(values), CODES[descr]), *values))


def idx(code, shape, data):
    return struct.pack(">BBBB%dI" % len(shape), 0, 0, code, len(shape), *shape) + data


def npz(path, arrays, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)


def write(path, data):
    data = data.encode() if isinstance(data, str) else data
    with open(path, "wb") as file:
        file.write(data)
    with gzip.open(path + ".gz", "wb") as file:
        file.write(data)


def main():
    draw = random.Random(1)
    labels = [draw.randrange(CLASSES) for _ in range(ROWS)]
    # Whole numbers 0..255, so that every format holds the same values.
    rows = [[min(255, max(0, int(60 * ((label + 1) * (k + 1) % 4) + draw.gauss(0, 12)))) for k in range(FEATURES)]
            for label in labels]
    flat = [value for row in rows for value in row]
    names = ["red", "green", "blue, or so"]
    header = "a,b,c,d,kind\n"

    write("plain.csv", "".join(",".join(map(str, row + [label])) + "\n" for row, label in zip(rows, labels)))
    write("header.csv", header + "".join(",".join(map(str, row + [label])) + "\n" for row, label in zip(rows, labels)))
    write("dos.csv", "\ufeff" + header.replace("\n", "\r\n")
          + "".join(";".join(map(str, row + [label])) + "\r\n" for row, label in zip(rows, labels)).replace(";", ","))
    write("semicolon.csv", header.replace(",", ";")
          + "".join(";".join(map(str, row + [label])) + "\n" for row, label in zip(rows, labels)))
    write("label_first.csv", "kind,0,1,2,3\n"
          + "".join(",".join(map(str, [label] + row)) + "\n" for row, label in zip(rows, labels)))
    write("text.csv", header + "".join(",".join(map(str, row)) + ',"%s"\n' % names[label]
                                       for row, label in zip(rows, labels)))
    write("x.npy", npy("<f4", [ROWS, FEATURES], flat))
    write("y.npy", npy("<i8", [ROWS], labels))
    write("x_big_endian.npy", npy(">f4", [ROWS, FEATURES], flat))
    write("x_fortran.npy", npy("<f8", [ROWS, FEATURES], [rows[r][c] for c in range(FEATURES) for r in range(ROWS)],
                               fortran=True))
    write("images.idx", idx(8, [ROWS, 2, 2], bytes(flat)))
    write("labels.idx", idx(8, [ROWS], bytes(labels)))
    arrays = {"x": npy("|u1", [ROWS, FEATURES], flat), "labels": npy("<i4", [ROWS], labels)}
    npz("packed.npz", arrays)
    npz("stored.npz", arrays, zipfile.ZIP_STORED)

    # Regression: target = 2 a - 3 b + 1, exactly; and whether a is above b.
    numbers = [(draw.randrange(-8, 9) / 8, draw.randrange(-8, 9) / 8) for _ in range(ROWS)]
    write("line.csv", "a,b,target\n" + "".join("%g,%g,%g\n" % (a, b, 2 * a - 3 * b + 1) for a, b in numbers))
    write("sides.csv", "a,b,target\n" + "".join("%g,%g,%d\n" % (a, b, a > b) for a, b in numbers))


main()
